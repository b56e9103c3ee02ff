//! The built binary, from outside: a module for each thing that it does, in one program, as each would be linked by itself.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a failed test may panic, and says what it does"
)]

mod api;
mod block;
mod buckets;
mod ceph;
mod claims;
mod command_line;
mod common;
mod console;
mod cross_check;
mod drivers;
mod embedded;
mod ending;
mod evaluation;
mod existing;
mod full_disk;
mod hostile;
mod impostors;
mod journal;
mod knee;
mod layouts;
mod limits;
mod losses;
mod memory;
mod namespaces;
mod observers;
mod older_store;
mod open_files;
mod operator;
mod power_cut;
mod prose;
mod rbd;
mod rbd_spellings;
mod security;
mod servers_on_kubernetes;
mod team;
mod tidy;
mod toolbox;
mod trino;
mod tune;
mod verification;
mod volumes;
mod watching;
mod zones;
