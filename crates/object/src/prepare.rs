//! Prepares targets: starts embedded servers, checks the others against what the plan expects.

use crate::conditions::{heeded, relies_on_conditions};
use crate::content::DataSet;
use crate::job::{Doomed, Embedded, Emptied, Http, Job, Place, REGION, S3, Target, Verb};
use crate::preflight::preflight;
use crate::sessions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer, Place as ServerPlace};
use tidemark_load::source::SourcePlan;
use tidemark_measure::record::Note;
use tidemark_plan::engine::{Carrier, Prepared, Setup, StageWorks};
use tidemark_plan::plan::{Plan, Work, WorkKind};
use tidemark_plan::secret::Secret;

/// Most keys whose versions are followed, to tell stale content: 24 bytes each.
const FOLLOWED_KEYS: u64 = 4_000_000;

/// The targets of a run. Embedded servers run as long as this lives.
pub(crate) struct Servers {
    running: Vec<Running>,
    scratch: PathBuf,
    data: Arc<DataSet>,
    seed: u64,
    given_up: GivenUp,
    /// Whether targets are asked anything before the load.
    asks: bool,
    /// Targets that are known to heed conditions.
    heeding: Vec<Target>,
}

/// The containers whose content the user has given up for this run, by `--allow-destroy`.
struct GivenUp {
    buckets: Vec<Doomed>,
    containers: Vec<Doomed>,
}

impl GivenUp {
    fn read(allowed: &[PathBuf]) -> Result<Self, String> {
        let of = |kind: &str| {
            let named = allowed.iter().filter_map(|one| one.to_str()?.strip_prefix(kind));
            let read = |name: &str| {
                Doomed::read(name).map_err(|wrong| {
                    format!(
                        "`--allow-destroy {kind}{name}` {wrong}: write {kind}NAME, or {kind}BEGINNING* for all \
                         whose names begin so"
                    )
                })
            };
            named.map(read).collect::<Result<_, _>>()
        };
        Ok(Self { buckets: of("s3://")?, containers: of("swift://")? })
    }

    /// Lets a job empty the containers that it deletes, if they are among these.
    fn apply(&self, job: &mut Job) {
        let doomed = match job.target {
            Target::S3(_) | Target::Embedded(_) => &self.buckets,
            Target::Swift(_) => &self.containers,
            Target::Mock(_) | Target::Nothing => return,
        };
        for action in &mut job.actions {
            if let Verb::DeleteContainer { empty: empty @ Emptied::Never } = &mut action.verb {
                *empty = Emptied::If(doomed.clone());
            }
        }
    }
}

/// An embedded server that runs as long as this lives. The directory of one that has none of its own goes with it.
pub struct Running {
    plan: Embedded,
    server: EmbeddedServer,
    _directory: Option<TempDir>,
}

impl Servers {
    /// Starts what must be started and sends every distinct target one cheap request.
    pub(crate) fn prepare(plan: &Plan, setup: &mut Setup<'_>) -> Result<Self, String> {
        let scratch = setup.scratch.unwrap_or(Path::new(".")).to_owned();
        let data = DataSet::new(plan.seed, setup.writer, followed_keys(plan), setup.access.clone());
        let given_up = GivenUp::read(setup.allow_destroy)?;
        let asks = !setup.skip_preflight;
        let (running, heeding, seed) = (Vec::new(), Vec::new(), plan.seed);
        let mut servers = Self { running, scratch, data, seed, given_up, asks, heeding };
        // A plan that makes containers may begin without them; any other needs them to be there.
        let makes_containers = works(plan).any(|(work, _)| work.kind == WorkKind::Init);
        let mut asked: Vec<&Target> = Vec::new();
        for (work, job) in works(plan) {
            if asked.contains(&&job.target) {
                continue;
            }
            asked.push(&job.target);
            let resolved = servers.resolve(job)?;
            let container = (!makes_containers).then(|| first_container(&work.load.source)).flatten();
            let told = match setup.skip_preflight {
                true => String::new(),
                false => preflight(&resolved, container).map_err(|error| error.to_string())?,
            };
            (setup.ready)([describe(&job.target), told].join(" ").trim().to_owned());
        }
        // Where containers are yet to be made, that is asked when a work begins.
        for (work, job) in works(plan).filter(|(_, job)| !makes_containers && relies_on_conditions(job)) {
            let resolved = servers.resolve(job)?;
            servers.check_conditions(work, &resolved)?;
        }
        Ok(servers)
    }

    /// The job with an embedded target replaced by the address of the server that runs for it, and with a key if it needs one.
    fn resolve(&mut self, job: &Job) -> Result<Job, String> {
        let embedded = match &job.target {
            Target::Embedded(embedded) => embedded,
            Target::S3(s3) => {
                let target = Target::S3(s3.clone().with_key(self.seed));
                return Ok(Job { target, actions: job.actions.clone() });
            }
            _ => return Ok(job.clone()),
        };
        let known = self.running.iter().position(|running| running.plan == *embedded);
        let index = match known {
            Some(index) => index,
            None => {
                self.running.push(Running::start(embedded, &self.scratch)?);
                self.running.len() - 1
            }
        };
        Ok(Job { target: Target::S3(self.running[index].target()), actions: job.actions.clone() })
    }

    /// Makes sure that the target of a work that writes on conditions does not ignore them, as far as that can be seen.
    fn check_conditions(&mut self, work: &Work, job: &Job) -> Result<(), String> {
        let container = first_container(&work.load.source).filter(|_| self.asks && relies_on_conditions(job));
        let Some(container) = container.filter(|_| !self.heeding.contains(&job.target)) else {
            return Ok(());
        };
        if heeded(job, container).map_err(|error| error.to_string())? {
            self.heeding.push(job.target.clone());
        }
        Ok(())
    }

    fn sessions(&mut self, work: &Work) -> Result<Carrier, String> {
        let job = Job::of(work).ok_or("its job is not one on objects")?;
        let mut job = self.resolve(job)?;
        self.given_up.apply(&mut job);
        self.check_conditions(work, &job)?;
        sessions::open(&job, &self.data).map(Carrier::Sessions).map_err(|error| error.to_string())
    }
}

impl Prepared for Servers {
    fn open(&mut self, stage: StageWorks<'_>, _notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        let works = stage.works;
        let open =
            |work: &&Work| self.sessions(work).map_err(|error| format!("work `{}`: {error}", work.name));
        works.iter().map(open).collect()
    }
}

impl Running {
    /// Starts an embedded server; one that has no directory of its own gets one in `scratch`.
    ///
    /// # Errors
    /// One sentence that says why it cannot run here.
    pub fn start(plan: &Embedded, scratch: &Path) -> Result<Self, String> {
        let (place, directory) = match &plan.place {
            Place::Memory => (ServerPlace::Memory, None),
            Place::Disk(Some(path)) => {
                (ServerPlace::Directory { path: path.clone(), durable: plan.durable }, None)
            }
            Place::Disk(None) => {
                let made = std::fs::create_dir_all(scratch)
                    .and_then(|()| tempfile::Builder::new().prefix("tidemark-objects-").tempdir_in(scratch));
                let directory = made.map_err(|error| {
                    format!(
                        "cannot create a directory for the embedded server in {}: {error}",
                        scratch.display()
                    )
                })?;
                let path = directory.path().to_owned();
                (ServerPlace::Directory { path, durable: plan.durable }, Some(directory))
            }
        };
        let options = EmbeddedOptions { place, ..EmbeddedOptions::default() };
        let server = EmbeddedServer::start(options).map_err(|error| error.to_string())?;
        if plan.limit.is_some() {
            server.faults().limit_rate(plan.limit);
        }
        Ok(Self { plan: plan.clone(), server, _directory: directory })
    }

    /// Which server it is.
    pub fn plan(&self) -> &Embedded {
        &self.plan
    }

    /// How it is reached.
    pub fn target(&self) -> S3 {
        let server = &self.server;
        S3 {
            http: Http { endpoints: vec![server.endpoint()], ..Http::default() },
            access_key: server.access_key().into(),
            secret_key: Secret::new(server.secret_key()),
            session_token: None,
            region: REGION.into(),
            path_style: true,
            sign_payload: false,
            storage_class: None,
            encryption: None,
        }
    }
}

/// The works on objects.
fn works(plan: &Plan) -> impl Iterator<Item = (&Work, &Job)> {
    let works = plan.stages.iter().flat_map(|stage| &stage.works);
    works.filter_map(|work| Some((work, Job::of(work)?)))
}

/// The lowest container that a work uses.
fn first_container(source: &SourcePlan) -> Option<u64> {
    match source {
        SourcePlan::Mix { choices, .. } => choices.iter().map(|choice| choice.spaces.bounds().0).min(),
        SourcePlan::Scan { spaces, .. } => spaces.map(|(low, _)| low),
        SourcePlan::Rounds { .. } => None,
    }
}

/// How many keys to follow: none when no read of the plan verifies.
fn followed_keys(plan: &Plan) -> usize {
    let verifies = works(plan).any(|(_, job)| job.actions.iter().any(|action| action.content.verify));
    let operations = works(plan).filter_map(|(work, _)| work.load.source.operations());
    let keys = operations.fold(0, u64::saturating_add);
    if verifies { keys.saturating_mul(2).clamp(1 << 16, FOLLOWED_KEYS) as usize } else { 0 }
}

/// A target in a few words.
pub(crate) fn describe(target: &Target) -> String {
    match target {
        Target::S3(s3) => {
            let encryption = s3.encryption.as_ref().map(|encryption| format!(" with {}", encryption.name()));
            format!("S3 at {}{}", s3.http.endpoints.join(", "), encryption.unwrap_or_default())
        }
        Target::Swift(swift) => format!("Swift at {}", swift.auth.address()),
        Target::Mock(_) => "COSBench's mock storage".into(),
        Target::Nothing => "no storage (`none`)".into(),
        Target::Embedded(_) => "the S3 server inside Tidemark".into(),
    }
}
