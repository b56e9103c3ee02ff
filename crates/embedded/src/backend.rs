//! Storage of bodies. A backend receives a body through a [`Sink`], holds it as [`Staged`] until it has a name, and
//! then as the [`Content`] of an object. There are two: `memory`, and `disk` with its `staged_file` and `object_file`.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use s3s::{Body, S3Error, S3Result};

use crate::catalogue::{Details, Part};
use crate::disk::Disk;
use crate::memory;
use crate::object_file::ObjectFile;
use crate::staged_file::{FileSink, StagedFile};

/// A place for bodies.
#[derive(Clone)]
pub(super) enum Backend {
    Memory,
    Disk(Arc<Disk>),
}

/// An incoming body.
pub(super) enum Sink {
    Memory(Vec<u8>),
    Disk(FileSink),
}

/// A complete body that is not an object yet: about to be named, or a part of an upload.
/// Dropping it frees what it takes.
pub(super) enum Staged {
    Memory(Bytes),
    Disk(StagedFile),
}

/// The body of an object.
#[derive(Clone)]
pub(super) enum Content {
    Memory(Bytes),
    Disk(ObjectFile),
}

impl Backend {
    /// Runs work that may wait for a disk: on a blocking thread, or in place if there is no disk.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> S3Result<T> + Send + 'static,
    ) -> S3Result<T> {
        match self {
            Self::Memory => work(),
            Self::Disk(_) => apart(work).await,
        }
    }

    /// Opens a sink for a body of about `expected` bytes.
    pub(super) fn sink(&self, expected: u64) -> Sink {
        match self {
            Self::Memory => Sink::Memory(memory::sink(expected)),
            Self::Disk(disk) => Sink::Disk(FileSink::new(Arc::clone(disk))),
        }
    }

    /// Joins parts into one body. Copies every byte, so call it from [`apart`].
    pub(super) fn join(&self, parts: &[Arc<Part>]) -> io::Result<Staged> {
        match self {
            Self::Memory => Ok(Staged::Memory(memory::join(parts))),
            Self::Disk(disk) => StagedFile::joined(disk, parts).map(Staged::Disk),
        }
    }

    /// Stages a copy of an object's body.
    pub(super) fn restage(&self, content: &Content) -> io::Result<Staged> {
        match (self, content) {
            (Self::Disk(disk), Content::Disk(file)) => StagedFile::copied(disk, file).map(Staged::Disk),
            (_, Content::Memory(bytes)) => Ok(Staged::Memory(bytes.clone())),
            // A store has one backend for its whole life.
            (Self::Memory, Content::Disk(_)) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes the metadata of a staged body, so that only [`Backend::place`] remains to be done.
    pub(super) fn seal(&self, staged: Staged, key: &str, details: &Details) -> io::Result<Staged> {
        match staged {
            Staged::Memory(bytes) => Ok(Staged::Memory(bytes)),
            Staged::Disk(file) => file.seal(key, details).map(Staged::Disk),
        }
    }

    /// Makes a sealed body an object's. Quick, as it is called under the catalogue's lock.
    pub(super) fn place(&self, staged: Staged, bucket: &str, key: &str) -> io::Result<Content> {
        match staged {
            Staged::Memory(bytes) => Ok(Content::Memory(bytes)),
            Staged::Disk(file) => file.place(bucket, key).map(Content::Disk),
        }
    }

    /// Removes the body of an object that is no longer in the catalogue.
    pub(super) fn discard(&self, content: &Content) -> io::Result<()> {
        match content {
            Content::Memory(_) => Ok(()),
            Content::Disk(file) => file.remove(),
        }
    }

    /// Makes earlier [`Backend::place`] and [`Backend::discard`] calls in a bucket durable, if the options ask for it.
    pub(super) fn settle(&self, bucket: &str) -> io::Result<()> {
        match self {
            Self::Memory => Ok(()),
            Self::Disk(disk) => disk.settle(bucket),
        }
    }

    pub(super) fn create_bucket(&self, name: &str) -> io::Result<()> {
        match self {
            Self::Memory => Ok(()),
            Self::Disk(disk) => disk.create_bucket(name),
        }
    }

    pub(super) fn remove_bucket(&self, name: &str) -> io::Result<()> {
        match self {
            Self::Memory => Ok(()),
            Self::Disk(disk) => disk.remove_bucket(name),
        }
    }
}

impl Sink {
    /// Takes the next bytes of the body.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            Self::Disk(sink) => sink.write(bytes).await,
        }
    }

    /// Ends the body.
    pub(super) fn finish(self) -> Staged {
        match self {
            Self::Memory(body) => Staged::Memory(body.into()),
            Self::Disk(sink) => Staged::Disk(sink.finish()),
        }
    }
}

impl Staged {
    /// The size of the body in bytes.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Disk(file) => file.size(),
        }
    }

    /// Moves the sink's buffer to the backend: a part may wait long for the end of its upload.
    pub(super) fn spill(self) -> io::Result<Self> {
        match self {
            Self::Memory(bytes) => Ok(Self::Memory(bytes)),
            Self::Disk(file) => file.spill().map(Self::Disk),
        }
    }
}

impl Content {
    /// A range of the body, to be streamed.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when the object was replaced or removed since it was looked up.
    pub(super) async fn open(&self, range: Range<u64>) -> io::Result<Body> {
        match self {
            Self::Memory(bytes) => memory::open(bytes, range),
            Self::Disk(file) => file.open(range).await,
        }
    }

    /// The same body with the byte at `offset` inverted; a file is changed where it is.
    pub(super) fn corrupted(&self, offset: u64) -> io::Result<Self> {
        match self {
            Self::Memory(bytes) => memory::corrupted(bytes, offset).map(Self::Memory),
            Self::Disk(file) => file.corrupt(offset).map(|()| Self::Disk(file.clone())),
        }
    }
}

/// Runs long or blocking work on a thread of its own kind, away from the threads that serve requests.
pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> S3Result<T> + Send + 'static,
) -> S3Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(S3Error::internal_error(error)))
}
