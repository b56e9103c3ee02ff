//! The `observe` of a document: what is watched while load is on.

use super::values;
use crate::plan::Observe;
use std::path::PathBuf;
use tidemark_keys::kinds::{Kind as _, Parsed, Text};
use tidemark_keys::shapes::{Map, OneOrList};
use tidemark_keys::{Key, Mapping, Problem, Table};

/// The key.
pub(super) static OBSERVE: Key<Map> = Key::of(&MAPPING);

static MAPPING: Mapping = Mapping::new(
    "observe",
    "What to observe besides the load generator",
    &[&NODES, &PROCESSES, &CEPH_SOCKETS],
);

static NODES: Key<OneOrList<Parsed<String>>> =
    Key::new("nodes", "Addresses of `tidemark observe` on other nodes", OneOrList(Parsed("address", node)))
        .example("https://10.0.0.2:9750#sha256:4f1c...");
static PROCESSES: Key<OneOrList<Text>> =
    Key::new("processes", "Names of processes of the system under test on this node", OneOrList(Text));
static CEPH_SOCKETS: Key<OneOrList<Parsed<PathBuf>>> = Key::new(
    "ceph_sockets",
    "Directories with admin sockets of Ceph",
    OneOrList(Parsed("absolute path", |text| {
        let path = Text.read(text)?;
        match path.starts_with('/') {
            true => Ok(PathBuf::from(path)),
            false => Err(Problem::new(
                format!("{path} is not an absolute path"),
                "write an absolute path such as /var/run/ceph",
            )),
        }
    })),
)
.example("/var/run/ceph");

/// An address, with the fingerprint of its certificate if it has one.
fn node(text: &str) -> Result<String, Problem> {
    let Some((address, print)) = text.split_once('#') else { return values::server(text) };
    let digits = print.strip_prefix("sha256:").unwrap_or_default();
    if !address.starts_with("https://")
        || digits.len() != 64
        || !digits.chars().all(|one| one.is_ascii_hexdigit())
    {
        return Err(Problem::new(
            format!("'{text}' has no fingerprint after its `#`"),
            "write https://host:port#sha256:HEX, as `tidemark observe` prints it",
        ));
    }
    Ok(format!("{}#{print}", values::server(address)?))
}

/// Reads the mapping under `observe`, if present.
pub(super) fn observe(table: &mut Table<'_>) -> Observe {
    let Some(mut own) = table.table(&OBSERVE) else { return Observe::default() };
    let observe = Observe {
        nodes: own.all(&NODES),
        processes: own.all(&PROCESSES),
        ceph_sockets: own.all(&CEPH_SOCKETS),
    };
    own.finish();
    observe
}
