//! The mappings of workload documents.

use super::values::{
    Key, bytes, duration, flag, list, list_or, rate, refer, selector, share, table, text, whole, words,
};
use crate::block::pattern::PATTERNS;
use crate::block::profile::PROFILES;
use crate::yaml::words as known;
use serde_json::{Value, json};

/// All mappings, by name.
pub(super) fn tables() -> Vec<Key> {
    vec![
        ("workload", workload()),
        ("stage", stage()),
        ("init", init()),
        ("prepare", prepare()),
        ("precondition", precondition()),
        ("load", load()),
        ("cleanup", cleanup()),
        ("dispose", dispose()),
        ("operation", operation()),
        ("target", target()),
        ("auth", auth()),
        ("naming", naming()),
        ("content", content()),
        ("range", range()),
        ("multipart", multipart()),
        ("pool", pool()),
        ("rate_point", rate_point()),
        ("steady", steady()),
        ("drivers", drivers()),
    ]
}

fn drivers() -> Value {
    let keys = vec![
        ("use", super::values::wanted("Which drivers take part; all if it is not given")),
        ("on_loss", words("When one is lost: the stage ends, or goes on without it", ["stop", "continue"])),
        ("lost_after", duration("A driver that says nothing for so long is lost")),
    ];
    table("How a run is spread over the drivers of a controller", &[], keys)
}

fn workload() -> Value {
    let mut keys = vec![
        ("name", text("Name of the workload")),
        ("description", text("What it is for")),
        ("seed", whole("Where all random choices come from; without it, from the text", 0)),
        ("on_failure", on_failure()),
        ("observe", refer("observe", "What is observed while it runs")),
        ("drivers", super::values::drivers()),
        ("stages", stages()),
    ];
    keys.extend(scope());
    table("A workload: stages that run one after the other", &["name", "stages"], keys)
}

pub(super) fn on_failure() -> Value {
    words("After a stage that failed: stop, but clean up, or go on with all", ["stop", "continue"])
}

pub(super) fn stages() -> Value {
    list("Stages, one after the other", &refer("stage", "Works that run side by side"))
}

/// What may stand at every level of a document.
fn scope() -> Vec<Key> {
    let named = words("A target that needs no settings", ["embedded", "mock", "none"]);
    let mut scope = naming_and_content();
    scope.push((
        "target",
        json!({"description": "What load is put on", "anyOf": [named, {"$ref": "#/$defs/target"}]}),
    ));
    scope
}

fn naming_and_content() -> Vec<Key> {
    vec![
        ("naming", refer("naming", "What containers and objects are called")),
        ("content", refer("content", "What is written and checked")),
    ]
}

/// The kinds of works, each under its key.
fn works() -> Vec<Key> {
    known::works().map(|kind| (kind, refer(kind, does(kind)))).collect()
}

fn does(kind: &str) -> &'static str {
    match kind {
        "init" => "Makes containers",
        "prepare" => "Writes objects, or fills volumes",
        "precondition" => "Writes the capacity of volumes several times",
        "cleanup" => "Deletes objects, or removes files and images",
        "dispose" => "Deletes containers",
        _ => "The load that is measured",
    }
}

fn stage() -> Value {
    let work = table("A work, under its kind", &[], works());
    let mut keys = vec![
        ("name", text("Name of the stage")),
        ("pause", duration("Pause after its works; alone, the stage only waits")),
        ("trigger", text("script.sh(arguments) around the stage")),
        ("on_failure", on_failure()),
        ("works", list_or("Works that run side by side", &work)),
    ];
    keys.extend(works());
    keys.extend(scope());
    table("A stage: works that run side by side, then a pause", &[], keys)
}

/// Keys of every work.
fn common() -> Vec<Key> {
    let mut keys = vec![
        ("name", text("Name of the work; its kind if it is not given")),
        ("workers", whole("Logical clients", 1)),
        ("allowed_failures", share("More failures than this, and the work has failed")),
        ("think", duration("Pause of a worker between operations")),
        ("drain", duration("How long operations in flight may take after the end")),
        ("give_up", duration("End, as failed, after so long without a success; or never")),
        ("driver", text("The driver that it is pinned to")),
    ];
    keys.extend(scope());
    keys
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

fn with(more: Vec<Key>) -> Vec<Key> {
    common().into_iter().chain(more).collect()
}

fn init() -> Value {
    table(does("init"), &["containers"], with(vec![containers()]))
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

fn depth() -> Value {
    whole("Operations of a client in flight at once", 1)
}

fn prepare() -> Value {
    let mut keys = with(vec![containers(), objects(), sizes()]);
    keys.extend(put());
    keys.push(("depth", depth()));
    keys.push(("reuse", flag("A volume that holds the content already is left as it is")));
    table(does("prepare"), &[], keys)
}

fn precondition() -> Value {
    let writes = ["write", "randwrite"];
    let keys = vec![
        ("pattern", words("How it is written", writes)),
        ("block_size", block_size()),
        ("passes", whole("How often the capacity is written", 1)),
        ("depth", depth()),
    ];
    let mut all = with(keys);
    all.retain(|(key, _)| !matches!(*key, "workers" | "think"));
    table(does("precondition"), &[], all)
}

fn cleanup() -> Value {
    table(does("cleanup"), &[], with(vec![containers(), objects()]))
}

fn dispose() -> Value {
    let keys = vec![containers(), ("empty", flag("Delete the objects in them first"))];
    table(does("dispose"), &["containers"], with(keys))
}

fn block_size() -> Value {
    let split = json!({
        "description": "Sizes with weights, such as {4KiB: 60, 64KiB: 40}",
        "type": "object",
        "additionalProperties": {"type": ["integer", "string"]},
    });
    json!({"description": "Block size", "anyOf": [bytes("Block size"), split]})
}

fn load() -> Value {
    let verbs = known::verbs();
    let operation = verbs.map(|verb| (verb, refer("operation", "One operation of the mix"))).collect();
    let patterns = PATTERNS.iter().map(|pattern| pattern.name);
    let patterns = words("Pattern or profile", patterns.chain(PROFILES.iter().map(|profile| profile.name)));
    let points = list("A rate that changes over time", &refer("rate_point", "One point of it"));
    let steady = json!({
        "description": "The window begins when rounds of this length are steady",
        "anyOf": [{"$ref": "#/$defs/steady"}, duration("Length of a round")],
    });
    let keys = with(vec![
        containers(),
        objects(),
        sizes(),
        ("for", duration("Length of the measured window")),
        ("total_operations", whole("Measured operations over all workers", 1)),
        ("total_bytes", bytes("Ends with the operation that reaches them")),
        ("warm_up", duration("Full load before the window, not measured")),
        ("ramp_up", duration("Workers start one after the other over this time, not measured")),
        ("ramp_down", duration("Full load after the window, not measured")),
        (
            "rate",
            json!({
                "description": "Operations are due at fixed times: an open loop",
                "anyOf": [rate("All the time"), points],
            }),
        ),
        ("arrivals", words("How due times spread around the rate", ["constant", "poisson"])),
        ("division", division()),
        ("pool", refer("pool", "Keeps count of what exists")),
        (
            "operations",
            list_or("The mix of operations", &table("An operation, under its name", &[], operation)),
        ),
        ("pattern", list_or("What a load on volumes does", &patterns)),
        ("block_size", list_or("Block sizes", &block_size())),
        ("depth", list_or("Operations of a client in flight at once", &depth())),
        ("clients", list_or("Clients of a load on volumes", &whole("A number of clients", 1))),
        ("repeats", whole("How often all of it is measured, one run for all", 1)),
        ("reads", share("Operations that read")),
        ("random", share("Operations at random offsets")),
        ("distribution", text("Of random offsets: uniform, or zipf(0.99)")),
        ("batch", whole("Operations submitted and completed together", 1)),
        ("fsync", whole("A sync after every so many writes of a client", 1)),
        ("fdatasync", whole("A sync of data after every so many writes of a client", 1)),
        ("end_sync", flag("Every volume is synced after the load")),
        ("cache", words("What the page cache holds before the load is dropped or kept", ["cold", "warm"])),
        ("steady", steady),
    ]);
    table(does("load"), &[], keys)
}

fn division() -> Value {
    words("What is cut into parts, one for each worker", known::divisions())
}

fn operation() -> Value {
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
    keys.extend(naming_and_content());
    table("An operation; which keys it has depends on what it does", &[], keys)
}

/// A key, and its twin that takes the path of a file.
fn secret(key: &'static str, file: &'static str, what: &str) -> [Key; 2] {
    [
        (key, text(&format!("{what}; ${{NAME}} for a variable"))),
        (file, text(&format!("{what}, from the file at this path"))),
    ]
}

fn target() -> Value {
    let endpoint = text("Address of the server, such as http://10.0.0.1:8000");
    let mut keys = vec![
        ("kind", words("What it is", known::targets())),
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
        ("path", list_or("Path of the file or device", &text("A path"))),
        ("paths", list_or("Paths of the files or devices", &text("A path"))),
        ("count", whole("How many files or images", 1)),
        ("engine", words("What issues the operations", ["native", "fio"])),
        ("direct", flag("Bypass the page cache")),
        ("polled", flag("Poll for completions")),
        ("pool", text("Pool of the images")),
        ("image", text("Name of the images, numbered")),
        ("user", text("Name of the Ceph client")),
        ("conf", text("Configuration of the Ceph cluster")),
    ];
    keys.extend(secret("access_key", "access_key_file", "Access key"));
    keys.extend(secret("secret_key", "secret_key_file", "Secret key"));
    keys.extend(secret("session_token", "session_token_file", "Session token"));
    let table = table("What load is put on; which keys it has depends on its kind", &["kind"], keys);
    let named = words("A target that needs no settings", ["embedded", "mock", "none"]);
    json!({"description": "What load is put on", "anyOf": [named, table]})
}

fn auth() -> Value {
    let mut keys = vec![
        ("kind", words("How", known::auths())),
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
    table("How a Swift token is got", &["kind"], keys)
}

fn naming() -> Value {
    let keys = vec![
        ("container_prefix", text("Before a container's number")),
        ("container_suffix", text("After a container's number")),
        ("object_prefix", text("Before an object's number")),
        ("object_suffix", text("After an object's number")),
    ];
    table("What containers and objects are called", &[], keys)
}

fn content() -> Value {
    let keys = vec![
        ("fill", words("What objects are made of", known::fills())),
        ("compressible", share("Share of every block that a compressor can remove")),
        ("duplicate", share("Share of blocks that occur elsewhere, too")),
        ("verify", flag("Check what is read")),
    ];
    table("What is written and checked", &[], keys)
}

fn range() -> Value {
    let keys = vec![("length", bytes("How much is read")), ("object_size", bytes("Size of the objects"))];
    table("A part of an object, at a random multiple of its length", &["length", "object_size"], keys)
}

fn multipart() -> Value {
    let keys = vec![("part", bytes("Size of a part")), ("parallel", whole("Parts at once", 1))];
    table("Upload in parts", &["part"], keys)
}

fn pool() -> Value {
    let keys = vec![containers(), objects(), ("existing", selector("Objects that are there at the start"))];
    table("What may ever exist; reads and deletes choose of what does", &[], keys)
}

fn rate_point() -> Value {
    let keys = vec![("at", duration("When, since the load's start")), ("rate", rate("How much"))];
    table("One point of a rate", &["at", "rate"], keys)
}

fn steady() -> Value {
    let keys = vec![("round", duration("Length of a round")), ("most", whole("The most rounds", 5))];
    table("Rounds until the load is steady", &["round"], keys)
}
