//! When queries ran: a row for each stream, a bar for each query, on the axis of time that charts of nodes have.

use super::chart::COLOURS;
use super::figure::{Figure, WHOLE_WIDTH};
use super::path::put;
use super::scale::Scale;
use super::series::seconds;
use crate::text::{escape, shorten};
use std::collections::BTreeMap;
use tidemark_measure::record::{QueryUse, Stage, TablesUse};
use tidemark_measure::units;

/// Where bars begin and end, in pixels, and the height of the axis.
const LEFT: f64 = 62.0;
const RIGHT: f64 = WHOLE_WIDTH as f64 - 24.0;
const AXIS: f64 = 36.0;

/// Rows of a figure of their own.
const ROWS: Rows = Rows { top: 0.0, row: 24.0, bar: 18.0, letter: 6.6, size: "" };

/// Streams that are drawn.
const MOST_STREAMS: u32 = 40;

/// Bars that are drawn, the longest: no page needs more.
const MOST_BARS: usize = 4_000;

/// How rows of bars look, in pixels.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// Where the first one begins.
    pub(super) top: f64,
    /// Height of a row, and of a bar in it.
    pub(super) row: f64,
    pub(super) bar: f64,
    /// What a letter of a label needs.
    pub(super) letter: f64,
    /// The class of labels, if not the usual one.
    pub(super) size: &'static str,
}

/// An execution, in its row from 0 and from where to where in pixels.
pub(super) struct Bar<'a> {
    pub(super) row: usize,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) execution: &'a QueryUse,
}

impl Rows {
    /// Where so many of them end.
    pub(super) fn bottom(&self, rows: usize) -> f64 {
        self.top + self.row * rows as f64
    }

    /// The name of a row, which ends at `x`.
    pub(super) fn name(&self, body: &mut String, row: usize, x: f64, name: &str) {
        let (y, size, name) = (self.bottom(row) + self.row / 2.0 + 4.0, self.size, escape(name));
        put(body, format_args!("<text class=\"end{size}\" x=\"{x:.0}\" y=\"{y:.1}\">{name}</text>"));
    }

    /// Draws bars, each with its query's name if there is room. All of a query have one colour.
    pub(super) fn bars(&self, body: &mut String, mut bars: Vec<Bar<'_>>) {
        let mut colours: BTreeMap<&str, usize> = BTreeMap::new();
        for bar in &bars {
            let next = colours.len() % COLOURS;
            colours.entry(&bar.execution.query).or_insert(next);
        }
        bars.sort_by_key(|bar| std::cmp::Reverse(bar.execution.took_ns));
        for Bar { row, from, to, execution } in bars.into_iter().take(MOST_BARS) {
            let (y, height) = (self.bottom(row) + (self.row - self.bar) / 2.0, self.bar);
            // A line of paper is left between two bars.
            let width = (to - from - 1.0).max(0.6);
            let (class, failed) = match (execution.fault, colours.get(execution.query.as_str())) {
                (None, Some(colour)) => (format!("f{colour}"), ""),
                _ => ("outage".to_owned(), ", failed"),
            };
            let told = units::duration_ns(execution.took_ns);
            let told = escape(&format!("{}: {told}{failed}", execution.query));
            put(
                body,
                format_args!(
                    "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\"><title>{told}</title></rect>"
                ),
            );
            let label = shorten(&execution.query, 12);
            if width >= self.letter * label.chars().count() as f64 + 4.0 {
                let (x, y) = (from + width / 2.0, y + height / 2.0 + 4.0);
                let (size, label) = (self.size, escape(&label));
                put(
                    body,
                    format_args!("<text class=\"mid onbar{size}\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>"),
                );
            }
        }
    }
}

/// Every figure of the works on tables of a stage, with the work's name.
pub(crate) fn of_stage(stage: &Stage) -> Vec<(String, Figure)> {
    let tables = stage.proof.iter().flat_map(|proof| &proof.tables);
    tables.filter_map(|used| Some((used.work.clone(), queries_over_time(used)?))).collect()
}

/// When each query of a work ran.
pub fn queries_over_time(used: &TablesUse) -> Option<Figure> {
    let end = used.queries.iter().map(|one| one.began_ns.saturating_add(one.took_ns)).max()?;
    let streams = used.queries.iter().map(|one| one.stream).max()?.min(MOST_STREAMS);
    let scale = Scale::linear(0.0, seconds(end));
    let place = |ns: u64| LEFT + (RIGHT - LEFT) * scale.place(seconds(ns));
    let mut body = String::new();
    for stream in 1..=streams {
        ROWS.name(&mut body, stream as usize - 1, LEFT - 6.0, &format!("stream {stream}"));
    }
    let shown = used.queries.iter().filter(|one| (1..=streams).contains(&one.stream));
    let bars = shown.map(|execution| Bar {
        row: execution.stream as usize - 1,
        from: place(execution.began_ns),
        to: place(execution.began_ns.saturating_add(execution.took_ns)),
        execution,
    });
    ROWS.bars(&mut body, bars.collect());
    let bottom = ROWS.bottom(streams as usize) + 4.0;
    put(&mut body, format_args!("<path class=\"axis\" d=\"M{LEFT} {bottom:.1}H{RIGHT}\"/>"));
    for (value, label) in scale.time_ticks(12) {
        let (x, text) = (LEFT + (RIGHT - LEFT) * scale.place(value), escape(&label));
        put(&mut body, format_args!("<path class=\"axis\" d=\"M{x:.1} {bottom:.1}v4\"/>"));
        put(
            &mut body,
            format_args!("<text class=\"mid\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>", bottom + 17.0),
        );
    }
    put(
        &mut body,
        format_args!(
            "<text class=\"end\" x=\"{RIGHT}\" y=\"{:.1}\">time since the work's start</text>",
            bottom + 32.0
        ),
    );
    let mut longest: Vec<_> = used.queries.iter().collect();
    longest.sort_by_key(|one| std::cmp::Reverse(one.took_ns));
    let longest: Vec<_> = longest
        .iter()
        .take(3)
        .map(|one| format!("{} {}", one.query, units::duration_ns(one.took_ns)))
        .collect();
    let description = format!(
        "{} executions in {} streams over {}. The longest: {}.",
        units::count(used.queries.len() as u64),
        used.queries.iter().map(|one| one.stream).max().unwrap_or(0),
        units::duration_ns(end),
        longest.join(", ")
    );
    let figure = Figure::new("queries", "Queries over time", &description, (bottom + AXIS) as u32, body);
    Some(figure.whole_width())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn every_execution_has_a_bar_in_its_stream() {
        let run = sample::queries();
        let drawn: Vec<_> = run.stages.iter().flat_map(of_stage).collect();
        let (work, figure) = &drawn[0];
        assert_eq!(work, "power");
        let text = figure.inline("f");
        assert_eq!(text.matches("<rect").count(), 22);
        assert!(text.contains(">q22</text>") && text.contains("stream 1"), "wide enough for its name");
        assert!(figure.description.contains("The longest: q22"), "{}", figure.description);
    }

    #[test]
    fn odd_records_are_drawn_or_left_out() {
        assert!(queries_over_time(&TablesUse::default()).is_none());
        let odd = QueryUse {
            query: "<b>".into(),
            stream: u32::MAX,
            took_ns: u64::MAX,
            began_ns: u64::MAX,
            ..QueryUse::default()
        };
        let used =
            TablesUse { queries: vec![odd.clone(), QueryUse { stream: 0, ..odd }], ..TablesUse::default() };
        let text = queries_over_time(&used).unwrap().inline("f");
        assert!(!text.contains("NaN") && !text.contains("<b>"), "{text}");
    }
}
