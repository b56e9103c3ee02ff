//! `tidemark observe` on every node of a Kubernetes cluster: a DaemonSet, as one text, which users read as well.

use crate::RemoteNode;
use crate::server::{ServeError, long_enough};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The Secret of the observers of a namespace: `token`, and a certificate with its key as every TLS Secret has them.
pub const SECRET: &str = "tidemark-observe";

/// By what their pods are found: a label selector, as a query has it.
pub const POD_LABELS: &str = "app.kubernetes.io/name%3Dtidemark,app.kubernetes.io/component%3Dobserver";

/// How it is installed.
// Not `Debug`: it holds secrets.
#[derive(Clone, Copy)]
pub struct Install<'a> {
    /// The namespace, which must exist and admit privileged pods.
    pub namespace: &'a str,
    /// An image of this program.
    pub image: &'a str,
    /// Where the observers listen, on every node.
    pub port: u16,
    /// As in [`Options`](crate::Options).
    pub processes: &'a [String],
    /// As in [`Options`](crate::Options), on the nodes: absolute paths.
    pub ceph_sockets: &'a [PathBuf],
    /// What clients must send.
    pub token: &'a str,
    /// Certificate and private key, PEM.
    pub certificate: &'a str,
    /// The key.
    pub key: &'a str,
    /// The certificate's fingerprint: pods are replaced when it changes.
    pub fingerprint: &'a str,
}

/// The manifests, for `kubectl apply`.
///
/// # Errors
/// [`ServeError::Short`]: the token can be guessed.
pub fn manifests(install: Install<'_>) -> Result<String, ServeError> {
    long_enough(install.token)?;
    let files = "/etc/tidemark";
    let mut args = vec!["observe".to_owned(), "--listen".into(), format!("0.0.0.0:{}", install.port)];
    args.extend([
        "--tls-cert".into(),
        format!("{files}/tls.crt"),
        "--tls-key".into(),
        format!("{files}/tls.key"),
    ]);
    args.extend(install.processes.iter().flat_map(|name| ["--process".to_owned(), name.clone()]));
    let mut mounts = vec![
        json!({"name": "access", "mountPath": files, "readOnly": true}),
        json!({"name": "pods", "mountPath": "/var/log/pods", "readOnly": true}),
        json!({"name": "cgroup", "mountPath": "/sys/fs/cgroup", "readOnly": true}),
    ];
    let mut volumes = vec![
        json!({"name": "access", "secret": {"secretName": SECRET, "defaultMode": 0o400}}),
        // The names of pods.
        json!({"name": "pods", "hostPath": {"path": "/var/log/pods"}}),
        // A container has its own group only in the place of all.
        json!({"name": "cgroup", "hostPath": {"path": "/sys/fs/cgroup"}}),
    ];
    for (index, directory) in install.ceph_sockets.iter().enumerate() {
        let (name, path) = (format!("ceph-{index}"), directory.display().to_string());
        args.extend(["--ceph-sockets".to_owned(), path.clone()]);
        mounts.push(json!({"name": name, "mountPath": path}));
        // Where a node has none of Ceph's daemons, the directory is made.
        volumes.push(json!({"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}));
    }
    let quoted = |text: &str| Value::from(text).to_string();
    // The values last: whatever stands in them is not looked at again.
    let text = include_str!("daemon_set.yaml")
        .replace("{port}", &install.port.to_string())
        .replace("{args}", &Value::from(args).to_string())
        .replace("{mounts}", &Value::from(mounts).to_string())
        .replace("{volumes}", &Value::from(volumes).to_string())
        .replace("\"{namespace}\"", &quoted(install.namespace))
        .replace("\"{image}\"", &quoted(install.image))
        .replace("\"{fingerprint}\"", &quoted(install.fingerprint))
        .replace("\"{certificate}\"", &quoted(install.certificate))
        .replace("\"{key}\"", &quoted(install.key))
        .replace("\"{token}\"", &quoted(install.token));
    Ok(text)
}

/// What the Secret tells those who ask observers.
// Not `Debug`: it holds a secret.
pub struct Access {
    token: String,
    fingerprint: String,
}

impl Access {
    /// Of the values in it: the token, and the certificate (PEM). `None`: they are not such values.
    pub fn read(token: &[u8], certificate: &[u8]) -> Option<Self> {
        let certificate = CertificateDer::from_pem_slice(certificate).ok()?;
        let fingerprint = tidemark_tls::fingerprint_text(&certificate);
        Some(Self { token: String::from_utf8(token.to_vec()).ok()?, fingerprint })
    }

    /// The observer at an address, on the node of this name.
    pub fn node(&self, name: &str, host: IpAddr, port: u16) -> RemoteNode {
        RemoteNode {
            url: format!("https://{}#sha256:{}", SocketAddr::new(host, port), self.fingerprint),
            token: Some(self.token.clone()),
            name: Some(name.to_owned()),
        }
    }
}

/// How documents name an observer on a node.
pub fn node(host: &str, port: u16, fingerprint: &str) -> String {
    format!("https://{host}:{port}#sha256:{fingerprint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(install: Install<'_>) -> Vec<Value> {
        let text = manifests(install).unwrap();
        text.split("\n---\n").map(|one| serde_saphyr::from_str(one).unwrap()).collect()
    }

    #[test]
    fn it_is_what_was_asked_for_whatever_the_values_are() {
        let odd = "\"{key}\": x\n- 'y' # z".to_owned();
        let install = Install {
            namespace: "bench",
            image: "registry:5000/tidemark:1",
            port: 9751,
            processes: &["postgres".into(), odd.clone()],
            ceph_sockets: &["/var/lib/rook/exporter".into()],
            token: "{args} 0123456789abcdef",
            certificate: "-----BEGIN\na\n",
            key: "-----BEGIN\nb\n",
            fingerprint: "5a",
        };
        let [secret, set]: [Value; 2] = read(install).try_into().unwrap();
        assert_eq!(secret["stringData"]["token"], install.token);
        assert_eq!(secret["stringData"]["tls.crt"], install.certificate);
        assert_eq!(secret["stringData"]["tls.key"], install.key);
        assert!([&secret, &set].iter().all(|one| one["metadata"]["namespace"] == "bench"));
        let template = &set["spec"]["template"];
        assert_eq!(template["metadata"]["labels"], set["spec"]["selector"]["matchLabels"]);
        assert_eq!(template["metadata"]["annotations"]["tidemark.dev/certificate"], "5a");
        let container = &template["spec"]["containers"][0];
        assert_eq!(container["image"], install.image);
        let args: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
        let asked = ["--process", "postgres", "--process", &odd, "--ceph-sockets", "/var/lib/rook/exporter"];
        assert_eq!((args[2].as_str(), &args[7..]), ("0.0.0.0:9751", &asked.map(str::to_owned)[..]));
        assert_eq!(container["readinessProbe"]["tcpSocket"]["port"], 9751);
        assert_eq!(container["ports"][0]["containerPort"], 9751);
        let mut labels = POD_LABELS.split(',').filter_map(|label| label.split_once("%3D"));
        assert!(
            labels.all(|(name, value)| template["metadata"]["labels"][name] == value),
            "they are found by it"
        );
        assert_eq!(secret["metadata"]["name"], SECRET);
        assert!(!args.iter().any(|arg| arg.contains("0123456789abcdef")), "the token is no argument");
        let mounts = container["volumeMounts"].as_array().unwrap();
        let named = |list: &[Value]| list.iter().map(|one| one["name"].clone()).collect::<Vec<_>>();
        assert_eq!(named(mounts), named(template["spec"]["volumes"].as_array().unwrap()));
        assert_eq!(mounts[3]["mountPath"], "/var/lib/rook/exporter");
        assert!(matches!(manifests(Install { token: "short", ..install }), Err(ServeError::Short)));
        assert_eq!(node("10.0.0.2", 9751, "5a"), "https://10.0.0.2:9751#sha256:5a");
    }
}
