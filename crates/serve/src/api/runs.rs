//! Stored runs: lists, reports, figures, the performance matrix.

use super::{ETag, Form, Format, Page, typed};
use crate::answer::ApiError;
use crate::app::App;
use crate::auth::{Operator, Viewer};
use crate::body::{Path, Query};
use axum::Json as Reply;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;
use tidemark_controller::api::{Figure, MatrixRow, RunRow, Trouble};
use tidemark_judge::judge;
use tidemark_report::{RunRecord, figures};
use tidemark_store::{OperationRow, RunSummary, Store};
use utoipa::IntoParams;

/// Which runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Listed {
    /// Maximum number of rows; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Only runs before this number.
    #[param(minimum = 0)]
    before: Option<u64>,
    /// Only runs whose name contains this, ignoring case.
    name: Option<String>,
}

/// Runs that are in memory at once while the wanted ones are looked for.
const PAGE: u64 = 1000;

/// Lists stored runs, newest first.
#[utoipa::path(get, path = "/runs", operation_id = "list_runs", tag = "results", params(Listed), responses((status = 200, body = Vec<RunRow>)))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    _: Viewer,
    Query(listed): Query<Listed>,
) -> Result<Reply<Vec<RunRow>>, ApiError> {
    let Listed { limit, before, name } = listed;
    let limit = Page { limit, before }.limit()?;
    let wanted = name.unwrap_or_default().to_lowercase();
    let rows = app.with_controller(move |controller| {
        let store = controller.store()?;
        let is_wanted = |run: &RunSummary| wanted.is_empty() || run.name.to_lowercase().contains(&wanted);
        let (mut rows, mut before) = (Vec::new(), before);
        while rows.len() < limit {
            let page = store.list_before(before, PAGE)?;
            let (Some(newest), Some(oldest)) = (page.first(), page.last()) else { break };
            let submissions = store.submissions_of_runs(oldest.id..=newest.id)?;
            before = Some(oldest.id);
            let named = page.into_iter().filter(is_wanted).take(limit - rows.len());
            rows.extend(named.map(|run| row(submissions.get(&run.id).copied(), run)));
        }
        Ok(rows)
    });
    Ok(Reply(rows.await?))
}

fn row(submission: Option<u64>, run: RunSummary) -> RunRow {
    RunRow {
        id: run.id,
        name: run.name,
        started_unix_ms: run.started_unix_ns / 1_000_000,
        elapsed_ms: run.elapsed_ns / 1_000_000,
        state: run.state,
        valid: run.valid,
        operations: run.operations,
        failed: run.failed,
        headline: run.headline,
        evaluation: run.evaluation,
        submission,
    }
}

/// Returns a run with all its numbers.
#[utoipa::path(
    get, path = "/runs/{id}", operation_id = "get_run", tag = "results", params(("id" = u64, Path)),
    responses(
        (status = 200, description = "As `tidemark report --format json` has it", body = RunRecord),
        (status = 304, description = "Not modified"),
        (status = 404, description = "Not found", body = Trouble),
    )
)]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    _: Viewer,
    Path(id): Path<u64>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    reported(&app, id, Format::Json, headers, |text| typed(text, "application/json")).await
}

/// Returns the report of a run.
#[utoipa::path(
    get, path = "/runs/{id}/report", operation_id = "run_report", tag = "results", params(("id" = u64, Path), Form),
    responses(
        (status = 200, description = "The report", content(
            (String = "text/html"), (String = "text/markdown"), (String = "text/csv"), (serde_json::Value = "application/json"),
        )),
        (status = 304, description = "Not modified"),
        (status = 404, description = "Not found", body = Trouble),
    )
)]
pub(super) async fn report(
    State(app): State<Arc<App>>,
    _: Viewer,
    Path(id): Path<u64>,
    Query(form): Query<Form>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let format = form.format.unwrap_or_default();
    reported(&app, id, format, headers, move |text| format.answer(text, &format!("run-{id}"))).await
}

async fn reported(
    app: &Arc<App>,
    id: u64,
    format: Format,
    headers: HeaderMap,
    answer: impl FnOnce(String) -> Response + Send + 'static,
) -> Result<Response, ApiError> {
    app.with_store(move |app, store| {
        let tag = tag(app, store, id, &format!("{format:?}"))?;
        if let Some(unchanged) = tag.unchanged(&headers) {
            return Ok(unchanged);
        }
        let run = store.load(id)?;
        let text = match format {
            Format::Html => tidemark_report::html(&run, &judge(&run)),
            Format::Md => tidemark_report::markdown(&run, &judge(&run)),
            Format::Csv => tidemark_report::csv(&run),
            Format::SeriesCsv => tidemark_report::csv_series(&run),
            Format::Json => tidemark_report::json(&run, &judge(&run)),
        };
        Ok(tag.put(answer(text)))
    })
    .await
}

/// By what a run is known: its number may come again after it was deleted, and one that goes on changes.
fn tag(app: &App, store: &Store, id: u64, what: &str) -> Result<ETag, ApiError> {
    let RunSummary { started_unix_ns, elapsed_ns, operations, state, .. } = store.summary(id)?;
    let version = &app.version;
    Ok(ETag(format!(
        "\"{version}-{id}-{started_unix_ns}-{elapsed_ns}-{operations}-{}-{what}\"",
        state.name()
    )))
}

/// Deletes a run that is not in progress.
#[utoipa::path(
    delete, path = "/runs/{id}", operation_id = "delete_run", tag = "results", params(("id" = u64, Path)),
    responses(
        (status = 204),
        (status = 404, description = "Not found", body = Trouble),
        (status = 409, description = "The run is still in progress", body = Trouble),
    )
)]
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Operator(caller): Operator,
    Path(id): Path<u64>,
) -> Result<StatusCode, ApiError> {
    app.with_controller(move |controller| Ok(controller.store()?.delete(id)?)).await?;
    app.audit(&caller.name, &caller.address, "delete run", id.to_string());
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the figures of a run.
#[utoipa::path(
    get, path = "/runs/{id}/figures", tag = "results", params(("id" = u64, Path)),
    responses((status = 200, body = Vec<Figure>), (status = 404, description = "Not found", body = Trouble))
)]
pub(super) async fn figures(
    State(app): State<Arc<App>>,
    _: Viewer,
    Path(id): Path<u64>,
) -> Result<Reply<Vec<Figure>>, ApiError> {
    app.with_store(move |app, store| {
        let (_, drawn) = drawn(app, store, id)?;
        let listed = drawn.iter().map(|figure| Figure {
            name: figure.name.clone(),
            title: figure.title.clone(),
            description: figure.description.clone(),
            stage: figure.stage.clone(),
            work: figure.work.clone(),
        });
        Ok(Reply(listed.collect()))
    })
    .await
}

/// Returns a figure as SVG.
#[utoipa::path(
    get, path = "/runs/{id}/figures/{file}", tag = "results",
    params(("id" = u64, Path), ("file" = String, Path, pattern = r"^.+\.svg$", description = "The figure's name followed by `.svg`")),
    responses(
        (status = 200, body = String, content_type = "image/svg+xml"),
        (status = 304, description = "Not modified"),
        (status = 404, description = "Not found", body = Trouble),
    )
)]
pub(super) async fn figure(
    State(app): State<Arc<App>>,
    _: Viewer,
    Path((id, file)): Path<(u64, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    app.with_store(move |app, store| {
        let tag = tag(app, store, id, "svg")?;
        if let Some(unchanged) = tag.unchanged(&headers) {
            return Ok(unchanged);
        }
        let (_, drawn) = drawn(app, store, id)?;
        let name = file.strip_suffix(".svg");
        let found = drawn.iter().find(|figure| Some(figure.name.as_str()) == name);
        let found = found.ok_or_else(|| ApiError::missing(format!("run {id} has no figure `{file}`")))?;
        let mut response = typed(found.standalone(), "image/svg+xml");
        let policy =
            HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'");
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        Ok(tag.put(response))
    })
    .await
}

/// The figures of a run, and what it is known by.
fn drawn(app: &App, store: &Store, id: u64) -> Result<(ETag, Arc<Vec<figures::Figure>>), ApiError> {
    let tag = tag(app, store, id, "svg")?;
    let drawn = app.figures.figures(&tag.0, || {
        let run = store.load(id)?;
        Ok(figures::of_run(&run))
    })?;
    Ok((tag, drawn))
}

/// Lists every operation of every run (the performance matrix), newest run first.
#[utoipa::path(
    get, path = "/matrix", tag = "results", params(Page), responses((status = 200, body = Vec<MatrixRow>))
)]
pub(super) async fn matrix(
    State(app): State<Arc<App>>,
    _: Viewer,
    Query(page): Query<Page>,
) -> Result<Reply<Vec<MatrixRow>>, ApiError> {
    let limit = page.limit()?;
    let rows =
        app.with_controller(move |controller| Ok(controller.store()?.matrix(limit, page.before)?)).await?;
    Ok(Reply(rows.into_iter().map(matrix_row).collect()))
}

fn matrix_row(row: OperationRow) -> MatrixRow {
    let us = |ns: f64| ns / 1000.0;
    let percentiles: Option<Vec<f64>> = row.percentiles_ns.iter().map(|ns| ns.map(us)).collect();
    let total = row.ok + row.failed;
    MatrixRow {
        run: row.run,
        name: row.name,
        started_unix_ms: row.started_unix_ns / 1_000_000,
        state: row.state,
        valid: row.valid,
        stage: row.stage,
        work: row.work,
        kind: row.kind.name().into(),
        measures: row.kind.measures(),
        depth: row.depth,
        operation: row.operation,
        sample: row.sample,
        weight: row.weight,
        workers: row.workers,
        drivers: row.drivers,
        ok: row.ok,
        failed: row.failed,
        bytes: row.bytes,
        throughput: row.throughput,
        bandwidth: row.bandwidth,
        mean_us: row.mean_ns.map_or(0.0, us),
        percentiles_us: percentiles.unwrap_or_default(),
        success_ratio: if total == 0 { 1.0 } else { row.ok as f64 / total as f64 },
        config: row.config,
        evaluation: row.evaluation,
        arm: row.arm,
        level: row.level,
        repeat: row.repeat,
    }
}
