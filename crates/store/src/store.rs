//! The store itself.

use crate::codec;
use crate::error::StoreError;
use crate::listed::{self, Figures};
use crate::{operations, owner, recover, schema};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidemark_measure::record::{Driver, Note, Run, ShareSecond, Stage, State};
use tidemark_measure::tally::Interval;

/// How long to wait for another process that is writing. Writes take milliseconds: a run writes at its start, every
/// second, and at its end.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The result store: one SQLite file in WAL mode, so that readers and one writer do not wait for each other.
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    begun: Arc<AtomicU64>,
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunSummary {
    /// Its number.
    pub id: u64,
    /// The workload's name.
    pub name: String,
    /// When it started, nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// How long it took, nanoseconds; 0 while it is in progress.
    pub elapsed_ns: u64,
    /// How it ended. A run whose process died is interrupted.
    pub state: State,
    /// Measured operations.
    pub operations: u64,
    /// Those that failed.
    pub failed: u64,
    /// Whether the numbers are VALID; `None` for a run that did not end.
    pub valid: Option<bool>,
    /// The verdict's first sentence, or empty.
    pub headline: String,
    /// The newest evaluation that it belongs to, if any.
    pub evaluation: Option<u64>,
}

/// The judgement of a run or an evaluation in short, for lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Whether the numbers are VALID.
    pub valid: bool,
    /// The verdict's first sentence.
    pub headline: String,
    /// A run's figures.
    pub figures: Figures,
}

/// What a driver did in a second of a work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriverSecond {
    /// Which driver of the run.
    pub driver: u32,
    /// What it did.
    pub second: ShareSecond,
}

/// What is kept of a run in progress with each of its stages.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Kept {
    stage: Stage,
    notes: Vec<Note>,
    drivers: Vec<Driver>,
}

/// Creates the file, for its owner only: it has documents, addresses and the hashes of tokens. SQLite gives the files beside it
/// the same mode, and says why if this fails; one that exists stays as it is.
fn create(path: &Path) {
    let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
}

impl Store {
    /// Opens the store at `path`, and creates it and its directories if necessary.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let sqlite = |error| StoreError::from_sqlite(path, error);
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory).map_err(|error| StoreError::Unreachable {
                path: path.to_path_buf(),
                reason: format!("cannot create its directory: {error}"),
            })?;
        }
        create(path);
        let mut connection = Connection::open(path).map_err(sqlite)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
        schema::migrate(&mut connection, path)?;
        // In WAL mode NORMAL cannot damage the file; a power cut may cost the last seconds of a run.
        connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON").map_err(sqlite)?;
        Self::write_ahead(&connection).map_err(sqlite)?;
        Ok(Self { connection, path: path.to_path_buf(), begun: Arc::default() })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the run that this connection stored last, 0 before the first: for those who follow a run that another
    /// thread writes.
    pub fn begun(&self) -> Arc<AtomicU64> {
        self.begun.clone()
    }

    /// Stores a run that this process carries out, and assigns its number.
    pub fn begin(&mut self, run: &Run) -> Result<u64, StoreError> {
        let record = codec::encode(run).map_err(|error| self.damaged(&error))?;
        let sql = "INSERT INTO runs (name, started_unix_ns, elapsed_ns, state, owner, operations, failed, headline, record)
                   VALUES (?, ?, ?, ?, ?, 0, 0, '', ?)";
        let values = params![
            run.name,
            signed(run.started_unix_ns),
            signed(run.elapsed_ns),
            run.state.name(),
            owner::this_process(),
            record
        ];
        self.connection.execute(sql, values).map_err(|error| self.trouble(error))?;
        let id = self.connection.last_insert_rowid() as u64;
        self.begun.store(id, Ordering::Relaxed);
        match run.member.as_ref().map(|member| member.evaluation) {
            None | Some(0) => {}
            Some(evaluation) => self.adopt(evaluation, id)?,
        }
        Ok(id)
    }

    /// Stores seconds of a work, and what drivers did in them: all of it or nothing. `stage` and `work` are places in the
    /// run's lists. Parts of a second that come later are added up when they are read.
    pub fn append(
        &mut self,
        id: u64,
        stage: usize,
        work: usize,
        intervals: &[Interval],
        shares: &[DriverSecond],
    ) -> Result<(), StoreError> {
        let mut blobs = Vec::with_capacity(intervals.len());
        for interval in intervals {
            blobs.push((interval.index, codec::encode(interval).map_err(|error| self.damaged(&error))?));
        }
        let mut of_drivers = Vec::with_capacity(shares.len());
        for DriverSecond { driver, second } in shares {
            let blob = codec::encode(second).map_err(|error| self.damaged(&error))?;
            of_drivers.push((*driver, second.index, blob));
        }
        let write = || -> rusqlite::Result<()> {
            let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let place = (signed(id), stage as i64, work as i64);
            let sql = "INSERT INTO seconds (run, stage, work, second, interval) VALUES (?, ?, ?, ?, ?)";
            for (second, blob) in &blobs {
                let values = params![place.0, place.1, place.2, second, blob];
                transaction.prepare_cached(sql)?.execute(values)?;
            }
            let sql = "INSERT OR REPLACE INTO shares (run, stage, work, driver, second, record) VALUES (?, ?, ?, ?, ?, ?)";
            for (driver, second, blob) in &of_drivers {
                let values = params![place.0, place.1, place.2, driver, second, blob];
                transaction.prepare_cached(sql)?.execute(values)?;
            }
            transaction.commit()
        };
        write().map_err(|error| self.trouble_with(id, error))
    }

    /// Stores a run that has ended, replacing what [`Store::begin`] stored, and how to list it.
    pub fn finish(&mut self, id: u64, run: &Run, listing: &Listing) -> Result<(), StoreError> {
        let record = codec::encode(run).map_err(|error| self.damaged(&error))?;
        let tallies = || run.stages.iter().flat_map(|stage| &stage.works).flat_map(|work| &work.operations);
        let count = |numbers: &mut dyn Iterator<Item = u64>| signed(numbers.fold(0, u64::saturating_add));
        let sql = "UPDATE runs SET name = ?, started_unix_ns = ?, elapsed_ns = ?, state = ?, owner = '',
                   operations = ?, failed = ?, valid = ?, headline = ?, record = ?, indexed = 1 WHERE id = ?";
        let values = params![
            run.name,
            signed(run.started_unix_ns),
            signed(run.elapsed_ns),
            run.state.name(),
            count(&mut tallies().map(|operation| operation.tally.total())),
            count(&mut tallies().map(|operation| operation.tally.failed())),
            listing.valid,
            listing.headline,
            record,
            signed(id)
        ];
        let write = || -> rusqlite::Result<usize> {
            // `&self` is enough for SQLite, and there is no other transaction in this connection.
            let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let changed = transaction.execute(sql, values)?;
            if changed > 0 {
                transaction.execute("DELETE FROM stages WHERE run = ?", [signed(id)])?;
                transaction.execute("DELETE FROM shares WHERE run = ?", [signed(id)])?;
                operations::write(&transaction, id, run)?;
                listed::write(&transaction, id, run, &listing.figures)?;
            }
            transaction.commit()?;
            Ok(changed)
        };
        if write().map_err(|error| self.trouble(error))? == 0 { Err(self.no_such_run(id)) } else { Ok(()) }
    }

    /// Reads a run. A run whose process died before it finished is interrupted, and has what its stored seconds add up to.
    pub fn load(&self, id: u64) -> Result<Run, StoreError> {
        let sql = "SELECT record, owner, elapsed_ns FROM runs WHERE id = ?";
        let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let row = self.connection.query_row(sql, [signed(id)], columns).optional();
        let (record, owner, elapsed_ns): (Vec<u8>, String, i64) =
            row.map_err(|error| self.trouble(error))?.ok_or_else(|| self.no_such_run(id))?;
        let mut run: Run = codec::decode(&record).map_err(|error| self.damaged(&error))?;
        run.id = id;
        if run.state == State::Running {
            self.add_stages(id, &mut run, elapsed_ns as u64)?;
        }
        if run.state == State::Running && !owner::lives(&owner) {
            // Stages that had ended are stored completely.
            let is_whole: Vec<bool> = run.stages.iter().map(|stage| stage.ended_ns > 0).collect();
            recover::interrupt(&mut run);
            for (stage, work) in self.works_of(id)? {
                if is_whole.get(stage) == Some(&true) {
                    continue;
                }
                self.seconds(id, stage, work, |interval| recover::add(&mut run, stage, work, interval))?;
            }
            self.add_shares(id, &mut run, &is_whole)?;
        }
        Ok(run)
    }

    /// Rebuilds the runs whose processes died and stores them as they are found, so that lists and reports say the same.
    /// `listing` says how to list one. Returns how many there were; it costs next to nothing when there are none.
    ///
    /// # Errors
    /// When the store cannot be written; such runs are rebuilt again whenever they are read.
    pub fn salvage(&mut self, listing: impl Fn(&Run) -> Listing) -> Result<u64, StoreError> {
        let sql = "SELECT id, owner FROM runs WHERE state = ?";
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, String>(1)?));
        let mut salvaged = 0;
        for (id, owner) in self.rows(sql, [State::Running.name()], row)? {
            if owner::lives(&owner) {
                continue;
            }
            // A run that cannot be read is skipped: reading it later reports the error.
            let Ok(run) = self.load(id) else { continue };
            self.finish(id, &run, &listing(&run))?;
            salvaged += 1;
        }
        Ok(salvaged)
    }

    /// Visits a work's stored seconds in order, with the histograms of every operation, for heat maps and for percentiles
    /// over parts of a run. One second is in memory at a time.
    pub fn seconds(
        &self,
        id: u64,
        stage: usize,
        work: usize,
        mut visit: impl FnMut(&Interval),
    ) -> Result<(), StoreError> {
        let sql = "SELECT interval FROM seconds WHERE run = ? AND stage = ? AND work = ? ORDER BY second";
        let mut select = self.connection.prepare_cached(sql).map_err(|error| self.trouble(error))?;
        let place = params![signed(id), stage as i64, work as i64];
        let blobs = select.query_map(place, |row| row.get(0)).map_err(|error| self.trouble(error))?;
        let mut current: Option<Interval> = None;
        for blob in blobs {
            let blob: Vec<u8> = blob.map_err(|error| self.trouble(error))?;
            let next: Interval = codec::decode(&blob).map_err(|error| self.damaged(&error))?;
            match &mut current {
                Some(current) if current.index == next.index => current.add(&next),
                _ => {
                    current.iter().for_each(&mut visit);
                    current = Some(next);
                }
            }
        }
        current.iter().for_each(visit);
        Ok(())
    }

    /// The works, as (stage, work), that have stored seconds.
    fn works_of(&self, id: u64) -> Result<Vec<(usize, usize)>, StoreError> {
        let place =
            |row: &rusqlite::Row<'_>| Ok((row.get::<_, u32>(0)? as usize, row.get::<_, u32>(1)? as usize));
        let sql = "SELECT DISTINCT stage, work FROM seconds WHERE run = ? ORDER BY stage, work";
        self.rows(sql, [signed(id)], place)
    }

    /// All runs, newest first.
    pub fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.summaries("ORDER BY id DESC", [])
    }

    /// The newest runs before a number, as [`list`](Self::list) has them.
    pub fn list_before(&self, before: Option<u64>, most: u64) -> Result<Vec<RunSummary>, StoreError> {
        let before = before.map_or(i64::MAX, signed);
        self.summaries("WHERE id < ? ORDER BY id DESC LIMIT ?", [before, signed(most)])
    }

    /// One run as it stands in the list.
    pub fn summary(&self, id: u64) -> Result<RunSummary, StoreError> {
        self.summaries("WHERE id = ?", [signed(id)])?.pop().ok_or_else(|| self.no_such_run(id))
    }

    fn summaries(&self, which: &str, values: impl rusqlite::Params) -> Result<Vec<RunSummary>, StoreError> {
        let sql = format!(
            "SELECT id, name, started_unix_ns, elapsed_ns, state, owner, operations, failed, valid, headline,
             (SELECT max(evaluation) FROM members WHERE run = runs.id) FROM runs {which}"
        );
        let summary = |row: &rusqlite::Row<'_>| {
            let unsigned = |column| row.get::<_, i64>(column).map(|number| number as u64);
            let state = state_of(&row.get::<_, String>(4)?, &row.get::<_, String>(5)?)?;
            Ok(RunSummary {
                id: unsigned(0)?,
                name: row.get(1)?,
                started_unix_ns: unsigned(2)?,
                elapsed_ns: unsigned(3)?,
                state,
                operations: unsigned(6)?,
                failed: unsigned(7)?,
                valid: row.get(8)?,
                headline: row.get(9)?,
                evaluation: row.get::<_, Option<i64>>(10)?.map(|id| id as u64),
            })
        };
        self.rows(&sql, values, summary)
    }

    /// The number of the newest run, if there is one.
    pub fn latest(&self) -> Result<Option<u64>, StoreError> {
        let newest =
            self.connection.query_row("SELECT max(id) FROM runs", [], |row| row.get::<_, Option<i64>>(0));
        Ok(newest.map_err(|error| self.trouble(error))?.map(|id| id as u64))
    }

    /// Stores what is known so far of one stage of a run in progress; the others stay as they were stored. What this costs
    /// does not depend on how many they are.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn keep(&mut self, id: u64, run: &Run, stage: usize) -> Result<(), StoreError> {
        let Some(known) = run.stages.get(stage) else { return Ok(()) };
        let known = (known, &run.notes, &run.drivers);
        let record = codec::encode(&known).map_err(|error| self.damaged(&error))?;
        let write = || -> rusqlite::Result<()> {
            let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let sql = "INSERT OR REPLACE INTO stages (run, stage, record) VALUES (?, ?, ?)";
            transaction.execute(sql, params![signed(id), stage as i64, record])?;
            let sql = "UPDATE runs SET elapsed_ns = ? WHERE id = ?";
            transaction.execute(sql, params![signed(run.elapsed_ns), signed(id)])?;
            transaction.commit()
        };
        write().map_err(|error| self.trouble_with(id, error))
    }

    /// Adds what was kept of the stages of a run in progress, and how long it had taken by then.
    fn add_stages(&self, id: u64, run: &mut Run, elapsed_ns: u64) -> Result<(), StoreError> {
        let sql = "SELECT stage, record FROM stages WHERE run = ? ORDER BY stage";
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, u32>(0)? as usize, row.get::<_, Vec<u8>>(1)?));
        for (place, record) in self.rows(sql, [signed(id)], row)? {
            let kept: Kept = codec::decode(&record).map_err(|error| self.damaged(&error))?;
            if let Some(known) = run.stages.get_mut(place) {
                *known = kept.stage;
                (run.notes, run.drivers, run.elapsed_ns) = (kept.notes, kept.drivers, elapsed_ns);
            }
        }
        Ok(())
    }

    /// Adds what drivers did in the stored seconds of the stages that had not ended.
    fn add_shares(&self, id: u64, run: &mut Run, is_whole: &[bool]) -> Result<(), StoreError> {
        let sql = "SELECT stage, work, driver, record FROM shares WHERE run = ? ORDER BY stage, work, driver, second";
        let row = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, u32>(0)? as usize, row.get(1)?, row.get(2)?, row.get::<_, Vec<u8>>(3)?))
        };
        for (stage, work, driver, record) in self.rows(sql, [signed(id)], row)? {
            if is_whole.get(stage) != Some(&true) {
                let second = codec::decode(&record).map_err(|error| self.damaged(&error))?;
                recover::add_share(run, stage, work, driver, second);
            }
        }
        Ok(())
    }

    /// Deletes a run and its seconds, unless it is in progress. The file keeps its size; the space is reused.
    pub fn delete(&mut self, id: u64) -> Result<(), StoreError> {
        if self.summary(id)?.state == State::Running {
            return Err(StoreError::StillRunning { id });
        }
        let deleted = self.connection.execute("DELETE FROM runs WHERE id = ?", [signed(id)]);
        match deleted.map_err(|error| self.trouble(error))? {
            0 => Err(self.no_such_run(id)),
            _ => Ok(()),
        }
    }

    /// Switches to the write-ahead log. SQLite does not wait for other processes there, whatever the busy timeout: it would
    /// wait for itself when two of them switch at once.
    fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
        let until = Instant::now() + BUSY_TIMEOUT;
        loop {
            let switched = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
            match switched.as_ref().err().and_then(rusqlite::Error::sqlite_error_code) {
                Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
                    if Instant::now() < until =>
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => return switched,
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let all = || -> rusqlite::Result<_> {
            self.connection.prepare_cached(sql)?.query_map(values, read)?.collect()
        };
        all().map_err(|error| self.trouble(error))
    }

    pub(crate) fn trouble(&self, error: rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.path, error)
    }

    /// As [`Store::trouble`], where a missing run breaks a reference to it.
    fn trouble_with(&self, id: u64, error: rusqlite::Error) -> StoreError {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::ConstraintViolation) => self.no_such_run(id),
            _ => self.trouble(error),
        }
    }

    pub(crate) fn no_such_run(&self, id: u64) -> StoreError {
        StoreError::NoSuchRun { path: self.path.clone(), id }
    }

    pub(crate) fn damaged(&self, error: &std::io::Error) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), what: format!("a stored record is damaged: {error}") }
    }
}

/// SQLite has signed numbers only; times and counts stay far below the limit.
pub(crate) fn signed(number: u64) -> i64 {
    number.min(i64::MAX as u64) as i64
}

/// A stored state. `running` holds only as long as the owner lives.
///
/// # Errors
/// When there is no such state.
pub(crate) fn state_of(name: &str, owner: &str) -> rusqlite::Result<State> {
    let states = [State::Waiting, State::Running, State::Completed, State::Failed, State::Interrupted];
    match states.into_iter().find(|state| state.name() == name) {
        Some(State::Running) if !owner::lives(owner) => Ok(State::Interrupted),
        Some(state) => Ok(state),
        None => Err(rusqlite::Error::FromSqlConversionFailure(
            0,
            rusqlite::types::Type::Text,
            format!("`{name}` is no state of a run that this version knows").into(),
        )),
    }
}

/// Now, nanoseconds since 1970 UTC.
pub(crate) fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
