//! Targets of block storage: files, devices and images.

use crate::job::{DRIVER, IoEngine, Place, Rbd, Volume};
use std::path::{Path, PathBuf};
use tidemark_keys::kinds::{Flag, Kind as _, Parsed, Text, Whole, Word};
use tidemark_keys::shapes::OneOrList;
use tidemark_keys::tree::{Node, Value};
use tidemark_keys::{Key, Mapping, Problem, Table};
use tidemark_measure::units;
use tidemark_plan::yaml::environment::Environment;

/// More volumes than this are treated as a mistake.
const MOST_VOLUMES: u32 = 1000;

/// What direct I/O needs at the least: sizes are multiples of it; bytes.
const GRAIN: u64 = 4096;

/// The largest volume: offsets are signed 64 bit numbers in Linux; bytes.
const LARGEST_VOLUME: u64 = i64::MAX as u64 / GRAIN * GRAIN;

/// Stands for a size after an error: everything fits, so that nothing else is said about it.
const UNKNOWN: u64 = LARGEST_VOLUME;

/// What block load is put on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Volumes {
    /// The volumes, at least one, all of the same size.
    pub(crate) volumes: Vec<Volume>,
    /// Whether every driver has volumes of its own by these names.
    pub(crate) per_driver: bool,
    /// What issues the operations.
    pub(crate) io_engine: IoEngine,
    /// Whether the page cache is bypassed.
    pub(crate) direct: bool,
    /// Whether completions are polled for.
    pub(crate) polled: bool,
    /// The directory that keeps which write each block must hold.
    pub(crate) journal: Option<PathBuf>,
}

impl Volumes {
    /// Size of each, bytes.
    pub(crate) fn size(&self) -> u64 {
        self.volumes.first().map_or(UNKNOWN, |volume| volume.size)
    }

    /// Whether they are images of a Ceph cluster.
    pub(crate) fn are_images(&self) -> bool {
        self.volumes.iter().any(|volume| matches!(volume.place, Place::Rbd(_)))
    }

    /// Whether they are devices.
    pub(crate) fn are_devices(&self) -> bool {
        self.volumes.iter().any(|volume| matches!(volume.place, Place::Device(_)))
    }
}

/// The kinds of volumes.
pub(crate) static KINDS: [&Mapping; 3] = [&FILE, &DEVICE, &RBD];

static FILE: Mapping = Mapping::kind("file", "Files", &[&FILE_PATH, &PATHS, &COUNT, &SIZE, &PER_DRIVER])
    .with(&[&NATIVE])
    .one_of(&[&FILE_PATH, &PATHS]);
pub(super) static DEVICE: Mapping = Mapping::kind(
    "device",
    "Block devices: **writes destroy their content**",
    &[&DEVICE_PATH, &PATHS, &DEVICE_SIZE, &PER_DRIVER],
)
.with(&[&NATIVE])
.one_of(&[&DEVICE_PATH, &PATHS]);
static RBD: Mapping = Mapping::kind(
    "rbd",
    "Images of a Ceph cluster: `image-1`, `image-2` and so on",
    &[&POOL, &IMAGE, &COUNT, &SIZE, &PER_DRIVER, &USER, &CONF, &RBD_ENGINE],
);
/// What the native engine offers.
static NATIVE: Mapping =
    Mapping::new("native", "How the operations are issued", &[&ENGINE, &DIRECT, &POLLED, &JOURNAL]);

static FILE_PATH: Key<Paths> = Key::new("path", "Path; with a `count`, `path-1`, `path-2` and so on", PATH)
    .example("/mnt/data/tidemark")
    .otherwise("this or `paths` is required")
    .expanded()
    .also(&["filename"]);
static DEVICE_PATH: Key<Paths> = Key::new("path", "Path", PATH)
    .example("/dev/sdb")
    .otherwise("this or `paths` is required")
    .expanded()
    .also(&["filename"]);
static PATHS: Key<Paths> = Key::new("paths", "Several paths", PATH).otherwise("instead").expanded();
static COUNT: Key<Whole<u32>> = Key::new("count", "How many there are", Whole(1, MOST_VOLUMES)).default("1");
static SIZE: Key<Parsed<u64>> = Key::new("size", "Size of each", SIZE_SHAPE)
    .required("write the size of each, such as `size: 8GiB`")
    .example("8GiB");
static PER_DRIVER: Key<Flag> = Key::new(
    "per_driver",
    "Every driver has volumes of its own by these names, which it prepares, loads, proves and removes: on its own machine, or named after it \
     by `{driver}` in the name. `clients`, `workers` and `depth` are those of each driver; `rate`, `total_operations` and `total_bytes` \
     of a load are those of all together",
    Flag,
)
.default("false");
static DEVICE_SIZE: Key<Parsed<u64>> = Key::new("size", "Bytes to use of each, from its start", SIZE_SHAPE)
    .example("8GiB")
    .otherwise("all; with several, the size of the smallest");
static ENGINE: Key<Word<IoEngine>> =
    Key::new("engine", "What issues the operations: io_uring, or the `fio` on this machine", ENGINES)
        .default("native");
static DIRECT: Key<Flag> = Key::new("direct", "Bypass the page cache", Flag).default("true");
static POLLED: Key<Flag> =
    Key::new("polled", "Poll for completions; requires `direct` and a device that supports it", Flag)
        .default("false");
static JOURNAL: Key<Text> = Key::new(
    "journal",
    "Directory in which every run on these volumes notes which write each block must hold, so that a later one tells stale \
     content and lost writes, after a kill too; 8 bytes for 4 KiB",
    Text,
)
.otherwise("nothing is kept: a later run verifies that blocks are in their place, not of which write they are")
.expanded();
static POOL: Key<Text> = Key::new("pool", "Pool of the images", Text).default("rbd").expanded();
static IMAGE: Key<Text> =
    Key::new("image", "Name of the images, before their numbers", Text).default("tidemark").expanded();
static USER: Key<Text> =
    Key::new("user", "Name of the Ceph client, without `client.`", Text).default("admin").expanded();
static CONF: Key<Text> =
    Key::new("conf", "Configuration file of the Ceph cluster", Text).otherwise("Ceph's own").expanded();
static RBD_ENGINE: Key<Word<IoEngine>> =
    Key::new("engine", "What issues the operations: only fio reaches images", ENGINES).default("fio");

/// One path, or several.
type Paths = OneOrList<Text>;

const PATH: Paths = OneOrList(Text);

const SIZE_SHAPE: Parsed<u64> = Parsed("bytes, a multiple of 4 KiB", size);

const ENGINES: Word<IoEngine> = Word(&[("native", IoEngine::Native), ("fio", IoEngine::Fio)]);

/// Reads the mapping under `target`; `None` if its kind is none of [`KINDS`].
pub(crate) fn volumes(kind: &str, table: &mut Table<'_>, environment: &Environment<'_>) -> Option<Volumes> {
    let (places, size) = match kind {
        "file" => (files(table), table.get(&SIZE)),
        "device" => {
            let places = devices(table);
            let size = table.get(&DEVICE_SIZE);
            let smallest = size.is_none() && !table.has(&DEVICE_SIZE);
            let size = match smallest {
                true if table.value(&PER_DRIVER) => {
                    let help = "write how much of each device to use: those of the drivers' machines cannot be asked now";
                    table.missing(&DEVICE_SIZE, help);
                    None
                }
                true => Some(smallest_of(table, &places, environment)),
                false => size,
            };
            (places, size)
        }
        "rbd" => (images(table), table.get(&SIZE)),
        _ => return None,
    };
    let size = size.unwrap_or(UNKNOWN);
    let per_driver = table.value(&PER_DRIVER);
    let (io_engine, direct, polled) = match kind {
        "rbd" => {
            if let (Some(IoEngine::Native), Some(entry)) = (table.get(&RBD_ENGINE), table.entry(&RBD_ENGINE))
            {
                let help = "remove `engine`, or map the image to a device and use `kind: device`";
                let message =
                    "only fio reaches RBD images, through librbd: the native engine does not support them";
                table.log().error(&entry.node.span, message, help);
            }
            table.meaningless(&[&DIRECT, &POLLED], "librbd uses neither the page cache nor interrupts");
            (IoEngine::Fio, true, false)
        }
        _ => (table.value(&ENGINE), table.value(&DIRECT), table.value(&POLLED)),
    };
    if polled
        && !direct
        && let Some(entry) = table.entry(&POLLED)
    {
        let message = "`polled` requires direct I/O";
        table.log().error(&entry.key_span, message, "remove `direct: false` or `polled`");
    }
    let volumes: Vec<Volume> = places.into_iter().map(|place| Volume { place, size }).collect();
    let journal = if kind == "rbd" { None } else { journal(table, io_engine) };
    check_names(table, per_driver, &volumes, journal.as_deref());
    Some(Volumes { volumes, per_driver, io_engine, direct, polled, journal })
}

/// Reports a driver's name where nothing is named after drivers, and images of one cluster that are not.
fn check_names(table: &mut Table<'_>, per_driver: bool, volumes: &[Volume], journal: Option<&Path>) {
    let named = |text: &str| text.contains(DRIVER);
    let of_path = |path: &Path| path.to_str().is_some_and(named);
    let is_named = |volume: &Volume| match &volume.place {
        Place::File(path) | Place::Device(path) => of_path(path),
        Place::Rbd(rbd) => named(&rbd.pool) || named(&rbd.image),
    };
    let place = table.entry(&PER_DRIVER).map_or(table.place().clone(), |entry| entry.key_span.clone());
    if !per_driver && (volumes.iter().any(is_named) || journal.is_some_and(of_path)) {
        let message =
            format!("`{DRIVER}` stands for a driver's name, but the volumes are not those of each driver");
        table.log().error(&place, message, "add `per_driver: true`, or use another name");
    }
    let shared = |volume: &&Volume| matches!(volume.place, Place::Rbd(_)) && !is_named(volume);
    if let (true, Some(image)) = (per_driver, volumes.iter().find(shared)) {
        let message = format!("the image {} is one and the same for all drivers", image.name());
        table.log().error(
            &place,
            message,
            format!("put `{DRIVER}` into `image`, such as `image: tidemark-{DRIVER}`"),
        );
    }
}

/// The journal's directory, which only the native engine keeps.
fn journal(table: &mut Table<'_>, engine: IoEngine) -> Option<PathBuf> {
    let directory = table.get(&JOURNAL).map(PathBuf::from);
    if engine == IoEngine::Fio
        && let Some(entry) = table.entry(&JOURNAL)
    {
        let message = "`journal` requires the native engine: fio's content has no generations";
        table.log().error(&entry.key_span, message, "remove `journal`, or `engine: fio`");
    }
    directory
}

fn files(table: &mut Table<'_>) -> Vec<Place> {
    let named = paths(table, &FILE_PATH, |path| match path.starts_with("/dev/") {
        true if !path.starts_with("/dev/shm/") => {
            Err(Problem::new(format!("{path} is below /dev"), "write `kind: device`, or another path"))
        }
        _ if path.ends_with('/') => Err(Problem::new(
            format!("{path} is a directory"),
            "add a file name; the prefill creates the file",
        )),
        _ => Ok(()),
    });
    if table.has(&PATHS) {
        table.meaningless(&[&COUNT], "`paths` sets the number");
        return named.into_iter().map(Place::File).collect();
    }
    let Some(path) = named.into_iter().next() else { return Vec::new() };
    let numbered = |number: u32| {
        let mut name = path.clone().into_os_string();
        name.push(format!("-{number}"));
        Place::File(name.into())
    };
    match table.get(&COUNT) {
        None | Some(1) => vec![Place::File(path)],
        Some(count) => (1..=count).map(numbered).collect(),
    }
}

fn devices(table: &mut Table<'_>) -> Vec<Place> {
    table.meaningless(&[&COUNT], "write each device under `paths`");
    let named = paths(table, &DEVICE_PATH, |path| match path.starts_with('/') {
        true => Ok(()),
        false => {
            Err(Problem::new(format!("{path} is not a device"), "write its full path, such as /dev/sdb"))
        }
    });
    named.into_iter().map(Place::Device).collect()
}

fn images(table: &mut Table<'_>) -> Vec<Place> {
    table.meaningless(&[&FILE_PATH, &PATHS], "`pool` and `image` name the images");
    let rbd = Rbd {
        conf: table.get(&CONF).map(PathBuf::from),
        user: table.value(&USER),
        pool: table.value(&POOL),
        image: table.value(&IMAGE),
    };
    let count = table.get(&COUNT).unwrap_or(1);
    let numbered = |number| Rbd { image: format!("{}-{number}", rbd.image), ..rbd.clone() };
    (1..=count).map(|number| Place::Rbd(numbered(number))).collect()
}

/// The paths under `path` or `paths`, each once; an error when there are none.
fn paths(
    table: &mut Table<'_>,
    one: &Key<Paths>,
    check: impl Fn(&str) -> Result<(), Problem>,
) -> Vec<PathBuf> {
    table.contradiction(one, &PATHS, "one path or a list of them");
    let single = table.has(one);
    let key = if single { one } else { &PATHS };
    let nodes = table.list(key);
    if nodes.is_empty() {
        table.missing(one, "add the path, such as `path: /mnt/data/tidemark`, or a list under `paths`");
    }
    if nodes.len() > MOST_VOLUMES as usize {
        let message = format!("there are {} paths, more than {MOST_VOLUMES}", nodes.len());
        table.log().error(table.place(), message, "use fewer volumes");
        return Vec::new();
    }
    if let (Some(second), true) = (nodes.get(1), single) {
        table.log().error(&second.span, "`path` takes one path", "write a list under `paths`");
    }
    let mut all: Vec<PathBuf> = Vec::new();
    let read = |node: &Node| {
        table.scalar(key, node, |text| {
            let path = Text.read(text)?;
            check(&path).map(|()| path)
        })
    };
    for (path, node) in nodes.iter().filter_map(|node| Some((PathBuf::from(read(node)?), node))) {
        match all.contains(&path) {
            true => {
                let written = match &node.value {
                    Value::Scalar(text) => text.as_str(),
                    _ => "a path",
                };
                table.log().error(
                    &node.span,
                    format!("{written} is listed twice"),
                    "for two clients on one volume, use `clients: 2`",
                );
            }
            false => all.push(path),
        }
    }
    all
}

fn size(text: &str) -> Result<u64, Problem> {
    match units::parse_bytes(text)? {
        bytes @ GRAIN..=LARGEST_VOLUME if bytes.is_multiple_of(GRAIN) => Ok(bytes),
        0..GRAIN => Err(Problem::new(format!("'{text}' is less than 4 KiB"), "write a size such as 8GiB")),
        bytes if bytes > LARGEST_VOLUME => {
            Err(Problem::new(format!("'{text}' is larger than any device"), "write a size such as 8GiB"))
        }
        bytes => {
            let near = (bytes / GRAIN * GRAIN).max(GRAIN);
            let help = format!("direct I/O needs whole blocks: write {near}, or a size in KiB, MiB or GiB");
            Err(Problem::new(format!("'{text}' is not a multiple of 4 KiB"), help))
        }
    }
}

/// The size of devices where the document gives none: the smallest one's.
fn smallest_of(table: &Table<'_>, places: &[Place], environment: &Environment<'_>) -> u64 {
    let log = table.log();
    let mut sizes = Vec::new();
    for place in places {
        let Place::Device(path) = place else { continue };
        match (environment.device_size)(path) {
            Ok(bytes) if bytes >= GRAIN => sizes.push(bytes / GRAIN * GRAIN),
            Ok(bytes) => {
                let message = format!("{} has a size of {bytes} B", path.display());
                log.error(
                    table.place(),
                    message,
                    "check that the device exists and is not an empty slot or loop device",
                );
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let message = format!("{} does not exist", path.display());
                log.error(
                    table.place(),
                    message,
                    "check the path: `lsblk -p` lists the devices of this machine",
                );
            }
            Err(error) => {
                let message = format!("cannot read the size of {}: {error}", path.display());
                log.error(table.place(), message, "check its path and your permissions, or write `size`");
            }
        }
    }
    let least = sizes.iter().copied().min().unwrap_or(UNKNOWN);
    if sizes.iter().any(|size| *size != least) {
        let message = "the devices differ in size: only the smallest one's size is used on each";
        log.warning(table.place(), message, format!("write `size: {}` to confirm this", least));
    }
    least
}
