//! One module per command: read what it needs, call one library function, show the result.

pub(crate) mod block;
pub(crate) mod check;
pub(crate) mod document;
pub(crate) mod lab;
pub(crate) mod manual;
pub(crate) mod object;
pub(crate) mod outcome;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod runs;
mod table;
