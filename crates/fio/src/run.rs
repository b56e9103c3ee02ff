//! Runs works through fio: processes started, followed report by report, ended by the user or a timeout.

use crate::children::Children;
use crate::domain::Domain;
use crate::file::FioFile;
use crate::jobfile::{self, Process};
use crate::json::{Document, Piece, Stream};
use crate::ledger::Ledger;
use crate::logs::Logs;
use crate::program::Program;
use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tidemark_block::job::Job;
use tidemark_load::engine::OpenError;
use tidemark_load::stop::StopRequest;
use tidemark_load::thread_pool::{Result as Outcome, Watch};
use tidemark_plan::plan::Work;

/// How often the user's stop request and the processes are looked at.
const TICK: Duration = Duration::from_millis(50);

/// How long fio may take to report after it was interrupted, before it is killed.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// What the threads that read fio's output tell.
pub(crate) enum News {
    /// A report of a process, and when it came since the start.
    Report(usize, Duration, Box<Document>),
    /// A line for people.
    Line(usize, String),
}

/// Runs one work on volumes, one process per client, or several jobs of a job file in one process; they must be of the
/// same text and sections. One watch and one result for each work, in their order.
///
/// fio's own numbers are kept: `ok` is its `total_ios` without failures, the window is as long as the longest `runtime`,
/// and histograms hold its latency bins (`lat_ns` where fio gives them, else `clat_ns`; the result's remarks say which).
/// Seconds are differences of its cumulative reports, about one second apart.
///
/// # Errors
/// When fio cannot do what the work requires, or fails before it has done anything: its stderr, and the remedy.
pub fn run(
    fio: &Program,
    works: &[&Work],
    watches: &mut [&mut dyn Watch],
) -> Result<Vec<Outcome>, OpenError> {
    let (processes, _logs) = prepare(fio, works)?;
    let start = Instant::now();
    let (sender, news) = channel();
    std::thread::scope(|scope| {
        // Declared within the scope: when it returns early fio is killed first, and then its readers end.
        let mut children = Children::default();
        for (index, process) in processes.iter().enumerate() {
            let (stdout, stderr) = children.start(fio, process)?;
            let (reports, lines) = (sender.clone(), sender.clone());
            scope.spawn(move || {
                stdout.into_iter().for_each(|pipe| read_reports(index, pipe, start, &reports));
            });
            scope.spawn(move || stderr.into_iter().for_each(|pipe| read_lines(index, pipe, &lines)));
        }
        drop(sender);
        let mut ledger = Ledger::new(works, &processes);
        let interrupted = follow(&mut children, &news, &mut ledger, watches, start)?;
        ledger.results(&children.statuses(), interrupted, watches)
    })
}

/// What the works would leave behind if one fio had printed this for them, a report a second, and ended well.
///
/// # Errors
/// As [`run`].
pub fn replay(
    output: &str,
    works: &[&Work],
    watches: &mut [&mut dyn Watch],
) -> Result<Vec<Outcome>, OpenError> {
    let mut ledger = Ledger::new(works, &[Process::default()]);
    let (mut stream, mut at) = (Stream::default(), Duration::ZERO);
    for line in output.lines() {
        match stream.line(line) {
            None => {}
            Some(Piece::Document(document)) => {
                at += Duration::from_secs(1);
                ledger.report(0, at, *document);
                ledger.tell(watches, false);
            }
            Some(Piece::Chatter(line) | Piece::Garbage(line)) => ledger.line(0, &line),
        }
    }
    ledger.ended(0);
    ledger.results(&[None], false, watches)
}

/// The processes for the works, and the logs of a job file.
fn prepare(fio: &Program, works: &[&Work]) -> Result<(Vec<Process>, Logs), OpenError> {
    if let [work] = works
        && let Some(job) = work.job.get::<Job>()
    {
        return Ok((mirror(fio, work, job)?, Logs::default()));
    }
    let files: Vec<&FioFile> = works.iter().filter_map(|work| work.job.get()).collect();
    let Some(first) = files.first().filter(|_| files.len() == works.len()) else {
        return Err(OpenError("fio runs one work on volumes, or the jobs of one job file".into()));
    };
    if !files.iter().all(|file| file.shares_run(first)) {
        return Err(OpenError("works of different job files cannot share one fio process".into()));
    }
    let mut sandbox = Domain::of_files(files.iter().copied(), fio.examined()).map_err(OpenError)?.sandbox();
    let jobs = works.iter().map(|work| work.load.workers).sum();
    let mut logs = Logs::make(&files, jobs).map_err(OpenError)?;
    logs.allow(&mut sandbox);
    let process = Process {
        text: first.text.to_string(),
        sections: first.sections.to_vec(),
        sandbox,
        remarks: std::mem::take(&mut logs.remarks),
        ..Process::default()
    };
    Ok((vec![process], logs))
}

/// The processes for a work on volumes.
fn mirror(fio: &Program, work: &Work, job: &Job) -> Result<Vec<Process>, OpenError> {
    let processes = jobfile::processes(work, job, fio.devices())?;
    jobfile::check_files(work, job)?;
    let engines = fio.engines().map_err(|error| OpenError(error.to_string()))?;
    let needed = |process: &Process| {
        let line = process.text.lines().find_map(|line| line.strip_prefix("ioengine="));
        line.filter(|engine| !engines.contains(*engine)).map(str::to_owned)
    };
    match processes.iter().find_map(needed) {
        None => Ok(processes),
        Some(engine) => Err(OpenError(format!(
            "fio {} at {} has no engine `{engine}`: install a fio with it, or set {} to its path",
            fio.version(),
            fio.path().display(),
            crate::program::VARIABLE
        ))),
    }
}

/// Reads fio's output until all processes have ended and closed it. Returns whether the user ended it.
fn follow(
    children: &mut Children,
    news: &Receiver<News>,
    ledger: &mut Ledger<'_>,
    watches: &mut [&mut dyn Watch],
    start: Instant,
) -> Result<bool, OpenError> {
    let (mut interrupted, mut kill_at): (bool, Option<Instant>) = (false, None);
    loop {
        match news.recv_timeout(TICK) {
            Ok(News::Report(process, at, document)) => {
                ledger.report(process, at, *document);
                ledger.tell(watches, false);
            }
            Ok(News::Line(process, line)) => ledger.line(process, &line),
            Err(RecvTimeoutError::Timeout) => {}
            // Its readers have ended; it may not quite have.
            Err(RecvTimeoutError::Disconnected) if children.are_gone() => return Ok(interrupted),
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK / 10),
        }
        for (process, status) in children.ended() {
            // What it wrote last may still be on its way: only the stop request to end early depends on it.
            if !status.success() && !interrupted && ledger.has_done_nothing(process) {
                children.interrupt();
                kill_at.get_or_insert(Instant::now() + LAST_WORDS);
            }
            ledger.ended(process);
        }
        let stop_request = watches.iter_mut().map(|watch| watch.stop_request()).max().unwrap_or_default();
        interrupted |= stop_request != StopRequest::None;
        if stop_request == StopRequest::Stop || kill_at.is_some_and(|at| Instant::now() >= at) {
            children.kill();
        }
        if kill_at.is_none()
            && (stop_request == StopRequest::Finish || ledger.loses_patience(start.elapsed()))
        {
            children.interrupt();
            kill_at = Some(Instant::now() + LAST_WORDS);
        }
    }
}

/// The lines of a pipe to its end, whatever bytes they are of.
fn lines(pipe: impl Read) -> impl Iterator<Item = String> {
    let mut pipe = BufReader::new(pipe);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        match pipe.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
        }
    })
}

fn read_reports(process: usize, pipe: impl Read, start: Instant, news: &Sender<News>) {
    let mut stream = Stream::default();
    for line in lines(pipe) {
        let told = match stream.line(&line) {
            None => continue,
            Some(Piece::Document(document)) => News::Report(process, start.elapsed(), document),
            Some(Piece::Chatter(line)) => News::Line(process, line),
            Some(Piece::Garbage(reason)) => {
                News::Line(process, format!("cannot read a report of fio: {reason}"))
            }
        };
        // The run is over when the receiver is dropped.
        let _ = news.send(told);
    }
}

fn read_lines(process: usize, pipe: impl Read, news: &Sender<News>) {
    for line in lines(pipe) {
        let _ = news.send(News::Line(process, line));
    }
}
