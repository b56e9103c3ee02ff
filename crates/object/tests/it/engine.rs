//! The engine as Tidemark asks it: where works run, how their jobs travel, and how a run is prepared.

use crate::support::swift::Server;
use std::sync::Arc;
use tidemark_object::Objects;
use tidemark_object::job::{Job, Target};
use tidemark_plan::engine::{Carrier, Engine as _, Placement, Setup, StageWorks};
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::policy::Policy;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::{self, Environment};

fn registry() -> Registry {
    Registry::new(vec![Arc::new(Objects)], vec![])
}

fn plan(target: &str, stages: &str) -> Plan {
    let registry = registry();
    let text = format!("name: t\ntarget: {target}\nstages:\n{stages}");
    let read = yaml::read(&text, &Environment::process(&registry));
    read.unwrap_or_else(|errors| panic!("{errors:#?}")).0
}

fn works(plan: &Plan) -> Vec<&Work> {
    plan.stages.iter().flat_map(|stage| &stage.works).collect()
}

/// Prepares a plan; gives the lines about targets that are ready, and what carries the works out or what is wrong.
fn prepare(plan: &Plan, skip_preflight: bool) -> (Vec<String>, Result<Vec<Carrier>, String>) {
    let mut lines = Vec::new();
    let mut ready = |line| lines.push(line);
    let setup = &mut Setup {
        skip_preflight,
        allow_destroy: &[],
        scratch: None,
        writer: 1,
        access: Default::default(),
        threads: None,
        ready: &mut ready,
    };
    let works = works(plan);
    let stage = StageWorks { index: 0, works: &works, shares: &[] };
    let carriers =
        Objects.prepare(plan, setup).and_then(|mut prepared| prepared.open(stage, &mut Vec::new()));
    (lines, carriers)
}

const STAGES: &str = "- init: {containers: 1-2}\n- prepare: {containers: 1-2, objects: 1-3, sizes: 1KB}\n";

#[test]
fn each_target_is_made_ready_once_and_every_work_has_its_sessions() {
    let two = format!("{STAGES}- dispose: {{containers: 1-2, target: none}}\n");
    let (lines, carriers) = prepare(&plan("embedded", &two), false);
    let carriers = carriers.unwrap();
    assert!(lines[0].starts_with("the S3 server inside Tidemark"), "{lines:?}");
    assert_eq!(lines[1..], ["no storage (`none`)"]);
    assert_eq!(carriers.iter().filter(|carrier| matches!(carrier, Carrier::Sessions(_))).count(), 3);
}

#[test]
fn a_target_that_does_not_answer_is_told_before_the_load_unless_nobody_asks() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("{{kind: s3, endpoint: 'http://{}'}}", listener.local_addr().unwrap());
    drop(listener);
    let plan = plan(&target, STAGES);
    let (lines, carriers) = prepare(&plan, false);
    let error = carriers.err().unwrap();
    assert!(lines.is_empty() && error.contains("connection refused"), "{lines:?} {error}");
    let (lines, carriers) = prepare(&plan, true);
    assert!(lines[0].starts_with("S3 at http://127.0.0.1:"), "{lines:?}");
    assert_eq!(carriers.unwrap().len(), 2);
}

#[test]
fn jobs_travel_with_their_plan() {
    let target = "{kind: s3, endpoint: 'http://h', access_key: a, secret_key: very-secret}";
    let plan = plan(target, STAGES);
    let mut arrived: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(Job::of(works(&arrived)[0]), None, "packed until an engine unpacks it");
    registry().unpack(&mut arrived).unwrap();
    assert_eq!(arrived, plan);
    let Target::S3(s3) = &Job::of(works(&arrived)[0]).unwrap().target else { panic!() };
    assert_eq!(s3.secret_key.reveal(), "very-secret");
}

#[test]
fn only_what_the_embedded_server_holds_stays_on_one_machine() {
    let placement = |target| Objects.placement(works(&plan(target, STAGES))[0]);
    assert_eq!(placement("embedded"), Placement::OneMachine("Embedded servers run"));
    assert_eq!(placement("none"), Placement::Divisible);
    assert_eq!(placement("{kind: s3, endpoint: 'http://h'}"), Placement::Divisible);
}

#[test]
fn a_plan_from_the_network_touches_only_what_is_allowed() {
    let policy = Policy { directories: vec!["/srv/bench".into()], ..Policy::default() };
    let check = |target: &str, stages: &str| policy.check(&plan(target, stages), &registry());
    assert_eq!(check("embedded", STAGES), Ok(()));
    assert_eq!(check("{kind: embedded, directory: /srv/bench/objects}", STAGES), Ok(()));
    for (target, stages, path) in [
        ("{kind: embedded, directory: /etc}", STAGES, "/etc"),
        ("{kind: s3, endpoint: 'http://h', ca_file: /etc/shadow}", STAGES, "/etc/shadow"),
        ("none", "- prepare: {containers: 1, objects: 1, directory: /etc}\n", "/etc"),
    ] {
        let error = check(target, stages).unwrap_err();
        assert!(error.contains(&format!("would use {path}, which this driver does not allow")), "{error}");
    }
}

#[test]
fn a_target_that_ignores_conditions_is_refused_by_name_before_or_when_a_work_relies_on_them() {
    let server = Server::start();
    let target = format!(
        "{{kind: swift, auth: {{kind: tempauth, url: '{}/auth/v1.0', user: 'test:tester', key: testing}}}}",
        server.url
    );
    let put = "- load: {total_operations: 5, containers: 1-1, objects: 1-5, sizes: 1KB, operations: [put: {if_absent: true}]}\n";
    let init = "- init: {containers: 1-1}\n";
    server.state.lock().unwrap().containers.insert("mycontainers1".into());
    let of = |stages: &str, skip| prepare(&plan(&target, stages), skip).1.map(|carriers| carriers.len());
    assert_eq!(of(put, false), Ok(1));
    server.state.lock().unwrap().unconditional = true;
    let early = of(put, false).unwrap_err();
    assert!(early.contains(&server.url) && early.contains("ignores `If-None-Match: *`"), "{early}");
    let late = of(&[init, put].concat(), false).unwrap_err();
    assert!(late.starts_with("work `") && late.contains("ignores `If-None-Match: *`"), "{late}");
    assert_eq!(of(put, true), Ok(1), "nobody asks");
    assert!(server.state.lock().unwrap().objects.is_empty(), "nothing is left behind");
}
