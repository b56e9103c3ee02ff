//! fio's JSON: a stage for each group of jobs, a work for each job, or for each group with `group_reporting`.
//!
//! Terse output comes in by the same way (`terse`).
//!
//! Bins (json+) are kept as they are, in the middle of each; without them fio's own percentiles and means are.

use crate::Options;
use crate::draft::{self, note};
use crate::number::number;
use crate::source::Source;
use serde_json::Value;
use std::collections::BTreeMap;
use tidemark_fio::json::{Direction, Document, Job, Latency, Piece, Stream};
use tidemark_measure::fault::Fault;
use tidemark_measure::json::weigh;
use tidemark_measure::record::{Example, Note, Operation, Reported, Run, State, Work};
use tidemark_measure::tally::Tally;

mod sane;
mod terse;

pub(crate) use terse::is_terse;

const MS: u64 = 1_000_000;

/// Run times under this do not tell how many jobs they are of.
const TELLS_LEAST_MS: u64 = 500;

/// Reads the last report of a text: reports before it (`--status-interval`) count from the start, too.
pub(crate) fn read(source: &Source, options: &Options) -> Result<Run, String> {
    // Where fio wrote both, its JSON tells more.
    let (document, format, notes) = match stream(&source.text) {
        (None, _) if terse::is_terse(&source.text)? => {
            let (document, notes) = terse::read(&source.text)?;
            let format = format!("fio terse ({})", document.version);
            (document, format, notes)
        }
        (last, garbage) => {
            let document = last.map_or_else(|| rewritten(&source.text, garbage), Ok)?;
            let format = format(&document);
            (document, format, Vec::new())
        }
    };
    if document.jobs.is_empty() {
        return Err("contains no job: `jobs` is empty".into());
    }
    draft::few_enough("jobs", document.jobs.len())?;
    document.jobs.iter().try_for_each(|job| sane::check(job, &document))?;
    let mut run = draft::run(&source.path, draft::name(source, options), &format);
    run.provenance.document = tidemark_plan::redact::redact(&job_file(&document));
    let elapsed_ms = document.jobs.iter().map(|job| job.elapsed).max().unwrap_or(0).saturating_mul(1_000);
    let began_ms = began_ms(&document).unwrap_or_else(|| document.timestamp_ms.saturating_sub(elapsed_ms));
    run.started_unix_ns = match began_ms {
        0 => source.modified_unix_ns,
        began_ms => began_ms.saturating_mul(MS),
    };
    let groups: Vec<&[Job]> = document.jobs.chunk_by(|one, other| one.groupid == other.groupid).collect();
    let starts = starts(&groups, elapsed_ms, began_ms);
    for (index, (jobs, started_ns)) in groups.iter().zip(starts).enumerate() {
        let works: Vec<Work> = jobs.iter().map(|job| work(job, &document)).collect();
        let name = jobs.first().map_or("", |job| job.jobname.as_str());
        let ended_ns = started_ns.saturating_add(length_ms(jobs).saturating_mul(MS));
        let mut stage = draft::stage(index + 1, name, started_ns, ended_ns, works);
        if let Some(job) = jobs.iter().find(|job| job.error != 0) {
            stage.state = State::Failed;
            stage.reason = format!("job {}: {}", job.jobname, system(job.error));
        }
        run.stages.push(stage);
    }
    draft::close(&mut run);
    run.notes.extend(notes.into_iter().map(|text| note("fio-terse", text)));
    run.notes.extend(remarks(&document));
    Ok(run)
}

/// The last report that fio wrote into a text, and why the last of those that cannot be read cannot.
fn stream(text: &str) -> (Option<Document>, Option<String>) {
    let (mut stream, mut last, mut garbage) = (Stream::default(), None, None);
    for line in text.lines() {
        match stream.line(line) {
            Some(Piece::Document(document)) => last = Some(*document),
            Some(Piece::Garbage(why)) => garbage = Some(why),
            Some(Piece::Chatter(_)) | None => {}
        }
    }
    (last, garbage)
}

/// The report in a text that fio did not lay out.
fn rewritten(text: &str, garbage: Option<String>) -> Result<Document, String> {
    let begins = text.find('{').ok_or("contains no JSON; run fio with `--output-format=json+`")?;
    weigh(&text[begins..])?;
    serde_json::Deserializer::from_str(&text[begins..])
        .into_iter()
        .next()
        .ok_or("contains no JSON; run fio with `--output-format=json+`")?
        .map_err(|error| format!("not a report of fio: {}", garbage.unwrap_or_else(|| error.to_string())))
}

fn format(document: &Document) -> String {
    match document.version.as_str() {
        "" => "fio JSON".into(),
        version => format!("fio JSON ({version})"),
    }
}

/// The options as a job file.
fn job_file(document: &Document) -> String {
    let mut text = String::new();
    let mut section = |name: &str, options: &BTreeMap<String, Value>| {
        text.push_str(&format!("[{name}]\n"));
        for (key, value) in options {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{key}={value}\n"));
        }
    };
    if !document.options.is_empty() {
        section("global", &document.options);
    }
    document.jobs.iter().for_each(|job| section(&job.jobname, &job.options));
    text
}

fn began_ms(document: &Document) -> Option<u64> {
    document.jobs.iter().map(|job| job.job_start).filter(|start| *start > 0).min()
}

/// The longest run time of a job's directions, milliseconds.
fn runtime_ms(job: &Job) -> u64 {
    job.read.runtime.max(job.write.runtime).max(job.trim.runtime)
}

fn length_ms(jobs: &[Job]) -> u64 {
    jobs.iter().map(runtime_ms).max().unwrap_or(0)
}

/// When each group began, nanoseconds since the first: as fio reports; or one after the other if there was time for that, for
/// earlier versions do not distinguish `stonewall` from `new_group`; or all at once.
fn starts(groups: &[&[Job]], elapsed_ms: u64, began_ms: u64) -> Vec<u64> {
    let lengths = groups.iter().map(|jobs| length_ms(jobs));
    let one_by_one = lengths.clone().fold(0, u64::saturating_add) <= elapsed_ms;
    let mut next = 0u64;
    let start = |(jobs, length): (&&[Job], u64)| {
        let told = jobs.iter().map(|job| job.job_start).filter(|start| *start > 0).min();
        let start = told.map_or(next, |told| told.saturating_sub(began_ms));
        if one_by_one {
            next = next.saturating_add(length);
        }
        start.saturating_mul(MS)
    };
    groups.iter().zip(lengths).map(start).collect()
}

/// An option of a job, or of all of them.
fn option<'a>(job: &'a Job, document: &'a Document, name: &str) -> Option<&'a str> {
    job.options.get(name).or_else(|| document.options.get(name))?.as_str()
}

fn work(job: &Job, document: &Document) -> Work {
    let window_ns = runtime_ms(job).saturating_mul(MS);
    let mut operations = operations(job, document);
    let mut examples = Vec::new();
    failures(job, &mut operations, &mut examples);
    let mut work = draft::work(&job.jobname, workers(job, document), window_ns, operations);
    let engine = option(job, document, "ioengine").unwrap_or("psync");
    if !tidemark_fio::waits_for_each(engine) {
        let depth = option(job, document, "iodepth").and_then(|depth| depth.trim().parse().ok());
        work.depth = depth.unwrap_or(1).max(1);
    }
    work.examples = examples;
    work
}

/// How many jobs stand in one entry of a report. No option without a value is in it, and so no `group_reporting`; but then there
/// are fewer entries than jobs asked for, or the jobs' run times add up to more than the time that passed.
fn workers(job: &Job, document: &Document) -> u64 {
    let numbered = option(job, document, "numjobs").and_then(|jobs| jobs.trim().parse().ok()).unwrap_or(1);
    let alike = |other: &&Job| (other.groupid, &other.jobname) == (job.groupid, &job.jobname);
    let reported = document.jobs.iter().filter(alike).count() as u64;
    let ratio = job.job_runtime as f64 / runtime_ms(job).max(1) as f64;
    // A job that verifies reads after it has written, and a job's own time is a little longer than that of its operations.
    let tells = option(job, document, "verify").is_none() && runtime_ms(job) >= TELLS_LEAST_MS;
    let together = if tells { ratio.round().max(1.0) as u64 } else { 1 };
    if reported < numbered { together.max(numbered) } else { together }
}

fn operations(job: &Job, document: &Document) -> Vec<Operation> {
    let synced = if option(job, document, "fdatasync").is_some() { "fdatasync" } else { "fsync" };
    let parts = [
        ("read", &job.read, job.read.total_ios),
        ("write", &job.write, job.write.total_ios),
        ("trim", &job.trim, job.trim.total_ios),
        (synced, &job.sync, job.sync.lat_ns.count),
    ];
    let mut operations: Vec<Operation> = parts
        .into_iter()
        .filter(|(_, _, done)| *done > 0)
        .map(|(kind, direction, done)| operation(kind, direction, done))
        .collect();
    if operations.is_empty() {
        let writes = option(job, document, "rw").or_else(|| option(job, document, "readwrite"));
        let kind = if writes.is_some_and(|pattern| pattern.contains("write")) { "write" } else { "read" };
        operations.push(operation(kind, &Direction::default(), 0));
    }
    let reads = option(job, document, "rwmixread").and_then(number).unwrap_or(50.0);
    if let [first, second, ..] = operations.as_mut_slice()
        && (first.kind.as_str(), second.kind.as_str()) == ("read", "write")
    {
        (first.weight, second.weight) = (reads, 100.0 - reads);
    }
    operations
}

fn operation(kind: &str, direction: &Direction, done: u64) -> Operation {
    let latency = latency(direction);
    let mut tally = Tally { ok: done, bytes: direction.io_bytes, ..Tally::default() };
    for (value, count) in &latency.bins {
        tally.response.record_many(*value, *count);
    }
    let said = (latency.count > 0).then(|| said(latency));
    draft::operation(kind, tally, said)
}

/// The distribution to keep: the whole latency where fio reports its distribution, otherwise that of completion.
fn latency(direction: &Direction) -> &Latency {
    let (whole, completion) = (&direction.lat_ns, &direction.clat_ns);
    let is_told = |latency: &Latency| !latency.bins.is_empty() || !latency.percentile.is_empty();
    if is_told(whole) || completion.count == 0 { whole } else { completion }
}

/// What fio has of its samples themselves: mean and largest. Its percentiles are those of its bins, and count only without
/// them.
fn said(latency: &Latency) -> Reported {
    // Rounded: 99.9 / 100 is 0.9990000000000001.
    // fio's are the middles of its bins, which may lie beyond the largest sample.
    let point = |(percent, ns): (&String, &u64)| {
        Some(((number(percent)? * 1e7).round() / 1e9, (*ns).min(latency.max) as f64))
    };
    let mut percentiles: Vec<(f64, f64)> = match latency.bins.is_empty() {
        true => latency.percentile.iter().filter_map(point).collect(),
        false => Vec::new(),
    };
    percentiles.retain(|(share, _)| *share > 0.0 && *share < 1.0);
    percentiles.push((1.0, latency.max as f64));
    percentiles.sort_by(|one, other| one.0.total_cmp(&other.0));
    Reported { mean_ns: Some(latency.mean), percentiles, ..Reported::default() }
}

/// Counts what failed: fio counts operations when it issues them, those that fail later, too.
fn failures(job: &Job, operations: &mut [Operation], examples: &mut Vec<Example>) {
    let mut fail = |kind: &str, fault: Fault, count: u64, is_issued: bool, text: String| {
        let place = operations.iter().position(|operation| operation.kind == kind).unwrap_or(0);
        let Some(operation) = operations.get_mut(place).filter(|_| count > 0) else { return };
        if is_issued {
            operation.tally.ok = operation.tally.ok.saturating_sub(count);
        }
        draft::fail(&mut operation.tally, fault, count);
        examples.push(Example { fault, text });
    };
    let errors = job.total_err.unwrap_or(0).max(u64::from(job.error != 0));
    let text = format!("fio: job {}: {}", job.jobname, system(job.error));
    fail("", tidemark_fio::class(job.error), errors, true, text);
    let directions = [
        ("read", &job.read, job.short_reads()),
        ("write", &job.write, job.write.short_ios),
        ("trim", &job.trim, job.trim.short_ios),
    ];
    for (kind, direction, short) in directions {
        let text = format!("fio: {short} operations ({kind}) of job {} moved too little", job.jobname);
        fail(kind, Fault::ShortTransfer, short, true, text);
        let dropped = direction.drop_ios;
        let text = format!("fio: {dropped} operations ({kind}) of job {} were dropped", job.jobname);
        fail(kind, Fault::Abandoned, dropped, false, text);
    }
}

fn system(errno: i64) -> String {
    match i32::try_from(errno) {
        Ok(errno) if errno != 0 => std::io::Error::from_raw_os_error(errno).to_string(),
        _ => "operations failed".into(),
    }
}

fn remarks(document: &Document) -> Vec<Note> {
    let directions = || document.jobs.iter().flat_map(|job| [&job.read, &job.write, &job.trim]);
    let used = || {
        directions()
            .filter(|direction| direction.total_ios > 0)
            .map(|direction| (direction, latency(direction)))
    };
    let binned = used().any(|(_, latency)| !latency.bins.is_empty());
    let whole = used().any(|(direction, latency)| std::ptr::eq(latency, &direction.lat_ns));
    let what = match whole {
        true => "Latencies are fio's lat, from an operation's creation to its completion",
        false => {
            "Latencies are fio's clat, from submission to completion: set `lat_percentiles=1` for the whole latency"
        }
    };
    let how = match binned {
        true => "fio's bins, the value in the middle of each: within 1/128; mean and largest are fio's own.",
        false => "fio's own means and percentiles; use `--output-format=json+` to keep the distribution.",
    };
    let mut notes = vec![note("fio-latencies", format!("{what}. They are {how}"))];
    let groups = document.jobs.chunk_by(|one, other| one.groupid == other.groupid).count();
    if groups > 1 && began_ms(document).is_none() {
        notes.push(note(
            "fio-order",
            "This fio does not report when its jobs began: Tidemark assumes that groups ran one after the other where there was time for that.",
        ));
    }
    for disk in &document.disk_util {
        notes.push(note(
            "fio-disks",
            format!(
                "fio counted on {}: {} reads, {} writes, {:.1} % busy.",
                disk.name, disk.read_ios, disk.write_ios, disk.util
            ),
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const JSON: &str = include_str!("samples/fio.json");
    const TERSE: &str = include_str!("samples/fio-terse.txt");
    const PLUS: &str = include_str!("samples/fio-plus.json");

    fn imported(text: &str) -> Result<Run, String> {
        let source = Source { path: PathBuf::from("x/fio.json"), text: text.into(), modified_unix_ns: 7 };
        read(&source, &Options::default())
    }

    #[test]
    fn jobs_that_are_reported_together_are_counted() {
        // As fio 3.33 writes it: `group_reporting` is not there.
        let with = |jobs: &str, runtime: u64, options: &str| {
            let text = format!(
                r#"{{"global options": {{"iodepth": "8", "ioengine": "libaio"}}, "jobs": [{jobs}{{"jobname": "x",
                "job_runtime": {runtime}, "job options": {{{options}}}, "read": {{"runtime": 2001, "total_ios": 9}}}}]}}"#
            );
            let run = imported(&text).unwrap();
            (run.stages[0].works[0].workers, run.stages[0].works[0].depth)
        };
        assert_eq!(with("", 8_006, r#""numjobs": "4""#), (4, 8));
        assert_eq!(with("", 5_000, r#""numjobs": "4""#), (4, 8), "three of them ended early");
        assert_eq!(with("", 6_010, ""), (3, 8), "three sections in one");
        assert_eq!(with("", 4_010, r#""verify": "crc32c""#), (1, 8), "it writes, then it reads");
        let other = r#"{"jobname": "x", "job_runtime": 2003, "read": {"runtime": 2001, "total_ios": 9}},"#;
        assert_eq!(with(other, 2_003, r#""numjobs": "2""#), (1, 8), "each for itself");
    }

    #[test]
    fn a_report_without_bins_says_what_fio_says() {
        let run = imported(JSON).unwrap();
        assert_eq!((run.name.as_str(), run.provenance.format.as_str()), ("fio", "fio JSON (fio-3.33)"));
        assert_eq!(
            run.stages.iter().map(|stage| stage.id.as_str()).collect::<Vec<_>>(),
            ["s1-mix", "s2-seq"]
        );
        let mix = &run.stages[0].works[0];
        assert_eq!((mix.workers, mix.depth, mix.window_end_ns), (2, 4, 2_004 * MS));
        let read = &mix.operations[0];
        assert_eq!(
            (read.label.as_str(), read.tally.ok, read.tally.bytes, read.weight),
            ("read", 68_020, 278_609_920, 70.0)
        );
        assert_eq!(
            (read.quantile_ns(0.95), read.quantile_ns(0.999), read.quantile_ns(1.0)),
            (Some(148_480.0), Some(5_996_544.0), Some(53_487_442.0))
        );
        assert_eq!(read.mean_ns(), Some(122_692.822_038));
        let seq = &run.stages[1];
        assert_eq!(
            (seq.started_ns, seq.works[0].workers, seq.works[0].depth),
            (2_004 * MS, 1, 1),
            "one after the other"
        );
        assert!(run.provenance.document.contains("[global]\ndirectory="));
        assert_eq!(run.started_unix_ns, (1_795_288_769_739 - 5_000) * MS);
    }

    #[test]
    fn the_run_time_of_a_group_tells_its_jobs() {
        // As fio 3.33 writes it for `group_reporting` without a value.
        let text = r#"{"global options":{"ioengine":"io_uring"},"jobs":[{"jobname":"a","job_runtime":8002,
            "job options":{"rw":"randread","numjobs":"4","iodepth":"32"},"read":{"total_ios":161198,"io_bytes":660267008,"runtime":2003}}]}"#;
        let run = imported(text).unwrap();
        let work = &run.stages[0].works[0];
        assert_eq!((work.workers, work.depth), (4, 32));
    }

    #[test]
    fn bins_are_kept_exactly() {
        let run = imported(&format!("fio: a warning\n{PLUS}\nfio: bye\n")).unwrap();
        let document: Document = serde_json::from_str(PLUS).unwrap();
        let response = &run.stages[0].works[0].operations[0].tally.response;
        let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
        let mut expected = tidemark_measure::histogram::Histogram::new();
        for (value, count) in &document.jobs[0].read.clat_ns.bins {
            *bins.entry(*value).or_default() += count;
            expected.record_many(*value, *count);
        }
        assert_eq!(response.count(), document.jobs[0].read.clat_ns.count);
        assert_eq!(bins.values().sum::<u64>(), response.count());
        assert!(response.buckets().eq(expected.buckets()));
        let read = &run.stages[0].works[0].operations[0];
        let told = &document.jobs[0].read.clat_ns;
        assert_eq!((read.mean_ns(), read.quantile_ns(1.0)), (Some(told.mean), Some(told.max as f64)));
        assert_ne!(response.mean(), told.mean, "the middles of bins have another mean");
        assert_eq!(read.quantile_ns(0.95), Some(response.quantile(0.95) as f64));
        assert!(run.notes[0].text.contains("bins"));
    }

    #[test]
    fn what_failed_is_failed() {
        let text = r#"{"fio version":"fio-3.33","jobs":[{"jobname":"full","error":28,"elapsed":1,
            "job options":{"rw":"write","ioengine":"psync","iodepth":"32"},"write":{"total_ios":3,"runtime":10}}]}"#;
        let run = imported(text).unwrap();
        assert_eq!((run.state, run.stages[0].works[0].depth), (State::Failed, 1));
        let tally = &run.stages[0].works[0].operations[0].tally;
        assert_eq!((tally.ok, tally.faults.of(Fault::NoSpace)), (2, 1));
        assert!(run.stages[0].reason.contains("No space left"));
    }

    #[test]
    fn jobs_at_once_begin_at_once_and_times_that_are_told_count() {
        let jobs = |start: u64| {
            format!(
                r#"{{"timestamp_ms":9000,"jobs":[{{"groupid":0,"elapsed":3,"job_start":{start},"read":{{"runtime":2000}}}},
            {{"groupid":1,"elapsed":3,"job_start":{},"read":{{"runtime":2000}}}}]}}"#,
                start * 2
            )
        };
        let starts = |text: &str| {
            imported(text).unwrap().stages.iter().map(|stage| stage.started_ns).collect::<Vec<_>>()
        };
        assert_eq!(starts(&jobs(0)), [0, 0]);
        assert_eq!(starts(&jobs(1_500)), [0, 1_500 * MS]);
    }

    #[test]
    fn secrets_are_left_out() {
        let text = r#"{"jobs":[{"jobname":"a","job options":{"http_s3_key":"hush","ioengine":"http"},"read":{"total_ios":1,"runtime":1}}]}"#;
        let run = imported(text).unwrap();
        assert!(!run.provenance.document.contains("hush"), "{}", run.provenance.document);
    }

    #[test]
    fn terse_output_is_read_as_fio_means_it() {
        // As fio 3.33 wrote it for 4 KiB operations: 496 reads and 528 writes, then 1,024 reads.
        let run = imported(TERSE).unwrap();
        assert_eq!(run.provenance.format, "fio terse (fio-3.33)");
        let names: Vec<_> = run.stages.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(names, ["mix", "seq"]);
        let [read, write] = &run.stages[0].works[0].operations[..] else { panic!("reads and writes") };
        assert_eq!((read.kind.as_str(), write.kind.as_str()), ("read", "write"));
        assert_eq!((read.tally.ok, read.tally.bytes), (496, 1984 * 1024));
        assert_eq!((write.tally.ok, write.tally.bytes), (528, 2112 * 1024));
        assert_eq!((read.mean_ns(), read.quantile_ns(1.0)), (Some(114654.573), Some(3914000.0)));
        assert_eq!((read.quantile_ns(0.5), read.quantile_ns(0.99)), (Some(69000.0), Some(1728000.0)));
        assert_eq!((write.quantile_ns(0.5), write.quantile_ns(0.999)), (Some(2000.0), Some(17000.0)));
        let seq = &run.stages[1].works[0];
        assert_eq!((seq.operations.len(), seq.window_end_ns), (1, 7 * MS));
        assert_eq!((seq.operations[0].tally.ok, seq.operations[0].tally.bytes), (1024, 4 << 20));
        assert!(run.notes.iter().any(|note| note.topic == "fio-terse"));
    }

    #[test]
    fn the_json_of_a_file_with_terse_output_is_what_counts() {
        let text = format!("{TERSE}\n{JSON}\n");
        assert_eq!(imported(&text).unwrap().provenance.format, "fio JSON (fio-3.33)");
        let cut = format!("{TERSE}\n{}", &JSON[..JSON.len() / 2]);
        assert_eq!(imported(&cut).unwrap().provenance.format, "fio terse (fio-3.33)");
    }

    #[test]
    fn terse_output_that_contradicts_itself_is_refused() {
        let first = TERSE.lines().find(|line| line.starts_with("3;")).unwrap();
        // KiB, operations a second, run time, largest completion latency, a percentile; of reads.
        let cases = [
            (5, "0", "0 KiB (field 6)"),
            (7, "0", "0 operations a second (field 8)"),
            (8, "0", "run time of 0 ms (field 9)"),
            (14, "200", "beyond its max of 200000 ns"),
            (17, "-5%=60", "a percentile `-5`"),
            (33, "250%=60", "a percentile `250`"),
        ];
        for (field, value, expected) in cases {
            let mut fields: Vec<&str> = first.split(';').collect();
            fields[field] = value;
            let why = imported(&fields.join(";")).err().unwrap_or_default();
            assert!(why.contains("job `mix`: ") && why.contains(expected), "{field}: {why}");
        }
    }

    #[test]
    fn earlier_reports_and_other_versions_of_terse_output_do_not_count() {
        let first = TERSE.lines().find(|line| line.starts_with("3;")).unwrap();
        let mut fields: Vec<&str> = first.split(';').collect();
        (fields[8], fields[49]) = ("2037", "2037");
        let later = format!("{first}\n{}\n", fields.join(";"));
        let run = imported(&later).unwrap();
        assert_eq!((run.stages.len(), run.stages[0].works.len()), (1, 1));
        assert_eq!(run.stages[0].works[0].window_end_ns, 2_037 * MS);
        assert!(run.notes.iter().any(|note| note.text.starts_with("1 earlier report")));
        fields[0] = "4";
        assert!(imported(&fields.join(";")).unwrap_err().contains("--terse-version=3"));
        fields[0] = "3";
        assert!(imported(&fields[..40].join(";")).unwrap_err().contains("line 1: it has 40 fields"));
        fields[13] = "x";
        fields[15] = "x";
        assert!(imported(&fields.join(";")).unwrap_err().contains("field 16 is 'x'"));
    }

    #[test]
    fn what_is_no_report_is_told() {
        assert!(imported("hello").unwrap_err().contains("--output-format"));
        assert!(imported("{\n \"jobs\" : 7\n}\n").unwrap_err().contains("not a report of fio"));
        assert!(imported("{\"jobs\": []}").unwrap_err().contains("no job"));
    }
}
