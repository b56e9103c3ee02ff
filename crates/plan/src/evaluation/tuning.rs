//! The arms of a search for better settings: they are added as it goes on.

use super::{Arm, Evaluation};
use crate::diagnostic::Diagnostic;
use crate::yaml::Environment;
use tidemark_measure::tuning::Configuration;

impl Evaluation {
    /// Adds an arm with other settings to a search, and returns its place; one of this name that is there already stays as it is.
    ///
    /// # Errors
    /// What is wrong with the arm with these settings; places are in the evaluation's text.
    pub fn add(
        &mut self,
        name: &str,
        configuration: &Configuration,
        environment: &Environment<'_>,
    ) -> Result<usize, Vec<Diagnostic>> {
        if let Some(known) = self.arms.iter().position(|arm| arm.name == name) {
            return Ok(known);
        }
        let settings =
            self.tuning.as_ref().map(|tuning| tuning.space.pairs(configuration)).unwrap_or_default();
        let arm = self.documents.add_arm(name, &settings, environment)?;
        // What is observed of all of them, too.
        let observe = self.arms.first().map(|arm| arm.observe.clone()).unwrap_or_default();
        self.arms.push(Arm { observe, ..arm });
        Ok(self.arms.len() - 1)
    }
}

/// A search with an arm for every value that the screening takes, each beside the baseline's values of the other settings; `None` where
/// nothing is searched.
///
/// # Errors
/// As [`Evaluation::add`].
pub(super) fn with_ends(
    evaluation: &Evaluation,
    environment: &Environment<'_>,
) -> Result<Option<Evaluation>, Vec<Diagnostic>> {
    let Some(tuning) = &evaluation.tuning else { return Ok(None) };
    let (space, mut all) = (&tuning.space, evaluation.clone());
    for (index, setting) in space.settings.iter().enumerate() {
        for level in setting.levels() {
            let mut configuration = space.baseline();
            configuration.0[index] = level;
            if configuration != space.baseline() {
                all.add(&space.label(&configuration), &configuration, environment)?;
            }
        }
    }
    Ok(Some(all))
}
