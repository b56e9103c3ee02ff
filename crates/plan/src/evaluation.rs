//! Evaluation documents: arms x loads x levels x repeats.
//!
//! [`read`] checks all that can be known beforehand. What single cells do is known once their arm is set up, for its
//! addresses and keys may come from there: [`Evaluation::plan`] makes the plan of one cell in the arm's environment, and
//! [`Evaluation::sketch`] one with stand-ins for what is not known yet.

mod cells;
mod check;
mod fingerprint;
mod tuning;

pub use cells::CellPlace;

use crate::diagnostic::Diagnostic;
use crate::plan::{Observe, Plan};
use crate::provisioner::Request;
use crate::registry::Registry;
use crate::yaml::{Documents, Environment};
use std::path::Path;
use tidemark_measure::evaluation::{Level, REPEATS_LEAST, Search};
use tidemark_measure::record::Note;
use tidemark_measure::rng;
use tidemark_measure::service_level::ServiceLevel;
use tidemark_measure::tuning::Tuning;

/// A validated evaluation document.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Its name; not empty.
    pub name: String,
    /// Its description, or empty.
    pub description: String,
    /// Where random choices come from: all arms get the same in the same repeat.
    pub seed: u64,
    /// What is compared, at least one; the first is the baseline.
    pub arms: Vec<Arm>,
    /// The loads that run on each of them, at least one.
    pub loads: Vec<Load>,
    /// How often each cell is measured, at least once; with `until`, at most.
    pub repeats: u32,
    /// A cell's repeats end when the interval of its mean reaches no further to each side than this share of it.
    pub until: Option<f64>,
    /// The order of the runs.
    pub order: Order,
    /// What the search for better settings is about, if it is one: the only arm is its baseline then, and the others are added as it
    /// goes on, by [`Evaluation::add`].
    pub tuning: Option<Tuning>,
    /// Notes on behaviour that the author may not expect.
    pub notes: Vec<Note>,
    /// What the arms and loads were read from.
    pub(crate) documents: Documents,
}

/// In which order runs are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Repeat by repeat, load by load, level by level; each of these on every arm in turn, every other repeat in the opposite
    /// order of arms: what drifts hits all arms alike. All arms are set up at once.
    #[default]
    Interleaved,
    /// As interleaved, the arms' order drawn from the seed each time.
    Random,
    /// Arm by arm: for arms that cannot be up at the same time.
    Blocks,
}

/// The orders, as documents and records call them.
pub const ORDERS: [(&str, Order); 3] =
    [("interleaved", Order::Interleaved), ("random", Order::Random), ("blocks", Order::Blocks)];

impl Order {
    /// Its name in documents and records.
    pub const fn name(self) -> &'static str {
        match self {
            Order::Interleaved => "interleaved",
            Order::Random => "random",
            Order::Blocks => "blocks",
        }
    }
}

/// One thing compared.
#[derive(Clone, Debug, Default)]
pub struct Arm {
    /// Its name; not empty, and of this arm only.
    pub name: String,
    /// Its description, or empty.
    pub description: String,
    /// What it asks of provisioners, in the order in which they bring it up.
    pub requests: Vec<Request>,
    /// Variables for `${NAME}` in its loads' documents, over those of the process; name and value.
    pub environment: Vec<(String, String)>,
    /// Shell commands that set it up. What they print as `NAME=value` or `export NAME=value`, a line each, become variables.
    pub set_up: Vec<String>,
    /// Shell commands before each of its runs.
    pub reset: Vec<String>,
    /// Shell commands at its end.
    pub tear_down: Vec<String>,
    /// Shell commands that print the settings that are in effect.
    pub show: Vec<String>,
    /// Shell commands that say whether its storage is well.
    pub health: Vec<String>,
    /// Shell commands that end when its storage has recovered from a run.
    pub recover: Vec<String>,
    /// What it is, for reports; name and value, secrets left out.
    pub settings: Vec<(String, String)>,
    /// What is observed of it.
    pub observe: Observe,
}

/// One load.
#[derive(Clone, Debug)]
pub struct Load {
    /// Its name; not empty, and of this load only.
    pub name: String,
    /// Its description, or empty.
    pub description: String,
    /// The intensities, at least one; the only one may be empty.
    pub levels: Levels,
    /// What its latencies must stay within to count.
    pub service_level: Option<ServiceLevel>,
    /// The path of the document that it refers to, as it is written; `None` when it is in the evaluation's.
    pub path: Option<String>,
}

/// The intensities of a load.
#[derive(Clone, Debug, PartialEq)]
pub enum Levels {
    /// Those that the document lists, all combinations of its axes.
    Listed(Vec<Level>),
    /// Those that a search for the knee goes to.
    Searched(Search),
}

impl Arm {
    /// All its shell commands, by the keys under which they stand.
    pub fn commands(&self) -> [(&'static str, &[String]); 6] {
        [
            ("set_up", &self.set_up),
            ("reset", &self.reset),
            ("tear_down", &self.tear_down),
            ("show", &self.show),
            ("health", &self.health),
            ("recover", &self.recover),
        ]
    }

    /// Whether anything of it is a shell command.
    pub fn has_commands(&self) -> bool {
        self.commands().iter().any(|(_, commands)| !commands.is_empty())
    }
}

impl Levels {
    /// How many levels are known beforehand.
    pub fn count(&self) -> usize {
        match self {
            Levels::Listed(levels) => levels.len(),
            Levels::Searched(_) => 2,
        }
    }

    /// The levels that are known beforehand: those listed, or the two ends of a search.
    pub fn known(&self) -> Vec<Level> {
        match self {
            Levels::Listed(levels) => levels.clone(),
            Levels::Searched(search) => vec![search.level(search.from), search.level(search.to)],
        }
    }
}

impl Evaluation {
    /// How often each cell is measured at least.
    pub fn repeats_least(&self) -> u32 {
        if self.until.is_some() { self.repeats.min(REPEATS_LEAST) } else { self.repeats }
    }

    /// The plan of one cell: the load's document for the arm, at the level, with the seed of the repeat (from 1). What
    /// is observed is what the document, the arm and the evaluation name. With it come warnings.
    ///
    /// Variables come from `environment`: the arm's own must come first in it, then those of its provisioners and set-up.
    ///
    /// # Errors
    /// All errors and warnings; places are in [`Evaluation::source`] of the load.
    pub fn plan(
        &self,
        arm: usize,
        load: usize,
        level: &Level,
        repeat: u32,
        environment: &Environment<'_>,
    ) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
        let Some(found) = self.arms.get(arm).filter(|_| load < self.loads.len()) else {
            let message = format!("there is no arm {arm} or no load {load}");
            return Err(vec![Diagnostic::error(0..0, message, "")]);
        };
        let seed = self.seed_of(repeat);
        let (mut plan, warnings) = self.documents.plan((arm, &found.name), load, level, seed, environment)?;
        plan.observe.join(&found.observe);
        Ok((plan, warnings))
    }

    /// The plan of one cell before its arm is set up, for forecasts: what its provisioners or set-up bring is made up where
    /// neither the arm nor `environment` has it.
    ///
    /// # Errors
    /// As [`Evaluation::plan`].
    pub fn sketch(
        &self,
        arm: usize,
        load: usize,
        level: &Level,
        repeat: u32,
        environment: &Environment<'_>,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let variables = check::Variables::new(self.arms.get(arm), environment, true);
        variables.lend(|lent| self.plan(arm, load, level, repeat, lent)).map(|(plan, _)| plan)
    }

    /// The seed of a repeat, the same for all arms. It has 32 bits, so that it can be typed.
    pub fn seed_of(&self, repeat: u32) -> u64 {
        rng::mix(self.seed, &[u64::from(repeat)]) & u64::from(u32::MAX)
    }

    /// The text that a load's diagnostics point into, and its name: the evaluation's own, or the document that it refers to.
    pub fn source(&self, load: usize) -> (&str, &str) {
        self.documents.source(load).unwrap_or((self.documents.text(), &self.name))
    }
}

/// Whether a text is an evaluation document: YAML with `arms` at its top.
pub fn is_evaluation(text: &str, registry: &Registry) -> bool {
    text.contains("arms") && crate::yaml::is_evaluation(text, registry)
}

/// Reads an evaluation document; documents that it refers to are read from `directory`, its own. With it come
/// warnings.
///
/// # Errors
/// All errors and warnings, in document order.
pub fn read(
    text: &str,
    directory: &Path,
    environment: &Environment<'_>,
) -> Result<(Evaluation, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (mut evaluation, remarks) = crate::yaml::evaluation(text, directory, environment)?;
    let remarks = check::check(&mut evaluation, environment, remarks)?;
    if let Some(mut ends) = tuning::with_ends(&evaluation, environment)? {
        // What is wrong with a value of a setting is found before anything runs.
        check::check(&mut ends, environment, Vec::new())?;
    }
    Ok((evaluation, remarks))
}
