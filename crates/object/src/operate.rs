//! What becomes of an operation, whatever the protocol: which object it is on and which bytes, when it is
//! tried again, what is verified, and how a failure is reported. Protocols perform single attempts.

use crate::client::{Client, Reply, Retry};
use crate::content::{Check, ContentPlan, DataSet, Key, Payload, Write};
use crate::failure::Failure;
use crate::http::{Head, Sink};
use crate::job::{Action, Http, Naming, Shared, Verb};
use crate::local::{self, Files, LocalFile};
use crate::text::{decode, encode, push_decimal};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use tidemark_load::engine::{OpenError, Operation, Outcome, Tick};
use tidemark_measure::fault::Fault;
use tidemark_measure::verification::Checked;
use tidemark_plan::policy::Directory;
use tidemark_reactor::{Examples, Mailbox, Reactor};

/// How much of a refusal's body is kept: its words are at the beginning.
const REFUSAL_MOST: usize = 4 << 10;

/// How often the cause of a failure may be removed within one operation.
const RECOVERIES_MOST: u32 = 2;

/// How much of a document is kept: many times the largest listing. What is cut off is no valid document.
const KEPT_MOST: usize = 16 << 20;

/// A protocol's way of performing operations on one slot.
pub(crate) trait Protocol {
    /// Whether a refusal to delete an object means that it does not exist. S3 never reports this: there, what is not
    /// found is the bucket.
    fn tells_gone(&self, _failure: &Failure) -> bool {
        false
    }

    /// What happened, without the secrets that the server knows.
    fn masked(&self, words: String) -> String;

    /// Makes one attempt.
    async fn attempt(&mut self, task: &Task<'_>) -> Result<Done, Failure>;

    /// After a failed attempt: whether its cause was removed (a token was renewed), so that another one is made
    /// at once, whatever the settings for retries.
    async fn recover(&mut self) -> bool {
        false
    }
}

/// A successful attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// When it ended.
    pub(crate) at: Tick,
    /// Bytes of content that it moved.
    pub(crate) bytes: u64,
    /// When the first byte of the content read came; of other replies, when the head did.
    pub(crate) first_byte: Option<Tick>,
    /// Whether the content was verified.
    pub(crate) checked: Checked,
}

impl Done {
    /// An operation that moved this many bytes of content, and had no reply or many.
    pub(crate) fn at(at: Tick, bytes: u64) -> Self {
        Self { at, bytes, first_byte: None, checked: Checked::NotAsked }
    }

    /// A request with a reply that mattered for its status only.
    pub(crate) fn after(reply: &Reply, bytes: u64) -> Self {
        Self { first_byte: Some(reply.head_at), ..Self::at(reply.done, bytes) }
    }

    /// A request whose reply's body is what was wanted.
    pub(crate) fn reading(reply: &Reply) -> Self {
        let first_byte = reply.body_at.or(Some(reply.head_at));
        Self { first_byte, ..Self::at(reply.done, reply.received) }
    }

    /// With what was found out about the content.
    pub(crate) fn checked(self, checked: Checked) -> Self {
        Self { checked, ..self }
    }
}

/// An action, ready to be performed.
pub(crate) struct Prepared {
    /// What it does.
    pub(crate) verb: Verb,
    /// How its containers and objects are called.
    pub(crate) names: Names,
    content: ContentPlan,
    files: Option<Files>,
    /// Where objects are written instead of to the storage.
    directory: Option<Directory>,
}

impl Prepared {
    /// Prepares the actions of a work.
    ///
    /// # Errors
    /// When the files to upload cannot be listed, or the directory to write to cannot be opened.
    pub(crate) fn all(actions: &[Action], data: &Arc<DataSet>) -> Result<Arc<[Self]>, OpenError> {
        let prepare = |action: &Action| {
            let files = match &action.verb {
                Verb::PutFile { directory, .. } => Some(Files::list(directory, data.access())?),
                _ => None,
            };
            let directory = match &action.verb {
                Verb::WriteLocal { directory } => Some(local::directory(directory, data.access())?),
                _ => None,
            };
            Ok(Self {
                verb: action.verb.clone(),
                names: Names::new(&action.naming),
                content: data.plan(&action.content, &action.naming),
                files,
                directory,
            })
        };
        actions.iter().map(prepare).collect()
    }

    /// Begins what it does to an object whose versions are followed, if it changes one.
    fn write(&self, key: Key) -> Option<Write> {
        match self.verb {
            Verb::Put { .. } | Verb::PutMultipart { .. } => Some(self.content.write(key)),
            Verb::Delete | Verb::Clear { .. } => Some(self.content.delete(key)),
            _ => None,
        }
    }
}

/// How containers and objects are called, percent-encoded.
pub(crate) struct Names {
    container: [String; 2],
    /// The whole name of the only container.
    only: Option<String>,
    object: [String; 2],
    /// The objects that are there already.
    existing: Option<Vec<String>>,
    /// The sizes of those objects, bytes; empty where they are not known.
    sizes: Shared<u64>,
}

impl Names {
    /// The names of an action.
    pub(crate) fn new(naming: &Naming) -> Self {
        Self {
            container: [&naming.container_prefix, &naming.container_suffix].map(|part| encode(part, false)),
            only: naming.only_container().map(|name| encode(name, false)),
            object: [&naming.object_prefix, &naming.object_suffix].map(|part| encode(part, true)),
            existing: naming
                .existing
                .as_ref()
                .map(|existing| existing.keys.iter().map(|key| encode(key, true)).collect()),
            sizes: naming.existing.as_ref().map(|existing| existing.sizes.clone()).unwrap_or_default(),
        }
    }

    /// Appends a container's name.
    #[inline]
    pub(crate) fn push_container(&self, out: &mut Vec<u8>, space: u64) {
        match &self.only {
            None => push_numbered(out, &self.container, space),
            Some(name) => out.extend_from_slice(name.as_bytes()),
        }
    }

    /// Appends an object's name.
    #[inline]
    pub(crate) fn push_object(&self, out: &mut Vec<u8>, item: u64) {
        match self.existing.as_ref().and_then(|keys| keys.get((item as usize).wrapping_sub(1))) {
            None => push_numbered(out, &self.object, item),
            Some(key) => out.extend_from_slice(key.as_bytes()),
        }
    }

    /// The size of an object that is there already, bytes, if it is known.
    fn size(&self, item: u64) -> Option<u64> {
        self.sizes.get((item as usize).wrapping_sub(1)).copied()
    }

    /// What all objects' names begin with.
    pub(crate) fn object_prefix(&self) -> &str {
        if self.existing.is_some() { "" } else { &self.object[0] }
    }
}

#[inline]
fn push_numbered(out: &mut Vec<u8>, [prefix, suffix]: &[String; 2], number: u64) {
    out.extend_from_slice(prefix.as_bytes());
    push_decimal(out, number);
    out.extend_from_slice(suffix.as_bytes());
}

/// One attempt at an operation.
pub(crate) struct Task<'a> {
    /// What it is.
    pub(crate) action: &'a Prepared,
    /// The numbers.
    pub(crate) operation: Operation,
    /// When the attempt began.
    pub(crate) now: Tick,
    write: Option<Write>,
}

impl<'a> Task<'a> {
    /// An attempt of its own, at something that no version is followed of.
    pub(crate) fn untracked(action: &'a Prepared, operation: Operation, now: Tick) -> Self {
        Self { action, operation, now, write: None }
    }

    fn key(&self) -> Key {
        Key { space: self.operation.space, item: self.operation.item }
    }

    /// The name of the container, as people write it.
    pub(crate) fn container(&self) -> String {
        let mut name = Vec::new();
        self.action.names.push_container(&mut name, self.operation.space);
        decode(&name)
    }

    /// The bytes to write.
    pub(crate) fn payload(&self) -> Payload<'a> {
        let key = self.key();
        let write = self.write.unwrap_or_else(|| self.action.content.untracked());
        self.action.content.payload(key, write, self.operation.bytes)
    }

    /// The file to upload.
    ///
    /// # Errors
    /// When the directory has no file of this number.
    pub(crate) fn file(&self) -> Result<&'a LocalFile, Failure> {
        self.action.files.as_ref().and_then(|files| files.get(self.operation.item)).ok_or_else(|| {
            Failure::without_effect(Fault::Local, format!("there is no file number {}", self.operation.item))
        })
    }

    /// The part of the object to read: at a random multiple of its length, wholly within the object if it can be. An
    /// existing object that is smaller is read as a whole.
    pub(crate) fn range(&self) -> Option<Range<u64>> {
        let Verb::GetRange { length, object_bytes } = self.action.verb else { return None };
        let length = length.max(1);
        let known = self.action.names.size(self.operation.item);
        if known.is_some_and(|bytes| bytes <= length) {
            return None;
        }
        let object_bytes = known.unwrap_or(object_bytes);
        let places = (object_bytes / length).max(1);
        // Lemire's multiplication, as in `tidemark_measure::rng::Rng::below`.
        let place = ((u128::from(self.operation.random) * u128::from(places)) >> 64) as u64;
        Some(place * length..place * length + length)
    }

    /// An intake that verifies the content read, if it is to be.
    pub(crate) fn reading(&self) -> Intake<'a> {
        let check =
            self.action.content.verifies().then(|| self.action.content.check(self.key(), self.range()));
        Intake { check, ..Intake::default() }
    }

    fn words(&self) -> String {
        let mut words = format!("{} ", word(&self.action.verb)).into_bytes();
        self.action.names.push_container(&mut words, self.operation.space);
        match &self.action.verb {
            Verb::CreateContainer { .. }
            | Verb::DeleteContainer { .. }
            | Verb::List { by_object: false, .. } => {}
            Verb::PutFile { .. } => {
                words.push(b'/');
                words.extend_from_slice(self.file().map_or("?", |file| &file.name).as_bytes());
            }
            _ => {
                words.push(b'/');
                self.action.names.push_object(&mut words, self.operation.item);
            }
        }
        String::from_utf8_lossy(&words).into_owned()
    }
}

/// A container that a server of this kind would not delete: what is in it stays.
pub(crate) fn not_empty(failure: &Failure, kind: &str, container: &str) -> Failure {
    let text = format!(
        "{}; what is in it stays: delete it, or run with `--allow-destroy {kind}://{container}`",
        failure.text
    );
    Failure { text: text.into(), ..failure.clone() }
}

/// A verb in the words of failures.
fn word(verb: &Verb) -> &'static str {
    match verb {
        Verb::CreateContainer { .. } => "create container",
        Verb::DeleteContainer { .. } => "delete container",
        Verb::Put { .. } => "put",
        Verb::PutMultipart { .. } => "put in parts",
        Verb::Get => "get",
        Verb::GetRange { .. } => "get range of",
        Verb::Head => "head",
        Verb::Delete | Verb::Clear { .. } => "delete",
        Verb::DeleteMany { .. } => "delete several from",
        Verb::Copy => "copy",
        Verb::List { .. } => "list",
        Verb::PutTags => "put tags of",
        Verb::PutRetention { .. } => "put retention of",
        Verb::GetRetention => "get retention of",
        Verb::GetTags => "get tags of",
        Verb::Restore { .. } => "restore",
        Verb::PutFile { .. } => "put file",
        Verb::WriteLocal { .. } => "write file",
    }
}

/// Takes in a reply: verifies content, keeps what else the protocol requires of it.
#[derive(Default)]
pub(crate) struct Intake<'a> {
    check: Option<Check<'a>>,
    /// Keep the body of a success.
    keeps: bool,
    /// The header that is kept.
    wanted: &'static str,
    success: bool,
    /// The wanted header's value.
    pub(crate) header: Option<String>,
    /// The body of a success, if kept, or the beginning of a refusal's.
    pub(crate) body: Vec<u8>,
}

impl Intake<'_> {
    /// An intake that keeps the body of a success.
    pub(crate) fn keeping() -> Self {
        Self { keeps: true, ..Self::default() }
    }

    /// Keeps the value of a header, too.
    pub(crate) fn wanting(self, header: &'static str) -> Self {
        Self { wanted: header, ..self }
    }

    /// The verdict on the content, if it is to be verified.
    ///
    /// # Errors
    /// How it differs from what was written.
    pub(crate) fn verify(&mut self) -> Result<Checked, Failure> {
        self.check
            .take()
            .map_or(Ok(Checked::NotAsked), Check::finish)
            .map_err(|mismatch| Failure::without_effect(mismatch.fault(), mismatch.to_string()))
    }
}

impl Sink for Intake<'_> {
    #[inline]
    fn head(&mut self, head: &Head<'_>) {
        self.success = (200..300).contains(&head.status);
        if !self.wanted.is_empty() {
            self.header = head.get(self.wanted).map(str::to_owned);
        }
    }

    #[inline]
    fn body(&mut self, piece: &[u8]) {
        if self.success {
            if let Some(check) = &mut self.check {
                check.update(piece);
            }
            if self.keeps {
                let room = KEPT_MOST.saturating_sub(self.body.len());
                self.body.extend_from_slice(&piece[..piece.len().min(room)]);
            }
        } else {
            let room = REFUSAL_MOST.saturating_sub(self.body.len());
            self.body.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }
}

/// What a slot does, for ever: takes an operation, has it attempted until it succeeds or may not be tried
/// again, and returns how it ended.
pub(crate) async fn serve(
    mut protocol: impl Protocol,
    actions: Arc<[Prepared]>,
    http: Http,
    mailbox: Mailbox,
    reactor: Rc<Reactor>,
    examples: Rc<Examples>,
) {
    loop {
        let (operation, sent) = mailbox.next().await;
        let Some(action) = actions.get(usize::from(operation.action)) else {
            mailbox.complete(reactor.now(), Outcome::failure(Fault::Local));
            continue;
        };
        let mut task = Task { action, operation, now: sent, write: None };
        task.write = action.write(task.key());
        let (mut retry, mut recoveries, mut in_doubt) = (Retry::new(&http), 0, false);
        let result = loop {
            let result = match &action.verb {
                Verb::WriteLocal { .. } => write_local(&task, &reactor),
                _ => protocol.attempt(&task).await,
            };
            let Err(failure) = result else { break result };
            in_doubt |= failure.in_doubt;
            if recoveries < RECOVERIES_MOST && protocol.recover().await {
                recoveries += 1;
            } else if !retry.again(&failure, &reactor).await {
                break Err(failure);
            }
            task.now = reactor.now();
        };
        let result = match result {
            Err(failure) if matches!(action.verb, Verb::Clear { .. }) && protocol.tells_gone(&failure) => {
                Ok(Done::at(reactor.now(), 0))
            }
            result => result,
        };
        match task.write {
            // An attempt whose fate is open may take effect later still.
            Some(write) if !in_doubt && result.is_ok() => action.content.acknowledge(write),
            Some(write) if !in_doubt => action.content.withdraw(write),
            _ => {}
        }
        let retries = retry.made + recoveries;
        match result {
            Ok(Done { at, bytes, first_byte, checked }) => {
                mailbox.complete(at, Outcome { bytes, first_byte, retries, fault: None, checked });
            }
            Err(failure) => {
                let done = reactor.now();
                let words = || format!("{}: {}", task.words(), failure.text);
                examples.note(failure.fault, || protocol.masked(words()));
                mailbox.complete(done, Outcome { retries, ..Outcome::failure(failure.fault) });
            }
        }
    }
}

fn write_local(task: &Task<'_>, reactor: &Reactor) -> Result<Done, Failure> {
    let Some(directory) = &task.action.directory else {
        return Err(Failure::without_effect(Fault::Local, "there is no directory to write to"));
    };
    let (mut container, mut object) = (Vec::new(), Vec::new());
    task.action.names.push_container(&mut container, task.operation.space);
    task.action.names.push_object(&mut object, task.operation.item);
    let [container, object] = [&container, &object].map(|name| String::from_utf8_lossy(name));
    let bytes = local::write(directory, &container, &object, &task.payload())?;
    Ok(Done::at(reactor.now(), bytes))
}

/// Does `parts` things, counted from 0, over several clients at once; after the first failure no more are
/// begun, and it is what is returned when those under way have ended.
pub(crate) async fn in_parallel(
    clients: &mut [Client],
    parts: u64,
    each: impl AsyncFn(&mut Client, u64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (next, failed) = (Cell::new(0), Cell::new(None));
    let (next, failed, each) = (&next, &failed, &each);
    let mut workers: Vec<Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::with_capacity(clients.len());
    for client in clients {
        workers.push(Box::pin(async move {
            while next.get() < parts {
                let part = next.replace(next.get() + 1);
                if let Err(failure) = each(&mut *client, part).await {
                    next.set(parts);
                    failed.set(Some(failure));
                }
            }
        }));
    }
    // The reactor polls a slot for any of its sockets: which of the workers it is for is found by asking all.
    poll_fn(|context| {
        workers.retain_mut(|worker| worker.as_mut().poll(context).is_pending());
        if workers.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    drop(workers);
    failed.take().map_or(Ok(()), Err)
}
