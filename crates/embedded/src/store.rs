//! The store: the catalogue behind a lock, and the backend that holds the bodies it points to.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use s3s::{Body, S3Error, S3ErrorCode, S3Result, s3_error};

use crate::backend::{Backend, Staged};
use crate::catalogue::{Bucket, Catalogue, Details, Holdings, Object, Tag};
use crate::disk::Disk;
use crate::error::EmbeddedError;
use crate::options::Place;

/// How often a read looks up an object again that was replaced between lookup and opening. Losing this race even twice in
/// a row takes two writes of the same key within microseconds.
const LOOKUPS: usize = 16;

/// Buckets, objects and uploads.
pub(super) struct Store {
    catalogue: RwLock<Catalogue>,
    backend: Backend,
    unreadable_files: u64,
    /// Makes upload ids unique, even among those of an earlier server in the same directory.
    uploads_begun: AtomicU64,
    started: u128,
}

impl Store {
    /// Opens the store and creates missing `buckets`.
    pub(super) fn open(place: &Place, buckets: &[String]) -> Result<Self, EmbeddedError> {
        let (backend, catalogue, unreadable_files) = match place {
            Place::Memory => (Backend::Memory, Catalogue::default(), 0),
            Place::Directory { path, durable } => {
                let (disk, catalogue, unreadable) = Disk::open(path, *durable)?;
                (Backend::Disk(Arc::new(disk)), catalogue, unreadable)
            }
        };
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let store = Self {
            catalogue: RwLock::new(catalogue),
            backend,
            unreadable_files,
            uploads_begun: AtomicU64::new(0),
            started,
        };
        for bucket in buckets {
            store
                .require_bucket(bucket)
                .map_err(|reason| EmbeddedError::Option { option: "buckets", reason })?;
        }
        Ok(store)
    }

    fn require_bucket(&self, name: &str) -> Result<(), String> {
        if !s3s::path::check_bucket_name(name) {
            return Err(format!(
                "`{name}` is not a valid bucket name; use 3 to 63 of a-z, 0-9, dots and hyphens"
            ));
        }
        if self.read().buckets.contains_key(name) {
            return Ok(());
        }
        self.create_bucket(name).map_err(|error| format!("bucket `{name}` cannot be created: {error}"))
    }

    pub(super) fn backend(&self) -> &Backend {
        &self.backend
    }

    /// The catalogue for reading. A poisoned lock is still used: nothing panics while it changes the catalogue.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Catalogue> {
        self.catalogue.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The catalogue for writing. Held briefly: a rename is the longest operation under this lock.
    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Catalogue> {
        self.catalogue.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn holdings(&self) -> Holdings {
        self.read().holdings()
    }

    pub(super) fn unreadable_files(&self) -> u64 {
        self.unreadable_files
    }

    /// A new upload id.
    pub(super) fn upload_id(&self) -> String {
        format!("{:x}-{:x}", self.started, self.uploads_begun.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn create_bucket(&self, name: &str) -> S3Result<()> {
        let mut catalogue = self.write();
        if catalogue.buckets.contains_key(name) {
            return Err(s3_error!(BucketAlreadyOwnedByYou, "The bucket {name} exists and is yours."));
        }
        self.backend.create_bucket(name).map_err(S3Error::internal_error)?;
        catalogue.buckets.insert(name.to_owned(), Bucket::new(SystemTime::now()));
        Ok(())
    }

    pub(super) fn delete_bucket(&self, name: &str) -> S3Result<()> {
        let mut catalogue = self.write();
        if !catalogue.bucket(name)?.objects().is_empty() {
            return Err(s3_error!(
                BucketNotEmpty,
                "The bucket {name} is not empty; delete its objects first."
            ));
        }
        self.backend.remove_bucket(name).map_err(S3Error::internal_error)?;
        catalogue.buckets.remove(name);
        catalogue.uploads.retain(|_, upload| upload.bucket != name);
        Ok(())
    }

    pub(super) fn object(&self, bucket: &str, key: &str) -> S3Result<Arc<Object>> {
        self.read().object(bucket, key).cloned()
    }

    /// Looks an object up, lets `choose` refuse it or pick a range of its body, and opens that range.
    pub(super) async fn open_object(
        &self,
        bucket: &str,
        key: &str,
        choose: impl Fn(&Object) -> S3Result<Range<u64>>,
    ) -> S3Result<(Arc<Object>, Range<u64>, Body)> {
        for _ in 0..LOOKUPS {
            let object = self.object(bucket, key)?;
            let range = choose(&object)?;
            match object.content.open(range.clone()).await {
                Ok(body) => return Ok((object, range, body)),
                // The object was replaced or removed since the lookup; what is there now counts.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(S3Error::internal_error(error)),
            }
        }
        Err(s3_error!(InternalError, "The file of {key} is missing."))
    }

    /// Makes a staged body an object, unless `allowed` refuses after reading the catalogue. The check, the change on
    /// the medium and the change of the catalogue are one step for every other request.
    pub(super) fn publish(
        &self,
        (bucket, key): (&str, &str),
        staged: Staged,
        details: Details,
        allowed: impl FnOnce(&mut Catalogue) -> S3Result<()>,
    ) -> S3Result<Arc<Object>> {
        let size = staged.size();
        let sealed = self.backend.seal(staged, key, &details).map_err(S3Error::internal_error)?;
        let mut catalogue = self.write();
        allowed(&mut catalogue)?;
        let home = catalogue.bucket_mut(bucket)?;
        let content = self.backend.place(sealed, bucket, key).map_err(S3Error::internal_error)?;
        let object = Arc::new(Object { size, details, content });
        let old = home.put(key.to_owned(), Arc::clone(&object));
        drop(catalogue);
        self.bury(bucket, old.as_deref())?;
        Ok(object)
    }

    /// Removes an object if it exists, unless `allowed` refuses it.
    pub(super) fn remove(
        &self,
        bucket: &str,
        key: &str,
        allowed: impl FnOnce(Option<&Object>) -> S3Result<()>,
    ) -> S3Result<()> {
        let mut catalogue = self.write();
        let home = catalogue.bucket_mut(bucket)?;
        allowed(home.objects().get(key).map(AsRef::as_ref))?;
        let old = home.remove(key);
        drop(catalogue);
        match old {
            Some(old) => self.bury(bucket, Some(&old)),
            None => Ok(()),
        }
    }

    /// Removes the body of an object that left the catalogue, durably.
    fn bury(&self, bucket: &str, old: Option<&Object>) -> S3Result<()> {
        let discarded = old.map_or(Ok(()), |old| self.backend.discard(&old.content));
        match discarded.and_then(|()| self.backend.settle(bucket)) {
            // The bucket was deleted meanwhile, and the file with it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(S3Error::internal_error),
        }
    }

    /// Replaces an object's tags.
    ///
    /// On disk this rewrites the object's file: tags live in its trailer, so that they can never belong to another
    /// generation of the object.
    pub(super) fn retag(&self, bucket: &str, key: &str, tags: &[Tag]) -> S3Result<()> {
        for _ in 0..LOOKUPS {
            let old = self.object(bucket, key)?;
            let staged = match self.backend.restage(&old.content) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                staged => staged.map_err(S3Error::internal_error)?,
            };
            let details = Details { tags: tags.to_vec(), ..old.details.clone() };
            let replaced = self.publish((bucket, key), staged, details, |catalogue| {
                let unchanged = Arc::ptr_eq(catalogue.object(bucket, key)?, &old);
                if unchanged { Ok(()) } else { Err(S3ErrorCode::OperationAborted.into()) }
            });
            match replaced {
                // The object was replaced since the lookup; the tags belong to what is there now.
                Err(error) if *error.code() == S3ErrorCode::OperationAborted => {}
                other => return other.map(drop),
            }
        }
        Err(s3_error!(
            OperationAborted,
            "The object {key} is being replaced too often to be tagged; try again."
        ))
    }

    /// Inverts one byte of a stored body without any client noticing.
    pub(super) fn corrupt(&self, bucket: &str, key: &str, offset: u64) -> Result<(), EmbeddedError> {
        let mut catalogue = self.write();
        let missing = || EmbeddedError::NoSuchObject { bucket: bucket.to_owned(), key: key.to_owned() };
        let object = catalogue.object(bucket, key).map_err(|_| missing())?.as_ref().clone();
        let size = object.size;
        if offset >= size {
            return Err(EmbeddedError::PastEnd {
                bucket: bucket.to_owned(),
                key: key.to_owned(),
                size,
                offset,
            });
        }
        let content = object
            .content
            .corrupted(offset)
            .map_err(|source| EmbeddedError::Directory { path: key.into(), source })?;
        let home = catalogue.bucket_mut(bucket).map_err(|_| missing())?;
        home.put(key.to_owned(), Arc::new(Object { content, ..object }));
        Ok(())
    }
}
