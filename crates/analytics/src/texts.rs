//! The names of queries, and their order in streams.

use crate::sets::Set;
use tidemark_tpc::{QUERIES, ds, orders};

/// The names of all queries of a set, in the order of their numbers.
pub(crate) fn names(set: Set) -> impl Iterator<Item = String> {
    let names = match set {
        Set::Tpch => (1..=QUERIES).map(|number| format!("q{number}")).collect(),
        Set::Tpcds => ds::names(),
    };
    names.into_iter()
}

/// Whether Tidemark has their texts. Those of TPC-DS are the TPC's.
pub(crate) fn are_known(set: Set) -> bool {
    set == Set::Tpch
}

/// The order in which a stream, from 0, goes through queries, by their places in the list.
pub(crate) fn order(count: usize, stream: u32, permuted: bool) -> Vec<u16> {
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    if permuted { orders::order(count, stream) } else { (0..count).collect() }
}
