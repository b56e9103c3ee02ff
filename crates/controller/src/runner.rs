//! One submission while it goes on: its document opened, carried out, judged.

use crate::api::SubmissionState;
use crate::board;
use crate::executor::{Executor, Task};
use crate::live::{Follower, Live};
use crate::options::Options;
use crate::reading::{Purpose, ReadFailure, Reader, What};
use crate::seal::Seal;
use crate::state::{Outcome, Request};
use crate::store_writer::StoreWriter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tidemark_control::evaluate::{Evaluated, EvaluationEvent, EvaluationSink};
use tidemark_control::event::{EventSink, StopRequest};
use tidemark_control::execute::Executed;
use tidemark_control::provenance;
use tidemark_judge::evaluation::assess;
use tidemark_judge::{Finding, Validity, judge, verdict_sentences};
use tidemark_measure::record::{Provenance, Run, State};
use tidemark_plan::evaluation::Evaluation;
use tidemark_plan::plan::Plan;
use tidemark_store::{Store, Submission};

/// What it takes to carry submissions out.
pub(crate) struct Resources<'a> {
    pub(crate) options: &'a Options,
    pub(crate) reader: &'a Reader,
    pub(crate) seal: &'a Seal,
    pub(crate) writer: &'a StoreWriter,
    pub(crate) executor: &'a Executor,
    /// Is told the number of each run that the store has begun: whatever happens, it can be found.
    pub(crate) run_begun: &'a dyn Fn(u64),
}

/// Carries a submission out to its end, whatever happens.
pub(crate) fn run(
    resources: &Resources<'_>,
    stored: &Submission,
    request: &Request,
    drivers: Vec<String>,
    live: &Live,
) -> Outcome {
    let carried = catch_unwind(AssertUnwindSafe(|| carry_out(resources, stored, request, drivers, live)));
    let failed = |reason| Outcome { state: SubmissionState::Failed, reason, ..Outcome::default() };
    match carried {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(reason)) => failed(reason),
        Err(_) => failed("internal error: please report this as a bug and attach the document".into()),
    }
}

fn carry_out(
    resources: &Resources<'_>,
    stored: &Submission,
    request: &Request,
    drivers: Vec<String>,
    live: &Live,
) -> Result<Outcome, String> {
    let document = resources.writer.read(|store| store.submitted_document(stored.id));
    let (sealed, redacted) = document.map_err(|error| error.to_string())?;
    let text = resources.seal.open(&sealed)?;
    // Read anew: what it refers to may have changed while it waited.
    let reading = resources.reader.read(&text, Purpose::Run).map_err(read_failure)?;
    let provenance = Provenance {
        command: submitted(stored, &resources.options.name),
        format: reading.format.into(),
        document: redacted,
        ..provenance::of_this_machine(&resources.options.version)
    };
    let task = Task {
        id: stored.id,
        drivers,
        provenance,
        skip_preflight: request.skip_preflight,
        scratch: resources.writer.path().parent().map(std::path::Path::to_path_buf),
        secrets: resources.options.secrets.clone(),
    };
    let mut store = match Store::open(resources.writer.path()) {
        Ok(store) => Some(store),
        Err(error) => {
            live.trouble(&format!("the run continues without the result store: {error}"));
            None
        }
    };
    match reading.what {
        What::Workload { plan, .. } => {
            let mut plan = match request.seed {
                Some(seed) => plan.with_seed(seed),
                None => *plan,
            };
            plan.notes.extend(reading.noted);
            workload(resources, &plan, task, store.as_mut(), live)
        }
        What::Evaluation { mut evaluation, .. } => {
            evaluation.seed = request.seed.unwrap_or(evaluation.seed);
            self::evaluation(resources, &evaluation, task, store.as_mut(), live)
        }
    }
}

/// The command that repeats a submission: `tidemark submit FILE  # the document; first submitted as w7 by anna to lab-1`.
fn submitted(stored: &Submission, controller: &str) -> String {
    let by = if stored.by.is_empty() { String::new() } else { format!(" by {}", stored.by) };
    format!("tidemark submit FILE  # the document; first submitted as w{}{by} to {controller}", stored.id)
}

fn read_failure(read_failure: ReadFailure) -> String {
    match read_failure {
        ReadFailure::Wrong(problems) => {
            let said = problems.iter().filter(|problem| !problem.warning);
            let said: Vec<String> =
                said.map(|problem| format!("{}; {}", problem.message, problem.help)).collect();
            format!("the document can no longer be run: {}", said.join("; ").trim_end_matches("; "))
        }
        ReadFailure::Refused(reason) => reason,
        ReadFailure::Busy => "too many documents were being read: submit it again".into(),
    }
}

fn workload(
    resources: &Resources<'_>,
    plan: &Plan,
    task: Task,
    store: Option<&mut Store>,
    live: &Live,
) -> Result<Outcome, String> {
    let begun = store.as_ref().map(|store| store.begun()).unwrap_or_default();
    let mut follower = Follower::new(live, plan, begun, resources.run_begun);
    let Executed { run, stored } = (resources.executor.execute)(plan, task, store, &mut follower)?;
    let judgement = judge(&run);
    Ok(Outcome {
        state: state_of(run.state),
        reason: reason(&run, &judgement.validity),
        run: stored.then_some(run.id),
        valid: Some(judgement.is_valid()),
        headline: verdict_sentences(&run, &judgement).into_iter().next().unwrap_or_default(),
        unstored: (!stored).then(|| Box::new(run)),
        ..Outcome::default()
    })
}

fn evaluation(
    resources: &Resources<'_>,
    document: &Evaluation,
    task: Task,
    mut store: Option<&mut Store>,
    live: &Live,
) -> Result<Outcome, String> {
    let begun = store.as_ref().map(|store| store.begun()).unwrap_or_default();
    let mut sink = ProgressEvents { live, begun, run_begun: resources.run_begun };
    let evaluated = (resources.executor.evaluate)(document, task, store.as_deref_mut(), &mut sink)?;
    let Evaluated { evaluation, runs, trouble, .. } = evaluated;
    let assessment = assess(&evaluation, &runs);
    if let Some(store) = store
        && let Err(error) =
            store.keep_evaluation(&evaluation, Some(&tidemark_control::listing::of_evaluation(&assessment)))
    {
        live.trouble(&format!("the verdict was not stored: {error}"));
    }
    let state = match (&trouble, evaluation.state) {
        (Some(_), State::Completed) => SubmissionState::Failed,
        (_, state) => state_of(state),
    };
    let number = |id: u64| Some(id).filter(|id| *id != 0);
    Ok(Outcome {
        state,
        reason: trouble.map(|trouble| trouble.to_string()).unwrap_or_default(),
        run: runs.last().and_then(|run| number(run.id)),
        evaluation: number(evaluation.id),
        valid: Some(assessment.validity.is_valid()),
        headline: assessment.verdict.into_iter().next().unwrap_or_default(),
        unstored: None,
    })
}

fn state_of(state: State) -> SubmissionState {
    match state {
        State::Completed => SubmissionState::Completed,
        State::Failed => SubmissionState::Failed,
        State::Waiting | State::Running | State::Interrupted => SubmissionState::Interrupted,
    }
}

/// Why a run failed: the first of its stages that did. Or why its numbers do not hold.
fn reason(run: &Run, validity: &Validity) -> String {
    let failed = run.stages.iter().find(|stage| stage.state == State::Failed);
    match failed {
        Some(stage) => format!("{}: {}", stage.id, stage.reason),
        None => validity.reasons().first().map(Finding::sentence).unwrap_or_default(),
    }
}

/// Follows an evaluation.
struct ProgressEvents<'a> {
    live: &'a Live,
    begun: Arc<AtomicU64>,
    run_begun: &'a dyn Fn(u64),
}

impl EvaluationSink for ProgressEvents<'_> {
    fn event(&mut self, event: EvaluationEvent<'_>) {
        if let EvaluationEvent::RunStarted { number, of, .. } = event {
            self.live.turn(number.saturating_sub(1), of);
        }
        if board::concerns(&event) {
            self.live.board(|board| board::take(board, &event));
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        self.live.stop_request()
    }

    fn sink<'a>(&'a mut self, plan: &Plan) -> Box<dyn EventSink + 'a> {
        Box::new(Follower::new(self.live, plan, self.begun.clone(), self.run_begun))
    }
}
