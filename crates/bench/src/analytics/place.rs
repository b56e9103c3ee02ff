//! Where tables are: a directory, or a bucket of the embedded server in a process of its own.

use crate::{Done, own_path, pin};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer};

const BUCKET: &str = "tables";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Place {
    Files(PathBuf),
    Bucket { endpoint: String, access_key: String, secret_key: String },
}

impl Place {
    /// As a document names it.
    pub(crate) fn target(&self) -> String {
        match self {
            Place::Files(directory) => {
                format!(
                    "{{kind: datafusion, storage: {{kind: files, directory: '{}'}}}}",
                    directory.display()
                )
            }
            Place::Bucket { endpoint, access_key, secret_key } => {
                let storage = format!(
                    "{{kind: s3, endpoint: '{endpoint}', access_key: '{access_key}', secret_key: '{secret_key}'}}"
                );
                format!("{{kind: datafusion, storage: {storage}, bucket: {BUCKET}}}")
            }
        }
    }

    /// What `object_store` itself has for it.
    pub(crate) fn store(&self) -> Result<Arc<dyn ObjectStore>, String> {
        match self {
            Place::Files(directory) => {
                let store = LocalFileSystem::new_with_prefix(directory).map_err(|error| error.to_string())?;
                Ok(Arc::new(store))
            }
            Place::Bucket { endpoint, access_key, secret_key } => amazon(endpoint, access_key, secret_key),
        }
    }
}

#[cfg(feature = "peers")]
fn amazon(endpoint: &str, access_key: &str, secret_key: &str) -> Result<Arc<dyn ObjectStore>, String> {
    let client = object_store::aws::AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_bucket_name(BUCKET)
        .with_access_key_id(access_key)
        .with_secret_access_key(secret_key)
        .build();
    Ok(Arc::new(client.map_err(|error| error.to_string())?))
}

#[cfg(not(feature = "peers"))]
fn amazon(_: &str, _: &str, _: &str) -> Result<Arc<dyn ObjectStore>, String> {
    Err("object_store's S3 client is not built in: build with `--features peers`".into())
}

/// The server process: it says where it is, and ends with its standard input.
pub(crate) fn serve() -> Done {
    pin(0);
    let options = EmbeddedOptions { buckets: vec![BUCKET.into()], ..EmbeddedOptions::default() };
    let server = EmbeddedServer::start(options).map_err(|error| error.to_string())?;
    let place = Place::Bucket {
        endpoint: server.endpoint(),
        access_key: server.access_key().into(),
        secret_key: server.secret_key().into(),
    };
    let mut line = serde_json::to_string(&place).map_err(|error| error.to_string())?;
    line.push('\n');
    std::io::stdout().write_all(line.as_bytes()).map_err(|error| error.to_string())?;
    std::io::stdin().lines().for_each(drop);
    Ok(())
}

/// The embedded server, in memory, as a process on the first processor that ends with this value.
pub(crate) struct Server {
    child: Child,
    place: Place,
}

impl Server {
    pub(crate) fn start() -> Result<Self, String> {
        let mut command = Command::new(own_path()?);
        let child = command.arg("s3-server").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| error.to_string())?;
        let mut line = String::new();
        let said = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let place = said.and_then(Result::ok).and_then(|_| serde_json::from_str(&line).ok());
        let place = place.ok_or("the S3 server did not start")?;
        Ok(Self { child, place })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
