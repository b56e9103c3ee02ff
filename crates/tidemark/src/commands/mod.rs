//! One module per command: read what it needs, call one library function, show the result.

mod assessment;
pub(crate) mod block;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod document;
pub(crate) mod driver;
mod evaluate;
pub(crate) mod import;
pub(crate) mod kubernetes;
pub(crate) mod lab;
pub(crate) mod layout;
pub(crate) mod login;
pub(crate) mod manual;
pub(crate) mod object;
pub(crate) mod observe;
pub(crate) mod outcome;
mod reference;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
mod settings;
pub(crate) mod submissions;
mod table;
pub(crate) mod token;
pub(crate) mod tune;
pub(crate) mod watch;
