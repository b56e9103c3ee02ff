//! What to do when a controller's certificate cannot be verified.

use super::client::JoinError;
use rustls::{CertificateError, ClientConfig};
use std::sync::Arc;
use tidemark_tls::{TlsError, Trust};

/// A TLS client for connections to a controller.
///
/// # Errors
/// When there are no certificates where they should be; the error names the option to use.
pub fn client_config(trust: &Trust) -> Result<Arc<ClientConfig>, JoinError> {
    trust.client_config().map_err(|error| match error {
        TlsError::NoAuthorities => JoinError(format!(
            "{error}: name the controller's with --trust FILE, or its certificate with --trust sha256:HEX"
        )),
        error => JoinError(error.to_string()),
    })
}

/// Why the certificate of the controller at `host` was refused, if that is what the error says: a sentence that says what to do.
pub(super) fn refusal(error: &std::io::Error, host: &str) -> Option<String> {
    let tls = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(reason) = tls else { return None };
    Some(match reason {
        CertificateError::ApplicationVerificationFailure => format!(
            "the certificate of {host} has another fingerprint: compare --trust sha256:HEX with what the controller prints when it \
             starts; if they are the same, another server answers at this address"
        ),
        // The latter is of an authority that has the name of a trusted one, and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "no authority that this driver trusts has signed the certificate of {host}: name its authority with --trust FILE, or \
             the certificate itself with --trust sha256:HEX, which the controller prints when it starts"
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "the certificate of {host} is for other names: join under one of them, or name the certificate itself with --trust \
             sha256:HEX"
        ),
        other => format!(
            "the certificate of {host} is not valid ({other}): replace it, or accept it with --trust sha256:HEX"
        ),
    })
}
