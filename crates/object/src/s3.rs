//! Amazon S3 and what speaks its protocol.
//!
//! One attempt at an operation is one request, or as many as the verb takes; what comes before and after
//! it (content, retries, verification, the words of failures) is in [`crate::operate`].
//!
//! - Connections go to the endpoints' addresses, in virtual-host style too: the bucket is in the `Host` header
//!   alone, and TLS verifies the endpoint's certificate.
//! - `empty` deletes a bucket's objects with all their versions, and aborts its multipart uploads.
//! - `chunked` sends signed chunks of 64 KiB (`STREAMING-AWS4-HMAC-SHA256-PAYLOAD`, the form that every server
//!   knows); empty objects are sent whole.
//! - With SSE-C every request on an object's content brings the key along. Tags, deletions and listings need none.
//! - Without an access key nothing is signed, and `chunked` makes no difference.

mod buckets;
mod encryption;
mod request;
pub(crate) mod store;
mod uploads;
mod versions;
mod xml;

pub(crate) mod preflight;
mod refusal;

use crate::client::{Client, Content, Reply};
use crate::content::{COPY, DataSet};
use crate::emptying::Limits;
use crate::endpoint::{Endpoint, Resolver};
use crate::failure::Failure;
use crate::job::{Action, Encryption, S3, Verb};
use crate::operate::{Done, Intake, Prepared, Protocol, Task, serve};
use crate::text::{encode, push_decimal};
use encryption::Concern;
use request::{Address, Request, Sender};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tidemark_load::endpoints::endpoint_of;
use tidemark_load::engine::{OpenError, Session, Sessions, ThreadContext};
use tidemark_measure::fault::Fault;
use tidemark_reactor::Examples;
use tidemark_reactor::Reactor;
use tidemark_reactor::{Slots, Spawn};

/// The engine of a work on S3.
pub(crate) struct S3Engine {
    target: Arc<S3>,
    endpoints: Vec<Arc<Endpoint>>,
    actions: Arc<[Prepared]>,
}

impl S3Engine {
    /// An engine for these actions; the endpoints are looked up now.
    ///
    /// # Errors
    /// When an endpoint cannot be resolved, or files to upload cannot be listed.
    pub(crate) fn new(target: &S3, actions: &[Action], data: &Arc<DataSet>) -> Result<Self, OpenError> {
        Ok(Self {
            endpoints: resolve(target)?,
            actions: Prepared::all(actions, data)?,
            target: Arc::new(target.clone()),
        })
    }
}

/// Checks what goes into headers, and looks the endpoints of a target up.
pub(crate) fn resolve(target: &S3) -> Result<Vec<Arc<Endpoint>>, OpenError> {
    let token = target.session_token.as_ref().map_or("", |token| token.reveal());
    let class = target.storage_class.as_deref().unwrap_or("");
    let kms_key = match &target.encryption {
        Some(Encryption::Kms { key_id }) => key_id.as_deref().unwrap_or(""),
        _ => "",
    };
    let texts = [
        ("access key", target.access_key.reveal()),
        ("session token", token),
        ("region", target.region.as_str()),
        ("storage class", class),
        ("id of the KMS key", kms_key),
    ];
    if let Some((what, _)) = texts.iter().find(|(_, text)| !text.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        return Err(OpenError(format!(
            "the {what} contains a space, a line break or a non-ASCII character: check how it was copied"
        )));
    }
    if !target.access_key.is_empty() && target.secret_key.is_empty() {
        return Err(OpenError("the access key has no secret key: set both, or neither".into()));
    }
    let resolver = Resolver::new(&target.http);
    let endpoints = target.http.endpoints.iter().map(|text| resolver.resolve(text));
    let endpoints = endpoints.collect::<Result<Vec<_>, _>>()?;
    if endpoints.is_empty() {
        return Err(OpenError(
            "no endpoint is set: add the server's URL, such as http://127.0.0.1:9000".into(),
        ));
    }
    Ok(endpoints)
}

/// A slot for each endpoint of a target, with its address: for what is asked before the load.
pub(crate) fn slots(target: &Arc<S3>, reactor: &Rc<Reactor>) -> Result<Vec<(String, Slot)>, OpenError> {
    let sender = Rc::new(Sender::new(target, reactor)?);
    let slot = |endpoint: &Arc<Endpoint>| {
        let client = Client::new(reactor, endpoint, &target.http);
        (endpoint.url(), Slot::new(Rc::clone(&sender), client))
    };
    Ok(resolve(target)?.iter().map(slot).collect())
}

impl Sessions for S3Engine {
    fn open(&self, thread: ThreadContext) -> Result<Box<dyn Session>, OpenError> {
        let reactor = Reactor::new(thread.clock, self.target.http.timeout_ns)?;
        let examples = Rc::new(Examples::default());
        let sender = Rc::new(Sender::new(&self.target, &reactor)?);
        let (actions, endpoints, target) =
            (Arc::clone(&self.actions), self.endpoints.clone(), Arc::clone(&self.target));
        let (own_reactor, own_examples) = (Rc::clone(&reactor), Rc::clone(&examples));
        let spawn: Spawn = Box::new(move |slot, mailbox| {
            let endpoint = &endpoints[endpoint_of(thread.first_slot, slot, endpoints.len())];
            let client = Client::new(&own_reactor, endpoint, &target.http);
            let protocol = Slot::new(Rc::clone(&sender), client);
            let (reactor, examples) = (Rc::clone(&own_reactor), Rc::clone(&own_examples));
            Box::pin(serve(protocol, Arc::clone(&actions), target.http.clone(), mailbox, reactor, examples))
        });
        Ok(Box::new(Slots::new(&reactor, &examples, thread.slots, spawn)))
    }

    fn endpoints(&self) -> Vec<String> {
        self.endpoints.iter().map(|endpoint| endpoint.url()).collect()
    }
}

/// One slot: its connections, and its requests on them.
pub(crate) struct Slot {
    sender: Rc<Sender>,
    /// The first is the slot's own; the others are made for parts sent in parallel, and kept.
    clients: Vec<Client>,
    address: Address,
    /// A header's value: kept for its memory.
    value: Vec<u8>,
    /// How far the emptying of a bucket may go.
    limits: Limits,
}

impl Protocol for Slot {
    fn masked(&self, words: String) -> String {
        self.sender.target().mask().apply(words).into_owned()
    }

    #[inline]
    async fn attempt(&mut self, task: &Task<'_>) -> Result<Done, Failure> {
        let (container, item) = (task.operation.space, task.operation.item);
        let names = &task.action.names;
        self.address.begin(&self.sender, &self.clients[0], |name| names.push_container(name, container));
        if !matches!(
            task.action.verb,
            Verb::CreateContainer { .. }
                | Verb::DeleteContainer { .. }
                | Verb::DeleteMany { .. }
                | Verb::List { .. }
                | Verb::PutFile { .. }
        ) {
            self.address.object(|name| names.push_object(name, item));
        }
        match &task.action.verb {
            Verb::Get | Verb::GetRange { .. } => self.get(task).await,
            Verb::Put { chunked, if_absent } => self.put(task, *chunked, *if_absent).await,
            Verb::Head => self.plain(task, Request::head().that(Concern::Reads)).await,
            Verb::Clear { versions: true } => Box::pin(self.clear_versions(task)).await,
            Verb::Delete | Verb::Clear { .. } => self.plain(task, Request::delete()).await,
            // What takes many requests lives in memory of its own while it lasts: slots stay small.
            Verb::PutMultipart { part_bytes, parallel } => {
                let payload = task.payload();
                let bytes = task.operation.bytes;
                Box::pin(self.upload(task, Content::Payload(&payload), bytes, *part_bytes, *parallel)).await
            }
            Verb::PutFile { part_bytes, .. } => Box::pin(self.put_file(task, *part_bytes)).await,
            Verb::CreateContainer { keeps } => Box::pin(self.make_bucket(*keeps)).await,
            Verb::DeleteContainer { empty } => Box::pin(self.delete_bucket(task, empty)).await,
            Verb::DeleteMany { count } => Box::pin(self.delete_numbered(task, *count)).await,
            Verb::Copy => Box::pin(self.copy(task)).await,
            Verb::List { page, all, by_object } => Box::pin(self.list(task, *page, *all, *by_object)).await,
            Verb::PutTags => Box::pin(self.put_tags(task)).await,
            Verb::GetTags => {
                let mut intake = Intake::default();
                let reply = self.send(task, &Request::get().query(b"tagging="), &mut intake).await?;
                Ok(Done::reading(&reply))
            }
            Verb::PutRetention { mode, validity_s } => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
                let document = xml::retention(*mode, now.saturating_add(*validity_s));
                Box::pin(self.post_document(task, Request::put, b"retention=", &document)).await
            }
            Verb::GetRetention => {
                let mut intake = Intake::default();
                let reply = self.send(task, &Request::get().query(b"retention="), &mut intake).await?;
                Ok(Done::reading(&reply))
            }
            Verb::Restore { days } => Box::pin(self.restore(task, *days)).await,
            Verb::WriteLocal { .. } => {
                Err(Failure::without_effect(Fault::Local, "local files are not written over the network"))
            }
        }
    }
}

impl Slot {
    pub(crate) fn new(sender: Rc<Sender>, client: Client) -> Self {
        Self {
            sender,
            clients: vec![client],
            address: Address::default(),
            value: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// Sends one request on the slot's own connection.
    #[inline]
    async fn send(
        &mut self,
        task: &Task<'_>,
        request: &Request<'_>,
        intake: &mut Intake<'_>,
    ) -> Result<Reply, Failure> {
        self.sender.send(&mut self.clients[0], &self.address, request, intake, task.now).await
    }

    /// A request whose reply matters for its status alone.
    #[inline]
    async fn plain(&mut self, task: &Task<'_>, request: Request<'_>) -> Result<Done, Failure> {
        let reply = self.send(task, &request, &mut Intake::default()).await?;
        Ok(Done::after(&reply, 0))
    }

    #[inline]
    async fn get(&mut self, task: &Task<'_>) -> Result<Done, Failure> {
        let mut intake = task.reading();
        let Some(range) = task.range() else {
            let reply = self.send(task, &Request::get().that(Concern::Reads), &mut intake).await?;
            let checked = intake.verify()?;
            return Ok(Done::reading(&reply).checked(checked));
        };
        self.value.clear();
        self.value.extend_from_slice(b"bytes=");
        push_decimal(&mut self.value, range.start);
        self.value.push(b'-');
        push_decimal(&mut self.value, range.end.saturating_sub(1));
        let header: [(&str, &[u8]); 1] = [("Range", &self.value)];
        let request = Request::get().that(Concern::Reads).plain(&header);
        let client = &mut self.clients[0];
        let reply = self.sender.send(client, &self.address, &request, &mut intake, task.now).await?;
        let wanted = range.end - range.start;
        if reply.status != 206 {
            let text = format!("{} instead of 206: the server ignored the range", reply.status);
            return Err(Failure::without_effect(Fault::Protocol, text));
        }
        let checked = intake.verify()?;
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
        let content = Content::Payload(&payload);
        let condition: [(&str, &[u8]); 1] = [("If-None-Match", b"*")];
        let request = Request::put(content, 0..payload.size()).that(Concern::Writes);
        let request = request.plain(if if_absent { &condition } else { &[] });
        let request = if chunked { request.in_chunks() } else { request };
        let reply = self.send(task, &request, &mut Intake::default()).await?;
        Ok(Done::after(&reply, payload.size()))
    }

    async fn put_file(&mut self, task: &Task<'_>, part_bytes: Option<u64>) -> Result<Done, Failure> {
        let local = task.file()?;
        let failed =
            |error| Failure::without_effect(Fault::Local, format!("{}: {error}", local.path.display()));
        let file = local.open().map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let name = encode(&local.name, true);
        self.address.object(|out| out.extend_from_slice(name.as_bytes()));
        let content = Content::File(&file);
        match part_bytes {
            Some(part_bytes) => self.upload(task, content, bytes, part_bytes, 1).await,
            None => {
                let request = Request::put(content, 0..bytes).that(Concern::Writes);
                let reply = self.send(task, &request, &mut Intake::default()).await?;
                Ok(Done::after(&reply, bytes))
            }
        }
    }

    async fn copy(&mut self, task: &Task<'_>) -> Result<Done, Failure> {
        let names = &task.action.names;
        let mut source = b"/".to_vec();
        names.push_container(&mut source, task.operation.space);
        source.push(b'/');
        names.push_object(&mut source, task.operation.item);
        self.address.object(|name| {
            names.push_object(name, task.operation.item);
            name.extend_from_slice(COPY.as_bytes());
        });
        let header: [(&str, &[u8]); 1] = [("x-amz-copy-source", &source)];
        let request = Request::put(Content::Bytes(&[]), 0..0).signed(&header).that(Concern::Copies);
        let mut intake = Intake::keeping();
        let reply = self.send(task, &request, &mut intake).await?;
        refusal::hidden(&intake.body)?;
        Ok(Done::after(&reply, 0))
    }

    async fn put_tags(&mut self, task: &Task<'_>) -> Result<Done, Failure> {
        let document = xml::tags(task.operation.random);
        self.post_document(task, Request::put, b"tagging=", &document).await
    }

    async fn restore(&mut self, task: &Task<'_>, days: u32) -> Result<Done, Failure> {
        self.post_document(task, Request::post, b"restore=", &xml::restore(days)).await
    }

    async fn post_document<'d>(
        &mut self,
        task: &Task<'_>,
        method: impl Fn(Content<'d>, std::ops::Range<u64>) -> Request<'d>,
        query: &'d [u8],
        document: &'d str,
    ) -> Result<Done, Failure> {
        let digest = request::content_md5(document);
        let header: [(&str, &[u8]); 1] = [("Content-MD5", digest.as_bytes())];
        let content = Content::Bytes(document.as_bytes());
        let request = method(content, 0..document.len() as u64).query(query).plain(&header);
        let reply = self.send(task, &request, &mut Intake::default()).await?;
        Ok(Done::after(&reply, 0))
    }
}
