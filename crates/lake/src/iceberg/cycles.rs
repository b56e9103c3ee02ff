//! Cycles of a table: rows come and change, queries are asked, and at times small files are written together. One step at a time.
//!
//! What the table must contain is known ([`Model`]), because every row follows from a seed: so each answer is compared with what it
//! must be. A commit of which nobody knows whether it was made counts as soon as the table's history has its snapshot.

use crate::iceberg::commit::{self, Change, Contents};
use crate::iceberg::deletes::{self, Deleted};
use crate::iceberg::files::{Files, Only, Version};
use crate::iceberg::history::Acknowledged;
use crate::iceberg::load::Books;
use crate::iceberg::manifest;
use crate::iceberg::model::{Delta, Model};
use crate::iceberg::records::{DataContentType, DataFile};
use crate::iceberg::rows::{self, Row};
use crate::iceberg::scan::{Question, Reader, Reply};
use crate::iceberg::table::Operation as Kind;
use crate::tables::failure::Failure;
use crate::tables::tasks::{Doing, Ended, Tasks};
use futures_util::stream::{self, StreamExt as _};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidemark_iceberg::commits::{FileRequests, TableFile};
use tidemark_iceberg::cycles::{CycleUse, MergeMode, StepKind, StepUse, TableState};
use tidemark_iceberg::job::{Cycles, Step};
use tidemark_load::engine::{Clock, Operation, Outcome, Tick};
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;

/// Files that are read at once.
const READERS: usize = 8;

/// One row in so many is within the range of a query on some.
const RANGE: u64 = 100;

/// Rows by which the size of files is estimated. That of small files tells nothing: much of it is their footers.
const SAMPLE: usize = 10_000;

/// What carries the steps of a load out.
pub(crate) struct Runner {
    files: Arc<Files>,
    cycles: Cycles,
    plan: Vec<(u32, Step)>,
    begun: AtomicUsize,
    reader: Reader,
    state: tokio::sync::Mutex<State>,
    books: Arc<Books>,
    done: Mutex<Vec<CycleUse>>,
}

/// The table as it is known here.
struct State {
    model: Model,
    /// The number of the next row that comes.
    next: u64,
    known: Option<Arc<Version>>,
    /// The snapshot that the model is of.
    at: Option<i64>,
    /// What snapshots did that may have become part of the table.
    pending: Vec<(i64, Delta)>,
}

/// A data file, and its rows, each with its place.
type RowsOf<'a> = (&'a DataFile, Vec<(u64, Row)>);

impl State {
    /// Brings the model to a version.
    fn settle(&mut self, version: &Version) -> Result<(), Failure> {
        let mut line = Vec::new();
        let mut next = version.metadata.current_snapshot_id();
        while next != self.at {
            let own = next.and_then(|id| self.pending.iter().position(|(pending, _)| *pending == id));
            let (Some(id), Some(own)) = (next, own) else {
                let words = format!(
                    "version {} of the table has a snapshot that this load did not make: what it must contain is not known",
                    version.number
                );
                return Err(Failure::new(Fault::Conflict, words));
            };
            line.push(self.pending.swap_remove(own).1);
            next = version.metadata.snapshot_by_id(id).and_then(|snapshot| snapshot.parent_snapshot_id);
        }
        line.iter().rev().for_each(|delta| self.model.apply(delta));
        self.at = version.metadata.current_snapshot_id();
        Ok(())
    }
}

/// What a step came to.
#[derive(Debug, Default)]
struct Done {
    /// Bytes of files that became part of the table.
    bytes: u64,
    /// Attempts at a commit.
    attempts: u32,
    /// Time until it was known which files a query reads, and how.
    planning: Duration,
    /// Time that is none of the step's: what went into looking at an answer.
    own: Duration,
    found: Option<TableState>,
}

/// The files that a merge or a compaction has written, and what they stand for.
#[derive(Default)]
struct Written {
    added: Vec<DataFile>,
    removed: HashSet<String>,
    rows: u64,
}

impl Runner {
    /// For a table without rows, which is in this version.
    pub(crate) fn new(
        files: Arc<Files>,
        cycles: &Cycles,
        books: Arc<Books>,
        from: &Arc<Version>,
        coalesces: bool,
    ) -> Result<Self, Failure> {
        let state = State {
            model: Model::new(cycles.seed),
            next: 0,
            known: Some(Arc::clone(from)),
            at: from.metadata.current_snapshot_id(),
            pending: Vec::new(),
        };
        Ok(Self {
            reader: Reader::new(&files, coalesces)?,
            files,
            cycles: cycles.clone(),
            plan: cycles.plan(),
            begun: AtomicUsize::new(0),
            state: tokio::sync::Mutex::new(state),
            books,
            done: Mutex::default(),
        })
    }

    /// What was done, cycle by cycle.
    pub(crate) fn done(&self) -> Vec<CycleUse> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn step(&self, place: usize, random: u64, clock: Clock, sent: Tick) -> Ended {
        let mut state = self.state.lock().await;
        let Some((cycle, step)) = self.plan.get(place).copied() else {
            return Failure::new(Fault::Local, "the load has no such step").ended();
        };
        let (files, mut rng) = (self.files.apart(), Rng::new(random, &[]));
        self.reader.meter().take();
        let began = Instant::now();
        let done = match step {
            Step::Fill => self.fill(&mut state, &files, &mut rng).await,
            Step::Ingest => self.ingest(&mut state, &files, &mut rng).await,
            Step::Merge(mode) => self.merge(&mut state, &files, &mut rng, cycle, mode).await,
            Step::Compact => self.compact(&mut state, &files, &mut rng).await,
            Step::Totals => self.ask(&mut state, &files, Question::Totals, began).await,
            Step::Range => {
                let end = state.model.end();
                let length = (end / RANGE).max(1);
                let from = rng.below(end.saturating_sub(length) + 1);
                self.ask(&mut state, &files, Question::Within(from..from + length), began).await
            }
            Step::Scan => self.ask(&mut state, &files, Question::All, began).await,
        };
        let all = began.elapsed();
        let took = done.as_ref().map_or(all, |done| all.saturating_sub(done.own));
        let done = done.map_err(|failure| failure.or_of_storage(self.reader.meter().failure()));
        let read = self.reader.meter().take().used;
        let requests = files.requests();
        if step.kind() != StepKind::Query {
            self.files.absorb(&requests);
        }
        self.enter(cycle, step, took, &done, &requests, (read.requests, read.read_bytes));
        match done {
            Ok(done) => {
                let retries = done.attempts.saturating_sub(1);
                let done_at = clock.now().min(sent + (took.as_nanos() as u64).max(1));
                let bytes = match step.kind() {
                    StepKind::Query => {
                        read.read_bytes + requests.iter().map(|one| one.read_bytes).sum::<u64>()
                    }
                    _ => done.bytes,
                };
                let outcome = Outcome { retries, ..Outcome::success(bytes) };
                Ended { outcome, done: Some(done_at), example: None }
            }
            Err(failure) => failure.of(&format!("cycle {cycle}, {}", step.name())).ended(),
        }
    }

    /// Puts a step on record.
    fn enter(
        &self,
        cycle: u32,
        step: Step,
        took: Duration,
        done: &Result<Done, Failure>,
        requests: &[FileRequests],
        (metered, metered_bytes): (u64, u64),
    ) {
        let mut cycles = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if cycles.last().is_none_or(|last| last.cycle != cycle) {
            cycles.push(CycleUse { cycle, ..CycleUse::default() });
        }
        let Some(own) = cycles.last_mut() else { return };
        let place = own.steps.iter().position(|known| known.name == step.name()).unwrap_or_else(|| {
            let (name, kind) = (step.name().to_owned(), step.kind());
            own.steps.push(StepUse { name, kind, ..StepUse::default() });
            own.steps.len() - 1
        });
        let used = &mut own.steps[place];
        let done = match done {
            Ok(done) => done,
            Err(failure) => {
                used.failed += 1;
                used.wrong += u64::from(failure.fault == Fault::WrongAnswer);
                return;
            }
        };
        used.ok += 1;
        used.took_ns += took.as_nanos() as u64;
        used.planning_ns += done.planning.as_nanos() as u64;
        used.attempts += u64::from(done.attempts);
        used.requests += metered + requests.iter().map(FileRequests::all).sum::<u64>();
        used.read_bytes += metered_bytes + requests.iter().map(|one| one.read_bytes).sum::<u64>();
        used.written_bytes += requests.iter().map(|one| one.written_bytes).sum::<u64>();
        own.found = done.found.or(own.found);
    }

    /// The newest version, whose rows the model has from then on.
    async fn newest(&self, state: &mut State, files: &Files) -> Result<Arc<Version>, Failure> {
        let gone = || Failure::new(Fault::NotFound, format!("there is no table at {}", files.location()));
        let version = files.newest(state.known.as_ref()).await?.ok_or_else(gone)?;
        state.known = Some(Arc::clone(&version));
        state.settle(&version)?;
        Ok(version)
    }

    /// Commits a change that does this to the rows.
    async fn commit(
        &self,
        state: &mut State,
        files: &Files,
        rng: &mut Rng,
        change: Change,
        delta: Delta,
    ) -> Result<Done, Failure> {
        let rows = manifest::amount(&change.added).rows;
        let bytes = manifest::amount(&change.added).bytes;
        state.pending.push((change.snapshot, delta));
        let (tried, done) =
            commit::commit(files, &self.cycles.protocol, &mut state.known, &change, rng).await;
        let entry = done.as_ref().ok().map(|commit| Acknowledged { commit: *commit, committer: 1, rows });
        self.books.enter(tried, entry);
        if let Err(failure) = done {
            if commit::is_void(&failure) {
                state.pending.retain(|(snapshot, _)| *snapshot != change.snapshot);
                commit::discard_added(files, &change).await;
            }
            return Err(failure);
        }
        let began = Instant::now();
        if let Some(version) = state.known.clone() {
            state.settle(&version)?;
        }
        Ok(Done { bytes, attempts: tried.attempts, own: began.elapsed(), ..Done::default() })
    }

    /// How many rows like these are a file of the target size; at least 1.
    fn rows_per_file(&self, sample: &[Row]) -> Result<usize, Failure> {
        let each = (rows::encode(sample)?.len() / sample.len().max(1)).max(1) as u64;
        Ok(usize::try_from(self.cycles.target_bytes / each).unwrap_or(usize::MAX).max(1))
    }

    /// Writes rows as a data file.
    async fn data_file(&self, files: &Files, rows: &[Row]) -> Result<DataFile, Failure> {
        self.write(files, DataContentType::Data, rows.len() as u64, rows::encode(rows)?).await
    }

    async fn write(
        &self,
        files: &Files,
        kind: DataContentType,
        rows: u64,
        content: Vec<u8>,
    ) -> Result<DataFile, Failure> {
        let (file, suffix) = match kind {
            DataContentType::Data => (TableFile::Data, ""),
            _ => (TableFile::Deletes, "-deletes"),
        };
        let path = files.data(&format!("{:016x}{suffix}.parquet", commit::unique()?));
        let named = manifest::data_file(kind, files.called(&path), rows, content.len() as u64)?;
        files.write(file, &path, content.into(), Only::Always).await?;
        Ok(named)
    }

    async fn fill(&self, state: &mut State, files: &Files, rng: &mut Rng) -> Result<Done, Failure> {
        let numbers = state.next..state.next + self.cycles.initial_rows;
        let make = |from: u64, to: u64| -> Vec<Row> {
            (from..to.min(numbers.end)).map(|number| state.model.row(number, 0)).collect()
        };
        let per_file = self.rows_per_file(&make(numbers.start, numbers.start + SAMPLE as u64))? as u64;
        let mut added = Vec::new();
        for from in numbers.clone().step_by(per_file as usize) {
            added.push(self.data_file(files, &make(from, from.saturating_add(per_file))).await?);
        }
        state.next = numbers.end;
        self.commit(state, files, rng, Change::append(added)?, Delta::Came(numbers)).await
    }

    async fn ingest(&self, state: &mut State, files: &Files, rng: &mut Rng) -> Result<Done, Failure> {
        let numbers = state.next..state.next + u64::from(self.cycles.rows);
        // Whether or not they come to be there: their numbers are used up.
        state.next = numbers.end;
        let rows: Vec<Row> = numbers.clone().map(|number| state.model.row(number, 0)).collect();
        let added = vec![self.data_file(files, &rows).await?];
        self.commit(state, files, rng, Change::append(added)?, Delta::Came(numbers)).await
    }

    async fn merge(
        &self,
        state: &mut State,
        files: &Files,
        rng: &mut Rng,
        cycle: u32,
        mode: MergeMode,
    ) -> Result<Done, Failure> {
        let version = self.newest(state, files).await?;
        let contents = Contents::of(files, &version).await?;
        let deleted = deletes::read(files, &contents).await?;
        let numbers = state.model.draw(self.cycles.merged, rng);
        if numbers.is_empty() {
            return Ok(Done::default());
        }
        let wanted: HashSet<i64> = numbers.iter().map(|number| *number as i64).collect();
        let model = &state.model;
        let changed = |row: &Row| model.row(row.id as u64, cycle);
        let mut written = Written::default();
        let mut places = BTreeMap::new();
        let mut all = self.rows(files, &contents.data, &deleted);
        while let Some(read) = all.next().await {
            let (file, mut rows) = read?;
            let found: Vec<u64> =
                rows.iter().filter(|(_, row)| wanted.contains(&row.id)).map(|(place, _)| *place).collect();
            if found.is_empty() {
                continue;
            }
            written.rows += found.len() as u64;
            match mode {
                MergeMode::CopyOnWrite => {
                    let hit = rows.iter_mut().filter(|(_, row)| wanted.contains(&row.id));
                    hit.for_each(|(_, row)| *row = changed(row));
                    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
                    written.added.push(self.data_file(files, &rows).await?);
                    written.removed.insert(file.file_path().to_owned());
                }
                MergeMode::MergeOnRead => _ = places.insert(file.file_path().to_owned(), found),
            }
        }
        drop(all);
        if written.rows != numbers.len() as u64 {
            let (found, of) = (written.rows, numbers.len());
            let words = format!("{found} of {of} rows that are to get new values are in the table");
            return Err(Failure::new(Fault::WrongContent, words));
        }
        if mode == MergeMode::MergeOnRead {
            let rows: Vec<Row> = numbers.iter().map(|number| model.row(*number, cycle)).collect();
            written.added.push(self.data_file(files, &rows).await?);
            let content = deletes::encode(&places)?;
            let kind = DataContentType::PositionDeletes;
            written.added.push(self.write(files, kind, numbers.len() as u64, content).await?);
        }
        let change = Change::new(Kind::Overwrite, written.added, written.removed)?;
        self.commit(state, files, rng, change, Delta::Changed(numbers, cycle)).await
    }

    async fn compact(&self, state: &mut State, files: &Files, rng: &mut Rng) -> Result<Done, Failure> {
        let version = self.newest(state, files).await?;
        let contents = Contents::of(files, &version).await?;
        let deleted = deletes::read(files, &contents).await?;
        let small = self.cycles.target_bytes / 4 * 3;
        let is_chosen =
            |file: &&DataFile| file.file_size_in_bytes() < small || deleted.contains_key(file.file_path());
        let chosen: Vec<DataFile> = contents.data.iter().filter(is_chosen).cloned().collect();
        if chosen.len() < 2 && deleted.is_empty() {
            return Ok(Done::default());
        }
        let mut written = Written::default();
        let (mut waiting, mut per_file): (Vec<Row>, Option<usize>) = (Vec::new(), None);
        let mut all = self.rows(files, &chosen, &deleted);
        loop {
            let read = all.next().await.transpose()?;
            let is_over = read.is_none();
            waiting.extend(read.into_iter().flat_map(|(_, rows)| rows).map(|(_, row)| row));
            if per_file.is_none() && (is_over || waiting.len() >= SAMPLE) {
                per_file = Some(self.rows_per_file(&waiting[..waiting.len().min(SAMPLE)])?);
            }
            while let Some(most) = per_file.filter(|most| waiting.len() >= *most) {
                let rest = waiting.split_off(most);
                written.added.push(self.data_file(files, &waiting).await?);
                waiting = rest;
            }
            if is_over {
                break;
            }
        }
        drop(all);
        if !waiting.is_empty() {
            written.added.push(self.data_file(files, &waiting).await?);
        }
        // Every file that has deletes is written anew without them.
        let removed = chosen.iter().chain(&contents.deletes).map(|file| file.file_path().to_owned());
        let change = Change::new(Kind::Replace, written.added, removed.collect())?;
        self.commit(state, files, rng, change, Delta::Nothing).await
    }

    /// The rows of data files, each with its place, in the order of the files.
    fn rows<'a>(
        &'a self,
        files: &'a Files,
        data: &'a [DataFile],
        deleted: &'a Deleted,
    ) -> impl futures_util::Stream<Item = Result<RowsOf<'a>, Failure>> + Unpin {
        let read = move |file: &'a DataFile| async move {
            let path = files.named(file.file_path())?;
            let content = files.read(TableFile::Data, &path).await?;
            let places = deleted.get(file.file_path()).map_or(&[][..], Vec::as_slice);
            let rows = rows::decode(content, places).map_err(|failure| failure.of(path.as_ref()))?;
            Ok((file, rows))
        };
        let reads: Vec<_> = data.iter().map(read).collect();
        Box::pin(stream::iter(reads).buffered(READERS))
    }

    async fn ask(
        &self,
        state: &mut State,
        files: &Files,
        question: Question,
        began: Instant,
    ) -> Result<Done, Failure> {
        let version = self.newest(state, files).await?;
        let asked = self.reader.ask(files, &version, &question, began).await?;
        let looked = Instant::now();
        let expected = match &question {
            Question::Totals => Reply::Totals(state.model.categories().collect()),
            Question::Within(numbers) => Reply::Sums(state.model.sums(numbers.clone())),
            Question::All => {
                let (rows, checksum) = state.model.checksum();
                Reply::Rows(rows, checksum)
            }
        };
        if let Some(why) = asked.reply.differs(&expected) {
            return Err(Failure::new(Fault::WrongAnswer, format!("the answer is wrong: {why}")));
        }
        let own = asked.own + looked.elapsed();
        Ok(Done { planning: asked.planning, own, found: Some(asked.found), ..Done::default() })
    }
}

impl Tasks for Runner {
    fn begin(self: Arc<Self>, _slot: u32, operation: Operation, clock: Clock, sent: Tick) -> Doing {
        // A step that is given up is not made up for.
        let place = self.begun.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { self.step(place, operation.random, clock, sent).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iceberg::history;
    use crate::iceberg::metadata;
    use crate::iceberg::tests::{Manners, Store};
    use object_store::path::Path;
    use object_store::{ObjectStore, ObjectStoreExt as _};
    use tidemark_iceberg::job::Protocol;

    /// A table that is put through its cycles one step at a time.
    struct Table {
        runner: Arc<Runner>,
        files: Arc<Files>,
        first: Arc<Version>,
        store: Arc<Store>,
        places: usize,
    }

    fn cycles(merge: Option<MergeMode>, compact_every: Option<u32>) -> Cycles {
        let protocol = Protocol { tries: 5, back_off_ns: 0, back_off_most_ns: 0, snapshots: 4, manifests: 7 };
        Cycles {
            count: 6,
            initial_rows: 300,
            appends: 3,
            rows: 10,
            merge,
            merged: 0.1,
            compact_every,
            target_bytes: 4_000,
            protocol,
            checked: false,
            seed: 5,
        }
    }

    impl Table {
        async fn new(cycles: &Cycles, manners: Manners) -> Self {
            let store = Arc::new(Store::new(manners, 7));
            let opened: Arc<dyn ObjectStore> = Arc::clone(&store) as _;
            let files = Arc::new(Files::new(opened, Path::from("t"), "s3://b/t".into()));
            let metadata = metadata::first(files.location()).unwrap();
            let first = Version { number: 1, metadata };
            let content = serde_json::to_vec(&first.metadata).unwrap();
            store.inner.put(&Path::from("t/metadata/v1.metadata.json"), content.into()).await.unwrap();
            let first = Arc::new(first);
            let runner = Runner::new(Arc::clone(&files), cycles, Arc::default(), &first, true).unwrap();
            Self { runner: Arc::new(runner), files, first, store, places: cycles.plan().len() }
        }

        async fn step(&self) -> Ended {
            let operation = Operation { random: 3, ..Operation::default() };
            let clock = Clock::starting_at(Instant::now());
            Arc::clone(&self.runner).begin(0, operation, clock, 0).await
        }

        /// All steps that are left; those that failed.
        async fn go_on(&self) -> Vec<String> {
            let mut failed = Vec::new();
            while self.runner.begun.load(Ordering::Relaxed) < self.places {
                failed.extend(self.step().await.example.map(|example| example.text));
            }
            failed
        }
    }

    #[tokio::test]
    async fn answers_are_right_however_rows_change_and_whatever_is_written_together() {
        for merge in [None, Some(MergeMode::CopyOnWrite), Some(MergeMode::MergeOnRead)] {
            for compact_every in [None, Some(2)] {
                let table = Table::new(&cycles(merge, compact_every), Manners::default()).await;
                assert_eq!(table.go_on().await, [""; 0], "{merge:?}, {compact_every:?}");
                let done = table.runner.done();
                let found: Vec<TableState> = done.iter().filter_map(|cycle| cycle.found).collect();
                let rows: Vec<u64> = found.iter().map(|found| found.rows).collect();
                assert_eq!(rows, [330, 360, 390, 420, 450, 480]);
                let wrong: u64 = done.iter().flat_map(|cycle| &cycle.steps).map(|step| step.wrong).sum();
                assert_eq!(wrong, 0);
                let deletes: Vec<u64> = found.iter().map(|found| found.delete_files).collect();
                match (merge, compact_every) {
                    (Some(MergeMode::MergeOnRead), None) => assert_eq!(deletes, [1, 2, 3, 4, 5, 6]),
                    (Some(MergeMode::MergeOnRead), Some(_)) => assert_eq!(deletes, [1, 2, 1, 2, 1, 2]),
                    _ => assert_eq!(deletes, [0; 6]),
                }
                if compact_every.is_some() {
                    assert!(found[2].files < found[1].files && found[4].files < found[3].files, "{found:?}");
                } else {
                    assert!(found.windows(2).all(|pair| pair[1].files >= pair[0].files + 3), "{found:?}");
                }
                let acknowledged = table.runner.books.read().acknowledged.clone();
                let history = history::read(&table.files, &table.first, &acknowledged).await.unwrap();
                assert!(history.is_whole(), "{history:?}");
                assert_eq!(history::orphans(&table.files, history.to_version).await.unwrap(), 0);
                table.store.put(&Path::from("t/data/x.parquet"), "x".into()).await.unwrap();
                assert_eq!(history::orphans(&table.files, history.to_version).await.unwrap(), 1);
            }
        }
    }

    #[tokio::test]
    async fn a_row_that_is_not_as_it_was_committed_makes_answers_wrong() {
        let table = Table::new(&cycles(None, None), Manners::default()).await;
        for _ in 0..4 {
            assert_eq!(table.step().await.outcome.fault, None);
        }
        let contents =
            Contents::of(&table.files, &table.files.newest(None).await.unwrap().unwrap()).await.unwrap();
        let path = table.files.named(contents.data[0].file_path()).unwrap();
        let content = table.files.read(TableFile::Data, &path).await.unwrap();
        let length = content.len();
        let rows: Vec<Row> = rows::decode(content, &[]).unwrap().into_iter().map(|(_, row)| row).collect();
        // Another letter in one note, in a file that has as many bytes.
        let other = (0..26u8).flat_map(|letter| (0..32).map(move |place| (letter, place))).find_map(|one| {
            let mut rows = rows.clone();
            let before = rows[0].note.clone();
            rows[0].note.replace_range(one.1..=one.1, &char::from(b'a' + one.0).to_string());
            let encoded = rows::encode(&rows).unwrap();
            (encoded.len() == length && rows[0].note != before).then_some(encoded)
        });
        table.store.put(&path, other.expect("a file of the same length").into()).await.unwrap();
        let [totals, range, scan] = [table.step().await, table.step().await, table.step().await];
        assert_eq!((totals.outcome.fault, range.outcome.fault), (None, None), "they do not read notes");
        assert_eq!(scan.outcome.fault, Some(Fault::WrongAnswer));
        let words = scan.example.unwrap().text;
        assert!(
            words.starts_with("cycle 1, scan: the answer is wrong: the checksum of its 330 rows"),
            "{words}"
        );
        assert_eq!(table.runner.done()[1].steps.last().map(|step| (step.failed, step.wrong)), Some((1, 1)));
    }

    #[tokio::test]
    async fn a_table_that_somebody_else_commits_to_is_not_called_wrong() {
        let table = Table::new(&cycles(None, None), Manners::default()).await;
        for _ in 0..4 {
            table.step().await;
        }
        let rows = [table.runner.state.lock().await.model.row(9_999, 0)];
        let added = vec![table.runner.data_file(&table.files, &rows).await.unwrap()];
        let (change, mut known) = (Change::append(added).unwrap(), None);
        let protocol = &table.runner.cycles.protocol;
        let (_, done) =
            commit::commit(&table.files, protocol, &mut known, &change, &mut Rng::new(1, &[])).await;
        done.unwrap();
        let asked = table.step().await;
        assert_eq!(asked.outcome.fault, Some(Fault::Conflict));
        assert!(asked.example.unwrap().text.contains("a snapshot that this load did not make"));
    }

    #[tokio::test]
    async fn a_step_that_is_given_up_counts_if_its_commit_was_made_and_leaves_files_otherwise() {
        let table = Table::new(&cycles(Some(MergeMode::MergeOnRead), None), Manners::default()).await;
        let mut given_up = 0;
        for polls in 1..=9 {
            let mut step = Box::pin(table.step());
            let mut ended = false;
            for _ in 0..polls * 3 {
                ended = ended || futures_util::poll!(&mut step).is_ready();
                if ended {
                    break;
                }
            }
            given_up += u32::from(!ended);
        }
        assert!(given_up > 0);
        assert_eq!(table.go_on().await, [""; 0]);
        let newest = table.files.newest(None).await.unwrap().unwrap();
        assert!(history::orphans(&table.files, newest.number).await.unwrap() > 0);
    }

    #[tokio::test]
    async fn storage_that_does_not_tell_whether_it_wrote_makes_no_answer_wrong() {
        let manners = Manners { loses_reply: 80, loses_request: 80, ignores: 0 };
        let mut cycles = cycles(Some(MergeMode::CopyOnWrite), Some(3));
        cycles.protocol.tries = 1_000;
        let table = Table::new(&cycles, manners).await;
        assert_eq!(table.go_on().await, [""; 0]);
        cycles.protocol.tries = 1;
        let hasty = Table::new(&cycles, manners).await;
        let failed = hasty.go_on().await;
        assert!(
            !failed.is_empty() && failed.iter().all(|words| words.contains("is not known")),
            "{failed:?}"
        );
    }
}
