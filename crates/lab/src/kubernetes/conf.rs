//! The settings of etcd, the arguments of the API server, which reads none from a file, and the file for `kubectl`.

use super::record::Shape;
use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::{self, Home};

/// Addresses of services, which nobody uses as there is no node.
const SERVICES: &str = "10.255.0.0/24";

/// Makes the lab's directories, and writes the file for `kubectl`.
pub(super) fn lay_out(home: &Home, shape: &Shape) -> Result<(), LabError> {
    for directory in [home.run(), home.logs(), home.confs(), home.etcd()] {
        home::make_directory(&directory)?;
    }
    home::write_private(&home.kubeconfig(), &kubeconfig(home, shape))
}

/// Writes the settings of a daemon that is about to be started. Those of one that runs stay: it is known by them.
pub(super) fn write(home: &Home, shape: &Shape, daemon: Daemon) -> Result<(), LabError> {
    let text = match daemon {
        Daemon::Etcd => etcd(home, shape),
        _ => api_server(home, shape),
    };
    home::write_private(&home.server_conf(daemon), &text)
}

/// The path of a certificate or key.
fn pem(home: &Home, name: &str) -> String {
    home.certificates().join(name).display().to_string()
}

fn etcd(home: &Home, shape: &Shape) -> String {
    let (client, peer) = (url(shape.etcd_port), url(shape.peer_port));
    let security = format!(
        "  cert-file: '{}'\n  key-file: '{}'\n  trusted-ca-file: '{}'\n  client-cert-auth: true\n",
        pem(home, "etcd.crt"),
        pem(home, "etcd.key"),
        pem(home, "etcd-ca.crt")
    );
    format!(
        "name: lab\ndata-dir: '{}'\nlisten-client-urls: {client}\nadvertise-client-urls: {client}\nlisten-peer-urls: {peer}\n\
         initial-advertise-peer-urls: {peer}\ninitial-cluster: lab={peer}\nclient-transport-security:\n{security}\
         peer-transport-security:\n{security}",
        home.etcd().display()
    )
}

/// One argument on each line.
fn api_server(home: &Home, shape: &Shape) -> String {
    let arguments = [
        ("etcd-servers", url(shape.etcd_port)),
        ("etcd-cafile", pem(home, "etcd-ca.crt")),
        ("etcd-certfile", pem(home, "etcd-client.crt")),
        ("etcd-keyfile", pem(home, "etcd-client.key")),
        ("bind-address", "127.0.0.1".to_owned()),
        ("secure-port", shape.port.to_string()),
        ("tls-cert-file", pem(home, "server.crt")),
        ("tls-private-key-file", pem(home, "server.key")),
        ("client-ca-file", pem(home, "ca.crt")),
        ("anonymous-auth", "false".to_owned()),
        ("authorization-mode", "RBAC".to_owned()),
        ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
        ("service-account-key-file", pem(home, "accounts.pub")),
        ("service-account-signing-key-file", pem(home, "accounts.key")),
        ("service-cluster-ip-range", SERVICES.to_owned()),
        ("advertise-address", "127.0.0.1".to_owned()),
        // It has no other server to find, and would refuse to announce this address.
        ("endpoint-reconciler-type", "none".to_owned()),
    ];
    arguments.map(|(name, value)| format!("--{name}={value}\n")).concat()
}

fn kubeconfig(home: &Home, shape: &Shape) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: tidemark-lab\n\
         contexts:\n- name: tidemark-lab\n  context: {{cluster: tidemark-lab, user: tidemark-lab}}\n\
         clusters:\n- name: tidemark-lab\n  cluster:\n    server: {}\n    certificate-authority: '{}'\n\
         users:\n- name: tidemark-lab\n  user:\n    client-certificate: '{}'\n    client-key: '{}'\n",
        shape.endpoint(),
        pem(home, "ca.crt"),
        pem(home, "admin.crt"),
        pem(home, "admin.key")
    )
}

fn url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}
