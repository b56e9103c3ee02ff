//! What one job of a fio job file does, as far as Tidemark must know.

use super::ini::Setting;
use super::names::{LONGEST_PATH, MOST_NAMES, Names};
use super::values;
use crate::file::{Log, Use};
use std::path::PathBuf;
use tidemark_block::job::{Action, Place, Rbd, Volume};
use tidemark_measure::units;

/// fio's own defaults (HOWTO, "Job options").
const BLOCK_BYTES: u64 = 4096;
const FILE_NAMES: &str = "$jobname.$jobnum.$filenum";

/// The option that says where buffers are.
pub(super) const BUFFERS: &[&str] = &["mem", "iomem"];

/// Engines that leave the files and devices of this machine alone: all others are taken to work on those that the job names.
const ELSEWHERE: [&str; 13] = [
    "null",
    "cpuio",
    "net",
    "netsplice",
    "rdma",
    "rbd",
    "rados",
    "http",
    "nbd",
    "libhdfs",
    "libiscsi",
    "gfapi",
    "gfapi_async",
];

/// Engines that write to stores over the network, with the options that say to which.
const REMOTE: [(&str, &[&str]); 7] = [
    ("rados", &["clustername", "pool"]),
    ("http", &["http_host", "filename"]),
    ("nbd", &["uri"]),
    ("libhdfs", &["namenode", "hostname", "port"]),
    ("libiscsi", &["filename"]),
    ("gfapi", &["brick", "volume"]),
    ("gfapi_async", &["brick", "volume"]),
];

/// Options that have fio write logs, each with the ends of their names: the value of the option is how the names begin.
const LOGS: [(&str, &[&str]); 4] = [
    ("write_bw_log", &["bw"]),
    ("write_lat_log", &["lat", "slat", "clat"]),
    ("write_iops_log", &["iops"]),
    ("write_hist_log", &["clat_hist"]),
];

/// Engines that wait for each operation, whatever the `iodepth`.
const WAITING: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "falloc"];

/// Whether an engine has one operation of a job in flight, whatever its `iodepth`.
pub fn waits_for_each(engine: &str) -> bool {
    WAITING.contains(&engine)
}

/// The value of an environment variable, if it is set. fio inherits them all.
pub(crate) type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// One job: the options of its section after those of the `[global]` sections before it, which all jobs share.
pub(super) struct Job<'a> {
    pub(super) section: &'a str,
    pub(super) global: &'a [&'a Setting<'a>],
    pub(super) own: &'a [Setting<'a>],
    pub(super) variables: &'a Variables<'a>,
    /// The files that it names.
    pub(super) names: Names,
}

impl<'a> Job<'a> {
    /// All options in the order of the text.
    pub(super) fn settings(&self) -> impl DoubleEndedIterator<Item = &'a Setting<'a>> {
        self.global.iter().copied().chain(self.own)
    }

    /// The effective value: the last one, under any of the option's names.
    pub(super) fn setting(&self, names: &[&str]) -> Option<&'a Setting<'a>> {
        self.settings().rev().find(|setting| names.contains(&setting.name))
    }

    pub(super) fn value(&self, names: &[&str]) -> Option<&'a str> {
        self.setting(names).map(|setting| setting.value)
    }

    /// Whether a switch is on; its name alone switches it on.
    pub(super) fn on(&self, names: &[&str]) -> Option<bool> {
        values::switch(&self.expanded(names)?)
    }

    pub(super) fn number(&self, names: &[&str]) -> Option<u64> {
        values::number(&self.expanded(names)?)
    }

    /// A value with its variables replaced. Those of options that decide about something have been [checked](values::check).
    fn expanded(&self, names: &[&str]) -> Option<String> {
        values::expanded(self.value(names)?, self.variables).ok()
    }

    /// How many operations one of its jobs may have in flight.
    pub(super) fn depth(&self) -> u64 {
        if waits_for_each(self.engine()) { 1 } else { self.number(&["iodepth"]).unwrap_or(1) }
    }

    /// Whether fio reads back what it has written: when all of that is done, or on the way (`verify_backlog`).
    pub(super) fn reads_back(&self) -> bool {
        let only_writes =
            self.directions().is_some_and(|all| all.iter().all(|(action, _)| *action == Action::Write));
        only_writes && self.value(&["verify"]).is_some() && self.on(&["do_verify"]) != Some(false)
    }

    /// Whether it does so when all is written.
    pub(super) fn verifies_afterwards(&self) -> bool {
        self.reads_back() && self.number(&["verify_backlog"]).unwrap_or(0) == 0
    }

    /// The name under which fio reports it: a `name` of the section's own. One in `[global]` it forgets.
    pub(super) fn shown(&self) -> &'a str {
        let own = self.own.iter().rev().find(|setting| setting.name == "name").map(|setting| setting.value);
        own.filter(|name| !name.is_empty()).unwrap_or(self.section)
    }

    /// The engine by its first name: what follows a colon is a part of it or its path, and every name that begins as Linux's own
    /// asynchronous I/O is that (fio's `str_ioengine_external_cb` and `find_ioengine`).
    pub(super) fn engine(&self) -> &'a str {
        let name = self.value(&["ioengine"]).unwrap_or("psync");
        let name = name.split(':').next().unwrap_or(name);
        match name.starts_with("aio") || name.starts_with("linuxaio") {
            true => "libaio",
            false => name,
        }
    }

    /// Whether it works on files or devices of this machine.
    pub(super) fn on_files(&self) -> bool {
        !ELSEWHERE.contains(&self.engine())
    }

    /// `rw` without its suffix (`:8`), fio's default without `rw`.
    pub(super) fn pattern(&self) -> &'a str {
        self.value(&["rw", "readwrite"]).map_or("read", |rw| rw.split(':').next().unwrap_or(rw))
    }

    /// What it does: the directions in which it moves data with their shares in percent. `None`: an unknown `rw`.
    pub(super) fn directions(&self) -> Option<Vec<(Action, f64)>> {
        // Each sets both shares, so that the last one counts.
        let last = self.setting(&["rwmixread", "rwmixwrite"]).map(|setting| setting.name);
        let read = match last {
            Some("rwmixwrite") => 100_u64.saturating_sub(self.number(&["rwmixwrite"]).unwrap_or(50)),
            _ => self.number(&["rwmixread"]).unwrap_or(50),
        };
        let read = read.min(100) as f64;
        Some(match self.pattern() {
            "read" | "randread" => vec![(Action::Read, 100.0)],
            "write" | "randwrite" => vec![(Action::Write, 100.0)],
            "trim" | "randtrim" => vec![(Action::Trim, 100.0)],
            "rw" | "readwrite" | "randrw" => vec![(Action::Read, read), (Action::Write, 100.0 - read)],
            "trimwrite" | "randtrimwrite" => vec![(Action::Trim, 50.0), (Action::Write, 50.0)],
            _ => return None,
        })
    }

    /// The sync whose latencies fio reports, if the job has one. (fio does not report those of `end_fsync`.)
    pub(super) fn sync(&self) -> Option<Action> {
        let every = |name| self.number(&[name]).is_some_and(|every| every > 0);
        match () {
            () if every("fsync") => Some(Action::Fsync),
            () if every("fdatasync") => Some(Action::Fdatasync),
            () => None,
        }
    }

    /// Bytes of an operation; the first of several.
    pub(super) fn block_bytes(&self) -> u64 {
        let value = self.value(&["bs", "blocksize"]).unwrap_or_default();
        let first = value.split([',', '-']).next().unwrap_or_default().trim().to_ascii_lowercase();
        let digits = first.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match first[digits.len()..].trim_end_matches('b').trim_end_matches('i') {
            "" => 1,
            "k" => 1 << 10,
            "m" => 1 << 20,
            "g" => 1 << 30,
            _ => return BLOCK_BYTES,
        };
        digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).unwrap_or(BLOCK_BYTES)
    }

    /// A time in nanoseconds.
    pub(super) fn time_ns(&self, names: &[&str]) -> Option<u64> {
        values::time_ns(&self.expanded(names)?)
    }

    /// The files and devices that it works on, as far as the file names them, and what it does to each.
    ///
    /// # Errors
    /// They are more, or longer, than fio can open: what is wrong with them.
    pub(super) fn uses(&self) -> Result<Vec<Use>, String> {
        let paths = self.paths()?;
        let writes =
            self.directions().is_none_or(|all| all.iter().any(|(action, _)| *action != Action::Read));
        let is_on = |names: &[&str]| self.on(names) == Some(true);
        let removes = is_on(&["unlink"]) || is_on(&["unlink_each_loop"]) || self.engine() == "filedelete";
        let length = self.length();
        Ok(paths.into_iter().map(|path| Use { path, writes, removes, length }).collect())
    }

    /// The bytes that fio wants each of its files to have (`setup_files` in its `filesetup.c`); 0: as many as it has.
    fn length(&self) -> u64 {
        // It lengthens such files in place.
        if [["create_on_open"], ["file_append"]].iter().any(|names| self.on(names) == Some(true)) {
            return 0;
        }
        let bytes = |name| self.expanded(&[name]).and_then(|value| values::bytes(&value)).unwrap_or(0);
        let files = self.number(&["nrfiles", "nr_files"]).unwrap_or(1).max(self.named().len() as u64).max(1);
        let length = match bytes("filesize") {
            0 => bytes("size") / files,
            length => length,
        };
        if length == 0 {
            return 0;
        }
        // What it is to have begins behind the offset; the last of the jobs that fio makes of this one has the furthest.
        let last = self.number(&["numjobs"]).unwrap_or(1).saturating_sub(1);
        let offset = bytes("offset").max(bytes("fileoffset"));
        let increments = bytes("offset_increment").saturating_mul(last);
        length.saturating_add(offset).saturating_add(increments)
    }

    fn paths(&self) -> Result<Vec<PathBuf>, String> {
        let named = self.names.files()?;
        if !self.on_files() {
            return Ok(Vec::new());
        }
        if !named.is_empty() {
            return Ok(named);
        }
        let usual = self.names.joined(&self.default_names()?)?;
        Ok(usual.into_iter().map(PathBuf::from).collect())
    }

    /// The paths that its options name, whether its engine works on files or not.
    pub(super) fn named(&self) -> Vec<PathBuf> {
        self.names.files().unwrap_or_default()
    }

    /// The logs that it writes; without a name they are called after the job, in the working directory.
    pub(super) fn logs(&self) -> Vec<Log> {
        let is_off = |kind: &&&str| self.on(&[&format!("disable_{kind}")]) != Some(true);
        let log = |name: &str, kind: &str| Log {
            stem: PathBuf::from(format!("{}_{kind}", if name.is_empty() { self.shown() } else { name })),
            is_numbered: self.on(&["per_job_logs"]) != Some(false),
            is_packed: self.on(&["log_store_compressed"]) == Some(true),
        };
        let given = LOGS.iter().filter_map(|(option, kinds)| Some((self.expanded(&[option])?, kinds)));
        given
            .flat_map(|(name, kinds)| {
                kinds.iter().filter(is_off).map(move |kind| log(&name, kind)).collect::<Vec<_>>()
            })
            .collect()
    }

    /// The file or device that its buffers are mapped from: fio overwrites it, whatever the job does.
    pub(super) fn buffers(&self) -> Option<PathBuf> {
        let (kind, path) = self.value(BUFFERS)?.split_once(':')?;
        kind.starts_with("mmap").then(|| PathBuf::from(path))
    }

    /// The image of a Ceph cluster that it works on.
    pub(super) fn image(&self) -> Option<Volume> {
        let name = |option, usual: &str| self.value(&[option]).unwrap_or(usual).to_owned();
        let image = name("rbdname", "");
        if self.engine() != "rbd" || image.is_empty() {
            return None;
        }
        let (user, pool) = (name("clientname", "admin"), name("pool", "rbd"));
        Some(Volume { place: Place::Rbd(Rbd { conf: None, user, pool, image }), size: 0 })
    }

    /// What it works on over the network, where its guard cannot look: the engine and what says where.
    pub(super) fn remote(&self) -> Option<String> {
        let engine = self.engine();
        if engine.starts_with("net") && self.value(&["protocol", "proto"]) == Some("unix") {
            let named = self.named();
            return Some(
                named.iter().fold(engine.to_owned(), |name, path| format!("{name}:{}", path.display())),
            );
        }
        let (_, options) = REMOTE.iter().find(|(name, _)| *name == engine)?;
        let named = options.iter().filter_map(|option| self.value(&[option]));
        Some(named.fold(engine.to_owned(), |name, value| format!("{name}:{value}")))
    }

    fn default_names(&self) -> Result<Vec<String>, String> {
        let count = |names: &[&str]| self.number(names).unwrap_or(1).max(1);
        let of_files = count(&["nrfiles", "nr_files"]);
        // A section that is named as a device is that device, where it is there: fio's `exists_and_not_regfile`.
        if of_files == 1 && std::fs::metadata(self.section).is_ok_and(|found| !found.is_file()) {
            return Ok(vec![self.section.to_owned()]);
        }
        let format = self.value(&["filename_format"]).unwrap_or(FILE_NAMES);
        let all = of_files.saturating_mul(count(&["numjobs"]));
        if all > MOST_NAMES as u64 {
            return Err(format!("makes more than {} files", units::count(MOST_NAMES as u64)));
        }
        // Each keyword may stand for the whole name of the section.
        if format.len().saturating_mul(self.section.len().max(1)) > LONGEST_PATH * LONGEST_PATH {
            return Err(format!("names a file with more than {LONGEST_PATH} bytes"));
        }
        let pairs = (0..count(&["numjobs"])).flat_map(|job| (0..of_files).map(move |file| (job, file)));
        let name = |(job, file): (u64, u64)| {
            let named = format.replace("$jobname", self.section).replace("$jobnum", &job.to_string());
            named.replace("$filenum", &file.to_string())
        };
        let mut names: Vec<String> = Vec::new();
        for name in pairs.map(name) {
            if name.len() > LONGEST_PATH {
                return Err(format!("names a file with more than {LONGEST_PATH} bytes"));
            }
            names.push(name);
        }
        names.dedup();
        Ok(names)
    }
}
