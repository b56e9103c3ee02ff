//! Sweeps: whether a resource without reserve was the limit is seen where the load grew.

use crate::Finding;
use crate::context::stage_label;
use crate::growth::{Growth, Level, is_intensity, settled};
use crate::statistics::estimate;
use crate::sweep::{Point, sweeps};
use tidemark_measure::axis::Axis;
use tidemark_measure::record::Run;

/// Makes what is likely the limit at a point of a sweep sure, or takes it back, by the points with more load.
pub(super) fn settle(run: &Run, said: &mut Vec<Finding>) {
    for sweep in sweeps(run) {
        for point in &sweep.points {
            let axes = point.axes.iter().filter(|axis| is_intensity(axis));
            let grown = axes.map(|axis| (axis.value.number(), growth(&sweep.points, point, axis)));
            let grown: Vec<_> = grown.filter_map(|(load, growth)| Some((load?, growth))).collect();
            let labels: Vec<String> = point.stages.iter().map(|stage| stage_label(stage)).collect();
            let here = |stage: &Option<String>| stage.as_ref().is_some_and(|stage| labels.contains(stage));
            said.retain_mut(|finding| !here(&finding.stage) || settled(finding, &grown));
        }
    }
}

/// How throughput grows along an intensity, everything else as at this point.
fn growth(points: &[Point<'_>], of: &Point<'_>, along: &Axis) -> Growth {
    let same = |other: &&Point<'_>| {
        let axes = other.axes.iter().zip(of.axes);
        other.engine == of.engine
            && other.axes.len() == of.axes.len()
            && axes.into_iter().all(|(one, axis)| one == axis || one.name == along.name)
    };
    let level = |point: &Point<'_>| {
        let rates = estimate(point.rates());
        let (throughput, variation) = (rates.mean, rates.variation);
        Some(Level { load: point.at(&along.name)?.value.number()?, throughput, variation })
    };
    Growth::of(points.iter().filter(same).filter_map(level).collect())
}
