//! What limited the arms, put together of what the rules say of single runs.

use super::*;
use crate::words::limits::Limit as Found;
use crate::words::standing::{Limited, Standing};
use tidemark_measure::observation::{Kind, Node, Series};
use tidemark_measure::record::Stage;

#[test]
fn limits_of_runs_are_ranked_by_how_many_agree() {
    let limit = |limit| {
        let standing = Some(Standing::Likely);
        Finding::about_run(Severity::Warning, Limited { node: None, standing, limit })
    };
    let disk = |busy| {
        let (disk, queue, reads, read_ns, writes, write_ns, pressure) =
            ("vda".into(), 9.0, 0.0, 0.0, 0.0, 0.0, 0.2);
        limit(Found::DiskBusy { disk, busy, queue, reads, read_ns, writes, write_ns, pressure })
    };
    let process = limit(Found::ProcessAtLimit { process: "osd".into(), used: 0.91, limit: 1.0 });
    let throttled = Finding::about_run(Severity::Warning, Failures::Throttled { throttled: 1, total: 9 });
    let (evaluation, runs) = two_arms(&[400.0; 3], &[]);
    let mut members = members::choose(&evaluation, &runs, |_| true);
    members.used[0].findings = vec![process, disk(0.97)];
    members.used[1].findings = vec![disk(0.99)];
    members.used[2].findings = vec![throttled];
    let named = bottlenecks::name(&evaluation, &members.used, &[]).limits;
    let titles: Vec<_> = named.iter().map(|one| one.finding.title()).collect();
    assert_eq!(
        titles,
        [
            "disk vda was busy 97.00 % to 99.00 % of the time, likely the limit (in 2 of 3 runs)",
            "osd used 91.00 % of the 1.00 cores it may use, likely the limit (in 1 of 3 runs)"
        ]
    );
    assert_eq!(named[0].finding.evidence().last().unwrap(), "seen at: workers 4");
}

#[test]
fn a_limit_of_one_point_of_a_sweep_names_the_point() {
    let mut run = sweep_run(&["4 KiB", "64 KiB"], 1);
    run.member = Some(Member {
        evaluation: 1,
        arm: "a".into(),
        load: "block".into(),
        repeat: 1,
        turn: 1,
        ..Member::default()
    });
    let evaluation = evaluation(&["a"], vec![load("block", vec![])], 1);
    let runs = [run];
    let mut members = members::choose(&evaluation, &runs, |_| true);
    let busy = |stage: &Stage, process: &str| {
        let limit = Found::ProcessAtLimit { process: process.into(), used: 0.91, limit: 1.0 };
        let standing = Some(Standing::Likely);
        Finding::about_stage(stage, Severity::Warning, Limited { node: None, standing, limit })
    };
    let stages = &runs[0].stages;
    members.used[0].findings = vec![busy(&stages[0], "osd")];
    members.used[0].findings.extend(stages.iter().map(|stage| busy(stage, "mon")));
    let named = bottlenecks::name(&evaluation, &members.used, &[]).limits;
    let seen = |process: &str| {
        let mut all = named.iter().map(|one| &one.finding);
        all.find(|one| one.title().starts_with(process)).unwrap().evidence().pop().unwrap()
    };
    assert_eq!(seen("osd"), "seen at: 4 KiB");
    assert_eq!(seen("mon"), "seen at: 4 KiB; 64 KiB");
}

/// One arm at three numbers of workers with these rates; on each run's node these values all the time.
fn three_levels(rates: [f64; 3], values: &[(Kind, &str, &str, f64)]) -> Assessment {
    let load = load("small", levels("workers", &["1", "2", "4"]));
    let series = values.iter().map(|(kind, subject, metric, value)| Series {
        kind: *kind,
        subject: (*subject).to_owned(),
        metric: (*metric).to_owned(),
        values: vec![*value as f32; 21],
    });
    let (series, at_ns) = (series.collect(), (0..21).map(|second| second * 1_000_000_000).collect());
    let node = Node { generates: true, at_ns, series, ..Node::default() };
    let runs = [1, 2, 4].into_iter().zip(rates).map(|(workers, rate): (u32, f64)| {
        let level = workers.to_string();
        let mut run = member_run("baseline", "small", &[("workers", &level)], 1, workers, rate);
        work(&mut run).workers = workers;
        run.nodes = vec![node.clone()];
        run
    });
    assess(&evaluation(&["baseline"], vec![load], 1), &runs.collect::<Vec<_>>())
}

fn titles(all: &[Bottleneck]) -> Vec<String> {
    all.iter().map(|one| one.finding.title()).collect()
}

const THREAD: [(Kind, &str, &str, f64); 1] = [(Kind::Process, "osd", "busiest_thread", 0.95)];

#[test]
fn a_resource_binds_where_more_load_brings_no_more() {
    let grows = three_levels([100.0, 200.0, 400.0], &THREAD);
    assert_eq!(titles(&grows.bottlenecks), [""; 0], "throughput still doubles with the level");
    let thread = "one thread of osd used 95.00 % of a core";
    assert_eq!(
        titles(&grows.not_limits),
        [format!("{thread}, not the limit there: more load brought more (in 3 of 3 runs)")]
    );
    assert!(!grows.verdict.join(" ").contains("Limit of"), "{:?}", grows.verdict);
    let ends = three_levels([100.0, 200.0, 201.0], &THREAD);
    assert_eq!(
        titles(&ends.bottlenecks),
        [format!("{thread}, and more load brought no more (in 2 of 3 runs)")]
    );
    assert_eq!(ends.bottlenecks[0].finding.evidence().last().unwrap(), "seen at: workers 2; workers 4");
    assert_eq!(ends.not_limits.len(), 1, "at one worker");
}

#[test]
fn the_target_s_own_latency_is_the_limit_where_more_workers_bring_no_more() {
    let idle = [(Kind::Process, "osd", "busiest_thread", 0.1)];
    let ends = three_levels([100.0, 101.0, 100.0], &idle);
    let own = "the target's own latency was the limit: nothing that the load uses was busy (in 3 of 3 runs)";
    assert_eq!(titles(&ends.bottlenecks), [own]);
    let grows = three_levels([100.0, 200.0, 400.0], &idle);
    assert!(grows.bottlenecks.is_empty() && grows.not_limits.is_empty(), "{:?}", titles(&grows.bottlenecks));
}

#[test]
fn what_others_keep_busy_is_no_limit_at_any_level() {
    let disk = [
        (Kind::Disk, "vda", "busy", 0.97),
        (Kind::Disk, "vda", "queue", 5.0),
        (Kind::Disk, "vda", "write_bytes", 100e6),
        (Kind::Process, "osd", "threads", 3.0),
        (Kind::Process, "osd", "open_files", 9.0),
    ];
    let assessment = three_levels([100.0, 101.0, 100.0], &disk);
    assert!(titles(&assessment.not_limits)[0].contains("not shown to be the limit"));
    let limits = assessment.bottlenecks.iter().filter(|one| one.finding.rule() != "limit-latency");
    assert_eq!(limits.count(), 0);
}

#[test]
fn the_limits_of_others_are_not_counted_as_more_of_the_first() {
    let process = || {
        let limit = Found::ProcessAtLimit { process: "osd".into(), used: 0.91, limit: 1.0 };
        Finding::about_run(Severity::Warning, Limited { node: None, standing: Some(Standing::Likely), limit })
    };
    let (evaluation, runs) = two_arms(&[400.0], &[400.0]);
    let mut assessment = assess(&evaluation, &runs);
    let one = |arm: &str| Bottleneck { arm: arm.into(), load: "small".into(), finding: process() };
    assessment.bottlenecks = vec![one("baseline"), one("other")];
    let members = members::choose(&evaluation, &runs, |_| true);
    let measured = cells::measure(&evaluation, &members.used);
    let (sentences, headline) = verdict::sentences(&assessment, &measured);
    let first =
        sentences[..headline].iter().find(|one| one.starts_with("What limited arm baseline")).unwrap();
    assert!(first.ends_with("; what limited other arms and loads is below."), "{first}");
}
