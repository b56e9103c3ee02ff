//! Exit codes; `cli.rs` documents them for users.

use tidemark_measure::record::State;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; the numbers are valid.
    Done = 0,
    /// Done, but a stage failed.
    Failed = 1,
    /// The command line or the document is wrong.
    Usage = 2,
    /// Not started.
    NotReady = 3,
    /// The run is INVALID.
    Invalid = 4,
    /// A comparison found the second better.
    Better = 5,
    /// A comparison found the second worse.
    Worse = 6,
    /// Nothing could be compared.
    NotCompared = 7,
    /// A comparison within a margin was inconclusive: more repeats would tell.
    Inconclusive = 8,
    /// An output could not be written.
    NotWritten = 9,
    /// Stopped by the user.
    Interrupted = 130,
}

impl Exit {
    /// Of a result, the same whether it was measured here, by a controller, or by another tool.
    pub(crate) const fn of(state: State, is_valid: bool, is_critical: bool) -> Self {
        match (state, is_valid, is_critical) {
            (State::Interrupted, ..) => Exit::Interrupted,
            (State::Failed, ..) => Exit::Failed,
            (_, false, _) => Exit::Invalid,
            (_, true, true) => Exit::Failed,
            (_, true, false) => Exit::Done,
        }
    }
}

/// Why a command failed: the sentence to print, and the exit code.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Stop {
    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    pub(crate) fn not_written(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::NotWritten, message: message.to_string() }
    }

    pub(crate) fn not_ready(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::NotReady, message: message.to_string() }
    }
}
