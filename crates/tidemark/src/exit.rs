//! Exit codes: what they mean is written in `cli.rs`, for users.

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; the numbers stand.
    Done = 0,
    /// Done, but a stage failed.
    Failed = 1,
    /// The command line or the document is wrong.
    Usage = 2,
    /// Could not begin.
    NotReady = 3,
    /// The numbers are not what they seem.
    Invalid = 4,
    /// A comparison found the second better.
    Better = 5,
    /// A comparison found the second worse.
    Worse = 6,
    /// Nothing could be compared.
    NotCompared = 7,
    /// Ended by the user.
    Interrupted = 130,
}

/// Why a command ended without doing its work: the sentence to print, and the code to end with.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Stop {
    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    pub(crate) fn not_ready(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::NotReady, message: message.to_string() }
    }
}
