//! Drivers that are lost, and users who want it ended: in every phase of a run.

use super::*;

/// A load that goes on after the first second, in which its driver is cut off.
const TIMED: &str = "runtime=\"5\"";
const TIMED_NS: u64 = 5_000_000_000;

/// A load that ends because of something else.
const ENDLESS: &str = "runtime=\"120\"";
const ENDLESS_NS: u64 = 120_000_000_000;

/// A follower that cuts a driver off at the first second of a stage.
fn cutting(driver: Driver, at_stage: usize) -> Follower {
    let mut driver = Some(driver);
    Follower::telling(move |event, _| {
        if let Event::Second { stage, .. } = event
            && *stage == at_stage
        {
            driver.take();
        }
    })
}

fn stages(load: &str) -> String {
    stage("main", &reads("a", 4, load)) + &stage("more", &reads("a", 4, "totalOps=\"40\"")) + &clean_up()
}

#[test]
fn a_stage_that_loses_a_driver_ends_and_those_who_are_left_clean_up() {
    let host = Host::new();
    let (_a, b) = (host.driver("a"), host.driver("b"));
    let mut follower = cutting(b, 0);
    let run = host.execute(&losing(&stages(ENDLESS), OnLoss::Stop), &["a", "b"], &mut follower).unwrap();
    assert_eq!(states(&run), [State::Failed, State::Waiting, State::Completed]);
    let reason = &run.stages[0].reason;
    assert!(reason.contains("driver b was lost: its user stopped it"), "{reason}");
    assert!(run.stages[0].works[0].window_end_ns < ENDLESS_NS);
    let complete: Vec<_> = run.stages[0].shares.iter().map(|share| share.complete).collect();
    assert_eq!(complete, [true, false]);
    let lost: u64 = run.stages[0].shares.iter().map(|share| share.ok).sum();
    assert_eq!(lost, done(&run.stages[0]), "what had come of it counts");
    assert!(run.stages[2].shares.iter().all(|share| share.driver == 0 && share.complete));
    assert_eq!(done(&run.stages[2]), 40);
    assert_eq!(run.drivers[0].lost, None);
    assert!(run.drivers[1].lost.as_ref().unwrap().at_ns > 0);
    let told = follower.troubles.iter().filter(|text| text.contains("driver b is lost")).count();
    assert_eq!(told, 1, "{:?}", follower.troubles);
}

#[test]
fn one_stage_fails_for_a_loss_and_the_next_ones_run_without() {
    let host = Host::new();
    let (_a, b) = (host.driver("a"), host.driver("b"));
    let mut plan = losing(&stages(ENDLESS), OnLoss::Stop);
    plan.stages.iter_mut().for_each(|stage| stage.on_failure = OnFailure::Continue);
    let run = host.execute(&plan, &["a", "b"], &mut cutting(b, 0)).unwrap();
    assert_eq!(states(&run), [State::Failed, State::Completed, State::Completed]);
    assert_eq!(done(&run.stages[1]), 40);
}

#[test]
fn a_stage_may_go_on_with_those_who_are_left() {
    let host = Host::new();
    let (_a, b) = (host.driver("a"), host.driver("b"));
    let plan = losing(&stages(TIMED), OnLoss::Continue);
    let run = host.execute(&plan, &["a", "b"], &mut cutting(b, 0)).unwrap();
    assert_eq!(states(&run), [State::Completed; 3]);
    assert_eq!(run.stages[0].works[0].window_end_ns, TIMED_NS);
    assert!(!run.stages[0].shares[1].complete);
    assert_eq!(done(&run.stages[1]), 40, "the next stage is assigned among those who are left");
    assert_eq!(run.stages[1].shares.len(), 1);
}

#[test]
fn operations_that_had_to_be_done_are_missing_however_it_goes_on() {
    let host = Host::new();
    let (_a, b) = (host.driver("a"), host.driver("b"));
    let text = stage("main", &reads("a", 4, "totalOps=\"16000\""));
    let run = host.execute(&losing(&text, OnLoss::Continue), &["a", "b"], &mut cutting(b, 0)).unwrap();
    assert_eq!(states(&run), [State::Failed]);
    let reason = &run.stages[0].reason;
    assert!(reason.contains("nothing is known of the rest of its operations"), "{reason}");
    assert_eq!(run.stages[0].shares[0].ok, 8000, "those who are left do theirs");
}

#[test]
fn a_load_that_loses_all_its_drivers_fails_however_it_goes_on() {
    let host = Host::new();
    let (a, b) = (host.driver("a"), host.driver("b"));
    let mut both = Some((a, b));
    let mut follower = Follower::telling(move |event, _| {
        if let Event::Second { .. } = event {
            both.take();
        }
    });
    let run = host.execute(&losing(&stages(ENDLESS), OnLoss::Continue), &["a", "b"], &mut follower).unwrap();
    assert_eq!(states(&run), [State::Failed, State::Waiting, State::Failed]);
    assert_eq!(run.stages[2].reason, "all drivers are lost");
    assert!(run.stages[0].works[0].window_end_ns < ENDLESS_NS);
}

#[test]
fn a_pinned_work_that_is_lost_ends_the_others_or_not_as_the_document_says() {
    for (on_loss, load) in [(OnLoss::Stop, ENDLESS), (OnLoss::Continue, TIMED)] {
        let works = reads("a", 1, load) + &reads("b", 1, &format!("{load} driver=\"b\""));
        let host = Host::new();
        let (_a, b) = (host.driver("a"), host.driver("b"));
        let plan = losing(&stage("main", &works), on_loss);
        let run = host.execute(&plan, &["a", "b"], &mut cutting(b, 0)).unwrap();
        assert_eq!(states(&run), [State::Failed]);
        let [free, pinned] = &run.stages[0].works[..] else { panic!("{:?}", run.stages[0].works) };
        match on_loss {
            OnLoss::Stop => assert!(free.window_end_ns < ENDLESS_NS, "{}", free.window_end_ns),
            OnLoss::Continue => assert_eq!(free.window_end_ns, TIMED_NS),
        }
        assert!(pinned.given_up.starts_with("driver b was lost"), "{}", pinned.given_up);
        assert_eq!(free.given_up.is_empty(), on_loss == OnLoss::Continue);
    }
}

#[test]
fn a_driver_that_is_lost_between_two_stages_is_lost_to_the_next_one() {
    let text = stage("first", &reads("a", 4, "totalOps=\"40\""))
        + "<workstage name=\"wait\" closuredelay=\"1\"><work type=\"delay\"/></workstage>"
        + &stage("main", &reads("a", 4, "totalOps=\"40\""))
        + &clean_up();
    for (on_loss, expected) in [
        (OnLoss::Stop, [State::Completed, State::Completed, State::Failed, State::Completed]),
        (OnLoss::Continue, [State::Completed; 4]),
    ] {
        let host = Host::new();
        let (_a, b) = (host.driver("a"), host.driver("b"));
        let mut b = Some(b);
        let mut follower = Follower::telling(move |event, _| {
            if let Event::Pausing { .. } = event {
                b.take();
            }
        });
        let run = host.execute(&losing(&text, on_loss), &["a", "b"], &mut follower).unwrap();
        assert_eq!(states(&run), expected, "{on_loss:?}");
        if on_loss == OnLoss::Stop {
            assert!(run.stages[2].reason.starts_with("driver b was lost"), "{}", run.stages[2].reason);
        }
    }
}

#[test]
fn an_idle_driver_that_is_lost_costs_nothing() {
    let host = Host::new();
    let (_a, b) = (host.driver("a"), host.driver("b"));
    let text = stage("main", &reads("a", 1, TIMED)) + &stage("more", &reads("a", 1, "totalOps=\"9\""));
    let run = host.execute(&losing(&text, OnLoss::Stop), &["a", "b"], &mut cutting(b, 0)).unwrap();
    assert_eq!(states(&run), [State::Completed; 2]);
    assert!(run.drivers[1].lost.is_some());
}

#[test]
fn the_user_ends_a_load_and_what_was_measured_is_kept() {
    for stop_request in [StopRequest::Finish, StopRequest::Stop] {
        let host = Host::new();
        let _drivers = ["a", "b"].map(|name| host.driver(name));
        let plan = plan(&(stage("main", &reads("a", 4, ENDLESS)) + &clean_up()));
        let run = host.execute(&plan, &["a", "b"], &mut Follower::wishing(stop_request)).unwrap();
        let cleaned = if stop_request == StopRequest::Finish { State::Completed } else { State::Waiting };
        assert_eq!(states(&run), [State::Interrupted, cleaned]);
        assert_eq!(
            (run.state, run.stages[0].reason.as_str()),
            (State::Interrupted, "stopped early by the user")
        );
        let shares = &run.stages[0].shares;
        assert!(shares.iter().all(|share| share.complete && share.ok > 0));
        assert_eq!(shares.iter().map(|share| share.ok).sum::<u64>(), done(&run.stages[0]));
        assert!(run.drivers.iter().all(|driver| driver.lost.is_none()));
    }
}

#[test]
fn the_user_ends_a_run_that_waits_for_a_driver() {
    let plan = plan(&(stage("main", &reads("a", 4, ENDLESS)) + &clean_up()));
    // Before it is ready for the run.
    let host = Host::new();
    let _a = host.driver("a");
    let mut follower = Follower::default();
    let stop_request = Arc::clone(&follower.stop_request);
    let _b = host.fake("b", move |_, down| {
        let asked = matches!(down, Down::Prepare { .. });
        if asked {
            stop_request.raise(StopRequest::Finish);
        }
        asked
    });
    let error = host.execute(&plan, &["a", "b"], &mut follower).unwrap_err();
    assert_eq!(error, "the run was ended before its drivers were ready");
    assert_eq!(host.member("b").unwrap().run, None);
    // Before it is ready for the first stage; it ends its part when it is told to.
    let mut follower = Follower::default();
    let stop_request = Arc::clone(&follower.stop_request);
    let _c = host.fake("c", move |link, down| match *down {
        Down::Open { stage: 0, .. } => {
            stop_request.raise(StopRequest::Finish);
            true
        }
        Down::Order { run, stage, .. } => {
            link.send(Up::StageEnded { run, stage, proof: None });
            true
        }
        _ => false,
    });
    let run = host.execute(&plan, &["a", "c"], &mut follower).unwrap();
    assert_eq!(states(&run), [State::Interrupted, State::Completed], "{}", run.stages[0].reason);
    // In a pause.
    let waits =
        self::plan("<workstage name=\"wait\" closuredelay=\"600\"><work type=\"delay\"/></workstage>");
    let mut follower = Follower::telling(|event, stop_request| {
        if let Event::Pausing { .. } = event {
            stop_request.raise(StopRequest::Stop);
        }
    });
    assert_eq!(host.execute(&waits, &["a"], &mut follower).unwrap().state, State::Interrupted);
}
