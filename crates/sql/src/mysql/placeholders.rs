//! Statements with `$1`, `$2` ..., as MySQL takes them: with a `?` in each place, and the parameters in the order of the places.

use crate::bulk::push_literal;
use crate::failure::Failure;
use crate::value::Value;
use bytes::{BufMut as _, BytesMut};
use tidemark_measure::fault::Fault;

/// A statement's text in pieces, and which parameter stands between each and the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<String>,
    /// Parameters by their number from 0.
    order: Vec<usize>,
}

impl Template {
    /// Finds the parameters of a statement: not in quoted texts and names, nor in comments.
    pub(crate) fn new(sql: &str) -> Self {
        let (mut pieces, mut order, mut piece) = (Vec::new(), Vec::new(), String::new());
        let mut rest = sql;
        while let Some(at) = rest.find(['$', '\'', '"', '`', '-', '/', '#']) {
            piece.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some((number, length)) = parameter(rest) {
                pieces.push(std::mem::take(&mut piece));
                order.push(number - 1);
                rest = &rest[length..];
                continue;
            }
            let length = match rest.as_bytes()[0] {
                // A doubled quote ends one text and begins the next.
                b'\'' => through(rest, 1, "'"),
                b'"' => through(rest, 1, "\""),
                b'`' => through(rest, 1, "`"),
                b'-' if rest.starts_with("-- ") => through(rest, 3, "\n"),
                b'#' => through(rest, 1, "\n"),
                b'/' if rest.starts_with("/*") => through(rest, 2, "*/"),
                _ => 1,
            };
            piece.push_str(&rest[..length]);
            rest = &rest[length..];
        }
        pieces.push(piece + rest);
        Self { pieces, order }
    }

    /// The statement as it is prepared.
    pub(crate) fn sql(&self) -> String {
        self.pieces.join("?")
    }

    /// Parameters in the order of their places.
    #[inline]
    pub(super) fn parameters<'a>(
        &self,
        given: &'a [Value<'a>],
    ) -> impl Iterator<Item = Result<Value<'a>, Failure>> + Clone {
        self.order.iter().map(|number| given.get(*number).copied().ok_or_else(|| missing(*number)))
    }

    /// How many places there are.
    #[inline]
    pub(super) fn places(&self) -> usize {
        self.order.len()
    }

    /// How many parameters it must be given.
    pub(crate) fn given(&self) -> usize {
        self.order.iter().map(|number| number + 1).max().unwrap_or(0)
    }

    /// The statement with its parameters in it.
    ///
    /// # Errors
    /// When it is given too few.
    pub(crate) fn text(&self, given: &[Value<'_>]) -> Result<String, Failure> {
        let mut text = BytesMut::new();
        self.push(given, &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Appends the statement with its parameters in it.
    pub(super) fn push(&self, given: &[Value<'_>], out: &mut BytesMut) -> Result<(), Failure> {
        let mut values = self.parameters(given);
        for piece in &self.pieces {
            out.put_slice(piece.as_bytes());
            if let Some(value) = values.next() {
                push_literal(out, value?);
            }
        }
        Ok(())
    }
}

#[cold]
fn missing(number: usize) -> Failure {
    Failure::new(Fault::Sql, format!("a statement has no value for its parameter ${}", number + 1))
}

/// The parameter that a text begins with: its number, and its length.
fn parameter(text: &str) -> Option<(usize, usize)> {
    let digits = text.strip_prefix('$')?;
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let number =
        digits[..length].parse().ok().filter(|number| (1..=usize::from(u16::MAX)).contains(number))?;
    Some((number, 1 + length))
}

/// How long a text is that ends with `end`, which is looked for from `from` on.
fn through(text: &str, from: usize, end: &str) -> usize {
    text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value::{Int, Text};
    use proptest::prelude::*;

    #[test]
    fn parameters_have_a_place_each() {
        let template = Template::new(
            "UPDATE t SET a = $2, b = $1 + $2 WHERE c = '$1' AND `d$1` = \"$1\" -- $1\n/* $1 */ + $10",
        );
        let expected = "UPDATE t SET a = ?, b = ? + ? WHERE c = '$1' AND `d$1` = \"$1\" -- $1\n/* $1 */ + ?";
        assert_eq!((template.sql().as_str(), template.places()), (expected, 4));
        let given = [Int(1), Int(2)];
        let values: Vec<_> = template.parameters(&given).take(3).collect();
        assert_eq!(values, [Ok(Int(2)), Ok(Int(1)), Ok(Int(2))]);
        let failure = template.parameters(&given).nth(3).unwrap().unwrap_err();
        assert_eq!(failure.to_string(), "a statement has no value for its parameter $10");
    }

    #[test]
    fn what_is_no_parameter_stays() {
        for sql in ["SELECT 1 - 2 / 3", "SELECT '", "a$b $ $0", "--", "/*", "x # $1", ""] {
            let template = Template::new(sql);
            assert_eq!((template.sql().as_str(), template.places()), (sql, 0));
        }
    }

    #[test]
    fn values_in_the_text_are_quoted() {
        let mut out = BytesMut::new();
        Template::new("SELECT $1, $2").push(&[Int(7), Text("it's")], &mut out).unwrap();
        assert_eq!(&out[..], b"SELECT 7, 'it''s'");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(sql: String) {
            let _ = Template::new(&sql).sql();
        }
    }
}
