//! What holds when a document or a command line does not say otherwise. `docs/document.md` states the same.

use crate::block::pattern::{Moves, Pattern};
use crate::object::Target;
use tidemark_measure::rng;

/// Longest wait for operations in flight at the end of the load, nanoseconds: as long as one attempt may.
pub(crate) const DRAIN_NS: u64 = 30_000_000_000;

/// A work that ends by itself is given up after this long without a success, nanoseconds. A work with a set
/// time is not: it ends anyway, and an outage within it is a result.
pub(crate) const GIVE_UP_NS: u64 = 60_000_000_000;

/// [`DRAIN_NS`] for a target: not less than one attempt may take there.
pub(crate) fn drain_ns(target: Option<&Target>) -> u64 {
    DRAIN_NS.max(timeout_ns(target))
}

/// [`GIVE_UP_NS`] for a target: not less than two attempts may take there.
pub(crate) fn give_up_ns(target: Option<&Target>) -> u64 {
    GIVE_UP_NS.max(timeout_ns(target).saturating_mul(2))
}

fn timeout_ns(target: Option<&Target>) -> u64 {
    match target {
        Some(Target::S3(s3)) => s3.http.timeout_ns,
        Some(Target::Swift(swift)) => swift.http.timeout_ns,
        Some(Target::Mock(_) | Target::Nothing | Target::Embedded(_)) | None => 0,
    }
}

/// Failures allowed per million operations of the measured load: 1 %. Other works allow none.
pub(crate) const ALLOWED_FAILURES: u32 = 10_000;

/// The region named in S3 signatures.
pub(crate) const REGION: &str = "us-east-1";

/// The largest number of workers of one work that is treated as intended.
pub(crate) const MOST_WORKERS: u32 = 1_000_000;

/// Points of all sweeps of a document beyond this are treated as a mistake.
pub(crate) const MOST_POINTS: u64 = 10_000;

/// Volumes named by all works of a document, beyond which it is treated as a mistake.
pub(crate) const MOST_VOLUMES_NAMED: u64 = 1_000_000;

/// The default limit of a prefill's clients: one for each volume, up to this many.
pub(crate) const FILL_CLIENTS: u32 = 8;

/// Operations of a prefill's client in flight at once.
pub(crate) const FILL_DEPTH: u32 = 8;

/// What preconditioning does: the workload-independent part of the SNIA's method writes the capacity twice.
pub(crate) const PRECONDITION: Pattern =
    Pattern { name: "randwrite", moves: Moves::Data { reads: 0.0 }, random: 1.0, blocks: &[] };

/// Block size of preconditioning, bytes.
pub(crate) const PRECONDITION_BLOCK: u64 = 4 << 10;

/// How often preconditioning writes the capacity (SNIA SSS PTS 2.0.2, 7.1).
pub(crate) const PRECONDITION_PASSES: u64 = 2;

/// Operations of a preconditioning client in flight at once.
pub(crate) const PRECONDITION_DEPTH: u32 = 32;

/// Rounds after which a load that does not become steady is measured anyway, as TKperf does.
pub(crate) const STEADY_ROUNDS: u32 = 25;

/// Exponent of a Zipf distribution that has none, YCSB's.
pub(crate) const ZIPF_EXPONENT: f64 = 0.99;

/// A seed derived from a text: the same document makes the same choices. It has 32 bits, so that it can be typed.
pub(crate) fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0, |seed, byte| rng::mix(seed, &[u64::from(byte)])) & u64::from(u32::MAX)
}
