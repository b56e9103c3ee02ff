//! `tidemark observe`: what this node does, for a Tidemark elsewhere and for Prometheus.

use crate::cli;
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use crate::terminal::Terminal;
use tidemark_control::event::StopRequest;
use tidemark_observe::{Options, server};

/// Serves until the user stops it.
pub(crate) fn observe(arguments: &cli::Observe, terminal: Terminal) -> Result<Exit, Stop> {
    let options = Options {
        processes: arguments.processes.clone(),
        ceph_sockets: arguments.ceph_sockets.clone(),
        token: arguments.token.clone(),
        ..Options::default()
    };
    let signals = Signals::listen();
    let ready = |address| terminal.remark(&format!("serving http://{address}/metrics; press Ctrl-C to stop"));
    server::serve(arguments.listen, options, ready, || signals.stop_request() > StopRequest::None)
        .map_err(Stop::not_ready)?;
    Ok(Exit::Done)
}
