//! Takes connections, each with its limits: how many, how long a handshake and a head may take, how long a reader may
//! take nothing.

use crate::auth::Peer;
use crate::options::Limits;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
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
    let room = Arc::new(Semaphore::new(limits.connections));
    loop {
        let next = async {
            // While there is no room, connections wait in the system's queue.
            let permit = room.clone().acquire_owned().await.ok();
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            next = next => next,
        };
        let Ok((stream, address)) = accepted else {
            // Out of file descriptors, or the other side has gone already.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (tls, router, limits, stop) = (tls.clone(), router.clone(), limits.clone(), stop.clone());
        tokio::spawn(async move {
            // A connection that is upgraded ends here, and goes on in its driver's hands.
            let _permit = permit;
            connection(stream, address, tls, router, &limits, stop).await;
        });
    }
    drop(listener);
    // All are gone when all the room is free.
    let _ = timeout(FAREWELL, room.acquire_many(limits.connections as u32)).await;
}

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: &Limits,
    stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.stalled));
    let stream = Box::pin(stream);
    match tls {
        None => speak(stream, address, router, limits, stop).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(limits.handshake, tls.accept(stream)).await {
                speak(stream, address, router, limits, stop).await;
            }
        }
    }
}

async fn speak<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    address: SocketAddr,
    router: Router,
    limits: &Limits,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(address));
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
