//! PostgreSQL's binary `COPY` format (documentation of `COPY`, *Binary Format*).

use crate::schema::{Column, Kind};
use crate::value::Value;
use bytes::BufMut as _;

/// Microseconds from 1970 to 2000, where PostgreSQL's times begin.
const EPOCH_2000: i64 = 946_684_800_000_000;

/// The number of the day on which they begin.
const DAY_2000: i32 = 10_957;

/// Its head: signature, flags, no extension.
pub(super) const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Appends a row.
pub(super) fn row(out: &mut Vec<u8>, values: &[Value<'_>], columns: &[Column]) {
    out.put_i16(values.len() as i16);
    for (value, column) in values.iter().zip(columns) {
        if *value == Value::Null {
            out.put_i32(-1);
            continue;
        }
        let at = out.len();
        out.put_i32(0);
        push(out, *value, column.kind);
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

fn push(out: &mut Vec<u8>, value: Value<'_>, kind: Kind) {
    match (value, kind) {
        (Value::Int(number), Kind::Int) => out.put_i32(number as i32),
        (Value::Int(number), Kind::BigInt) => out.put_i64(number),
        (Value::Int(number), Kind::Decimal(..)) => numeric(out, number, 0),
        (Value::Decimal(units, scale), Kind::Decimal(..)) => numeric(out, units, scale),
        (Value::Float(number), Kind::Float) => out.put_f64(number),
        (Value::Date(day), Kind::Date) => out.put_i32(day - DAY_2000),
        (Value::Time(micros), Kind::Time) => out.put_i64(micros - EPOCH_2000),
        // Text, and bytes, are the same in both formats.
        (value, _) => value.push_text(out),
    }
}

/// PostgreSQL's `numeric`: digits to the base 10000, the weight of the first, sign, digits behind the point.
fn numeric(out: &mut Vec<u8>, units: i64, scale: u8) {
    let (mut left, mut digits) = (u128::from(units.unsigned_abs()), [0u16; 12]);
    // The point lies between groups of four digits.
    let padding = (4 - scale % 4) % 4;
    left *= 10u128.pow(padding.into());
    let behind = usize::from(scale.div_ceil(4));
    let mut count = 0;
    while left > 0 {
        digits[count] = (left % 10_000) as u16;
        left /= 10_000;
        count += 1;
    }
    let weight = count as i16 - behind as i16 - 1;
    let sent = digits[..count].iter().skip_while(|digit| **digit == 0).count();
    out.put_i16(sent as i16);
    out.put_i16(if count == 0 { 0 } else { weight });
    out.put_u16(if units < 0 { 0x4000 } else { 0 });
    out.put_i16(scale.into());
    for digit in digits[..count].iter().rev().take(sent) {
        out.put_u16(*digit);
    }
}
