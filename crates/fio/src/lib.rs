//! Runs the user's fio and imports what it measured.
//!
//! | question | answered by |
//! |---|---|
//! | is there a fio, and which engines has it? | [`program`] |
//! | what is a native cell in fio's words? | [`jobfile`] |
//! | what did fio write? | [`json`] |
//! | how do its cumulative reports become seconds and totals? | `import`, `ledger` |
//! | who starts, follows and ends it? | [`run`](mod@run), `children` |
//! | is the RBD image there? | [`rbd`] |

mod children;
mod import;
pub mod jobfile;
pub mod json;
mod ledger;
pub mod program;
pub mod rbd;
pub mod run;
mod stderr;

pub use program::{Fio, FioError};
pub use run::run;
pub use stderr::class;
