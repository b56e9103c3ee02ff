//! Whether the answers of queries are right: held against those that are known, and against each other.

use crate::tables::failure::Failure;
use crate::tables::texts;
use std::sync::OnceLock;
use tidemark_analytics::job::{Data, Queries};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Answer;
use tidemark_tpc::answer::Digest;

/// What is known of the answers of a load's queries.
pub(crate) struct Answers {
    queries: Vec<Known>,
    /// Whether a query's text is the same in all executions, and so must be its answer.
    repeats: bool,
}

/// What is known of a query's answer.
#[derive(Default)]
struct Known {
    /// What another engine answered.
    fixed: Option<Digest>,
    /// What the first execution answered.
    first: OnceLock<Digest>,
}

impl Answers {
    pub(crate) fn new(data: &Data, queries: &Queries) -> Self {
        let known = |query| Known {
            fixed: texts::answer(data, query).filter(|_| !queries.random),
            ..Known::default()
        };
        Self { queries: queries.list.iter().map(known).collect(), repeats: !queries.random }
    }

    /// Compares the answer of a query.
    pub(crate) fn compare(&self, query: u16, answer: Digest) -> Result<Answer, Failure> {
        let Some(known) = self.queries.get(usize::from(query)).filter(|_| self.repeats) else {
            return Ok(Answer::NotChecked);
        };
        let wrong = |why: String, what: &str| {
            Failure::new(Fault::WrongAnswer, format!("the answer is not {what}: {why}"))
        };
        if let Some(fixed) = &known.fixed {
            return match answer.agrees(fixed) {
                Ok(()) => Ok(Answer::Known),
                Err(why) => Err(wrong(why, "the known one")),
            };
        }
        if let Some(first) = known.first.get() {
            return match answer.agrees(first) {
                Ok(()) => Ok(Answer::Others),
                Err(why) => Err(wrong(why, "that of the query's first execution")),
            };
        }
        // Of two that end at the same time, either is the first.
        let _ = known.first.set(answer);
        Ok(Answer::NotChecked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_analytics::job::{By, Query};
    use tidemark_analytics::sets::Set;

    #[test]
    fn executions_are_held_against_the_first_unless_their_parameters_are_drawn() {
        let data = Data { set: Set::Tpcds, scale_milli: 1, by: By::Tidemark };
        let queries = |random| Queries {
            list: vec![Query { name: "mine".into(), sql: Some("SELECT 1".into()) }],
            random,
            cache: None,
            timeout_ns: 1,
        };
        let digest = |cell| {
            let mut digest = Digest::default();
            digest.add([Some(cell)].into_iter());
            digest
        };
        let answers = Answers::new(&data, &queries(false));
        assert_eq!(answers.compare(0, digest("7")), Ok(Answer::NotChecked));
        assert_eq!(answers.compare(0, digest("7.0")), Ok(Answer::Others));
        let wrong = answers.compare(0, digest("8")).unwrap_err();
        assert_eq!(wrong.fault, Fault::WrongAnswer);
        assert!(wrong.words.contains("column 1"), "{wrong}");
        let drawn = Answers::new(&data, &queries(true));
        assert_eq!(drawn.compare(0, digest("7")), Ok(Answer::NotChecked));
        assert_eq!(drawn.compare(0, digest("8")), Ok(Answer::NotChecked));
    }
}
