//! What lab is wanted, and how that fits with the one that is there.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::Home;
use crate::layout::{Layout, Limits, Media};
use crate::record::Shape;
use crate::{ports, start};

/// How many OSDs a plain lab has unless asked otherwise.
const USUAL_OSDS: usize = 3;
/// How many data OSDs a lab of another layout has unless asked otherwise: as many as copies, so that the OSDs
/// of three such labs at once fit into one small machine.
const USUAL_LAID_OUT_OSDS: usize = 2;
/// The size of each OSD's store unless asked otherwise, in bytes. Its file is sparse: it takes what is
/// written.
const USUAL_OSD_BYTES: u64 = 10 << 30;
/// The smallest store of an OSD, in bytes: BlueStore takes some 300 MB for itself.
const LEAST_OSD_BYTES: u64 = 1 << 30;
/// The most OSDs that the keys, ports and memory of one machine are meant for.
const MOST_OSDS: usize = 16;
/// The most gateways, for the same reason.
pub(crate) const MOST_GATEWAYS: usize = 16;

/// What a slow device does unless asked otherwise: little enough for it, and not the processor of a small
/// machine, to be the limit of a load that it serves.
const USUAL_LIMITS: Limits = Limits { iops: 150, bandwidth: 40_000_000 };
/// The fewest writes in a second: below it, daemons take their own devices for dead.
const LEAST_IOPS: u32 = 50;
/// The least bandwidth, in bytes per second, for the same reason.
const LEAST_BANDWIDTH: u64 = 1_000_000;
/// The size of `block.db` and of `block.wal` unless asked otherwise, in bytes.
const USUAL_METADATA_BYTES: u64 = 512 << 20;
/// Their smallest size, in bytes: RocksDB's log must fit.
const LEAST_METADATA_BYTES: u64 = 256 << 20;
/// The size of each OSD of the cache unless asked otherwise, in bytes.
const USUAL_CACHE_BYTES: u64 = 1 << 30;

/// What lab is wanted. What is `None` is as the existing lab has it, or as usual in a new one.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// The lab's directory, made if it is missing; [`default_dir`](crate::default_dir) tells the usual one.
    pub dir: PathBuf,
    /// How many OSDs keep data: 1 to 16, usually 3, in layouts other than plain 2. With one, objects are kept
    /// once instead of twice.
    pub osds: Option<usize>,
    /// The size of each data OSD's store in bytes: at least 1 GiB, usually 10 GiB. Disk is taken as data is
    /// written.
    pub osd_bytes: Option<u64>,
    /// How many gateways serve the same buckets: 1 to 16, usually 1.
    pub gateways: Option<usize>,
    /// The first gateway's port on 127.0.0.1, which those of the others follow; usually free ones are chosen, and kept.
    pub gateway_port: Option<u16>,
    /// Where programs are looked for, in the form of the variable PATH, which it replaces.
    pub program_path: Option<OsString>,
    /// What the storage lies on, usually [`Layout::Plain`]. The options below count for other layouts only.
    pub layout: Option<Layout>,
    /// How many writes each slow device does in a second: at least 50, usually 150. It does four times as
    /// many reads. It may be changed by the next [`up`](crate::up).
    pub slow_iops: Option<u32>,
    /// How many bytes in a second each slow device reads, and writes: at least 1,000,000, usually 40,000,000.
    /// It may be changed by the next [`up`](crate::up).
    pub slow_bandwidth: Option<u64>,
    /// The size of each data OSD's `block.db` in bytes, and also of its `block.wal`: at least 256 MiB,
    /// usually 512 MiB. Memory is taken as they are written to.
    pub metadata_bytes: Option<u64>,
    /// The size of each of the cache's two OSDs in bytes: at least 1 GiB, usually as much. Memory is taken as
    /// they are written to. Each cached pool (RBD's, and the gateway's data) may keep two fifths of it in the
    /// cache.
    pub cache_bytes: Option<u64>,
    /// Whether the cluster has a file system, mounted in the directory `mount` of the lab's. An existing lab keeps what
    /// it has if this is false.
    pub filesystem: bool,
    /// How many copies of each object are kept: 1 or 2, usually 2 where there are two OSDs.
    pub copies: Option<usize>,
}

impl LabOptions {
    /// The usual lab, in the directory given.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            osds: None,
            osd_bytes: None,
            gateways: None,
            gateway_port: None,
            program_path: None,
            layout: None,
            slow_iops: None,
            slow_bandwidth: None,
            metadata_bytes: None,
            cache_bytes: None,
            filesystem: false,
            copies: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), LabError> {
        let bad = |option, value, allowed| Err(LabError::BadOption { option, value, allowed });
        match *self {
            Self { osds: Some(osds), .. } if !(1..=MOST_OSDS).contains(&osds) => {
                bad("the number of OSDs", osds as u64, "from 1 to 16")
            }
            Self { osd_bytes: Some(bytes), .. } if bytes < LEAST_OSD_BYTES => {
                bad("the size of an OSD in bytes", bytes, "at least 1 GiB (1073741824)")
            }
            Self { gateways: Some(gateways), .. } if !(1..=MOST_GATEWAYS).contains(&gateways) => {
                bad("the number of gateways", gateways as u64, "from 1 to 16")
            }
            Self { gateway_port: Some(0), .. } => bad("the first gateway's port", 0, "from 1 to 65535"),
            Self { slow_iops: Some(iops), .. } if iops < LEAST_IOPS => {
                bad("the limit of a slow device in writes per second", iops.into(), "at least 50")
            }
            Self { slow_bandwidth: Some(bytes), .. } if bytes < LEAST_BANDWIDTH => {
                bad("the limit of a slow device in bytes per second", bytes, "at least 1 MB/s (1000000)")
            }
            Self { metadata_bytes: Some(bytes), .. } if bytes < LEAST_METADATA_BYTES => {
                bad("the size of a metadata device in bytes", bytes, "at least 256 MiB (268435456)")
            }
            Self { cache_bytes: Some(bytes), .. } if bytes < LEAST_OSD_BYTES => {
                bad("the size of a cache device in bytes", bytes, "at least 1 GiB (1073741824)")
            }
            Self { copies: Some(copies), .. } if !(1..=2).contains(&copies) => {
                bad("the number of copies", copies as u64, "1 or 2")
            }
            Self { copies: Some(2), osds: Some(1), .. } => {
                bad("the number of copies", 2, "1 where there is one OSD")
            }
            _ => Ok(()),
        }
    }

    /// The limits wanted, where nothing is said those given.
    fn limits(&self, usual: Limits) -> Limits {
        Limits {
            iops: self.slow_iops.unwrap_or(usual.iops),
            bandwidth: self.slow_bandwidth.unwrap_or(usual.bandwidth),
        }
    }

    /// The devices of a lab about to be created; none in a plain layout.
    fn media(&self) -> Option<Media> {
        let layout = self.layout.unwrap_or_default();
        (layout != Layout::Plain).then(|| Media {
            layout,
            limits: self.limits(USUAL_LIMITS),
            metadata_bytes: self.metadata_bytes.unwrap_or(USUAL_METADATA_BYTES),
            cache_bytes: self.cache_bytes.unwrap_or(USUAL_CACHE_BYTES),
        })
    }
}

/// The shape of a lab about to be created.
pub(super) fn new_shape(home: &Home, options: &LabOptions) -> Result<Shape, LabError> {
    let mut gateway_ports = Vec::new();
    for number in 0..options.gateways.unwrap_or(1) {
        let daemon = Daemon::Gateway(number);
        gateway_ports.push(match options.gateway_port {
            Some(first) => {
                let port = gateway_port(first, number)?;
                ports::check(daemon, port).map(|()| port)?
            }
            None => ports::choose(daemon, home.dir(), &gateway_ports)?,
        });
    }
    let media = options.media();
    let usual_osds = if media.is_some() { USUAL_LAID_OUT_OSDS } else { USUAL_OSDS };
    Ok(Shape {
        fsid: start::uuid()?,
        osds: options.osds.unwrap_or(usual_osds),
        osd_bytes: options.osd_bytes.unwrap_or(USUAL_OSD_BYTES),
        monitor_port: ports::choose(Daemon::Monitor, home.dir(), &[])?,
        gateway_ports,
        media,
        filesystem: options.filesystem,
        copies: options.copies,
    })
}

/// The port of a gateway, given that of the first.
fn gateway_port(first: u16, number: usize) -> Result<u16, LabError> {
    ports::after("the first gateway's port", first, number)
}

/// The shape of an existing lab, with the gateways on other ports if that is asked for and none of them runs,
/// and with the limits asked for.
pub(super) fn adapt(home: &Home, shape: Shape, options: &LabOptions) -> Result<Shape, LabError> {
    let anew = "`tidemark lab down` removes it with its data, and then `tidemark lab up ceph` makes another";
    let same = |option, has: String, asked: Option<String>, advice| match asked {
        Some(asked) if asked != has => {
            Err(LabError::Differs { dir: home.dir().to_owned(), option, has, asked, advice })
        }
        _ => Ok(()),
    };
    same("the layout", shape.layout().to_string(), options.layout.map(|layout| layout.to_string()), anew)?;
    same("the number of OSDs", shape.osds.to_string(), options.osds.map(|osds| osds.to_string()), anew)?;
    let exact = |number: u64| number.to_string();
    same("the size of an OSD in bytes", exact(shape.osd_bytes), options.osd_bytes.map(exact), anew)?;
    same(
        "the number of copies",
        shape.copies().to_string(),
        options.copies.map(|copies| copies.to_string()),
        anew,
    )?;
    let filesystem = |has: bool| if has { "a file system" } else { "no file system" }.to_owned();
    let asked = options.filesystem.then(|| filesystem(true));
    same("for files", filesystem(shape.filesystem), asked, anew)?;
    let count = shape.gateway_ports.len();
    let asked = options.gateways.map(|gateways| gateways.to_string());
    same("the number of gateways", count.to_string(), asked, anew)?;
    let gateway_ports = match options.gateway_port {
        Some(first) => (0..count).map(|number| gateway_port(first, number)).collect::<Result<_, _>>()?,
        None => shape.gateway_ports.clone(),
    };
    for ((daemon, has), asked) in shape.gateways().zip(&gateway_ports) {
        if daemon.find(home)?.is_some() {
            let advice =
                "`tidemark lab down --keep` stops it, and then `tidemark lab up ceph` can use the other port";
            same("a gateway running on port", has.to_string(), Some(asked.to_string()), advice)?;
        }
    }
    let mut media = shape.media;
    if let Some(media) = &mut media {
        let (metadata, cache) = (media.metadata_bytes, media.cache_bytes);
        same(
            "the size of a metadata device in bytes",
            exact(metadata),
            options.metadata_bytes.map(exact),
            anew,
        )?;
        same("the size of a cache device in bytes", exact(cache), options.cache_bytes.map(exact), anew)?;
        media.limits = options.limits(media.limits);
    }
    Ok(Shape { gateway_ports, media, ..shape })
}
