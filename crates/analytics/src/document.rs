//! The keys of documents: the target, and the works on tables.

use crate::job::{
    By, Cache, Compression, Data, DataFusion, Engine, Job, Layout, Purpose, Queries, Query, Target, Trino,
};
use crate::place::{self, Place};
use crate::sets::Set;
use crate::texts;
use std::path::{Path, PathBuf};
use tidemark_keys::kinds::{Bytes, Flag, Parsed, PositiveDuration, Text, Whole, Word};
use tidemark_keys::shapes::{List, Map, OneOrList};
use tidemark_keys::tree::{Node, Value};
use tidemark_keys::{Key, Mapping, OrFile, Problem, Table};
use tidemark_load::pacing::Pacing;
use tidemark_load::source::SourcePlan;
use tidemark_load::work::Work as Load;
use tidemark_measure::think::Think;
use tidemark_object::secrets;
use tidemark_plan::engine::WorkPlace;
use tidemark_plan::plan::{Label, OperationClass, Work, WorkKind};
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::{timing, values, works};
use tidemark_tpc::ds;

/// A target whose queries are run by Tidemark's own engine.
pub(crate) static DATAFUSION: Mapping = Mapping::kind(
    "datafusion",
    "Tables in Parquet files, queried by Tidemark's own engine (Apache DataFusion)",
    &[
        &place::STORAGE,
        &place::BUCKET,
        &place::PREFIX,
        &place::CONNECTIONS,
        &THREADS,
        &MEMORY,
        &METADATA_CACHE,
    ],
);

/// A target whose queries run elsewhere.
pub(crate) static TRINO: Mapping = Mapping::kind(
    "trino",
    "Tables in Parquet files on S3, queried by a Trino cluster over its HTTP protocol",
    &[
        &ENDPOINT,
        &USER,
        &PASSWORD.text,
        &PASSWORD.file,
        &INSECURE,
        &CA_FILE,
        &CATALOG,
        &place::OBJECTS,
        &place::BUCKET,
        &place::PREFIX,
        &place::CONNECTIONS,
    ],
);

static ENDPOINT: Key<Parsed<String>> =
    Key::new("endpoint", "Address of the coordinator", Parsed("`http://host:port`", values::server))
        .required("write the address of the coordinator, such as http://10.0.0.1:8080")
        .example("http://10.0.0.1:8080")
        .expanded();
static USER: Key<Parsed<String>> =
    Key::new("user", "Whose queries they are", NAME_OF_TRINO).default("tidemark").expanded();
static PASSWORD: OrFile =
    OrFile::new("password", "password_file", "The user's password, which goes over HTTPS alone")
        .example("${TIDEMARK_SECRET_TRINO}");
static INSECURE: Key<Flag> = Key::new("insecure", "Accept any TLS certificate", Flag).default("false");
static CA_FILE: Key<Text> = Key::new("ca_file", "PEM file of certificate authorities to trust", Text)
    .otherwise("the system's authorities")
    .expanded();
static CATALOG: Key<Parsed<String>> = Key::new(
    "catalog",
    "Catalog in which tables are registered, of Trino's Hive connector, which must reach the bucket",
    NAME_OF_TRINO,
)
.default("hive")
.expanded();
const NAME_OF_TRINO: Parsed<String> = Parsed("name", name_of_trino);

static THREADS: Key<Whole<u32>> =
    Key::new("threads", "Threads of the query engine, and partitions of its plans", Whole(1, 1024))
        .otherwise("as many as the machine has processors");
static MEMORY: Key<Bytes> = Key::new(
    "memory",
    "Memory that all queries together may have; what sorts and aggregates need beyond it goes to temporary files",
    Bytes(16 << 20),
)
.otherwise("without a limit");
static METADATA_CACHE: Key<Flag> =
    Key::new("metadata_cache", "Whether the query engine keeps the footers of files that it has read", Flag)
        .default("true");

/// The works on tables.
pub(crate) static KEYS: [&Mapping; 3] = [&PREPARE, &LOAD, &CLEANUP];

static PREPARE: Mapping = Mapping::new(
    "prepare",
    "Makes the tables of a set, but for files that are there already",
    &[&TABLES, &SCALE, &BY, &WRITERS, &COMPRESSION, &ROW_GROUP, &PAGE_INDEX, &FILE_SIZE, &FRESH],
);
static LOAD: Mapping = Mapping::new(
    "load",
    "The measured load: queries, in streams",
    &[
        &TABLES,
        &SCALE,
        &BY,
        &STREAMS,
        &PASSES,
        &QUERIES,
        &QUERY_FILES,
        &OWN,
        &ORDER,
        &PARAMETERS,
        &CACHE,
        &TIMEOUT,
    ],
);
static CLEANUP: Mapping =
    Mapping::new("cleanup", "Removes the tables that Tidemark made", &[&TABLES, &SCALE, &BY]);

/// The key that shows whose work it is.
pub(crate) static TABLES: Key<Word<Set>> = Key::new(
    "tables",
    "Which set of tables: eight of orders and parts after TPC-H, or 24 of sales after TPC-DS",
    Word(&[("tpch", Set::Tpch), ("tpcds", Set::Tpcds)]),
)
.required("write `tables: tpch` or `tables: tpcds`");
static SCALE: Key<Parsed<u64>> = Key::new(
    "scale",
    "Scale factor: 1 is about a gigabyte of rows, a third of that in files",
    Parsed("number from 0.001 to 100000", scale),
)
.default("1")
.also(&["scale_factor", "sf"]);
static BY: Key<Word<By>> = Key::new(
    "by",
    "Who makes the tables: Tidemark, or Trino of the rows of its own generator, a statement for each table; both can be there side by side",
    Word(&[("tidemark", By::Tidemark), ("trino", By::Trino)]),
)
.default("tidemark");
static WRITERS: Key<Whole<u32>> =
    Key::new("writers", "Files, or tables by Trino, that are made side by side", Whole(1, 1024))
        .otherwise("as many as there are processors; by Trino, one table at a time on all its workers");
static COMPRESSION: Key<Word<Compression>> = Key::new(
    "compression",
    "Compression of column chunks",
    Word(&[
        ("zstd", Compression::Zstd),
        ("snappy", Compression::Snappy),
        ("lz4", Compression::Lz4),
        ("none", Compression::None),
    ]),
)
.default("zstd");
static ROW_GROUP: Key<Whole<u64>> =
    Key::new("row_group", "Most rows of a row group", Whole(1_000, 100_000_000)).default("1000000");
static PAGE_INDEX: Key<Flag> = Key::new(
    "page_index",
    "Write statistics of pages and where they are, so that queries can read parts of column chunks",
    Flag,
)
.default("true");
static FILE_SIZE: Key<Bytes> =
    Key::new("file_size", "About how large files are; small tables are one file", Bytes(1 << 20))
        .default("128MiB");
static FRESH: Key<Flag> =
    Key::new("fresh", "Make the tables anew although they are there", Flag).default("false");

static STREAMS: Key<Whole<u32>> = Key::new(
    "streams",
    "Streams of queries side by side: one is the power test, several are the throughput test",
    Whole(1, 1000),
)
.default("1");
static PASSES: Key<Whole<u32>> =
    Key::new("passes", "How often each stream goes through its queries", Whole(1, 1_000_000)).default("1");
static QUERIES: Key<OneOrList<Text>> = Key::new(
    "queries",
    "Which queries, by name: `[q1, q6]`; or `all`; or `io-56`, the 56 of TPC-DS that read most",
    OneOrList(Text),
)
.otherwise("all that there are");
static QUERY_FILES: Key<Text> = Key::new(
    "query_files",
    "Directory with the text of each of the `queries` in a file of its own, such as q1.sql: `tidemark lab queries` fetches those of TPC-DS",
    Text,
)
.expanded();
static OWN: Key<List<Map>> = Key::new("sql", "Your own queries", List(Map(&OWN_QUERY)));
static OWN_QUERY: Mapping = Mapping::new("own_query", "A query of your own", &[&NAME, &SQL]);
static NAME: Key<Text> = Key::new("name", "Its name in reports", Text).required("give it a name");
static SQL: Key<Text> = Key::new("sql", "Its text; several statements are run one after the other", Text)
    .required("write its SQL");
static ORDER: Key<Word<bool>> = Key::new(
    "order",
    "Order of the queries: `permuted`, another one in every stream; or `listed`, the same in all",
    Word(&[("permuted", true), ("listed", false)]),
)
.otherwise("`permuted` with several streams");
static PARAMETERS: Key<Word<bool>> = Key::new(
    "parameters",
    "Parameters of the set's queries: those with which answers are known, or drawn anew for every execution",
    Word(&[("qualification", false), ("random", true)]),
)
.default("qualification");
static CACHE: Key<Word<Cache>> = Key::new(
    "cache",
    "Where what is read may come from: with `cold` and files, their pages are dropped from the page cache before every query",
    Word(&[("cold", Cache::Cold), ("warm", Cache::Warm)]),
)
.otherwise("not declared");
static TIMEOUT: Key<PositiveDuration> =
    Key::new("timeout", "Time limit of one query", PositiveDuration).default("1h");

/// How long a file may take, nanoseconds: without a success for twice as long, generation is given up.
const FILE_NS: u64 = 600_000_000_000;

fn scale(text: &str) -> Result<u64, Problem> {
    let wrong = |message: String| Problem::new(message, "write a number from 0.001 to 100000, such as 1");
    let number: f64 = text.trim().parse().map_err(|_| wrong(format!("'{text}' is not a number")))?;
    let milli = number * 1e3;
    if !(1.0..=1e8).contains(&milli) {
        return Err(wrong(format!("{text} is out of range")));
    }
    if (milli - milli.round()).abs() > 1e-6 {
        return Err(wrong(format!("{text} has more than three decimal places")));
    }
    Ok(milli.round() as u64)
}

/// A name that Trino takes: what stands in a header cannot have everything.
fn name_of_trino(text: &str) -> Result<String, Problem> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.@+".contains(letter);
    match !text.is_empty() && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(format!("'{text}' cannot be used"), "write letters, digits and - _ . @ +")),
    }
}

/// Reads the mapping under `target`; `None` after an error that leaves nothing to go on with.
pub(crate) fn target(kind: &str, table: &mut Table<'_>) -> Option<Target> {
    let (engine, storage) = match kind == TRINO.name {
        true => (Engine::Trino(trino(table)), &place::OBJECTS),
        false => {
            let engine = DataFusion {
                threads: table.get(&THREADS),
                memory: table.get(&MEMORY),
                metadata_cache: table.value(&METADATA_CACHE),
            };
            (Engine::DataFusion(engine), &place::STORAGE)
        }
    };
    let Place { storage, connections } = place::read(table, storage)?;
    Some(Target { engine, storage, connections })
}

fn trino(table: &mut Table<'_>) -> Trino {
    let trino = Trino {
        endpoint: table.value(&ENDPOINT),
        user: table.value(&USER),
        password: table.secret(&PASSWORD),
        insecure: table.value(&INSECURE),
        ca_file: table.get(&CA_FILE).map(PathBuf::from),
        catalog: table.value(&CATALOG),
    };
    if let Some(password) = &trino.password {
        if trino.endpoint.starts_with("http:") {
            let help = "use the coordinator's https:// address, or remove the password";
            table.log().error(table.place(), "the password would go over the network in clear", help);
        }
        if let Some(message) = secrets::misdirected([password], &[&trino.endpoint]) {
            table.log().error(table.place(), message, secrets::MISDIRECTED);
        }
    }
    trino
}

/// Reads a work; all random choices come from `seed`.
pub(crate) fn work(
    place: WorkPlace,
    mut table: Table<'_>,
    target: &Target,
    context: &Context<'_>,
) -> Option<Work> {
    if !KEYS.iter().any(|known| known.name == place.keyword) {
        let message = format!("`{}` does not apply to tables", place.keyword);
        table.log().error(table.place(), message, "remove it, or use `prepare`, `load` or `cleanup`");
        return None;
    }
    let common = works::Common::read(&mut table, place.keyword, 0);
    let data = Data { set: table.get(&TABLES)?, scale_milli: table.value(&SCALE), by: table.value(&BY) };
    if data.by == By::Trino && target.trino().is_none() {
        table.meaningless(&[&BY], "only a target of the kind `trino` has Trino make tables");
        return None;
    }
    let doing = match place.kind {
        WorkKind::Normal => load(&mut table, &data, context)?,
        WorkKind::Prepare if data.by == By::Trino => generate(&mut table, &data),
        WorkKind::Prepare => make(&mut table, &data),
        _ => remove(&mut table),
    };
    table.finish();
    let Doing { workers, purpose, stop, source, labels } = doing;
    Some(Work {
        name: common.name,
        kind: place.kind,
        load: Load {
            workers,
            depth: 1,
            connections: None,
            pacing: Pacing::Closed { think: Think::Constant { ns: 0 } },
            stop,
            source,
            finale: None,
            copies: 1,
            actions: labels.len() as u16,
            seed: context.seed,
            stream: place.stream,
        },
        job: tidemark_plan::job::Job::new(Job { target: target.clone(), data, purpose }),
        labels,
        allowed_failures_per_million: common.allowed_failures,
        driver: common.driver,
    })
}

/// What a work does.
struct Doing {
    workers: u32,
    purpose: Purpose,
    stop: tidemark_load::stopping::Stop,
    source: SourcePlan,
    labels: Vec<Label>,
}

fn label(name: &str, class: OperationClass, weight: f64, config: String) -> Label {
    Label { label: name.to_owned(), kind: name.to_owned(), class, verifies: false, weight, config }
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1))
}

fn make(table: &mut Table<'_>, data: &Data) -> Doing {
    let layout = Layout {
        compression: table.value(&COMPRESSION),
        row_group_rows: table.value(&ROW_GROUP),
        page_index: table.value(&PAGE_INDEX),
        file_bytes: table.value(&FILE_SIZE),
    };
    let files = layout.files(data);
    let workers =
        table.get(&WRITERS).unwrap_or_else(processors).min(u32::try_from(files).unwrap_or(u32::MAX));
    let config = layout.describe();
    Doing {
        workers,
        purpose: Purpose::Make { layout, fresh: table.value(&FRESH) },
        stop: timing::stop(table, FILE_NS, true),
        source: scan(files),
        labels: vec![label("make", OperationClass::Write, 100.0, config)],
    }
}

fn generate(table: &mut Table<'_>, data: &Data) -> Doing {
    table.meaningless(&[&ROW_GROUP, &PAGE_INDEX, &FILE_SIZE], "Trino writes the files as its catalog is set");
    let compression = table.value(&COMPRESSION);
    let tables = data.set.tables().len();
    Doing {
        workers: table.get(&WRITERS).unwrap_or(1).min(u32::try_from(tables).unwrap_or(u32::MAX)),
        purpose: Purpose::Generate { compression, fresh: table.value(&FRESH) },
        stop: timing::stop(table, FILE_NS, true),
        source: scan(tables as u64),
        labels: vec![label("make", OperationClass::Write, 100.0, compression.describe_by_trino())],
    }
}

fn remove(table: &mut Table<'_>) -> Doing {
    Doing {
        workers: 1,
        purpose: Purpose::Remove,
        stop: timing::stop(table, FILE_NS, true),
        source: scan(1),
        labels: vec![label("remove", OperationClass::Delete, 100.0, String::new())],
    }
}

/// One operation for each of so many.
fn scan(count: u64) -> SourcePlan {
    SourcePlan::Scan {
        action: 0,
        spaces: Some((1, 1)),
        items: Some((0, count.max(1) - 1)),
        bytes: values::constant(0),
    }
}

fn load(table: &mut Table<'_>, data: &Data, context: &Context<'_>) -> Option<Doing> {
    let list = queries(table, data, context)?;
    let (streams, passes) = (table.value(&STREAMS), table.value(&PASSES));
    let permuted = table.get(&ORDER).unwrap_or(streams > 1);
    let random = table.value(&PARAMETERS);
    let timeout_ns = table.value(&TIMEOUT);
    let orders = (0..streams).map(|stream| texts::order(list.len(), stream, permuted)).collect();
    let each = 100.0 / list.len() as f64;
    let parameters = if random { "random" } else { "qualification" };
    let config = format!("tables={};scale={};parameters={parameters}", data.set.name(), data.scale_text());
    let labels =
        list.iter().map(|query| label(&query.name, OperationClass::Read, each, config.clone())).collect();
    let queries = Queries { list, random, cache: table.get(&CACHE), timeout_ns };
    Some(Doing {
        workers: streams,
        purpose: Purpose::Query(queries),
        stop: timing::stop(table, timeout_ns, true),
        source: SourcePlan::Rounds { orders, rounds: passes },
        labels,
    })
}

/// The queries that a load runs.
fn queries(table: &mut Table<'_>, data: &Data, context: &Context<'_>) -> Option<Vec<Query>> {
    let chosen = table.all(&QUERIES);
    let directory = table.get(&QUERY_FILES).map(PathBuf::from);
    let own_queries = table.list(&OWN);
    let has_texts = directory.is_some() || texts::are_known(data.set);
    let names = match &chosen[..] {
        [] if directory.is_none() && !own_queries.is_empty() => Vec::new(),
        [] => texts::names(data.set).filter(|_| has_texts).collect(),
        [all] if all == ALL => texts::names(data.set).filter(|_| has_texts).collect(),
        [set] if set == MOST_READ => most_read(table, data)?,
        _ => chosen,
    };
    let mut list = Vec::new();
    for name in names {
        let sql = match &directory {
            Some(directory) => Some(text_of(table, directory, &name, context)?),
            None => known(table, data.set, &name).map(|()| None)?,
        };
        list.push(Query { name, sql });
    }
    for node in own_queries {
        list.extend(own(table, node));
    }
    if list.is_empty() {
        table.log().error(table.place(), "the load has no queries", NO_TEXTS);
        return None;
    }
    let twice = list
        .iter()
        .enumerate()
        .find(|(place, query)| list[..*place].iter().any(|one| one.name == query.name));
    if let Some((_, query)) = twice {
        let message = format!("there are two queries `{}`", query.name);
        table.log().error(table.place(), message, "give each a name of its own");
        return None;
    }
    Some(list)
}

/// What to do about queries whose texts are missing.
const NO_TEXTS: &str = "name a directory with their texts under `query_files`, or write them under `sql`: the texts of TPC-DS are the \
                        TPC's, and not part of Tidemark; `tidemark lab queries` fetches them";

/// The word for all queries.
const ALL: &str = "all";

/// The word for the queries that read most.
const MOST_READ: &str = "io-56";

fn at_queries(table: &mut Table<'_>, message: String, help: &str) {
    let place = table.entry(&QUERIES).map_or_else(|| table.place().clone(), |entry| entry.key_span.clone());
    table.log().error(&place, message, help);
}

/// Whether Tidemark has the text of a query.
fn known(table: &mut Table<'_>, set: Set, name: &str) -> Option<()> {
    if texts::are_known(set) && texts::names(set).any(|known| known == name) {
        return Some(());
    }
    let help = match texts::are_known(set) {
        true => texts::names(set).next().zip(texts::names(set).last()),
        false => None,
    };
    let help =
        help.map_or_else(|| NO_TEXTS.to_owned(), |(first, last)| format!("there are {first} to {last}"));
    at_queries(table, format!("Tidemark has no {} query `{name}`", set.title()), &help);
    None
}

/// The names of the queries that read most.
fn most_read(table: &mut Table<'_>, data: &Data) -> Option<Vec<String>> {
    let set = ds::most_read::on_file(ds::most_read::DATAFUSION, data.scale_milli);
    match set.filter(|_| data.set == Set::Tpcds) {
        Some(set) => Some(set.numbers.iter().flat_map(|number| ds::parts(*number)).collect()),
        None => {
            let help = "write `tables: tpcds`, or name the queries";
            at_queries(table, format!("`{MOST_READ}` is a set of queries of TPC-DS"), help);
            None
        }
    }
}

/// The text of a query in a file.
fn text_of(table: &mut Table<'_>, directory: &Path, name: &str, context: &Context<'_>) -> Option<String> {
    let place =
        table.entry(&QUERY_FILES).map_or_else(|| table.place().clone(), |entry| entry.key_span.clone());
    if name.contains(['/', '\\']) || name.starts_with('.') {
        let message = format!("'{name}' is no name of a query");
        table.log().error(&place, message, "write the file's name without `.sql`");
        return None;
    }
    let path = directory.join(format!("{name}.sql"));
    match (context.environment.document)(&path) {
        Ok(text) => Some(text),
        Err(error) => {
            let message = format!("the query {name} cannot be read from {}: {error}", path.display());
            let help = "correct the directory, or name those that are there under `queries`; `tidemark lab queries` fetches those of TPC-DS";
            table.log().error(&place, message, help);
            None
        }
    }
}

fn own(table: &mut Table<'_>, node: &Node) -> Option<Query> {
    let place = table.entry(&OWN)?.key_span.clone();
    if !matches!(node.value, Value::Map(_)) {
        table.log().error(&place, "a query is a mapping", "write `sql: [{name: ..., sql: ...}]`");
        return None;
    }
    let mut below = table.part("a query of `sql`", node, &place).of(&OWN_QUERY);
    let (name, sql) = (below.get(&NAME), below.get(&SQL));
    below.finish();
    Some(Query { name: name?, sql: Some(sql?) })
}
