//! The object engine from outside: against servers of this process, and against a real gateway.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test may panic, and says what it does"
)]

mod embedded;
mod engine;
mod forecast;
mod gateway;
mod odd_servers;
mod support;
mod swift;
mod verified_reads;
