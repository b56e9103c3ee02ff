//! How stored results are named on the command line.

use crate::exit::Stop;
use tidemark_measure::record::Run;
use tidemark_store::{Store, StoreError};

/// A stored result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reference {
    /// Runs by their numbers; several are repeats of each other.
    Runs(Vec<u64>),
    /// An evaluation, or one arm of it.
    Evaluation {
        /// Its number.
        id: u64,
        /// The arm's name, if only one is meant.
        arm: Option<String>,
    },
}

impl Reference {
    /// Reads `12`, `12,14`, `last`, `last/disk`, `e3`, `e3/disk`. The last result is that of the newest run: the evaluation
    /// that it belongs to, if it does.
    pub(crate) fn read(text: &str, store: &Store) -> Result<Self, Stop> {
        let (name, arm) = match text.split_once('/') {
            Some((name, arm)) => (name, Some(arm.to_owned())),
            None => (text, None),
        };
        if name != "last" {
            return parse(text).ok_or_else(|| {
                Stop::usage(format!(
                    "`{text}` is not a stored result: write a run such as 12, an evaluation such as e3, or \
                     `last`; list stored results with `tidemark runs`"
                ))
            });
        }
        let runs = store.list().map_err(Stop::not_ready)?;
        let Some(run) = runs.first() else {
            return Err(Stop::usage("no runs are stored yet; use `tidemark run FILE`"));
        };
        match (run.evaluation, arm) {
            (Some(id), arm) => Ok(Reference::Evaluation { id, arm }),
            (None, None) => Ok(Reference::Runs(vec![run.id])),
            (None, Some(arm)) => Err(Stop::usage(format!(
                "`last/{arm}`: the last result is run {}, which is not part of an evaluation and has no arms",
                run.id
            ))),
        }
    }
}

fn parse(text: &str) -> Option<Reference> {
    let Some(rest) = text.strip_prefix(['e', 'E']) else {
        let numbers: Result<Vec<u64>, _> = text.split(',').map(|number| number.trim().parse()).collect();
        return numbers.ok().map(Reference::Runs);
    };
    let (number, arm) = match rest.split_once('/') {
        Some((number, arm)) => (number, Some(arm.to_owned())),
        None => (rest, None),
    };
    Some(Reference::Evaluation { id: number.parse().ok()?, arm })
}

/// The runs of an evaluation that ended, each with its place.
pub(crate) fn member_runs(store: &Store, evaluation: u64) -> Result<Vec<Run>, StoreError> {
    let mut runs = store.runs_of(evaluation)?;
    runs.retain(|run| run.member.is_some());
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        let evaluation =
            |id, arm: Option<&str>| Some(Reference::Evaluation { id, arm: arm.map(str::to_owned) });
        assert_eq!(parse("12"), Some(Reference::Runs(vec![12])));
        assert_eq!(parse("12, 14"), Some(Reference::Runs(vec![12, 14])));
        assert_eq!((parse("e3"), parse("E3/a b")), (evaluation(3, None), evaluation(3, Some("a b"))));
        assert_eq!((parse("x"), parse("e"), parse("12,"), parse("")), (None, None, None, None));
    }
}
