//! What fio says of a job, checked against itself: what contradicts itself beyond rounding is nobody's measurement.

use super::{option, runtime_ms};
use crate::number::number;
use tidemark_fio::json::{Direction, Document, Job, Latency};

/// More jobs, or operations in flight, than any machine carries.
const MOST: f64 = 1e6;

/// Bytes that a rounded number may lack: terse output has whole KiB.
const ROUNDED_BYTES: u64 = 1023;

/// How far apart two ways to the same rate may be: run times are whole milliseconds.
const RATES_APART: f64 = 2.0;

/// Operations within a millisecond, beyond which a run time of 0 is no rounding.
const MOST_IN_NO_TIME: u64 = 10_000;

/// Refuses a job whose numbers contradict each other; the text names the job and the field.
pub(super) fn check(job: &Job, document: &Document) -> Result<(), String> {
    let of_job = |why: String| format!("job `{}`: {why}", job.jobname);
    for name in ["iodepth", "numjobs"] {
        check_option(name, option(job, document, name)).map_err(of_job)?;
    }
    // Of a job that failed, operations may be missing anywhere.
    let failed = job.error != 0 || job.total_err.unwrap_or(0) > 0;
    let directions = [("read", &job.read), ("write", &job.write), ("trim", &job.trim)];
    for (name, direction) in directions {
        check_latency(&format!("{name}.clat"), &direction.clat_ns).map_err(of_job)?;
        check_latency(&format!("{name}.lat"), &direction.lat_ns).map_err(of_job)?;
        if !failed {
            check_amounts(name, direction, runtime_ms(job)).map_err(of_job)?;
        }
    }
    Ok(())
}

fn check_option(name: &str, value: Option<&str>) -> Result<(), String> {
    match value.and_then(number) {
        Some(told) if told.fract() != 0.0 || !(0.0..=MOST).contains(&told) => {
            Err(format!("`{name}` is {}, which no job of fio has", value.unwrap_or_default()))
        }
        _ => Ok(()),
    }
}

fn check_amounts(name: &str, direction: &Direction, longest_ms: u64) -> Result<(), String> {
    let Direction { total_ios, io_bytes, runtime, iops, .. } = *direction;
    if iops < 0.0 {
        return Err(format!("`{name}.iops` is {iops}, less than 0"));
    }
    if total_ios == 0 {
        return Ok(());
    }
    if longest_ms == 0 || runtime == 0 && total_ios > MOST_IN_NO_TIME {
        return Err(format!("`{name}.runtime` is 0 ms, with {total_ios} operations: they have no rate"));
    }
    let moved = total_ios.saturating_sub(direction.short_ios).saturating_sub(direction.drop_ios);
    if io_bytes.saturating_add(ROUNDED_BYTES) < moved {
        return Err(format!(
            "`{name}.io_bytes` is {io_bytes}, fewer bytes than the {moved} operations that moved some"
        ));
    }
    let rate = total_ios as f64 / (runtime as f64 / 1e3);
    if runtime > 1 && iops > 0.0 && !(1.0 / RATES_APART..=RATES_APART).contains(&(iops / rate)) {
        return Err(format!(
            "`{name}.iops` is {iops}, and {total_ios} operations in {runtime} ms are {rate:.1} a second"
        ));
    }
    Ok(())
}

fn check_latency(name: &str, latency: &Latency) -> Result<(), String> {
    if !(latency.mean >= 0.0 && latency.mean <= beyond(latency.max)) {
        return Err(format!(
            "the mean of `{name}` is {} ns, and its max is {} ns",
            latency.mean, latency.max
        ));
    }
    let mut points = Vec::with_capacity(latency.percentile.len());
    for (text, ns) in &latency.percentile {
        match number(text).filter(|percent| (0.0..=100.0).contains(percent)) {
            Some(percent) => points.push((percent, *ns)),
            None => {
                return Err(format!("`{name}` has a percentile `{text}`: there is none outside of 0 to 100"));
            }
        }
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let falls = points.windows(2).find(|pair| pair[0].1 > pair[1].1);
    if let Some([(low, more), (high, less)]) = falls {
        return Err(format!(
            "`{name}`: percentile {low} is {more} ns, more than percentile {high}, which is {less} ns"
        ));
    }
    match points.last() {
        Some((percent, ns)) if *ns as f64 > beyond(latency.max) => {
            Err(format!("`{name}`: percentile {percent} is {ns} ns, beyond its max of {} ns", latency.max))
        }
        _ => Ok(()),
    }
}

/// As far as the middle of a bin, or a whole microsecond, may lie beyond the largest sample.
fn beyond(max: u64) -> f64 {
    max as f64 * (1.0 + 1.0 / 32.0) + 2_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn refused(change: impl Fn(&mut Value)) -> Option<String> {
        let mut job = json!({"jobname": "j", "job options": {"iodepth": "4", "numjobs": "2"}, "job_runtime": 2000,
            "read": {"total_ios": 30_000, "io_bytes": 122_880_000, "runtime": 2000, "iops": 15_000.0,
                "clat_ns": {"N": 30_000, "max": 2_000_000, "mean": 100_000.0,
                    "percentile": {"50.000000": 90_000, "99.000000": 400_000, "99.900000": 2_000_001}}}});
        change(&mut job);
        check(&serde_json::from_value(job).unwrap(), &Document::default()).err()
    }

    #[test]
    fn what_contradicts_itself_is_refused_by_job_and_field() {
        assert_eq!(refused(|_| {}), None, "a percentile 1 ns beyond the max is rounding");
        let cases: [(&str, Value, &str); 11] = [
            ("/read/runtime", json!(0), "`read.runtime` is 0 ms"),
            ("/read/io_bytes", json!(1), "`read.io_bytes` is 1"),
            ("/read/io_bytes", json!(0), "`read.io_bytes` is 0"),
            ("/read/iops", json!(-15_000.0), "`read.iops` is -15000"),
            ("/read/iops", json!(900_000.0), "`read.iops` is 900000"),
            ("/job options/iodepth", json!("-4"), "`iodepth` is -4"),
            ("/job options/numjobs", json!("1e18"), "`numjobs` is 1e18"),
            (
                "/read/clat_ns/percentile/50.000000",
                json!(960_000_000_000_u64),
                "percentile 50 is 960000000000 ns",
            ),
            ("/read/clat_ns/percentile/99.900000", json!(9_000_000), "beyond its max"),
            ("/read/clat_ns/mean", json!(-1.0), "the mean of `read.clat`"),
            ("/read/clat_ns/percentile", json!({"250.000000": 5}), "a percentile `250.000000`"),
        ];
        for (at, value, expected) in cases {
            let why = refused(|job| *job.pointer_mut(at).unwrap() = value.clone()).unwrap_or_default();
            assert!(why.starts_with("job `j`: ") && why.contains(expected), "{at}: {why}");
        }
    }
}
