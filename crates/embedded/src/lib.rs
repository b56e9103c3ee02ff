//! An S3 server inside the process, for `make demo`, for tests, and for targets of the kind `embedded`.
//!
//! [`EmbeddedServer::start`] starts a private server on a free port within milliseconds. It stores objects in memory or in a
//! directory, counts every request exactly ([`Statistics`]), and fails on demand ([`Faults`]).
//!
//! A request passes three layers. `front` counts it and applies faults; `s3s` checks signatures and handles XML and HTTP;
//! `service` and its modules (`objects`, `multipart`, `listing`, `tagging`, `buckets`) carry it out on the `store`, which is a
//! `catalogue` in memory and a `backend` for bodies.
//!
//! The server answers path-style requests for the operations that a benchmark needs. It has no versions, access control lists,
//! lifecycle rules, encryption or TLS.

mod access;
mod backend;
mod body;
mod buckets;
mod catalogue;
mod conditions;
mod disk;
mod error;
mod fault;
mod faults;
mod front;
mod listing;
mod memory;
mod multipart;
mod names;
mod object_file;
mod objects;
mod operation;
mod options;
mod plan;
mod receive;
mod server;
mod service;
mod staged_file;
mod statistics;
mod store;
mod tagging;

pub use error::EmbeddedError;
pub use fault::Fault;
pub use faults::{FaultId, Faults};
pub use operation::Operation;
pub use options::{Credentials, EmbeddedOptions, Place, S3_MINIMUM_PART_BYTES};
pub use server::EmbeddedServer;
pub use statistics::{OperationStatistics, Statistics};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_counts_what_its_faults_have_struck() {
        let options = EmbeddedOptions { buckets: vec!["bench".into()], ..EmbeddedOptions::default() };
        let server = EmbeddedServer::start(options).unwrap();
        assert!(server.endpoint().starts_with("http://127.0.0.1:"), "{}", server.endpoint());
        assert!(!server.access_key().is_empty() && !server.secret_key().is_empty());
        let fault = Fault::slow_down().on(Operation::PutObject).with_probability(0.01);
        let id = server.faults().add(fault);
        assert_eq!(server.statistics().of(Operation::PutObject).failed, server.faults().struck(id));
    }
}
