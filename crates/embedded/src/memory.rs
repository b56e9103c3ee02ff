//! Bodies in memory: one allocation each, shared with every answer that sends them.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use s3s::Body;

use crate::backend::Staged;
use crate::catalogue::Part;

/// The most memory that is reserved for a `Content-Length` header, in bytes. Larger bodies grow as they arrive.
const RESERVED: u64 = 64 * 1024 * 1024;

/// An empty body with room for what is expected.
pub(super) fn sink(expected: u64) -> Vec<u8> {
    Vec::with_capacity(usize::try_from(expected.min(RESERVED)).unwrap_or_default())
}

/// All parts, one after the other.
pub(super) fn join(parts: &[Arc<Part>]) -> Bytes {
    let pieces: Vec<&[u8]> = parts
        .iter()
        .map(|part| match &part.staged {
            Staged::Memory(bytes) => &bytes[..],
            // A store has one backend for its whole life, so its parts are in memory as well.
            Staged::Disk(_) => &[],
        })
        .collect();
    pieces.concat().into()
}

/// A range of a body, without copying it.
pub(super) fn open(body: &Bytes, range: Range<u64>) -> io::Result<Body> {
    let position = |offset: u64| usize::try_from(offset).ok().filter(|&offset| offset <= body.len());
    match (position(range.start), position(range.end)) {
        (Some(start), Some(end)) if start <= end => Ok(Body::from(body.slice(start..end))),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// A copy of a body with one byte inverted; answers in progress keep the old one.
pub(super) fn corrupted(body: &Bytes, offset: u64) -> io::Result<Bytes> {
    let mut copy = body.to_vec();
    let byte = usize::try_from(offset).ok().and_then(|offset| copy.get_mut(offset));
    *byte.ok_or(io::ErrorKind::InvalidInput)? ^= 0xff;
    Ok(copy.into())
}
