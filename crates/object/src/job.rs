//! A work on object storage, typed and validated: its target and its actions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
pub use tidemark_plan::content::{Content, Form};
use tidemark_plan::job::JobData;
use tidemark_plan::plan::Work;
use tidemark_plan::secret::Secret;

/// The engine's name.
pub const ENGINE: &str = "object";

/// The region named in S3 signatures, unless a target names another.
pub const REGION: &str = "us-east-1";

/// A target and what the work's actions do to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What it talks to.
    pub target: Target,
    /// The actions, in the order in which operations refer to them.
    pub actions: Vec<Action>,
}

impl JobData for Job {
    fn engine(&self) -> &'static str {
        ENGINE
    }

    fn is_simulated(&self) -> bool {
        matches!(self.target, Target::Mock(_) | Target::Nothing)
    }

    fn is_in_process(&self) -> bool {
        matches!(self.target, Target::Embedded(_))
    }
}

impl Job {
    /// The job of a work; `None` if the work is of another engine.
    pub fn of(work: &Work) -> Option<&Job> {
        work.job.get()
    }
}

/// What an object work talks to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Target {
    /// Amazon S3 and what speaks its protocol.
    S3(S3),
    /// OpenStack Swift.
    Swift(Swift),
    /// COSBench's mock: waits and succeeds, or fails by a probability.
    Mock(Mock),
    /// COSBench's `none`: succeeds at once.
    Nothing,
    /// The S3 server inside Tidemark, which runs as long as its run is prepared.
    Embedded(Embedded),
}

impl Target {
    /// How long one attempt at an operation may take, nanoseconds; 0: there is no limit.
    pub fn attempt_ns(&self) -> u64 {
        match self {
            Target::S3(s3) => s3.http.timeout_ns,
            Target::Swift(swift) => swift.http.timeout_ns,
            Target::Mock(_) | Target::Nothing | Target::Embedded(_) => 0,
        }
    }
}

/// How HTTP is spoken, whatever the storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Http {
    /// `http://host:port` or `https://host:port`, at least one; worker i uses endpoint i modulo their number.
    pub endpoints: Vec<String>,
    /// Longest time for one attempt, from sending to the last byte, nanoseconds.
    pub timeout_ns: u64,
    /// Attempts beyond the first; 0: none.
    pub retries: u32,
    /// Pause before the first retry, nanoseconds; doubled for each further one, up to `back_off_most_ns`.
    pub back_off_ns: u64,
    /// The longest such pause.
    pub back_off_most_ns: u64,
    /// Accept any TLS certificate.
    pub insecure: bool,
    /// PEM file of certificate authorities to trust besides the system's.
    pub ca_file: Option<PathBuf>,
    /// Close the connection after every request.
    pub no_keep_alive: bool,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            timeout_ns: 30_000_000_000,
            retries: 0,
            back_off_ns: 100_000_000,
            back_off_most_ns: 5_000_000_000,
            insecure: false,
            ca_file: None,
            no_keep_alive: false,
        }
    }
}

/// An S3 target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct S3 {
    /// The transport.
    pub http: Http,
    /// Access key; empty for anonymous requests, which are not signed.
    pub access_key: Secret,
    /// Secret key.
    pub secret_key: Secret,
    /// Session token, if any.
    pub session_token: Option<Secret>,
    /// Region named in signatures.
    pub region: String,
    /// `http://host/bucket/key` rather than `http://bucket.host/key`.
    pub path_style: bool,
    /// Sign the SHA-256 of the payload rather than `UNSIGNED-PAYLOAD`.
    pub sign_payload: bool,
    /// `x-amz-storage-class` of writes, if any.
    pub storage_class: Option<String>,
    /// How the server is to encrypt what is written, if it is.
    pub encryption: Option<Encryption>,
}

impl S3 {
    /// The same, its SSE-C key made from the run's seed if none was given.
    #[must_use]
    pub(crate) fn with_key(mut self, seed: u64) -> Self {
        if let Some(Encryption::Customer { key: key @ None }) = &mut self.encryption {
            let made =
                Sha256::new().chain_update(b"Tidemark's key of SSE-C").chain_update(seed.to_le_bytes());
            *key = Some(Secret::new(STANDARD.encode(made.finalize())));
        }
        self
    }
}

/// Server-side encryption of S3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Encryption {
    /// SSE-S3: with keys of the server's own.
    Server,
    /// SSE-KMS: with a key of the server's key management service.
    Kms {
        /// Which; `None`: the server's choice.
        key_id: Option<String>,
    },
    /// SSE-C: with a key that every request brings along.
    Customer {
        /// 32 bytes in base64; `None`: made from the run's seed.
        key: Option<Secret>,
    },
}

impl Encryption {
    /// Its name, as S3's documents write it.
    pub fn name(&self) -> &'static str {
        match self {
            Encryption::Server => "SSE-S3",
            Encryption::Kms { .. } => "SSE-KMS",
            Encryption::Customer { .. } => "SSE-C",
        }
    }
}

/// The key of SSE-C that a text is.
///
/// # Errors
/// What it should have been; never the text.
pub(crate) fn customer_key(text: &str) -> Result<[u8; 32], &'static str> {
    let bytes = STANDARD.decode(text).ok();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or("the key of SSE-C is not 32 bytes in base64")
}

/// A Swift target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Swift {
    /// The transport; `endpoints` may be empty when authentication returns the storage URL.
    pub http: Http,
    /// How to get a token.
    pub auth: SwiftAuth,
    /// `X-Storage-Policy` of new containers, if any.
    pub policy: Option<String>,
}

/// How to get a Swift token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SwiftAuth {
    /// A token and a storage URL given in advance.
    Token {
        /// The token.
        token: Secret,
        /// The account's URL.
        storage_url: String,
    },
    /// TempAuth and swauth: `X-Auth-User`, `X-Auth-Key`.
    TempAuth {
        /// e.g. `http://host:8080/auth/v1.0`.
        url: String,
        /// e.g. `test:tester`.
        user: String,
        /// The key.
        key: Secret,
    },
    /// Keystone v2.
    KeystoneV2 {
        /// e.g. `http://host:5000/v2.0`.
        url: String,
        /// User name.
        user: String,
        /// Password.
        password: Secret,
        /// Tenant name.
        tenant: String,
        /// Service type or name in the catalogue.
        service: String,
        /// Region, if more than one.
        region: Option<String>,
    },
    /// Keystone v3.
    KeystoneV3 {
        /// e.g. `http://host:5000/v3`.
        url: String,
        /// User name.
        user: String,
        /// Password.
        password: Secret,
        /// Domain of the user.
        user_domain: String,
        /// Project name.
        project: String,
        /// Domain of the project.
        project_domain: String,
        /// Service type or name in the catalogue.
        service: String,
        /// Region, if more than one.
        region: Option<String>,
    },
}

impl SwiftAuth {
    /// The address that tells one account's server from another's.
    pub fn address(&self) -> &str {
        match self {
            SwiftAuth::Token { storage_url, .. } => storage_url,
            SwiftAuth::TempAuth { url, .. }
            | SwiftAuth::KeystoneV2 { url, .. }
            | SwiftAuth::KeystoneV3 { url, .. } => url,
        }
    }
}

/// COSBench's mock storage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mock {
    /// Bytes of an object read.
    pub size: u64,
    /// Time an operation takes, nanoseconds.
    pub delay_ns: u64,
    /// Probability that an operation fails, 0 to 1.
    pub errors: f64,
}

impl Default for Mock {
    /// COSBench's.
    fn default() -> Self {
        Self { size: 1000, delay_ns: 10_000_000, errors: 0.0 }
    }
}

/// The embedded server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Embedded {
    /// Where objects are kept.
    pub place: Place,
    /// Whether a write to disk is answered only once it is on stable storage (`fsync`).
    pub durable: bool,
    /// Requests per second that it serves at most, if it is slowed down on purpose.
    pub limit: Option<f64>,
}

/// Where the embedded server keeps objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// In memory.
    #[default]
    Memory,
    /// In files under a directory; `None`: a temporary one, beside the result store or in the working directory.
    Disk(Option<PathBuf>),
}

/// One action: what an operation means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// What it does.
    pub verb: Verb,
    /// Names of containers and objects.
    pub naming: Naming,
    /// What is written, and what is checked.
    pub content: Content,
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Verb {
    /// Makes a container; one that exists already and is ours is a success.
    CreateContainer {
        /// Have it keep the versions of its objects (S3).
        keeps: Keeps,
    },
    /// Deletes a container; one that does not exist is a success.
    DeleteContainer {
        /// Whether the objects in it are deleted first.
        empty: Emptied,
    },
    /// Writes a whole object. With `chunked` its length is not announced (Swift) or is sent as aws-chunked (S3).
    Put {
        /// Send it in chunks.
        chunked: bool,
        /// Only if there is no such object yet (`If-None-Match: *`).
        if_absent: bool,
    },
    /// Writes an object by multipart upload (Swift: a static large object).
    PutMultipart {
        /// Bytes of a part, the last may be shorter.
        part_bytes: u64,
        /// Parts in flight at once.
        parallel: u32,
    },
    /// Reads a whole object.
    Get,
    /// Reads a part of an object: `length` bytes, at a random multiple of it below `object_bytes`.
    GetRange {
        /// Bytes to read.
        length: u64,
        /// Size of the object that the ranges lie in.
        object_bytes: u64,
    },
    /// Reads an object's headers.
    Head,
    /// Deletes an object; one that does not exist is a failure only if the server reports one.
    Delete,
    /// Sees to it that an object is not there, for cleaning up: one that does not exist is a success.
    Clear {
        /// And none of its versions and delete markers (S3).
        versions: bool,
    },
    /// Deletes `count` consecutive objects from the item on, in one request.
    DeleteMany {
        /// How many.
        count: u32,
    },
    /// Copies an object within the server, to the same name plus `-copy`.
    Copy,
    /// Lists a container's objects.
    List {
        /// Entries of a page.
        page: u32,
        /// Follow pages to the end rather than stop after the first.
        all: bool,
        /// List only names that begin with the object's name (COSBench), rather than with the prefix.
        by_object: bool,
    },
    /// Sets an object's tags.
    PutTags,
    /// Reads an object's tags.
    GetTags,
    /// Locks an object for a while (S3's object lock).
    PutRetention {
        /// How firmly.
        mode: Retention,
        /// How long from the request on, seconds.
        validity_s: u64,
    },
    /// Reads an object's lock.
    GetRetention,
    /// Restores an archived object for some days.
    Restore {
        /// How many days.
        days: u32,
    },
    /// Writes the item-th file of a directory (sorted by name, counted from 1) as an object of that name.
    /// The first file follows the last one: COSBench does not count the files.
    PutFile {
        /// The directory.
        directory: PathBuf,
        /// By multipart upload, with parts of this many bytes.
        part_bytes: Option<u64>,
    },
    /// Writes an object to a local directory instead of the storage (COSBench `localwrite`).
    WriteLocal {
        /// The directory.
        directory: PathBuf,
    },
}

/// What a container keeps of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Keeps {
    /// What was written last.
    Latest,
    /// All versions (S3).
    Versions,
    /// All versions, which can be locked (S3).
    Locked,
}

/// How firmly an object is locked (S3's modes of retention).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Retention {
    /// Who has the privilege may delete it.
    #[default]
    Governance,
    /// Nobody may.
    Compliance,
}

impl Retention {
    /// As S3 writes it.
    pub fn name(self) -> &'static str {
        match self {
            Retention::Governance => "GOVERNANCE",
            Retention::Compliance => "COMPLIANCE",
        }
    }
}

/// Which containers are emptied before they are deleted, whoever wrote what is in them. All others are deleted only if they
/// are empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Emptied {
    /// None.
    Never,
    /// All.
    Always,
    /// Those that the user has given up for this run.
    If(Vec<Doomed>),
}

impl Emptied {
    /// Whether the container of this name is emptied.
    pub fn covers(&self, container: &str) -> bool {
        match self {
            Emptied::Never => false,
            Emptied::Always => true,
            Emptied::If(doomed) => doomed.iter().any(|doomed| doomed.covers(container)),
        }
    }
}

/// Containers that may be emptied although others may have written to them: one by its name, or all whose names begin so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doomed {
    name: String,
    beginning: bool,
}

impl Doomed {
    /// Reads `NAME` or `BEGINNING*`.
    ///
    /// # Errors
    /// A clause that says what is wrong.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let (name, beginning) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        match name {
            "" => Err("has no name"),
            _ if name.contains('*') => Err("has a `*` that is not at its end"),
            _ if name.contains('/') => Err("goes beyond the container's name"),
            _ => Ok(Self { name: name.to_owned(), beginning }),
        }
    }

    fn covers(&self, container: &str) -> bool {
        if self.beginning { container.starts_with(&self.name) } else { container == self.name }
    }
}

/// Names of containers and objects: prefix, number, suffix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Naming {
    /// The whole name of the only container, number 1; `None`: containers are called by their numbers.
    pub container: Option<String>,
    /// Before the container's number.
    pub container_prefix: String,
    /// After the container's number.
    pub container_suffix: String,
    /// Before the object's number.
    pub object_prefix: String,
    /// After the object's number.
    pub object_suffix: String,
    /// Objects that are there already, in place of all that is made of numbers.
    pub existing: Option<Existing>,
}

impl Naming {
    /// The whole name of the container, if there is only one that has one.
    pub fn only_container(&self) -> Option<&str> {
        self.existing
            .as_ref()
            .map(|existing| &existing.container)
            .or(self.container.as_ref())
            .map(String::as_str)
    }
}

/// A container with objects that somebody else wrote: they are read, and never written or deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Existing {
    /// The container's name.
    pub container: String,
    /// The objects' names, in the order of their numbers from 1. Empty until the listing has been made, if there is one.
    pub keys: Shared<String>,
    /// The objects' sizes in bytes, in the same order; empty where they are not known.
    pub sizes: Shared<u64>,
    /// The listing that the names come from; `None`: from a file.
    pub listing: Option<Listing>,
}

/// What is listed of a container before the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// What the objects' names begin with.
    pub prefix: String,
    /// The most objects to take.
    pub limit: u64,
}

/// A list of something about objects. Copies share it: there may be very many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    from = "Vec<T>",
    into = "Vec<T>",
    bound(deserialize = "T: Deserialize<'de>", serialize = "T: Serialize + Clone")
)]
pub struct Shared<T>(Arc<[T]>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> From<Vec<T>> for Shared<T> {
    fn from(all: Vec<T>) -> Self {
        Self(all.into())
    }
}

impl<T: Clone> From<Shared<T>> for Vec<T> {
    fn from(shared: Shared<T>) -> Self {
        shared.0.to_vec()
    }
}

impl<T> std::ops::Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl Default for Naming {
    /// COSBench's names: `mycontainers1/myobjects1`.
    fn default() -> Self {
        Self {
            container: None,
            container_prefix: "mycontainers".into(),
            container_suffix: String::new(),
            object_prefix: "myobjects".into(),
            object_suffix: String::new(),
            existing: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_containers_that_are_named_are_given_up() {
        let given_up = |texts: &[&str]| {
            Emptied::If(texts.iter().map(|text| Doomed::read(text).expect("a name")).collect())
        };
        let some = given_up(&["box1", "tmp*"]);
        let covered: Vec<_> =
            ["box1", "box10", "bo", "tmp", "tmp7", "atmp"].map(|name| some.covers(name)).into();
        assert_eq!(covered, [true, false, false, true, true, false]);
        assert!(
            !given_up(&[]).covers("box1") && !Emptied::Never.covers("") && Emptied::Always.covers("box1")
        );
        for wrong in ["", "*", "a*b", "a/b", "a/*"] {
            assert!(Doomed::read(wrong).is_err(), "{wrong}");
        }
    }
}
