//! Another node, on which `tidemark observe` runs: a thread asks it once a second.

use crate::RemoteNode;
use crate::observer::{Glimpse, nanoseconds, next};
use crate::recorder::Recorder;
use crate::sample::Gaps;
use crate::stop::{Stop, lock};
use crate::wire::{Numbered, Page};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tidemark_measure::observation::Node;
use tidemark_measure::units;
use tidemark_tls::{TlsError, Trust};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Time limit of a request, the lookup of the name included.
const REQUEST_LIMIT: Duration = Duration::from_secs(1);

/// Size limits of a reply: its head and its body, bytes.
const MAX_HEAD: usize = 8 << 10;
const MAX_BODY: usize = 8 << 20;

/// Samples of one reply, values of one sample, facts and gaps: the rest is ignored.
const MAX_SAMPLES: usize = 100;
const MAX_VALUES: usize = 20_000;
const MAX_SENTENCES: usize = 200;

/// The port of `tidemark observe`.
const PORT: u16 = 9750;

/// The thread that asks one node.
pub(crate) struct Remote {
    seen: Arc<Mutex<Seen>>,
    thread: JoinHandle<()>,
    url: String,
    /// What the node is called whatever it says.
    name: Option<String>,
}

/// What the node sent so far.
#[derive(Default)]
struct Seen {
    recorder: Recorder,
    name: String,
    facts: Vec<(String, String)>,
    /// Gaps that this side noticed.
    gaps: Gaps,
    /// Gaps that the node reports.
    reported: Vec<String>,
    /// Start of the other observer, and its newest sample that was taken.
    place: Option<(u64, u64)>,
    outage: Option<Outage>,
}

/// A time without replies.
struct Outage {
    from_ns: u64,
    reason: String,
}

/// The node, the header that authorizes its requests, and how to verify its certificate if it has one.
struct Address {
    host: String,
    authorization: Option<HeaderValue>,
    tls: Option<Trust>,
}

/// Why a node gave no sample.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("{0} is not an address; write http://host:9750, or https://host:9750#sha256:HEX")]
    Address(String),
    #[error("{}", tidemark_tls::words(.0))]
    Socket(#[from] io::Error),
    #[error("{0}")]
    Tls(#[from] TlsError),
    #[error("{}", cause(.0))]
    Http(#[from] hyper::Error),
    #[error("no reply within {} s", REQUEST_LIMIT.as_secs())]
    Timeout(#[from] tokio::time::error::Elapsed),
    #[error("its reply is larger than {} MiB", MAX_BODY >> 20)]
    Size,
    #[error("its reply broke off: {0}")]
    Body(Box<dyn Error + Send + Sync>),
    #[error("it replied with status {0}")]
    Status(StatusCode),
    #[error("it requires a token, and the one that it got is wrong")]
    WrongToken,
    #[error(
        "it requires a token, and got none: TIDEMARK_OBSERVE_TOKEN is not set where the run was started, or the document came over \
         the network, and such a document's nodes get no token"
    )]
    NoToken,
    #[error("its reply cannot be read: {0}")]
    Json(#[from] serde_json::Error),
}

/// What is behind an error of hyper, whose own text is only its kind.
fn cause(error: &hyper::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

impl Remote {
    pub(crate) fn start(node: &RemoteNode, start: Instant, stop: Stop) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let thread = thread::spawn({
            let (node, seen) = (node.clone(), Arc::clone(&seen));
            move || watch(&node, start, &stop, &seen)
        });
        Self { seen, thread, url: node.url.clone(), name: node.name.clone() }
    }

    /// The latest sample, unless the node does not reply.
    pub(crate) fn latest(&self) -> Option<Glimpse> {
        let seen = lock(&self.seen);
        let told = if seen.name.is_empty() { &self.url } else { &seen.name };
        let name = self.name.as_ref().unwrap_or(told);
        seen.outage.is_none().then(|| seen.recorder.glimpse(name)).flatten()
    }

    /// Everything that the node sent, once the flag that stops all threads is set; waits for the last request.
    pub(crate) fn finish(self) -> Node {
        let name = self.name.clone();
        let _panicked = self.thread.join();
        let mut seen = std::mem::take(&mut *lock(&self.seen));
        let who = called(&self.url, name.as_deref());
        if let Some(outage) = seen.outage.take() {
            seen.gaps.say(outage.sentence(&who, "its end"));
        }
        if seen.recorder.full {
            seen.gaps.say(format!("{who} sent more series than are kept."));
        }
        let mut gaps = seen.gaps.sentences().to_vec();
        gaps.extend(seen.reported);
        let told = if seen.name.is_empty() { self.url.clone() } else { seen.name };
        let (name, source) = (name.unwrap_or(told), self.url);
        Node { name, generates: false, source, facts: seen.facts, gaps, ..seen.recorder.node() }
    }
}

impl Outage {
    fn sentence(&self, who: &str, until: &str) -> String {
        format!(
            "{who} did not reply from {} of the run to {until}: {}.",
            units::duration_ns(self.from_ns),
            self.reason
        )
    }
}

/// How sentences name an observer: a node that has a name needs no fingerprint to be told from others.
fn called(url: &str, name: Option<&str>) -> String {
    match name {
        None => url.to_owned(),
        Some(_) => format!("Its observer at {}", url.split('#').next().unwrap_or_default()),
    }
}

fn watch(node: &RemoteNode, start: Instant, stop: &Stop, seen: &Mutex<Seen>) {
    let RemoteNode { url, token, name } = node;
    let (address, who) = (Address::parse(url, token.as_deref()), called(url, name.as_deref()));
    let runtime = Builder::new_current_thread().enable_all().build();
    loop {
        // When the flag is set, the last second's sample is still missing.
        let last = stop.sleep_until(next(start, Instant::now()));
        if last && lock(seen).outage.is_some() {
            break;
        }
        let place = lock(seen).place;
        let asked = Instant::now();
        let reply = match (&address, &runtime) {
            (Some(address), Ok(runtime)) => ask(runtime, address, place),
            (None, _) => Err(AskError::Address(url.clone())),
            (_, Err(error)) => Err(io::Error::from(error.kind()).into()),
        };
        let replied = Instant::now();
        let mut seen = lock(seen);
        match reply {
            Ok(page) => {
                let middle = nanoseconds((asked + (replied - asked) / 2).saturating_duration_since(start));
                seen.take(page, &who, middle);
            }
            Err(error) => {
                let from_ns = nanoseconds(asked.saturating_duration_since(start));
                seen.outage.get_or_insert_with(|| Outage { from_ns, reason: error.to_string() });
            }
        }
        if last {
            break;
        }
    }
    if let Ok(runtime) = runtime {
        // It must not wait for a lookup that is still under way.
        runtime.shutdown_background();
    }
}

impl Seen {
    /// Takes a reply; `middle` is the time between request and reply on this node's clock.
    fn take(&mut self, page: Page, who: &str, middle: u64) {
        if let Some(outage) = self.outage.take() {
            self.gaps.say(outage.sentence(who, &units::duration_ns(middle)));
        }
        let same = self.place.is_some_and(|(started, _)| started == page.started_unix_ns);
        let mut newest = self.place.filter(|_| same).map_or(0, |(_, number)| number);
        for Numbered { number, age_ns, values, .. } in page.samples.into_iter().take(MAX_SAMPLES) {
            let at = middle.checked_sub(age_ns);
            let later = at.filter(|at| self.recorder.last_ns().is_none_or(|last| *at > last));
            // Samples from before the run, and those that are known already, do not count.
            if let Some(at) = later.filter(|_| number > newest && values.len() <= MAX_VALUES) {
                let finite = values.into_iter().filter(|value| value.value.is_finite()).collect();
                self.recorder.record(at, finite);
            }
            newest = newest.max(number);
        }
        self.place = Some((page.started_unix_ns, newest));
        let short = |text: &String| text.len() <= 1000;
        self.name = Some(page.name).filter(short).unwrap_or_default();
        self.facts = page
            .facts
            .into_iter()
            .filter(|(name, value)| short(name) && short(value))
            .take(MAX_SENTENCES)
            .collect();
        self.reported = page.gaps.into_iter().filter(short).take(MAX_SENTENCES).collect();
    }
}

impl Address {
    fn parse(url: &str, token: Option<&str>) -> Option<Self> {
        let (url, tls) = match url.strip_prefix("https://") {
            None => (url.strip_prefix("http://").unwrap_or(url), None),
            Some(rest) => match rest.split_once('#') {
                None => (rest, Some(Trust::System)),
                // No file: a document must not say which of the reader's are read.
                Some((rest, pin)) => match pin.parse() {
                    Ok(trust @ Trust::Fingerprint(_)) => (rest, Some(trust)),
                    _ => return None,
                },
            },
        };
        let host = url.trim_end_matches('/');
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]%".contains(letter);
        if host.is_empty() || !host.chars().all(plain) {
            return None;
        }
        // The colons of an IPv6 address are within brackets.
        let port = host.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
        let host = if port { host.to_owned() } else { format!("{host}:{PORT}") };
        let authorization = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
        Some(Self { host, authorization, tls })
    }
}

fn ask(runtime: &Runtime, address: &Address, place: Option<(u64, u64)>) -> Result<Page, AskError> {
    runtime.block_on(async { timeout(REQUEST_LIMIT, request(address, place)).await? })
}

async fn request(address: &Address, place: Option<(u64, u64)>) -> Result<Page, AskError> {
    let stream = TcpStream::connect(&address.host).await?;
    let Some(trust) = &address.tls else { return exchange(stream, address, place).await };
    let name = address.host.rsplit_once(':').map_or("", |(name, _)| name);
    let name = ServerName::try_from(name.trim_start_matches('[').trim_end_matches(']').to_owned());
    let name = name.map_err(|error| io::Error::other(error.to_string()))?;
    let connector = TlsConnector::from(trust.client_config()?);
    exchange(connector.connect(name, stream).await?, address, place).await
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    address: &Address,
    place: Option<(u64, u64)>,
) -> Result<Page, AskError> {
    let client = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream));
    let (mut sender, connection) = client.await?;
    // Ends with this function, whatever the other side does.
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let query = place.map_or(String::new(), |(started, number)| format!("?started={started}&after={number}"));
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = hyper::Uri::try_from(format!("/samples{query}")).unwrap_or_default();
    let host = HeaderValue::try_from(&address.host).ok();
    request.headers_mut().extend(host.map(|host| (HOST, host)));
    request.headers_mut().extend(address.authorization.clone().map(|value| (AUTHORIZATION, value)));
    let reply = sender.send_request(request).await?;
    match reply.status() {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED if address.authorization.is_some() => return Err(AskError::WrongToken),
        StatusCode::UNAUTHORIZED => return Err(AskError::NoToken),
        status => return Err(AskError::Status(status)),
    }
    let body = Limited::new(reply.into_body(), MAX_BODY).collect().await;
    let body =
        body.map_err(
            |error| if error.is::<LengthLimitError>() { AskError::Size } else { AskError::Body(error) },
        )?;
    Ok(serde_json::from_slice(&body.to_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Value;
    use tidemark_measure::observation::Kind;

    fn page(started_unix_ns: u64, samples: &[(u64, u64)]) -> Page {
        let values =
            vec![Value { kind: Kind::Cpu, subject: "all".into(), metric: "busy".into(), value: 0.5 }];
        let sample = |&(number, age_ns)| Numbered { number, age_ns, seconds: 1.0, values: values.clone() };
        let samples = samples.iter().map(sample).collect();
        Page { name: "b".into(), started_unix_ns, samples, ..Page::default() }
    }

    #[test]
    fn samples_are_placed_on_this_nodes_clock_and_counted_once() {
        let mut seen = Seen::default();
        seen.take(page(1, &[(7, 500)]), "b", 200);
        assert_eq!(seen.recorder.last_ns(), None, "the sample is older than the run");
        seen.take(page(1, &[(7, 900), (8, 300)]), "b", 1200);
        seen.take(page(1, &[(8, 1300), (9, 300)]), "b", 2200);
        seen.take(page(2, &[(1, 100)]), "b", 3200);
        assert_eq!(seen.recorder.node().at_ns, [900, 1900, 3100], "the observer there was restarted");
        assert_eq!(seen.place, Some((2, 1)));
    }

    #[test]
    fn addresses_have_a_host_and_may_have_a_port() {
        let host = |url| Address::parse(url, None).map(|address| address.host);
        assert_eq!(host("http://10.0.0.2:9000/").unwrap(), "10.0.0.2:9000");
        assert_eq!(host("storage-1").unwrap(), "storage-1:9750");
        assert_eq!(host("http://[::1]").unwrap(), "[::1]:9750");
        assert_eq!(host("http://a\r\nx"), None);
        assert_eq!(host("https://a/b"), None);
        let tls = |url| Address::parse(url, None).and_then(|address| address.tls);
        let pin = format!("https://[::1]:9000#sha256:{}", "5a".repeat(32));
        assert_eq!(
            (host(&pin).unwrap(), tls(&pin)),
            ("[::1]:9000".into(), Some(Trust::Fingerprint([0x5a; 32])))
        );
        assert_eq!((tls("https://a"), tls("http://a")), (Some(Trust::System), None));
        assert_eq!(
            (host("https://a#/etc/passwd"), host("http://a#sha256:5a"), host("https://a#")),
            (None, None, None)
        );
        assert_eq!(Address::parse("a", Some("x\r\ny")).unwrap().authorization, None);
    }

    #[test]
    fn a_node_that_does_not_reply_is_a_gap() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let seen = |url: &str, name: Option<&str>| {
            let stop = Stop::default();
            let node = RemoteNode { url: url.to_owned(), token: None, name: name.map(str::to_owned) };
            let remote = Remote::start(&node, Instant::now(), stop.clone());
            stop.set();
            remote.finish()
        };
        let node = seen(&format!("http://{free}"), None);
        assert!(node.at_ns.is_empty() && node.name == format!("http://{free}"));
        assert!(node.gaps[0].contains("did not reply from"), "{:?}", node.gaps);
        let url = format!("https://{free}#sha256:{}", "5a".repeat(32));
        let node = seen(&url, Some("n1"));
        assert_eq!((node.name.as_str(), node.source.as_str()), ("n1", url.as_str()));
        let said = format!("Its observer at https://{free} did not reply from");
        assert!(node.gaps[0].starts_with(&said), "{:?}", node.gaps);
    }
}
