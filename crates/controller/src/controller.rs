//! The queue and what comes of it; knows no HTTP.

use crate::api::{self, SubmissionState};
use crate::core::{Core, now_ns};
pub use crate::environment::Secrets;
pub use crate::events::Event;
use crate::executor::Executor;
use crate::explain::{evaluation_ms, expected_ms, explain};
use crate::forms;
pub use crate::options::{Options, StartError};
use crate::queue::{self, Requirements};
use crate::reading::{LARGEST_DOCUMENT, Purpose, ReadFailure, Reading, What};
use crate::restore::{hidden_from, restore};
use crate::state::{Entry, Request};
use crate::store_writer::Added;
use crate::view;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use tidemark_control::event::StopRequest;
use tidemark_fleet::Fleet;
use tidemark_plan::plan::Plan;
use tidemark_plan::redact::redact;
use tidemark_store::{Store, StoreError, Submission};
use tokio::sync::broadcast;

/// Priorities reach from minus this to this.
const PRIORITY_MOST: i32 = 100;

/// Names of documents and drivers, and keys, are not longer than this; characters.
const LONGEST_NAME: usize = 200;

/// Drivers that a submission may name: more than any controller has.
const MOST_NAMED: usize = 10_000;

/// Operations that a list names of a submission.
const MOST_LABELS: usize = 20;

/// Submissions of a list that are given at once, whatever is asked for.
const MOST_LISTED: usize = 1_000;

/// A document whose name fits into lists.
fn named(reading: Reading) -> Result<Reading, ReadFailure> {
    match reading.name.chars().count() > LONGEST_NAME {
        true => {
            Err(ReadFailure::Refused(format!("the document's name is longer than {LONGEST_NAME} characters")))
        }
        false => Ok(reading),
    }
}

/// Why something was not done.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// There is no such thing.
    Missing(String),
    /// It does not fit the state that things are in.
    Conflict(String),
    /// The document is wrong.
    Document(String, Vec<api::Problem>),
    /// A value is out of its range.
    Bad(String),
    /// There is too much of it, or the controller is ending, or its store cannot be written.
    Unavailable(String),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoSuchSubmission { id, .. } => Self::Missing(format!("no submission w{id}")),
            StoreError::NoSuchRun { .. } | StoreError::NoSuchEvaluation { .. } => {
                Self::Missing(error.to_string())
            }
            StoreError::StillRunning { .. } => Self::Conflict(error.to_string()),
            StoreError::Token(reason) | StoreError::Remark(reason) => Self::Bad(reason),
            error => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<ReadFailure> for Refusal {
    fn from(read_failure: ReadFailure) -> Self {
        match read_failure {
            ReadFailure::Wrong(problems) => Self::Document("the document cannot be run".into(), problems),
            ReadFailure::Refused(reason) => Self::Document(reason, Vec::new()),
            ReadFailure::Busy => {
                Self::Unavailable("too many documents are being read: try again in a few seconds".into())
            }
        }
    }
}

/// The controller.
pub struct Controller {
    core: Arc<Core>,
}

impl Controller {
    /// Largest document that is taken, bytes.
    pub const LARGEST_DOCUMENT: usize = LARGEST_DOCUMENT;

    /// Opens the store (refused while another controller has it), takes up the queue where it was left, and begins to work on
    /// it.
    ///
    /// # Errors
    /// The store or its key cannot be used, or another controller has the store: a sentence.
    pub fn start(options: Options, fleet: Arc<Fleet>) -> Result<Arc<Self>, StartError> {
        let executor = Executor::on(fleet, options.registry.clone());
        Self::start_with(options, executor)
    }

    /// As [`Controller::start`], with other ways to carry things out.
    ///
    /// # Errors
    /// As [`Controller::start`].
    pub fn start_with(options: Options, executor: Executor) -> Result<Arc<Self>, StartError> {
        let core = Core::open(options, executor)?;
        // What has started ends when this is dropped.
        let controller = Self { core };
        controller.keep("queue", Core::run_scheduler)?;
        controller.keep("overview", |core| core.publish_overviews())?;
        controller.keep("writer", |core| core.retry_writes())?;
        controller.keep("figures", |core| core.add_figures())?;
        Ok(Arc::new(controller))
    }

    /// Does something in a thread of its own until the controller ends.
    fn keep(&self, name: &str, doing: fn(&Arc<Core>)) -> Result<(), StartError> {
        let core = self.core.clone();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || doing(&core));
        self.core.join_at_end(thread.map_err(|error| StartError(format!("cannot start a thread: {error}")))?);
        Ok(())
    }

    /// Says where this controller is to be found, for another one that is refused at its store.
    pub fn found_at(&self, address: &str) {
        let mut lock = self.core.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // It is a courtesy: the lock holds without it.
        let _ = lock.found_at(address);
    }

    /// Takes a document into the queue. With a key that was used before: the submission that it made then.
    ///
    /// # Errors
    /// The document or a value is wrong, the queue is full, the store cannot be written, or the controller is ending.
    pub fn submit(
        &self,
        submit: api::Submit,
        by: &str,
        key: Option<&str>,
    ) -> Result<api::Submission, Refusal> {
        self.can_take(&submit, key)?;
        if let Some(key) = key
            && let Some(before) = self.core.writer.read(|store| store.submission_by_key(by, key))?
        {
            return self.submission(before.id);
        }
        self.has_room()?;
        let submit = api::Submit { document: self.restored(&submit.document, submit.from, by)?, ..submit };
        let reading = self.read(&submit.document, Purpose::Submit(by))?;
        let sealed = self.core.seal.seal(&submit.document).map_err(Refusal::Unavailable)?;
        let redacted = redact(&submit.document);
        let priority = submit.priority;
        let request = request(submit, &reading);
        let position = self.core.state().waiting().iter().map(|one| one.position).max().unwrap_or(0);
        let submission = Submission {
            name: reading.name.clone(),
            format: reading.format.into(),
            by: by.to_owned(),
            priority,
            position: position.saturating_add(1),
            state: view::state_name(SubmissionState::Queued).into(),
            reason: "waiting for its turn".into(),
            submitted_unix_ns: now_ns(),
            request: serde_json::to_string(&request).unwrap_or_default(),
            operations: operations(&reading),
            ..Submission::default()
        };
        match self.core.writer.add(submission, &sealed, &redacted, key)? {
            Added::Existing(id) => self.submission(id),
            Added::New(stored) => {
                let entry = Entry { stored: *stored, request, running: None };
                let own = view::active(&entry);
                self.core.state().entries.insert(own.id, entry);
                self.core.wake();
                Ok(own)
            }
        }
    }

    fn can_take(&self, submit: &api::Submit, key: Option<&str>) -> Result<(), Refusal> {
        let bad = |text: String| Err(Refusal::Bad(text));
        in_range(submit.priority)?;
        let is_name = |name: &str| (1..=LONGEST_NAME).contains(&name.chars().count());
        if submit.driver_count == Some(0) {
            return bad("`driver_count` must be at least 1".into());
        }
        if submit.driver_count.is_some() && !submit.drivers.is_empty() {
            return bad("give `drivers` or `driver_count`, not both".into());
        }
        if submit.drivers.len() > MOST_NAMED || !submit.drivers.iter().all(|name| is_name(name)) {
            return bad(format!(
                "`drivers` takes at most {MOST_NAMED} names of 1 to {LONGEST_NAME} characters"
            ));
        }
        if key.is_some_and(|key| !is_name(key)) {
            return bad(format!("an Idempotency-Key must have 1 to {LONGEST_NAME} characters"));
        }
        Ok(())
    }

    fn has_room(&self) -> Result<(), Refusal> {
        let state = self.core.state();
        if state.ending {
            return Err(Refusal::Unavailable("the controller is shutting down".into()));
        }
        let waiting = state.entries.values().filter(|entry| entry.running.is_none()).count();
        if waiting >= self.core.options.queue_most {
            return Err(Refusal::Unavailable(format!(
                "the queue is full ({waiting} submissions): try again later"
            )));
        }
        Ok(())
    }

    /// What a document would do, for somebody who `may_run` it or not: then no secret is read. `by` is whoever asks, of whose
    /// documents only a few are read at a time.
    ///
    /// # Errors
    /// There is no submission that it was made from, or the store cannot be read.
    pub fn check(&self, request: &api::CheckRequest, by: &str, may_run: bool) -> Result<api::Check, Refusal> {
        let purpose = if may_run { Purpose::Check(by) } else { Purpose::Look(by) };
        match self.restored(&request.document, request.from, by) {
            Ok(document) => Ok(explain(self.read(&document, purpose))),
            Err(Refusal::Document(_, problems)) => Ok(api::Check { problems, ..api::Check::default() }),
            Err(refusal) => Err(refusal),
        }
    }

    /// A document with the values that were hidden from who edited it. They go back to nobody but who wrote them: with another
    /// endpoint, a document would carry them anywhere.
    fn restored(&self, document: &str, from: Option<u64>, by: &str) -> Result<String, Refusal> {
        let Some(id) = from else { return Ok(document.to_owned()) };
        let (stored, (sealed, redacted)) =
            self.core.writer.read(|store| Ok((store.submission(id)?, store.submitted_document(id)?)))?;
        let original = self.core.seal.open(&sealed).map_err(Refusal::Conflict)?;
        if original == redacted {
            return Ok(document.to_owned());
        }
        // What has nothing hidden left in it needs nothing back.
        let refused = |problem| Refusal::Document("hidden values cannot be put back".into(), vec![problem]);
        if by.is_empty() || stored.by != by {
            let what =
                format!("a value is hidden here that only who submitted w{id} may use again: write it again");
            return match hidden_from(document, &original, &what) {
                None => Ok(document.to_owned()),
                Some(problem) => Err(refused(problem)),
            };
        }
        restore(document, &original).map_err(refused)
    }

    fn read(&self, document: &str, purpose: Purpose<'_>) -> Result<Reading, ReadFailure> {
        named(self.core.reader.read(document, purpose)?)
    }

    /// Submissions, the newest first: at most `limit` (and 1,000), those in a state and those before the submission `before`,
    /// as far as these are given.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn submissions(
        &self,
        state: Option<SubmissionState>,
        limit: usize,
        before: Option<u64>,
    ) -> Result<Vec<api::Submission>, Refusal> {
        let limit = limit.min(MOST_LISTED);
        let stored =
            self.core.writer.read(|store| store.submissions(state.map(view::state_name), limit, before))?;
        let mut found: BTreeMap<u64, api::Submission> =
            stored.iter().map(|stored| (stored.id, self.past(stored))).collect();
        // What is known here is newer than what the store says.
        found.extend(self.core.writer.unsaved().iter().map(|stored| (stored.id, self.past(stored))));
        found.extend(self.core.state().entries.iter().map(|(id, entry)| (*id, view::active(entry))));
        let wanted = |one: &api::Submission| {
            before.is_none_or(|before| one.id < before) && state.is_none_or(|state| one.state == state)
        };
        Ok(found.into_values().rev().filter(wanted).take(limit).collect())
    }

    fn past(&self, stored: &Submission) -> api::Submission {
        view::ended(stored, self.core.writer.unsaved_run(stored.id))
    }

    /// One submission.
    ///
    /// # Errors
    /// There is none of that number, or the store cannot be read.
    pub fn submission(&self, id: u64) -> Result<api::Submission, Refusal> {
        if let Some(entry) = self.core.state().entries.get(&id) {
            return Ok(view::active(entry));
        }
        match self.core.writer.unsaved().iter().find(|stored| stored.id == id) {
            Some(stored) => Ok(self.past(stored)),
            None => Ok(self.past(&self.core.writer.read(|store| store.submission(id))?)),
        }
    }

    /// Gives a submission that waits another priority or place.
    ///
    /// # Errors
    /// It does not wait, a value is out of its range, or the store cannot be written.
    pub fn change(&self, id: u64, change: &api::Change) -> Result<api::Submission, Refusal> {
        // Whether there is one at all is another question than whether it waits.
        let found = self.submission(id)?;
        let mut state = self.core.state();
        let not_waiting = |id: u64| {
            Refusal::Conflict(format!("w{id} is not in the queue: only queued submissions can be moved"))
        };
        if state.entries.get(&id).is_none_or(|entry| entry.running.is_some()) {
            return Err(not_waiting(id));
        }
        let order = match (change.priority, change.before) {
            (Some(_), Some(_)) => return Err(Refusal::Bad("give `priority` or `before`, not both".into())),
            (None, None) => return Ok(found),
            (None, Some(before)) if before == id => return Ok(found),
            (None, Some(before)) => {
                queue::moved(state.waiting(), id, before).ok_or_else(|| not_waiting(before))?
            }
            (Some(priority), None) => {
                in_range(priority)?;
                let position = state.entries.get(&id).map_or(0, |entry| entry.stored.position);
                vec![(id, priority, position)]
            }
        };
        self.core.writer.write(|store| store.reorder_submissions(&order))?;
        for (id, priority, position) in order {
            if let Some(entry) = state.entries.get_mut(&id) {
                (entry.stored.priority, entry.stored.position) = (priority, position);
            }
        }
        let own = state.entries.get(&id).map_or(found, view::active);
        drop(state);
        self.core.wake();
        Ok(own)
    }

    /// Cancels a submission: one that waits leaves the queue, one that goes on is ended, with what was measured stored.
    ///
    /// # Errors
    /// There is none of that number, or it has ended.
    pub fn cancel(&self, id: u64, cancel: &api::Cancel) -> Result<api::Submission, Refusal> {
        let found = self.submission(id)?;
        let mut state = self.core.state();
        let Some(entry) = state.entries.get_mut(&id) else {
            return Err(Refusal::Conflict(format!(
                "w{id} has already ended: {}",
                view::state_name(found.state)
            )));
        };
        if let Some(running) = &mut entry.running {
            running.cancelled = true;
            running.live.request_stop(if cancel.at_once { StopRequest::Stop } else { StopRequest::Finish });
            let how = if cancel.at_once { "cancelled at once" } else { "cancelled: the load ends" };
            running.live.mark(api::LiveMarkKind::Cancelled, "", how);
            return Ok(view::active(entry));
        }
        let Some(Entry { mut stored, .. }) = state.entries.remove(&id) else { return Ok(found) };
        stored.state = view::state_name(SubmissionState::Cancelled).into();
        stored.reason.clear();
        stored.ended_unix_ns = Some(now_ns());
        self.core.writer.keep(&stored);
        let own = view::ended(&stored, false);
        state.remember(stored, None);
        drop(state);
        self.core.events.publish(Some(id), api::Live::Ended(Box::new(own.clone())));
        self.core.wake();
        Ok(own)
    }

    /// Submits a document again, as it was submitted.
    ///
    /// # Errors
    /// As [`Controller::submit`]; or there is none of that number, or its document was sealed with another key.
    pub fn resubmit(&self, id: u64, by: &str) -> Result<api::Submission, Refusal> {
        let (stored, (sealed, _)) =
            self.core.writer.read(|store| Ok((store.submission(id)?, store.submitted_document(id)?)))?;
        let document = self.core.seal.open(&sealed).map_err(Refusal::Conflict)?;
        let Request { drivers, driver_count, seed, skip_preflight, .. } = Request::of(&stored);
        let submit = api::Submit {
            document,
            priority: stored.priority,
            drivers,
            driver_count,
            seed,
            skip_preflight,
            from: None,
        };
        self.submit(submit, by, None)
    }

    /// The document, secrets redacted.
    ///
    /// # Errors
    /// There is none of that number, or the store cannot be read.
    pub fn document(&self, id: u64) -> Result<String, Refusal> {
        Ok(self.core.writer.read(|store| store.submitted_document(id))?.1)
    }

    /// What goes on in a run, for a page that is opened now; of one that ended lately, what went on.
    ///
    /// # Errors
    /// There is none of that number, or it ended long ago.
    pub fn live(&self, id: u64) -> Result<api::LiveRun, Refusal> {
        let found = self.submission(id)?;
        let state = self.core.state();
        let live = match state.entries.get(&id) {
            Some(entry) => entry.running.as_ref().map(|running| running.live.clone()),
            None => match state.past.iter().find(|past| past.stored.id == id) {
                Some(past) if past.live.is_some() => past.live.clone(),
                _ => {
                    let run = found.run.map(|run| format!(": see run {run}")).unwrap_or_default();
                    return Err(Refusal::Missing(format!("w{id} is no longer running{run}")));
                }
            },
        };
        drop(state);
        let waits = || api::LiveRun {
            submission: id,
            last_event: self.core.events.last(),
            ..api::LiveRun::default()
        };
        Ok(live.map_or_else(waits, |live| live.snapshot()))
    }

    /// Everything that the first page shows.
    pub fn overview(&self) -> api::Overview {
        self.core.overview(&(self.core.executor.members)())
    }

    /// All drivers by name.
    pub fn drivers(&self) -> Vec<api::Driver> {
        let members = (self.core.executor.members)();
        view::drivers(&members, &self.core.state())
    }

    /// All kinds of targets and their keys.
    pub fn targets(&self) -> Vec<api::TargetForm> {
        forms::targets(&self.core.options.registry)
    }

    /// Trouble that an operator should know of.
    pub fn troubles(&self) -> Vec<String> {
        self.core.writer.troubles()
    }

    /// All that happens from now on.
    pub fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.core.events.listen()
    }

    /// Opens the store to read.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn store(&self) -> Result<Store, Refusal> {
        Ok(Store::open(self.core.writer.path())?)
    }

    /// Notes something in the audit log; trouble with it goes to [`Controller::troubles`].
    pub fn audit(&self, by: &str, address: &str, what: &str, detail: &str) {
        self.core.audit(by, address, what, detail.to_owned());
    }

    /// Ends: nothing new begins, what goes on is interrupted with its data stored. Returns when that is done.
    pub fn shut_down(&self) {
        self.core.shut_down();
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.core.shut_down();
    }
}

fn in_range(priority: i32) -> Result<(), Refusal> {
    match (-PRIORITY_MOST..=PRIORITY_MOST).contains(&priority) {
        true => Ok(()),
        false => Err(Refusal::Bad(format!("the priority must be from -{PRIORITY_MOST} to {PRIORITY_MOST}"))),
    }
}

fn request(submit: api::Submit, reading: &Reading) -> Request {
    let (plans, expected_ms): (&[Plan], _) = match &reading.what {
        What::Workload { plan, forecast } => (std::slice::from_ref(plan), expected_ms(&forecast.time)),
        What::Evaluation { evaluation, plans, loads } => (plans, evaluation_ms(evaluation, loads)),
    };
    let requirements = Requirements::new(&submit.drivers, submit.driver_count, plans);
    Request {
        drivers: submit.drivers,
        driver_count: submit.driver_count,
        seed: submit.seed,
        skip_preflight: submit.skip_preflight,
        wanted: requirements.wanted,
        pinned: requirements.pinned.into_iter().collect(),
        expected_ms,
    }
}

/// What is measured, for lists: `read, write`.
fn operations(reading: &Reading) -> String {
    let mut labels: Vec<&str> = Vec::new();
    let forecasts = match &reading.what {
        What::Workload { forecast, .. } => std::slice::from_ref(forecast),
        What::Evaluation { loads, .. } => loads.as_slice(),
    };
    let works = || forecasts.iter().flat_map(|forecast| &forecast.stages).flat_map(|stage| &stage.works);
    let measured = works().any(|work| work.kind.measures());
    for action in works().filter(|work| !measured || work.kind.measures()).flat_map(|work| &work.actions) {
        if !labels.contains(&action.label.as_str()) && labels.len() < MOST_LABELS {
            labels.push(&action.label);
        }
    }
    labels.join(", ")
}
