//! What each driver of a stage did over time: a line for each, or, where there are too many, a strip.

use super::chart::{COLOURS, Stroke};
use super::figure::{Figure, WIDTH};
use super::path::put;
use super::scale::Scale;
use super::series::{Point, seconds, span_seconds, thin, whole_seconds};
use super::{highest, over_time};
use crate::drivers::measured;
use crate::text::{escape, shorten};
use tidemark_measure::record::{Run, Stage, Work};
use tidemark_measure::units;

/// Lines that can be told apart, one for each colour: drivers that do the same lie on top of each other.
const MOST_LINES: usize = COLOURS;

/// Rows and columns of strips: with more drivers a row is the mean of several, with more seconds a field is.
const MOST_ROWS: usize = 100;
const MOST_COLUMNS: u32 = 160;

/// Where strips begin and end, in pixels.
const LEFT: f64 = 10.0;
const RIGHT: f64 = WIDTH as f64 - 124.0;
const TOP: f64 = 26.0;

/// Height of all strips together, and of one: not more than its label needs, not less than can be seen.
const STRIPS: f64 = 360.0;
const STRIP_MOST: f64 = 15.0;
const LABEL_HEIGHT: f64 = 12.0;
const AXIS: f64 = 56.0;

/// Steps of darkness, as in the style sheet.
const STEPS: usize = 7;

/// The time in which a stage's drivers are compared: seconds of the measured work that lasted longest.
struct Span<'a> {
    work: &'a Work,
    seconds: u32,
}

/// Successes per second of each driver of a stage; `None` where there were no drivers or they did nothing.
pub fn throughput_of_drivers(run: &Run, stage: &Stage, most_points: usize) -> Option<Figure> {
    let normal = stage.works.iter().filter(|work| work.kind.measures());
    let work = normal.max_by_key(|work| work.window_end_ns)?;
    let span = Span { work, seconds: whole_seconds(work) };
    let there: Vec<usize> = (0..run.drivers.len())
        .filter(|driver| measured(stage, *driver).any(|share| share.workers > 0))
        .collect();
    match there.len() {
        0 => None,
        1..=MOST_LINES => lines(run, stage, &span, &there, most_points),
        _ => strips(run, stage, &span, &there),
    }
}

impl Span<'_> {
    /// The part of a second that is in the window, from and to; `None` where that is too little to make a rate of.
    fn within(&self, index: u32) -> Option<(f64, f64)> {
        let (start, end) = (seconds(self.work.window_start_ns), seconds(self.work.window_end_ns));
        let (from, to) = (start.max(f64::from(index)), end.min(f64::from(index) + 1.0));
        (to - from >= 0.2).then_some((from, to))
    }

    /// Successes of a driver in every second; `None` from where it was lost.
    fn counts(&self, stage: &Stage, driver: usize) -> Vec<Option<f64>> {
        let mut counts = vec![None; self.seconds as usize];
        for share in measured(stage, driver) {
            let last = share.series.iter().map(|second| second.index).max();
            let known = match share.complete {
                true => self.seconds,
                false => last.map_or(0, |last| last.saturating_add(1)).min(self.seconds),
            };
            for count in &mut counts[..known as usize] {
                count.get_or_insert(0.0);
            }
            for second in &share.series {
                if let Some(count) = counts.get_mut(second.index as usize) {
                    *count = Some(count.unwrap_or(0.0) + second.ok as f64);
                }
            }
        }
        counts
    }
}

fn lines(run: &Run, stage: &Stage, span: &Span<'_>, there: &[usize], most_points: usize) -> Option<Figure> {
    let line = |driver: &usize| -> (String, Vec<Point>) {
        let counts = span.counts(stage, *driver);
        let points = counts.iter().zip(0u32..).filter_map(|(count, index)| {
            let (from, to) = span.within(index)?;
            Some(((from + to) / 2.0, count.map(|count| count / (to - from))))
        });
        (run.drivers[*driver].name.clone(), points.collect())
    };
    let lines: Vec<_> = there.iter().map(line).collect();
    let scale = Scale::from_zero(highest(&lines)?);
    let mut chart = over_time(span.work, scale, scale.number_ticks(4), "op/s");
    for (index, (name, points)) in lines.iter().enumerate() {
        chart.line(&thin(points, most_points), index, Stroke::Own, name);
    }
    let means = lines
        .iter()
        .map(|(name, points)| (name.as_str(), mean(points.iter().filter_map(|(_, value)| *value))));
    Some(chart.finish("drivers", TITLE, &describe(means)))
}

const TITLE: &str = "Throughput of each driver over time";

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (total, count) = values.fold((0.0, 0u32), |(total, count), value| (total + value, count + 1));
    total / f64::from(count.max(1))
}

/// Who did most and who did least, on average, and how many there are.
fn describe<'a>(means: impl Iterator<Item = (&'a str, f64)> + Clone) -> String {
    let by_rate = |one: &(&str, f64), other: &(&str, f64)| one.1.total_cmp(&other.1);
    let (Some(least), Some(most)) = (means.clone().min_by(by_rate), means.clone().max_by(by_rate)) else {
        return String::new();
    };
    if means.clone().count() == 1 {
        return format!("{}: {} on average.", least.0, units::rate(least.1));
    }
    format!(
        "{} drivers; on average between {} ({}) and {} ({}).",
        means.count(),
        units::rate(least.1),
        least.0,
        units::rate(most.1),
        most.0
    )
}

/// A row of strips: a driver, or several that stand side by side in the record.
struct Row {
    name: String,
    /// Successes per second and driver in every field; `None` where none of them is known.
    fields: Vec<Option<f64>>,
}

fn strips(run: &Run, stage: &Stage, span: &Span<'_>, there: &[usize]) -> Option<Figure> {
    let per_field = span.seconds.div_ceil(MOST_COLUMNS).max(1);
    let row = |drivers: &[usize]| {
        let (mut sums, mut known) = (vec![0.0; span.seconds.div_ceil(per_field) as usize], Vec::new());
        known.resize(sums.len(), 0.0f64);
        for driver in drivers {
            for (count, index) in span.counts(stage, *driver).iter().zip(0u32..) {
                if let (Some(count), Some((from, to))) = (count, span.within(index)) {
                    let field = (index / per_field) as usize;
                    sums[field] += count;
                    known[field] += to - from;
                }
            }
        }
        let fields =
            sums.iter().zip(&known).map(|(sum, known)| (*known > 0.0).then(|| sum / known)).collect();
        let name = |driver: Option<&usize>| driver.map_or("", |driver| run.drivers[*driver].name.as_str());
        let name = match drivers {
            [only] => name(Some(only)).to_owned(),
            several => format!("{} to {}", name(several.first()), name(several.last())),
        };
        Row { name, fields }
    };
    let rows: Vec<Row> = there.chunks(there.len().div_ceil(MOST_ROWS)).map(row).collect();
    let most = rows.iter().flat_map(|row| row.fields.iter().flatten()).copied().fold(0.0, f64::max);
    (most > 0.0).then(|| draw(span, &rows, most, per_field))
}

fn draw(span: &Span<'_>, rows: &[Row], most: f64, per_field: u32) -> Figure {
    let height = (STRIPS / rows.len() as f64).min(STRIP_MOST);
    let (bottom, time) = (TOP + height * rows.len() as f64, Scale::linear(0.0, span_seconds(span.work)));
    let across = |second: f64| LEFT + (RIGHT - LEFT) * time.place(second);
    let mut paths = vec![String::new(); STEPS];
    let mut body = String::from("<g class=\"tick\">");
    let labelled = (LABEL_HEIGHT / height).ceil().max(1.0) as usize;
    for (number, row) in rows.iter().enumerate() {
        let top = TOP + height * number as f64;
        if number % labelled == 0 {
            let text = escape(&shorten(&row.name, 17));
            put(
                &mut body,
                format_args!(
                    "<text x=\"{}\" y=\"{:.1}\">{text}</text>",
                    RIGHT + 9.0,
                    top + height / 2.0 + 4.0
                ),
            );
        }
        let step =
            |field: &Option<f64>| field.map(|rate| ((rate / most * STEPS as f64) as usize).min(STEPS - 1));
        let mut at = 0;
        while at < row.fields.len() {
            let own = step(&row.fields[at]);
            let same = row.fields[at..].iter().take_while(|field| step(field) == own).count();
            if let Some(own) = own {
                let left = across((at as u32 * per_field).into());
                let right = across(f64::from((at + same) as u32 * per_field));
                let (width, tall) = (right - left, (height - if height > 6.0 { 1.0 } else { 0.0 }).max(1.0));
                put(&mut paths[own], format_args!("M{left:.1} {top:.1}h{width:.1}v{tall:.1}h-{width:.1}z"));
            }
            at += same;
        }
    }
    put(
        &mut body,
        format_args!(
            "<text x=\"0\" y=\"12\">op/s of each driver: darker is more, at most {}; blank: unknown</text>",
            escape(&units::rate(most))
        ),
    );
    put(&mut body, format_args!("<path class=\"axis\" d=\"M{LEFT} {bottom:.1}H{RIGHT}\"/>"));
    for (value, label) in time.time_ticks(6) {
        let (x, text) = (across(value), escape(&label));
        put(&mut body, format_args!("<path class=\"axis\" d=\"M{x:.1} {bottom:.1}v4\"/>"));
        put(
            &mut body,
            format_args!("<text class=\"mid\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>", bottom + 17.0),
        );
    }
    put(
        &mut body,
        format_args!(
            "<text class=\"end\" x=\"{RIGHT}\" y=\"{:.1}\">time since the work's start</text></g>",
            bottom + 33.0
        ),
    );
    body += "<g class=\"heat\">";
    for (step, path) in paths.iter().enumerate() {
        put(&mut body, format_args!("<path class=\"h{step}\" d=\"{path}\"/>"));
    }
    body += "</g>";
    let means = rows.iter().map(|row| (row.name.as_str(), mean(row.fields.iter().flatten().copied())));
    Figure::new(
        "drivers",
        TITLE,
        &describe(means),
        (TOP + height * rows.len() as f64 + AXIS) as u32 - 18,
        body,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn few_drivers_are_lines_and_many_are_strips() {
        let drawn = |drivers: u32| {
            let mut run = sample::by_drivers(drivers, 30);
            run.stages[2].shares.iter_mut().for_each(|share| share.workers = 1);
            let stage = &run.stages[2];
            let figure = throughput_of_drivers(&run, stage, 100).unwrap();
            (figure.description.clone(), figure.inline("f"))
        };
        let (words, _) = drawn(1);
        assert!(words.ends_with(" on average.") && !words.contains("drivers"), "{words}");
        let (words, lines) = drawn(6);
        assert!(words.starts_with("6 drivers; on average between"), "{words}");
        assert_eq!(lines.matches("class=\"name").count(), 6);
        let (words, strips) = drawn(7);
        assert!(words.starts_with("7 drivers;") && strips.contains("class=\"heat\""), "{words}");
        let (_, many) = drawn(1_000);
        assert!(many.len() < 200_000 && many.contains("d-1 to d-10"), "{}", many.len());
    }

    #[test]
    fn a_lost_drivers_line_ends_where_it_was_lost() {
        let run = sample::by_drivers(4, 30);
        let span = Span { work: &run.stages[2].works[0], seconds: whole_seconds(&run.stages[2].works[0]) };
        let lost = span.counts(&run.stages[2], 2);
        assert!(lost[19].is_some() && lost[20].is_none(), "{lost:?}");
        assert!(span.counts(&run.stages[2], 1).iter().all(Option::is_some));
    }

    #[test]
    fn no_drivers_no_figure() {
        let run = sample::healthy(3);
        assert!(throughput_of_drivers(&run, &run.stages[2], 100).is_none());
    }
}
