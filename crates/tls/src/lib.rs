//! How a TLS client verifies a server's certificate.
//!
//! [`Trust`] says which certificates to accept; [`Trust::client_config`] makes a rustls configuration of it. Whatever is
//! accepted, the server has to prove that it holds the certificate's key.

mod pinned;
mod unvouched;

use pinned::Pinned;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use unvouched::Unvouched;

/// Which certificates of a server to accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those that the system's certificate authorities vouch for.
    System,
    /// Those that are in a PEM file or that the certificates in it vouch for, and no others.
    File(PathBuf),
    /// Those that the system's authorities vouch for, or that a PEM file has or vouches for.
    SystemAndFile(PathBuf),
    /// The one with this SHA-256 [`fingerprint`], whatever names and dates are in it.
    Fingerprint([u8; 32]),
    /// Any.
    Any,
}

/// Why a TLS client cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The system has no certificate authorities.
    #[error("this system has no certificate authorities")]
    NoAuthorities,
    /// A file has no usable certificates.
    #[error("cannot read certificates from {}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The TLS library refuses.
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
}

/// A text that is no [`Trust`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`sha256:` takes 64 hexadecimal digits, with or without colons between them")]
pub struct NotAFingerprint;

impl FromStr for Trust {
    type Err = NotAFingerprint;

    /// `system`, `sha256:` and a fingerprint, or else the path of a PEM file.
    fn from_str(text: &str) -> Result<Self, NotAFingerprint> {
        if text == "system" {
            return Ok(Trust::System);
        }
        let Some(hex) = text.strip_prefix("sha256:") else { return Ok(Trust::File(text.into())) };
        let digits: Vec<u8> = hex.bytes().filter(|byte| *byte != b':').collect();
        let value = |digit: u8| char::from(digit).to_digit(16).ok_or(NotAFingerprint);
        let byte = |pair: &[u8]| match pair {
            [high, low] => Ok((value(*high)? * 16 + value(*low)?) as u8),
            _ => Err(NotAFingerprint),
        };
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect::<Result<_, _>>()?;
        bytes.try_into().map(Trust::Fingerprint).map_err(|_| NotAFingerprint)
    }
}

impl Trust {
    /// A client that accepts these certificates. It shows none of its own.
    ///
    /// # Errors
    /// When there are no certificates where they should be.
    pub fn client_config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let unvouched = |fingerprint| -> Arc<dyn ServerCertVerifier> {
            Arc::new(Unvouched::new(fingerprint, Arc::clone(&provider)))
        };
        let roots = RootCertStore::empty();
        let verifier = match self {
            Trust::Fingerprint(fingerprint) => unvouched(Some(*fingerprint)),
            Trust::Any => unvouched(None),
            Trust::System => authorities(with_system(roots), &provider)? as Arc<dyn ServerCertVerifier>,
            Trust::File(path) => pinned(roots, path, &provider)?,
            Trust::SystemAndFile(path) => pinned(with_system(roots), path, &provider)?,
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Setup(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}

/// The SHA-256 of a certificate's DER form.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// The same in hexadecimal digits, as it is read after `sha256:`.
pub fn fingerprint_text(certificate: &CertificateDer<'_>) -> String {
    fingerprint(certificate).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What an error of a connection says, without the address of the TLS library's manual.
pub fn words(error: &(impl std::fmt::Display + ?Sized)) -> String {
    let text = error.to_string();
    let end = text.find(": https://docs.rs/").unwrap_or(text.len());
    text[..end].to_owned()
}

fn authorities(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    if roots.is_empty() {
        return Err(TlsError::NoAuthorities);
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    verifier.map_err(|error| TlsError::Setup(error.to_string()))
}

/// Accepts the certificates in a file besides what authorities vouch for; they are authorities themselves.
fn pinned(
    mut roots: RootCertStore,
    path: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let certificates = add_file(&mut roots, path)?;
    Ok(Arc::new(Pinned::new(authorities(roots, provider)?, certificates)))
}

/// Adds the system's authorities; those that cannot be read are left out.
fn with_system(mut roots: RootCertStore) -> RootCertStore {
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Adds the certificates in a file, and gives them.
fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unusable = |problem: String| TlsError::File { path: path.to_owned(), problem };
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate.clone()).map_err(|error| unusable(error.to_string()))?;
        certificates.push(certificate);
    }
    match certificates.is_empty() {
        false => Ok(certificates),
        true => Err(unusable("it holds none; a PEM file is needed".into())),
    }
}

#[cfg(test)]
mod tests;
