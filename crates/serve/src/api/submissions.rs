//! The queue: what was submitted, and what is done with it.

use super::{Page, typed};
use crate::answer::ApiError;
use crate::app::App;
use crate::auth::{Operator, Viewer};
use crate::body::{Json, JsonIfAny, Path, Query, check_size};
use axum::Json as Reply;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;
use tidemark_controller::api::{
    Cancel, Change, Check, CheckRequest, LiveRun, Role, Submission, SubmissionState, Submit, TargetForm,
    Trouble,
};
use utoipa::IntoParams;

/// Longest value of the header `Idempotency-Key`.
const LONGEST_KEY: usize = 200;

/// Which part of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Listed {
    /// Only submissions in this state.
    state: Option<SubmissionState>,
    /// Maximum number of rows; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Only submissions before this number.
    #[param(minimum = 0)]
    before: Option<u64>,
}

/// Lists submissions, newest first.
#[utoipa::path(get, path = "/submissions", operation_id = "list_submissions", tag = "queue", params(Listed), responses((status = 200, body = Vec<Submission>)))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    _: Viewer,
    Query(listed): Query<Listed>,
) -> Result<Reply<Vec<Submission>>, ApiError> {
    let limit = Page { limit: listed.limit, before: listed.before }.limit()?;
    app.with_controller(move |controller| {
        Ok(Reply(controller.submissions(listed.state, limit, listed.before)?))
    })
    .await
}

/// Submits a document.
#[utoipa::path(
    post, path = "/submissions", tag = "queue", request_body = Submit,
    params(("Idempotency-Key" = Option<String>, Header, max_length = 200, description = "Makes retries safe: a repeated key returns the first submission")),
    responses(
        (status = 201, body = Submission),
        (status = 404, description = "The submission that it was made from is not found", body = Trouble),
        (status = 409, description = "Conflicts with the current state", body = Trouble),
    )
)]
pub(super) async fn submit(
    State(app): State<Arc<App>>,
    Operator(caller): Operator,
    headers: HeaderMap,
    Json(submit): Json<Submit>,
) -> Result<(StatusCode, Reply<Submission>), ApiError> {
    check_size(&submit.document)?;
    let key = headers.get("idempotency-key").map(|key| key.to_str().map(str::to_owned));
    let key = key.transpose().ok().filter(|key| key.as_ref().is_none_or(|key| key.len() <= LONGEST_KEY));
    let key = key.ok_or_else(|| {
        ApiError::malformed(format!(
            "the header Idempotency-Key must be plain text of at most {LONGEST_KEY} bytes"
        ))
    })?;
    let by = caller.name.clone();
    let submission =
        app.with_controller(move |controller| Ok(controller.submit(submit, &by, key.as_deref())?)).await?;
    let detail = format!("w{} {}", submission.id, submission.name);
    app.audit(&caller.name, &caller.address, "submit", detail);
    Ok((StatusCode::CREATED, Reply(submission)))
}

/// Returns a submission.
#[utoipa::path(
    get, path = "/submissions/{id}", operation_id = "get_submission", tag = "queue", params(("id" = u64, Path)),
    responses((status = 200, body = Submission), (status = 404, description = "Not found", body = Trouble))
)]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    _: Viewer,
    Path(id): Path<u64>,
) -> Result<Reply<Submission>, ApiError> {
    app.with_controller(move |controller| Ok(Reply(controller.submission(id)?))).await
}

/// Changes the priority or position of a queued submission.
#[utoipa::path(
    patch, path = "/submissions/{id}", tag = "queue", params(("id" = u64, Path)), request_body = Change,
    responses(
        (status = 200, body = Submission),
        (status = 404, description = "Not found", body = Trouble),
        (status = 409, description = "It is no longer queued", body = Trouble),
    )
)]
pub(super) async fn change(
    State(app): State<Arc<App>>,
    Operator(caller): Operator,
    Path(id): Path<u64>,
    Json(change): Json<Change>,
) -> Result<Reply<Submission>, ApiError> {
    let priority = change.priority.map(|priority| format!(" priority {priority}"));
    let before = change.before.map(|before| format!(" before w{before}"));
    let changed = app.with_controller(move |controller| Ok(controller.change(id, &change)?)).await?;
    let detail = format!("w{id}{}{}", priority.unwrap_or_default(), before.unwrap_or_default());
    app.audit(&caller.name, &caller.address, "change", detail);
    Ok(Reply(changed))
}

/// Cancels a queued or running submission.
#[utoipa::path(
    post, path = "/submissions/{id}/cancel", tag = "queue", params(("id" = u64, Path)), request_body = Option<Cancel>,
    responses(
        (status = 200, body = Submission),
        (status = 404, description = "Not found", body = Trouble),
        (status = 409, description = "It has already ended", body = Trouble),
    )
)]
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Operator(caller): Operator,
    Path(id): Path<u64>,
    JsonIfAny(cancel): JsonIfAny<Cancel>,
) -> Result<Reply<Submission>, ApiError> {
    let how = if cancel.at_once { " at once" } else { "" };
    let cancelled = app.with_controller(move |controller| Ok(controller.cancel(id, &cancel)?)).await?;
    app.audit(&caller.name, &caller.address, "cancel", format!("w{id}{how}"));
    Ok(Reply(cancelled))
}

/// Submits the same document again.
#[utoipa::path(
    post, path = "/submissions/{id}/resubmit", tag = "queue", params(("id" = u64, Path)),
    responses(
        (status = 201, body = Submission),
        (status = 404, description = "Not found", body = Trouble),
        (status = 409, description = "Conflicts with the current state", body = Trouble),
        (status = 422, description = "The document can no longer run", body = Trouble),
    )
)]
pub(super) async fn resubmit(
    State(app): State<Arc<App>>,
    Operator(caller): Operator,
    Path(id): Path<u64>,
) -> Result<(StatusCode, Reply<Submission>), ApiError> {
    let by = caller.name.clone();
    let submission = app.with_controller(move |controller| Ok(controller.resubmit(id, &by)?)).await?;
    app.audit(&caller.name, &caller.address, "resubmit", format!("w{id} as w{}", submission.id));
    Ok((StatusCode::CREATED, Reply(submission)))
}

/// Returns the document of a submission, secrets redacted.
#[utoipa::path(
    get, path = "/submissions/{id}/document", tag = "queue", params(("id" = u64, Path)),
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
    let text = app.with_controller(move |controller| Ok(controller.document(id)?)).await?;
    Ok(typed(text, "text/plain; charset=utf-8"))
}

/// Returns the live data of a submission.
#[utoipa::path(
    get, path = "/submissions/{id}/live", tag = "queue", params(("id" = u64, Path)),
    responses((status = 200, body = LiveRun), (status = 404, description = "Not found", body = Trouble))
)]
pub(super) async fn live(
    State(app): State<Arc<App>>,
    _: Viewer,
    Path(id): Path<u64>,
) -> Result<Reply<LiveRun>, ApiError> {
    app.with_controller(move |controller| Ok(Reply(controller.live(id)?))).await
}

/// Checks a document and says what it would do.
#[utoipa::path(
    post, path = "/check", tag = "queue", request_body = CheckRequest,
    responses(
        (status = 200, body = Check),
        (status = 404, description = "The submission that it was made from is not found", body = Trouble),
    )
)]
pub(super) async fn check(
    State(app): State<Arc<App>>,
    Viewer(caller): Viewer,
    Json(request): Json<CheckRequest>,
) -> Result<Reply<Check>, ApiError> {
    check_size(&request.document)?;
    let may_run = caller.may(Role::Operator);
    // Where nobody needs a token, callers are told apart by their addresses.
    let by = if caller.name.is_empty() { caller.address } else { caller.name };
    app.with_controller(move |controller| Ok(Reply(controller.check(&request, &by, may_run)?))).await
}

/// Lists the kinds of targets that documents may have, and their keys, for forms.
#[utoipa::path(get, path = "/targets", tag = "queue", responses((status = 200, body = Vec<TargetForm>)))]
pub(super) async fn targets(
    State(app): State<Arc<App>>,
    _: Viewer,
) -> Result<Reply<Vec<TargetForm>>, ApiError> {
    app.with_controller(|controller| Ok(Reply(controller.targets()))).await
}
