//! Manifests: as they are, and as a real API server takes them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

mod databases;
mod drivers;
mod layouts;
