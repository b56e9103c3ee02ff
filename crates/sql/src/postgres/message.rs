//! Messages of the server, read where they lie.

use crate::failure::Failure;
use std::borrow::Cow;

/// The longest message that is believed: PostgreSQL's own limit of a value is 1 GiB.
const LONGEST: usize = 1 << 30;

/// Where a message lies in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: u8,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Message {
    /// The message at a place; `None` if it has not come whole.
    ///
    /// # Errors
    /// When its length makes no sense.
    #[inline]
    pub(super) fn at(buffer: &[u8], start: usize) -> Result<Option<Self>, Failure> {
        let Some([kind, a, b, c, d]) = buffer.get(start..start + 5).and_then(|head| head.first_chunk())
        else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        if !(4..=LONGEST).contains(&length) {
            return Err(Failure::malformed(
                "the server sent a message of an impossible length: is it PostgreSQL?",
            ));
        }
        let end = start + 1 + length;
        Ok((end <= buffer.len()).then_some(Self { kind: *kind, start, end }))
    }

    /// What it says.
    #[inline]
    pub(super) fn body(self, buffer: &[u8]) -> &[u8] {
        &buffer[self.start + 5..self.end]
    }
}

/// What a statement's completion says it did, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Commit,
    Other,
}

impl Tag {
    /// Reads a tag such as `INSERT 0 1`, and the number of rows at its end.
    #[inline]
    pub(super) fn read(body: &[u8]) -> (Self, u64) {
        let text = body.strip_suffix(b"\0").unwrap_or(body);
        if text == b"COMMIT" {
            return (Tag::Commit, 0);
        }
        let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let number = text[text.len() - digits..]
            .iter()
            .fold(0u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
        (Tag::Other, number)
    }
}

/// The words of an `ErrorResponse`. Its detail is left out: it quotes the values of rows.
#[cold]
pub(super) fn failure(body: &[u8]) -> Failure {
    let (mut code, mut severity, mut text) = (*b"XX000", "", Cow::Borrowed("the server gave no reason"));
    for field in body.split(|byte| *byte == 0) {
        match field {
            [b'C', value @ ..] => code = value.try_into().unwrap_or(code),
            [b'V', value @ ..] => severity = std::str::from_utf8(value).unwrap_or(""),
            [b'M', value @ ..] => text = String::from_utf8_lossy(value),
            _ => {}
        }
    }
    let failure = Failure::refused(code, &text);
    Failure { lost: matches!(severity, "FATAL" | "PANIC"), ..failure }
}

/// A text that ends with a zero byte, and what is behind it.
pub(super) fn text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}
