//! What the OSDs behind RBD images count of what they read and write, asked through the cluster.
//!
//! BlueStore counts bytes read from its device (`bluestore_buffer_miss_bytes`), from its cache (`bluestore_buffer_hit_bytes`), and those
//! that it is given to write (`bluestore_write_big_bytes`, `bluestore_write_small_bytes`); since version 17 without the prefix
//! (src/os/bluestore/BlueStore.cc, `_init_logger`).

use crate::rbd::{self, RbdError};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use tidemark_block::job::{Rbd, Volume};
use tidemark_block::{OsdBytes, OsdCounters};

/// What `ceph osd pool ls detail` tells of a pool, as far as it matters.
#[derive(Deserialize)]
struct Pool {
    pool_name: String,
    #[serde(rename = "type")]
    kind: u32,
    size: u32,
}

/// The kind of pools that keep copies (src/osd/osd_types.h, `pg_pool_t::TYPE_REPLICATED`).
const REPLICATED: u32 = 1;

/// What the OSDs of the images' cluster have counted by now.
///
/// # Errors
/// When the images lie in several clusters or pools, or the cluster does not answer.
pub(crate) fn counters(images: &[Volume]) -> Result<OsdCounters, RbdError> {
    let first = images.first().ok_or(RbdError::Mixed("there are no images"))?;
    let cluster = rbd::image(first)?;
    let mut pools = Vec::new();
    for volume in images {
        let rbd = rbd::image(volume)?;
        if rbd.conf != cluster.conf {
            return Err(RbdError::Mixed("the images lie in several clusters"));
        }
        pools.push(rbd::data_pool(volume)?);
    }
    pools.sort_unstable();
    pools.dedup();
    let [pool] = pools.as_slice() else {
        return Err(RbdError::Mixed("the images lie in several pools"));
    };
    let known = ask(cluster, &["osd", "pool", "ls", "detail", "--format", "json"])?;
    let known: Vec<Pool> = serde_json::from_str(&known).map_err(|error| unread("osd pool ls", &error))?;
    let found = known.iter().find(|known| known.pool_name == *pool);
    let copies = found.filter(|found| found.kind == REPLICATED).map_or(0, |found| found.size);
    let osds = dumps(&ask(cluster, &["tell", "osd.*", "perf", "dump", "bluestore"])?)?;
    Ok(OsdCounters { copies, osds })
}

/// The replies of all OSDs: `osd.0: {...}`, one after the other.
fn dumps(text: &str) -> Result<BTreeMap<u32, OsdBytes>, RbdError> {
    let mut osds = BTreeMap::new();
    let mut left = text.trim_start();
    while let Some((name, rest)) = left.split_once(':') {
        let number = name.trim().strip_prefix("osd.").and_then(|number| number.parse().ok());
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let (Some(number), Some(Ok(dump))) = (number, values.next()) else {
            return Err(failed("tell osd.*", "its output is not that of `perf dump`"));
        };
        let read = bytes(&dump["bluestore"]);
        osds.insert(
            number,
            read.ok_or_else(|| failed("tell osd.*", "its OSDs do not count as BlueStore does"))?,
        );
        left = rest[values.byte_offset()..].trim_start();
    }
    match osds.is_empty() {
        true => Err(failed("tell osd.*", "no OSD answered")),
        false => Ok(osds),
    }
}

fn bytes(dump: &Value) -> Option<OsdBytes> {
    let counter = |name: &str| {
        let old = dump.get(format!("bluestore_{name}"));
        old.or_else(|| dump.get(name))?.as_u64()
    };
    Some(OsdBytes {
        from_device: counter("buffer_miss_bytes")?,
        from_cache: counter("buffer_hit_bytes")?,
        written: counter("write_big_bytes")?.checked_add(counter("write_small_bytes")?)?,
    })
}

/// What `ceph` prints.
fn ask(cluster: &Rbd, arguments: &[&str]) -> Result<String, RbdError> {
    let mut command = Command::new("ceph");
    if let Some(conf) = &cluster.conf {
        command.arg("--conf").arg(conf);
    }
    command.args(["--id", &cluster.user]).args(arguments);
    let verb = arguments[..2].join(" ");
    let output = rbd::run(command, rbd::TIMEOUT).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => RbdError::Absent,
        _ => failed(&verb, &error.to_string()),
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(&verb, &rbd::words(&output))),
    }
}

fn failed(verb: &str, stderr: &str) -> RbdError {
    RbdError::Failed { command: format!("ceph {verb}"), stderr: stderr.to_owned() }
}

fn unread(verb: &str, error: &serde_json::Error) -> RbdError {
    failed(verb, &format!("cannot read its output: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OLD: &str = r#"{"bluestore": {"bluestore_buffer_hit_bytes": 1, "bluestore_buffer_miss_bytes": 2,
        "bluestore_write_big_bytes": 30, "bluestore_write_small_bytes": 4}}"#;
    const NEW: &str = r#"{"bluestore": {"buffer_hit_bytes": 1, "buffer_miss_bytes": 2, "write_big_bytes": 30, "write_small_bytes": 4}}"#;

    #[test]
    fn replies_of_several_osds_are_told_apart_in_both_spellings() {
        let expected = OsdBytes { from_device: 2, from_cache: 1, written: 34 };
        let osds = dumps(&format!("osd.0: {OLD}\nosd.12: {NEW}\n\n")).unwrap();
        assert_eq!(osds, BTreeMap::from([(0, expected), (12, expected)]));
    }

    #[test]
    fn what_is_no_such_reply_is_an_error() {
        for (text, why) in [
            ("", "no OSD answered"),
            ("osd.0: {}", "do not count"),
            ("osd.0: {\"bluestore\": {\"write_big_bytes\": 1}}", "do not count"),
            ("osd.x: {}", "not that of"),
            ("osd.0: nothing", "not that of"),
        ] {
            let error = dumps(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn odd_replies_do_not_panic(text in ".*") {
            let _ = dumps(&text);
        }
    }
}
