//! Drivers as pods of Kubernetes: made for a run, waited for, removed.
//!
//! [`Cluster::start`] makes the objects of `tidemark_kubernetes::Drivers`;
//! what it gives is told which drivers have joined ([`Running::wait`]), says why others do not, and removes everything at the end.
//! While a run goes on nothing here is needed: drivers talk to their controller, and not to the API server.
//!
//! | module | idea |
//! |---|---|
//! | `cluster` | an API server: objects are made, listed and removed |
//! | `running` | the pods of one run |
//! | `objects` | what we read of its objects |
//! | `trouble` | why a driver does not come: pure |
//! | `error` | what went wrong, in a sentence |

mod cluster;
mod error;
mod objects;
mod running;
mod trouble;

pub use cluster::{Cluster, Found};
pub use error::PodsError;
pub use running::{Running, Waiting};
pub use tidemark_apiserver::Which;
