//! Evaluations as resources of Kubernetes: a small operator carries them out one at a time, and writes back what they come to.
//!
//! [`operate`] watches the Evaluations of one namespace. How an evaluation is carried out is not known here: that is a [`Carrier`].
//! Nothing is remembered but what is in the resources and on the volume, so an operator that is killed goes on when it is started again.
//!
//! | module | idea |
//! |---|---|
//! | `resource` | an Evaluation: what is wanted, and what became of it |
//! | `decide` | what to do next: pure |
//! | `operator` | the loop: what is seen, what is started and stopped, what is written |
//! | `report` | the ConfigMap with the report |
//! | `starts` | an Evaluation that takes its operator along is given up |
//! | `volume` | where results are kept, and when they are removed |
//! | `manifests` | what is installed in a cluster |

mod decide;
mod manifests;
mod operator;
mod report;
mod resource;
mod starts;
mod volume;

pub use manifests::{Install, manifests};
pub use operator::{Carrier, Follow, OperatorError, Outcome, Result, Task, operate};
pub use resource::{Drivers, GROUP, Spec, Variable};
