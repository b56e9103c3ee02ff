//! Whatever the network does, all that is said arrives once and in order.

use super::*;
use crate::protocol::{Down, PackedPlan, Second, Up};
use tidemark_measure::host::Utilization;
use tidemark_measure::observation::Node;
use tidemark_plan::plan::Plan;

const MESSAGES: u64 = 4_000;

/// The number of a message of these tests.
fn number(heard: &FromDriver) -> Option<u64> {
    match heard {
        FromDriver::Message(up) => match &**up {
            Up::Prepared { run, targets, .. } => {
                assert_eq!(targets.len() as u64, *run % 5);
                Some(*run)
            }
            other => panic!("{other:?} was never said"),
        },
        FromDriver::Second(second) => {
            assert_eq!(second.interval, vec![second.run as u8; second.run as usize % 300]);
            Some(second.run)
        }
        FromDriver::Disconnected | FromDriver::Reconnected => None,
        FromDriver::Gone(reason) => panic!("{reason}"),
    }
}

fn talk(link: &Link, run: u64) {
    if run.is_multiple_of(3) {
        let targets = vec!["somewhere".into(); run as usize % 5];
        link.send(Up::Prepared { run, targets, holdings: Vec::new() });
    } else {
        let interval = vec![run as u8; run as usize % 300];
        link.second(Second { run, stage: 1, work: 2, interval });
    }
}

#[test]
fn all_arrives_once_and_in_order_over_a_network_that_is_cut_anywhere() {
    let host = Host::new(options());
    let network = Network::new(&host);
    let link = host.driver("d1", network.address);
    let heard = host.claim("d1", 3);
    network.state.cuts.store(30, Ordering::SeqCst);
    network.cut();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for run in 0..MESSAGES {
                talk(&link, run);
                link.utilization(Utilization::default());
                if run % 20 == 0 {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        });
        scope.spawn(|| {
            for run in 0..MESSAGES {
                host.fleet.send("d1", Down::Release { run });
                if run % 20 == 0 {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        });
        scope.spawn(|| {
            let (mut expected, mut away) = (0, false);
            while expected < MESSAGES {
                match next(&link) {
                    FromController::Message(down) => {
                        assert_eq!(*down, Down::Release { run: expected });
                        expected += 1;
                    }
                    FromController::Disconnected => assert!(!std::mem::replace(&mut away, true)),
                    FromController::Reconnected => assert!(std::mem::replace(&mut away, false)),
                    other => panic!("{other:?}"),
                }
            }
        });
        let (mut expected, mut away) = (0, 0);
        while expected < MESSAGES {
            let (tag, heard) = heard.recv_timeout(TIMEOUT).expect("all that was said");
            assert_eq!(tag, 7);
            away += usize::from(matches!(heard, FromDriver::Disconnected));
            if let Some(number) = number(&heard) {
                assert_eq!(number, expected);
                expected += 1;
            }
        }
        assert!(away >= 5, "only {away} cuts");
    });
    assert!(link.settle(TIMEOUT));
    assert!(network.state.connections.load(Ordering::SeqCst) > 20);
    assert!(heard.try_iter().all(|(_, heard)| number(&heard).is_none()), "something came twice");
}

#[test]
fn a_driver_is_away_while_the_network_swallows_and_comes_back_with_what_it_said() {
    let host = Host::new(options());
    let network = Network::new(&host);
    let link = host.driver("d1", network.address);
    let heard = host.claim("d1", 3);
    let changes = host.fleet.changes();
    let before = *changes.borrow();
    network.swallow(true);
    talk(&link, 0);
    assert!(matches!(heard.recv_timeout(TIMEOUT), Ok((_, FromDriver::Disconnected))));
    assert_eq!(host.presence("d1"), Some(Presence::Silent));
    assert!(host.member("d1").unwrap().silent >= options().silent_after);
    assert!(matches!(next(&link), FromController::Disconnected));
    talk(&link, 1);
    host.fleet.send("d1", Down::Release { run: 9 });
    assert!(!link.settle(Duration::from_millis(1)));
    network.swallow(false);
    // Whatever hangs in the network is cut at last.
    network.cut();
    assert!(matches!(next(&link), FromController::Reconnected));
    assert!(matches!(next(&link), FromController::Message(down) if *down == Down::Release { run: 9 }));
    assert!(matches!(heard.recv_timeout(TIMEOUT), Ok((_, FromDriver::Reconnected))));
    for run in 0..2 {
        let (_, heard) = heard.recv_timeout(TIMEOUT).unwrap();
        assert_eq!(number(&heard), Some(run));
    }
    assert_eq!(host.presence("d1"), Some(Presence::Present));
    assert!(*changes.borrow() > before);
}

#[test]
fn large_messages_go_both_ways_at_once() {
    let host = Host::new(options());
    let link = host.driver("d1", host.address);
    let heard = host.claim("d1", 3);
    // Neither side may wait for the other to read.
    let text = "x".repeat(24 << 20);
    let node = Node { at_ns: vec![u64::MAX; text.len() / 20], ..Node::default() };
    link.send(Up::Released { run: 1, nodes: vec![node.clone()], origin_ns: 0 });
    host.fleet.send("d1", prepare(text.clone()));
    let FromController::Message(down) = next(&link) else { panic!("no plan") };
    assert!(matches!(*down, Down::Prepare { plan, .. } if plan.unpack().unwrap().description == text));
    loop {
        match heard.recv_timeout(TIMEOUT).unwrap().1 {
            FromDriver::Message(up) => {
                assert!(matches!(*up, Up::Released { nodes, .. } if nodes == [node]));
                return;
            }
            // While it writes, it may be silent for as long as this machine is busy.
            FromDriver::Disconnected | FromDriver::Reconnected => {}
            other => panic!("{other:?}"),
        }
    }
}

fn prepare(description: String) -> Down {
    let plan = Plan {
        name: "a plan".into(),
        description,
        seed: 1,
        trigger: None,
        stages: Vec::new(),
        notes: Vec::new(),
        observe: Default::default(),
        drivers: Default::default(),
    };
    Down::Prepare {
        run: 1,
        driver: "d".into(),
        plan: PackedPlan::new(&plan).unwrap(),
        open_files: 0,
        writer: 0,
        skip_preflight: true,
        lost_after_ns: 0,
        elsewhere: Vec::new(),
    }
}

#[test]
fn what_is_too_large_ends_the_session_with_a_reason_and_a_new_one_begins() {
    let host = Host::new(options());
    let link = host.driver("d1", host.address);
    let heard = host.claim("d1", 3);
    link.second(Second { run: 1, stage: 0, work: 0, interval: vec![0; SECOND_MOST] });
    let FromController::SessionLost(reason) = next(&link) else { panic!("not void") };
    assert!(reason.contains("maximum is 4 MiB"), "{reason}");
    assert!(matches!(next(&link), FromController::Joined { anew: true, .. }));
    assert!(matches!(heard.recv_timeout(TIMEOUT), Ok((7, FromDriver::Gone(_)))));
    host.fleet.release("d1");
    wait(|| host.presence("d1") == Some(Presence::Present));

    let heard = host.claim("d1", 4);
    host.fleet.send("d1", prepare("x".repeat(MESSAGE_MOST)));
    let Ok((7, FromDriver::Gone(reason))) = heard.recv_timeout(TIMEOUT) else { panic!("not gone") };
    assert!(reason.contains("maximum is 64 MiB"), "{reason}");
    assert!(matches!(next(&link), FromController::SessionLost(_)));
    assert!(matches!(next(&link), FromController::Joined { anew: true, .. }));
}
