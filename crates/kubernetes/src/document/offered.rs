//! What is offered on a cluster (pools, file systems, object stores): its keys, and how it is read.

use super::{MOST, Taken, must_have};
use crate::layout::{
    DATA_POOL_OF_OURS, FailureDomain, FileSystem, Gateways, Kind, METADATA_POOL_OF_ROOK, ObjectStore, Pool,
};
use crate::names::{ADDRESS, BUCKET, LABEL, OF_CEPH, SUBDOMAIN};
use std::ops::Range;
use tidemark_keys::kinds::{Flag, Kind as _, Parsed, Whole};
use tidemark_keys::shapes::{List, Map, OneOrList};
use tidemark_keys::tree::Node;
use tidemark_keys::{Document, Key, Mapping, Table};

static POOLS: Key<List<Map>> = Key::new("pools", "Pools for block volumes", List(Map(&POOL)));
static FILE_SYSTEMS: Key<List<Map>> = Key::new("file_systems", "File systems", List(Map(&FILE_SYSTEM)));
static OBJECT_STORES: Key<List<Map>> = Key::new("object_stores", "Object stores", List(Map(&OBJECT_STORE)));
/// The keys of what is offered.
pub(super) static OFFERED: Mapping =
    Mapping::new("offered", "What is offered on a cluster", &[&POOLS, &FILE_SYSTEMS, &OBJECT_STORES]);

static REPLICAS: Key<Whole<u32>> =
    Key::new("replicas", "Copies of each object, the first included", Whole(1, 10))
        .otherwise("required, but of an imported cluster");
static ALLOW_LOSS: Key<Flag> =
    Key::new("allow_loss", "`replicas: 1`: a lost device is lost data, and that is meant", Flag)
        .default("false");
static OWN_CLASS: Key<Parsed<String>> =
    Key::new("class", "Name of the storage class, and of that of snapshots", SUBDOMAIN).otherwise("the name");
static PLACEMENT_GROUPS: Key<Whole<u32>> =
    Key::new("placement_groups", "How many placement groups it has for good", Whole(1, 1 << 16))
        .otherwise("Ceph changes their number as the pool grows");
static POOL_NAME: Key<Parsed<String>> = Key::new("name", "Its name", OF_CEPH).required("write its name");
static POOL: Mapping = Mapping::new(
    "pool",
    "A pool for block volumes",
    &[&POOL_NAME, &REPLICAS, &ALLOW_LOSS, &PLACEMENT_GROUPS, &OWN_CLASS],
);
static DATA_POOL: Key<Parsed<String>> =
    Key::new("pool", "The pool of its data", OF_CEPH).otherwise("`external`: required");
static FILE_SYSTEM: Mapping = Mapping::new(
    "file system",
    "A file system",
    &[&POOL_NAME, &REPLICAS, &ALLOW_LOSS, &DATA_POOL, &OWN_CLASS],
);
static STORE_NAME: Key<Parsed<String>> = Key::new("name", "Its name", LABEL).required("write its name");
static GATEWAYS: Key<Whole<u32>> =
    Key::new("gateways", "How many gateways, behind one service", Whole(1, MOST)).default("1");
static PORT: Key<Whole<u16>> = Key::new("port", "Port of its gateways", Whole(1, u16::MAX)).default("80");
static ADDRESSES: Key<OneOrList<Parsed<String>>> =
    Key::new("addresses", "Addresses of its gateways", OneOrList(ADDRESS)).otherwise("`external`: required");
static BUCKETS: Key<OneOrList<Parsed<String>>> = Key::new(
    "buckets",
    "Buckets to claim; each claim, and the Secret with its keys, has the bucket's name",
    OneOrList(BUCKET),
);
static BUCKET_CLASS: Key<Parsed<String>> =
    Key::new("class", "Name of the storage class of buckets", SUBDOMAIN).otherwise("the name");
static OBJECT_STORE: Mapping = Mapping::new(
    "object store",
    "An object store, which speaks S3 and Swift",
    &[&STORE_NAME, &REPLICAS, &ALLOW_LOSS, &GATEWAYS, &PORT, &ADDRESSES, &BUCKETS, &BUCKET_CLASS],
);

/// What is offered.
pub(super) struct Offered {
    pub(super) pools: Vec<Pool>,
    pub(super) file_systems: Vec<FileSystem>,
    pub(super) object_stores: Vec<ObjectStore>,
}

/// Reads it.
pub(super) fn offered(
    table: &mut Table<'_>,
    ground: Ground,
    classes: &mut Taken,
    document: &Document<'_>,
) -> Option<Offered> {
    let mut tables = |key: &'static Key<List<Map>>, what: &'static str| {
        let nodes = table.list(key).iter();
        nodes.map(|node| table.part(what, node, &node.span).of(key.shape.0.0)).collect::<Vec<_>>()
    };
    let (pools, systems) = (tables(&POOLS, "a pool"), tables(&FILE_SYSTEMS, "a file system"));
    let stores = tables(&OBJECT_STORES, "an object store");
    let mut named = (Taken::default(), Taken::default());
    // All are read, whatever is wrong with one.
    let pools: Vec<_> =
        pools.into_iter().map(|one| pool(one, ground, &mut named.0, classes, document)).collect();
    let file_systems: Vec<_> =
        systems.into_iter().map(|one| file_system(one, ground, &mut named, classes, document)).collect();
    let mut taken = (Taken::default(), Taken::default());
    let object_stores: Vec<_> =
        stores.into_iter().map(|one| object_store(one, ground, &mut taken, classes, document)).collect();
    Some(Offered {
        pools: pools.into_iter().collect::<Option<_>>()?,
        file_systems: file_systems.into_iter().collect::<Option<_>>()?,
        object_stores: object_stores.into_iter().collect::<Option<_>>()?,
    })
}

/// What is read of a cluster that its pools depend on.
#[derive(Clone, Copy)]
pub(super) struct Ground {
    pub(super) kind: Kind,
    /// What copies must not share, and how many of them there are, if there is a cluster of ours.
    pub(super) domains: Option<(FailureDomain, u32)>,
}

/// How many copies there are of what is ours.
fn replicas(table: &mut Table<'_>, ground: Ground, document: &Document<'_>) -> Option<u32> {
    must_have(table, &REPLICAS, "write how many copies there are, 1 to 3 as a rule");
    let replicas = table.get(&REPLICAS);
    let (allow_loss, entry) = (table.value(&ALLOW_LOSS), table.entry(&REPLICAS));
    let (replicas, span) = (replicas?, &entry?.node.span);
    match (replicas, allow_loss) {
        (1, false) => document.log.error(
            span,
            "`replicas: 1` keeps no second copy: a lost device is lost data",
            "write `replicas: 2` or more; or add `allow_loss: true`, if that is meant",
        ),
        (2.., true) => document.log.error(
            span,
            format!("`allow_loss` contradicts `replicas: {replicas}`"),
            "remove `allow_loss`, or write `replicas: 1`",
        ),
        _ => {}
    }
    if let Some((domain, domains)) = ground.domains
        && replicas > domains
    {
        let (things, help) = match domain {
            FailureDomain::Host => {
                ("nodes", "name more nodes, write fewer replicas, or add `failure_domain: osd`")
            }
            FailureDomain::Osd => ("OSDs", "write fewer replicas, or more OSDs"),
        };
        let message = format!("`replicas`: {replicas} copies need as many {things}, and there are {domains}");
        document.log.error(span, message, help);
    }
    Some(replicas)
}

/// The name of what is offered, whose kind depends on who makes it, and the place of the name.
fn offered_name(table: &mut Table<'_>, kind: Kind) -> Option<(String, Range<usize>)> {
    table.used_by(format!("the layout {}", kind.name()));
    let name = table.get(&POOL_NAME)?;
    let node: &Node = &table.entry(&POOL_NAME)?.node;
    // What we make is also a resource of Kubernetes.
    let name = if kind == Kind::External { Some(name) } else { table.one(&POOL_NAME, &LABEL, node) };
    Some((name?, node.span.clone()))
}

/// The name of the class of what is offered: its own, unless another is written.
fn own_class(
    table: &mut Table<'_>,
    key: &'static Key<Parsed<String>>,
    name: Option<&(String, Range<usize>)>,
    classes: &mut Taken,
    document: &Document<'_>,
) -> Option<String> {
    let (class, span) = match (table.entry(key), name) {
        (Some(entry), _) => (table.get(key)?, entry.node.span.clone()),
        (None, Some((name, span))) if SUBDOMAIN.read(name).is_ok() => (name.clone(), span.clone()),
        (None, Some((name, span))) => {
            let message = format!("'{name}' cannot be the name of a storage class");
            document.log.error(span, message, "add the name of its class, as in `class: block`");
            return None;
        }
        (None, None) => return None,
    };
    classes.take(&class, "a class of volumes or buckets", &span, document);
    Some(class)
}

fn pool(
    mut table: Table<'_>,
    ground: Ground,
    names: &mut Taken,
    classes: &mut Taken,
    document: &Document<'_>,
) -> Option<Pool> {
    let name = offered_name(&mut table, ground.kind);
    let is_ours = ground.kind != Kind::External;
    let replicas = is_ours.then(|| replicas(&mut table, ground, document));
    let placement_groups = if is_ours { table.get(&PLACEMENT_GROUPS) } else { None };
    let class = own_class(&mut table, &OWN_CLASS, name.as_ref(), classes, document);
    table.finish();
    let (name, span) = name?;
    names.take(&name, "a pool", &span, document);
    Some(Pool {
        name,
        class: class?,
        replicas: replicas.map_or(Some(None), |replicas| replicas.map(Some))?,
        placement_groups,
    })
}

fn file_system(
    mut table: Table<'_>,
    ground: Ground,
    (pools, names): &mut (Taken, Taken),
    classes: &mut Taken,
    document: &Document<'_>,
) -> Option<FileSystem> {
    let name = offered_name(&mut table, ground.kind);
    let is_ours = ground.kind != Kind::External;
    let replicas = is_ours.then(|| replicas(&mut table, ground, document));
    if !is_ours {
        must_have(&mut table, &DATA_POOL, "write the name of the pool that has its data");
    }
    let theirs = if is_ours { None } else { table.get(&DATA_POOL) };
    let class = own_class(&mut table, &OWN_CLASS, name.as_ref(), classes, document);
    table.finish();
    let (name, span) = name?;
    names.take(&name, "a file system", &span, document);
    let own = [format!("{name}-{DATA_POOL_OF_OURS}"), format!("{name}-{METADATA_POOL_OF_ROOK}")];
    if is_ours {
        own.iter().for_each(|pool| pools.take(pool, "a pool", &span, document));
    }
    let [pool, _] = own;
    let pool = if is_ours { pool } else { theirs? };
    let replicas = replicas.map_or(Some(None), |replicas| replicas.map(Some))?;
    Some(FileSystem { name, class: class?, replicas, pool })
}

fn object_store(
    mut table: Table<'_>,
    ground: Ground,
    taken: &mut (Taken, Taken),
    classes: &mut Taken,
    document: &Document<'_>,
) -> Option<ObjectStore> {
    let (names, claims) = taken;
    table.used_by(format!("the layout {}", ground.kind.name()));
    let name = table.get(&STORE_NAME);
    let name = name.zip(table.entry(&STORE_NAME).map(|entry| entry.node.span.clone()));
    let gateways = match ground.kind {
        Kind::External => {
            let help = "write the addresses of its gateways or of the load balancer in front of them";
            must_have(&mut table, &ADDRESSES, help);
            let addresses = table.all(&ADDRESSES);
            (!addresses.is_empty()).then_some(Gateways::Theirs(addresses))
        }
        _ => {
            let instances = if table.has(&GATEWAYS) { table.get(&GATEWAYS) } else { GATEWAYS.usual() };
            let replicas = replicas(&mut table, ground, document);
            instances.zip(replicas).map(|(instances, replicas)| Gateways::Ours { instances, replicas })
        }
    };
    let port = if table.has(&PORT) { table.get(&PORT) } else { PORT.usual() };
    let buckets = table.all(&BUCKETS);
    if let Some(entry) = table.entry(&BUCKETS) {
        buckets.iter().for_each(|bucket| claims.take(bucket, "a bucket", &entry.node.span, document));
    }
    let class = own_class(&mut table, &BUCKET_CLASS, name.as_ref(), classes, document);
    table.finish();
    let (name, span) = name?;
    names.take(&name, "an object store", &span, document);
    Some(ObjectStore { name, class: class?, port: port?, gateways: gateways?, buckets })
}
