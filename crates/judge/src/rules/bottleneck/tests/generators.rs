//! What is said of the processors of those who put load on.

use super::*;

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
    let [all, own] = full;
    let gives_way = generator(8, 0.36, &[all, own, (Kind::Cpu, "all", "nice", 0.2)]);
    assert!(!invalid_for(&gives_way, ""), "what else is used gives way to it");
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
            [(Kind::Process, "tidemark", "load_waiting", waiting), (Kind::Process, "tidemark", "cpu", cpu)];
        generator(2, 0.2, &values)
    };
    assert!(invalid_with(&starved(1.55, 0.42), "its threads waited for a processor 77.50 % of the time"));
    assert!(!invalid_for(&starved(1.4, 0.42), ""), "they rested for a tenth of the time");
    assert!(invalid_for(&starved(1.55, 1.42), "limit-generator"), "whatever a server in the process does");
}

#[test]
fn what_other_threads_of_its_process_wait_does_not_starve_a_generator() {
    // The kernel's workers and the main thread wait; of the one thread that puts load on little is known, or that it rested.
    let others = (Kind::Process, "tidemark", "waiting", 0.52);
    assert!(!invalid_for(&generator(1, 0.57, &[others]), ""), "{:?}", said(&generator(1, 0.57, &[others])));
    let own = |waiting| generator(1, 0.57, &[others, (Kind::Process, "tidemark", "load_waiting", waiting)]);
    assert!(!invalid_for(&own(0.2), ""));
    assert!(invalid_for(&own(0.44), "limit-generator"));
    let evidence = evidence(&own(0.44), "limit-generator");
    assert!(
        evidence.contains("0.43 ready without one) / 1 threads = 100 %"),
        "no more than there is: {evidence}"
    );
}

#[test]
fn what_the_generators_own_rules_say_is_not_said_again() {
    let run =
        generator(4, 0.97, &[(Kind::Cpu, "all", "busy", 0.99), (Kind::Process, "tidemark", "cpu", 3.9)]);
    assert!(invalid_for(&run, "generator-busy"));
    assert!(said(&run).iter().all(|(rule, ..)| *rule != "limit-generator"), "{:?}", said(&run));
}

#[test]
fn a_generator_that_waits_for_processors_is_not_said_to_have_reserve() {
    let reserve = |run: &Run| {
        let found = judge(run).findings.into_iter().find(|finding| finding.rule() == "generator-busy");
        found.map(|finding| (finding.severity, finding.title(), finding.evidence().join("; ")))
    };
    let on = |busy, waiting| {
        let values = [
            (Kind::Cpu, "all", "busy", busy),
            (Kind::Process, "tidemark", "cpu", 0.4),
            (Kind::Process, "tidemark", "load_waiting", waiting),
        ];
        generator(2, 0.2, &values)
    };
    assert_eq!(reserve(&on(0.3, 0.02)).unwrap().0, Severity::Good);
    let (severity, title, evidence) = reserve(&on(0.99, 0.5)).unwrap();
    assert_eq!(severity, Severity::Warning);
    assert_eq!(title, "the load generator had to wait for processors: its machine was 99.00 % busy");
    assert!(evidence.contains("without a processor 25.00 % of the time"), "{evidence}");
    assert!(!invalid_for(&on(0.99, 0.5), ""));
    assert_eq!(
        reserve(&on(0.99, 0.02)).unwrap().0,
        Severity::Good,
        "the others stood back: niced, or elsewhere"
    );
    let mut beside = on(0.99, 0.5);
    beside.nodes[0].series[2].metric = "waiting".into();
    let (.., evidence) = reserve(&beside).unwrap();
    assert!(
        evidence.contains("how long its threads waited is not known"),
        "it is that of all threads of the process: {evidence}"
    );
    let mut many = on(0.99, 0.5);
    work(&mut many).threads = 17;
    assert_eq!(reserve(&many).unwrap().0, Severity::Warning, "their wait is not known, the machine's use is");
    let mut open = healthy_open();
    open.nodes = on(0.99, 0.5).nodes;
    work(&mut open).threads = 2;
    assert_eq!(reserve(&open).unwrap().0, Severity::Note, "its send lag says what that did");
    let mut slow = on(0.3, 0.02);
    work(&mut slow).operations[0].tally.lag.record_many(20 * 1_000_000, 8_000);
    work(&mut slow).operations[0].tally.response.reset();
    work(&mut slow).operations[0].tally.response.record_many(5 * 1_000_000, 8_000);
    assert!(invalid_for(&slow, "generator-slow"));
    assert_eq!(reserve(&slow), None, "workers waited for it");
}

#[test]
fn what_a_driver_s_own_process_used_is_what_counts() {
    let with = |driver: &str, waiting: f64| {
        let mut run = two_drivers([2, 2], [0.2, 0.2]);
        for (node, driver) in run.nodes.iter_mut().zip(["driver d1", driver]) {
            let values =
                [(Kind::Process, driver, "cpu", 0.42), (Kind::Process, driver, "load_waiting", waiting)];
            node.series.extend(self::node(&values).series);
        }
        run
    };
    assert!(!invalid_for(&with("driver d2", 0.1), ""));
    assert!(invalid_with(&with("driver d2", 1.55), "its threads waited for a processor 77.50 % of the time"));
    assert!(
        said(&with("controller", 1.55)).iter().all(|(.., title)| !title.contains("host-2")),
        "it puts no load on"
    );
    // Both on one machine, which the controller observed, too.
    let mut run = with("driver d2", 1.0);
    let second = run.nodes.pop().unwrap();
    run.drivers[1].host.name = "host-1".into();
    run.nodes[0].series.extend(second.series.into_iter().filter(|series| series.kind == Kind::Process));
    let busy = run.nodes[0].series.iter_mut().find(|series| series.kind == Kind::Cpu).unwrap();
    busy.values.fill(0.99);
    let evidence = evidence(&run, "busy-processor");
    assert!(evidence.contains("driver d1") && evidence.contains("driver d2"), "{evidence}");
    let title = judge(&run).findings.iter().find(|one| one.rule() == "generator-busy").unwrap().title();
    assert_eq!(
        title,
        "the load generator had to wait for processors on drivers d1 and d2: its machine was 99.00 % busy"
    );
}
