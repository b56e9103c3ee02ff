//! Disks: `/proc/diskstats` (Documentation/admin-guide/iostats), with the arithmetic of iostat.

use crate::reader::{Source, numbers};
use crate::sample::{Gaps, Sample, rise};
use std::collections::BTreeMap;
use std::path::Path;
use tidemark_measure::observation::Kind;

/// Bytes of a sector in `/proc/diskstats`, whatever the device's own.
const SECTOR: u64 = 512;

/// A device's number: major and minor.
pub(crate) type Number = (u32, u32);

/// What is sampled of disks.
pub(crate) struct Disks {
    source: Source,
    known: BTreeMap<String, Known>,
}

struct Known {
    number: Number,
    /// Whether it is a device rather than a part of one, and the kernel counts its requests.
    whole: bool,
    before: Counts,
    /// Bytes per second that it read and wrote in the last second.
    moved: f64,
}

/// A row; times in milliseconds. Kernels before 5.5 count no flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    reads: u64,
    read_sectors: u64,
    read_ms: u64,
    writes: u64,
    write_sectors: u64,
    write_ms: u64,
    busy_ms: u64,
    weighted_ms: u64,
    flushes: u64,
}

impl Disks {
    pub(crate) fn new() -> Self {
        Self { source: Source::new("/proc/diskstats"), known: BTreeMap::new() }
    }

    pub(crate) fn sample(&mut self, out: &mut Sample, gaps: &mut Gaps) {
        let Some(text) = self.source.read(gaps) else { return };
        for (number, name, now) in text.lines().filter_map(row) {
            match self.known.get_mut(name) {
                Some(known) => {
                    if known.whole {
                        put(name, &known.before, &now, out);
                    }
                    known.moved = known.before.moved(&now) / out.seconds.unwrap_or(f64::INFINITY);
                    (known.before, known.number) = (now, number);
                }
                None => {
                    let switch = not_counting(name);
                    if let Some(switch) = &switch {
                        gaps.say(format!(
                            "The disk {name} is not observed: the kernel does not count its requests. Write 1 into \
                             {switch} to have them counted."
                        ));
                    }
                    let whole = switch.is_none() && is_whole(name);
                    let known = Known { number, whole, before: now, moved: 0.0 };
                    self.known.insert(name.to_owned(), known);
                }
            }
        }
    }

    /// The name of the device with this number.
    pub(crate) fn name(&self, number: Number) -> Option<&str> {
        self.known.iter().find(|(_, known)| known.number == number).map(|(name, _)| name.as_str())
    }

    /// Bytes per second that the device with this number read and wrote in the last second.
    pub(crate) fn moved(&self, number: Number) -> f64 {
        self.known.values().find(|known| known.number == number).map_or(0.0, |known| known.moved)
    }

    /// The devices that moved something in the last second: number, name, bytes per second.
    pub(crate) fn busy(&self) -> impl Iterator<Item = (Number, &str, f64)> {
        let busy = self.known.iter().filter(|(_, known)| known.whole && known.moved > 0.0);
        busy.map(|(name, known)| (known.number, name.as_str(), known.moved))
    }

    /// What the devices are, for those that have ever done something and have not been taken away since.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let used = self.known.iter().filter(|(_, known)| known.whole && known.before != Counts::default());
        used.filter_map(|(name, _)| Some((format!("disk {name}"), description(name)?))).collect()
    }
}

impl Counts {
    /// Bytes read and written between two rows.
    fn moved(&self, after: &Counts) -> f64 {
        let sectors = |counts: &Counts| counts.read_sectors.saturating_add(counts.write_sectors);
        rise((sectors(self), sectors(after))) * SECTOR as f64
    }
}

/// A name from the kernel never leads out of `/sys/block`: a slash in it is written as `!` there.
fn is_whole(name: &str) -> bool {
    !name.starts_with('.') && Path::new("/sys/block").join(name.replace('/', "!")).exists()
}

/// The switch that keeps the kernel from counting the requests of a disk (Documentation/ABI/stable/sysfs-block, `iostats`), if it is off.
fn not_counting(name: &str) -> Option<String> {
    let directory = Path::new("/sys/block").join(name.replace('/', "!"));
    let is = |file: &str, value: &str| {
        std::fs::read_to_string(directory.join(file)).is_ok_and(|text| text.trim() == value)
    };
    let is_off = is_whole(name) && is("queue/iostats", "0") && !is("size", "0");
    is_off.then(|| directory.join("queue/iostats").display().to_string())
}

fn description(name: &str) -> Option<String> {
    let directory = Path::new("/sys/block").join(name.replace('/', "!"));
    let text = |file: &str| std::fs::read_to_string(directory.join(file)).ok();
    let sectors = text("size")?.trim().parse::<u64>().ok().filter(|sectors| *sectors > 0)?;
    let mut words = vec![tidemark_measure::units::bytes(sectors.saturating_mul(SECTOR))];
    words.extend(text("device/model").map(|model| model.trim().to_owned()));
    let rotates = text("queue/rotational").is_some_and(|text| text.trim() == "1");
    words.push(if rotates { "rotational" } else { "not rotational" }.to_owned());
    words.extend(text("loop/backing_file").map(|file| format!("backed by the file {}", file.trim())));
    Some(words.join(", "))
}

fn put(name: &str, before: &Counts, now: &Counts, out: &mut Sample) {
    let span = |of: fn(&Counts) -> u64| (of(before), of(now));
    let scaled =
        |of: fn(&Counts) -> u64, by: u64| (of(before).saturating_mul(by), of(now).saturating_mul(by));
    let (reads, writes) = (span(|counts| counts.reads), span(|counts| counts.writes));
    out.put_rate(Kind::Disk, name, "read_ops", reads);
    out.put_rate(Kind::Disk, name, "write_ops", writes);
    out.put_rate(Kind::Disk, name, "read_bytes", scaled(|counts| counts.read_sectors, SECTOR));
    out.put_rate(Kind::Disk, name, "write_bytes", scaled(|counts| counts.write_sectors, SECTOR));
    out.put_mean(Kind::Disk, name, "read_await_ns", (scaled(|counts| counts.read_ms, 1_000_000), reads));
    out.put_mean(Kind::Disk, name, "write_await_ns", (scaled(|counts| counts.write_ms, 1_000_000), writes));
    if let Some(seconds) = out.seconds {
        let of_time = |ms: (u64, u64)| rise(ms) / 1000.0 / seconds;
        out.put(Kind::Disk, name, "queue", of_time(span(|counts| counts.weighted_ms)));
        out.put(Kind::Disk, name, "busy", of_time(span(|counts| counts.busy_ms)).min(1.0));
    }
    out.put_rate(Kind::Disk, name, "flush_ops", span(|counts| counts.flushes));
}

fn row(line: &str) -> Option<(Number, &str, Counts)> {
    let mut words = line.split_ascii_whitespace();
    let number = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let name = words.next()?;
    let fields = numbers(words);
    let field = |index: usize| fields.get(index).copied().unwrap_or(0);
    let counts = Counts {
        reads: field(0),
        read_sectors: field(2),
        read_ms: field(3),
        writes: field(4),
        write_sectors: field(6),
        write_ms: field(7),
        busy_ms: field(9),
        weighted_ms: field(10),
        flushes: field(15),
    };
    Some((number, name, counts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VDA: &str = " 254       0 vda 30741 6532 3522426 12844 22745 36289 7174704 29051 2 6776 42673 6865 0 885888 707 3003 69";

    #[test]
    fn a_row_is_read_field_by_field() {
        let (number, name, counts) = row(VDA).unwrap();
        assert_eq!((number, name), ((254, 0), "vda"));
        let expected = Counts {
            reads: 30_741,
            read_sectors: 3_522_426,
            read_ms: 12_844,
            writes: 22_745,
            write_sectors: 7_174_704,
            write_ms: 29_051,
            busy_ms: 6776,
            weighted_ms: 42_673,
            flushes: 3003,
        };
        assert_eq!(counts, expected);
        assert!(row("").is_none() && row("8 x sda 1").is_none());
    }

    #[test]
    fn the_arithmetic_is_that_of_iostat() {
        let before = Counts::default();
        let now = Counts {
            reads: 100,
            read_sectors: 800,
            read_ms: 250,
            writes: 0,
            busy_ms: 500,
            weighted_ms: 4000,
            ..before
        };
        let mut out = Sample { seconds: Some(2.0), values: Vec::new() };
        put("vda", &before, &now, &mut out);
        let value =
            |metric: &str| out.values.iter().find(|value| value.metric == metric).map(|value| value.value);
        assert_eq!(value("read_ops"), Some(50.0));
        assert_eq!(value("read_bytes"), Some(204_800.0));
        assert_eq!(value("read_await_ns"), Some(2_500_000.0));
        assert_eq!(value("write_await_ns"), None, "nothing was written");
        assert_eq!((value("busy"), value("queue")), (Some(0.25), Some(2.0)));
    }

    #[test]
    fn parts_of_devices_are_left_out() {
        assert!(!is_whole("..") && !is_whole("no-such-disk1"));
    }

    proptest! {
        #[test]
        fn odd_content_does_not_panic(text in ".*", fields in proptest::collection::vec(any::<u64>(), 0..20)) {
            let _ = row(&text);
            let words: Vec<String> = fields.iter().map(u64::to_string).collect();
            let line = format!("8 0 sda {}", words.join(" "));
            let (_, name, counts) = row(&line).unwrap();
            let mut out = Sample { seconds: Some(1.0), values: Vec::new() };
            put(name, &Counts::default(), &counts, &mut out);
            prop_assert!(out.values.iter().all(|value| value.value >= 0.0));
        }
    }
}
