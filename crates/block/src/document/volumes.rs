//! Targets of block storage: files, devices and images.

use crate::job::{IoEngine, Place, Rbd, Volume};
use std::path::PathBuf;
use tidemark_measure::units;
use tidemark_plan::yaml::environment::Environment;
use tidemark_plan::yaml::table::{self, Problem, Table};
use tidemark_plan::yaml::tree::Node;

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
    /// What issues the operations.
    pub(crate) io_engine: IoEngine,
    /// Whether the page cache is bypassed.
    pub(crate) direct: bool,
    /// Whether completions are polled for.
    pub(crate) polled: bool,
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

/// Kinds of volumes, as documents call them.
pub(crate) const KINDS: [&str; 3] = ["file", "device", "rbd"];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    File,
    Device,
    Rbd,
}

/// Reads the mapping under `target`; `None` if its kind is none of [`KINDS`].
pub(crate) fn volumes(kind: &str, table: &mut Table<'_>, environment: &Environment<'_>) -> Option<Volumes> {
    let kind = [Kind::File, Kind::Device, Kind::Rbd][KINDS.iter().position(|known| *known == kind)?];
    let places = match kind {
        Kind::File => files(table, environment),
        Kind::Device => devices(table, environment),
        Kind::Rbd => images(table, environment),
    };
    let size = table.read("size", size).unwrap_or_else(|| usual_size(kind, table, &places, environment));
    let engines = [("native", IoEngine::Native), ("fio", IoEngine::Fio)];
    let engine = table.word("engine", &engines);
    let io_engine = match kind {
        Kind::Rbd => IoEngine::Fio,
        _ => engine.unwrap_or_default(),
    };
    let (direct, polled) = match kind {
        Kind::Rbd => {
            if let (Some(IoEngine::Native), Some(entry)) = (engine, table.entry("engine")) {
                let help = "remove `engine`, or map the image to a device and use `kind: device`";
                let message =
                    "only fio reaches RBD images, through librbd: the native engine does not support them";
                table.log().error(&entry.node.span, message, help);
            }
            table.meaningless(&["direct", "polled"], "librbd uses neither the page cache nor interrupts");
            (true, false)
        }
        _ => (table.flag("direct").unwrap_or(true), table.flag("polled").unwrap_or(false)),
    };
    if let (true, false, Some(entry)) = (polled, direct, table.entry("polled")) {
        let message = "`polled` requires direct I/O";
        table.log().error(&entry.key_span, message, "remove `direct: false` or `polled`");
    }
    let volumes = places.into_iter().map(|place| Volume { place, size }).collect();
    Some(Volumes { volumes, io_engine, direct, polled })
}

fn files(table: &mut Table<'_>, environment: &Environment<'_>) -> Vec<Place> {
    let named = paths(table, environment, |path| match path.starts_with("/dev/") {
        true if !path.starts_with("/dev/shm/") => {
            Err(Problem::new(format!("{path} is below /dev"), "write `kind: device`, or another path"))
        }
        _ if path.ends_with('/') => Err(Problem::new(
            format!("{path} is a directory"),
            "add a file name; the prefill creates the file",
        )),
        _ => Ok(()),
    });
    if table.has("paths") {
        table.meaningless(&["count"], "`paths` sets the number");
        return named.into_iter().map(Place::File).collect();
    }
    let Some(path) = named.into_iter().next() else { return Vec::new() };
    let numbered = |number: u32| {
        let mut name = path.clone().into_os_string();
        name.push(format!("-{number}"));
        Place::File(name.into())
    };
    match table.small("count", 1..=MOST_VOLUMES) {
        None | Some(1) => vec![Place::File(path)],
        Some(count) => (1..=count).map(numbered).collect(),
    }
}

fn devices(table: &mut Table<'_>, environment: &Environment<'_>) -> Vec<Place> {
    table.meaningless(&["count"], "write each device under `paths`");
    let named = paths(table, environment, |path| match path.starts_with('/') {
        true => Ok(()),
        false => {
            Err(Problem::new(format!("{path} is not a device"), "write its full path, such as /dev/sdb"))
        }
    });
    named.into_iter().map(Place::Device).collect()
}

fn images(table: &mut Table<'_>, environment: &Environment<'_>) -> Vec<Place> {
    table.meaningless(&["path", "paths"], "`pool` and `image` name the images");
    let text = |table: &mut Table<'_>, key, usual: &str| {
        environment.text(table, key).unwrap_or_else(|| usual.to_owned())
    };
    let rbd = Rbd {
        conf: environment.text(table, "conf").map(PathBuf::from),
        user: text(table, "user", "admin"),
        pool: text(table, "pool", "rbd"),
        image: text(table, "image", "tidemark"),
    };
    let count = table.small("count", 1..=MOST_VOLUMES).unwrap_or(1);
    let numbered = |number| Rbd { image: format!("{}-{number}", rbd.image), ..rbd.clone() };
    (1..=count).map(|number| Place::Rbd(numbered(number))).collect()
}

/// The paths under `path` or `paths`, each once; an error when there are none.
fn paths(
    table: &mut Table<'_>,
    environment: &Environment<'_>,
    check: impl Fn(&str) -> Result<(), Problem>,
) -> Vec<PathBuf> {
    table.contradiction("path", "paths", "one path or a list of them");
    let key = if table.has("path") { "path" } else { "paths" };
    let nodes = table.list(key).unwrap_or_default();
    if nodes.is_empty() {
        table.missing("path", "add the path, such as `path: /mnt/data/tidemark`, or a list under `paths`");
    }
    if nodes.len() > MOST_VOLUMES as usize {
        let message = format!("there are {} paths, more than {MOST_VOLUMES}", nodes.len());
        table.log().error(table.place(), message, "use fewer volumes");
        return Vec::new();
    }
    if let (Some(second), "path") = (nodes.get(1), key) {
        table.log().error(&second.span, "`path` takes one path", "write a list under `paths`");
    }
    let mut all: Vec<PathBuf> = Vec::new();
    let read = |node: &Node| {
        table.scalar(node, key, |text| {
            let path = environment.expand(&table::text(text)?)?;
            check(&path).map(|()| path)
        })
    };
    for (path, node) in nodes.iter().filter_map(|node| Some((PathBuf::from(read(node)?), node))) {
        match all.contains(&path) {
            true => {
                let message = format!("{} is listed twice", path.display());
                table.log().error(&node.span, message, "for two clients on one volume, use `clients: 2`");
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

/// The size where the document gives none: a device's own, the smallest one's if there are several.
fn usual_size(kind: Kind, table: &mut Table<'_>, places: &[Place], environment: &Environment<'_>) -> u64 {
    if table.has("size") {
        return UNKNOWN;
    }
    if kind != Kind::Device {
        table.missing("size", "write the size of each, such as `size: 8GiB`");
        return UNKNOWN;
    }
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
