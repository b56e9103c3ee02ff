//! Profiles of block load by name: what an application does to its storage, in a few numbers.
//!
//! Shares are those of the source; block sizes are ours where the source has only small or large.

use super::pattern::{Moves, Pattern};

/// A profile.
pub(crate) struct Profile {
    /// Its name in documents.
    pub(crate) name: &'static str,
    /// What it stands for.
    pub(crate) stands_for: &'static str,
    /// What its results are judged by.
    pub(crate) judged_by: &'static str,
    /// What it does: one pattern, or several, one after the other.
    pub(crate) patterns: &'static [Pattern],
}

const fn mix(name: &'static str, reads: f64, random: f64, blocks: &'static [(u64, u64)]) -> Pattern {
    Pattern { name, moves: Moves::Data { reads }, random, blocks }
}

/// The load profiles of the Intel and Alauda whitepaper (2021), and the four patterns of the QCT paper on Ceph
/// for clouds.
pub(crate) const PROFILES: [Profile; 6] = [
    // The shares are the whitepaper's. 8 KiB is the page of PostgreSQL, Oracle and SQL Server.
    Profile {
        name: "oltp",
        stands_for: "databases with many short transactions",
        judged_by: "response time",
        patterns: &[mix("oltp", 0.25, 0.8, &[(8 << 10, 1)])],
    },
    // Whitepaper: large-block reads. A scan reads on and on, in requests of about this size.
    Profile {
        name: "olap",
        stands_for: "analytical queries that scan tables",
        judged_by: "throughput",
        patterns: &[mix("olap", 1.0, 0.0, &[(256 << 10, 1)])],
    },
    // Whitepaper: sequential bulk write.
    Profile {
        name: "video",
        stands_for: "recording of video",
        judged_by: "throughput",
        patterns: &[mix("video", 0.0, 0.0, &[(1 << 20, 1)])],
    },
    // Whitepaper: small random, 50/50. The metric is ours: a user waits for every operation.
    Profile {
        name: "vdi",
        stands_for: "virtual desktops",
        judged_by: "response time",
        patterns: &[mix("vdi", 0.5, 1.0, &[(4 << 10, 1)])],
    },
    // Whitepaper: mostly sequential writes of mixed sizes. "Mostly" is 90 % here, of both.
    Profile {
        name: "iot",
        stands_for: "readings of many sensors, collected",
        judged_by: "throughput",
        patterns: &[mix("iot", 0.1, 0.1, &[(4 << 10, 50), (16 << 10, 30), (64 << 10, 20)])],
    },
    // 128 kB and 4 kB are fio's 128k and 4k: binary.
    Profile {
        name: "qct",
        stands_for: "block storage of clouds in four patterns",
        judged_by: "throughput where it is sequential, IOPS where it is random",
        patterns: &[
            mix("read", 1.0, 0.0, &[(128 << 10, 1)]),
            mix("write", 0.0, 0.0, &[(128 << 10, 1)]),
            mix("randread", 1.0, 1.0, &[(4 << 10, 1)]),
            mix("randwrite", 0.0, 1.0, &[(4 << 10, 1)]),
        ],
    },
];
