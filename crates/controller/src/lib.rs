//! The controller: a queue of submissions, runs on drivers, live data. Knows no HTTP.
//!
//! | module | idea |
//! |---|---|
//! | `api` | what goes over HTTP, as types; the OpenAPI document is generated from them |
//! | `controller` | how others see the controller |
//! | `core` | what it does: its threads, what begins and ends |
//! | `state` | what it knows of submissions: data |
//! | `view` | the same in the words of the API |
//! | `queue` | which submission starts next, and on which drivers; pure |
//! | `runner` | one submission, from its document to its outcome |
//! | `executor` | how plans are carried out, and on which drivers |
//! | `reading` | documents that anybody may have written, read with care |
//! | `environment` | what such documents may refer to |
//! | `explain` | what a document would do, in words |
//! | `seal` | documents at rest |
//! | `store_writer` | everything that is written into the store, tried again until it is |
//! | `board` | where an evaluation stands |
//! | `restore` | an edited document gets its hidden values back |
//! | `live` | a run while it goes on, for those who look on |
//! | `presence_log` | drivers that come and go |
//! | `events` | all that happens, numbered |
//! | `options` | how it is set up |
//!
//! Imports point one way: `controller`, `core`, `runner` and `view`, `state`, and the rest below them.

pub mod api;
mod board;
pub mod controller;
mod core;
mod environment;
mod events;
pub mod executor;
mod explain;
mod forms;
mod live;
mod options;
mod presence_log;
mod queue;
mod reading;
mod restore;
mod runner;
mod seal;
mod state;
mod store_writer;
#[cfg(test)]
mod tests;
mod view;

pub use controller::Controller;
