//! Published texts of queries, adapted so that engines take them alike and answer alike.
//!
//! What is changed, and why:
//!
//! | change | because |
//! |---|---|
//! | placeholders before the names of tables go | names are those of the catalogue and schema that the session is in |
//! | quoted names are in lower case | some engines tell `"YEAR"` from `year` |
//! | the dividend of a quotient, and what an average is of, is a `DOUBLE` | engines differ in how many digits the quotient of two decimals has: 2 in some |
//! | what becomes an `INTEGER` is rounded first | some engines round, others cut |
//! | what is sorted in descending order has its nulls last | engines differ in where they are |
//!
//! None of it changes what a query reads.

use tidemark_measure::rng;

/// What stands before the names of tables.
const PLACEHOLDERS: &str = "${database}.${schema}.";

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Each operation is in parentheses of its own: `(a / b)`.
    Parenthesised,
    /// Quotients have no parentheses of their own, and stay as they are.
    Plain,
}

/// A parenthesis that is open.
struct Open {
    place: usize,
    /// Whether what is in it is averaged.
    averages: bool,
    /// Whether it has a quotient already.
    divides: bool,
}

/// The text, adapted.
pub fn adapted(text: &str, style: Style) -> String {
    let text = text.trim().trim_end_matches(';').replace(PLACEHOLDERS, "");
    let mut edits: Vec<(usize, &str)> = Vec::new();
    let mut names = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut quote: Option<(u8, usize)> = None;
    for (place, byte) in text.bytes().enumerate() {
        if let Some((mark, from)) = quote {
            if byte == mark {
                quote = None;
                if mark == b'"' {
                    names.push(from..place);
                }
            }
            continue;
        }
        let (before, rest) = (&text.as_bytes()[..place], &text.as_bytes()[place..]);
        match byte {
            b'\'' | b'"' => quote = Some((byte, place)),
            b'(' => open.push(Open { place, averages: calls_average(before), divides: false }),
            b')' => {
                let Some(closed) = open.pop() else { continue };
                if closed.averages {
                    edits.extend([(closed.place + 1, "CAST("), (place, " AS DOUBLE)")]);
                }
                if let Some(whole) = before.strip_suffix(b" AS INTEGER") {
                    edits.extend([(closed.place + 1, "round("), (whole.len(), ")")]);
                }
            }
            b' ' if rest.starts_with(b" / ") && style == Style::Parenthesised => {
                let Some(around) = open.last_mut().filter(|around| !around.divides) else { continue };
                around.divides = true;
                edits.extend([(around.place + 1, "CAST("), (place, " AS DOUBLE)")]);
            }
            b' ' if rest.starts_with(b" DESC") && !rest.get(5).is_some_and(is_of_word) => {
                edits.push((place + 5, " NULLS LAST"));
            }
            _ => {}
        }
    }
    edits.sort_by_key(|(place, _)| *place);
    let mut text = text;
    // Letters of a byte only, so that places stay where they are.
    names.into_iter().for_each(|name| text[name].make_ascii_lowercase());
    let mut adapted = String::with_capacity(text.len() + 16 * edits.len());
    let mut from = 0;
    for (place, inserted) in edits {
        adapted += &text[from..place];
        adapted += inserted;
        from = place;
    }
    adapted + &text[from..] + "\n"
}

/// Whether what stands before a parenthesis calls the average.
fn calls_average(before: &[u8]) -> bool {
    let name = before.strip_suffix(b"\"").unwrap_or(before);
    let Some(rest) = name.strip_suffix(b"avg") else { return false };
    !rest.last().is_some_and(is_of_word)
}

fn is_of_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// A number that tells texts apart: an answer is known of one text, and of no other.
pub fn hash(text: &str) -> u64 {
    text.trim().bytes().fold(0, |hash, byte| rng::mix(hash, &[u64::from(byte)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parenthesised(text: &str) -> String {
        adapted(text, Style::Parenthesised).trim_end().to_owned()
    }

    #[test]
    fn tables_are_bare_and_quoted_names_are_in_lower_case() {
        assert_eq!(
            parenthesised("SELECT 'A ${database}.${schema}.B', \"YEAR\" FROM ${database}.${schema}.t;\n"),
            "SELECT 'A B', \"year\" FROM t"
        );
    }

    #[test]
    fn quotients_and_averages_are_of_doubles() {
        assert_eq!(parenthesised("SELECT ((a + b) / c)"), "SELECT (CAST((a + b) AS DOUBLE) / c)");
        assert_eq!(
            parenthesised("SELECT ((a / b) / f((c / d)))"),
            "SELECT (CAST((CAST(a AS DOUBLE) / b) AS DOUBLE) / f((CAST(c AS DOUBLE) / d)))"
        );
        assert_eq!(parenthesised("SELECT \"avg\"((a * b))"), "SELECT \"avg\"(CAST((a * b) AS DOUBLE))");
        assert_eq!(parenthesised("SELECT avg(a / b)"), "SELECT avg(CAST(CAST(a AS DOUBLE) / b AS DOUBLE))");
        assert_eq!(parenthesised("SELECT my_avg(a), ' / (' || ')'"), "SELECT my_avg(a), ' / (' || ')'");
        assert_eq!(
            adapted("SELECT (CASE WHEN a THEN b / c END), avg(d)", Style::Plain),
            "SELECT (CASE WHEN a THEN b / c END), avg(CAST(d AS DOUBLE))\n"
        );
        assert_eq!(
            parenthesised("SELECT CAST((a / 50) AS INTEGER)"),
            "SELECT CAST(round((CAST(a AS DOUBLE) / 50)) AS INTEGER)"
        );
    }

    #[test]
    fn nulls_are_last() {
        assert_eq!(
            parenthesised("SELECT ' DESC' ORDER BY a DESC, b ASC, c DESC, DESCR"),
            "SELECT ' DESC' ORDER BY a DESC NULLS LAST, b ASC, c DESC NULLS LAST, DESCR"
        );
    }

    #[test]
    fn texts_are_told_apart_but_for_blanks_around_them() {
        assert_eq!(hash("SELECT 1"), hash("SELECT 1\n"));
        assert_ne!(hash("SELECT 1"), hash("SELECT 2"));
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "[()'\"/ DESCavgé;]{0,40}") {
            adapted(&text, Style::Parenthesised);
        }
    }
}
