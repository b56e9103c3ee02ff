//! Whether more load brought more: levels of one intensity, and what was done at each. A resource without reserve is the
//! limit only where it did not.

use crate::words::limits::Limit;
use crate::words::standing::{Limited, Standing};
use crate::{Finding, Severity, What};
use tidemark_measure::axis::{Axis, Unit};

/// Throughput that grows by less than this is noise, whatever the repeats say.
const NOISE_LEAST: f64 = 0.01;

/// Twice the load that brings less than this brings no more.
const GAIN_LEAST: f64 = 0.10;

/// One level: its intensity (workers, depth, rate), operations per second, and how much they vary between repeats
/// (coefficient of variation).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level {
    pub(crate) load: f64,
    pub(crate) throughput: f64,
    pub(crate) variation: f64,
}

/// The course of throughput over levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Growth {
    /// There is one level.
    Untried,
    /// It grows up to the highest level.
    Throughout,
    /// From this intensity on more load brings no more.
    Until(f64),
}

impl Growth {
    /// Where growth ends: nowhere that was measured, or unknown, is beyond all levels and before them.
    pub(crate) const fn end(self) -> f64 {
        match self {
            Growth::Untried => f64::NEG_INFINITY,
            Growth::Throughout => f64::INFINITY,
            Growth::Until(load) => load,
        }
    }

    /// The course over some levels, in any order.
    pub(crate) fn of(mut levels: Vec<Level>) -> Self {
        levels.retain(|level| level.load > 0.0 && level.throughput.is_finite());
        levels.sort_by(|one, other| one.load.total_cmp(&other.load));
        let grows = |from: &Level| {
            let more = levels.iter().filter(|to| to.load > from.load);
            more.into_iter().any(|to| brings_more(from, to))
        };
        match (levels.iter().find(|level| !grows(level)), levels.last()) {
            (Some(_), Some(last)) if levels.iter().all(|level| level.load == last.load) => Growth::Untried,
            (Some(end), Some(last)) if end.load == last.load => Growth::Throughout,
            (Some(end), _) => Growth::Until(end.load),
            _ => Growth::Untried,
        }
    }
}

/// Makes what was likely the limit at a level sure, or takes it back: by the level along each intensity, and how throughput
/// grows along that. Whether there is still something to say.
pub(crate) fn settled(finding: &mut Finding, grown: &[(f64, Growth)]) -> bool {
    let What::Limit(limited) = &mut finding.what else { return true };
    if grown.iter().all(|(_, growth)| *growth == Growth::Untried) {
        return true;
    }
    // One intensity along which more brings no more is enough: along the others there is nothing left to bring.
    let binds = |(load, growth): &(f64, Growth)| matches!(growth, Growth::Until(end) if load >= end);
    let bound = grown.iter().any(binds);
    match limited {
        Limited { standing: Some(standing @ Standing::Likely), .. } if bound => *standing = Standing::NoMore,
        Limited { standing: Some(standing @ Standing::Likely), .. } => {
            *standing = Standing::StillGrew;
            finding.severity = Severity::Note;
        }
        // That each operation waits for the target is no limit where more of them at once bring more.
        Limited { limit: Limit::OwnLatency { .. }, .. } => return bound,
        _ => {}
    }
    true
}

/// Whether an axis makes a load heavier: workers, depth, rates.
pub(crate) fn is_intensity(axis: &Axis) -> bool {
    matches!(axis.value.unit(), Some(Unit::Count | Unit::OperationsPerSecond))
}

fn brings_more(from: &Level, to: &Level) -> bool {
    // The gain that counts is smaller where the load grows by less than twice.
    let gain = (to.load / from.load).log2().min(1.0) * GAIN_LEAST;
    let noise = NOISE_LEAST.max(from.variation).max(to.variation);
    to.throughput > from.throughput * (1.0 + gain.max(noise))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(levels: &[(f64, f64)]) -> Growth {
        let level = |&(load, throughput)| Level { load, throughput, variation: 0.0 };
        Growth::of(levels.iter().map(level).collect())
    }

    #[test]
    fn throughput_that_doubles_with_the_load_grows() {
        assert_eq!(of(&[(1.0, 100.0), (2.0, 200.0), (4.0, 400.0)]), Growth::Throughout);
        assert_eq!(of(&[(1.0, 100.0), (2.0, 105.0), (4.0, 180.0)]), Growth::Throughout, "in the end it does");
    }

    #[test]
    fn throughput_that_stays_has_an_end() {
        assert_eq!(of(&[(8.0, 401.0), (4.0, 400.0), (1.0, 100.0), (2.0, 200.0)]), Growth::Until(4.0));
        assert_eq!(of(&[(4.0, 400.0), (8.0, 300.0)]), Growth::Until(4.0), "it falls");
        assert_eq!(of(&[(400.0, 400.0), (420.0, 419.0)]), Growth::Throughout, "a small step, wholly used");
        assert_eq!(of(&[(400.0, 400.0), (420.0, 401.0)]), Growth::Until(400.0));
    }

    #[test]
    fn one_level_tells_nothing() {
        assert_eq!((of(&[]), of(&[(4.0, 400.0)])), (Growth::Untried, Growth::Untried));
        assert_eq!(of(&[(4.0, 400.0), (4.0, 500.0)]), Growth::Untried);
        assert_eq!(of(&[(0.0, 1.0), (f64::NAN, 1.0), (2.0, f64::NAN)]), Growth::Untried);
    }

    #[test]
    fn noise_is_no_growth() {
        let level = |load, throughput| Level { load, throughput, variation: 0.2 };
        assert_eq!(Growth::of(vec![level(4.0, 400.0), level(8.0, 460.0)]), Growth::Until(4.0));
    }
}
