//! Nodes made up so that each rule fires for its reason and for no other.

use super::super::testing::{healthy, healthy_open, invalid_for, invalid_with, sweep_run, work};
use super::*;
use crate::judge;
use tidemark_measure::axis::Axis;
use tidemark_measure::kind::WorkKind;
use tidemark_measure::observation::Series;
use tidemark_measure::record::{Behind, DeviceUse, OwnIo, Proof};

mod generators;

/// Twenty seconds of a node of four idle processors that generates the load, and these values all the time.
fn node(values: &[(Kind, &str, &str, f64)]) -> Node {
    let series = values.iter().map(|(kind, subject, metric, value)| Series {
        kind: *kind,
        subject: (*subject).to_owned(),
        metric: (*metric).to_owned(),
        values: vec![*value as f32; 21],
    });
    Node {
        name: "a".into(),
        generates: true,
        source: "local".into(),
        facts: vec![("processors".into(), "4".into())],
        at_ns: (0..21).map(|second| second * SECOND_NS).collect(),
        series: series.collect(),
        gaps: Vec::new(),
    }
}

/// The healthy run with these values.
fn with(values: &[(Kind, &str, &str, f64)]) -> Run {
    let mut run = healthy();
    run.nodes = vec![node(values)];
    run
}

/// Rule, severity and title of the findings with these rules.
fn found(run: &Run, is_meant: impl Fn(&str) -> bool) -> Vec<(&'static str, Severity, String)> {
    let findings = judge(run).findings.into_iter().filter(|finding| is_meant(finding.rule()));
    findings.map(|finding| (finding.rule(), finding.severity, finding.title())).collect()
}

/// What is said to be the limit, the target's own latency apart.
fn said(run: &Run) -> Vec<(&'static str, Severity, String)> {
    found(run, |rule| rule.starts_with("limit-") && !["limit-latency", "limit-unknown"].contains(&rule))
}

/// What is said to be busy and not shown to be the limit.
fn busy(run: &Run) -> Vec<String> {
    found(run, |rule| rule.starts_with("busy-")).into_iter().map(|(.., title)| title).collect()
}

/// What is said where nothing is at its limit.
fn rest(run: &Run) -> Vec<String> {
    let titles = found(run, |rule| ["limit-latency", "limit-unknown"].contains(&rule));
    titles.into_iter().map(|(.., title)| title).collect()
}

fn rules(values: &[(Kind, &str, &str, f64)]) -> Vec<&'static str> {
    said(&with(values)).into_iter().map(|(rule, ..)| rule).collect()
}

fn evidence(run: &Run, rule: &str) -> String {
    let findings = judge(run).findings.into_iter().filter(|finding| finding.rule() == rule);
    findings.flat_map(|finding| finding.evidence()).collect::<Vec<_>>().join("\n")
}

const IDLE: &[(Kind, &str, &str, f64)] = &[
    (Kind::Cpu, "all", "busy", 0.3),
    (Kind::Disk, "vda", "busy", 0.4),
    (Kind::Disk, "vda", "queue", 0.6),
    (Kind::Disk, "loop3", "write_ops", 300.0),
    (Kind::Disk, "loop3", "write_ops_limit", 500.0),
    (Kind::Network, "eth0", "speed", 125e6),
    (Kind::Network, "eth0", "rx_bytes", 50e6),
    (Kind::Network, "tcp", "sent_segments", 5000.0),
    (Kind::Network, "tcp", "retransmitted_segments", 0.5),
    (Kind::Memory, "node", "major_faults", 2.0),
    (Kind::Process, "tidemark", "cpu", 0.35),
    (Kind::Process, "tidemark", "waiting", 0.05),
    (Kind::Process, "ceph-osd.0", "cpu", 0.6),
    (Kind::Process, "ceph-osd.0", "busiest_thread", 0.3),
    (Kind::Cgroup, "ceph-osd.0", "cpu_limit", 2.0),
    (Kind::Cgroup, "ceph-osd.0", "throttled_periods", 0.01),
    (Kind::Ceph, "osd.0", "op", 400.0),
    (Kind::Ceph, "osd.0", "op_latency_ns", 2e6),
    (Kind::Ceph, "osd.0", "op_before_dequeue_ns", 1e5),
    (Kind::Ceph, "osd.0", "commit_ns", 2e6),
    (Kind::Ceph, "osd.0", "kv_sync_ns", 1e6),
    (Kind::Ceph, "osd.0", "kv_sync_busy", 0.3),
    (Kind::Ceph, "osd.0", "throttle_ns", 1e4),
];

#[test]
fn a_system_with_reserve_has_no_bottleneck() {
    assert_eq!(said(&with(IDLE)), []);
    assert_eq!(said(&healthy()), [], "nobody observed");
    assert_eq!(said(&with(&[])), []);
}

#[test]
fn a_throttled_disk_is_found_though_it_looks_idle() {
    let run = with(&[
        (Kind::Disk, "loop3", "write_ops", 497.2),
        (Kind::Disk, "loop3", "write_ops_limit", 500.0),
        (Kind::Disk, "loop3", "busy", 0.02),
        (Kind::Disk, "loop4", "write_ops", 300.0),
        (Kind::Disk, "loop4", "write_ops_limit", 500.0),
    ]);
    let title = "disk loop3 was at its limit of 500 writes/s, likely the limit".to_owned();
    assert_eq!(said(&run), [("limit-disk", Severity::Warning, title)]);
    let evidence = evidence(&run, "limit-disk");
    assert!(evidence.contains("loop3: mean 497.2 writes/s of 500.0 allowed = 99.44 %"), "{evidence}");
    assert!(evidence.contains("loop4: mean 300.0 writes/s"), "the others are shown too: {evidence}");
    let shared = [(Kind::Disk, "vda", "write_ops", 347.0), (Kind::Disk, "vda", "write_ops_limit", 100.0)];
    assert_eq!(rules(&shared), [""; 0], "most of it is somebody else's");
    let both = with(&[
        (Kind::Disk, "loop3", "read_bytes", 50e6),
        (Kind::Disk, "loop3", "read_bytes_limit", 50e6),
        (Kind::Disk, "loop4", "read_bytes", 49e6),
        (Kind::Disk, "loop4", "read_bytes_limit", 50e6),
    ]);
    assert_eq!(
        said(&both)[0].2,
        "disks loop3 and loop4 were at their limits of 50.0 MB/s read, likely the limit"
    );
}

#[test]
fn only_the_measured_window_counts() {
    let mut run =
        with(&[(Kind::Disk, "loop3", "write_ops", 500.0), (Kind::Disk, "loop3", "write_ops_limit", 500.0)]);
    run.nodes[0].series[0].values[15..].fill(0.0);
    assert!(said(&run).is_empty(), "the mean is over all of it");
    work(&mut run).window_end_ns = 14 * SECOND_NS;
    assert_eq!(said(&run).len(), 1);
    work(&mut run).started_ns = 10 * SECOND_NS;
    assert!(said(&run).is_empty(), "windows are on the work's clock, samples on the run's");
    work(&mut run).started_ns = 0;
    work(&mut run).window_end_ns = 2 * SECOND_NS;
    assert!(said(&run).is_empty(), "two samples say nothing");
    work(&mut run).window_end_ns = 14 * SECOND_NS;
    work(&mut run).kind = WorkKind::Prepare;
    assert!(said(&run).is_empty(), "nothing is measured");
}

const VDA_BUSY: [(Kind, &str, &str, f64); 5] = [
    (Kind::Disk, "vda", "busy", 0.97),
    (Kind::Disk, "vda", "queue", 5.0),
    (Kind::Disk, "vda", "write_bytes", 100e6),
    (Kind::Process, "server", "threads", 3.0),
    (Kind::Process, "server", "open_files", 9.0),
];

#[test]
fn a_disk_that_others_keep_busy_is_not_the_limit() {
    let run = with(&VDA_BUSY);
    assert_eq!(said(&run), []);
    let title =
        "disk vda was busy 97.00 % of the time, not shown to be the limit: 100 % of that was not the load's";
    assert_eq!(busy(&run), [title]);
    let mut unseen = run.clone();
    unseen.nodes[0].series.pop();
    let title =
        "disk vda was busy 97.00 % of the time, not shown to be the limit: it is not known whose that was";
    assert_eq!((said(&unseen), busy(&unseen)), (vec![], vec![title.to_owned()]));
    let mut volumes = run.clone();
    let counted = |device: &str, bytes| DeviceUse {
        device: device.into(),
        written_bytes: bytes,
        ..DeviceUse::default()
    };
    let own = |written_bytes| {
        let behind = Behind { device: "vda".into(), written_bytes: 4_000_000_000, ..Behind::default() };
        let device = DeviceUse { behind: Some(behind), ..counted("loop3", 2_000_000_000) };
        let own = Some(OwnIo { read_bytes: 0, written_bytes });
        Some(Proof { direct: true, devices: vec![device], own, ..Proof::default() })
    };
    volumes.stages[0].proof = own(1_900_000_000);
    assert!(busy(&volumes)[0].ends_with("52 % of that was not the load's"), "{:?}", busy(&volumes));
    volumes.stages[0].proof = own(3_900_000_000);
    assert_eq!(said(&volumes)[0].0, "limit-disk", "the disk under the volumes' loop device");
}

#[test]
fn a_busy_disk_is_a_warning_when_all_tasks_wait_for_it() {
    let disk = |extra: &[(Kind, &str, &str, f64)]| {
        let mut values = VDA_BUSY.to_vec();
        values.push((Kind::Disk, "vda", "observed_bytes", 90e6));
        values.extend(extra);
        with(&values)
    };
    assert_eq!(said(&disk(&[]))[0].1, Severity::Note, "it may have reserve");
    assert_eq!(said(&disk(&[(Kind::Pressure, "io", "full", 0.2)]))[0].1, Severity::Warning);
    let first = VDA_BUSY[0];
    assert_eq!(
        rules(&[first, (Kind::Disk, "vda", "queue", 1.0)]),
        [""; 0],
        "one request at a time is no queue"
    );
}

#[test]
fn used_up_processors_are_found_with_their_users() {
    let run = with(&[
        (Kind::Cpu, "all", "busy", 0.96),
        (Kind::Process, "tidemark", "cpu", 0.5),
        (Kind::Process, "ceph-osd.0", "cpu", 3.0),
    ]);
    assert_eq!(
        said(&run),
        [(
            "limit-processor",
            Severity::Warning,
            "the processors were 96.00 % busy, likely the limit".to_owned()
        )]
    );
    let evidence = evidence(&run, "limit-processor");
    assert!(
        evidence.contains("used by: ceph-osd.0 3.00 cores, tidemark 0.50 cores, not observed 0.34 cores"),
        "{evidence}"
    );
    assert!(evidence.contains("= 3.84 of 4 cores"), "{evidence}");
    assert!(!invalid_for(&run, ""), "it was the servers");
    assert_eq!(rules(&[(Kind::Cpu, "all", "busy", 0.8)]), [""; 0]);
}

#[test]
fn processors_that_others_keep_busy_are_not_the_limit() {
    let shared = |own, nice| {
        let values = [
            (Kind::Cpu, "all", "busy", 1.0),
            (Kind::Cpu, "all", "nice", nice),
            (Kind::Process, "ceph-osd.0", "cpu", own),
        ];
        with(&values)
    };
    let title = "the processors were 100 % busy, not shown to be the limit: 75 % of that was not the load's";
    assert_eq!((said(&shared(1.0, 0.0)), busy(&shared(1.0, 0.0))), (vec![], vec![title.to_owned()]));
    let gives_way = shared(3.2, 0.2);
    assert_eq!(said(&gives_way), [], "80 % of the node, and the rest gives way");
    let line = "not observed 0.80 cores (0.80 of them with low priority)";
    assert!(
        evidence(&gives_way, "busy-processor").contains(line),
        "{}",
        evidence(&gives_way, "busy-processor")
    );
    assert_eq!(said(&shared(3.2, 0.0))[0].0, "limit-processor", "what does not give way leaves nothing");
    assert_eq!(said(&shared(3.9, 0.9))[0].0, "limit-processor", "its own low priority is its own use");
}

#[test]
fn daemons_are_limited_by_one_thread_or_by_their_quota() {
    let values = [
        (Kind::Process, "ceph-osd.0", "busiest_thread", 0.97),
        (Kind::Process, "ceph-osd.0", "cpu", 1.4),
        (Kind::Process, "tidemark", "busiest_thread", 1.0),
    ];
    let run = with(&values);
    let title = "one thread of ceph-osd.0 used 97.00 % of a core, likely the limit".to_owned();
    assert_eq!(said(&run), [("limit-process", Severity::Warning, title)]);
    let quota = [(Kind::Process, "ceph-osd.0", "cpu", 1.9), (Kind::Cgroup, "ceph-osd.0", "cpu_limit", 2.0)];
    assert_eq!(
        said(&with(&quota))[0].2,
        "ceph-osd.0 used 95.00 % of the 2.00 cores it may use, likely the limit"
    );
    let [cpu, limit] = quota;
    let stopped = with(&[cpu, limit, (Kind::Cgroup, "ceph-osd.0", "throttled_periods", 0.4)]);
    let said = said(&stopped);
    assert_eq!(said.iter().map(|(rule, ..)| *rule).collect::<Vec<_>>(), ["limit-cgroup"], "said once");
    assert_eq!(said[0].2, "CPU quota throttled ceph-osd.0 in up to 40.00 % of its periods, likely the limit");
    let all = [(Kind::Process, "ceph-osd.0", "cpu", 3.9), (Kind::Process, "ceph-osd.0", "allowed", 4.0)];
    assert_eq!(rules(&all), [""; 0], "it may use the whole node");
}

#[test]
fn a_full_link_is_the_limit_of_what_filled_it() {
    let full = [(Kind::Network, "eth0", "speed", 125e6), (Kind::Network, "eth0", "rx_bytes", 117e6)];
    let mut run = with(&full);
    let others = "network link eth0 was full: 93.60 % of its speed receiving, not shown to be the limit: 99 % of \
                  that was not the load's";
    assert_eq!((said(&run), busy(&run)), (vec![], vec![others.to_owned()]));
    work(&mut run).operations[0].tally.bytes = 20 * 110_000_000;
    assert_eq!(
        said(&run)[0].2,
        "network link eth0 was full: 93.60 % of its speed receiving, likely the limit"
    );
    run.nodes[0].series[1].metric = "tx_bytes".into();
    assert_eq!(said(&run), [], "the load reads: it sends next to nothing");
}

#[test]
fn a_full_traffic_shaper_is_found_though_the_link_looks_idle() {
    let mut run = with(&[
        (Kind::Network, "eth0", "speed", 1250e6),
        (Kind::Network, "eth0", "tx_bytes", 24.9e6),
        (Kind::Network, "eth0", "shaper_rate", 25e6),
        (Kind::Network, "eth0", "shaped_bytes", 24.8e6),
        (Kind::Network, "eth0", "shaper_backlog", 65536.0),
        (Kind::Network, "connections", "count", 8.0),
        (Kind::Network, "connections", "sending", 7.5),
        (Kind::Network, "connections", "receiver_limited", 0.2),
    ]);
    work(&mut run).operations[0].class = OperationClass::Write;
    work(&mut run).operations[0].tally.bytes = 20 * 24_000_000;
    let title = "the traffic shaper of network link eth0 was full: 99.20 % of 25.0 MB/s, likely the limit";
    assert_eq!(said(&run), [("limit-network", Severity::Warning, title.to_owned())]);
    let evidence = evidence(&run, "limit-network");
    assert!(
        evidence.contains("let out 24.8 MB/s of 25.0 MB/s = 99.20 %; 64.0 KiB waited in it"),
        "{evidence}"
    );
    let line = "of 8 connections 7.5 had data on their way on average: 0.2 waited for the receiver";
    assert!(evidence.contains(line), "{evidence}");
    run.nodes[0].series[3].values.fill(20e6);
    assert_eq!(said(&run), []);
}

#[test]
fn losses_are_the_load_s_only_where_its_own_connections_had_them() {
    let of_node = [
        (Kind::Network, "tcp", "sent_segments", 980.0),
        (Kind::Network, "tcp", "retransmitted_segments", 20.0),
        (Kind::Network, "tcp", "listen_drops", 12.0),
    ];
    let run = with(&of_node);
    assert_eq!(said(&run), [], "anybody's");
    let title =
        "the network lost packets or connections, not shown to be the limit: it is not known whose that was";
    assert_eq!(busy(&run), [title]);
    assert!(evidence(&run, "busy-network").contains("20.0 of the node's 1000.0 TCP segments"));
    let own = [
        (Kind::Network, "connections", "count", 8.0),
        (Kind::Network, "connections", "sent_segments", 500.0),
        (Kind::Network, "connections", "retransmitted_segments", 10.0),
    ];
    let run = with(&[of_node.as_slice(), &own].concat());
    assert_eq!(said(&run)[0].2, "the network lost packets of the load, likely the limit");
    assert!(evidence(&run, "limit-network").contains("10.0 of the load's 500.0 TCP segments"));
    assert_eq!(busy(&with(&[(Kind::Network, "softnet", "dropped", 0.5)])), [""; 0]);
    assert_eq!(busy(&with(&[(Kind::Network, "softnet", "dropped", 5.0)])).len(), 1);
}

#[test]
fn memory_is_short_for_whom_it_is() {
    let of_node = [(Kind::Memory, "node", "major_faults", 500.0)];
    assert_eq!(rules(&of_node), [""; 0], "anybody's");
    assert_eq!(busy(&with(&of_node)).len(), 1);
    let own = (Kind::Process, "ceph-osd.0", "major_faults", 400.0);
    assert_eq!(rules(&[of_node[0], own]), ["limit-memory"]);
    assert_eq!(busy(&with(&[(Kind::Memory, "node", "swap_in", 5e6)])).len(), 1);
    assert_eq!(busy(&with(&[(Kind::Pressure, "memory", "some", 0.2)])).len(), 1);
    let group = [
        (Kind::Cgroup, "ceph-osd.0", "memory_limit", 128e6),
        (Kind::Cgroup, "ceph-osd.0", "memory_limit_hits", 300.0),
        (Kind::Cgroup, "ceph-osd.0", "refault_bytes", 80e6),
    ];
    let run = with(&group);
    let title =
        "memory was short in the control group of ceph-osd.0, which may use 122 MiB, likely the limit";
    assert_eq!(said(&run), [("limit-memory", Severity::Warning, title.to_owned())]);
    let evidence = evidence(&run, "limit-memory");
    assert!(evidence.contains("80.0 MB/s given back and read again"), "{evidence}");
    assert_eq!(rules(&group[..2]), [""; 0], "page cache fills a group without harm");
    let pressed = [group[0], group[1], (Kind::Cgroup, "ceph-osd.0", "memory_pressure", 0.3)];
    assert_eq!(rules(&pressed), ["limit-memory"]);
}

/// A node on which the server is observed, and waits for something that is not.
const WAITS: [(Kind, &str, &str, f64); 4] = [
    (Kind::Cpu, "all", "busy", 0.1),
    (Kind::Process, "server", "cpu", 0.1),
    (Kind::Process, "server", "busiest_thread", 0.08),
    (Kind::Process, "tidemark", "cpu", 0.2),
];

#[test]
fn where_nothing_is_busy_it_is_the_target_s_own_latency() {
    let own = "the target's own latency was the limit: nothing that the load uses was busy";
    let run = with(&WAITS);
    assert_eq!((said(&run), rest(&run)), (vec![], vec![own.to_owned()]));
    let lines = evidence(&run, "limit-latency");
    assert!(lines.contains("a: processors 10.00 % busy; the busiest thread of server 8.00 %"), "{lines}");
    let mut unseen = run.clone();
    unseen.nodes[0].series.retain(|series| series.subject != "server");
    assert!(rest(&unseen)[0].ends_with("the target's processes were not observed"), "{:?}", rest(&unseen));
    work(&mut unseen).in_process = true;
    assert_eq!(rest(&unseen), [own], "the server is within the generator's process");
    let thread = (Kind::Process, "tidemark", "busiest_thread", 0.96);
    let mut served = with(&[WAITS.as_slice(), &[thread]].concat());
    assert_eq!((said(&served), rest(&served)), (vec![], vec![]), "whose thread that is is not known");
    work(&mut served).in_process = true;
    assert_eq!(said(&served)[0].2, "one thread of tidemark used 96.00 % of a core, likely the limit");
    let mut open = healthy_open();
    open.nodes = run.nodes.clone();
    assert_eq!(rest(&open), [""; 0], "it did what it was asked for");
    let also = |extra: &[(Kind, &str, &str, f64)]| rest(&with(&[&WAITS, extra].concat()));
    assert_eq!(also(&VDA_BUSY), [own], "others' disk");
    let touched = (Kind::Disk, "vda", "observed_bytes_most", 20e6);
    assert_eq!(also(&[VDA_BUSY.as_slice(), &[touched]].concat()), [""; 0], "the load uses it as well");
    let mut loops = WAITS;
    loops[0].3 = 1.0;
    assert_eq!(
        rest(&with(&loops)),
        [""; 0],
        "others' loops: the load did not wait for them, its server may have"
    );
    let waited = (Kind::Process, "server", "waiting", 1.5);
    assert_eq!(rest(&with(&[loops.as_slice(), &[waited]].concat())), [""; 0]);
    let queued = (Kind::Process, "server", "waiting", 0.85);
    assert_eq!(also(&[queued]), [""; 0], "its one thread may never have rested");
    assert_eq!(also(&[(Kind::Network, "tcp", "listen_drops", 12.0)]), [""; 0], "perhaps its connections");
    let seen = [(Kind::Network, "tcp", "listen_drops", 12.0), (Kind::Network, "connections", "count", 8.0)];
    assert_eq!(also(&seen), [own]);
}

#[test]
fn what_was_in_use_every_other_time_is_not_called_idle() {
    let also = |extra: &[(Kind, &str, &str, f64)]| rest(&with(&[&WAITS[1..], extra].concat())).len();
    let processors = |busy| (Kind::Cpu, "all", "busy", busy);
    assert_eq!([0.49, 0.51].map(|busy| also(&[processors(busy)])), [1, 0]);
    let disk = |busy| {
        let own = (Kind::Disk, "vda", "observed_bytes", 20e6);
        [processors(0.1), (Kind::Disk, "vda", "busy", busy), (Kind::Disk, "vda", "write_bytes", 20e6), own]
    };
    assert_eq!([0.49, 0.65].map(|busy| also(&disk(busy))), [1, 0]);
    let waited = (Kind::Process, "tidemark", "load_waiting", 0.2);
    assert_eq!(also(&[processors(0.4), waited]), 0, "the generator had to wait for processors itself");
    let lines = evidence(&with(&WAITS), "limit-latency");
    assert!(lines.contains("in use less than 50.00 % of the time"), "{lines}");
}

#[test]
fn a_short_window_tells_nothing() {
    let mut run = with(&WAITS);
    work(&mut run).window_end_ns = 2 * SECOND_NS;
    assert_eq!(rest(&run), ["too few samples to tell what limited the load"]);
    assert_eq!(evidence(&run, "limit-unknown"), "samples of the nodes in the window: 2, needed: 3");
    run.nodes.clear();
    assert_eq!(rest(&run), [""; 0], "nobody observed");
}

#[test]
fn a_sweep_tells_whether_more_load_brings_more() {
    let sweep = |rates: [u64; 3]| {
        let mut run = sweep_run(&["4KiB", "4KiB", "4KiB"], 1);
        for ((stage, clients), ok) in run.stages.iter_mut().zip([1, 2, 4]).zip(rates) {
            stage.cell.as_mut().unwrap().axes[2] = Axis::count("clients", clients);
            stage.works[0].operations[0].tally.ok = ok * 20;
        }
        run.nodes = vec![node(&[(Kind::Process, "server", "busiest_thread", 0.95)])];
        found(&run, |rule| rule.ends_with("-process"))
    };
    let grows = sweep([400, 800, 1600]);
    assert!(grows.iter().all(|(rule, ..)| *rule == "busy-process"), "{grows:?}");
    assert!(grows[0].2.ends_with("not the limit there: more load brought more"), "{grows:?}");
    let ends = sweep([400, 800, 810]);
    let rules: Vec<_> = ends.iter().map(|(rule, ..)| *rule).collect();
    assert_eq!(rules, ["limit-process", "limit-process", "busy-process"], "at two and at four clients");
    assert!(ends[0].2.ends_with(", and more load brought no more"), "{ends:?}");
}

const FLUSH: &[(Kind, &str, &str, f64)] = &[
    (Kind::Ceph, "osd.0", "op", 200.0),
    (Kind::Ceph, "osd.0", "commit_ns", 10e6),
    (Kind::Ceph, "osd.0", "state_kv_queued_ns", 4e6),
    (Kind::Ceph, "osd.0", "state_kv_committing_ns", 4e6),
    (Kind::Ceph, "osd.0", "kv_sync_ns", 4e6),
    (Kind::Ceph, "osd.0", "kv_sync_busy", 0.9),
];

#[test]
fn slow_commits_are_found_where_nothing_else_is() {
    let run = with(FLUSH);
    let title = "metadata commits took most of the write time in osd.0, likely the limit".to_owned();
    assert_eq!(said(&run), [("limit-flush", Severity::Warning, title)]);
    assert!(evidence(&run, "limit-flush").contains("8.00 ms of a 10.0 ms transaction = 80.00 %"));
    let mut throttled = FLUSH.to_vec();
    throttled
        .extend([(Kind::Disk, "loop3", "write_ops", 500.0), (Kind::Disk, "loop3", "write_ops_limit", 500.0)]);
    assert_eq!(rules(&throttled), ["limit-disk"], "commits are slow because the disk is");
    let mut rested = FLUSH.to_vec();
    rested[5].3 = 0.5;
    assert_eq!(rules(&rested), [""; 0]);
    let mut few = FLUSH.to_vec();
    few[0].3 = 0.5;
    assert_eq!(rules(&few), [""; 0]);
}

#[test]
fn waits_inside_daemons_are_found_where_the_machine_is_idle() {
    let waiting = [
        (Kind::Ceph, "osd.0", "op", 200.0),
        (Kind::Ceph, "osd.0", "op_latency_ns", 10e6),
        (Kind::Ceph, "osd.0", "op_before_dequeue_ns", 7e6),
    ];
    let title =
        "operations waited in the queues of osd.0 while processors and disks had headroom, likely the limit"
            .to_owned();
    assert_eq!(said(&with(&waiting)), [("limit-queue", Severity::Warning, title)]);
    let [op, latency, wait] = waiting;
    assert_eq!(
        rules(&[op, latency, wait, (Kind::Cpu, "all", "busy", 0.75)]),
        [""; 0],
        "it may be the processors"
    );
    assert_eq!(rules(&[(Kind::Ceph, "client.rgw.a", "qlen", 12.0)]), ["limit-queue"]);
    let throttle = [op, (Kind::Ceph, "osd.0", "commit_ns", 10e6), (Kind::Ceph, "osd.0", "throttle_ns", 6e6)];
    assert_eq!(
        said(&with(&throttle))[0].2,
        "transactions waited for the throttle of osd.0 while processors and disks had headroom, likely the limit"
    );
}

#[test]
fn daemons_that_were_asked_through_their_cluster_are_no_machine() {
    let waiting = [
        (Kind::Ceph, "osd.0", "op", 200.0),
        (Kind::Ceph, "osd.0", "op_latency_ns", 10e6),
        (Kind::Ceph, "osd.0", "op_before_dequeue_ns", 7e6),
    ];
    let mut run = with(&WAITS);
    let alone = rest(&run);
    run.nodes.push(Node { name: "Ceph".into(), generates: false, facts: Vec::new(), ..node(&waiting) });
    assert_eq!(said(&run)[0].0, "limit-queue");
    run.nodes[1].series[2].values.fill(1e5);
    assert_eq!((said(&run), rest(&run)), (vec![], alone), "no processors of theirs are said to be idle");
    run.nodes[1] = Node { name: "Ceph".into(), generates: false, facts: Vec::new(), ..node(&waiting) };
    run.nodes[0] = node(&[(Kind::Cpu, "all", "busy", 0.75)]);
    assert_eq!(said(&run), [], "it may be the processors");
}

#[test]
fn an_osd_is_judged_once_though_its_cluster_tells_of_it_too() {
    let mut run = with(FLUSH);
    let cluster = |name: &str| Node { generates: false, facts: Vec::new(), name: name.into(), ..node(FLUSH) };
    run.nodes.push(cluster("Ceph"));
    let twice = said(&run);
    assert!(matches!(twice.as_slice(), [("limit-flush", ..)]), "{twice:?}");
    run.nodes[0] = node(&[]);
    assert_eq!(said(&run).len(), 1, "only the cluster tells of it");
}

#[test]
fn a_node_that_could_not_be_asked_does_not_silence_the_others() {
    let mut run = with(&WAITS);
    let alone = rest(&run);
    let gaps = vec!["Ceph's counters could not be read: there is no toolbox.".to_owned()];
    let unseen = Node { name: "Ceph".into(), gaps, ..Node::default() };
    run.nodes.push(unseen.clone());
    assert_eq!(rest(&run), alone);
    run.nodes = vec![unseen];
    assert_eq!(rest(&run), ["too few samples to tell what limited the load"]);
}

#[test]
fn the_surest_comes_first_and_nodes_are_named() {
    let mut run = with(&[
        (Kind::Cpu, "all", "busy", 0.95),
        (Kind::Process, "ceph-osd.0", "cpu", 3.7),
        (Kind::Process, "ceph-osd.0", "busiest_thread", 0.95),
        (Kind::Disk, "loop3", "write_ops", 500.0),
        (Kind::Disk, "loop3", "write_ops_limit", 500.0),
    ]);
    let order: Vec<_> = said(&run).iter().map(|(rule, ..)| *rule).collect();
    assert_eq!(order, ["limit-disk", "limit-processor", "limit-process"]);
    let mut other = node(IDLE);
    other.name = "b".into();
    run.nodes.push(other);
    assert!(said(&run)[0].2.ends_with(" (on a), likely the limit"), "{:?}", said(&run));
}
