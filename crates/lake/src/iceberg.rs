//! Tables that change, in Apache Iceberg's format: commits side by side, and what the table's history says of them.
//!
//! | module | what it holds |
//! |---|---|
//! | `metadata` | a version of a table |
//! | `manifest` | which data files a snapshot has |
//! | `rows` | rows, and the data files that they are stored in |
//! | `deletes` | files that say which rows are deleted |
//! | `files` | the files of a table, and every request for them counted |
//! | `commit` | how one of several committers makes the next version |
//! | `conditions` | whether storage heeds the condition |
//! | `load` | commits as operations of a load |
//! | `cycles` | steps of cycles as operations of a load: rows come and change, queries are asked, files are written together |
//! | `model` | what a table must contain after what was committed to it |
//! | `scan` | queries on a version by DataFusion, with every request metered |
//! | `history` | what the versions say when the load is over |
//! | `prepare` | tables made, guarded and removed, and what was done put on record |
//!
//! # What is the library's, and what is not
//!
//! The crate `iceberg` reads and writes versions, manifests and their lists. Its transactions are not used: they know neither a catalog
//! that consists of conditional writes, nor how many requests of which kind an attempt takes, nor any change but appends. It brings an
//! Arrow of its own beside the query engine's; rows are written and read with the query engine's.

mod commit;
mod conditions;
mod cycles;
mod deletes;
mod files;
mod history;
mod load;
mod manifest;
mod metadata;
mod model;
mod prepare;
mod rows;
mod scan;
#[cfg(test)]
mod tests;

pub use prepare::Changing;
