//! A drawing surface with axes, and the figure that comes out of it.

use super::scale::{Scale, Tick};
use super::series::Point;
use crate::text::{escape, plain_name, shorten};
use std::fmt::Write as _;

/// The whole picture, and the part of it that the axes enclose, in pixels.
const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 62.0;
const ROOM: f64 = 80.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 40.0;

/// Height of the title and width of the margin that only a stand-alone figure has: a page has its own.
const TITLE_HEIGHT: f64 = 34.0;
const MARGIN: f64 = 12.0;

/// Room beside the lines for longer labels.
const MORE_ROOM: f64 = 124.0;

/// Distance between two labels beside the lines.
const LABEL_HEIGHT: f64 = 14.0;

/// How many colours there are for lines; further ones begin again, and are told apart by their labels.
const COLOURS: usize = 6;

/// Colours and strokes of figures, for the page that inlines them and for stand-alone files.
///
/// The hues are those of Okabe and Ito (Color Universal Design, 2008), darkened or lightened until text in them
/// has a contrast of 4.5 to 1 on the paper.
pub(crate) const STYLE: &str = include_str!("figure.css");

/// A figure: what it shows, in words and as a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// A short stable name for files and links: `throughput`, `latency-read`.
    pub name: String,
    /// What it shows: its caption.
    pub title: String,
    /// The same in words and numbers, for those who do not see it.
    pub description: String,
    body: String,
}

impl Figure {
    /// The figure as an element of a page that has [`STYLE`]; `id` must be unique in that page.
    pub(crate) fn inline(&self, id: &str) -> String {
        let id = plain_name(id);
        format!(
            "<svg class=\"fig\" role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{}</svg>",
            escape(&self.title),
            escape(&self.description),
            self.body
        )
    }

    /// The figure as a complete SVG document that carries its own colours and follows dark mode.
    pub fn standalone(&self) -> String {
        let (left, top) = (-MARGIN, -TITLE_HEIGHT);
        let (width, height) = (WIDTH + 2.0 * MARGIN, HEIGHT + TITLE_HEIGHT + MARGIN);
        let (title, description) = (escape(&self.title), escape(&self.description));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fig\" role=\"img\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"{left} {top} {width} {height}\" aria-labelledby=\"t d\">\n<title id=\"t\">{title}</title>\n\
             <desc id=\"d\">{description}</desc>\n<style>{STYLE}</style>\n\
             <rect class=\"paper\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/>\n\
             <text class=\"headline\" x=\"0\" y=\"-8\">{title}</text>\n{}\n</svg>\n",
            self.body
        )
    }
}

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
}

impl Stroke {
    const fn class(self) -> &'static str {
        match self {
            Stroke::Solid => "line",
            Stroke::Fine => "line fine",
            Stroke::Dashed => "line fine dashed",
            Stroke::Dotted => "line fine dotted",
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

/// A figure in the making.
pub(crate) struct Chart {
    /// Where the axes end, in pixels.
    right: f64,
    x: Scale,
    y: Scale,
    body: String,
    labels: Vec<Label>,
    /// Where peaks have been named.
    peaks: Vec<(f64, f64)>,
}

struct Label {
    y: f64,
    text: String,
    colour: usize,
}

impl Chart {
    /// An empty chart with its axes.
    pub(crate) fn new(x: &Axis, y: &Axis) -> Self {
        Self::until(WIDTH - ROOM, x, y)
    }

    /// One with room for longer labels.
    pub(crate) fn with_room(x: &Axis, y: &Axis) -> Self {
        Self::until(WIDTH - MORE_ROOM, x, y)
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
        let (y_title, x_title) = (escape(y.title), escape(x.title));
        put(&mut body, format_args!("<text x=\"0\" y=\"12\">{y_title}</text>"));
        put(
            &mut body,
            format_args!("<text class=\"end\" x=\"{right}\" y=\"{}\">{x_title}</text></g>", HEIGHT - 5.0),
        );
        Self { right, x: x.scale, y: y.scale, body, labels: Vec::new(), peaks: Vec::new() }
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
        // About half of the type size per character.
        let half = words.chars().count() as f64 * 3.2;
        let middle = ((left + right) / 2.0).clamp(LEFT + half, (self.right - half).max(LEFT + half));
        if class == "outage" || width > 2.0 * half {
            let text = escape(words);
            put(
                &mut self.body,
                format_args!(
                    "<text class=\"mid {class}-words\" x=\"{middle:.1}\" y=\"{}\">{text}</text>",
                    TOP - 6.0
                ),
            );
        }
    }

    /// Draws a line in the colour with this number; a label that is not empty is put beside its end.
    pub(crate) fn line(&mut self, points: &[Point], colour: usize, stroke: Stroke, label: &str) {
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
        let (class, colour) = (stroke.class(), colour % COLOURS);
        put(&mut self.body, format_args!("<path class=\"{class} c{colour}\" d=\"{}\"/>", path.finish()));
        if !label.is_empty() {
            // Beside where the line usually is towards its end, not where its last point happens to be.
            let mut ends: Vec<f64> = points.iter().rev().filter_map(|(_, value)| *value).take(9).collect();
            ends.sort_by(f64::total_cmp);
            let usual = ends.get(ends.len() / 2).copied().unwrap_or_default();
            self.labels.push(Label { y: self.place(0.0, usual).1, text: shorten(label, 12), colour });
        }
    }

    /// Draws measured values, joined, each with the range of its repeats; the label is put beside the last one.
    pub(crate) fn measured(&mut self, points: &[Measured], colour: usize, stroke: Stroke, label: &str) {
        let Some(last) = points.last() else { return };
        let joined: Vec<Point> = points.iter().map(|point| (point.x, Some(point.value))).collect();
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
            put(
                &mut self.body,
                format_args!("<circle class=\"f{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"/>"),
            );
        }
        if !ranges.is_empty() {
            put(&mut self.body, format_args!("<path class=\"line fine c{colour}\" d=\"{ranges}\"/>"));
        }
        if !label.is_empty() {
            let (y, text) = (self.place(last.x, last.value).1, shorten(label, 17));
            self.labels.push(Label { y, text, colour });
        }
    }

    /// Names a line at its highest point, above the names that are there already.
    pub(crate) fn name_peak(&mut self, points: &[Point], colour: usize, label: &str) {
        let peaks = points.iter().filter_map(|(x, value)| Some((*x, (*value)?)));
        let Some((x, y)) = peaks.max_by(|left, right| left.1.total_cmp(&right.1)) else { return };
        let (x, mut y) = self.place(x, y);
        y -= 5.0;
        let near = |&(other_x, other_y): &(f64, f64), y: f64| {
            (other_x - x).abs() < 6.0 * LABEL_HEIGHT && (other_y - y).abs() < LABEL_HEIGHT
        };
        while self.peaks.iter().any(|peak| near(peak, y)) {
            y -= LABEL_HEIGHT;
        }
        self.peaks.push((x, y));
        let (colour, text) = (colour % COLOURS, escape(&shorten(label, 12)));
        put(
            &mut self.body,
            format_args!("<text class=\"mid name f{colour}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"),
        );
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

    /// The figure, with the labels of its lines put where they do not cover each other.
    pub(crate) fn finish(mut self, name: &str, title: &str, description: &str) -> Figure {
        self.labels.sort_by(|left, right| left.y.total_cmp(&right.y));
        let count = self.labels.len();
        let mut floor = TOP + 4.0;
        for (index, label) in self.labels.iter().enumerate() {
            // Room must remain below for the labels that follow.
            let ceiling = BOTTOM + 4.0 - (count - 1 - index) as f64 * LABEL_HEIGHT;
            let y = (label.y + 4.0).min(ceiling).max(floor);
            floor = y + LABEL_HEIGHT;
            let (x, colour, text) = (self.right + 6.0, label.colour, escape(&label.text));
            put(
                &mut self.body,
                format_args!("<text class=\"name f{colour}\" x=\"{x}\" y=\"{y:.1}\">{text}</text>"),
            );
        }
        Figure {
            name: plain_name(name),
            title: title.into(),
            description: description.into(),
            body: self.body,
        }
    }

    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (across(LEFT, self.right, self.x.place(x)), across(TOP, BOTTOM, 1.0 - self.y.place(y)))
    }
}

fn across(from: f64, to: f64, share: f64) -> f64 {
    from + (to - from) * share
}

/// Writing to a string does not fail.
fn put(body: &mut String, text: std::fmt::Arguments) {
    let _ = body.write_fmt(text);
}

/// The stretches of a line between its gaps.
fn runs(points: &[Point]) -> Vec<&[Point]> {
    points.split(|(_, value)| value.is_none()).filter(|run| !run.is_empty()).collect()
}

/// An SVG path in relative tenths of a pixel: half as long as one in absolute numbers.
#[derive(Default)]
struct Path {
    text: String,
    /// Where the pen is, rounded as it was written, so that rounding does not add up.
    last: Option<(f64, f64)>,
    down: bool,
}

impl Path {
    fn to(&mut self, (x, y): (f64, f64)) {
        let (x, y) = ((x * 10.0).round() / 10.0, (y * 10.0).round() / 10.0);
        match self.last.filter(|_| self.down) {
            Some((last_x, last_y)) => {
                self.text.push('l');
                self.number(x - last_x);
                self.number(y - last_y);
            }
            // The line of no length makes a point without neighbours visible.
            None => put(&mut self.text, format_args!("M{x:.1} {y:.1}h0")),
        }
        (self.last, self.down) = (Some((x, y)), true);
    }

    fn number(&mut self, value: f64) {
        let tenths = (value * 10.0).round() as i64;
        if tenths >= 0 && !self.text.ends_with('l') {
            self.text.push(' ');
        }
        let sign = if tenths < 0 { "-" } else { "" };
        let (whole, rest) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
        match (whole, rest) {
            (whole, 0) => put(&mut self.text, format_args!("{sign}{whole}")),
            (0, rest) => put(&mut self.text, format_args!("{sign}.{rest}")),
            (whole, rest) => put(&mut self.text, format_args!("{sign}{whole}.{rest}")),
        }
    }

    fn lift(&mut self) {
        self.down = false;
    }

    fn close(&mut self) {
        self.text.push('z');
        self.down = false;
    }

    fn finish(self) -> String {
        self.text
    }
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
        let places: Vec<f64> = figure
            .body
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
    fn rounding_does_not_add_up() {
        let mut path = Path::default();
        (0..1000).for_each(|i| path.to((f64::from(i) * 0.26, 0.0)));
        let moved: f64 = path.finish()["M0.0 0.0h0".len()..]
            .split('l')
            .skip(1)
            .map(|step| step.split(' ').next().unwrap().parse::<f64>().unwrap())
            .sum();
        assert!((moved - 999.0 * 0.26).abs() < 0.1, "{moved}");
    }
}
