//! What runs works: a thread pool of our own threads for one work, a fio process for one or several, or drivers elsewhere.

use crossbeam_channel::Sender;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;
use tidemark_fio::Fio;
use tidemark_load::engine::{Engine, OpenError};
use tidemark_load::thread_pool::{self, Coordinator, Ending, StopRequest, Watch};
use tidemark_load::work::Share;
use tidemark_measure::record::Second;
use tidemark_measure::tally::Interval;
use tidemark_measure::wire::SecondSummary;
use tidemark_plan::plan;

/// Works ready to run.
pub enum Runner<'a> {
    /// One work, on threads of our own.
    Threads(&'a plan::Work, Box<dyn Engine>),
    /// Works that share a run of fio.
    Fio(Vec<&'a plan::Work>, Arc<Fio>),
    /// One work, on drivers.
    Remote(&'a plan::Work, Box<dyn RemoteWork>),
    /// One work that has nothing to do, and why.
    Nothing(&'a plan::Work, String),
}

/// A work that runs on drivers.
pub trait RemoteWork: Send + Sync {
    /// Follows it to its end.
    fn follow(
        &self,
        work: &plan::Work,
        reporter: &mut Reporter<'_>,
    ) -> Result<thread_pool::Result, OpenError>;
}

/// How one work ended.
pub(crate) struct WorkResult<'a> {
    pub(crate) plan: &'a plan::Work,
    /// When it started, nanoseconds since the run's start.
    pub(crate) started_ns: u64,
    pub(crate) result: Result<thread_pool::Result, OpenError>,
    pub(crate) series: Vec<Second>,
}

/// An event of a running work.
pub(crate) enum Told {
    /// A second is complete.
    Second(Box<Interval>),
    /// What one driver did in a second.
    Share(String, SecondSummary),
    /// What the user should know.
    Trouble(String),
}

/// Where events go, and stop requests come from.
pub(crate) struct Line<'a> {
    pub(crate) run_start: Instant,
    pub(crate) threads: u32,
    pub(crate) told: Sender<(usize, Told)>,
    pub(crate) stop_request: &'a AtomicU8,
}

impl<'a> Runner<'a> {
    /// The works, in the stage's order.
    pub fn works(&self) -> Vec<&'a plan::Work> {
        match self {
            Runner::Threads(work, _) | Runner::Remote(work, _) | Runner::Nothing(work, _) => vec![*work],
            Runner::Fio(works, _) => works.clone(),
        }
    }

    /// Runs them to their end; `first` is the number of the first of them in the stage.
    pub(crate) fn play(&self, first: usize, line: &Line<'_>) -> Vec<WorkResult<'a>> {
        let started_ns = line.run_start.elapsed().as_nanos() as u64;
        let works = self.works();
        let reporter = |index| Reporter {
            work: first + index,
            told: line.told.clone(),
            stop_request: line.stop_request,
            series: Vec::new(),
            started_ns,
        };
        let mut reporters: Vec<_> = (0..works.len()).map(reporter).collect();
        let results: Vec<Result<thread_pool::Result, OpenError>> = match self {
            Runner::Threads(work, engine) => {
                vec![thread_pool::run(&work.load, &**engine, line.threads, &mut reporters[0])]
            }
            Runner::Fio(works, fio) => {
                let mut watches: Vec<&mut dyn Watch> =
                    reporters.iter_mut().map(|reporter| reporter as &mut dyn Watch).collect();
                run_fio(fio, works, &mut watches)
            }
            Runner::Remote(work, remote) => vec![remote.follow(work, &mut reporters[0])],
            Runner::Nothing(..) => vec![Ok(thread_pool::Result::default())],
        };
        works
            .into_iter()
            .zip(results)
            .zip(reporters)
            .map(|((plan, result), reporter)| {
                let Reporter { started_ns, series, .. } = reporter;
                WorkResult { plan, started_ns, result, series }
            })
            .collect()
    }

    /// Runs this process's shares of the works, one coordinator for each: a driver's part of a stage.
    pub fn play_shares(
        &self,
        shares: &[Share],
        threads: u32,
        coordinators: &mut [&mut dyn Coordinator],
    ) -> Vec<Result<Ending, OpenError>> {
        match (self, shares, &mut *coordinators) {
            (Runner::Threads(work, engine), [share], [coordinator]) => {
                vec![thread_pool::run_share(&work.load, *share, &**engine, threads, &mut **coordinator)]
            }
            (Runner::Fio(works, fio), _, coordinators) => {
                // fio starts its clients itself: all that can be done is to start it in time.
                let start = coordinators.first_mut().and_then(|coordinator| coordinator.start());
                let Some(start) = start else {
                    let ending = || Ok(Ending { interrupted: true, ..Ending::default() });
                    return works.iter().map(|_| ending()).collect();
                };
                std::thread::sleep(start.saturating_duration_since(Instant::now()));
                let mut followers: Vec<_> =
                    coordinators.iter_mut().map(|coordinator| Follower(&mut **coordinator)).collect();
                let mut watches: Vec<&mut dyn Watch> =
                    followers.iter_mut().map(|follower| follower as &mut dyn Watch).collect();
                let whole = |result: thread_pool::Result| Ending {
                    whole: Some(Box::new(result)),
                    ..Ending::default()
                };
                run_fio(fio, works, &mut watches).into_iter().map(|result| result.map(whole)).collect()
            }
            _ => {
                let error =
                    || Err(OpenError("works and shares do not match; please report this as a bug".into()));
                self.works().iter().map(|_| error()).collect()
            }
        }
    }
}

fn run_fio(
    fio: &Fio,
    works: &[&plan::Work],
    watches: &mut [&mut dyn Watch],
) -> Vec<Result<thread_pool::Result, OpenError>> {
    match tidemark_fio::run(fio, works, watches) {
        Ok(results) => results.into_iter().map(Ok).collect(),
        Err(error) => works.iter().map(|_| Err(OpenError(error.to_string()))).collect(),
    }
}

/// A commander's coordinator as a watch.
struct Follower<'a>(&'a mut dyn Coordinator);

impl Watch for Follower<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.0.interval(interval);
    }

    fn stop_request(&mut self) -> StopRequest {
        self.0.instruction().stop_request
    }
}

/// Passes one work's seconds on as events.
pub struct Reporter<'a> {
    work: usize,
    told: Sender<(usize, Told)>,
    stop_request: &'a AtomicU8,
    series: Vec<Second>,
    started_ns: u64,
}

impl Reporter<'_> {
    /// The work starts at another time than now, nanoseconds since the run's start.
    pub fn started(&mut self, since_run_ns: u64) {
        self.started_ns = since_run_ns;
    }

    /// Reports what one driver did in a second; before the second itself.
    pub fn share(&mut self, driver: &str, summary: SecondSummary) {
        self.tell(Told::Share(driver.to_owned(), summary));
    }

    /// Reports a problem that does not stop the run.
    pub fn trouble(&mut self, text: String) {
        self.tell(Told::Trouble(text));
    }

    fn tell(&mut self, told: Told) {
        // The receiver is dropped only when the stage has been torn down.
        let _ = self.told.send((self.work, told));
    }
}

impl Watch for Reporter<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.series.push(Second::from(interval));
        self.tell(Told::Second(Box::new(interval.clone())));
    }

    fn stop_request(&mut self) -> StopRequest {
        match self.stop_request.load(Ordering::Relaxed) {
            0 => StopRequest::None,
            1 => StopRequest::Finish,
            _ => StopRequest::Stop,
        }
    }
}
