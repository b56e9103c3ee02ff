//! Whether a page of another site made the browser ask.
//!
//! A server on loopback is reached by every page that the user's browser shows: by name, once that name points to
//! 127.0.0.1 (DNS rebinding), so the `Host` has to be this machine's, or on other addresses no name that somebody else may
//! have made up; and blindly, by a form that is sent here, so
//! an `Origin` has to be ours. With tokens, only what a remembered password vouches for needs the second, and logging in.

use crate::answer::ApiError;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use std::net::{IpAddr, SocketAddr};

/// What is known of how the server is reached.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    listen: SocketAddr,
    open: bool,
    tls: bool,
    origins: Vec<String>,
}

impl Gate {
    /// `open`: nobody needs a token. `origins`: further ones that are ours.
    pub(crate) fn new(listen: SocketAddr, open: bool, tls: bool, origins: Vec<String>) -> Self {
        let plain = |origin: String| origin.trim_end_matches('/').to_ascii_lowercase();
        Self { listen, open, tls, origins: origins.into_iter().map(plain).collect() }
    }

    fn port(&self) -> u16 {
        self.listen.port()
    }

    /// Refuses what another site's page may have asked for.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), ApiError> {
        let host = host(parts);
        if self.open && !self.is_named_rightly(host.as_deref()) {
            let message = match self.listen.ip().is_loopback() {
                true => format!(
                    "the Host header does not name this machine: use http://localhost:{}, or start the controller without --open",
                    self.port()
                ),
                false => "the Host header has a name that this controller does not know: use its IP address, or allow the \
                          name with --origin"
                    .to_owned(),
            };
            return Err(ApiError::new(StatusCode::FORBIDDEN, message));
        }
        let changes = !matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
        let matters = self.open || (changes && !has_bearer(&parts.headers));
        let is_others = match origin(&parts.headers) {
            Some(origin) => matters && !self.is_ours(&origin, host.as_deref()),
            // Links lead here from anywhere, and show nothing to the page that has them.
            None => matters && changes && is_of_another_site(&parts.headers),
        };
        if is_others {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "the request came from another site's page: if it is your proxy, allow it with --origin",
            ));
        }
        Ok(())
    }

    /// Whether no page of somebody else's name can have asked: a name that is pointed here shows in the header.
    fn is_named_rightly(&self, host: Option<&str>) -> bool {
        if self.listen.ip().is_loopback() {
            return self.is_this_machine(host);
        }
        let Some(host) = host else { return false };
        let name = name_of(host);
        let is_address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        is_address
            || name == "localhost"
            || crate::tls::host_name().is_some_and(|own| own.eq_ignore_ascii_case(name))
            || self.origins.iter().any(|origin| origin.split_once("://").is_some_and(|(_, own)| own == host))
    }

    fn is_this_machine(&self, host: Option<&str>) -> bool {
        let Some(host) = host else { return false };
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host, Some(if self.tls { 443 } else { 80 })),
        };
        let ip = self.listen.ip();
        let own = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
        let known = ["localhost", "127.0.0.1", "[::1]"].contains(&name) || name == own;
        known && port == Some(self.port())
    }

    fn is_ours(&self, origin: &str, host: Option<&str>) -> bool {
        let scheme = if self.tls { "https" } else { "http" };
        host.is_some_and(|host| origin == format!("{scheme}://{host}"))
            || self.origins.iter().any(|own| own == origin)
    }
}

/// Whether the request has what no page of another origin can make a browser send. Browsers add `Basic` by themselves, so it vouches
/// for the user and not for the page.
fn has_bearer(headers: &HeaderMap) -> bool {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    given
        .and_then(|value| value.split_once(' '))
        .is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
}

/// Whether the browser reports that a page of another origin made it ask (Fetch Metadata, *Sec-Fetch-Site*).
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let from = headers.get("sec-fetch-site").map(|value| value.to_str().unwrap_or_default());
    from.is_some_and(|from| !matches!(from, "same-origin" | "none"))
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    }
}

fn host(parts: &Parts) -> Option<String> {
    let own = parts.headers.get(header::HOST).map(|value| value.to_str().unwrap_or_default());
    own.or(parts.uri.authority().map(axum::http::uri::Authority::as_str)).map(str::to_ascii_lowercase)
}

/// What the browser says about the page, if one asks; an unreadable one is nobody's.
fn origin(headers: &HeaderMap) -> Option<String> {
    headers.get(header::ORIGIN).map(|value| value.to_str().unwrap_or("null").to_ascii_lowercase())
}
