//! Numbers and times as other tools write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// A number, or `None` where there is none: empty, `N/A`, or no finite number.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
    // Rust reads `inf` and `nan`, too.
    if !text.chars().all(plain) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A number that is not negative.
pub(crate) fn quantity(text: &str) -> Option<f64> {
    number(text).filter(|number| *number >= 0.0)
}

/// A number of things.
pub(crate) fn count(text: &str) -> Option<u64> {
    let text = text.trim();
    text.parse().ok().or_else(|| quantity(text).map(|number| number.round() as u64))
}

/// A share of 1: `99.5%`, or a number of percent without the sign.
pub(crate) fn percent(text: &str) -> Option<f64> {
    quantity(text.trim().trim_end_matches('%')).map(|percent| percent / 100.0).filter(|share| *share <= 1.0)
}

/// A moment, nanoseconds since 1970 UTC. Without a time zone, the system's applies.
pub(crate) fn moment(text: &str) -> Option<u64> {
    let text = text.trim();
    let zoned = || Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::system()).ok()?.timestamp());
    let moment = text.parse::<Timestamp>().ok().or_else(zoned)?;
    u64::try_from(moment.as_nanosecond()).ok()
}

/// Milliseconds as nanoseconds.
pub(crate) fn ms(milliseconds: f64) -> f64 {
    milliseconds * 1e6
}

/// Seconds as whole nanoseconds.
pub(crate) fn seconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "N/A", "nan", "inf", "-inf", "1,5", "5 ms", "1e999", "Infinity"] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(
            (number(" 20.00 "), quantity("-1"), count("1e3"), count("18446744073709551615")),
            (Some(20.0), None, Some(1_000), Some(u64::MAX))
        );
        assert_eq!(
            (percent("99.5%"), percent("100"), percent("101%"), percent("N/A")),
            (Some(0.995), Some(1.0), None, None)
        );
    }

    #[test]
    fn moments_of_all_tools_are_read() {
        let whole = 1_780_000_000_000_000_000;
        assert_eq!(moment("2026-05-28T20:26:40Z"), Some(whole));
        assert_eq!(moment("2026-05-28T22:26:40.000000005+02:00"), Some(whole + 5));
        assert_eq!(moment("2026-05-28T22:26:40.250+0200"), Some(whole + 250_000_000), "elbencho");
        assert!(moment("2026-05-28 20:26:40").is_some(), "COSBench");
        assert_eq!((moment("20:26:40"), moment(""), moment("1960-01-01T00:00:00Z")), (None, None, None));
    }
}
