//! One cheap request to each endpoint before the load, so that a fault of every operation is reported once,
//! in a sentence, with what to do about it.

use crate::failure::Failure;
use crate::job::{Http, Job, Target};
use crate::operate::Names;
use crate::s3;
use crate::swift;
use tidemark_load::engine::OpenError;
use tidemark_measure::fault::Fault;
use tidemark_measure::units::duration_ns;

/// How long a server may take to answer: one that is slower than this before the load will not do under it.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Whether the target of a job can be used. `container` is the number of a container that must exist already, when
/// the plan makes none itself. Gives the server's software as it calls itself, or nothing.
///
/// # Errors
/// One sentence: what is wrong and what to do.
pub fn preflight(job: &Job, container: Option<u64>) -> Result<String, OpenError> {
    let name = container.zip(job.actions.first()).map(|(number, action)| {
        let mut name = Vec::new();
        Names::new(&action.naming).push_container(&mut name, number);
        name
    });
    let mask = job.target.mask();
    let said = match &job.target {
        Target::S3(target) => s3::preflight::preflight(target, name.as_deref()),
        Target::Swift(target) => swift::preflight::preflight(target, name.as_deref()),
        Target::Mock(_) | Target::Nothing | Target::Embedded(_) => Ok(String::new()),
    };
    said.map(|software| mask.apply(software).into_owned()).map_err(|error| mask.error(error))
}

/// The settings for the first requests.
pub(crate) fn patient(http: &Http) -> Http {
    Http { timeout_ns: http.timeout_ns.min(PATIENCE_NS), ..http.clone() }
}

/// Why a server did not answer, and what to do about it.
pub(crate) fn unanswered(url: &str, timeout_ns: u64, failure: &Failure) -> String {
    let text = &failure.text;
    match failure.fault {
        Fault::Refused => {
            format!("connection refused by {url}: check host and port, and that the server is running")
        }
        Fault::Timeout => format!(
            "{url}: {text} ({}): check the address, firewalls, and that the server is running",
            duration_ns(timeout_ns)
        ),
        Fault::Tls => format!(
            "{url}: {text}: set ca_file to the authority's certificate, accept any certificate with insecure, or \
             use http:// if the server has no TLS"
        ),
        Fault::Reset | Fault::Protocol => format!(
            "the server at {url} did not speak HTTP ({text}): check the port, and http:// or https://"
        ),
        Fault::Unreachable => format!("{url} cannot be reached ({text}): check the address and the network"),
        _ => format!("the request to {url} failed: {text}"),
    }
}
