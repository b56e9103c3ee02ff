//! OpenStack Swift, and the RADOS gateway's form of it.
//!
//! One attempt at an operation is one request, or as many as the verb takes; what comes before and after
//! it (content, retries, verification, the words of failures) is in [`crate::operate`].
//!
//! - A token that expired (401) is renewed by one slot while the others wait; the request is then sent again.
//!   That is part of its operation's latency, and counted as a retry.
//! - An upload in parts is a static large object: its segments are `OBJECT/slo/NUMBER` in the same container,
//!   and overwritten with it. `delete` removes the manifest alone; deleting a container with `empty` removes all.
//! - Several objects are deleted by a bulk request where the server offers that, else one by one.
//! - Swift has no tags: `PutTags` sets the object's metadata and `GetTags` reads its headers. It has no archive:
//!   `Restore` is refused before the load.

mod account;
mod auth;
mod containers;
mod link;
mod segments;

pub(crate) mod preflight;

use crate::client::{Body, Client, Content, PlainChunks, Reply};
use crate::content::{COPY, DataSet};
use crate::emptying::Limits;
use crate::endpoint::{Endpoint, Resolver};
use crate::existing::Lists;
use crate::failure::Failure;
use crate::job::{Action, Swift, Verb};
use crate::operate::{Done, Intake, Prepared, Protocol, Task, serve};
use crate::preflight::unanswered;
use crate::text::{encode, push_decimal};
use account::{Account, Refusal};
use link::{Link, Request};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tidemark_load::budget::Budget;
use tidemark_load::endpoints::endpoint_of;
use tidemark_load::engine::{Clock, OpenError, Session, Sessions, ThreadContext, Tick};
use tidemark_measure::fault::Fault;
use tidemark_reactor::Examples;
use tidemark_reactor::Reactor;
use tidemark_reactor::{Slots, Spawn};

/// The engine of a work on Swift.
pub(crate) struct SwiftEngine {
    target: Arc<Swift>,
    account: Arc<Account>,
    places: Vec<Place>,
    actions: Arc<[Prepared]>,
}

/// Where the account is: a server, and the path on it.
#[derive(Clone)]
struct Place {
    endpoint: Arc<Endpoint>,
    path: String,
}

impl SwiftEngine {
    /// An engine for these actions. Logs in.
    ///
    /// # Errors
    /// When that fails, an address cannot be resolved, files to upload cannot be listed, or Swift has nothing like
    /// one of the actions.
    pub(crate) fn new(target: &Swift, actions: &[Action], data: &Arc<DataSet>) -> Result<Self, OpenError> {
        if actions.iter().any(|action| matches!(action.verb, Verb::Restore { .. })) {
            return Err(OpenError(
                "Swift has no archive to restore objects from: remove the restore operation, or use S3"
                    .into(),
            ));
        }
        if actions.iter().any(|action| matches!(action.verb, Verb::PutRetention { .. } | Verb::GetRetention))
        {
            let text = "Swift locks no objects: remove `put_retention` and `get_retention`, or use S3";
            return Err(OpenError(text.into()));
        }
        let actions = Prepared::all(actions, data)?;
        let (account, places) = enter(target)?;
        Ok(Self { target: Arc::new(target.clone()), account: Arc::new(account), places, actions })
    }
}

/// Logs in, and looks up where the account is.
fn enter(target: &Swift) -> Result<(Account, Vec<Place>), OpenError> {
    let clock = Clock::starting_at(Instant::now());
    let reactor = Reactor::within(clock, target.http.timeout_ns, &Budget::preflight())?;
    let account = reactor
        .block_on(Account::log_in(&target.auth, &target.http, &reactor))
        .map_err(|refusal| target.mask().error(in_words(refusal, target.http.timeout_ns)))?;
    let storage_url = account.grant().storage_url.clone();
    let resolver = Resolver::new(&target.http);
    let path = || url::Url::parse(&storage_url).map(|url| url.path().trim_end_matches('/').to_owned());
    let endpoints = &target.http.endpoints;
    let places = if endpoints.is_empty() { std::slice::from_ref(&storage_url) } else { endpoints };
    let places = places.iter().map(|text| {
        let endpoint = resolver.resolve(text)?;
        let path = if endpoint.base.is_empty() { path().unwrap_or_default() } else { endpoint.base.clone() };
        Ok(Place { endpoint, path })
    });
    Ok((account, places.collect::<Result<_, OpenError>>()?))
}

fn in_words(refusal: Refusal, timeout_ns: u64) -> OpenError {
    match refusal {
        Refusal::Told(error) => error,
        Refusal::Failed { url, failure } => OpenError(unanswered(&url, timeout_ns, &failure)),
    }
}

/// A slot for each place of a target's account, with its address: for what is asked before the load. Logs in.
pub(crate) fn slots(
    target: &Arc<Swift>,
    reactor: &Rc<Reactor>,
) -> Result<Vec<(String, impl Protocol + Lists)>, OpenError> {
    let (account, places) = enter(target)?;
    let account = Arc::new(account);
    let slot = |place: &Place| (place.endpoint.url(), Slot::new(target, &account, place, reactor));
    Ok(places.iter().map(slot).collect())
}

impl Sessions for SwiftEngine {
    fn open(&self, thread: ThreadContext) -> Result<Box<dyn Session>, OpenError> {
        let reactor = Reactor::new(thread.clock, self.target.http.timeout_ns)?;
        let examples = Rc::new(Examples::default());
        let (target, actions) = (Arc::clone(&self.target), Arc::clone(&self.actions));
        let (account, places) = (Arc::clone(&self.account), self.places.clone());
        let (own_reactor, own_examples) = (Rc::clone(&reactor), Rc::clone(&examples));
        let spawn: Spawn = Box::new(move |slot, mailbox| {
            let place = &places[endpoint_of(thread.first_slot, slot, places.len())];
            let protocol = Slot::new(&target, &account, place, &own_reactor);
            let (reactor, examples) = (Rc::clone(&own_reactor), Rc::clone(&own_examples));
            Box::pin(serve(protocol, Arc::clone(&actions), target.http.clone(), mailbox, reactor, examples))
        });
        Ok(Box::new(Slots::new(&reactor, &examples, thread.slots, spawn)))
    }

    fn endpoints(&self) -> Vec<String> {
        self.places.iter().map(|place| place.endpoint.url()).collect()
    }
}

/// One slot: its connections, and its requests on them.
struct Slot {
    account: Arc<Account>,
    link: Link,
    /// The first is the slot's own; the others are made for parts sent in parallel, and kept.
    clients: Vec<Client>,
    target: Arc<Swift>,
    /// Whether the server takes bulk deletions, once that is known.
    bulk: Option<bool>,
    /// A header's value: kept for its memory.
    value: Vec<u8>,
    /// How far the emptying of a container may go.
    limits: Limits,
}

impl Protocol for Slot {
    fn masked(&self, words: String) -> String {
        let mut mask = self.target.mask();
        mask.add(&self.account.grant().token);
        mask.apply(words).into_owned()
    }

    #[inline]
    async fn attempt(&mut self, task: &Task<'_>) -> Result<Done, Failure> {
        match &task.action.verb {
            Verb::Get | Verb::GetRange { .. } => self.get(task).await,
            Verb::Put { chunked, if_absent } => self.put(task, *chunked, *if_absent).await,
            Verb::Head | Verb::GetTags => self.plain(task, "HEAD", &[]).await,
            Verb::Delete | Verb::Clear { .. } => self.plain(task, "DELETE", &[]).await,
            // What takes many requests lives in memory of its own while it lasts: slots stay small.
            Verb::PutMultipart { part_bytes, parallel } => {
                let payload = task.payload();
                let content = Content::Payload(&payload);
                Box::pin(self.upload(
                    task,
                    &object_name(task),
                    content,
                    payload.size(),
                    *part_bytes,
                    *parallel,
                ))
                .await
            }
            Verb::PutFile { part_bytes, .. } => Box::pin(self.put_file(task, *part_bytes)).await,
            Verb::CreateContainer { .. } => Box::pin(self.create_container(task)).await,
            Verb::DeleteContainer { empty } => Box::pin(self.delete_container(task, empty)).await,
            Verb::DeleteMany { count } => Box::pin(self.delete_numbered(task, *count)).await,
            Verb::Copy => Box::pin(self.copy(task)).await,
            Verb::List { page, all, by_object } => Box::pin(self.list(task, *page, *all, *by_object)).await,
            Verb::PutTags => Box::pin(self.set_metadata(task)).await,
            Verb::Restore { .. }
            | Verb::PutRetention { .. }
            | Verb::GetRetention
            | Verb::WriteLocal { .. } => {
                Err(Failure::without_effect(Fault::Local, "Swift has no such operation"))
            }
        }
    }

    fn tells_gone(&self, failure: &Failure) -> bool {
        failure.fault == Fault::NotFound
    }

    async fn recover(&mut self) -> bool {
        if !self.link.take_turned_away() {
            return false;
        }
        let reactor = Rc::clone(self.clients[0].reactor());
        self.account.renew(self.link.generation(), &reactor).await
    }
}

/// Appends the path of the task's object, below the account.
#[inline]
fn object_path(task: &Task<'_>, out: &mut Vec<u8>) {
    container_path(task, out);
    out.push(b'/');
    task.action.names.push_object(out, task.operation.item);
}

/// Appends the path of the task's container, below the account.
#[inline]
fn container_path(task: &Task<'_>, out: &mut Vec<u8>) {
    out.push(b'/');
    task.action.names.push_container(out, task.operation.space);
}

/// The name of the task's object.
fn object_name(task: &Task<'_>) -> Vec<u8> {
    let mut name = Vec::new();
    task.action.names.push_object(&mut name, task.operation.item);
    name
}

impl Slot {
    fn new(target: &Arc<Swift>, account: &Arc<Account>, place: &Place, reactor: &Rc<Reactor>) -> Self {
        Self {
            account: Arc::clone(account),
            link: Link::new(place),
            clients: vec![Client::new(reactor, &place.endpoint, &target.http)],
            target: Arc::clone(target),
            bulk: None,
            value: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// Now, for requests after an attempt's first.
    fn now(&self) -> Tick {
        self.clients[0].reactor().now()
    }

    /// Sends one request on the slot's own connection; any status of 2xx is a success.
    #[inline]
    async fn send<P: Fn(&mut Vec<u8>)>(
        &mut self,
        now: Tick,
        request: &Request<'_, P>,
        intake: &mut Intake<'_>,
    ) -> Result<Reply, Failure> {
        self.link.follow(&self.account);
        self.link.send(&mut self.clients[0], now, request, &mut Body::none(), intake).await
    }

    /// The same with a body.
    #[inline]
    async fn send_body<P: Fn(&mut Vec<u8>)>(
        &mut self,
        now: Tick,
        request: &Request<'_, P>,
        body: &mut Body<'_>,
        intake: &mut Intake<'_>,
    ) -> Result<Reply, Failure> {
        self.link.follow(&self.account);
        self.link.send(&mut self.clients[0], now, request, body, intake).await
    }

    /// A request on the object whose reply matters for its status alone.
    #[inline]
    async fn plain(
        &mut self,
        task: &Task<'_>,
        method: &'static str,
        headers: &[(&str, &[u8])],
    ) -> Result<Done, Failure> {
        let request = Request::new(method, |out| object_path(task, out)).headers(headers);
        let reply = self.send(task.now, &request, &mut Intake::default()).await?;
        Ok(Done::after(&reply, 0))
    }

    #[inline]
    async fn get(&mut self, task: &Task<'_>) -> Result<Done, Failure> {
        let mut intake = task.reading();
        let request = Request::new("GET", |out| object_path(task, out));
        let Some(range) = task.range() else {
            let reply = self.send(task.now, &request, &mut intake).await?;
            let checked = intake.verify()?;
            return Ok(Done::reading(&reply).checked(checked));
        };
        let mut value = std::mem::take(&mut self.value);
        value.clear();
        value.extend_from_slice(b"bytes=");
        push_decimal(&mut value, range.start);
        value.push(b'-');
        push_decimal(&mut value, range.end.saturating_sub(1));
        let header: [(&str, &[u8]); 1] = [("Range", &value)];
        let sent = self.send(task.now, &request.headers(&header), &mut intake).await;
        self.value = value;
        let reply = sent?;
        if reply.status != 206 {
            let text = format!("{} instead of 206: the server ignored the range", reply.status);
            return Err(Failure::without_effect(Fault::Protocol, text));
        }
        let checked = intake.verify()?;
        let wanted = range.end - range.start;
        if reply.received != wanted {
            // Whether the object ends there, only its content could tell.
            let text = format!("{} bytes came of the {wanted} at {}", reply.received, range.start);
            return Err(Failure::without_effect(Fault::ShortTransfer, text));
        }
        Ok(Done::reading(&reply).checked(checked))
    }

    #[inline]
    async fn put(&mut self, task: &Task<'_>, chunked: bool, if_absent: bool) -> Result<Done, Failure> {
        let payload = task.payload();
        let condition: [(&str, &[u8]); 1] = [("If-None-Match", b"*")];
        let request = Request::new("PUT", |out| object_path(task, out));
        let request = request.headers(if if_absent { &condition } else { &[] });
        let body = Body::content(Content::Payload(&payload), 0..payload.size());
        let mut chunks = PlainChunks;
        let mut body = if chunked { body.chunked(&mut chunks) } else { body };
        let reply = self.send_body(task.now, &request, &mut body, &mut Intake::default()).await?;
        Ok(Done::after(&reply, payload.size()))
    }

    async fn put_file(&mut self, task: &Task<'_>, part_bytes: Option<u64>) -> Result<Done, Failure> {
        let local = task.file()?;
        let failed =
            |error| Failure::without_effect(Fault::Local, format!("{}: {error}", local.path.display()));
        let file = local.open().map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let (name, content) = (encode(&local.name, true), Content::File(&file));
        if let Some(part_bytes) = part_bytes {
            return self.upload(task, name.as_bytes(), content, bytes, part_bytes, 1).await;
        }
        let request = Request::new("PUT", |out| {
            container_path(task, out);
            out.push(b'/');
            out.extend_from_slice(name.as_bytes());
        });
        let mut body = Body::content(content, 0..bytes);
        let reply = self.send_body(task.now, &request, &mut body, &mut Intake::default()).await?;
        Ok(Done::after(&reply, bytes))
    }

    async fn copy(&mut self, task: &Task<'_>) -> Result<Done, Failure> {
        let mut source = Vec::new();
        object_path(task, &mut source);
        let header: [(&str, &[u8]); 1] = [("X-Copy-From", &source)];
        let request = Request::new("PUT", |out| {
            object_path(task, out);
            out.extend_from_slice(COPY.as_bytes());
        });
        let mut body = Body::bytes(&[]);
        let reply =
            self.send_body(task.now, &request.headers(&header), &mut body, &mut Intake::default()).await?;
        Ok(Done::after(&reply, 0))
    }

    async fn set_metadata(&mut self, task: &Task<'_>) -> Result<Done, Failure> {
        let mut value = Vec::new();
        crate::text::push_hexadecimal(&mut value, task.operation.random);
        let header: [(&str, &[u8]); 1] = [("X-Object-Meta-Tidemark", &value)];
        let request = Request::new("POST", |out| object_path(task, out)).headers(&header);
        let reply = self.send_body(task.now, &request, &mut Body::bytes(&[]), &mut Intake::default()).await?;
        Ok(Done::after(&reply, 0))
    }
}
