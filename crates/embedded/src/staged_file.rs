//! Bodies on disk that have no name yet: those that are coming in, and parts of multipart uploads.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use tempfile::{NamedTempFile, TempPath};

use crate::backend::Staged;
use crate::catalogue::{Details, Part};
use crate::disk::Disk;
use crate::object_file::{self, ObjectFile};

/// How much of a body waits in memory before it is written, in bytes.
const CHUNK: usize = 256 * 1024;

/// A body on its way to a file. A body of less than one chunk waits in memory, so that it costs one trip to a
/// blocking thread in all.
pub(super) struct FileSink(StagedFile);

impl FileSink {
    pub(super) fn new(disk: Arc<Disk>) -> Self {
        Self(StagedFile::empty(disk))
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.tail.extend_from_slice(bytes);
        if self.0.tail.len() < CHUNK {
            return Ok(());
        }
        let empty = StagedFile::empty(Arc::clone(&self.0.disk));
        let full = std::mem::replace(&mut self.0, empty);
        self.0 = tokio::task::spawn_blocking(|| full.spill()).await.map_err(io::Error::other)??;
        Ok(())
    }

    pub(super) fn finish(self) -> StagedFile {
        self.0
    }
}

/// A body without a name: what was spilled to a temporary file, and the tail still in memory.
/// Dropping it removes the file.
pub(super) struct StagedFile {
    disk: Arc<Disk>,
    file: Option<TempPath>,
    spilled: u64,
    tail: Vec<u8>,
}

impl StagedFile {
    fn empty(disk: Arc<Disk>) -> Self {
        Self { disk, file: None, spilled: 0, tail: Vec::new() }
    }

    /// A new file, filled by `fill`, which returns how many bytes it wrote.
    fn filled(disk: &Arc<Disk>, fill: impl FnOnce(&mut File) -> io::Result<u64>) -> io::Result<Self> {
        let mut staged = Self::empty(Arc::clone(disk));
        let (mut file, path) = staged.create()?.into_parts();
        staged.file = Some(path);
        staged.spilled = fill(&mut file)?;
        Ok(staged)
    }

    /// Parts joined into one new file.
    pub(super) fn joined(disk: &Arc<Disk>, parts: &[Arc<Part>]) -> io::Result<Self> {
        Self::filled(disk, |file| {
            let mut size = 0;
            for part in parts {
                if let Staged::Disk(Self { file: Some(part), .. }) = &part.staged {
                    size += io::copy(&mut File::open(part)?, file)?;
                }
            }
            Ok(size)
        })
    }

    /// A copy of an object's body.
    pub(super) fn copied(disk: &Arc<Disk>, object: &ObjectFile) -> io::Result<Self> {
        Self::filled(disk, |file| object.copy_to(file))
    }

    pub(super) fn size(&self) -> u64 {
        self.spilled + self.tail.len() as u64
    }

    fn create(&self) -> io::Result<NamedTempFile> {
        NamedTempFile::new_in(self.disk.staging())
    }

    /// Writes the tail to the file; returns the file, open.
    fn write_tail(&mut self) -> io::Result<File> {
        let mut file = match &self.file {
            Some(path) => File::options().append(true).open(path)?,
            None => {
                let (file, path) = self.create()?.into_parts();
                self.file = Some(path);
                file
            }
        };
        file.write_all(&self.tail)?;
        self.spilled += self.tail.len() as u64;
        self.tail.clear();
        Ok(file)
    }

    pub(super) fn spill(mut self) -> io::Result<Self> {
        self.write_tail()?;
        Ok(self)
    }

    /// Appends the trailer and, in a durable store, waits until the file is on the medium.
    pub(super) fn seal(mut self, key: &str, details: &Details) -> io::Result<Self> {
        let size = self.size();
        self.tail.extend_from_slice(&object_file::trailer(size, key, details)?);
        let file = self.write_tail()?;
        if self.disk.durable() {
            file.sync_data()?;
        }
        self.spilled = size;
        Ok(self)
    }

    /// Renames a sealed file to an object's.
    pub(super) fn place(self, bucket: &str, key: &str) -> io::Result<ObjectFile> {
        let path = self.disk.new_object(bucket, key);
        let file = self.file.ok_or(io::ErrorKind::NotFound)?;
        file.persist_noclobber(&path).map_err(|refused| refused.error)?;
        Ok(ObjectFile::new(path, self.spilled))
    }
}
