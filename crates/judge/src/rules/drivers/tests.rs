//! Runs by several drivers, spoilt in one way each.

use super::super::testing::{MS, healthy, healthy_open, invalid_for, invalid_with, reasons, said, work};
use super::*;
use crate::judge;
use tidemark_measure::host::Host;
use tidemark_measure::kind::WorkKind;
use tidemark_measure::record::{EndpointUse, Lost, ShareSecond};

/// The healthy run (400 op/s for 20 s by 4 workers), put on by four drivers with a worker each.
fn by_drivers(run: Run) -> Run {
    let mut run = run;
    for index in 0..4u32 {
        let second =
            |index| ShareSecond { index, ok: 100, bytes: 100 * 4096, busy: 0.3, ..ShareSecond::default() };
        run.drivers.push(Driver {
            name: format!("d{}", index + 1),
            host: Host { name: format!("host-{}", index + 1), cores: 2, ..Host::default() },
            clock_error_ns: 25_000,
            ..Driver::default()
        });
        run.stages[0].shares.push(Share {
            driver: index,
            first_worker: index,
            workers: 1,
            threads: 1,
            ok: 2_000,
            bytes: 2_000 * 4096,
            first_sent_ns: Some(1_000 * MS + u64::from(index) * 250_000),
            complete: true,
            series: (0..20).map(second).collect(),
            ..Share::default()
        });
    }
    run
}

fn good() -> Run {
    by_drivers(healthy())
}

/// The run without its driver `d3` from this second on.
fn lost_at(second: usize) -> Run {
    let mut run = good();
    let reason = "it said nothing for 10 s".to_owned();
    run.drivers[2].lost = Some(Lost { at_ns: (second as u64 + 10) * SECOND_NS, reason });
    let share = &mut run.stages[0].shares[2];
    (share.complete, share.threads) = (false, 0);
    share.series.truncate(second);
    run
}

#[test]
fn drivers_that_work_together_leave_a_run_valid() {
    let run = good();
    assert_eq!(reasons(&judge(&run)), [""; 0]);
    for rule in ["driver-lost", "driver-slow"] {
        assert_eq!(said(&run, rule), None);
    }
    let skew = said(&run, "driver-skew").unwrap();
    assert_eq!(
        (skew.severity, skew.title().replace('\u{202f}', " ").as_str()),
        (Severity::Good, "4 drivers started within 750 µs of each other (clocks known to 50.0 µs)")
    );
    let none = healthy();
    assert_eq!((said(&none, "driver-skew"), said(&none, "driver-lost")), (None, None));
}

#[test]
fn a_lost_driver_invalidates_what_it_was_missing_in() {
    let finding = said(&lost_at(12), "driver-lost").unwrap();
    assert_eq!((finding.severity, finding.stage.as_deref()), (Severity::Critical, Some("s1-main")));
    assert!(finding.title().starts_with("driver d3 was lost 22"), "{}", finding.title());
    assert!(finding.title().ends_with("into the run: it said nothing for 10 s"), "{}", finding.title());
    let evidence = finding.evidence().join("\n");
    assert!(evidence.starts_with("s1-main, work \"w1\": worker 3 of 4 was missing from 12"), "{evidence}");
    assert!(evidence.ends_with("= 40.00 %"), "{evidence}");
    assert!(invalid_for(&lost_at(12), "driver-lost"));
    assert!(invalid_for(&lost_at(0), "driver-lost"), "nothing of it arrived at all");
}

#[test]
fn a_driver_lost_without_measured_load_is_a_warning() {
    let after = lost_at(20);
    assert_eq!(said(&after, "driver-lost").unwrap().severity, Severity::Warning, "its window was over");
    assert!(!invalid_for(&after, "driver-lost"));
    let mut preparing = lost_at(12);
    work(&mut preparing).kind = WorkKind::Prepare;
    assert_eq!(said(&preparing, "driver-lost").unwrap().severity, Severity::Warning);
    let mut idle = good();
    idle.drivers[3].lost = Some(Lost { at_ns: 30 * SECOND_NS, reason: "its connection was cut".into() });
    let finding = said(&idle, "driver-lost").unwrap();
    assert_eq!((finding.severity, finding.evidence().len()), (Severity::Warning, 0));
    assert_eq!(finding.stage, None);
    assert!(!finding.invalidates);
}

#[test]
fn drivers_that_begin_apart() {
    let with = |late_ns: u64| {
        let mut run = good();
        run.stages[0].shares[3].first_sent_ns = Some(1_000 * MS + late_ns);
        run
    };
    let severity = |run: &Run| said(run, "driver-skew").map(|finding| finding.severity);
    assert_eq!(severity(&with(5_050_000)), Some(Severity::Good), "the clocks may be wrong by 50 µs");
    assert_eq!(severity(&with(5_050_001)), Some(Severity::Warning));
    // 1 % of 20 s.
    assert!(!invalid_for(&with(200_050_000), "driver-skew"));
    assert!(invalid_for(&with(200_050_001), "driver-skew"));
    let mut long = with(1_001 * MS);
    work(&mut long).window_end_ns = 3_600 * SECOND_NS;
    assert!(invalid_for(&long, "driver-skew"), "a second is too much however long the window");
    let mut ramped = with(900 * MS);
    work(&mut ramped).window_start_ns = 2 * SECOND_NS;
    assert_eq!(severity(&ramped), Some(Severity::Note), "a ramp-up may be why");
    let mut open = by_drivers(healthy_open());
    open.stages[0].shares[3].first_sent_ns = Some(1_900 * MS);
    assert_eq!(severity(&open), Some(Severity::Note), "workers of an open loop begin one after the other");
    let mut preparing = with(900 * MS);
    work(&mut preparing).kind = WorkKind::Prepare;
    assert_eq!(severity(&preparing), None);
    let mut alone = good();
    alone.stages[0].shares.iter_mut().skip(1).for_each(|share| share.first_sent_ns = None);
    assert_eq!(severity(&alone), None);
}

#[test]
fn one_saturated_driver_is_not_hidden_by_the_mean() {
    let with = |busy: f64, seconds: usize| {
        let mut run = good();
        run.stages[0].shares[1].series.iter_mut().take(seconds).for_each(|second| second.busy = busy);
        run
    };
    let good = said(&with(0.5, 20), "generator-busy").unwrap();
    assert_eq!(good.severity, Severity::Good);
    assert_eq!(good.title(), "all 4 drivers had reserve: the busiest, d2, was 50.00 % busy on average");
    // The whole, 0.3 busy on average, has reserve.
    assert!(invalid_with(&with(0.97, 11), "the load generator was the bottleneck on driver d2"));
    assert!(!invalid_for(&with(0.97, 10), ""), "half of the time only");
    let near = said(&with(0.92, 20), "generator-busy").unwrap();
    assert_eq!(
        (near.severity, near.title()),
        (Severity::Warning, "the load generator was near its limit on driver d2".to_owned())
    );
    let mut crowded = with(0.48, 20);
    crowded.stages[0].shares[1].threads = 4;
    assert!(invalid_with(&crowded, "on driver d2"), "0.48 x 4 threads on 2 processors");
    let mut open = by_drivers(healthy_open());
    open.stages[0].shares[1].series.iter_mut().for_each(|second| second.busy = 1.0);
    assert_eq!(
        said(&open, "generator-busy").unwrap().severity,
        Severity::Note,
        "its send lag is what counts"
    );
}

#[test]
fn a_driver_much_slower_than_the_others_is_named() {
    let with = |ok: u64| {
        let mut run = good();
        run.stages[0].shares[0].series.iter_mut().for_each(|second| second.ok = ok);
        run
    };
    assert_eq!(said(&with(50), "driver-slow"), None, "half");
    let finding = said(&with(49), "driver-slow").unwrap();
    assert_eq!(
        (finding.severity, finding.title()),
        (Severity::Warning, "driver d1 did less than half of what the others did".to_owned())
    );
    assert!(!finding.invalidates);
    assert!(
        finding.evidence()[0].contains("980.0 operations per worker in the window"),
        "{}",
        finding.evidence()[0]
    );
    let mut more_workers = with(49);
    more_workers.stages[0].shares.iter_mut().skip(1).for_each(|share| share.workers = 4);
    assert_eq!(said(&more_workers, "driver-slow"), None, "per worker it is not slow");
    let mut two = with(10);
    two.stages[0].shares.truncate(2);
    assert_eq!(said(&two, "driver-slow"), None, "two have no median");
    let own = EndpointUse { kind: EndpointKind::Driver, ..EndpointUse::default() };
    two.stages[0].works[0].endpoints = vec![own.clone(), own];
    let apart = said(&two, "driver-slow").unwrap();
    assert_eq!(
        apart.title(),
        "driver d1 did less than half of what the others did",
        "each has volumes of its own"
    );
    let mut few = with(0);
    few.stages[0].shares.iter_mut().for_each(|share| share.series.truncate(1));
    few.stages[0].shares.iter_mut().skip(1).for_each(|share| share.series[0].ok = 99);
    assert_eq!(said(&few, "driver-slow"), None, "too few to tell");
}

#[test]
fn damaged_records_make_no_panic() {
    let mut run = good();
    run.stages[0].shares[0].driver = 99;
    run.stages[0].shares[1].work = 99;
    run.stages[0].shares[2].first_worker = u32::MAX;
    run.stages[0].shares[2].complete = false;
    run.stages[0].shares[2].series.push(ShareSecond { index: u32::MAX, ..ShareSecond::default() });
    run.stages[0].shares[3].first_sent_ns = Some(u64::MAX);
    run.stages[0].state = State::Failed;
    judge(&run);
    run.drivers.clear();
    judge(&run);
}

#[test]
fn no_driver_is_blamed_for_a_run_whose_process_died() {
    let mut run = good();
    run.stages[0].shares.iter_mut().for_each(|share| share.complete = false);
    assert!(said(&run, "driver-lost").is_some());
    (run.state, run.stages[0].state) = (State::Interrupted, State::Interrupted);
    assert_eq!(said(&run, "driver-lost"), None);
    run.drivers[1].lost = Some(Lost { at_ns: 5 * SECOND_NS, reason: "it said nothing".into() });
    assert_eq!(
        said(&run, "driver-lost").unwrap().title(),
        "driver d2 was lost 5.00 s into the run: it said nothing"
    );
}

#[test]
fn a_rate_of_which_a_lost_driver_s_part_is_missing_is_not_said_to_be_reached() {
    let mut run = by_drivers(healthy_open());
    assert_eq!(said(&run, "offered-rate").unwrap().severity, Severity::Good);
    run.stages[0].shares[2].complete = false;
    work(&mut run).operations[0].tally.ok = 6_000;
    assert_eq!(said(&run, "offered-rate"), None, "6000 of 8000 are known");
}
