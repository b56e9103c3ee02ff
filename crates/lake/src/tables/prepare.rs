//! Tables made ready: storage opened, what is there looked at, and what was done put on record.

use crate::tables::books::Books;
use crate::tables::failure::Failure;
use crate::tables::lake::{File, Found, Lake, Part};
use crate::tables::make::Maker;
use crate::tables::query::Runner;
use crate::tables::tasks::TaskSessions;
use crate::tables::trino::{self, Generator, Schema};
use crate::tables::{embedded, storage};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tidemark_analytics::job::{By, Cache, DataFusion, Engine, Job, Purpose, Queries, Storage, Target, Trino};
use tidemark_load::work::Share;
use tidemark_measure::record::{CacheLayer, DeclaredFigure, FigureOf, Note, Proof, TablesMade, TablesUse};
use tidemark_object::targets::Running;
use tidemark_plan::engine::{Carrier, Executor, Prepared, Setup, StageWorks};
use tidemark_plan::plan::{Plan, Work};
use tidemark_tpc::queries::Dialect;
use tokio::runtime::Runtime;

/// Makes tables of decision support, and runs queries on them.
#[derive(Clone, Copy, Debug)]
pub struct Tables;

impl Executor for Tables {
    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
        Ok(Box::new(Ready::prepare(plan, setup)?))
    }
}

/// The engine ready for one run.
pub(crate) struct Ready {
    running: Vec<Running>,
    /// The clusters that are there, each with its name and version.
    clusters: Vec<(Trino, String)>,
    stage: Vec<Doing>,
    /// What the stage's works run on; of the threads that their target asks for.
    runtime: Option<Arc<Runtime>>,
}

/// A work of the stage that is open.
struct Doing {
    work: String,
    job: Job,
    lake: Lake,
    /// The tables in Trino's catalog, if Trino has them.
    schema: Option<Schema>,
    books: Arc<Books>,
    /// Bytes of the files that its queries read.
    data_bytes: Option<u64>,
    /// Why files were not dropped from the page cache before each query, as they were to be.
    not_dropped: Arc<OnceLock<String>>,
}

/// DataFusion's default limit of footers that it keeps (`datafusion.runtime.metadata_cache_limit`); bytes.
const METADATA_CACHE: u64 = 50 << 20;

impl Ready {
    /// Starts what must be started, opens all storage once, and asks all clusters whether they can be used.
    pub(crate) fn prepare(plan: &Plan, setup: &mut Setup<'_>) -> Result<Self, String> {
        let mut ready = Self { running: Vec::new(), clusters: Vec::new(), stage: Vec::new(), runtime: None };
        let mut told: Vec<String> = Vec::new();
        for job in plan.stages.iter().flat_map(|stage| &stage.works).filter_map(Job::of) {
            if let Some(embedded) = job.target.storage.embedded()
                && !ready.running.iter().any(|running| running.plan() == embedded)
            {
                ready.running.push(Running::start(embedded, setup.scratch.unwrap_or(Path::new(".")))?);
            }
            let description = job.target.describe();
            if !told.contains(&description) {
                storage::open(&job.target.storage, job.target.connections, &ready.running)?;
                if let Some(trino) = job.target.trino() {
                    let name = ready.runtime(&job.target)?.block_on(trino::check(trino))?;
                    ready.clusters.push((trino.clone(), name));
                }
                (setup.ready)(format!("{}, {}", ready.engine(&job.target), job.target.storage.describe()));
                told.push(description);
            }
        }
        Ok(ready)
    }

    /// The engine that runs queries, as reports name it.
    fn engine(&self, target: &Target) -> String {
        match &target.engine {
            Engine::DataFusion(_) => embedded::ENGINE.to_owned(),
            Engine::Trino(trino) => {
                let known = self.clusters.iter().find(|(known, _)| known == trino);
                known.map_or_else(|| "Trino".to_owned(), |(_, name)| name.clone())
            }
        }
    }

    fn runtime(&mut self, target: &Target) -> Result<Arc<Runtime>, String> {
        if let Some(runtime) = &self.runtime {
            return Ok(Arc::clone(runtime));
        }
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.enable_all().thread_name("tables");
        if let Engine::DataFusion(DataFusion { threads: Some(threads), .. }) = target.engine {
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
        let runtime = self.runtime(&job.target)?;
        let lake =
            Lake { store: Arc::clone(&opened.store), root: opened.root.clone(), data: job.data.clone() };
        let told = |failure: Failure| format!("{}: {failure}", job.target.storage.describe());
        if let Purpose::Make { .. } | Purpose::Generate { .. } = &job.purpose {
            runtime.block_on(opened.create_bucket()).map_err(|refused| refused.to_string())?;
        }
        let compression = match &job.purpose {
            Purpose::Generate { compression, .. } => Some(*compression),
            _ => None,
        };
        let schema = trino::schema(&job.target, &job.data, compression)?;
        let books = Arc::new(Books::default());
        let not_dropped = Arc::new(OnceLock::new());
        // What Trino reads and writes does not go through here.
        let by_trino = job.target.trino().is_some() && !matches!(job.purpose, Purpose::Make { .. });
        let client = opened.client().filter(|_| !by_trino);
        let (carrier, data_bytes) = match &job.purpose {
            Purpose::Make { layout, fresh } => {
                let found = runtime.block_on(lake.look()).map_err(told)?;
                let parts = Part::all(&lake.data, layout);
                let stale = clear(&lake, &found, &parts, layout, *fresh)?;
                if let Some(text) = stale.note {
                    notes.push(Note { topic: "remade".into(), text });
                }
                runtime.block_on(lake.remove(stale.files.into_iter())).map_err(told)?;
                if let Some(schema) = &schema {
                    // First of all: whether they can be, is not to be found out when all are made.
                    runtime.block_on(schema.register())?;
                }
                let maker = Maker::new(lake.clone(), layout, *fresh, Arc::clone(&books));
                (Carrier::Sessions(Box::new(TaskSessions::new(Arc::new(maker), runtime, client))), None)
            }
            Purpose::Generate { fresh, .. } => {
                let schema = schema.clone().ok_or("only Trino makes tables of its own generator")?;
                let opening = Generator::open(schema, &lake, *fresh, Arc::clone(&books));
                let generator = runtime.block_on(opening)?;
                (Carrier::Sessions(Box::new(TaskSessions::new(Arc::new(generator), runtime, client))), None)
            }
            Purpose::Remove => {
                let tables = match &schema {
                    Some(schema) => {
                        runtime.block_on(schema.remove()).map_err(|failure| failure.to_string())?
                    }
                    None => 0,
                };
                let files = runtime.block_on(remove(&lake)).map_err(told)?;
                (Carrier::Done(gone(tables, files)), None)
            }
            Purpose::Query(queries) => {
                let streams = work.load.slots(Share::whole(&work.load)).1;
                let found = runtime.block_on(whole(&job, &lake, schema.as_ref()))?;
                let data_bytes = found.bytes;
                let (dialect, streams) = match (&job.target.engine, &schema) {
                    (Engine::Trino(_), Some(schema)) => {
                        (Dialect::Trino, trino::streams(&schema.coordinator, streams))
                    }
                    (Engine::Trino(_), None) => return Err("Trino reads tables from S3 alone".into()),
                    (Engine::DataFusion(engine), _) => {
                        let coalesces = opened.is_remote();
                        let opening = embedded::streams(engine, &lake, &found.files, streams, coalesces);
                        (Dialect::Standard, runtime.block_on(opening).map_err(told)?)
                    }
                };
                let mut runner = Runner::new(queries, &job.data, dialect, streams, Arc::clone(&books));
                if let (Some(Cache::Cold), Some(directory)) = (queries.cache, &opened.directory) {
                    let files = on_disk(directory, &found.files);
                    let failure = Arc::clone(&not_dropped);
                    runner = runner.cooled(move || {
                        for (file, error) in
                            files.iter().filter_map(|file| Some((file, drop_pages(file).err()?)))
                        {
                            failure.get_or_init(|| format!("{}: {error}", file.display()));
                        }
                    });
                }
                let sessions = TaskSessions::new(Arc::new(runner), runtime, client);
                (Carrier::Sessions(Box::new(sessions)), Some(data_bytes))
            }
        };
        self.stage.push(Doing { work: work.name.clone(), job, lake, schema, books, data_bytes, not_dropped });
        Ok(carrier)
    }

    /// What is known of a work without looking.
    fn used(&self, doing: &Doing) -> TablesUse {
        let job = &doing.job;
        TablesUse {
            work: doing.work.clone(),
            set: job.data.set.name().to_owned(),
            scale: job.data.scale_text(),
            scale_milli: job.data.scale_milli,
            engine: self.engine(&job.target),
            product: job.target.engine.product().to_owned(),
            storage: job.target.storage.describe(),
            data_bytes: doing.data_bytes,
            ..TablesUse::default()
        }
    }

    /// Completes it by what the work left behind, and by what was noted meanwhile.
    fn complete(&self, doing: &Doing, used: &mut TablesUse) -> Result<(), Failure> {
        let Doing { job, lake, schema, books, .. } = doing;
        let Some(runtime) = &self.runtime else { return Ok(()) };
        if let Some(schema) = schema {
            runtime.block_on(schema.coordinator.settle());
        }
        match (&job.purpose, schema) {
            (Purpose::Make { layout, .. }, _) => {
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
            (Purpose::Generate { compression, .. }, Some(schema)) => {
                let tables = runtime.block_on(trino::made(schema, lake, books))?;
                used.data_bytes = Some(tables.iter().map(|table| table.bytes).sum());
                let layout = compression.describe_by_trino();
                used.made = Some(TablesMade { layout, tables, ..TablesMade::default() });
            }
            (Purpose::Query(queries), _) => {
                books.put_queries(used);
                used.declared_cache = queries.cache.map_or("", Cache::name).to_owned();
                used.caches = layers(job, queries, doing.not_dropped.get().map(String::as_str));
            }
            (Purpose::Generate { .. }, None) | (Purpose::Remove, _) => {}
        }
        Ok(())
    }
}

/// What a load reads.
struct Reads {
    /// Files that Tidemark made.
    files: Vec<File>,
    /// Bytes of all files.
    bytes: u64,
}

/// Looks whether the tables that a load reads are there, all of them. Gives the files that Tidemark made; of tables that Trino made, it
/// is Trino that knows which belong to them.
async fn whole(job: &Job, lake: &Lake, schema: Option<&Schema>) -> Result<Reads, String> {
    let told = |failure: Failure| format!("{}: {failure}", job.target.storage.describe());
    let gap = |gap: String| {
        format!(
            "{}: the tables {} are not whole: {gap}; make them with `{}`",
            job.target.describe(),
            lake.data.name(),
            lake.data.preparation()
        )
    };
    let reads = match lake.data.by {
        By::Tidemark => {
            let found = lake.look().await.map_err(told)?;
            if let Some(why) = found.gap(&lake.data) {
                return Err(gap(why));
            }
            Reads { bytes: found.bytes(), files: found.files }
        }
        By::Trino => {
            let mut bytes = 0;
            for table in lake.data.set.tables() {
                bytes += trino::files(lake, table)
                    .await
                    .map_err(told)?
                    .0
                    .iter()
                    .map(|file| file.size)
                    .sum::<u64>();
            }
            Reads { bytes, files: Vec::new() }
        }
    };
    let Some(schema) = schema else { return Ok(reads) };
    let registered = schema.look().await.map_err(|failure| failure.to_string())?;
    match schema.gap(&registered) {
        Some(why) => Err(gap(why)),
        None => Ok(reads),
    }
}

/// Removes the files of a set. Gives how many there were.
async fn remove(lake: &Lake) -> Result<usize, Failure> {
    let mut files = Vec::new();
    match lake.data.by {
        By::Tidemark => files.extend(lake.look().await?.files.into_iter().map(|file| file.path)),
        By::Trino => {
            for table in lake.data.set.tables() {
                files.extend(trino::files(lake, table).await?.0.into_iter().map(|file| file.location));
            }
        }
    }
    let count = files.len();
    lake.remove(files.into_iter()).await?;
    Ok(count)
}

/// Says what is gone.
fn gone(tables: usize, files: usize) -> String {
    let count = |number: usize, one: &str| match number {
        1 => format!("1 {one} is"),
        number => format!("{number} {one}s are"),
    };
    let dropped = (tables > 0).then(|| format!("{} dropped", count(tables, "table")));
    let removed = (files > 0).then(|| format!("{} removed", count(files, "file")));
    match (dropped, removed) {
        (None, None) => "there are no such tables".to_owned(),
        (Some(done), None) | (None, Some(done)) => done,
        (Some(dropped), Some(removed)) => format!("{dropped}, {removed}"),
    }
}

impl Prepared for Ready {
    fn open(&mut self, stage: StageWorks<'_>, notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        let works = stage.works;
        self.stage.clear();
        let open = |work: &&Work| {
            self.carrier(work, notes).map_err(|error| format!("work `{}`: {error}", work.name))
        };
        works.iter().map(open).collect()
    }

    fn close(&mut self, _remarks: &[String]) -> Option<Proof> {
        let mut proof = Proof { direct: true, ..Proof::default() };
        for doing in &self.stage {
            let mut used = self.used(doing);
            if let Err(failure) = self.complete(doing, &mut used) {
                proof.unchecked.push(format!(
                    "The files of the work `{}` could not be looked at when it was over: {failure}.",
                    doing.work
                ));
            }
            if !used.queries.is_empty() {
                proof.figures.extend(known_by(&doing.work));
            }
            proof.tables.push(used);
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
    layout: &tidemark_analytics::job::Layout,
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
fn layers(job: &Job, queries: &Queries, not_dropped: Option<&str>) -> Vec<CacheLayer> {
    let own = match &job.target.engine {
        Engine::DataFusion(engine) => CacheLayer {
            layer: "footers of files, kept by the query engine".into(),
            bytes: Some(METADATA_CACHE).filter(|_| engine.metadata_cache),
            state: if engine.metadata_cache { "on" } else { "off" }.into(),
            is_dropped: !engine.metadata_cache,
            holds_data: false,
        },
        Engine::Trino(_) => CacheLayer {
            layer: "file system cache of Trino's workers".into(),
            bytes: None,
            state: "not known".into(),
            is_dropped: false,
            holds_data: true,
        },
    };
    let below = match &job.target.storage {
        Storage::Files { .. } => CacheLayer {
            layer: match tidemark_observe::own_memory_limit() {
                Some(_) => "page cache within this process's control group",
                None => "page cache of this machine",
            }
            .into(),
            bytes: Some(memory()).filter(|bytes| *bytes > 0),
            state: match (queries.cache, not_dropped) {
                (Some(Cache::Cold), None) => "files dropped before every query".into(),
                (Some(Cache::Cold), Some(why)) => format!("could not be dropped: {why}"),
                _ => "as it was".into(),
            },
            is_dropped: queries.cache == Some(Cache::Cold) && not_dropped.is_none(),
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
    vec![own, below]
}

/// Memory that the page cache of this process can have: the machine's, or what its control group allows; bytes.
fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    let all = info.totalram.saturating_mul(u64::from(info.mem_unit));
    tidemark_observe::own_memory_limit().map_or(all, |limit| limit.min(all))
}

fn on_disk(directory: &Path, files: &[File]) -> Vec<PathBuf> {
    files.iter().map(|file| directory.join(file.path.as_ref())).collect()
}

/// Drops a file's pages from the page cache. One that is gone has none.
fn drop_pages(path: &Path) -> std::io::Result<()> {
    match fs::File::open(path) {
        Ok(file) => Ok(rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
