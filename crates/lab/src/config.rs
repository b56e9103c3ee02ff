//! The text of the lab's ceph.conf, with the reason for every setting that is not Ceph's default.

use crate::daemon::Daemon;
use crate::home::Home;
use crate::record::Shape;
use crate::tier;

/// The most that one OSD plans to keep in memory, in bytes.
const OSD_MEMORY_BYTES: u64 = 1 << 30;
/// BlueStore's cache in each OSD of a layout that is not plain, in bytes.
pub(super) const CACHE_BYTES: u64 = 64 << 20;

/// The settings of a lab.
///
/// Data takes the path that it takes in a large cluster: replicated pools, cephx, BlueStore. What differs
/// from the defaults is what one small machine needs, and the pace of the monitor, so that the lab starts
/// quickly.
pub(super) fn ceph_conf(home: &Home, shape: &Shape) -> String {
    let dir = home.dir().display();
    let Shape { fsid, monitor_port, .. } = shape;
    let copies = shape.copies();
    let text = format!(
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

# A developer's disk is often nearly full, and the monitor stores little. With less than 1 % free, which it takes for 0, a limit of 0
# would be reached, too.
mon data avail warn = -1
mon data avail crit = -1

# Daemons on one busy machine answer each other's heartbeats late. The default warns after 1 s, 5 % of the time after which an OSD
# counts as down; here it is half of that time.
mon warn on slow ping time = 10000

[mon]
mon data = {dir}/mon
mon cluster log file = {dir}/log/cluster.log
log file = {dir}/log/$name.log
admin socket = {dir}/run/$cluster-$name.asok

[mgr]
mgr data = {dir}/mgr
# Without the default's `restful`, which wants a port of its own.
mgr initial modules = iostat
log file = {dir}/log/$name.log
admin socket = {dir}/run/$cluster-$name.asok

[mds]
mds data = {dir}/mds
log file = {dir}/log/$name.log
admin socket = {dir}/run/$cluster-$name.asok

[osd]
osd data = {dir}/osd/$id
osd objectstore = bluestore
# The default of 4 GiB for each OSD is more than a small machine has.
osd memory target = {OSD_MEMORY_BYTES}
log file = {dir}/log/$name.log
admin socket = {dir}/run/$cluster-$name.asok
"
    );
    let gateways: String = shape.gateways().map(|(daemon, port)| gateway_conf(home, daemon, port)).collect();
    let cache = if shape.layout().has_cache() { cache_conf(shape) } else { String::new() };
    let devices = if shape.media.is_some() { devices_conf() } else { String::new() };
    text + &gateways + &devices + &cache
}

/// What is one gateway's own. All of them have the same settings, and so serve the same zone.
fn gateway_conf(home: &Home, daemon: Daemon, port: u16) -> String {
    let dir = home.dir().display();
    format!(
        "\n[{daemon}]
rgw data = {dir}/rgw
rgw frontends = beast endpoint=127.0.0.1:{port} tcp_nodelay=1
# The gateway's own count of operations, to compare with ours. It is written once a second, in one batch; the
# flush threshold keeps its default, because a low one would make requests wait for the usage log.
rgw enable usage log = true
rgw usage log tick interval = 1
# The gateway is reached on this machine only, without TLS: without this it refuses keys of SSE-C.
rgw crypt require ssl = false
# The key `lab` for SSE-KMS.
rgw crypt s3 kms backend = testing
rgw crypt s3 kms encryption keys = lab=dGlkZW1hcmsgbGFiJ3Mga2V5LCBubyBzZWNyZXQgISE=
# Without three lines for each request, which would fill the disk in a long run.
debug rgw = 0/5
log file = {dir}/log/$name.log
admin socket = {dir}/run/$cluster-$name.asok
"
    )
}

/// What is the same in all layouts that are compared: settings that keep memory from hiding the devices.
fn devices_conf() -> String {
    format!(
        "
[osd]
# The devices are what is compared, so no memory is to stand in front of them: little of BlueStore's own,
# none of it for data, and no page cache below RocksDB.
bluestore cache autotune = false
bluestore cache size = {CACHE_BYTES}
bluestore default buffered read = false
bluefs buffered io = false
# Short logs of placement groups: by default they alone take some hundred megabytes of each OSD.
osd min pg log entries = 200
osd max pg log entries = 500
osd pg log dups tracked = 500
# Not pieces of 64 KiB, or else large reads and writes would be counted as many.
bluestore max blob size = 524288
# The default, but for write buffers of 16 MiB instead of 256, and so a log that fits a small device.
bluestore rocksdb options = compression=kNoCompression,max_write_buffer_number=4,\
min_write_buffer_number_to_merge=1,recycle_log_file_num=4,write_buffer_size=16777216,\
writable_file_max_buffer_size=0,compaction_readahead_size=2097152,\
max_background_compactions=2,max_total_wal_size=134217728

[client]
# Otherwise librbd would say that a write is done before any OSD has it.
rbd cache = false
"
    )
}

/// The cache tier: its place in the CRUSH map, and the settings with which its pools are created.
fn cache_conf(shape: &Shape) -> String {
    let place = |osd| format!("\n[osd.{osd}]\ncrush location = root={} host={}\n", tier::ROOT, tier::HOST);
    let places: String = shape.cache_osds().map(place).collect();
    format!(
        "
[global]
osd tier default cache mode = writeback
# Without hit sets, whatever is not in the cache is taken into it at once and then read or written there, as
# in a block cache. With them, what is new to the cache would be written to the slow pool first.
osd tier default cache hit set type = bloom
osd tier default cache hit set count = 0
mon warn on cache pools without hit sets = false
# Nothing but the slow devices themselves slows that down.
osd tier promote max objects sec = 100000
osd tier promote max bytes sec = 1073741824
# Data are flushed when three quarters of the cache are dirty, and leave it when it is nearly full.
osd pool default cache target dirty ratio = 0.75
osd pool default cache target dirty high ratio = 0.85
osd pool default cache target full ratio = 0.95
{places}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::layout::tests::media;
    use crate::record::tests::shape;

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
    fn every_gateway_has_a_port_and_a_socket_of_its_own_and_the_same_settings() {
        let (text, dir) = text(&Shape { gateway_ports: vec![27_480, 27_482], ..shape() });
        let sections: Vec<_> = ["client.rgw.lab", "client.rgw.lab-1"]
            .into_iter()
            .map(|name| text.split_once(&format!("\n[{name}]\n")).unwrap().1.split("\n[").next().unwrap())
            .collect();
        assert!(sections[1].contains("beast endpoint=127.0.0.1:27482 "), "{text}");
        assert_eq!(sections[0].replace(":27480 ", ":27482 ").trim_end(), sections[1].trim_end());
        assert!(sections[0].contains(&format!("admin socket = {dir}/run/$cluster-$name.asok")));
    }

    #[test]
    fn every_path_is_below_the_directory() {
        let (text, dir) = text(&shape());
        let paths: Vec<_> = text.lines().filter_map(|line| line.split_once(" = /")).collect();
        assert_eq!(paths.len(), 19);
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
    fn layouts_that_are_compared_have_the_same_settings() {
        let conf = |layout| {
            let media = (layout != Layout::Plain).then(|| media(layout));
            text(&Shape { osds: 2, media, ..shape() })
        };
        let (plain, _) = conf(Layout::Plain);
        assert!(!plain.contains("bluestore cache size") && !plain.contains("rbd cache"));
        let (baseline, dir) = conf(Layout::Baseline);
        assert!(baseline.contains("\nbluestore cache size = 67108864\n"));
        assert_eq!(setting(&baseline, "client", "rbd cache"), Some("false"));
        assert!(!baseline.contains("osd tier"));
        let (one, other) = conf(Layout::Reference1);
        assert_eq!(one.replace(&other, &dir), baseline);
        let (two, other) = conf(Layout::Reference2);
        assert!(two.replace(&other, &dir).starts_with(&baseline));
        assert_eq!(setting(&two, "osd.1", "crush location"), None);
        for osd in ["osd.2", "osd.3"] {
            assert_eq!(setting(&two, osd, "crush location"), Some("root=fast host=memory"));
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
