//! What the clients of a stage counted beyond the outcomes of their operations, database by database.

use crate::ledger::Account;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tidemark_measure::counts::FaultCounts;

/// What the clients of one database counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Attempts that were rolled back and made again, by what went wrong.
    pub(crate) aborts: FaultCounts,
    /// Transactions whose commit was acknowledged: at least one for every operation that committed something.
    pub(crate) acknowledged: u64,
    /// What each client knows of its commits, where they keep a ledger.
    pub(crate) accounts: Vec<Account>,
}

impl Counts {
    /// Adds what others counted.
    pub(crate) fn add(&mut self, other: Counts) {
        self.aborts.add(&other.aborts);
        self.acknowledged = self.acknowledged.saturating_add(other.acknowledged);
        self.accounts.extend(other.accounts);
    }
}

/// The counts of a stage. Each thread adds its own when it ends.
#[derive(Debug, Default)]
pub(crate) struct Counted(Mutex<BTreeMap<String, Counts>>);

impl Counted {
    /// Adds what a thread counted at a database, which is named as in reports.
    pub(crate) fn add(&self, server: String, counts: Counts) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(server).or_default().add(counts);
    }

    /// All of it; counting starts anew.
    pub(crate) fn take(&self) -> BTreeMap<String, Counts> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
