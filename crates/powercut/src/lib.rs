//! A file system that holds, after a power cut, what a disk would hold: what was synced.
//!
//! It keeps what a program has synced in a directory, its *store*, and everything else in the memory of the process that
//! serves it. To cut the power is to kill that process: whoever opens the store next finds what was synced, and nothing
//! else. So no code is needed to forget, and none can forget too little.
//!
//! # What a cut leaves
//!
//! The model is that of ext4 with ordered data, reduced to what it promises to a program that calls fsync(2):
//!
//! - **Content of a file**, with its size: as it was at the last fsync(2), fdatasync(2), or msync(2) with `MS_SYNC` of it
//!   that returned, or at the last write through a descriptor with `O_SYNC` or `O_DSYNC`, or with `RWF_SYNC` or
//!   `RWF_DSYNC`. Writes, truncations, holes and allocations after that are gone, all of them, also those through
//!   `O_DIRECT` or a shared mapping.
//! - **Names**: creations, links, renames and removals, of files and of directories, and changes of mode and owner, are one
//!   journal, in the order in which they happened. An fsync(2) of any directory makes the whole journal durable; so
//!   does a sync of a file's content if the file itself was created, linked, renamed or changed in mode or owner since
//!   the journal last became durable. What follows the last such sync is undone.
//! - A file whose name is durable and whose content never was is empty. A file whose removal is not durable is there
//!   again with its durable content.
//! - **A sync that had not returned** has left any part of what it was to write, in units of bytes, and of the journal
//!   any part from its beginning.
//! - Under pressure, when more than [`DIRTY_BYTES`] are not synced, the content of the file with the most of them is
//!   written back, as a kernel would: a cut may leave more than was promised.
//! - Times are not part of the promise. sync(2) and syncfs(2) do not reach a file system in user space, and
//!   sync_file_range(2) promises nothing on any: they make nothing durable here. There are no extended attributes
//!   and no special files.
//!
//! The store survives the end of the process, however it ends. It does not survive a power cut of the machine
//! itself any better than files that nobody syncs: it is for tests of what others sync.

mod content;
mod journal;
mod mount;
mod volume;

pub use mount::Mounted;
pub use volume::DIRTY_BYTES;
