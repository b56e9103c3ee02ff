//! The `target` of a document: what the load runs against.

use crate::job::{self, Embedded, Http, Mock, Place, S3, Swift, SwiftAuth, Target};
use std::path::PathBuf;
use tidemark_plan::secret::Secret;
use tidemark_plan::yaml::environment::Environment;
use tidemark_plan::yaml::table::{self, Problem, Table};
use tidemark_plan::yaml::timing;
use tidemark_plan::yaml::values::address;

/// The kinds of targets, as documents call them.
pub(crate) const KINDS: [&str; 5] = ["s3", "swift", "mock", "none", "embedded"];

/// Reads the mapping under `target`, whose kind is known; `None` after an error that leaves nothing to go on with.
pub(crate) fn target(kind: &str, table: &mut Table<'_>, environment: &Environment<'_>) -> Option<Target> {
    Some(match kind {
        "s3" => Target::S3(s3(table, environment)),
        "swift" => Target::Swift(swift(table, environment)?),
        "mock" => Target::Mock(mock(table)),
        "embedded" => Target::Embedded(embedded(table)),
        _ => Target::Nothing,
    })
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

fn mock(table: &mut Table<'_>) -> Mock {
    let usual = Mock::default();
    Mock {
        size: table.bytes("size", 0).unwrap_or(usual.size),
        delay_ns: table.duration("delay").unwrap_or(usual.delay_ns),
        errors: table.share("errors").unwrap_or(usual.errors),
    }
}

fn embedded(table: &mut Table<'_>) -> Embedded {
    Embedded {
        durable: table.flag("durable").unwrap_or(false),
        place: place(table),
        limit: table.read("limit", |text| match timing::rate(text)? {
            0.0 => Err(Problem::new("the limit is zero", "write a rate such as 2000/s")),
            rate => Ok(rate),
        }),
    }
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
        region: environment.text(table, "region").unwrap_or_else(|| job::REGION.into()),
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
pub(crate) const AUTHS: [(&str, u8); 5] =
    [("token", 0), ("tempauth", 1), ("swauth", 1), ("keystone-v2", 2), ("keystone-v3", 3)];

fn swift_auth(mut table: Table<'_>, environment: &Environment<'_>) -> Option<SwiftAuth> {
    let auth = &mut table;
    let help = "write tempauth, keystone-v3, keystone-v2 or token";
    let kind = auth.required("kind", help, |text| table::choose(text, &AUTHS))?;
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
