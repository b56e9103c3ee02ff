//! The text of the lab's ceph.conf, with the reason for every setting that is not Ceph's default.

use super::home::Home;
use super::record::Shape;

/// The most that one OSD plans to keep in memory, in bytes.
const OSD_MEMORY_BYTES: u64 = 1 << 30;

/// The settings of a lab.
///
/// Data takes the path that it takes in a large cluster: replicated pools, cephx, BlueStore. What differs
/// from the defaults is what one small machine needs, and the pace of the monitor, so that the lab starts
/// quickly.
pub(super) fn ceph_conf(home: &Home, shape: &Shape) -> String {
    let dir = home.dir().display();
    let Shape { fsid, monitor_port, gateway_port, .. } = shape;
    let copies = copies(shape.osds);
    format!(
        "\
# Written by `tidemark lab up`, anew each time: changes made here are lost.
[global]
fsid = {fsid}
keyring = {dir}/keyring
run dir = {dir}/run
crash dir = {dir}/crash

# Everything listens on the loopback address, with the second version of the protocol only.
mon host = v2:127.0.0.1:{monitor_port}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr1 = false
ms bind ipv6 = false

# The gateway does not start without cephx.
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false

# One host: copies go to different OSDs, not to different hosts. One OSD: one copy, and no warning about it.
osd crush chooseleaf type = 0
osd pool default size = {copies}
osd pool default min size = 1
mon allow pool size one = true
mon warn on pool no redundancy = false

# Pools that a client creates stay small, and none is resharded in the middle of a measurement.
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off

# Maps are published and statistics gathered within a second, not every few: the lab starts in half the time,
# and its counters keep up with a benchmark that samples once a second. No data passes through here.
paxos propose interval = 0.2
mgr tick period = 1
mgr stats period = 1

# A developer's disk is often nearly full, and the monitor stores little.
mon data avail warn = 1
mon data avail crit = 0

[mon]
mon data = {dir}/mon
mon cluster log file = {dir}/log/cluster.log
log file = {dir}/log/$name.log
admin socket = {dir}/run/$name.asok

[mgr]
mgr data = {dir}/mgr
# Without the default's `restful`, which wants a port of its own.
mgr initial modules = iostat
log file = {dir}/log/$name.log
admin socket = {dir}/run/$name.asok

[osd]
osd data = {dir}/osd/$id
osd objectstore = bluestore
# The default of 4 GiB for each OSD is more than a small machine has.
osd memory target = {OSD_MEMORY_BYTES}
log file = {dir}/log/$name.log
admin socket = {dir}/run/$name.asok

[client.rgw.lab]
rgw data = {dir}/rgw
rgw frontends = beast endpoint=127.0.0.1:{gateway_port} tcp_nodelay=1
# The gateway's own count of operations, to compare with ours. It is written once a second, in one batch; the
# flush threshold keeps its default, because a low one would make requests wait for the usage log.
rgw enable usage log = true
rgw usage log tick interval = 1
# Without three lines for each request, which would fill the disk in a long run.
debug rgw = 0/5
log file = {dir}/log/$name.log
admin socket = {dir}/run/$name.asok
"
    )
}

/// How many copies of each object a lab with so many OSDs keeps: two, so that writes are replicated for real.
fn copies(osds: usize) -> usize {
    osds.min(2)
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::shape;
    use super::*;

    fn text(shape: &Shape) -> (String, String) {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::prepare(directory.path()).unwrap();
        (ceph_conf(&home, shape), home.dir().display().to_string())
    }

    /// The value of a setting in a section.
    fn setting<'a>(text: &'a str, section: &str, name: &str) -> Option<&'a str> {
        let (_, rest) = text.split_once(&format!("\n[{section}]\n"))?;
        let body = rest.split("\n[").next()?;
        body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))
    }

    #[test]
    fn every_daemon_listens_on_the_loopback_address_only() {
        let (text, _) = text(&shape());
        assert_eq!(setting(&text, "global", "mon host"), Some("v2:127.0.0.1:23300"));
        assert_eq!(setting(&text, "global", "public addr"), Some("127.0.0.1"));
        assert_eq!(setting(&text, "global", "cluster addr"), Some("127.0.0.1"));
        assert_eq!(
            setting(&text, "client.rgw.lab", "rgw frontends"),
            Some("beast endpoint=127.0.0.1:27480 tcp_nodelay=1")
        );
        assert!(!text.contains("0.0.0.0") && !text.contains("::"));
    }

    #[test]
    fn every_path_is_below_the_directory() {
        let (text, dir) = text(&shape());
        let paths: Vec<_> = text.lines().filter_map(|line| line.split_once(" = /")).collect();
        assert_eq!(paths.len(), 16);
        for (name, path) in paths {
            assert!(format!("/{path}").starts_with(&dir), "{name} = /{path}");
        }
    }

    #[test]
    fn two_copies_where_there_are_two_osds() {
        for (osds, copies) in [(1, "1"), (2, "2"), (3, "2"), (8, "2")] {
            let (text, _) = text(&Shape { osds, ..shape() });
            assert_eq!(setting(&text, "global", "osd pool default size"), Some(copies));
        }
    }

    #[test]
    fn the_gateway_counts_its_operations() {
        let (text, _) = text(&shape());
        assert_eq!(setting(&text, "client.rgw.lab", "rgw enable usage log"), Some("true"));
        assert_eq!(setting(&text, "client.rgw.lab", "rgw usage log tick interval"), Some("1"));
    }

    #[test]
    fn no_line_ends_in_a_comment_that_ceph_would_read_as_a_value() {
        let (text, _) = text(&shape());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(!line.contains('#') && !line.contains(';'), "{line}");
        }
    }
}
