//! Whether repeats of a point agree, and whether two engines do.

use super::Tell;
use super::phrase::{Phrase, count, percent, phrase};
use serde::Serialize;
use tidemark_measure::units;

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
    pub agrees: bool,
}

/// One engine's repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Side {
    pub median: f64,
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

    fn difference(&self) -> f64 {
        (self.one.median - self.other.median) / self.other.median * 100.0
    }

    /// `p99 +1.7 %`.
    fn short(&self) -> String {
        format!("{} {:+.1} %", self.name(), self.difference())
    }

    /// `p99 1.20 ms vs 1.18 ms (+1.7 %)`.
    fn words(&self) -> String {
        let [one, other] = [self.one, self.other].map(|side| self.print(side.median));
        format!("{} {one} vs {other} ({:+.1} %)", self.name(), self.difference())
    }
}

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Repeats {
    OfPoints { agree: bool, points: usize, of: usize, variation: f64, differing: Vec<Repeated> },
    CrossCheck { engines: [String; 2], point: String, pairs: Vec<Pair>, limit_rate: f64, limit_latency: f64 },
}

impl Tell for Repeats {
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
            Repeats::CrossCheck { engines: [one, other], point, pairs, .. } => {
                let bad: Vec<_> = pairs.iter().filter(|pair| !pair.agrees).map(Pair::words).collect();
                match (pairs.is_empty(), bad.is_empty()) {
                    (true, _) => {
                        phrase![
                            one,
                            " and ",
                            other,
                            " could not be compared at ",
                            point,
                            ": one of them measured nothing"
                        ]
                    }
                    (false, true) => {
                        let all = pairs.iter().enumerate();
                        let all =
                            all.map(|(place, pair)| if place == 0 { pair.words() } else { pair.short() });
                        phrase![
                            one,
                            " and ",
                            other,
                            " agree at ",
                            point,
                            ": ",
                            all.collect::<Vec<_>>().join(", ")
                        ]
                    }
                    (false, false) => {
                        phrase![one, " and ", other, " disagree at ", point, ": ", bad.join(", ")]
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
            Repeats::CrossCheck { pairs, .. } if pairs.iter().any(|pair| !pair.agrees) => {
                "One of the two does not measure the storage alone, or the storage changed between them. Check the findings of the stages and the order of the repeats."
            }
            _ => "",
        }
        .into()
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
            Repeats::CrossCheck { engines: [one, other], pairs, limit_rate, limit_latency, .. } => {
                let line = |pair: &Pair| {
                    let side = |side: Side| {
                        format!("{} to {} over {}", pair.print(side.low), pair.print(side.high), side.repeats)
                    };
                    format!(
                        "{}; {one} {}, {other} {} repeats",
                        pair.words(),
                        side(pair.one),
                        side(pair.other)
                    )
                };
                let limits = format!(
                    "medians over the repeats; allowed: {} of throughput, {} of a percentile, or the spread of one engine's repeats",
                    units::percent(*limit_rate),
                    units::percent(*limit_latency)
                );
                pairs.iter().map(line).chain([limits]).collect()
            }
        }
    }
}
