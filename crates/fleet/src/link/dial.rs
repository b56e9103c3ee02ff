//! How to reach the controller: TCP, perhaps TLS, WebSocket.

use super::access::Access;
use super::caller::End;
use super::client::{Join, JoinError};
use super::{MESSAGE_MOST, PATH, trust};
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tidemark_plan::secret::Secret;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Request, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// How to reach the controller.
pub(super) struct Dial {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    /// With the token, if one was given.
    request: Request<()>,
    /// Whether one was.
    has_token: bool,
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
        let tls = if secure {
            let name = ServerName::try_from(host.clone()).map_err(|error| wrong(&error.to_string()))?;
            Some((TlsConnector::from(trust::client_config(&options.trust)?), name))
        } else {
            None
        };
        let path = format!("{}{PATH}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url.set_query(None);
        url.set_fragment(None);
        // WebSocket's schemes follow HTTP's: the rest of the address stays.
        let address = url.as_str().replacen("http", "ws", 1);
        let mut request = address.into_client_request().map_err(|error| wrong(&error.to_string()))?;
        if let Some(token) = &options.token {
            let value = bearer(token).ok_or_else(|| {
                JoinError("the token has characters that no token has: check --token".into())
            })?;
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        Ok(Self { host, port, tls, request, has_token: options.token.is_some() })
    }

    /// The controller's address, `host:port`.
    pub(super) fn there(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The token that the controller at this address has left for this user, if it has, and if none was given.
    fn found(&self, peer: Option<SocketAddr>) -> Option<HeaderValue> {
        let wanted = peer.filter(|_| !self.has_token && self.tls.is_none())?;
        bearer(&Access::find(wanted)?.driver)
    }

    /// Opens a WebSocket.
    pub(super) async fn connect(
        &self,
        activity: &Arc<Activity>,
    ) -> Result<WebSocketStream<Box<dyn Wire>>, End> {
        let there = self.there();
        let cut = |error: &dyn std::fmt::Display| {
            End::Cut(format!("cannot reach the controller at {there}: {}", tidemark_tls::words(error)))
        };
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(|error| cut(&error))?;
        // Pings and their answers are small and must not wait for each other.
        tcp.set_nodelay(true).map_err(|error| cut(&error))?;
        let peer = tcp.peer_addr().ok();
        let found = self.found(peer);
        let tcp = Tracked { inner: tcp, activity: Arc::clone(activity) };
        let wire: Box<dyn Wire> = match &self.tls {
            None => Box::new(tcp),
            Some((connector, name)) => Box::new(connector.connect(name.clone(), tcp).await.map_err(
                |error| match trust::refusal(&error, &self.host) {
                    Some(reason) => End::Refused(reason),
                    None => cut(&error),
                },
            )?),
        };
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_MOST))
            .max_frame_size(Some(MESSAGE_MOST));
        let mut request = self.request.clone();
        request.headers_mut().extend(found.clone().map(|token| (header::AUTHORIZATION, token)));
        match tokio_tungstenite::client_async_with_config(request, wire, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(response)) => Err(match response.status() {
                // It was restarted between these two steps, and has left another token.
                StatusCode::UNAUTHORIZED if found != self.found(peer) => cut(&"it is starting"),
                StatusCode::UNAUTHORIZED if found.is_none() && !self.has_token => End::Refused(format!(
                    "the controller at {there} requires a token: create one there with `tidemark token add NAME --role driver`, \
                     and join with --token-file"
                )),
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => End::Refused(format!(
                    "the controller at {there} does not accept this driver's token: give it a driver's token of this controller \
                     with --token-file"
                )),
                status => End::Cut(format!("{there} answers {status} instead of letting this driver join")),
            }),
            Err(error) => Err(cut(&error)),
        }
    }
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
