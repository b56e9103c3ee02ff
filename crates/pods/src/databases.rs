//! Database servers: made, until they are ready, and their addresses.

use crate::cluster::Cluster;
use crate::error::PodsError;
use crate::made::{Made, SECRET, SERVICE};
use crate::objects::Pod;
use crate::running::{Running, Waiting};
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tidemark_kubernetes::{Account, Databases};

/// How long servers may take until they are ready: images are pulled, volumes made, data written.
const READY: Duration = Duration::from_secs(600);
/// How often it is looked whether they are.
const LOOK: Duration = Duration::from_secs(1);

/// A server that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// The node that it runs on.
    pub(crate) node: String,
}

impl Cluster {
    /// Makes database servers. If that fails, nothing of them is left, or the error says what is.
    ///
    /// # Errors
    /// The API server refuses it, or does not answer.
    pub(crate) fn start_databases<'a>(
        &'a self,
        databases: &Databases<'_>,
        account: &Account,
    ) -> Result<Running<'a>, PodsError> {
        self.has_class(&databases.servers.class, "volumes")?;
        let owned = |uid: &str| {
            vec![(SECRET, databases.secret(account, Some(uid))), (SERVICE, databases.service(Some(uid)))]
        };
        let count = databases.servers.instances;
        self.make_all(Made::Databases, databases.run, count, &databases.stateful_set(), owned)
    }

    /// Waits until all are ready: where each of them is, in the order of their numbers.
    ///
    /// # Errors
    /// Those of [`Running::wait`].
    pub(crate) fn ready(
        &self,
        databases: &Databases<'_>,
        running: &Running<'_>,
        stopped: &dyn Fn() -> bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<Instance>, PodsError> {
        let port = databases.servers.server.port();
        // The API server is not asked more often than it must be.
        let last: Cell<Option<(Instant, u32)>> = Cell::new(None);
        let count_ready = || match last.get() {
            Some((at, count)) if at.elapsed() < LOOK => count,
            _ => {
                let pods: Vec<Pod> = self.of_run("pods", databases.run).unwrap_or_default();
                let count = pods.iter().filter(|pod| pod.is_ready()).count() as u32;
                last.set(Some((Instant::now(), count)));
                count
            }
        };
        let waiting = Waiting { joined: &count_ready, stopped, most: READY, at: &port.to_string() };
        running.wait(&waiting, say)?;
        let pods: Vec<Pod> =
            self.of_run("pods", databases.run).map_err(|failure| self.error("list pods", failure))?;
        let mut instances: Vec<_> = pods.iter().filter_map(|pod| instance(pod, port)).collect();
        instances.sort_by_key(|(number, _)| *number);
        if instances.len() != databases.servers.instances as usize {
            let (there, all) = (instances.len(), databases.servers.instances);
            return Err(PodsError::NotJoined(format!("{there} of {all} database servers have an address")));
        }
        Ok(instances.into_iter().map(|(_, instance)| instance).collect())
    }
}

/// The number of a pod of a StatefulSet, and where it is.
fn instance(pod: &Pod, port: u16) -> Option<(u32, Instance)> {
    let number = pod.metadata.name.rsplit('-').next()?.parse().ok()?;
    let ip: IpAddr = pod.status.pod_ip.parse().ok()?;
    Some((number, Instance { address: SocketAddr::new(ip, port), node: pod.spec.node_name.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_instance_is_where_its_pod_is() {
        let pod = |name: &str, ip: &str| {
            let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": "n"}, "status": {"podIP": ip}});
            instance(&serde_json::from_value(pod).unwrap(), 5432)
                .map(|(number, instance)| (number, instance.address.to_string(), instance.node))
        };
        assert_eq!(pod("run-10", "10.0.0.7"), Some((10, "10.0.0.7:5432".to_owned(), "n".to_owned())));
        assert_eq!(pod("run-0", "fd00::1"), Some((0, "[fd00::1]:5432".to_owned(), "n".to_owned())));
        assert_eq!(pod("run-0", ""), None, "it has none yet");
    }
}
