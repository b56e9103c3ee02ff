//! `/metrics`: the controller, its drivers and what goes on, in OpenMetrics.

mod live;
mod process;
#[cfg(test)]
mod tests;

use crate::answer::ApiError;
use crate::app::App;
use crate::auth::Viewer;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use live::Running;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tidemark_controller::api::{Driver, DriverState, Overview};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

/// Labels of a metric.
type Labels = Vec<(String, String)>;

/// What is counted while the server runs; everything else is asked for when somebody looks.
pub(crate) struct Metrics {
    readers: Arc<AtomicU64>,
    requests: Mutex<BTreeMap<u16, u64>>,
    running: Mutex<Running>,
}

/// Somebody who reads events, as long as this lives.
pub(crate) struct ReaderGuard(Arc<AtomicU64>);

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self { readers: Arc::default(), requests: Mutex::default(), running: Mutex::default() }
    }

    /// Counts a reader of events.
    pub(crate) fn reader(&self) -> ReaderGuard {
        self.readers.fetch_add(1, Ordering::Relaxed);
        ReaderGuard(self.readers.clone())
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, status: StatusCode) {
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner).entry(status.as_u16()).or_default() +=
            1;
    }

    fn page(&self, overview: &Overview) -> Result<String, std::fmt::Error> {
        let mut registry = Registry::with_prefix("tidemark");
        drivers(&mut registry, &overview.drivers);
        let count = |number: usize| ConstGauge::new(number as u64);
        registry.register("submissions_queued", "Queued submissions", count(overview.queue.len()));
        registry.register("submissions_active", "Running submissions", count(overview.active.len()));
        registry.register(
            "troubles",
            "Problems that an operator should know of",
            count(overview.troubles.len()),
        );
        let readers = ConstGauge::new(self.readers.load(Ordering::Relaxed));
        registry.register("event_readers", "Readers of live events", readers);
        let requests = Family::<Labels, Counter>::default();
        for (status, number) in self.requests.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            requests.get_or_create(&label("status", &status.to_string())).inc_by(*number);
        }
        registry.register("http_requests", "Requests answered, by status", requests);
        self.running.lock().unwrap_or_else(PoisonError::into_inner).register(&mut registry);
        let process = process::read();
        let own = registry.sub_registry_with_prefix("controller");
        own.register_with_unit(
            "cpu",
            "Processor time",
            Unit::Seconds,
            ConstCounter::new(process.cpu_seconds),
        );
        own.register_with_unit("memory", "Memory", Unit::Bytes, ConstGauge::new(process.memory_bytes));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

fn label(name: &str, value: &str) -> Labels {
    vec![(name.into(), value.into())]
}

fn drivers(registry: &mut Registry, drivers: &[Driver]) {
    let by_state = Family::<Labels, Gauge>::default();
    for (state, name) in [
        (DriverState::Idle, "idle"),
        (DriverState::Busy, "busy"),
        (DriverState::Ending, "ending"),
        (DriverState::Silent, "silent"),
        (DriverState::Gone, "gone"),
    ] {
        let number = drivers.iter().filter(|driver| driver.state == state).count();
        by_state.get_or_create(&label("state", name)).set(number as i64);
    }
    registry.register("drivers", "Drivers, by state", by_state);
    let present = || drivers.iter().filter(|driver| driver.state != DriverState::Gone);
    let family = |value: fn(&Driver) -> f64| {
        let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        for driver in present() {
            family.get_or_create(&label("driver", &driver.name)).set(value(driver));
        }
        family
    };
    let busy = family(|driver| f64::from(driver.utilization.cpu_busy));
    registry.register("driver_cpu_busy_ratio", "CPU utilization of a driver's host", busy);
    let received = family(|driver| driver.utilization.received_per_s);
    registry.register(
        "driver_received_bytes_per_second",
        "Network bytes received by a driver's host",
        received,
    );
    let sent = family(|driver| driver.utilization.sent_per_s);
    registry.register("driver_sent_bytes_per_second", "Network bytes sent by a driver's host", sent);
    let memory = family(|driver| driver.utilization.memory_used_bytes as f64);
    registry.register_with_unit("driver_memory", "Memory used on a driver's host", Unit::Bytes, memory);
}

/// The page.
pub(crate) async fn page(State(app): State<Arc<App>>, _: Viewer) -> Result<impl IntoResponse, ApiError> {
    let own = app.clone();
    let text = app.with_controller(move |controller| {
        own.metrics.page(&controller.overview()).map_err(|error| {
            ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("the metrics cannot be written: {error}"),
            )
        })
    });
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text.await?))
}

/// Listens to what goes on, to count it.
pub(crate) fn listen(app: Arc<App>) -> JoinHandle<()> {
    let mut events = app.controller.events();
    tokio::spawn(async move {
        loop {
            let received = events.recv().await;
            let mut running = app.metrics.running.lock().unwrap_or_else(PoisonError::into_inner);
            match received {
                Ok(event) => running.hear(&event),
                Err(RecvError::Lagged(missed)) => running.missed(missed),
                Err(RecvError::Closed) => return,
            }
        }
    })
}
