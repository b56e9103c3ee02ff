//! Why something failed: a class that is counted, and words for the first few of each class.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io;
use tidemark_load::thread_pool::EXAMPLES_PER_FAULT;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Example;

/// The class of an error of the kernel, or of TLS, on a socket.
pub fn fault_of_io(error: &io::Error) -> Fault {
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

/// The same in words, without a full stop.
pub fn sentence_of_io(error: &io::Error) -> Cow<'static, str> {
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
pub struct Examples {
    counts: [Cell<u8>; Fault::COUNT],
    kept: RefCell<Vec<Example>>,
}

impl Default for Examples {
    fn default() -> Self {
        Self { counts: [const { Cell::new(0) }; Fault::COUNT], kept: RefCell::default() }
    }
}

impl Examples {
    /// Keeps a failure if there are few of its class; only then are its words put together.
    pub fn note(&self, fault: Fault, text: impl FnOnce() -> String) {
        let count = &self.counts[fault as usize];
        if usize::from(count.get()) < EXAMPLES_PER_FAULT {
            count.set(count.get() + 1);
            self.kept.borrow_mut().push(Example { fault, text: text() });
        }
    }

    /// Takes those that were kept since the last time.
    pub fn take(&self) -> Vec<Example> {
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
}
