//! The state of the drivers of one run, for the threads that carry it out. One thread listens to all drivers and writes it.

use crate::Fleet;
use crate::assign::Assignment;
use crate::backend::record;
use crate::fleet::{FromDriver, Member};
use crate::protocol::{Down, Opened, Second, Up};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidemark_load::thread_pool::Ending;
use tidemark_measure::observation::Node;
use tidemark_measure::record::{Driver, Lost, Note, Proof, Share};
use tidemark_plan::engine::Holding;

/// How often the listener checks for lost drivers.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// How long a driver whose connection works may keep others waiting before it is given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// For saying whether it is ready for a run or a stage.
    pub(crate) ready: Duration,
    /// For reporting on a load, and for releasing a run.
    pub(crate) report: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { ready: Duration::from_secs(600), report: Duration::from_secs(60) }
    }
}

/// What the thread that follows a work receives about its drivers; each event has the driver's number within the run.
#[derive(Debug)]
pub(crate) enum DriverEvent {
    /// A second of load, encoded.
    Second(usize, Vec<u8>),
    /// The driver's share of the work has ended. Sent once at most; nothing of the share follows.
    Ended(usize, Result<Box<Ending>, String>),
    /// The stage has ended on the driver without a report on its share of this work.
    Unreported(usize),
    /// The driver cannot be reached. Only one work of a stage receives this, to show it to the user.
    Disconnected(usize),
    /// The driver can be reached again. As for `Disconnected`.
    Reconnected(usize),
    /// The driver is lost.
    Lost(LostDriver),
}

/// A driver that is lost. All works of a stage are told.
#[derive(Clone, Debug)]
pub(crate) struct LostDriver {
    pub(crate) driver: usize,
    /// Why: a clause.
    pub(crate) reason: String,
    /// Whether any of its shares of the stage had not ended.
    pub(crate) incomplete: bool,
    /// Whether this work is the one that tells the user.
    pub(crate) announce: bool,
}

/// When a stage started.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    /// On this process's clock.
    pub(crate) at: Instant,
    /// Since the run's start.
    pub(crate) since_run_ns: u64,
    /// How far ahead each driver's clock was assumed to be.
    pub(crate) offsets: Vec<i64>,
}

/// What a driver that is ready for a run says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ready {
    /// A line for each target.
    pub(crate) targets: Vec<String>,
    /// What it uses that the others must not use as well.
    pub(crate) holdings: Vec<Holding>,
}

#[derive(Default)]
struct DriverState {
    name: String,
    machine: String,
    record: Driver,
    away: Option<Instant>,
    /// Since when it is back, if it was away.
    back: Option<Instant>,
    lost: Option<(Instant, String)>,
    /// Whether a stage has already failed because it is lost: one is enough.
    loss_counted: bool,
    /// Works of the current stage on which it still has to report the end.
    unfinished: Vec<u32>,
    prepared: Option<Result<Ready, String>>,
    ready: Option<(Opened, Vec<Note>)>,
    ended: bool,
    proof: Option<Proof>,
    released: Option<(Vec<Node>, u64)>,
}

#[derive(Default)]
struct State {
    drivers: Vec<DriverState>,
    stage: Option<u32>,
    /// The threads that follow its works; `None` for a work that has ended.
    listeners: Vec<Option<Sender<DriverEvent>>>,
    shares: Vec<Share>,
}

/// The drivers of one run.
pub(crate) struct RunDrivers {
    fleet: Arc<Fleet>,
    pub(crate) run: u64,
    pub(crate) timeouts: Timeouts,
    began: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

impl RunDrivers {
    pub(crate) fn new(fleet: Arc<Fleet>, run: u64, names: &[String], timeouts: Timeouts) -> Self {
        let driver = |name: &String| DriverState { name: name.clone(), ..DriverState::default() };
        let state = State { drivers: names.iter().map(driver).collect(), ..State::default() };
        Self {
            fleet,
            run,
            timeouts,
            began: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn drivers(&self) -> usize {
        self.state().drivers.len()
    }

    pub(crate) fn name(&self, driver: usize) -> String {
        self.state().drivers[driver].name.clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.state().drivers.iter().map(|driver| driver.name.clone()).collect()
    }

    pub(crate) fn is_lost(&self, driver: usize) -> bool {
        self.state().drivers[driver].lost.is_some()
    }

    /// Since when it can be reached; `None` while it cannot.
    pub(crate) fn reachable_since(&self, driver: usize) -> Option<Instant> {
        let state = self.state();
        let DriverState { away, back, .. } = &state.drivers[driver];
        away.is_none().then(|| back.unwrap_or(self.began))
    }

    /// Whether it is lost, and no stage has failed because of that.
    pub(crate) fn is_lost_uncounted(&self, driver: usize) -> bool {
        let state = self.state();
        state.drivers[driver].lost.is_some() && !state.drivers[driver].loss_counted
    }

    /// A stage has failed because this driver is lost, if it is.
    pub(crate) fn count_loss(&self, driver: usize) {
        let mut state = self.state();
        state.drivers[driver].loss_counted = state.drivers[driver].lost.is_some();
    }

    /// What tells its machine from others, and the machine's name.
    pub(crate) fn machine(&self, driver: usize) -> (String, String) {
        let state = self.state();
        let DriverState { machine, record, .. } = &state.drivers[driver];
        (machine.clone(), record.host.name.clone())
    }

    /// That a driver was lost and why, as a sentence.
    pub(crate) fn loss_of(&self, driver: usize) -> Option<String> {
        let state = self.state();
        let DriverState { name, lost, .. } = &state.drivers[driver];
        lost.as_ref().map(|(_, reason)| format!("driver {name} was lost: {reason}"))
    }

    pub(crate) fn prepared(&self, driver: usize) -> Option<Result<Ready, String>> {
        self.state().drivers[driver].prepared.clone()
    }

    /// Whether one of the drivers cannot begin.
    pub(crate) fn is_refused(&self) -> bool {
        self.state().drivers.iter().any(|driver| matches!(driver.prepared, Some(Err(_))))
    }

    pub(crate) fn ready(&self, driver: usize) -> Option<(Opened, Vec<Note>)> {
        self.state().drivers[driver].ready.clone()
    }

    pub(crate) fn stage_ended(&self, driver: usize) -> bool {
        self.state().drivers[driver].ended
    }

    pub(crate) fn proof(&self, driver: usize) -> Option<Proof> {
        self.state().drivers[driver].proof.take()
    }

    /// What a driver observed of its node, and the shift from its clock to this process's.
    pub(crate) fn released(&self, driver: usize) -> Option<(Vec<Node>, i64)> {
        let state = self.state();
        let (nodes, origin_ns) = state.drivers[driver].released.as_ref()?;
        let offset = state.drivers[driver].record.clock_offset_ns;
        Some((nodes.clone(), (*origin_ns as i64).saturating_sub(offset)))
    }

    pub(crate) fn wait_for_change(&self, most: Duration) {
        drop(self.changed.wait_timeout(self.state(), most));
    }

    pub(crate) fn send(&self, driver: usize, down: Down) {
        let name = self.name(driver);
        self.fleet.send(&name, down);
    }

    /// Gives a driver up: messages that have not arrived are lost.
    pub(crate) fn give_up(&self, driver: usize, reason: &str) {
        // Once: it may have joined again by now.
        if self.lose(driver, reason) {
            let name = self.name(driver);
            self.fleet.give_up(&name);
        }
    }

    /// Whether it was not lost before.
    fn lose(&self, driver: usize, reason: &str) -> bool {
        let mut state = self.state();
        if state.drivers[driver].lost.is_some() {
            return false;
        }
        state.drivers[driver].lost = Some((Instant::now(), reason.to_owned()));
        state.notify_loss(driver, reason);
        drop(state);
        self.changed.notify_all();
        true
    }

    /// A moment on the fleet's clock.
    pub(crate) fn clock_of(&self, instant: Instant) -> i64 {
        let now = Instant::now();
        let (past, ahead) = (now.saturating_duration_since(instant), instant.saturating_duration_since(now));
        self.fleet.clock_ns() - past.as_nanos() as i64 + ahead.as_nanos() as i64
    }

    /// Opens a stage: gives a receiver of events for each of its works. Drivers that are already lost are reported there first.
    pub(crate) fn open(&self, stage: u32, works: &[Vec<Assignment>]) -> Vec<Receiver<DriverEvent>> {
        let mut state = self.state();
        state.stage = Some(stage);
        for (number, driver) in state.drivers.iter_mut().enumerate() {
            (driver.ready, driver.ended, driver.proof) = (None, false, None);
            let unfinished = (0..)
                .zip(works)
                .filter(|(_, assignments)| assignments.iter().any(|one| one.driver == number));
            driver.unfinished = unfinished.map(|(work, _)| work).collect();
        }
        let (listeners, receivers): (Vec<_>, Vec<_>) = works.iter().map(|_| unbounded()).unzip();
        state.listeners = listeners.into_iter().map(Some).collect();
        state.shares = Vec::new();
        for driver in 0..state.drivers.len() {
            if let (Some((_, reason)), false) =
                (state.drivers[driver].lost.clone(), state.drivers[driver].unfinished.is_empty())
            {
                state.notify_loss(driver, &reason);
            }
        }
        receivers
    }

    /// Starts the stage on all drivers at one time.
    pub(crate) fn start(&self, stage: u32, of: &[usize], ahead: Duration, run_start: Instant) -> Started {
        let offsets = self.offsets();
        let at = Instant::now() + ahead;
        let clock = self.clock_of(at);
        for driver in of {
            let at_ns = clock.saturating_add(offsets[*driver]).max(0) as u64;
            self.send(*driver, Down::Start { run: self.run, stage, at_ns });
        }
        let since_run_ns = at.saturating_duration_since(run_start).as_nanos() as u64;
        Started { at, since_run_ns, offsets }
    }

    /// How far each driver's clock is ahead, as far as is known now.
    pub(crate) fn offsets(&self) -> Vec<i64> {
        let members = self.fleet.members();
        let state = self.state();
        let offset = |driver: &DriverState| {
            let known =
                |member: &&Member| member.hello.name == driver.name && member.clock_error_ns != u64::MAX;
            let member = members.iter().find(known);
            member.map_or(driver.record.clock_offset_ns, |member| member.clock_offset_ns)
        };
        state.drivers.iter().map(offset).collect()
    }

    /// A work of the stage has ended with these shares: it receives no more events.
    pub(crate) fn close(&self, work: u32, shares: Vec<Share>) {
        let mut state = self.state();
        state.shares.extend(shares);
        if let Some(listener) = state.listeners.get_mut(work as usize) {
            *listener = None;
        }
    }

    /// The shares of the stage's works, by work and driver.
    pub(crate) fn take_shares(&self) -> Vec<Share> {
        let mut shares = std::mem::take(&mut self.state().shares);
        shares.sort_by_key(|share| (share.work, share.driver));
        shares
    }

    /// What the run's record says of a driver.
    pub(crate) fn record(&self, driver: usize, run_start: Instant) -> Driver {
        let state = self.state();
        let DriverState { record, lost, .. } = &state.drivers[driver];
        let lost = lost.as_ref().map(|(at, reason)| Lost {
            at_ns: at.saturating_duration_since(run_start).as_nanos() as u64,
            reason: reason.clone(),
        });
        Driver { lost, ..record.clone() }
    }

    fn claim(&self, events: &Sender<(u32, FromDriver)>) -> Result<(), String> {
        for driver in 0..self.drivers() {
            let name = self.name(driver);
            self.fleet
                .claim(&name, self.run, driver as u32, events.clone())
                .map_err(|error| error.to_string())?;
        }
        let members = self.fleet.members();
        for driver in &mut self.state().drivers {
            if let Some(member) = members.iter().find(|member| member.hello.name == driver.name) {
                driver.record = record(member);
                driver.machine.clone_from(&member.hello.machine);
            }
        }
        Ok(())
    }

    fn release(&self) {
        for driver in 0..self.drivers() {
            if !self.is_lost(driver) && self.released(driver).is_none() {
                self.send(driver, Down::Release { run: self.run });
            }
            let name = self.name(driver);
            self.fleet.release_from(&name, self.run);
        }
    }

    fn receive(&self, driver: usize, events: FromDriver) {
        match events {
            FromDriver::Second(Second { run, stage, work, interval }) if run == self.run => {
                let mut state = self.state();
                if state.stage == Some(stage) && state.drivers[driver].unfinished.contains(&work) {
                    state.notify(work, DriverEvent::Second(driver, interval));
                }
            }
            FromDriver::Second(_) => {}
            FromDriver::Message(up) => self.receive_message(driver, *up),
            FromDriver::Disconnected => {
                let mut state = self.state();
                state.drivers[driver].away = Some(Instant::now());
                state.notify_first(DriverEvent::Disconnected(driver));
            }
            FromDriver::Reconnected => {
                let mut state = self.state();
                (state.drivers[driver].away, state.drivers[driver].back) = (None, Some(Instant::now()));
                state.notify_first(DriverEvent::Reconnected(driver));
            }
            FromDriver::Gone(reason) => {
                self.lose(driver, &reason);
            }
        }
    }

    fn receive_message(&self, driver: usize, up: Up) {
        let mut state = self.state();
        let current = state.stage;
        let own = &mut state.drivers[driver];
        match up {
            Up::Prepared { run, targets, holdings } if run == self.run => {
                own.prepared = Some(Ok(Ready { targets, holdings }));
            }
            Up::Refused { run, reason } if run == self.run && own.prepared.is_none() => {
                own.prepared = Some(Err(reason));
            }
            Up::Leaving => {
                drop(state);
                return self.give_up(driver, "its user stopped it");
            }
            Up::Refused { run, reason } if run == self.run => {
                drop(state);
                return self.give_up(driver, &reason);
            }
            Up::Released { run, nodes, origin_ns } if run == self.run => {
                own.released = Some((nodes, origin_ns));
            }
            Up::Ready { run, stage, opened, notes, .. }
                if run == self.run && current == Some(stage) && own.ready.is_none() =>
            {
                if let Opened::Nothing(_) = opened {
                    own.unfinished.clear();
                }
                own.ready = Some((opened, notes));
            }
            Up::Ended { run, stage, work, ending } if run == self.run && current == Some(stage) => {
                // Once, and only for works in which it has a share.
                let open = own.unfinished.iter().position(|open| *open == work);
                if let Some(at) = open {
                    own.unfinished.swap_remove(at);
                    state.notify(work, DriverEvent::Ended(driver, ending));
                }
            }
            Up::StageEnded { run, stage, proof } if run == self.run && current == Some(stage) => {
                (own.ended, own.proof) = (true, proof.map(|proof| *proof));
                for work in std::mem::take(&mut own.unfinished) {
                    state.notify(work, DriverEvent::Unreported(driver));
                }
            }
            // It belongs to a run or a stage that has ended here.
            _ => {}
        }
        drop(state);
        self.changed.notify_all();
    }

    fn check_lost(&self, lost_after: Duration) {
        let is_lost = |driver: &DriverState| {
            driver.lost.is_none() && driver.away.is_some_and(|since| since.elapsed() >= lost_after)
        };
        let lost: Vec<_> = self
            .state()
            .drivers
            .iter()
            .enumerate()
            .filter(|(_, driver)| is_lost(driver))
            .map(|(n, _)| n)
            .collect();
        for driver in lost {
            self.give_up(driver, &format!("it could not be reached for {} s", lost_after.as_secs_f64()));
        }
    }
}

impl State {
    /// Sends an event to one work of the current stage, unless the work has ended.
    fn notify(&mut self, work: u32, event: DriverEvent) {
        if let Some(Some(listener)) = self.listeners.get(work as usize) {
            let _ = listener.send(event);
        }
    }

    /// Sends an event to the first work that has not ended.
    fn notify_first(&self, event: DriverEvent) {
        if let Some(listener) = self.listeners.iter().flatten().next() {
            let _ = listener.send(event);
        }
    }

    fn notify_loss(&self, driver: usize, reason: &str) {
        let incomplete = !self.drivers[driver].unfinished.is_empty();
        for (number, listener) in self.listeners.iter().flatten().enumerate() {
            let reason = reason.to_owned();
            let _ = listener.send(DriverEvent::Lost(LostDriver {
                driver,
                reason,
                incomplete,
                announce: number == 0,
            }));
        }
    }
}

/// The thread that listens to a run's drivers. Dropping it releases them.
pub(crate) struct Listener {
    run_drivers: Arc<RunDrivers>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Claims the drivers and listens to them. Errors name the driver that cannot be claimed.
    pub(crate) fn start(run_drivers: &Arc<RunDrivers>, lost_after: Duration) -> Result<Self, String> {
        let (events_in, events) = unbounded();
        let ended = Arc::new(AtomicBool::new(false));
        let mut listener =
            Self { run_drivers: Arc::clone(run_drivers), ended: Arc::clone(&ended), thread: None };
        run_drivers.claim(&events_in)?;
        let run_drivers = Arc::clone(run_drivers);
        listener.thread = Some(std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                match events.recv_timeout(CHECK_EVERY) {
                    Ok((driver, events)) => run_drivers.receive(driver as usize, events),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                run_drivers.check_lost(lost_after);
            }
        }));
        Ok(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.run_drivers.release();
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A listener that panicked has already lost its drivers.
            let _ = thread.join();
        }
    }
}
