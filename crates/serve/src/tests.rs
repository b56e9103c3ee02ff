//! The server as a whole, asked over sockets.

mod description;
mod doors;
mod flows;
mod limits;
mod links;
mod logins;
mod proofs;

use crate::{Limits, Options, OwnToken, Ready, Security, Tokens, serve_with};
use sha2::{Digest as _, Sha256};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidemark_controller::Controller;
use tidemark_controller::api::Role;
use tidemark_fleet::{Fleet, fleet};
use tidemark_measure::record::{Operation, Provenance, Run, Stage, State, Work};
use tidemark_store::Store;

/// Tokens of the tests.
const OPERATOR: &str = "operators-token";
const VIEWER: &str = "viewers-token";
const DRIVER: &str = "drivers-token";

/// A viewer's token that one test revokes, and whether it has.
const PASSING: &str = "passing-token";
static REVOKED: AtomicBool = AtomicBool::new(false);

/// A document that waits for drivers.
const DOCUMENT: &str = r#"<?xml version="1.0"?>
<workload name="tiny" description="">
  <storage type="mock" config=""/>
  <workflow><workstage name="main">
    <work name="main" workers="1" totalOps="10">
      <operation type="read" ratio="100" config="containers=c(1);objects=u(1,10)"/>
    </work>
  </workstage></workflow>
</workload>
"#;

struct Listed;

impl Tokens for Listed {
    fn owner(&self, token: &str) -> Result<Option<(String, Role)>, String> {
        Ok(match token {
            OPERATOR => Some(("olga".into(), Role::Operator)),
            VIEWER => Some(("vera".into(), Role::Viewer)),
            DRIVER => Some(("d1".into(), Role::Driver)),
            PASSING if !REVOKED.load(Ordering::Relaxed) => Some(("paul".into(), Role::Viewer)),
            _ => None,
        })
    }

    fn digests(&self) -> Result<Vec<[u8; 32]>, String> {
        Ok([OPERATOR, VIEWER, DRIVER, PASSING].map(|token| Sha256::digest(token.as_bytes()).into()).to_vec())
    }
}

/// A server that is ended when it is dropped.
struct Server {
    ready: Ready,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    controller: Arc<Controller>,
    fleet: Arc<Fleet>,
    directory: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        self.controller.shut_down();
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the server panicked");
    }
}

fn tokens() -> Security {
    Security::Tokens { tls: None }
}

/// Limits that no test meets by accident.
fn generous() -> Limits {
    Limits {
        requests_per_second: 1e6,
        requests_at_once: 1e6,
        wrong_tokens_per_minute: 1e6,
        ..Limits::default()
    }
}

impl Server {
    fn start(security: Security) -> Self {
        Self::limited(security, generous())
    }

    fn limited(security: Security, limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fleet = Fleet::new(fleet::Options {
            name: "test".into(),
            version: "1".into(),
            silent_after: Duration::from_secs(2),
            gone_after: Duration::from_secs(10),
        });
        let options = tidemark_controller::controller::Options {
            name: "test".into(),
            version: "1".into(),
            registry: tidemark_engines::registry(),
            store: store_in(directory.path()),
            secrets: tidemark_controller::controller::Secrets::default(),
            queue_most: 100,
        };
        let controller = Controller::start(options, fleet.clone()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let options = Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            security,
            own: vec![OwnToken::new("owner", Role::Operator).unwrap()],
            allow_insecure: false,
            name: "test".into(),
            version: "1".into(),
            origins: Vec::new(),
            limits,
        };
        let (say, hear) = mpsc::channel();
        let (core, stopping, drivers) = (controller.clone(), stop.clone(), fleet.clone());
        let thread = std::thread::spawn(move || {
            let ready = |ready| say.send(ready).unwrap();
            serve_with(options, core, drivers, Arc::new(Listed), ready, || stopping.load(Ordering::Relaxed))
                .unwrap();
        });
        let ready = hear.recv_timeout(Duration::from_secs(60)).unwrap();
        Self { ready, stop, thread: Some(thread), controller, fleet, directory }
    }

    fn address(&self) -> SocketAddr {
        self.ready.address
    }

    /// Keeps a run, as if it had been carried out.
    fn keep_run(&self) -> u64 {
        self.keep(&run())
    }

    fn keep(&self, run: &Run) -> u64 {
        let mut store = Store::open(&store_in(self.directory.path())).unwrap();
        store.add(run, &tidemark_store::Listing::default()).unwrap()
    }

    fn ask(&self, method: &str, path: &str) -> TestRequest {
        TestRequest {
            method: method.into(),
            url: format!("{}{}", self.ready.url(), path.trim_start_matches('/')),
            headers: Vec::new(),
            body: None,
        }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path).token(OPERATOR).send()
    }

    fn post(&self, path: &str, body: &serde_json::Value) -> Answer {
        self.ask("POST", path).token(OPERATOR).json(body).send()
    }

    /// Bytes as they are, and what comes back until the other side is done.
    fn raw(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }
}

fn store_in(directory: &Path) -> PathBuf {
    directory.join("results.db")
}

/// A run with something in it.
fn run() -> Run {
    let operation = |label: &str| {
        let mut operation = Operation {
            label: label.into(),
            class: tidemark_measure::kind::OperationClass::named(label),
            weight: 50.0,
            ..Operation::default()
        };
        operation.tally.ok = 100;
        operation.tally.bytes = 409_600;
        (1..=100).for_each(|i| operation.tally.response.record(i * 100_000));
        operation
    };
    let work = Work {
        name: "main".into(),

        workers: 4,
        window_end_ns: 10_000_000_000,
        operations: vec![operation("read"), operation("write")],
        ..Work::default()
    };
    Run {
        name: "Tiny".into(),
        state: State::Completed,
        started_unix_ns: 1_700_000_000_000_000_000,
        elapsed_ns: 11_000_000_000,
        provenance: Provenance::default(),
        stages: vec![Stage {
            id: "s1-main".into(),
            name: "main".into(),
            state: State::Completed,
            works: vec![work],
            ..Stage::default()
        }],
        ..Run::default()
    }
}

/// A request to be.
struct TestRequest {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl TestRequest {
    fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    fn json(self, body: &serde_json::Value) -> Self {
        self.body("application/json", body.to_string().as_bytes())
    }

    fn body(mut self, kind: &str, body: &[u8]) -> Self {
        self.body = Some(body.to_vec());
        self.header("content-type", kind)
    }

    fn send(self) -> Answer {
        let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .proxy(None)
            .max_redirects(0)
            .timeout_global(Some(Duration::from_secs(60)))
            .tls_config(tls)
            .build()
            .new_agent();
        let mut request = ureq::http::Request::builder().method(self.method.as_str()).uri(&self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = match self.body {
            Some(body) => agent.run(request.body(body).unwrap()),
            None => agent.run(request.body(()).unwrap()),
        };
        let response = response.unwrap_or_else(|error| panic!("{} {}: {error}", self.method, self.url));
        let (parts, mut body) = response.into_parts();
        let headers = parts.headers.iter();
        Answer {
            status: parts.status.as_u16(),
            headers: headers
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
                .collect(),
            text: String::from_utf8_lossy(&body.read_to_vec().unwrap()).into_owned(),
        }
    }
}

/// What came back.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    text: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}
