//! Service levels: what latency a load may have to count.

use crate::units::{self, UnitError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// More conditions than this are treated as a mistake.
const MOST_CONDITIONS: usize = 100;

/// What a service level looks like, for messages.
const EXAMPLE: &str = "for example, write `p95 <= 200ms + size / 1MBps and failures <= 0.1%`";

/// Conditions of which every one must hold: `p95 <= 200ms + size / 1MBps and failures <= 0.1%`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceLevel {
    /// As it was written.
    pub text: String,
    /// The conditions on response times.
    pub limits: Vec<Limit>,
    /// The largest share of operations that may fail, 0 to 1; 0 unless it is given.
    pub failures: f64,
}

/// A condition on one statistic of the response times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// The operation that it is about, as reports label it or by its type; empty: each of them.
    pub operation: String,
    /// Which statistic.
    pub statistic: Statistic,
    /// The part of the limit that does not depend on size, nanoseconds.
    pub base_ns: u64,
    /// Nanoseconds for each byte of an operation, on top.
    pub ns_per_byte: f64,
}

/// A statistic of response times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The value that this share of the operations does not exceed: 0.95; 1 is the largest.
    Quantile(f64),
}

impl Default for Statistic {
    fn default() -> Self {
        Statistic::Quantile(0.95)
    }
}

impl Limit {
    /// The limit for operations of a size, nanoseconds.
    pub fn at(&self, bytes: f64) -> f64 {
        self.base_ns as f64 + self.ns_per_byte * bytes
    }
}

impl fmt::Display for ServiceLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl ServiceLevel {
    /// Reads conditions joined by `and` or commas. Each is `failures <= 0.1%`, or a limit of response times: an operation
    /// (none: each of them), a statistic (`p50` to `p100`, `max`, `mean`, `median`), `<=`, a duration, and perhaps the
    /// time for the object's size, `+ size / 1MBps`. `<` means the same as `<=`.
    ///
    /// # Errors
    /// What cannot be read, with what is expected there and an example.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        let mut level = Self { text: text.clone(), ..Self::default() };
        let mut failures = None;
        let commas = text.split(',');
        let conditions: Vec<String> = commas.flat_map(split_at_and).collect();
        if conditions.len() > MOST_CONDITIONS {
            return error(format!("there are {} conditions", conditions.len()), EXAMPLE);
        }
        for condition in conditions {
            match condition_of(&condition)? {
                Condition::Failures(share) if failures.replace(share).is_none() => {}
                Condition::Failures(_) => {
                    return error("`failures` is limited twice", "keep one of the conditions");
                }
                Condition::Limit(limit) => {
                    let same = |other: &&Limit| {
                        other.operation == limit.operation && other.statistic == limit.statistic
                    };
                    if level.limits.iter().find(same).is_some() {
                        return error(format!("'{condition}' repeats a condition"), "keep one of the two");
                    }
                    level.limits.push(limit);
                }
            }
        }
        level.failures = failures.unwrap_or(0.0);
        Ok(level)
    }
}

enum Condition {
    Failures(f64),
    Limit(Limit),
}

fn error<T>(message: impl Into<String>, advice: impl Into<String>) -> Result<T, UnitError> {
    Err(UnitError { message: message.into(), advice: advice.into() })
}

/// The parts between the words `and`.
fn split_at_and(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for word in text.split_whitespace() {
        match parts.last_mut() {
            Some(last) if !word.eq_ignore_ascii_case("and") => {
                last.push_str(if last.is_empty() { "" } else { " " });
                last.push_str(word);
            }
            _ => parts.push(String::new()),
        }
    }
    parts
}

fn condition_of(text: &str) -> Result<Condition, UnitError> {
    if text.is_empty() {
        return error("a condition is empty", EXAMPLE);
    }
    let Some((left, right)) = text.split_once('<') else {
        return error(format!("'{text}' has no `<=`"), EXAMPLE);
    };
    let right = right.strip_prefix('=').unwrap_or(right).trim();
    let left = left.trim();
    if left.eq_ignore_ascii_case("failures") {
        return Ok(Condition::Failures(units::parse_share(right)?));
    }
    let (operation, statistic) = left.rsplit_once(char::is_whitespace).unwrap_or(("", left));
    let statistic = statistic_of(statistic)?;
    let (base_ns, ns_per_byte) = bound(right)?;
    Ok(Condition::Limit(Limit { operation: operation.trim().to_owned(), statistic, base_ns, ns_per_byte }))
}

fn statistic_of(text: &str) -> Result<Statistic, UnitError> {
    match text {
        "mean" => return Ok(Statistic::Mean),
        "median" => return Ok(Statistic::Quantile(0.5)),
        "max" => return Ok(Statistic::Quantile(1.0)),
        _ => {}
    }
    let digits = text.strip_prefix('p').filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit()));
    let percent = digits.and_then(|digits| digits.parse::<f64>().ok());
    match percent.filter(|percent| *percent > 0.0 && *percent <= 100.0) {
        // Rounded so that p99.9 is 0.999 and not its neighbour.
        Some(percent) => Ok(Statistic::Quantile((percent * 1e6).round() / 1e8)),
        None => error(
            format!("'{text}' is not a statistic of response times"),
            "write p50, p90, p95, p99, p99.9, p100, max, mean or median, or `failures`",
        ),
    }
}

/// A duration, and nanoseconds for each byte.
fn bound(text: &str) -> Result<(u64, f64), UnitError> {
    let Some((duration, rest)) = text.split_once('+') else {
        return Ok((units::parse_duration_ns(text)?, 0.0));
    };
    let base_ns = units::parse_duration_ns(duration)?;
    let rate = rest.trim().strip_prefix("size").map(str::trim_start).and_then(|rest| rest.strip_prefix('/'));
    let Some(rate) = rate.map(str::trim) else {
        return error(format!("'{}' is not a time for the size", rest.trim()), "write `+ size / 1MBps`");
    };
    let bytes = rate.strip_suffix("ps").or_else(|| rate.strip_suffix('s')?.trim_end().strip_suffix('/'));
    let Some(bytes) = bytes.filter(|bytes| bytes.trim_end().ends_with(['B', 'b'])) else {
        return error(
            format!("'{rate}' is not a rate of bytes"),
            "write a rate such as 1MBps, 1MB/s or 1MiBps",
        );
    };
    match units::parse_bytes(bytes)? {
        0 => error(format!("'{rate}' is zero"), "write a rate such as 1MBps"),
        bytes => Ok((base_ns, 1e9 / bytes as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limit(text: &str) -> Limit {
        let level = ServiceLevel::parse(text).unwrap();
        assert_eq!((level.limits.len(), level.to_string()), (1, text.to_owned()));
        level.limits[0].clone()
    }

    #[test]
    fn the_rule_of_the_cosbench_talk() {
        let limit = limit("p95 <= 200ms + size / 1MBps");
        assert_eq!((limit.statistic, limit.operation.as_str()), (Statistic::Quantile(0.95), ""));
        assert_eq!([limit.at(0.0), limit.at(1_000_000.0)], [2e8, 1.2e9]);
        assert_eq!(limit.at(10e6), 10.2e9);
    }

    #[test]
    fn conditions_are_joined_and_name_operations() {
        let level =
            ServiceLevel::parse("1-read p99.9 < 5ms and  write mean <= 1s, failures <= 0.1%").unwrap();
        assert_eq!(level.to_string(), "1-read p99.9 < 5ms and write mean <= 1s, failures <= 0.1%");
        assert_eq!(level.failures, 0.001);
        let seen: Vec<_> =
            level.limits.iter().map(|l| (l.operation.as_str(), l.statistic, l.base_ns)).collect();
        assert_eq!(
            seen,
            [("1-read", Statistic::Quantile(0.999), 5_000_000), ("write", Statistic::Mean, 1_000_000_000)]
        );
        assert_eq!(ServiceLevel::parse("failures <= 5%").unwrap().limits, []);
    }

    #[test]
    fn statistics_and_rates_have_several_spellings() {
        let quantile = |text: &str| limit(&format!("{text} <= 1s")).statistic;
        assert_eq!(quantile("max"), quantile("p100"));
        assert_eq!(quantile("median"), quantile("p50"));
        let per_byte = |text: &str| limit(&format!("p95 <= 0 + size / {text}")).ns_per_byte;
        assert_eq!([per_byte("1MBps"), per_byte("1MB/s"), per_byte("1 MB / s")], [1000.0; 3]);
        assert_eq!(per_byte("1MiBps"), 1e9 / 1_048_576.0);
    }

    #[test]
    fn what_cannot_be_read_says_what_was_expected() {
        let table = [
            ("", "a condition is empty"),
            ("p95 <= 1s and", "a condition is empty"),
            ("p95 200ms", "'p95 200ms' has no `<=`"),
            ("p95 >= 200ms", "has no `<=`"),
            ("p0 <= 1s", "'p0' is not a statistic"),
            ("p101 <= 1s", "'p101' is not a statistic"),
            ("p+5 <= 1s", "is not a statistic"),
            ("average <= 1s", "'average' is not a statistic"),
            ("p95 <= 200", "has no unit of time"),
            ("p95 <= 200ms + 1ms", "'1ms' is not a time for the size"),
            ("p95 <= 200ms + size / 10", "'10' is not a rate of bytes"),
            ("p95 <= 200ms + size / 0MBps", "is zero"),
            ("p95 <= 200ms + size / 1Mps", "is not a rate of bytes"),
            ("failures <= 200%", "is more than 100 %"),
            ("failures <= 1%, failures <= 2%", "`failures` is limited twice"),
            ("p95 <= 1s and p95 <= 2s", "repeats a condition"),
        ];
        for (text, expected) in table {
            let error = ServiceLevel::parse(text).unwrap_err();
            assert!(error.message.contains(expected), "{text}: {error}");
            assert!(!error.advice.is_empty());
        }
        assert!(ServiceLevel::parse(&"p95 <= 1s,".repeat(200)).is_err());
    }

    proptest! {
        #[test]
        fn nothing_is_read_with_a_panic_and_what_is_read_reads_back(
            text in "\\PC{0,40}|((a |1-read )?(p9{1,2}(\\.9)?|max|mean|failures) ?<=? ?[0-9.]{1,6}(ms|s|%)?( ?\\+ size ?/ ?[0-9.]{1,4}[kMG]i?B(ps|/s))?( and |, ?)?){1,3}"
        ) {
            if let Ok(level) = ServiceLevel::parse(&text) {
                prop_assert_eq!(ServiceLevel::parse(&level.to_string()).unwrap(), level.clone());
                prop_assert!(level.limits.iter().all(|limit| limit.at(1e9).is_finite()));
            }
        }
    }
}
