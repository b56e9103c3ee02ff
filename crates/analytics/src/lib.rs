//! The analytics engine: decision support data sets, and queries on them.
