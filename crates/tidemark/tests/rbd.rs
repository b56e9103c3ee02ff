//! The built binary on RBD volumes of a real Ceph cluster, through fio.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

mod common;

use common::{Place, Record};
use tidemark_lab::{self as lab, LabOptions};

#[test]
#[ignore = "needs the Ceph packages and fio; `make test` runs it"]
fn clients_on_volumes_of_their_own() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let place = Place::new();
    let directory = place.path("lab");
    let lab = lab::up(&LabOptions::new(&directory), &mut |text| eprintln!("{text}")).unwrap();
    let text = format!(
        "name: rbd\ntarget: {{kind: rbd, conf: \"{}\", count: 2, size: 64MiB}}\nstages:\n  - prepare: {{}}\n  \
         - load: {{pattern: [read, randwrite], block_size: 128KiB, clients: [1, 2], depth: 4, for: 2s}}\n  \
         - cleanup: {{}}\n",
        lab.ceph_conf().display()
    );
    let output = place.tidemark(&["run", place.write("rbd.yaml", &text).to_str().unwrap(), "--json"]);
    let record = Record::from(&output);
    let left = std::process::Command::new("rbd").arg("-c").arg(lab.ceph_conf()).args(["ls", "rbd"]).output();
    lab::down(&directory, true, &mut |_| {}).unwrap();
    assert_eq!(record.state(), "completed", "{}", output.stderr);
    assert_eq!(record.sum("write", "failed") + record.sum("read", "failed"), 0);
    let stages = record.value["stages"].as_array().unwrap();
    let totals: Vec<u64> = stages
        .iter()
        .filter(|stage| !stage["cell"].is_null())
        .map(|stage| stage["works"][0]["operations"][0]["ok"].as_u64().unwrap())
        .collect();
    assert_eq!(totals.len(), 4);
    assert!(totals.iter().all(|total| *total > 10), "{totals:?}");
    assert_eq!(String::from_utf8(left.unwrap().stdout).unwrap().trim(), "", "the cleanup removes the images");
}
