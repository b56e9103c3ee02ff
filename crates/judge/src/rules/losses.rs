//! What the loss of pods and nodes came to.

use super::Findings;
use crate::words::drivers::Drivers;
use crate::words::failures::Failures;
use crate::words::losses::Losses as Found;
use crate::{Finding, Service, Severity, What};
use tidemark_measure::record::Run;

/// Each loss with its phases. That a driver was lost is judged elsewhere: this only says how.
pub(super) fn losses(run: &Run, out: &mut Findings) {
    for loss in crate::losses(run) {
        let severity = match loss.service {
            Service::Gone { .. } => Severity::Warning,
            _ => Severity::Note,
        };
        out.add(Finding::about_run(severity, Found::Loss(loss)));
    }
}

/// What could not be watched, where a timeline lacks it: of a loss, or of what went wrong and has none. Said after all other rules.
pub(super) fn unwatched(run: &Run, out: &mut Findings) {
    let has_timeline = out.found.iter().any(|finding| matches!(finding.what, What::Losses(_)));
    let went_wrong = out.found.iter().any(|finding| {
        matches!(
            finding.what,
            What::Failures(Failures::Failed { .. } | Failures::NothingSucceeded { .. })
                | What::Outage(_)
                | What::Drivers(Drivers::Lost { .. })
        )
    });
    let mut unwatched = run.unwatched.clone();
    // Who has a timeline without a right does not need it; a watch that was interrupted has made it incomplete.
    unwatched.retain(|one| !has_timeline || one.rule.is_empty());
    if (has_timeline || went_wrong) && !unwatched.is_empty() {
        out.add(Finding::about_run(Severity::Note, Found::Unwatched { unwatched }));
    }
}
