//! The list of rules. To add one, write a small function beside its kin and name it here.

use crate::context::{WorkContext, stage_label};
use crate::fold::fold;
use crate::{Finding, Judgement, Severity, Validity};
use proof::Evidence;
use tidemark_measure::record::Run;

mod bottleneck;
mod commits;
mod conduct;
mod cycles;
mod database;
mod drivers;
mod endpoints;
mod failures;
mod generator;
mod losses;
mod outage;
mod proof;
mod repeats;
mod samples;
mod stalls;
mod steadiness;
mod tables;
#[cfg(test)]
pub(crate) mod testing;
mod usage;

pub use failures::success_percent;
pub(crate) use outage::longest_usual_ns;
pub use proof::claimed;
pub use samples::samples_needed;

/// Rules about a run as a whole.
const RUN_RULES: &[fn(&Run, &mut Findings)] =
    &[conduct::states, drivers::lost, losses::losses, repeats::repeats, repeats::cross_check];

/// Rules about one stage that was started and that has a proof.
const STAGE_RULES: &[fn(&Evidence<'_>, &mut Findings)] = &[
    proof::reads,
    proof::writes,
    proof::trims,
    proof::drivers,
    proof::osds,
    proof::foreign,
    proof::merged,
    proof::unchecked,
    proof::buffered,
    database::durability,
    database::reads,
    database::checkpoints,
    database::commits,
    database::plans,
    database::replicas,
    database::ledger,
    database::aborts,
    database::checks,
];

/// Rules about one work that was started.
const WORK_RULES: &[fn(&WorkContext<'_>, &mut Findings)] = &[
    failures::nothing_measured,
    failures::could_not_work,
    failures::failures,
    failures::wrong_data,
    failures::own,
    failures::throttled,
    failures::retries,
    endpoints::unequal,
    outage::outage,
    outage::operation_outage,
    outage::stuck,
    outage::late_tail,
    conduct::given_up,
    generator::offered_rate,
    generator::send_lag,
    generator::busy,
    generator::littles_law,
    drivers::skew,
    drivers::slow,
    conduct::unequal_workers,
    conduct::idle_workers,
    conduct::short_window,
    conduct::simulated,
    stalls::standstill,
    stalls::delayed_acknowledgement,
    steadiness::steadiness,
    steadiness::settling,
    proof::sync_after_load,
    samples::percentiles,
    samples::verified,
    commits::history,
    commits::took,
];

/// Rules about one work that makes tables, queries them or puts them through cycles: files and queries differ from each other by orders of magnitude, so that no time is usual, and
/// what runs them is as busy as it can be.
const RULES_ON_TABLES: &[fn(&WorkContext<'_>, &mut Findings)] = &[
    failures::nothing_measured,
    failures::could_not_work,
    failures::failures,
    failures::wrong_data,
    failures::own,
    failures::throttled,
    failures::retries,
    endpoints::unequal,
    conduct::given_up,
    generator::littles_law,
    tables::rows,
    tables::making,
    tables::answers,
    tables::memory,
    tables::own_cost,
    commits::history,
    commits::took,
    cycles::answers,
    cycles::aged,
];

/// What the rules have found so far.
#[derive(Default)]
pub(crate) struct Findings {
    found: Vec<Finding>,
}

impl Findings {
    /// Says something.
    pub(crate) fn say(&mut self, finding: Finding) {
        self.found.push(finding);
    }

    /// Says something that, in a work that measures, means that the run's numbers are not what they seem.
    pub(crate) fn invalidate(&mut self, context: &WorkContext<'_>, finding: Finding) {
        self.say(finding.invalidating(context.measures()));
    }

    /// Takes back the small print of what was said since there were `before` findings: nobody reads the numbers of
    /// works that prepare or clean up for it.
    fn without_small_print(&mut self, before: usize) {
        let mut index = 0..;
        self.found.retain(|finding| {
            index.next().is_some_and(|index| index < before) || finding.severity >= Severity::Warning
        });
    }
}

/// Judges a run by every rule.
pub(crate) fn apply(run: &Run) -> Judgement {
    let mut out = Findings::default();
    RUN_RULES.iter().for_each(|rule| rule(run, &mut out));
    for evidence in Evidence::all(run) {
        let before = out.found.len();
        STAGE_RULES.iter().for_each(|rule| rule(&evidence, &mut out));
        if !evidence.measures {
            out.without_small_print(before);
        }
    }
    for context in WorkContext::all(run) {
        let before = out.found.len();
        let on_tables = context.tables().is_some() || context.cycles().is_some();
        let rules = if on_tables { RULES_ON_TABLES } else { WORK_RULES };
        rules.iter().for_each(|rule| rule(&context, &mut out));
        if !context.measures() {
            out.without_small_print(before);
        }
    }
    bottleneck::limits(run, &mut out);
    losses::unwatched(run, &mut out);
    let of_sweeps = run.stages.iter().filter(|stage| stage.cell.is_some()).map(stage_label).collect();
    let mut findings = fold(out.found, &of_sweeps);
    let validity = Validity::of(findings.iter().filter(|finding| finding.invalidates).cloned().collect());
    // Stable: what is equally grave stays in the order of stages, works and rules.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Judgement { validity, findings }
}
