//! One work of a stage on its drivers: merges their seconds as they arrive and sends decisions back to all of them.

use crate::assign::Assignment;
use crate::protocol::{Down, Order};
use crate::run_drivers::{DriverEvent, LostDriver, RunDrivers, Started};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_control::event::DriverNews;
use tidemark_control::runner::{RemoteWork, Reporter};
use tidemark_load::engine::OpenError;
use tidemark_load::merge::{Decision, Merge};
use tidemark_load::stop::StopRequest;
use tidemark_load::thread_pool::{self, Ending, Watch as _};
use tidemark_measure::record::{EndpointKind, EndpointUse, Share, ShareSecond};
use tidemark_measure::tally::Tally;
use tidemark_measure::wire::Sparse;
use tidemark_plan::plan::{OnLoss, Work};

/// Time from the decision to open the window to its opening: the order has to reach every driver.
const WINDOW_AHEAD: Duration = Duration::from_millis(300);

/// How often to check for silent drivers.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// A work and the drivers that it runs on.
pub(crate) struct Placement {
    pub(crate) stage: u32,
    pub(crate) work: u32,
    pub(crate) assignments: Vec<Assignment>,
    /// Those drivers among them that have nothing to do.
    pub(crate) idle: Vec<usize>,
    pub(crate) on_loss: OnLoss,
    /// Whether a driver that is well reports on every second of it, whatever the storage does.
    pub(crate) reports_every_second: bool,
    pub(crate) started: Started,
}

/// A work on drivers.
pub(crate) struct Remote {
    pub(crate) run_drivers: Arc<RunDrivers>,
    pub(crate) placement: Placement,
    pub(crate) events: Receiver<DriverEvent>,
}

/// One driver's share of the work so far.
struct DriverShare {
    share: Share,
    /// The same of a driver that has volumes of its own, as far as the load is what is measured.
    own: Option<EndpointUse>,
    open: bool,
    last_event: Instant,
}

impl RemoteWork for Remote {
    fn follow(&self, work: &Work, reporter: &mut Reporter<'_>) -> Result<thread_pool::Result, OpenError> {
        reporter.started(self.placement.started.since_run_ns);
        let mut active = ActiveWork::new(self, work);
        while active.sources.iter().any(|source| source.open) {
            match self.events.recv_timeout(Duration::from_millis(50)) {
                Ok(event) => active.receive(event, reporter),
                Err(RecvTimeoutError::Timeout) => {}
                // The sender lives as long as this work.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            active.merge.emit(reporter);
            active.show_overdue(reporter);
            active.decide(reporter.stop_request());
            active.check_silent();
        }
        Ok(active.end(reporter))
    }
}

impl Remote {
    fn index_of(&self, driver: usize) -> Option<usize> {
        self.placement.assignments.iter().position(|assignments| assignments.driver == driver)
    }

    fn since_start(&self) -> u64 {
        Instant::now().saturating_duration_since(self.placement.started.at).as_nanos() as u64
    }

    fn notify(&self, reporter: &mut Reporter<'_>, driver: usize, news: DriverNews, what: &str) {
        let name = self.run_drivers.name(driver);
        reporter.driver(&name, news, format!("driver {name} {what}"));
    }

    fn order(&self, order: Order) {
        for assignments in &self.placement.assignments {
            self.order_one(assignments.driver, order);
        }
    }

    fn order_one(&self, driver: usize, order: Order) {
        let (run, stage, work) = (self.run_drivers.run, self.placement.stage, Some(self.placement.work));
        if !self.run_drivers.is_lost(driver) {
            self.run_drivers.send(driver, Down::Order { run, stage, work, order });
        }
    }
}

/// A work in progress.
struct ActiveWork<'a> {
    remote: &'a Remote,
    work: &'a Work,
    merge: Merge,
    sources: Vec<DriverShare>,
    endings: Vec<Ending>,
    /// Why the work has failed, if it has.
    trouble: Option<String>,
    /// The last driver that was lost before its share had ended.
    loss: Option<String>,
    /// The request that ended the load early, and when it was made.
    ended_by: Option<(StopRequest, Instant)>,
    /// Whether the user ended it.
    user: bool,
    /// How far ahead the drivers' clocks were soon after the start.
    offsets: Option<Vec<i64>>,
    /// When silent drivers were last checked for.
    checked: Instant,
}

impl<'a> ActiveWork<'a> {
    fn new(remote: &'a Remote, work: &'a Work) -> Self {
        let placement = &remote.placement;
        let mut merge = Merge::new(&work.load, placement.assignments.len() as u32);
        let mut sources = Vec::new();
        for assignments in &placement.assignments {
            let idle = placement.idle.contains(&assignments.driver);
            if idle {
                merge.gone(sources.len() as u32);
            }
            let share = Share { complete: idle, ..assignments.share(placement.work) };
            let own = (work.load.copies > 1 && !idle).then(|| EndpointUse {
                endpoint: remote.run_drivers.name(assignments.driver),
                kind: EndpointKind::Driver,
                ..EndpointUse::default()
            });
            sources.push(DriverShare { share, own, open: !idle, last_event: placement.started.at });
        }
        Self {
            remote,
            work,
            merge,
            sources,
            endings: Vec::new(),
            trouble: None,
            loss: None,
            ended_by: None,
            user: false,
            offsets: None,
            checked: Instant::now(),
        }
    }

    /// Shows seconds that only wait for drivers that are silent, as far as they are known.
    fn show_overdue(&mut self, reporter: &mut Reporter<'_>) {
        let (remote, assignments) = (self.remote, &self.remote.placement.assignments);
        while let Some((interval, silent)) = self.merge.overdue() {
            let name = |source: &u32| remote.run_drivers.name(assignments[*source as usize].driver);
            reporter.second_so_far(interval, silent.iter().map(name).collect());
        }
    }

    /// Takes an event.
    fn receive(&mut self, event: DriverEvent, reporter: &mut Reporter<'_>) {
        let run_drivers = &self.remote.run_drivers;
        match event {
            DriverEvent::Second(driver, bytes) => {
                let Some(index) = self.open_of(driver) else { return };
                self.merge.clock(self.remote.since_start());
                match self.merge.take_encoded(index as u32, &bytes) {
                    Ok(second) => {
                        let summary = second.summary();
                        self.sources[index].add(&second, &summary, self.work);
                        reporter.share(driver as u32, run_drivers.name(driver), summary);
                        self.offsets.get_or_insert_with(|| run_drivers.offsets());
                    }
                    Err(error) => {
                        run_drivers.give_up(driver, &format!("it sent a malformed second of load: {error}"));
                    }
                }
            }
            DriverEvent::Ended(driver, ending) => {
                let Some(index) = self.open_of(driver) else { return };
                match ending.and_then(|ending| self.check(index, ending)) {
                    Ok(ending) => self.take(index, *ending),
                    Err(reason) => self.fail(format!("driver {}: {reason}", run_drivers.name(driver))),
                }
                self.close(index);
            }
            DriverEvent::Unreported(driver) => {
                let Some(index) = self.open_of(driver) else { return };
                self.fail(format!("driver {} did not report how its share ended", run_drivers.name(driver)));
                self.close(index);
            }
            DriverEvent::Disconnected(driver) => {
                self.remote.notify(
                    reporter,
                    driver,
                    DriverNews::Away,
                    "cannot be reached; nothing is lost if it comes back in time",
                );
            }
            DriverEvent::Reconnected(driver) => {
                self.remote.notify(reporter, driver, DriverNews::Back, "is back; nothing was lost");
            }
            DriverEvent::Lost(loss) => {
                if loss.announce {
                    self.remote.notify(
                        reporter,
                        loss.driver,
                        DriverNews::Lost,
                        &format!("is lost: {}", loss.reason),
                    );
                }
                self.lose(&loss);
            }
        }
    }

    /// A driver is lost.
    fn lose(&mut self, LostDriver { driver, reason, incomplete, .. }: &LostDriver) {
        let run_drivers = &self.remote.run_drivers;
        let loss = format!("driver {} was lost: {reason}", run_drivers.name(*driver));
        if let Some(index) = self.open_of(*driver) {
            self.close(index);
            if does_each_once(self.work) {
                self.trouble
                    .get_or_insert(format!("{loss}, and nothing is known of the rest of its operations"));
            }
            // No driver has ended the load, so its length is not known otherwise.
            if self.endings.is_empty() && self.sources.iter().all(|source| !source.open) {
                self.trouble.get_or_insert_with(|| loss.clone());
                self.merge.ended_early(self.remote.since_start());
            }
            self.loss = Some(loss.clone());
        }
        if *incomplete && self.remote.placement.on_loss == OnLoss::Stop {
            run_drivers.count_loss(*driver);
            self.fail(loss);
        }
    }

    /// The index of a driver's share, if the share has not ended.
    fn open_of(&self, driver: usize) -> Option<usize> {
        self.remote.index_of(driver).filter(|index| self.sources[*index].open)
    }

    fn close(&mut self, index: usize) {
        self.sources[index].open = false;
        self.merge.gone(index as u32);
    }

    /// Refuses an ending that a driver cannot have.
    fn check(&self, index: usize, ending: Box<Ending>) -> Result<Box<Ending>, String> {
        let assignments = self.remote.placement.assignments[index];
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
            false => Err("its report has workers or operations that it was not given".into()),
        }
    }

    /// A share has ended normally.
    fn take(&mut self, index: usize, ending: Ending) {
        if ending.interrupted && self.ended_by.is_none() {
            let name = self.remote.run_drivers.name(self.remote.placement.assignments[index].driver);
            self.fail(format!("driver {name} ended its share early: it could not reach the controller"));
        }
        let offsets = self.offsets.get_or_insert_with(|| self.remote.run_drivers.offsets());
        let driver = self.remote.placement.assignments[index].driver;
        // By as much as its clock was assumed to be further ahead than it was, it started late.
        let late_ns = self.remote.placement.started.offsets[driver].saturating_sub(offsets[driver]);
        self.sources[index].end(&ending, late_ns, &self.remote.placement.started);
        if let Some(whole) = &ending.whole {
            self.sources[index].replace(whole, self.work);
        }
        self.endings.push(ending);
    }

    /// The work has failed: all drivers are to end it.
    fn fail(&mut self, trouble: String) {
        self.trouble.get_or_insert(trouble);
        self.end_early(StopRequest::Finish);
    }

    /// Ends the load early. A load that is ending is not ended again, but it may be stopped.
    fn end_early(&mut self, request: StopRequest) {
        if self.ended_by.is_some_and(|(ended_by, _)| ended_by >= request) {
            return;
        }
        self.merge.ended_early(self.remote.since_start());
        self.remote.order(Order::End(request));
        self.ended_by = Some((request, Instant::now()));
    }

    /// Acts on the state of the load and on the user's wishes.
    fn decide(&mut self, stop_request: StopRequest) {
        match self.merge.decision() {
            Some(Decision::OpenWindow) => self.open_window(),
            Some(Decision::EndWindow | Decision::GiveUp) => self.end_early(StopRequest::Finish),
            None => {}
        }
        if stop_request > StopRequest::None && self.sources.iter().any(|source| source.open) {
            self.user = true;
            self.end_early(stop_request);
        }
    }

    fn open_window(&mut self) {
        let started = &self.remote.placement.started;
        let at = Instant::now() + WINDOW_AHEAD;
        self.merge.window_opened(at.saturating_duration_since(started.at).as_nanos() as u64);
        // With the offsets assumed at the start, so that the window is equally far from the start on all drivers.
        let clock = self.remote.run_drivers.clock_of(at);
        for assignments in &self.remote.placement.assignments {
            let at_ns = clock.saturating_add(started.offsets[assignments.driver]).max(0) as u64;
            self.remote.order_one(assignments.driver, Order::Window { at_ns });
        }
    }

    /// Gives up drivers that are reachable and do not report: the work would never end.
    fn check_silent(&mut self) {
        if self.checked.elapsed() < CHECK_EVERY {
            return;
        }
        self.checked = Instant::now();
        for source in self.merge.held_up_by() {
            let driver = self.remote.placement.assignments[source as usize].driver;
            let reason = "it is so far behind the others that their seconds can no longer be kept in memory";
            self.remote.run_drivers.give_up(driver, reason);
        }
        let (run_drivers, most) = (&self.remote.run_drivers, self.remote.run_drivers.timeouts.report);
        let stopped =
            self.ended_by.is_some_and(|(ended_by, at)| ended_by == StopRequest::Stop && at.elapsed() > most);
        let sources = self.sources.iter().zip(&self.remote.placement.assignments);
        for (source, assignments) in sources.filter(|(source, _)| source.open) {
            let due = match self.ended_by {
                Some((_, at)) => Some(at.max(source.last_event)),
                None => self.remote.placement.reports_every_second.then_some(source.last_event),
            };
            if stopped {
                let reason = format!("it did not stop within {} s", most.as_secs_f64());
                run_drivers.give_up(assignments.driver, &reason);
            } else if let (Some(due), Some(there)) = (due, run_drivers.reachable_since(assignments.driver))
                && due.max(there).elapsed() > most
            {
                let reason = format!("it reported nothing of its load for {} s", most.as_secs_f64());
                run_drivers.give_up(assignments.driver, &reason);
            }
        }
    }

    /// The result of the work.
    fn end(mut self, reporter: &mut Reporter<'_>) -> thread_pool::Result {
        self.merge.flush(reporter);
        let is_whole = self.sources.iter().all(|source| source.share.complete);
        let mut owns: Vec<_> = self.sources.iter_mut().filter_map(|source| source.own.take()).collect();
        owns.iter_mut().for_each(|own| own.response.pack());
        self.remote
            .run_drivers
            .close(self.remote.placement.work, self.sources.into_iter().map(|source| source.share).collect());
        let mut result = self.merge.result(self.endings);
        if owns.len() > 1 {
            result.endpoints = owns;
        }
        if let (Some(planned), false) = (self.work.load.planned().operations, is_whole) {
            let done = result.tallies.iter().map(Tally::total).fold(0, u64::saturating_add);
            result.unknown = planned.saturating_sub(done).saturating_sub(result.undone);
        }
        if let Some(trouble) = self.trouble {
            // The measurements are kept, with the reason.
            result.given_up = trouble;
        } else if let Some(loss) = self.loss {
            result.remarks.push(format!("The load continued without a driver: {loss}."));
        }
        // Drivers also end early after a loss, which is not an interruption by the user.
        result.interrupted = self.user;
        result
    }
}

impl DriverShare {
    fn add(&mut self, second: &Sparse<'_>, summary: &ShareSecond, work: &Work) {
        self.last_event = Instant::now();
        self.share.add(*summary);
        self.moved(second.actions(), work);
        if let Some(own) = &mut self.own {
            second.add_to_use(own, |action| is_loaded(work, action));
        }
    }

    fn moved(&mut self, actions: &[Tally], work: &Work) {
        work.labels
            .iter()
            .zip(actions)
            .for_each(|(label, tally)| self.share.add_moved(&label.class, tally.moved()));
    }

    /// Another program's count of what it did replaces that of the seconds.
    fn replace(&mut self, whole: &thread_pool::Result, work: &Work) {
        (self.share.read_bytes, self.share.written_bytes) = (0, 0);
        self.moved(&whole.tallies, work);
        let Some(own) = &mut self.own else { return };
        *own = EndpointUse {
            endpoint: std::mem::take(&mut own.endpoint),
            kind: own.kind,
            ok_by_second: std::mem::take(&mut own.ok_by_second),
            failed_by_second: std::mem::take(&mut own.failed_by_second),
            ..EndpointUse::default()
        };
        for (_, tally) in whole.tallies.iter().enumerate().filter(|(action, _)| is_loaded(work, *action)) {
            own.add_tally(tally);
            own.response.add(&tally.response);
        }
    }

    fn end(&mut self, ending: &Ending, late_ns: i64, started: &Started) {
        self.share.complete = true;
        self.share.threads = ending.whole.as_ref().map_or(ending.threads, |whole| whole.threads);
        self.share.first_sent_ns = ending
            .first_sent_ns
            .map(|first| started.since_run_ns.saturating_add(first).saturating_add_signed(late_ns));
    }
}

/// Whether an action is a part of the load itself, and not only done after some of it or at its end.
fn is_loaded(work: &Work, action: usize) -> bool {
    work.labels.get(action).is_some_and(|label| label.weight > 0.0)
}

/// Whether each operation of the work has to be done once, so that a lost driver's operations are missing.
fn does_each_once(work: &Work) -> bool {
    work.load.source.operations().is_some() || work.load.stop.operations.is_some()
}
