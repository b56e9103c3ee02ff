//! The file of an object: its format, and reading from it.
//!
//! The body comes first, so that `head -c SIZE` shows it. After it comes a trailer: what the catalogue knows about the
//! object as JSON, and a footer of 24 bytes: the sizes of body (8 bytes) and JSON (4), the CRC-32 of the JSON (4), all
//! little-endian, and a magic word (8). The body's own checksum is its ETag.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use s3s::Body;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::backend::Content;
use crate::catalogue::{Details, Object};

/// The last eight bytes of every object's file.
const MAGIC: &[u8; 8] = b"TIDEOBJ1";

/// The size of the footer in bytes.
const FOOTER: usize = 24;

/// How much of a body is read at a time, in bytes.
const CHUNK: usize = 256 * 1024;

/// The JSON of a trailer.
#[derive(Serialize, Deserialize)]
struct Trailer<Key, Known> {
    key: Key,
    details: Known,
}

/// Reads the trailer of an object's file; `None` when the file holds no whole object.
pub(super) fn load(path: PathBuf) -> io::Result<Option<(String, Object)>> {
    let mut file = File::open(&path)?;
    let length = file.metadata()?.len();
    let mut footer = [0; FOOTER];
    if length < FOOTER as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut footer, length - FOOTER as u64)?;
    let number =
        |range: Range<usize>| footer[range].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let (size, json, crc) = (number(0..8), number(8..12), number(12..16));
    if &footer[16..] != MAGIC || size.checked_add(json + FOOTER as u64) != Some(length) {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(size))?;
    file.take(json).read_to_end(&mut text)?;
    if u64::from(crc32fast::hash(&text)) != crc {
        return Ok(None);
    }
    let content = Content::Disk(ObjectFile::new(path, size));
    Ok(serde_json::from_slice(&text)
        .ok()
        .map(|Trailer { key, details }| (key, Object { size, details, content })))
}

/// The trailer of a file whose body has this size in bytes.
pub(super) fn trailer(size: u64, key: &str, details: &Details) -> io::Result<Vec<u8>> {
    let mut trailer = serde_json::to_vec(&Trailer { key, details })?;
    let crc = crc32fast::hash(&trailer);
    let json = u32::try_from(trailer.len()).map_err(io::Error::other)?;
    trailer.extend_from_slice(&size.to_le_bytes());
    trailer.extend_from_slice(&json.to_le_bytes());
    trailer.extend_from_slice(&crc.to_le_bytes());
    trailer.extend_from_slice(MAGIC);
    Ok(trailer)
}

/// The file of an object.
#[derive(Clone)]
pub(super) struct ObjectFile {
    path: Arc<Path>,
    /// The size of the body in bytes; the trailer comes after it.
    size: u64,
}

impl ObjectFile {
    /// A file that was written and named.
    pub(super) fn new(path: PathBuf, size: u64) -> Self {
        Self { path: path.into(), size }
    }

    /// Copies the body, without the trailer; returns its size in bytes.
    pub(super) fn copy_to(&self, file: &mut File) -> io::Result<u64> {
        io::copy(&mut File::open(&self.path)?.take(self.size), file)
    }

    /// Removes the file; a bucket that is being removed may have taken it along already.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) fn corrupt(&self, offset: u64) -> io::Result<()> {
        if offset >= self.size {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = File::options().read(true).write(true).open(&self.path)?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset)?;
        file.write_all_at(&[!byte[0]], offset)
    }

    /// Opens the file and reads the first chunk of the range; the rest is read as the client takes it.
    pub(super) async fn open(&self, range: Range<u64>) -> io::Result<Body> {
        let path = Arc::clone(&self.path);
        let begin = move || {
            let file = Arc::new(File::open(&path)?);
            let first = read_chunk(&file, &range)?;
            let next = range.start + first.len() as u64..range.end;
            Ok::<_, io::Error>((file, first, next))
        };
        let (file, first, rest) = tokio::task::spawn_blocking(begin).await.map_err(io::Error::other)??;
        if rest.is_empty() {
            return Ok(Body::from(first));
        }
        Ok(Body::http_body(FileBody { file, first: Some(first), rest, reading: None }))
    }
}

/// Reads the beginning of a range.
fn read_chunk(file: &File, range: &Range<u64>) -> io::Result<Bytes> {
    let length = usize::try_from(range.end - range.start).unwrap_or(CHUNK).min(CHUNK);
    let mut chunk = vec![0; length];
    file.read_exact_at(&mut chunk, range.start)?;
    Ok(chunk.into())
}

/// A range of a file, read a chunk at a time on blocking threads.
struct FileBody {
    file: Arc<File>,
    first: Option<Bytes>,
    rest: Range<u64>,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl hyper::body::Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if this.rest.is_empty() {
            return Poll::Ready(None);
        }
        let reading = this.reading.get_or_insert_with(|| {
            let (file, rest) = (Arc::clone(&this.file), this.rest.clone());
            tokio::task::spawn_blocking(move || read_chunk(&file, &rest))
        });
        let chunk =
            ready!(Pin::new(reading).poll(context)).unwrap_or_else(|error| Err(io::Error::other(error)));
        this.reading = None;
        Poll::Ready(Some(chunk.map(|chunk| {
            this.rest.start += chunk.len() as u64;
            Frame::data(chunk)
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().map_or(0, |first| first.len() as u64);
        SizeHint::with_exact(first + (self.rest.end - self.rest.start))
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::catalogue::{Attributes, Tag};

    #[test]
    fn a_file_is_an_object_only_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let tags = vec![Tag { key: "k".into(), value: "v".into() }];
        let user = [("colour".to_owned(), "blue".to_owned())].into();
        let expires = Some(SystemTime::UNIX_EPOCH.into());
        let attributes = Attributes { user, expires, ..Attributes::default() };
        let details = Details { etag: "etag".into(), modified: SystemTime::now(), attributes, tags };
        let mut file = b"body".to_vec();
        file.extend(trailer(4, "key/with/slashes", &details).unwrap());

        fs::write(&path, &file).unwrap();
        let (key, object) = load(path.clone()).unwrap().unwrap();
        assert_eq!((key.as_str(), object.size), ("key/with/slashes", 4));
        assert_eq!(object.details, details);
        for length in 0..file.len() {
            fs::write(&path, &file[..length]).unwrap();
            assert!(load(path.clone()).unwrap().is_none(), "{length} of {} bytes", file.len());
        }
        for damaged in 4..file.len() {
            let mut file = file.clone();
            file[damaged] ^= 1;
            fs::write(&path, &file).unwrap();
            assert!(load(path.clone()).unwrap().is_none(), "byte {damaged} of {} is damaged", file.len());
        }
    }
}
