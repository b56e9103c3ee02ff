//! One slot's HTTP/1.1 client: a connection that is kept, requests on it one after the other.
//!
//! An exchange is two steps, so that a request is written only once its connection exists:
//!
//! ```text
//! let head = client.connect(now).await?;          // an empty buffer
//! head.extend_from_slice(b"GET / HTTP/1.1\r\nHost: example.org\r\n");
//! let reply = client.exchange(&mut Body::none(), Answer::Whole, &mut sink).await?;
//! ```
//!
//! The client adds the header lines that belong to the connection and to the body's framing. A server that
//! closed an idle connection is noticed before the next request is sent, and that one goes over a new
//! connection; when the close crosses the request on its way, the request fails as `Reset`.
//!
//! After a connection was refused or could not be routed, the next attempt on the slot waits 100 ms, inside its
//! operation: a dead server is a failure of every operation, not of a million in every second.

use crate::content::{Payload, Window};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::http::{Decoder, Head, Malformed, Sink};
use crate::job::Http;
use crate::text::push_decimal;
use std::fs::File;
use std::io::IoSlice;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;
use std::sync::Arc;
use tidemark_load::engine::Tick;
use tidemark_measure::fault::Fault;
use tidemark_reactor::{Broken, Transport};
use tidemark_reactor::{Reactor, Ready};

/// How long a slot waits to connect again after it could not.
pub(crate) const RECONNECT_NS: u64 = 100_000_000;

/// Bytes of a chunk where a body is sent in chunks.
pub(crate) const CHUNK: u64 = 64 << 10;

/// The bytes of a body, wherever they are.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    /// In memory.
    Bytes(&'a [u8]),
    /// Those of a generated object.
    Payload(&'a Payload<'a>),
    /// In a file.
    File(&'a File),
}

impl Content<'_> {
    /// Calls `visit` with every piece of a range, in order: for digests.
    ///
    /// # Errors
    /// When a file cannot be read or is too short.
    pub(crate) fn each(&self, range: Range<u64>, mut visit: impl FnMut(&[u8])) -> std::io::Result<()> {
        match self {
            Content::Bytes(bytes) => visit(&bytes[range.start as usize..range.end as usize]),
            Content::Payload(payload) => {
                let Ok(()) = payload.each(range, |piece| {
                    visit(piece);
                    Ok::<(), std::convert::Infallible>(())
                });
            }
            Content::File(file) => {
                let mut buffer = vec![0; CHUNK as usize];
                let mut at = range.start;
                while at < range.end {
                    let length = (range.end - at).min(CHUNK) as usize;
                    file.read_exact_at(&mut buffer[..length], at)?;
                    visit(&buffer[..length]);
                    at += length as u64;
                }
            }
        }
        Ok(())
    }
}

/// Cuts a body into chunks.
pub(crate) trait Chunker {
    /// Bytes on the wire of a body of `size` bytes; `None`: not announced (`Transfer-Encoding: chunked`).
    fn wire_length(&self, size: u64) -> Option<u64>;

    /// Appends the line that opens a chunk; the last one is empty.
    ///
    /// # Errors
    /// When the content cannot be read.
    fn open(&mut self, content: &Content<'_>, chunk: Range<u64>, out: &mut Vec<u8>) -> std::io::Result<()>;
}

/// The chunks of HTTP itself.
pub(crate) struct PlainChunks;

impl Chunker for PlainChunks {
    fn wire_length(&self, _size: u64) -> Option<u64> {
        None
    }

    fn open(&mut self, _content: &Content<'_>, chunk: Range<u64>, out: &mut Vec<u8>) -> std::io::Result<()> {
        crate::text::push_hexadecimal(out, chunk.end - chunk.start);
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

/// The body of a request.
pub(crate) struct Body<'a> {
    content: Content<'a>,
    range: Range<u64>,
    framing: Framing<'a>,
}

enum Framing<'a> {
    /// There is no body, and no header for one.
    None,
    /// `Content-Length`.
    Length,
    Chunks(&'a mut dyn Chunker),
}

impl<'a> Body<'a> {
    /// No body: for methods that have none.
    pub(crate) fn none() -> Self {
        Self { content: Content::Bytes(&[]), range: 0..0, framing: Framing::None }
    }

    /// Bytes, perhaps none: the length is announced even so.
    pub(crate) fn bytes(bytes: &'a [u8]) -> Self {
        Self::content(Content::Bytes(bytes), 0..bytes.len() as u64)
    }

    /// A range of any content.
    pub(crate) fn content(content: Content<'a>, range: Range<u64>) -> Self {
        Self { content, range, framing: Framing::Length }
    }

    /// The same in chunks.
    pub(crate) fn chunked(self, chunker: &'a mut dyn Chunker) -> Self {
        Self { framing: Framing::Chunks(chunker), ..self }
    }

    /// Appends the header lines about it.
    #[inline]
    fn describe(&self, out: &mut Vec<u8>) {
        let size = self.range.end - self.range.start;
        let length = match &self.framing {
            Framing::None => return,
            Framing::Length => Some(size),
            Framing::Chunks(chunker) => chunker.wire_length(size),
        };
        match length {
            Some(length) => {
                out.extend_from_slice(b"Content-Length: ");
                push_decimal(out, length);
                out.extend_from_slice(b"\r\n");
            }
            None => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        }
    }
}

/// What the reply to a request consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A head and a body.
    Whole,
    /// A head alone, whatever its headers: the request was a HEAD.
    HeadOnly,
}

/// A reply that was whole, whatever its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The status.
    pub status: u16,
    /// Bytes of its body.
    pub received: u64,
    /// When the head was whole.
    pub head_at: Tick,
    /// When the first byte of the body came, if there was one.
    pub body_at: Option<Tick>,
    /// When its last byte came.
    pub done: Tick,
}

/// One slot's client.
pub(crate) struct Client {
    reactor: Rc<Reactor>,
    endpoint: Arc<Endpoint>,
    timeout_ns: u64,
    keep_alive: bool,
    connection: Option<Transport>,
    decoder: Decoder,
    /// The head of the request, or what opens the present chunk.
    out: Vec<u8>,
    /// No new connection before this.
    not_before: Tick,
}

impl Client {
    /// A client that has not connected yet.
    pub(crate) fn new(reactor: &Rc<Reactor>, endpoint: &Arc<Endpoint>, http: &Http) -> Self {
        Self {
            reactor: Rc::clone(reactor),
            endpoint: Arc::clone(endpoint),
            timeout_ns: http.timeout_ns,
            keep_alive: !http.no_keep_alive,
            connection: None,
            decoder: Decoder::default(),
            out: Vec::new(),
            not_before: 0,
        }
    }

    /// The thread's reactor.
    pub(crate) fn reactor(&self) -> &Rc<Reactor> {
        &self.reactor
    }

    /// The server.
    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Makes sure that there is a connection, and gives the empty buffer for the request's first lines. The
    /// time allowed counts from `now`.
    ///
    /// # Errors
    /// Why there is none.
    #[inline]
    pub(crate) async fn connect(&mut self, now: Tick) -> Result<&mut Vec<u8>, Failure> {
        let deadline = now.saturating_add(self.timeout_ns);
        if !self.is_usable() {
            self.connection = None;
            self.reconnect(deadline).await?;
        } else if let Some(connection) = &self.connection {
            connection.socket().set_deadline(deadline);
        }
        self.out.clear();
        Ok(&mut self.out)
    }

    /// Whether the connection can take another request: nothing may have come since the last reply.
    #[inline]
    fn is_usable(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        if !connection.socket().is_ready(Ready::READ) {
            return true;
        }
        // TLS has messages of its own, and readiness may be left over: only a read shows.
        connection.receive(&mut [0]).is_err_and(|error| error.would_block())
    }

    /// Makes a new connection to the first of the endpoint's addresses that answers.
    #[cold]
    async fn reconnect(&mut self, mut deadline: Tick) -> Result<(), Failure> {
        if self.reactor.now() < self.not_before {
            self.reactor.sleep_until(self.not_before).await;
            deadline = self.reactor.now().saturating_add(self.timeout_ns);
        }
        let mut failure = Failure::without_effect(Fault::Unreachable, "the endpoint has no address");
        let endpoint = Arc::clone(&self.endpoint);
        for (index, address) in endpoint.addresses() {
            match Transport::connect(&self.reactor, address, endpoint.tls.as_ref(), deadline).await {
                Ok(connection) => {
                    endpoint.answered(index);
                    self.connection = Some(connection);
                    return Ok(());
                }
                Err(error) => failure = Failure::unconnected(&error),
            }
        }
        self.not_before = self.reactor.now() + RECONNECT_NS;
        Err(failure)
    }

    /// Sends the request whose first lines were written, with its body, and takes the reply.
    ///
    /// # Errors
    /// When the reply is not whole; any status is fine.
    #[inline]
    pub(crate) async fn exchange(
        &mut self,
        body: &mut Body<'_>,
        answer: Answer,
        sink: &mut dyn Sink,
    ) -> Result<Reply, Failure> {
        body.describe(&mut self.out);
        self.out.extend_from_slice(if self.keep_alive { b"\r\n" } else { b"Connection: close\r\n\r\n" });
        self.decoder.begin(answer == Answer::HeadOnly);
        let mut watch = Watch::new(sink);
        let sent = self.send(body, &mut watch).await;
        let result = match sent {
            Ok(Sent::All) => self.receive(&mut watch).await,
            Ok(Sent::Stopped) => match self.receive(&mut watch).await {
                Ok(_) if (200..300).contains(&watch.reply.status) => Err(Failure::in_doubt(
                    Fault::Protocol,
                    "the server acknowledged a request before it was complete",
                )),
                received => received.and(Ok(false)),
            },
            // The server may have sent the reason before it closed the connection.
            Err(failure) if failure.fault == Fault::Reset => {
                self.receive(&mut watch).await.and(Ok(false)).map_err(|_| failure)
            }
            Err(failure) => Err(failure),
        };
        match result {
            Ok(reusable) => {
                if !(reusable && self.keep_alive && self.decoder.is_reusable()) {
                    self.connection = None;
                }
                Ok(watch.reply)
            }
            Err(failure) => {
                self.connection = None;
                Err(failure)
            }
        }
    }

    /// Sends the head and the body; stops when the reply's head comes first.
    #[inline]
    async fn send(&mut self, body: &mut Body<'_>, watch: &mut Watch<'_>) -> Result<Sent, Failure> {
        let Range { start, end } = body.range.clone();
        let Framing::Chunks(chunker) = &mut body.framing else {
            return self.send_piece(&body.content, start..end, watch).await;
        };
        let mut at = start;
        loop {
            let chunk = at..end.min(at + CHUNK);
            chunker.open(&body.content, chunk.clone(), &mut self.out).map_err(|error| {
                Failure::in_doubt(Fault::Local, format!("cannot read the content: {error}"))
            })?;
            if chunk.is_empty() {
                self.out.extend_from_slice(b"\r\n");
            }
            if self.send_piece(&body.content, chunk.clone(), watch).await? == Sent::Stopped {
                return Ok(Sent::Stopped);
            }
            if chunk.is_empty() {
                return Ok(Sent::All);
            }
            at = chunk.end;
            self.out.clear();
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// Sends the buffer and a range of the content.
    #[inline]
    async fn send_piece(
        &mut self,
        content: &Content<'_>,
        range: Range<u64>,
        watch: &mut Watch<'_>,
    ) -> Result<Sent, Failure> {
        let total = self.out.len() as u64 + (range.end - range.start);
        let mut sent = 0;
        loop {
            match self.send_some(content, &range, sent) {
                Ok(more) => sent += more,
                Err(Trouble::Content(error)) => {
                    return Err(Failure::in_doubt(Fault::Local, format!("cannot read the content: {error}")));
                }
                Err(Trouble::Connection(error)) if error.would_block() => {
                    if self.room_or_reply(watch).await? == Sent::Stopped {
                        return Ok(Sent::Stopped);
                    }
                }
                Err(Trouble::Connection(error)) => return Err(Failure::broken(&error)),
            }
            if sent == total {
                break;
            }
        }
        while let Some(connection) = &mut self.connection {
            match connection.flush() {
                Ok(()) => break,
                Err(error) if error.would_block() => {
                    if self.room_or_reply(watch).await? == Sent::Stopped {
                        return Ok(Sent::Stopped);
                    }
                }
                Err(error) => return Err(Failure::broken(&error)),
            }
        }
        Ok(Sent::All)
    }

    /// Sends some of what is left after `sent` bytes of the buffer and the content.
    #[inline]
    fn send_some(&mut self, content: &Content<'_>, range: &Range<u64>, sent: u64) -> Result<u64, Trouble> {
        let Some(connection) = &mut self.connection else { return Err(Trouble::gone()) };
        let head = &self.out[self.out.len().min(sent as usize)..];
        let at = range.start + sent.saturating_sub(self.out.len() as u64);
        if at >= range.end {
            return Ok(connection.send(&[IoSlice::new(head)])? as u64);
        }
        let length = match content {
            Content::Bytes(bytes) => connection
                .send(&[IoSlice::new(head), IoSlice::new(&bytes[at as usize..range.end as usize])])?,
            Content::Payload(payload) => {
                let mut window = Window::default();
                connection.send(&payload.slices(head, at..range.end, &mut window))?
            }
            Content::File(file) => {
                let mut scratch = self.reactor.scratch();
                let wanted = scratch.len().min(usize::try_from(range.end - at).unwrap_or(usize::MAX));
                match file.read_at(&mut scratch[..wanted], at).map_err(Trouble::Content)? {
                    0 => return Err(Trouble::Content(std::io::ErrorKind::UnexpectedEof.into())),
                    length => connection.send(&[IoSlice::new(head), IoSlice::new(&scratch[..length])])?,
                }
            }
        };
        Ok(length as u64)
    }

    /// Waits for room to send; a reply that comes first is begun to be read.
    async fn room_or_reply(&mut self, watch: &mut Watch<'_>) -> Result<Sent, Failure> {
        let Some(connection) = &self.connection else { return Err(Failure::broken(&Broken::gone())) };
        connection.socket().ready(Ready::EITHER).await.map_err(|expired| Failure::broken(&expired.into()))?;
        if connection.socket().is_ready(Ready::READ) {
            match self.receive_some(watch) {
                Ok(_) if self.decoder.has_head() => return Ok(Sent::Stopped),
                Err(Stop::Broken(error)) if error.would_block() => {}
                Ok(_) => {}
                Err(stop) => return Err(self.explain(stop, watch)),
            }
        }
        Ok(Sent::All)
    }

    /// Receives until the reply is whole; gives whether the connection is in order afterwards.
    #[inline]
    async fn receive(&mut self, watch: &mut Watch<'_>) -> Result<bool, Failure> {
        let mut in_order = true;
        while !self.decoder.is_whole() {
            match self.receive_some(watch) {
                Ok(beyond) => in_order = !beyond,
                Err(Stop::Broken(error)) if error.would_block() => {
                    let Some(connection) = &self.connection else {
                        return Err(Failure::broken(&Broken::gone()));
                    };
                    let ready = connection.socket().ready(Ready::READ).await;
                    ready.map_err(|expired| Failure::broken(&expired.into()))?;
                }
                Err(stop) => return Err(self.explain(stop, watch)),
            }
        }
        Ok(in_order)
    }

    /// Receives once; gives whether more came than belongs to the reply.
    #[inline]
    fn receive_some(&mut self, watch: &mut Watch<'_>) -> Result<bool, Stop> {
        let Some(connection) = &mut self.connection else { return Err(Stop::Broken(Broken::gone())) };
        let mut scratch = self.reactor.scratch();
        let length = connection.receive(&mut scratch).map_err(Stop::Broken)?;
        watch.reply.done = self.reactor.now();
        if length == 0 {
            return if self.decoder.end() { Ok(false) } else { Err(Stop::Cut) };
        }
        let used = self.decoder.feed(&scratch[..length], watch).map_err(Stop::Malformed)?;
        Ok(used < length)
    }

    #[cold]
    fn explain(&self, stop: Stop, watch: &Watch<'_>) -> Failure {
        match stop {
            Stop::Malformed(malformed) => Failure::in_doubt(Fault::Protocol, malformed.to_string()),
            Stop::Cut if self.decoder.has_head() => {
                let text =
                    format!("connection closed after {} bytes of the reply's body", watch.reply.received);
                Failure::in_doubt(Fault::Reset, text)
            }
            Stop::Cut => {
                let began = self.decoder.has_begun();
                let text = if began {
                    "connection closed inside the reply's head"
                } else {
                    "connection closed without a reply"
                };
                Failure::in_doubt(Fault::Reset, text)
            }
            Stop::Broken(error) => Failure::broken(&error),
        }
    }
}

/// How far sending went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    All,
    /// The reply's head came before all was sent.
    Stopped,
}

/// Why nothing more was sent.
enum Trouble {
    Connection(Broken),
    Content(std::io::Error),
}

impl Trouble {
    fn gone() -> Self {
        Trouble::Connection(Broken::gone())
    }
}

impl From<Broken> for Trouble {
    fn from(error: Broken) -> Self {
        Trouble::Connection(error)
    }
}

/// Why nothing more was received.
enum Stop {
    Broken(Broken),
    /// The peer closed.
    Cut,
    Malformed(Malformed),
}

/// Passes a reply on to a sink, and takes its measure.
struct Watch<'a> {
    sink: &'a mut dyn Sink,
    reply: Reply,
}

impl<'a> Watch<'a> {
    fn new(sink: &'a mut dyn Sink) -> Self {
        Self { sink, reply: Reply { status: 0, received: 0, head_at: 0, body_at: None, done: 0 } }
    }
}

impl Sink for Watch<'_> {
    #[inline]
    fn head(&mut self, head: &Head<'_>) {
        self.reply.status = head.status;
        self.reply.head_at = self.reply.done;
        self.sink.head(head);
    }

    #[inline]
    fn body(&mut self, piece: &[u8]) {
        self.reply.body_at.get_or_insert(self.reply.done);
        self.reply.received += piece.len() as u64;
        self.sink.body(piece);
    }
}

/// Whether and when to try again: doubled pauses, inside the operation's latency.
pub(crate) struct Retry {
    left: u32,
    pause_ns: u64,
    most_ns: u64,
    /// Attempts beyond the first so far.
    pub made: u32,
}

impl Retry {
    /// As the target's settings say.
    pub(crate) fn new(http: &Http) -> Self {
        Self { left: http.retries, pause_ns: http.back_off_ns, most_ns: http.back_off_most_ns, made: 0 }
    }

    /// Waits for the time to try again; false, at once, when there is none.
    pub(crate) async fn again(&mut self, failure: &Failure, reactor: &Reactor) -> bool {
        if self.left == 0 || !failure.is_retryable() {
            return false;
        }
        self.left -= 1;
        self.made += 1;
        let pause = self.pause_ns.min(self.most_ns);
        self.pause_ns = self.pause_ns.saturating_mul(2);
        reactor.sleep_until(reactor.now().saturating_add(pause)).await;
        true
    }
}
