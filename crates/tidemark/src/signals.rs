//! Ctrl-C: once to end the load and clean up, twice to stop at once, three times to leave.

use crate::exit::Exit;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidemark_control::event::StopRequest;

/// How often the user has asked to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Begins to listen. Where that is not possible, a signal ends the process as usual.
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

    /// What the user wants by now.
    pub(crate) fn stop_request(&self) -> StopRequest {
        match self.0.load(Ordering::Relaxed) {
            0 => StopRequest::None,
            1 => StopRequest::Finish,
            _ => StopRequest::Stop,
        }
    }
}
