//! What the devices under the volumes count, before a stage and after it (`/proc/diskstats`), and what this process caused
//! (`/proc/self/io`): devices count everybody's requests.

use rustix::fs::{FileType, major, makedev, minor, stat};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tidemark_measure::record::{Behind, DeviceUse, OwnIo};

/// Bytes of a sector in `/proc/diskstats`, whatever the device's own (Documentation/block/stat).
const SECTOR: u64 = 512;

/// A device's number: major and minor.
type Number = (u32, u32);

/// The counters of the devices under some volumes, at one moment.
pub struct Counters {
    devices: BTreeMap<Number, Device>,
    own: Option<OwnIo>,
    unchecked: Vec<String>,
}

struct Device {
    volumes: Vec<String>,
    counts: DeviceUse,
    /// Of a loop device: its file, the number of the device under that, and its counters.
    behind: Option<(String, Number, DeviceUse)>,
}

/// What was counted between two moments.
pub struct Counted {
    /// Device by device.
    pub devices: Vec<DeviceUse>,
    /// By the kernel for this process and the programs that it ran and that have ended.
    pub own: Option<OwnIo>,
    /// What could not be checked.
    pub unchecked: Vec<String>,
}

impl Counters {
    /// Reads them. Volumes of which no device is known are remembered with the reason.
    pub fn read(volumes: &[PathBuf]) -> Self {
        let (mut unchecked, mut missing) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
        let table = fs::read_to_string("/proc/diskstats").unwrap_or_default();
        let mut devices: BTreeMap<Number, Device> = BTreeMap::new();
        for path in volumes {
            let name = path.display().to_string();
            let found = device_of(path).and_then(|number| Ok((number, counts_of(&table, number)?)));
            match found {
                Ok((number, counts)) => devices
                    .entry(number)
                    .or_insert_with(|| {
                        let behind = behind(&table, &counts.device, &mut unchecked);
                        Device { volumes: Vec::new(), counts, behind }
                    })
                    .volumes
                    .push(name),
                Err(why) => missing.entry(why).or_default().push(name),
            }
        }
        unchecked.extend(missing.iter().map(|(why, names)| not_checked(names, why)));
        Self { devices, own: own_io(), unchecked }
    }

    /// What was counted since they were read.
    pub fn since(self) -> Counted {
        let own = self.own.zip(own_io()).map(|(before, after)| OwnIo {
            read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: after.written_bytes.saturating_sub(before.written_bytes),
        });
        let table = fs::read_to_string("/proc/diskstats").unwrap_or_default();
        let (mut used, mut unchecked) = (Vec::new(), self.unchecked);
        for (number, before) in self.devices {
            match row(&table, number) {
                Some(after) => {
                    let behind = before.behind.and_then(|(file, number, counts)| {
                        let under = difference(&counts, row(&table, number)?);
                        let (read_bytes, written_bytes) = (under.read_bytes, under.written_bytes);
                        Some(Behind { file, device: under.device, read_bytes, written_bytes })
                    });
                    let counts = difference(&before.counts, after);
                    used.push(DeviceUse { volumes: before.volumes, behind, ..counts });
                }
                None => unchecked.push(format!(
                    "{} disappeared during the load: its counters are lost.",
                    before.counts.device
                )),
            }
        }
        Counted { devices: used, own, unchecked }
    }
}

/// Volumes that no device's counters prove, all for one reason.
fn not_checked(names: &[String], why: &str) -> String {
    let them = match names {
        [] | [_] => names.concat(),
        [first, .., last] => format!("{} volumes, {first} to {last},", names.len()),
    };
    format!("Tidemark did not check {them} against a device: {why}.")
}

/// What the kernel has counted for this process by now, its threads and the children that it has waited for (Linux,
/// Documentation/filesystems/proc, `/proc/PID/io`).
fn own_io() -> Option<OwnIo> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse::<u64>().ok())
    };
    Some(OwnIo { read_bytes: field("read_bytes")?, written_bytes: field("write_bytes")? })
}

/// What is under the file of a loop device, or why it is not known.
fn behind(table: &str, device: &str, unchecked: &mut Vec<String>) -> Option<(String, Number, DeviceUse)> {
    let file = backing_file(device)?;
    // In a container the path leads nowhere, or to something else of the container's.
    let seen = if Path::new(&file).exists() { Ok(()) } else { Err("it cannot be seen from here".to_owned()) };
    let found = seen.and_then(|()| device_of(Path::new(&file)));
    let found = found.and_then(|number| Ok((number, counts_of(table, number)?)));
    match found {
        Ok((number, counts)) => Some((file, number, counts)),
        Err(why) => {
            unchecked.push(format!(
                "Tidemark did not check {file}, the file of {device}, against a device: {why}."
            ));
            None
        }
    }
}

/// The file behind a loop device.
fn backing_file(device: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/sys/block/{device}/loop/backing_file")).ok()?;
    Some(text.trim_end_matches('\n').to_owned())
}

/// The number of the device that a file lies on, or of the device that a path is; or why there is none. A file that
/// is yet to be made lies where its directory does.
fn device_of(path: &Path) -> Result<Number, String> {
    let existing = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let found = stat(existing).map_err(|error| format!("{}: {error}", existing.display()))?;
    if FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice {
        return Ok((major(found.st_rdev), minor(found.st_rdev)));
    }
    let number = (major(found.st_dev), minor(found.st_dev));
    // Numbers that begin with 0 are file systems without a device of their own.
    if number.0 != 0 {
        return Ok(number);
    }
    let (kind, source) = mount_of(number).unwrap_or_else(|| ("unknown".into(), String::new()));
    let device = stat(source.as_str()).ok().filter(|found| {
        FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice
            && makedev(major(found.st_rdev), minor(found.st_rdev)) != 0
    });
    match device {
        Some(found) => Ok((major(found.st_rdev), minor(found.st_rdev))),
        None => Err(format!("it is on a file system of type {kind}, which has no device")),
    }
}

/// Type and source of the file system with this number.
fn mount_of((major, minor): Number) -> Option<(String, String)> {
    // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let number = format!("{major}:{minor}");
    let line = table.lines().find(|line| line.split(' ').nth(2) == Some(&number))?;
    let mut behind = line.split_once(" - ")?.1.split(' ');
    Some((behind.next()?.to_owned(), behind.next()?.to_owned()))
}

/// What is counted on a device by now, or why that tells nothing.
fn counts_of(table: &str, number: Number) -> Result<DeviceUse, String> {
    if table.is_empty() {
        return Err("cannot read /proc/diskstats".to_owned());
    }
    let absent = || format!("/proc/diskstats has no device {}:{}", number.0, number.1);
    let counts = row(table, number).ok_or_else(absent)?;
    match not_counting(Path::new("/sys/dev/block"), number) {
        Some(switch) => Err(format!(
            "the kernel does not count the requests of {}: write 1 into {} to have them counted",
            counts.device,
            switch.display()
        )),
        None => Ok(counts),
    }
}

/// The switch that keeps the kernel from counting the requests of a device (Documentation/ABI/stable/sysfs-block, `iostats`), if it is off.
/// A partition has that of its disk.
fn not_counting(devices: &Path, (major, minor): Number) -> Option<PathBuf> {
    let device = fs::canonicalize(devices.join(format!("{major}:{minor}"))).ok()?;
    let switches = device.ancestors().take(2).map(|disk| disk.join("queue/iostats"));
    let (switch, is_on) = switches
        .filter_map(|switch| fs::read_to_string(&switch).ok().map(|text| (switch, text.trim() != "0")))
        .next()?;
    (!is_on).then_some(switch)
}

/// A device's row (Documentation/admin-guide/iostats). Kernels before 5.5 count no flushes, before 4.18 no discards.
fn row(table: &str, (major, minor): Number) -> Option<DeviceUse> {
    let words = table.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let mut own = words.filter(|words| {
        let number = |index: usize| words.get(index).and_then(|word| word.parse::<u32>().ok());
        number(0) == Some(major) && number(1) == Some(minor)
    });
    let words = own.next()?;
    let field = |index: usize| words.get(index).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    Some(DeviceUse {
        device: words.get(2)?.to_string(),
        volumes: Vec::new(),
        reads: field(3),
        read_bytes: field(5).saturating_mul(SECTOR),
        writes: field(7),
        written_bytes: field(9).saturating_mul(SECTOR),
        busy_ns: field(12).saturating_mul(1_000_000),
        waited_ns: field(13).saturating_mul(1_000_000),
        discards: field(14),
        discarded_bytes: field(16).saturating_mul(SECTOR),
        flushes: field(18),
        behind: None,
    })
}

fn difference(before: &DeviceUse, after: DeviceUse) -> DeviceUse {
    let less = u64::saturating_sub;
    DeviceUse {
        reads: less(after.reads, before.reads),
        read_bytes: less(after.read_bytes, before.read_bytes),
        writes: less(after.writes, before.writes),
        written_bytes: less(after.written_bytes, before.written_bytes),
        busy_ns: less(after.busy_ns, before.busy_ns),
        waited_ns: less(after.waited_ns, before.waited_ns),
        discards: less(after.discards, before.discards),
        discarded_bytes: less(after.discarded_bytes, before.discarded_bytes),
        flushes: less(after.flushes, before.flushes),
        ..after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "   7       0 loop0 1 0 8 1 2 0 16 2 0 3 4\n \
                         254       0 vda 10 1 800 7 20 2 1600 9 0 11 16 3 0 64 5 6 7\n";

    #[test]
    fn a_row_is_read_field_by_field() {
        let vda = row(TABLE, (254, 0)).unwrap();
        assert_eq!((vda.device.as_str(), vda.reads, vda.read_bytes), ("vda", 10, 409_600));
        assert_eq!((vda.writes, vda.written_bytes), (20, 819_200));
        assert_eq!((vda.discards, vda.discarded_bytes, vda.flushes), (3, 32_768, 6));
        assert_eq!((vda.busy_ns, vda.waited_ns), (11_000_000, 16_000_000));
        let old = row(TABLE, (7, 0)).unwrap();
        assert_eq!((old.written_bytes, old.discards, old.flushes), (8192, 0, 0), "an old kernel's row");
        assert!(row(TABLE, (8, 0)).is_none() && row("", (8, 0)).is_none());
    }

    #[test]
    fn what_is_written_to_a_file_is_counted_or_said_to_be_uncountable() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("volume");
        let counters = Counters::read(std::slice::from_ref(&path));
        let mut file = fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut file, &vec![7; 4 << 20]).unwrap();
        file.sync_all().unwrap();
        let Counted { devices, own, unchecked } = counters.since();
        match devices.as_slice() {
            [device] => {
                assert!(device.written_bytes >= 4 << 20, "{device:?}");
                assert!(own.is_none_or(|own| own.written_bytes >= 4 << 20), "{own:?}");
            }
            _ => assert!(unchecked[0].contains("no device"), "{unchecked:?}"),
        }
        let Counted { devices, unchecked, .. } = Counters::read(&[PathBuf::from("/proc/self/stat")]).since();
        assert!(devices.is_empty() && unchecked[0].contains("type proc"), "{unchecked:?}");
        let three = ["/proc/self/stat", "/proc/self/io", "/proc/self/maps"].map(PathBuf::from);
        let Counted { unchecked, .. } = Counters::read(&three).since();
        assert_eq!(unchecked.len(), 1, "one remark for one reason: {unchecked:?}");
        assert!(unchecked[0].contains("check 3 volumes, /proc/self/stat to /proc/self/maps, against"));
    }

    #[test]
    fn what_others_do_is_not_our_own() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("others");
        let counters = Counters::read(std::slice::from_ref(&path));
        // A child's I/O becomes its parent's when it is waited for: until then it is somebody else's.
        let mut other = std::process::Command::new("dd")
            .args(["if=/dev/zero", "bs=1M", "count=64", "conv=fsync", "status=none"])
            .arg(format!("of={}", path.display()))
            .spawn()
            .unwrap();
        let ended = format!("/proc/{}/stat", other.id());
        while !fs::read_to_string(&ended).unwrap().contains(") Z ") {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let Counted { devices, own, .. } = counters.since();
        other.wait().unwrap();
        if let ([device], Some(own)) = (devices.as_slice(), own) {
            assert!(device.written_bytes >= 64 << 20, "{device:?}");
            // Other tests of this process write a little.
            assert!(own.written_bytes < 48 << 20, "{own:?}");
        }
    }
}
