//! Texts in the forms that warp's source writes. No file of a real run was to be had.

use super::*;
use crate::Options;
use std::path::PathBuf;

fn imported(name: &str, text: &str) -> Result<Run, String> {
    read(&Source { path: PathBuf::from(name), text: text.into(), modified_unix_ns: 7 }, &Options::default())
}

fn part(requests: u64, times: impl Fn(u64) -> f64) -> String {
    let percents: Vec<String> = (0..=100).map(|percent| times(percent).to_string()).collect();
    format!(
        r#"{{"start_time":"2026-05-28T20:26:40Z","single_sized_requests":{{"dur_percentiles_millis":[{}],"dur_median_millis":{},"slowest_millis":{},"dur_avg_millis":{},"requests":{requests},"obj_size":4096,"merged_entries":1}}}}"#,
        percents.join(","),
        times(50),
        times(100),
        times(50)
    )
}

fn realtime(parts: &[String]) -> String {
    format!(
        r#"{{"v":2,"commandline":"warp get --access-key=me --secret-key=hush","final":true,"warp_version":"1.3.0","total":{{"total_requests":0}},
        "by_op_type":{{"GET":{{"Title":"","total_requests":1000,"total_objects":1000,"total_errors":10,"total_bytes":4055040,"concurrency":20,
        "start_time":"2026-05-28T20:26:50Z","end_time":"2026-05-28T20:27:10.5Z","first_errors":["Get: connection refused"],"hosts":["a"],
        "throughput":{{"measure_duration_millis":20000,"bytes":4055040,"objects":990,"ops":1000,"errors":10,"segmented":{{"segment_duration_millis":1000,
        "segments":[{{"start":"2026-05-28T20:26:50Z","bytes_per_sec":204800,"obj_per_sec":50.0}},{{"start":"2026-05-28T20:26:52Z","bytes_per_sec":4096,"obj_per_sec":1,"errors":3}}]}}}},
        "throughput_by_host":null,"requests_by_client":{{"c1":[{}]}}}},
        "PUT":{{"total_requests":100,"total_objects":100,"start_time":"2026-05-28T20:26:40Z","end_time":"2026-05-28T20:26:50Z","concurrency":20,"first_errors":null,"requests_by_client":null,"throughput":{{}}}}}}}}"#,
        parts.join(",")
    )
}

#[test]
fn aggregated_json_becomes_a_run_with_its_preparation() {
    let run = imported("x.json", &realtime(&[part(990, |percent| percent as f64)])).unwrap();
    assert_eq!(run.provenance.format, "warp JSON (1.3.0)");
    assert_eq!(run.provenance.command, "warp get --access-key=me --secret-key=***");
    let kinds: Vec<_> =
        run.stages.iter().map(|stage| (stage.id.as_str(), stage.works[0].kind.name())).collect();
    assert_eq!(kinds, [("s1-write", "prepare"), ("s2-read", "normal")]);
    let work = &run.stages[1].works[0];
    assert_eq!(
        (work.workers, work.window_end_ns, run.stages[1].started_ns),
        (20, 20_500_000_000, 10_000_000_000)
    );
    let read = &work.operations[0];
    assert_eq!((read.tally.ok, read.tally.failed(), read.tally.faults.of(Fault::Refused)), (990, 10, 10));
    assert_eq!((read.throughput(1.0), read.bandwidth(1.0), read.mean_ns()), (49.5, 202_752.0, Some(50e6)));
    assert_eq!((read.quantile_ns(0.95), read.quantile_ns(1.0)), (Some(95e6), Some(100e6)));
    let seconds: Vec<_> = work
        .series
        .iter()
        .map(|second| (second.index, second.operations[0].ok, second.operations[0].failed))
        .collect();
    assert_eq!(seconds, [(0, 50, 0), (2, 1, 3)]);
}

#[test]
fn what_a_script_kept_of_warp_s_output_is_read() {
    let json = realtime(&[part(990, |percent| percent as f64)]);
    let plain = imported("x.json", &json).unwrap();
    let printed =
        format!("warp: <INFO> 3 objects\nwarp: Benchmark data written, {{}}\n{json}\nwarp: Cleanup done.\n");
    for text in [printed, format!("warp-1 | {json}")] {
        let run = imported("x.json", &text).unwrap();
        assert_eq!(run.provenance.format, "warp JSON (1.3.0)");
        let ok = |run: &Run| run.stages[1].works[0].operations[0].tally.ok;
        assert_eq!((ok(&run), ok(&plain)), (990, 990));
    }
}

#[test]
fn a_bad_client_is_not_averaged_away() {
    // Nine of ten requests take 1 ms; those of the second client 1 s. warp would print a p95 of 500 ms.
    let run = imported("x.json", &realtime(&[part(900, |_| 1.0), part(100, |_| 1_000.0)])).unwrap();
    let read = &run.stages[1].works[0].operations[0];
    assert_eq!((read.quantile_ns(0.90), read.quantile_ns(0.95)), (Some(1e6), Some(1e9)));
    assert_eq!(read.mean_ns(), Some(100.9e6));
    assert!(run.notes.iter().any(|note| note.topic == "warp-percentiles"));
}

#[test]
fn the_older_json_is_read_too() {
    let text = r#"{"type":"single","mixed":false,"operations":[{"type":"PUT","n":500,"skipped":false,"start_time":"2022-05-28T20:26:40Z","end_time":"2022-05-28T20:26:50Z",
        "objects_per_operation":1,"concurrency":8,"errors":0,"first_errors":null,"single_sized_requests":{"obj_size":1000,"requests":500,"dur_avg_millis":16,"dur_median_millis":15,"dur_90_millis":20,"dur_99_millis":40,"slowest_millis":55},
        "throughput":{"errors":0,"measure_duration_millis":10000,"average_bps":50000,"average_ops":50,"operations":500}}]}"#;
    let run = imported("warp.json", text).unwrap();
    let work = &run.stages[0].works[0];
    assert_eq!((work.kind.name(), work.workers, work.window_end_ns), ("normal", 8, 10_000_000_000));
    let write = &work.operations[0];
    assert_eq!((write.tally.ok, write.throughput(1.0), write.bandwidth(1.0)), (500, 50.0, 50_000.0));
    assert_eq!(
        (write.quantile_ns(0.5), write.quantile_ns(0.99), write.quantile_ns(1.0)),
        (Some(15e6), Some(40e6), Some(55e6))
    );
}

const LOG: &str = include_str!("../samples/warp-mixed.tsv");

#[test]
fn a_log_of_requests_is_exact() {
    let run = imported("warp-mixed.csv", LOG).unwrap();
    assert_eq!((run.stages.len(), run.stages[0].id.as_str()), (1, "s1-read-write"));
    assert_eq!(run.provenance.command, "warp mixed --secret-key ***");
    let work = &run.stages[0].works[0];
    assert_eq!((work.workers, work.kind.name(), work.window_end_ns), (2, "normal", 2_000_000_000));
    let read = &work.operations[0].tally;
    assert_eq!(
        (read.ok, read.bytes, read.faults.of(Fault::Throttled), read.response.count()),
        (2, 200, 1, 2)
    );
    assert_eq!((read.first_byte.count(), work.examples[0].text.as_str()), (1, "503 \"SlowDown\""));
    assert!((read.response.quantile(1.0) as f64 / 1.5e9 - 1.0).abs() < 0.001);
    let seconds: Vec<_> = work
        .series
        .iter()
        .map(|second| {
            (second.index, second.operations[0].ok, second.operations[0].failed, second.operations[0].p99_ns)
        })
        .collect();
    assert_eq!(seconds, [(0, 1, 0, 10_000_000), (1, 1, 0, 1_500_000_000), (2, 0, 1, 0)]);
}

#[test]
fn a_log_s_mistakes_are_told_with_their_line() {
    assert!(
        imported("x", &LOG.replace("1990000000", "soon"))
            .unwrap_err()
            .contains("line 5: `soon` in column `duration_ns`")
    );
    assert!(imported("x", "idx\top\tduration_ns\n").unwrap_err().contains("`start`"));
    assert_eq!(imported("x", LOG.lines().next().unwrap()).unwrap_err(), "contains no operation");
    assert!(imported("x", "{\"by_op_type\": 3}").unwrap_err().contains("not an analysis of warp"));
}

#[test]
fn segments_add_up() {
    let header = "index\top\thost\tduration_s\tobjects_per_op\tbytes\tfull_ops\tpartial_ops\tops_started\tops_ended\terrors\tmb_per_sec\tops_ended_per_sec\tobjs_per_sec\treqs_ended_avg_ms\tstart_time\tend_time\n";
    let row = |op: &str, host: &str, ended: u64, mean: f64| {
        format!(
            "0\t{op}\t{host}\t1\t1\t1000\t9\t1\t10\t{ended}\t1\t0\t0\t0\t{mean}\t2020-02-05 18:56:00.5 +0100 CET m=+0.1\tx\n"
        )
    };
    let text = [
        header,
        &row("GET", "", 10, 2.0),
        &row("GET", "", 30, 4.0),
        header,
        &row("GET", "http://a", 40, 9.0),
    ]
    .concat();
    let run = imported("analysis.csv", &text).unwrap();
    let work = &run.stages[0].works[0];
    let read = &work.operations[0];
    assert_eq!(
        (read.tally.ok, read.tally.failed(), read.tally.bytes, read.mean_ns()),
        (38, 2, 2_000, Some(3.5e6))
    );
    assert_eq!(
        (work.window_end_ns, work.series.len(), run.started_unix_ns),
        (2_000_000_000, 2, 1_580_925_360_500_000_000)
    );
}
