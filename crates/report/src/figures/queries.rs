//! When queries ran: a row for each stream, a bar for each query, on the axis of time that charts of nodes have.

use super::chart::COLOURS;
use super::figure::{Figure, WIDTH};
use super::path::put;
use super::scale::Scale;
use super::series::seconds;
use crate::text::{escape, shorten};
use tidemark_measure::record::{Stage, TablesUse};
use tidemark_measure::units;

/// Where bars begin and end, in pixels; heights of a row, of its bar, and of the axis.
const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDTH as f64 - 24.0;
const ROW: f64 = 24.0;
const BAR: f64 = 18.0;
const AXIS: f64 = 36.0;

/// Streams that are drawn.
const MOST_STREAMS: u32 = 40;

/// Bars that are drawn: no page needs more.
const MOST_BARS: usize = 4_000;

/// Pixels that a letter of a label needs.
const LETTER: f64 = 6.6;

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
        let middle = f64::from(stream - 1) * ROW + ROW / 2.0 + 4.0;
        let label = format!("stream {stream}");
        put(
            &mut body,
            format_args!("<text class=\"end\" x=\"{:.0}\" y=\"{middle:.1}\">{label}</text>", LEFT - 6.0),
        );
    }
    let shown = used.queries.iter().filter(|one| (1..=streams).contains(&one.stream)).take(MOST_BARS);
    let mut names: Vec<&str> = Vec::new();
    for one in shown {
        let number = names.iter().position(|name| *name == one.query).unwrap_or_else(|| {
            names.push(&one.query);
            names.len() - 1
        });
        let (x, y) = (place(one.began_ns), f64::from(one.stream - 1) * ROW + (ROW - BAR) / 2.0);
        // A line of paper is left between two bars.
        let width = (place(one.began_ns.saturating_add(one.took_ns)) - x - 1.0).max(0.6);
        let class = if one.fault.is_some() { "outage".to_owned() } else { format!("f{}", number % COLOURS) };
        let failed = if one.fault.is_some() { ", failed" } else { "" };
        let told = escape(&format!("{}: {}{failed}", one.query, units::duration_ns(one.took_ns)));
        put(
            &mut body,
            format_args!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\"><title>{told}</title></rect>"
            ),
        );
        let label = shorten(&one.query, 12);
        if width >= LETTER * label.chars().count() as f64 + 4.0 {
            let (x, y) = (x + width / 2.0, y + BAR / 2.0 + 4.0);
            put(
                &mut body,
                format_args!("<text class=\"mid onbar\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(&label)),
            );
        }
    }
    let bottom = f64::from(streams) * ROW + 4.0;
    put(&mut body, format_args!("<path class=\"axis\" d=\"M{LEFT} {bottom:.1}H{RIGHT}\"/>"));
    for (value, label) in scale.time_ticks(6) {
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
    Some(Figure::new("queries", "Queries over time", &description, (bottom + AXIS) as u32, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use tidemark_measure::record::QueryUse;

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
