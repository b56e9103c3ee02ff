//! A load of the native engine as fio does it.

use super::{Action, IoEngine, Job, Place};
use tidemark_plan::engine::Counterpart;
use tidemark_plan::plan::Work;

/// The same load by fio.
pub(crate) fn counterpart(work: &Work) -> Counterpart {
    let Some(job) = work.job.get::<Job>() else { return Counterpart::None };
    match refusal(job) {
        Some(why) => Counterpart::Refused(why.into()),
        None if job.io_engine != IoEngine::Native => Counterpart::None,
        None => {
            let mut work = work.clone();
            if let Some(job) = work.job.get_mut::<Job>() {
                job.io_engine = IoEngine::Fio;
            }
            Counterpart::Same {
                engines: [IoEngine::Native, IoEngine::Fio].map(IoEngine::name),
                work: Box::new(work),
            }
        }
    }
}

/// Why the two engines cannot do the same.
fn refusal(job: &Job) -> Option<&'static str> {
    let any = |of: fn(&Place) -> bool| job.volumes.iter().any(|volume| of(&volume.place));
    match () {
        () if any(|place| matches!(place, Place::Rbd(_))) => Some(
            "is on RBD images, which only fio reaches, so there is no native engine to compare it with; use `kind: file` or \
             `kind: device`.",
        ),
        () if job.io_engine != IoEngine::Native => None,
        () if job.content.verify => Some(
            "verifies what it reads, which fio cannot do with Tidemark's content; remove `verify` for the cross-check.",
        ),
        () if any(|place| matches!(place, Place::File(_))) && job.actions.contains(&Action::Trim) => Some(
            "trims files, which fio does on devices only; use `kind: device` or another pattern for the cross-check.",
        ),
        () => None,
    }
}

#[cfg(test)]
mod tests;
