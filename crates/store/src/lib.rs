//! The result store: one SQLite file, one writer.
//!
//! A run is stored when it starts ([`Store::begin`]), its seconds while it is in progress ([`Store::append`]), the whole
//! record when it ends ([`Store::finish`]). Nothing in the store is needed to finish a run: when it fails, the
//! caller continues with what it has in memory.
//!
//! A minute of a work with two operations takes 0.27 MB at 1 000 op/s and 1.0 MB at 50 000 op/s (log-normal
//! latencies with first bytes; `a_minute_takes_little_room` prints it).
//!
//! | module | what it holds |
//! |---|---|
//! | `store` | the store and its list of runs |
//! | `evaluations` | evaluations, and the runs that belong to them |
//! | `listed` | the history: runs with their figures and what users wrote beside them, and submissions without a run |
//! | `operations` | the numbers of every operation of every run, for lists over all of them |
//! | `submissions` | documents submitted to a controller, and their results |
//! | `tokens` | who may use a controller |
//! | `audit` | who did what |
//! | `lock` | one controller per store |
//! | `schema` | the tables, and how older files are brought up to date |
//! | `codec` | how records and seconds are written into blobs |
//! | `recover` | the results of a run whose process died |
//! | `owner` | whether the process of a run still lives |
//! | `error` | errors, with advice |

mod audit;
mod codec;
mod error;
mod evaluations;
mod listed;
mod lock;
mod operations;
mod owner;
mod recover;
mod schema;
mod store;
mod submissions;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tokens;

pub use audit::{AuditEntry, REFUSED};
pub use error::StoreError;
pub use evaluations::EvaluationSummary;
pub use listed::{Figures, History, HistoryRow, Order, Remark, Wanted};
pub use lock::{Lock, controller_lock};
pub use operations::OperationRow;
pub use store::{DriverSecond, Listing, RunSummary, Store};
pub use submissions::Submission;
pub use tokens::Token;

use std::ffi::OsString;
use std::path::PathBuf;

/// The store's default path: `$TIDEMARK_STORE`, else `tidemark/results.db` in
/// `$XDG_DATA_HOME`, else in `~/.local/share`, else in the working directory.
pub fn default_path() -> PathBuf {
    path_from(|name| std::env::var_os(name))
}

fn path_from(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    // An empty variable counts as unset, as in the XDG base directory specification.
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(store) = path("TIDEMARK_STORE") {
        return store;
    }
    let home = || path("HOME").map(|home| home.join(".local/share"));
    // The specification says to ignore relative paths.
    let data = path("XDG_DATA_HOME").filter(|path| path.is_absolute()).or_else(home);
    data.unwrap_or_default().join("tidemark/results.db")
}
