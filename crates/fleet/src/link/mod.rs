//! A connection that survives cuts: numbered messages over WebSocket, clocks compared.
//!
//! | module | idea |
//! |---|---|
//! | `client` | the driver's side: joins, stays joined, joins again |
//! | `caller` | its connections, one after the other |
//! | `dial` | how to reach the controller |
//! | `server` | the controller's side of one connection |
//! | `proof` | how a controller proves itself where no certificate does |
//! | `access` | the tokens that a controller on loopback leaves for its own user |
//! | `trust` | what to do when the controller's certificate cannot be verified |
//! | `frame` | what travels: JSON for messages, a fixed header for seconds |
//! | `pipe` | the same between a process and one that it has started, over pipes |
//! | `intake` | how much of an incomplete message a connection may hold |
//! | `stream` | numbers, acknowledgements, what has to be sent again |
//! | `clock` | how far the driver's clock is ahead |

pub mod access;
mod caller;
pub mod client;
pub(crate) mod clock;
mod dial;
pub(crate) mod frame;
mod intake;
pub(crate) mod pipe;
pub mod proof;
pub(crate) mod server;
pub(crate) mod stream;
mod trust;

pub use client::{FromController, Join, JoinError, Link, join};
pub use intake::Intake;
pub use server::rehearse;
pub use tidemark_tls::Trust;
pub use trust::client_config;

use std::time::{Duration, Instant};

/// The largest message, bytes: a plan with all that it refers to, or the observations of a long run.
pub const MESSAGE_MOST: usize = 64 << 20;

/// The largest second of load, bytes.
pub const SECOND_MOST: usize = 4 << 20;

/// The most unacknowledged data on either side of a session, bytes.
pub const KEPT_MOST: usize = 256 << 20;

/// Where drivers connect to: a path of the controller.
pub const PATH: &str = "/api/v1/link";

/// Sets what a driver's connection needs: room for large messages, small buffers for many drivers.
pub fn limits<F>(upgrade: axum::extract::ws::WebSocketUpgrade<F>) -> axum::extract::ws::WebSocketUpgrade<F> {
    const BUFFER: usize = 16 << 10;
    upgrade
        .max_message_size(MESSAGE_MOST)
        .max_frame_size(MESSAGE_MOST)
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
}

/// The moment at which a clock that began at `origin` shows `ns`; `origin` if this host's clock cannot express it.
pub(crate) fn instant_of(origin: Instant, ns: i64) -> Instant {
    let distance = Duration::from_nanos(ns.unsigned_abs());
    let instant = if ns < 0 { origin.checked_sub(distance) } else { origin.checked_add(distance) };
    instant.unwrap_or(origin)
}

#[cfg(test)]
mod tests;
