//! Pressure stall information: `/proc/pressure` (Documentation/accounting/psi).

use crate::reader::Source;
use crate::sample::{Gaps, Sample, rise};
use tidemark_measure::observation::Kind;

/// The resources that tasks wait for.
pub(crate) const RESOURCES: [&str; 3] = ["cpu", "io", "memory"];

/// What is sampled of pressure.
pub(crate) struct Pressure {
    resources: Vec<Resource>,
}

struct Resource {
    name: &'static str,
    source: Source,
    before: Option<Stalled>,
}

/// Time in which some, or all, tasks were stalled, since the start of the system, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stalled {
    pub(crate) some: u64,
    pub(crate) full: Option<u64>,
}

impl Pressure {
    pub(crate) fn new() -> Self {
        let resource = |name| {
            let source = Source::new(format!("/proc/pressure/{name}"));
            Resource { name, source, before: None }
        };
        Self { resources: RESOURCES.map(resource).into() }
    }

    pub(crate) fn sample(&mut self, out: &mut Sample, gaps: &mut Gaps) {
        for Resource { name, source, before } in &mut self.resources {
            let after = source.read(gaps).and_then(|text| stalled(&text));
            if let (Some(before), Some(after), Some(seconds)) = (&before, after, out.seconds) {
                out.put(Kind::Pressure, name, "some", share((before.some, after.some), seconds));
                if let (Some(before), Some(after)) = (before.full, after.full) {
                    out.put(Kind::Pressure, name, "full", share((before, after), seconds));
                }
            }
            *before = after;
        }
    }
}

/// A rise of microseconds as a share of the time; the kernel's clock and ours may differ by a little.
pub(crate) fn share(span: (u64, u64), seconds: f64) -> f64 {
    (rise(span) / 1e6 / seconds).min(1.0)
}

/// Reads `some avg10=0.76 avg60=0.61 avg300=1.30 total=28656743`, and the same with `full`.
pub(crate) fn stalled(text: &str) -> Option<Stalled> {
    let total = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()
    };
    Some(Stalled { some: total("some ")?, full: total("full ") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn totals_are_read() {
        let text = "some avg10=0.07 avg60=0.44 avg300=0.16 total=3330288\nfull avg10=0.07 avg60=0.44 avg300=0.16 total=2901406\n";
        assert_eq!(stalled(text), Some(Stalled { some: 3_330_288, full: Some(2_901_406) }));
        assert_eq!(
            stalled("some avg10=0.00 total=5\n"),
            Some(Stalled { some: 5, full: None }),
            "before Linux 5.13"
        );
        assert_eq!(stalled(""), None);
    }

    #[test]
    fn a_share_is_of_the_time_and_at_most_all_of_it() {
        assert_eq!(share((1_000_000, 1_500_000), 2.0), 0.25);
        assert_eq!(share((0, 2_100_000), 2.0), 1.0);
        assert_eq!(share((5, 4), 1.0), 0.0);
    }

    proptest! {
        #[test]
        fn odd_content_does_not_panic(text in "(some |full |total=|[0-9]{0,25}|.|\n){0,20}") {
            let _ = stalled(&text);
        }
    }
}
