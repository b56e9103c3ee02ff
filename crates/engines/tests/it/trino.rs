//! Tables and queries by Trino: what documents may say, and a real cluster.
//!
//! The cluster is the lab's, on the lab's gateway; `make test-trino` runs what needs it.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::{examples, options, refusal, run};
use std::collections::BTreeMap;
use std::path::Path;
use tidemark_lab::{self as lab, Bucket, Keys, Lab, LabOptions, Storage, Trino, TrinoOptions};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Answer, Run, TableMade, TablesUse};
use tidemark_plan::policy::Policy;

/// A document on a cluster whose coordinator is at this address.
fn document(trino: &str, storage: &str, stages: &str) -> String {
    format!("name: t\ntarget: {{kind: trino, {trino}, storage: {storage}}}\nstages:\n{stages}\n")
}

const S3: &str = "{kind: s3, endpoint: 'http://127.0.0.1:9', access_key: a, secret_key: b}";

#[test]
fn documents_are_refused_with_a_word_on_what_to_do() {
    let there = "endpoint: 'http://127.0.0.1:8080'";
    let load = "- load: {tables: tpch}";
    for (trino, storage, stages, words) in [
        ("endpoint: trino", S3, load, "http://host:port"),
        ("user: a", S3, load, "no `endpoint`"),
        ("endpoint: 'http://10.0.0.1:8080', password: x", S3, load, "in clear"),
        ("endpoint: 'http://10.0.0.1:8080', catalog: 'a b'", S3, load, "cannot be used"),
        ("endpoint: 'http://10.0.0.1:8080', user: 'a: b'", S3, load, "cannot be used"),
        ("endpoint: 'http://10.0.0.1:8080', threads: 2", S3, load, "threads"),
        (there, "{kind: files, directory: /data}", load, "files"),
        (there, "{kind: embedded}", load, "embedded"),
        (there, S3, "- prepare: {tables: tpch, by: trino, row_group: 100000}", "Trino writes the files"),
        (there, S3, "- prepare: {tables: tpch, by: presto}", "trino"),
        (there, S3, "- load: {tables: tpcds}", "query_files"),
    ] {
        let found =
            crate::common::read(&document(trino, storage, stages)).map(|read| read.warnings).unwrap_err();
        let said: Vec<_> = found.iter().map(|one| format!("{}: {}", one.message, one.help)).collect();
        assert!(said.join("\n").contains(words), "{trino} {stages}: {said:?}");
    }
    let elsewhere = "name: t\ntarget: {kind: datafusion, storage: {kind: files, directory: /data}}\n\
                     stages: [{prepare: {tables: tpch, by: trino}}]";
    let found = crate::common::read(elsewhere).map(|read| read.warnings).unwrap_err();
    assert!(format!("{found:?}").contains("kind `trino`"), "{found:?}");
}

#[test]
fn submitted_documents_use_allowed_files_only() {
    let trino = "endpoint: 'https://127.0.0.1:8443', ca_file: /etc/trino.pem";
    let plan = crate::common::read(&document(trino, S3, "- load: {tables: tpch}")).unwrap().plan;
    let registry = tidemark_engines::registry();
    let refused = Policy::default().check(&plan, &registry).unwrap_err();
    assert!(refused.contains("/etc/trino.pem") && refused.contains("does not allow"), "{refused}");
    let policy = Policy { directories: vec!["/etc/trino.pem".into()], ..Policy::default() };
    assert_eq!(policy.check(&plan, &registry), Ok(()));
}

#[test]
fn a_cluster_that_is_away_is_named() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let there = format!("endpoint: 'http://127.0.0.1:{port}'");
    for stages in
        ["- prepare: {tables: tpch}", "- prepare: {tables: tpch, by: trino}", "- load: {tables: tpch}"]
    {
        let refused = refusal(&document(&there, S3, stages), &options(1));
        assert!(refused.contains(&format!("http://127.0.0.1:{port}")), "{refused}");
        assert!(refused.contains("is the coordinator up"), "{refused}");
    }
}

/// A cluster to test with, and the storage below it.
struct Cluster {
    trino: String,
    storage: String,
    bucket: String,
}

impl Cluster {
    fn of(trino: &Trino, ceph: &Lab) -> Self {
        let keys = ceph.credentials();
        let storage = format!(
            "{{kind: s3, endpoint: '{}', access_key: '{}', secret_key: '{}'}}",
            ceph.endpoint(),
            keys.access_key,
            keys.secret_key
        );
        Self { trino: format!("endpoint: '{}'", trino.endpoint()), storage, bucket: "trino".into() }
    }

    /// A document whose tables are below a prefix.
    fn document(&self, prefix: &str, stages: &str) -> String {
        let trino = format!("{}, bucket: {}, prefix: {prefix}", self.trino, self.bucket);
        document(&trino, &self.storage, stages)
    }
}

fn tables(run: &Run, stage: usize) -> &TablesUse {
    let proof = run.stages[stage].proof.as_ref().unwrap();
    proof.tables.first().unwrap_or_else(|| panic!("{:?}", proof.unchecked))
}

fn made(run: &Run, stage: usize) -> &[TableMade] {
    &tables(run, stage).made.as_ref().unwrap().tables
}

fn rows(run: &Run, stage: usize) -> BTreeMap<&str, u64> {
    made(run, stage).iter().map(|table| (table.name.as_str(), table.rows)).collect()
}

/// Takes a lab down.
struct Down<'a>(&'a Path);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        let _ = lab::down(self.0, true, &mut |_| {});
    }
}

#[test]
#[ignore = "needs the Ceph packages and Trino; `make test-trino` runs it"]
fn trino_makes_tables_and_answers_queries_as_other_engines_do() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    tidemark_testing::needs!(tidemark_testing::TRINO);
    if let Err(error) = Trino::java(None) {
        return tidemark_testing::skip(error);
    }
    let place = tempfile::tempdir().unwrap();
    let (below, beside) = (place.path().join("ceph"), place.path().join("trino"));
    let _ceph_down = Down(&below);
    let ceph = lab::up(&LabOptions::new(&below), &mut |_| {}).unwrap();
    let _down = Down(&beside);
    let keys = ceph.credentials();
    let storage = Storage {
        bucket: Bucket { s3: ceph.endpoint(), region: "us-east-1".into(), bucket: "trino".into() },
        keys: Keys { access_key: keys.access_key.clone(), secret_key: keys.secret_key.clone() },
    };
    let trino = Trino::up(&TrinoOptions::new(&beside, storage), &mut |_| {}).unwrap();
    let cluster = Cluster::of(&trino, &ceph);
    answers_the_22_queries_as_they_are_known_whoever_made_the_tables(&cluster);
    makes_the_same_sales_as_tidemark(&cluster);
    answers_the_queries_of_tpcds_that_read_most_as_datafusion_does(&cluster);
    fails_by_the_query_and_the_stream_goes_on(&cluster);
    reads_no_table_that_lies_elsewhere(&cluster);
}

fn answers_the_22_queries_as_they_are_known_whoever_made_the_tables(cluster: &Cluster) {
    let stages = "- prepare: {tables: tpch, scale: 0.01, fresh: true}\n\
                  - prepare: {tables: tpch, scale: 0.01, by: trino, fresh: true}\n\
                  - load: {tables: tpch, scale: 0.01}\n\
                  - load: {tables: tpch, scale: 0.01, by: trino, streams: 2}\n";
    let done = run(&cluster.document("known", stages));
    assert_eq!(rows(&done, 0), rows(&done, 1), "the same rows");
    for stage in [0, 1] {
        assert!(
            made(&done, stage).iter().all(|table| table.expected_rows == Some(table.rows) && table.bytes > 0)
        );
    }
    for (stage, executions) in [(2, 22), (3, 44)] {
        let queries = &tables(&done, stage).queries;
        assert_eq!(queries.len(), executions);
        for one in queries {
            assert_eq!(
                (one.fault, one.answer),
                (None, Answer::Known),
                "{}: {:?}",
                one.query,
                examples(&done)
            );
            assert!(
                one.planning_ns > Some(0) && one.execution_ns > Some(0) && one.queued_ns.is_some(),
                "{one:?}"
            );
            assert!(one.engine_read_bytes > Some(0), "{one:?}");
        }
    }
    assert!(tables(&done, 2).engine.starts_with("Trino "), "{}", tables(&done, 2).engine);
    let kept = run(&cluster.document("known", "- prepare: {tables: tpch, scale: 0.01, by: trino}"));
    assert!(made(&kept, 0).iter().all(|table| table.kept_files == table.files && table.files > 0));
    let stages = "- cleanup: {tables: tpch, scale: 0.01}\n- cleanup: {tables: tpch, scale: 0.01, by: trino}";
    let cleaned = run(&cluster.document("known", stages));
    for stage in &cleaned.stages {
        assert!(
            stage.reason.contains("8 tables are dropped") && stage.reason.contains("removed"),
            "{}",
            stage.reason
        );
    }
    let again = run(&cluster.document("known", stages));
    assert!(again.stages[0].reason.contains("no such tables"), "{}", again.stages[0].reason);
}

fn makes_the_same_sales_as_tidemark(cluster: &Cluster) {
    let sql = "[{name: years, sql: 'select d_year, i_category, s_state, count(*), sum(ss_net_paid) from store_sales, date_dim, item, store \
               where ss_sold_date_sk = d_date_sk and ss_item_sk = i_item_sk and ss_store_sk = s_store_sk group by 1, 2, 3; \
               select c_last_name, ca_city, cd_gender, count(*) from customer, customer_address, customer_demographics \
               where c_current_addr_sk = ca_address_sk and c_current_cdemo_sk = cd_demo_sk group by 1, 2, 3'}, \
               {name: returns, sql: 'select d_year, count(*), sum(sr_return_amt) from store_returns join date_dim on sr_returned_date_sk = d_date_sk \
               group by 1 having count(*) > 1 order by 1'}]";
    let load = format!("tables: tpcds, scale: 0.01, sql: {sql}");
    let stages = format!(
        "- prepare: {{tables: tpcds, scale: 0.01}}\n- prepare: {{tables: tpcds, scale: 0.01, by: trino}}\n- load: {{{load}}}\n- load: {{{load}, by: trino}}\n\
         - cleanup: {{tables: tpcds, scale: 0.01}}\n- cleanup: {{tables: tpcds, scale: 0.01, by: trino}}"
    );
    let done = run(&cluster.document("sales", &stages));
    assert_eq!(made(&done, 0).len(), 24);
    assert_eq!(rows(&done, 0), rows(&done, 1));
    assert!(
        made(&done, 1).iter().all(|table| table.expected_rows == Some(table.rows)),
        "as it says it wrote"
    );
    for (one, other) in tables(&done, 2).queries.iter().zip(&tables(&done, 3).queries) {
        assert_eq!((&one.query, one.rows, one.fault), (&other.query, other.rows, None));
        assert!(one.rows > 1, "{one:?}");
    }
}

/// The answers on file are DuckDB's.
fn answers_the_queries_of_tpcds_that_read_most_as_datafusion_does(cluster: &Cluster) {
    let queries = tempfile::tempdir().unwrap();
    tidemark_lab::queries::write(queries.path(), &mut |_| {}).unwrap();
    let load =
        format!("tables: tpcds, scale: 0.01, query_files: {}, queries: io-56", queries.path().display());
    let stages = format!("- prepare: {{tables: tpcds, scale: 0.01}}\n- load: {{{load}}}");
    let trino = cluster.document("both", &stages);
    let stages = format!("- load: {{{load}}}\n- cleanup: {{tables: tpcds, scale: 0.01}}");
    let datafusion = format!(
        "name: t\ntarget: {{kind: datafusion, storage: {}, bucket: {}, prefix: both}}\nstages:\n{stages}\n",
        cluster.storage, cluster.bucket
    );
    for (text, stage, engine) in [(trino, 1, "Trino "), (datafusion, 0, "DataFusion ")] {
        let done = run(&text);
        let used = tables(&done, stage);
        let other: Vec<_> =
            used.queries.iter().filter(|one| one.answer != Answer::Known).map(|one| &one.query).collect();
        assert!(
            used.engine.starts_with(engine) && used.queries.len() > 56 && other.is_empty(),
            "{other:?}: {:?}",
            examples(&done)
        );
    }
}

fn fails_by_the_query_and_the_stream_goes_on(cluster: &Cluster) {
    let large =
        "select count(*) from lineitem a, lineitem b, nation where a.l_comment < concat(b.l_comment, n_name)";
    let stages = format!(
        "- prepare: {{tables: tpch, scale: 0.002}}\n- load:\n    tables: tpch\n    scale: 0.002\n    allowed_failures: 100%\n    timeout: 3s\n    sql:\n\
         \x20   - {{name: typo, sql: 'select nonsense from nation'}}\n\
         \x20   - {{name: elsewhere, sql: 'select * from nowhere.a.b'}}\n\
         \x20   - {{name: zero, sql: 'select 1 / 0'}}\n\
         \x20   - {{name: drop, sql: 'drop table nation'}}\n\
         \x20   - {{name: late, sql: '{large}'}}\n\
         \x20   - {{name: two, sql: 'select count(*) from nation; select count(*) from region;'}}\n"
    );
    let done = run(&cluster.document("failing", &stages));
    let operations = &done.stages[1].works[0].operations;
    for (place, fault) in
        [(0, Fault::Sql), (1, Fault::Sql), (2, Fault::Sql), (3, Fault::Sql), (4, Fault::Timeout)]
    {
        let operation = &operations[place];
        assert_eq!(operation.tally.faults.of(fault), 1, "{}: {:?}", operation.label, examples(&done));
    }
    assert_eq!((operations[5].tally.ok, tables(&done, 1).queries[5].rows), (1, 2), "{:?}", examples(&done));
    // What took too long does not go on in the cluster.
    let left = format!(
        "select query_id from system.runtime.queries where query = ''{large}'' and state not in (''FINISHED'', ''FAILED'')"
    );
    let stages = format!(
        "- load: {{tables: tpch, scale: 0.002, sql: [{{name: left, sql: '{left}'}}]}}\n- cleanup: {{tables: tpch, scale: 0.002}}"
    );
    let after = run(&cluster.document("failing", &stages));
    assert_eq!(tables(&after, 0).queries[0].rows, 0);
}

fn reads_no_table_that_lies_elsewhere(cluster: &Cluster) {
    run(&cluster.document("here", "- prepare: {tables: tpch, scale: 0.001}"));
    run(&cluster.document("there", "- prepare: {tables: tpch, scale: 0.001}"));
    let load = "- load: {tables: tpch, scale: 0.001, queries: q6}";
    run(&cluster.document("there", load));
    let refused = refusal(&cluster.document("here", load), &options(1));
    assert!(refused.contains("/there/tpch-0.001/") && refused.contains("prepare"), "{refused}");
    let catalog = cluster.document("here", load).replace("kind: trino,", "kind: trino, catalog: nowhere,");
    let refused = refusal(&catalog, &options(1));
    assert!(refused.contains("has no catalog `nowhere`") && refused.contains("hive"), "{refused}");
    for prefix in ["here", "there"] {
        run(&cluster.document(prefix, "- cleanup: {tables: tpch, scale: 0.001}"));
    }
}
