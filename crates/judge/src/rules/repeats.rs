//! Whether repeats of a point agree, and whether two engines do.

use super::{Findings, samples_needed};
use crate::context::stage_label;
use crate::sweep::{Point, Spread, Sweep, sweeps};
use crate::{Finding, Severity};
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::Run;
use tidemark_measure::units;

/// Repeats that vary more than this do not tell points apart that lie as close.
const VARIATION_MOST: f64 = 0.1;

/// From here on it is worth knowing.
const VARIATION_NOTED: f64 = 0.05;

/// Two engines' throughputs agree within this share.
const RATE_AGREES: f64 = 0.05;

/// And their percentiles within this one: Tidemark's own promise against fio.
const LATENCY_AGREES: f64 = 0.03;

/// The percentiles that are compared where there are enough samples for them.
const COMPARED: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// Whether repeats of the same point gave the same throughput: one finding for each degree.
pub(super) fn repeats(run: &Run, out: &mut Findings) {
    let sweeps = sweeps(run);
    let repeated = sweeps.iter().flat_map(|sweep| sweep.points.iter().map(move |point| (sweep, point)));
    let repeated: Vec<_> = repeated
        .filter_map(|(sweep, point)| {
            let rates = point.rates();
            Some((sweep, point, Spread::of(&rates).filter(|spread| spread.count > 1)?))
        })
        .collect();
    let all = repeated.len();
    let of = |severity| repeated.iter().filter(move |(_, _, spread)| degree(spread) == severity);
    for severity in [Severity::Warning, Severity::Note, Severity::Good] {
        let count = of(severity).count();
        let most = of(severity).map(|(_, _, spread)| spread.variation).fold(0.0, f64::max);
        let title = match severity {
            _ if count == 0 => continue,
            Severity::Good => format!(
                "repeats agree at {count} of {all} points: throughput varies by {} at most",
                units::percent(most)
            ),
            _ => format!(
                "repeats differ at {count} of {all} points: throughput varies by {} at most",
                units::percent(most)
            ),
        };
        let lines = of(severity).filter(|_| severity > Severity::Good);
        let lines: Vec<_> = lines.map(|(sweep, point, spread)| line(sweep, point, spread)).collect();
        let rule = if severity == Severity::Good { "repeats-agree" } else { "repeats-differ" };
        let limits =
            "coefficient of variation (standard deviation / mean): noted from 5 % on, a warning from 10 % on";
        let finding = Finding::about_run(severity, rule, title).evidences(lines).evidence(limits);
        let finding = match severity {
            Severity::Good => finding,
            _ => finding.detail("Points that lie no further apart than their repeats cannot be told apart. Measure for longer, or more often, on a machine that does nothing else."),
        };
        let stages = of(severity).flat_map(|(_, point, _)| labels(point)).collect();
        out.say(Finding { stages, ..finding });
    }
}

fn degree(spread: &Spread) -> Severity {
    match spread.variation {
        much if much > VARIATION_MOST => Severity::Warning,
        some if some >= VARIATION_NOTED => Severity::Note,
        _ => Severity::Good,
    }
}

fn line(sweep: &Sweep<'_>, point: &Point<'_>, spread: &Spread) -> String {
    let rates: Vec<_> = point.rates().into_iter().map(units::rate).collect();
    format!("{}: {}: varies by {}", name(sweep, point), rates.join(", "), units::percent(spread.variation))
}

/// `rand (randread, 4 KiB)`, with the engine where there are several.
fn name(sweep: &Sweep<'_>, point: &Point<'_>) -> String {
    let engine = if sweep.engines().len() > 1 { point.engine } else { "" };
    let words: Vec<_> = [point.label().as_str(), engine]
        .into_iter()
        .filter(|word| !word.is_empty())
        .map(String::from)
        .collect();
    if words.is_empty() { sweep.name.to_owned() } else { format!("{} ({})", sweep.name, words.join(", ")) }
}

fn labels(point: &Point<'_>) -> Vec<String> {
    point.stages.iter().map(|stage| stage_label(stage)).collect()
}

/// Whether the native engine and fio measured the same at the same points.
pub(super) fn cross_check(run: &Run, out: &mut Findings) {
    for sweep in sweeps(run) {
        let driven = |engine| sweep.points.iter().filter(move |point| point.engine == engine);
        for native in driven("native") {
            if let Some(fio) = driven("fio").find(|fio| fio.axes == native.axes) {
                out.say(compare(&sweep, native, fio));
            }
        }
    }
}

/// One number of two engines.
struct Pair {
    name: &'static str,
    native: Spread,
    fio: Spread,
    allowed: f64,
    print: fn(f64) -> String,
}

impl Pair {
    fn difference(&self) -> f64 {
        (self.native.median - self.fio.median) / self.fio.median
    }

    /// Within what is allowed, or within what the repeats of one engine differ by.
    fn agrees(&self) -> bool {
        let noise = self.native.half_range().max(self.fio.half_range()) * 2.0;
        let apart = (self.native.median - self.fio.median).abs();
        self.difference().abs() <= self.allowed || apart <= noise
    }

    /// `p99 +1.7 %`.
    fn short(&self) -> String {
        format!("{} {:+.1} %", self.name, self.difference() * 100.0)
    }

    /// `p99 1.20 ms vs 1.18 ms (+1.7 %)`.
    fn words(&self) -> String {
        let [native, fio] = [self.native.median, self.fio.median].map(self.print);
        format!("{} {native} vs {fio} ({:+.1} %)", self.name, self.difference() * 100.0)
    }
}

fn compare(sweep: &Sweep<'_>, native: &Point<'_>, fio: &Point<'_>) -> Finding {
    let rate = [native, fio].map(|point| Spread::of(&point.rates()));
    let mut pairs = Vec::new();
    if let [Some(native), Some(fio)] = rate {
        pairs.push(Pair { name: "throughput", native, fio, allowed: RATE_AGREES, print: units::rate });
    }
    for (name, fraction) in COMPARED {
        if let [Some(native), Some(fio)] = [native, fio].map(|point| percentiles(point, fraction)) {
            let print = |ns: f64| units::duration_ns(ns as u64);
            pairs.push(Pair { name, native, fio, allowed: LATENCY_AGREES, print });
        }
    }
    let point = match native.label() {
        label if label.is_empty() => sweep.name.to_owned(),
        label => format!("{} ({label})", sweep.name),
    };
    let about = |severity, title: String| Finding {
        stages: labels(native).into_iter().chain(labels(fio)).collect(),
        ..Finding::about_run(severity, "cross-check", title)
    };
    if pairs.is_empty() {
        return about(
            Severity::Note,
            format!("native and fio could not be compared at {point}: one of them measured nothing"),
        );
    }
    let bad: Vec<_> = pairs.iter().filter(|pair| !pair.agrees()).map(Pair::words).collect();
    let lines = pairs.iter().map(|pair| {
        let repeats = |spread: &Spread| {
            format!("{} to {} over {}", (pair.print)(spread.low), (pair.print)(spread.high), spread.count)
        };
        format!("{}; native {}, fio {} repeats", pair.words(), repeats(&pair.native), repeats(&pair.fio))
    });
    let finding = match bad.as_slice() {
        [] => {
            let all = pairs.iter().enumerate().map(|(index, pair)| match index {
                0 => pair.words(),
                _ => pair.short(),
            });
            let all = all.collect::<Vec<_>>().join(", ");
            about(Severity::Good, format!("native and fio agree at {point}: {all}"))
        }
        bad => about(Severity::Warning, format!("native and fio disagree at {point}: {}", bad.join(", ")))
            .detail("One of the two is not measuring the storage alone, or the storage changed between them. Look at the findings of the stages and at the order of the repeats."),
    };
    finding.evidences(lines).evidence(format!(
        "medians over the repeats; allowed: {} of throughput, {} of a percentile, or what the repeats of one engine differ by",
        units::percent(RATE_AGREES),
        units::percent(LATENCY_AGREES)
    ))
}

/// A percentile of every repeat, if all of them have samples enough.
fn percentiles(point: &Point<'_>, fraction: f64) -> Option<Spread> {
    let each = point.responses();
    let enough = |response: &Histogram| response.count() >= samples_needed(fraction);
    let values = each.iter().map(|response| enough(response).then(|| response.quantile(fraction) as f64));
    let values: Option<Vec<f64>> = values.collect();
    Spread::of(&values?)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, said, sweep_run};
    use super::*;

    /// One repeat per rate, at one point.
    fn rates(rates: &[u64]) -> Run {
        let mut run = sweep_run(&["4 KiB"], rates.len() as u32);
        for (stage, rate) in run.stages.iter_mut().zip(rates) {
            stage.works[0].operations[0].tally.ok = rate * 20;
        }
        run
    }

    #[test]
    fn repeats_agree_or_differ() {
        let severity = |all: &[u64], rule| said(&rates(all), rule).map(|finding| finding.severity);
        assert_eq!(severity(&[400, 404, 396], "repeats-agree"), Some(Severity::Good));
        assert_eq!(severity(&[400, 424, 376], "repeats-differ"), Some(Severity::Note), "6 %");
        assert_eq!(severity(&[400, 448, 352], "repeats-differ"), Some(Severity::Warning), "12 %");
        assert_eq!(severity(&[400], "repeats-agree"), None);
        let finding = said(&rates(&[400, 448, 352]), "repeats-differ").unwrap();
        assert_eq!(finding.title, "repeats differ at 1 of 1 points: throughput varies by 12.00 % at most");
        assert_eq!(finding.place(), "3 stages");
        assert!(
            finding.evidence[0]
                .starts_with("rand (randread, 4 KiB, clients 1): 400 op/s, 448 op/s, 352 op/s")
        );
    }

    /// Three repeats of native, three of fio with this rate and latency.
    fn crossed(rate: u64, latency_ns: u64) -> Finding {
        let mut run = sweep_run(&["4 KiB"], 6);
        for stage in &mut run.stages[3..] {
            stage.cell.as_mut().unwrap().engine = "fio".into();
            let tally = &mut stage.works[0].operations[0].tally;
            tally.ok = rate * 20;
            tally.response.reset();
            tally.response.record_many(latency_ns, tally.ok);
        }
        said(&run, "cross-check").unwrap()
    }

    #[test]
    fn engines_agree_or_disagree() {
        let same = crossed(400, 10 * MS);
        assert_eq!(same.severity, Severity::Good);
        assert!(
            same.title
                .contains("native and fio agree at rand (randread, 4 KiB, clients 1): throughput 400 op/s vs 400 op/s (+0.0 %), p50 +0.0 %"),
            "{}",
            same.title
        );
        assert!(!same.title.contains("p99.9"), "8 000 samples are too few");
        assert_eq!(crossed(385, 10 * MS).severity, Severity::Good, "3.9 %");
        let slow = crossed(375, 10 * MS);
        assert_eq!(slow.severity, Severity::Warning);
        assert!(
            slow.title.ends_with("clients 1): throughput 400 op/s vs 375 op/s (+6.7 %)"),
            "{}",
            slow.title
        );
        assert_eq!(crossed(400, 10_250_000).severity, Severity::Good, "2.4 %");
        assert_eq!(crossed(400, 10_400_000).severity, Severity::Warning);
    }

    #[test]
    fn what_repeats_differ_by_is_no_disagreement() {
        let mut run = sweep_run(&["4 KiB"], 6);
        for (index, stage) in run.stages.iter_mut().enumerate() {
            stage.cell.as_mut().unwrap().engine = if index < 3 { "native" } else { "fio" }.into();
            stage.works[0].operations[0].tally.ok = [400, 440, 420, 380, 360, 370][index] * 20;
        }
        assert_eq!(said(&run, "cross-check").unwrap().severity, Severity::Warning, "420 and 370, 40 apart");
        run.stages[1].works[0].operations[0].tally.ok = 451 * 20;
        assert_eq!(said(&run, "cross-check").unwrap().severity, Severity::Good, "51 apart");
    }
}
