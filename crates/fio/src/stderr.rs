//! fio's messages for people, and the classes of failures that they mean.

use tidemark_block::job::Action;
use tidemark_measure::fault::Fault;
use tidemark_measure::line::one_line;
use tidemark_plan::redact::redact;

/// Lines of one process that are kept, and characters of each.
const MOST_LINES: usize = 40;
const LONGEST_LINE: usize = 400;

/// What one process said.
#[derive(Debug, Default)]
pub(crate) struct Stderr(Vec<String>);

impl Stderr {
    pub(crate) fn hear(&mut self, line: &str) {
        // It quotes options that it does not understand, and some are secrets.
        let line = one_line(&redact(line.trim()), LONGEST_LINE);
        if !line.is_empty() && self.0.len() < MOST_LINES && !self.0.contains(&line) {
            self.0.push(line);
        }
    }

    /// Its reports of operations that failed.
    fn failures(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).filter(|line| line.contains("io_u error on file"))
    }

    /// Its report of content that is not what it wrote: `verify: bad magic header ... at file F offset N, length M`, or
    /// `crc32c: verify failed at file ...`.
    fn mismatch(&self) -> Option<&str> {
        let tells =
            |line: &&str| line.contains("verify") && line.contains(" at file ") && line.contains(" offset ");
        self.0.iter().map(String::as_str).find(tells)
    }

    /// Its report of an operation that failed with `errno`, and which action that was.
    pub(crate) fn failure(&self, errno: i64) -> Option<(&str, Option<Action>)> {
        if let (Fault::WrongContent, Some(line)) = (class(errno), self.mismatch()) {
            return Some((line, Some(Action::Read)));
        }
        let system = std::io::Error::from_raw_os_error(errno as i32).to_string();
        let words = system.split(" (os error").next().unwrap_or_default().to_owned();
        let line = self.failures().find(|line| line.contains(&words)).or_else(|| self.failures().next())?;
        let direction = line.rsplit(": ").next().and_then(|rest| rest.split_whitespace().next());
        Some((line, direction.and_then(action)))
    }

    /// The signal that killed one of its jobs.
    pub(crate) fn signal(&self) -> Option<&str> {
        self.0.iter().find_map(|line| line.split_once("got signal=").map(|(_, signal)| signal))
    }

    /// All of it in one sentence: errors first, or what there is.
    pub(crate) fn words(&self) -> String {
        let dull =
            |line: &&String| line.contains("job global dropped") || line.contains("file hash not empty");
        let lines: Vec<&str> = self.0.iter().filter(|line| !dull(line)).map(String::as_str).take(6).collect();
        if lines.is_empty() { "it printed nothing".into() } else { lines.join("; ") }
    }

    /// Its word that it could not write a log.
    pub(crate) fn lost_log(&self) -> Option<&str> {
        self.0.iter().map(String::as_str).find(|line| line.contains("fopen log"))
    }

    /// Whether it complained of anything: what it prints of its jobs begins with their names.
    pub(crate) fn complains(&self) -> bool {
        self.0.iter().any(|line| line.starts_with("fio: "))
    }

    /// What to do about it, where that is known. `direct`: a job bypasses the page cache.
    pub(crate) fn remedy(&self, direct: bool) -> &'static str {
        let has = |part: &str| self.0.iter().any(|line| line.contains(part));
        match () {
            () if has("Bad option") => " (this fio does not have the option: correct it, or use another fio)",
            () if has("not loadable") || has("failed to load engine") => {
                " (`fio --enghelp` lists its engines; others come with packages such as fio's and librbd1)"
            }
            () if has("allow_file_create=0") => " (prefill the volumes first, with a `prepare` stage)",
            () if has("Operation not supported") => " (polled completion requires a device that supports it)",
            () if has("Permission denied") => {
                " (fio may write only to what Tidemark has examined: name the file or device with `filename=` in the job's section; \
                 if it is named there, run as a user with access to it)"
            }
            () if has("No such file") => " (create it, or correct the path)",
            () if has("Invalid argument") && direct => {
                " (direct I/O requires sizes and offsets that are multiples of the device's block size, usually 512 or 4096)"
            }
            () => "",
        }
    }
}

fn action(direction: &str) -> Option<Action> {
    Some(match direction {
        "read" => Action::Read,
        "write" => Action::Write,
        "trim" => Action::Trim,
        "sync" => Action::Fsync,
        "datasync" => Action::Fdatasync,
        _ => return None,
    })
}

/// The class of an error number.
pub fn class(errno: i64) -> Fault {
    use rustix::io::Errno;
    let Some(number) = i32::try_from(errno).ok().filter(|number| (1..4096).contains(number)) else {
        return Fault::Local;
    };
    match Errno::from_raw_os_error(number) {
        Errno::IO | Errno::BADMSG | Errno::REMOTEIO => Fault::Io,
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Fault::NoSpace,
        Errno::NODEV | Errno::NXIO | Errno::STALE | Errno::SHUTDOWN => Fault::Gone,
        Errno::TIMEDOUT => Fault::Timeout,
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Fault::Denied,
        Errno::NOENT => Fault::NotFound,
        Errno::CONNREFUSED => Fault::Refused,
        Errno::ILSEQ => Fault::WrongContent,
        _ => Fault::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_quoted_with_their_action() {
        let mut stderr = Stderr::default();
        stderr.hear("fio: io_u error on file /mnt/a b: Input/output error: read offset=0, buflen=4096");
        stderr.hear(
            "fio: io_u error on file /mnt/x: No space left on device: write offset=4194304, buflen=65536",
        );
        let (line, action) = stderr.failure(28).unwrap();
        assert!(line.contains("No space left") && action == Some(Action::Write));
        assert_eq!(
            (class(28), class(5), class(19), class(9999)),
            (Fault::NoSpace, Fault::Io, Fault::Gone, Fault::Local)
        );
        let told = "verify: bad magic header 67ca, wanted acca at file /mnt/w offset 1048576, length 65536 (requested block: offset=1048576, length=65536)";
        stderr.hear(told);
        assert_eq!(stderr.failure(84), Some((told, Some(Action::Read))));
        assert_eq!(stderr.signal(), None);
        stderr.hear("fio: bad option <http_s3_key=hunter2>");
        assert!(!stderr.words().contains("hunter2"), "{}", stderr.words());
        stderr.hear("fio: pid=22046, got signal=9");
        assert_eq!(stderr.signal(), Some("9"));
        stderr.hear("fio: pid=1, err=22/file:ioengines.c:1, func=td_io_queue, error=Invalid argument");
        assert!(stderr.remedy(true).contains("direct I/O requires"));
        assert_eq!(stderr.remedy(false), "", "nobody asked for direct I/O");
    }
}
