//! `tidemark run` of an evaluation: measures every cell, then shows the verdict.

use super::assessment::{self, Judged};
use super::document::Evaluation as Source;
use super::outcome::{self, Means, open_store};
use super::{settings, tune};
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::progress::{Progress, Show};
use crate::signals::Signals;
use crate::terminal::Terminal;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tidemark_control::evaluate::{self, Evaluated, EvaluationEvent, EvaluationSink, Options};
use tidemark_control::event::{EventSink, StopRequest};
use tidemark_control::{execute, provenance};
use tidemark_judge::Validity;
use tidemark_judge::evaluation::{Cell, assess};
use tidemark_measure::evaluation::{Evaluation, Member, level_label};
use tidemark_measure::record::{Provenance, Run, State};
use tidemark_measure::units;
use tidemark_plan::plan::Plan;
use tidemark_plan::redact;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;
use tidemark_tune::look_at;

/// Carries an evaluation out; shows, stores and reports the result.
pub(crate) fn execute(
    source: Source,
    arguments: &cli::Run,
    means: Means,
    store_path: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    if arguments.cross_check.is_some() || arguments.running.cosbench_archive.is_some() {
        return Err(Stop::usage(
            "--cross-check and --cosbench-archive are for workloads, not for evaluations",
        ));
    }
    let mut document = source.evaluation;
    if let Some(seed) = arguments.seed {
        document.seed = seed;
    }
    let running = &arguments.running;
    let mut store = match running.no_store {
        true => None,
        false => Some(open_store(store_path.clone())?),
    };
    let provenance = Provenance {
        command: outcome::command_line(),
        path: source.path,
        format: "Tidemark evaluation".into(),
        document: redact::redact(&source.text),
        ..provenance::of_this_machine(env!("CARGO_PKG_VERSION"))
    };
    let beside = store_path.unwrap_or_else(tidemark_store::default_path);
    let registry = tidemark_engines::registry();
    let environment = Environment::process(&registry);
    let mut options = options(arguments, &registry, beside.parent().map(PathBuf::from))?;
    options.run.backends = means.backends;
    options.run.witness = means.witness;
    let mut screen = Screen::new(running, means.signals, terminal);
    let evaluated =
        evaluate::evaluate(&document, provenance, &options, &environment, store.as_mut(), &mut screen);
    let Evaluated { evaluation, runs, fresh, trouble } = evaluated.map_err(Stop::not_ready)?;
    if let Some(trouble) = &trouble {
        terminal.remark(&format!("tidemark: {trouble}"));
    }
    if fresh == 0 && !runs.is_empty() && !running.json {
        terminal
            .remark("all runs of this evaluation are already measured; use --again to measure them again");
    }
    let assessment = assess(&evaluation, &runs);
    if let Some(store) = &mut store
        && let Err(error) =
            store.keep_evaluation(&evaluation, Some(&tidemark_control::listing::of_evaluation(&assessment)))
    {
        terminal.remark(&format!("tidemark: the verdict could not be stored: {error}"));
    }
    let judged = Judged { evaluation: &evaluation, assessment: &assessment, runs: &runs };
    let report = match running.no_report {
        true => None,
        false => {
            let name = match evaluation.id {
                0 => format!("unstored-evaluation-{}.html", evaluation.started_unix_ns / 1_000_000_000),
                id => format!("evaluation-{id}.html"),
            };
            let usual = beside.with_file_name("reports").join(name);
            let path = running.report.clone().unwrap_or(usual);
            let html = judged.html(store.as_ref());
            outcome::write(&path, html.as_bytes(), terminal).then_some(path)
        }
    };
    let directory = report.as_deref().and_then(Path::parent).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| beside.with_file_name("reports"));
    let better = settings::keep(&evaluation, &runs, &directory, terminal);
    if running.json {
        let path = report.as_deref().map(|path| path.display().to_string());
        let parsed: serde_json::Value = serde_json::from_str(&judged.json()).unwrap_or_default();
        terminal.print(
            &json!({"event": "evaluation", "stored": store.is_some(), "report": path, "settings": better, "evaluation": parsed})
                .to_string(),
        );
    } else {
        if let (Some(tuning), Some((conclusion, _))) = (&evaluation.tuning, look_at(&evaluation, &runs)) {
            tune::show(tuning, &conclusion, terminal);
        }
        assessment::show(&judged, terminal);
        assessment::closing(&evaluation, report.as_deref(), terminal);
        if let Some(path) = better {
            terminal.line(&format!("settings    {}", path.display()));
        }
    }
    let state = match screen.stop_request() {
        StopRequest::None => State::Completed,
        StopRequest::Finish | StopRequest::Stop => State::Interrupted,
    };
    Ok(Exit::of(state, assessment.validity.is_valid(), trouble.is_some() || assessment::failed(&judged)))
}

/// How an evaluation is carried out; files of runs go to `scratch`.
pub(super) fn options(
    arguments: &cli::Run,
    registry: &Registry,
    scratch: Option<PathBuf>,
) -> Result<Options, Stop> {
    let running = &arguments.running;
    Ok(Options {
        run: execute::Options {
            threads: running.threads,
            trigger_directory: arguments.trigger_dir.clone(),
            skip_preflight: running.skip_preflight,
            allow_destroy: running.allow_destroy.clone(),
            scratch,
            ..execute::Options::local(registry.clone())
        },
        directory: Some(labs(arguments)?),
        standing: None,
        run_commands: arguments.run_commands,
        again: arguments.again,
        renew: false,
    })
}

/// The directory for the labs of its arms: beside that of `tidemark lab`.
fn labs(arguments: &cli::Run) -> Result<PathBuf, Stop> {
    if let Some(directory) = &arguments.labs {
        return Ok(directory.clone());
    }
    let usual = tidemark_lab::default_dir().map_err(Stop::not_ready)?;
    let name = usual.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(usual.with_file_name(format!("{name}-arms")))
}

/// A run's place in words: `disk · small-objects · workers 32 · repeat 2`.
pub(crate) fn place(member: &Member) -> String {
    let mut parts = vec![member.arm.clone(), member.load.clone()];
    if !member.level.is_empty() {
        parts.push(level_label(&member.level));
    }
    parts.push(format!("repeat {}", member.repeat));
    parts.join(", ")
}

/// Shows an evaluation in progress.
pub(super) struct Screen {
    show: Show,
    terminal: Terminal,
    signals: Signals,
    started: Instant,
    /// Runs measured so far.
    fresh: usize,
}

impl Screen {
    pub(super) fn new(running: &cli::Running, signals: Signals, terminal: Terminal) -> Self {
        // What an arm has set up is taken down, and settings are put back.
        signals.finish_steps();
        Self { show: outcome::show(running, terminal), terminal, signals, started: Instant::now(), fresh: 0 }
    }

    fn say(&self, text: &str) {
        if matches!(self.show, Show::Bars | Show::Lines) {
            self.terminal.remark(text);
        }
    }

    fn json(&self, value: &serde_json::Value) {
        if self.show == Show::Json {
            self.terminal.print(&value.to_string());
        }
    }

    /// How long the remaining runs will take if they take as long as those before.
    fn left(&self, number: usize, of: usize) -> String {
        let left = of.saturating_sub(number).saturating_add(1);
        if self.fresh == 0 {
            return String::new();
        }
        let each = self.started.elapsed().as_secs_f64() / self.fresh as f64;
        format!("  (about {} left)", units::duration_ns((each * left as f64).ceil() as u64 * 1_000_000_000))
    }
}

impl EvaluationSink for Screen {
    fn event(&mut self, event: EvaluationEvent<'_>) {
        match event {
            EvaluationEvent::Started { done, left } => {
                self.json(&json!({"event": "evaluation_started", "done": done, "left": left}));
                if done > 0 {
                    self.say(&format!(
                        "{done} runs are already measured; {left} remain, not counting searches"
                    ));
                }
            }
            EvaluationEvent::SettingUp(arm) => {
                self.json(&json!({"event": "setting_up", "arm": arm}));
                self.say(&format!("setting up {arm}"));
            }
            EvaluationEvent::TakingDown(arm) => {
                self.json(&json!({"event": "taking_down", "arm": arm}));
                self.say(&format!("taking down {arm}"));
            }
            EvaluationEvent::GoingBack(settings) => {
                self.json(&json!({"event": "going_back", "settings": settings}));
                self.say(&format!("back to the baseline's settings: {settings}"));
            }
            EvaluationEvent::Output(text) => self.say(&format!("    {text}")),
            // What the runs come to is told when it is over.
            EvaluationEvent::Standing { .. } => {}
            EvaluationEvent::RunStarted { member, number, of } => {
                self.json(&json!({"event": "run_started", "number": number, "of": of, "member": member}));
                let (of, left) = match of {
                    Some(of) => (format!("/{of}"), self.left(number, of)),
                    None => (String::new(), "  (a step of a search)".to_owned()),
                };
                self.say(&format!("[{number}{of}] {}{left}", place(member)));
            }
            EvaluationEvent::RunEnded(run) => {
                self.fresh += 1;
                let judgement = tidemark_judge::judge(run);
                self.json(
                    &json!({"event": "run_ended", "run": run.id, "state": run.state, "judgement": judgement}),
                );
                self.say(&format!("    {}", summary(run)));
                if let Validity::Invalid(reasons) = &judgement.validity {
                    // A search has to overload the storage to find its limit.
                    let overloaded = reasons.iter().all(|finding| finding.what.is_offered_rate());
                    let word = if overloaded { "overloaded" } else { "INVALID" };
                    self.say(&format!("    {word}: {}", judgement.validity.sentences().join("; ")));
                }
            }
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        self.signals.stop_request()
    }

    fn sink<'a>(&'a mut self, plan: &Plan) -> Box<dyn EventSink + 'a> {
        Box::new(Progress::brief(self.show, self.terminal, self.signals.clone(), plan))
    }
}

/// The result of a run in one line.
fn summary(run: &Run) -> String {
    let single = |run: &Run| -> Vec<Cell> {
        let member = run.member.clone().unwrap_or_default();
        let arm = tidemark_measure::evaluation::Arm { name: member.arm, ..Default::default() };
        let load = tidemark_measure::evaluation::Load { name: member.load, ..Default::default() };
        let evaluation = Evaluation { arms: vec![arm], loads: vec![load], ..Evaluation::default() };
        assess(&evaluation, std::slice::from_ref(run)).cells
    };
    let cells = single(run);
    let line = |cell: &Cell| {
        let subject = if cell.subject.is_empty() { String::new() } else { format!("{}: ", cell.subject) };
        let tail = cell.p99_ns.as_ref().map(|p99| format!(", p99 {}", units::duration_ns(p99.mean as u64)));
        let failed =
            if cell.failed > 0 { format!(", {} FAILED", units::count(cell.failed)) } else { String::new() };
        format!("{subject}{}{}{failed}", units::rate(cell.throughput.mean), tail.unwrap_or_default())
    };
    let reason = run.stages.iter().map(|stage| stage.reason.as_str()).find(|reason| !reason.is_empty());
    match cells.is_empty() {
        true => format!("{}: {}", run.state.name(), reason.unwrap_or("nothing was measured")),
        false => cells.iter().map(line).collect::<Vec<_>>().join("; "),
    }
}
