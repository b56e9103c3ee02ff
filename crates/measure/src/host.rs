//! Machines: what they are, and how busy they are.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a machine is, as far as its load and results depend on it. What is not known is empty or zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Host {
    /// Its host name.
    #[serde(rename = "host")]
    pub name: String,
    /// Operating system and kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Processors that Tidemark may use.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
}

/// How busy a machine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Utilization {
    /// Share of all processors that are busy, 0 to 1.
    pub cpu_busy: f32,
    /// Memory in use, bytes.
    pub memory_used_bytes: u64,
    /// Received by all network interfaces but loopback, bytes per second.
    pub received_per_s: f64,
    /// Sent by them, bytes per second.
    pub sent_per_s: f64,
}
