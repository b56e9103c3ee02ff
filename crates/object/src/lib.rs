//! The object engine: S3 and OpenStack Swift over our own HTTP/1.1 client.
//!
//! | module | what it holds |
//! |---|---|
//! | [`engine`] | from a job to the engine that does it |
//! | [`preflight`] | one cheap request before the load: problems are reported once, in a sentence |
//! | [`content`] | what the bytes of an object are, and whether bytes read are those written |
//! | `s3`, `swift`, `mock` | the storage kinds: single attempts at operations |
//! | `operate` | what is around an attempt, whatever the protocol: content, retries, verification, words |
//! | `local` | files on this machine: uploaded, or written instead of objects |
//! | `sigv4` | AWS Signature Version 4 |
//! | `client` | one slot's HTTP client: a connection that is kept, one request after the other |
//! | [`http`] | responses decoded from pieces of any length |
//! | `transport`, `endpoint` | plain TCP or TLS; where a server is and whom to trust |
//! | `slots` | the session: each slot one `async` loop, polled when it has something to do |
//! | `reactor` | one thread's sockets, timers and slots over one epoll instance |
//! | `failure` | why an operation failed: a class, and words for the first few |
//! | [`text`] | numbers and names as bytes |

mod client;
pub mod content;
mod endpoint;
pub mod engine;
mod failure;
pub mod http;
mod local;
mod mock;
mod operate;
pub mod preflight;
mod reactor;
mod s3;
mod sigv4;
mod slots;
mod swift;
pub mod text;
mod transport;
