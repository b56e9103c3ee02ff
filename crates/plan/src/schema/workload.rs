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
        ("use", super::values::wanted("Drivers that take part; default: all")),
        (
            "on_loss",
            words("What to do when a driver is lost: stop or continue the stage", ["stop", "continue"]),
        ),
        ("lost_after", duration("A driver that is silent for this long is lost")),
    ];
    table("How a run is spread over the drivers of a controller", &[], keys)
}

fn workload() -> Value {
    let mut keys = vec![
        ("name", text("Name of the workload")),
        ("description", text("Purpose")),
        ("seed", whole("Seed of all random choices; default: derived from the text", 0)),
        ("on_failure", on_failure()),
        ("observe", refer("observe", "What to observe while it runs")),
        ("drivers", super::values::drivers()),
        ("stages", stages()),
    ];
    keys.extend(scope());
    table("A workload: stages that run in order", &["name", "stages"], keys)
}

pub(super) fn on_failure() -> Value {
    words("After a failed stage: stop (and clean up), or continue with all stages", ["stop", "continue"])
}

pub(super) fn stages() -> Value {
    list("Stages, in order", &refer("stage", "Works that run concurrently"))
}

/// What may stand at every level of a document.
fn scope() -> Vec<Key> {
    let named = words("A target that needs no settings", ["embedded", "mock", "none"]);
    let mut scope = naming_and_content();
    scope.push((
        "target",
        json!({"description": "What the load runs against", "anyOf": [named, {"$ref": "#/$defs/target"}]}),
    ));
    scope
}

fn naming_and_content() -> Vec<Key> {
    vec![
        ("naming", refer("naming", "Names of containers and objects")),
        ("content", refer("content", "What to write and verify")),
    ]
}

/// The kinds of works, each under its key.
fn works() -> Vec<Key> {
    known::works().map(|kind| (kind, refer(kind, does(kind)))).collect()
}

fn does(kind: &str) -> &'static str {
    match kind {
        "init" => "Creates containers",
        "prepare" => "Writes objects, or fills volumes",
        "precondition" => "Writes the volumes' capacity several times",
        "cleanup" => "Deletes objects, or removes files and images",
        "dispose" => "Deletes containers",
        _ => "The measured load",
    }
}

fn stage() -> Value {
    let work = table("A work, under its kind", &[], works());
    let mut keys = vec![
        ("name", text("Name of the stage")),
        ("pause", duration("Pause after its works; a stage with only a pause waits")),
        ("trigger", text("script.sh(arguments) around the stage")),
        ("on_failure", on_failure()),
        ("works", list_or("Works that run concurrently", &work)),
    ];
    keys.extend(works());
    keys.extend(scope());
    table("A stage: works that run concurrently, then a pause", &[], keys)
}

/// Keys of every work.
fn common() -> Vec<Key> {
    let mut keys = vec![
        ("name", text("Name of the work; default: its kind")),
        ("workers", whole("Number of logical clients", 1)),
        ("allowed_failures", share("The work fails with more failures than this")),
        ("think", duration("Pause of a worker between operations")),
        ("drain", duration("Longest wait for operations in flight at the end")),
        ("give_up", duration("Stop and fail after this long without a success; or never")),
        ("driver", text("Driver that must run it")),
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
        ("chunked", flag("Send in chunks, without a total length")),
        ("if_absent", flag("Only if the object does not exist")),
        ("multipart", refer("multipart", "Upload in parts")),
        ("directory", text("Upload the files of this directory instead of generated content")),
        ("part", bytes("Size of each part of a file's upload")),
    ]
}

fn depth() -> Value {
    whole("Operations in flight per client", 1)
}

fn prepare() -> Value {
    let mut keys = with(vec![containers(), objects(), sizes()]);
    keys.extend(put());
    keys.push(("depth", depth()));
    keys.push(("reuse", flag("Keep a volume that already holds the content")));
    table(does("prepare"), &[], keys)
}

fn precondition() -> Value {
    let writes = ["write", "randwrite"];
    let keys = vec![
        ("pattern", words("Write pattern", writes)),
        ("block_size", block_size()),
        ("passes", whole("How many times to write the capacity", 1)),
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
    let keys = vec![containers(), ("empty", flag("Delete their objects first"))];
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
        "description": "Start the window once rounds of this length are steady",
        "anyOf": [{"$ref": "#/$defs/steady"}, duration("Length of a round")],
    });
    let keys = with(vec![
        containers(),
        objects(),
        sizes(),
        ("for", duration("Length of the measured window")),
        ("total_operations", whole("Measured operations of all workers", 1)),
        ("total_bytes", bytes("End with the operation that reaches this total")),
        ("warm_up", duration("Full load before the window, not measured")),
        ("ramp_up", duration("Time over which workers start, not measured")),
        ("ramp_down", duration("Full load after the window, not measured")),
        (
            "rate",
            json!({
                "description": "Open loop: operations are due at fixed times",
                "anyOf": [rate("A constant rate"), points],
            }),
        ),
        ("arrivals", words("Distribution of due times", ["constant", "poisson"])),
        ("division", division()),
        ("pool", refer("pool", "Tracks which objects exist")),
        (
            "operations",
            list_or("The mix of operations", &table("An operation, under its name", &[], operation)),
        ),
        ("pattern", list_or("Access pattern of a load on volumes", &patterns)),
        ("block_size", list_or("Block sizes", &block_size())),
        ("depth", list_or("Operations in flight per client", &depth())),
        ("clients", list_or("Clients of a load on volumes", &whole("A number of clients", 1))),
        ("repeats", whole("How many times to measure everything, within one run", 1)),
        ("reads", share("Share of reads")),
        ("random", share("Share of operations at random offsets")),
        ("distribution", text("Distribution of random offsets: uniform, or zipf(0.99)")),
        ("batch", whole("Operations submitted and completed together", 1)),
        ("fsync", whole("Sync after this many writes of a client", 1)),
        ("fdatasync", whole("Sync data after this many writes of a client", 1)),
        ("end_sync", flag("Sync every volume after the load")),
        ("cache", words("Drop (cold) or keep (warm) the page cache before the load", ["cold", "warm"])),
        ("steady", steady),
    ]);
    table(does("load"), &[], keys)
}

fn division() -> Value {
    words("What to divide among the workers", known::divisions())
}

fn operation() -> Value {
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
    keys.extend(naming_and_content());
    table("An operation; its keys depend on what it does", &[], keys)
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
        ("kind", words("Kind of target", known::targets())),
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
        ("path", list_or("Path of the file or device", &text("A path"))),
        ("paths", list_or("Paths of the files or devices", &text("A path"))),
        ("count", whole("How many files or images", 1)),
        ("engine", words("Engine that issues the operations", ["native", "fio"])),
        ("direct", flag("Bypass the page cache")),
        ("polled", flag("Poll for completions")),
        ("pool", text("Pool of the images")),
        ("image", text("Name of the images, before their numbers")),
        ("user", text("Name of the Ceph client")),
        ("conf", text("Configuration file of the Ceph cluster")),
    ];
    keys.extend(secret("access_key", "access_key_file", "Access key"));
    keys.extend(secret("secret_key", "secret_key_file", "Secret key"));
    keys.extend(secret("session_token", "session_token_file", "Session token"));
    let table = table("What the load runs against; its keys depend on its kind", &["kind"], keys);
    let named = words("A target that needs no settings", ["embedded", "mock", "none"]);
    json!({"description": "What the load runs against", "anyOf": [named, table]})
}

fn auth() -> Value {
    let mut keys = vec![
        ("kind", words("Kind of authentication", known::auths())),
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
    table("How to get a Swift token", &["kind"], keys)
}

fn naming() -> Value {
    let keys = vec![
        ("container_prefix", text("Before a container's number")),
        ("container_suffix", text("After a container's number")),
        ("object_prefix", text("Before an object's number")),
        ("object_suffix", text("After an object's number")),
    ];
    table("Names of containers and objects", &[], keys)
}

fn content() -> Value {
    let keys = vec![
        ("fill", words("Content of objects", known::fills())),
        ("compressible", share("Share of every block that a compressor can remove")),
        ("duplicate", share("Share of blocks that are duplicates")),
        ("verify", flag("Verify what reads return")),
    ];
    table("What to write and verify", &[], keys)
}

fn range() -> Value {
    let keys = vec![("length", bytes("Bytes to read")), ("object_size", bytes("Size of the objects"))];
    table("A part of an object, at a random multiple of its length", &["length", "object_size"], keys)
}

fn multipart() -> Value {
    let keys = vec![("part", bytes("Size of a part")), ("parallel", whole("Parts in flight at once", 1))];
    table("Upload in parts", &["part"], keys)
}

fn pool() -> Value {
    let keys = vec![containers(), objects(), ("existing", selector("Objects that are there at the start"))];
    table("Objects that may exist; reads and deletes use those that do", &[], keys)
}

fn rate_point() -> Value {
    let keys = vec![("at", duration("Time since the load's start")), ("rate", rate("Rate at that time"))];
    table("One point of a rate", &["at", "rate"], keys)
}

fn steady() -> Value {
    let keys = vec![("round", duration("Length of a round")), ("most", whole("Maximum number of rounds", 5))];
    table("Rounds until the load is steady", &["round"], keys)
}
