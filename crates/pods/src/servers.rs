//! What servers as pods have in common, whatever they serve: how they are waited for, where they are, what is said of them.

use crate::cluster::Cluster;
use crate::error::PodsError;
use crate::objects::Pod;
use crate::running::{Running, Waiting};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tidemark_kubernetes::Hosting;

/// How long servers may take until they are ready: images are pulled, volumes made, data written.
const READY: Duration = Duration::from_secs(600);
/// How often it is looked whether they are.
const LOOK: Duration = Duration::from_secs(1);

/// What servers have brought. It is never printed: variables may be secrets.
pub(crate) struct Brought {
    /// Variables and their values.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// What they are, for reports.
    pub(crate) labels: Vec<(&'static str, String)>,
}

/// Who waits for servers.
#[derive(Clone, Copy)]
pub(crate) struct Waiter<'a> {
    /// Whether they do not want to wait any longer.
    pub(crate) stopped: &'a dyn Fn() -> bool,
    /// Is told what is waited for.
    pub(crate) say: &'a dyn Fn(&str),
}

impl Waiter<'_> {
    /// Waits until as many servers have come as are expected; `count` says how many have, and is asked no more often than it must be.
    pub(crate) fn wait(
        self,
        running: &Running<'_>,
        port: u16,
        count: &dyn Fn() -> u32,
    ) -> Result<(), PodsError> {
        let last: Cell<Option<(Instant, u32)>> = Cell::new(None);
        let joined = || match last.get() {
            Some((at, count)) if at.elapsed() < LOOK => count,
            _ => {
                let count = count();
                last.set(Some((Instant::now(), count)));
                count
            }
        };
        let waiting = Waiting { joined: &joined, stopped: self.stopped, most: READY, at: &port.to_string() };
        running.wait(&waiting, &mut |text| (self.say)(text))
    }
}

/// A server that has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Where its pod is.
    pub(crate) ip: IpAddr,
    /// The node that it runs on.
    pub(crate) node: String,
}

impl Cluster {
    /// The servers of a run that have an address: those of its first set before others, in the order of their numbers.
    pub(crate) fn instances(&self, run: &str) -> Result<Vec<Instance>, PodsError> {
        let pods: Vec<Pod> = self.of_run("pods", run).map_err(|failure| self.error("list pods", failure))?;
        let mut instances: Vec<_> = pods.iter().filter_map(instance).collect();
        instances.sort_by_key(|(order, _)| *order);
        Ok(instances.into_iter().map(|(_, instance)| instance).collect())
    }
}

/// The set and the number of a pod of a StatefulSet, and where it is.
fn instance(pod: &Pod) -> Option<((&str, u32), Instance)> {
    let (set, number) = pod.metadata.name.rsplit_once('-')?;
    let ip = pod.status.pod_ip.parse().ok()?;
    Some(((set, number.parse().ok()?), Instance { ip, node: pod.spec.node_name.clone() }))
}

/// What their pods are, for reports: the image, what `each` has, settings, and on which nodes they are.
pub(crate) fn labels(
    hosting: &Hosting,
    each: (&'static str, String),
    instances: &[Instance],
) -> Vec<(&'static str, String)> {
    let mut labels = vec![("image", hosting.image.clone()), each];
    if !hosting.settings.is_empty() {
        let settings = hosting.shown().settings.into_iter().map(|(name, value)| format!("{name}={value}"));
        labels.push(("settings", settings.collect::<Vec<_>>().join(", ")));
    }
    let mut nodes: BTreeMap<&str, u32> = BTreeMap::new();
    instances.iter().for_each(|one| *nodes.entry(&one.node).or_default() += 1);
    let nodes: Vec<_> = nodes.iter().map(|(node, count)| format!("{node}: {count}")).collect();
    labels.push(("servers on nodes", nodes.join(", ")));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_instance_is_where_its_pod_is() {
        let pod = |name: &str, ip: &str| {
            let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": "n"}, "status": {"podIP": ip}});
            let pod = serde_json::from_value(pod).unwrap();
            instance(&pod).map(|((set, number), one)| (set.to_owned(), number, one.ip.to_string(), one.node))
        };
        let at = |set: &str, number, ip: &str| Some((set.to_owned(), number, ip.to_owned(), "n".to_owned()));
        assert_eq!(pod("run-10", "10.0.0.7"), at("run", 10, "10.0.0.7"));
        assert_eq!(pod("run-worker-0", "fd00::1"), at("run-worker", 0, "fd00::1"));
        assert_eq!(pod("run-0", ""), None, "it has none yet");
    }
}
