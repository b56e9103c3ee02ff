//! Drivers under a controller: works divided exactly, started together at one time, merged by addition as their seconds come.
//!
//! | module | idea |
//! |---|---|
//! | `protocol` | the messages between controller and driver |
//! | `fleet` | all drivers of a controller, and which run each of them works for |
//! | `link` | a connection that survives cuts: numbered messages over WebSocket, clocks compared |
//! | `driver` | receives the controller's orders and carries out its part of a run |
//! | `health` | the health of a driver's host |
//! | `part`, `orders` | one stage of it, and what the controller orders meanwhile |
//! | `backend` | the controller's side of a run: its stages on drivers instead of in this process |
//! | `assign` | assigns workers to drivers |
//! | `run_drivers` | what is known of a run's drivers; losses are noticed here |
//! | `follow` | one work on its drivers: seconds merged, decisions sent back |

mod assign;
pub mod backend;
pub mod driver;
pub mod fleet;
mod follow;
mod health;
pub mod link;
mod orders;
mod part;
pub mod protocol;
mod run_drivers;

pub use fleet::Fleet;

#[cfg(test)]
mod tests;
