//! Two stored results beside each other: an evaluation of two arms is made of them, and judged like any other.

use std::collections::BTreeSet;
use tidemark_measure::evaluation::{Arm, Evaluation, Load, Member};
use tidemark_measure::record::{Run, State};
use tidemark_measure::units;

/// The order of stored results that are compared: nobody chose it.
const ORDER: &str = "as they were done";

/// Whether an evaluation is made of stored results: nobody asked for its repeats, nor for its order.
pub(crate) fn is_of_stored(evaluation: &Evaluation) -> bool {
    evaluation.order == ORDER
}

/// One side: its loads as evaluations know them, and its runs with their places.
pub struct Side {
    loads: Vec<Load>,
    /// Whether its loads have names of their own, rather than that of a workload.
    is_evaluation: bool,
    runs: Vec<Run>,
    /// Whether its repeats went on until they were known exactly enough: an evaluation's.
    until: Option<f64>,
}

impl Side {
    /// Runs that are repeats of each other, or of several workloads.
    pub fn of_runs(mut runs: Vec<Run>) -> Self {
        let mut loads: Vec<Load> = Vec::new();
        for (index, run) in runs.iter_mut().enumerate() {
            let member = Member { load: run.name.clone(), repeat: index as u32 + 1, ..Member::default() };
            run.member = Some(member);
            if !loads.iter().any(|load| load.name == run.name) {
                loads.push(Load { name: run.name.clone(), ..Load::default() });
            }
        }
        Self { loads, is_evaluation: false, runs, until: None }
    }

    /// An evaluation with its runs, or one arm of it.
    pub fn of_evaluation(evaluation: &Evaluation, arm: Option<&str>, mut runs: Vec<Run>) -> Self {
        let single = arm.is_some() || evaluation.arms.len() == 1;
        runs.retain(|run| arm.is_none() || run.member.as_ref().map(|member| member.arm.as_str()) == arm);
        let mut loads = Vec::new();
        for load in &evaluation.loads {
            for own in evaluation.arms.iter().filter(|own| arm.is_none_or(|arm| own.name == arm)) {
                let name = if single { load.name.clone() } else { on(&load.name, &own.name) };
                loads.push(Load { name, ..load.clone() });
            }
        }
        if !single {
            for member in runs.iter_mut().filter_map(|run| run.member.as_mut()) {
                member.load = on(&member.load, &member.arm);
            }
        }
        Self { loads, is_evaluation: true, runs, until: evaluation.until }
    }

    /// Whether two sides are the same runs: there is nothing to compare then.
    pub fn is(&self, other: &Self) -> bool {
        let ids = |side: &Self| side.ids().collect::<BTreeSet<u64>>();
        !self.runs.is_empty() && ids(self) == ids(other)
    }

    /// The numbers of its runs.
    pub fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.iter().map(|run| run.id)
    }
}

/// What a load on one of several arms is called.
fn on(load: &str, arm: &str) -> String {
    format!("{load} on {arm}")
}

/// Reads a margin: a share above nothing and below all, such as `5%`.
///
/// # Errors
/// When it is not one: what to write.
pub fn margin(text: &str) -> Result<f64, String> {
    let share = units::parse_share(text).map_err(|error| error.to_string())?;
    match share > 0.0 && share < 1.0 {
        true => Ok(share),
        false => Err("write a share between 0 and 100 %, such as `5%`".into()),
    }
}

/// Both sides as the arms of one evaluation, the first as its baseline: for [`assess`](crate::evaluation::assess).
pub fn compare(names: [&str; 2], sides: [Side; 2]) -> (Evaluation, Vec<Run>) {
    let names = match names[0] == names[1] {
        true => [names[0].to_owned(), format!("{} again", names[1])],
        false => names.map(str::to_owned),
    };
    // Two workloads are compared whatever they are called: a setting may be part of the name.
    let unnamed = sides.iter().all(|side| !side.is_evaluation && side.loads.len() == 1);
    let mut evaluation = Evaluation {
        name: format!("{} compared with {}", names[1], names[0]),
        state: State::Completed,
        arms: names.iter().map(|name| Arm { name: name.clone(), ..Arm::default() }).collect(),
        order: ORDER.into(),
        // Repeats that ended when they agreed call for a stricter test, whichever side has them.
        until: sides.iter().filter_map(|side| side.until).reduce(f64::max),
        ..Evaluation::default()
    };
    let mut runs = Vec::new();
    for (name, side) in names.iter().zip(sides) {
        evaluation.repeats = evaluation
            .repeats
            .max(side.runs.iter().filter_map(|run| Some(run.member.as_ref()?.repeat)).max().unwrap_or(1));
        let only = if unnamed { evaluation.loads.first().map(|load| load.name.clone()) } else { None };
        for load in side.loads {
            let known = evaluation.loads.iter_mut().find(|known| known.name == load.name || only.is_some());
            match known {
                Some(known) => {
                    let new = load.levels.iter().filter(|level| !known.levels.contains(level));
                    let new: Vec<_> = new.cloned().collect();
                    known.levels.extend(new);
                }
                None => evaluation.loads.push(load),
            }
        }
        for mut run in side.runs {
            if let Some(member) = &mut run.member {
                member.arm.clone_from(name);
                if let Some(only) = &only {
                    member.load.clone_from(only);
                }
            }
            runs.push(run);
        }
    }
    // Turns of different evaluations say nothing of the order of time.
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|index| runs[*index].started_unix_ns);
    for (turn, index) in order.into_iter().enumerate() {
        if let Some(member) = &mut runs[index].member {
            member.turn = turn as u32 + 1;
        }
    }
    (evaluation, runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, runs: usize) -> Side {
        let run =
            |index: usize| Run { name: name.into(), started_unix_ns: 100 - index as u64, ..Run::default() };
        Side::of_runs((0..runs).map(run).collect())
    }

    #[test]
    fn two_workloads_are_the_arms_of_one_load_whatever_they_are_called() {
        let (evaluation, runs) = compare(["1,2", "3"], [side("disk", 2), side("memory", 1)]);
        assert_eq!((evaluation.arms.len(), evaluation.loads.len(), evaluation.repeats), (2, 1, 2));
        let places: Vec<_> = runs
            .iter()
            .filter_map(|run| run.member.as_ref())
            .map(|member| (member.arm.as_str(), member.load.as_str(), member.repeat, member.turn))
            .collect();
        assert_eq!(places, [("1,2", "disk", 1, 2), ("1,2", "disk", 2, 1), ("3", "disk", 1, 3)]);
    }

    #[test]
    fn repeats_that_ended_when_they_agreed_stay_such_in_a_comparison() {
        let evaluation = Evaluation { until: Some(0.03), ..Evaluation::default() };
        let sides = [side("a", 2), Side::of_evaluation(&evaluation, None, Vec::new())];
        assert_eq!(compare(["4", "e1"], sides).0.until, Some(0.03));
        assert_eq!(compare(["4", "5"], [side("a", 1), side("a", 1)]).0.until, None);
    }

    #[test]
    fn a_result_beside_itself_is_two_arms() {
        let (evaluation, _) = compare(["4", "4"], [side("a", 1), side("a", 1)]);
        assert_eq!(evaluation.arms[1].name, "4 again");
    }
}
