//! Ctrl-C, and a terminal that is closed: once to stop the load and clean up, twice to stop immediately, three times to exit.

use crate::exit::Exit;
use crate::terminal::Terminal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
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

/// How long a signal may wait for somebody to look at it. What goes on looks every 100 ms or so; what waits for a server that does not
/// answer does not look at all.
const UNATTENDED: Duration = Duration::from_secs(2);

/// How long a signal may wait in all, before the command ends without whoever does not look.
const UNATTENDED_MOST: Duration = Duration::from_secs(15);

/// How many times the user has pressed Ctrl-C.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals(Arc<Caught>);

#[derive(Debug)]
struct Caught {
    count: AtomicUsize,
    begun: Instant,
    /// When somebody last looked, milliseconds since the start.
    looked_ms: AtomicU64,
    /// Whether a step that is not finished would leave something behind.
    finishes_steps: AtomicBool,
}

impl Default for Caught {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            begun: Instant::now(),
            looked_ms: AtomicU64::new(0),
            finishes_steps: AtomicBool::new(false),
        }
    }
}

impl Caught {
    fn now_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    /// How long a signal at which nobody looks may wait; `None`: for as long as the current step takes.
    fn most(&self) -> Option<Duration> {
        (!self.finishes_steps.load(Ordering::Relaxed)).then_some(UNATTENDED_MOST)
    }

    /// Whether nobody has looked at a signal that came at this time.
    fn is_unattended(&self, since_ms: u64) -> bool {
        self.looked_ms.load(Ordering::Relaxed) <= since_ms
    }
}

impl Signals {
    /// Installs the handler. If that fails, a signal ends the process as usual.
    pub(crate) fn listen() -> Self {
        let signals = Self::default();
        let caught = Arc::clone(&signals.0);
        if let Ok(mut received) = signal_hook::iterator::Signals::new(ending()) {
            std::thread::spawn(move || {
                for _ in received.forever() {
                    let number = caught.count.fetch_add(1, Ordering::Relaxed) + 1;
                    if number > 2 {
                        std::process::exit(Exit::Interrupted as i32);
                    }
                    let (caught, at) = (Arc::clone(&caught), caught.now_ms());
                    std::thread::spawn(move || attend(&caught, number, at));
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

    /// From now on one signal never ends the command in the middle of a step: servers that are half set up would stay.
    pub(crate) fn finish_steps(&self) {
        self.0.finishes_steps.store(true, Ordering::Relaxed);
    }

    /// Leaves the end of this process to the one that has started it and closes its input: service managers send their signal to all
    /// processes of a service at once.
    pub(crate) fn left_to_parent() {
        for signal in ending() {
            // If that fails, a signal ends the process as usual.
            let _ = signal_hook::flag::register(signal, Arc::default());
        }
    }

    /// The user's stop request so far.
    pub(crate) fn stop_request(&self) -> StopRequest {
        self.0.looked_ms.store(self.0.now_ms(), Ordering::Relaxed);
        match self.0.count.load(Ordering::Relaxed) {
            0 => StopRequest::None,
            1 => StopRequest::Finish,
            _ => StopRequest::Stop,
        }
    }
}

/// Sees to a signal at which nobody looks, for the command waits for somebody else: the first is answered, and ends the process after a
/// while; the second ends it now.
fn attend(caught: &Caught, number: usize, at_ms: u64) {
    std::thread::sleep(UNATTENDED);
    if !caught.is_unattended(at_ms) {
        return;
    }
    if number > 1 {
        Terminal::note("stopped at once");
        std::process::exit(Exit::Interrupted as i32);
    }
    let Some(most) = caught.most() else {
        Terminal::note("stopping when the current step ends (Ctrl-C again stops at once)");
        return;
    };
    let seconds = most.as_secs();
    Terminal::note(&format!(
        "stopping when the current step ends, in {seconds} s at the latest (Ctrl-C again stops at once)"
    ));
    std::thread::sleep(most.saturating_sub(UNATTENDED));
    if caught.is_unattended(at_ms) {
        Terminal::note(&format!("stopped: the current step did not end within {seconds} s"));
        std::process::exit(Exit::Interrupted as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_attended_when_somebody_looks_after_it() {
        let signals = Signals::default();
        std::thread::sleep(Duration::from_millis(5));
        let at = signals.0.now_ms();
        assert!(signals.0.is_unattended(at));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(signals.stop_request(), StopRequest::None);
        assert!(!signals.0.is_unattended(at));
    }

    #[test]
    fn a_step_that_would_leave_something_behind_has_no_limit() {
        let signals = Signals::default();
        assert_eq!(signals.0.most(), Some(UNATTENDED_MOST));
        signals.clone().finish_steps();
        assert_eq!(signals.0.most(), None);
    }

    #[test]
    fn what_nohup_ignores_is_read_from_the_mask() {
        let status = "Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, SIGHUP));
        assert!(!is_ignored(status, SIGINT) && !is_ignored("", SIGHUP));
    }
}
