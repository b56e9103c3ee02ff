//! The closed list of ways in which an operation can fail.
//!
//! Engines map their protocol's errors onto these classes, so that one report serves all of them. Faults
//! are counted on the hot path and described off it; the first few of each class are kept word for word
//! as [`crate::record::Example`]s.

use crate::counts::Class;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $sentence:literal;)*) => {
        /// Why an operation failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        #[repr(u8)]
        pub enum Fault { $($(#[$doc])* $variant,)* }

        impl Fault {
            /// Every fault, in the order in which reports show them.
            pub const ALL: &'static [Fault] = &[$(Fault::$variant,)*];
            /// How many faults there are: the length of an array that counts them.
            pub const COUNT: usize = Self::ALL.len();

            /// The short name, as it stands in tables and in JSON.
            pub const fn name(self) -> &'static str { match self { $(Fault::$variant => $name,)* } }

            /// One plain sentence for people, without a full stop.
            pub const fn sentence(self) -> &'static str { match self { $(Fault::$variant => $sentence,)* } }
        }
    };
}

faults! {
    /// Nothing listened at the address.
    Refused = "refused", "the connection was refused";
    /// The peer closed or reset the connection before the reply was whole.
    Reset = "reset", "the connection was reset or closed before the reply was whole";
    /// No reply within the time allowed.
    Timeout = "timeout", "no reply came within the time allowed";
    /// The host's name could not be resolved, or the host could not be reached.
    Unreachable = "unreachable", "the host could not be resolved or reached";
    /// The TLS handshake or a record failed.
    Tls = "tls", "the TLS handshake or a TLS record failed";
    /// The reply was not valid for the protocol.
    Protocol = "protocol", "the reply was not valid for the protocol";
    /// The server throttles requests: 503 SlowDown, 429, 498.
    Throttled = "throttled", "the server throttled requests (503 SlowDown or 429)";
    /// 401 or 403: wrong credentials, wrong signature, no permission.
    Denied = "denied", "the server denied access (401 or 403)";
    /// 404: no such object, container or bucket.
    NotFound = "not_found", "the object, container or bucket does not exist (404)";
    /// 409.
    Conflict = "conflict", "the server reported a conflict (409)";
    /// 412, or 304 to a condition.
    Precondition = "precondition", "a condition of the request did not hold (412 or 304)";
    /// Any other 4xx, or a redirect that cannot be followed.
    ClientError = "client_error", "the server rejected the request (3xx or 4xx)";
    /// Any other 5xx.
    ServerError = "server_error", "the server failed (5xx)";
    /// The content was complete but its bytes were not those written.
    WrongContent = "wrong_content", "the content read is not the content written";
    /// The content is an older version than one already acknowledged.
    StaleContent = "stale_content", "the content read is older than an acknowledged write";
    /// The content ended before its declared size.
    TruncatedContent = "truncated_content", "the content read is shorter than what was written";
    /// The content belongs to another object.
    ForeignContent = "foreign_content", "the content read belongs to another object";
    /// An acknowledged write is not there: what was before it is, and still is when read again.
    LostContent = "lost_content", "an acknowledged write is lost: the block still has its earlier content";
    /// Parts of the block are from different writes.
    TornContent = "torn_content", "parts of the block read are from different writes";
    /// The block belongs at another place of the same set of volumes.
    MisplacedContent = "misplaced_content", "the block read belongs at another offset or volume";
    /// What a database returned contradicts what it has confirmed: an invariant of the data does not hold.
    BrokenInvariant = "broken_invariant", "the database returned data that break an invariant of what was committed";
    /// A query's answer is not the one that is known for it.
    WrongAnswer = "wrong_answer", "the answer of the query is not the known one";
    /// A transaction conflicted with others and was rolled back (SQLSTATE 40001), as often as the work allows.
    Serialization = "serialization", "the transaction conflicted with others and was rolled back, as often as it may be tried";
    /// A transaction was the victim of a deadlock (40P01, MySQL 1213), as often as the work allows.
    Deadlock = "deadlock", "the transaction was the victim of a deadlock, as often as it may be tried";
    /// A lock was waited for longer than the database allows (55P03, MySQL 1205).
    LockTimeout = "lock_timeout", "a lock was not granted within the time that the database allows";
    /// The connection was lost, or the server gave up, while a transaction was committed: it may have been.
    Ambiguous = "ambiguous", "the connection was lost in a COMMIT: whether the transaction was committed is not known";
    /// A statement violated a constraint of the database (class 23).
    Constraint = "constraint", "a statement violated a constraint of the database";
    /// The database refuses statements or connections for now: it starts, stops or recovers (class 57).
    Unavailable = "unavailable", "the database is starting, stopping or recovering";
    /// The database or query engine has run out of connections, memory or another resource (class 53).
    Overloaded = "overloaded", "the database or query engine has run out of connections, memory or another resource";
    /// The database rejected a statement for another reason.
    Sql = "sql_error", "the database rejected a statement";
    /// The device or file system reported an error (EIO and its kin).
    Io = "io_error", "the device or file system reported an I/O error";
    /// There was no space left for a write.
    NoSpace = "no_space", "there is no space left on the device or file system";
    /// The device or file is gone.
    Gone = "gone", "the device or file no longer exists";
    /// A transfer moved fewer bytes than requested.
    ShortTransfer = "short_transfer", "the transfer was shorter than requested: the object, file or device ends there";
    /// A volume was claimed and not bound within the time allowed.
    Unbound = "unbound", "the claim was not bound to a volume within the time allowed";
    /// No node was found for a pod within the time allowed.
    Unscheduled = "unscheduled", "the pod was not given a node within the time allowed";
    /// A volume was not attached and mounted within the time allowed.
    Unmounted = "unmounted", "the volume was not attached and mounted within the time allowed";
    /// The program of a pod did not start within the time allowed.
    Unstarted = "unstarted", "the program of the pod did not start within the time allowed";
    /// A change of a volume, or a copy of it, was not done within the time allowed.
    Unchanged = "unchanged", "the volume was not resized or copied within the time allowed";
    /// What was deleted is still there after the time allowed.
    Kept = "kept", "what was deleted is still there after the time allowed";
    /// A quota of the namespace is used up.
    Quota = "quota", "a quota of the namespace is used up";
    /// Something on this machine failed: a file could not be read, no local port was left.
    Local = "local", "the load generator's own machine failed";
    /// The run was stopped while the operation was in flight.
    Abandoned = "abandoned", "the operation was still in flight when the run was stopped";
}

impl Class for Fault {
    const ALL: &'static [Self] = Fault::ALL;

    #[inline]
    fn number(self) -> usize {
        self as usize
    }
}

impl Fault {
    /// Faults of the data itself, although the storage reported success.
    pub const CONTENT: [Fault; 9] = [
        Fault::WrongContent,
        Fault::StaleContent,
        Fault::TruncatedContent,
        Fault::ForeignContent,
        Fault::LostContent,
        Fault::TornContent,
        Fault::MisplacedContent,
        Fault::BrokenInvariant,
        Fault::WrongAnswer,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbering_is_dense_and_names_are_unique() {
        let mut names: Vec<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
        for (index, fault) in Fault::ALL.iter().enumerate() {
            assert_eq!(*fault as usize, index);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Fault::COUNT);
    }
}
