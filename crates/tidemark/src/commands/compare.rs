//! `tidemark compare A B`: two stored results as the two arms of an evaluation.

use super::assessment::{self, Judged};
use super::outcome::{open_store, write};
use super::reference::{Reference, member_runs};
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use serde_json::json;
use std::path::PathBuf;
use tidemark_judge::compare::{self as judge_compare, Side};
use tidemark_judge::evaluation::{Outcome, assess_within};
use tidemark_store::Store;

/// Reports whether the second is better or worse than the first, or, with a margin, equal to it.
pub(crate) fn compare(
    arguments: &cli::Compare,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let store = open_store(store)?;
    let names = [&arguments.baseline, &arguments.other];
    let sides = [side(names[0], &store)?, side(names[1], &store)?];
    if sides[0].is(&sides[1]) {
        return Err(Stop::usage(format!(
            "`{}` and `{}` are the same runs: there is nothing to compare; name two results, or two arms of one (`e3/disk e3/memory`)",
            names[0], names[1]
        )));
    }
    let shared = sides[0].ids().filter(|id| sides[1].ids().any(|other| other == *id)).count();
    if shared > 0 {
        terminal
            .remark(&format!("note: {shared} runs are on both sides and do not contribute to a difference"));
    }
    let (evaluation, runs) = judge_compare::compare(names.map(String::as_str), sides);
    let assessment = assess_within(&evaluation, &runs, arguments.margin);
    let judged = Judged { evaluation: &evaluation, assessment: &assessment, runs: &runs };
    if let Some(path) = &arguments.report {
        write(path, judged.html(Some(&store)).as_bytes(), terminal);
    }
    if arguments.json {
        let parsed: serde_json::Value = serde_json::from_str(&judged.json()).unwrap_or_default();
        terminal.print(&json!({"outcome": assessment.outcome, "comparison": parsed}).to_string());
    } else {
        assessment::show(&judged, terminal);
        terminal.print(&format!("\n{}: {}", arguments.other, assessment.outcome.name()));
    }
    if !assessment.validity.is_valid() {
        return Ok(Exit::Invalid);
    }
    Ok(match assessment.outcome {
        Outcome::Equal | Outcome::NotWorse | Outcome::CannotTell => Exit::Done,
        Outcome::Inconclusive | Outcome::Confounded => Exit::Inconclusive,
        Outcome::Better if arguments.gate => Exit::Done,
        Outcome::Better => Exit::Better,
        Outcome::Worse | Outcome::Mixed => Exit::Worse,
        Outcome::NotCompared => Exit::NotCompared,
    })
}

fn side(name: &str, store: &Store) -> Result<Side, Stop> {
    Ok(match Reference::read(name, store)? {
        Reference::Runs(ids) => {
            let mut runs = Vec::new();
            for (index, id) in ids.iter().enumerate() {
                if ids[..index].contains(id) {
                    return Err(Stop::usage(format!(
                        "run {id} is listed twice in `{name}`: repeats must be different runs"
                    )));
                }
                runs.push(store.load(*id).map_err(Stop::usage)?);
            }
            Side::of_runs(runs)
        }
        Reference::Evaluation { id, arm } => {
            let evaluation = store.evaluation(id).map_err(Stop::usage)?;
            let arms = evaluation.arms.iter().map(|arm| arm.name.as_str());
            if let Some(wanted) = &arm
                && !arms.clone().any(|name| name == wanted)
            {
                let names: Vec<_> = arms.collect();
                return Err(Stop::usage(format!(
                    "e{id} has no arm `{wanted}`; choose from {}",
                    names.join(", ")
                )));
            }
            let runs = member_runs(store, id).map_err(Stop::not_ready)?;
            Side::of_evaluation(&evaluation, arm.as_deref(), runs)
        }
    })
}
