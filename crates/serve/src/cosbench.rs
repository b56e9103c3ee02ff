//! What COSBench's scripts ask its controller for, in its words, so that they work as they are.
//!
//! Known from COSBench's sources: the four addresses, the field names, what is replied to them, that the status is 200 whatever
//! happens, that an unknown workload is `Not Found` and a form without its field `Bad Request`, that dates are written as Java's
//! `Date.toString` does, that a workload without a stage has `None` for one.
//!
//! Different here, on purpose: a wrong token is answered with 401; a driver has no address of its own that somebody could
//! open, so that its host stands in place of its URL. A guess: `TERMINATED` for what was interrupted, which COSBench uses when
//! a driver failed; and `Conflict` texts, which are Tidemark's own.

use crate::answer::{ApiError, wrong_method};
use crate::app::App;
use crate::auth::{self, Caller, Operator, Viewer};
use crate::body::{LARGEST_BODY, check_size, collect, media_type, wrong_type};
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest as _, Multipart, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, post};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt::Write as _;
use std::sync::Arc;
use tidemark_controller::api::{Cancel, DriverState, Submission, SubmissionState, Submit};

/// The form field with the document.
const FIELD: &str = "config";

/// The addresses below `/controller/`, or below the root.
pub(crate) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .route("/cli/submit.action", post(submit))
        .route("/cli/config.action", post(submit))
        .route("/cli/index.action", any(index))
        .route("/cli/workload.action", any(workload))
        .route("/cli/cancel.action", post(cancel))
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(app.clone(), identify))
}

/// As [`auth::identify`], for scripts that send the token as a password in the query and expect text.
async fn identify(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    if let Some(password) = field(query.as_bytes(), "password")
        && let Ok(value) = HeaderValue::try_from(format!("Bearer {password}"))
    {
        request.headers_mut().entry(header::AUTHORIZATION).or_insert(value);
    }
    match auth::admit(&app, request).await {
        Ok(request) => next.run(request).await,
        Err(refused) => error_as_text(refused),
    }
}

async fn submit(
    State(app): State<Arc<App>>,
    caller: Result<Operator, ApiError>,
    request: Request,
) -> Response {
    as_text(async {
        let Operator(caller) = caller?;
        let document = upload(&app, request).await?;
        check_size(&document)?;
        let (submit, by) = (Submit { document, ..Submit::default() }, caller.name.clone());
        let submission =
            app.with_controller(move |controller| Ok(controller.submit(submit, &by, None)?)).await?;
        audit(&app, &caller, "submit", &submission);
        Ok(format!("Accepted with ID: w{}", submission.id))
    })
    .await
}

async fn index(State(app): State<Arc<App>>, viewer: Result<Viewer, ApiError>) -> Response {
    as_text(async {
        viewer?;
        let overview = app.with_controller(|controller| Ok(controller.overview())).await?;
        let mut text = String::from("Drivers:\n");
        let present: Vec<_> =
            overview.drivers.iter().filter(|driver| driver.state != DriverState::Gone).collect();
        for driver in &present {
            let _ = writeln!(text, "{}\t{}", driver.name, driver.host.name);
        }
        let _ = write!(text, "Total: {} drivers\n\nActive Workloads:\n", present.len());
        let active: Vec<_> = overview.active.iter().chain(&overview.queue).collect();
        for submission in &active {
            let stage = if submission.stage.is_empty() { "None" } else { &submission.stage };
            let _ = writeln!(text, "{}\t{stage}", place(submission));
        }
        let _ = writeln!(text, "Total: {} active workloads", active.len());
        Ok(text)
    })
    .await
}

async fn workload(
    State(app): State<Arc<App>>,
    viewer: Result<Viewer, ApiError>,
    request: Request,
) -> Response {
    as_text(async {
        viewer?;
        let id = identifier(&app, request).await?;
        let submission = app.with_controller(move |controller| Ok(controller.submission(id)?)).await?;
        Ok(format!("{}\n", place(&submission)))
    })
    .await
}

async fn cancel(
    State(app): State<Arc<App>>,
    caller: Result<Operator, ApiError>,
    request: Request,
) -> Response {
    as_text(async {
        let Operator(caller) = caller?;
        let id = identifier(&app, request).await?;
        let submission =
            app.with_controller(move |controller| Ok(controller.cancel(id, &Cancel::default())?)).await?;
        audit(&app, &caller, "cancel", &submission);
        Ok(format!("{}\n", place(&submission)))
    })
    .await
}

fn audit(app: &Arc<App>, caller: &Caller, what: &'static str, submission: &Submission) {
    let detail = format!("w{} {} (through COSBench's interface)", submission.id, submission.name);
    app.audit(&caller.name, &caller.address, what, detail);
}

/// The reply as text, with status 200 whatever happened, unless the caller may not ask.
async fn as_text(reply: impl Future<Output = Result<String, ApiError>>) -> Response {
    match reply.await {
        Ok(text) => text.into_response(),
        Err(refused) => match refused.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => error_as_text(refused),
            StatusCode::NOT_FOUND => "Not Found".into_response(),
            _ => explained(&refused).into_response(),
        },
    }
}

/// Text, as all else here, for somebody who may not ask.
fn error_as_text(refused: ApiError) -> Response {
    let text = refused.trouble.message.clone();
    // What the headers of the usual answer say holds here too.
    let mut response = refused.into_response();
    *response.body_mut() = Body::from(text);
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if headers.contains_key(header::WWW_AUTHENTICATE) {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"Tidemark\""));
    }
    response
}

/// What went wrong, and where in the document.
fn explained(refused: &ApiError) -> String {
    let mut text = refused.trouble.message.clone();
    for problem in refused.trouble.problems.iter().filter(|problem| !problem.warning) {
        let _ = write!(text, "\nline {}: {}", problem.line, problem.message);
    }
    text
}

/// The document in the form's field.
async fn upload(app: &Arc<App>, request: Request) -> Result<String, ApiError> {
    if media_type(request.headers()).as_deref() != Some("multipart/form-data") {
        return Err(wrong_type("multipart/form-data"));
    }
    let (parts, body) = request.into_parts();
    let body = collect(body, app.limits.body, LARGEST_BODY).await?;
    let whole = Request::from_parts(parts, Body::from(body));
    let bad = || ApiError::malformed("Bad Request");
    let mut form = Multipart::from_request(whole, &()).await.map_err(|_| bad())?;
    while let Some(field) = form.next_field().await.map_err(|_| bad())? {
        if field.name() == Some(FIELD) {
            let bytes = field.bytes().await.map_err(|_| bad())?;
            return String::from_utf8(bytes.into())
                .map_err(|_| ApiError::malformed("the document is not UTF-8"));
        }
    }
    Err(bad())
}

/// The workload that is meant: `id=w7` in the query, or in the form.
async fn identifier(app: &Arc<App>, request: Request) -> Result<u64, ApiError> {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let is_post = request.method() == Method::POST;
    let mut id = field(query.as_bytes(), "id");
    if id.is_none() && is_post {
        id = field(&collect(request.into_body(), app.limits.body, LARGEST_BODY).await?, "id");
    }
    let id = id.filter(|id| !id.is_empty()).ok_or_else(|| ApiError::malformed("Bad Request"))?;
    let number = id.strip_prefix('w').and_then(|number| number.parse().ok());
    number.ok_or_else(|| ApiError::missing("Not Found"))
}

fn field(form: &[u8], wanted: &str) -> Option<String> {
    url::form_urlencoded::parse(form).find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
}

/// `w7`, when it was submitted, and its state.
fn place(submission: &Submission) -> String {
    let state = match submission.state {
        SubmissionState::Queued => "QUEUING",
        SubmissionState::Running => "PROCESSING",
        SubmissionState::Completed => "FINISHED",
        SubmissionState::Failed => "FAILED",
        SubmissionState::Cancelled => "CANCELLED",
        SubmissionState::Interrupted => "TERMINATED",
    };
    format!("w{}\t{}\t{state}", submission.id, date(submission.submitted_unix_ms))
}

/// `Sat Nov 21 22:43:12 UTC 2026`, as Java writes dates.
fn date(unix_ms: u64) -> String {
    let moment = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    moment.map_or_else(String::new, |moment| {
        moment.to_zoned(TimeZone::UTC).strftime("%a %b %d %H:%M:%S %Z %Y").to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_told_as_cosbench_tells_it() {
        let submission = Submission {
            id: 7,
            state: SubmissionState::Running,
            submitted_unix_ms: 1_795_300_992_000,
            ..Submission::default()
        };
        assert_eq!(place(&submission), "w7\tSat Nov 21 22:43:12 UTC 2026\tPROCESSING");
    }
}
