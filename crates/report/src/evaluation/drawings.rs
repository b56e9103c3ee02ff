//! The figures of an evaluation, section by section. All names begin with what they are of, and no two are the same.

use super::panel::{Ladder, Panel, limited, panels, statistic};
use super::{Subject, place, tuning};
use crate::figures::{
    Bar, Curve, Figure, Group, Stop, bars, heat_map, latency_by_throughput, percentile_curves,
    throughput_by_level, timelines,
};
use tidemark_judge::evaluation::{Cell, Estimate, Metric, Outcome};
use tidemark_measure::axis::Value;
use tidemark_measure::evaluation::Level;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::service_level::Limit;
use tidemark_measure::units;

/// Figures of curves of one load, at most: the tables have all levels.
const MOST_LADDERS: usize = 8;

/// Points of all timelines together; a point takes about eight bytes.
const POINTS_IN_ALL: usize = 160_000;

/// Lines of a node's timelines, about.
const LINES_PER_NODE: usize = 60;

/// Runs whose timelines are drawn, at most.
const MOST_TIMELINES: usize = 12;

/// Every figure, in the order of the page.
pub(super) fn all(subject: &Subject<'_>) -> Vec<Figure> {
    let panels = panels(subject.evaluation, subject.assessment);
    let mut figures = tuning::searched(subject)
        .map(|(tuning, conclusion)| tuning::figures(tuning, &conclusion))
        .unwrap_or_default();
    figures.extend(raw(&panels));
    figures.extend(normalised(&panels));
    for panel in &panels {
        figures.extend(curves(panel));
        figures.extend(percentiles(panel));
        figures.extend(heat(panel, subject));
    }
    figures.extend(observed(&panels, subject).into_iter().flat_map(|(_, nodes)| nodes).flatten());
    figures
}

/// Bars of what was measured: throughput and the tail of the response times.
pub(super) fn raw(panels: &[Panel<'_>]) -> Vec<Figure> {
    let throughput = groups(panels, |panel, arm, level| {
        let cell = panel.cell(arm, level)?;
        Some((&cell.throughput, units::rate(cell.throughput.mean)))
    });
    let tail = groups(panels, |panel, arm, level| {
        let estimate = panel.cell(arm, level)?.p99_ns.as_ref()?;
        Some((estimate, units::duration_ns(estimate.mean as u64)))
    });
    let figures = [
        bars("throughput", "Throughput: longer is better; each load has its own scale", &throughput, None),
        bars("p99", "p99 of the response time: shorter is better; each load has its own scale", &tail, None),
    ];
    figures.into_iter().flatten().collect()
}

fn groups<'a>(
    panels: &[Panel<'a>],
    value: impl Fn(&Panel<'a>, &str, &Level) -> Option<(&'a Estimate, String)>,
) -> Vec<Group> {
    let group = |panel: &Panel<'a>| {
        let level = panel.shown()?;
        let bar = |(colour, arm): (usize, &str)| {
            let (estimate, words) = value(panel, arm, level)?;
            let (label, value) = (arm.to_owned(), estimate.mean);
            Some(Bar { label, value, interval: estimate.interval, words, colour })
        };
        let bars: Vec<Bar> = panel.arms().filter_map(bar).collect();
        (!bars.is_empty()).then(|| Group { title: panel.title_at(level), bars })
    };
    panels.iter().filter_map(group).collect()
}

/// Bars of what was measured as multiples of the baseline's, where there is something to compare.
pub(super) fn normalised(panels: &[Panel<'_>]) -> Vec<Figure> {
    let figure = |metric, name, title| {
        let group = |panel: &Panel<'_>| {
            let level = panel.shown()?;
            let bar = |(colour, arm): (usize, &str)| {
                let one = panel.comparison(arm, level, metric)?;
                let words = format!("{} {}", super::tables::times(one.ratio), sign(one.outcome));
                Some(Bar { label: arm.into(), value: one.ratio, interval: one.interval, words, colour })
            };
            let mut bars: Vec<Bar> = panel.arms().filter_map(bar).collect();
            let (_, baseline) = panel.arms().next()?;
            if bars.is_empty() {
                return None;
            }
            let base = Bar {
                label: baseline.into(),
                value: 1.0,
                interval: None,
                words: "the baseline".into(),
                colour: 0,
            };
            bars.insert(0, base);
            Some(Group { title: panel.title_at(level), bars })
        };
        let groups: Vec<Group> = panels.iter().filter_map(group).collect();
        bars(name, title, &groups, Some(1.0))
    };
    let figures = [
        figure(
            Metric::Throughput,
            "throughput-normalised",
            "Throughput as a multiple of the baseline's: more is better",
        ),
        figure(
            Metric::TailLatency,
            "p99-normalised",
            "p99 of the response time as a multiple of the baseline's: less is better",
        ),
    ];
    figures.into_iter().flatten().collect()
}

/// An outcome in the few words that fit beside a bar.
fn sign(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better => "✓ better",
        Outcome::Worse => "✕ worse",
        Outcome::Equal => "✓ equal",
        Outcome::NotWorse => "✓ not worse",
        Outcome::Inconclusive => "≈ inconclusive",
        Outcome::Confounded => "≈ or a drift",
        Outcome::Mixed | Outcome::CannotTell => "≈ cannot tell",
        Outcome::NotCompared => "not tested",
    }
}

/// Latency against throughput and throughput by level, for loads with levels.
pub(super) fn curves(panel: &Panel<'_>) -> Vec<Figure> {
    let ladders = panel.ladders();
    let mut figures = Vec::new();
    for (number, ladder) in ladders.iter().take(MOST_LADDERS).enumerate() {
        let curves: Vec<Curve> = panel
            .arms()
            .map(|(colour, arm)| curve(panel, ladder, colour, arm))
            .filter(|curve| !curve.stops.is_empty())
            .collect();
        let limit = panel.limit();
        let line = limit.map(|(limit, text)| (limit.at(bytes_per_operation(panel, limit)), text.to_owned()));
        let statistic = statistic(limit.map(|(limit, _)| limit));
        let drawn = [
            latency_by_throughput(&curves, &statistic, line.as_ref()),
            throughput_by_level(&curves, ladder.axis),
        ];
        let place = if ladder.others.is_empty() {
            panel.title()
        } else {
            format!("{}, {}", panel.title(), ladder.others)
        };
        figures.extend(drawn.into_iter().flatten().map(|figure| {
            let (name, title) =
                (format!("{}-{}", figure.name, number + 1), format!("{}: {place}", figure.title));
            own(panel, figure, &name).titled(&title)
        }));
    }
    figures
}

fn curve(panel: &Panel<'_>, ladder: &Ladder<'_>, colour: usize, arm: &str) -> Curve {
    let limit = panel.limit().map(|(limit, _)| limit);
    let stop = |(number, value, level): &(f64, &Value, &Level)| {
        let cell = panel.cell(arm, level)?;
        Some(Stop {
            level: *number,
            name: value.to_string(),
            throughput: cell.throughput.mean,
            interval: cell.throughput.interval,
            latency_ns: limited(cell, limit),
            is_knee: panel.is_knee(arm, level),
        })
    };
    Curve { label: arm.into(), colour, stops: ladder.steps.iter().filter_map(stop).collect() }
}

/// The mean size of the operations that a limit is about, over all cells of a load.
fn bytes_per_operation(panel: &Panel<'_>, limit: &Limit) -> f64 {
    let own = |cell: &Cell| {
        let named = cell.operations.iter().find(|one| one.label == limit.operation);
        named.map_or((cell.throughput.mean, cell.bandwidth.mean), |one| {
            (one.throughput.mean, one.bandwidth.mean)
        })
    };
    let rates = panel.cells.iter().map(|cell| own(cell)).filter(|(throughput, _)| *throughput > 0.0);
    let sizes: Vec<f64> = rates.map(|(throughput, bandwidth)| bandwidth / throughput).collect();
    sizes.iter().sum::<f64>() / sizes.len().max(1) as f64
}

/// Percentiles of the response times, a line for each arm.
pub(super) fn percentiles(panel: &Panel<'_>) -> Option<Figure> {
    let level = panel.shown()?;
    let line = |(colour, arm)| Some((arm, colour, &panel.cell(arm, level)?.response));
    let lines: Vec<(&str, usize, &Histogram)> = panel.arms().filter_map(line).collect();
    let figure = percentile_curves(&lines)?;
    let title = format!("{}: {}", figure.title, panel.title_at(level));
    Some(own(panel, figure, "percentiles").titled(&title))
}

/// Heat maps of the arms under a load, as far as their seconds were kept.
pub(super) fn heat(panel: &Panel<'_>, subject: &Subject<'_>) -> Vec<Figure> {
    let figure = |(number, arm): (usize, &str)| {
        let (run, stage, work) = place(panel, arm, subject.runs)?;
        let heat =
            subject.heat.iter().find(|heat| (heat.run, heat.stage, heat.work) == (run.id, stage, work))?;
        let title =
            format!("{arm}: response time over time, {} (run {})", panel.title_at(panel.shown()?), run.id);
        let figure = heat_map(heat, "heat", &title)?;
        Some(own(panel, figure, &format!("heat-{}", number + 1)))
    };
    panel.arms().filter_map(figure).collect()
}

/// What the nodes did in the runs that stand for their cells, load by load: a title, and for each node the figures of
/// all arms.
pub(super) fn observed(panels: &[Panel<'_>], subject: &Subject<'_>) -> Vec<(String, Vec<Vec<Figure>>)> {
    let mut chosen = Vec::new();
    for panel in panels {
        for (number, arm) in panel.arms() {
            let run = place(panel, arm, subject.runs).filter(|(run, _, _)| !run.nodes.is_empty());
            chosen.extend(run.map(|(run, stage, _)| (panel, number, arm, run, stage)));
        }
    }
    chosen.truncate(MOST_TIMELINES);
    let nodes: usize = chosen.iter().map(|(.., run, _)| run.nodes.len()).sum();
    let points = (POINTS_IN_ALL / (nodes.max(1) * LINES_PER_NODE)).clamp(20, 120);
    let of_load = |panel: &Panel<'_>| {
        let own = chosen.iter().filter(|(other, ..)| other.number == panel.number);
        let drawn = own.flat_map(|(_, number, arm, run, stage)| {
            timelines(run, Some(*stage), points).into_iter().enumerate().map(move |(node, figure)| {
                let name = format!("arm-{}-{}", number + 1, figure.name);
                let title = format!("{arm}, run {}: {}", run.id, figure.title);
                (node, self::own(panel, figure, &name).titled(&title))
            })
        });
        let mut drawn: Vec<(usize, Figure)> = drawn.collect();
        drawn.sort_by_key(|(node, _)| *node);
        let title = panel.shown().map_or(panel.title(), |level| panel.title_at(level));
        let nodes = drawn.chunk_by(|one, next| one.0 == next.0);
        let nodes = nodes.map(|node| node.iter().map(|(_, figure)| figure.clone()).collect());
        (title, nodes.collect::<Vec<Vec<Figure>>>())
    };
    panels.iter().map(of_load).filter(|(_, nodes)| !nodes.is_empty()).collect()
}

/// A figure under the name of its load.
fn own(panel: &Panel<'_>, figure: Figure, name: &str) -> Figure {
    figure.named(&format!("load-{}-{name}", panel.number))
}
