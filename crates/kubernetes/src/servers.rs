//! Database servers as pods: what an arm of an evaluation says of them under `kubernetes`.

use crate::hosting::{self, CPU, Hosting, IMAGE, MEMORY, SETTINGS, USER, Usual};
use crate::pods::{CLASS, NODES, SIZE_KEY, SPREAD};
use crate::quantity::Quantity;
use tidemark_keys::kinds::Whole;
use tidemark_keys::{Key, Mapping, Table};

/// The most instances of an arm.
const MOST_INSTANCES: u16 = 360;

static INSTANCES: Key<Whole<u16>> =
    Key::new("instances", "How many servers, each a pod with a volume", Whole(1, MOST_INSTANCES))
        .default("1");

/// Database servers.
pub(crate) static SERVERS: Mapping = Mapping::new(
    "kubernetes_servers",
    "Database servers as pods",
    &[&INSTANCES, &IMAGE, &USER, &CLASS, &SIZE_KEY, &CPU, &MEMORY, &NODES, &SPREAD, &SETTINGS],
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
    /// How many there are.
    pub instances: u32,
    /// The storage class of their volumes.
    pub class: String,
    /// The size of each volume.
    pub size: Quantity,
    /// What their pods are.
    pub hosting: Hosting,
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

/// Reads what an arm says of the servers of one kind. `None` after an error.
pub(crate) fn servers(mut own: Table<'_>, server: Server) -> Option<Servers> {
    let (class, size) = (own.get(&CLASS), own.get(&SIZE_KEY));
    let instances = own.value(&INSTANCES).into();
    let hosting = hosting::read(&mut own, &Usual { image: server.image(), user: 999, memory: 1 });
    own.finish();
    Some(Servers { server, instances, class: class?, size: size?, hosting })
}
