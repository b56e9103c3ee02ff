//! The statements of a query: Trino takes one at a time.

use crate::tables::failure::{Failure, first_line};
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use tidemark_measure::fault::Fault;

/// What Trino's SQL has of a dialect, as far as it matters for where statements end.
#[derive(Debug)]
struct Trino;

impl Dialect for Trino {
    fn is_identifier_start(&self, letter: char) -> bool {
        letter.is_alphabetic() || letter == '_'
    }

    fn is_identifier_part(&self, letter: char) -> bool {
        letter.is_alphanumeric() || matches!(letter, '_' | '@' | '$')
    }
}

/// The statements of a text, without the semicolons after them. Only those that read are allowed.
pub(crate) fn statements(sql: &str) -> Result<Vec<&str>, Failure> {
    let tokens = Tokenizer::new(&Trino, sql)
        .tokenize_with_location()
        .map_err(|error| Failure::new(Fault::Sql, first_line(&error.to_string())))?;
    let mut found = Vec::new();
    for statement in tokens.split(|token| token.token == Token::SemiColon) {
        let mut said = statement.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
        let Some(first) = said.next() else { continue };
        let last = said.next_back().unwrap_or(first);
        if !reads(first) {
            let words = format!("a load only reads, and `{}` begins no query", first.token);
            return Err(Failure::new(Fault::Sql, first_line(&words)));
        }
        found.push(&sql[offset(sql, first.span.start)..offset(sql, last.span.end)]);
    }
    match found.is_empty() {
        false => Ok(found),
        true => Err(Failure::new(Fault::Sql, "its text has no statement")),
    }
}

/// Whether a statement that begins so is a query: others begin with words of their own.
fn reads(first: &TokenWithSpan) -> bool {
    match &first.token {
        Token::LParen => true,
        Token::Word(word) => {
            matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE)
        }
        _ => false,
    }
}

/// Where in a text a place is that is given as a line and a column, both from 1.
fn offset(sql: &str, place: Location) -> usize {
    let lines = sql.split_inclusive('\n');
    let before = usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX);
    let column = usize::try_from(place.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let start = lines.take(before).map(str::len).sum::<usize>();
    let line = sql.get(start..).unwrap_or_default();
    start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn statements_end_at_semicolons_and_not_within_texts_names_or_comments() {
        let sql = "-- first; really\nSELECT ';'';' AS \"a;b\" /* ; */ ;\n\n (SELECT 'é;ü') ; ;WITH x AS (SELECT 1)\nSELECT *\nFROM x -- ;";
        let found = statements(sql).unwrap();
        assert_eq!(
            found,
            ["SELECT ';'';' AS \"a;b\"", "(SELECT 'é;ü')", "WITH x AS (SELECT 1)\nSELECT *\nFROM x"]
        );
    }

    #[test]
    fn what_does_not_only_read_is_refused() {
        for sql in
            ["DROP TABLE x", "select 1; delete from x", "CREATE TABLE a AS SELECT 1", "CALL x()", "EXECUTE y"]
        {
            let refused = statements(sql).unwrap_err();
            assert_eq!(refused.fault, Fault::Sql, "{sql}");
            assert!(refused.words.contains("only reads"), "{refused}");
        }
        for sql in ["", " ; ", "-- nothing", "SELECT 'open", "SELECT \"open"] {
            assert_eq!(statements(sql).unwrap_err().fault, Fault::Sql, "{sql}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_cut_in_a_letter(sql in "(?s)(SELECT|;|'|\"|\\n|\\r|é|/\\*|\\*/|--|[a-z ]){0,30}") {
            if let Ok(found) = statements(&sql) {
                prop_assert!(found.iter().all(|one| sql.contains(one) && !one.trim().is_empty()));
            }
        }
    }
}
