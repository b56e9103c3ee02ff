//! `tidemark observe`: what this node does, for a Tidemark elsewhere and for Prometheus.

use crate::cli;
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use crate::terminal::Terminal;
use std::net::SocketAddr;
use tidemark_control::event::StopRequest;
use tidemark_observe::{Options, server};
use tidemark_serve::{Identity, Tls};

/// Serves until the user stops it.
pub(crate) fn observe(arguments: &cli::Observe, terminal: Terminal) -> Result<Exit, Stop> {
    let options = Options {
        processes: arguments.processes.clone(),
        ceph_sockets: arguments.ceph_sockets.clone(),
        token: arguments.token.clone(),
        ..Options::default()
    };
    let identity = tls(arguments).map(|tls| Identity::read(&tls, arguments.listen.ip())).transpose();
    let identity = identity.map_err(Stop::not_ready)?;
    let signals = Signals::listen();
    let ready = |address: SocketAddr| {
        let scheme = if identity.is_some() { "https" } else { "http" };
        terminal.remark(&format!("serving {scheme}://{address}/metrics; press Ctrl-C to stop"));
        if let Some(identity) = &identity {
            let host = match address.ip().is_unspecified() {
                true => format!("HOST:{}", address.port()),
                false => address.to_string(),
            };
            let node = format!("https://{host}#sha256:{}", identity.fingerprint());
            terminal.remark(&format!("documents name it with: observe: {{nodes: [\"{node}\"]}}"));
        } else if !address.ip().is_loopback() {
            terminal.remark("without TLS: samples and the token travel unencrypted");
        }
    };
    let config = identity.as_ref().map(Identity::config);
    server::serve(arguments.listen, options, config, ready, || signals.stop_request() > StopRequest::None)
        .map_err(Stop::not_ready)?;
    Ok(Exit::Done)
}

/// Where certificate and key come from, if they are wanted.
fn tls(arguments: &cli::Observe) -> Option<Tls> {
    if let (Some(certificate), Some(key)) = (arguments.tls_cert.clone(), arguments.tls_key.clone()) {
        return Some(Tls::Files { certificate, key });
    }
    let is_plain = arguments.insecure || arguments.listen.ip().is_loopback();
    let beside = tidemark_store::default_path();
    (!is_plain).then(|| Tls::SelfSigned { directory: beside.with_file_name("tls-observe") })
}
