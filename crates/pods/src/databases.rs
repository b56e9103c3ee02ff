//! Database servers: made, until they are ready, and what a load needs to know of them.

use crate::cluster::Cluster;
use crate::error::PodsError;
use crate::made::{Made, SECRET, SERVICE};
use crate::objects::Pod;
use crate::running::Running;
use crate::servers::{Brought, Waiter, labels};
use std::net::SocketAddr;
use tidemark_keys::secret::Secret;
use tidemark_kubernetes::{Account, Databases, Manifest, Servers};

/// The name of the account that is made in each server, and of its database.
const ACCOUNT: &str = "tidemark";

/// The variables that servers bring, and stand-ins for their values while they are not up.
pub(crate) const VARIABLES: [(&str, &str); 6] = [
    (ENDPOINTS, "127.0.0.1:1"),
    ("TIDEMARK_KUBERNETES_HOST", "127.0.0.1"),
    ("TIDEMARK_KUBERNETES_PORT", "1"),
    ("TIDEMARK_KUBERNETES_USER", ACCOUNT),
    ("TIDEMARK_KUBERNETES_PASSWORD", "not-known-yet"),
    ("TIDEMARK_KUBERNETES_DATABASE", ACCOUNT),
];
/// The variable with the addresses of all.
const ENDPOINTS: &str = "TIDEMARK_KUBERNETES_ENDPOINTS";

/// The stand-in for a variable: a load may be for some of the servers, so there are as many addresses as there will be.
pub(crate) fn stand_in(servers: &Servers, name: &str) -> Option<String> {
    let (_, one) = VARIABLES.into_iter().find(|(known, _)| *known == name)?;
    let address = |number| format!("127.0.0.1:{number}");
    Some(match name == ENDPOINTS {
        true => (1..=servers.instances).map(address).collect::<Vec<_>>().join(","),
        false => one.to_owned(),
    })
}

/// The manifests, without what is made anew each time.
pub(crate) fn manifests(databases: &Databases<'_>) -> Vec<Manifest> {
    let account = account(Secret::new("(made for each run)"));
    let servers = Servers { hosting: databases.servers.hosting.shown(), ..databases.servers.clone() };
    let databases = Databases { servers: &servers, ..*databases };
    vec![databases.stateful_set(), databases.secret(&account, None), databases.service(None)]
}

fn account(password: Secret) -> Account {
    Account { user: ACCOUNT, password, database: ACCOUNT }
}

impl Cluster {
    /// Makes database servers with this password and waits until all are ready. If that fails, nothing of them is left, or the error says
    /// what is.
    ///
    /// # Errors
    /// The API server refuses it, or does not answer; those of [`Running::wait`].
    pub(crate) fn bring_databases(
        &self,
        databases: &Databases<'_>,
        password: &Secret,
        waiter: Waiter<'_>,
    ) -> Result<Brought, PodsError> {
        let Servers { instances, class, .. } = databases.servers;
        self.has_class(class, "volumes")?;
        let account = account(password.clone());
        let owned = |uid: &str| {
            vec![(SECRET, databases.secret(&account, Some(uid))), (SERVICE, databases.service(Some(uid)))]
        };
        let set = databases.stateful_set();
        let running = self.make_all(Made::Databases, databases.run, *instances, &set, owned)?;
        let brought = self.databases_brought(databases, password, &running, waiter);
        running.conclude(brought)
    }

    fn databases_brought(
        &self,
        databases: &Databases<'_>,
        password: &Secret,
        running: &Running<'_>,
        waiter: Waiter<'_>,
    ) -> Result<Brought, PodsError> {
        let Servers { server, instances: count, class, size, hosting } = databases.servers;
        let count_ready = || {
            let pods: Vec<Pod> = self.of_run("pods", databases.run).unwrap_or_default();
            pods.iter().filter(|pod| pod.is_ready()).count() as u32
        };
        waiter.wait(running, server.port(), &count_ready)?;
        let instances = self.instances(databases.run)?;
        let Some(first) = instances.first().filter(|_| instances.len() == *count as usize) else {
            let there = instances.len();
            return Err(PodsError::NotJoined(format!("{there} of {count} database servers have an address")));
        };
        let address = |ip| SocketAddr::new(ip, server.port()).to_string();
        let endpoints: Vec<_> = instances.iter().map(|one| address(one.ip)).collect();
        let values = [
            endpoints.join(","),
            first.ip.to_string(),
            server.port().to_string(),
            ACCOUNT.to_owned(),
            password.reveal().to_owned(),
            ACCOUNT.to_owned(),
        ];
        let each =
            format!("{} CPU, {} of memory, {size} of the storage class {class}", hosting.cpu, hosting.memory);
        Ok(Brought {
            variables: VARIABLES.map(|(name, _)| name).into_iter().zip(values).collect(),
            labels: labels(hosting, ("each server", each), &instances),
        })
    }
}
