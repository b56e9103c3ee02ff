//! The pods of one run, from their making to their end.

use crate::bucket::Bucket;
use crate::cluster::Cluster;
use crate::error::PodsError;
use crate::made::Made;
use crate::trouble::{Trouble, troubles};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tidemark_kubernetes::Manifest;

/// How often it is looked whether pods have come, and why others have not.
const LOOK: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// How long everything may take to go.
pub(crate) const REMOVAL: Duration = Duration::from_secs(120);

/// The pods of one run. What it has made is removed with it.
pub struct Running<'a> {
    cluster: &'a Cluster,
    made: Made,
    run: String,
    /// The number of what owns everything else.
    uid: String,
    count: u32,
    is_removed: bool,
}

/// How pods are waited for.
pub struct Waiting<'a> {
    /// How many have come: drivers that have joined, servers that are ready.
    pub joined: &'a dyn Fn() -> u32,
    /// Whether the user does not want to wait any longer.
    pub stopped: &'a dyn Fn() -> bool,
    /// For at most this long.
    pub most: Duration,
    /// The address at which drivers look for the controller, or the port at which servers are to listen.
    pub at: &'a str,
}

impl<'a> Running<'a> {
    pub(crate) fn new(cluster: &'a Cluster, made: Made, run: &str, uid: &str, count: u32) -> Self {
        Self { cluster, made, run: run.to_owned(), uid: uid.to_owned(), count, is_removed: false }
    }

    /// Makes one more object with `count` pods, owned by what has the number that `manifest` is given.
    pub(crate) fn add(
        &mut self,
        manifest: impl FnOnce(&str) -> Manifest,
        count: u32,
    ) -> Result<(), PodsError> {
        self.cluster.make(self.made.owner(), &manifest(&self.uid))?;
        self.count += count;
        Ok(())
    }

    /// Waits until all pods have come, and tells `say` what they wait for, whenever that is news.
    ///
    /// # Errors
    /// [`PodsError::NotJoined`], with the object and what Kubernetes says of it, when they cannot come, or did not come in time;
    /// [`PodsError::Stopped`].
    pub fn wait(&self, waiting: &Waiting<'_>, say: &mut dyn FnMut(&str)) -> Result<(), PodsError> {
        let begun = Instant::now();
        let mut said = String::new();
        let mut seen: BTreeMap<Duration, Instant> = BTreeMap::new();
        let (mut looked, mut last) = (None::<Instant>, Ok(Vec::new()));
        loop {
            let joined = (waiting.joined)();
            if joined >= self.count {
                return Ok(());
            }
            if (waiting.stopped)() {
                return Err(PodsError::Stopped);
            }
            if looked.is_none_or(|at| at.elapsed() >= LOOK.1) {
                looked = Some(Instant::now());
                last = self.troubles();
                let news = self.standing(joined, &last);
                if news != said {
                    say(&news);
                    said = news;
                }
                // How long each patience has been tried.
                let tried: Vec<_> = last.iter().flatten().filter_map(|trouble| trouble.patience).collect();
                seen.retain(|patience, _| tried.contains(patience));
                for patience in tried {
                    seen.entry(patience).or_insert_with(Instant::now);
                }
                if seen.iter().any(|(patience, since)| since.elapsed() >= *patience) {
                    return Err(PodsError::NotJoined(self.standing(joined, &last)));
                }
                // A refusal stays one.
                if let Err(error @ (PodsError::Forbidden(_) | PodsError::Config(_))) = last {
                    return Err(error);
                }
            }
            if begun.elapsed() >= waiting.most {
                let standing = self.standing((waiting.joined)(), &last);
                let advice = match &last {
                    Ok(troubles) if troubles.is_empty() => {
                        self.made.advice(waiting.at, self.cluster.namespace(), &self.run)
                    }
                    _ => String::new(),
                };
                let seconds = waiting.most.as_secs();
                return Err(PodsError::NotJoined(format!("after {seconds} s {standing}{advice}")));
            }
            std::thread::sleep(LOOK.0);
        }
    }

    /// Waits for the bucket that the run has claimed, for at most as long as for its pods.
    ///
    /// # Errors
    /// [`PodsError::NotJoined`], with the claim and what Kubernetes says of it; [`PodsError::Stopped`].
    pub fn bucket(&self, waiting: &Waiting<'_>) -> Result<Bucket, PodsError> {
        self.cluster.bucket(&self.run, waiting)
    }

    /// What Kubernetes says of pods that have ended: `pod x has ended: OOMKilled, exit code 137`. For a report of lost drivers.
    pub fn ended(&self) -> Vec<String> {
        let troubles = self.troubles().unwrap_or_default();
        let ended = troubles.into_iter().filter(|trouble| trouble.patience == Some(Duration::ZERO));
        ended.map(|trouble| trouble.text).collect()
    }

    /// Removes all that was made, and waits until it is gone.
    ///
    /// # Errors
    /// [`PodsError::Left`].
    pub fn remove(mut self) -> Result<(), PodsError> {
        self.is_removed = true;
        self.cluster.remove(self.made, &self.run, REMOVAL)
    }

    /// Leaves everything as it is, for whoever removes it by its name; or removes it, if what was waited for has failed.
    pub(crate) fn conclude<T>(mut self, came: Result<T, PodsError>) -> Result<T, PodsError> {
        match came {
            Ok(came) => {
                self.is_removed = true;
                Ok(came)
            }
            Err(error) => Err(error.and(self.remove())),
        }
    }

    fn troubles(&self) -> Result<Vec<Trouble>, PodsError> {
        Ok(troubles(self.made, &self.run, self.count, &self.cluster.state_of(&self.run)?))
    }

    fn standing(&self, joined: u32, troubles: &Result<Vec<Trouble>, PodsError>) -> String {
        let head = format!("{joined} of {} {}", self.count, self.made.came());
        match troubles {
            Err(error) => format!("{head}; {error}"),
            Ok(troubles) => match &troubles[..] {
                [] => head,
                [one] => format!("{head}; {}", one.text),
                [first, others @ ..] => format!("{head}; {} (and {} more)", first.text, others.len()),
            },
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.is_removed {
            // Something broke; what is left can be cleaned up by its labels.
            let _ = self.cluster.remove(self.made, &self.run, REMOVAL);
        }
    }
}
