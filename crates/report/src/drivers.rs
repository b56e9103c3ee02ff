//! What each driver of a run did, stage by stage: the table that HTML and Markdown share.

use crate::content::{NONE, is_main};
use crate::table::{Table, Tone};
use tidemark_measure::record::{Driver, Run, Share, Stage, Work};
use tidemark_measure::units;

/// Stages whose drivers are told of: those that measure, where there are drivers at all.
pub(crate) fn stages(run: &Run) -> impl Iterator<Item = &Stage> {
    run.stages.iter().filter(|stage| !run.drivers.is_empty() && is_main(stage) && !stage.shares.is_empty())
}

/// A driver's shares of the works of a stage that are measured.
pub(crate) fn measured(stage: &Stage, driver: usize) -> impl Iterator<Item = &Share> {
    let own = stage.shares.iter().filter(move |share| share.driver as usize == driver);
    own.filter(|share| stage.works.get(share.work as usize).is_some_and(|work| work.kind.measures()))
}

/// One row for each driver of the run.
pub(crate) fn table(run: &Run, stage: &Stage) -> Table {
    let mut table =
        Table::new(format!("Drivers in {}", stage.id)).words(["Driver", "State", "Host"]).numbers([
            "Cores",
            "Workers",
            "Operations",
            "Failed",
            "Throughput",
            "p99 of a second, median",
            "Busiest second",
            "First operation",
            "Clock error, at most",
        ]);
    let all = || (0..run.drivers.len()).flat_map(|driver| measured(stage, driver));
    let first = all().filter_map(|share| share.first_sent_ns).min();
    for (index, driver) in run.drivers.iter().enumerate() {
        let shares: Vec<&Share> = measured(stage, index).filter(|share| share.workers > 0).collect();
        let whole = shares.iter().all(|share| share.complete);
        let is_bad = !shares.is_empty() && (!whole || driver.lost.is_some());
        let mut cells: Vec<Vec<String>> = vec![
            vec![driver.name.clone()],
            vec![state(driver, &shares, whole)],
            vec![driver.host.name.clone()],
            vec![units::count(u64::from(driver.host.cores))],
        ];
        cells.extend(numbers(stage, &shares, first).map(|cell| vec![cell]));
        cells.push(vec![units::duration_ns(driver.clock_error_ns)]);
        table.lines(if is_bad { Tone::Bad } else { Tone::Plain }, cells);
    }
    table
}

fn numbers(stage: &Stage, shares: &[&Share], first_ns: Option<u64>) -> [String; 7] {
    if shares.is_empty() {
        return std::array::from_fn(|_| NONE.to_owned());
    }
    let sum = |of: fn(&Share) -> u64| shares.iter().map(|share| of(share)).fold(0, u64::saturating_add);
    let rate = |share: &&Share| {
        let window = stage.works.get(share.work as usize).map_or(1.0, Work::window_seconds);
        share.ok as f64 / window
    };
    let seconds = || shares.iter().flat_map(|share| &share.series);
    let mut tails: Vec<u64> = seconds().map(|second| second.p99_ns).filter(|p99| *p99 > 0).collect();
    tails.sort_unstable();
    let tail = tails.get(tails.len() / 2).map_or(NONE.into(), |p99| units::duration_ns(*p99));
    let measured = shares.iter().filter_map(|share| {
        let work = stage.works.get(share.work as usize)?;
        Some(share.series.iter().filter(|second| work.measures_second(second.index)))
    });
    let busiest =
        measured.flatten().map(|second| second.busy).filter(|busy| busy.is_finite()).fold(0.0, f64::max);
    let sent = shares.iter().filter_map(|share| share.first_sent_ns).min();
    let after = sent.zip(first_ns).map(|(sent, first)| match sent - first {
        0 => "first".to_owned(),
        later => format!("+{}", units::duration_ns(later)),
    });
    [
        units::count(sum(|share| u64::from(share.workers))),
        units::count(sum(|share| share.ok)),
        units::count(sum(|share| share.failed)),
        units::rate(shares.iter().map(rate).sum()),
        tail,
        format!("{:.0} %", (busiest * 100.0).min(999.0)),
        after.unwrap_or(NONE.into()),
    ]
}

fn state(driver: &Driver, shares: &[&Share], whole: bool) -> String {
    match (&driver.lost, shares.is_empty(), whole) {
        (Some(lost), ..) => {
            let at = units::duration_ns(lost.at_ns);
            format!("✕ lost {at} into the run: {}", lost.reason.trim_end_matches('.'))
        }
        (None, true, _) => "took no part".into(),
        (None, false, true) => "✓ complete".into(),
        (None, false, false) => "✕ incomplete".into(),
    }
}

/// What the columns are, below the table.
pub(crate) const LEGEND: &str = "Operations are the measured ones; throughput is the successful ones divided by the window. \
    Percentiles of single seconds cannot be merged: the median of the 99th percentiles of all seconds is shown, to compare \
    drivers with each other. First operation: delay after the first operation of any driver, on the controller's clock.";
