//! The store as a whole, on real files.

use crate::testing::{any_run, begun, ended, interval, json, same_interval};
use crate::{Listing, Store, StoreError, path_from};
use proptest::prelude::*;
use std::path::PathBuf;
use tempfile::TempDir;
use tidemark_measure::record::{Operation, Run, Stage, State, Work};
use tidemark_measure::rng::Rng;
use tidemark_measure::tally::Interval;

fn new() -> (TempDir, PathBuf, Store) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/results.db");
    let store = Store::open(&path).unwrap();
    (directory, path, store)
}

/// SQL behind the store's back.
fn sql(path: &PathBuf, statements: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(statements).unwrap();
}

#[test]
fn a_run_from_its_start_to_its_end() {
    let (_directory, path, mut store) = new();
    assert_eq!((store.latest().unwrap(), store.list().unwrap().len()), (None, 0));
    let id = store.begin(&begun("first")).unwrap();
    assert_eq!(store.list().unwrap()[0].state, State::Running);
    assert_eq!(store.load(id).unwrap().state, State::Running, "its process lives");
    let seconds: Vec<_> = (0..20).map(interval).collect();
    store.append(id, 1, 0, &seconds).unwrap();
    let run = ended("first", &seconds);
    let listing = Listing { valid: true, headline: "main: read".into() };
    store.finish(id, &run, &listing).unwrap();
    drop(store);

    let store = Store::open(&path).unwrap();
    let back = store.load(id).unwrap();
    assert_eq!(back.id, id);
    let mut expected = json(&run);
    expected["id"] = id.into();
    assert_eq!(json(&back), expected);
    let summary = &store.list().unwrap()[0];
    assert_eq!((summary.id, summary.name.as_str(), summary.state), (id, "first", State::Completed));
    assert_eq!((summary.operations, summary.failed), (4420, 40));
    assert_eq!((summary.valid, summary.headline.as_str()), (Some(true), "main: read"));
    assert_eq!(store.latest().unwrap(), Some(id));
}

#[test]
fn the_newest_comes_first_and_numbers_are_not_used_again() {
    let (_directory, _, mut store) = new();
    let ids: Vec<_> = ["a", "b", "c"].map(|name| store.begin(&begun(name)).unwrap()).into();
    assert_eq!(store.list().unwrap().iter().map(|run| run.id).rev().collect::<Vec<_>>(), ids);
    assert!(matches!(store.delete(ids[2]), Err(StoreError::StillRunning { .. })));
    store.finish(ids[2], &ended("c", &[]), &Listing::default()).unwrap();
    store.append(ids[2], 0, 0, &[interval(0)]).unwrap();
    store.delete(ids[2]).unwrap();
    let mut left = 0;
    store.seconds(ids[2], 0, 0, |_| left += 1).unwrap();
    assert_eq!(left, 0, "its seconds are gone with it");
    assert_eq!(store.begin(&begun("d")).unwrap(), ids[2] + 1);
}

#[test]
fn what_is_not_there_is_named() {
    let (_directory, _, mut store) = new();
    let run = ended("x", &[]);
    let errors = [
        store.load(7).map(|_| ()).unwrap_err(),
        store.finish(7, &run, &Listing::default()).unwrap_err(),
        store.delete(7).unwrap_err(),
        store.append(7, 0, 0, &[interval(0)]).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("there is no run 7"), "{error}");
    }
}

#[test]
fn seconds_come_back_in_order_and_parts_add_up() {
    let (_directory, _, mut store) = new();
    let id = store.begin(&begun("x")).unwrap();
    store.append(id, 1, 0, &[interval(1), interval(2)]).unwrap();
    store.append(id, 1, 0, &[interval(0)]).unwrap();
    store.append(id, 1, 0, &[interval(1)]).unwrap();
    store.append(id, 0, 0, &[interval(9)]).unwrap();
    let mut seen: Vec<Interval> = Vec::new();
    store.seconds(id, 1, 0, |second| seen.push(second.clone())).unwrap();
    let mut twice = interval(1);
    twice.add(&interval(1));
    assert_eq!(seen.len(), 3);
    for (seen, expected) in seen.iter().zip([interval(0), twice, interval(2)]) {
        assert!(same_interval(seen, &expected), "second {}", expected.index);
    }
}

#[test]
fn a_run_whose_process_died_is_interrupted_and_keeps_what_was_measured() {
    let (_directory, path, mut store) = new();
    let id = store.begin(&begun("crashed")).unwrap();
    store.append(id, 1, 0, &(2..12).map(interval).collect::<Vec<_>>()).unwrap();
    sql(&path, "UPDATE runs SET owner = 'another-boot 1 1'");
    assert_eq!(store.list().unwrap()[0].state, State::Interrupted);
    let run = store.load(id).unwrap();
    assert_eq!(run.state, State::Interrupted);
    assert_eq!(run.stages[0].state, State::Waiting);
    let stage = &run.stages[1];
    assert!(stage.reason.contains("died"), "{}", stage.reason);
    let work = &stage.works[0];
    assert_eq!((work.window_start_ns, work.window_end_ns), (2_000_000_000, 12_000_000_000));
    assert_eq!(work.series.len(), 10);
    let ok: u64 = (2..12).map(|index| 100 + index).sum();
    assert_eq!((work.operations[1].tally.ok, work.operations[1].tally.failed()), (ok, 10));
    assert_eq!(work.operations[1].tally.response.count(), ok);
    store.delete(id).unwrap();
}

#[test]
fn a_newer_schema_is_refused_with_advice() {
    let (_directory, path, store) = new();
    drop(store);
    sql(&path, "PRAGMA user_version = 99");
    let error = Store::open(&path).err().unwrap();
    assert!(matches!(error, StoreError::NewerSchema { found: 99, known: 4, .. }), "{error}");
    assert!(error.to_string().contains("TIDEMARK_STORE"));
}

#[test]
fn files_of_others_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    std::fs::write(
        &text,
        "these are not the runs you are looking for, and long enough to be a header".repeat(3),
    )
    .unwrap();
    let other = directory.path().join("other.db");
    sql(&other, "CREATE TABLE people (name TEXT)");
    for path in [&text, &other] {
        let before = std::fs::read(path).unwrap();
        let error = Store::open(path).err().unwrap();
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
        assert_eq!(std::fs::read(path).unwrap(), before);
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Store::open(&file.join("results.db")).err().unwrap();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    let error = Store::open(directory.path()).err().unwrap();
    assert!(matches!(error, StoreError::Unreachable { .. }), "the path is a directory: {error}");
}

#[test]
fn a_read_only_file_is_named() {
    let (_directory, _, mut store) = new();
    store.connection().pragma_update(None, "query_only", true).unwrap();
    let error = store.begin(&begun("x")).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
}

#[test]
fn a_full_disk_is_said_and_what_was_stored_stays() {
    let (_directory, path, mut store) = new();
    let id = store.begin(&begun("x")).unwrap();
    store.append(id, 1, 0, &[interval(0)]).unwrap();
    let pages: i64 = store.connection().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    store.connection().query_row(&format!("PRAGMA max_page_count = {}", pages + 2), [], |_| Ok(())).unwrap();
    let seconds: Vec<_> = (1..200).map(interval).collect();
    let error = store.append(id, 1, 0, &seconds).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().contains("no space left"));
    drop(store);
    let store = Store::open(&path).unwrap();
    let mut kept = 0;
    store.seconds(id, 1, 0, |_| kept += 1).unwrap();
    assert_eq!(kept, 1, "the batch failed as a whole");
}

#[test]
fn damaged_records_are_reported() {
    let (_directory, path, mut store) = new();
    let id = store.begin(&begun("x")).unwrap();
    sql(&path, "UPDATE runs SET record = x'00ff00'");
    let error = store.load(id).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn readers_and_a_writer_do_not_disturb_each_other() {
    let (_directory, path, mut store) = new();
    let id = store.begin(&begun("x")).unwrap();
    let write = |store: &mut Store| (0..50).for_each(|at| store.append(id, 1, 0, &[interval(at)]).unwrap());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&mut store));
        let reader = Store::open(&path).unwrap();
        let mut before = 0;
        while !writer.is_finished() || before == 0 {
            let mut count = 0;
            let in_order = |second: &Interval| {
                assert!(same_interval(second, &interval(count)), "whole seconds only, in order");
                count += 1;
            };
            reader.seconds(id, 1, 0, in_order).unwrap();
            assert!(count >= before, "what was there stays");
            before = count;
        }
    });
    let mut count = 0;
    store.seconds(id, 1, 0, |_| count += 1).unwrap();
    assert_eq!(count, 50);
}

#[test]
fn two_writers_take_turns_even_when_the_file_is_new() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut store = Store::open(&path).unwrap();
                let id = store.begin(&begun("x")).unwrap();
                (0..10).for_each(|index| store.append(id, 0, 0, &[interval(index)]).unwrap());
                store.finish(id, &ended("x", &[]), &Listing::default()).unwrap();
            });
        }
    });
    let runs = Store::open(&path).unwrap().list().unwrap();
    assert_eq!(runs.iter().filter(|run| run.state == State::Completed).count(), 4);
}

#[test]
fn default_paths() {
    let with = |pairs: &[(&str, &str)]| {
        path_from(|name| pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).into()))
    };
    let all = [("TIDEMARK_STORE", "/a/b.db"), ("XDG_DATA_HOME", "/data"), ("HOME", "/home/x")];
    assert_eq!(with(&all), PathBuf::from("/a/b.db"));
    assert_eq!(with(&all[1..]), PathBuf::from("/data/tidemark/results.db"));
    assert_eq!(with(&all[2..]), PathBuf::from("/home/x/.local/share/tidemark/results.db"));
    let odd = [("TIDEMARK_STORE", ""), ("XDG_DATA_HOME", "relative"), ("HOME", "/home/x")];
    assert_eq!(with(&odd), PathBuf::from("/home/x/.local/share/tidemark/results.db"));
    assert_eq!(with(&[]), PathBuf::from("tidemark/results.db"));
}

/// A second of `rate` operations, log-normal around 2 ms: two actions, with first bytes.
fn realistic(index: u32, rate: u64) -> Interval {
    let mut rng = Rng::new(7, &[index.into()]);
    let mut interval = Interval::new(index, 2);
    for tally in &mut interval.actions {
        tally.ok = rate / 2;
        for _ in 0..tally.ok {
            // Box and Muller's normal variate.
            let normal = (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos();
            let response = (2e6 * (0.5 * normal).exp()) as u64;
            tally.response.record(response);
            tally.first_byte.record(response * 9 / 10);
            tally.lag.record(1_000 + rng.below(3_000));
        }
    }
    interval
}

/// The sizes that the documentation states.
#[test]
fn a_minute_takes_little_room() {
    for (rate, most) in [(1_000, 400_000), (50_000, 1_500_000)] {
        let (_directory, path, mut store) = new();
        let id = store.begin(&begun("x")).unwrap();
        let mut seconds: Vec<_> = (0..6).map(|index| realistic(index, rate)).collect();
        for minute in 0..10 {
            seconds.iter_mut().zip(minute * 6..).for_each(|(second, index)| second.index = index);
            store.append(id, 1, 0, &seconds).unwrap();
        }
        store.finish(id, &ended("x", &seconds), &Listing::default()).unwrap();
        drop(store);
        let size = std::fs::metadata(&path).unwrap().len();
        eprintln!("a minute at {rate} op/s: {size} bytes");
        assert!(size < most, "{rate} op/s: {size} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_stored_run_comes_back_equal(run in any_run()) {
        let (_directory, _, mut store) = new();
        let id = store.begin(&run).unwrap();
        let mut expected = json(&run);
        expected["id"] = id.into();
        prop_assert_eq!(&json(&store.load(id).unwrap()), &expected);
        store.finish(id, &run, &Listing::default()).unwrap();
        prop_assert_eq!(&json(&store.load(id).unwrap()), &expected);
    }
}

#[test]
fn stages_that_had_ended_are_whole_though_the_process_died() {
    let (_directory, path, mut store) = new();
    let stage = |name: &str, state| Stage {
        name: name.into(),
        state,
        works: vec![Work { operations: vec![Operation::default()], ..Work::default() }],
        ..Stage::default()
    };
    let mut run = Run {
        state: State::Running,
        stages: vec![stage("done", State::Running), stage("died", State::Waiting)],
        ..Run::default()
    };
    let id = store.begin(&run).unwrap();
    let second = interval(0);
    let in_second: u64 = second.actions.iter().take(1).map(|tally| tally.ok).sum();
    store.append(id, 0, 0, std::slice::from_ref(&second)).unwrap();
    (run.stages[0].state, run.stages[0].ended_ns) = (State::Completed, 9_000_000_000);
    run.stages[0].works[0].operations[0].tally.ok = 77;
    (run.stages[1].state, run.stages[1].started_ns) = (State::Running, 9_000_000_000);
    store.keep(id, &run, 0).unwrap();
    store.keep(id, &run, 1).unwrap();
    store.keep(id, &run, 2).unwrap();
    store.append(id, 1, 0, std::slice::from_ref(&second)).unwrap();
    sql(&path, "UPDATE runs SET owner = 'another-boot 1 1'");
    let left = store.load(id).unwrap();
    assert_eq!((left.stages[0].state, left.stages[1].state), (State::Completed, State::Interrupted));
    assert_eq!(left.stages[0].works[0].operations[0].tally.ok, 77, "its seconds are in it already");
    assert_eq!(left.stages[1].works[0].operations[0].tally.ok, in_second);
    assert!(left.stages[1].reason.contains("died"), "{}", left.stages[1].reason);
    assert_eq!((left.stages[1].ended_ns, left.elapsed_ns), (10_000_000_000, 10_000_000_000));
}
