//! A Trino cluster: its coordinator made, then the workers, which are told where it is, until all of them have work.

use crate::cluster::Cluster;
use crate::error::PodsError;
use crate::made::{Made, SECRET, SERVICE};
use crate::running::Running;
use crate::servers::{Brought, Waiter, labels};
use std::net::{IpAddr, SocketAddr};
use tidemark_keys::secret::Secret;
use tidemark_kubernetes::{Bucket, Manifest, TRINO_PORT, Trino, TrinoPods};
use tidemark_trino as trino;

/// The variables that a cluster brings, and stand-ins for their values while it is not up.
pub(crate) const VARIABLES: [(&str, &str); 3] = [
    ("TIDEMARK_KUBERNETES_TRINO", "http://127.0.0.1:1"),
    ("TIDEMARK_KUBERNETES_CATALOG", trino::CATALOG),
    ("TIDEMARK_KUBERNETES_BUCKET", "tables"),
];

/// The stand-in for a variable.
pub(crate) fn stand_in(trino: &Trino, name: &str) -> Option<String> {
    let (_, one) = VARIABLES.into_iter().find(|(known, _)| *known == name)?;
    Some(if name == VARIABLES[2].0 { trino.bucket.name.clone() } else { one.to_owned() })
}

/// The manifests, without keys, and without what is known only when the coordinator runs.
pub(crate) fn manifests(pods: &TrinoPods<'_>) -> Vec<Manifest> {
    let key = || Secret::new("(that of the document)");
    let bucket = Bucket { access_key: key(), secret_key: key(), ..pods.trino.bucket.clone() };
    let hosting = pods.trino.hosting.shown();
    let pods = TrinoPods { trino: &Trino { bucket, hosting, ..*pods.trino }, ..*pods };
    let mut all = vec![pods.coordinator(), pods.secret(None), pods.service(None)];
    all.extend((pods.trino.workers > 0).then(|| pods.workers("(the coordinator's address)", None)));
    all
}

impl Cluster {
    /// Makes a Trino cluster and waits until all of its nodes have work. If that fails, nothing of it is left, or the error says what is.
    ///
    /// # Errors
    /// The API server refuses it, or does not answer; those of [`Running::wait`].
    pub(crate) fn bring_trino(&self, pods: &TrinoPods<'_>, waiter: Waiter<'_>) -> Result<Brought, PodsError> {
        let owned = |uid: &str| vec![(SECRET, pods.secret(Some(uid))), (SERVICE, pods.service(Some(uid)))];
        let mut running = self.make_all(Made::Trino, pods.run, 1, &pods.coordinator(), owned)?;
        let brought = self.trino_brought(pods, &mut running, waiter);
        running.conclude(brought)
    }

    fn trino_brought(
        &self,
        pods: &TrinoPods<'_>,
        running: &mut Running<'_>,
        waiter: Waiter<'_>,
    ) -> Result<Brought, PodsError> {
        let TrinoPods { run, trino: Trino { workers, bucket, hosting }, .. } = *pods;
        let count_addresses = || self.instances(run).map_or(0, |instances| instances.len() as u32);
        waiter.wait(running, TRINO_PORT, &count_addresses)?;
        let coordinator = self.instances(run)?.into_iter().next();
        let Some(coordinator) = coordinator.map(|instance| endpoint(instance.ip)) else {
            return Err(PodsError::NotJoined("the coordinator has lost its address".to_owned()));
        };
        if *workers > 0 {
            running.add(|uid| pods.workers(&coordinator, Some(uid)), *workers)?;
        }
        let count = workers + 1;
        let count_working = || {
            let active = trino::active(&coordinator).map_or(0, |active| active.len() as u32);
            // Without workers the coordinator works itself.
            let all_work = active >= count
                && trino::working(&coordinator).is_ok_and(|nodes| nodes.len() as u32 >= (*workers).max(1));
            if all_work { count } else { active.min(count - 1) }
        };
        waiter.wait(running, TRINO_PORT, &count_working)?;
        let version = trino::version(&coordinator)
            .map_err(|why| PodsError::NotJoined(format!("{coordinator} does not say its version: {why}")))?;
        let nodes = match workers {
            0 => "a coordinator, which also works".to_owned(),
            1 => "a coordinator and 1 worker".to_owned(),
            several => format!("a coordinator and {several} workers"),
        };
        let each = format!("{} CPU, {} of memory", hosting.cpu, hosting.memory);
        let mut labels = labels(hosting, ("each pod", each), &self.instances(run)?);
        labels.insert(0, ("Trino", format!("{version}, {nodes}")));
        labels.push(("tables", format!("bucket {} of {}", bucket.name, bucket.endpoint)));
        let values = [coordinator, trino::CATALOG.to_owned(), bucket.name.clone()];
        let variables = VARIABLES.map(|(name, _)| name).into_iter().zip(values).collect();
        Ok(Brought { variables, labels })
    }
}

/// Where clients and workers find a coordinator.
fn endpoint(ip: IpAddr) -> String {
    format!("http://{}", SocketAddr::new(ip, TRINO_PORT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_kubernetes::{Hosting, Spread, processors, size, yaml};

    #[test]
    fn manifests_that_are_shown_have_no_keys() {
        let hosting = Hosting {
            image: "trino:1".into(),
            user: 1000,
            cpu: processors("1").unwrap(),
            memory: size("2Gi").unwrap(),
            nodes: Vec::new(),
            spread: Spread::Nodes,
            settings: vec![("internal-communication.shared-secret".into(), "hunter3".into())],
        };
        let bucket = Bucket {
            endpoint: "http://10.0.0.1:8000".into(),
            name: "lake".into(),
            access_key: Secret::new("hunter1"),
            secret_key: Secret::new("hunter2"),
            region: "us-east-1".into(),
        };
        let shown = |workers| {
            let trino = Trino { workers, bucket: bucket.clone(), hosting: hosting.clone() };
            let all = manifests(&TrinoPods { run: "tidemark-x", namespace: None, trino: &trino });
            let kinds: Vec<_> = all.iter().map(|manifest| manifest.kind).collect();
            (kinds, yaml(&all).unwrap())
        };
        let (kinds, text) = shown(2);
        assert_eq!(kinds, ["StatefulSet", "Secret", "Service", "StatefulSet"]);
        assert!(text.contains("s3://lake/meta") && !text.contains("hunter"), "{text}");
        assert_eq!(shown(0).0, ["StatefulSet", "Secret", "Service"], "the coordinator works itself");
    }
}
