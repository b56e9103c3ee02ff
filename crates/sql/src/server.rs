//! Where a database is: its addresses, looked up once, and how to speak to it.

use crate::failure::Failure;
use crate::job::{Endpoint, Target, Tls as Mode};
use rustls::pki_types::ServerName;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::rc::Rc;
use tidemark_load::engine::{OpenError, Tick};
use tidemark_measure::fault::Fault;
use tidemark_reactor::{Reactor, Tls, Transport};
use tidemark_tls::Trust;

/// A database's servers. Shared by all threads of a work.
pub struct Server {
    /// What the document says of it.
    pub target: Target,
    endpoints: Vec<Place>,
}

/// One of them.
struct Place {
    at: At,
    tls: Option<Tls>,
}

enum At {
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
}

impl Server {
    /// Looks the endpoints of a target up.
    ///
    /// # Errors
    /// When a name cannot be resolved, or TLS cannot be set up.
    pub fn resolve(target: &Target) -> Result<Self, OpenError> {
        let place = |endpoint: &Endpoint| {
            let (host, port) = match endpoint {
                Endpoint::Unix(path) => return Ok(Place { at: At::Unix(path.clone()), tls: None }),
                Endpoint::Tcp(host, port) => (host.as_str(), *port),
            };
            let addresses = (host, port).to_socket_addrs().map(Vec::from_iter).unwrap_or_default();
            if addresses.is_empty() {
                return Err(OpenError(format!("the host '{host}' cannot be resolved: check its name")));
            }
            Ok(Place { at: At::Tcp(addresses), tls: tls(target, host)? })
        };
        let endpoints = target.endpoints.iter().map(place).collect::<Result<_, _>>()?;
        Ok(Self { target: target.clone(), endpoints })
    }

    /// How many endpoints it has.
    pub fn endpoints(&self) -> usize {
        self.endpoints.len()
    }

    /// How to speak TLS to an endpoint, where that is wanted.
    pub fn tls(&self, endpoint: usize) -> Option<&Tls> {
        self.endpoints[endpoint].tls.as_ref()
    }

    /// Connects to an endpoint, in plain text: to the first of its addresses that answers.
    ///
    /// # Errors
    /// Why it could not be.
    pub async fn connect(
        &self,
        reactor: &Rc<Reactor>,
        endpoint: usize,
        deadline: Tick,
    ) -> Result<Transport, Failure> {
        let addresses = match &self.endpoints[endpoint].at {
            At::Unix(path) => return Ok(Transport::connect_unix(reactor, path, deadline).await?),
            At::Tcp(addresses) => addresses,
        };
        let mut failure = Failure::lost(Fault::Unreachable, "the host has no address");
        for address in addresses {
            match Transport::connect(reactor, *address, None, deadline).await {
                Ok(transport) => return Ok(transport),
                Err(error) => failure = Failure::broken(&error),
            }
        }
        Err(failure)
    }
}

fn tls(target: &Target, host: &str) -> Result<Option<Tls>, OpenError> {
    let trust = match (target.tls, &target.ca_file) {
        (Mode::Disable, _) => return Ok(None),
        (Mode::Prefer | Mode::Require, _) => Trust::Any,
        (Mode::Verify, Some(path)) => Trust::SystemAndFile(path.clone()),
        (Mode::Verify, None) => Trust::System,
    };
    let config = trust.client_config().map_err(|error| OpenError(error.to_string()))?;
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| OpenError(format!("'{host}' is no name that a certificate can be for")))?;
    Ok(Some(Tls { config, name }))
}
