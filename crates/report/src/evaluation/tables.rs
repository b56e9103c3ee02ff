//! What the report of an evaluation says: the tables that HTML and Markdown share.

use super::Subject;
use super::panel::{Best, Panel, level_words};
use crate::content::{self, NONE, bandwidth};
use crate::endpoints::index;
use crate::table::{Table, Tone};
use tidemark_judge::evaluation::{
    Cell, Comparison, Estimate, Metric, Outcome, Totals, compared_arms, difference, plus_minus as words_of,
    totals,
};
use tidemark_judge::{claimed, judge};
use tidemark_measure::evaluation::Level;
use tidemark_measure::kind::OperationClass;
use tidemark_measure::record::{DeviceUse, Proof, Run, Stage, State};
use tidemark_measure::units;

/// What is well or not at a summary, each with whether that is good (`Some(true)`), bad or neither.
pub(super) fn badges(subject: &Subject<'_>) -> Vec<(Option<bool>, String)> {
    let is_interrupted = subject.evaluation.state == State::Interrupted;
    let mut words = match subject.assessment.validity.is_valid() {
        true if is_interrupted => Vec::new(),
        true => vec![(Some(true), "VALID".to_owned())],
        false => vec![(Some(false), "INVALID".to_owned())],
    };
    if subject.evaluation.state != State::Completed {
        words.push((Some(false), subject.evaluation.state.name().to_uppercase()));
    }
    for arm in subject.assessment.compared() {
        let outcome = subject.assessment.outcome_of(Some(arm));
        let is_good = match outcome {
            Outcome::Better | Outcome::Equal | Outcome::NotWorse => Some(true),
            Outcome::Worse => Some(false),
            _ => None,
        };
        let than =
            if matches!(outcome, Outcome::Better | Outcome::Worse) { " than the baseline" } else { "" };
        words.push((is_good, format!("{arm}: {}{than}", outcome.name())));
    }
    words
}

/// What it comes to: of each load on each arm the best level, what was achieved there, and what was the limit.
pub(super) fn answers(panels: &[Panel<'_>], subject: &Subject<'_>) -> Table {
    let mut table = Table::new("What it comes to")
        .words(["Load", "Arm", "Best load"])
        .numbers(["Throughput", "Beside the baseline", "p95"])
        .words(["Limit"])
        .classed("answers")
        .grouped();
    for panel in panels {
        for (_, arm) in panel.arms() {
            let Some((level, why)) = panel.best(arm) else { continue };
            let Some(cell) = panel.cell(arm, level) else { continue };
            let bottlenecks = &subject.assessment.bottlenecks;
            let limit = bottlenecks.iter().find(|one| one.arm == arm && one.load == panel.load);
            let words = level_words(level);
            let words = if words.is_empty() { NONE.to_owned() } else { words };
            table.lines(
                if cell.invalid || why == Best::Outside { Tone::Bad } else { Tone::Plain },
                vec![
                    vec![panel.title()],
                    vec![arm.to_owned()],
                    vec![words, why.words().to_owned()],
                    vec![units::rate(cell.throughput.mean), plus_minus(&cell.throughput)],
                    beside(panel, arm, level),
                    vec![cell.p95_ns.as_ref().map_or(NONE.into(), |p95| units::duration_ns(p95.mean as u64))],
                    vec![limit.map_or("none shown".into(), |one| content::capital(&one.finding.title()))],
                ],
            );
        }
    }
    table.without_if_same("Best load").without_if_same("Beside the baseline")
}

/// What was achieved at an arm's best level as a multiple of what the baseline achieves at its own.
fn beside(panel: &Panel<'_>, arm: &str, level: &Level) -> Vec<String> {
    let Some((_, baseline)) = panel.arms().next() else { return vec![NONE.into()] };
    let own = panel.best(baseline).and_then(|(own, _)| Some((own, panel.cell(baseline, own)?)));
    match (own, panel.cell(arm, level)) {
        _ if arm == baseline => vec!["the baseline".into()],
        // At the same level it was tested.
        (Some((own, _)), _) if own == level => panel
            .comparison(arm, level, Metric::Throughput)
            .map_or_else(|| vec![NONE.into()], |one| vec![times(one.ratio), mark(one)]),
        (Some((_, of)), Some(cell)) if of.throughput.mean > 0.0 => {
            vec![times(cell.throughput.mean / of.throughput.mean), "at its own best".into()]
        }
        _ => vec![NONE.into()],
    }
}

/// Loads and arms: the numbers that the answer rests on. Of loads with many levels one level is shown.
pub(super) fn main(panels: &[Panel<'_>]) -> Table {
    let levels = panels.iter().map(|panel| (panel, panel.main_levels()));
    numbers("Loads and arms", levels.collect())
}

/// The same for every level; `None` when the main table has them all.
pub(super) fn every_level(panels: &[Panel<'_>]) -> Option<Table> {
    let more: Vec<_> = panels.iter().filter(|panel| panel.main_levels().len() < panel.levels.len()).collect();
    let levels = more.iter().map(|panel| (*panel, panel.levels.clone()));
    (!more.is_empty()).then(|| numbers("Arms at every level", levels.collect()))
}

fn numbers(caption: &str, levels: Vec<(&Panel<'_>, Vec<&Level>)>) -> Table {
    let arms: Vec<&str> =
        levels.first().map(|(panel, _)| panel.arms().map(|(_, arm)| arm).collect()).unwrap_or_default();
    let titles = arms.iter().enumerate().map(|(index, arm)| match index {
        0 if arms.len() > 1 && *arm != "baseline" => format!("{arm} (baseline)"),
        _ => (*arm).to_owned(),
    });
    let mut table = Table::new(caption).words(["Load", "Number"]).numbers(titles).grouped();
    for (panel, levels) in levels {
        for level in levels {
            let row = |name: &str, cell: &dyn Fn(&str) -> Option<Vec<String>>| {
                let cells = arms.iter().map(|arm| cell(arm).unwrap_or_else(|| vec![NONE.into()]));
                let all: Vec<Vec<String>> = cells.collect();
                (name.to_owned(), all)
            };
            let rows = [
                row("Throughput", &|arm| throughput(panel, arm, level)),
                row("Bandwidth", &|arm| {
                    let estimate = &panel.cell(arm, level)?.bandwidth;
                    (estimate.mean > 0.0).then(|| vec![bandwidth(estimate.mean), plus_minus(estimate)])
                }),
                row("Mean response", &|arm| {
                    latency(panel, arm, level, Metric::MeanLatency, |cell| cell.mean_ns.as_ref())
                }),
                row("p99 response", &|arm| {
                    latency(panel, arm, level, Metric::TailLatency, |cell| cell.p99_ns.as_ref())
                }),
                row("Failed", &|arm| panel.cell(arm, level).map(failed)),
            ];
            for (name, cells) in rows {
                let mut all = vec![vec![panel.title_at(level)], vec![name]];
                all.extend(cells);
                table.lines(Tone::Plain, all);
            }
        }
    }
    table
}

fn throughput(panel: &Panel<'_>, arm: &str, level: &Level) -> Option<Vec<String>> {
    let cell = panel.cell(arm, level)?;
    let mut lines = vec![units::rate(cell.throughput.mean), plus_minus(&cell.throughput)];
    lines.extend(panel.comparison(arm, level, Metric::Throughput).map(outcome));
    lines.extend(cell.objection().map(|word| format!("✕ {word}")));
    lines.extend((cell.meets == Some(false)).then(|| "✕ outside the service level".to_owned()));
    Some(lines)
}

fn latency<'a>(
    panel: &Panel<'a>,
    arm: &str,
    level: &Level,
    metric: Metric,
    value: fn(&'a Cell) -> Option<&'a Estimate>,
) -> Option<Vec<String>> {
    let estimate = value(panel.cell(arm, level)?)?;
    let mut lines = vec![units::duration_ns(estimate.mean as u64), plus_minus(estimate)];
    lines.extend(panel.comparison(arm, level, metric).map(outcome));
    Some(lines)
}

fn failed(cell: &Cell) -> Vec<String> {
    match cell.failed {
        0 => vec!["0".into(), format!("of {}", units::count(cell.total))],
        failed => {
            let share = units::percent(failed as f64 / cell.total.max(1) as f64);
            vec![units::count(failed), format!("✕ {share}")]
        }
    }
}

/// Half of the interval as a share of the mean; says when there is none.
fn plus_minus(estimate: &Estimate) -> String {
    match estimate.half_width() {
        Some(half_width) => words_of(half_width),
        None if estimate.values.len() == 1 => "one value".into(),
        None => String::new(),
    }
}

/// A ratio: `×1.20`, `×0.0034`.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        none if !none.is_finite() => NONE.into(),
        small if small < 0.095 => format!("×{small:.4}"),
        large if large >= 99.5 => format!("×{}", units::count(large.round() as u64)),
        usual => format!("×{usual:.2}"),
    }
}

/// The sign and the words of a comparison's outcome.
pub(super) fn mark(comparison: &Comparison) -> String {
    let sign = match comparison.outcome {
        Outcome::Better | Outcome::Equal | Outcome::NotWorse => "✓ ",
        Outcome::Worse => "✕ ",
        Outcome::Inconclusive | Outcome::Confounded | Outcome::CannotTell => "≈ ",
        Outcome::Mixed | Outcome::NotCompared => "",
    };
    format!("{sign}{}", comparison.words())
}

fn outcome(comparison: &Comparison) -> String {
    let ratio = times(comparison.ratio);
    match comparison.outcome {
        Outcome::CannotTell => format!("≈ {ratio}: {}", comparison.words()),
        _ => format!("{}: {ratio}", mark(comparison)),
    }
}

/// All levels of a load as COSBench lists them: an arm after the other. `None` for loads without levels.
pub(super) fn levels(panel: &Panel<'_>) -> Option<Table> {
    if panel.levels.len() < 2 {
        return None;
    }
    let numbers = ["Throughput", "±", "Bandwidth", "mean", "p50", "p95", "p99", "Failed"];
    let is_shared = panel.cells.iter().any(|cell| cell.fairness.is_some());
    let mut table = Table::new(format!("Levels of {}", panel.title()))
        .words(["Arm", "Level"])
        .numbers(numbers)
        .numbers(is_shared.then_some("Fairness"))
        .words(["Service level", "Remarks"])
        .grouped();
    let ladders = panel.ladders();
    let ascending: Vec<&Level> = match ladders.is_empty() {
        true => panel.levels.clone(),
        false => ladders.iter().flat_map(|ladder| ladder.steps.iter().map(|(_, _, level)| *level)).collect(),
    };
    for (_, arm) in panel.arms() {
        let measured = || ascending.iter().filter_map(|level| Some((*level, panel.cell(arm, level)?)));
        let peak = measured().map(|(_, cell)| cell.throughput.mean).fold(0.0, f64::max);
        for (level, cell) in measured() {
            let time = |estimate: &Option<Estimate>| {
                estimate.as_ref().map_or(NONE.into(), |estimate| units::duration_ns(estimate.mean as u64))
            };
            let mut remarks = Vec::new();
            remarks.extend(panel.is_knee(arm, level).then_some("knee"));
            remarks.extend((cell.throughput.mean >= peak).then_some("highest throughput"));
            remarks.extend(cell.objection());
            let meets =
                cell.meets.map_or(NONE, |meets| if meets { "✓\u{a0}within" } else { "✕\u{a0}outside" });
            let mut cells = vec![
                arm.to_owned(),
                level_words(level),
                units::rate(cell.throughput.mean),
                plus_minus(&cell.throughput),
                bandwidth(cell.bandwidth.mean),
                time(&cell.mean_ns),
                time(&cell.p50_ns),
                time(&cell.p95_ns),
                time(&cell.p99_ns),
                units::count(cell.failed),
            ];
            cells
                .extend(is_shared.then(|| cell.fairness.as_ref().map_or(NONE.into(), |own| index(own.mean))));
            cells.extend([meets.to_owned(), remarks.join(", ")]);
            table.row(if cell.invalid { Tone::Bad } else { Tone::Plain }, cells);
        }
    }
    Some(table.without_if_same("Service level").without_if_same("Remarks").without_if_same("±"))
}

/// The operations of loads that have several, at the levels that the main table shows.
pub(super) fn operations(panels: &[Panel<'_>]) -> Table {
    let mut table = Table::new("Operation by operation")
        .words(["Load", "Operation", "Arm"])
        .numbers(["Throughput", "±", "Bandwidth", "mean", "p95", "p99"])
        .grouped();
    let time = |estimate: &Option<Estimate>| {
        estimate.as_ref().map_or(NONE.into(), |estimate| units::duration_ns(estimate.mean as u64))
    };
    for panel in panels {
        for level in panel.main_levels() {
            let cells: Vec<_> = panel.arms().filter_map(|(_, arm)| panel.cell(arm, level)).collect();
            let labels = cells.first().map(|cell| cell.operations.iter().map(|one| &one.label));
            for label in labels.into_iter().flatten() {
                for cell in &cells {
                    let Some(one) = cell.operations.iter().find(|one| &one.label == label) else { continue };
                    let row = vec![
                        panel.title_at(level),
                        label.clone(),
                        cell.arm.clone(),
                        units::rate(one.throughput.mean),
                        plus_minus(&one.throughput),
                        bandwidth(one.bandwidth.mean),
                        time(&one.mean_ns),
                        time(&one.p95_ns),
                        time(&one.p99_ns),
                    ];
                    table.row(Tone::Plain, row);
                }
            }
        }
    }
    table
}

/// The means over cells: arms beside the baseline, and beside each other.
pub(super) fn overall(subject: &Subject<'_>) -> Table {
    let all = subject.assessment.overall.iter();
    tested("In the mean of all cells", all.map(|one| (one.place(), one)))
}

/// Every comparison with what its test says.
pub(super) fn comparisons(subject: &Subject<'_>, panels: &[Panel<'_>]) -> Table {
    let place = |one: &Comparison| {
        let panel = panels.iter().find(|panel| panel.load == one.load && panel.subject == one.subject);
        panel.map_or_else(|| one.load.clone(), |panel| panel.title_at(&one.level))
    };
    let all = subject.assessment.comparisons.iter();
    tested("Comparisons with the baseline", all.map(|one| (place(one), one)))
}

fn tested<'c>(caption: &str, all: impl Iterator<Item = (String, &'c Comparison)>) -> Table {
    let mut table = Table::new(caption)
        .words(["Of", "Arm", "Beside", "Number"])
        .numbers(["Ratio", "95 % interval", "p", "Seen from"])
        .words(["Result"]);
    for (place, one) in all {
        let metric = match one.metric {
            Metric::Throughput => "throughput",
            Metric::MeanLatency => "mean response",
            Metric::TailLatency => "p99 response",
        };
        let interval =
            one.interval.map_or(NONE.into(), |(low, high)| format!("{} to {}", times(low), times(high)));
        let p = one.p.map_or(NONE.into(), |p| if p < 0.0005 { "< 0.001".into() } else { format!("{p:.3}") });
        let cells = vec![
            place,
            one.arm.clone(),
            one.baseline.clone(),
            metric.into(),
            times(one.ratio),
            interval,
            p,
            one.detectable.map_or(NONE.into(), difference),
            mark(one),
        ];
        table.row(if one.outcome == Outcome::Worse { Tone::Bad } else { Tone::Plain }, cells);
    }
    table
}

/// What the devices saw, of all runs of an arm under a load together.
pub(super) fn proofs(subject: &Subject<'_>, panels: &[Panel<'_>]) -> Table {
    let mut table = Table::new("Device counters")
        .words(["Load", "Arm"])
        .numbers(["Runs"])
        .words(["Cache", "Direct", "Devices"])
        .numbers(["Busiest device", "Read from devices", "Written to devices"])
        .words(["Before the load", "Not checked"])
        .grouped();
    let mut loads: Vec<&str> = panels.iter().map(|panel| panel.load).collect();
    loads.dedup();
    for load in loads {
        for arm in &subject.evaluation.arms {
            let own = subject.runs.iter().filter(|run| is_of(run, &arm.name, load));
            let proofs: Vec<(&Stage, &Proof)> = own
                .flat_map(|run| run.stages.iter().filter(|stage| content::is_main(stage)))
                .filter_map(|stage| Some((stage, stage.proof.as_ref()?)))
                .collect();
            if proofs.is_empty() {
                continue;
            }
            let all = |text: &dyn Fn(&Proof) -> String| joined(proofs.iter().map(|(_, proof)| text(proof)));
            let busy = proofs.iter().filter_map(|(stage, proof)| {
                let most = proof.devices.iter().map(|device| device.busy_ns).max()?;
                let took = stage.ended_ns.saturating_sub(stage.started_ns);
                (took > 0).then(|| most as f64 / took as f64)
            });
            let devices = |proof: &Proof| joined(proof.devices.iter().map(|device| device.device.clone()));
            let cells = vec![
                load.to_owned(),
                arm.name.clone(),
                proofs.len().to_string(),
                all(&|proof| proof.cache.map(|cache| cache.name().into()).unwrap_or_default()),
                all(&|proof| if proof.direct { "yes" } else { "no" }.into()),
                all(&devices),
                range(busy),
                range(shares(&proofs, &OperationClass::Read, |device| device.read_bytes)),
                range(shares(&proofs, &OperationClass::Write, |device| device.written_bytes)),
                all(&|proof| proof.setup.join("; ")),
                all(&|proof| proof.unchecked.join(" ")),
            ];
            table.row(Tone::Plain, cells);
        }
    }
    table.without_if_same("Not checked").without_if_same("Before the load")
}

/// Bytes that the devices counted as a share of those that the load claims, stage by stage.
fn shares(
    proofs: &[(&Stage, &Proof)],
    class: &OperationClass,
    bytes: fn(&DeviceUse) -> u64,
) -> impl Iterator<Item = f64> {
    proofs.iter().filter(|(_, proof)| !proof.devices.is_empty()).filter_map(move |(stage, proof)| {
        let seen = proof.devices.iter().map(bytes).fold(0, u64::saturating_add);
        let claimed = claimed(stage, class);
        (claimed > 0).then(|| seen as f64 / claimed as f64)
    })
}

/// Shares from the lowest to the highest, in whole percent.
fn range(shares: impl Iterator<Item = f64>) -> String {
    let (low, high) =
        shares.fold((f64::MAX, f64::MIN), |(low, high), share| (share.min(low), share.max(high)));
    let [from, to] = [low, high].map(|share| (share * 100.0).round());
    match (from, to) {
        (from, to) if from > to => NONE.into(),
        (from, to) if from == to => format!("{from:.0} %"),
        (from, to) => format!("{from:.0} to {to:.0} %"),
    }
}

/// Different texts, each once.
fn joined(texts: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for text in texts.filter(|text| !text.is_empty()) {
        if !different.contains(&text) {
            different.push(text);
        }
    }
    if different.is_empty() { NONE.into() } else { different.join(", ") }
}

fn is_of(run: &Run, arm: &str, load: &str) -> bool {
    run.member.as_ref().is_some_and(|member| member.arm == arm && member.load == load)
}

/// What the arms are: a column for each, a row for every setting that any of them has.
pub(super) fn arms(subject: &Subject<'_>) -> Table {
    let arms = compared_arms(subject.evaluation);
    let mut table = Table::new("Arms").words(["Setting"]);
    for arm in &arms {
        table = table.words([arm.name.as_str()]);
    }
    if arms.iter().any(|arm| !arm.description.is_empty()) {
        let descriptions = arms.iter().map(|arm| arm.description.clone());
        table.row(Tone::Plain, [String::from("description")].into_iter().chain(descriptions).collect());
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in arms.iter().flat_map(|arm| &arm.settings) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        let value = |arm: &&tidemark_measure::evaluation::Arm| {
            let own = arm.settings.iter().filter(|(own, _)| own == name).map(|(_, value)| value.clone());
            joined(own)
        };
        table.row(Tone::Plain, [name.to_owned()].into_iter().chain(arms.iter().map(value)).collect());
    }
    table
}

/// What the loads are.
pub(super) fn loads(subject: &Subject<'_>) -> Table {
    let mut table = Table::new("Loads").words(["Load", "Description", "Levels", "Service level"]);
    for load in &subject.evaluation.loads {
        let levels: Vec<String> =
            load.levels.iter().map(level_words).filter(|words| !words.is_empty()).collect();
        let levels = match (&load.search, levels.is_empty()) {
            (Some(search), _) => {
                format!(
                    "searched: {} {} to {}, within {:.0} %{}",
                    search.axis,
                    search.from,
                    search.to,
                    search.within * 100.0,
                    if search.runs > 0 { format!(", {} runs at most", search.runs) } else { String::new() }
                )
            }
            (None, true) => "one".into(),
            (None, false) => levels.join("; "),
        };
        let service_level = load.service_level.as_ref().map_or(NONE, |level| level.text.as_str());
        table.row(
            Tone::Plain,
            vec![load.name.clone(), load.description.clone(), levels, service_level.into()],
        );
    }
    table.without_if_same("Service level")
}

/// Every run in the order of time.
pub(super) fn runs(subject: &Subject<'_>) -> Table {
    let mut table =
        Table::new("All runs").numbers(["Run"]).words(["Arm", "Load", "Level"]).numbers(["Repeat", "Turn"]);
    table = table.words(["Started", "State", "Validity"]).numbers(["Throughput", "p99", "Failed"]);
    let mut runs: Vec<(&Run, &tidemark_measure::evaluation::Member)> =
        subject.runs.iter().filter_map(|run| Some((run, run.member.as_ref()?))).collect();
    runs.sort_by_key(|(run, member)| (member.turn, run.id));
    for (run, member) in runs {
        let is_valid = judge(run).is_valid();
        let tone = if is_valid && run.state == State::Completed { Tone::Plain } else { Tone::Bad };
        let Totals { throughput, p99_ns, failed, .. } = totals(run);
        let cells = vec![
            run.id.to_string(),
            member.arm.clone(),
            member.load.clone(),
            level_words(&member.level),
            member.repeat.to_string(),
            member.turn.to_string(),
            crate::text::utc(run.started_unix_ns),
            run.state.name().into(),
            if is_valid { "VALID" } else { "INVALID" }.into(),
            units::rate(throughput),
            p99_ns.map_or(NONE.into(), |ns| units::duration_ns(ns as u64)),
            units::count(failed),
        ];
        table.row(tone, cells);
    }
    table.without_if_same("Level")
}

/// What made the evaluation.
pub(super) fn provenance(subject: &Subject<'_>) -> Table {
    let evaluation = subject.evaluation;
    let number = if evaluation.id == 0 { "not stored".into() } else { evaluation.id.to_string() };
    let own = [
        ("Evaluation", number),
        ("Started", crate::text::utc(evaluation.started_unix_ns)),
        (
            "Runs",
            match evaluation.until {
                Some(until) => format!(
                    "{}, each cell until {}, at most {} times, {}",
                    subject.runs.len(),
                    words_of(until),
                    evaluation.repeats,
                    evaluation.order
                ),
                None => format!(
                    "{}, each cell {} times, {}",
                    subject.runs.len(),
                    evaluation.repeats,
                    evaluation.order
                ),
            },
        ),
    ];
    content::made_by("What made this evaluation", &evaluation.provenance, own)
}

/// How to do it again, in words, and the command.
pub(super) fn again(subject: &Subject<'_>) -> (String, String) {
    let source = &subject.evaluation.provenance;
    let file = if source.path.is_empty() { "FILE" } else { source.path.as_str() };
    let words = format!(
        "The same command continues an unfinished evaluation and keeps its finished cells; --again measures every cell again. \
         The same document with seed {} makes the same choices in the same repeat on every arm.",
        source.seed
    );
    (words, format!("tidemark run {file} --again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_intervals_are_never_rounded_to_nothing() {
        assert_eq!([1.2, 0.0123, 250.4, f64::NAN].map(times), ["×1.20", "×0.0123", "×250", "–"]);
        let estimate = |values: &[f64], interval| Estimate {
            values: values.to_vec(),
            mean: values.first().copied().unwrap_or_default(),
            interval,
            ..Estimate::default()
        };
        assert_eq!(plus_minus(&estimate(&[200.0, 210.0], Some((190.0, 210.0)))), "± 5.0 %");
        assert_eq!(plus_minus(&estimate(&[10.0, 30.0], Some((-15.0, 35.0)))), "± 250 %");
        assert_eq!(plus_minus(&estimate(&[200.0], None)), "one value");
        assert_eq!(plus_minus(&estimate(&[0.0, 0.0], Some((0.0, 0.0)))), "");
    }

    #[test]
    fn shares_of_many_runs_are_a_range() {
        assert_eq!(range([0.98, 1.02].into_iter()), "98 to 102 %");
        assert_eq!(range([3.0].into_iter()), "300 %");
        assert_eq!(range(std::iter::empty()), "–");
    }
}
