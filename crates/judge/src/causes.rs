//! Findings that have one cause, together: a target that does not answer is one problem, however many rules see it.

use crate::words::conduct::Conduct;
use crate::words::drivers::Drivers;
use crate::words::failures::Failures;
use crate::words::losses::Losses;
use crate::{Finding, Severity, What};
use serde::Serialize;
use tidemark_measure::record::Part;
use utoipa::ToSchema;

/// What several findings come from, or are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Operations failed or the storage did not answer.
    Failures,
    /// A driver was lost, or drivers did not work together.
    Drivers,
    /// The run was stopped, or is not over.
    Conduct,
    /// The load generator.
    Generator,
    /// What limited the load.
    Limits,
    /// Whether the devices did what the load claims.
    Proof,
    /// Whether the numbers are steady and enough.
    Certainty,
}

/// Findings with one cause.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Group {
    /// What they come from.
    cause: Cause,
    /// How grave the gravest is.
    severity: Severity,
    /// The finding that says it best, by its place in the list of findings.
    first: usize,
    /// All others, in their order.
    others: Vec<usize>,
}

/// Groups everything that did not turn out well, the gravest group first; checks that passed are in no group.
pub fn groups(findings: &[Finding]) -> Vec<Group> {
    let bad = || findings.iter().enumerate().filter(|(_, finding)| finding.severity != Severity::Good);
    let grave = |wanted: fn(&What) -> bool| {
        bad().any(|(_, finding)| finding.severity >= Severity::Warning && wanted(&finding.what))
    };
    let failed = grave(|what| own_cause(what) == Cause::Failures);
    let lost = grave(|what| matches!(what, What::Drivers(Drivers::Lost { .. })));
    let mut groups: Vec<Group> = Vec::new();
    for (place, finding) in bad() {
        let cause = match own_cause(&finding.what) {
            // What was left undone is what the loss or the failures have left.
            Cause::Conduct if is_consequence(&finding.what) && lost => Cause::Drivers,
            Cause::Conduct if is_consequence(&finding.what) && failed => Cause::Failures,
            cause => cause,
        };
        match groups.iter_mut().find(|group| group.cause == cause) {
            Some(group) => {
                group.severity = group.severity.max(finding.severity);
                let better = explains(&finding.what) > explains(&findings[group.first].what);
                let other = if better { std::mem::replace(&mut group.first, place) } else { place };
                group.others.push(other);
                group.others.sort_unstable();
            }
            None => {
                groups.push(Group { cause, severity: finding.severity, first: place, others: Vec::new() });
            }
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.severity));
    groups
}

fn own_cause(what: &What) -> Cause {
    match what {
        What::Failures(_) | What::Outage(_) | What::Endpoints(_) => Cause::Failures,
        What::Losses(Losses::Loss(loss)) if loss.first().part != Part::Driver => Cause::Failures,
        What::Drivers(_) | What::Losses(Losses::Loss(_)) => Cause::Drivers,
        What::Losses(Losses::Unwatched { .. }) | What::Conduct(_) | What::Evaluation(_) => Cause::Conduct,
        What::Generator(_) | What::Stalls(_) => Cause::Generator,
        What::Limit(_) => Cause::Limits,
        What::Proof(_) | What::Tables(_) | What::Engine(_) => Cause::Proof,
        What::Repeats(_) | What::Samples(_) | What::Steadiness(_) => Cause::Certainty,
    }
}

/// Whether it may follow from something else that was found.
fn is_consequence(what: &What) -> bool {
    !matches!(what, What::Conduct(Conduct::Running {} | Conduct::Interrupted {} | Conduct::Simulated {}))
}

/// How much a finding says about the cause of others: what failed and how says more than what was not done for it.
fn explains(what: &What) -> u8 {
    match what {
        What::Drivers(Drivers::Lost { .. }) => 4,
        What::Failures(Failures::NothingSucceeded { .. }) | What::Losses(Losses::Loss(_)) => 3,
        What::Failures(Failures::WrongData { .. } | Failures::Failed { .. }) => 2,
        What::Failures(_) | What::Outage(_) | What::Endpoints(_) => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge;
    use crate::rules::testing::{fail, healthy, work};
    use tidemark_measure::fault::Fault;
    use tidemark_measure::record::State;

    /// As a run is whose target never answered: the load was given up, the stage failed.
    #[test]
    fn a_dead_target_is_one_problem() {
        let mut run = healthy();
        let all = work(&mut run).operations[0].tally.ok;
        fail(&mut run, Fault::Refused, all);
        work(&mut run).given_up = "more failures than allowed".into();
        run.state = State::Failed;
        let stage = run.stages.last_mut().unwrap();
        (stage.state, stage.reason) = (State::Failed, "more failures than allowed".into());
        let judgement = judge(&run);
        let bad: Vec<_> =
            judgement.findings.iter().filter(|finding| finding.severity == Severity::Critical).collect();
        assert!(bad.len() > 1, "there is something to put together: {bad:?}");
        let groups = groups(&judgement.findings);
        let critical: Vec<_> = groups.iter().filter(|group| group.severity == Severity::Critical).collect();
        assert_eq!(critical.len(), 1, "{groups:?}");
        assert_eq!(critical[0].cause, Cause::Failures);
        assert!(matches!(judgement.findings[critical[0].first].what, What::Failures(_)), "{groups:?}");
        let told: usize = groups.iter().map(|group| 1 + group.others.len()).sum();
        let there = judgement.findings.iter().filter(|finding| finding.severity != Severity::Good).count();
        assert_eq!(told, there, "each finding is in one group");
    }

    #[test]
    fn nothing_wrong_is_no_group() {
        let findings = judge(&healthy()).findings;
        assert!(groups(&findings).iter().all(|group| group.severity < Severity::Warning));
    }
}
