//! Drivers that are there and do not do as they should: a run ends all the same, and says what is wrong.

use super::*;

/// How long a driver may take to reply: long for a fake that replies at once, short for one that never does.
const REPLY: Duration = Duration::from_secs(3);

fn hasty() -> Host {
    Host::patient(Timeouts { ready: REPLY, report: REPLY })
}

/// Two stages with a load that is over quickly.
fn two() -> String {
    stage("first", &reads("a", 2, "totalOps=\"20\"")) + &stage("second", &reads("a", 2, "totalOps=\"20\""))
}

/// A run on two drivers; `b` does what `act` does.
fn with_b(plan: &Plan, act: impl FnMut(&Link, &Down) -> bool + Send + 'static) -> Run {
    let host = hasty();
    let (_a, _b) = (host.fake("a", |_, _| false), host.fake("b", act));
    let run = host.run(plan, &["a", "b"]);
    assert!(host.fleet.members().iter().all(|member| member.run.is_none()), "all drivers are free again");
    run
}

#[test]
fn fakes_that_are_polite_make_a_run() {
    let run = with_b(&plan(&two()), |_, _| false);
    assert_eq!(states(&run), [State::Completed; 2], "{:?}", run.stages);
    assert!(run.stages.iter().all(|stage| done(stage) == 20 && stage.works[0].workers_counts.len() == 2));
}

#[test]
fn one_that_does_not_say_whether_it_is_ready_is_given_up() {
    let silent = |_: &Link, down: &Down| matches!(down, Down::Prepare { .. });
    let host = hasty();
    let (_a, _b) = (host.fake("a", |_, _| false), host.fake("b", silent));
    let error = host.execute(&plan(&two()), &["a", "b"], &mut Follower::default()).unwrap_err();
    assert_eq!(error, "driver b was lost: it did not say within 3 s whether it was ready");
    let run = with_b(&losing(&two(), OnLoss::Continue), silent);
    assert_eq!((run.state, run.stages[0].shares.len()), (State::Completed, 1));

    let silent = |_: &Link, down: &Down| matches!(down, Down::Open { stage: 0, .. });
    let run = with_b(&plan(&(two() + &clean_up())), silent);
    assert_eq!(states(&run), [State::Failed, State::Waiting, State::Completed]);
    assert!(run.stages[0].reason.contains("did not say within"), "{}", run.stages[0].reason);
    let run = with_b(&losing(&two(), OnLoss::Continue), silent);
    assert_eq!(states(&run), [State::Failed, State::Waiting], "operations that had to be done are missing");
    assert!(
        run.stages[0].reason.contains("nothing is known of the rest of its operations"),
        "{}",
        run.stages[0].reason
    );
}

#[test]
fn one_that_refuses_is_enough() {
    let host = Host::new();
    let _a = host.fake("a", |_, down| matches!(down, Down::Prepare { .. }));
    let _b = host.fake("b", |link, down| match *down {
        Down::Prepare { run, .. } => {
            link.send(Up::Refused { run, reason: "no".into() });
            true
        }
        _ => false,
    });
    let error = host.execute(&plan(&two()), &["a", "b"], &mut Follower::default()).unwrap_err();
    assert_eq!(error, "driver b: no");
}

#[test]
fn one_that_crashes_says_so() {
    let run = with_b(&plan(&two()), |link, down| match *down {
        Down::Start { run, .. } => {
            link.send(Up::Refused { run, reason: "its part of the run crashed".into() });
            true
        }
        _ => false,
    });
    assert_eq!(states(&run), [State::Failed, State::Waiting]);
    assert!(run.stages[0].reason.contains("driver b was lost: its part of the run crashed"));
}

#[test]
fn one_that_says_nothing_of_its_load_is_given_up() {
    let run = with_b(&plan(&two()), |_, down| matches!(down, Down::Start { .. }));
    assert_eq!(states(&run), [State::Failed, State::Waiting]);
    let reason = &run.stages[0].reason;
    assert!(reason.contains("driver b was lost: it reported nothing of its load for 3 s"), "{reason}");
}

#[test]
fn one_that_does_not_stop_is_given_up() {
    let host = hasty();
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let _a = host.fake("a", move |link, down| {
        let Down::Start { run, stage, .. } = *down else { return false };
        for tenth in 1.. {
            std::thread::sleep(Duration::from_millis(100));
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            // A second is told of when it is over.
            if tenth % 10 == 0 {
                link.second(Second { run, stage, work: 0, interval: second(tenth / 10 - 1, 1) });
            }
        }
        true
    });
    let run = host.execute(&plan(&two()), &["a"], &mut Follower::wishing(StopRequest::Stop)).unwrap();
    over.store(true, Ordering::Relaxed);
    assert_eq!(states(&run), [State::Interrupted, State::Waiting]);
    assert_eq!(run.drivers[0].lost.as_ref().unwrap().reason, "it did not stop within 3 s");
    assert!(done(&run.stages[0]) > 0, "what had come is kept");
}

#[test]
fn what_is_said_twice_or_of_others_counts_once() {
    let run = with_b(&plan(&two()), |link, down| {
        let Down::Start { run, stage, .. } = *down else { return false };
        let other = stage.wrapping_sub(1);
        for (stage, work) in [(stage, 1), (stage, u32::MAX), (other, 0), (stage + 1, 0)] {
            link.second(Second { run, stage, work, interval: second(0, 1000) });
            let part = Part { work, first: 1, count: 1 };
            link.send(Up::Ended { run, stage, work, ending: Ok(Box::new(ending(part))) });
        }
        link.second(Second { run: run + 1, stage, work: 0, interval: second(0, 1000) });
        link.send(Up::StageEnded { run, stage: stage + 1, proof: None });
        polite(link, down, &[Part { work: 0, first: 1, count: 1 }]);
        polite(link, down, &[Part { work: 0, first: 1, count: 1 }]);
        true
    });
    assert_eq!(states(&run), [State::Completed; 2], "{:?}", run.stages);
    for stage in &run.stages {
        assert_eq!((done(stage), stage.works[0].workers_counts.len(), stage.works[0].threads), (20, 2, 2));
        assert!(stage.shares.iter().all(|share| share.ok == 10 && share.complete));
    }
}

#[test]
fn one_that_sends_what_cannot_be_is_given_up() {
    for what in 0..4 {
        let run = with_b(&plan(&two()), move |link, down| {
            let Down::Start { run, stage, .. } = *down else { return false };
            let send = |interval| link.second(Second { run, stage, work: 0, interval });
            send(second(1, 5));
            match what {
                0 => send(second(1, 5)),
                1 => send(second(0, 5)),
                2 => send(b"nonsense".to_vec()),
                _ => {
                    let ending = ending(Part { work: 0, first: 7, count: 1 });
                    link.send(Up::Ended { run, stage, work: 0, ending: Ok(Box::new(ending)) });
                    link.send(Up::StageEnded { run, stage, proof: None });
                }
            }
            true
        });
        assert_eq!(states(&run), [State::Failed, State::Waiting]);
        let (reason, what) = (
            &run.stages[0].reason,
            ["second 1 after second 1", "second 0 after", "encoding", "was not given"][what],
        );
        assert!(reason.contains("driver b") && reason.contains(what), "{reason}");
        assert_eq!(run.stages[0].shares[1].ok, 5);
        assert!(!run.stages[0].shares[1].complete);
    }
}

#[test]
fn a_part_whose_end_is_not_told_is_missing() {
    let over = |link: &Link, down: &Down| {
        let Down::Start { run, stage, .. } = *down else { return false };
        link.second(Second { run, stage, work: 0, interval: second(0, 10) });
        link.send(Up::StageEnded { run, stage, proof: None });
        true
    };
    let run = with_b(&plan(&two()), over);
    assert_eq!(states(&run), [State::Failed, State::Waiting]);
    assert!(run.stages[0].reason.contains("driver b did not report how its share ended"));
    assert_eq!((done(&run.stages[0]), run.stages[0].shares[1].complete), (20, false));
}

#[test]
fn a_part_that_ended_of_itself_is_not_the_load_that_was_asked_for() {
    let run = with_b(&plan(&two()), |link, down| {
        let Down::Start { run, stage, .. } = *down else { return false };
        let part = Part { work: 0, first: 1, count: 1 };
        let ending = Ending { interrupted: true, ..ending(part) };
        link.send(Up::Ended { run, stage, work: 0, ending: Ok(Box::new(ending)) });
        link.send(Up::StageEnded { run, stage, proof: None });
        true
    });
    assert_eq!(states(&run), [State::Failed, State::Waiting]);
    assert!(run.stages[0].reason.contains("driver b ended its share early"), "{}", run.stages[0].reason);
}

#[test]
fn one_that_is_lost_after_its_part_ended_has_cost_its_stage_nothing() {
    // It says all that was measured, and never that the stage is over.
    let run = with_b(&plan(&two()), |link, down| {
        let Down::Start { run, stage, .. } = *down else { return false };
        let part = Part { work: 0, first: 1, count: 1 };
        link.second(Second { run, stage, work: 0, interval: second(0, 10) });
        link.send(Up::Ended { run, stage, work: 0, ending: Ok(Box::new(ending(part))) });
        true
    });
    assert_eq!(states(&run), [State::Completed, State::Failed], "the next stage misses it");
    assert!(run.stages[0].shares.iter().all(|share| share.complete));
    assert_eq!(run.stages[1].reason, "driver b was lost: it did not end its stage");
}

#[test]
fn one_that_does_not_let_go_is_not_waited_for_long() {
    let run = with_b(&plan(&two()), |_, down| matches!(down, Down::Release { .. }));
    assert_eq!(states(&run), [State::Completed; 2]);
}

#[test]
fn those_who_have_nothing_to_do_have_done_it() {
    let nothing = |link: &Link, down: &Down| {
        let Down::Open { run, stage: 0, .. } = *down else { return false };
        ready(link, run, 0, Opened::Nothing("all is there".into()));
        link.send(Up::StageEnded { run, stage: 0, proof: None });
        true
    };
    let no_start =
        move |link: &Link, down: &Down| nothing(link, down) || matches!(down, Down::Start { stage: 0, .. });
    // Its part of a work.
    let run = with_b(&plan(&two()), no_start);
    assert_eq!(states(&run), [State::Completed; 2], "{}", run.stages[0].reason);
    let shares = &run.stages[0].shares;
    assert!(shares.iter().all(|share| share.complete));
    assert_eq!((shares[0].ok, shares[1].ok), (10, 0));
    // The whole of one work of two.
    let works =
        reads("a", 1, "totalOps=\"10\" driver=\"a\"") + &reads("b", 1, "totalOps=\"10\" driver=\"b\"");
    let run = with_b(&plan(&stage("main", &works)), no_start);
    assert_eq!(states(&run), [State::Completed], "{}", run.stages[0].reason);
    assert_eq!(run.stages[0].reason, "work `b`: all is there");
    assert_eq!((done(&run.stages[0]), run.stages[0].works.len()), (10, 2));
    // All of the stage.
    let host = hasty();
    let _b = host.fake("b", no_start);
    let run = host.run(&plan(&two()), &["b"]);
    assert_eq!(states(&run), [State::Completed; 2]);
    assert_eq!((run.stages[0].reason.as_str(), done(&run.stages[1])), ("all is there", 10));
}

#[test]
fn one_that_cannot_open_its_part_fails_the_stage_for_all() {
    let run = with_b(&plan(&(two() + &clean_up())), |link, down| {
        let Down::Open { run, stage: 0, .. } = *down else { return false };
        ready(link, run, 0, Opened::Failed("no such thing".into()));
        link.send(Up::StageEnded { run, stage: 0, proof: None });
        true
    });
    assert_eq!(states(&run)[..2], [State::Failed, State::Waiting]);
    assert_eq!(run.stages[0].reason, "driver b: no such thing");
    assert_eq!(run.stages[2].shares.len(), 2, "both clean up");
}

#[test]
fn one_that_cannot_clean_up_leaves_the_others_to_it() {
    let refuses = |link: &Link, down: &Down| {
        if let Down::Open { run, stage, .. } = *down {
            ready(link, run, stage, Opened::Failed("it is in use".into()));
            link.send(Up::StageEnded { run, stage, proof: None });
        }
        matches!(down, Down::Open { .. } | Down::Start { .. })
    };
    let is_silent = |_: &Link, down: &Down| matches!(down, Down::Open { .. });
    let goes_away = |_: &Link, down: &Down| matches!(down, Down::Start { .. });
    type Act = fn(&Link, &Down) -> bool;
    let cases: [(Act, &str); 3] = [
        (refuses, "driver b: it is in use"),
        (is_silent, "did not say within"),
        (goes_away, "driver b was lost"),
    ];
    for (act, reason) in cases {
        let run = with_b(&plan(&clean_up()), act);
        let stage = &run.stages[0];
        assert_eq!((stage.state, done(stage)), (State::Failed, 10), "{reason}");
        assert!(stage.reason.contains(reason), "{}", stage.reason);
    }
    // Where nobody can, nothing is done.
    let host = hasty();
    let _b = host.fake("b", refuses);
    let run = host.run(&plan(&clean_up()), &["b"]);
    assert_eq!((states(&run), done(&run.stages[0])), (vec![State::Failed], 0));
    assert_eq!(run.stages[0].reason, "driver b: it is in use");
}
