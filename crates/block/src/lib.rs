//! Block devices and files: a native io_uring engine, seeded content with block stamps, and a guard.
//!
//! - [`Blocks`]: the engine, as everybody else sees it;
//! - [`job`]: its part of a plan; `job::crosscheck`: a load of the native engine as fio does it;
//! - [`sessions`]: the load, and the content of a run ([`sessions::DataSet`]);
//! - [`External`]: the program that carries out what the native engine does not;
//! - [`filled`]: whether a volume holds already what a prefill would write;
//! - [`is_ours`], [`mark`]: whose a volume is;
//! - [`guard`]: protects data from being overwritten;
//! - [`method`]: what makes the numbers evidence: page cache dropped, device counters read;
//! - [`counters`]: what devices counted between two moments;
//! - [`cache`]: the page cache of one volume, dropped on purpose;
//! - [`device`]: the kernel's facts about block devices.

mod arena;
mod blocks;
pub mod cache;
mod content;
pub mod counters;
mod data;
pub mod device;
mod document;
mod examined;
mod examples;
mod external;
mod failure;
mod fill;
mod forecast;
pub mod guard;
mod holders;
mod identity;
pub mod job;
mod lock;
mod mark;
pub mod method;
mod mounts;
mod owner;
mod policy;
mod prepare;
mod ring;
mod session;
pub mod sessions;
mod signature;
mod stack;
mod volume;

pub use blocks::{Blocks, NAME};
pub use external::{External, Image, OsdBytes, OsdCounters, Program};
pub use fill::filled;
pub use mark::mark;
pub use owner::is_ours;
