//! The `target` of a document: which database the load runs against.

use super::instances;
use crate::dialect::Dialect;
use crate::instances::Instances;
use crate::job::{Endpoint, Target, Tls};
use std::path::PathBuf;
use tidemark_keys::kinds::{Flag, Parsed, PositiveDuration, Text, Whole, Word};
use tidemark_keys::shapes::OneOrList;
use tidemark_keys::{Key, Mapping, OrFile, Problem, Table};
use url::Url;

/// The kinds of targets.
pub(crate) static KINDS: [&Mapping; 4] = [&POSTGRES, &COCKROACH, &MYSQL, &MARIADB];

static POSTGRES: Mapping =
    Mapping::kind("postgres", "PostgreSQL, and what speaks its protocol", &[&REPLICAS])
        .with(&[&PLACE, &SESSION]);
static COCKROACH: Mapping =
    Mapping::kind("cockroach", "CockroachDB: conflicts are retried by its savepoint protocol", &[])
        .with(&[&PLACE, &SESSION]);
static MYSQL: Mapping =
    Mapping::kind("mysql", "MySQL 8, and what speaks its language and protocol", &[&REPLICAS])
        .with(&[&PLACE, &SESSION]);
static MARIADB: Mapping =
    Mapping::kind("mariadb", "MariaDB: the same as `mysql`", &[&REPLICAS]).with(&[&PLACE, &SESSION]);

static PLACE: Mapping = Mapping::new(
    "database_place",
    "Where a database is, and who connects",
    &[
        &URL,
        &HOST,
        &PORT,
        &ENDPOINTS,
        &INSTANCES,
        &USER,
        &PASSWORD.text,
        &PASSWORD.file,
        &DATABASE,
        &TLS,
        &CA_FILE,
    ],
);
static SESSION: Mapping = Mapping::new("database_session", "How it is spoken to", &[&TIMEOUT, &PREPARED]);

static URL: Key<Parsed<Address>> = Key::new(
    "url",
    "Address, user and database in one; keys beside it go before it",
    Parsed("`postgres://user@host:port/database`, or `mysql:`, or `mariadb:`", address),
)
.example("postgres://bench@10.0.0.1:5432/bench")
.expanded();
static HOST: Key<Text> = Key::new(
    "host",
    "Host, or the path of a Unix socket: with PostgreSQL, of its directory or of the socket",
    Text,
)
.default("127.0.0.1")
.expanded();
static PORT: Key<Whole<u16>> =
    Key::new("port", "Port", Whole(1, u16::MAX)).otherwise("the database's usual one").expanded();
/// A server of `endpoints`: its host, and its port if that is not the usual one.
type Place = (String, Option<u16>);

static ENDPOINTS: Key<OneOrList<Parsed<Place>>> = Key::new(
    "endpoints",
    "Several servers of one database, which connections take in turn",
    OneOrList(Parsed("`host:port`", host_and_port)),
)
.expanded();
static REPLICAS: Key<OneOrList<Parsed<Place>>> = Key::new(
    "replicas",
    "Servers that follow this database and serve reads: the lag of each is measured, and loads with `reads_from: replicas` run there",
    OneOrList(Parsed("`host:port`", host_and_port)),
)
.example("10.0.0.2:5432")
.expanded();
static INSTANCES: Key<OneOrList<Parsed<Vec<instances::Place>>>> = Key::new(
    "instances",
    "Several databases that are loaded and run together: listed, with commas or as a list, or numbered by ranges in braces",
    OneOrList(Parsed("`host:port`, `host:port/database`, `host:{5432-5435}`", instances::places)),
)
.example("10.0.0.1:{5432-5435}")
.expanded();
static USER: Key<Text> = Key::new("user", "User", Text).otherwise("the dialect's usual one").expanded();
static PASSWORD: OrFile =
    OrFile::new("password", "password_file", "Password").example("${TIDEMARK_SECRET_PASSWORD}");
static DATABASE: Key<Text> = Key::new("database", "Database", Text).otherwise("named as the user").expanded();
static TLS: Key<Word<Tls>> = Key::new(
    "tls",
    "Encryption, as PostgreSQL's `sslmode`: `require` accepts any certificate, `verify-full` checks it",
    Word(&[
        ("disable", Tls::Disable),
        ("prefer", Tls::Prefer),
        ("require", Tls::Require),
        ("verify-full", Tls::Verify),
    ]),
)
.otherwise("`prefer`")
.also(&["sslmode"]);
static CA_FILE: Key<Text> = Key::new("ca_file", "PEM file of certificate authorities to trust", Text)
    .otherwise("the system's authorities")
    .also(&["sslrootcert"])
    .expanded();
static TIMEOUT: Key<PositiveDuration> =
    Key::new("timeout", "Time limit of one statement", PositiveDuration).default("30s");
static PREPARED: Key<Flag> =
    Key::new("prepared", "Prepare statements under names; `false` behind a pool in transaction mode", Flag)
        .default("true");

/// The schemes of URLs, each with whether it is for MySQL's dialect.
const SCHEMES: [(&str, bool); 5] =
    [("postgres", false), ("postgresql", false), ("cockroachdb", false), ("mysql", true), ("mariadb", true)];

/// What a URL says.
#[derive(Clone, Debug, Default)]
struct Address {
    scheme: String,
    host: Option<String>,
    port: Option<u16>,
    user: Option<String>,
    database: Option<String>,
    tls: Option<Tls>,
}

fn address(text: &str) -> Result<Address, Problem> {
    let help = "write postgres://user@host:port/database, or mysql://user@host:port/database";
    let url = Url::parse(text).map_err(|error| Problem::new(format!("this is no URL ({error})"), help))?;
    if !SCHEMES.iter().any(|(scheme, _)| *scheme == url.scheme()) {
        return Err(Problem::new(format!("the scheme is '{}'", url.scheme()), help));
    }
    if url.password().is_some() {
        let help = "write it under `password` or `password_file`, where it is kept secret";
        return Err(Problem::new("the URL contains a password", help));
    }
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let mut address = Address {
        scheme: url.scheme().to_owned(),
        host: url.host_str().and_then(|host| some(host.trim_start_matches('[').trim_end_matches(']'))),
        port: url.port(),
        user: some(url.username()),
        database: some(url.path().trim_start_matches('/')),
        tls: None,
    };
    for (name, value) in url.query_pairs() {
        match (&*name, &*value) {
            ("sslmode", "disable") => address.tls = Some(Tls::Disable),
            ("sslmode", "prefer" | "allow") => address.tls = Some(Tls::Prefer),
            ("sslmode", "require") => address.tls = Some(Tls::Require),
            ("sslmode", "verify-full") => address.tls = Some(Tls::Verify),
            ("host", host) => address.host = some(host),
            _ => {
                let help = "parameters that a URL may have are sslmode (disable, prefer, require, verify-full) and host";
                return Err(Problem::new(format!("the URL's parameter {name}={value} is unknown"), help));
            }
        }
    }
    Ok(address)
}

pub(crate) fn host_and_port(text: &str) -> Result<(String, Option<u16>), Problem> {
    let wrong =
        || Problem::new(format!("'{text}' names no server"), "write host:port, such as 10.0.0.1:5432");
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.starts_with('[') => {
            (host, Some(port.parse().map_err(|_| wrong())?))
        }
        _ => (text, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() { Err(wrong()) } else { Ok((host.to_owned(), port)) }
}

/// Reads the mapping under `target`: a database, or its instances.
pub(crate) fn target(kind: &str, table: &mut Table<'_>) -> Option<Instances> {
    let (dialect, usual_port, usual_user) = match kind {
        "cockroach" => (Dialect::Cockroach, 26257, "root"),
        "mysql" | "mariadb" => (Dialect::Mysql, 3306, "root"),
        _ => (Dialect::Postgres, 5432, "postgres"),
    };
    table.contradiction(&HOST, &ENDPOINTS, "one server or a list of them");
    table.contradiction(&URL, &ENDPOINTS, "one server or a list of them");
    table.contradiction(&HOST, &INSTANCES, "one database or several");
    table.contradiction(&URL, &INSTANCES, "one database or several");
    table.contradiction(&ENDPOINTS, &INSTANCES, "servers of one database or several databases");
    let given = table.get(&URL).unwrap_or_default();
    let is_mysql = dialect == Dialect::Mysql;
    if SCHEMES.iter().any(|(scheme, mysql)| *scheme == given.scheme && *mysql != is_mysql) {
        let place = table.entry(&URL).map(|entry| entry.key_span.clone()).unwrap_or_default();
        let message = format!("the scheme is '{}', and the target's kind is '{kind}'", given.scheme);
        table.log().error(&place, message, "make one of them fit the other");
    }
    let port = table.get(&PORT).or(given.port).unwrap_or(usual_port);
    let own_host = if table.has(&HOST) { table.get(&HOST) } else { given.host };
    let mut endpoints: Vec<Endpoint> = table
        .all(&ENDPOINTS)
        .into_iter()
        .map(|(host, own)| endpoint(dialect, host, own.unwrap_or(port)))
        .collect();
    if endpoints.is_empty() {
        endpoints.push(endpoint(dialect, own_host.unwrap_or_else(|| "127.0.0.1".into()), port));
    }
    let replicas = replicas(dialect, table, port, &endpoints);
    let user = table.get(&USER).or(given.user).unwrap_or_else(|| usual_user.into());
    let places: Vec<_> = table.all(&INSTANCES).into_iter().flatten().collect();
    let target = Target {
        dialect,
        endpoints,
        replicas,
        database: table.get(&DATABASE).or(given.database).unwrap_or_else(|| user.clone()),
        user,
        password: table.secret(&PASSWORD),
        tls: table.get(&TLS).or(given.tls).unwrap_or(Tls::Prefer),
        ca_file: table.get(&CA_FILE).map(PathBuf::from),
        timeout_ns: table.value(&TIMEOUT),
        prepared: table.value(&PREPARED),
    };
    let instance = |place: instances::Place| Target {
        endpoints: vec![endpoint(dialect, place.host, place.port.unwrap_or(port))],
        database: place.database.unwrap_or_else(|| target.database.clone()),
        ..target.clone()
    };
    let mut all: Vec<Target> = Vec::with_capacity(places.len());
    for one in places.into_iter().map(instance) {
        if all.contains(&one) {
            let help = "name each instance once: what it does would count twice";
            table.log().error(table.place(), format!("{} is an instance twice", one.describe()), help);
            return None;
        }
        all.push(one);
    }
    let mut all = all.into_iter();
    Some(all.next().map_or_else(|| target.clone().into(), |first| Instances::new(first, all.collect())))
}

/// The replicas of a database, each once.
fn replicas(dialect: Dialect, table: &mut Table<'_>, port: u16, endpoints: &[Endpoint]) -> Vec<Endpoint> {
    let mut replicas: Vec<Endpoint> = Vec::new();
    if dialect == Dialect::Cockroach {
        // Its nodes have no such roles, and the key is none of its.
        return replicas;
    }
    table.contradiction(&REPLICAS, &INSTANCES, "replicas of one database or several databases");
    for (host, own) in table.all(&REPLICAS) {
        let replica = endpoint(dialect, host, own.unwrap_or(port));
        if endpoints.contains(&replica) || replicas.contains(&replica) {
            let message = format!("{replica} is named twice among the primary and its replicas");
            table.log().error(table.place(), message, "name each server once, in its role");
        }
        replicas.push(replica);
    }
    replicas
}

/// A host that begins with a slash is a Unix socket; PostgreSQL's has a name with the port in it, and its directory is given
/// (libpq's rule), or the socket itself, as the lab names it.
fn endpoint(dialect: Dialect, host: String, port: u16) -> Endpoint {
    match (host.starts_with('/'), dialect) {
        (true, Dialect::Postgres | Dialect::Cockroach)
            if !host.rsplit('/').next().is_some_and(|name| name.starts_with(".s.PGSQL.")) =>
        {
            Endpoint::Unix(PathBuf::from(host).join(format!(".s.PGSQL.{port}")))
        }
        (true, _) => Endpoint::Unix(host.into()),
        (false, _) => Endpoint::Tcp(host, port),
    }
}
