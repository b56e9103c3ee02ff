//! The block engine's part of a plan: volumes and what is done to them, typed and validated.

pub(crate) mod crosscheck;
pub(crate) mod pattern;
pub(crate) mod profile;
pub(crate) mod sweep;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
pub use tidemark_measure::kind::Cache;
use tidemark_plan::job::JobData;

/// Bytes that one operation of a prefill writes.
pub const FILL_BYTES: u64 = 1 << 20;

/// Volumes and what the work's actions do to them.
///
/// An [`Operation`](tidemark_load::engine::Operation)'s `space` is a volume's number, from 1; its `item` is an
/// offset in units of [`Job::unit`]; its `bytes` are the length. An operation that would go beyond the volume's end
/// is cut there (the last one of a prefill).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What the load runs against; space k is `volumes[k - 1]`.
    pub volumes: Vec<Volume>,
    /// Bytes of one item.
    pub unit: u64,
    /// What issues the operations.
    pub io_engine: IoEngine,
    /// Whether the page cache is bypassed (`O_DIRECT`); never silently given up.
    pub direct: bool,
    /// Completions are polled for rather than waited for (`IORING_SETUP_IOPOLL`); refused where the device cannot.
    pub polled: bool,
    /// Operations submitted and completed together, at least 1, as fio does by itself (its default is 1). `None`:
    /// whatever is ready is submitted in one system call, and whatever has ended is taken.
    pub batch: Option<u32>,
    /// The declared state of the page cache at the start of the load.
    pub cache: Cache,
    /// What is written and what is checked.
    pub content: Content,
    /// The directory that keeps which write each block of the volumes must hold; `None`: that is forgotten with the run.
    pub journal: Option<PathBuf>,
    /// Of a prefill: a volume that already holds what it would write is left as it is.
    pub reuse: bool,
    /// The actions, in the order in which operations refer to them.
    pub actions: Vec<Action>,
}

impl JobData for Job {
    fn engine(&self) -> &'static str {
        crate::NAME
    }
}

/// What the load runs against.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Volume {
    /// Where it is.
    pub place: Place,
    /// Its size in bytes, a multiple of 4 KiB: all of it is used. Of a device: how much of it is used.
    pub size: u64,
}

/// Where a volume is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Place {
    /// A file in a file system; made by the prefill if it is not there.
    File(PathBuf),
    /// A block device.
    Device(PathBuf),
    /// A RADOS block device image, reached through librbd by fio.
    Rbd(Rbd),
}

/// An image of a Ceph cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rbd {
    /// The cluster's configuration file; `None`: Ceph's default one.
    pub conf: Option<PathBuf>,
    /// The client's name without `client.`: `admin`.
    pub user: String,
    /// Pool.
    pub pool: String,
    /// Image.
    pub image: String,
}

impl Volume {
    /// Its name for people: a path, or `pool/image`.
    pub fn name(&self) -> String {
        match &self.place {
            Place::File(path) | Place::Device(path) => path.display().to_string(),
            Place::Rbd(rbd) => format!("{}/{}", rbd.pool, rbd.image),
        }
    }
}

/// What issues the operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IoEngine {
    /// Tidemark's own engine, on io_uring.
    #[default]
    Native,
    /// The user's fio, one process per client.
    Fio,
}

impl IoEngine {
    /// The word for tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            IoEngine::Native => "native",
            IoEngine::Fio => "fio",
        }
    }
}

/// What is written and what is checked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Content {
    /// Share of every block that a compressor can remove, 0 to 1.
    pub compressible: f64,
    /// Share of blocks that occur elsewhere too, 0 to 1.
    pub duplicate: f64,
    /// Whether every read is checked against what was written. Native only.
    pub verify: bool,
}

impl Default for Content {
    fn default() -> Self {
        Self { compressible: 0.0, duplicate: 0.0, verify: false }
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Reads.
    Read,
    /// Writes seeded content.
    Write,
    /// Gives the range back: a hole is punched (`FALLOC_FL_PUNCH_HOLE`), which a device takes as a discard or writes zeroes for.
    Trim,
    /// `fsync` of the volume.
    Fsync,
    /// `fdatasync` of the volume.
    Fdatasync,
    /// Removes the volume: a file or an image. Refused for devices.
    Remove,
}

impl Action {
    /// Whether it changes what a volume holds.
    pub const fn changes(self) -> bool {
        matches!(self, Action::Write | Action::Trim)
    }

    /// Whether something is lost by it that the guard keeps: what a volume holds, or the volume.
    pub const fn destroys(self) -> bool {
        matches!(self, Action::Write | Action::Trim | Action::Remove)
    }

    /// The word for tables, and what it is counted as.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Read => "read",
            Action::Write => "write",
            Action::Trim => "trim",
            Action::Fsync => "fsync",
            Action::Fdatasync => "fdatasync",
            Action::Remove => "remove",
        }
    }
}
