//! What holds when a document or a command line does not say otherwise, as far as no key declares it.

use tidemark_measure::rng;

/// Longest wait for operations in flight at the end of the load, nanoseconds: as long as one attempt may.
pub const DRAIN_NS: u64 = 30_000_000_000;

/// A work that ends by itself is given up after this long without a success, nanoseconds. A work with a set
/// time is not: it ends anyway, and an outage within it is a result.
pub const GIVE_UP_NS: u64 = 60_000_000_000;

/// [`DRAIN_NS`], and not less than one attempt may take.
pub fn drain_ns(attempt_ns: u64) -> u64 {
    DRAIN_NS.max(attempt_ns)
}

/// [`GIVE_UP_NS`], and not less than two attempts may take.
pub fn give_up_ns(attempt_ns: u64) -> u64 {
    GIVE_UP_NS.max(attempt_ns.saturating_mul(2))
}

/// Failures allowed per million operations of the measured load: 1 %. Other works allow none.
pub const ALLOWED_FAILURES: u32 = 10_000;

/// The largest number of workers of one work that is treated as intended.
pub const MOST_WORKERS: u32 = 1_000_000;

/// Points of all sweeps of a document beyond this are treated as a mistake.
pub const MOST_POINTS: u64 = 10_000;

/// Stages of a document beyond this are treated as a mistake: all of them are shown, told and kept.
pub const MOST_STAGES: usize = 10_000;

/// Works of one stage beyond this are treated as a mistake: each has a thread pool of its own on every driver.
pub const MOST_WORKS: usize = 1_000;

/// Volumes named by all works of a document, beyond which it is treated as a mistake.
pub const MOST_NAMED: u64 = 1_000_000;

/// Operations of one client in flight at once: the limit of io_uring.
pub const MOST_DEPTH: u32 = 32_768;

/// Exponent of a Zipf distribution that has none, YCSB's.
pub const ZIPF_EXPONENT: f64 = 0.99;

/// A seed derived from a text: the same document makes the same choices. It has 32 bits, so that it can be typed.
pub fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0, |seed, byte| rng::mix(seed, &[u64::from(byte)])) & u64::from(u32::MAX)
}
