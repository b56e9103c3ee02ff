//! The engine, as everybody else sees it.

use crate::file::FioFile;
use crate::images::Images;
use crate::program::Program;
use crate::{osds, policy, prepare, rbd};
use std::path::PathBuf;
use std::sync::Arc;
use tidemark_block::job::Volume;
use tidemark_block::{External, Image, OsdCounters, guard};
use tidemark_keys::tree::Node;
use tidemark_keys::{Mapping, Problem, Table};
use tidemark_load::engine::{OpenError, Sessions};
use tidemark_load::thread_pool::{Result as Outcome, Watch};
use tidemark_plan::engine::{Engine, Placement, Prepared, Process, ReadWork, Setup, Target, WorkPlace};
use tidemark_plan::forecast::{Action, Forecaster, Remarks};
use tidemark_plan::job::Job;
use tidemark_plan::plan::{Plan, Stage, Work};
use tidemark_plan::policy::Policy;
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::environment::Environment;
use tidemark_plan::yaml::scope::Scope;
use tidemark_sandbox::Sandbox;

/// The engine's name.
pub const NAME: &str = "fio";

/// The user's fio: runs job files as they stand, and jobs on volumes for the block engine.
///
/// Its jobs come from job files only, so it has nothing to read in Tidemark YAML.
pub struct Fio;

impl Engine for Fio {
    fn name(&self) -> &'static str {
        NAME
    }

    fn subject(&self) -> &'static str {
        "files"
    }

    fn targets(&self) -> Vec<&'static Mapping> {
        Vec::new()
    }

    fn work_keys(&self) -> Vec<&'static Mapping> {
        Vec::new()
    }

    fn target(&self, _kind: &str, _table: &mut Table<'_>, _environment: &Environment<'_>) -> Option<Target> {
        None
    }

    fn bare_target(&self, kind: &str) -> Result<Target, Problem> {
        Err(Problem::new(format!("fio has no target '{kind}'"), "give the run a fio job file"))
    }

    fn claims(&self, _keyword: &str, _node: &Node) -> bool {
        false
    }

    fn works(
        &self,
        _place: WorkPlace,
        _table: Table<'_>,
        _target: &Target,
        _scope: &Scope<'_>,
        _context: &Context<'_>,
    ) -> Vec<ReadWork> {
        Vec::new()
    }

    fn unpack(&self, data: &serde_json::Value) -> Result<Job, serde_json::Error> {
        serde::Deserialize::deserialize(data).map(|file: FioFile| Job::new(file))
    }

    fn forecast(&self) -> Box<dyn Forecaster> {
        Box::new(Unknown)
    }

    fn check_policy(&self, policy: &Policy, who: &str, work: &Work) -> Result<(), String> {
        work.job.get::<FioFile>().map_or(Ok(()), |file| policy::check(policy, who, file))
    }

    fn rehearse(&self, plan: &Plan) -> Result<(), String> {
        let works = plan.stages.iter().flat_map(|stage| &stage.works);
        let files: Vec<&FioFile> = works.filter_map(|work| work.job.get()).collect();
        match Program::find() {
            Ok(program) => {
                files.chunk_by(|one, other| one.text == other.text).try_for_each(|same| agree(&program, same))
            }
            Err(_) => Ok(()),
        }
    }

    fn placement(&self, _work: &Work) -> Placement {
        Placement::OneMachine("Files of fio job files are")
    }

    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
        prepare::prepare(plan, setup)
    }
}

/// Refuses jobs of one file where fio names a file or device that its reader has not seen, and so no guard would look at.
fn agree(program: &Program, jobs: &[&FioFile]) -> Result<(), String> {
    let Some(first) = jobs.first() else { return Ok(()) };
    let own: Vec<&PathBuf> = jobs.iter().flat_map(|job| job.paths()).collect();
    let named = program.parse(&first.text)?;
    let is_known =
        |path: &&PathBuf| own.contains(path) || jobs.iter().any(|job| job.elsewhere.contains(path));
    let Some(unseen) = named.iter().find(|path| !is_known(path)) else { return Ok(()) };
    let own: Vec<String> = own.iter().map(|path| path.display().to_string()).collect();
    Err(format!(
        "fio would open {}, and Tidemark reads {} from the job file: write the name out with one `filename=` in the job's own section, without \
         `directory=`",
        unseen.display(),
        if own.is_empty() { "no file".to_owned() } else { own.join(", ") }
    ))
}

/// What job files do to what is stored is fio's business.
struct Unknown;

impl Forecaster for Unknown {
    fn stage(&mut self, _stage: &Stage, works: &[&Work], _remarks: &mut Remarks) -> Vec<Vec<Action>> {
        works.iter().map(|_| Vec::new()).collect()
    }

    fn until(&self, work: &Work) -> Option<String> {
        work.job.get::<FioFile>().map(|file| format!("fio has gone through the files of `{}`", file.section))
    }
}

impl External for Fio {
    fn find(&self) -> Result<tidemark_block::Program, String> {
        let program = Program::find().map_err(|error| error.to_string())?;
        // Its job files are our own: where the kernel has no sandbox, they name nothing else either.
        let program = if Sandbox::is_supported().is_ok() { program } else { program.unconfined() };
        Ok(tidemark_block::Program {
            description: program.description(),
            process: Box::new(move |devices| Arc::new(program.on(&devices))),
        })
    }

    fn find_image(&self, image: &Volume) -> Result<Image, String> {
        rbd::find(image).map_err(|error| error.to_string())
    }

    fn ensure_image(&self, image: &Volume) -> Result<(), String> {
        rbd::ensure(image).map(drop).map_err(|error| error.to_string())
    }

    fn mark_image(&self, image: &Volume) -> Result<(), String> {
        rbd::mark(image).map_err(|error| {
            format!(
                "The RBD image {} could not be marked as Tidemark's, so the next run will not overwrite it unasked: {error}",
                image.name()
            )
        })
    }

    fn osd_counters(&self, images: &[Volume]) -> Result<OsdCounters, String> {
        osds::counters(images).map_err(|error| error.to_string())
    }

    fn removal(&self, images: &[Volume], allow: &[PathBuf]) -> Box<dyn Sessions> {
        let images = images.iter().map(|image| (image.clone(), guard::is_allowed(image, allow)));
        Box::new(Images(images.collect()))
    }
}

impl Process for Program {
    fn run(&self, works: &[&Work], watches: &mut [&mut dyn Watch]) -> Vec<Result<Outcome, OpenError>> {
        match crate::run(self, works, watches) {
            Ok(results) => results.into_iter().map(Ok).collect(),
            Err(error) => works.iter().map(|_| Err(OpenError(error.to_string()))).collect(),
        }
    }
}
