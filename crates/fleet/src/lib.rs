//! Drivers under a controller: works divided exactly, started together at one time, merged by addition as their seconds come.
//!
//! | module | idea |
//! |---|---|
//! | `protocol` | what controller and driver say to each other |
//! | `fleet` | all drivers of a controller, and which run each of them works for |
//! | `link` | a connection that survives cuts: numbered messages over WebSocket, clocks compared |
//! | `driver` | listens to the controller and carries out its part of a run |
//! | `health` | how a driver's host fares |
//! | `part`, `orders` | one stage of it, and what the controller orders meanwhile |
//! | `backend` | the controller's side of a run: its stages on drivers instead of in this process |
//! | `deal` | which driver gets which workers |
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
