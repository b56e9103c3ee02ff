//! How a controller proves itself where no certificate does: on plain HTTP.
//!
//! Whoever listens at an address gets nothing for that alone. A client asks for TLS within HTTP (RFC 2817) and names its token by a hash
//! that does not reveal it. The controller answers with the fingerprint of a certificate that it made at its start, and with an HMAC over
//! the client's nonce and that fingerprint. The key of the HMAC is the token's digest, which only the client and the controller have. All
//! that follows on this connection is TLS with the certificate of that fingerprint, so whoever carries the bytes, be it a tunnel or
//! somebody who took the port, neither reads nor changes them.

use super::trust;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rustls::pki_types::ServerName;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use subtle::ConstantTimeEq as _;
use tidemark_plan::secret::Secret;
use tidemark_tls::Trust;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Where a controller proves itself: a path of it.
pub const PATH: &str = "/api/v1/tls";

/// What the connection is upgraded to, as the header `Upgrade` has it.
pub const PROTOCOL: &str = "TLS/1.3";

/// The header that names the client's token: [`Key::id`].
pub const TOKEN: &str = "tidemark-token-id";

/// The header with the client's nonce: 64 hexadecimal digits.
pub const NONCE: &str = "tidemark-nonce";

/// The header with the SHA-256 of the controller's certificate: 64 hexadecimal digits.
pub const CERTIFICATE: &str = "tidemark-certificate";

/// The header with the proof: [`Key::proof`].
pub const PROOF: &str = "tidemark-proof";

/// Longest answer, bytes.
const LONGEST: usize = 8 << 10;

/// What a controller and whoever has a token know, and nobody else: the SHA-256 of the token.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of a token.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// The key of the token with this SHA-256.
    pub fn from_digest(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// Names the token to those who know it, and reveals nothing of it.
    pub fn id(&self) -> String {
        hexadecimal(&Sha256::new().chain_update("tidemark token\n").chain_update(self.0).finalize())
    }

    /// Proves that whoever has the certificate with this fingerprint knows the token.
    pub fn proof(&self, nonce: &str, fingerprint: &str) -> String {
        // HMAC takes keys of any length.
        let Ok(mut code) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        code.update(format!("tidemark controller\n{nonce}\n{fingerprint}").as_bytes());
        hexadecimal(&code.finalize().into_bytes())
    }
}

/// Why a connection is not used.
#[derive(Debug, PartialEq, Eq)]
pub enum Unproven {
    /// The server did not answer, or cannot at the moment: a clause.
    Away(String),
    /// The server did not prove that it is the controller: a clause.
    Other(String),
}

/// Has the server at the other end prove that it knows the token, and goes on over TLS with it. Nothing else was sent before. `host` is
/// the value of the header `Host`, and `path` is [`PATH`] below wherever the controller is.
///
/// # Errors
/// The server did not answer, or is another one.
pub async fn prove<S>(mut stream: S, host: &str, path: &str, token: &Secret) -> Result<TlsStream<S>, Unproven>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let away = |error: &dyn std::fmt::Display| Unproven::Away(tidemark_tls::words(error));
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| away(&error))?;
    let (key, nonce) = (Key::of(token.reveal()), hexadecimal(&random));
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n{TOKEN}: {}\r\n{NONCE}: {nonce}\r\n\r\n",
        key.id()
    );
    stream.write_all(request.as_bytes()).await.map_err(|error| away(&error))?;
    let answer = Answer::read(&mut stream).await?;
    let expected = key.proof(&nonce, &answer.fingerprint);
    if !bool::from(expected.as_bytes().ct_eq(answer.proof.as_bytes())) {
        return Err(Unproven::Other("it does not know the token".into()));
    }
    let trust: Result<Trust, _> = format!("sha256:{}", answer.fingerprint).parse();
    let trust = trust.map_err(|error| Unproven::Other(error.to_string()))?;
    let config = trust::client_config(&trust).map_err(|error| away(&error))?;
    // The certificate is known by its fingerprint, whatever its name.
    let name = ServerName::try_from("localhost").map_err(|error| away(&error))?;
    TlsConnector::from(config).connect(name, stream).await.map_err(|error| {
        let is_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some();
        match is_tls {
            true => Unproven::Other(format!(
                "what follows its proof is not from it: {}",
                tidemark_tls::words(&error)
            )),
            false => away(&error),
        }
    })
}

/// Reads bytes as the answer of a server, whole and in two pieces, as a connection may bring them: the answer is found once it is whole, and
/// not before. Returns whether it was found. For the fuzzer (`fuzz/`).
///
/// # Panics
/// When that does not hold.
pub fn rehearse(bytes: &[u8], cut: usize) -> bool {
    let whole = Answer::parse(bytes);
    let found = matches!(whole, Ok(Some(_)));
    let before = Answer::parse(&bytes[..cut.min(bytes.len())]);
    assert!(!found || cut >= bytes.len() || before == Ok(None), "{before:?} before the end");
    if let Err(Unproven::Away(reason) | Unproven::Other(reason)) = whole {
        assert!(reason.len() < 200 && !reason.contains(char::is_control), "{reason:?}");
    }
    found
}

/// What the server answers.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    fingerprint: String,
    proof: String,
}

impl Answer {
    async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Self, Unproven> {
        let (mut bytes, mut part) = (Vec::new(), [0; 1024]);
        loop {
            let count = stream.read(&mut part).await.map_err(|error| Unproven::Away(error.to_string()))?;
            if count == 0 {
                return Err(Unproven::Away("it closed the connection without an answer".into()));
            }
            bytes.extend_from_slice(&part[..count]);
            match Self::parse(&bytes)? {
                Some(answer) => return Ok(answer),
                None if bytes.len() > LONGEST => {
                    return Err(Unproven::Other("its answer does not end".into()));
                }
                None => {}
            }
        }
    }

    /// `None` while it is incomplete. Whatever speaks first after it is the client.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, Unproven> {
        let other = |what: &str| Unproven::Other(what.to_owned());
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => {
                return Err(other("it does not speak HTTP; with TLS, the address must begin with https://"));
            }
        };
        match response.code {
            Some(101) if length == bytes.len() => {}
            Some(503) => return Err(Unproven::Away("it cannot answer at the moment".into())),
            Some(101) => return Err(other("it sent more than was asked for")),
            code => return Err(Unproven::Other(format!("it answered {} instead", code.unwrap_or_default()))),
        }
        let header = |name: &str| {
            let mut all = response.headers.iter();
            let found = all.find(|header| header.name.eq_ignore_ascii_case(name));
            let text = found.and_then(|header| std::str::from_utf8(header.value).ok());
            text.map(str::to_owned).ok_or_else(|| other("its answer has no proof"))
        };
        Ok(Some(Self { fingerprint: header(CERTIFICATE)?, proof: header(PROOF)? }))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_for_one_token_one_nonce_and_one_certificate() {
        let key = Key::of("tm_o_1");
        let proof = key.proof("n", "f");
        assert_eq!(proof, Key::from_digest(Sha256::digest("tm_o_1").into()).proof("n", "f"));
        assert_eq!((proof.len(), key.id().len()), (64, 64));
        for other in [Key::of("tm_o_2").proof("n", "f"), key.proof("m", "f"), key.proof("n", "g"), key.id()] {
            assert_ne!(proof, other);
        }
        assert_ne!(key.id(), Key::of("tm_o_2").id());
        assert_ne!(key.id(), hexadecimal(&key.0), "the key itself does not travel");
    }

    #[test]
    fn an_answer_is_whole_and_nothing_else() {
        let parsed = |text: &str| Answer::parse(text.as_bytes());
        let whole = format!("HTTP/1.1 101 Yes\r\n{CERTIFICATE}: c\r\nTidemark-Proof: p\r\n\r\n");
        let answer = Answer { fingerprint: "c".into(), proof: "p".into() };
        assert_eq!(parsed(&whole), Ok(Some(answer)));
        assert!((0..whole.len()).all(|length| parsed(&whole[..length]) == Ok(None)));
        let other = |text: &str| match parsed(text) {
            Err(Unproven::Other(reason)) => reason,
            parsed => panic!("{text}: {parsed:?}"),
        };
        assert!(other(&(whole.clone() + "\x16")).contains("more than was asked"));
        assert!(other("HTTP/1.1 101 Yes\r\n\r\n").contains("no proof"));
        assert!(other("HTTP/1.1 404 No\r\n\r\n").contains("404"));
        assert!(other("\x15\x03\x03\0\x02\x02\x46").contains("https://"));
        assert!(matches!(parsed("HTTP/1.1 503 Wait\r\n\r\n"), Err(Unproven::Away(_))));
    }
}
