//! Commits to Iceberg tables: on storage that is right every one is there once, and storage that ignores conditions is found out.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::{examples, options, refusal, run, try_run};
use std::path::Path;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer, Fault as Spoil, Operation};
use tidemark_iceberg::commits::{CommitEvidence, CommitsUse, Condition, TableFile, TableHistory};
use tidemark_judge::{Severity, evidence, judge};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Run, State};
use tidemark_plan::policy::Policy;

/// A document on some storage.
fn document(storage: &str, stages: &str) -> String {
    format!("name: t\ntarget: {{kind: iceberg, storage: {storage}, prefix: lake}}\nstages:\n{stages}\n")
}

fn on_files(directory: &Path, stages: &str) -> String {
    let storage = format!("{{kind: files, directory: {}}}", directory.display());
    format!("name: t\ntarget: {{kind: iceberg, storage: {storage}}}\nstages:\n{stages}\n")
}

fn on(server: &EmbeddedServer, stages: &str) -> String {
    let (endpoint, access, secret) = (server.endpoint(), server.access_key(), server.secret_key());
    let storage =
        format!("{{kind: s3, endpoint: '{endpoint}', access_key: '{access}', secret_key: '{secret}'}}");
    document(&storage, stages)
}

const MAKE: &str = "- prepare: {table: events}";

fn load(more: &str) -> String {
    format!("{MAKE}\n- load: {{table: events, rows: 20, {more}}}")
}

fn used(run: &Run) -> CommitsUse {
    run.stages.iter().filter_map(evidence::read::<CommitEvidence>).flatten().next().unwrap()
}

fn history(run: &Run) -> TableHistory {
    used(run).history.unwrap()
}

#[test]
fn every_commit_of_several_committers_is_there_once() {
    for committers in [2, 8] {
        let done = run(&document(
            "{kind: embedded}",
            &load(&format!("committers: {committers}, total_operations: 60")),
        ));
        let (used, history) = (used(&done), history(&done));
        assert_eq!(
            (used.acknowledged, used.rows, used.condition),
            (60, 1_200, Condition::Heeded),
            "{:?}",
            examples(&done)
        );
        assert!(history.is_whole(), "{history:?}");
        assert_eq!((history.from_version, history.to_version, history.found), (1, 61, 60));
        assert_eq!((history.rows, history.files, history.others), (1_200, 60, 0));
        let tally = &done.stages[1].works[0].operations[0].tally;
        assert_eq!((tally.ok, tally.retries), (60, used.all_attempts() - 60));
        assert_eq!(used.attempts.iter().map(|one| one.commits).sum::<u64>(), 60);
        assert_eq!(used.lost_races, used.all_attempts() - 60);
        let of = |file| *used.requests.iter().find(|one| one.file == file).unwrap();
        assert_eq!(
            (of(TableFile::Data).writes, of(TableFile::Manifest).writes),
            (60, 60),
            "attempts share them"
        );
        assert_eq!(of(TableFile::Metadata).writes, used.all_attempts());
        assert_eq!(of(TableFile::ManifestList).writes, used.all_attempts());
        assert_eq!(of(TableFile::ManifestList).deletes, used.lost_races);
        let found: Vec<_> = judge(&done).findings.iter().map(|one| (one.severity, one.rule())).collect();
        assert!(found.contains(&(Severity::Good, "commits-kept")), "{found:?}");
    }
}

#[test]
fn storage_that_ignores_conditions_is_refused_and_what_it_loses_is_counted_on_demand() {
    let server = EmbeddedServer::start(EmbeddedOptions {
        buckets: vec!["tables".into()],
        ..EmbeddedOptions::default()
    })
    .unwrap();
    server.faults().add(Spoil::ignore_conditions().on(Operation::PutObject));
    run(&on(&server, MAKE));
    let refused =
        refusal(&on(&server, "- load: {table: events, committers: 4, total_operations: 80}"), &options(2));
    for words in ["ignores `If-None-Match: *`", "lake/events", "conditions: unchecked"] {
        assert!(refused.contains(words), "{refused}");
    }
    let done = run(&on(&server, &load("committers: 4, total_operations: 80, conditions: unchecked")));
    let (used, history) = (used(&done), history(&done));
    assert_eq!((used.acknowledged, used.condition, used.lost_races), (80, Condition::Ignored, 0));
    assert!(
        history.missing > 0 && history.contested > 0,
        "four committers overwrite each other: {history:?}"
    );
    assert_eq!(history.found + history.missing, 80);
    assert_eq!(history.missing_rows, history.missing * 20);
    let judgement = judge(&done);
    assert!(!judgement.validity.is_valid());
    let finding = judgement.findings.iter().find(|finding| finding.rule() == "commits-lost").unwrap();
    assert_eq!(finding.severity, Severity::Critical);
    assert!(
        finding.title().contains("the storage accepted `If-None-Match: *` and overwrote"),
        "{}",
        finding.title()
    );
}

#[test]
fn storage_that_is_right_when_asked_and_fails_later_is_found_out_too() {
    let server = EmbeddedServer::start(EmbeddedOptions {
        buckets: vec!["tables".into()],
        ..EmbeddedOptions::default()
    })
    .unwrap();
    let versions = "tables/lake/events/metadata/v";
    server.faults().add(Spoil::ignore_conditions().on(Operation::PutObject).under(versions));
    let done = run(&on(&server, &load("committers: 4, total_operations: 80")));
    assert_eq!(used(&done).condition, Condition::Heeded);
    assert!(history(&done).missing > 0, "{:?}", history(&done));
    assert!(!judge(&done).validity.is_valid());
}

#[test]
fn a_reply_that_is_lost_is_looked_up_and_nothing_is_committed_twice() {
    let server = EmbeddedServer::start(EmbeddedOptions {
        buckets: vec!["tables".into()],
        ..EmbeddedOptions::default()
    })
    .unwrap();
    let versions = "tables/lake/events/metadata/v";
    let broken = Spoil::answer(500, "InternalError").on(Operation::PutObject).under(versions);
    server.faults().add(broken.every(5));
    let done = run(&on(&server, &load("committers: 3, total_operations: 40")));
    let used = used(&done);
    assert!(used.looked_up > 0 && used.acknowledged == 40, "{used:?}");
    assert!(history(&done).is_whole() && history(&done).found == 40, "{:?}", history(&done));
}

#[test]
fn manifests_are_merged_and_files_are_storage_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let done = run(&on_files(
        directory.path(),
        &load("committers: 3, total_operations: 50, manifests: 6, snapshots: 3"),
    ));
    assert!(history(&done).is_whole() && history(&done).found == 50, "{:?}", history(&done));
    let requests = used(&done).requests;
    let manifests = requests.iter().find(|one| one.file == TableFile::Manifest).unwrap();
    assert!(manifests.reads >= 6 && manifests.writes > 50, "{manifests:?}");
    // The table is gone on with, and what was there stays.
    let more = run(&on_files(directory.path(), &load("committers: 2, total_operations: 10")));
    assert!(history(&more).is_whole(), "{:?}", history(&more));
    assert_eq!((history(&more).from_version, history(&more).to_version), (51, 61));
    assert_eq!((history(&more).rows, history(&more).files), (200, 60));
    let fresh = run(&on_files(
        directory.path(),
        "- prepare: {table: events, fresh: true}\n- load: {table: events, total_operations: 3}",
    ));
    assert_eq!((history(&fresh).files, history(&fresh).to_version), (3, 4));
    run(&on_files(directory.path(), "- cleanup: {table: events}"));
    let left: Vec<_> = walk(directory.path());
    assert!(left.is_empty(), "{left:?}");
}

/// All files below a directory.
fn walk(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn commits_are_due_in_an_open_loop_as_well() {
    let stages = load("committers: 4, rate: 50/s, for: 2s, warm_up: 1s");
    let done = run(&document("{kind: embedded}", &stages));
    assert_eq!(done.stages[1].works[0].offered_rate, Some(50.0));
    assert!(history(&done).is_whole() && used(&done).acknowledged > 0, "{:?}", used(&done));
}

#[test]
fn a_commit_that_may_not_be_tried_again_has_failed_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let stages = load("committers: 8, total_operations: 80, tries: 1, allowed_failures: 100%");
    let done = run(&on_files(directory.path(), &stages));
    let tally = &done.stages[1].works[0].operations[0].tally;
    assert_eq!(tally.ok, used(&done).acknowledged);
    assert_eq!(tally.faults.of(Fault::Serialization), tally.failed(), "{:?}", examples(&done));
    assert!(history(&done).is_whole(), "{:?}", history(&done));
    let files = walk(&directory.path().join("events/data")).len() as u64;
    assert_eq!(files, used(&done).acknowledged, "what lost is taken away");
}

#[test]
fn tables_of_others_are_never_touched() {
    let directory = tempfile::tempdir().unwrap();
    let metadata = directory.path().join("events/metadata");
    std::fs::create_dir_all(&metadata).unwrap();
    for (name, words) in [("notes.txt", "did not write"), ("v1.metadata.json", "v1.metadata.json")] {
        let path = metadata.join(name);
        std::fs::write(&path, "mine").unwrap();
        for stages in [
            MAKE,
            "- prepare: {table: events, fresh: true}",
            "- cleanup: {table: events}",
            &load("total_operations: 1"),
        ] {
            let refused = refusal(&on_files(directory.path(), stages), &options(2));
            assert!(refused.contains(words), "{stages}: {refused}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_table_that_is_not_there_is_not_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let refused =
        refusal(&on_files(directory.path(), "- load: {table: events, total_operations: 1}"), &options(2));
    assert!(refused.contains("prepare: {table: events}"), "{refused}");
    let unreachable = "{kind: s3, endpoint: 'http://127.0.0.1:9'}";
    let done = try_run(&document(unreachable, MAKE), &options(2));
    let said = format!("{:?}", done.map(|run| (run.state, run.stages[0].reason.clone())));
    assert!(said.contains("127.0.0.1:9") && !said.contains(&format!("{:?}", State::Completed)), "{said}");
}

#[test]
fn documents_are_refused_with_a_word_on_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    for (stages, words) in [
        ("- load: {table: ../x, total_operations: 1}", "no name of a table"),
        ("- load: {table: events}", "for: 60s"),
        ("- load: {table: events, total_operations: 1, rows: 0}", "rows"),
        ("- init: {table: events}", "does not apply"),
        ("- load: {total_operations: 1}", "table: events"),
    ] {
        let found =
            crate::common::read(&on_files(directory.path(), stages)).map(|read| read.warnings).unwrap_err();
        let said: Vec<_> = found.iter().map(|one| format!("{}: {}", one.message, one.help)).collect();
        assert!(said.join("\n").contains(words), "{stages}: {said:?}");
    }
}

#[test]
fn what_a_load_will_do_is_told_and_submitted_documents_use_allowed_directories_only() {
    let directory = tempfile::tempdir().unwrap();
    let plan =
        crate::common::read(&on_files(directory.path(), "- load: {table: events, total_operations: 7}"))
            .unwrap()
            .plan;
    let forecast = crate::common::forecast(&plan);
    assert!(forecast.notes.iter().any(|note| note.topic == "table-not-made"), "{:?}", forecast.notes);
    assert_eq!(forecast.stages[0].works[0].actions[0].does.code, "commits_rows");
    let registry = tidemark_engines::registry();
    let refused = Policy::default().check(&plan, &registry).unwrap_err();
    assert!(refused.contains("does not allow"), "{refused}");
    let policy = Policy { directories: vec![directory.path().to_owned()], ..Policy::default() };
    assert_eq!(policy.check(&plan, &registry), Ok(()));
}
