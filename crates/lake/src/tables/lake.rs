//! The files of a set of tables: which there are, whether they are ours, whether they are all there.
//!
//! A table is a directory, `tpch-0.1/lineitem`, of files such as `part-2-of-4.parquet`. Each says in its footer what it is:
//! set, scale, part and layout. So an interrupted generation goes on where it was, files that are somebody else's stay, and what
//! a load reads is known to be whole: rows are counted from the footers, as they are read back.

use crate::tables::failure::Failure;
use crate::tables::rows::exact_rows;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use parquet::arrow::async_reader::MetadataFetch;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tidemark_analytics::job::{Data, Layout};
use tidemark_analytics::sets::Table;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::TableMade;

/// The key under which a file's footer says what it is.
pub(crate) const LABEL: &str = "tidemark";

/// Raised when the rows or the form of files change.
const VERSION: u32 = 1;

/// Bytes at the end of a file that are read at first: most footers are shorter.
const FOOTER: usize = 64 << 10;

/// Footers that are read at once.
const READERS: usize = 16;

/// One file of a table, by its number from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub table: Table,
    pub part: u32,
    pub of: u32,
}

impl Part {
    /// All files of a set.
    pub(crate) fn all(data: &Data, layout: &Layout) -> Vec<Part> {
        let of_table = |table: &Table| {
            let (table, of) = (*table, table.files(data.scale(), layout.file_bytes));
            (1..=of).map(move |part| Part { table, part, of })
        };
        let mut parts: Vec<Part> = data.set.tables().iter().flat_map(of_table).collect();
        // The large ones first: whoever is left with the last file has a small one.
        parts.sort_by_key(|part| std::cmp::Reverse(part.table.bytes_at(data.scale()) / u64::from(part.of)));
        parts
    }

    /// Its name within its table's directory.
    fn name(&self) -> String {
        format!("part-{}-of-{}.parquet", self.part, self.of)
    }

    /// What its footer says.
    pub(crate) fn label(&self, data: &Data, layout: &Layout) -> String {
        format!(
            "{} {}, {} of {}; {}; version {VERSION}",
            data.name(),
            self.table.name,
            self.part,
            self.of,
            layout.describe()
        )
    }
}

/// A file that is there.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub path: Path,
    pub table: Table,
    pub bytes: u64,
    pub footer: Arc<ParquetMetaData>,
}

impl File {
    /// What it says it is; `None` of a file that Tidemark did not write.
    fn label(&self) -> Option<&str> {
        let pairs = self.footer.file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == LABEL)?.value.as_deref()
    }

    /// Whether it is what this label says.
    pub(crate) fn is(&self, label: &str) -> bool {
        self.label() == Some(label)
    }

    /// Its rows.
    fn rows(&self) -> u64 {
        u64::try_from(self.footer.file_metadata().num_rows()).unwrap_or(0)
    }
}

/// The directory of a set of tables.
#[derive(Clone, Debug)]
pub(crate) struct Lake {
    pub store: Arc<dyn ObjectStore>,
    pub root: Path,
    pub data: Data,
}

/// The end of a file, as it is fetched.
struct Footer<'a> {
    store: &'a dyn ObjectStore,
    path: &'a Path,
}

impl MetadataFetch for Footer<'_> {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        let fetched = self.store.get_range(self.path, range);
        Box::pin(async { fetched.await.map_err(|error| ParquetError::External(Box::new(error))) })
    }
}

/// What is in it.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Files that Tidemark wrote.
    pub files: Vec<File>,
    /// The others.
    pub strangers: Vec<Path>,
}

impl Lake {
    /// The directory of a table.
    pub(crate) fn table(&self, table: &Table) -> Path {
        self.root.clone().join(self.data.name()).join(table.name)
    }

    /// Where a part belongs.
    pub(crate) fn place(&self, part: &Part) -> Path {
        self.table(&part.table).join(part.name())
    }

    /// The files of a table, whoever wrote them.
    pub(crate) async fn files(&self, table: &Table) -> Result<Vec<ObjectMeta>, Failure> {
        Ok(self.store.list(Some(&self.table(table))).try_collect().await?)
    }

    /// Looks at all files of the tables.
    pub(crate) async fn look(&self) -> Result<Found, Failure> {
        let mut listed = Vec::new();
        for table in self.data.set.tables() {
            let files = self.files(table).await?;
            listed.extend(files.into_iter().map(|file| (*table, file)));
        }
        let mut found = Found::default();
        let footers = listed.into_iter().map(|(table, meta)| async move {
            let read = self.footer(&meta.location, meta.size).await;
            (table, meta, read)
        });
        let mut footers = futures_util::stream::iter(footers).buffer_unordered(READERS);
        while let Some((table, meta, read)) = footers.next().await {
            let footer = match read {
                Ok(footer) => footer,
                // No Parquet: somebody else's. A store that fails is no such thing.
                Err(failure) if failure.fault == Fault::WrongContent => {
                    found.strangers.push(meta.location);
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let file = File { path: meta.location, table, bytes: meta.size, footer };
            match file.label() {
                Some(_) => found.files.push(file),
                None => found.strangers.push(file.path),
            }
        }
        found.files.sort_by(|one, other| one.path.cmp(&other.path));
        found.strangers.sort();
        Ok(found)
    }

    async fn footer(&self, path: &Path, bytes: u64) -> Result<Arc<ParquetMetaData>, Failure> {
        let reader = ParquetMetaDataReader::new().with_prefetch_hint(Some(FOOTER));
        let file = Footer { store: &*self.store, path };
        Ok(Arc::new(reader.load_and_finish(file, bytes).await?))
    }

    /// Whether a part is there as it is to be written.
    pub(crate) async fn has(&self, part: &Part, label: &str) -> Result<Option<File>, Failure> {
        let path = self.place(part);
        let meta = match self.store.head(&path).await {
            Ok(meta) => meta,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let footer = match self.footer(&path, meta.size).await {
            Ok(footer) => footer,
            Err(failure) if failure.fault == Fault::WrongContent => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let file = File { path, table: part.table, bytes: meta.size, footer };
        Ok(file.is(label).then_some(file))
    }

    /// Removes files.
    pub(crate) async fn remove(&self, files: impl Iterator<Item = Path>) -> Result<(), Failure> {
        let paths: Vec<_> = files.map(Ok).collect();
        let paths = futures_util::stream::iter(paths).boxed();
        self.store.delete_stream(paths).try_for_each(|_| std::future::ready(Ok(()))).await?;
        Ok(())
    }
}

impl Found {
    /// What is there of each table, in the set's order.
    pub(crate) fn tables(&self, data: &Data) -> Vec<TableMade> {
        let mut tables: Vec<TableMade> = Vec::new();
        for table in data.set.tables() {
            let own = || self.files.iter().filter(|file| file.table.name == table.name);
            tables.push(TableMade {
                name: table.name.to_owned(),
                rows: own().map(File::rows).sum(),
                expected_rows: exact_rows(data.set, table.name, data.scale()),
                bytes: own().map(|file| file.bytes).sum(),
                files: own().count() as u64,
                kept_files: 0,
            });
        }
        tables
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// Why the tables cannot be queried: files are missing, or belong to another set of them.
    pub(crate) fn gap(&self, data: &Data) -> Option<String> {
        let mut labels: BTreeMap<&str, Vec<(u32, u32, String)>> = BTreeMap::new();
        for file in &self.files {
            let told = file.label().and_then(|label| told(label, data, file.table.name));
            let Some(told) = told else {
                return Some(format!(
                    "{} is of another set of tables, or of another version of Tidemark",
                    file.path
                ));
            };
            labels.entry(file.table.name).or_default().push(told);
        }
        let layouts: std::collections::BTreeSet<_> =
            labels.values().flatten().map(|(.., layout)| layout.as_str()).collect();
        if layouts.len() > 1 {
            return Some("files are of different layouts".into());
        }
        for table in data.set.tables() {
            let Some(parts) = labels.get(table.name) else {
                let place = format!("/{}/", table.name);
                let stranger = self.strangers.iter().find(|path| path.as_ref().contains(&place));
                return Some(match stranger {
                    Some(path) => format!("{path} is damaged, or Tidemark did not write it"),
                    None => format!("{} has no files", table.name),
                });
            };
            let of = parts.iter().map(|(_, of, _)| *of).max().unwrap_or(0);
            let missing = (1..=of).find(|part| !parts.iter().any(|one| (one.0, one.1) == (*part, of)));
            if let Some(part) = missing {
                return Some(format!("file {part} of {of} of {} is missing", table.name));
            }
            if parts.len() != of as usize {
                return Some(format!("{} has {} files instead of {of}", table.name, parts.len()));
            }
        }
        None
    }
}

/// The part, the number of parts and the layout that a label tells of this table.
fn told(label: &str, data: &Data, table: &str) -> Option<(u32, u32, String)> {
    let rest = label.strip_prefix(&format!("{} {table}, ", data.name()))?;
    let (numbers, layout) = rest.split_once("; ")?;
    let (part, of) = numbers.split_once(" of ")?;
    Some((part.parse().ok()?, of.parse().ok()?, layout.to_owned()))
}
