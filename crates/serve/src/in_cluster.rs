//! A controller in a cluster of Kubernetes, and drivers that join it: two texts, which users read as well.

use crate::tls::SelfSigned;
use serde_json::{Value, json};

/// Where drivers have their token.
const ACCESS: &str = "/etc/tidemark";
/// Where drivers have their volume.
const DATA: &str = "/data";

/// How the controller of a team is installed.
// Not `Debug`: it holds secrets.
#[derive(Clone, Copy)]
pub struct ControllerInCluster<'a> {
    /// The namespace, which must exist.
    pub namespace: &'a str,
    /// An image of this program.
    pub image: &'a str,
    /// The storage class of its volume; `None`: the cluster's usual one.
    pub class: Option<&'a str>,
    /// The token of people, who are operators.
    pub operator: &'a str,
    /// The token of drivers.
    pub driver: &'a str,
    /// Its certificate and key.
    pub identity: &'a SelfSigned,
}

impl ControllerInCluster<'_> {
    /// The manifests for `kubectl apply`: a Secret, a claim for the result store, a Service, a Deployment.
    pub fn manifests(self) -> String {
        let class = self.class.map(|class| format!("  storageClassName: {}\n", quoted(class)));
        // The values last: whatever stands in them is not looked at again.
        include_str!("controller.yaml")
            .replace("{class}\n", &class.unwrap_or_default())
            .replace("{namespace}", self.namespace)
            .replace("\"{fingerprint}\"", &quoted(&self.identity.fingerprint))
            .replace("\"{image}\"", &quoted(self.image))
            .replace("\"{operator}\"", &quoted(self.operator))
            .replace("\"{driver}\"", &quoted(self.driver))
            .replace("\"{certificate}\"", &quoted(&self.identity.certificate))
            .replace("\"{key}\"", &quoted(&self.identity.key))
    }
}

/// Drivers that stay, for whatever the controller in the same namespace gives them.
#[derive(Clone, Copy, Debug)]
pub struct DriversInCluster<'a> {
    /// The namespace of the controller.
    pub namespace: &'a str,
    /// An image of this program.
    pub image: &'a str,
    /// How many.
    pub count: u32,
    /// The processors that each requests, as Kubernetes writes them.
    pub cpu: &'a str,
    /// The load threads of each.
    pub threads: u64,
    /// The memory of each, as Kubernetes writes it.
    pub memory: &'a str,
    /// The size of a volume for each, as Kubernetes writes it, if they are to have one.
    pub volume: Option<&'a str>,
    /// The storage class of the volumes; `None`: the cluster's usual one.
    pub class: Option<&'a str>,
    /// The fingerprint of the controller's certificate.
    pub fingerprint: &'a str,
}

impl DriversInCluster<'_> {
    /// The manifest for `kubectl apply`: a StatefulSet, so that drivers keep their names and volumes when pods are replaced.
    pub fn manifest(self) -> String {
        let mut args = vec![
            "driver".to_owned(),
            format!("--threads={}", self.threads),
            format!("--token-file={ACCESS}/token"),
        ];
        let mut mounts = vec![
            json!({"name": "access", "mountPath": ACCESS, "readOnly": true}),
            json!({"name": "scratch", "mountPath": "/tmp"}),
        ];
        let mut claims = Vec::new();
        if let Some(size) = self.volume {
            args.push(format!("--allow-path={DATA}"));
            mounts.push(json!({"name": "data", "mountPath": DATA}));
            let mut spec =
                json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}});
            if let Some(class) = self.class {
                spec["storageClassName"] = class.into();
            }
            claims.push(json!({"metadata": {"name": "data"}, "spec": spec}));
        }
        include_str!("drivers.yaml")
            .replace("{count}", &self.count.to_string())
            .replace("{namespace}", self.namespace)
            .replace("{fingerprint}", self.fingerprint)
            .replace("\"{cpu}\"", &quoted(self.cpu))
            .replace("\"{memory}\"", &quoted(self.memory))
            .replace("{args}", &Value::from(args).to_string())
            .replace("{mounts}", &Value::from(mounts).to_string())
            .replace("{claims}", &Value::from(claims).to_string())
            .replace("\"{image}\"", &quoted(self.image))
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Value> {
        text.split("\n---\n").map(|one| serde_saphyr::from_str(one).unwrap()).collect()
    }

    fn words(list: &Value) -> Vec<String> {
        serde_json::from_value(list.clone()).unwrap()
    }

    #[test]
    fn the_controller_has_its_tokens_from_a_secret_and_no_rights() {
        let identity = SelfSigned {
            certificate: "-----BEGIN\na\n".into(),
            key: "{image} \"\n".into(),
            fingerprint: "5a".into(),
        };
        let installed = ControllerInCluster {
            namespace: "bench",
            image: "registry:5000/tidemark:1",
            class: Some("null"),
            operator: "for people",
            driver: "for drivers",
            identity: &identity,
        };
        let [secret, claim, service, deployment] = read(&installed.manifests()).try_into().unwrap();
        let all = [&secret, &claim, &service, &deployment];
        assert_eq!(
            all.map(|one| one["kind"].as_str().unwrap()),
            ["Secret", "PersistentVolumeClaim", "Service", "Deployment"]
        );
        assert!(all.iter().all(|one| one["metadata"]["namespace"] == "bench"));
        assert_eq!(secret["stringData"]["tls.key"], identity.key, "whatever it looks like");
        assert_eq!(secret["stringData"]["operator"], "for people");
        assert_eq!(claim["spec"]["storageClassName"], "null", "a name, not nothing");
        let template = &deployment["spec"]["template"];
        assert_eq!(template["metadata"]["labels"], service["spec"]["selector"]);
        assert_eq!(template["metadata"]["annotations"]["tidemark.dev/certificate"], "5a");
        assert_eq!(template["spec"]["automountServiceAccountToken"], false);
        let container = &template["spec"]["containers"][0];
        assert_eq!(container["image"], installed.image);
        assert!(!container.to_string().contains("for people"), "a token is no argument");
        let usual = read(&ControllerInCluster { class: None, ..installed }.manifests());
        assert!(usual[1]["spec"]["storageClassName"].is_null());
    }

    #[test]
    fn drivers_have_volumes_if_they_are_to_have_them() {
        let drivers = DriversInCluster {
            namespace: "bench",
            image: "tidemark:1",
            count: 12,
            cpu: "1500m",
            threads: 2,
            memory: "2Gi",
            volume: None,
            class: Some("fast"),
            fingerprint: "5a",
        };
        let [set] = read(&drivers.manifest()).try_into().unwrap();
        let container = |set: &Value| set["spec"]["template"]["spec"]["containers"][0].clone();
        assert_eq!(set["spec"]["replicas"], 12);
        assert_eq!(set["spec"]["volumeClaimTemplates"], json!([]));
        assert_eq!(set["spec"]["template"]["metadata"]["labels"], set["spec"]["selector"]["matchLabels"]);
        let one = container(&set);
        assert_eq!(words(&one["args"]), ["driver", "--threads=2", "--token-file=/etc/tidemark/token"]);
        assert_eq!(
            one["resources"],
            json!({"requests": {"cpu": "1500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}})
        );
        let variable = |name| {
            let mut all = one["env"].as_array().unwrap().iter();
            all.find(|one| one["name"] == name).unwrap()["value"].clone()
        };
        assert_eq!(variable("TIDEMARK_CONTROLLER"), "https://tidemark-controller.bench.svc:19088");
        assert_eq!(variable("TIDEMARK_TRUST"), "sha256:5a");

        let [set] =
            read(&DriversInCluster { volume: Some("10Gi"), ..drivers }.manifest()).try_into().unwrap();
        let claim = &set["spec"]["volumeClaimTemplates"][0];
        assert_eq!(claim["spec"]["storageClassName"], "fast");
        assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "10Gi");
        let one = container(&set);
        assert_eq!(words(&one["args"])[3..], ["--allow-path=/data"]);
        assert_eq!(one["volumeMounts"][2], json!({"name": claim["metadata"]["name"], "mountPath": "/data"}));
    }
}
