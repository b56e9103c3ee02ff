//! A cluster that Rook makes: its keys, and how it is read.

use super::{MOST, Taken, must_have};
use crate::layout::{Cache, Cluster, FailureDomain, Kind, Media, Monitors, Profile, Template, set_names};
use crate::names::{DEVICE, DIRECTORY, IMAGE, LONGEST_HOST, SUBDOMAIN};
use crate::quantity::{PROCESSORS, Quantity, SIZE};
use std::collections::HashSet;
use std::ops::Range;
use tidemark_keys::kinds::{Kind as _, Parsed, Whole, Word};
use tidemark_keys::shapes::{Map, OneOrList};
use tidemark_keys::{Document, Key, Mapping, Table};

/// Memory of an OSD below which Rook warns, in bytes.
const LEAST_MEMORY: u64 = 2 << 30;
static IMAGE_KEY: Key<Parsed<String>> = Key::new("image", "Ceph's image, with its tag or digest", IMAGE)
    .required("write it with its tag, as in `image: quay.io/ceph/ceph:v20.2.4`")
    .example("quay.io/ceph/ceph:v20.2.4");
static NODES: Key<OneOrList<Parsed<String>>> =
    Key::new("nodes", "Nodes of the cluster, by their label `kubernetes.io/hostname`", OneOrList(SUBDOMAIN))
        .required("write the names of the nodes, as in `nodes: [node-1, node-2, node-3]`")
        .example("[node-1, node-2, node-3]");
static DATA_DIR: Key<Parsed<String>> =
    Key::new("data_dir", "Directory on the nodes for what daemons keep", DIRECTORY).default("/var/lib/rook");
static MONITORS: Key<Map> = Key::of(&MONITORS_MAP).otherwise("3, or 1 with fewer nodes, in `data_dir`");
static FAILURE_DOMAIN: Key<Word<FailureDomain>> = Key::new(
    "failure_domain",
    "What copies must not share",
    Word(&[("host", FailureDomain::Host), ("osd", FailureDomain::Osd)]),
)
.default("host");
static OSDS: Key<Map> = Key::of(&OSDS_MAP).required("write `osds: {per_node: 6}`");
static CACHE: Key<Word<Cache>> = Key::new(
    "cache",
    "What caches the data's devices, which are prepared on the nodes",
    Word(&[("open-cas", Cache::OpenCas), ("dm-cache", Cache::DmCache), ("bcache", Cache::Bcache)]),
)
.otherwise("`reference-2`: required");
static DATA: Key<Map> = Key::new("data", "Devices of data", Map(&TEMPLATE))
    .required("write where data lie, as in `data: {class: local-ssd, size: 64Gi}`");
static METADATA: Key<Map> =
    Key::new("metadata", "Devices of RocksDB's metadata, on a fast class", Map(&TEMPLATE))
        .otherwise("`reference-1`, `reference-2`: required");
static WAL: Key<Map> = Key::new("wal", "Devices of the write-ahead log, on a fast class", Map(&TEMPLATE))
    .otherwise("`reference-1`: required; `reference-2`: with the metadata");
/// The keys of a cluster that Rook makes.
pub(super) static CLUSTER: Mapping = Mapping::new(
    "cluster",
    "A cluster that Rook makes: all layouts but `external`",
    &[&IMAGE_KEY, &NODES, &DATA_DIR, &MONITORS, &FAILURE_DOMAIN, &OSDS, &DATA, &METADATA, &WAL, &CACHE],
);

static COUNT: Key<Whole<u32>> = Key::new("count", "How many, each on a node of its own", Whole(1, 9))
    .otherwise("3, or 1 with fewer nodes");
static MONITOR_CLASS: Key<Parsed<String>> =
    Key::new("class", "Storage class of a volume for each", SUBDOMAIN).otherwise("a directory in `data_dir`");
static MONITOR_SIZE: Key<Parsed<Quantity>> = Key::new("size", "Size of that volume", SIZE).default("10Gi");
static MONITORS_MAP: Mapping = Mapping::new("monitors", "Monitors", &[&COUNT, &MONITOR_CLASS, &MONITOR_SIZE]);
static PER_NODE: Key<Whole<u32>> = Key::new("per_node", "How many on each node", Whole(1, MOST))
    .required("write how many OSDs each node has");
static RESOURCES: Key<Word<Profile>> = Key::new(
    "resources",
    "What each may use: 2 processors and 6Gi; 6 and 16Gi; 8 and 18Gi, as in a cluster that others import",
    Word(&[("default", Profile::Default), ("tuned", Profile::Tuned), ("external", Profile::External)]),
)
.default("default");
static CPU: Key<Parsed<Quantity>> =
    Key::new("cpu", "Processors of each", PROCESSORS).otherwise("of `resources`");
static MEMORY: Key<Parsed<Quantity>> = Key::new("memory", "Memory of each", SIZE).otherwise("of `resources`");
static MEDIA: Key<Word<Media>> = Key::new(
    "device_class",
    "Ceph's class of the data's devices, the same for all that is compared",
    Word(&[("hdd", Media::Hdd), ("ssd", Media::Ssd), ("nvme", Media::Nvme)]),
)
.default("ssd");
static OSDS_MAP: Mapping = Mapping::new("osds", "OSDs", &[&PER_NODE, &RESOURCES, &CPU, &MEMORY, &MEDIA]);
static CLASS: Key<Parsed<String>> = Key::new("class", "Storage class from which they are claimed", SUBDOMAIN)
    .required("write the name of a storage class");
static SIZE_KEY: Key<Parsed<Quantity>> =
    Key::new("size", "What each OSD claims", SIZE).required("write a size, as in `size: 64Gi`");
static DEVICES: Key<OneOrList<Parsed<String>>> =
    Key::new("devices", "Devices of each node, one per OSD: the class is made of them", OneOrList(DEVICE))
        .otherwise("the class must exist");
static TEMPLATE: Mapping =
    Mapping::new("devices", "Devices of a part of every OSD", &[&CLASS, &SIZE_KEY, &DEVICES]);

/// Devices of a part of every OSD, and where the document says so.
struct Part {
    template: Template,
    span: Range<usize>,
}

/// Reads it, and takes the names of its classes.
pub(super) fn cluster<'a>(
    table: &mut Table<'a>,
    kind: Kind,
    classes: &mut Taken,
    document: &'a Document<'a>,
) -> Option<Cluster> {
    let image = table.get(&IMAGE_KEY);
    let nodes = nodes(table, document);
    let data_dir = table.value(&DATA_DIR);
    let failure_domain = table.value(&FAILURE_DOMAIN);
    let osds = table.table(&OSDS).and_then(|osds| self::osds(osds, document));
    let per_node = osds.as_ref().map(|osds| osds.per_node);
    let mut seen = HashSet::new();
    let mut part = |table: &mut Table<'a>, key: &'static Key<Map>| {
        let span = table.entry(key).map(|entry| entry.node.span.clone());
        let template = template(table.table(key)?, per_node, &mut seen, document)?;
        Some(Part { template, span: span? })
    };
    let has_fast = kind != Kind::Baseline;
    // Without a device of its own, the log lies on that of the metadata.
    let has_wal = kind == Kind::Reference1 || (has_fast && table.has(&WAL));
    if has_fast {
        must_have(table, &METADATA, "write the fast class, as in `metadata: {class: fast, size: 5Gi}`");
    }
    if kind == Kind::Reference1 {
        must_have(table, &WAL, "write the fast class, as in `wal: {class: fast, size: 5Gi}`");
    }
    if kind == Kind::Reference2 {
        must_have(table, &CACHE, "write what makes the cached devices: open-cas, dm-cache or bcache");
    }
    let data = part(table, &DATA);
    let metadata = has_fast.then(|| part(table, &METADATA));
    let wal = has_wal.then(|| part(table, &WAL));
    let cache = (kind == Kind::Reference2).then(|| table.get(&CACHE));
    if let (Some(Some(cache)), Some(data)) = (cache, &data) {
        is_cached(data, cache, document);
    }
    let parts: Vec<&Part> =
        [data.as_ref(), metadata.as_ref().and_then(Option::as_ref), wal.as_ref().and_then(Option::as_ref)]
            .into_iter()
            .flatten()
            .collect();
    differ(&parts, classes, document);
    let is_made = |class: &str| {
        parts.iter().any(|part| part.template.class == class && !part.template.devices.is_empty())
    };
    let monitors = monitors(table, nodes.len(), is_made, document);
    let osds = osds?;
    Some(Cluster {
        image: image?,
        nodes,
        data_dir,
        monitors: monitors?,
        failure_domain,
        osds_per_node: osds.per_node,
        cpu: osds.cpu,
        memory: osds.memory,
        media: osds.media,
        data: data?.template,
        // What does not apply is none; what should be there and is not has been reported.
        metadata: metadata.map_or(Some(None), |part| part.map(|part| Some(part.template)))?,
        wal: wal.map_or(Some(None), |part| part.map(|part| Some(part.template)))?,
        cache: cache.map_or(Some(None), |cache| cache.map(Some))?,
    })
}

fn nodes(table: &mut Table<'_>, document: &Document<'_>) -> Vec<String> {
    let span = table.entry(&NODES).map_or(0..0, |entry| entry.node.span.clone());
    let nodes = table.all(&NODES);
    let hosts = set_names(&nodes);
    let twice = (1..nodes.len()).find(|place| nodes[..*place].contains(&nodes[*place]));
    let alike = (1..hosts.len()).find(|place| hosts[..*place].contains(&hosts[*place]));
    match (twice, alike) {
        (Some(twice), _) => {
            let message = format!("the node {} is named twice", nodes[twice]);
            document.log.error(&span, message, "name each node once");
        }
        (None, Some(alike)) => {
            let message = format!("'{}' would be the name of the OSDs of two nodes", hosts[alike]);
            document.log.error(
                &span,
                message,
                "leave one of the two out, or give it another name in Kubernetes",
            );
        }
        (None, None) => {}
    }
    if let Some(long) = hosts.iter().find(|host| host.len() > LONGEST_HOST) {
        let message = format!("'{long}' is too long for the names of claims, which begin with it");
        document.log.error(&span, message, format!("name nodes with at most {LONGEST_HOST} characters"));
    }
    nodes
}

/// OSDs, but for their devices.
struct Osds {
    per_node: u32,
    cpu: Quantity,
    memory: Quantity,
    media: Media,
}

fn osds(mut table: Table<'_>, document: &Document<'_>) -> Option<Osds> {
    let per_node = table.get(&PER_NODE);
    let (cpu, memory) = table.value(&RESOURCES).amounts();
    // What is written wins over the profile, so that processors and memory can be compared one by one.
    let given = |table: &mut Table<'_>, key: &'static Key<Parsed<Quantity>>, usual: &str| {
        let value = table.get(key);
        if table.has(key) { value } else { key.shape.read(usual).ok() }
    };
    let (cpu, memory) = (given(&mut table, &CPU, cpu), given(&mut table, &MEMORY, memory));
    if let (Some(memory), Some(entry)) = (&memory, table.entry(&MEMORY))
        && memory.units() < LEAST_MEMORY
    {
        let message = format!("`memory`: {memory} is less than the 2Gi below which Rook warns");
        document.log.warning(&entry.node.span, message, "Ceph may run out of memory under load");
    }
    let media = table.value(&MEDIA);
    table.finish();
    Some(Osds { per_node: per_node?, cpu: cpu?, memory: memory?, media })
}

fn template(
    mut table: Table<'_>,
    per_node: Option<u32>,
    seen: &mut HashSet<String>,
    document: &Document<'_>,
) -> Option<Template> {
    let (class, size) = (table.get(&CLASS), table.get(&SIZE_KEY));
    let devices = table.all(&DEVICES);
    if let Some(entry) = table.entry(&DEVICES) {
        let span = &entry.node.span;
        if let Some(twice) = devices.iter().find(|device| !seen.insert((*device).clone())) {
            let message = format!("the device {twice} is named twice");
            document.log.error(span, message, "each part of each OSD needs a device or partition of its own");
        }
        if let Some(osds) = per_node.filter(|osds| *osds as usize != devices.len()) {
            let message = format!("`devices`: {} for the {osds} OSDs of each node", devices.len());
            document.log.error(
                span,
                message,
                "name one device or partition for each OSD, the same on all nodes",
            );
        }
    }
    table.finish();
    Some(Template { class: class?, size: size?, devices })
}

/// Reports data that are not behind a cache.
fn is_cached(data: &Part, cache: Cache, document: &Document<'_>) {
    let devices = &data.template.devices;
    let help = format!("name the cached devices, one per OSD of a node: {}...", cache.prefix());
    if devices.is_empty() {
        document.log.error(&data.span, "the layout reference-2 needs the `devices` of its data", help);
    } else if let Some(raw) = devices.iter().find(|device| !device.starts_with(cache.prefix())) {
        let message =
            format!("{raw} is not a cached device: those of this cache begin with {}", cache.prefix());
        document.log.error(&data.span, message, help);
    }
}

/// Reports parts of an OSD that would share what the layout keeps apart, and takes the names of their classes.
fn differ(parts: &[&Part], classes: &mut Taken, document: &Document<'_>) {
    let mut known: Vec<&str> = Vec::new();
    for (place, Part { template, span }) in parts.iter().enumerate() {
        let class = &*template.class;
        let earlier = parts[..place].iter().position(|part| part.template.class == class);
        match earlier {
            Some(0) => document.log.error(
                span,
                format!("`class`: {class} is the class of the data, too; the layout keeps them apart"),
                "name a fast class, or choose `layout: baseline`",
            ),
            Some(other) if !template.devices.is_empty() || !parts[other].template.devices.is_empty() => document.log.error(
                span,
                format!("`class`: {class} is made of the devices of another part, too: claims would mix them up"),
                "give each its own class",
            ),
            _ => {}
        }
        if !known.contains(&class) {
            known.push(class);
            classes.take(class, "a class of devices", span, document);
        }
    }
}

fn monitors(
    table: &mut Table<'_>,
    nodes: usize,
    is_made: impl Fn(&str) -> bool,
    document: &Document<'_>,
) -> Option<Monitors> {
    let usual = if nodes < 3 { 1 } else { 3 };
    if !table.has(&MONITORS) {
        return Some(Monitors { count: usual, volume: None });
    }
    let mut table = table.table(&MONITORS)?;
    let count = if table.has(&COUNT) { table.get(&COUNT)? } else { usual };
    let span = table.entry(&COUNT).map_or_else(|| table.place().clone(), |entry| entry.node.span.clone());
    if count % 2 == 0 {
        let message = format!("`count`: {count} monitors tolerate no more losses than {}", count - 1);
        document.log.error(&span, message, "write an odd number");
    }
    if nodes > 0 && count as usize > nodes {
        let message = format!("`count`: {count} monitors need as many nodes, and there are {nodes}");
        document.log.error(&span, message, "name more nodes, or write a smaller number");
    }
    let class = table.get(&MONITOR_CLASS);
    if let (Some(class), Some(entry)) = (&class, table.entry(&MONITOR_CLASS))
        && is_made(class)
    {
        let message =
            format!("`class`: {class} is made of devices without a file system, which monitors need");
        document.log.error(&entry.node.span, message, "name another class, or leave it out");
    }
    let volume = match class {
        Some(class) => {
            let size = table.get(&MONITOR_SIZE);
            let size = if table.has(&MONITOR_SIZE) { size } else { MONITOR_SIZE.usual() };
            Some((class, size?))
        }
        None => {
            table.meaningless(&[&MONITOR_SIZE], "without a `class`, monitors have no volumes");
            None
        }
    };
    table.finish();
    Some(Monitors { count, volume })
}
