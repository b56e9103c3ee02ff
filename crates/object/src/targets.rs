//! S3 targets of documents, for other engines whose data are objects: the same keys, read in the same way.

pub use crate::document::target::{KIND_EMBEDDED as EMBEDDED, KIND_S3 as S3};
pub use crate::prepare::Running;

use crate::document::target;
use crate::job::Target;
use tidemark_keys::Table;

/// Reads the mapping of a target whose `kind` is that of [`S3`] or [`EMBEDDED`]; `None` after an error that leaves nothing to go on
/// with.
pub fn read(kind: &str, table: &mut Table<'_>) -> Option<Target> {
    target::target(kind, table)
}
