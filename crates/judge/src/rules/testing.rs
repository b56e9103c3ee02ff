//! What the rules' tests share.

use crate::{Finding, Judgement, judge};
use tidemark_measure::record::Run;
pub(crate) use tidemark_testing::runs::{
    MS, fail, healthy, healthy_open, member_run, said_run, sweep_run, work,
};

/// What a rule says of a run, if anything.
pub(crate) fn said(run: &Run, rule: &str) -> Option<Finding> {
    judge(run).findings.into_iter().find(|finding| finding.rule() == rule)
}

/// The reasons for which a run is invalid.
pub(crate) fn reasons(judgement: &Judgement) -> Vec<String> {
    judgement.validity.sentences()
}

/// Whether a run is invalid because of this rule; for anything, if it is empty.
pub(crate) fn invalid_for(run: &Run, rule: &str) -> bool {
    let judgement = judge(run);
    judgement
        .findings
        .iter()
        .any(|finding| finding.invalidates && (rule.is_empty() || finding.rule() == rule))
}

/// Whether a run is invalid because of something that is told with these words.
pub(crate) fn invalid_with(run: &Run, text: &str) -> bool {
    reasons(&judge(run)).iter().any(|reason| reason.contains(text))
}
