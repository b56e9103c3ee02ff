//! Two groups of runs beside each other, judged as an evaluation of two arms.

mod operations;

use crate::answer::ApiError;
use crate::app::App;
use crate::auth::Viewer;
use crate::body::Query;
use axum::Json as Reply;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use tidemark_controller::api::{Comparison, ComparisonRow, MetricUnit, Trouble};
use tidemark_judge::compare::{self as judge_compare, Side};
use tidemark_judge::evaluation::{self as judged, Assessment, Cell, Metric, Outcome, assess_within};
use tidemark_report::evaluation::{Subject, figures};
use tidemark_store::Store;
use utoipa::IntoParams;

/// Runs of a side, at most: each is held in memory.
const MOST_RUNS: usize = 20;

/// Which runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Sides {
    /// Baseline: run numbers, repeats of each other.
    #[param(pattern = "^[0-9]+(,[0-9]+){0,19}$", example = "1,2")]
    a: String,
    /// Run numbers to compare with the baseline.
    #[param(pattern = "^[0-9]+(,[0-9]+){0,19}$", example = "3,4")]
    b: String,
    /// Share within which the groups count as equal; without one, only differences are looked for.
    #[param(example = "5%")]
    margin: Option<String>,
}

/// Compares two groups of runs.
#[utoipa::path(
    get, path = "/compare", tag = "results", params(Sides),
    responses((status = 200, body = Comparison), (status = 404, description = "Not found", body = Trouble))
)]
pub(super) async fn compare(
    State(app): State<Arc<App>>,
    _: Viewer,
    Query(sides): Query<Sides>,
) -> Result<Reply<Comparison>, ApiError> {
    let (first, second) = (numbers("a", &sides.a)?, numbers("b", &sides.b)?);
    let margin = sides.margin.as_deref().map(judge_compare::margin).transpose();
    let margin = margin.map_err(|help| ApiError::malformed(format!("the margin is not a share: {help}")))?;
    app.with_store(move |_, store| {
        let both = [side(store, &first)?, side(store, &second)?];
        if both[0].is(&both[1]) {
            return Ok(Reply(Comparison {
                outcome: Outcome::NotCompared.name().into(),
                sentence: "Both sides are the same runs: there is nothing to compare.".into(),
                ..Comparison::default()
            }));
        }
        let (evaluation, runs) = judge_compare::compare([&sides.a, &sides.b], both);
        let operations = operations::compared(&evaluation, &runs);
        let Some(nothing) = operations::nothing_comparable(&operations) else {
            let assessment = assess_within(&evaluation, &runs, margin);
            let subject =
                Subject { evaluation: &evaluation, assessment: &assessment, runs: &runs, heat: &[] };
            let drawn =
                figures(&subject).into_iter().map(|figure| (figure.title.clone(), figure.standalone()));
            return Ok(Reply(Comparison {
                outcome: assessment.outcome.name().into(),
                sentence: assessment.verdict.join(" "),
                comparable: true,
                margin,
                invalid: assessment.validity.sentences(),
                rows: assessment.comparisons.iter().filter_map(|one| row(one, &assessment)).collect(),
                figures: drawn.collect(),
                operations,
            }));
        };
        Ok(Reply(Comparison {
            outcome: Outcome::NotCompared.name().into(),
            sentence: nothing,
            margin,
            operations,
            ..Comparison::default()
        }))
    })
    .await
}

fn numbers(side: &str, text: &str) -> Result<Vec<u64>, ApiError> {
    let ids: Result<Vec<u64>, _> = text.split(',').map(|id| id.trim().parse()).collect();
    let ids =
        ids.map_err(|_| ApiError::malformed(format!("{side} must be run numbers, such as {side}=1,2")))?;
    if ids.len() > MOST_RUNS {
        return Err(ApiError::malformed(format!(
            "{side} names {} runs; the limit is {MOST_RUNS}",
            ids.len()
        )));
    }
    match ids.iter().enumerate().find(|(index, id)| ids[..*index].contains(id)) {
        Some((_, id)) => {
            Err(ApiError::malformed(format!("{side} names run {id} twice: repeats must be different runs")))
        }
        None => Ok(ids),
    }
}

fn side(store: &Store, ids: &[u64]) -> Result<Side, ApiError> {
    let runs: Result<Vec<_>, _> = ids.iter().map(|id| store.load(*id)).collect();
    Ok(Side::of_runs(runs?))
}

/// A comparison with the numbers of both sides.
fn row(one: &judged::Comparison, assessment: &Assessment) -> Option<ComparisonRow> {
    let value = |arm: &str| {
        let of_arm = |cell: &&Cell| cell.arm == arm && cell.load == one.load && cell.subject == one.subject;
        let mut cells = assessment.cells.iter().filter(of_arm);
        number(cells.find(|cell| cell.level == one.level)?, one.metric)
    };
    let level = one.level.iter().map(|axis| format!("{} {}", axis.name, axis.value));
    let place: Vec<String> = [one.load.clone(), one.subject.clone()]
        .into_iter()
        .chain(level)
        .filter(|part| !part.is_empty())
        .collect();
    Some(ComparisonRow {
        load: place.join(" "),
        metric: one.metric.name().into(),
        unit: match one.metric {
            Metric::Throughput => MetricUnit::OperationsPerSecond,
            Metric::MeanLatency | Metric::TailLatency => MetricUnit::Microseconds,
        },
        a: value(&one.baseline)?,
        b: value(&one.arm)?,
        ratio: one.ratio,
        interval: one.interval,
        detectable: one.detectable,
        outcome: match one.outcome {
            Outcome::NotCompared => "too few repeats".into(),
            _ => one.words(),
        },
    })
}

fn number(cell: &Cell, metric: Metric) -> Option<f64> {
    match metric {
        Metric::Throughput => Some(cell.throughput.mean),
        Metric::MeanLatency => cell.mean_ns.as_ref().map(|estimate| estimate.mean / 1000.0),
        Metric::TailLatency => cell.p99_ns.as_ref().map(|estimate| estimate.mean / 1000.0),
    }
}
