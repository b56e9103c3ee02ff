//! Layouts: the examples, and what they become with other resources, held against Rook's definitions.

mod api_server;
mod errors;
mod manifests;
mod reference;

use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read as _;
use std::path::PathBuf;
use tidemark_kubernetes::{Layout, Manifest};

/// The definitions of resources, as Rook and the snapshotter publish them.
pub(crate) fn crds() -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(&include_bytes!("../../rook/crds.yaml.gz")[..]).read_to_string(&mut text).unwrap();
    text += "\n---\n";
    text += include_str!("../../rook/volumesnapshotclasses.yaml");
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: 5_000_000, max_nodes: 5_000_000, max_total_scalar_bytes: 64 << 20, max_documents: 100 },
    };
    let all: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options).unwrap();
    all.into_iter().filter(|definition| !definition.is_null()).collect()
}

/// The text of an example.
pub(crate) fn example(name: &str) -> String {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/layouts").join(format!("{name}.yaml"));
    std::fs::read_to_string(path).unwrap()
}

/// The layout that a text describes, which must be right and without warnings.
pub(crate) fn layout(text: &str) -> Layout {
    let (layout, warnings) =
        tidemark_kubernetes::read(text).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    assert_eq!(warnings, [], "{text}");
    layout
}

/// Every layout that there is, by a name for messages: the three with each of the resources, one with all that can be
/// asked for, and an imported cluster.
pub(crate) fn layouts() -> Vec<(String, Vec<Manifest>)> {
    let mut all = Vec::new();
    for name in ["baseline", "reference-1", "reference-2"] {
        for resources in ["default", "tuned", "external"] {
            let text = example(name).replace("resources: default", &format!("resources: {resources}"));
            assert!(text.contains(&format!("resources: {resources}")), "{text}");
            all.push((format!("{name}, {resources}"), layout(&text).manifests()));
        }
    }
    all.push(("everything".to_owned(), layout(EVERYTHING).manifests()));
    all.push(("external".to_owned(), layout(&example("external")).manifests()));
    all
}

/// A document with every key of a cluster that is made.
pub(crate) const EVERYTHING: &str = "\
name: everything
layout: reference-2
namespace: storage
operator_namespace: rook-system
image: quay.io/ceph/ceph:v20.2.4
nodes: [a.example.org, b.example.org, c.example.org]
data_dir: /var/lib/rook-everything
failure_domain: osd
monitors: {count: 3, class: standard, size: 20Gi}
osds: {per_node: 2, resources: default, cpu: 1500m, memory: 16Gi, device_class: hdd}
cache: bcache
data: {class: cached, size: 1.5Ti, devices: [/dev/bcache0, /dev/bcache1]}
metadata: {class: fast-db, size: 60Gi, devices: [/dev/nvme0n1p1, /dev/nvme0n1p2]}
wal: {class: fast-wal, size: 2Gi, devices: [/dev/nvme0n1p3, /dev/nvme0n1p4]}
pools:
- {name: one, replicas: 1, allow_loss: true, placement_groups: 64}
- {name: two, replicas: 2, class: block-2}
- {name: three, replicas: 3}
file_systems:
- {name: files, replicas: 2}
object_stores:
- {name: objects, replicas: 3, gateways: 12, port: 8080, buckets: [first, second]}
- {name: scratch, replicas: 1, allow_loss: true, class: bucket-1}
";
