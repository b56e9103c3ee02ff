//! Which level stands for a load where there is room for one only: the same one in the headline, in tables and in figures.

use super::{Cell, Knee};
use tidemark_measure::evaluation::{Level, number_on};

/// Of the levels at which all arms were measured: the knee of the first arm that has one, or else the highest. `cells` are those
/// of one load and subject, in the order of the assessment.
pub fn shown<'c>(cells: &[&'c Cell], knees: &[Knee]) -> Option<&'c Level> {
    let arms = |level: Option<&Level>| {
        let mut arms: Vec<&str> = cells
            .iter()
            .filter(|cell| level.is_none_or(|level| &cell.level == level))
            .map(|cell| cell.arm.as_str())
            .collect();
        arms.sort_unstable();
        arms.dedup();
        arms.len()
    };
    let all = arms(None);
    let own = |knee: &&Knee| {
        cells.first().is_some_and(|cell| (&knee.load, &knee.subject) == (&cell.load, &cell.subject))
    };
    let knee = knees.iter().find(own);
    let is_knee = |level: &&Level| {
        knee.is_some_and(|knee| knee.level.is_some() && number_on(level, &knee.axis) == knee.level)
    };
    let levels: Vec<&Level> = cells.iter().map(|cell| &cell.level).collect();
    let shared: Vec<&Level> = levels.iter().copied().filter(|level| arms(Some(level)) == all).collect();
    let numbers =
        |level: &Level| -> Vec<f64> { level.iter().filter_map(|axis| axis.value.number()).collect() };
    let highest = |levels: &[&'c Level]| {
        levels.iter().copied().max_by(|left, right| {
            let (left, right) = (numbers(left), numbers(right));
            let differs = left.iter().zip(&right).map(|(one, other)| one.total_cmp(other));
            differs.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        })
    };
    let at_knee = shared.iter().copied().find(is_knee);
    at_knee.or_else(|| highest(&shared)).or_else(|| highest(&levels))
}
