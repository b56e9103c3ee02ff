//! What holds when a document or a command line does not say otherwise. `docs/document.md` states the same.

use crate::object::Target;
use tidemark_measure::rng;

/// How long operations in flight may take after the end of the load, nanoseconds: as long as one attempt may.
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

/// The largest number of workers of one work that is taken for meant.
pub(crate) const MOST_WORKERS: u32 = 1_000_000;

/// A seed derived from a text: the same document makes the same choices. It has 32 bits, so that it can be typed.
pub(crate) fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0, |seed, byte| rng::mix(seed, &[u64::from(byte)])) & u64::from(u32::MAX)
}
