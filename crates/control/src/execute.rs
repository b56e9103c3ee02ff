//! From a plan to a run's record.

use crate::backend::{BackendFactory, Opened, StagePlace};
use crate::event::{Event, EventSink, StopRequest};
use crate::local::Local;
use crate::provenance;
use crate::run_writer::RunWriter;
use crate::stage::{self, Place};
use crate::trigger::Trigger;
use crate::witness::{Nodes, Witness};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tidemark_measure::evaluation::Member;
use tidemark_measure::record::{Note, Provenance, Run, Stage, State};
use tidemark_observe::{Observer, RemoteNode};
use tidemark_plan::plan::{Observe, OnFailure, Plan};
use tidemark_plan::policy::Access;
use tidemark_plan::registry::Registry;
use tidemark_store::Store;

/// How a plan is executed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it is carried out.
    pub backends: Arc<dyn BackendFactory>,
    /// How far its document is trusted with this machine.
    pub trust: Trust,
    /// The engines that it may use.
    pub registry: Registry,
    /// Generator threads of a work; `None`: one per processor.
    pub threads: Option<u32>,
    /// Directory that triggers may run scripts from; `None`: they do not run.
    pub trigger_directory: Option<PathBuf>,
    /// Whether to begin without a check of the targets. Data is protected from being overwritten in any case.
    pub skip_preflight: bool,
    /// Whose content may be destroyed although it is not Tidemark's, as the user named it: a device or file by its path, a
    /// bucket as `s3://NAME`.
    pub allow_destroy: Vec<PathBuf>,
    /// Directory in which temporary files of embedded servers lie; `None`: the working directory.
    pub scratch: Option<PathBuf>,
    /// The run's place in an evaluation, if it is part of one.
    pub member: Option<Member>,
    /// The most files and sockets that the load has open at once in this process; `None`: as many as the whole plan needs.
    pub open_files: Option<u64>,
    /// Tells what this process writes apart from what others write for the same run; `None`: by its number.
    pub writer: Option<u32>,
    /// The files of this machine that the run may open.
    pub access: Access,
    /// Who else watches the run.
    pub witness: Option<Arc<dyn Witness>>,
}

/// How far a document is trusted with the machine that observes its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The user of this machine runs it.
    User,
    /// It came over the network: it must not learn tokens by naming nodes, nor reach sockets here.
    Network,
}

impl Options {
    /// A plan carried out by these backends, with nothing else asked for.
    pub fn new(registry: Registry, backends: Arc<dyn BackendFactory>, trust: Trust) -> Self {
        Self {
            backends,
            trust,
            registry,
            threads: None,
            trigger_directory: None,
            skip_preflight: false,
            allow_destroy: Vec::new(),
            scratch: None,
            member: None,
            open_files: None,
            writer: None,
            access: Access::own(),
            witness: None,
        }
    }

    /// A plan of this machine's user, carried out in this process.
    pub fn local(registry: Registry) -> Self {
        Self::new(registry, Arc::new(Local), Trust::User)
    }
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
/// of this machine's targets is added to it. Errors mean that no load has started.
pub fn execute(
    plan: &Plan,
    provenance: Provenance,
    options: &Options,
    store: Option<&mut Store>,
    sink: &mut dyn EventSink,
) -> Result<Executed, ExecuteError> {
    let mut plan = plan.clone();
    let mut targets = survey(&mut plan, options, sink)?;
    let mut backend = options.backends.backend();
    backend.fit(&mut plan, &options.registry)?;
    let plan = &plan;
    targets.extend(backend.prepare(plan, options, sink)?);
    let mut around = options.witness.as_ref().map(|witness| witness.nodes()).unwrap_or_default();
    let mut missing = std::mem::take(&mut around.missing);
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
        drivers: backend.drivers(start),
        ..Run::default()
    };
    let observer = Observer::start(&observed(plan, options, around), start);
    if options.trigger_directory.is_none() && has_triggers(plan) {
        run.notes.push(Note {
            topic: "trigger".into(),
            text: "Tidemark did not run the `trigger` scripts: a workload file may run commands only if \
                   `--trigger-dir` names the directory they lie in."
                .into(),
        });
    }
    let mut writer = RunWriter::begin(store, &mut run, sink);
    let threads = options.threads.unwrap_or_else(provenance::cores).max(1);
    let around = start_trigger(plan.trigger.as_deref(), options, sink);
    let mut only_cleaning = false;
    for (index, stage) in plan.stages.iter().enumerate() {
        let cleans = !stage.works.is_empty() && stage.works.iter().all(|work| work.kind.cleans());
        let asked = sink.stop_request();
        if asked == StopRequest::Stop || (!cleans && (only_cleaning || asked > StopRequest::None)) {
            let record = &mut run.stages[index];
            record.reason = if asked > StopRequest::None {
                "the user stopped the run"
            } else {
                "an earlier stage failed"
            }
            .into();
            continue;
        }
        sink.event(Event::StageStarted { index, stage });
        let record = &mut run.stages[index];
        record.started_ns = start.elapsed().as_nanos() as u64;
        record.state = State::Running;
        writer.progress(&run, index, sink);
        let trigger = start_trigger(stage.trigger.as_deref(), options, sink);
        let opened = {
            let place = StagePlace { index, shares: None, run_start: start };
            backend.open(place, stage, &mut run.notes, sink)
        };
        // If this process dies, the result is put together from this and from the seconds.
        let now_ns = start.elapsed().as_nanos() as u64;
        run.stages[index].works.iter_mut().for_each(|work| work.started_ns = now_ns);
        run.stages[index].shares = backend.shares();
        writer.progress(&run, index, sink);
        let record = &mut run.stages[index];
        record.state = State::Completed;
        match opened {
            Opened::Nothing(why) => record.reason = why,
            Opened::Failed(_) if sink.stop_request() > asked => {
                (record.state, record.reason) = (State::Interrupted, "stopped early by the user".into());
            }
            Opened::Failed(reason) => (record.state, record.reason) = (State::Failed, reason),
            Opened::Runners(runners) => {
                let place = Place { index, run_start: start, asked };
                let remarks = stage::run(place, &runners, threads, record, &observer, sink, &mut writer);
                backend.close(stage, remarks, record);
            }
        }
        end_trigger(trigger, sink);
        if stage.pause_ns > 0 && record.state == State::Completed {
            pause(stage.pause_ns, sink);
        }
        record.ended_ns = start.elapsed().as_nanos() as u64;
        sink.event(Event::StageEnded { index, stage: record });
        only_cleaning |= record.state == State::Failed && stage.on_failure == OnFailure::Stop;
        run.elapsed_ns = start.elapsed().as_nanos() as u64;
        run.drivers = backend.drivers(start);
        writer.progress(&run, index, sink);
    }
    end_trigger(around, sink);
    run.nodes = observer.finish();
    // One that the document names itself is not missed.
    missing.retain(|node| !run.nodes.iter().any(|seen| seen.name == node.name && !seen.at_ns.is_empty()));
    run.nodes.append(&mut missing);
    backend.finish(start, &mut run.nodes);
    if let Some(witness) = &options.witness {
        witness.tell(start, &mut run);
    }
    run.drivers = backend.drivers(start);
    run.elapsed_ns = start.elapsed().as_nanos() as u64;
    run.state = state_of(&run.stages, sink.stop_request());
    let stored = writer.finish(&run, sink);
    Ok(Executed { run, stored })
}

/// Lets the engines complete the plan by what is there already, and says what they found.
fn survey(plan: &mut Plan, options: &Options, sink: &mut dyn EventSink) -> Result<Vec<String>, ExecuteError> {
    let mut found = Vec::new();
    for engine in options.registry.engines() {
        found.extend(engine.survey(plan, options.trust == Trust::User).map_err(ExecuteError)?);
    }
    found.iter().for_each(|line| sink.event(Event::Target(line)));
    Ok(found)
}

/// What is observed: what the document names, and what is around the run, whose tokens no document can have sent elsewhere.
fn observed(plan: &Plan, options: &Options, around: Nodes) -> tidemark_observe::Options {
    let Nodes { observed: mut around, ceph, .. } = around;
    let Observe { nodes, processes, mut ceph_sockets } = plan.observe.clone();
    let mut token = std::env::var("TIDEMARK_OBSERVE_TOKEN").ok();
    if options.trust == Trust::Network {
        token = None;
        ceph_sockets.clear();
    }
    around.retain(|node| !nodes.contains(&node.url));
    let named = nodes.into_iter().map(|url| RemoteNode { url, token: token.clone(), name: None });
    let nodes = named.chain(around).collect();
    tidemark_observe::Options { nodes, processes, ceph_sockets, ceph, token: None }
}

fn has_triggers(plan: &Plan) -> bool {
    plan.trigger.is_some() || plan.stages.iter().any(|stage| stage.trigger.is_some())
}

/// Starts a script, if the document names one and the operator allows it.
fn start_trigger(text: Option<&str>, options: &Options, sink: &mut dyn EventSink) -> Option<Trigger> {
    let started = Trigger::start(text?, options.trigger_directory.as_deref()?);
    started.inspect_err(|trouble| sink.event(Event::Trouble(trouble))).ok()
}

fn end_trigger(trigger: Option<Trigger>, sink: &mut dyn EventSink) {
    if let Some(Err(trouble)) = trigger.map(Trigger::end) {
        sink.event(Event::Trouble(&trouble));
    }
}

fn waiting((index, stage): (usize, &tidemark_plan::plan::Stage)) -> Stage {
    Stage {
        id: stage.id(index),
        name: stage.name.clone(),
        works: stage.works.iter().map(stage::planned).collect(),
        cell: stage.cell.clone(),
        ..Stage::default()
    }
}

/// Waits, unless the user ends the run.
fn pause(pause_ns: u64, sink: &mut dyn EventSink) {
    sink.event(Event::Pausing { pause_ns });
    let end = Instant::now() + Duration::from_nanos(pause_ns);
    while sink.stop_request() == StopRequest::None {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

fn state_of(stages: &[Stage], asked: StopRequest) -> State {
    let any = |state| stages.iter().any(|stage| stage.state == state);
    if asked > StopRequest::None || any(State::Interrupted) {
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
