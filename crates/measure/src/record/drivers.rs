//! What a run on drivers leaves behind of each of them.

use crate::host::Host;
use crate::kind::OperationClass;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A process that generates load, commanded by a controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = RunDriver)]
pub struct Driver {
    /// Its name, unique among the drivers of its controller.
    pub name: String,
    /// Its machine.
    #[serde(flatten)]
    pub host: Host,
    /// How far its clock was ahead of the controller's when the run began, nanoseconds; both are monotonic clocks with
    /// origins of their own, so only changes of it mean something.
    pub clock_offset_ns: i64,
    /// Half of the shortest round trip by which the offset was measured, nanoseconds: the most that it can be wrong.
    pub clock_error_ns: u64,
    /// When it was lost and why, if it was.
    pub lost: Option<Lost>,
}

/// How a driver was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Lost {
    /// When it was given up.
    pub at_ns: u64,
    /// Why, as a clause: `it said nothing for 10 s`.
    pub reason: String,
}

/// What one driver did of one work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = RunShare)]
pub struct Share {
    /// Which driver of the run.
    pub driver: u32,
    /// Which work of the stage.
    pub work: u32,
    /// Its first worker within the work.
    pub first_worker: u32,
    /// How many workers it had.
    pub workers: u32,
    /// Generator threads.
    pub threads: u32,
    /// Measured operations that succeeded.
    pub ok: u64,
    /// Measured operations that failed.
    pub failed: u64,
    /// Bytes that the successful ones moved.
    pub bytes: u64,
    /// Bytes that its reads moved, in the window and outside.
    pub read_bytes: u64,
    /// Bytes that its writes moved likewise.
    pub written_bytes: u64,
    /// When its first operation was sent, measured or not, on the controller's clock.
    pub first_sent_ns: Option<u64>,
    /// Whether all that it did arrived here. If not, the driver was lost, and what it did after its last second is missing.
    pub complete: bool,
    /// Second by second.
    pub series: Vec<ShareSecond>,
}

impl Share {
    /// Adds a second.
    pub fn add(&mut self, second: ShareSecond) {
        self.ok = self.ok.saturating_add(second.ok);
        self.failed = self.failed.saturating_add(second.failed);
        self.bytes = self.bytes.saturating_add(second.bytes);
        self.series.push(second);
    }

    /// Adds what an action moved, in the window and outside.
    pub fn add_moved(&mut self, class: &OperationClass, bytes: u64) {
        match class {
            OperationClass::Read => self.read_bytes = self.read_bytes.saturating_add(bytes),
            OperationClass::Write => self.written_bytes = self.written_bytes.saturating_add(bytes),
            _ => {}
        }
    }
}

/// One second of a driver's share of a work, over all operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ShareSecond {
    /// Which second since the work's start.
    pub index: u32,
    /// Successes.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
    /// Bytes moved by the successes.
    pub bytes: u64,
    /// Median of the response times, nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile of the response times, nanoseconds.
    pub p99_ns: u64,
    /// Share of the generator threads' time that they spent on a processor, 0 to 1.
    pub busy: f64,
}
