//! pgbench or sysbench, started, followed line by line, ended by the user or a timeout.
//!
//! Neither has a warm-up, so that is a run of its own before the one that is measured: the figures are those that the program prints
//! in the end, and nothing is worked out of them.

use super::command::Invocation;
use super::equal;
use super::program::Found;
use crate::counted::{Counted, Counts};
use crate::job::{Job, Program};
use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tidemark_import::output::{Output, Tool};
use tidemark_load::engine::OpenError;
use tidemark_load::stop::StopRequest;
use tidemark_load::stopping::Stop;
use tidemark_load::thread_pool::{Result as Outcome, Watch};
use tidemark_measure::tally::Interval;
use tidemark_plan::engine::Process;
use tidemark_plan::plan::Work;
use tidemark_sandbox::Sandbox;

/// How often the user's stop request is looked at.
const TICK: Duration = Duration::from_millis(50);

/// How much longer than it was told the program may take to connect and to report.
const PATIENCE: Duration = Duration::from_secs(60);

/// More lines than this no run prints: one per second, and the report.
const LINES_MOST: usize = 1_000_000;

/// Lines of an error that are shown.
const SHOWN: usize = 3;

/// A load done by another program.
pub(crate) struct Counterpart {
    invocation: Invocation,
    /// The database as reports name it.
    server: String,
    counted: Arc<Counted>,
}

impl Counterpart {
    /// For a load on one database.
    pub(crate) fn new(found: Found, work: &Work, job: &Job, counted: &Arc<Counted>) -> Result<Self, String> {
        let equal = equal(work, job).map_err(|why| format!("the load {why}"))?;
        Ok(Self {
            invocation: Invocation::new(found, &equal, job, work.load.workers),
            server: job.instances.first().describe(),
            counted: Arc::clone(counted),
        })
    }

    fn tool(&self) -> Tool {
        match self.invocation.found().program {
            Program::Sysbench => Tool::Sysbench,
            _ => Tool::Pgbench,
        }
    }

    fn load(&self, stop: &Stop, watch: &mut dyn Watch) -> Result<Outcome, OpenError> {
        let begun = Instant::now();
        let seconds = |ns: u64| ns / super::SECOND_NS;
        let mut acknowledged = 0;
        let mut outcome = Outcome { threads: self.invocation.threads, ..Outcome::default() };
        if stop.warm_up_ns > 0 {
            match self.run(seconds(stop.warm_up_ns), begun, false, watch)? {
                Some(output) => acknowledged += output.tally.ok,
                None => return Ok(Outcome { interrupted: true, ..outcome }),
            }
        }
        let length = seconds(stop.window_ns.unwrap_or(0));
        let Some(output) = self.run(length, begun, true, watch)? else {
            return Ok(Outcome { interrupted: true, ..outcome });
        };
        // It ends as soon as it has reported.
        let ended_ns = begun.elapsed().as_nanos() as u64;
        acknowledged += output.tally.ok;
        self.counted.add(self.server.clone(), Counts { acknowledged, ..Counts::default() });
        outcome.window_start_ns = ended_ns.saturating_sub(output.elapsed_ns);
        outcome.window_end_ns = outcome.window_start_ns + output.elapsed_ns;
        outcome.last_done_ns = outcome.window_end_ns;
        outcome.remarks = vec![self.remark(stop)];
        outcome.remarks.extend(output.remarks);
        outcome.tallies = vec![output.tally];
        outcome.reported = vec![output.reported];
        Ok(outcome)
    }

    /// What did the load, and how it was told to.
    fn remark(&self, stop: &Stop) -> String {
        let (found, length) = (self.invocation.found(), stop.window_ns.unwrap_or(0) / super::SECOND_NS);
        let warm_up = match stop.warm_up_ns / super::SECOND_NS {
            0 => String::new(),
            seconds => format!(" The warm-up of {seconds} s was a run of its own before it."),
        };
        let told = self.invocation.arguments(length).join(" ");
        format!(
            "The load was done by {}, and its figures are those that it printed: `{} {told}`.{warm_up}",
            found.description(),
            found.program.name()
        )
    }

    /// One run of the program. `None`: the user ended it, and it has not reported.
    fn run(
        &self,
        seconds: u64,
        begun: Instant,
        measures: bool,
        watch: &mut dyn Watch,
    ) -> Result<Option<Output>, OpenError> {
        let found = self.invocation.found();
        let failed =
            |error: &dyn Display| OpenError(format!("cannot start {}: {error}", found.path.display()));
        // What it writes goes to the database: it has no business with files.
        let started = Sandbox::default().spawn_where_supported(&mut self.invocation.command(seconds));
        let mut child = Running(started.map_err(|error| failed(&error))?);
        let (sender, news) = channel();
        let last = Instant::now() + Duration::from_secs(seconds) + PATIENCE;
        let (pid, threads) = (child.0.id(), self.invocation.threads);
        let mut second =
            Second { next: begun.elapsed().as_secs() as u32, before: 0.0, used_ns: 0, threads, measures };
        let (mut lines, mut interrupted): (Vec<String>, bool) = (Vec::new(), false);
        let (stdout, stderr) = (child.0.stdout.take(), child.0.stderr.take());
        std::thread::scope(|scope| {
            let both = sender.clone();
            scope.spawn(move || stdout.into_iter().for_each(|pipe| read(pipe, &both)));
            scope.spawn(move || stderr.into_iter().for_each(|pipe| read(pipe, &sender)));
            loop {
                match news.recv_timeout(TICK) {
                    Ok(line) => {
                        if let Some((at, rate)) = self.tool().progress(&line) {
                            watch.interval(&second.ended(at, rate, used_ns(pid)));
                        }
                        if lines.len() < LINES_MOST {
                            lines.push(line);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                interrupted |= watch.stop_request() != StopRequest::None;
                if interrupted || Instant::now() >= last {
                    child.kill();
                }
            }
        });
        let status = child.0.wait().map_err(|error| failed(&error))?;
        match status.success() {
            true => self.tool().read(&lines.join("\n")).map(Some).map_err(OpenError),
            false if interrupted => Ok(None),
            false => Err(self.failure(status, &lines)),
        }
    }

    /// What the program says of its end.
    fn failure(&self, status: ExitStatus, lines: &[String]) -> OpenError {
        let name = self.invocation.found().program.name();
        let is_error = |line: &&String| line.contains("error") || line.contains("FATAL");
        let errors: Vec<&String> = match lines.iter().filter(is_error).take(SHOWN).collect::<Vec<_>>() {
            none if none.is_empty() => lines.iter().rev().take(SHOWN).rev().collect(),
            errors => errors,
        };
        let said = errors.into_iter().map(|line| line.trim()).collect::<Vec<_>>().join("; ");
        OpenError(match status.code() {
            Some(code) => format!("{name} failed with the exit code {code}: {said}"),
            None => format!("{name} did not end within {} s of its time: {said}", PATIENCE.as_secs()),
        })
    }
}

impl Process for Counterpart {
    fn run(&self, works: &[&Work], watches: &mut [&mut dyn Watch]) -> Vec<Result<Outcome, OpenError>> {
        let each = works.iter().zip(watches);
        each.map(|(work, watch)| self.load(&work.load.stop, &mut **watch)).collect()
    }
}

/// A process that does not outlive this.
struct Running(Child);

impl Running {
    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = self.0.wait();
    }
}

/// Progress lines as seconds of the work.
struct Second {
    /// The next one, counted from the work's start.
    next: u32,
    /// When the last line came, seconds since the program's beginning.
    before: f64,
    /// Processor time of the program until then.
    used_ns: u64,
    threads: u32,
    measures: bool,
}

impl Second {
    /// The second that a line reports on, which came at `at` seconds, when the program had used so much processor time.
    fn ended(&mut self, at: f64, rate: f64, used_ns: Option<u64>) -> Interval {
        let length = (at - self.before).max(0.0);
        let done = (rate * length).round() as u64;
        let mut interval = Interval::new(self.next, 1);
        match self.measures {
            true => interval.actions[0].ok = done,
            false => interval.unmeasured = done,
        }
        if let Some(used_ns) = used_ns {
            interval.cpu_ns = used_ns.saturating_sub(self.used_ns);
            interval.wall_ns = (length * super::SECOND_NS as f64) as u64 * u64::from(self.threads);
            self.used_ns = used_ns;
        }
        self.next += 1;
        self.before = at.max(self.before);
        interval
    }
}

/// Processor time that a process has used, all of its threads together (proc(5): `utime` and `stime`).
fn used_ns(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name, in brackets, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_ascii_whitespace().skip(11).take(2);
    let ticks: u64 = times.map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(ticks * super::SECOND_NS / rustix::param::clock_ticks_per_second())
}

/// The lines of a pipe to its end, whatever bytes they are of.
fn read(pipe: impl Read, lines: &Sender<String>) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while pipe.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        // The run is over when the receiver is dropped.
        let _ = lines.send(text);
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(next: u32, measures: bool) -> Second {
        Second { next, before: 0.0, used_ns: 0, threads: 4, measures }
    }

    #[test]
    fn progress_lines_are_seconds_of_the_work_and_lose_nothing() {
        let first = seconds(0, false).ended(1.0, 90.5, None);
        assert_eq!((first.index, first.unmeasured, first.actions[0].ok), (0, 91, 0));
        let mut measured = seconds(2, true);
        let lines = [(1.0, 100.0), (2.1, 100.0), (3.0, 50.0)];
        let found = lines.map(|(at, rate)| measured.ended(at, rate, Some((at * 5e8) as u64)));
        assert_eq!(
            found.each_ref().map(|second| (second.index, second.actions[0].ok)),
            [(2, 100), (3, 110), (4, 45)]
        );
        let busy = found.map(|second| second.cpu_ns as f64 / second.wall_ns as f64);
        assert!(
            busy.iter().all(|share| (share - 0.125).abs() < 1e-6),
            "half a processor by 4 threads: {busy:?}"
        );
    }

    #[test]
    fn processor_time_is_that_of_the_process() {
        let begun = Instant::now();
        while used_ns(std::process::id()).expect("proc is mounted") == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "it computes all the time");
        }
        assert_eq!(used_ns(u32::MAX), None);
    }
}
