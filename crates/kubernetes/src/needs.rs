//! What a layout takes of its nodes, and what must be there before it is applied.

use crate::layout::{Deployment, Layout};
use crate::quantity::Quantity;

/// What a layout needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Nodes of the cluster.
    pub nodes: usize,
    /// OSDs on each of them.
    pub osds_per_node: u32,
    /// Processors of each OSD.
    pub cpu: Quantity,
    /// Memory of each OSD.
    pub memory: Quantity,
    /// What the OSDs claim.
    pub claimed: Vec<Claimed>,
    /// Storage classes that must exist.
    pub classes: Vec<String>,
}

/// What the OSDs claim for one of their parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The part: `data`, `metadata` or `wal`.
    pub part: &'static str,
    /// The storage class.
    pub class: String,
    /// What each OSD claims.
    pub size: Quantity,
    /// The devices of each node of which the class is made, if it is.
    pub devices: Vec<String>,
}

impl Needs {
    /// OSDs of the whole cluster.
    pub fn osds(&self) -> u64 {
        self.nodes as u64 * u64::from(self.osds_per_node)
    }
}

impl Layout {
    /// What its cluster needs; nothing is known of one that is imported.
    pub fn needs(&self) -> Option<Needs> {
        let Deployment::Internal(cluster) = &self.deployment else { return None };
        let claimed: Vec<_> = cluster
            .parts()
            .map(|(part, template)| Claimed {
                part,
                class: template.class.clone(),
                size: template.size.clone(),
                devices: template.devices.clone(),
            })
            .collect();
        let of_devices = claimed.iter().filter(|part| part.devices.is_empty()).map(|part| part.class.clone());
        let of_monitors = cluster.monitors.volume.iter().map(|(class, _)| class.clone());
        let mut classes: Vec<_> = of_devices.chain(of_monitors).collect();
        classes.sort();
        classes.dedup();
        Some(Needs {
            nodes: cluster.nodes.len(),
            osds_per_node: cluster.osds_per_node,
            cpu: cluster.cpu.clone(),
            memory: cluster.memory.clone(),
            claimed,
            classes,
        })
    }
}
