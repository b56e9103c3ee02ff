//! A drawing surface with axes, and the figure that comes out of it.

use super::figure::{Figure, WIDTH};
use super::path::{Path, put};
use super::scale::{Scale, Tick};
use super::series::Point;
use crate::text::{escape, shorten};

/// The whole picture, and the part of it that the axes enclose, in pixels.
const HEIGHT: u32 = 250;
const LEFT: f64 = 62.0;
const ROOM: f64 = 80.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT as f64 - 40.0;

/// Room beside the lines for longer labels.
const MORE_ROOM: f64 = 124.0;

/// Distance between two labels beside the lines.
const LABEL_HEIGHT: f64 = 15.5;

/// How many colours, dash patterns and marks there are; further lines begin again, and are told apart by their labels.
pub(super) const COLOURS: usize = 6;

/// One axis: how values become places, which ones are named, and what they are.
pub(crate) struct Axis<'a> {
    pub(crate) scale: Scale,
    pub(crate) ticks: Vec<Tick>,
    pub(crate) title: &'a str,
}

/// The way a line is drawn; the label beside it always says which one it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stroke {
    Solid,
    Fine,
    Dashed,
    Dotted,
    /// The pattern of dashes that belongs to the line's colour: lines that are told apart without colours.
    Own,
}

impl Stroke {
    fn class(self, colour: usize) -> &'static str {
        const PATTERNS: [&str; COLOURS] = ["line", "line p1", "line p2", "line p3", "line p4", "line p5"];
        match self {
            Stroke::Solid => "line",
            Stroke::Fine => "line fine",
            Stroke::Dashed => "line fine dashed",
            Stroke::Dotted => "line fine dotted",
            Stroke::Own => PATTERNS[colour % COLOURS],
        }
    }
}

/// A value that was measured several times.
pub(crate) struct Measured {
    pub(crate) x: f64,
    pub(crate) value: f64,
    /// The lowest and the highest of its repeats.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Measured {
    /// A value that has no range.
    pub(crate) fn single(x: f64, value: f64) -> Self {
        Self { x, value, low: value, high: value }
    }
}

/// A figure in the making.
pub(crate) struct Chart {
    /// Where the axes end, in pixels.
    right: f64,
    x: Scale,
    y: Scale,
    body: String,
    labels: Vec<Label>,
    /// Boxes of the words that are within the axes: middle, height of the line, half of the width.
    words: Vec<(f64, f64, f64)>,
    /// Places along lines that words are not to cover.
    inked: Vec<(f64, f64)>,
}

struct Label {
    y: f64,
    text: String,
    /// That of its line; none has that of the service level.
    colour: Option<usize>,
    /// Whether the line's mark stands before the words.
    has_mark: bool,
}

impl Chart {
    /// An empty chart with its axes.
    pub(crate) fn new(x: &Axis, y: &Axis) -> Self {
        Self::until(f64::from(WIDTH) - ROOM, x, y)
    }

    /// One with room for longer labels.
    pub(crate) fn with_room(x: &Axis, y: &Axis) -> Self {
        Self::until(f64::from(WIDTH) - MORE_ROOM, x, y)
    }

    fn until(right: f64, x: &Axis, y: &Axis) -> Self {
        let mut body = String::from("<g class=\"grid\">");
        for (value, _) in &y.ticks {
            let place = across(TOP, BOTTOM, 1.0 - y.scale.place(*value));
            put(&mut body, format_args!("<path d=\"M{LEFT} {place:.1}H{right}\"/>"));
        }
        body.push_str("</g><g class=\"tick\">");
        for (value, label) in &y.ticks {
            let place = across(TOP, BOTTOM, 1.0 - y.scale.place(*value)) + 4.0;
            let text = escape(label);
            put(
                &mut body,
                format_args!("<text class=\"end\" x=\"{:.0}\" y=\"{place:.1}\">{text}</text>", LEFT - 8.0),
            );
        }
        put(&mut body, format_args!("<path class=\"axis\" d=\"M{LEFT} {BOTTOM}H{right}\"/>"));
        for (value, label) in &x.ticks {
            let place = across(LEFT, right, x.scale.place(*value));
            let (text, below) = (escape(label), BOTTOM + 17.0);
            put(&mut body, format_args!("<path class=\"axis\" d=\"M{place:.1} {BOTTOM}v4\"/>"));
            put(&mut body, format_args!("<text class=\"mid\" x=\"{place:.1}\" y=\"{below}\">{text}</text>"));
        }
        let half = half_width(y.title);
        let title = (half, 12.0, half);
        let (y_title, x_title) = (escape(y.title), escape(x.title));
        put(&mut body, format_args!("<text x=\"0\" y=\"12\">{y_title}</text>"));
        put(
            &mut body,
            format_args!("<text class=\"end\" x=\"{right}\" y=\"{}\">{x_title}</text></g>", HEIGHT - 5),
        );
        Self {
            right,
            x: x.scale,
            y: y.scale,
            body,
            labels: Vec::new(),
            words: vec![title],
            inked: Vec::new(),
        }
    }

    /// Shades the part from `from` to `to` and says what it is, if there is room for the words.
    pub(crate) fn shade(&mut self, from: f64, to: f64, class: &str, words: &str) {
        let (left, right) =
            (across(LEFT, self.right, self.x.place(from)), across(LEFT, self.right, self.x.place(to)));
        let (width, height) = ((right - left).max(1.0), BOTTOM - TOP);
        put(
            &mut self.body,
            format_args!(
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height}\"/>"
            ),
        );
        let half = half_width(words);
        let middle = ((left + right) / 2.0).clamp(LEFT + half, (self.right - half).max(LEFT + half));
        if class == "outage" || width > 2.0 * half {
            let text = escape(words);
            // Above the axes; inside them where the axis' title or other words are in the way.
            let free = |y: &f64| self.is_free(middle, *y, half);
            let y = [TOP - 6.0, TOP + 12.0, TOP + 26.0].into_iter().find(free).unwrap_or(TOP + 12.0);
            self.words.push((middle, y, half));
            put(
                &mut self.body,
                format_args!("<text class=\"mid {class}-words\" x=\"{middle:.1}\" y=\"{y}\">{text}</text>"),
            );
        }
    }

    /// Draws a line in the colour with this number; a label that is not empty is put beside its end.
    pub(crate) fn line(&mut self, points: &[Point], colour: usize, stroke: Stroke, label: &str) {
        self.labelled(points, colour, stroke, &shorten(label, 12));
    }

    /// The same on a chart that has room for longer labels.
    pub(crate) fn long_line(&mut self, points: &[Point], colour: usize, stroke: Stroke, label: &str) {
        self.labelled(points, colour, stroke, &shorten(label, 17));
    }

    fn labelled(&mut self, points: &[Point], colour: usize, stroke: Stroke, label: &str) {
        let mut path = Path::default();
        for (x, value) in points {
            match value {
                Some(value) => path.to(self.place(*x, *value)),
                None => path.lift(),
            }
        }
        if path.last.is_none() {
            return;
        }
        let (class, colour) = (stroke.class(colour), colour % COLOURS);
        put(&mut self.body, format_args!("<path class=\"{class} c{colour}\" d=\"{}\"/>", path.finish()));
        if !label.is_empty() {
            // Beside where the line usually is towards its end, not where its last point happens to be.
            let mut ends: Vec<f64> = points.iter().rev().filter_map(|(_, value)| *value).take(9).collect();
            ends.sort_by(f64::total_cmp);
            let usual = ends.get(ends.len() / 2).copied().unwrap_or_default();
            self.labels.push(Label {
                y: self.place(0.0, usual).1,
                text: label.into(),
                colour: Some(colour),
                has_mark: false,
            });
        }
    }

    /// Draws measured values, joined, each with the range of its repeats; the label is put beside the last one.
    pub(crate) fn measured(&mut self, points: &[Measured], colour: usize, stroke: Stroke, label: &str) {
        let Some(last) = points.last() else { return };
        let joined: Vec<Point> = points.iter().map(|point| (point.x, Some(point.value))).collect();
        let places: Vec<(f64, f64)> = points.iter().map(|point| self.place(point.x, point.value)).collect();
        self.ink(&places);
        self.line(&joined, colour, stroke, "");
        let colour = colour % COLOURS;
        let mut ranges = String::new();
        for point in points {
            let (x, y) = self.place(point.x, point.value);
            let (low, high) = (self.place(point.x, point.low).1, self.place(point.x, point.high).1);
            if low - high >= 1.0 {
                let left = x - 3.0;
                put(&mut ranges, format_args!("M{left:.1} {low:.1}h6m-3 0V{high:.1}m-3 0h6"));
            }
            mark(&mut self.body, (x, y), if matches!(stroke, Stroke::Own) { colour } else { 0 }, colour);
        }
        if !ranges.is_empty() {
            put(&mut self.body, format_args!("<path class=\"line fine c{colour}\" d=\"{ranges}\"/>"));
        }
        if !label.is_empty() {
            let (y, text) = (self.place(last.x, last.value).1, shorten(label, 17));
            self.labels.push(Label {
                y,
                text,
                colour: Some(colour),
                has_mark: matches!(stroke, Stroke::Own),
            });
        }
    }

    /// Draws marks that are not joined, of the shape that belongs to their colour; the label says what they are, beside the axes.
    pub(crate) fn marks(&mut self, points: &[(f64, f64)], colour: usize, label: &str) {
        let places: Vec<(f64, f64)> = points.iter().map(|(x, y)| self.place(*x, *y)).collect();
        for place in &places {
            mark(&mut self.body, *place, colour, colour);
        }
        let Some((_, y)) = places.last() else { return };
        self.labels.push(Label { y: *y, text: label.into(), colour: Some(colour % COLOURS), has_mark: true });
        self.inked.extend(places);
    }

    /// Draws the ranges of a point along both axes.
    pub(crate) fn cross(&mut self, (x, y): (f64, f64), across: (f64, f64), up: (f64, f64), colour: usize) {
        let (left, right) = (self.place(across.0, y), self.place(across.1, y));
        let (low, high) = (self.place(x, up.0), self.place(x, up.1));
        let colour = colour % COLOURS;
        put(
            &mut self.body,
            format_args!(
                "<path class=\"line fine c{colour}\" d=\"M{:.1} {:.1}H{:.1}M{:.1} {:.1}V{:.1}\"/>",
                left.0, left.1, right.0, low.0, low.1, high.1
            ),
        );
        self.ink(&[left, right]);
        self.ink(&[low, high]);
    }

    /// Names a line at its highest point, beside the names that are there already.
    pub(crate) fn name_peak(&mut self, points: &[Point], colour: usize, label: &str) {
        let peaks = points.iter().filter_map(|(x, value)| Some((*x, (*value)?)));
        let Some((x, y)) = peaks.max_by(|left, right| left.1.total_cmp(&right.1)) else { return };
        let (x, y) = self.place(x, y);
        let text = shorten(label, 12);
        let half = half_width(&text);
        let x = x.clamp(LEFT + half, (self.right - half).max(LEFT + half));
        // Upwards first; where there is no room above, downwards.
        let steps =
            (0..8).map(|step| -5.0 - f64::from(step) * 4.0).chain((1..40).map(|step| f64::from(step) * 4.0));
        let free = |y: &f64| *y > TOP - 2.0 && *y < BOTTOM && self.is_free(x, *y, half);
        let place = steps.map(|step| y + step).find(free).unwrap_or(y - 5.0);
        self.words.push((x, place, half));
        let (colour, text) = (colour % COLOURS, escape(&text));
        put(
            &mut self.body,
            format_args!("<text class=\"mid name f{colour}\" x=\"{x:.1}\" y=\"{place:.1}\">{text}</text>"),
        );
    }

    /// Writes words beside a point where they cover nothing, or nowhere; those that must be there cover what there is.
    pub(crate) fn note(&mut self, (x, y): (f64, f64), colour: usize, text: &str, must: bool) {
        let (x, y) = self.place(x, y);
        let (half, away) = (half_width(text), if must { 10.0 } else { 6.0 });
        let [right, left] = [x + half + away, x - half - away];
        let rows = [y + 4.0, y - away, y + away + 9.0];
        let places = rows
            .iter()
            .flat_map(|row| [(right, *row), (left, *row)])
            .chain([(x, rows[1] - 2.0), (x, rows[2])]);
        let fits = |(x, y): &(f64, f64)| {
            *x - half > LEFT
                && *x + half < self.right + 4.0
                && *y > TOP
                && *y < BOTTOM - 2.0
                && self.is_free(*x, *y, half)
        };
        let mut places = places.filter(fits);
        let Some((x, y)) = places.next().or(must.then_some((right, y + 4.0))) else { return };
        self.words.push((x, y, half));
        let (colour, text) = (colour % COLOURS, escape(text));
        put(
            &mut self.body,
            format_args!("<text class=\"mid f{colour}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"),
        );
    }

    /// Remembers where a line through these places is.
    fn ink(&mut self, places: &[(f64, f64)]) {
        self.inked.extend(places);
        for pair in places.windows(2) {
            let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
            let steps = ((to_x - x).hypot(to_y - y) / 4.0).ceil().clamp(1.0, 500.0) as u32;
            let at = |step: u32| f64::from(step) / f64::from(steps);
            self.inked.extend((1..steps).map(|step| (across(x, to_x, at(step)), across(y, to_y, at(step)))));
        }
    }

    /// Puts a ring around a point: the one that matters.
    pub(crate) fn ring(&mut self, (x, y): (f64, f64), colour: usize) {
        let ((x, y), colour) = (self.place(x, y), colour % COLOURS);
        put(
            &mut self.body,
            format_args!("<circle class=\"line c{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"7\"/>"),
        );
    }

    /// Draws a level line across the chart and says what it is.
    pub(crate) fn limit(&mut self, value: f64, words: &str) {
        let y = self.place(0.0, value).1;
        let (right, text, half) = (self.right, escape(words), half_width(words));
        put(&mut self.body, format_args!("<path class=\"limit\" d=\"M{LEFT} {y:.1}H{right}\"/>"));
        let (first, last) = (LEFT + 4.0 + half, (right - 2.0 - half).max(LEFT + 4.0 + half));
        let along = (0..=12).map(|step| across(last, first, f64::from(step) / 12.0));
        let places = along.flat_map(|x| [(x, y - 4.0), (x, y + 13.0)]);
        let fits = |(x, y): &(f64, f64)| *y > TOP + 8.0 && *y < BOTTOM && self.is_free(*x, *y, half);
        match places.rev().find(fits) {
            Some((x, y)) => {
                put(
                    &mut self.body,
                    format_args!("<text class=\"mid limit-words\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"),
                );
                self.words.push((x, y, half));
            }
            None => {
                let text = "service level".into();
                self.labels.push(Label { y, text, colour: None, has_mark: false });
            }
        }
        self.ink(&[(LEFT, y), (right, y)]);
    }

    fn is_free(&self, x: f64, y: f64, half: f64) -> bool {
        let meets = |(other_x, other_y, other_half): &(f64, f64, f64)| {
            (other_x - x).abs() < other_half + half + 2.0 && (other_y - y).abs() < LABEL_HEIGHT - 2.0
        };
        // Words reach from 10 pixels above their line to 3 below.
        let covers = |(other_x, other_y): &(f64, f64)| {
            (other_x - x).abs() < half + 2.0 && *other_y > y - 11.0 && *other_y < y + 4.0
        };
        !self.words.iter().any(meets) && !self.inked.iter().any(covers)
    }

    /// Fills the area between two lines that have their gaps at the same places.
    pub(crate) fn band(&mut self, upper: &[Point], lower: &[Point], colour: usize, depth: u8) {
        let mut path = Path::default();
        for (upper, lower) in runs(upper).into_iter().zip(runs(lower)) {
            for (x, value) in upper.iter().chain(lower.iter().rev()) {
                path.to(self.place(*x, value.unwrap_or_default()));
            }
            path.close();
        }
        if path.last.is_some() || !path.text.is_empty() {
            let colour = colour % COLOURS;
            put(
                &mut self.body,
                format_args!("<path class=\"band{depth} f{colour}\" d=\"{}\"/>", path.finish()),
            );
        }
    }

    /// Fills the area between a line and the bottom.
    pub(crate) fn area(&mut self, points: &[Point], colour: usize) {
        let floor: Vec<Point> = points.iter().map(|(x, value)| (*x, value.map(|_| 0.0))).collect();
        self.band(points, &floor, colour, 2);
    }

    /// The figure, with the labels of its lines as near to their ends as they can be without covering each other.
    pub(crate) fn finish(mut self, name: &str, title: &str, description: &str) -> Figure {
        self.labels.sort_by(|left, right| left.y.total_cmp(&right.y));
        let wanted: Vec<f64> = self.labels.iter().map(|label| label.y).collect();
        let places = spread(&wanted, LABEL_HEIGHT, TOP, BOTTOM);
        for (label, y) in self.labels.iter().zip(places) {
            let (mut x, text) = (self.right + 9.0, escape(&label.text));
            let class = label.colour.map_or("limit-words".into(), |colour| format!("name f{colour}"));
            if let Some(colour) = label.colour.filter(|_| label.has_mark) {
                mark(&mut self.body, (x + 5.0, y), colour, colour);
                x += 12.0;
            } else if let Some(colour) = label.colour.filter(|_| (y - label.y).abs() > 3.0) {
                let (from, end) = (self.right + 2.0, y - label.y);
                put(
                    &mut self.body,
                    format_args!(
                        "<path class=\"leader c{colour}\" d=\"M{from} {:.1}l5 {end:.1}\"/>",
                        label.y
                    ),
                );
            }
            put(
                &mut self.body,
                format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{:.1}\">{text}</text>", y + 4.0),
            );
        }
        Figure::new(name, title, description, HEIGHT, self.body)
    }

    /// Fills fields of a heat map, a path for every step of darkness, and explains the steps beside it.
    pub(super) fn heat(&mut self, paths: &[String], most: &str) {
        let left = self.right + 12.0;
        self.body.push_str("<g class=\"heat\">");
        for (step, path) in paths.iter().enumerate() {
            let y = BOTTOM - 40.0 - step as f64 * 13.0;
            put(&mut self.body, format_args!("<path class=\"h{step}\" d=\"{path}M{left} {y}h16v13h-16z\"/>"));
        }
        self.body.push_str("</g>");
        let (words, top) = (left + 22.0, BOTTOM - 40.0 - (paths.len() as f64 - 1.0) * 13.0);
        let most = escape(most);
        put(&mut self.body, format_args!("<text x=\"{words}\" y=\"{:.1}\">{most}</text>", top + 11.0));
        put(&mut self.body, format_args!("<text x=\"{words}\" y=\"{:.1}\">1 op</text>", BOTTOM - 29.0));
        put(&mut self.body, format_args!("<text x=\"{left}\" y=\"{:.1}\">in a field</text>", BOTTOM - 11.0));
    }

    pub(super) fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (across(LEFT, self.right, self.x.place(x)), across(TOP, BOTTOM, 1.0 - self.y.place(y)))
    }
}

fn across(from: f64, to: f64, share: f64) -> f64 {
    from + (to - from) * share
}

/// Half of the width of words of the usual size, in pixels: a little more than they take.
pub(super) fn half_width(words: &str) -> f64 {
    words.chars().count() as f64 * 3.6
}

/// Puts a mark that belongs to a line: each of the first six has another shape.
pub(super) fn mark(body: &mut String, (x, y): (f64, f64), shape: usize, colour: usize) {
    let colour = colour % COLOURS;
    let path = match shape % COLOURS {
        0 => {
            return put(
                body,
                format_args!("<circle class=\"f{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.8\"/>"),
            );
        }
        1 => "m-2.7-2.7h5.4v5.4h-5.4z",
        2 => "m0-3.6l3.6 6.2h-7.2z",
        3 => "m0-4l4 4-4 4-4-4z",
        4 => "m0 3.6l3.6-6.2h-7.2z",
        _ => "m-1-3.6h2v2.6h2.6v2h-2.6v2.6h-2v-2.6h-2.6v-2h2.6z",
    };
    put(body, format_args!("<path class=\"f{colour}\" d=\"M{x:.1} {y:.1}{path}\"/>"));
}

/// Places that are as near as can be to those wanted, which ascend, and at least `apart` from each other (less where
/// there is no room): isotonic regression by pooling neighbours (Ayer et al. 1955).
pub(super) fn spread(wanted: &[f64], apart: f64, low: f64, high: f64) -> Vec<f64> {
    let gaps = wanted.len().saturating_sub(1) as f64;
    let apart = if gaps > 0.0 { apart.min((high - low) / gaps) } else { apart };
    // Blocks of neighbours that touch each other: the sum of the places wanted for their first, and how many.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (index, place) in wanted.iter().enumerate() {
        blocks.push((place - index as f64 * apart, 1));
        while let [.., (sum, count), (last_sum, last_count)] = blocks[..] {
            if sum / count as f64 <= last_sum / last_count as f64 {
                break;
            }
            blocks.pop();
            blocks.pop();
            blocks.push((sum + last_sum, count + last_count));
        }
    }
    let firsts = blocks.iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / *count as f64, *count));
    let most = (high - gaps * apart).max(low);
    firsts.enumerate().map(|(index, first)| first.clamp(low, most) + index as f64 * apart).collect()
}

/// The stretches of a line between its gaps.
fn runs(points: &[Point]) -> Vec<&[Point]> {
    points.split(|(_, value)| value.is_none()).filter(|run| !run.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let axis = || Axis { scale: Scale::linear(0.0, 10.0), ticks: Vec::new(), title: "" };
        Chart::new(&axis(), &axis())
    }

    #[test]
    fn a_gap_lifts_the_pen_and_a_lone_point_is_visible() {
        let mut chart = chart();
        chart.line(&[(0.0, Some(0.0)), (1.0, None), (5.0, Some(10.0))], 0, Stroke::Solid, "");
        assert!(chart.body.ends_with("d=\"M62.0 210.0h0M261.0 26.0h0\"/>"), "{}", chart.body);
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        let mut chart = chart();
        for colour in 0..8 {
            chart.line(&[(0.0, Some(0.0))], colour, Stroke::Solid, "same place");
        }
        let figure = chart.finish("a b", "t", "d");
        let drawn = figure.inline("f");
        let places: Vec<f64> = drawn
            .split("<text class=\"name")
            .skip(1)
            .map(|text| text.split("y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(places.len(), 8);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_HEIGHT - 0.01), "{places:?}");
        assert!(places[7] <= BOTTOM + 4.0, "{places:?}");
        assert_eq!(figure.name, "a_b");
    }

    #[test]
    fn labels_stay_near_their_lines() {
        assert_eq!(spread(&[50.0, 51.0, 120.0], 14.0, 26.0, 210.0), [43.5, 57.5, 120.0]);
        assert_eq!(spread(&[0.0, 0.0, 0.0], 14.0, 26.0, 210.0), [26.0, 40.0, 54.0]);
        assert_eq!(spread(&[300.0, 300.0], 14.0, 26.0, 210.0), [196.0, 210.0]);
        let crowded = spread(&[100.0; 40], 14.0, 26.0, 210.0);
        assert!(crowded[0] >= 26.0 && crowded[39] <= 210.01, "{crowded:?}");
        assert_eq!(spread(&[], 14.0, 0.0, 1.0), Vec::<f64>::new());
    }
}
