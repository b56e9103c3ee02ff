//! What an API server and its etcd are made of.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::KubernetesOptions;
use super::node::Network;
use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::Home;
use crate::ports;
use crate::record::Made;
use crate::system::System;

/// What they are made of: ports, and the network of the node, if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    /// The API server's.
    pub(super) port: u16,
    /// That on which etcd listens for the API server.
    pub(super) etcd_port: u16,
    /// That on which etcd would listen for others of its kind.
    pub(super) peer_port: u16,
    /// The network of the nodes; labs made before there could be one have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<Network>,
    /// Whether the node has a CSI driver.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) csi: bool,
}

/// Where an API server with a node listens: pods are told this port, whatever it is.
const SERVICE_PORT: u16 = 443;

/// How clients sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Access {
    /// The file that `kubectl` takes.
    pub(super) kubeconfig: PathBuf,
}

impl Shape {
    /// What a lab is to be made of, given what is asked for and what it has so far.
    pub(super) fn new(
        home: &Home,
        options: &KubernetesOptions,
        has: Option<&Shape>,
    ) -> Result<Self, LabError> {
        let nodes = options.nodes.max(usize::from(options.node || options.csi));
        let node = match has {
            Some(has) if nodes > 0 && has.node.is_none() => {
                return Err(LabError::NoNode { dir: home.dir().to_owned() });
            }
            Some(has) if options.nodes > 0 && options.nodes != has.nodes() => {
                return Err(LabError::Differs {
                    dir: home.dir().to_owned(),
                    option: "the number of nodes",
                    has: has.nodes().to_string(),
                    asked: options.nodes.to_string(),
                    advice: "`tidemark lab down kubernetes` removes it, for another one",
                });
            }
            Some(has) if options.csi && has.nodes() > 1 => {
                return Err(LabError::Differs {
                    dir: home.dir().to_owned(),
                    option: "the number of nodes",
                    has: has.nodes().to_string(),
                    asked: "1".to_owned(),
                    advice: "the CSI driver knows one node only: `tidemark lab down kubernetes` removes the lab, for \
                             another one",
                });
            }
            None if options.csi && nodes > 1 => {
                return Err(LabError::BadOption {
                    option: "the number of nodes",
                    value: nodes as u64,
                    allowed: "1 with a CSI driver, which knows one node only",
                });
            }
            Some(has) => has.node,
            None => (nodes > 0).then(|| Network::choose(home, nodes)).transpose()?,
        };
        let mut others: Vec<u16> = options.port.into_iter().collect();
        let mut choose = |daemon, kept: Option<u16>| {
            let chosen = kept.map_or_else(|| ports::choose(daemon, home.dir(), &others), Ok)?;
            others.push(chosen);
            Ok(chosen)
        };
        let etcd_port = choose(Daemon::Etcd, has.map(|has| has.etcd_port))?;
        let peer_port = choose(Daemon::Etcd, has.map(|has| has.peer_port))?;
        let port = match (options.port, node) {
            (Some(port), Some(_)) if port != SERVICE_PORT => {
                let allowed = "443 with a node: it is what pods are told";
                return Err(LabError::BadOption {
                    option: "the API server's port",
                    value: port.into(),
                    allowed,
                });
            }
            (_, Some(_)) => SERVICE_PORT,
            (Some(port), None) => ports::after("the API server's port", port, 0)?,
            (None, None) => choose(Daemon::ApiServer, has.map(|has| has.port))?,
        };
        let csi = options.csi || has.is_some_and(|has| has.csi);
        Ok(Self { port, etcd_port, peer_port, node, csi })
    }

    /// How many nodes there are.
    pub(super) fn nodes(&self) -> usize {
        self.node.map_or(0, Network::nodes)
    }

    /// The address of a node.
    pub(super) fn address(&self, number: usize) -> Ipv4Addr {
        self.node.map_or(Ipv4Addr::LOCALHOST, |network| network.node(number))
    }

    /// The address on which the API server listens.
    pub(super) fn host(&self) -> Ipv4Addr {
        self.node.map_or(Ipv4Addr::LOCALHOST, Network::host)
    }

    /// Every port of 127.0.0.1, and the daemon that listens on it.
    pub(super) fn ports(&self) -> Vec<(Daemon, u16)> {
        let etcd = [(Daemon::Etcd, self.etcd_port), (Daemon::Etcd, self.peer_port)];
        let own = self.node.is_none().then_some((Daemon::ApiServer, self.port));
        etcd.into_iter().chain(own).collect()
    }

    /// Where the API server listens.
    pub(super) fn endpoint(&self) -> String {
        match self.node {
            Some(node) => format!("https://{}", node.host()),
            None => format!("https://127.0.0.1:{}", self.port),
        }
    }
}

impl Made for Shape {
    type Credentials = Access;

    const ASKED: &'static str = "kubernetes";

    fn is_of(system: System) -> bool {
        system == System::Kubernetes
    }

    fn system(&self) -> System {
        System::Kubernetes
    }

    fn addresses(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([("endpoint", self.endpoint())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(home: &Home, node: bool, port: Option<u16>) -> KubernetesOptions {
        KubernetesOptions { nodes: usize::from(node), port, ..KubernetesOptions::new(home.dir()) }
    }

    #[test]
    fn a_lab_is_made_with_a_node_or_without_one() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::prepare(&place.path().join("lab")).unwrap();
        let without = Shape::new(&home, &asked(&home, false, None), None).unwrap();
        assert_eq!((without.node, without.host()), (None, Ipv4Addr::LOCALHOST));
        assert_eq!(without.endpoint(), format!("https://127.0.0.1:{}", without.port));
        assert_eq!(without.ports().len(), 3);
        let error = Shape::new(&home, &asked(&home, true, None), Some(&without)).unwrap_err().to_string();
        assert!(error.contains("has no node; `tidemark lab down kubernetes`"), "{error}");

        let with = Shape::new(&home, &asked(&home, true, None), None).unwrap();
        let network = with.node.unwrap();
        assert_eq!(with.endpoint(), format!("https://{}", network.host()));
        assert_eq!(with.ports().len(), 2, "the third is not of 127.0.0.1");
        let kept = Shape::new(&home, &asked(&home, false, None), Some(&with)).unwrap();
        assert_eq!(kept, with);
        let three = KubernetesOptions { nodes: 3, ..asked(&home, false, None) };
        let error = Shape::new(&home, &three, Some(&with)).unwrap_err().to_string();
        assert!(error.contains("has the number of nodes 1, not 3; `tidemark lab down"), "{error}");
        let of_three = Shape::new(&home, &three, None).unwrap();
        assert_eq!(of_three.nodes(), 3);
        // A number that is given holds; one that is not is the lab's.
        let one = asked(&home, true, None);
        let error = Shape::new(&home, &one, Some(&of_three)).unwrap_err().to_string();
        assert!(error.contains("has the number of nodes 3, not 1; `tidemark lab down"), "{error}");
        let some = KubernetesOptions { node: true, ..asked(&home, false, None) };
        assert_eq!(Shape::new(&home, &some, Some(&of_three)).unwrap(), of_three);
        assert_eq!(Shape::new(&home, &some, None).unwrap().nodes(), 1);
        assert!(Shape::new(&home, &some, Some(&without)).unwrap_err().to_string().contains("has no node"));
        let too_many = KubernetesOptions { nodes: 9, ..three };
        assert!(Shape::new(&home, &too_many, None).unwrap_err().to_string().contains("1 to 8"));
        // A driver can be added, and stays.
        let csi = KubernetesOptions { csi: true, ..asked(&home, false, None) };
        let with_driver = Shape::new(&home, &csi, Some(&with)).unwrap();
        assert_eq!(with_driver, Shape { csi: true, ..with });
        assert!(Shape::new(&home, &asked(&home, false, None), Some(&with_driver)).unwrap().csi);
        assert!(Shape::new(&home, &csi, None).unwrap().node.is_some(), "it is one of a node");
        let error = Shape::new(&home, &csi, Some(&of_three)).unwrap_err().to_string();
        assert!(error.contains("nodes 3, not 1; the CSI driver knows one node only"), "{error}");
        let both = KubernetesOptions { nodes: 3, ..csi };
        let error = Shape::new(&home, &both, None).unwrap_err().to_string();
        assert!(error.contains("1 with a CSI driver"), "{error}");
        let error = Shape::new(&home, &asked(&home, true, Some(6443)), None).unwrap_err().to_string();
        assert!(error.contains("6443") && error.contains("443 with a node"), "{error}");
    }

    #[test]
    fn labs_made_before_there_were_nodes_are_read() {
        let shape: Shape =
            serde_json::from_str(r#"{"port": 29480, "etcd_port": 29481, "peer_port": 29482}"#).unwrap();
        assert_eq!((shape.port, shape.node), (29480, None));
        let text = serde_json::to_string(&shape).unwrap();
        assert!(!text.contains("node") && !text.contains("csi"), "{text}");
    }
}
