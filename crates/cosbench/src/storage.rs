//! Turns `<storage>` and `<auth>` into a target.

use super::auth;
use super::config::{Entry, Settings, Vocabulary};
use super::remarks::{Differs, Remarks, shown};
use super::tree::Element;
use std::path::PathBuf;
use tidemark_keys::nearest::nearest;
use tidemark_object::job::{Embedded, Http, Mock, Place, REGION, S3, Swift, SwiftAuth, Target};
use tidemark_plan::secret::Secret;

/// A target, and its settings that concern operations.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub(super) target: Target,
    /// Bytes of a read, and of the objects that it reads from (sineio's `is_range_request`).
    pub(super) range: Option<(u64, u64)>,
    /// Bytes of a part of a multipart upload.
    pub(super) part_bytes: u64,
    /// How many days a restored object stays.
    pub(super) restore_days: u32,
}

/// sineio's default, and the least that S3 accepts for all parts but the last.
const PART_BYTES: u64 = 5 << 20;

/// All the kinds that can be used, for messages.
const KINDS: [&str; 9] = ["none", "mock", "s3", "sio", "siov1", "gdas", "oss", "swift", "embedded"];

/// Kinds of COSBench and its forks that Tidemark does not support, with what to use instead.
const REFUSED: [(&str, &str); 14] = [
    (
        "ampli",
        "use storage type `s3` with an S3 endpoint: Tidemark does not support AmpliStor's own protocol",
    ),
    (
        "cdmi",
        "use storage type `s3` or `swift` with the same server's S3 or Swift endpoint: Tidemark does not support CDMI",
    ),
    ("cdmi_swift", "use storage type `swift` with the same server: it offers Swift beside CDMI"),
    ("sproxyd", "use storage type `s3` with the Scality RING's S3 connector"),
    ("scality", "use storage type `s3` with the Scality RING's S3 connector"),
    ("librados", "use storage type `s3` or `swift` with the cluster's RADOS gateway"),
    (
        "gcs",
        "use storage type `s3` with endpoint=https://storage.googleapis.com and HMAC keys: its XML API \
            is compatible with S3",
    ),
    ("ecs", "use storage type `s3` with the S3 endpoint of ECS (port 9020, or 9021 with TLS)"),
    ("openio", "use storage type `s3` with OpenIO's S3 gateway"),
    ("manta", "use storage type `s3` with an S3 gateway: Tidemark does not support Manta's own protocol"),
    (
        "hcp",
        "use storage type `s3` with HCP's S3-compatible endpoint; accessKey= and secretKey= are accepted",
    ),
    ("hcpcs", "use storage type `s3` with its S3 endpoint; accessKey= and secretKey= are accepted"),
    ("s3fips", "use storage type `s3` with the FIPS endpoint of your region"),
    ("srb", "it is a block device: use storage type `s3` with the Scality RING's S3 connector for objects"),
];

const S3_KEYS: [&str; 33] = [
    "accesskey",
    "accessKey",
    "secretkey",
    "secretKey",
    "session_token",
    "sessionToken",
    "endpoint",
    "timeout",
    "proxyhost",
    "proxyHost",
    "proxyport",
    "proxyPort",
    "path_style_access",
    "pathStyleAccess",
    "max_connections",
    "maxConnections",
    "no_verify_ssl",
    "insecure",
    "ca_file",
    "region",
    "aws_region",
    "storage_class",
    "restore_days",
    "part_size",
    "is_range_request",
    "file_length",
    "chunk_length",
    "is_prefetch",
    "retry",
    "signerOverride",
    "hashCheck",
    "logging",
    "caching",
];

/// Resolves `<storage>` and `<auth>` together; `None` after an error.
pub(super) fn resolve(
    storage: Option<&Element>,
    auth: Option<&Element>,
    remarks: &mut Remarks,
) -> Option<Storage> {
    let auth = auth::resolve(auth, remarks);
    let Some(storage) = storage else {
        return Some(Storage::nothing());
    };
    let kind = storage.value("type").map_or("none", |kind| kind.text.trim());
    let lower = kind.to_ascii_lowercase();
    let read = |keys: &'static [&'static str], owner: &'static str, remarks: &mut Remarks| {
        Settings::default().within(storage, Vocabulary { keys, owner }, remarks)
    };
    if lower != "swift" && auth.as_ref().is_some_and(|auth| *auth != auth::Auth::None) {
        let message = format!("storage `{lower}` does not use `auth`; it is ignored");
        remarks.warning(storage.span.clone(), message, "");
    }
    match lower.as_str() {
        "none" => {
            read(&[], "storage `none`", remarks);
            Some(Storage::nothing())
        }
        "mock" => {
            let keys = &["size", "delay", "errors", "printing", "doStats"];
            mock(&read(keys, "storage `mock`", remarks), remarks)
        }
        "embedded" => embedded(&read(&["place", "directory"], "storage `embedded`", remarks), remarks),
        "swift" => {
            let keys = &[
                "timeout",
                "token",
                "storage_url",
                "policy",
                "transfer_rate",
                "retry",
                "logging",
                "caching",
            ];
            swift(storage, &read(keys, "storage `swift`", remarks), auth?, remarks)
        }
        "s3" | "sio" | "siov1" | "gdas" | "oss" => {
            let settings = read(&S3_KEYS, "S3 storage", remarks);
            if lower == "s3" {
                remarks.general(
                    "requests are signed by Signature Version 4, while COSBench's `s3` signs by Version 2",
                );
            }
            s3(storage, &lower, &settings, remarks)
        }
        other => {
            refuse(storage, other, remarks);
            None
        }
    }
}

/// Another target in place of a `<storage>`, whose settings of operations stay.
pub(super) fn on(target: Target, storage: Option<&Element>, remarks: &mut Remarks) -> Storage {
    let Some(storage) = storage else { return Storage::plain(target) };
    // Other errors in it do not matter: addresses and keys are often placeholders.
    let words = Vocabulary { keys: &S3_KEYS, owner: "S3 storage" };
    let settings = Settings::default().within(storage, words, &mut Remarks::default());
    Storage {
        target,
        range: range(storage, &settings, remarks),
        part_bytes: part_bytes(&settings, remarks),
        restore_days: restore_days(&settings, remarks),
    }
}

/// Reports why a kind cannot be used, at the value of `type`.
fn refuse(storage: &Element, kind: &str, remarks: &mut Remarks) {
    let span = storage.value("type").map_or(storage.span.clone(), |value| value.span.clone());
    if let Some((_, instead)) = REFUSED.iter().find(|(refused, _)| *refused == kind) {
        return remarks.error(span, format!("storage type `{kind}` is not supported"), *instead);
    }
    let help = match nearest(kind, KINDS) {
        Some(near) => format!("did you mean `{near}`? Valid types: {}", KINDS.join(", ")),
        None => format!("valid types: {}", KINDS.join(", ")),
    };
    remarks.error(span, format!("storage type {} is unknown", shown(kind)), help);
}

impl Storage {
    /// COSBench's `none`.
    pub(super) fn nothing() -> Self {
        Self::plain(Target::Nothing)
    }

    fn plain(target: Target) -> Self {
        Self { target, range: None, part_bytes: PART_BYTES, restore_days: 1 }
    }
}

fn mock(settings: &Settings<'_>, remarks: &mut Remarks) -> Option<Storage> {
    let size = settings.number(&["size"], remarks).unwrap_or(1000);
    let delay_ms = settings.number(&["delay"], remarks).unwrap_or(10);
    let mut errors = 0.0;
    if let Some(entry) = settings.find(&["errors"]) {
        match entry.value.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => errors = share,
            _ => {
                let message = format!("`errors` is not a probability: {}", entry.shown());
                remarks.error(entry.span(), message, "write a number from 0 to 1");
            }
        }
    }
    let mock = Mock { size, delay_ns: delay_ms.saturating_mul(1_000_000), errors };
    Some(Storage::plain(Target::Mock(mock)))
}

fn embedded(settings: &Settings<'_>, remarks: &mut Remarks) -> Option<Storage> {
    let directory = settings.find(&["directory"]).map(|entry| PathBuf::from(entry.value));
    let place = match settings.text(&["place"], "memory").to_ascii_lowercase().as_str() {
        "memory" => Place::Memory,
        "disk" => Place::Disk(directory),
        _ => {
            let entry = settings.find(&["place"])?;
            let message = format!("`place` is neither memory nor disk: {}", entry.shown());
            remarks.error(entry.span(), message, "write place=memory or place=disk");
            return None;
        }
    };
    Some(Storage::plain(Target::Embedded(Embedded { place, ..Embedded::default() })))
}

fn swift(
    storage: &Element,
    settings: &Settings<'_>,
    auth: auth::Auth,
    remarks: &mut Remarks,
) -> Option<Storage> {
    let http = http(settings, Vec::new(), remarks);
    let auth = match auth {
        auth::Auth::Swift(auth) => auth,
        auth::Auth::None => token(storage, settings, remarks)?,
    };
    if let Some(entry) = settings.find(&["transfer_rate"]) {
        let help = "remove it; to limit the load, write the workload as Tidemark YAML with a rate";
        remarks.warning(entry.key_span(), "`transfer_rate` is not supported and is ignored", help);
    }
    let policy = settings.find(&["policy"]).map(|entry| entry.value.to_owned());
    Some(Storage::plain(Target::Swift(Swift { http, auth, policy })))
}

/// Swift without authentication: a token got by other means.
fn token(storage: &Element, settings: &Settings<'_>, remarks: &mut Remarks) -> Option<SwiftAuth> {
    let (token, url) = (settings.find(&["token"]), settings.find(&["storage_url"]));
    let (Some(token), Some(url)) = (token, url) else {
        if !settings.mentions(&["token"]) || !settings.mentions(&["storage_url"]) {
            let help = "add <auth type=\"swauth\" .../> or <auth type=\"keystone\" .../>, or give token= \
                and storage_url=";
            remarks.error(storage.span.clone(), "storage `swift` has neither an `auth` nor a token", help);
        }
        return None;
    };
    let storage_url = address(url, true, remarks)?;
    Some(SwiftAuth::Token { token: token.secret(), storage_url })
}

fn s3(storage: &Element, kind: &str, settings: &Settings<'_>, remarks: &mut Remarks) -> Option<Storage> {
    if kind == "oss" && !["accesskey", "secretkey", "endpoint"].iter().all(|key| settings.mentions(&[key])) {
        let help = "give accesskey=, secretkey= and endpoint= of its S3-compatible interface, e.g. \
            https://s3.oss-cn-hangzhou.aliyuncs.com";
        remarks.error(
            storage.span.clone(),
            "storage type `oss` works only through its S3-compatible interface",
            help,
        );
        return None;
    }
    let endpoints = endpoints(storage, settings, remarks);
    let (access_key, secret_key) = keys(storage, settings, remarks);
    proxy(settings, remarks);
    if settings.find(&["max_connections", "maxConnections"]).is_some() {
        remarks.note(
            Differs::Conduct,
            "connections",
            "`max_connections` is ignored: every worker keeps one connection of its own open.",
        );
    }
    if settings.flag(&["is_prefetch"], remarks) {
        remarks.note(Differs::Figures, "prefetch", "`is_prefetch` is ignored: Tidemark does not prefetch.");
    }
    let path_style = settings.flag(&["path_style_access", "pathStyleAccess"], remarks)
        || endpoints.iter().any(|endpoint| needs_path_style(endpoint));
    let range = range(storage, settings, remarks);
    let part_bytes = part_bytes(settings, remarks);
    let restore_days = restore_days(settings, remarks);
    let target = Target::S3(S3 {
        http: http(settings, endpoints, remarks),
        access_key,
        secret_key,
        session_token: settings.secret(&["session_token", "sessionToken"]),
        region: settings.text(&["aws_region", "region"], REGION),
        path_style,
        sign_payload: false,
        storage_class: settings.find(&["storage_class"]).map(|entry| entry.value.to_owned()),
        encryption: None,
    });
    Some(Storage { target, range, part_bytes, restore_days })
}

fn restore_days(settings: &Settings<'_>, remarks: &mut Remarks) -> u32 {
    settings.number(&["restore_days"], remarks).unwrap_or(1).clamp(1, 36_500) as u32
}

fn endpoints(storage: &Element, settings: &Settings<'_>, remarks: &mut Remarks) -> Vec<String> {
    if let Some(entry) = settings.find(&["endpoint"]) {
        return address_list(entry, remarks);
    }
    if !settings.mentions(&["endpoint"]) {
        let help = "set endpoint=http://host:port unless you want Amazon S3";
        let message = "no `endpoint` is set; COSBench's default, http://s3.amazonaws.com, applies";
        remarks.warning(storage.span.clone(), message, help);
    }
    vec!["http://s3.amazonaws.com".to_owned()]
}

/// Several endpoints may stand side by side, separated by commas.
fn address_list(entry: &Entry<'_>, remarks: &mut Remarks) -> Vec<String> {
    let whole = |url: &str| read_address(url, false);
    match entry.value.split(',').map(|part| whole(part.trim())).collect::<Result<Vec<_>, _>>() {
        Ok(endpoints) => endpoints,
        Err(reason) => {
            refuse_address(entry, reason, remarks);
            Vec::new()
        }
    }
}

/// The address of an entry, if it is one; a missing scheme is `http`.
pub(super) fn address(entry: &Entry<'_>, path: bool, remarks: &mut Remarks) -> Option<String> {
    read_address(entry.value, path).map_err(|reason| refuse_address(entry, reason, remarks)).ok()
}

/// The value is not quoted: it may hold a password.
fn refuse_address(entry: &Entry<'_>, reason: &str, remarks: &mut Remarks) {
    let message = format!("`{}` is not an address: {reason}", entry.key);
    remarks.error(entry.span(), message, "write http://host:port or https://host:port");
}

fn read_address(text: &str, path: bool) -> Result<String, &'static str> {
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = url::Url::parse(&full).map_err(|_| "it cannot be read")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("its scheme is neither http nor https");
    }
    if url.host().is_none() || text.is_empty() {
        return Err("it has no host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it contains a user name or password; use their own keys instead");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it has a query or a fragment");
    }
    let origin = url.origin().ascii_serialization();
    match url.path().trim_end_matches('/') {
        "" => Ok(origin),
        rest if path => Ok(format!("{origin}{rest}")),
        _ => Err("it has a path; an endpoint is a host and a port"),
    }
}

/// As COSBench's AWS SDK decides: bucket names cannot stand before an IP address. Nor before `localhost`.
fn needs_path_style(endpoint: &str) -> bool {
    match url::Url::parse(endpoint).ok().as_ref().and_then(url::Url::host) {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(_) => true,
        None => false,
    }
}

fn keys(storage: &Element, settings: &Settings<'_>, remarks: &mut Remarks) -> (Secret, Secret) {
    const ACCESS: &[&str] = &["accesskey", "accessKey"];
    const SECRET: &[&str] = &["secretkey", "secretKey"];
    let given = |keys: &[&str]| settings.secret(keys).unwrap_or_default();
    let (access, secret) = (given(ACCESS), given(SECRET));
    let absent = |keys: &[&str], value: &Secret| {
        value.is_empty() && (!settings.mentions(keys) || settings.is_blank(keys))
    };
    match (absent(ACCESS, &access), absent(SECRET, &secret)) {
        (true, true) => {
            let help = "set accesskey= and secretkey= unless you want anonymous access";
            remarks.warning(storage.span.clone(), "no keys are set; requests are sent unsigned", help);
        }
        (true, false) => {
            remarks.error(storage.span.clone(), "`accesskey` is missing", "add accesskey=");
        }
        (false, true) => {
            remarks.error(storage.span.clone(), "`secretkey` is missing", "add secretkey=");
        }
        (false, false) => {}
    }
    (access, secret)
}

fn proxy(settings: &Settings<'_>, remarks: &mut Remarks) {
    if let Some(entry) = settings.find(&["proxyhost", "proxyHost", "proxyport", "proxyPort"]) {
        let help = "remove `proxyhost` and `proxyport`: Tidemark connects directly, otherwise it would \
            measure the proxy";
        remarks.error(entry.key_span(), format!("`{}`: proxies are not supported", entry.key), help);
    }
}

/// The transport's settings; the timeout is in milliseconds, as in COSBench.
fn http(settings: &Settings<'_>, endpoints: Vec<String>, remarks: &mut Remarks) -> Http {
    let mut http = Http {
        endpoints,
        insecure: settings.flag(&["no_verify_ssl", "insecure"], remarks),
        ca_file: settings.find(&["ca_file"]).map(|entry| PathBuf::from(entry.value)),
        ..Http::default()
    };
    match settings.number(&["timeout"], remarks) {
        Some(0) => {
            http.timeout_ns = 3_600_000_000_000;
            remarks.note(
                Differs::Figures,
                "timeout",
                "`timeout=0` means no limit in COSBench; Tidemark ends an attempt after an hour.",
            );
        }
        Some(milliseconds) => http.timeout_ns = milliseconds.saturating_mul(1_000_000),
        None => {}
    }
    if let Some(retries) = settings.number(&["retry"], remarks) {
        http.retries = retries.min(100) as u32;
        remarks.note(
            Differs::Figures,
            "retry",
            format!(
                "COSBench ignores `retry` in a storage's config; Tidemark makes up to {} \
                further attempts and counts their time in the operation's latency.",
                http.retries
            ),
        );
    }
    http
}

fn range(storage: &Element, settings: &Settings<'_>, remarks: &mut Remarks) -> Option<(u64, u64)> {
    if !settings.flag(&["is_range_request"], remarks) {
        return None;
    }
    let object = settings.number(&["file_length"], remarks);
    let chunk = settings.number(&["chunk_length"], remarks);
    match (chunk, object) {
        (Some(chunk), Some(object)) if chunk > 0 && chunk <= object => Some((chunk, object)),
        _ => {
            let help = "give file_length= (bytes of an object) and chunk_length= (bytes of a read, no \
                more than that)";
            let message = "`is_range_request` requires `file_length` and a `chunk_length` no larger than it";
            remarks.error(storage.span.clone(), message, help);
            None
        }
    }
}

fn part_bytes(settings: &Settings<'_>, remarks: &mut Remarks) -> u64 {
    let part_bytes = settings.number(&["part_size"], remarks).unwrap_or(PART_BYTES);
    if let Some(entry) = settings.find(&["part_size"]).filter(|_| part_bytes < PART_BYTES) {
        let help = "S3 rejects parts of less than 5242880 bytes, except the last";
        remarks.warning(entry.span(), format!("`part_size` is only {part_bytes} bytes"), help);
    }
    part_bytes.max(1)
}
