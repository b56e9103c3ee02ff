//! The TCP connections of this process: the node's counters are everybody's (sock_diag(7), `struct tcp_info`).

use crate::netlink::{attribute, long, number, table};
use crate::sample::{Gaps, Sample, rise};
use rustix::net::netlink::SOCK_DIAG;
use std::collections::HashMap;
use std::fs;
use tidemark_measure::observation::Kind;

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;

/// `AF_INET`, `AF_INET6`.
const FAMILIES: [u8; 2] = [2, 10];

/// `IPPROTO_TCP`.
const TCP: u8 = 6;

/// All states in which data is sent or received: established, and those in which it is being closed.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8;

/// `INET_DIAG_INFO`.
const INFO: u16 = 2;

/// Length of `struct inet_diag_msg`, and where it has the number of the socket's file.
const FIXED: usize = 72;
const INODE: usize = 68;

/// Connections that are looked at; a process with more has its first ones looked at.
const MOST: usize = 1024;

/// Connections of the node that are read to find them.
const READ: usize = 8192;

/// What is sampled of connections.
#[derive(Default)]
pub(crate) struct Connections {
    before: HashMap<u32, Counts>,
    failed: bool,
}

/// What a connection did since it was made; times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    acknowledged: u64,
    received: u64,
    sent_segments: u64,
    again: u64,
    sending: u64,
    receiver_limited: u64,
    buffer_limited: u64,
}

impl Connections {
    pub(crate) fn sample(&mut self, pids: &[u32], out: &mut Sample, gaps: &mut Gaps) {
        if self.failed {
            return;
        }
        let now = match of(pids) {
            Ok(now) => now,
            Err(error) => {
                self.failed = true;
                return gaps.say(format!("The state of the load's TCP connections is not known: {error}."));
            }
        };
        put(&self.before, &now, out);
        self.before = now;
    }
}

fn put(before: &HashMap<u32, Counts>, now: &HashMap<u32, Counts>, out: &mut Sample) {
    let Some(seconds) = out.seconds else { return };
    let sum = |of: fn(&Counts) -> u64| -> f64 {
        let risen = now.iter().map(|(file, counts)| rise((before.get(file).map_or(0, of), of(counts))));
        risen.sum()
    };
    let rates: [(&'static str, f64); 7] = [
        ("sent_bytes", sum(|counts| counts.acknowledged)),
        ("received_bytes", sum(|counts| counts.received)),
        ("sent_segments", sum(|counts| counts.sent_segments)),
        ("retransmitted_segments", sum(|counts| counts.again)),
        ("sending", sum(|counts| counts.sending) / 1e6),
        ("receiver_limited", sum(|counts| counts.receiver_limited) / 1e6),
        ("buffer_limited", sum(|counts| counts.buffer_limited) / 1e6),
    ];
    out.put(Kind::Network, "connections", "count", now.len() as f64);
    rates.iter().for_each(|(metric, rise)| out.put(Kind::Network, "connections", metric, rise / seconds));
}

/// The connections of these processes, by the numbers of their files.
fn of(pids: &[u32]) -> rustix::io::Result<HashMap<u32, Counts>> {
    let files: Vec<u32> = sockets(pids);
    let mut found = HashMap::new();
    if files.is_empty() {
        return Ok(found);
    }
    for family in FAMILIES {
        let mut request = vec![family, TCP, 1 << (INFO - 1), 0];
        request.extend(STATES.to_ne_bytes());
        // Of any address and port.
        request.resize(56, 0);
        table(Some(SOCK_DIAG), BY_FAMILY, &request, READ, |content| {
            let own = number(content, INODE).filter(|file| files.binary_search(file).is_ok());
            found.extend(own.zip(counts(content)));
        })?;
    }
    Ok(found)
}

/// The numbers of their sockets, in ascending order.
fn sockets(pids: &[u32]) -> Vec<u32> {
    let entries = pids.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten());
    let number = |entry: std::io::Result<fs::DirEntry>| {
        let target = fs::read_link(entry.ok()?.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    let mut files: Vec<u32> = entries.take(MOST).filter_map(number).collect();
    files.sort_unstable();
    files
}

/// Reads `struct tcp_info` behind the fixed part; older kernels have less of it.
fn counts(content: &[u8]) -> Option<Counts> {
    let info = attribute(content.get(FIXED..)?, INFO)?;
    let at = |place| long(info, place).unwrap_or(0);
    let short = |place| u64::from(number(info, place).unwrap_or(0));
    Some(Counts {
        acknowledged: at(120),
        received: at(128),
        sent_segments: short(136),
        again: short(100),
        sending: at(168),
        receiver_limited: at(176),
        buffer_limited: at(184),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_own_connections_move_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let before = of(&[std::process::id()]).unwrap();
        near.write_all(&[7; 100_000]).unwrap();
        far.read_exact(&mut [0; 100_000]).unwrap();
        far.write_all(b"thanks").unwrap();
        near.read_exact(&mut [0; 6]).unwrap();
        let mut out = Sample { seconds: Some(2.0), values: Vec::new() };
        put(&before, &of(&[std::process::id()]).unwrap(), &mut out);
        let value = |metric: &str| out.values.iter().find(|value| value.metric == metric).unwrap().value;
        // Other tests of this process may have connections as well.
        assert!(value("count") >= 2.0 && value("sent_bytes") >= 50_000.0, "{:?}", out.values);
        assert!(value("received_bytes") >= 50_000.0 && value("sent_segments") >= 1.0, "{:?}", out.values);
    }

    #[test]
    fn a_new_connection_counts_from_its_beginning_and_a_closed_one_no_more() {
        let counts = |acknowledged, sending| Counts { acknowledged, sending, ..Counts::default() };
        let before = HashMap::from([(1, counts(1000, 0)), (2, counts(5000, 0))]);
        let now = HashMap::from([(1, counts(3000, 500_000)), (3, counts(2000, 0))]);
        let mut out = Sample { seconds: Some(1.0), values: Vec::new() };
        put(&before, &now, &mut out);
        let value = |metric: &str| out.values.iter().find(|value| value.metric == metric).unwrap().value;
        assert_eq!((value("sent_bytes"), value("sending"), value("count")), (4000.0, 0.5, 2.0));
    }

    proptest! {
        #[test]
        fn odd_content_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = counts(&bytes);
        }
    }
}
