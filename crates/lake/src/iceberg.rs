//! Tables that change, in Apache Iceberg's format: commits side by side, and what the table's history says of them.
//!
//! | module | what it holds |
//! |---|---|
//! | `metadata` | a version of a table, and how the next one follows from it |
//! | `table` | a table's metadata in JSON |
//! | `manifest` | which data files a snapshot has |
//! | `records` | the records of manifests and their lists |
//! | `avro` | records as Avro files |
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
//! Tables are of version 2 of Iceberg's format, so that every reader of Iceberg tables reads them. Of the format, the parts that commits
//! and queries need are here: versions, manifests and their lists, for tables without partitions. What others have put into a version is
//! carried over; a table of another version of the format is read, and not changed. `apache-avro` encodes and decodes the records of
//! manifests, `parquet` and the query engine those of data files.
//!
//! The crate `iceberg` is not used: its transactions know neither a catalog that consists of conditional writes, nor how many requests of
//! which kind an attempt takes, and it brings an Arrow and a Parquet of its own beside the query engine's.

mod avro;
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
mod records;
mod rows;
mod scan;
mod table;
#[cfg(test)]
mod tests;

pub use prepare::Changing;
