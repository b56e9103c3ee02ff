//! What the controller knows and does: submissions that wait and go on, who has which driver, and the threads that keep it
//! going. [`crate::controller`] is how others see it.

use crate::api::{self, SubmissionState};
use crate::events::Events;
use crate::live::{Live, unix_now_ms};
use crate::options::{Options, StartError};
use crate::presence_log::PresenceLog;
use crate::queue::{self, Decision};
use crate::reading::Reader;
use crate::runner::{self, Resources};
use crate::seal::Seal;
use crate::state::{Entry, Going, Outcome, Past, RECENT, Request, State};
use crate::store_writer::StoreWriter;
use crate::view;
use crate::work::Work;
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

/// Drivers that the audit log names of a submission.
const MOST_NAMED: usize = 10;

/// The controller.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) reader: Reader,
    pub(crate) seal: Seal,
    pub(crate) writer: StoreWriter,
    pub(crate) work: Work,
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
    pub(crate) fn open(options: Options, work: Work) -> Result<Arc<Self>, StartError> {
        let sentence = |error: tidemark_store::StoreError| StartError(error.to_string());
        let since = now_text();
        let lock = controller_lock(&options.store, &since).map_err(sentence)?;
        let seal = Seal::beside(&options.store)?;
        let writer = StoreWriter::open(&options.store).map_err(sentence)?;
        // What it cannot add now is added at another start; nothing but lists over all runs wants it.
        let _ = writer.write(tidemark_store::Store::index_operations);
        let core = Arc::new(Self {
            reader: Reader::new(options.secrets.clone(), options.registry.clone()),
            seal,
            writer,
            work,
            events: Arc::new(Events::new()),
            lock: Mutex::new(lock),
            state: Mutex::default(),
            threads: Mutex::default(),
            changed: Condvar::new(),
            options,
        });
        core.take_up().map_err(sentence)?;
        Ok(core)
    }

    fn take_up(&self) -> Result<(), tidemark_store::StoreError> {
        let of = |state: SubmissionState| {
            self.writer.read(|store| store.submissions(Some(view::state_name(state)), usize::MAX, None))
        };
        for mut left in of(SubmissionState::Running)? {
            left.state = view::state_name(SubmissionState::Interrupted).into();
            left.ended_unix_ns = Some(now_ns());
            left.reason = match left.run {
                Some(run) => {
                    format!(
                        "the controller ended while it went on; what was measured until then is in run {run}"
                    )
                }
                None => "the controller ended while it went on, before anything was measured".into(),
            };
            self.writer.keep(&left);
            self.note("", "", "ended", format!("w{} {}: {}", left.id, left.name, left.state));
        }
        let mut state = self.state();
        for kept in of(SubmissionState::Queued)? {
            let request = Request::of(&kept);
            state.entries.insert(kept.id, Entry { kept, request, going: None });
        }
        let all = self.writer.read(|store| store.submissions(None, RECENT * 10, None))?;
        let ended = all.into_iter().filter(|kept| !state.entries.contains_key(&kept.id));
        state.past = ended.take(RECENT).map(|kept| Past { kept, live: None }).collect();
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
    fn rest(&self, pause: Duration) -> bool {
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
    pub(crate) fn keep_queue(self: &Arc<Self>) {
        loop {
            let members = (self.work.members)();
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
        let drivers = state.drivers(members);
        for (id, decision) in queue::decide(&waiting, &drivers) {
            match decision {
                Decision::Begin(drivers) => self.begin(&mut state, id, drivers),
                Decision::Wait(reason) => {
                    if let Some(entry) = state.entries.get_mut(&id) {
                        entry.kept.reason = reason;
                    }
                }
            }
        }
    }

    fn begin(self: &Arc<Self>, state: &mut State, id: u64, drivers: Vec<String>) {
        let Some(entry) = state.entries.get_mut(&id) else { return };
        let live = Arc::new(Live::new(id, self.events.clone(), self.options.registry.clone()));
        entry.kept.state = view::state_name(SubmissionState::Running).into();
        entry.kept.started_unix_ns = Some(now_ns());
        entry.kept.reason.clear();
        entry.going = Some(Going { drivers: drivers.clone(), live: live.clone(), cancelled: false });
        let (kept, request) = (entry.kept.clone(), entry.request.clone());
        self.writer.keep(&kept);
        self.note("", "", "started", format!("w{id} {} on {}", kept.name, some_of(&drivers)));
        let core = self.clone();
        let thread = std::thread::Builder::new().name(format!("w{id}"));
        let run = move || {
            let numbered = |run| core.numbered(id, run);
            let outcome = runner::run(&core.resources(&numbered), &kept, &request, drivers, &live);
            core.ended(id, outcome);
        };
        match thread.spawn(run) {
            Ok(runner) => self.join_at_end(runner),
            Err(error) => {
                let reason = format!("the system gives no thread: {error}");
                let outcome = Outcome { state: SubmissionState::Failed, reason, ..Outcome::default() };
                self.end(state, id, outcome);
            }
        }
    }

    fn resources<'a>(&'a self, numbered: &'a dyn Fn(u64)) -> Resources<'a> {
        let Self { options, reader, seal, writer, work, .. } = self;
        Resources { options, reader, seal, writer, work, numbered }
    }

    /// Notes something in the audit log; trouble with it goes to the writer's troubles.
    pub(crate) fn note(&self, by: &str, address: &str, what: &str, detail: String) {
        let (by, address, what) = (by.to_owned(), address.to_owned(), what.to_owned());
        self.writer.note(AuditEntry { id: 0, unix_ns: now_ns(), by, address, what, detail });
    }

    /// The store has begun this run for a submission: whatever happens, it can be found.
    pub(crate) fn numbered(&self, id: u64, run: u64) {
        let mut state = self.state();
        if let Some(entry) = state.entries.get_mut(&id) {
            entry.kept.run = Some(run);
            self.writer.keep(&entry.kept);
        }
    }

    /// A submission has ended.
    pub(crate) fn ended(&self, id: u64, outcome: Outcome) {
        self.end(&mut self.state(), id, outcome);
        self.wake();
    }

    fn end(&self, state: &mut State, id: u64, mut outcome: Outcome) {
        let Some(Entry { mut kept, going, .. }) = state.entries.remove(&id) else { return };
        let cancelled = going.as_ref().is_some_and(|going| going.cancelled);
        if outcome.state != SubmissionState::Completed {
            if cancelled {
                outcome.state = SubmissionState::Cancelled;
            } else if state.ending {
                let run = outcome.run.or(kept.run);
                let data = run.map(|run| format!("; what was measured until then is in run {run}"));
                outcome.state = SubmissionState::Interrupted;
                outcome.reason = format!("the controller ended while it went on{}", data.unwrap_or_default());
            }
        }
        kept.state = view::state_name(outcome.state).into();
        kept.reason = outcome.reason;
        kept.ended_unix_ns = Some(now_ns());
        kept.run = outcome.run.or(kept.run);
        kept.evaluation = outcome.evaluation.or(kept.evaluation);
        kept.valid = outcome.valid;
        kept.headline = outcome.headline;
        self.writer.keep(&kept);
        self.note("", "", "ended", format!("w{id} {}: {}", kept.name, kept.state));
        if let Some(run) = outcome.unstored {
            self.writer.keep_run(id, *run);
        }
        let ended = view::past(&kept, self.writer.unsaved_run(id));
        state.remember(kept, going.map(|going| going.live));
        state.number(&self.writer.take_stored());
        self.events.tell(Some(id), api::Live::Ended(Box::new(ended)));
    }

    /// Tells everybody once a second what is new, and the audit log which drivers came and went, until the controller ends.
    pub(crate) fn keep_telling(&self) {
        let (mut told, mut log) = (Vec::new(), PresenceLog::default());
        while self.rest(OVERVIEW_EVERY) {
            let members = (self.work.members)();
            for entry in log.call(&members) {
                self.note("", &entry.address, entry.what, entry.detail);
            }
            self.tell_nodes(&members);
            if !self.events.has_listeners() {
                continue;
            }
            let overview = self.overview(&members);
            let essence = view::essence(&overview);
            if essence != told {
                told = essence;
                self.events.tell(None, api::Live::Overview(Box::new(overview)));
            }
        }
    }

    /// Everything that the first page shows.
    pub(crate) fn overview(&self, members: &[Member]) -> api::Overview {
        let troubles = self.writer.troubles();
        view::overview(&self.state(), members, troubles, |id| self.writer.unsaved_run(id))
    }

    /// What the hosts of drivers did, to those who look at their runs.
    fn tell_nodes(&self, members: &[Member]) {
        let going: Vec<(Arc<Live>, Vec<String>)> = {
            let state = self.state();
            let going = state.entries.values().filter_map(|entry| entry.going.as_ref());
            going.map(|going| (going.live.clone(), going.drivers.clone())).collect()
        };
        let by_name: BTreeMap<&str, &Member> =
            members.iter().map(|member| (member.hello.name.as_str(), member)).collect();
        for (live, drivers) in going {
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
    pub(crate) fn keep_trying(&self) {
        while self.rest(self.work.retry) {
            self.writer.retry();
            self.state().number(&self.writer.take_stored());
        }
    }

    /// Nothing new begins, what goes on is stopped; returns when it has ended.
    pub(crate) fn shut_down(&self) {
        {
            let mut state = self.state();
            state.ending = true;
            for going in state.entries.values().filter_map(|entry| entry.going.as_ref()) {
                going.live.ask(StopRequest::Stop);
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
fn some_of(drivers: &[String]) -> String {
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
