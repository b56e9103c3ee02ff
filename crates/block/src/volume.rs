//! A volume opened for load: its file, its requirements for direct I/O, and what was written there.

use crate::content::{Dials, Label, table::Table, volume_id};
use crate::data::DataSet;
use crate::device;
use crate::fill::is_filled;
use crate::identity::Identity;
use crate::job::{Action, Job, Place, Volume};
use crate::owner::{self, Owner};
use crate::sessions::Use;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, fstat, ftruncate, statx};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_load::engine::OpenError;

/// A volume of a job, without its file: the ring has that.
pub(crate) struct Opened {
    /// As the document names it.
    pub(crate) path: PathBuf,
    /// Bytes used.
    pub(crate) size: u64,
    /// What its content has in common.
    pub(crate) label: Label,
    /// Whether it is known to hold content with stamps, so that whatever lies in it should have one.
    pub(crate) is_filled: bool,
    /// What this run wrote there, if that is followed.
    pub(crate) table: Option<Arc<Table>>,
    /// Alignment of direct I/O; 1 where it is not used.
    pub(crate) alignment: Alignment,
}

/// Alignment of direct I/O, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alignment {
    /// Of offsets and lengths.
    pub(crate) offset: u64,
    /// Of memory.
    pub(crate) memory: u64,
}

/// The path of a file or device.
pub(crate) fn path(volume: &Volume) -> Result<&Path, OpenError> {
    match &volume.place {
        Place::File(path) | Place::Device(path) => Ok(path),
        Place::Rbd(_) => Err(OpenError(format!(
            "{} is an RBD image, which the native engine does not support: set `engine: fio`",
            volume.name()
        ))),
    }
}

/// Opens one volume of a job.
pub(crate) fn opened(
    job: &Job,
    volume: &Volume,
    data: &DataSet,
    purpose: Use,
) -> Result<(File, Opened), OpenError> {
    let path = path(volume)?;
    let file = open_file(job, volume, path, data, purpose)?;
    let failed = |error: Errno| OpenError(format!("{}: {}", path.display(), io::Error::from(error)));
    let stat = fstat(&file).map_err(failed)?;
    let examined = data.examined(path).filter(|_| writes(job, purpose));
    if let Some(examined) = examined.filter(|examined| *examined != Identity::found(&stat)) {
        return Err(OpenError(format!(
            "{} was exchanged just now: it was {examined} when it was examined, and is {} now; nothing was written there. Find out who \
             changed it, and start the run again",
            path.display(),
            Identity::found(&stat)
        )));
    }
    check_kind(volume, path, device::is_device(&stat))?;
    let held = match &volume.place {
        Place::Device(_) => {
            device::size_of(&file).map_err(|error| OpenError(format!("{}: {error}", path.display())))?
        }
        _ => stat.st_size as u64,
    };
    if held < volume.size {
        match (&volume.place, purpose) {
            (Place::File(_), Use::Fill) => {
                ftruncate(&file, volume.size).map_err(|error| {
                    OpenError(format!(
                        "cannot extend {} to {} bytes: {}",
                        path.display(),
                        volume.size,
                        io::Error::from(error)
                    ))
                })?;
            }
            (Place::File(_), Use::Load) => {
                return Err(OpenError(format!(
                    "{} is too small: it has {held} bytes and {} are required; run a `prepare` stage first",
                    path.display(),
                    volume.size
                )));
            }
            _ => {
                return Err(OpenError(format!(
                    "{} is too small: it has {held} bytes and {} are required; lower `size`",
                    path.display(),
                    volume.size
                )));
            }
        }
    }
    let alignment = match job.direct {
        true => direct_alignment(&file, path)?,
        false => Alignment { offset: 1, memory: 1 },
    };
    let id = id(path);
    let label = Label { volume: id, dials: Dials::new(&job.content), set: data.set() };
    let journal = job.journal.as_deref();
    let table = table(job, volume, path, data)?;
    if let Some(table) = table.as_ref().filter(|_| job.actions.contains(&Action::Trim)) {
        table.note_trims();
    }
    if let (Some(_), Use::Load, Owner::Foreign(reason)) = (journal, purpose, owner::of_file(path)) {
        data.note(format!("{}: {reason}; what is called lost or wrong there may be that.", path.display()));
    }
    let is_filled = job.content.verify && is_filled(path, volume.size);
    Ok((file, Opened { path: path.to_owned(), size: volume.size, label, is_filled, table, alignment }))
}

/// The number of the volume at a path, whether it is there or is going to be made.
fn id(path: &Path) -> u64 {
    let new = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    volume_id(&path.canonicalize().ok().or_else(new).unwrap_or_else(|| path.to_owned()))
}

/// The table of a volume, with what its journal holds, if there is one.
///
/// # Errors
/// When the journal cannot be made or used.
pub(crate) fn table(
    job: &Job,
    volume: &Volume,
    path: &Path,
    data: &DataSet,
) -> Result<Option<Arc<Table>>, OpenError> {
    let journal = job.journal.as_deref();
    data.table(id(path), volume.size, job.unit, journal).map_err(|error| {
        OpenError(format!(
            "cannot use the journal of {} in {}: {error}",
            path.display(),
            journal.unwrap_or(Path::new("")).display()
        ))
    })
}

/// Whether a volume is opened to be changed.
fn writes(job: &Job, purpose: Use) -> bool {
    purpose == Use::Fill || job.actions.iter().any(|action| action.changes())
}

fn open_file(
    job: &Job,
    volume: &Volume,
    path: &Path,
    data: &DataSet,
    purpose: Use,
) -> Result<File, OpenError> {
    let writes = writes(job, purpose);
    let mut flags = OFlags::CLOEXEC | if writes { OFlags::RDWR } else { OFlags::RDONLY };
    if job.direct {
        flags |= OFlags::DIRECT;
    }
    // What was examined is there.
    if purpose == Use::Fill && matches!(volume.place, Place::File(_)) && data.examined(path).is_none() {
        flags |= OFlags::CREATE;
    }
    data.access().open(path, flags, Mode::from_raw_mode(0o644)).map_err(|error| {
        OpenError(match Errno::from_io_error(&error) {
            Some(errno) => refusal(errno, path, job.direct, writes),
            None => format!("cannot open {}: {error}", path.display()),
        })
    })
}

/// Why a volume could not be opened, and what to do.
fn refusal(error: Errno, path: &Path, direct: bool, writes: bool) -> String {
    let path = path.display();
    match error {
        Errno::NOENT => format!("{path} does not exist: run a `prepare` stage first, or check the path"),
        Errno::INVAL if direct => format!(
            "{path}: its file system does not support direct I/O: set `direct: false`, or use another file system"
        ),
        Errno::ACCESS | Errno::PERM => format!(
            "this user may not open {path} for {}: grant access, or run as root",
            if writes { "reading and writing" } else { "reading" }
        ),
        Errno::ISDIR => format!("{path} is a directory: use a file in it"),
        Errno::ROFS => format!("{path} is on a file system that is mounted read-only"),
        Errno::BUSY => format!("{path} is in use by the system (mounted, or part of another device)"),
        Errno::NXIO | Errno::NODEV | Errno::NOMEDIUM => format!("{path}: the device no longer exists"),
        other => format!("cannot open {path}: {}", io::Error::from(other)),
    }
}

fn check_kind(volume: &Volume, path: &Path, is_device: bool) -> Result<(), OpenError> {
    match (&volume.place, is_device) {
        (Place::File(_), true) => {
            Err(OpenError(format!("{} is a device: use `kind: device`, not `kind: file`", path.display())))
        }
        (Place::Device(_), false) => {
            Err(OpenError(format!("{} is not a block device: use `kind: file`", path.display())))
        }
        _ => Ok(()),
    }
}

/// Alignment of direct I/O on an open file, from the kernel (`STATX_DIOALIGN`, Linux 6.1), or else a logical
/// block of its device.
fn direct_alignment(file: &File, path: &Path) -> Result<Alignment, OpenError> {
    let told = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
        .ok()
        .filter(|told| StatxFlags::from_bits_retain(told.stx_mask).contains(StatxFlags::DIOALIGN));
    match told {
        Some(told) if told.stx_dio_offset_align == 0 => Err(OpenError(format!(
            "{}: its file system does not support direct I/O on this file: set `direct: false`, or use another file system",
            path.display()
        ))),
        Some(told) => Ok(Alignment {
            offset: u64::from(told.stx_dio_offset_align),
            memory: u64::from(told.stx_dio_mem_align),
        }),
        None => {
            let block = device::logical_block(path).unwrap_or(512);
            Ok(Alignment { offset: block, memory: block })
        }
    }
}

impl Opened {
    /// Whether operations of `bytes` bytes, called `what`, can be done on this volume.
    pub(crate) fn check_size(&self, what: &str, bytes: u64) -> Result<(), OpenError> {
        let Alignment { offset, .. } = self.alignment;
        if bytes.is_multiple_of(offset) {
            return Ok(());
        }
        Err(OpenError(format!(
            "{} requires direct I/O in multiples of {offset} bytes, and the {what} is {bytes} bytes: use a \
             multiple of {offset}, or set `direct: false`",
            self.path.display()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        let path = Path::new("/x/y");
        assert!(refusal(Errno::INVAL, path, true, false).contains("`direct: false`"));
        assert!(!refusal(Errno::INVAL, path, false, false).contains("direct"));
        assert!(refusal(Errno::ACCESS, path, true, true).contains("reading and writing"));
        assert!(refusal(Errno::NOENT, path, true, false).contains("prepare"));
    }
}
