//! Why an operation failed: a class that is counted, and words for the first few of each class.

use std::borrow::Cow;
use tidemark_measure::fault::Fault;
use tidemark_reactor::{Broken, fault_of_io, sentence_of_io};

/// Why an attempt, or a whole operation, failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Its class.
    pub fault: Fault,
    /// The status with which the server replied, if it did.
    pub status: Option<u16>,
    /// What happened, without what was attempted, e.g. `404 NoSuchKey: no such key`; never a secret.
    pub text: Cow<'static, str>,
    /// Whether the request may have had an effect: it was sent, and the server did not say that it refused.
    pub in_doubt: bool,
}

impl Failure {
    /// A failure before anything was sent, or after the server's refusal.
    pub(crate) fn without_effect(fault: Fault, text: impl Into<Cow<'static, str>>) -> Self {
        Self { fault, status: None, text: text.into(), in_doubt: false }
    }

    /// A failure that leaves open whether the request had an effect.
    pub(crate) fn in_doubt(fault: Fault, text: impl Into<Cow<'static, str>>) -> Self {
        Self { fault, status: None, text: text.into(), in_doubt: true }
    }

    /// A failure with a status that the protocol does not explain further.
    pub(crate) fn status(status: u16, text: impl Into<Cow<'static, str>>) -> Self {
        let in_doubt = !(400..500).contains(&status);
        Self { fault: fault_of_status(status), status: Some(status), text: text.into(), in_doubt }
    }

    /// What became of a connection that broke after (part of) a request was sent.
    pub(crate) fn broken(error: &Broken) -> Self {
        Self { in_doubt: true, ..Self::unconnected(error) }
    }

    /// Why there is no connection.
    pub(crate) fn unconnected(error: &Broken) -> Self {
        match error {
            Broken::Expired(expired) => Self::without_effect(Fault::Timeout, expired.to_string()),
            Broken::Tls(error) => Self::without_effect(Fault::Tls, format!("TLS failed: {error}")),
            Broken::Io(error) => Self::without_effect(fault_of_io(error), sentence_of_io(error)),
        }
    }

    /// Whether another attempt may succeed: nothing about the request itself was wrong.
    pub(crate) fn is_retryable(&self) -> bool {
        use Fault::{Refused, Reset, ServerError, Throttled, Timeout, Unreachable};
        matches!(self.fault, Refused | Reset | Timeout | Unreachable | Throttled | ServerError)
    }
}

/// The class of a status outside 2xx.
pub(crate) fn fault_of_status(status: u16) -> Fault {
    match status {
        304 | 412 => Fault::Precondition,
        401 | 403 => Fault::Denied,
        404 => Fault::NotFound,
        408 => Fault::Timeout,
        409 => Fault::Conflict,
        429 | 498 | 503 => Fault::Throttled,
        300..500 => Fault::ClientError,
        500.. => Fault::ServerError,
        _ => Fault::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_class() {
        let classes = [(301, Fault::ClientError), (304, Fault::Precondition), (400, Fault::ClientError)];
        let more = [
            (403, Fault::Denied),
            (429, Fault::Throttled),
            (500, Fault::ServerError),
            (503, Fault::Throttled),
        ];
        for (status, fault) in classes.into_iter().chain(more) {
            assert_eq!(fault_of_status(status), fault, "{status}");
        }
        assert_eq!(fault_of_status(204), Fault::Protocol);
        assert!(!Failure::status(403, "").in_doubt && Failure::status(503, "").in_doubt);
        assert!(Failure::status(503, "").is_retryable() && !Failure::status(404, "").is_retryable());
    }
}
