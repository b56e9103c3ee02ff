//! The API and its description. What is in the one is in the other: both are made from the same list of handlers.

mod compare;
mod describe;
mod evaluations;
mod events;
mod history;
mod runs;
mod session;
mod submissions;
mod system;

use crate::answer::ApiError;
use crate::app::App;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Everything below `/api/v1`.
pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    let api = OpenApiRouter::new()
        .routes(routes!(system::info))
        .routes(routes!(session::log_in, session::log_out))
        .routes(routes!(session::owner))
        .routes(routes!(session::ticket))
        .routes(routes!(system::overview))
        .routes(routes!(system::drivers))
        .routes(routes!(system::audit))
        .routes(routes!(system::openapi))
        .routes(routes!(system::link))
        .routes(routes!(events::events))
        .routes(routes!(submissions::list, submissions::submit))
        .routes(routes!(submissions::one, submissions::change))
        .routes(routes!(submissions::cancel))
        .routes(routes!(submissions::resubmit))
        .routes(routes!(submissions::document))
        .routes(routes!(submissions::live))
        .routes(routes!(submissions::check))
        .routes(routes!(submissions::targets))
        .routes(routes!(runs::list))
        .routes(routes!(runs::one, runs::delete))
        .routes(routes!(runs::report))
        .routes(routes!(history::list))
        .routes(routes!(history::remark, history::set_remark))
        .routes(routes!(history::archive))
        .routes(routes!(history::document))
        .routes(routes!(history::log))
        .routes(routes!(runs::figures))
        .routes(routes!(runs::figure))
        .routes(routes!(runs::matrix))
        .routes(routes!(compare::compare))
        .routes(routes!(evaluations::list))
        .routes(routes!(evaluations::report));
    OpenApiRouter::new().nest("/api/v1", api)
}

/// The description of the API, as JSON.
pub(crate) fn description(version: &str) -> Bytes {
    let described = describe::complete(router().into_openapi(), version);
    serde_json::to_vec(&described).unwrap_or_default().into()
}

/// Most rows of a list.
const MOST_ROWS: u64 = 1000;

/// Rows of a list unless the caller says otherwise.
const ROWS: u64 = 100;

/// Which part of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// Most rows; 100 unless said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Only what is older than this one.
    #[param(minimum = 0)]
    before: Option<u64>,
}

impl Page {
    fn limit(&self) -> Result<usize, ApiError> {
        let limit = self.limit.unwrap_or(ROWS);
        match (1..=MOST_ROWS).contains(&limit) {
            true => Ok(limit as usize),
            false => Err(ApiError::malformed(format!("limit is {limit}: it has to be 1 to {MOST_ROWS}"))),
        }
    }
}

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    /// A page that needs nothing else.
    #[default]
    Html,
    /// Markdown.
    Md,
    /// A row per operation.
    Csv,
    /// A row per operation and second; of runs only.
    SeriesCsv,
    /// Everything.
    Json,
}

/// In which form.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Form {
    /// The form; `html` unless said.
    #[param(inline)]
    format: Option<Format>,
}

impl Format {
    /// The report in this form; one that is not a page is named for those who save it.
    fn answer(self, text: String, name: &str) -> Response {
        let (kind, ending) = match self {
            Self::Html => ("text/html; charset=utf-8", "html"),
            Self::Md => ("text/markdown; charset=utf-8", "md"),
            Self::Csv => ("text/csv; charset=utf-8", "csv"),
            Self::SeriesCsv => ("text/csv; charset=utf-8", "series.csv"),
            Self::Json => ("application/json", "json"),
        };
        let mut response = typed(text, kind);
        let headers = response.headers_mut();
        if self == Self::Html {
            // A page of text and drawings: it has styles of its own, and nothing that acts. It is of no origin, so that nothing in it
            // could reach the session that the console keeps.
            headers.insert(
                header::CONTENT_SECURITY_POLICY,
                HeaderValue::from_static(
                    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
                     frame-ancestors 'self'; sandbox allow-popups",
                ),
            );
        } else if let Ok(value) = format!("attachment; filename=\"tidemark-{name}.{ending}\"").parse() {
            headers.insert(header::CONTENT_DISPOSITION, value);
        }
        response
    }
}

/// An answer of this type.
fn typed(content: impl Into<Body>, kind: &'static str) -> Response {
    let mut response = Response::new(content.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// What a stored thing is known by, as the header `ETag` has it.
struct ETag(String);

impl ETag {
    /// An answer without content, if the caller has this already.
    fn unchanged(&self, headers: &HeaderMap) -> Option<Response> {
        let has = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let mut tags = has.flat_map(|value| value.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
        // A star stands for anything: there is something.
        tags.any(|tag| tag == self.0 || tag == "*")
            .then(|| self.put(StatusCode::NOT_MODIFIED.into_response()))
    }

    /// Marks an answer. It may be kept, if it is asked for again each time.
    fn put(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        if let Ok(value) = self.0.parse() {
            headers.insert(header::ETAG, value);
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        }
        response
    }
}
