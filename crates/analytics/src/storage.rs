//! Where tables are, opened: files of this machine, or a bucket of an S3 server.

use crate::job::{Storage, Target};
use crate::s3::Bucket;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use tidemark_object::job as object;
use tidemark_object::store::Store;
use tidemark_object::targets::Running;

/// Storage that is open.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub store: Arc<dyn ObjectStore>,
    /// The bucket that it is, over a network.
    pub bucket: Option<Bucket>,
    /// What all names begin with.
    pub root: Path,
    /// The directory that holds all files, if they are on this machine.
    pub directory: Option<PathBuf>,
}

/// Opens storage; `running` are the embedded servers of the run.
pub(crate) fn open(target: &Target, running: &[Running]) -> Result<Opened, String> {
    match &target.storage {
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
            let store = Store::open(&s3, bucket, target.connections).map_err(|error| error.to_string())?;
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
