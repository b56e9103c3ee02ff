//! Where tables are, opened: files of this machine, or a bucket of an S3 server.

use crate::tables::failure::Failure;
use crate::tables::s3::Bucket;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use tidemark_analytics::job::Storage;
use tidemark_object::job as object;
use tidemark_object::store::Store;
use tidemark_object::targets::Running;

/// Storage that is open.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    /// What reads and writes there.
    pub(crate) store: Arc<dyn ObjectStore>,
    /// The bucket that it is, over a network.
    bucket: Option<Bucket>,
    /// What all names begin with.
    pub(crate) root: Path,
    /// The directory that holds all files, if they are on this machine.
    pub(crate) directory: Option<PathBuf>,
}

impl Opened {
    /// Whether it is over a network.
    pub(crate) fn is_remote(&self) -> bool {
        self.bucket.is_some()
    }

    /// What sends requests over a network, and counts them.
    pub(crate) fn client(&self) -> Option<Arc<Store>> {
        self.bucket.as_ref().map(|bucket| Arc::clone(bucket.client()))
    }

    /// Makes the bucket, unless it is there and ours; files need none.
    ///
    /// # Errors
    /// Why the server did not make it.
    pub(crate) async fn create_bucket(&self) -> Result<(), Failure> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        bucket.create().await.map_err(|refused| Failure::new(refused.fault, refused.words))
    }
}

/// Opens storage over as many connections, if it is remote; `running` are the embedded servers of the run.
///
/// # Errors
/// A sentence that says what cannot be opened.
pub(crate) fn open(storage: &Storage, connections: u32, running: &[Running]) -> Result<Opened, String> {
    match storage {
        Storage::Files { directory } => {
            let opened =
                std::fs::create_dir_all(directory).map_err(|error| error.to_string()).and_then(|()| {
                    LocalFileSystem::new_with_prefix(directory).map_err(|error| error.to_string())
                });
            let store = opened.map_err(|error| {
                let shown = directory.display();
                format!("cannot keep tables in {shown}: {error}; use another `directory`, or change its permissions")
            })?;
            Ok(Opened {
                store: Arc::new(store.with_automatic_cleanup(true)),
                bucket: None,
                root: Path::default(),
                directory: Some(directory.clone()),
            })
        }
        Storage::Objects { server, bucket, prefix } => {
            let s3 = match &**server {
                object::Target::S3(s3) => s3.clone(),
                object::Target::Embedded(embedded) => {
                    let server = running.iter().find(|server| server.plan() == embedded);
                    server.ok_or("the embedded server was not started")?.target()
                }
                _ => return Err("tables are kept in files or on S3".into()),
            };
            let store = Store::open(&s3, bucket, connections).map_err(|error| error.to_string())?;
            let bucket = Bucket::new(store, bucket);
            Ok(Opened {
                store: Arc::new(bucket.clone()),
                bucket: Some(bucket),
                root: Path::from(prefix.as_str()),
                directory: None,
            })
        }
    }
}
