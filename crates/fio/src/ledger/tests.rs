//! Tests of the accounts with reports that fio 3.33 wrote.

use super::*;
use crate::json::{Latency, Piece, Stream};
use tidemark_load::stop::StopRequest;
use tidemark_measure::tally::Interval;

/// A mix of 400 reads and writes with a `fdatasync` after every 10 writes.
const MIX: &str = include_str!("../../tests/fixtures/mix.json");

struct Deaf;

impl Watch for Deaf {
    fn interval(&mut self, _interval: &Interval) {}

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

fn mix() -> Document {
    let mut stream = Stream::default();
    match MIX.lines().find_map(|line| stream.line(line)) {
        Some(Piece::Document(document)) => *document,
        other => panic!("{other:?}"),
    }
}

fn work() -> Work {
    let text = "[mix]\nrw=randrw\nrwmixread=70\nfdatasync=10\n";
    of(text)
}

fn of(text: &str) -> Work {
    crate::document::read(text, &|_| None, &|| true).unwrap().0.stages.remove(0).works.remove(0)
}

fn settle(document: Document, lines: &[&str], code: i32) -> Result<Outcome, OpenError> {
    settle_of(&work(), document, lines, code)
}

fn settle_of(work: &Work, document: Document, lines: &[&str], code: i32) -> Result<Outcome, OpenError> {
    let mut ledger = Ledger::new(&[work], &[Process::default()]);
    ledger.report(0, Duration::from_secs(1), document);
    lines.iter().for_each(|line| ledger.line(0, line));
    ledger.ended(0);
    let status = ExitStatus::from_raw(code);
    ledger.results(&[Some(status)], false, &mut [&mut Deaf]).map(|mut outcomes| outcomes.remove(0))
}

#[test]
fn totals_rates_and_percentiles_are_fios() {
    let told: serde_json::Value = serde_json::from_str(MIX).unwrap();
    let outcome = settle(mix(), &[], 0).unwrap();
    let mut longest = 0;
    for (index, name) in ["read", "write", "sync"].into_iter().enumerate() {
        let (told, tally) = (&told["jobs"][0][name], &outcome.tallies[index]);
        // fio 3.33 does not count `fdatasync` in `total_ios`.
        let count = if name == "sync" { &told["lat_ns"]["N"] } else { &told["total_ios"] };
        assert_eq!((Some(tally.ok), tally.failed()), (count.as_u64(), 0), "{name}");
        assert_eq!(Some(tally.response.count()), told["lat_ns"]["N"].as_u64());
        for (key, fraction) in [("50.000000", 0.5), ("99.000000", 0.99)] {
            let fio = told["lat_ns"]["percentile"][key].as_f64().unwrap();
            let own = tally.response.quantile(fraction) as f64;
            assert!((own / fio - 1.0).abs() <= 1.0 / 128.0 + 0.001, "{name} {key}: fio {fio}, ours {own}");
        }
        if name != "sync" {
            assert_eq!(Some(tally.bytes), told["io_bytes"].as_u64());
            let (runtime, iops) = (told["runtime"].as_u64().unwrap(), told["iops"].as_f64().unwrap());
            assert!((tally.ok as f64 * 1e3 / runtime as f64 / iops - 1.0).abs() < 1e-6, "iops of {name}");
            longest = longest.max(runtime);
        }
    }
    assert_eq!((outcome.window_start_ns, outcome.window_end_ns), (0, longest * MS));
}

#[test]
fn a_failure_is_not_among_the_successes() {
    let mut document = mix();
    document.jobs[0].error = 28;
    let issued = document.jobs[0].write.total_ios;
    let line = "fio: io_u error on file /mnt/x: No space left on device: write offset=4194304, buflen=65536";
    let outcome = settle(document, &[line], 1 << 8).unwrap();
    assert_eq!((outcome.tallies[1].ok, outcome.tallies[1].faults.of(Fault::NoSpace)), (issued - 1, 1));
    assert_eq!(outcome.examples, [Example { fault: Fault::NoSpace, text: line.into() }]);
    let counts: Vec<_> = outcome.workers.iter().map(|count| (count.ok, count.failed)).collect();
    assert_eq!(counts[1], (issued - 1, 1));
    assert_eq!(outcome.given_up, "", "the error says why it ended");
}

#[test]
fn what_ends_a_process_otherwise_gives_the_work_up() {
    let killed = settle(mix(), &[], 9).unwrap();
    assert_eq!((killed.given_up.as_str(), killed.tallies[0].failed()), ("fio was killed by signal 9", 1));
    let failed = settle(mix(), &["fio: something else"], 1 << 8).unwrap();
    assert!(failed.given_up.contains("exit status: 1: fio: something else"), "{}", failed.given_up);
    let job = settle(mix(), &["fio: pid=1, got signal=25"], 0).unwrap();
    assert_eq!(job.given_up, "a job of fio was killed by signal 25");
}

#[test]
fn what_did_nothing_at_all_is_an_error() {
    let untouched = Document { jobs: vec![Job::default()], ..Document::default() };
    let error =
        settle(untouched, &["fio: file creation disallowed by allow_file_create=0"], 1 << 8).unwrap_err();
    assert!(error.to_string().contains("disallowed") && error.to_string().contains("prefill"), "{error}");
    let error = settle(Document::default(), &[], 0).unwrap_err();
    assert!(error.to_string().contains("reported no job"), "{error}");
}

#[test]
fn lost_and_short_operations_are_failures() {
    let mut document = mix();
    document.jobs[0].read.short_ios += 3;
    document.jobs[0].write.drop_ios = 2;
    let outcome = settle(document, &[], 0).unwrap();
    assert_eq!(outcome.tallies[0].faults.of(Fault::ShortTransfer), 3);
    assert_eq!(outcome.tallies[1].faults.of(Fault::Abandoned), 2);
}

#[test]
fn the_remark_names_the_latency_that_was_imported() {
    let remarks = |document| settle(document, &[], 0).unwrap().remarks.join(" ");
    assert!(remarks(mix()).contains("fio's lat:"));
    let mut document = mix();
    let job = &mut document.jobs[0];
    (job.read.lat_ns, job.write.lat_ns) = (Latency::default(), Latency::default());
    assert!(remarks(document).contains("fio's clat"));
}

#[test]
fn jobs_that_fio_sums_up_have_no_counts_of_their_own() {
    let four = of("[mix]\nrw=randrw\nfdatasync=10\nnumjobs=4\ngroup_reporting\n");
    let outcome = settle_of(&four, mix(), &[], 0).unwrap();
    assert_eq!(outcome.workers, []);
    assert!(outcome.tallies[0].ok > 0 && outcome.threads == 4);
    // Apart, each is a worker.
    let mut apart = mix();
    apart.jobs = vec![apart.jobs[0].clone(); 4];
    let outcome = settle_of(&of("[mix]\nrw=randrw\nfdatasync=10\nnumjobs=4\n"), apart, &[], 0).unwrap();
    let workers: std::collections::BTreeSet<u32> = outcome.workers.iter().map(|count| count.worker).collect();
    assert_eq!(workers.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn what_is_read_back_comes_after_what_is_written() {
    let mut document = mix();
    (document.jobs[0].write.runtime, document.jobs[0].read.runtime) = (3_000, 2_000);
    let outcome = settle_of(&of("[mix]\nrw=write\nverify=crc32c\n"), document, &[], 0).unwrap();
    assert_eq!(outcome.window_end_ns - outcome.window_start_ns, 5_000 * MS);
    let read = outcome.workers.iter().find(|count| count.operation == 1).unwrap();
    assert_eq!((read.first_sent_ns, read.last_done_ns), (3_000 * MS, 5_000 * MS));
    assert!(outcome.remarks.iter().any(|remark| remark.contains("both phases")));
}

#[test]
fn what_fio_reports_and_nobody_expected_is_named() {
    let reads = of("[mix]\nrw=randread\nfdatasync=10\n");
    let outcome = settle_of(&reads, mix(), &[], 0).unwrap();
    assert!(outcome.given_up.contains("operations (write) of job mix"), "{}", outcome.given_up);
    let other = of("[other]\nrw=randrw\nfdatasync=10\n");
    let outcome = settle_of(&other, mix(), &[], 0).unwrap();
    assert!(outcome.given_up.contains("a job mix that Tidemark does not find"), "{}", outcome.given_up);
    assert_eq!(settle(mix(), &[], 0).unwrap().given_up, "");
}

/// The report of a job that did nothing, which ended with an error number.
fn nothing(error: i64) -> Document {
    let mut document = mix();
    let job = &mut document.jobs[0];
    job.error = error;
    (job.read, job.write, job.trim) = Default::default();
    document
}

fn refused(document: Document, lines: &[&str], code: i32) -> String {
    settle(document, lines, code).map(drop).unwrap_err().to_string()
}

#[test]
fn what_failed_at_its_first_operation_had_started() {
    let busy = "fio: io_u error on file /a: Text file busy: write offset=0, buflen=4096";
    let words = refused(nothing(26), &[busy], 1 << 8);
    assert!(
        words.starts_with("fio failed at its first operation: ") && words.contains("Text file busy"),
        "{words}"
    );
    let content = "verify: bad magic header 0, wanted acca at file /a offset 0, length 4096 (requested block: offset=0, length=4096)";
    let outcome = settle(nothing(84), &[content], 1 << 8).unwrap();
    assert_eq!(outcome.tallies[0].faults.of(Fault::WrongContent), 1, "it has read, and found something else");
    let words =
        refused(nothing(22), &["fio: pid=0, err=22/file:x.c:1, func=open, error=Invalid argument"], 1 << 8);
    assert!(words.starts_with("fio could not start: ") && !words.contains("direct I/O"), "{words}");
}

#[test]
fn a_job_that_fio_will_not_run_is_an_error_in_its_words() {
    let mounted = "fio: /dev/loop0 appears mounted, and 'allow_mounted_write' isn't set. Aborting.";
    let words = refused(nothing(0), &[mounted], 0);
    assert!(words.contains("did nothing") && words.contains("appears mounted"), "{words}");
}

#[test]
fn calls_of_sync_file_range_are_not_short_writes() {
    let mut document = mix();
    document.jobs[0].write.short_ios = 31;
    let plain = settle(document.clone(), &[], 0).unwrap();
    assert_eq!(plain.tallies[1].faults.of(Fault::ShortTransfer), 31);
    let syncing = of("[mix]\nrw=randrw\nrwmixread=70\nfdatasync=10\nsync_file_range=write:8\n");
    let outcome = settle_of(&syncing, document, &[], 0).unwrap();
    assert_eq!(outcome.tallies[1].faults.of(Fault::ShortTransfer), 0);
    assert!(outcome.remarks.iter().any(|remark| remark.contains("sync_file_range")), "{:?}", outcome.remarks);
}

#[test]
fn a_fio_that_dies_at_once_was_killed() {
    let work = work();
    let ledger = Ledger::new(&[&work], &[Process::default()]);
    let segfault = ExitStatus::from_raw(11);
    let error = ledger.results(&[Some(segfault)], false, &mut [&mut Deaf]).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("fio was killed by signal 11: "), "{error}");
}
