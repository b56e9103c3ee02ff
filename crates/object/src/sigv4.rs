//! AWS Signature Version 4 in the Authorization header, for S3, and its chain over chunks.
//!
//! Formulas: "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)" and
//! "Signature Calculations for the Authorization Header: Transferring Payload in Multiple Chunks", Amazon S3
//! API Reference. What does not change from request to request is kept: the day's key as the midstate of its
//! HMAC, and for every second the state after the first lines of the string to sign.

use crate::client::{Chunker, Content};
use crate::text::{hexadecimal, push_hexadecimal};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use std::ops::Range;
use tidemark_plan::secret::Secret;

/// SHA-256 of nothing, in hexadecimal.
pub(crate) const EMPTY_SHA256: &[u8; 64] =
    b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A signature in hexadecimal.
pub(crate) type Signature = [u8; 64];

/// The payload's hash in the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadHash {
    /// Nothing: `UNSIGNED-PAYLOAD`.
    Unsigned,
    /// Its SHA-256 in hexadecimal.
    Sha256([u8; 64]),
    /// Every chunk has a signature of its own ([`Chain`]).
    Chunks,
}

impl PayloadHash {
    #[inline]
    fn text(&self) -> &[u8] {
        match self {
            PayloadHash::Unsigned => b"UNSIGNED-PAYLOAD",
            PayloadHash::Sha256(digits) => digits,
            PayloadHash::Chunks => b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        }
    }
}

/// A request to be signed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsigned<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, percent-encoded; empty for `/`.
    pub path: &'a [u8],
    /// The query, percent-encoded, its parameters sorted, each with a `=`; or empty.
    pub query: &'a [u8],
    /// The value of the `Host` header.
    pub host: &'a [u8],
    /// How the payload is signed.
    pub payload: PayloadHash,
    /// `x-amz-` headers beyond those that every request has, names in small letters and sorted.
    pub headers: &'a [(&'a str, &'a [u8])],
}

/// Signs requests with one key. One for each thread.
pub(crate) struct Signer {
    access_key: Secret,
    secret: Secret,
    region: String,
    token: Option<Secret>,
    moment: Moment,
    lines: Lines,
    /// The canonical request: kept for its memory.
    canonical: Vec<u8>,
}

/// What is the same for all requests of a second.
struct Moment {
    second: u64,
    /// `20261120T101500Z`; the day is its first eight.
    stamp: [u8; 16],
    /// The day's key.
    key: Hmac<Sha256>,
    /// After the string to sign as far as the scope.
    begun: Hmac<Sha256>,
    /// `20261120/us-east-1/s3/aws4_request`.
    scope: Vec<u8>,
}

/// What follows the path and the query: the same for all plain requests of a second to one host, and then
/// written once.
#[derive(Default)]
struct Lines {
    /// In the head, from the HTTP version to the signature.
    head: Vec<u8>,
    /// In the canonical request, from the first header line to its end.
    canonical: Vec<u8>,
    /// The names of the headers signed.
    names: Vec<u8>,
    /// The host.
    host: Vec<u8>,
    /// Whether the request was plain, and of this second.
    reusable: bool,
}

impl Signer {
    /// A signer. With an empty access key requests are not signed at all.
    pub(crate) fn new(access_key: &Secret, secret: &Secret, region: &str, token: Option<&Secret>) -> Self {
        let nobody = hmac(&[]);
        Self {
            access_key: access_key.clone(),
            secret: secret.clone(),
            region: region.to_owned(),
            token: token.cloned(),
            moment: Moment {
                second: u64::MAX,
                stamp: [0; 16],
                key: nobody.clone(),
                begun: nobody,
                scope: Vec::new(),
            },
            lines: Lines::default(),
            canonical: Vec::with_capacity(1024),
        }
    }

    /// Whether requests are signed.
    pub(crate) fn signs(&self) -> bool {
        !self.access_key.is_empty()
    }

    /// Appends the request line and the header lines that the signature covers, and the signature. `unix_s` is
    /// the time, in seconds since 1970.
    #[inline]
    pub(crate) fn sign(&mut self, unix_s: u64, request: &Unsigned<'_>, head: &mut Vec<u8>) -> Signature {
        let path = if request.path.is_empty() { b"/" } else { request.path };
        push(head, &[request.method.as_bytes(), b" ", path]);
        if !request.query.is_empty() {
            push(head, &[b"?", request.query]);
        }
        if !self.signs() {
            push(head, &[b" HTTP/1.1\r\nHost: ", request.host, b"\r\n"]);
            for (name, value) in request.headers {
                push(head, &[name.as_bytes(), b": ", value, b"\r\n"]);
            }
            return [b'0'; 64];
        }
        if self.moment.second != unix_s {
            self.turn_to(unix_s);
        }
        if !self.lines.suit(request) {
            self.write_lines(request);
        }
        self.canonical.clear();
        push(&mut self.canonical, &[request.method.as_bytes(), b"\n", path, b"\n", request.query, b"\n"]);
        self.canonical.extend_from_slice(&self.lines.canonical);
        let digest: [u8; 64] = hexadecimal(&Sha256::digest(&self.canonical).into());
        let mut signing = self.moment.begun.clone();
        signing.update(&digest);
        let signature = finish(signing);
        push(head, &[&self.lines.head, &signature, b"\r\n"]);
        signature
    }

    /// Writes the lines of a request: headers in the order of their names.
    fn write_lines(&mut self, request: &Unsigned<'_>) {
        let Lines { head, canonical, names, host, reusable } = &mut self.lines;
        *reusable = request.is_plain();
        [&mut *head, canonical, names, host].into_iter().for_each(Vec::clear);
        host.extend_from_slice(request.host);
        push(head, &[b" HTTP/1.1\r\nHost: ", request.host, b"\r\n"]);
        push(canonical, &[b"host:", request.host, b"\n"]);
        push(names, &[b"host"]);
        let token = self.token.as_ref().map(|token| ("x-amz-security-token", token.reveal().as_bytes()));
        let own = [
            Some(("x-amz-content-sha256", request.payload.text())),
            Some(("x-amz-date", &self.moment.stamp[..])),
            token,
        ];
        let mut add = |(name, value): (&str, &[u8])| {
            push(head, &[name.as_bytes(), b": ", value, b"\r\n"]);
            push(canonical, &[name.as_bytes(), b":", value, b"\n"]);
            push(names, &[b";", name.as_bytes()]);
        };
        let mut others = request.headers.iter().copied().peekable();
        for header in own.into_iter().flatten() {
            while let Some(other) = others.next_if(|other| other.0 < header.0) {
                add(other);
            }
            add(header);
        }
        others.for_each(add);
        push(canonical, &[b"\n", names, b"\n", request.payload.text()]);
        let (key, scope) = (self.access_key.reveal().as_bytes(), &self.moment.scope);
        push(head, &[b"Authorization: AWS4-HMAC-SHA256 Credential=", key, b"/", scope]);
        push(head, &[b", SignedHeaders=", names, b", Signature="]);
    }

    /// The chain of signatures over the chunks of the request that was just signed.
    pub(crate) fn chain(&self, seed: Signature) -> Chain {
        Chain {
            key: self.moment.key.clone(),
            stamp: self.moment.stamp,
            scope: self.moment.scope.clone(),
            previous: seed,
        }
    }

    /// Makes everything that depends on the time.
    #[cold]
    fn turn_to(&mut self, unix_s: u64) {
        let moment = &mut self.moment;
        let day_before = moment.stamp;
        moment.second = unix_s;
        self.lines.reusable = false;
        moment.stamp = stamp(unix_s);
        let day = &moment.stamp[..8];
        if day != &day_before[..8] {
            let mut key = hmac(&[b"AWS4", self.secret.reveal().as_bytes()].concat());
            for part in [day, self.region.as_bytes(), b"s3", b"aws4_request"] {
                key.update(part);
                key = hmac(&key.finalize().into_bytes());
            }
            moment.key = key;
            moment.scope = [day, b"/", self.region.as_bytes(), b"/s3/aws4_request"].concat();
        }
        moment.begun = moment.key.clone();
        for part in [b"AWS4-HMAC-SHA256\n", &moment.stamp[..], b"\n", &moment.scope, b"\n"] {
            moment.begun.update(part);
        }
    }
}

impl Unsigned<'_> {
    /// Whether nothing but its path and query distinguishes it from others to its host.
    #[inline]
    fn is_plain(&self) -> bool {
        self.headers.is_empty() && self.payload == PayloadHash::Unsigned
    }
}

impl Lines {
    /// Whether they are a request's own.
    #[inline]
    fn suit(&self, request: &Unsigned<'_>) -> bool {
        self.reusable && request.is_plain() && self.host == request.host
    }
}

/// Signs the chunks of a body (`aws-chunked`), each one's signature covering the one before.
pub(crate) struct Chain {
    key: Hmac<Sha256>,
    stamp: [u8; 16],
    scope: Vec<u8>,
    previous: Signature,
}

/// What stands between a chunk's size and its signature.
const CHUNK_SIGNATURE: &[u8] = b";chunk-signature=";

impl Chunker for Chain {
    fn wire_length(&self, size: u64) -> Option<u64> {
        let around = |size: u64| {
            let digits = u64::from((64 - size.leading_zeros()).div_ceil(4).max(1));
            digits + CHUNK_SIGNATURE.len() as u64 + 64 + 4 + size
        };
        let (full, rest) = (size / crate::client::CHUNK, size % crate::client::CHUNK);
        let rest = if rest == 0 { 0 } else { around(rest) };
        Some(full * around(crate::client::CHUNK) + rest + around(0))
    }

    fn open(&mut self, content: &Content<'_>, chunk: Range<u64>, out: &mut Vec<u8>) -> std::io::Result<()> {
        push_hexadecimal(out, chunk.end - chunk.start);
        let mut digest = Sha256::new();
        content.each(chunk, |piece| digest.update(piece))?;
        let digest: [u8; 64] = hexadecimal(&digest.finalize().into());
        let mut signing = self.key.clone();
        for part in [
            b"AWS4-HMAC-SHA256-PAYLOAD\n",
            &self.stamp[..],
            b"\n",
            &self.scope,
            b"\n",
            &self.previous,
            b"\n",
            EMPTY_SHA256,
            b"\n",
            &digest,
        ] {
            signing.update(part);
        }
        self.previous = finish(signing);
        push(out, &[CHUNK_SIGNATURE, &self.previous, b"\r\n"]);
        Ok(())
    }
}

#[inline]
fn push(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

#[inline]
fn finish(signing: Hmac<Sha256>) -> Signature {
    hexadecimal(&signing.finalize().into_bytes().into())
}

/// `YYYYMMDDTHHMMSSZ` of a time in seconds since 1970.
pub(crate) fn stamp(unix_s: u64) -> [u8; 16] {
    let (year, month, day) = civil(unix_s / 86_400);
    let second = unix_s % 86_400;
    let mut stamp = *b"00000000T000000Z";
    let mut put = |at: usize, digits: usize, mut number: u64| {
        for place in (at..at + digits).rev() {
            stamp[place] = b'0' + (number % 10) as u8;
            number /= 10;
        }
    };
    put(0, 4, year);
    put(4, 2, month);
    put(6, 2, day);
    put(9, 2, second / 3600);
    put(11, 2, second / 60 % 60);
    put(13, 2, second % 60);
    stamp
}

/// Year, month and day of a number of days since 1970: H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `civil_from_days`, for times after 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests;
