//! The object engine: S3 and OpenStack Swift over our own HTTP/1.1 client.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Objects`] | the engine as Tidemark sees it: from its documents' keys to what carries its works out |
//! | [`job`] | a work on object storage: its target and its actions |
//! | `document` | the keys of documents: declared and read |
//! | `forecast`, `policy` | what works will do, and what they touch on this machine |
//! | [`oneliner`] | the plan of a command line |
//! | `prepare` | targets made ready: embedded servers started, the others checked |
//! | [`sessions`] | from a job to the sessions that do it |
//! | [`preflight`] | one cheap request before the load: problems are reported once, in a sentence |
//! | [`conditions`] | whether a storage heeds the conditions of writes |
//! | `existing` | objects that somebody else wrote, listed when a run begins |
//! | [`content`] | what the bytes of an object are, and whether bytes read are those written |
//! | `s3`, `swift`, `mock` | the storage kinds: single attempts at operations |
//! | `operate` | what is around an attempt, whatever the protocol: content, retries, verification, words |
//! | `emptying` | how far the emptying of a container may go |
//! | `local` | files on this machine: uploaded, or written instead of objects |
//! | `sigv4` | AWS Signature Version 4 |
//! | `client` | one slot's HTTP client: a connection that is kept, one request after the other |
//! | [`http`] | responses decoded from pieces of any length |
//! | `endpoint` | where a server is and whom to trust |
//! | `secrets` | where the secrets of a target may be sent, and how they are kept out of what servers say |
//! | `failure` | why an operation failed: a class, and its words |
//! | [`store`] | a bucket for callers on other threads, such as a query engine's |
//! | [`targets`] | S3 targets of documents, for other engines |
//! | [`text`] | numbers and names as bytes |

mod client;
pub mod conditions;
pub mod content;
mod document;
mod emptying;
mod endpoint;
mod engine;
mod existing;
mod failure;
mod forecast;
pub mod http;
pub mod job;
mod local;
mod mock;
pub mod oneliner;
mod operate;
mod policy;
pub mod preflight;
mod prepare;
mod s3;
pub mod secrets;
pub mod sessions;
mod sigv4;
/// A bucket for callers on other threads, such as a query engine's.
pub mod store {
    pub use crate::s3::store::{Ask, Only, Part, Served, Store, StoreError};
}
mod swift;
pub mod targets;
pub mod text;

pub use engine::Objects;
