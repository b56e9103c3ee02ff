//! Memory: `/proc/meminfo` and `/proc/vmstat` (proc(5)).

use crate::reader::Source;
use crate::sample::{Gaps, Sample};
use tidemark_measure::observation::Kind;

/// What is sampled of memory.
pub(crate) struct Memory {
    meminfo: Source,
    vmstat: Source,
    page: u64,
    before: Option<[u64; 3]>,
}

/// Rows of `/proc/vmstat` and their names; the first two count pages, the third counts faults.
const COUNTERS: [(&str, &str); 3] =
    [("pswpin", "swap_in"), ("pswpout", "swap_out"), ("pgmajfault", "major_faults")];

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            meminfo: Source::new("/proc/meminfo"),
            vmstat: Source::new("/proc/vmstat"),
            page: rustix::param::page_size() as u64,
            before: None,
        }
    }

    pub(crate) fn sample(&mut self, out: &mut Sample, gaps: &mut Gaps) {
        if let Some(text) = self.meminfo.read(gaps) {
            let mut put = |metric, bytes: Option<u64>| {
                if let Some(bytes) = bytes {
                    out.put(Kind::Memory, "node", metric, bytes as f64);
                }
            };
            let available = bytes_of(&text, "MemAvailable");
            let total = bytes_of(&text, "MemTotal");
            put("used", total.zip(available).map(|(total, available)| total.saturating_sub(available)));
            put("available", available);
            put("cached", bytes_of(&text, "Cached"));
            put("dirty", bytes_of(&text, "Dirty"));
            put("writeback", bytes_of(&text, "Writeback"));
        }
        let Some(text) = self.vmstat.read(gaps) else { return };
        let now = COUNTERS.map(|(row, _)| row_of(&text, row));
        if let Some(before) = self.before {
            for (index, (_, metric)) in COUNTERS.iter().enumerate() {
                let unit = if *metric == "major_faults" { 1 } else { self.page };
                let span = (before[index].saturating_mul(unit), now[index].saturating_mul(unit));
                out.put_rate(Kind::Memory, "node", metric, span);
            }
        }
        self.before = Some(now);
    }
}

/// A row of `/proc/meminfo`: `MemTotal:       24684084 kB`.
pub(crate) fn bytes_of(text: &str, row: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(row)?.strip_prefix(':'))?;
    let kibibytes: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

/// A row of `/proc/vmstat`: `pgmajfault 1469`; 0 where there is none.
fn row_of(text: &str, row: &str) -> u64 {
    let mut rest = text.lines().filter_map(|line| line.strip_prefix(row)?.strip_prefix(' '));
    rest.next().and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_are_found_by_their_whole_name() {
        let text = "MemTotal:       24684084 kB\nCached:          2085280 kB\nSwapCached:            7 kB\nWritebackTmp:          9 kB\nWriteback:             3 kB\n";
        assert_eq!(bytes_of(text, "Cached"), Some(2_085_280 * 1024));
        assert_eq!(bytes_of(text, "Writeback"), Some(3072));
        assert_eq!(bytes_of(text, "Dirty"), None);
        assert_eq!(row_of("pgmajfault_x 3\npgmajfault 1469\n", "pgmajfault"), 1469);
        assert_eq!(row_of("pswpin x\n", "pswpin"), 0);
    }

    #[test]
    fn this_machine_has_memory() {
        let mut out = Sample::default();
        let mut gaps = Gaps::default();
        Memory::new().sample(&mut out, &mut gaps);
        let available = out.values.iter().find(|value| value.metric == "available").unwrap();
        assert!(available.value > 1e6 && gaps.sentences().is_empty(), "{gaps:?}");
    }

    proptest! {
        #[test]
        fn odd_content_does_not_panic(text in "(Dirty|:| |kB|[0-9]{0,25}|.|\n){0,20}") {
            let _ = (bytes_of(&text, "Dirty"), row_of(&text, "Dirty:"));
        }
    }
}
