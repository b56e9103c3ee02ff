//! Drivers under a controller: divides works exactly, starts them together, and merges their seconds by addition as they come.
//!
//! | module | idea |
//! |---|---|
//! | `protocol` | the messages between controller and driver |
//! | `fleet` | all drivers of a controller, and which run each of them works for |
//! | `link` | a connection that survives cuts: numbered messages over WebSocket, clocks compared |
//! | `driver` | listens to the controller and carries out its part of a run |
//! | `run_thread`, `run_process` | a run's part in a thread of this process, in a process of its own |
//! | `process` | a program that this process starts, commands and ends |
//! | `helper` | a program beside this one, run as a driver of its own |
//! | `part`, `orders` | one stage of it, and the controller's orders for it |
//! | `backend` | the controller's side of a run: its stages on drivers instead of in this process |
//! | `assign` | which driver gets which workers |
//! | `holdings`, `proofs` | what drivers must not share; their proofs as one |
//! | `run_drivers` | the state of a run's drivers; notices losses |
//! | `words` | texts in messages of drivers, cut to a bounded length |
//! | `follow` | one work on its drivers: merges seconds, sends decisions back |

mod assign;
pub mod backend;
pub mod driver;
pub mod fleet;
mod follow;
pub mod helper;
mod holdings;
pub mod link;
mod orders;
mod part;
mod process;
mod proofs;
pub mod protocol;
mod run_drivers;
mod run_process;
mod run_thread;
mod words;

pub use fleet::Fleet;

#[cfg(test)]
mod tests;
