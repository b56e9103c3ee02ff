//! fio's job files as a format of documents.

use crate::document;
use tidemark_plan::diagnostic::Diagnostic;
use tidemark_plan::plan::Plan;
use tidemark_plan::registry::{Changes, Format};
use tidemark_plan::yaml::environment::Environment;

/// What the format is called.
const FORMAT: &str = "fio job file";

/// fio's job files: they run as they stand.
pub struct JobFiles;

impl Format for JobFiles {
    fn name(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self, text: &str) -> bool {
        document::is_fio(text)
    }

    fn read(
        &self,
        text: &str,
        environment: &Environment<'_>,
        changes: Changes<'_>,
    ) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
        let (plan, warnings) = document::read(text, environment.variable, environment.waited_for)?;
        Ok(match changes.seed {
            Some(seed) => (plan.with_seed(seed), warnings),
            None => (plan, warnings),
        })
    }

    fn fixed(&self) -> Option<&'static str> {
        Some(FORMAT)
    }

    fn engine(&self) -> &'static str {
        crate::NAME
    }
}
