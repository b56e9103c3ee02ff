//! The history of runs, what users write beside them, and the files of a run.

use super::typed;
use crate::answer::ApiError;
use crate::app::App;
use crate::auth::{Operator, Viewer};
use crate::body::{Json, Path, Query};
use axum::Json as Reply;
use axum::extract::State;
use axum::http::header;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;
use std::sync::Arc;
use tidemark_controller::api::{History, HistoryOrder, HistoryRow, Remark, RunFigures, Trouble};
use tidemark_measure::record::Run;
use tidemark_store as store;
use utoipa::IntoParams;

/// Lines of a page, at most, and unless the caller says otherwise.
const MOST: usize = 1_000;
const LINES: usize = 100;

/// Characters of a search.
const LONGEST_SEARCH: usize = 200;

/// Which lines.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Most lines; 100 unless said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// After so many lines.
    #[param(minimum = 0)]
    offset: Option<u64>,
    /// Words that all occur in name, load, arm, level, tags or note, ignoring case; or numbers of runs.
    text: Option<String>,
    /// Only what is in this state.
    state: Option<String>,
    /// Only what was judged so.
    valid: Option<bool>,
    /// Only runs of this evaluation.
    #[param(minimum = 0)]
    evaluation: Option<u64>,
    /// Only runs with this tag.
    tag: Option<String>,
    /// What they are sorted by; `started` unless said.
    #[param(inline)]
    sort: Option<HistoryOrder>,
    /// The least first instead of the greatest.
    ascending: Option<bool>,
}

/// Lists runs with their figures, and submissions that ended without a run; newest first unless asked otherwise.
#[utoipa::path(get, path = "/history", operation_id = "list_history", tag = "results", params(Wanted), responses((status = 200, body = History)))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    _: Viewer,
    Query(wanted): Query<Wanted>,
) -> Result<Reply<History>, ApiError> {
    let limit = wanted.limit.unwrap_or(LINES as u64);
    if !(1..=MOST as u64).contains(&limit) {
        return Err(ApiError::malformed(format!("limit is {limit}: it has to be 1 to {MOST}")));
    }
    let text = wanted.text.unwrap_or_default();
    if text.chars().count() > LONGEST_SEARCH {
        return Err(ApiError::malformed(format!("text has more than {LONGEST_SEARCH} characters")));
    }
    let asked = store::Wanted {
        text,
        state: wanted.state.unwrap_or_default(),
        valid: wanted.valid,
        evaluation: wanted.evaluation,
        tag: wanted.tag.unwrap_or_default(),
        order: order(wanted.sort.unwrap_or_default()),
        ascending: wanted.ascending.unwrap_or_default(),
        limit: limit as usize,
        offset: usize::try_from(wanted.offset.unwrap_or_default()).unwrap_or(usize::MAX >> 1),
    };
    let found = app.with_controller(move |controller| Ok(controller.store()?.history(&asked)?)).await?;
    let store::History { total, rows, tags } = found;
    Ok(Reply(History { total, rows: rows.into_iter().map(line).collect(), tags }))
}

fn order(order: HistoryOrder) -> store::Order {
    match order {
        HistoryOrder::Started => store::Order::Started,
        HistoryOrder::Name => store::Order::Name,
        HistoryOrder::Elapsed => store::Order::Elapsed,
        HistoryOrder::Throughput => store::Order::Throughput,
        HistoryOrder::P99 => store::Order::P99,
        HistoryOrder::Failed => store::Order::Failed,
    }
}

fn line(row: store::HistoryRow) -> HistoryRow {
    let us = |ns: f64| ns / 1e3;
    let figures = |figures: store::Figures| RunFigures {
        load: figures.load,
        throughput: figures.throughput,
        bandwidth: figures.bandwidth,
        p50_us: figures.p50_ns.map(us),
        p99_us: figures.p99_ns.map(us),
        shape: figures.shape,
    };
    HistoryRow {
        run: row.run,
        submission: row.submission,
        name: row.name,
        started_unix_ms: row.started_unix_ns / 1_000_000,
        elapsed_ms: row.elapsed_ns / 1_000_000,
        state: row.state,
        reason: row.reason,
        valid: row.valid,
        headline: row.headline,
        operations: row.operations,
        failed: row.failed,
        figures: row.figures.map(figures),
        evaluation: row.evaluation,
        evaluation_name: row.evaluation_name,
        arm: row.arm,
        load: row.load_name,
        level: row.level,
        repeat: row.repeat,
        remark: told(row.remark),
    }
}

fn told(remark: store::Remark) -> Remark {
    Remark { note: remark.note, tags: remark.tags }
}

/// Returns what users wrote beside a run.
#[utoipa::path(
    get, path = "/runs/{id}/remark", operation_id = "get_remark", tag = "results", params(("id" = u64, Path)),
    responses((status = 200, body = Remark), (status = 404, description = "Not found", body = Trouble))
)]
pub(super) async fn remark(
    State(app): State<Arc<App>>,
    _: Viewer,
    Path(id): Path<u64>,
) -> Result<Reply<Remark>, ApiError> {
    app.with_controller(move |controller| Ok(Reply(told(controller.store()?.remark(id)?)))).await
}

/// Replaces the note and the tags of a run.
#[utoipa::path(
    put, path = "/runs/{id}/remark", operation_id = "set_remark", tag = "results", params(("id" = u64, Path)), request_body = Remark,
    responses((status = 200, body = Remark), (status = 404, description = "Not found", body = Trouble))
)]
pub(super) async fn set_remark(
    State(app): State<Arc<App>>,
    Operator(caller): Operator,
    Path(id): Path<u64>,
    Json(remark): Json<Remark>,
) -> Result<Reply<Remark>, ApiError> {
    let Remark { note, tags } = remark;
    let kept = app.with_controller(move |controller| {
        let mut store = controller.store()?;
        // A tag that cannot be kept is the caller's mistake.
        store.set_remark(id, &store::Remark { note, tags }).map_err(|error| match error {
            store::StoreError::Remark(reason) => ApiError::malformed(reason),
            error => error.into(),
        })
    });
    let kept = kept.await?;
    app.audit(&caller.name, &caller.address, "remark", format!("run {id}"));
    Ok(Reply(told(kept)))
}

/// Returns a run as COSBench archives it: its directory, packed.
#[utoipa::path(
    get, path = "/runs/{id}/archive", tag = "results", params(("id" = u64, Path)),
    responses(
        (status = 200, description = "A tar file, compressed with gzip", body = Vec<u8>, content_type = "application/gzip"),
        (status = 404, description = "Not found", body = Trouble),
    )
)]
pub(super) async fn archive(
    State(app): State<Arc<App>>,
    _: Viewer,
    Path(id): Path<u64>,
) -> Result<Response, ApiError> {
    app.with_store(move |_, store| {
        let run = store.load(id)?;
        let packed = packed(&run);
        let packed =
            packed.map_err(|error| ApiError::unavailable(format!("cannot pack run {id}: {error}")))?;
        Ok(attached(typed(packed, "application/gzip"), &format!("tidemark-run-{id}-cosbench.tar.gz")))
    })
    .await
}

/// A COSBench archive of this run alone: a tar file compressed with gzip.
fn packed(run: &Run) -> std::io::Result<Vec<u8>> {
    let directory = tempfile::tempdir()?;
    let written = tidemark_report::cosbench_archive(run, &run.provenance.document, directory.path());
    written.map_err(std::io::Error::other)?;
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    tar.append_dir_all("archive", directory.path())?;
    tar.into_inner()?.finish()
}

/// Returns the document of a run, secrets redacted.
#[utoipa::path(
    get, path = "/runs/{id}/document", operation_id = "run_document", tag = "results", params(("id" = u64, Path)),
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 404, description = "Not found", body = Trouble),
    )
)]
pub(super) async fn document(
    State(app): State<Arc<App>>,
    _: Viewer,
    Path(id): Path<u64>,
) -> Result<Response, ApiError> {
    app.with_store(move |_, store| {
        let text = store.load(id)?.provenance.document;
        let ending = if text.trim_start().starts_with('<') { "xml" } else { "yaml" };
        Ok(attached(typed(text, "text/plain; charset=utf-8"), &format!("tidemark-run-{id}.{ending}")))
    })
    .await
}

/// Returns the log of a run: its stages, failures and remarks with their times.
#[utoipa::path(
    get, path = "/runs/{id}/log", tag = "results", params(("id" = u64, Path)),
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 404, description = "Not found", body = Trouble),
    )
)]
pub(super) async fn log(
    State(app): State<Arc<App>>,
    _: Viewer,
    Path(id): Path<u64>,
) -> Result<Response, ApiError> {
    app.with_store(move |_, store| {
        let text = tidemark_report::log(&store.load(id)?);
        Ok(attached(typed(text, "text/plain; charset=utf-8"), &format!("tidemark-run-{id}.log")))
    })
    .await
}

/// An answer that browsers save under this name.
fn attached(mut response: Response, name: &str) -> Response {
    if let Ok(value) = format!("attachment; filename=\"{name}\"").parse() {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    response
}
