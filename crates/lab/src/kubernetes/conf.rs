//! The settings of etcd, the arguments of the API server, which reads none from a file, and the files by which clients find it.

use std::path::Path;

use super::certificates::clients;
use super::node::Network;
use super::record::Shape;
use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::{self, Home};

/// Addresses of services where there is no node: nobody uses them.
const SERVICES: &str = "10.255.0.0/24";

/// Makes the lab's directories, and writes the file for `kubectl`.
pub(super) fn lay_out(home: &Home, shape: &Shape) -> Result<(), LabError> {
    for directory in [home.run(), home.logs(), home.confs(), home.etcd()] {
        home::make_directory(&directory)?;
    }
    for client in clients(shape) {
        home::write_private(Path::new(&identity(home, &client)), &kubeconfig(home, shape, &client))?;
    }
    home::write_private(&home.kubeconfig(), &kubeconfig(home, shape, "admin"))
}

/// The path of the file with which a daemon signs in at the API server.
pub(super) fn identity(home: &Home, client: &str) -> String {
    home.confs().join(format!("{client}.kubeconfig")).display().to_string()
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
pub(super) fn pem(home: &Home, name: &str) -> String {
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

fn api_server(home: &Home, shape: &Shape) -> String {
    let host = shape.host().to_string();
    let services = shape.node.map_or_else(|| SERVICES.to_owned(), Network::services);
    let mut arguments = vec![
        ("etcd-servers", url(shape.etcd_port)),
        ("etcd-cafile", pem(home, "etcd-ca.crt")),
        ("etcd-certfile", pem(home, "etcd-client.crt")),
        ("etcd-keyfile", pem(home, "etcd-client.key")),
        ("bind-address", host.clone()),
        ("secure-port", shape.port.to_string()),
        ("tls-cert-file", pem(home, "server.crt")),
        ("tls-private-key-file", pem(home, "server.key")),
        ("client-ca-file", pem(home, "ca.crt")),
        ("anonymous-auth", "false".to_owned()),
        ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
        ("service-account-key-file", pem(home, "accounts.pub")),
        ("service-account-signing-key-file", pem(home, "accounts.key")),
        ("service-cluster-ip-range", services),
        ("advertise-address", host),
        // It has no other server to find, and would refuse to announce this address.
        ("endpoint-reconciler-type", "none".to_owned()),
    ];
    match shape.node {
        None => arguments.push(("authorization-mode", "RBAC".to_owned())),
        Some(_) => arguments.extend([
            ("authorization-mode", "Node,RBAC".to_owned()),
            ("enable-admission-plugins", "NodeRestriction".to_owned()),
            ("allow-privileged", "true".to_owned()),
            ("kubelet-certificate-authority", pem(home, "ca.crt")),
            ("kubelet-client-certificate", pem(home, "admin.crt")),
            ("kubelet-client-key", pem(home, "admin.key")),
            ("kubelet-preferred-address-types", "InternalIP".to_owned()),
        ]),
    }
    lines(&arguments)
}

/// One argument on each line.
pub(super) fn lines(arguments: &[(&str, String)]) -> String {
    arguments.iter().fold(String::new(), |text, (name, value)| text + &format!("--{name}={value}\n"))
}

fn kubeconfig(home: &Home, shape: &Shape, client: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: tidemark-lab\n\
         contexts:\n- name: tidemark-lab\n  context: {{cluster: tidemark-lab, user: tidemark-lab}}\n\
         clusters:\n- name: tidemark-lab\n  cluster:\n    server: {}\n    certificate-authority: '{}'\n\
         users:\n- name: tidemark-lab\n  user:\n    client-certificate: '{}'\n    client-key: '{}'\n",
        shape.endpoint(),
        pem(home, "ca.crt"),
        pem(home, &format!("{client}.crt")),
        pem(home, &format!("{client}.key"))
    )
}

fn url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}
