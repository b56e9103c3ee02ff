//! Where tables are, as documents say it: the same keys for all engines on tables.

use crate::job::Storage;
use std::path::PathBuf;
use tidemark_keys::kinds::{BUCKET_NAME, Parsed, Text, Whole};
use tidemark_keys::shapes::Kinds;
use tidemark_keys::{Key, Mapping, Table};
use tidemark_object::targets;

/// What they are stored on.
pub static STORAGE: Key<Kinds> = Key::new("storage", "Where the tables are", Kinds(&STORAGES))
    .required("write `storage: {kind: files, directory: ...}`, or `{kind: s3, endpoint: ..., ...}`");
/// What they are stored on, where others than this process have to reach it.
pub static OBJECTS: Key<Kinds> =
    Key::new("storage", "Where the tables are, as Tidemark reaches it", Kinds(&[&targets::S3]))
        .required("write `storage: {kind: s3, endpoint: ..., access_key: ..., secret_key: ...}`");
static STORAGES: [&Mapping; 3] = [&FILES, &targets::S3, &targets::EMBEDDED];
static FILES: Mapping = Mapping::kind("files", "A directory of this machine", &[&DIRECTORY]);
static DIRECTORY: Key<Text> = Key::new("directory", "The directory; it is made if it is not there", Text)
    .required("such as /data/lake")
    .example("/data/lake");
/// The bucket.
pub static BUCKET: Key<Parsed<String>> =
    Key::new("bucket", "Bucket of an S3 server; it is made if it is not there", BUCKET_NAME)
        .default("tables")
        .expanded();
/// The prefix in it.
pub static PREFIX: Key<Text> =
    Key::new("prefix", "What the keys of all files in the bucket begin with", Text)
        .otherwise("nothing")
        .expanded();
/// Connections to the server.
pub static CONNECTIONS: Key<Whole<u32>> =
    Key::new("connections", "Connections to an S3 server: requests at once", Whole(1, 10_000)).default("32");
/// Where tables are.
#[derive(Clone, Debug)]
pub struct Place {
    /// What they are stored on.
    pub storage: Storage,
    /// Connections to the server, if they are on one.
    pub connections: u32,
}

/// Reads it from the mapping under `target`, where `storage` is the key that says what they are stored on; `None` after an error
/// that leaves nothing to go on with.
pub fn read(table: &mut Table<'_>, storage: &'static Key<Kinds>) -> Option<Place> {
    let (kind, mut below) = table.table_of_kind(storage)?;
    let storage = if kind.name == FILES.name {
        let directory = PathBuf::from(below.value(&DIRECTORY));
        below.finish();
        table.meaningless(&[&BUCKET, &PREFIX, &CONNECTIONS], "they are of S3 servers");
        Storage::Files { directory }
    } else {
        let server = targets::read(kind.name, &mut below)?;
        below.finish();
        let bucket = table.value(&BUCKET);
        let prefix = table.get(&PREFIX).unwrap_or_default();
        let prefix = prefix.trim_matches('/').to_owned();
        Storage::Objects { server: Box::new(server), bucket, prefix }
    };
    Some(Place { storage, connections: table.value(&CONNECTIONS) })
}
