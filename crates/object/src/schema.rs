//! The keys of documents on objects, for editors.

use crate::document::operation::{DIVISIONS, VERBS};
use crate::document::target::AUTHS;
use serde_json::{Value, json};
use tidemark_plan::schema::Mapping;
use tidemark_plan::schema::values::{
    Key, bytes, duration, flag, list_or, rate, refer, selector, share, table, text, whole, words,
};

/// The mappings that hold keys of this engine.
pub(crate) fn schema() -> Vec<Mapping> {
    let common = || {
        vec![
            ("workers", whole("Logical clients", 1)),
            ("think", duration("Pause of a worker between operations")),
        ]
    };
    let with = |more: Vec<Key>| common().into_iter().chain(more).collect::<Vec<Key>>();
    let empty = ("empty", flag("Delete the objects in them first"));
    let written = with(vec![containers(), objects(), sizes()]).into_iter().chain(put()).collect();
    vec![
        Mapping::new("init", "Makes containers", with(vec![containers()])).requires(&["containers"]),
        Mapping::new("prepare", "Writes objects", written),
        Mapping::new("load", "The load that is measured", load()),
        Mapping::new("cleanup", "Deletes objects", with(vec![containers(), objects()])),
        Mapping::new("dispose", "Deletes containers", with(vec![containers(), empty]))
            .requires(&["containers"]),
        Mapping::new("operation", "An operation; which keys it has depends on what it does", operation()),
        Mapping::new("target", "Object storage", target()),
        Mapping::new("auth", "How a Swift token is got", auth()).requires(&["kind"]),
        Mapping::new("naming", "What containers and objects are called", naming()),
        Mapping::new("range", "A part of an object, at a random multiple of its length", range())
            .requires(&["length", "object_size"]),
        Mapping::new("multipart", "Upload in parts", multipart()).requires(&["part"]),
        Mapping::new("pool", "What may ever exist; reads and deletes choose of what does", pool()),
    ]
}

fn containers() -> Key {
    ("containers", selector("Numbers of containers"))
}

fn objects() -> Key {
    ("objects", selector("Numbers of objects"))
}

fn sizes() -> Key {
    ("sizes", text("Sizes of objects, such as 64KiB or u(4,64)KiB"))
}

/// How objects are written.
fn put() -> Vec<Key> {
    vec![
        ("chunked", flag("In chunks of unknown total length")),
        ("if_absent", flag("Only if it is not there")),
        ("multipart", refer("multipart", "In parts")),
        ("directory", text("Files of this directory instead of made content")),
        ("part", bytes("Bytes of a part of a file's upload")),
    ]
}

fn load() -> Vec<Key> {
    let verbs = VERBS.map(|(verb, _)| (verb, refer("operation", "One operation of the mix"))).to_vec();
    let operation = table("An operation, under its name", &[], verbs);
    vec![
        ("workers", whole("Logical clients", 1)),
        containers(),
        objects(),
        sizes(),
        ("division", division()),
        ("pool", refer("pool", "Keeps count of what exists")),
        ("operations", list_or("The mix of operations", &operation)),
    ]
}

fn division() -> Value {
    words("What is cut into parts, one for each worker", DIVISIONS.map(|(word, _)| word))
}

fn operation() -> Vec<Key> {
    let mut keys = vec![
        ("name", text("Its name in reports")),
        ("weight", json!({"description": "Its share, relative to the others", "type": ["number", "string"]})),
        containers(),
        objects(),
        sizes(),
        ("division", division()),
        ("range", refer("range", "Reads a part of the object")),
        ("count", whole("How many objects, in one request", 1)),
        ("page", whole("Entries of a page", 1)),
        ("all", flag("Follow pages to the end")),
        ("by_object", flag("Only names that begin with the object's")),
        ("days", whole("How long a restored object stays", 1)),
        ("empty", flag("With the objects in it")),
    ];
    keys.extend(put());
    keys.push(("naming", refer("naming", "What containers and objects are called")));
    keys.push(("content", refer("content", "What is written and checked")));
    keys
}

/// A key, and its twin that takes the path of a file.
fn secret(key: &'static str, file: &'static str, what: &str) -> [Key; 2] {
    [
        (key, text(&format!("{what}; ${{NAME}} for a variable"))),
        (file, text(&format!("{what}, from the file at this path"))),
    ]
}

fn target() -> Vec<Key> {
    let endpoint = text("Address of the server, such as http://10.0.0.1:8000");
    let mut keys = vec![
        ("endpoint", list_or("Address of the server", &endpoint)),
        ("endpoints", list_or("Addresses of the server, shared evenly", &endpoint)),
        ("region", text("Region named in signatures")),
        ("path_style", flag("http://host/bucket rather than http://bucket.host")),
        ("sign_payload", flag("Sign the payload, too")),
        ("storage_class", text("Storage class of writes")),
        ("auth", refer("auth", "How a Swift token is got")),
        ("policy", text("Storage policy of new containers")),
        ("timeout", duration("Longest time of one attempt")),
        ("retries", whole("Attempts beyond the first", 0)),
        ("back_off", duration("Pause before the first retry")),
        ("back_off_most", duration("Longest pause before a retry")),
        ("insecure", flag("Accept any TLS certificate")),
        ("ca_file", text("PEM file of authorities to trust")),
        ("keep_alive", flag("Keep connections")),
        ("place", words("Where the embedded server keeps objects", ["memory", "disk"])),
        (
            "durable",
            flag("Whether the embedded server answers a write to disk only once it is on stable storage"),
        ),
        ("limit", rate("Requests that the embedded server serves at most")),
        ("directory", text("Directory of the embedded server")),
        ("size", bytes("Size of an object of the mock, or of each volume")),
        ("delay", duration("How long an operation of the mock takes")),
        ("errors", share("Operations of the mock that fail")),
    ];
    keys.extend(secret("access_key", "access_key_file", "Access key"));
    keys.extend(secret("secret_key", "secret_key_file", "Secret key"));
    keys.extend(secret("session_token", "session_token_file", "Session token"));
    keys
}

fn auth() -> Vec<Key> {
    let mut keys = vec![
        ("kind", words("How", AUTHS.map(|(word, _)| word))),
        ("url", text("Address of the authentication")),
        ("storage_url", text("Address of the account")),
        ("user", text("User")),
        ("tenant", text("Tenant")),
        ("project", text("Project")),
        ("user_domain", text("Domain of the user")),
        ("project_domain", text("Domain of the project")),
        ("service", text("Service in the catalogue")),
        ("region", text("Region, if there are several")),
    ];
    keys.extend(secret("key", "key_file", "Key"));
    keys.extend(secret("password", "password_file", "Password"));
    keys.extend(secret("token", "token_file", "Token"));
    keys
}

fn naming() -> Vec<Key> {
    vec![
        ("container_prefix", text("Before a container's number")),
        ("container_suffix", text("After a container's number")),
        ("object_prefix", text("Before an object's number")),
        ("object_suffix", text("After an object's number")),
    ]
}

fn range() -> Vec<Key> {
    vec![("length", bytes("How much is read")), ("object_size", bytes("Size of the objects"))]
}

fn multipart() -> Vec<Key> {
    vec![("part", bytes("Size of a part")), ("parallel", whole("Parts at once", 1))]
}

fn pool() -> Vec<Key> {
    vec![containers(), objects(), ("existing", selector("Objects that are there at the start"))]
}
