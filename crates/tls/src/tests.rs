//! Handshakes in memory with a server whose certificate was made for `storage.example`.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConnection, Error, ServerConfig, ServerConnection};

/// A server's certificate, in PEM and DER, and its key.
struct Identity {
    pem: String,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    fn new() -> Self {
        Self::made(|_| {})
    }

    /// As `openssl req -x509 -addext subjectAltName=DNS:storage.example` makes it: an authority's by its own words.
    fn authority() -> Self {
        Self::made(|with| with.is_ca = IsCa::Ca(BasicConstraints::Unconstrained))
    }

    fn made(change: impl Fn(&mut CertificateParams)) -> Self {
        let mut with = CertificateParams::new(vec!["storage.example".into()]).unwrap();
        change(&mut with);
        let key = KeyPair::generate().unwrap();
        let made = with.self_signed(&key).unwrap();
        Self {
            pem: made.pem(),
            certificate: made.der().clone(),
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        }
    }

    fn file(&self) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &self.pem).unwrap();
        file
    }

    /// What comes of a handshake with a client that asks for `name`.
    fn shake_hands(&self, trust: &Trust, name: &str) -> Result<(), Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(trust.client_config().unwrap(), name)?;
        let mut server = ServerConnection::new(Arc::new(config))?;
        while client.is_handshaking() || server.is_handshaking() {
            let mut wire = Vec::new();
            client.write_tls(&mut wire).unwrap();
            server.read_tls(&mut wire.as_slice()).unwrap();
            server.process_new_packets()?;
            wire.clear();
            while server.wants_write() {
                server.write_tls(&mut wire).unwrap();
            }
            let mut left = wire.as_slice();
            while !left.is_empty() {
                client.read_tls(&mut left).unwrap();
                client.process_new_packets()?;
            }
        }
        Ok(())
    }
}

#[test]
fn a_certificate_in_the_file_is_accepted_for_its_names_only() {
    accepted_for_its_names_only(&Identity::new());
}

#[test]
fn a_single_server_s_certificate_may_say_that_it_is_an_authority_s() {
    accepted_for_its_names_only(&Identity::authority());
    let past = Identity::made(|with| {
        with.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        with.not_after = date_time_ymd(2020, 1, 1);
    });
    let refused = past.shake_hands(&Trust::File(past.file().path().into()), "storage.example").unwrap_err();
    assert!(
        matches!(refused, Error::InvalidCertificate(CertificateError::ExpiredContext { .. })),
        "its dates hold: {refused}"
    );
}

fn accepted_for_its_names_only(identity: &Identity) {
    let file = identity.file();
    for trust in [Trust::File(file.path().into()), Trust::SystemAndFile(file.path().into())] {
        assert_eq!(identity.shake_hands(&trust, "storage.example"), Ok(()));
        let refused = identity.shake_hands(&trust, "other.example").unwrap_err();
        assert!(
            matches!(
                refused,
                Error::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
                )
            ),
            "{refused}"
        );
        for impostor in [Identity::new(), Identity::authority()] {
            let refused = impostor.shake_hands(&trust, "storage.example").unwrap_err();
            assert!(matches!(refused, Error::InvalidCertificate(_)), "{refused}");
        }
    }
}

#[test]
fn a_fingerprint_accepts_one_certificate_under_any_name() {
    let identity = Identity::new();
    let trust = Trust::Fingerprint(fingerprint(&identity.certificate));
    assert_eq!(identity.shake_hands(&trust, "other.example"), Ok(()));
    let refused = Identity::new().shake_hands(&trust, "storage.example");
    let expected = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
    assert_eq!(refused, Err(expected));
}

#[test]
fn any_certificate_is_accepted_under_any_name() {
    assert_eq!(Identity::new().shake_hands(&Trust::Any, "other.example"), Ok(()));
}

#[test]
fn files_without_certificates_are_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Trust::File(file.path().into()).client_config().unwrap_err().to_string();
    assert!(error.contains("it holds none") && error.contains(&*file.path().to_string_lossy()), "{error}");
    let missing = Trust::SystemAndFile("/nonexistent/ca.pem".into()).client_config().unwrap_err();
    assert!(missing.to_string().contains("/nonexistent/ca.pem"), "{missing}");
}

#[test]
fn trust_is_read_from_a_word_a_fingerprint_or_a_path() {
    assert_eq!("system".parse(), Ok(Trust::System));
    assert_eq!("/etc/ca.pem".parse(), Ok(Trust::File("/etc/ca.pem".into())));
    let fingerprint = Trust::Fingerprint([0xab; 32]);
    assert_eq!(format!("sha256:{}", "aB".repeat(32)).parse(), Ok(fingerprint.clone()));
    assert_eq!(format!("sha256:{}", ["ab"; 32].join(":")).parse(), Ok(fingerprint));
    for wrong in ["", "ab", &"ab".repeat(33), &"a".repeat(63), &"+a".repeat(32), &"ä".repeat(32)] {
        assert_eq!(format!("sha256:{wrong}").parse::<Trust>(), Err(NotAFingerprint), "{wrong}");
    }
}

#[test]
fn errors_do_not_send_their_readers_to_a_library_s_manual() {
    let error = std::io::Error::new(
        std::io::ErrorKind::UnexpectedEof,
        "peer closed connection without sending TLS close_notify: \
         https://docs.rs/rustls/latest/rustls/manual/_03_howto/index.html#unexpected-eof",
    );
    assert_eq!(words(&error), "peer closed connection without sending TLS close_notify");
    assert_eq!(words("no: https://example.org/"), "no: https://example.org/");
}
