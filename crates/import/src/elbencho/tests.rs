//! The header and rows of a published run of elbencho 3.1-1 (its last columns left out there), and JSON in the form that
//! its source writes. The end of the last row was cut off where it is published, and is made up.

use super::*;
use std::path::PathBuf;

const CSV: &str = include_str!("../samples/elbencho.csv");

fn imported(name: &str, text: &str) -> Result<Vec<Run>, String> {
    read(&Source { path: PathBuf::from(name), text: text.into(), modified_unix_ns: 7 }, &Options::default())
}

#[test]
fn phases_of_one_command_are_one_run() {
    let runs = imported("sweep.csv", CSV).unwrap();
    let [run] = &runs[..] else { panic!("{} runs", runs.len()) };
    let kinds: Vec<_> =
        run.stages.iter().map(|stage| (stage.id.as_str(), stage.works[0].kind.name())).collect();
    assert_eq!(kinds, [("s1-mkdirs", "init"), ("s2-write", "normal"), ("s3-read", "normal")]);
    assert_eq!(
        (run.name.as_str(), run.stages[2].started_ns, run.elapsed_ns),
        ("sweep", 3_000_000_000, 3_905_000_000)
    );
    let work = &run.stages[1].works[0];
    assert_eq!((work.workers, work.depth, work.window_end_ns), (8, 4, 2_784_000_000));
    let write = &work.operations[0];
    assert_eq!((write.kind.as_str(), write.tally.ok, write.tally.bytes), ("write", 8_192, 8_192 << 20));
    assert_eq!(
        (write.throughput(1.0), write.mean_ns(), write.quantile_ns(1.0)),
        (2_941.0, Some(9_383e3), Some(120_903e3))
    );
    assert_eq!((write.bandwidth(1.0), write.quantile_ns(0.95)), (2_941.0 * 1_048_576.0, None));
    let dirs = &run.stages[0].works[0].operations[0];
    assert_eq!((dirs.tally.ok, dirs.throughput(1.0), dirs.mean_ns()), (8, 1_466.0, Some(1_068e3)));
    assert!(run.provenance.document.contains("block size: 1048576"));
}

#[test]
fn the_command_line_is_a_cell_although_its_words_are_quoted() {
    let mut lines = CSV.lines();
    let header = lines.next().unwrap();
    let command = r#""elbencho" "--threads" "8" "--label" "a,b" "/mnt/x""#;
    let complete: String =
        lines.map(|line| format!("{line},3.1-1,{command}\r\n")).collect::<Vec<_>>().concat();
    let runs = imported("sweep.csv", &format!("{header},version,command\r\n{complete}")).unwrap();
    let [run] = &runs[..] else { panic!("{} runs", runs.len()) };
    assert_eq!((run.provenance.command.as_str(), run.stages.len()), (command, 3));
    assert_eq!(run.provenance.format, "elbencho CSV (3.1-1)");
    assert_eq!(run.stages[1].works[0].operations[0].tally.ok, 8_192);
    let plain = imported("x", &format!("{header},command\n{},elbencho -t 8\n", CSV.lines().nth(2).unwrap()));
    assert_eq!(plain.unwrap()[0].provenance.command, "elbencho -t 8");
}

#[test]
fn another_command_is_another_run() {
    let again =
        CSV.lines().skip(2).map(|line| line.replace(",8,1,4,", ",16,1,4,") + "\n").collect::<String>();
    let runs = imported("sweep.csv", &format!("{CSV}{again}")).unwrap();
    assert_eq!(runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(), ["sweep 1", "sweep 2"]);
    assert_eq!(runs[1].stages[0].works[0].workers, 16);
    let same = CSV.lines().nth(2).unwrap();
    assert_eq!(
        imported("x", &format!("{CSV}{same}\n")).unwrap().len(),
        2,
        "a phase that was there begins anew"
    );
}

#[test]
fn json_has_mixes_and_classes() {
    let text = r#"{"phase_type":"RWMIX","phase_id":"a","label":"mix","iso_start_date":"2026-05-28T22:26:40.000+0200","config":{"hosts":"2","threads":"4","io_depth":"8","version":"3.1-1",
        "command":"\"elbencho\" \"--s3secret=hush\" "},"first_done":{},"last_done":{"elapsed_time_ms":"10000","iops":"100","bytes/s":"409600","bytes":"4096000",
        "rwmix_read":{"iops":"300","bytes/s":"1228800","bytes":"12288000"},"cpu%":"50","latency":{"IO":{"min_us":"1","avg_us":"20","max_us":"90",
        "histogram":[{"range":"0-16us","count":"60"},{"range":"16-64us","count":"35"},{"range":"64-128us","count":"5"}],"rwmix_read":{"avg_us":"7","max_us":"8"}}}}}
        {"phase_type":"SYNC","config":{},"last_done":{"elapsed_time_ms":"3"}}"#;
    let runs = imported("x.json", text).unwrap();
    assert_eq!(
        (runs.len(), runs[0].name.as_str(), runs[0].provenance.format.as_str()),
        (2, "mix", "elbencho JSON (3.1-1)")
    );
    assert_eq!(runs[0].started_unix_ns, 1_780_000_000_000_000_000);
    assert!(!runs[0].provenance.command.contains("hush"));
    let work = &runs[0].stages[0].works[0];
    let [write, read] = &work.operations[..] else { panic!("a mix has two") };
    assert_eq!(
        (work.workers, work.depth, write.kind.as_str(), write.tally.ok, write.weight),
        (8, 8, "write", 1_000, 25.0)
    );
    assert_eq!((read.kind.as_str(), read.tally.ok, read.mean_ns()), ("read", 3_000, Some(7e3)));
    assert_eq!(
        (write.quantile_ns(0.6), write.quantile_ns(0.95), write.quantile_ns(0.99)),
        (Some(16e3), Some(64e3), Some(90e3))
    );
    assert!(runs[1].stages[0].works[0].operations.is_empty());
}

#[test]
fn mistakes_are_told_with_their_place() {
    assert!(imported("x", &CSV.replace(",2784,", ",soon,")).unwrap_err().starts_with("line 3"));
    assert!(imported("x", "2026-05-22,,dir\n").unwrap_err().contains("--nocsvlabels"));
    assert!(imported("x", "{\"phase_type\":\"READ\"}").unwrap_err().contains("phase 1"));
    assert!(imported("x", "{\"phase_type\":").unwrap_err().contains("not a result of elbencho"));
    assert_eq!(imported("x", CSV.lines().next().unwrap()).unwrap_err(), "contains no phase");
}
