//! What Kubernetes runs for an arm of an evaluation, as it says it under `kubernetes`: database servers of one kind, or a Trino cluster.

use crate::pods::NAMESPACE;
use crate::servers::{self, SERVERS, Server, Servers};
use crate::trino::{self, CLUSTER, Trino};
use tidemark_keys::kinds::Text;
use tidemark_keys::shapes::Map;
use tidemark_keys::{Key, Mapping, Table};

static CONTEXT: Key<Text> =
    Key::new("context", "Context of the kubeconfig", Text).otherwise("the current one").expanded();
static POSTGRES: Key<Map> = Key::new("postgres", "PostgreSQL servers", Map(&SERVERS));
static MYSQL: Key<Map> = Key::new("mysql", "MySQL servers, instead", Map(&SERVERS));
static MARIADB: Key<Map> = Key::new("mariadb", "MariaDB servers, instead", Map(&SERVERS));
static TRINO: Key<Map> =
    Key::new("trino", "A Trino cluster with its tables in a bucket, instead", Map(&CLUSTER));

/// What Kubernetes runs for an arm.
pub static ARM: Mapping = Mapping::new(
    "kubernetes_arm",
    "What Kubernetes runs for an arm: database servers of one kind, or a Trino cluster",
    &[&CONTEXT, &NAMESPACE, &POSTGRES, &MYSQL, &MARIADB, &TRINO],
);

/// What Kubernetes runs for an arm, and where.
#[derive(Clone, Debug)]
pub struct OfArm {
    /// The context of the kubeconfig; `None`: the current one.
    pub context: Option<String>,
    /// The namespace; `None`: the context's.
    pub namespace: Option<String>,
    /// What it is.
    pub what: What,
}

/// What Kubernetes runs for an arm.
#[derive(Clone, Debug)]
pub enum What {
    /// Database servers.
    Databases(Servers),
    /// A Trino cluster.
    Trino(Trino),
}

impl What {
    /// What it is, for reports: `4 PostgreSQL on Kubernetes`.
    pub fn label(&self) -> String {
        match self {
            Self::Databases(servers) => servers.label(),
            Self::Trino(trino) => trino.label(),
        }
    }
}

/// Reads what an arm says under `kubernetes`. `None` after an error.
pub fn of_arm(table: Table<'_>) -> Option<OfArm> {
    let mut table = table.of(&ARM);
    let (context, namespace) = (table.get(&CONTEXT), table.get(&NAMESPACE));
    let all = [&POSTGRES, &MYSQL, &MARIADB, &TRINO];
    let mut is_one = true;
    for (place, one) in all.into_iter().enumerate() {
        for other in &all[place + 1..] {
            is_one &= !table.contradiction(one, other, "an arm has servers of one kind");
        }
    }
    if !all.into_iter().any(|key| table.has(key)) {
        let help = "write what Kubernetes is to run: `postgres`, `mysql`, `mariadb` or `trino`";
        table.missing(&POSTGRES, help);
    }
    let mut what = None;
    let databases = [(&POSTGRES, Server::Postgres), (&MYSQL, Server::Mysql), (&MARIADB, Server::Mariadb)];
    for (key, server) in databases {
        let servers = table.table(key).and_then(|own| servers::servers(own, server));
        what = what.or(servers.map(What::Databases));
    }
    let trino = table.table(&TRINO).and_then(trino::trino);
    what = what.or(trino.map(What::Trino));
    table.finish();
    what.filter(|_| is_one).map(|what| OfArm { context, namespace, what })
}
