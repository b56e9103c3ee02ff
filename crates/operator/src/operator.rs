//! The loop: Evaluations are seen as they change, one is carried out at a time, and what became of it is written to its status.

use crate::decide::{Decision, Version, decide, version};
use crate::report;
use crate::resource::{Evaluation, Metadata, Phase, ReportPlace, Runs, Spec, Status, Variable};
use crate::starts::Starts;
use crate::volume::Volume;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidemark_apiserver::{Client, Failure};
use tidemark_keys::secret::Secret;

const PLURAL: &str = "evaluations";

/// How long a watch lasts; then everything is looked at anew. Seconds.
const WATCH: u32 = 60;

/// How long it is waited before an API server that failed is asked again.
const AGAIN: Duration = Duration::from_secs(2);

/// For how long a status is tried to be written.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long it is waited before what could not begin is tried again.
const LATER: Duration = Duration::from_secs(10);

/// How often it is looked whether the operator is to end.
const LOOK: Duration = Duration::from_millis(200);

/// Why there is no operator.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The API server refuses something that an operator cannot do without.
    #[error(
        "cannot {doing}: {source}; `tidemark kubernetes manifests` prints the resource and the rights that an operator needs"
    )]
    Refused {
        /// What was asked for.
        doing: String,
        /// Its answer.
        source: Failure,
    },
    /// The volume cannot be used.
    #[error("cannot use {path}: {source}")]
    Volume {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// An evaluation to carry out.
#[derive(Debug)]
pub struct Task {
    /// The name of the resource.
    pub name: String,
    /// Its number, by which what is made for it can be owned by it.
    pub uid: String,
    /// What is wanted.
    pub spec: Spec,
    /// The values of its variables.
    pub variables: BTreeMap<String, Secret>,
    /// Where its results are kept, also those of an earlier start.
    pub directory: PathBuf,
}

/// Is told how an evaluation goes on, and knows whether it should.
pub trait Follow: Sync {
    /// So many of its runs are measured; `of` is `None` in a search.
    fn runs(&self, done: u64, of: Option<u64>);
    /// Something that an administrator may want to know.
    fn say(&self, text: &str);
    /// Whether it is not wanted any more.
    fn is_stopped(&self) -> bool;
}

/// Carries evaluations out.
pub trait Carrier: Send + Sync {
    /// Carries one out to its end, or until it is stopped. Whatever was measured for it before, by whichever process, counts.
    fn carry_out(&self, task: &Task, follow: &dyn Follow) -> Outcome;
}

/// How it ended.
#[derive(Debug)]
pub enum Outcome {
    /// With a report.
    Completed(Box<Result>),
    /// It was stopped; it goes on where it was when it is started again.
    Stopped,
    /// It cannot begin, or go on, for now: a word for the reason, and a sentence. It is tried again.
    Later(&'static str, String),
    /// Its resource is wrong: a sentence. Nothing has run.
    Wrong(String),
    /// It could not be carried out: a sentence.
    Failed(String),
}

/// What an evaluation came to.
#[derive(Debug)]
pub struct Result {
    /// How many runs it has.
    pub runs: u64,
    /// Its verdict in a sentence or more.
    pub verdict: String,
    /// Why its numbers do not hold; empty: they do.
    pub invalid: Vec<String>,
    /// What went wrong besides; empty: nothing.
    pub trouble: String,
    /// The page.
    pub html: String,
    /// The report as text.
    pub markdown: String,
}

/// What happens.
enum News {
    /// There is a new list.
    Seen,
    Unseen(Failure),
    /// Its variables are there, and it is carried out.
    Begun(Version),
    Runs(Version, Runs),
    Ended(Version, Outcome),
}

/// Watches the Evaluations of the client's namespace until `is_ended`, carries them out, and keeps their results in `directory`. What it does
/// is said to `say`.
///
/// # Errors
/// [`OperatorError`]: the resource is not installed, a right is missing, the volume cannot be written to.
pub fn operate(
    client: &Arc<Client>,
    carrier: &Arc<dyn Carrier>,
    directory: &Path,
    is_ended: &dyn Fn() -> bool,
    say: Arc<dyn Fn(&str) + Send + Sync>,
) -> std::result::Result<(), OperatorError> {
    let refused = |source| OperatorError::Refused { doing: "list Evaluations".to_owned(), source };
    let unusable = |source| OperatorError::Volume { path: directory.to_owned(), source };
    // What is missing from the start is said at once and not tried forever.
    client.list::<Evaluation>(&path(client), "").map_err(refused)?;
    let volume = Volume::new(directory, client.namespace(), &client.identity()).map_err(unusable)?;
    if let Some(other) = volume.other_server() {
        say(&format!(
            "{} has results of Evaluations at {other}: none is removed; to have those of Evaluations that are gone removed again, remove \
             {} there",
            directory.display(),
            crate::volume::SERVER
        ));
    }
    let (send, news) = mpsc::channel();
    let seen = Arc::new(Mutex::new(None));
    let watcher = (Arc::clone(client), Arc::clone(&seen), send.clone());
    std::thread::spawn(move || watch(&watcher.0, &watcher.1, &watcher.2));
    let (known, current, finished, held) = (Vec::new(), None, BTreeSet::new(), BTreeMap::new());
    let (client, carrier) = (Arc::clone(client), Arc::clone(carrier));
    Operator { client, carrier, volume, say, send, seen, known, current, finished, held }
        .run(&news, is_ended);
    Ok(())
}

/// Tells what there is, whenever it changes.
fn watch(client: &Client, latest: &Mutex<Option<Vec<Evaluation>>>, news: &Sender<News>) {
    let path = path(client);
    loop {
        let seen = client.list_at::<Evaluation>(&path, "").and_then(|(seen, version)| {
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
            if news.send(News::Seen).is_err() {
                return Ok(false);
            }
            // Whatever changes, everything is listed anew: there are few Evaluations.
            client.watch::<Value>(&path, "", &version, WATCH)?.next().transpose().map(|_| true)
        });
        match seen {
            Ok(false) => return,
            // What changes often, and a watch that ends at once, are no reason to list without a pause.
            Ok(true) => std::thread::sleep(LOOK),
            // The version is too old to be watched from.
            Err(Failure::Status(410, _)) => std::thread::sleep(LOOK),
            Err(failure) => {
                if news.send(News::Unseen(failure)).is_err() {
                    return;
                }
                std::thread::sleep(AGAIN);
            }
        }
    }
}

fn path(client: &Client) -> String {
    client.path(&format!("apis/{}", crate::resource::GROUP), PLURAL)
}

/// What is carried out now.
struct Current {
    version: Version,
    is_stopped: Arc<AtomicBool>,
}

struct Operator {
    client: Arc<Client>,
    carrier: Arc<dyn Carrier>,
    volume: Volume,
    say: Arc<dyn Fn(&str) + Send + Sync>,
    send: Sender<News>,
    /// The newest list that nobody has looked at.
    seen: Arc<Mutex<Option<Vec<Evaluation>>>>,
    /// As they were seen last, with what was written to them since.
    known: Vec<Evaluation>,
    current: Option<Current>,
    /// What this process has seen the end of: a list may be older than what was written.
    finished: BTreeSet<Version>,
    /// What could not begin, and when it is tried again.
    held: BTreeMap<Version, Instant>,
}

impl Operator {
    fn run(&mut self, news: &Receiver<News>, is_ended: &dyn Fn() -> bool) {
        let mut is_away = false;
        loop {
            if is_ended() {
                match &self.current {
                    None => return,
                    // Its status still says that it is carried out: the next operator goes on with it.
                    Some(current) => current.is_stopped.store(true, Ordering::Relaxed),
                }
            }
            match news.recv_timeout(LOOK) {
                Ok(News::Seen) => {
                    is_away = false;
                    let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
                    let Some(seen) = seen else { continue };
                    self.known = seen;
                    self.known.retain(|one| is_plain(&one.metadata));
                    if !is_ended() {
                        self.react();
                    }
                }
                Ok(News::Begun(version)) => self.begun(&version),
                Ok(News::Unseen(failure)) => {
                    if !std::mem::replace(&mut is_away, true) {
                        (self.say)(&format!("Evaluations cannot be watched for now: {failure}"));
                    }
                }
                Ok(News::Runs(version, runs)) => {
                    self.write(&version, |status| Status { runs: Some(runs.clone()), ..status.clone() });
                }
                Ok(News::Ended(version, outcome)) => {
                    self.ended(&version, outcome);
                    self.current = None;
                    if !is_ended() {
                        self.react();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let now = Instant::now();
                    let is_idle = self.current.is_none() && !is_ended();
                    if is_idle && self.held.values().any(|next| *next <= now) {
                        self.react();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn react(&mut self) {
        let current = self.current.as_ref().map(|current| &current.version);
        self.held.retain(|version, _| self.known.iter().any(|one| crate::decide::version(one) == *version));
        let now = Instant::now();
        let out = |is_held: &dyn Fn(&Instant) -> bool| -> BTreeSet<Version> {
            let held = self.held.iter().filter(|(_, next)| is_held(next)).map(|(version, _)| version);
            self.finished.iter().chain(held).cloned().collect()
        };
        let Decision { stop, mut start, mark } = decide(&self.known, current, &out(&|_| true));
        if start.is_none() {
            // What could not begin gives way to what has not been tried.
            start = decide(&self.known, current, &out(&|next| *next > now)).start;
        }
        if let (true, Some(current)) = (stop, &self.current)
            && !current.is_stopped.swap(true, Ordering::Relaxed)
        {
            (self.say)("what is carried out is not wanted any more: stopping it");
        }
        self.sweep();
        for (place, phase) in mark {
            let version = version(&self.known[place]);
            let message = match phase {
                Phase::Suspended => "`spec.suspend` is true",
                _ => "another Evaluation is carried out",
            };
            self.turn(&version, phase, phase.name(), message);
        }
        if let Some(place) = start {
            self.start(place);
        }
    }

    /// Removes the results of Evaluations that are gone.
    fn sweep(&self) {
        let mut uids: BTreeSet<&str> = self.known.iter().map(|one| &*one.metadata.uid).collect();
        uids.extend(self.current.as_ref().map(|current| &*current.version.0));
        match self.volume.sweep(&uids) {
            Ok(removed) => {
                removed.iter().for_each(|name| (self.say)(&format!("the results of {name} are removed")));
            }
            Err(error) => {
                (self.say)(&format!("results of Evaluations that are gone cannot be removed: {error}"));
            }
        }
    }

    fn start(&mut self, place: usize) {
        let Evaluation { metadata, spec, .. } = self.known[place].clone();
        let version = version(&self.known[place]);
        self.held.remove(&version);
        let is_stopped = Arc::new(AtomicBool::new(false));
        self.current = Some(Current { version: version.clone(), is_stopped: Arc::clone(&is_stopped) });
        let follower = Follower {
            version: version.clone(),
            name: metadata.name.clone(),
            send: Mutex::new(self.send.clone()),
            say: Arc::clone(&self.say),
            is_stopped,
            starts: Starts::of(&self.volume.of(&metadata)),
            done: AtomicU64::new(u64::MAX),
        };
        let (client, carrier, send) =
            (Arc::clone(&self.client), Arc::clone(&self.carrier), self.send.clone());
        let directory = self.volume.of(&metadata);
        std::thread::spawn(move || {
            let carried = catch_unwind(AssertUnwindSafe(|| match values(&client, &spec.variables) {
                Err(outcome) => outcome,
                Ok(variables) => {
                    let _ = send.send(News::Begun(version.clone()));
                    if let Some(broken) = follower.starts.begin() {
                        return broken;
                    }
                    let Metadata { name, uid, .. } = metadata;
                    let task = Task { name, uid, spec, variables, directory };
                    let outcome = carrier.carry_out(&task, &follower);
                    follower.starts.forget();
                    outcome
                }
            }));
            let broken = |_| {
                Outcome::Failed("internal error: please report this as a bug and attach the document".into())
            };
            // Nobody listens when the operator has ended.
            let _ = send.send(News::Ended(version, carried.unwrap_or_else(broken)));
        });
    }

    /// Says that it is carried out.
    fn begun(&mut self, version: &Version) {
        let Some(known) = self.known.iter().find(|one| one.metadata.uid == version.0) else { return };
        (self.say)(&format!("{}: begins, or goes on", known.metadata.name));
        let status = known.status.clone();
        let runs = status.runs.filter(|_| status.observed_generation == version.1);
        self.write(version, |_| {
            let kept =
                Status { runs: runs.clone(), conditions: status.conditions.clone(), ..Status::default() };
            kept.turned(Phase::Running, version.1, "Running", "it is carried out", &now())
        });
    }

    fn ended(&mut self, version: &Version, outcome: Outcome) {
        let Some(owner) =
            self.known.iter().find(|one| one.metadata.uid == version.0).map(|one| one.metadata.clone())
        else {
            return;
        };
        match outcome {
            // What is wanted instead decides what its status says.
            Outcome::Stopped => (self.say)(&format!("{}: stopped", owner.name)),
            Outcome::Later(reason, why) => {
                (self.say)(&format!("{}: {why}", owner.name));
                self.turn(version, Phase::Waiting, reason, &why);
                self.hold(version);
            }
            Outcome::Wrong(why) => self.fails(version, &owner, "Wrong", &why),
            Outcome::Failed(why) => self.fails(version, &owner, "Failed", &why),
            Outcome::Completed(result) => self.completes(version, &owner, *result),
        }
    }

    fn fails(&mut self, version: &Version, owner: &Metadata, reason: &str, why: &str) {
        (self.say)(&format!("{}: {why}", owner.name));
        let is_written = self.turn(version, Phase::Failed, reason, why);
        self.finishes(version, is_written);
    }

    /// Nothing more is to be done for it if its status says so; else it is carried out again, and what was measured counts.
    fn finishes(&mut self, version: &Version, is_written: bool) {
        if is_written {
            self.finished.insert(version.clone());
        } else {
            self.hold(version);
        }
    }

    fn hold(&mut self, version: &Version) {
        self.held.insert(version.clone(), Instant::now() + LATER);
    }

    fn completes(&mut self, version: &Version, owner: &Metadata, result: Result) {
        let Result { runs, verdict, invalid, trouble, html, markdown } = result;
        let (config_map, unkept) = match self.keep(owner, &html, &markdown) {
            Ok(name) => (Some(name), String::new()),
            Err(why) => (None, format!("the report is only on the operator's volume: {why}")),
        };
        let said = [invalid.join("; "), trouble, unkept];
        let said: Vec<_> = said.into_iter().filter(|one| !one.is_empty()).collect();
        let message = if said.is_empty() { "the report is there".to_owned() } else { said.join("; ") };
        (self.say)(&format!("{}: completed with {runs} runs: {verdict}", owner.name));
        let directory = self.volume.of(owner).display().to_string();
        let is_written = self.write(version, |status| {
            let completed = Status {
                runs: Some(Runs::new(runs, Some(runs))),
                verdict: Some(verdict.clone()),
                validity: Some(if invalid.is_empty() { "Valid" } else { "Invalid" }.to_owned()),
                report: Some(ReportPlace { config_map: config_map.clone(), directory: directory.clone() }),
                ..status.clone()
            };
            completed.turned(Phase::Completed, version.1, "Completed", &message, &now())
        });
        self.finishes(version, is_written);
    }

    /// Keeps the report where its readers look for it: the name of the ConfigMap, or why there is none.
    fn keep(&self, owner: &Metadata, html: &str, markdown: &str) -> std::result::Result<String, String> {
        let map = report::config_map(owner, html, markdown)
            .ok_or_else(|| "it is larger than a ConfigMap may be, 1 MiB".to_owned())?;
        let name = report::name(&owner.name);
        let path = format!("{}/{name}", self.client.path("api/v1", "configmaps"));
        let kept = patiently(|| match self.client.ask("GET", &path, None) {
            Ok(found) if !report::is_of(&found, owner) => {
                let message = format!("there is a ConfigMap {name} that belongs to somebody else");
                Err(Failure::Config(message))
            }
            Err(failure) if !failure.is_missing() => Err(failure),
            _ => self.client.apply(&path, &map, false),
        });
        kept.map(|_| name).map_err(|failure| failure.to_string())
    }

    fn turn(&mut self, version: &Version, phase: Phase, reason: &str, message: &str) -> bool {
        self.write(version, |status| status.turned(phase, version.1, reason, message, &now()))
    }

    /// Writes the status of an Evaluation if it is still there. `false`: it could not be written.
    fn write(&mut self, version: &Version, change: impl Fn(&Status) -> Status) -> bool {
        let Some(known) = self.known.iter_mut().find(|one| one.metadata.uid == version.0) else {
            return true;
        };
        let status = change(&known.status);
        let name = &known.metadata.name;
        let path = format!("{}/{name}/status", path(&self.client));
        // The number keeps it from an Evaluation of the same name that was made since.
        let patch = json!({"metadata": {"uid": version.0}, "status": status});
        match patiently(|| self.client.merge(&path, &patch)) {
            Ok(_) => known.status = status,
            Err(failure) if failure.is_missing() => {}
            Err(failure) => {
                (self.say)(&format!("the status of {name} cannot be written: {failure}"));
                return false;
            }
        }
        true
    }
}

/// Asks until there is an answer, for a bounded time.
fn patiently<T>(ask: impl Fn() -> std::result::Result<T, Failure>) -> std::result::Result<T, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        match ask() {
            // A conflict is one with another object of that name.
            Err(failure)
                if failure.is_passing()
                    && !matches!(failure, Failure::Status(409, _))
                    && Instant::now() < until =>
            {
                std::thread::sleep(AGAIN);
            }
            answer => return answer,
        }
    }
}

/// Whether it has a name and a number as Kubernetes gives them: its directory is named after them.
fn is_plain(metadata: &Metadata) -> bool {
    let plain = |text: &str, more: &[u8]| {
        !text.is_empty() && text.bytes().all(|one| one.is_ascii_alphanumeric() || more.contains(&one))
    };
    plain(&metadata.name, b"-.") && plain(&metadata.uid, b"-")
}

/// The values of variables, or what comes of it that there are none.
fn values(client: &Client, variables: &[Variable]) -> std::result::Result<BTreeMap<String, Secret>, Outcome> {
    let value = |variable: &Variable| {
        let name = &variable.name;
        let Some(reference) = &variable.secret_key_ref else {
            return Ok((name.clone(), Secret::new(variable.value.as_deref().unwrap_or_default())));
        };
        let path = format!("{}/{}", client.path("api/v1", "secrets"), reference.name);
        let found = patiently(|| client.ask("GET", &path, None)).map_err(|failure| {
            let why = format!("spec.variables: {name}: {failure}");
            match failure {
                _ if failure.is_missing() => Outcome::Later("SecretMissing", why),
                _ if failure.is_passing() => Outcome::Later("Away", why),
                _ => Outcome::Wrong(why),
            }
        })?;
        let bytes = found["data"][&reference.key].as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| {
            let (secret, key) = (&reference.name, &reference.key);
            let why = format!("spec.variables: {name}: the Secret {secret} has no text under the key {key}");
            Outcome::Later("SecretMissing", why)
        })?;
        Ok((name.clone(), Secret::new(&*text)))
    };
    variables.iter().map(value).collect()
}

/// Passes on what is told of an evaluation.
struct Follower {
    version: Version,
    name: String,
    send: Mutex<Sender<News>>,
    say: Arc<dyn Fn(&str) + Send + Sync>,
    is_stopped: Arc<AtomicBool>,
    starts: Starts,
    /// How many runs were measured when it was told last.
    done: AtomicU64,
}

impl Follow for Follower {
    fn runs(&self, done: u64, of: Option<u64>) {
        if self.done.swap(done, Ordering::Relaxed) < done {
            self.starts.forget();
        }
        let send = self.send.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody listens when the operator has ended.
        let _ = send.send(News::Runs(self.version.clone(), Runs::new(done, of)));
    }

    fn say(&self, text: &str) {
        (self.say)(&format!("{}: {text}", self.name));
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

fn now() -> String {
    // Kubernetes' times have whole seconds.
    jiff::Timestamp::from_second(jiff::Timestamp::now().as_second())
        .map(|now| now.to_string())
        .unwrap_or_default()
}
