//! Which write each block must hold, kept over the end of the process: killed in the middle of a load, and then found right;
//! older content put back by hand, and then found out.

use crate::common::{Output, Place, Record};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Stdio;

const SIZE: u64 = 16 << 20;
const BLOCKS: u64 = SIZE / 4096;

fn document(directory: &Path, stages: &str) -> String {
    let (path, journal) = (directory.join("volume"), directory.join("journal"));
    format!(
        "name: kept\ncontent: {{verify: true}}\ntarget: {{kind: file, path: \"{}\", size: 16MiB, direct: false, \
         journal: \"{}\"}}\nstages:\n{stages}",
        path.display(),
        journal.display()
    )
}

const READ_ALL: &str = "  - load: {name: back, pattern: read, block_size: 4KiB, total_operations: 4096}\n";

fn run(place: &Place, text: &str) -> (Record, Output) {
    let file = place.write("document.yaml", text);
    let output = place.tidemark(&["run", file.to_str().unwrap(), "--json"]);
    (Record::from(&output), output)
}

/// Verified reads, those of them without a known write, lost ones, all failures, and the first failure in words.
fn read_back(place: &Place, directory: &Path) -> (u64, u64, u64, u64, String) {
    let (record, _) = run(place, &document(directory, READ_ALL));
    let operation = &record.value["stages"][0]["works"][0]["operations"][0];
    let number = |key: &str| operation[key].as_u64().unwrap();
    let lost = operation["faults"]["lost_content"].as_u64().unwrap_or(0);
    (number("verified"), number("placed"), lost, number("failed"), record.value["stages"][0].to_string())
}

/// Floors in the journal, as they are on the file system now.
fn floors(directory: &Path) -> Vec<u64> {
    let Ok(mut files) = std::fs::read_dir(directory.join("journal")) else { return Vec::new() };
    let Some(Ok(file)) = files.next() else { return Vec::new() };
    let bytes = std::fs::read(file.path()).unwrap_or_default();
    let words = bytes.get(4096..).unwrap_or_default().as_chunks::<8>().0.iter();
    words.map(|word| u64::from_le_bytes(*word) >> 14).collect()
}

#[test]
fn acknowledged_writes_outlive_a_kill_and_older_content_put_back_is_named() {
    let place = Place::new();
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = disk.path();
    let (_, output) = run(&place, &document(directory, "  - prepare: {}\n"));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(read_back(&place, directory).0, BLOCKS, "by another process than the one that wrote");
    let older = std::fs::read(directory.join("volume")).unwrap();
    let before = floors(directory);

    let load = "  - load: {pattern: randwrite, block_size: 4KiB, depth: 16, for: 600s}\n";
    let text = document(directory, load);
    let file = place.write("writes.yaml", &text);
    let mut writer = place.command(&["run", file.to_str().unwrap()]);
    let mut writer = writer.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let rewritten = || floors(directory).iter().zip(&before).filter(|(now, before)| now > before).count();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while rewritten() < 1000 && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert!(rewritten() >= 1000, "the load writes");

    let (verified, placed, lost, failed, words) = read_back(&place, directory);
    assert_eq!((verified, placed, lost, failed), (BLOCKS, 0, 0, 0), "{words}");

    // Five blocks that were certainly written since get the content of before.
    let now = floors(directory);
    let changed: Vec<u64> =
        (0..BLOCKS).filter(|block| now[*block as usize] > before[*block as usize]).take(5).collect();
    let volume = std::fs::OpenOptions::new().write(true).open(directory.join("volume")).unwrap();
    for block in &changed {
        let at = block * 4096;
        volume.write_all_at(&older[at as usize..][..4096], at).unwrap();
    }
    drop(volume);
    let (verified, _, lost, failed, words) = read_back(&place, directory);
    assert_eq!((verified, lost, failed), (BLOCKS - 5, 5, 5), "{words}");
    assert!(
        words.contains(&format!("volume at byte {}: lost: a write begun ", changed[0] * 4096)),
        "{words}"
    );

    let (_, output) = run(&place, &document(directory, "  - cleanup: {}\n"));
    assert_eq!(
        (output.code, floors(directory).len()),
        (0, 0),
        "the journal goes with its file: {}",
        output.stderr
    );
}

#[test]
fn a_journal_that_cannot_be_used_stops_the_run_before_it_starts() {
    let place = Place::new();
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = disk.path();
    let (_, output) = run(&place, &document(directory, "  - prepare: {}\n"));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let journal = std::fs::read_dir(directory.join("journal")).unwrap().next().unwrap().unwrap().path();
    let before = std::fs::read(directory.join("volume")).unwrap();
    let writes = "  - load: {pattern: randwrite, block_size: 4KiB, total_operations: 100}\n";
    let file = place.write("writes.yaml", &document(directory, writes));
    let arguments = ["run", file.to_str().unwrap(), "--json"];

    std::fs::write(&journal, "not a journal").unwrap();
    let output = place.tidemark(&arguments);
    assert_eq!(output.code, 3, "not started: {}", output.stderr);
    assert!(output.stderr.contains("it is not a journal of this volume"), "{}", output.stderr);
    assert!(std::fs::read(directory.join("volume")).unwrap() == before, "nothing was written");

    std::fs::remove_file(&journal).unwrap();
    let output = place.tidemark(&arguments);
    assert_eq!(output.code, 0, "without the file: {}", output.stderr);
    assert!(std::fs::read(directory.join("volume")).unwrap() != before);
}
