//! Escaping, names of percentiles and local time: the few ways in which foreign text and numbers enter a report.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Text made safe inside HTML and SVG, as content and as a quoted attribute.
///
/// Characters that XML 1.0 forbids (section 2.2) become U+FFFD, so that an SVG file always parses.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + text.len() / 16);
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' | '\r' => safe.push(character),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                safe.push('\u{fffd}');
            }
            plain => safe.push(plain),
        }
    }
    safe
}

/// A name for an `id` attribute or a file: letters, digits, `-`, `_` and `.` stay, all else becomes `_`.
pub(crate) fn plain_name(text: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    text.chars().map(keep).take(80).collect()
}

/// `text` cut after `most` characters, with an ellipsis if it was longer.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A moment in UTC: `2026-11-20 19:26:03 UTC`; empty for 0, which means that it is not known.
pub(crate) fn utc(unix_ns: u64) -> String {
    if unix_ns == 0 { String::new() } else { moment(unix_ns, &TimeZone::UTC, "%Y-%m-%d %H:%M:%S UTC") }
}

/// A moment in `zone`, in the `strftime` format given. Moments that the calendar cannot hold are empty.
pub(crate) fn moment(unix_ns: u64, zone: &TimeZone, format: &str) -> String {
    match Timestamp::from_nanosecond(i128::from(unix_ns)) {
        Ok(timestamp) => timestamp.to_zoned(zone.clone()).strftime(format).to_string(),
        Err(_) => String::new(),
    }
}

/// How a percentile is called: `p50`, `p99.9`; the last one is `max`.
pub(crate) fn percentile_name(fraction: f64) -> String {
    // 0.9999 * 100 is not 99.99 in binary: rounded to six decimals it is.
    if fraction >= 1.0 { "max".into() } else { format!("p{}", (fraction * 1e8).round() / 1e6) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_disarmed_and_control_characters_replaced() {
        assert_eq!(
            escape("<script>alert(\"a'b\")&amp;\u{0}</script>"),
            "&lt;script&gt;alert(&quot;a&#39;b&quot;)&amp;amp;\u{fffd}&lt;/script&gt;"
        );
    }

    #[test]
    fn names_cannot_leave_their_place() {
        assert_eq!(plain_name("../a b/\"c\""), ".._a_b__c_");
        assert_eq!(shorten("0123456789", 5), "0123…");
        assert_eq!(shorten("01234", 5), "01234");
    }

    #[test]
    fn moments() {
        assert_eq!(utc(1_600_000_000_000_000_000), "2020-09-13 12:26:40 UTC");
        assert_eq!(utc(0), "");
        assert_eq!(utc(u64::MAX), "2554-07-21 23:34:33 UTC");
    }
}
