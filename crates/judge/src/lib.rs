//! Pure judgement: a run's record in, findings out. No I/O, no clock.
//!
//! [`judge`] asks every rule of `rules` about a run. A rule is one small function that establishes facts, a
//! [`Finding`]; [`words`] tells them. Some rules also show that the numbers do not mean what they
//! seem to, and make the run [`Validity::Invalid`]. [`verdict_sentences`] sums it all up in plain words.
//!
//! | module | what it holds |
//! |---|---|
//! | [`evidence`] | what engines know about their own evidence: their rules, words and sections |
//! | [`section`] | sections of a report as data |
//! | `rules` | the rules, their limits and the reasons for those; [`success_percent`], [`samples_needed`], [`claimed`] |
//! | [`sweep`] | the stages of a sweep put together by the points that they measured |
//! | [`evaluation`] | many runs of several arms: estimates, comparisons, knees, bottlenecks, the verdict |
//! | [`compare`] | two stored results as the arms of an evaluation |
//! | [`knee`] | where to look next for the highest load within a service level |
//! | [`statistics`] | estimates, ratios and tests for few repeats |
//! | [`words`] | what findings are about, family by family, and the words for it |
//! | [`fairness`](fairness()) | how evenly throughput is shared by endpoints or instances |
//! | `growth` | whether more load brought more |
//! | `fold` | what is said of many stages of a sweep, said once |
//! | [`ranking`] | queries ranked by the bytes that they read, and how far rankings agree |
//! | [`beneath`](beneath()) | what nodes did under each query |
//! | [`losses`](losses()) | what the loss of a pod or a node came to |
//! | [`listed`] | what lists show of a run |
//! | [`causes`] | findings that have one cause, together |
//! | `verdict` | the sentences at the top of reports and at the end of a run |

use serde::{Serialize, Serializer};
use tidemark_measure::record::{Run, Stage};
use utoipa::ToSchema;

mod beneath;
pub mod causes;
pub mod compare;
mod context;
pub mod evaluation;
pub mod evidence;
mod fairness;
mod figures;
mod fold;
mod growth;
pub mod knee;
pub mod listed;
mod losses;
pub mod ranking;
mod rules;
pub mod section;
pub mod statistics;
pub mod sweep;
mod verdict;
pub mod words;

pub use beneath::{Beneath, Gateways, UnderQuery, beneath};
pub use context::{StageContext, WorkContext, sum};
pub use fairness::{Fairness, fairness};
pub use figures::{Amount, Figure, figures};
pub use losses::{Loss, Service, losses};
pub use rules::{Findings, claimed, samples_needed, success_percent};
pub use verdict::{achievements, verdict_sentences};
pub use words::{Facts, InRuns, Occurrence, What};

/// What there is to say about a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Whether the run's numbers can be taken for what they seem to be.
    pub validity: Validity,
    /// What the rules found, the gravest first; in the order of stages, works and rules otherwise.
    pub findings: Vec<Finding>,
}

/// Whether numbers can be taken for what they seem to be: those of the storage under the load asked for.
///
/// Only works that measure something count: a `prepare` that the generator could not keep up with is no worse
/// for it. Failures alone do not make a run invalid, for they are counted; that nothing succeeded does.
#[derive(Clone, Debug, PartialEq)]
pub enum Validity {
    /// No rule objects.
    Valid,
    /// They cannot, because of these findings; never empty.
    Invalid(Vec<Finding>),
}

impl Validity {
    /// What these findings against the numbers come to.
    pub(crate) fn of(reasons: Vec<Finding>) -> Self {
        if reasons.is_empty() { Validity::Valid } else { Validity::Invalid(reasons) }
    }

    /// Whether no rule objects.
    pub fn is_valid(&self) -> bool {
        matches!(self, Validity::Valid)
    }

    /// The findings against the numbers; none if they are valid.
    pub fn reasons(&self) -> &[Finding] {
        match self {
            Validity::Valid => &[],
            Validity::Invalid(reasons) => reasons,
        }
    }

    /// The reasons as sentences without a full stop.
    pub fn sentences(&self) -> Vec<String> {
        self.reasons().iter().map(Finding::sentence).collect()
    }
}

/// In JSON: `"valid"`, or the reasons as sentences (`invalid`) and the names of what was found (`rules`), in the same order.
impl Serialize for Validity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Invalid {
            invalid: Vec<String>,
            rules: Vec<&'static str>,
        }
        match self {
            Validity::Valid => serializer.serialize_str("valid"),
            Validity::Invalid(reasons) => {
                let rules = reasons.iter().map(Finding::rule).collect();
                Invalid { invalid: self.sentences(), rules }.serialize(serializer)
            }
        }
    }
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A check that passed.
    Good,
    /// Worth knowing when reading the numbers.
    Note,
    /// Something that changes what the numbers mean, or would not be accepted in production.
    Warning,
    /// The storage or the run did not do its job.
    Critical,
}

impl Severity {
    /// The word for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Good => "good",
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

/// A statement about a run: facts, which [`words`] puts into words.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// How grave it is.
    pub severity: Severity,
    /// What was found; of several places, in the first of them.
    pub what: What,
    /// What was found in each place, where one finding speaks for several.
    pub each: Vec<Occurrence>,
    /// In which runs of an evaluation it was found, where it is about several.
    pub in_runs: Option<InRuns>,
    /// The stage it is about, as [`tidemark_measure::record::Stage::id`]; `None`: the whole run.
    pub stage: Option<String>,
    /// The work it is about, by its name; `None`: the whole stage.
    pub work: Option<String>,
    /// The stages it is about when there are several, by their ids; [`Finding::stage`] is `None` then.
    pub stages: Vec<String>,
    /// Whether it makes the run invalid: it is one of the reasons.
    pub invalidates: bool,
}

/// A finding in JSON: its words and its facts.
#[derive(Serialize, ToSchema)]
#[schema(as = Finding)]
pub struct FindingRecord<'a> {
    severity: Severity,
    /// The short stable name of what was found, e.g. `outage`.
    rule: &'static str,
    /// One plain sentence without a full stop.
    title: String,
    /// What it means and what to do about it; may be empty.
    detail: String,
    /// Numbers with their units, and the arithmetic.
    evidence: Vec<String>,
    /// The stage it is about; null: the whole run.
    stage: &'a Option<String>,
    /// The work it is about; null: the whole stage.
    work: &'a Option<String>,
    /// The stages it is about when there are several.
    stages: &'a [String],
    /// Whether it makes the run invalid.
    invalidates: bool,
    /// What was found, as data; one entry for each place.
    #[schema(value_type = Vec<Object>)]
    facts: Vec<&'a What>,
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = FindingRecord {
            severity: self.severity,
            rule: self.rule(),
            title: self.title(),
            detail: self.detail(),
            evidence: self.evidence(),
            stage: &self.stage,
            work: &self.work,
            stages: &self.stages,
            invalidates: self.invalidates,
            facts: self.whats().collect(),
        };
        record.serialize(serializer)
    }
}

impl Finding {
    /// Where it was found: `s3-main`, or `s3-main, work "w1"`, or `12 stages`, or `the run`.
    pub fn place(&self) -> String {
        match (&self.stage, &self.work, self.stages.len()) {
            (Some(stage), Some(work), _) => format!("{stage}, work \"{work}\""),
            (Some(stage), None, _) => stage.clone(),
            (None, _, 0) => "the run".into(),
            (None, _, 1) => self.stages[0].clone(),
            (None, _, count) => format!("{count} stages"),
        }
    }

    /// Whether it is about this stage, alone or among others.
    pub fn concerns(&self, stage: &Stage) -> bool {
        let label = context::stage_label(stage);
        self.stage.as_ref() == Some(&label) || self.stages.contains(&label)
    }
}

/// Judges a run by every rule.
pub fn judge(run: &Run) -> Judgement {
    rules::apply(run)
}

impl Judgement {
    /// Whether no rule objects to the run's numbers.
    pub fn is_valid(&self) -> bool {
        self.validity.is_valid()
    }
}

#[cfg(test)]
mod tests;
