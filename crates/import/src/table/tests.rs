//! The table of the COSBench talk, and others.

use super::*;
use std::path::PathBuf;

const TALK: &str = include_str!("../../../../examples/cosbench-talk-128kb-read.csv");

fn imported(text: &str, options: &Options) -> Result<Imported, String> {
    read(&Source { path: PathBuf::from("talk.csv"), text: text.into(), modified_unix_ns: 7 }, options)
}

fn plain(text: &str) -> Result<Imported, String> {
    imported(text, &Options::default())
}

#[test]
fn the_talk_s_table_is_an_evaluation() {
    let options =
        Options { object_bytes: Some(128_000), name: Some("128 KB read".into()), ..Options::default() };
    let Imported { evaluation, runs } = imported(TALK, &options).unwrap();
    let evaluation = evaluation.unwrap();
    assert_eq!(
        (evaluation.name.as_str(), evaluation.repeats, evaluation.state),
        ("128 KB read", 1, State::Completed)
    );
    assert_eq!((evaluation.arms.len(), evaluation.loads.len(), evaluation.loads[0].levels.len()), (1, 1, 10));
    assert_eq!(evaluation.loads[0].levels[6], [Axis::count("workers", 320)]);
    assert_eq!(evaluation.provenance.document, TALK);
    let member = runs[6].member.as_ref().unwrap();
    assert_eq!(
        (member.arm.as_str(), member.load.as_str(), &member.level, member.repeat, member.turn),
        ("imported", "128 KB read", &evaluation.loads[0].levels[6], 1, 7)
    );
    let work = &runs[6].stages[0].works[0];
    let operation = &work.operations[0];
    assert_eq!((work.workers, work.kind.name(), operation.throughput(1.0)), (320, "normal", 5_019.85));
    assert_eq!(
        (operation.quantile_ns(0.95), operation.quantile_ns(0.99), operation.mean_ns()),
        (Some(106_670_000.0), None, None)
    );
    assert_eq!((operation.tally.ok, operation.tally.bytes / operation.tally.ok), (50_199, 128_000));
    assert_eq!(operation.bandwidth(1.0), 5_019.85 * 128_000.0);
    assert!(runs[6].notes.iter().any(|note| note.topic == "table-duration"));
}

#[test]
fn arms_loads_and_repeats_are_places() {
    let text = "arm;load;threads;IOPS;mean_us;MiB/s;success;count;colour\n\
        old;read;4;1.000,5;20,5;4;99,5%;1990;red\nold;read;4;1100;20;4;100%;2000;red\nnew;read;4;1200;19;5;100%;2000;red\n";
    let Imported { evaluation, runs } = plain(text).unwrap();
    let evaluation = evaluation.unwrap();
    assert_eq!(evaluation.arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>(), ["old", "new"]);
    assert_eq!(evaluation.repeats, 2);
    let places: Vec<_> = runs
        .iter()
        .map(|run| run.member.as_ref().unwrap())
        .map(|member| (member.arm.as_str(), member.repeat, member.turn))
        .collect();
    assert_eq!(places, [("old", 1, 1), ("old", 2, 2), ("new", 1, 3)]);
    let operation = &runs[0].stages[0].works[0].operations[0];
    assert_eq!(
        (operation.throughput(1.0), operation.mean_ns(), operation.bandwidth(1.0)),
        (1_000.5, Some(20_500.0), 4.0 * 1_048_576.0)
    );
    assert_eq!((operation.tally.ok, operation.tally.failed()), (1_990, 10));
    assert!(evaluation.notes.iter().any(|note| note.text.contains("colour")));
}

#[test]
fn rates_and_times_are_kept() {
    let text = "offered rate,op/s,p99_ms,duration_s,failed\n500,400,20,30,12\n";
    let run = plain(text).unwrap().runs.remove(0);
    let work = &run.stages[0].works[0];
    assert_eq!(
        (
            work.offered_rate,
            work.window_end_ns,
            work.operations[0].tally.ok,
            work.operations[0].tally.failed()
        ),
        (Some(500.0), 30_000_000_000, 12_000, 12)
    );
    assert!(run.notes.iter().all(|note| note.topic != "table-duration"));
}

#[test]
fn mistakes_are_told_with_line_column_and_remedy() {
    let cases = [
        ("workers,op/s\n5,fast\n", "line 2, column `op/s`: `fast`"),
        ("workers,op/s\n5,\n", "line 2: there is no result"),
        ("workers,op/s\n,5\n", "line 2: column `workers` is empty"),
        ("workers,p95\n5,5\n", "write `p95_ms`"),
        ("workers,colour\n5,5\n", "no column has a result"),
        ("op/s\n5\n", "name it `workers`"),
        ("workers,op/s,throughput\n5,5,5\n", "have the same content"),
        ("workers,op/s,repeat\n5,5,1\n5,5,1\n", "line 3: this repeat of this level is a duplicate"),
        ("workers,op/s,repeat\n5,5,0\n", "numbered from 1"),
        ("workers,op/s,failed\n5,5,3\n", "add a column `count`"),
        ("workers,op/s,success\n5,5,150\n", "at most 100 %"),
        ("workers,op/s\n", "no rows"),
        ("workers,op/s\n5,\"6\n", "line 2: a quote"),
    ];
    for (text, expected) in cases {
        let error = plain(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_service_level_on_a_column_that_is_not_there_is_an_error() {
    let level = |text: &str| Options {
        service_level: Some(tidemark_measure::service_level::ServiceLevel::parse(text).unwrap()),
        ..Options::default()
    };
    let error = imported(TALK, &level("p95 <= 200ms and p99 <= 1s")).unwrap_err();
    assert!(
        error.starts_with("the service level `p95 <= 200ms and p99 <= 1s` is about the p99, for which"),
        "{error}"
    );
    let error = imported(TALK, &level("mean <= 200ms")).unwrap_err();
    assert!(error.contains("is about the mean response time"), "{error}");
    assert!(imported(TALK, &level("p95 <= 200ms and failures <= 1%")).is_ok());
}
