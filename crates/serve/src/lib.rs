//! The controller over HTTP: API, COSBench's endpoints, TLS and tokens, the web console.
//!
//! | module | idea |
//! |---|---|
//! | `options` | how the server is set up, and why it may not start |
//! | `listener` | takes connections, each with its limits |
//! | `places` | how many connections, and who gives way |
//! | `tls` | certificate and key, read or made |
//! | `router` | every address, and what all of them have in common |
//! | `proof` | how the server proves itself where it has no certificate that clients know |
//! | `auth` | who asks, and whether they may |
//! | `body`, `answer` | what comes in, and what is said when it is wrong |
//! | `app` | what all handlers share |
//! | `api` | the API and its description |
//! | `drivers` | where the drivers of one run join, without all the rest |
//! | `figure_cache` | figures of recently requested runs |
//! | `metrics` | `/metrics` |
//! | `login` | addresses that log a browser in, once |
//! | `cosbench` | what COSBench's scripts ask for |
//! | `in_cluster` | a controller in a cluster of Kubernetes, and its drivers, as manifests |
//! | `console` | the console's files, from within this binary |

mod answer;
mod api;
mod app;
mod auth;
mod body;
mod console;
mod cosbench;
mod drivers;
mod figure_cache;
mod in_cluster;
mod listener;
mod login;
mod metrics;
mod options;
mod places;
mod proof;
mod router;
#[cfg(test)]
mod tests;
mod tls;

pub use auth::{OwnToken, Tokens};
pub use drivers::DriverServer;
pub use in_cluster::{ControllerInCluster, DriversInCluster};
pub use options::{Limits, Options, Security, ServeError, Tls};
pub use tls::{Identity, SelfSigned, fingerprint};

use auth::{Gate, Guard};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidemark_controller::Controller;
use tidemark_controller::api::Role;
use tidemark_controller::controller::Refusal;
use tidemark_fleet::Fleet;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Threads that serve connections. What takes long is done elsewhere.
const THREADS: usize = 2;

/// Threads for what takes long, at most: each may have the store open.
const THREADS_FOR_WORK: usize = 24;

/// Where a server listens, once it does.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The address, with the port that was taken.
    pub address: SocketAddr,
    /// With TLS: SHA-256 of the certificate, hexadecimal.
    pub fingerprint: Option<String>,
    /// Whether the certificate was made again, because the old one was not for this address or host.
    pub renewed: bool,
    /// Whether nobody but drivers needs a token.
    pub open: bool,
    /// The address that logs the server's own user in, once; if there is such a user.
    pub login: Option<String>,
}

impl Ready {
    /// The address as browsers want it.
    pub fn url(&self) -> String {
        let scheme = if self.fingerprint.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    fn login_with(&self, code: &str) -> String {
        format!("{}{}?code={code}", self.url().trim_end_matches('/'), login::PATH)
    }
}

/// Serves until `stop` says true, and tells `ready` when it listens. Blocks.
pub fn serve(
    options: Options,
    controller: Arc<Controller>,
    fleet: Arc<Fleet>,
    ready: impl FnOnce(Ready),
    stop: impl FnMut() -> bool,
) -> Result<(), ServeError> {
    let tokens: Arc<dyn Tokens> = Arc::new(Stored(controller.clone()));
    serve_with(options, controller, fleet, tokens, ready, stop)
}

/// The same with tokens from elsewhere.
fn serve_with(
    options: Options,
    controller: Arc<Controller>,
    fleet: Arc<Fleet>,
    tokens: Arc<dyn Tokens>,
    ready: impl FnOnce(Ready),
    mut stop: impl FnMut() -> bool,
) -> Result<(), ServeError> {
    options.check()?;
    let tls = match &options.security {
        Security::Open => None,
        Security::Tokens { tls } => tls.as_ref(),
    };
    let identity = tls.map(|tls| tls::Identity::read(tls, options.listen.ip())).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(THREADS_FOR_WORK)
        .thread_name("serve")
        .enable_all()
        .build()
        .map_err(ServeError::Threads)?;
    let listening = |source| ServeError::Listen { address: options.listen, source };
    runtime.block_on(async {
        let listener = TcpListener::bind(options.listen).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let open = matches!(options.security, Security::Open);
        let gate = Gate::new(address, open, identity.is_some(), options.origins);
        let (stopping, stopped) = watch::channel(false);
        let fingerprint = identity.as_ref().map(|identity| identity.fingerprint.clone());
        let prover = match &identity {
            Some(_) => None,
            None => Some(proof::Prover::new(tokens.clone(), &options.own)?),
        };
        let guard = Guard::new(gate, &options.security, tokens, &options.own, &options.limits);
        let renewed = identity.as_ref().is_some_and(|identity| identity.renewed);
        let mut ours = Ready { address, fingerprint, renewed, open, login: None };
        controller.found_at(ours.url().trim_end_matches('/'));
        // Without random numbers its user has to log in with a token.
        let user = options.own.iter().find(|own| own.role == Role::Operator && !own.is_given && !open);
        let code = user.and_then(|user| guard.code(user.reveal()).ok());
        ours.login = code.map(|code| ours.login_with(&code));
        let app = app::App::new(app::Parts {
            controller,
            fleet,
            guard,
            limits: options.limits.clone(),
            name: options.name,
            version: options.version.clone(),
            fingerprint: ours.fingerprint.clone(),
            openapi: api::description(&options.version),
            stopping: stopped.clone(),
        });
        let listening = metrics::listen(app.clone());
        let acceptor = identity.as_ref().map(|identity| TlsAcceptor::from(identity.config.clone()));
        ready(ours);
        let watching = async {
            while !stop() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let _ = stopping.send(true);
        };
        let router = match prover {
            Some(prover) => prover.beside(router::router(app), &options.limits, stopped.clone()),
            None => router::router(app),
        };
        let serving = listener::run(listener, acceptor, router, &options.limits, stopped);
        tokio::join!(watching, serving);
        listening.abort();
        Ok(())
    })?;
    // Whoever is still there has had its time.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

/// The tokens in the controller's store.
struct Stored(Arc<Controller>);

impl Tokens for Stored {
    fn owner(&self, token: &str) -> Result<Option<(String, Role)>, String> {
        let store = self.0.store().map_err(message)?;
        let found = store.token_of(token).map_err(|error| error.to_string())?;
        Ok(found.and_then(|(name, role)| {
            let role = match role.as_str() {
                "viewer" => Role::Viewer,
                "operator" => Role::Operator,
                "driver" => Role::Driver,
                // A role of a later version: it allows nothing here.
                _ => return None,
            };
            Some((name, role))
        }))
    }
    fn digests(&self) -> Result<Vec<[u8; 32]>, String> {
        self.0.store().map_err(message)?.token_digests().map_err(|error| error.to_string())
    }
}

fn message(refusal: Refusal) -> String {
    match refusal {
        Refusal::Missing(message)
        | Refusal::Conflict(message)
        | Refusal::Document(message, _)
        | Refusal::Bad(message)
        | Refusal::Unavailable(message) => message,
    }
}
