//! How to reach the controller: TCP, TLS by certificate or by proof, WebSocket.

use super::access::Access;
use super::caller::End;
use super::client::{Join, JoinError};
use super::proof::{self, Unproven};
use super::{MESSAGE_MOST, PATH, trust};
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tidemark_plan::secret::Secret;
use tidemark_tls::Trust;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Request, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// How long the token that a controller leaves may be missing: it leaves one right after it begins to listen, and a new start takes a
/// moment.
const MISSING: Duration = Duration::from_secs(5);

/// How to reach the controller.
pub(super) struct Dial {
    host: String,
    port: u16,
    /// Where the controller's paths begin.
    base: String,
    identity: Identity,
    request: Request<()>,
    /// The token, if one was given.
    token: Option<Secret>,
    left: Left,
}

/// How the controller is known.
enum Identity {
    /// By its certificate.
    Certificate(TlsConnector, ServerName<'static>),
    /// By a proof that it knows the token.
    Proof,
    /// Not at all.
    None,
}

/// What is known of the token that a controller leaves.
#[derive(Default)]
struct Left {
    /// Whose token let this driver in.
    joined: Option<SocketAddr>,
    /// Since when there is none.
    missing: Option<Instant>,
}

impl Dial {
    /// # Errors
    /// When the address, the certificates or the token cannot be used.
    pub(super) fn new(options: &Join) -> Result<Self, JoinError> {
        // The address is not repeated: there may be a password in it.
        let wrong = |what: &str| {
            JoinError(format!(
                "the controller's address cannot be used: {what}; it looks like https://host:port"
            ))
        };
        let mut url = url::Url::parse(&options.url).map_err(|error| wrong(&error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(JoinError(
                "a controller's address may not contain a user or password: use --token".into(),
            ));
        }
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("it must begin with http:// or https://")),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port_or_known_default().ok_or_else(|| wrong("it names no port"))?;
        let identity = match (secure, &options.trust) {
            (true, trust) => {
                let name = ServerName::try_from(host.clone()).map_err(|error| wrong(&error.to_string()))?;
                Identity::Certificate(TlsConnector::from(trust::client_config(trust)?), name)
            }
            (false, Trust::Any) => Identity::None,
            (false, _) => Identity::Proof,
        };
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}{PATH}"));
        url.set_query(None);
        url.set_fragment(None);
        // WebSocket's schemes follow HTTP's: the rest of the address stays.
        let address = url.as_str().replacen("http", "ws", 1);
        let request = address.into_client_request().map_err(|error| wrong(&error.to_string()))?;
        if options.token.as_ref().is_some_and(|token| bearer(token).is_none()) {
            return Err(JoinError("the token has characters that no token has: check --token".into()));
        }
        let token = options.token.clone();
        Ok(Self { host, port, base, identity, request, token, left: Left::default() })
    }

    /// The controller's address, `host:port`.
    pub(super) fn there(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Opens a WebSocket.
    pub(super) async fn connect(
        &mut self,
        activity: &Arc<Activity>,
    ) -> Result<WebSocketStream<Box<dyn Wire>>, End> {
        let there = self.there();
        let cut = |error: &dyn std::fmt::Display| {
            End::Cut(format!("cannot reach the controller at {there}: {}", tidemark_tls::words(error)))
        };
        let tcp = match TcpStream::connect((self.host.as_str(), self.port)).await {
            Ok(tcp) => tcp,
            Err(error) => return Err(self.left.gone(&there).unwrap_or_else(|| cut(&error))),
        };
        // Pings and their answers are small and must not wait for each other.
        tcp.set_nodelay(true).map_err(|error| cut(&error))?;
        let peer = tcp.peer_addr().map_err(|error| cut(&error))?;
        let tcp = Tracked { inner: tcp, activity: Arc::clone(activity) };
        let (token, wire): (Option<Secret>, Box<dyn Wire>) = match &self.identity {
            Identity::None => (self.token.clone(), Box::new(tcp)),
            Identity::Certificate(connector, name) => {
                let connected = connector.connect(name.clone(), tcp).await;
                let wire = connected.map_err(|error| match trust::refusal(&error, &self.host) {
                    Some(reason) => End::Refused(reason),
                    None => cut(&error),
                })?;
                (self.token.clone(), Box::new(wire))
            }
            Identity::Proof => {
                let (token, wire) = self.proven(tcp, peer).await?;
                (Some(token), Box::new(wire))
            }
        };
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_MOST))
            .max_frame_size(Some(MESSAGE_MOST));
        let mut request = self.request.clone();
        let bearer = token.as_ref().and_then(bearer);
        request.headers_mut().extend(bearer.map(|value| (header::AUTHORIZATION, value)));
        match tokio_tungstenite::client_async_with_config(request, wire, Some(config)).await {
            Ok((socket, _)) => {
                if self.token.is_none() && token.is_some() {
                    self.left.joined = Some(peer);
                }
                Ok(socket)
            }
            Err(tungstenite::Error::Http(response)) => Err(match response.status() {
                StatusCode::UNAUTHORIZED if token.is_none() => requires_token(&there),
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => End::Refused(format!(
                    "the controller at {there} does not accept this driver's token: give it a driver's token of this controller \
                     with --token-file"
                )),
                status => End::Cut(format!("{there} answers {status} instead of letting this driver join")),
            }),
            Err(error) => Err(cut(&error)),
        }
    }

    /// Has the controller prove that it knows the token: the one that was given, or the one that it has left for this user.
    async fn proven(&mut self, tcp: Tracked, peer: SocketAddr) -> Result<(Secret, TlsStream<Tracked>), End> {
        let there = self.there();
        let token = match self.token.clone() {
            Some(token) => token,
            None => self.left.find(peer, &there)?,
        };
        let host = self.request.uri().authority().map_or("", |authority| authority.as_str());
        let unproven = match proof::prove(tcp, host, &format!("{}{}", self.base, proof::PATH), &token).await {
            Ok(wire) => return Ok((token, wire)),
            Err(unproven) => unproven,
        };
        Err(match unproven {
            Unproven::Away(reason) => End::Cut(format!("cannot reach the controller at {there}: {reason}")),
            Unproven::Other(reason) if self.token.is_some() => End::Gone(format!(
                "what listens at {there} did not prove that it knows this driver's token ({reason}), and was sent nothing: either the \
                 token is not, or no longer, one of that controller, or another program has taken the address; give this driver a \
                 token of the controller with --token-file, or join over https://"
            )),
            // The controller was started again between these two steps, and has left another token.
            Unproven::Other(_) if self.left.differs(peer, &token) => {
                End::Cut(format!("the controller at {there} is starting"))
            }
            Unproven::Other(reason) => End::Gone(format!(
                "what listens at {there} did not prove that it is the controller that left its token for this user ({reason}), and was \
                 sent nothing: that controller was killed, and another program has taken the address; start the controller again, at \
                 another address if need be, and then this driver"
            )),
        })
    }
}

impl Left {
    /// The token that the controller at `peer` has left for this user.
    fn find(&mut self, peer: SocketAddr, there: &str) -> Result<Secret, End> {
        if let Some(access) = Access::find(peer) {
            self.missing = None;
            return Ok(access.driver);
        }
        let is_new = self.joined.is_none() && peer.ip().to_canonical().is_loopback();
        Err(match self.is_missed() {
            false if is_new => {
                End::Cut(format!("the controller at {there} has left no token for this user yet"))
            }
            _ if self.joined.is_none() => requires_token(there),
            false => End::Cut(format!("the controller at {there} has ended")),
            true => has_ended(there),
        })
    }

    /// Whether the controller that let this driver in has ended.
    fn gone(&mut self, there: &str) -> Option<End> {
        if Access::find(self.joined?).is_some() {
            self.missing = None;
            return None;
        }
        self.is_missed().then(|| has_ended(there))
    }

    /// Notes that there is no token; whether that was so for a while.
    fn is_missed(&mut self) -> bool {
        self.missing.get_or_insert_with(Instant::now).elapsed() >= MISSING
    }

    /// Whether another token than this is there.
    fn differs(&self, peer: SocketAddr, token: &Secret) -> bool {
        Access::find(peer).is_none_or(|access| access.driver.reveal() != token.reveal())
    }
}

fn has_ended(there: &str) -> End {
    End::Gone(format!("the controller at {there} has ended and removed the token that it left for this user"))
}

fn requires_token(there: &str) -> End {
    End::Refused(format!(
        "the controller at {there} requires a token: create one there with `tidemark token add NAME --role driver`, and join with \
         --token-file"
    ))
}

/// A token as a header has it; `None` if no header can.
fn bearer(token: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.reveal())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// What a WebSocket runs over.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// When data last arrived, even if only part of a message.
pub(super) struct Activity {
    origin: Instant,
    last_ms: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self { origin: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    pub(super) fn last(&self) -> Instant {
        self.origin + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    fn touch(&self) {
        let now = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now, Ordering::Relaxed);
    }
}

/// A connection that notes when data arrives.
struct Tracked {
    inner: TcpStream,
    activity: Arc<Activity>,
}

impl AsyncRead for Tracked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let ready = Pin::new(&mut self.inner).poll_read(context, buffer);
        if ready.is_ready() {
            self.activity.touch();
        }
        ready
    }
}

impl AsyncWrite for Tracked {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
