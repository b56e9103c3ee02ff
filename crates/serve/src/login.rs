//! Login addresses: whoever opens one in a browser is logged in, once.

use crate::answer::ApiError;
use crate::app::App;
use crate::auth::{Peer, Viewer};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use std::sync::Arc;

/// The path; its query is `code=CODE`.
pub(crate) const PATH: &str = "/login";

#[derive(Debug, Deserialize)]
pub(crate) struct Code {
    #[serde(default)]
    code: String,
}

/// Logs a browser in and leads it to the console, which asks for a token if the code is not good any more.
pub(crate) async fn enter(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Query(Code { code }): Query<Code>,
    method: Method,
) -> Result<Response, ApiError> {
    let mut response = StatusCode::SEE_OTHER.into_response();
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/"));
    // Programs that only look at addresses must not use them up.
    if method == Method::GET
        && let Some((caller, cookie)) = app.guard.enter(&code, peer).await?
    {
        app.audit(&caller.name, &caller.address, "login", "console, by address".into());
        if let Ok(cookie) = cookie.parse() {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
    }
    Ok(response)
}

/// Gives the caller the code of a login address, for a browser of theirs.
pub(crate) async fn invite(
    State(app): State<Arc<App>>,
    _: Viewer,
    headers: HeaderMap,
) -> Result<Json<String>, ApiError> {
    app.guard.invite(&headers)?.map(Json).ok_or_else(|| {
        ApiError::new(StatusCode::CONFLICT, "this controller asks nobody to log in: open its address")
    })
}
