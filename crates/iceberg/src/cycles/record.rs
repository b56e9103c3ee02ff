//! Cycles of a table that changes: what was done to it, what its queries took meanwhile, and whether their answers were right.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The cycles of a work: rows appended and merged, queries, and at times a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CyclesUse {
    /// The work's name.
    pub work: String,
    /// The table: `events`.
    pub table: String,
    /// Where it is: `S3 at http://10.0.0.1:8000, bucket lake`.
    pub storage: String,
    /// How rows get new values; `None`: they keep those that they have.
    pub merge: Option<MergeMode>,
    /// A cycle of so many ends with a compaction; `None`: none does.
    pub compact_every: Option<u32>,
    /// The cycles that were begun, in order.
    pub cycles: Vec<CycleUse>,
}

/// How rows of a table get new values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeMode {
    /// Files with such rows are written anew.
    #[default]
    CopyOnWrite,
    /// The new rows are appended, and a file of deletes says where the old ones are: readers leave them out.
    MergeOnRead,
}

/// One cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CycleUse {
    /// Its number, from 1; 0 is what came before the first.
    pub cycle: u32,
    /// The table as its queries found it; `None` if none got that far.
    pub found: Option<TableState>,
    /// What was done in it, in order.
    pub steps: Vec<StepUse>,
}

/// What the current snapshot of a table consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TableState {
    /// Rows, without those that are deleted.
    pub rows: u64,
    /// Data files.
    pub files: u64,
    /// Files that say which rows are deleted.
    pub delete_files: u64,
    /// Manifests.
    pub manifests: u64,
    /// Bytes of data files and files of deletes.
    pub bytes: u64,
}

/// What a step does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Appends the rows that the table begins with.
    #[default]
    Fill,
    /// Appends a few rows.
    Ingest,
    /// Gives some rows new values.
    Merge,
    /// Asks for an answer.
    Query,
    /// Writes small files together into large ones.
    Compact,
}

/// The operations of one kind in a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct StepUse {
    /// What they are called: `ingest`, `totals`.
    pub name: String,
    /// What they do.
    pub kind: StepKind,
    /// Those that succeeded.
    pub ok: u64,
    /// Those that failed.
    pub failed: u64,
    /// Of those, queries whose answer was wrong.
    pub wrong: u64,
    /// Time of those that succeeded, summed, nanoseconds.
    pub took_ns: u64,
    /// Of it, time until it was known which files a query reads, and how, nanoseconds.
    pub planning_ns: u64,
    /// Attempts at commits.
    pub attempts: u64,
    /// Requests of those that succeeded.
    pub requests: u64,
    /// Bytes that they read.
    pub read_bytes: u64,
    /// Bytes that they wrote.
    pub written_bytes: u64,
}

/// What the queries of a cycle took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueriesTook {
    /// Time, nanoseconds.
    pub ns: u64,
    /// Of it, time until it was known which files they read, and how, nanoseconds.
    pub planning_ns: u64,
    /// Requests.
    pub requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
}

impl CycleUse {
    /// What its queries took; `None` if one of them failed, or there was none.
    pub fn queries(&self) -> Option<QueriesTook> {
        let mut took = None;
        for step in self.steps.iter().filter(|step| step.kind == StepKind::Query) {
            if step.failed > 0 || step.ok == 0 {
                return None;
            }
            let sum: &mut QueriesTook = took.get_or_insert_default();
            sum.ns = sum.ns.saturating_add(step.took_ns);
            sum.planning_ns = sum.planning_ns.saturating_add(step.planning_ns);
            sum.requests = sum.requests.saturating_add(step.requests);
            sum.read_bytes = sum.read_bytes.saturating_add(step.read_bytes);
        }
        took
    }

    /// What was done of this kind.
    pub fn of(&self, kind: StepKind) -> Option<&StepUse> {
        self.steps.iter().find(|step| step.kind == kind)
    }
}

impl CyclesUse {
    /// The cycles whose queries were all asked and succeeded, with what they took and what they found.
    pub fn measured(&self) -> impl Iterator<Item = (&CycleUse, QueriesTook, TableState)> {
        let asked = |cycle: &CycleUse| cycle.steps.iter().filter(|step| step.kind == StepKind::Query).count();
        let all = self.cycles.iter().map(asked).max().unwrap_or(0);
        let whole = self.cycles.iter().filter(move |cycle| asked(cycle) == all);
        whole.filter_map(|cycle| Some((cycle, cycle.queries()?, cycle.found?)))
    }

    /// Queries that were answered rightly, and those whose answer was wrong.
    pub fn answers(&self) -> (u64, u64) {
        let queries =
            self.cycles.iter().flat_map(|cycle| &cycle.steps).filter(|step| step.kind == StepKind::Query);
        queries.fold((0, 0), |(right, wrong), step| (right + step.ok, wrong + step.wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, ns: u64) -> StepUse {
        let (name, kind) = (name.to_owned(), StepKind::Query);
        StepUse { name, kind, ok: 2, took_ns: ns, requests: 3, ..StepUse::default() }
    }

    #[test]
    fn a_cycle_counts_if_all_of_its_queries_succeeded() {
        let ingest = StepUse { kind: StepKind::Ingest, ok: 1, took_ns: 9, ..StepUse::default() };
        let steps = vec![ingest, query("a", 5), query("b", 7)];
        let whole = CycleUse { cycle: 1, steps, found: Some(TableState::default()) };
        let took = whole.queries().unwrap();
        assert_eq!((took.ns, took.requests), (12, 6));
        let mut partly = CycleUse { cycle: 2, ..whole.clone() };
        (partly.steps[2].failed, partly.steps[2].wrong) = (1, 1);
        let none = CycleUse { cycle: 3, steps: vec![whole.steps[0].clone()], ..CycleUse::default() };
        // The load was over before its last query.
        let cut = CycleUse { cycle: 4, steps: whole.steps[..2].to_vec(), ..whole.clone() };
        let used = CyclesUse { cycles: vec![whole, partly, none, cut], ..CyclesUse::default() };
        assert_eq!(used.measured().map(|(cycle, ..)| cycle.cycle).collect::<Vec<_>>(), [1]);
        assert_eq!(used.answers(), (10, 1));
    }
}
