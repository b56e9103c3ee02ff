//! The `target` of a document: what the load runs against.

use crate::job::{self, Embedded, Encryption, Http, Mock, Place, S3, Swift, SwiftAuth, Target};
use crate::secrets::MISDIRECTED;
use std::path::PathBuf;
use tidemark_keys::kinds::{
    Bytes, Duration, Flag, Kind as _, Parsed, PositiveDuration, Rate, Share, Text, Whole, Word,
};
use tidemark_keys::shapes::{Kinds, OneOrList};
use tidemark_keys::{Key, Mapping, OrFile, Problem, Table};
use tidemark_plan::yaml::values;

/// The kinds of targets.
pub(crate) static KINDS: [&Mapping; 5] = [&KIND_S3, &KIND_SWIFT, &KIND_EMBEDDED, &KIND_MOCK, &KIND_NONE];

/// A server that speaks S3.
pub static KIND_S3: Mapping = Mapping::kind(
    "s3",
    "A server that speaks S3",
    &[
        &ENDPOINT,
        &ENDPOINTS,
        &ACCESS_KEY.text,
        &ACCESS_KEY.file,
        &SECRET_KEY.text,
        &SECRET_KEY.file,
        &SESSION_TOKEN.text,
        &SESSION_TOKEN.file,
        &REGION,
        &PATH_STYLE,
        &SIGN_PAYLOAD,
        &STORAGE_CLASS,
        &ENCRYPTION,
    ],
)
.with(&[&HTTP])
.one_of(&[&ENDPOINT, &ENDPOINTS]);

static KIND_SWIFT: Mapping = Mapping::kind(
    "swift",
    "A server that speaks OpenStack Swift",
    &[&AUTH, &SWIFT_ENDPOINT, &SWIFT_ENDPOINTS, &POLICY],
)
.with(&[&HTTP]);

/// The S3 server inside Tidemark.
pub static KIND_EMBEDDED: Mapping =
    Mapping::kind("embedded", "The S3 server inside Tidemark", &[&PLACE, &DIRECTORY, &DURABLE, &LIMIT]);

static KIND_MOCK: Mapping = Mapping::kind(
    "mock",
    "Answers by itself, after a delay, as COSBench's mock does",
    &[&SIZE, &DELAY, &ERRORS],
);

static KIND_NONE: Mapping = Mapping::kind("none", "Does nothing, as fast as possible", &[]);

/// Reads the mapping under `target`, whose kind is known; `None` after an error that leaves nothing to go on with.
pub(crate) fn target(kind: &str, table: &mut Table<'_>) -> Option<Target> {
    let target = match kind {
        "s3" => Target::S3(s3(table)),
        "swift" => Target::Swift(swift(table)?),
        "mock" => Target::Mock(mock(table)),
        "embedded" => Target::Embedded(embedded(table)),
        _ => Target::Nothing,
    };
    if let Some(message) = target.misdirected() {
        table.log().error(table.place(), message, MISDIRECTED);
    }
    Some(target)
}

/// The target that is named alone: `target: embedded`.
pub(crate) fn bare(kind: &str) -> Result<Target, Problem> {
    match kind {
        "mock" => Ok(Target::Mock(Mock::default())),
        "none" => Ok(Target::Nothing),
        "embedded" => Ok(Target::Embedded(Embedded::default())),
        _ => {
            let help = format!("write `target: {{kind: {kind}, ...}}` with its address and credentials");
            Err(Problem::new(format!("the target '{kind}' needs settings"), help))
        }
    }
}

static SIZE: Key<Bytes> = Key::new("size", "Size of an object read", Bytes(0)).default("1000");
static DELAY: Key<Duration> = Key::new("delay", "How long an operation takes", Duration).default("10ms");
static ERRORS: Key<Share> = Key::new("errors", "Operations that fail", Share).default("0");

fn mock(table: &mut Table<'_>) -> Mock {
    Mock { size: table.value(&SIZE), delay_ns: table.value(&DELAY), errors: table.value(&ERRORS) }
}

static PLACE: Key<Word<bool>> =
    Key::new("place", "Where it keeps objects", Word(&[("memory", false), ("disk", true)]))
        .otherwise("`memory`; with a `directory`, `disk`");
static DIRECTORY: Key<Text> =
    Key::new("directory", "Its directory on disk", Text).otherwise("a temporary one");
static DURABLE: Key<Flag> = Key::new(
    "durable",
    "Confirm a write only once it is on stable storage (`fsync` of file and directory)",
    Flag,
)
.default("false");
static LIMIT: Key<Parsed<f64>> = Key::new(
    "limit",
    "Limit of requests that it serves",
    Parsed("rate", |text| match Rate.read(text)? {
        0.0 => Err(Problem::new("the limit is zero", "write a rate such as 2000/s")),
        rate => Ok(rate),
    }),
);

fn embedded(table: &mut Table<'_>) -> Embedded {
    let (on_disk, directory) = (table.get(&PLACE), table.get(&DIRECTORY).map(PathBuf::from));
    let place = match (on_disk.unwrap_or(directory.is_some()), directory) {
        (true, directory) => Place::Disk(directory),
        (false, _) => {
            table.meaningless(&[&DURABLE, &DIRECTORY], "objects are kept in memory");
            Place::Memory
        }
    };
    Embedded { durable: table.value(&DURABLE), place, limit: table.get(&LIMIT) }
}

static ENDPOINT: Key<Endpoints> = Key::new("endpoint", "Address of the server", ENDPOINTS_SHAPE)
    .example("http://10.0.0.1:8000")
    .otherwise("this or `endpoints` is required")
    .expanded();
static ENDPOINTS: Key<Endpoints> = Key::new(
    "endpoints",
    "Addresses of the server, which workers share evenly: a list, or one value with commas",
    ENDPOINTS_SHAPE,
)
.otherwise("instead")
.expanded();
static ACCESS_KEY: OrFile = OrFile::new("access_key", "access_key_file", "Access key")
    .otherwise("none: requests are not signed")
    .example("${TIDEMARK_SECRET_ACCESS_KEY}");
static SECRET_KEY: OrFile =
    OrFile::new("secret_key", "secret_key_file", "Secret key").example("${TIDEMARK_SECRET_KEY}");
static SESSION_TOKEN: OrFile = OrFile::new("session_token", "session_token_file", "Session token");
static REGION: Key<Text> = Key::new("region", "Region in signatures", Text).default(job::REGION).expanded();
static PATH_STYLE: Key<Flag> =
    Key::new("path_style", "`http://host/bucket` rather than `http://bucket.host`", Flag).default("true");
static SIGN_PAYLOAD: Key<Flag> =
    Key::new("sign_payload", "Sign the payload, too, rather than `UNSIGNED-PAYLOAD`", Flag).default("false");
static STORAGE_CLASS: Key<Text> = Key::new("storage_class", "Storage class of writes", Text);
static ENCRYPTION: Key<Kinds> = Key::new(
    "encryption",
    "Server-side encryption of writes; an operation whose reply does not confirm it fails",
    Kinds(&ENCRYPTIONS),
);

/// The kinds of server-side encryption.
static ENCRYPTIONS: [&Mapping; 3] = [&SSE_S3, &SSE_KMS, &SSE_C];

static SSE_S3: Mapping = Mapping::kind("sse-s3", "With keys of the server's own", &[]);
static SSE_KMS: Mapping =
    Mapping::kind("sse-kms", "With a key of the server's key management service", &[&KMS_KEY]);
static SSE_C: Mapping = Mapping::kind(
    "sse-c",
    "With a key that every request on an object brings along, reads too",
    &[&CUSTOMER_KEY.text, &CUSTOMER_KEY.file],
);
static KMS_KEY: Key<Text> =
    Key::new("key_id", "Id of the key", Text).otherwise("the server's choice").expanded();
static CUSTOMER_KEY: OrFile = OrFile::new("key", "key_file", "Key: 32 bytes in base64")
    .otherwise("made from the run's seed")
    .example("${TIDEMARK_SECRET_SSE_C_KEY}");

fn encryption(table: &mut Table<'_>) -> Option<Encryption> {
    let (kind, mut table) = table.table_of_kind(&ENCRYPTION)?;
    let read = match kind.name {
        "sse-c" => {
            let key = table.secret(&CUSTOMER_KEY);
            if let Some(Err(wrong)) = key.as_ref().map(|key| job::customer_key(key.reveal())) {
                let help = "make one with `openssl rand -base64 32`, or remove it";
                table.log().error(table.place(), wrong, help);
            }
            Encryption::Customer { key }
        }
        "sse-kms" => Encryption::Kms { key_id: table.get(&KMS_KEY) },
        _ => Encryption::Server,
    };
    table.finish();
    Some(read)
}

fn s3(table: &mut Table<'_>) -> S3 {
    let http = http(table, &ENDPOINT, &ENDPOINTS);
    if http.endpoints.is_empty() && !table.has(&ENDPOINT) && !table.has(&ENDPOINTS) {
        table.missing(&ENDPOINT, "write the address of the server, such as http://10.0.0.1:8000");
    }
    let (access_key, secret_key) = (table.secret(&ACCESS_KEY), table.secret(&SECRET_KEY));
    let named = table.has(&ACCESS_KEY.text) || table.has(&ACCESS_KEY.file);
    let secret = table.has(&SECRET_KEY.text) || table.has(&SECRET_KEY.file);
    if named && !secret {
        let help = "add it, or remove the access key for anonymous requests";
        table.missing(&SECRET_KEY.text, help);
    }
    if secret && !named {
        let help = "add it, or remove the secret key for anonymous requests";
        table.missing(&ACCESS_KEY.text, help);
    }
    S3 {
        http,
        access_key: access_key.unwrap_or_default(),
        secret_key: secret_key.unwrap_or_default(),
        session_token: table.secret(&SESSION_TOKEN),
        region: table.value(&REGION),
        path_style: table.value(&PATH_STYLE),
        sign_payload: table.value(&SIGN_PAYLOAD),
        storage_class: table.get(&STORAGE_CLASS),
        encryption: encryption(table),
    }
}

static AUTH: Key<Kinds> = Key::new("auth", "How to get a token", Kinds(&AUTHS))
    .required("write `auth: {kind: tempauth, url: ..., user: ..., key: ...}`");
static SWIFT_ENDPOINT: Key<Endpoints> = Key::new("endpoint", "Address of the server", ENDPOINTS_SHAPE)
    .otherwise("from the authentication")
    .expanded();
static SWIFT_ENDPOINTS: Key<Endpoints> = Key::new(
    "endpoints",
    "Addresses of the server, which workers share evenly: a list, or one value with commas",
    ENDPOINTS_SHAPE,
)
.otherwise("instead")
.expanded();
static POLICY: Key<Text> = Key::new("policy", "Storage policy of new containers", Text);

fn swift(table: &mut Table<'_>) -> Option<Swift> {
    let http = http(table, &SWIFT_ENDPOINT, &SWIFT_ENDPOINTS);
    let policy = table.get(&POLICY);
    let auth = table.table_of_kind(&AUTH);
    Some(Swift { http, auth: swift_auth(auth?)?, policy })
}

/// The ways to get a Swift token.
static AUTHS: [&Mapping; 5] = [&TEMPAUTH, &SWAUTH, &KEYSTONE_V3, &KEYSTONE_V2, &GIVEN_TOKEN];

static TEMPAUTH: Mapping =
    Mapping::kind("tempauth", "Swift's own authentication", &[&URL, &USER, &KEY.text, &KEY.file]);
static SWAUTH: Mapping = Mapping::kind("swauth", "The same as `tempauth`", &[]).with(&[&TEMPAUTH]);
static KEYSTONE_V3: Mapping = Mapping::kind(
    "keystone-v3",
    "Keystone, API v3",
    &[
        &KEYSTONE_URL,
        &USER,
        &PASSWORD.text,
        &PASSWORD.file,
        &PROJECT,
        &USER_DOMAIN,
        &PROJECT_DOMAIN,
        &SERVICE,
        &SERVICE_REGION,
    ],
);
static KEYSTONE_V2: Mapping = Mapping::kind(
    "keystone-v2",
    "Keystone, API v2.0",
    &[&V2_URL, &USER, &PASSWORD.text, &PASSWORD.file, &TENANT, &SERVICE, &SERVICE_REGION],
);
static GIVEN_TOKEN: Mapping =
    Mapping::kind("token", "A token that you have", &[&TOKEN.text, &TOKEN.file, &STORAGE_URL]);

static URL: Key<Parsed<String>> = Key::new("url", "Address of the authentication service", SERVICE_ADDRESS)
    .required("such as http://10.0.0.1:8080/auth/v1.0")
    .example("http://10.0.0.1:8080/auth/v1.0")
    .expanded();
static KEYSTONE_URL: Key<Parsed<String>> =
    Key::new("url", "Address of the authentication service", SERVICE_ADDRESS)
        .required("such as http://10.0.0.1:5000/v3")
        .example("http://10.0.0.1:5000/v3")
        .expanded();
static V2_URL: Key<Parsed<String>> =
    Key::new("url", "Address of the authentication service", SERVICE_ADDRESS)
        .required("such as http://10.0.0.1:5000/v2.0")
        .example("http://10.0.0.1:5000/v2.0")
        .expanded();
static STORAGE_URL: Key<Parsed<String>> = Key::new("storage_url", "Address of the account", SERVICE_ADDRESS)
    .required("such as http://10.0.0.1:8080/v1/AUTH_test")
    .example("http://10.0.0.1:8080/v1/AUTH_test")
    .expanded();
static USER: Key<Text> =
    Key::new("user", "User", Text).required("such as test:tester").example("test:tester").expanded();
static TENANT: Key<Text> =
    Key::new("tenant", "Tenant", Text).required("such as demo").example("demo").expanded();
static PROJECT: Key<Text> =
    Key::new("project", "Project", Text).required("such as demo").example("demo").expanded();
static USER_DOMAIN: Key<Text> =
    Key::new("user_domain", "Domain of the user", Text).default("Default").expanded();
static PROJECT_DOMAIN: Key<Text> =
    Key::new("project_domain", "Domain of the project", Text).default("Default").expanded();
static SERVICE: Key<Text> = Key::new("service", "Service in the catalogue", Text).default("swift");
static SERVICE_REGION: Key<Text> = Key::new("region", "Region, if there are several", Text).expanded();
static KEY: OrFile = OrFile::new("key", "key_file", "Key").required().example("${TIDEMARK_SECRET_KEY}");
static PASSWORD: OrFile =
    OrFile::new("password", "password_file", "Password").required().example("${TIDEMARK_SECRET_PASSWORD}");
static TOKEN: OrFile =
    OrFile::new("token", "token_file", "Token").required().example("${TIDEMARK_SECRET_TOKEN}");

const SERVICE_ADDRESS: Parsed<String> = Parsed("address", values::service);

fn swift_auth((kind, mut table): (&Mapping, Table<'_>)) -> Option<SwiftAuth> {
    let auth = &mut table;
    let secret = |auth: &mut Table<'_>, key| auth.secret(key).unwrap_or_default();
    let read = match kind.name {
        "token" => SwiftAuth::Token { token: secret(auth, &TOKEN), storage_url: auth.value(&STORAGE_URL) },
        "keystone-v2" => SwiftAuth::KeystoneV2 {
            url: auth.value(&V2_URL),
            user: auth.value(&USER),
            password: secret(auth, &PASSWORD),
            tenant: auth.value(&TENANT),
            service: auth.value(&SERVICE),
            region: auth.get(&SERVICE_REGION),
        },
        "keystone-v3" => SwiftAuth::KeystoneV3 {
            url: auth.value(&KEYSTONE_URL),
            user: auth.value(&USER),
            password: secret(auth, &PASSWORD),
            user_domain: auth.value(&USER_DOMAIN),
            project: auth.value(&PROJECT),
            project_domain: auth.value(&PROJECT_DOMAIN),
            service: auth.value(&SERVICE),
            region: auth.get(&SERVICE_REGION),
        },
        _ => SwiftAuth::TempAuth { url: auth.value(&URL), user: auth.value(&USER), key: secret(auth, &KEY) },
    };
    table.finish();
    Some(read)
}

/// The addresses of servers.
type Endpoints = OneOrList<Parsed<Vec<String>>>;

const ENDPOINTS_SHAPE: Endpoints = OneOrList(Parsed("`http://host:port`", values::servers));

/// What all servers that are reached over HTTP have.
static HTTP: Mapping = Mapping::new(
    "http",
    "Keys of servers that are reached over HTTP",
    &[&TIMEOUT, &RETRIES, &BACK_OFF, &BACK_OFF_MOST, &INSECURE, &CA_FILE, &KEEP_ALIVE],
);

static TIMEOUT: Key<PositiveDuration> =
    Key::new("timeout", "Time limit of one attempt", PositiveDuration).default("30s");
static RETRIES: Key<Whole<u32>> =
    Key::new("retries", "Attempts after the first", Whole(0, 1000)).default("0");
static BACK_OFF: Key<Duration> =
    Key::new("back_off", "Pause before the first retry, doubled before each further one", Duration)
        .default("100ms");
static BACK_OFF_MOST: Key<Duration> =
    Key::new("back_off_most", "Longest pause before a retry", Duration).default("5s");
static INSECURE: Key<Flag> = Key::new("insecure", "Accept any TLS certificate", Flag).default("false");
static CA_FILE: Key<Text> = Key::new("ca_file", "PEM file of certificate authorities to trust", Text)
    .otherwise("the system's authorities")
    .expanded();
static KEEP_ALIVE: Key<Flag> = Key::new("keep_alive", "Keep connections open", Flag).default("true");

fn http(table: &mut Table<'_>, one: &Key<Endpoints>, several: &Key<Endpoints>) -> Http {
    table.contradiction(one, several, "one address or a list of them");
    let mut endpoints: Vec<String> = table.all(one).into_iter().flatten().collect();
    endpoints.extend(table.all(several).into_iter().flatten());
    Http {
        endpoints,
        timeout_ns: table.value(&TIMEOUT),
        retries: table.value(&RETRIES),
        back_off_ns: table.value(&BACK_OFF),
        back_off_most_ns: table.value(&BACK_OFF_MOST),
        insecure: table.value(&INSECURE),
        ca_file: table.get(&CA_FILE).map(PathBuf::from),
        no_keep_alive: !table.value(&KEEP_ALIVE),
    }
}
