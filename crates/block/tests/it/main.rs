//! The block engine from outside: on real files and on devices.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

mod corruption;
mod devices;
mod exchanged;
mod files;
mod in_use;
mod marks;
mod prepare;
mod support;
