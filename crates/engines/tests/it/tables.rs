//! Tables in files: made once, made whole, guarded, and queried by those who may.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::{examples, options, refusal, run, try_run};
use std::path::Path;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Answer, Run, State};
use tidemark_plan::policy::Policy;
use tidemark_testing::needs;
use tidemark_tpc::ds;

fn document(directory: &Path, more: &str, stages: &str) -> String {
    let target =
        format!("{{kind: datafusion, storage: {{kind: files, directory: {}}}{more}}}", directory.display());
    format!("name: t\ntarget: {target}\nstages:\n{stages}\n")
}

const MAKE: &str = "- prepare: {tables: tpch, scale: 0.01, file_size: 1MiB}";

/// Bytes that the files of the first stage brought to storage, and how many files it kept.
fn made(run: &Run) -> (u64, u64) {
    let stage = &run.stages[0];
    let tables = &stage.proof.as_ref().unwrap().tables[0].made.as_ref().unwrap().tables;
    (stage.works[0].operations[0].tally.bytes, tables.iter().map(|table| table.kept_files).sum())
}

#[test]
fn files_are_kept_and_what_is_missing_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let make = document(directory.path(), "", MAKE);
    let first = run(&make);
    let files = first.stages[0].works[0].operations[0].tally.ok;
    assert!(files > 8 && made(&first).0 > 1 << 20, "{files}");
    assert_eq!(made(&run(&make)), (0, files), "all are kept");
    let lines = directory.path().join("tpch-0.01/lineitem");
    let one = std::fs::read_dir(&lines).unwrap().next().unwrap().unwrap().path();
    let content = std::fs::read(&one).unwrap();
    std::fs::remove_file(&one).unwrap();
    let query = document(directory.path(), "", "- load: {tables: tpch, scale: 0.01}");
    let missing = refusal(&query, &options(2));
    assert!(missing.contains("of lineitem is missing") && missing.contains("prepare"), "{missing}");
    let again = run(&make);
    assert_eq!(made(&again), (content.len() as u64, files - 1));
    assert!(std::fs::read(&one).unwrap() == content, "the same bytes");
    let other =
        run(&document(directory.path(), "", "- prepare: {tables: tpch, scale: 0.01, compression: snappy}"));
    assert!(other.notes.iter().any(|note| note.topic == "remade"), "{:?}", other.notes);
    assert_eq!(made(&other).1, 0);
}

#[test]
fn files_of_others_are_never_touched() {
    let directory = tempfile::tempdir().unwrap();
    let nation = directory.path().join("tpch-0.01/nation");
    std::fs::create_dir_all(&nation).unwrap();
    for (name, content) in
        [("part-1-of-1.parquet", &b"PAR1 not really"[..]), ("notes.txt", b"mine"), ("empty", b"")]
    {
        let path = nation.join(name);
        std::fs::write(&path, content).unwrap();
        for stages in [
            MAKE,
            "- prepare: {tables: tpch, scale: 0.01, fresh: true}",
            "- load: {tables: tpch, scale: 0.01}",
        ] {
            let refused = refusal(&document(directory.path(), "", stages), &options(2));
            assert!(refused.contains(name) && refused.contains("did not write"), "{refused}");
        }
        run(&document(directory.path(), "", "- cleanup: {tables: tpch, scale: 0.01}"));
        assert_eq!(std::fs::read(&path).unwrap(), content);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn queries_read_their_tables_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret.csv");
    std::fs::write(&secret, "hunter2\nhunter3\n").unwrap();
    let path = secret.display();
    let stages = format!(
        "{MAKE}\n- load:\n    tables: tpch\n    scale: 0.01\n    allowed_failures: 100%\n    sql:\n\
         \x20   - {{name: two, sql: 'select count(*) from nation; select count(*) from region'}}\n\
         \x20   - {{name: read, sql: \"select * from '{path}'\"}}\n\
         \x20   - {{name: make, sql: \"create external table x stored as csv location '{path}'\"}}\n\
         \x20   - {{name: copy, sql: \"copy nation to '{path}'\"}}\n\
         \x20   - {{name: drop, sql: 'drop table nation'}}\n\
         \x20   - {{name: typo, sql: 'select nonsense from nation'}}\n\
         \x20   - {{name: nothing, sql: ';'}}\n\
         \x20   - {{name: zero, sql: 'select 1 / (n_nationkey - n_nationkey) from nation'}}\n\
         \x20   - {{name: argument, sql: \"select date_trunc('nonsense', o_orderdate) from orders\"}}\n"
    );
    let done = run(&document(directory.path(), "", &stages));
    let operations = &done.stages[1].works[0].operations;
    assert_eq!(
        (operations[0].tally.ok, operations[0].tally.failed()),
        (1, 0),
        "several statements are one query"
    );
    for operation in &operations[1..] {
        assert_eq!(operation.tally.faults.of(Fault::Sql), 1, "{}: {:?}", operation.label, examples(&done));
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "hunter2\nhunter3\n");
    assert!(!format!("{:?}", examples(&done)).contains("hunter2"));
}

#[test]
fn an_answer_that_changes_is_wrong_unless_parameters_are_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let load = |more: &str| {
        format!(
            "{MAKE}\n- load: {{tables: tpch, scale: 0.01, passes: 3, allowed_failures: 100%, {more}sql: [{{name: dice, sql: 'select random()'}}]}}"
        )
    };
    // Whatever failures the document allows, a wrong answer is none of them.
    let done = try_run(&document(directory.path(), "", &load("")), &options(2)).unwrap();
    assert_eq!(done.state, State::Failed);
    assert_eq!(done.stages[1].works[0].operations[0].tally.faults.of(Fault::WrongAnswer), 2);
    assert!(
        done.stages[1].reason.ends_with("2 answers were wrong; none is allowed"),
        "{}",
        done.stages[1].reason
    );
    let judged = tidemark_judge::judge(&done);
    let titles: Vec<String> = judged.findings.iter().map(tidemark_judge::Finding::title).collect();
    for title in ["answers of queries were wrong 2 times", "2 of 3 answers were compared: 0 right, 2 wrong"] {
        assert!(titles.iter().any(|one| one == title), "{titles:?}");
    }
    let used = &done.stages[1].proof.as_ref().unwrap().tables[0];
    assert_eq!(
        used.queries.iter().map(|one| one.answer).collect::<Vec<_>>(),
        [Answer::NotChecked, Answer::Differs, Answer::Differs]
    );
    let drawn = run(&document(directory.path(), "", &load("parameters: random, ")));
    assert_eq!(drawn.stages[1].works[0].operations[0].tally.ok, 3);
}

#[test]
fn a_query_without_memory_or_time_fails_and_its_stream_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    // One text of 40 MB, which no query engine can put into a temporary file.
    let large = "select length(string_agg(l_comment, chr(44))) from lineitem, region a, region b";
    let long = "select sum(value % 7) from generate_series(1, 9000000000000)";
    let load = |sql: &str, more: &str| {
        format!(
            "{MAKE}\n- load: {{tables: tpch, scale: 0.01, allowed_failures: 100%, {more}sql: [{{name: large, sql: '{sql}'}}, {{name: small, sql: 'select 1'}}]}}"
        )
    };
    let few = run(&document(directory.path(), ", memory: 16MiB", &load(large, "")));
    let late = run(&document(directory.path(), "", &load(long, "timeout: 3s, ")));
    for (done, fault) in [(few, Fault::Overloaded), (late, Fault::Timeout)] {
        let operations = &done.stages[1].works[0].operations;
        assert_eq!(operations[0].tally.faults.of(fault), 1, "{:?}", examples(&done));
        assert_eq!(operations[1].tally.ok, 1);
    }
}

#[test]
fn parameters_that_are_drawn_are_answered_too() {
    let directory = tempfile::tempdir().unwrap();
    let stages = format!("{MAKE}\n- load: {{tables: tpch, scale: 0.01, streams: 2, parameters: random}}");
    let done = run(&document(directory.path(), "", &stages));
    let operations = &done.stages[1].works[0].operations;
    assert!(operations.iter().all(|one| one.tally.ok == 2), "{:?}", examples(&done));
}

#[test]
fn sales_are_made_whole_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let sql = "[{name: sales, sql: 'select count(*), sum(ss_net_paid) from store_sales, date_dim where ss_sold_date_sk = d_date_sk'}]";
    let stages = format!(
        "- prepare: {{tables: tpcds, scale: 0.01}}\n- load: {{tables: tpcds, scale: 0.01, passes: 2, sql: {sql}}}"
    );
    let done = run(&document(directory.path(), "", &stages));
    let tables = &done.stages[0].proof.as_ref().unwrap().tables[0].made.as_ref().unwrap().tables;
    assert_eq!(tables.len(), 24);
    assert!(
        tables.iter().all(|table| table.rows > 0 && table.expected_rows == Some(table.rows)),
        "{tables:?}"
    );
    let used = &done.stages[1].proof.as_ref().unwrap().tables[0];
    assert_eq!(used.queries[1].answer, Answer::Others);
}

/// A directory with a text for each of these queries.
fn texts(names: impl IntoIterator<Item = String>) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for name in names {
        std::fs::write(directory.path().join(format!("{name}.sql")), "SELECT 1").unwrap();
    }
    directory
}

/// The names of the queries of a document's only load.
fn queries_of(load: &str) -> Vec<String> {
    let text = document(Path::new("/data"), "", load);
    let plan = crate::common::read(&text).unwrap_or_else(|found| panic!("{found:?}")).plan;
    plan.stages[0].works[0].labels.iter().map(|label| label.label.clone()).collect()
}

#[test]
fn all_queries_of_a_directory_run_or_those_that_read_most() {
    let directory = texts(ds::names());
    let files = format!("query_files: {}", directory.path().display());
    for load in [&files, &format!("{files}, queries: all")] {
        assert_eq!(queries_of(&format!("- load: {{tables: tpcds, {load}}}")), ds::names());
    }
    for (scale, milli) in [("0.1", 100), ("1", 1000)] {
        let set = ds::most_read::on_file(ds::most_read::DATAFUSION, milli).unwrap();
        let wanted: Vec<String> = set.numbers.iter().flat_map(|number| ds::parts(*number)).collect();
        let load = format!("- load: {{tables: tpcds, scale: {scale}, {files}, queries: io-56}}");
        assert_eq!(queries_of(&load), wanted, "at {scale}");
    }
    assert_eq!(queries_of("- load: {tables: tpch, queries: all}").len(), 22);
    let own = format!(
        "- load: {{tables: tpcds, {files}, queries: [q14b], sql: [{{name: mine, sql: 'SELECT 1'}}]}}"
    );
    assert_eq!(queries_of(&own), ["q14b", "mine"]);
}

#[test]
#[ignore = "Maven downloads 25 MB once"]
fn the_queries_of_tpcds_are_fetched_and_answer_as_another_engine_does() {
    needs!(&["mvn"]);
    let (directory, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let queries = directory.path().join("queries");
    let fetch = || tidemark_lab::queries::write(&queries, &mut |_| {});
    assert_eq!((fetch().unwrap(), fetch().unwrap()), (103, 103), "what is there is there");
    let stages = format!(
        "- prepare: {{tables: tpcds, scale: 0.01}}\n- load: {{tables: tpcds, scale: 0.01, query_files: {}}}",
        queries.display()
    );
    let done = run(&document(data.path(), "", &stages));
    let used = &done.stages[1].proof.as_ref().unwrap().tables[0];
    let other: Vec<_> =
        used.queries.iter().filter(|query| query.answer != Answer::Known).map(|query| &query.query).collect();
    assert!(used.queries.len() == 103 && other.is_empty(), "{other:?}: {:?}", examples(&done));
    std::fs::write(queries.join("q7.sql"), "SELECT 7").unwrap();
    let refused = fetch().unwrap_err().to_string();
    assert!(refused.contains("q7.sql has another text"), "{refused}");
    assert_eq!(std::fs::read_to_string(queries.join("q7.sql")).unwrap(), "SELECT 7");
}

#[test]
fn documents_are_refused_with_a_word_on_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let wrong = |stages: &str| {
        let found = crate::common::read(&document(directory.path(), "", stages))
            .map(|read| read.warnings)
            .unwrap_err();
        found.iter().map(|one| format!("{}: {}", one.message, one.help)).collect::<Vec<_>>().join("\n")
    };
    for (stages, words) in [
        ("- load: {tables: tpcds}", "query_files"),
        ("- load: {tables: tpcds, queries: all}", "tidemark lab queries"),
        ("- load: {tables: tpcds, queries: q7}", "tidemark lab queries"),
        ("- load: {tables: tpcds, query_files: /nowhere}", "/nowhere/q1.sql"),
        ("- load: {tables: tpch, queries: io-56}", "tables: tpcds"),
        ("- load: {tables: tpch, queries: q23}", "there are q1 to q22"),
        ("- load: {tables: tpch, queries: [q1, q1]}", "two queries"),
        ("- load: {tables: tpch, queries: ['../x'], query_files: /tmp}", "no name of a query"),
        ("- load: {tables: tpch, queries: [q1], query_files: /nowhere}", "/nowhere/q1.sql"),
        ("- prepare: {tables: tpch, scale: 0}", "0.001 to 100000"),
        ("- prepare: {tables: tpch, scale: 1.00001}", "three decimal places"),
        ("- init: {tables: tpch}", "does not apply to tables"),
        ("- load: {tables: tpch, for: 10s}", "for"),
    ] {
        let said = wrong(stages);
        assert!(said.contains(words), "{stages}: {said}");
    }
}

#[test]
fn submitted_documents_use_allowed_directories_only() {
    let directory = tempfile::tempdir().unwrap();
    let plan = crate::common::read(&document(directory.path(), "", MAKE)).unwrap().plan;
    let registry = tidemark_engines::registry();
    let refused = Policy::default().check(&plan, &registry).unwrap_err();
    assert!(refused.contains("does not allow"), "{refused}");
    let policy = Policy { directories: vec![directory.path().to_owned()], ..Policy::default() };
    assert_eq!(policy.check(&plan, &registry), Ok(()));
    // What lies there may lead elsewhere.
    let elsewhere = tempfile::tempdir().unwrap();
    let set = directory.path().join("tpch-0.01");
    std::os::unix::fs::symlink(elsewhere.path(), &set).unwrap();
    assert!(policy.check(&plan, &registry).unwrap_err().contains("tpch-0.01 (which is "));
    std::fs::remove_file(&set).unwrap();
    std::fs::create_dir(&set).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), set.join("nation")).unwrap();
    assert!(policy.check(&plan, &registry).unwrap_err().contains("nation (which is "));
}

#[test]
fn a_place_that_cannot_be_used_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = refusal(&document(file.path(), "", MAKE), &options(2));
    assert!(refused.contains(&file.path().display().to_string()), "{refused}");
    let unreachable = "name: t\ntarget: {kind: datafusion, storage: {kind: s3, endpoint: 'http://127.0.0.1:9'}}\nstages:\n- prepare: {tables: tpch, scale: 0.01}\n";
    let done = try_run(unreachable, &options(2));
    let said = format!("{:?}", done.map(|run| (run.state, run.stages[0].reason.clone())));
    assert!(said.contains("127.0.0.1:9") && !said.contains(&format!("{:?}", State::Completed)), "{said}");
}
