//! A bucket for callers on other threads, such as a query engine's: requests through this engine's own client.
//!
//! Each connection is a thread with a reactor of its own, which takes requests from one queue. So as many requests are on their way
//! as there are connections, a server that does not answer holds up its own connections only, and callers wait as they like.

use super::encryption::Concern;
use super::request::{Request, Sender as Requests};
use super::{Slot, refusal, resolve, xml};
use crate::client::{Client, Content, Retry};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::http::{Head, Sink};
use crate::job::{Keeps, S3};
use crate::operate::Intake;
use crate::secrets::Mask;
use crate::text::{decode, encode};
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tidemark_load::engine::{Clock, OpenError};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{EndpointKind, EndpointUse};
use tidemark_reactor::Reactor;
use tokio::sync::oneshot;

/// Keys that a page of a listing has at most, by the protocol.
const PAGE: u32 = 1000;

/// A bucket of an S3 server. Its threads end with it.
#[derive(Debug)]
pub struct Store {
    jobs: Sender<Job>,
    counts: Arc<[Mutex<EndpointUse>]>,
}

/// What is asked of a bucket. Keys and tags are as they are, not encoded.
#[derive(Clone, Debug)]
pub enum Ask {
    /// The content of an object, or a part of it.
    Get(String, Option<Part>),
    /// Its size and tag.
    Head(String),
    /// A new object.
    Put(String, Bytes, Only),
    /// A new upload in parts: gives its id as [`Served::id`].
    Begin(String),
    /// A part of an upload, by its number from 1: gives its tag.
    Part {
        /// The object's key.
        key: String,
        /// The upload's id.
        upload: String,
        /// The part's number.
        number: u32,
        /// Its content.
        content: Bytes,
    },
    /// An object made of the parts of an upload, given their tags.
    Complete {
        /// The object's key.
        key: String,
        /// The upload's id.
        upload: String,
        /// The tags of its parts, in order.
        tags: Vec<String>,
    },
    /// An upload given up.
    Abort(String, String),
    /// An object deleted; one that is not there is a success.
    Delete(String),
    /// A page of what begins with a prefix, after the page that gave this [`Served::id`].
    List(String, Option<String>),
    /// The bucket made; one that is ours is a success.
    Create,
}

/// A part of an object.
#[derive(Clone, Debug)]
pub enum Part {
    /// These bytes.
    Range(Range<u64>),
    /// All from this byte on.
    From(u64),
    /// So many at its end.
    Last(u64),
}

/// When an object is written.
#[derive(Clone, Debug, Default)]
pub enum Only {
    /// In any case.
    #[default]
    Always,
    /// If there is no object of this key.
    IfAbsent,
    /// If the object has this tag.
    IfMatch(String),
}

/// What a request brought.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// The content.
    pub bytes: Bytes,
    /// The byte of the object that it begins with.
    pub from: u64,
    /// Bytes of the whole object.
    pub size: u64,
    /// The object's tag, as the server writes it.
    pub tag: Option<String>,
    /// Keys and sizes of a listing.
    pub objects: Vec<(String, u64)>,
    /// The id of an upload, or what the next page begins after.
    pub id: Option<String>,
    /// The endpoint that served it, by its number.
    pub endpoint: usize,
    /// From the first attempt to the last byte, nanoseconds.
    pub took_ns: u64,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct StoreError {
    /// The class.
    pub fault: Fault,
    /// What happened, where; never a secret.
    pub words: String,
}

struct Job {
    ask: Ask,
    answer: oneshot::Sender<Result<Served, StoreError>>,
}

impl Store {
    /// Opens so many connections to a bucket, spread evenly over the target's endpoints. Nothing is sent yet.
    ///
    /// # Errors
    /// When an endpoint cannot be resolved, or no thread can be started.
    pub fn open(target: &S3, bucket: &str, connections: u32) -> Result<Self, OpenError> {
        let endpoints = resolve(target)?;
        let target = Arc::new(target.clone());
        let counts: Arc<[_]> = endpoints.iter().map(|endpoint| Mutex::new(unused(endpoint.url()))).collect();
        let (jobs, queue) = unbounded();
        for number in 0..connections.max(1) as usize {
            let place = number % endpoints.len();
            let connection = Connection {
                target: Arc::clone(&target),
                endpoint: Arc::clone(&endpoints[place]),
                place,
                bucket: encode(bucket, false),
                counts: Arc::clone(&counts),
            };
            let queue = queue.clone();
            let thread = std::thread::Builder::new().name(format!("s3-{number}"));
            let started = thread.spawn(move || connection.serve(&queue));
            started.map_err(|error| OpenError(format!("cannot start a thread for a connection: {error}")))?;
        }
        Ok(Self { jobs, counts })
    }

    /// Sends a request, and waits for what it brings.
    ///
    /// # Errors
    /// Why it brought nothing.
    pub async fn ask(&self, ask: Ask) -> Result<Served, StoreError> {
        let gone = || StoreError {
            fault: Fault::Local,
            words: "there is no connection to the store any more".into(),
        };
        let (answer, answered) = oneshot::channel();
        self.jobs.send(Job { ask, answer }).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// The addresses of its endpoints.
    pub fn endpoints(&self) -> Vec<String> {
        self.counts.iter().map(|count| lock(count).endpoint.clone()).collect()
    }

    /// What the requests that ended since the last call did at each of its endpoints. Each is counted once, however often it was tried,
    /// and its bytes are of content, both ways.
    pub fn take(&self) -> Vec<EndpointUse> {
        let taken = |count: &Mutex<EndpointUse>| {
            let mut own = lock(count);
            let anew = unused(own.endpoint.clone());
            std::mem::replace(&mut *own, anew)
        };
        self.counts.iter().map(taken).collect()
    }
}

fn unused(endpoint: String) -> EndpointUse {
    EndpointUse { endpoint, kind: EndpointKind::Shared, ..EndpointUse::default() }
}

fn lock(count: &Mutex<EndpointUse>) -> std::sync::MutexGuard<'_, EndpointUse> {
    count.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection: what its thread needs.
struct Connection {
    target: Arc<S3>,
    endpoint: Arc<Endpoint>,
    place: usize,
    bucket: String,
    counts: Arc<[Mutex<EndpointUse>]>,
}

impl Connection {
    /// Does what is asked, one after the other, until nobody can ask any more.
    fn serve(&self, queue: &Receiver<Job>) {
        let clock = Clock::starting_at(Instant::now());
        let opened = Reactor::new(clock, self.target.http.timeout_ns)
            .and_then(|reactor| Ok((Rc::new(Requests::new(&self.target, &reactor)?), reactor)));
        let mask = self.target.mask();
        let (sender, reactor) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                for job in queue {
                    let error = StoreError { fault: Fault::Local, words: error.to_string() };
                    let _ = job.answer.send(Err(error));
                }
                return;
            }
        };
        let client = Client::new(&reactor, &self.endpoint, &self.target.http);
        let mut slot = Slot::new(sender, client);
        for Job { ask, answer } in queue {
            // Whoever has stopped waiting needs nothing any more.
            if !answer.is_closed() {
                let began = reactor.now();
                let served = reactor.block_on(slot.tried(&self.bucket, &ask));
                let took_ns = reactor.now() - began;
                let _ = answer.send(self.told(&ask, served, took_ns, &mask));
            }
        }
    }

    fn told(
        &self,
        ask: &Ask,
        served: Result<Served, Failure>,
        took_ns: u64,
        mask: &Mask,
    ) -> Result<Served, StoreError> {
        let mut own = lock(&self.counts[self.place]);
        match &served {
            // That there is no such object, or that a condition does not hold, is an answer, too.
            Err(failure) if !matches!(failure.fault, Fault::NotFound | Fault::Precondition) => {
                own.faults.count(failure.fault);
            }
            answered => {
                own.ok += 1;
                own.bytes += answered.as_ref().map_or(0, |served| served.bytes.len() as u64 + ask.sent());
                own.response.record(took_ns);
            }
        }
        drop(own);
        match served {
            Ok(served) => Ok(Served { endpoint: self.place, took_ns, ..served }),
            Err(failure) => {
                let what = ask.describe(&decode(self.bucket.as_bytes()));
                let words = format!("{what} at {}: {}", self.endpoint.url(), failure.text);
                Err(StoreError { fault: failure.fault, words: mask.apply(words).into_owned() })
            }
        }
    }
}

impl Ask {
    /// Bytes of content that it sends.
    fn sent(&self) -> u64 {
        match self {
            Ask::Put(_, content, _) | Ask::Part { content, .. } => content.len() as u64,
            _ => 0,
        }
    }

    /// In the words of failures.
    fn describe(&self, bucket: &str) -> String {
        let (verb, key) = match self {
            Ask::Get(key, None) => ("get", key),
            Ask::Get(key, Some(_)) => ("get range of", key),
            Ask::Head(key) => ("head", key),
            Ask::Put(key, ..) => ("put", key),
            Ask::Begin(key) => ("begin upload of", key),
            Ask::Part { key, .. } => ("put part of", key),
            Ask::Complete { key, .. } => ("complete upload of", key),
            Ask::Abort(key, _) => ("abort upload of", key),
            Ask::Delete(key) => ("delete", key),
            Ask::List(prefix, _) => ("list", prefix),
            Ask::Create => return format!("create bucket {bucket}"),
        };
        format!("{verb} {bucket}/{key}")
    }

    /// Whether it may be sent again although the first time may have had an effect.
    fn is_repeatable(&self) -> bool {
        match self {
            Ask::Put(_, _, only) => matches!(only, Only::Always),
            // The upload may be complete by now, and its id gone.
            Ask::Complete { .. } => false,
            _ => true,
        }
    }
}

/// Takes a reply in.
#[derive(Default)]
struct Reception {
    success: bool,
    /// The body of a success, or the beginning of a refusal's.
    body: Vec<u8>,
    tag: Option<String>,
    length: Option<u64>,
    range: Option<String>,
}

/// Bytes of a refusal that are kept.
const REFUSAL: usize = 16 << 10;

/// More is not made room for before it comes: a length is the server's word.
const RESERVED: u64 = 64 << 20;

impl Sink for Reception {
    fn head(&mut self, head: &Head<'_>) {
        self.success = (200..300).contains(&head.status);
        self.tag = head.get("etag").map(str::to_owned);
        self.range = head.get("content-range").map(str::to_owned);
        self.length = head.get("content-length").and_then(|length| length.parse().ok());
        if let (true, Some(length)) = (self.success, self.length) {
            self.body.reserve(length.min(RESERVED) as usize);
        }
    }

    fn body(&mut self, piece: &[u8]) {
        let room = if self.success { piece.len() } else { REFUSAL.saturating_sub(self.body.len()) };
        self.body.extend_from_slice(&piece[..piece.len().min(room)]);
    }
}

/// The first byte of a part and the size of the whole, as `bytes 0-9/100` says them.
fn content_range(text: &str) -> Option<(u64, u64)> {
    let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.trim().parse().ok()?, size.trim().parse().ok()?))
}

impl Slot {
    /// Does what is asked, as often as the target's settings allow.
    async fn tried(&mut self, bucket: &str, ask: &Ask) -> Result<Served, Failure> {
        let mut retry = Retry::new(&self.sender.target().http);
        let reactor = Rc::clone(self.clients[0].reactor());
        loop {
            match self.asked(bucket, ask).await {
                Err(failure)
                    if (ask.is_repeatable() || !failure.in_doubt)
                        && retry.again(&failure, &reactor).await => {}
                served => return served,
            }
        }
    }

    async fn asked(&mut self, bucket: &str, ask: &Ask) -> Result<Served, Failure> {
        self.address.begin(&self.sender, &self.clients[0], |out| out.extend_from_slice(bucket.as_bytes()));
        match ask {
            Ask::Get(key, part) => self.content(key, part.as_ref()).await,
            Ask::Head(key) => {
                let got = self.received(key, Request::head().that(Concern::Reads)).await?;
                Ok(Served { size: got.length.unwrap_or(0), tag: got.tag, ..Served::default() })
            }
            Ask::Put(key, content, only) => {
                let condition: [(&str, &[u8]); 1] = match only {
                    Only::Always => [("", b"")],
                    Only::IfAbsent => [("If-None-Match", b"*")],
                    Only::IfMatch(tag) => [("If-Match", tag.as_bytes())],
                };
                let condition = if matches!(only, Only::Always) { &[][..] } else { &condition[..] };
                let request = Request::put(Content::Bytes(content), 0..content.len() as u64);
                let got = self.received(key, request.that(Concern::Writes).plain(condition)).await?;
                Ok(Served { tag: got.tag, ..Served::default() })
            }
            Ask::Begin(key) => {
                let request = Request::post(Content::Bytes(&[]), 0..0).query(b"uploads=");
                let got = self.received(key, request.that(Concern::Writes)).await?;
                let id = xml::text_of(&got.body, "UploadId").filter(|id| !id.is_empty());
                let id = id.ok_or_else(|| in_doubt("the reply to a new upload has no UploadId"))?;
                Ok(Served { id: Some(id), ..Served::default() })
            }
            Ask::Part { key, upload, number, content } => {
                let query = format!("partNumber={number}&uploadId={}", encode(upload, false));
                let request = Request::put(Content::Bytes(content), 0..content.len() as u64);
                let got =
                    self.received(key, request.query(query.as_bytes()).that(Concern::Continues)).await?;
                let tag = got.tag.ok_or_else(|| in_doubt("the reply to a part has no ETag"))?;
                Ok(Served { tag: Some(tag), ..Served::default() })
            }
            Ask::Complete { key, upload, tags } => {
                let document = xml::completion(tags);
                let query = format!("uploadId={}", encode(upload, false));
                let content = Content::Bytes(document.as_bytes());
                let request = Request::post(content, 0..document.len() as u64).query(query.as_bytes());
                let got = self.received(key, request).await?;
                refusal::hidden(&got.body)?;
                Ok(Served { tag: xml::text_of(&got.body, "ETag"), ..Served::default() })
            }
            Ask::Abort(key, upload) => {
                let query = format!("uploadId={}", encode(upload, false));
                self.received(key, Request::delete().query(query.as_bytes())).await.map(|_| Served::default())
            }
            Ask::Delete(key) => match self.received(key, Request::delete()).await {
                Err(failure) if failure.fault == Fault::NotFound => Ok(Served::default()),
                deleted => deleted.map(|_| Served::default()),
            },
            Ask::List(prefix, after) => {
                let query = super::buckets::listing(&encode(prefix, false), PAGE, after.as_deref());
                let mut intake = Intake::keeping();
                self.request(&Request::get().query(query.as_bytes()), &mut intake).await?;
                let objects =
                    xml::objects(&intake.body).ok_or_else(|| in_doubt("the listing is not valid XML"))?;
                Ok(Served { objects, id: xml::next_page(&intake.body), ..Served::default() })
            }
            Ask::Create => self.make_bucket(Keeps::Latest).await.map(|_| Served::default()),
        }
    }

    async fn content(&mut self, key: &str, part: Option<&Part>) -> Result<Served, Failure> {
        let text = match part {
            None => String::new(),
            Some(Part::Range(range)) => format!("bytes={}-{}", range.start, range.end.saturating_sub(1)),
            Some(Part::From(first)) => format!("bytes={first}-"),
            Some(Part::Last(bytes)) => format!("bytes=-{bytes}"),
        };
        let range: [(&str, &[u8]); 1] = [("Range", text.as_bytes())];
        let range = if part.is_some() { &range[..] } else { &[] };
        let (status, got) = self.replied(key, Request::get().that(Concern::Reads).plain(range)).await?;
        let length = got.body.len() as u64;
        let (from, size) = match part {
            None => (0, length),
            Some(_) if status != 206 => {
                let text = format!("{status} instead of 206: the server ignored the range");
                return Err(Failure::without_effect(Fault::Protocol, text));
            }
            Some(_) => {
                let told = got.range.as_deref().and_then(content_range);
                told.ok_or_else(|| in_doubt("the reply to a range does not say which it is"))?
            }
        };
        if let Some(Part::Range(wanted)) = part {
            // An object may end before a range does.
            let whole = wanted.end.min(size).saturating_sub(wanted.start);
            if from != wanted.start || length != whole {
                let text = format!("{length} bytes from {from} came of the {whole} from {}", wanted.start);
                return Err(Failure::without_effect(Fault::ShortTransfer, text));
            }
        }
        Ok(Served { bytes: got.body.into(), from, size, tag: got.tag, ..Served::default() })
    }

    async fn received(&mut self, key: &str, request: Request<'_>) -> Result<Reception, Failure> {
        self.replied(key, request).await.map(|(_, got)| got)
    }

    /// Sends a request on an object, and takes all of its reply, which must be a success; gives its status, too.
    async fn replied(&mut self, key: &str, request: Request<'_>) -> Result<(u16, Reception), Failure> {
        let key = encode(key, true);
        self.address.object(|out| out.extend_from_slice(key.as_bytes()));
        let (mut got, now) = (Reception::default(), self.sender.now());
        let client = &mut self.clients[0];
        let reply = self.sender.confirmed(client, &self.address, &request, &mut got, now).await?;
        match reply.status {
            status @ 200..300 => Ok((status, got)),
            status => Err(refusal::failure(status, &got.body)),
        }
    }
}

fn in_doubt(text: &'static str) -> Failure {
    Failure::in_doubt(Fault::Protocol, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Http;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    /// Gateways close connections on which nothing comes for a while.
    #[test]
    fn a_connection_that_was_closed_while_nothing_was_asked_is_made_anew() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = S3 {
            http: Http {
                endpoints: vec![format!("http://{}", listener.local_addr().unwrap())],
                ..Http::default()
            },
            access_key: "a".into(),
            secret_key: "b".into(),
            session_token: None,
            region: "us-east-1".into(),
            path_style: true,
            sign_payload: false,
            storage_class: None,
            encryption: None,
        };
        let ((close, closes), (closed, is_closed)) = (unbounded(), unbounded());
        let server = std::thread::spawn(move || {
            for _ in 0..3 {
                let (mut peer, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    peer.read_exact(&mut byte).unwrap();
                    request.extend(byte);
                }
                peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
                closes.recv().unwrap();
                drop(peer);
                closed.send(()).unwrap();
            }
        });
        let store = Store::open(&target, "lake", 1).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for _ in 0..3 {
            runtime.block_on(store.ask(Ask::Delete("x".into()))).unwrap();
            close.send(()).unwrap();
            is_closed.recv().unwrap();
        }
        server.join().unwrap();
    }

    #[test]
    fn a_part_says_where_it_is_from() {
        assert_eq!(content_range("bytes 5-9/100"), Some((5, 100)));
        for wrong in ["bytes */100", "5-9/100", "bytes 5-9/*", ""] {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }
}
