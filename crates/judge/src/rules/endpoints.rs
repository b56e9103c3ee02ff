//! Whether one of a target's endpoints or instances is dead, was away, fails more often or is slower than the others.

use super::Findings;
use super::outage::{is_grave, longest_row, missing_in};
use crate::Severity;
use crate::context::{SECOND_NS, WorkContext, sum};
use crate::words::endpoints::{Endpoints as Found, Served};
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{EndpointKind, EndpointUse};

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
        if others.ok == 0 || own.total() == 0 || is_lost(context, own) {
            continue;
        }
        let (endpoint, kind) = (own.endpoint.clone(), own.kind);
        let all = || all.iter().map(served).collect();
        let failed = own.faults.total();
        let share = |one: &EndpointUse| one.faults.total() as f64 / one.total().max(1) as f64;
        if own.ok == 0 {
            out.add(context.finding(Severity::Critical, Found::Dead { endpoint, kind, failed, all: all() }));
        } else if let Some(away) = away(context, own, &others) {
            let Away { from_second, seconds, missing, failed } = away;
            let what = Found::Outage { endpoint, kind, seconds, from_second, missing, failed, all: all() };
            let grave = is_grave(context, seconds.saturating_mul(SECOND_NS));
            out.add(context.finding(if grave { Severity::Critical } else { Severity::Warning }, what));
        } else if failed >= FAILED_LEAST && share(own) >= FAILING_TIMES * share(&others) {
            let (failed, failed_elsewhere) = (share(own), share(&others));
            let what = Found::Failing { endpoint, kind, failed, failed_elsewhere, all: all() };
            out.add(context.finding(Severity::Warning, what));
        } else if let Some((fraction, took_ns, took_elsewhere_ns)) = slower(&own.response, &others.response) {
            let what = Found::Slow { endpoint, kind, fraction, took_ns, took_elsewhere_ns, all: all() };
            out.add(context.finding(Severity::Warning, what));
        }
    }
}

/// Whether it is a driver that was lost: what it did after its last report is not known.
fn is_lost(context: &WorkContext<'_>, one: &EndpointUse) -> bool {
    let mut lost = context.shares().filter(|share| !share.complete);
    one.kind == EndpointKind::Driver
        && lost.any(|share| {
            let driver = context.run.drivers.get(share.driver as usize);
            driver.is_some_and(|driver| driver.name == one.endpoint)
        })
}

/// A time in which an endpoint did nothing.
struct Away {
    from_second: u64,
    seconds: u64,
    missing: f64,
    failed: u64,
}

/// The longest row of whole seconds in which an endpoint had no success and the others had some, as an operation's outage is
/// found ([`operation_outage`](super::outage::operation_outage)).
fn away(context: &WorkContext<'_>, own: &EndpointUse, others: &EndpointUse) -> Option<Away> {
    let at = |counts: &[u64], second: u64| counts.get(second as usize).copied().unwrap_or(0);
    let seconds: Vec<u64> = context.whole_seconds().map(|second| second.index.into()).collect();
    let gone = |second: &u64| at(&own.ok_by_second, *second) == 0 && at(&others.ok_by_second, *second) > 0;
    let (from, length) = longest_row(&seconds.iter().map(gone).collect::<Vec<_>>());
    let row = &seconds[from..from + length];
    let total = sum(seconds.iter().map(|second| at(&own.ok_by_second, *second)));
    let missing = missing_in(total, seconds.len(), length)?;
    let failed = sum(row.iter().map(|second| at(&own.failed_by_second, *second)));
    Some(Away { from_second: *row.first()?, seconds: length as u64, missing, failed })
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
    use tidemark_measure::record::{Driver, Run, Share};

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
        let told = ["endpoint-dead", "endpoint-outage", "endpoint-failing", "endpoint-slow"];
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
    fn one_that_was_away_for_a_while_is_named_with_the_time() {
        let mut run = with([(2_000, 0, 10 * MS), (1_400, 90, 10 * MS), (2_000, 0, 10 * MS)]);
        for (place, own) in work(&mut run).endpoints.iter_mut().enumerate() {
            own.kind = EndpointKind::Instance;
            let is_away = |second| place == 1 && (5..11).contains(&second);
            own.ok_by_second = (0..20).map(|second| if is_away(second) { 0 } else { 100 }).collect();
            own.failed_by_second = (0..20).map(|second| if is_away(second) { 15 } else { 0 }).collect();
        }
        assert_eq!(rules(&run), ["endpoint-outage"], "its failures are those of the outage");
        let finding = said(&run, "endpoint-outage").unwrap();
        assert_eq!(
            finding.title(),
            "no operation at http://b succeeded for 6 whole seconds, while the other instances went on"
        );
        assert!(finding.detail().starts_with("From second 5 to second 11, about 600 operations are missing"));
        assert!(finding.detail().contains("90 failed meanwhile"), "{}", finding.detail());
        assert_eq!(finding.severity, Severity::Critical, "more than a tenth of the window");
        let all = &mut work(&mut run).endpoints;
        all[1].ok_by_second[6..].fill(100);
        all[1].faults = Vec::new().into();
        assert_eq!(rules(&run), [""; 0], "one second is no outage");
        for own in &mut work(&mut run).endpoints {
            own.ok_by_second[5..11].fill(0);
        }
        assert_eq!(rules(&run), [""; 0], "where nobody went on, it is not this one's");
    }

    #[test]
    fn of_endpoints_that_share_requests_requests_are_told() {
        let shared = |numbers| {
            let mut run = with(numbers);
            work(&mut run).endpoints.iter_mut().for_each(|own| own.kind = EndpointKind::Shared);
            run
        };
        let dead =
            said(&shared([(2_000, 0, 10 * MS), (0, 500, 0), (2_000, 0, 10 * MS)]), "endpoint-dead").unwrap();
        assert_eq!(dead.title(), "none of the 500 requests at http://b succeeded");
        assert!(dead.detail().contains("A request goes to the endpoint whose connection is free first"));
        assert_eq!(dead.evidence()[1], "http://b: 500 requests, none succeeded");
        let slow =
            said(&shared([(2_000, 0, 10 * MS), (2_000, 0, 10 * MS), (1_000, 0, 25 * MS)]), "endpoint-slow");
        assert!(slow.unwrap().title().starts_with("http://c was 2.5 times as slow as the other endpoints"));
    }

    #[test]
    fn a_driver_whose_volumes_are_slow_is_named() {
        let mut run = with([(2_000, 0, 10 * MS), (2_000, 0, 10 * MS), (1_000, 0, 25 * MS)]);
        for (own, name) in work(&mut run).endpoints.iter_mut().zip(["d1", "d2", "d3"]) {
            (own.kind, own.endpoint) = (EndpointKind::Driver, name.into());
        }
        let slow = said(&run, "endpoint-slow").unwrap();
        assert!(
            slow.title().starts_with("driver d3 was 2.5 times as slow as the other drivers"),
            "{}",
            slow.title()
        );
        assert!(slow.detail().contains("Compare its machine, its volumes"), "{}", slow.detail());
        let mut lost = run;
        lost.drivers =
            ["d1", "d2", "d3"].map(|name| Driver { name: name.into(), ..Driver::default() }).into();
        let shares = (0..3).map(|driver| Share { driver, complete: driver < 2, ..Share::default() });
        lost.stages[0].shares = shares.collect();
        assert_eq!(rules(&lost), [""; 0], "of a lost driver not all is known");
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
