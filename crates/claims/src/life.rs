//! One volume from its claim to its deletion, phase after phase.

use crate::books::{Books, Entry};
use crate::failure::Failure;
use crate::job::{Job, Phase, Step};
use crate::manifests::{Doing, Owner, Source};
use crate::objects::Event;
use crate::probe::{Report, WRONG};
use crate::seen::{Ended, Seen};
use crate::survey::Survey;
use crate::watching::Known;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_apiserver::Client;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::mix;

const CORE: &str = "api/v1";
const SNAPSHOTS: &str = "apis/snapshot.storage.k8s.io/v1";

/// What all lives of a load share.
pub(crate) struct Shared {
    pub(crate) client: Arc<Client>,
    pub(crate) job: Job,
    pub(crate) survey: Survey,
    pub(crate) owner: Owner,
    pub(crate) known: Arc<Known>,
    pub(crate) books: Books,
}

/// A life.
pub(crate) struct Life<'a> {
    of: &'a Shared,
    worker: u32,
    /// The name of its claim and its pod.
    name: String,
    /// What its content follows from.
    seed: u64,
    /// When its next phase is due.
    due: Instant,
    /// Since when its worker is free for it.
    free: Instant,
    /// What was made: group and kind as paths have them, and the name.
    made: Vec<(&'static str, &'static str, String)>,
}

/// Why a life went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// A phase failed, and is on record.
    Failed,
    /// Nobody wants it any more.
    Stopped,
}

/// How a phase went well.
struct Done {
    at: Instant,
    bytes: u64,
}

/// Why a phase did not go well.
enum Trouble {
    Failed(Failure),
    Stopped,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble::Failed(failure)
    }
}

impl Done {
    fn at(at: Instant) -> Self {
        Self { at, bytes: 0 }
    }
}

impl<'a> Life<'a> {
    /// Lives the life of this number, which is due at `due` and whose worker is free since `free`, from its claim to its deletion. What it
    /// has made is deleted, or at least asked to be, in any case.
    ///
    /// # Errors
    /// It went no further than to some phase.
    pub(crate) fn live(
        of: &'a Shared,
        number: u32,
        worker: u32,
        due: Instant,
        free: Instant,
    ) -> Result<(), Over> {
        let name = format!("{}-{number}", of.owner.run);
        let seed = mix(of.job.seed, &[number.into()]);
        let mut life = Self { of, worker, name, seed, due, free, made: Vec::new() };
        let lived = life.phases();
        if lived.is_err() {
            for (group, kind, name) in life.made.iter().rev() {
                // What is still there at the end of the load is removed with its owner.
                let _ = of.client.delete(&format!("{}/{name}", of.client.path(group, kind)));
            }
        }
        lived
    }

    fn phases(&mut self) -> Result<(), Over> {
        let (job, survey) = (&self.of.job, &self.of.survey);
        let name = self.name.clone();
        self.phase(Phase::Claim, |life, _| {
            let claim = life.of.owner.claim(&name, job, &job.size, &Source::Empty);
            life.make(CORE, "persistentvolumeclaims", &name, &claim)
        })?;
        if !survey.waits {
            self.phase(Phase::Bind, |life, until| life.bound(&name, until))?;
        }
        self.phase(Phase::Schedule, |life, until| {
            let pod = life.of.owner.pod(&name, job, &name, Doing::Write, life.seed);
            life.make(CORE, "pods", &name, &pod)?;
            let scheduled = |seen: &Seen| seen.pods.get(&name).and_then(|pod| pod.scheduled);
            let chosen = |seen: &Seen| match life.of.survey.waits {
                // A claim that is bound already has had a node chosen for it.
                true => seen.claims.get(&name).and_then(|claim| claim.selected.or(claim.bound)),
                false => scheduled(seen),
            };
            life.wait("pods", &name, until, Fault::Unscheduled, chosen).map(Done::at)
        })?;
        if survey.waits {
            self.phase(Phase::Bind, |life, until| life.bound(&name, until))?;
        }
        if survey.attaches {
            self.phase(Phase::Attach, |life, until| {
                let volume = life.volume(&name);
                let attached = |seen: &Seen| seen.attached.get(&volume).copied();
                life.wait("pods", &name, until, Fault::Unmounted, attached).map(Done::at)
            })?;
        }
        // One that its node refuses has ended without either.
        let ended = |seen: &Seen| seen.pods.get(&name)?.ended.as_ref().map(|end| end.at);
        self.phase(Phase::Mount, |life, until| {
            let mounted = |seen: &Seen| seen.pods.get(&name)?.mounted.or_else(|| ended(seen));
            life.wait("pods", &name, until, Fault::Unmounted, mounted).map(Done::at)
        })?;
        self.phase(Phase::Start, |life, until| {
            let started = |seen: &Seen| seen.pods.get(&name)?.started.or_else(|| ended(seen));
            life.wait("pods", &name, until, Fault::Unstarted, started).map(Done::at)
        })?;
        self.phase(Phase::Write, |life, until| {
            let report = life.report(&name, until)?;
            Ok(Done { at: life.due + Duration::from_nanos(report.written_ns), bytes: report.bytes })
        })?;
        for step in &survey.steps {
            self.step(*step)?;
        }
        // Not in the time of it: what came before is known a while after it was done.
        self.due = Instant::now();
        self.phase(Phase::Delete, Self::delete)
    }

    fn step(&mut self, step: Step) -> Result<(), Over> {
        // What came before is known a while after it was done.
        self.due = Instant::now();
        let (name, snapshot) = (self.name.clone(), format!("{}-snapshot", self.name));
        match step {
            Step::Resize => self.phase(Phase::Resize, |life, until| {
                let patch = json!({"spec": {"resources": {"requests": {"storage": life.of.job.grown}}}});
                let path = format!("{}/{name}", life.of.client.path(CORE, "persistentvolumeclaims"));
                life.of
                    .client
                    .merge(&path, &patch)
                    .map_err(|refusal| Failure::of(&format!("resize the claim {name}"), refusal))?;
                let grown = |seen: &Seen| seen.claims.get(&name).and_then(|claim| claim.grown);
                life.wait("persistentvolumeclaims", &name, until, Fault::Unchanged, grown).map(Done::at)
            }),
            Step::Snapshot => self.phase(Phase::Snapshot, |life, until| {
                let class = life.of.survey.snapshots.as_deref().unwrap_or_default();
                let object = life.of.owner.snapshot(&snapshot, class, &name);
                life.make(SNAPSHOTS, "volumesnapshots", &snapshot, &object)?;
                let ready = |seen: &Seen| seen.snapshots.get(&snapshot).and_then(|one| one.ready);
                life.wait("volumesnapshots", &snapshot, until, Fault::Unchanged, ready).map(Done::at)
            }),
            Step::Restore => {
                self.copy("restored", (Phase::Restore, Phase::RestoreRead), &Source::Snapshot(&snapshot))
            }
            Step::Clone => self.copy("clone", (Phase::Clone, Phase::CloneRead), &Source::Claim(&name)),
        }
    }

    /// Makes a volume of another one, and reads it.
    fn copy(&mut self, word: &str, (copy, read): (Phase, Phase), source: &Source<'_>) -> Result<(), Over> {
        let name = format!("{}-{word}", self.name);
        let job = &self.of.job;
        // A copy is at least as large as what it is of.
        let has_grown = self.of.survey.steps.first() == Some(&Step::Resize);
        let size = if has_grown { &job.grown } else { &job.size };
        self.phase(copy, |life, until| {
            let claim = life.of.owner.claim(&name, job, size, source);
            life.make(CORE, "persistentvolumeclaims", &name, &claim)?;
            let pod = life.of.owner.pod(&name, job, &name, Doing::Read, life.seed);
            life.make(CORE, "pods", &name, &pod)?;
            life.bound(&name, until)
        })?;
        self.phase(read, |life, until| {
            let report = life.report(&name, until)?;
            Ok(Done { at: life.due + Duration::from_nanos(report.first_read_ns), bytes: report.bytes })
        })
    }

    /// Carries a phase out and puts it on record. The next one is due when it is done.
    fn phase(
        &mut self,
        phase: Phase,
        doing: impl FnOnce(&mut Self, Instant) -> Result<Done, Trouble>,
    ) -> Result<(), Over> {
        let due = self.due;
        // Only a life's beginning can be late; phases follow each other.
        let sent = if phase == Phase::Claim { Instant::now().max(due) } else { due };
        let until = Instant::now() + Duration::from_nanos(self.of.job.timeout_ns);
        let (worker, free) = (self.worker, self.free);
        let entry = |done, bytes| Entry { phase, worker, due, free, sent, done, bytes };
        let (entry, failure) = match doing(self, until) {
            Ok(Done { at, bytes }) => (entry(at.max(sent), bytes), None),
            Err(Trouble::Failed(failure)) => (entry(Instant::now(), 0), Some(failure)),
            Err(Trouble::Stopped) => return Err(Over::Stopped),
        };
        self.of.books.enter(&entry, failure.as_ref());
        self.due = entry.done;
        if failure.is_some() { Err(Over::Failed) } else { Ok(()) }
    }

    fn make(
        &mut self,
        group: &'static str,
        kind: &'static str,
        name: &str,
        object: &Value,
    ) -> Result<Done, Trouble> {
        let refused = |refusal| Failure::of(&format!("make {name} ({kind})"), refusal);
        // Whether it was made is not known where there is no answer.
        self.made.push((group, kind, name.to_owned()));
        self.of.client.create(&self.of.client.path(group, kind), object).map_err(refused)?;
        Ok(Done::at(Instant::now()))
    }

    /// Waits until a thing was seen of an object.
    fn wait(
        &self,
        kind: &str,
        name: &str,
        until: Instant,
        fault: Fault,
        look: impl FnMut(&Seen) -> Option<Instant>,
    ) -> Result<Instant, Trouble> {
        self.of.known.wait(until, look).ok_or_else(|| self.waited(kind, name, fault))
    }

    fn bound(&self, name: &str, until: Instant) -> Result<Done, Trouble> {
        let bound = |seen: &Seen| seen.claims.get(name).and_then(|claim| claim.bound);
        self.wait("persistentvolumeclaims", name, until, Fault::Unbound, bound).map(Done::at)
    }

    /// The volume that a claim is bound to.
    fn volume(&self, name: &str) -> String {
        self.of.known.seen().claims.get(name).map(|claim| claim.volume.clone()).unwrap_or_default()
    }

    /// What the program of a pod has to say.
    fn report(&self, name: &str, until: Instant) -> Result<Report, Trouble> {
        let ended = |seen: &Seen| seen.pods.get(name).and_then(|pod| pod.ended.clone());
        let Ended { is_good, message, .. } =
            self.of.known.wait(until, ended).ok_or_else(|| self.waited("pods", name, Fault::Timeout))?;
        let failed = || {
            let fault = if message.contains(WRONG) { Fault::WrongContent } else { Fault::Io };
            Failure::new(fault, format!("pod {name} failed: {}", message.trim()))
        };
        if !is_good {
            return Err(failed().into());
        }
        let report: Report = serde_json::from_str(&message).map_err(|_| failed())?;
        match report.bytes == self.of.job.bytes {
            true => Ok(report),
            false => Err(failed().into()),
        }
    }

    /// Why a wait ended without what was waited for, with what Kubernetes says last of the object.
    fn waited(&self, kind: &str, name: &str, fault: Fault) -> Trouble {
        if self.of.known.is_over() {
            return Trouble::Stopped;
        }
        let client = &self.of.client;
        let query = format!("fieldSelector=involvedObject.name%3D{name}");
        let mut events: Vec<Event> = client.list(&client.path(CORE, "events"), &query).unwrap_or_default();
        // A cluster without names of services says so of every pod; nothing of ours needs them.
        events.retain(|event| event.reason != "MissingClusterDNS");
        let time = |event: &Event| event.last_timestamp.clone().or_else(|| event.event_time.clone());
        // It warns of one thing several times, and most of them say little: `Error: ErrImagePull`.
        let says = |event: &Event| if event.kind == "Warning" { event.message.len() } else { 0 };
        events.sort_by_key(|event| (says(event), time(event)));
        let said = match events.last() {
            None => "Kubernetes has no event of it".to_owned(),
            Some(Event { reason, message, .. }) => format!("{reason}: {message}"),
        };
        let seconds = self.of.job.timeout_ns / 1_000_000_000;
        Failure::new(fault, format!("{name} ({kind}) after {seconds} s: {said}")).into()
    }

    /// Deletes all that was made, and waits until it is gone.
    fn delete(&mut self, until: Instant) -> Result<Done, Trouble> {
        let of = self.of;
        for (group, kind, name) in self.made.iter().rev() {
            let path = format!("{}/{name}", of.client.path(group, kind));
            of.client
                .delete(&path)
                .map_err(|refusal| Failure::of(&format!("delete {name} ({kind})"), refusal))?;
        }
        let mut done = Instant::now();
        for (_, kind, name) in std::mem::take(&mut self.made) {
            let volume = self.volume(&name);
            let gone = |seen: &Seen| match kind {
                "pods" => seen.pods.get(&name).and_then(|one| one.gone),
                "volumesnapshots" => seen.snapshots.get(&name).and_then(|one| one.gone),
                _ => {
                    let claim = seen.claims.get(&name)?.gone?;
                    match of.survey.deletes && of.survey.sees_volumes {
                        true => Some(claim.max((*seen.volumes.get(&volume)?)?)),
                        false => Some(claim),
                    }
                }
            };
            done = done.max(self.wait(kind, &name, until, Fault::Kept, gone)?);
        }
        Ok(Done::at(done))
    }
}
