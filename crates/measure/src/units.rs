//! Bytes, durations, rates, counts and shares: read from text without rounding, printed for people.
//!
//! Inside the program everything is bytes, nanoseconds and operations per second; this is the edge. Decimal
//! (KB, MB, GB, TB) and binary (KiB, MiB, GiB, TiB) units are different things; a bare k, M or G means one to
//! some tools and the other to others, and is refused.

/// A quantity that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {advice}")]
pub struct UnitError {
    /// What is wrong, with the text in question.
    pub message: String,
    /// What to write instead.
    pub advice: String,
}

fn error<T>(message: impl Into<String>, advice: impl Into<String>) -> Result<T, UnitError> {
    Err(UnitError { message: message.into(), advice: advice.into() })
}

/// Unit names in lower case, bytes in each. The names are read in any case, but for `Kb` and the like, which are bits.
const BYTE_UNITS: [(&str, u64); 9] = [
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// Unit names, nanoseconds in each.
const TIME_UNITS: [(&str, u64); 10] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// A decimal number as written: `digits / 10^decimals`.
#[derive(Clone, Copy)]
struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// Reads the number at the start of `text` and gives what follows it; `None` when there is none, or when
    /// it has more digits than any quantity needs.
    fn read(text: &str) -> Option<(Self, &str)> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let plain =
            !whole.is_empty() && !fraction.contains('.') && (number.contains('.') != fraction.is_empty());
        let short = whole.len() <= 20 && fraction.len() <= 15;
        let digits = (plain && short).then(|| format!("{whole}{fraction}").parse().ok())??;
        Some((Self { digits, decimals: fraction.len() as u32 }, rest))
    }

    /// The whole number of `1/unit`-ths that it is; `None` when it is not whole or too large.
    fn times(self, unit: u64) -> Option<u64> {
        let scaled = self.digits.checked_mul(u128::from(unit))?;
        let divisor = 10u128.pow(self.decimals);
        (scaled % divisor == 0).then(|| u64::try_from(scaled / divisor).ok())?
    }

    fn value(self) -> f64 {
        self.digits as f64 / 10f64.powi(self.decimals as i32)
    }
}

/// Reads a number of bytes: `4096`, `4KiB`, `64 KB`, `1.5GB`. A number without a unit is bytes.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let advice = "write a number with B, KB, MB, GB, TB (decimal) or KiB, MiB, GiB, TiB (binary), e.g. 64KiB";
    let Some((number, unit)) = Decimal::read(text.trim()) else {
        return error(format!("'{text}' is not a number of bytes"), advice);
    };
    let unit = unit.trim();
    if unit.ends_with('b') && unit.starts_with(|first: char| first.is_ascii_uppercase()) {
        let prefix = &unit[..unit.len() - 1];
        return error(
            format!("'{text}' is in {prefix}bits: a small b stands for bits"),
            format!("write {prefix}B if bytes are meant"),
        );
    }
    let unit = unit.to_lowercase();
    let bytes_in_unit = match unit.as_str() {
        "" => 1,
        "k" | "m" | "g" | "t" => {
            let letter = unit.to_uppercase();
            return error(
                format!("'{text}' may mean {letter}B (decimal) or {letter}iB (binary)"),
                format!("write {letter}B or {letter}iB"),
            );
        }
        named => match BYTE_UNITS.iter().find(|(name, _)| *name == named) {
            Some((_, bytes)) => *bytes,
            None => return error(format!("'{text}' has no known unit of bytes"), advice),
        },
    };
    match number.times(bytes_in_unit) {
        Some(bytes) => Ok(bytes),
        None => error(format!("'{text}' is not a whole number of bytes below 2^64"), advice),
    }
}

/// Reads a duration into nanoseconds: `60s`, `5m`, `1h30m`, `1.5s`, `200ms`, `500us`, `0`.
pub fn parse_duration_ns(text: &str) -> Result<u64, UnitError> {
    let advice = "write a number with ns, us, ms, s, m, h or d, largest first, e.g. 60s, 1h30m, 200ms";
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(0);
    }
    let (mut total, mut last_unit) = (0u64, u64::MAX);
    while !rest.is_empty() || last_unit == u64::MAX {
        let Some((number, after)) = Decimal::read(rest) else {
            return error(format!("'{text}' is not a duration"), advice);
        };
        let after = after.trim_start();
        let end = after.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(after.len());
        let name = &after[..end];
        if name.is_empty() {
            return error(format!("'{text}' has no unit of time"), advice);
        }
        let Some((_, unit)) = TIME_UNITS.iter().find(|(known, _)| *known == name) else {
            return error(format!("'{name}' in '{text}' is not a unit of time"), advice);
        };
        if *unit >= last_unit {
            return error(format!("the units of '{text}' are not in descending order"), advice);
        }
        let Some(sum) = number.times(*unit).and_then(|part| total.checked_add(part)) else {
            return error(format!("'{text}' is not a whole number of nanoseconds below 584 years"), advice);
        };
        (total, last_unit) = (sum, *unit);
        rest = after[end..].trim_start();
    }
    Ok(total)
}

/// Reads a rate in operations per second: `500/s`, `30k/s`, `1.5M/s`, `90/min`. Here k and M are thousands and
/// millions: operations have no binary units.
pub fn parse_rate(text: &str) -> Result<f64, UnitError> {
    let advice = "write operations per time, e.g. 500/s, 30k/s, 90/min";
    let Some((number, unit)) = Decimal::read(text.trim()) else {
        return error(format!("'{text}' is not a rate"), advice);
    };
    let Some((factor, per)) = unit.trim().split_once('/') else {
        return error(format!("'{text}' has no time unit, as in 500/s"), advice);
    };
    let factor = match factor.trim() {
        "" | "op" | "ops" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        bytes if BYTE_UNITS.iter().any(|(name, _)| *name == bytes.to_lowercase()) => {
            return error(
                format!("'{text}' is a rate of bytes"),
                "a rate counts operations: divide it by the size of one, e.g. 1600/s for 100MB/s of 64KB",
            );
        }
        other => return error(format!("'{other}' in '{text}' is not a factor"), advice),
    };
    let seconds = match per.trim() {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        other => return error(format!("'{other}' in '{text}' is not a unit of time"), advice),
    };
    Ok(number.value() * factor / seconds)
}

/// Reads a share of 1: `30%`, `99.9 %`, or the share itself, `0.3`. Never above 1.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let advice = "write a percentage from 0% to 100%, or a share from 0 to 1";
    let share = Decimal::read(text.trim()).and_then(|(number, rest)| match rest.trim() {
        "%" => Some(number.value() / 100.0),
        "" => Some(number.value()),
        _ => None,
    });
    match share {
        Some(share) if share <= 1.0 => Ok(share),
        Some(_) => error(format!("'{text}' is more than 100 %"), advice),
        None => error(format!("'{text}' is not a share"), advice),
    }
}

/// Bytes in decimal units with three significant digits: `4.10 kB`, `64.0 MB`; below 1000 exact: `999 B`.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes, 1000.0, ["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// Bytes in the largest binary unit that divides them, with `space` before it: `4 KiB`, `1536 B`.
pub fn exact_bytes(bytes: u64, space: &str) -> String {
    let units = [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{space}{name}", bytes / unit),
        None => format!("{bytes}{space}B"),
    }
}

/// Bytes in binary units with three significant digits (four from 1000 on): `4.00 KiB`, `64.0 MiB`.
pub fn binary_bytes(bytes: u64) -> String {
    scaled(bytes, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

fn scaled(bytes: u64, step: f64, units: [&str; 7]) -> String {
    let (mut value, mut unit) = (bytes as f64, 0);
    // 999.5 would be printed as 1000.
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{} {}", significant(value), units[unit]) }
}

/// A number of at least 1 with three significant digits; whole from 100 on.
fn significant(value: f64) -> String {
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.decimals$}")
}

/// A duration: `850 ns`, `12.3 µs`, `1.23 ms`, `45.0 s`, `2 m 05 s`, `1 h 02 m`, `3 d 04 h`.
pub fn duration_ns(ns: u64) -> String {
    let pair = |unit_ns: u64, in_larger: u64, larger: &str, smaller: &str| {
        let count = ns.saturating_add(unit_ns / 2) / unit_ns;
        format!("{} {larger} {:02} {smaller}", count / in_larger, count % in_larger)
    };
    // The bounds lie where rounding reaches the next unit.
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..999_500 => format!("{} µs", significant(ns as f64 / 1e3)),
        999_500..999_500_000 => format!("{} ms", significant(ns as f64 / 1e6)),
        999_500_000..59_950_000_000 => format!("{} s", significant(ns as f64 / 1e9)),
        59_950_000_000..3_599_500_000_000 => pair(1_000_000_000, 60, "m", "s"),
        3_599_500_000_000..86_370_000_000_000 => pair(60_000_000_000, 60, "h", "m"),
        _ => pair(3_600_000_000_000, 24, "d", "h"),
    }
}

/// A moment since a start, exact enough to tell moments of the same second apart: `9.871 s`; from ten minutes on as a
/// duration.
pub fn moment_ns(ns: u64) -> String {
    if ns < 600_000_000_000 { format!("{:.3} s", ns as f64 / 1e9) } else { duration_ns(ns) }
}

/// A count with a narrow no-break space (U+202F) between thousands: `1 234 567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Operations per second: three significant digits below 1000, whole from there on: `0.50 op/s`, `12.3 op/s`,
/// `12 345 op/s`. A rate above nothing is never printed as 0.
pub fn rate(per_second: f64) -> String {
    rate_in(per_second, "op/s")
}

/// The same of something else than operations, in this unit: `12.3 req/s`.
pub fn rate_in(per_second: f64, unit: &str) -> String {
    match per_second {
        none if none.is_nan() || none <= 0.0 => format!("0 {unit}"),
        tiny if tiny < 0.01 => format!("< 0.01 {unit}"),
        small if small < 999.5 => format!("{} {unit}", significant(small)),
        large => format!("{} {unit}", self::count(large.round() as u64)),
    }
}

/// A share of 1 in percent with two decimals, or as many as it takes not to call nearly all all, or something
/// nothing: `70.00 %`, `100 %` and `0 %` when exact, `99.996 %`, `0.001 %`.
pub fn percent(share: f64) -> String {
    if share.is_nan() || share <= 0.0 {
        return "0 %".into();
    }
    if share >= 1.0 {
        return format!("{} %", (share * 10_000.0).round() / 100.0);
    }
    let honest = |text: &String| text.parse().is_ok_and(|shown: f64| shown > 0.0 && shown < 100.0);
    let texts = (2usize..=6).map(|decimals| format!("{:.decimals$}", share * 100.0));
    match texts.into_iter().find(honest) {
        Some(text) => format!("{text} %"),
        None if share < 0.5 => "< 0.000001 %".into(),
        None => "> 99.999999 %".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimal_and_binary_are_different_things() {
        let read = |text| parse_bytes(text).unwrap();
        assert_eq!(
            [read("4KiB"), read("64KB"), read("64 kB"), read("1.5GB")],
            [4096, 64_000, 64_000, 1_500_000_000]
        );
        assert_eq!([read("4096"), read("0"), read("7 B"), read("1.5KiB")], [4096, 0, 7, 1536]);
        assert_eq!([read("2TiB"), read("2TB")], [2 << 40, 2_000_000_000_000]);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_advice() {
        assert_eq!(parse_bytes("4k").unwrap_err().advice, "write KB or KiB");
        assert_eq!(parse_bytes("1.5M").unwrap_err().advice, "write MB or MiB");
        assert_eq!(parse_bytes("4096Kb").unwrap_err().advice, "write KB if bytes are meant");
        assert!(parse_bytes("4Mib").is_err());
        for wrong in ["", "KB", "-1", "1.", ".5KB", "1.2.3KB", "1.0005KB", "20000000TB", "4KQ", "1e3", "∞"]
        {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "60", "s", "5m5m", "30m1h", "1.5", "0.1ns", "9999999h", "1h-5m", "5 fortnights"] {
            assert!(parse_duration_ns(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "500", "/s", "5/fortnight", "5G/s"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
        assert!(parse_rate("100MB/s").unwrap_err().message.contains("bytes"));
        for wrong in ["", "101%", "1.5", "-3%", "3 percent"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_rates_and_shares() {
        let read = |text| parse_duration_ns(text).unwrap();
        assert_eq!(
            [read("60s"), read("5m"), read("1h30m")],
            [60_000_000_000, 300_000_000_000, 5_400_000_000_000]
        );
        assert_eq!(
            [read("200ms"), read("500us"), read("500µs"), read("7ns")],
            [200_000_000, 500_000, 500_000, 7]
        );
        assert_eq!([read("1.5s"), read("0"), read("1 h 30 m 5 s")], [1_500_000_000, 0, 5_405_000_000_000]);
        let rates = ["500/s", "30k/s", "1.5M/s", "90/min", "20 ops/s"].map(|text| parse_rate(text).unwrap());
        assert_eq!(rates, [500.0, 30_000.0, 1_500_000.0, 1.5, 20.0]);
        assert_eq!(["30%", "0.3", "100 %", "0"].map(|text| parse_share(text).unwrap()), [0.3, 0.3, 1.0, 0.0]);
    }

    #[test]
    fn printed_for_people() {
        assert_eq!([bytes(999), bytes(4096), bytes(64_000_000)], ["999 B", "4.10 kB", "64.0 MB"]);
        assert_eq!([bytes(999_499), bytes(999_500), bytes(u64::MAX)], ["999 kB", "1.00 MB", "18.4 EB"]);
        assert_eq!([binary_bytes(4096), binary_bytes(1 << 30)], ["4.00 KiB", "1.00 GiB"]);
        assert_eq!([binary_bytes(1000 << 10), binary_bytes((1 << 20) - 1)], ["1000 KiB", "1.00 MiB"]);
        let times = [850, 12_345, 1_234_000, 45_000_000_000, 125_000_000_000, 3_720_000_000_000];
        assert_eq!(
            times.map(duration_ns),
            ["850 ns", "12.3 µs", "1.23 ms", "45.0 s", "2 m 05 s", "1 h 02 m"]
        );
        let edges = [999_499, 999_500, 59_949_999_999, 59_950_000_000, 119_600_000_000, 3_599_500_000_000];
        assert_eq!(
            edges.map(duration_ns),
            ["999 µs", "1.00 ms", "59.9 s", "1 m 00 s", "2 m 00 s", "1 h 00 m"]
        );
        assert_eq!(duration_ns(100 * 3_600_000_000_000), "4 d 04 h");
        assert_eq!([count(0), count(999), count(1_234_567)], ["0", "999", "1\u{202f}234\u{202f}567"]);
        assert_eq!(
            [rate(0.0), rate(0.001), rate(12.34), rate(999.4)],
            ["0 op/s", "< 0.01 op/s", "12.3 op/s", "999 op/s"]
        );
        assert_eq!([rate(999.6), rate(12_345.4)], ["1\u{202f}000 op/s", "12\u{202f}345 op/s"]);
    }

    #[test]
    fn percentages_are_honest_at_both_ends() {
        assert_eq!([percent(0.0), percent(1.0), percent(0.7)], ["0 %", "100 %", "70.00 %"]);
        assert_eq!([percent(0.999_96), percent(0.000_01)], ["99.996 %", "0.001 %"]);
        assert_eq!([percent(1.0 - 1e-12), percent(1e-12)], ["> 99.999999 %", "< 0.000001 %"]);
        assert_eq!(percent(1.25), "125 %");
    }

    proptest! {
        #[test]
        fn whole_numbers_of_units_are_exact(number in 0u64..1_000_000) {
            for (unit, size) in BYTE_UNITS {
                prop_assert_eq!(parse_bytes(&format!("{number}{unit}")).unwrap(), number * size);
            }
            for (unit, size) in TIME_UNITS.iter().filter(|(_, size)| size.checked_mul(number).is_some()) {
                prop_assert_eq!(parse_duration_ns(&format!("{number}{unit}")).unwrap(), number * size);
            }
        }

        #[test]
        fn thousandths_are_exact(number in 0u64..10_000_000) {
            let text = format!("{}.{:03}", number / 1000, number % 1000);
            prop_assert_eq!(parse_bytes(&format!("{text}MB")).unwrap(), number * 1000);
            prop_assert_eq!(parse_duration_ns(&format!("{text}s")).unwrap(), number * 1_000_000);
        }

        #[test]
        fn what_is_printed_reads_back_to_three_digits(value in 1u64..u64::MAX / 1001 * 1000) {
            for read in [parse_bytes(&bytes(value)), parse_bytes(&binary_bytes(value))] {
                // Peta and exa are printed and not read: no object has that size.
                if value < 999_000_000_000_000 {
                    let error = read.unwrap().abs_diff(value) as f64 / value as f64;
                    prop_assert!(error <= 0.005, "{} {}", value, error);
                }
            }
            let error = parse_duration_ns(&duration_ns(value)).unwrap().abs_diff(value) as f64 / value as f64;
            prop_assert!(error <= 0.021, "{} {}", value, error);
        }

        #[test]
        fn nothing_is_read_with_a_panic(text in "\\PC{0,20}|[0-9.]{0,25} ?[kKMGTiBnuµmshd/%]{0,4}") {
            let _ = (parse_bytes(&text), parse_duration_ns(&text), parse_rate(&text), parse_share(&text));
        }
    }
}
