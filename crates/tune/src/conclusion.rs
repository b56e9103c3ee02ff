//! What is asked of a search, what it asks for, what was seen, and what that comes to.

use crate::effects::{CURVED, Effect};
use crate::front::Point;
use serde::{Deserialize, Serialize};
use tidemark_measure::tuning::{Configuration, Objective, Tuning};

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
    /// The values of both objectives, where there are two; above zero.
    Values(f64, f64),
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
    /// The second objective in the same runs; empty without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seconds: Vec<f64>,
    /// How many of its runs were outside the service level or failed.
    pub outside: u32,
}

impl Standing {
    pub(crate) fn runs(&self) -> usize {
        self.values.len() + self.outside as usize
    }

    /// Both objectives in each run that has them; 1 in the place of a second that there is not.
    pub(crate) fn both(&self) -> impl Iterator<Item = [f64; 2]> + '_ {
        let seconds = self.seconds.iter().copied().chain(std::iter::repeat(1.0));
        self.values.iter().zip(seconds).map(|(value, second)| [*value, second])
    }

    /// Whether it can win: most of its runs are within.
    pub(crate) fn is_eligible(&self) -> bool {
        self.outside as usize * 2 < self.runs()
    }
}

/// A value that fails with whatever else is set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Failing {
    /// The setting's place in the space.
    pub setting: usize,
    /// The value, which is not tried any more.
    pub value: f64,
    /// How many runs had it when that was found; all of them were outside the service level or failed.
    pub runs: u32,
}

/// An objective that rests on too few samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FewSamples {
    /// A percentile.
    pub objective: Objective,
    /// In how many runs.
    pub runs: u32,
    /// How many operations a run needs for it.
    pub needed: u64,
}

/// What the proof comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// The winner beside the baseline by the objective that it was chosen for.
    #[serde(flatten)]
    pub compared: Compared,
    /// The same by the other objective, where there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<Compared>,
    /// How many of the winner's runs were outside the service level or failed.
    pub winner_outside: u32,
    /// The same of the baseline.
    pub baseline_outside: u32,
}

impl Proof {
    /// What it comes to by the objective that its winner was chosen for, of which less may be better.
    pub(crate) fn end(&self, is_less_better: bool) -> End {
        if self.winner_outside > 0 {
            return End::Outside;
        }
        // Within in all of its runs, where the baseline is in none.
        if self.compared.baseline.is_empty() {
            return End::Better;
        }
        let Some((low, high)) = self.compared.interval else { return End::CannotTell };
        match (low > 1.0, high < 1.0, is_less_better) {
            (true, _, false) | (_, true, true) => End::Better,
            (true, _, true) | (_, true, false) => End::Worse,
            _ => End::CannotTell,
        }
    }
}

/// The winner beside the baseline by one objective.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The objective in the winner's runs.
    pub winner: Vec<f64>,
    /// In the baseline's.
    pub baseline: Vec<f64>,
    /// The winner's objective as a multiple of the baseline's.
    pub ratio: Option<f64>,
    /// Its interval, which holds with 95 %; of two objectives, both intervals hold at once with 95 %.
    pub interval: Option<(f64, f64)>,
    /// Probability of a difference this large or larger if there were none.
    pub p: Option<f64>,
}

/// An end of the front: the best by one of two objectives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Extreme {
    /// The place of its objective.
    pub objective: usize,
    /// What it comes to; `None` where no runs were left to prove it.
    pub end: Option<End>,
    /// Its settings, if there was something to prove.
    pub winner: Option<Configuration>,
    /// What the proof came to.
    pub proof: Option<Proof>,
}

/// What a search with two objectives comes to besides.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Front {
    /// Everything that was tried, those with the better first objective first, and whether it belongs to the front. These are runs of
    /// the search, which are no proof.
    pub points: Vec<Point>,
    /// What each setting does to the second objective, from the screening.
    pub effects: Vec<Effect>,
    /// As [`Conclusion::detectable`], of the second objective.
    pub detectable: Option<f64>,
    /// As [`Conclusion::noise`], of the second objective.
    pub noise: Option<f64>,
    /// Its ends that were set up afresh and measured beside the baseline.
    pub ends: Vec<Extreme>,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// No setting matters, but for values that fail: there was nothing to search, and nothing to prove.
    NothingMatters,
    /// No setting is shown to matter, and not all are shown not to; what they seem to do together is not better than the baseline either, if
    /// there was something to prove.
    NothingShown,
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
    /// What each setting does, from the screening's runs within the service level; empty before its end, and where these cannot tell settings
    /// apart.
    pub effects: Vec<Effect>,
    /// Values that fail with whatever else is set: they have no effect, and are not tried again.
    pub failing: Vec<Failing>,
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
    /// Percentiles that rest on too few samples; empty where all runs have enough.
    pub few_samples: Vec<FewSamples>,
    /// What the proof was or is of; `None` where there was nothing to prove. With two objectives, the first end of the front that is proven
    /// to be better.
    pub winner: Option<Configuration>,
    /// What it came to.
    pub proof: Option<Proof>,
    /// What there is besides with two objectives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub front: Option<Front>,
}

impl Conclusion {
    /// What the proof of the best by the first objective came to.
    pub fn proof_of_first(&self) -> Option<&Compared> {
        let proof = match &self.front {
            Some(front) => front.ends.first().and_then(|end| end.proof.as_ref()),
            None => self.proof.as_ref(),
        };
        proof.map(|proof| &proof.compared)
    }

    /// Whether the baseline is elsewhere than a straight line between the ends of the ranges would have it.
    pub(crate) fn is_curved(&self) -> bool {
        self.curved.is_some_and(|p| p < CURVED)
    }
}
