//! What a Trino cluster is told and asked, whoever runs it: the lab as processes, Kubernetes as pods.
//!
//! | module | idea |
//! |---|---|
//! | `settings` | files of properties, and the catalog of tables in a bucket |
//! | `client` | statements, and which nodes have work |
//! | `reply` | what a coordinator replies to a statement |

mod client;
mod reply;
mod settings;

pub use client::{Given, active, ask, version, working};
pub use reply::{QueryError, Reply, Stats};
pub use settings::{Bucket, CATALOG, GENERATORS, generator, hive, properties};
