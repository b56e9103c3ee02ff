//! Decision support: tables that were made, queries that ran on them, and what storage saw of both.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a work did with the tables of a set: those that it made, and the queries that it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TablesUse {
    /// The work's name.
    pub work: String,
    /// Which set: `tpch`.
    pub set: String,
    /// Its scale factor, as the document writes it: `0.1`.
    pub scale: String,
    /// The same in thousandths; 0 where it was not recorded.
    pub scale_milli: u64,
    /// What runs the queries, with its version: `DataFusion 55.2.0`.
    pub engine: String,
    /// The same without its version; empty where it was not recorded.
    pub product: String,
    /// Where the tables are: `S3 at http://10.0.0.1:8000, bucket lake, prefix tpch`.
    pub storage: String,
    /// The tables that it made; `None` of a work that only reads.
    pub made: Option<TablesMade>,
    /// Executions of queries, in the order in which they ended.
    pub queries: Vec<QueryUse>,
    /// Executions that are not listed, because there were too many.
    pub unlisted: u64,
    /// What may have kept data in memory, and whether it could have held all of it.
    pub caches: Vec<CacheLayer>,
    /// Bytes of the tables' files; `None` where nobody knows.
    pub data_bytes: Option<u64>,
    /// The cache state that the document declares: `cold`, `warm`; empty where it declares none.
    pub declared_cache: String,
    /// Processor time that the load generator spent outside queries, nanoseconds; `None` where it was not measured.
    pub own_cpu_ns: Option<u64>,
}

/// Tables that a work made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TablesMade {
    /// How they were written, in a few words: `Parquet, zstd(1), row groups of 1,048,576 rows, files of up to 256 MiB`.
    pub layout: String,
    /// Each of them.
    pub tables: Vec<TableMade>,
    /// Time that its workers spent generating rows, summed, nanoseconds.
    pub generating_ns: u64,
    /// Time that they spent encoding them, summed.
    pub encoding_ns: u64,
    /// Time that they waited for storage, summed.
    pub storing_ns: u64,
}

/// A table that a work made, or found made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TableMade {
    /// Its name.
    pub name: String,
    /// Rows that its files hold, as they were read back or as the engine counts them.
    pub rows: u64,
    /// Rows that the set's definition gives it at this scale; `None` where it gives no exact number.
    pub expected_rows: Option<u64>,
    /// Bytes of its files.
    pub bytes: u64,
    /// How many files.
    pub files: u64,
    /// Files that were there already, and were kept.
    pub kept_files: u64,
}

/// One execution of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct QueryUse {
    /// Its name: `q18`.
    pub query: String,
    /// The stream that ran it, from 1.
    pub stream: u32,
    /// The pass of the stream, from 1.
    pub pass: u32,
    /// When it began, since the work's start.
    pub began_ns: u64,
    /// How long it took, to its last row.
    pub took_ns: u64,
    /// Time to its first row; `None` if it had none, or that is not known.
    pub first_row_ns: Option<u64>,
    /// Rows of its answer.
    pub rows: u64,
    /// Why it failed, if it did.
    pub fault: Option<Fault>,
    /// What its answer was compared with.
    pub answer: Answer,
    /// Time that it was queued, of an engine that says so.
    pub queued_ns: Option<u64>,
    /// Time that its plan took, of an engine that says so.
    pub planning_ns: Option<u64>,
    /// Time from then on to its end, of an engine that says so.
    pub execution_ns: Option<u64>,
    /// Bytes that it read from storage, of an engine that says so: its own word, which nobody has checked.
    pub engine_read_bytes: Option<u64>,
    /// Time of these reads, summed over all threads of the engine, of an engine that says so.
    pub engine_read_ns: Option<u64>,
    /// What storage saw of it; `None` where nobody could tell.
    pub storage: Option<StorageUse>,
}

/// What the answer of a query was compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Nothing: no answer is known for it.
    #[default]
    NotChecked,
    /// The answer that is known for the set at this scale, which another engine gave.
    Known,
    /// The other executions of the same query with the same parameters in this run.
    Others,
    /// It differed from what it was compared with.
    Differs,
}

/// Requests for the files of tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct StorageUse {
    /// Requests, of any kind.
    pub requests: u64,
    /// Those that read content.
    pub reads: u64,
    /// Bytes that they asked for.
    pub read_bytes: u64,
    /// Bytes of the column chunks that the query needs, each once; `None` where nobody knows.
    pub needed_bytes: Option<u64>,
    /// Most requests in flight at once.
    pub most_in_flight: u32,
    /// Time with at least one request in flight, nanoseconds.
    pub busy_ns: u64,
    /// Time of all requests, summed, nanoseconds.
    pub waited_ns: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Reads by size: those of up to so many bytes, and of more than the entry before.
    pub sizes: Vec<SizeCount>,
}

/// Reads of a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct SizeCount {
    /// The most bytes of one, a power of two.
    pub up_to_bytes: u64,
    /// How many.
    pub reads: u64,
}

/// A layer that may have had the tables' data in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CacheLayer {
    /// Which: `page cache of this machine`.
    pub layer: String,
    /// The most bytes that it can hold; `None` where that is not known.
    pub bytes: Option<u64>,
    /// What is known of it: `files dropped before every query`.
    pub state: String,
    /// Whether it held none of the data when queries began.
    pub is_dropped: bool,
    /// Whether it keeps data, rather than only what describes them.
    pub holds_data: bool,
}

impl TablesUse {
    /// Adds what another process did of the same work: other streams of its queries, on the same clock, or the whole of what it made.
    pub fn add(&mut self, other: TablesUse) {
        self.made = self.made.take().or(other.made);
        self.queries.extend(other.queries);
        self.queries.sort_by_key(|query| query.began_ns.saturating_add(query.took_ns));
        self.unlisted = self.unlisted.saturating_add(other.unlisted);
        let new = |cache: &CacheLayer| !self.caches.contains(cache);
        let caches: Vec<CacheLayer> = other.caches.into_iter().filter(new).collect();
        self.caches.extend(caches);
        self.data_bytes = self.data_bytes.or(other.data_bytes);
        self.own_cpu_ns = self.own_cpu_ns.zip(other.own_cpu_ns).map(|(one, other)| one.saturating_add(other));
    }
}

impl StorageUse {
    /// Adds the requests of another one.
    pub fn add(&mut self, other: &StorageUse) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.requests, other.requests);
        add(&mut self.reads, other.reads);
        add(&mut self.read_bytes, other.read_bytes);
        add(&mut self.busy_ns, other.busy_ns);
        add(&mut self.waited_ns, other.waited_ns);
        add(&mut self.failed, other.failed);
        self.needed_bytes =
            self.needed_bytes.zip(other.needed_bytes).map(|(one, other)| one.saturating_add(other));
        self.most_in_flight = self.most_in_flight.max(other.most_in_flight);
        for size in &other.sizes {
            match self.sizes.iter_mut().find(|known| known.up_to_bytes == size.up_to_bytes) {
                Some(known) => add(&mut known.reads, size.reads),
                None => self.sizes.push(*size),
            }
        }
        self.sizes.sort_unstable_by_key(|size| size.up_to_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_two_processes_are_one_work() {
        let query = |stream, began_ns| QueryUse { stream, began_ns, took_ns: 1, ..QueryUse::default() };
        let cache = CacheLayer { layer: "page cache".into(), ..CacheLayer::default() };
        let used = |queries, unlisted| TablesUse {
            work: "load".into(),
            queries,
            unlisted,
            caches: vec![cache.clone()],
            own_cpu_ns: Some(4),
            ..TablesUse::default()
        };
        let mut one = used(vec![query(1, 5), query(1, 9)], 1);
        one.add(used(vec![query(2, 7)], 2));
        assert_eq!(
            one,
            TablesUse { own_cpu_ns: Some(8), ..used(vec![query(1, 5), query(2, 7), query(1, 9)], 3) }
        );
    }

    #[test]
    fn requests_add_up_and_sizes_stay_in_order() {
        let size = |up_to_bytes, reads| SizeCount { up_to_bytes, reads };
        let mut one = StorageUse {
            reads: 3,
            most_in_flight: 4,
            needed_bytes: Some(7),
            sizes: vec![size(64, 3)],
            ..StorageUse::default()
        };
        let other = StorageUse {
            reads: 2,
            most_in_flight: 2,
            needed_bytes: Some(1),
            sizes: vec![size(8, 1), size(64, 1)],
            ..StorageUse::default()
        };
        one.add(&other);
        assert_eq!((one.reads, one.most_in_flight, one.needed_bytes), (5, 4, Some(8)));
        assert_eq!(one.sizes, [size(8, 1), size(64, 4)]);
        one.add(&StorageUse::default());
        assert_eq!(one.needed_bytes, None, "what is not known of one is not known of all");
    }
}
