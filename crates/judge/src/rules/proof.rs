//! Whether the devices under the volumes saw the bytes that the load claims.

use super::Findings;
use crate::context::{SECOND_NS, WorkContext, measures, sum};
use crate::{Finding, Severity};
use tidemark_measure::record::{DeviceUse, Proof, Run, Stage, State};
use tidemark_measure::units;

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

/// Devices named in a title.
const NAMED_MOST: usize = 3;

/// A stage with what its devices counted.
pub(crate) struct Evidence<'a> {
    stage: &'a Stage,
    proof: &'a Proof,
    /// Whether any of its works measures something.
    pub(crate) measures: bool,
}

/// Bytes that the works of a stage say to have moved by operations counted as `sample` (`read`, `write`, `trim`), in
/// their windows and outside.
pub fn claimed(stage: &Stage, sample: &str) -> u64 {
    let operations = stage.works.iter().flat_map(|work| &work.operations);
    sum(operations.filter(|operation| operation.sample == sample).map(|operation| operation.tally.moved()))
}

/// What the load claims and what the devices saw of it.
struct Seen {
    claimed: u64,
    seen: u64,
    share: f64,
    devices: String,
    lines: Vec<String>,
}

impl<'a> Evidence<'a> {
    /// That of every stage that was started and has a proof.
    pub(crate) fn all(run: &'a Run) -> impl Iterator<Item = Self> {
        let started = run.stages.iter().filter(|stage| stage.state != State::Waiting);
        started.filter_map(|stage| {
            let measures = stage.works.iter().any(measures);
            Some(Self { stage, proof: stage.proof.as_ref()?, measures })
        })
    }

    /// Bytes of the operations that are counted as `sample`, in the window and outside, against the devices'; nothing
    /// where there is nothing to compare.
    fn seen(&self, sample: &str, verb: &str, bytes: fn(&DeviceUse) -> u64) -> Option<Seen> {
        let claimed = claimed(self.stage, sample);
        let devices = &self.proof.devices;
        if claimed == 0 || devices.is_empty() {
            return None;
        }
        let seen = sum(devices.iter().map(bytes));
        let share = seen as f64 / claimed as f64;
        let each: Vec<String> = devices
            .iter()
            .map(|device| format!("{} {verb} {}", device.device, units::binary_bytes(bytes(device))))
            .collect();
        let line = format!(
            "claimed {}, {}: {}",
            units::binary_bytes(claimed),
            each.join(", "),
            whole_percent(share)
        );
        Some(Seen { claimed, seen, share, devices: names(devices), lines: vec![line, self.declared()] })
    }

    /// What is said of the page cache.
    fn declared(&self) -> String {
        let way = if self.proof.direct { "bypassed" } else { "in use" };
        format!(
            "page cache: declared {}, {way}",
            if self.proof.cache.is_empty() { "cold" } else { &self.proof.cache }
        )
    }

    /// A finding about too little seen. It makes the run invalid if the devices of all volumes were counted: the
    /// bytes of the others are missing otherwise.
    fn too_little(&self, rule: &'static str, title: String) -> Finding {
        let certain = self.measures && self.proof.unchecked.is_empty();
        let severity = if certain { Severity::Critical } else { Severity::Warning };
        Finding::about_stage(self.stage, severity, rule, title).invalidating(certain)
    }

    fn finding(&self, severity: Severity, rule: &'static str, title: impl Into<String>) -> Finding {
        Finding::about_stage(self.stage, severity, rule, title)
    }

    fn too_few(&self, rule: &'static str, verb: &str, seen: Seen) -> Finding {
        let title = format!("too little was {verb} to compare it with what the devices count");
        let least = format!("needed: {}", units::binary_bytes(CLAIMED_LEAST));
        self.finding(Severity::Note, rule, title).evidences(seen.lines).evidence(least)
    }
}

/// Whether what was read came from the devices.
pub(crate) fn reads(evidence: &Evidence<'_>, out: &mut Findings) {
    let Some(seen) = evidence.seen("read", "read", |device| device.read_bytes) else { return };
    let missing = missing(&seen);
    let (warm, devices) = (evidence.proof.cache == "warm", &seen.devices);
    if seen.claimed < CLAIMED_LEAST {
        return out.say(evidence.too_few("reads-proven", "read", seen));
    }
    let finding = if seen.share < SEEN_LEAST && warm {
        let title = format!("{missing} of the bytes read came from memory, not from {devices}, as declared");
        evidence.finding(Severity::Note, "reads-from-cache", title)
    } else if seen.share < SEEN_LEAST {
        let title = format!("{missing} of the bytes read came from memory, not from {devices}");
        evidence.too_little("reads-from-cache", title).detail(
            "These are numbers of the page cache. Read with direct I/O, from volumes larger than memory, or declare the cache warm if that is what is to be measured.",
        )
    } else if seen.share > SEEN_MOST {
        let title = format!("{devices} read {:.1} times as much as the load", seen.share);
        evidence
            .finding(Severity::Note, "reads-proven", title)
            .detail("That is read-ahead, or something else reads from the same device.")
    } else {
        let title = format!("the devices saw what was read: {}", whole_percent(seen.share));
        evidence.finding(Severity::Good, "reads-proven", title)
    };
    out.say(finding.evidences(seen.lines));
}

/// Whether what was written reached the devices.
pub(crate) fn writes(evidence: &Evidence<'_>, out: &mut Findings) {
    let Some(seen) = evidence.seen("write", "wrote", |device| device.written_bytes) else { return };
    if seen.claimed < CLAIMED_LEAST {
        return out.say(evidence.too_few("writes-proven", "written", seen));
    }
    let devices = &seen.devices;
    let finding = if seen.share < SEEN_LEAST {
        let missing = missing(&seen);
        let title = format!("{missing} of the bytes written did not reach {devices}");
        evidence.too_little("writes-in-memory", title).detail(
            "They were still in the page cache when the stage ended, or were overwritten there before they were written back. Write with direct I/O, or sync at the end of the load.",
        )
    } else if seen.share > SEEN_MOST {
        let title = format!("{devices} wrote {:.1} times as much as the load", seen.share);
        evidence.finding(Severity::Note, "writes-proven", title).detail(
            "That is what the file system or replication adds (journal, copies on write), or something else writes to the same device.",
        )
    } else {
        let title = format!("the devices saw what was written: {}", whole_percent(seen.share));
        evidence.finding(Severity::Good, "writes-proven", title)
    };
    out.say(finding.evidences(seen.lines));
}

/// Whether the devices were told of trims. A file system may keep what it gets back to itself: no fault of anybody.
pub(crate) fn trims(evidence: &Evidence<'_>, out: &mut Findings) {
    let Some(seen) = evidence.seen("trim", "discarded", |device| device.discarded_bytes) else { return };
    let finding = if seen.seen == 0 {
        evidence
            .finding(
                Severity::Note,
                "trims-proven",
                format!("{} was told of none of the trims", seen.devices),
            )
            .detail("The file system took the space back and has not passed it on.")
    } else {
        let title = format!("the devices saw what was trimmed: {}", whole_percent(seen.share));
        evidence.finding(
            if seen.share < SEEN_LEAST { Severity::Note } else { Severity::Good },
            "trims-proven",
            title,
        )
    };
    out.say(finding.evidences(seen.lines));
}

/// What could not be checked.
pub(crate) fn unchecked(evidence: &Evidence<'_>, out: &mut Findings) {
    let reasons = &evidence.proof.unchecked;
    let title = match reasons.as_slice() {
        [] => return,
        [only] => only.trim_end().trim_end_matches('.').to_owned(),
        several => format!("{} things could not be checked", several.len()),
    };
    let title = if title.is_empty() { "something could not be checked".into() } else { title };
    let lines = if reasons.len() > 1 { reasons.clone() } else { Vec::new() };
    let finding = evidence.finding(Severity::Note, "not-proven", title);
    out.say(
        finding.detail("Nothing says that the numbers are wrong, and nothing proves them.").evidences(lines),
    );
}

/// The load used the page cache.
pub(crate) fn buffered(evidence: &Evidence<'_>, out: &mut Findings) {
    if evidence.proof.direct || evidence.proof.devices.is_empty() {
        return;
    }
    let title = "the load went through the page cache";
    let detail = "Reads may come from memory and writes end there first: the devices' counters and the sync at the end say what it came to.";
    out.say(evidence.finding(Severity::Note, "buffered", title).detail(detail));
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
    let writes = context.work.operations.iter().filter(|operation| operation.sample == "write");
    let bandwidth: f64 = writes.map(|operation| operation.bandwidth(seconds)).sum();
    let honest = bandwidth * seconds / (seconds + sync as f64 / SECOND_NS as f64);
    let rate = |bytes: f64| format!("{}/s", units::bytes(bytes as u64));
    let title = format!(
        "the sync after the load took {}: {} of the window's length",
        units::duration_ns(sync),
        whole_percent(share)
    );
    let most = share > SYNC_MOST;
    let severity = if most { Severity::Critical } else { Severity::Warning };
    let finding = context
        .finding(severity, "sync-after-load", title)
        .detail("So much was still in memory when the window ended: the bandwidth over the window is partly memory's. Measure for longer, or with direct I/O.")
        .evidence(format!(
            "written: {} over the window; {} over the window and the sync",
            rate(bandwidth),
            rate(honest)
        ))
        .evidence(format!(
            "limit: {} of the window ({}); invalid from {} on",
            units::percent(SYNC_LONG),
            units::duration_ns(window),
            units::percent(SYNC_MOST)
        ));
    if most { out.invalidate(context, finding) } else { out.say(finding) }
}

/// A share in whole percent; never nothing unless it is.
fn whole_percent(share: f64) -> String {
    match share {
        none if none.is_nan() || none <= 0.0 => "0 %".into(),
        little if little < 0.01 => "under 1 %".into(),
        share => format!("{:.0} %", share * 100.0),
    }
}

/// The share of what is claimed that no device saw.
fn missing(seen: &Seen) -> String {
    match 1.0 - seen.share {
        most if most > 0.99 && seen.seen > 0 => "over 99 %".into(),
        share => whole_percent(share),
    }
}

/// `vda and vdb`.
fn names(devices: &[DeviceUse]) -> String {
    let names: Vec<_> = devices.iter().map(|device| device.device.as_str()).collect();
    match names.as_slice() {
        [] => "the device".into(),
        [only] => (*only).to_owned(),
        [most @ .., last] if names.len() <= NAMED_MOST => format!("{} and {last}", most.join(", ")),
        all => format!("{} devices", all.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, healthy, invalid_for, said, sweep_run, work};
    use super::*;
    use tidemark_measure::record::Operation;

    const GIB: u64 = 1 << 30;

    /// The healthy run having moved 8 GiB as `sample`, of which the device saw `seen`.
    fn with(sample: &str, seen: u64, change: impl Fn(&mut Proof)) -> Run {
        let mut run = healthy();
        let operation = &mut work(&mut run).operations[0];
        (operation.sample, operation.tally.bytes) = (sample.into(), 7 * GIB);
        operation.tally.outside_bytes = GIB;
        let device = DeviceUse {
            device: "vda".into(),
            read_bytes: seen,
            written_bytes: seen,
            discarded_bytes: seen,
            ..DeviceUse::default()
        };
        let mut proof =
            Proof { cache: "cold".into(), direct: true, devices: vec![device], ..Proof::default() };
        change(&mut proof);
        run.stages[0].proof = Some(proof);
        run
    }

    #[test]
    fn reads_that_the_device_saw_are_proven() {
        let finding = said(&with("read", 8 * GIB + 20 * (1 << 20), |_| ()), "reads-proven").unwrap();
        assert_eq!(
            (finding.severity, finding.title.as_str()),
            (Severity::Good, "the devices saw what was read: 100 %")
        );
        assert_eq!(finding.evidence[0], "claimed 8.00 GiB, vda read 8.02 GiB: 100 %");
        assert_eq!(said(&with("read", 13 * GIB, |_| ()), "reads-proven").unwrap().severity, Severity::Note);
    }

    #[test]
    fn reads_from_memory_are_caught_unless_declared() {
        let cold = with("read", GIB / 50, |proof| proof.direct = false);
        assert!(
            invalid_for(&cold, "over 99 % of the bytes read came from memory, not from vda"),
            "{:?}",
            said(&cold, "reads-from-cache")
        );
        let some = with("read", 6 * GIB, |_| ());
        assert!(invalid_for(&some, "s1-main: 25 % of the bytes read came from memory, not from vda"));
        let warm = with("read", GIB, |proof| proof.cache = "warm".into());
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
        assert_eq!(said(&none, "not-proven").unwrap().title, reason.trim_end_matches('.'));
        assert!(!invalid_for(&none, "") && said(&none, "reads-from-cache").is_none());
        let some = with("read", GIB, |proof| proof.unchecked = vec![reason.into()]);
        assert_eq!(said(&some, "reads-from-cache").unwrap().severity, Severity::Warning);
        assert!(!invalid_for(&some, ""));
    }

    #[test]
    fn writes_must_reach_the_device() {
        assert_eq!(said(&with("write", 8 * GIB, |_| ()), "writes-proven").unwrap().severity, Severity::Good);
        assert!(invalid_for(&with("write", 4 * GIB, |_| ()), "50 % of the bytes written did not reach vda"));
        assert!(
            said(&with("write", 16 * GIB, |_| ()), "writes-proven")
                .unwrap()
                .title
                .contains("wrote 2.0 times")
        );
        let mut preparing = with("write", 4 * GIB, |_| ());
        work(&mut preparing).kind = "prepare".into();
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
        assert_eq!(finding.sentence(), "6 stages: the devices saw what was read: 99 to 101 %");
        // One stage that is bad stands alone.
        run.stages[2].proof.as_mut().unwrap().devices[0].read_bytes = 0;
        assert!(invalid_for(&run, "s3-rand: 100 % of the bytes read came from memory"));
        assert_eq!(said(&run, "reads-proven").unwrap().place(), "5 stages");
    }

    #[test]
    fn a_long_sync_after_a_buffered_load_is_part_of_it() {
        let synced = |sync_ns: u64, direct| {
            let mut run = with("write", 8 * GIB, |proof| proof.direct = direct);
            let own = work(&mut run);
            own.last_done_ns += sync_ns;
            let mut sync = Operation { sample: "fsync".into(), ..Operation::default() };
            (sync.tally.ok, sync.tally.late) = (1, 1);
            sync.tally.response.record(sync_ns);
            own.operations.push(sync);
            run
        };
        assert_eq!(said(&synced(2_000 * MS, false), "sync-after-load"), None, "a tenth of 20 s");
        let finding = said(&synced(5_000 * MS, false), "sync-after-load").unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(
            finding.evidence[0],
            "written: 376 MB/s over the window; 301 MB/s over the window and the sync"
        );
        assert!(!invalid_for(&synced(5_000 * MS, false), ""));
        assert!(invalid_for(&synced(11_000 * MS, false), "the sync after the load took 11.0 s"));
        assert_eq!(
            said(&synced(11_000 * MS, true), "sync-after-load"),
            None,
            "direct I/O leaves nothing in memory"
        );
        assert_eq!(said(&synced(11_000 * MS, false), "late-tail"), None);
    }
}
