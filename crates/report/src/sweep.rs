//! What a report says about sweeps and about proofs: the tables that HTML and Markdown share.

use crate::content::{NONE, bandwidth, capital, mean, percentile};
use crate::table::{Table, Tone};
use tidemark_judge::evidence;
use tidemark_judge::sweep::{Dimension, Point, Row, Spread, Sweep};
use tidemark_judge::words::proof::{Compared, Proof as Proven, Way};
use tidemark_judge::{Finding, Judgement, Severity, What, claimed};
use tidemark_measure::kind::OperationClass;
use tidemark_measure::record::{DeviceUse, OsdUse, Proof, Run, Stage, State};
use tidemark_measure::units;

/// What the axes that do not vary are, and what the rows are made of, as sentences.
pub(crate) fn about(sweep: &Sweep<'_>) -> String {
    let axes = sweep.dimensions();
    let kept: Vec<String> =
        axes.iter().filter(|axis| axis.values.len() == 1).map(|axis| axis.values[0].label()).collect();
    let repeats = sweep.points.iter().map(|point| point.stages.len()).max().unwrap_or(0);
    let stages: usize = sweep.points.iter().map(|point| point.stages.len()).sum();
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let mut text = format!("{}, {}", plural(sweep.points.len(), "point"), plural(stages, "stage"));
    if repeats > 1 {
        text += &format!(", up to {repeats} repeats each");
    }
    if !kept.is_empty() {
        text += &format!("; {} throughout", kept.join(", "));
    }
    text + ". Throughput and bandwidth are means over the repeats, \u{b1} half of the distance between the lowest and \
            the highest; percentiles are those of all repeats together."
}

/// Every point of a sweep with its numbers, a row for each of its operations.
pub(crate) fn points(sweep: &Sweep<'_>, judgement: &Judgement) -> Table {
    let axes = sweep.dimensions();
    let axes: Vec<&Dimension<'_>> = axes.iter().filter(|axis| axis.values.len() > 1).collect();
    let mut table = Table::new(format!("Points of {}", sweep.name));
    for axis in &axes {
        let title = capital(&axis.name.replace('_', " "));
        table = if axis.numbers.is_some() { table.numbers([title]) } else { table.words([title.as_str()]) };
    }
    let several = sweep.engines().len() > 1;
    if axes.is_empty() {
        table = table.words(["Load"]);
    }
    if several {
        table = table.words(["Engine"]);
    }
    let numbers = ["Repeats", "op/s", "\u{b1}", "Bandwidth", "mean", "p50", "p99", "p99.9"];
    table = table.words(["Operation"]).numbers(numbers).words(["Verdict"]);
    for point in &sweep.points {
        let place = || {
            let mut cells: Vec<String> = axes
                .iter()
                .map(|axis| point.at(axis.name).map_or(NONE.into(), |at| at.value.to_string()))
                .collect();
            if axes.is_empty() {
                cells.push(sweep.name.to_owned());
            }
            cells.extend(several.then(|| point.engine.to_owned()));
            cells
        };
        let (bad, verdict) = verdict(point, judgement);
        let tone = if bad { Tone::Bad } else { Tone::Plain };
        let rows = point.rows();
        for row in &rows {
            let mut cells = place();
            cells.extend(measured(row));
            cells.push(verdict.clone());
            table.row(tone, cells);
        }
        if rows.is_empty() {
            let mut cells = place();
            cells.extend(std::iter::repeat_n(NONE.to_owned(), 1 + numbers.len()));
            cells.push(verdict);
            table.row(tone, cells);
        }
    }
    table.without_if_same("Operation").without_if_same("Repeats")
}

fn measured(row: &Row<'_>) -> Vec<String> {
    let rate = Spread::of(&row.rates);
    let bytes = Spread::of(&row.bandwidths).map_or(0.0, |spread| spread.mean);
    let apart = rate.filter(|spread| spread.count > 1 && spread.mean > 0.0);
    let mut cells = vec![
        row.label.to_owned(),
        row.rates.len().to_string(),
        rate.map_or(NONE.into(), |spread| units::rate(spread.mean).trim_end_matches(" op/s").to_owned()),
        apart.map_or(NONE.into(), |spread| format!("{:.1} %", 100.0 * spread.half_range() / spread.mean)),
        bandwidth(bytes),
        mean(&row.response),
    ];
    cells.extend([0.5, 0.99, 0.999].map(|fraction| percentile(&row.response, fraction)));
    cells
}

/// What the checks say of a point's stages, in a word or two, and whether that is bad.
fn verdict(point: &Point<'_>, judgement: &Judgement) -> (bool, String) {
    let about =
        judgement.findings.iter().filter(|finding| point.stages.iter().any(|stage| finding.concerns(stage)));
    let about: Vec<_> = about.collect();
    let count = |severity| about.iter().filter(|finding| finding.severity == severity).count();
    let done = point.stages.iter().filter(|stage| stage.state == State::Completed).count();
    let mut words = Vec::new();
    if about.iter().any(|finding| finding.invalidates) {
        words.push("INVALID".to_owned());
    }
    if done < point.stages.len() {
        words.push(format!("{done} of {} completed", point.stages.len()));
    }
    if words.is_empty() && count(Severity::Critical) > 0 {
        words.push("critical".to_owned());
    }
    let bad = !words.is_empty();
    if !bad {
        words.push("valid".to_owned());
    }
    match count(Severity::Warning) {
        0 => {}
        1 => words.push("1 warning".to_owned()),
        more => words.push(format!("{more} warnings")),
    }
    (bad, words.join(", "))
}

/// What holds for every stage with a proof: what was done before its load, and what could not be checked.
pub(crate) fn proof_notes(run: &Run) -> Vec<String> {
    let proofs = || run.stages.iter().filter_map(|stage| stage.proof.as_ref());
    let mut notes = Vec::new();
    if let Some(setup) = same(proofs().map(|proof| &proof.setup)).filter(|setup| !setup.is_empty()) {
        notes.push(format!("Before every load: {}.", setup.join("; ")));
    }
    if let Some(reasons) = same(proofs().map(|proof| &proof.unchecked)).filter(|reasons| !reasons.is_empty())
    {
        notes.push(format!("Not checked in any stage: {}", reasons.join(" ")));
    }
    notes
}

/// What several have in common, if all of them do.
fn same<'a>(mut all: impl Iterator<Item = &'a Vec<String>>) -> Option<&'a Vec<String>> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// Whether the I/O is Tidemark's own: how databases and the stores under tables do theirs, nobody has looked at.
fn is_at_hand(proof: &Proof) -> bool {
    proof.tables.is_empty() && !evidence::is_io_elsewhere(proof)
}

/// The stages with a proof: what was done around the load, and what the devices saw of it. What all of them have in
/// common is left to [`proof_notes`].
pub(crate) fn proofs(run: &Run, judgement: &Judgement) -> Table {
    let mut table = Table::new("Device counters")
        .words(["Stage", "Cache", "Direct", "Devices"])
        .numbers([
            "Busy",
            "Claimed read",
            "Devices read",
            "Share",
            "Mean request",
            "Claimed written",
            "Devices wrote",
            "Share",
            "Mean request",
        ])
        .words(["Before the load", "Not checked"]);
    let missed = |finding: &Finding| {
        let of_devices = matches!(
            finding.what,
            What::Proof(Proven::Bytes {
                compared: Compared::Missing | Compared::NotBehind,
                way: Way::Read | Way::Write,
                ..
            })
        );
        of_devices && finding.severity >= Severity::Warning
    };
    let doubted =
        |stage: &Stage| judgement.findings.iter().any(|finding| missed(finding) && finding.concerns(stage));
    for (stage, proof) in run.stages.iter().filter_map(|stage| Some((stage, stage.proof.as_ref()?))) {
        let mut cells = vec![
            stage.id.clone(),
            or_none(proof.cache.map(|cache| cache.name().into()).unwrap_or_default()),
            match (is_at_hand(proof), proof.direct) {
                (false, _) => or_none(String::new()),
                (true, true) => "yes".into(),
                (true, false) => "no".into(),
            },
            or_none(devices(proof)),
        ];
        cells.push(busy(stage, proof));
        let from_osds = proof.osds.as_ref().map(|osds| osds.device_read_bytes);
        cells.extend(seen(stage, proof, &OperationClass::Read, from_osds, |device| device.read_bytes));
        cells.push(mean_request(proof, |device| (device.read_bytes, device.reads)));
        let to_osds = proof.osds.as_ref().and_then(OsdUse::written_per_copy);
        cells.extend(seen(stage, proof, &OperationClass::Write, to_osds, |device| device.written_bytes));
        cells.push(mean_request(proof, |device| (device.written_bytes, device.writes)));
        cells.push(or_none(proof.setup.join("; ")));
        cells.push(or_none(proof.unchecked.join(" ")));
        table.row(if doubted(stage) { Tone::Bad } else { Tone::Plain }, cells);
    }
    table.without_if_same("Not checked").without_if_same("Before the load")
}

/// What counted: devices of this machine, or the OSDs of a cluster.
fn devices(proof: &Proof) -> String {
    let devices = proof.devices.iter().map(|device| device.device.clone());
    let osds = proof.osds.iter().map(|osds| match osds.osds {
        1 => "1 OSD".to_owned(),
        several => format!("{several} OSDs"),
    });
    devices.chain(osds).collect::<Vec<_>>().join(", ")
}

/// Claimed bytes, bytes that the devices or OSDs saw, and their ratio.
fn seen(
    stage: &Stage,
    proof: &Proof,
    class: &OperationClass,
    by_osds: Option<u64>,
    bytes: fn(&DeviceUse) -> u64,
) -> [String; 3] {
    let claimed = claimed(stage, class);
    let seen = proof.devices.iter().map(bytes).fold(by_osds.unwrap_or(0), u64::saturating_add);
    let ratio = match (claimed, proof.devices.is_empty() && by_osds.is_none()) {
        (0, _) | (_, true) => NONE.into(),
        _ => share(seen, claimed),
    };
    let shown = |bytes: u64| if bytes == 0 { NONE.into() } else { units::binary_bytes(bytes) };
    [shown(claimed), shown(seen), ratio]
}

/// Mean size of the requests that the devices served; operations that lie side by side may have been joined.
fn mean_request(proof: &Proof, of: fn(&DeviceUse) -> (u64, u64)) -> String {
    let all = proof.devices.iter().map(of).fold((0u64, 0u64), |(bytes, requests), (more, count)| {
        (bytes.saturating_add(more), requests.saturating_add(count))
    });
    match all {
        (_, 0) => NONE.into(),
        (bytes, requests) => units::binary_bytes(bytes / requests),
    }
}

/// In whole percent; never nothing unless it is.
fn share(part: u64, whole: u64) -> String {
    let share = 100.0 * part as f64 / whole as f64;
    if share > 0.0 && share < 1.0 { "under 1 %".into() } else { format!("{share:.0} %") }
}

/// For which share of the stage the busiest device had something to do.
fn busy(stage: &Stage, proof: &Proof) -> String {
    let took = stage.ended_ns.saturating_sub(stage.started_ns);
    let most = proof.devices.iter().map(|device| device.busy_ns).max().unwrap_or(0);
    if took == 0 || most == 0 { NONE.into() } else { share(most, took) }
}

fn or_none(text: String) -> String {
    if text.is_empty() { NONE.into() } else { text }
}
