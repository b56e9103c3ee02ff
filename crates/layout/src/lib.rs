//! Brings storage up and down: the embedded object store and a lab of real daemons on this machine.

pub mod embedded;
pub mod lab;
