//! The data of a work that is a job of a fio job file.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::PathBuf;
use std::sync::Arc;
use tidemark_block::job::{Action, Volume};
use tidemark_plan::job::JobData;

/// One job of a fio job file. The works of a stage that have the same `text` and `sections` are jobs of one fio
/// process, which runs the file unchanged (`--section`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FioFile {
    /// The job file: all works of a document share it.
    #[serde(serialize_with = "plain", deserialize_with = "shared::<String, _, _>")]
    pub text: Arc<str>,
    /// The sections that run side by side in this stage (those between two `stonewall`s): all works of a stage share them.
    #[serde(serialize_with = "plain", deserialize_with = "shared::<Vec<String>, _, _>")]
    pub sections: Arc<[String]>,
    /// The section that this work is.
    pub section: String,
    /// The directions that it moves data in, one for each action of the work: `Read`, `Write`, `Trim`.
    pub actions: Vec<Action>,
    /// Whether it bypasses the page cache (`direct=1`).
    pub direct: bool,
    /// The files and devices that the job file names, as far as it does, and what is done to each.
    pub files: Vec<Use>,
    /// Files and devices that fio overwrites besides, whatever the direction: its buffers are mapped from them.
    #[serde(default)]
    pub buffers: Vec<PathBuf>,
    /// Whether it reads back what it has written, when all of that is done (`verify`).
    #[serde(default)]
    pub reads_back: bool,
    /// Whether it calls `sync_file_range`.
    #[serde(default)]
    pub syncs_ranges: bool,
    /// The images of a Ceph cluster that it works on; their sizes are not known.
    #[serde(default)]
    pub images: Vec<Volume>,
    /// What it names although it works on no file or device of this machine.
    #[serde(default)]
    pub elsewhere: Vec<PathBuf>,
    /// The logs that it writes (`write_bw_log` and the like).
    #[serde(default)]
    pub logs: Vec<Log>,
    /// What it works on over the network, where nobody can look: `nbd:nbd://127.0.0.1/disk`.
    #[serde(default)]
    pub remote: Vec<String>,
}

/// A file or device that a job names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// Its path.
    pub path: PathBuf,
    /// Whether the job writes to it, or trims it.
    pub writes: bool,
    /// Whether the job removes it (`unlink`).
    pub removes: bool,
    /// The bytes that it must have: fio removes a file with less and makes it anew. 0: it may have any.
    pub length: u64,
}

impl Use {
    /// Adds what somebody else does to the same file.
    fn join(&mut self, other: &Self) {
        self.writes |= other.writes;
        self.removes |= other.removes;
        self.length = self.length.max(other.length);
    }
}

/// What is done to each file by all that use it.
pub(crate) fn together(all: impl Iterator<Item = Use>) -> Vec<Use> {
    let mut files: Vec<Use> = Vec::new();
    for one in all {
        match files.iter_mut().find(|known| known.path == one.path) {
            Some(known) => known.join(&one),
            None => files.push(one),
        }
    }
    files
}

/// What begins the names of the logs of one kind that a job writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// The name up to the number: `/x/name_bw`.
    pub stem: PathBuf,
    /// Whether each of fio's jobs writes a log of its own, with its number (`per_job_logs`).
    pub is_numbered: bool,
    /// Whether it is packed (`log_store_compressed`).
    pub is_packed: bool,
}

impl Log {
    /// The files that fio writes if it runs so many jobs (`gen_log_name` in its `init.c`).
    pub(crate) fn paths(&self, jobs: u32) -> impl Iterator<Item = PathBuf> {
        let end = if self.is_packed { "log.fz" } else { "log" };
        let named = move |middle: String| {
            let mut name = self.stem.clone().into_os_string();
            name.push(format!("{middle}.{end}"));
            PathBuf::from(name)
        };
        let numbers = if self.is_numbered { 1..=jobs } else { 0..=0 };
        numbers.map(move |number| named(if number == 0 { String::new() } else { format!(".{number}") }))
    }
}

impl FioFile {
    /// The files and devices that the job file names.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().map(|file| &file.path)
    }

    /// Whether both are jobs of one fio process.
    pub(crate) fn shares_run(&self, other: &Self) -> bool {
        self.text == other.text && self.sections == other.sections
    }
}

/// Writes what is shared as if it were not.
fn plain<T: Serialize + ?Sized, S: Serializer>(shared: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    T::serialize(shared, serializer)
}

/// Reads it back; what has travelled is shared no more.
fn shared<'de, T: Deserialize<'de>, S: From<T>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<S, D::Error> {
    T::deserialize(deserializer).map(S::from)
}

impl JobData for FioFile {
    fn engine(&self) -> &'static str {
        crate::NAME
    }
}
