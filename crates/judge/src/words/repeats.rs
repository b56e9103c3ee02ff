//! Whether repeats of a point agree, and whether two engines do.

use super::Facts;
use super::phrase::{Phrase, count, percent, phrase};
use serde::Serialize;
use tidemark_measure::units;

/// More repeats of each engine than this `--cross-check` does not take.
const PAIRS_MOST: u32 = 100;

/// A point of a sweep and the throughput of its repeats.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Repeated {
    pub point: String,
    pub rates: Vec<f64>,
    pub variation: f64,
}

/// A number that two engines measured, over repeats.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Pair {
    /// `None`: throughput. Otherwise a percentile of the response time in nanoseconds.
    pub percentile: Option<f64>,
    pub one: Side,
    pub other: Side,
    /// The first engine's number as a multiple of the other's.
    pub ratio: f64,
    /// Ends of the ratio's 95 % interval; `None` with a single repeat of one of them.
    pub interval: Option<(f64, f64)>,
    pub margin: f64,
    pub outcome: Equivalence,
    /// Repeats of each that would probably tell, where these cannot.
    pub repeats_needed: Option<u32>,
}

/// Whether two numbers are the same within a margin, as their ratio's interval shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Equivalence {
    /// All of the interval is within the margin.
    Agree,
    /// All of it is outside.
    Disagree,
    /// It is partly within, or there is none.
    CannotTell,
}

/// One engine's repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Side {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    pub repeats: usize,
}

impl Pair {
    fn name(&self) -> String {
        match self.percentile {
            None => "throughput".into(),
            Some(fraction) => format!("p{}", (fraction * 1e6).round() / 1e4),
        }
    }

    fn print(&self, value: f64) -> String {
        match self.percentile {
            None => units::rate(value),
            Some(_) => units::duration_ns(value as u64),
        }
    }

    /// `+1.7 % (-0.2 % to +3.6 %)`, the 95 % interval in brackets.
    fn difference(&self) -> String {
        let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
        match self.interval {
            Some((low, high)) => format!("{} ({} to {})", percent(self.ratio), percent(low), percent(high)),
            None => format!("{} (not repeated)", percent(self.ratio)),
        }
    }

    /// `p99 +1.7 % (-0.2 % to +3.6 %)`.
    fn short(&self) -> String {
        format!("{} {}", self.name(), self.difference())
    }
}

/// What is to be said of numbers together: they agree if all do.
fn together(pairs: &[Pair]) -> Equivalence {
    let any = |outcome| pairs.iter().any(|pair| pair.outcome == outcome);
    match () {
        () if any(Equivalence::Disagree) => Equivalence::Disagree,
        () if pairs.is_empty() || any(Equivalence::CannotTell) => Equivalence::CannotTell,
        () => Equivalence::Agree,
    }
}

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Repeats {
    OfPoints { agree: bool, points: usize, of: usize, variation: f64, differing: Vec<Repeated> },
    CrossCheck { engines: [String; 2], point: String, outcome: Equivalence, pairs: Vec<Pair> },
}

impl Repeats {
    /// Whether two engines measured the same at a point.
    pub(crate) fn cross_check(engines: [String; 2], point: String, pairs: Vec<Pair>) -> Self {
        Repeats::CrossCheck { engines, point, outcome: together(&pairs), pairs }
    }
}

impl Facts for Repeats {
    fn rule(&self) -> &'static str {
        match self {
            Repeats::OfPoints { agree: true, .. } => "repeats-agree",
            Repeats::OfPoints { agree: false, .. } => "repeats-differ",
            Repeats::CrossCheck { .. } => "cross-check",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Repeats::OfPoints { agree, points, of, variation, .. } => {
                let verb = if *agree { "repeats agree at " } else { "repeats differ at " };
                let (points, of) = (count(*points as u64), count(*of as u64));
                phrase![verb, points, " of ", of, " points: throughput varies by up to ", percent(*variation)]
            }
            Repeats::CrossCheck { engines: [one, other], point, pairs, .. } if pairs.is_empty() => {
                phrase![
                    one,
                    " and ",
                    other,
                    " could not be compared at ",
                    point,
                    ": one of them measured nothing"
                ]
            }
            Repeats::CrossCheck { engines: [one, other], point, outcome, pairs } => {
                let own = pairs.iter().filter(|pair| pair.outcome == *outcome).map(Pair::short);
                let own = own.collect::<Vec<_>>().join(", ");
                match outcome {
                    Equivalence::Agree => phrase![one, " and ", other, " agree at ", point, ": ", own],
                    Equivalence::Disagree => phrase![one, " and ", other, " disagree at ", point, ": ", own],
                    Equivalence::CannotTell => {
                        phrase![
                            "it cannot be told whether ",
                            one,
                            " and ",
                            other,
                            " agree at ",
                            point,
                            ": ",
                            own
                        ]
                    }
                }
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Repeats::OfPoints { agree: false, .. } => {
                "Points that are no further apart than their repeats cannot be told apart. Measure for longer or more often, on an otherwise idle machine."
            }
            Repeats::CrossCheck { outcome: Equivalence::Disagree, .. } => {
                "One of the two does not measure the target alone, or the target changed between them. Check the findings of the stages and the order of the repeats."
            }
            Repeats::CrossCheck { outcome: Equivalence::CannotTell, pairs, .. } => {
                return match pairs.iter().filter_map(|pair| pair.repeats_needed).max() {
                    Some(repeats) if repeats > PAIRS_MOST => {
                        format!("The difference is about as large as the margin: not even {PAIRS_MOST} of each would tell.")
                    }
                    Some(repeats) => format!(
                        "The repeats differ too much among themselves. About {repeats} of each would tell: `--cross-check={repeats}`."
                    ),
                    None => "One repeat does not show how far two would differ.".into(),
                };
            }
            _ => "",
        }
        .into()
    }

    fn proves(&self) -> bool {
        matches!(self, Repeats::CrossCheck { .. })
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Repeats::OfPoints { differing, .. } => {
                let line = |one: &Repeated| {
                    let rates: Vec<_> = one.rates.iter().map(|rate| units::rate(*rate)).collect();
                    format!(
                        "{}: {}: varies by {}",
                        one.point,
                        rates.join(", "),
                        units::percent(one.variation)
                    )
                };
                let limits = "coefficient of variation (standard deviation / mean): a note from 5 %, a warning above 10 %";
                differing.iter().map(line).chain([limits.to_owned()]).collect()
            }
            Repeats::CrossCheck { pairs, .. } if pairs.is_empty() => Vec::new(),
            Repeats::CrossCheck { engines: [one, other], pairs, .. } => {
                let line = |pair: &Pair| {
                    let side = |side: Side| {
                        let [mean, low, high] =
                            [side.mean, side.low, side.high].map(|value| pair.print(value));
                        format!("{mean} ({low} to {high} over {} repeats)", side.repeats)
                    };
                    let word = match pair.outcome {
                        Equivalence::Agree => "agree",
                        Equivalence::Disagree => "disagree",
                        Equivalence::CannotTell => "cannot tell",
                    };
                    format!(
                        "{}: {word}: {one} {}, {other} {}; margin {}",
                        pair.short(),
                        side(pair.one),
                        side(pair.other),
                        units::percent(pair.margin)
                    )
                };
                let rule = "means over the repeats, and the 95 % interval of their ratio (Welch's, on logarithms): they agree if all of it is within the margin, and disagree if all of it is outside";
                pairs.iter().map(line).chain([rule.to_owned()]).collect()
            }
        }
    }
}
