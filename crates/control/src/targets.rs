//! Targets made ready: embedded servers started, volumes guarded, the others checked against what the plan
//! expects, engines created.

use crate::event::{Event, EventSink};
use crate::execute::{ExecuteError, Options};
use crate::images::Images;
use crate::runner::Runner;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tidemark_block::engine::{DataSet as Blocks, Use};
use tidemark_block::guard;
use tidemark_fio::{Fio, rbd};
use tidemark_layout::embedded::{EmbeddedOptions, EmbeddedServer, Place as ServerPlace};
use tidemark_load::source::SourcePlan;
use tidemark_object::content::DataSet;
use tidemark_object::preflight::preflight;
use tidemark_plan::block::{self, Action, IoEngine, Volume};
use tidemark_plan::object::{Embedded, Http, Job, Place, S3, Target};
use tidemark_plan::plan::{self, Plan, Stage, WorkKind};
use tidemark_plan::secret::Secret;

/// Most keys whose versions are followed, to tell stale content: 24 bytes each.
const FOLLOWED_KEYS: u64 = 4_000_000;

/// The targets of a plan. Embedded servers run as long as this lives.
pub(crate) struct Targets {
    servers: Vec<Server>,
    scratch: Option<PathBuf>,
    data: Arc<DataSet>,
    blocks: Arc<Blocks>,
    fio: Option<Arc<Fio>>,
    descriptions: Vec<String>,
}

/// An embedded server. The directory of one that has none of its own goes with it.
struct Server {
    plan: Embedded,
    running: EmbeddedServer,
    _directory: Option<TempDir>,
}

impl Targets {
    /// Starts what must be started and sends every distinct target one cheap request.
    pub(crate) fn prepare(
        plan: &Plan,
        options: &Options,
        sink: &mut dyn EventSink,
    ) -> Result<Self, ExecuteError> {
        let data =
            DataSet::new(plan.seed, options.writer.unwrap_or_else(std::process::id), followed_keys(plan));
        let verifies = blocks_of(plan).any(|(_, job)| job.content.verify);
        let blocks = Arc::new(Blocks::new(plan.seed, verifies));
        let (servers, descriptions, scratch) = (Vec::new(), Vec::new(), options.scratch.clone());
        let mut targets = Self { servers, scratch, data, blocks, fio: None, descriptions };
        targets.prepare_volumes(plan, &options.allow_destroy, sink).map_err(ExecuteError)?;
        let mut asked: Vec<Target> = Vec::new();
        let makes_containers =
            plan.stages.iter().flat_map(|stage| &stage.works).any(|w| w.kind == WorkKind::Init);
        for work in plan.stages.iter().flat_map(|stage| &stage.works) {
            let Some(job) = work.engine.object() else { continue };
            if asked.contains(&job.target) {
                continue;
            }
            asked.push(job.target.clone());
            let is_embedded = matches!(job.target, Target::Embedded(_));
            let job = targets.resolve(job).map_err(ExecuteError)?;
            // A plan that makes containers may begin without them; any other needs them to be there.
            let container = (!makes_containers).then(|| first_container(&work.load.source)).flatten();
            let told = match options.skip_preflight {
                true => String::new(),
                false => preflight(&job, container).map_err(|error| ExecuteError(error.to_string()))?,
            };
            let description = [describe(&job.target, is_embedded), told].join(" ").trim().to_owned();
            sink.event(Event::Target(&description));
            targets.descriptions.push(description);
        }
        Ok(targets)
    }

    /// One line per distinct target.
    pub(crate) fn descriptions(&self) -> Vec<String> {
        self.descriptions.clone()
    }

    /// Guards the volumes that the plan writes to, and finds fio where it is needed.
    fn prepare_volumes(
        &mut self,
        plan: &Plan,
        allowed: &[PathBuf],
        sink: &mut dyn EventSink,
    ) -> Result<(), String> {
        let mut tell = |description: String, to: &mut Vec<String>| {
            sink.event(Event::Target(&description));
            to.push(description);
        };
        if needs_fio(plan) {
            let fio = Arc::new(Fio::find().map_err(|error| error.to_string())?);
            tell(format!("fio {} at {}", fio.version(), fio.path().display()), &mut self.descriptions);
            self.fio = Some(fio);
        }
        let mut images = Vec::new();
        for (volume, writes) in volumes(plan) {
            if let block::Place::Rbd(_) = volume.place {
                images.push(volume.name());
                continue;
            }
            let description = guard::check(&volume, writes, allowed).map_err(|error| error.to_string())?;
            tell(description, &mut self.descriptions);
        }
        match images.as_slice() {
            [] => {}
            [only] => tell(format!("RBD image {only}, through fio"), &mut self.descriptions),
            [first, .., last] => {
                let text = format!("{} RBD images, {first} to {last}, through fio", images.len());
                tell(text, &mut self.descriptions);
            }
        }
        Ok(())
    }

    /// What the native block engine could not do as requested.
    pub(crate) fn block_notes(&self) -> Vec<String> {
        self.blocks.notes()
    }

    /// What runs a stage's works; errors name the work.
    pub(crate) fn runners<'a>(&mut self, stage: &'a Stage) -> Result<Vec<Runner<'a>>, String> {
        let mut runners: Vec<Runner<'a>> = Vec::new();
        for work in &stage.works {
            let in_work = |error: String| format!("work `{}`: {error}", work.name);
            if let (plan::Engine::Fio(file), Some(Runner::Fio(works, _))) = (&work.engine, runners.last_mut())
                && works.iter().all(|other| match &other.engine {
                    plan::Engine::Fio(other) => other.text == file.text && other.sections == file.sections,
                    _ => false,
                })
            {
                works.push(work);
                continue;
            }
            runners.push(self.runner(work).map_err(in_work)?);
        }
        Ok(runners)
    }

    fn runner<'a>(&mut self, work: &'a plan::Work) -> Result<Runner<'a>, String> {
        let fio = || self.fio.clone().ok_or_else(|| "fio was not located".to_owned());
        match &work.engine {
            plan::Engine::Object(job) => {
                let job = self.resolve(job)?;
                let engine =
                    tidemark_object::engine::engine(&job, &self.data).map_err(|error| error.to_string())?;
                Ok(Runner::Threads(work, engine))
            }
            plan::Engine::Fio(_) => Ok(Runner::Fio(vec![work], fio()?)),
            // fio does not remove files: that is done natively.
            plan::Engine::Block(job) if job.io_engine == IoEngine::Native || removes_files(job) => {
                let purpose = if work.kind == WorkKind::Prepare { Use::Fill } else { Use::Load };
                if purpose == Use::Fill {
                    job.volumes.iter().try_for_each(tidemark_block::claim)?;
                }
                let engine = tidemark_block::engine::engine(job, &self.blocks, purpose)
                    .map_err(|error| error.to_string())?;
                Ok(Runner::Threads(work, engine))
            }
            plan::Engine::Block(job) if job.actions == [Action::Remove] => {
                Ok(Runner::Threads(work, Box::new(Images(job.volumes.clone()))))
            }
            plan::Engine::Block(job) => {
                if work.kind == WorkKind::Prepare {
                    for volume in &job.volumes {
                        match &volume.place {
                            block::Place::Rbd(_) => {
                                rbd::ensure(volume).map_err(|error| error.to_string())?;
                            }
                            _ => tidemark_block::claim(volume)?,
                        }
                    }
                }
                Ok(Runner::Fio(vec![work], fio()?))
            }
        }
    }

    /// The job with an embedded target replaced by the address of the server that runs for it.
    fn resolve(&mut self, job: &Job) -> Result<Job, String> {
        let Target::Embedded(embedded) = &job.target else { return Ok(job.clone()) };
        let known = self.servers.iter().position(|server| server.plan == *embedded);
        let server = match known {
            Some(index) => &self.servers[index].running,
            None => {
                let server = self.start(embedded)?;
                self.servers.push(server);
                &self.servers[self.servers.len() - 1].running
            }
        };
        let target = Target::S3(S3 {
            http: Http { endpoints: vec![server.endpoint()], ..Http::default() },
            access_key: server.access_key().to_owned(),
            secret_key: Secret::new(server.secret_key()),
            session_token: None,
            region: "us-east-1".into(),
            path_style: true,
            sign_payload: false,
            storage_class: None,
        });
        Ok(Job { target, actions: job.actions.clone() })
    }

    /// Starts an embedded server.
    fn start(&self, plan: &Embedded) -> Result<Server, String> {
        let (place, directory) = match &plan.place {
            Place::Memory => (ServerPlace::Memory, None),
            Place::Disk(Some(path)) => {
                (ServerPlace::Directory { path: path.clone(), durable: plan.durable }, None)
            }
            Place::Disk(None) => {
                let beside = self.scratch.clone().unwrap_or_else(|| PathBuf::from("."));
                let made = std::fs::create_dir_all(&beside)
                    .and_then(|()| tempfile::Builder::new().prefix("tidemark-objects-").tempdir_in(&beside));
                let directory = made.map_err(|error| {
                    format!(
                        "cannot create a directory for the embedded server in {}: {error}",
                        beside.display()
                    )
                })?;
                let path = directory.path().to_owned();
                (ServerPlace::Directory { path, durable: plan.durable }, Some(directory))
            }
        };
        let options = EmbeddedOptions { place, ..EmbeddedOptions::default() };
        let running = EmbeddedServer::start(options).map_err(|error| error.to_string())?;
        if plan.limit.is_some() {
            running.faults().limit_rate(plan.limit);
        }
        Ok(Server { plan: plan.clone(), running, _directory: directory })
    }
}

fn works(plan: &Plan) -> impl Iterator<Item = &plan::Work> {
    plan.stages.iter().flat_map(|stage| &stage.works)
}

fn blocks_of(plan: &Plan) -> impl Iterator<Item = (&plan::Work, &block::Job)> {
    works(plan).filter_map(|work| work.engine.block().map(|job| (work, job)))
}

fn needs_fio(plan: &Plan) -> bool {
    works(plan).any(|work| match &work.engine {
        plan::Engine::Fio(_) => true,
        plan::Engine::Block(job) => job.io_engine == IoEngine::Fio && job.actions != [Action::Remove],
        plan::Engine::Object(_) => false,
    })
}

fn removes_files(job: &block::Job) -> bool {
    let on_files = job.volumes.iter().all(|volume| !matches!(volume.place, block::Place::Rbd(_)));
    job.actions == [Action::Remove] && on_files
}

/// The distinct volumes of a plan, and whether it writes to them. Of what a fio job file names, the devices: files
/// are fio's own business.
fn volumes(plan: &Plan) -> Vec<(Volume, bool)> {
    let mut all: Vec<(Volume, bool)> = Vec::new();
    let mut add = |volume: Volume, writes: bool| match all.iter_mut().find(|(known, _)| *known == volume) {
        Some((_, known)) => *known |= writes,
        None => all.push((volume, writes)),
    };
    for work in works(plan) {
        let writes = |actions: &[Action]| {
            actions.iter().any(|action| matches!(action, Action::Write | Action::Trim | Action::Remove))
        };
        match &work.engine {
            plan::Engine::Object(_) => {}
            plan::Engine::Block(job) => {
                job.volumes.iter().for_each(|volume| add(volume.clone(), writes(&job.actions)));
            }
            plan::Engine::Fio(file) => {
                for path in file.paths.iter().filter(|path| is_device(path)) {
                    let place = block::Place::Device(path.clone());
                    add(Volume { place, size: 0 }, writes(&file.actions));
                }
            }
        }
    }
    all
}

fn is_device(path: &std::path::Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// The lowest container that a work uses.
fn first_container(source: &SourcePlan) -> Option<u64> {
    match source {
        SourcePlan::Mix { choices, .. } => choices.iter().map(|choice| choice.spaces.bounds().0).min(),
        SourcePlan::Scan { spaces, .. } => spaces.map(|(low, _)| low),
    }
}

/// How many keys to follow: none when no read of the plan verifies.
fn followed_keys(plan: &Plan) -> usize {
    let works = || plan.stages.iter().flat_map(|stage| &stage.works);
    let verifies = works().any(|work| {
        work.engine.object().is_some_and(|job| job.actions.iter().any(|action| action.content.verify))
    });
    let keys = works().filter_map(|work| work.load.source.operations()).sum::<u64>();
    if verifies { keys.saturating_mul(2).clamp(1 << 16, FOLLOWED_KEYS) as usize } else { 0 }
}

fn describe(target: &Target, is_embedded: bool) -> String {
    match target {
        Target::S3(_) if is_embedded => "the S3 server inside Tidemark".into(),
        Target::S3(s3) => format!("S3 at {}", s3.http.endpoints.join(", ")),
        Target::Swift(swift) => format!("Swift at {}", swift_address(swift)),
        Target::Mock(_) => "COSBench's mock storage".into(),
        Target::Nothing => "no storage (`none`)".into(),
        Target::Embedded(_) => "the S3 server inside Tidemark".into(),
    }
}

fn swift_address(swift: &tidemark_plan::object::Swift) -> &str {
    use tidemark_plan::object::SwiftAuth;
    match &swift.auth {
        SwiftAuth::Token { storage_url, .. } => storage_url,
        SwiftAuth::TempAuth { url, .. }
        | SwiftAuth::KeystoneV2 { url, .. }
        | SwiftAuth::KeystoneV3 { url, .. } => url,
    }
}
