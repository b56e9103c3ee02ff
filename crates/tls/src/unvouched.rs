//! Certificates that no authority has to vouch for.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;
use subtle::ConstantTimeEq as _;

/// Accepts one certificate, or any, whatever names and dates are in it. Signatures are checked all the same: whoever answers
/// holds the certificate's key.
#[derive(Debug)]
pub(crate) struct Unvouched {
    /// Of the only certificate that is accepted.
    fingerprint: Option<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl Unvouched {
    pub(crate) fn new(fingerprint: Option<[u8; 32]>, provider: Arc<CryptoProvider>) -> Self {
        Self { fingerprint, provider }
    }
}

impl ServerCertVerifier for Unvouched {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.fingerprint {
            Some(wanted) if !bool::from(crate::fingerprint(certificate).ct_eq(&wanted)) => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
