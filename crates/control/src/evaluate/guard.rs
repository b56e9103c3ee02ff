//! Watches storage while a trial of a search puts load on it: its health, and how much memory it takes.

use crate::event::{Event, EventSink, StopRequest};
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tidemark_measure::units::bytes;
use tidemark_plan::provisioner::{Health, Probe};

/// How often storage is asked.
const EVERY: Duration = Duration::from_secs(5);

/// How much memory some processes may take together.
#[derive(Clone, Debug)]
pub(super) struct Ceiling {
    /// Their names, as those of processes that are observed.
    pub(super) processes: Vec<String>,
    /// The most, bytes.
    pub(super) bytes: u64,
}

/// Asks in a thread of its own, from now until it is dropped or something is wrong.
pub(super) struct Guard {
    found: Arc<Mutex<Health>>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    pub(super) fn start(mut probes: Vec<Probe>, ceiling: Option<Ceiling>) -> Self {
        let found = Arc::new(Mutex::new(Health::Well));
        let (stop, stopped) = bounded::<()>(0);
        let shared = Arc::clone(&found);
        let thread = std::thread::spawn(move || {
            loop {
                let asked = probes.iter_mut().map(|probe| probe());
                let worst = asked.chain(ceiling.as_ref().map(Ceiling::kept)).max().unwrap_or(Health::Well);
                let is_over = worst != Health::Well;
                *shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = worst;
                if is_over || stopped.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        Self { found, stop: Some(stop), thread: Some(thread) }
    }

    /// What it has found so far.
    pub(super) fn found(&self) -> Health {
        self.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// What it has found in all.
    pub(super) fn finish(mut self) -> Health {
        self.end();
        self.found()
    }

    fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A probe that panics has found nothing.
            let _ = thread.join();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}

impl Ceiling {
    fn kept(&self) -> Health {
        let taken = tidemark_observe::memory_of(&self.processes);
        match taken > self.bytes {
            true => {
                Health::Ill(format!("it took {} of memory, more than {}", bytes(taken), bytes(self.bytes)))
            }
            false => Health::Well,
        }
    }
}

/// Hands events on, and stops the run when its guard has found something.
pub(super) struct Guarded<'a> {
    pub(super) inner: Box<dyn EventSink + 'a>,
    pub(super) guard: &'a Guard,
}

impl EventSink for Guarded<'_> {
    fn event(&mut self, event: Event<'_>) {
        self.inner.event(event);
    }

    fn stop_request(&mut self) -> StopRequest {
        let own = match self.guard.found() {
            Health::Well => StopRequest::None,
            // What the run has written is removed.
            Health::Ill(_) => StopRequest::Finish,
            // Nothing is touched any more.
            Health::AtRisk(_) => StopRequest::Stop,
        };
        own.max(self.inner.stop_request())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl EventSink for Silent {
        fn event(&mut self, _: Event<'_>) {}
        fn stop_request(&mut self) -> StopRequest {
            StopRequest::None
        }
    }

    fn guard(health: Health) -> Guard {
        let guard = Guard::start(vec![Box::new(move || health.clone())], None);
        while guard.thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && guard.found() == Health::Well
        {
            std::thread::yield_now();
        }
        guard
    }

    #[test]
    fn a_run_on_ill_storage_ends_and_one_that_risks_data_stops_at_once() {
        for (health, request) in [
            (Health::Ill("slow".into()), StopRequest::Finish),
            (Health::AtRisk("one copy".into()), StopRequest::Stop),
        ] {
            let guard = guard(health.clone());
            let mut sink = Guarded { inner: Box::new(Silent), guard: &guard };
            assert_eq!(sink.stop_request(), request);
            drop(sink);
            assert_eq!(guard.finish(), health);
        }
    }

    #[test]
    fn storage_that_is_well_is_left_alone_and_the_guard_ends_with_the_run() {
        let guard = Guard::start(vec![Box::new(|| Health::Well)], None);
        assert_eq!(Guarded { inner: Box::new(Silent), guard: &guard }.stop_request(), StopRequest::None);
        assert_eq!(guard.finish(), Health::Well);
    }

    #[test]
    fn more_memory_than_allowed_is_an_illness() {
        let name = std::fs::read_to_string("/proc/self/comm").unwrap().trim_end().to_owned();
        let kept = |bytes| Ceiling { processes: vec![name.clone()], bytes }.kept();
        assert!(matches!(kept(1), Health::Ill(why) if why.contains("more than 1 B")));
        assert_eq!(kept(u64::MAX), Health::Well);
    }
}
