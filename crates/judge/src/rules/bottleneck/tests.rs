//! Nodes made up so that each rule fires for its reason and for no other.

use super::super::testing::{healthy, healthy_open, invalid_for, invalid_with, work};
use super::*;
use crate::judge;
use tidemark_measure::kind::WorkKind;
use tidemark_measure::observation::Series;

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

/// Rule, severity and title of all findings about limits.
fn said(run: &Run) -> Vec<(&'static str, Severity, String)> {
    let findings = judge(run).findings.into_iter().filter(|finding| finding.rule().starts_with("limit-"));
    findings.map(|finding| (finding.rule(), finding.severity, finding.title())).collect()
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
    let title = "disk loop3 was at its limit of 500 writes/s".to_owned();
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
    assert_eq!(said(&both)[0].2, "disks loop3 and loop4 were at their limits of 50.0 MB/s read");
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

#[test]
fn a_busy_disk_is_a_warning_when_all_tasks_wait_for_it() {
    let busy = [(Kind::Disk, "vda", "busy", 0.97), (Kind::Disk, "vda", "queue", 5.0)];
    assert_eq!(said(&with(&busy))[0].1, Severity::Note, "it may have reserve");
    let [first, second] = busy;
    assert_eq!(said(&with(&[first, second, (Kind::Pressure, "io", "full", 0.2)]))[0].1, Severity::Warning);
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
        (Kind::Process, "tidemark", "cpu", 0.4),
        (Kind::Process, "ceph-osd.0", "cpu", 2.5),
    ]);
    assert_eq!(
        said(&run),
        [("limit-processor", Severity::Warning, "the processors were 96.00 % busy".to_owned())]
    );
    let evidence = evidence(&run, "limit-processor");
    assert!(evidence.contains("used by: ceph-osd.0 2.50 cores, tidemark 0.40 cores"), "{evidence}");
    assert!(evidence.contains("= 3.84 of 4 cores"), "{evidence}");
    assert!(!invalid_for(&run, ""), "it was the servers");
    assert_eq!(rules(&[(Kind::Cpu, "all", "busy", 0.8)]), [""; 0]);
}

#[test]
fn daemons_are_limited_by_one_thread_or_by_their_quota() {
    let values = [
        (Kind::Process, "ceph-osd.0", "busiest_thread", 0.97),
        (Kind::Process, "ceph-osd.0", "cpu", 1.4),
        (Kind::Process, "tidemark", "busiest_thread", 1.0),
    ];
    let run = with(&values);
    let title = "one thread of ceph-osd.0 used 97.00 % of a core".to_owned();
    assert_eq!(said(&run), [("limit-process", Severity::Warning, title)]);
    let quota = [(Kind::Process, "ceph-osd.0", "cpu", 1.9), (Kind::Cgroup, "ceph-osd.0", "cpu_limit", 2.0)];
    assert_eq!(said(&with(&quota))[0].2, "ceph-osd.0 used 95.00 % of the 2.00 cores it may use");
    let [cpu, limit] = quota;
    let stopped = with(&[cpu, limit, (Kind::Cgroup, "ceph-osd.0", "throttled_periods", 0.4)]);
    let said = said(&stopped);
    assert_eq!(said.iter().map(|(rule, ..)| *rule).collect::<Vec<_>>(), ["limit-cgroup"], "said once");
    assert_eq!(said[0].2, "CPU quota throttled ceph-osd.0 in up to 40.00 % of its periods");
    let all = [(Kind::Process, "ceph-osd.0", "cpu", 3.9), (Kind::Process, "ceph-osd.0", "allowed", 4.0)];
    assert_eq!(rules(&all), [""; 0], "it may use the whole node");
}

#[test]
fn a_throttled_generator_invalidates() {
    let run = with(&[
        (Kind::Cgroup, "tidemark", "throttled_periods", 0.3),
        (Kind::Cgroup, "tidemark", "cpu_limit", 0.5),
    ]);
    assert_eq!(said(&run)[0].0, "limit-generator");
    assert!(invalid_with(&run, "throttled the load generator in 30.00 % of its periods"));
    let mut both = with(&[
        (Kind::Cgroup, "tidemark", "throttled_periods", 0.9),
        (Kind::Cgroup, "tidemark", "cpu_limit", 0.5),
        (Kind::Process, "tidemark", "cpu", 0.5),
    ]);
    work(&mut both).series.iter_mut().for_each(|second| second.busy = 0.5);
    assert_eq!(said(&both).len(), 1, "said once: {:?}", said(&both));
    let mut elsewhere = run.clone();
    elsewhere.nodes[0].generates = false;
    assert!(!invalid_for(&elsewhere, ""));
    assert_eq!(rules(&[(Kind::Cgroup, "tidemark", "throttled_periods", 0.04)]), [""; 0]);
}

/// The healthy run, its generator's threads on a processor for a share of the time.
fn generator(threads: u32, busy: f64, values: &[(Kind, &str, &str, f64)]) -> Run {
    let mut run = with(values);
    run.provenance.host.cores = 4;
    work(&mut run).threads = threads;
    work(&mut run).series.iter_mut().for_each(|second| second.busy = busy);
    run
}

/// The healthy run by two drivers on nodes of their own, with so many busy threads each.
fn two_drivers(threads: [u32; 2], busy: [f64; 2]) -> Run {
    use tidemark_measure::host::Host;
    use tidemark_measure::record::{Driver, Share, ShareSecond};
    let mut run = healthy();
    for (index, (threads, busy)) in threads.into_iter().zip(busy).enumerate() {
        let (name, host) = (format!("d{}", index + 1), format!("host-{}", index + 1));
        let values = [(Kind::Cpu, "all", "busy", busy * f64::from(threads) / 4.0)];
        run.nodes.push(Node { name: host.clone(), source: format!("driver {name}"), ..node(&values) });
        let host = Host { name: host, cores: 4, ..Host::default() };
        run.drivers.push(Driver { name, host, ..Driver::default() });
        let series =
            (0..20).map(|index| ShareSecond { index, ok: 200, busy, ..ShareSecond::default() }).collect();
        let share = Share {
            driver: index as u32,
            workers: 2,
            first_worker: index as u32 * 2,
            threads,
            complete: true,
            series,
            ..Share::default()
        };
        run.stages[0].shares.push(share);
    }
    run
}

#[test]
fn each_driver_is_looked_at_on_its_own_node() {
    // Eight threads at 46 % on four processors use up the node; the mean of both drivers does not.
    let run = two_drivers([8, 2], [0.46, 0.2]);
    assert!(invalid_with(&run, "it used 3.68 of 4.00 cores (on host-1)"), "{:?}", said(&run));
    assert!(said(&run).iter().all(|(.., title)| !title.contains("host-2")), "{:?}", said(&run));
    assert_eq!(said(&two_drivers([2, 2], [0.2, 0.2])), []);
    let mut without_facts = two_drivers([8, 2], [0.46, 0.2]);
    without_facts.nodes.iter_mut().for_each(|node| node.facts.clear());
    assert!(invalid_with(&without_facts, "of 4.00 cores"), "the driver says how many processors it has");
}

#[test]
fn a_generator_that_uses_up_its_node_invalidates() {
    let full = [(Kind::Cpu, "all", "busy", 0.95), (Kind::Process, "tidemark", "cpu", 3.4)];
    let run = generator(8, 0.41, &full);
    assert!(invalid_with(&run, "the load generator was the bottleneck: it used 3.28 of 4.00 cores"));
    let shared = generator(4, 0.5, &full);
    assert!(!invalid_for(&shared, ""), "half of it is somebody else's: a server in the same process");
    assert!(said(&shared).iter().all(|(rule, ..)| *rule == "limit-processor"));
    let busy = generator(8, 0.4, &[(Kind::Cpu, "all", "busy", 0.82)]);
    assert_eq!(
        said(&busy),
        [("limit-generator", Severity::Note, "the load generator used 3.20 of 4.00 cores".into())]
    );
}

#[test]
fn a_generator_that_may_use_few_processors_invalidates() {
    let values = [
        (Kind::Cpu, "all", "busy", 0.25),
        (Kind::Process, "tidemark", "cpu", 0.95),
        (Kind::Process, "tidemark", "allowed", 1.0),
    ];
    let run = generator(4, 0.23, &values);
    assert!(invalid_with(&run, "it used 0.92 of 1.00 cores"));
    let mut open = healthy_open();
    open.nodes = run.nodes.clone();
    work(&mut open).series.iter_mut().for_each(|second| second.busy = 0.95);
    assert!(!invalid_for(&open, ""), "its send lag says that it kept up");
}

#[test]
fn a_generator_whose_threads_never_rest_is_starved() {
    let starved = |waiting, cpu| {
        let values =
            [(Kind::Process, "tidemark", "waiting", waiting), (Kind::Process, "tidemark", "cpu", cpu)];
        generator(2, 0.2, &values)
    };
    assert!(invalid_with(&starved(1.55, 0.42), "its threads waited for a processor 77.50 % of the time"));
    assert!(!invalid_for(&starved(1.4, 0.42), ""), "they rested for a tenth of the time");
    assert!(!invalid_for(&starved(1.55, 1.42), ""), "a server in the same process may be what waits");
}

#[test]
fn what_the_generators_own_rules_say_is_not_said_again() {
    let run =
        generator(4, 0.97, &[(Kind::Cpu, "all", "busy", 0.99), (Kind::Process, "tidemark", "cpu", 3.9)]);
    assert!(invalid_for(&run, "generator-busy"));
    assert!(said(&run).iter().all(|(rule, ..)| *rule != "limit-generator"), "{:?}", said(&run));
}

#[test]
fn full_links_and_losses_are_found() {
    let full = [(Kind::Network, "eth0", "speed", 125e6), (Kind::Network, "eth0", "tx_bytes", 117e6)];
    assert_eq!(said(&with(&full))[0].2, "network link eth0 was full: 93.60 % of its speed sending");
    let lossy = [
        (Kind::Network, "tcp", "sent_segments", 980.0),
        (Kind::Network, "tcp", "retransmitted_segments", 20.0),
    ];
    assert!(evidence(&with(&lossy), "limit-network").contains("= 2.00 %"));
    assert_eq!(rules(&[(Kind::Network, "softnet", "dropped", 0.5)]), [""; 0]);
    assert_eq!(rules(&[(Kind::Network, "softnet", "dropped", 5.0)]), ["limit-network"]);
}

#[test]
fn short_memory_is_found() {
    assert_eq!(rules(&[(Kind::Memory, "node", "major_faults", 500.0)]), ["limit-memory"]);
    assert_eq!(rules(&[(Kind::Memory, "node", "swap_in", 5e6)]), ["limit-memory"]);
    assert_eq!(rules(&[(Kind::Pressure, "memory", "some", 0.2)]), ["limit-memory"]);
    let group = with(&[(Kind::Cgroup, "ceph-osd.0", "memory_pressure", 0.3)]);
    assert!(evidence(&group, "limit-memory").contains("in the control group of ceph-osd.0: 30.00 %"));
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
    let title = "metadata commits took most of the write time in osd.0".to_owned();
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
    let title = "operations waited in the queues of osd.0 while processors and disks had headroom".to_owned();
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
        "transactions waited for the throttle of osd.0 while processors and disks had headroom"
    );
}

#[test]
fn the_surest_comes_first_and_nodes_are_named() {
    let mut run = with(&[
        (Kind::Cpu, "all", "busy", 0.95),
        (Kind::Process, "ceph-osd.0", "busiest_thread", 0.95),
        (Kind::Disk, "loop3", "write_ops", 500.0),
        (Kind::Disk, "loop3", "write_ops_limit", 500.0),
    ]);
    let order: Vec<_> = said(&run).iter().map(|(rule, ..)| *rule).collect();
    assert_eq!(order, ["limit-disk", "limit-processor", "limit-process"]);
    let mut other = node(IDLE);
    other.name = "b".into();
    run.nodes.push(other);
    assert!(said(&run)[0].2.ends_with(" (on a)"), "{:?}", said(&run));
}
