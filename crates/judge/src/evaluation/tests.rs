//! Whole evaluations, made up of runs whose truth is known.

use super::*;
use crate::Severity;
use crate::knee::Side;
use crate::rules::testing::{MS, healthy_open, member_run, said_run, sweep_run, work};
use crate::words::failures::Failures;
use std::time::Instant;
use tidemark_measure::axis::Axis;
use tidemark_measure::evaluation::{Arm, Load, Member, Search};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::State;
use tidemark_measure::rng::Rng;
use tidemark_measure::service_level::{Limit, ServiceLevel, Statistic};

mod differences;
mod limits;
mod open_loops;
mod time;

use differences::noisy;
use open_loops::open_run;

fn levels(axis: &str, values: &[&str]) -> Vec<Level> {
    values.iter().map(|value| vec![Axis::of_words(axis, value)]).collect()
}

fn evaluation(arms: &[&str], loads: Vec<Load>, repeats: u32) -> Evaluation {
    let arm = |name: &&str| Arm { name: (*name).to_owned(), ..Arm::default() };
    Evaluation { id: 1, arms: arms.iter().map(arm).collect(), loads, repeats, ..Evaluation::default() }
}

fn load(name: &str, levels: Vec<Level>) -> Load {
    Load { name: name.into(), levels, ..Load::default() }
}

/// `p95 <= base + size / 1 MiB/s`.
fn p95_limit(base_ms: u64, ns_per_byte: f64) -> Option<ServiceLevel> {
    let statistic = Statistic::Quantile(0.95);
    let limits = vec![Limit { operation: String::new(), statistic, base_ns: base_ms * MS, ns_per_byte }];
    Some(ServiceLevel { text: "p95 <= 200ms + size / 1MiBps".into(), limits, failures: 0.0 })
}

/// Two arms, alternating, at one level: these rates.
fn two_arms(baseline: &[f64], other: &[f64]) -> (Evaluation, Vec<Run>) {
    let level = levels("workers", &["4"]);
    let repeats = baseline.len().max(other.len());
    let evaluation = evaluation(&["baseline", "other"], vec![load("small", level)], repeats as u32);
    let mut runs = Vec::new();
    for repeat in 0..repeats {
        for (arm, rates) in [("baseline", baseline), ("other", other)] {
            let turn = runs.len() as u32 + 1;
            let rate = rates.get(repeat);
            let at = [("workers", "4")];
            runs.extend(rate.map(|rate| member_run(arm, "small", &at, repeat as u32 + 1, turn, *rate)));
        }
    }
    (evaluation, runs)
}

fn has<'a>(assessment: &'a Assessment, rule: &str) -> Option<&'a Finding> {
    assessment.findings.iter().find(|finding| finding.rule() == rule)
}

fn member(run: &mut Run) -> &mut Member {
    run.member.as_mut().unwrap()
}

/// The table of mission.md A: workers, 95 % ms, op/s, for reads of 128 KB, of which 8 are 1 MB.
const PUBLISHED: [(&str, f64, f64); 10] = [
    ("5", 20.00, 369.49),
    ("10", 20.00, 711.24),
    ("20", 20.00, 1383.30),
    ("40", 30.00, 2517.94),
    ("80", 46.67, 3662.71),
    ("160", 56.67, 4693.97),
    ("320", 106.67, 5019.85),
    ("640", 230.00, 4998.13),
    ("1280", 470.00, 4947.15),
    ("2560", 923.33, 4840.19),
];

fn published(service_level: Option<ServiceLevel>) -> Assessment {
    let workers: Vec<&str> = PUBLISHED.iter().map(|row| row.0).collect();
    let load = Load { service_level, ..load("read", levels("workers", &workers)) };
    let runs = PUBLISHED.iter().enumerate().map(|(index, (workers, p95, rate))| {
        said_run(&[("workers", workers)], index as u32 + 1, *rate, *p95, 131_072.0)
    });
    assess(&evaluation(&["table"], vec![load], 1), &runs.collect::<Vec<_>>())
}

#[test]
fn the_published_table_has_its_knee_at_320_workers() {
    let assessment = published(p95_limit(200, 1e9 / 1_048_576.0));
    let knee = &assessment.knees[0];
    assert_eq!((knee.level, knee.throughput, knee.peak), (Some(320.0), 5019.85, (320.0, 5019.85)));
    assert_eq!((knee.highest_within, knee.next, knee.levels), (Some(640.0), Some(1280.0), 10));
    assert_eq!((assessment.outcome, &assessment.validity), (Outcome::NotCompared, &Validity::Valid));
    let verdict = assessment.verdict.join(" ").replace('\u{202f}', " ");
    println!("{verdict}");
    for part in [
        "table, read: the best load within the service level (p95 <= 200ms + size / 1MiBps) is 320 workers: 5 020 op/s, p95 107 ms of 325 ms allowed; no level has more throughput.",
        "The service level is met up to 640 workers, with 0.43 % less throughput: 4 998 op/s, p95 230 ms of 325 ms allowed.",
        "The first load outside is 1 280 workers: p95 470 ms of 325 ms allowed, 4 947 op/s.",
        "From 320 workers to 2 560 workers throughput falls by 3.58 % to 4 840 op/s, while p95 grows from 107 ms to 923 ms, 8.66 x.",
        "VALID",
    ] {
        assert!(verdict.contains(part), "{part}\n{verdict}");
    }
}

#[test]
fn without_a_service_level_the_knee_is_where_throughput_stops_growing() {
    let assessment = published(None);
    let knee = &assessment.knees[0];
    assert_eq!((knee.level, knee.highest_within, knee.next), (Some(320.0), None, None));
    let verdict = assessment.verdict.join(" ").replace('\u{202f}', " ");
    assert!(
        verdict.contains("throughput no longer grows after 320 workers: 5 020 op/s, p95 107 ms."),
        "{verdict}"
    );
}

#[test]
fn a_service_level_that_nothing_meets_or_everything() {
    let none = published(p95_limit(10, 0.0));
    assert_eq!((none.knees[0].level, none.knees[0].next, none.knees[0].throughput), (None, Some(5.0), 0.0));
    assert!(none.knees[0].story[0].contains("Even the lowest load is outside"), "{:?}", none.knees[0].story);
    let all = published(p95_limit(5_000, 0.0));
    assert_eq!(
        (all.knees[0].level, all.knees[0].highest_within, all.knees[0].next),
        (Some(320.0), Some(2560.0), None)
    );
    assert!(all.cells.iter().all(|cell| cell.meets == Some(true)));
}

#[test]
fn a_size_that_is_not_known_is_no_verdict() {
    let load = Load { service_level: p95_limit(200, 1.0), ..load("read", levels("workers", &["5"])) };
    let runs = [said_run(&[("workers", "5")], 1, 100.0, 20.0, 0.0)];
    assert_eq!(assess(&evaluation(&["table"], vec![load], 1), &runs).cells[0].meets, None);
}

#[test]
fn a_faster_arm_is_better() {
    let (evaluation, runs) = two_arms(&[400.0, 404.0, 396.0], &[480.0, 485.0, 474.0]);
    let assessment = assess(&evaluation, &runs);
    assert_eq!((assessment.outcome, &assessment.validity), (Outcome::Better, &Validity::Valid));
    let [throughput, tail] = assessment.comparisons.as_slice() else {
        panic!("{:?}", assessment.comparisons)
    };
    assert_eq!((throughput.metric, tail.metric), (Metric::Throughput, Metric::TailLatency));
    assert!((throughput.ratio - 1.2).abs() < 0.01 && (tail.ratio - 1.0 / 1.2).abs() < 0.01);
    assert_eq!(
        (throughput.outcome, tail.outcome),
        (Outcome::Better, Outcome::Better),
        "less latency is better"
    );
    let verdict = &assessment.verdict;
    println!("{verdict:#?}");
    assert!(
        verdict[0].starts_with(
            "other is better than baseline: 1.20x throughput for small at workers 4 (95 % interval"
        ),
        "{verdict:?}"
    );
    assert!(verdict[1].starts_with("VALID"), "{verdict:?}");
}

#[test]
fn a_slower_arm_is_worse() {
    let (evaluation, runs) = two_arms(&[400.0, 404.0, 396.0], &[320.0, 322.0, 318.0]);
    let assessment = assess(&evaluation, &runs);
    assert_eq!(assessment.outcome, Outcome::Worse);
    assert!(
        assessment.verdict[0].contains("other is worse than baseline: 0.80x"),
        "{:?}",
        assessment.verdict
    );
}

#[test]
fn without_repeats_nothing_is_compared() {
    let (evaluation, runs) = two_arms(&[400.0], &[800.0]);
    let assessment = assess(&evaluation, &runs);
    assert_eq!((assessment.outcome, assessment.comparisons[0].p), (Outcome::NotCompared, None));
    assert!(
        assessment.verdict[0]
            .contains("other compared with baseline, not tested (too few repeats): 2.00x throughput for small at workers 4"),
        "{:?}",
        assessment.verdict
    );
}

#[test]
fn here_better_and_there_worse_is_mixed() {
    let (mut evaluation, mut runs) = two_arms(&[400.0, 404.0, 396.0], &[480.0, 485.0, 474.0]);
    evaluation.loads.push(load("large", levels("workers", &["4"])));
    let (_, others) = two_arms(&[400.0, 404.0, 396.0], &[320.0, 322.0, 318.0]);
    for mut run in others {
        member(&mut run).load = "large".into();
        member(&mut run).turn += 6;
        runs.push(run);
    }
    let assessment = assess(&evaluation, &runs);
    assert_eq!(assessment.outcome, Outcome::Mixed);
    let overview = "other, all 4 comparisons of single cells: 2 better, 2 worse.";
    assert!(assessment.verdict.iter().any(|line| line == overview), "{:#?}", assessment.verdict);
    let places: Vec<_> =
        assessment.cells.iter().map(|cell| (cell.load.as_str(), cell.arm.as_str())).collect();
    assert_eq!(
        places,
        [("small", "baseline"), ("small", "other"), ("large", "baseline"), ("large", "other")]
    );
    assert!(assessment.verdict[0].contains("other is better than baseline: 1.20x throughput for small"));
    assert!(assessment.verdict[0].contains("0.80x throughput for large"), "{:#?}", assessment.verdict);
}

#[test]
fn the_latest_completed_run_of_a_repeat_counts() {
    let (evaluation, mut runs) = two_arms(&[400.0, 404.0, 396.0], &[400.0, 404.0, 396.0]);
    let mut again = member_run("other", "small", &[("workers", "4")], 1, 9, 800.0);
    again.id = 77;
    runs.insert(0, again);
    let mut failed = member_run("other", "small", &[("workers", "4")], 2, 10, 1.0);
    failed.state = State::Failed;
    runs.push(failed);
    let assessment = assess(&evaluation, &runs);
    let cell = &assessment.cells[1];
    assert_eq!((cell.runs.as_slice(), cell.throughput.values[0]), (&[77, 4, 6][..], 800.0));
    let note = has(&assessment, "runs-not-completed").unwrap();
    assert_eq!(note.severity, Severity::Note, "it was measured again: {note:?}");
    assert_eq!(note.title(), "one run did not complete and was repeated");
    runs.retain(|run| run.id != 4);
    let assessment = assess(&evaluation, &runs);
    assert_eq!(has(&assessment, "runs-not-completed").unwrap().severity, Severity::Warning);
    let few = has(&assessment, "repeats-missing").unwrap();
    assert_eq!(few.evidence(), ["other, small at workers 4: 2 of 3"]);
}

#[test]
fn what_is_no_member_is_ignored() {
    let (evaluation, mut runs) = two_arms(&[400.0], &[400.0]);
    let foreign = |change: fn(&mut Member)| {
        let mut run = member_run("baseline", "small", &[("workers", "4")], 2, 9, 900.0);
        change(member(&mut run));
        run
    };
    runs.push(foreign(|member| member.evaluation = 2));
    runs.push(foreign(|member| member.arm = "nobody".into()));
    runs.push(foreign(|member| member.load = "nothing".into()));
    runs.push(crate::rules::testing::healthy());
    let assessment = assess(&evaluation, &runs);
    assert!(assessment.cells.iter().all(|cell| cell.runs.len() == 1), "{:?}", assessment.cells);
    let nothing = assess(&Evaluation::default(), &runs);
    assert_eq!(
        (nothing.verdict.as_slice(), nothing.cells.len()),
        (&["Nothing was measured.".to_owned()][..], 0)
    );
}

#[test]
fn one_invalid_repeat_makes_the_cell_and_the_assessment_invalid() {
    let (evaluation, mut runs) = two_arms(&[400.0; 3], &[400.0; 3]);
    for run in &mut runs[..3] {
        if run.member.as_ref().unwrap().arm == "baseline" {
            work(run).series.iter_mut().for_each(|second| second.busy = 2.0);
        }
    }
    let assessment = assess(&evaluation, &runs);
    let reasons = assessment.validity.sentences();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(
        reasons[0].starts_with("baseline, small at workers 4: the load generator was the bottleneck"),
        "{reasons:?}"
    );
    assert!(reasons[0].ends_with("(in 2 of 3 runs)"), "{reasons:?}");
    assert_eq!(assessment.cells.iter().map(|cell| cell.invalid).collect::<Vec<_>>(), [true, false]);
    assert!(assessment.verdict[0].starts_with("INVALID"), "{:?}", assessment.verdict);
    let limit = &assessment.bottlenecks[0];
    assert_eq!((limit.arm.as_str(), limit.finding.rule()), ("baseline", "generator-busy"));
    assert!(limit.finding.title().ends_with("(in 2 of 3 runs)"), "{}", limit.finding.title());
    let limit = "What limited arm baseline under small: the load generator was the bottleneck";
    assert!(assessment.verdict[2].starts_with(limit), "{:?}", assessment.verdict);
}

#[test]
fn critical_findings_of_runs_are_folded() {
    let (evaluation, mut runs) = two_arms(&[400.0; 3], &[400.0; 3]);
    for run in &mut runs {
        if run.member.as_ref().unwrap().arm == "other" {
            let tally = &mut work(run).operations[0].tally;
            (0..8_000).for_each(|_| tally.faults.count(Fault::Timeout));
        }
    }
    let assessment = assess(&evaluation, &runs);
    let critical: Vec<_> =
        assessment.findings.iter().filter(|finding| finding.severity == Severity::Critical).collect();
    assert!(
        !critical.is_empty() && critical.iter().all(|one| one.title().starts_with("other, small: ")),
        "{critical:?}"
    );
    assert!(critical.iter().any(|one| one.title().ends_with("(in 3 of 3 runs)")), "{critical:?}");
    assert_eq!((assessment.cells[1].failed, assessment.cells[1].total), (24_000, 48_000));
}

#[test]
fn a_run_in_which_nothing_succeeded_does_not_vanish() {
    let (evaluation, mut runs) = two_arms(&[400.0; 3], &[400.0; 3]);
    let tally = &mut work(&mut runs[3]).operations[0].tally;
    (tally.ok, tally.bytes) = (0, 0);
    tally.response.reset();
    (0..8_000).for_each(|_| tally.faults.count(Fault::Timeout));
    let assessment = assess(&evaluation, &runs);
    let reasons = assessment.validity.sentences();
    assert!(reasons[0].starts_with("other, small at workers 4: "), "{reasons:?}");
    assert_eq!(assessment.cells[1].runs, [2, 6]);
    assert_eq!(
        has(&assessment, "repeats-missing").unwrap().evidence(),
        ["other, small at workers 4: 2 of 3"]
    );
    let level = p95_limit(5_000, 0.0).unwrap();
    assert_eq!((side(&runs[3], &level), side(&runs[2], &level)), (Side::Outside, Side::Within));
}

#[test]
fn a_single_run_is_within_or_not() {
    let level = |ms| p95_limit(ms, 0.0).unwrap();
    assert_eq!(side(&open_run(400.0, 1, 19, 0), &level(20)), Side::Within);
    assert_eq!(side(&open_run(400.0, 1, 21, 0), &level(20)), Side::Outside);
    assert_eq!(side(&open_run(400.0, 1, 10, 4_000), &level(20)), Side::Outside, "the rate was not reached");
    let interrupted = Run { state: State::Interrupted, ..open_run(400.0, 1, 20, 0) };
    assert_eq!(side(&interrupted, &level(20)), Side::Unclear);
    assert_eq!(
        side(&said_run(&[], 1, 100.0, 20.0, 0.0), &p95_limit(200, 1.0).unwrap()),
        Side::Unclear,
        "no size"
    );
}

#[test]
fn failures_are_part_of_the_service_level() {
    let (mut evaluation, mut runs) = two_arms(&[400.0], &[400.0]);
    evaluation.loads[0].service_level = p95_limit(200, 0.0);
    (0..9).for_each(|_| work(&mut runs[1]).operations[0].tally.faults.count(Fault::Timeout));
    let assessment = assess(&evaluation, &runs);
    assert_eq!(assessment.cells.iter().map(|cell| cell.meets).collect::<Vec<_>>(), [Some(true), Some(false)]);
    evaluation.loads[0].service_level.as_mut().unwrap().failures = 0.01;
    assert_eq!(assess(&evaluation, &runs).cells[1].meets, Some(true));
}

#[test]
fn a_limit_may_be_for_one_operation() {
    let (mut evaluation, mut runs) = two_arms(&[400.0], &[400.0]);
    for run in &mut runs {
        let mut write = work(run).operations[0].clone();
        (write.label, write.kind) = ("2-write".into(), "write".into());
        write.class = tidemark_measure::kind::OperationClass::Write;
        write.tally.response.reset();
        write.tally.response.record_many(300 * MS, 100);
        work(run).operations.push(write);
        // Twice as many workers have time for it.
        work(run).workers = 8;
        work(run).workers_counts.clear();
    }
    let mut level = p95_limit(200, 0.0).unwrap();
    level.limits[0].operation = "read".into();
    evaluation.loads[0].service_level = Some(level.clone());
    let assessment = assess(&evaluation, &runs);
    assert_eq!(assessment.cells[0].meets, Some(true));
    let labels: Vec<_> = assessment.cells[0].operations.iter().map(|one| one.label.as_str()).collect();
    assert_eq!(labels, ["read", "2-write"]);
    assert!((assessment.cells[0].throughput.mean - 800.0).abs() < 1e-9, "both together");
    level.limits[0].operation = "write".into();
    evaluation.loads[0].service_level = Some(level);
    assert_eq!(assess(&evaluation, &runs).cells[0].meets, Some(false), "by its type");
}

#[test]
fn percentiles_of_all_operations_are_of_their_merged_times() {
    let (evaluation, mut runs) = two_arms(&[400.0], &[400.0]);
    let mut slow = work(&mut runs[0]).operations[0].clone();
    slow.label = "write".into();
    slow.tally.response.reset();
    slow.tally.response.record_many(300 * MS, 8_000);
    work(&mut runs[0]).operations.push(slow);
    let cell = &assess(&evaluation, &runs).cells[0];
    let near = |ns: Option<&Estimate>, ms: f64| (ns.unwrap().mean / 1e6 / ms - 1.0).abs() < 0.001;
    assert!(near(cell.p50_ns.as_ref(), 10.0) && near(cell.p95_ns.as_ref(), 300.0), "{cell:?}");
    assert!(near(cell.mean_ns.as_ref(), 155.0) && cell.response.count() == 16_000);
}

#[test]
fn imported_numbers_stand_in_for_histograms() {
    let mut run = said_run(&[], 1, 100.0, 20.0, 4096.0);
    let mut worse = work(&mut run).operations[0].clone();
    worse.label = "write".into();
    worse.reported.as_mut().unwrap().percentiles = vec![(0.95, 70.0 * 1e6)];
    work(&mut run).operations.push(worse);
    let assessment = assess(&evaluation(&["table"], vec![load("read", vec![])], 1), &[run]);
    let cell = &assessment.cells[0];
    assert_eq!(
        (cell.throughput.mean, cell.p95_ns.as_ref().unwrap().mean),
        (200.0, 70e6),
        "the worst operation's"
    );
    assert_eq!((cell.p99_ns.as_ref(), cell.mean_ns.as_ref(), cell.response.is_empty()), (None, None, true));
    assert!(!cell.invalid);
}

#[test]
fn points_of_a_sweep_are_levels_and_their_repeats_count() {
    let mut run = sweep_run(&["4 KiB", "64 KiB"], 3);
    run.member = Some(Member {
        evaluation: 1,
        arm: "a".into(),
        load: "block".into(),
        repeat: 1,
        turn: 1,
        ..Member::default()
    });
    let mut slower = run.clone();
    member(&mut slower).arm = "b".into();
    slower.stages.iter_mut().for_each(|stage| stage.works[0].operations[0].tally.ok = 6_000);
    let runs = [run, slower];
    let assessment = assess(&evaluation(&["a", "b"], vec![load("block", vec![])], 1), &runs);
    let cells: Vec<_> =
        assessment.cells.iter().map(|cell| (cell.arm.as_str(), words::level(&cell.level))).collect();
    let [small, large] = ["randread, 4 KiB, clients 1", "randread, 64 KiB, clients 1"].map(String::from);
    assert_eq!(cells, [("a", small.clone()), ("b", small), ("a", large.clone()), ("b", large)]);
    assert_eq!(assessment.cells[0].throughput.values, [400.0; 3], "repeats in the run");
    assert_eq!(assessment.cells[0].subject, "", "a single sweep needs no name");
    assert_eq!(assessment.outcome, Outcome::Worse);
    let assessment = assess(&evaluation(&["a", "b"], vec![load("block", vec![])], 2), &runs);
    assert_eq!(assessment.cells[0].throughput.values, [400.0], "the evaluation has repeats of its own");
}

#[test]
fn several_stages_are_several_subjects() {
    let (evaluation, mut runs) = two_arms(&[400.0], &[400.0]);
    for run in &mut runs {
        let mut second = run.stages[0].clone();
        (second.id, second.name) = ("s2-after".into(), "after".into());
        run.stages.push(second);
    }
    let assessment = assess(&evaluation, &runs);
    let subjects: Vec<_> = assessment.cells.iter().map(|cell| cell.subject.as_str()).collect();
    assert_eq!(subjects, ["main", "main", "after", "after"]);
}

#[test]
fn outliers_and_spread_are_told_of() {
    let (evaluation, runs) =
        two_arms(&[400.0, 401.0, 399.0, 400.0, 250.0], &[400.0, 428.0, 372.0, 400.0, 400.0]);
    let assessment = assess(&evaluation, &runs);
    let apart = has(&assessment, "outliers").unwrap();
    assert!(apart.evidence()[0].contains("250 op/s (run 9), median 400 op/s"), "{apart:?}");
    let differ = has(&assessment, "repeats-differ").unwrap();
    assert!(differ.severity == Severity::Warning && differ.detail().contains("repeats until"), "{differ:?}");
    assert!((assessment.cells[0].throughput.mean - 370.0).abs() < 1e-9, "nothing is dropped");
}

#[test]
fn missing_cells_are_told_of() {
    let (mut evaluation, runs) = two_arms(&[400.0], &[400.0]);
    evaluation.missing = vec!["other was not set up: exit status 1.".into()];
    let finding = assess(&evaluation, &runs).findings.remove(0);
    assert_eq!(finding.rule(), "cells-missing");
    assert_eq!(finding.evidence(), evaluation.missing);
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(32))]

    #[test]
    fn no_numbers_and_no_levels_break_it(
        rows in proptest::collection::vec(
            (proptest::num::f64::ANY, proptest::num::f64::ANY, proptest::num::f64::ANY, 0..4usize, 0..3u32, 0..3usize),
            0..8,
        ),
        service_level in proptest::bool::ANY,
    ) {
        let workers = ["1", "many", "1e999", ""];
        let runs = rows.iter().enumerate().map(|(turn, (rate, p95, bytes, level, repeat, arm))| {
            let mut run = said_run(&[("workers", workers[*level])], turn as u32, *rate, *p95, *bytes);
            (member(&mut run).arm, member(&mut run).repeat) = (["table", "other", "?"][*arm].into(), *repeat);
            run
        });
        let runs: Vec<Run> = runs.collect();
        let service_level = p95_limit(200, 7.5).filter(|_| service_level);
        let load = Load { service_level, ..load("read", vec![]) };
        proptest::prop_assert!(!assess(&evaluation(&["table", "other"], vec![load], 2), &runs).verdict.is_empty());
    }
}

#[test]
fn two_hundred_runs_are_digested() {
    let names: Vec<String> = (1..=25).map(|workers| format!("{workers}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let evaluation = evaluation(&["a", "b"], vec![load("l", levels("workers", &names))], 4);
    let mut rng = Rng::new(1, &[]);
    let mut runs = Vec::new();
    for repeat in 1..=4u32 {
        for workers in &names {
            for arm in ["a", "b"] {
                let (turn, rate) = (runs.len() as u32 + 1, noisy(&mut rng, 400.0, 0.03));
                runs.push(member_run(arm, "l", &[("workers", workers)], repeat, turn, rate));
            }
        }
    }
    let start = Instant::now();
    let assessment = assess(&evaluation, &runs);
    println!("200 runs in {:?}", start.elapsed());
    assert_eq!((assessment.cells.len(), assessment.comparisons.len(), runs.len()), (50, 50, 200));
}
