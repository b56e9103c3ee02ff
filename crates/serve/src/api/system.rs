//! The controller itself: who answers, who is there, who did what.

use super::{Page, typed};
use crate::answer::ApiError;
use crate::app::App;
use crate::auth::{Joining, Operator, Viewer};
use crate::body::{LARGEST_DOCUMENT, Query};
use crate::listener::Connected;
use axum::extract::{State, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Json as Reply};
use std::sync::Arc;
use tidemark_controller::api::{AuditRow, Driver, Info, Overview, Trouble};
use tidemark_fleet::fleet::Visitor;
use tidemark_fleet::link::{Intake, limits};

/// Returns the controller's version and the caller's role.
#[utoipa::path(get, path = "/info", tag = "controller", responses((status = 200, body = Info)))]
pub(super) async fn info(
    State(app): State<Arc<App>>,
    Viewer(caller): Viewer,
) -> Result<Reply<Info>, ApiError> {
    let troubles = app.with_controller(|controller| Ok(controller.troubles())).await?;
    Ok(Reply(Info {
        name: app.name.clone(),
        version: app.version.clone(),
        role: caller.role,
        user: caller.name,
        started_unix_ms: app.started_unix_ms,
        largest_document: LARGEST_DOCUMENT as u64,
        fingerprint: app.fingerprint.clone(),
        troubles,
    }))
}

/// Returns the overview.
#[utoipa::path(get, path = "/overview", tag = "controller", responses((status = 200, body = Overview)))]
pub(super) async fn overview(State(app): State<Arc<App>>, _: Viewer) -> Result<Reply<Overview>, ApiError> {
    app.with_controller(|controller| Ok(Reply(controller.overview()))).await
}

/// Lists drivers by name.
#[utoipa::path(get, path = "/drivers", tag = "controller", responses((status = 200, body = Vec<Driver>)))]
pub(super) async fn drivers(State(app): State<Arc<App>>, _: Viewer) -> Result<Reply<Vec<Driver>>, ApiError> {
    app.with_controller(|controller| Ok(Reply(controller.drivers()))).await
}

/// Lists the audit log, newest first.
#[utoipa::path(get, path = "/audit", tag = "controller", params(Page), responses((status = 200, body = Vec<AuditRow>)))]
pub(super) async fn audit(
    State(app): State<Arc<App>>,
    _: Operator,
    Query(page): Query<Page>,
) -> Result<Reply<Vec<AuditRow>>, ApiError> {
    let limit = page.limit()?;
    let entries =
        app.with_controller(move |controller| Ok(controller.store()?.audit(limit, page.before)?)).await?;
    let rows = entries.into_iter().map(|entry| AuditRow {
        id: entry.id,
        unix_ms: entry.unix_ns / 1_000_000,
        by: entry.by,
        address: entry.address,
        what: entry.what,
        detail: entry.detail,
    });
    Ok(Reply(rows.collect()))
}

/// Returns this description.
#[utoipa::path(
    get, path = "/openapi.json", tag = "controller", security(()),
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value, content_type = "application/json"))
)]
pub(super) async fn openapi(State(app): State<Arc<App>>) -> Response {
    typed(app.openapi.clone(), "application/json")
}

/// Joins a driver: a WebSocket.
#[utoipa::path(
    get, path = "/link", tag = "controller", security(("token" = [])),
    responses(
        (status = 101, description = "Switching to the driver protocol"),
        (status = 405, description = "Not a WebSocket handshake", body = Trouble),
        (status = 426, description = "Not a WebSocket handshake", body = Trouble),
    )
)]
pub(super) async fn link(
    State(app): State<Arc<App>>,
    Joining(caller): Joining,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
    socket: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let socket = socket.map_err(|error| {
        use axum::response::IntoResponse as _;
        let message = format!("drivers join here by WebSocket: {}", error.body_text());
        ApiError::new(error.into_response().status(), message)
    })?;
    let (intake, place) = (Arc::<Intake>::default(), connected.place);
    // A connection carries one driver: it is upgraded once.
    let _ = connected.intake.set(intake.clone());
    let visitor = Visitor { address: connected.address.to_string(), token: caller.name.clone() };
    Ok(limits(socket).on_upgrade(async move |socket| {
        tokio::select! {
            () = app.fleet.serve(socket, visitor, &intake, || place.leave()) => {}
            () = place.taken() => {}
            // The connection is cut, and the driver is refused when it comes again.
            () = app.guard.until_void(&headers, &caller) => {}
        }
    }))
}
