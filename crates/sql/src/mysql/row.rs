//! Rows of results, written as [`Rows`](crate::rows::Rows) reads them.

use super::packet::{counted, little, number};
use bytes::BufMut as _;
use std::io::Write as _;

/// The most columns of a table or a result in MySQL; MariaDB allows fewer.
pub(super) const COLUMNS_MOST: u64 = 4096;

/// A column of a result, as far as its values need it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    kind: u8,
    unsigned: bool,
}

impl Column {
    /// Reads a column's definition, whose last 13 bytes are of fixed width: their own length, character set, length of values,
    /// type, flags, decimals, and two of nothing.
    #[inline]
    pub(super) fn read(payload: &[u8]) -> Option<Self> {
        let fixed = payload.last_chunk::<13>()?;
        Some(Self { kind: fixed[7], unsigned: fixed[8] & 0x20 != 0 })
    }
}

/// Appends a row of texts.
#[inline]
pub(super) fn push_texts(payload: &[u8], columns: &[Column], out: &mut Vec<u8>) -> Option<()> {
    let start = begin(columns, out);
    let mut rest = payload;
    for _ in columns {
        if let Some((0xfb, behind)) = rest.split_first() {
            out.put_i32(-1);
            rest = behind;
            continue;
        }
        let (text, behind) = counted(rest)?;
        put(out, text);
        rest = behind;
    }
    end(start, out);
    Some(())
}

/// Appends a row in the binary form that prepared statements give.
#[inline]
pub(super) fn push_binary(payload: &[u8], columns: &[Column], out: &mut Vec<u8>) -> Option<()> {
    let start = begin(columns, out);
    // A zero, and a bit for each column that says whether it is null, from the third on.
    let (nulls, mut rest) = payload.get(1..)?.split_at_checked((columns.len() + 9) / 8)?;
    for (number, column) in columns.iter().enumerate() {
        if nulls[(number + 2) / 8] & 1 << ((number + 2) % 8) != 0 {
            out.put_i32(-1);
            continue;
        }
        rest = push_value(rest, *column, out)?;
    }
    end(start, out);
    Some(())
}

/// Appends a value, behind the length of its text; gives what is behind it.
#[inline]
fn push_value<'a>(bytes: &'a [u8], column: Column, out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let width = match column.kind {
        0x01 => 1,
        0x02 | 0x0d => 2,
        0x03 | 0x09 | 0x04 => 4,
        0x08 | 0x05 => 8,
        0x06 => {
            out.put_i32(-1);
            return Some(bytes);
        }
        0x07 | 0x0a | 0x0c | 0x0b => {
            let (length, rest) = bytes.split_first()?;
            let (value, rest) = rest.split_at_checked(usize::from(*length))?;
            let at = out.len();
            out.put_i32(0);
            match column.kind {
                0x0b => push_duration(value, out)?,
                kind => push_time(value, kind != 0x0a, out)?,
            }
            let length = (out.len() - at - 4) as u32;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            return Some(rest);
        }
        // Everything else comes as text, or as bytes.
        _ => {
            let (text, rest) = counted(bytes)?;
            put(out, text);
            return Some(rest);
        }
    };
    let (value, rest) = bytes.split_at_checked(width)?;
    let bits = little(value);
    let mut digits = itoa::Buffer::new();
    match column.kind {
        0x04 => put_float(f32::from_bits(bits as u32), out),
        0x05 => put_float(f64::from_bits(bits), out),
        _ if column.unsigned || column.kind == 0x0d => put(out, digits.format(bits).as_bytes()),
        _ => {
            let unused = 64 - 8 * width as u32;
            put(out, digits.format((bits << unused) as i64 >> unused).as_bytes());
        }
    }
    Some(rest)
}

/// Appends a floating-point number; writing to memory does not fail.
fn put_float(number: impl std::fmt::Display, out: &mut Vec<u8>) {
    let at = out.len();
    out.put_i32(0);
    let _ = write!(out, "{number}");
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// `2026-11-22 19:45:05.000123`; zeros at the end are left out, both as the server does.
fn push_time(value: &[u8], has_time: bool, out: &mut Vec<u8>) -> Option<()> {
    if !matches!(value.len(), 0 | 4 | 7 | 11) {
        return None;
    }
    let mut all = [0; 11];
    all[..value.len()].copy_from_slice(value);
    let _ = write!(out, "{:04}-{:02}-{:02}", little(&all[..2]), all[2], all[3]);
    if has_time {
        let _ = write!(out, " {:02}:{:02}:{:02}", all[4], all[5], all[6]);
        push_micros(little(&all[7..]), out);
    }
    Some(())
}

/// `-102:59:59.5`.
fn push_duration(value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if !matches!(value.len(), 0 | 8 | 12) {
        return None;
    }
    let mut all = [0; 12];
    all[..value.len()].copy_from_slice(value);
    let sign = if all[0] == 1 { "-" } else { "" };
    let hours = little(&all[1..5]) * 24 + u64::from(all[5]);
    let _ = write!(out, "{sign}{hours:02}:{:02}:{:02}", all[6], all[7]);
    push_micros(little(&all[8..]), out);
    Some(())
}

fn push_micros(micros: u64, out: &mut Vec<u8>) {
    if micros > 0 {
        let _ = write!(out, ".{micros:06}");
    }
}

/// Begins a row: its tag, room for its length, the number of its columns.
#[inline]
fn begin(columns: &[Column], out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.put_u8(b'D');
    out.put_u32(0);
    out.put_u16(columns.len() as u16);
    start
}

#[inline]
fn end(start: usize, out: &mut [u8]) {
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

#[inline]
fn put(out: &mut Vec<u8>, text: &[u8]) {
    out.put_u32(text.len() as u32);
    out.put_slice(text);
}

/// How many columns a result has that begins with this packet.
#[inline]
pub(super) fn columns(payload: &[u8]) -> Option<u64> {
    number(payload).map(|(columns, _)| columns).filter(|columns| (1..=COLUMNS_MOST).contains(columns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Extent, Rows};
    use proptest::prelude::*;

    fn read(out: &[u8]) -> Vec<Option<String>> {
        let rows = Rows::new(out, Extent { start: 0, end: out.len(), rows: 1, affected: 1 });
        let row = rows.first().unwrap();
        (0..row.columns()).map(|column| row.get(column).unwrap().map(str::to_owned)).collect()
    }

    fn of(kind: u8) -> Column {
        Column { kind, unsigned: false }
    }

    #[test]
    fn values_of_all_types_become_text() {
        let unsigned = Column { kind: 0x08, unsigned: true };
        let columns =
            [of(0x01), of(0x03), unsigned, of(0x05), of(0xfd), of(0x0c), of(0x03), of(0x0b), of(0xf6)];
        // The seventh is null: bit 2 + 6.
        let mut row = vec![0, 0, 1];
        row.push(0xff);
        row.extend((-7i32).to_le_bytes());
        row.extend(u64::MAX.to_le_bytes());
        row.extend(0.5f64.to_le_bytes());
        row.extend(b"\x03a'b");
        row.extend([11, 0xea, 7, 11, 22, 19, 45, 5, 123, 0, 0, 0]);
        row.extend([8, 1, 4, 0, 0, 0, 6, 59, 58]);
        row.extend(b"\x0512.50");
        let mut out = Vec::new();
        push_binary(&row, &columns, &mut out).unwrap();
        let some = |text: &str| Some(text.to_owned());
        let expected = [
            some("-1"),
            some("-7"),
            some("18446744073709551615"),
            some("0.5"),
            some("a'b"),
            some("2026-11-22 19:45:05.000123"),
            None,
            some("-102:59:58"),
            some("12.50"),
        ];
        assert_eq!(read(&out), expected);
        let mut out = Vec::new();
        push_texts(b"\x017\xfb\x00", &[of(3), of(3), of(0xfd)], &mut out).unwrap();
        assert_eq!(read(&out), [some("7"), None, some("")]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, kinds: Vec<u8>) {
            let columns: Vec<Column> = kinds.into_iter().map(of).collect();
            let mut out = Vec::new();
            let _ = (push_texts(&bytes, &columns, &mut out), push_binary(&bytes, &columns, &mut out));
            let _ = (Column::read(&bytes), super::columns(&bytes));
        }
    }
}
