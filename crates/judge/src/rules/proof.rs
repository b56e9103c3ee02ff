//! Whether the devices under the volumes saw the bytes that the load claims.

use super::Findings;
use crate::context::{SECOND_NS, StageContext, WorkContext, sum};
use crate::words::proof::{Compared, DriverMoved, Proof as Found, Seen, Way, not_behind, seen};
use crate::{Finding, Severity};
use tidemark_measure::kind::{Cache, OperationClass};
use tidemark_measure::record::{DeviceUse, DriverIo, OwnIo, Proof, Stage};

/// The devices must have seen this share of what the load claims. The rest is room for what is at the ends: bytes
/// of operations that failed half-way, and blocks that a file system keeps in memory for itself.
const SEEN_LEAST: f64 = 0.9;

/// From here on the devices did more than the load can have asked for: read-ahead, amplification, another user.
const SEEN_MOST: f64 = 1.5;

/// Traffic of others that is this share of the devices' or more is worth a warning, and is named from half of it on.
const FOREIGN_MUCH: f64 = 0.1;

/// Requests that are this many times as large as the operations are said to be.
const MERGED_LEAST: f64 = 1.5;

/// Less than this says nothing: a file system's own reads and writes are as much.
const CLAIMED_LEAST: u64 = 16 << 20;

/// A sync after the load that takes this share of the window means that the load went to memory for a part of it.
const SYNC_LONG: f64 = 0.1;

/// And this share that it is not the storage's throughput at all.
const SYNC_MOST: f64 = 0.5;

/// Bytes that the works of a stage say to have moved by operations of a class, in their windows and outside.
pub fn claimed(stage: &Stage, class: &OperationClass) -> u64 {
    let operations = stage.works.iter().flat_map(|work| &work.operations);
    sum(operations.filter(|operation| operation.class == *class).map(|operation| operation.tally.moved()))
}

impl StageContext<'_> {
    /// What the load says to have moved; nothing where there is nothing to compare it with.
    fn claimed(&self, class: &OperationClass) -> Option<u64> {
        Some(claimed(self.stage, class)).filter(|claimed| *claimed > 0 && !self.proof.devices.is_empty())
    }

    /// What each device saw of one way.
    fn devices(&self, way: Way) -> Vec<Seen> {
        let one = |device: &DeviceUse| {
            let (bytes, requests) = match way {
                Way::Read => (device.read_bytes, device.reads),
                Way::Write => (device.written_bytes, device.writes),
                Way::Trim => (device.discarded_bytes, device.discards),
            };
            let behind = device.behind.as_ref().and_then(|behind| {
                let bytes = match way {
                    Way::Read => behind.read_bytes,
                    Way::Write => behind.written_bytes,
                    Way::Trim => return None,
                };
                Some((behind.file.clone(), behind.device.clone(), bytes))
            });
            Seen { device: device.device.clone(), bytes, requests, behind }
        };
        self.proof.devices.iter().map(one).collect()
    }

    /// What this run itself had moved in one way, where the kernel counts that.
    fn own(&self, way: Way) -> Option<u64> {
        let own = self.proof.own?;
        match way {
            Way::Read => Some(own.read_bytes),
            Way::Write => Some(own.written_bytes),
            Way::Trim => None,
        }
    }

    fn device_names(&self) -> Vec<String> {
        self.proof.devices.iter().map(|device| device.device.clone()).collect()
    }

    fn finding(&self, severity: Severity, what: Found) -> Finding {
        self.about(severity, what)
    }

    fn bytes(&self, way: Way, compared: Compared, claimed: u64) -> Found {
        Found::Bytes {
            way,
            compared,
            claimed_bytes: claimed,
            devices: self.devices(way),
            own_bytes: self.own(way),
            cache: self.proof.cache.unwrap_or_default(),
            direct: self.proof.direct,
            needed_bytes: CLAIMED_LEAST,
        }
    }

    /// Compares bytes that must reach the devices, and that this run must have caused: others' requests prove nothing. Too
    /// few make the run invalid if the devices of all volumes were counted: the bytes of the others are missing otherwise.
    fn compare(&self, way: Way, class: &OperationClass) -> Option<Finding> {
        let claimed = self.claimed(class)?;
        let devices = self.devices(way);
        let share = seen(&devices, self.own(way)) as f64 / claimed as f64;
        let warm = way == Way::Read && self.proof.cache == Some(Cache::Warm);
        let compared = match share {
            _ if claimed < CLAIMED_LEAST => Compared::TooLittle,
            few if few < SEEN_LEAST && warm => Compared::MissingAsDeclared,
            few if few < SEEN_LEAST => Compared::Missing,
            _ if not_behind(&devices, SEEN_LEAST).is_some() => Compared::NotBehind,
            many if many > SEEN_MOST => Compared::TooMuch,
            _ => Compared::Seen,
        };
        let certain = self.measures && self.proof.unchecked.is_empty();
        let severity = match compared {
            Compared::Seen => Severity::Good,
            Compared::Missing if certain => Severity::Critical,
            Compared::Missing | Compared::NotBehind => Severity::Warning,
            _ => Severity::Note,
        };
        let finding = self.finding(severity, self.bytes(way, compared, claimed));
        Some(finding.invalidating(certain && compared == Compared::Missing))
    }
}

/// Whether what was read came from the devices.
pub(crate) fn reads(evidence: &StageContext<'_>, out: &mut Findings) {
    evidence.compare(Way::Read, &OperationClass::Read).into_iter().for_each(|finding| out.add(finding));
}

/// Whether what was written reached the devices.
pub(crate) fn writes(evidence: &StageContext<'_>, out: &mut Findings) {
    evidence.compare(Way::Write, &OperationClass::Write).into_iter().for_each(|finding| out.add(finding));
}

/// Whether each driver's own process moved what it claims: the sum of many hides one that did not.
pub(crate) fn drivers(evidence: &StageContext<'_>, out: &mut Findings) {
    let Proof { drivers, devices, cache, unchecked, .. } = evidence.proof;
    if drivers.len() < 2 || devices.is_empty() {
        return;
    }
    for way in [Way::Read, Way::Write] {
        let moved = |one: &DriverIo| {
            let own =
                evidence.stage.shares.iter().filter(|share| share.driver == one.driver && share.complete);
            let (claimed, moved) = match way {
                Way::Read => (sum(own.map(|share| share.read_bytes)), one.own.read_bytes),
                _ => (sum(own.map(|share| share.written_bytes)), one.own.written_bytes),
            };
            let driver = evidence
                .run
                .drivers
                .get(one.driver as usize)
                .map_or_else(String::new, |one| one.name.clone());
            DriverMoved { driver, claimed_bytes: claimed, own_bytes: moved }
        };
        let claims: Vec<DriverMoved> =
            drivers.iter().map(moved).filter(|one| one.claimed_bytes > 0).collect();
        let of = claims.len();
        let all: Vec<DriverMoved> =
            claims.into_iter().filter(|one| one.claimed_bytes >= CLAIMED_LEAST).collect();
        if all.is_empty() {
            continue;
        }
        let short = |one: &DriverMoved| (one.own_bytes as f64) < one.claimed_bytes as f64 * SEEN_LEAST;
        let missing: Vec<String> =
            all.iter().filter(|one| short(one)).map(|one| one.driver.clone()).collect();
        let warm = way == Way::Read && *cache == Some(Cache::Warm);
        let certain = evidence.measures && unchecked.is_empty() && !warm;
        let severity = match (missing.is_empty(), certain) {
            (true, _) => Severity::Good,
            (false, true) => Severity::Critical,
            (false, false) if warm => Severity::Note,
            (false, false) => Severity::Warning,
        };
        let is_missing = !missing.is_empty();
        let finding = evidence.finding(severity, Found::Drivers { way, missing, drivers: all, of });
        out.add(finding.invalidating(certain && is_missing));
    }
}

/// Whether what was read and written came from and reached the OSDs of a cluster, and not only its clients. They count for all
/// clients, so that they may only show that something is missing.
pub(crate) fn osds(evidence: &StageContext<'_>, out: &mut Findings) {
    let Some(used) = &evidence.proof.osds else { return };
    for (way, class) in [(Way::Read, OperationClass::Read), (Way::Write, OperationClass::Write)] {
        let claimed = claimed(evidence.stage, &class);
        let (from_cache, seen) = match way {
            Way::Read => (used.cache_read_bytes, Some(used.device_read_bytes)),
            _ => (0, used.written_per_copy()),
        };
        let Some(seen) = seen.filter(|_| claimed > 0) else { continue };
        let share = seen as f64 / claimed as f64;
        let compared = match share {
            _ if claimed < CLAIMED_LEAST => Compared::TooLittle,
            few if few < SEEN_LEAST => Compared::Missing,
            many if many > SEEN_MOST => Compared::TooMuch,
            _ => Compared::Seen,
        };
        let severity = match compared {
            Compared::Seen => Severity::Good,
            Compared::Missing => Severity::Warning,
            _ => Severity::Note,
        };
        let what = Found::Osds {
            way,
            compared,
            claimed_bytes: claimed,
            seen_bytes: seen,
            cached_bytes: from_cache,
            osds: used.osds,
            copies: used.copies,
            needed_bytes: CLAIMED_LEAST,
        };
        out.add(evidence.finding(severity, what));
    }
}

/// Whether the devices were told of trims. A file system may keep what it gets back to itself: no fault of anybody.
pub(crate) fn trims(evidence: &StageContext<'_>, out: &mut Findings) {
    let Some(claimed) = evidence.claimed(&OperationClass::Trim) else { return };
    let share = seen(&evidence.devices(Way::Trim), None) as f64 / claimed as f64;
    let compared = if share > 0.0 { Compared::Seen } else { Compared::Missing };
    let severity = if share < SEEN_LEAST { Severity::Note } else { Severity::Good };
    out.add(evidence.finding(severity, evidence.bytes(Way::Trim, compared, claimed)));
}

/// What the devices did for others. Writes may be the file system's own, reads hardly.
pub(crate) fn foreign(evidence: &StageContext<'_>, out: &mut Findings) {
    // All of it is the database's, which is another process.
    if evidence.is_io_elsewhere {
        return;
    }
    let (Some(own), true) = (evidence.proof.own, evidence.measures) else { return };
    let Traffic { read, written, share } = Traffic::of(evidence, own);
    if read + written < CLAIMED_LEAST || share < FOREIGN_MUCH / 2.0 {
        return;
    }
    let much = share >= FOREIGN_MUCH && read >= written;
    let severity = if much { Severity::Warning } else { Severity::Note };
    let devices = evidence.device_names();
    let what = Found::Foreign { devices, read_bytes: read, written_bytes: written, share, own };
    out.add(evidence.finding(severity, what));
}

/// Bytes that the devices moved for others, and their share of all.
struct Traffic {
    read: u64,
    written: u64,
    share: f64,
}

impl Traffic {
    fn of(evidence: &StageContext<'_>, own: OwnIo) -> Self {
        let total = |way| seen(&evidence.devices(way), None);
        let (all_read, all_written) = (total(Way::Read), total(Way::Write));
        let read = all_read.saturating_sub(own.read_bytes);
        let written = all_written.saturating_sub(own.written_bytes);
        let share = (read + written) as f64 / (all_read + all_written).max(1) as f64;
        Self { read, written, share }
    }
}

/// Whether the requests that reached the devices are larger than the operations. Others' requests would make the mean
/// meaningless, and so would a page cache.
pub(crate) fn merged(evidence: &StageContext<'_>, out: &mut Findings) {
    let Some(own) = evidence.proof.own.filter(|_| evidence.proof.direct && evidence.measures) else { return };
    if Traffic::of(evidence, own).share >= FOREIGN_MUCH / 2.0 {
        return;
    }
    for (way, class) in [(Way::Read, OperationClass::Read), (Way::Write, OperationClass::Write)] {
        let works = evidence.stage.works.iter().flat_map(|work| &work.operations);
        let tallies = || works.clone().filter(|one| one.class == class).map(|one| &one.tally);
        let (bytes, operations) =
            (sum(tallies().map(|tally| tally.bytes)), sum(tallies().map(|tally| tally.ok)));
        let devices = evidence.devices(way);
        let (moved, requests) = (seen(&devices, None), sum(devices.iter().map(|one| one.requests)));
        if bytes < CLAIMED_LEAST || operations == 0 || requests == 0 {
            continue;
        }
        let (operation_bytes, request_bytes) = (bytes / operations, moved / requests);
        if request_bytes as f64 >= operation_bytes as f64 * MERGED_LEAST {
            let devices = evidence.device_names();
            let what = Found::Merged { way, devices, operation_bytes, request_bytes };
            out.add(evidence.finding(Severity::Note, what));
        }
    }
}

/// What could not be checked.
pub(crate) fn unchecked(evidence: &StageContext<'_>, out: &mut Findings) {
    let reasons = evidence.proof.unchecked.clone();
    if !reasons.is_empty() {
        out.add(evidence.finding(Severity::Note, Found::Unchecked { reasons }));
    }
}

/// Evidence of engines that this program cannot read was judged by nobody.
pub(super) fn unread(evidence: &StageContext<'_>, keys: Vec<String>, out: &mut Findings) {
    if !keys.is_empty() {
        let finding = evidence.finding(Severity::Critical, Found::Unread { keys });
        out.add(finding.invalidating(evidence.measures));
    }
}

/// The load used the page cache.
pub(crate) fn buffered(evidence: &StageContext<'_>, out: &mut Findings) {
    if evidence.proof.direct || evidence.proof.devices.is_empty() {
        return;
    }
    out.add(evidence.finding(Severity::Note, Found::Buffered {}));
}

/// How long the sync after a buffered load took: time that its bandwidth leaves out.
pub(super) fn sync_after_load(context: &WorkContext<'_>, out: &mut Findings) {
    let buffered = context.stage.proof.as_ref().is_some_and(|proof| !proof.direct);
    let window = context.window_ns();
    if !buffered || window == 0 || !context.measures() {
        return;
    }
    let late = context.syncs().filter(|operation| operation.tally.late > 0);
    let longest = late.map(|operation| operation.tally.response.max()).max().unwrap_or(0);
    let sync = longest.min(context.work.last_done_ns.saturating_sub(context.work.window_end_ns));
    let share = sync as f64 / window as f64;
    if share <= SYNC_LONG {
        return;
    }
    let seconds = context.work.window_seconds();
    let writes = context.work.operations.iter().filter(|operation| operation.class == OperationClass::Write);
    let bandwidth: f64 = writes.map(|operation| operation.bandwidth(seconds)).sum();
    let honest = bandwidth * seconds / (seconds + sync as f64 / SECOND_NS as f64);
    let most = share > SYNC_MOST;
    let severity = if most { Severity::Critical } else { Severity::Warning };
    let what = Found::SyncAfterLoad {
        sync_ns: sync,
        window_ns: window,
        bandwidth,
        bandwidth_with_sync: honest,
        limit: SYNC_LONG,
        limit_invalid: SYNC_MOST,
    };
    let finding = context.finding(severity, what);
    if most { out.invalidate(context, finding) } else { out.add(finding) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, healthy, invalid_for, invalid_with, said, sweep_run, work};
    use super::*;
    use tidemark_measure::kind::WorkKind;
    use tidemark_measure::record::{Behind, Operation, OsdUse, Proof, Run};

    const GIB: u64 = 1 << 30;

    /// The healthy run having moved 8 GiB as `class`, of which the device saw `seen`.
    fn with(class: &str, seen: u64, change: impl Fn(&mut Proof)) -> Run {
        let mut run = healthy();
        let operation = &mut work(&mut run).operations[0];
        (operation.class, operation.tally.bytes) = (OperationClass::named(class), 7 * GIB);
        operation.tally.outside_bytes = GIB;
        let device = DeviceUse {
            device: "vda".into(),
            read_bytes: seen,
            written_bytes: seen,
            discarded_bytes: seen,
            ..DeviceUse::default()
        };
        let mut proof =
            Proof { cache: Some(Cache::Cold), direct: true, devices: vec![device], ..Proof::default() };
        change(&mut proof);
        run.stages[0].proof = Some(proof);
        run
    }

    #[test]
    fn reads_that_the_device_saw_are_proven() {
        let finding = said(&with("read", 8 * GIB + 20 * (1 << 20), |_| ()), "reads-proven").unwrap();
        assert_eq!(
            (finding.severity, finding.title()),
            (Severity::Good, "device counters confirm the bytes read: 100 %".to_owned())
        );
        assert_eq!(finding.evidence()[0], "claimed 8.00 GiB, vda read 8.02 GiB: 100 %");
        assert_eq!(said(&with("read", 13 * GIB, |_| ()), "reads-proven").unwrap().severity, Severity::Note);
    }

    #[test]
    fn a_driver_that_read_from_memory_is_not_hidden_by_the_others() {
        use tidemark_measure::record::{Driver, Share};
        let of = |own: [u64; 4], cache| {
            let mut run = with("read", 8 * GIB, |proof| {
                proof.cache = Some(cache);
                proof.drivers = (0..)
                    .zip(own)
                    .map(|(driver, read_bytes)| DriverIo {
                        driver,
                        own: OwnIo { read_bytes, written_bytes: 0 },
                    })
                    .collect();
            });
            for driver in 0..4 {
                run.drivers.push(Driver { name: format!("d{}", driver + 1), ..Driver::default() });
                let share = Share { driver, read_bytes: 2 * GIB, complete: true, ..Share::default() };
                run.stages[0].shares.push(Share { workers: 1, ..share });
            }
            run
        };
        let all = said(&of([2 * GIB; 4], Cache::Cold), "drivers-proven").unwrap();
        assert_eq!(
            (all.severity, all.title()),
            (
                Severity::Good,
                "each of 4 drivers read what it claims, by the kernel's count of its process".to_owned()
            )
        );
        let mut little = of([2 * GIB; 4], Cache::Cold);
        little.stages[0].shares[1].read_bytes = 1 << 20;
        assert_eq!(
            said(&little, "drivers-proven").unwrap().title(),
            "3 of 4 drivers read what they claim, by the kernel's counts of their processes; the others too little to tell"
        );
        let one = of([2 * GIB, 2 * GIB, 5 << 20, 2 * GIB], Cache::Cold);
        let finding = said(&one, "drivers-not-proven").unwrap();
        assert_eq!(finding.title(), "driver d3 claims more than its process read");
        assert_eq!(finding.evidence()[2], "d3: claimed 2.00 GiB, its process read 5.00 MiB: under 1 %");
        assert!(invalid_for(&one, "drivers-not-proven"));
        let warm = of([2 * GIB, 2 * GIB, 5 << 20, 2 * GIB], Cache::Warm);
        assert_eq!(said(&warm, "drivers-not-proven").unwrap().severity, Severity::Note);
    }

    #[test]
    fn a_neighbour_s_traffic_proves_nothing_and_is_named() {
        let own = |read_bytes| {
            move |proof: &mut Proof| proof.own = Some(OwnIo { read_bytes, written_bytes: 16 * GIB })
        };
        // The device read more than was claimed, but hardly for this run.
        let cached = with("read", 9 * GIB, own(GIB / 50));
        assert!(
            invalid_with(&cached, "over 99 % of the bytes read came from memory"),
            "{:?}",
            said(&cached, "reads-proven")
        );
        let named = said(&cached, "foreign-traffic").unwrap();
        assert_eq!(named.severity, Severity::Warning);
        assert!(
            named.title().starts_with("others read 9.64 GB from vda and wrote 0 B to it meanwhile: 50 % of"),
            "{}",
            named.title()
        );
        // Beside a load that did read what it claims.
        let beside = with("read", 10 * GIB, own(8 * GIB));
        assert_eq!(
            said(&beside, "reads-proven").unwrap().title(),
            "device counters confirm the bytes read: 100 %"
        );
        assert!(said(&beside, "foreign-traffic").unwrap().title().starts_with("others read 2.15 GB"));
        assert_eq!(said(&with("read", 8 * GIB + GIB / 100, own(8 * GIB)), "foreign-traffic"), None);
        assert_eq!(said(&with("read", 9 * GIB, |_| ()), "foreign-traffic"), None, "not known");
    }

    #[test]
    fn a_loop_device_is_not_proof_where_the_file_s_device_saw_nothing() {
        let behind = |bytes| {
            with("read", 8 * GIB, move |proof| {
                let behind = Behind {
                    file: "/d/disk".into(),
                    device: "sda".into(),
                    read_bytes: bytes,
                    written_bytes: 0,
                };
                proof.devices[0].behind = Some(behind);
            })
        };
        assert_eq!(said(&behind(8 * GIB), "reads-proven").unwrap().severity, Severity::Good);
        let cached = behind(GIB);
        assert_eq!(said(&cached, "reads-proven"), None);
        let finding = said(&cached, "reads-from-cache").unwrap();
        assert_eq!(
            (finding.severity, finding.title()),
            (
                Severity::Warning,
                "of the bytes that vda read, only 12 % come from sda, which its file /d/disk lies on"
                    .to_owned()
            )
        );
        assert!(!invalid_for(&cached, ""));
    }

    #[test]
    fn requests_that_are_larger_than_the_operations_are_said() {
        let with_requests = |reads| {
            let mut run = with("read", 8 * GIB, move |proof| {
                proof.own = Some(OwnIo { read_bytes: 8 * GIB, written_bytes: 8 * GIB });
                proof.devices[0].reads = reads;
            });
            work(&mut run).operations[0].tally.ok = 7 * GIB / 4096;
            run
        };
        assert_eq!(said(&with_requests(8 * GIB / 4096), "requests-merged"), None);
        let merged = said(&with_requests(8 * GIB / (96 << 10)), "requests-merged").unwrap();
        assert_eq!(merged.severity, Severity::Note);
        assert!(
            merged
                .title()
                .contains("vda read in requests of 96.0 KiB on average, for operations of 4.00 KiB"),
            "{}",
            merged.title()
        );
    }

    #[test]
    fn reads_from_memory_are_caught_unless_declared() {
        let cold = with("read", GIB / 50, |proof| proof.direct = false);
        assert!(
            invalid_with(&cold, "over 99 % of the bytes read came from memory, not from vda"),
            "{:?}",
            said(&cold, "reads-from-cache")
        );
        let some = with("read", 6 * GIB, |_| ());
        assert!(invalid_with(&some, "s1-main: 25 % of the bytes read came from memory, not from vda"));
        let warm = with("read", GIB, |proof| proof.cache = Some(Cache::Warm));
        assert_eq!(said(&warm, "reads-from-cache").unwrap().severity, Severity::Note);
        assert!(!invalid_for(&warm, ""));
    }

    #[test]
    fn what_could_not_be_checked_proves_nothing() {
        let reason = "/dev/shm/v lies on tmpfs, which has no device.";
        let none = with("read", 0, |proof| {
            proof.devices.clear();
            proof.unchecked = vec![reason.into()];
        });
        assert_eq!(said(&none, "not-proven").unwrap().title(), reason.trim_end_matches('.'));
        assert!(!invalid_for(&none, "") && said(&none, "reads-from-cache").is_none());
        let some = with("read", GIB, |proof| proof.unchecked = vec![reason.into()]);
        assert_eq!(said(&some, "reads-from-cache").unwrap().severity, Severity::Warning);
        assert!(!invalid_for(&some, ""));
    }

    #[test]
    fn writes_must_reach_the_device() {
        assert_eq!(said(&with("write", 8 * GIB, |_| ()), "writes-proven").unwrap().severity, Severity::Good);
        assert!(invalid_with(&with("write", 4 * GIB, |_| ()), "50 % of the bytes written did not reach vda"));
        assert!(
            said(&with("write", 16 * GIB, |_| ()), "writes-proven")
                .unwrap()
                .title()
                .contains("wrote 2.0 times")
        );
        let mut preparing = with("write", 4 * GIB, |_| ());
        work(&mut preparing).kind = WorkKind::Prepare;
        assert_eq!(said(&preparing, "writes-in-memory").unwrap().severity, Severity::Warning);
        assert!(!invalid_for(&preparing, ""));
    }

    #[test]
    fn osds_prove_what_reached_them_and_say_what_did_not() {
        let counted = |class: &str, device, cache, written| {
            let used = OsdUse {
                osds: 3,
                copies: 2,
                device_read_bytes: device,
                cache_read_bytes: cache,
                written_bytes: written,
            };
            with(class, 0, move |proof| {
                proof.devices.clear();
                proof.osds = Some(used.clone());
            })
        };
        let good = said(&counted("write", 0, 0, 16 * GIB), "writes-proven").unwrap();
        assert_eq!(
            (good.severity, good.title()),
            (Severity::Good, "the OSDs' counters confirm the bytes written: 100 %".to_owned())
        );
        assert_eq!(good.evidence()[0], "claimed 8.00 GiB, 3 OSDs wrote 8.00 GiB for each of 2 copies: 100 %");
        let lost = said(&counted("write", 0, 0, 8 * GIB), "writes-in-memory").unwrap();
        assert_eq!(
            (lost.severity, lost.title()),
            (Severity::Warning, "50 % of the bytes written did not reach the OSDs".to_owned())
        );
        let proven = said(&counted("read", 8 * GIB, GIB, 0), "reads-proven").unwrap();
        assert_eq!(proven.title(), "the OSDs' counters confirm the bytes read: 100 %");
        let cached = counted("read", 2 * GIB, 6 * GIB, 0);
        let finding = said(&cached, "reads-from-cache").unwrap();
        assert_eq!(finding.title(), "75 % of the bytes read did not come from the OSDs' devices");
        assert!(finding.detail().starts_with("The OSDs had them in their caches"), "{}", finding.detail());
        assert!(!invalid_for(&cached, ""));
        let holes = said(&counted("read", 0, 0, 0), "reads-from-cache").unwrap();
        assert!(holes.detail().starts_with("Nor did they come from the OSDs' caches"), "{}", holes.detail());
        // Erasure-coded pools keep no copies to divide by.
        let coded = with("write", 0, |proof| {
            proof.devices.clear();
            proof.osds = Some(OsdUse { osds: 3, written_bytes: GIB, ..OsdUse::default() });
        });
        assert_eq!(said(&coded, "writes-in-memory"), None);
    }

    #[test]
    fn little_is_not_judged_and_trims_may_be_kept() {
        let mut little = with("read", 0, |_| ());
        let tally = &mut work(&mut little).operations[0].tally;
        (tally.bytes, tally.outside_bytes) = (CLAIMED_LEAST - 1, 0);
        assert_eq!(said(&little, "reads-proven").unwrap().severity, Severity::Note);
        assert!(!invalid_for(&little, ""));
        assert_eq!(said(&with("trim", 8 * GIB, |_| ()), "trims-proven").unwrap().severity, Severity::Good);
        assert_eq!(said(&with("trim", 0, |_| ()), "trims-proven").unwrap().severity, Severity::Note);
    }

    #[test]
    fn proofs_of_a_sweep_are_one_finding_with_their_range() {
        let mut run = sweep_run(&["4 KiB", "64 KiB"], 3);
        for (index, stage) in run.stages.iter_mut().enumerate() {
            stage.works[0].operations[0].tally.bytes = GIB;
            let seen = GIB / 100 * (99 + index as u64 % 3);
            let device = DeviceUse { device: "vda".into(), read_bytes: seen, ..DeviceUse::default() };
            stage.proof = Some(Proof { direct: true, devices: vec![device], ..Proof::default() });
        }
        let finding = said(&run, "reads-proven").unwrap();
        assert_eq!(finding.sentence(), "6 stages: device counters confirm the bytes read: 99 % to 101 %");
        // One stage that is bad stands alone.
        run.stages[2].proof.as_mut().unwrap().devices[0].read_bytes = 0;
        assert!(invalid_with(&run, "s3-rand: 100 % of the bytes read came from memory"));
        assert_eq!(said(&run, "reads-proven").unwrap().place(), "5 stages");
    }

    #[test]
    fn a_long_sync_after_a_buffered_load_is_part_of_it() {
        let synced = |sync_ns: u64, direct| {
            let mut run = with("write", 8 * GIB, |proof| proof.direct = direct);
            let own = work(&mut run);
            own.last_done_ns += sync_ns;
            let mut sync = Operation { class: OperationClass::Sync, ..Operation::default() };
            (sync.tally.ok, sync.tally.late) = (1, 1);
            sync.tally.response.record(sync_ns);
            own.operations.push(sync);
            run
        };
        assert_eq!(said(&synced(2_000 * MS, false), "sync-after-load"), None, "a tenth of 20 s");
        let finding = said(&synced(5_000 * MS, false), "sync-after-load").unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(
            finding.evidence()[0],
            "written: 376 MB/s over the window; 301 MB/s over the window and the sync"
        );
        assert!(!invalid_for(&synced(5_000 * MS, false), ""));
        assert!(invalid_with(
            &synced(11_000 * MS, false),
            "the sync after the load took 11.0 s, 55 % of the window"
        ));
        assert_eq!(
            said(&synced(11_000 * MS, true), "sync-after-load"),
            None,
            "direct I/O leaves nothing in memory"
        );
        assert_eq!(said(&synced(11_000 * MS, false), "late-tail"), None);
    }
}
