//! What the loss of pods and nodes came to.

use super::Facts;
use super::phrase::{Phrase, duration, phrase};
use crate::losses::{Loss, Service};
use serde::Serialize;
use tidemark_measure::record::{Happened, Happening, Part, Unwatched};
use tidemark_measure::units;

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Losses {
    Loss(Loss),
    Unwatched { unwatched: Vec<Unwatched> },
}

impl Facts for Losses {
    fn rule(&self) -> &'static str {
        match self {
            Losses::Loss(_) => "loss",
            Losses::Unwatched { .. } => "unwatched",
        }
    }

    fn title(&self) -> Phrase {
        let loss = match self {
            Losses::Loss(loss) => loss,
            Losses::Unwatched { .. } => return phrase!["what became of pods and nodes is not fully known"],
        };
        let what = headline(loss.first());
        match (loss.service.without_ns(), loss.took_ns()) {
            (Some((least, _)), _) => phrase![what, "; without service for ", duration(least)],
            (None, Some(took)) => phrase![what, "; back after ", duration(took)],
            (None, None) => phrase![what],
        }
    }

    fn detail(&self) -> String {
        let loss = match self {
            Losses::Loss(loss) => loss,
            Losses::Unwatched { unwatched } if unwatched.iter().any(|one| !one.rule.is_empty()) => {
                return "A pod or node that was lost may be why operations failed or stopped, and a report shows the phases of that if the \
                    account that starts the run may watch them. The rules below are enough for it."
                    .into();
            }
            Losses::Unwatched { .. } => {
                return "What happened meanwhile is missing, or told too late.".into();
            }
        };
        match (loss.service, loss.first().part) {
            (Service::Gone { .. }, _) => {
                "The phases show where the time went: until Kubernetes noticed, until there was a replacement, until it was ready, \
                 and until the load had a success again."
            }
            (Service::Kept { .. }, Part::Node) => {
                "What runs on a node that is not ready goes on if only its kubelet is silent."
            }
            _ => "",
        }
        .into()
    }

    fn evidence(&self) -> Vec<String> {
        let loss = match self {
            Losses::Loss(loss) => loss,
            Losses::Unwatched { unwatched } => return unwatched.iter().map(missing).collect(),
        };
        let from = loss.first().at_ns;
        let phases = loss.phases.iter().map(|one| {
            let after = match one.at_ns - from {
                0 => format!("at {}", units::duration_ns(one.at_ns)),
                after => format!("+{}", units::duration_ns(after)),
            };
            format!("{after}: {}", happened(one))
        });
        phases.chain([service(loss.service)]).collect()
    }
}

/// What could not be watched and why, and the rule that permits it.
fn missing(one: &Unwatched) -> String {
    match one.rule.as_str() {
        "" => format!("{}: {}", one.what, one.why),
        rule => format!("{}; what permits it: {rule}", one.why),
    }
}

/// What is lost and how, for a title.
pub fn headline(loss: &Happening) -> String {
    let how = match loss.what {
        Happened::PodDeleted => "was deleted",
        Happened::PodEvicted => "was evicted",
        Happened::OutOfMemory => "ran out of memory",
        Happened::ContainerEnded => "ended",
        Happened::NodeNotReady => "was not ready",
        _ => "was lost",
    };
    format!("{} {how}", loss.object)
}

/// What happened, in words: `pod bench/db-0: container started (db)`.
pub fn happened(one: &Happening) -> String {
    let what = one.what.words();
    match one.detail.as_str() {
        "" => format!("{}: {what}", one.object),
        detail => format!("{}: {what} ({})", one.object, detail.trim_end_matches('.')),
    }
}

/// What the load saw, in words.
pub fn service(service: Service) -> String {
    let at = units::duration_ns;
    match service {
        Service::Unmeasured => "nothing was measured at that time".into(),
        Service::Sparse => "the load has so few successes that times without one are usual".into(),
        Service::Kept { least, usual, longest_ns } => {
            let longest =
                longest_ns.map(|longest| format!("; the longest time without one was {}", at(longest)));
            format!(
                "every second had a success: {} in the worst, {} in the median{}",
                units::count(least),
                units::count(usual),
                longest.unwrap_or_default()
            )
        }
        Service::Gone { exact_ns: Some((from, to)), .. } => format!(
            "last success at {}, first one again at {}: {} without service",
            at(from),
            at(to),
            at(to - from)
        ),
        Service::Gone { last_ns, first_ns: Some(first), .. } => format!(
            "last success before {}, first one again after {}: {} without service, and at most 2 s more, for seconds are whole",
            at(last_ns),
            at(first),
            at(first - last_ns)
        ),
        Service::Gone { last_ns, first_ns: None, end_ns, .. } => format!(
            "last success before {}, and none again until the end of the load at {}: {} without service",
            at(last_ns),
            at(end_ns),
            at(end_ns.saturating_sub(last_ns))
        ),
    }
}
