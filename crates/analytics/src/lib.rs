//! The analytics engine: tables of decision support in Parquet files, and queries on them.
//!
//! **A document names a set of tables and where they are; the tables are made once; queries in streams are the operations of the
//! load.** A stream is a worker that goes through its queries in order.
//!
//! This crate has what every process needs to know of such works: how they are read, forecast and placed. What carries them out is
//! the program `tidemark-lake`, which brings a query engine along (`crates/lake`).
//!
//! | module | what it holds |
//! |---|---|
//! | [`Analytics`] | the engine as Tidemark sees it |
//! | `document` | the keys of documents: the target, and the works |
//! | [`job`] | a work on tables: target, set, purpose |
//! | [`sets`] | which tables there are |
//! | `texts` | the names of queries, and their order in streams |
//! | [`place`] | the keys that say where tables are |
//! | `forecast` | what works will do and need |

mod document;
mod engine;
mod forecast;
pub mod job;
pub mod place;
pub mod sets;
mod texts;

pub use engine::Analytics;
