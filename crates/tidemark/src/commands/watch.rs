//! `tidemark watch`: a submission followed to its end, across interruptions of the connection.

use super::submissions::{exit_of, number, print_json, sentence};
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::remote::{Controller, Failure};
use crate::signals::Signals;
use crate::terminal::{Terminal, one_line};
use std::time::{Duration, Instant};
use tidemark_controller::api::{
    LiveRun, LiveSecond, LiveStage, Overview, RunState, Submission, SubmissionState,
};
use tidemark_measure::units;

/// How long to wait for a controller that is no longer reachable: a restart, or a network failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often to retry meanwhile.
const EVERY: Duration = Duration::from_secs(1);

/// Follows a submission to its end.
pub(crate) fn watch(arguments: &cli::Watch, terminal: Terminal) -> Result<Exit, Stop> {
    let controller = Controller::of(&arguments.remote)?;
    follow(&controller, number(&arguments.id)?, arguments.remote.json, terminal)
}

/// Follows a submission to its end. Waits for a controller that is unreachable for a short time.
pub(crate) fn follow(controller: &Controller, id: u64, json: bool, terminal: Terminal) -> Result<Exit, Stop> {
    let mut watcher = Watcher {
        id,
        json,
        terminal,
        stages: Vec::new(),
        stage_told: String::new(),
        waits: String::new(),
        away: None,
    };
    // It does not wait for one that was never reachable.
    let mut submission: Submission = controller.ask(&format!("/submissions/{id}"))?;
    Signals::leave(move || {
        terminal.remark(&format!(
            "w{id} goes on without this command: `tidemark watch w{id}` follows it again, `tidemark cancel w{id}` ends it"
        ));
    });
    while matches!(submission.state, SubmissionState::Queued | SubmissionState::Running) {
        match watcher.look_on(controller) {
            Ok(now) => submission = now,
            Err(Failure::Refused(stop)) => return Err(stop),
            Err(Failure::Away(stop)) => {
                let since = *watcher.away.get_or_insert_with(|| {
                    terminal.remark(&stop.message);
                    terminal.remark(&format!("waiting up to {} s for the controller", PATIENCE.as_secs()));
                    Instant::now()
                });
                if since.elapsed() >= PATIENCE {
                    return Err(stop);
                }
                std::thread::sleep(EVERY);
            }
        }
    }
    match json {
        true => print_json(&submission, terminal),
        false => terminal.print(&sentence(&submission, terminal)),
    }
    exit_of(&submission, controller)
}

/// What was reported of a submission so far.
struct Watcher {
    id: u64,
    json: bool,
    terminal: Terminal,
    stages: Vec<LiveStage>,
    stage_told: String,
    waits: String,
    /// Since when the controller is unreachable.
    away: Option<Instant>,
}

impl Watcher {
    /// Reports events until the submission or the connection ends; returns the submission's last state.
    fn look_on(&mut self, controller: &Controller) -> Result<Submission, Failure> {
        // The names of its operations come from the live data of a running submission. A waiting one, or one that has just ended, has none.
        if let Ok(live) = controller.ask::<LiveRun>(&format!("/submissions/{}/live", self.id)) {
            self.stages = live.stages;
        }
        let path = format!("/events?submission={}", self.id);
        // An end while the stream was closed shows in the overview, which comes first.
        let heard = controller.events(&path, |name, data| self.hear(name, data));
        let submission = controller.ask(&format!("/submissions/{}", self.id));
        heard.and(submission)
    }

    /// Reports an event; false if it was the last one.
    fn hear(&mut self, name: &str, data: &str) -> bool {
        if self.away.take().is_some() {
            self.terminal.remark("connection to the controller restored");
        }
        if self.json && name != "overview" {
            self.terminal.print(&format!("{{\"event\":\"{name}\",\"data\":{data}}}"));
        }
        match name {
            "ended" => return false,
            "overview" => {
                let overview: Overview = serde_json::from_str(data).unwrap_or_default();
                self.tell_place(&overview);
                return overview.active.iter().chain(&overview.queue).any(|one| one.id == self.id);
            }
            "stages" => {
                self.stages = serde_json::from_str(data).unwrap_or_default();
                self.tell_stage();
            }
            "second" => {
                if let Ok(second) = serde_json::from_str::<LiveSecond>(data)
                    && !is_empty(&second)
                {
                    self.tell(&line(&second, &self.stages));
                }
            }
            "trouble" => self.tell(&serde_json::from_str::<String>(data).unwrap_or_default()),
            _ => {}
        }
        true
    }

    fn tell(&self, text: &str) {
        if !self.json {
            self.terminal.remark(text);
        }
    }

    /// Why it waits, and behind how many, when that changes.
    fn tell_place(&mut self, overview: &Overview) {
        let Some(place) = overview.queue.iter().position(|one| one.id == self.id) else { return };
        let before = match place {
            0 => String::new(),
            some => format!(" ({some} ahead of it)"),
        };
        let text = format!("w{}{before}: {}", self.id, overview.queue[place].reason);
        if text != self.waits {
            self.tell(&text);
            self.waits = text;
        }
    }

    fn tell_stage(&mut self) {
        if let Some(stage) = self.stages.iter().find(|stage| stage.state == RunState::Running)
            && stage.id != self.stage_told
        {
            self.tell(&format!("stage {}", one_line(&stage.id)));
            self.stage_told.clone_from(&stage.id);
        }
    }
}

/// Whether nothing happened in a second because there was nothing to do, as after the last operation.
fn is_empty(second: &LiveSecond) -> bool {
    let none = second.operations.iter().all(|operation| operation.ok == 0 && operation.failed == 0);
    none && second.missing.is_empty()
        && second.unmeasured == 0
        && second.in_flight == 0
        && second.backlog == 0
}

/// A second in one line: operations, their rates and latencies.
fn line(second: &LiveSecond, stages: &[LiveStage]) -> String {
    let work = stages.get(second.stage as usize).and_then(|stage| stage.works.get(second.work as usize));
    let mut line = format!("{:>5} s", second.index + 1);
    if let Some(work) = work.filter(|_| stages[second.stage as usize].works.len() > 1) {
        line += &format!("   {}:", one_line(&work.name));
    }
    for (number, operation) in second.operations.iter().enumerate() {
        let label = work.and_then(|work| work.operations.get(number)).map_or("operation", String::as_str);
        line += &format!("   {label} {} op/s", units::count(operation.ok));
        if operation.bytes > 0 {
            line += &format!(", {}/s", units::bytes(operation.bytes));
        }
        if operation.ok > 0 {
            line += &format!(", p99 {}", units::duration_ns((operation.p99_us * 1e3) as u64));
        }
        if operation.failed > 0 {
            line += &format!(", {} failed", units::count(operation.failed));
        }
    }
    if second.unmeasured > 0 {
        line += &format!("   {} not measured", units::count(second.unmeasured));
    }
    if !second.missing.is_empty() {
        line += &format!("   without {}, silent", second.missing.join(", "));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_controller::api::{LiveOperation, LiveWork};

    #[test]
    fn a_second_is_one_line() {
        let work = |name: &str| LiveWork {
            name: name.into(),
            workers: 1,
            operations: vec!["read".into(), "write".into()],
            ..LiveWork::default()
        };
        let stage = LiveStage { works: vec![work("main")], ..LiveStage::default() };
        let read = LiveOperation { ok: 12, bytes: 4096, p99_us: 1500.0, ..LiveOperation::default() };
        let write = LiveOperation { failed: 3, ..LiveOperation::default() };
        let second = LiveSecond { index: 4, operations: vec![read, write], ..LiveSecond::default() };
        assert_eq!(
            line(&second, std::slice::from_ref(&stage)),
            "    5 s   read 12 op/s, 4.10 kB/s, p99 1.50 ms   write 0 op/s, 3 failed"
        );
        let silent = LiveSecond { missing: vec!["d1".into(), "d2".into()], ..second.clone() };
        assert!(line(&silent, std::slice::from_ref(&stage)).ends_with("3 failed   without d1, d2, silent"));
        let both = LiveStage { works: vec![work("main"), work("beside")], ..stage };
        assert!(line(&second, &[both]).starts_with("    5 s   main:   read"));
        assert!(line(&second, &[]).contains("operation 12 op/s"), "what is not known has no name");
    }
}
