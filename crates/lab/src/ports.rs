//! Choosing ports of 127.0.0.1.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::path::Path;

use crate::daemon::Daemon;
use crate::error::LabError;

/// Where a port is looked for. All ranges lie below the ports that Linux gives to outgoing connections (from
/// 32768), so that a lab finds its ports free again after a stop; and above those of well-known services.
const MONITOR_PORTS: RangeInclusive<u16> = 23_300..=24_299;
const GATEWAY_PORTS: RangeInclusive<u16> = 27_480..=28_479;
const DATABASE_PORTS: RangeInclusive<u16> = 25_432..=26_431;
const TRINO_PORTS: RangeInclusive<u16> = 28_480..=29_479;
const KUBERNETES_PORTS: RangeInclusive<u16> = 29_480..=30_479;

/// A free port for a daemon of the lab in `dir`, and none of those that others of its daemons are about to use.
///
/// The search begins at a place that depends on the directory: the same lab tends to get the same ports, and
/// two labs created at the same time do not race for one.
pub(super) fn choose(daemon: Daemon, dir: &Path, others: &[u16]) -> Result<u16, LabError> {
    let range = match daemon {
        Daemon::Monitor => MONITOR_PORTS,
        Daemon::Postgres(_) | Daemon::Mariadb(_) => DATABASE_PORTS,
        Daemon::Coordinator | Daemon::Worker(_) => TRINO_PORTS,
        Daemon::Etcd | Daemon::ApiServer => KUBERNETES_PORTS,
        _ => GATEWAY_PORTS,
    };
    let (first, last) = (*range.start(), *range.end());
    let mut hasher = DefaultHasher::new();
    dir.hash(&mut hasher);
    let ports = u64::from(last - first) + 1;
    let skipped = usize::try_from(hasher.finish() % ports).unwrap_or_default();
    let mut candidates = range.clone().skip(skipped).chain(range.take(skipped));
    candidates.find(|port| !others.contains(port) && is_free(*port)).ok_or(LabError::NoFreePort {
        daemon,
        first,
        last,
    })
}

/// The port of one of several daemons, by its number from 0, given that of the first.
pub(super) fn after(option: &'static str, first: u16, number: usize) -> Result<u16, LabError> {
    let port = u16::try_from(number).ok().and_then(|more| first.checked_add(more)).filter(|_| first > 0);
    let allowed = "from 1 to 65535, with as many after it as there are more of them";
    port.ok_or(LabError::BadOption { option, value: first.into(), allowed })
}

/// Fails if the port that a daemon is about to use is taken.
pub(super) fn check(daemon: Daemon, port: u16) -> Result<(), LabError> {
    if is_free(port) { Ok(()) } else { Err(LabError::PortTaken { daemon, port }) }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_port_while_that_is_free() {
        let dir = Path::new("/some/lab");
        let port = choose(Daemon::Gateway(0), dir, &[]).unwrap();
        assert!(GATEWAY_PORTS.contains(&port));
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let other = choose(Daemon::Gateway(0), dir, &[]).unwrap();
        assert_ne!(port, other);
        assert!(matches!(check(Daemon::Gateway(0), port), Err(LabError::PortTaken { .. })));
    }

    #[test]
    fn daemons_of_one_lab_never_meet() {
        let dir = Path::new("/some/lab");
        assert!(MONITOR_PORTS.contains(&choose(Daemon::Monitor, dir, &[]).unwrap()));
        assert!(MONITOR_PORTS.end() < DATABASE_PORTS.start() && DATABASE_PORTS.end() < GATEWAY_PORTS.start());
        assert!(GATEWAY_PORTS.end() < TRINO_PORTS.start());
        assert!(TRINO_PORTS.end() < KUBERNETES_PORTS.start());
        assert!(KUBERNETES_PORTS.contains(&choose(Daemon::ApiServer, dir, &[]).unwrap()));
        assert!(TRINO_PORTS.contains(&choose(Daemon::Worker(1), dir, &[]).unwrap()));
        let first = choose(Daemon::Postgres(0), dir, &[]).unwrap();
        let second = choose(Daemon::Postgres(1), dir, &[first]).unwrap();
        assert!(DATABASE_PORTS.contains(&first) && DATABASE_PORTS.contains(&second) && first != second);
    }
}
