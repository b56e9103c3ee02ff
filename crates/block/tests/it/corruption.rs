//! Content changed behind the engine's back is found, with its place and its kind.

use crate::support::*;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tidemark_block::job::{Action, Job};
use tidemark_block::sessions::DataSet;
use tidemark_measure::fault::Fault;
use tidemark_measure::verification::{Checked, Unchecked};

struct Victim {
    _directory: TempDir,
    paths: [PathBuf; 2],
    job: Job,
    data: Arc<DataSet>,
}

/// Two volumes, filled.
fn victim() -> Victim {
    let directory = directory();
    let paths = [directory.path().join("one"), directory.path().join("two")];
    let volumes = paths.each_ref().map(|path| file(path, SIZE));
    let job = job(&volumes, 4096, &[Action::Read, Action::Write, Action::Trim]);
    let data = data();
    fill(&job, &data);
    Victim { _directory: directory, paths, job, data }
}

impl Victim {
    /// What reading the first volume in blocks of this size finds.
    fn found(&self, block: u64) -> (Fault, String) {
        let job = Job { unit: block, ..self.job.clone() };
        hand(&job, &self.data, 1, block).verify(SIZE, block).expect("nothing was found")
    }

    fn assert_found(&self, fault: Fault, words: &[&str]) {
        for block in [4096, 65_536] {
            let (found, text) = self.found(block);
            assert_eq!(found, fault, "{text}");
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
            assert!(text.contains("one"), "{text}");
        }
    }
}

#[test]
fn a_flipped_bit() {
    let victim = victim();
    meddle(&victim.paths[0], 1 << 20, |block| block[700] ^= 0x10);
    victim.assert_found(Fault::WrongContent, &["at byte 1049088", "damaged"]);
}

#[test]
fn two_blocks_swapped() {
    let victim = victim();
    let (first, second) = (block(&victim.paths[0], 40_960), block(&victim.paths[0], 81_920));
    meddle(&victim.paths[0], 40_960, |block| *block = second);
    meddle(&victim.paths[0], 81_920, |block| *block = first);
    victim.assert_found(Fault::MisplacedContent, &["at byte 40960", "belongs at byte 81920 of", "one"]);
}

#[test]
fn a_block_of_another_volume() {
    let victim = victim();
    let other = block(&victim.paths[1], 40_960);
    meddle(&victim.paths[0], 40_960, |block| *block = other);
    victim.assert_found(Fault::MisplacedContent, &["at byte 40960", "belongs at byte 40960 of", "two"]);
}

#[test]
fn an_old_block_restored_is_a_lost_write() {
    let victim = victim();
    let old = block(&victim.paths[0], 8 * 4096);
    assert_eq!(hand(&victim.job, &victim.data, 1, 4096).act(1, 8, 4096).fault, None);
    meddle(&victim.paths[0], 8 * 4096, |block| *block = old);
    victim.assert_found(Fault::LostContent, &["at byte 32768", "acknowledged", "into the run"]);
}

#[test]
fn a_part_of_an_old_block_is_a_torn_write() {
    let victim = victim();
    let old = block(&victim.paths[0], 8 * 4096);
    assert_eq!(hand(&victim.job, &victim.data, 1, 4096).act(1, 8, 4096).fault, None);
    meddle(&victim.paths[0], 8 * 4096, |block| block[2048..].copy_from_slice(&old[2048..]));
    victim.assert_found(Fault::TornContent, &["at byte 34816", "torn"]);
}

#[test]
fn a_block_of_zeroes_unless_it_was_trimmed() {
    let victim = victim();
    assert_eq!(hand(&victim.job, &victim.data, 1, 4096).act(2, 5, 4096).fault, None);
    assert_eq!(block(&victim.paths[0], 5 * 4096), [0; 4096], "the trim gave it back");
    assert_eq!(hand(&victim.job, &victim.data, 1, 4096).verify(SIZE, 4096), None);
    meddle(&victim.paths[0], 7 * 4096, |block| block.fill(0));
    victim.assert_found(Fault::WrongContent, &["at byte 28672", "never written"]);
}

#[test]
fn small_writes_are_followed_one_by_one() {
    let directory = directory();
    let path = directory.path().join("volume");
    let job = Job { direct: false, ..job(&[file(&path, SIZE)], 512, &[Action::Read, Action::Write]) };
    let data = data();
    fill(&Job { unit: 512, ..job.clone() }, &data);
    let mut hand = hand(&job, &data, 1, 512);
    let old = block(&path, 0);
    assert_eq!(hand.act(1, 3, 512).fault, None);
    assert_eq!(hand.verify(1 << 20, 512), None);
    meddle(&path, 0, |block| *block = old);
    let (fault, text) = hand.verify(1 << 20, 512).unwrap();
    assert_eq!(fault, Fault::LostContent);
    assert!(text.contains("at byte 1536"), "{text}");
}

/// A volume that Tidemark has not filled: what lies in it is nobody's fault. What this run wrote there is its own.
#[test]
fn content_that_tidemark_did_not_write_is_of_unknown_origin() {
    let directory = directory();
    let path = directory.path().join("theirs");
    std::fs::write(&path, vec![b'x'; SIZE as usize]).unwrap();
    let job = job(&[file(&path, SIZE)], 4096, &[Action::Read, Action::Write]);
    let mut hand = hand(&job, &data(), 1, 4096);
    let unknown = Checked::Not(Unchecked::UnknownOrigin);
    let read = |hand: &mut Hand, item| {
        let outcome = hand.act(0, item, 4096);
        (outcome.fault, outcome.checked)
    };
    assert_eq!(read(&mut hand, 5), (None, unknown));
    meddle(&path, 6 * 4096, |block| block.fill(0));
    assert_eq!(read(&mut hand, 6), (None, unknown), "holes say nothing either");
    assert_eq!(hand.act(1, 5, 4096).fault, None);
    assert_eq!(read(&mut hand, 5), (None, Checked::Verified));
    meddle(&path, 5 * 4096, |block| block.fill(b'x'));
    assert_eq!(read(&mut hand, 5).0, Some(Fault::WrongContent), "this run wrote it");
    // A block that an earlier run wrote, of which half is left.
    hand.act(1, 7, 4096);
    meddle(&path, 7 * 4096, |block| block[..2048].fill(b'x'));
    let mut later = self::hand(&job, &data(), 1, 4096);
    assert_eq!(read(&mut later, 7).0, Some(Fault::WrongContent));
}
