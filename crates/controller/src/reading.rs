//! Reading documents that anybody may have written: in a thread of its own with a deep stack, for a limited time, with nothing
//! of this machine in reach but what the operator has laid out.

use crate::api::Problem;
use crate::environment::restricted;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidemark_measure::record::Note;
use tidemark_measure::units;
use tidemark_plan::diagnostic::{Code, Diagnostic, Severity};
use tidemark_plan::document::{self, Document};
use tidemark_plan::evaluation::Evaluation;
use tidemark_plan::forecast::{Forecast, forecast};
use tidemark_plan::plan::{Observe, Plan};
use tidemark_plan::registry::Registry;

/// The largest document, bytes. COSBench's and ours are a few kilobytes; an evaluation of a hundred arms is some tens of them.
pub(crate) const LARGEST_DOCUMENT: usize = 1 << 20;

/// Reading takes milliseconds. What takes longer than this was not written to be run.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Readers at once. One whose time is over ends by itself and counts until then, so that no flood of documents takes all
/// processors.
const READERS: usize = 4;

/// Stack of a reader, bytes: deep nesting costs stack. Only what is used of it takes memory.
const STACK: usize = 256 << 20;

/// Stages of a document beyond this are taken for a mistake: all of them are shown, told and kept.
const MOST_STAGES: usize = 10_000;

/// Works of one stage beyond this are taken for a mistake: each has a thread pool of its own on every driver.
const MOST_WORKS: usize = 1_000;

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

/// Reads documents.
#[derive(Clone)]
pub(crate) struct Reader {
    registry: Registry,
    secrets: Option<PathBuf>,
    slots: Arc<Slots>,
    timeout: Duration,
}

#[derive(Default)]
struct Slots {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// A place among the readers; free again when it is dropped.
struct Slot(Arc<Slots>);

impl Drop for Slot {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_one();
    }
}

impl Reader {
    pub(crate) fn new(secrets: Option<PathBuf>, registry: Registry) -> Self {
        Self { secrets, registry, slots: Arc::default(), timeout: TIMEOUT }
    }

    /// Reads a document as far as it can be known before it runs.
    pub(crate) fn read(&self, text: &str) -> Result<Reading, ReadFailure> {
        if text.len() > LARGEST_DOCUMENT {
            return Err(ReadFailure::Refused(format!(
                "the document has {}; the limit is {}",
                units::bytes(text.len() as u64),
                units::bytes(LARGEST_DOCUMENT as u64)
            )));
        }
        let (text, secrets, registry) = (text.to_owned(), self.secrets.clone(), self.registry.clone());
        self.guarded(move || open(&text, secrets.as_deref(), &registry))?
    }

    /// Does something that may take too long or panic, and gives up on it then.
    fn guarded<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReadFailure> {
        let slot = self.slot()?;
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let guarded = move || {
            let done = catch_unwind(AssertUnwindSafe(work));
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

    fn slot(&self) -> Result<Slot, ReadFailure> {
        let until = Instant::now() + self.timeout;
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken >= READERS {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ReadFailure::Busy);
            }
            taken = self.slots.freed.wait_timeout(taken, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken += 1;
        Ok(Slot(self.slots.clone()))
    }
}

fn open(text: &str, secrets: Option<&Path>, registry: &Registry) -> Result<Reading, ReadFailure> {
    restricted(secrets, registry, |environment| {
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
                let (mut plans, mut loads) = (Vec::new(), Vec::new());
                for load in 0..evaluation.loads.len() {
                    let first = evaluation.loads[load].levels.known().into_iter().next().unwrap_or_default();
                    let plan = evaluation.sketch(0, load, &first, 1, environment).map_err(|diagnostics| {
                        // They point into the load's own text.
                        ReadFailure::Wrong(problems(evaluation.source(load).0, &diagnostics))
                    })?;
                    within_limits(&plan)?;
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
            (true, _) => {
                "has shell commands (set_up, reset or tear_down), which a controller never runs".into()
            }
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

    fn read(text: &str) -> Result<Reading, ReadFailure> {
        Reader::new(None, tidemark_engines::registry()).read(text)
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
        let Err(ReadFailure::Refused(reason)) = read(&stages) else { panic!("it has too many stages") };
        assert!(reason.contains("stages") || reason.contains("longer"), "{reason}");
        let work = "   - load: {for: 1s, containers: 1, operations: [{get: {objects: 1}}]}\n".repeat(1_001);
        let works = format!("name: x\ntarget: {{kind: mock, delay: 1ms}}\nstages:\n- works:\n{work}");
        let Err(ReadFailure::Refused(reason)) = read(&works) else { panic!("it has too many works") };
        assert!(reason.contains("works"), "{reason}");
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
        let patient =
            Reader { timeout: Duration::from_secs(120), ..Reader::new(None, tidemark_engines::registry()) };
        let Err(ReadFailure::Refused(bug)) = patient.guarded(|| panic!("for the test")) else {
            panic!("it went well")
        };
        assert!(bug.contains("report this as a bug"), "{bug}");
        let reader = Reader { timeout: Duration::from_millis(200), ..patient };
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        for _ in 0..READERS {
            let ended = ended.clone();
            let slow =
                reader.guarded(move || ended.lock().map(|ended| ended.recv().is_ok()).unwrap_or_default());
            assert!(matches!(slow, Err(ReadFailure::Refused(reason)) if reason.contains("longer")));
        }
        assert_eq!(reader.guarded(|| 1), Err(ReadFailure::Busy), "they have not ended yet");
        drop(end);
        let until = Instant::now() + Duration::from_secs(60);
        while reader.guarded(|| 1) != Ok(1) {
            assert!(Instant::now() < until, "their places are free again");
        }
    }
}
