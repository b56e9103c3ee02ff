//! Tables of decision support in Parquet files, and queries on them.
//!
//! What queries do, they do on threads of their own; the load core decides when they begin, and records when they end.
//!
//! | module | what it holds |
//! |---|---|
//! | [`rows`] | where the rows of tables come from |
//! | `texts` | the texts of queries, and their known answers |
//! | `prepare` | storage opened, what is there looked at, what was done put on record |
//! | `s3` | a bucket as the query engine sees it, over Tidemark's own client |
//! | `storage` | files, or a bucket of an S3 server |
//! | `lake` | the files of a set: recognised, counted, guarded, removed |
//! | [`make`] | tables made: rows generated, encoded, stored |
//! | `query` | queries in streams, whatever answers them |
//! | `embedded` | what answers them in this process: DataFusion |
//! | `trino` | what answers them elsewhere, and makes tables: a Trino cluster |
//! | `meter` | what storage sees of each query |
//! | `answers` | whether answers are right |
//! | `books` | what a work has done so far |
//! | `tasks` | operations that run on the threads of a runtime |
//! | `failure` | why something failed: a class, and its words |

mod answers;
mod books;
mod embedded;
pub(crate) mod failure;
mod lake;
pub mod make;
pub(crate) mod meter;
mod prepare;
mod query;
pub mod rows;
mod s3;
pub(crate) mod storage;
pub(crate) mod tasks;
mod texts;
mod trino;

pub use prepare::Tables;
