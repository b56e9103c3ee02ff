//! Runs and seconds for tests.

use proptest::prelude::*;
use tidemark_measure::counts::Class;
use tidemark_measure::fault::Fault;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{
    Example, LongestGap, Note, Operation, Provenance, Run, Second, Stage, State, Work, WorkerCount,
};
use tidemark_measure::tally::{Interval, Tally};
use tidemark_measure::verification::Unchecked;

/// A second with two actions and some of everything.
pub(crate) fn interval(index: u32) -> Interval {
    let mut interval = Interval::new(index, 2);
    for (action, tally) in interval.actions.iter_mut().enumerate() {
        tally.ok = 100 + u64::from(index);
        tally.bytes = tally.ok * 4096;
        tally.faults.count(Fault::Timeout);
        tally.failure.record(30_000_000);
        (0..tally.ok).for_each(|i| tally.response.record(1_000_000 + i * 1_000 * (action as u64 + 1)));
    }
    interval.in_flight = 4;
    interval.first_ok_ns = Some(u64::from(index) * 1_000_000_000);
    interval.last_ok_ns = Some(u64::from(index) * 1_000_000_000 + 999_000_000);
    (interval.cpu_ns, interval.wall_ns) = (300_000_000, 1_000_000_000);
    interval
}

/// A run that has just begun.
pub(crate) fn begun(name: &str) -> Run {
    let stage = |id: &str| Stage { id: id.into(), name: id.into(), ..Stage::default() };
    Run {
        name: name.into(),
        state: State::Running,
        started_unix_ns: 1_700_000_000_000_000_000,
        stages: vec![stage("s1-prepare"), stage("s2-main")],
        ..Run::default()
    }
}

/// The run at its end, with one work that has the tallies of `seconds`.
pub(crate) fn ended(name: &str, seconds: &[Interval]) -> Run {
    let mut run = begun(name);
    let mut work = Work { name: "w1".into(), workers: 4, window_end_ns: 20_000_000_000, ..Work::default() };
    for label in ["read", "write"] {
        work.operations.push(Operation { label: label.into(), weight: 50.0, ..Operation::default() });
    }
    for second in seconds {
        work.operations.iter_mut().zip(&second.actions).for_each(|(own, tally)| own.tally.add(tally));
        work.series.push(Second::from(second));
    }
    (run.state, run.elapsed_ns) = (State::Completed, 21_000_000_000);
    run.stages[1].state = State::Completed;
    run.stages[1].works = vec![work];
    run
}

/// The JSON of anything: what "equal" means for records.
pub(crate) fn json(run: &Run) -> serde_json::Value {
    serde_json::to_value(run).unwrap()
}

pub(crate) fn same_interval(left: &Interval, right: &Interval) -> bool {
    let tallies = |interval: &Interval| serde_json::to_value(&interval.actions).unwrap();
    let rest = |interval: &Interval| format!("{:?}", Interval { actions: Vec::new(), ..interval.clone() });
    tallies(left) == tallies(right) && rest(left) == rest(right)
}

prop_compose! {
    fn histogram()(values in prop::collection::vec((1u64..4_000_000_000_000, 1u64..1_000_000), 0..6)) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|(value, count)| histogram.record_many(value, count));
        histogram
    }
}

prop_compose! {
    fn tally()(
        [ok, bytes, late, late_bytes, retries] in prop::array::uniform5(any::<u64>()),
        faults in prop::collection::vec((prop::sample::select(Fault::ALL), 1u64..1_000_000), 0..4),
        unchecked in prop::collection::vec((prop::sample::select(<Unchecked as Class>::ALL), 1u64..1_000_000), 0..3),
        [response, service_open, lag, own_lag_open, first_byte, failure] in prop::array::uniform6(histogram()),
    ) -> Tally {
        let (early, early_bytes) = (retries / 2, retries);
        let (faults, unchecked) = (faults.into(), unchecked.into());
        Tally { verified: late, placed: late / 2, unchecked, ok, bytes, late, late_bytes, early, early_bytes, outside_bytes: late_bytes, retries, faults, response, service_open, lag, own_lag_open, first_byte, failure }
    }
}

prop_compose! {
    pub(crate) fn any_interval()(
        (index, in_flight) in any::<(u32, u32)>(),
        [unmeasured, oldest_in_flight_ns, backlog, cpu_ns, wall_ns] in prop::array::uniform5(any::<u64>()),
        (first_ok_ns, last_ok_ns) in any::<(Option<u32>, Option<u32>)>(),
        actions in prop::collection::vec(tally(), 0..3),
    ) -> Interval {
        let (first_ok_ns, last_ok_ns) = (first_ok_ns.map(u64::from), last_ok_ns.map(u64::from));
        Interval { index, actions, unmeasured, in_flight, oldest_in_flight_ns, backlog, first_ok_ns, last_ok_ns, cpu_ns, wall_ns, stalled_ns: cpu_ns }
    }
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,12}|[\\x00-\\x7f]{0,12}"
}

fn state() -> impl Strategy<Value = State> {
    // A waiting or running run of a live process comes back as it is, too.
    prop::sample::select(vec![
        State::Waiting,
        State::Running,
        State::Completed,
        State::Failed,
        State::Interrupted,
    ])
}

prop_compose! {
    fn work()(
        seconds in prop::collection::vec(any_interval(), 0..3),
        tallies in prop::collection::vec((tally(), 0.0f64..100.0, text()), 0..3),
        offered_rate in prop::option::of(prop::num::f64::NORMAL),
        [window_start_ns, window_end_ns, last_done_ns, unsent] in prop::array::uniform4(any::<u64>()),
        longest_gap in any::<Option<(u64, u64)>>(),
        (name, given_up, example) in (text(), text(), text()),
        count in any::<(u32, u16, u64, u64)>(),
    ) -> Work {
        let (worker, operation, ok, response_ns) = count;
        Work {
            name,
            given_up,
            offered_rate,
            window_start_ns,
            window_end_ns,
            last_done_ns,
            unsent,
            series: seconds.iter().map(Second::from).collect(),
            operations: tallies.into_iter().map(|(tally, weight, label)| Operation { label, weight, tally, ..Operation::default() }).collect(),
            longest_gap: longest_gap.map(|(from_ns, to_ns)| LongestGap { from_ns, to_ns }),
            examples: vec![Example { fault: Fault::Denied, text: example }],
            workers_counts: vec![WorkerCount { worker, operation, ok, response_ns, ..WorkerCount::default() }],
            ..Work::default()
        }
    }
}

prop_compose! {
    pub(crate) fn any_run()(
        (name, description, document) in (text(), text(), text()),
        (started_unix_ns, elapsed_ns, seed) in any::<(u64, u64, u64)>(),
        (state, stage_state) in (state(), state()),
        works in prop::collection::vec(work(), 0..3),
    ) -> Run {
        Run {
            name,
            description,
            started_unix_ns,
            elapsed_ns,
            state,
            provenance: Provenance { document, seed, targets: vec!["s3 http://127.0.0.1:1".into()], ..Provenance::default() },
            notes: vec![Note { topic: "kib-units".into(), text: "KB is 1000 bytes".into() }],
            stages: vec![Stage { state: stage_state, works, ..Stage::default() }],
            ..Run::default()
        }
    }
}
