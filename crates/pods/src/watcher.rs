//! The pods and nodes of a run, watched while it goes on: a thread for each kind, none of which the load waits for.

use crate::changes::{Change, of_attachment, of_node, of_pod};
use crate::objects::{Attachment, Metadata, Node, PersistentVolume, Pod};
use crate::observers::{Observers, Place};
use crate::toolbox;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidemark_apiserver::{Change as Seen, Client, Failure};
use tidemark_kubernetes::{Pods, RUN, Target};
use tidemark_measure::record::{Happened, Happening, Part, Unwatched};
use tidemark_observe::CephCluster;

/// How long a watch lasts before it is begun again where it ended; seconds. A thread whose run is over ends after it.
const LASTS: u32 = 10;

/// How long is waited before an API server that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// How long the API server may take to say what there is before a run begins without that.
const BEGINS: Duration = Duration::from_secs(10);

/// Happenings that are kept: a target whose pods are restarted all the time must not fill the record.
const MOST: usize = 10_000;

/// Volumes only add phases to the loss of a pod, so nobody misses them who may not look at them.
const VOLUMES: Watched = Watched { name: "volume attachments", role: None };

/// A kind of objects, and the role that permits to watch them, if they are missed without it.
struct Watched {
    name: &'static str,
    role: Option<String>,
}

/// What a thread does.
type Watching = Box<dyn FnOnce(&Client, &Shared, Sender<()>) + Send>;

/// Watches a run's pods, those of its target, and nodes, until it is dropped.
pub struct Watcher {
    client: Arc<Client>,
    shared: Arc<Shared>,
    observers: Place,
    ceph: Option<CephCluster>,
}

#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    seen: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    /// Each with when it was seen.
    happenings: Vec<(Instant, Happening)>,
    /// What could not be watched; each once.
    gaps: BTreeSet<Unwatched>,
    /// Nodes that pods of the run or of the target are on, or were.
    nodes: BTreeSet<String>,
    /// The owner of the pods that use a claim, by namespace and name, and its part.
    claims: BTreeMap<(String, String), (String, Part)>,
}

/// Objects of a kind.
trait Kind: DeserializeOwned + Clone {
    fn metadata(&self) -> &Metadata;
}

impl Kind for Pod {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Kind for Node {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Kind for Attachment {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Watcher {
    /// Watches the `pods` of `run` and those of its target: what happens after this has returned is seen.
    pub(crate) fn start(client: &Arc<Client>, run: &str, pods: &Pods) -> Self {
        let Pods { target, observers, ceph_toolbox, .. } = pods;
        let shared = Arc::new(Shared::default());
        // Nothing is sent: every thread drops its end once it knows what there is.
        let (begun, all_begun) = channel::<()>();
        let begin = |name: &str, watch: Watching| {
            let (client, own, begun) = (Arc::clone(client), Arc::clone(&shared), begun.clone());
            let thread = std::thread::Builder::new().name(format!("watch-{name}"));
            if let Err(error) = thread.spawn(move || watch(&client, &own, begun)) {
                shared.gap(name, error.to_string(), String::new());
            }
        };
        let pods = |namespace: &str, labels: String, part: Part| -> Watching {
            let path = format!("/api/v1/namespaces/{namespace}/pods");
            let kind = Watched { name: "pods", role: Some(format!("Role in {namespace}")) };
            Box::new(move |client: &Client, shared: &Shared, begun: Sender<()>| {
                follow(client, shared, begun, (&path, &labels, &kind), |before, after| {
                    shared.pod(part, before, after);
                });
            })
        };
        begin("drivers", pods(client.namespace(), format!("{RUN}%3D{run}"), Part::Driver));
        if let Some(Target { namespace, labels }) = target {
            let namespace = namespace.as_deref().unwrap_or(client.namespace());
            let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}%3D{value}")).collect();
            begin("target", pods(namespace, labels.join(","), Part::Target));
        }
        begin(
            "nodes",
            Box::new(|client: &Client, shared: &Shared, begun: Sender<()>| {
                let kind = Watched { name: "nodes", role: Some("ClusterRole".to_owned()) };
                follow(client, shared, begun, ("/api/v1/nodes", "", &kind), |before, after| {
                    shared.node(before, after);
                });
            }),
        );
        begin(
            "volumes",
            Box::new(|client: &Client, shared: &Shared, begun: Sender<()>| {
                let path = "/apis/storage.k8s.io/v1/volumeattachments";
                follow(client, shared, begun, (path, "", &VOLUMES), |before, after| {
                    shared.attachment(client, before, after);
                });
            }),
        );
        drop(begun);
        let _ = all_begun.recv_timeout(BEGINS);
        let observers = Place {
            namespace: observers.as_deref().unwrap_or(client.namespace()).to_owned(),
            is_named: observers.is_some(),
        };
        let ceph = ceph_toolbox.as_deref().map(|namespace| toolbox::ceph(client, namespace));
        Self { client: Arc::clone(client), shared, observers, ceph }
    }

    /// The observers of nodes that there are now. Those nodes are missed without one that have pods of the run or of its target.
    pub fn observers(&self) -> Observers {
        let nodes = self.shared.log().nodes.clone();
        self.observers.look(&self.client, &nodes)
    }

    /// The Ceph cluster whose toolbox the document names.
    pub fn ceph(&self) -> Option<CephCluster> {
        self.ceph.clone()
    }

    /// What has happened since `start`, in order, and what could not be watched.
    pub fn seen(&self, start: Instant) -> (Vec<Happening>, Vec<Unwatched>) {
        let log = self.shared.log();
        let mut happenings: Vec<Happening> = log
            .happenings
            .iter()
            .filter_map(|(at, happening)| {
                let at_ns = at.checked_duration_since(start)?.as_nanos() as u64;
                Some(Happening { at_ns, ..happening.clone() })
            })
            .collect();
        // Nodes that have nothing of the run are none of its business.
        happenings.retain(|one| one.part != Part::Node || log.nodes.contains(&one.owner));
        happenings.sort_by_key(|one| one.at_ns);
        (happenings, log.gaps.iter().cloned().collect())
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Watcher").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

/// Tells `changed` what becomes of each object of a kind: what it was, if it was there, and what it is, if it is. Objects that are
/// there at the beginning did not come.
fn follow<T: Kind>(
    client: &Client,
    shared: &Shared,
    begun: Sender<()>,
    (path, labels, kind): (&str, &str, &Watched),
    mut changed: impl FnMut(Option<&T>, Option<&T>),
) {
    let query = if labels.is_empty() { String::new() } else { format!("labelSelector={labels}") };
    let mut known: Option<BTreeMap<String, T>> = None;
    let mut begun = Some(begun);
    while !shared.is_over.load(Ordering::Relaxed) {
        let listed = client.list_at::<T>(path, &query);
        begun.take();
        let failure = match listed {
            Ok((objects, version)) => {
                let objects: BTreeMap<_, _> =
                    objects.into_iter().map(|one| (one.metadata().uid.clone(), one)).collect();
                let earlier = known.take().unwrap_or_else(|| objects.clone());
                let gone = earlier.iter().filter(|(uid, _)| !objects.contains_key(*uid));
                gone.for_each(|(_, gone)| changed(Some(gone), None));
                objects.iter().for_each(|(uid, object)| changed(earlier.get(uid), Some(object)));
                let objects = known.insert(objects);
                watch(client, shared, (path, &query, version), objects, &mut changed)
            }
            Err(failure) => failure,
        };
        if !shared.is_over.load(Ordering::Relaxed) {
            match failure {
                // The version is too old: they are listed again, and nothing is missed.
                Failure::Status(410, _) => continue,
                failure if failure.is_passing() => shared.missed(kind, &failure),
                failure => return shared.missed(kind, &failure),
            }
            std::thread::sleep(AGAIN);
        }
    }
}

/// Watches until that fails, or the run is over.
fn watch<T: Kind>(
    client: &Client,
    shared: &Shared,
    (path, query, mut version): (&str, &str, String),
    known: &mut BTreeMap<String, T>,
    changed: &mut impl FnMut(Option<&T>, Option<&T>),
) -> Failure {
    loop {
        let mut watch = match client.watch::<T>(path, query, &version, LASTS) {
            Ok(watch) => watch,
            Err(failure) => return failure,
        };
        for change in watch.by_ref() {
            let uid = |object: &T| object.metadata().uid.clone();
            match change {
                Ok(Seen::Deleted(last)) => {
                    let before = known.remove(&uid(&last));
                    changed(before.as_ref(), Some(&last));
                    changed(Some(&last), None);
                }
                Ok(Seen::Added(object) | Seen::Modified(object)) => {
                    changed(known.get(&uid(&object)), Some(&object));
                    known.insert(uid(&object), object);
                }
                Err(failure) => return failure,
            }
        }
        if shared.is_over.load(Ordering::Relaxed) {
            return Failure::Away("the run is over".into());
        }
        watch.version().clone_into(&mut version);
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gap(&self, what: &str, why: String, rule: String) {
        self.log().gaps.insert(Unwatched { what: what.to_owned(), why, rule });
    }

    fn missed(&self, kind: &Watched, failure: &Failure) {
        let rule = match (failure, &kind.role) {
            (Failure::Status(403, _), None) => return,
            (Failure::Status(403, _), Some(role)) => {
                format!("{role}: {{apiGroups: [\"\"], resources: [{}], verbs: [list, watch]}}", kind.name)
            }
            _ => String::new(),
        };
        self.gap(kind.name, failure.to_string(), rule);
    }

    fn pod(&self, part: Part, before: Option<&Pod>, after: Option<&Pod>) {
        let Some(pod) = after.or(before) else { return };
        let (object, owner) = (named(pod), owner(pod));
        {
            let mut log = self.log();
            if !pod.spec.node_name.is_empty() {
                log.nodes.insert(pod.spec.node_name.clone());
            }
            let claims = pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
            for claim in claims {
                let key = (pod.metadata.namespace.clone(), claim.claim_name.clone());
                log.claims.insert(key, (owner.clone(), part));
            }
        }
        let changes = match (before, after) {
            (Some(before), Some(after)) => of_pod(before, after),
            (None, Some(after)) => {
                let made = (Happened::PodMade, String::new());
                std::iter::once(made).chain(of_pod(&Pod::default(), after)).collect()
            }
            _ => vec![(Happened::PodGone, String::new())],
        };
        changes.into_iter().for_each(|change| self.add(part, &object, &owner, change));
    }

    fn node(&self, before: Option<&Node>, after: Option<&Node>) {
        let (Some(before), Some(after)) = (before, after) else { return };
        if let Some(change) = of_node(before, after) {
            let name = &after.metadata.name;
            self.add(Part::Node, &format!("node {name}"), name, change);
        }
    }

    /// A volume belongs to a run by the claim that it is bound to.
    fn attachment(&self, client: &Client, before: Option<&Attachment>, after: Option<&Attachment>) {
        let (Some(one), Some(change)) = (before.or(after), of_attachment(before, after)) else { return };
        let volume = &one.spec.source.persistent_volume_name;
        let asked = client.ask("GET", &format!("/api/v1/persistentvolumes/{volume}"), None);
        let claim = match asked {
            Ok(found) => serde_json::from_value::<PersistentVolume>(found).unwrap_or_default().spec.claim_ref,
            Err(failure) if failure.is_missing() => return,
            Err(failure) => return self.missed(&VOLUMES, &failure),
        };
        let owner = self.log().claims.get(&(claim.namespace.clone(), claim.name.clone())).cloned();
        if let Some((owner, part)) = owner {
            self.add(part, &format!("claim {}/{}", claim.namespace, claim.name), &owner, change);
        }
    }

    fn add(&self, part: Part, object: &str, owner: &str, (what, detail): Change) {
        let mut log = self.log();
        if log.happenings.len() >= MOST {
            drop(log);
            let why = format!("only the first {MOST} things that happened were kept");
            return self.gap("pods and nodes", why, String::new());
        }
        let (object, owner) = (object.to_owned(), owner.to_owned());
        log.happenings.push((Instant::now(), Happening { at_ns: 0, what, object, owner, part, detail }));
    }
}

fn named(pod: &Pod) -> String {
    format!("pod {}/{}", pod.metadata.namespace, pod.metadata.name)
}

/// What makes another pod in the place of this one. A Job makes none in a driver's place, so a driver is its own.
fn owner(pod: &Pod) -> String {
    let owners = &pod.metadata.owner_references;
    match owners.iter().find(|owner| owner.controller && owner.kind != "Job") {
        Some(owner) => format!("{} {}/{}", owner.kind, pod.metadata.namespace, owner.name),
        None => named(pod),
    }
}
