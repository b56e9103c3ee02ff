//! Puts settings that a search has found into effect on the storage that a user has, or puts those of before into effect again.

use super::arm::Arm;
use super::{Evaluation, EvaluationSink, Options, tune};
use crate::execute::ExecuteError;
use tidemark_measure::in_effect::InEffect;
use tidemark_measure::tuning::Configuration;
use tidemark_plan::yaml::Environment;

/// What was in effect before and after. Both are empty where nothing says it.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Before.
    pub before: InEffect,
    /// After.
    pub after: InEffect,
}

/// Brings the only arm of a search to these settings, and leaves it there; `None` when the user stopped it. What the arm
/// asks of provisioners must be running already: it is that which gets the settings. `keep` gets what is in effect before
/// anything is changed.
///
/// # Errors
/// An arm in which no setting stands, storage that is not there, commands that fail.
pub fn apply(
    document: &Evaluation,
    configuration: &Configuration,
    options: &Options,
    environment: &Environment<'_>,
    keep: &mut dyn FnMut(&InEffect) -> Result<(), ExecuteError>,
    sink: &mut dyn EvaluationSink,
) -> Result<Option<Applied>, ExecuteError> {
    let can = |arm: &tidemark_plan::evaluation::Arm| arm.has_commands() || !arm.requests.is_empty();
    if !document.arms.iter().any(can) {
        return Err(ExecuteError(
            "the settings cannot be applied: the arm has no commands that would do it; write them into your configuration".into(),
        ));
    }
    let mut document = document.clone();
    let index = tune::add(&mut document, "applied", configuration, environment)?;
    let mut arm = Arm::standing(&document.arms[index], options, environment.registry)?;
    let Some(before) = arm.in_effect(sink)? else { return Ok(None) };
    keep(&before)?;
    if !arm.set_up(sink)? || !arm.reset(sink)? {
        return Ok(None);
    }
    Ok(arm.in_effect(sink)?.map(|after| Applied { before, after }))
}
