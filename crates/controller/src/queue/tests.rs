//! The queue: examples of what the user reads, and properties that hold for every queue.

use super::*;
use proptest::prelude::*;

fn drivers(count: usize) -> BTreeMap<String, Driver> {
    (1..=count).map(|n| (format!("d{n}"), Driver { answers: true, assignment: Assignment::Free })).collect()
}

fn names(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn waiting(id: u64, wanted: Wanted) -> Waiting {
    Waiting {
        id,
        priority: 0,
        position: id as i64,
        requirements: Requirements { wanted, pinned: BTreeSet::new() },
    }
}

fn named(id: u64, texts: &[&str]) -> Waiting {
    waiting(id, Wanted::Named(names(texts)))
}

fn wait(text: &str) -> Decision {
    Decision::Wait(text.into())
}

fn decisions(queue: &[Waiting], drivers: &BTreeMap<String, Driver>) -> Vec<Decision> {
    decide(queue, drivers).into_iter().map(|(_, decision)| decision).collect()
}

#[test]
fn what_does_not_touch_the_drivers_of_others_passes() {
    let mut there = drivers(4);
    there.get_mut("d1").unwrap().assignment = Assignment::Submission(9);
    let queue = [named(1, &["d1", "d2"]), named(2, &["d2"]), waiting(3, Wanted::Count(1)), named(4, &["d4"])];
    let expected = [
        wait("waiting for w9 to release 1 driver"),
        wait("waiting behind w1"),
        Decision::Begin(names(&["d3"])),
        Decision::Begin(names(&["d4"])),
    ];
    assert_eq!(decisions(&queue, &there), expected);
}

#[test]
fn one_waits_for_what_a_driver_has_not_ended() {
    let mut there = drivers(3);
    let left = |submission, seconds| Assignment::Ending(Left { submission, seconds });
    there.get_mut("d1").unwrap().assignment = left(Some(68), 12);
    let queue = [named(1, &["d1"]), waiting(2, Wanted::Count(2))];
    let expected = [
        wait("waiting for driver d1, which is still ending w68, for 12 s"),
        Decision::Begin(names(&["d2", "d3"])),
    ];
    assert_eq!(decisions(&queue, &there), expected, "others are free");
    there.get_mut("d2").unwrap().assignment = left(None, 3);
    let expected = wait("waiting for drivers d1 and d2, which are still ending w68, for 12 s");
    assert_eq!(decisions(&[waiting(1, Wanted::All)], &there), [expected]);
    there.remove("d1");
    let expected = wait("waiting for driver d2, which is still ending an earlier run, for 3 s");
    assert_eq!(decisions(&[named(1, &["d2"])], &there), [expected]);
}

#[test]
fn one_that_wants_all_is_not_starved() {
    let mut there = drivers(3);
    there.get_mut("d2").unwrap().assignment = Assignment::Submission(7);
    let queue = [waiting(1, Wanted::All), waiting(2, Wanted::Count(1)), named(3, &["d3"])];
    let expected =
        [wait("waiting for w7 to release 1 driver"), wait("waiting behind w1"), wait("waiting behind w1")];
    assert_eq!(decisions(&queue, &there), expected);
    there.get_mut("d2").unwrap().assignment = Assignment::Free;
    assert_eq!(decisions(&queue, &there)[0], Decision::Begin(names(&["d1", "d2", "d3"])));
}

#[test]
fn a_count_waits_for_as_many_as_are_missing() {
    let mut there = drivers(4);
    for name in ["d1", "d2", "d3"] {
        there.get_mut(name).unwrap().assignment = Assignment::Submission(12);
    }
    let queue = [waiting(20, Wanted::Count(3)), named(21, &["d4"])];
    assert_eq!(
        decisions(&queue, &there),
        [wait("waiting for w12 to release 2 drivers"), wait("waiting behind w20")]
    );
}

#[test]
fn what_is_not_joined_is_named_and_holds_nobody_up() {
    let there = drivers(2);
    let queue = [
        named(1, &["d1", "d3"]),
        named(2, &["d3", "d4"]),
        waiting(3, Wanted::Count(4)),
        waiting(4, Wanted::All),
    ];
    let expected = [
        wait("waiting for driver d3 to join"),
        wait("waiting for drivers d3 and d4 to join"),
        wait("waiting for 2 more drivers to join"),
        Decision::Begin(names(&["d1", "d2"])),
    ];
    assert_eq!(decisions(&queue, &there), expected);
    assert_eq!(decisions(&[waiting(1, Wanted::All)], &drivers(0)), [wait("waiting for a driver to join")]);
}

#[test]
fn a_silent_driver_is_waited_for_by_those_who_need_it() {
    let mut there = drivers(2);
    there.get_mut("d1").unwrap().answers = false;
    let queue = [named(1, &["d1"]), waiting(2, Wanted::All)];
    let expected = [wait("waiting for driver d1, which does not respond"), Decision::Begin(names(&["d2"]))];
    assert_eq!(decisions(&queue, &there), expected);
}

#[test]
fn pinned_drivers_are_among_those_taken() {
    let there = drivers(4);
    let pinned = BTreeSet::from(["d3".to_owned()]);
    let one = Waiting {
        requirements: Requirements { wanted: Wanted::Count(2), pinned },
        ..waiting(1, Wanted::All)
    };
    assert_eq!(decisions(&[one], &there), [Decision::Begin(names(&["d1", "d3"]))]);
}

#[test]
fn moving_gives_the_others_priority() {
    let mut queue = vec![named(1, &[]), named(2, &[]), named(3, &[])];
    queue[0].priority = 5;
    assert_eq!(moved(queue.clone(), 3, 1), Some(vec![(3, 5, 0), (1, 5, 1), (2, 0, 2)]));
    assert_eq!(moved(queue.clone(), 1, 3), Some(vec![(2, 0, 0), (1, 0, 1), (3, 0, 2)]));
    assert_eq!(moved(queue.clone(), 9, 1), None);
    assert_eq!(moved(queue, 1, 1), None);
}

fn any_name() -> impl Strategy<Value = String> {
    (1u32..=6).prop_map(|n| format!("d{n}"))
}

prop_compose! {
    fn any_wants()(
        kind in 0..3,
        count in 1u32..6,
        named in prop::collection::vec(any_name(), 1..4),
        pinned in prop::collection::btree_set(any_name(), 0..3),
    ) -> Requirements {
        let wanted = match kind {
            0 => Wanted::All,
            1 => Wanted::Count(count),
            _ => Wanted::Named(named),
        };
        Requirements { wanted, pinned }
    }
}

fn any_queue() -> impl Strategy<Value = Vec<Waiting>> {
    prop::collection::vec((any_wants(), -2i32..3, 0i64..4), 0..10).prop_map(|all| {
        let number =
            |(requirements, priority, position), id| Waiting { id, priority, position, requirements };
        let mut queue: Vec<Waiting> = all.into_iter().zip(1..).map(|(one, id)| number(one, id)).collect();
        sort(&mut queue);
        queue
    })
}

fn any_drivers() -> impl Strategy<Value = BTreeMap<String, Driver>> {
    let assignment = prop_oneof![3 => Just(Assignment::Free), 1 => (100u64..103).prop_map(Assignment::Submission), 1 => Just(Assignment::Releasing)];
    let driver = (prop::bool::weighted(0.85), assignment)
        .prop_map(|(answers, assignment)| Driver { answers, assignment });
    prop::collection::btree_map(any_name(), driver, 0..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_begins_has_what_it_wants_and_nobody_elses(queue in any_queue(), there in any_drivers()) {
        let mut used: BTreeSet<String> = BTreeSet::new();
        let decided = decide(&queue, &there);
        prop_assert_eq!(decided.iter().map(|(id, _)| *id).collect::<Vec<_>>(), queue.iter().map(|one| one.id).collect::<Vec<_>>());
        for (one, (_, decision)) in queue.iter().zip(decided) {
            let Decision::Begin(chosen) = decision else { continue };
            prop_assert!(!chosen.is_empty());
            for name in &chosen {
                prop_assert_eq!(there.get(name), Some(&Driver { answers: true, assignment: Assignment::Free }));
                prop_assert!(used.insert(name.clone()), "{} is taken twice", name);
            }
            prop_assert!(one.requirements.names().iter().all(|name| chosen.contains(name)));
            match &one.requirements.wanted {
                Wanted::All => prop_assert_eq!(chosen.len(), there.values().filter(|driver| driver.answers).count()),
                Wanted::Count(count) => prop_assert_eq!(chosen.len(), (*count as usize).max(one.requirements.pinned.len())),
                Wanted::Named(_) => prop_assert_eq!(chosen.len(), one.requirements.names().len()),
            }
        }
    }

    #[test]
    fn nothing_takes_what_one_before_it_waits_for(queue in any_queue(), there in any_drivers()) {
        let decided = decide(&queue, &there);
        for (index, one) in queue.iter().enumerate() {
            let Decision::Wait(reason) = &decided[index].1 else { continue };
            prop_assert!(reason.starts_with("waiting "), "{}", reason);
            if reason.contains("join") {
                continue;
            }
            let waits_for = |name: &String| match &one.requirements.wanted {
                Wanted::Named(_) => one.requirements.names().contains(name),
                Wanted::All | Wanted::Count(_) => true,
            };
            for (_, later) in &decided[index + 1..] {
                if let Decision::Begin(chosen) = later {
                    prop_assert!(!chosen.iter().any(waits_for), "{:?} is overtaken by {:?}", one, chosen);
                }
            }
        }
    }

    #[test]
    fn the_first_begins_when_its_drivers_are_free(queue in any_queue(), count in 1usize..7) {
        let there = drivers(count);
        if let (Some(one), Some((_, decision))) = (queue.first(), decide(&queue, &there).first()) {
            let wanted = match &one.requirements.wanted { Wanted::Count(count) => *count as usize, _ => 1 };
            let joined = wanted <= count && one.requirements.names().iter().all(|name| there.contains_key(name));
            prop_assert_eq!(matches!(decision, Decision::Begin(_)), joined, "{:?} {:?}", one, decision);
        }
    }

    /// Runs end in any order; whatever can be satisfied at all begins after at most as many ends as there are submissions.
    #[test]
    fn everything_that_can_begin_begins_in_the_end(queue in any_queue(), count in 1usize..7, picks in prop::collection::vec(any::<prop::sample::Index>(), 40)) {
        let mut there = drivers(count);
        let mut left = queue;
        let mut running: Vec<u64> = Vec::new();
        for pick in picks {
            for (id, decision) in decide(&left, &there) {
                if let Decision::Begin(chosen) = decision {
                    chosen.iter().for_each(|name| there.get_mut(name).unwrap().assignment = Assignment::Submission(id));
                    left.retain(|one| one.id != id);
                    running.push(id);
                }
            }
            if running.is_empty() {
                break;
            }
            let ended = running.remove(pick.index(running.len()));
            there.values_mut().filter(|driver| driver.assignment == Assignment::Submission(ended)).for_each(|driver| driver.assignment = Assignment::Free);
        }
        for one in &left {
            let wanted = match &one.requirements.wanted { Wanted::Count(count) => *count as usize, _ => 1 };
            let can = wanted <= count && one.requirements.names().iter().all(|name| there.contains_key(name));
            prop_assert!(!can, "{:?} never began", one);
        }
    }

    #[test]
    fn moving_keeps_the_order_of_the_others(queue in any_queue(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        prop_assume!(queue.len() > 1);
        let (id, before) = (queue[from.index(queue.len())].id, queue[to.index(queue.len())].id);
        prop_assume!(id != before);
        let order = moved(queue.clone(), id, before).unwrap();
        let again: Vec<Waiting> = {
            let place = |one: &Waiting| order.iter().find(|(own, ..)| *own == one.id).copied().unwrap();
            let mut all: Vec<Waiting> = queue.iter().map(|one| { let (_, priority, position) = place(one); Waiting { priority, position, ..one.clone() } }).collect();
            sort(&mut all);
            all
        };
        let ids: Vec<u64> = again.iter().map(|one| one.id).collect();
        let at = ids.iter().position(|own| *own == id).unwrap();
        prop_assert_eq!(ids[at + 1], before);
        let others = |all: &[u64]| all.iter().copied().filter(|own| *own != id).collect::<Vec<_>>();
        prop_assert_eq!(others(&ids), others(&queue.iter().map(|one| one.id).collect::<Vec<_>>()));
    }
}
