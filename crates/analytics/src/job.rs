//! A work on tables, as a plan carries it.

use crate::sets::Set;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tidemark_measure::units;
use tidemark_object::job as object;
use tidemark_plan::job::JobData;
use tidemark_plan::plan::Work;
use tidemark_plan::policy::Policy;
use tidemark_plan::secret::Secret;
use tidemark_tpc::ds;

/// The engine's name.
pub const ENGINE: &str = "analytics";

/// What a work does, and on what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What runs queries, and where the tables are.
    pub target: Target,
    /// The tables.
    pub data: Data,
    /// What the work is for.
    pub purpose: Purpose,
}

/// What runs queries, and where the tables are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// What runs queries.
    pub engine: Engine,
    /// Where the tables are.
    pub storage: Storage,
    /// Connections of an S3 target.
    pub connections: u32,
}

/// What runs queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Engine {
    /// Apache DataFusion, in the program `tidemark-lake`.
    DataFusion(DataFusion),
    /// A Trino cluster. It reads the tables by itself, from the storage that they are in.
    Trino(Trino),
}

/// Apache DataFusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataFusion {
    /// Its threads; `None`: as many as this machine has processors.
    pub threads: Option<u32>,
    /// Memory that all queries together may have, bytes; `None`: without a limit.
    pub memory: Option<u64>,
    /// Whether it keeps the footers of files that it has read.
    pub metadata_cache: bool,
}

/// A Trino cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trino {
    /// `http://host:port` or `https://host:port` of its coordinator.
    pub endpoint: String,
    /// Whose queries they are.
    pub user: String,
    /// The user's password, over HTTPS.
    pub password: Option<Secret>,
    /// Accept any TLS certificate.
    pub insecure: bool,
    /// PEM file of certificate authorities to trust besides the system's.
    pub ca_file: Option<PathBuf>,
    /// The catalog in which tables are registered, of Trino's Hive connector.
    pub catalog: String,
}

/// Where tables are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Storage {
    /// Below a directory of this machine.
    Files {
        /// The directory.
        directory: PathBuf,
    },
    /// In a bucket.
    Objects {
        /// The server: [`object::Target::S3`] or [`object::Target::Embedded`].
        server: Box<object::Target>,
        /// The bucket.
        bucket: String,
        /// What the keys begin with; empty, or without a slash at its end.
        prefix: String,
    },
}

/// The tables of a set at a scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Which set.
    pub set: Set,
    /// The scale factor, in thousandths: 1000 is 1, about a gigabyte of rows.
    pub scale_milli: u64,
    /// Who makes them.
    pub by: By,
}

/// Who makes the tables of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// Tidemark itself.
    #[default]
    Tidemark,
    /// Trino's own generator.
    Trino,
}

impl Data {
    /// The scale factor.
    pub fn scale(&self) -> f64 {
        self.scale_milli as f64 / 1e3
    }

    /// The scale factor as people write it: `0.01`, `1`, `300`.
    pub fn scale_text(&self) -> String {
        self.scale().to_string()
    }

    /// Its directory's name: `tpch-0.01`.
    pub fn name(&self) -> String {
        let by = match self.by {
            By::Tidemark => "",
            By::Trino => "-by-trino",
        };
        format!("{}-{}{by}", self.set.name(), self.scale_text())
    }

    /// The work that makes it, as a document has it.
    pub fn preparation(&self) -> String {
        let by = match self.by {
            By::Tidemark => "",
            By::Trino => ", by: trino",
        };
        format!("prepare: {{tables: {}, scale: {}{by}}}", self.set.name(), self.scale_text())
    }
}

/// What a work is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Purpose {
    /// Makes the tables, but for files that are there already.
    Make {
        /// How their files are written.
        layout: Layout,
        /// Make them anew although they are there.
        fresh: bool,
    },
    /// Has Trino make them, with its own generator.
    Generate {
        /// Compression of column chunks.
        compression: Compression,
        /// Make them anew although they are there.
        fresh: bool,
    },
    /// Runs queries.
    Query(Queries),
    /// Removes the tables.
    Remove,
}

/// How files are written: it decides over the requests of those who read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Compression of column chunks.
    pub compression: Compression,
    /// Most rows of a row group.
    pub row_group_rows: u64,
    /// Whether files have statistics of their pages and an index of where they are.
    pub page_index: bool,
    /// Bytes that a file is to have, more or less.
    pub file_bytes: u64,
}

impl Layout {
    /// How many files a set has.
    pub fn files(&self, data: &Data) -> u64 {
        data.set.tables().iter().map(|table| u64::from(table.files(data.scale(), self.file_bytes))).sum()
    }

    /// In a few words.
    pub fn describe(&self) -> String {
        format!(
            "Parquet, {}, row groups of {} rows, {}, files of about {}",
            self.compression.name(),
            units::count(self.row_group_rows),
            if self.page_index { "page index" } else { "no page index" },
            units::bytes(self.file_bytes)
        )
    }
}

/// Compression of column chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compression {
    /// None.
    None,
    /// Snappy.
    Snappy,
    /// LZ4, raw blocks.
    Lz4,
    /// Zstandard, level 1.
    #[default]
    Zstd,
}

impl Compression {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    /// What files are like that Trino writes with it, in a few words.
    pub fn describe_by_trino(self) -> String {
        format!("Parquet by Trino, {}", self.name())
    }
}

/// The queries of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queries {
    /// Each of them, in the order in which actions are numbered.
    pub list: Vec<Query>,
    /// Whether their parameters are drawn for every execution; otherwise they are those of the set's definition.
    pub random: bool,
    /// The cache state that the document declares.
    pub cache: Option<Cache>,
    /// How long one may take, nanoseconds.
    pub timeout_ns: u64,
}

/// A query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// Its name: `q18`.
    pub name: String,
    /// Its text; `None` of one that the set defines.
    pub sql: Option<String>,
}

/// The cache state that a document declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cache {
    /// What is read comes from storage.
    Cold,
    /// Memory may have it.
    Warm,
}

impl Cache {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Cache::Cold => "cold",
            Cache::Warm => "warm",
        }
    }
}

impl JobData for Job {
    fn engine(&self) -> &'static str {
        ENGINE
    }

    fn is_in_process(&self) -> bool {
        self.target.storage.embedded().is_some()
    }
}

impl Job {
    /// The job of a work; `None` if the work is of another engine.
    pub fn of(work: &Work) -> Option<&Self> {
        work.job.get()
    }
}

impl Target {
    /// What runs queries, and where the tables are, in a few words.
    pub fn describe(&self) -> String {
        format!("{}, {}", self.engine.describe(), self.storage.describe())
    }

    /// The Trino cluster that it is, if it is one.
    pub fn trino(&self) -> Option<&Trino> {
        match &self.engine {
            Engine::DataFusion(_) => None,
            Engine::Trino(trino) => Some(trino),
        }
    }
}

impl Engine {
    /// Its name.
    pub fn product(&self) -> &'static str {
        match self {
            Engine::DataFusion(_) => ds::most_read::DATAFUSION,
            Engine::Trino(_) => "Trino",
        }
    }

    /// What it is, in a few words.
    fn describe(&self) -> String {
        let product = self.product();
        match self {
            Engine::DataFusion(_) => product.to_owned(),
            Engine::Trino(trino) => format!("{product} at {}, catalog {}", trino.endpoint, trino.catalog),
        }
    }
}

/// How deep below the directory of tables links are looked for: sets, and the tables in them. Files are replaced, and not written through.
const LEVELS: u32 = 2;

/// The symbolic links among the entries of a directory and of those in it, so many levels down.
fn links(directory: &Path, levels: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => found.push(entry.path()),
            Ok(kind) if kind.is_dir() && levels > 1 => found.extend(links(&entry.path(), levels - 1)),
            _ => {}
        }
    }
    found
}

impl Storage {
    /// The embedded server that it is, if it is one.
    pub fn embedded(&self) -> Option<&object::Embedded> {
        match self {
            Storage::Objects { server, .. } => match &**server {
                object::Target::Embedded(embedded) => Some(embedded),
                _ => None,
            },
            Storage::Files { .. } => None,
        }
    }

    /// Whether `policy` allows the files of this machine that it names; `who` names the work in messages.
    ///
    /// # Errors
    /// What is not allowed, and what to do.
    pub fn check_policy(&self, policy: &Policy, who: &str) -> Result<(), String> {
        match self {
            Storage::Files { directory } => {
                policy.allow(who, directory)?;
                links(directory, LEVELS).iter().try_for_each(|link| policy.allow(who, link))
            }
            Storage::Objects { server, .. } => match &**server {
                object::Target::S3(s3) => s3.http.ca_file.iter().try_for_each(|path| policy.allow(who, path)),
                object::Target::Embedded(object::Embedded {
                    place: object::Place::Disk(Some(directory)),
                    ..
                }) => policy.allow(who, directory),
                _ => Ok(()),
            },
        }
    }

    /// Where it is, in a few words.
    pub fn describe(&self) -> String {
        match self {
            Storage::Files { directory } => format!("files in {}", directory.display()),
            Storage::Objects { server, bucket, prefix } => {
                let place = if prefix.is_empty() { String::new() } else { format!(", prefix {prefix}") };
                match &**server {
                    object::Target::S3(s3) => {
                        format!("S3 at {}, bucket {bucket}{place}", s3.http.endpoints.join(", "))
                    }
                    _ => format!("the S3 server inside Tidemark, bucket {bucket}{place}"),
                }
            }
        }
    }
}
