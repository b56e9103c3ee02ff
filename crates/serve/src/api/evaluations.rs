//! Stored evaluations and their reports.

use super::{Form, Format};
use crate::answer::ApiError;
use crate::app::App;
use crate::auth::Viewer;
use crate::body::{Path, Query};
use axum::Json as Reply;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use std::sync::Arc;
use tidemark_controller::api::{EvaluationRow, Trouble};
use tidemark_judge::evaluation::{Assessment, assess};
use tidemark_measure::evaluation::Evaluation;
use tidemark_measure::record::Run;
use tidemark_report::evaluation::{self as report, Heat, Subject};
use tidemark_store::Store;

/// Lists stored evaluations, newest first.
#[utoipa::path(get, path = "/evaluations", operation_id = "list_evaluations", tag = "results", responses((status = 200, body = Vec<EvaluationRow>)))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    _: Viewer,
) -> Result<Reply<Vec<EvaluationRow>>, ApiError> {
    let evaluations = app.with_controller(|controller| Ok(controller.store()?.evaluations()?)).await?;
    let rows = evaluations.into_iter().map(|evaluation| EvaluationRow {
        id: evaluation.id,
        name: evaluation.name,
        started_unix_ms: evaluation.started_unix_ns / 1_000_000,
        state: evaluation.state,
        valid: evaluation.valid,
        headline: evaluation.headline,
        runs: evaluation.runs,
    });
    Ok(Reply(rows.collect()))
}

/// Returns the report of an evaluation.
#[utoipa::path(
    get, path = "/evaluations/{id}/report", operation_id = "evaluation_report", tag = "results", params(("id" = u64, Path), Form),
    responses(
        (status = 200, description = "The report", content(
            (String = "text/html"), (String = "text/markdown"), (String = "text/csv"), (serde_json::Value = "application/json"),
        )),
        (status = 404, description = "Not found", body = Trouble),
        (status = 422, description = "Evaluations have no series", body = Trouble),
    )
)]
pub(super) async fn report(
    State(app): State<Arc<App>>,
    _: Viewer,
    Path(id): Path<u64>,
    Query(form): Query<Form>,
) -> Result<Response, ApiError> {
    let format = form.format.unwrap_or_default();
    if format == Format::SeriesCsv {
        let message =
            "evaluations have no series: request the series of their runs, which the format csv lists";
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, message));
    }
    app.with_store(move |_, store| {
        let evaluation = store.evaluation(id)?;
        let mut runs = store.runs_of(id)?;
        runs.retain(|run| run.member.is_some());
        let assessment = assess(&evaluation, &runs);
        let heat =
            if format == Format::Html { heat(store, &evaluation, &assessment, &runs) } else { Vec::new() };
        let subject = Subject { evaluation: &evaluation, assessment: &assessment, runs: &runs, heat: &heat };
        let text = match format {
            Format::Html => report::html(&subject),
            Format::Md => report::markdown(&subject),
            Format::Csv | Format::SeriesCsv => report::csv(&subject),
            Format::Json => report::json(&subject),
        };
        Ok(format.answer(text, &format!("evaluation-{id}")))
    })
    .await
}

/// Heat maps of what the store has seconds of. They are pictures on the side: one whose seconds cannot be read is left out.
fn heat(store: &Store, evaluation: &Evaluation, assessment: &Assessment, runs: &[Run]) -> Vec<Heat> {
    let wanted = report::wants_heat(evaluation, assessment, runs).into_iter();
    let read = |(id, stage, work)| {
        let mut heat = Heat::new(id, stage, work);
        store.seconds(id, stage, work, |interval| heat.add(interval)).ok().map(|()| heat)
    };
    wanted.filter_map(read).collect()
}
