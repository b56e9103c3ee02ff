//! The server: a thread with a runtime of its own, a listener, and one task per connection.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::access::{Anybody, OnePair};
use crate::error::EmbeddedError;
use crate::faults::Faults;
use crate::front::{Desk, Front};
use crate::options::{Credentials, EmbeddedOptions};
use crate::service::Service;
use crate::statistics::{Counters, Statistics};
use crate::store::Store;

/// Connections that may wait to be accepted; a load generator opens hundreds at once.
const BACKLOG: u32 = 4096;

/// Threads for disk work: as many requests as a disk is given at a time.
const DISK_THREADS: usize = 32;

/// How long a stopping server waits for disk work in progress.
const LAST_WORK: Duration = Duration::from_secs(10);

/// An S3 server inside this process, on threads of its own. It stops when it is dropped.
pub struct EmbeddedServer {
    address: SocketAddr,
    credentials: Credentials,
    store: Arc<Store>,
    counters: Arc<Counters>,
    faults: Faults,
    running: Option<Running>,
}

struct Running {
    /// Ends the server when it is used or dropped.
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl fmt::Debug for EmbeddedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedServer")
            .field("address", &self.address)
            .field("credentials", &self.credentials)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl EmbeddedServer {
    /// Starts a server; when this returns, it is listening.
    ///
    /// # Errors
    /// See [`EmbeddedError`]: an option that cannot work, an address that is taken, a directory that cannot be used.
    pub fn start(options: EmbeddedOptions) -> Result<Self, EmbeddedError> {
        if options.threads == 0 {
            let reason = "it is 0, and a server needs at least one".to_owned();
            return Err(EmbeddedError::Option { option: "threads", reason });
        }
        let store = Arc::new(Store::open(&options.place, &options.buckets)?);
        let credentials = options.credentials.map_or_else(Credentials::random, Ok)?;
        let counters = Arc::new(Counters::new());
        let faults = Faults::new(Arc::clone(&store), options.fault_seed);
        let service = Service { store: Arc::clone(&store), minimum_part_bytes: options.minimum_part_bytes };
        let s3 = s3_service(service, &credentials, options.anonymous);
        let front = Front { s3, faults: faults.clone(), counters: Arc::clone(&counters) };
        let runtime = runtime(options.threads).map_err(EmbeddedError::Threads)?;
        let (address, running) = launch(runtime, options.address, Arc::new(front))?;
        Ok(Self { address, credentials, store, counters, faults, running: Some(running) })
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as a URL, such as `http://127.0.0.1:41873`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The access key to sign requests with.
    #[must_use]
    pub fn access_key(&self) -> &str {
        &self.credentials.access_key
    }

    /// The secret of the access key.
    #[must_use]
    pub fn secret_key(&self) -> &str {
        &self.credentials.secret_key
    }

    /// The handle to this server's faults.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// What it has counted so far and holds now.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let holdings = self.store.holdings();
        Statistics {
            buckets: holdings.buckets,
            objects: holdings.objects,
            object_bytes: holdings.object_bytes,
            uploads: holdings.uploads,
            unreadable_files: self.store.unreadable_files(),
            ..self.counters.snapshot()
        }
    }

    /// Stops the server: closes its connections, waits for its threads and returns what it counted in the end.
    #[must_use = "the final counts; drop the server to stop it without them"]
    pub fn shutdown(mut self) -> Statistics {
        self.stop();
        self.statistics()
    }

    fn stop(&mut self) {
        if let Some(Running { stop, thread }) = self.running.take() {
            drop(stop);
            // The thread does not panic; if it did, it would already have stopped.
            let _ = thread.join();
        }
    }
}

impl Drop for EmbeddedServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn s3_service(service: Service, credentials: &Credentials, anonymous: bool) -> S3Service {
    let mut builder = S3ServiceBuilder::new(service);
    builder.set_auth(OnePair::from(credentials));
    if anonymous {
        builder.set_access(Anybody);
    }
    builder.build()
}

fn runtime(threads: usize) -> std::io::Result<Runtime> {
    // One thread needs no work stealing and no wake-ups across threads.
    let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    builder
        .worker_threads(threads)
        .max_blocking_threads(DISK_THREADS)
        .thread_name("embedded-s3")
        .enable_all()
        .build()
}

/// Starts the thread of a server and waits until it listens.
fn launch(
    runtime: Runtime,
    address: SocketAddr,
    front: Arc<Front>,
) -> Result<(SocketAddr, Running), EmbeddedError> {
    let (stop, stopped) = oneshot::channel();
    let (ready, listening) = mpsc::channel();
    let work = move || {
        runtime.block_on(async {
            match listen(address) {
                Ok((listener, address)) => {
                    // The thread that starts the server waits for this message.
                    let _ = ready.send(Ok(address));
                    serve(listener, front, stopped).await;
                }
                Err(source) => drop(ready.send(Err(EmbeddedError::Listen { address, source }))),
            }
        });
        runtime.shutdown_timeout(LAST_WORK);
    };
    let thread = std::thread::Builder::new().name("embedded-s3".to_owned()).spawn(work);
    let thread = thread.map_err(EmbeddedError::Threads)?;
    let address =
        listening.recv().unwrap_or_else(|gone| Err(EmbeddedError::Threads(std::io::Error::other(gone))))?;
    Ok((address, Running { stop, thread }))
}

fn listen(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Accepts connections until the server is stopped; then all of them are closed.
async fn serve(listener: TcpListener, front: Arc<Front>, mut stopped: oneshot::Receiver<()>) {
    let mut http = http1::Builder::new();
    // Clients keep connections between the phases of a run; nothing here closes an idle one.
    http.header_read_timeout(None);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = &mut stopped => return,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Probably out of file descriptors: a connection must end before another can start.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        front.counters.connected();
        // Otherwise small answers wait for acknowledgements of earlier ones. A failure only makes them slower.
        let _ = stream.set_nodelay(true);
        connections.spawn(http.serve_connection(TokioIo::new(stream), Desk(Arc::clone(&front))));
    }
}
