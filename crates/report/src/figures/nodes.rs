//! What the nodes did while the load was on: small charts one above the other on one axis of time, the load's own at
//! the top, and above them the queries, if there are any: so that one sees which query a peak belongs to.

use super::chart::{COLOURS, spread};
use super::figure::{Figure, WIDTH};
use super::path::{Path, put};
use super::queries::{Bar, Rows};
use super::scale::Scale;
use super::series::{Point, latency_points, rate_points, seconds, thin};
use crate::text::{escape, shorten};
use std::collections::BTreeSet;
use tidemark_measure::observation::{Kind, Node, Series};
use tidemark_measure::record::{QueryUse, Run, Stage, Work};
use tidemark_measure::units;

/// Where charts begin and end, in pixels.
const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDTH as f64 - 124.0;

/// Heights: of a chart, of its title above it, and of the axis of time at the bottom.
const HEIGHT: f64 = 44.0;
const TITLE: f64 = 23.0;
const AXIS: f64 = 36.0;

/// Lines of a chart: those with the highest means.
const MOST_LINES: usize = 4;

/// Charts of a node, the load's own not counted.
const MOST_PANELS: usize = 24;

/// Rows of queries above the charts, and the most of them.
const QUERIES: Rows = Rows { top: TITLE, row: 16.0, bar: 13.0, letter: 7.4, size: " small" };
const MOST_ROWS: usize = 8;

/// Distance between two labels beside lines.
const LABEL_HEIGHT: f64 = 12.0;

/// How the values of a chart are read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    /// 0 to 1, shown in percent.
    Share,
    /// Things per second.
    Rate,
    /// Bytes per second.
    Bandwidth,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Time,
    /// Anything else that is counted.
    Count,
}

/// What has a line of its own in a chart.
enum Lines {
    /// Every subject that has the metric.
    Subjects(&'static str),
    /// These metrics of one subject.
    Metrics(&'static str, &'static [&'static str]),
}

/// The charts of a node, in their order; names are those of the table in `tidemark-observe`.
const PANELS: &[(Kind, &str, Unit, Lines)] = &[
    (Kind::Cpu, "Processors", Unit::Share, Lines::Metrics("all", &["busy", "iowait", "steal"])),
    (Kind::Process, "Processes, cores", Unit::Count, Lines::Subjects("cpu")),
    (Kind::Process, "Busiest thread of processes", Unit::Share, Lines::Subjects("busiest_thread")),
    (Kind::Cgroup, "Periods stopped by the quota", Unit::Share, Lines::Subjects("throttled_periods")),
    (Kind::Pressure, "Pressure: time in which tasks waited", Unit::Share, Lines::Subjects("some")),
    (Kind::Disk, "Disks: reads", Unit::Rate, Lines::Subjects("read_ops")),
    (Kind::Disk, "Disks: writes", Unit::Rate, Lines::Subjects("write_ops")),
    (Kind::Disk, "Disks: read", Unit::Bandwidth, Lines::Subjects("read_bytes")),
    (Kind::Disk, "Disks: written", Unit::Bandwidth, Lines::Subjects("write_bytes")),
    (Kind::Disk, "Disks: time of a read", Unit::Time, Lines::Subjects("read_await_ns")),
    (Kind::Disk, "Disks: time of a write", Unit::Time, Lines::Subjects("write_await_ns")),
    (Kind::Disk, "Disks: requests in flight", Unit::Count, Lines::Subjects("queue")),
    (Kind::Disk, "Disks: time with requests in flight", Unit::Share, Lines::Subjects("busy")),
    (Kind::Network, "Network: received", Unit::Bandwidth, Lines::Subjects("rx_bytes")),
    (Kind::Network, "Network: sent", Unit::Bandwidth, Lines::Subjects("tx_bytes")),
    (Kind::Network, "Segments sent again", Unit::Rate, Lines::Subjects("retransmitted_segments")),
    (Kind::Memory, "Memory", Unit::Bytes, Lines::Metrics("node", &["used", "cached", "dirty", "writeback"])),
    (Kind::Ceph, "Ceph: time of a client's read", Unit::Time, Lines::Subjects("op_r_latency_ns")),
    (Kind::Ceph, "Ceph: time of a client's write", Unit::Time, Lines::Subjects("op_w_latency_ns")),
    (Kind::Ceph, "Ceph: wait in the queue", Unit::Time, Lines::Subjects("op_before_dequeue_ns")),
    (Kind::Ceph, "BlueStore: time of a commit", Unit::Time, Lines::Subjects("commit_ns")),
    (Kind::Ceph, "BlueStore: commit thread", Unit::Share, Lines::Subjects("kv_sync_busy")),
    (Kind::Ceph, "Gateway: read", Unit::Bandwidth, Lines::Subjects("get_bytes")),
    (Kind::Ceph, "Gateway: written", Unit::Bandwidth, Lines::Subjects("put_bytes")),
    (Kind::Ceph, "Gateway: time of a read", Unit::Time, Lines::Subjects("get_latency_ns")),
    (Kind::Ceph, "Gateway: time of a write", Unit::Time, Lines::Subjects("put_latency_ns")),
    (Kind::Ceph, "Gateway: requests in progress", Unit::Count, Lines::Subjects("qactive")),
    (Kind::Ceph, "Ceph: groups not clean", Unit::Count, Lines::Subjects("pgs_not_clean")),
    (Kind::Ceph, "Ceph: recoveries", Unit::Rate, Lines::Subjects("recovery_ops")),
];

/// One small chart.
struct Panel {
    title: String,
    unit: Unit,
    lines: Vec<Line>,
}

struct Line {
    label: String,
    points: Vec<Point>,
    /// What a control group allows, drawn dotted.
    limit: Option<f64>,
}

/// The time that is shown, on the run's clock.
struct Span {
    from_ns: u64,
    to_ns: u64,
    /// Where loads were measured, seconds since its beginning.
    windows: Vec<(f64, f64)>,
}

/// The queries that ran meanwhile.
struct Strip<'a> {
    /// The streams that have a row: their work, where several works ask at the same time, and their number in it.
    streams: Vec<(&'a str, u32)>,
    /// Streams that have none.
    more: usize,
    /// The row of each execution, and from when to when it ran, seconds of the span.
    executions: Vec<(usize, f64, f64, &'a QueryUse)>,
}

/// What every node did: during one stage, or with `None` from the run's start to its end. A figure for each node.
pub fn timelines(run: &Run, stage: Option<usize>, most_points: usize) -> Vec<Figure> {
    let Some(span) = Span::of(run, stage) else { return Vec::new() };
    let load = load(run, stage, &span, most_points);
    let queries = Strip::of(run, stage, &span);
    let figure = |(number, node): (usize, &Node)| {
        let panels = panels(node, &span, most_points);
        (!panels.is_empty()).then(|| draw(number, node, &span, &queries, &load, &panels))
    };
    run.nodes.iter().enumerate().filter_map(figure).collect()
}

impl Span {
    fn of(run: &Run, stage: Option<usize>) -> Option<Self> {
        let (from_ns, to_ns) = match stage {
            Some(index) => run.stages.get(index).map(|stage| (stage.started_ns, stage.ended_ns))?,
            None => {
                (0, run.nodes.iter().filter_map(|node| node.at_ns.last()).copied().max()?.max(run.elapsed_ns))
            }
        };
        let window = |work: &Work| {
            let at = |ns: u64| seconds(work.started_ns.saturating_add(ns).saturating_sub(from_ns));
            (at(work.window_start_ns), at(work.window_end_ns))
        };
        let windows = stages(run, stage).flat_map(|stage| &stage.works).filter(|work| work.kind.measures());
        let windows = windows.map(window).filter(|(from, to)| to > from).collect();
        (to_ns > from_ns).then_some(Self { from_ns, to_ns, windows })
    }

    fn seconds(&self) -> f64 {
        seconds(self.to_ns - self.from_ns)
    }

    /// The values of a series within the span, on its axis.
    fn points(&self, node: &Node, series: &Series) -> Vec<Point> {
        let within = node.at_ns.iter().zip(&series.values);
        let within = within.filter(|(at, _)| (self.from_ns..=self.to_ns).contains(at));
        within
            .map(|(at, value)| (seconds(at - self.from_ns), value.is_finite().then_some(f64::from(*value))))
            .collect()
    }
}

impl<'a> Strip<'a> {
    fn of(run: &'a Run, stage: Option<usize>, span: &Span) -> Self {
        let mut all = Vec::new();
        for stage in stages(run, stage) {
            let used =
                || stage.proof.iter().flat_map(|proof| &proof.tables).filter(|used| !used.queries.is_empty());
            let only = used().nth(1).is_none();
            for used in used() {
                let Some(work) = stage.works.iter().find(|work| work.name == used.work) else { continue };
                let name = if only { "" } else { used.work.as_str() };
                all.extend(used.queries.iter().map(|one| ((name, one.stream), work.started_ns, one)));
            }
        }
        let streams: BTreeSet<(&str, u32)> = all.iter().map(|(stream, ..)| *stream).collect();
        let more = streams.len().saturating_sub(MOST_ROWS);
        let streams: Vec<_> = streams.into_iter().take(MOST_ROWS).collect();
        let placed = |(stream, started_ns, one): ((&str, u32), u64, &'a QueryUse)| {
            let row = streams.iter().position(|known| *known == stream)?;
            let at = |ns: u64| {
                seconds(started_ns.saturating_add(ns).saturating_sub(span.from_ns)).min(span.seconds())
            };
            Some((row, at(one.began_ns), at(one.began_ns.saturating_add(one.took_ns)), one))
        };
        let executions = all.into_iter().filter_map(placed).collect();
        Strip { streams, more, executions }
    }

    /// Draws it at the top; gives where it ends.
    fn draw(&self, body: &mut String, time: &Scale) -> f64 {
        if self.streams.is_empty() {
            return 0.0;
        }
        let more = match self.more {
            0 => String::new(),
            more => format!(" ({} of {} streams)", self.streams.len(), self.streams.len() + more),
        };
        let y = TITLE - 6.0;
        put(body, format_args!("<text class=\"small\" x=\"{LEFT}\" y=\"{y:.0}\">Queries{more}</text>"));
        for (row, (work, stream)) in self.streams.iter().enumerate() {
            let name = match *work {
                "" => format!("stream {stream}"),
                work => format!("{} {stream}", shorten(work, 8)),
            };
            QUERIES.name(body, row, LEFT - 6.0, &name);
        }
        let bars = self.executions.iter().map(|(row, from, to, execution)| Bar {
            row: *row,
            from: across(time.place(*from)),
            to: across(time.place(*to)),
            execution,
        });
        QUERIES.bars(body, bars.collect());
        QUERIES.bottom(self.streams.len()) + 4.0
    }

    /// What is said of it to those who do not see it.
    fn describe(&self) -> String {
        match self.streams.len() + self.more {
            0 => String::new(),
            streams => format!("{} executions of queries, streams: {streams}. ", self.executions.len()),
        }
    }
}

fn stages(run: &Run, stage: Option<usize>) -> impl Iterator<Item = &Stage> {
    let chosen =
        run.stages.iter().enumerate().filter(move |(index, _)| stage.is_none_or(|only| only == *index));
    chosen.map(|(_, stage)| stage)
}

/// Throughput, and the 99th percentile of the response times, of every operation that is measured.
fn load(run: &Run, stage: Option<usize>, span: &Span, most_points: usize) -> Vec<Panel> {
    let mut rates: Vec<Line> = Vec::new();
    let mut latencies: Vec<Line> = Vec::new();
    let works = stages(run, stage).flat_map(|stage| &stage.works).filter(|work| work.kind.measures());
    for work in works {
        let offset = seconds(work.started_ns) - seconds(span.from_ns);
        let shifted = |points: Vec<Point>| -> Vec<Point> {
            let moved = points.into_iter().map(|(x, value)| (x + offset, value));
            thin(&moved.collect::<Vec<_>>(), most_points)
        };
        for (index, operation) in work.operations.iter().enumerate() {
            join(&mut rates, &operation.label, shifted(rate_points(work, index, |second| second.ok)));
            let tail = shifted(latency_points(work, index, |second| second.p99_ns));
            join(&mut latencies, &operation.label, tail);
        }
    }
    let panel = |title: &str, unit, lines| Panel { title: title.into(), unit, lines };
    let panels = [
        panel("The load: throughput", Unit::Rate, rates),
        panel("The load: p99 of the response time", Unit::Time, latencies),
    ];
    panels.into_iter().map(bounded).filter(|panel| !panel.lines.is_empty()).collect()
}

/// Adds the points of a work to the line of their operation, after a gap.
fn join(lines: &mut Vec<Line>, label: &str, points: Vec<Point>) {
    match lines.iter_mut().find(|line| line.label == label) {
        Some(line) => {
            let gap = points.first().map(|(x, _)| (*x, None));
            line.points.extend(gap.into_iter().chain(points));
        }
        None => lines.push(Line { label: label.into(), points, limit: None }),
    }
}

/// The charts of a node that have anything to show.
fn panels(node: &Node, span: &Span, most_points: usize) -> Vec<Panel> {
    let line = |series: &Series, label: &str| {
        let limit = node.find(series.kind, &series.subject, &format!("{}_limit", series.metric));
        Line {
            label: label.into(),
            points: thin(&span.points(node, series), most_points),
            limit: limit.and_then(|limit| node.mean(limit, span.from_ns, span.to_ns)),
        }
    };
    let panel = |(kind, title, unit, lines): &(Kind, &str, Unit, Lines)| {
        let lines = match lines {
            Lines::Subjects(metric) => {
                node.all(*kind, metric).map(|series| line(series, &series.subject)).collect()
            }
            Lines::Metrics(subject, metrics) => {
                let found = metrics.iter().filter_map(|metric| node.find(*kind, subject, metric));
                found.map(|series| line(series, &series.metric)).collect()
            }
        };
        bounded(Panel { title: (*title).into(), unit: *unit, lines })
    };
    PANELS.iter().map(panel).filter(|panel| !panel.lines.is_empty()).take(MOST_PANELS).collect()
}

/// Without lines that never leave the bottom, and with no more than can be told apart.
fn bounded(mut panel: Panel) -> Panel {
    panel.lines.retain(|line| line.values().any(|value| value > 0.0));
    if panel.lines.len() > MOST_LINES {
        panel.lines.sort_by(|left, right| right.mean().total_cmp(&left.mean()));
        panel.title += &format!(" ({MOST_LINES} highest of {})", panel.lines.len());
        panel.lines.truncate(MOST_LINES);
    }
    panel
}

impl Line {
    fn values(&self) -> impl Iterator<Item = f64> {
        self.points.iter().filter_map(|(_, value)| *value)
    }

    fn mean(&self) -> f64 {
        self.values().sum::<f64>() / (self.values().count().max(1)) as f64
    }
}

impl Unit {
    fn print(self, value: f64) -> String {
        match self {
            Unit::Share => format!("{:.0} %", value * 100.0),
            Unit::Rate => short(value) + "/s",
            Unit::Bandwidth => format!("{}/s", units::bytes(value as u64)),
            Unit::Bytes => units::bytes(value as u64),
            Unit::Time => units::duration_ns(value as u64),
            Unit::Count => short(value),
        }
    }
}

/// A number with two or three digits: `0.25`, `12.3`, `12 345`.
fn short(value: f64) -> String {
    match value {
        none if none.is_nan() || none <= 0.0 => "0".into(),
        small if small < 10.0 => format!("{small:.2}"),
        middle if middle < 100.0 => format!("{middle:.1}"),
        large => units::count(large.round() as u64),
    }
}

/// A column of charts for a node.
fn draw(
    number: usize,
    node: &Node,
    span: &Span,
    queries: &Strip<'_>,
    load: &[Panel],
    panels: &[Panel],
) -> Figure {
    let mut body = String::new();
    let time = Scale::linear(0.0, span.seconds());
    let mut y = queries.draw(&mut body, &time);
    for panel in load.iter().chain(panels) {
        panel_at(&mut body, panel, &time, span, y + TITLE);
        y += TITLE + HEIGHT;
    }
    put(&mut body, format_args!("<path class=\"axis\" d=\"M{LEFT} {y:.0}H{RIGHT}\"/>"));
    for (value, label) in time.time_ticks(6) {
        let (x, text) = (across(time.place(value)), escape(&label));
        put(&mut body, format_args!("<path class=\"axis\" d=\"M{x:.1} {y:.0}v4\"/>"));
        put(&mut body, format_args!("<text class=\"mid\" x=\"{x:.1}\" y=\"{:.0}\">{text}</text>", y + 16.0));
    }
    put(
        &mut body,
        format_args!(
            "<text class=\"end\" x=\"{RIGHT}\" y=\"{:.0}\">time on one clock; what is not measured is shaded</text>",
            y + 31.0
        ),
    );
    let role = if node.generates { ", the load generator" } else { "" };
    let title = format!("Node {}{role}", node.name);
    Figure::new(
        &format!("node-{number}"),
        &title,
        &(queries.describe() + &describe(panels)),
        (y + AXIS) as u32,
        body,
    )
}

fn across(share: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * share
}

fn panel_at(body: &mut String, panel: &Panel, time: &Scale, span: &Span, top: f64) {
    let bottom = top + HEIGHT - 4.0;
    let values = panel.lines.iter().flat_map(|line| line.values().chain(line.limit));
    let highest = values.fold(0.0, f64::max);
    // A share is read against the whole, unless there is little of it.
    let highest = if panel.unit == Unit::Share && highest > 0.25 { highest.max(1.0) } else { highest };
    let scale = Scale::linear(0.0, highest.max(f64::MIN_POSITIVE));
    let place = |value: f64| bottom - (bottom - top) * scale.place(value);
    for (from, to) in unmeasured(span) {
        let (x, width) = (across(time.place(from)), across(time.place(to)) - across(time.place(from)));
        put(
            body,
            format_args!(
                "<rect class=\"unmeasured\" x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{:.0}\"/>",
                bottom - top
            ),
        );
    }
    put(
        body,
        format_args!("<g class=\"grid\"><path d=\"M{LEFT} {top}H{RIGHT}M{LEFT} {bottom}H{RIGHT}\"/></g>"),
    );
    let (title, most) = (escape(&panel.title), escape(&panel.unit.print(highest)));
    put(body, format_args!("<text class=\"small\" x=\"{LEFT}\" y=\"{:.0}\">{title}</text>", top - 6.0));
    let end = LEFT - 6.0;
    put(body, format_args!("<text class=\"end small\" x=\"{end}\" y=\"{:.0}\">{most}</text>", top + 5.0));
    put(body, format_args!("<text class=\"end small\" x=\"{end}\" y=\"{:.0}\">0</text>", bottom + 3.0));
    let mut ends: Vec<(f64, usize)> = Vec::new();
    for (colour, line) in panel.lines.iter().enumerate() {
        let mut path = Path::default();
        for (x, value) in &line.points {
            match value {
                Some(value) => path.to((across(time.place(*x)), place(*value))),
                None => path.lift(),
            }
        }
        let colour = colour % COLOURS;
        put(body, format_args!("<path class=\"line fine p{colour} c{colour}\" d=\"{}\"/>", path.finish()));
        if let Some(limit) = line.limit {
            let y = place(limit);
            put(
                body,
                format_args!("<path class=\"line fine dotted c{colour}\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>"),
            );
        }
        let mut last: Vec<f64> = line.points.iter().rev().filter_map(|(_, value)| *value).take(9).collect();
        last.sort_by(f64::total_cmp);
        ends.push((place(last.get(last.len() / 2).copied().unwrap_or(0.0)), colour));
    }
    ends.sort_by(|left, right| left.0.total_cmp(&right.0));
    let wanted: Vec<f64> = ends.iter().map(|(y, _)| *y).collect();
    for ((_, colour), y) in ends.iter().zip(spread(&wanted, LABEL_HEIGHT, top, bottom)) {
        let line = &panel.lines[*colour];
        let limit = line.limit.map_or(String::new(), |limit| format!(" of {}", panel.unit.print(limit)));
        let text = escape(&format!("{}{limit}", shorten(&line.label, 17)));
        let x = RIGHT + 7.0;
        put(
            body,
            format_args!("<text class=\"name small f{colour}\" x=\"{x}\" y=\"{:.1}\">{text}</text>", y + 4.0),
        );
    }
}

/// The parts of the span in which nothing is measured.
fn unmeasured(span: &Span) -> Vec<(f64, f64)> {
    let mut windows = span.windows.clone();
    windows.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (mut parts, mut reached) = (Vec::new(), 0.0);
    for (from, to) in windows {
        if from > reached + 0.05 {
            parts.push((reached, from));
        }
        reached = to.max(reached);
    }
    if span.seconds() > reached + 0.05 && !span.windows.is_empty() {
        parts.push((reached, span.seconds()));
    }
    parts
}

/// The means of all lines.
fn describe(panels: &[Panel]) -> String {
    let words = panels.iter().map(|panel| {
        let lines =
            panel.lines.iter().map(|line| format!("{} {}", line.label, panel.unit.print(line.mean())));
        format!("{}: {} on average.", panel.title, lines.collect::<Vec<_>>().join(", "))
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn series(kind: Kind, subject: &str, metric: &str, values: &[f32]) -> Series {
        Series { kind, subject: subject.into(), metric: metric.into(), values: values.to_vec() }
    }

    fn run(all: Vec<Series>) -> Run {
        let mut run = sample::healthy(10);
        let start = run.stages[2].started_ns;
        let at_ns = (0..10).map(|second| start + second * 1_000_000_000).collect();
        run.nodes = vec![Node { name: "osd-1".into(), at_ns, series: all, ..Node::default() }];
        run
    }

    #[test]
    fn a_limit_is_drawn_and_said_and_nothing_that_is_nothing() {
        let run = run(vec![
            series(Kind::Disk, "loop3", "write_ops", &[480.0; 10]),
            series(Kind::Disk, "loop3", "write_ops_limit", &[500.0; 10]),
            series(Kind::Disk, "loop3", "read_ops", &[0.0; 10]),
            series(Kind::Cpu, "all", "busy", &[f32::NAN; 10]),
        ]);
        let figures = timelines(&run, Some(2), 100);
        assert_eq!((figures.len(), figures[0].title.as_str()), (1, "Node osd-1"));
        let text = figures[0].inline("f");
        assert!(text.contains(">loop3 of 500/s</text>") && text.contains("dotted"), "{text}");
        assert!(!text.contains("Disks: reads") && !text.contains("Processors"), "{text}");
        assert_eq!(figures[0].description, "Disks: writes: loop3 480/s on average.");
        assert!(timelines(&run, Some(99), 100).is_empty());
        assert_eq!(timelines(&run, None, 100).len(), 1);
    }

    #[test]
    fn only_the_highest_of_many_have_a_line() {
        let many = (0..9).map(|number| {
            series(Kind::Ceph, &format!("osd.{number}"), "op_w_latency_ns", &[1e6 * (number + 1) as f32; 10])
        });
        let figures = timelines(&run(many.collect()), Some(2), 100);
        let words = &figures[0].description;
        assert!(words.contains("(4 highest of 9)") && words.contains("osd.8 9.00 ms"), "{words}");
        assert!(!words.contains("osd.4"), "{words}");
    }

    #[test]
    fn queries_are_above_the_charts_and_streams_beyond_eight_are_counted() {
        let mut run = sample::queries();
        let figure = |run: &Run, stage| timelines(run, stage, 100).remove(0);
        let power = figure(&run, Some(1));
        let text = power.inline("f");
        let (bars, charts) = (text.find("<title>q22: ").unwrap(), text.find(">Processors</text>").unwrap());
        assert!(bars < charts && text.matches("stream ").count() == 1, "{text}");
        assert_eq!(text.matches("<title>q").count(), 22);
        assert!(
            power.description.starts_with("22 executions of queries, streams: 1. "),
            "{}",
            power.description
        );
        // Streams of one number share a row: stages follow each other.
        assert_eq!(figure(&run, None).inline("f").matches(">stream ").count(), 3);
        let used = &mut run.stages[2].proof.as_mut().unwrap().tables[0];
        (0..).zip(&mut used.queries).for_each(|(place, one)| one.stream = place % 20 + 1);
        assert!(figure(&run, Some(2)).inline("f").contains(">Queries (8 of 20 streams)</text>"));
    }

    #[test]
    fn what_is_not_measured_is_what_windows_leave() {
        let span =
            Span { from_ns: 0, to_ns: 20_000_000_000, windows: vec![(12.0, 15.0), (2.0, 10.0), (3.0, 4.0)] };
        assert_eq!(unmeasured(&span), [(0.0, 2.0), (10.0, 12.0), (15.0, 20.0)]);
    }
}
