//! Traffic shapers: what the queueing disciplines of the interfaces let out (tc(8); `include/uapi/linux/pkt_sched.h`).
//!
//! A shaper is slower than its link by order, and the link's own counters look idle. Of those that limit a whole interface
//! there are two: the token bucket `tbf`, and `htb`, which limits classes.

use crate::netlink::{attribute, attributes, long, number, table};
use crate::sample::{Gaps, Sample};
use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketType, socket};
use std::collections::BTreeMap;
use tidemark_measure::observation::Kind;

/// `RTM_GETQDISC`, `RTM_GETTCLASS`.
const QDISCS: u16 = 38;
const CLASSES: u16 = 42;

/// Length of `struct tcmsg`.
const FIXED: usize = 20;

/// The parent of what is attached to the interface itself: `TC_H_ROOT`.
const ROOT: u32 = u32::MAX;

/// Attributes of a discipline or class: `TCA_KIND`, `TCA_OPTIONS`, `TCA_STATS2`.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const STATISTICS: u16 = 7;

/// Attributes of statistics: `TCA_STATS_BASIC`, `TCA_STATS_QUEUE`.
const BASIC: u16 = 1;
const QUEUE: u16 = 3;

/// Disciplines and classes that are read at most.
const MOST: usize = 4096;

/// What is sampled of shapers.
#[derive(Default)]
pub(crate) struct Shapers {
    /// By the index of the interface.
    known: BTreeMap<u32, Known>,
    failed: bool,
}

struct Known {
    name: String,
    before: Counts,
}

/// What a shaper allows, and did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    /// Bytes per second.
    rate: u64,
    bytes: u64,
    backlog: u64,
    drops: u64,
}

/// A discipline or class of an interface.
struct Row<'a> {
    interface: u32,
    parent: u32,
    kind: &'a str,
    options: &'a [u8],
    counts: Counts,
}

impl Shapers {
    pub(crate) fn sample(&mut self, out: &mut Sample, gaps: &mut Gaps) {
        if self.failed {
            return;
        }
        let now = match shapers() {
            Ok(now) => now,
            Err(error) => {
                self.failed = true;
                return gaps.say(format!("The traffic shapers of this node are not known: {error}."));
            }
        };
        self.known.retain(|interface, _| now.contains_key(interface));
        for (interface, counts) in now {
            match self.known.get_mut(&interface) {
                Some(known) => {
                    known.put(&counts, out);
                    known.before = counts;
                }
                None => {
                    let known = name(interface).map(|name| (interface, Known { name, before: counts }));
                    self.known.extend(known);
                }
            }
        }
    }
}

impl Known {
    fn put(&self, now: &Counts, out: &mut Sample) {
        let (name, before) = (self.name.as_str(), &self.before);
        out.put(Kind::Network, name, "shaper_rate", now.rate as f64);
        out.put(Kind::Network, name, "shaper_backlog", now.backlog as f64);
        out.put_rate(Kind::Network, name, "shaped_bytes", (before.bytes, now.bytes));
        out.put_rate(Kind::Network, name, "shaper_drops", (before.drops, now.drops));
    }
}

/// The shapers of all interfaces.
fn shapers() -> rustix::io::Result<BTreeMap<u32, Counts>> {
    let (mut found, mut classful) = (BTreeMap::new(), Vec::new());
    table(None, QDISCS, &[0; FIXED], MOST, |content| {
        let Some(row) = row(content).filter(|row| row.parent == ROOT) else { return };
        match row.kind {
            "tbf" => drop(row.token_bucket().map(|counts| found.insert(row.interface, counts))),
            "htb" => classful.push(row.interface),
            _ => {}
        }
    })?;
    for interface in classful {
        let mut request = [0; FIXED];
        request[4..8].copy_from_slice(&interface.to_ne_bytes());
        table(None, CLASSES, &request, MOST, |content| {
            let own = row(content).filter(|row| row.parent == ROOT && row.kind == "htb");
            if let Some(counts) = own.and_then(|row| row.class()) {
                let all: &mut Counts = found.entry(interface).or_default();
                *all = all.plus(counts);
            }
        })?;
    }
    Ok(found)
}

fn row(content: &[u8]) -> Option<Row<'_>> {
    let (interface, parent) = (number(content, 4)?, number(content, 12)?);
    let rest = content.get(FIXED..)?;
    let kind = std::str::from_utf8(attribute(rest, KIND)?).ok()?.trim_end_matches('\0');
    let statistics = attribute(rest, STATISTICS).unwrap_or_default();
    let basic = attribute(statistics, BASIC).unwrap_or_default();
    let queue = attribute(statistics, QUEUE).unwrap_or_default();
    let of_queue = |at| u64::from(number(queue, at).unwrap_or(0));
    let counts =
        Counts { rate: 0, bytes: long(basic, 0).unwrap_or(0), backlog: of_queue(4), drops: of_queue(8) };
    Some(Row { interface, parent, kind, options: attribute(rest, OPTIONS).unwrap_or_default(), counts })
}

impl Row<'_> {
    /// `TCA_TBF_PARMS` begins with the rate; what does not fit in it is in `TCA_TBF_RATE64`.
    fn token_bucket(&self) -> Option<Counts> {
        self.at(attribute(self.options, 4).and_then(|text| long(text, 0)), 8)
    }

    /// `TCA_HTB_PARMS` has the rate and then the ceiling; what does not fit in it is in `TCA_HTB_CEIL64`.
    fn class(&self) -> Option<Counts> {
        self.at(attribute(self.options, 7).and_then(|text| long(text, 0)), 20)
    }

    fn at(&self, large: Option<u64>, place: usize) -> Option<Counts> {
        let small = attributes(self.options).find(|(kind, _)| *kind == 1);
        let small = || Some(u64::from(number(small?.1, place)?));
        let rate = large.or_else(small).filter(|rate| *rate > 0)?;
        Some(Counts { rate, ..self.counts })
    }
}

impl Counts {
    fn plus(self, other: Counts) -> Counts {
        Counts {
            rate: self.rate.saturating_add(other.rate),
            bytes: self.bytes.saturating_add(other.bytes),
            backlog: self.backlog.saturating_add(other.backlog),
            drops: self.drops.saturating_add(other.drops),
        }
    }
}

/// The name of an interface.
fn name(interface: u32) -> Option<String> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    index_to_name(socket, interface).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + content.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: &str, options: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; FIXED];
        bytes[4..8].copy_from_slice(&3u32.to_ne_bytes());
        bytes[12..16].copy_from_slice(&ROOT.to_ne_bytes());
        let queue: Vec<u8> = [1u32, 4096, 7, 0, 9].iter().flat_map(|number| number.to_ne_bytes()).collect();
        let basic = [&1_000_000u64.to_ne_bytes()[..], &[0; 8]].concat();
        bytes.extend(with(KIND, format!("{kind}\0").as_bytes()));
        bytes.extend(with(OPTIONS, options));
        bytes.extend(with(STATISTICS, &[with(BASIC, &basic), with(QUEUE, &queue)].concat()));
        bytes
    }

    #[test]
    fn a_token_bucket_is_read() {
        let mut parameters = vec![0; 36];
        parameters[8..12].copy_from_slice(&25_000_000u32.to_ne_bytes());
        let bytes = message("tbf", &with(1, &parameters));
        let found = row(&bytes).unwrap();
        assert_eq!((found.interface, found.parent, found.kind), (3, ROOT, "tbf"));
        let expected = Counts { rate: 25_000_000, bytes: 1_000_000, backlog: 4096, drops: 7 };
        assert_eq!(found.token_bucket(), Some(expected));
        let fast = [with(1, &parameters), with(4, &10_000_000_000u64.to_ne_bytes())].concat();
        assert_eq!(row(&message("tbf", &fast)).unwrap().token_bucket().unwrap().rate, 10_000_000_000);
    }

    #[test]
    fn a_class_has_its_ceiling() {
        let mut parameters = vec![0; 44];
        parameters[8..12].copy_from_slice(&1u32.to_ne_bytes());
        parameters[20..24].copy_from_slice(&125_000u32.to_ne_bytes());
        assert_eq!(row(&message("htb", &with(1, &parameters))).unwrap().class().unwrap().rate, 125_000);
        assert_eq!(row(&message("htb", &[])).unwrap().class(), None);
    }

    #[test]
    fn this_machine_answers() {
        let (mut shapers, mut gaps) = (Shapers::default(), Gaps::default());
        let mut out = Sample { seconds: Some(1.0), values: Vec::new() };
        (0..2).for_each(|_| shapers.sample(&mut out, &mut gaps));
        assert_eq!(gaps.sentences(), [""; 0]);
    }

    proptest! {
        #[test]
        fn odd_content_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let found = row(&bytes);
            let _ = found.map(|row| (row.token_bucket(), row.class()));
        }
    }
}
