//! What a work has done so far, for the record.

use crate::tables::make::{Spent, Written};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidemark_measure::record::{QueryUse, TableMade, TablesUse};
use tidemark_tpc::executions::Executions;

/// The books of one work.
#[derive(Debug, Default)]
pub(crate) struct Books {
    written: Mutex<Vec<Written>>,
    queries: Executions,
    /// Processor time that the load generator spent beside queries, nanoseconds.
    own_ns: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Books {
    /// A file is there.
    pub(crate) fn written(&self, file: Written) {
        lock(&self.written).push(file);
    }

    /// The last that was written of a table.
    pub(crate) fn written_of(&self, table: &str) -> Option<Written> {
        lock(&self.written).iter().rfind(|file| file.table == table).cloned()
    }

    /// A query has ended.
    pub(crate) fn ran(&self, query: QueryUse) {
        self.queries.add(query);
    }

    /// So much was spent beside queries.
    pub(crate) fn spent(&self, ns: u64) {
        self.own_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Puts executions on record, and what was spent beside them.
    pub(crate) fn put_queries(&self, used: &mut TablesUse) {
        self.queries.put(used);
        used.own_cpu_ns = Some(self.own_ns.load(Ordering::Relaxed));
    }

    /// Where the time of all files went.
    pub(crate) fn time(&self) -> Spent {
        lock(&self.written).iter().fold(Spent::default(), |sum, file| Spent {
            generating_ns: sum.generating_ns + file.spent.generating_ns,
            encoding_ns: sum.encoding_ns + file.spent.encoding_ns,
            storing_ns: sum.storing_ns + file.spent.storing_ns,
        })
    }

    /// Completes what was read back of a table by what is known of its making: files that were kept, and, where the set's definition
    /// gives no number and all files are new, the rows that were generated.
    pub(crate) fn complete(&self, table: &mut TableMade) {
        let written = lock(&self.written);
        let own = || written.iter().filter(|file| file.table == table.name);
        table.kept_files = own().filter(|file| file.kept).count() as u64;
        if table.expected_rows.is_none() && table.kept_files == 0 && own().count() as u64 == table.files {
            table.expected_rows = Some(own().map(|file| file.rows).sum());
        }
    }
}
