//! Pods and nodes that are lost under a healthy load, and what of them could not be watched.

use super::*;
use crate::Severity;
use crate::rules::testing::{healthy, said, work};
use tidemark_measure::record::{Driver, LongestGap, Lost, SecondOfOperation, Unwatched};

const DB: &str = "StatefulSet bench/db";

fn at(tenths: u64, what: Happened, object: &str, owner: &str) -> Happening {
    let part = if object.starts_with("node") { Part::Node } else { Part::Target };
    Happening {
        at_ns: tenths * SECOND_NS / 10,
        what,
        object: object.into(),
        owner: owner.into(),
        part,
        detail: String::new(),
    }
}

/// The healthy run of 20 s at 400 op/s, with nothing from `from` to `to`, in seconds.
fn silent(from: usize, to: usize) -> Run {
    let mut run = healthy();
    let work = work(&mut run);
    work.longest_gap = None;
    work.series[from..to].iter_mut().for_each(|second| second.operations[0] = SecondOfOperation::default());
    run
}

/// A pod of a set is deleted 5.3 s into the run, and its replacement is ready at 8.9 s.
fn replaced() -> Vec<Happening> {
    let pod = "pod bench/db-0";
    vec![
        at(53, Happened::PodDeleted, pod, DB),
        at(55, Happened::ContainerEnded, pod, DB),
        at(56, Happened::PodNotReady, pod, DB),
        at(57, Happened::PodGone, pod, DB),
        at(58, Happened::PodMade, pod, DB),
        at(60, Happened::PodScheduled, pod, DB),
        at(75, Happened::ContainerStarted, pod, DB),
        at(89, Happened::PodReady, pod, DB),
    ]
}

#[test]
fn a_replaced_pod_is_one_loss_with_all_phases_and_its_time_without_service() {
    let mut run = silent(6, 9);
    run.happenings = replaced();
    let found = losses(&run);
    assert_eq!(found.len(), 1, "{found:?}");
    let loss = &found[0];
    assert_eq!(loss.phases, replaced());
    assert_eq!(loss.took_ns(), Some(3_600_000_000));
    assert_eq!(loss.service.without_ns(), Some((3 * SECOND_NS, 5 * SECOND_NS)));
    let Service::Gone { last_ns, first_ns, .. } = loss.service else { panic!("{:?}", loss.service) };
    assert_eq!((last_ns, first_ns), (6 * SECOND_NS, Some(9 * SECOND_NS)));
    let finding = said(&run, "loss").unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.title(), "pod bench/db-0 was deleted; without service for 3.00 s");
    let evidence = finding.evidence();
    assert_eq!(evidence[1], "+200 ms: pod bench/db-0: container ended");
    assert!(evidence.last().unwrap().contains("last success before 6.00 s, first one again after 9.00 s"));
}

#[test]
fn the_loads_own_clock_says_exactly_how_long_it_was() {
    let mut run = silent(6, 9);
    run.happenings = replaced();
    let gap = LongestGap { from_ns: 5_700_000_000, to_ns: 9_100_000_000 };
    work(&mut run).longest_gap = Some(gap);
    assert_eq!(losses(&run)[0].service.without_ns(), Some((3_400_000_000, 3_400_000_000)));
    // Another time without success says nothing of this one.
    work(&mut run).longest_gap = Some(LongestGap { from_ns: 0, to_ns: 4 * SECOND_NS });
    assert_eq!(losses(&run)[0].service.without_ns(), Some((3 * SECOND_NS, 5 * SECOND_NS)));
}

#[test]
fn a_time_without_success_from_one_second_into_the_next_is_seen() {
    let mut run = silent(0, 0);
    run.happenings = replaced();
    work(&mut run).longest_gap = Some(LongestGap { from_ns: 6_100_000_000, to_ns: 7_500_000_000 });
    assert_eq!(losses(&run)[0].service.without_ns(), Some((1_400_000_000, 1_400_000_000)));
    // What is not long is not called an outage, and its length is told.
    work(&mut run).longest_gap = Some(LongestGap { from_ns: 6_100_000_000, to_ns: 6_500_000_000 });
    let service = losses(&run)[0].service;
    assert_eq!(service, Service::Kept { least: 400, usual: 400, longest_ns: Some(400_000_000) });
    let evidence = said(&run, "loss").unwrap().evidence();
    assert!(evidence.last().unwrap().ends_with("the longest time without one was 400 ms"), "{evidence:?}");
}

#[test]
fn a_load_that_goes_on_keeps_its_service() {
    let mut run = silent(0, 0);
    work(&mut run).series[7].operations[0].ok = 12;
    run.happenings =
        vec![at(70, Happened::NodeNotReady, "node n1", "n1"), at(110, Happened::NodeReady, "node n1", "n1")];
    let found = losses(&run);
    assert_eq!(found[0].took_ns(), Some(4 * SECOND_NS));
    assert_eq!(found[0].service, Service::Kept { least: 12, usual: 400, longest_ns: None });
    assert_eq!(said(&run, "loss").unwrap().severity, Severity::Note);
}

#[test]
fn what_never_comes_back_has_no_end() {
    let mut run = silent(6, 20);
    run.happenings = replaced()[..4].to_vec();
    let loss = &losses(&run)[0];
    assert_eq!((loss.took_ns(), loss.phases.len()), (None, 4));
    assert!(matches!(loss.service, Service::Gone { first_ns: None, .. }), "{:?}", loss.service);
    assert_eq!(loss.service.without_ns().map(|(least, _)| least), Some(14 * SECOND_NS));
}

#[test]
fn a_loss_ends_when_as_many_are_back_as_were_lost() {
    let mut run = silent(0, 0);
    let (one, two) = ("pod bench/db-0", "pod bench/db-1");
    run.happenings = vec![
        at(50, Happened::PodDeleted, one, DB),
        at(51, Happened::PodDeleted, two, DB),
        at(60, Happened::PodReady, one, DB),
        at(90, Happened::PodReady, two, DB),
        // A later loss of the same set is another one.
        at(120, Happened::OutOfMemory, one, DB),
        at(130, Happened::PodReady, one, DB),
    ];
    let ends: Vec<_> = losses(&run).iter().map(|loss| loss.returned_ns).collect();
    assert_eq!(ends, [Some(9 * SECOND_NS), Some(13 * SECOND_NS)]);
}

#[test]
fn a_replacement_may_be_ready_before_the_old_pod_is_gone() {
    let mut run = silent(0, 0);
    let (old, new, owner) = ("pod bench/s3-a", "pod bench/s3-b", "ReplicaSet bench/s3");
    run.happenings = vec![
        at(50, Happened::PodDeleted, old, owner),
        at(51, Happened::PodMade, new, owner),
        at(60, Happened::PodReady, new, owner),
        at(80, Happened::ContainerEnded, old, owner),
        at(81, Happened::PodGone, old, owner),
    ];
    let found = losses(&run);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].returned_ns, found[0].phases.len()), (Some(6 * SECOND_NS), 5));
}

#[test]
fn a_driver_that_was_given_up_is_a_phase_of_its_pods_loss() {
    let mut run = silent(0, 0);
    let pod = "pod bench/run-1-x7k2p";
    run.happenings = vec![Happening { part: Part::Driver, ..at(50, Happened::PodDeleted, pod, pod) }];
    let lost = Some(Lost { at_ns: 6 * SECOND_NS, reason: "it left".into() });
    run.drivers = vec![
        Driver { name: "run-0".into(), ..Driver::default() },
        Driver { name: "run-1".into(), lost, ..Driver::default() },
    ];
    let found = losses(&run);
    let phases: Vec<_> = found[0].phases.iter().map(|one| one.what).collect();
    assert_eq!(phases, [Happened::PodDeleted, Happened::DriverLost]);
}

#[test]
fn a_loss_outside_the_load_says_nothing_of_service_and_no_happening_is_no_loss() {
    let mut run = silent(0, 0);
    run.happenings = vec![at(900, Happened::PodDeleted, "pod bench/db-0", DB)];
    assert_eq!(losses(&run)[0].service, Service::Unmeasured);
    run.happenings = vec![at(50, Happened::PodReady, "pod bench/db-0", DB)];
    assert!(losses(&run).is_empty() && said(&run, "loss").is_none());
}

#[test]
fn what_could_not_be_watched_is_said_where_a_timeline_lacks_it_and_nowhere_else() {
    let denied = |what: &str| Unwatched {
        what: what.into(),
        why: format!("cannot list resource {what}"),
        rule: format!("Role in bench: the rule for {what}"),
    };
    let mut run = healthy();
    run.unwatched = vec![denied("nodes"), denied("pods")];
    assert_eq!(said(&run, "unwatched"), None, "nothing went wrong");

    let mut run = silent(6, 16);
    work(&mut run).longest_gap = Some(LongestGap { from_ns: 6 * SECOND_NS, to_ns: 16 * SECOND_NS });
    run.unwatched = vec![denied("nodes"), denied("pods")];
    let finding = said(&run, "unwatched").expect("the load had an outage");
    assert_eq!((finding.severity, finding.evidence().len()), (Severity::Note, 2));
    assert!(finding.evidence()[1].ends_with("Role in bench: the rule for pods"), "{:?}", finding.evidence());

    run.happenings = replaced();
    run.unwatched = vec![denied("nodes")];
    assert_eq!(said(&run, "unwatched"), None, "there is a timeline");
    run.unwatched.push(Unwatched { what: "pods".into(), why: "no answer".into(), rule: String::new() });
    assert_eq!(said(&run, "unwatched").unwrap().evidence(), ["pods: no answer"]);
}

#[test]
fn a_load_that_is_silent_most_of_the_time_says_nothing_of_a_loss() {
    let mut run = silent(1, 20);
    run.happenings = replaced();
    assert_eq!(losses(&run)[0].service, Service::Sparse);
}
