//! Database servers as pods: what an arm of an evaluation says of them under `kubernetes`.

use crate::pods::{CLASS, IMAGE_NAME, NAMESPACE, NODES, SIZE_KEY, SPREAD, Spread};
use crate::quantity::{PROCESSORS, Quantity, SIZE};
use tidemark_keys::kinds::{Parsed, Text, Whole};
use tidemark_keys::shapes::{Map, Settings};
use tidemark_keys::{Key, Mapping, Table};

/// The most instances of an arm.
const MOST_INSTANCES: u16 = 360;

/// The most numbers of users that Kubernetes takes; 0 is root.
const MOST_USER: u32 = i32::MAX as u32;

static CONTEXT: Key<Text> =
    Key::new("context", "Context of the kubeconfig", Text).otherwise("the current one").expanded();
static POSTGRES: Key<Map> = Key::new("postgres", "PostgreSQL servers", Map(&SERVERS_MAP));
static MYSQL: Key<Map> = Key::new("mysql", "MySQL servers, instead", Map(&SERVERS_MAP));
static MARIADB: Key<Map> = Key::new("mariadb", "MariaDB servers, instead", Map(&SERVERS_MAP));

static INSTANCES: Key<Whole<u16>> =
    Key::new("instances", "How many servers, each a pod with a volume", Whole(1, MOST_INSTANCES))
        .default("1");
static IMAGE: Key<Parsed<String>> = Key::new(
    "image",
    "Their image: one that follows the conventions of the official image, as `tidemark kubernetes image postgres` does",
    IMAGE_NAME,
)
.otherwise("`postgres:18`, `mysql:8.4`, `mariadb:11.8`");
static USER: Key<Whole<u32>> = Key::new(
    "uid",
    "Number of the user that the image knows and that the server runs as",
    Whole(1, MOST_USER),
)
.default("999");
static CPU: Key<Parsed<Quantity>> =
    Key::new("cpu", "Processors of each, requested and limit", PROCESSORS).default("1");
static MEMORY: Key<Parsed<Quantity>> =
    Key::new("memory", "Memory of each, requested and limit", SIZE).default("1Gi");
static SETTINGS: Key<Settings> =
    Key::new("settings", "Settings of the servers that differ from those of the image", Settings);

static SERVERS_MAP: Mapping = Mapping::new(
    "kubernetes_servers",
    "Database servers as pods",
    &[&INSTANCES, &IMAGE, &USER, &CLASS, &SIZE_KEY, &CPU, &MEMORY, &NODES, &SPREAD, &SETTINGS],
);

/// What Kubernetes runs for an arm.
pub static SERVERS: Mapping = Mapping::new(
    "kubernetes_arm",
    "What Kubernetes runs for an arm: database servers of one kind",
    &[&CONTEXT, &NAMESPACE, &POSTGRES, &MYSQL, &MARIADB],
);

/// A database, with the conventions of its official image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// PostgreSQL.
    Postgres,
    /// MySQL.
    Mysql,
    /// MariaDB.
    Mariadb,
}

impl Server {
    /// Its name, as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
            Self::Mariadb => "MariaDB",
        }
    }

    /// The port at which it listens.
    pub fn port(self) -> u16 {
        match self {
            Self::Postgres => 5432,
            Self::Mysql | Self::Mariadb => 3306,
        }
    }

    fn image(self) -> &'static str {
        match self {
            Self::Postgres => "postgres:18",
            Self::Mysql => "mysql:8.4",
            Self::Mariadb => "mariadb:11.8",
        }
    }
}

/// Database servers as pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// What they are.
    pub server: Server,
    /// The context of the kubeconfig; `None`: the current one.
    pub context: Option<String>,
    /// Their namespace; `None`: the context's.
    pub namespace: Option<String>,
    /// How many there are.
    pub instances: u32,
    /// Their image.
    pub image: String,
    /// The number of the user that they run as.
    pub user: u32,
    /// The storage class of their volumes.
    pub class: String,
    /// The size of each volume.
    pub size: Quantity,
    /// Processors of each: requested, and the limit.
    pub cpu: Quantity,
    /// Memory of each: requested, and the limit.
    pub memory: Quantity,
    /// Labels of the nodes that they may run on.
    pub nodes: Vec<(String, String)>,
    /// How they are spread.
    pub spread: Spread,
    /// Settings and their values.
    pub settings: Vec<(String, String)>,
}

impl Servers {
    /// What they are, for reports: `4 PostgreSQL on Kubernetes`.
    pub fn label(&self) -> String {
        let name = self.server.name();
        match self.instances {
            1 => format!("{name} on Kubernetes"),
            several => format!("{several} {name} on Kubernetes"),
        }
    }
}

/// Reads what an arm says under `kubernetes`. `None` after an error.
pub fn servers(table: Table<'_>) -> Option<Servers> {
    let mut table = table.of(&SERVERS);
    let (context, namespace) = (table.get(&CONTEXT), table.get(&NAMESPACE));
    let is_clear = !table.contradiction(&POSTGRES, &MYSQL, ONE_KIND)
        && !table.contradiction(&POSTGRES, &MARIADB, ONE_KIND)
        && !table.contradiction(&MYSQL, &MARIADB, ONE_KIND);
    let kinds = [(&POSTGRES, Server::Postgres), (&MYSQL, Server::Mysql), (&MARIADB, Server::Mariadb)];
    let mut read = None;
    for (key, server) in kinds {
        let own = table.table(key).and_then(|own| one(own, server));
        read = read.or(own);
    }
    if !kinds.into_iter().any(|(key, _)| table.has(key)) {
        table
            .missing(&POSTGRES, "write which servers Kubernetes is to run: `postgres`, `mysql` or `mariadb`");
    }
    table.finish();
    read.filter(|_| is_clear).map(|servers| Servers { context, namespace, ..servers })
}

const ONE_KIND: &str = "an arm has servers of one kind";

fn one(mut own: Table<'_>, server: Server) -> Option<Servers> {
    own = own.of(&SERVERS_MAP);
    let (class, size) = (own.get(&CLASS), own.get(&SIZE_KEY));
    let usual = |number, unit| Quantity::whole(number, unit);
    let instances = own.value(&INSTANCES);
    let servers = Servers {
        server,
        context: None,
        namespace: None,
        instances: instances.into(),
        image: own.get(&IMAGE).unwrap_or_else(|| server.image().to_owned()),
        user: own.value(&USER),
        class: class.clone().unwrap_or_default(),
        size: size.clone().unwrap_or_else(|| usual(1, "Gi")),
        cpu: own.get(&CPU).unwrap_or_else(|| usual(1, "")),
        memory: own.get(&MEMORY).unwrap_or_else(|| usual(1, "Gi")),
        nodes: own.all(&NODES),
        spread: own.value(&SPREAD),
        settings: own.settings(&SETTINGS),
    };
    let names = servers.settings.iter().map(|(name, _)| name.as_str());
    for name in names.filter(|name| !is_setting(name)) {
        let message = format!("'{name}' is not the name of a setting");
        own.log().error(own.place(), message, "write it as the server does, such as shared_buffers");
    }
    own.finish();
    (class.is_some() && size.is_some()).then_some(servers)
}

/// Whether a name can be one of a setting: letters, digits, dots, dashes and underscores, after a letter.
fn is_setting(name: &str) -> bool {
    let plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '_' | '-');
    name.starts_with(|one: char| one.is_ascii_alphabetic()) && name.chars().all(plain)
}
