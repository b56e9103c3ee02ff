//! Two groups of runs beside each other, judged as an evaluation of two arms.

use crate::answer::Refused;
use crate::app::App;
use crate::auth::Viewer;
use crate::body::Query;
use axum::Json as Reply;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use tidemark_controller::api::{Comparison, ComparisonRow, Trouble};
use tidemark_judge::Validity;
use tidemark_judge::compare::{self as judge_compare, Side};
use tidemark_judge::evaluation::{self as judged, Assessment, Cell, Metric, Outcome, assess};
use tidemark_report::evaluation::{Subject, figures};
use tidemark_store::Store;
use utoipa::IntoParams;

/// Runs of a side, at most: each is held in memory.
const MOST_RUNS: usize = 20;

/// Which runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Sides {
    /// Numbers of runs, repeats of each other: the baseline.
    #[param(pattern = "^[0-9]+(,[0-9]+){0,19}$", example = "1,2")]
    a: String,
    /// Numbers of runs that are compared with them.
    #[param(pattern = "^[0-9]+(,[0-9]+){0,19}$", example = "3,4")]
    b: String,
}

/// Whether the second group of runs is better or worse than the first.
#[utoipa::path(
    get, path = "/compare", tag = "results", params(Sides),
    responses((status = 200, body = Comparison), (status = 404, description = "There is no such run", body = Trouble))
)]
pub(super) async fn compare(
    State(app): State<Arc<App>>,
    _: Viewer,
    Query(sides): Query<Sides>,
) -> Result<Reply<Comparison>, Refused> {
    let (first, second) = (numbers("a", &sides.a)?, numbers("b", &sides.b)?);
    app.make(move |_, store| {
        let both = [side(store, &first)?, side(store, &second)?];
        let (evaluation, runs) = judge_compare::compare([&sides.a, &sides.b], both);
        let assessment = assess(&evaluation, &runs);
        let subject = Subject { evaluation: &evaluation, assessment: &assessment, runs: &runs, heat: &[] };
        let drawn = figures(&subject).into_iter().map(|figure| (figure.title.clone(), figure.standalone()));
        Ok(Reply(Comparison {
            outcome: outcome(assessment.outcome).into(),
            sentence: assessment.verdict.join(" "),
            invalid: match &assessment.validity {
                Validity::Valid => Vec::new(),
                Validity::Invalid(reasons) => reasons.clone(),
            },
            rows: assessment.comparisons.iter().filter_map(|one| row(one, &assessment)).collect(),
            figures: drawn.collect(),
        }))
    })
    .await
}

fn numbers(side: &str, text: &str) -> Result<Vec<u64>, Refused> {
    let ids: Result<Vec<u64>, _> = text.split(',').map(|id| id.trim().parse()).collect();
    let ids = ids.map_err(|_| {
        Refused::malformed(format!("{side} names no runs: write their numbers, as in {side}=1,2"))
    })?;
    if ids.len() > MOST_RUNS {
        return Err(Refused::malformed(format!(
            "{side} names {} runs: up to {MOST_RUNS} are compared",
            ids.len()
        )));
    }
    match ids.iter().enumerate().find(|(index, id)| ids[..*index].contains(id)) {
        Some((_, id)) => {
            Err(Refused::malformed(format!("{side} names run {id} twice: repeats are runs of their own")))
        }
        None => Ok(ids),
    }
}

fn side(store: &Store, ids: &[u64]) -> Result<Side, Refused> {
    let runs: Result<Vec<_>, _> = ids.iter().map(|id| store.load(*id)).collect();
    Ok(Side::of_runs(runs?))
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::Mixed => "better here and worse there",
        Outcome::NoDifference => "no significant difference",
        Outcome::NotCompared => "not comparable",
    }
}

/// A comparison with the numbers of both sides.
fn row(one: &judged::Comparison, assessment: &Assessment) -> Option<ComparisonRow> {
    let value = |arm: &str| {
        let of_arm = |cell: &&Cell| cell.arm == arm && cell.load == one.load && cell.subject == one.subject;
        let mut cells = assessment.cells.iter().filter(of_arm);
        number(cells.find(|cell| cell.level == one.level)?, one.metric)
    };
    let place: Vec<&str> = [one.load.as_str(), &one.subject]
        .into_iter()
        .chain(one.level.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]))
        .filter(|part| !part.is_empty())
        .collect();
    Some(ComparisonRow {
        load: place.join(" "),
        metric: match one.metric {
            Metric::Throughput => "throughput (op/s)",
            Metric::MeanLatency => "mean response time (µs)",
            Metric::TailLatency => "99th percentile of the response time (µs)",
        }
        .into(),
        a: value(&one.baseline)?,
        b: value(&one.arm)?,
        ratio: one.ratio,
        interval: one.interval,
        outcome: match one.outcome {
            Outcome::NotCompared => "too few repeats for a test",
            known => outcome(known),
        }
        .into(),
    })
}

fn number(cell: &Cell, metric: Metric) -> Option<f64> {
    match metric {
        Metric::Throughput => Some(cell.throughput.mean),
        Metric::MeanLatency => cell.mean_ns.as_ref().map(|estimate| estimate.mean / 1000.0),
        Metric::TailLatency => cell.p99_ns.as_ref().map(|estimate| estimate.mean / 1000.0),
    }
}
