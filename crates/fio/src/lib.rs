//! Runs the user's fio and imports what it measured.
//!
//! | question | answered by |
//! |---|---|
//! | what does everybody else see? | [`Fio`], [`JobFiles`] |
//! | what does a job file say? | `document`, [`FioFile`] |
//! | what may a job file do that came over the network? | `policy` |
//! | what is guarded, and what runs a stage? | `prepare`, `surroundings` |
//! | what is at the paths that it names, and is it still? | `examined` |
//! | where may fio write? | `domain`, `logs` |
//! | is there a fio, and which engines has it? | [`program`] |
//! | what is a native cell in fio's words? | [`jobfile`] |
//! | what did fio write? | [`json`] |
//! | how do its cumulative reports become seconds and totals? | `import`, `ledger` |
//! | who starts, follows and ends it? | [`run`](mod@run), `children` |
//! | is the RBD image there, and who removes it? | [`rbd`], `images` |
//! | what did its cluster's OSDs count? | `osds` |

mod children;
mod document;
mod domain;
mod examined;
mod file;
mod fio;
mod formats;
mod images;
mod import;
pub mod jobfile;
pub mod json;
mod ledger;
mod logs;
mod osds;
mod policy;
mod prepare;
pub mod program;
pub mod rbd;
pub mod run;
mod stderr;
mod surroundings;

pub use document::waits_for_each;
pub use file::{FioFile, Log, Use};
pub use fio::{Fio, NAME};
pub use formats::JobFiles;
pub use program::{FioError, Program};
pub use run::run;
pub use stderr::class;
