//! The load core decides when an operation is due, which one it is, how many workers there are, when to
//! stop and how to count. It contains no protocol.
//!
//! Four things are independent of each other and never multiplied out by hand:
//!
//! | question | answered by |
//! |---|---|
//! | when is the next operation due? | [`pacing`] |
//! | when is it over? | [`stopping`] |
//! | which operation is it, and on what? | [`source`] (what it *means* is the [`engine`]'s business) |
//! | what is kept of it? | [`recorder`], [`endpoints`] |
//!
//! [`work`] describes a work in these terms; [`thread`] is the loop that runs a share of its workers on one
//! thread; [`thread_pool`] runs all threads that a process has of a work; [`merge`] adds up what all processes record,
//! and decides when the load is steady and when it is given up. [`open_files`] is the limit that many workers run into.

pub mod budget;
pub mod deadline;
pub mod endpoints;
pub mod engine;
mod idle;
pub mod merge;
pub mod open_files;
pub mod pacing;
pub mod pool;
pub mod recorder;
mod seconds;
pub mod source;
pub mod stop;
pub mod stopping;
pub mod thread;
pub mod thread_pool;
pub mod work;
