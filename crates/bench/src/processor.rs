//! Processor time and memory, as the kernel counts them.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// Processor time in microseconds, in user space and in the kernel. The kernel counts in ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Time {
    pub(crate) user_us: f64,
    pub(crate) kernel_us: f64,
}

impl Time {
    /// Of this process so far.
    pub(crate) fn own() -> Option<Self> {
        Self::of_fields(14)
    }

    /// Of all children of this process that have ended.
    pub(crate) fn of_children() -> Option<Self> {
        Self::of_fields(16)
    }

    /// Two fields of `/proc/self/stat`, by their numbers in proc(5).
    fn of_fields(first: usize) -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The second field is the program's name, which may have spaces in it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let per_tick = 1e6 / rustix::param::clock_ticks_per_second() as f64;
        let field = |number: usize| Some(fields.get(number - 3)?.parse::<f64>().ok()? * per_tick);
        Some(Self { user_us: field(first)?, kernel_us: field(first + 1)? })
    }

    pub(crate) fn total_us(self) -> f64 {
        self.user_us + self.kernel_us
    }

    /// The share that is spent in user space.
    pub(crate) fn user_share(self) -> f64 {
        self.user_us / self.total_us()
    }
}

impl Sub for Time {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { user_us: self.user_us - earlier.user_us, kernel_us: self.kernel_us - earlier.kernel_us }
    }
}

impl Add for Time {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { user_us: self.user_us + other.user_us, kernel_us: self.kernel_us + other.kernel_us }
    }
}

/// The largest resident set that this process had, bytes.
pub(crate) fn resident_bytes() -> u64 {
    peak_memory("self")
}

/// The largest resident set that a process, or `self`, had, bytes; 0 where the kernel does not say.
pub(crate) fn peak_memory(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}
