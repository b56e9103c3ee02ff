//! Where tables are, opened: files of this machine, or a bucket of an S3 server.

use crate::job::{Storage, Target};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use tidemark_object::job as object;
use tidemark_object::targets::Running;

/// Storage that is open.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub store: Arc<dyn ObjectStore>,
    /// What all names begin with.
    pub root: Path,
    /// Whether it is over a network, where ranges that are near to each other are read together.
    pub is_remote: bool,
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
                root: Path::default(),
                is_remote: false,
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
            let _ = (s3, bucket, prefix);
            Err("S3 is not there yet".into())
        }
    }
}
