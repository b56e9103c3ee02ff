//! The sessions of a job: its volumes, opened once and shared by the threads of a work.

pub use crate::data::DataSet;

use crate::content::{Label, volume_id};
use crate::device;
use crate::job::{Action, Job, Place, Volume};
use crate::ring::{MOST_SLOTS, Ring};
use crate::session::BlockSession;
use crate::volume::{self, Alignment, Opened};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::sync::Arc;
use tidemark_load::engine::{OpenError, Session, Sessions, ThreadContext};

/// Operations are of whole sectors of this many bytes.
const SECTOR: u64 = crate::content::sector::SECTOR as u64;

/// The largest operation, bytes.
const LARGEST: u64 = 1 << 30;

/// What the volumes are opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A prefill: files are made, and made larger, as needed.
    Fill,
    /// Load: volumes must exist and be large enough.
    Load,
}

/// The sessions for a job on files and devices of this machine.
///
/// Volumes that are only removed are not opened and need not exist.
///
/// # Errors
/// When a volume cannot be opened, is too small, or cannot do what the job requires; with advice.
pub fn sessions(job: &Job, data: &Arc<DataSet>, use_: Use) -> Result<Box<dyn Sessions>, OpenError> {
    check_job(job)?;
    let mut files = Vec::new();
    let mut volumes = Vec::new();
    let only_removes = job.actions.iter().all(|action| *action == Action::Remove);
    for volume in &job.volumes {
        if only_removes {
            volumes.push(unopened(job, volume, data)?);
        } else {
            let (file, opened) = volume::opened(job, volume, data, use_)?;
            if moves_data(job) {
                opened.check_size("block size", job.unit)?;
            }
            files.push(file);
            volumes.push(opened);
        }
    }
    Ok(Box::new(BlockSessions {
        shared: Arc::new(Shared { job: job.clone(), volumes, data: Arc::clone(data) }),
        files: files.into(),
    }))
}

/// What all sessions of a work use and none changes.
pub(crate) struct Shared {
    pub(crate) job: Job,
    pub(crate) volumes: Vec<Opened>,
    pub(crate) data: Arc<DataSet>,
}

struct BlockSessions {
    shared: Arc<Shared>,
    files: Arc<[File]>,
}

impl Sessions for BlockSessions {
    fn open(&self, thread: ThreadContext) -> Result<Box<dyn Session>, OpenError> {
        let Shared { job, volumes, data } = &*self.shared;
        let largest = if moves_data(job) { thread.largest } else { 0 };
        check_size(volumes, largest)?;
        if thread.slots > MOST_SLOTS {
            return Err(OpenError(format!(
                "{} operations in flight on one thread exceed io_uring's limit of {MOST_SLOTS}: use more \
                 threads, fewer clients or a smaller depth",
                thread.slots
            )));
        }
        let needed = (u64::from(thread.slots) + 1).saturating_mul(largest);
        if let Some(available) = available_memory().filter(|available| needed > *available) {
            return Err(OpenError(format!(
                "{} operations in flight of up to {largest} bytes need {needed} bytes of buffers, and {available} \
                 are available: use fewer clients, a smaller depth or smaller blocks",
                thread.slots
            )));
        }
        let ring = Ring::new(Arc::clone(&self.files), thread.slots, largest as usize, job.polled);
        let (ring, missing) = ring.map_err(|error| no_ring(&error, needed))?;
        if let Some(error) = missing.buffers.filter(|_| largest > 0) {
            let limit = getrlimit(Resource::Memlock).current;
            let limit = limit.map_or("unlimited".into(), |bytes| format!("{bytes} bytes"));
            data.note(format!(
                "The kernel did not register buffers of {needed} bytes ({error}), so every operation \
                 uses more CPU time; the limit of locked memory is {limit}: raise `ulimit -l`."
            ));
        }
        if let Some(error) = missing.files.filter(|_| !self.files.is_empty()) {
            data.note(format!("The kernel did not register files ({error})."));
        }
        Ok(Box::new(BlockSession::new(Arc::clone(&self.shared), ring, thread)))
    }
}

fn no_ring(error: &std::io::Error, buffers: u64) -> OpenError {
    let advice = match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "; io_uring is disabled or forbidden on this system: set the sysctl kernel.io_uring_disabled to 0, allow it in \
             the container's seccomp profile, or set `engine: fio`"
        }
        std::io::ErrorKind::Unsupported => {
            "; this kernel has no io_uring: set `engine: fio`, which uses `libaio`"
        }
        std::io::ErrorKind::OutOfMemory => "; use a smaller depth, or raise `ulimit -l`",
        _ => "",
    };
    OpenError(format!("cannot set up io_uring with {buffers} bytes of buffers: {error}{advice}"))
}

fn moves_data(job: &Job) -> bool {
    job.actions.iter().any(|action| matches!(action, Action::Read | Action::Write | Action::Trim))
}

fn check_job(job: &Job) -> Result<(), OpenError> {
    let refuse = |text: String| Err(OpenError(text));
    if moves_data(job) && (job.unit == 0 || !job.unit.is_multiple_of(SECTOR)) {
        return refuse(format!("the block size of {} bytes is not a multiple of {SECTOR}", job.unit));
    }
    for volume in &job.volumes {
        let path = volume::path(volume)?;
        if matches!(volume.place, Place::Device(_)) && job.actions.contains(&Action::Remove) {
            return refuse(format!("{} is a device and cannot be removed", path.display()));
        }
    }
    if !job.polled {
        return Ok(());
    }
    if !job.direct {
        return refuse("polled completion requires direct I/O: set `direct: true`".into());
    }
    // The kernel refuses everything but reads and writes on a ring that is polled.
    if let Some(action) =
        job.actions.iter().find(|action| !matches!(action, Action::Read | Action::Write | Action::Remove))
    {
        return refuse(format!(
            "a {} cannot be polled for: remove it, or set `polled: false`",
            action.name()
        ));
    }
    match job.volumes.iter().filter_map(|volume| volume::path(volume).ok()).find(|path| !device::polls(path))
    {
        Some(path) => refuse(format!(
            "the device under {} offers no polled queues (its queue/io_poll is not 1): set `polled: false`, or load \
             the driver with polled queues (nvme.poll_queues)",
            path.display()
        )),
        None => Ok(()),
    }
}

fn check_size(volumes: &[Opened], largest: u64) -> Result<(), OpenError> {
    if largest > LARGEST || !largest.is_multiple_of(SECTOR) {
        return Err(OpenError(format!(
            "the block size of {largest} bytes is not a multiple of {SECTOR} up to {LARGEST}"
        )));
    }
    volumes.iter().try_for_each(|volume| volume.check_size("largest block size", largest))
}

/// A volume that is only to be removed.
fn unopened(job: &Job, volume: &Volume, data: &DataSet) -> Result<Opened, OpenError> {
    let path = volume::path(volume)?.to_owned();
    let id = std::fs::canonicalize(&path).map_or(0, |real| volume_id(&real));
    let label = Label { volume: id, dials: crate::content::Dials::new(&job.content), set: data.set() };
    let alignment = Alignment { offset: 1, memory: 1 };
    Ok(Opened { path, size: volume.size, label, is_filled: false, table: None, alignment })
}

/// Bytes of memory that can be had, as the kernel estimates (`MemAvailable`).
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
