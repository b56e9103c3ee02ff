//! What arms may ask of the lab, as documents say it.

use super::*;
use tidemark_plan::diagnostic::Diagnostic;
use tidemark_plan::registry::Registry;

/// What an arm asks for whose `lab` is this, and what is said about it.
fn read(lab: &str) -> (Option<Wanted>, Vec<Diagnostic>) {
    let registry = Registry::new(Vec::new(), Vec::new());
    let environment = Environment::process(&registry);
    let text = format!("lab: {lab}\n");
    let node = tidemark_keys::tree::parse(&text).unwrap();
    let document = tidemark_keys::Document::new(&text, environment.outside());
    let arm = Table::new("the arm", &node, &(0..text.len()), &document);
    let request = Labs.read(&arm, node.entry("lab").unwrap(), &environment);
    let wanted = request.map(|request| request.get::<Wanted>().cloned().unwrap());
    drop(arm);
    (wanted, document.log.close().0)
}

fn asked(lab: &str) -> Wanted {
    let (wanted, remarks) = read(lab);
    assert_eq!(remarks, [], "{lab}");
    wanted.unwrap()
}

/// All errors about it and what they say to do.
fn refusal(lab: &str) -> String {
    read(lab).1.iter().map(|error| format!("{}; {}\n", error.message, error.help)).collect()
}

#[test]
fn servers_are_read_with_their_settings() {
    let wanted = asked(
        "{postgres: {instances: 4, on: /srv, settings: {fsync: off, shared_buffers: 64MB}, power_cut: true, reset: aged}}",
    );
    assert_eq!(wanted.cluster, None);
    let settings = [("fsync", "off"), ("shared_buffers", "64MB")];
    let expected = Servers {
        database: Database::Postgres,
        instances: 4,
        on: Some("/srv".into()),
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        power_cut: true,
        reset: Reset::Aged,
    };
    assert_eq!(wanted.servers, Some(expected));
    assert_eq!(wanted.label(), "4 PostgreSQL");
}

#[test]
fn servers_lie_on_the_file_system_of_a_cluster() {
    let wanted = asked("{layout: baseline, filesystem: true, copies: 1, mariadb: {}}");
    let cluster = Cluster { layout: Layout::Baseline, gateways: 1, filesystem: true, copies: Some(1) };
    assert_eq!(wanted.cluster, Some(cluster));
    let servers = wanted.servers.as_ref().unwrap();
    assert_eq!((servers.database, servers.instances, servers.reset), (Database::Mariadb, 1, Reset::Restore));
    assert_eq!(wanted.label(), "baseline, file system, 1 copy, MariaDB");
    assert_eq!(asked("reference-1").label(), "reference-1");
}

#[test]
fn a_trino_is_read_and_lies_in_a_cluster() {
    let wanted = asked("{layout: baseline, trino: {workers: 2, heap: 1GiB}}");
    assert_eq!(wanted.trino, Some(Query { workers: 2, heap_bytes: 1 << 30 }));
    assert_eq!(wanted.label(), "baseline, Trino with 2 workers");
    let wanted = asked("{layout: baseline, trino: {}}");
    assert_eq!(wanted.trino, Some(Query { workers: 0, heap_bytes: 2 << 30 }));
    assert_eq!(wanted.label(), "baseline, Trino");
    let stand_in = |name: &str| Labs.stand_in(&Request::new(LAB.name, "lab", wanted.clone()), name);
    assert_eq!(stand_in("TIDEMARK_LAB_TRINO").as_deref(), Some("http://127.0.0.1:1"));
    assert_eq!(stand_in("TIDEMARK_LAB_CATALOG").as_deref(), Some("hive"));
    let mut names: Vec<_> = Labs.variables().iter().map(|(name, _)| name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "each variable once");
}

#[test]
fn a_cluster_has_as_many_gateways_as_asked_for() {
    let wanted = asked("{layout: plain, gateways: 3}");
    let cluster = Cluster { layout: Layout::Plain, gateways: 3, filesystem: false, copies: None };
    assert_eq!((wanted.cluster, wanted.label().as_str()), (Some(cluster), "plain, 3 gateways"));
    assert_eq!(asked("{layout: plain}").label(), "plain");
}

#[test]
fn slips_and_contradictions_are_named() {
    for (lab, expected) in [
        ("{postgres: {instance: 4}}", "did you mean `instances`?"),
        ("{postgres: {instances: 65}}", "from 1 to 64"),
        ("{postgres: {settings: [fsync]}}", "write it as `name: value`"),
        ("{postgres: {reset: restor}}", "did you mean restore?"),
        ("{postgres: {}, mariadb: {}}", "an arm has servers of one kind"),
        ("{postgres: {}, copies: 1}", "there is no cluster without a `layout`"),
        ("{layout: baseline, copies: 3}", "from 1 to 2"),
        ("{trino: {}}", "its tables lie in a cluster"),
        ("{postgres: {}, trino: {workers: 1}}", "its tables lie in a cluster"),
        ("{layout: baseline, trino: {worker: 1}}", "did you mean `workers`?"),
        ("{layout: baseline, trino: {workers: 33}}", "from 0 to 32"),
        ("{layout: baseline, trino: {heap: 1MiB}}", "is less than 536870912 B"),
        ("{layout: plain, gateways: 17}", "from 1 to 16"),
        ("{postgres: {}, gateways: 2}", "there is no cluster without a `layout`"),
        ("{}", "`postgres` or `mariadb`"),
    ] {
        let errors = refusal(lab);
        assert!(errors.contains(expected), "{lab}: {errors}");
    }
}

/// Says nothing and never stops.
struct Silent;

impl Progress for Silent {
    fn line(&mut self, _: &str) {}

    fn stop_request(&mut self) -> tidemark_load::stop::StopRequest {
        tidemark_load::stop::StopRequest::None
    }
}

#[test]
#[ignore = "needs PostgreSQL; run by make test"]
fn an_arm_has_servers_that_are_the_same_before_every_run() {
    use std::os::unix::fs::PermissionsExt as _;
    tidemark_testing::needs!(tidemark_testing::POSTGRES);
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let directory = place.path().join("arm");
    for (reset, rows) in [("restore", "1"), ("aged", "4")] {
        let wanted = asked(&format!(
            "{{postgres: {{instances: 2, settings: {{synchronous_commit: off}}, reset: {reset}}}}}"
        ));
        let request = Request::new(LAB.name, wanted.label(), wanted);
        let mut arm = Labs.provisioner(&request, &directory).unwrap();
        arm.up(&Variables::new(), &mut Silent).unwrap();
        let variables = arm.variables();
        assert_eq!(variables["TIDEMARK_LAB_PORTS"].split(',').count(), 2);
        let labels = arm.labels();
        assert!(labels.contains(&("synchronous_commit".into(), "off".into())), "{labels:?}");
        assert!(labels.contains(&("fsync".into(), "on".into())), "{labels:?}");
        let secret = &variables["TIDEMARK_LAB_PASSWORD"];
        assert!(secret.len() == 32 && !format!("{labels:?}").contains(secret.as_str()));
        let ask = |sql: &str| Databases::open(&directory.join("db")).unwrap().ask(1, sql).unwrap();
        // As its `set_up` would.
        ask("CREATE TABLE t AS SELECT 1 AS id");
        for _ in 0..3 {
            arm.reset(&Variables::new(), &mut Silent).unwrap();
            let before = ask("SELECT count(*) FROM t");
            assert!(reset == "aged" || before.trim() == "1", "{before}");
            ask("INSERT INTO t VALUES (2)");
        }
        arm.reset(&Variables::new(), &mut Silent).unwrap();
        assert_eq!(ask("SELECT count(*) FROM t").trim(), rows);
        arm.down(&Variables::new(), &mut Silent).unwrap();
        assert!(!directory.exists());
    }
}

#[test]
#[ignore = "needs Trino; run by make test-trino"]
fn trino_of_an_arm_keeps_its_tables_in_the_cluster_of_the_arm() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    tidemark_testing::needs!(tidemark_testing::TRINO);
    if let Err(error) = Trino::java(None) {
        return tidemark_testing::skip(error);
    }
    if !tidemark_testing::is_root() {
        return tidemark_testing::skip("slow devices require root");
    }
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("arm");
    let wanted = asked("{layout: baseline, trino: {workers: 1, heap: 1GiB}}");
    let request = Request::new(LAB.name, wanted.label(), wanted);
    let mut arm = Labs.provisioner(&request, &directory).unwrap();
    arm.up(&Variables::new(), &mut Silent).unwrap();
    let variables = arm.variables();
    let cluster = Lab::open(&directory.join("ceph")).unwrap();
    assert_eq!(variables["TIDEMARK_LAB_S3"], cluster.endpoint());
    let trino = Trino::open(&directory.join("trino")).unwrap();
    assert_eq!(variables["TIDEMARK_LAB_TRINO"], trino.endpoint());
    assert_eq!(arm.observe().processes.iter().filter(|name| name.starts_with("java @")).count(), 2);
    let labels = arm.labels();
    assert!(labels.iter().any(|(name, value)| name == "Trino" && value.contains("1 worker")), "{labels:?}");
    let secret = &variables["AWS_SECRET_ACCESS_KEY"];
    assert!(!secret.is_empty() && !format!("{labels:?}").contains(secret.as_str()));
    trino.ask("CREATE SCHEMA hive.arm").unwrap();
    trino.ask("CREATE TABLE hive.arm.nation AS SELECT * FROM tpch.tiny.nation").unwrap();
    let bucket = &variables["TIDEMARK_LAB_BUCKET"];
    let stats = cluster.radosgw_admin(&["bucket", "stats", "--bucket", bucket]).unwrap();
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert!(stats["usage"]["rgw.main"]["num_objects"].as_u64().is_some_and(|objects| objects > 0), "{stats}");
    arm.down(&Variables::new(), &mut Silent).unwrap();
    assert!(!directory.exists());
}

#[test]
fn stand_ins_have_as_many_servers_as_the_arm_asks_for() {
    let stand_in = |lab: &str, name: &str| {
        let request = Request::new(LAB.name, "lab", asked(lab));
        Labs.stand_in(&request, name)
    };
    let four = "{postgres: {instances: 4}}";
    let endpoints = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3,127.0.0.1:4";
    assert_eq!(stand_in(four, "TIDEMARK_LAB_ENDPOINTS").as_deref(), Some(endpoints));
    assert_eq!(stand_in(four, "TIDEMARK_LAB_PORTS").as_deref(), Some("1,2,3,4"));
    assert_eq!(stand_in("{postgres: {}}", "TIDEMARK_LAB_ENDPOINTS").as_deref(), Some("127.0.0.1:1"));
    assert_eq!(stand_in(four, "TIDEMARK_LAB_HOST").as_deref(), Some("127.0.0.1"));
    assert_eq!(stand_in("baseline", "TIDEMARK_LAB_ENDPOINTS").as_deref(), Some("127.0.0.1:1"));
    assert_eq!(stand_in(four, "HOME"), None);
    let gateways = stand_in("{layout: plain, gateways: 2}", "TIDEMARK_LAB_GATEWAYS");
    assert_eq!(gateways.as_deref(), Some("http://127.0.0.1:1,http://127.0.0.1:2"));
}

#[test]
fn settings_of_servers_take_effect_by_a_restart_and_all_else_is_built_anew() {
    let effect = |path: &[&str]| Labs.takes_effect(path);
    assert_eq!(effect(&["postgres", "settings", "shared_buffers"]), TakesEffect::Restart);
    assert_eq!(effect(&["mariadb", "settings", "innodb_buffer_pool_size"]), TakesEffect::Restart);
    for path in [&["postgres", "on"][..], &["postgres", "instances"], &["copies"], &[]] {
        assert_eq!(effect(path), TakesEffect::Rebuild, "{path:?}");
    }
}
