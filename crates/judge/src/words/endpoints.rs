//! Whether a target's endpoints, or its instances, served alike.

use super::Facts;
use super::phrase::{Phrase, count, decimal, duration, percent, phrase};
use crate::rules::success_percent;
use serde::Serialize;
use tidemark_measure::record::EndpointKind;
use tidemark_measure::units;

/// What one endpoint did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Served {
    pub endpoint: String,
    pub ok: u64,
    pub failed: u64,
    /// Response times of the successes; 0 where there are none.
    pub median_ns: u64,
    pub p99_ns: u64,
}

impl Served {
    fn line(&self, counted: &str) -> String {
        let total = self.ok.saturating_add(self.failed);
        let all = units::count(total);
        if self.ok == 0 {
            return format!("{}: {all} {counted}, none succeeded", self.endpoint);
        }
        format!(
            "{}: {all} {counted}, {} succeeded, median {}, p99 {}",
            self.endpoint,
            success_percent(self.ok, total),
            units::duration_ns(self.median_ns),
            units::duration_ns(self.p99_ns)
        )
    }
}

/// What there is to say of them; `all` are the work's endpoints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Endpoints {
    Dead {
        endpoint: String,
        kind: EndpointKind,
        failed: u64,
        all: Vec<Served>,
    },
    /// It succeeded no more while the others did.
    Outage {
        endpoint: String,
        kind: EndpointKind,
        /// Seconds in a row, from this one since the work's start.
        seconds: u64,
        from_second: u64,
        /// What it would have done meanwhile at its usual rate.
        missing: f64,
        failed: u64,
        all: Vec<Served>,
    },
    Failing {
        endpoint: String,
        kind: EndpointKind,
        /// Shares of the operations, 0 to 1.
        failed: f64,
        failed_elsewhere: f64,
        all: Vec<Served>,
    },
    Slow {
        endpoint: String,
        kind: EndpointKind,
        /// The percentile that is compared, as a fraction.
        fraction: f64,
        took_ns: u64,
        took_elsewhere_ns: u64,
        all: Vec<Served>,
    },
}

impl Facts for Endpoints {
    fn rule(&self) -> &'static str {
        match self {
            Endpoints::Dead { .. } => "endpoint-dead",
            Endpoints::Outage { .. } => "endpoint-outage",
            Endpoints::Failing { .. } => "endpoint-failing",
            Endpoints::Slow { .. } => "endpoint-slow",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Endpoints::Dead { endpoint, kind, failed, .. } => {
                phrase![
                    "none of the ",
                    count(*failed),
                    " ",
                    counted(*kind),
                    " ",
                    at(*kind),
                    endpoint,
                    " succeeded"
                ]
            }
            Endpoints::Outage { endpoint, kind, seconds, .. } => phrase![
                "no ",
                counted(*kind).trim_end_matches('s'),
                " ",
                at(*kind),
                endpoint,
                " succeeded for ",
                count(*seconds),
                " whole seconds, while the other ",
                plural(*kind),
                " went on"
            ],
            Endpoints::Failing { endpoint, kind, failed, failed_elsewhere, .. } => phrase![
                percent(*failed),
                " of the ",
                counted(*kind),
                " ",
                at(*kind),
                endpoint,
                " failed, ",
                percent(*failed_elsewhere),
                if *kind == EndpointKind::Driver { " of the other " } else { " at the other " },
                plural(*kind)
            ],
            Endpoints::Slow { endpoint, kind, fraction, took_ns, took_elsewhere_ns, .. } => phrase![
                if *kind == EndpointKind::Driver { "driver " } else { "" },
                endpoint,
                " was ",
                decimal(*took_ns as f64 / (*took_elsewhere_ns).max(1) as f64),
                " times as slow as the other ",
                plural(*kind),
                ": ",
                if *fraction == 0.5 { "median ".to_owned() } else { format!("p{:.0} ", fraction * 100.0) },
                duration(*took_ns),
                " against ",
                duration(*took_elsewhere_ns)
            ],
        }
    }

    fn detail(&self) -> String {
        match self {
            Endpoints::Dead { kind: EndpointKind::Shared, .. }
            | Endpoints::Failing { kind: EndpointKind::Shared, .. } => {
                "Look at that server and the way to it. A request goes to the endpoint whose connection is free first, and does not go \
                 elsewhere when it fails: one endpoint of several makes operations fail that need them all."
                    .into()
            }
            Endpoints::Dead { kind: EndpointKind::Driver, .. } | Endpoints::Failing { kind: EndpointKind::Driver, .. } => {
                "Look at that driver's volumes and its machine's log: no other driver does its operations.".into()
            }
            Endpoints::Dead { .. } | Endpoints::Failing { .. } => {
                "Look at that server and the way to it. The clients of an endpoint stay with it: their operations fail, and \
                 do not go elsewhere."
                    .into()
            }
            Endpoints::Outage { kind, from_second, seconds, missing, failed, .. } => format!(
                "From second {from_second} to second {}, about {} {} are missing at its usual rate; {} failed meanwhile. \
                 Look at that {}'s log for this time.",
                from_second.saturating_add(*seconds),
                units::count(missing.round() as u64),
                counted(*kind),
                units::count(*failed),
                if *kind == EndpointKind::Driver { "machine" } else { "server" },
            ),
            Endpoints::Slow { kind: EndpointKind::Endpoint, .. } => {
                "The result mixes the response times of unequal servers, and in a closed loop the workers of the slow one \
                 do fewer operations."
                    .into()
            }
            Endpoints::Slow { kind: EndpointKind::Driver, .. } => {
                "The sum hides an unequal share: in a closed loop the slow driver does fewer operations. Compare its machine, its volumes and \
                 what else uses the storage under them."
                    .into()
            }
            Endpoints::Slow { kind: EndpointKind::Shared, .. } => {
                "The result mixes the response times of unequal servers: an operation takes as long as the slowest of its requests."
                    .into()
            }
            Endpoints::Slow { kind: EndpointKind::Instance, .. } => {
                "The sum hides an unequal share: in a closed loop the clients of the slow instance do fewer operations. Compare \
                 its settings, its data and what else runs beside it."
                    .into()
            }
        }
    }

    fn evidence(&self) -> Vec<String> {
        let (Endpoints::Dead { kind, all, .. }
        | Endpoints::Outage { kind, all, .. }
        | Endpoints::Failing { kind, all, .. }
        | Endpoints::Slow { kind, all, .. }) = self;
        all.iter().map(|one| one.line(counted(*kind))).collect()
    }
}

fn plural(kind: EndpointKind) -> &'static str {
    match kind {
        EndpointKind::Endpoint | EndpointKind::Shared => "endpoints",
        EndpointKind::Instance => "instances",
        EndpointKind::Driver => "drivers",
    }
}

/// What stands before a name: operations are at an endpoint, and of a driver.
fn at(kind: EndpointKind) -> &'static str {
    if kind == EndpointKind::Driver { "of driver " } else { "at " }
}

/// What is counted.
fn counted(kind: EndpointKind) -> &'static str {
    match kind {
        EndpointKind::Endpoint | EndpointKind::Instance | EndpointKind::Driver => "operations",
        EndpointKind::Shared => "requests",
    }
}
