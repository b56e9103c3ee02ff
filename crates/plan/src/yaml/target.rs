//! The `target` of a document: what the load runs against.
//!
//! Objects here, block storage in [`volumes`].

use super::environment::Environment;
use super::table::{Problem, Table};
use super::tree::{Node, Value};
use super::volumes::{self, Volumes};
use crate::defaults;
use crate::object::{self, Embedded, Http, Mock, Place, S3, Swift, SwiftAuth};
use crate::secret::Secret;
use std::path::PathBuf;

/// What the load runs against.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    /// Object storage.
    Object(Box<object::Target>),
    /// Block storage.
    Block(Volumes),
}

/// The kinds of targets, as documents call them.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    S3,
    Swift,
    Mock,
    Nothing,
    Embedded,
    Volumes(volumes::Kind),
}

pub(super) const KINDS: [(&str, Kind); 8] = [
    ("s3", Kind::S3),
    ("swift", Kind::Swift),
    ("mock", Kind::Mock),
    ("none", Kind::Nothing),
    ("embedded", Kind::Embedded),
    ("file", Kind::Volumes(volumes::Kind::File)),
    ("device", Kind::Volumes(volumes::Kind::Device)),
    ("rbd", Kind::Volumes(volumes::Kind::Rbd)),
];

/// Whether a target's kind is one of volumes.
pub(super) fn is_volumes(node: &Node) -> bool {
    let kind = node.entry("kind").map_or(node, |entry| &entry.node);
    let Value::Scalar(text) = &kind.value else { return false };
    let known = KINDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    known.is_some_and(|(_, kind)| matches!(kind, Kind::Volumes(_)))
}

/// Reads the mapping under `target`; `None` after an error that leaves nothing to continue with.
pub(super) fn target(mut table: Table<'_>, environment: &Environment<'_>) -> Option<Target> {
    let help = "write s3, swift, embedded, mock or none; or file, device or rbd";
    let kind = table.required("kind", help, |text| super::table::choose(text, &KINDS));
    let target = match kind? {
        Kind::Volumes(kind) => Target::Block(volumes::volumes(kind, &mut table, environment)),
        Kind::S3 => on_objects(object::Target::S3(s3(&mut table, environment))),
        Kind::Swift => on_objects(object::Target::Swift(swift(&mut table, environment)?)),
        Kind::Nothing => on_objects(object::Target::Nothing),
        Kind::Mock => on_objects(object::Target::Mock(Mock {
            size: table.bytes("size", 0).unwrap_or(1000),
            delay_ns: table.duration("delay").unwrap_or(10_000_000),
            errors: table.share("errors").unwrap_or(0.0),
        })),
        Kind::Embedded => on_objects(object::Target::Embedded(Embedded {
            durable: table.flag("durable").unwrap_or(false),
            place: place(&mut table),
            limit: table.read("limit", |text| match super::work::rate(text)? {
                0.0 => Err(Problem::new("the limit is zero", "write a rate such as 2000/s")),
                rate => Ok(rate),
            }),
        })),
    };
    table.finish();
    Some(target)
}

fn on_objects(target: object::Target) -> Target {
    Target::Object(Box::new(target))
}

/// A target that needs no settings, named alone: `target: embedded`.
pub(super) fn named(text: &str) -> Result<Target, Problem> {
    let needs = |what: &str| {
        let help = format!("write `target: {{kind: {text}, ...}}` with {what}");
        Err(Problem::new(format!("the target '{text}' needs settings"), help))
    };
    Ok(on_objects(match super::table::choose(text, &KINDS)? {
        Kind::Nothing => object::Target::Nothing,
        Kind::Mock => object::Target::Mock(Mock { size: 1000, delay_ns: 10_000_000, errors: 0.0 }),
        Kind::Embedded => {
            object::Target::Embedded(Embedded { place: Place::Memory, limit: None, durable: false })
        }
        Kind::S3 | Kind::Swift => return needs("its address and credentials"),
        Kind::Volumes(_) => return needs("its path and size"),
    }))
}

fn place(table: &mut Table<'_>) -> Place {
    if !table.has("directory") && table.word("place", &[("memory", true), ("disk", false)]).unwrap_or(true) {
        table.meaningless(&["durable"], "objects are kept in memory");
    }
    let disk = table.word("place", &[("memory", false), ("disk", true)]);
    let directory = table.text("directory").map(PathBuf::from);
    match (disk, directory) {
        (Some(false), Some(_)) => {
            table.meaningless(&["directory"], "objects are kept in memory");
            Place::Memory
        }
        (None, Some(directory)) | (Some(true), Some(directory)) => Place::Disk(Some(directory)),
        (Some(true), None) => Place::Disk(None),
        (None | Some(false), None) => Place::Memory,
    }
}

fn s3(table: &mut Table<'_>, environment: &Environment<'_>) -> S3 {
    let http = http(table, environment);
    if http.endpoints.is_empty() && !table.has("endpoint") && !table.has("endpoints") {
        table.missing("endpoint", "write the address of the server, such as http://10.0.0.1:8000");
    }
    let named = table.has("access_key") || table.has("access_key_file");
    let secret = table.has("secret_key") || table.has("secret_key_file");
    let (access_key, secret_key) = match (named, secret) {
        (false, false) => (String::new(), Secret::default()),
        (true, false) => {
            table.missing("secret_key", "add it, or remove the access key for anonymous requests");
            Default::default()
        }
        (false, true) => {
            table.missing("access_key", "add it, or remove the secret key for anonymous requests");
            Default::default()
        }
        (true, true) => (
            environment.text_or_file(table, "access_key", "access_key_file").unwrap_or_default(),
            environment.required_secret(table, "secret_key", "secret_key_file"),
        ),
    };
    S3 {
        http,
        access_key,
        secret_key,
        session_token: environment.secret(table, "session_token", "session_token_file"),
        region: environment.text(table, "region").unwrap_or_else(|| defaults::REGION.into()),
        path_style: table.flag("path_style").unwrap_or(true),
        sign_payload: table.flag("sign_payload").unwrap_or(false),
        storage_class: table.text("storage_class"),
    }
}

fn swift(table: &mut Table<'_>, environment: &Environment<'_>) -> Option<Swift> {
    let http = http(table, environment);
    let policy = table.text("policy");
    let auth = table.required_table("auth", "write `auth: {kind: tempauth, url: ..., user: ..., key: ...}`");
    Some(Swift { http, auth: swift_auth(auth?, environment)?, policy })
}

/// The ways to get a Swift token, as documents call them, and which of four they are.
pub(super) const AUTHS: [(&str, u8); 5] =
    [("token", 0), ("tempauth", 1), ("swauth", 1), ("keystone-v2", 2), ("keystone-v3", 3)];

fn swift_auth(mut table: Table<'_>, environment: &Environment<'_>) -> Option<SwiftAuth> {
    let auth = &mut table;
    let help = "write tempauth, keystone-v3, keystone-v2 or token";
    let kind = auth.required("kind", help, |text| super::table::choose(text, &AUTHS))?;
    let text = |auth: &mut Table<'_>, key, example: &str| {
        if !auth.has(key) {
            auth.missing(key, &format!("such as {example}"));
        }
        environment.text(auth, key).unwrap_or_default()
    };
    let url = |auth: &mut Table<'_>, key, example: &str| {
        let help = format!("such as {example}");
        auth.required(key, &help, |text| address(&environment.expand(text)?, true)).unwrap_or_default()
    };
    let service = |auth: &mut Table<'_>| auth.text("service").unwrap_or_else(|| "swift".into());
    let domain = |auth: &mut Table<'_>, key| environment.text(auth, key).unwrap_or_else(|| "Default".into());
    let read = match kind {
        0 => SwiftAuth::Token {
            token: environment.required_secret(auth, "token", "token_file"),
            storage_url: url(auth, "storage_url", "http://10.0.0.1:8080/v1/AUTH_test"),
        },
        1 => SwiftAuth::TempAuth {
            url: url(auth, "url", "http://10.0.0.1:8080/auth/v1.0"),
            user: text(auth, "user", "test:tester"),
            key: environment.required_secret(auth, "key", "key_file"),
        },
        2 => SwiftAuth::KeystoneV2 {
            url: url(auth, "url", "http://10.0.0.1:5000/v2.0"),
            user: text(auth, "user", "demo"),
            password: environment.required_secret(auth, "password", "password_file"),
            tenant: text(auth, "tenant", "demo"),
            service: service(auth),
            region: environment.text(auth, "region"),
        },
        _ => SwiftAuth::KeystoneV3 {
            url: url(auth, "url", "http://10.0.0.1:5000/v3"),
            user: text(auth, "user", "demo"),
            password: environment.required_secret(auth, "password", "password_file"),
            user_domain: domain(auth, "user_domain"),
            project: text(auth, "project", "demo"),
            project_domain: domain(auth, "project_domain"),
            service: service(auth),
            region: environment.text(auth, "region"),
        },
    };
    table.finish();
    Some(read)
}

fn http(table: &mut Table<'_>, environment: &Environment<'_>) -> Http {
    let usual = Http::default();
    let key = if table.has("endpoint") { "endpoint" } else { "endpoints" };
    table.contradiction("endpoint", "endpoints", "one address or a list of them");
    let nodes = table.list(key).unwrap_or_default();
    let read = |node| table.scalar(node, key, |text| address(&environment.expand(text)?, false));
    let endpoints = nodes.iter().filter_map(read).collect();
    Http {
        endpoints,
        timeout_ns: table.positive_duration("timeout").unwrap_or(usual.timeout_ns),
        retries: table.small("retries", 0..=1000).unwrap_or(usual.retries),
        back_off_ns: table.duration("back_off").unwrap_or(usual.back_off_ns),
        back_off_most_ns: table.duration("back_off_most").unwrap_or(usual.back_off_most_ns),
        insecure: table.flag("insecure").unwrap_or(usual.insecure),
        ca_file: environment.text(table, "ca_file").map(PathBuf::from),
        no_keep_alive: !table.flag("keep_alive").unwrap_or(!usual.no_keep_alive),
    }
}

/// Checks an address; without a path unless `with_path`. Gives it without a slash at its end.
pub(super) fn address(text: &str, with_path: bool) -> Result<String, Problem> {
    let help = "write http://host:port or https://host:port";
    if text.contains(['<', '>']) {
        return Err(Problem::new(format!("`{text}` holds a placeholder"), "replace it with the real host"));
    }
    if text.contains('@') {
        return Err(Problem::new("the address holds credentials", "put them under their own keys"));
    }
    let url = match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        _ => return Err(Problem::new(format!("'{text}' is not an HTTP address"), help)),
    };
    if url.query().is_some() || url.fragment().is_some() || (!with_path && url.path() != "/") {
        return Err(Problem::new(format!("'{text}' has more than a host and a port"), help));
    }
    Ok(text.trim_end_matches('/').to_owned())
}
