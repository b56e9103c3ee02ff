//! The block engine's part of a plan: volumes and what is done to them, typed and validated.

pub(crate) mod crosscheck;
pub(crate) mod pattern;
pub(crate) mod profile;
pub(crate) mod sweep;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
pub use tidemark_measure::kind::Cache;
use tidemark_plan::job::JobData;

/// What stands for a driver's name in the names of its volumes.
pub const DRIVER: &str = "{driver}";

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
    /// Whether every driver has volumes of its own by these names, in which [`DRIVER`] stands for its name.
    pub per_driver: bool,
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

impl Job {
    /// The names of its volumes and of its journal, as long as the driver's name is not filled in.
    fn names(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let of_volumes = self.volumes.iter_mut().filter_map(|volume| match &mut volume.place {
            Place::File(path) | Place::Device(path) => Some(path),
            Place::Rbd(_) => None,
        });
        of_volumes.chain(&mut self.journal)
    }

    /// Fills in the driver's name.
    ///
    /// # Errors
    /// A sentence without a full stop, when it cannot be a part of a volume's name.
    pub(crate) fn localize(&mut self, driver: &str) -> Result<(), String> {
        let named = |text: &str| text.contains(DRIVER);
        let mut is_named = false;
        for path in self.names() {
            // Paths of documents are text.
            let Some(text) = path.to_str().filter(|text| named(text)) else { continue };
            is_named = true;
            *path = text.replace(DRIVER, driver).into();
        }
        for volume in &mut self.volumes {
            let Place::Rbd(Rbd { pool, image, .. }) = &mut volume.place else { continue };
            for name in [pool, image] {
                is_named |= named(name);
                *name = name.replace(DRIVER, driver);
            }
        }
        let fits = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
        match is_named
            && !(driver.chars().all(fits) && driver.starts_with(|first: char| first.is_ascii_alphanumeric()))
        {
            true => Err(format!(
                "the driver's name `{driver}` cannot stand for `{DRIVER}` in the name of a volume: give the driver a name of letters, digits, \
                 `.`, `-` and `_` that begins with a letter or a digit"
            )),
            false => Ok(()),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn job(places: Vec<Place>) -> Job {
        Job {
            volumes: places.into_iter().map(|place| Volume { place, size: 4096 }).collect(),
            per_driver: true,
            unit: 4096,
            io_engine: IoEngine::Native,
            direct: true,
            polled: false,
            batch: None,
            cache: Cache::default(),
            content: Content::default(),
            journal: Some("/j/{driver}".into()),
            reuse: false,
            actions: vec![Action::Read],
        }
    }

    #[test]
    fn a_driver_s_name_is_filled_in_wherever_it_may_stand_and_leads_nowhere_else() {
        let rbd = Rbd { conf: None, user: "admin".into(), pool: "rbd".into(), image: "t-{driver}-1".into() };
        let mut own =
            job(vec![Place::File("/a/{driver}/v".into()), Place::Device("/dev/x".into()), Place::Rbd(rbd)]);
        own.localize("node-3.eu").unwrap();
        let names: Vec<_> = own.volumes.iter().map(Volume::name).collect();
        assert_eq!(names, ["/a/node-3.eu/v", "/dev/x", "rbd/t-node-3.eu-1"]);
        assert_eq!(own.journal, Some("/j/node-3.eu".into()));
        for name in ["..", "a/b", "../x", "", "-v", ".", "a b", "{driver}"] {
            assert!(job(vec![Place::File("/a/{driver}".into())]).localize(name).is_err(), "{name}");
        }
        let mut unnamed = Job { journal: None, ..job(vec![Place::File("/a/v".into())]) };
        assert_eq!(unnamed.localize("a/b"), Ok(()), "its name is not needed");
    }
}
