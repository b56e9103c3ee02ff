//! Volumes made ready: guarded before the run, filled only where they must be, and their carriers made stage by stage.

use crate::external::External;
use crate::guard;
use crate::job::{Action, IoEngine, Job, Place, Volume};
use crate::method::{Method, Touch};
use crate::sessions::{DataSet, Use, sessions};
use crate::{claim, filled, is_ours};
use std::sync::Arc;
use tidemark_measure::record::{Note, Proof};
use tidemark_plan::engine::{Carrier, Prepared, Process, Setup};
use tidemark_plan::plan::{Plan, Work, WorkKind};

/// The engine ready for one run.
struct Ready {
    external: Arc<dyn External>,
    process: Option<Arc<dyn Process>>,
    data: Arc<DataSet>,
    method: Option<Method>,
}

/// Guards the volumes that the plan writes to, and finds the external program where it is needed.
pub(crate) fn prepare(
    plan: &Plan,
    external: Arc<dyn External>,
    setup: &mut Setup<'_>,
) -> Result<Box<dyn Prepared>, String> {
    let jobs = || plan.stages.iter().flat_map(|stage| &stage.works).filter_map(|work| work.job.get::<Job>());
    let mut process = None;
    if jobs().any(|job| job.io_engine == IoEngine::Fio && job.actions != [Action::Remove]) {
        let program = external.find()?;
        (setup.ready)(program.description);
        process = Some(program.process);
    }
    let mut images = Vec::new();
    for (volume, destroys) in volumes(jobs()) {
        match volume.place {
            Place::Rbd(_) => images.push(volume.name()),
            Place::File(_) | Place::Device(_) => {
                let guarded = guard::check(volume, destroys, setup.allow_destroy);
                (setup.ready)(guarded.map_err(|error| error.to_string())?);
            }
        }
    }
    match images.as_slice() {
        [] => {}
        [only] => (setup.ready)(format!("RBD image {only}, through fio")),
        [first, .., last] => {
            (setup.ready)(format!("{} RBD images, {first} to {last}, through fio", images.len()));
        }
    }
    let verifies = jobs().any(|job| job.content.verify);
    let data = Arc::new(DataSet::new(plan.seed, verifies));
    Ok(Box::new(Ready { external, process, data, method: None }))
}

/// The distinct volumes of some jobs, and whether what they hold is lost.
fn volumes<'a>(jobs: impl Iterator<Item = &'a Job>) -> Vec<(&'a Volume, bool)> {
    let mut all: Vec<(&Volume, bool)> = Vec::new();
    for job in jobs {
        let destroys = job.actions.iter().any(|action| action.destroys());
        for volume in &job.volumes {
            match all.iter_mut().find(|(known, _)| *known == volume) {
                Some((_, known)) => *known |= destroys,
                None => all.push((volume, destroys)),
            }
        }
    }
    all
}

impl Prepared for Ready {
    fn open(&mut self, works: &[&Work], notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        let jobs: Vec<(&Work, &Job)> =
            works.iter().filter_map(|work| Some((*work, work.job.get::<Job>()?))).collect();
        if let Some(why) = already_filled(&jobs) {
            return Ok(jobs.iter().map(|_| Carrier::Done(why.clone())).collect());
        }
        notes.extend(changed_since(&jobs).map(|name| Note {
            topic: "refilled".into(),
            text: format!(
                "{name} does not hold Tidemark's content of this size and form: it is filled again. \
                 To check what it holds, run a verifying load without `prepare`."
            ),
        }));
        let carrier = |(work, job): &(&Work, &Job)| {
            self.carrier(work, job).map_err(|error| format!("work `{}`: {error}", work.name))
        };
        let carriers = jobs.iter().map(carrier).collect::<Result<_, _>>()?;
        let touches = jobs.iter().filter_map(|(work, job)| Touch::of(work, job));
        self.method = Method::begin(&touches.collect::<Vec<_>>());
        Ok(carriers)
    }

    fn close(&mut self, remarks: &[String]) -> Option<Proof> {
        let own = self.data.notes();
        self.method.take().map(|method| method.end(remarks.iter().chain(&own)))
    }
}

impl Ready {
    /// What carries a work out.
    fn carrier(&self, work: &Work, job: &Job) -> Result<Carrier, String> {
        let on_images = job.volumes.iter().any(|volume| matches!(volume.place, Place::Rbd(_)));
        let removes = job.actions == [Action::Remove];
        if removes && on_images {
            return Ok(Carrier::Sessions(self.external.removal(&job.volumes)));
        }
        let fills = work.kind == WorkKind::Prepare;
        if fills {
            job.volumes.iter().try_for_each(|volume| match volume.place {
                Place::Rbd(_) => self.external.ensure_image(volume),
                Place::File(_) | Place::Device(_) => claim(volume),
            })?;
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
}

/// Whether a work fills volumes unless they are filled already.
fn refills((work, job): &(&Work, &Job)) -> bool {
    work.kind == WorkKind::Prepare && job.reuse
}

/// Why works that fill volumes have nothing to do, if they hold what would be written; all works must be of that kind.
fn already_filled(jobs: &[(&Work, &Job)]) -> Option<String> {
    let has_nothing_to_do =
        |of: &(&Work, &Job)| refills(of) && of.1.volumes.iter().all(|volume| filled(of.1, volume));
    let count: usize = jobs.iter().map(|(_, job)| job.volumes.len()).sum();
    let all = !jobs.is_empty() && jobs.iter().all(has_nothing_to_do);
    all.then(|| format!("{count} volumes already hold Tidemark's content and were kept"))
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
