//! The document of a layout: its keys, and how it is read. `docs/layouts.md` is their reference.

mod cluster;
mod offered;

use crate::layout::{Deployment, Kind, Layout};
use crate::names::LABEL;
use cluster::CLUSTER;
use offered::{Ground, OFFERED};
use std::collections::HashMap;
use std::ops::Range;
use tidemark_keys::diagnostic::Diagnostic;
use tidemark_keys::kinds::{Parsed, Word};
use tidemark_keys::tree;
use tidemark_keys::{Document, Key, Mapping, Outside, Shape, Table};

/// Nodes, OSDs of a node, gateways: more than these are a mistake.
const MOST: u32 = 1000;

static NAME: Key<Parsed<String>> = Key::new("name", "Name of the layout and of its CephCluster", LABEL)
    .required("begin with `name: my-cluster`");
static LAYOUT_KIND: Key<Word<Kind>> = Key::new(
    "layout",
    "Which layout it is; `external` imports a cluster that exists elsewhere",
    Word(&[
        ("baseline", Kind::Baseline),
        ("reference-1", Kind::Reference1),
        ("reference-2", Kind::Reference2),
        ("external", Kind::External),
    ]),
)
.required("write `layout: baseline`, `reference-1`, `reference-2` or `external`");
static NAMESPACE: Key<Parsed<String>> =
    Key::new("namespace", "Namespace of the cluster, which must exist", LABEL).default("rook-ceph");
static OPERATOR_NAMESPACE: Key<Parsed<String>> =
    Key::new("operator_namespace", "Namespace of Rook's operator", LABEL).default("rook-ceph");

/// The document of a layout.
pub static LAYOUT: Mapping = Mapping::new(
    "layout",
    "A layout of a cluster on Kubernetes",
    &[&NAME, &LAYOUT_KIND, &NAMESPACE, &OPERATOR_NAMESPACE],
)
.with(&[&CLUSTER, &OFFERED]);

/// Reads the document of a layout. With it come warnings.
///
/// # Errors
/// All errors and warnings, in document order; at least one is an error.
pub fn read(text: &str) -> Result<(Layout, Vec<Diagnostic>), Vec<Diagnostic>> {
    let root = tree::parse(text).map_err(|broken| vec![broken])?;
    // Nothing in it is a secret, and nothing refers to the outside.
    let outside = Outside {
        variable: &|_| None,
        file: &|_| Err(std::io::ErrorKind::Unsupported.into()),
        bound: &|_| None,
    };
    let document = Document::new(text, outside);
    let layout = layout(Table::new("the document", &root, &(0..0), &document).of(&LAYOUT), &document);
    match (layout, document.log.close()) {
        (Some(layout), (warnings, false)) => Ok((layout, warnings)),
        (_, (remarks, _)) => Err(remarks),
    }
}

/// Names that must differ, and where the first of each stands.
#[derive(Default)]
struct Taken(HashMap<String, &'static str>);

impl Taken {
    /// Takes a name for `what`; an error if it is taken.
    fn take(&mut self, name: &str, what: &'static str, span: &Range<usize>, document: &Document<'_>) {
        if let Some(first) = self.0.insert(name.to_owned(), what) {
            let message = format!("'{name}' is the name of {first} already");
            document.log.error(span, message, "choose another name");
        }
    }
}

/// Reports a key that is missing where this layout needs it.
fn must_have<S: Shape + ?Sized>(table: &mut Table<'_>, key: &Key<S>, help: &str) {
    if !table.has(key) {
        table.missing(key, help);
    }
}

fn layout<'a>(mut table: Table<'a>, document: &'a Document<'a>) -> Option<Layout> {
    let name = table.get(&NAME);
    let namespace = table.value(&NAMESPACE);
    let operator_namespace = table.value(&OPERATOR_NAMESPACE);
    // Without it nobody knows which keys apply.
    let kind = table.get(&LAYOUT_KIND)?;
    table.used_by(format!("the layout {}", kind.name()));
    let mut classes = Taken::default();
    let cluster = match kind {
        Kind::External => None,
        _ => Some(cluster::cluster(&mut table, kind, &mut classes, document)),
    };
    let domains =
        cluster.iter().flatten().map(|cluster| (cluster.failure_domain, cluster.failure_domains())).next();
    let ground = Ground { kind, domains };
    let offered = offered::offered(&mut table, ground, &mut classes, document);
    table.finish();
    let offered = offered?;
    Some(Layout {
        name: name?,
        namespace,
        operator_namespace,
        deployment: match cluster {
            None => Deployment::External,
            Some(cluster) => Deployment::Internal(Box::new(cluster?)),
        },
        pools: offered.pools,
        file_systems: offered.file_systems,
        object_stores: offered.object_stores,
    })
}
