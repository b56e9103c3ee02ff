//! The analytics engine: decision support data sets, and queries on them.

mod answers;
mod books;
mod failure;
pub mod job;
mod lake;
mod make;
mod meter;
mod query;
pub mod sets;
mod tasks;
mod texts;
