//! The observer of a run: one thread for this node, one for each other node, and one for a Ceph cluster.

use crate::Options;
use crate::ceph::cluster;
use crate::recorder::Recorder;
use crate::remote::Remote;
use crate::sampler::{Sampler, host_name};
use crate::stop::{Stop, lock};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tidemark_measure::host::Utilization;
use tidemark_measure::observation::Node;

/// Time between two samples.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);

/// Least time before an extra sample at the end: rates over less are noise.
pub(crate) const LAST_LEAST: Duration = Duration::from_millis(250);

/// The latest sample of a node in a few numbers, for live display.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Glimpse {
    /// The node's name.
    pub name: String,
    /// Whether it generates the load.
    pub generates: bool,
    /// When it was taken, nanoseconds since the start.
    pub at_ns: u64,
    /// How busy it was.
    pub utilization: Utilization,
}

/// Observes in threads of its own until [`Observer::finish`], or until it is dropped.
pub struct Observer {
    stop: StopWhenDropped,
    own: JoinHandle<Node>,
    latest: Arc<Mutex<Option<Glimpse>>>,
    remotes: Vec<Remote>,
    /// The name of its record, and who makes it.
    ceph: Option<(String, JoinHandle<Node>)>,
}

/// Stops the threads of an observer that is dropped.
struct StopWhenDropped(Stop);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl Observer {
    /// Starts observing. Times count from `start`, the load's clock.
    pub fn start(options: &Options, start: Instant) -> Self {
        let stop = Stop::default();
        let remotes = options.nodes.iter().map(|node| Remote::start(node, start, stop.clone())).collect();
        let ceph = options.ceph.clone().map(|ceph| {
            let (name, stop) = (ceph.name.clone(), stop.clone());
            (name, thread::spawn(move || cluster::observe(&ceph, start, &stop)))
        });
        let latest = Arc::default();
        let own = thread::spawn({
            let (options, stop, latest) = (options.clone(), stop.clone(), Arc::clone(&latest));
            move || observe(&options, start, &stop, &latest)
        });
        Self { stop: StopWhenDropped(stop), own, latest, remotes, ceph }
    }

    /// The latest sample of each node that has one, this node first.
    pub fn latest(&self) -> Vec<Glimpse> {
        let own = lock(&self.latest).clone().map(|own| Glimpse { generates: true, ..own });
        own.into_iter().chain(self.remotes.iter().filter_map(Remote::latest)).collect()
    }

    /// Stops and returns the samples of all nodes, this node first. What could not be observed is in their gaps. It waits
    /// about a second for other nodes, and for a Ceph cluster 20 s at most.
    pub fn finish(self) -> Vec<Node> {
        drop(self.stop);
        let crashed = |name: String, what: &str| Node {
            name,
            gaps: vec![format!("The observer of {what} crashed: it has no samples.")],
            ..Node::default()
        };
        let mut own = self.own.join().unwrap_or_else(|_| crashed(host_name(), "this node"));
        (own.generates, own.source) = (true, "local".into());
        let mut nodes = vec![own];
        nodes.extend(self.remotes.into_iter().map(Remote::finish));
        nodes.extend(self.ceph.map(|(name, ceph)| ceph.join().unwrap_or_else(|_| crashed(name, "Ceph"))));
        nodes
    }
}

fn observe(options: &Options, start: Instant, stop: &Stop, latest: &Mutex<Option<Glimpse>>) -> Node {
    let (mut sampler, mut recorder) = (Sampler::new(options), Recorder::default());
    let mut last = look(&mut sampler, &mut recorder, start);
    let name = host_name();
    while !stop.sleep_until(next(start, Instant::now())) {
        last = look(&mut sampler, &mut recorder, start);
        *lock(latest) = recorder.glimpse(&name);
    }
    if last.elapsed() >= LAST_LEAST {
        look(&mut sampler, &mut recorder, start);
    }
    let (facts, mut gaps) = (sampler.facts(), sampler.gaps().to_vec());
    if recorder.full {
        gaps.push("There were more series than are kept.".into());
    }
    Node { name, facts, gaps, ..recorder.node() }
}

/// Takes a sample and records it if it has rates: all but the first have.
fn look(sampler: &mut Sampler, recorder: &mut Recorder, start: Instant) -> Instant {
    let (at, sample) = sampler.look();
    if sample.seconds.is_some() {
        recorder.record(nanoseconds(at.saturating_duration_since(start)), sample.values);
    }
    at
}

/// The next whole second since the start; missed seconds are skipped.
pub(crate) fn next(start: Instant, now: Instant) -> Instant {
    let since = now.saturating_duration_since(start);
    start + PERIOD * u32::try_from(since.as_secs() + 1).unwrap_or(u32::MAX)
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CephCluster;
    use tidemark_measure::observation::Kind;

    #[test]
    fn samples_are_taken_at_whole_seconds() {
        let start = Instant::now();
        let at = |ms| next(start, start + Duration::from_millis(ms)) - start;
        assert_eq!(at(0), Duration::from_secs(1));
        assert_eq!((at(999), at(1000)), (Duration::from_secs(1), Duration::from_secs(2)));
        assert_eq!(at(5500), Duration::from_secs(6), "missed seconds are skipped");
    }

    #[test]
    fn an_observer_of_ceph_that_crashes_is_a_gap() {
        let ceph = CephCluster {
            name: "Ceph".into(),
            source: "here".into(),
            ceph: Arc::new(|_| panic!("it is made to crash")),
        };
        let options = Options { ceph: Some(ceph), ..Options::default() };
        let nodes = Observer::start(&options, Instant::now()).finish();
        assert_eq!(nodes[1].name, "Ceph");
        assert_eq!(nodes[1].gaps, ["Ceph's counters could not be read: the observer crashed as it asked."]);
    }

    #[test]
    fn a_short_run_is_observed_to_its_end() {
        let start = Instant::now();
        let observer = Observer::start(&Options::default(), start);
        while observer.latest().is_empty() {
            assert!(start.elapsed() < Duration::from_secs(60), "there is no sample");
            thread::sleep(Duration::from_millis(20));
        }
        let seen = observer.latest();
        // Long enough for an extra sample at the end.
        thread::sleep(LAST_LEAST + Duration::from_millis(50));
        let nodes = observer.finish();
        let [node] = nodes.as_slice() else { panic!("{nodes:?}") };
        assert!(node.generates && node.source == "local" && !node.name.is_empty());
        assert!(node.at_ns.len() >= 2 && node.at_ns[0] >= 1_000_000_000, "{:?}", node.at_ns);
        assert!(node.at_ns.is_sorted());
        let [glimpse] = seen.as_slice() else { panic!("{seen:?}") };
        assert!(
            glimpse.generates && glimpse.name == node.name && glimpse.utilization.memory_used_bytes > 0,
            "{glimpse:?}"
        );
        let busy = node.find(Kind::Cpu, "all", "busy").unwrap();
        assert_eq!(busy.values.len(), node.at_ns.len());
        assert!(node.find(Kind::Process, "tidemark", "memory").is_some());
    }
}
