//! The keys of documents on objects, for editors.

use crate::document::operation::{DIVISIONS, VERBS};
use crate::document::target::AUTHS;
use serde_json::{Value, json};
use tidemark_plan::schema::Mapping;
use tidemark_plan::schema::values::{
    Key, bytes, duration, flag, list_or, rate, refer, selector, share, table, text, think, whole, words,
};

/// The mappings that hold keys of this engine.
pub(crate) fn schema() -> Vec<Mapping> {
    let common = || vec![("workers", whole("Number of logical clients", 1)), ("think", think())];
    let with = |more: Vec<Key>| common().into_iter().chain(more).collect::<Vec<Key>>();
    let empty = ("empty", flag("Delete their objects first"));
    let written = with(vec![containers(), objects(), sizes()]).into_iter().chain(put()).collect();
    vec![
        Mapping::new("init", "Makes containers", with(vec![containers()])).requires(&["containers"]),
        Mapping::new("prepare", "Writes objects", written),
        Mapping::new("load", "The load that is measured", load()),
        Mapping::new("cleanup", "Deletes objects", with(vec![containers(), objects()])),
        Mapping::new("dispose", "Deletes containers", with(vec![containers(), empty]))
            .requires(&["containers"]),
        Mapping::new("operation", "An operation; its keys depend on what it does", operation()),
        Mapping::new("target", "Object storage", target()),
        Mapping::new("auth", "How to get a Swift token", auth()).requires(&["kind"]),
        Mapping::new("naming", "Names of containers and objects", naming()),
        Mapping::new("range", "A part of an object, at a random multiple of its length", range())
            .requires(&["length", "object_size"]),
        Mapping::new("multipart", "Upload in parts", multipart()).requires(&["part"]),
        Mapping::new("pool", "Objects that may exist; reads and deletes use those that do", pool()),
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
        ("chunked", flag("Send in chunks, without a total length")),
        ("if_absent", flag("Only if the object does not exist")),
        ("multipart", refer("multipart", "Upload in parts")),
        ("directory", text("Upload the files of this directory instead of generated content")),
        ("part", bytes("Size of each part of a file's upload")),
    ]
}

fn load() -> Vec<Key> {
    let verbs = VERBS.map(|(verb, _)| (verb, refer("operation", "One operation of the mix"))).to_vec();
    let operation = table("An operation, under its name", &[], verbs);
    vec![
        ("workers", whole("Number of logical clients", 1)),
        containers(),
        objects(),
        sizes(),
        ("division", division()),
        ("pool", refer("pool", "Tracks which objects exist")),
        ("operations", list_or("The mix of operations", &operation)),
    ]
}

fn division() -> Value {
    words("What to divide among the workers", DIVISIONS.map(|(word, _)| word))
}

fn operation() -> Vec<Key> {
    let mut keys = vec![
        ("name", text("Name in reports")),
        (
            "weight",
            json!({"description": "Share, relative to the other operations", "type": ["number", "string"]}),
        ),
        containers(),
        objects(),
        sizes(),
        ("division", division()),
        ("range", refer("range", "Read a part of the object")),
        ("count", whole("Number of objects in one request", 1)),
        ("page", whole("Entries per page", 1)),
        ("all", flag("Follow pages to the end")),
        ("by_object", flag("List only names that begin with the object's")),
        ("days", whole("How many days a restored object remains", 1)),
        ("empty", flag("Delete its objects, too")),
    ];
    keys.extend(put());
    keys.push(("naming", refer("naming", "Names of containers and objects")));
    keys.push(("content", refer("content", "What to write and verify")));
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
        ("endpoints", list_or("Addresses of the server; workers are spread evenly", &endpoint)),
        ("region", text("Region in signatures")),
        ("path_style", flag("http://host/bucket rather than http://bucket.host")),
        ("sign_payload", flag("Sign the payload, too")),
        ("storage_class", text("Storage class of writes")),
        ("auth", refer("auth", "How to get a Swift token")),
        ("policy", text("Storage policy of new containers")),
        ("timeout", duration("Time limit of one attempt")),
        ("retries", whole("Attempts after the first", 0)),
        ("back_off", duration("Pause before the first retry")),
        ("back_off_most", duration("Longest pause before a retry")),
        ("insecure", flag("Accept any TLS certificate")),
        ("ca_file", text("PEM file of certificate authorities to trust")),
        ("keep_alive", flag("Keep connections open")),
        ("place", words("Where the embedded server stores objects", ["memory", "disk"])),
        ("durable", flag("The embedded server confirms a write only once it is on stable storage")),
        ("limit", rate("Limit of requests that the embedded server serves")),
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
        ("url", text("Address of the authentication service")),
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
    vec![("length", bytes("Bytes to read")), ("object_size", bytes("Size of the objects"))]
}

fn multipart() -> Vec<Key> {
    vec![("part", bytes("Size of a part")), ("parallel", whole("Parts in flight at once", 1))]
}

fn pool() -> Vec<Key> {
    vec![containers(), objects(), ("existing", selector("Objects that are there at the start"))]
}
