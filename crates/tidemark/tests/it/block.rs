//! The built binary on real files: sweeps and their proofs, the page cache caught, damage found, refusals.

use crate::common::{Output, Place, Record};
use serde_json::Value;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// A place on the file system that the checkout lies on: temporary directories may be in memory.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Whether files under it lie on a device that the kernel counts; if not, what needs that is skipped.
fn counted(record: &Record) -> bool {
    let stages = record.value["stages"].as_array().unwrap();
    let counted = stages.iter().any(|stage| !stage["proof"]["devices"].as_array().is_none_or(Vec::is_empty));
    if !counted {
        tidemark_testing::skip(format_args!(
            "no device counts what happens under {}",
            env!("CARGO_TARGET_TMPDIR")
        ));
    }
    counted
}

fn document(path: &Path, target: &str, stages: &str) -> String {
    format!("name: block\ntarget: {{kind: file, path: \"{}\", {target}}}\nstages:\n{stages}", path.display())
}

fn run(place: &Place, text: &str, more: &[&str]) -> (Record, Output) {
    let file = place.write("document.yaml", text);
    let mut arguments = vec!["run", file.to_str().unwrap(), "--json"];
    arguments.extend(more);
    let output = place.tidemark(&arguments);
    (Record::from(&output), output)
}

fn rules(record: &Record) -> Vec<String> {
    let findings = record.value["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_sweep_is_proven_by_the_device_s_counters() {
    let (place, disk) = (Place::new(), on_disk());
    let path = disk.path().join("volume");
    let stages = "  - prepare: {}\n  - load: {pattern: [write, read], block_size: [64KiB, 1MiB], depth: 8, \
                  warm_up: 200ms, for: 1s, repeats: 2}\n  - cleanup: {}\n";
    let (record, output) = run(&place, &document(&path, "size: 256MiB", stages), &[]);
    assert_eq!(record.state(), "completed", "{}", output.stderr);
    let stages = record.value["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 1 + 8 + 1);
    let cells: Vec<&Value> =
        stages.iter().map(|stage| &stage["cell"]).filter(|cell| !cell.is_null()).collect();
    assert_eq!(cells.len(), 8);
    assert_eq!((cells[0]["repeat"].as_u64(), cells[7]["repeat"].as_u64()), (Some(1), Some(2)));
    assert!(!path.exists(), "the cleanup removes the file");
    if counted(&record) {
        for stage in stages.iter().filter(|stage| !stage["cell"].is_null()) {
            let devices = stage["proof"]["devices"].as_array().unwrap();
            let operation = &stage["works"][0]["operations"][0];
            let claimed = operation["bytes"].as_u64().unwrap();
            let field = if operation["sample"] == "read" { "read_bytes" } else { "written_bytes" };
            let counted: u64 = devices.iter().map(|device| device[field].as_u64().unwrap()).sum();
            assert!(claimed > 1 << 20 && counted >= claimed, "{}: {counted} < {claimed}", stage["name"]);
        }
    }
}

#[test]
fn reads_from_the_page_cache_are_caught() {
    let (place, disk) = (Place::new(), on_disk());
    let path = disk.path().join("volume");
    // The file is read many times over: the first time from the device, then from memory.
    let stages = "  - prepare: {}\n  - load: {pattern: read, block_size: 1MiB, depth: 4, for: 2s}\n";
    let (record, output) = run(&place, &document(&path, "size: 64MiB, direct: false", stages), &[]);
    if counted(&record) {
        assert_eq!(output.code, 4, "{}", output.stderr);
        assert_eq!(record.findings("reads-from-cache").len(), 1, "{:?}", rules(&record));
    }
}

/// Fills a file and reads it back with verification, with `damage` done in between.
fn verified(damage: impl Fn(&mut std::fs::File)) -> (Record, Output, PathBuf) {
    let (place, disk) = (Place::new(), on_disk());
    let path = disk.path().join("volume");
    let head = |stages| format!("content: {{verify: true}}\n{}", document(&path, "size: 16MiB", stages));
    let (record, output) = run(&place, &head("  - prepare: {}\n"), &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    drop(record);
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    damage(&mut file);
    file.sync_all().unwrap();
    drop(file);
    // Twice over the whole file, in order.
    let load = "  - load: {pattern: read, block_size: 4KiB, depth: 4, total_bytes: 32MiB}\n";
    let (record, output) = run(&place, &head(load), &[]);
    (record, output, path)
}

fn faults(record: &Record) -> (u64, String) {
    let work = &record.value["stages"][0]["works"][0];
    let failed = work["operations"][0]["failed"].as_u64().unwrap();
    (failed, work["examples"].to_string())
}

#[test]
fn a_flipped_byte_and_a_misplaced_block_are_found_with_their_offsets() {
    let (record, output, _) = verified(|_| {});
    // A slow build may well be the limit, and then says so: the content counts here.
    assert_eq!((record.state(), faults(&record).0), ("completed", 0), "{}", output.stderr);
    assert_eq!(record.findings("verified-in-place").len(), 1, "{:?}", rules(&record));
    assert!(record.findings("verified").is_empty(), "nobody kept which writes were the last");

    let (record, output, _) = verified(|file| {
        file.seek(SeekFrom::Start(5 * 4096 + 1000)).unwrap();
        let mut byte = [0];
        file.read_exact(&mut byte).unwrap();
        file.seek(SeekFrom::Start(5 * 4096 + 1000)).unwrap();
        file.write_all(&[byte[0] ^ 1]).unwrap();
    });
    let (failed, examples) = faults(&record);
    assert_eq!((output.code, failed), (1, 2), "{examples}");
    assert!(examples.contains("wrong_content") && examples.contains("20992"), "{examples}");

    let (record, output, path) = verified(|file| {
        let mut block = vec![0; 4096];
        file.seek(SeekFrom::Start(7 * 4096)).unwrap();
        file.read_exact(&mut block).unwrap();
        file.seek(SeekFrom::Start(9 * 4096)).unwrap();
        file.write_all(&block).unwrap();
    });
    let (failed, examples) = faults(&record);
    assert_eq!((output.code, failed), (1, 2), "{examples}");
    assert!(examples.contains("misplaced_content") && examples.contains("36864"), "{examples}");
    assert!(examples.contains(&path.display().to_string()), "{examples}");
}

#[test]
fn what_is_not_tidemark_s_is_left_alone_unless_the_command_line_says_so() {
    let (place, disk) = (Place::new(), on_disk());
    let path = disk.path().join("precious");
    std::fs::write(&path, vec![b'x'; 8 << 20]).unwrap();
    // Reading it makes it nobody else's.
    let reads = "  - load: {pattern: read, block_size: 1MiB, total_bytes: 8MiB}\n";
    assert_eq!(run(&place, &document(&path, "size: 8MiB", reads), &[]).0.state(), "completed");
    let text = document(&path, "size: 8MiB", "  - prepare: {}\n");
    let file = place.write("document.yaml", &text);
    let refused = place.tidemark(&["run", file.to_str().unwrap()]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("--allow-destroy"), "{}", refused.stderr);
    assert_eq!(std::fs::read(&path).unwrap(), vec![b'x'; 8 << 20]);
    let allowed = place.tidemark(&["run", file.to_str().unwrap(), "--allow-destroy", path.to_str().unwrap()]);
    assert_eq!(allowed.code, 0, "{}", allowed.stderr);
    // Now it is Tidemark's, and holds what a prefill would write.
    let again = run(&place, &text, &[]).0;
    assert_eq!((again.code, again.sum("write", "ok")), (0, 0), "{}", again.value["stages"][0]["reason"]);
}

/// A directory of scripts with one, `exchange.sh`, that does something when the stage that names it ends.
fn script(place: &Place, what: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = place.path("scripts");
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("exchange.sh");
    std::fs::write(&path, format!("#!/bin/sh\nif [ \"$1\" = -k ]; then {what}; fi\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

#[test]
fn a_file_that_was_put_in_the_place_of_ours_survives_the_cleanup() {
    let (place, disk) = (Place::new(), on_disk());
    let path = disk.path().join("volume");
    let scripts = script(&place, &format!("rm {0}; echo a thesis > {0}", path.display()));
    let stages = "  - prepare: {}\n  - trigger: exchange.sh\n    load: {pattern: read, block_size: 1MiB, total_bytes: 8MiB}\n  - cleanup: {}\n";
    let more = ["--trigger-dir", scripts.to_str().unwrap()];
    let (record, output) = run(&place, &document(&path, "size: 8MiB", stages), &more);
    assert_ne!(output.code, 0, "{}", output.stderr);
    let stages = record.value["stages"].to_string();
    assert!(stages.contains("is not what was examined before the run"), "{stages}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a thesis\n");
}

/// A loop device on a new file; detached when dropped.
struct Loop(String);

impl Loop {
    fn new(file: &Path) -> Option<Self> {
        std::fs::File::create(file).unwrap().set_len(8 << 20).unwrap();
        let output = std::process::Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        let output = output.ok().filter(|output| output.status.success());
        if output.is_none() {
            tidemark_testing::skip("no loop device can be made (root is needed)");
        }
        Some(Self(String::from_utf8(output?.stdout).unwrap().trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = std::process::Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
#[ignore = "needs fio; `make test` runs it"]
fn a_device_that_a_link_leads_to_later_is_not_overwritten() {
    tidemark_testing::needs!(&["fio"]);
    let (place, disk) = (Place::new(), on_disk());
    let precious = disk.path().join("precious");
    let (Some(own), Some(other)) = (Loop::new(&disk.path().join("own")), Loop::new(&precious)) else {
        return;
    };
    let link = disk.path().join("link");
    let content = vec![b'x'; 8 << 20];
    std::fs::write(&other.0, &content).unwrap();
    let scripts = script(&place, &format!("ln -sfn {} {}", other.0, link.display()));
    for engine in ["native", "fio"] {
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&own.0, &link).unwrap();
        let write = "load: {pattern: write, block_size: 4KiB, total_operations: 100}";
        let target =
            format!("target: {{kind: device, path: {}, size: 8MiB, engine: {engine}}}", link.display());
        let text = format!(
            "name: block\n{target}\nstages:\n  - name: first\n    trigger: exchange.sh\n    {write}\n  - name: second\n    {write}\n"
        );
        let (record, output) = run(&place, &text, &["--trigger-dir", scripts.to_str().unwrap()]);
        assert_ne!(output.code, 0, "{}", output.stderr);
        let (first, second) = (record.stage("first"), record.stage("second"));
        assert_eq!((&first["state"], &second["state"]), (&"completed".into(), &"failed".into()), "{second}");
        assert!(second["reason"].as_str().unwrap().contains("is not what was examined"), "{second}");
        assert!(std::fs::read(&other.0).unwrap() == content, "{engine} wrote to another device");
    }
}

#[test]
fn small_files_and_odd_blocks_are_clear_errors() {
    let (place, disk) = (Place::new(), on_disk());
    let path = disk.path().join("volume");
    let small = document(&path, "size: 1MiB", "  - prepare: {}\n");
    assert_eq!(run(&place, &small, &[]).1.code, 0);
    let larger = document(&path, "size: 2MiB", "  - load: {pattern: randread, block_size: 4KiB, for: 1s}\n");
    let file = place.write("document.yaml", &larger);
    let output = place.tidemark(&["run", file.to_str().unwrap()]);
    assert_ne!(output.code, 0);
    let said = output.stdout + &output.stderr;
    assert!(said.contains("prepare"), "{said}");
}

#[test]
#[ignore = "needs fio; `make test` runs it"]
fn a_file_that_fio_loads_is_cleaned_up() {
    tidemark_testing::needs!(&["fio"]);
    let (place, disk) = (Place::new(), on_disk());
    let path = disk.path().join("volume");
    let stages =
        "  - prepare: {}\n  - load: {pattern: randread, block_size: 4KiB, for: 1s}\n  - cleanup: {}\n";
    let (record, output) = run(&place, &document(&path, "size: 64MiB, engine: fio", stages), &[]);
    assert_eq!(record.state(), "completed", "{}", output.stderr);
    assert!(!path.exists());
}

#[test]
#[ignore = "needs fio; `make test` runs it"]
fn a_fio_job_file_runs_unchanged_and_native_agrees_with_fio() {
    tidemark_testing::needs!(&["fio"]);
    let (place, disk) = (Place::new(), on_disk());
    let path = disk.path().join("volume");
    let job = format!(
        "; a job of the user's own\n[global]\nioengine=io_uring\ndirect=1\nsize=64m\nfilename={}\nruntime=2\n\
         time_based\nrandrepeat=0\n\n[fill]\nrw=write\nbs=1m\niodepth=8\n\n[mixed]\nstonewall\nrw=randrw\n\
         rwmixread=70\nbs=4k\niodepth=16\n",
        path.display()
    );
    let record = place.run(&place.write("job.fio", &job));
    assert_eq!(record.state(), "completed", "{}", record.stderr);
    let stages = record.value["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 2);
    let (reads, writes) = (record.operation("mixed", "read"), record.operation("mixed", "write"));
    let share =
        reads["ok"].as_f64().unwrap() / (reads["ok"].as_f64().unwrap() + writes["ok"].as_f64().unwrap());
    assert!((0.65..0.75).contains(&share), "{share}");

    let stages =
        "  - prepare: {}\n  - load: {pattern: randread, block_size: 4KiB, depth: 8, warm_up: 1s, for: 2s}\n";
    let volume = disk.path().join("other");
    let (record, output) = run(&place, &document(&volume, "size: 128MiB", stages), &["--cross-check=2"]);
    assert_eq!(record.state(), "completed", "{}", output.stderr);
    let engines: Vec<_> = record.value["stages"].as_array().unwrap()[1..]
        .iter()
        .map(|stage| stage["cell"]["engine"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(engines, ["native", "fio", "fio", "native"]);
    // Whether they agree within 3 % is for a quiet machine to say; here it must be said at all.
    assert_eq!(record.findings("cross-check").len(), 1, "{:?}", rules(&record));
}

#[test]
#[ignore = "needs fio; `make test` runs it"]
fn fio_jobs_that_are_reported_as_one_are_judged_by_all_that_they_keep_in_flight() {
    tidemark_testing::needs!(&["fio"]);
    let (place, disk) = (Place::new(), on_disk());
    let job = format!(
        "[global]\nioengine=io_uring\ndirect=1\nsize=16m\ndirectory={}\nruntime=2\ntime_based\nrandrepeat=0\n\
         group_reporting\n\n[grouped]\nrw=randread\nbs=4k\nnumjobs=4\niodepth=${{DEPTH}}\n",
        disk.path().display()
    );
    let file = place.write("job.fio", &job);
    let mut command = place.command(&["run", file.to_str().unwrap(), "--json"]);
    let output = command.env("DEPTH", "32").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    let record = Record::from(&Output { code, stdout: text(output.stdout), stderr: text(output.stderr) });
    assert_eq!(record.state(), "completed", "{}", record.stderr);
    for rule in ["idle-workers", "littles-law"] {
        let found = record.findings(rule);
        assert!(found.iter().all(|finding| finding["severity"] == "good"), "{rule}: {found:?}");
    }
    let work = &record.stage("grouped")["works"][0];
    assert_eq!((work["workers"].as_u64(), work["depth"].as_u64()), (Some(4), Some(32)));
}

#[test]
#[ignore = "needs fio; `make test` runs it"]
fn what_fio_does_not_understand_is_found_by_check_and_what_it_verifies_is_counted() {
    tidemark_testing::needs!(&["fio"]);
    let (place, disk) = (Place::new(), on_disk());
    let wrong = place.write("wrong.fio", "[a]\nrw=read\nsize=1m\nbss=4k\n");
    for command in ["check", "run"] {
        let output = place.tidemark(&[command, wrong.to_str().unwrap()]);
        assert_ne!(output.code, 0, "{command}");
        assert!(
            output.stderr.contains("bss=4k") && output.stderr.contains("Did you mean bs"),
            "{}",
            output.stderr
        );
    }
    let text = |rw: &str| {
        let directory = disk.path().display();
        format!(
            "[w]\nioengine=io_uring\ndirect=1\nsize=16m\ndirectory={directory}\nrw={rw}\nbs=64k\nverify=crc32c\n"
        )
    };
    let write = place.write("write.fio", &text("write"));
    let checked = place.tidemark(&["check", write.to_str().unwrap()]);
    assert!(
        checked.stdout.contains("until fio has gone through") && !checked.stdout.contains(" 0 ns"),
        "{}",
        checked.stdout
    );
    let record = place.run(&write);
    let read_back = record.operation("w", "read");
    assert_eq!((read_back["ok"].as_u64(), read_back["bytes"].as_u64()), (Some(256), Some(16 << 20)));
    assert!(record.findings("littles-law").iter().all(|finding| finding["severity"] != "critical"));
    // Its first mismatch is named by its place.
    let mut file = std::fs::OpenOptions::new().write(true).open(disk.path().join("w.0.0")).unwrap();
    file.seek(SeekFrom::Start(1 << 20)).unwrap();
    file.write_all(b"garbage").unwrap();
    let record = place.run(&place.write("read.fio", &text("read")));
    let examples = record.value["stages"][0]["works"][0]["examples"].to_string();
    assert!(examples.contains("w.0.0 offset 1048576"), "{examples}");
}
