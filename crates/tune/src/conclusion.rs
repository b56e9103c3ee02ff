//! What is asked of a search, what it asks for, what was seen, and what that comes to.

use crate::effects::{CURVED, Effect};
use serde::{Deserialize, Serialize};
use tidemark_measure::tuning::{Configuration, Tuning};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// What may be set, how many runs there may be, and which values are better.
    pub tuning: &'a Tuning,
    /// Where random choices come from.
    pub seed: u64,
}

/// A step of the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Which settings matter.
    #[default]
    Screening,
    /// The better half of many, again and again.
    Halving,
    /// Where the belief promises most.
    Refining,
    /// The winner beside the baseline.
    Proof,
}

impl Phase {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Screening => "screening",
            Phase::Halving => "halving",
            Phase::Refining => "refining",
            Phase::Proof => "proof",
        }
    }
}

/// One run to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// For which step.
    pub phase: Phase,
    /// What is set.
    pub configuration: Configuration,
    /// Which run of this configuration, from 1; in the proof from 10 001. Runs of the same number have the same seed. Of what was seen,
    /// 0 stands for all.
    pub repeat: u32,
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The objective's value; above zero.
    Value(f64),
    /// It was outside the service level, or failed.
    Outside,
}

/// A run that was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Which.
    pub trial: Trial,
    /// What came of it.
    pub outcome: Outcome,
}

/// All that is known of a configuration from the search; the proof's runs are not in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// The configuration.
    pub configuration: Configuration,
    /// In which step it was tried first.
    pub phase: Phase,
    /// The objective in each of its runs that has one.
    pub values: Vec<f64>,
    /// How many of its runs were outside the service level or failed.
    pub outside: u32,
}

impl Standing {
    pub(crate) fn runs(&self) -> usize {
        self.values.len() + self.outside as usize
    }

    /// Whether it can win: most of its runs are within.
    pub(crate) fn is_eligible(&self) -> bool {
        self.outside as usize * 2 < self.runs()
    }
}

/// What the proof comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// The objective in the winner's runs.
    pub winner: Vec<f64>,
    /// In the baseline's.
    pub baseline: Vec<f64>,
    /// How many of the winner's runs were outside the service level or failed.
    pub winner_outside: u32,
    /// The same of the baseline.
    pub baseline_outside: u32,
    /// The winner's objective as a multiple of the baseline's.
    pub ratio: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Probability of a difference this large or larger if there were none.
    pub p: Option<f64>,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// No setting matters: there was nothing to search, and nothing to prove.
    NothingMatters,
    /// Its time was not enough for the screening and a proof.
    NoTime,
    /// Nothing that was tried seems better than the baseline.
    NothingBetter,
    /// Nothing that was tried is within the service level.
    NothingWithin,
    /// The winner is better than the baseline.
    Better,
    /// The winner is worse: what seemed better was chance.
    Worse,
    /// They could not be told apart.
    CannotTell,
    /// The winner was outside the service level, or failed, in the proof.
    Outside,
}

/// What a search comes to, or has come to so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Conclusion {
    /// How it ended; `None` while it has not.
    pub end: Option<End>,
    /// What each setting does, from the screening; empty before its end, and where its runs cannot tell settings apart.
    pub effects: Vec<Effect>,
    /// The smallest effect that four of five such screenings find, as a share.
    pub detectable: Option<f64>,
    /// Probability of a baseline as far from the straight lines between both ends, or further, by chance.
    pub curved: Option<f64>,
    /// The places of the settings that were searched after the screening, the strongest first.
    pub searched: Vec<usize>,
    /// Everything that was tried, in order; the baseline is among them.
    pub standings: Vec<Standing>,
    /// Standard deviation of single runs of the same settings, as a share; `None` before any was repeated.
    pub noise: Option<f64>,
    /// The runs of each step so far.
    pub runs: Vec<(Phase, u32)>,
    /// What the proof was or is of; `None` where there was nothing to prove.
    pub winner: Option<Configuration>,
    /// What it came to.
    pub proof: Option<Proof>,
}

impl Conclusion {
    /// Whether the baseline is elsewhere than a straight line between the ends of the ranges would have it.
    pub(crate) fn is_curved(&self) -> bool {
        self.curved.is_some_and(|p| p < CURVED)
    }
}
