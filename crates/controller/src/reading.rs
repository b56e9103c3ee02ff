//! Reading documents that anybody may have written: in a thread of its own with a deep stack, for a limited time, with nothing
//! of this machine in reach but what the operator has laid out.

use crate::api::Problem;
use crate::environment::{Secrets, restricted};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidemark_measure::record::Note;
use tidemark_measure::units;
use tidemark_plan::defaults::{MOST_STAGES, MOST_WORKS};
use tidemark_plan::diagnostic::{Code, Diagnostic, Severity};
use tidemark_plan::document::{self, Document};
use tidemark_plan::evaluation::Evaluation;
use tidemark_plan::forecast::{Forecast, forecast};
use tidemark_plan::plan::{Observe, Plan};
use tidemark_plan::registry::Registry;
use tidemark_plan::room::{self, Room};
use tidemark_plan::yaml::environment::given_up;

/// The largest document, bytes. COSBench's and ours are a few kilobytes; an evaluation of a hundred arms is some tens of them.
pub(crate) const LARGEST_DOCUMENT: usize = 1 << 20;

/// Reading takes milliseconds. What takes longer than this was not written to be run.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Readers at once for each [`Purpose`]. One whose time is over ends by itself, and counts until then: no flood of documents
/// takes all processors or much memory, and no flood of checks keeps a submission waiting.
const READERS: usize = 2;

/// Callers at once for each purpose, most of whom wait. Whoever comes then is told to come again: waiting takes a thread.
const CALLERS: usize = 8 * READERS;

/// How often one caller may be among them: a script that submits a few documents at once has to wait, and no more.
const OF_ONE_CALLER: usize = 2 * READERS;

/// Stack of a reader, bytes: deep nesting costs stack. Only what is used of it takes memory.
const STACK: usize = 256 << 20;

/// Workers of one stage beyond this are taken for a mistake: 24 kB each, on all drivers together.
const MOST_WORKERS: u64 = 10_000_000;

/// A document that can be run.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) name: String,
    pub(crate) format: &'static str,
    /// What may surprise its author.
    pub(crate) warnings: Vec<Problem>,
    /// The same as notes on its run.
    pub(crate) noted: Vec<Note>,
    pub(crate) what: What,
}

/// What a document is.
#[derive(Debug)]
pub(crate) enum What {
    /// One run. Its plan has the forecast's remarks among its notes.
    Workload { plan: Box<Plan>, forecast: Forecast },
    /// Many of them; one plan of each load, and what it does.
    Evaluation { evaluation: Box<Evaluation>, plans: Vec<Plan>, loads: Vec<Forecast> },
}

/// Why a document was not read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReadFailure {
    /// It is wrong.
    Wrong(Vec<Problem>),
    /// It cannot be read: a sentence.
    Refused(String),
    /// Too many are being read.
    Busy,
}

/// What a document is read for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose<'a> {
    /// Somebody who may not run it wants to know what it would do: no secret is read.
    Look(&'a str),
    /// Somebody wants to know what it would do.
    Check(&'a str),
    /// Somebody submits it.
    Submit(&'a str),
    /// It was submitted, and its turn has come.
    Run,
}

/// Reads documents.
#[derive(Clone)]
pub(crate) struct Reader {
    registry: Registry,
    secrets: Secrets,
    checks: Arc<Slots>,
    submissions: Arc<Slots>,
    runs: Arc<Slots>,
    timeout: Duration,
}

/// The places of readers for one purpose.
#[derive(Default)]
struct Slots {
    taken: Mutex<Taken>,
    freed: Condvar,
}

#[derive(Default)]
struct Taken {
    reading: usize,
    /// Those who read or wait.
    callers: Vec<String>,
}

/// A place among the callers, and then among the readers; free again when it is dropped.
struct Slot {
    slots: Arc<Slots>,
    caller: String,
    reads: bool,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock();
        taken.reading -= usize::from(self.reads);
        let own = taken.callers.iter().position(|caller| *caller == self.caller);
        own.map(|at| taken.callers.swap_remove(at));
        self.slots.freed.notify_all();
    }
}

impl Slots {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place until then; `caller` is whoever has a limited number of them.
    fn take(self: &Arc<Self>, caller: Option<&str>, until: Instant) -> Result<Slot, ReadFailure> {
        let mut taken = self.lock();
        if let Some(caller) = caller {
            let own = taken.callers.iter().filter(|known| *known == caller).count();
            if own >= OF_ONE_CALLER || taken.callers.len() >= CALLERS {
                return Err(ReadFailure::Busy);
            }
        }
        let caller = caller.unwrap_or_default().to_owned();
        taken.callers.push(caller.clone());
        let mut slot = Slot { slots: self.clone(), caller, reads: false };
        while taken.reading >= READERS {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // Before the slot, which takes the lock.
                drop(taken);
                return Err(ReadFailure::Busy);
            }
            taken = self.freed.wait_timeout(taken, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        taken.reading += 1;
        slot.reads = true;
        drop(taken);
        Ok(slot)
    }
}

impl Reader {
    pub(crate) fn new(secrets: Secrets, registry: Registry) -> Self {
        let (checks, submissions, runs) = Default::default();
        Self { secrets, registry, checks, submissions, runs, timeout: TIMEOUT }
    }

    /// Reads a document as far as it can be known before it runs.
    pub(crate) fn read(&self, text: &str, purpose: Purpose<'_>) -> Result<Reading, ReadFailure> {
        if text.len() > LARGEST_DOCUMENT {
            return Err(ReadFailure::Refused(format!(
                "the document has {}; the limit is {}",
                units::bytes(text.len() as u64),
                units::bytes(LARGEST_DOCUMENT as u64)
            )));
        }
        let secrets = match purpose {
            Purpose::Look(_) => None,
            Purpose::Check(_) | Purpose::Submit(_) | Purpose::Run => Some(self.secrets.clone()),
        };
        let (text, registry) = (text.to_owned(), self.registry.clone());
        self.guarded(purpose, move |waited_for| open(&text, secrets.as_ref(), &registry, waited_for))?
    }

    /// Does something that may take too long or panic, and gives up on it then: it can ask whether it is still waited for.
    fn guarded<T: Send + 'static>(
        &self,
        purpose: Purpose<'_>,
        work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
    ) -> Result<T, ReadFailure> {
        let until = Instant::now() + self.timeout;
        let slot = match purpose {
            Purpose::Look(caller) | Purpose::Check(caller) => self.checks.take(Some(caller), until),
            Purpose::Submit(caller) => self.submissions.take(Some(caller), until),
            Purpose::Run => self.runs.take(None, until),
        }?;
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let until = Instant::now() + self.timeout;
        let guarded = move || {
            let done = catch_unwind(AssertUnwindSafe(|| work(&|| Instant::now() < until)));
            drop(slot);
            // Nobody waits for it any more when its time was over.
            let _ = sender.send(done);
        };
        let thread = std::thread::Builder::new().name("reader".into()).stack_size(STACK);
        thread.spawn(guarded).map_err(|_| ReadFailure::Busy)?;
        match receiver.recv_timeout(self.timeout) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => Err(ReadFailure::Refused(
                "internal error while reading the document: please report this as a bug and attach the document"
                    .into(),
            )),
            Err(_) => Err(ReadFailure::Refused(format!(
                "reading the document took longer than {}: simplify it",
                units::duration_ns(self.timeout.as_nanos() as u64)
            ))),
        }
    }
}

fn open(
    text: &str,
    secrets: Option<&Secrets>,
    registry: &Registry,
    waited_for: &dyn Fn() -> bool,
) -> Result<Reading, ReadFailure> {
    restricted(secrets, registry, waited_for, |environment| {
        let wrong = |diagnostics: Vec<Diagnostic>| ReadFailure::Wrong(problems(text, &diagnostics));
        match document::open(text, Path::new(""), environment).map_err(wrong)? {
            Document::Workload(read) => {
                let mut plan = read.plan;
                within_limits(&plan)?;
                let forecast = forecast(&plan, registry);
                plan.notes.extend(forecast.notes.iter().cloned());
                plan.notes.extend(withheld(&plan.observe));
                Ok(Reading {
                    name: plan.name.clone(),
                    format: read.format,
                    warnings: problems(text, &read.warnings),
                    noted: read.warnings.iter().map(|warning| warning.note(text)).collect(),
                    what: What::Workload { plan: Box::new(plan), forecast },
                })
            }
            Document::Evaluation(mut evaluation, warnings) => {
                not_here(&evaluation)?;
                let (mut plans, mut loads, room) = (Vec::new(), Vec::new(), Room::default());
                for load in 0..evaluation.loads.len() {
                    if !waited_for() {
                        return Err(wrong(vec![given_up()]));
                    }
                    let first = evaluation.loads[load].levels.known().into_iter().next().unwrap_or_default();
                    let plan = evaluation.sketch(0, load, &first, 1, environment).map_err(|diagnostics| {
                        // They point into the load's own text.
                        ReadFailure::Wrong(problems(evaluation.source(load).0, &diagnostics))
                    })?;
                    within_limits(&plan)?;
                    if !plan.stages.iter().flat_map(|stage| &stage.works).all(|work| room.take(work)) {
                        return Err(ReadFailure::Refused(format!(
                            "the loads take more than {} together: use fewer of them, or shorter ones",
                            units::bytes(room::MOST as u64)
                        )));
                    }
                    loads.push(forecast(&plan, registry));
                    plans.push(plan);
                }
                let notes: Vec<Note> = plans.iter().flat_map(|plan| withheld(&plan.observe)).collect();
                for note in notes {
                    if !evaluation.notes.contains(&note) {
                        evaluation.notes.push(note);
                    }
                }
                Ok(Reading {
                    name: evaluation.name.clone(),
                    format: "Tidemark evaluation",
                    warnings: problems(text, &warnings),
                    noted: Vec::new(),
                    what: What::Evaluation { evaluation, plans, loads },
                })
            }
        }
    })
}

fn within_limits(plan: &Plan) -> Result<(), ReadFailure> {
    if plan.stages.len() > MOST_STAGES {
        return Err(ReadFailure::Refused(format!(
            "the document has {} stages; the limit is {}",
            units::count(plan.stages.len() as u64),
            units::count(MOST_STAGES as u64)
        )));
    }
    for stage in &plan.stages {
        if stage.works.len() > MOST_WORKS {
            return Err(ReadFailure::Refused(format!(
                "stage {} has {} works; the limit is {}",
                stage.name,
                units::count(stage.works.len() as u64),
                units::count(MOST_WORKS as u64)
            )));
        }
        let workers =
            stage.works.iter().map(|work| u64::from(work.load.workers)).fold(0, u64::saturating_add);
        if workers > MOST_WORKERS {
            return Err(ReadFailure::Refused(format!(
                "stage {} has {} workers; the limit is {}",
                stage.name,
                units::count(workers),
                units::count(MOST_WORKERS)
            )));
        }
    }
    Ok(())
}

/// What is not observed for a submitted document although it says so: `execute` keeps it from the run.
fn withheld(observe: &Observe) -> Option<Note> {
    let nodes = "nodes under `observe` are polled without a token: those that require one refuse";
    let sockets = "the sockets under `ceph_sockets` are local to the controller and are not used";
    let text = match (observe.nodes.is_empty(), observe.ceph_sockets.is_empty()) {
        (true, true) => return None,
        (false, true) => nodes.to_owned(),
        (true, false) => sockets.to_owned(),
        (false, false) => format!("{nodes}; {sockets}"),
    };
    Some(Note {
        topic: "observe".into(),
        text: format!("this document was submitted over the network: {text}"),
    })
}

/// What an evaluation may do only where its user sits.
fn not_here(evaluation: &Evaluation) -> Result<(), ReadFailure> {
    for arm in &evaluation.arms {
        let what = match (arm.has_commands(), arm.requests.first()) {
            (true, _) => "has shell commands, which a controller never runs".into(),
            (false, Some(request)) => {
                format!("has a `{}`, which a controller never brings up", request.key())
            }
            (false, None) => continue,
        };
        return Err(ReadFailure::Refused(format!(
            "arm `{}` {what}: run the document with `tidemark run` on the machine where the arm is set up",
            arm.name
        )));
    }
    Ok(())
}

/// Remarks with their places in the text.
fn problems(text: &str, diagnostics: &[Diagnostic]) -> Vec<Problem> {
    diagnostics.iter().map(|diagnostic| problem(text, diagnostic)).collect()
}

fn problem(text: &str, diagnostic: &Diagnostic) -> Problem {
    let span = &diagnostic.span;
    let (line, column) = match span.start == 0 && span.end == 0 {
        true => (0, 0),
        false => diagnostic.line_and_column(text),
    };
    let length = text.get(span.clone()).map_or(span.len(), |place| place.chars().count());
    let help = match diagnostic.code {
        Code::UnsetVariable(_) => {
            "submitted documents can use only variables whose name starts with TIDEMARK_SECRET_; set it in the \
             controller's environment"
                .into()
        }
        _ => diagnostic.help.clone(),
    };
    Problem {
        warning: diagnostic.severity == Severity::Warning,
        general: false,
        line: line as u32,
        column: column as u32,
        length: length as u32,
        message: diagnostic.message.clone(),
        help,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Somebody who checks a document.
    const VERA: Purpose<'_> = Purpose::Check("vera");

    /// Reads patiently: what is slow here may be the machine.
    fn read(text: &str) -> Result<Reading, ReadFailure> {
        let reader = Reader::new(Secrets::default(), tidemark_engines::registry());
        Reader { timeout: Duration::from_secs(120), ..reader }.read(text, VERA)
    }

    #[test]
    fn problems_have_their_places() {
        let text = "name: x\ntarget: mock\nstages:\n  - load: {for: 1s, wörkers: 3}\n";
        let Err(ReadFailure::Wrong(problems)) = read(text) else { panic!("it is wrong") };
        let typo = problems.iter().find(|problem| problem.message.contains("wörkers")).unwrap();
        assert_eq!((typo.line, typo.column, typo.length, typo.warning), (4, 21, 7, false), "{typo:?}");
        let Err(ReadFailure::Wrong(problems)) = read("") else { panic!("it is empty") };
        assert_eq!(problems[0].line, 0);
    }

    #[test]
    fn a_variable_of_the_controller_is_not_given_away() {
        let text = "name: x\ntarget: {kind: s3, endpoint: 'http://127.0.0.1:1', access_key: '${PATH}', secret_key: b}\n\
                    stages: [{load: {for: 1s, containers: 1, operations: [{get: {objects: 1}}]}}]\n";
        let Err(ReadFailure::Wrong(problems)) = read(text) else { panic!("PATH is not for documents") };
        assert!(problems.iter().any(|problem| problem.help.contains("TIDEMARK_SECRET_")), "{problems:?}");
        let home = std::env::var("PATH").unwrap();
        assert!(!format!("{problems:?}").contains(&home));
    }

    #[test]
    fn what_is_not_observed_for_it_is_said() {
        let text = "name: x\nobserve: {nodes: ['http://10.0.0.2:9750'], ceph_sockets: [/var/run/ceph]}\n\
                    target: {kind: mock, delay: 1ms}\n\
                    stages: [{load: {for: 1s, containers: 1, operations: [{get: {objects: 1}}]}}]\n";
        let What::Workload { plan, .. } = read(text).unwrap().what else { panic!("it is a workload") };
        let note = plan.notes.iter().find(|note| note.topic == "observe").unwrap();
        assert!(note.text.contains("without a token") && note.text.contains("ceph_sockets"), "{note:?}");
        let What::Workload { plan, .. } = read(&text.replace("observe:", "x-observe:")).unwrap().what else {
            panic!("it is a workload")
        };
        assert!(plan.notes.iter().all(|note| note.topic != "observe"), "{:?}", plan.notes);
    }

    #[test]
    fn what_an_evaluation_may_not_do_here_is_said() {
        let load = "loads:\n  - name: l\n    target: {kind: mock, delay: 1ms}\n    \
                    stages: [{load: {for: 1s, containers: 1, operations: [{get: {objects: 1}}]}}]\n";
        let with = |arm: &str| read(&format!("name: e\narms: [{{name: a}}, {arm}]\n{load}"));
        let reading = with("{name: b}").unwrap();
        assert!(matches!(reading.what, What::Evaluation { .. }) && reading.format == "Tidemark evaluation");
        for (arm, why) in
            [("{name: b, lab: baseline}", "lab"), ("{name: b, set_up: [echo A=b]}", "shell commands")]
        {
            let Err(ReadFailure::Refused(reason)) = with(arm) else { panic!("{arm}") };
            assert!(reason.contains(why) && reason.contains("tidemark run"), "{reason}");
        }
    }

    #[test]
    fn hostile_documents_are_refused_or_cheap() {
        let deep = "[".repeat(LARGEST_DOCUMENT / 2);
        let deep_map = "{a: ".repeat(LARGEST_DOCUMENT / 8);
        let deep_xml = "<workload>".repeat(LARGEST_DOCUMENT / 16);
        let nested = format!("name: x\nstages: {}", "- ".repeat(100_000));
        let laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned()
            + &('b'..='k')
                .map(|n| {
                    format!("{n}: &{n} [{}]\n", vec![format!("*{}", (n as u8 - 1) as char); 9].join(","))
                })
                .collect::<String>();
        let entities = "<!DOCTYPE w [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]><workload name=\"&b;\"/>";
        let too_large = "x".repeat(LARGEST_DOCUMENT + 1);
        let stages = format!(
            "name: x\ntarget: {{kind: mock, delay: 1ms}}\nstages:\n{}",
            "- pause: 1s\n".repeat(80_000)
        );
        for text in
            [deep.as_str(), &deep_map, &deep_xml, &nested, &laughs, entities, &too_large, "\0", "\u{feff}"]
        {
            let start = Instant::now();
            let outcome = read(text);
            assert!(outcome.is_err(), "{}", &text[..text.len().min(40)]);
            // A reader that is never given up would hang here.
            assert!(start.elapsed() < Duration::from_secs(60));
            if let Err(ReadFailure::Refused(reason)) = outcome {
                assert!(!reason.contains("bug"), "{}: {reason}", &text[..text.len().min(40)]);
            }
        }
        let too_many = |text: &str, what: &str| {
            let Err(ReadFailure::Wrong(problems)) = read(text) else { panic!("it has too many {what}") };
            assert!(problems.iter().any(|problem| problem.message.contains(what)), "{problems:?}");
        };
        too_many(&stages, "000 stages; the limit");
        let work = "   - load: {for: 1s, containers: 1, operations: [{get: {objects: 1}}]}\n".repeat(1_001);
        let works = format!("name: x\ntarget: {{kind: mock, delay: 1ms}}\nstages:\n- works:\n{work}");
        too_many(&works, "001 works; the limit");
        for workers in ["1000000000", "18446744073709551615", "-1", "1e9"] {
            let yaml = format!(
                "name: x\ntarget: {{kind: mock, delay: 1ms}}\nstages: [{{load: {{for: 1s, workers: {workers}, containers: 1, operations: [{{get: {{objects: 1}}}}]}}}}]\n"
            );
            assert!(read(&yaml).is_err(), "{workers}");
            let xml = format!(
                "<workload name=\"x\"><storage type=\"none\"/><workflow><workstage name=\"m\"><work name=\"w\" workers=\"{workers}\" \
                 runtime=\"1\"><operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=c(1)\"/></work></workstage>\
                 </workflow></workload>"
            );
            assert!(read(&xml).is_err(), "{workers}");
        }
    }

    #[test]
    fn a_panic_becomes_a_sentence_and_a_slow_one_is_given_up() {
        let patient = Reader {
            timeout: Duration::from_secs(120),
            ..Reader::new(Secrets::default(), tidemark_engines::registry())
        };
        let Err(ReadFailure::Refused(bug)) = patient.guarded(VERA, |_| panic!("for the test")) else {
            panic!("it went well")
        };
        assert!(bug.contains("report this as a bug"), "{bug}");
        let reader = Reader { timeout: Duration::from_millis(200), ..patient };
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        for _ in 0..READERS {
            let ended = ended.clone();
            let slow = reader
                .guarded(VERA, move |_| ended.lock().map(|ended| ended.recv().is_ok()).unwrap_or_default());
            assert!(matches!(slow, Err(ReadFailure::Refused(reason)) if reason.contains("longer")));
        }
        for caller in ["vera", "victor"] {
            let busy = reader.guarded(Purpose::Check(caller), |_| 1);
            assert_eq!(busy, Err(ReadFailure::Busy), "they have not ended yet");
        }
        let others = [Purpose::Submit("vera"), Purpose::Run].map(|purpose| reader.guarded(purpose, |_| 1));
        assert_eq!(others, [Ok(1), Ok(1)], "checks keep no submission waiting");
        drop(end);
        let until = Instant::now() + Duration::from_secs(60);
        while reader.guarded(VERA, |_| 1) != Ok(1) {
            assert!(Instant::now() < until, "their places are free again");
        }
    }

    #[test]
    fn one_caller_does_not_keep_all_others_waiting() {
        let reader = Reader {
            timeout: Duration::from_secs(120),
            ..Reader::new(Secrets::default(), tidemark_engines::registry())
        };
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        std::thread::scope(|scope| {
            for _ in 0..OF_ONE_CALLER {
                let (reader, ended) = (&reader, ended.clone());
                scope.spawn(move || {
                    reader.guarded(VERA, move |_| drop(ended.lock().map(|ended| ended.recv())))
                });
            }
            let until = Instant::now() + Duration::from_secs(60);
            while reader.checks.lock().callers.len() < OF_ONE_CALLER {
                assert!(Instant::now() < until);
                std::thread::yield_now();
            }
            assert_eq!(reader.guarded(VERA, |_| 1), Err(ReadFailure::Busy), "she has her share");
            let (own, victor) = (&reader, Purpose::Check("victor"));
            let waits = scope.spawn(move || own.guarded(victor, |_| 1));
            while reader.checks.lock().callers.len() <= OF_ONE_CALLER {
                assert!(Instant::now() < until);
                std::thread::yield_now();
            }
            drop(end);
            assert_eq!(waits.join().unwrap(), Ok(1), "another one has waited for his turn");
        });
    }

    #[test]
    fn a_reader_ends_when_nobody_waits_any_more() {
        let stages = |one: &str| one.repeat(200);
        let yaml = format!(
            "name: x\ntarget: {{kind: mock, delay: 1ms}}\nstages:\n{}",
            stages("- load: {for: 1s, containers: 1, operations: [{get: {objects: 1}}]}\n")
        );
        let work = "<workstage name=\"m\"><work name=\"w\" workers=\"1\" runtime=\"1\"><operation type=\"read\" ratio=\"100\" \
                    config=\"containers=c(1);objects=c(1)\"/></work></workstage>";
        let xml = format!(
            "<workload name=\"x\"><storage type=\"mock\"/><workflow>{}</workflow></workload>",
            stages(work)
        );
        let fio: String = (0..200).map(|job| format!("[j{job}]\nrw=read\n")).collect();
        let evaluation = format!(
            "name: e\narms: [{{name: a, target: {{kind: mock, delay: 1ms}}}}]\nloads:\n{}",
            (0..200)
                .map(|load| format!(
                    "- {{name: l{load}, stages: [{{load: {{for: 1s, containers: 1, operations: [{{get: {{objects: 1}}}}]}}}}]}}\n"
                ))
                .collect::<String>()
        );
        for text in [yaml, xml, fio, evaluation] {
            let asked = std::cell::Cell::new(0);
            let waited_for = || {
                asked.set(asked.get() + 1);
                asked.get() <= 3
            };
            let outcome = open(&text, None, &tidemark_engines::registry(), &waited_for);
            let Err(ReadFailure::Wrong(problems)) = outcome else { panic!("{}", &text[..40]) };
            assert!(problems.iter().any(|problem| problem.message.contains("too long")), "{problems:?}");
            assert!(asked.get() <= 6, "it went on: {} of {}", asked.get(), &text[..40]);
        }
    }

    #[test]
    fn documents_that_would_grow_are_refused_before_they_do() {
        let long = "x".repeat(400_000);
        let prepare = "- prepare: {containers: 1, objects: 1-10, sizes: 1KB}\n".repeat(900);
        let jobs: String = (0..900).map(|job| format!("[j{job}]\nrw=read\n")).collect();
        let work = "<work name=\"w\" workers=\"1\" runtime=\"1\"><operation type=\"read\" ratio=\"100\" \
                    config=\"containers=c(1);objects=c(1)\"/></work>";
        let load = |name: usize| {
            format!(
                "- {{name: l{name}, stages: [{{load: {{for: 1s, containers: 1, operations: [{{get: {{objects: 1}}}}]}}}}]}}\n"
            )
        };
        let evaluation = |levels: &str| {
            let loads: String = (0..900).map(load).collect();
            format!(
                "name: e\narms: [{{name: a, target: {{kind: mock, delay: 1ms}}}}]\nlevels: {levels}\nloads:\n{loads}"
            )
        };
        let hundred: Vec<String> = (1..=100).map(|value| value.to_string()).collect();
        let rates: Vec<String> = (1..=100).map(|value| format!("{value}/s")).collect();
        let product = format!("{{workers: [{}], rate: [{}]}}", hundred.join(","), rates.join(","));
        let sections: String = (0..30_000).map(|job| format!("[{job}]\n")).collect();
        let aliases = format!("name: x\nx-a: &a \"{long}\\n\"\nx-b: [{}]\n", vec!["*a"; 90].join(","));
        for (what, text, why) in [
            ("sections", sections, "job sections"),
            ("options of all jobs", format!("[global]\ndescription={long}\n{jobs}"), "whole file"),
            (
                "files",
                format!("[a]\nrw=read\nfilename={}\ndirectory={}\n", "a:".repeat(900), "b:".repeat(900)),
                "files",
            ),
            (
                "names of files",
                format!("[a]\nrw=read\nnumjobs=900\nfilename_format={}\n", "$jobname".repeat(9_000)),
                "names a file",
            ),
            (
                "names",
                format!(
                    "name: x\ntarget: {{kind: mock, delay: 1ms}}\nnaming: {{object_prefix: {long}}}\nstages:\n{prepare}"
                ),
                "object_prefix",
            ),
            (
                "targets",
                format!(
                    "name: x\ntarget: {{kind: s3, endpoint: [{}], access_key: a, secret_key: b}}\nstages:\n{prepare}",
                    (0..900)
                        .map(|host| format!("'http://{}{host}.example'", "h".repeat(40)))
                        .collect::<Vec<_>>()
                        .join(",")
                ),
                "take more than",
            ),
            (
                "configs",
                format!(
                    "<workload name=\"x\" config=\"oprefix={long}\"><storage type=\"mock\"/><workflow><workstage name=\"m\">{}</workstage></workflow></workload>",
                    work.repeat(900)
                ),
                "take more than",
            ),
            ("levels", evaluation(&product), "levels together"),
            ("aliases", aliases, "aliases"),
        ] {
            assert!(text.len() < LARGEST_DOCUMENT, "{what}");
            match read(&text) {
                Err(ReadFailure::Wrong(problems)) => {
                    assert!(
                        problems.iter().any(|problem| problem.message.contains(why)),
                        "{what}: {problems:?}"
                    );
                }
                Err(ReadFailure::Refused(reason)) => assert!(reason.contains(why), "{what}: {reason}"),
                other => panic!("{what}: {}", other.is_ok()),
            }
        }
    }
}
