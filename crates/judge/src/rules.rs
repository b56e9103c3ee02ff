//! The list of rules. To add one, write a small function beside its kin and name it here.

use crate::scene::Scene;
use crate::{Finding, Judgement, Severity, Validity};
use tidemark_measure::record::Run;

mod conduct;
mod failures;
mod generator;
mod outage;
mod samples;
mod stalls;
mod steadiness;
#[cfg(test)]
pub(crate) mod testing;

pub use failures::success_percent;
pub use samples::samples_needed;

/// Rules about a run as a whole.
const RUN_RULES: &[fn(&Run, &mut Findings)] = &[conduct::states];

/// Rules about one work that was started.
const WORK_RULES: &[fn(&Scene<'_>, &mut Findings)] = &[
    failures::nothing_measured,
    failures::could_not_work,
    failures::failures,
    failures::wrong_data,
    failures::throttled,
    failures::retries,
    outage::outage,
    outage::operation_outage,
    outage::stuck,
    outage::late_tail,
    conduct::given_up,
    generator::offered_rate,
    generator::send_lag,
    generator::busy,
    generator::littles_law,
    conduct::unequal_workers,
    conduct::idle_workers,
    conduct::short_window,
    stalls::delayed_acknowledgement,
    steadiness::steadiness,
    samples::percentiles,
    samples::verified,
];

/// What the rules have said so far.
#[derive(Default)]
pub(crate) struct Findings {
    said: Vec<Finding>,
    reasons: Vec<String>,
}

impl Findings {
    /// Says something.
    pub(crate) fn say(&mut self, finding: Finding) {
        self.said.push(finding);
    }

    /// Says something that, in a work that measures, means that the run's numbers are not what they seem.
    pub(crate) fn invalidate(&mut self, scene: &Scene<'_>, finding: Finding) {
        if scene.measures() {
            self.reasons.push(finding.sentence());
        }
        self.say(finding);
    }
}

/// Judges a run by every rule.
pub(crate) fn apply(run: &Run) -> Judgement {
    let mut out = Findings::default();
    RUN_RULES.iter().for_each(|rule| rule(run, &mut out));
    for scene in Scene::all(run) {
        let before = out.said.len();
        WORK_RULES.iter().for_each(|rule| rule(&scene, &mut out));
        if !scene.measures() {
            // Nobody reads the numbers of works that prepare or clean up for small print.
            let small_print =
                |index: usize, finding: &Finding| index >= before && finding.severity < Severity::Warning;
            let mut index = 0..;
            out.said.retain(|finding| !index.next().is_some_and(|index| small_print(index, finding)));
        }
    }
    // Stable: what is equally grave stays in the order of stages, works and rules.
    out.said.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let validity = if out.reasons.is_empty() { Validity::Valid } else { Validity::Invalid(out.reasons) };
    Judgement { validity, findings: out.said }
}
