//! Processes: this one, and those of the system under test (`/proc/PID`, proc(5)).

use crate::own;
use crate::pods::pod_of;
use crate::reader::Reader;
use crate::sample::{Gaps, Sample, rise};
use crate::threads::Threads;
use rustix::thread::{Pid, sched_getaffinity};
use std::collections::HashMap;
use std::fs;
use tidemark_measure::observation::{Kind, OWN};

/// Samples between two searches for processes.
const SEARCH: u64 = 5;

/// Length to which the kernel cuts the names of processes, bytes.
const NAME_MOST: usize = 15;

/// Searches in which the name of a process is read: it may change just after the process started.
const ASKED: u8 = 3;

/// Processes that are observed at most.
const MOST: usize = 64;

/// What is sampled of processes.
pub(crate) struct Processes {
    names: Vec<String>,
    looks: u64,
    asked: HashMap<u32, u8>,
    observed: Vec<Process>,
    /// Clock ticks per second.
    ticks: f64,
    page: f64,
}

/// One process that is observed.
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) subject: String,
    stat: Reader,
    io: Option<Reader>,
    threads: Threads,
    before: Option<Used>,
    /// Disk bytes per second in the last second.
    moved: f64,
}

/// What a process used since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Used {
    /// Clock ticks on a processor.
    ticks: u64,
    major_faults: u64,
    read_bytes: u64,
    write_bytes: u64,
}

/// A line of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stat {
    ticks: u64,
    major_faults: u64,
    threads: u64,
    resident_pages: u64,
}

impl Processes {
    pub(crate) fn new(names: &[String]) -> Self {
        let own = Process::open(std::process::id(), OWN.to_owned());
        Self {
            names: names.to_vec(),
            looks: 0,
            asked: HashMap::new(),
            observed: own.into_iter().collect(),
            ticks: rustix::param::clock_ticks_per_second() as f64,
            page: rustix::param::page_size() as f64,
        }
    }

    /// The processes that are observed now.
    pub(crate) fn observed(&self) -> &[Process] {
        &self.observed
    }

    /// Those among them that put the load on.
    pub(crate) fn own(&self) -> Vec<u32> {
        self.observed.iter().filter(|process| process.subject == OWN).map(|process| process.pid).collect()
    }

    /// Samples all processes; returns whether it also searched for new ones.
    pub(crate) fn sample(&mut self, out: &mut Sample, gaps: &mut Gaps) -> bool {
        let search = self.looks.is_multiple_of(SEARCH);
        self.looks += 1;
        if search {
            self.find_helpers();
        }
        if search && !self.names.is_empty() {
            self.search(gaps);
        }
        let (ticks, page) = (self.ticks, self.page);
        // A process that has ended is no longer observed; its series end.
        self.observed.retain_mut(|process| process.sample(ticks, page, out).is_some());
        search
    }

    /// Finds the programs that put load on for this process: what they use is what this process uses.
    fn find_helpers(&mut self) {
        for pid in own::helpers() {
            if self.observed.iter().all(|process| process.pid != pid) {
                self.observed.extend(Process::open(pid, OWN.to_owned()));
            }
        }
    }

    fn search(&mut self, gaps: &mut Gaps) {
        let entries = match fs::read_dir("/proc") {
            Ok(entries) => entries,
            Err(error) => {
                return gaps.say(format!("Cannot list the processes of this node: /proc: {error}."));
            }
        };
        let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let mut asked = HashMap::new();
        for pid in ids {
            let times = self.asked.get(&pid).copied().unwrap_or(0);
            asked.insert(pid, (times + 1).min(ASKED));
            if times >= ASKED || self.observed.iter().any(|process| process.pid == pid) {
                continue;
            }
            let Ok(name) = fs::read_to_string(format!("/proc/{pid}/comm")) else { continue };
            let name = name.trim_end_matches('\n');
            if self.names.iter().any(|wanted| is_wanted(wanted, name, || arguments(pid))) {
                self.observe(pid, name, gaps);
            }
        }
        self.asked = asked;
    }

    fn observe(&mut self, pid: u32, name: &str, gaps: &mut Gaps) {
        if self.observed.len() >= MOST {
            return gaps.say(format!("More than {MOST} processes match: the others are not observed."));
        }
        let of_pod = || pod_of(pid).unwrap_or_else(|| pid.to_string());
        let mut subject = subject(name, &arguments(pid)).unwrap_or_else(|| format!("{name}.{}", of_pod()));
        if self.observed.iter().any(|process| process.subject == subject) {
            subject = format!("{subject}.{pid}");
        }
        let Some(process) = Process::open(pid, subject) else { return };
        if process.io.is_none() {
            gaps.say(format!("This user may not see what {} reads and writes.", process.subject));
        }
        self.observed.push(process);
    }
}

impl Process {
    /// Bytes per second that it made disks read and write in the last second.
    pub(crate) fn moved(&self) -> f64 {
        self.moved
    }

    fn open(pid: u32, subject: String) -> Option<Self> {
        let stat = Reader::open(format!("/proc/{pid}/stat")).ok()?;
        let io = Reader::open(format!("/proc/{pid}/io")).ok();
        Some(Self { pid, subject, stat, io, threads: Threads::new(pid), before: None, moved: 0.0 })
    }

    /// `None` when it has ended.
    fn sample(&mut self, ticks: f64, page: f64, out: &mut Sample) -> Option<()> {
        let stat = stat(&self.stat.read().ok()?)?;
        let (read_bytes, write_bytes) =
            self.io.as_mut().and_then(|io| io.read().ok().map(|text| bytes(&text))).unwrap_or_default();
        let now = Used { ticks: stat.ticks, major_faults: stat.major_faults, read_bytes, write_bytes };
        let subject = self.subject.as_str();
        if let (Some(before), Some(seconds)) = (self.before, out.seconds) {
            out.put(Kind::Process, subject, "cpu", rise((before.ticks, now.ticks)) / ticks / seconds);
            out.put_rate(Kind::Process, subject, "read_bytes", (before.read_bytes, now.read_bytes));
            out.put_rate(Kind::Process, subject, "write_bytes", (before.write_bytes, now.write_bytes));
            out.put_rate(Kind::Process, subject, "major_faults", (before.major_faults, now.major_faults));
            let both = |used: Used| used.read_bytes.saturating_add(used.write_bytes);
            self.moved = rise((both(before), both(now))) / seconds;
        }
        self.before = Some(now);
        out.put(Kind::Process, subject, "memory", stat.resident_pages as f64 * page);
        out.put(Kind::Process, subject, "threads", stat.threads as f64);
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Ok(allowed) = sched_getaffinity(pid) {
            out.put(Kind::Process, subject, "allowed", f64::from(allowed.count()));
        }
        self.threads.sample(subject, out);
        Some(())
    }
}

/// The memory of the processes of these names, bytes: what several of them share counts once. Names are as those that are observed.
pub fn memory_of(names: &[String]) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let of = |pid: u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let is_meant = |wanted: &String| is_wanted(wanted, name.trim_end_matches('\n'), || arguments(pid));
        // The share of each in what is common to several: the sum has it once.
        names.iter().any(is_meant).then(|| fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok())?
    };
    ids.filter_map(of).map(|text| proportional(&text)).sum()
}

/// `Pss` of `/proc/PID/smaps_rollup`, bytes.
fn proportional(text: &str) -> u64 {
    let row = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = row.and_then(|row| row.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn arguments(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// Whether a process is meant by its name, `ceph-osd`, or by its name and one of its arguments, `ceph-osd /etc/ceph/a.conf`.
fn is_wanted(wanted: &str, name: &str, arguments: impl Fn() -> Vec<u8>) -> bool {
    match wanted.split_once(' ') {
        None => is_name(wanted, name),
        Some((wanted, argument)) => {
            is_name(wanted, name)
                && arguments().split(|byte| *byte == 0).any(|own| own == argument.as_bytes())
        }
    }
}

/// Whether a process of this name is meant; names longer than the kernel keeps are compared as far as it does.
fn is_name(wanted: &str, name: &str) -> bool {
    wanted == name || (name.len() == NAME_MOST && wanted.as_bytes().get(..NAME_MOST) == Some(name.as_bytes()))
}

/// `ceph-osd.0` of `ceph-osd -i 0`, `radosgw.rgw.a` of `radosgw -n client.rgw.a`; `None` for what is no daemon of Ceph.
fn subject(name: &str, arguments: &[u8]) -> Option<String> {
    if !name.starts_with("ceph-") && name != "radosgw" {
        return None;
    }
    let arguments = String::from_utf8_lossy(arguments);
    let mut words = arguments.split('\0');
    while let Some(word) = words.next() {
        let (option, value) =
            word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
        if matches!(option, "-i" | "--id" | "-n" | "--name") {
            let value = value.or_else(|| words.next())?;
            let short = value.strip_prefix("client.").unwrap_or(value);
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            return (!short.is_empty() && short.len() <= 64 && short.bytes().all(plain))
                .then(|| format!("{name}.{short}"));
        }
    }
    None
}

/// Reads `19597 (cat) R 19578 ...`. The name may hold anything, parentheses too: the last one ends it.
fn stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace();
    let mut number = |skip: usize| words.nth(skip)?.parse::<u64>().ok();
    // Fields 12 (majflt), 14 and 15 (utime, stime), 20 (threads) and 24 (rss); the third is the first after the name.
    let (major_faults, user, system, threads) = (number(9)?, number(1)?, number(0)?, number(4)?);
    let ticks = user.saturating_add(system);
    Some(Stat { ticks, major_faults, threads, resident_pages: number(3)? })
}

/// What it made disks read and write: `/proc/PID/io`.
fn bytes(text: &str) -> (u64, u64) {
    let row = |name: &str| {
        let mut numbers = text.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        numbers.next().unwrap_or(0)
    };
    (row("read_bytes:"), row("write_bytes:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_read_with_any_process_name() {
        let line = "19597 (a) R ) R 19578 19578 16778 0 -1 4194304 101 0 5 0 7 8 0 0 20 0 3 0 107463 3133440 \
            414 18446744073709551615 93";
        assert_eq!(stat(line), Some(Stat { ticks: 15, major_faults: 5, threads: 3, resident_pages: 414 }));
        assert_eq!(stat("1 (x) R 2"), None);
        let io =
            "rchar: 6976\nwchar: 0\nread_bytes: 368640\nwrite_bytes: 5730304\ncancelled_write_bytes: 9\n";
        assert_eq!(bytes(io), (368_640, 5_730_304));
    }

    #[test]
    fn memory_is_counted_of_those_that_are_meant() {
        assert_eq!(
            proportional("00400000-7fff rollup\nRss:  900 kB\nPss:     414 kB\nPss_Anon: 9 kB\n"),
            414 << 10
        );
        assert_eq!(proportional(""), 0);
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        assert!(memory_of(&[own.trim_end().to_owned()]) > 1 << 20);
        assert_eq!(memory_of(&["there is no such process".into()]), 0);
    }

    #[test]
    fn an_argument_distinguishes_processes_of_one_name() {
        let arguments = || b"/usr/bin/ceph-osd\0-c\0/a/ceph.conf\0-i\x000\0".to_vec();
        assert!(is_wanted("ceph-osd", "ceph-osd", arguments));
        assert!(is_wanted("ceph-osd /a/ceph.conf", "ceph-osd", arguments));
        assert!(!is_wanted("ceph-osd /b/ceph.conf", "ceph-osd", arguments));
        assert!(!is_wanted("ceph-mon /a/ceph.conf", "ceph-osd", arguments));
    }

    #[test]
    fn daemons_are_named_by_their_instance() {
        let name = |name: &str, arguments: &str| subject(name, arguments.replace(' ', "\0").as_bytes());
        assert_eq!(name("ceph-osd", "/usr/bin/ceph-osd -c /l/ceph.conf -i 0 -f").unwrap(), "ceph-osd.0");
        assert_eq!(name("ceph-osd", "ceph-osd -f --cluster ceph --id=12").unwrap(), "ceph-osd.12");
        assert_eq!(name("radosgw", "radosgw -n client.rgw.lab -f").unwrap(), "radosgw.rgw.lab");
        assert_eq!(name("postgres", "postgres -i 0"), None);
        assert_eq!(name("ceph-osd", "ceph-osd -i"), None);
        assert_eq!(name("ceph-osd", "ceph-osd -i a\"b"), None, "no names that would break tables");
    }

    #[test]
    fn long_names_are_compared_up_to_the_kernels_limit() {
        assert!(is_name("ceph-osd", "ceph-osd") && !is_name("ceph-osd", "ceph-os"));
        assert!(is_name("a-very-long-name-indeed", "a-very-long-nam"));
        assert!(!is_name("a-very-long-name-indeed", "a-very-long"));
    }

    #[test]
    fn this_process_and_a_named_one_are_observed() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut processes = Processes::new(&["sleep".to_owned()]);
        let wanted = format!("sleep.{}", child.id());
        let mut gaps = Gaps::default();
        let mut found = false;
        for _ in 0..SEARCH * 3 {
            let mut out = Sample { seconds: Some(1.0), values: Vec::new() };
            processes.sample(&mut out, &mut gaps);
            assert!(out.values.iter().any(|value| value.subject == OWN && value.metric == "memory"));
            found |= out.values.iter().any(|value| value.subject == wanted && value.metric == "threads");
            if found {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found);
        let mut after = Sample::default();
        processes.sample(&mut after, &mut gaps);
        assert!(!after.values.iter().any(|value| value.subject == wanted), "it has ended");
    }

    proptest! {
        #[test]
        fn odd_content_does_not_panic(text in "(\\)| |-i|=|[0-9]{0,25}|.|\n){0,40}") {
            let _ = (stat(&text), bytes(&text), subject("ceph-osd", text.as_bytes()));
        }
    }
}
