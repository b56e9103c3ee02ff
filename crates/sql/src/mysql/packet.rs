//! Packets of MySQL's protocol, read where they lie (MySQL Source Code Documentation, *Client/Server Protocol*).

use crate::failure::Failure;
use bytes::{BufMut as _, BytesMut};
use std::borrow::Cow;
use std::ops::Range;
use tidemark_measure::fault::Fault;

/// A packet of so many bytes goes on in the next one.
pub(super) const FULL: usize = (1 << 24) - 1;

/// A packet's header: the length of what it says in three bytes, and its number.
pub(super) const HEADER: usize = 4;

/// The packet that `bytes` begin with: where its payload lies and its number; `None` if it has not come whole.
///
/// # Errors
/// When it is the first of several, which nothing that Tidemark asks for needs.
#[inline]
pub(super) fn packet(bytes: &[u8]) -> Result<Option<(Range<usize>, u8)>, Failure> {
    let Some([a, b, c, number]) = bytes.first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
    if length >= FULL {
        return Err(Failure::lost(
            Fault::Sql,
            "the server sent a row of 16 MiB or more, which is not supported",
        ));
    }
    Ok((bytes.len() >= HEADER + length).then_some((HEADER..HEADER + length, *number)))
}

/// Appends room for a packet's header; gives where it is.
#[inline]
pub(super) fn begin(out: &mut BytesMut) -> usize {
    let start = out.len();
    out.put_u32(0);
    start
}

/// Writes the header of the packet that began at `start` and ends here.
///
/// # Errors
/// When it is too long; it is taken back then.
#[inline]
pub(super) fn end(out: &mut BytesMut, start: usize, number: u8) -> Result<(), Failure> {
    let length = out.len() - start - HEADER;
    if length >= FULL {
        out.truncate(start);
        return Err(Failure::new(Fault::Sql, "a statement and its parameters have 16 MiB or more"));
    }
    let [a, b, c, _] = (length as u32).to_le_bytes();
    out[start..start + HEADER].copy_from_slice(&[a, b, c, number]);
    Ok(())
}

/// A number in as many bytes as it needs, and what is behind it; `None` too for a null.
#[inline]
pub(super) fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let width = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
        small => return Some((u64::from(*small), rest)),
    };
    let (digits, rest) = rest.split_at_checked(width)?;
    Some((little(digits), rest))
}

/// A number of up to eight bytes, the lowest first.
#[inline]
pub(super) fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Bytes behind their length, and what is behind them.
#[inline]
pub(super) fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// Appends a number in as many bytes as it needs.
#[inline]
pub(super) fn put_number(out: &mut BytesMut, number: u64) {
    match number {
        0..=0xfa => out.put_u8(number as u8),
        0xfb..=0xffff => {
            out.put_u8(0xfc);
            out.put_u16_le(number as u16);
        }
        0x1_0000..=0xff_ffff => {
            out.put_u8(0xfd);
            out.put_uint_le(number, 3);
        }
        _ => {
            out.put_u8(0xfe);
            out.put_u64_le(number);
        }
    }
}

/// Appends bytes behind their length.
#[inline]
pub(super) fn put_counted(out: &mut BytesMut, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.put_slice(bytes);
}

/// Bytes up to a zero, and what is behind it.
pub(super) fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// What an OK packet says, or the packet at the end of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// How many rows were changed.
    pub(super) affected: u64,
    status: u16,
}

impl Done {
    /// Reads an OK packet.
    #[inline]
    pub(super) fn ok(payload: &[u8]) -> Option<Self> {
        let (affected, rest) = number(payload.get(1..)?)?;
        let (_, rest) = number(rest)?;
        Some(Self { affected, status: little(rest.get(..2)?) as u16 })
    }

    /// Reads an EOF packet, which older servers and proxies send.
    #[inline]
    pub(super) fn eof(payload: &[u8]) -> Option<Self> {
        Some(Self { affected: 0, status: little(payload.get(3..5)?) as u16 })
    }

    /// Whether a transaction is open.
    #[inline]
    pub(super) fn is_in_transaction(self) -> bool {
        self.status & 0x0001 != 0
    }

    /// Whether the result of another statement follows.
    #[inline]
    pub(super) fn has_more(self) -> bool {
        self.status & 0x0008 != 0
    }
}

/// What an ERR packet says: the server's own number stands before its words.
#[cold]
pub(super) fn failure(payload: &[u8]) -> Failure {
    let Some((code, rest)) = payload.get(1..).and_then(|rest| rest.split_at_checked(2)) else {
        return malformed();
    };
    let code = little(code) as u16;
    let (state, words) = match rest.split_at_checked(6) {
        Some((state, words)) if state[0] == b'#' => (state[1..].try_into().unwrap_or(*b"HY000"), words),
        // Before the session has begun there is no state.
        _ => (*b"HY000", rest),
    };
    let failure = Failure::refused(state, &format!("{code} {}", without_values(code, state, words)));
    Failure { fault: fault(code).unwrap_or(failure.fault), lost: ends_connection(code), ..failure }
}

/// Whether an ERR packet is of a prepared statement that is not there any more, or no longer fits its tables
/// (`ER_UNKNOWN_STMT_HANDLER`, `ER_NEED_REPREPARE`): a proxy changed the server, or a table was altered.
#[cold]
pub(super) fn is_of_a_forgotten_statement(payload: &[u8]) -> bool {
    matches!(payload.get(1..3).map(little), Some(1243 | 1615))
}

/// The server's words, without the value that they quote where a value is what is wrong.
fn without_values(code: u16, state: [u8; 5], words: &[u8]) -> Cow<'_, str> {
    let words = String::from_utf8_lossy(words);
    // An expression that is out of range is quoted whole.
    if code == 1690 {
        return words.split_once(" in '").map_or(words.as_ref(), |(before, _)| before).to_owned().into();
    }
    // Of a statement that cannot be read, the rest is quoted, with the values in it.
    if code == 1064 {
        let (before, rest) = words.split_once(" near '").unwrap_or((&words, ""));
        let behind = rest.rsplit_once("' ").map_or("", |(_, behind)| behind);
        return format!("{before}{}{behind}", if behind.is_empty() { "" } else { " " }).into();
    }
    // Wrong values of columns and functions have no class of their own.
    if !matches!(&state[..2], b"22" | b"23") && !matches!(code, 1300 | 1366 | 1411 | 1525) {
        return words;
    }
    let Some((before, rest)) = words.split_once('\'') else { return words };
    match rest.rsplit_once("' for ") {
        Some((_, behind)) => format!("{before}'...' for {behind}").into(),
        None if before.ends_with(": ") => format!("{before}'...'").into(),
        // It quotes the name of a column.
        None => words,
    }
}

/// The class of a server's error where its SQLSTATE does not say it (MySQL *Server Error Message Reference*; MariaDB *Error Codes*).
fn fault(code: u16) -> Option<Fault> {
    Some(match code {
        1213 => Fault::Deadlock,
        // Locks that cannot be had at once are told with the same number, or with 3572.
        1205 | 3572 => Fault::LockTimeout,
        // MariaDB's `innodb_snapshot_isolation`: the row was changed since this transaction read it.
        1020 => Fault::Serialization,
        // The statement, which did nothing, conflicts with a change of its tables: the next attempt prepares it again.
        1243 | 1615 => Fault::Serialization,
        1317 | 1969 | 3024 | 4031 => Fault::Timeout,
        1040 | 1203 | 1226 | 1461 | 1129 => Fault::Overloaded,
        1044 | 1045 | 1142 | 1143 | 1227 | 1290 | 1370 | 1698 | 1792 | 1836 | 4166 => Fault::Denied,
        1021 | 1114 => Fault::NoSpace,
        1022 | 1048 | 1062 | 1169 | 1216 | 1217 | 1451 | 1452 | 1557 | 1586 | 3819 | 4025 => {
            Fault::Constraint
        }
        1053 | 1077 | 1927 | 1079 => Fault::Unavailable,
        1026 | 1030 | 3 | 5 => Fault::Io,
        1037 | 1038 | 1041 | 1105 | 1815 => Fault::ServerError,
        _ => return None,
    })
}

/// Whether the server closes the connection after this error.
fn ends_connection(code: u16) -> bool {
    matches!(code, 1053 | 1077 | 1079 | 1129 | 1152..=1161 | 1927 | 4031)
}

/// What came is no reply.
#[cold]
pub(super) fn malformed() -> Failure {
    Failure::malformed("what the server sent makes no sense: is it MySQL or MariaDB?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(code: u16, state: &str) -> Failure {
        let mut payload = vec![0xff];
        payload.extend(code.to_le_bytes());
        payload.extend(format!("#{state}words").bytes());
        failure(&payload)
    }

    #[test]
    fn errors_have_classes_and_only_conflicts_are_tried_again() {
        for (code, state, fault, again, lost) in [
            (1213, "40001", Fault::Deadlock, true, false),
            (1205, "HY000", Fault::LockTimeout, true, false),
            (1020, "HY000", Fault::Serialization, true, false),
            (1615, "HY000", Fault::Serialization, true, false),
            (1243, "HY000", Fault::Serialization, true, false),
            (1062, "23000", Fault::Constraint, false, false),
            (1040, "08004", Fault::Overloaded, false, false),
            (1045, "28000", Fault::Denied, false, false),
            (1927, "70100", Fault::Unavailable, false, true),
            (1146, "42S02", Fault::Sql, false, false),
        ] {
            let failure = refusal(code, state);
            assert_eq!(
                (failure.fault, failure.is_retryable(), failure.lost),
                (fault, again, lost),
                "{failure}"
            );
        }
        assert_eq!(refusal(1213, "40001").to_string(), "40001 1213 words");
        for (state, said, expected) in [
            ("23000", "Duplicate entry 'it' is mine' for key 'a'", "Duplicate entry '...' for key 'a'"),
            ("22007", "Truncated incorrect DOUBLE value: 'mine'", "Truncated incorrect DOUBLE value: '...'"),
            ("23000", "Column 'c' cannot be null", "Column 'c' cannot be null"),
            ("42S02", "Table 'a' for b", "Table 'a' for b"),
        ] {
            let payload = [b"\xff\x26\x04#", state.as_bytes(), said.as_bytes()].concat();
            assert_eq!(failure(&payload).to_string(), format!("{state} 1062 {expected}"));
        }
        let date = failure(b"\xff\xf5\x05#HY000Incorrect DATE value: 'mine'");
        assert_eq!(date.to_string(), "HY000 1525 Incorrect DATE value: '...'");
        let syntax = [
            &b"\xff\x28\x04#42000"[..],
            b"You have an error in your SQL syntax; check it near 'FORM t WHERE a = 'mine'' at line 1",
        ]
        .concat();
        let said = failure(&syntax).to_string();
        assert_eq!(said, "42000 1064 You have an error in your SQL syntax; check it at line 1");
        let early = failure(&[0xff, 0x10, 0x04, b'n', b'o']);
        assert_eq!((early.fault, early.to_string()), (Fault::Overloaded, "HY000 1040 no".into()));
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_are_written(value: u64, shift in 0u32..64) {
            let mut out = BytesMut::new();
            put_number(&mut out, value >> shift);
            prop_assert_eq!(number(&out), Some((value >> shift, &[][..])));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = (packet(&bytes), number(&bytes), counted(&bytes), Done::ok(&bytes), Done::eof(&bytes), failure(&bytes));
        }
    }
}
