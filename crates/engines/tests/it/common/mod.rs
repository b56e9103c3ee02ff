//! What the tests of documents share.

pub(crate) mod runs;

use std::sync::LazyLock;
use tidemark_plan::diagnostic::Diagnostic;
use tidemark_plan::forecast::Forecast;
use tidemark_plan::plan::Plan;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

/// All engines.
pub(crate) static REGISTRY: LazyLock<Registry> = LazyLock::new(tidemark_engines::registry);

/// This process's environment.
pub(crate) fn process() -> Environment<'static> {
    Environment::process(&REGISTRY)
}

/// Reads a workload in this process's environment.
pub(crate) fn read(text: &str) -> Result<tidemark_plan::document::Read, Vec<Diagnostic>> {
    tidemark_plan::document::read(text, &process())
}

/// Forecasts a plan.
pub(crate) fn forecast(plan: &Plan) -> Forecast {
    tidemark_plan::forecast::forecast(plan, &REGISTRY)
}
