//! Plans that stay where they may be, and ways out that there are none of.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::{REGISTRY, read};
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::symlink;
use tidemark_plan::policy::Policy;

/// A place where plans may be, `in`, and one beside it, `out`, which holds a file.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        for directory in ["in", "in/below", "out"] {
            fs::create_dir(top.path().join(directory)).unwrap();
        }
        fs::write(top.path().join("out/key"), "secret").unwrap();
        symlink(top.path().join("out"), top.path().join("in/link")).unwrap();
        symlink(top.path().join("nowhere/yet"), top.path().join("in/dangling")).unwrap();
        symlink("below", top.path().join("in/within")).unwrap();
        Self(top)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn policy(&self) -> Policy {
        Policy { directories: vec![self.0.path().join("in")], ..Policy::default() }
    }

    /// The policy's result for a document, in which `IN` and `OUT` stand for the two places.
    fn says(&self, text: &str) -> Result<(), String> {
        let text = text.replace("IN", &self.path("in")).replace("OUT", &self.path("out"));
        let read = read(&text).unwrap_or_else(|found| panic!("{text}\n{found:#?}"));
        self.policy().check(&read.plan, &REGISTRY)
    }
}

fn volume(path: &str) -> String {
    format!(
        "name: t\ntarget: {{kind: file, path: {path}, size: 1GiB}}\nstages:\n- name: main\n  load: {{pattern: \
         randread, block_size: 4KiB, for: 60s}}\n"
    )
}

fn object(target: &str, verb: &str) -> String {
    format!(
        "name: t\ntarget: {target}\nstages:\n- name: main\n  load:\n    for: 60s\n    containers: 1\n    objects: 1\n    \
         sizes: 1KB\n    operations: [{verb}]\n"
    )
}

/// Makes a document that names a path.
type Case = Box<dyn Fn(&str) -> String>;

#[test]
fn whatever_names_a_path_must_stay_within() {
    let machine = Machine::new();
    let cases: Vec<Case> = vec![
        Box::new(volume),
        Box::new(|path| object(&format!("{{kind: embedded, place: disk, directory: {path}}}"), "get: {}")),
        Box::new(|path| object(&format!("{{kind: s3, endpoint: 'http://h', ca_file: {path}}}"), "get: {}")),
        Box::new(|path| object("none", &format!("put_file: {{directory: {path}}}"))),
        Box::new(|path| object("none", &format!("write_local: {{directory: {path}}}"))),
        Box::new(|path| format!("observe: {{ceph_sockets: [{path}]}}\n{}", object("none", "get: {}"))),
        Box::new(|path| format!("[j]\nrw=read\ntime_based\nruntime=30\ndirect=1\nfilename={path}\n")),
        Box::new(|path| format!("[j]\nrw=read\ntime_based\nruntime=30\ndirect=1\ndirectory={path}\n")),
    ];
    for case in cases {
        for good in ["IN/a", "IN/below/a/b/c", "IN/within/a", "IN"] {
            let text = case(good);
            // Without `operations` of objects of its own, a document may be refused for other reasons.
            assert_eq!(machine.says(&text), Ok(()), "{text}");
        }
        for bad in ["OUT/key", "IN/../out/key", "IN/link/key", "IN/dangling", "IN/dangling/a", "IN-side/a"] {
            let text = case(bad);
            let refused = machine.says(&text).expect_err(&text);
            assert!(!refused.contains("secret") && !refused.ends_with('.'), "{refused}");
        }
    }
}

#[test]
fn a_refusal_says_what_to_do() {
    let machine = Machine::new();
    let said = machine.says(&volume("OUT/key")).unwrap_err();
    let (key, out) = (machine.path("out/key"), machine.path("out"));
    assert_eq!(
        said,
        format!(
            "the work `load` of the stage `main` would use {key}, which this driver does not allow: use another \
             path, or start the driver with --allow-path {out}"
        )
    );
    let said = machine.says(&volume("IN/link/key")).unwrap_err();
    assert!(said.contains(&format!("{} (which is {key})", machine.path("in/link/key"))), "{said}");
    assert!(machine.says(&volume("IN/../in/a")).unwrap_err().contains("contains `..`"));
    let relative = read(&volume("a.bin")).unwrap().plan;
    let everything = Policy { directories: vec!["/".into()], ..Policy::default() };
    assert!(everything.check(&relative, &REGISTRY).unwrap_err().contains("the driver's working directory"));
    let whole = read(&volume("/dev/shm/a.bin")).unwrap().plan;
    assert_eq!(everything.check(&whole, &REGISTRY), Ok(()));
    assert!(
        Policy::default().check(&whole, &REGISTRY).is_err(),
        "nothing is allowed unless somebody says so"
    );
}

#[test]
fn a_single_file_may_be_allowed() {
    let machine = Machine::new();
    let key = machine.0.path().join("out/key");
    let policy = Policy { directories: vec!["/nonexistent/x".into(), key], ..Policy::default() };
    let plan = |name: &str| read(&volume(&machine.path(name))).unwrap().plan;
    assert_eq!(policy.check(&plan("out/key"), &REGISTRY), Ok(()));
    assert!(policy.check(&plan("out/key2"), &REGISTRY).is_err());
}

#[test]
fn no_triggers_and_no_keys_of_the_machine() {
    let machine = Machine::new();
    let stage = object("none", "get: {}").replace("  load:", "  trigger: x.sh(1)\n  load:");
    assert!(machine.says(&stage).unwrap_err().starts_with("the stage `main` has a trigger"));
    let mut plan = read(&object("none", "get: {}")).unwrap().plan;
    plan.trigger = Some("x.sh(1)".into());
    assert!(machine.policy().check(&plan, &REGISTRY).unwrap_err().starts_with("the plan has a trigger"));
    let image = "name: t\ntarget: {kind: rbd, pool: p, image: i, size: 1GiB}\nstages:\n- load: {pattern: randread, block_size: 4KiB, \
                 for: 60s}\n";
    assert!(machine.says(image).unwrap_err().contains("/etc/ceph"));
}

fn image(keys: &str) -> String {
    format!(
        "name: t\ntarget: {{kind: rbd, {keys}, size: 1GiB}}\nstages:\n- load: {{pattern: randread, block_size: 4KiB, for: 60s}}\n"
    )
}

#[test]
fn a_ceph_configuration_is_code_and_has_a_list_of_its_own() {
    let machine = Machine::new();
    for place in ["in/ceph.conf", "out/ceph.conf", "out/other.conf"] {
        fs::write(machine.0.path().join(place), "[global]\nlog file = /elsewhere\n").unwrap();
    }
    symlink(machine.0.path().join("out/ceph.conf"), machine.0.path().join("in/alias.conf")).unwrap();
    symlink(machine.0.path().join("in/ceph.conf"), machine.0.path().join("out/alias.conf")).unwrap();
    let policy = Policy {
        directories: vec![machine.0.path().join("in")],
        ceph_confs: ["in/ceph.conf", "out/ceph.conf", "out/alias.conf", "out/missing.conf"]
            .map(|place| machine.0.path().join(place))
            .to_vec(),
    };
    let says = |keys: &str| {
        let keys = keys.replace("IN", &machine.path("in")).replace("OUT", &machine.path("out"));
        policy.check(&read(&image(&keys)).unwrap().plan, &REGISTRY)
    };
    assert_eq!(says("pool: p, image: i, conf: OUT/ceph.conf"), Ok(()));
    for (keys, why) in [
        ("pool: p, image: i, conf: IN/ceph.conf", "below an --allow-path"),
        ("pool: p, image: i, conf: OUT/alias.conf", "below an --allow-path"),
        ("pool: p, image: i, conf: OUT/other.conf", "--allow-ceph-conf"),
        ("pool: p, image: i, conf: OUT/missing.conf", "if the file is there"),
        ("pool: p, image: i, conf: IN/../out/ceph.conf", "`..`"),
        ("pool: p, image: i", "--allow-ceph-conf /etc/ceph/ceph.conf"),
        ("pool: p, image: i, conf: OUT/ceph.conf, user: ../../x", "`../../x`"),
        ("pool: p, image: --conf=x, conf: OUT/ceph.conf", "`--conf=x-1`"),
        ("pool: p/q, image: i, conf: OUT/ceph.conf", "`p/q`"),
    ] {
        let said = says(keys).expect_err(keys);
        assert!(said.contains(why), "{keys}: {said}");
    }
    let contradiction = policy.contradiction().unwrap();
    assert!(
        contradiction.contains("in/ceph.conf") && contradiction.contains("--allow-path"),
        "{contradiction}"
    );
    let apart = Policy {
        directories: vec![machine.0.path().join("in")],
        ceph_confs: vec![machine.0.path().join("out/ceph.conf")],
    };
    assert_eq!(apart.contradiction(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever way a path takes, what is allowed is within once the links are followed.
    #[test]
    fn what_is_allowed_is_within(parts in proptest::collection::vec(
        prop_oneof![
            Just(".."), Just("."), Just("in"), Just("out"), Just("link"), Just("dangling"), Just("within"), Just("below"),
            Just("key"), Just("new"), Just(""), Just("nowhere"),
        ],
        0..7,
    )) {
        let machine = Machine::new();
        let path = machine.0.path().join("in").join(parts.join("/").trim_start_matches('/'));
        let allowed = machine.policy().allow("somebody", &path).is_ok();
        // What would be made there is looked for from outside: nothing appears beyond `in`.
        if allowed {
            if let Some(parent) = path.parent() {
                let _ = fs::create_dir_all(parent);
            }
            let _ = fs::write(&path, "x");
            let top: Vec<_> = fs::read_dir(machine.0.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            prop_assert_eq!(top.len(), 2, "{:?} made something beside: {:?}", path, top);
            prop_assert_eq!(fs::read_dir(machine.0.path().join("out")).unwrap().count(), 1);
            prop_assert_eq!(fs::read_to_string(machine.0.path().join("out/key")).unwrap(), "secret");
        }
        let is_plain = parts.iter().all(|part| ["below", "within", "new", ".", ""].contains(part));
        prop_assert!(allowed || !is_plain, "{:?} is within", path);
    }
}
