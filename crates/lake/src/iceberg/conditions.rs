//! Whether storage heeds the condition that commits rely on, found out before a load.
//!
//! Storage that ignores it overwrites a version that somebody else has made, and reports success: commits are lost, and nobody is
//! told. Only a write shows, so a small file of its own is written beside the table's versions, written again on the condition that
//! it is not there, and deleted.

use crate::iceberg::files::{Files, Only};
use crate::tables::failure::Failure;
use bytes::Bytes;
use tidemark_iceberg::commits::{Condition, TableFile};
use tidemark_measure::fault::Fault;

/// Asks the storage of a table; `unique` sets the file apart from those of others who ask.
pub(crate) async fn ask(files: &Files, unique: u64) -> Condition {
    let path = files.metadata(&format!("tidemark-condition-{unique:016x}"));
    let write = |only| files.write(TableFile::Metadata, &path, Bytes::from_static(b"condition"), only);
    if write(Only::Always).await.is_err() {
        return Condition::Unknown;
    }
    let again = write(Only::IfAbsent).await;
    // What cannot be deleted is a small file whose name says where it comes from.
    let _ = files.delete(TableFile::Metadata, &path).await;
    match again {
        Ok(()) => Condition::Ignored,
        Err(Failure { fault: Fault::Precondition | Fault::Conflict, .. }) => Condition::Heeded,
        Err(_) => Condition::Unknown,
    }
}
