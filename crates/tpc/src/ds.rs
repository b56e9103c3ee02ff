//! Decision support after TPC-DS: the names of its 99 queries, which of them read most, and answers.
//!
//! Their texts are the TPC's, and not part of Tidemark; [`texts`] makes published ones fit for more than one engine. What follows it
//! is TPC-DS-like, and no result of the TPC's benchmark: those are audited.
//!
//! | module | what it holds |
//! |---|---|
//! | [`texts`] | published texts, adapted to more than one engine |
//! | [`most_read`] | the 56 queries that read most |
//! | [`answers`] | answers that are known |

pub mod answers;
pub mod most_read;
pub mod texts;

/// How many queries there are.
pub const QUERIES: u8 = 99;

/// Those that have two parts, each a statement of its own.
const OF_TWO_PARTS: [u8; 4] = [14, 23, 24, 39];

/// The names of a query's parts, each of which is run and measured as a query: `q7`; or `q14a` and `q14b`.
pub fn parts(number: u8) -> Vec<String> {
    match OF_TWO_PARTS.contains(&number) {
        true => ["a", "b"].map(|part| format!("q{number}{part}")).to_vec(),
        false => vec![format!("q{number}")],
    }
}

/// The names of all 103 parts, in the order of the queries' numbers.
pub fn names() -> Vec<String> {
    (1..=QUERIES).flat_map(parts).collect()
}

/// The number of the query that a name is of: 14 of `q14b`, and of `q14`, whose text may have both parts.
pub fn number(name: &str) -> Option<u8> {
    let digits = name.strip_prefix('q')?.trim_end_matches(['a', 'b']);
    let number = digits.parse().ok().filter(|number| (1..=QUERIES).contains(number))?;
    (parts(number).iter().any(|part| part == name) || name == format!("q{number}")).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ninety_nine_queries_have_a_hundred_and_three_parts() {
        let names = names();
        assert_eq!((names.len(), names[0].as_str(), names[102].as_str()), (103, "q1", "q99"));
        assert_eq!(names[13..16], ["q14a", "q14b", "q15"]);
        assert!(names.iter().all(|name| number(name).is_some()));
        assert_eq!(["q14", "q14b", "q7"].map(number), [Some(14), Some(14), Some(7)]);
        for name in ["q0", "q100", "q7a", "q14c", "q07", "q", "14", "q14ab"] {
            assert_eq!(number(name), None, "{name}");
        }
    }
}
