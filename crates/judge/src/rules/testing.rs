//! What the rules' tests share.

use crate::evidence::{Evidence, Setting, install, write};
use crate::words::phrase::{Phrase, count, phrase};
use crate::{Facts, Finding, Judgement, judge};
use serde::{Deserialize, Serialize};
use tidemark_measure::record::{Proof, Run};
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

/// Evidence of an engine that lives in tests only: what a system counted, and how it was set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct System {
    pub(crate) counted: Option<u64>,
    pub(crate) settings: Vec<(String, String, Option<bool>)>,
}

/// The kind of that evidence.
struct OfSystem;

impl Evidence for OfSystem {
    type Data = System;

    const KEY: &'static str = "system";

    fn join(_data: &mut System, _other: System) {}

    fn counted(data: &System) -> Option<u64> {
        data.counted
    }

    fn settings(data: &System) -> Vec<Setting> {
        let setting = |(name, value, durable): (String, String, _)| Setting { name, value, durable };
        data.settings.iter().cloned().map(setting).collect()
    }
}

/// A proof with such evidence.
pub(crate) fn proof_of(system: &System) -> Proof {
    install(&[&OfSystem]);
    let mut proof = Proof { direct: true, ..Proof::default() };
    write::<OfSystem>(&mut proof, system);
    proof
}

/// What was found of one of several alike systems.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OfInstance {
    pub(crate) name: String,
    pub(crate) commits: u64,
}

impl Facts for OfInstance {
    fn rule(&self) -> &'static str {
        "counted"
    }

    fn title(&self) -> Phrase {
        phrase!["counted ", count(self.commits)]
    }

    fn detail(&self) -> String {
        String::new()
    }

    fn evidence(&self) -> Vec<String> {
        Vec::new()
    }

    fn instance(&self) -> Option<&str> {
        Some(&self.name)
    }
}
