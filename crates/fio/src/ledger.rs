//! What is known of the works while fio runs, and what is left of it in the end.

use crate::file::FioFile;
use crate::import::{self, Seconds, Snapshot, Track};
use crate::jobfile::Process;
use crate::json::{Document, Job};
use crate::stderr::{self, Stderr};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;
use tidemark_block::job::{self, Action};
use tidemark_load::engine::OpenError;
use tidemark_load::pacing::Pacing;
use tidemark_load::thread_pool::{EXAMPLES_PER_FAULT, Result as Outcome, Watch};
use tidemark_measure::counts::FaultCounts;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Example, WorkerCount};
use tidemark_measure::tally::Tally;
use tidemark_plan::plan::Work;

const MS: u64 = 1_000_000;

/// How much longer than planned fio may take, beyond the work's own drain.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The works that fio runs, and what it reported of them.
pub(crate) struct Ledger<'a> {
    accounts: Vec<Account<'a>>,
    /// The last report of each process.
    reports: Vec<Option<Document>>,
    stderr: Vec<Stderr>,
    /// Why all was given up.
    given_up: String,
}

/// One work.
struct Account<'a> {
    work: &'a Work,
    actions: &'a [Action],
    /// Whether it is a job of a job file, and not all that a process does.
    is_of_file: bool,
    /// Whether it reads back what it wrote when all is written.
    reads_back: bool,
    /// Whether it calls `sync_file_range`.
    syncs_ranges: bool,
    /// One for each process.
    tracks: Vec<Track>,
    seconds: Seconds,
    remarks: Vec<String>,
    /// When its first success was heard of, since the start.
    begun: Option<Duration>,
}

/// Failures of one kind in one job.
struct Failure {
    action: usize,
    fault: Fault,
    count: u64,
    text: String,
    /// Whether they are among fio's `total_ios`.
    is_issued: bool,
}

impl<'a> Account<'a> {
    fn new(work: &'a Work, processes: &[Process]) -> Self {
        let file = work.job.get::<FioFile>();
        let of_file = file.map(|file| &file.actions[..]);
        let of_volumes = || work.job.get::<job::Job>().map(|job| &job.actions[..]);
        let actions = of_file.or_else(of_volumes).unwrap_or_default();
        let ramp_ns = work.load.stop.phases().window_start;
        let mut remarks: Vec<String> = Vec::new();
        for remark in processes.iter().flat_map(|process| &process.remarks) {
            if !remarks.contains(remark) {
                remarks.push(remark.clone());
            }
        }
        Self {
            work,
            actions,
            is_of_file: file.is_some(),
            reads_back: file.is_some_and(|file| file.reads_back),
            syncs_ranges: file.is_some_and(|file| file.syncs_ranges),
            tracks: processes.iter().map(|_| Track::new(ramp_ns)).collect(),
            seconds: Seconds::new(actions.len(), processes.len()),
            remarks,
            begun: None,
        }
    }

    /// Whether it bypasses the page cache.
    fn is_direct(&self) -> bool {
        let of_volumes = || self.work.job.get::<job::Job>().is_some_and(|job| job.direct);
        self.work.job.get::<FioFile>().map_or_else(of_volumes, |file| file.direct)
    }

    /// The jobs of a report that are this work's: all of a client's process, or those that fio calls by its name.
    fn jobs<'d>(&self, document: &'d Document) -> impl Iterator<Item = &'d Job> + use<'d, '_, 'a> {
        document.jobs.iter().filter(|job| self.has(job))
    }

    fn has(&self, job: &Job) -> bool {
        !self.is_of_file || job.jobname == self.work.name
    }

    fn snapshot<'d>(&self, jobs: impl Iterator<Item = &'d Job>) -> Snapshot {
        Snapshot::of(jobs, self.actions, self.reads_back)
    }

    /// Whether fio reports several of its jobs as one, so that nobody knows what each of them did.
    fn is_summed_up(&self, document: &Document) -> bool {
        self.is_of_file && self.jobs(document).count() < self.work.load.workers as usize
    }

    /// Operations of a job that Tidemark did not expect from its file: no result includes them.
    fn strays(&self, job: &Job) -> Option<String> {
        let unexpected = [Action::Read, Action::Write, Action::Trim].into_iter().find_map(|action| {
            let count = import::done(job, action);
            (count > 0 && self.position(action).is_none()).then_some((count, action))
        });
        let (count, action) = unexpected?;
        let name = &job.jobname;
        Some(format!(
            "fio reports {count} operations ({}) of job {name} that Tidemark did not expect from its file: no result includes them",
            action.name()
        ))
    }

    fn position(&self, action: Action) -> Option<usize> {
        self.actions.iter().position(|own| *own == action)
    }
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(works: &[&'a Work], processes: &[Process]) -> Self {
        Self {
            accounts: works.iter().map(|work| Account::new(work, processes)).collect(),
            reports: processes.iter().map(|_| None).collect(),
            stderr: processes.iter().map(|_| Stderr::default()).collect(),
            given_up: String::new(),
        }
    }

    /// Takes a report that came at `at` since the start.
    pub(crate) fn report(&mut self, process: usize, at: Duration, document: Document) {
        for account in &mut self.accounts {
            let snapshot = account.snapshot(account.jobs(&document));
            if snapshot.done() > 0 {
                account.begun.get_or_insert(at);
            }
            if let Some(interval) = account.tracks[process].take(snapshot, at) {
                account.seconds.add(process, interval);
            }
        }
        self.reports[process] = Some(document);
    }

    /// Takes a line of what fio says to people.
    pub(crate) fn line(&mut self, process: usize, line: &str) {
        self.stderr[process].hear(line);
    }

    /// A process has ended.
    pub(crate) fn ended(&mut self, process: usize) {
        self.accounts.iter_mut().for_each(|account| account.seconds.end(process));
    }

    /// Gives seconds that are complete, or with `all` all of them, to the watches.
    pub(crate) fn tell(&mut self, watches: &mut [&mut dyn Watch], all: bool) {
        for (account, watch) in self.accounts.iter_mut().zip(watches) {
            while let Some(interval) = account.seconds.next(all) {
                watch.interval(&interval);
            }
        }
    }

    /// Whether a process has not done a single operation.
    pub(crate) fn has_done_nothing(&self, process: usize) -> bool {
        self.reports[process].as_ref().is_none_or(|report| report.jobs.iter().all(is_untouched))
    }

    /// Whether all is to be given up at `now` since the start: too long without a success, or past its time.
    pub(crate) fn loses_patience(&mut self, now: Duration) -> bool {
        for account in &self.accounts {
            let Some(begun) = account.begun else { continue };
            let stop = &account.work.load.stop;
            let running = now.saturating_sub(begun);
            let planned = Duration::from_nanos(stop.phases().load_end.saturating_add(stop.drain_ns));
            if running > planned.saturating_add(TIMEOUT) {
                self.given_up = format!("fio did not end within {} s of its planned end", TIMEOUT.as_secs());
            }
            let silent = running.saturating_sub(Duration::from_nanos(account.seconds.last_ok_ns));
            if let Some(timeout) = stop.give_up_ns.map(Duration::from_nanos)
                && silent > timeout.saturating_add(TIMEOUT)
            {
                self.given_up = format!("no operation succeeded for {} s", silent.as_secs());
            }
        }
        !self.given_up.is_empty()
    }

    /// What each work left behind.
    pub(crate) fn results(
        mut self,
        statuses: &[Option<ExitStatus>],
        interrupted: bool,
        watches: &mut [&mut dyn Watch],
    ) -> Result<Vec<Outcome>, OpenError> {
        if !interrupted && self.given_up.is_empty() {
            let all = statuses.iter().enumerate();
            all.into_iter().try_for_each(|(process, status)| self.check_start(process, *status))?;
        }
        let mut outcomes = Vec::new();
        for index in 0..self.accounts.len() {
            let (mut outcome, failures) = self.outcome(index, statuses, interrupted);
            if let Some(stray) = self.strays(index).filter(|_| outcome.given_up.is_empty()) {
                outcome.given_up = stray;
            }
            let account = &mut self.accounts[index];
            for failure in failures {
                charge(&mut outcome.tallies, &failure);
                charge(&mut account.seconds.last().actions, &failure);
                let kept = outcome.examples.iter().filter(|example| example.fault == failure.fault).count();
                if kept < EXAMPLES_PER_FAULT
                    && !outcome.examples.iter().any(|other| other.text == failure.text)
                {
                    outcome.examples.push(Example { fault: failure.fault, text: failure.text });
                }
            }
            outcomes.push(outcome);
        }
        self.tell(watches, true);
        for (outcome, account) in outcomes.iter_mut().zip(&mut self.accounts) {
            let end = outcome.window_end_ns.max(account.seconds.last_ok_ns);
            account.seconds.hear(end);
            outcome.longest_gap = account.seconds.longest_gap;
        }
        Ok(outcomes)
    }

    /// What fio reports and no result of a work includes; jobs without any work count for the first one.
    fn strays(&self, index: usize) -> Option<String> {
        let account = &self.accounts[index];
        let reports = || self.reports.iter().flatten();
        let own = reports().flat_map(|report| account.jobs(report)).find_map(|job| account.strays(job));
        let is_placed = |job: &Job| self.accounts.iter().any(|account| account.has(job));
        let lost =
            || reports().flat_map(|report| &report.jobs).find(|job| !is_placed(job) && !is_untouched(job));
        own.or_else(|| {
            let job = lost().filter(|_| index == 0)?;
            Some(format!(
                "fio reports a job {} that Tidemark does not find in the file: no result includes it",
                job.jobname
            ))
        })
    }

    /// Whether fio failed before it did anything: then what it said is the answer.
    fn check_start(&self, process: usize, status: Option<ExitStatus>) -> Result<(), OpenError> {
        let stderr = &self.stderr[process];
        let direct = self.accounts.iter().any(Account::is_direct);
        let failed =
            |what: &str| Err(OpenError(format!("fio {what}: {}{}", stderr.words(), stderr.remedy(direct))));
        let Some(report) = &self.reports[process] else {
            let signal = status.and_then(|status| status.signal());
            return failed(
                &signal.map_or("did not run".into(), |signal| format!("was killed by signal {signal}")),
            );
        };
        let error = report.jobs.iter().map(|job| job.error).find(|error| *error != 0);
        let has_begun = error.is_some_and(|error| stderr.failure(error).is_some());
        let is_storage = error.is_some_and(|error| {
            matches!(
                stderr::class(error),
                Fault::Io | Fault::NoSpace | Fault::Gone | Fault::Timeout | Fault::WrongContent
            )
        });
        let is_untouched = report.jobs.iter().all(is_untouched);
        // By itself: one that was killed did not fail to start.
        let has_failed =
            error.is_some() || status.and_then(|status| status.code()).is_some_and(|code| code != 0);
        match () {
            () if report.jobs.is_empty() => failed("reported no job"),
            () if has_failed && is_untouched && has_begun && !is_storage => {
                failed("failed at its first operation")
            }
            () if has_failed && is_untouched && !has_begun => failed("could not start"),
            // It refuses some devices and files without calling that an error.
            () if !has_failed && report.jobs.iter().all(has_not_run) && stderr.complains() => {
                failed("did nothing")
            }
            () => Ok(()),
        }
    }

    fn outcome(
        &self,
        index: usize,
        statuses: &[Option<ExitStatus>],
        interrupted: bool,
    ) -> (Outcome, Vec<Failure>) {
        let account = &self.accounts[index];
        let load = &account.work.load;
        let mut tallies = vec![Tally::default(); account.actions.len()];
        let (mut workers, mut failures) = (Vec::new(), Vec::new());
        let (mut given_up, mut remarks) = (self.given_up.clone(), account.remarks.clone());
        let window_start_ns = load.stop.phases().window_start;
        let runtime_ms = account.tracks.iter().map(|track| track.runtime_ms).max().unwrap_or(0);
        let window_end_ns = window_start_ns + runtime_ms * MS;
        let mut latencies = Latencies::default();
        // The devices have seen these, too.
        for track in &account.tracks {
            for (tally, bytes) in tallies.iter_mut().zip(&track.forgotten) {
                tally.outside_bytes += bytes;
            }
        }
        for (process, report) in self.reports.iter().enumerate() {
            let stderr = &self.stderr[process];
            let trouble = trouble(statuses.get(process).copied().flatten(), stderr, report.as_ref());
            if let (Some(trouble), false) = (trouble, interrupted || !given_up.is_empty()) {
                let (text, fault) = (trouble.clone(), Fault::Local);
                failures.push(Failure { action: 0, fault, count: 1, text, is_issued: false });
                given_up = trouble;
            }
            let Some(report) = report else { continue };
            for disk in &report.disk_util {
                remarks.push(format!(
                    "fio counted on {}: {} reads, {} writes, {:.1} % busy.",
                    disk.name, disk.read_ios, disk.write_ios, disk.util
                ));
            }
            for job in account.jobs(report) {
                let failed = account.failures(job, stderr);
                if account.tracks[process].is_ramping {
                    failures.extend(failed);
                    continue;
                }
                account.snapshot(std::iter::once(job)).add_to(&mut tallies);
                if account.is_summed_up(report) {
                    failures.extend(failed);
                    latencies.see(job);
                    continue;
                }
                let worker = match account.is_of_file {
                    true => workers.last().map_or(0, |last: &WorkerCount| last.worker + 1),
                    false => process as u32,
                };
                workers.extend(account.counts(job, &failed, worker, (window_start_ns, window_end_ns)));
                failures.extend(failed);
                latencies.see(job);
            }
            if account.tracks[process].is_ramping && !interrupted && given_up.is_empty() {
                given_up = "fio ended during its ramp-up: nothing was measured".into();
            }
        }
        remarks.extend(latencies.remark());
        if account.reads_back {
            let text =
                "fio read back what it had written, to verify it: rates are over both phases together.";
            remarks.push(text.into());
        }
        if account.syncs_ranges {
            remarks.push(
                "fio counts its calls of sync_file_range as short writes, so short writes are not counted."
                    .into(),
            );
        }
        if let Some(line) = self.stderr.iter().find_map(Stderr::lost_log) {
            remarks.push(format!("fio could not write a log: {line}."));
        }
        let ok: u64 = tallies.iter().map(|tally| tally.ok).sum();
        let is_cut = interrupted || !given_up.is_empty();
        let outcome = Outcome {
            tallies,
            window_start_ns,
            window_end_ns,
            last_done_ns: window_end_ns.min(account.seconds.end_ns()).max(window_start_ns),
            offered_rate: match &load.pacing {
                Pacing::Open { rate, .. } => Some(rate.at(window_start_ns)),
                Pacing::Closed { .. } | Pacing::Terminals { .. } => None,
            },
            workers,
            undone: load.source.operations().filter(|_| is_cut).map_or(0, |all| all.saturating_sub(ok)),
            threads: if account.is_of_file { load.workers } else { self.reports.len() as u32 },
            given_up,
            interrupted,
            remarks,
            ..Outcome::default()
        };
        (outcome, failures)
    }
}

impl Account<'_> {
    /// What failed in a job.
    fn failures(&self, job: &Job, stderr: &Stderr) -> Vec<Failure> {
        let mut failures = Vec::new();
        let errors = job.total_err.unwrap_or(0).max(u64::from(job.error != 0));
        if errors > 0 {
            let system = std::io::Error::from_raw_os_error(job.error as i32).to_string();
            let (text, action) = match stderr.failure(job.error) {
                Some((line, action)) => (line.to_owned(), action),
                None => (format!("fio: job {} ended: {system}", job.jobname), None),
            };
            let action = action.and_then(|action| self.position(action)).unwrap_or(0);
            failures.push(Failure {
                action,
                fault: stderr::class(job.error),
                count: errors,
                text,
                is_issued: true,
            });
        }
        // What it calls a short write may be a call of sync_file_range.
        let short_writes = if self.syncs_ranges { 0 } else { job.write.short_ios };
        let short = [job.short_reads(), short_writes, job.trim.short_ios];
        let dropped = [job.read.drop_ios, job.write.drop_ios, job.trim.drop_ios];
        let directions = [Action::Read, Action::Write, Action::Trim];
        for ((direction, short), dropped) in directions.into_iter().zip(short).zip(dropped) {
            let action = self.position(direction).unwrap_or(0);
            let name = direction.name();
            let text = format!("fio: {short} operations ({name}) of job {} moved too little", job.jobname);
            failures.push(Failure {
                action,
                fault: Fault::ShortTransfer,
                count: short,
                text,
                is_issued: true,
            });
            let text = format!("fio: {dropped} operations ({name}) of job {} were dropped", job.jobname);
            failures.push(Failure {
                action,
                fault: Fault::Abandoned,
                count: dropped,
                text,
                is_issued: false,
            });
        }
        failures.retain(|failure| failure.count > 0);
        failures
    }

    /// What a job did, as one worker; `failed` is what failed in it.
    fn counts(&self, job: &Job, failed: &[Failure], worker: u32, window: (u64, u64)) -> Vec<WorkerCount> {
        let count = |(index, action): (usize, &Action)| {
            let own = || failed.iter().filter(|failure| failure.action == index);
            let issued: u64 = own().filter(|failure| failure.is_issued).map(|failure| failure.count).sum();
            let direction = import::part(job, *action)?;
            let latency = direction.latency();
            let begins_ms = if self.reads_back && *action == Action::Read { job.write.runtime } else { 0 };
            let first_sent_ns = window.0 + begins_ms * MS;
            Some(WorkerCount {
                worker,
                operation: index as u16,
                ok: import::done(job, *action).saturating_sub(issued),
                failed: own().map(|failure| failure.count).sum(),
                bytes: direction.io_bytes,
                response_ns: (latency.mean * latency.count as f64) as u64,
                first_sent_ns,
                last_done_ns: (first_sent_ns + direction.runtime * MS).min(window.1),
            })
        };
        self.actions.iter().enumerate().filter_map(count).collect()
    }
}

/// Counts a failure in its action's tally. fio counts operations when it issues them, failed ones too.
fn charge(tallies: &mut [Tally], failure: &Failure) {
    let Some(tally) = tallies.get_mut(failure.action) else { return };
    if failure.is_issued {
        tally.ok = tally.ok.saturating_sub(failure.count);
    }
    tally.faults.add(&FaultCounts::from(vec![(failure.fault, failure.count)]));
}

/// Whether a job did nothing that succeeded.
fn is_untouched(job: &Job) -> bool {
    let errors = job.total_err.unwrap_or(0).max(u64::from(job.error != 0));
    job.read.total_ios + job.write.total_ios + job.trim.total_ios <= errors
}

/// Whether a job has not even tried.
fn has_not_run(job: &Job) -> bool {
    let all = [&job.read, &job.write, &job.trim];
    is_untouched(job) && all.iter().all(|direction| direction.runtime == 0)
}

/// What ended a process, other than a job's own error.
fn trouble(status: Option<ExitStatus>, stderr: &Stderr, report: Option<&Document>) -> Option<String> {
    if let Some(signal) = status.and_then(|status| status.signal()) {
        return Some(format!("fio was killed by signal {signal}"));
    }
    if let Some(signal) = stderr.signal() {
        return Some(format!("a job of fio was killed by signal {signal}"));
    }
    let is_explained = report.is_some_and(|report| report.jobs.iter().any(|job| job.error != 0));
    let failed = status.filter(|status| !status.success() && !is_explained)?;
    Some(format!("fio ended with {failed}: {}", stderr.words()))
}

/// Which latencies were imported.
#[derive(Default)]
struct Latencies {
    whole: bool,
    completion: bool,
}

impl Latencies {
    fn see(&mut self, job: &Job) {
        for direction in [&job.read, &job.write, &job.trim] {
            let is_whole = !direction.lat_ns.bins.is_empty();
            self.whole |= is_whole;
            self.completion |= !is_whole && !direction.clat_ns.bins.is_empty();
        }
    }

    fn remark(&self) -> Option<String> {
        let text = match (self.whole, self.completion) {
            (true, false) => "Latencies are fio's lat: from an operation's creation to its completion.",
            (false, true) => {
                "Latencies are fio's clat, from submission to completion: set `lat_percentiles=1` for the whole latency."
            }
            (true, true) => "Latencies are fio's lat where it reported the bins, otherwise its clat.",
            (false, false) => "fio reported no latencies (`gtod_reduce`, `disable_lat`, or no operations).",
        };
        Some(text.into())
    }
}

#[cfg(test)]
mod tests;
