//! How to reach the controller: TCP, perhaps TLS, WebSocket.

use super::caller::End;
use super::client::{Join, JoinError};
use super::{MESSAGE_MOST, PATH, trust};
use rustls::pki_types::ServerName;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
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
    request: Request<()>,
}

impl Dial {
    /// # Errors
    /// When the address, the certificates or the token cannot be used.
    pub(super) fn new(options: &Join) -> Result<Self, JoinError> {
        // The address is not repeated: there may be a password in it.
        let wrong = |what: &str| {
            JoinError(format!("the controller's address is invalid: {what}; write https://host:port"))
        };
        let mut url = url::Url::parse(&options.url).map_err(|error| wrong(&error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(JoinError(
                "a controller's address must not contain a user or password: use --token".into(),
            ));
        }
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("it must begin with http:// or https://")),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it has no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port_or_known_default().ok_or_else(|| wrong("it has no port"))?;
        let tls = if secure {
            let name = ServerName::try_from(host.clone()).map_err(|error| wrong(&error.to_string()))?;
            Some((TlsConnector::from(trust::tls(&options.trust)?), name))
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
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()))
                .map_err(|_| JoinError("the token has invalid characters: check --token".into()))?;
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        Ok(Self { host, port, tls, request })
    }

    /// Where the controller is, as people say it.
    pub(super) fn there(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Connects as far as to a WebSocket.
    pub(super) async fn connect(&self, pulse: &Arc<Pulse>) -> Result<WebSocketStream<Box<dyn Wire>>, End> {
        let there = self.there();
        let cut = |error: &dyn std::fmt::Display| {
            End::Cut(format!("cannot reach the controller at {there}: {error}"))
        };
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(|error| cut(&error))?;
        // Pings and their answers are small, and are not to wait for each other.
        tcp.set_nodelay(true).map_err(|error| cut(&error))?;
        let tcp = Watched { inner: tcp, pulse: Arc::clone(pulse) };
        let wire: Box<dyn Wire> = match &self.tls {
            None => Box::new(tcp),
            Some((connector, name)) => Box::new(connector.connect(name.clone(), tcp).await.map_err(
                |error| match trust::disbelief(&error, &self.host) {
                    Some(reason) => End::Refused(reason),
                    None => cut(&error),
                },
            )?),
        };
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_MOST))
            .max_frame_size(Some(MESSAGE_MOST));
        match tokio_tungstenite::client_async_with_config(self.request.clone(), wire, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(response)) => Err(match response.status() {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => End::Refused(format!(
                    "the controller at {there} rejects this driver's token: use a join token of this controller with \
                     --token"
                )),
                status => End::Cut(format!("{there} returns {status} instead of accepting this driver")),
            }),
            Err(error) => Err(cut(&error)),
        }
    }
}

/// What a WebSocket runs over.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// When something came last, if only a part of a message.
pub(super) struct Pulse {
    origin: Instant,
    last_ms: AtomicU64,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self { origin: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    pub(super) fn last(&self) -> Instant {
        self.origin + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    fn beat(&self) {
        let now = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now, Ordering::Relaxed);
    }
}

/// A connection whose pulse is felt.
struct Watched {
    inner: TcpStream,
    pulse: Arc<Pulse>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let ready = Pin::new(&mut self.inner).poll_read(context, buffer);
        if ready.is_ready() {
            self.pulse.beat();
        }
        ready
    }
}

impl AsyncWrite for Watched {
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
