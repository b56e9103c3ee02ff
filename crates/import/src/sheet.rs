//! Rows of cells: CSV (RFC 4180) with any delimiter.

use std::borrow::Cow;
use tidemark_measure::units;

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row<'a> {
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    /// Its cells, without quotes.
    pub(crate) cells: Vec<Cow<'a, str>>,
}

impl Row<'_> {
    /// A cell's text without blanks around it; empty where the row is too short.
    pub(crate) fn cell(&self, column: usize) -> &str {
        self.cells.get(column).map_or("", |cell| cell.trim())
    }
}

/// Most cells of a row, and of a table that is read as a whole.
const MOST_OF_ROW: usize = 1_000;
const MOST_OF_SHEET: usize = 1_000_000;

/// The rows of a text, those that are blank left out.
pub(crate) struct Rows<'a> {
    rest: &'a str,
    line: usize,
    delimiter: char,
}

impl<'a> Rows<'a> {
    /// The rows of a text with a delimiter between cells.
    pub(crate) fn new(text: &'a str, delimiter: char) -> Self {
        Self { rest: text, line: 1, delimiter }
    }

    /// A cell, and whether its row continues.
    fn cell(&mut self) -> Result<(Cow<'a, str>, bool), String> {
        let value = match self.rest.strip_prefix('"') {
            Some(quoted) => self.quoted(quoted)?,
            None => {
                let end = self.rest.find([self.delimiter, '\n']).unwrap_or(self.rest.len());
                let (value, rest) = self.rest.split_at(end);
                self.rest = rest;
                Cow::Borrowed(
                    value.strip_suffix('\r').filter(|_| !rest.starts_with(self.delimiter)).unwrap_or(value),
                )
            }
        };
        let more = self.rest.starts_with(self.delimiter);
        let mut rest = self.rest.chars();
        if rest.next() == Some('\n') {
            self.line += 1;
        }
        self.rest = rest.as_str();
        Ok((value, more))
    }

    fn quoted(&mut self, mut text: &'a str) -> Result<Cow<'a, str>, String> {
        let begun = self.line;
        let mut value = Cow::Borrowed("");
        loop {
            let Some(end) = text.find('"') else {
                return Err(format!("line {begun}: a quote is not closed"));
            };
            let (part, rest) = (&text[..end], &text[end + 1..]);
            self.line += part.matches('\n').count();
            value += part;
            match rest.strip_prefix('"') {
                Some(rest) => {
                    value += "\"";
                    text = rest;
                }
                None => {
                    self.rest = rest.strip_prefix('\r').unwrap_or(rest);
                    break;
                }
            }
        }
        if self.rest.is_empty() || self.rest.starts_with([self.delimiter, '\n']) {
            return Ok(value);
        }
        Err(format!("line {}: text follows a closed quote", self.line))
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (line, mut cells) = (self.line, Vec::new());
            loop {
                match self.cell() {
                    Ok((cell, more)) => {
                        cells.push(cell);
                        if !more {
                            break;
                        }
                        if cells.len() == MOST_OF_ROW {
                            self.rest = "";
                            let most = units::count(MOST_OF_ROW as u64);
                            return Some(Err(format!("line {line} has more than {most} cells")));
                        }
                    }
                    Err(error) => {
                        self.rest = "";
                        return Some(Err(error));
                    }
                }
            }
            if cells.iter().any(|cell| !cell.trim().is_empty()) {
                return Some(Ok(Row { line, cells }));
            }
        }
        None
    }
}

/// A table: the names of its columns, and its rows.
#[derive(Debug)]
pub(crate) struct Sheet<'a> {
    /// The names.
    pub(crate) header: Row<'a>,
    /// The rows below.
    pub(crate) rows: Vec<Row<'a>>,
}

impl<'a> Sheet<'a> {
    /// Reads a table.
    pub(crate) fn read(text: &'a str, delimiter: char) -> Result<Self, String> {
        let mut rows = Rows::new(text, delimiter);
        let header = rows.next().ok_or("is empty")??;
        let mut sheet = Self { header, rows: Vec::new() };
        let mut cells = 0;
        for row in rows {
            let row = row?;
            cells += row.cells.len();
            if cells > MOST_OF_SHEET {
                return Err(format!(
                    "has more than {} cells: import a part of it",
                    units::count(MOST_OF_SHEET as u64)
                ));
            }
            sheet.rows.push(row);
        }
        Ok(sheet)
    }

    /// The place of a column, by its name in any case.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        find(&self.header, name)
    }

    /// The place of a column that must be there.
    pub(crate) fn column(&self, name: &str) -> Result<usize, String> {
        self.find(name).ok_or_else(|| format!("line {}: there is no column `{name}`", self.header.line))
    }
}

/// The place of a column in a header, by its name in any case.
pub(crate) fn find(header: &Row<'_>, name: &str) -> Option<usize> {
    header.cells.iter().position(|cell| cell.trim().eq_ignore_ascii_case(name))
}

/// What stands between the cells of a text, by its first line that is not blank.
pub(crate) fn delimiter(text: &str) -> char {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let times = |candidate: &char| first.matches(*candidate).count();
    [',', ';', '\t'].into_iter().filter(|candidate| times(candidate) > 0).max_by_key(times).unwrap_or(',')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(text: &str) -> Vec<(usize, Vec<String>)> {
        let rows = Rows::new(text, ',').map(Result::unwrap);
        rows.map(|row| (row.line, row.cells.into_iter().map(Cow::into_owned).collect())).collect()
    }

    #[test]
    fn quotes_lines_and_blank_rows() {
        let text = "a,\"b \"\"c\"\"\"\r\n\n,,\n\"x\ny\",\r\nlast";
        let expected: [(usize, &[&str]); 3] = [(1, &["a", "b \"c\""]), (4, &["x\ny", ""]), (6, &["last"])];
        for (found, expected) in cells(text).iter().zip(expected) {
            assert_eq!(
                (found.0, found.1.iter().map(String::as_str).collect::<Vec<_>>()),
                (expected.0, expected.1.to_vec())
            );
        }
        assert_eq!(cells(text).len(), 3);
    }

    #[test]
    fn broken_quotes_are_told_with_their_line() {
        assert_eq!(Rows::new("a\n\"b\nc", ',').last().unwrap().unwrap_err(), "line 2: a quote is not closed");
        assert!(Sheet::read("a\n\"b\"c", ',').unwrap_err().contains("line 2"));
        assert_eq!(Sheet::read("\n \n", ',').unwrap_err(), "is empty");
    }

    #[test]
    fn the_delimiter_is_the_one_in_the_header() {
        assert_eq!(
            [delimiter("a,b;c;d"), delimiter("a\tb,c\td"), delimiter("\n a,b"), delimiter("a")],
            [';', '\t', ',', ',']
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(table in proptest::collection::vec(proptest::collection::vec("[a-c\",\n]{0,4}x", 1..4), 1..4)) {
            let quoted = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
            let lines: Vec<String> = table.iter().map(|row| row.iter().map(quoted).collect::<Vec<_>>().join(",")).collect();
            let read: Vec<Vec<String>> = cells(&lines.join("\n")).into_iter().map(|(_, row)| row).collect();
            prop_assert_eq!(read, table);
        }
    }
}
