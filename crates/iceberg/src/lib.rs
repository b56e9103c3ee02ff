//! The engine for tables that change: commits to Apache Iceberg tables, side by side, and what the table's history says of them.
//!
//! **A table is files in a bucket; its newest version is the one with the highest number; whoever writes the next number first has
//! made it.** That is how Iceberg's tables in a file system work, with `If-None-Match: *` in place of a rename that does not replace. So
//! all that a commit needs of storage is one conditional write, and storage that ignores the condition loses commits. Each operation of
//! a load is a commit; after the load, the history is read back and compared with what was acknowledged.
//!
//! This crate has what every process needs to know of such works: how they are read, forecast and placed. What carries them out is
//! the program `tidemark-lake` (`crates/lake`).
//!
//! | module | what it holds |
//! |---|---|
//! | [`Iceberg`] | the engine as Tidemark sees it |
//! | `document` | the keys of documents: the target, and the works |
//! | [`job`] | a work on a table: target, table, purpose |
//! | `forecast` | what works will do and need |
//! | [`commits`], [`cycles`] | the evidence: its data, rules, words, and sections of reports |

pub mod commits;
pub mod cycles;
mod document;
mod engine;
mod forecast;
pub mod job;

pub use engine::Iceberg;
