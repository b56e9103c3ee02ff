//! Block devices and files: a native io_uring engine, seeded content with block stamps, and a guard.
//!
//! - [`engine`]: the load engine, and the content of a run ([`engine::DataSet`]);
//! - [`filled`], [`is_ours`], [`claim`], [`mark`]: whether a volume holds Tidemark's content already, and whose it is;
//! - [`guard`]: protects data from being overwritten;
//! - [`cache`]: the page cache of one volume, dropped on purpose;
//! - [`device`]: the kernel's facts about block devices.

mod arena;
pub mod cache;
mod content;
mod data;
pub mod device;
pub mod engine;
mod examples;
mod failure;
mod fill;
pub mod guard;
mod holders;
mod ring;
mod session;
mod signature;
mod volume;

pub use fill::{claim, filled, is_ours, mark};
