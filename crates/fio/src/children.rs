//! fio's processes, always ended and reaped.
//!
//! fio forks a process for every job, which leaves for a session of its own and outlives fio if that is killed. So the
//! jobs are looked up while fio runs and held by descriptor: a number may be reused, a descriptor cannot.

use crate::jobfile::Process;
use crate::program::Program;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid,
};
use std::collections::HashMap;
use std::io::{Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tidemark_load::engine::OpenError;
use tidemark_sandbox::SandboxError;

/// How often jobs are looked up; until there are some, at every look.
const LOOK: Duration = Duration::from_secs(1);

/// Processes that were started. What still runs when this is dropped is killed.
#[derive(Default)]
pub(crate) struct Children(Vec<Running>);

struct Running {
    child: Child,
    pid: Pid,
    status: Option<ExitStatus>,
    jobs: HashMap<i32, OwnedFd>,
    looked: Instant,
}

impl Children {
    /// Starts one more; its job file comes from an unnamed file as standard input, so none is left behind.
    pub(crate) fn start(
        &mut self,
        fio: &Program,
        process: &Process,
    ) -> Result<(Option<ChildStdout>, Option<ChildStderr>), OpenError> {
        let failed =
            |error: std::io::Error| OpenError(format!("cannot start {}: {error}", fio.path().display()));
        let mut text = tempfile::tempfile().map_err(failed)?;
        text.write_all(process.text.as_bytes()).and_then(|()| text.rewind()).map_err(failed)?;
        let mut command = Command::new(fio.path());
        command.args(["--output-format=json+", "--status-interval=1", "--eta=never"]);
        command.args(process.sections.iter().map(|section| format!("--section={section}")));
        command.arg("-").envs(process.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(text).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = match fio.is_confined() {
            true => process.sandbox.spawn(&mut command).map_err(|error| match error {
                SandboxError::Start(error) => failed(error),
                other => OpenError(other.to_string()),
            })?,
            false => command.spawn().map_err(failed)?,
        };
        let pipes = (child.stdout.take(), child.stderr.take());
        let pid = Pid::from_child(&child);
        self.0.push(Running { child, pid, status: None, jobs: HashMap::new(), looked: Instant::now() });
        Ok(pipes)
    }

    /// The processes that have ended since the last call. Jobs that they left behind are killed.
    pub(crate) fn ended(&mut self) -> Vec<(usize, ExitStatus)> {
        let running = self.0.iter_mut().enumerate().filter(|(_, running)| running.status.is_none());
        running.filter_map(|(index, running)| running.reap(false).map(|status| (index, status))).collect()
    }

    /// Asks all to end the load and to report.
    pub(crate) fn interrupt(&self) {
        for running in self.0.iter().filter(|running| running.status.is_none()) {
            // One that has just ended needs no word.
            let _ = kill_process(running.pid, Signal::INT);
        }
    }

    /// Ends all at once, jobs included.
    pub(crate) fn kill(&mut self) {
        self.0.iter_mut().filter(|running| running.status.is_none()).for_each(Running::kill);
    }

    /// Whether all have ended and were reaped.
    pub(crate) fn are_gone(&self) -> bool {
        self.0.iter().all(|running| running.status.is_some())
    }

    /// How each of them ended; `None`: it has not.
    pub(crate) fn statuses(&self) -> Vec<Option<ExitStatus>> {
        self.0.iter().map(|running| running.status).collect()
    }
}

impl Running {
    fn kill(&mut self) {
        self.look();
        // A process that has ended needs nothing more.
        let _ = kill_process_group(self.pid, Signal::KILL);
        for job in self.jobs.values() {
            let _ = pidfd_send_signal(job, Signal::KILL);
        }
    }

    /// Takes hold of the jobs that it has forked.
    fn look(&mut self) {
        self.looked = Instant::now();
        let pid = self.pid.as_raw_nonzero();
        // Where the kernel does not tell, fio ends its jobs itself unless it is killed.
        let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for number in listed.split_whitespace().filter_map(|number| number.parse().ok()) {
            if !self.jobs.contains_key(&number)
                && let Some(descriptor) =
                    Pid::from_raw(number).and_then(|job| pidfd_open(job, PidfdFlags::empty()).ok())
            {
                self.jobs.insert(number, descriptor);
            }
        }
    }

    /// Reaps the process when it has ended, or with `wait` when it does.
    fn reap(&mut self, wait: bool) -> Option<ExitStatus> {
        // It is looked at before it is reaped: until then its number, and its group's, are not reused.
        let mut options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        options.set(WaitIdOptions::NOHANG, !wait);
        if self.jobs.is_empty() || self.looked.elapsed() > LOOK {
            self.look();
        }
        let is_over = matches!(waitid(WaitId::Pid(self.pid), options), Ok(Some(_)));
        if is_over || wait {
            self.kill();
            self.status = self.child.wait().ok();
        }
        self.status
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.kill();
        for running in self.0.iter_mut().filter(|running| running.status.is_none()) {
            running.reap(true);
        }
    }
}
