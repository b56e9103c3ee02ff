//! Whether the devices under the volumes saw the bytes that the load claims.

use super::Findings;
use crate::context::{SECOND_NS, WorkContext, sum};
use crate::words::proof::{Compared, Proof as Found, Way};
use crate::{Finding, Severity};
use tidemark_measure::kind::{Cache, OperationClass};
use tidemark_measure::record::{DeviceUse, Proof, Run, Stage, State};

/// The devices must have seen this share of what the load claims. The rest is room for what is at the ends: bytes
/// of operations that failed half-way, and blocks that a file system keeps in memory for itself.
const SEEN_LEAST: f64 = 0.9;

/// From here on the devices did more than the load can have asked for: read-ahead, amplification, another user.
const SEEN_MOST: f64 = 1.5;

/// Less than this says nothing: a file system's own reads and writes are as much.
const CLAIMED_LEAST: u64 = 16 << 20;

/// A sync after the load that takes this share of the window means that the load went to memory for a part of it.
const SYNC_LONG: f64 = 0.1;

/// And this share that it is not the storage's throughput at all.
const SYNC_MOST: f64 = 0.5;

/// A stage with what its devices counted.
pub(crate) struct Evidence<'a> {
    stage: &'a Stage,
    proof: &'a Proof,
    /// Whether any of its works measures something.
    pub(crate) measures: bool,
}

/// Bytes that the works of a stage say to have moved by operations of a class, in their windows and outside.
pub fn claimed(stage: &Stage, class: &OperationClass) -> u64 {
    let operations = stage.works.iter().flat_map(|work| &work.operations);
    sum(operations.filter(|operation| operation.class == *class).map(|operation| operation.tally.moved()))
}

impl<'a> Evidence<'a> {
    /// That of every stage that was started and has a proof.
    pub(crate) fn all(run: &'a Run) -> impl Iterator<Item = Self> {
        let started = run.stages.iter().filter(|stage| stage.state != State::Waiting);
        started.filter_map(|stage| {
            let measures = stage.works.iter().any(|work| work.kind.measures());
            Some(Self { stage, proof: stage.proof.as_ref()?, measures })
        })
    }

    /// What the load says to have moved and the share of it that the devices saw; nothing where there is nothing to compare.
    fn seen(&self, class: &OperationClass, bytes: fn(&DeviceUse) -> u64) -> Option<(u64, f64)> {
        let claimed = claimed(self.stage, class);
        let devices = &self.proof.devices;
        let compares = claimed > 0 && !devices.is_empty();
        compares.then(|| (claimed, sum(devices.iter().map(bytes)) as f64 / claimed as f64))
    }

    fn finding(&self, severity: Severity, what: Found) -> Finding {
        Finding::about_stage(self.stage, severity, what)
    }

    fn bytes(&self, way: Way, compared: Compared, claimed: u64, bytes: fn(&DeviceUse) -> u64) -> Found {
        let each = self.proof.devices.iter().map(|device| (device.device.clone(), bytes(device)));
        Found::Bytes {
            way,
            compared,
            claimed_bytes: claimed,
            devices: each.collect(),
            cache: self.proof.cache.unwrap_or_default(),
            direct: self.proof.direct,
            needed_bytes: CLAIMED_LEAST,
        }
    }

    /// Compares bytes that must reach the devices. Too few make the run invalid if the devices of all volumes were counted:
    /// the bytes of the others are missing otherwise.
    fn compare(&self, way: Way, class: &OperationClass, bytes: fn(&DeviceUse) -> u64) -> Option<Finding> {
        let (claimed, share) = self.seen(class, bytes)?;
        let warm = way == Way::Read && self.proof.cache == Some(Cache::Warm);
        let compared = match share {
            _ if claimed < CLAIMED_LEAST => Compared::TooLittle,
            few if few < SEEN_LEAST && warm => Compared::MissingAsDeclared,
            few if few < SEEN_LEAST => Compared::Missing,
            many if many > SEEN_MOST => Compared::TooMuch,
            _ => Compared::Seen,
        };
        let certain = self.measures && self.proof.unchecked.is_empty();
        let severity = match compared {
            Compared::Seen => Severity::Good,
            Compared::Missing if certain => Severity::Critical,
            Compared::Missing => Severity::Warning,
            _ => Severity::Note,
        };
        let finding = self.finding(severity, self.bytes(way, compared, claimed, bytes));
        Some(finding.invalidating(certain && compared == Compared::Missing))
    }
}

/// Whether what was read came from the devices.
pub(crate) fn reads(evidence: &Evidence<'_>, out: &mut Findings) {
    let found = evidence.compare(Way::Read, &OperationClass::Read, |device| device.read_bytes);
    found.into_iter().for_each(|finding| out.say(finding));
}

/// Whether what was written reached the devices.
pub(crate) fn writes(evidence: &Evidence<'_>, out: &mut Findings) {
    let found = evidence.compare(Way::Write, &OperationClass::Write, |device| device.written_bytes);
    found.into_iter().for_each(|finding| out.say(finding));
}

/// Whether the devices were told of trims. A file system may keep what it gets back to itself: no fault of anybody.
pub(crate) fn trims(evidence: &Evidence<'_>, out: &mut Findings) {
    let bytes = |device: &DeviceUse| device.discarded_bytes;
    let Some((claimed, share)) = evidence.seen(&OperationClass::Trim, bytes) else { return };
    let compared = if share > 0.0 { Compared::Seen } else { Compared::Missing };
    let severity = if share < SEEN_LEAST { Severity::Note } else { Severity::Good };
    out.say(evidence.finding(severity, evidence.bytes(Way::Trim, compared, claimed, bytes)));
}

/// What could not be checked.
pub(crate) fn unchecked(evidence: &Evidence<'_>, out: &mut Findings) {
    let reasons = evidence.proof.unchecked.clone();
    if !reasons.is_empty() {
        out.say(evidence.finding(Severity::Note, Found::Unchecked { reasons }));
    }
}

/// The load used the page cache.
pub(crate) fn buffered(evidence: &Evidence<'_>, out: &mut Findings) {
    if evidence.proof.direct || evidence.proof.devices.is_empty() {
        return;
    }
    out.say(evidence.finding(Severity::Note, Found::Buffered {}));
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
    if most { out.invalidate(context, finding) } else { out.say(finding) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, healthy, invalid_for, invalid_with, said, sweep_run, work};
    use super::*;
    use tidemark_measure::kind::WorkKind;
    use tidemark_measure::record::Operation;

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
