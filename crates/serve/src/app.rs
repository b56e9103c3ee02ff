//! What all handlers share.

use crate::answer::ApiError;
use crate::auth::Guard;
use crate::figure_cache::FigureCache;
use crate::metrics::Metrics;
use crate::options::Limits;
use axum::body::Bytes;
use axum::http::StatusCode;
use std::sync::Arc;
use tidemark_controller::Controller;
use tidemark_controller::api::Role;
use tidemark_fleet::Fleet;
use tidemark_store::Store;
use tokio::sync::{Semaphore, watch};

/// Reports, figures and comparisons that are made at a time: each may hold whole runs in memory.
const HEAVY_AT_ONCE: usize = 2;

/// Requests of viewers that are worked on at a time. Those of operators do not wait behind them: half of the threads are left.
const VIEWED_AT_ONCE: usize = 12;

tokio::task_local! {
    /// Whether the request that is worked on is an operator's.
    static IS_OPERATORS: bool;
}

/// What all handlers share.
pub(crate) struct App {
    pub(crate) controller: Arc<Controller>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) guard: Guard,
    pub(crate) limits: Limits,
    pub(crate) metrics: Metrics,
    pub(crate) figures: FigureCache,
    pub(crate) name: String,
    pub(crate) version: String,
    /// With TLS: SHA-256 of the certificate, hexadecimal.
    pub(crate) fingerprint: Option<String>,
    pub(crate) started_unix_ms: u64,
    /// The description of the API, as JSON.
    pub(crate) openapi: Bytes,
    /// Whether the server is about to end.
    pub(crate) stopping: watch::Receiver<bool>,
    /// Of viewers, and of operators, who do not wait behind them.
    heavy: [Arc<Semaphore>; 2],
    viewed: Semaphore,
}

/// What an [`App`] is made of.
pub(crate) struct Parts {
    pub(crate) controller: Arc<Controller>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) guard: Guard,
    pub(crate) limits: Limits,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) fingerprint: Option<String>,
    pub(crate) openapi: Bytes,
    pub(crate) stopping: watch::Receiver<bool>,
}

impl App {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts { controller, fleet, guard, limits, name, version, fingerprint, openapi, stopping } = parts;
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Arc::new(Self {
            controller,
            fleet,
            guard,
            limits,
            metrics: Metrics::new(),
            figures: FigureCache::default(),
            name,
            version,
            fingerprint,
            started_unix_ms: since.map_or(0, |since| since.as_millis() as u64),
            openapi,
            stopping,
            heavy: [HEAVY_AT_ONCE, 1].map(|at_once| Arc::new(Semaphore::new(at_once))),
            viewed: Semaphore::new(VIEWED_AT_ONCE),
        })
    }

    /// Works on a request of somebody of this role, if it is known: viewers wait for their turn.
    pub(crate) async fn in_turn<T>(&self, role: Option<Role>, work: impl Future<Output = T>) -> T {
        let _turn = match role {
            Some(Role::Viewer) => self.viewed.acquire().await.ok(),
            _ => None,
        };
        IS_OPERATORS.scope(role == Some(Role::Operator), work).await
    }

    /// Calls the controller off the threads that serve connections: it may take a while.
    pub(crate) async fn with_controller<T: Send + 'static>(
        self: &Arc<Self>,
        ask: impl FnOnce(&Controller) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let app = self.clone();
        done(tokio::task::spawn_blocking(move || ask(&app.controller)).await)
    }

    /// Renders something from stored runs, a few at a time.
    pub(crate) async fn with_store<T: Send + 'static>(
        self: &Arc<Self>,
        make: impl FnOnce(&App, &Store) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let [viewers, operators] = &self.heavy;
        let is_operators = IS_OPERATORS.try_with(|is_operators| *is_operators).unwrap_or(false);
        // Semaphores fail when they are closed, and these never are.
        let permit = if is_operators { operators } else { viewers }.clone().acquire_owned().await.ok();
        let app = self.clone();
        let made = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            make(&app, &app.controller.store()?)
        });
        done(made.await)
    }

    /// Writes to the audit log, in the background.
    pub(crate) fn audit(self: &Arc<Self>, by: &str, address: &str, what: &'static str, detail: String) {
        let (app, by, address) = (self.clone(), by.to_owned(), address.to_owned());
        drop(tokio::task::spawn_blocking(move || app.controller.audit(&by, &address, what, &detail)));
    }
}

/// A panic is a defect: the caller is told, and nobody else is affected.
fn done<T>(outcome: Result<Result<T, ApiError>, tokio::task::JoinError>) -> Result<T, ApiError> {
    outcome.unwrap_or_else(|_| {
        Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error: please report it"))
    })
}
