//! What goes on, added up from live events: so many operations since the run began, and how the last second was.

use super::Labels;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use tidemark_controller::api::{Live, LiveOperation, LiveSecond, LiveStage};
use tidemark_controller::controller::Event;

/// Everything that goes on.
#[derive(Default)]
pub(super) struct Running {
    submissions: BTreeMap<u64, Submission>,
    missed: u64,
}

/// What is known of a submission that goes on.
#[derive(Default)]
struct Submission {
    stages: Vec<LiveStage>,
    /// By stage, work and operation: their places.
    operations: BTreeMap<(u32, u32, u32), Sum>,
}

#[derive(Default)]
struct Sum {
    ok: u64,
    failed: u64,
    bytes: u64,
    last: LiveOperation,
}

impl Running {
    /// Takes an event in.
    pub(super) fn hear(&mut self, event: &Event) {
        let Some(id) = event.submission else { return };
        match &event.live {
            Live::Stages(stages) => self.submissions.entry(id).or_default().stages.clone_from(stages),
            // One that misses drivers comes again, whole.
            Live::Second(second) if second.missing.is_empty() => {
                self.submissions.entry(id).or_default().add(second);
            }
            // Its series end, so that nobody goes on showing its last second.
            Live::Ended(_) => drop(self.submissions.remove(&id)),
            _ => {}
        }
    }

    /// Events were missed: the sums lack them.
    pub(super) fn missed(&mut self, number: u64) {
        self.missed += number;
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let counter = Family::<Labels, Counter>::default;
        let (operations, failures, bytes) = (counter(), counter(), counter());
        let latency = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        for (id, submission) in &self.submissions {
            for (place, sum) in &submission.operations {
                let labels = submission.labels(*id, *place);
                operations.get_or_create(&labels).inc_by(sum.ok + sum.failed);
                failures.get_or_create(&labels).inc_by(sum.failed);
                bytes.get_or_create(&labels).inc_by(sum.bytes);
                let last = &sum.last;
                for (quantile, us) in
                    [("0.5", last.p50_us), ("0.95", last.p95_us), ("0.99", last.p99_us), ("1", last.max_us)]
                {
                    let mut labels = labels.clone();
                    labels.push(("quantile".into(), quantile.into()));
                    latency.get_or_create(&labels).set(us / 1e6);
                }
            }
        }
        registry.register("operations", "Operations, including failures", operations);
        registry.register("failures", "Failed operations", failures);
        registry.register("operation_bytes", "Bytes of successful operations", bytes);
        registry.register("response_time_seconds", "Response times of the last second", latency);
        let missed = Counter::<u64>::default();
        missed.inc_by(self.missed);
        registry.register("missed_events", "Events dropped before they were counted", missed);
    }
}

impl Submission {
    fn add(&mut self, second: &LiveSecond) {
        for (index, operation) in second.operations.iter().enumerate() {
            let sum = self.operations.entry((second.stage, second.work, index as u32)).or_default();
            sum.ok += operation.ok;
            sum.failed += operation.failed;
            sum.bytes += operation.bytes;
            sum.last = *operation;
        }
    }

    /// Names where they are known, places where not.
    fn labels(&self, id: u64, (stage, work, operation): (u32, u32, u32)) -> Labels {
        let known_stage = self.stages.get(stage as usize);
        let known_work = known_stage.and_then(|known| known.works.get(work as usize));
        let known_operation = known_work.and_then(|known| known.operations.get(operation as usize));
        let or_place = |name: Option<&String>, place: u32| name.cloned().unwrap_or_else(|| place.to_string());
        vec![
            ("submission".into(), format!("w{id}")),
            ("stage".into(), or_place(known_stage.map(|stage| &stage.id), stage)),
            ("work".into(), or_place(known_work.map(|work| &work.name), work)),
            ("operation".into(), or_place(known_operation, operation)),
        ]
    }
}
