//! What is installed in a cluster: the resource, the rights, the operator, its volume. It is one text, which users read as well.

/// How it is installed.
#[derive(Clone, Copy, Debug)]
pub struct Install<'a> {
    /// The namespace, which must exist.
    pub namespace: &'a str,
    /// The image of the operator and of its drivers.
    pub image: &'a str,
    /// The storage class of its volume; `None`: the cluster's usual one.
    pub class: Option<&'a str>,
}

/// The manifests, for `kubectl apply`.
pub fn manifests(install: Install<'_>) -> String {
    let class = install
        .class
        .map(|class| format!("  storageClassName: {}\n", serde_json::Value::from(class)))
        .unwrap_or_default();
    include_str!("manifests.yaml")
        .replace("{namespace}", install.namespace)
        .replace("\"{image}\"", &serde_json::Value::from(install.image).to_string())
        .replace("{class}\n", &class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const INSTALL: Install<'_> =
        Install { namespace: "bench", image: "registry:5000/tidemark:1", class: None };

    fn read(install: Install<'_>) -> Vec<Value> {
        let text = manifests(install);
        assert!(!text.contains("{namespace}") && !text.contains("{image}") && !text.contains("{class}"));
        text.split("\n---\n").map(|one| serde_saphyr::from_str(one).unwrap()).collect()
    }

    #[test]
    fn all_of_it_is_in_the_namespace_and_of_the_image() {
        let all = read(INSTALL);
        let kinds: Vec<_> = all.iter().map(|one| one["kind"].as_str().unwrap()).collect();
        assert_eq!(
            kinds,
            [
                "CustomResourceDefinition",
                "ServiceAccount",
                "Role",
                "RoleBinding",
                "PersistentVolumeClaim",
                "Deployment"
            ]
        );
        assert!(all[1..].iter().all(|one| one["metadata"]["namespace"] == "bench"));
        let container = &all[5]["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], INSTALL.image);
        assert!(container["args"].as_array().unwrap().contains(&INSTALL.image.into()));
        assert!(all[4]["spec"]["storageClassName"].is_null());
        let other = read(Install { class: Some("fast"), ..INSTALL });
        assert_eq!(other[4]["spec"]["storageClassName"], "fast");
        let other = read(Install { class: Some("null"), ..INSTALL });
        assert_eq!(other[4]["spec"]["storageClassName"], "null", "a name, not nothing");
    }

    #[test]
    fn every_phase_of_a_status_is_in_the_schema() {
        use crate::resource::Phase::{Completed, Failed, Queued, Running, Suspended, Waiting};
        let schema = &read(INSTALL)[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let known = schema["properties"]["status"]["properties"]["phase"]["enum"].clone();
        let phases = [Queued, Waiting, Running, Suspended, Completed, Failed];
        assert_eq!(known, serde_json::to_value(phases).unwrap());
        assert_eq!(known, serde_json::to_value(phases.map(crate::resource::Phase::name)).unwrap());
    }
}
