//! How the server is set up, and why it may not start.

use crate::auth::OwnToken;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How the server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// Who may come in.
    pub security: Security,
    /// Tokens that are good for as long as this server runs, beside those of the store.
    pub own: Vec<OwnToken>,
    /// Whether to do without tokens, or without TLS, on an address that other machines reach.
    pub allow_insecure: bool,
    /// The controller's name.
    pub name: String,
    /// Tidemark's version.
    pub version: String,
    /// Other origins from which the console is served, `https://bench.example.org`: those of a proxy in front.
    pub origins: Vec<String>,
    /// What is too much.
    pub limits: Limits,
}

/// Who may come in.
#[derive(Clone, Debug)]
pub enum Security {
    /// Everybody who reaches the address is an operator, as on a machine with a single user. Drivers need tokens all the same.
    Open,
    /// Whoever has a token.
    Tokens {
        /// Without it tokens travel in the clear.
        tls: Option<Tls>,
    },
}

/// Where certificate and key come from.
#[derive(Clone, Debug)]
pub enum Tls {
    /// From PEM files.
    Files {
        /// The certificate, followed by those between it and the root.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
    /// Made at the first start and kept.
    SelfSigned {
        /// Where they are kept.
        directory: PathBuf,
    },
}

/// What is too much.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time; those of drivers that have joined do not count. Those that have shown no token give way to others.
    pub connections: usize,
    /// Requests per second of one caller, in the long run.
    pub requests_per_second: f64,
    /// Requests of one caller at once.
    pub requests_at_once: f64,
    /// Wrong tokens per minute from one address.
    pub wrong_tokens_per_minute: f64,
    /// For a TLS handshake.
    pub handshake: Duration,
    /// For the head of a request, and between two requests of a connection.
    pub head: Duration,
    /// For the body of a request, in whole.
    pub body: Duration,
    /// For a reader that takes nothing of what is sent.
    pub stalled: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            requests_per_second: 50.0,
            requests_at_once: 200.0,
            wrong_tokens_per_minute: 10.0,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(15),
            body: Duration::from_secs(20),
            stalled: Duration::from_secs(30),
        }
    }
}

/// Why the server does not start, or came to an end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It would be open to everybody who reaches the address.
    #[error(
        "{0} is reachable from other machines without {1}: listen on 127.0.0.1, keep security on, \
         or pass --insecure on a trusted network"
    )]
    Insecure(SocketAddr, &'static str),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", remedy(.source))]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("{}: {reason}", path.display())]
    Certificate {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate or a token cannot be made.
    #[error("{what} cannot be made: {reason}")]
    Made {
        /// Which of them.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The threads of the server cannot be made.
    #[error("cannot start the server's threads: {0}")]
    Threads(std::io::Error),
}

/// What to do about an address that cannot be listened on, where that is known.
fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => {
            "; another program listens there, perhaps another controller: use another port"
        }
        ErrorKind::AddrNotAvailable => {
            "; this machine does not have that address: 0.0.0.0 stands for all that it has"
        }
        ErrorKind::PermissionDenied => "; ports below 1024 are for the system: use a higher one",
        _ => "",
    }
}

impl Options {
    /// Refuses what would be open to a network without anybody having said so.
    pub(crate) fn check(&self) -> Result<(), ServeError> {
        let missing = match &self.security {
            Security::Open => "tokens",
            Security::Tokens { tls: None } => "TLS",
            Security::Tokens { tls: Some(_) } => return Ok(()),
        };
        match self.allow_insecure || self.listen.ip().is_loopback() {
            true => Ok(()),
            false => Err(ServeError::Insecure(self.listen, missing)),
        }
    }
}
