//! Decision support after TPC-H on real databases, and on tables in files and buckets: the same answers everywhere.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::{doubts, examples, options, run, try_run};
use tidemark_judge::{Amount, judge};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Answer, Run, Stage, TablesUse};
use tidemark_testing::mariadb::Mariadb;
use tidemark_testing::postgres::Postgres;
use tidemark_tpc::answer::Digest;
use tidemark_tpc::queries::Dialect;
use tidemark_tpc::{answers, parameters, queries};

fn on_postgres(server: &Postgres, stages: &str) -> String {
    format!(
        "name: t\nseed: 7\ntarget: {{kind: postgres, host: {}, port: {}, timeout: 10min}}\nstages:\n{stages}\n",
        server.socket_directory().display(),
        server.port()
    )
}

fn on_mariadb(server: &Mariadb, stages: &str) -> String {
    format!(
        "name: t\ntarget: {{kind: mariadb, host: {}, user: root, database: bench, timeout: 10min}}\nstages:\n{stages}\n",
        server.socket().display()
    )
}

fn figure(run: &Run, stage: &Stage, name: &str) -> Option<Amount> {
    tidemark_judge::figures(run, stage)
        .into_iter()
        .find(|figure| figure.name == name)
        .map(|figure| figure.amount)
}

/// What the only work of a stage did with its tables.
fn tables(run: &Run, stage: usize) -> &TablesUse {
    &run.stages[stage].proof.as_ref().unwrap().tables[0]
}

/// What PostgreSQL answers to a query, in a few numbers.
fn answer(server: &Postgres, query: u8, scale: f64) -> Digest {
    let sql = queries::query(query, &parameters::qualification(query, scale), Dialect::Standard).unwrap();
    let mut digest = Digest::default();
    // So that a row of one null is told from no row. No text of these tables has a bar.
    for line in server.sql(&format!("COPY ({sql}) TO STDOUT (DELIMITER '|', NULL '<null>')")).lines() {
        digest.add(line.split('|').map(|cell| Some(cell).filter(|cell| *cell != "<null>")));
    }
    digest
}

/// After a change of queries: `TIDEMARK_UPDATE=0.01,0.1,1 cargo test -p tidemark-engines answers_of_postgres`.
#[test]
fn answers_of_postgres_are_those_on_file() {
    let Some(server) = Postgres::start(&[]) else { return };
    let update = std::env::var("TIDEMARK_UPDATE").ok();
    let mut lines = Vec::new();
    for scale in update.as_deref().unwrap_or("0.01").split(',') {
        run(&on_postgres(&server, &format!("- prepare: {{workload: tpch, scale: {scale}}}")));
        let scale: f64 = scale.parse().unwrap();
        let milli = (scale * 1e3).round() as u64;
        for query in 1..=22 {
            let given = answer(&server, query, scale);
            match &update {
                Some(_) => lines.push(format!("{milli} {query} {given}\n")),
                None => {
                    let known = answers::known(query, milli).expect("there is an answer on file");
                    assert_eq!(given.agrees(&known), Ok(()), "query {query}");
                }
            }
        }
    }
    if update.is_some() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tpc/src/answers.txt");
        std::fs::write(path, lines.concat()).unwrap();
    }
}

#[test]
fn power_and_throughput_on_postgres_leave_the_data_as_they_were() {
    let Some(server) = Postgres::start(&[]) else { return };
    let counts = || {
        server.sql("SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM lineitem), (SELECT sum(o_totalprice) FROM orders)")
    };
    let loaded = run(&on_postgres(&server, "- prepare: {workload: tpch, scale: 0.01, loaders: 3}"));
    assert!(loaded.stages[0].works[0].operations[0].tally.ok >= 8);
    assert!(counts().starts_with("15000|60175|"), "{}", counts());
    let (before, load) = (counts(), "workload: tpch, scale: 0.01, refresh: true");
    let done = run(&on_postgres(&server, &format!("- load: {{{load}}}\n- load: {{{load}, streams: 2}}")));
    assert_eq!(counts(), before, "what was inserted is deleted");
    let [power, throughput] = &done.stages[..] else { panic!() };
    let count = |stage: &Stage, label: &str| {
        stage.works[0].operations.iter().find(|operation| operation.label == label).unwrap().tally.ok
    };
    assert_eq!((count(power, "q1"), count(power, "rf1"), count(power, "rf2")), (1, 1, 1));
    assert_eq!((count(throughput, "q22"), count(throughput, "rf1"), count(throughput, "rf2")), (2, 2, 2));
    let score = |stage, name| match figure(&done, stage, name) {
        Some(Amount::Score(score)) => score,
        other => panic!("{name}: {other:?}"),
    };
    let (power, throughput, both) = (
        score(power, "TPC-H-like power"),
        score(throughput, "TPC-H-like throughput"),
        score(throughput, "TPC-H-like QphH"),
    );
    assert!((both / (power * throughput).sqrt() - 1.0).abs() < 1e-6);
    let seconds = done.stages[1].works[0].last_done_ns as f64 / 1e9;
    assert!(
        (throughput / (2.0 * 22.0 * 3600.0 * 0.01 / seconds) - 1.0).abs() < 1e-6,
        "{throughput} in {seconds} s"
    );
    let cleaned = run(&on_postgres(&server, "- cleanup: {workload: tpch, scale: 0.01}"));
    assert!(cleaned.stages[0].reason.contains("dropped"), "{}", cleaned.stages[0].reason);
}

#[test]
fn without_refresh_functions_answers_are_compared_and_a_wrong_one_is_found() {
    let Some(server) = Postgres::start(&[]) else { return };
    let done = run(&on_postgres(
        &server,
        "- prepare: {workload: tpch, scale: 0.01}\n- load: {workload: tpch, scale: 0.01}",
    ));
    let works = &done.stages[1].works[0];
    assert!(works.operations.len() == 22 && works.operations.iter().all(|one| one.tally.ok == 1));
    assert!(
        figure(&done, &done.stages[1], "TPC-H-like power").is_none(),
        "there is none without refresh functions"
    );
    assert!(matches!(figure(&done, &done.stages[1], "Geometric mean"), Some(Amount::Span(1..))));
    let used = tables(&done, 1);
    assert_eq!((used.set.as_str(), used.scale.as_str(), used.queries.len()), ("tpch", "0.01", 22));
    let version = server.sql("SHOW server_version");
    assert_eq!(used.engine, format!("PostgreSQL {}", version.split(' ').next().unwrap()));
    for query in &used.queries {
        assert_eq!((query.answer, query.fault, query.stream, query.pass), (Answer::Known, None, 1, 1));
    }
    let rows = |query: &str| used.queries.iter().find(|one| one.query == query).unwrap().rows;
    assert_eq!((rows("q1"), rows("q6")), (4, 1));
    let of_one_stream =
        used.queries.windows(2).all(|pair| pair[0].began_ns + pair[0].took_ns <= pair[1].began_ns);
    assert!(of_one_stream, "one after the other: {:?}", used.queries);
    let said = judge(&done);
    assert!(said.findings.iter().any(|finding| finding.rule() == "answers"), "{:?}", said.findings);
    server.sql("UPDATE lineitem SET l_extendedprice = l_extendedprice + 100000 WHERE l_orderkey = 1 AND l_linenumber = 1");
    let wrong = try_run(&on_postgres(&server, "- load: {workload: tpch, scale: 0.01}"), &options(2)).unwrap();
    let faults = |label: &str| {
        let operations = &wrong.stages[0].works[0].operations;
        operations
            .iter()
            .find(|operation| operation.label == label)
            .unwrap()
            .tally
            .faults
            .of(Fault::WrongAnswer)
    };
    assert_eq!((faults("q1"), faults("q13")), (1, 0), "{:?}", examples(&wrong));
    let answer = |query: &str| {
        let one = tables(&wrong, 0).queries.iter().find(|one| one.query == query).unwrap();
        (one.answer, one.fault, one.rows)
    };
    assert_eq!(answer("q1"), (Answer::Differs, Some(Fault::WrongAnswer), 4));
    assert_eq!((answer("q13").0, answer("q13").1), (Answer::Known, None));
    assert!(!judge(&wrong).validity.is_valid() || wrong.state != tidemark_measure::record::State::Completed);
}

#[test]
fn mariadb_gives_the_same_answers() {
    let Some(server) = Mariadb::start(&[]) else { return };
    let done = run(&on_mariadb(
        &server,
        "- prepare: {workload: tpch, scale: 0.01, loaders: 2}\n- load: {workload: tpch, scale: 0.01}\n- load: {workload: tpch, scale: 0.01, streams: 2, refresh: true}",
    ));
    let operations = &done.stages[1].works[0].operations;
    assert!(
        operations.iter().all(|one| (one.tally.ok, one.tally.failed()) == (1, 0)),
        "{:?}",
        examples(&done)
    );
    assert_eq!(server.sql("SELECT count(*) FROM bench.orders"), "15000");
    let (power, throughput) = (tables(&done, 1), tables(&done, 2));
    assert!(power.engine.starts_with("MariaDB 1"), "{}", power.engine);
    assert!(power.queries.iter().all(|one| one.answer == Answer::Known), "{power:?}");
    let streams = |number| throughput.queries.iter().filter(move |one| one.stream == number);
    assert_eq!(
        (streams(1).count(), streams(2).count(), throughput.queries.len()),
        (22, 22, 44),
        "refresh functions are none"
    );
    assert!(streams(1).all(|one| one.answer == Answer::NotChecked), "orders come and go meanwhile");
}

fn on_files(directory: &std::path::Path, stages: &str) -> String {
    format!(
        "name: t\ntarget: {{kind: datafusion, storage: {{kind: files, directory: {}}}}}\nstages:\n{stages}\n",
        directory.display()
    )
}

#[test]
fn datafusion_gives_the_same_answers_from_files_and_from_a_bucket() {
    let directory = tempfile::tempdir().unwrap();
    let stages = "- prepare: {tables: tpch, scale: 0.01}\n- load: {tables: tpch, scale: 0.01, streams: 2}\n- cleanup: {tables: tpch, scale: 0.01}";
    let bucket =
        format!("name: t\ntarget: {{kind: datafusion, storage: {{kind: embedded}}}}\nstages:\n{stages}\n");
    for document in [on_files(directory.path(), stages), bucket] {
        let done = run(&document);
        let used = &done.stages[1].proof.as_ref().unwrap().tables[0];
        assert_eq!(used.queries.len(), 44);
        for query in &used.queries {
            assert_eq!((query.answer, query.fault), (Answer::Known, None), "{}", query.query);
            let seen = query.storage.as_ref().unwrap();
            assert!(seen.reads > 0 && seen.needed_bytes.is_some_and(|needed| needed > 0), "{query:?}");
            assert!(seen.sizes.iter().map(|size| size.reads).sum::<u64>() == seen.reads && seen.failed == 0);
        }
        let made = done.stages[0].proof.as_ref().unwrap().tables[0].made.as_ref().unwrap();
        assert!(made.tables.iter().all(|table| table.expected_rows == Some(table.rows)), "{made:?}");
        assert_eq!(made.tables.iter().find(|table| table.name == "lineitem").unwrap().rows, 60_175);
        assert_eq!(doubts(&done), [""; 0]);
    }
    let left = std::fs::read_dir(directory.path().join("tpch-0.01/lineitem"));
    assert!(left.is_err() || left.unwrap().next().is_none(), "nothing is left");
}
