//! fio's terse output (`--minimal`, `--output-format=terse`), version 3: a line for each job, fields between semicolons.
//!
//! The fields are those of fio's manual, "Terse output". It has no number of operations, no job's options, and completion
//! latencies in whole microseconds.

use std::collections::BTreeMap;
use tidemark_fio::json::{Direction, Document, Job, Latency};

/// The beginning of a line of version 3.
const BEGIN: &str = "3;fio-";

/// Where the fields for reads and for writes begin, and how many each has.
const READ: usize = 5;
const WRITE: usize = READ + 41;

/// Fields up to the distribution of latencies in milliseconds, which all lines have.
const LEAST: usize = 121;

/// Fields of a disk, of which any number follow.
const DISK: usize = 9;

/// Reports of the same job that differ in their run time by this much are not of jobs that ended together, milliseconds.
const APART_MS: u64 = 500;

/// Whether a text has lines of terse output; an error for a version that is not read.
pub(crate) fn is_terse(text: &str) -> Result<bool, String> {
    if text.lines().any(|line| line.starts_with(BEGIN)) {
        return Ok(true);
    }
    match text.lines().find(|line| ["2;", "4;fio-", "5;fio-"].iter().any(|begin| line.starts_with(begin))) {
        Some(line) if line.split(';').count() > LEAST - 10 => Err(format!(
            "fio's terse output of version {}: version 3 (`--terse-version=3`) and JSON (`--output-format=json+`) can be read",
            &line[..1]
        )),
        _ => Ok(false),
    }
}

/// The last report of each job, and what there is to say of the others.
pub(crate) fn read(text: &str) -> Result<(Document, Vec<String>), String> {
    let mut document = Document::default();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with(BEGIN)) {
        let (version, job) = self::line(line).map_err(|why| format!("line {}: {why}", index + 1))?;
        document.version = version;
        document.jobs.push(job);
    }
    let reports = document.jobs.len();
    // With `--status-interval` every report counts from the start.
    let mut last: BTreeMap<(u64, String), u64> = BTreeMap::new();
    for job in &document.jobs {
        last.insert((job.groupid, job.jobname.clone()), job.job_runtime);
    }
    document.jobs.retain(|job| {
        let end = last.get(&(job.groupid, job.jobname.clone())).copied().unwrap_or(0);
        job.job_runtime.saturating_add(APART_MS) >= end
    });
    let mut notes = vec![
        "fio's terse output tells neither how many operations there were nor how many a job kept in flight: the number is the \
         rate times the run time, and each job is shown with one in flight."
            .to_owned(),
    ];
    if document.jobs.len() < reports {
        let earlier = reports - document.jobs.len();
        notes.push(format!(
            "{earlier} earlier reports of the same jobs were left out: each counts from the start."
        ));
    }
    Ok((document, notes))
}

/// A line: fio's version and the job.
fn line(line: &str) -> Result<(String, Job), String> {
    let fields: Vec<&str> = line.split(';').collect();
    if fields.len() < LEAST {
        return Err(format!(
            "it has {} fields; terse output of version 3 has {LEAST} at least",
            fields.len()
        ));
    }
    let failed = whole(&fields, 4)? != 0;
    let of_job = |why: String| format!("job `{}`: {why}", fields[2]);
    let direction = |at| direction(&fields, at, failed).map_err(of_job);
    let (read, write) = (direction(READ)?, direction(WRITE)?);
    // After the disks come the number of errors and the first of them, if fio was to go on after errors.
    let rest = &fields[LEAST..];
    let disks =
        rest.chunks(DISK).take_while(|disk| disk.len() == DISK && disk[DISK - 1].ends_with('%')).count();
    let after: Vec<u64> = rest[disks * DISK..].iter().map_while(|field| field.trim().parse().ok()).collect();
    let job = Job {
        jobname: fields[2].to_owned(),
        groupid: whole(&fields, 3)?,
        error: whole(&fields, 4)? as i64,
        total_err: after.first().copied().filter(|_| after.len() >= 2),
        job_runtime: read.runtime.max(write.runtime),
        read,
        write,
        ..Job::default()
    };
    Ok((fields[1].to_owned(), job))
}

/// The fields of reads or of writes, which begin at `at`. A job that failed may have ended at once.
fn direction(fields: &[&str], at: usize, failed: bool) -> Result<Direction, String> {
    let (kib, rate, runtime) = (whole(fields, at)?, whole(fields, at + 2)?, whole(fields, at + 3)?);
    if !failed && (kib > 0 || rate > 0) && (kib == 0 || rate == 0 || runtime == 0) {
        return Err(format!(
            "{kib} KiB (field {}), {rate} operations a second (field {}) and a run time of {runtime} ms (field {}) do not \
             tell how many operations there were; import fio's JSON (`--output-format=json+`)",
            at + 1,
            at + 3,
            at + 4
        ));
    }
    // 496 operations in 37 ms are 13 405.4/s, written as 13405: within a second's worth of run time.
    let total_ios = (u128::from(rate) * u128::from(runtime)).div_ceil(1_000);
    let total_ios = if kib == 0 { 0 } else { u64::try_from(total_ios).unwrap_or(u64::MAX).max(1) };
    let us = |index: usize| decimal(fields, index).map(|us| us * 1e3);
    let clat_ns = Latency {
        count: total_ios,
        max: us(at + 9)? as u64,
        mean: us(at + 10)?,
        percentile: fields[at + 12..at + 32].iter().filter_map(|field| percentile(field)).collect(),
        ..Latency::default()
    };
    let io_bytes = kib.saturating_mul(1024);
    Ok(Direction { total_ios, io_bytes, runtime, clat_ns, ..Direction::default() })
}

/// `99.000000%=191`, in microseconds; the places without one are `0%=0`.
fn percentile(field: &str) -> Option<(String, u64)> {
    let (percent, us) = field.split_once("%=")?;
    let us: u64 = us.trim().parse().ok()?;
    (percent != "0").then(|| (percent.to_owned(), us.saturating_mul(1_000)))
}

fn whole(fields: &[&str], index: usize) -> Result<u64, String> {
    fields[index].trim().parse().map_err(|_| no_number(fields[index], index))
}

fn decimal(fields: &[&str], index: usize) -> Result<f64, String> {
    let number =
        fields[index].trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| no_number(fields[index], index))
}

fn no_number(field: &str, index: usize) -> String {
    format!("field {} is '{field}', which is no number", index + 1)
}
