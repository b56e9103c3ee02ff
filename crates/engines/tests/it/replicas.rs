//! A PostgreSQL primary with a streaming standby, and a MariaDB with a replica, which each test starts for itself: who serves
//! reads, how far the replica is behind, and what is said where a role is wrong.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::{databases, last, options, refusal, run};
use tidemark_judge::judge;
use tidemark_measure::record::Run;
use tidemark_sql::databases::ReplicaLag;
use tidemark_testing::mariadb::Mariadb;
use tidemark_testing::postgres::Postgres;

const DATA: &str = "workload: sysbench/oltp_read_only, tables: 2, table_size: 1000";

/// A document on a primary and a replica, with these stages.
fn document(primary: &Postgres, replica: &Postgres, stages: &str) -> String {
    format!(
        "name: t\ntarget: {{kind: postgres, host: 127.0.0.1, port: {}, replicas: \"127.0.0.1:{}\"}}\nstages:\n{stages}\n",
        primary.port(),
        replica.port()
    )
}

/// The lag of the only replica in the last stage.
fn lag(run: &Run) -> ReplicaLag {
    let found = databases(run.stages.last().unwrap());
    let [lag] = &*found.servers[0].replicas else { panic!("{found:?}") };
    lag.clone()
}

fn rules(run: &Run) -> Vec<(&'static str, String)> {
    judge(run).findings.iter().map(|found| (found.rule(), found.title())).collect()
}

#[test]
fn reads_go_to_the_standby_and_its_lag_is_measured() {
    let Some(primary) = Postgres::start(&[]) else { return };
    primary.sql("CREATE EXTENSION pg_stat_statements");
    // The truth: nothing is replayed before it is two seconds old.
    let replica = primary.standby(&["recovery_min_apply_delay=2s"]);
    let reads = |server: &Postgres| {
        let sql =
            "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query LIKE 'SELECT c FROM sbtest%'";
        server.sql(sql).parse::<u64>().unwrap()
    };
    let stages = format!(
        "- prepare: {{{DATA}}}\n- load: {{{DATA}, clients: 4, rate: 100/s, for: 4s, reads_from: replicas}}"
    );
    let done = run(&document(&primary, &replica, &stages));
    let (tally, lag) = (&last(&done).tally, lag(&done));
    assert!(tally.ok > 0 && tally.failed() == 0, "{} {}", tally.ok, tally.failed());
    // Of the 14 reads of a transaction, 12 read `c`.
    assert!(
        reads(&replica) >= tally.ok * 12 && reads(&primary) == 0,
        "{} {}",
        reads(&replica),
        reads(&primary)
    );
    assert!(lag.markers >= 4 && lag.unseen == 0, "{lag:?}");
    // What delays it is the server, which counts from the commit on its own clock, so a hair earlier.
    let [p50, p99] = [lag.p50_ns, lag.p99_ns].map(|ns| ns as f64 / 2e9);
    assert!(p50 > 0.99 && p99 >= p50 && lag.max_ns >= lag.p99_ns, "{lag:?}");
    let databases = databases(done.stages.last().unwrap()).servers;
    let [on_primary, on_replica] = &*databases else { panic!("{databases:?}") };
    assert_eq!((on_primary.acknowledged, on_replica.acknowledged), (0, tally.ok));
    assert!(on_replica.commits >= Some(tally.ok), "{on_replica:?}");
    let found = rules(&done);
    assert!(found.iter().any(|(rule, _)| *rule == "replica-lag"), "{found:?}");
    assert!(found.iter().any(|(rule, _)| *rule == "commits-counted"), "{found:?}");
    assert_eq!(primary.sql("SELECT count(*) FROM tidemark_replica_lag"), "0", "its row is gone");
    run(&document(&primary, &replica, &format!("- cleanup: {{{DATA}}}")));
    assert_eq!(primary.sql("SELECT to_regclass('tidemark_replica_lag') IS NULL"), "t");
}

#[test]
fn a_standby_that_stands_still_is_found_and_one_that_follows_is_not() {
    let Some(primary) = Postgres::start(&[]) else { return };
    let replica = primary.standby(&[]);
    let load = "- load: {workload: pgbench/tpcb-like, scale: 1, clients: 2, rate: 50/s, for: 2s}";
    let prepare = "- prepare: {workload: pgbench/tpcb-like, scale: 1}";
    let done = run(&document(&primary, &replica, &format!("{prepare}\n{load}")));
    let follows = lag(&done);
    assert!(follows.markers > 0 && follows.unseen == 0 && follows.max_ns > 0, "{follows:?}");
    replica.sql("SELECT pg_wal_replay_pause()");
    let done = run(&document(&primary, &replica, load));
    let stands = lag(&done);
    assert!(stands.markers > 0 && stands.unseen == stands.markers && stands.waited_ns > 0, "{stands:?}");
    let found = rules(&done);
    assert!(found.iter().any(|(rule, _)| *rule == "replica-behind"), "{found:?}");
    // What is written by the load is counted for the primary, markers are not.
    let database = databases(done.stages.last().unwrap()).servers.swap_remove(0);
    assert_eq!(database.acknowledged, last(&done).tally.ok);
}

#[test]
fn a_wrong_role_is_named_before_the_load() {
    let Some(primary) = Postgres::start(&[]) else { return };
    let standby = primary.standby(&[]);
    let stages =
        format!("- prepare: {{{DATA}}}\n- load: {{{DATA}, total_operations: 1, reads_from: replicas}}");
    let said = refusal(&document(&standby, &primary, &stages), &options(2));
    assert!(
        said.contains("is a standby, which accepts no writes") && said.contains("it is no standby"),
        "{said}"
    );
    assert_eq!(primary.sql("SELECT to_regclass('sbtest1') IS NULL"), "t", "nothing was loaded");
}

#[test]
fn a_mariadb_that_follows_another_one_is_a_replica_whether_or_not_it_is_read_only() {
    let Some(primary) = Mariadb::start(&["log-bin=log", "server-id=1"]) else { return };
    let Some(replica) = Mariadb::start(&["server-id=2"]) else { return };
    let document = |stages: &str| {
        format!(
            "name: t\ntarget: {{kind: mariadb, host: 127.0.0.1, port: {}, replicas: \"127.0.0.1:{}\", user: bench, \
             password: bench, database: bench}}\nstages:\n{stages}\n",
            primary.port(),
            replica.port()
        )
    };
    let stages = format!(
        "- prepare: {{{DATA}}}\n- load: {{{DATA}, clients: 2, rate: 50/s, for: 3s, reads_from: replicas}}"
    );
    let said = refusal(&document(&stages), &options(2));
    assert!(said.contains("it follows no other server"), "{said}");
    let at = primary.sql("SHOW MASTER STATUS");
    let [file, position, ..] = &*at.split('|').collect::<Vec<_>>() else { panic!("{at}") };
    // The truth: what was done two seconds ago, in whole seconds.
    replica.sql(&format!(
        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'bench', MASTER_PASSWORD = 'bench', \
         MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {position}, MASTER_DELAY = 2; START SLAVE",
        primary.port()
    ));
    let selects = |server: &Mariadb| {
        let sql =
            "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Com_select'";
        server.sql(sql).parse::<u64>().unwrap()
    };
    let before = (selects(&primary), selects(&replica));
    let done = run(&document(&stages));
    let (tally, lag) = (&last(&done).tally, lag(&done));
    assert!(tally.ok > 0 && tally.failed() == 0, "{} {}", tally.ok, tally.failed());
    let on = (selects(&primary) - before.0, selects(&replica) - before.1);
    assert!(on.1 >= tally.ok * 14 && on.0 < tally.ok * 14, "{on:?}");
    assert!(lag.unseen == 0 && lag.p50_ns > 990_000_000, "{lag:?}");
    replica.sql("STOP SLAVE");
    let load = format!("- load: {{{DATA}, total_operations: 100}}");
    let done = run(&document(&load));
    assert_eq!(rules(&done).iter().filter(|(rule, _)| *rule == "replica-behind").count(), 1);
}
