//! The report of an Evaluation as a ConfigMap, which goes with it.

use crate::resource::{GROUP, Metadata};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write as _;

/// The most that a ConfigMap holds, bytes, less what its keys take (`k8s.io/api/core/v1`: MaxSecretSize, which is 1 MiB).
const MOST: usize = (1 << 20) - 1024;

/// The name of the ConfigMap of an Evaluation.
pub(crate) fn name(evaluation: &str) -> String {
    format!("{evaluation}-report")
}

/// The ConfigMap: the report as text, and the page packed with gzip. What does not fit is left out, the page first; `None`: neither
/// fits.
pub(crate) fn config_map(owner: &Metadata, html: &str, markdown: &str) -> Option<Value> {
    let page = packed(html.as_bytes());
    let left = MOST.checked_sub(markdown.len())?;
    let mut map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name(&owner.name),
            "labels": {"app.kubernetes.io/managed-by": "tidemark", "app.kubernetes.io/component": "report"},
            "ownerReferences": [{"apiVersion": GROUP, "kind": "Evaluation", "name": owner.name, "uid": owner.uid}],
        },
        "data": {"report.md": markdown},
    });
    if page.len() <= left {
        map["binaryData"] = json!({"report.html.gz": BASE64_STANDARD.encode(page)});
    }
    Some(map)
}

/// Whether a ConfigMap that is there belongs to this Evaluation, and not to somebody else who likes its name.
pub(crate) fn is_of(map: &Value, owner: &Metadata) -> bool {
    let owners = map["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| owners.iter().any(|one| one["uid"] == owner.uid.as_str()))
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Memory takes everything.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn owner() -> Metadata {
        Metadata { name: "a".into(), uid: "7".into(), ..Metadata::default() }
    }

    #[test]
    fn the_page_comes_back_and_belongs_to_its_evaluation() {
        let map = config_map(&owner(), "<html>", "# report").unwrap();
        let page = BASE64_STANDARD.decode(map["binaryData"]["report.html.gz"].as_str().unwrap()).unwrap();
        let mut html = String::new();
        flate2::read::GzDecoder::new(&*page).read_to_string(&mut html).unwrap();
        assert_eq!((&*html, map["data"]["report.md"].as_str()), ("<html>", Some("# report")));
        assert!(is_of(&map, &owner()));
        assert!(!is_of(&map, &Metadata { uid: "8".into(), ..owner() }) && !is_of(&json!({}), &owner()));
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        // What cannot be packed: each byte differs from those before in a way that no packer knows.
        let mut state = 1_u64;
        let noise: String = (0..3 << 20)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b' ' + (state >> 58) as u8)
            })
            .collect();
        let map = config_map(&owner(), &noise, "# report").unwrap();
        assert!(map["binaryData"].is_null());
        assert_eq!(map["data"]["report.md"], "# report");
        assert!(config_map(&owner(), "", &noise).is_none());
    }
}
