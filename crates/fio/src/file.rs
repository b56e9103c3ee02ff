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
    /// The files and devices that the job file names, as far as it does; for the proof.
    pub paths: Vec<PathBuf>,
    /// Files and devices that fio overwrites besides, whatever the direction: its buffers are mapped from them.
    #[serde(default)]
    pub buffers: Vec<PathBuf>,
    /// Whether it reads back what it has written, when all of that is done (`verify`).
    #[serde(default)]
    pub reads_back: bool,
    /// The images of a Ceph cluster that it works on; their sizes are not known.
    #[serde(default)]
    pub images: Vec<Volume>,
    /// What it names although it works on no file or device of this machine.
    #[serde(default)]
    pub elsewhere: Vec<PathBuf>,
    /// The files that its logs begin with (`write_bw_log` and the like).
    #[serde(default)]
    pub logs: Vec<PathBuf>,
    /// What it works on over the network, where nobody can look: `nbd:nbd://127.0.0.1/disk`.
    #[serde(default)]
    pub remote: Vec<String>,
}

impl FioFile {
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
