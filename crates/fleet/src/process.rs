//! A program of this release that this process starts, commands through its pipes, and ends.
//!
//! The first message has its settings ([`Begin`]), its first reply the version of its build ([`Hello`]); then both speak the
//! [`protocol`](crate::protocol) of drivers. Whoever has started a program may end it at any time, with all that it has started itself.

use crate::link::pipe::{self, Arrived, Outlet};
use crate::protocol::{Down, VERSION};
use crossbeam_channel::{RecvTimeoutError, bounded};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidemark_plan::policy::Policy;

/// How long a program may take to send its [`Hello`].
const HELLO: Duration = Duration::from_secs(60);

/// How long a program may take to end by itself when its output has ended.
pub(crate) const ENDING: Duration = Duration::from_secs(10);

/// How many of the last lines that a program wrote to its standard error are kept.
const LAST_LINES: usize = 3;

/// The longest of these lines, bytes.
const LINE_MOST: u64 = 400;

/// The first message to a program: how it is to work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// Directory for the temporary files of embedded servers.
    pub(crate) scratch: PathBuf,
    /// Whether that directory is the program's own, and goes with it.
    pub(crate) removes_scratch: bool,
    /// Generator threads of a work; `None`: one per processor.
    pub(crate) threads: Option<u32>,
    /// What plans may use on this machine; `None`: whoever sends them has seen to that.
    pub(crate) policy: Option<Policy>,
    /// Whether to observe this node, and the program itself, during a run.
    pub(crate) observes: bool,
}

/// A program's first message: the versions of its protocol and of Tidemark.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    protocol: u32,
    tidemark: String,
}

impl Hello {
    pub(crate) fn own() -> Self {
        Self { protocol: VERSION, tidemark: env!("CARGO_PKG_VERSION").into() }
    }
}

/// A program that was started.
pub(crate) struct Process {
    /// What messages call it: `` `tidemark-lake` ``.
    what: String,
    /// The file that was started.
    path: String,
    outlet: Outlet<ChildStdin>,
    child: Mutex<Child>,
    /// Why it is gone, once it is.
    gone: Mutex<Option<String>>,
    last_lines: Mutex<Vec<String>>,
    /// The thread that reads its standard error.
    reading: Mutex<Option<JoinHandle<()>>>,
    /// Processes that the kernel had killed for want of memory when it was started.
    killed: Option<u64>,
    /// Its own directory for temporary files: one that is killed removes nothing itself.
    scratch: Mutex<Option<TempDir>>,
}

/// What a program sends.
pub(crate) type Output = BufReader<ChildStdout>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half changed by a panic: values are only replaced.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    /// Starts a program, which messages call `what`. Each line that it writes to its standard error goes to `remark`.
    ///
    /// # Errors
    /// When it cannot be started: one sentence.
    pub(crate) fn spawn(
        mut command: Command,
        what: String,
        remark: impl Fn(&str) + Send + 'static,
    ) -> Result<(Arc<Self>, Output), String> {
        let path = PathBuf::from(command.get_program()).display().to_string();
        let failed = |error: &dyn std::fmt::Display| format!("cannot start `{path}`: {error}");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What it writes last is shown: the reason, and not where in its code that is.
        command.env("RUST_BACKTRACE", "0");
        // Whoever interrupts this process from a terminal interrupts the load, and not what carries it out.
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = (input, output, errors) else {
            return Err(failed(&"it has no pipes"));
        };
        let process = Arc::new(Self {
            what,
            path,
            outlet: Outlet::new(input),
            child: Mutex::new(child),
            gone: Mutex::default(),
            last_lines: Mutex::default(),
            reading: Mutex::default(),
            killed: killed_for_memory(),
            scratch: Mutex::default(),
        });
        let reader = Arc::clone(&process);
        *lock(&process.reading) = Some(std::thread::spawn(move || read_lines(errors, &reader, &remark)));
        Ok((process, BufReader::new(output)))
    }

    /// Says how to work, and makes sure that it is a program of this release.
    ///
    /// # Errors
    /// When it is not, or has ended: one sentence.
    pub(crate) fn greet(self: &Arc<Self>, begin: &Begin, output: &mut Output) -> Result<(), String> {
        // Of a program that has ended already, reading shows it.
        let _ = self.outlet.message(&self.with_scratch(begin));
        let (greeted, silence) = bounded::<()>(0);
        let watched = Arc::clone(self);
        std::thread::spawn(move || {
            if silence.recv_timeout(HELLO) == Err(RecvTimeoutError::Timeout) {
                let (path, what, seconds) = (&watched.path, &watched.what, HELLO.as_secs());
                lock(&watched.gone).get_or_insert(format!(
                    "`{path}` did not reply within {seconds} s: is it {what} of this release?"
                ));
                watched.kill();
            }
        });
        let hello = pipe::read::<Hello>(output);
        drop(greeted);
        let own = Hello::own();
        match hello {
            Ok(Some(Arrived::Message(hello))) if hello == own => Ok(()),
            Ok(Some(Arrived::Message(hello))) => {
                self.end();
                let other = match hello.tidemark == own.tidemark {
                    true => format!("of another build of Tidemark {}", own.tidemark),
                    false => format!("of Tidemark {}, and this is {}", hello.tidemark, own.tidemark),
                };
                Err(format!(
                    "`{}` is {other}: build both with `make build`, or install both from one release",
                    self.path
                ))
            }
            Ok(_) => {
                self.listened(Ok(()));
                Err(format!("{} (started as {})", self.why_gone(), self.path))
            }
            Err(_) => {
                self.end();
                Err(format!(
                    "`{}` is not {} of this release: build it with `make build`",
                    self.path, self.what
                ))
            }
        }
    }

    /// Gives it a directory of its own within the one for temporary files. Where none can be made, whatever needs it fails with the reason.
    fn with_scratch(&self, begin: &Begin) -> Begin {
        let made = tempfile::Builder::new().prefix("tidemark-run-").tempdir_in(&begin.scratch);
        let Ok(directory) = made else { return begin.clone() };
        let scratch = directory.path().to_owned();
        *lock(&self.scratch) = Some(directory);
        Begin { scratch, removes_scratch: true, ..begin.clone() }
    }

    /// What messages call it.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    // A program that no longer reads is gone, which its listener notices.
    pub(crate) fn send(&self, down: &Down) {
        let _ = self.outlet.message(down);
    }

    /// Closes its input, which makes it end.
    pub(crate) fn close(&self) {
        self.outlet.close();
    }

    pub(crate) fn is_gone(&self) -> bool {
        lock(&self.gone).is_some()
    }

    pub(crate) fn why_gone(&self) -> String {
        lock(&self.gone).clone().unwrap_or_else(|| format!("{} has ended", self.what))
    }

    /// What its listener found when nothing more came from it: its end, or what makes it useless.
    pub(crate) fn listened(&self, listened: Result<(), String>) {
        if listened.is_err() {
            self.end();
        }
        let status = self.reap(Instant::now() + ENDING);
        // All that it wrote before it ended.
        if let Some(reading) = lock(&self.reading).take() {
            let _ = reading.join();
        }
        *lock(&self.scratch) = None;
        let why = match (listened, status) {
            (Err(why), _) => format!("{why}{}", self.last_words()),
            (Ok(()), Ok(status)) => self.describe(status),
            (Ok(()), Err(error)) => format!("{} ended: {error}", self.what),
        };
        lock(&self.gone).get_or_insert(why);
    }

    /// How it ended, with the evidence that there is.
    fn describe(&self, status: ExitStatus) -> String {
        let how = match (status.signal(), status.code()) {
            (Some(signal), _) => format!("was killed by signal {signal}"),
            (None, Some(code)) => format!("ended with exit code {code}"),
            (None, None) => "ended".to_owned(),
        };
        let words = self.last_words();
        let starved = self.killed.zip(killed_for_memory()).is_some_and(|(before, now)| now > before);
        let memory = match starved && status.signal() == Some(9) {
            true => {
                "; meanwhile, the kernel killed a process because memory ran out: add memory, or reduce the load"
            }
            false => "",
        };
        format!("{} {how}{words}{memory}", self.what)
    }

    /// What it wrote to its standard error last, after a colon; empty where it wrote nothing.
    fn last_words(&self) -> String {
        let lines = lock(&self.last_lines);
        if lines.is_empty() { String::new() } else { format!(": {}", lines.join(" ")) }
    }

    /// Whether somebody has stopped it (`SIGSTOP`), so that it does nothing until it is continued.
    pub(crate) fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", lock(&self.child).id()));
        stat.is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" T")))
    }

    /// Ends one that is of no use; one that cannot be waited for has ended.
    pub(crate) fn end(&self) {
        let _ = self.reap(Instant::now() + Duration::from_secs(1));
    }

    /// Closes its input and waits for its end, which it is forced to if it has not come by `end`.
    pub(crate) fn reap(&self, end: Instant) -> std::io::Result<ExitStatus> {
        self.outlet.close();
        loop {
            // Others may end it meanwhile.
            if let Some(status) = lock(&self.child).try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= end {
                self.kill();
                return lock(&self.child).wait();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it with all that it has started.
    pub(crate) fn kill(&self) {
        let mut child = lock(&self.child);
        // The number of one that has been waited for may be somebody else's.
        if let (Ok(None), Some(pid)) = (child.try_wait(), Pid::from_raw(child.id() as i32)) {
            // So it starts nothing more while the others are looked for.
            let _ = kill_process(pid, Signal::STOP);
            let below = below(child.id());
            let _ = child.kill();
            kill_all(&below);
        }
    }
}

/// Kills what a process of this number has started, and what that has started.
pub(crate) fn kill_below(process: u32) {
    kill_all(&below(process));
}

/// Processes, held so that their numbers stay theirs.
fn below(process: u32) -> Vec<rustix::fd::OwnedFd> {
    let mut started: HashMap<u32, Vec<u32>> = HashMap::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in parentheses, may have any of them in it; state and parent follow (proc(5)).
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        if let Some(parent) = parent.and_then(|parent| parent.parse().ok()) {
            started.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut open) = (Vec::new(), vec![process]);
    while let Some(children) = open.pop().map(|parent| started.remove(&parent).unwrap_or_default()) {
        let held = children
            .iter()
            .filter_map(|pid| pidfd_open(Pid::from_raw(*pid as i32)?, PidfdFlags::empty()).ok());
        found.extend(held);
        open.extend(children);
    }
    found
}

fn kill_all(processes: &[rustix::fd::OwnedFd]) {
    for process in processes {
        // It has ended, if that fails.
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}

/// Keeps the last lines that the program writes to its standard error.
fn read_lines(errors: ChildStderr, process: &Process, remark: &dyn Fn(&str)) {
    let mut errors = BufReader::new(errors);
    loop {
        let mut line = Vec::new();
        match errors.by_ref().take(LINE_MOST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line);
        let line: String = line.trim().chars().filter(|letter| !letter.is_control()).collect();
        let mut lines = lock(&process.last_lines);
        // A remark of Rust's runtime for programmers.
        if !line.is_empty() && !line.starts_with("note: run with `RUST_BACKTRACE") {
            remark(&line);
            lines.push(line);
        }
        let more = lines.len().saturating_sub(LAST_LINES);
        lines.drain(..more);
    }
}

/// How many processes the kernel has killed for want of memory since it started (`oom_kill` of /proc/vmstat, proc(5)); `None` where that
/// is not counted.
fn killed_for_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_killed_with_what_it_has_started() {
        let mut command = Command::new("sh");
        // The shell prints the number of what its child has started, and waits.
        command.args(["-c", "sh -c 'sleep 600 & echo $!; wait' & wait"]);
        let (process, mut output) = Process::spawn(command, "a shell".into(), |_| {}).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let sleeper = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        let held = pidfd_open(sleeper, PidfdFlags::empty()).unwrap();
        process.kill();
        // A pidfd is readable once its process has ended (pidfd_open(2)).
        let mut ended = [rustix::event::PollFd::new(&held, rustix::event::PollFlags::IN)];
        let most = rustix::time::Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(rustix::event::poll(&mut ended, Some(&most)).unwrap(), 1, "{sleeper:?} goes on");
        process.listened(Ok(()));
        assert_eq!(process.why_gone(), "a shell was killed by signal 9");
    }
}
