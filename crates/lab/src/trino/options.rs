//! What Trino cluster is wanted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::jdk::Jdk;
use super::record::Shape;
use super::storage::Storage;
use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::Home;
use crate::ports;

/// The most workers that one machine is meant for.
pub(crate) const MOST_WORKERS: u16 = 32;
/// The heap of each process that is usual: three of them leave most of a small machine to storage and its cache.
const USUAL_HEAP: u64 = 2 << 30;
/// The least with which a process starts and answers.
pub(crate) const LEAST_HEAP: u64 = 512 << 20;

/// What Trino cluster is wanted. What is `None` is as the lab in the directory has it, or as usual in a new one.
#[derive(Clone, Debug)]
pub struct TrinoOptions {
    /// The lab's directory, made if it is missing.
    pub dir: PathBuf,
    /// Workers besides the coordinator: 0 to 32, usually 0. Without any, the coordinator works itself.
    pub workers: Option<usize>,
    /// The coordinator's port on 127.0.0.1; the workers have those after it. Usually free ones are chosen, and kept.
    pub port: Option<u16>,
    /// The most that the heap of each process may take, in bytes: at least 512 MiB, usually 2 GiB.
    pub heap_bytes: Option<u64>,
    /// The directory of the Java that runs them; usually one is found.
    pub jdk: Option<PathBuf>,
    /// Where tables and their catalogue lie. They outlive the cluster.
    pub storage: Storage,
    /// Where programs are looked for, in the form of the variable PATH, which it replaces.
    pub program_path: Option<OsString>,
}

impl TrinoOptions {
    /// A coordinator that works alone, in the directory given.
    pub fn new(dir: impl Into<PathBuf>, storage: Storage) -> Self {
        Self {
            dir: dir.into(),
            workers: None,
            port: None,
            heap_bytes: None,
            jdk: None,
            storage,
            program_path: None,
        }
    }

    /// What the cluster is to be made of, given what the lab has so far.
    pub(super) fn shape(&self, home: &Home, has: Option<&Shape>) -> Result<Shape, LabError> {
        let workers = self.workers.or(has.map(Shape::workers)).unwrap_or(0);
        if workers > MOST_WORKERS.into() {
            let (option, allowed) = ("the number of workers", "from 0 to 32");
            return Err(LabError::BadOption { option, value: workers as u64, allowed });
        }
        let heap_bytes = self.heap_bytes.or(has.map(|has| has.heap_bytes)).unwrap_or(USUAL_HEAP);
        if heap_bytes < LEAST_HEAP {
            let (option, allowed) = ("the heap of each process, in bytes,", "at least 536870912 (512 MiB)");
            return Err(LabError::BadOption { option, value: heap_bytes, allowed });
        }
        let jdk = match (&self.jdk, has) {
            (None, Some(has)) if has.jdk.join("bin/java").is_file() => has.jdk.clone(),
            (named, _) => Jdk::find(named.as_deref())?.home,
        };
        let kept = has.map_or(&[][..], |has| &has.ports);
        let ports = self.ports(home.dir(), workers, kept)?;
        Ok(Shape { ports, heap_bytes, jdk, bucket: self.storage.bucket.clone() })
    }

    fn ports(&self, dir: &Path, workers: usize, kept: &[u16]) -> Result<Vec<u16>, LabError> {
        let mut ports: Vec<u16> = Vec::new();
        for number in 0..=workers {
            let daemon = if number == 0 { Daemon::Coordinator } else { Daemon::Worker(number) };
            ports.push(match (self.port, kept.get(number)) {
                (Some(first), _) => ports::after("the coordinator's port", first, number)?,
                (None, Some(port)) => *port,
                (None, None) => ports::choose(daemon, dir, &[&ports, kept].concat())?,
            });
        }
        Ok(ports)
    }
}
