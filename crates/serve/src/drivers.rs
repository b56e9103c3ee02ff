//! Where the drivers of one run join, and nobody else: an address with a certificate and a token that are made for it.

use crate::auth::OwnToken;
use crate::listener::{self, Connected};
use crate::options::{Limits, ServeError};
use crate::tls::Identity;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidemark_controller::api::Role;
use tidemark_fleet::Fleet;
use tidemark_fleet::fleet::Visitor;
use tidemark_fleet::link::{Intake, PATH, limits};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Serves the drivers of one run until it is dropped.
pub struct DriverServer {
    address: SocketAddr,
    identity: Identity,
    token: OwnToken,
    stop: watch::Sender<bool>,
    runtime: Option<Runtime>,
}

/// What joining drivers meet.
struct Door {
    fleet: Arc<Fleet>,
    /// The names that drivers may have.
    names: String,
    /// Digest of the token: whoever measures how long it takes to compare learns nothing of the token.
    token: [u8; 32],
}

impl DriverServer {
    /// Listens at an address (port 0 takes any that is free) for drivers whose names begin with what stands before the `*` at the end of
    /// `names`.
    ///
    /// # Errors
    /// The address cannot be listened on, or the system has no random numbers or threads left.
    pub fn start(fleet: Arc<Fleet>, listen: SocketAddr, names: &str) -> Result<Self, ServeError> {
        let identity = Identity::made_once()?;
        let random =
            |error: getrandom::Error| ServeError::Made { what: "a token", reason: error.to_string() };
        let token = OwnToken::new(names, Role::Driver).map_err(random)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(crate::THREADS)
            .thread_name("drivers")
            .enable_all()
            .build()
            .map_err(ServeError::Threads)?;
        let listening = |source| ServeError::Listen { address: listen, source };
        let listener = runtime.block_on(TcpListener::bind(listen)).map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let door =
            Door { fleet, names: names.to_owned(), token: Sha256::digest(token.reveal().as_bytes()).into() };
        let router = axum::Router::new().route(PATH, get(join)).with_state(Arc::new(door));
        let acceptor = TlsAcceptor::from(identity.config());
        let (stop, stopped) = watch::channel(false);
        runtime.spawn(async move {
            listener::run(listener, Some(acceptor), router, &Limits::default(), stopped).await;
        });
        Ok(Self { address, identity, token, stop, runtime: Some(runtime) })
    }

    /// Where it listens, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// SHA-256 of its certificate, hexadecimal, by which drivers know it.
    pub fn fingerprint(&self) -> &str {
        self.identity.fingerprint()
    }

    /// The token of its drivers.
    pub fn token(&self) -> &OwnToken {
        &self.token
    }
}

impl Drop for DriverServer {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

async fn join(
    State(door): State<Arc<Door>>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
    socket: WebSocketUpgrade,
) -> Response {
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if <[u8; 32]>::from(Sha256::digest(token.trim().as_bytes())) != door.token {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let (intake, place) = (Arc::<Intake>::default(), connected.place);
    // A connection carries one driver: it is upgraded once.
    let _ = connected.intake.set(intake.clone());
    let visitor = Visitor { address: connected.address.to_string(), token: door.names.clone() };
    limits(socket).on_upgrade(async move |socket| {
        tokio::select! {
            () = door.fleet.serve(socket, visitor, &intake, || place.leave()) => {}
            () = place.taken() => {}
        }
    })
}
