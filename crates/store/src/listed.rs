//! The history: every run with its figures and what users wrote beside it, and every submission that ended without a run.
//!
//! It is filtered, sorted and cut into pages by SQLite, so that a page of ten thousand runs costs no more than one of a hundred.

use crate::error::StoreError;
use crate::store::{Listing, Store, signed, state_of};
use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, TransactionBehavior, params, params_from_iter};
use std::collections::BTreeSet;
use tidemark_measure::evaluation::level_label;
use tidemark_measure::record::{Run, State};

/// Tags that a run may have, and characters of one.
const MOST_TAGS: usize = 20;
const LONGEST_TAG: usize = 40;

/// Characters of a note.
const LONGEST_NOTE: usize = 4_000;

/// Different tags that are named beside a history.
const MOST_KNOWN: usize = 200;

/// Submissions that ended without leaving a run or an evaluation.
const WITHOUT_RUN: &str = "submissions.run IS NULL AND submissions.evaluation IS NULL
    AND submissions.state IN ('failed', 'cancelled', 'interrupted')";

/// What lists show of a run in numbers. They are the judge's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// What was asked for: `70 % read / 30 % write, 32 workers`.
    pub load: String,
    /// Operations per second.
    pub throughput: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Median response time of all operations, nanoseconds; `None` where it is not known.
    pub p50_ns: Option<f64>,
    /// The 99th percentile.
    pub p99_ns: Option<f64>,
    /// Operations per second over the time of the run, in some dozens of steps.
    pub shape: Vec<f32>,
}

/// What users wrote beside a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remark {
    /// Free text.
    pub note: String,
    /// Short words to find it by.
    pub tags: Vec<String>,
}

/// A line of the history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryRow {
    /// The run; `None` for a submission that ended without one.
    pub run: Option<u64>,
    /// The submission that it came from.
    pub submission: Option<u64>,
    /// The document's name.
    pub name: String,
    /// When it started (was submitted, if it did not), nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// How long it took, nanoseconds.
    pub elapsed_ns: u64,
    /// Its state: a run's, or a submission's.
    pub state: String,
    /// Why it failed, where there is no run that says so.
    pub reason: String,
    /// Whether the numbers are VALID.
    pub valid: Option<bool>,
    /// The verdict's first sentence.
    pub headline: String,
    /// Measured operations.
    pub operations: u64,
    /// Those that failed.
    pub failed: u64,
    /// The run's figures; `None` where nothing was measured or it has not ended.
    pub figures: Option<Figures>,
    /// The newest evaluation that it belongs to.
    pub evaluation: Option<u64>,
    /// The name of that evaluation, or empty.
    pub evaluation_name: String,
    /// Its arm there.
    pub arm: String,
    /// Its load there.
    pub load_name: String,
    /// Its level there.
    pub level: String,
    /// Which repeat; 0 outside evaluations.
    pub repeat: u32,
    /// What users wrote beside it.
    pub remark: Remark,
}

/// What a history is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// When it started.
    #[default]
    Started,
    /// Its name.
    Name,
    /// How long it took.
    Elapsed,
    /// Operations per second.
    Throughput,
    /// The 99th percentile.
    P99,
    /// Failures.
    Failed,
}

/// Which lines of the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Words that all occur in names, load, arm, level, tags or note, or are its number; ignoring case.
    pub text: String,
    /// Only those in this state.
    pub state: String,
    /// Only those that were judged so.
    pub valid: Option<bool>,
    /// Only those of this evaluation.
    pub evaluation: Option<u64>,
    /// Only those with this tag.
    pub tag: String,
    /// What they are sorted by.
    pub order: Order,
    /// The least first instead of the greatest.
    pub ascending: bool,
    /// How many.
    pub limit: usize,
    /// After so many.
    pub offset: usize,
}

/// A page of the history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// How many lines there are in all.
    pub total: u64,
    /// Those of the page.
    pub rows: Vec<HistoryRow>,
    /// All tags that any run has.
    pub tags: Vec<String>,
}

impl Order {
    fn column(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Name => "name COLLATE NOCASE",
            Self::Elapsed => "elapsed",
            Self::Throughput => "throughput",
            Self::P99 => "p99_ns",
            Self::Failed => "failed",
        }
    }
}

impl Wanted {
    /// The condition on the lines, and its values.
    fn condition(&self) -> (String, Vec<Value>) {
        let (mut all, mut values) = (vec!["1".to_owned()], Vec::new());
        for word in self.text.split_whitespace() {
            let number = word.trim_start_matches(['w', '#']).parse::<i64>().unwrap_or(-1);
            all.push("(instr(searched, ?) > 0 OR run = ? OR submission = ?)".into());
            values.extend([Value::from(word.to_lowercase()), number.into(), number.into()]);
        }
        if !self.state.is_empty() {
            all.push("state = ?".into());
            values.push(self.state.clone().into());
        }
        if let Some(valid) = self.valid {
            all.push("valid = ?".into());
            values.push(i64::from(valid).into());
        }
        if let Some(evaluation) = self.evaluation {
            all.push("run IN (SELECT run FROM members WHERE evaluation = ?)".into());
            values.push(signed(evaluation).into());
        }
        if !self.tag.is_empty() {
            all.push("instr(tags, ?) > 0".into());
            values.push(format!(",{},", self.tag).into());
        }
        (all.join(" AND "), values)
    }
}

impl Store {
    /// A page of the history.
    pub fn history(&self, wanted: &Wanted) -> Result<History, StoreError> {
        let (condition, mut values) = wanted.condition();
        let lines = format!(
            "WITH lines AS (
                SELECT runs.id AS run, (SELECT max(id) FROM submissions WHERE run = runs.id) AS submission, runs.name AS name,
                    runs.started_unix_ns AS started, elapsed_ns AS elapsed,
                    CASE WHEN runs.state = 'running' THEN runs.owner ELSE '' END AS owner, runs.state AS state,
                    '' AS reason,
                    runs.valid AS valid, runs.headline AS headline,
                    operations, failed, load, throughput, bandwidth, p50_ns, p99_ns, shape,
                    evaluations.id AS evaluation, coalesce(evaluations.name, '') AS evaluation_name,
                    coalesce(arm, '') AS arm, coalesce(load_name, '') AS load_name, coalesce(level, '') AS level,
                    coalesce(repeat, 0) AS repeat, coalesce(note, '') AS note, coalesce(tags, '') AS tags,
                    lower(runs.name || ' ' || coalesce(evaluations.name, '') || ' ' || coalesce(load, '') || ' ' || coalesce(arm, '') || ' ' || coalesce(load_name, '') || ' '
                        || coalesce(level, '') || ' ' || coalesce(tags, '') || ' ' || coalesce(note, '')) AS searched
                FROM runs LEFT JOIN figures ON figures.run = runs.id LEFT JOIN remarks ON remarks.run = runs.id
                    LEFT JOIN evaluations ON evaluations.id = (SELECT max(evaluation) FROM members WHERE run = runs.id)
                UNION ALL
                SELECT NULL, id, name, coalesce(started_unix_ns, submitted_unix_ns),
                    coalesce(ended_unix_ns - started_unix_ns, 0), '', state, reason, valid, headline,
                    0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', '', '', '', 0, '', '', lower(name || ' ' || reason)
                FROM submissions WHERE {WITHOUT_RUN}
            )"
        );
        let count = format!("{lines} SELECT count(*) FROM lines WHERE {condition}");
        let total = self.rows(&count, params_from_iter(values.iter()), |row| row.get::<_, i64>(0))?;
        let direction = if wanted.ascending { "ASC" } else { "DESC" };
        let page = format!(
            "{lines} SELECT * FROM lines WHERE {condition}
             ORDER BY {} {direction} NULLS LAST, started DESC, run DESC LIMIT ? OFFSET ?",
            wanted.order.column()
        );
        values.extend([Value::from(wanted.limit as i64), Value::from(wanted.offset as i64)]);
        let rows = self.rows(&page, params_from_iter(values.iter()), read)?;
        let tags = self
            .rows("SELECT DISTINCT tags FROM remarks WHERE tags <> ''", [], |row| row.get::<_, String>(0))?;
        let tags: BTreeSet<String> = tags.iter().flat_map(|tags| split(tags)).collect();
        Ok(History {
            total: total.first().copied().unwrap_or_default() as u64,
            rows,
            tags: tags.into_iter().take(MOST_KNOWN).collect(),
        })
    }

    /// What users wrote beside a run.
    pub fn remark(&self, id: u64) -> Result<Remark, StoreError> {
        let row = |row: &rusqlite::Row<'_>| {
            Ok(Remark { note: row.get(0)?, tags: split(&row.get::<_, String>(1)?) })
        };
        let found = self.rows("SELECT note, tags FROM remarks WHERE run = ?", [signed(id)], row)?.pop();
        match found {
            Some(found) => Ok(found),
            None => self.summary(id).map(|_| Remark::default()),
        }
    }

    /// Replaces what users wrote beside a run. Tags are trimmed, sorted and told once.
    ///
    /// # Errors
    /// There is no such run, or the note or a tag is too long or has characters that it may not have.
    pub fn set_remark(&mut self, id: u64, remark: &Remark) -> Result<Remark, StoreError> {
        let refused = |reason: String| Err(StoreError::Remark(reason));
        let tags: BTreeSet<String> = remark.tags.iter().map(|tag| tag.trim().to_owned()).collect();
        let tags: Vec<String> = tags.into_iter().filter(|tag| !tag.is_empty()).collect();
        let is_tag = |tag: &String| {
            tag.chars().count() <= LONGEST_TAG && !tag.chars().any(|char| char == ',' || char.is_control())
        };
        if tags.len() > MOST_TAGS {
            return refused(format!("{} tags: a run may have {MOST_TAGS}", tags.len()));
        }
        if !tags.iter().all(is_tag) {
            return refused(format!("a tag has at most {LONGEST_TAG} characters and no comma"));
        }
        if remark.note.chars().count() > LONGEST_NOTE {
            return refused(format!("a note has at most {LONGEST_NOTE} characters"));
        }
        self.summary(id)?;
        let joined = if tags.is_empty() { String::new() } else { format!(",{},", tags.join(",")) };
        let sql = "INSERT OR REPLACE INTO remarks (run, note, tags) VALUES (?, ?, ?)";
        let written = self.connection.execute(sql, params![signed(id), remark.note, joined]);
        written.map_err(|error| self.trouble(error))?;
        Ok(Remark { note: remark.note.clone(), tags })
    }

    /// Lists some runs anew that have ended and were listed by an older version, without figures: at most `most`, the newest
    /// first. Returns how many it found; it costs next to nothing when there are none.
    pub fn add_figures(
        &mut self,
        most: usize,
        listing: impl Fn(&Run) -> Listing,
    ) -> Result<usize, StoreError> {
        let sql = "SELECT id FROM runs WHERE indexed = 1 AND id NOT IN (SELECT run FROM figures) ORDER BY id DESC LIMIT ?";
        let ids = self.rows(sql, [most as i64], |row| row.get::<_, i64>(0).map(|id| id as u64))?;
        for id in &ids {
            // A run that cannot be read has no figures; reading it later reports the error.
            let run = self.load(*id).unwrap_or_default();
            let figures = listing(&run).figures;
            let write = || -> rusqlite::Result<()> {
                let transaction =
                    Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
                write(&transaction, *id, &run, &figures)?;
                transaction.commit()
            };
            write().map_err(|error| self.trouble(error))?;
        }
        Ok(ids.len())
    }
}

/// Replaces the stored figures of a run.
pub(crate) fn write(connection: &Connection, id: u64, run: &Run, figures: &Figures) -> rusqlite::Result<()> {
    let sql =
        "INSERT OR REPLACE INTO figures (run, load, throughput, bandwidth, p50_ns, p99_ns, shape, arm, load_name, level, repeat)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let finite = |number: f64| if number.is_finite() { number } else { 0.0 };
    let shape: Vec<u8> = figures.shape.iter().flat_map(|value| value.to_le_bytes()).collect();
    let member = run.member.as_ref();
    connection.prepare_cached(sql)?.execute(params![
        signed(id),
        figures.load,
        finite(figures.throughput),
        finite(figures.bandwidth),
        figures.p50_ns,
        figures.p99_ns,
        shape,
        member.map_or("", |member| &member.arm),
        member.map_or("", |member| &member.load),
        member.map(|member| level_label(&member.level)).unwrap_or_default(),
        member.map_or(0, |member| member.repeat),
    ])?;
    Ok(())
}

fn split(tags: &str) -> Vec<String> {
    tags.split(',').filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<HistoryRow> {
    let number = |name| row.get::<_, Option<i64>>(name).map(|number| number.map(|number| number as u64));
    let text = |name| row.get::<_, String>(name);
    let (state, owner) = (text("state")?, text("owner")?);
    let figures = match row.get::<_, Option<String>>("load")? {
        None => None,
        Some(load) => Some(Figures {
            load,
            throughput: row.get("throughput")?,
            bandwidth: row.get("bandwidth")?,
            p50_ns: row.get("p50_ns")?,
            p99_ns: row.get("p99_ns")?,
            shape: row
                .get_ref("shape")?
                .as_blob()?
                .as_chunks::<4>()
                .0
                .iter()
                .map(|bytes| f32::from_le_bytes(*bytes))
                .collect(),
        }),
    };
    Ok(HistoryRow {
        run: number("run")?,
        submission: number("submission")?,
        name: text("name")?,
        started_unix_ns: number("started")?.unwrap_or_default(),
        elapsed_ns: number("elapsed")?.unwrap_or_default(),
        // A run in progress whose process died is interrupted.
        state: if state == State::Running.name() { state_of(&state, &owner)?.name().into() } else { state },
        reason: text("reason")?,
        valid: row.get("valid")?,
        headline: text("headline")?,
        operations: number("operations")?.unwrap_or_default(),
        failed: number("failed")?.unwrap_or_default(),
        figures,
        evaluation: number("evaluation")?,
        evaluation_name: text("evaluation_name")?,
        arm: text("arm")?,
        load_name: text("load_name")?,
        level: text("level")?,
        repeat: row.get("repeat")?,
        remark: Remark { note: text("note")?, tags: split(&text("tags")?) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Submission;
    use crate::testing::{ended, interval};
    use std::time::Instant;
    use tidemark_measure::axis::Axis;
    use tidemark_measure::evaluation::{Evaluation, Member};

    fn new() -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("results.db")).unwrap();
        (directory, store)
    }

    fn listing(throughput: f64) -> Listing {
        let figures = Figures {
            load: "70 % read / 30 % write, 8 workers".into(),
            throughput,
            p99_ns: Some(5e6),
            shape: vec![1.0, 2.5],
            ..Figures::default()
        };
        Listing { valid: true, headline: "fine".into(), figures }
    }

    fn page(limit: usize) -> Wanted {
        Wanted { limit, ..Wanted::default() }
    }

    fn names(store: &Store, wanted: &Wanted) -> Vec<String> {
        store.history(wanted).unwrap().rows.into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn a_run_is_listed_with_its_figures_and_its_place_in_an_evaluation() {
        let (_directory, mut store) = new();
        let evaluation =
            store.begin_evaluation(&Evaluation { name: "layouts".into(), ..Evaluation::default() }).unwrap();
        let mut run = ended("cell", &[interval(0)]);
        run.member = Some(Member {
            evaluation,
            arm: "disk".into(),
            load: "web".into(),
            level: vec![Axis::count("workers", 8)],
            repeat: 3,
            ..Member::default()
        });
        let id = store.add(&run, &listing(1234.5)).unwrap();
        let history = store.history(&page(10)).unwrap();
        let row = &history.rows[0];
        assert_eq!((history.total, row.run, row.evaluation), (1, Some(id), Some(evaluation)));
        assert_eq!(
            (row.arm.as_str(), row.load_name.as_str(), row.level.as_str(), row.repeat),
            ("disk", "web", "workers 8", 3)
        );
        assert_eq!(row.figures, Some(listing(1234.5).figures));
        for (text, found) in
            [("disk", 1), ("layouts", 1), ("WORKERS web", 1), ("memory", 0), ("1", 1), ("disk memory", 0)]
        {
            let wanted = Wanted { text: text.into(), ..page(10) };
            assert_eq!(store.history(&wanted).unwrap().total, found, "{text}");
        }
    }

    #[test]
    fn what_failed_before_it_had_a_run_is_in_the_history_once() {
        let (_directory, mut store) = new();
        let run = store.add(&ended("ran", &[]), &listing(1.0)).unwrap();
        let mut submit = |name: &str, state: &str, run| {
            let own = Submission {
                name: name.into(),
                state: state.into(),
                reason: "no route to the target".into(),
                submitted_unix_ns: 5,
                run,
                ..Submission::default()
            };
            store.add_submission(&own, b"", "", None).unwrap()
        };
        let came = submit("ran", "completed", Some(run));
        let failed = submit("never began", "failed", None);
        submit("waits", "queued", None);
        submit("its run was deleted", "failed", Some(99));
        let history = store.history(&page(10)).unwrap();
        let found: Vec<_> = history.rows.iter().map(|row| (row.run, row.submission)).collect();
        assert_eq!(found, [(Some(run), Some(came)), (None, Some(failed))]);
        let row = &history.rows[1];
        assert_eq!((row.state.as_str(), row.reason.as_str()), ("failed", "no route to the target"));
        assert_eq!(row.figures, None);
    }

    #[test]
    fn the_history_is_filtered_sorted_and_paged() {
        let (_directory, mut store) = new();
        for (name, throughput) in [("b", 30.0), ("a", 10.0), ("c", 20.0)] {
            store.add(&ended(name, &[interval(0)]), &listing(throughput)).unwrap();
        }
        let by = |order, ascending| Wanted { order, ascending, ..page(10) };
        assert_eq!(names(&store, &by(Order::Throughput, false)), ["b", "c", "a"]);
        assert_eq!(names(&store, &by(Order::Name, true)), ["a", "b", "c"]);
        assert_eq!(names(&store, &Wanted { offset: 1, limit: 1, ..by(Order::Name, true) }), ["b"]);
        store
            .set_remark(2, &Remark { note: "odd".into(), tags: vec![" night ".into(), "x".into()] })
            .unwrap();
        let tagged = Wanted { tag: "night".into(), ..page(10) };
        assert_eq!(names(&store, &tagged), ["a"]);
        assert_eq!(names(&store, &Wanted { tag: "nigh".into(), ..page(10) }), [""; 0], "a tag is whole");
        assert_eq!(names(&store, &Wanted { text: "odd".into(), ..page(10) }), ["a"]);
        assert_eq!(names(&store, &Wanted { valid: Some(false), ..page(10) }), [""; 0]);
        assert_eq!(store.history(&page(1)).unwrap().tags, ["night", "x"]);
        assert_eq!(store.history(&page(1)).unwrap().total, 3, "not only those of the page");
    }

    #[test]
    fn remarks_are_bounded_and_belong_to_a_run() {
        let (_directory, mut store) = new();
        let id = store.add(&ended("x", &[]), &listing(1.0)).unwrap();
        assert_eq!(store.remark(id).unwrap(), Remark::default());
        let tags = |tags: &[String]| Remark { tags: tags.to_vec(), ..Remark::default() };
        for wrong in [
            tags(&["a,b".into()]),
            tags(&["x".repeat(LONGEST_TAG + 1)]),
            tags(&(0..=MOST_TAGS).map(|tag| tag.to_string()).collect::<Vec<_>>()),
            Remark { note: "x".repeat(LONGEST_NOTE + 1), ..Remark::default() },
        ] {
            assert!(matches!(store.set_remark(id, &wrong), Err(StoreError::Remark(_))));
        }
        let kept = store.set_remark(id, &tags(&["b".into(), "a".into(), "b ".into()])).unwrap();
        assert_eq!((kept.tags.clone(), store.remark(id).unwrap()), (vec!["a".into(), "b".into()], kept));
        assert!(matches!(store.remark(id + 1), Err(StoreError::NoSuchRun { .. })));
        assert!(matches!(store.set_remark(id + 1, &tags(&[])), Err(StoreError::NoSuchRun { .. })));
    }

    #[test]
    fn runs_of_older_versions_get_their_figures() {
        let (_directory, mut store) = new();
        let ids: Vec<u64> =
            (0..3).map(|_| store.add(&ended("old", &[interval(0)]), &listing(1.0)).unwrap()).collect();
        store.connection().execute("DELETE FROM figures", []).unwrap();
        assert!(store.history(&page(3)).unwrap().rows.iter().all(|row| row.figures.is_none()));
        assert_eq!(store.add_figures(2, |_| listing(7.0)).unwrap(), 2);
        assert_eq!(store.add_figures(2, |_| listing(7.0)).unwrap(), 1);
        assert_eq!(store.add_figures(2, |_| listing(7.0)).unwrap(), 0);
        let rows = store.history(&page(3)).unwrap().rows;
        assert_eq!(rows.iter().filter_map(|row| row.run).collect::<Vec<_>>(), [ids[2], ids[1], ids[0]]);
        assert!(rows.iter().all(|row| row.figures == Some(listing(7.0).figures)));
    }

    #[test]
    fn ten_thousand_runs_are_paged_like_a_hundred() {
        let (_directory, mut store) = new();
        let first = store.add(&ended("x", &[interval(0)]), &listing(1.0)).unwrap();
        let copy = |store: &Store, to: u64| {
            let copies = format!(
                "WITH RECURSIVE counter (n) AS (SELECT max(id) + 1 FROM runs UNION ALL SELECT n + 1 FROM counter WHERE n < {to})"
            );
            for (table, columns) in [
                (
                    "figures",
                    "load, throughput + n, bandwidth, p50_ns, p99_ns, shape, arm, load_name, level, repeat",
                ),
                (
                    "runs",
                    "name || n, started_unix_ns + n, elapsed_ns, state, owner, operations, failed, valid, headline, record, indexed",
                ),
            ] {
                let key = if table == "runs" { "id" } else { "run" };
                let sql = format!(
                    "{copies} INSERT INTO {table} SELECT n, {columns} FROM {table}, counter WHERE {key} = {first}"
                );
                store.connection().execute("PRAGMA foreign_keys = OFF", []).unwrap();
                store.connection().execute(&sql, []).unwrap();
            }
        };
        copy(&store, 10_000);
        let begun = Instant::now();
        for wanted in [
            page(100),
            Wanted { offset: 9_900, ..page(100) },
            Wanted { order: Order::Throughput, ..page(100) },
            Wanted { text: "x99".into(), ..page(100) },
        ] {
            let history = store.history(&wanted).unwrap();
            assert!(history.rows.len() <= 100 && history.total > 0);
        }
        eprintln!("four pages of 10 000 runs: {:?}", begun.elapsed());
        assert_eq!(store.history(&page(100)).unwrap().total, 10_000);
        let fastest = Wanted { order: Order::Throughput, ..page(1) };
        assert_eq!(store.history(&fastest).unwrap().rows[0].run, Some(10_000));
    }
}
