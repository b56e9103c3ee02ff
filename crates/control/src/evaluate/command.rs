//! Shell commands of an evaluation's arms: only a local operator gets here.

use super::{Spectator, Step};
use crate::event::StopRequest;
use crossbeam_channel::{RecvTimeoutError, Sender, unbounded};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Lines of a command that failed which its error shows.
const LAST_WORDS: usize = 5;

/// How a command ended.
#[derive(Debug, PartialEq)]
pub(super) enum Ended {
    /// Well; with the variables that it printed.
    Done(Vec<(String, String)>),
    /// Early, by the user.
    Stopped,
}

/// Runs a command in a shell, with variables, and reports what it prints. Lines such as `NAME=value` or `export NAME='value'`
/// on its standard output are variables and are not reported: they may be secrets.
pub(super) fn run(
    text: &str,
    arm: &str,
    variables: &BTreeMap<String, String>,
    spectator: &mut dyn Spectator,
) -> Result<Ended, String> {
    let mut command = Command::new("sh");
    command.args(["-c", text]).envs(variables).env("TIDEMARK_ARM", arm).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("cannot start `{text}`: {error}"))?;
    let (lines_in, lines_out) = unbounded();
    let outputs = [
        child.stdout.take().map(|output| listen(output, true, lines_in.clone())),
        child.stderr.take().map(|output| listen(output, false, lines_in)),
    ];
    let (mut found, mut last) = (Vec::new(), Vec::new());
    loop {
        match lines_out.recv_timeout(Duration::from_millis(100)) {
            Ok((line, is_output)) => match variable(&line).filter(|_| is_output) {
                Some(one) => found.push(one),
                None => {
                    spectator.step(Step::Output(&line));
                    last.push(line);
                }
            },
            // Its outputs may be held open by what it has left in the background.
            Err(RecvTimeoutError::Timeout) if child.try_wait().is_ok_and(|ended| ended.is_some()) => break,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if spectator.stop_request() == StopRequest::Stop {
            if let Some(group) = Pid::from_raw(child.id() as i32) {
                // Gone already is as good.
                let _ = kill_process_group(group, Signal::TERM);
            }
            let _ = child.wait();
            return Ok(Ended::Stopped);
        }
    }
    drop(outputs);
    let status = child.wait().map_err(|error| format!("`{text}`: {error}"))?;
    if status.success() {
        return Ok(Ended::Done(found));
    }
    let last = last.split_off(last.len().saturating_sub(LAST_WORDS));
    let said = if last.is_empty() { "it printed nothing".into() } else { last.join("\n  ") };
    Err(format!("`{text}` failed ({status}):\n  {said}"))
}

/// Sends the lines of an output.
fn listen(
    output: impl Read + Send + 'static,
    is_output: bool,
    lines: Sender<(String, bool)>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(output);
        let mut line = Vec::new();
        // Texts of other encodings are shown as well as they can be.
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if lines.send((text, is_output)).is_err() {
                return;
            }
            line.clear();
        }
    })
}

/// The variable that a line sets, if it does nothing else: `NAME=value`, `export NAME='value'`.
fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let first = name.chars().next()?;
    let is_name = (first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = quoted('\'').or_else(|| quoted('"')).unwrap_or(value);
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventSink;
    use tidemark_plan::plan::Plan;

    #[derive(Default)]
    struct Ears(Vec<String>, bool);

    impl Spectator for Ears {
        fn step(&mut self, step: Step<'_>) {
            if let Step::Output(text) = step {
                self.0.push(text.to_owned());
            }
        }
        fn stop_request(&mut self) -> StopRequest {
            if self.1 { StopRequest::Stop } else { StopRequest::None }
        }
        fn sink<'a>(&'a mut self, _: &Plan) -> Box<dyn EventSink + 'a> {
            unreachable!("no run is started here")
        }
    }

    fn run_in(text: &str, ears: &mut Ears) -> Result<Ended, String> {
        let variables = BTreeMap::from([("GIVEN".to_owned(), "7".to_owned())]);
        run(text, "disk", &variables, ears)
    }

    #[test]
    fn variables_are_taken_and_other_lines_told() {
        let mut ears = Ears::default();
        let text = "echo hello $GIVEN; echo \"export KEY='s3=cret'\"; echo PORT=80; echo not a=b; echo A=b >&2; echo $TIDEMARK_ARM";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let ended = run_in(text, &mut ears).unwrap();
        assert_eq!(ended, Ended::Done(vec![pair("KEY", "s3=cret"), pair("PORT", "80")]));
        ears.0.sort();
        assert_eq!(ears.0, ["A=b", "disk", "hello 7", "not a=b"]);
    }

    #[test]
    fn a_failure_has_its_last_words() {
        let error = run_in("echo one; echo two >&2; exit 3", &mut Ears::default()).unwrap_err();
        assert!(error.contains("exit status: 3") && error.contains("two"), "{error}");
    }

    #[test]
    fn the_user_ends_it_and_background_processes_do_not_hold_it() {
        assert_eq!(run_in("sleep 100", &mut Ears(Vec::new(), true)), Ok(Ended::Stopped));
        let mut ears = Ears::default();
        assert_eq!(run_in("sleep 3 & echo up", &mut ears), Ok(Ended::Done(Vec::new())));
        assert_eq!(ears.0, ["up"]);
    }
}
