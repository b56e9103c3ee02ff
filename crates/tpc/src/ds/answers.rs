//! Answers that are known: those that DuckDB gave on the same files.

use super::texts;
use crate::answer::Digest;

/// A line for each scale and query: the scale in thousandths, the query's name, the hash of its text, the digest.
/// `scripts/tpcds-answers.py` makes them anew.
static ANSWERS: &str = include_str!("answers.txt");

/// The answer to a query of this name and exactly this text at a scale, in thousandths.
pub fn known(name: &str, text: &str, scale_milli: u64) -> Option<Digest> {
    let start = format!("{scale_milli} {name} {:016x} ", texts::hash(text));
    Digest::read(ANSWERS.lines().find_map(|line| line.strip_prefix(&start))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_on_file_are_of_all_queries_and_of_their_texts_alone() {
        for scale in ["10", "100", "1000"] {
            let lines = ANSWERS.lines().map(|line| line.splitn(4, ' ').collect::<Vec<_>>());
            let lines: Vec<_> = lines.filter(|line| line[0] == scale).collect();
            let names: Vec<_> = lines.iter().map(|line| line[1]).collect();
            assert_eq!(names, crate::ds::names(), "at {scale}");
            assert!(lines.iter().all(|line| Digest::read(line[3]).is_some()));
        }
        assert_eq!(known("q1", "SELECT 1", 1000), None);
    }
}
