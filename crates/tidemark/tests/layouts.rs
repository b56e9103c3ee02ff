//! The built binary on a layout of the lab: an evaluation whose limit is known, for it was set.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

mod common;

use common::Place;
use serde_json::Value;

#[test]
#[ignore = "needs the Ceph packages, fio and root; `make test` runs it"]
fn the_throttled_disk_is_named_as_the_limit() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let place = Place::new();
    let text = "name: limit\narms: [{name: slow, lab: baseline}]\nloads:\n  - name: writes\n    target: {kind: rbd, conf: \"${TIDEMARK_LAB_CEPH_CONF}\", count: 1, size: 64MiB}\n    \
                stages:\n      - prepare: {}\n      - load: {pattern: randwrite, block_size: 4KiB, depth: 16, warm_up: 1s, for: 8s}\n      - cleanup: {}\n";
    let file = place.write("limit.yaml", text);
    let labs = place.path("labs");
    let output = place.tidemark(&["run", file.to_str().unwrap(), "--labs", labs.to_str().unwrap(), "--json"]);
    if output.code == 3 && output.stderr.contains("the layout baseline cannot be made") {
        return tidemark_testing::skip(output.stderr);
    }
    let last = output.stdout.lines().last().unwrap_or_else(|| panic!("no output: {}", output.stderr));
    let event: Value = serde_json::from_str(last).unwrap();
    let assessment = &event["evaluation"]["assessment"];
    let cell = &assessment["cells"][0];
    assert!(cell["total"].as_u64().unwrap() > 50 && cell["failed"] == 0, "{cell}");
    let limits: Vec<&Value> =
        assessment["bottlenecks"].as_array().unwrap().iter().map(|one| &one["finding"]).collect();
    let first = limits.first().unwrap_or_else(|| panic!("no limit was found: {assessment}"));
    assert_eq!(first["rule"], "limit-disk", "{limits:?}");
    let facts = &first["facts"][0];
    assert_eq!(
        (facts["metered"].as_str(), facts["disks"][0]["limit"].as_f64()),
        (Some("writes"), Some(150.0))
    );
    let arm = &event["evaluation"]["evaluation"]["arms"][0];
    assert!(arm["settings"].to_string().contains("emulates a slow SSD"), "{arm}");
    assert!(!labs.join("limit/slow").exists(), "the lab is taken down with all that it wrote");
}
