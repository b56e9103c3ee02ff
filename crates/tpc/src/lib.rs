//! Decision support after TPC-H and TPC-DS, whatever runs it: queries and their parameters, the order of queries in streams, figures,
//! and answers.
//!
//! What follows them is TPC-H-like and TPC-DS-like, and no result of the TPC's benchmarks: those are audited. Clauses are those of the TPC Benchmark H
//! Standard Specification, revision 3.0.1.
//!
//! | module | what it holds |
//! |---|---|
//! | [`queries`] | the 22 queries |
//! | [`parameters`] | what is put into them |
//! | [`orders`] | their order in streams |
//! | [`executions`] | what is recorded of each execution |
//! | [`figures`] | power, throughput, and both in one number |
//! | [`answer`] | an answer in a few numbers, so that two can be compared |
//! | [`answers`] | answers that are known |
//! | [`ds`] | the queries of TPC-DS |

pub mod answer;
pub mod answers;
pub mod ds;
pub mod executions;
pub mod figures;
pub mod orders;
pub mod parameters;
pub mod queries;

/// How many queries there are.
pub const QUERIES: u8 = 22;
