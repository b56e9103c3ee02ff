//! warp's aggregated JSON: that of `warp analyze --json` and of `*.json.zst` (version 2 of its data), and what older
//! versions wrote, a list of `operations`.
//!
//! warp keeps percentiles of every ten seconds and every client, and prints their mean. Here the distributions that
//! they stand for are added up, each with the weight of its requests, and percentiles are read from the sum.

use super::{EXAMPLES_MOST, Found, Phase, class, kind};
use crate::draft::{self, Column, note, spread};
use crate::number::{moment, ms};
use serde::Deserialize;
use std::collections::BTreeMap;
use tidemark_measure::record::{Example, Reported, SecondOfOperation};
use tidemark_measure::tally::Tally;

/// Shares whose percentiles are worked out of many parts' percentiles.
const SHARES: [f64; 6] = [0.50, 0.60, 0.80, 0.90, 0.95, 0.99];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Analysis {
    commandline: String,
    warp_version: String,
    by_op_type: BTreeMap<String, Option<Box<Aggregate>>>,
    operations: Vec<Aggregate>,
}

/// One type of operation. Names of both versions.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Aggregate {
    #[serde(rename = "type")]
    kind: String,
    skipped: bool,
    #[serde(alias = "n")]
    total_requests: u64,
    total_objects: u64,
    objects_per_operation: u64,
    #[serde(alias = "errors")]
    total_errors: u64,
    total_bytes: u64,
    concurrency: u64,
    start_time: String,
    end_time: String,
    first_errors: Option<Vec<String>>,
    throughput: Throughput,
    requests_by_client: Option<BTreeMap<String, Option<Vec<Part>>>>,
    single_sized_requests: Option<Single>,
    multi_sized_requests: Option<Multi>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Throughput {
    measure_duration_millis: f64,
    bytes: f64,
    #[serde(alias = "operations")]
    ops: f64,
    average_bps: f64,
    average_ops: f64,
    errors: f64,
    segmented: Option<Segmented>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Segmented {
    segment_duration_millis: u64,
    segments: Option<Vec<Segment>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Segment {
    start: String,
    bytes_per_sec: f64,
    obj_per_sec: f64,
    errors: u64,
}

/// Ten seconds of one client.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    single_sized_requests: Option<Single>,
    multi_sized_requests: Option<Multi>,
}

/// Requests for objects of one size. Where several entries were merged, every time is a sum over them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Single {
    requests: u64,
    merged_entries: u64,
    dur_avg_millis: f64,
    dur_median_millis: f64,
    dur_90_millis: f64,
    dur_99_millis: f64,
    slowest_millis: f64,
    dur_percentiles_millis: Option<Vec<f64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Multi {
    by_size: Option<Vec<Size>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Size {
    requests: u64,
    merged_entries: u64,
    avg_duration_millis: f64,
}

pub(super) fn read(text: &str) -> Result<Found, String> {
    // Messages may follow it.
    let first = serde_json::Deserializer::from_str(text).into_iter::<Analysis>().next();
    let analysis =
        first.ok_or("contains no JSON")?.map_err(|error| format!("not an analysis of warp: {error}"))?;
    let mut found =
        Found { command: analysis.commandline, version: analysis.warp_version, ..Found::default() };
    let named = analysis.by_op_type.into_iter().filter_map(|(kind, one)| {
        let one = *one?;
        Some(Aggregate { kind, ..one })
    });
    let (mut merged, mut sized) = (false, false);
    for one in named.chain(analysis.operations).filter(|one| !one.skipped) {
        merged |= one.parts().count() > 1;
        sized |= one.sizes().count() > 0;
        found.phases.extend(one.phase());
    }
    if merged {
        found.notes.push(note(
            "warp-percentiles",
            "warp keeps percentiles per ten seconds and client, and prints their unweighted mean. Tidemark reads percentiles from the sum of the distributions, which have steps of one percent: they may differ from warp's own, and above 99 % only the largest is known.",
        ));
    }
    if sized {
        found.notes.push(note(
            "warp-sizes",
            "For objects of many sizes, warp keeps only mean times: there are no percentiles.",
        ));
    }
    found.notes.push(note(
        "warp-throughput",
        "Throughput and bandwidth are warp's own, over its measured time; counts are those of the whole phase.",
    ));
    Ok(found)
}

impl Aggregate {
    fn clients(&self) -> impl Iterator<Item = &Part> {
        self.requests_by_client.iter().flat_map(BTreeMap::values).flatten().flatten()
    }

    fn parts(&self) -> impl Iterator<Item = &Single> {
        let all = self.clients().filter_map(|part| part.single_sized_requests.as_ref());
        all.chain(&self.single_sized_requests).filter(|part| part.requests > 0)
    }

    fn sizes(&self) -> impl Iterator<Item = &Size> {
        let all = self.clients().filter_map(|part| part.multi_sized_requests.as_ref());
        let many = all.chain(&self.multi_sized_requests);
        many.flat_map(|multi| multi.by_size.iter().flatten()).filter(|size| size.requests > 0)
    }

    fn phase(&self) -> Option<Phase> {
        if self.total_requests == 0 {
            return None;
        }
        let (started_ns, ended_ns) =
            (moment(&self.start_time).unwrap_or(0), moment(&self.end_time).unwrap_or(0));
        let seconds = positive(self.throughput.measure_duration_millis).map(|millis| millis / 1e3);
        let per_second =
            |amount: f64, average: f64| positive(average).or_else(|| Some(amount.max(0.0) / seconds?));
        let said = Reported {
            throughput: per_second(self.throughput.ops - self.throughput.errors, self.throughput.average_ops),
            bandwidth: per_second(self.throughput.bytes, self.throughput.average_bps),
            mean_ns: self.mean_ns(),
            percentiles: self.percentiles(),
        };
        let bytes = match self.total_bytes {
            0 => positive(self.throughput.bytes).map_or(0, |bytes| bytes as u64),
            bytes => bytes,
        };
        let ok = self.total_requests.saturating_sub(self.total_errors);
        let mut tally = Tally { ok, bytes, ..Tally::default() };
        let mut examples = Vec::new();
        let failed = self.total_requests - ok;
        let first = self.first_errors.iter().flatten();
        examples
            .extend(first.take(EXAMPLES_MOST).map(|text| Example { fault: class(text), text: text.clone() }));
        // The first errors are of some classes; how many there were of each is not known.
        let fault = examples.first().map_or(draft::UNCLASSIFIED, |example| example.fault);
        draft::fail(&mut tally, fault, failed);
        let ended_ns = ended_ns.max(started_ns.saturating_add(seconds.map_or(0, crate::number::seconds)));
        Some(Phase {
            operation: draft::operation(&kind(&self.kind), tally, Some(said)),
            workers: self.concurrency,
            started_ns,
            ended_ns,
            seconds: self.series(started_ns),
            examples,
        })
    }

    fn mean_ns(&self) -> Option<f64> {
        let single = self.parts().map(|part| (part.requests, part.dur_avg_millis / part.merged()));
        let multi = self
            .sizes()
            .map(|size| (size.requests, size.avg_duration_millis / size.merged_entries.max(1) as f64));
        let (mut requests, mut sum) = (0.0, 0.0);
        for (count, mean) in single.chain(multi) {
            requests += count as f64;
            sum += count as f64 * mean;
        }
        positive(sum / requests).map(ms)
    }

    fn percentiles(&self) -> Vec<(f64, f64)> {
        let parts: Vec<&Single> = self.parts().collect();
        if self.sizes().count() > 0 || parts.is_empty() {
            return Vec::new();
        }
        let largest = parts.iter().map(|part| part.slowest_millis).fold(0.0, f64::max);
        let mut points: Vec<(f64, f64)> = match parts[..] {
            [one] if one.percents().is_none() => {
                let merged = one.merged();
                vec![
                    (0.5, one.dur_median_millis / merged),
                    (0.9, one.dur_90_millis / merged),
                    (0.99, one.dur_99_millis / merged),
                ]
            }
            _ => summed(&parts).unwrap_or_default(),
        };
        points.push((1.0, largest));
        points.into_iter().map(|(share, millis)| (share, ms(millis))).collect()
    }

    fn series(&self, started_ns: u64) -> Column {
        let mut column = Column::new();
        let Some(segmented) = &self.throughput.segmented else { return column };
        let length = segmented.segment_duration_millis.div_ceil(1_000);
        let objects = match (self.objects_per_operation, self.total_objects) {
            (0, 0) => 1.0,
            (0, total) => (total as f64 / self.total_requests as f64).max(f64::MIN_POSITIVE),
            (each, _) => each as f64,
        };
        for segment in segmented.segments.iter().flatten() {
            let Some(since) = moment(&segment.start).and_then(|at| at.checked_sub(started_ns)) else {
                continue;
            };
            let from = u32::try_from(since / 1_000_000_000).unwrap_or(u32::MAX);
            let lasting = segmented.segment_duration_millis as f64 / 1e3;
            let amount = |rate: f64| (rate * lasting).round() as u64;
            let numbers = SecondOfOperation {
                ok: amount(segment.obj_per_sec / objects),
                failed: segment.errors,
                bytes: amount(segment.bytes_per_sec),
                ..SecondOfOperation::default()
            };
            spread(
                &mut column,
                from,
                from.saturating_add(u32::try_from(length).unwrap_or(u32::MAX)),
                numbers,
            );
        }
        column
    }
}

impl Single {
    fn merged(&self) -> f64 {
        self.merged_entries.max(1) as f64
    }

    /// From 0 % to 100 %.
    fn percents(&self) -> Option<&[f64]> {
        self.dur_percentiles_millis.as_deref().filter(|percents| percents.len() == 101)
    }
}

/// Percentiles of the sum of the parts' distributions, milliseconds; `None` if one of them is not known.
fn summed(parts: &[&Single]) -> Option<Vec<(f64, f64)>> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for part in parts {
        let weight = part.requests as f64 / 100.0;
        points.extend(part.percents()?[1..].iter().map(|millis| (millis / part.merged(), weight)));
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let all: f64 = points.iter().map(|(_, weight)| weight).sum();
    let at = |share: f64| {
        let mut sum = 0.0;
        points.iter().find(|(_, weight)| {
            sum += weight;
            // A part in a thousand million is rounding.
            sum >= all * (share - 1e-9)
        })
    };
    SHARES.into_iter().map(|share| Some((share, at(share)?.0))).collect()
}

fn positive(number: f64) -> Option<f64> {
    Some(number).filter(|number| number.is_finite() && *number > 0.0)
}
