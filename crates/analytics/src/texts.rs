//! The texts of queries, and their order in streams.

use crate::failure::Failure;
use crate::job::Query;
use crate::sets::Set;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;

/// The names of the queries of a set whose texts Tidemark has.
pub(crate) fn names(set: Set) -> Vec<String> {
    match set {
        Set::Tpch => (1..=22).map(|number| format!("q{number}")).collect(),
        // Their texts are the TPC's.
        Set::Tpcds => Vec::new(),
    }
}

/// The text of a query; its parameters are drawn, or those of the set's definition.
pub(crate) fn sql(query: &Query, _rng: Option<&mut Rng>, _scale: f64) -> Result<String, Failure> {
    query.sql.clone().ok_or_else(|| Failure::new(Fault::Local, format!("there is no query {}", query.name)))
}

/// The order in which a stream goes through queries, by their places in the list.
pub(crate) fn order(_set: Set, list: &[Query], stream: u32, permuted: bool) -> Vec<u16> {
    let mut order: Vec<u16> = (0..list.len() as u16).collect();
    if permuted {
        // Fisher and Yates, from the stream's number alone: the same in every run.
        let mut rng = Rng::new(0, &[u64::from(stream)]);
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
    }
    order
}
