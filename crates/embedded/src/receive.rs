//! Receives a body into a sink: counted, hashed, and checked against the client's headers.

use std::future::poll_fn;
use std::pin::Pin;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::body::{Body as _, Bytes};
use md5::{Digest as _, Md5};
use s3s::checksum::ChecksumHasher;
use s3s::crypto::Checksum as _;
use s3s::dto::{Checksum, StreamingBlob};
use s3s::{Body, S3Error, S3ErrorCode, S3Result, StdError, TrailingHeaders, s3_error};

use crate::backend::{Backend, Staged};

/// A body that was received completely and as announced.
pub(super) struct Received {
    pub(super) staged: Staged,
    pub(super) md5: [u8; 16],
}

/// What a client announces about its body.
#[derive(Default)]
pub(super) struct Announced {
    /// The size in bytes.
    length: Option<u64>,
    md5: Option<Vec<u8>>,
    /// Checksums by the name of their header. `None` stands for a value that comes after the body, in a trailer.
    checksums: Vec<(&'static ChecksumKind, Option<String>)>,
    trailers: Option<TrailingHeaders>,
}

/// One of the checksum algorithms of S3.
struct ChecksumKind {
    header: &'static str,
    start: fn(&mut ChecksumHasher),
    result: fn(&Checksum) -> Option<&String>,
}

static CHECKSUMS: [ChecksumKind; 5] = [
    ChecksumKind {
        header: "x-amz-checksum-crc32",
        start: |hasher| hasher.crc32 = Some(s3s::crypto::Crc32::new()),
        result: |sums| sums.checksum_crc32.as_ref(),
    },
    ChecksumKind {
        header: "x-amz-checksum-crc32c",
        start: |hasher| hasher.crc32c = Some(s3s::crypto::Crc32c::new()),
        result: |sums| sums.checksum_crc32c.as_ref(),
    },
    ChecksumKind {
        header: "x-amz-checksum-crc64nvme",
        start: |hasher| hasher.crc64nvme = Some(s3s::crypto::Crc64Nvme::new()),
        result: |sums| sums.checksum_crc64nvme.as_ref(),
    },
    ChecksumKind {
        header: "x-amz-checksum-sha1",
        start: |hasher| hasher.sha1 = Some(s3s::crypto::Sha1::new()),
        result: |sums| sums.checksum_sha1.as_ref(),
    },
    ChecksumKind {
        header: "x-amz-checksum-sha256",
        start: |hasher| hasher.sha256 = Some(s3s::crypto::Sha256::new()),
        result: |sums| sums.checksum_sha256.as_ref(),
    },
];

impl Announced {
    /// Reads the announcements of a request.
    pub(super) fn read(
        length: Option<i64>,
        md5: Option<&str>,
        headers: &HeaderMap,
        trailers: Option<TrailingHeaders>,
    ) -> S3Result<Self> {
        let md5 = match md5.map(|md5| STANDARD.decode(md5)) {
            Some(Ok(md5)) if md5.len() == 16 => Some(md5),
            Some(_) => return Err(s3_error!(InvalidDigest, "Content-MD5 is not the base64 of 16 bytes.")),
            None => None,
        };
        let trailed = headers.get("x-amz-trailer").and_then(|names| names.to_str().ok()).unwrap_or_default();
        let checksums = CHECKSUMS
            .iter()
            .filter_map(|kind| match headers.get(kind.header) {
                Some(value) => Some((kind, Some(value.to_str().unwrap_or_default().to_owned()))),
                None if trailed.split(',').any(|name| name.trim().eq_ignore_ascii_case(kind.header)) => {
                    Some((kind, None))
                }
                None => None,
            })
            .collect();
        Ok(Self { length: length.and_then(|length| u64::try_from(length).ok()), md5, checksums, trailers })
    }

    /// Compares what was announced with what came.
    fn verify(self, size: u64, md5: &[u8], sums: &Checksum) -> S3Result<()> {
        if self.length.is_some_and(|length| length != size) {
            return Err(s3_error!(
                IncompleteBody,
                "The body has {size} bytes, which is not its Content-Length."
            ));
        }
        if self.md5.is_some_and(|announced| announced != md5) {
            return Err(s3_error!(BadDigest, "The Content-MD5 you gave is not that of the body."));
        }
        let trailers = self.trailers.as_ref().and_then(TrailingHeaders::take);
        for (kind, value) in self.checksums {
            let trailed = || trailers.as_ref()?.get(kind.header)?.to_str().ok().map(str::to_owned);
            if value.or_else(trailed).as_ref() != (kind.result)(sums) {
                return Err(s3_error!(BadDigest, "The {} you gave is not that of the body.", kind.header));
            }
        }
        Ok(())
    }
}

/// Receives a client's body.
pub(super) async fn receive(
    body: Option<StreamingBlob>,
    announced: Announced,
    backend: &Backend,
) -> S3Result<Received> {
    take(body.map_or_else(Body::empty, Body::from), announced, backend).await
}

/// Receives a body from the store itself, of this size in bytes.
pub(super) async fn copy(body: Body, size: u64, backend: &Backend) -> S3Result<Received> {
    take(body, Announced { length: Some(size), ..Announced::default() }, backend).await
}

async fn take(mut body: Body, announced: Announced, backend: &Backend) -> S3Result<Received> {
    let mut md5 = Md5::new();
    let mut hasher = ChecksumHasher::default();
    for (kind, _) in &announced.checksums {
        (kind.start)(&mut hasher);
    }
    let mut sink = backend.sink(announced.length.unwrap_or_default());
    let mut size = 0;
    while let Some(bytes) = next(&mut body).await? {
        size += bytes.len() as u64;
        md5.update(&bytes);
        hasher.update(&bytes);
        sink.write(&bytes).await.map_err(S3Error::internal_error)?;
    }
    let md5: [u8; 16] = md5.finalize().into();
    announced.verify(size, &md5, &hasher.finalize())?;
    Ok(Received { staged: sink.finish(), md5 })
}

/// The next bytes of a body, `None` at its end.
async fn next(body: &mut Body) -> S3Result<Option<Bytes>> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
            Some(Err(error)) => return Err(broken(error)),
            None => return Ok(None),
        }
    }
}

/// The answer to a body that could not be read to its end.
///
/// `s3s` checks payload hashes and chunk signatures while the body streams by, with error types it does not export,
/// so their text has to tell them apart. A text that is not known is treated as a connection that broke.
fn broken(error: StdError) -> S3Error {
    let text = error.to_string();
    if text.contains("Sha256Mismatch") {
        let code =
            S3ErrorCode::from_bytes(b"XAmzContentSHA256Mismatch").unwrap_or(S3ErrorCode::InvalidRequest);
        let mut error =
            S3Error::with_message(code, "The x-amz-content-sha256 you gave is not that of the body.");
        error.set_status_code(hyper::StatusCode::BAD_REQUEST);
        return error;
    }
    if text.contains("SignatureMismatch") {
        return s3_error!(SignatureDoesNotMatch, "The signature of a chunk of the body is wrong.");
    }
    let mut answer = s3_error!(IncompleteBody, "The body ended early or is not what its headers announce.");
    answer.set_source(error);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(md5: Option<&str>, headers: &[(&'static str, &str)]) -> S3Result<Announced> {
        let headers = headers
            .iter()
            .map(|(name, value)| (hyper::header::HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        Announced::read(Some(5), md5, &headers, None)
    }

    async fn outcome(announced: Announced, body: &'static str) -> Option<S3ErrorCode> {
        let result = take(Body::from(Bytes::from_static(body.as_bytes())), announced, &Backend::Memory).await;
        result.err().map(|error| error.code().clone())
    }

    #[tokio::test]
    async fn a_body_must_be_what_was_announced() {
        assert_eq!(outcome(announced(Some("XUFAKrxLKna5cZ2REBfFkg=="), &[]).unwrap(), "hello").await, None);
        assert_eq!(
            outcome(announced(Some("XUFAKrxLKna5cZ2REBfFkg=="), &[]).unwrap(), "hellO").await,
            Some(S3ErrorCode::BadDigest)
        );
        assert_eq!(
            outcome(announced(None, &[]).unwrap(), "hello, too long").await,
            Some(S3ErrorCode::IncompleteBody)
        );
        let crc = announced(None, &[("x-amz-checksum-crc32", "NhCmhg==")]).unwrap();
        assert_eq!(outcome(crc, "hello").await, None);
        let crc = announced(None, &[("x-amz-checksum-crc32", "NhCmhg==")]).unwrap();
        assert_eq!(outcome(crc, "jello").await, Some(S3ErrorCode::BadDigest));
    }

    #[test]
    fn a_malformed_md5_is_told_from_a_wrong_one() {
        let code = announced(Some("not base64"), &[]).err().map(|error| error.code().clone());
        assert_eq!(code, Some(S3ErrorCode::InvalidDigest));
    }
}
