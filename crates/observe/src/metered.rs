//! Requests that control groups let through to devices, which is what their limits count. A device's own counters differ,
//! because requests are merged afterwards.

use crate::disk::Number;
use crate::reader::Reader;
use crate::sample::rise;
use std::collections::BTreeMap;
use std::path::Path;

/// Requests let through since the group was made: reads and writes.
type Count = (u64, u64);

/// One group's counts.
pub(crate) struct Metered {
    file: Reader,
    read: fn(&str) -> BTreeMap<Number, Count>,
    before: BTreeMap<Number, Count>,
}

impl Metered {
    /// The counts of the group in a directory, of version 1 or 2.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let version1 = Reader::open(path.join("blkio.throttle.io_serviced_recursive"));
        let (file, read): (_, fn(&str) -> _) = match version1 {
            Ok(file) => (file, serviced),
            Err(_) => (Reader::open(path.join("io.stat")).ok()?, io_stat),
        };
        Some(Self { file, read, before: BTreeMap::new() })
    }

    /// Reads and writes per second of every device since the last call.
    pub(crate) fn look(&mut self, seconds: Option<f64>) -> Vec<(Number, f64, f64)> {
        let now = self.file.read().map(|text| (self.read)(&text)).unwrap_or_default();
        let before = std::mem::replace(&mut self.before, now);
        let Some(seconds) = seconds else { return Vec::new() };
        let rates = self.before.iter().filter_map(|(device, now)| {
            let then = before.get(device)?;
            Some((*device, rise((then.0, now.0)) / seconds, rise((then.1, now.1)) / seconds))
        });
        rates.collect()
    }
}

/// Reads `7:1 Read 49` and `7:1 Write 162`, version 1's form.
fn serviced(text: &str) -> BTreeMap<Number, Count> {
    let mut counts: BTreeMap<Number, Count> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(device), Some(kind), Some(count)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let (Some(device), Ok(count)) = (crate::cgroup::number(device), count.parse()) else { continue };
        let own = counts.entry(device).or_default();
        match kind {
            "Read" => own.0 = count,
            "Write" => own.1 = count,
            _ => {}
        }
    }
    counts
}

/// Reads `7:1 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0`, version 2's form.
fn io_stat(text: &str) -> BTreeMap<Number, Count> {
    let row = |line: &str| {
        let (device, rest) = line.split_once(' ')?;
        let count = |name: &str| {
            let mut counts = rest.split(' ').filter_map(|word| word.strip_prefix(name)?.parse().ok());
            counts.next()
        };
        Some((crate::cgroup::number(device)?, (count("rios=")?, count("wios=")?)))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let text = "254:0 Read 94\n254:0 Write 176\n254:0 Total 270\n7:1 Read 49\n7:1 Write 162\nTotal 732\n";
        assert_eq!(serviced(text), BTreeMap::from([((7, 1), (49, 162)), ((254, 0), (94, 176))]));
        let text = "7:1 rbytes=4096 wbytes=0 rios=1 wios=20 dbytes=0 dios=0\n7:2\nodd\n";
        assert_eq!(io_stat(text), BTreeMap::from([((7, 1), (1, 20))]));
    }

    #[test]
    fn rates_cover_the_time_between_two_samples() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("blkio.throttle.io_serviced_recursive");
        std::fs::write(&file, "7:1 Read 10\n7:1 Write 100\n").unwrap();
        let mut metered = Metered::open(directory.path()).unwrap();
        assert!(metered.look(None).is_empty());
        std::fs::write(&file, "7:1 Read 10\n7:1 Write 400\n").unwrap();
        assert_eq!(metered.look(Some(2.0)), [((7, 1), 0.0, 150.0)]);
    }

    proptest::proptest! {
        #[test]
        fn odd_content_does_not_panic(text in ".{0,200}") {
            let _ = (serviced(&text), io_stat(&text));
        }
    }
}
