//! One thread's sockets, timers and slots over one epoll instance: what engines that speak over sockets share.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Reactor`], [`Socket`] | one thread's event loop, and its TCP and Unix sockets |
//! | [`Transport`] | a connection: plain, or TLS over it, from the start or later |
//! | [`Slots`] | a session: each slot one `async` loop, polled when it has something to do |
//! | [`Examples`], [`fault_of_io`] | why something failed: a class, and words for the first few |

mod failure;
mod reactor;
mod slots;
mod transport;

pub use failure::{Examples, fault_of_io, sentence_of_io};
pub use reactor::{Expired, Reactor, Ready, Socket};
pub use slots::{Mailbox, Slots, Spawn, Task};
pub use transport::{Broken, Tls, Transport};
