//! What findings say: the facts that rules establish, and the words for them, family by family. Nothing else in Tidemark
//! puts a finding into words, and nothing reads these words back.

use crate::Finding;
use phrase::{Alike, Phrase, merged};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

pub mod conduct;
pub mod drivers;
pub mod endpoints;
pub mod evaluation;
pub mod failures;
pub mod generator;
pub mod limits;
pub mod losses;
pub mod outage;
pub mod phrase;
pub mod proof;
pub mod repeats;
pub mod samples;
pub mod stalls;
pub mod standing;
pub mod steadiness;
pub mod tables;

/// Stages of a finding about many that are quoted.
const QUOTED_MOST: usize = 5;

/// What a list names one by one, at most.
const LISTED_MOST: usize = 3;

/// Facts that a rule establishes, and the words for them.
pub trait Facts {
    /// The short stable name of what was found.
    fn rule(&self) -> &'static str;
    /// One plain sentence without a full stop.
    fn title(&self) -> Phrase;
    /// What it means and what to do about it, in whole sentences; may be empty.
    fn detail(&self) -> String;
    /// Numbers with their units, and the arithmetic.
    fn evidence(&self) -> Vec<String>;
    /// Whether they are of a check that makes numbers evidence, and that passed.
    fn proves(&self) -> bool {
        false
    }
    /// Which one they are about of several that are alike, such as databases: what many show is one finding.
    fn instance(&self) -> Option<&str> {
        None
    }
}

/// Facts of any type, for engines: what is found by their own rules.
trait EngineFacts: Facts + fmt::Debug + Send + Sync {
    /// The facts as data.
    fn data(&self) -> serde_json::Value;
}

impl<T: Facts + Serialize + fmt::Debug + Send + Sync> EngineFacts for T {
    fn data(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Facts of one engine's evidence.
#[derive(Clone, Debug)]
pub struct OfEngine(Arc<dyn EngineFacts>);

impl PartialEq for OfEngine {
    fn eq(&self, other: &Self) -> bool {
        self.rule() == other.rule() && self.0.data() == other.0.data()
    }
}

impl Serialize for OfEngine {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.data().serialize(serializer)
    }
}

impl Facts for OfEngine {
    fn rule(&self) -> &'static str {
        self.0.rule()
    }

    fn title(&self) -> Phrase {
        self.0.title()
    }

    fn detail(&self) -> String {
        self.0.detail()
    }

    fn evidence(&self) -> Vec<String> {
        self.0.evidence()
    }

    fn proves(&self) -> bool {
        self.0.proves()
    }

    fn instance(&self) -> Option<&str> {
        self.0.instance()
    }
}

/// The families of facts.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident($facts:path),)*) => {
        /// What was found: facts, family by family.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum What {
            $($(#[$doc])* $family($facts),)*
        }

        $(impl From<$facts> for What {
            fn from(facts: $facts) -> Self {
                What::$family(facts)
            }
        })*

        impl What {
            fn facts(&self) -> &dyn Facts {
                match self {
                    $(What::$family(facts) => facts,)*
                }
            }
        }
    };
}

families! {
    /// How the run went.
    Conduct(conduct::Conduct),
    /// Whether drivers put the load on together.
    Drivers(drivers::Drivers),
    /// Whether a target's endpoints served alike.
    Endpoints(endpoints::Endpoints),
    /// What an engine's own rules found.
    Engine(OfEngine),
    /// An evaluation as a whole.
    Evaluation(evaluation::OfEvaluation),
    /// What failed.
    Failures(failures::Failures),
    /// The load generator.
    Generator(generator::Generator),
    /// What limited a stage.
    Limit(standing::Limited),
    /// What the loss of pods and nodes came to.
    Losses(losses::Losses),
    /// Times without success.
    Outage(outage::Outage),
    /// What the devices saw.
    Proof(proof::Proof),
    /// Repeats and engines.
    Repeats(repeats::Repeats),
    /// Samples and verification.
    Samples(samples::Samples),
    /// Response times that are not the storage's.
    Stalls(stalls::Stalls),
    /// Steadiness.
    Steadiness(steadiness::Steadiness),
    /// Tables and queries.
    Tables(tables::Tables),
}

impl What {
    /// What an engine's own rules found.
    pub fn of_engine(facts: impl Facts + Serialize + fmt::Debug + Send + Sync + 'static) -> Self {
        What::Engine(OfEngine(Arc::new(facts)))
    }

    /// Which one it is about of several that are alike; `None` where there is only one.
    pub(crate) fn instance(&self) -> Option<&str> {
        self.facts().instance()
    }

    /// Whether it says how much of an open loop's rate was sent in time.
    pub fn is_offered_rate(&self) -> bool {
        matches!(self, What::Generator(generator::Generator::OfferedRate { .. }))
    }

    /// Whether it says how well the load generator itself did, apart from an open loop's rate, which the storage may have
    /// missed.
    pub(crate) fn is_of_generator(&self) -> bool {
        use generator::Generator::{Reserve, SendLag, Slow};
        matches!(self, What::Generator(SendLag { .. } | Reserve { .. } | Slow { .. }))
    }

    /// Whether it says that the load generator had too little processor time, or nearly so.
    pub(crate) fn is_of_little_reserve(&self) -> bool {
        use generator::{Generator, Reserve};
        matches!(self, What::Generator(Generator::Reserve { reserve, .. }) if *reserve != Reserve::Enough)
    }

    /// Whether it is a check that makes numbers evidence when it passes: of what the devices saw, of content, of a steady
    /// state, of a second engine.
    pub fn is_evidence(&self) -> bool {
        self.facts().proves()
    }

    pub(crate) fn title(&self) -> Phrase {
        self.facts().title()
    }
}

/// The same of one stage among many, or of one instance, such as a database.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occurrence {
    /// Where.
    pub place: String,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// The same found in several runs of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InRuns {
    /// Arm and load, where the finding does not say it otherwise.
    pub of: Option<(String, String)>,
    /// What was found in each of them.
    pub each: Vec<What>,
    /// In how many runs.
    pub found: usize,
    /// Of how many.
    pub runs: usize,
    /// At which levels.
    pub levels: Vec<String>,
}

impl InRuns {
    /// The same in some runs: findings that differ in their quantities only.
    pub(crate) fn new(findings: &[&Finding], found: usize, runs: usize) -> Self {
        let each = findings.iter().flat_map(|finding| finding.whats().cloned()).collect();
        Self { of: None, each, found, runs, levels: Vec::new() }
    }

    /// Where, what was found, and in how many runs where there are several.
    fn title(&self) -> String {
        match &self.of {
            Some((arm, load)) => format!("{arm}, {load}: {}", self.found()),
            None => self.found(),
        }
    }

    /// The same with the levels.
    fn sentence(&self) -> String {
        match (&self.of, self.levels.as_slice()) {
            (Some((arm, load)), [_, ..]) => {
                format!("{arm}, {load} at {}: {}", some_of(&self.levels), self.found())
            }
            _ => self.title(),
        }
    }

    fn found(&self) -> String {
        let title = merged(&self.each.iter().map(What::title).collect::<Vec<_>>());
        match self.runs {
            0 | 1 => title,
            runs => format!("{title} (in {} of {runs} runs)", self.found),
        }
    }
}

impl Finding {
    /// The short stable name of what was found, e.g. `outage`.
    pub fn rule(&self) -> &'static str {
        self.what.facts().rule()
    }

    /// One plain sentence without a full stop.
    pub fn title(&self) -> String {
        match &self.in_runs {
            Some(in_runs) => in_runs.title(),
            None => merged(&self.whats().map(What::title).collect::<Vec<_>>()),
        }
    }

    /// Where it was found and what, without a full stop.
    pub fn sentence(&self) -> String {
        match &self.in_runs {
            Some(in_runs) => in_runs.sentence(),
            None => format!("{}: {}", self.place(), self.title()),
        }
    }

    /// What it means and what to do about it, in whole sentences; may be empty.
    pub fn detail(&self) -> String {
        self.what.facts().detail()
    }

    /// Numbers with their units, and the arithmetic.
    pub fn evidence(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(first) = self.each.first() {
            lines.push(match self.stages.is_empty() {
                false => format!("stages: {}", self.stages.join(", ")),
                true => {
                    let places: Vec<&str> = self.each.iter().map(|one| one.place.as_str()).collect();
                    format!("instances: {}", places.join("; "))
                }
            });
            if self.each.iter().any(|other| other.what.title() != first.what.title()) {
                let quoted = self.each.iter().take(QUOTED_MOST);
                lines.extend(quoted.map(|one| format!("{}: {}", one.place, merged(&[one.what.title()]))));
                let more = self.each.len().saturating_sub(QUOTED_MOST);
                lines.extend((more > 0).then(|| format!("and {more} more")));
            }
        }
        let own = self.what.facts().evidence();
        // An instance's own lines may begin with its name.
        if let Some(first) =
            self.each.first().filter(|first| own.first().is_some_and(|own| *own != first.place))
        {
            lines.push(format!("example: {}", first.place));
        }
        lines.extend(own);
        let levels = self.in_runs.iter().filter(|in_runs| !in_runs.levels.is_empty());
        lines.extend(levels.map(|in_runs| format!("seen at: {}", in_runs.levels.join("; "))));
        lines
    }

    /// What was found, everywhere that it is about.
    pub(crate) fn whats(&self) -> impl Iterator<Item = &What> {
        let one = self.each.is_empty().then_some(&self.what);
        one.into_iter().chain(self.each.iter().map(|one| &one.what))
    }

    /// What it shares with findings that differ in their quantities only.
    pub(crate) fn alike(&self) -> Alike {
        Alike::of(self)
    }
}

/// `a, b, c and 2 more`.
pub(crate) fn some_of(all: &[String]) -> String {
    let shown = all.iter().take(LISTED_MOST).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(LISTED_MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
