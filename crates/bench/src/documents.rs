//! Documents run as `tidemark run` does, in this process, and silently.

use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{Options, execute};
use tidemark_measure::record::{Provenance, Run, State};
use tidemark_plan::document;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

struct Quiet;

impl EventSink for Quiet {
    fn event(&mut self, _event: Event<'_>) {}

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

/// Runs a document of these engines on so many generator threads; `None`: one per processor. Gives its record if all stages were completed.
pub(crate) fn run(registry: Registry, text: &str, threads: Option<u32>) -> Result<Run, String> {
    let read = document::read(text, &Environment::process(&registry));
    let plan = read.map_err(|found| format!("{found:?}"))?.plan;
    let options = Options { threads, ..Options::local(registry) };
    let done = execute(&plan, Provenance::default(), &options, None, &mut Quiet)
        .map_err(|error| error.to_string())?;
    match done.run.stages.iter().find(|stage| stage.state != State::Completed) {
        Some(stage) => Err(format!("{}: {}", stage.name, stage.reason)),
        None => Ok(done.run),
    }
}
