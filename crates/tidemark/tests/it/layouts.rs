//! The built binary on a layout of the lab: an evaluation whose limit is known, for it was set.

use crate::common::Place;
use serde_json::Value;

/// Runs the evaluation; `None`: the lab cannot be made here.
fn event(place: &Place) -> Option<Value> {
    let text = "name: limit\narms: [{name: slow, lab: baseline}]\nloads:\n  - name: writes\n    target: {kind: rbd, conf: \"${TIDEMARK_LAB_CEPH_CONF}\", count: 1, size: 64MiB}\n    \
                stages:\n      - prepare: {}\n      - load: {pattern: randwrite, block_size: 4KiB, depth: 16, warm_up: 1s, for: 8s}\n      - cleanup: {}\n";
    let file = place.write("limit.yaml", text);
    let labs = place.path("labs");
    let output = place.tidemark(&[
        "run",
        file.to_str().unwrap(),
        "--labs",
        labs.to_str().unwrap(),
        "--json",
        "--again",
    ]);
    if output.code == 3 && output.stderr.contains("the layout baseline cannot be made") {
        tidemark_testing::skip(output.stderr);
        return None;
    }
    assert!(!labs.join("limit/slow").exists(), "the lab is taken down with all that it wrote");
    let last = output.stdout.lines().last().unwrap_or_else(|| panic!("no output: {}", output.stderr));
    Some(serde_json::from_str(last).unwrap())
}

/// Whether the processors were busy with the work of others, which hides every other limit.
fn is_busy_with_others(assessment: &Value) -> bool {
    assessment["not_limits"].as_array().unwrap().iter().any(|one| {
        let finding = &one["finding"];
        finding["rule"] == "busy-processor" && finding["facts"][0]["standing"]["others"].is_object()
    })
}

#[test]
#[ignore = "needs the Ceph packages, fio and root; `make test` runs it"]
fn the_throttled_disk_is_named_as_the_limit() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let place = Place::new();
    for _ in 0..3 {
        let Some(event) = event(&place) else { return };
        let assessment = &event["evaluation"]["assessment"];
        let cell = &assessment["cells"][0];
        assert!(cell["total"].as_u64().unwrap() > 50 && cell["failed"] == 0, "{cell}");
        let arm = &event["evaluation"]["evaluation"]["arms"][0];
        assert!(arm["settings"].to_string().contains("emulates a slow SSD"), "{arm}");
        let limits: Vec<&Value> =
            assessment["bottlenecks"].as_array().unwrap().iter().map(|one| &one["finding"]).collect();
        let Some(first) = limits.first() else {
            assert!(is_busy_with_others(assessment), "no limit was found: {assessment}");
            continue;
        };
        assert_eq!(first["rule"], "limit-disk", "{limits:?}");
        let facts = &first["facts"][0];
        assert_eq!(
            (facts["metered"].as_str(), facts["disks"][0]["limit"].as_f64()),
            (Some("writes"), Some(150.0))
        );
        return;
    }
    eprintln!("the machine was busy with other work all the time: no limit was named, and no wrong one");
}
