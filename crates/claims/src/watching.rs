//! The watches of a load: one for each kind of object, each on a thread of its own, for all lives.

use crate::objects::{Attachment, Claim, Named, Pod, Snapshot, Volume};
use crate::seen::Seen;
use crate::survey::{Survey, told};
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidemark_apiserver::{Change, Client};
use tidemark_kubernetes::RUN;

/// How long the API server keeps a watch open, seconds.
const OPEN: u32 = 60;
/// How long after a failed watch it is begun again.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a wait is before it is looked whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// What is known of all objects of a load, and the bell that rings when it changes.
#[derive(Default)]
pub(crate) struct Known {
    seen: Mutex<Seen>,
    bell: Condvar,
    is_over: AtomicBool,
}

impl Known {
    /// What has been seen.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `look` finds something; `None`: not until `until`, or nobody wants to know any more.
    pub(crate) fn wait<T>(&self, until: Instant, mut look: impl FnMut(&Seen) -> Option<T>) -> Option<T> {
        let mut seen = self.seen();
        loop {
            if let Some(found) = look(&seen) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_over() {
                return None;
            }
            let waited = self.bell.wait_timeout(seen, left.min(LOOK));
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Nobody waits any longer.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.bell.notify_all();
    }

    /// Whether nobody is to wait any longer.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn change(&self, change: impl FnOnce(&mut Seen, Instant)) {
        let at = Instant::now();
        change(&mut self.seen(), at);
        self.bell.notify_all();
    }
}

/// Watches on threads of their own. They end within a minute of the end of what is known: when the API server ends them.
pub(crate) struct Watches(Arc<Known>);

impl Drop for Watches {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// How a kind's events are taken in.
struct Kind<T> {
    path: String,
    query: String,
    take: fn(&mut Seen, &Change<T>, Instant),
    /// What is done with the names of a whole list.
    are: fn(&mut Seen, &[String], Instant),
}

impl Watches {
    /// Begins to watch what a run makes.
    ///
    /// # Errors
    /// A sentence: the API server does not let this user watch, or does not answer.
    pub(crate) fn begin(
        client: &Arc<Client>,
        run: &str,
        survey: &Survey,
    ) -> Result<(Arc<Known>, Self), String> {
        let known = Arc::new(Known::default());
        let watches = Self(Arc::clone(&known));
        let own = || format!("labelSelector={RUN}%3D{run}");
        let kind = Kind::<Claim> {
            path: client.path("api/v1", "persistentvolumeclaims"),
            query: own(),
            take: Seen::claim,
            are: Seen::claims_are,
        };
        kind.begin(client, &known)?;
        let path = client.path("api/v1", "pods");
        Kind::<Pod> { path, query: own(), take: Seen::pod, are: Seen::pods_are }.begin(client, &known)?;
        if survey.sees_volumes {
            let path = "/api/v1/persistentvolumes".to_owned();
            let kind =
                Kind::<Volume> { path, query: String::new(), take: Seen::volume, are: Seen::volumes_are };
            kind.begin(client, &known)?;
        }
        if survey.attaches {
            let path = "/apis/storage.k8s.io/v1/volumeattachments".to_owned();
            let kind =
                Kind::<Attachment> { path, query: String::new(), take: Seen::attachment, are: |_, _, _| {} };
            kind.begin(client, &known)?;
        }
        if survey.snapshots.is_some() {
            let path = client.path("apis/snapshot.storage.k8s.io/v1", "volumesnapshots");
            let kind =
                Kind::<Snapshot> { path, query: own(), take: Seen::snapshot, are: Seen::snapshots_are };
            kind.begin(client, &known)?;
        }
        Ok((known, watches))
    }
}

impl<T: DeserializeOwned + Send + 'static> Kind<T> {
    /// Lists, so that a refusal is known at once, and goes on to watch on a thread of its own.
    fn begin(self, client: &Arc<Client>, known: &Arc<Known>) -> Result<(), String> {
        let mut version =
            Some(self.list(client, known).map_err(|failure| told("list what is watched", &failure))?);
        let (client, known) = (Arc::clone(client), Arc::clone(known));
        let watch = move || {
            while !known.is_over() {
                match version.take() {
                    // Its version is too old, or the API server was away: whatever happened meanwhile is in a list.
                    None => match self.list(&client, &known) {
                        Ok(listed) => version = Some(listed),
                        Err(_) => std::thread::sleep(AGAIN),
                    },
                    Some(from) => version = self.watch(&client, &known, &from),
                }
            }
        };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(watch);
        thread.map(drop).map_err(|error| format!("cannot start a thread for a watch: {error}"))
    }

    fn list(&self, client: &Client, known: &Known) -> Result<String, tidemark_apiserver::Failure> {
        let (objects, version) = client.list_at::<serde_json::Value>(&self.path, &self.query)?;
        let unread = |error: serde_json::Error| {
            tidemark_apiserver::Failure::Away(format!("{} cannot be read: {error}", self.path))
        };
        let mut names = Vec::new();
        let mut changes = Vec::new();
        for object in objects {
            names.push(serde_json::from_value::<Named>(object.clone()).map_err(unread)?.metadata.name);
            changes.push(Change::Modified(serde_json::from_value::<T>(object).map_err(unread)?));
        }
        known.change(|seen, at| {
            changes.iter().for_each(|change| (self.take)(seen, change, at));
            (self.are)(seen, &names, at);
        });
        Ok(version)
    }

    /// Takes events in until the watch ends. Gives the version to go on from, if that is known.
    fn watch(&self, client: &Client, known: &Known, from: &str) -> Option<String> {
        let Ok(mut watch) = client.watch::<T>(&self.path, &self.query, from, OPEN) else {
            std::thread::sleep(AGAIN);
            return None;
        };
        for change in watch.by_ref() {
            let Ok(change) = change else { return None };
            known.change(|seen, at| (self.take)(seen, &change, at));
            if known.is_over() {
                return None;
            }
        }
        Some(watch.version().to_owned())
    }
}
