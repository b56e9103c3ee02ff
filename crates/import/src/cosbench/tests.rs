//! COSBench's own text, and the archive that Tidemark writes in its form.

use super::*;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Second;

/// A workload of 0.4.2.c4: percentiles are upper edges of classes of 10 ms.
const TABLE: &str = include_str!("../samples/w1-mix.csv");

const DOCUMENT: &str = r#"<workload name="mix" description="old"><storage type="s3" config="accesskey=me;secretkey=hush;endpoint=http://x"/><workflow>
    <workstage name="init"><work type="init" workers="4" config="containers=r(1,4)"/></workstage>
    <workstage name="prepare"><work type="prepare" workers="8" config="c"/></workstage>
    <workstage name="main"><work name="main" workers="16" rampup="1" runtime="30"><operation type="read" ratio="80" config="r"/><operation type="write" ratio="20" config="w"/></work></workstage></workflow></workload>"#;

/// An archive directory with a workload in it.
fn archived(table: &str, document: Option<&str>) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("w7-mix");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("w7-mix.csv"), table).unwrap();
    document
        .into_iter()
        .for_each(|document| std::fs::write(folder.join("workload-config.xml"), document).unwrap());
    directory
}

fn imported(directory: &tempfile::TempDir) -> Result<Vec<Run>, String> {
    archive(&directory.path().join("w7-mix"), &Options::default())
}

#[test]
fn an_archive_becomes_a_run() {
    let runs = imported(&archived(TABLE, Some(DOCUMENT))).unwrap();
    let [run] = &runs[..] else { panic!("one workload is one run") };
    assert_eq!((run.name.as_str(), run.description.as_str(), run.state), ("mix", "old", State::Completed));
    assert_eq!(run.provenance.format, "COSBench archive");
    assert!(run.provenance.document.contains("secretkey=***") && !run.provenance.document.contains("hush"));
    let kinds: Vec<&str> = run.stages.iter().map(|stage| stage.works[0].kind.name()).collect();
    assert_eq!(kinds, ["init", "prepare", "normal"]);
    assert_eq!(run.stages[1].works[0].operations[0].class.name(), "write");
    let main = &run.stages[2];
    assert_eq!(
        (main.id.as_str(), main.name.as_str(), main.started_ns, main.ended_ns),
        ("s3-main", "main", 8_000_000_000, 40_000_000_000)
    );
    let work = &main.works[0];
    assert_eq!((work.workers, work.window_start_ns, work.window_end_ns), (16, 1_000_000_000, 31_000_000_000));
    let read = &work.operations[0];
    assert_eq!((read.label.as_str(), read.weight, read.config.as_str()), ("read", 80.0, "r"));
    assert_eq!((read.tally.ok, read.tally.bytes, read.tally.failed()), (36_632, 150_044_672, 184));
    assert_eq!((read.throughput(1.0), read.bandwidth(1.0)), (1_221.21, 5_002_076.16));
    assert_eq!(
        (read.mean_ns(), read.quantile_ns(0.95), read.quantile_ns(1.0)),
        (Some(10_340_000.0), Some(30_000_000.0), Some(210_000_000.0))
    );
    assert!(run.notes.iter().any(|note| note.text.contains("multiples of 10 ms")));
    assert_eq!(run.started_unix_ns, moment("2016-11-20 18:00:00").unwrap());
}

#[test]
fn without_its_document_a_stage_is_one_work_and_its_times_are_those_of_its_states() {
    let runs = imported(&archived(TABLE, None)).unwrap();
    let work = &runs[0].stages[2].works[0];
    assert_eq!((work.workers, work.window_end_ns, work.operations.len()), (0, 31_000_000_000, 2));
    assert!(runs[0].notes.iter().any(|note| note.topic == "cosbench-workers"));
}

#[test]
fn states_and_lost_failures_are_told() {
    let table = "Stage,Op-Type,Op-Count,Byte-Count,Throughput,Succ-Ratio,Status\ns1-main,write,0,0,0,0%,terminated\ns2-x,N/A,N/A,N/A,N/A,N/A,aborted\n";
    let run = imported(&archived(table, None)).unwrap().remove(0);
    assert_eq!(
        (run.state, run.stages[0].state, run.stages[1].state),
        (State::Failed, State::Failed, State::Interrupted)
    );
    let tally = &run.stages[0].works[0].operations[0].tally;
    assert_eq!((tally.ok, tally.failed()), (0, 1), "how many is lost; that there were is not");
    assert!(run.stages[1].works.is_empty());
}

#[test]
fn all_workloads_of_an_archive_are_read_in_their_order() {
    let directory = archived(TABLE, Some(DOCUMENT));
    let folder = directory.path().join("w10-later");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("w10-later.csv"), TABLE).unwrap();
    std::fs::create_dir(directory.path().join("w8-died")).unwrap();
    let runs = archive(directory.path(), &Options::default()).unwrap();
    assert_eq!(runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(), ["mix", "later"]);
    assert!(runs[0].notes.iter().any(|note| note.text.contains("w8-died")));
    std::fs::write(folder.join("w10-later.csv"), "Stage,Op-Type,Op-Count\ns1-a,read,many\n").unwrap();
    let error = archive(directory.path(), &Options::default()).unwrap_err();
    assert!(error.contains("w10-later") && error.contains("line 2") && error.contains("Op-Count"), "{error}");
    assert!(
        archive(tempfile::tempdir().unwrap().path(), &Options::default()).unwrap_err().contains("w1-name")
    );
}

#[test]
fn an_id_does_not_lead_out_of_the_directory() {
    let table = TABLE.replace("s3-main", "../../x");
    let directory = archived(&table, None);
    std::fs::write(directory.path().join("x.csv"), "Timestamp,Op-Count").unwrap();
    assert!(imported(&directory).is_ok());
}

/// A run with two measured operations, as Tidemark records it.
fn measured() -> Run {
    let operation = |kind: &str, ok: u64, failed: u64| {
        let mut tally = Tally { ok, bytes: ok * 4_096, ..Tally::default() };
        (0..ok).for_each(|place| tally.response.record(1_000_000 + place * 1_000));
        draft::fail(&mut tally, Fault::Timeout, failed);
        draft::operation(kind, tally, None)
    };
    let mut work = draft::work(
        "main",
        16,
        10_000_000_000,
        vec![operation("read", 9_000, 0), operation("write", 900, 100)],
    );
    let second = |index| {
        let part = |ok| tidemark_measure::record::SecondOfOperation {
            ok,
            bytes: ok * 4_096,
            mean_ns: 2_000_000,
            ..Default::default()
        };
        Second { index, operations: vec![part(900), part(90)], ..Second::default() }
    };
    work.series = (0..10).map(second).collect();
    let mut run = draft::run(Path::new("x"), "mix".into(), "COSBench XML");
    run.started_unix_ns = 1_780_000_000_000_000_000;
    run.stages.push(draft::stage(1, "main", 0, 10_000_000_000, vec![work]));
    draft::close(&mut run);
    run
}

#[test]
fn what_tidemark_archives_comes_back_with_the_same_counts() {
    let (directory, before) = (tempfile::tempdir().unwrap(), measured());
    let document = r#"<workload name="mix"><workflow><workstage name="main"><work name="main" workers="16" runtime="10"><operation type="read" ratio="90"/><operation type="write" ratio="10"/></work></workstage></workflow></workload>"#;
    tidemark_report::cosbench_archive(&before, document, directory.path()).unwrap();
    let after = archive(directory.path(), &Options::default()).unwrap().remove(0);
    let (work, original) = (&after.stages[0].works[0], &before.stages[0].works[0]);
    assert_eq!((after.name.as_str(), work.name.as_str(), work.workers), ("mix", "main", 16));
    assert_eq!((work.window_end_ns, after.started_unix_ns), (original.window_end_ns, before.started_unix_ns));
    for (found, expected) in work.operations.iter().zip(&original.operations) {
        assert_eq!(
            (&found.label, &found.kind, &found.class),
            (&expected.label, &expected.kind, &expected.class)
        );
        assert_eq!(
            (found.tally.ok, found.tally.bytes, found.tally.failed()),
            (expected.tally.ok, expected.tally.bytes, expected.tally.failed())
        );
        assert!((found.throughput(10.0) - expected.throughput(10.0)).abs() < 0.01);
        let p95 = |operation: &Operation| operation.quantile_ns(0.95).unwrap();
        assert!((p95(found) - p95(expected)).abs() <= 5_000.0, "milliseconds with two decimals");
    }
    let numbers = |work: &Work| {
        work.series
            .iter()
            .map(|second| {
                (second.index, second.operations.iter().map(|o| (o.ok, o.bytes, o.mean_ns)).collect())
            })
            .collect::<Vec<(u32, Vec<_>)>>()
    };
    assert_eq!(numbers(work), numbers(original));
    assert!(after.notes.iter().any(|note| note.text.starts_with("Tidemark wrote this archive")));
}
