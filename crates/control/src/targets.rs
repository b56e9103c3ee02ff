//! Targets made ready: embedded servers started, the others asked whether they are what the plan takes them
//! for, engines made.

use crate::audience::{Audience, Event};
use crate::execute::ExecuteError;
use std::sync::Arc;
use tidemark_layout::embedded::{EmbeddedOptions, EmbeddedServer, Place as ServerPlace};
use tidemark_load::engine::{Engine, OpenError};
use tidemark_load::source::SourcePlan;
use tidemark_object::content::DataSet;
use tidemark_object::preflight::preflight;
use tidemark_plan::object::{Http, Job, Place, S3, Target};
use tidemark_plan::plan::{self, Plan, WorkKind};
use tidemark_plan::secret::Secret;

/// Most keys whose versions are followed, to tell stale content: 24 bytes each.
const FOLLOWED_KEYS: u64 = 4_000_000;

/// The targets of a plan. Embedded servers run as long as this lives.
pub(crate) struct Targets {
    servers: Vec<(Place, EmbeddedServer)>,
    data: Arc<DataSet>,
    descriptions: Vec<String>,
}

impl Targets {
    /// Starts what must be started and asks every distinct target one cheap question.
    pub(crate) fn prepare(
        plan: &Plan,
        skip_preflight: bool,
        audience: &mut dyn Audience,
    ) -> Result<Self, ExecuteError> {
        let data = DataSet::new(plan.seed, std::process::id(), followed_keys(plan));
        let mut targets = Self { servers: Vec::new(), data, descriptions: Vec::new() };
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
            let told = match skip_preflight {
                true => String::new(),
                false => preflight(&job, container).map_err(|error| ExecuteError(error.to_string()))?,
            };
            let description = [describe(&job.target, is_embedded), told].join(" ").trim().to_owned();
            audience.event(Event::Target(&description));
            targets.descriptions.push(description);
        }
        Ok(targets)
    }

    /// One line per distinct target.
    pub(crate) fn descriptions(&self) -> Vec<String> {
        self.descriptions.clone()
    }

    /// The engine of a work.
    pub(crate) fn engine(&mut self, engine: &plan::Engine) -> Result<Box<dyn Engine>, OpenError> {
        match engine {
            plan::Engine::Object(job) => {
                let job = self.resolve(job).map_err(OpenError)?;
                tidemark_object::engine::engine(&job, &self.data)
            }
            plan::Engine::Block(_) | plan::Engine::Fio(_) => Err(OpenError("not built yet".into())),
        }
    }

    /// The job with an embedded target replaced by the address of the server that runs for it.
    fn resolve(&mut self, job: &Job) -> Result<Job, String> {
        let Target::Embedded(embedded) = &job.target else { return Ok(job.clone()) };
        let server = match self.servers.iter().position(|(place, _)| *place == embedded.place) {
            Some(index) => &self.servers[index].1,
            None => {
                let place = match &embedded.place {
                    Place::Memory => ServerPlace::Memory,
                    Place::Disk(Some(path)) => ServerPlace::Directory { path: path.clone(), durable: false },
                    Place::Disk(None) => {
                        return Err("the embedded server needs a directory to keep objects in on disk".into());
                    }
                };
                let options = EmbeddedOptions { place, ..EmbeddedOptions::default() };
                let server = EmbeddedServer::start(options).map_err(|error| error.to_string())?;
                self.servers.push((embedded.place.clone(), server));
                &self.servers[self.servers.len() - 1].1
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
