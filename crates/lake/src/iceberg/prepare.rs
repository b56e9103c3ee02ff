//! Tables made ready: made, guarded, removed; and what was committed put on record.

use crate::iceberg::commit::unique;
use crate::iceberg::conditions;
use crate::iceberg::cycles::Runner;
use crate::iceberg::files::{Files, Version, is_lost};
use crate::iceberg::history;
use crate::iceberg::load::{Books, Committers};
use crate::iceberg::metadata;
use crate::tables::failure::Failure;
use crate::tables::storage;
use crate::tables::tasks::TaskSessions;
use futures_util::stream::StreamExt as _;
use std::path::Path;
use std::sync::Arc;
use tidemark_iceberg::commits::{CommitsUse, Condition};
use tidemark_iceberg::cycles::CyclesUse;
use tidemark_iceberg::job::{Cycles, Job, Purpose};
use tidemark_judge::evidence;
use tidemark_load::work::Share;
use tidemark_measure::record::{Note, Proof};
use tidemark_measure::units;
use tidemark_object::targets::Running;
use tidemark_plan::engine::{Carrier, Executor, Prepared, Setup, StageWorks};
use tidemark_plan::plan::{Plan, Work};
use tokio::runtime::Runtime;

/// Commits to Iceberg tables.
#[derive(Clone, Copy, Debug)]
pub struct Changing;

impl Executor for Changing {
    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
        Ok(Box::new(Ready::prepare(plan, setup)?))
    }
}

/// The engine ready for one run.
pub(crate) struct Ready {
    running: Vec<Running>,
    stage: Vec<Load>,
    runtime: Option<Arc<Runtime>>,
    /// Whether targets are asked before a load.
    asks: bool,
}

/// A load of the stage that is open.
struct Load {
    used: CommitsUse,
    files: Arc<Files>,
    books: Arc<Books>,
    /// What carries out its cycles, if it has any.
    runner: Option<(Cycles, Arc<Runner>)>,
    /// The version that it began with.
    from: Arc<Version>,
    /// What it runs on.
    runtime: Arc<Runtime>,
}

impl Ready {
    /// Starts what must be started, and opens all storage once.
    pub(crate) fn prepare(plan: &Plan, setup: &mut Setup<'_>) -> Result<Self, String> {
        let mut ready =
            Self { running: Vec::new(), stage: Vec::new(), runtime: None, asks: !setup.skip_preflight };
        let mut told: Vec<String> = Vec::new();
        for job in plan.stages.iter().flat_map(|stage| &stage.works).filter_map(Job::of) {
            if let Some(embedded) = job.target.storage.embedded()
                && !ready.running.iter().any(|running| running.plan() == embedded)
            {
                ready.running.push(Running::start(embedded, setup.scratch.unwrap_or(Path::new(".")))?);
            }
            let description = job.target.storage.describe();
            if !told.contains(&description) {
                storage::open(&job.target.storage, job.target.connections, &ready.running)?;
                (setup.ready)(format!("Iceberg tables, {description}"));
                told.push(description);
            }
        }
        Ok(ready)
    }

    fn runtime(&mut self, threads: Option<u32>) -> Result<Arc<Runtime>, String> {
        if let Some(runtime) = &self.runtime {
            return Ok(Arc::clone(runtime));
        }
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.enable_all().thread_name("commits");
        if let Some(threads) = threads {
            builder.worker_threads(threads as usize);
        }
        let runtime =
            Arc::new(builder.build().map_err(|error| format!("cannot start threads for commits: {error}"))?);
        self.runtime = Some(Arc::clone(&runtime));
        Ok(runtime)
    }

    fn carrier(&mut self, work: &Work) -> Result<Carrier, String> {
        let job = Job::of(work).ok_or("its job is not one on Iceberg tables")?;
        let opened = storage::open(&job.target.storage, job.target.connections, &self.running)?;
        let runtime = self.runtime(job.target.threads)?;
        let root = opened.root.clone().join(job.table.as_str());
        let location = job.target.location(root.as_ref());
        let files = Arc::new(Files::new(Arc::clone(&opened.store), root, location));
        let told = |failure: Failure| format!("{}: {failure}", job.target.storage.describe());
        match &job.purpose {
            Purpose::Make { fresh } => {
                runtime.block_on(opened.create_bucket()).map_err(told)?;
                runtime
                    .block_on(make(&files, &job.table, *fresh))
                    .map(Carrier::Done)
                    .map_err(|fault| fault.told(told))
            }
            Purpose::Remove => runtime
                .block_on(remove(&files, &job.table))
                .map(Carrier::Done)
                .map_err(|fault| fault.told(told)),
            Purpose::Commit(commits) => {
                let ready = ready(&files, &job.table, commits.checked, self.asks);
                let (from, condition) = runtime.block_on(ready).map_err(|fault| fault.told(told))?;
                let load = Load::new(work, job, &files, from, condition, &runtime);
                let count = work.load.slots(Share::whole(&work.load)).1;
                let (files, books) = (Arc::clone(&load.files), Arc::clone(&load.books));
                let committers = Committers::new(files, commits, count, &load.from, books);
                let sessions = TaskSessions::new(Arc::new(committers), runtime, opened.client());
                self.stage.push(load);
                Ok(Carrier::Sessions(Box::new(sessions)))
            }
            Purpose::Cycle(cycles) => {
                let ready = ready(&files, &job.table, cycles.checked, self.asks);
                let (from, condition) = runtime.block_on(ready).map_err(|fault| fault.told(told))?;
                if from.metadata.current_snapshot().is_some() {
                    return Err(format!(
                        "the table {} has rows already, and cycles begin with an empty one: make it anew with `prepare: {{table: {}, \
                         fresh: true}}`, or choose another name",
                        files.location(),
                        job.table
                    ));
                }
                let mut load = Load::new(work, job, &files, from, condition, &runtime);
                let (files, books) = (Arc::clone(&load.files), Arc::clone(&load.books));
                let runner = Runner::new(files, cycles, books, &load.from, opened.is_remote());
                let runner = Arc::new(runner.map_err(told)?);
                load.runner = Some((cycles.clone(), Arc::clone(&runner)));
                self.stage.push(load);
                Ok(Carrier::Sessions(Box::new(TaskSessions::new(runner, runtime, opened.client()))))
            }
        }
    }
}

/// Why a table cannot be used.
enum Unusable {
    /// Storage failed.
    Failed(Failure),
    /// What is there, or is not, and what to do.
    Refused(String),
}

impl Unusable {
    fn told(self, failed: impl FnOnce(Failure) -> String) -> String {
        match self {
            Unusable::Failed(failure) => failed(failure),
            Unusable::Refused(words) => words,
        }
    }
}

impl From<Failure> for Unusable {
    fn from(failure: Failure) -> Self {
        Unusable::Failed(failure)
    }
}

/// The table as it is, if it is there and ours.
async fn find(files: &Files, table: &str) -> Result<Option<Arc<Version>>, Unusable> {
    if let Some(found) = files.newest(None).await? {
        if metadata::is_ours(&found.metadata) && found.metadata.location() == files.location() {
            return Ok(Some(found));
        }
        let words = format!(
            "{} is a table that Tidemark did not make, or of another version of it: choose another name than `{table}`, or move it away",
            files.location()
        );
        return Err(Unusable::Refused(words));
    }
    match files.list(None).next().await.transpose()? {
        None => Ok(None),
        Some(stranger) => Err(Unusable::Refused(format!(
            "there are files that Tidemark did not write, where the table {table} belongs: {}; choose another name, or move them \
             away",
            stranger.location
        ))),
    }
}

/// Makes a table, unless it is there. Gives what was done.
async fn make(files: &Files, table: &str, fresh: bool) -> Result<String, Unusable> {
    let mut done = format!("the table {table} is made");
    match find(files, table).await? {
        Some(found) if !fresh => {
            let rows = found.metadata.current_snapshot().map_or(0, |snapshot| metadata::total(snapshot).rows);
            return Ok(format!(
                "the table {table} is there, in version {} with {} rows",
                found.number,
                units::count(rows)
            ));
        }
        Some(found) => done = format!("{done} anew, after the removal of {}", clear(files, &found).await?),
        None => {}
    }
    let metadata = metadata::first(files.location())?;
    match files.write_version(&Version { number: 1, metadata }).await {
        // Somebody else has made it meanwhile: it is there.
        Err(failure) if is_lost(&failure) => {}
        written => written?,
    }
    files.write_hint(1).await?;
    Ok(done)
}

async fn remove(files: &Files, table: &str) -> Result<String, Unusable> {
    match find(files, table).await? {
        None => Ok(format!("there is no table {table}")),
        Some(found) => Ok(format!("the table {table} is removed, {}", clear(files, &found).await?)),
    }
}

/// Removes all files of a table, and says how many, and how many of them belonged to no version of it.
async fn clear(files: &Files, newest: &Version) -> Result<String, Failure> {
    // Of a table that is damaged nobody can tell.
    let orphans = history::orphans(files, newest.number).await.unwrap_or(0);
    let count = files.remove().await?;
    let strays = match orphans {
        0 => String::new(),
        1 => ", 1 of which belonged to no version of it".to_owned(),
        orphans => format!(", {} of which belonged to no version of it", units::count(orphans)),
    };
    Ok(format!("{} files{strays}", units::count(count)))
}

/// The version that a load begins with, and whether storage heeds the condition.
async fn ready(
    files: &Files,
    table: &str,
    checked: bool,
    asks: bool,
) -> Result<(Arc<Version>, Condition), Unusable> {
    let missing = || {
        let words =
            format!("there is no table at {}: make it with `prepare: {{table: {table}}}`", files.location());
        Unusable::Refused(words)
    };
    let from = find(files, table).await?.ok_or_else(missing)?;
    if !asks {
        return Ok((from, Condition::Unknown));
    }
    let condition = conditions::ask(files, unique()?).await;
    if condition == Condition::Ignored && checked {
        let words = format!(
            "the storage of {} ignores `If-None-Match: *`: it overwrote a file that was there, and reported success. Committers would \
             overwrite each other's versions, and lose commits that were acknowledged: use a storage or an interface of it that knows \
             the condition, or count what is lost with `conditions: unchecked`",
            files.location()
        );
        return Err(Unusable::Refused(words));
    }
    Ok((from, condition))
}

impl Load {
    /// That of a work on a table which is in this version.
    fn new(
        work: &Work,
        job: &Job,
        files: &Files,
        from: Arc<Version>,
        condition: Condition,
        runtime: &Arc<Runtime>,
    ) -> Self {
        let used = CommitsUse {
            work: work.name.clone(),
            table: job.table.clone(),
            storage: job.target.storage.describe(),
            committers: work.load.workers,
            condition,
            ..CommitsUse::default()
        };
        let (files, books, runtime) = (Arc::new(files.apart()), Arc::default(), Arc::clone(runtime));
        Self { used, files, books, runner: None, from, runtime }
    }

    /// What was done cycle by cycle, if it was done in cycles.
    fn cycles(&self) -> Option<CyclesUse> {
        let (cycles, runner) = self.runner.as_ref()?;
        Some(CyclesUse {
            work: self.used.work.clone(),
            table: self.used.table.clone(),
            storage: self.used.storage.clone(),
            merge: cycles.merge,
            compact_every: cycles.compact_every,
            cycles: runner.done(),
        })
    }

    /// What was committed, and what the table's history says of it; why it could not be read, if so.
    fn close(self) -> (CommitsUse, Option<Failure>) {
        let mut used = self.used;
        let books = self.books.read();
        used.acknowledged = books.acknowledged.len() as u64;
        used.rows = books.acknowledged.iter().map(|one| one.rows).sum();
        used.attempts = books.attempts();
        (used.lost_races, used.looked_up) = (books.lost_races, books.looked_up);
        used.requests = self.files.requests();
        let acknowledged = books.acknowledged.clone();
        drop(books);
        // What the proof reads is none of the load's requests.
        let files = self.files.apart();
        match self.runtime.block_on(history::read(&files, &self.from, &acknowledged)) {
            Ok(history) => {
                used.history = Some(history);
                (used, None)
            }
            Err(failure) => (used, Some(failure)),
        }
    }
}

impl Prepared for Ready {
    fn open(&mut self, stage: StageWorks<'_>, _notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        let works = stage.works;
        self.stage.clear();
        let open =
            |work: &&Work| self.carrier(work).map_err(|error| format!("work `{}`: {error}", work.name));
        works.iter().map(open).collect()
    }

    fn close(&mut self, _remarks: &[String]) -> Option<Proof> {
        let mut proof = Proof { direct: true, ..Proof::default() };
        let (mut commits, mut cycles) = (Vec::new(), Vec::new());
        for load in self.stage.drain(..) {
            cycles.extend(load.cycles());
            let (used, failure) = load.close();
            if let Some(failure) = failure {
                let words = format!(
                    "The history of the table {} could not be read when the load was over: {failure}.",
                    used.table
                );
                proof.unchecked.push(words);
            }
            commits.push(used);
        }
        if commits.is_empty() {
            return None;
        }
        evidence::write::<tidemark_iceberg::commits::CommitEvidence>(&mut proof, &commits);
        if !cycles.is_empty() {
            evidence::write::<tidemark_iceberg::cycles::CycleEvidence>(&mut proof, &cycles);
        }
        Some(proof)
    }
}
