//! The threads of one process: which of them is busiest, and how long they wait for a processor.
//!
//! A gateway may have a thousand threads of which ten work. All of them are looked at every ten seconds; those sixteen that
//! used most in that time are watched every second, with their files kept open.

use crate::reader::Reader;
use crate::sample::Sample;
use std::collections::HashMap;
use std::path::PathBuf;
use tidemark_measure::observation::Kind;

/// Threads that are watched every second.
const WATCHED: usize = 16;

/// Threads that are looked at; a process with more has its first ones looked at.
const MOST: usize = 4096;

/// Looks between two searches for the busiest.
const SEARCH: u64 = 10;

/// How the threads of a load generator are named, apart from their numbers.
const LOAD: &str = "load-";

/// The threads of one process.
pub(crate) struct Threads {
    directory: PathBuf,
    looks: u64,
    used: HashMap<u32, u64>,
    watched: HashMap<u32, Watched>,
}

struct Watched {
    reader: Reader,
    puts_load_on: bool,
    before: Option<Scheduled>,
}

/// `/proc/PID/task/TID/schedstat` (Documentation/scheduler/sched-stats).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Scheduled {
    /// Time on a processor, nanoseconds.
    on_ns: u64,
    /// Time ready and without one, nanoseconds.
    waiting_ns: u64,
    /// Times put on one.
    times: u64,
}

impl Threads {
    pub(crate) fn new(pid: u32) -> Self {
        Self {
            directory: format!("/proc/{pid}/task").into(),
            looks: 0,
            used: HashMap::new(),
            watched: HashMap::new(),
        }
    }

    pub(crate) fn sample(&mut self, subject: &str, out: &mut Sample) {
        if self.looks <= 1 || self.looks.is_multiple_of(SEARCH) {
            self.search();
        }
        self.looks += 1;
        let (mut busiest, mut all, mut load) = (None::<u64>, Scheduled::default(), None::<u64>);
        self.watched.retain(|_, thread| {
            let Some(now) = thread.reader.read_line().ok().and_then(|text| scheduled(&text)) else {
                return false;
            };
            if let Some(before) = thread.before.replace(now) {
                let on_ns = now.on_ns.saturating_sub(before.on_ns);
                busiest = Some(busiest.map_or(on_ns, |most| most.max(on_ns)));
                let waiting_ns = now.waiting_ns.saturating_sub(before.waiting_ns);
                all.waiting_ns += waiting_ns;
                if thread.puts_load_on {
                    load = Some(load.unwrap_or(0) + waiting_ns);
                }
                all.times += now.times.saturating_sub(before.times);
            }
            true
        });
        if let (Some(busiest), Some(seconds)) = (busiest, out.seconds) {
            let per_second = |ns: u64| ns as f64 / 1e9 / seconds;
            out.put(Kind::Process, subject, "busiest_thread", per_second(busiest).min(1.0));
            out.put(Kind::Process, subject, "waiting", per_second(all.waiting_ns));
            if let Some(waiting_ns) = load {
                out.put(Kind::Process, subject, "load_waiting", per_second(waiting_ns));
            }
            out.put(Kind::Process, subject, "context_switches", all.times as f64 / seconds);
        }
    }

    /// Finds the threads that used most since the search before.
    fn search(&mut self) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return };
        let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let mut used = HashMap::new();
        for id in ids.take(MOST) {
            let text = std::fs::read_to_string(self.directory.join(format!("{id}/schedstat")));
            if let Some(now) = text.ok().and_then(|text| scheduled(&text)) {
                used.insert(id, now.on_ns);
            }
        }
        let rose =
            |(id, now): (&u32, &u64)| (now.saturating_sub(self.used.get(id).copied().unwrap_or(0)), *id);
        let mut busiest: Vec<(u64, u32)> = used.iter().map(rose).collect();
        busiest.sort_unstable_by_key(|(on_ns, _)| std::cmp::Reverse(*on_ns));
        busiest.truncate(WATCHED);
        self.watched.retain(|id, _| busiest.iter().any(|(_, busy)| busy == id));
        for (_, id) in busiest {
            // Read again each time: a thread may be found before it gives itself its name.
            let name = std::fs::read_to_string(self.directory.join(format!("{id}/comm")));
            let puts_load_on = name.is_ok_and(|name| name.starts_with(LOAD));
            if let Some(thread) = self.watched.get_mut(&id) {
                thread.puts_load_on = puts_load_on;
            } else if let Ok(reader) = Reader::open(self.directory.join(format!("{id}/schedstat"))) {
                self.watched.insert(id, Watched { reader, puts_load_on, before: None });
            }
        }
        self.used = used;
    }
}

fn scheduled(text: &str) -> Option<Scheduled> {
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse().ok());
    Some(Scheduled { on_ns: numbers.next()??, waiting_ns: numbers.next()??, times: numbers.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_read() {
        let expected = Scheduled { on_ns: 79_779_585, waiting_ns: 83_932_238, times: 1243 };
        assert_eq!(scheduled("79779585 83932238 1243\n"), Some(expected));
        assert_eq!(scheduled("1 2"), None);
    }

    #[test]
    fn the_busiest_thread_is_found_among_many() {
        use std::sync::atomic::{AtomicBool, Ordering};
        static STOP: AtomicBool = AtomicBool::new(false);
        let spinning = std::thread::spawn(|| {
            while !STOP.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let mut threads = Threads::new(std::process::id());
        let mut last = Sample::default();
        for seconds in [None, Some(0.1), Some(0.1)] {
            last = Sample { seconds, values: Vec::new() };
            threads.sample("tidemark", &mut last);
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        STOP.store(true, Ordering::Relaxed);
        spinning.join().unwrap();
        let busiest = last.values.iter().find(|value| value.metric == "busiest_thread").unwrap();
        assert!(busiest.value > 0.0, "a thread spins: {busiest:?}");
        assert!(threads.watched.len() <= WATCHED);
    }

    #[test]
    fn what_threads_that_put_load_on_wait_is_known_apart_from_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let put = |id: u32, name: &str, on_ns: u64, waiting_ns: u64| {
            let thread = directory.path().join(id.to_string());
            std::fs::create_dir_all(&thread).unwrap();
            std::fs::write(thread.join("comm"), name).unwrap();
            std::fs::write(thread.join("schedstat"), format!("{on_ns} {waiting_ns} 1\n")).unwrap();
        };
        let mut threads = Threads { directory: directory.path().into(), ..Threads::new(0) };
        let mut look = |seconds| {
            let mut sample = Sample { seconds, values: Vec::new() };
            threads.sample("tidemark", &mut sample);
            sample.values.iter().find(|value| value.metric == "load_waiting").map(|value| value.value)
        };
        put(1, "main\n", 10, 0);
        put(2, "tidemark\n", 10, 0);
        assert_eq!(look(None), None);
        // The second thread takes its name only after it was found.
        put(1, "main\n", 20, 900_000_000);
        put(2, "load-0\n", 20, 300_000_000);
        assert_eq!(look(Some(1.0)), Some(0.3));
    }

    proptest! {
        #[test]
        fn odd_content_does_not_panic(text in ".*") {
            let _ = scheduled(&text);
        }
    }
}
