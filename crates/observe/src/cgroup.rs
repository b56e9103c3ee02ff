//! Control groups of the observed processes: quotas, limits, and how often a quota stopped the processes.
//!
//! A process is subject to the limits of all groups from its own up to the root. Of version 1 and 2
//! (Documentation/admin-guide/cgroup-v1, cgroup-v2), either or both may be mounted.

use crate::disk::{Disks, Number};
use crate::metered::Metered;
use crate::pressure::{RESOURCES, share, stalled};
use crate::process::Process;
use crate::reader::{Reader, number_in};
use crate::sample::{Gaps, Sample, rise};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tidemark_measure::observation::Kind;

/// Version 1 says "no limit" by a number near 2^63.
const NO_LIMIT: u64 = 1 << 60;

/// Metrics of the pressure of a control group, in the order of [`RESOURCES`].
const PRESSURES: [&str; 3] = ["cpu_pressure", "io_pressure", "memory_pressure"];

/// What a limit of a device is about, and the file in which version 1 has it, and the word of version 2's `io.max`.
const DEVICE_LIMITS: [(&str, &str, &str); 4] = [
    ("read_ops_limit", "blkio.throttle.read_iops_device", "riops"),
    ("write_ops_limit", "blkio.throttle.write_iops_device", "wiops"),
    ("read_bytes_limit", "blkio.throttle.read_bps_device", "rbps"),
    ("write_bytes_limit", "blkio.throttle.write_bps_device", "wbps"),
];

/// What is sampled of control groups.
pub(crate) struct Cgroups {
    mounts: Vec<Mount>,
    members: Vec<Member>,
    quotas: BTreeMap<PathBuf, Quota>,
    devices: BTreeMap<(Number, &'static str), f64>,
    /// Requests let through by the groups that limit devices, by directory.
    metered: BTreeMap<PathBuf, Metered>,
}

/// Where a hierarchy is mounted.
#[derive(Clone, Debug, PartialEq)]
struct Mount {
    /// The group that is seen as its root.
    root: String,
    point: PathBuf,
    /// Its mount options, its controllers among them; `None` for version 2, which has all that are left.
    controllers: Option<Vec<String>>,
}

/// One observed process and its limits.
struct Member {
    subject: String,
    /// The groups with a quota, its own first.
    quotas: Vec<PathBuf>,
    memory: Option<Memory>,
    pressures: Vec<(&'static str, Reader, Option<u64>)>,
    path: PathBuf,
}

/// The group with the tightest limit.
struct Memory {
    path: PathBuf,
    limit: u64,
    used: Reader,
    counts: Option<Short>,
}

/// How often a group had no memory left, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Short {
    /// Times that it was at its limit.
    hits: u64,
    /// Pages that it gave back and read again.
    refaults: u64,
}

/// A group with a quota of processor time.
struct Quota {
    cores: f64,
    stat: Reader,
    before: Option<Throttled>,
    /// Shares of periods and of time, of the last second.
    last: Option<(f64, f64)>,
}

/// `cpu.stat` of either version.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Throttled {
    periods: u64,
    throttled: u64,
    time_ns: u64,
}

impl Cgroups {
    pub(crate) fn new(gaps: &mut Gaps) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").map(|text| mounts(&text)).unwrap_or_default();
        if mounts.is_empty() {
            gaps.say(
                "No control groups are mounted on this node: limits on processors, memory and devices \
                are unknown."
                    .into(),
            );
        }
        let (quotas, devices, metered) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { mounts, members: Vec::new(), quotas, devices, metered }
    }

    /// Reads the limits of these processes again.
    pub(crate) fn find(&mut self, processes: &[Process]) {
        let mut kept = std::mem::take(&mut self.members);
        let mut devices: BTreeMap<(Number, &'static str), BTreeMap<PathBuf, f64>> = BTreeMap::new();
        for process in processes {
            let text = fs::read_to_string(format!("/proc/{}/cgroup", process.pid)).unwrap_or_default();
            let chain = |controller| self.chain(&text, controller);
            for ((device, metric), (path, limit)) in device_limits(&chain("blkio"), &chain("io")) {
                devices.entry((device, metric)).or_default().insert(path, limit);
            }
            let cpu = chain("cpu");
            self.find_quotas(&cpu);
            let own = cpu.first().cloned().unwrap_or_default();
            // Counters are kept while the process stays in its groups.
            let same = kept.iter().position(|member| member.subject == process.subject && member.path == own);
            let same = same.map(|index| kept.swap_remove(index));
            let (pressures, counted) = same.map(|member| (member.pressures, member.memory)).unzip();
            let mut memory = memory(&self.chain(&text, "memory"));
            if let (Some(now), Some(before)) = (&mut memory, counted.flatten()) {
                now.counts = before.counts.filter(|_| before.path == now.path);
            }
            self.members.push(Member {
                subject: process.subject.clone(),
                quotas: cpu.into_iter().filter(|path| self.quotas.contains_key(path)).collect(),
                memory,
                pressures: pressures.unwrap_or_else(|| pressures_of(&self.chain(&text, ""))),
                path: own,
            });
        }
        let bound = |path: &PathBuf| self.members.iter().any(|member| member.quotas.contains(path));
        self.quotas.retain(|path, _| bound(path));
        let limiting = |path: &PathBuf| devices.values().any(|groups| groups.contains_key(path));
        self.metered.retain(|path, _| limiting(path));
        for path in devices.values().flat_map(BTreeMap::keys) {
            if !self.metered.contains_key(path) {
                self.metered.extend(Metered::open(path).map(|metered| (path.clone(), metered)));
            }
        }
        self.devices = devices.into_iter().map(|(key, groups)| (key, groups.values().sum())).collect();
    }

    /// The directories of a controller that bind a process, its own first. The controller "" is version 2's itself.
    fn chain(&self, memberships: &str, controller: &str) -> Vec<PathBuf> {
        let own = memberships.lines().filter_map(membership).find_map(|(controllers, path)| {
            let mount = self.mounts.iter().find(|mount| mount.holds(controllers, controller))?;
            Some((mount, mount.point.join(below(path, &mount.root)?)))
        });
        let Some((mount, own)) = own else { return Vec::new() };
        own.ancestors().take_while(|path| path.starts_with(&mount.point)).map(Path::to_path_buf).collect()
    }

    fn find_quotas(&mut self, chain: &[PathBuf]) {
        for path in chain {
            match (quota(path), self.quotas.get_mut(path)) {
                (Some(cores), Some(known)) => known.cores = cores,
                (Some(cores), None) => {
                    if let Ok(stat) = Reader::open(path.join("cpu.stat")) {
                        self.quotas.insert(path.clone(), Quota { cores, stat, before: None, last: None });
                    }
                }
                (None, _) => drop(self.quotas.remove(path)),
            }
        }
    }

    pub(crate) fn sample(&mut self, disks: &Disks, out: &mut Sample) {
        self.quotas.values_mut().for_each(|quota| quota.look(out.seconds));
        for member in &mut self.members {
            let subject = member.subject.as_str();
            let quotas: Vec<&Quota> = member.quotas.iter().filter_map(|path| self.quotas.get(path)).collect();
            if let Some(cores) = quotas.iter().map(|quota| quota.cores).reduce(f64::min) {
                out.put(Kind::Cgroup, subject, "cpu_limit", cores);
            }
            let most = |of: fn((f64, f64)) -> f64| {
                quotas.iter().filter_map(|quota| quota.last.map(of)).reduce(f64::max)
            };
            if let (Some(periods), Some(time)) = (most(|last| last.0), most(|last| last.1)) {
                out.put(Kind::Cgroup, subject, "throttled_periods", periods);
                out.put(Kind::Cgroup, subject, "throttled_time", time);
            }
            if let Some(memory) = &mut member.memory {
                out.put(Kind::Cgroup, subject, "memory_limit", memory.limit as f64);
                let used = memory.used.read_line().ok().and_then(|text| text.trim().parse().ok());
                used.into_iter().for_each(|used| out.put(Kind::Cgroup, subject, "memory_used", used));
                let now = short(&memory.path);
                if let Some(before) = memory.counts.replace(now) {
                    let pages =
                        |short: Short| short.refaults.saturating_mul(rustix::param::page_size() as u64);
                    out.put_rate(Kind::Cgroup, subject, "memory_limit_hits", (before.hits, now.hits));
                    out.put_rate(Kind::Cgroup, subject, "refault_bytes", (pages(before), pages(now)));
                }
            }
            for (metric, reader, before) in &mut member.pressures {
                let now = reader.read().ok().and_then(|text| stalled(&text)).map(|stalled| stalled.some);
                if let (Some(before), Some(now), Some(seconds)) = (*before, now, out.seconds) {
                    out.put(Kind::Cgroup, subject, metric, share((before, now), seconds));
                }
                *before = now;
            }
        }
        for ((number, metric), limit) in &self.devices {
            if let Some(name) = disks.name(*number) {
                out.put(Kind::Disk, name, metric, *limit);
            }
        }
        let mut through: BTreeMap<Number, (f64, f64)> = BTreeMap::new();
        for (number, reads, writes) in self.metered.values_mut().flat_map(|group| group.look(out.seconds)) {
            let own = through.entry(number).or_default();
            *own = (own.0 + reads, own.1 + writes);
        }
        let limited = |number: &Number| self.devices.keys().any(|(limited, _)| limited == number);
        for (number, (reads, writes)) in through.into_iter().filter(|(number, _)| limited(number)) {
            if let Some(name) = disks.name(number) {
                out.put(Kind::Disk, name, "read_ops_metered", reads);
                out.put(Kind::Disk, name, "write_ops_metered", writes);
            }
        }
    }

    /// The groups of the processes that have quotas.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let bound = self.members.iter().filter(|member| !member.quotas.is_empty());
        bound
            .map(|member| (format!("cgroup of {}", member.subject), member.path.display().to_string()))
            .collect()
    }
}

impl Mount {
    /// Whether this is the hierarchy in which a membership with these controllers has this controller.
    fn holds(&self, controllers: &str, controller: &str) -> bool {
        match &self.controllers {
            Some(own) => {
                controllers.split(',').any(|name| name == controller)
                    && own.iter().any(|name| name == controller)
            }
            None => controllers.is_empty() && controller != "blkio",
        }
    }
}

impl Quota {
    fn look(&mut self, seconds: Option<f64>) {
        let now = self.stat.read().ok().map(|text| throttled(&text));
        self.last = match (self.before, now, seconds) {
            (Some(before), Some(now), Some(seconds)) => {
                let periods = rise((before.periods, now.periods));
                let share = rise((before.throttled, now.throttled)) / periods.max(1.0);
                Some((share.min(1.0), rise((before.time_ns, now.time_ns)) / 1e9 / seconds))
            }
            _ => None,
        };
        self.before = now;
    }
}

/// The mounted hierarchies: `32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu`.
fn mounts(text: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let (before, behind) = line.split_once(" - ")?;
        let mut words = before.split(' ').skip(3);
        let (root, point) = (words.next()?.to_owned(), PathBuf::from(words.next()?));
        let mut words = behind.split(' ');
        let controllers = match words.next()? {
            "cgroup" => Some(words.nth(1)?.split(',').map(str::to_owned).collect()),
            "cgroup2" => None,
            _ => return None,
        };
        Some(Mount { root, point, controllers })
    };
    text.lines().filter_map(mount).collect()
}

/// A line of `/proc/PID/cgroup`: `4:memory:/path`, or `0::/path` for version 2.
fn membership(line: &str) -> Option<(&str, &str)> {
    line.split_once(':')?.1.split_once(':')
}

/// A group's path below a root; `None` where it lies elsewhere or would lead out.
fn below(path: &str, root: &str) -> Option<String> {
    let path = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/');
    (!path.split('/').any(|part| part == "..")).then(|| path.to_owned())
}

/// Cores that a group may use; `None` without a limit.
fn quota(path: &Path) -> Option<f64> {
    if let Ok(text) = fs::read_to_string(path.join("cpu.max")) {
        return cpu_max(&text);
    }
    let (quota, period) =
        (number_in(path.join("cpu.cfs_quota_us"))?, number_in(path.join("cpu.cfs_period_us"))?);
    (period > 0).then(|| quota as f64 / period as f64)
}

/// Reads `200000 100000`, or `max 100000` for no limit.
fn cpu_max(text: &str) -> Option<f64> {
    let mut words = text.split_ascii_whitespace().map(|word| word.parse::<f64>().ok());
    let (quota, period) = (words.next()??, words.next()??);
    (period > 0.0 && quota.is_finite()).then_some(quota / period)
}

fn throttled(text: &str) -> Throttled {
    let row = |name: &str| row(text, name).unwrap_or(0);
    // Nanoseconds in version 1, microseconds in version 2.
    let time_ns = row("throttled_time").max(row("throttled_usec").saturating_mul(1000));
    Throttled { periods: row("nr_periods"), throttled: row("nr_throttled"), time_ns }
}

/// The most memory that this process may use, the page cache of what it reads included, bytes: the tightest limit of the control
/// groups that it is in; `None` without one.
pub fn own_memory_limit() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let cgroups = Cgroups::new(&mut Gaps::default());
    memory(&cgroups.chain(&text, "memory")).map(|memory| memory.limit)
}

/// The tightest limit of memory, and what the group that has it uses.
fn memory(chain: &[PathBuf]) -> Option<Memory> {
    let limits = chain.iter().filter_map(|path| {
        let version1 =
            || number_in(path.join("memory.limit_in_bytes")).map(|limit| (limit, "memory.usage_in_bytes"));
        let (limit, used) =
            number_in(path.join("memory.max")).map(|limit| (limit, "memory.current")).or_else(version1)?;
        (limit < NO_LIMIT).then(|| (limit, path, path.join(used)))
    });
    let (limit, path, used) = limits.min_by_key(|(limit, ..)| *limit)?;
    Some(Memory { path: path.clone(), limit, used: Reader::open(used).ok()?, counts: None })
}

/// Reads `memory.failcnt`, or the row `max` of `memory.events`, and the refaults of `memory.stat`, which version 1 adds up
/// over the groups below in rows that begin with `total_`.
fn short(path: &Path) -> Short {
    let text = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
    let hits = number_in(path.join("memory.failcnt"));
    let hits = hits.or_else(|| row(&text("memory.events"), "max")).unwrap_or(0);
    let stat = text("memory.stat");
    let refaults = |kind: &str| {
        let name = format!("workingset_refault_{kind}");
        row(&stat, &format!("total_{name}")).or_else(|| row(&stat, &name)).unwrap_or(0)
    };
    Short { hits, refaults: refaults("file").saturating_add(refaults("anon")) }
}

/// A row of a name and a number.
fn row(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The pressure files of a group of version 2; the root's are the node's.
fn pressures_of(chain: &[PathBuf]) -> Vec<(&'static str, Reader, Option<u64>)> {
    let Some(own) = chain.first().filter(|_| chain.len() > 1) else { return Vec::new() };
    let files = RESOURCES.iter().zip(PRESSURES);
    let open = |(resource, metric): (&&str, &'static str)| {
        Some((metric, Reader::open(own.join(format!("{resource}.pressure"))).ok()?, None))
    };
    files.filter_map(open).collect()
}

/// The limits of devices that bind a process: each with the tightest group. Of version 1 and of version 2.
fn device_limits(
    version1: &[PathBuf],
    version2: &[PathBuf],
) -> BTreeMap<(Number, &'static str), (PathBuf, f64)> {
    let mut limits: BTreeMap<(Number, &'static str), (PathBuf, f64)> = BTreeMap::new();
    let mut bind = |device, metric, path: &Path, limit: f64| {
        let tightest = limits.entry((device, metric)).or_insert_with(|| (path.to_owned(), limit));
        if limit < tightest.1 {
            *tightest = (path.to_owned(), limit);
        }
    };
    for path in version1 {
        for (metric, file, _) in DEVICE_LIMITS {
            let text = fs::read_to_string(path.join(file)).unwrap_or_default();
            text.lines()
                .filter_map(device_limit)
                .for_each(|(device, limit)| bind(device, metric, path, limit));
        }
    }
    for path in version2 {
        let text = fs::read_to_string(path.join("io.max")).unwrap_or_default();
        for (device, metric, limit) in text.lines().flat_map(io_max) {
            bind(device, metric, path, limit);
        }
    }
    limits
}

/// Reads `7:3 500`.
fn device_limit(line: &str) -> Option<(Number, f64)> {
    let (device, limit) = line.trim().split_once(' ')?;
    let limit: u64 = limit.parse().ok()?;
    Some((number(device)?, limit as f64))
}

/// Reads `7:3 rbps=max wbps=1048576 riops=max wiops=500`.
fn io_max(line: &str) -> Vec<(Number, &'static str, f64)> {
    let mut words = line.split(' ');
    let Some(device) = words.next().and_then(number) else { return Vec::new() };
    let limit = |word: &str| {
        let (name, limit) = word.split_once('=')?;
        let (metric, ..) = DEVICE_LIMITS.iter().find(|(.., known)| *known == name)?;
        Some((device, *metric, limit.parse::<u64>().ok()? as f64))
    };
    words.filter_map(limit).collect()
}

/// Reads `7:3`.
pub(crate) fn number(text: &str) -> Option<Number> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
        35 31 0:32 /pod /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn hierarchies_are_found() {
        let found = mounts(MOUNTS);
        assert_eq!(found.len(), 3);
        assert_eq!(
            (found[1].root.as_str(), found[1].controllers.as_deref()),
            ("/pod", Some(&["rw", "memory"].map(str::to_owned)[..]))
        );
        assert_eq!(found[2].controllers, None);
    }

    #[test]
    fn a_process_is_bound_by_all_groups_above_it() {
        let groups = Cgroups {
            metered: BTreeMap::new(),
            mounts: mounts(MOUNTS),
            members: Vec::new(),
            quotas: BTreeMap::new(),
            devices: BTreeMap::new(),
        };
        let text = "4:memory:/pod/a\n1:cpu:/lab/osd.0\n0::/x\n";
        let point = Path::new("/sys/fs/cgroup");
        let chain = groups.chain(text, "cpu");
        assert_eq!(chain, ["cpu/lab/osd.0", "cpu/lab", "cpu"].map(|path| point.join(path)));
        assert_eq!(groups.chain(text, "memory"), ["memory/a", "memory"].map(|path| point.join(path)));
        assert_eq!(groups.chain(text, "io"), ["unified/x", "unified"].map(|path| point.join(path)));
        assert_eq!(groups.chain("1:cpu:/../../etc\n", "cpu"), Vec::<PathBuf>::new());
        assert!(groups.chain("", "cpu").is_empty());
    }

    #[test]
    fn limits_are_read_in_both_versions() {
        assert_eq!(cpu_max("200000 100000\n"), Some(2.0));
        assert_eq!((cpu_max("max 100000\n"), cpu_max("1 0")), (None, None));
        assert_eq!(device_limit("7:3 500\n"), Some(((7, 3), 500.0)));
        let both = io_max("7:3 rbps=max wbps=1048576 riops=max wiops=500");
        assert_eq!(both, [((7, 3), "write_bytes_limit", 1_048_576.0), ((7, 3), "write_ops_limit", 500.0)]);
        let one = "nr_periods 10\nnr_throttled 4\nthrottled_time 5000\n";
        assert_eq!(throttled(one), Throttled { periods: 10, throttled: 4, time_ns: 5000 });
        assert_eq!(throttled("usage_usec 9\nthrottled_usec 7\n").time_ns, 7000);
    }

    #[test]
    fn the_tightest_group_binds() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("blkio.throttle.write_iops_device"), "7:3 500\n7:4 90\n").unwrap();
        fs::write(directory.path().join("blkio.throttle.write_iops_device"), "7:3 400\n7:4 100\n").unwrap();
        let chain = [own.clone(), directory.path().to_owned()];
        let limits = device_limits(&chain, &[]);
        assert_eq!(limits[&((7, 3), "write_ops_limit")], (directory.path().to_owned(), 400.0));
        assert_eq!(limits[&((7, 4), "write_ops_limit")], (own.clone(), 90.0));
        fs::write(own.join("cpu.cfs_quota_us"), "-1\n").unwrap();
        fs::write(own.join("cpu.cfs_period_us"), "100000\n").unwrap();
        assert_eq!(quota(&own), None, "-1 is no limit");
        fs::write(own.join("cpu.cfs_quota_us"), "50000\n").unwrap();
        assert_eq!(quota(&own), Some(0.5));
        fs::write(own.join("memory.max"), "max\n").unwrap();
        assert!(memory(&chain).is_none());
    }

    #[test]
    fn a_shortage_of_memory_is_counted_in_both_versions() {
        let directory = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(directory.path().join(file), text).unwrap();
        write("memory.events", "low 0\nhigh 0\nmax 7\noom 0\n");
        write("memory.stat", "anon 1\nworkingset_refault_anon 2\nworkingset_refault_file 40\n");
        assert_eq!(short(directory.path()), Short { hits: 7, refaults: 42 });
        write("memory.failcnt", "9\n");
        write("memory.stat", "workingset_refault_file 1\ntotal_workingset_refault_file 50\n");
        assert_eq!(short(directory.path()), Short { hits: 9, refaults: 50 });
    }

    #[test]
    fn throttling_is_a_share_of_the_periods_between_two_looks() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cpu.stat");
        fs::write(&path, "nr_periods 10\nnr_throttled 1\nthrottled_time 0\n").unwrap();
        let mut quota = Quota { cores: 1.0, stat: Reader::open(&path).unwrap(), before: None, last: None };
        quota.look(Some(1.0));
        assert_eq!(quota.last, None);
        fs::write(&path, "nr_periods 20\nnr_throttled 6\nthrottled_time 500000000\n").unwrap();
        quota.look(Some(1.0));
        assert_eq!(quota.last, Some((0.5, 0.5)));
    }

    proptest! {
        #[test]
        fn odd_content_does_not_panic(text in "(:| |/| - |cgroup|max|wbps=|[0-9]{0,25}|.|\n){0,40}") {
            let _ = (mounts(&text), cpu_max(&text), throttled(&text));
            for line in text.lines() {
                let _ = (membership(line), device_limit(line), io_max(line), below(line, "/a"));
            }
        }
    }
}
