//! A Trino cluster as pods: what an arm of an evaluation says of it under `trino`.

use crate::hosting::{self, CPU, Hosting, IMAGE, MEMORY, SETTINGS, USER, Usual};
use crate::pods::{NODES, SPREAD};
use tidemark_keys::kinds::{BUCKET_NAME, Parsed, Text, Whole};
use tidemark_keys::secret::Secret;
use tidemark_keys::shapes::Map;
use tidemark_keys::{Key, Mapping, OrFile, Problem, Table};

/// The most workers of an arm.
const MOST_WORKERS: u16 = 359;

static WORKERS: Key<Whole<u16>> = Key::new(
    "workers",
    "Workers besides the coordinator, each a pod; without any, the coordinator works itself",
    Whole(0, MOST_WORKERS),
)
.default("0");
static BUCKET: Key<Map> = Key::new("bucket", "Bucket in which its tables lie", Map(&BUCKET_MAP))
    .required("write `bucket: {endpoint: ..., name: ..., access_key: ..., secret_key: ...}`");

/// A Trino cluster.
pub(crate) static CLUSTER: Mapping = Mapping::new(
    "kubernetes_trino",
    "A Trino cluster as pods",
    &[&WORKERS, &BUCKET, &IMAGE, &USER, &CPU, &MEMORY, &NODES, &SPREAD, &SETTINGS],
);

static ENDPOINT: Key<Parsed<String>> = Key::new("endpoint", "S3 server, as pods reach it", ADDRESS)
    .required("write the address of the server, such as http://10.0.0.1:8000")
    .example("http://10.0.0.1:8000")
    .expanded();
static NAME: Key<Parsed<String>> =
    Key::new("name", "Name of the bucket", BUCKET_NAME).default("tables").expanded();
static ACCESS_KEY: OrFile = OrFile::new("access_key", "access_key_file", "Access key").required();
static SECRET_KEY: OrFile =
    OrFile::new("secret_key", "secret_key_file", "Secret key").required().example("${AWS_SECRET_ACCESS_KEY}");
static REGION: Key<Text> = Key::new("region", "Region in signatures", Text).default("us-east-1").expanded();
static BUCKET_MAP: Mapping = Mapping::new(
    "trino_bucket",
    "Bucket in which the tables of a Trino cluster lie, with what it knows of them below `meta`",
    &[&ENDPOINT, &NAME, &ACCESS_KEY.text, &ACCESS_KEY.file, &SECRET_KEY.text, &SECRET_KEY.file, &REGION],
);
const ADDRESS: Parsed<String> = Parsed("`http://host:port`", |text| {
    let host = ["http://", "https://"].into_iter().find_map(|scheme| text.strip_prefix(scheme));
    let plain = |one: char| one.is_ascii_alphanumeric() || ".-:[]".contains(one);
    match host.map(|host| host.trim_end_matches('/')) {
        Some(host) if !host.is_empty() && host.chars().all(plain) => Ok(text.to_owned()),
        _ => Err(Problem::new(
            format!("'{text}' is not the address of a server"),
            "write http://host:port or https://host:port",
        )),
    }
});

/// A Trino cluster as pods.
#[derive(Clone, Debug)]
pub struct Trino {
    /// Workers besides the coordinator.
    pub workers: u32,
    /// Where its tables lie.
    pub bucket: Bucket,
    /// What its pods are. Settings are those of all of them.
    pub hosting: Hosting,
}

/// A bucket of an S3 server, addressed by path.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// The server, as pods reach it.
    pub endpoint: String,
    /// The bucket's name.
    pub name: String,
    /// The access key.
    pub access_key: Secret,
    /// The secret key.
    pub secret_key: Secret,
    /// The region named in signatures.
    pub region: String,
}

impl Trino {
    /// What it is, for reports: `Trino with 2 workers on Kubernetes`.
    pub fn label(&self) -> String {
        match self.workers {
            0 => "Trino on Kubernetes".to_owned(),
            1 => "Trino with 1 worker on Kubernetes".to_owned(),
            several => format!("Trino with {several} workers on Kubernetes"),
        }
    }
}

/// Settings that the cluster is made of, and that no document may change.
const OWN: [&str; 4] =
    ["coordinator", "discovery.uri", "http-server.http.port", "node-scheduler.include-coordinator"];

/// Reads what an arm says of it. `None` after an error.
pub(crate) fn trino(mut own: Table<'_>) -> Option<Trino> {
    let workers = own.value(&WORKERS).into();
    let hosting = hosting::read(&mut own, &Usual { image: "trinodb/trino:476", user: 1000, memory: 4 });
    for (name, _) in hosting.settings.iter().filter(|(name, _)| OWN.contains(&name.as_str())) {
        let message = format!("`{name}` is set by Tidemark");
        own.log().error(own.place(), message, "remove it: it follows from the number of workers");
    }
    let bucket = own.table(&BUCKET).and_then(bucket);
    own.finish();
    Some(Trino { workers, bucket: bucket?, hosting })
}

fn bucket(mut own: Table<'_>) -> Option<Bucket> {
    let (endpoint, region) = (own.get(&ENDPOINT), own.value(&REGION));
    let name = own.value(&NAME);
    let (access_key, secret_key) = (own.secret(&ACCESS_KEY), own.secret(&SECRET_KEY));
    own.finish();
    Some(Bucket { endpoint: endpoint?, name, access_key: access_key?, secret_key: secret_key?, region })
}
