//! `tidemark observe`: samples this node once a second and serves the samples over HTTP.
//!
//! `GET /metrics` is OpenMetrics; `GET /samples` is JSON, for a run on another node. Clients are not trusted: heads of
//! requests are short, connections are few, no address has all of them, each has a time limit, and who guesses tokens has to
//! wait; the right token never has to. Without a token the host that is asked for has to be this one, or any web page could
//! ask through its reader's browser.

use crate::observer::next;
use crate::openmetrics;
use crate::sample::Sample;
use crate::sampler::{Sampler, host_name};
use crate::stop::{Stop, lock};
use crate::wire::{Numbered, Page};
use crate::{Options, observer};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::future::ready;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use subtle::ConstantTimeEq as _;
use tidemark_measure::rng::Rng;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// Connections served at a time: enough that one that gets on is answered before a crowd that connects anew all the time has taken all
/// places once.
const MAX_CONNECTIONS: usize = 512;

/// Characters of a token, at least: as many as nobody guesses.
const SHORTEST_TOKEN: usize = 16;

/// Wrong tokens of one address within [`FORGIVEN_AFTER`]; after more it has to wait.
const MAX_WRONG: u32 = 10;
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// Addresses whose wrong tokens are counted, at most.
const MAX_COUNTED: usize = 1000;

/// Time limit of a connection.
const CONNECTION_LIMIT: Duration = Duration::from_secs(5);

/// Size limit of a request's head, bytes: the smallest that hyper knows.
const MAX_HEAD: usize = 8 << 10;

/// Header lines of a request, at most.
const MAX_HEADERS: usize = 64;

/// How long, and how much, the server reads after its reply.
const LINGER: Duration = Duration::from_millis(500);
const MAX_LINGER: u64 = 64 << 10;

/// Time between two checks whether to stop.
const POLL: Duration = Duration::from_millis(20);

/// Samples kept for readers that missed some.
const KEPT: usize = 30;

/// Samples between two reads of what the node is.
const FACTS_EVERY: u64 = 60;

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Other machines could connect, and there is no token.
    #[error("{0} can be reached from other machines: set a token, or listen on 127.0.0.1")]
    Token(SocketAddr),
    /// The token can be guessed.
    #[error(
        "the token is too short: use at least {SHORTEST_TOKEN} characters, such as those of `openssl rand -hex 16`"
    )]
    Short,
    /// The server cannot listen.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
}

/// What all connections share.
struct Shared {
    recent: Mutex<Recent>,
    token: Option<String>,
    tls: Option<TlsAcceptor>,
    clients: Mutex<Clients>,
}

/// What is known of those who connect.
struct Clients {
    /// How many have connected.
    count: u64,
    /// Connections by number: whose each is, and what ends it.
    connections: BTreeMap<u64, (IpAddr, Arc<Notify>)>,
    /// How many wrong tokens each address has sent, and since when they count.
    wrong: HashMap<IpAddr, (u32, Instant)>,
    /// Draws the connection that gives way.
    draw: Rng,
}

impl Default for Clients {
    fn default() -> Self {
        let draw = Rng::new(RandomState::new().build_hasher().finish(), &[]);
        Self { count: 0, connections: BTreeMap::new(), wrong: HashMap::new(), draw }
    }
}

impl Clients {
    /// A place for a connection. Where there is none, one of the addresses that have most of them ends, so that connections which only
    /// wait keep nobody out.
    fn enter(&mut self, address: IpAddr) -> (u64, Arc<Notify>) {
        if self.connections.len() >= MAX_CONNECTIONS
            && let Some(number) = self.gives_way()
            && let Some((_, ends)) = self.connections.remove(&number)
        {
            ends.notify_one();
        }
        self.count += 1;
        let ends = Arc::new(Notify::new());
        self.connections.insert(self.count, (address, Arc::clone(&ends)));
        (self.count, ends)
    }

    /// A connection of the addresses that have most of them, drawn by lot: if it were always the oldest, a crowd that connects anew all
    /// the time would end every handshake from its own address before it is over.
    fn gives_way(&mut self) -> Option<u64> {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        self.connections.values().for_each(|(address, _)| *counts.entry(*address).or_default() += 1);
        let most = counts.values().copied().max()?;
        let is_busy = |address: &IpAddr| counts.get(address) == Some(&most);
        let busy: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, (address, _))| is_busy(address))
            .map(|(number, _)| *number)
            .collect();
        busy.get(self.draw.below(busy.len() as u64) as usize).copied()
    }

    fn leave(&mut self, number: u64) {
        self.connections.remove(&number);
    }

    /// Counts a wrong token.
    fn guessed(&mut self, address: IpAddr) {
        self.wrong.retain(|_, (_, since)| since.elapsed() < FORGIVEN_AFTER);
        if self.wrong.len() < MAX_COUNTED {
            self.wrong.entry(address).or_insert_with(|| (0, Instant::now())).0 += 1;
        }
    }

    /// Whether an address has guessed too often.
    fn must_wait(&self, address: IpAddr) -> bool {
        let recent = |(count, since): &(u32, Instant)| *count > MAX_WRONG && since.elapsed() < FORGIVEN_AFTER;
        self.wrong.get(&address).is_some_and(recent)
    }
}

/// The newest samples of this node.
#[derive(Default)]
struct Recent {
    /// Everything about the node but its samples.
    page: Page,
    /// Each sample with the time at which it was taken.
    samples: VecDeque<(Instant, Numbered)>,
}

/// Samples this node once a second and serves `GET /metrics` (OpenMetrics 1.0) and `GET /samples` (JSON) until `stop`
/// returns true. It does not ask [`Options::nodes`]. It calls `ready` with its address once it listens.
///
/// # Errors
///
/// If it cannot listen, if other machines could connect and there is no token, or if the token is short.
/// With a token, every request needs `Authorization: Bearer TOKEN`; without `tls` it travels unencrypted.
pub fn serve(
    listen: SocketAddr,
    options: Options,
    tls: Option<Arc<ServerConfig>>,
    ready: impl FnOnce(SocketAddr),
    stop: impl Fn() -> bool,
) -> Result<(), ServeError> {
    let token = options.token.clone().filter(|token| !token.is_empty());
    if !listen.ip().is_loopback() && token.is_none() {
        return Err(ServeError::Token(listen));
    }
    token.as_deref().map_or(Ok(()), long_enough)?;
    let failed = |error| ServeError::Listen(listen, error);
    let listener = TcpListener::bind(listen).map_err(failed)?;
    ready(listener.local_addr().unwrap_or(listen));
    run(listener, options, token, tls, stop).map_err(failed)
}

/// Whether nobody guesses a token.
pub(crate) fn long_enough(token: &str) -> Result<(), ServeError> {
    if token.chars().count() < SHORTEST_TOKEN { Err(ServeError::Short) } else { Ok(()) }
}

fn run(
    listener: TcpListener,
    options: Options,
    token: Option<String>,
    tls: Option<Arc<ServerConfig>>,
    stop: impl Fn() -> bool,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tls = tls.map(TlsAcceptor::from);
    let shared = Arc::new(Shared { recent: Mutex::default(), token, tls, clients: Mutex::default() });
    let stopped = Stop::default();
    let sampling = thread::spawn({
        let (shared, stopped) = (Arc::clone(&shared), stopped.clone());
        move || sample(&options, &shared, &stopped)
    });
    let served = runtime.block_on(accept(listener, &shared, stop));
    stopped.set();
    let _panicked = sampling.join();
    served
}

fn sample(options: &Options, shared: &Shared, stopped: &Stop) {
    let start = Instant::now();
    let mut sampler = Sampler::new(options);
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    {
        let page = &mut lock(&shared.recent).page;
        (page.name, page.started_unix_ns) = (host_name(), observer::nanoseconds(unix));
    }
    sampler.look();
    let mut number = 0u64;
    while !stopped.sleep_until(next(start, Instant::now())) {
        let (at, Sample { seconds, values }) = sampler.look();
        let facts = number.is_multiple_of(FACTS_EVERY).then(|| sampler.facts());
        number += 1;
        let sample = Numbered { number, age_ns: 0, seconds: seconds.unwrap_or(0.0), values };
        let mut recent = lock(&shared.recent);
        recent.page.gaps = sampler.gaps().to_vec();
        if let Some(facts) = facts {
            recent.page.facts = facts;
        }
        recent.samples.push_back((at, sample));
        if recent.samples.len() > KEPT {
            recent.samples.pop_front();
        }
    }
}

async fn accept(listener: TcpListener, shared: &Arc<Shared>, stop: impl Fn() -> bool) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    while !stop() {
        match timeout(POLL, listener.accept()).await {
            Ok(Ok((stream, peer))) => {
                let address = peer.ip().to_canonical();
                let (number, ends) = lock(&shared.clients).enter(address);
                let shared = Arc::clone(shared);
                tokio::spawn(async move {
                    let served = timeout(CONNECTION_LIMIT, connection(stream, address, &shared));
                    tokio::select! {
                        // A client that breaks off or takes too long learns of it by itself.
                        _ended = served => lock(&shared.clients).leave(number),
                        () = ends.notified() => {}
                    }
                });
            }
            // Too many files are open, for example.
            Ok(Err(_)) => sleep(POLL).await,
            Err(_) => {}
        }
    }
    Ok(())
}

async fn connection(stream: TcpStream, address: IpAddr, shared: &Shared) {
    match &shared.tls {
        None => converse(stream, address, shared).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                converse(stream, address, shared).await;
            }
        }
    }
}

/// Answers one request.
async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, address: IpAddr, shared: &Shared) {
    let service = service_fn(|request| ready(Ok::<_, Infallible>(answer(&request, address, shared))));
    let _broken = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(&mut stream), service)
        .await;
    // Closing a socket with unread data resets the connection, and the client could lose the reply.
    let rest = async { tokio::io::copy(&mut stream.take(MAX_LINGER), &mut tokio::io::sink()).await };
    let _ended = timeout(LINGER, rest).await;
}

fn answer(request: &Request<Incoming>, address: IpAddr, shared: &Shared) -> Response<Full<Bytes>> {
    let text = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let given = text(AUTHORIZATION);
    if shared.token.is_none() && text(HOST).is_some_and(|host| !is_this_node(host)) {
        return refusal(StatusCode::FORBIDDEN);
    }
    // The right token is always taken: who shares its sender's address, or pretends to, cannot shut it out.
    if !shared.token.as_ref().is_none_or(|token| is_right(token, given)) {
        if lock(&shared.clients).must_wait(address) {
            return refusal(StatusCode::TOO_MANY_REQUESTS);
        }
        if given.is_some() {
            lock(&shared.clients).guessed(address);
        }
        let mut refusal = refusal(StatusCode::UNAUTHORIZED);
        refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return refusal;
    }
    if request.method() != Method::GET {
        return refusal(StatusCode::METHOD_NOT_ALLOWED);
    }
    match request.uri().path() {
        "/metrics" => {
            let newest = lock(&shared.recent).samples.back().map(|(_, sample)| sample.values.clone());
            match openmetrics::text(newest.unwrap_or_default()) {
                Ok(text) => reply(StatusCode::OK, openmetrics::CONTENT_TYPE, text),
                Err(_) => refusal(StatusCode::INTERNAL_SERVER_ERROR),
            }
        }
        "/samples" => {
            let page = page(&lock(&shared.recent), request.uri().query().unwrap_or_default());
            match serde_json::to_vec(&page) {
                Ok(text) => reply(StatusCode::OK, "application/json", text),
                Err(_) => refusal(StatusCode::INTERNAL_SERVER_ERROR),
            }
        }
        _ => refusal(StatusCode::NOT_FOUND),
    }
}

/// The newest sample, or with `started=S&after=N` those after number N of the observer that was started at S.
fn page(recent: &Recent, query: &str) -> Page {
    let number = |name: &str| {
        let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        value.parse::<u64>().ok()
    };
    let after = number("after").filter(|_| number("started") == Some(recent.page.started_unix_ns));
    let newest = recent.samples.back().map_or(0, |(_, sample)| sample.number.saturating_sub(1));
    let after = after.unwrap_or(newest);
    let wanted = recent.samples.iter().filter(|(_, sample)| sample.number > after);
    let aged = |(at, sample): &(Instant, Numbered)| Numbered {
        age_ns: observer::nanoseconds(at.elapsed()),
        ..sample.clone()
    };
    Page { samples: wanted.map(aged).collect(), ..recent.page.clone() }
}

/// Whether a header names this node in a way that nobody else can make up: by address, or by its own name.
fn is_this_node(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.is_ok() || name.eq_ignore_ascii_case("localhost") || name.eq_ignore_ascii_case(&host_name())
}

/// Compares in a time that does not tell how much of the token was right.
fn is_right(token: &str, authorization: Option<&str>) -> bool {
    let given = authorization.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().trim();
    token.as_bytes().ct_eq(given.as_bytes()).into()
}

fn refusal(status: StatusCode) -> Response<Full<Bytes>> {
    reply(status, "text/plain; charset=utf-8", format!("{status}\n"))
}

fn reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests;
