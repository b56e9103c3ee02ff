//! Which of a daemon's counters are taken, and what is made of them.
//!
//! `perf dump` is an object of loggers, each an object of counters: a number, or a sum of seconds with its count. `counter dump`
//! of newer versions has a list of loggers of one name in place of each.

use crate::sample::{Gaps, Sample};
use serde::Deserialize;
use serde_json::Value;
use std::time::Instant;
use tidemark_measure::observation::Kind;

/// What is made of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Take {
    /// What it rose by, per second.
    Rate,
    /// Its value.
    State,
    /// The mean time of what was counted, nanoseconds.
    Mean,
    /// The rise of its sum of times as a share of the time: of what only one thread does.
    Busy,
}

use Take::{Busy, Mean, Rate, State};

/// Logger, counter, metric.
type Row = (&'static str, &'static str, &'static str, Take);

/// Of object storage daemons.
const OSD: &[Row] = &[
    ("osd", "op", "op", Rate),
    ("osd", "op_r", "op_r", Rate),
    ("osd", "op_w", "op_w", Rate),
    ("osd", "op_rw", "op_rw", Rate),
    ("osd", "op_in_bytes", "op_in_bytes", Rate),
    ("osd", "op_out_bytes", "op_out_bytes", Rate),
    ("osd", "op_latency", "op_latency_ns", Mean),
    ("osd", "op_r_latency", "op_r_latency_ns", Mean),
    ("osd", "op_w_latency", "op_w_latency_ns", Mean),
    ("osd", "op_rw_latency", "op_rw_latency_ns", Mean),
    ("osd", "op_process_latency", "op_process_latency_ns", Mean),
    ("osd", "op_before_dequeue_op_lat", "op_before_dequeue_ns", Mean),
    ("osd", "subop", "subop", Rate),
    ("osd", "subop_latency", "subop_latency_ns", Mean),
    ("osd", "op_wip", "op_wip", State),
    ("osd", "recovery_ops", "recovery_ops", Rate),
    ("bluestore", "kv_flush_lat", "kv_flush_ns", Mean),
    ("bluestore", "kv_commit_lat", "kv_commit_ns", Mean),
    ("bluestore", "kv_sync_lat", "kv_sync_ns", Mean),
    ("bluestore", "kv_sync_lat", "kv_sync_busy", Busy),
    ("bluestore", "throttle_lat", "throttle_ns", Mean),
    ("bluestore", "state_aio_wait_lat", "state_aio_wait_ns", Mean),
    ("bluestore", "state_kv_queued_lat", "state_kv_queued_ns", Mean),
    // Ceph's own spelling.
    ("bluestore", "state_kv_commiting_lat", "state_kv_committing_ns", Mean),
    ("bluestore", "commit_lat", "commit_ns", Mean),
    ("bluestore", "onode_hits", "onode_hits", Rate),
    ("bluestore", "onode_misses", "onode_misses", Rate),
    ("bluefs", "slow_used_bytes", "slow_used_bytes", State),
];

/// Of gateways until version 18.
const GATEWAY: &[Row] = &[
    ("rgw", "req", "req", Rate),
    ("rgw", "qlen", "qlen", State),
    ("rgw", "qactive", "qactive", State),
    ("rgw", "cache_hit", "cache_hit", Rate),
    ("rgw", "cache_miss", "cache_miss", Rate),
    ("rgw", "get", "get", Rate),
    ("rgw", "put", "put", Rate),
    ("rgw", "get_b", "get_bytes", Rate),
    ("rgw", "put_b", "put_bytes", Rate),
    ("rgw", "get_initial_lat", "get_latency_ns", Mean),
    ("rgw", "put_initial_lat", "put_latency_ns", Mean),
];

/// Names that later versions gave to counters: metric, logger and counter.
const RENAMED: &[(&str, &str, &str)] = &[
    ("get", "rgw_op", "get_obj_ops"),
    ("put", "rgw_op", "put_obj_ops"),
    ("get_bytes", "rgw_op", "get_obj_bytes"),
    ("put_bytes", "rgw_op", "put_obj_bytes"),
    ("get_latency_ns", "rgw_op", "get_obj_lat"),
    ("put_latency_ns", "rgw_op", "put_obj_lat"),
    ("op_before_dequeue_ns", "osd", "op_before_dequeue_op_latency"),
    ("state_kv_committing_ns", "bluestore", "state_kv_committing_lat"),
    ("onode_hits", "bluestore", "bluestore_onode_hits"),
    ("onode_misses", "bluestore", "bluestore_onode_misses"),
    ("commit_ns", "bluestore", "txc_commit_lat"),
    ("throttle_ns", "bluestore", "txc_throttle_lat"),
];

/// The loggers of one daemon that are of use; the others are skipped as they are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Dump {
    osd: Value,
    bluestore: Value,
    bluefs: Value,
    mempool: Value,
    rgw: Value,
    rgw_op: Value,
    cluster: Value,
}

/// A counter's value, or its sum and count.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counter {
    Number(f64),
    /// Seconds, and how many times.
    Average(f64, f64),
}

impl Dump {
    pub(super) fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }

    /// Whether nothing of use is in it.
    pub(super) fn is_empty(&self) -> bool {
        [&self.osd, &self.rgw, &self.rgw_op, &self.cluster].iter().all(|logger| logger.is_null())
    }

    /// Counters that such a daemon should have and has not.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let missing = self.rows().filter(|row| self.counter(row).is_none());
        missing.map(|(_, counter, ..)| *counter).collect()
    }

    fn rows(&self) -> impl Iterator<Item = &'static Row> {
        let rows = |is: bool, rows: &'static [Row]| if is { rows } else { &[] };
        let gateway = !self.rgw.is_null() || !self.rgw_op.is_null();
        rows(!self.osd.is_null(), OSD).iter().chain(rows(gateway, GATEWAY))
    }

    fn counter(&self, (logger, counter, metric, _): &Row) -> Option<Counter> {
        self.find(logger, counter).or_else(|| {
            let mut renamed = RENAMED.iter().filter(|(of, ..)| of == metric);
            renamed.find_map(|(_, logger, counter)| self.find(logger, counter))
        })
    }

    fn find(&self, logger: &str, counter: &str) -> Option<Counter> {
        let found = counters(match logger {
            "osd" => &self.osd,
            "bluestore" => &self.bluestore,
            "bluefs" => &self.bluefs,
            "rgw" => &self.rgw,
            "rgw_op" => &self.rgw_op,
            _ => &self.cluster,
        })
        .get(counter)?;
        match found.as_f64() {
            Some(number) => Some(Counter::Number(number)),
            None => Some(Counter::Average(found.get("sum")?.as_f64()?, found.get("avgcount")?.as_f64()?)),
        }
    }

    /// What BlueStore's caches hold, bytes.
    fn cache_bytes(&self) -> Option<f64> {
        let pools = counters(&self.mempool).as_object()?;
        let cache = |name: &str| name.starts_with("bluestore_cache_") && name.ends_with("_bytes");
        let sizes: Vec<f64> =
            pools.iter().filter(|(name, _)| cache(name)).filter_map(|(_, size)| size.as_f64()).collect();
        (!sizes.is_empty()).then(|| sizes.iter().sum())
    }
}

/// The counters of a logger: itself, or those of the one without labels in a list.
fn counters(logger: &Value) -> &Value {
    logger.get(0).and_then(|first| first.get("counters")).unwrap_or(logger)
}

/// What a daemon had counted when it was last asked.
#[derive(Default)]
pub(super) struct Counted(Option<(Instant, Dump)>);

impl Counted {
    /// Adds what it did since it was asked before, if it was, up to `now`, and says which counters it lacks.
    pub(super) fn take(&mut self, name: &str, now: Instant, dump: Dump, out: &mut Sample, gaps: &mut Gaps) {
        let missing = dump.missing();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            gaps.say(format!("{name} has no counters {missing}: its version of Ceph differs."));
        }
        if let Some((then, before)) = &self.0 {
            out.seconds = Some(now.duration_since(*then).as_secs_f64().max(1e-3));
            put(name, before, &dump, out);
        }
        self.0 = Some((now, dump));
    }
}

/// What a daemon did between two dumps, which are `out.seconds` apart.
fn put(name: &str, before: &Dump, now: &Dump, out: &mut Sample) {
    let Some(seconds) = out.seconds else { return };
    for row in now.rows() {
        let (.., metric, take) = row;
        let (Some(then), Some(now)) = (before.counter(row), now.counter(row)) else { continue };
        let value = match (take, then, now) {
            (State, _, Counter::Number(now)) => now,
            (Rate, Counter::Number(then), Counter::Number(now)) => (now - then).max(0.0) / seconds,
            // 0 / 0 is left out: nothing was counted. A daemon that was started anew counts from 0.
            (Mean, Counter::Average(sum, count), Counter::Average(now, counted)) if now >= sum => {
                (now - sum) / (counted - count).max(0.0) * 1e9
            }
            (Busy, Counter::Average(sum, _), Counter::Average(now, _)) => {
                ((now - sum).max(0.0) / seconds).min(1.0)
            }
            _ => continue,
        };
        out.put(Kind::Ceph, name, metric, value);
    }
    if let Some(bytes) = now.cache_bytes().filter(|_| !now.osd.is_null()) {
        out.put(Kind::Ceph, name, "cache_bytes", bytes);
    }
}

/// The state of the cluster, as a monitor sees it. One that does not lead sees nothing.
pub(super) fn cluster(dump: &Dump, out: &mut Sample) {
    let number = |counter: &str| match dump.find("cluster", counter) {
        Some(Counter::Number(number)) => Some(number),
        _ => None,
    };
    if number("num_osd").is_none_or(|osds| osds <= 0.0) {
        return;
    }
    let less = |all: &str, good: &str| Some((number(all)? - number(good)?).max(0.0));
    let states = [
        ("osds_down", less("num_osd", "num_osd_up")),
        ("pgs_not_clean", less("num_pg", "num_pg_active_clean")),
        ("objects_degraded", number("num_object_degraded")),
        ("objects_misplaced", number("num_object_misplaced")),
    ];
    for (metric, value) in states {
        value.into_iter().for_each(|value| out.put(Kind::Ceph, "cluster", metric, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(out: &Sample, metric: &str) -> Option<f64> {
        out.values.iter().find(|value| value.metric == metric).map(|value| value.value)
    }

    fn between(before: &str, after: &str) -> Sample {
        let mut out = Sample { seconds: Some(2.0), values: Vec::new() };
        put(
            "osd.0",
            &Dump::parse(before.as_bytes()).unwrap(),
            &Dump::parse(after.as_bytes()).unwrap(),
            &mut out,
        );
        out
    }

    #[test]
    fn means_are_of_the_time_between_two_dumps() {
        let before = r#"{"AsyncMessenger::Worker-0":{"x":1},"osd":{"op":100},"bluestore":{"kv_sync_lat":{"avgcount":358,"sum":0.6,"avgtime":0.0017}}}"#;
        let after = r#"{"osd":{"op":150},"bluestore":{"kv_sync_lat":{"avgcount":368,"sum":1.6,"avgtime":0.0017}},"mempool":{"bluestore_cache_data_bytes":7,"bluestore_cache_data_items":1,"bluestore_cache_onode_bytes":5}}"#;
        let out = between(before, after);
        assert_eq!(value(&out, "op"), Some(25.0));
        assert_eq!(value(&out, "kv_sync_ns"), Some(1e8));
        assert_eq!(value(&out, "kv_sync_busy"), Some(0.5));
        assert_eq!(value(&out, "cache_bytes"), Some(12.0));
        let restarted = between(after, before);
        assert_eq!((value(&restarted, "op"), value(&restarted, "kv_sync_ns")), (Some(0.0), None));
        let idle = between(after, after);
        assert_eq!((value(&idle, "kv_sync_ns"), value(&idle, "kv_sync_busy")), (None, Some(0.0)));
    }

    #[test]
    fn newer_names_and_the_newer_form_are_understood() {
        let gateway = |gets: u64| {
            format!(
                r#"{{"rgw":[{{"labels":{{}},"counters":{{"qlen":4}}}}],"rgw_op":[{{"labels":{{}},"counters":{{"get_obj_ops":{gets},"get_obj_lat":{{"avgcount":{gets},"sum":{gets}}}}}}}]}}"#
            )
        };
        let out = between(&gateway(10), &gateway(14));
        assert_eq!((value(&out, "qlen"), value(&out, "get")), (Some(4.0), Some(2.0)));
        assert_eq!(value(&out, "get_latency_ns"), Some(1e9));
    }

    #[test]
    fn what_is_missing_is_named() {
        let dump = Dump::parse(br#"{"rgw":{"req":1,"qlen":0,"qactive":0,"cache_hit":0,"cache_miss":0,"get":0,"put":0,"get_b":0,"put_b":0,"get_initial_lat":{"avgcount":0,"sum":0}}}"#).unwrap();
        assert_eq!(dump.missing(), ["put_initial_lat"]);
        assert!(Dump::parse(br#"{"mds":{}}"#).unwrap().is_empty());
    }

    #[test]
    fn a_monitor_that_leads_tells_the_state_of_the_cluster() {
        let dump = Dump::parse(br#"{"cluster":{"num_osd":3,"num_osd_up":2,"num_pg":113,"num_pg_active_clean":100,"num_object_degraded":5}}"#).unwrap();
        let mut out = Sample::default();
        cluster(&dump, &mut out);
        assert_eq!((value(&out, "osds_down"), value(&out, "pgs_not_clean")), (Some(1.0), Some(13.0)));
        assert_eq!((value(&out, "objects_degraded"), value(&out, "objects_misplaced")), (Some(5.0), None));
        let mut follower = Sample::default();
        cluster(&Dump::parse(br#"{"cluster":{"num_osd":0,"num_osd_up":0}}"#).unwrap(), &mut follower);
        assert!(follower.values.is_empty());
    }

    proptest! {
        #[test]
        fn odd_replies_do_not_panic(text in "(\\{|\\}|\\[|\\]|\"osd\"|\"op\"|:|,|[0-9]{0,30}|null|.){0,30}") {
            if let Ok(dump) = Dump::parse(text.as_bytes()) {
                let mut out = Sample { seconds: Some(1.0), values: Vec::new() };
                put("osd.0", &dump, &dump, &mut out);
                cluster(&dump, &mut out);
                let _ = dump.missing();
            }
        }
    }
}
