//! Storage layouts on Kubernetes: a document becomes the manifests from which Rook makes the cluster.
//!
//! [`read`] reads a document: a [`Layout`] is one of the three that are compared (baseline, reference-1, reference-2), or a
//! cluster that exists elsewhere and is imported. [`Layout::manifests`] makes its resources: the cluster, pools, file
//! systems, object stores, and the classes through which pods claim volumes, snapshots and buckets. [`Layout::needs`]
//! says what they take and what must be there before. [`yaml`] writes them for `kubectl apply`.
//!
//! Everything is typed: a resource has the fields that are written here and no others. Tests hold them against Rook's own
//! definitions, in which unknown fields are errors.

mod arm;
mod classes;
mod databases;
mod document;
mod drivers;
mod hosting;
mod layout;
mod manifest;
mod names;
mod needs;
mod place;
mod pods;
mod quantity;
mod render;
mod rook;
mod servers;
mod stateful;
mod trino;
mod trino_pods;
mod workload;

pub use arm::{ARM, OfArm, What, of_arm};
pub use databases::{Account, DATABASE, Databases};
pub use document::{LAYOUT, read};
pub use drivers::{
    BUCKET_VARIABLES, COMPONENT, Drivers, LONGEST_RUN, MANAGED_BY, RUN, Reach, bucket_claim, is_run_name,
    run_name,
};
pub use hosting::Hosting;
pub use layout::{
    Cache, Cluster, Deployment, FailureDomain, FileSystem, Gateways, Layout, Media, Monitors, ObjectStore,
    Pool, Template,
};
pub use manifest::{Manifest, NotWritten, Owner, yaml};
pub use names::{LABEL, SUBDOMAIN};
pub use needs::{Claimed, Needs};
pub use pods::{
    Access, IMAGE, IMAGE_NAME, MOST_PODS, Mode, PODS, Pods, Seccomp, Spread, Target, User, Volume, class,
    image, namespace, pods, processors, size,
};
pub use quantity::{Quantity, SIZE};
pub use render::NAMESPACE;
pub use servers::{Server, Servers};
pub use trino::{Bucket, Trino};
pub use trino_pods::{COORDINATOR, TRINO_PORT, TrinoPods, WORKERS};

#[cfg(test)]
mod tests {
    #[test]
    fn a_layout_gives_manifests() {
        let text = "name: trial\nlayout: external\npools:\n- name: rbd\n";
        let (layout, _) = super::read(text).expect("the document is right");
        let kinds: Vec<_> = layout.manifests().iter().map(|manifest| manifest.kind).collect();
        assert_eq!(kinds, ["CephCluster", "StorageClass", "VolumeSnapshotClass"]);
    }
}
