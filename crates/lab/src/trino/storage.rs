//! Where tables and their catalogue lie: a bucket of an S3 server.

use std::fmt;

use serde::{Deserialize, Serialize};
use tidemark_object::job::{Http, S3};
use tidemark_object::store::{Ask, Store};

use crate::error::LabError;

/// A bucket of an S3 server, addressed by path, and its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Which bucket of which server.
    pub bucket: Bucket,
    /// How to sign in to it.
    pub keys: Keys,
}

/// A bucket, without the right to use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The server, such as `http://127.0.0.1:27480`.
    pub s3: String,
    /// The region named in signatures.
    pub region: String,
    /// The bucket's name.
    pub bucket: String,
}

/// Keys of an S3 server. Debug output hides them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// The access key.
    pub access_key: String,
    /// The secret key.
    pub secret_key: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "bucket {} of {}", self.bucket, self.s3)
    }
}

impl Storage {
    /// Makes the bucket, unless it is there and ours.
    pub(super) fn make_bucket(&self) -> Result<(), LabError> {
        let Bucket { s3, region, bucket } = &self.bucket;
        let failed = |why: String| LabError::NoBucket { bucket: bucket.clone(), endpoint: s3.clone(), why };
        let target = S3 {
            http: Http { endpoints: vec![s3.clone()], ..Http::default() },
            access_key: self.keys.access_key.as_str().into(),
            secret_key: self.keys.secret_key.as_str().into(),
            session_token: None,
            region: region.clone(),
            path_style: true,
            sign_payload: false,
            storage_class: None,
            encryption: None,
        };
        let store = Store::open(&target, bucket, 1).map_err(|error| failed(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        runtime.block_on(store.ask(Ask::Create)).map(drop).map_err(|error| failed(error.to_string()))
    }
}
