//! Queries ranked by the bytes that they read, and how far rankings agree: of two works, and of a work with the set on file.

use std::collections::BTreeMap;
use tidemark_measure::record::{QueryUse, Run, Stage, TablesUse};
use tidemark_tpc::ds;
use tidemark_tpc::ds::most_read::MostRead;

pub use tidemark_tpc::ds::most_read::COUNT;

/// The queries of a work by the bytes that they read.
#[derive(Clone, Debug)]
pub struct Ranking<'a> {
    /// The work's stage.
    pub stage: &'a Stage,
    /// The work.
    pub used: &'a TablesUse,
    /// Each query with its bytes, the medians of its executions: the one that read most is the first. The parts of a query are
    /// one, with the bytes of both. A query of which any execution failed, or of which storage saw nothing, is not among them.
    pub queries: Vec<(String, u64)>,
}

/// How far two rankings agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Queries that both have.
    pub queries: usize,
    /// Spearman's rank correlation of their bytes: 1 if the order is the same. `None` of fewer than three, and where all are equal.
    pub correlation: Option<f64>,
    /// Of the [`COUNT`] queries that read most in one, those that do so in the other, where there are more queries than that.
    pub most_read_in_both: Option<usize>,
}

/// The rankings of a run: of each work that ran at least three queries.
pub fn rankings(run: &Run) -> Vec<Ranking<'_>> {
    let mut rankings = Vec::new();
    for stage in &run.stages {
        for used in stage.proof.iter().flat_map(|proof| &proof.tables) {
            let queries = ranked(used);
            if queries.len() > 2 {
                rankings.push(Ranking { stage, used, queries });
            }
        }
    }
    rankings
}

/// A query, whose parts are one.
fn whole(used: &TablesUse, query: &str) -> String {
    let number = if used.set == "tpcds" { ds::number(query) } else { None };
    number.map_or_else(|| query.to_owned(), |number| format!("q{number}"))
}

fn ranked(used: &TablesUse) -> Vec<(String, u64)> {
    let mut parts: BTreeMap<&str, Vec<Option<u64>>> = BTreeMap::new();
    let seen = |query: &QueryUse| match query.fault {
        None => query.storage.as_ref().map(|storage| storage.read_bytes),
        Some(_) => None,
    };
    used.queries.iter().for_each(|query| parts.entry(&query.query).or_default().push(seen(query)));
    let mut wholes: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for (part, bytes) in parts {
        let bytes: Option<Vec<u64>> = bytes.into_iter().collect();
        let median = bytes.and_then(|mut bytes| {
            bytes.sort_unstable();
            bytes.get(bytes.len().checked_sub(1)? / 2).copied()
        });
        let sum = wholes.entry(whole(used, part)).or_insert(Some(0));
        *sum = sum.zip(median).map(|(sum, median)| sum.saturating_add(median));
    }
    let mut ranked: Vec<_> = wholes.into_iter().filter_map(|(query, bytes)| Some((query, bytes?))).collect();
    // The names are in order already, and decide where bytes are equal.
    ranked.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    ranked
}

impl Ranking<'_> {
    /// The place of a query, from 1; `None` if it is not ranked.
    pub fn place(&self, query: &str) -> Option<usize> {
        let whole = whole(self.used, query);
        self.queries.iter().position(|(name, _)| *name == whole).map(|place| place + 1)
    }

    fn bytes(&self, query: &str) -> Option<u64> {
        self.queries.iter().find(|(name, _)| name == query).map(|(_, bytes)| *bytes)
    }

    /// How far it agrees with another one, as far as they have the same queries.
    pub fn agreement(&self, other: &Ranking<'_>) -> Agreement {
        let common: Vec<(&str, u64, u64)> = self
            .queries
            .iter()
            .filter_map(|(query, bytes)| Some((query.as_str(), *bytes, other.bytes(query)?)))
            .collect();
        let most_read = |of: &Ranking<'_>| -> Vec<String> {
            let common = |query: &&String| common.iter().any(|(one, ..)| one == query);
            of.queries.iter().map(|(query, _)| query).filter(common).take(COUNT).cloned().collect()
        };
        let (own, others) = (most_read(self), most_read(other));
        Agreement {
            queries: common.len(),
            correlation: correlation(
                &common.iter().map(|(_, own, other)| (*own, *other)).collect::<Vec<_>>(),
            ),
            most_read_in_both: (common.len() > COUNT)
                .then(|| own.iter().filter(|query| others.contains(query)).count()),
        }
    }

    /// The set on file for the work's engine and scale, and how many of its queries are among those that read most here; `None`
    /// where there is none, or too few queries ran.
    pub fn on_file(&self) -> Option<(&'static MostRead, usize)> {
        let used = self.used;
        let set = ds::most_read::on_file(&used.product, used.scale_milli).filter(|_| used.set == "tpcds")?;
        let most = self.queries.iter().take(COUNT).filter_map(|(query, _)| ds::number(query));
        let shared = most.filter(|number| set.numbers.contains(number)).count();
        (self.queries.len() > COUNT).then_some((set, shared))
    }
}

/// Spearman's rank correlation: Pearson's of the ranks, where equal values share the mean of theirs.
fn correlation(pairs: &[(u64, u64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let ranks = |of: fn(&(u64, u64)) -> u64| -> Vec<f64> {
        let values: Vec<u64> = pairs.iter().map(of).collect();
        let rank = |value: &u64| {
            let below = values.iter().filter(|one| *one < value).count() as f64;
            let equal = values.iter().filter(|one| *one == value).count() as f64;
            below + (equal + 1.0) / 2.0
        };
        values.iter().map(rank).collect()
    };
    let (own, other) = (ranks(|pair| pair.0), ranks(|pair| pair.1));
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let product = |first: &[f64], second: &[f64]| -> f64 {
        first.iter().zip(second).map(|(one, two)| (one - mean) * (two - mean)).sum()
    };
    let spread = (product(&own, &own) * product(&other, &other)).sqrt();
    (spread > 0.0).then(|| product(&own, &other) / spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::fault::Fault;
    use tidemark_measure::record::{Proof, StorageUse};

    fn used(set: &str, bytes: &[(&str, u64)]) -> TablesUse {
        let query = |(query, read_bytes): &(&str, u64)| QueryUse {
            query: (*query).into(),
            storage: Some(StorageUse { read_bytes: *read_bytes, ..StorageUse::default() }),
            ..QueryUse::default()
        };
        TablesUse {
            set: set.into(),
            scale_milli: 1000,
            product: ds::most_read::DATAFUSION.into(),
            queries: bytes.iter().map(query).collect(),
            ..TablesUse::default()
        }
    }

    fn run(works: Vec<TablesUse>) -> Run {
        let stage = |used| Stage {
            proof: Some(Proof { tables: vec![used], ..Proof::default() }),
            ..Stage::default()
        };
        Run { stages: works.into_iter().map(stage).collect(), ..Run::default() }
    }

    #[test]
    fn parts_are_one_query_and_what_failed_is_none() {
        let mut work = used(
            "tpcds",
            &[("q1", 9), ("q14a", 8), ("q14b", 7), ("q3", 1), ("q3", 3), ("q3", 90), ("q4", 2)],
        );
        work.queries.push(QueryUse { fault: Some(Fault::Timeout), ..work.queries[6].clone() });
        let run = run(vec![work]);
        let [ranking] = &rankings(&run)[..] else { panic!() };
        let names: Vec<_> = ranking.queries.iter().map(|(query, bytes)| (query.as_str(), *bytes)).collect();
        assert_eq!(names, [("q14", 15), ("q1", 9), ("q3", 3)]);
        assert_eq!(
            [ranking.place("q14b"), ranking.place("q3"), ranking.place("q4")],
            [Some(1), Some(3), None]
        );
    }

    #[test]
    fn agreement_is_of_the_queries_that_both_have() {
        let run = run(vec![
            used("tpch", &[("q1", 10), ("q2", 20), ("q3", 30), ("q5", 1)]),
            used("tpch", &[("q1", 300), ("q2", 200), ("q3", 100), ("q4", 1)]),
        ]);
        let [first, second] = &rankings(&run)[..] else { panic!() };
        let agreement = first.agreement(second);
        assert_eq!((agreement.queries, agreement.most_read_in_both), (3, None));
        assert!((agreement.correlation.unwrap() + 1.0).abs() < 1e-9, "{agreement:?}");
        assert_eq!(first.agreement(first).correlation, Some(1.0));
        assert_eq!(correlation(&[(1, 1), (1, 2), (1, 3)]), None, "all are equal");
        // By hand: ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4.
        let tied = correlation(&[(1, 1), (5, 7), (5, 6), (9, 8)]).unwrap();
        assert!((tied - 4.5 / 22.5f64.sqrt()).abs() < 1e-9, "{tied}");
    }

    #[test]
    fn what_read_most_is_held_against_the_other_ranking_and_the_set_on_file() {
        let names: Vec<String> = (1..=99).map(|number| format!("q{number}")).collect();
        let rising: Vec<_> = names.iter().zip(1..).map(|(name, bytes)| (name.as_str(), bytes)).collect();
        let falling: Vec<_> =
            names.iter().zip(1..).map(|(name, bytes)| (name.as_str(), 100 - bytes)).collect();
        let run = run(vec![used("tpcds", &rising), used("tpcds", &falling)]);
        let [first, second] = &rankings(&run)[..] else { panic!() };
        assert_eq!(first.agreement(first).most_read_in_both, Some(COUNT));
        // 44 to 99 and 1 to 56.
        assert_eq!(first.agreement(second).most_read_in_both, Some(13));
        let (set, shared) = first.on_file().unwrap();
        assert_eq!(shared, set.numbers.iter().filter(|number| **number >= 44).count());
    }
}
