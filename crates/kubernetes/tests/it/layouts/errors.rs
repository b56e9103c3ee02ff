//! What is wrong with a document of a layout is said at its place, with what to do.

use super::{EVERYTHING, example};
use tidemark_keys::diagnostic::Severity;

/// The remarks on a text, each as `line: message; help`.
fn remarks(text: &str) -> Vec<String> {
    let all = match tidemark_kubernetes::read(text) {
        Ok((_, warnings)) => warnings,
        Err(remarks) => {
            assert!(remarks.iter().any(|remark| remark.severity == Severity::Error), "{remarks:?}");
            remarks
        }
    };
    all.iter()
        .map(|remark| format!("{}: {}; {}", remark.line_and_column(text).0, remark.message, remark.help))
        .collect()
}

/// A text with one change, and what is said of it.
fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    remarks(&text.replacen(from, to, 1)).join("\n")
}

#[test]
fn mistakes_are_explained_at_their_place() {
    let [baseline, first, second, external] =
        ["baseline", "reference-1", "reference-2", "external"].map(example);
    let cases: Vec<(&str, String)> = vec![
        ("a name", changed(&baseline, "name: baseline", "name: Base_Line")),
        ("no layout", changed(&baseline, "layout: baseline\n", "")),
        ("another layout", changed(&baseline, "layout: baseline", "layout: reference-3")),
        ("an image without a tag", changed(&baseline, ":v20.2.4", "")),
        ("a size", changed(&baseline, "64Gi", "64GiB")),
        ("a small size", changed(&baseline, "64Gi", "64m")),
        ("nodes", changed(&baseline, "[node-1, node-2, node-3]", "[node-1, node-1, node-3]")),
        ("nodes with alike names", changed(&baseline, "[node-1, node-2, node-3]", "[a.b-c, a-b.c, a.b.c]")),
        ("too many replicas", changed(&baseline, "replicas: 3", "replicas: 4")),
        (
            "too many for the OSDs",
            changed(EVERYTHING, "name: three, replicas: 3", "name: three, replicas: 7"),
        ),
        ("one replica", changed(&baseline, "replicas: 3", "replicas: 1")),
        ("loss without reason", changed(&baseline, "replicas: 3", "replicas: 3, allow_loss: true")),
        ("names that clash", changed(&baseline, "name: objects", "name: block")),
        ("a class that clashes", changed(&baseline, "name: block", "name: block, class: local-ssd")),
        (
            "pools that clash",
            changed(
                &baseline,
                "- {name: block, replicas: 3}",
                "- {name: a, replicas: 3}\n- {name: a, replicas: 3, class: b}",
            ),
        ),
        (
            "a pool that a file system has",
            changed(
                &baseline,
                "- {name: block, replicas: 3}",
                "- {name: fs-metadata, replicas: 3}\nfile_systems:\n- {name: fs, replicas: 3}",
            ),
        ),
        ("buckets that clash", changed(&baseline, "[cosbench]", "[cosbench, cosbench]")),
        (
            "a key of another layout",
            changed(&baseline, "pools:", "metadata: {class: fast, size: 5Gi}\npools:"),
        ),
        ("no fast class", changed(&first, "metadata: {class: fast, size: 5Gi}\n", "")),
        ("no class", changed(&first, "wal: {class: fast, size: 5Gi}", "wal: {size: 5Gi}")),
        (
            "a class that is not fast",
            changed(&first, "metadata: {class: fast", "metadata: {class: local-ssd"),
        ),
        ("no cache", changed(&second, "cache: open-cas\n", "")),
        ("a device without a cache", changed(&second, "/dev/cas1-2p1", "/dev/sdb1")),
        ("a device named twice", changed(&second, "/dev/cas1-2p1", "/dev/cas1-1p1")),
        ("more OSDs than devices", changed(&second, "per_node: 6", "per_node: 7")),
        ("devices missing", changed(&second, "devices:", "x-devices:")),
        ("a number of monitors", changed(&baseline, "osds:", "monitors: {count: 2}\nosds:")),
        ("too many monitors", changed(&baseline, "osds:", "monitors: {count: 5}\nosds:")),
        ("a size without volumes", changed(&baseline, "osds:", "monitors: {size: 10Gi}\nosds:")),
        ("monitors on devices", changed(EVERYTHING, "class: standard", "class: cached")),
        ("one class of two parts", changed(EVERYTHING, "class: fast-wal", "class: fast-db")),
        ("little memory", changed(&baseline, "resources: default", "memory: 1Gi")),
        ("processors", changed(&baseline, "resources: default", "cpu: 6Gi")),
        ("resources", changed(&baseline, "resources: default", "resources: fast")),
        ("replicas of others", changed(&external, "class: block", "class: block, replicas: 3")),
        ("a name of others", changed(&external, "name: replicapool", "name: 'µ pool'")),
        ("a bucket with a name of Rook's", changed(&external, "[cosbench]", "[rook-ceph-mon]")),
        ("no pool", changed(&external, "pool: cephfs_data, ", "")),
        ("no addresses", changed(&external, "addresses: 10.0.0.7, ", "")),
        (
            "a name that is no class",
            changed(&external, "{name: replicapool, class: block}", "name: replica_pool"),
        ),
        ("nodes of others", changed(&external, "pools:", "nodes: [a]\npools:")),
    ];
    let text: Vec<_> = cases.iter().map(|(case, said)| format!("{case}:\n{said}")).collect();
    cases.iter().for_each(|(case, said)| assert!(!said.is_empty(), "{case}"));
    insta::assert_snapshot!("mistakes", text.join("\n\n"));
}

#[test]
fn no_text_breaks_the_reader() {
    for text in
        ["", "a", "[]", "name: x", "layout: external", "layout: [a]", "pools: 3", "layout: baseline\nosds: 6"]
    {
        assert!(!remarks(text).is_empty(), "{text}");
    }
    // Every part of a right document left out, or made something else, in turn.
    for text in
        ["baseline", "reference-2", "external"].map(example).iter().map(String::as_str).chain([EVERYTHING])
    {
        let lines: Vec<_> = text.lines().collect();
        for left_out in 0..lines.len() {
            let others = lines.iter().enumerate().filter(|(number, _)| *number != left_out);
            remarks(&others.map(|(_, line)| format!("{line}\n")).collect::<String>());
            for other in ["[]", "{}", "~", "-1", "99999999999999999999", "'\u{7f}'"] {
                let line = lines[left_out].split_once(':').map_or("x: ", |(key, _)| key);
                let mut changed = lines.clone();
                let line = format!("{line}: {other}");
                changed[left_out] = &line;
                remarks(&changed.join("\n"));
            }
        }
    }
}
