//! The index: which buckets, objects and multipart uploads exist. It is always in memory, whatever holds the bodies.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use s3s::dto::Timestamp;
use s3s::{S3Result, s3_error};
use serde::{Deserialize, Serialize};

use crate::backend::{Content, Staged};

/// The headers a client gave an object, kept to be given back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Attributes {
    pub(super) content_type: Option<String>,
    pub(super) content_encoding: Option<String>,
    pub(super) content_language: Option<String>,
    pub(super) content_disposition: Option<String>,
    pub(super) cache_control: Option<String>,
    pub(super) expires: Option<Timestamp>,
    pub(super) storage_class: Option<String>,
    /// The `x-amz-meta-` headers, without that prefix.
    pub(super) user: HashMap<String, String>,
}

/// One tag of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tag {
    pub(super) key: String,
    pub(super) value: String,
}

/// Everything about an object but its bytes; the disk backend stores it at the end of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Details {
    /// The ETag without quotes: the MD5 of the body in hex, or of its parts' MD5s and their number.
    pub(super) etag: String,
    pub(super) modified: SystemTime,
    pub(super) attributes: Attributes,
    pub(super) tags: Vec<Tag>,
}

/// One stored object.
#[derive(Clone)]
pub(super) struct Object {
    /// The size of the body in bytes.
    pub(super) size: u64,
    pub(super) details: Details,
    pub(super) content: Content,
}

/// Objects by key, in the byte order that S3 lists them in.
pub(super) type Objects = BTreeMap<String, Arc<Object>>;

/// One bucket.
pub(super) struct Bucket {
    pub(super) created: SystemTime,
    objects: Objects,
    bytes: u64,
}

impl Bucket {
    pub(super) fn new(created: SystemTime) -> Self {
        Self { created, objects: Objects::new(), bytes: 0 }
    }

    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Puts an object and gives back the one it replaces.
    pub(super) fn put(&mut self, key: String, object: Arc<Object>) -> Option<Arc<Object>> {
        self.bytes += object.size;
        let old = self.objects.insert(key, object);
        self.bytes -= old.as_ref().map_or(0, |old| old.size);
        old
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Arc<Object>> {
        let old = self.objects.remove(key)?;
        self.bytes -= old.size;
        Some(old)
    }
}

/// One part of a multipart upload.
pub(super) struct Part {
    pub(super) md5: [u8; 16],
    pub(super) size: u64,
    pub(super) modified: SystemTime,
    pub(super) staged: Staged,
}

/// A multipart upload in progress.
pub(super) struct Upload {
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) started: SystemTime,
    pub(super) attributes: Attributes,
    pub(super) tags: Vec<Tag>,
    /// Parts by number, 1 to 10000.
    pub(super) parts: BTreeMap<i32, Arc<Part>>,
}

/// How much a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holdings {
    pub(super) buckets: u64,
    pub(super) objects: u64,
    pub(super) object_bytes: u64,
    pub(super) uploads: u64,
}

/// Everything that exists.
#[derive(Default)]
pub(super) struct Catalogue {
    pub(super) buckets: BTreeMap<String, Bucket>,
    /// Uploads by their id.
    pub(super) uploads: HashMap<String, Upload>,
}

impl Catalogue {
    pub(super) fn bucket(&self, name: &str) -> S3Result<&Bucket> {
        self.buckets.get(name).ok_or_else(|| s3_error!(NoSuchBucket, "The bucket {name} does not exist."))
    }

    pub(super) fn bucket_mut(&mut self, name: &str) -> S3Result<&mut Bucket> {
        self.buckets.get_mut(name).ok_or_else(|| s3_error!(NoSuchBucket, "The bucket {name} does not exist."))
    }

    pub(super) fn object(&self, bucket: &str, key: &str) -> S3Result<&Arc<Object>> {
        let objects = self.bucket(bucket)?.objects();
        objects.get(key).ok_or_else(|| s3_error!(NoSuchKey, "The key {key} does not exist."))
    }

    /// The upload with this id, if it belongs to this bucket and key.
    pub(super) fn upload(&self, id: &str, bucket: &str, key: &str) -> S3Result<&Upload> {
        let upload = self.uploads.get(id).filter(|upload| upload.bucket == bucket && upload.key == key);
        upload.ok_or_else(|| no_such_upload(id))
    }

    pub(super) fn upload_mut(&mut self, id: &str, bucket: &str, key: &str) -> S3Result<&mut Upload> {
        let upload = self.uploads.get_mut(id).filter(|upload| upload.bucket == bucket && upload.key == key);
        upload.ok_or_else(|| no_such_upload(id))
    }

    pub(super) fn holdings(&self) -> Holdings {
        Holdings {
            buckets: self.buckets.len() as u64,
            objects: self.buckets.values().map(|bucket| bucket.objects.len() as u64).sum(),
            object_bytes: self.buckets.values().map(|bucket| bucket.bytes).sum(),
            uploads: self.uploads.len() as u64,
        }
    }
}

fn no_such_upload(id: &str) -> s3s::S3Error {
    s3_error!(NoSuchUpload, "The upload {id} does not exist; it may have been completed or aborted.")
}
