//! Whether one of a target's endpoints is dead, fails more often or is slower than the others.

use super::Findings;
use crate::Severity;
use crate::context::WorkContext;
use crate::words::endpoints::{Endpoints as Found, Served};
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::EndpointUse;

/// Failures at an endpoint that are more than an accident.
const FAILED_LEAST: u64 = 10;

/// So many times the others' share of failures is no chance, given that many failures.
const FAILING_TIMES: f64 = 5.0;

/// An endpoint that takes so many times as long as the others is another server than they are.
const SLOW_TIMES: f64 = 2.0;

/// The percentiles that are compared, and the successes from which they are sure within much less than that: there are
/// hundred above each.
const COMPARED: [(f64, u64); 2] = [(0.5, 200), (0.9, 1_000)];

/// Endpoints that do not serve as the others do.
pub(super) fn unequal(context: &WorkContext<'_>, out: &mut Findings) {
    let all = &context.work.endpoints;
    for (index, own) in all.iter().enumerate() {
        let mut others = EndpointUse::default();
        all.iter().enumerate().filter(|(other, _)| *other != index).for_each(|(_, other)| others.add(other));
        if others.ok == 0 || own.total() == 0 {
            continue;
        }
        let (endpoint, all) = (own.endpoint.clone(), || all.iter().map(served).collect());
        let failed = own.faults.total();
        let share = |one: &EndpointUse| one.faults.total() as f64 / one.total().max(1) as f64;
        if own.ok == 0 {
            out.say(context.finding(Severity::Critical, Found::Dead { endpoint, failed, all: all() }));
        } else if failed >= FAILED_LEAST && share(own) >= FAILING_TIMES * share(&others) {
            let (failed, failed_elsewhere) = (share(own), share(&others));
            let what = Found::Failing { endpoint, failed, failed_elsewhere, all: all() };
            out.say(context.finding(Severity::Warning, what));
        } else if let Some((fraction, took_ns, took_elsewhere_ns)) = slower(&own.response, &others.response) {
            let what = Found::Slow { endpoint, fraction, took_ns, took_elsewhere_ns, all: all() };
            out.say(context.finding(Severity::Warning, what));
        }
    }
}

/// The first percentile at which an endpoint is much slower than the others, and both values.
fn slower(own: &Histogram, others: &Histogram) -> Option<(f64, u64, u64)> {
    let enough = |least: u64| own.count() >= least && others.count() >= least;
    let compared = COMPARED.into_iter().filter(|(_, least)| enough(*least));
    let mut compared =
        compared.map(|(fraction, _)| (fraction, own.quantile(fraction), others.quantile(fraction)));
    compared.find(|(_, own, others)| *own as f64 >= SLOW_TIMES * *others as f64)
}

fn served(one: &EndpointUse) -> Served {
    Served {
        endpoint: one.endpoint.clone(),
        ok: one.ok,
        failed: one.faults.total(),
        median_ns: one.response.quantile(0.5),
        p99_ns: one.response.quantile(0.99),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, healthy, said, work};
    use super::*;
    use tidemark_measure::fault::Fault;
    use tidemark_measure::record::Run;

    /// Three endpoints with these successes, failures and response times.
    fn with(numbers: [(u64, u64, u64); 3]) -> Run {
        let mut run = healthy();
        work(&mut run).endpoints = ["http://a", "http://b", "http://c"]
            .into_iter()
            .zip(numbers)
            .map(|(name, (ok, failed, ns))| {
                let mut one = EndpointUse { endpoint: name.into(), ok, ..EndpointUse::default() };
                one.faults = vec![(Fault::Refused, failed)].into();
                one.response.record_many(ns, ok);
                one
            })
            .collect();
        run
    }

    fn rules(run: &Run) -> Vec<&'static str> {
        let told = ["endpoint-dead", "endpoint-failing", "endpoint-slow"];
        told.into_iter().filter(|rule| said(run, rule).is_some()).collect()
    }

    #[test]
    fn a_dead_endpoint_is_named() {
        let run = with([(2_000, 0, 10 * MS), (0, 500, 0), (2_000, 0, 10 * MS)]);
        let finding = said(&run, "endpoint-dead").unwrap();
        assert_eq!(finding.title(), "none of the 500 operations at http://b succeeded");
        assert_eq!((finding.severity, finding.evidence().len()), (Severity::Critical, 3));
        assert_eq!(
            rules(&with([(0, 500, 0), (0, 500, 0), (0, 500, 0)])),
            [""; 0],
            "that is no endpoint's own trouble"
        );
    }

    #[test]
    fn one_that_fails_or_is_slow_beside_the_others_is_named() {
        let failing = with([(2_000, 2, 10 * MS), (1_900, 100, 10 * MS), (2_000, 3, 10 * MS)]);
        assert_eq!(rules(&failing), ["endpoint-failing"]);
        assert!(
            said(&failing, "endpoint-failing")
                .unwrap()
                .title()
                .starts_with("5.00 % of the operations at http://b")
        );
        let slow = with([(2_000, 0, 10 * MS), (2_000, 0, 10 * MS), (1_000, 0, 25 * MS)]);
        let title = said(&slow, "endpoint-slow").unwrap().title();
        assert!(title.starts_with("http://c was 2.5 times as slow"), "{title}");
        assert_eq!(rules(&slow), ["endpoint-slow"]);
        let mut tail = with([(2_000, 0, 10 * MS); 3]);
        let response = &mut work(&mut tail).endpoints[0].response;
        response.record_many(30 * MS, 400);
        assert!(said(&tail, "endpoint-slow").unwrap().title().contains("p90 30.0 ms against 10.0 ms"));
    }

    #[test]
    fn equals_and_accidents_are_not() {
        for numbers in [
            [(2_000, 0, 10 * MS), (2_000, 0, 11 * MS), (1_500, 0, 14 * MS)],
            [(2_000, 50, 10 * MS), (2_000, 60, 10 * MS), (2_000, 40, 10 * MS)],
            [(2_000, 0, 10 * MS), (2_000, 9, 10 * MS), (2_000, 0, 10 * MS)],
            [(2_000, 0, 10 * MS), (100, 0, 90 * MS), (2_000, 0, 10 * MS)],
        ] {
            assert_eq!(rules(&with(numbers)), [""; 0], "{numbers:?}");
        }
    }
}
