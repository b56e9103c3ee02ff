//! What carries out works of a stage: sessions on threads of our own, another program, or drivers elsewhere.

use crate::event::DriverNews;
use crossbeam_channel::Sender;
use std::sync::Arc;
use std::time::Instant;
use tidemark_load::engine::{OpenError, Sessions};
use tidemark_load::stop::{SharedStopRequest, StopRequest};
use tidemark_load::thread_pool::{self, Coordinator, Ending, Watch};
use tidemark_load::work::Share;
use tidemark_measure::record::{Second, ShareSecond};
use tidemark_measure::tally::Interval;
use tidemark_plan::engine::{Helper, Process};
use tidemark_plan::plan;

/// Works of a stage with what carries them out.
pub struct Runner<'a> {
    /// The works, each with its place in the stage; at least one.
    works: Vec<(usize, &'a plan::Work)>,
    carrier: Carrier,
}

/// What carries works out.
pub enum Carrier {
    /// Sessions on threads of our own: one work.
    Sessions(Box<dyn Sessions>),
    /// Another program: one work or several.
    Process(Arc<dyn Process>),
    /// Another process of Tidemark: one work.
    Helper(Box<dyn Helper>),
    /// Drivers: one work.
    Remote(Box<dyn RemoteWork>),
    /// Nothing, and why there is nothing to do: one work.
    Nothing(String),
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
    /// Its place in the stage.
    pub(crate) place: usize,
    pub(crate) plan: &'a plan::Work,
    /// When it started, nanoseconds since the run's start.
    pub(crate) started_ns: u64,
    pub(crate) result: Result<thread_pool::Result, OpenError>,
    pub(crate) series: Vec<Second>,
}

/// News of a work while it runs.
pub(crate) enum Update {
    /// A second is complete.
    Second(Box<Interval>),
    /// A second that waits for drivers that are silent, as far as it is known, and their names.
    SecondSoFar(Box<Interval>, Vec<String>),
    /// What one driver did in a second.
    Share { driver: u32, name: String, second: ShareSecond },
    /// A problem for the user.
    Trouble(String),
    /// A driver went away, came back or is lost.
    Driver(String, DriverNews),
}

/// What all works of a stage share while they run.
pub(crate) struct StageContext<'a> {
    pub(crate) run_start: Instant,
    pub(crate) threads: u32,
    pub(crate) updates: Sender<(usize, Update)>,
    pub(crate) stop_request: &'a SharedStopRequest,
}

impl<'a> Runner<'a> {
    /// Works, each with its place in the stage, and what carries them out.
    pub fn new(works: Vec<(usize, &'a plan::Work)>, carrier: Carrier) -> Self {
        Self { works, carrier }
    }

    /// The works and their places in the stage.
    pub fn works(&self) -> &[(usize, &'a plan::Work)] {
        &self.works
    }

    /// The place of its first work.
    pub(crate) fn first(&self) -> usize {
        self.works.first().map_or(0, |(place, _)| *place)
    }

    /// Why there is nothing to do, if there is nothing to do for any of them.
    pub(crate) fn why_nothing(runners: &[Runner<'_>]) -> Option<String> {
        let mut reasons = runners.iter().map(Runner::nothing);
        let first = reasons.next()??;
        reasons.all(|reason| reason.is_some()).then(|| first.to_owned())
    }

    /// Why there is nothing to do for its works, if that is so.
    pub fn nothing(&self) -> Option<&str> {
        match &self.carrier {
            Carrier::Nothing(why) => Some(why),
            Carrier::Sessions(_) | Carrier::Process(_) | Carrier::Helper(_) | Carrier::Remote(_) => None,
        }
    }

    /// Runs its works to their end.
    pub(crate) fn run(&self, context: &StageContext<'_>) -> Vec<WorkResult<'a>> {
        let started_ns = context.run_start.elapsed().as_nanos() as u64;
        let reporter = |(place, _): &(usize, &plan::Work)| Reporter {
            work: *place,
            updates: context.updates.clone(),
            stop_request: context.stop_request,
            series: Vec::new(),
            started_ns,
        };
        let mut reporters: Vec<_> = self.works.iter().map(reporter).collect();
        let results: Vec<Result<thread_pool::Result, OpenError>> =
            match (&self.carrier, &self.works[..], &mut reporters[..]) {
                (Carrier::Sessions(sessions), [(_, work)], [reporter]) => {
                    vec![thread_pool::run(&work.load, &**sessions, context.threads, reporter)]
                }
                (Carrier::Process(process), works, reporters) => {
                    let works: Vec<&plan::Work> = works.iter().map(|(_, work)| *work).collect();
                    let mut watches: Vec<&mut dyn Watch> =
                        reporters.iter_mut().map(|reporter| reporter as &mut dyn Watch).collect();
                    process.run(&works, &mut watches)
                }
                (Carrier::Helper(helper), [(_, work)], [reporter]) => {
                    vec![thread_pool::lead(&work.load, reporter, |coordinator| helper.run(coordinator))]
                }
                (Carrier::Remote(remote), [(_, work)], [reporter]) => vec![remote.follow(work, reporter)],
                (Carrier::Nothing(_), works, _) => {
                    works.iter().map(|_| Ok(thread_pool::Result::default())).collect()
                }
                (_, works, _) => works.iter().map(|_| Err(mismatch())).collect(),
            };
        let ended = self.works.iter().zip(results).zip(reporters);
        ended
            .map(|(((place, plan), result), Reporter { started_ns, series, .. })| WorkResult {
                place: *place,
                plan,
                started_ns,
                result,
                series,
            })
            .collect()
    }

    /// Runs this process's shares of its works, one coordinator for each: a driver's part of a stage.
    pub fn run_shares(
        &self,
        shares: &[Share],
        threads: u32,
        coordinators: &mut [&mut dyn Coordinator],
    ) -> Vec<Result<Ending, OpenError>> {
        match (&self.carrier, &self.works[..], shares, &mut *coordinators) {
            (Carrier::Sessions(sessions), [(_, work)], [share], [coordinator]) => {
                vec![thread_pool::run_share(&work.load, *share, &**sessions, threads, &mut **coordinator)]
            }
            (Carrier::Process(process), works, shares, coordinators) => {
                // The program starts its clients itself: all that can be done is to start it in time.
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
                let own = |((_, work), share): (&(usize, &plan::Work), &Share)| plan::Work {
                    load: work.load.copy(*share),
                    ..(*work).clone()
                };
                let own: Vec<plan::Work> = works.iter().zip(shares).map(own).collect();
                let results = process.run(&own.iter().collect::<Vec<_>>(), &mut watches);
                let firsts = shares.iter().map(|share| share.first);
                results
                    .into_iter()
                    .zip(firsts)
                    .map(|(result, first)| result.map(|result| whole(result, first)))
                    .collect()
            }
            (Carrier::Helper(helper), [_], [_], [coordinator]) => vec![helper.run(&mut **coordinator)],
            (Carrier::Nothing(_), _, _, coordinators) => {
                let idle = |coordinator: &mut &mut dyn Coordinator| {
                    coordinator.start();
                    Ok(Ending::default())
                };
                coordinators.iter_mut().map(idle).collect()
            }
            (_, works, ..) => works.iter().map(|_| Err(mismatch())).collect(),
        }
    }
}

/// The ending of a share that another program carried out, whose first worker it calls 0.
fn whole(mut result: thread_pool::Result, first: u32) -> Ending {
    result.workers.iter_mut().for_each(|count| count.worker = count.worker.saturating_add(first));
    Ending { whole: Some(Box::new(result)), ..Ending::default() }
}

fn mismatch() -> OpenError {
    OpenError("works do not fit what carries them out; please report this as a bug".into())
}

/// A coordinator as a watch.
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
    updates: Sender<(usize, Update)>,
    stop_request: &'a SharedStopRequest,
    series: Vec<Second>,
    started_ns: u64,
}

impl Reporter<'_> {
    /// The work starts at another time than now, nanoseconds since the run's start.
    pub fn started(&mut self, since_run_ns: u64) {
        self.started_ns = since_run_ns;
    }

    /// Reports what a driver, by its number and name, did in a second; before the second itself.
    pub fn share(&mut self, driver: u32, name: String, second: ShareSecond) {
        self.send(Update::Share { driver, name, second });
    }

    /// Reports a second that waits for these drivers, which are silent. The whole second follows.
    pub fn second_so_far(&mut self, interval: &Interval, missing: Vec<String>) {
        self.send(Update::SecondSoFar(Box::new(interval.clone()), missing));
    }

    /// Reports a problem that does not stop the run.
    pub fn trouble(&mut self, text: String) {
        self.send(Update::Trouble(text));
    }

    /// Reports that a driver went away, came back or is lost, and says so.
    pub fn driver(&mut self, name: &str, news: DriverNews, text: String) {
        self.send(Update::Trouble(text));
        self.send(Update::Driver(name.to_owned(), news));
    }

    fn send(&mut self, update: Update) {
        // The receiver is dropped only when the stage has been torn down.
        let _ = self.updates.send((self.work, update));
    }
}

impl Watch for Reporter<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.series.push(Second::from(interval));
        self.send(Update::Second(Box::new(interval.clone())));
    }

    fn stop_request(&mut self) -> StopRequest {
        self.stop_request.get()
    }
}
