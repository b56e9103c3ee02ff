//! One work of a stage on its drivers: their seconds merged as they come, decisions sent back to all of them.

use crate::assign::Assignment;
use crate::protocol::{Down, Order};
use crate::run_drivers::{Loss, News, RunDrivers, Started};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_control::runner::{RemoteWork, Reporter};
use tidemark_load::engine::OpenError;
use tidemark_load::merge::{Decision, Merge};
use tidemark_load::thread_pool::{self, Ending, StopRequest, Watch as _};
use tidemark_measure::record::{Share, ShareSecond};
use tidemark_measure::wire::SecondSummary;
use tidemark_plan::plan::{Engine, OnLoss, Work};

/// From the decision that a load is steady to the window: time for it to reach every driver.
const WINDOW_AHEAD: Duration = Duration::from_millis(300);

/// How often to check for silent drivers.
const LOOK: Duration = Duration::from_millis(100);

/// A work's events of its drivers.
pub(crate) type Route = Receiver<News>;

/// Which work, on whom.
pub(crate) struct Line {
    pub(crate) stage: u32,
    pub(crate) work: u32,
    pub(crate) assignments: Vec<Assignment>,
    /// The drivers among them that have nothing to do.
    pub(crate) idle: Vec<usize>,
    pub(crate) on_loss: OnLoss,
    pub(crate) started: Started,
}

/// A work on drivers.
pub(crate) struct Remote {
    pub(crate) run_drivers: Arc<RunDrivers>,
    pub(crate) line: Line,
    pub(crate) heard: Route,
}

/// What is known of one driver's share.
struct Source {
    share: Share,
    open: bool,
    heard: Instant,
}

impl RemoteWork for Remote {
    fn follow(&self, work: &Work, reporter: &mut Reporter<'_>) -> Result<thread_pool::Result, OpenError> {
        reporter.started(self.line.started.since_run_ns);
        let mut following = Following::new(self, work);
        while following.sources.iter().any(|source| source.open) {
            match self.heard.recv_timeout(Duration::from_millis(50)) {
                Ok(news) => following.hear(news, reporter),
                Err(RecvTimeoutError::Timeout) => {}
                // The list of drivers is kept by this very work.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            following.merge.emit(reporter);
            following.decide(reporter.stop_request());
            following.look_for_silent();
        }
        Ok(following.end(reporter))
    }
}

impl Remote {
    fn index_of(&self, driver: usize) -> Option<usize> {
        self.line.assignments.iter().position(|assignments| assignments.driver == driver)
    }

    fn since_start(&self) -> u64 {
        Instant::now().saturating_duration_since(self.line.started.at).as_nanos() as u64
    }

    fn tell(&self, reporter: &mut Reporter<'_>, driver: usize, what: &str) {
        reporter.trouble(format!("driver {} {what}", self.run_drivers.name(driver)));
    }

    fn order(&self, order: Order) {
        for assignments in &self.line.assignments {
            self.order_one(assignments.driver, order);
        }
    }

    fn order_one(&self, driver: usize, order: Order) {
        let (run, stage, work) = (self.run_drivers.run, self.line.stage, Some(self.line.work));
        if !self.run_drivers.is_lost(driver) {
            self.run_drivers.send(driver, Down::Order { run, stage, work, order });
        }
    }
}

/// A running work.
struct Following<'a> {
    remote: &'a Remote,
    work: &'a Work,
    merge: Merge,
    sources: Vec<Source>,
    endings: Vec<Ending>,
    /// Why the work has failed, if it has.
    trouble: Option<String>,
    /// The driver that was lost last, if it was to be heard of still.
    loss: Option<String>,
    /// How the load was ended early, and when.
    told: Option<(Order, Instant)>,
    /// Whether that was the user's doing.
    user: bool,
    /// How far the drivers' clocks were ahead soon after the start.
    offsets: Option<Vec<i64>>,
    /// When silent drivers were last checked for.
    looked: Instant,
}

impl<'a> Following<'a> {
    fn new(remote: &'a Remote, work: &'a Work) -> Self {
        let line = &remote.line;
        let mut merge = Merge::new(&work.load, line.assignments.len() as u32);
        let mut sources = Vec::new();
        for assignments in &line.assignments {
            let idle = line.idle.contains(&assignments.driver);
            if idle {
                merge.gone(sources.len() as u32);
            }
            let share = Share {
                driver: assignments.driver as u32,
                work: line.work,
                first_worker: assignments.first,
                workers: assignments.count,
                complete: idle,
                ..Share::default()
            };
            sources.push(Source { share, open: !idle, heard: line.started.at });
        }
        Self {
            remote,
            work,
            merge,
            sources,
            endings: Vec::new(),
            trouble: None,
            loss: None,
            told: None,
            user: false,
            offsets: None,
            looked: Instant::now(),
        }
    }

    /// Takes what came.
    fn hear(&mut self, news: News, reporter: &mut Reporter<'_>) {
        let run_drivers = &self.remote.run_drivers;
        match news {
            News::Second(driver, bytes) => {
                let Some(index) = self.open_of(driver) else { return };
                match self.merge.take_encoded(index as u32, &bytes) {
                    Ok(summary) => {
                        self.sources[index].add(&summary);
                        reporter.share(&run_drivers.name(driver), summary);
                        self.offsets.get_or_insert_with(|| run_drivers.offsets());
                    }
                    Err(error) => run_drivers.give_up(driver, &format!("it sent impossible data: {error}")),
                }
            }
            News::Ended(driver, ending) => {
                let Some(index) = self.open_of(driver) else { return };
                match ending.and_then(|ending| self.check(index, ending)) {
                    Ok(ending) => self.take(index, *ending),
                    Err(reason) => self.fail(format!("driver {}: {reason}", run_drivers.name(driver))),
                }
                self.close(index);
            }
            News::Over(driver) => {
                let Some(index) = self.open_of(driver) else { return };
                self.fail(format!("driver {} has not reported how its part ended", run_drivers.name(driver)));
                self.close(index);
            }
            News::Away(driver) => {
                self.remote.tell(
                    reporter,
                    driver,
                    "is not reachable; if it returns in time, nothing is lost",
                );
            }
            News::Back(driver) => self.remote.tell(reporter, driver, "is connected again; nothing was lost"),
            News::Lost(loss) => {
                if loss.announce {
                    self.remote.tell(reporter, loss.driver, &format!("is lost: {}", loss.reason));
                }
                self.lose(&loss);
            }
        }
    }

    /// A driver is lost.
    fn lose(&mut self, Loss { driver, reason, missed, .. }: &Loss) {
        let run_drivers = &self.remote.run_drivers;
        let loss = format!("driver {} was lost: {reason}", run_drivers.name(*driver));
        if let Some(index) = self.open_of(*driver) {
            self.close(index);
            if does_each_once(self.work) {
                self.trouble.get_or_insert(format!("{loss}, with operations that had to be done"));
            }
            // The length of a load that no driver completed is unknown.
            if self.endings.is_empty() && self.sources.iter().all(|source| !source.open) {
                self.trouble.get_or_insert_with(|| loss.clone());
                self.merge.ended_early(self.remote.since_start());
            }
            self.loss = Some(loss.clone());
        }
        if *missed && self.remote.line.on_loss == OnLoss::Stop {
            run_drivers.count_loss(*driver);
            self.fail(loss);
        }
    }

    /// Which source a driver is, if there is still something to hear of it.
    fn open_of(&self, driver: usize) -> Option<usize> {
        self.remote.index_of(driver).filter(|index| self.sources[*index].open)
    }

    fn close(&mut self, index: usize) {
        self.sources[index].open = false;
        self.merge.gone(index as u32);
    }

    /// Refuses what a driver cannot have left behind.
    fn check(&self, index: usize, ending: Box<Ending>) -> Result<Box<Ending>, String> {
        let assignments = self.remote.line.assignments[index];
        let actions = self.work.load.actions;
        let mut own = ending.workers.iter().chain(ending.whole.iter().flat_map(|whole| &whole.workers));
        let is_own = own.all(|count| {
            count.operation < actions
                && (assignments.first..assignments.first.saturating_add(assignments.count))
                    .contains(&count.worker)
        });
        let fits = ending.whole.as_ref().is_none_or(|whole| whole.tallies.len() == usize::from(actions));
        match is_own && fits {
            true => Ok(ending),
            false => Err("it reported workers or operations that it does not have".into()),
        }
    }

    /// A share has ended as it should.
    fn take(&mut self, index: usize, ending: Ending) {
        if ending.interrupted && self.told.is_none() {
            let name = self.remote.run_drivers.name(self.remote.line.assignments[index].driver);
            self.fail(format!(
                "driver {name} ended its part early: it lost the connection to the controller"
            ));
        }
        let offsets = self.offsets.get_or_insert_with(|| self.remote.run_drivers.offsets());
        let driver = self.remote.line.assignments[index].driver;
        // So much further ahead was its clock taken to be than it was: so much later did it start than it was to.
        let late_ns = self.remote.line.started.offsets[driver].saturating_sub(offsets[driver]);
        self.sources[index].end(&ending, late_ns, &self.remote.line.started);
        self.endings.push(ending);
    }

    /// The work has failed: the remaining drivers must stop.
    fn fail(&mut self, trouble: String) {
        self.trouble.get_or_insert(trouble);
        self.end_early(Order::Finish);
    }

    /// Ends the load before its time. What was ended is not ended again, but it may be stopped.
    fn end_early(&mut self, order: Order) {
        if self.told.is_some_and(|(told, _)| told == order || told == Order::Stop) {
            return;
        }
        self.merge.ended_early(self.remote.since_start());
        self.remote.order(order);
        self.told = Some((order, Instant::now()));
    }

    /// Carries out due decisions and the user's stop request.
    fn decide(&mut self, stop_request: StopRequest) {
        match self.merge.decision() {
            Some(Decision::OpenWindow) => self.open_window(),
            Some(Decision::GiveUp) => self.end_early(Order::Finish),
            None => {}
        }
        let order = match stop_request {
            StopRequest::None => return,
            StopRequest::Finish => Order::Finish,
            StopRequest::Stop => Order::Stop,
        };
        if self.sources.iter().any(|source| source.open) {
            self.user = true;
            self.end_early(order);
        }
    }

    fn open_window(&mut self) {
        let started = &self.remote.line.started;
        let at = Instant::now() + WINDOW_AHEAD;
        self.merge.window_opened(at.saturating_duration_since(started.at).as_nanos() as u64);
        // The drivers' clocks as they were taken to be at the start: the window is as far from it on all of them.
        let clock = self.remote.run_drivers.clock_of(at);
        for assignments in &self.remote.line.assignments {
            let at_ns = clock.saturating_add(started.offsets[assignments.driver]).max(0) as u64;
            self.remote.order_one(assignments.driver, Order::Window { at_ns });
        }
    }

    /// Gives up drivers that are there and do not say what they should: they would never end.
    fn look_for_silent(&mut self) {
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        let (run_drivers, most) = (&self.remote.run_drivers, self.remote.run_drivers.timeouts.word);
        let stopped = self.told.is_some_and(|(told, at)| told == Order::Stop && at.elapsed() > most);
        let sources = self.sources.iter().zip(&self.remote.line.assignments);
        for (source, assignments) in sources.filter(|(source, _)| source.open) {
            let due = match self.told {
                Some((_, at)) => Some(at.max(source.heard)),
                None => speaks_every_second(self.work).then_some(source.heard),
            };
            if stopped {
                let reason = format!("it did not stop within {} s", most.as_secs_f64());
                run_drivers.give_up(assignments.driver, &reason);
            } else if let (Some(due), Some(there)) = (due, run_drivers.there_since(assignments.driver))
                && due.max(there).elapsed() > most
            {
                let reason = format!("it reported no load for {} s", most.as_secs_f64());
                run_drivers.give_up(assignments.driver, &reason);
            }
        }
    }

    /// What the work left behind.
    fn end(mut self, reporter: &mut Reporter<'_>) -> thread_pool::Result {
        self.merge.flush(reporter);
        self.remote
            .run_drivers
            .close(self.remote.line.work, self.sources.into_iter().map(|source| source.share).collect());
        let mut result = self.merge.result(self.endings);
        if let Some(trouble) = self.trouble {
            // What was measured is kept with the reason.
            result.given_up = trouble;
        } else if let Some(loss) = self.loss {
            result.remarks.push(format!("The load continued without a driver: {loss}."));
        }
        // The drivers end early for losses too, which is not the user's doing.
        result.interrupted = self.user;
        result
    }
}

impl Source {
    fn add(&mut self, summary: &SecondSummary) {
        self.heard = Instant::now();
        self.share.ok += summary.ok;
        self.share.failed += summary.failed;
        self.share.bytes += summary.bytes;
        self.share.series.push(ShareSecond {
            index: summary.index,
            ok: summary.ok,
            failed: summary.failed,
            bytes: summary.bytes,
            p50_ns: summary.p50_ns,
            p99_ns: summary.p99_ns,
            busy: summary.busy,
        });
    }

    fn end(&mut self, ending: &Ending, late_ns: i64, started: &Started) {
        self.share.complete = true;
        self.share.threads = ending.whole.as_ref().map_or(ending.threads, |whole| whole.threads);
        self.share.first_sent_ns = ending
            .first_sent_ns
            .map(|first| started.since_run_ns.saturating_add(first).saturating_add_signed(late_ns));
    }
}

/// Whether a work has to do each of its operations once, so that what a driver did not do is missing.
fn does_each_once(work: &Work) -> bool {
    work.load.source.operations().is_some() || work.load.stop.operations.is_some()
}

/// Whether a healthy driver reports on this work every second, whatever the storage does: nothing that
/// goes over sockets holds a thread up. Volumes may, and fio reports nothing while it lays out its files.
fn speaks_every_second(work: &Work) -> bool {
    matches!(work.engine, Engine::Object(_))
}
