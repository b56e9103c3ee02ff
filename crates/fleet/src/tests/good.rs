//! Runs on drivers that do as they should give what a run in one process gives.

use super::*;
use tidemark_load::stopping::Steady;
use tidemark_measure::record::Work;

const MIX: &str = "<workstage name=\"init\"><work type=\"init\" workers=\"2\" config=\"containers=r(1,3)\"/></workstage>\
    <workstage name=\"fill\"><work type=\"prepare\" workers=\"5\" config=\"containers=r(1,3);objects=r(1,40);sizes=u(1,64)KB\"/></workstage>\
    <workstage name=\"wait\" closuredelay=\"0\"><work type=\"delay\"/></workstage>\
    <workstage name=\"main\"><work name=\"mix\" workers=\"7\" totalOps=\"1501\">\
    <operation type=\"read\" ratio=\"70\" config=\"containers=u(1,3);objects=u(1,40)\"/>\
    <operation type=\"write\" ratio=\"30\" config=\"containers=u(1,3);objects=u(41,80);sizes=u(1,64)KB\"/></work>\
    <work name=\"one\" workers=\"1\" totalOps=\"99\">\
    <operation type=\"write\" ratio=\"100\" config=\"containers=c(1);objects=u(1,9);sizes=u(1,9)KB\"/></work></workstage>\
    <workstage name=\"cleanup\"><work type=\"cleanup\" workers=\"4\" config=\"containers=r(1,3);objects=r(1,80)\"/></workstage>";

fn local_run(plan: &Plan) -> Run {
    execute(plan, Provenance::default(), &local(), None, &mut Follower::default()).unwrap().run
}

/// Successes and bytes of every operation of a run.
fn counts(run: &Run) -> Vec<(String, u64, u64)> {
    let works = run.stages.iter().flat_map(|stage| &stage.works);
    let operations = works.flat_map(|work| &work.operations);
    operations.map(|one| (one.label.clone(), one.tally.ok, one.tally.bytes)).collect()
}

/// The record of a work without what differs from time to time.
fn shape(work: &Work) -> Work {
    let mut shape = work.clone();
    for operation in &mut shape.operations {
        operation.tally = Default::default();
    }
    for count in &mut shape.workers_counts {
        (count.first_sent_ns, count.last_done_ns, count.response_ns) = (0, 0, 0);
    }
    (shape.started_ns, shape.window_end_ns, shape.last_done_ns) = (0, 0, 0);
    (shape.series, shape.longest_gap) = (Vec::new(), None);
    shape
}

/// Everything that must hold of a run that went well, however many drivers it had.
fn check(run: &Run, drivers: usize) {
    assert_eq!(run.state, State::Completed, "{:?}", run.stages.iter().map(|s| &s.reason).collect::<Vec<_>>());
    assert_eq!(run.drivers.len(), drivers);
    assert!(run.drivers.iter().all(|driver| driver.lost.is_none()));
    for stage in &run.stages {
        for (number, work) in (0..).zip(&stage.works) {
            let (mut ok, mut bytes) = (0, 0);
            for operation in &work.operations {
                ok += operation.tally.ok;
                bytes += operation.tally.bytes;
            }
            let seconds = || work.series.iter().flat_map(|second| &second.operations);
            assert_eq!(seconds().map(|action| action.ok).sum::<u64>(), ok);
            let shares: Vec<_> = stage.shares.iter().filter(|share| share.work == number).collect();
            assert_eq!(shares.len(), drivers.min(work.workers as usize));
            assert_eq!(shares.iter().map(|share| share.workers).sum::<u32>(), work.workers);
            assert_eq!(shares.iter().map(|share| share.threads).sum::<u32>(), work.threads);
            assert_eq!(shares.iter().map(|share| share.ok).sum::<u64>(), ok);
            assert_eq!(shares.iter().map(|share| share.bytes).sum::<u64>(), bytes);
            assert!(shares.iter().all(|share| share.complete));
            let of_series = shares.iter().flat_map(|share| &share.series);
            assert_eq!(of_series.map(|second| second.ok).sum::<u64>(), ok);
            // Nobody begins before the start, as exactly as the driver's clock is known.
            for share in shares {
                let (sent, driver) = (share.first_sent_ns.unwrap(), &run.drivers[share.driver as usize]);
                assert!(sent + driver.clock_error_ns >= work.started_ns, "{sent}: {driver:?}");
            }
        }
    }
}

#[test]
fn one_two_or_three_drivers_do_what_one_process_does() {
    let plan = plan(MIX);
    let alone = local_run(&plan);
    assert_eq!(alone.state, State::Completed);
    assert_eq!(done(&alone.stages[3]), 1600);
    let host = Host::new();
    let _drivers = ["a", "b", "c"].map(|name| host.driver(name));
    for names in [&["a"][..], &["b", "c"], &["c", "a", "b"]] {
        // At once after the run before: a driver is free as soon as it has been let go of.
        let run = host.run(&plan, names);
        check(&run, names.len());
        assert_eq!(counts(&run), counts(&alone), "{names:?}");
        let nodes: Vec<_> = run.nodes.iter().filter(|node| node.generates).collect();
        assert!(!nodes.is_empty());
        assert!(run.nodes.iter().all(|node| node.series.iter().all(|s| s.values.len() == node.at_ns.len())));
    }
}

#[test]
fn a_run_on_one_driver_has_the_record_of_a_local_run() {
    let mut plan = plan(MIX);
    plan.stages[3].works[1].load.stop.operations = None;
    plan.stages[3].works[1].load.stop.window_ns = Some(1_200_000_000);
    let host = Host::new();
    let _driver = host.driver("a");
    let (alone, run) = (local_run(&plan), host.run(&plan, &["a"]));
    assert_eq!((run.state, &run.notes, &run.name), (alone.state, &alone.notes, &alone.name));
    assert_eq!(run.provenance.targets, alone.provenance.targets);
    assert_eq!(run.provenance.seed, alone.provenance.seed);
    for (stage, own) in run.stages.iter().zip(&alone.stages) {
        assert_eq!((&stage.id, stage.state, &stage.reason), (&own.id, own.state, &own.reason));
        assert_eq!((&stage.proof, stage.works.len()), (&own.proof, own.works.len()));
        for (work, own) in stage.works.iter().zip(&own.works) {
            if work.name == "one" {
                // It ends on time: what it has done until then depends on the machine, its window does not.
                assert_eq!(work.window_end_ns, own.window_end_ns);
                assert_eq!(work.workers_counts.len(), own.workers_counts.len());
                // 1.2 s, and what was in flight at their end.
                assert!(work.series.len() >= 2 && own.series.len() >= 2);
                continue;
            }
            assert_eq!(format!("{:#?}", shape(work)), format!("{:#?}", shape(own)), "{}", work.name);
            assert_eq!(work.longest_gap.is_some(), own.longest_gap.is_some());
            assert_eq!(work.series.is_empty(), own.series.is_empty());
            assert!(work.series.iter().zip(0..).all(|(second, index)| second.index == index));
            let window = |work: &Work| work.window_end_ns <= work.last_done_ns && work.window_end_ns > 0;
            assert_eq!((window(work), window(own)), (true, true), "{}", work.name);
        }
    }
}

#[test]
fn a_load_that_has_to_become_steady_is_measured_over_the_same_window_on_all_drivers() {
    let mut plan = plan(&stage("main", &reads("a", 4, "runtime=\"1\"")));
    plan.stages[0].works[0].load.stop.steady = Some(Steady { round_ns: 1_000_000_000, most_rounds: 5 });
    let host = Host::new();
    let _drivers = ["a", "b"].map(|name| host.driver(name));
    let run = host.run(&plan, &["a", "b"]);
    check(&run, 2);
    let work = &run.stages[0].works[0];
    assert_eq!(work.settling.as_ref().unwrap().rounds.len(), 5);
    assert!(work.window_start_ns > 5_000_000_000, "{}", work.window_start_ns);
    assert_eq!(work.window_end_ns - work.window_start_ns, 1_000_000_000);
    // Two workers for a second, and half a millisecond for each operation at the least.
    assert!(run.stages[0].shares.iter().all(|share| (1..=4_000).contains(&share.ok)));
}

#[test]
fn a_load_in_which_nothing_succeeds_is_given_up_as_a_whole() {
    let text = stage("main", &reads("a", 4, "runtime=\"120\""));
    let mut plan = plan(&text);
    plan.stages[0].works[0].load.stop.give_up_ns = Some(1_000_000_000);
    let job = plan.stages[0].works[0].job.get_mut::<tidemark_object::job::Job>();
    if let Some(tidemark_object::job::Job { target: tidemark_object::job::Target::Mock(mock), .. }) = job {
        mock.errors = 1.0;
    }
    let host = Host::new();
    let _drivers = ["a", "b"].map(|name| host.driver(name));
    let (run, alone) = (host.run(&plan, &["a", "b"]), local_run(&plan));
    for run in [&run, &alone] {
        let (stage, work) = (&run.stages[0], &run.stages[0].works[0]);
        assert_eq!(stage.state, State::Failed);
        assert!(stage.reason.contains("given up: no operation succeeded for 1 s"), "{}", stage.reason);
        assert!(
            work.window_end_ns < 120_000_000_000,
            "the window ends with the load: {}",
            work.window_end_ns
        );
        assert!(!work.examples.is_empty());
    }
    assert!(run.stages[0].shares.iter().all(|share| share.complete && share.failed > 0));
}

#[test]
fn a_run_that_cannot_begin_leaves_its_drivers_free() {
    let plan = plan(&stage("main", &reads("a", 4, "totalOps=\"40\"")));
    let host = Host::new();
    let _driver = host.driver("a");
    let mut follower = Follower::default();
    let refused = |names: &[&str], plan: &Plan, follower: &mut Follower| {
        host.execute(plan, names, follower).unwrap_err()
    };
    assert_eq!(refused(&["a", "nobody"], &plan, &mut follower), "no driver is named nobody");
    assert_eq!(
        refused(&["a", "a"], &plan, &mut follower).split(" run ").next(),
        Some("driver a already works for")
    );
    assert_eq!(refused(&[], &plan, &mut follower), "there is no driver to run it on");
    let mut pinned = plan.clone();
    pinned.stages[0].works[0].driver = Some("b".into());
    assert_eq!(
        refused(&["a"], &pinned, &mut follower),
        "work `a` is pinned to driver b, which does not take part"
    );
    let mut forbidden = plan.clone();
    forbidden.trigger = Some("x.sh()".into());
    assert!(refused(&["a"], &forbidden, &mut follower).starts_with("driver a: "));
    assert_eq!(host.member("a").unwrap().run, None);
    check(&host.run(&plan, &["a"]), 1);
}

#[test]
fn what_lies_on_one_machine_is_asked_for_there_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let text = format!(
        "name: v\nseed: 3\ntarget: {{kind: file, path: {}, size: 1MiB}}\nstages:\n- prepare: {{}}\n\
         - name: main\n  load: {{pattern: read, block_size: 4KiB, total_operations: 64}}\n- cleanup: {{}}\n",
        path.display()
    );
    let mut plan = document::read(&text, &Environment::process(&tidemark_engines::registry())).unwrap().plan;
    plan.stages.iter_mut().flat_map(|stage| &mut stage.works).for_each(|work| work.driver = Some("b".into()));
    let host = Host::new();
    // This one may touch no file at all.
    let _strict = host.driver("a");
    let _wide = host.driver_on("b", directory.path());
    let run = host.run(&plan, &["a", "b"]);
    assert_eq!(run.state, State::Completed, "{:?}", run.stages.iter().map(|s| &s.reason).collect::<Vec<_>>());
    assert_eq!(done(&run.stages[1]), 64);
    assert!(run.stages[1].proof.is_some());
    assert!(
        run.stages.iter().flat_map(|stage| &stage.shares).all(|share| share.driver == 1 && share.complete)
    );
    let refusal = host.execute(&plan, &["b", "a"], &mut Follower::default());
    assert!(refusal.is_ok(), "{refusal:?}");
}
