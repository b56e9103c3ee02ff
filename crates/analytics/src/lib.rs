//! The analytics engine: tables of decision support in Parquet files, and queries on them.
//!
//! **A document names a set of tables and where they are; the tables are made once; queries in streams are the operations of the
//! load.** A stream is a worker that goes through its queries in order. What queries do, they do on threads of their own; the load
//! core decides when they begin, and records when they end.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Analytics`] | the engine as Tidemark sees it |
//! | `document` | the keys of documents: the target, and the works |
//! | [`job`] | a work on tables: target, set, purpose |
//! | [`sets`] | which tables there are, and where their rows come from |
//! | `texts` | the texts of queries, and their order in streams |
//! | [`place`] | the keys that say where tables are |
//! | `prepare` | storage opened, what is there looked at, what was done put on record |
//! | `s3` | a bucket as the query engine sees it, over Tidemark's own client |
//! | [`storage`] | files, or a bucket of an S3 server |
//! | `lake` | the files of a set: recognised, counted, guarded, removed |
//! | [`make`] | tables made: rows generated, encoded, stored |
//! | `query` | queries in streams, whatever answers them |
//! | `embedded` | what answers them inside Tidemark: DataFusion |
//! | `trino` | what answers them elsewhere, and makes tables: a Trino cluster |
//! | [`meter`] | what storage sees of each query |
//! | `answers` | whether answers are right |
//! | `books` | what a work has done so far |
//! | [`tasks`] | operations that run on the threads of a runtime |
//! | [`failure`] | why something failed: a class, and its words |
//! | `forecast` | what works will do and need |
//!
//! What is public beside the engine, other engines on tables use as well.

mod answers;
mod books;
mod document;
mod embedded;
mod engine;
pub mod failure;
mod forecast;
pub mod job;
mod lake;
pub mod make;
pub mod meter;
pub mod place;
mod prepare;
mod query;
mod s3;
pub mod sets;
pub mod storage;
pub mod tasks;
mod texts;
mod trino;

pub use engine::Analytics;
