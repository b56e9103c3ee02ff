//! Bars that lie on their side, so that each has its name at its left and its value at its right: nothing depends on
//! colours.

use super::chart::COLOURS;
use super::figure::{Figure, WHOLE_WIDTH, WIDTH};
use super::path::put;
use super::scale::Scale;
use crate::text::{escape, shorten};

/// Width of a letter of a name, between a name and its bar, and of the values in words, in pixels.
const LETTER: f64 = 7.2;
const GAP: f64 = 8.0;
const WORDS: f64 = 184.0;

/// Letters of a name for which there is room at least, in a figure of the usual width, and in one of a page's width.
const LETTERS: [usize; 3] = [15, 24, 70];

/// Heights of a bar, of its row and of a group's title.
const BAR: f64 = 13.0;
const ROW: f64 = 20.0;
const TITLE: f64 = 24.0;

/// One bar.
pub(crate) struct Bar {
    /// What it is of: an arm's name.
    pub(crate) label: String,
    /// Its length.
    pub(crate) value: f64,
    /// Ends of the confidence interval.
    pub(crate) interval: Option<(f64, f64)>,
    /// The value in words.
    pub(crate) words: String,
    /// The arm's colour.
    pub(crate) colour: usize,
}

/// Bars that are compared with each other.
pub(crate) struct Group {
    /// What they have in common: the load.
    pub(crate) title: String,
    /// The bars, the baseline's first.
    pub(crate) bars: Vec<Bar>,
}

/// Where bars begin and end, in pixels: as far to the right as the longest name needs.
#[derive(Clone, Copy)]
struct Room {
    left: f64,
    right: f64,
}

impl Room {
    /// Where a value is.
    fn place(self, scale: Scale, value: f64) -> f64 {
        self.left + (self.right - self.left) * scale.place(value)
    }
}

/// Draws groups of bars. Without `base` each group has a scale of its own; with it all share one, on which a line is
/// drawn at the base.
pub(crate) fn bars(name: &str, title: &str, groups: &[Group], base: Option<f64>) -> Option<Figure> {
    let shared = base.map(|base| scale(groups.iter().flat_map(|group| &group.bars), base));
    let labels = groups.iter().flat_map(|group| &group.bars).map(|bar| bar.label.chars().count());
    let letters = labels.max()?.clamp(LETTERS[0], LETTERS[2]);
    let whole = letters > LETTERS[1];
    let width = if whole { WHOLE_WIDTH } else { WIDTH };
    let room = Room { left: letters as f64 * LETTER + GAP, right: f64::from(width) - WORDS };
    let mut body = String::new();
    let mut y = 0.0;
    for group in groups.iter().filter(|group| !group.bars.is_empty()) {
        let scale = shared.unwrap_or_else(|| scale(group.bars.iter(), 0.0));
        y += TITLE;
        let text = escape(&shorten(&group.title, 76));
        put(&mut body, format_args!("<text class=\"strong\" x=\"0\" y=\"{:.1}\">{text}</text>", y - 7.0));
        for bar in &group.bars {
            draw(&mut body, bar, scale, room, y);
            y += ROW;
        }
    }
    if body.is_empty() {
        return None;
    }
    if let (Some(base), Some(scale)) = (base, shared) {
        y = axis(&mut body, scale, base, room, y);
    }
    let words = groups.iter().map(|group| {
        let bars: Vec<String> = group.bars.iter().map(|bar| format!("{} {}", bar.label, bar.words)).collect();
        format!("{}: {}.", group.title, bars.join(", "))
    });
    let description = words.collect::<Vec<_>>().join(" ");
    let figure = Figure::new(name, title, &description, (y + 4.0) as u32, body);
    Some(if whole { figure.whole_width() } else { figure })
}

/// From nothing to the longest bar or the end of its interval, but an interval does not dwarf its bars.
fn scale<'a>(bars: impl Iterator<Item = &'a Bar>, least: f64) -> Scale {
    let (mut longest, mut end) = (least, least);
    for bar in bars {
        longest = longest.max(bar.value);
        end = end.max(bar.interval.map_or(bar.value, |(_, high)| high));
    }
    Scale::linear(0.0, end.min(longest * 1.6) * 1.02)
}

fn draw(body: &mut String, bar: &Bar, scale: Scale, room: Room, y: f64) {
    let Room { left, right } = room;
    let place = |value| room.place(scale, value);
    let (middle, colour) = (y + BAR / 2.0, bar.colour % COLOURS);
    let (label, words) = (escape(&shorten(&bar.label, LETTERS[2])), escape(&bar.words));
    let (text, width) = (middle + 4.0, (place(bar.value) - left).max(0.5));
    put(body, format_args!("<text class=\"end\" x=\"{:.0}\" y=\"{text:.1}\">{label}</text>", left - GAP));
    put(
        body,
        format_args!(
            "<rect class=\"f{colour}\" x=\"{left:.0}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\"/>"
        ),
    );
    if let Some((low, high)) = bar.interval {
        let (from, to) = (place(low), place(high));
        put(
            body,
            format_args!(
                "<path class=\"whisker\" d=\"M{from:.1} {:.1}v7m0-3.5H{to:.1}m0-3.5v7\"/>",
                middle - 3.5
            ),
        );
    }
    put(
        body,
        format_args!("<text class=\"strong\" x=\"{:.0}\" y=\"{text:.1}\">{words}</text>", right + 10.0),
    );
}

/// The shared axis below the bars, and the line of the base; gives where it ends.
fn axis(body: &mut String, scale: Scale, base: f64, room: Room, y: f64) -> f64 {
    let Room { left, right } = room;
    let place = |value| room.place(scale, value);
    let one = place(base);
    put(body, format_args!("<path class=\"axis\" d=\"M{left:.0} {y:.1}H{right}\"/>"));
    for (value, label) in scale.number_ticks(5) {
        let (x, text) = (place(value), escape(&label));
        put(body, format_args!("<path class=\"axis\" d=\"M{x:.1} {y:.1}v4\"/>"));
        put(body, format_args!("<text class=\"mid\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>", y + 17.0));
    }
    put(body, format_args!("<path class=\"one\" d=\"M{one:.1} 20V{y:.1}\"/>"));
    y + 22.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(value: f64, interval: Option<(f64, f64)>) -> Bar {
        Bar { label: "a <b>".into(), value, interval, words: format!("{value}"), colour: 1 }
    }

    #[test]
    fn groups_without_a_base_have_scales_of_their_own() {
        let group = |factor: f64| Group {
            title: "load".into(),
            bars: vec![bar(factor, None), bar(factor * 2.0, Some((factor, factor * 2.5)))],
        };
        let apart = bars("n", "t", &[group(1.0), group(1000.0)], None).unwrap().inline("f");
        let widths: Vec<&str> =
            apart.split("width=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(widths[0..2], widths[2..4], "{widths:?}");
        let together = bars("n", "t", &[group(1.0), group(1000.0)], Some(1.0)).unwrap().inline("f");
        assert!(together.contains("class=\"one\"") && together.contains("width=\"0.5\""), "{together}");
    }

    #[test]
    fn names_have_the_room_that_the_longest_needs() {
        let named = |label: &str| {
            let group =
                Group { title: String::new(), bars: vec![Bar { label: label.into(), ..bar(1.0, None) }] };
            bars("n", "t", &[group], None).unwrap().inline("f")
        };
        let long = "max_wal_size 256 MB, shared_buffers 1 GB";
        assert!(
            named(long).contains(&format!(">{long}<")) && named(long).contains(" 1112 "),
            "{}",
            named(long)
        );
        assert!(named(&"x".repeat(90)).contains(&format!(">{}…<", "x".repeat(69))));
        let short = named("a");
        assert!(short.contains("<rect class=\"f1\" x=\"116\"") && short.contains(" 540 "), "{short}");
    }

    #[test]
    fn nothing_and_too_much_are_drawn_too() {
        assert!(bars("n", "t", &[], Some(1.0)).is_none());
        for value in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            let group = Group { title: String::new(), bars: vec![bar(value, Some((-1.0, f64::INFINITY)))] };
            let text = bars("n", "t", &[group], Some(1.0)).unwrap().inline("f");
            assert!(!text.contains("=\"NaN") && !text.contains("=\"inf"), "{text}");
        }
    }
}
