//! A client of Kubernetes' API servers.
//!
//! [`Client`] reaches an API server as `kubectl` does, asks it for objects, and watches what becomes of them. It knows no kinds:
//! whoever uses it declares the fields that it reads. Paths are written without a host, such as
//! `/api/v1/namespaces/bench/pods?labelSelector=a%3Db`.
//!
//! | module | idea |
//! |---|---|
//! | `kubeconfig` | where an API server is, and who asks |
//! | `client` | requests and answers |
//! | `watch` | what happens to objects, as it happens |
//! | `exec` | a command in a pod |

mod client;
mod exec;
mod kubeconfig;
mod watch;

pub use client::{Client, Failure, Which};
pub use exec::{Failed, Ran};
pub use watch::{Change, Watch};
