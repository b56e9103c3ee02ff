//! The chunked transfer coding (RFC 9112, section 7.1), one byte at a time where it has to be.

use super::{HEAD_MOST, Malformed, Sink};

/// How far a chunked body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunked {
    at: At,
    /// Bytes of the chunk still to come; while its size is read, the size so far.
    left: u64,
    /// Bytes of extensions and trailers so far: they are skipped, but not for ever.
    skipped: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before the first digit of a size.
    Start,
    /// After a digit.
    Size,
    /// In an extension, after the size.
    Extension,
    /// After the CR that ends the size.
    SizeEnd,
    Data,
    /// After a chunk's data.
    DataEnd,
    /// After the CR there.
    DataEndCr,
    /// At the beginning of a trailer line, or of the empty line that ends all.
    Trailer,
    /// In a trailer line.
    TrailerLine,
    /// After the CR of a trailer line.
    TrailerLineEnd,
    /// After the CR of the empty line.
    LastEnd,
    Whole,
}

impl Default for Chunked {
    fn default() -> Self {
        Self { at: At::Start, left: 0, skipped: 0 }
    }
}

impl Chunked {
    pub(super) fn is_whole(&self) -> bool {
        self.at == At::Whole
    }

    /// Takes bytes; gives how many it used.
    pub(super) fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Malformed> {
        let mut used = 0;
        while used < bytes.len() && self.at != At::Whole {
            if self.at == At::Data {
                let rest = &bytes[used..];
                let length = rest.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                sink.body(&rest[..length]);
                self.left -= length as u64;
                used += length;
                if self.left == 0 {
                    self.at = At::DataEnd;
                }
            } else {
                self.at = self.step(bytes[used])?;
                used += 1;
            }
        }
        Ok(used)
    }

    fn step(&mut self, byte: u8) -> Result<At, Malformed> {
        Ok(match (self.at, byte) {
            (At::Start | At::Size, digit) if digit.is_ascii_hexdigit() => {
                let digit = char::from(digit).to_digit(16).ok_or(Malformed::Chunk)?;
                if self.left >> 60 != 0 {
                    return Err(Malformed::Chunk);
                }
                self.left = self.left << 4 | u64::from(digit);
                At::Size
            }
            (At::Size | At::Extension, b'\r') => At::SizeEnd,
            (At::Size, b';' | b' ' | b'\t') => At::Extension,
            (At::Extension, other) if other != b'\n' => {
                self.skip()?;
                At::Extension
            }
            (At::SizeEnd, b'\n') if self.left == 0 => At::Trailer,
            (At::SizeEnd, b'\n') => At::Data,
            (At::DataEnd, b'\r') => At::DataEndCr,
            (At::DataEndCr, b'\n') => At::Start,
            (At::Trailer, b'\r') => At::LastEnd,
            (At::LastEnd, b'\n') => At::Whole,
            (At::TrailerLine, b'\r') => At::TrailerLineEnd,
            (At::TrailerLineEnd, b'\n') => At::Trailer,
            (At::Trailer | At::TrailerLine, other) if other != b'\n' => {
                self.skip()?;
                At::TrailerLine
            }
            _ => return Err(Malformed::Chunk),
        })
    }

    fn skip(&mut self) -> Result<(), Malformed> {
        self.skipped += 1;
        if self.skipped > HEAD_MOST { Err(Malformed::Chunk) } else { Ok(()) }
    }
}
