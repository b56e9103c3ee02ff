//! Answers that are known: those that PostgreSQL gave to the queries with the parameters of the specification's qualification.

use crate::answer::Digest;

/// A line for each scale and query: the scale in thousandths, the query's number, the digest. `crates/engines/tests` has the test
/// that makes them anew: `answers_of_postgres_are_those_on_file`.
static ANSWERS: &str = include_str!("answers.txt");

/// The answer to a query at a scale, in thousandths.
pub fn known(query: u8, scale_milli: u64) -> Option<Digest> {
    let start = format!("{scale_milli} {query} ");
    Digest::read(ANSWERS.lines().find_map(|line| line.strip_prefix(&start))?)
}
