//! What every run has in common, wherever its plan came from: execute it, show it, keep it, report it.

use crate::cli::Running;
use crate::exit::{Exit, Stop};
use crate::progress::{Progress, Show};
use crate::signals::Signals;
use crate::terminal::{self, Style, Terminal, one_line};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_control::backend::BackendFactory;
use tidemark_control::execute::{self, Executed, Options, Trust};
use tidemark_control::local::Local;
use tidemark_control::provenance;
use tidemark_control::witness::Witness;
use tidemark_judge::{Judgement, Severity};
use tidemark_measure::record::{Provenance, Run, State};
use tidemark_measure::units;
use tidemark_plan::forecast::forecast;
use tidemark_plan::plan::Plan;
use tidemark_store::Store;

/// The limit of lines about what could not be observed.
const GAPS_MOST: usize = 4;

/// Where a plan came from.
pub(crate) struct Origin {
    /// The document's path, or empty.
    pub(crate) path: String,
    /// What kind of document it was.
    pub(crate) format: String,
    /// Its text, secrets redacted.
    pub(crate) document: String,
    /// The directory of scripts for its triggers.
    pub(crate) trigger_directory: Option<PathBuf>,
}

/// What carries a plan out, and by what the user stops it.
pub(crate) struct Means {
    /// Where its load comes from.
    pub(crate) backends: Arc<dyn BackendFactory>,
    pub(crate) signals: Signals,
    /// Who else watches the run.
    pub(crate) witness: Option<Arc<dyn Witness>>,
}

impl Means {
    /// This process.
    pub(crate) fn local() -> Self {
        Self { backends: Arc::new(Local), signals: Signals::listen(), witness: None }
    }

    /// This process, if the machine has the memory for the plan.
    pub(crate) fn here(plan: &Plan) -> Result<Self, Stop> {
        let (needed, there) =
            (forecast(plan, &tidemark_engines::registry()).memory_bytes, provenance::host().memory_bytes);
        if there > 0 && needed > there {
            let (needed, there) = (units::bytes(needed), units::bytes(there));
            return Err(Stop::not_ready(format!(
                "this requires about {needed} of memory, and the machine has {there}: use fewer or smaller objects, \
                 fewer workers, or an embedded server with `place: disk`"
            )));
        }
        Ok(Self::local())
    }
}

/// Opens the requested result store, or the default one. Runs whose processes died are rebuilt first.
pub(crate) fn open_store(path: Option<PathBuf>) -> Result<Store, Stop> {
    let path = path.unwrap_or_else(tidemark_store::default_path);
    let mut store = Store::open(&path).map_err(Stop::not_ready)?;
    // What cannot be written now is rebuilt whenever it is read.
    let _ = store.salvage(tidemark_control::listing::of_run);
    Ok(store)
}

/// Executes a plan; shows, stores and reports the result.
pub(crate) fn execute(
    plan: &Plan,
    origin: Origin,
    running: &Running,
    means: Means,
    store_path: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let machine = provenance::of_this_machine(env!("CARGO_PKG_VERSION"));
    let mut store = match running.no_store {
        true => None,
        false => Some(open_store(store_path.clone())?),
    };
    let provenance = Provenance {
        command: command_line(),
        path: origin.path,
        format: origin.format,
        document: origin.document,
        ..machine
    };
    let options = Options {
        threads: running.threads,
        trigger_directory: origin.trigger_directory,
        skip_preflight: running.skip_preflight,
        allow_destroy: running.allow_destroy.clone(),
        scratch: store.as_ref().and_then(|store| store.path().parent()).map(Path::to_owned),
        witness: means.witness,
        ..Options::new(tidemark_engines::registry(), means.backends, Trust::User)
    };
    let mut progress = Progress::new(show(running, terminal), terminal, means.signals, plan);
    let Executed { run, stored } =
        execute::execute(plan, provenance, &options, store.as_mut(), &mut progress)
            .map_err(Stop::not_ready)?;
    let judgement = tidemark_judge::judge(&run);
    let report = match running.no_report {
        true => None,
        false => Some(write_report(&run, &judgement, running.report.clone(), store_path, terminal)),
    };
    let report = report.flatten();
    if let Some(directory) = &running.cosbench_archive {
        match tidemark_report::cosbench_archive(&run, &run.provenance.document, directory) {
            Ok(()) if !running.json => terminal.remark(&format!("COSBench archive: {}", directory.display())),
            Ok(()) => {}
            Err(error) => {
                terminal::unwritten();
                terminal.remark(&format!("tidemark: {error}"));
            }
        }
    }
    if running.json {
        let report = report.as_deref().map(Path::display).map(|path| path.to_string());
        let parsed: serde_json::Value =
            serde_json::from_str(&tidemark_report::json(&run, &judgement)).unwrap_or_default();
        terminal
            .print(&json!({"event": "run", "stored": stored, "report": report, "run": parsed}).to_string());
    } else {
        summary(&run, &judgement, terminal);
        closing(&run, stored, report.as_deref(), terminal);
    }
    Ok(exit_of(&run, &judgement))
}

/// How a run is shown while it is in progress.
pub(crate) fn show(running: &Running, terminal: Terminal) -> Show {
    match (running.json, running.quiet, terminal.live) {
        (true, ..) => Show::Json,
        (_, true, _) => Show::Nothing,
        (.., true) => Show::Bars,
        _ => Show::Lines,
    }
}

/// The command line with the values of secrets left out.
pub(crate) fn command_line() -> String {
    let mut words = Vec::new();
    let mut hide = false;
    for word in std::env::args() {
        let secret = |name: &str| name == "--secret-key" || name == "--session-token";
        words.push(match word.split_once('=') {
            _ if hide => "***".to_owned(),
            Some((name, _)) if secret(name) => format!("{name}=***"),
            _ if word.contains(' ') || word.contains('(') => format!("'{word}'"),
            _ => word.clone(),
        });
        hide = secret(&word);
    }
    words.join(" ")
}

fn write_report(
    run: &Run,
    judgement: &Judgement,
    path: Option<PathBuf>,
    store_path: Option<PathBuf>,
    terminal: Terminal,
) -> Option<PathBuf> {
    let path = path.unwrap_or_else(|| {
        let store = store_path.unwrap_or_else(tidemark_store::default_path);
        let name = match run.id {
            0 => format!("unstored-{}.html", run.started_unix_ns / 1_000_000_000),
            id => format!("run-{id}.html"),
        };
        store.with_file_name("reports").join(name)
    });
    let html = tidemark_report::html(run, judgement);
    write(&path, html.as_bytes(), terminal).then_some(path)
}

/// Writes a report, and creates its directories; reports a failure.
pub(crate) fn write(path: &Path, content: &[u8], terminal: Terminal) -> bool {
    let written =
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, content));
    if let Err(error) = &written {
        terminal::unwritten();
        terminal.remark(&format!("tidemark: cannot write the report to {}: {error}", path.display()));
    }
    written.is_ok()
}

/// How something ended, and whether its numbers hold, in a word or two. Both are said where both are news.
pub(crate) fn head(state: State, is_valid: bool) -> (Style, &'static str) {
    match (state, is_valid) {
        (State::Failed, false) => (Style::Bad, "FAILED, INVALID"),
        (State::Interrupted, false) => (Style::Bad, "INTERRUPTED, INVALID"),
        (_, false) => (Style::Bad, "INVALID"),
        (State::Failed, true) => (Style::Bad, "FAILED"),
        (State::Interrupted, true) => (Style::Warning, "INTERRUPTED"),
        (_, true) => (Style::Good, "VALID"),
    }
}

/// The result on the terminal: the verdict, what was found, the numbers.
pub(crate) fn summary(run: &Run, judgement: &Judgement, terminal: Terminal) {
    terminal.print("");
    let (style, word) = head(run.state, judgement.is_valid());
    let critical = judgement.findings.iter().filter(|finding| finding.severity == Severity::Critical).count();
    let (style, but) = match critical {
        0 => (style, String::new()),
        1 => (Style::Bad, ", 1 critical finding".to_owned()),
        more => (Style::Bad, format!(", {more} critical findings")),
    };
    let head = terminal.paint(style, &format!("{word}{but}"));
    terminal.line(&format!("{head}  {}", terminal.paint(Style::Strong, &one_line(&run.name))));
    for sentence in tidemark_judge::verdict_sentences(run, judgement) {
        terminal.line(&format!("  {sentence}"));
    }
    for finding in &judgement.findings {
        let (style, mark) = match finding.severity {
            Severity::Critical => (Style::Bad, "critical"),
            Severity::Warning => (Style::Warning, "warning "),
            Severity::Note => (Style::Faint, "note    "),
            Severity::Good if finding.what.is_evidence() => (Style::Good, "proven  "),
            Severity::Good => continue,
        };
        let place = terminal.paint(Style::Faint, &format!("({})", finding.place()));
        terminal.line(&format!("  {} {} {place}", terminal.paint(style, mark), finding.title()));
        if finding.severity >= Severity::Warning || finding.what.is_evidence() {
            finding.evidence().iter().for_each(|line| terminal.line(&format!("             {line}")));
        }
    }
    terminal.print("");
    terminal.print(&super::table::table(run));
    not_observed(std::slice::from_ref(run), terminal);
    for note in &run.notes {
        terminal.line(&terminal.paint(Style::Faint, &format!("note ({}): {}", note.topic, note.text)));
    }
}

/// What observers could not see, each thing once: an empty chart would not explain itself.
pub(crate) fn not_observed(runs: &[Run], terminal: Terminal) {
    let mut gaps: Vec<String> = Vec::new();
    let all = runs.iter().flat_map(|run| &run.nodes);
    for (node, gap) in all.flat_map(|node| node.gaps.iter().map(move |gap| (node, gap))) {
        // Of this machine that is clear.
        let is_named = node.source == "local" || gap.starts_with(&node.name);
        let gap = if is_named { gap.clone() } else { format!("{}: {gap}", node.name) };
        if !gaps.contains(&gap) {
            gaps.push(gap);
        }
    }
    for gap in gaps.iter().take(GAPS_MOST) {
        terminal.line(&terminal.paint(Style::Faint, &format!("not observed: {gap}")));
    }
    if gaps.len() > GAPS_MOST {
        let more = gaps.len() - GAPS_MOST;
        terminal.line(&terminal.paint(Style::Faint, &format!("not observed: {more} more, see the report")));
    }
}

fn closing(run: &Run, stored: bool, report: Option<&Path>, terminal: Terminal) {
    terminal.print("");
    if stored {
        terminal.line(&format!("run     {} (`tidemark report {} --format md` and more)", run.id, run.id));
    }
    if let Some(path) = report {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        terminal.line(&format!("report  {}", path.display()));
    }
}

/// How a command ends that shows this run.
pub(super) fn exit_of(run: &Run, judgement: &Judgement) -> Exit {
    let is_critical = judgement.findings.iter().any(|finding| finding.severity == Severity::Critical);
    Exit::of(run.state, judgement.is_valid(), is_critical)
}
