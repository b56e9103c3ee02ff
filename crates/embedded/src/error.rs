//! Errors of starting and controlling an embedded server.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why an embedded server could not be started, or why a fault could not be placed.
///
/// The operating system's message is the [`source`](std::error::Error::source) of an error, not part of its text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// An option has a value that cannot work.
    #[error("option `{option}` of the embedded store is not usable: {reason}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}; choose a free address, or port 0 for any free port")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The server's thread or its runtime cannot be created.
    #[error(
        "cannot start the threads of the embedded store; check the limits on threads and open files (ulimit -a)"
    )]
    Threads(#[source] std::io::Error),
    /// No random keys can be drawn.
    #[error("cannot draw random credentials from /dev/urandom; give credentials in the options instead")]
    Randomness(#[source] std::io::Error),
    /// The directory cannot be read or written.
    #[error("cannot use `{}` as the directory of an embedded store; check its permissions and free space", path.display())]
    Directory {
        /// The directory or the file in it.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The directory holds something else.
    #[error(
        "`{}` holds files but is not the directory of an embedded store; give an empty or a new directory",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// Another server has the directory open.
    #[error("`{}` is in use by another embedded store; stop that one or choose another directory", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The object to corrupt does not exist.
    #[error("there is no object `{key}` in bucket `{bucket}`; store it before corrupting it")]
    NoSuchObject {
        /// The bucket.
        bucket: String,
        /// The key.
        key: String,
    },
    /// The byte to corrupt does not exist.
    #[error(
        "object `{key}` in bucket `{bucket}` has {size} bytes, so none at offset {offset}; choose a lower offset"
    )]
    PastEnd {
        /// The bucket.
        bucket: String,
        /// The key.
        key: String,
        /// The object's size in bytes.
        size: u64,
        /// The offset asked for, in bytes.
        offset: u64,
    },
}
