//! Job files made ready: the devices that they name are guarded before the run, and jobs of one file share a process.

use crate::file::FioFile;
use crate::program::Program;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;
use tidemark_block::guard;
use tidemark_block::job::{Cache, Place, Volume};
use tidemark_block::method::{Method, Touch};
use tidemark_measure::record::{Note, Proof};
use tidemark_plan::engine::{Carrier, Prepared, Setup};
use tidemark_plan::plan::{Plan, Work};

/// The engine ready for one run.
struct Ready {
    program: Arc<Program>,
    method: Option<Method>,
}

/// Finds fio, and guards the devices that the plan's job files write to.
pub(crate) fn prepare(plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
    let program = Program::find().map_err(|error| error.to_string())?;
    (setup.ready)(program.description());
    let works = plan.stages.iter().flat_map(|stage| &stage.works);
    for (device, destroys) in devices(works.filter_map(|work| work.job.get())) {
        let volume = Volume { place: Place::Device(device.to_owned()), size: 0 };
        let guarded = guard::check(&volume, destroys, setup.allow_destroy);
        (setup.ready)(guarded.map_err(|error| error.to_string())?);
    }
    Ok(Box::new(Ready { program: Arc::new(program), method: None }))
}

/// The distinct devices that jobs name, and whether what they hold is lost. Files are fio's own business.
fn devices<'a>(files: impl Iterator<Item = &'a FioFile>) -> Vec<(&'a Path, bool)> {
    let mut all: Vec<(&Path, bool)> = Vec::new();
    for file in files {
        let destroys = file.actions.iter().any(|action| action.destroys());
        for path in file.paths.iter().filter(|path| is_device(path)) {
            match all.iter_mut().find(|(known, _)| known == path) {
                Some((_, known)) => *known |= destroys,
                None => all.push((path, destroys)),
            }
        }
    }
    all
}

fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

impl Prepared for Ready {
    fn open(&mut self, works: &[&Work], _notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        let files: Vec<&FioFile> = works.iter().filter_map(|work| work.job.get()).collect();
        self.method = Method::begin(&files.iter().map(|file| touch(file)).collect::<Vec<_>>());
        let runs = files.chunk_by(|one, other| one.shares_run(other));
        Ok(runs.map(|run| Carrier::Process(run.len(), Arc::clone(&self.program) as _)).collect())
    }

    fn close(&mut self, remarks: &[String]) -> Option<Proof> {
        self.method.take().map(|method| method.end(remarks.iter()))
    }
}

/// What a job touches. It declares the state of the page cache by `direct`.
fn touch(file: &FioFile) -> Touch<'_> {
    Touch {
        volumes: &[],
        paths: &file.paths,
        writes: false,
        direct: file.direct,
        cache: if file.direct { Cache::Cold } else { Cache::Warm },
        measures: true,
    }
}

#[cfg(test)]
mod tests;
