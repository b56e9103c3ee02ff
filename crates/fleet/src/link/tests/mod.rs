//! A controller's end of the link, drivers, and a network that fails as it is told.

mod cuts;
mod nonsense;
mod sessions;
mod trusting;

use super::*;
use crate::Fleet;
use crate::fleet::{FromDriver, Member, Options, Presence, Visitor};
use crate::protocol::{Hello, VERSION};
use axum::extract::ws::WebSocketUpgrade;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use crossbeam_channel::Receiver;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tidemark_plan::secret::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Long enough for any machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A controller's end: a fleet behind axum.
struct Host {
    fleet: Arc<Fleet>,
    address: SocketAddr,
    runtime: tokio::runtime::Runtime,
}

fn options() -> Options {
    Options {
        version: "1.2.3".into(),
        silent_after: Duration::from_secs(1),
        gone_after: TIMEOUT,
        name: "lighthouse".into(),
    }
}

/// What axum is to do with a driver; those without a token are refused. One token is for all names, two are for `d1`.
fn router(fleet: &Arc<Fleet>) -> axum::Router {
    let fleet = Arc::clone(fleet);
    let upgrade = |upgrade: WebSocketUpgrade, headers: HeaderMap| async move {
        let given = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let token = match given {
            "Bearer let me in" => "*",
            "Bearer I am d1" => "d1",
            _ => return StatusCode::UNAUTHORIZED.into_response(),
        };
        let visitor = Visitor { address: "somewhere".into(), token: token.into() };
        let serve = |socket| async move { fleet.serve(socket, visitor, &Intake::default(), || ()).await };
        limits(upgrade).on_upgrade(serve)
    };
    axum::Router::new().route(PATH, axum::routing::get(upgrade))
}

impl Host {
    fn new(options: Options) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let fleet = Fleet::new(options);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let router = router(&fleet);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { fleet, address, runtime }
    }

    fn member(&self, name: &str) -> Option<Member> {
        self.fleet.members().into_iter().find(|member| member.hello.name == name)
    }

    fn presence(&self, name: &str) -> Option<Presence> {
        self.member(name).map(|member| member.presence)
    }

    /// A driver that is joined and present.
    fn driver(&self, name: &str, address: SocketAddr) -> Link {
        let link = join(to(address), hello(name)).unwrap();
        assert!(matches!(next(&link), FromController::Joined { name, anew: false } if name == "lighthouse"));
        wait(|| self.presence(name) == Some(Presence::Present));
        link
    }

    fn claim(&self, name: &str, run: u64) -> Receiver<(u32, FromDriver)> {
        let (sender, heard) = crossbeam_channel::unbounded();
        self.fleet.claim(name, run, 7, sender).unwrap();
        heard
    }
}

fn to(address: SocketAddr) -> Join {
    Join { url: format!("http://{address}"), token: Some(Secret::new("let me in")), trust: Trust::Any }
}

fn hello(name: &str) -> Hello {
    let instance = getrandom::u64().unwrap();
    Hello { protocol: VERSION, tidemark: "1.2.3".into(), name: name.into(), instance, ..Hello::default() }
}

/// What the driver hears next, trouble with the connection left aside.
fn next(link: &Link) -> FromController {
    loop {
        match link.incoming.recv_timeout(TIMEOUT).expect("the driver to hear something") {
            FromController::Unreachable(_) => {}
            heard => return heard,
        }
    }
}

fn wait(mut until: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !until() {
        assert!(begin.elapsed() < TIMEOUT, "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A network between driver and controller.
#[derive(Clone)]
struct Network {
    address: SocketAddr,
    state: Arc<NetworkState>,
}

struct NetworkState {
    target: Mutex<SocketAddr>,
    /// Nothing gets through, and nobody is told.
    swallows: AtomicBool,
    /// How many more connections are to be cut somewhere.
    cuts: AtomicUsize,
    connections: AtomicUsize,
    random: AtomicU64,
    ends: Mutex<Vec<Arc<tokio::sync::Notify>>>,
}

impl Network {
    fn new(host: &Host) -> Self {
        let listener = host.runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let state = Arc::new(NetworkState {
            target: Mutex::new(host.address),
            swallows: AtomicBool::new(false),
            cuts: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            random: AtomicU64::new(42),
            ends: Mutex::default(),
        });
        let network = Self { address: listener.local_addr().unwrap(), state: Arc::clone(&state) };
        host.runtime.spawn(async move {
            while let Ok((driver, _)) = listener.accept().await {
                let state = Arc::clone(&state);
                tokio::spawn(async move { state.carry(driver).await });
            }
        });
        network
    }

    /// Cuts all connections that there are.
    fn cut(&self) {
        self.state.ends.lock().unwrap().drain(..).for_each(|end| end.notify_one());
    }

    fn swallow(&self, swallows: bool) {
        self.state.swallows.store(swallows, Ordering::SeqCst);
    }
}

impl NetworkState {
    async fn carry(&self, mut driver: TcpStream) {
        self.connections.fetch_add(1, Ordering::SeqCst);
        let target = *self.target.lock().unwrap();
        let Ok(mut controller) = TcpStream::connect(target).await else { return };
        let end = Arc::new(tokio::sync::Notify::new());
        self.ends.lock().unwrap().push(Arc::clone(&end));
        let budget = self.budget();
        let (mut there, mut back) = (vec![0; 4096], vec![0; 4096]);
        let mut carried = 0;
        loop {
            let (count, bytes, to) = tokio::select! {
                read = driver.read(&mut there) => (read, &there, &mut controller),
                read = controller.read(&mut back) => (read, &back, &mut driver),
                () = end.notified() => return,
            };
            let Ok(count @ 1..) = count else { return };
            if self.swallows.load(Ordering::SeqCst) {
                continue;
            }
            let passes = count.min(budget - carried);
            if to.write_all(&bytes[..passes]).await.is_err() {
                return;
            }
            carried += passes;
            if carried == budget {
                return;
            }
        }
    }

    /// After how many bytes a connection is cut: some at once, some while they shake hands, most later.
    fn budget(&self) -> usize {
        let left = |cuts: usize| cuts.checked_sub(1);
        if self.cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_err() {
            return usize::MAX;
        }
        let step = |random: u64| Some(random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        let random = self.random.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step).unwrap() >> 33;
        let most = if random.is_multiple_of(4) { 1_000 } else { 30_000 };
        1 + (random / 4 % most) as usize
    }
}
