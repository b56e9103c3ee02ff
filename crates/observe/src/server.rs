//! `tidemark observe`: samples once a second, and tells who asks.
//!
//! `GET /metrics` is OpenMetrics; `GET /samples` is JSON for a run elsewhere. Whoever asks is not trusted: heads are
//! short, time is limited, and only a few are served at once.

use crate::http::{self, Request};
use crate::observer::next;
use crate::openmetrics;
use crate::sample::Sample;
use crate::sampler::{Sampler, host_name};
use crate::stop::{Stop, lock};
use crate::wire::{Numbered, Page};
use crate::{Options, observer};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Connections that are served at once; others are closed.
const CONNECTIONS_MOST: usize = 8;

/// The longest that one connection may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the server looks whether it is to stop, and for new connections.
const GLANCE: Duration = Duration::from_millis(20);

/// Samples that are kept for those who were away.
const KEPT: usize = 30;

/// Samples between two looks at what the node is.
const FACTS_EVERY: u64 = 60;

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Others than this machine could ask, and there is no token.
    #[error("{0} can be reached from other machines: that needs a token")]
    Token(SocketAddr),
    /// The address cannot be listened on.
    #[error("{0} cannot be listened on: {1}")]
    Listen(SocketAddr, io::Error),
}

/// What is known, for all connections.
struct Known {
    page: Mutex<Shown>,
    token: Option<String>,
    connections: AtomicUsize,
}

#[derive(Default)]
struct Shown {
    page: Page,
    /// With the moment of each.
    samples: VecDeque<(Instant, Numbered)>,
}

/// Samples this node once a second and serves `GET /metrics` (OpenMetrics 1.0) and `GET /samples` (JSON), until `stop`
/// says so. [`Options::nodes`] are not asked. `ready` is told the address once it listens.
///
/// # Errors
///
/// When it cannot listen, or when others than this machine could ask and no token of at least one character is given.
/// With a token, every request needs `Authorization: Bearer TOKEN`.
pub fn serve(
    listen: SocketAddr,
    options: Options,
    ready: impl FnOnce(SocketAddr),
    stop: impl Fn() -> bool,
) -> Result<(), ServeError> {
    let token = options.token.clone().filter(|token| !token.is_empty());
    if !listen.ip().is_loopback() && token.is_none() {
        return Err(ServeError::Token(listen));
    }
    let listener = TcpListener::bind(listen).map_err(|error| ServeError::Listen(listen, error))?;
    listener.set_nonblocking(true).map_err(|error| ServeError::Listen(listen, error))?;
    ready(listener.local_addr().unwrap_or(listen));
    run(&listener, options, token, stop);
    Ok(())
}

fn run(listener: &TcpListener, options: Options, token: Option<String>, stop: impl Fn() -> bool) {
    let known = Arc::new(Known { page: Mutex::default(), token, connections: AtomicUsize::new(0) });
    let ended = Stop::default();
    let sampling = thread::spawn({
        let (known, ended) = (Arc::clone(&known), ended.clone());
        move || sample(&options, &known, &ended)
    });
    while !stop() {
        match listener.accept() {
            Ok((stream, _)) => welcome(stream, &known),
            // Nobody is there, or too many files are open: later.
            Err(_) => thread::sleep(GLANCE),
        }
    }
    ended.set();
    let _failed = sampling.join();
}

fn sample(options: &Options, known: &Known, ended: &Stop) {
    let start = Instant::now();
    let mut sampler = Sampler::new(options);
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    {
        let mut shown = lock(&known.page);
        (shown.page.name, shown.page.started_unix_ns) = (host_name(), observer::nanoseconds(unix));
    }
    sampler.look();
    let mut number = 0u64;
    while !ended.sleep_until(next(start, Instant::now())) {
        let (at, Sample { seconds, values }) = sampler.look();
        let facts = number.is_multiple_of(FACTS_EVERY);
        number += 1;
        let facts = facts.then(|| sampler.facts());
        let sample = Numbered { number, age_ns: 0, seconds: seconds.unwrap_or(0.0), values };
        let mut shown = lock(&known.page);
        shown.page.gaps = sampler.gaps().to_vec();
        shown.page.facts = facts.unwrap_or_else(|| std::mem::take(&mut shown.page.facts));
        shown.samples.push_back((at, sample));
        if shown.samples.len() > KEPT {
            shown.samples.pop_front();
        }
    }
}

/// Serves a connection in a thread of its own, if there are not too many.
fn welcome(stream: TcpStream, known: &Arc<Known>) {
    if known.connections.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MOST {
        known.connections.fetch_sub(1, Ordering::AcqRel);
        return;
    }
    let known = Arc::clone(known);
    thread::spawn(move || {
        // Whatever goes wrong with it is the other side's to notice.
        let _failed = converse(stream, &known);
        known.connections.fetch_sub(1, Ordering::AcqRel);
    });
}

fn converse(mut stream: TcpStream, known: &Known) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    stream.set_nonblocking(false)?;
    let reply = match http::read_request(&mut stream, until) {
        Ok(request) => answer(&request, known),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => refusal("400 Bad Request"),
        Err(error) => return Err(error),
    };
    http::write(&mut stream, &reply, until)?;
    http::close(&mut stream, until)
}

fn answer(request: &Request, known: &Known) -> Vec<u8> {
    if !known.token.as_ref().is_none_or(|token| is_right(token, request.authorization.as_deref())) {
        return refusal("401 Unauthorized");
    }
    if request.method != "GET" {
        return refusal("405 Method Not Allowed");
    }
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    match path {
        "/metrics" => {
            let shown = lock(&known.page);
            let values = shown.samples.back().map_or(&[][..], |(_, sample)| &sample.values);
            reply("200 OK", openmetrics::CONTENT_TYPE, openmetrics::text(values).as_bytes())
        }
        "/samples" => match serde_json::to_vec(&page(&mut lock(&known.page), query)) {
            Ok(text) => reply("200 OK", "application/json", &text),
            Err(_) => refusal("500 Internal Server Error"),
        },
        _ => refusal("404 Not Found"),
    }
}

/// The newest sample, or with `started=S&after=N` those behind number N of the observer that was started at S.
fn page(shown: &mut Shown, query: &str) -> Page {
    let number = |name: &str| {
        let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        value.parse::<u64>().ok()
    };
    let after = number("after").filter(|_| number("started") == Some(shown.page.started_unix_ns));
    let newest = shown.samples.back().map_or(0, |(_, sample)| sample.number.saturating_sub(1));
    let after = after.unwrap_or(newest);
    let wanted = shown.samples.iter().filter(|(_, sample)| sample.number > after);
    let aged = |(at, sample): &(Instant, Numbered)| Numbered {
        age_ns: observer::nanoseconds(at.elapsed()),
        ..sample.clone()
    };
    Page {
        name: shown.page.name.clone(),
        started_unix_ns: shown.page.started_unix_ns,
        facts: shown.page.facts.clone(),
        gaps: shown.page.gaps.clone(),
        samples: wanted.map(aged).collect(),
    }
}

/// Compares without telling by the time taken how much of the token was right.
fn is_right(token: &str, authorization: Option<&str>) -> bool {
    let given = authorization.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().trim();
    let differences = token.bytes().zip(given.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    token.len() == given.len() && differences == 0
}

fn refusal(status: &str) -> Vec<u8> {
    reply(status, "text/plain; charset=utf-8", format!("{status}\n").as_bytes())
}

fn reply(status: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let challenge = if status.starts_with("401") { "WWW-Authenticate: Bearer\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{challenge}\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests;
