//! Values that go to a database: parameters of statements, and columns of rows that are loaded.

use bytes::BufMut;
use std::io::Write as _;

/// A value. It borrows, so that a statement costs no allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// None.
    Null,
    /// A whole number, for columns of any whole type.
    Int(i64),
    /// A decimal number: so many units of 10^-scale.
    Decimal(i64, u8),
    /// A binary floating-point number.
    Float(f64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A day, by its number since 1970.
    Date(i32),
    /// A time, microseconds since 1970 (UTC).
    Time(i64),
}

impl Value<'_> {
    /// Appends the value as SQL's text form of it, without quotes; nothing for [`Value::Null`] and bytes as they are.
    pub fn push_text(&self, out: &mut impl BufMut) {
        match *self {
            Value::Null => {}
            Value::Int(number) => out.put_slice(itoa::Buffer::new().format(number).as_bytes()),
            Value::Decimal(units, scale) => push_decimal(units, scale, out),
            // Writing to memory does not fail.
            Value::Float(number) => _ = write!(out.writer(), "{number}"),
            Value::Text(text) => out.put_slice(text.as_bytes()),
            Value::Bytes(bytes) => out.put_slice(bytes),
            Value::Date(day) => push_date(day.into(), out),
            Value::Time(micros) => push_time(micros, out),
        }
    }
}

fn push_decimal(units: i64, scale: u8, out: &mut impl BufMut) {
    if units < 0 {
        out.put_u8(b'-');
    }
    let (units, one) = (units.unsigned_abs(), 10u64.saturating_pow(scale.into()));
    out.put_slice(itoa::Buffer::new().format(units / one).as_bytes());
    if scale > 0 {
        let _ = write!(out.writer(), ".{:0width$}", units % one, width = usize::from(scale));
    }
}

/// `2026-11-22`: days to a date of the Gregorian calendar after Howard Hinnant's `civil_from_days`.
fn push_date(days: i64, out: &mut impl BufMut) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let _ = write!(out.writer(), "{year:04}-{month:02}-{day:02}");
}

/// `2026-11-22 19:45:05.000000`.
fn push_time(micros: i64, out: &mut impl BufMut) {
    let (days, within) = (micros.div_euclid(86_400_000_000), micros.rem_euclid(86_400_000_000));
    push_date(days, out);
    let (seconds, micros) = (within / 1_000_000, within % 1_000_000);
    let _ = write!(
        out.writer(),
        " {:02}:{:02}:{:02}.{micros:06}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: Value<'_>) -> String {
        let mut out = Vec::new();
        value.push_text(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_as_text() {
        assert_eq!(text(Value::Int(-42)), "-42");
        assert_eq!(text(Value::Decimal(-1005, 2)), "-10.05");
        assert_eq!(text(Value::Decimal(5, 4)), "0.0005");
        assert_eq!(text(Value::Decimal(7, 0)), "7");
        assert_eq!(text(Value::Date(10_957)), "2000-01-01");
        assert_eq!(text(Value::Time(0)), "1970-01-01 00:00:00.000000");
        assert_eq!(text(Value::Time(951_782_400_000_000 + 1)), "2000-02-29 00:00:00.000001");
        assert_eq!(text(Value::Time(-1)), "1969-12-31 23:59:59.999999");
    }
}
