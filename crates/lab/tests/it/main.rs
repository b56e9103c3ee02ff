//! Labs for real, from their creation to their end.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

mod ceph;
mod common;
mod databases;
mod kubernetes;
mod layouts;
mod node;
