//! What a load did at each endpoint of its target, or on each of its instances: the tables and words that HTML and Markdown share.

use crate::content::{mean, percentile};
use crate::table::{Table, Tone};
use tidemark_judge::fairness;
use tidemark_measure::record::{EndpointKind, EndpointUse, Stage, Work};
use tidemark_measure::units;

/// Works of a stage that ran on several endpoints or instances.
pub(crate) fn works(stage: &Stage) -> impl Iterator<Item = &Work> {
    stage.works.iter().filter(|work| work.endpoints.len() > 1)
}

/// What a work ran on: `Instances`.
pub(crate) fn title(work: &Work) -> &'static str {
    match work.endpoints.first().map(|one| one.kind) {
        Some(EndpointKind::Instance) => "Instances",
        Some(EndpointKind::Driver) => "Drivers",
        _ => "Endpoints",
    }
}

/// What stands over their table: what each driver did with its host and its clock is told of elsewhere.
pub(crate) fn heading(work: &Work) -> &'static str {
    if is_of_drivers(work) { "Spread over the drivers" } else { title(work) }
}

fn is_of_drivers(work: &Work) -> bool {
    work.endpoints.iter().any(|one| one.kind == EndpointKind::Driver)
}

/// Whether all operations share them, so that it is their requests that are counted.
fn is_shared(work: &Work) -> bool {
    work.endpoints.iter().any(|one| one.kind == EndpointKind::Shared)
}

/// The unit of their throughput.
pub(crate) fn unit(work: &Work) -> &'static str {
    if is_shared(work) { "req/s" } else { "op/s" }
}

/// A row for each endpoint or instance of a work, and one for all of them.
pub(crate) fn table(stage: &Stage, work: &Work) -> Table {
    let fractions = [0.5, 0.99, 1.0];
    let column = title(work).trim_end_matches('s');
    let counted = if is_shared(work) { "Requests" } else { "Op-Count" };
    let mut table = Table::new(format!("{} of {}", heading(work), stage.id))
        .words([column])
        .numbers(["Throughput", "Share", counted, "Failed", "Byte-Count", "mean"])
        .numbers(fractions.map(crate::text::percentile_name));
    let mut all = EndpointUse { endpoint: "all".into(), ..EndpointUse::default() };
    work.endpoints.iter().for_each(|one| all.add(one));
    let (window, total) = (work.window_seconds(), all.throughput(work.window_seconds()));
    for one in work.endpoints.iter().chain([&all]) {
        let throughput = one.throughput(window);
        let share = if total > 0.0 { throughput / total } else { 0.0 };
        let mut cells =
            vec![one.endpoint.clone(), units::rate_in(throughput, unit(work)), units::percent(share)];
        cells.extend([one.ok, one.faults.total()].map(units::count));
        cells.extend([units::bytes(one.bytes), mean(&one.response)]);
        cells.extend(fractions.map(|fraction| percentile(&one.response, fraction)));
        let tone = match one.ok == 0 && one.total() > 0 {
            true => Tone::Bad,
            false if std::ptr::eq(one, &all) => Tone::Total,
            false => Tone::Plain,
        };
        table.row(tone, cells);
    }
    if all.bytes == 0 { table.without_if_same("Byte-Count") } else { table }
}

/// How evenly they shared the throughput; `None` where there was none.
pub(crate) fn shared(stage: &Stage, work: &Work) -> Option<String> {
    let own = fairness(work)?;
    let column = title(work).to_lowercase();
    let spread = if is_of_drivers(work) { spread(stage, work) } else { String::new() };
    Some(format!(
        "{spread}Fairness {} by Jain's index over the {} {column}: 1 where all had the same throughput, {} where one had all of it. Shares from \
         {} to {}; an equal share is {}.",
        index(own.jain),
        own.count,
        index(1.0 / own.count as f64),
        units::percent(own.least),
        units::percent(own.most),
        units::percent(1.0 / own.count as f64),
    ))
}

/// The least, the median and the most of the drivers, in throughput and in the 99th percentile. Of a lost one not all is known.
fn spread(stage: &Stage, work: &Work) -> String {
    let window = work.window_seconds();
    let median_of = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        let at = |index: usize| all.get(index).copied().unwrap_or(0.0);
        (
            at(0),
            f64::midpoint(at(all.len().saturating_sub(1) / 2), at(all.len() / 2)),
            at(all.len().saturating_sub(1)),
        )
    };
    let rates = median_of(work.endpoints.iter().map(|one| one.throughput(window)).collect());
    let served = work.endpoints.iter().filter(|one| one.ok > 0);
    let tails = median_of(served.map(|one| one.response.quantile(0.99) as f64).collect());
    let rate = |rate: f64| units::rate_in(rate, unit(work));
    let duration = |ns: f64| units::duration_ns(ns as u64);
    let is_whole = stage.shares.iter().all(|share| share.complete);
    let lost = if is_whole { "" } else { "Lost drivers count with what they reported. " };
    format!(
        "Throughput of a driver: least {}, median {}, most {}. Its p99: least {}, median {}, most {}. {lost}",
        rate(rates.0),
        rate(rates.1),
        rate(rates.2),
        duration(tails.0),
        duration(tails.1),
        duration(tails.2)
    )
}

/// An index of fairness: 1 only where it is.
pub(crate) fn index(jain: f64) -> String {
    let floor = if jain < 1.0 - 1e-12 { jain.min(0.9999) } else { jain };
    format!("{floor:.4}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::table::Forms as _;

    /// A healthy stage on three instances, which had these successes.
    fn stage(counts: [u64; 3]) -> Stage {
        let mut stage = sample::healthy(10).stages.remove(2);
        let window = stage.works[0].window_seconds() as u64;
        stage.works[0].endpoints = (0u8..)
            .zip(counts)
            .map(|(number, rate)| {
                let mut one = EndpointUse {
                    endpoint: format!("10.0.0.{number}:5432"),
                    kind: EndpointKind::Instance,
                    ok: rate * window,
                    ok_by_second: vec![rate; 10],
                    ..EndpointUse::default()
                };
                one.response.record_many(1_000_000 * (u64::from(number) + 1), rate * window);
                one
            })
            .collect();
        stage
    }

    #[test]
    fn drivers_have_their_spread() {
        let mut stage = stage([300, 100, 200]);
        for (own, name) in stage.works[0].endpoints.iter_mut().zip(["a", "b", "c"]) {
            (own.kind, own.endpoint) = (EndpointKind::Driver, name.into());
        }
        let work = &stage.works[0];
        assert_eq!((title(work), heading(work)), ("Drivers", "Spread over the drivers"));
        let words = shared(&stage, work).unwrap();
        let expected = "Throughput of a driver: least 100 op/s, median 200 op/s, most 300 op/s. Its p99: least 1.00 ms, median 2.00 ms, most 3.00 ms. \
                        Fairness 0.8571";
        assert!(words.starts_with(expected), "{words}");
        let mut lost = stage.clone();
        lost.shares = vec![tidemark_measure::record::Share::default()];
        let words = shared(&lost, &lost.works[0]).unwrap();
        assert!(
            words.contains("most 3.00 ms. Lost drivers count with what they reported. Fairness"),
            "{words}"
        );
    }

    #[test]
    fn instances_have_rows_and_their_sum_has_one() {
        let stage = stage([100, 200, 300]);
        let text = table(&stage, &stage.works[0]).markdown();
        for expected in
            ["| Instance |", "| 10.0.0.1:5432 | 200 op/s | 33.33 % |", "| all | 600 op/s | 100 % |"]
        {
            assert!(text.replace("**", "").contains(expected), "{text}");
        }
        assert!(!text.contains("Byte-Count"), "{text}");
        let words = shared(&stage, &stage.works[0]).unwrap();
        // 600^2 / (3 * (100^2 + 200^2 + 300^2))
        assert!(words.starts_with("Fairness 0.8571 by Jain's index over the 3 instances"), "{words}");
        assert!(words.contains("from 16.67 % to 50.00 %"), "{words}");
    }

    #[test]
    fn endpoints_that_share_requests_have_requests() {
        let mut stage = stage([100, 200, 300]);
        stage.works[0].endpoints.iter_mut().for_each(|one| one.kind = EndpointKind::Shared);
        let text = table(&stage, &stage.works[0]).markdown().replace("**", "");
        for expected in ["| Endpoint |", "| Requests |", "| 10.0.0.1:5432 | 200 req/s | 33.33 % |"] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(!text.contains("Op-Count") && !text.contains("op/s"), "{text}");
    }

    #[test]
    fn one_is_only_what_is_equal() {
        assert_eq!([1.0, 0.999_999, 0.5].map(index), ["1.0000", "0.9999", "0.5000"]);
        let none = stage([0, 0, 0]);
        assert_eq!(shared(&none, &none.works[0]), None);
    }
}
