//! The list of rules. To add one, write a small function beside its kin and name it here.

use crate::context::{StageContext, WorkContext, stage_label};
use crate::evidence;
use crate::evidence::Opened;
use crate::fold::fold;
use crate::{Finding, Judgement, Severity, Validity};
use tidemark_measure::record::{Proof, Run, Stage, State, Work};

mod bottleneck;
mod conduct;
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
const STAGE_RULES: &[fn(&StageContext<'_>, &mut Findings)] = &[
    proof::reads,
    proof::writes,
    proof::trims,
    proof::drivers,
    proof::osds,
    proof::foreign,
    proof::merged,
    proof::unchecked,
    proof::buffered,
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
];

/// Rules about one work whose operations are [uneven](evidence::Nature::uneven).
const RULES_ON_UNEVEN: &[fn(&WorkContext<'_>, &mut Findings)] = &[
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
];

/// What the rules have found so far.
#[derive(Default)]
pub struct Findings {
    found: Vec<Finding>,
}

impl Findings {
    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        self.found.push(finding);
    }

    /// Adds a finding that, in a work that measures, means that the run's numbers are not what they seem.
    pub fn invalidate(&mut self, context: &WorkContext<'_>, finding: Finding) {
        self.add(finding.invalidating(context.measures()));
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
    let mut of_works = Vec::new();
    for stage in run.stages.iter().filter(|stage| stage.state != State::Waiting) {
        let opened =
            stage.proof.as_ref().map(|proof| of_stage(run, stage, proof, &mut out)).unwrap_or_default();
        of_works.push((stage, opened));
    }
    for (stage, opened) in &of_works {
        stage.works.iter().for_each(|work| of_work(run, stage, work, opened, &mut out));
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

/// Judges a stage with a proof; gives the evidence of its engines.
fn of_stage(run: &Run, stage: &Stage, proof: &Proof, out: &mut Findings) -> Vec<Box<dyn Opened>> {
    let (opened, unread) = evidence::open(proof);
    let context = StageContext::new(run, stage, proof, &opened);
    let before = out.found.len();
    STAGE_RULES.iter().for_each(|rule| rule(&context, out));
    opened.iter().for_each(|data| data.judge_stage(&context, out));
    if !context.measures {
        out.without_small_print(before);
    }
    proof::unread(&context, unread, out);
    opened
}

/// Judges a work that was started.
fn of_work(run: &Run, stage: &Stage, work: &Work, opened: &[Box<dyn Opened>], out: &mut Findings) {
    let nature = evidence::nature(opened, &work.name);
    let context = WorkContext { nature, ..WorkContext::new(run, stage, work) };
    let before = out.found.len();
    let uneven = context.nature.uneven || context.tables().is_some();
    let rules = if uneven { RULES_ON_UNEVEN } else { WORK_RULES };
    rules.iter().for_each(|rule| rule(&context, out));
    opened.iter().for_each(|data| data.judge_work(&context, out));
    if !context.measures() {
        out.without_small_print(before);
    }
}
