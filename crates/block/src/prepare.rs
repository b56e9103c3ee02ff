//! Volumes made ready: guarded before the run, filled only where they must be, and their carriers made stage by stage.

use crate::examined::Examined;
use crate::external::External;
use crate::guard::{self, GuardError, Intent};
use crate::identity::{self, Identity};
use crate::job::{Action, DRIVER, IoEngine, Job, Place, Volume};
use crate::lock::{self, Trouble};
use crate::method::{Method, Touch};
use crate::sessions::{DataSet, Use, sessions};
use crate::{device, filled, is_ours, volume};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_measure::record::{Note, Proof};
use tidemark_plan::engine::{Carrier, Holding, Prepared, Process, Setup, StageWorks};
use tidemark_plan::plan::{Plan, Work, WorkKind};
use tidemark_plan::policy::Access;

/// The engine ready for one run.
struct Ready {
    external: Arc<dyn External>,
    process: Option<Arc<dyn Process>>,
    data: Arc<DataSet>,
    method: Option<Method>,
    /// What the user has given up.
    allow: Vec<PathBuf>,
    /// What the guard has examined, of the volumes that the run changes or removes at some time.
    examined: Examined,
    /// Volumes that hold data of somebody else's, and are only read.
    kept: Vec<Volume>,
    /// What other drivers must not use as well.
    holdings: Vec<Holding>,
    /// The locks on what this driver alone uses in the current stage.
    locks: Vec<File>,
}

/// Guards the volumes that the plan writes to, and finds the external program where it is needed.
pub(crate) fn prepare(
    plan: &Plan,
    external: Arc<dyn External>,
    setup: &mut Setup<'_>,
) -> Result<Box<dyn Prepared>, String> {
    let works = || plan.stages.iter().flat_map(|stage| &stage.works);
    let jobs = || works().filter_map(|work| Some((work, work.job.get::<Job>()?)));
    let mut process = None;
    if jobs().any(|(_, job)| job.io_engine == IoEngine::Fio && job.actions != [Action::Remove]) {
        let program = external.find()?;
        (setup.ready)(program.description);
        process = Some(program.process);
    }
    check_same(jobs().flat_map(|(_, job)| &job.volumes))?;
    let (mut images, mut kept, mut examined) = (Vec::new(), Vec::new(), Examined::default());
    let usages = Usage::all(jobs());
    for usage in &usages {
        let volume = usage.volume;
        match usage.guard(&*external, setup, &mut examined) {
            Ok(Some(description)) => (setup.ready)(description),
            Ok(None) => images.push(volume.name()),
            Err(Refusal::Guard(GuardError::Precious { reason, .. } | GuardError::InUse { reason, .. }))
                if usage.only_reads_after_fill() =>
            {
                usage.check_foreign(&reason)?;
                (setup.ready)(format!(
                    "{}: {reason}; it is only read, so it is left as it is",
                    volume.name()
                ));
                kept.push(volume.clone());
            }
            Err(refusal) => return Err(refusal.to_string()),
        }
    }
    match images.as_slice() {
        [] => {}
        [only] => (setup.ready)(format!("RBD image {only}, through fio")),
        [first, .., last] => {
            (setup.ready)(format!("{} RBD images, {first} to {last}, through fio", images.len()));
        }
    }
    jobs().filter(refills).try_for_each(|(_, job)| check_fill(job, &kept))?;
    let verifies = jobs().any(|(_, job)| job.content.verify || job.journal.is_some());
    make_directories(jobs(), &setup.access)?;
    let data = Arc::new(DataSet::new(plan.seed, verifies).within(setup.access.clone()));
    open_journals(jobs().map(|(_, job)| job), &data)?;
    let allow = setup.allow_destroy.to_vec();
    let changes = |usage: &Usage<'_>| usage.intent().destroys() && !kept.contains(usage.volume);
    let holdings = usages.iter().flat_map(|usage| usage.holdings(changes(usage))).collect();
    let process = process.map(|process| process(examined.devices()));
    Ok(Box::new(Ready {
        external,
        process,
        data,
        method: None,
        allow,
        examined,
        kept,
        holdings,
        locks: Vec::new(),
    }))
}

/// Refuses one file or device under several names: what is written by one name would be called misplaced by another.
fn check_same<'a>(volumes: impl Iterator<Item = &'a Volume>) -> Result<(), String> {
    let mut known: BTreeMap<Identity, &Path> = BTreeMap::new();
    for volume in volumes {
        let (Place::File(path) | Place::Device(path)) = &volume.place else { continue };
        let Some(identity) = Identity::of(path) else { continue };
        let other = *known.entry(identity).or_insert(path);
        if other != path {
            return Err(format!(
                "{} and {} are one and the same, under two names: use each volume by one name only (for two clients on one \
                 volume, use `clients: 2`)",
                other.display(),
                path.display()
            ));
        }
    }
    Ok(())
}

/// Makes the directories of journals.
fn make_directories<'a>(
    jobs: impl Iterator<Item = (&'a Work, &'a Job)>,
    access: &Access,
) -> Result<(), String> {
    let directories: BTreeSet<_> = jobs.filter_map(|(_, job)| job.journal.as_deref()).collect();
    directories.into_iter().try_for_each(|directory| {
        access
            .directory(directory)
            .map(drop)
            .map_err(|error| format!("cannot make the journal's directory {}: {error}", directory.display()))
    })
}

/// Opens the journals of all volumes, so that one that cannot be used is found before anything is done to its volume.
fn open_journals<'a>(jobs: impl Iterator<Item = &'a Job>, data: &DataSet) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for job in jobs.filter(|job| job.journal.is_some()) {
        for volume in &job.volumes {
            let (Place::File(path) | Place::Device(path)) = &volume.place else { continue };
            // The journal of a volume that is first removed goes with it.
            if known.insert(path) && !job.actions.contains(&Action::Remove) {
                volume::table(job, volume, path, data).map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(())
}

/// What a plan does to one volume.
struct Usage<'a> {
    volume: &'a Volume,
    /// Whether it fills the volume, unless that is filled already.
    fills: bool,
    /// Whether it writes to it in another way.
    writes: bool,
    reads: bool,
    removes: bool,
    verifies: bool,
    /// Whether every driver has such a volume of its own.
    per_driver: bool,
}

/// Why a volume is not used.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error("{0}")]
    External(String),
}

impl<'a> Usage<'a> {
    /// Of every distinct volume.
    fn all(jobs: impl Iterator<Item = (&'a Work, &'a Job)>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (work, job) in jobs {
            let fills = refills(&(work, job));
            let writes = job.actions.iter().any(|action| action.changes()) && !fills;
            let removes = job.actions.contains(&Action::Remove);
            for volume in &job.volumes {
                let known = all.iter().position(|usage| usage.volume == volume).unwrap_or_else(|| {
                    let (fills, writes, reads, removes, verifies) = (false, false, false, false, false);
                    all.push(Self { volume, fills, writes, reads, removes, verifies, per_driver: false });
                    all.len() - 1
                });
                let usage = &mut all[known];
                usage.fills |= fills;
                usage.writes |= writes;
                usage.reads |= job.actions.contains(&Action::Read);
                usage.removes |= removes;
                usage.verifies |= job.content.verify;
                usage.per_driver |= job.per_driver;
            }
        }
        all
    }

    /// What the volume is, wherever a driver may reach it from.
    fn holdings(&self, changes: bool) -> impl Iterator<Item = Holding> + use<> {
        let (name, removes, each) = (self.volume.name(), self.removes, self.per_driver);
        let is_local = !matches!(self.volume.place, Place::Rbd(_));
        let holding =
            move |identity| Holding { name: name.clone(), identity, is_local, changes, removes, each };
        identity::all(self.volume).into_iter().map(holding)
    }

    fn intent(&self) -> Intent {
        Intent { writes: self.fills || self.writes, removes: self.removes }
    }

    /// Whether it is read, and nothing would change it but its prefill.
    fn only_reads_after_fill(&self) -> bool {
        self.fills && self.reads && !self.writes && !self.removes
    }

    /// Checks the volume. Gives its description if it is one of this machine's.
    fn guard(
        &self,
        external: &dyn External,
        setup: &Setup<'_>,
        examined: &mut Examined,
    ) -> Result<Option<String>, Refusal> {
        let is_allowed = guard::is_allowed(self.volume, setup.allow_destroy);
        match self.volume.place {
            Place::File(_) | Place::Device(_) => {
                Ok(Some(examined.examine(self.volume, self.intent(), is_allowed, &setup.access)?))
            }
            Place::Rbd(_) => {
                self.guard_image(external, setup.allow_destroy)?;
                examined.add_image(self.volume, is_allowed);
                Ok(None)
            }
        }
    }

    fn guard_image(&self, external: &dyn External, allow: &[PathBuf]) -> Result<(), Refusal> {
        if self.intent().destroys() {
            let found = external.find_image(self.volume).map_err(Refusal::External)?;
            guard::check_image(self.volume, found, self.intent(), allow)?;
        }
        Ok(())
    }

    /// Whether what somebody else put on the volume can be read in place of a prefill; `reason` says that it is theirs.
    fn check_foreign(&self, reason: &str) -> Result<(), String> {
        let (name, size) = (self.volume.name(), self.volume.size);
        if self.verifies {
            return Err(format!(
                "{name} cannot be verified: {reason}; leave out `verify` to read it as it is, or use another volume"
            ));
        }
        let held = match &self.volume.place {
            Place::File(path) => std::fs::metadata(path).map(|found| found.len()),
            Place::Device(path) => device::size(path),
            // fio asks the cluster.
            Place::Rbd(_) => Ok(size),
        };
        match held {
            Ok(held) if held < size => Err(format!(
                "{name} has {held} bytes, and {size} are to be read: {reason}, so it is not made larger; set its \
                 size to {} at most, or use another volume",
                held / 4096 * 4096
            )),
            _ => Ok(()),
        }
    }
}

/// A prefill fills all its volumes or none.
fn check_fill(job: &Job, kept: &[Volume]) -> Result<(), String> {
    let is_kept = |volume: &&Volume| kept.contains(volume);
    let empty = job.volumes.iter().find(|volume| !is_kept(volume) && !filled(job, volume));
    match (job.volumes.iter().find(is_kept), empty) {
        (Some(kept), Some(empty)) => Err(format!(
            "{} holds data that Tidemark did not write and would only be read, but {} must be filled first: fill it by \
             a run of its own, or leave out `prepare`",
            kept.name(),
            empty.name()
        )),
        _ => Ok(()),
    }
}

impl Prepared for Ready {
    fn holdings(&self) -> Vec<Holding> {
        self.holdings.clone()
    }

    fn open(&mut self, stage: StageWorks<'_>, notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        let works = stage.works;
        let jobs: Vec<(&Work, &Job)> =
            works.iter().filter_map(|work| Some((*work, work.job.get::<Job>()?))).collect();
        if let Some(why) = self.why_not_filled(&jobs) {
            return Ok(jobs.iter().map(|_| Carrier::Done(why.clone())).collect());
        }
        self.examine(&jobs)?;
        notes.extend(changed_since(&jobs).map(|name| Note {
            topic: "refilled".into(),
            text: format!(
                "{name} does not hold Tidemark's content of this size and form: it is filled again. \
                 To check what it holds, run a verifying load without `prepare`."
            ),
        }));
        let mut carriers = Vec::new();
        for (work, job) in &jobs {
            carriers.push(self.carrier(work, job).map_err(|error| format!("work `{}`: {error}", work.name))?);
        }
        // Of a stage that could not be opened some may be left, and they would be in the way.
        self.locks.clear();
        self.locks = self.lock(&jobs)?;
        self.begin(&jobs);
        let touches = jobs.iter().filter_map(|(work, job)| Touch::of(work, job));
        self.method = Method::begin(&*self.external, &touches.collect::<Vec<_>>());
        Ok(carriers)
    }

    fn close(&mut self, remarks: &[String]) -> Option<Proof> {
        self.locks.clear();
        let own = self.data.notes();
        let proof = self.method.take().map(|method| method.end(&*self.external, remarks.iter().chain(&own)));
        // After the counters were read: it reads the volumes, too.
        self.examined.end();
        proof
    }
}

impl Ready {
    /// Examines again what the works of a stage change or remove.
    fn examine(&mut self, jobs: &[(&Work, &Job)]) -> Result<(), String> {
        for (work, job) in jobs {
            for usage in Usage::all([(*work, *job)].into_iter()) {
                let Usage { volume, .. } = usage;
                if !usage.intent().destroys() || self.kept.contains(volume) {
                    continue;
                }
                let refused = |error: &dyn fmt::Display| format!("work `{}`: {error}", work.name);
                let opened = self.examined.open(volume, usage.intent(), self.data.access());
                opened.map_err(|error| refused(&error))?;
                if matches!(volume.place, Place::Rbd(_)) && !self.examined.is_changed(volume) {
                    usage.guard_image(&*self.external, &self.allow).map_err(|error| refused(&error))?;
                }
                self.expect(volume);
            }
        }
        Ok(())
    }

    /// Has nothing but what was examined opened to be changed, or removed.
    fn expect(&self, volume: &Volume) {
        if let (Place::File(path) | Place::Device(path), Some(identity)) =
            (&volume.place, self.examined.identity(volume))
        {
            self.data.expect(path, identity.clone());
        }
    }

    /// Notes what the works of a stage are going to change.
    fn begin(&mut self, jobs: &[(&Work, &Job)]) {
        for (work, job) in jobs.iter().filter(|(_, job)| job.actions.iter().any(|action| action.changes())) {
            let is_stamped = job.io_engine == IoEngine::Native;
            for volume in &job.volumes {
                self.examined.begin(volume, is_stamped, work.kind == WorkKind::Prepare);
            }
        }
    }

    /// What carries a work out.
    fn carrier(&mut self, work: &Work, job: &Job) -> Result<Carrier, String> {
        let on_images = job.volumes.iter().any(|volume| matches!(volume.place, Place::Rbd(_)));
        let removes = job.actions == [Action::Remove];
        if removes && on_images {
            return Ok(Carrier::Sessions(self.external.removal(&job.volumes, &self.allow)));
        }
        let fills = work.kind == WorkKind::Prepare;
        if fills {
            for volume in &job.volumes {
                match volume.place {
                    Place::Rbd(_) => self.external.ensure_image(volume)?,
                    Place::File(_) | Place::Device(_) => {
                        self.examined.claim(volume, self.data.access())?;
                        self.expect(volume);
                    }
                }
            }
        }
        // The external program does not remove files: that is done natively.
        if job.io_engine == IoEngine::Native || removes {
            let purpose = if fills { Use::Fill } else { Use::Load };
            let sessions = sessions(job, &self.data, purpose).map_err(|error| error.to_string())?;
            return Ok(Carrier::Sessions(sessions));
        }
        let process = self.process.clone().ok_or("fio was not located")?;
        Ok(Carrier::Process(1, process))
    }

    /// Locks the files of a stage that this driver alone uses: those that the run changes at some time against everybody, and the others
    /// against whoever changes them. Two drivers on one machine have been told apart already; two that meet in a file system of several
    /// machines only meet here.
    fn lock(&self, jobs: &[(&Work, &Job)]) -> Result<Vec<File>, String> {
        let mut locks = Vec::new();
        let usages = Usage::all(jobs.iter().copied());
        for usage in usages.iter().filter(|usage| usage.per_driver) {
            let Place::File(path) = &usage.volume.place else { continue };
            match lock::lock(path, self.examined.identity(usage.volume).is_some(), self.data.access()) {
                Ok(locked) => locks.extend(locked),
                Err(Trouble::Taken) => {
                    return Err(format!(
                        "{} is in use by another driver or run: with `per_driver` each driver needs a volume of its own; put `{DRIVER}` into \
                         its path",
                        path.display()
                    ));
                }
                Err(Trouble::Unknown(error)) => self.data.note(format!(
                    "{} could not be locked ({error}), so nobody checked whether a driver on another machine uses it too.",
                    path.display()
                )),
            }
        }
        Ok(locks)
    }

    /// Why works that fill volumes have nothing to do, if all of them are of that kind and have nothing to do.
    fn why_not_filled(&self, jobs: &[(&Work, &Job)]) -> Option<String> {
        let is_kept = |volume: &&Volume| self.kept.contains(volume);
        let has_nothing_to_do = |of: &(&Work, &Job)| {
            refills(of) && of.1.volumes.iter().all(|volume| is_kept(&volume) || filled(of.1, volume))
        };
        if jobs.is_empty() || !jobs.iter().all(has_nothing_to_do) {
            return None;
        }
        let volumes = || jobs.iter().flat_map(|(_, job)| &job.volumes);
        let (all, kept) = (volumes().count(), volumes().filter(is_kept).count());
        Some(match kept {
            0 if all == 1 => "the volume already holds Tidemark's content and was kept".to_owned(),
            _ if all == 1 => "the volume holds data that Tidemark did not write: it is only read".to_owned(),
            0 => format!("{all} volumes already hold Tidemark's content and were kept"),
            _ => format!("{kept} of {all} volumes hold data that Tidemark did not write: they are only read"),
        })
    }
}

/// Whether a work fills volumes unless they are filled already.
fn refills((work, job): &(&Work, &Job)) -> bool {
    work.kind == WorkKind::Prepare && job.reuse
}

/// The files that are to be filled again although Tidemark filled them before: what they hold is not what it wrote.
fn changed_since<'a>(jobs: &'a [(&Work, &Job)]) -> impl Iterator<Item = String> + 'a {
    let jobs = jobs.iter().filter(|of| refills(of));
    let volumes = jobs.flat_map(|(_, job)| job.volumes.iter().map(move |volume| (job, volume)));
    let changed = volumes.filter(|(job, volume)| match &volume.place {
        Place::File(path) => is_ours(path) && !filled(job, volume),
        Place::Device(_) | Place::Rbd(_) => false,
    });
    changed.map(|(_, volume)| volume.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_under_two_names_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let check = |names: [&str; 2]| {
            let volumes = names.map(|name| Volume { place: Place::File(at(name)), size: 4096 });
            check_same(volumes.iter())
        };
        std::fs::write(at("b"), "x").unwrap();
        std::fs::write(at("c"), "x").unwrap();
        std::fs::create_dir(at("d")).unwrap();
        std::fs::hard_link(at("b"), at("bh")).unwrap();
        std::os::unix::fs::symlink(at("b"), at("bs")).unwrap();
        std::os::unix::fs::symlink(at("d"), at("ds")).unwrap();
        for names in [["b", "bh"], ["b", "bs"], ["b", "d/../b"], ["d/new", "ds/new"]] {
            let refused = check(names).unwrap_err();
            assert!(names.iter().all(|name| refused.contains(&at(name).display().to_string())), "{refused}");
        }
        for names in [["b", "c"], ["b", "b"], ["d/new", "d/newer"]] {
            assert_eq!(check(names), Ok(()), "{names:?}");
        }
    }
}
