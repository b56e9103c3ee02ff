//! What the controller knows and does: submissions that wait and go on, who has which driver, and the threads that keep it
//! running. [`crate::controller`] is how others see it.

use crate::api::{self, SubmissionState};
use crate::events::Events;
use crate::executor::Executor;
use crate::live::{Live, unix_now_ms};
use crate::options::{Options, StartError};
use crate::presence_log::PresenceLog;
use crate::queue::{self, Decision};
use crate::reading::Reader;
use crate::runner::{self, Resources};
use crate::seal::Seal;
use crate::state::{Ended, Entry, Outcome, RECENT, Request, Running, State};
use crate::store_writer::StoreWriter;
use crate::view;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidemark_control::event::StopRequest;
use tidemark_fleet::fleet::{Member, Presence};
use tidemark_store::{AuditEntry, Lock, controller_lock};

/// How often the queue is looked at: drivers come and go by themselves.
const QUEUE_EVERY: Duration = Duration::from_millis(250);

/// How often everybody who looks on is told what is new.
const OVERVIEW_EVERY: Duration = Duration::from_secs(1);

/// Runs of older versions that are listed anew at a time, and the pause after them: the store is others' in between.
const LISTED_AT_ONCE: usize = 20;
const LISTED_PAUSE: Duration = Duration::from_millis(20);

/// Drivers that the audit log names of a submission.
const MOST_NAMED: usize = 10;

/// The controller.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) reader: Reader,
    pub(crate) seal: Seal,
    pub(crate) writer: StoreWriter,
    pub(crate) executor: Executor,
    pub(crate) events: Arc<Events>,
    pub(crate) lock: Mutex<Lock>,
    state: Mutex<State>,
    /// Threads that end with the controller, or before.
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Something changed that concerns the queue, or the controller ends.
    changed: Condvar,
}

impl Core {
    /// Takes the store, and takes up the queue where it was left.
    pub(crate) fn open(options: Options, executor: Executor) -> Result<Arc<Self>, StartError> {
        let sentence = |error: tidemark_store::StoreError| StartError(error.to_string());
        let since = now_text();
        let lock = controller_lock(&options.store, &since).map_err(sentence)?;
        let seal = Seal::beside(&options.store)?;
        let writer = StoreWriter::open(&options.store).map_err(sentence)?;
        // What cannot be written now is written at another start: runs are rebuilt whenever they are read, and nothing but
        // lists over all runs needs their operations.
        let _ = writer.write(|store| store.salvage(tidemark_control::listing::of_run));
        let _ = writer.write(tidemark_store::Store::index_operations);
        let core = Arc::new(Self {
            reader: Reader::new(options.secrets.clone(), options.registry.clone()),
            seal,
            writer,
            executor,
            events: Arc::new(Events::new()),
            lock: Mutex::new(lock),
            state: Mutex::default(),
            threads: Mutex::default(),
            changed: Condvar::new(),
            options,
        });
        core.restore_queue().map_err(sentence)?;
        Ok(core)
    }

    fn restore_queue(&self) -> Result<(), tidemark_store::StoreError> {
        let of = |state: SubmissionState| {
            self.writer.read(|store| store.submissions(Some(view::state_name(state)), usize::MAX, None))
        };
        for mut left in of(SubmissionState::Running)? {
            left.state = view::state_name(SubmissionState::Interrupted).into();
            left.ended_unix_ns = Some(now_ns());
            left.reason = match left.run {
                Some(run) => {
                    format!("the controller stopped during the run; partial results are in run {run}")
                }
                None => "the controller stopped before anything was measured".into(),
            };
            self.writer.keep(&left);
            self.audit("", "", "ended", format!("w{} {}: {}", left.id, left.name, left.state));
        }
        let mut state = self.state();
        for stored in of(SubmissionState::Queued)? {
            let request = Request::of(&stored);
            state.entries.insert(stored.id, Entry { stored, request, running: None });
        }
        let all = self.writer.read(|store| store.submissions(None, RECENT * 10, None))?;
        let ended = all.into_iter().filter(|stored| !state.entries.contains_key(&stored.id));
        state.past = ended.take(RECENT).map(|stored| Ended { stored, live: None }).collect();
        Ok(())
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the queue looked at now.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Waits for so long, or until the controller ends: false then.
    fn sleep(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.state();
        while !state.ending {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread whose end is waited for when the controller ends.
    pub(crate) fn join_at_end(&self, thread: JoinHandle<()>) {
        let mut threads = self.threads();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Begins what can begin, again and again, until the controller ends.
    pub(crate) fn run_scheduler(self: &Arc<Self>) {
        loop {
            let members = (self.executor.members)();
            let state = self.state();
            if state.ending {
                return;
            }
            self.schedule(state, &members);
            let state = self.state();
            if !state.ending {
                drop(self.changed.wait_timeout(state, QUEUE_EVERY));
            }
        }
    }

    fn schedule(self: &Arc<Self>, mut state: MutexGuard<'_, State>, members: &[Member]) {
        let waiting = state.waiting();
        if waiting.is_empty() {
            return;
        }
        state.last.retain(|name, _| members.iter().any(|member| member.hello.name == *name));
        let drivers = state.drivers(members);
        for (id, decision) in queue::decide(&waiting, &drivers) {
            match decision {
                Decision::Begin(drivers) => self.begin(&mut state, id, drivers),
                Decision::Wait(reason) => {
                    if let Some(entry) = state.entries.get_mut(&id) {
                        entry.stored.reason = reason;
                    }
                }
            }
        }
    }

    fn begin(self: &Arc<Self>, state: &mut State, id: u64, drivers: Vec<String>) {
        let Some(entry) = state.entries.get_mut(&id) else { return };
        let live = Arc::new(Live::new(id, self.events.clone(), self.options.registry.clone()));
        entry.stored.state = view::state_name(SubmissionState::Running).into();
        entry.stored.started_unix_ns = Some(now_ns());
        entry.stored.reason.clear();
        entry.running = Some(Running { drivers: drivers.clone(), live: live.clone(), cancelled: false });
        state.last.extend(drivers.iter().map(|name| (name.clone(), id)));
        let (stored, request) = (entry.stored.clone(), entry.request.clone());
        self.writer.keep(&stored);
        self.audit("", "", "started", format!("w{id} {} on {}", stored.name, abbreviated(&drivers)));
        let core = self.clone();
        let thread = std::thread::Builder::new().name(format!("w{id}"));
        let run = move || {
            let run_begun = |run| core.run_begun(id, run);
            let outcome = runner::run(&core.resources(&run_begun), &stored, &request, drivers, &live);
            core.ended(id, outcome);
        };
        match thread.spawn(run) {
            Ok(runner) => self.join_at_end(runner),
            Err(error) => {
                let reason = format!("cannot start a thread: {error}");
                let outcome = Outcome { state: SubmissionState::Failed, reason, ..Outcome::default() };
                self.end(state, id, outcome);
            }
        }
    }

    fn resources<'a>(&'a self, run_begun: &'a dyn Fn(u64)) -> Resources<'a> {
        let Self { options, reader, seal, writer, executor, .. } = self;
        Resources { options, reader, seal, writer, executor, run_begun }
    }

    /// Notes something in the audit log; trouble with it goes to the writer's troubles.
    pub(crate) fn audit(&self, by: &str, address: &str, what: &str, detail: String) {
        let (by, address, what) = (by.to_owned(), address.to_owned(), what.to_owned());
        self.writer.audit(AuditEntry { id: 0, unix_ns: now_ns(), by, address, what, detail });
    }

    /// The store has begun this run for a submission: whatever happens, it can be found.
    pub(crate) fn run_begun(&self, id: u64, run: u64) {
        let mut state = self.state();
        if let Some(entry) = state.entries.get_mut(&id) {
            entry.stored.run = Some(run);
            self.writer.keep(&entry.stored);
        }
    }

    /// A submission has ended.
    pub(crate) fn ended(&self, id: u64, outcome: Outcome) {
        self.end(&mut self.state(), id, outcome);
        self.wake();
    }

    fn end(&self, state: &mut State, id: u64, mut outcome: Outcome) {
        let Some(Entry { mut stored, running, .. }) = state.entries.remove(&id) else { return };
        let cancelled = running.as_ref().is_some_and(|running| running.cancelled);
        if outcome.state != SubmissionState::Completed {
            if cancelled {
                outcome.state = SubmissionState::Cancelled;
            } else if state.ending {
                let run = outcome.run.or(stored.run);
                let data = run.map(|run| format!("; partial results are in run {run}"));
                outcome.state = SubmissionState::Interrupted;
                outcome.reason = format!("the controller stopped during the run{}", data.unwrap_or_default());
            }
        }
        stored.state = view::state_name(outcome.state).into();
        stored.reason = outcome.reason;
        stored.ended_unix_ns = Some(now_ns());
        stored.run = outcome.run.or(stored.run);
        stored.evaluation = outcome.evaluation.or(stored.evaluation);
        stored.valid = outcome.valid;
        stored.headline = outcome.headline;
        self.writer.keep(&stored);
        self.audit("", "", "ended", format!("w{id} {}: {}", stored.name, stored.state));
        if let Some(run) = outcome.unstored {
            self.writer.keep_run(id, *run);
        }
        let ended = view::ended(&stored, self.writer.unsaved_run(id));
        state.remember(stored, running.map(|running| running.live));
        state.number(&self.writer.take_stored());
        self.events.publish(Some(id), api::Live::Ended(Box::new(ended)));
    }

    /// Tells everybody once a second what is new, and the audit log which drivers came and went, until the controller ends.
    pub(crate) fn publish_overviews(&self) {
        let (mut told, mut log) = (Vec::new(), PresenceLog::default());
        while self.sleep(OVERVIEW_EVERY) {
            let members = (self.executor.members)();
            for entry in log.changes(&members) {
                self.audit("", &entry.address, entry.what, entry.detail);
            }
            self.publish_nodes(&members);
            if !self.events.has_listeners() {
                continue;
            }
            let overview = self.overview(&members);
            let essence = view::essence(&overview);
            if essence != told {
                told = essence;
                self.events.publish(None, api::Live::Overview(Box::new(overview)));
            }
        }
    }

    /// Everything that the first page shows.
    pub(crate) fn overview(&self, members: &[Member]) -> api::Overview {
        let troubles = self.writer.troubles();
        view::overview(&self.state(), members, troubles, |id| self.writer.unsaved_run(id))
    }

    /// What the hosts of drivers did, to those who look at their runs.
    fn publish_nodes(&self, members: &[Member]) {
        let running: Vec<(Arc<Live>, Vec<String>)> = {
            let state = self.state();
            let running = state.entries.values().filter_map(|entry| entry.running.as_ref());
            running.map(|running| (running.live.clone(), running.drivers.clone())).collect()
        };
        let by_name: BTreeMap<&str, &Member> =
            members.iter().map(|member| (member.hello.name.as_str(), member)).collect();
        for (live, drivers) in running {
            let own = drivers.iter().filter_map(|name| by_name.get(name.as_str()));
            let nodes: Vec<_> = own
                .filter(|member| member.presence == Presence::Present)
                .map(|member| view::node(member, unix_now_ms()))
                .collect();
            if !nodes.is_empty() {
                live.nodes(nodes);
            }
        }
    }

    /// Tries again and again to write what could not be written, until the controller ends.
    pub(crate) fn retry_writes(&self) {
        while self.sleep(self.executor.retry) {
            self.writer.retry();
            self.state().number(&self.writer.take_stored());
        }
    }

    /// Lists the runs of older versions anew, a few at a time: lists show their figures as they come.
    pub(crate) fn add_figures(&self) {
        let some = |store: &mut tidemark_store::Store| {
            store.add_figures(LISTED_AT_ONCE, tidemark_control::listing::of_run)
        };
        // What cannot be written now is written at another start.
        while self.writer.write(some).is_ok_and(|found| found > 0) && self.sleep(LISTED_PAUSE) {}
    }

    /// Nothing new begins, what goes on is stopped; returns when it has ended.
    pub(crate) fn shut_down(&self) {
        {
            let mut state = self.state();
            state.ending = true;
            for running in state.entries.values().filter_map(|entry| entry.running.as_ref()) {
                running.live.request_stop(StopRequest::Stop);
            }
        }
        self.wake();
        let threads = std::mem::take(&mut *self.threads());
        for thread in threads {
            // A run has told its end, or that it has crashed.
            let _ = thread.join();
        }
        self.writer.retry();
    }
}

/// The first of these drivers, and how many more there are.
fn abbreviated(drivers: &[String]) -> String {
    let named = drivers.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match drivers.len().saturating_sub(MOST_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Now, nanoseconds since 1970 UTC.
pub(crate) fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Now, for people.
fn now_text() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}
