//! The manifests of layouts are what Rook's own definitions allow, field by field; and they say what the layout says.

use super::{crds, example, layout, layouts};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tidemark_kubernetes::{Manifest, yaml};

/// Makes every field that a schema does not name an error, except where it says that there may be others.
fn refuse_unknown(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_open = fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
            if fields.contains_key("properties") && !is_open {
                fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            fields.values_mut().for_each(refuse_unknown);
        }
        Value::Array(items) => items.iter_mut().for_each(refuse_unknown),
        _ => {}
    }
}

/// The definition of a kind of resources.
struct Definition {
    schema: Value,
    validator: Validator,
}

impl Definition {
    fn new(mut schema: Value) -> Self {
        // Every resource has these, whether its definition names them or not.
        for name in ["apiVersion", "kind", "metadata"] {
            schema["properties"].as_object_mut().unwrap().entry(name).or_insert(json!({}));
        }
        refuse_unknown(&mut schema);
        let validator = jsonschema::validator_for(&schema).unwrap();
        Self { schema, validator }
    }

    /// Whether it names all fields of the mapping at a place of a document.
    fn is_closed(&self, place: &str) -> bool {
        let mut schema = &self.schema;
        for part in place.split('/').skip(1) {
            schema =
                if part.parse::<usize>().is_ok() { &schema["items"] } else { &schema["properties"][part] };
        }
        schema["additionalProperties"] == json!(false)
    }
}

/// The definitions by interface and kind.
fn by_kind() -> BTreeMap<(String, String), Definition> {
    let mut all = BTreeMap::new();
    for definition in crds() {
        let (group, kind) =
            (definition["spec"]["group"].as_str().unwrap(), &definition["spec"]["names"]["kind"]);
        for version in definition["spec"]["versions"].as_array().unwrap() {
            let name = format!("{group}/{}", version["name"].as_str().unwrap());
            let schema = version["schema"]["openAPIV3Schema"].clone();
            all.insert((name, kind.as_str().unwrap().to_owned()), Definition::new(schema));
        }
    }
    all
}

fn document(manifest: &Manifest) -> Value {
    serde_json::to_value(manifest).unwrap()
}

/// The definition of a manifest's kind; Kubernetes' own kinds have none.
fn definition_of<'a>(
    manifest: &Manifest,
    definitions: &'a BTreeMap<(String, String), Definition>,
) -> Option<&'a Definition> {
    let found = definitions.get(&(manifest.api_version.to_owned(), manifest.kind.to_owned()));
    let is_own = matches!(manifest.kind, "StorageClass" | "PersistentVolume");
    assert_eq!(found.is_none(), is_own, "{} has no definition", manifest.kind);
    found
}

#[test]
fn every_manifest_is_what_its_definition_allows() {
    let definitions = by_kind();
    let mut kinds = BTreeSet::new();
    for (name, manifests) in layouts() {
        for manifest in &manifests {
            let document = document(manifest);
            kinds.insert(manifest.kind);
            if let Some(Definition { validator, .. }) = definition_of(manifest, &definitions) {
                let errors: Vec<_> =
                    validator.iter_errors(&document).map(|error| error.to_string()).collect();
                assert_eq!(errors, [""; 0], "{name}: {document:#}");
            }
        }
    }
    let expected = [
        "CephBlockPool",
        "CephCluster",
        "CephFilesystem",
        "CephObjectStore",
        "ObjectBucketClaim",
        "PersistentVolume",
        "StorageClass",
        "VolumeSnapshotClass",
    ];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
}

/// Adds a field to every mapping of a document in turn, and gives the documents with the place of each.
fn with_a_field_more(document: &Value) -> Vec<(String, Value)> {
    let mut places = vec![String::new()];
    let mut all = Vec::new();
    while let Some(place) = places.pop() {
        let here = document.pointer(&place).unwrap();
        match here {
            Value::Object(fields) => {
                let mut more = document.clone();
                more.pointer_mut(&place).unwrap()["unknown"] = json!("x");
                all.push((place.clone(), more));
                places.extend(fields.keys().map(|key| format!("{place}/{}", key.replace('/', "~1"))));
            }
            Value::Array(items) => places.extend((0..items.len()).map(|number| format!("{place}/{number}"))),
            _ => {}
        }
    }
    all
}

#[test]
fn an_unknown_field_is_an_error_wherever_it_stands() {
    let definitions = by_kind();
    let mut refused = 0;
    for (name, manifests) in layouts() {
        for manifest in &manifests {
            let Some(definition) = definition_of(manifest, &definitions) else { continue };
            for (place, more) in with_a_field_more(&document(manifest)) {
                if !definition.is_closed(&place) {
                    continue;
                }
                assert!(
                    !definition.validator.is_valid(&more),
                    "{name}: {} {} {place}",
                    manifest.kind,
                    manifest.name()
                );
                refused += 1;
            }
        }
    }
    assert!(refused > 300, "{refused}");
}

#[test]
fn what_is_written_says_the_same_to_any_reader() {
    for (name, manifests) in layouts() {
        let text = yaml(&manifests).unwrap();
        let read: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let meant: Vec<_> = manifests.iter().map(document).collect();
        assert_eq!(read, meant, "{name}:\n{text}");
    }
    // Kubernetes reads YAML 1.1, in which these would not be texts.
    let text = yaml(&layout(super::EVERYTHING).manifests()).unwrap();
    for quoted in ["imageFormat: \"2\"", "pg_num: \"64\"", "pg_autoscale_mode: \"off\"", "bulk: \"true\""] {
        let (key, value) = quoted.split_once(": ").unwrap();
        let other = format!("{key}: '{}'", value.trim_matches('"'));
        assert!(text.contains(quoted) || text.contains(&other), "{quoted}:\n{text}");
    }
}

#[test]
fn the_examples_are_rendered() {
    for name in ["baseline", "reference-1", "reference-2", "external"] {
        insta::assert_snapshot!(name, yaml(&layout(&example(name)).manifests()).unwrap());
    }
    insta::assert_snapshot!("everything", yaml(&layout(super::EVERYTHING).manifests()).unwrap());
}

/// The cluster of an example.
fn cluster(text: &str) -> Value {
    let manifests = layout(text).manifests();
    document(manifests.iter().find(|manifest| manifest.kind == "CephCluster").unwrap())["spec"].clone()
}

#[test]
fn layouts_differ_only_in_what_lies_where() {
    let of_osds = |spec: &Value, key: &str| {
        let sets = spec["storage"]["storageClassDeviceSets"].as_array().unwrap();
        assert_eq!(sets.len(), 3, "one on each node");
        sets.iter().map(|set| set[key].clone()).collect::<Vec<_>>()
    };
    let without_claims = |mut spec: Value| {
        for set in spec["storage"]["storageClassDeviceSets"].as_array_mut().unwrap() {
            set.as_object_mut().unwrap().remove("volumeClaimTemplates");
        }
        spec
    };
    let names = |spec: &Value| {
        let claims = of_osds(spec, "volumeClaimTemplates");
        assert!(claims.iter().all(|set| set == &claims[0]));
        let claims = claims[0].as_array().unwrap();
        claims
            .iter()
            .map(|claim| {
                let spec = &claim["spec"];
                assert_eq!(
                    (&spec["volumeMode"], &spec["accessModes"]),
                    (&json!("Block"), &json!(["ReadWriteOnce"]))
                );
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                [
                    &claim["metadata"]["name"],
                    &spec["storageClassName"],
                    &spec["resources"]["requests"]["storage"],
                ]
                .map(text)
                .join(" ")
            })
            .collect::<Vec<_>>()
    };
    let [baseline, first, second] =
        ["baseline", "reference-1", "reference-2"].map(|name| cluster(&example(name)));
    assert_eq!(names(&baseline), ["data local-ssd 64Gi"]);
    assert_eq!(names(&first), ["data local-ssd 64Gi", "metadata fast 5Gi", "wal fast 5Gi"]);
    assert_eq!(names(&second), ["data local-cached 64Gi", "metadata fast 5Gi", "wal fast 5Gi"]);
    assert_eq!(of_osds(&baseline, "count"), [6, 6, 6]);
    assert_eq!(without_claims(baseline.clone()), without_claims(first));
    assert_eq!(without_claims(baseline), without_claims(second));
}

#[test]
fn osds_have_the_resources_asked_for_and_no_more() {
    let amounts = |resources: &str| {
        let text = example("baseline").replace("resources: default", resources);
        let sets = cluster(&text)["storage"]["storageClassDeviceSets"].clone();
        let resources = &sets[0]["resources"];
        assert_eq!(resources["requests"], resources["limits"], "neither more nor less");
        (resources["limits"]["cpu"].clone(), resources["limits"]["memory"].clone())
    };
    assert_eq!(amounts("resources: default"), (json!("2"), json!("6Gi")));
    assert_eq!(amounts("resources: tuned"), (json!("6"), json!("16Gi")));
    assert_eq!(amounts("resources: external"), (json!("8"), json!("18Gi")));
    assert_eq!(amounts("memory: 16Gi"), (json!("2"), json!("16Gi")), "one of the two alone");
    assert_eq!(amounts("resources: tuned\n  cpu: 2"), (json!("2"), json!("16Gi")));
}

#[test]
fn an_imported_cluster_says_nothing_of_what_it_is_made_of() {
    assert_eq!(
        cluster(&example("external")),
        json!({"external": {"enable": true}, "crashCollector": {"disable": true}})
    );
    let manifests = layout(&example("external")).manifests();
    assert!(manifests.iter().all(|manifest| !matches!(manifest.kind, "CephBlockPool" | "CephFilesystem")));
    assert_eq!(layout(&example("external")).needs(), None);
}

#[test]
fn every_name_is_unique_and_everything_can_be_found_by_its_label() {
    for (name, manifests) in layouts() {
        let mut seen = BTreeSet::new();
        for manifest in &manifests {
            assert!(seen.insert((manifest.kind, manifest.name().to_owned())), "{name}: {}", manifest.name());
            let labels = &document(manifest)["metadata"]["labels"];
            assert_eq!(labels["app.kubernetes.io/managed-by"], "tidemark");
            assert_eq!(
                name.split(',').next().unwrap() == "external",
                labels["app.kubernetes.io/instance"] == "ceph-external"
            );
            let is_of_all =
                matches!(manifest.kind, "StorageClass" | "VolumeSnapshotClass" | "PersistentVolume");
            assert_eq!(manifest.namespace().is_none(), is_of_all, "{}", manifest.kind);
        }
    }
}

#[test]
fn a_layout_says_what_must_be_there() {
    let needs = layout(&example("reference-1")).needs().unwrap();
    assert_eq!((needs.nodes, needs.osds_per_node, needs.osds()), (3, 6, 18));
    assert_eq!(needs.classes, ["fast", "local-ssd"]);
    let needs = layout(&example("reference-2")).needs().unwrap();
    assert_eq!(needs.classes, ["fast"], "the other is made of devices");
    let needs = layout(super::EVERYTHING).needs().unwrap();
    assert_eq!(needs.classes, ["standard"], "of the monitors");
}
