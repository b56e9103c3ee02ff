//! The daemons of one start, while it lasts: what it started is stopped again if it fails.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::command::Programs;
use crate::daemon::{self, Daemon, Under};
use crate::error::LabError;
use crate::home::Home;
use crate::process::Process;

/// How long to wait between two looks.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// The daemons of one start.
pub(super) struct Watch<'a> {
    home: &'a Home,
    programs: &'a Programs,
    progress: &'a mut dyn FnMut(&str),
    /// Every daemon that is to keep running.
    watched: Vec<(Daemon, Process)>,
    /// Those of them that this start has started.
    started: Vec<Daemon>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(home: &'a Home, programs: &'a Programs, progress: &'a mut dyn FnMut(&str)) -> Self {
        Self { home, programs, progress, watched: Vec::new(), started: Vec::new() }
    }

    /// Says what is done next.
    pub(super) fn say(&mut self, text: &str) {
        (self.progress)(text);
    }

    /// Starts a daemon and watches it from now on.
    pub(super) fn start(&mut self, daemon: Daemon, under: Under<'_>) -> Result<(), LabError> {
        self.say(&format!("starting {daemon}"));
        let process = daemon.spawn(self.home, self.programs, under)?;
        self.started.push(daemon);
        self.watched.push((daemon, process));
        Ok(())
    }

    /// Stops a daemon, so that it can be started again.
    pub(super) fn stop(&mut self, daemon: Daemon) -> Result<(), LabError> {
        daemon::stop(self.home, &[daemon], self.progress)?;
        self.started.retain(|known| *known != daemon);
        self.watched.retain(|(known, _)| *known != daemon);
        Ok(())
    }

    /// Watches a daemon that runs already, and continues it if somebody paused it.
    pub(super) fn keep(&mut self, daemon: Daemon, process: Process) -> Result<(), LabError> {
        if process.is_paused() {
            self.say(&format!("continuing {daemon}, which was paused"));
            let failed = LabError::file("continue the process of", self.home.pid_file(daemon));
            process.signal(Signal::CONT).map_err(failed)?;
        }
        self.watched.push((daemon, process));
        Ok(())
    }

    /// Waits until a daemon is ready; `lack` says what it failed to do, as in "does not answer".
    pub(super) fn await_ready(
        &self,
        daemon: Daemon,
        limit: Duration,
        lack: &str,
        mut is_ready: impl FnMut() -> bool,
    ) -> Result<(), LabError> {
        let deadline = Instant::now() + limit;
        while !is_ready() {
            self.check_all_run()?;
            if Instant::now() > deadline {
                return Err(LabError::NotReady {
                    daemon,
                    seconds: limit.as_secs(),
                    lack: lack.to_owned(),
                    log: self.home.log(daemon),
                    tail: daemon.last_words(self.home),
                });
            }
            thread::sleep(PAUSE);
        }
        // Somebody else's server may answer on the port of a daemon that has just ended.
        self.check_all_run()
    }

    /// Fails if a daemon that is to keep running has ended.
    pub(super) fn check_all_run(&self) -> Result<(), LabError> {
        for (daemon, process) in &self.watched {
            let failed = LabError::file("watch the process of", self.home.pid_file(*daemon));
            if process.ended_within(Duration::ZERO).map_err(failed)? {
                return Err(LabError::DaemonEnded {
                    daemon: *daemon,
                    how: process.reap(),
                    log: self.home.log(*daemon),
                    tail: daemon.last_words(self.home),
                });
            }
        }
        Ok(())
    }

    /// Stops what was started if the start failed, and then undoes the rest.
    pub(super) fn conclude<T>(
        self,
        result: Result<T, LabError>,
        undo: impl FnOnce() -> Result<(), LabError>,
    ) -> Result<T, LabError> {
        let error = match result {
            Ok(value) => return Ok(value),
            // A command fails when the daemon that it needs has ended, and that is what went wrong first.
            Err(error @ (LabError::CommandFailed { .. } | LabError::CommandSlow { .. })) => {
                self.check_all_run().err().unwrap_or(error)
            }
            Err(error) => error,
        };
        // A second error must not hide the first.
        let undone = daemon::stop(self.home, &self.started, self.progress).and_then(|()| undo());
        if let Err(second) = undone {
            (self.progress)(&format!("not everything could be undone: {second}"));
        }
        Err(error)
    }
}
