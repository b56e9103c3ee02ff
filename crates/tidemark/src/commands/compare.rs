//! `tidemark compare A B`: two stored results as the two arms of an evaluation.

use super::assessment::{self, Judged, outcome};
use super::outcome::{open_store, write};
use super::reference::{Reference, member_runs};
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use serde_json::json;
use std::path::PathBuf;
use tidemark_judge::Validity;
use tidemark_judge::evaluation::{Outcome, assess};
use tidemark_measure::evaluation::{Arm, Evaluation, Load, Member};
use tidemark_measure::record::{Run, State};
use tidemark_store::Store;

/// Says whether the second is better or worse than the first, or that there is no significant difference.
pub(crate) fn compare(
    arguments: &cli::Compare,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let store = open_store(store)?;
    let names = [&arguments.baseline, &arguments.other];
    let mut sides = Vec::new();
    for name in names {
        sides.push(side(name, &store)?);
    }
    let ids = |side: &Side| side.runs.iter().map(|run| run.id).collect::<Vec<_>>();
    let (first, second) = (ids(&sides[0]), ids(&sides[1]));
    let shared = first.iter().filter(|id| second.contains(id)).count();
    if shared > 0 {
        terminal.remark(&format!("note: {shared} runs are on both sides: they say nothing of a difference"));
    }
    let (evaluation, runs) = together(names.map(String::as_str), sides);
    let assessment = assess(&evaluation, &runs);
    let judged = Judged { evaluation: &evaluation, assessment: &assessment, runs: &runs };
    if let Some(path) = &arguments.report {
        write(path, judged.html(Some(&store)).as_bytes(), terminal);
    }
    if arguments.json {
        let parsed: serde_json::Value = serde_json::from_str(&judged.json()).unwrap_or_default();
        terminal.print(&json!({"outcome": assessment.outcome, "comparison": parsed}).to_string());
    } else {
        assessment::show(&judged, terminal);
        terminal.print(&format!("\n{}: {}", arguments.other, outcome(assessment.outcome)));
    }
    if assessment.validity != Validity::Valid {
        return Ok(Exit::Invalid);
    }
    Ok(match assessment.outcome {
        Outcome::NoDifference => Exit::Done,
        Outcome::Better if arguments.gate => Exit::Done,
        Outcome::Better => Exit::Better,
        Outcome::Worse | Outcome::Mixed => Exit::Worse,
        Outcome::NotCompared => Exit::NotCompared,
    })
}

/// One side: its loads as evaluations know them, and its runs with their places.
struct Side {
    loads: Vec<Load>,
    /// Whether its loads have names of their own, rather than that of a workload.
    is_evaluation: bool,
    runs: Vec<Run>,
}

fn side(name: &str, store: &Store) -> Result<Side, Stop> {
    Ok(match Reference::read(name, store)? {
        Reference::Runs(ids) => {
            let mut runs = Vec::new();
            for (index, id) in ids.iter().enumerate() {
                if ids[..index].contains(id) {
                    return Err(Stop::usage(format!(
                        "run {id} is named twice in `{name}`: repeats are runs of their own"
                    )));
                }
                let mut run = store.load(*id).map_err(Stop::usage)?;
                let member = Member { load: run.name.clone(), repeat: index as u32 + 1, ..Member::default() };
                run.member = Some(member);
                runs.push(run);
            }
            let mut loads: Vec<Load> = Vec::new();
            for run in &runs {
                if !loads.iter().any(|load| load.name == run.name) {
                    loads.push(Load { name: run.name.clone(), ..Load::default() });
                }
            }
            Side { loads, is_evaluation: false, runs }
        }
        Reference::Evaluation { id, arm } => {
            let evaluation = store.evaluation(id).map_err(Stop::usage)?;
            let arms = evaluation.arms.iter().map(|arm| arm.name.as_str());
            if let Some(wanted) = &arm
                && !arms.clone().any(|name| name == wanted)
            {
                let names: Vec<_> = arms.collect();
                return Err(Stop::usage(format!(
                    "e{id} has no arm `{wanted}`; its arms are {}",
                    names.join(", ")
                )));
            }
            let mut runs = member_runs(store, id).map_err(Stop::not_ready)?;
            let single = arm.is_some() || evaluation.arms.len() == 1;
            runs.retain(|run| arm.is_none() || run.member.as_ref().map(|member| &member.arm) == arm.as_ref());
            let mut loads = Vec::new();
            for load in &evaluation.loads {
                let of = evaluation.arms.iter().filter(|own| arm.as_ref().is_none_or(|arm| own.name == *arm));
                for own in of {
                    let name = if single { load.name.clone() } else { on(&load.name, &own.name) };
                    loads.push(Load { name, ..load.clone() });
                }
            }
            if !single {
                for member in runs.iter_mut().filter_map(|run| run.member.as_mut()) {
                    member.load = on(&member.load, &member.arm);
                }
            }
            Side { loads, is_evaluation: true, runs }
        }
    })
}

/// What a load on one of several arms is called.
fn on(load: &str, arm: &str) -> String {
    format!("{load} on {arm}")
}

/// Both sides as the arms of one evaluation.
fn together(names: [&str; 2], sides: Vec<Side>) -> (Evaluation, Vec<Run>) {
    let names = match names[0] == names[1] {
        true => [names[0].to_owned(), format!("{} again", names[1])],
        false => names.map(str::to_owned),
    };
    // Two workloads are compared whatever they are called: a setting may be part of the name.
    let unnamed = sides.iter().all(|side| !side.is_evaluation && side.loads.len() == 1);
    let mut evaluation = Evaluation {
        name: format!("{} beside {}", names[1], names[0]),
        state: State::Completed,
        arms: names.iter().map(|name| Arm { name: name.clone(), ..Arm::default() }).collect(),
        order: "as they were done".into(),
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
        let member = |repeat| Member { load: name.into(), repeat, ..Member::default() };
        let run = |index: usize| Run {
            started_unix_ns: 100 - index as u64,
            member: Some(member(index as u32 + 1)),
            ..Run::default()
        };
        let loads = vec![Load { name: name.into(), ..Load::default() }];
        Side { loads, is_evaluation: false, runs: (0..runs).map(run).collect() }
    }

    #[test]
    fn two_workloads_are_the_arms_of_one_load_whatever_they_are_called() {
        let (evaluation, runs) = together(["1,2", "3"], vec![side("disk", 2), side("memory", 1)]);
        assert_eq!((evaluation.arms.len(), evaluation.loads.len(), evaluation.repeats), (2, 1, 2));
        let places: Vec<_> = runs
            .iter()
            .filter_map(|run| run.member.as_ref())
            .map(|member| (member.arm.as_str(), member.load.as_str(), member.repeat, member.turn))
            .collect();
        assert_eq!(places, [("1,2", "disk", 1, 2), ("1,2", "disk", 2, 1), ("3", "disk", 1, 3)]);
    }

    #[test]
    fn a_result_beside_itself_is_two_arms() {
        let (evaluation, _) = together(["4", "4"], vec![side("a", 1), side("a", 1)]);
        assert_eq!(evaluation.arms[1].name, "4 again");
    }
}
