//! Ctrl-C, and a terminal that is closed: once to stop the load and clean up, twice to stop immediately, three times to exit.

use crate::exit::Exit;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidemark_control::event::StopRequest;

/// The signals that end a command. Whoever starts it with `nohup` wants it to go on when the terminal is closed.
fn ending() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hangup = (!is_ignored(&status, SIGHUP)).then_some(SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hangup).collect()
}

/// Whether a process ignores a signal, by its `/proc/PID/status` (proc_pid_status(5), `SigIgn`).
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// How many times the user has pressed Ctrl-C.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Installs the handler. If that fails, a signal ends the process as usual.
    pub(crate) fn listen() -> Self {
        let signals = Self::default();
        let count = Arc::clone(&signals.0);
        if let Ok(mut caught) = signal_hook::iterator::Signals::new(ending()) {
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
        if let Ok(mut caught) = signal_hook::iterator::Signals::new(ending()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_ignores_is_read_from_the_mask() {
        let status = "Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, SIGHUP));
        assert!(!is_ignored(status, SIGINT) && !is_ignored("", SIGHUP));
    }
}
