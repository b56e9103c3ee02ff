//! The engine as everybody else sees it.

use super::*;
use crate::document::tests::{plan, registry};
use tidemark_keys::tree;

const LOAD: &str = "name: t\ntarget: {kind: file, path: /d/f, size: 1GiB}\nstages:\n- load: {pattern: read, \
                    block_size: 4KiB, for: 9s}\n";

#[test]
fn loads_with_a_pattern_and_preconditioning_are_meant_for_it() {
    let registry = registry();
    let claims = |keyword: &str, text: &str| {
        let node = tree::parse(text).unwrap();
        registry.engine(NAME).unwrap().claims(keyword, &node)
    };
    assert!(claims("load", "{pattern: read, for: 1s}") && claims("precondition", "{passes: 2}"));
    assert!(!claims("load", "{operations: [{get: {}}]}") && !claims("prepare", "{pattern: read}"));
}

#[test]
fn a_plan_that_has_travelled_is_the_same() {
    let registry = registry();
    let plan = plan(LOAD);
    let mut travelled: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
    assert!(travelled.stages[0].works[0].job.get::<Job>().is_none(), "still packed");
    registry.unpack(&mut travelled).unwrap();
    assert_eq!(travelled, plan);
    assert!(registry.engine(NAME).unwrap().unpack(&serde_json::json!({"volumes": 3})).is_err());
}

#[test]
fn volumes_must_be_where_a_plan_may_be() {
    let check = |target: &str, allowed: &[&str]| {
        let text = LOAD.replace("kind: file, path: /d/f", target);
        let policy = Policy { directories: allowed.iter().map(Into::into).collect(), ..Policy::default() };
        policy.check(&plan(&text), &registry())
    };
    assert_eq!(check("kind: file, path: /d/f", &["/d"]), Ok(()));
    assert!(check("kind: file, path: /e/f", &["/d"]).unwrap_err().contains("would use /e/f"));
    assert!(check("kind: device, path: /dev/sdz", &["/d"]).unwrap_err().contains("/dev/sdz"));
    assert!(check("kind: rbd", &["/d"]).unwrap_err().contains("/etc/ceph"));
    assert!(check("kind: rbd, conf: /d/ceph.conf", &["/d"]).unwrap_err().contains("below an --allow-path"));
}

#[test]
fn volumes_stay_on_their_machine() {
    let work = plan(LOAD).stages[0].works[0].clone();
    let placement = registry().engine(NAME).unwrap().placement(&work);
    assert_eq!(placement, Placement::OneMachine("Volumes are"));
}
