//! Who asks, and whether they may.
//!
//! Every request passes [`identify`] or [`admit`], which finds out who asks; what they may is the business of the handlers, each of
//! which names the role it wants by one of the extractors [`Viewer`], [`Operator`] and [`Joining`].

mod buckets;
mod login;
mod origin;
mod own;
mod passes;
#[cfg(test)]
mod tests;
mod tokens;

pub use own::OwnToken;
pub use tokens::Tokens;

use crate::answer::ApiError;
use crate::app::App;
use crate::listener::Connected;
use crate::options::{Limits, Security};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use buckets::Buckets;
pub(crate) use buckets::network;
use login::{Behind, Logins};
pub(crate) use origin::Gate;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_controller::api::Role;
use tokens::Lookup;

/// How often the caller of a request that goes on is looked at again.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(2);

/// Of an address that somebody asked for in vain, so much is noted, characters.
const LONGEST_NOTED: usize = 200;

/// Refusals that are noted in a minute, from all addresses together; of one address it is one.
const NOTED_PER_MINUTE: f64 = 60.0;

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Somebody who may do something.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The name of the token; empty where none is needed.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Where from, as text.
    pub(crate) address: String,
    /// Whether people may do everything here. Drivers are no people: what they are given has secrets in it.
    anything: bool,
}

impl Caller {
    /// Whether a role is enough for what asks for `wanted`.
    pub(crate) fn may(&self, wanted: Role) -> bool {
        let has = match wanted {
            Role::Viewer => self.role != Role::Driver,
            Role::Operator | Role::Driver => self.role == wanted,
        };
        has || (self.anything && wanted != Role::Driver)
    }
}

/// What [`identify`] found out.
#[derive(Clone, Debug)]
struct Identified(Option<Caller>);

/// Who is let in.
pub(crate) struct Guard {
    pub(crate) gate: Gate,
    /// Whether people need no token.
    open: bool,
    lookup: Lookup,
    logins: Logins,
    wrong: Buckets<IpAddr>,
    requests: Buckets<(IpAddr, String)>,
    /// Refusals that are noted, of one address and of all.
    noted: (Buckets<IpAddr>, Buckets<()>),
}

impl Guard {
    /// An open one takes everybody for an operator, but nobody for a driver.
    pub(crate) fn new(
        gate: Gate,
        security: &Security,
        tokens: Arc<dyn Tokens>,
        own: &[OwnToken],
        limits: &Limits,
    ) -> Self {
        let per_minute = limits.wrong_tokens_per_minute;
        Self {
            gate,
            open: matches!(security, Security::Open),
            lookup: Lookup::new(tokens, own),
            logins: Logins::default(),
            wrong: Buckets::new(per_minute / 60.0, per_minute),
            requests: Buckets::new(limits.requests_per_second, limits.requests_at_once),
            noted: (Buckets::new(1.0 / 60.0, 1.0), Buckets::new(NOTED_PER_MINUTE / 60.0, NOTED_PER_MINUTE)),
        }
    }

    /// Finds out who asks.
    async fn caller(&self, parts: &Parts, peer: Peer) -> Result<Option<Caller>, ApiError> {
        if self.open && parts.uri.path() != tidemark_fleet::link::PATH {
            return Ok(Some(everybody(peer)));
        }
        let malformed = |unclear| self.wrong(peer).and(Err(unclear));
        let shown = token_of(&parts.headers).or_else(malformed)?;
        let Some(shown) = shown.or_else(|| self.logins.by_ticket(parts)) else { return Ok(None) };
        match self.logins.behind(shown) {
            Behind::Token(token) => self.owner(&token, peer).await.map(Some),
            // A token that was revoked ends its sessions; that is no guess, so it does not count as a wrong one.
            Behind::Session(token) => {
                Ok(self.lookup.owner(&token).await?.map(|(name, role)| known(name, role, peer)))
            }
            Behind::Nothing => Ok(None),
        }
    }

    /// Waits until the caller of a request that goes on may no longer do what it asked for: its token was revoked, or its session
    /// has ended.
    pub(crate) async fn until_void(&self, headers: &HeaderMap, caller: &Caller) {
        while self.is_good(headers, caller).await {
            tokio::time::sleep(LOOKED_AT_EVERY).await;
        }
    }

    async fn is_good(&self, headers: &HeaderMap, caller: &Caller) -> bool {
        if caller.anything {
            return true;
        }
        let Some(token) = self.token_behind(headers) else { return false };
        match self.lookup.owner(&token).await {
            Ok(owner) => owner.is_some_and(|(name, role)| name == caller.name && role == caller.role),
            // The store does not answer at the moment: what it said last holds.
            Err(_) => true,
        }
    }

    /// The token that a request has, or that its session stands for.
    fn token_behind(&self, headers: &HeaderMap) -> Option<String> {
        match self.logins.behind(token_of(headers).ok().flatten()?) {
            Behind::Token(token) | Behind::Session(token) => Some(token),
            Behind::Nothing => None,
        }
    }

    /// Counts a wrong token, and refuses when there were too many from its address.
    fn wrong(&self, peer: Peer) -> Result<(), ApiError> {
        self.wrong.take(network(peer.0.ip()), Instant::now()).map_err(|after| {
            ApiError::too_many("too many invalid tokens from this address: try again later", after)
        })
    }

    /// Whether a refusal is to be noted: the log has room for few.
    pub(crate) fn is_noted(&self, peer: Peer) -> bool {
        let (of_one, of_all) = &self.noted;
        let now = Instant::now();
        of_one.take(network(peer.0.ip()), now).is_ok() && of_all.take((), now).is_ok()
    }

    /// Whose token this is. Good ones are let in, whatever else came from their address: they have too many random bits to be
    /// guessed. Wrong ones are counted.
    async fn owner(&self, token: &str, peer: Peer) -> Result<Caller, ApiError> {
        match self.lookup.owner(token).await? {
            Some((name, role)) => Ok(known(name, role, peer)),
            None => {
                self.wrong(peer)?;
                Err(ApiError::new(StatusCode::UNAUTHORIZED, "the token is invalid or revoked"))
            }
        }
    }
}

fn everybody(peer: Peer) -> Caller {
    Caller { anything: true, ..known(String::new(), Role::Operator, peer) }
}

fn known(name: String, role: Role, peer: Peer) -> Caller {
    Caller { name, role, address: peer.0.ip().to_canonical().to_string(), anything: false }
}

/// The token, or the key of a session, in the header `Authorization`, if it is there.
fn token_of(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let unclear =
        || ApiError::new(StatusCode::UNAUTHORIZED, "the header Authorization must be Bearer or Basic");
    let value = value.to_str().map_err(|_| unclear())?;
    let (scheme, rest) = value.split_once(' ').ok_or_else(unclear)?;
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Ok(Some(rest.trim().to_owned())),
        "basic" => {
            let plain = BASE64_STANDARD.decode(rest.trim()).map_err(|_| unclear())?;
            let plain = String::from_utf8(plain).map_err(|_| unclear())?;
            let (_, password) = plain.split_once(':').ok_or_else(unclear)?;
            Ok(Some(password.to_owned()))
        }
        _ => Err(unclear()),
    }
}

/// Middleware: every request is admitted, or refused.
pub(crate) async fn identify(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match admit(&app, request).await {
        Ok(request) => {
            let caller =
                request.extensions().get::<Identified>().and_then(|identified| identified.0.as_ref());
            let role = caller.map(|caller| caller.role);
            app.in_turn(role, next.run(request)).await
        }
        Err(refused) => refused.into_response(),
    }
}

/// Checks where a request comes from, whether a page of another site may have made it, who sends it, and how often. Returns
/// it marked with the caller.
pub(crate) async fn admit(app: &Arc<App>, request: Request) -> Result<Request, ApiError> {
    let (mut parts, body) = request.into_parts();
    let peer = parts.extensions.get::<Peer>().copied();
    let peer = peer
        .ok_or_else(|| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "the connection has no address"))?;
    app.guard.gate.check(&parts)?;
    let caller = app.guard.caller(&parts, peer).await.inspect_err(|refused| {
        if refused.status == StatusCode::UNAUTHORIZED && app.guard.is_noted(peer) {
            let path: String = parts.uri.path().chars().take(LONGEST_NOTED).collect();
            let detail = format!("{} {path}: {}", parts.method, refused.trouble.message);
            app.audit("", &peer.0.ip().to_string(), "refused", detail);
        }
    })?;
    // Where nobody needs a token there are no shares.
    if let (Some(caller), Some(connected)) = (&caller, parts.extensions.get::<Connected>())
        && !caller.anything
    {
        connected.place.owned_by(caller.role, &caller.name)?;
    }
    let name = caller.as_ref().map_or_else(String::new, |caller| caller.name.clone());
    // A thousand drivers may join at once, from one address if need be.
    let joins = parts.uri.path() == tidemark_fleet::link::PATH;
    let is_driver = caller.as_ref().is_some_and(|caller| caller.role == Role::Driver || joins);
    if !is_driver {
        let taken = app.guard.requests.take((network(peer.0.ip()), name), Instant::now());
        taken.map_err(|after| ApiError::too_many("too many requests: try again later", after))?;
    }
    parts.extensions.insert(Identified(caller));
    Ok(Request::from_parts(parts, body))
}

/// The caller, if they have a role.
pub(crate) fn require(parts: &Parts, role: Role) -> Result<Caller, ApiError> {
    let identified = parts.extensions.get::<Identified>().and_then(|identified| identified.0.clone());
    let caller = identified.ok_or_else(|| {
        ApiError::new(
            StatusCode::UNAUTHORIZED,
            "a token is required: send the header `Authorization: Bearer TOKEN`; if your session has ended, log in again",
        )
    })?;
    match caller.may(role) {
        true => Ok(caller),
        false => {
            let wanted = match role {
                Role::Viewer => "a viewer's or an operator's token",
                Role::Operator => "an operator's token",
                Role::Driver => "a driver's token",
            };
            Err(ApiError::new(StatusCode::FORBIDDEN, format!("this requires {wanted}")))
        }
    }
}

/// Somebody who may look at everything.
pub(crate) struct Viewer(pub(crate) Caller);

/// Somebody who may change things.
pub(crate) struct Operator(pub(crate) Caller);

/// A driver that joins.
pub(crate) struct Joining(pub(crate) Caller);

impl<S: Send + Sync> FromRequestParts<S> for Viewer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        require(parts, Role::Viewer).map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        require(parts, Role::Operator).map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Joining {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        require(parts, Role::Driver).map(Self)
    }
}
