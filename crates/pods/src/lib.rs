//! Drivers and servers as pods of Kubernetes: made for a run, waited for, removed.
//!
//! [`Cluster::start`] makes the objects of `tidemark_kubernetes::Drivers`;
//! what it gives is told which drivers have joined ([`Running::wait`]), says why others do not, and removes everything at the end.
//! While a run goes on nothing here is needed: drivers talk to their controller, and not to the API server. A [`Watcher`] only looks on,
//! for the timeline of what was lost.
//!
//! | module | idea |
//! |---|---|
//! | `cluster` | an API server: objects are made, listed and removed |
//! | `made` | what runs make, and what owns it |
//! | `servers` | what all servers have in common |
//! | `databases` | database servers: made, ready, at which addresses |
//! | `trino` | a Trino cluster: made, until all of it has work |
//! | `provisioner` | servers for an arm of an evaluation |
//! | `bucket` | the bucket that a run claims |
//! | `running` | the pods of one run |
//! | `objects` | what we read of its objects |
//! | `trouble` | why a pod does not come: pure |
//! | `watcher` | pods and nodes, watched while a run goes on |
//! | `observers` | the observers of the cluster's nodes |
//! | `toolbox` | Ceph, asked through Rook's toolbox |
//! | `changes` | what happened, from two looks at an object: pure |
//! | `error` | what went wrong, in a sentence |

mod bucket;
mod changes;
mod cluster;
mod databases;
mod error;
mod made;
mod objects;
mod observers;
mod provisioner;
mod running;
mod servers;
mod toolbox;
mod trino;
mod trouble;
mod watcher;

pub use bucket::Bucket;
pub use cluster::{Cluster, Found};
pub use error::PodsError;
pub use made::Made;
pub use observers::Observers;
pub use provisioner::{Arms, manifests};
pub use running::{Running, Waiting};
pub use tidemark_apiserver::Which;
pub use watcher::Watcher;
