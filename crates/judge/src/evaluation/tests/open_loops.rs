//! Open loops, and the knees of several arms.

use super::*;

/// Open loops at these rates, of which `sent` gives the share that is sent by the end.
pub(super) fn open_run(rate: f64, turn: u32, response_ms: u64, unsent: u64) -> Run {
    let mut run = healthy_open();
    let level = vec![("rate".to_owned(), format!("{rate}"))];
    run.id = turn.into();
    run.member = Some(Member {
        evaluation: 1,
        arm: "a".into(),
        load: "open".into(),
        level,
        repeat: 1,
        turn,
        ..Member::default()
    });
    let work = work(&mut run);
    work.offered_rate = Some(rate);
    work.unsent = unsent;
    let tally = &mut work.operations[0].tally;
    tally.ok = (rate * 20.0) as u64 - unsent;
    for histogram in [&mut tally.response, &mut tally.service_open] {
        histogram.reset();
        histogram.record_many(response_ms * MS, tally.ok);
    }
    if unsent > 0 {
        work.series.iter_mut().for_each(|second| second.in_flight = 64);
    }
    run
}

#[test]
fn a_search_that_goes_beyond_the_limit_is_valid() {
    let search = Search { axis: "rate".into(), from: 100.0, to: 1_000.0, within: 0.05 };
    let load = Load { service_level: p95_limit(50, 0.0), search: Some(search), ..load("open", vec![]) };
    let mut evaluation = evaluation(&["a"], vec![load], 1);
    let runs = [open_run(800.0, 3, 40, 8_000), open_run(400.0, 2, 20, 0), open_run(100.0, 1, 10, 0)];
    let assessment = assess(&evaluation, &runs);
    println!("{:#?}", assessment.verdict);
    let knee = &assessment.knees[0];
    assert_eq!(
        (knee.level, knee.next, assessment.cells.len()),
        (Some(400.0), Some(800.0), 3),
        "in the order of numbers"
    );
    assert_eq!(assessment.cells[2].meets, Some(false), "40 ms of what was sent is not the rate's");
    assert!(
        assessment.cells[2].invalid && assessment.validity == Validity::Valid,
        "{:?}",
        assessment.validity
    );
    assert!(knee.story[1].contains("800 op/s offered: the rate was not reached"), "{:?}", knee.story);
    assert!(
        assessment.findings.iter().all(|one| one.severity < Severity::Critical),
        "{:?}",
        assessment.findings
    );
    assert!(assessment.bottlenecks.is_empty(), "all workers waited: {:?}", assessment.bottlenecks);
    let first = assess(&evaluation, &runs[..1]).knees.remove(0);
    assert_eq!((first.level, first.next), (None, Some(800.0)), "it may end at its first level");
    (evaluation.loads[0].search, evaluation.loads[0].service_level) = (None, None);
    assert!(assess(&evaluation, &runs).validity != Validity::Valid, "a rate that was asked for");
}

#[test]
fn open_loops_are_compared_by_latency() {
    let mut runs = Vec::new();
    for repeat in 1..=3u32 {
        for (arm, ms) in [("a", 20), ("b", 30)] {
            let mut run = open_run(400.0, runs.len() as u32 + 1, ms, 0);
            let member = member(&mut run);
            (member.arm, member.repeat) = (arm.into(), repeat);
            runs.push(run);
        }
    }
    let assessment = assess(&evaluation(&["a", "b"], vec![load("open", levels("rate", &["400"]))], 3), &runs);
    let metrics: Vec<_> = assessment.comparisons.iter().map(|one| (one.metric, one.outcome)).collect();
    assert_eq!(metrics, [(Metric::MeanLatency, Outcome::Worse), (Metric::TailLatency, Outcome::Worse)]);
}

#[test]
fn knees_stand_beside_the_first_arms() {
    let mut runs = Vec::new();
    for (arm, times) in [("slow", 1.0), ("fast", 2.0)] {
        for (workers, rate) in [("10", 400.0), ("20", 500.0), ("40", 450.0)] {
            let turn = runs.len() as u32 + 1;
            runs.push(member_run(arm, "l", &[("workers", workers)], 1, turn, rate * times));
        }
    }
    let load = load("l", levels("workers", &["10", "20", "40"]));
    let assessment = assess(&evaluation(&["slow", "fast"], vec![load], 1), &runs);
    let knees: Vec<_> = assessment.knees.iter().map(|knee| (knee.arm.as_str(), knee.level)).collect();
    assert_eq!(knees, [("slow", Some(20.0)), ("fast", Some(20.0))]);
    let verdict = assessment.verdict.join(" ");
    assert!(
        verdict.contains("2.00x throughput for l at workers 20"),
        "where the baseline does most: {verdict}"
    );
    assert!(verdict.contains("That is 2.00x the throughput of slow at its own knee."), "{verdict}");
}

#[test]
fn ties_go_to_the_lowest_load() {
    let at = |workers, turn, rate| member_run("a", "l", &[("workers", workers)], 1, turn, rate);
    let runs = [at("10", 1, 400.0), at("20", 2, 500.0), at("40", 3, 503.0)];
    let load = load("l", levels("workers", &["10", "20", "40"]));
    let knee = assess(&evaluation(&["a"], vec![load], 1), &runs).knees.remove(0);
    assert_eq!((knee.level, knee.peak), (Some(20.0), (40.0, 503.0)));
    assert!(knee.story[1].contains("which single runs cannot tell from noise"), "{:?}", knee.story);
    let again = |workers, turn, rate| member_run("a", "l", &[("workers", workers)], 2, turn, rate);
    let more = [again("10", 4, 401.0), again("20", 5, 499.0), again("40", 6, 502.0)];
    let runs: Vec<Run> = runs.into_iter().chain(more).collect();
    let load = self::load("l", levels("workers", &["10", "20", "40"]));
    let knee = assess(&evaluation(&["a"], vec![load], 2), &runs).knees.remove(0);
    assert!(knee.story[1].contains("within the noise"), "{:?}", knee.story);
}

/// Two arms with a search for the highest rate: `a` meets the service level up to 400 op/s, `b` up to 800.
fn searched() -> (Evaluation, Vec<Run>) {
    let search = Search { axis: "rate".into(), from: 100.0, to: 2_000.0, within: 0.05 };
    let load = Load { service_level: p95_limit(50, 0.0), search: Some(search), ..load("open", vec![]) };
    let mut runs = Vec::new();
    for repeat in 1..=3u32 {
        for (arm, rate, ms) in
            [("a", 200.0, 10), ("a", 400.0, 20), ("a", 800.0, 60), ("b", 800.0, 20), ("b", 1_000.0, 60)]
        {
            // Repeats differ a little, as repeats do.
            let mut run = open_run(rate, runs.len() as u32 + 1, ms, u64::from(repeat));
            let member = member(&mut run);
            (member.arm, member.repeat) = (arm.into(), repeat);
            runs.push(run);
        }
    }
    (evaluation(&["a", "b"], vec![load], 3), runs)
}

#[test]
fn searches_are_compared_at_their_knees_alone() {
    let (evaluation, runs) = searched();
    let assessment = assess(&evaluation, &runs);
    let shown: Vec<_> = assessment
        .comparisons
        .iter()
        .map(|one| (one.arm.as_str(), one.metric, one.level[0].1.as_str(), one.outcome))
        .collect();
    assert_eq!(shown, [("b", Metric::Throughput, "800", Outcome::Better)]);
    assert!((assessment.comparisons[0].ratio - 2.0).abs() < 0.01, "{:?}", assessment.comparisons);
}

#[test]
fn a_station_on_the_way_of_a_search_does_not_spoil_its_answer() {
    let (evaluation, mut runs) = searched();
    assert_eq!(assess(&evaluation, &runs).validity, Validity::Valid);
    let starve = |runs: &mut [Run], rate: &str| {
        for run in runs.iter_mut().filter(|run| run.member.as_ref().unwrap().level[0].1 == rate) {
            let tally = &mut work(run).operations[0].tally;
            tally.lag.reset();
            tally.lag.record_many(15 * MS, tally.ok);
        }
    };
    starve(&mut runs, "200");
    let assessment = assess(&evaluation, &runs);
    assert!(assessment.cells.iter().any(|cell| cell.invalid), "the cell is marked");
    assert_eq!(assessment.validity, Validity::Valid, "nothing rests on it");
    starve(&mut runs, "400");
    assert!(assess(&evaluation, &runs).validity != Validity::Valid, "the knee rests on this one");
}

#[test]
fn a_rate_that_is_not_done_is_outside_whatever_its_latencies() {
    let level = p95_limit(50, 0.0).unwrap();
    assert_eq!(is_within(&open_run(400.0, 1, 20, 0), &level), Some(true));
    let mut run = open_run(400.0, 1, 20, 0);
    let tally = &mut work(&mut run).operations[0].tally;
    tally.late = tally.ok / 25;
    assert_eq!(is_within(&run, &level), Some(false), "96 % ended within the window: a queue grew");
    let load = Load { service_level: Some(level), ..load("open", levels("rate", &["200", "400"])) };
    let runs = [open_run(200.0, 2, 20, 0), run];
    let knee = assess(&evaluation(&["a"], vec![load], 1), &runs).knees.remove(0);
    assert_eq!((knee.level, knee.next), (Some(200.0), Some(400.0)));
    assert!(knee.story[1].contains("a queue grew"), "{:?}", knee.story);
}
