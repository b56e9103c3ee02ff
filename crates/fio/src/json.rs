//! fio's json and json+ output: the documents in the stream that a run with `--status-interval` writes.
//!
//! Every field may be missing: versions differ. Only what is imported is read.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tidemark_measure::json::weigh;

/// A document longer than this is given up, bytes: thousands of jobs with all their bins are smaller.
const LONGEST: usize = 64 << 20;

/// One report of all jobs. Its numbers count from the start of the run, or from the end of a job's `ramp_time`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Document {
    /// `fio-3.33`.
    #[serde(rename = "fio version")]
    pub version: String,
    /// When it was written, milliseconds since 1970 UTC.
    pub timestamp_ms: u64,
    /// Options of the job file's `[global]` section, as text.
    #[serde(rename = "global options")]
    pub options: BTreeMap<String, Value>,
    /// One entry per job, or per group with `group_reporting`, in the order of the job file.
    pub jobs: Vec<Job>,
    /// What the kernel counted for the disks below, from the start of the run.
    pub disk_util: Vec<Disk>,
}

/// One job, or the sum of a group's jobs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Job {
    /// The job's name; of a group, the first job's.
    pub jobname: String,
    /// Its group: a job after a `stonewall` or with `new_group` begins another one.
    pub groupid: u64,
    /// When it began, milliseconds since 1970 UTC; 0 in versions that do not say.
    pub job_start: u64,
    /// Seconds since fio's start.
    pub elapsed: u64,
    /// Options of the job's own section, as text; those without a value are left out.
    #[serde(rename = "job options")]
    pub options: BTreeMap<String, Value>,
    /// The first error's number (errno), or 0.
    pub error: i64,
    /// With `continue_on_error`: how many there were.
    pub total_err: Option<u64>,
    /// Run time summed over the jobs, milliseconds.
    pub job_runtime: u64,
    /// Processor time in user mode, percent of `job_runtime`.
    pub usr_cpu: f64,
    /// Processor time in the kernel, percent of `job_runtime`.
    pub sys_cpu: f64,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Trims.
    pub trim: Direction,
    /// Syncs.
    pub sync: Direction,
}

/// One direction of a job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Direction {
    /// Operations issued. Of syncs fio 3.33 leaves out `fdatasync`; their `lat_ns.N` is right.
    pub total_ios: u64,
    /// Bytes moved.
    pub io_bytes: u64,
    /// Operations a second, by fio's own reckoning.
    pub iops: f64,
    /// Milliseconds from the job's (or the longest job's) start to its end.
    pub runtime: u64,
    /// Operations that moved fewer bytes than requested. fio 3.33 counts every `fdatasync` among the reads' (see
    /// [`Job::short_reads`]).
    pub short_ios: u64,
    /// Operations dropped.
    pub drop_ios: u64,
    /// From submission to completion.
    pub clat_ns: Latency,
    /// From the operation's creation to its completion; bins only with `lat_percentiles=1`.
    pub lat_ns: Latency,
}

/// A distribution of latencies in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// How many.
    #[serde(rename = "N")]
    pub count: u64,
    /// The largest.
    pub max: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// fio's own percentiles: `99.000000` and the like.
    pub percentile: BTreeMap<String, u64>,
    /// Bins: the value in their middle (exact below 128 ns, then within 1/128) and their counts.
    pub bins: BTreeMap<u64, u64>,
}

/// What the kernel counted for a disk.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Disk {
    /// Its kernel name.
    pub name: String,
    /// Reads completed.
    pub read_ios: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Share of time with a request in flight, percent.
    pub util: f64,
}

/// More is no count and no number of bytes of a job, and no milliseconds; and more jobs are none of fio's. Sums of them are still numbers.
const MOST: u64 = 1 << 50;
const MOST_MS: u64 = 1 << 36;
const MOST_JOBS: usize = 4096;

impl Document {
    /// Whether its numbers can be those of a run.
    fn can_be(&self) -> bool {
        self.jobs.len() <= MOST_JOBS && self.jobs.iter().all(Job::can_be)
    }
}

impl Job {
    fn can_be(&self) -> bool {
        let parts = [&self.read, &self.write, &self.trim, &self.sync];
        let is_count = |number: u64| number <= MOST;
        let is_time = |ms: u64| ms <= MOST_MS;
        let all = parts.iter().all(|part| {
            let counts = [part.total_ios, part.io_bytes, part.short_ios, part.drop_ios];
            let timed = [&part.clat_ns, &part.lat_ns];
            counts.into_iter().all(is_count)
                && is_time(part.runtime)
                && timed
                    .iter()
                    .all(|one| is_count(one.count) && one.bins.values().all(|count| is_count(*count)))
        });
        all && is_time(self.job_runtime) && is_time(self.elapsed) && self.total_err.is_none_or(is_count)
    }

    /// Reads that moved fewer bytes than requested, without the `fdatasync`s that fio 3.33 counts among them.
    pub fn short_reads(&self) -> u64 {
        let strayed = self.sync.lat_ns.count.saturating_sub(self.sync.total_ios);
        self.read.short_ios.saturating_sub(strayed)
    }
}

impl Direction {
    /// The distribution to import: the whole latency where fio gives its bins, else the completion latency.
    pub fn latency(&self) -> &Latency {
        if self.lat_ns.bins.is_empty() { &self.clat_ns } else { &self.lat_ns }
    }
}

/// What a line of output completed.
#[derive(Debug)]
pub enum Piece {
    /// A report.
    Document(Box<Document>),
    /// A line that fio prints for people.
    Chatter(String),
    /// A report that cannot be read, and why.
    Garbage(String),
}

/// Takes the documents out of the lines that fio writes to its standard output.
///
/// fio indents its JSON: a line `{` begins a report and a line `}` ends it, whatever else it prints in between.
#[derive(Debug, Default)]
pub struct Stream {
    document: Option<String>,
}

impl Stream {
    /// Takes a line without its end; gives what it completes.
    pub fn line(&mut self, line: &str) -> Option<Piece> {
        if line.trim_end() == "{" {
            self.document = Some("{\n".into());
            return None;
        }
        let Some(document) = &mut self.document else {
            return (!line.trim().is_empty()).then(|| Piece::Chatter(line.trim().to_owned()));
        };
        if document.len() + line.len() > LONGEST {
            self.document = None;
            return Some(Piece::Garbage(format!("a report is longer than {LONGEST} bytes")));
        }
        document.push_str(line);
        document.push('\n');
        if line.trim_end() != "}" {
            return None;
        }
        let text = self.document.take()?;
        let read = weigh(&text).and_then(|()| parse(&text).map_err(|error| error.to_string()));
        let read = read.and_then(|document| match document.can_be() {
            true => Ok(document),
            false => Err("it has numbers that no run has".to_owned()),
        });
        Some(read.map_or_else(Piece::Garbage, Piece::Document))
    }
}

fn parse(text: &str) -> Result<Box<Document>, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| {
        // C prints numbers that JSON lacks: a rate over no time.
        let is_no_number = |line: &str| {
            let value = line.rsplit(':').next().unwrap_or_default().trim().trim_end_matches(',');
            matches!(value.trim_start_matches('-'), "nan" | "inf")
        };
        let (mut mended, mut changed) = (String::with_capacity(text.len()), false);
        for line in text.lines() {
            match line.rfind(':').filter(|_| is_no_number(line)) {
                Some(colon) => {
                    mended.push_str(&line[..colon]);
                    mended.push_str(if line.ends_with(',') { ": 0," } else { ": 0" });
                    changed = true;
                }
                None => mended.push_str(line),
            }
            mended.push('\n');
        }
        if changed { serde_json::from_str(&mended) } else { Err(error) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn documents(text: &str) -> (Vec<Document>, usize, usize) {
        let (mut stream, mut found, mut chatter, mut garbage) = (Stream::default(), vec![], 0, 0);
        for line in text.lines() {
            match stream.line(line) {
                Some(Piece::Document(document)) => found.push(*document),
                Some(Piece::Chatter(_)) => chatter += 1,
                Some(Piece::Garbage(_)) => garbage += 1,
                None => {}
            }
        }
        (found, chatter, garbage)
    }

    #[test]
    fn documents_are_found_among_chatter() {
        let text = "note: {hello}\n{\n  \"jobs\" : [\n    {\n      \"jobname\" : \"a\",\n      \"error\" : 28\n    }\n  ]\n}\n\
            \nfio: terminating on signal 2\n{\n \"jobs\" : 7\n}\n{\n  \"cut\" : [\n{\n  \"disk_util\" : []\n}\n";
        let (found, chatter, garbage) = documents(text);
        assert_eq!((found.len(), chatter, garbage), (2, 2, 1));
        assert_eq!((found[0].jobs[0].jobname.as_str(), found[0].jobs[0].error), ("a", 28));
        assert!(found[1].jobs.is_empty());
    }

    #[test]
    fn numbers_that_no_run_has_make_no_report() {
        let report =
            |number: u64| format!("{{\n\"jobs\" : [{{\"read\" : {{\"total_ios\" : {number}}}}}]\n}}\n");
        assert_eq!(documents(&report(MOST)).0.len(), 1);
        assert_eq!((documents(&report(MOST + 1)).0.len(), documents(&report(MOST + 1)).2), (0, 1));
    }

    #[test]
    fn numbers_that_json_lacks_are_no_obstacle() {
        let text = "{\n  \"jobs\" : [\n    {\n      \"usr_cpu\" : -nan,\n      \"job_runtime\" : 5,\n      \"sys_cpu\" : inf\n    }\n  ]\n}\n";
        let (found, _, garbage) = documents(text);
        assert_eq!((found[0].jobs[0].job_runtime, found[0].jobs[0].usr_cpu, garbage), (5, 0.0, 0));
    }

    #[test]
    fn syncs_that_strayed_into_short_reads_are_taken_out() {
        let job = Job {
            read: Direction { short_ios: 20_162, ..Direction::default() },
            sync: Direction {
                lat_ns: Latency { count: 20_160, ..Latency::default() },
                ..Direction::default()
            },
            ..Job::default()
        };
        assert_eq!(job.short_reads(), 2);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,200}", lines in proptest::collection::vec(prop_oneof![
            Just("{".to_owned()), Just("}".into()), Just("\"jobs\" : [{}]".into()), Just("\"jobs\" : [".into()),
            Just("]".into()), Just("\"x\" : nan".into()), ".{0,20}",
        ], 0..30)) {
            documents(&text);
            documents(&lines.join("\n"));
        }
    }
}
