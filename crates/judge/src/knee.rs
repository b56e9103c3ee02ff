//! Searching for the knee: the highest load within a service level, in few runs, although runs mislead.
//!
//! Near the knee noise decides on which side a run falls, and anywhere a busy neighbour may spoil one. So no single run settles
//! anything. What is believed of the knee is a distribution over the whole range, made of all runs alike (`belief`): a run that
//! contradicts the others moves it a little, and the next ones move it back. Each step measures where the belief is divided
//! most evenly (probabilistic bisection: Horstein, IEEE Transactions on Information Theory 9, 1963): halfway between the two
//! seen levels that enclose the belief's median, or, where these are close enough, the one of the two that is less certain.
//! From the lowest level on no step goes to more than twice the highest level that was seen, so that storage is not driven far
//! beyond its limit.
//!
//! The search is over when the knee is, with 95 %, no further from the answer than asked for; or when its runs are used up. Runs
//! that cannot tell, because the generator was the limit, end it upwards: two of them at one level, and nothing above is looked at.

use belief::Belief;
use serde::Serialize;
use tidemark_measure::axis::Unit;
use tidemark_measure::evaluation::Search as Range;

mod belief;

/// What the load is multiplied by until it is outside.
const RAMP: f64 = 2.0;

/// How sure the answer has to be.
pub const SURE: f64 = 0.95;

/// The share of the distance asked for that two levels next to each other may be apart: the belief needs room on both sides of
/// the answer.
const OWN_SHARE: f64 = 0.5;

/// Runs of one level that could not tell, from which on it and what is above it are left alone.
const UNCLEAR: usize = 2;

/// Levels that are found on the way are rounded to so many significant digits: people have to read them.
const DIGITS: i32 = 4;

/// The finest distance that rounded levels can tell.
const WITHIN_LEAST: f64 = 0.001;

/// What can be a level: beyond that nobody has workers or rates, and numbers are no longer exact.
const LEVELS: std::ops::RangeInclusive<f64> = 1e-9..=1e15;

/// Levels this close, as a share, are the same level: they may have been through text.
const SAME: f64 = 1e-9;

/// On which side of a service level something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It meets the service level.
    Within,
    /// It does not, and that is the storage's doing.
    Outside,
    /// Nobody can tell: the generator was the limit, or what decides is not known.
    Unclear,
}

/// What was seen at a level, in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// The level: a number of workers, a rate.
    pub level: f64,
    /// Where it was.
    pub side: Side,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Measure this level (again, when it was seen already).
    Measure(f64),
    /// The search is over.
    Done(Answer),
}

/// What a search comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// The highest level seen that is more likely within than not; `None` where there is none.
    pub knee: Option<f64>,
    /// The lowest level seen that is more likely outside than not; `None` where there is none.
    pub beyond: Option<f64>,
    /// Between which levels the true knee lies, with 95 %; the range's ends stand for all that is beyond them.
    pub between: (f64, f64),
    /// Why it is over.
    pub end: End,
}

/// Why a search is over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The knee is as close to the answer as was asked for, with 95 %.
    Found,
    /// Even the highest level is within.
    Top,
    /// Even the lowest level is outside.
    Bottom,
    /// From this level on nobody can tell: the storage was not the limit there.
    Unclear(f64),
    /// All runs that it may have were used.
    Budget,
    /// It is not over.
    Open,
}

/// Says what to do next, given all that was seen so far, in whatever order. The same sights give the same step.
///
/// Levels are whole numbers unless they are rates. Sights outside the range are ignored. A range without a level
/// (nothing above zero in it, or no numbers) is done at once, without an answer.
pub fn next(range: &Range, seen: &[Seen]) -> Step {
    match look(range, seen) {
        (answer @ Answer { end: End::Open, .. }, Some(level)) => match range.runs {
            1.. if seen.len() >= range.runs as usize => Step::Done(Answer { end: End::Budget, ..answer }),
            _ => Step::Measure(level),
        },
        (answer, _) => Step::Done(answer),
    }
}

/// What all sights come to, whether or not the search is over.
pub fn answer(range: &Range, seen: &[Seen]) -> Answer {
    match next(range, seen) {
        Step::Done(answer) => answer,
        Step::Measure(_) => look(range, seen).0,
    }
}

/// How many runs a search takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// At least, whatever they say.
    pub least: u32,
    /// When no run misleads, and the knee is in the middle of the range (of its logarithm).
    pub undisturbed: u32,
    /// At most.
    pub most: u32,
}

/// How many runs a search will take.
pub fn expected(range: &Range) -> Expected {
    let runs = |side: &dyn Fn(f64) -> Side| {
        let mut seen = Vec::new();
        while let Step::Measure(level) = next(range, &seen) {
            seen.push(Seen { level, side: side(level) });
        }
        seen.len() as u32
    };
    let middle = (range.from * range.to).sqrt();
    let undisturbed = runs(&|level| if level <= middle { Side::Within } else { Side::Outside });
    let ends = [Side::Within, Side::Outside, Side::Unclear].map(|side| runs(&|_| side));
    Expected { least: ends.into_iter().fold(undisturbed, u32::min), undisturbed, most: range.runs }
}

/// How many of some levels, in ascending order, are within: the division that the fewest of them contradict; of equal ones
/// the lowest.
pub fn divide(sides: &[Side]) -> usize {
    let against = |below: usize| {
        let wrong = |(index, side): &(usize, &Side)| match side {
            Side::Within => *index >= below,
            Side::Outside => *index < below,
            Side::Unclear => false,
        };
        sides.iter().enumerate().filter(wrong).count()
    };
    (0..=sides.len()).min_by_key(|below| against(*below)).unwrap_or(0)
}

/// The answer, and the level to measure next if it is not final.
fn look(range: &Range, seen: &[Seen]) -> (Answer, Option<f64>) {
    let nothing = Answer { knee: None, beyond: None, between: (range.from, range.to), end: End::Bottom };
    let Some(mut ground) = Ground::of(range) else { return (nothing, None) };
    let levels = ground.levels(seen);
    let open = Answer { end: End::Open, between: (ground.from, ground.to), ..nothing };
    // Where a higher level could be told, the generator was not the limit.
    let told_up_to = levels.iter().rfind(|level| level.within > 0).map_or(0.0, |level| level.level);
    let unclear = levels.iter().find(|level| level.is_unclear() && level.level > told_up_to);
    let unclear = unclear.map(|level| level.level);
    let told = levels.iter().filter(|level| level.within + level.outside > 0);
    let told: Vec<&Level> =
        told.filter(|level| unclear.is_none_or(|unclear| level.level < unclear)).collect();
    // Where the generator was the limit further up, what is outside there still is.
    let outside_above = |knee: Option<f64>| {
        let above =
            |level: &&Level| level.outside > level.within && knee.is_none_or(|knee| knee < level.level);
        levels.iter().find(above).map(|level| level.level)
    };
    match (told.last(), unclear) {
        (None, Some(level)) => {
            return (Answer { beyond: outside_above(None), end: End::Unclear(level), ..open }, None);
        }
        // What is unclear is no longer part of the range.
        (Some(last), Some(_)) => ground.to = last.level,
        (None, None) => return (open, Some(ground.from)),
        (Some(_), None) => {}
    }
    let belief = Belief::new(ground.from, ground.to, &told);
    let knee = told.iter().rfind(|level| belief.at_least(level.level) >= 0.5).map(|level| level.level);
    let beyond = told.iter().find(|level| belief.at_least(level.level) < 0.5).map(|level| level.level);
    let end_at = |probability| belief.quantile(probability).clamp(ground.from, ground.to);
    let between = (end_at((1.0 - SURE) / 2.0), end_at((1.0 + SURE) / 2.0));
    let end = match (knee, beyond, unclear) {
        (None, Some(_), _) if 1.0 - belief.at_least(ground.from) >= SURE => End::Bottom,
        (Some(knee), None, None) if same(knee, ground.to) && belief.at_least(knee) >= SURE => End::Top,
        (Some(knee), None, Some(unclear)) if belief.at_least(knee) >= SURE => End::Unclear(unclear),
        (Some(knee), Some(beyond), _)
            if ground.between(knee, beyond).is_none() && belief.near(ground.near(knee)) >= SURE =>
        {
            End::Found
        }
        _ => End::Open,
    };
    let beyond = beyond.or_else(|| outside_above(knee));
    let begun = told.first().is_some_and(|lowest| same(lowest.level, ground.from));
    let level = if begun { ground.divided(&belief, &told) } else { ground.from };
    (Answer { knee, beyond, between, end }, Some(level))
}

/// All sights of one level.
#[derive(Debug)]
struct Level {
    level: f64,
    within: usize,
    outside: usize,
    unclear: usize,
}

impl Level {
    fn is_unclear(&self) -> bool {
        self.unclear >= UNCLEAR && self.unclear > self.within + self.outside
    }
}

/// Where levels may be.
struct Ground {
    from: f64,
    to: f64,
    within: f64,
    whole: bool,
}

impl Ground {
    fn of(range: &Range) -> Option<Self> {
        let whole = range.unit != Unit::OperationsPerSecond;
        let (from, to) =
            if whole { (range.from.ceil().max(1.0), range.to.floor()) } else { (range.from, range.to) };
        let sound = LEVELS.contains(&from) && LEVELS.contains(&to) && from <= to;
        let within = if range.within.is_finite() { range.within.max(WITHIN_LEAST) } else { WITHIN_LEAST };
        sound.then_some(Self { from, to, within, whole })
    }

    /// What was seen, level by level, ascending.
    fn levels(&self, seen: &[Seen]) -> Vec<Level> {
        let mut levels: Vec<Level> = Vec::new();
        let inside = |seen: &&Seen| {
            (self.from..=self.to).contains(&seen.level)
                || same(seen.level, self.from)
                || same(seen.level, self.to)
        };
        for sight in seen.iter().filter(inside) {
            let index = levels.iter().position(|level| same(level.level, sight.level)).unwrap_or_else(|| {
                levels.push(Level { level: sight.level, within: 0, outside: 0, unclear: 0 });
                levels.len() - 1
            });
            let level = &mut levels[index];
            match sight.side {
                Side::Within => level.within += 1,
                Side::Outside => level.outside += 1,
                Side::Unclear => level.unclear += 1,
            }
        }
        levels.sort_by(|left, right| left.level.total_cmp(&right.level));
        levels
    }

    /// The level that divides the belief most evenly.
    fn divided(&self, belief: &Belief, told: &[&Level]) -> f64 {
        let median = belief.quantile(0.5);
        let above = told.iter().position(|level| level.level > median);
        let (low, high) = match above {
            Some(0) => return self.from,
            Some(index) => (told[index - 1], told[index]),
            None => {
                let Some(last) = told.last() else { return self.from };
                // What was outside is seen once more before anything beyond it is tried.
                let climbs = last.within > last.outside && !same(last.level, self.to);
                return if climbs { self.rounded(last.level * RAMP).min(self.to) } else { last.level };
            }
        };
        self.between(low.level, high.level).unwrap_or_else(|| {
            let less_certain = belief.at_least(low.level) < 1.0 - belief.at_least(high.level);
            if less_certain { low.level } else { high.level }
        })
    }

    /// A level between two others; `None` when they are as close as asked for, or when there is none.
    fn between(&self, below: f64, beyond: f64) -> Option<f64> {
        let middle = self.rounded((below * beyond).sqrt());
        let apart = beyond > below * (1.0 + self.within * OWN_SHARE);
        (apart && below < middle && middle < beyond).then_some(middle)
    }

    /// From where to where the true knee is as close to a level as asked for: of whole numbers the next one is beyond it.
    fn near(&self, level: f64) -> (f64, f64) {
        let high = level * (1.0 + self.within);
        (level / (1.0 + self.within), if self.whole { high.max(level + 1.0) } else { high })
    }

    fn rounded(&self, level: f64) -> f64 {
        if self.whole {
            return level.round();
        }
        let unit = 10f64.powi(level.log10().floor() as i32 + 1 - DIGITS);
        let rounded = (level / unit).round() * unit;
        // 0.1 x 3 is not 0.3: through text and back it is.
        format!("{rounded:.6}").parse().ok().filter(|short| *short > 0.0).unwrap_or(rounded)
    }
}

fn same(left: f64, right: f64) -> bool {
    (left - right).abs() <= SAME * left.abs().max(right.abs())
}

#[cfg(test)]
mod tests;
