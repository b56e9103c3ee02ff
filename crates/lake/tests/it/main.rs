//! The program `tidemark-lake`, as `tidemark` starts it: what becomes of a load when it ends, and who may start it.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{Options, execute};
use tidemark_measure::record::{Provenance, Run, State};
use tidemark_plan::document;
use tidemark_plan::yaml::Environment;

/// Held by whoever looks for the programs that this process has started.
static PROGRAMS: Mutex<()> = Mutex::new(());

/// Calls something back at the first second of a stage's load.
struct AtLoad<F> {
    stage: usize,
    called: Option<F>,
}

impl<F: FnOnce()> EventSink for AtLoad<F> {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Second { stage, .. } = event
            && stage == self.stage
            && let Some(call) = self.called.take()
        {
            call();
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

/// Runs stages on tables in a directory, and calls something back at the first second of the second stage.
fn run(directory: &Path, stages: &str, call: impl FnOnce()) -> Run {
    let text = format!(
        "name: t\non_failure: continue\ntarget: {{kind: datafusion, storage: {{kind: files, directory: {}}}}}\nstages:\n\
         - prepare: {{tables: tpch, scale: 0.01}}\n{stages}",
        directory.display()
    );
    let registry = tidemark_engines::registry();
    let plan = document::read(&text, &Environment::process(&registry)).unwrap().plan;
    let mut sink = AtLoad { stage: 1, called: Some(call) };
    execute(&plan, Provenance::default(), &Options::local(registry), None, &mut sink).unwrap().run
}

/// The programs that this process has started.
fn started() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_ours = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(&format!("(tidemark-lake) S {} ", std::process::id()))
            || stat.contains(&format!("(tidemark-lake) R {} ", std::process::id()))
    };
    pids.filter(is_ours).collect()
}

#[test]
fn a_load_whose_program_is_killed_fails_with_the_reason_and_the_next_stage_starts_it_again() {
    let _programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let stages = "- load: {tables: tpch, scale: 0.01, passes: 100000}\n- load: {tables: tpch, scale: 0.01, queries: [q1, q6]}\n";
    let run = run(directory.path(), stages, || {
        let pids = started();
        assert_eq!(pids.len(), 1, "one program for the run");
        Command::new("kill").args(["-KILL", &pids[0].to_string()]).status().unwrap();
    });
    let [_, killed, next] = &run.stages[..] else { panic!("{run:?}") };
    assert_eq!(killed.state, State::Failed);
    assert!(
        killed.reason.contains("tidemark-lake") && killed.reason.contains("killed by signal 9"),
        "{}",
        killed.reason
    );
    let counted: u64 = killed.works[0].operations.iter().map(|operation| operation.tally.ok).sum();
    let seconds: usize = killed.works[0].series.iter().map(|second| second.operations.len()).sum();
    assert!(counted > 0 && seconds > 0, "what was counted before is kept");
    let unchecked = &killed.proof.as_ref().unwrap().unchecked;
    assert!(unchecked.iter().any(|line| line.contains("killed by signal 9")), "{unchecked:?}");
    assert_eq!((next.state, next.reason.as_str()), (State::Completed, ""));
    let proven = &next.proof.as_ref().unwrap().tables[0].queries;
    assert_eq!(proven.len(), 2, "the program that was started again has its own proof");
    assert!(started().is_empty(), "nothing is left of it");
}

#[test]
fn a_load_that_is_stopped_ends_with_its_proof() {
    let _programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    struct Stops(bool);
    impl EventSink for Stops {
        fn event(&mut self, event: Event<'_>) {
            self.0 |= matches!(event, Event::Second { stage: 1, .. });
        }
        fn stop_request(&mut self) -> StopRequest {
            if self.0 { StopRequest::Finish } else { StopRequest::None }
        }
    }
    let text = format!(
        "name: t\ntarget: {{kind: datafusion, storage: {{kind: files, directory: {}}}}}\nstages:\n\
         - prepare: {{tables: tpch, scale: 0.01}}\n- load: {{tables: tpch, scale: 0.01, passes: 100000}}\n",
        directory.path().display()
    );
    let registry = tidemark_engines::registry();
    let plan = document::read(&text, &Environment::process(&registry)).unwrap().plan;
    let run = execute(&plan, Provenance::default(), &Options::local(registry), None, &mut Stops(false))
        .unwrap()
        .run;
    let load = &run.stages[1];
    assert_eq!(load.state, State::Interrupted);
    let counted: u64 = load.works[0].operations.iter().map(|operation| operation.tally.ok).sum();
    let proven = load.proof.as_ref().unwrap().tables[0].queries.iter().filter(|query| query.fault.is_none());
    assert!(counted > 0 && counted == proven.count() as u64, "{counted} queries");
}

#[test]
fn a_user_who_starts_it_is_sent_to_tidemark() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidemark-lake"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have ended before it has read all.
    let _ = child.stdin.take().unwrap().write_all(b"hello\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "tidemark-lake: this program is started by `tidemark`, when a document needs it\n"
    );
    assert!(output.stdout.is_empty());
    let version = Command::new(env!("CARGO_BIN_EXE_tidemark-lake")).arg("--version").output().unwrap();
    assert_eq!(
        String::from_utf8(version.stdout).unwrap(),
        format!("tidemark-lake {}\n", env!("CARGO_PKG_VERSION"))
    );
}
