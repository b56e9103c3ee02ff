//! `INSERT` statements of many rows, for sessions whose `sql_mode` has `NO_BACKSLASH_ESCAPES` and not `ANSI_QUOTES`: in a
//! quoted text only the quote itself is doubled.

use crate::schema::Table;
use crate::value::Value;
use bytes::BufMut;

/// A statement that has so many bytes takes no more rows. Servers take 16 MiB by default (`max_allowed_packet`), and what is
/// longer than some hundred KiB is not faster.
const FULL: usize = 512 << 10;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends a row to the last statement, or to a new one; `ends` has the ends of those that are full.
pub(super) fn row(out: &mut Vec<u8>, ends: &mut Vec<usize>, values: &[Value<'_>], table: &Table) {
    let begin = ends.last().copied().unwrap_or(0);
    if out.len() > begin {
        out.push(b',');
    } else {
        out.extend_from_slice(b"INSERT INTO ");
        out.extend_from_slice(table.name.as_bytes());
        for (column, before) in table.columns.iter().zip(std::iter::once(" (").chain(std::iter::repeat(",")))
        {
            out.extend_from_slice(before.as_bytes());
            out.extend_from_slice(column.name.as_bytes());
        }
        out.extend_from_slice(b") VALUES ");
    }
    for (value, before) in values.iter().zip(std::iter::once(b'(').chain(std::iter::repeat(b','))) {
        out.push(before);
        push_literal(out, *value);
    }
    out.push(b')');
    if out.len() - begin >= FULL {
        ends.push(out.len());
    }
}

/// Appends a value as it stands in a statement.
pub(crate) fn push_literal(out: &mut impl BufMut, value: Value<'_>) {
    match value {
        Value::Null => out.put_slice(b"NULL"),
        Value::Int(_) | Value::Decimal(..) | Value::Float(_) => value.push_text(out),
        Value::Date(_) | Value::Time(_) => {
            out.put_u8(b'\'');
            value.push_text(out);
            out.put_u8(b'\'');
        }
        Value::Text(text) => {
            out.put_u8(b'\'');
            for (number, part) in text.as_bytes().split(|byte| *byte == b'\'').enumerate() {
                if number > 0 {
                    out.put_slice(b"''");
                }
                out.put_slice(part);
            }
            out.put_u8(b'\'');
        }
        Value::Bytes(bytes) => {
            out.put_slice(b"x'");
            for byte in bytes {
                out.put_u8(DIGITS[usize::from(byte >> 4)]);
                out.put_u8(DIGITS[usize::from(byte & 15)]);
            }
            out.put_u8(b'\'');
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::bulk::Bulk;
    use crate::dialect::Dialect;
    use crate::schema::{Column, Kind, Table};
    use crate::value::Value::{Bytes, Decimal, Float, Int, Null, Text, Time};

    fn text(bulk: &Bulk<'_>) -> Vec<String> {
        bulk.inserts().map(|statement| String::from_utf8_lossy(statement).into_owned()).collect()
    }

    #[test]
    fn values_are_quoted_so_that_no_text_is_code() {
        let column = |name| Column::new(name, Kind::Text);
        let table = Table::new("t", vec![column("a"), column("b"), column("c"), column("d")], 1);
        let mut bulk = Bulk::new(&table, Dialect::Mysql);
        assert!(text(&bulk).is_empty() && bulk.rows() == 0);
        bulk.row(&[Text("it's '' \\' ü"), Bytes(&[0, 0x27, 0xff]), Bytes(&[]), Null]);
        bulk.row(&[Int(-7), Decimal(-1005, 2), Float(0.5), Time(0)]);
        assert_eq!(
            text(&bulk),
            ["INSERT INTO t (a,b,c,d) VALUES ('it''s '''' \\'' ü',x'0027ff',x'',NULL),\
              (-7,-10.05,0.5,'1970-01-01 00:00:00.000000')"]
        );
        assert_eq!((bulk.rows(), bulk.bytes().len()), (2, text(&bulk)[0].len()));
    }

    #[test]
    fn rows_are_divided_into_statements_that_servers_take() {
        let table = Table::new("t", vec![Column::new("a", Kind::Text)], 1);
        let (mut bulk, long) = (Bulk::new(&table, Dialect::Mysql), "x".repeat(100_000));
        (0..12).for_each(|_| bulk.row(&[Text(&long)]));
        let statements = text(&bulk);
        assert_eq!(statements.len(), 2, "the last one is full");
        let rows = |statement: &String| statement.matches("('").count();
        assert_eq!(statements.iter().map(rows).collect::<Vec<_>>(), [6, 6]);
        assert!(
            statements
                .iter()
                .all(|one| one.starts_with("INSERT INTO t (a) VALUES ('x") && one.len() < 700_000)
        );
        bulk.row(&[Text("y")]);
        assert_eq!(text(&bulk)[2], "INSERT INTO t (a) VALUES ('y')");
        assert_eq!(statements.iter().map(String::len).sum::<usize>() + 30, bulk.bytes().len());
    }
}
