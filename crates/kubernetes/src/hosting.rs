//! What servers as pods have in common, whatever they serve: the keys under which a document says it.

use crate::pods::{IMAGE_NAME, NODES, SPREAD, Spread};
use crate::quantity::{PROCESSORS, Quantity, SIZE};
use tidemark_keys::kinds::{Parsed, Whole};
use tidemark_keys::secret::is_secret;
use tidemark_keys::shapes::Settings;
use tidemark_keys::{Key, Table};

/// The most numbers of users that Kubernetes takes; 0 is root.
const MOST_USER: u32 = i32::MAX as u32;

pub(crate) static IMAGE: Key<Parsed<String>> = Key::new(
    "image",
    "Their image: one that follows the conventions of the official image, as those of `tidemark kubernetes image` do",
    IMAGE_NAME,
)
.otherwise("`postgres:18`, `mysql:8.4`, `mariadb:11.8`, `trinodb/trino:476`");
pub(crate) static USER: Key<Whole<u32>> = Key::new(
    "uid",
    "Number of the user that the image knows and that the server runs as",
    Whole(1, MOST_USER),
)
.otherwise("`999`; of Trino, `1000`");
pub(crate) static CPU: Key<Parsed<Quantity>> =
    Key::new("cpu", "Processors of each, requested and limit", PROCESSORS).default("1");
pub(crate) static MEMORY: Key<Parsed<Quantity>> =
    Key::new("memory", "Memory of each, requested and limit", SIZE).otherwise("`1Gi`; of Trino, `4Gi`");
pub(crate) static SETTINGS: Key<Settings> =
    Key::new("settings", "Settings of the servers that differ from those of the image", Settings);

/// What servers as pods are, whatever they serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosting {
    /// Their image.
    pub image: String,
    /// The number of the user that they run as.
    pub user: u32,
    /// Processors of each: requested, and the limit.
    pub cpu: Quantity,
    /// Memory of each: requested, and the limit.
    pub memory: Quantity,
    /// Labels of the nodes that they may run on: all names, and of each name any of its values.
    pub nodes: Vec<(String, String)>,
    /// How they are spread.
    pub spread: Spread,
    /// Settings and their values.
    pub settings: Vec<(String, String)>,
}

impl Hosting {
    /// The same for others to read: without the values of settings that are secrets, as their names say.
    pub fn shown(&self) -> Self {
        let mut shown = self.clone();
        for (_, value) in shown.settings.iter_mut().filter(|(name, _)| is_secret(name)) {
            *value = "(that of the document)".to_owned();
        }
        shown
    }
}

/// What holds where a document says nothing.
pub(crate) struct Usual {
    pub(crate) image: &'static str,
    pub(crate) user: u32,
    /// In `Gi`.
    pub(crate) memory: u32,
}

/// Reads the keys that all servers have.
pub(crate) fn read(own: &mut Table<'_>, usual: &Usual) -> Hosting {
    let hosting = Hosting {
        image: own.get(&IMAGE).unwrap_or_else(|| usual.image.to_owned()),
        user: own.get(&USER).unwrap_or(usual.user),
        cpu: own.get(&CPU).unwrap_or_else(|| Quantity::whole(1, "")),
        memory: own.get(&MEMORY).unwrap_or_else(|| Quantity::whole(usual.memory, "Gi")),
        nodes: own.all(&NODES),
        spread: own.value(&SPREAD),
        settings: own.settings(&SETTINGS),
    };
    let names = hosting.settings.iter().map(|(name, _)| name.as_str());
    for name in names.filter(|name| !is_setting(name)) {
        let message = format!("'{name}' is not the name of a setting");
        own.log().error(
            own.place(),
            message,
            "write it as the server does, such as shared_buffers or query.max-memory",
        );
    }
    hosting
}

/// Whether a name can be one of a setting: letters, digits, dots, dashes and underscores, after a letter.
fn is_setting(name: &str) -> bool {
    let plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '_' | '-');
    name.starts_with(|one: char| one.is_ascii_alphabetic()) && name.chars().all(plain)
}
