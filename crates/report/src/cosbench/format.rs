//! COSBench's way to write numbers and cells.

use csv::Terminator;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::tally::Tally;

/// What stands where there is no number.
pub(super) const NONE: &str = "N/A";

/// Java's `new DecimalFormat("0.##")`: at most two decimals, none that are zero, ties to the even digit.
pub(super) fn num(value: f64) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Java's `new DecimalFormat("0.##%")`, except that what is not all is never written as `100%`, nor what is
/// something as `0%`.
pub(super) fn ratio(part: u64, whole: u64) -> String {
    if whole == 0 {
        return NONE.into();
    }
    let percent = 100.0 * part as f64 / whole as f64;
    let honest = match part {
        0 => 0.0,
        part if part < whole => percent.clamp(0.01, 99.99),
        _ => percent,
    };
    format!("{}%", num(honest))
}

/// Nanoseconds as COSBench's milliseconds; `N/A` when there were no samples.
pub(super) fn milliseconds(samples: u64, ns: f64) -> String {
    if samples == 0 { NONE.into() } else { num(ns / 1e6) }
}

/// The mean of a histogram in milliseconds.
pub(super) fn mean(histogram: &Histogram) -> String {
    milliseconds(histogram.count(), histogram.mean())
}

/// `Avg-ProcTime`: to the first byte; where nothing is transferred after the reply, the whole response time.
pub(super) fn processing(tally: &Tally) -> String {
    mean(if tally.first_byte.is_empty() { &tally.response } else { &tally.first_byte })
}

/// A row, with quotes around cells that need them, which COSBench's own never do.
pub(super) fn row<C: AsRef<[u8]>>(cells: impl IntoIterator<Item = C>) -> String {
    crate::csv::text([cells], Terminator::Any(b'\n'))
}

/// A name as part of a file name: without separators and control characters, and not too long for a file system.
pub(super) fn file_name(name: &str) -> String {
    let safe = |c: char| if c.is_control() || matches!(c, '/' | '\\') { '_' } else { c };
    let mut text: String = name.chars().map(safe).collect();
    // 255 bytes is the limit nearly everywhere; what is put around a name takes up to 40.
    while text.len() > 200 {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_java_formats_them() {
        let numbers = [0.0, 3.0, 3.1, 2.71459, 0.005, 0.125, 0.375, 1234567.891, 1e15, -0.001, f64::NAN];
        assert_eq!(
            numbers.map(num),
            ["0", "3", "3.1", "2.71", "0.01", "0.12", "0.38", "1234567.89", "1000000000000000", "0", "N/A"]
        );
    }

    #[test]
    fn ratios_are_honest() {
        assert_eq!([ratio(1, 1), ratio(0, 5), ratio(0, 0), ratio(1, 2)], ["100%", "0%", "N/A", "50%"]);
        assert_eq!([ratio(999_999, 1_000_000), ratio(1, 1_000_000)], ["99.99%", "0.01%"]);
        assert_eq!([ratio(9_994, 10_000), ratio(2, 3)], ["99.94%", "66.67%"]);
    }

    #[test]
    fn file_names_stay_in_their_directory() {
        assert_eq!(file_name("../a/b\\c\nd"), ".._a_b_c_d");
        assert!(file_name(&"ä".repeat(500)).len() <= 200);
    }
}
