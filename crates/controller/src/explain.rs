//! What a document would do, in words: what `tidemark check` says, for the console.

use crate::api::{Check, CheckedStage, Problem};
use crate::reading::{ReadFailure, Reading, What};
use tidemark_control::evaluate::expected_searches;
use tidemark_judge::knee::Expected;
use tidemark_measure::record::{GENERAL, Note};
use tidemark_measure::units;
use tidemark_plan::evaluation::{Evaluation, Levels};
use tidemark_plan::forecast::{Forecast, Stage, Time, Work};

/// Says what a document would do, or why it would not.
pub(crate) fn explain(outcome: Result<Reading, ReadFailure>) -> Check {
    match outcome {
        Ok(reading) => check(reading),
        Err(ReadFailure::Wrong(problems)) => Check { problems, ..Check::default() },
        Err(ReadFailure::Refused(message)) => refused(message, ""),
        Err(ReadFailure::Busy) => {
            refused("too many documents are being read".into(), "try again in a few seconds")
        }
    }
}

fn refused(message: String, help: &str) -> Check {
    Check { problems: vec![Problem { message, help: help.into(), ..Problem::whole() }], ..Check::default() }
}

impl Problem {
    /// One that concerns the whole document.
    fn whole() -> Self {
        let (message, help) = (String::new(), String::new());
        Self { warning: false, general: false, line: 0, column: 0, length: 0, message, help }
    }

    /// A remark on the whole document.
    fn remark(note: &Note) -> Self {
        Self { warning: true, general: note.topic == GENERAL, message: note.text.clone(), ..Self::whole() }
    }
}

fn check(reading: Reading) -> Check {
    let mut check = Check {
        ok: true,
        format: reading.format.into(),
        name: reading.name,
        problems: reading.warnings,
        ..Check::default()
    };
    match &reading.what {
        What::Workload { plan, forecast } => {
            check.explanation = workload(forecast);
            check.stages = forecast.stages.iter().map(stage).collect();
            check.expected_ms = expected_ms(&forecast.time);
            check.bytes = Some(forecast.stored_bytes);
            check.problems.extend(plan.notes.iter().map(Problem::remark));
        }
        What::Evaluation { evaluation, loads, .. } => {
            check.explanation = self::evaluation(evaluation, loads);
            check.stages = evaluation
                .loads
                .iter()
                .zip(loads)
                .map(|(load, forecast)| CheckedStage {
                    name: load.name.clone(),
                    works: forecast.stages.iter().flat_map(|stage| stage.works.iter().map(work)).collect(),
                    expected_ms: expected_ms(&forecast.time),
                })
                .collect();
            check.expected_ms = evaluation_ms(evaluation, loads);
            check.problems.extend(evaluation.notes.iter().map(Problem::remark));
        }
    }
    check
}

/// Milliseconds, where time alone decides.
pub(crate) fn expected_ms(time: &Time) -> Option<u64> {
    time.until.is_empty().then_some(time.planned_ns / 1_000_000)
}

/// How long an evaluation takes, where all its loads are listed and time alone decides.
pub(crate) fn evaluation_ms(evaluation: &Evaluation, loads: &[Forecast]) -> Option<u64> {
    let each: Option<Vec<u64>> = loads.iter().map(|load| expected_ms(&load.time)).collect();
    let searches = evaluation.loads.iter().any(|load| matches!(load.levels, Levels::Searched(_)));
    let each = each.filter(|_| !searches)?;
    Some(evaluation.cells().iter().map(|cell| each[cell.load]).fold(0, u64::saturating_add))
}

fn workload(forecast: &Forecast) -> Vec<String> {
    let mut lines = vec![format!("Total duration: {}.", forecast.time.summary())];
    let connections = match forecast.connections {
        0 => String::new(),
        some => format!(" over {}", counted(some, "connection")),
    };
    lines.push(format!("Concurrency: at most {}{connections}.", counted(forecast.workers, "worker")));
    lines.push(format!("Memory on the drivers: about {} in total.", units::bytes(forecast.memory_bytes)));
    if forecast.volume_bytes > 0 {
        lines.push(format!("Volumes used: {} in total.", units::bytes(forecast.volume_bytes)));
    }
    if forecast.stored_bytes > 0 {
        lines.push(format!("Data stored: up to {}.", units::bytes(forecast.stored_bytes)));
    }
    lines
}

fn evaluation(evaluation: &Evaluation, loads: &[Forecast]) -> Vec<String> {
    let arms: Vec<&str> = evaluation.arms.iter().map(|arm| arm.name.as_str()).collect();
    let mut lines = vec![match &arms[..] {
        [only] => format!("Measures one arm: {only}."),
        several => {
            format!("Compares {} arms ({}): {}.", several.len(), evaluation.order.name(), arms.join(", "))
        }
    }];
    for (load, forecast) in evaluation.loads.iter().zip(loads) {
        lines.push(format!("One run of {}: {}.", load.name, forecast.time.summary()));
    }
    let (runs, repeats) = (evaluation.cells().len() as u64, u64::from(evaluation.repeats));
    let more = match expected_searches(evaluation) {
        Some(Expected { least, undisturbed, most }) => {
            format!(", and {least} to {most} for the searches, about {undisturbed} if no run misleads")
        }
        None => String::new(),
    };
    let most = if evaluation.until.is_some() { "at most " } else { "" };
    lines.push(format!("{most}{} ({}){more}.", counted(runs, "run"), counted(repeats, "repeat")));
    lines
}

fn stage(stage: &Stage) -> CheckedStage {
    CheckedStage {
        name: stage.name.clone(),
        works: stage.works.iter().map(work).collect(),
        expected_ms: expected_ms(&stage.time),
    }
}

fn work(work: &Work) -> String {
    let sharing = work.sharing();
    let think = if work.think.is_none() { String::new() } else { format!(", think time {}", work.think) };
    let actions: Vec<String> = work.operations().into_iter().map(|(action, _)| action).collect();
    let workers = counted(work.workers.into(), "worker");
    let target = if work.target.is_empty() { String::new() } else { format!(", on {}", work.target) };
    let head = format!("{}: {workers}{sharing}{think}, {}{target}", work.name, work.time.describe());
    if actions.is_empty() { head } else { format!("{head}: {}", actions.join("; ")) }
}

/// `1 worker`, `64 workers`.
fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", units::count(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{Purpose, Reader};

    #[test]
    fn a_document_is_explained() {
        let text = "name: small\ntarget: {kind: mock, delay: 1ms}\nstages:\n\
                    - {name: main, load: {for: 90s, workers: 8, containers: 1, operations: [{get: {objects: 10}}]}}\n- {name: rest, pause: 10s}\n";
        let check =
            explain(Reader::new(Default::default(), tidemark_engines::registry()).read(text, Purpose::Run));
        assert!(check.ok, "{check:?}");
        assert_eq!((check.name.as_str(), check.format.as_str()), ("small", "Tidemark YAML"));
        assert_eq!(check.expected_ms, Some(100_000), "{check:?}");
        assert_eq!(check.stages.len(), 2);
        assert!(check.stages[0].works[0].contains("8 workers"), "{:?}", check.stages);
        assert!(check.explanation.iter().all(|line| line.ends_with('.')), "{:?}", check.explanation);
        assert!(check.problems.iter().all(|problem| problem.warning), "{:?}", check.problems);
    }

    #[test]
    fn what_holds_for_every_cosbench_file_is_told_from_what_this_one_says() {
        let text = "<workload name=\"x\"><storage type=\"none\"/><workflow><workstage name=\"m\"><work name=\"w\" workers=\"1\" \
                    runtime=\"1\"><operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=c(1);hashcheck=true\"/>\
                    </work></workstage></workflow></workload>";
        let check =
            explain(Reader::new(Default::default(), tidemark_engines::registry()).read(text, Purpose::Run));
        let general: Vec<_> = check.problems.iter().filter(|problem| problem.general).collect();
        assert_eq!(general.len(), 1, "{:?}", check.problems);
        assert!(general[0].warning && general[0].message.contains("every COSBench file"), "{general:?}");
        assert!(check.problems.iter().any(|one| one.message.contains("hashcheck")), "{:?}", check.problems);
    }

    #[test]
    fn what_cannot_run_says_why() {
        let check = explain(
            Reader::new(Default::default(), tidemark_engines::registry()).read("name: x\n", Purpose::Run),
        );
        assert!(!check.ok && check.problems.iter().any(|problem| !problem.warning), "{check:?}");
        let check = explain(Err(ReadFailure::Busy));
        assert!(!check.ok && check.problems[0].help.contains("again"));
    }
}
