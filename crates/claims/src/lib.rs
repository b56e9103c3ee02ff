//! The engine for the life of volumes on Kubernetes: how long a storage class takes for each phase of it.
//!
//! **A life is a claim, a pod that writes to its volume and reads it back, perhaps a new size and copies, and its deletion.** Each phase is
//! a kind of operation with percentiles of its own. A phase ends when a watch says so: there is one watch for each kind of object for a
//! whole load, and the time of a phase is when its event arrived, by this process's monotonic clock. What the program in the pod did on
//! the volume it has measured itself.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Claims`] | the engine as Tidemark sees it |
//! | `document` | the keys of documents: the target and the load |
//! | [`job`] | a work on volumes, and the phases of a life |
//! | `survey` | what a cluster and a class have, and what is left out for it |
//! | `objects` | what is read of Kubernetes' objects |
//! | `manifests` | what is made: claims, pods, snapshots, and what owns them |
//! | `seen` | what watches have said so far: pure |
//! | `watching` | the watches of a load |
//! | `life` | one volume from its claim to its deletion |
//! | `books` | the seconds of a load, and what failed |
//! | `lives` | lives begun when they are due |
//! | `failure` | why a phase failed: a class and its words |
//! | [`leftovers`] | what runs have left behind, and its removal |
//! | [`probe`] | the program in the pods |
//! | `prepare` | a run made ready, and its evidence |
//! | `forecast` | what works will do |

mod books;
mod document;
mod engine;
mod failure;
mod forecast;
pub mod job;
pub mod leftovers;
mod life;
mod lives;
mod manifests;
mod objects;
mod prepare;
pub mod probe;
mod seen;
mod survey;
mod watching;

pub use engine::Claims;
