//! Logging in and out, and tickets for what browsers fetch by themselves.

use crate::answer::ApiError;
use crate::app::App;
use crate::auth::{Caller, Peer, Viewer};
use crate::body::BriefJson;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json as Reply};
use std::sync::Arc;
use tidemark_controller::api::{Login, Owner, Session, Ticket, TicketFor, Trouble};

/// Logs in: begins a session that is valid for twelve hours. A code is used up.
#[utoipa::path(
    post, path = "/session", tag = "controller", security(()), request_body = Login,
    responses(
        (status = 200, body = Session),
        (status = 401, description = "Invalid token or code", body = Trouble),
        (status = 409, description = "Nobody logs in here", body = Trouble),
    )
)]
pub(super) async fn log_in(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    BriefJson(login): BriefJson<Login>,
) -> Result<Reply<Session>, ApiError> {
    let entered = app.guard.log_in(&login, peer).await;
    let (caller, key) = entered.inspect_err(|refused| note(&app, peer, refused))?;
    let way = match login {
        Login::Token(_) => "console",
        Login::Code(_) => "console, by address",
    };
    app.audit(&caller.name, &caller.address, "login", way.into());
    Ok(Reply(Session { key, owner: owner_of(caller) }))
}

/// Says whom a token or a code would log in. A code stays good.
#[utoipa::path(
    post, path = "/session/owner", tag = "controller", security(()), request_body = Login,
    responses(
        (status = 200, body = Owner),
        (status = 401, description = "Invalid token or code", body = Trouble),
        (status = 409, description = "Nobody logs in here", body = Trouble),
    )
)]
pub(super) async fn owner(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    BriefJson(login): BriefJson<Login>,
) -> Result<Reply<Owner>, ApiError> {
    let caller = app.guard.whose(&login, peer).await;
    caller.inspect_err(|refused| note(&app, peer, refused)).map(|caller| Reply(owner_of(caller)))
}

/// Logs out: ends the session whose key is in the header.
#[utoipa::path(delete, path = "/session", tag = "controller", security(()), responses((status = 204)))]
pub(super) async fn log_out(State(app): State<Arc<App>>, headers: HeaderMap) -> StatusCode {
    app.guard.log_out(&headers);
    StatusCode::NO_CONTENT
}

/// Makes a ticket: a browser can fetch the address with it, once and within 30 s, without a header.
#[utoipa::path(
    post, path = "/tickets", tag = "controller", request_body = TicketFor,
    responses((status = 200, body = Ticket), (status = 409, description = "Nobody logs in here", body = Trouble))
)]
pub(super) async fn ticket(
    State(app): State<Arc<App>>,
    _: Viewer,
    headers: HeaderMap,
    BriefJson(wanted): BriefJson<TicketFor>,
) -> Result<Reply<Ticket>, ApiError> {
    app.guard.ticket(&headers, &wanted.address).map(|address| Reply(Ticket { address }))
}

fn owner_of(caller: Caller) -> Owner {
    Owner { user: caller.name, role: caller.role }
}

/// Puts a refusal on record, as far as the log has room for it.
fn note(app: &Arc<App>, peer: Peer, refused: &ApiError) {
    if matches!(refused.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) && app.guard.is_noted(peer)
    {
        app.audit("", &peer.0.ip().to_string(), "refused", format!("login: {}", refused.trouble.message));
    }
}
