//! Documents run in this process.

use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{Options, execute};
use tidemark_engines::registry;
use tidemark_judge::evidence;
use tidemark_measure::record::{Operation, Provenance, Run, Stage, State};
use tidemark_sql::databases::{DatabaseEvidence, Record};

struct Quiet;

impl EventSink for Quiet {
    fn event(&mut self, _event: Event<'_>) {}

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

/// Options of a run with so many threads.
pub(crate) fn options(threads: u32) -> Options {
    Options { threads: Some(threads), ..Options::local(registry()) }
}

/// Runs a document.
pub(crate) fn try_run(text: &str, options: &Options) -> Result<Run, String> {
    let plan = super::read(text).unwrap_or_else(|found| panic!("{found:?}")).plan;
    execute(&plan, Provenance::default(), options, None, &mut Quiet)
        .map(|done| done.run)
        .map_err(|error| error.to_string())
}

/// Runs a document that must complete.
#[track_caller]
pub(crate) fn run(text: &str) -> Run {
    let run = try_run(text, &options(2)).expect("the run begins");
    let reasons: Vec<_> = run.stages.iter().map(|stage| &stage.reason).collect();
    assert_eq!(run.state, State::Completed, "{reasons:?} {:?}", examples(&run));
    run
}

/// What makes a run's numbers others than they seem, but for a machine that others keep busy.
pub(crate) fn doubts(run: &Run) -> Vec<String> {
    let findings = tidemark_judge::judge(run).findings;
    let doubts = findings.iter().filter(|one| one.invalidates && one.rule() != "limit-generator");
    doubts.map(tidemark_judge::Finding::sentence).collect()
}

/// What failed, in the server's words.
pub(crate) fn examples(run: &Run) -> Vec<String> {
    let works = run.stages.iter().flat_map(|stage| &stage.works);
    works.flat_map(|work| &work.examples).map(|example| example.text.clone()).collect()
}

/// The first operation of the last stage.
pub(crate) fn last(run: &Run) -> &Operation {
    &run.stages.last().expect("a stage").works[0].operations[0]
}

/// The reason why the first stage failed, or why there was no run.
pub(crate) fn refusal(text: &str, options: &Options) -> String {
    format!("{:?}", try_run(text, options).map(|run| run.stages[0].reason.clone()))
}

/// What was found out of a stage's databases.
#[track_caller]
pub(crate) fn databases(stage: &Stage) -> Record {
    evidence::read::<DatabaseEvidence>(stage).unwrap_or_else(|| panic!("{:?}", stage.proof))
}
