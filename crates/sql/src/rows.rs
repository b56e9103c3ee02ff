//! What statements gave: rows as they lie in the connection's buffer, read where they are asked for and nowhere else.

use crate::failure::Failure;
use std::str;
use tidemark_measure::fault::Fault;

/// What became of one statement, as places in the connection's buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Where its first row begins.
    pub start: usize,
    /// Where its last row ends.
    pub end: usize,
    /// How many rows it gave.
    pub rows: u64,
    /// How many rows it changed, or gave.
    pub affected: u64,
}

/// The rows of one statement. Its layout is that of PostgreSQL's `DataRow`s: a tag of one byte and a length of four, then
/// the number of columns and, of each, a length (-1: null) and its text. A protocol with other rows writes these.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    count: u64,
    affected: u64,
}

impl<'a> Rows<'a> {
    /// The rows at a place of a buffer.
    pub fn new(buffer: &'a [u8], extent: Extent) -> Self {
        Self { bytes: &buffer[extent.start..extent.end], count: extent.rows, affected: extent.affected }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many rows the statement changed; of a query, how many it gave.
    pub fn affected(&self) -> u64 {
        self.affected
    }

    /// All rows in order.
    pub fn iter(&self) -> impl Iterator<Item = Row<'a>> + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            loop {
                let length = 1 + number(rest.get(1..5)?)? as usize;
                let (message, behind) = rest.split_at_checked(length)?;
                rest = behind;
                // What comes between rows, such as notices, is skipped.
                if message[0] == b'D' {
                    let count = u16::from_be_bytes(message.get(5..7)?.try_into().ok()?);
                    return Some(Row { count: count.into(), columns: message.get(7..)? });
                }
            }
        })
    }

    /// The first row.
    ///
    /// # Errors
    /// [`Fault::NotFound`] when there is none: the transaction relied on it.
    pub fn first(&self) -> Result<Row<'a>, Failure> {
        self.iter()
            .next()
            .ok_or_else(|| Failure::new(Fault::NotFound, "a query gave no row where there must be one"))
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    count: usize,
    columns: &'a [u8],
}

impl<'a> Row<'a> {
    /// How many columns it has.
    pub fn columns(&self) -> usize {
        self.count
    }

    /// The text of a column, from 0; `None`: null.
    ///
    /// # Errors
    /// When there is no such column, or its text is not UTF-8.
    pub fn get(&self, column: usize) -> Result<Option<&'a str>, Failure> {
        let wrong = || Failure::new(Fault::Protocol, format!("a row has no column {column} of text"));
        let mut rest = self.columns;
        for _ in 0..column {
            let length = number(rest.get(..4).ok_or_else(wrong)?).ok_or_else(wrong)?;
            let length = if length == u32::MAX { 0 } else { length as usize };
            rest = rest.get(4 + length..).ok_or_else(wrong)?;
        }
        match number(rest.get(..4).ok_or_else(wrong)?).ok_or_else(wrong)? {
            u32::MAX => Ok(None),
            length => {
                let text = rest.get(4..4 + length as usize).ok_or_else(wrong)?;
                str::from_utf8(text).map(Some).map_err(|_| wrong())
            }
        }
    }

    /// The text of a column that is never null.
    ///
    /// # Errors
    /// As [`Row::get`], and when it is null.
    pub fn text(&self, column: usize) -> Result<&'a str, Failure> {
        let text = self.get(column)?;
        text.ok_or_else(|| Failure::new(Fault::Protocol, format!("column {column} of a row is null")))
    }

    /// A number in a column that is never null.
    ///
    /// # Errors
    /// As [`Row::text`], and when it is no such number.
    pub fn number<T: str::FromStr>(&self, column: usize) -> Result<T, Failure> {
        let wrong = |_| Failure::new(Fault::Protocol, format!("column {column} of a row is no such number"));
        self.text(column)?.parse().map_err(wrong)
    }

    /// A decimal number in units of 10^-scale: `12.34` at scale 2 is 1234. Digits beyond the scale are cut off.
    ///
    /// # Errors
    /// As [`Row::text`], and when it is no decimal number.
    pub fn decimal(&self, column: usize, scale: u8) -> Result<i64, Failure> {
        let text = self.text(column)?;
        decimal(text, scale).ok_or_else(|| {
            Failure::new(Fault::Protocol, format!("column {column} of a row is no decimal number"))
        })
    }
}

fn decimal(text: &str, scale: u8) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let mut units: i64 = whole.parse().ok()?;
    let mut part = part.bytes();
    for _ in 0..scale {
        let digit = match part.next() {
            Some(digit) => i64::from(char::from(digit).to_digit(10)?),
            None => 0,
        };
        units = units.checked_mul(10)?.checked_add(digit)?;
    }
    Some(sign * units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A row with these columns as PostgreSQL sends it.
    fn data(columns: &[Option<&str>]) -> Vec<u8> {
        let mut body = (columns.len() as u16).to_be_bytes().to_vec();
        for column in columns {
            match column {
                None => body.extend((-1i32).to_be_bytes()),
                Some(text) => {
                    body.extend((text.len() as u32).to_be_bytes());
                    body.extend(text.as_bytes());
                }
            }
        }
        let mut message = vec![b'D'];
        message.extend((body.len() as u32 + 4).to_be_bytes());
        message.extend(body);
        message
    }

    #[test]
    fn rows_are_read_where_they_lie() {
        let mut bytes = data(&[Some("7"), None, Some("-12.345")]);
        bytes.extend([b'N', 0, 0, 0, 4]);
        bytes.extend(data(&[Some("8"), Some("x"), Some("3")]));
        let extent = Extent { start: 0, end: bytes.len(), rows: 2, affected: 2 };
        let rows = Rows::new(&bytes, extent);
        let first = rows.first().unwrap();
        assert_eq!(first.number::<i64>(0), Ok(7));
        assert_eq!(first.get(1), Ok(None));
        assert!(first.text(1).is_err() && first.text(3).is_err() && first.number::<i64>(2).is_err());
        assert_eq!(first.decimal(2, 2), Ok(-1234));
        let all: Vec<i64> = rows.iter().map(|row| row.number(0).unwrap()).collect();
        assert_eq!(all, [7, 8]);
        assert_eq!(rows.iter().nth(1).unwrap().decimal(2, 2), Ok(300));
        let none = Rows::new(&bytes, Extent::default());
        assert_eq!(none.first().unwrap_err().fault, Fault::NotFound);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, column in 0usize..9) {
            let rows = Rows::new(&bytes, Extent { start: 0, end: bytes.len(), rows: 1, affected: 0 });
            for row in rows.iter().take(100) {
                let _ = (row.get(column), row.decimal(column, 2));
            }
        }
    }
}
