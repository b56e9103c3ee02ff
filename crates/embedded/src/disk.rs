//! Bodies on disk: one file per object in one directory per bucket.
//!
//! ```text
//! STORE                       marks the directory as a store; locked while a server uses it
//! staging/                    incoming bodies, and parts of uploads; emptied at every start
//! buckets/BUCKET/KEY.GENERATION.object
//! ```
//!
//! An object's file appears by one rename, body and all (see [`crate::object_file`]). Each write gets a higher generation
//! and so a name of its own; the older file is removed afterwards. A crash at any moment leaves the old object, the new
//! one, or both; then the higher generation counts. A reader never sees a file change under it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::Content;
use crate::catalogue::{Bucket, Catalogue};
use crate::error::EmbeddedError;
use crate::{names, object_file};

/// The name and the first line of the file that marks a directory as ours.
const MARKER: (&str, &str) = ("STORE", "tidemark embedded store, format 1\n");

/// A directory that holds buckets.
pub(super) struct Disk {
    root: PathBuf,
    durable: bool,
    /// The generation of the next object.
    generation: AtomicU64,
    /// Keeps the lock on the marker for as long as the directory is in use.
    _lock: File,
}

impl Disk {
    /// Opens a directory, creating what is missing, and reads back the catalogue of what it holds.
    ///
    /// Also returns the number of files that hold no whole object.
    pub(super) fn open(root: &Path, durable: bool) -> Result<(Self, Catalogue, u64), EmbeddedError> {
        let failed = |source| EmbeddedError::Directory { path: root.to_path_buf(), source };
        let lock = claim(root)?;
        let staging = root.join("staging");
        match fs::remove_dir_all(&staging) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => fs::create_dir(&staging).map_err(failed)?,
        }
        fs::create_dir_all(root.join("buckets")).map_err(failed)?;
        let disk = Self { root: root.to_path_buf(), durable, generation: AtomicU64::new(1), _lock: lock };
        let (catalogue, unreadable) = disk.load().map_err(failed)?;
        Ok((disk, catalogue, unreadable))
    }

    fn bucket(&self, name: &str) -> PathBuf {
        self.root.join("buckets").join(name)
    }

    /// Where bodies without a name are.
    pub(super) fn staging(&self) -> PathBuf {
        self.root.join("staging")
    }

    /// Whether what is written must outlive a crash of the machine.
    pub(super) fn durable(&self) -> bool {
        self.durable
    }

    /// The file of the next generation of an object.
    pub(super) fn new_object(&self, bucket: &str, key: &str) -> PathBuf {
        let generation = self.generation.fetch_add(1, Ordering::Relaxed);
        self.bucket(bucket).join(names::file_name(key, generation))
    }

    fn load(&self) -> io::Result<(Catalogue, u64)> {
        let (mut catalogue, mut unreadable) = (Catalogue::default(), 0);
        for entry in fs::read_dir(self.root.join("buckets"))? {
            let entry = entry?;
            if let (true, Ok(name)) = (entry.file_type()?.is_dir(), entry.file_name().into_string()) {
                let (bucket, spoiled) = self.load_bucket(&entry.path())?;
                unreadable += spoiled;
                catalogue.buckets.insert(name, bucket);
            }
        }
        Ok((catalogue, unreadable))
    }

    fn load_bucket(&self, directory: &Path) -> io::Result<(Bucket, u64)> {
        let about = fs::metadata(directory)?;
        let mut bucket = Bucket::new(about.created().or_else(|_| about.modified())?);
        let mut unreadable = 0;
        let mut files = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            match entry.file_name().to_str().and_then(names::generation) {
                Some(generation) => files.push((generation, entry.path())),
                None => unreadable += 1,
            }
        }
        // In rising order: a later generation replaces an earlier one whose file a crash left behind.
        files.sort_unstable();
        for (generation, path) in files {
            self.generation.fetch_max(generation.saturating_add(1), Ordering::Relaxed);
            let Some((key, object)) = object_file::load(path)? else {
                unreadable += 1;
                continue;
            };
            if let Some(old) = bucket.put(key, Arc::new(object))
                && let Content::Disk(file) = &old.content
            {
                file.remove()?;
            }
        }
        Ok((bucket, unreadable))
    }

    /// Makes renames and removals in a bucket durable.
    pub(super) fn settle(&self, bucket: &str) -> io::Result<()> {
        if self.durable { File::open(self.bucket(bucket))?.sync_all() } else { Ok(()) }
    }

    pub(super) fn create_bucket(&self, name: &str) -> io::Result<()> {
        fs::create_dir(self.bucket(name))?;
        if self.durable { File::open(self.root.join("buckets"))?.sync_all() } else { Ok(()) }
    }

    pub(super) fn remove_bucket(&self, name: &str) -> io::Result<()> {
        // The rename removes the bucket in one step, while files of deleted objects may still be being removed.
        let grave = tempfile::tempdir_in(self.staging())?;
        fs::rename(self.bucket(name), grave.path().join(name))?;
        if self.durable {
            File::open(self.root.join("buckets"))?.sync_all()?;
        }
        grave.close()
    }
}

/// Takes possession of a directory, which must be ours, empty or new: what is in it may be removed.
fn claim(root: &Path) -> Result<File, EmbeddedError> {
    let failed = |source| EmbeddedError::Directory { path: root.to_path_buf(), source };
    let foreign = || EmbeddedError::Foreign { path: root.to_path_buf() };
    fs::create_dir_all(root).map_err(failed)?;
    let (name, text) = MARKER;
    let others =
        fs::read_dir(root).map_err(failed)?.any(|entry| entry.is_ok_and(|entry| entry.file_name() != name));
    let marker = root.join(name);
    if others && !marker.exists() {
        return Err(foreign());
    }
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false).open(&marker);
    let mut file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(EmbeddedError::InUse { path: root.to_path_buf() }),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    let mut found = String::new();
    file.read_to_string(&mut found).map_err(failed)?;
    match found.as_str() {
        "" if !others => file.write_all(text.as_bytes()).map_err(failed)?,
        found if found == text => {}
        _ => return Err(foreign()),
    }
    Ok(file)
}
