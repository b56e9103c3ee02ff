//! The controller: a queue of submissions, runs on drivers, live data. Knows no HTTP.
//!
//! | module | idea |
//! |---|---|
//! | `api` | what goes over HTTP, as types; the OpenAPI document is generated from them |
//! | `controller` | how others see the controller |
//! | `core` | what it knows and does: submissions, who has which driver, its threads |
//! | `queue` | who is next; pure |
//! | `runner` | one submission while it goes on |
//! | `work` | what it needs of the world around it: drivers, and ways to carry plans out |
//! | `reading` | documents that anybody may have written, read with care |
//! | `environment` | what such documents may refer to |
//! | `explain` | what a document would do, in words |
//! | `seal` | documents at rest |
//! | `writer` | everything that is written into the store, tried again until it is |
//! | `live` | a run while it goes on, for those who look on |
//! | `log` | drivers that come and go |
//! | `events` | all that happens, numbered |
//! | `view` | what it knows, in the words of the API |

pub mod api;
pub mod controller;
mod core;
mod environment;
mod events;
mod explain;
mod live;
mod presence_log;
mod queue;
mod reading;
mod runner;
mod seal;
mod store_writer;
#[cfg(test)]
mod tests;
mod view;
pub mod work;

pub use controller::Controller;
