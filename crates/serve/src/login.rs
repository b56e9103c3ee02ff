//! Login addresses: whoever opens one in a browser is logged in, once.
//!
//! The page behind it exchanges the code for a session. Where a page of another site may have led here, it asks its user first: nobody
//! is to work under somebody else's name without knowing it.

use crate::answer::ApiError;
use crate::app::App;
use crate::auth::Viewer;
use crate::console;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;

/// The path; its query is `code=CODE`.
pub(crate) const PATH: &str = "/login";

/// The same page, which asks before it logs in.
const CONFIRM: &str = "/login/confirm";

/// Shows the page that logs in.
pub(crate) async fn page(request: Request) -> Response {
    if came_alone(request.headers()) {
        return console::page(&request);
    }
    let address = match request.uri().query() {
        Some(query) => format!("{CONFIRM}?{query}"),
        None => CONFIRM.to_owned(),
    };
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(address) = HeaderValue::try_from(address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    response
}

/// Whether the browser reports that its user typed, pasted or chose the address, or that a page of this origin led to it. A browser
/// that reports nothing may have been led by anybody.
fn came_alone(headers: &HeaderMap) -> bool {
    let from = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    matches!(from, Some("none" | "same-origin"))
}

/// Gives the caller the code of a login address, for a browser of theirs.
pub(crate) async fn invite(
    State(app): State<Arc<App>>,
    _: Viewer,
    headers: HeaderMap,
) -> Result<Json<String>, ApiError> {
    app.guard.invite(&headers).map(Json)
}
