//! Requests to a coordinator: one after the other, on a connection that is kept until it breaks.
//!
//! What comes back is bounded, in bytes and in time, and a redirect is followed nowhere: whoever answers gets no more of this
//! machine than the reply that was asked for.

use crate::tables::failure::{Failure, first_line};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{
    AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tidemark_analytics::job::Trino;
use tidemark_load::budget::Budget;
use tidemark_load::deadline::Deadline;
use tidemark_measure::fault::Fault;
use tidemark_object::secrets::Mask;
use tidemark_tls::Trust;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use url::Url;

/// Time limits of a connection and of a reply: Trino answers within a second, however long a query takes.
const CONNECT: Duration = Duration::from_secs(10);
const REPLY: Duration = Duration::from_secs(60);

/// Size limits of a reply: its head and its body, bytes. Trino's bodies have about 16 MiB at most before they are written as JSON.
const MAX_HEAD: usize = 64 << 10;
const MAX_BODY: usize = 64 << 20;

/// How often a coordinator that has no time just now is asked once more, and after which pause, doubled each time.
const ATTEMPTS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(50);

/// Where a coordinator is, and how to speak to it.
pub(crate) struct Address {
    /// As the document has it.
    pub endpoint: String,
    url: Url,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    headers: HeaderMap,
    mask: Mask,
}

/// A connection, if it is open.
#[derive(Default)]
pub(crate) struct Connection {
    open: Option<Open>,
    /// What all replies on it may add up to, if that is limited.
    budget: Option<Budget>,
}

impl Connection {
    /// One for an undertaking that may be sent so much.
    pub(crate) fn within(budget: &Budget) -> Self {
        Self { open: None, budget: Some(budget.clone()) }
    }
}

struct Open {
    sender: SendRequest<Full<Bytes>>,
    /// What moves its bytes; ends with it.
    _moving: JoinSet<()>,
}

/// A request. It may be repeated when its connection breaks only if `again`.
pub(crate) struct Ask<'a> {
    pub method: Method,
    /// Path and query.
    pub path: &'a str,
    pub body: Bytes,
    pub again: bool,
}

impl<'a> Ask<'a> {
    pub(crate) fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, body: Bytes::new(), again: true }
    }
}

impl Address {
    /// Reads a target. `headers` are those of all requests, beside the user's.
    pub(crate) fn new(trino: &Trino, headers: &[(&'static str, &str)]) -> Result<Self, String> {
        let endpoint = trino.endpoint.clone();
        let wrong = |why: String| format!("Trino at {endpoint}: {why}");
        let url = Url::parse(&endpoint).map_err(|error| wrong(error.to_string()))?;
        let host = url.host_str().unwrap_or_default();
        let tls = match url.scheme() {
            "https" => {
                let trust = match &trino.ca_file {
                    _ if trino.insecure => Trust::Any,
                    Some(path) => Trust::SystemAndFile(path.clone()),
                    None => Trust::System,
                };
                let config = trust.client_config().map_err(|error| wrong(error.to_string()))?;
                let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                let name = ServerName::try_from(name).map_err(|error| wrong(error.to_string()))?;
                Some((TlsConnector::from(config), name))
            }
            _ => None,
        };
        let host = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let mut known = HeaderMap::new();
        let mut add = |name: HeaderName, text: &str| match HeaderValue::from_str(text) {
            Ok(value) => {
                known.insert(name, value);
                Ok(())
            }
            Err(_) => {
                Err(wrong(format!("`{name}: {text}` cannot be sent: letters, digits and - _ . can be")))
            }
        };
        add(HOST, &host)?;
        add(USER_AGENT, "tidemark")?;
        for (name, text) in [("x-trino-user", trino.user.as_str()), ("x-trino-source", "tidemark")]
            .into_iter()
            .chain(headers.iter().copied())
        {
            add(HeaderName::from_static(name), text)?;
        }
        let mut secrets = Vec::new();
        if let Some(password) = &trino.password {
            let text = format!("{}:{}", trino.user, password.reveal());
            let proof = STANDARD.encode(text);
            let mut value = HeaderValue::try_from(format!("Basic {proof}"))
                .map_err(|_| wrong("the password cannot be sent".into()))?;
            value.set_sensitive(true);
            known.insert(AUTHORIZATION, value);
            secrets.extend([password.clone(), proof.into()]);
        }
        Ok(Self { endpoint: endpoint.clone(), url, tls, headers: known, mask: Mask::new(&secrets) })
    }

    /// The path and the query of an address that a reply names. One of another server is a failure.
    pub(crate) fn own(&self, uri: &str) -> Result<String, Failure> {
        let elsewhere = |what: &str| {
            let words = format!(
                "the coordinator says that the query goes on at {}, which {what}: if a proxy is in between, set \
                 http-server.process-forwarded=true on the coordinator, or name its own address as the `endpoint`",
                first_line(uri)
            );
            self.failed(Fault::Protocol, &words)
        };
        let url = Url::parse(uri).map_err(|_| elsewhere("is no address"))?;
        if url.origin() != self.url.origin() || !url.username().is_empty() || url.password().is_some() {
            return Err(elsewhere("is another server"));
        }
        Ok(url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path())))
    }

    /// A failure that names the coordinator. No secret is in its words.
    pub(crate) fn failed(&self, fault: Fault, words: &str) -> Failure {
        Failure::new(fault, format!("Trino at {}: {}", self.endpoint, self.mask.apply(words)))
    }

    /// Sends a request, and gives the body of the reply. It has one time limit, however long the coordinator asks for a pause.
    pub(crate) async fn ask(&self, connection: &mut Connection, ask: Ask<'_>) -> Result<Bytes, Failure> {
        let (mut pause, mut attempt, deadline) = (PAUSE, 0, Deadline::after(REPLY));
        loop {
            attempt += 1;
            let was_open = connection.open.is_some();
            let tried = match timeout(deadline.left(), self.exchange(connection, &ask)).await {
                Ok(tried) => tried,
                Err(_) => {
                    let words = format!("no whole reply came within {} s", REPLY.as_secs());
                    Err(self.failed(Fault::Timeout, &words))
                }
            };
            let (status, head, body) = match tried {
                Ok(replied) => replied,
                Err(failure) => {
                    connection.open = None;
                    // The coordinator closes connections that were idle for long.
                    if ask.again && was_open && failure.fault == Fault::Reset && attempt == 1 {
                        continue;
                    }
                    return Err(failure);
                }
            };
            let waits = match status {
                StatusCode::OK | StatusCode::NO_CONTENT => return Ok(body),
                StatusCode::TOO_MANY_REQUESTS => Some(retry_after(&head).unwrap_or(pause)),
                StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                    Some(pause)
                }
                _ => None,
            };
            match waits.filter(|waits| attempt < ATTEMPTS && *waits < deadline.left()) {
                Some(waits) => sleep(waits).await,
                None => return Err(self.refused(status, &head, &body)),
            }
            pause *= 2;
        }
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        ask: &Ask<'_>,
    ) -> Result<(StatusCode, HeaderMap, Bytes), Failure> {
        let mut open = match connection.open.take() {
            Some(open) if !open.sender.is_closed() => open,
            _ => self.connect().await?,
        };
        let mut request = Request::new(Full::new(ask.body.clone()));
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = hyper::Uri::try_from(ask.path)
            .map_err(|error| self.failed(Fault::Protocol, &error.to_string()))?;
        request.headers_mut().extend(self.headers.clone());
        let reply: Response<_> =
            open.sender.send_request(request).await.map_err(|error| self.broken(&error))?;
        let (head, body) = reply.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                let words = format!("its reply is larger than {} MiB", MAX_BODY >> 20);
                return self.failed(Fault::Protocol, &words);
            }
            match error.downcast::<hyper::Error>() {
                Ok(error) => self.broken(&error),
                Err(error) => self.failed(Fault::Reset, &error.to_string()),
            }
        })?;
        let body = body.to_bytes();
        if let Some(budget) = &connection.budget {
            let lines = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
            let taken = budget.take((lines.sum::<usize>() + body.len()) as u64);
            taken.map_err(|exceeded| self.failed(Fault::Protocol, &exceeded.to_string()))?;
        }
        connection.open = Some(open);
        Ok((head.status, head.headers, body))
    }

    async fn connect(&self) -> Result<Open, Failure> {
        let host = self.url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = self.url.port_or_known_default().unwrap_or(80);
        let opening = async {
            let stream = TcpStream::connect((host, port)).await.map_err(|error| self.unreachable(&error))?;
            stream.set_nodelay(true).map_err(|error| self.unreachable(&error))?;
            let Some((tls, name)) = &self.tls else { return self.open(stream).await };
            let shaken = tls.connect(name.clone(), stream).await.map_err(|error| {
                let said = tidemark_tls::words(&error);
                let words = format!("{said}: name a `ca_file`, or accept any certificate with `insecure`");
                self.failed(Fault::Tls, &words)
            })?;
            self.open(shaken).await
        };
        timeout(CONNECT, opening).await.unwrap_or_else(|_| {
            let words = format!("no connection within {} s: is its address right?", CONNECT.as_secs());
            Err(self.failed(Fault::Timeout, &words))
        })
    }

    async fn open(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Open, Failure> {
        let client = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream));
        let (sender, connection) = client.await.map_err(|error| self.broken(&error))?;
        let mut moving = JoinSet::new();
        moving.spawn(async {
            // What goes wrong, the request that it happens to is told.
            let _ = connection.await;
        });
        Ok(Open { sender, _moving: moving })
    }

    fn unreachable(&self, error: &io::Error) -> Failure {
        let (fault, advice) = match error.kind() {
            ErrorKind::ConnectionRefused => (Fault::Refused, ": is the coordinator up, and the port right?"),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
                (Fault::Reset, "")
            }
            ErrorKind::TimedOut => (Fault::Timeout, ": is its address right?"),
            _ => (Fault::Unreachable, ": is its address right?"),
        };
        self.failed(fault, &format!("{error}{advice}"))
    }

    /// A connection on which a request was lost.
    fn broken(&self, error: &hyper::Error) -> Failure {
        let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        let (fault, words) = match error.is_parse() {
            true => (Fault::Protocol, format!("its reply is no HTTP ({cause}): is the port right?")),
            false => (Fault::Reset, format!("the connection broke ({cause})")),
        };
        self.failed(fault, &words)
    }

    /// A status that is none of success.
    fn refused(&self, status: StatusCode, head: &HeaderMap, body: &[u8]) -> Failure {
        let said = first_line(&String::from_utf8_lossy(&body[..body.len().min(2_000)]));
        let said = if said.is_empty() { said } else { format!(" ({said})") };
        let (fault, advice) = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                (Fault::Denied, ": check `user` and `password`".to_owned())
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => (
                Fault::Unavailable,
                ": it does not know the query, or is no coordinator; was it restarted?".into(),
            ),
            StatusCode::TOO_MANY_REQUESTS => {
                let asked = retry_after(head).map(|pause| {
                    format!(
                        ", and asks for a pause of {} s; a request may take {} s in all",
                        pause.as_secs(),
                        REPLY.as_secs()
                    )
                });
                (Fault::Throttled, asked.unwrap_or_default())
            }
            status if status.is_redirection() => {
                let to = head.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
                (
                    Fault::ClientError,
                    format!(", a redirect to {}: name that address as the `endpoint`", first_line(to)),
                )
            }
            status if status.is_server_error() => (Fault::ServerError, String::new()),
            _ => (Fault::ClientError, String::new()),
        };
        self.failed(fault, &format!("it replied with status {status}{said}{advice}"))
    }
}

/// For how long a pause a server asks.
fn retry_after(head: &HeaderMap) -> Option<Duration> {
    let seconds = head.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
