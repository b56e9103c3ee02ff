//! The runs of an evaluation as what a search has seen.

use crate::conclusion::{Conclusion, FewSamples, Outcome, Phase, Problem, Seen, Trial};
use crate::search::look;
use tidemark_judge::evaluation::{Cell, counts, estimates, side};
use tidemark_judge::knee::Side;
use tidemark_judge::samples_needed;
use tidemark_measure::evaluation::Evaluation;
use tidemark_measure::record::{Run, State};
use tidemark_measure::tuning::{Configuration, Objective, Tried};

/// What the search of an evaluation has come to, and which runs it wants next; `None` if it is none.
pub fn look_at(evaluation: &Evaluation, runs: &[Run]) -> Option<(Conclusion, Vec<Trial>)> {
    let tuning = evaluation.tuning.as_ref()?;
    let mut all = refused(evaluation);
    all.extend(runs.iter().filter_map(|run| seen(evaluation, run)));
    let (mut conclusion, next) = look(Problem { tuning, seed: evaluation.provenance.seed }, &all);
    conclusion.few_samples =
        tuning.objectives().into_iter().filter_map(|own| few_samples(evaluation, runs, own)).collect();
    Some((conclusion, next))
}

/// In how many runs an objective rests on too few samples; `None` if in none, or if it is no percentile.
fn few_samples(evaluation: &Evaluation, runs: &[Run], objective: Objective) -> Option<FewSamples> {
    let needed = samples_needed(objective.percentile()?);
    let is_few = |cell: &Cell| (1..needed).contains(&cell.response.count());
    let of = |run: &&Run| {
        seen(evaluation, run).is_some()
            && estimates(evaluation, std::slice::from_ref(*run)).iter().any(is_few)
    };
    let runs = runs.iter().filter(of).count() as u32;
    (runs > 0).then_some(FewSamples { objective, runs, needed })
}

/// What could not be set up: whatever is asked of it, it has failed.
fn refused(evaluation: &Evaluation) -> Vec<Seen> {
    let tried = evaluation.tuning.iter().flat_map(|tuning| &tuning.tried);
    let refused = tried.filter(|tried| !tried.refused.is_empty());
    let seen = |tried: &Tried| Seen {
        trial: Trial { phase: phase(tried), configuration: tried.configuration.clone(), repeat: 0 },
        outcome: Outcome::Outside,
    };
    refused.map(seen).collect()
}

/// A run as the search sees it; `None` if it is of none of its trials, or was interrupted.
fn seen(evaluation: &Evaluation, run: &Run) -> Option<Seen> {
    let tuning = evaluation.tuning.as_ref()?;
    let member = run.member.as_ref()?;
    let tried = tuning.tried.iter().find(|tried| tried.arm == member.arm)?;
    if !matches!(run.state, State::Completed | State::Failed) {
        return None;
    }
    let trial =
        Trial { phase: phase(tried), configuration: tried.configuration.clone(), repeat: member.repeat };
    let level = evaluation.loads.first().and_then(|load| load.service_level.as_ref());
    let is_outside = level.is_some_and(|level| side(run, level) == Side::Outside);
    let value = |objective: Objective| {
        value(evaluation, run, objective, &tried.configuration)
            .filter(|_| !is_outside && counts(run, level.is_some()))
    };
    let outcome = match tuning.second {
        None => value(tuning.objective).map(Outcome::Value),
        Some(second) => {
            value(tuning.objective).zip(value(second)).map(|(one, other)| Outcome::Values(one, other))
        }
    };
    Some(Seen { trial, outcome: outcome.unwrap_or(Outcome::Outside) })
}

/// A step that asks for such an arm: only the proof's are told from the others.
fn phase(tried: &Tried) -> Phase {
    if tried.proves { Phase::Proof } else { Phase::Screening }
}

/// The objective in a run with a configuration: of throughputs of several parts the sum, of response times the longest.
fn value(
    evaluation: &Evaluation,
    run: &Run,
    objective: Objective,
    configuration: &Configuration,
) -> Option<f64> {
    let cells = estimates(evaluation, std::slice::from_ref(run));
    let of = |cell: &Cell| match objective {
        Objective::Throughput | Objective::Price => Some(cell.throughput.mean),
        Objective::MeanLatency => cell.mean_ns.as_ref().map(|estimate| estimate.mean),
        Objective::P95 => cell.p95_ns.as_ref().map(|estimate| estimate.mean),
        Objective::P99 => cell.p99_ns.as_ref().map(|estimate| estimate.mean),
    };
    let values: Vec<f64> = cells.iter().map(of).collect::<Option<_>>()?;
    let sum = || (!values.is_empty()).then(|| values.iter().sum::<f64>());
    match objective {
        Objective::Throughput => sum(),
        Objective::Price => {
            let tuning = evaluation.tuning.as_ref()?;
            Some(tuning.price.as_ref()?.of_million(&tuning.space, configuration, sum()?))
        }
        _ => values.into_iter().reduce(f64::max),
    }
}
