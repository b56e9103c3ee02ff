//! Job files made ready: the devices and images that they name are guarded before the run, and jobs of one file share a
//! process.

use crate::domain;
use crate::file::FioFile;
use crate::program::Program;
use crate::rbd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_block::guard::{self, GuardError, Intent};
use tidemark_block::job::{Cache, Place, Volume};
use tidemark_block::method::{Method, Touch};
use tidemark_measure::record::{Note, Proof};
use tidemark_plan::engine::{Carrier, Engine as _, Prepared, Setup, StageWorks};
use tidemark_plan::plan::Plan;
use tidemark_sandbox::{Sandbox, SandboxError};

/// The engine ready for one run.
struct Ready {
    program: Arc<Program>,
    method: Option<Method>,
}

/// Finds fio, and guards the devices and images that the plan's job files write to.
pub(crate) fn prepare(plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
    let program = Program::find().map_err(|error| error.to_string())?;
    crate::Fio.rehearse(plan)?;
    (setup.ready)(program.description());
    let files: Vec<&FioFile> =
        plan.stages.iter().flat_map(|stage| &stage.works).filter_map(|work| work.job.get()).collect();
    let program = match Sandbox::is_supported() {
        Ok(()) => program,
        Err(reason) => unconfined(program, &files, setup.allow_destroy, &reason)?,
    };
    let mut devices = Vec::new();
    for (volume, intent) in guarded(&files) {
        let allow = setup.allow_destroy;
        if let Place::Device(path) = &volume.place
            && intent.destroys()
        {
            devices.extend(domain::device(path));
        }
        let checked = match &volume.place {
            Place::Device(path) if is_character(path) => character(&volume, intent, allow),
            Place::Rbd(_) if !intent.destroys() => Ok(format!("RBD image {}", volume.name())),
            Place::Rbd(_) => {
                let found = rbd::find(&volume).map_err(|error| error.to_string())?;
                guard::check_image(&volume, found, intent, allow)
                    .map(|()| format!("RBD image {}", volume.name()))
            }
            Place::File(_) | Place::Device(_) => guard::check(&volume, intent, allow),
        };
        (setup.ready)(checked.map_err(|error| error.to_string())?);
    }
    for file in files.iter().filter(|file| file.actions.iter().any(|action| action.destroys())) {
        for path in file.paths.iter().filter(|path| path.is_file()) {
            let checked = guard::check_users(&at(path), Intent::WRITE, setup.allow_destroy);
            checked.map_err(|error| error.to_string())?;
        }
        let is_allowed =
            |name: &&String| setup.allow_destroy.iter().any(|one| one.as_os_str() == name.as_str());
        if let Some(name) = file.remote.iter().find(|name| !is_allowed(name)) {
            return Err(format!(
                "{name} would be overwritten, and Tidemark cannot examine what it holds; add `--allow-destroy {name}` to overwrite it anyway"
            ));
        }
    }
    Ok(Box::new(Ready { program: Arc::new(program.examined(devices)), method: None }))
}

/// fio without a sandbox, where the kernel has none: somebody must have named everything that it opens.
fn unconfined(
    program: Program,
    files: &[&FioFile],
    allowed: &[PathBuf],
    reason: &SandboxError,
) -> Result<Program, String> {
    let paths = files.iter().flat_map(|file| file.paths.iter().chain(&file.buffers));
    let unnamed: Vec<String> = paths
        .filter(|path| !allowed.contains(path))
        .map(|path| format!("--allow-destroy {}", path.display()))
        .collect();
    if unnamed.is_empty() {
        return Ok(program.unconfined());
    }
    Err(format!(
        "{reason}; so fio could write to what Tidemark has not examined. If nothing on this machine is lost by that, run it with {}",
        unnamed.join(" ")
    ))
}

/// The distinct devices and images that jobs name, the files and devices that their buffers are mapped from, and what is
/// done to each. What other files hold is fio's own business.
fn guarded(files: &[&FioFile]) -> Vec<(Volume, Intent)> {
    let mut all: Vec<(Volume, Intent)> = Vec::new();
    for file in files {
        let writes = file.actions.iter().any(|action| action.destroys());
        let devices = file.paths.iter().filter(|path| is_device(path)).map(|path| at(path));
        let named = devices.chain(file.images.iter().cloned()).map(|volume| (volume, writes));
        for (volume, writes) in named.chain(file.buffers.iter().map(|path| (at(path), true))) {
            match all.iter_mut().find(|(known, _)| *known == volume) {
                Some((_, known)) => known.writes |= writes,
                None => all.push((volume, Intent { writes, removes: false })),
            }
        }
    }
    all
}

/// What is at a path; how much of it is used is not known.
fn at(path: &Path) -> Volume {
    let path = path.to_owned();
    Volume { place: if is_device(&path) { Place::Device(path) } else { Place::File(path) }, size: 0 }
}

/// Looks at a character device: what it holds is known to its driver alone.
fn character(volume: &Volume, intent: Intent, allow: &[PathBuf]) -> Result<String, GuardError> {
    if intent.destroys() && !guard::is_allowed(volume, allow) {
        let reason = "Tidemark cannot examine what a character device holds".into();
        return Err(GuardError::Precious { path: volume.name(), reason, intent });
    }
    Ok(format!("character device {}", volume.name()))
}

fn is_character(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_char_device())
}

/// Whether a path is a device in which something may be stored. Character devices are: NVMe's `/dev/ng0n1`, SCSI's `/dev/sg0`.
fn is_device(path: &Path) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    let kind = found.file_type();
    kind.is_block_device() || (kind.is_char_device() && !tidemark_sandbox::is_harmless(path))
}

impl Prepared for Ready {
    fn open(&mut self, stage: StageWorks<'_>, _notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        let works = stage.works;
        let files: Vec<&FioFile> = works.iter().filter_map(|work| work.job.get()).collect();
        self.method = Method::begin(&crate::Fio, &files.iter().map(|file| touch(file)).collect::<Vec<_>>());
        let runs = files.chunk_by(|one, other| one.shares_run(other));
        Ok(runs.map(|run| Carrier::Process(run.len(), Arc::clone(&self.program) as _)).collect())
    }

    fn close(&mut self, remarks: &[String]) -> Option<Proof> {
        self.method.take().map(|method| method.end(&crate::Fio, remarks.iter()))
    }
}

/// What a job touches. It declares the state of the page cache by `direct`.
fn touch(file: &FioFile) -> Touch<'_> {
    Touch {
        // Their files and devices stay whose they were.
        volumes: &file.images,
        paths: &file.paths,
        writes: file.actions.iter().any(|action| action.changes()),
        direct: file.direct,
        cache: if file.direct { Cache::Cold } else { Cache::Warm },
        measures: true,
    }
}

#[cfg(test)]
mod tests;
