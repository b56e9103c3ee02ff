//! From a plan to a run's record.

use crate::audience::{Audience, Event, Wish};
use crate::field::{Fields, Opened, StagePlace};
use crate::here::Here;
use crate::keep::Keep;
use crate::provenance;
use crate::stage::{self, Place};
use crate::trigger::Trigger;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tidemark_measure::evaluation::Member;
use tidemark_measure::record::{Note, Provenance, Run, Stage, State};
use tidemark_observe::Observer;
use tidemark_plan::plan::{Observe, OnFailure, Plan};
use tidemark_store::Store;

/// How a plan is executed.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Generator threads of a work; `None`: one per processor.
    pub threads: Option<u32>,
    /// Directory that triggers may run scripts from; `None`: they do not run.
    pub trigger_directory: Option<PathBuf>,
    /// Whether to begin without asking the targets first. What guards data from being overwritten is asked always.
    pub skip_preflight: bool,
    /// Devices and files whose content may be destroyed although it is not Tidemark's.
    pub allow_destroy: Vec<PathBuf>,
    /// Directory in which temporary files of embedded servers lie; `None`: the working directory.
    pub scratch: Option<PathBuf>,
    /// The run's place in an evaluation, if it is part of one.
    pub member: Option<Member>,
    /// Where it is carried out, if not in this process.
    pub fields: Option<Arc<dyn Fields>>,
    /// Tells what this process writes apart from what others write for the same run; `None`: by its number.
    pub writer: Option<u32>,
}

/// A plan could not be begun: one clear sentence with the remedy, never a secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ExecuteError(pub String);

/// A finished run and whether the store has it.
#[derive(Debug)]
pub struct Executed {
    /// The record.
    pub run: Run,
    /// Whether it is in the store, under [`Run::id`].
    pub stored: bool,
}

/// Executes `plan` to its end and gives its record. `provenance` says where the plan came from; what is known
/// of this machine's targets is added to it. Errors mean that no load was put on anything.
pub fn execute(
    plan: &Plan,
    provenance: Provenance,
    options: &Options,
    store: Option<&mut Store>,
    audience: &mut dyn Audience,
) -> Result<Executed, ExecuteError> {
    let mut field = match &options.fields {
        Some(fields) => fields.field(),
        None => Box::new(Here::default()),
    };
    let targets = field.prepare(plan, options, audience)?;
    let start = Instant::now();
    let mut run = Run {
        name: plan.name.clone(),
        description: plan.description.clone(),
        started_unix_ns: unix_now_ns(),
        state: State::Running,
        provenance: Provenance { seed: plan.seed, targets, ..provenance },
        notes: plan.notes.clone(),
        stages: plan.stages.iter().enumerate().map(waiting).collect(),
        member: options.member.clone(),
        ..Run::default()
    };
    let observer = Observer::start(&observed(plan, options), start);
    if options.trigger_directory.is_none() && has_triggers(plan) {
        run.notes.push(Note {
            topic: "trigger".into(),
            text: "Scripts named by `trigger` did not run: a workload file may not run commands unless \
                   `--trigger-dir` names the directory they lie in."
                .into(),
        });
    }
    let mut keep = Keep::begin(store, &mut run, audience);
    let threads = options.threads.unwrap_or_else(provenance::cores).max(1);
    let around = start_trigger(plan.trigger.as_deref(), options, audience);
    let mut only_cleaning = false;
    for (index, stage) in plan.stages.iter().enumerate() {
        let cleans = !stage.works.is_empty() && stage.works.iter().all(|work| work.kind.cleans());
        let asked = audience.wish();
        if asked == Wish::Stop || (!cleans && (only_cleaning || asked > Wish::GoOn)) {
            let record = &mut run.stages[index];
            record.reason =
                if asked > Wish::GoOn { "the user ended the run" } else { "an earlier stage failed" }.into();
            continue;
        }
        audience.event(Event::StageStarted { index, stage });
        let record = &mut run.stages[index];
        record.started_ns = start.elapsed().as_nanos() as u64;
        record.state = State::Running;
        keep.progress(&run, audience);
        run.stages[index].state = State::Completed;
        let trigger = start_trigger(stage.trigger.as_deref(), options, audience);
        let opened = {
            let place = StagePlace { index, run_start: start };
            field.open(place, stage, &mut run.notes, audience)
        };
        let record = &mut run.stages[index];
        match opened {
            Opened::Nothing(why) => record.reason = why,
            Opened::Failed(_) if audience.wish() > asked => {
                (record.state, record.reason) = (State::Interrupted, "ended early by the user".into());
            }
            Opened::Failed(reason) => (record.state, record.reason) = (State::Failed, reason),
            Opened::Players(players) => {
                let place = Place { index, run_start: start, asked };
                let remarks = stage::run(place, &players, threads, record, &observer, audience, &mut keep);
                field.close(stage, remarks, record);
            }
        }
        end_trigger(trigger, audience);
        if stage.pause_ns > 0 && record.state == State::Completed {
            pause(stage.pause_ns, audience);
        }
        record.ended_ns = start.elapsed().as_nanos() as u64;
        audience.event(Event::StageEnded { index, stage: record });
        only_cleaning |= record.state == State::Failed && stage.on_failure == OnFailure::Stop;
        run.elapsed_ns = start.elapsed().as_nanos() as u64;
        keep.progress(&run, audience);
    }
    end_trigger(around, audience);
    run.nodes = observer.finish();
    field.finish(&mut run);
    run.elapsed_ns = start.elapsed().as_nanos() as u64;
    run.state = state_of(&run.stages, audience.wish());
    let stored = keep.finish(&run, audience);
    Ok(Executed { run, stored })
}

fn observed(plan: &Plan, options: &Options) -> tidemark_observe::Options {
    let Observe { nodes, processes, mut ceph_sockets } = plan.observe.clone();
    let mut token = std::env::var("TIDEMARK_OBSERVE_TOKEN").ok();
    if options.fields.is_some() {
        // The document came over the network: it must not learn the token by naming a node, nor reach sockets here.
        token = None;
        ceph_sockets.clear();
    }
    tidemark_observe::Options { nodes, processes, ceph_sockets, token }
}

fn has_triggers(plan: &Plan) -> bool {
    plan.trigger.is_some() || plan.stages.iter().any(|stage| stage.trigger.is_some())
}

/// Starts a script, if the document names one and the operator allows it.
fn start_trigger(text: Option<&str>, options: &Options, audience: &mut dyn Audience) -> Option<Trigger> {
    let started = Trigger::start(text?, options.trigger_directory.as_deref()?);
    started.inspect_err(|trouble| audience.event(Event::Trouble(trouble))).ok()
}

fn end_trigger(trigger: Option<Trigger>, audience: &mut dyn Audience) {
    if let Some(Err(trouble)) = trigger.map(Trigger::end) {
        audience.event(Event::Trouble(&trouble));
    }
}

fn waiting((index, stage): (usize, &tidemark_plan::plan::Stage)) -> Stage {
    Stage {
        id: format!("s{}-{}", index + 1, stage.name),
        name: stage.name.clone(),
        works: stage.works.iter().map(stage::planned).collect(),
        cell: stage.cell.clone(),
        ..Stage::default()
    }
}

/// Waits, unless the user ends the run.
fn pause(pause_ns: u64, audience: &mut dyn Audience) {
    audience.event(Event::Pausing { pause_ns });
    let end = Instant::now() + Duration::from_nanos(pause_ns);
    while audience.wish() == Wish::GoOn {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

fn state_of(stages: &[Stage], asked: Wish) -> State {
    let any = |state| stages.iter().any(|stage| stage.state == state);
    if asked > Wish::GoOn || any(State::Interrupted) {
        State::Interrupted
    } else if any(State::Failed) {
        State::Failed
    } else {
        State::Completed
    }
}

fn unix_now_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
