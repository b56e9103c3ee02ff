//! Writing SVG: text into a string, and paths that are short.

use std::fmt::Write as _;

/// Writing to a string does not fail.
pub(super) fn put(body: &mut String, text: std::fmt::Arguments) {
    let _ = body.write_fmt(text);
}

/// An SVG path in relative tenths of a pixel: half as long as one in absolute numbers.
#[derive(Default)]
pub(super) struct Path {
    pub(super) text: String,
    /// Where the pen is, rounded as it was written, so that rounding does not add up.
    pub(super) last: Option<(f64, f64)>,
    down: bool,
}

impl Path {
    pub(super) fn to(&mut self, (x, y): (f64, f64)) {
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

    pub(super) fn lift(&mut self) {
        self.down = false;
    }

    pub(super) fn close(&mut self) {
        self.text.push('z');
        self.down = false;
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
