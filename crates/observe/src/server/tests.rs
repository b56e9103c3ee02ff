//! Requests over loopback, valid and not.

use super::*;
use crate::{Observer, RemoteNode};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// Nothing here takes that long, on any machine.
const HANG: Duration = Duration::from_secs(60);

/// A server on a free port, until it is dropped.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    fn start(token: Option<&str>) -> Self {
        Self::with(token, None)
    }

    fn with(token: Option<&str>, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let thread = thread::spawn({
            let (stop, token) = (Arc::clone(&stop), token.map(str::to_owned));
            move || {
                run(listener, Options::default(), token, tls, || stop.load(Ordering::Relaxed)).unwrap();
            }
        });
        Self { address, stop, thread: Some(thread) }
    }

    fn ask(&self, head: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    /// Asks until there is a sample.
    fn metrics(&self) -> String {
        loop {
            let reply = self.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
            if reply.contains("tidemark_cpu_busy_ratio") {
                return reply;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(thread::JoinHandle::join);
    }
}

#[test]
fn metrics_are_served_as_openmetrics() {
    let server = Server::start(None);
    let reply = server.metrics();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains(openmetrics::CONTENT_TYPE), "{head}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
    assert!(
        body.contains("tidemark_network_rx_bytes_per_second{device=\"lo\"}") && body.ends_with("# EOF\n"),
        "{body}"
    );
}

#[test]
fn other_requests_are_refused() {
    let server = Server::start(None);
    let status = |head: &str| server.ask(head)[9..12].to_owned();
    assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "404");
    assert_eq!(status("POST /metrics HTTP/1.1\r\n\r\n"), "405");
    assert_eq!(status("\u{1}\u{2}\r\n\r\n"), "400");
    assert_eq!(
        status(&format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(20_000))),
        "431",
        "no head is that long"
    );
    assert_eq!(status(&format!("GET / HTTP/1.1\r\n{}\r\n", "A: 1\r\n".repeat(MAX_HEADERS + 1))), "431");
}

#[test]
fn silent_connections_do_not_block_others() {
    let server = Server::start(None);
    let silent: Vec<TcpStream> =
        (0..MAX_CONNECTIONS - 1).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    assert!(server.ask("GET /samples HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    drop(silent);
}

#[test]
fn every_request_needs_the_token() {
    let server = Server::start(Some("secret"));
    let status =
        |header: &str| server.ask(&format!("GET /samples HTTP/1.1\r\n{header}\r\n"))[9..12].to_owned();
    assert_eq!(status(""), "401");
    assert_eq!(status("Authorization: Bearer secre\r\n"), "401");
    assert_eq!(status("Authorization: Bearer secrets\r\n"), "401");
    assert_eq!(status("Authorization: Bearer secret\r\n"), "200");
}

#[test]
fn other_machines_need_a_token() {
    let listen = SocketAddr::from(([0, 0, 0, 0], 0));
    for token in [None, Some(String::new())] {
        let error =
            serve(listen, Options { token, ..Options::default() }, None, |_| {}, || true).unwrap_err();
        assert!(matches!(error, ServeError::Token(_)), "{error}");
    }
    assert!(serve(SocketAddr::from(([127, 0, 0, 1], 0)), Options::default(), None, |_| {}, || true).is_ok());
}

#[test]
fn short_tokens_are_refused() {
    for listen in ["0.0.0.0:0", "127.0.0.1:0"] {
        let options = Options { token: Some("abc".into()), ..Options::default() };
        let error = serve(listen.parse().unwrap(), options, None, |_| {}, || true).unwrap_err();
        assert!(matches!(error, ServeError::Short), "{error}");
    }
}

#[test]
fn pages_of_other_sites_are_not_answered() {
    let server = Server::start(None);
    let status =
        |host: &str| server.ask(&format!("GET /samples HTTP/1.1\r\nHost: {host}\r\n\r\n"))[9..12].to_owned();
    for host in ["evil.example", "evil.example:9750", "127.0.0.1.evil.example", ""] {
        assert_eq!(status(host), "403", "{host}");
    }
    for host in ["127.0.0.1:9750", "[::1]:9750", "localhost", "10.0.0.9:9750"] {
        assert_eq!(status(host), "200", "{host}");
    }
}

#[test]
fn who_guesses_tokens_has_to_wait() {
    let server = Server::start(Some("a-token-that-is-long"));
    let status = |token: &str| {
        server.ask(&format!("GET /samples HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n"))[9..12]
            .to_owned()
    };
    for guess in 0..=MAX_WRONG {
        assert_eq!(status(&format!("guess-{guess}")), "401");
    }
    assert_eq!(status("another"), "429");
    assert_eq!(status("a-token-that-is-long"), "200", "nobody shuts out who has it");
    assert_eq!(status("another"), "429");
}

#[test]
fn a_crowd_that_only_waits_gives_way_to_whoever_comes() {
    let mut clients = Clients { draw: Rng::new(1, &[]), ..Clients::default() };
    let [crowd, other] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
    let (own, _) = clients.enter(other);
    let waiting: Vec<u64> = (0..2 * MAX_CONNECTIONS).map(|_| clients.enter(crowd).0).collect();
    assert_eq!(clients.connections.len(), MAX_CONNECTIONS);
    assert!(clients.connections.contains_key(&own), "the crowd gives way to itself");
    let left =
        waiting[..MAX_CONNECTIONS / 2].iter().filter(|one| clients.connections.contains_key(one)).count();
    assert!(left > MAX_CONNECTIONS / 16, "{left}: not the oldest first");
    clients.leave(own);
    clients.leave(own);
    assert_eq!(clients.connections.len(), MAX_CONNECTIONS - 1);
    // Of addresses with one connection each, too, none is safe from the others.
    let mut clients = Clients { draw: Rng::new(1, &[]), ..Clients::default() };
    let spread: Vec<u64> = (0..4 * MAX_CONNECTIONS as u32)
        .map(|last| clients.enter(IpAddr::from(last.to_be_bytes())).0)
        .collect();
    let left = |part: &[u64]| part.iter().filter(|one| clients.connections.contains_key(one)).count();
    let (old, new) = spread.split_at(2 * MAX_CONNECTIONS);
    assert!(left(old) > 0 && left(new) > 0, "{} {}", left(old), left(new));
}

#[test]
fn requests_are_answered_beside_many_that_never_end() {
    let server = Server::start(Some("a-token-that-is-long"));
    let mut crowd = Vec::new();
    for _ in 0..4 {
        for _ in 0..MAX_CONNECTIONS {
            let mut one = TcpStream::connect(server.address).unwrap();
            one.write_all(b"GET /samples HTTP/1.1\r\nHost: ").unwrap();
            crowd.push(one);
        }
        let reply = server
            .ask("GET /samples HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a-token-that-is-long\r\n\r\n");
        assert_eq!(&reply[9..12], "200");
    }
}

#[test]
fn handshakes_are_over_beside_a_crowd_that_begins_them_and_connects_anew() {
    let (tls, print) = certified();
    let server = Server::with(Some("a-token-that-is-long"), Some(tls));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // As many as found the honest ones out, several times as many as there used to be places.
        for _ in 0..8 {
            scope.spawn(|| {
                let begin = || -> Option<TcpStream> {
                    let mut one = TcpStream::connect(server.address).ok()?;
                    one.write_all(&[0x16, 3, 1, 2, 0, 1]).ok()?;
                    one.set_nonblocking(true).ok()?;
                    Some(one)
                };
                let mut crowd: Vec<Option<TcpStream>> = (0..40).map(|_| begin()).collect();
                while !over.load(Ordering::Relaxed) {
                    for one in &mut crowd {
                        let is_waiting = one.as_mut().is_some_and(|one| {
                            one.read(&mut [0; 64])
                                .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
                        });
                        if !is_waiting {
                            *one = begin();
                        }
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let url = format!("https://{}#sha256:{print}", server.address);
        let answered: Vec<bool> =
            (0..6).map(|_| !seen_at(&url, "a-token-that-is-long").at_ns.is_empty()).collect();
        over.store(true, Ordering::Relaxed);
        assert_eq!(answered, [true; 6]);
    });
}

/// A certificate, and its fingerprint.
fn certified() -> (Arc<ServerConfig>, String) {
    let certified = rcgen::generate_simple_self_signed(["elsewhere".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let print = tidemark_tls::fingerprint(certified.cert.der());
    (Arc::new(config), print.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What a run sees of a node at this address.
fn seen_at(url: &str, token: &str) -> tidemark_measure::observation::Node {
    let node = RemoteNode { url: url.into(), token: Some(token.into()), name: None };
    let options = Options { nodes: vec![node], ..Options::default() };
    let (start, observer) = (Instant::now(), Observer::start(&options, Instant::now()));
    while start.elapsed() < HANG && observer.latest().iter().all(|one| one.generates) {
        if start.elapsed() > Duration::from_secs(4) {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    observer.finish().remove(1)
}

#[test]
fn with_tls_a_node_is_known_by_its_fingerprint() {
    let (tls, print) = certified();
    let server = Server::with(Some("secret"), Some(tls));
    let node = seen_at(&format!("https://{}#sha256:{print}", server.address), "secret");
    assert!(!node.at_ns.is_empty(), "{:?}", node.gaps);
    let wrong: String = print.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
    let node = seen_at(&format!("https://{}#sha256:{wrong}", server.address), "secret");
    assert!(node.at_ns.is_empty() && !node.gaps.is_empty(), "it was believed");
}

#[test]
fn a_run_on_another_node_sees_this_one() {
    let server = Server::start(Some("secret"));
    let url = format!("http://{}", server.address);
    let node = |token| RemoteNode { url: url.clone(), token, name: None };
    let watch = |token| Options { nodes: vec![node(token)], ..Options::default() };
    let options = watch(Some("secret".to_owned()));
    let start = Instant::now();
    let observer = Observer::start(&options, start);
    let mut seen = BTreeSet::new();
    while seen.len() < 2 {
        seen.extend(observer.latest().iter().filter(|one| !one.generates).map(|one| one.at_ns));
        assert!(start.elapsed() < HANG, "{seen:?}");
        thread::sleep(Duration::from_millis(20));
    }
    let nodes = observer.finish();
    let took = observer::nanoseconds(start.elapsed());
    let node = &nodes[1];
    assert_eq!((node.source.as_str(), node.generates), (url.as_str(), false));
    assert_eq!(node.name, nodes[0].name, "it is the same machine");
    assert!(node.at_ns.len() >= 2, "{:?} {:?}", node.at_ns, node.gaps);
    assert!(node.at_ns.is_sorted() && node.at_ns.iter().all(|at| *at < took), "{:?} of {took}", node.at_ns);
    assert!(node.all(tidemark_measure::observation::Kind::Cpu, "busy").next().is_some());
    // The last request is made when it ends.
    let told = |token| Observer::start(&watch(token), Instant::now()).finish().remove(1).gaps.remove(0);
    let (none, wrong) = (told(None), told(Some("guessed".to_owned())));
    assert!(none.contains("a token, and got none"), "{none}");
    assert!(wrong.contains("the one that it got is wrong"), "{wrong}");
}

#[test]
fn readers_get_the_samples_that_they_missed() {
    let mut recent = Recent::default();
    recent.page.started_unix_ns = 5;
    for number in 1..=4 {
        recent.samples.push_back((Instant::now(), Numbered { number, ..Numbered::default() }));
    }
    let numbers = |query: &str| -> Vec<u64> {
        page(&recent, query).samples.iter().map(|sample| sample.number).collect()
    };
    assert_eq!(numbers(""), [4]);
    assert_eq!(numbers("started=5&after=2"), [3, 4]);
    assert_eq!(numbers("started=4&after=9"), [4], "the observer was restarted");
    assert_eq!(numbers("after=x&&="), [4]);
}
