//! The manifests of a layout.

use crate::classes::{Capacity, Local, PersistentVolume, SnapshotClass, StorageClass, VolumeAffinity};
use crate::layout::{
    Cluster, DATA_POOL_OF_OURS, Deployment, FileSystem, Gateways, Layout, Media, ObjectStore, Pool, Template,
};
use crate::manifest::{Body, Manifest, Metadata, Spec};
use crate::quantity::Quantity;
use crate::rook::{
    Amounts, BlockPool, Bucket, BucketClaim, CephVersion, Claim, ClaimMetadata, ClaimResources, ClaimSpec,
    ClusterSpec, CrashCollector, DeviceSet, Endpoint, External, FileSystemSpec, Gateway, MetadataServer, Mgr,
    Mon, NodeSelector, ObjectStoreSpec, Placement, Replicated, Resources, Storage, StorageAmount,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The interface that Rook's resources belong to.
const ROOK: &str = "ceph.rook.io/v1";

/// The label with the namespace of a layout: what is of the whole cluster, such as classes, has none of its own.
pub const NAMESPACE: &str = "tidemark.dev/namespace";

impl Layout {
    /// All its resources, in an order in which each finds what it refers to.
    pub fn manifests(&self) -> Vec<Manifest> {
        let mut all = Vec::new();
        if let Deployment::Internal(cluster) = &self.deployment {
            let made = cluster.parts().filter(|(_, part)| !part.devices.is_empty());
            made.for_each(|(part, template)| self.devices(cluster, part, template, &mut all));
        }
        all.push(self.rook("CephCluster", &self.name, Spec::Cluster(Box::new(self.cluster()))));
        self.pools.iter().for_each(|pool| self.pool(pool, &mut all));
        self.file_systems.iter().for_each(|system| self.file_system(system, &mut all));
        self.object_stores.iter().for_each(|store| self.object_store(store, &mut all));
        all
    }

    fn cluster(&self) -> ClusterSpec {
        let Deployment::Internal(cluster) = &self.deployment else {
            return ClusterSpec {
                external: Some(External { enable: true }),
                crash_collector: Some(CrashCollector { disable: true }),
                ..ClusterSpec::default()
            };
        };
        let managers = if cluster.nodes.len() > 1 { 2 } else { 1 };
        let volume = cluster.monitors.volume.clone();
        ClusterSpec {
            ceph_version: Some(CephVersion { image: cluster.image.clone(), allow_unsupported: false }),
            data_dir_host_path: Some(cluster.data_dir.clone()),
            mon: Some(Mon {
                count: cluster.monitors.count,
                allow_multiple_per_node: false,
                volume_claim_template: volume
                    .map(|(class, size)| Claim { metadata: None, spec: claim(&class, &size, "Filesystem") }),
            }),
            mgr: Some(Mgr { count: managers, allow_multiple_per_node: false }),
            placement: BTreeMap::from([("all", Placement::on(&cluster.nodes))]),
            storage: Some(Storage {
                use_all_nodes: false,
                use_all_devices: false,
                storage_class_device_sets: device_sets(cluster),
            }),
            ..ClusterSpec::default()
        }
    }

    /// The class that is made of devices, and a volume for each.
    fn devices(&self, cluster: &Cluster, part: &str, template: &Template, all: &mut Vec<Manifest>) {
        let class = StorageClass {
            provisioner: "kubernetes.io/no-provisioner".to_owned(),
            parameters: BTreeMap::new(),
            allow_volume_expansion: None,
            reclaim_policy: "Retain",
            // Only then is the node known whose device it must be.
            volume_binding_mode: "WaitForFirstConsumer",
        };
        all.push(self.class(&template.class, class));
        for (node, set) in cluster.nodes.iter().zip(cluster.set_names()) {
            for (number, device) in template.devices.iter().enumerate() {
                let volume = PersistentVolume {
                    capacity: Capacity { storage: template.size.clone() },
                    volume_mode: "Block",
                    access_modes: ["ReadWriteOnce"],
                    persistent_volume_reclaim_policy: "Retain",
                    storage_class_name: template.class.clone(),
                    local: Local { path: device.clone() },
                    node_affinity: VolumeAffinity {
                        required: NodeSelector::any_of(std::slice::from_ref(node)),
                    },
                };
                let name = format!("{}-{set}-{part}-{number}", self.name);
                let body = Body::Spec { spec: Spec::Volume(volume) };
                all.push(self.manifest("v1", "PersistentVolume", &name, None, body));
            }
        }
    }

    fn pool(&self, pool: &Pool, all: &mut Vec<Manifest>) {
        if let Some(mut spec) = self.copies(pool.replicas) {
            if let Some(groups) = pool.placement_groups {
                let fixed = [("pg_num", groups.to_string()), ("pg_autoscale_mode", "off".to_owned())];
                spec.parameters = BTreeMap::from(fixed);
            }
            all.push(self.rook("CephBlockPool", &pool.name, Spec::Pool(spec)));
        }
        let own = [("pool", pool.name.as_str()), ("imageFormat", "2"), ("imageFeatures", "layering")];
        let mut parameters = self.parameters("rbd", &own, &["controller-publish"]);
        parameters.insert("csi.storage.k8s.io/fstype".to_owned(), "ext4".to_owned());
        self.volumes("rbd", &pool.class, parameters, all);
    }

    fn file_system(&self, system: &FileSystem, all: &mut Vec<Manifest>) {
        if let Some(pool) = self.copies(system.replicas) {
            let spec = FileSystemSpec {
                metadata_pool: pool.clone(),
                data_pools: [BlockPool { name: Some(DATA_POOL_OF_OURS), ..pool }],
                metadata_server: MetadataServer { active_count: 1, active_standby: true },
            };
            all.push(self.rook("CephFilesystem", &system.name, Spec::FileSystem(spec)));
        }
        let own = [("fsName", system.name.as_str()), ("pool", system.pool.as_str())];
        self.volumes("cephfs", &system.class, self.parameters("cephfs", &own, &[]), all);
    }

    fn object_store(&self, store: &ObjectStore, all: &mut Vec<Manifest>) {
        let (replicas, instances, addresses) = match &store.gateways {
            Gateways::Ours { instances, replicas } => (Some(*replicas), Some(*instances), &[][..]),
            Gateways::Theirs(addresses) => (None, None, addresses.as_slice()),
        };
        let pool = self.copies(replicas);
        // Placement groups for many objects from the start: they do not split during a load.
        let bulk = BTreeMap::from([("bulk", "true".to_owned())]);
        let spec = ObjectStoreSpec {
            metadata_pool: pool.clone(),
            data_pool: pool.map(|pool| BlockPool { parameters: bulk, ..pool }),
            gateway: Gateway {
                port: store.port,
                instances,
                external_rgw_endpoints: addresses.iter().map(|address| endpoint(address)).collect(),
            },
        };
        all.push(self.rook("CephObjectStore", &store.name, Spec::ObjectStore(spec)));
        let parameters = [("objectStoreName", &store.name), ("objectStoreNamespace", &self.namespace)];
        let class = StorageClass {
            provisioner: format!("{}.ceph.rook.io/bucket", self.operator_namespace),
            parameters: parameters.map(|(name, value)| (name.to_owned(), value.clone())).into(),
            allow_volume_expansion: None,
            reclaim_policy: "Delete",
            volume_binding_mode: "Immediate",
        };
        all.push(self.class(&store.class, class));
        for bucket in &store.buckets {
            let claim = BucketClaim {
                bucket: Bucket::Named(bucket.clone()),
                storage_class_name: store.class.clone(),
            };
            let body = Body::Spec { spec: Spec::BucketClaim(claim) };
            let namespace = Some(self.namespace.clone());
            all.push(self.manifest("objectbucket.io/v1alpha1", "ObjectBucketClaim", bucket, namespace, body));
        }
    }

    /// A pool with so many copies, on the data's devices, if it is ours.
    fn copies(&self, replicas: Option<u32>) -> Option<BlockPool> {
        let Deployment::Internal(cluster) = &self.deployment else { return None };
        let size = replicas?;
        Some(BlockPool {
            name: None,
            failure_domain: cluster.failure_domain.name(),
            device_class: cluster.media.device_class(),
            // Rook makes a pool without a second copy only if it is told that this is safe enough.
            replicated: Replicated { size, require_safe_replica_size: size > 1 },
            parameters: BTreeMap::new(),
        })
    }

    /// What a driver of volumes must be told: its cluster, and the keys that Rook has made for each of its steps.
    fn parameters(
        &self,
        driver: &str,
        own: &[(&str, &str)],
        more_steps: &[&str],
    ) -> BTreeMap<String, String> {
        let mut parameters = BTreeMap::from([("clusterID".to_owned(), self.namespace.clone())]);
        parameters.extend(own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let controller = ["provisioner", "controller-expand"].iter().chain(more_steps);
        let steps = controller.map(|step| (*step, "provisioner")).chain([("node-stage", "node")]);
        for (step, role) in steps {
            parameters.extend(self.secret(step, &format!("rook-csi-{driver}-{role}")));
        }
        parameters
    }

    fn secret(&self, step: &str, name: &str) -> [(String, String); 2] {
        [("name", name), ("namespace", &self.namespace)]
            .map(|(what, value)| (format!("csi.storage.k8s.io/{step}-secret-{what}"), value.to_owned()))
    }

    /// The classes of a driver's volumes and of their snapshots.
    fn volumes(
        &self,
        driver: &str,
        name: &str,
        parameters: BTreeMap<String, String>,
        all: &mut Vec<Manifest>,
    ) {
        let provisioner = format!("{}.{driver}.csi.ceph.com", self.operator_namespace);
        let class = StorageClass {
            provisioner: provisioner.clone(),
            parameters,
            allow_volume_expansion: Some(true),
            reclaim_policy: "Delete",
            volume_binding_mode: "Immediate",
        };
        all.push(self.class(name, class));
        let mut parameters = BTreeMap::from([("clusterID".to_owned(), self.namespace.clone())]);
        parameters.extend(self.secret("snapshotter", &format!("rook-csi-{driver}-provisioner")));
        let body =
            Body::SnapshotClass(SnapshotClass { driver: provisioner, parameters, deletion_policy: "Delete" });
        all.push(self.manifest("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass", name, None, body));
    }

    fn class(&self, name: &str, class: StorageClass) -> Manifest {
        self.manifest("storage.k8s.io/v1", "StorageClass", name, None, Body::StorageClass(class))
    }

    fn rook(&self, kind: &'static str, name: &str, spec: Spec) -> Manifest {
        self.manifest(ROOK, kind, name, Some(self.namespace.clone()), Body::Spec { spec })
    }

    fn manifest(
        &self,
        api_version: &'static str,
        kind: &'static str,
        name: &str,
        namespace: Option<String>,
        body: Body,
    ) -> Manifest {
        let labels = BTreeMap::from([
            ("app.kubernetes.io/managed-by", "tidemark".to_owned()),
            ("app.kubernetes.io/instance", self.name.clone()),
            (NAMESPACE, self.namespace.clone()),
        ]);
        let metadata = Metadata { name: name.to_owned(), namespace, labels, owner_references: Vec::new() };
        Manifest { api_version, kind, metadata, body }
    }
}

/// A set of OSDs for every node: so each node has as many as the others, whatever the scheduler prefers.
fn device_sets(cluster: &Cluster) -> Vec<DeviceSet> {
    let amounts = Amounts { cpu: cluster.cpu.clone(), memory: cluster.memory.clone() };
    let set = |(node, name): (&String, String)| {
        let placement = Placement::on(std::slice::from_ref(node));
        DeviceSet {
            name,
            count: cluster.osds_per_node,
            portable: false,
            encrypted: false,
            tune_device_class: cluster.media == Media::Hdd,
            tune_fast_device_class: cluster.media != Media::Hdd,
            resources: Resources { requests: amounts.clone(), limits: amounts.clone() },
            placement: placement.clone(),
            prepare_placement: placement,
            volume_claim_templates: cluster
                .parts()
                .map(|(part, template)| osd_claim(cluster, part, template))
                .collect(),
        }
    };
    cluster.nodes.iter().zip(cluster.set_names()).map(set).collect()
}

fn osd_claim(cluster: &Cluster, part: &'static str, template: &Template) -> Claim {
    let class = (part == "data").then(|| ("crushDeviceClass", cluster.media.device_class().to_owned()));
    let metadata = ClaimMetadata { name: part, annotations: class.into_iter().collect() };
    Claim { metadata: Some(metadata), spec: claim(&template.class, &template.size, "Block") }
}

fn claim(class: &str, size: &Quantity, volume_mode: &'static str) -> ClaimSpec {
    ClaimSpec {
        resources: ClaimResources { requests: StorageAmount { storage: size.clone() } },
        storage_class_name: class.to_owned(),
        volume_mode,
        access_modes: ["ReadWriteOnce"],
    }
}

fn endpoint(address: &str) -> Endpoint {
    match address.parse::<IpAddr>() {
        Ok(ip) => Endpoint::Ip(ip.to_string()),
        Err(_) => Endpoint::Hostname(address.to_owned()),
    }
}
