//! What would fail every operation on Swift, found before the load.

use super::link::Request;
use super::{Slot, enter};
use crate::job::Swift;
use crate::operate::Intake;
use crate::preflight::{patient, unanswered};
use crate::text::decode;
use std::sync::Arc;
use std::time::Instant;
use tidemark_load::budget::Budget;
use tidemark_load::engine::{Clock, OpenError};
use tidemark_measure::fault::Fault;
use tidemark_reactor::Reactor;

/// Logs in, and requests the account from every endpoint of a target, or for the container of this percent-encoded name,
/// which must exist.
pub(crate) fn preflight(target: &Swift, container: Option<&[u8]>) -> Result<String, OpenError> {
    let target = Arc::new(Swift { http: patient(&target.http), ..target.clone() });
    let (account, places) = enter(&target)?;
    let clock = Clock::starting_at(Instant::now());
    let reactor = Reactor::within(clock, target.http.timeout_ns, &Budget::preflight())?;
    let account = Arc::new(account);
    let mut software: Vec<String> = Vec::new();
    for place in places {
        let url = format!("{}{}", place.endpoint.url(), place.path);
        let mut slot = Slot::new(&target, &account, &place, &reactor);
        let mut intake = Intake::default().wanting("Server");
        let request = Request::new("HEAD", |out| {
            if let Some(name) = container {
                out.push(b'/');
                out.extend_from_slice(name);
            }
        });
        let reply = reactor.block_on(slot.send(reactor.now(), &request, &mut intake));
        let name = container.map(decode);
        reply.map_err(|failure| {
            OpenError(match (failure.fault, name) {
                (Fault::Denied, _) => format!(
                    "{url} rejects the token ({}): check the user's role in the project, and the storage URL",
                    failure.text
                ),
                (Fault::NotFound, Some(name)) => format!(
                    "the container '{name}' does not exist at {url}: create it, or add an init stage to the workload"
                ),
                (Fault::NotFound, None) => {
                    format!("{url} is not a Swift account (404): check the storage URL")
                }
                _ => unanswered(&url, target.http.timeout_ns, &failure),
            })
        })?;
        if let Some(own) = intake.header.filter(|own| !software.contains(own)) {
            software.push(own);
        }
    }
    Ok(software.join(", "))
}
