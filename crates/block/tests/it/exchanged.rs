//! What others do to volumes while a run is going on: exchange them, make file systems on them, write to them.

use crate::prepare::{Other, on_file, run, run_allowing};
use crate::support::*;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// A stage of a few writes.
const WRITES: &str = "- load: {pattern: write, block_size: 4KiB, total_operations: 8}";

fn other() -> Arc<Other> {
    Arc::new(Other::default())
}

fn on_device(path: &Path, target: &str, stages: &str) -> String {
    let target = format!("{{kind: device, path: {}, size: 4MiB{target}}}", path.display());
    format!("name: t\ntarget: {target}\nstages:\n{stages}\n")
}

fn moved(link: &Path, to: &Path) {
    std::fs::remove_file(link).unwrap();
    symlink(to, link).unwrap();
}

/// The first bytes of a device or file.
fn head(path: &Path) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    let file = std::fs::File::open(path).unwrap();
    let length = file.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(length);
    bytes
}

#[test]
fn a_link_that_leads_to_another_device_by_now_is_not_followed() {
    let directory = directory();
    let Some(examined) = Loop::new(directory.path(), 8 * MIB, 512) else { return };
    let precious = directory.path().join("precious");
    std::fs::File::create(&precious).unwrap().set_len(8 * MIB).unwrap();
    let Some(precious) = Loop::on(&precious, 512) else { return };
    command("mkfs.ext4", &["-q", "-F", precious.name()]).unwrap();
    let before = head(&precious.path);
    let link = directory.path().join("link");
    symlink(&examined.path, &link).unwrap();
    for (target, allow) in [("", vec![]), (", engine: fio", vec![]), ("", vec![link.clone()])] {
        moved(&link, &examined.path);
        let text = on_device(&link, target, &format!("{WRITES}\n{WRITES}"));
        let mut run = run_allowing(&text, &other(), &allow).unwrap();
        run.stage(0);
        moved(&link, &precious.path);
        let refused = run.refusal(1);
        assert!(refused.contains(&format!("{} is not what was examined", link.display())), "{refused}");
        assert!(head(&precious.path) == before, "it was written to");
        moved(&link, &examined.path);
        run.stage(1);
    }
}

#[test]
fn nobody_mounts_a_device_or_makes_a_file_system_on_it_during_a_run() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 8 * MIB, 512) else { return };
    let exclusive = || {
        let flags = rustix::fs::OFlags::EXCL.bits().cast_signed();
        std::fs::File::options().read(true).custom_flags(flags).open(&disk.path)
    };
    let reads = "- load: {pattern: read, block_size: 4KiB, total_operations: 8}";
    let mut run = run(&on_device(&disk.path, "", &format!("{reads}\n{WRITES}")), &other()).unwrap();
    assert!(exclusive().is_err(), "from its beginning");
    run.stage(0);
    assert!(command("mkfs.ext4", &["-q", "-F", disk.name()]).is_none());
    run.stage(1);
    assert!(exclusive().is_err());
    drop(run);
    assert!(exclusive().is_ok());
}

#[test]
fn a_device_that_came_into_use_during_a_run_is_not_written_to() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 24 * MIB, 512) else { return };
    let text = on_device(&disk.path, "", &[WRITES; 3].join("\n"));
    let mut run = run(&text, &other()).unwrap();
    run.stage(0);
    {
        let Some(above) = Loop::on(&disk.path, 512) else { return };
        let refused = run.refusal(1);
        assert!(refused.contains(&format!("it is behind {}", above.name())), "{refused}");
    }
    run.stage(1);
    // A program that does not ask whether it is the only one.
    let raw = std::fs::File::options().write(true).open(&disk.path).unwrap();
    raw.write_all_at(&[0x53, 0xef], 1080).unwrap();
    let refused = run.refusal(2);
    assert!(refused.contains("ext4") && refused.contains("--allow-destroy"), "{refused}");
    drop(raw);
    let fresh = on_device(&disk.path, "", WRITES);
    let mut allowed = run_allowing(&fresh, &other(), std::slice::from_ref(&disk.path))
        .unwrap_or_else(|error| panic!("{error}"));
    allowed.stage(0);
}

#[test]
fn a_file_that_somebody_made_meanwhile_is_examined() {
    let directory = directory();
    let path = directory.path().join("volume");
    for target in ["", ", engine: fio"] {
        let text = on_file(&path, "- prepare: {}").replace(", direct", &format!("{target}, direct"));
        let mut run = run(&text, &other()).unwrap();
        std::fs::write(&path, "a chapter of a thesis").unwrap();
        let refused = run.refusal(0);
        assert!(refused.contains("did not exist") && refused.contains("21 bytes"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), b"a chapter of a thesis");
        // An empty one loses nothing.
        std::fs::write(&path, []).unwrap();
        assert_eq!(run.stage(0).0, [None]);
        std::fs::remove_file(&path).unwrap();
    }
    // Leave was given for what was there.
    let allow = [path.clone()];
    let mut run = run_allowing(&on_file(&path, "- prepare: {}"), &other(), &allow).unwrap();
    std::fs::write(&path, "a chapter of a thesis").unwrap();
    run.refusal(0);
    assert_eq!(std::fs::read(&path).unwrap(), b"a chapter of a thesis");
}

#[test]
fn a_file_in_the_place_of_ours_is_neither_overwritten_nor_removed() {
    let directory = directory();
    let path = directory.path().join("volume");
    for last in ["- cleanup: {}", WRITES] {
        let _ = std::fs::remove_file(&path);
        let mut run = run(&on_file(&path, &format!("- prepare: {{}}\n{last}")), &other()).unwrap();
        run.stage(0);
        std::fs::hard_link(&path, directory.path().join("ours")).unwrap();
        for keeps_ours in [true, false] {
            if !keeps_ours {
                std::fs::remove_file(directory.path().join("ours")).unwrap();
            }
            // Without the last name of ours, some file systems give its number to the next file.
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, vec![b'x'; 4 << 20]).unwrap();
            let refused = run.refusal(1);
            assert!(refused.contains("is not what was examined"), "{refused}");
            assert_eq!(std::fs::read(&path).unwrap(), vec![b'x'; 4 << 20]);
            if keeps_ours {
                std::fs::rename(directory.path().join("ours"), &path).unwrap();
                std::fs::hard_link(&path, directory.path().join("ours")).unwrap();
            }
        }
    }
    for last in ["- cleanup: {}", WRITES] {
        let _ = std::fs::remove_file(&path);
        let mut run = run(&on_file(&path, &format!("- prepare: {{}}\n{last}")), &other()).unwrap();
        run.stage(0);
        run.stage(1);
        assert_eq!(path.exists(), last == WRITES);
    }
}

#[test]
fn what_is_exchanged_between_opening_and_load_is_not_removed() {
    let directory = directory();
    let path = directory.path().join("volume");
    let mut run = run(&on_file(&path, "- prepare: {}\n- cleanup: {}"), &other()).unwrap();
    run.stage(0);
    run.stage_with(1, || {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "a chapter of a thesis").unwrap();
    });
    assert_eq!(std::fs::read(&path).unwrap(), b"a chapter of a thesis");
}

#[test]
fn a_file_of_ours_that_somebody_wrote_to_between_two_stages_is_left_alone() {
    let directory = directory();
    let path = directory.path().join("volume");
    let mut run =
        run(&on_file(&path, &format!("- prepare: {{}}\n{WRITES}\n- cleanup: {{}}")), &other()).unwrap();
    run.stage(0);
    run.stage(1);
    meddle(&path, 1 << 20, |block| block[..5].copy_from_slice(b"diary"));
    if rustix::fs::getxattr(&path, "user.tidemark", &mut [0_u8; 96][..]).is_err() {
        return skip("there are no extended attributes here");
    }
    let refused = run.refusal(2);
    assert!(refused.contains("another program wrote to it") && refused.contains("removed"), "{refused}");
    assert_eq!(&block(&path, 1 << 20)[..5], b"diary");
}

#[test]
fn a_write_between_two_stages_whose_time_was_put_back_is_found_in_the_content() {
    let directory = directory();
    let path = directory.path().join("volume");
    let mut run =
        run(&on_file(&path, &format!("- prepare: {{}}\n{WRITES}\n- cleanup: {{}}")), &other()).unwrap();
    run.stage(0);
    run.stage(1);
    if rustix::fs::getxattr(&path, "user.tidemark", &mut [0_u8; 96][..]).is_err() {
        return skip("there are no extended attributes here");
    }
    // What is done within a few milliseconds of the mark may be the marking itself.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let written = std::fs::metadata(&path).unwrap().modified().unwrap();
    (0..4 << 20).step_by(4096).for_each(|at| meddle(&path, at, |block| block.fill(b'x')));
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
    let refused = run.refusal(2);
    assert!(refused.contains("removed") && refused.contains("volume"), "{refused}");
    assert_eq!(block(&path, 1 << 20)[..5], *b"xxxxx");
}

#[test]
fn a_run_marks_no_file_but_its_own() {
    let directory = directory();
    let (path, link) = (directory.path().join("volume"), directory.path().join("link"));
    let thesis: PathBuf = directory.path().join("thesis");
    std::fs::write(&thesis, vec![b'x'; 4 << 20]).unwrap();
    std::fs::write(&path, []).unwrap();
    symlink(&path, &link).unwrap();
    let mut first = run(&on_file(&link, "- prepare: {}"), &other()).unwrap();
    first.stage_with(0, || moved(&link, &thesis));
    assert!(tidemark_block::is_ours(&path) && !tidemark_block::is_ours(&thesis));
}

#[test]
fn a_file_that_was_removed_is_made_again_unless_there_is_another_by_then() {
    let directory = directory();
    let path = directory.path().join("volume");
    let stages = "- prepare: {}\n- cleanup: {}\n- prepare: {}";
    let mut run = run(&on_file(&path, stages), &other()).unwrap();
    [0, 1].into_iter().for_each(|index| drop(run.stage(index)));
    std::fs::write(&path, "a chapter of a thesis").unwrap();
    let refused = run.refusal(2);
    assert!(refused.contains("a file that this run removed"), "{refused}");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(run.stage(2).0, [None]);
    assert!(tidemark_block::is_ours(&path));
}
