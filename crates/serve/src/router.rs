//! Every address, and what all of them have in common.

use crate::answer::{ApiError, wrong_method};
use crate::app::App;
use crate::{api, auth, console, cosbench, login, metrics};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use std::any::Any;
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;

/// Puts all together.
pub(crate) fn router(app: Arc<App>) -> Router {
    let (api, _) = api::router().split_for_parts();
    // Below `/controller` too, where COSBench has it.
    let cosbench = || cosbench::router(&app);
    Router::new()
        .merge(api)
        .route("/metrics", get(metrics::page))
        // For whoever only wants to know whether it answers.
        .route("/healthz", get(|| async { "ok\n" }))
        .route(login::PATH, get(login::page).post(login::invite))
        .fallback(other)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(app.clone(), auth::identify))
        .merge(cosbench())
        .nest("/controller", cosbench())
        .layer(CompressionLayer::new())
        .layer(CatchPanicLayer::custom(failed))
        .layer(from_fn_with_state(app.clone(), common))
        .with_state(app)
}

/// What is nothing else is the console's.
async fn other(uri: Uri, request: Request) -> Response {
    match uri.path().starts_with("/api/") {
        true => ApiError::missing(format!("not found: {}", uri.path())).into_response(),
        false => console::page(&request),
    }
}

/// What holds of every answer: it is counted, and browsers are told to be careful with it.
async fn common(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    app.metrics.answered(response.status());
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "SAMEORIGIN"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'self'"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// A defect: the caller is told, and nobody else is affected.
fn failed(_: Box<dyn Any + Send>) -> Response {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error: please report it").into_response()
}
