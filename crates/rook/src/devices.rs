//! Which devices a cleanup of a layout would touch, and whether the user has named exactly these.

use crate::kinds::{name, place};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use tidemark_kubernetes::{Deployment, Layout};

/// A device of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device {
    /// The node, as its label `kubernetes.io/hostname` says.
    pub node: String,
    /// The path: `/dev/nvme0n1`.
    pub path: String,
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((node, path)) if !node.is_empty() && path.len() > 5 && path.starts_with("/dev/") => {
                Ok(Self { node: node.to_owned(), path: path.to_owned() })
            }
            _ => Err(format!("'{text}' is not NODE:/dev/X")),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.node, self.path)
    }
}

/// The devices that Rook's cleanup would touch: those of the document, and those on which the claims of its OSDs lie.
///
/// # Errors
/// A claim lies on what is no device of a node: nobody could name what would be wiped.
pub(crate) fn touched(
    layout: &Layout,
    claims: &[Value],
    volumes: &[Value],
) -> Result<BTreeSet<Device>, String> {
    let Deployment::Internal(cluster) = &layout.deployment else {
        return Err("a cluster that is imported is not wiped from here: leave out --wipe-devices".to_owned());
    };
    let paths = || cluster.parts().flat_map(|(_, part)| &part.devices);
    let of_node = |node: &String| {
        let node = node.clone();
        paths().map(move |path| Device { node: node.clone(), path: path.clone() })
    };
    let mut all: BTreeSet<_> = cluster.nodes.iter().flat_map(of_node).collect();
    for claim in claims {
        let Some(volume) = claim["spec"]["volumeName"].as_str() else { continue };
        let found = volumes.iter().find(|one| name(one) == volume);
        let device = found.and_then(device).ok_or_else(|| {
            format!(
                "the claim {} of an OSD lies on the volume {volume}, which is no device of a node, so it cannot be named in \
                 --wipe-devices; destroy the layout without it, then delete the claims of its OSDs",
                place(claim)
            )
        })?;
        all.insert(device);
    }
    Ok(all)
}

/// The device that a local volume is.
fn device(volume: &Value) -> Option<Device> {
    let path = volume["spec"]["local"]["path"].as_str().filter(|path| path.starts_with("/dev/"))?;
    let term = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0];
    let values = term["values"].as_array().filter(|values| values.len() == 1)?;
    let node = values[0].as_str().filter(|_| term["key"] == "kubernetes.io/hostname")?;
    Some(Device { node: node.to_owned(), path: path.to_owned() })
}

/// Whether exactly the devices that would be touched were repeated.
///
/// # Errors
/// Which were not, and which would not be touched.
pub(crate) fn repeated(touched: &BTreeSet<Device>, named: &[Device]) -> Result<(), String> {
    let named: BTreeSet<_> = named.iter().cloned().collect();
    let list = |devices: Vec<&Device>| devices.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let unnamed: Vec<_> = touched.difference(&named).collect();
    let untouched: Vec<_> = named.difference(touched).collect();
    let mut wrong = Vec::new();
    if !unnamed.is_empty() {
        wrong.push(format!(
            "the cleanup would wipe these, too, and --wipe-devices does not name them: {}",
            list(unnamed)
        ));
    }
    if !untouched.is_empty() {
        wrong.push(format!("--wipe-devices names what is not of the layout: {}", list(untouched)));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let all = list(touched.iter().collect());
    Err(format!("{}; if all of them may be wiped, write --wipe-devices {all}", wrong.join("; ")))
}

/// Whether a cluster uses exactly the storage that its document says: what else it uses would be wiped as well.
pub(crate) fn is_as_written(wanted: &Value, found: &Value) -> bool {
    wanted["spec"]["storage"] == found["spec"]["storage"]
        && wanted["spec"]["dataDirHostPath"] == found["spec"]["dataDirHostPath"]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LAYOUT: &str = "\
name: trial
layout: baseline
image: quay.io/ceph/ceph:v20.2.4
nodes: [a, b, c]
osds: {per_node: 1}
data: {class: disks, size: 64Gi, devices: [/dev/sdb]}
";

    fn layout(text: &str) -> Layout {
        tidemark_kubernetes::read(text).unwrap().0
    }

    fn parsed(devices: &[&str]) -> Vec<Device> {
        devices.iter().map(|device| device.parse().unwrap()).collect()
    }

    #[test]
    fn only_the_exact_list_is_taken() {
        let touched = touched(&layout(LAYOUT), &[], &[]).unwrap();
        let all = ["a:/dev/sdb", "b:/dev/sdb", "c:/dev/sdb"];
        assert_eq!(touched.iter().map(ToString::to_string).collect::<Vec<_>>(), all);
        assert_eq!(repeated(&touched, &parsed(&all)), Ok(()));
        assert_eq!(repeated(&touched, &parsed(&["c:/dev/sdb", "b:/dev/sdb", "a:/dev/sdb"])), Ok(()));
        let fewer = repeated(&touched, &parsed(&all[..2])).unwrap_err();
        assert!(fewer.contains("does not name them: c:/dev/sdb;"), "{fewer}");
        let more = repeated(&touched, &parsed(&["a:/dev/sdb", "b:/dev/sdb", "c:/dev/sdb", "c:/dev/sda"]))
            .unwrap_err();
        assert!(more.contains("not of the layout: c:/dev/sda;"), "{more}");
        assert!(repeated(&touched, &[]).is_err());
    }

    #[test]
    fn devices_are_also_those_on_which_the_claims_of_osds_lie() {
        let text = LAYOUT.replace(", devices: [/dev/sdb]", "");
        let claim =
            json!({"metadata": {"namespace": "rook-ceph", "name": "a-data-0"}, "spec": {"volumeName": "v"}});
        let terms = |hosts: &[&str]| json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": hosts}]}]);
        let local = |path: &str, hosts: &[&str]| {
            let affinity = json!({"required": {"nodeSelectorTerms": terms(hosts)}});
            json!({"metadata": {"name": "v"}, "spec": {"local": {"path": path}, "nodeAffinity": affinity}})
        };
        let of = |volume: Value| touched(&layout(&text), std::slice::from_ref(&claim), &[volume]);
        let one = of(local("/dev/disk/by-id/x", &["a"])).unwrap();
        assert_eq!(one.into_iter().collect::<Vec<_>>(), parsed(&["a:/dev/disk/by-id/x"]));
        for unnamed in [
            local("/mnt/disks/x", &["a"]),
            local("/dev/sdb", &["a", "b"]),
            json!({"metadata": {"name": "v"}, "spec": {"csi": {}}}),
            json!({"metadata": {"name": "other"}}),
        ] {
            let error = of(unnamed).unwrap_err();
            assert!(error.contains("rook-ceph/a-data-0") && error.contains("cannot be named"), "{error}");
        }
    }

    #[test]
    fn an_imported_cluster_is_never_wiped() {
        let external = layout("name: far\nlayout: external\npools:\n- name: rbd\n");
        assert!(touched(&external, &[], &[]).unwrap_err().contains("imported"));
    }

    #[test]
    fn a_cluster_that_uses_more_than_the_document_says_is_told_apart() {
        let cluster =
            |storage: Value| json!({"spec": {"dataDirHostPath": "/var/lib/rook", "storage": storage}});
        let wanted = cluster(json!({"useAllDevices": false}));
        assert!(is_as_written(&wanted, &wanted));
        assert!(!is_as_written(&wanted, &cluster(json!({"useAllDevices": true}))));
        assert!(!is_as_written(&wanted, &cluster(json!({"useAllDevices": false, "nodes": [{"name": "d"}]}))));
    }

    #[test]
    fn devices_are_written_with_their_node() {
        for wrong in ["", "/dev/sdb", "a:", "a:/dev/", ":/dev/sdb", "a:sdb", "a:/mnt/x"] {
            assert!(wrong.parse::<Device>().is_err(), "{wrong}");
        }
    }
}
