//! What all of our pods have in common: labels, where they run, and what they may do there.

use crate::drivers::{MANAGED_BY, RUN};
use crate::pods::{Seccomp, Spread};
use crate::rook::{NodeAffinity, NodeSelector};
use crate::workload::{
    Affinity, AntiAffinity, AntiAffinityTerm, Capabilities, ContainerSecurity, Labels, PodSecurity,
    SeccompProfile, Selector, SpreadConstraint,
};
use std::collections::BTreeMap;

/// The labels of all that a run makes; `component` is a label that says what it is for.
pub(crate) fn labels(component: (&'static str, &str), run: &str) -> Labels {
    let own = [component, MANAGED_BY, ("app.kubernetes.io/name", "tidemark"), (RUN, run)];
    own.into_iter().map(|(name, value)| (name, value.to_owned())).collect()
}

/// What selects the pods of a run.
pub(crate) fn selector(run: &str) -> Selector {
    Selector { match_labels: BTreeMap::from([(RUN, run.to_owned())]) }
}

/// What selects those of its pods that are for one thing.
pub(crate) fn selector_of((name, value): (&'static str, &str), run: &str) -> Selector {
    let mut all = selector(run);
    all.match_labels.insert(name, value.to_owned());
    all
}

/// Where the pods of a run may be, and how they are spread there: on nodes with these labels, of one that is named several times with any
/// of its values.
pub(crate) fn placed(
    nodes: &[(String, String)],
    spread: Spread,
    run: &str,
) -> (Option<Affinity>, Vec<SpreadConstraint>) {
    let evenly = |topology_key, when_unsatisfiable, node_taints_policy| SpreadConstraint {
        max_skew: 1,
        topology_key,
        when_unsatisfiable,
        node_taints_policy,
        label_selector: selector(run),
    };
    let (zone, node) = ("topology.kubernetes.io/zone", "kubernetes.io/hostname");
    let over_nodes = || evenly(node, "ScheduleAnyway", None);
    let constraints = match spread {
        Spread::Nodes => vec![over_nodes()],
        // As a wish it would be weighed against how busy nodes are. A zone without a node that takes pods is none.
        Spread::Zones => vec![evenly(zone, "DoNotSchedule", Some("Honor")), over_nodes()],
        Spread::OnePerNode => Vec::new(),
    };
    let apart = [AntiAffinityTerm { topology_key: node, label_selector: selector(run) }];
    let affinity = Affinity {
        node_affinity: (!nodes.is_empty()).then(|| NodeAffinity { required: NodeSelector::with(nodes) }),
        pod_anti_affinity: (spread == Spread::OnePerNode).then_some(AntiAffinity { required: apart }),
    };
    let says_something = affinity.node_affinity.is_some() || affinity.pod_anti_affinity.is_some();
    (says_something.then_some(affinity), constraints)
}

/// Pods of a user that is not root.
pub(crate) fn user(id: u32, seccomp: Seccomp) -> PodSecurity {
    PodSecurity {
        run_as_non_root: true,
        run_as_user: id,
        run_as_group: id,
        fs_group: id,
        fs_group_change_policy: "OnRootMismatch",
        seccomp_profile: SeccompProfile {
            kind: match seccomp {
                Seccomp::RuntimeDefault => "RuntimeDefault",
                Seccomp::Unconfined => "Unconfined",
            },
        },
    }
}

/// Containers that change nothing but their volumes.
pub(crate) fn confined() -> ContainerSecurity {
    ContainerSecurity {
        allow_privilege_escalation: false,
        read_only_root_filesystem: true,
        capabilities: Capabilities { drop: ["ALL"] },
    }
}
