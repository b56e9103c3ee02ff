//! The numbers of every operation of every run that has ended, in one table, which lists over all runs read.
//!
//! A run adds its operations when it finishes; runs of older versions, and those whose process died, are added by
//! [`Store::index_operations`].

use crate::error::StoreError;
use crate::owner;
use crate::store::{Store, signed};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use tidemark_measure::histogram::PERCENTILES;
use tidemark_measure::kind::WorkKind;
use tidemark_measure::record::{Operation, Run, Stage, State, Work};

/// One operation of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationRow {
    /// The run.
    pub run: u64,
    /// Its name.
    pub name: String,
    /// When it started, nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// How it ended.
    pub state: State,
    /// Whether the run's numbers are VALID; `None` for a run that did not end.
    pub valid: Option<bool>,
    /// `s3-main`.
    pub stage: String,
    /// The work's name.
    pub work: String,
    /// What the work is for.
    pub kind: WorkKind,
    /// Operations of each worker in flight at once.
    pub depth: u32,
    /// The operation's name.
    pub operation: String,
    /// Its class: `read`, `write`, ...
    pub sample: String,
    /// Its share of the mix, percent.
    pub weight: f64,
    /// Workers of the work.
    pub workers: u32,
    /// Drivers that shared it; 1 without drivers.
    pub drivers: u32,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Bytes that the successful ones moved.
    pub bytes: u64,
    /// Operations per second.
    pub throughput: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Mean response time, nanoseconds; `None` where it is not known.
    pub mean_ns: Option<f64>,
    /// Response times at `tidemark_measure::histogram::PERCENTILES`, nanoseconds; `None` where they are not known.
    pub percentiles_ns: [Option<f64>; PERCENTILES.len()],
    /// Its selectors and settings as the document wrote them.
    pub config: String,
    /// The newest evaluation that the run belongs to.
    pub evaluation: Option<u64>,
    /// Its arm there; empty outside evaluations, as is what follows.
    pub arm: String,
    /// Its level there.
    pub level: String,
    /// Which repeat; 0 outside evaluations.
    pub repeat: u32,
}

impl Store {
    /// The operations of the newest `runs` runs that have ended, optionally only those before the run `before`: newest run
    /// first, operations in their order.
    pub fn matrix(&self, runs: usize, before: Option<u64>) -> Result<Vec<OperationRow>, StoreError> {
        let sql = "
            SELECT runs.id, runs.name, runs.started_unix_ns, runs.state, runs.valid, stage, work, operation, sample, weight,
                   workers, drivers, ok, operations.failed, bytes, operations.throughput, operations.bandwidth, mean_ns, percentiles, config,
                   kind, depth, (SELECT max(evaluation) FROM members WHERE members.run = runs.id),
                   coalesce(arm, ''), coalesce(level, ''), coalesce(repeat, 0)
            FROM (SELECT id, name, started_unix_ns, state, valid FROM runs
                  WHERE id < ? AND indexed = 1 ORDER BY id DESC LIMIT ?) AS runs
            JOIN operations ON operations.run = runs.id
            LEFT JOIN figures ON figures.run = runs.id
            ORDER BY runs.id DESC, place";
        self.rows(sql, params![signed(before.unwrap_or(u64::MAX)), signed(runs as u64)], read)
    }

    /// Adds the operations of runs that have ended and are not in the table yet; returns the number of these runs.
    /// It costs next to nothing when there are none.
    pub fn index_operations(&mut self) -> Result<u64, StoreError> {
        let run = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, i64>(0)? as u64, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        };
        let missing = self.rows("SELECT id, state, owner FROM runs WHERE indexed = 0", [], run)?;
        let mut added = 0;
        for (id, state, owner) in missing {
            if state == State::Running.name() && owner::lives(&owner) {
                continue;
            }
            // A run that cannot be read is skipped: reading it later reports the error.
            let Ok(run) = self.load(id) else { continue };
            let write = || -> rusqlite::Result<()> {
                let transaction =
                    Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
                write(&transaction, id, &run)?;
                transaction.execute("UPDATE runs SET indexed = 1 WHERE id = ?", [signed(id)])?;
                transaction.commit()
            };
            write().map_err(|error| self.trouble(error))?;
            added += 1;
        }
        Ok(added)
    }
}

/// Replaces the stored operations of a run.
pub(crate) fn write(connection: &Connection, id: u64, run: &Run) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM operations WHERE run = ?")?.execute([signed(id)])?;
    let sql = "INSERT INTO operations (run, place, stage, work, operation, sample, weight, workers, drivers, ok, failed,
               bytes, throughput, bandwidth, mean_ns, percentiles, config, kind, depth)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let mut insert = connection.prepare_cached(sql)?;
    for (place, (stage, index, work, operation)) in of(run).enumerate() {
        let seconds = work.window_seconds();
        insert.execute(params![
            signed(id),
            place as i64,
            stage.id,
            work.name,
            operation.label,
            operation.class.name(),
            operation.weight,
            work.workers,
            drivers(stage, index),
            signed(operation.tally.ok),
            signed(operation.tally.failed()),
            signed(operation.tally.bytes),
            operation.throughput(seconds),
            operation.bandwidth(seconds),
            operation.mean_ns(),
            percentiles(operation),
            operation.config,
            work.kind.name(),
            work.depth.max(1),
        ])?;
    }
    Ok(())
}

fn of(run: &Run) -> impl Iterator<Item = (&Stage, usize, &Work, &Operation)> {
    let works =
        run.stages.iter().flat_map(|stage| stage.works.iter().enumerate().map(move |work| (stage, work)));
    works.flat_map(|(stage, (index, work))| {
        work.operations.iter().map(move |operation| (stage, index, work, operation))
    })
}

/// How many drivers shared a work.
fn drivers(stage: &Stage, work: usize) -> u32 {
    let shares = stage.shares.iter().filter(|share| share.work as usize == work);
    (shares.count() as u32).max(1)
}

/// Little-endian doubles, NaN for unknown values.
fn percentiles(operation: &Operation) -> Vec<u8> {
    let known = |fraction| operation.quantile_ns(fraction).unwrap_or(f64::NAN);
    PERCENTILES.iter().flat_map(|fraction| known(*fraction).to_le_bytes()).collect()
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<OperationRow> {
    let unsigned = |column| row.get::<_, i64>(column).map(|number| number as u64);
    // SQLite stores NaN as NULL.
    let double = |column| row.get::<_, Option<f64>>(column).map(Option::unwrap_or_default);
    let mut percentiles_ns = [None; PERCENTILES.len()];
    let blob = row.get_ref(18)?.as_blob()?;
    for (own, bytes) in percentiles_ns.iter_mut().zip(blob.as_chunks::<8>().0) {
        *own = Some(f64::from_le_bytes(*bytes)).filter(|number| !number.is_nan());
    }
    let state: String = row.get(3)?;
    Ok(OperationRow {
        run: unsigned(0)?,
        name: row.get(1)?,
        started_unix_ns: unsigned(2)?,
        // Runs in the table have ended, whatever their last record.
        state: crate::store::state_of(&state, "ended 0 0")?,
        valid: row.get(4)?,
        stage: row.get(5)?,
        work: row.get(6)?,
        operation: row.get(7)?,
        sample: row.get(8)?,
        weight: double(9)?,
        workers: row.get(10)?,
        drivers: row.get(11)?,
        ok: unsigned(12)?,
        failed: unsigned(13)?,
        bytes: unsigned(14)?,
        throughput: double(15)?,
        bandwidth: double(16)?,
        mean_ns: row.get(17)?,
        percentiles_ns,
        config: row.get(19)?,
        kind: WorkKind::named(&row.get::<_, String>(20)?),
        depth: row.get(21)?,
        evaluation: row.get::<_, Option<i64>>(22)?.map(|id| id as u64),
        arm: row.get(23)?,
        level: row.get(24)?,
        repeat: row.get(25)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Listing;
    use crate::testing::{begun, ended, interval};
    use std::time::Instant;
    use tidemark_measure::record::Share;

    fn new() -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("results.db")).unwrap();
        (directory, store)
    }

    #[test]
    fn a_finished_run_is_in_the_table_with_the_numbers_of_its_record() {
        let (_directory, mut store) = new();
        let mut run = ended("first", &[interval(0), interval(1)]);
        run.stages[1].shares = vec![Share::default(), Share { driver: 1, ..Share::default() }];
        let id = store.add(&run, &Listing::default()).unwrap();
        store.begin(&begun("goes on")).unwrap();
        let rows = store.matrix(10, None).unwrap();
        assert_eq!(rows.len(), 2, "the run that goes on is not there");
        let (row, work) = (&rows[1], &run.stages[1].works[0]);
        let operation = &work.operations[1];
        assert_eq!(
            (row.run, row.name.as_str(), row.state, row.valid.is_some()),
            (id, "first", State::Completed, true)
        );
        assert_eq!(
            (row.stage.as_str(), row.work.as_str(), row.operation.as_str()),
            ("s2-main", "w1", "write")
        );
        assert_eq!((row.ok, row.failed, row.drivers, row.workers), (201, 2, 2, 4));
        assert_eq!((row.kind, row.depth), (work.kind, work.depth.max(1)));
        assert_eq!(row.throughput, operation.throughput(work.window_seconds()));
        assert_eq!(row.mean_ns, operation.mean_ns());
        assert_eq!(row.percentiles_ns, PERCENTILES.map(|fraction| operation.quantile_ns(fraction)));
        assert_eq!(store.index_operations().unwrap(), 0, "nothing is missing");
        store.finish(id, &run, &Listing::default()).unwrap();
        assert_eq!(store.matrix(10, None).unwrap().len(), 2, "finished again: not twice");
        store.delete(id).unwrap();
        assert!(store.matrix(10, None).unwrap().is_empty());
    }

    #[test]
    fn preparation_is_told_from_load_whatever_its_name_and_operations() {
        let (_directory, mut store) = new();
        let mut run = ended("fills", &[interval(0)]);
        run.stages[1].works[0].kind = WorkKind::Prepare;
        run.stages[1].works[0].depth = 32;
        store.add(&run, &Listing::default()).unwrap();
        let rows = store.matrix(1, None).unwrap();
        assert!(rows.iter().all(|row| (row.kind, row.depth) == (WorkKind::Prepare, 32)), "{rows:?}");
        // As a version before had it: all runs are gathered again.
        store.connection().execute("UPDATE operations SET kind = '', depth = 1", []).unwrap();
        store.connection().execute("UPDATE runs SET indexed = 0", []).unwrap();
        assert_eq!(store.index_operations().unwrap(), 1);
        assert_eq!(store.matrix(1, None).unwrap(), rows);
    }

    #[test]
    fn unknown_numbers_stay_unknown() {
        let (_directory, mut store) = new();
        store.add(&ended("nothing done", &[]), &Listing::default()).unwrap();
        let row = &store.matrix(1, None).unwrap()[0];
        assert_eq!((row.mean_ns, row.percentiles_ns, row.ok), (None, [None; 9], 0));
    }

    #[test]
    fn a_run_whose_process_died_is_added_with_its_seconds() {
        let (_directory, mut store) = new();
        let id = store.begin(&begun("crashed")).unwrap();
        store.append(id, 1, 0, &[interval(0)], &[]).unwrap();
        assert_eq!(store.index_operations().unwrap(), 0, "its process lives");
        store.connection().execute("UPDATE runs SET owner = 'another-boot 1 1'", []).unwrap();
        assert_eq!(store.index_operations().unwrap(), 1);
        let rows = store.matrix(1, None).unwrap();
        assert_eq!((rows.len(), rows[0].ok, rows[0].state), (2, 100, State::Interrupted));
    }

    #[test]
    fn pages_hold_whole_runs() {
        let (_directory, mut store) = new();
        let ids: Vec<u64> =
            (0..3).map(|_| store.add(&ended("x", &[interval(0)]), &Listing::default()).unwrap()).collect();
        let runs = |rows: Vec<OperationRow>| rows.iter().map(|row| row.run).collect::<Vec<_>>();
        assert_eq!(runs(store.matrix(2, None).unwrap()), [ids[2], ids[2], ids[1], ids[1]]);
        assert_eq!(runs(store.matrix(2, Some(ids[1])).unwrap()), [ids[0], ids[0]]);
    }

    #[test]
    fn a_thousand_runs_are_listed_from_the_table() {
        let (_directory, mut store) = new();
        let mut run = ended("x", &[interval(0)]);
        let work = run.stages[1].works[0].clone();
        run.stages[1].works = vec![work; 5];
        let first = store.add(&run, &Listing::default()).unwrap();
        let copies =
            "WITH RECURSIVE counter (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM counter WHERE n < 1000)";
        let runs = format!(
            "{copies} INSERT INTO runs SELECT n, name, started_unix_ns, elapsed_ns, state, owner, operations, failed, valid,
             headline, record, indexed FROM runs, counter WHERE id = {first}"
        );
        let operations = format!(
            "{copies} INSERT INTO operations SELECT n, place, stage, work, operation, sample, weight, workers, drivers, ok,
             failed, bytes, throughput, bandwidth, mean_ns, percentiles, config, kind, depth FROM operations, counter WHERE run = {first}"
        );
        for sql in [runs, operations] {
            store.connection().execute(&sql, []).unwrap();
        }
        let start = Instant::now();
        let rows = store.matrix(1_000, None).unwrap();
        let took = start.elapsed();
        eprintln!("10 000 operations: {took:?}");
        assert_eq!(rows.len(), 10_000);
        assert!(took.as_secs_f64() < 1.0, "{took:?}");
    }
}
