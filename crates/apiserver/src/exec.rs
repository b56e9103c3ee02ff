//! A command in a pod: `pods/exec` over a WebSocket, whose messages begin with the number of a channel
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/>, `v5.channel.k8s.io`).

use crate::client::Failure;
use crate::kubeconfig::Access;
use rustls::client::ResolvesClientCert;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde::Deserialize;
use std::fmt::Display;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_keys::secret::Secret;
use tidemark_tls::Trust;
use tungstenite::http::Uri;
use tungstenite::{ClientRequestBuilder, Error, HandshakeError, Message, WebSocket, client};

const PROTOCOL: &str = "v5.channel.k8s.io";

/// The channels that are read: what the command prints, and what became of it.
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;

/// What a command may print at most, bytes.
const LONGEST: usize = 64 << 20;

/// What became of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it said beside that.
    pub stderr: Vec<u8>,
    /// Why it is not done well; `None`: it is.
    pub failed: Option<Failed>,
}

/// Why a command is not done well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What it exited with; `None`: it did not come to that.
    pub code: Option<i32>,
    /// The same, or what came before, in Kubernetes' words.
    pub why: String,
}

/// What is said of a command at its end.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    status: String,
    message: String,
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    causes: Vec<Cause>,
}

/// What a status is about: the code that a command exited with is one with the reason `ExitCode`, and its message
/// (`k8s.io/client-go/tools/remotecommand`, version 4 of the protocol and later).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
}

impl Status {
    fn failed(self) -> Option<Failed> {
        let code = self.details.causes.iter().find(|cause| cause.reason == "ExitCode");
        let code = code.and_then(|cause| cause.message.parse().ok());
        (self.status != "Success").then_some(Failed { code, why: self.message })
    }
}

/// A connection, encrypted or not.
trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// How the API server is verified, and who asks.
pub(crate) fn tls(
    access: &Access,
    certificate: Option<&(Vec<u8>, Secret)>,
) -> Result<Arc<ClientConfig>, Failure> {
    let config = match &access.authority {
        _ if access.unverified => Trust::Any.client_config().map_err(unusable)?,
        None => Trust::System.client_config().map_err(unusable)?,
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            for root in CertificateDer::pem_slice_iter(authority) {
                roots.add(root.map_err(unusable)?).map_err(unusable)?;
            }
            let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(unusable)?;
            Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
        }
    };
    let Some((chain, key)) = certificate else { return Ok(config) };
    let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().map_err(unusable)?;
    let key = PrivateKeyDer::from_pem_slice(key.reveal().as_bytes()).map_err(unusable)?;
    let own = CertifiedKey::from_der(chain, key, &default_provider()).map_err(unusable)?;
    let shown: Arc<dyn ResolvesClientCert> = Arc::new(SingleCertAndKey::from(own));
    let mut config = Arc::unwrap_or_clone(config);
    config.client_auth_cert_resolver = shown;
    Ok(Arc::new(config))
}

/// Runs the command that a path on a server names.
pub(crate) fn run(
    (server, path): (&str, &str),
    authorization: Option<&Secret>,
    tls: Arc<ClientConfig>,
    most: Duration,
) -> Result<Ran, Failure> {
    let until = Instant::now() + most;
    let wrong =
        |why: &dyn Display| Failure::Config(format!("{server} is not the address of a server: {why}"));
    let url = url::Url::parse(server).map_err(|error| wrong(&error))?;
    let host = url.host_str().ok_or_else(|| wrong(&"it has no host"))?.trim_matches(['[', ']']);
    let port = url.port_or_known_default().ok_or_else(|| wrong(&"it has no port"))?;
    let socket = connect(host, port, until)?;
    let timer = socket.try_clone().map_err(away)?;
    let stream: Box<dyn Stream> = match url.scheme() {
        "https" => {
            let name = ServerName::try_from(host.to_owned()).map_err(|error| wrong(&error))?;
            Box::new(StreamOwned::new(ClientConnection::new(tls, name).map_err(away)?, socket))
        }
        _ => Box::new(socket),
    };
    // `ws` and `wss` are what a library for WebSockets calls `http` and `https`.
    let uri: Uri =
        format!("{}{path}", server.replacen("http", "ws", 1)).parse().map_err(|error| wrong(&error))?;
    let mut request = ClientRequestBuilder::new(uri).with_sub_protocol(PROTOCOL);
    if let Some(authorization) = authorization {
        request = request.with_header("Authorization", authorization.reveal());
    }
    patience(&timer, until)?;
    let socket = match client(request, stream) {
        Ok((socket, _)) => socket,
        Err(HandshakeError::Failure(Error::Http(answer))) => {
            let body = answer.body().as_deref().unwrap_or_default();
            return Err(Failure::refused(answer.status().as_u16(), body));
        }
        Err(HandshakeError::Failure(error)) => return Err(broken(&error)),
        Err(HandshakeError::Interrupted(_)) => return Err(late()),
    };
    read(socket, || patience(&timer, until))
}

fn connect(host: &str, port: u16, until: Instant) -> Result<TcpStream, Failure> {
    let mut last = None;
    for address in (host, port).to_socket_addrs().map_err(away)? {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| Failure::Away(format!("{host} has no address")), away))
}

/// Reads what a command prints until it ends. `wait` is called before each wait for it.
fn read<S: Read + Write>(
    mut socket: WebSocket<S>,
    mut wait: impl FnMut() -> Result<(), Failure>,
) -> Result<Ran, Failure> {
    let mut ran = Ran::default();
    loop {
        wait()?;
        let message = match socket.read().map_err(|error| broken(&error))? {
            Message::Binary(message) => message,
            Message::Close(_) => {
                return Err(Failure::Away("it does not say what became of the command".into()));
            }
            _ => continue,
        };
        match message.split_first() {
            Some((&STDOUT, text)) => ran.stdout.extend(text),
            Some((&STDERR, text)) => ran.stderr.extend(text),
            Some((&STATUS, text)) => {
                let said: Status = serde_json::from_slice(text).unwrap_or_default();
                ran.failed = said.failed();
                return Ok(ran);
            }
            _ => {}
        }
        if ran.stdout.len() + ran.stderr.len() > LONGEST {
            return Err(Failure::Away(format!("the command printed more than {} MiB", LONGEST >> 20)));
        }
    }
}

/// Lets the next wait take no longer than is left.
fn patience(socket: &TcpStream, until: Instant) -> Result<(), Failure> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(late());
    }
    socket.set_read_timeout(Some(left)).and_then(|()| socket.set_write_timeout(Some(left))).map_err(away)
}

fn broken(error: &Error) -> Failure {
    match error {
        Error::Io(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => late(),
        error => Failure::Away(tidemark_tls::words(error)),
    }
}

fn late() -> Failure {
    Failure::Away("the command has not ended in time".into())
}

fn away(error: impl Display) -> Failure {
    Failure::Away(tidemark_tls::words(&error))
}

fn unusable(error: impl Display) -> Failure {
    Failure::Config(format!("the certificates of the kubeconfig cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread::JoinHandle;
    use tungstenite::handshake::server::{Request, Response};
    use tungstenite::{Bytes, accept_hdr};

    /// A server that sends these messages to the first who asks, and gives the path that was asked for.
    fn server(messages: Vec<&'static [u8]>) -> (String, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = std::thread::spawn(move || {
            let mut path = String::new();
            #[allow(clippy::result_large_err, reason = "the library's own interface")]
            let accept = |request: &Request, mut response: Response| {
                path = request.uri().to_string();
                let offered = request.headers()["Sec-WebSocket-Protocol"].clone();
                response.headers_mut().insert("Sec-WebSocket-Protocol", offered);
                Ok(response)
            };
            let mut socket = accept_hdr(listener.accept().unwrap().0, accept).unwrap();
            messages
                .into_iter()
                .for_each(|one| socket.send(Message::Binary(Bytes::from_static(one))).unwrap());
            let _until_it_is_left = socket.read();
            path
        });
        (address, asked)
    }

    fn run_at(address: &str, most: Duration) -> Result<Ran, Failure> {
        let tls = Trust::Any.client_config().unwrap();
        run((address, "/pods/a/exec?command=ls"), None, tls, most)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_command_prints_is_told_apart_until_it_ends() {
        let (address, asked) = server(vec![
            b"\x01",
            b"\x01one ",
            b"\x02Error",
            b"\x01two",
            b"\x03{\"status\":\"Failure\",\"message\":\"it failed\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\",\"message\":\"2\"}]}}",
            b"\x01late",
        ]);
        let ran = run_at(&address, LONG).unwrap();
        assert_eq!((ran.stdout.as_slice(), ran.stderr.as_slice()), (&b"one two"[..], &b"Error"[..]));
        assert_eq!(ran.failed, Some(Failed { code: Some(2), why: "it failed".into() }));
        assert_eq!(asked.join().unwrap(), "/pods/a/exec?command=ls");
        let (address, _asked) = server(vec![b"\x03{\"status\":\"Failure\",\"message\":\"no such program\"}"]);
        assert_eq!(
            run_at(&address, LONG).unwrap().failed,
            Some(Failed { code: None, why: "no such program".into() })
        );
        let (address, _asked) = server(vec![b"\x03{\"status\":\"Success\"}"]);
        assert_eq!(run_at(&address, LONG).unwrap(), Ran::default());
    }

    #[test]
    fn one_that_does_not_end_is_left() {
        let (address, _asked) = server(vec![b"\x01one"]);
        let error = run_at(&address, Duration::from_millis(200)).unwrap_err();
        assert!(error.is_away() && error.to_string().contains("not ended in time"), "{error}");
    }

    #[test]
    fn a_refusal_has_its_reason() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _request = stream.read(&mut [0; 4096]).unwrap();
            let body = "{\"message\":\"u cannot create resource\"}";
            let head = format!("HTTP/1.1 403 Forbidden\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
            let _until_it_is_left = stream.read(&mut [0; 1]);
        });
        let error = run_at(&address, LONG).unwrap_err();
        assert!(error.is_forbidden(), "{error}");
        assert_eq!(error.to_string(), "u cannot create resource");
    }
}
