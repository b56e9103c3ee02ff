//! The archive's files, to the letter.

use super::*;
use crate::sample;
use tidemark_measure::record::State;

fn archived(runs: &[&Run]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for run in runs {
        write(run, &run.provenance.document, directory.path(), &TimeZone::UTC).unwrap();
    }
    directory
}

fn read(directory: &tempfile::TempDir, file: &str) -> String {
    std::fs::read_to_string(directory.path().join(file)).unwrap()
}

#[test]
fn headers_are_cosbench_s_to_the_byte() {
    let mut run = sample::healthy(3);
    run.name = "mix".into();
    let directory = archived(&[&run]);
    let header = |file: &str| read(&directory, file).lines().next().unwrap().to_string();
    assert_eq!(
        header("run-history.csv"),
        "Id,Name,Submitted-At,Started-At,Stopped-At,Op-Info,State,Detailed State"
    );
    assert_eq!(
        header("workloads.csv"),
        "Id,Op-Name,Op-Count,Byte-Count,Worker-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,\
         95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Config-Info"
    );
    assert_eq!(
        header("w1-mix/w1-mix.csv"),
        "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,\
         95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,Detailed Status"
    );
    assert_eq!(
        header("w1-mix/w1-mix-rt-histogram.csv"),
        "ResTime,s3-main-w1-main-read,(%),s3-main-w1-main-write,(%)"
    );
    assert_eq!(
        header("w1-mix/s3-main-worker.csv"),
        "Op-Type,Sample-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,Throughput,Bandwidth,Succ-Ratio"
    );
    let snapshots = read(&directory, "w1-mix/s3-main.csv");
    let mut lines = snapshots.lines();
    assert_eq!(
        lines.next().unwrap(),
        "Timestamp,Op-Count,,Byte-Count,,Avg-ResTime,,Avg-ProcTime,,Throughput,,Bandwidth,,Succ-Ratio,,Version-Info,,"
    );
    assert_eq!(
        lines.next().unwrap(),
        ",read,write,read,write,read,write,read,write,read,write,read,write,read,write,Min-Version,Version,Max-Version"
    );
    assert!(lines.next().unwrap().starts_with("18:00:10,"), "the work began 9.4 s after the run");
    assert!(read(&directory, "w1-mix/s1-init.csv").is_empty(), "a stage without snapshots has an empty file");
}

#[test]
fn rows_have_cosbench_s_shape() {
    let mut run = sample::healthy(3);
    run.name = "mix".into();
    let directory = archived(&[&run]);
    let history = read(&directory, "run-history.csv");
    assert_eq!(
        history.lines().nth(1).unwrap(),
        "w1,mix,2026-11-20 18:00:00,2026-11-20 18:00:00,2026-11-20 18:00:18,init prepare read write cleanup dispose,\
         finished,queuing @ 2026-11-20 18:00:00,processing @ 2026-11-20 18:00:00,finished @ 2026-11-20 18:00:18"
    );
    let matrix = read(&directory, "workloads.csv");
    let row: Vec<&str> =
        matrix.lines().find(|line| line.starts_with("w1-s2-prepare-1")).unwrap().split(',').collect();
    assert_eq!((row[1], row[2], row[3], row[4]), ("prepare-write", "20000", "81920000", "32"));
    assert_eq!(row[16], "100% containers=r(1-32) objects=r(1-625) sizes=c(4)KB");
    assert_eq!(row.len(), 17);
    let histogram = read(&directory, "w1-mix/w1-mix-rt-histogram.csv");
    assert_eq!(histogram.lines().count(), 50_002);
    assert!(histogram.lines().nth(1).unwrap().starts_with("0~10,"));
    assert_eq!(histogram.lines().last().unwrap(), "500000~+INF,0,100%,0,100%");
    let counted: u64 =
        histogram.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(counted, run.stages[2].works[0].operations[0].tally.ok);
}

#[test]
fn run_numbers_go_on_from_what_is_there() {
    let mut run = sample::healthy(1);
    run.name = "a/../b".into();
    let directory = archived(&[&run, &run]);
    assert_eq!(read(&directory, ".meta"), "2");
    assert!(directory.path().join("w2-a_.._b/w2-a_.._b.csv").is_file());
    std::fs::write(directory.path().join(".meta"), "41\n").unwrap();
    std::fs::create_dir(directory.path().join("w57-other")).unwrap();
    write(&run, "name: x\n", directory.path(), &TimeZone::UTC).unwrap();
    assert_eq!(read(&directory, ".meta"), "58");
    assert_eq!(read(&directory, "w58-a_.._b/workload-config.yaml"), "name: x\n");
    assert_eq!(read(&directory, "run-history.csv").matches("Id,Name").count(), 1);
    assert_eq!(read(&directory, "run-history.csv").lines().count(), 4);
}

#[test]
fn failures_show() {
    let mut run = sample::all_failed();
    run.state = State::Failed;
    run.name = "mix".into();
    let directory = archived(&[&run]);
    let workload = read(&directory, "w1-mix/w1-mix.csv");
    let row = workload.lines().find(|line| line.starts_with("s3-main,read")).unwrap();
    assert!(
        row.starts_with("s3-main,read,read,0,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,0,0,0%,failed,waiting @ "),
        "{row}"
    );
    assert!(read(&directory, "run-history.csv").contains(",failed,queuing @ "));
    let log = read(&directory, "w1-mix/workload.log");
    assert!(log.contains("1000 x refused") && log.contains("e.g. GET http://127.0.0.1:7480/b1/o7"), "{log}");
}

#[test]
fn names_neither_make_lines_of_the_log_nor_command_a_terminal() {
    let mut run = sample::all_failed();
    let lines = super::log(&run).lines().count();
    run.stages[0].id = "s1-a\nrun completed\u{1b}[31m\u{9b}5m\u{7f}".into();
    let log = super::log(&run);
    assert_eq!(log.lines().count(), lines, "{log}");
    assert!(log.contains("s1-a run completed"), "{log}");
    assert!(!log.contains(|one: char| one.is_control() && one != '\n'), "{log:?}");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = write(&Run::default(), "", &file.join("below"), &TimeZone::UTC).unwrap_err().to_string();
    assert!(error.contains("file/below") && error.contains("check"), "{error}");
}
