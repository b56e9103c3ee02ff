//! Exact counts of requests and their outcomes.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::operation::Operation;

/// The counts of one embedded server since its start, and what it holds now.
///
/// A request is counted before it is processed, and its outcome before the first byte of the answer is written. A
/// client that has read an answer therefore finds it counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The counts of every operation that was requested at least once.
    pub operations: BTreeMap<Operation, OperationStatistics>,
    /// Connections accepted.
    pub connections: u64,
    /// Buckets that exist.
    pub buckets: u64,
    /// Objects that exist.
    pub objects: u64,
    /// The sum of the sizes of the objects that exist, in bytes.
    pub object_bytes: u64,
    /// Multipart uploads that were neither completed nor aborted.
    pub uploads: u64,
    /// Files found at the start that held no whole object: what a crash leaves of a write that was not durable.
    /// They are left in place and not served.
    pub unreadable_files: u64,
}

impl Statistics {
    /// The counts of one operation; zeros if it was never requested.
    #[must_use]
    pub fn of(&self, operation: Operation) -> OperationStatistics {
        self.operations.get(&operation).copied().unwrap_or_default()
    }

    /// The sum over all operations.
    #[must_use]
    pub fn total(&self) -> OperationStatistics {
        let mut total = OperationStatistics::default();
        for counts in self.operations.values() {
            total += *counts;
        }
        total
    }
}

/// The counts of one operation, or of all.
///
/// `requests - succeeded - failed - disconnected` requests are in progress, or were abandoned by the client before
/// an answer was ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationStatistics {
    /// Requests whose header arrived.
    pub requests: u64,
    /// Requests answered with a status below 400.
    pub succeeded: u64,
    /// Requests answered with a status of 400 or more, by the store or by a fault.
    pub failed: u64,
    /// Requests a fault answered by closing the connection.
    pub disconnected: u64,
    /// Bytes of the bodies of requests that succeeded, as they came (with the framing of aws-chunked, if any).
    pub bytes_in: u64,
    /// Bytes of the bodies of answers with a status below 400, as handed to the connection.
    pub bytes_out: u64,
}

impl AddAssign for OperationStatistics {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.disconnected += other.disconnected;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

/// The live counters behind [`Statistics`].
pub(super) struct Counters {
    operations: Vec<OperationCounters>,
    connections: AtomicU64,
}

#[derive(Default)]
struct OperationCounters {
    requests: AtomicU64,
    succeeded: AtomicU64,
    failed: AtomicU64,
    disconnected: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl Counters {
    pub(super) fn new() -> Self {
        let operations = Operation::ALL.iter().map(|_| OperationCounters::default()).collect();
        Self { operations, connections: AtomicU64::new(0) }
    }

    fn of(&self, operation: Operation) -> &OperationCounters {
        // The vector has one entry per operation, in the order of their declaration.
        &self.operations[operation as usize]
    }

    pub(super) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn arrived(&self, operation: Operation) {
        self.of(operation).requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn succeeded(&self, operation: Operation, bytes_in: u64) {
        let counters = self.of(operation);
        counters.succeeded.fetch_add(1, Ordering::Relaxed);
        counters.bytes_in.fetch_add(bytes_in, Ordering::Relaxed);
    }

    pub(super) fn failed(&self, operation: Operation) {
        self.of(operation).failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn disconnected(&self, operation: Operation) {
        self.of(operation).disconnected.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, operation: Operation, bytes: u64) {
        self.of(operation).bytes_out.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The counts so far; what the store holds is filled in by the caller.
    pub(super) fn snapshot(&self) -> Statistics {
        let operations = Operation::ALL
            .iter()
            .map(|&operation| (operation, self.of(operation).snapshot()))
            .filter(|(_, counts)| counts.requests > 0)
            .collect();
        let connections = self.connections.load(Ordering::Relaxed);
        Statistics { operations, connections, ..Statistics::default() }
    }
}

impl OperationCounters {
    fn snapshot(&self) -> OperationStatistics {
        OperationStatistics {
            requests: self.requests.load(Ordering::Relaxed),
            succeeded: self.succeeded.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            disconnected: self.disconnected.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
        }
    }
}
