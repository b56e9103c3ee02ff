//! The rules together, and runs that nobody made by hand.

use crate::rules::testing::{MS, fail, healthy, healthy_open, reasons, sweep_run, work};
use crate::{Severity, Validity, judge, verdict_sentences};
use proptest::prelude::*;
use tidemark_measure::axis::Axis;
use tidemark_measure::fault::Fault;
use tidemark_measure::kind::{Cache, OperationClass, WorkKind};
use tidemark_measure::record::{
    Cell, DeviceUse, LongestGap, Operation, Proof, Run, Second, SecondOfOperation, Settling, Stage, State,
    Work, WorkerCount,
};
use tidemark_measure::tally::Tally;

#[test]
fn a_healthy_run_is_valid_and_nothing_is_grave() {
    for run in [healthy(), healthy_open()] {
        let judgement = judge(&run);
        assert_eq!(judgement.validity, Validity::Valid);
        let grave: Vec<_> =
            judgement.findings.iter().filter(|finding| finding.severity > Severity::Note).collect();
        assert!(grave.is_empty(), "{grave:?}");
    }
}

#[test]
fn the_gravest_comes_first() {
    let mut run = healthy();
    fail(&mut run, Fault::WrongContent, 1);
    let findings = judge(&run).findings;
    assert_eq!(findings[0].severity, Severity::Critical);
    assert!(findings.is_sorted_by_key(|finding| std::cmp::Reverse(finding.severity)));
}

#[test]
fn an_empty_run_and_stages_not_started_say_nothing() {
    assert!(judge(&Run::default()).findings.is_empty());
    let mut run = healthy();
    run.stages[0].state = State::Waiting;
    run.state = State::Waiting;
    assert!(judge(&run).findings.is_empty());
}

#[test]
fn verdict_of_a_mix() {
    let mut run = healthy();
    let own = work(&mut run);
    own.workers = 32;
    own.operations[0].weight = 70.0;
    let mut write = own.operations[0].clone();
    (write.label, write.weight) = ("write".into(), 30.0);
    write.tally.response.reset();
    write.tally.response.record_many(12 * MS, 999);
    own.operations.push(write);
    own.allowed_failures_per_million = 1_000;
    fail(&mut run, Fault::Reset, 3);
    let sentences = verdict_sentences(&run, &judge(&run));
    assert_eq!(
        sentences[0],
        "main: 70 % read / 30 % write, 32 workers for 20.0 s: 800 op/s (3.28 MB/s), read p99 10.0 ms, \
         write median 12.0 ms; 3 of 16\u{202f}000 operations failed."
    );
}

#[test]
fn a_verdict_leaves_out_what_is_not_known() {
    let mut run = healthy();
    let own = work(&mut run);
    (own.workers, own.operations[0].weight) = (0, 0.0);
    own.operations.push(own.operations[0].clone());
    let first = verdict_sentences(&run, &judge(&run)).swap_remove(0);
    assert!(first.starts_with("main: read / read for 20.0 s: 800 op/s"), "{first}");
}

#[test]
fn verdict_of_valid_invalid_and_failed_runs() {
    let last = |run: &Run| verdict_sentences(run, &judge(run)).pop().unwrap();
    assert_eq!(last(&healthy()), "VALID: the checks found no problem with these numbers.");
    let mut busy = healthy();
    work(&mut busy).series.iter_mut().for_each(|second| second.busy = 1.0);
    assert_eq!(
        last(&busy),
        "INVALID: these numbers do not show what was requested: s1-main, work \"w1\": the load generator was the bottleneck."
    );
    let mut broken = healthy();
    fail(&mut broken, Fault::Refused, 8_000);
    broken.state = State::Failed;
    let sentences = verdict_sentences(&broken, &judge(&broken));
    assert_eq!(sentences[0], "main: read, 4 workers for 20.0 s: all 8\u{202f}000 operations failed.");
    assert_eq!(sentences[1], "The run failed.", "why is among the reasons");
    assert!(sentences[2].contains("none of its"), "{sentences:?}");
    let mut wrong = healthy();
    fail(&mut wrong, Fault::WrongContent, 1);
    work(&mut wrong).allowed_failures_per_million = 1_000_000;
    assert_eq!(
        verdict_sentences(&wrong, &judge(&wrong))[1..],
        [
            "Critical problems: s1-main, work \"w1\": the storage returned wrong data once.",
            "VALID: the numbers are real, but the storage did not work as it should."
        ]
    );
}

#[test]
fn a_run_without_measuring_works_still_has_a_verdict() {
    let mut run = healthy();
    work(&mut run).kind = WorkKind::Prepare;
    assert!(verdict_sentences(&run, &judge(&run))[0].starts_with("main: read"));
    let mut both = healthy();
    both.stages.extend(run.stages);
    assert_eq!(verdict_sentences(&both, &judge(&both)).len(), 2, "the prepare stage is left out");
}

#[test]
fn a_sweep_is_summed_up_by_its_best_points() {
    let mut run = sweep_run(&["4 KiB", "64 KiB", "1 MiB"], 3);
    for (index, stage) in run.stages.iter_mut().enumerate() {
        let tally = &mut stage.works[0].operations[0].tally;
        (tally.ok, tally.bytes) =
            [(9_000, 9_000 << 12), (8_000, 8_000 << 16), (2_000, 2_000 << 20)][index / 3];
    }
    let sentences = verdict_sentences(&run, &judge(&run));
    assert_eq!(
        sentences,
        [
            "rand, randread: peak 450 op/s at 4 KiB, p99 10.0 ms; peak 105 MB/s at 1 MiB; all 57\u{202f}000 operations \
             of 3 points succeeded.",
            "VALID: the checks found no problem with these numbers."
        ]
    );
    for stage in &mut run.stages {
        stage.works[0].series.iter_mut().for_each(|second| second.busy = 1.0);
    }
    let last = verdict_sentences(&run, &judge(&run)).pop().unwrap();
    assert!(last.ends_with("requested: 9 stages: the load generator was the bottleneck."), "{last}");
}

prop_compose! {
    fn number()(bits in any::<u64>(), shift in 0u32..64) -> u64 { bits >> shift }
}

prop_compose! {
    fn tally()(numbers in prop::array::uniform5(number()), fault in 0..Fault::COUNT, values in prop::collection::vec((number(), 0u64..1000), 0..3)) -> Tally {
        let [ok, bytes, late, late_bytes, retries] = numbers;
        let mut tally = Tally { ok, bytes, late, late_bytes, retries, ..Tally::default() };
        tally.faults = vec![(Fault::ALL[fault], numbers[0] % 1_000)].into();
        for (index, (value, count)) in values.into_iter().enumerate() {
            let own = [&mut tally.response, &mut tally.lag, &mut tally.failure];
            own.into_iter().skip(index).for_each(|histogram| histogram.record_many(value, count));
        }
        tally
    }
}

prop_compose! {
    fn second()(index in any::<u32>(), small in 0u32..40, numbers in prop::array::uniform4(number()), busy in any::<f64>(), operations in 0usize..3) -> Second {
        let index = if numbers[0] % 2 == 0 { small } else { index };
        let operation = SecondOfOperation { ok: numbers[0], failed: numbers[1], ..SecondOfOperation::default() };
        Second { index, operations: vec![operation; operations], unmeasured: numbers[2], stalled_ns: numbers[2], in_flight: small, oldest_in_flight_ns: numbers[3], backlog: numbers[2], busy }
    }
}

prop_compose! {
    fn any_work()(
        numbers in prop::array::uniform10(number()),
        tallies in prop::collection::vec(tally(), 0..3),
        series in prop::collection::vec(second(), 0..15),
        (offered_rate, given_up) in (any::<Option<f64>>(), "[a-z]{0,3}"),
        (kind, config, verifies) in (prop::sample::select(vec![WorkKind::Normal, WorkKind::Prepare, WorkKind::Other, WorkKind::Dispose]), "\\PC{0,12}", any::<bool>()),
        workers in prop::collection::vec((any::<u32>(), number(), number(), number()), 0..4),
    ) -> Work {
        let operation = |tally| Operation { label: "read".into(), class: OperationClass::Read, verifies, config: config.clone(), weight: f64::NAN, tally, ..Operation::default() };
        let count = |(worker, ok, first_sent_ns, last_done_ns)| WorkerCount { worker, ok, first_sent_ns, last_done_ns, ..WorkerCount::default() };
        Work {
            kind,
            workers: numbers[0] as u32,
            threads: numbers[1] as u32,
            offered_rate,
            window_start_ns: numbers[2],
            window_end_ns: numbers[3],
            last_done_ns: numbers[4],
            longest_gap: (numbers[5] % 2 == 0).then_some(LongestGap { from_ns: numbers[5], to_ns: numbers[6] }),
            unsent: numbers[7],
            undone: numbers[8],
            depth: numbers[8] as u32,
            settling: (numbers[9] % 2 == 0).then(|| Settling { rounds: vec![numbers[0] as f64; 3], round_ns: numbers[1], steady: numbers[2] % 2 == 0 }),
            allowed_failures_per_million: numbers[9] as u32,
            given_up,
            operations: tallies.into_iter().map(operation).collect(),
            series,
            workers_counts: workers.into_iter().map(count).collect(),
            ..Work::default()
        }
    }
}

fn state() -> impl Strategy<Value = State> {
    prop::sample::select(vec![
        State::Waiting,
        State::Running,
        State::Completed,
        State::Failed,
        State::Interrupted,
    ])
}

prop_compose! {
    fn proof()(numbers in prop::array::uniform4(number()), devices in 0usize..5, unchecked in prop::collection::vec("\\PC{0,9}", 0..3), cache in prop::sample::select(vec![None, Some(Cache::Cold), Some(Cache::Warm)]), direct in any::<bool>()) -> Proof {
        let [read_bytes, written_bytes, discarded_bytes, reads] = numbers;
        let device = DeviceUse { device: "vda".into(), read_bytes, written_bytes, discarded_bytes, reads, ..DeviceUse::default() };
        Proof { devices: vec![device; devices], unchecked, cache, direct, ..Proof::default() }
    }
}

prop_compose! {
    fn cell()(sweep in "a|b", axes in prop::collection::vec(("x|y", "1|2|4 KiB|word|"), 0..3), engine in "native|fio|") -> Cell {
        let axes = axes.into_iter().map(|(name, value)| Axis::of_words(name, &value)).collect();
        Cell { sweep, axes, engine, ..Cell::default() }
    }
}

prop_compose! {
    fn any_run()(works in prop::collection::vec(any_work(), 0..3), cores in 0u32..4, (stage, run) in (state(), state()), proof in prop::option::of(proof()), cells in prop::collection::vec(cell(), 0..3)) -> Run {
        let stage = Stage { state: stage, works, proof, ..Stage::default() };
        let mut run = Run { state: run, stages: vec![stage.clone()], ..Run::default() };
        run.stages.extend(cells.into_iter().map(|cell| Stage { cell: Some(cell), ..stage.clone() }));
        run.provenance.host.cores = cores;
        run
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_run_is_too_odd_to_be_judged(run in any_run()) {
        let judgement = judge(&run);
        let sentences = verdict_sentences(&run, &judgement);
        prop_assert!(!sentences.is_empty());
        prop_assert_eq!(reasons(&judgement).is_empty(), judgement.validity.is_valid());
        for finding in &judgement.findings {
            prop_assert!(!finding.title().is_empty() && !finding.title().ends_with('.'), "{:?}", finding);
        }
    }
}

#[test]
fn evidence_that_nobody_can_read_makes_a_run_invalid() {
    let mut run = healthy();
    let evidence = serde_json::from_str(r#"{"of-another-program": [1]}"#).unwrap();
    run.stages[0].proof = Some(tidemark_measure::record::Proof { evidence, ..Default::default() });
    let judgement = judge(&run);
    let finding = judgement.findings.iter().find(|finding| finding.rule() == "evidence-unread").unwrap();
    assert_eq!(
        finding.title(),
        "evidence was judged by no rule: this program cannot read `of-another-program`"
    );
    assert!(!judgement.is_valid());
}
