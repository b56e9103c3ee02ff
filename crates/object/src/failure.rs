//! Why an operation failed: a class that is counted, and words for the first few of each class.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io;
use tidemark_load::thread_pool::EXAMPLES_PER_FAULT;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Example;

use crate::transport::Broken;

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
            Broken::Expired(_) => Self::without_effect(Fault::Timeout, "no reply within the time allowed"),
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

fn fault_of_io(error: &io::Error) -> Fault {
    use io::ErrorKind;
    match error.kind() {
        ErrorKind::ConnectionRefused => Fault::Refused,
        ErrorKind::TimedOut => Fault::Timeout,
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof
        | ErrorKind::NotConnected => Fault::Reset,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            Fault::Unreachable
        }
        _ => Fault::Local,
    }
}

fn sentence_of_io(error: &io::Error) -> Cow<'static, str> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        io::ErrorKind::TimedOut => "no connection within the time allowed".into(),
        io::ErrorKind::ConnectionReset => "connection reset by the server".into(),
        io::ErrorKind::BrokenPipe => "connection closed by the server during the request".into(),
        io::ErrorKind::UnexpectedEof => "connection closed by the server".into(),
        io::ErrorKind::AddrNotAvailable => {
            "no local port is left (too many connections in a short time)".into()
        }
        _ => match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::MFILE) => {
                "no file descriptor is left (raise the limit: ulimit -n)".into()
            }
            _ => error.to_string().into(),
        },
    }
}

/// The first few failures of each class, word for word. One for each thread.
#[derive(Default)]
pub(crate) struct Examples {
    counts: [Cell<u8>; Fault::COUNT],
    kept: RefCell<Vec<Example>>,
}

impl Examples {
    /// Keeps a failure if there are few of its class; only then are its words put together.
    pub(crate) fn note(&self, fault: Fault, text: impl FnOnce() -> String) {
        let count = &self.counts[fault as usize];
        if usize::from(count.get()) < EXAMPLES_PER_FAULT {
            count.set(count.get() + 1);
            self.kept.borrow_mut().push(Example { fault, text: text() });
        }
    }

    /// Takes those that were kept since the last time.
    pub(crate) fn take(&self) -> Vec<Example> {
        self.kept.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_few_of_each_class_are_kept_once() {
        let examples = Examples::default();
        for number in 0..10 {
            examples.note(Fault::Reset, || format!("reset {number}"));
            examples.note(Fault::NotFound, || format!("missing {number}"));
        }
        let kept = examples.take();
        assert_eq!(kept.len(), 2 * EXAMPLES_PER_FAULT);
        assert_eq!(kept[0], Example { fault: Fault::Reset, text: "reset 0".into() });
        examples.note(Fault::Reset, || unreachable!("there are enough"));
        assert!(examples.take().is_empty());
    }

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
