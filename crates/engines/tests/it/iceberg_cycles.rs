//! Cycles of Iceberg tables: rows are conserved and answers right, what ages is counted, and what goes wrong is classed.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::{doubts, examples, options, refusal, run, try_run};
use std::path::Path;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer, Fault as Spoil, Operation};
use tidemark_iceberg::commits::{CommitEvidence, CommitsUse};
use tidemark_iceberg::cycles::{CycleEvidence, CyclesUse, MergeMode, StepKind, TableState};
use tidemark_judge::{Severity, evidence, judge};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Run;

fn document(storage: &str, stages: &str) -> String {
    format!("name: t\nseed: 4\ntarget: {{kind: iceberg, storage: {storage}}}\nstages:\n{stages}\n")
}

fn on_files(directory: &Path, stages: &str) -> String {
    document(&format!("{{kind: files, directory: {}}}", directory.display()), stages)
}

fn on(server: &EmbeddedServer, stages: &str) -> String {
    let (endpoint, access, secret) = (server.endpoint(), server.access_key(), server.secret_key());
    let storage =
        format!("{{kind: s3, endpoint: '{endpoint}', access_key: '{access}', secret_key: '{secret}'}}");
    document(&storage, stages)
}

/// A table made anew, and 6 cycles of 4 appends.
fn load(more: &str) -> String {
    format!(
        "- prepare: {{table: events, fresh: true}}\n\
         - load: {{table: events, cycles: 6, initial_rows: 2000, appends: 4, rows: 20, target_size: 16KiB, {more}}}"
    )
}

fn used(run: &Run) -> (CyclesUse, CommitsUse) {
    let stage = &run.stages[1];
    let cycles = evidence::read::<CycleEvidence>(stage).unwrap().swap_remove(0);
    (cycles, evidence::read::<CommitEvidence>(stage).unwrap().swap_remove(0))
}

fn found(run: &Run) -> Vec<TableState> {
    used(run).0.cycles.iter().filter_map(|cycle| cycle.found).collect()
}

fn requests(run: &Run) -> Vec<u64> {
    used(run).0.measured().map(|(_, took, _)| took.requests).collect()
}

fn server() -> EmbeddedServer {
    let buckets = vec!["tables".into()];
    EmbeddedServer::start(EmbeddedOptions { buckets, ..EmbeddedOptions::default() }).unwrap()
}

#[test]
fn tables_age_without_compaction_and_less_so_with_it_while_every_answer_is_right() {
    for (word, merge) in [
        ("copy-on-write", Some(MergeMode::CopyOnWrite)),
        ("merge-on-read", Some(MergeMode::MergeOnRead)),
        ("none", None),
    ] {
        let aged = run(&document("{kind: embedded}", &load(&format!("merge: {word}, merged: 5%"))));
        let kept = run(&document(
            "{kind: embedded}",
            &load(&format!("merge: {word}, merged: 5%, compact_every: 2, manifests: 9")),
        ));
        for (run, compactions) in [(&aged, 0), (&kept, 3)] {
            let (cycles, commits) = used(run);
            assert_eq!(cycles.merge, merge);
            assert_eq!(cycles.answers(), (18, 0), "{:?}", examples(run));
            let rows: Vec<u64> = found(run).iter().map(|found| found.rows).collect();
            assert_eq!(rows, [2_080, 2_160, 2_240, 2_320, 2_400, 2_480]);
            let history = commits.history.as_ref().unwrap();
            assert!(history.is_whole() && history.others == 0, "{history:?}");
            let merges = if merge.is_some() { 6 } else { 0 };
            assert_eq!((commits.acknowledged, commits.lost_races), (1 + 24 + merges + compactions, 0));
            assert_eq!(history.found, commits.acknowledged);
            let rules: Vec<_> = judge(run).findings.iter().map(|one| (one.severity, one.rule())).collect();
            for rule in ["cycles-answers", "commits-kept"] {
                assert!(rules.contains(&(Severity::Good, rule)), "{rules:?}");
            }
            assert!(rules.contains(&(Severity::Note, "cycles-aged")), "{rules:?}");
            assert_eq!(doubts(run), [""; 0]);
        }
        let files = |run| found(run).iter().map(|found| found.files).collect::<Vec<_>>();
        let each = 4 + u64::from(merge == Some(MergeMode::MergeOnRead));
        assert!(files(&aged).windows(2).all(|pair| pair[1] == pair[0] + each), "{:?}", files(&aged));
        let (aged_requests, kept_requests) = (requests(&aged), requests(&kept));
        assert!(aged_requests.windows(2).all(|pair| pair[1] > pair[0]), "{aged_requests:?}");
        assert!(kept_requests[2] < kept_requests[1] && kept_requests[5] < aged_requests[5]);
        assert!(files(&kept)[2] < files(&kept)[1] && files(&kept)[5] < files(&aged)[5]);
        let deletes: Vec<u64> = found(&kept).iter().map(|found| found.delete_files).collect();
        match merge {
            Some(MergeMode::MergeOnRead) => assert_eq!(deletes, [1, 2, 1, 2, 1, 2]),
            _ => assert_eq!(deletes, [0; 6]),
        }
        let same = |run| {
            let first: TableState = found(run)[0];
            (first.rows, first.files, first.delete_files, first.manifests, requests(run)[0])
        };
        assert_eq!(same(&aged), same(&kept), "the same steps up to there");
    }
}

#[test]
fn every_request_belongs_to_one_step() {
    let server = server();
    let text = on(&server, &load("merge: merge-on-read, merged: 5%"));
    let done = run(&text);
    let (cycles, commits) = used(&done);
    let steps = || cycles.cycles.iter().flat_map(|cycle| &cycle.steps);
    let of_commits: u64 = steps().filter(|step| step.kind != StepKind::Query).map(|step| step.requests).sum();
    assert_eq!(of_commits, commits.all_requests());
    let queries = || steps().filter(|step| step.kind == StepKind::Query);
    // Hint, next version, list, manifests, deletes: and each data file.
    assert!(
        queries().all(|step| step.requests > 4 && step.read_bytes > 0 && step.planning_ns < step.took_ns)
    );
    let tallies = &done.stages[1].works[0].operations;
    let names: Vec<&str> = tallies.iter().map(|one| one.label.as_str()).collect();
    assert_eq!(names, ["fill", "ingest", "merge", "totals", "range", "scan"]);
    assert_eq!(tallies.iter().map(|one| one.tally.ok).collect::<Vec<_>>(), [1, 24, 6, 6, 6, 6]);
}

#[test]
fn a_server_that_fails_now_and_then_fails_steps_and_makes_no_answer_wrong() {
    let server = server();
    let broken =
        Spoil::answer(500, "InternalError").on(Operation::PutObject).under("tables/events/metadata/v");
    server.faults().add(broken.every(3));
    let unread =
        Spoil::answer(503, "ServiceUnavailable").on(Operation::GetObject).under("tables/events/data");
    server.faults().add(unread.every(40));
    let done = run(&on(
        &server,
        &load("merge: merge-on-read, merged: 5%, compact_every: 3, allowed_failures: 100%"),
    ));
    let (cycles, commits) = used(&done);
    assert!(commits.looked_up > 0 && commits.history.as_ref().unwrap().is_whole(), "{commits:?}");
    let failed: u64 = cycles.cycles.iter().flat_map(|cycle| &cycle.steps).map(|step| step.failed).sum();
    let (right, wrong) = cycles.answers();
    assert!(failed > 0 && right > 0 && wrong == 0, "{cycles:?}");
    let tallies = done.stages[1].works[0].operations.iter().map(|one| &one.tally);
    let (mut counted, mut classed) = (0, 0);
    for tally in tallies {
        counted += tally.failed();
        classed += tally.faults.of(Fault::Throttled) + tally.faults.of(Fault::ServerError);
    }
    assert_eq!((counted, classed), (failed, failed), "{:?}", examples(&done));
    assert!(examples(&done).iter().all(|words| words.starts_with("cycle ")), "{:?}", examples(&done));
    assert!(!judge(&done).findings.iter().any(|one| one.rule() == "cycles-answers" && right == 18));
}

#[test]
fn what_a_commit_leaves_behind_is_counted_when_the_table_is_removed() {
    let server = server();
    run(&on(&server, "- prepare: {table: events}"));
    let versions =
        Spoil::answer(500, "InternalError").on(Operation::PutObject).under("tables/events/metadata/v");
    let fault = server.faults().add(versions.every(3));
    // One try: whether the version was made is not known, and it was not.
    let stages = "- load: {table: events, cycles: 4, merge: none, tries: 1, allowed_failures: 100%}";
    let done = run(&on(&server, stages));
    let tallies = done.stages[0].works[0].operations.iter().map(|one| &one.tally);
    let ambiguous: u64 = tallies.map(|tally| tally.faults.of(Fault::Ambiguous)).sum();
    let answers = evidence::read::<CycleEvidence>(&done.stages[0]).unwrap()[0].answers();
    assert!(ambiguous > 0 && answers == (12, 0), "{answers:?} {:?}", examples(&done));
    server.faults().remove(fault);
    let removed = run(&on(&server, "- cleanup: {table: events}"));
    let said = &removed.stages[0].reason;
    // A data file, its manifest and its list each.
    assert!(said.contains(&format!("{} of which belonged to no version", 3 * ambiguous)), "{said}");
}

#[test]
fn cycles_begin_with_an_empty_table_and_keys_that_mean_nothing_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    run(&on_files(directory.path(), &load("merge: none")));
    let again = on_files(directory.path(), "- load: {table: events, cycles: 1}");
    let refused = refusal(&again, &options(2));
    assert!(refused.contains("has rows already") && refused.contains("fresh: true"), "{refused}");
    for (stages, words) in [
        ("- load: {table: events, cycles: 2, committers: 3}", "`committers` does not apply"),
        ("- load: {table: events, total_operations: 2, merge: none}", "`merge` does not apply"),
        ("- load: {table: events, cycles: 2, for: 10s}", "`for` does not apply"),
        ("- load: {table: events, cycles: 2, merge: sometimes}", "merge"),
        ("- load: {table: events, cycles: 100000, appends: 10000, rows: 1}", "more than"),
        ("- load: {table: events, cycles: 1000, appends: 1000, rows: 1000000}", "larger than"),
    ] {
        let found =
            crate::common::read(&on_files(directory.path(), stages)).map(|read| read.warnings).unwrap_err();
        let said: Vec<_> = found.iter().map(|one| format!("{}: {}", one.message, one.help)).collect();
        assert!(said.join("\n").contains(words), "{stages}: {said:?}");
    }
    let plan = crate::common::read(&on_files(directory.path(), &load("merge: none"))).unwrap().plan;
    let forecast = crate::common::forecast(&plan);
    assert_eq!(forecast.stages[1].works[0].actions[0].does.code, "runs_steps");
    let unreachable = document("{kind: s3, endpoint: 'http://127.0.0.1:9'}", &load("merge: none"));
    assert!(
        try_run(&unreachable, &options(2))
            .map_or(true, |run| run.stages[0].works.is_empty() || !run.stages[0].reason.is_empty())
    );
}
