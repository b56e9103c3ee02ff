//! Job files made ready: the devices and images that they name are guarded before the run, and jobs of one file share a
//! process.

use crate::domain::{Domain, is_short};
use crate::examined::{Examined, Found};
use crate::file::{FioFile, Use};
use crate::program::Program;
use crate::{logs, rbd, surroundings};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_block::guard::{self, GuardError, Intent};
use tidemark_block::job::{Cache, Place, Volume};
use tidemark_block::method::{Method, Touch};
use tidemark_measure::line::shell_word;
use tidemark_measure::record::{Note, Proof};
use tidemark_measure::units;
use tidemark_plan::engine::{Carrier, Engine as _, Prepared, Setup, StageWorks};
use tidemark_plan::plan::{Plan, Work};
use tidemark_sandbox::{Sandbox, SandboxError};

/// The engine ready for one run.
struct Ready {
    program: Program,
    examined: Examined,
    allow: Vec<PathBuf>,
    /// What runs now.
    running: Running,
    method: Option<Method>,
}

/// A stage that runs.
#[derive(Default)]
struct Running {
    paths: Vec<PathBuf>,
    /// Its devices, open so that nobody else can mount them.
    _devices: Vec<OwnedFd>,
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
    let mut examined = Examined::new(setup.access.clone());
    for path in files.iter().flat_map(|file| file.paths().chain(&file.buffers)) {
        examined.look(path)?;
    }
    setup.allow_destroy.iter().for_each(|path| examined.give_up(path));
    for (volume, intent) in guarded(&files) {
        let allow = setup.allow_destroy;
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
        if let Place::Device(path) = &volume.place
            && intent.destroys()
        {
            examined.release(path);
        }
    }
    for file in files.iter().filter(|file| file.actions.iter().any(|action| action.destroys())) {
        let is_allowed =
            |name: &&String| setup.allow_destroy.iter().any(|one| one.as_os_str() == name.as_str());
        if let Some(name) = file.remote.iter().find(|name| !is_allowed(name)) {
            return Err(format!(
                "{name} would be overwritten, and Tidemark cannot examine what it holds; add `--allow-destroy {}` to overwrite it anyway",
                shell_word(name)
            ));
        }
    }
    for stage in &plan.stages {
        for works in runs(&stage.works.iter().collect::<Vec<_>>()) {
            check(&works, &examined, setup.allow_destroy)?;
        }
    }
    check_logs(plan)?;
    let allow = setup.allow_destroy.to_vec();
    Ok(Box::new(Ready { program, examined, allow, running: Running::default(), method: None }))
}

/// Works of a stage by the process that they share.
fn runs<'w>(works: &[&'w Work]) -> Vec<Vec<(&'w Work, &'w FioFile)>> {
    let files: Vec<(&Work, &FioFile)> =
        works.iter().filter_map(|work| Some((*work, work.job.get()?))).collect();
    files.chunk_by(|(_, one), (_, other)| one.shares_run(other)).map(<[_]>::to_vec).collect()
}

/// Looks at what the jobs of one process use, as it is now.
fn check(works: &[(&Work, &FioFile)], examined: &Examined, allow: &[PathBuf]) -> Result<Domain, String> {
    let files: Vec<&FioFile> = works.iter().map(|(_, file)| *file).collect();
    let domain = Domain::of_files(files.iter().copied(), examined)?;
    for (one, found) in &domain.uses {
        let shown = one.path.display();
        if one.writes && matches!(found, Found::File { .. } | Found::Device { .. }) {
            guard::check_users(&at(&one.path), Intent::WRITE, allow).map_err(|error| error.to_string())?;
        }
        if let Found::File { found, .. } = found
            && one.writes
            && guard::is_of_kernel(found)
        {
            return Err(format!(
                "{shown} is one of the kernel's own files: a write would change a setting; name a file on a disk"
            ));
        }
        let Found::File { found, is_ours: false } = found else { continue };
        if one.removes {
            return Err(format!(
                "fio would remove {shown}, which was there before the run: remove the file yourself, remove `unlink` from the job file, or add \
                 `--allow-destroy {}` to let fio do that",
                shell_word(&one.path.to_string_lossy())
            ));
        }
        if is_short(found, one) {
            return Err(format!(
                "{shown} has fewer than the {} bytes of the job file: fio would remove it and make it anew; remove the file yourself, lower `size`, \
                 or add `--allow-destroy {}` to let fio do that",
                units::count(one.length),
                shell_word(&one.path.to_string_lossy())
            ));
        }
    }
    domain.directories.keys().try_for_each(|directory| surroundings::check(directory, allow))?;
    logs::check(&files, jobs(works))?;
    Ok(domain)
}

/// How many jobs fio makes of the works of a process.
fn jobs(works: &[(&Work, &FioFile)]) -> u32 {
    works.iter().map(|(work, _)| work.load.workers).sum()
}

/// Refuses a plan of which a stage would overwrite the logs of another: fio counts the jobs of each stage from 1.
fn check_logs(plan: &Plan) -> Result<(), String> {
    let mut known: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (index, stage) in plan.stages.iter().enumerate() {
        for works in runs(&stage.works.iter().collect::<Vec<_>>()) {
            let files: Vec<&FioFile> = works.iter().map(|(_, file)| *file).collect();
            for path in logs::check(&files, jobs(&works))? {
                if let Some(other) = known.insert(path.clone(), index).filter(|other| *other != index) {
                    return Err(format!(
                        "the stages `{}` and `{}` would both write the log {}: each is a fio of its own, which numbers its jobs from 1; give \
                         their logs different names",
                        plan.stages[other].name,
                        stage.name,
                        path.display()
                    ));
                }
            }
        }
    }
    Ok(())
}

/// fio without a sandbox, where the kernel has none: somebody must have named everything that it opens.
fn unconfined<'f>(
    program: Program,
    files: &[&'f FioFile],
    allowed: &[PathBuf],
    reason: &SandboxError,
) -> Result<Program, String> {
    let named =
        |file: &'f FioFile| file.paths().chain(&file.buffers).chain(file.logs.iter().map(|log| &log.stem));
    let unnamed: Vec<String> = files
        .iter()
        .flat_map(|file| named(file))
        .filter(|path| !allowed.contains(path))
        .map(|path| format!("--allow-destroy {}", shell_word(&path.to_string_lossy())))
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
        let devices = file.files.iter().filter(|one| is_device(&one.path));
        let devices = devices.map(|one| (at(&one.path), one.writes));
        let images = file.images.iter().map(|image| (image.clone(), writes));
        for (volume, writes) in devices.chain(images).chain(file.buffers.iter().map(|path| (at(path), true)))
        {
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
        let runs = runs(stage.works);
        self.running = Running::default();
        // Much may have happened since the run was prepared.
        let domains = runs.iter().map(|works| check(works, &self.examined, &self.allow));
        let domains: Vec<Domain> = domains.collect::<Result<_, _>>()?;
        let uses = || domains.iter().flat_map(|domain| &domain.uses);
        let is_written = |(one, found): &&(Use, Found)| {
            one.writes && matches!(found, Found::Device { is_released: true, .. })
        };
        self.running = Running {
            paths: uses().map(|(one, _)| one.path.clone()).collect(),
            _devices: uses().filter(is_written).filter_map(|(one, _)| exclusively(&one.path)).collect(),
        };
        let files: Vec<&FioFile> = runs.iter().flatten().map(|(_, file)| *file).collect();
        let touched: Vec<Vec<PathBuf>> = files.iter().map(|file| file.paths().cloned().collect()).collect();
        let touches: Vec<Touch<'_>> =
            files.iter().zip(&touched).map(|(file, paths)| touch(file, paths)).collect();
        self.method = Method::begin(&crate::Fio, &touches);
        let program = Arc::new(self.program.with(Arc::new(self.examined.clone())));
        Ok(runs.iter().map(|works| Carrier::Process(works.len(), Arc::clone(&program) as _)).collect())
    }

    fn close(&mut self, remarks: &[String]) -> Option<Proof> {
        let Running { paths, .. } = std::mem::take(&mut self.running);
        self.examined.settle(paths.iter());
        self.method.take().map(|method| method.end(&crate::Fio, remarks.iter()))
    }
}

/// Keeps others from mounting a block device, where that is possible; those who write to it are not kept from it.
fn exclusively(path: &Path) -> Option<OwnedFd> {
    let is_block = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if is_block { rustix::fs::open(path, flags, Mode::empty()).ok() } else { None }
}

/// What a job touches. It declares the state of the page cache by `direct`.
fn touch<'a>(file: &'a FioFile, paths: &'a [PathBuf]) -> Touch<'a> {
    Touch {
        // Their files and devices stay whose they were.
        volumes: &file.images,
        paths,
        writes: file.actions.iter().any(|action| action.changes()),
        direct: file.direct,
        cache: if file.direct { Cache::Cold } else { Cache::Warm },
        measures: true,
    }
}

#[cfg(test)]
mod tests;
