//! How a driver verifies its controller's certificate.

use super::client::{JoinError, Trust};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// How to speak TLS with the controller.
///
/// # Errors
/// When there are no certificates where they should be.
pub fn tls(trust: &Trust) -> Result<Arc<ClientConfig>, JoinError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Fingerprint(wanted) => Arc::new(Pinned { wanted: *wanted, provider: Arc::clone(&provider) }),
        Trust::System => authorities(system()?, &provider)?,
        Trust::File(path) => authorities(file(path)?, &provider)?,
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn authorities(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, JoinError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(unusable)
}

fn unusable(error: impl std::fmt::Display) -> JoinError {
    JoinError(format!("cannot set up TLS: {error}"))
}

fn system() -> Result<RootCertStore, JoinError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(JoinError(
            "this system has no certificate authorities: set the controller's with --trust FILE, or its certificate with \
             --trust sha256:HEX"
                .into(),
        ));
    }
    Ok(roots)
}

fn file(path: &Path) -> Result<RootCertStore, JoinError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        JoinError(format!("cannot read certificates from {}: {error}", path.display()))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        roots.add(certificate.map_err(|error| unreadable(&error))?).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() {
        return Err(unreadable(&"it contains none; a PEM file is required"));
    }
    Ok(roots)
}

/// Why the controller at `host` is not trusted, if that is the error: a sentence with what to do.
pub(super) fn disbelief(error: &std::io::Error, host: &str) -> Option<String> {
    let tls = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(reason) = tls else { return None };
    Some(match reason {
        CertificateError::ApplicationVerificationFailure => format!(
            "the certificate of {host} has another fingerprint: compare --trust sha256:HEX with the one that the controller \
             prints at its start; if it is right, another server responds at this address"
        ),
        // The latter is of an authority that has the name of a trusted one, and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "the certificate of {host} is not trusted: set its authority with --trust FILE, or the \
             certificate itself with --trust sha256:HEX, which the controller prints at its start"
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "the certificate of {host} is for other names: join by one of its names, or trust the certificate itself with \
             --trust sha256:HEX"
        ),
        other => format!(
            "the certificate of {host} is not valid ({other}): replace it, or trust it with --trust sha256:HEX"
        ),
    })
}

/// Trusts one certificate, whatever names and dates are in it; signatures are still checked, so that it is its
/// holder who answers.
#[derive(Debug)]
struct Pinned {
    /// SHA-256 of the certificate's DER form.
    wanted: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found: [u8; 32] = Sha256::digest(certificate).into();
        if bool::from(found.ct_eq(&self.wanted)) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
