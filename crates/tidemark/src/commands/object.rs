//! `tidemark object VERB`: load without a document.

use super::outcome;
use crate::cli::{self, ObjectVerb};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use std::path::PathBuf;
use tidemark_keys::Problem;
use tidemark_load::pacing::Arrivals;
use tidemark_measure::units;
use tidemark_object::job::{Embedded, Http, Place, S3, Target};
use tidemark_object::oneliner::{Mix, OneLiner};
use tidemark_plan::redact::redact;
use tidemark_plan::secret::Secret;
use tidemark_plan::selector;
use tidemark_plan::yaml::values::server;

/// Turns the command line into a plan and runs it.
pub(crate) fn run(arguments: &cli::Object, store: Option<PathBuf>, terminal: Terminal) -> Result<Exit, Stop> {
    let duration = |text: &str| units::parse_duration_ns(text).map_err(Stop::usage);
    let rate = arguments.rate.as_deref().map(units::parse_rate).transpose().map_err(Stop::usage)?;
    let size = selector::size(&arguments.size)
        .map_err(|error| Stop::usage(format!("--size {}: {error}", arguments.size)))?;
    let plan = OneLiner {
        mix: match arguments.verb {
            ObjectVerb::Get => Mix::Get,
            ObjectVerb::Put => Mix::Put,
            ObjectVerb::Head => Mix::Head,
            ObjectVerb::Delete => Mix::Delete,
            ObjectVerb::List => Mix::List,
            ObjectVerb::Mixed => Mix::Mixed(arguments.reads / 100.0),
        },
        target: target(arguments, terminal)?,
        size,
        containers: arguments.containers,
        objects: arguments.objects,
        workers: arguments.workers,
        rate,
        arrivals: match arguments.arrivals {
            Some(cli::Arrivals::Poisson) => Arrivals::Poisson,
            Some(cli::Arrivals::Constant) | None => Arrivals::Constant,
        },
        window_ns: duration(&arguments.duration)?,
        until_steady_ns: arguments.until_steady.as_deref().map(duration).transpose()?,
        warm_up_ns: duration(&arguments.warm_up)?,
        verify: arguments.verify,
        keep: arguments.keep,
        seed: arguments.seed,
        prefix: arguments.prefix.clone(),
    };
    let plan = plan.plan().map_err(Stop::usage)?;
    let origin = outcome::Origin {
        path: String::new(),
        format: "command line".into(),
        document: String::new(),
        trigger_directory: None,
    };
    let means = outcome::Means::here(&plan)?;
    outcome::execute(&plan, origin, &arguments.running, means, store, terminal)
}

fn target(arguments: &cli::Object, terminal: Terminal) -> Result<Target, Stop> {
    if arguments.endpoint.iter().any(|endpoint| endpoint == "embedded") {
        if arguments.endpoint.len() > 1 {
            return Err(Stop::usage("`--endpoint embedded` must be the only endpoint"));
        }
        return Ok(Target::Embedded(Embedded { place: Place::Memory, limit: None, durable: false }));
    }
    if arguments.access_key.is_empty() {
        let advice = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY unless you want anonymous access";
        terminal.remark(&format!("warning: no keys are set; requests are sent unsigned; {advice}"));
    }
    let whole = |endpoint: &String| {
        let url = if endpoint.contains("://") { endpoint.clone() } else { format!("http://{endpoint}") };
        server(&url).map_err(|problem| {
            let Problem { message, help, .. } = problem;
            // It may hold a password.
            let endpoint = redact(endpoint);
            Stop::usage(format!("--endpoint {endpoint}: {message}; {help}; --prefix names the buckets"))
        })
    };
    Ok(Target::S3(S3 {
        http: Http {
            endpoints: arguments.endpoint.iter().map(whole).collect::<Result<_, _>>()?,
            insecure: arguments.insecure,
            ..Http::default()
        },
        access_key: arguments.access_key.as_str().into(),
        secret_key: Secret::new(arguments.secret_key.clone()),
        session_token: arguments.session_token.clone().map(Secret::new),
        region: arguments.region.clone(),
        path_style: !arguments.virtual_host,
        sign_payload: false,
        storage_class: None,
        encryption: None,
    }))
}
