//! Who spends this process's processor time: threads of one name, and all others.

use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::fs;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Threads are looked at so often: what one has spent since the last look before its end is taken for the others'.
const EVERY: Duration = Duration::from_millis(10);

/// The name of the thread that watches, whose own time is nobody's.
const OWN: &str = "watch";

/// Processor time, seconds.
pub(crate) struct Used {
    pub(crate) all_s: f64,
    /// Of threads of other names.
    pub(crate) others_s: f64,
}

/// A watch that goes on until [`Watch::end`].
pub(crate) struct Watch {
    end: Sender<()>,
    watcher: JoinHandle<HashMap<String, u64>>,
    before_s: f64,
}

impl Watch {
    /// Watches threads that begin from now on.
    pub(crate) fn start(name: &'static str) -> Result<Self, String> {
        let (end, ended) = channel();
        let watcher = std::thread::Builder::new().name(OWN.into()).spawn(move || {
            let mut threads = HashMap::new();
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                look(&mut threads, name);
            }
            look(&mut threads, name);
            threads
        });
        let watcher = watcher.map_err(|error| error.to_string())?;
        Ok(Self { end, watcher, before_s: spent_s() })
    }

    pub(crate) fn end(self) -> Result<Used, String> {
        drop(self.end);
        let threads = self.watcher.join().map_err(|_| "the watch has failed")?;
        let all_s = spent_s() - self.before_s;
        let (own, named) =
            threads.iter().fold((0u64, 0u64), |(own, named), (thread, ns)| match thread.starts_with(OWN) {
                true => (own + ns, named),
                false => (own, named + ns),
            });
        let all_s = all_s - own as f64 / 1e9;
        Ok(Used { all_s, others_s: all_s - named as f64 / 1e9 })
    }
}

/// Of this process so far.
fn spent_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// Notes what each thread of this name, and the watch itself, has spent so far, by name and number; nanoseconds.
fn look(threads: &mut HashMap<String, u64>, name: &str) {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for task in tasks {
        // A thread may end meanwhile.
        let read = |file: &str| fs::read_to_string(task.path().join(file)).ok();
        let Some(thread) = read("comm").filter(|thread| [name, OWN].contains(&thread.trim())) else {
            continue;
        };
        let spent = read("schedstat").and_then(|spent| spent.split_whitespace().next()?.parse().ok());
        if let Some(spent) = spent {
            threads.insert(format!("{} {}", thread.trim(), task.path().display()), spent);
        }
    }
}
