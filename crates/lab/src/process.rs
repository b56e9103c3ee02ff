//! One process of ours, held so that it cannot be mistaken for another.
//!
//! A number in a pid file proves nothing: after a crash or a reboot it may name somebody else's process. So a
//! process is first pinned with a pidfd, then compared with the command line that it must have, and signalled
//! through the pidfd only, which keeps meaning the same process for as long as it is open.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

/// How long a process may have no command line: an instant after its start, and at its end while the kernel
/// frees its memory before its files and ports. One that ends must not count as ended before those are free.
const TRANSITION: Duration = Duration::from_secs(5);
/// How much of a program's name the kernel keeps, in bytes.
const NAME_BYTES: usize = 15;
/// How long to wait between two looks at such a process.
const PAUSE: Duration = Duration::from_millis(2);

/// A process that is certainly ours, running or just ended.
#[derive(Debug)]
pub(super) struct Process {
    pid: Pid,
    handle: OwnedFd,
}

impl Process {
    /// Takes over a child just spawned. The child's own handle may be dropped: this one reaps it.
    pub(super) fn of_child(child: &Child) -> io::Result<Self> {
        let pid = Pid::from_child(child);
        Ok(Self { pid, handle: pidfd_open(pid, PidfdFlags::empty())? })
    }

    /// The running process `pid`, if it is `program` started with exactly `arguments`.
    pub(super) fn find(pid: u32, program: &str, arguments: &[OsString]) -> io::Result<Option<Self>> {
        let Some(process) = Self::pin(pid)? else { return Ok(None) };
        let deadline = Instant::now() + TRANSITION;
        loop {
            let command_line = process.command_line()?;
            if process.ended_within(Duration::ZERO)? {
                // If it is a daemon that this very process started, and that somebody killed, then nobody
                // else will reap it. A zombie has no command line any more, but a name.
                if process.has_name(program) {
                    process.reap();
                }
                return Ok(None);
            }
            let is_between = command_line.is_empty() && process.has_name(program);
            if is_between && Instant::now() < deadline {
                process.ended_within(PAUSE)?;
                continue;
            }
            // The process had not ended when its command line was read, so the line is its own.
            return Ok(matches(&command_line, program, arguments).then_some(process));
        }
    }

    /// The running process `pid`, if it is the one that is looked for: that is asked while no other can have the number.
    pub(super) fn pinned(pid: u32, is_it: impl FnOnce() -> bool) -> io::Result<Option<Self>> {
        let process = Self::pin(pid)?;
        let is_it = process.is_some() && is_it();
        Ok(process.filter(|_| is_it))
    }

    fn pin(pid: u32) -> io::Result<Option<Self>> {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Ok(Some(Self { pid, handle })),
            // EINVAL: the number names a thread of some process, so it is none of ours.
            Err(Errno::SRCH | Errno::INVAL) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The processes that this one has started and that still run.
    pub(super) fn children(&self) -> io::Result<Vec<Self>> {
        let mut children = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let pid = entry?.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            let Some(pid) = pid else { continue };
            // Pinned before it is looked at, so that what was seen is of the process pinned.
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            let child = Self { pid, handle };
            if child.stat().is_some_and(|stat| stat.parent == self.pid.as_raw_nonzero().get()) {
                children.push(child);
            }
        }
        Ok(children)
    }

    fn command_line(&self) -> io::Result<Vec<u8>> {
        match fs::read(format!("/proc/{}/cmdline", self.pid())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(Vec::new()),
            read => read,
        }
    }

    fn has_name(&self, program: &str) -> bool {
        self.stat()
            .is_some_and(|stat| stat.name.as_bytes() == &program.as_bytes()[..program.len().min(NAME_BYTES)])
    }

    /// The process's number.
    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends a signal; a process that has ended meanwhile is no error.
    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.handle, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Waits for the process to end, for `limit` at most, and says whether it has.
    pub(super) fn ended_within(&self, limit: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// How the process ended, in words. It must have ended; if it was a child of ours, this reaps it, so that
    /// no zombie stays behind in a long-lived caller such as a test.
    pub(super) fn reap(&self) -> String {
        let status =
            waitid(WaitId::PidFd(self.handle.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        match status {
            Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => format!("exit status {code}"),
                (None, Some(signal)) => format!("signal {signal}"),
                (None, None) => "for a reason unknown".into(),
            },
            // ECHILD: started by an earlier command, so its status went to that command or to init.
            Ok(None) | Err(_) => "for a reason unknown".into(),
        }
    }

    /// Whether the process is paused, as by SIGSTOP. Unknown counts as not paused.
    pub(super) fn is_paused(&self) -> bool {
        self.stat().is_some_and(|stat| stat.state == 'T')
    }

    fn stat(&self) -> Option<Stat> {
        stat(self.pid())
    }
}

/// Whether a process has ended and is only waiting for somebody to ask how. Under some supervisors that takes forever.
pub(super) fn is_zombie(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat.state == 'Z')
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may itself hold spaces and parentheses; the state follows the last one.
    let (before, after) = text.rsplit_once(") ")?;
    let (_, name) = before.split_once(" (")?;
    let parent = after.split(' ').nth(1)?.parse().ok()?;
    Some(Stat { name: name.to_owned(), state: after.chars().next()?, parent })
}

/// What `/proc/PID/stat` tells first.
struct Stat {
    /// The program's name, or the first [`NAME_BYTES`] of it.
    name: String,
    state: char,
    /// The process that started it, or took it over.
    parent: i32,
}

/// Whether a `/proc/PID/cmdline` is that of `program` with exactly `arguments`, wherever the program lies.
fn matches(command_line: &[u8], program: &str, arguments: &[OsString]) -> bool {
    let mut words = command_line.strip_suffix(b"\0").unwrap_or(command_line).split(|byte| *byte == 0);
    let name = words.next().map(|word| Path::new(std::ffi::OsStr::from_bytes(word)));
    name.and_then(Path::file_name).is_some_and(|name| name == program)
        && words.eq(arguments.iter().map(|argument| argument.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_command_line_matches_only_whole() {
        let line = b"/usr/bin/ceph-osd\0-c\0/lab/ceph.conf\0-i\x001\0";
        assert!(matches(line, "ceph-osd", &words(&["-c", "/lab/ceph.conf", "-i", "1"])));
        assert!(!matches(line, "ceph-mon", &words(&["-c", "/lab/ceph.conf", "-i", "1"])));
        assert!(!matches(line, "ceph-osd", &words(&["-c", "/lab/ceph.conf", "-i", "10"])));
        assert!(!matches(line, "ceph-osd", &words(&["-c", "/lab/ceph.conf", "-i"])));
        assert!(!matches(b"", "ceph-osd", &[]), "a kernel thread or a zombie has an empty command line");
    }

    #[test]
    fn only_the_very_process_is_found() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let find = |program, seconds| Process::find(child.id(), program, &words(&[seconds])).unwrap();
        let found = find("sleep", "60").unwrap();
        assert_eq!(found.pid(), child.id());
        assert!(find("sleep", "61").is_none());
        assert!(Process::find(0, "sleep", &words(&["60"])).unwrap().is_none());
        assert!(Process::find(u32::MAX, "sleep", &words(&["60"])).unwrap().is_none());

        found.signal(Signal::KILL).unwrap();
        assert!(found.ended_within(Duration::from_secs(10)).unwrap());
        assert!(is_zombie(child.id()) && !is_zombie(std::process::id()));
        assert!(find("other", "60").is_none(), "a zombie is not running");
        assert!(found.stat().is_some(), "and it is left alone if it is not ours");
        assert!(find("sleep", "60").is_none());
        assert!(found.stat().is_none(), "but it is reaped if it is");
        assert!(child.wait().is_err());
    }

    #[test]
    fn children_are_found_and_nobody_else() {
        let mut child = Command::new("sh").args(["-c", "sleep 60 & sleep 60 & wait"]).spawn().unwrap();
        let process = Process::of_child(&child).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while process.children().unwrap().len() < 2 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let children = process.children().unwrap();
        assert_eq!(children.len(), 2);
        for one in std::iter::once(&process).chain(&children) {
            one.signal(Signal::KILL).unwrap();
            assert!(one.ended_within(Duration::from_secs(10)).unwrap());
        }
        process.reap();
        assert!(process.children().unwrap().is_empty());
        assert!(child.wait().is_err(), "it was reaped");
    }

    #[test]
    fn a_paused_process_is_seen_and_an_ended_one_is_described() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of_child(&child).unwrap();
        assert!(!process.is_paused());
        process.signal(Signal::STOP).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !process.is_paused() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(process.is_paused());
        assert!(!process.ended_within(Duration::from_millis(1)).unwrap());
        process.signal(Signal::KILL).unwrap();
        assert!(process.ended_within(Duration::from_secs(10)).unwrap());
        assert_eq!(process.reap(), "signal 9");
        assert_eq!(process.reap(), "for a reason unknown");
        process.signal(Signal::TERM).unwrap();
        drop(child);
    }
}
