//! Takes connections, each with its limits: how many, how long a handshake and a head may take, how long a reader may
//! take nothing.

use crate::auth::{Peer, network};
use crate::options::Limits;
use crate::places::{Place, Places};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tidemark_fleet::link::Intake;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

/// How long requests that are under way may take when the server ends.
const FAREWELL: Duration = Duration::from_secs(3);

/// Serves until `stop` says true.
pub(crate) async fn run(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: &Limits,
    mut stop: watch::Receiver<bool>,
) {
    let places = Places::new(limits.connections);
    loop {
        let next = async {
            let accepted = listener.accept().await;
            match accepted {
                // While there is no place, further ones wait in the system's queue.
                Ok((stream, address)) => Some((stream, address, places.take(network(address.ip())).await)),
                Err(_) => None,
            }
        };
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            next = next => next,
        };
        let Some((stream, address, place)) = accepted else {
            // Out of file descriptors, or the other side has gone already.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (tls, router, limits, stop) = (tls.clone(), router.clone(), limits.clone(), stop.clone());
        tokio::spawn(async move {
            let place = Arc::new(place);
            let peer = Connected { address, place: place.clone(), intake: Arc::default() };
            tokio::select! {
                () = connection(stream, peer, tls, router, &limits, stop) => {}
                () = place.taken() => {}
            }
        });
    }
    drop(listener);
    let _ = timeout(FAREWELL, places.all_free()).await;
}

/// A connection, as requests that come over it know it.
#[derive(Clone)]
pub(crate) struct Connected {
    pub(crate) address: SocketAddr,
    pub(crate) place: Arc<Place>,
    /// Told of what comes over it, once it is a driver's.
    pub(crate) intake: Arc<OnceLock<Arc<Intake>>>,
}

async fn connection(
    stream: TcpStream,
    peer: Connected,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: &Limits,
    stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.stalled));
    let stream = Counted { stream: Box::pin(stream), intake: peer.intake.clone() };
    match tls {
        None => speak(stream, peer, router, limits, stop).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(limits.handshake, tls.accept(stream)).await {
                speak(stream, peer, router, limits, stop).await;
            }
        }
    }
}

/// Answers requests that come over a stream, until either side ends it.
pub(crate) async fn speak<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Connected,
    router: Router,
    limits: &Limits,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer.address));
        request.extensions_mut().insert(peer.clone());
        router.clone().oneshot(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    // It fails when the other side goes or breaks the protocol: nothing that anybody could do something about.
    tokio::select! {
        _ = &mut connection => return,
        _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// A connection that tells the driver's intake what comes over it, and fails when that is too much.
struct Counted {
    stream: Pin<Box<TimeoutStream<TcpStream>>>,
    intake: Arc<OnceLock<Arc<Intake>>>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.stream.as_mut().poll_read(context, buffer);
        let came = buffer.filled().len() - before;
        match self.intake.get() {
            Some(intake) if came > 0 && !intake.take(came) => {
                Poll::Ready(Err(io::Error::other("a message is too long before it is complete")))
            }
            _ => read,
        }
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
