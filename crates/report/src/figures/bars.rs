//! Bars that lie on their side, so that each has its name at its left and its value at its right: nothing depends on
//! colours.

use super::chart::COLOURS;
use super::figure::{Figure, WIDTH};
use super::path::put;
use super::scale::Scale;
use crate::text::{escape, shorten};

/// Where bars begin and end, in pixels.
const LEFT: f64 = 116.0;
const RIGHT: f64 = WIDTH as f64 - 184.0;

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

/// Draws groups of bars. Without `base` each group has a scale of its own; with it all share one, on which a line is
/// drawn at the base.
pub(crate) fn bars(name: &str, title: &str, groups: &[Group], base: Option<f64>) -> Option<Figure> {
    let shared = base.map(|base| scale(groups.iter().flat_map(|group| &group.bars), base));
    let mut body = String::new();
    let mut y = 0.0;
    for group in groups.iter().filter(|group| !group.bars.is_empty()) {
        let scale = shared.unwrap_or_else(|| scale(group.bars.iter(), 0.0));
        y += TITLE;
        let text = escape(&shorten(&group.title, 76));
        put(&mut body, format_args!("<text class=\"strong\" x=\"0\" y=\"{:.1}\">{text}</text>", y - 7.0));
        for bar in &group.bars {
            draw(&mut body, bar, scale, y);
            y += ROW;
        }
    }
    if body.is_empty() {
        return None;
    }
    if let (Some(base), Some(scale)) = (base, shared) {
        y = axis(&mut body, scale, base, y);
    }
    let words = groups.iter().map(|group| {
        let bars: Vec<String> = group.bars.iter().map(|bar| format!("{} {}", bar.label, bar.words)).collect();
        format!("{}: {}.", group.title, bars.join(", "))
    });
    let description = words.collect::<Vec<_>>().join(" ");
    Some(Figure::new(name, title, &description, (y + 4.0) as u32, body))
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

fn draw(body: &mut String, bar: &Bar, scale: Scale, y: f64) {
    let place = |value: f64| LEFT + (RIGHT - LEFT) * scale.place(value);
    let (middle, colour) = (y + BAR / 2.0, bar.colour % COLOURS);
    let (label, words) = (escape(&shorten(&bar.label, 15)), escape(&bar.words));
    let (text, width) = (middle + 4.0, (place(bar.value) - LEFT).max(0.5));
    put(body, format_args!("<text class=\"end\" x=\"{:.0}\" y=\"{text:.1}\">{label}</text>", LEFT - 8.0));
    put(
        body,
        format_args!(
            "<rect class=\"f{colour}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\"/>"
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
        format_args!("<text class=\"strong\" x=\"{:.0}\" y=\"{text:.1}\">{words}</text>", RIGHT + 10.0),
    );
}

/// The shared axis below the bars, and the line of the base; gives where it ends.
fn axis(body: &mut String, scale: Scale, base: f64, y: f64) -> f64 {
    let place = |value: f64| LEFT + (RIGHT - LEFT) * scale.place(value);
    let one = place(base);
    put(body, format_args!("<path class=\"axis\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>"));
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
    fn nothing_and_too_much_are_drawn_too() {
        assert!(bars("n", "t", &[], Some(1.0)).is_none());
        for value in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            let group = Group { title: String::new(), bars: vec![bar(value, Some((-1.0, f64::INFINITY)))] };
            let text = bars("n", "t", &[group], Some(1.0)).unwrap().inline("f");
            assert!(!text.contains("=\"NaN") && !text.contains("=\"inf"), "{text}");
        }
    }
}
