//! The prose of the command line, for review: help texts and error messages as snapshots. After an intended change, run the
//! test with `INSTA_UPDATE=always` and read the difference.

use crate::common::Place;

/// What a command prints, without what differs between machines.
fn printed(place: &Place, arguments: &[&str]) -> String {
    let mut command = place.command(arguments);
    for name in ["TIDEMARK_STORE", "TIDEMARK_CONTROLLER", "TIDEMARK_TOKEN", "TIDEMARK_TRUST", "TIDEMARK_NODE"]
    {
        command.env_remove(name);
    }
    let output = command.env("XDG_DATA_HOME", place.directory.path()).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    let text = text.replace(place.directory.path().to_str().unwrap(), "DIR");
    format!("$ tidemark {}\n{}exit code {}\n", arguments.join(" "), text, output.status.code().unwrap())
}

#[test]
fn help() {
    let place = Place::new();
    insta::assert_snapshot!("help", printed(&place, &["--help"]));
    for command in ["run", "compare", "serve", "driver", "status"] {
        insta::assert_snapshot!(format!("help_{command}"), printed(&place, &[command, "--help"]));
    }
    insta::assert_snapshot!("help_lab_up", printed(&place, &["lab", "up", "--help"]));
}

#[test]
fn forecasts() {
    let place = Place::new();
    let stages = "- init: {containers: 1-4}\n- prepare: {workers: 8, containers: 1-4, objects: 1-500, sizes: 64KiB}\n\
        - name: main\n  load: {workers: 16, warm_up: 2s, for: 20s, containers: 1-4, operations: [get: {objects: 1-500}, list: {}]}\n\
        - cleanup: {workers: 8, containers: 1-4, objects: 1-500}\n- dispose: {containers: 1-4}\n";
    place.write("workload.yaml", &format!("name: w\nseed: 1\ntarget: embedded\nstages:\n{stages}"));
    place.write(
        "volume.yaml",
        "name: v\nseed: 1\ntarget: {kind: file, path: /data/volume, size: 1GiB}\nstages:\n- prepare: {}\n\
         - load: {pattern: randrw, block_size: [4KiB, 64KiB], depth: 8, for: 10s, repeats: 2}\n- cleanup: {}\n",
    );
    let load = stages.replace("\n", "\n    ");
    place.write(
        "evaluation.yaml",
        &format!(
            "name: e\narms:\n- {{name: disk, target: {{kind: embedded, place: disk, directory: /data/store}}}}\n- {{name: memory, target: embedded}}\n\
             repeats: 3\nloads:\n- name: levels\n  levels: {{workers: [4, 8]}}\n  stages:\n    {load}\n- name: searched\n  \
             search: {{rate: 100/s-2000/s}}\n  service_level: p95 <= 20ms\n  stages:\n    {load}\n"
        ),
    );
    let files = ["workload.yaml", "volume.yaml", "evaluation.yaml"];
    let texts: Vec<String> = files.map(|file| printed(&place, &["check", file])).into();
    insta::assert_snapshot!("forecasts", texts.join("\n"));
}

#[test]
fn layouts() {
    let place = Place::new();
    place.write("reference-2.yaml", include_str!("../../../../examples/layouts/reference-2.yaml"));
    place.write("external.yaml", include_str!("../../../../examples/layouts/external.yaml"));
    let checked =
        ["reference-2.yaml", "external.yaml"].map(|file| printed(&place, &["layout", "check", file]));
    insta::assert_snapshot!("layouts", checked.join("\n"));
    let rendered = printed(&place, &["layout", "render", "external.yaml"]);
    let starts = "$ tidemark layout render external.yaml\napiVersion: ceph.rook.io/v1\nkind: CephCluster\n";
    assert!(rendered.starts_with(starts) && rendered.ends_with("exit code 0\n"), "{rendered}");
}

#[test]
fn errors() {
    let place = Place::new();
    place.write(
        "keys.yaml",
        "name: w\ntarget: {kind: s3, endpont: http://127.0.0.1:9}\nstages:\n- load: {workers: 4, for: 60, operations: [get: {}]}\n",
    );
    place.write(
        "placeholder.xml",
        "<workload name=\"w\"><storage type=\"s3\" config=\"accesskey=&lt;accesskey>;secretkey=b;endpoint=http://127.0.0.1:9\"/>\n\
         <workflow><workstage name=\"s\"><work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/></workstage></workflow></workload>\n",
    );
    place.write(
        "commands.yaml",
        "name: e\narms:\n- {name: a, target: embedded, set_up: 'true'}\n- {name: b, target: embedded}\nloads:\n- name: l\n  levels: {}\n  \
         stages: [load: {for: 1s, operations: [list: {containers: 1-2}]}]\n",
    );
    place.write("foreign", &"somebody's data\n".repeat(100_000));
    place.write("strange.json", "{}");
    place.write("layout.yaml", "name: l\nlayout: external\npools:\n- {name: rbd, replicas: 3}\n");
    let commands: [&[&str]; 14] = [
        &["check", "keys.yaml"],
        &["check", "placeholder.xml"],
        &["layout", "render", "layout.yaml"],
        &["run", "no-such-file.xml"],
        &["run", "commands.yaml"],
        &["report", "7"],
        &["compare", "e1", "some"],
        &["import", "strange.json"],
        &["object", "get", "--endpoint", "http://127.0.0.1:9", "--no-report"],
        &["block", "randwrite", "foreign", "--size", "1MiB", "--no-report"],
        &["status", "--controller", "http://127.0.0.1:9"],
        &["lab", "up", "trino", "--workers", "2"],
        &["lab", "up", "trino", "--layout", "baseline"],
        &["lab", "up", "trino", "--s3", "http://127.0.0.1:9"],
    ];
    let texts: Vec<String> = commands.iter().map(|arguments| printed(&place, arguments)).collect();
    insta::assert_snapshot!("errors", texts.join("\n"));
}
