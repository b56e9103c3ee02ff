//! The object engine: S3 and OpenStack Swift over our own HTTP/1.1 client.

pub mod client;
pub mod content;
pub mod endpoint;
pub mod engine;
pub mod failure;
pub mod http;
pub mod lanes;
pub mod local;
pub mod mock;
mod operate;
pub mod preflight;
pub mod reactor;
pub mod s3;
pub mod sigv4;
pub mod swift;
pub mod text;
pub mod transport;
