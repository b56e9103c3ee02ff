//! Certificate and key: read from files, or made once and kept.

use crate::options::{ServeError, Tls};
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a TLS server shows of itself, and how it proves it.
pub struct Identity {
    pub(crate) config: Arc<ServerConfig>,
    /// SHA-256 of the certificate, hexadecimal.
    pub(crate) fingerprint: String,
    /// Whether it takes the place of one that was for other names.
    pub(crate) renewed: bool,
}

impl Identity {
    /// What a server needs of it.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// SHA-256 of the certificate, hexadecimal.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Makes one that is never written down: clients know it by its fingerprint, whatever address they reach it by.
    ///
    /// # Errors
    /// [`ServeError::Made`].
    pub fn made_once() -> Result<Self, ServeError> {
        let failed = |reason: String| ServeError::Made { what: "a certificate", reason };
        let make = || -> Result<_, rcgen::Error> {
            let pair = rcgen::KeyPair::generate()?;
            let certificate = parameters(Vec::new())?.self_signed(&pair)?;
            Ok((certificate.der().clone(), pair.serialize_der()))
        };
        let (leaf, key) = make().map_err(|error| failed(error.to_string()))?;
        let fingerprint = tidemark_tls::fingerprint_text(&leaf);
        let key = PrivateKeyDer::try_from(key).map_err(|error| failed(error.to_owned()))?;
        let config = server_config(vec![leaf], key).map_err(|error| failed(error.to_string()))?;
        Ok(Self { config: Arc::new(config), fingerprint, renewed: false })
    }

    /// Reads certificate and key; makes them if they are to be made and are not there, or are for other names.
    ///
    /// # Errors
    /// A file cannot be used, or not be written.
    pub fn read(tls: &Tls, listen: IpAddr) -> Result<Self, ServeError> {
        let (certificate, key, renewed) = match tls {
            Tls::Files { certificate, key } => (certificate.clone(), key.clone(), false),
            Tls::SelfSigned { directory } => self_signed(directory, listen)?,
        };
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_file_iter(&certificate).and_then(Iterator::collect).map_err(|error| {
                trouble(&certificate, format!("no certificate in PEM can be read from it: {error}"))
            })?;
        let Some(leaf) = chain.first() else {
            return Err(trouble(&certificate, "there is no certificate in it".into()));
        };
        let fingerprint = tidemark_tls::fingerprint_text(leaf);
        let secret = PrivateKeyDer::from_pem_file(&key)
            .map_err(|error| trouble(&key, format!("no private key in PEM can be read from it: {error}")))?;
        let config = server_config(chain, secret).map_err(|error| {
            trouble(&key, format!("it does not go with {}: {error}", certificate.display()))
        })?;
        Ok(Self { config: Arc::new(config), fingerprint, renewed })
    }
}

/// A certificate that vouches for itself, with its key, for a server elsewhere.
// Not `Debug`: it holds a secret.
pub struct SelfSigned {
    /// The certificate, PEM.
    pub certificate: String,
    /// Its private key, PEM.
    pub key: String,
    /// SHA-256 of the certificate, hexadecimal: by this clients know it, whatever address they reach it by.
    pub fingerprint: String,
}

impl SelfSigned {
    /// Makes one that is never written down here.
    ///
    /// # Errors
    /// [`ServeError::Made`].
    pub fn once() -> Result<Self, ServeError> {
        Self::new(Vec::new())
            .map_err(|error| ServeError::Made { what: "a certificate", reason: error.to_string() })
    }

    /// One that was made before; `None` if the certificate is none.
    pub fn kept(certificate: String, key: String) -> Option<Self> {
        let leaf = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
        Some(Self { fingerprint: tidemark_tls::fingerprint_text(&leaf), certificate, key })
    }

    fn new(names: Vec<String>) -> Result<Self, rcgen::Error> {
        let pair = rcgen::KeyPair::generate()?;
        let certificate = parameters(names)?.self_signed(&pair)?;
        let fingerprint = tidemark_tls::fingerprint_text(certificate.der());
        Ok(Self { certificate: certificate.pem(), key: pair.serialize_pem(), fingerprint })
    }
}

/// How a server proves who it is.
fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// SHA-256 of the first certificate of a PEM file, hexadecimal: by this a driver knows a controller whose certificate nobody
/// else vouches for.
pub fn fingerprint(certificate: &Path) -> Result<String, ServeError> {
    let leaf = CertificateDer::from_pem_file(certificate).map_err(|error| {
        trouble(certificate, format!("no certificate in PEM can be read from it: {error}"))
    })?;
    Ok(tidemark_tls::fingerprint_text(&leaf))
}

/// The two files in `directory`; made if either is missing, and again if the server is reached by other names than it was. Also
/// whether it was the latter.
fn self_signed(directory: &Path, listen: IpAddr) -> Result<(PathBuf, PathBuf, bool), ServeError> {
    let (certificate, key) = (directory.join("controller.crt"), directory.join("controller.key"));
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".into(), "::1".into()];
    names.extend(host_name());
    if !listen.is_unspecified() && !listen.is_loopback() {
        names.push(listen.to_string());
    }
    let is_there = certificate.is_file() && key.is_file();
    if is_there && is_for(&certificate, &names) {
        return Ok((certificate, key, false));
    }
    let made =
        SelfSigned::new(names).map_err(|error| trouble(&certificate, format!("cannot be made: {error}")))?;
    fs::create_dir_all(directory).map_err(|error| trouble(directory, format!("cannot be made: {error}")))?;
    // The key first: a certificate without its key would be taken for a complete pair of an earlier start.
    write(&key, &made.key, 0o600)?;
    write(&certificate, &made.certificate, 0o644)?;
    Ok((certificate, key, is_there))
}

/// What is in the certificate of a controller that is reached by these names.
fn parameters(names: Vec<String>) -> Result<rcgen::CertificateParams, rcgen::Error> {
    let mut parameters = rcgen::CertificateParams::new(names)?;
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "Tidemark controller");
    Ok(parameters)
}

/// Whether a certificate is for all of these names; one that cannot be read is left for its reader to complain about.
fn is_for(certificate: &Path, names: &[String]) -> bool {
    let Ok(leaf) = CertificateDer::from_pem_file(certificate) else { return true };
    let Ok(parsed) = ParsedCertificate::try_from(&leaf) else { return true };
    let mut wanted = names.iter().filter_map(|name| ServerName::try_from(name.as_str()).ok());
    wanted.all(|name| verify_server_name(&parsed, &name).is_ok())
}

/// Writes a file in whole or not at all, never with wider rights than `mode`.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), ServeError> {
    let new = path.with_extension("new");
    let attempt = || {
        match fs::remove_file(&new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    attempt().map_err(|error| trouble(path, format!("cannot be written: {error}")))
}

/// This machine's name, if it is a plain one.
pub(crate) fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok()?.to_owned();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}

fn trouble(path: &Path, reason: String) -> ServeError {
    ServeError::Certificate { path: path.to_path_buf(), reason }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_certificate_is_made_once_and_its_key_is_the_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let tls = Tls::SelfSigned { directory: directory.path().join("tls") };
        let listen = IpAddr::from([192, 0, 2, 7]);
        let first = Identity::read(&tls, listen).unwrap();
        let again = Identity::read(&tls, listen).unwrap();
        assert_eq!(first.fingerprint, again.fingerprint);
        assert_eq!(first.fingerprint, fingerprint(&directory.path().join("tls/controller.crt")).unwrap());
        assert_eq!(first.fingerprint.len(), 64);
        let key = fs::metadata(directory.path().join("tls/controller.key")).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_certificate_is_made_again_for_an_address_that_it_is_not_for() {
        let directory = tempfile::tempdir().unwrap();
        let tls = Tls::SelfSigned { directory: directory.path().into() };
        let at = |last| Identity::read(&tls, IpAddr::from([192, 0, 2, last])).unwrap();
        let (first, moved, again) = (at(7), at(8), at(8));
        assert_eq!([&first, &moved, &again].map(|one| one.renewed), [false, true, false]);
        assert!(first.fingerprint != moved.fingerprint && moved.fingerprint == again.fingerprint);
        let leaf = CertificateDer::from_pem_file(directory.path().join("controller.crt")).unwrap();
        let parsed = ParsedCertificate::try_from(&leaf).unwrap();
        for name in ["192.0.2.8", "localhost", "127.0.0.1"] {
            assert!(verify_server_name(&parsed, &ServerName::try_from(name).unwrap()).is_ok(), "{name}");
        }
    }

    #[test]
    fn files_that_are_no_certificate_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = (directory.path().join("c.pem"), directory.path().join("k.pem"));
        fs::write(&certificate, "hello").unwrap();
        fs::write(&key, "hello").unwrap();
        let tls = Tls::Files { certificate, key };
        let Err(error) = Identity::read(&tls, IpAddr::from([127, 0, 0, 1])) else { panic!("it was taken") };
        assert!(error.to_string().contains("c.pem"), "{error}");
    }
}
