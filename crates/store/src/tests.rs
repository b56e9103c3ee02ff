//! The store as a whole, on real files.

use crate::testing::{any_run, begun, ended, interval, json, same_interval};
use crate::{DriverSecond, Listing, Store, StoreError, codec, path_from};
use proptest::prelude::*;
use std::path::PathBuf;
use tempfile::TempDir;
use tidemark_measure::rate::Rate;
use tidemark_measure::record::{
    Driver, Lost, Operation, Planned, Run, Share, ShareSecond, Stage, State, Work,
};
use tidemark_measure::rng::Rng;
use tidemark_measure::tally::Interval;

fn new() -> (TempDir, PathBuf, Store) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/results.db");
    let store = Store::open(&path).unwrap();
    (directory, path, store)
}

/// SQL that bypasses the store.
fn sql(path: &PathBuf, statements: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(statements).unwrap();
}

#[test]
fn a_run_is_stored_from_start_to_end() {
    let (_directory, path, mut store) = new();
    assert_eq!((store.latest().unwrap(), store.list().unwrap().len()), (None, 0));
    let id = store.begin(&begun("first")).unwrap();
    assert_eq!(store.list().unwrap()[0].state, State::Running);
    assert_eq!(store.load(id).unwrap().state, State::Running, "its process lives");
    let seconds: Vec<_> = (0..20).map(interval).collect();
    store.append(id, 1, 0, &seconds, &[]).unwrap();
    let run = ended("first", &seconds);
    let listing = Listing { valid: true, headline: "main: read".into(), ..Listing::default() };
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
fn lists_are_newest_first_and_numbers_are_not_reused() {
    let (_directory, _, mut store) = new();
    let ids: Vec<_> = ["a", "b", "c"].map(|name| store.begin(&begun(name)).unwrap()).into();
    assert_eq!(store.list().unwrap().iter().map(|run| run.id).rev().collect::<Vec<_>>(), ids);
    assert!(matches!(store.delete(ids[2]), Err(StoreError::StillRunning { .. })));
    store.finish(ids[2], &ended("c", &[]), &Listing::default()).unwrap();
    store.append(ids[2], 0, 0, &[interval(0)], &[]).unwrap();
    store.delete(ids[2]).unwrap();
    let mut left = 0;
    store.seconds(ids[2], 0, 0, |_| left += 1).unwrap();
    assert_eq!(left, 0, "its seconds are gone with it");
    assert_eq!(store.begin(&begun("d")).unwrap(), ids[2] + 1);
}

#[test]
fn missing_runs_are_named() {
    let (_directory, _, mut store) = new();
    let run = ended("x", &[]);
    let errors = [
        store.load(7).map(|_| ()).unwrap_err(),
        store.finish(7, &run, &Listing::default()).unwrap_err(),
        store.delete(7).unwrap_err(),
        store.append(7, 0, 0, &[interval(0)], &[]).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("there is no run 7"), "{error}");
    }
}

#[test]
fn seconds_come_back_in_order_and_parts_add_up() {
    let (_directory, _, mut store) = new();
    let id = store.begin(&begun("x")).unwrap();
    store.append(id, 1, 0, &[interval(1), interval(2)], &[]).unwrap();
    store.append(id, 1, 0, &[interval(0)], &[]).unwrap();
    store.append(id, 1, 0, &[interval(1)], &[]).unwrap();
    store.append(id, 0, 0, &[interval(9)], &[]).unwrap();
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
fn a_state_that_nobody_knows_is_an_error() {
    let (_directory, path, mut store) = new();
    store.begin(&begun("later")).unwrap();
    sql(&path, "UPDATE runs SET state = 'paused'");
    let error = store.list().unwrap_err().to_string();
    assert!(error.contains("`paused` is no state of a run that this version knows"), "{error}");
}

#[test]
fn runs_are_listed_in_pages_before_a_number() {
    let (_directory, _, mut store) = new();
    let ids: Vec<u64> = (0..5).map(|_| store.begin(&begun("x")).unwrap()).collect();
    let page = |before, most| {
        let runs = store.list_before(before, most).unwrap();
        runs.iter().map(|run| run.id).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 2), [ids[4], ids[3]]);
    assert_eq!(page(Some(ids[3]), 2), [ids[2], ids[1]]);
    assert_eq!(page(Some(ids[0]), 2), [0; 0]);
}

#[test]
fn a_run_whose_process_died_is_interrupted_and_keeps_what_was_measured() {
    let (_directory, path, mut store) = new();
    let id = store.begin(&begun("crashed")).unwrap();
    store.append(id, 1, 0, &(2..12).map(interval).collect::<Vec<_>>(), &[]).unwrap();
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
    let newest = crate::schema::KNOWN;
    assert!(matches!(error, StoreError::NewerSchema { found: 99, known, .. } if known == newest), "{error}");
    assert!(error.to_string().contains("TIDEMARK_STORE"));
}

#[test]
fn foreign_files_are_left_alone() {
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
fn a_directory_that_cannot_be_created_is_named() {
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
fn a_full_disk_is_reported_and_stored_data_stay() {
    let (_directory, path, mut store) = new();
    let id = store.begin(&begun("x")).unwrap();
    store.append(id, 1, 0, &[interval(0)], &[]).unwrap();
    let pages: i64 = store.connection().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    store.connection().query_row(&format!("PRAGMA max_page_count = {}", pages + 2), [], |_| Ok(())).unwrap();
    let seconds: Vec<_> = (1..200).map(interval).collect();
    let error = store.append(id, 1, 0, &seconds, &[]).unwrap_err();
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
    let write =
        |store: &mut Store| (0..50).for_each(|at| store.append(id, 1, 0, &[interval(at)], &[]).unwrap());
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
                (0..10).for_each(|index| store.append(id, 0, 0, &[interval(index)], &[]).unwrap());
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
            store.append(id, 1, 0, &seconds, &[]).unwrap();
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
fn ended_stages_are_complete_even_if_the_process_died() {
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
    store.append(id, 0, 0, std::slice::from_ref(&second), &[]).unwrap();
    (run.stages[0].state, run.stages[0].ended_ns) = (State::Completed, 9_000_000_000);
    run.stages[0].works[0].operations[0].tally.ok = 77;
    (run.stages[1].state, run.stages[1].started_ns) = (State::Running, 9_000_000_000);
    store.keep(id, &run, 0).unwrap();
    store.keep(id, &run, 1).unwrap();
    store.keep(id, &run, 2).unwrap();
    store.append(id, 1, 0, std::slice::from_ref(&second), &[]).unwrap();
    sql(&path, "UPDATE runs SET owner = 'another-boot 1 1'");
    let left = store.load(id).unwrap();
    assert_eq!((left.stages[0].state, left.stages[1].state), (State::Completed, State::Interrupted));
    assert_eq!(left.stages[0].works[0].operations[0].tally.ok, 77, "its seconds are in it already");
    assert_eq!(left.stages[1].works[0].operations[0].tally.ok, in_second);
    assert!(left.stages[1].reason.contains("died"), "{}", left.stages[1].reason);
    assert_eq!((left.stages[1].ended_ns, left.elapsed_ns), (10_000_000_000, 10_000_000_000));
}

/// The record of a run that began with an open loop of 400 op/s from second 2 to second 20 on two drivers.
fn paced() -> Run {
    let mut run = begun("paced");
    let planned = Planned {
        rate: Some(Rate { points: vec![(0, 0.0), (2_000_000_000, 400.0)] }),
        window_start_ns: Some(2_000_000_000),
        window_end_ns: Some(20_000_000_000),
        ..Planned::default()
    };
    let work = Work { name: "w".into(), workers: 8, planned, ..Work::default() };
    let share = |driver| Share { driver, workers: 4, ..Share::default() };
    run.drivers = ["a", "b"].map(|name| Driver { name: name.into(), ..Driver::default() }).into();
    (run.stages[1].works, run.stages[1].state) = (vec![work], State::Running);
    run.stages[1].shares = vec![share(0), share(1)];
    run
}

#[test]
fn a_rebuilt_run_has_the_pacing_and_the_drivers_that_it_began_with() {
    let (_directory, path, mut store) = new();
    let mut run = paced();
    let id = store.begin(&run).unwrap();
    run.drivers[0].lost = Some(Lost { at_ns: 5, reason: "it said nothing".into() });
    store.keep(id, &run, 1).unwrap();
    let share = |driver, index| DriverSecond {
        driver,
        second: ShareSecond { index, ok: 7, failed: 1, bytes: 70, ..ShareSecond::default() },
    };
    for index in 0..6 {
        // The first driver has said nothing of the last two.
        let shares: Vec<_> = (u32::from(index > 3)..2).map(|driver| share(driver, index)).collect();
        store.append(id, 1, 0, &[interval(index)], &shares).unwrap();
    }
    sql(&path, "UPDATE runs SET owner = 'another-boot 1 1'");
    let left = store.load(id).unwrap();
    let work = &left.stages[1].works[0];
    assert_eq!((work.window_start_ns, work.window_end_ns), (2_000_000_000, 6_000_000_000));
    assert_eq!(work.offered_rate, Some(400.0));
    assert_eq!(left.drivers, run.drivers);
    let shares: Vec<_> =
        left.stages[1].shares.iter().map(|one| (one.ok, one.failed, one.series.len())).collect();
    assert_eq!(shares, [(28, 4, 4), (42, 6, 6)]);
    assert!(left.stages[1].shares.iter().all(|share| !share.complete));
}

#[test]
fn the_window_of_a_rebuilt_run_ends_where_it_was_planned_to() {
    let (_directory, path, mut store) = new();
    let id = store.begin(&paced()).unwrap();
    store.append(id, 1, 0, &(0..25).map(interval).collect::<Vec<_>>(), &[]).unwrap();
    sql(&path, "UPDATE runs SET owner = 'another-boot 1 1'");
    let left = store.load(id).unwrap();
    let work = &left.stages[1].works[0];
    assert_eq!((work.window_end_ns, work.offered_rate), (20_000_000_000, Some(400.0)));
}

#[test]
fn lists_say_of_a_salvaged_run_what_its_record_says() {
    let (_directory, path, mut store) = new();
    let id = store.begin(&paced()).unwrap();
    store.append(id, 1, 0, &(0..6).map(interval).collect::<Vec<_>>(), &[]).unwrap();
    let listing = |run: &Run| Listing {
        valid: true,
        headline: format!("{} s", run.elapsed_ns / 1_000_000_000),
        ..Listing::default()
    };
    assert_eq!(store.salvage(listing).unwrap(), 0, "its process lives");
    sql(&path, "UPDATE runs SET owner = 'another-boot 1 1'");
    let rebuilt = json(&store.load(id).unwrap());
    assert_eq!(store.salvage(listing).unwrap(), 1);
    assert_eq!(store.salvage(listing).unwrap(), 0, "once");
    let listed = &store.list().unwrap()[0];
    assert_eq!((listed.elapsed_ns, listed.headline.as_str()), (6_000_000_000, "6 s"));
    assert_eq!((listed.state, listed.valid), (State::Interrupted, Some(true)));
    assert!(listed.operations > 0);
    assert_eq!(json(&store.load(id).unwrap()), rebuilt);
}

#[test]
fn what_an_older_version_kept_of_a_stage_in_progress_is_read() {
    let (_directory, path, mut store) = new();
    let mut run = paced();
    let id = store.begin(&run).unwrap();
    run.stages[1].reason = "kept".into();
    let record = codec::encode(&(&run.stages[1], &run.notes)).unwrap();
    let keep = "INSERT INTO stages (run, stage, record) VALUES (?, 1, ?)";
    store.connection().execute(keep, rusqlite::params![id as i64, record]).unwrap();
    sql(&path, "UPDATE runs SET owner = 'another-boot 1 1', elapsed_ns = 7");
    assert_eq!(store.load(id).unwrap().stages[1].works.len(), 1);
    assert_eq!(store.load(id).unwrap().elapsed_ns, 7);
}

#[test]
fn a_store_is_its_owner_s_alone_and_so_are_the_files_beside_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let _lock = crate::controller_lock(&path, "now").unwrap();
    let mut store = Store::open(&path).unwrap();
    store.add_token("anna", "operator").unwrap();
    let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(Result::unwrap).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", file.path().display());
    }
}
