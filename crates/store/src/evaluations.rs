//! Evaluations in the store: their records, and which runs belong to them.

use crate::error::StoreError;
use crate::store::{Listing, Store, signed, state_of};
use crate::{codec, owner};
use rusqlite::{OptionalExtension as _, params};
use serde::Serialize;
use tidemark_measure::evaluation::Evaluation;
use tidemark_measure::record::{Run, State};

/// A line of the list of evaluations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvaluationSummary {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// When it was first started, nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// How it ended. An evaluation whose process died is interrupted.
    pub state: State,
    /// How many runs it has.
    pub runs: u64,
    /// Whether the numbers are VALID; `None` before it was judged.
    pub valid: Option<bool>,
    /// The verdict's first sentence, or empty.
    pub headline: String,
}

impl Store {
    /// Stores an evaluation that this process carries out, and assigns its number.
    pub fn begin_evaluation(&mut self, evaluation: &Evaluation) -> Result<u64, StoreError> {
        let record = codec::encode(evaluation).map_err(|error| self.damaged(&error))?;
        let sql = "INSERT INTO evaluations (name, started_unix_ns, state, owner, headline, record)
                   VALUES (?, ?, ?, ?, '', ?)";
        let values = params![
            evaluation.name,
            signed(evaluation.started_unix_ns),
            evaluation.state.name(),
            owner::this_process(),
            record
        ];
        self.connection.execute(sql, values).map_err(|error| self.trouble(error))?;
        Ok(self.connection.last_insert_rowid() as u64)
    }

    /// Replaces an evaluation, and how to list it if it was judged. A running evaluation belongs to this process.
    pub fn keep_evaluation(
        &mut self,
        evaluation: &Evaluation,
        listing: Option<&Listing>,
    ) -> Result<(), StoreError> {
        let record = codec::encode(evaluation).map_err(|error| self.damaged(&error))?;
        let owner = if evaluation.state == State::Running { owner::this_process() } else { String::new() };
        let sql = "UPDATE evaluations SET name = ?, started_unix_ns = ?, state = ?, owner = ?, valid = ?, headline = ?, record = ?
                   WHERE id = ?";
        let values = params![
            evaluation.name,
            signed(evaluation.started_unix_ns),
            evaluation.state.name(),
            owner,
            listing.map(|listing| listing.valid),
            listing.map_or("", |listing| &listing.headline),
            record,
            signed(evaluation.id)
        ];
        match self.connection.execute(sql, values).map_err(|error| self.trouble(error))? {
            0 => Err(self.no_such_evaluation(evaluation.id)),
            _ => Ok(()),
        }
    }

    /// Reads an evaluation. An evaluation whose process died is interrupted.
    pub fn evaluation(&self, id: u64) -> Result<Evaluation, StoreError> {
        let sql = "SELECT record, owner FROM evaluations WHERE id = ?";
        let row =
            self.connection.query_row(sql, [signed(id)], |row| Ok((row.get(0)?, row.get(1)?))).optional();
        let (record, owner): (Vec<u8>, String) =
            row.map_err(|error| self.trouble(error))?.ok_or_else(|| self.no_such_evaluation(id))?;
        let mut evaluation: Evaluation = codec::decode(&record).map_err(|error| self.damaged(&error))?;
        evaluation.id = id;
        if evaluation.state == State::Running && !owner::lives(&owner) {
            evaluation.state = State::Interrupted;
        }
        Ok(evaluation)
    }

    /// All evaluations, newest first.
    pub fn evaluations(&self) -> Result<Vec<EvaluationSummary>, StoreError> {
        let sql = "SELECT id, name, started_unix_ns, state, owner, valid, headline,
                   (SELECT count(*) FROM members WHERE members.evaluation = evaluations.id)
                   FROM evaluations ORDER BY id DESC";
        let summary = |row: &rusqlite::Row<'_>| {
            let unsigned = |column| row.get::<_, i64>(column).map(|number| number as u64);
            Ok(EvaluationSummary {
                id: unsigned(0)?,
                name: row.get(1)?,
                started_unix_ns: unsigned(2)?,
                state: state_of(&row.get::<_, String>(3)?, &row.get::<_, String>(4)?)?,
                valid: row.get(5)?,
                headline: row.get(6)?,
                runs: unsigned(7)?,
            })
        };
        self.rows(sql, [], summary)
    }

    /// The runs of an evaluation in the order in which they ran, each with its place in this evaluation.
    pub fn runs_of(&self, evaluation: u64) -> Result<Vec<Run>, StoreError> {
        let id = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0).map(|id| id as u64);
        let sql = "SELECT run FROM members WHERE evaluation = ? ORDER BY run";
        let load = |id| {
            let mut run = self.load(id)?;
            run.member.iter_mut().for_each(|member| member.evaluation = evaluation);
            Ok(run)
        };
        self.rows(sql, [signed(evaluation)], id)?.into_iter().map(load).collect()
    }

    /// Adds a stored run to an evaluation.
    pub fn adopt(&mut self, evaluation: u64, run: u64) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO members (evaluation, run) VALUES (?, ?)";
        let added = self.connection.execute(sql, [signed(evaluation), signed(run)]);
        added.map_err(|error| self.trouble(error)).map(drop)
    }

    /// Takes a run out of an evaluation; it stays in the store.
    pub fn release(&mut self, evaluation: u64, run: u64) -> Result<(), StoreError> {
        let sql = "DELETE FROM members WHERE evaluation = ? AND run = ?";
        let released = self.connection.execute(sql, [signed(evaluation), signed(run)]);
        released.map_err(|error| self.trouble(error)).map(drop)
    }

    /// Stores a run from elsewhere, and assigns its number.
    pub fn add(&mut self, run: &Run, listing: &Listing) -> Result<u64, StoreError> {
        let id = self.begin(run)?;
        self.finish(id, run, listing)?;
        Ok(id)
    }

    fn no_such_evaluation(&self, id: u64) -> StoreError {
        StoreError::NoSuchEvaluation { path: self.path.clone(), id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::evaluation::Member;

    #[test]
    fn an_evaluation_is_kept_with_its_runs() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("results.db")).unwrap();
        let mut evaluation =
            Evaluation { name: "layouts".into(), state: State::Running, ..Evaluation::default() };
        evaluation.id = store.begin_evaluation(&evaluation).unwrap();
        let run = |arm: &str| Run {
            name: arm.into(),
            state: State::Completed,
            member: Some(Member { evaluation: evaluation.id, arm: arm.into(), ..Member::default() }),
            ..Run::default()
        };
        let first = store.add(&run("disk"), &Listing::default()).unwrap();
        store.add(&run("memory"), &Listing::default()).unwrap();
        store.add(&Run { name: "alone".into(), ..Run::default() }, &Listing::default()).unwrap();
        let names = |store: &Store| -> Vec<String> {
            store.runs_of(evaluation.id).unwrap().into_iter().map(|run| run.name).collect()
        };
        assert_eq!(names(&store), ["disk", "memory"]);
        store.release(evaluation.id, first).unwrap();
        assert_eq!(names(&store), ["memory"]);
        assert_eq!(store.load(first).unwrap().name, "disk", "it is still there");
        let next = store.begin_evaluation(&evaluation).unwrap();
        store.adopt(next, first).unwrap();
        let adopted = store.runs_of(next).unwrap();
        assert_eq!((adopted.len(), adopted[0].member.as_ref().unwrap().evaluation), (1, next));
        assert_eq!(store.list().unwrap()[2].evaluation, Some(next));
        evaluation.state = State::Completed;
        store.keep_evaluation(&evaluation, None).unwrap();
        let listed = store.evaluations().unwrap();
        assert_eq!((listed.len(), listed[1].runs, listed[1].state), (2, 1, State::Completed));
        assert_eq!(store.evaluation(evaluation.id).unwrap().name, "layouts");
        assert!(store.evaluation(99).unwrap_err().to_string().contains("99"));
    }

    #[test]
    fn an_evaluation_whose_process_died_is_interrupted() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("results.db")).unwrap();
        let evaluation = Evaluation { state: State::Running, ..Evaluation::default() };
        let id = store.begin_evaluation(&evaluation).unwrap();
        assert_eq!(store.evaluation(id).unwrap().state, State::Running);
        store.connection.execute("UPDATE evaluations SET owner = 'another-boot 1 1'", []).unwrap();
        assert_eq!(store.evaluation(id).unwrap().state, State::Interrupted);
        assert_eq!(store.evaluations().unwrap()[0].state, State::Interrupted);
    }
}
