//! Tables made ready: made, guarded, removed; and what was committed put on record.

use crate::commit::unique;
use crate::conditions;
use crate::files::{Files, Version, is_lost};
use crate::history;
use crate::job::{Commits, Job, Purpose};
use crate::load::Committers;
use crate::metadata;
use futures_util::stream::StreamExt as _;
use std::path::Path;
use std::sync::Arc;
use tidemark_analytics::failure::Failure;
use tidemark_analytics::storage;
use tidemark_analytics::tasks::TaskSessions;
use tidemark_load::work::Share;
use tidemark_measure::record::{CommitsUse, Condition, Note, Proof};
use tidemark_measure::units;
use tidemark_object::targets::Running;
use tidemark_plan::engine::{Carrier, Prepared, Setup};
use tidemark_plan::plan::{Plan, Work};
use tokio::runtime::Runtime;

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
    committers: Arc<Committers>,
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
                let ready = ready(&files, &job.table, commits, self.asks);
                let (from, condition) = runtime.block_on(ready).map_err(|fault| fault.told(told))?;
                let count = work.load.slots(Share::whole(&work.load)).1;
                let files = Arc::new(files.apart());
                let committers = Arc::new(Committers::new(Arc::clone(&files), commits, count, &from));
                let used = CommitsUse {
                    work: work.name.clone(),
                    table: job.table.clone(),
                    storage: job.target.storage.describe(),
                    committers: work.load.workers,
                    condition,
                    ..CommitsUse::default()
                };
                let sessions =
                    TaskSessions::new(Arc::clone(&committers), Arc::clone(&runtime), opened.client());
                self.stage.push(Load { used, files, committers, from, runtime });
                Ok(Carrier::Sessions(Box::new(sessions)))
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
        Some(_) => {
            let count = files.remove().await?;
            done = format!("{done} anew; {} files are removed", units::count(count));
        }
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
        Some(_) => {
            let count = files.remove().await?;
            Ok(format!("the table {table} is removed, {} files", units::count(count)))
        }
    }
}

/// The version that a load begins with, and whether storage heeds the condition.
async fn ready(
    files: &Files,
    table: &str,
    commits: &Commits,
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
    if condition == Condition::Ignored && commits.checked {
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
    /// What was done, and what the table's history says of it; why it could not be read, if so.
    fn close(self) -> (CommitsUse, Option<Failure>) {
        let mut used = self.used;
        let books = self.committers.books();
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
    fn open(&mut self, works: &[&Work], _notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        self.stage.clear();
        let open =
            |work: &&Work| self.carrier(work).map_err(|error| format!("work `{}`: {error}", work.name));
        works.iter().map(open).collect()
    }

    fn close(&mut self, _remarks: &[String]) -> Option<Proof> {
        let mut proof = Proof { direct: true, ..Proof::default() };
        for load in self.stage.drain(..) {
            let (used, failure) = load.close();
            if let Some(failure) = failure {
                let words = format!(
                    "The history of the table {} could not be read when the load was over: {failure}.",
                    used.table
                );
                proof.unchecked.push(words);
            }
            proof.commits.push(used);
        }
        Some(proof).filter(|proof| !proof.commits.is_empty())
    }
}
