//! Requests of S3: addressed, signed, sent, and the refusal of one turned into a failure.

use super::encryption::{Concern, Confirming, Headers};
use super::refusal;
use crate::client::{Answer, Body, Client, Content, Reply};
use crate::failure::Failure;
use crate::http::Sink;
use crate::job::S3;
use crate::operate::Intake;
use crate::sigv4::{Chain, EMPTY_SHA256, PayloadHash, Signature, Signer, Unsigned};
use crate::text::{hexadecimal, push_decimal};
use base64::Engine as _;
use md5::{Digest as _, Md5};
use sha2::Sha256;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;
use tidemark_load::engine::{OpenError, Tick};
use tidemark_measure::fault::Fault;
use tidemark_reactor::Reactor;

/// Where a request goes: the host it names and the path. Kept for its memory.
#[derive(Default)]
pub(crate) struct Address {
    host: Vec<u8>,
    path: Vec<u8>,
    /// Length of the path that leads to the bucket.
    bucket: usize,
}

impl Address {
    /// The address of the server itself.
    pub(crate) fn service(&mut self, client: &Client) {
        self.host.clear();
        self.path.clear();
        self.host.extend_from_slice(client.endpoint().host.as_bytes());
        self.path.extend_from_slice(client.endpoint().base.as_bytes());
        self.bucket = self.path.len();
    }

    /// The address of a bucket; `push` appends its name.
    #[inline]
    pub(crate) fn begin(&mut self, sender: &Sender, client: &Client, push: impl Fn(&mut Vec<u8>)) {
        let endpoint = client.endpoint();
        self.host.clear();
        self.path.clear();
        self.path.extend_from_slice(endpoint.base.as_bytes());
        if sender.target.path_style {
            self.path.push(b'/');
            push(&mut self.path);
        } else {
            push(&mut self.host);
            self.host.push(b'.');
        }
        self.host.extend_from_slice(endpoint.host.as_bytes());
        self.bucket = self.path.len();
    }

    /// The address of an object of the bucket; `push` appends its name, percent-encoded.
    #[inline]
    pub(crate) fn object(&mut self, push: impl Fn(&mut Vec<u8>)) {
        self.path.truncate(self.bucket);
        self.path.push(b'/');
        push(&mut self.path);
    }

    /// The address of the bucket again.
    pub(crate) fn bucket(&mut self) {
        self.path.truncate(self.bucket);
    }
}

/// A request, without its receiver.
pub(crate) struct Request<'a> {
    method: &'static str,
    query: &'a [u8],
    content: Option<(Content<'a>, Range<u64>)>,
    in_chunks: bool,
    concern: Concern,
    signed: &'a [(&'a str, &'a [u8])],
    plain: &'a [(&'a str, &'a [u8])],
}

impl<'a> Request<'a> {
    fn new(method: &'static str, content: Option<(Content<'a>, Range<u64>)>) -> Self {
        Self {
            method,
            query: b"",
            content,
            in_chunks: false,
            concern: Concern::Nothing,
            signed: &[],
            plain: &[],
        }
    }

    /// A GET.
    pub(crate) fn get() -> Self {
        Self::new("GET", None)
    }

    /// A HEAD.
    pub(crate) fn head() -> Self {
        Self::new("HEAD", None)
    }

    /// A DELETE.
    pub(crate) fn delete() -> Self {
        Self::new("DELETE", None)
    }

    /// A PUT of a range of some content.
    pub(crate) fn put(content: Content<'a>, range: Range<u64>) -> Self {
        Self::new("PUT", Some((content, range)))
    }

    /// A POST of a range of some content.
    pub(crate) fn post(content: Content<'a>, range: Range<u64>) -> Self {
        Self::new("POST", Some((content, range)))
    }

    /// With a query: percent-encoded, sorted, every parameter with a `=`.
    pub(crate) fn query(self, query: &'a [u8]) -> Self {
        Self { query, ..self }
    }

    /// With what the target's storage class and encryption need for what it does with an object's content.
    pub(super) fn that(self, concern: Concern) -> Self {
        Self { concern, ..self }
    }

    /// With the body in chunks, each signed.
    pub(crate) fn in_chunks(self) -> Self {
        Self { in_chunks: true, ..self }
    }

    /// With `x-amz-` headers: names in small letters, sorted, before `x-amz-copy-source-`.
    pub(crate) fn signed(self, signed: &'a [(&'a str, &'a [u8])]) -> Self {
        Self { signed, ..self }
    }

    /// With headers that are not signed.
    pub(crate) fn plain(self, plain: &'a [(&'a str, &'a [u8])]) -> Self {
        Self { plain, ..self }
    }
}

/// Sends a thread's requests.
pub(crate) struct Sender {
    target: Arc<S3>,
    signer: RefCell<Signer>,
    encryption: Headers,
    reactor: Rc<Reactor>,
    /// Nanoseconds since 1970 when the reactor's clock read 0.
    epoch_ns: u64,
}

impl Sender {
    /// A sender for the calling thread.
    ///
    /// # Errors
    /// When the target's encryption has no key.
    pub(crate) fn new(target: &Arc<S3>, reactor: &Rc<Reactor>) -> Result<Self, OpenError> {
        let token = target.session_token.as_ref().filter(|token| !token.is_empty());
        let signer = Signer::new(&target.access_key, &target.secret_key, &target.region, token);
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            target: Arc::clone(target),
            signer: RefCell::new(signer),
            encryption: Headers::new(target.encryption.as_ref())?,
            reactor: Rc::clone(reactor),
            epoch_ns: (since_1970.as_nanos() as u64).saturating_sub(reactor.now()),
        })
    }

    /// What requests are sent to.
    pub(crate) fn target(&self) -> &S3 {
        &self.target
    }

    /// The thread's clock.
    pub(crate) fn now(&self) -> Tick {
        self.reactor.now()
    }

    /// Sends a request and takes its reply, which must be a success; `now` is when the attempt began.
    ///
    /// # Errors
    /// Why there is no success.
    #[inline]
    pub(crate) async fn send(
        &self,
        client: &mut Client,
        address: &Address,
        request: &Request<'_>,
        intake: &mut Intake<'_>,
        now: Tick,
    ) -> Result<Reply, Failure> {
        let reply = self.confirmed(client, address, request, intake, now).await?;
        match reply.status {
            200..300 => Ok(reply),
            status => Err(refusal::failure(status, &intake.body)),
        }
    }

    /// Sends a request and takes its reply, whatever its status; a success must confirm the target's encryption.
    ///
    /// # Errors
    /// Why there is no reply, or none that confirms it.
    #[inline]
    pub(super) async fn confirmed(
        &self,
        client: &mut Client,
        address: &Address,
        request: &Request<'_>,
        sink: &mut impl Sink,
        now: Tick,
    ) -> Result<Reply, Failure> {
        let awaited = self.encryption.confirmation(request.concern);
        let mut confirming = Confirming::new(sink, awaited);
        let reply = self.exchange(client, address, request, &mut confirming, now).await?;
        match confirming.missing() {
            Some(header) if (200..300).contains(&reply.status) => Err(unconfirmed(client, header)),
            _ => Ok(reply),
        }
    }

    /// Sends a request and takes its reply, whatever it is.
    ///
    /// # Errors
    /// Why there is no reply.
    #[inline]
    pub(crate) async fn exchange(
        &self,
        client: &mut Client,
        address: &Address,
        request: &Request<'_>,
        sink: &mut dyn Sink,
        now: Tick,
    ) -> Result<Reply, Failure> {
        let head = client.connect(now).await?;
        let chain = self.write_head(address, request, now, head)?;
        let answer = if request.method == "HEAD" { Answer::HeadOnly } else { Answer::Whole };
        let mut body = match &request.content {
            None => Body::none(),
            Some((content, range)) => Body::content(*content, range.clone()),
        };
        match chain {
            None => client.exchange(&mut body, answer, sink).await,
            Some(mut chain) => Box::pin(client.exchange(&mut body.chunked(&mut *chain), answer, sink)).await,
        }
    }

    /// Appends a request's head; gives what signs its chunks, if it is sent in chunks.
    #[inline]
    fn write_head(
        &self,
        address: &Address,
        request: &Request<'_>,
        now: Tick,
        head: &mut Vec<u8>,
    ) -> Result<Option<Box<Chain>>, Failure> {
        let mut signer = self.signer.borrow_mut();
        let size = request.content.as_ref().map_or(0, |(_, range)| range.end - range.start);
        // The RADOS gateway (16.2) does not read the one chunk of an empty body, and refuses it.
        let in_chunks = request.in_chunks && signer.signs() && size > 0;
        let unsigned = Unsigned {
            method: request.method,
            path: &address.path,
            query: request.query,
            host: &address.host,
            payload: self.payload_hash(request, in_chunks)?,
            headers: request.signed,
        };
        let unix_s = self.epoch_ns.saturating_add(now) / 1_000_000_000;
        let more = More {
            source: self.encryption.of_source(request.concern),
            decoded: in_chunks.then_some(size),
            encryption: self.encryption.of(request.concern),
            class: self.target.storage_class.as_deref().filter(|_| request.concern.makes()),
        };
        let signature = match more.is_empty() {
            true => signer.sign(unix_s, &unsigned, head),
            false => more.sign(&mut signer, unix_s, &unsigned, head),
        };
        for (name, value) in request.plain {
            push(head, &[name.as_bytes(), b": ", value, b"\r\n"]);
        }
        if in_chunks {
            head.extend_from_slice(b"Content-Encoding: aws-chunked\r\n");
        }
        Ok(in_chunks.then(|| Box::new(signer.chain(signature))))
    }

    /// What the signature is to say of the payload.
    #[inline]
    fn payload_hash(&self, request: &Request<'_>, in_chunks: bool) -> Result<PayloadHash, Failure> {
        if in_chunks {
            return Ok(PayloadHash::Chunks);
        }
        if !self.target.sign_payload {
            return Ok(PayloadHash::Unsigned);
        }
        let Some((content, range)) = &request.content else { return Ok(PayloadHash::Sha256(*EMPTY_SHA256)) };
        let mut digest = Sha256::new();
        content.each(range.clone(), |piece| digest.update(piece)).map_err(|error| {
            Failure::without_effect(Fault::Local, format!("cannot read the content: {error}"))
        })?;
        Ok(PayloadHash::Sha256(hexadecimal(&digest.finalize().into())))
    }
}

/// The headers that only some requests have, each kind in the order of their names, and so are the kinds.
struct More<'a> {
    /// With which key the source of a copy is read.
    source: &'a [(&'static str, Vec<u8>)],
    /// The length of a body in chunks.
    decoded: Option<u64>,
    /// How the object is encrypted.
    encryption: &'a [(&'static str, Vec<u8>)],
    class: Option<&'a str>,
}

/// Most headers that a request has beyond those of every request: a copy's source with its key, a decoded length, a key, a
/// storage class.
const MORE_MOST: usize = 9;

impl More<'_> {
    #[inline]
    fn is_empty(&self) -> bool {
        self.decoded.is_none() && self.encryption.is_empty() && self.class.is_none()
    }

    /// Signs a request with them.
    fn sign(
        &self,
        signer: &mut Signer,
        unix_s: u64,
        unsigned: &Unsigned<'_>,
        head: &mut Vec<u8>,
    ) -> Signature {
        let mut digits = Vec::new();
        self.decoded.inspect(|bytes| push_decimal(&mut digits, *bytes));
        fn of<'h>(header: &'h (&'static str, Vec<u8>)) -> (&'h str, &'h [u8]) {
            (header.0, &header.1)
        }
        let all = (unsigned.headers.iter().copied())
            .chain(self.source.iter().map(of))
            .chain(self.decoded.map(|_| ("x-amz-decoded-content-length", &digits[..])))
            .chain(self.encryption.iter().map(of))
            .chain(self.class.map(|class| ("x-amz-storage-class", class.as_bytes())));
        let mut headers = [("", &[][..]); MORE_MOST];
        let count = headers.iter_mut().zip(all).map(|(place, header)| *place = header).count();
        signer.sign(unix_s, &Unsigned { headers: &headers[..count], ..*unsigned }, head)
    }
}

/// A server that reported success without having confirmed the encryption.
#[cold]
fn unconfirmed(client: &Client, (name, value): (&str, &str)) -> Failure {
    let url = client.endpoint().url();
    let text = format!(
        "{url} reports success, but its reply does not hold `{name}: {value}`: the server ignores server-side encryption, \
         or does not confirm it"
    );
    Failure::in_doubt(Fault::Protocol, text)
}

fn push(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// The value of a `Content-MD5` header, which the protocol requires with some documents.
pub(crate) fn content_md5(document: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(Md5::digest(document.as_bytes()))
}
