//! Executions of a work's queries, as they end: on whatever thread, for the record.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tidemark_measure::record::{QueryUse, TablesUse};

/// Executions that a record lists: about 200 bytes each.
const LISTED: usize = 20_000;

/// The executions of one work.
#[derive(Debug, Default)]
pub struct Executions(Mutex<Listed>);

#[derive(Debug, Default)]
struct Listed {
    queries: Vec<QueryUse>,
    unlisted: u64,
}

impl Executions {
    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A query has ended. Of very many executions the last are only counted.
    pub fn add(&self, query: QueryUse) {
        let mut listed = self.listed();
        match listed.queries.len() {
            0..LISTED => listed.queries.push(query),
            _ => listed.unlisted += 1,
        }
    }

    /// Puts what has ended so far on record.
    pub fn put(&self, used: &mut TablesUse) {
        let listed = self.listed();
        (used.queries, used.unlisted) = (listed.queries.clone(), listed.unlisted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_very_many_are_counted() {
        let executions = Executions::default();
        (0..=LISTED as u32 + 1).for_each(|pass| executions.add(QueryUse { pass, ..QueryUse::default() }));
        let mut used = TablesUse::default();
        executions.put(&mut used);
        assert_eq!((used.queries.len(), used.unlisted), (LISTED, 2));
        assert_eq!(used.queries.last().map(|last| last.pass), Some(LISTED as u32 - 1));
    }
}
