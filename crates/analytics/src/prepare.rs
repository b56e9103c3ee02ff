//! Tables made ready: storage opened, what is there looked at, and what was done put on record.

use crate::books::Books;
use crate::failure::Failure;
use crate::job::{Cache, Job, Purpose, Queries, Storage};
use crate::lake::{File, Found, Lake, Part};
use crate::make::Maker;
use crate::query::Runner;
use crate::storage;
use crate::tasks::TaskSessions;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_load::work::Share;
use tidemark_measure::record::{CacheLayer, DeclaredFigure, FigureOf, Note, Proof, TablesMade, TablesUse};
use tidemark_object::targets::Running;
use tidemark_plan::engine::{Carrier, Prepared, Setup};
use tidemark_plan::plan::{Plan, Work};
use tokio::runtime::Runtime;

/// The engine ready for one run.
pub(crate) struct Ready {
    running: Vec<Running>,
    stage: Vec<Doing>,
    /// What the stage's works run on; of the threads that their target asks for.
    runtime: Option<Arc<Runtime>>,
}

/// A work of the stage that is open.
struct Doing {
    work: String,
    job: Job,
    lake: Lake,
    books: Arc<Books>,
    /// Bytes of the files that its queries read.
    data_bytes: Option<u64>,
}

/// DataFusion's default limit of footers that it keeps (`datafusion.runtime.metadata_cache_limit`); bytes.
const METADATA_CACHE: u64 = 50 << 20;

/// The engine that runs queries, as reports name it.
const ENGINE: &str = "DataFusion 55.2.0";

impl Ready {
    /// Starts what must be started, and opens all storage once.
    pub(crate) fn prepare(plan: &Plan, setup: &mut Setup<'_>) -> Result<Self, String> {
        let mut ready = Self { running: Vec::new(), stage: Vec::new(), runtime: None };
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
                (setup.ready)(format!("{ENGINE}, {description}"));
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
        builder.enable_all().thread_name("tables");
        if let Some(threads) = threads {
            builder.worker_threads(threads as usize);
        }
        let runtime =
            Arc::new(builder.build().map_err(|error| format!("cannot start threads for queries: {error}"))?);
        self.runtime = Some(Arc::clone(&runtime));
        Ok(runtime)
    }

    fn carrier(&mut self, work: &Work, notes: &mut Vec<Note>) -> Result<Carrier, String> {
        let job = Job::of(work).ok_or("its job is not one on tables")?.clone();
        let opened = storage::open(&job.target.storage, job.target.connections, &self.running)?;
        let runtime = self.runtime(job.target.threads)?;
        let lake =
            Lake { store: Arc::clone(&opened.store), root: opened.root.clone(), data: job.data.clone() };
        let told = |failure: Failure| format!("{}: {failure}", job.target.storage.describe());
        if let Purpose::Make { .. } = &job.purpose {
            runtime.block_on(opened.create_bucket()).map_err(|refused| refused.to_string())?;
        }
        let found = runtime.block_on(lake.look()).map_err(told)?;
        let books = Arc::new(Books::default());
        let client = opened.bucket.as_ref().map(|bucket| Arc::clone(bucket.client()));
        let (carrier, data_bytes) = match &job.purpose {
            Purpose::Make { layout, fresh } => {
                let parts = Part::all(&lake.data, layout);
                let stale = clear(&lake, &found, &parts, layout, *fresh)?;
                if let Some(text) = stale.note {
                    notes.push(Note { topic: "remade".into(), text });
                }
                runtime.block_on(lake.remove(stale.files.into_iter())).map_err(told)?;
                let maker = Maker::new(lake.clone(), layout, *fresh, Arc::clone(&books));
                (Carrier::Sessions(Box::new(TaskSessions::new(Arc::new(maker), runtime, client))), None)
            }
            Purpose::Remove => {
                let count = found.files.len();
                runtime.block_on(lake.remove(found.files.into_iter().map(|file| file.path))).map_err(told)?;
                let done = match count {
                    0 => "there are no such tables".to_owned(),
                    1 => "1 file is removed".to_owned(),
                    count => format!("{count} files are removed"),
                };
                (Carrier::Done(done), None)
            }
            Purpose::Query(queries) => {
                if let Some(gap) = found.gap(&lake.data) {
                    return Err(format!(
                        "{}: the tables {} are not whole: {gap}; make them with `prepare: {{tables: {}, scale: {}}}`",
                        job.target.storage.describe(),
                        lake.data.name(),
                        lake.data.set.name(),
                        lake.data.scale_text()
                    ));
                }
                let streams = work.load.slots(Share::whole(&work.load)).1;
                let opening = Runner::open(
                    &job.target,
                    queries,
                    &lake,
                    &found.files,
                    streams,
                    opened.is_remote(),
                    Arc::clone(&books),
                );
                let mut runner = runtime.block_on(opening).map_err(told)?;
                if let (Some(Cache::Cold), Some(directory)) = (queries.cache, &opened.directory) {
                    let files = on_disk(directory, &found.files);
                    runner = runner.cooled(move || files.iter().for_each(|file| drop_pages(file)));
                }
                let bytes = found.bytes();
                (
                    Carrier::Sessions(Box::new(TaskSessions::new(Arc::new(runner), runtime, client))),
                    Some(bytes),
                )
            }
        };
        self.stage.push(Doing { work: work.name.clone(), job, lake, books, data_bytes });
        Ok(carrier)
    }

    fn used(&self, doing: &Doing) -> Result<TablesUse, Failure> {
        let Doing { job, lake, books, .. } = doing;
        let mut used = TablesUse {
            work: doing.work.clone(),
            set: job.data.set.name().to_owned(),
            scale: job.data.scale_text(),
            engine: ENGINE.to_owned(),
            storage: job.target.storage.describe(),
            data_bytes: doing.data_bytes,
            ..TablesUse::default()
        };
        match &job.purpose {
            Purpose::Make { layout, .. } => {
                let Some(runtime) = &self.runtime else { return Ok(used) };
                // Read back: what counts is what is there.
                let found = runtime.block_on(lake.look())?;
                let mut tables = found.tables(&lake.data);
                tables.iter_mut().for_each(|table| books.complete(table));
                let spent = books.time();
                used.data_bytes = Some(found.bytes());
                used.made = Some(TablesMade {
                    layout: layout.describe(),
                    tables,
                    generating_ns: spent.generating_ns,
                    encoding_ns: spent.encoding_ns,
                    storing_ns: spent.storing_ns,
                });
            }
            Purpose::Query(queries) => {
                let (list, unlisted, own_ns) = books.queries();
                (used.queries, used.unlisted, used.own_cpu_ns) = (list, unlisted, Some(own_ns));
                used.declared_cache = queries.cache.map_or("", Cache::name).to_owned();
                used.caches = layers(job, queries);
            }
            Purpose::Remove => {}
        }
        Ok(used)
    }
}

impl Prepared for Ready {
    fn open(&mut self, works: &[&Work], notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        self.stage.clear();
        let open = |work: &&Work| {
            self.carrier(work, notes).map_err(|error| format!("work `{}`: {error}", work.name))
        };
        works.iter().map(open).collect()
    }

    fn close(&mut self, _remarks: &[String]) -> Option<Proof> {
        let mut proof = Proof { direct: true, ..Proof::default() };
        for doing in &self.stage {
            match self.used(doing) {
                Ok(used) => {
                    if !used.queries.is_empty() {
                        proof.figures.extend(known_by(&doing.work));
                    }
                    proof.tables.push(used);
                }
                Err(failure) => proof.unchecked.push(format!(
                    "The files of the work `{}` could not be looked at when it was over: {failure}.",
                    doing.work
                )),
            }
        }
        self.stage.clear();
        Some(proof).filter(|proof| !(proof.tables.is_empty() && proof.unchecked.is_empty()))
    }
}

/// What a work that runs queries is known by.
fn known_by(work: &str) -> [DeclaredFigure; 2] {
    let figure = |name: &str, about: &str, of| DeclaredFigure {
        work: work.to_owned(),
        name: name.to_owned(),
        about: about.to_owned(),
        of,
    };
    [
        figure(
            "All queries",
            "from the start of the first to the end of the last, of all streams",
            FigureOf::Elapsed,
        ),
        figure("Geometric mean", "of the queries' mean times", FigureOf::GeometricMean),
    ]
}

/// Files that must go before tables can be made.
struct Stale {
    files: Vec<object_store::path::Path>,
    note: Option<String>,
}

/// Looks for what is in the way of tables that are to be made: files of another layout or set go, those that are somebody else's
/// are none of ours.
fn clear(
    lake: &Lake,
    found: &Found,
    parts: &[Part],
    layout: &crate::job::Layout,
    fresh: bool,
) -> Result<Stale, String> {
    if let Some(stranger) = found.strangers.first() {
        let more = match found.strangers.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        return Err(format!(
            "there are files that Tidemark did not write, where the tables {} belong: {stranger}{more}; move them away, or use \
             another directory or prefix",
            lake.data.name()
        ));
    }
    let wanted = |file: &File| {
        parts.iter().any(|part| lake.place(part) == file.path && file.is(&part.label(&lake.data, layout)))
    };
    let files: Vec<_> =
        found.files.iter().filter(|file| fresh || !wanted(file)).map(|file| file.path.clone()).collect();
    let note = (!fresh && !files.is_empty()).then(|| {
        let count = files.len();
        let name = lake.data.name();
        format!("The tables {name} were there with another layout, or of another version: {count} files are made anew.")
    });
    Ok(Stale { files, note })
}

/// The layers that may have had the data in memory.
fn layers(job: &Job, queries: &Queries) -> Vec<CacheLayer> {
    let footers = CacheLayer {
        layer: "footers of files, kept by the query engine".into(),
        bytes: Some(METADATA_CACHE).filter(|_| job.target.metadata_cache),
        state: if job.target.metadata_cache { "on" } else { "off" }.into(),
        is_dropped: !job.target.metadata_cache,
        holds_data: false,
    };
    let below = match &job.target.storage {
        Storage::Files { .. } => CacheLayer {
            layer: "page cache of this machine".into(),
            bytes: Some(memory()).filter(|bytes| *bytes > 0),
            state: match queries.cache {
                Some(Cache::Cold) => "files dropped before every query",
                _ => "as it was",
            }
            .into(),
            is_dropped: queries.cache == Some(Cache::Cold),
            holds_data: true,
        },
        Storage::Objects { .. } => CacheLayer {
            layer: "memory of the S3 server, and of what is behind it".into(),
            bytes: None,
            state: "not known".into(),
            is_dropped: false,
            holds_data: true,
        },
    };
    vec![footers, below]
}

/// Memory of this machine, bytes.
fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit))
}

fn on_disk(directory: &Path, files: &[File]) -> Vec<PathBuf> {
    files.iter().map(|file| directory.join(file.path.as_ref())).collect()
}

/// Drops a file's pages from the page cache. One that is gone has none.
fn drop_pages(path: &Path) {
    if let Ok(file) = fs::File::open(path) {
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
}
