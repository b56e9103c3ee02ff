//! The devices below the OSDs of a lab whose layout is not plain.
//!
//! A slow device is a loop device on a sparse file in the lab's directory, with direct I/O, which the OSDs
//! use from within a control group that limits it. A fast device is a loop device on a file in memory, which
//! nothing limits. An OSD finds its devices through symbolic links in its directory, as it would those of a
//! real machine. The files in memory outlive the OSDs, but not the machine.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tidemark_measure::units;

use crate::cluster::Cluster;
use crate::command::Programs;
use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::{Home, make_directory};
use crate::layout::{Layout, Media};
use crate::loops::{self, LoopDevice};
use crate::record::Shape;
use crate::throttle::Throttle;

/// What of memory must stay free for the programs when all fast devices are full, in bytes.
const SPARE_MEMORY: u64 = 1 << 30;

/// What is to become of the files of fast devices when the devices go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// They stay, for the next start.
    Keep,
    /// They are removed.
    Discard,
}

/// A device that an OSD of a lab uses at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabDevice {
    /// The OSD's number.
    pub osd: usize,
    /// BlueStore's name for it: `block`, `block.db` or `block.wal`.
    pub part: &'static str,
    /// The device itself, such as `/dev/loop3`.
    pub path: PathBuf,
    /// Whether it is limited; otherwise it is in memory.
    pub is_slow: bool,
}

/// One device of an OSD, attached or not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Device {
    osd: usize,
    /// BlueStore's name for it, which is that of the link to it: `block`, `block.db` or `block.wal`.
    part: &'static str,
    file: PathBuf,
    bytes: u64,
    is_slow: bool,
}

/// All devices of a lab.
fn devices(home: &Home, shape: &Shape, media: &Media) -> Vec<Device> {
    let fast =
        |osd, part, bytes| Device { osd, part, file: fast_file(home, osd, part), bytes, is_slow: false };
    let mut devices = Vec::new();
    for osd in 0..shape.osds {
        let file = slow_file(home, osd);
        devices.push(Device { osd, part: "block", file, bytes: shape.osd_bytes, is_slow: true });
        if media.layout.has_fast_metadata() {
            devices.push(fast(osd, "block.db", media.metadata_bytes));
            devices.push(fast(osd, "block.wal", media.metadata_bytes));
        }
    }
    devices.extend(shape.cache_osds().map(|osd| fast(osd, "block", media.cache_bytes)));
    devices
}

/// Those devices of a lab that its OSDs can find at this moment.
pub(super) fn present(cluster: &Cluster) -> Vec<LabDevice> {
    let Cluster { home, shape, .. } = cluster;
    let all = shape.media.iter().flat_map(|media| devices(home, shape, media));
    let attached = |Device { osd, part, file, is_slow, .. }| {
        let device = loops::attached(|other| other == file).ok()?.pop()?;
        Some(LabDevice { osd, part, path: device.path(), is_slow })
    };
    all.filter_map(attached).collect()
}

fn slow_file(home: &Home, osd: usize) -> PathBuf {
    home.osd(osd).join("slow.img")
}

fn fast_file(home: &Home, osd: usize, part: &str) -> PathBuf {
    home.memory().join(format!("osd.{osd}.{part}"))
}

/// Whether a file is one that a device of this lab lies on, or lay on.
fn is_ours(home: &Home, file: &Path) -> bool {
    let is_slow =
        |osd: &Path| osd.parent() == Some(&*home.osds()) && file.file_name() == Some("slow.img".as_ref());
    file.parent().is_some_and(|parent| parent == home.memory() || is_slow(parent))
}

/// Fails if this machine or this user cannot have a layout, before anything is made.
pub(super) fn check(layout: Layout, programs: &Programs) -> Result<(), LabError> {
    let impossible = |why: &str| Err(LabError::LayoutImpossible { layout, why: why.to_owned() });
    if layout == Layout::Plain {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        return impossible("only root may use loop devices and limit them: run the same command with sudo");
    }
    if programs.path("losetup").is_err() {
        return impossible("the program losetup is missing: `apt-get install -y mount`");
    }
    if !Path::new("/dev/loop-control").exists() {
        return impossible("this machine has no loop devices: `modprobe loop`, or another kernel");
    }
    if Throttle::named(String::new()).is_none() {
        return impossible(
            "no control groups that limit devices are below /sys/fs/cgroup: mount blkio (version 1) or io \
             (version 2)",
        );
    }
    Ok(())
}

/// Makes all devices of a new lab and returns the group that its OSDs must run in; none in a plain layout.
pub(super) fn create(cluster: &Cluster) -> Result<Option<Throttle>, LabError> {
    let Cluster { home, shape, programs } = cluster;
    let Some(media) = &shape.media else { return Ok(None) };
    // A lab whose directory was removed by hand may have left devices.
    release(home, programs, Contents::Discard)?;
    check_memory(home, media, shape)?;
    if media.fast_bytes(shape.osds) > 0 {
        make_memory(home)?;
    }
    for device in devices(home, shape, media) {
        make_directory(&home.osd(device.osd))?;
        let make = || {
            let file = File::options().write(true).create_new(true).mode(0o600).open(&device.file)?;
            file.set_len(device.bytes)
        };
        make().map_err(LabError::file("create", &device.file))?;
    }
    attach(cluster)
}

/// Fails if memory cannot hold the fast devices.
fn check_memory(home: &Home, media: &Media, shape: &Shape) -> Result<(), LabError> {
    let needed = media.fast_bytes(shape.osds);
    let parent = home.memory().parent().map_or_else(PathBuf::new, Path::to_owned);
    let failed = |errno: rustix::io::Errno| LabError::file("measure", &parent)(errno.into());
    let system = rustix::fs::statvfs(&parent).map_err(failed)?;
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    if needed == 0 || free >= needed + SPARE_MEMORY {
        return Ok(());
    }
    let why = format!(
        "its fast devices may take {} of {}, which must leave {} free and has {} free now: make them smaller, \
         or free some memory",
        units::binary_bytes(needed),
        parent.display(),
        units::binary_bytes(SPARE_MEMORY),
        units::binary_bytes(free),
    );
    Err(LabError::LayoutImpossible { layout: media.layout, why })
}

/// Creates the directory of the files in memory. Its parent is world-writable, so it must not exist before.
fn make_memory(home: &Home) -> Result<(), LabError> {
    let path = home.memory();
    fs::DirBuilder::new().mode(0o700).create(&path).map_err(LabError::file("create", path))
}

/// Attaches the devices of a lab that are not attached, leads its OSDs to them and limits them; returns the
/// group that its OSDs must run in; none in a plain layout.
pub(super) fn attach(cluster: &Cluster) -> Result<Option<Throttle>, LabError> {
    let Cluster { home, shape, programs } = cluster;
    let Some(media) = &shape.media else { return Ok(None) };
    let Some(throttle) = Throttle::named(home.mark()) else {
        return check(media.layout, programs).map(|()| None);
    };
    let mut slow = Vec::new();
    for device in devices(home, shape, media) {
        let found = attach_one(home, &device, programs)?;
        if device.is_slow {
            check_direct(media.layout, &device, &found)?;
            found.set_solid()?;
            slow.push(found.number()?);
        }
    }
    throttle.limit(&slow, media.limits)?;
    Ok(Some(throttle))
}

fn attach_one(home: &Home, device: &Device, programs: &Programs) -> Result<LoopDevice, LabError> {
    match device.file.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(LabError::DeviceLost { file: device.file.clone() });
        }
        Err(error) => return Err(LabError::file("read", &device.file)(error)),
        // A link or a file of another user would make us write elsewhere.
        Ok(data) if !data.is_file() || data.uid() != rustix::process::geteuid().as_raw() => {
            let foreign = io::Error::new(ErrorKind::PermissionDenied, "it is not a file of this user's");
            return Err(LabError::file("use", &device.file)(foreign));
        }
        Ok(_) => {}
    }
    let found = loops::attach(&device.file, programs)?;
    lead(&home.osd(device.osd).join(device.part), &found.path())?;
    Ok(found)
}

/// Makes a symbolic link lead to a device, whose number may differ from that of the last time.
fn lead(link: &Path, device: &Path) -> Result<(), LabError> {
    if fs::read_link(link).is_ok_and(|present| present == device) {
        return Ok(());
    }
    match fs::remove_file(link) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => symlink(device, link),
    }
    .map_err(LabError::file("link", link))
}

/// Without direct I/O, the page cache would hide the slow device.
fn check_direct(layout: Layout, device: &Device, found: &LoopDevice) -> Result<(), LabError> {
    if found.is_direct() {
        return Ok(());
    }
    let why = format!(
        "the file system of {} takes no direct I/O from a loop device: choose a directory on ext4 or XFS",
        device.file.display()
    );
    Err(LabError::LayoutImpossible { layout, why })
}

/// Detaches the devices of a lab and removes its control group; with [`Contents::Discard`] also the files in
/// memory. While an OSD of the lab runs, nothing is touched. It needs no record, so that even a lab whose
/// record is damaged leaves nothing behind.
pub(super) fn release(home: &Home, programs: &Programs, contents: Contents) -> Result<(), LabError> {
    for daemon in Daemon::noted(home)? {
        if matches!(daemon, Daemon::Osd(_)) && daemon.find(home)?.is_some() {
            return Ok(());
        }
    }
    for device in loops::attached(|file| is_ours(home, file))? {
        device.detach(programs)?;
    }
    if let Some(throttle) = Throttle::named(home.mark()) {
        throttle.remove()?;
    }
    let memory = home.memory();
    if contents == Contents::Discard && is_private(&memory) {
        fs::remove_dir_all(&memory).map_err(LabError::file("remove", memory))?;
    }
    Ok(())
}

/// Whether a path is a directory that this user has made for itself alone.
fn is_private(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| {
        let is_mine = data.uid() == rustix::process::geteuid().as_raw();
        data.is_dir() && is_mine && data.permissions().mode() & 0o777 == 0o700
    })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;
    use crate::layout::tests::media;
    use crate::record::tests::shape;

    fn lab(layout: Layout) -> (tempfile::TempDir, Home, Shape, Media) {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::prepare(directory.path()).unwrap();
        let shape = Shape { osds: 2, media: Some(media(layout)), ..shape() };
        (directory, home, shape, media(layout))
    }

    fn parts(layout: Layout) -> Vec<(usize, &'static str, bool)> {
        let (_directory, home, shape, media) = lab(layout);
        let devices = devices(&home, &shape, &media);
        let bytes: u64 = devices.iter().filter(|device| !device.is_slow).map(|device| device.bytes).sum();
        assert_eq!(bytes, media.fast_bytes(shape.osds));
        assert!(devices.iter().all(|device| is_ours(&home, &device.file)));
        devices.iter().map(|device| (device.osd, device.part, device.is_slow)).collect()
    }

    #[test]
    fn layouts_differ_in_their_fast_devices_only() {
        assert_eq!(parts(Layout::Baseline), [(0, "block", true), (1, "block", true)]);
        let metadata = [
            (0, "block", true),
            (0, "block.db", false),
            (0, "block.wal", false),
            (1, "block", true),
            (1, "block.db", false),
            (1, "block.wal", false),
        ];
        assert_eq!(parts(Layout::Reference1), metadata);
        let cache = [(2, "block", false), (3, "block", false)];
        assert_eq!(parts(Layout::Reference2), [&metadata[..], &cache].concat());
    }

    #[test]
    fn foreign_files_are_not_ours() {
        let (_directory, home, ..) = lab(Layout::Reference2);
        let (dir, memory) = (home.dir(), home.memory());
        for other in [
            dir.join("slow.img"),
            dir.join("osd/0/other.img"),
            dir.join("osd/0/deeper/slow.img"),
            Path::new("/elsewhere/osd/0/slow.img").to_owned(),
            memory.clone(),
            memory.with_extension("more").join("osd.0.block"),
        ] {
            assert!(!is_ours(&home, &other), "{}", other.display());
        }
    }

    #[test]
    fn a_link_follows_a_changed_device() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("block");
        for device in ["/dev/loop1", "/dev/loop1", "/dev/loop2"] {
            lead(&link, Path::new(device)).unwrap();
            assert_eq!(fs::read_link(&link).unwrap(), Path::new(device));
        }
    }

    #[test]
    fn what_is_not_private_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
        assert!(is_private(directory.path()));
        let link = directory.path().join("link");
        symlink(directory.path(), &link).unwrap();
        assert!(!is_private(&link));
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        assert!(!is_private(directory.path()));
        assert!(!is_private(&directory.path().join("nothing")));
    }

    #[test]
    fn a_file_in_memory_that_is_gone_is_named_with_what_it_means() {
        let (_directory, home, shape, media) = lab(Layout::Reference1);
        let device = devices(&home, &shape, &media).remove(1);
        let error = attach_one(&home, &device, &Programs::new("".into())).unwrap_err();
        assert!(matches!(&error, LabError::DeviceLost { file } if *file == device.file), "{error}");
        assert!(error.to_string().contains("restart of the machine"), "{error}");
    }
}
