//! Who may speak with whom: an authority for the API server and its clients, and another one for etcd, which only the API server may ask.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

use super::node;
use super::record::Shape;
use crate::error::LabError;
use crate::home::{self, Home};

/// The group whose members may do everything.
const ADMINISTRATORS: &str = "system:masters";

/// The daemons that nodes need and that sign in at the API server: the names of their files.
pub(super) fn clients(shape: &Shape) -> Vec<String> {
    let first = ["controller-manager", "scheduler"].map(str::to_owned).into_iter();
    first.filter(|_| shape.nodes() > 0).chain((0..shape.nodes()).map(node::client)).collect()
}

/// Makes all certificates and keys of a lab, unless they are there. Its servers listen on 127.0.0.1 and on the addresses of its nodes.
pub(super) fn make(home: &Home, shape: &Shape) -> Result<(), LabError> {
    let directory = home.certificates();
    if directory.is_dir() {
        return Ok(());
    }
    // Half of them must not be taken for all.
    let confs = home.confs();
    home::make_directory(&confs)?;
    let work = tempfile::tempdir_in(&confs).map_err(LabError::file("make a directory in", &confs))?;
    let pems = pems(shape).map_err(|error| LabError::Certificates { why: error.to_string() })?;
    let made = work.path().join("certificates");
    home::make_directory(&made)?;
    for (name, pem) in pems {
        home::write_private(&made.join(name), &pem)?;
    }
    fs::rename(&made, &directory).map_err(LabError::file("make", directory))
}

/// Names of files and their texts.
fn pems(shape: &Shape) -> Result<Vec<(String, String)>, rcgen::Error> {
    let mut all = Vec::new();
    let clients = authority("Tidemark lab")?;
    let etcd = authority("Tidemark lab, etcd")?;
    all.push(("ca.crt".to_owned(), clients.pem()));
    all.push(("etcd-ca.crt".to_owned(), etcd.pem()));
    let issued = [
        ("server", "kube-apiserver", None, &clients),
        ("admin", "tidemark", Some(ADMINISTRATORS), &clients),
        // What Kubernetes' own roles call them.
        ("controller-manager", "system:kube-controller-manager", None, &clients),
        ("scheduler", "system:kube-scheduler", None, &clients),
        ("etcd", "etcd", None, &etcd),
        ("etcd-client", "kube-apiserver", None, &etcd),
    ];
    for (file, name, group, authority) in issued {
        let (certificate, key) = issue(name, group, shape.host(), authority)?;
        all.extend([(format!("{file}.crt"), certificate), (format!("{file}.key"), key)]);
    }
    for number in 0..shape.nodes() {
        let (file, user) = (node::client(number), node::user(number));
        let (certificate, key) = issue(&user, Some("system:nodes"), shape.address(number), &clients)?;
        all.extend([(format!("{file}.crt"), certificate), (format!("{file}.key"), key)]);
    }
    // By which tokens of service accounts are signed.
    let accounts = KeyPair::generate()?;
    all.push(("accounts.key".to_owned(), accounts.serialize_pem()));
    all.push(("accounts.pub".to_owned(), accounts.public_key_pem()));
    Ok(all)
}

fn authority(name: &str) -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)
}

/// A certificate for a server or a client of this machine, and its key.
fn issue(
    name: &str,
    group: Option<&str>,
    host: Ipv4Addr,
    authority: &CertifiedIssuer<'static, KeyPair>,
) -> Result<(String, String), rcgen::Error> {
    let mut names = vec![host.to_string()];
    names.extend(["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned));
    names.dedup();
    let mut parameters = CertificateParams::new(names)?;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    if let Some(group) = group {
        parameters.distinguished_name.push(DnType::OrganizationName, group);
    }
    parameters.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate()?;
    Ok((parameters.signed_by(&key, authority)?.pem(), key.serialize_pem()))
}

/// What the administrator shows to the API server, and what the API server must show.
pub(super) struct Identity {
    authority: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Identity {
    /// That of a lab.
    pub(super) fn load(home: &Home) -> Result<Self, LabError> {
        let directory = home.certificates();
        let read = |name: &str| read(&directory.join(name));
        Ok(Self { authority: read("ca.crt")?, certificate: read("admin.crt")?, key: read("admin.key")? })
    }

    /// As the client of HTTP takes it.
    pub(super) fn tls(&self) -> Result<TlsConfig, ureq::Error> {
        let authority = Certificate::from_pem(&self.authority)?;
        let own = Certificate::from_pem(&self.certificate)?;
        let own = ClientCert::new_with_certs(&[own], PrivateKey::from_pem(&self.key)?);
        let roots = RootCerts::Specific(std::sync::Arc::new(vec![authority]));
        Ok(TlsConfig::builder().root_certs(roots).client_cert(Some(own)).build())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, LabError> {
    fs::read(path).map_err(LabError::file("read", path))
}
