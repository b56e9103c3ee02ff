//! Load on real files: fill, verify, concurrent writes, direct and buffered, sync, trim, removal.

use crate::support::*;
use tidemark_block::guard::{self, Intent};
use tidemark_block::job::{Action, Content, Job};
use tidemark_block::sessions::{DataSet, Use, sessions};
use tidemark_block::{filled, is_ours, mark};
use tidemark_load::engine::Begin;
use tidemark_load::source::SourcePlan;
use tidemark_measure::fault::Fault;
use tidemark_measure::pick::{Bucket, Pick};

const ALL: [Action; 4] = [Action::Read, Action::Write, Action::Trim, Action::Fdatasync];

#[test]
fn what_was_filled_is_verified_by_blocks_of_any_size() {
    let directory = directory();
    let paths = [directory.path().join("a"), directory.path().join("b")];
    // The last operation of the fill is cut at the end.
    let size = SIZE + 4096;
    let volumes = paths.each_ref().map(|path| file(path, size));
    for direct in [true, false] {
        let data = data();
        let job = Job { direct, ..job(&volumes, 512, &ALL) };
        fill(&job, &data);
        for block in [512, 4096, 65_536, 1 << 20] {
            let reads = Job { unit: block, ..job.clone() };
            let result = run(&reads, &data, Use::Load, &work(4, 8, scan(2, size, block), None), 2);
            assert_eq!(faults(&result), [], "{block}: {:?}", result.examples);
            assert_eq!((ok(&result, 0), result.tallies[0].bytes), (2 * size.div_ceil(block), 2 * size));
        }
    }
}

#[test]
fn random_writes_at_depth_32_verify_while_they_go_on_and_afterwards() {
    let directory = directory();
    for (duplicate, compressible, direct) in [(0.0, 0.0, true), (0.3, 0.5, true), (0.0, 1.0, false)] {
        let volumes = [file(&directory.path().join("volume"), SIZE)];
        let data = data();
        let content = Content { compressible, duplicate, verify: true };
        let job = Job { content, direct, batch: Some(4), ..job(&volumes, 4096, &ALL) };
        fill(&job, &data);
        // Few blocks, so that writes, reads and trims meet.
        let sizes = Pick::Weighted(vec![
            Bucket { low: 4096, high: 4096, weight: 3 },
            Bucket { low: 16_384, high: 16_384, weight: 1 },
        ]);
        let way = |action, weight| choice(action, weight, 1, 1 << 20, (4096, sizes.clone()));
        let choices = vec![way(0, 5.0), way(1, 5.0), way(2, 0.2), way(3, 0.1)];
        let mix = SourcePlan::Mix { choices, pool: None, deck: false };
        let result = run(&job, &data, Use::Load, &work(4, 32, mix, Some(20_000)), 2);
        assert_eq!(faults(&result), [], "{:?}", result.examples);
        assert_eq!((0..4).map(|action| ok(&result, action)).sum::<u64>(), 20_000);
        // Without the trims, all of it must be there.
        let way = |action| choice(action, 1.0, 1, SIZE, (4096, Pick::Constant(4096)));
        let mix = SourcePlan::Mix { choices: vec![way(0), way(1)], pool: None, deck: false };
        fill(&job, &data);
        let result = run(&job, &data, Use::Load, &work(2, 32, mix, Some(20_000)), 2);
        assert_eq!(faults(&result), [], "{:?}", result.examples);
        let result = run(&job, &data, Use::Load, &work(1, 32, scan(1, SIZE, 4096), None), 1);
        assert_eq!(faults(&result), [], "{:?}", result.examples);
        assert!(filled(&job, &volumes[0]), "random writes leave it filled");
    }
}

#[test]
fn content_of_an_earlier_run_is_verified_whatever_its_seed_and_dials() {
    let directory = directory();
    let volumes = [file(&directory.path().join("volume"), SIZE)];
    let earlier = std::sync::Arc::new(DataSet::new(77, false));
    let content = Content { compressible: 0.4, duplicate: 0.2, verify: false };
    fill(&Job { content, ..job(&volumes, 4096, &ALL) }, &earlier);
    let job = job(&volumes, 4096, &ALL);
    assert_eq!(hand(&job, &data(), 1, 4096).verify(SIZE, 4096), None);
}

#[test]
fn a_volume_is_filled_only_if_all_of_it_is_and_with_the_same_dials() {
    let directory = directory();
    let path = directory.path().join("volume");
    let volume = file(&path, SIZE);
    let job = job(std::slice::from_ref(&volume), 4096, &ALL);
    assert!(!filled(&job, &volume) && !is_ours(&path), "not there");
    fill(&job, &data());
    assert!(filled(&job, &volume) && is_ours(&path));
    assert!(!filled(&job, &file(&path, SIZE + 4096)), "too small");
    let other = Job { content: Content { compressible: 0.5, ..job.content }, ..job.clone() };
    assert!(!filled(&other, &volume), "other dials");
    let other = Job { content: Content { duplicate: 0.5, ..job.content }, ..job.clone() };
    assert!(!filled(&other, &volume), "other dials");
    let moved = directory.path().join("moved");
    std::fs::copy(&path, &moved).unwrap();
    assert!(!filled(&job, &file(&moved, SIZE)), "the content of another volume");
    meddle(&path, SIZE - 4096, |block| block[3000] ^= 1);
    assert!(!filled(&job, &volume), "damaged");
    // A hole, as an interrupted prefill leaves it, anywhere.
    fill(&job, &data());
    assert!(filled(&job, &volume));
    let mut hand = hand(&job, &data(), 1, 4096);
    assert_eq!(hand.act(2, 1234, 4096).fault, None);
    assert!(!filled(&job, &volume), "a hole");
}

#[test]
fn volumes_that_cannot_be_used_are_refused_with_the_remedy() {
    let directory = directory();
    let path = directory.path().join("volume");
    let data = data();
    let says = |job: &Job, purpose, words: &[&str]| {
        let text = sessions(job, &data, purpose).err().unwrap().to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let good = job(&[file(&path, SIZE)], 4096, &ALL);
    says(&good, Use::Load, &["does not exist", "prepare"]);
    std::fs::write(&path, vec![0; 8192]).unwrap();
    says(&good, Use::Load, &["too small", "8192", "16777216", "prepare"]);
    says(&Job { unit: 100, ..good.clone() }, Use::Load, &["100", "512"]);
    says(&Job { polled: true, direct: false, ..good.clone() }, Use::Fill, &["direct"]);
    says(&Job { polled: true, ..good.clone() }, Use::Fill, &["trim", "polled: false"]);
    let reads = Job { polled: true, actions: vec![Action::Read], ..good.clone() };
    if !tidemark_block::device::polls(directory.path()) {
        says(&reads, Use::Fill, &["io_poll"]);
    }
    let removes = job(&[device("/dev/null".as_ref(), 4096)], 4096, &[Action::Remove]);
    says(&removes, Use::Load, &["cannot be removed"]);
    let rbd = tidemark_block::job::Rbd { conf: None, user: "a".into(), pool: "p".into(), image: "i".into() };
    let rbd = tidemark_block::job::Volume { place: tidemark_block::job::Place::Rbd(rbd), size: 4096 };
    says(&job(&[rbd], 4096, &ALL), Use::Load, &["p/i", "engine: fio"]);
    says(&job(&[file(directory.path(), SIZE)], 4096, &ALL), Use::Fill, &["directory"]);
}

#[test]
fn a_file_that_shrinks_is_a_short_transfer_and_offsets_beyond_the_end_are_no_operations() {
    let directory = directory();
    let path = directory.path().join("volume");
    let data = data();
    let job = job(&[file(&path, SIZE)], 4096, &ALL);
    fill(&job, &data);
    let mut hand = hand(&job, &data, 4, 65_536);
    std::fs::File::options().write(true).open(&path).unwrap().set_len(SIZE - 32_768).unwrap();
    let outcome = hand.act(0, SIZE / 4096 - 16, 65_536);
    assert_eq!(outcome.fault, Some(Fault::ShortTransfer));
    let text = hand.session.examples().remove(0).text;
    assert!(text.contains("32768 bytes were moved") && text.contains("volume"), "{text}");
    assert_eq!(hand.act(0, SIZE / 4096, 4096).fault, Some(Fault::ShortTransfer));
    assert!(
        matches!(hand.begin(0, 9, 1, 0, 4096), Begin::Done(_, outcome) if outcome.fault == Some(Fault::Local))
    );
    assert!(
        matches!(hand.begin(0, 0, 2, 0, 4096), Begin::Done(_, outcome) if outcome.fault == Some(Fault::Local))
    );
}

#[test]
fn files_are_removed_and_what_is_gone_is_done() {
    let directory = directory();
    let path = directory.path().join("volume");
    let job = job(&[file(&path, SIZE)], 4096, &[Action::Remove]);
    std::fs::write(&path, "x").unwrap();
    let mut hand = hand(&job, &data(), 2, 0);
    assert_eq!(hand.act(0, 0, 0).fault, None);
    assert!(!path.exists());
    assert_eq!(hand.act(0, 0, 0).fault, None);
}

#[test]
fn what_is_given_up_comes_back_as_abandoned_and_nothing_is_begun_after() {
    let directory = directory();
    let path = directory.path().join("volume");
    let data = data();
    let job = job(&[file(&path, SIZE)], 4096, &ALL);
    fill(&job, &data);
    let mut hand = hand(&job, &data, 64, 65_536);
    for slot in 0..64 {
        assert_eq!(hand.begin(slot, 1, 1, u64::from(slot) * 16, 65_536), Begin::Started);
    }
    hand.session.abandon();
    let mut ended = Vec::new();
    hand.session.reap(hand.clock.now(), &mut ended);
    assert_eq!(ended.len(), 64);
    assert!(ended.iter().all(|end| end.outcome.fault == Some(Fault::Abandoned)));
    assert!(
        matches!(hand.begin(0, 0, 1, 0, 4096), Begin::Done(_, outcome) if outcome.fault == Some(Fault::Abandoned))
    );
    // Whatever became of these writes, they may have; the blocks are not called lost.
    drop(hand);
    assert_eq!(crate::support::hand(&job, &data, 1, 4096).verify(SIZE, 4096), None);
}

#[test]
fn a_reap_waits_until_its_time_and_with_nothing_to_do_for_no_longer() {
    let directory = directory();
    let path = directory.path().join("volume");
    let job = job(&[file(&path, SIZE)], 4096, &ALL);
    fill(&job, &data());
    let mut hand = hand(&job, &data(), 1, 4096);
    let mut ended = Vec::new();
    let start = hand.clock.now();
    hand.session.reap(start + 20_000_000, &mut ended);
    assert!(hand.clock.now() >= start + 20_000_000 && ended.is_empty());
    let start = hand.clock.now();
    hand.session.reap(start.saturating_sub(1), &mut ended);
    assert!(hand.clock.now() < start + 1_000_000_000);
}

#[test]
fn thousands_of_lanes_work_and_too_many_are_refused() {
    let directory = directory();
    let path = directory.path().join("volume");
    let data = data();
    let job = job(&[file(&path, SIZE)], 4096, &ALL);
    fill(&job, &data);
    let way = choice(0, 1.0, 1, SIZE, (4096, Pick::Constant(4096)));
    let mix = SourcePlan::Mix { choices: vec![way], pool: None, deck: false };
    let result = run(&job, &data, Use::Load, &work(5000, 1, mix.clone(), Some(20_000)), 1);
    assert_eq!((faults(&result), ok(&result, 0)), (vec![], 20_000), "{:?}", result.examples);
    let engine = sessions(&job, &data, Use::Load).unwrap();
    let error =
        tidemark_load::thread_pool::run(&work(40_000, 1, mix, Some(1)), &*engine, 1, &mut Quiet).unwrap_err();
    assert!(error.to_string().contains("32768") && error.to_string().contains("threads"), "{error}");
}

#[test]
fn a_file_that_holds_something_else_by_now_is_refused_whoever_made_it() {
    let directory = directory();
    let path = directory.path().join("volume");
    let volume = file(&path, SIZE);
    let check = || guard::check(&volume, Intent::WRITE, &[]);
    // As after a load through fio: no stamp, only the mark.
    std::fs::write(&path, vec![0xab; SIZE as usize]).unwrap();
    mark(&volume);
    if !is_ours(&path) {
        return skip(format_args!("there are no extended attributes under {}", path.display()));
    }
    assert!(check().is_ok());
    // Somebody else writes to it: the mark is void.
    std::thread::sleep(std::time::Duration::from_millis(20));
    meddle(&path, 1 << 20, |block| block[0] ^= 1);
    assert!(!is_ours(&path) && check().is_err());
    // A file system on it is refused even with a mark, and with Tidemark's content behind it.
    let job = job(std::slice::from_ref(&volume), 4096, &ALL);
    fill(&job, &data());
    mark(&volume);
    assert!(check().is_ok());
    meddle(&path, 0, |block| block[1080..1082].copy_from_slice(&[0x53, 0xef]));
    mark(&volume);
    let refused = check().unwrap_err().to_string();
    assert!(refused.contains("ext4") && refused.contains("--allow-destroy"), "{refused}");
}
