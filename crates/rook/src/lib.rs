//! Layouts on Kubernetes, put into effect: applied, waited for, compared with what is there, destroyed.
//!
//! A [`Placed`] is a layout and the Kubernetes that it is for. Rook makes the cluster of what is applied; what is known of it here
//! is what Rook writes into the status of its resources. [`Rook`] is the same for the arms of an evaluation.
//!
//! | module | idea |
//! |---|---|
//! | `placed` | a layout and an API server: its resources are read |
//! | `kinds` | where an API server has each kind of resource |
//! | `before` | what must be there before a layout is applied |
//! | `apply` | resources are made or changed |
//! | `standing` | what a resource says of itself: pure |
//! | `wait` | until all is ready, or why it is not |
//! | `drift` | what differs from the document: pure |
//! | `status` | what there is against what the document says |
//! | `devices` | which devices may be wiped: pure |
//! | `destroy` | what is there is removed, consumers first |
//! | `provisioner` | layouts as arms |
//! | `error` | what went wrong, in a sentence |

mod apply;
mod before;
mod destroy;
mod devices;
mod drift;
mod error;
mod kinds;
mod placed;
mod provisioner;
mod standing;
mod status;
mod wait;

pub use apply::{Applied, Change};
pub use destroy::Destroy;
pub use devices::Device;
pub use drift::Difference;
pub use error::RookError;
pub use placed::Placed;
pub use provisioner::Rook;
pub use standing::{Standing, State};
pub use status::{Part, Status};
pub use tidemark_apiserver::Which;
pub use wait::Patience;
