//! Ctrl-C: once to stop the load and clean up, twice to stop immediately, three times to exit.

use crate::exit::Exit;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidemark_control::event::StopRequest;

/// How many times the user has pressed Ctrl-C.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Installs the handler. If that fails, a signal ends the process as usual.
    pub(crate) fn listen() -> Self {
        let signals = Self::default();
        let count = Arc::clone(&signals.0);
        if let Ok(mut caught) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
            std::thread::spawn(move || {
                for _ in caught.forever() {
                    if count.fetch_add(1, Ordering::Relaxed) >= 2 {
                        std::process::exit(Exit::Interrupted as i32);
                    }
                }
            });
        }
        signals
    }

    /// Says something and ends the process at the first signal: for commands that only look on.
    pub(crate) fn leave(say: impl FnOnce() + Send + 'static) {
        if let Ok(mut caught) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
            std::thread::spawn(move || {
                if caught.forever().next().is_some() {
                    say();
                    std::process::exit(Exit::Interrupted as i32);
                }
            });
        }
    }

    /// The user's stop request so far.
    pub(crate) fn stop_request(&self) -> StopRequest {
        match self.0.load(Ordering::Relaxed) {
            0 => StopRequest::None,
            1 => StopRequest::Finish,
            _ => StopRequest::Stop,
        }
    }
}
