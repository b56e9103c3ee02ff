//! The state of the drivers of one run: written by one thread that listens to all of them.

use crate::Fleet;
use crate::assign::Assignment;
use crate::backend::record;
use crate::fleet::{Heard, Member};
use crate::protocol::{Down, Opened, Second, Up};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidemark_load::thread_pool::Ending;
use tidemark_measure::observation::Node;
use tidemark_measure::record::{Driver, Lost, Note, Proof, Share};

/// How often the listener checks for lost drivers.
const LOOK: Duration = Duration::from_millis(100);

/// How long a driver that is there, its network and all, may be silent before it is given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// On whether it is ready: for a run, for a stage.
    pub(crate) ready: Duration,
    /// On a load that is over, or of which it should report something every second; when it must release a run.
    pub(crate) word: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { ready: Duration::from_secs(600), word: Duration::from_secs(60) }
    }
}

/// A work's events of its drivers, each with the driver's number in the run.
#[derive(Debug)]
pub(crate) enum News {
    /// A second, encoded.
    Second(usize, Vec<u8>),
    /// Its share has ended there. Told once at most, and nothing of the share follows.
    Ended(usize, Result<Box<Ending>, String>),
    /// The stage is over there, and it has not reported how its share ended.
    Over(usize),
    /// It is not reachable. Only one work of a stage reports it to the user.
    Away(usize),
    /// It is reachable again; reported likewise.
    Back(usize),
    /// It is lost.
    Lost(Loss),
}

/// A driver is lost. All works of a stage receive this.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    pub(crate) driver: usize,
    /// Why: a clause.
    pub(crate) reason: String,
    /// Whether the stage misses something: not all of its shares had ended.
    pub(crate) missed: bool,
    /// Whether this work reports it to the user.
    pub(crate) announce: bool,
}

/// When a stage started.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    /// On this process's clock.
    pub(crate) at: Instant,
    /// Since the run's start.
    pub(crate) since_run_ns: u64,
    /// How far each driver's clock was taken to be ahead.
    pub(crate) offsets: Vec<i64>,
}

#[derive(Default)]
struct OfDriver {
    name: String,
    record: Driver,
    away: Option<Instant>,
    /// Since when it is back, if it was away.
    back: Option<Instant>,
    lost: Option<(Instant, String)>,
    /// Whether a stage has failed because it is lost. One is enough.
    loss_counted: bool,
    /// Works of the current stage whose end it has not reported yet.
    owes: Vec<u32>,
    prepared: Option<Result<Vec<String>, String>>,
    ready: Option<(Opened, Vec<Note>)>,
    ended: bool,
    proof: Option<Proof>,
    released: Option<(Vec<Node>, u64)>,
}

#[derive(Default)]
struct State {
    drivers: Vec<OfDriver>,
    stage: Option<u32>,
    /// To those who follow its works: none to a work that has ended.
    routes: Vec<Option<Sender<News>>>,
    shares: Vec<Share>,
}

/// The drivers of one run.
pub(crate) struct RunDrivers {
    fleet: Arc<Fleet>,
    pub(crate) run: u64,
    pub(crate) timeouts: Timeouts,
    began: Instant,
    state: Mutex<State>,
    news: Condvar,
}

impl RunDrivers {
    pub(crate) fn new(fleet: Arc<Fleet>, run: u64, names: &[String], timeouts: Timeouts) -> Self {
        let driver = |name: &String| OfDriver { name: name.clone(), ..OfDriver::default() };
        let state = State { drivers: names.iter().map(driver).collect(), ..State::default() };
        Self { fleet, run, timeouts, began: Instant::now(), state: Mutex::new(state), news: Condvar::new() }
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

    /// Since when it can be heard; `None` while it cannot, which is looked after already.
    pub(crate) fn there_since(&self, driver: usize) -> Option<Instant> {
        let state = self.state();
        let OfDriver { away, back, .. } = &state.drivers[driver];
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

    /// That a driver was lost and why, as a sentence.
    pub(crate) fn loss_of(&self, driver: usize) -> Option<String> {
        let state = self.state();
        let OfDriver { name, lost, .. } = &state.drivers[driver];
        lost.as_ref().map(|(_, reason)| format!("driver {name} was lost: {reason}"))
    }

    pub(crate) fn prepared(&self, driver: usize) -> Option<Result<Vec<String>, String>> {
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

    /// What a driver saw of its node, and how its clock is to be shifted to be this process's.
    pub(crate) fn released(&self, driver: usize) -> Option<(Vec<Node>, i64)> {
        let state = self.state();
        let (nodes, origin_ns) = state.drivers[driver].released.as_ref()?;
        let offset = state.drivers[driver].record.clock_offset_ns;
        Some((nodes.clone(), (*origin_ns as i64).saturating_sub(offset)))
    }

    pub(crate) fn wait_for_news(&self, most: Duration) {
        drop(self.news.wait_timeout(self.state(), most));
    }

    pub(crate) fn send(&self, driver: usize, down: Down) {
        let name = self.name(driver);
        self.fleet.send(&name, down);
    }

    /// Drops a driver: what it has not sent is lost.
    pub(crate) fn give_up(&self, driver: usize, reason: &str) {
        // Once: it may have joined anew by now.
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
        state.tell_loss(driver, reason);
        drop(state);
        self.news.notify_all();
        true
    }

    /// A moment on the fleet's clock.
    pub(crate) fn clock_of(&self, instant: Instant) -> i64 {
        let now = Instant::now();
        let (past, ahead) = (now.saturating_duration_since(instant), instant.saturating_duration_since(now));
        self.fleet.clock_ns() - past.as_nanos() as i64 + ahead.as_nanos() as i64
    }

    /// Begins a stage: returns one route for each of its works. It also reports drivers that are already lost there.
    pub(crate) fn open(&self, stage: u32, works: &[Vec<Assignment>]) -> Vec<Receiver<News>> {
        let mut state = self.state();
        state.stage = Some(stage);
        for (number, driver) in state.drivers.iter_mut().enumerate() {
            (driver.ready, driver.ended, driver.proof) = (None, false, None);
            let seated = (0..)
                .zip(works)
                .filter(|(_, assignments)| assignments.iter().any(|one| one.driver == number));
            driver.owes = seated.map(|(work, _)| work).collect();
        }
        let (routes, receivers): (Vec<_>, Vec<_>) = works.iter().map(|_| unbounded()).unzip();
        state.routes = routes.into_iter().map(Some).collect();
        state.shares = Vec::new();
        for driver in 0..state.drivers.len() {
            if let (Some((_, reason)), false) =
                (state.drivers[driver].lost.clone(), state.drivers[driver].owes.is_empty())
            {
                state.tell_loss(driver, &reason);
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
        let offset = |driver: &OfDriver| {
            let known =
                |member: &&Member| member.hello.name == driver.name && member.clock_error_ns != u64::MAX;
            let member = members.iter().find(known);
            member.map_or(driver.record.clock_offset_ns, |member| member.clock_offset_ns)
        };
        state.drivers.iter().map(offset).collect()
    }

    /// A work of the stage has ended, with these shares: it hears nothing more.
    pub(crate) fn close(&self, work: u32, shares: Vec<Share>) {
        let mut state = self.state();
        state.shares.extend(shares);
        if let Some(route) = state.routes.get_mut(work as usize) {
            *route = None;
        }
    }

    /// The shares of the stage's works, by work and driver.
    pub(crate) fn take_shares(&self) -> Vec<Share> {
        let mut shares = std::mem::take(&mut self.state().shares);
        shares.sort_by_key(|share| (share.work, share.driver));
        shares
    }

    /// A driver in the run's record.
    pub(crate) fn record(&self, driver: usize, run_start: Instant) -> Driver {
        let state = self.state();
        let OfDriver { record, lost, .. } = &state.drivers[driver];
        let lost = lost.as_ref().map(|(at, reason)| Lost {
            at_ns: at.saturating_duration_since(run_start).as_nanos() as u64,
            reason: reason.clone(),
        });
        Driver { lost, ..record.clone() }
    }

    fn claim(&self, heard: &Sender<(u32, Heard)>) -> Result<(), String> {
        for driver in 0..self.drivers() {
            let name = self.name(driver);
            self.fleet
                .claim(&name, self.run, driver as u32, heard.clone())
                .map_err(|error| error.to_string())?;
        }
        let members = self.fleet.members();
        for driver in &mut self.state().drivers {
            if let Some(member) = members.iter().find(|member| member.hello.name == driver.name) {
                driver.record = record(member);
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

    fn hear(&self, driver: usize, heard: Heard) {
        match heard {
            Heard::Second(Second { run, stage, work, interval }) if run == self.run => {
                let mut state = self.state();
                if state.stage == Some(stage) && state.drivers[driver].owes.contains(&work) {
                    state.tell(work, News::Second(driver, interval));
                }
            }
            Heard::Second(_) => {}
            Heard::Message(up) => self.said(driver, *up),
            Heard::Away => {
                let mut state = self.state();
                state.drivers[driver].away = Some(Instant::now());
                state.tell_one(News::Away(driver));
            }
            Heard::Back => {
                let mut state = self.state();
                (state.drivers[driver].away, state.drivers[driver].back) = (None, Some(Instant::now()));
                state.tell_one(News::Back(driver));
            }
            Heard::Gone(reason) => {
                self.lose(driver, &reason);
            }
        }
    }

    fn said(&self, driver: usize, up: Up) {
        let mut state = self.state();
        let current = state.stage;
        let own = &mut state.drivers[driver];
        match up {
            Up::Prepared { run, targets } if run == self.run => own.prepared = Some(Ok(targets)),
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
            Up::Ready { run, stage, opened, notes }
                if run == self.run && current == Some(stage) && own.ready.is_none() =>
            {
                if let Opened::Nothing(_) = opened {
                    own.owes.clear();
                }
                own.ready = Some((opened, notes));
            }
            Up::Ended { run, stage, work, ending } if run == self.run && current == Some(stage) => {
                // It may say so once, of what it has a part in.
                let owed = own.owes.iter().position(|owed| *owed == work);
                if let Some(at) = owed {
                    own.owes.swap_remove(at);
                    state.tell(work, News::Ended(driver, ending));
                }
            }
            Up::StageEnded { run, stage, proof } if run == self.run && current == Some(stage) => {
                (own.ended, own.proof) = (true, proof.map(|proof| *proof));
                for work in std::mem::take(&mut own.owes) {
                    state.tell(work, News::Over(driver));
                }
            }
            // Of a run or a stage that is over here.
            _ => {}
        }
        drop(state);
        self.news.notify_all();
    }

    fn look_for_lost(&self, lost_after: Duration) {
        let is_lost = |driver: &OfDriver| {
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
            self.give_up(driver, &format!("it was not reachable for {} s", lost_after.as_secs_f64()));
        }
    }
}

impl State {
    /// Sends to one work of the current stage. One that has ended does not need it.
    fn tell(&mut self, work: u32, news: News) {
        if let Some(Some(route)) = self.routes.get(work as usize) {
            let _ = route.send(news);
        }
    }

    /// Sends to the first running work.
    fn tell_one(&self, news: News) {
        if let Some(route) = self.routes.iter().flatten().next() {
            let _ = route.send(news);
        }
    }

    fn tell_loss(&self, driver: usize, reason: &str) {
        let missed = !self.drivers[driver].owes.is_empty();
        for (number, route) in self.routes.iter().flatten().enumerate() {
            let reason = reason.to_owned();
            let _ = route.send(News::Lost(Loss { driver, reason, missed, announce: number == 0 }));
        }
    }
}

/// The thread that listens to a run's drivers. When it is dropped, they are released.
pub(crate) struct Listener {
    run_drivers: Arc<RunDrivers>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Claims the drivers and listens to them. Errors say which driver is not to be had.
    pub(crate) fn start(run_drivers: &Arc<RunDrivers>, lost_after: Duration) -> Result<Self, String> {
        let (heard_in, heard) = unbounded();
        let ended = Arc::new(AtomicBool::new(false));
        let mut listener =
            Self { run_drivers: Arc::clone(run_drivers), ended: Arc::clone(&ended), thread: None };
        run_drivers.claim(&heard_in)?;
        let run_drivers = Arc::clone(run_drivers);
        listener.thread = Some(std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                match heard.recv_timeout(LOOK) {
                    Ok((driver, heard)) => run_drivers.hear(driver as usize, heard),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                run_drivers.look_for_lost(lost_after);
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
            // A listener that crashed has lost its drivers already.
            let _ = thread.join();
        }
    }
}
