//! Server-side encryption: the headers that request it, and the reply's that confirms it.
//!
//! Names and values: "Protecting data with server-side encryption", Amazon S3 User Guide. A server that does not know these
//! headers ignores them and reports success; only its reply shows that nothing was encrypted.

use crate::http::{Head, Sink};
use crate::job::{Encryption, customer_key};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use tidemark_load::engine::OpenError;

/// A header's name, in small letters, and its value.
type Header = (&'static str, Vec<u8>);

const SERVER: &str = "x-amz-server-side-encryption";
const ALGORITHM: &str = "x-amz-server-side-encryption-customer-algorithm";

/// What a request does with the content of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// Nothing.
    Nothing,
    /// Makes an object, or begins to.
    Writes,
    /// Sends a part of an object that was begun.
    Continues,
    /// Makes an object of another one.
    Copies,
    /// Reads it, or its headers.
    Reads,
}

impl Concern {
    /// Whether an object is made.
    pub(super) fn makes(self) -> bool {
        matches!(self, Concern::Writes | Concern::Copies)
    }
}

/// The headers of a target's encryption, made once.
#[derive(Default)]
pub(super) struct Headers {
    /// Of the source of a copy.
    source: Vec<Header>,
    /// Of writes.
    writes: Vec<Header>,
    /// Of reads and parts, too: those that hold the key.
    key: Vec<Header>,
    /// What a reply must hold.
    confirmation: Option<(&'static str, &'static str)>,
}

impl Headers {
    /// Those of an encryption.
    ///
    /// # Errors
    /// When its key is none.
    pub(super) fn new(encryption: Option<&Encryption>) -> Result<Self, OpenError> {
        Ok(match encryption {
            None => Self::default(),
            Some(Encryption::Server) => Self {
                writes: vec![(SERVER, b"AES256".to_vec())],
                confirmation: Some((SERVER, "AES256")),
                ..Self::default()
            },
            Some(Encryption::Kms { key_id }) => {
                let key = key_id.iter().map(|id| (KMS_KEY, id.as_bytes().to_vec()));
                Self {
                    writes: [(SERVER, b"aws:kms".to_vec())].into_iter().chain(key).collect(),
                    confirmation: Some((SERVER, "aws:kms")),
                    ..Self::default()
                }
            }
            Some(Encryption::Customer { key }) => {
                let key = key.as_ref().ok_or(OpenError("the key of SSE-C has not been made".into()))?;
                let key = customer_key(key.reveal()).map_err(|wrong| OpenError(wrong.to_owned()))?;
                let digest = STANDARD.encode(Md5::digest(key));
                let values = [b"AES256".to_vec(), STANDARD.encode(key).into_bytes(), digest.into_bytes()];
                let named = |names: [&'static str; 3]| names.into_iter().zip(values.clone()).collect();
                Self {
                    source: named(OF_SOURCE),
                    writes: named(OF_CUSTOMER),
                    key: named(OF_CUSTOMER),
                    confirmation: Some((ALGORITHM, "AES256")),
                }
            }
        })
    }

    /// Those of the source of a copy.
    #[inline]
    pub(super) fn of_source(&self, concern: Concern) -> &[Header] {
        if concern == Concern::Copies { &self.source } else { &[] }
    }

    /// Those of a request, in the order of their names.
    #[inline]
    pub(super) fn of(&self, concern: Concern) -> &[Header] {
        match concern {
            Concern::Nothing => &[],
            Concern::Writes | Concern::Copies => &self.writes,
            Concern::Continues | Concern::Reads => &self.key,
        }
    }

    /// What the reply to a request must hold, if it must: the confirmation that the server did as it was told. Not all
    /// servers repeat it for every part.
    #[inline]
    pub(super) fn confirmation(&self, concern: Concern) -> Option<(&'static str, &'static str)> {
        let asked = concern != Concern::Continues && !self.of(concern).is_empty();
        self.confirmation.filter(|_| asked)
    }
}

const KMS_KEY: &str = "x-amz-server-side-encryption-aws-kms-key-id";
const OF_CUSTOMER: [&str; 3] =
    [ALGORITHM, "x-amz-server-side-encryption-customer-key", "x-amz-server-side-encryption-customer-key-md5"];
const OF_SOURCE: [&str; 3] = [
    "x-amz-copy-source-server-side-encryption-customer-algorithm",
    "x-amz-copy-source-server-side-encryption-customer-key",
    "x-amz-copy-source-server-side-encryption-customer-key-md5",
];

/// Passes a reply on, and sees whether it holds a confirmation.
pub(super) struct Confirming<'s, S: ?Sized> {
    intake: &'s mut S,
    awaited: Option<(&'static str, &'static str)>,
}

impl<'s, S: Sink + ?Sized> Confirming<'s, S> {
    pub(super) fn new(intake: &'s mut S, awaited: Option<(&'static str, &'static str)>) -> Self {
        Self { intake, awaited }
    }

    /// What the reply should have held and did not.
    #[inline]
    pub(super) fn missing(&self) -> Option<(&'static str, &'static str)> {
        self.awaited
    }
}

impl<S: Sink + ?Sized> Sink for Confirming<'_, S> {
    #[inline]
    fn head(&mut self, head: &Head<'_>) {
        self.awaited = self.awaited.filter(|(name, value)| head.get(name) != Some(value));
        self.intake.head(head);
    }

    #[inline]
    fn body(&mut self, piece: &[u8]) {
        self.intake.body(piece);
    }
}
