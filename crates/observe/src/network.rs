//! Networks: interfaces, TCP and the kernel's receive queues, under `/proc/net` (proc(5)).

use crate::reader::{Source, number_in, numbers};
use crate::sample::{Gaps, Sample};
use std::collections::BTreeMap;
use std::path::Path;
use tidemark_measure::observation::Kind;

/// Seconds between two reads of a link's speed.
const SPEED_SECONDS: f64 = 10.0;

/// Fields of an interface in `/proc/net/dev`, and their names.
const FIELDS: [(usize, &str); 8] = [
    (0, "rx_bytes"),
    (1, "rx_packets"),
    (2, "rx_errors"),
    (3, "rx_drops"),
    (8, "tx_bytes"),
    (9, "tx_packets"),
    (10, "tx_errors"),
    (11, "tx_drops"),
];

/// What is sampled of networks.
pub(crate) struct Network {
    dev: Source,
    snmp: Source,
    netstat: Source,
    softnet: Source,
    interfaces: BTreeMap<String, Interface>,
    tcp: [Option<u64>; 3],
    queues: Option<(u64, u64)>,
    speed_age: f64,
}

#[derive(Default)]
struct Interface {
    counts: Vec<u64>,
    /// Bytes per second.
    speed: Option<f64>,
}

impl Network {
    pub(crate) fn new() -> Self {
        Self {
            dev: Source::new("/proc/net/dev"),
            snmp: Source::new("/proc/net/snmp"),
            netstat: Source::new("/proc/net/netstat"),
            softnet: Source::new("/proc/net/softnet_stat"),
            interfaces: BTreeMap::new(),
            tcp: [None; 3],
            queues: None,
            speed_age: SPEED_SECONDS,
        }
    }

    pub(crate) fn sample(&mut self, out: &mut Sample, gaps: &mut Gaps) {
        self.sample_interfaces(out, gaps);
        self.sample_tcp(out, gaps);
        let queues = self.softnet.read(gaps).map(|text| queues(&text));
        if let (Some(before), Some(now)) = (self.queues, queues) {
            out.put_rate(Kind::Network, "softnet", "dropped", (before.0, now.0));
            out.put_rate(Kind::Network, "softnet", "squeezed", (before.1, now.1));
        }
        self.queues = queues;
    }

    fn sample_interfaces(&mut self, out: &mut Sample, gaps: &mut Gaps) {
        self.speed_age += out.seconds.unwrap_or(0.0);
        let look = self.speed_age >= SPEED_SECONDS;
        if look {
            self.speed_age = 0.0;
        }
        let Some(text) = self.dev.read(gaps) else { return };
        for (name, counts) in text.lines().filter_map(interface) {
            let known = self.interfaces.entry(name.to_owned()).or_default();
            if look {
                known.speed = speed(name);
            }
            if !known.counts.is_empty() {
                for (field, metric) in FIELDS {
                    let at = |counts: &[u64]| counts.get(field).copied().unwrap_or(0);
                    out.put_rate(Kind::Network, name, metric, (at(&known.counts), at(&counts)));
                }
                if let Some(speed) = known.speed {
                    out.put(Kind::Network, name, "speed", speed);
                }
            }
            known.counts = counts;
        }
    }

    fn sample_tcp(&mut self, out: &mut Sample, gaps: &mut Gaps) {
        let snmp = self.snmp.read(gaps).unwrap_or_default();
        let netstat = self.netstat.read(gaps).unwrap_or_default();
        let now = [
            column(&snmp, "Tcp:", "OutSegs"),
            column(&snmp, "Tcp:", "RetransSegs"),
            column(&netstat, "TcpExt:", "ListenDrops"),
        ];
        let names = ["sent_segments", "retransmitted_segments", "listen_drops"];
        for ((before, now), name) in self.tcp.into_iter().zip(now).zip(names) {
            if let (Some(before), Some(now)) = (before, now) {
                out.put_rate(Kind::Network, "tcp", name, (before, now));
            }
        }
        self.tcp = now;
    }

    /// The speeds of the links that have one.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let speeds = self.interfaces.iter().filter_map(|(name, known)| Some((name, known.speed?)));
        let words = |speed: f64| format!("{} Mbit/s", speed * 8.0 / 1e6);
        speeds.map(|(name, speed)| (format!("link {name}"), words(speed))).collect()
    }
}

/// The speed of a link, bytes per second; virtual links have none or report -1.
fn speed(name: &str) -> Option<f64> {
    let plain = !name.starts_with('.') && !name.contains('/');
    let megabits = number_in(Path::new("/sys/class/net").join(name).join("speed")).filter(|_| plain)?;
    (megabits > 0 && megabits < u64::from(u32::MAX)).then_some(megabits as f64 * 1e6 / 8.0)
}

/// Reads `  eth0: 171122512    7398    0 ...`.
fn interface(line: &str) -> Option<(&str, Vec<u64>)> {
    let (name, counts) = line.split_once(':')?;
    Some((name.trim(), numbers(counts.split_ascii_whitespace())))
}

/// A number of `/proc/net/snmp` or `netstat`, where a line of names is followed by one of numbers.
fn column(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let index = lines.next()?.split(' ').position(|word| word == name)?;
    lines.next()?.split(' ').nth(index)?.parse().ok()
}

/// Packets dropped and budgets run out, over all processors: the second and third hexadecimal column.
fn queues(text: &str) -> (u64, u64) {
    let row = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let mut number = || words.next().and_then(|word| u64::from_str_radix(word, 16).ok()).unwrap_or(0);
        (number(), number())
    };
    text.lines().map(row).fold((0, 0), |sum, row| (sum.0.saturating_add(row.0), sum.1.saturating_add(row.1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interface_is_read_field_by_field() {
        let line = "eth0: 171122512    7398    1    2    0     0          0         0   474593    5600    3   \
            4    0     0       0          0";
        let (name, counts) = interface(line).unwrap();
        let fields: Vec<u64> = FIELDS.iter().map(|(field, _)| counts[*field]).collect();
        assert_eq!((name, fields), ("eth0", vec![171_122_512, 7398, 1, 2, 474_593, 5600, 3, 4]));
        assert!(interface("Inter-|   Receive                |  Transmit").is_none());
    }

    #[test]
    fn columns_are_found_by_name() {
        let text = "Tcp: RtoAlgorithm MaxConn OutSegs RetransSegs\nTcp: 1 -1 5574 8\nUdp: OutSegs\nUdp: 1\n";
        assert_eq!(column(text, "Tcp:", "RetransSegs"), Some(8));
        assert_eq!(column(text, "Tcp:", "MaxConn"), None, "-1 is no count");
        assert_eq!(column(text, "Tcp:", "Missing"), None);
    }

    #[test]
    fn queues_are_hexadecimal_and_added_up() {
        let text = "00000007 00000001 0000000a 00000000\n00001cfd 00000002 00000001 00000000\n";
        assert_eq!(queues(text), (3, 11));
    }

    #[test]
    fn this_machine_has_a_loopback_interface() {
        let (mut network, mut gaps) = (Network::new(), Gaps::default());
        network.sample(&mut Sample::default(), &mut gaps);
        assert!(network.interfaces.contains_key("lo") && gaps.sentences().is_empty(), "{gaps:?}");
    }

    proptest! {
        #[test]
        fn odd_content_does_not_panic(text in "(Tcp:|OutSegs| |:|[0-9a-f]{0,20}|.|\n){0,30}") {
            let _ = (column(&text, "Tcp:", "OutSegs"), queues(&text));
            text.lines().for_each(|line| drop(interface(line)));
        }
    }
}
