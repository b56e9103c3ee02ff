//! The progress of a run: bars on a terminal, lines elsewhere, JSON for programs.

use crate::signals::Signals;
use crate::terminal::{Terminal, one_line};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::time::{Duration, Instant};
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_load::work::Work;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{Second, State};
use tidemark_measure::tally::{Interval, Tally};
use tidemark_measure::units;
use tidemark_plan::plan::{Plan, Stage};

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// Progress bars, on standard error.
    Bars,
    /// A line per stage and one every 10 s, on standard error.
    Lines,
    /// Lines of JSON on standard output.
    Json,
    /// Nothing.
    Nothing,
}

/// Shows a run.
pub(crate) struct Progress {
    show: Show,
    terminal: Terminal,
    signals: Signals,
    stages: usize,
    /// Whether completed stages get no line, because the run is one of many.
    is_brief: bool,
    bar: Option<ProgressBar>,
    goals: Vec<Goal>,
    started: Instant,
    last_line: Instant,
    told: StopRequest,
}

/// The measure of a work's progress.
#[derive(Clone, Copy, Default)]
struct Goal {
    /// Planned time, nanoseconds.
    time_ns: Option<u64>,
    /// Planned operations.
    operations: Option<u64>,
    done: u64,
}

impl Goal {
    fn of(work: &Work) -> Self {
        let phases = work.stop.phases();
        Self {
            time_ns: Some(phases.load_end).filter(|end| *end != u64::MAX),
            operations: work.stop.operations.or_else(|| work.operations_of_source()),
            done: 0,
        }
    }
}

impl Progress {
    pub(crate) fn new(show: Show, terminal: Terminal, signals: Signals, plan: &Plan) -> Self {
        let now = Instant::now();
        Self {
            show,
            terminal,
            signals,
            stages: plan.stages.len(),
            is_brief: false,
            bar: None,
            goals: Vec::new(),
            started: now,
            last_line: now,
            told: StopRequest::None,
        }
    }

    /// Shows one run of many: bars and trouble only.
    pub(crate) fn brief(show: Show, terminal: Terminal, signals: Signals, plan: &Plan) -> Self {
        Self { is_brief: true, ..Self::new(show, terminal, signals, plan) }
    }

    fn line(&self, text: &str) {
        let text = &one_line(text);
        match (&self.bar, self.show) {
            (Some(bar), Show::Bars) => bar.println(self.terminal.shown(text)),
            (_, Show::Json | Show::Nothing) => {}
            _ => self.terminal.remark(text),
        }
    }

    fn json(&self, value: &serde_json::Value) {
        if self.show == Show::Json {
            self.terminal.print(&value.to_string());
        }
    }

    fn stage_started(&mut self, index: usize, stage: &Stage) {
        self.goals = stage.works.iter().map(|work| Goal::of(&work.load)).collect();
        (self.started, self.last_line) = (Instant::now(), Instant::now());
        self.json(&json!({"event": "stage_started", "stage": index, "name": stage.name}));
        let label = format!("[{}/{}] {}", index + 1, self.stages, one_line(&stage.name));
        if self.show == Show::Bars {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(5));
            let template = "{prefix:22} {bar:24.cyan/dim} {percent:>3} %  {wide_msg}";
            let style =
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style.progress_chars("━╸─"));
            bar.set_prefix(self.terminal.shown(&label).into_owned());
            bar.enable_steady_tick(Duration::from_millis(200));
            self.bar = Some(bar);
        } else if !self.is_brief {
            self.line(&label);
        }
    }

    fn second(&mut self, stage: usize, work: usize, interval: &Interval) {
        let mut all = Tally::default();
        interval.actions.iter().for_each(|tally| all.add(tally));
        if let Some(goal) = self.goals.get_mut(work) {
            goal.done += all.total();
        }
        if self.show == Show::Json {
            let second = Second::from(interval);
            self.json(&json!({"event": "second", "stage": stage, "work": work, "second": second}));
            return;
        }
        let text = self.describe(&all, interval);
        if let Some(bar) = &self.bar {
            bar.set_position((self.share() * 1000.0) as u64);
            bar.set_message(self.terminal.shown(&text).into_owned());
        } else if !self.is_brief && self.last_line.elapsed() >= Duration::from_secs(10) {
            self.last_line = Instant::now();
            self.line(&format!("    {:>4.0} %  {text}", self.share() * 100.0));
        }
    }

    fn describe(&self, all: &Tally, interval: &Interval) -> String {
        let latency = |histogram: &Histogram| match histogram.is_empty() {
            true => String::new(),
            false => format!(
                "  p50 {}  p99 {}",
                units::duration_ns(histogram.quantile(0.5)),
                units::duration_ns(histogram.quantile(0.99))
            ),
        };
        let failed = match all.failed() {
            0 => String::new(),
            failed => format!("  FAILED {}", units::count(failed)),
        };
        let stuck = match interval.oldest_in_flight_ns {
            age if age > 2_000_000_000 => {
                format!("  {} stuck for {}", interval.in_flight, units::duration_ns(age))
            }
            _ => String::new(),
        };
        format!(
            "{}/s  {}/s{}{failed}{stuck}{}",
            units::count(all.ok + interval.unmeasured),
            units::bytes(all.bytes),
            latency(&all.response),
            self.left()
        )
    }

    /// How much of the stage is done, 0 to 1: that of the work that is furthest behind.
    fn share(&self) -> f64 {
        let elapsed = self.started.elapsed().as_nanos() as f64;
        let of = |goal: &Goal| {
            let time = goal.time_ns.map(|time| elapsed / time.max(1) as f64);
            let count = goal.operations.map(|operations| goal.done as f64 / operations.max(1) as f64);
            time.into_iter().chain(count).fold(0.0, f64::max).min(1.0)
        };
        self.goals.iter().map(of).fold(1.0, f64::min)
    }

    fn left(&self) -> String {
        let (share, elapsed) = (self.share(), self.started.elapsed().as_secs_f64());
        if share <= 0.01 || share >= 1.0 {
            return String::new();
        }
        let left = elapsed / share - elapsed;
        format!("  {} left", units::duration_ns((left.ceil() * 1e9) as u64))
    }
}

impl EventSink for Progress {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Target(text) => {
                self.json(&json!({"event": "target", "target": text}));
                if !self.is_brief {
                    self.line(&format!("target: {text}"));
                }
            }
            Event::StageStarted { index, stage } => self.stage_started(index, stage),
            Event::Second { stage, work, interval } => self.second(stage, work, interval),
            // These are for a controller's console.
            Event::DriverSecond { .. }
            | Event::SecondSoFar { .. }
            | Event::Nodes(_)
            | Event::Driver { .. } => {}
            Event::Pausing { pause_ns } => {
                let text = format!("waiting {}", units::duration_ns(pause_ns));
                match &self.bar {
                    Some(bar) => bar.set_message(text),
                    None => self.line(&format!("    {text}")),
                }
            }
            Event::StageEnded { index, stage } => {
                if let Some(bar) = self.bar.take() {
                    bar.finish_and_clear();
                }
                let took = units::duration_ns(stage.ended_ns.saturating_sub(stage.started_ns));
                let reason = match stage.reason.is_empty() {
                    true => String::new(),
                    false => format!(": {}", stage.reason),
                };
                let state = stage.state.name();
                if !self.is_brief || stage.state != State::Completed {
                    let (number, of) = (index + 1, self.stages);
                    self.line(&format!(
                        "[{number}/{of}] {} {state} after {took}{reason}",
                        one_line(&stage.name)
                    ));
                }
                let (name, reason) = (&stage.name, &stage.reason);
                self.json(&json!({
                    "event": "stage_ended", "stage": index, "name": name, "state": stage.state, "reason": reason,
                }));
            }
            Event::Trouble(text) => {
                self.json(&json!({"event": "trouble", "text": text}));
                self.line(&format!("warning: {text}"));
            }
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        let stop_request = self.signals.stop_request();
        if stop_request > self.told {
            self.told = stop_request;
            self.line(match stop_request {
                StopRequest::Finish => {
                    "stopping the load; what was measured is kept, and cleanup stages still run \
                     (Ctrl-C again stops at once)"
                }
                _ => "stopping immediately",
            });
        }
        stop_request
    }
}
