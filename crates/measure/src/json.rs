//! JSON of others, weighed before it is read.
//!
//! An empty object is three bytes in a list, and may be a kilobyte in memory.

use crate::units;

/// The longest text, and the most objects and values in it: the largest results of benchmarks have a third of that.
const MOST_BYTES: usize = 64 << 20;
const MOST_OBJECTS: u64 = 200_000;
const MOST_VALUES: u64 = 1_000_000;

/// Refuses a text that would take many times its length in memory.
///
/// # Errors
/// What it has too many of.
pub fn weigh(text: &str) -> Result<(), String> {
    let (mut objects, mut values) = (0, 0);
    for byte in text.bytes() {
        objects += u64::from(byte == b'{');
        values += u64::from(byte == b',');
    }
    let (what, count, most) = match () {
        () if text.len() > MOST_BYTES => ("bytes", text.len() as u64, MOST_BYTES as u64),
        () if objects > MOST_OBJECTS => ("objects", objects, MOST_OBJECTS),
        () if values > MOST_VALUES => ("values", values, MOST_VALUES),
        () => return Ok(()),
    };
    Err(format!("the JSON has {} {what}; the limit is {}", units::count(count), units::count(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_without_end_are_refused() {
        let list = |part: &str, times: u64| format!("[{}]", part.repeat(times as usize));
        assert_eq!(weigh("{\"a\": [1, 2]}"), Ok(()));
        assert_eq!(weigh(&list("{},", MOST_OBJECTS)), Ok(()));
        assert!(weigh(&list("{},", MOST_OBJECTS + 1)).unwrap_err().contains("200\u{202f}001 objects"));
        assert!(weigh(&list("0,", MOST_VALUES + 1)).unwrap_err().contains("1\u{202f}000\u{202f}001 values"));
        assert!(weigh(&" ".repeat(MOST_BYTES + 1)).unwrap_err().contains("bytes"));
    }
}
