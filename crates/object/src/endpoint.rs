//! Where a server is: its address, looked up once, and how to speak to it.

use crate::job::Http;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidemark_load::engine::OpenError;
use tidemark_reactor::Tls;
use tidemark_tls::{TlsError, Trust};
use url::{Host, Url};

/// One server.
pub(crate) struct Endpoint {
    /// As in a `Host` header: the port is named unless it is the scheme's own.
    pub host: String,
    /// What follows the host in the URL, without a `/` at the end: empty, or e.g. `/v1/AUTH_test`.
    pub base: String,
    /// How to speak TLS to it; `None`: not at all.
    pub tls: Option<Tls>,
    addresses: Vec<SocketAddr>,
    /// The last of the addresses that answered.
    good: AtomicUsize,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Endpoint({})", self.url())
    }
}

/// Makes endpoints that trust the same authorities.
pub(crate) struct Resolver {
    ca_file: Option<std::path::PathBuf>,
    insecure: bool,
    /// Made when first needed: to read the system's authorities takes milliseconds.
    config: std::sync::OnceLock<Arc<ClientConfig>>,
}

impl Resolver {
    /// A resolver with a target's settings.
    pub(crate) fn new(http: &Http) -> Self {
        Self { ca_file: http.ca_file.clone(), insecure: http.insecure, config: std::sync::OnceLock::new() }
    }

    /// Looks an endpoint up.
    ///
    /// # Errors
    /// When the text is no URL of a server, its name cannot be resolved, or TLS cannot be set up.
    pub(crate) fn resolve(&self, text: &str) -> Result<Arc<Endpoint>, OpenError> {
        let wrong = |why: &str| OpenError(format!("the endpoint '{text}' {why}, e.g. http://127.0.0.1:9000"));
        let url = Url::parse(text).map_err(|error| wrong(&format!("is not a URL ({error}): write one")))?;
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(wrong(&format!("has the scheme '{other}': use http or https"))),
        };
        let Some(host) = url.host() else { return Err(wrong("names no host: write a URL with one")) };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OpenError("an endpoint's URL must not contain a user name or password".into()));
        }
        let port = url.port_or_known_default().unwrap_or(80);
        let addresses = addresses(&host, port)?;
        let tls = match secure {
            false => None,
            true => Some(Tls { config: self.config()?, name: server_name(&host)? }),
        };
        let host = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_string(),
        };
        let base = url.path().trim_end_matches('/').to_owned();
        Ok(Arc::new(Endpoint { host, base, tls, addresses, good: AtomicUsize::new(0) }))
    }

    fn config(&self) -> Result<Arc<ClientConfig>, OpenError> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let trust = match &self.ca_file {
            _ if self.insecure => Trust::Any,
            Some(path) => Trust::SystemAndFile(path.clone()),
            None => Trust::System,
        };
        let config = trust.client_config().map_err(|error| match error {
            TlsError::NoAuthorities => OpenError(format!(
                "{error}: name a ca_file, install ca-certificates, or allow any certificate with insecure"
            )),
            error => OpenError(error.to_string()),
        })?;
        Ok(Arc::clone(self.config.get_or_init(|| config)))
    }
}

impl Endpoint {
    /// Scheme and host.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", if self.tls.is_some() { "https" } else { "http" }, self.host)
    }

    /// Its addresses, beginning with the one that last answered, each with its number.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (usize, SocketAddr)> {
        let (first, count) = (self.good.load(Ordering::Relaxed), self.addresses.len());
        (0..count).map(move |step| (first + step) % count).map(|index| (index, self.addresses[index]))
    }

    /// Notes that an address answered.
    pub(crate) fn answered(&self, index: usize) {
        self.good.store(index, Ordering::Relaxed);
    }
}

fn addresses(host: &Host<&str>, port: u16) -> Result<Vec<SocketAddr>, OpenError> {
    let name = match host {
        Host::Ipv4(address) => return Ok(vec![SocketAddr::from((*address, port))]),
        Host::Ipv6(address) => return Ok(vec![SocketAddr::from((*address, port))]),
        Host::Domain(name) => *name,
    };
    let unknown = |why: String| {
        OpenError(format!(
            "cannot resolve the host name '{name}'{why}: check its spelling and this machine's DNS"
        ))
    };
    let found = (name, port).to_socket_addrs().map_err(|error| unknown(format!(" ({error})")))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() { Err(unknown(String::new())) } else { Ok(found) }
}

fn server_name(host: &Host<&str>) -> Result<ServerName<'static>, OpenError> {
    match host {
        Host::Ipv4(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Ipv6(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Domain(name) => ServerName::try_from((*name).to_owned())
            .map_err(|_| OpenError(format!("'{name}' is not a valid host name for a certificate"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<Arc<Endpoint>, OpenError> {
        Resolver::new(&Http::default()).resolve(text)
    }

    #[test]
    fn the_port_is_named_unless_it_is_the_schemes_own() {
        let plain = resolve("http://127.0.0.1:80/").unwrap();
        assert_eq!(
            (plain.host.as_str(), plain.base.as_str(), plain.addresses[0].port()),
            ("127.0.0.1", "", 80)
        );
        let swift = resolve("http://[::1]:8080/v1/AUTH_test/").unwrap();
        assert_eq!((swift.host.as_str(), swift.base.as_str()), ("[::1]:8080", "/v1/AUTH_test"));
        assert_eq!(swift.url(), "http://[::1]:8080");
    }

    #[test]
    fn what_is_no_endpoint_is_refused_with_advice() {
        for wrong in ["127.0.0.1:9000", "", "ftp://host", "http://user:secret@host"] {
            let error = resolve(wrong).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        let unknown = resolve("http://no-such-host.invalid:9000").unwrap_err().to_string();
        assert!(unknown.contains("cannot resolve") && unknown.contains("DNS"), "{unknown}");
    }

    #[test]
    fn all_addresses_are_tried_beginning_with_the_good_one() {
        let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 1)), SocketAddr::from(([127, 0, 0, 2], 1))];
        let endpoint = Endpoint {
            host: String::new(),
            base: String::new(),
            tls: None,
            addresses,
            good: AtomicUsize::new(0),
        };
        endpoint.answered(1);
        assert_eq!(endpoint.addresses().map(|(index, _)| index).collect::<Vec<_>>(), [1, 0]);
    }
}
