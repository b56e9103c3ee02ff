//! Why a statement or a transaction failed: a class that is counted, the server's words, and what that means for the
//! transaction.

use std::borrow::Cow;
use tidemark_measure::fault::Fault;
use tidemark_measure::line::one_line;
use tidemark_reactor::{Broken, fault_of_io, sentence_of_io};

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its class.
    pub fault: Fault,
    /// The server's code, if it gave one: `40001`.
    pub code: Option<[u8; 5]>,
    /// What happened, in the server's words where it has some; never a secret, never a parameter.
    pub text: Cow<'static, str>,
    /// Whether the connection is gone or cannot be used on.
    pub lost: bool,
}

impl Failure {
    /// A failure after which the connection goes on.
    pub fn new(fault: Fault, text: impl Into<Cow<'static, str>>) -> Self {
        Self { fault, code: None, text: text.into(), lost: false }
    }

    /// A failure of the connection.
    pub fn lost(fault: Fault, text: impl Into<Cow<'static, str>>) -> Self {
        Self { lost: true, ..Self::new(fault, text) }
    }

    /// What the server sent is not valid for its protocol.
    pub fn malformed(what: impl Into<Cow<'static, str>>) -> Self {
        Self::lost(Fault::Protocol, what)
    }

    /// A connection that could not be made, or broke.
    pub fn broken(error: &Broken) -> Self {
        match error {
            Broken::Expired(expired) => Self::lost(Fault::Timeout, expired.to_string()),
            Broken::Tls(error) => Self::lost(Fault::Tls, format!("TLS failed: {error}")),
            Broken::Io(error) => Self::lost(fault_of_io(error), sentence_of_io(error)),
        }
    }

    /// What the server refused, by its SQLSTATE (PostgreSQL documentation, appendix A).
    pub fn refused(code: [u8; 5], text: &str) -> Self {
        Self { code: Some(code), ..Self::new(fault_of_state(code), words(text)) }
    }

    /// Whether the transaction has had no effect and may succeed if it is done again.
    pub fn is_retryable(&self) -> bool {
        matches!(self.fault, Fault::Serialization | Fault::Deadlock | Fault::LockTimeout)
    }

    /// The same failure where nobody can tell any more whether the transaction was committed: it is never tried again.
    pub fn ambiguous(self) -> Self {
        let text = format!("{}: whether the transaction was committed is not known", self.text);
        Self { fault: Fault::Ambiguous, text: text.into(), ..self }
    }

    /// Its code and its words, and what to do about it where that is not the words' own affair.
    pub fn describe(&self) -> String {
        let said = match self.code.as_ref().and_then(|code| std::str::from_utf8(code).ok()) {
            Some(code) => format!("{} {}", words(code), self.text),
            None => self.text.to_string(),
        };
        match self.advice() {
            Some(advice) => format!("{said}; {advice}"),
            None => said,
        }
    }

    fn advice(&self) -> Option<&'static str> {
        match self.code.as_ref()? {
            b"25006" => Some(
                "the session may only read: name the primary, and look for default_transaction_read_only on the server, the \
                 database and the user",
            ),
            b"42501" => Some(
                "grant the user that privilege: a data set needs CREATE on the schema, and a load reads and writes its tables",
            ),
            _ => None,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.describe())
    }
}

impl From<Broken> for Failure {
    fn from(error: Broken) -> Self {
        Self::broken(&error)
    }
}

/// The longest message of a server that is kept, characters.
const MOST_WORDS: usize = 300;

/// A server's message as one line of bounded length, so that it cannot pass for lines of our own.
pub(crate) fn words(text: &str) -> String {
    one_line(text, MOST_WORDS)
}

/// The class of an SQLSTATE. CockroachDB uses the same; other databases map their codes to these.
fn fault_of_state(code: [u8; 5]) -> Fault {
    match &code {
        b"40001" | b"CR000" => Fault::Serialization,
        b"40P01" => Fault::Deadlock,
        b"55P03" => Fault::LockTimeout,
        b"40003" | b"08007" => Fault::Ambiguous,
        b"57014" => Fault::Timeout,
        b"53100" => Fault::NoSpace,
        b"58030" => Fault::Io,
        b"42501" | b"25006" => Fault::Denied,
        _ => match &code[..2] {
            b"23" => Fault::Constraint,
            b"28" => Fault::Denied,
            b"53" => Fault::Overloaded,
            b"57" => Fault::Unavailable,
            b"58" | b"XX" => Fault::ServerError,
            b"08" => Fault::Reset,
            _ => Fault::Sql,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_one_line_of_bounded_length() {
        let told = Failure::refused(*b"28000", "no\r\nVALID  fake \u{1b}[2J\u{2028}more").to_string();
        assert_eq!(told, "28000 no VALID  fake [2J more");
        let long = Failure::refused(*b"28000", &"Z\n".repeat(1_000_000)).to_string();
        assert!(long.chars().count() < 620 && long.ends_with('…'), "{}", long.len());
    }

    #[test]
    fn states_have_classes_and_only_conflicts_are_tried_again() {
        let of = |code: &[u8; 5]| Failure::refused(*code, "words");
        for (code, fault, again) in [
            (b"40001", Fault::Serialization, true),
            (b"40P01", Fault::Deadlock, true),
            (b"55P03", Fault::LockTimeout, true),
            (b"40003", Fault::Ambiguous, false),
            (b"23505", Fault::Constraint, false),
            (b"28P01", Fault::Denied, false),
            (b"53300", Fault::Overloaded, false),
            (b"57P01", Fault::Unavailable, false),
            (b"42P01", Fault::Sql, false),
        ] {
            let failure = of(code);
            assert_eq!((failure.fault, failure.is_retryable()), (fault, again), "{failure}");
        }
        assert_eq!(of(b"40001").to_string(), "40001 words");
        assert!(
            of(b"25006").to_string().starts_with("25006 words; the session may only read: name the primary")
        );
        assert!(of(b"42501").to_string().starts_with("42501 words; grant the user that privilege"));
        let unknown = of(b"40001").ambiguous();
        assert!(!unknown.is_retryable(), "a lost COMMIT is never tried again");
    }
}
