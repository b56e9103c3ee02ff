//! Files as they are: found out by looking, judged as they are, and broken in every way.

use super::*;
use proptest::prelude::*;
use tidemark_judge::{Validity, judge};
use tidemark_measure::record::{Operation, State};

const FIO: &str = include_str!("samples/fio.json");
const PLUS: &str = include_str!("samples/fio-plus.json");
const TALK: &str = include_str!("../../../examples/cosbench-talk-128kb-read.csv");
const COSBENCH: &str = include_str!("samples/w1-mix.csv");
const LOG: &str = include_str!("samples/warp-mixed.tsv");
const ELBENCHO: &str = include_str!("samples/elbencho.csv");

const SYSBENCH: &str = include_str!("samples/sysbench.txt");
const PGBENCH: &str = include_str!("samples/pgbench.txt");
const PGBENCH_LOG: &str = include_str!("samples/pgbench-log.txt");
const HAMMERDB: &str = include_str!("samples/hammerdb.txt");
const HAMMERDB_TIMING: &str = include_str!("samples/hammerdb-timing.json");

const ALL: [(&str, &str); 11] = [
    ("fio.json", FIO),
    ("plus.json", PLUS),
    ("talk.csv", TALK),
    ("w1-mix.csv", COSBENCH),
    ("warp-mixed.csv", LOG),
    ("elbencho.csv", ELBENCHO),
    ("sysbench.txt", SYSBENCH),
    ("pgbench.txt", PGBENCH),
    ("pgbench-log.txt", PGBENCH_LOG),
    ("hammerdb.txt", HAMMERDB),
    ("hammerdb-timing.json", HAMMERDB_TIMING),
];

fn imported(name: &str, bytes: &[u8]) -> Result<Imported, ImportError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    import(&path, &Options { object_bytes: Some(128_000), ..Options::default() })
}

#[test]
fn sane_files_are_not_called_invalid_for_what_they_cannot_know() {
    for (name, text) in ALL {
        let runs = imported(name, text.as_bytes()).unwrap().runs;
        assert!(!runs.is_empty(), "{name}");
        for run in runs {
            let judgement = judge(&run);
            assert_eq!(judgement.validity, Validity::Valid, "{name}: {:#?}", judgement.findings);
            assert_eq!((run.state, run.id), (State::Completed, 0), "{name}");
            assert!(
                !run.provenance.format.is_empty() && !run.notes.is_empty() && run.elapsed_ns > 0,
                "{name}"
            );
            let works = || run.stages.iter().flat_map(|stage| &stage.works);
            assert!(works().any(|work| work.kind.measures()), "{name}");
            assert!(
                works()
                    .filter(|work| work.kind.measures())
                    .all(|work| work.window_end_ns > work.window_start_ns),
                "{name}"
            );
        }
    }
}

#[test]
fn records_of_imports_survive_the_store_s_json() {
    for (name, text) in ALL {
        for run in imported(name, text.as_bytes()).unwrap().runs {
            let back: Run = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
            let operations = |run: &Run| -> Vec<_> {
                let works = run.stages.iter().flat_map(|stage| &stage.works);
                let quantiles = |operation: &Operation| {
                    [0.5, 0.9, 0.95, 0.99, 0.999, 1.0].map(|share| operation.quantile_ns(share))
                };
                works
                    .flat_map(|work| &work.operations)
                    .map(|one| (one.tally.ok, one.tally.failed(), quantiles(one)))
                    .collect()
            };
            assert_eq!(operations(&back), operations(&run), "{name}");
            assert_eq!(back.member, run.member, "{name}");
        }
    }
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let error = imported("nothing.csv", b"").unwrap_err();
    assert!(error.to_string().ends_with("nothing.csv: is empty"), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let options = Options { format: Some(Format::Fio), ..Options::default() };
    assert!(import(directory.path(), &options).unwrap_err().what.contains("directory"));
    assert!(import(&directory.path().join("none"), &options).unwrap_err().what.contains("cannot be read"));
}

/// One byte of a text changed, some cut out, or its end.
#[test]
fn files_of_any_size_are_read_or_refused_within_bounds() {
    let mut fio: serde_json::Value = serde_json::from_str(FIO).unwrap();
    let job = fio["jobs"][0].clone();
    fio["jobs"] = vec![job.clone(); 501].into();
    let refused =
        |fio: &serde_json::Value| imported("fio.json", fio.to_string().as_bytes()).unwrap_err().to_string();
    assert!(refused(&fio).contains("contains 501 jobs; the limit is 500"), "{}", refused(&fio));
    fio["jobs"] = vec![job].into();
    fio["jobs"][0]["jobname"] = "A".repeat(65_536).into();
    assert!(
        refused(&fio).contains("a name of 65\u{202f}536 bytes; the limit is 4\u{202f}096"),
        "{}",
        refused(&fio)
    );
}

#[test]
fn a_rate_that_is_none_is_named() {
    let line = PGBENCH.lines().find(|line| line.starts_with("tps = ")).unwrap();
    let refusal = |own: &str| imported("x.txt", PGBENCH.replace(line, own).as_bytes()).unwrap_err().what;
    assert!(
        refusal("tps = inf (without initial connection time)").contains("`tps = inf`"),
        "{}",
        refusal("tps = inf")
    );
    assert!(refusal("").contains("has no `tps =`"), "{}", refusal(""));
}

#[test]
fn a_document_that_is_a_link_is_not_read() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("w1-mix");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("w1-mix.csv"), COSBENCH).unwrap();
    std::fs::write(place.path().join("secret"), "root:hunter2").unwrap();
    let link =
        |name: &str| std::os::unix::fs::symlink(place.path().join("secret"), directory.join(name)).unwrap();
    link("workload-config.xml");
    link("workload.log");
    let runs = import(&directory, &Options::default()).unwrap().runs;
    assert_eq!(runs[0].provenance.document, "");
    let workers = runs[0].notes.iter().find(|note| note.topic == "cosbench-workers").unwrap();
    assert!(workers.text.contains("`workload-config.xml` is a symbolic link"), "{}", workers.text);
    std::fs::remove_file(directory.join("w1-mix.csv")).unwrap();
    link("w1-mix.csv");
    let refused = import(&directory, &Options::default()).unwrap_err().to_string();
    assert!(refused.contains("symbolic link") && !refused.contains("hunter2"), "{refused}");
}

fn mutated(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let length = text.len();
    (0..length, 0..length, any::<u8>(), 0..3u8).prop_map(move |(at, more, byte, how)| {
        let mut bytes = text.as_bytes().to_vec();
        match how {
            0 => bytes[at] = byte,
            1 => drop(bytes.drain(at..(at + more % 100).min(length))),
            _ => bytes.truncate(at),
        }
        bytes
    })
}

/// Cells of a text exchanged for ones that are out of range.
fn exchanged(text: &'static str) -> impl Strategy<Value = String> {
    let odd = prop_oneof![
        Just("18446744073709551615"),
        Just("1e308"),
        Just("-1"),
        Just("0"),
        Just("N/A"),
        Just("9999-12-31T23:59:59Z"),
        Just("99999999999999999999999999"),
        Just("0.0000001%"),
    ];
    let numbers: Vec<(usize, usize)> = text
        .match_indices(|c: char| c.is_ascii_digit())
        .map(|(at, _)| at)
        .filter(|at| *at == 0 || !text.as_bytes()[at - 1].is_ascii_digit())
        .map(|at| (at, text[at..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |end| at + end)))
        .collect();
    proptest::collection::vec((0..numbers.len(), odd), 1..6).prop_map(move |mut changes| {
        let mut changed = text.to_owned();
        changes.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
        changes.dedup_by_key(|(place, _)| *place);
        for (place, odd) in changes {
            changed.replace_range(numbers[place].0..numbers[place].1, odd);
        }
        changed
    })
}

/// What was read of anything can be judged and written.
fn survives(name: &str, bytes: &[u8]) {
    if let Ok(read) = imported(name, bytes) {
        for run in read.runs {
            judge(&run);
            serde_json::to_string(&run).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in "(?s).{0,200}",
        format in prop_oneof![Just(Format::Cosbench), Just(Format::Fio), Just(Format::Warp), Just(Format::Elbencho),
            Just(Format::Sysbench), Just(Format::Pgbench), Just(Format::Hammerdb), Just(Format::Table)]) {
        survives("x", &bytes);
        survives("x", text.as_bytes());
        survives("x", &[&[0x28, 0xb5, 0x2f, 0xfd][..], &bytes].concat());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, text).unwrap();
        let _ = import(&path, &Options { format: Some(format), ..Options::default() });
    }

    #[test]
    fn no_mutation_makes_it_panic(fio in mutated(FIO), plus in mutated(PLUS), talk in mutated(TALK),
        cosbench in mutated(COSBENCH), log in mutated(LOG), elbencho in mutated(ELBENCHO),
        databases in (mutated(SYSBENCH), mutated(PGBENCH), mutated(PGBENCH_LOG), mutated(HAMMERDB), mutated(HAMMERDB_TIMING))) {
        let (sysbench, pgbench, transactions, hammerdb, timing) = databases;
        for (bytes, (name, _)) in [fio, plus, talk, cosbench, log, elbencho, sysbench, pgbench, transactions, hammerdb, timing].iter().zip(ALL) {
            survives(name, bytes);
        }
    }

    #[test]
    fn no_number_makes_it_panic(fio in exchanged(FIO), plus in exchanged(PLUS), talk in exchanged(TALK),
        cosbench in exchanged(COSBENCH), log in exchanged(LOG), elbencho in exchanged(ELBENCHO),
        databases in (exchanged(SYSBENCH), exchanged(PGBENCH), exchanged(PGBENCH_LOG), exchanged(HAMMERDB), exchanged(HAMMERDB_TIMING))) {
        let (sysbench, pgbench, transactions, hammerdb, timing) = databases;
        for (bytes, (name, _)) in [fio, plus, talk, cosbench, log, elbencho, sysbench, pgbench, transactions, hammerdb, timing].iter().zip(ALL) {
            survives(name, bytes.as_bytes());
        }
    }
}
