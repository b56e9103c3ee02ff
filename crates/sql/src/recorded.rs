//! Executions of queries in streams, each on record: what decision support is looked at by.

use crate::databases::DatabaseUse;
use crate::dialect::Dialect;
use crate::job::Job;
use crate::workload::{Runnable, Told};
use std::sync::Arc;
use tidemark_load::engine::{Operation, Outcome, Tick};
use tidemark_measure::record::{QueryUse, TablesUse};
use tidemark_plan::plan::Work;
use tidemark_tpc::executions::Executions;

/// The executions of a work, with what its record says of all of them.
pub(crate) struct Recorded {
    work: String,
    set: &'static str,
    scale: String,
    dialect: Dialect,
    /// The database, as reports name it.
    server: String,
    /// Where slots put what has ended.
    pub(crate) executions: Arc<Executions>,
}

impl Recorded {
    /// What is recorded of a load; `None` of one whose transactions are counted only.
    pub(crate) fn of(work: &Work, job: &Job, set: &'static str, workload: &dyn Runnable) -> Option<Self> {
        let target = job.instances.first();
        Some(Self {
            work: work.name.clone(),
            set,
            scale: workload.scale()?,
            dialect: target.dialect,
            server: target.describe(),
            executions: Arc::default(),
        })
    }

    /// What its database was used for, as one of these that said what they are.
    pub(crate) fn used(&self, databases: &[DatabaseUse]) -> TablesUse {
        let said = databases.iter().find(|database| database.server == self.server);
        let mut used = TablesUse {
            work: self.work.clone(),
            set: self.set.to_owned(),
            scale: self.scale.clone(),
            engine: self.dialect.product(said.map_or("", |database| &database.version)),
            storage: self.server.clone(),
            ..TablesUse::default()
        };
        self.executions.put(&mut used);
        used
    }
}

/// An execution that has ended, from `sent` to `done`.
pub(crate) fn execution(
    query: &str,
    operation: &Operation,
    sent: Tick,
    done: Tick,
    outcome: &Outcome,
    told: Told,
) -> QueryUse {
    QueryUse {
        query: query.to_owned(),
        stream: u32::try_from(operation.space).unwrap_or(u32::MAX),
        pass: u32::try_from(operation.item + 1).unwrap_or(u32::MAX),
        began_ns: sent,
        took_ns: done.saturating_sub(sent),
        rows: told.rows,
        fault: outcome.fault,
        answer: told.answer,
        ..QueryUse::default()
    }
}
