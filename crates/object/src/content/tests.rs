//! Content that is right, and content that is wrong in every way.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;
use std::io::Write as _;
use std::sync::LazyLock;
use tidemark_measure::fault::Fault;

const KEY: Key = Key { space: 3, item: 7 };

fn plan_of(form: Form) -> ContentPlan {
    DataSet::new(11, 5, 1000).plan(&Content { form, verify: true }, &Naming::default())
}

fn seeded(compressible: f64, duplicate: f64) -> ContentPlan {
    plan_of(Form::Seeded { compressible, duplicate })
}

fn bytes_of(plan: &ContentPlan, key: Key, write: Write, size: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let payload = plan.payload(key, write, size);
    payload
        .each(0..size, |piece| {
            bytes.extend_from_slice(piece);
            Ok::<(), ()>(())
        })
        .unwrap();
    bytes
}

fn verdict(plan: &ContentPlan, key: Key, bytes: &[u8]) -> Option<Fault> {
    let mut check = plan.check(key, None);
    check.update(bytes);
    check.finish().err().map(Mismatch::fault)
}

/// Every form; made once, for pools are slow to make without optimisation.
static FORMS: LazyLock<[(&str, ContentPlan); 6]> = LazyLock::new(|| {
    [
        ("seeded", seeded(0.0, 0.0)),
        ("compressible", seeded(0.5, 0.0)),
        ("duplicate", seeded(0.0, 0.5)),
        ("all duplicate", seeded(0.0, 1.0)),
        ("zero", plan_of(Form::Zero)),
        ("hashed", plan_of(Form::Hashed)),
    ]
});

#[test]
fn what_was_written_is_right_at_every_size() {
    let large = [4095, 4096, 4097, 4130, 4160, 8192, 131_072, 131_100, 1 << 20, (5 << 20) + 1];
    for (name, plan) in FORMS.iter() {
        for size in (0..200).chain(large) {
            let write = plan.write(KEY);
            let bytes = bytes_of(plan, KEY, write, size);
            assert_eq!(bytes.len() as u64, size, "{name} {size}");
            assert_eq!(verdict(plan, KEY, &bytes), None, "{name} {size}");
        }
    }
}

#[test]
fn one_flipped_byte_is_wrong() {
    let plan = seeded(0.0, 0.0);
    for size in [2, 63, 64, 65, 200, 4096, 4100, 10_000] {
        let write = plan.write(KEY);
        let bytes = bytes_of(&plan, KEY, write, size);
        for index in (0..bytes.len()).step_by(if size > 300 { 7 } else { 1 }) {
            let mut damaged = bytes.clone();
            damaged[index] ^= 0x10;
            assert_eq!(verdict(&plan, KEY, &damaged), Some(Fault::WrongContent), "{size} {index}");
        }
    }
}

#[test]
fn a_cut_end_is_truncated_and_a_longer_one_is_wrong() {
    let plan = seeded(0.0, 0.0);
    let write = plan.write(KEY);
    let bytes = bytes_of(&plan, KEY, write, 10_000);
    for length in [8, 63, 64, 100, 4095, 4096, 4097, 4128, 8192, 9_999] {
        assert_eq!(verdict(&plan, KEY, &bytes[..length]), Some(Fault::TruncatedContent), "{length}");
    }
    let longer = [&bytes[..], &[0; 5]].concat();
    assert_eq!(verdict(&plan, KEY, &longer), Some(Fault::WrongContent));
}

#[test]
fn content_of_another_object_set_or_program_is_foreign() {
    let plan = seeded(0.0, 0.0);
    let write = plan.write(KEY);
    for size in [32, 64, 5000] {
        let other = bytes_of(&plan, Key { item: 8, ..KEY }, write, size);
        assert_eq!(verdict(&plan, KEY, &other), Some(Fault::ForeignContent), "{size}");
        let names = Naming { object_prefix: "other".into(), ..Naming::default() };
        let renamed = plan.data.plan(&Content::default(), &names);
        let other = bytes_of(&renamed, KEY, renamed.write(KEY), size);
        assert_eq!(verdict(&plan, KEY, &other), Some(Fault::ForeignContent), "{size}");
        assert_eq!(verdict(&plan, KEY, &vec![0; size as usize]), Some(Fault::ForeignContent), "{size}");
    }
    // A block of another object, in the middle.
    let mut mixed = bytes_of(&plan, KEY, write, 20_000);
    let other = bytes_of(&plan, Key { item: 8, ..KEY }, write, 20_000);
    mixed[8192..12_288].copy_from_slice(&other[8192..12_288]);
    assert_eq!(verdict(&plan, KEY, &mixed), Some(Fault::ForeignContent));
}

#[test]
fn an_older_version_is_stale_once_a_later_one_is_acknowledged() {
    for plan in [seeded(0.0, 0.0), seeded(0.0, 0.5), plan_of(Form::Hashed)] {
        let old = plan.write(KEY);
        let before = bytes_of(&plan, KEY, old, 30_000);
        plan.acknowledge(old);
        assert_eq!(verdict(&plan, KEY, &before), None);
        let new = plan.write(KEY);
        let after = bytes_of(&plan, KEY, new, 30_000);
        let sent_before = plan.check(KEY, None);
        plan.acknowledge(new);
        assert_eq!(verdict(&plan, KEY, &before), Some(Fault::StaleContent));
        assert_eq!(verdict(&plan, KEY, &after), None);
        let mut check = sent_before;
        check.update(&before);
        assert_eq!(check.finish(), Ok(()), "a read sent before the acknowledgement may see the old version");
    }
}

#[test]
fn an_object_with_an_old_block_is_stale_and_with_a_misplaced_one_wrong() {
    let plan = seeded(0.0, 0.0);
    let old = plan.write(KEY);
    let before = bytes_of(&plan, KEY, old, 30_000);
    plan.acknowledge(old);
    let new = plan.write(KEY);
    let after = bytes_of(&plan, KEY, new, 30_000);
    plan.acknowledge(new);
    let mut torn = after.clone();
    torn[8192..12_288].copy_from_slice(&before[8192..12_288]);
    assert_eq!(verdict(&plan, KEY, &torn), Some(Fault::StaleContent));
    let mut misplaced = after.clone();
    misplaced[8192..12_288].copy_from_slice(&after[4096..8192]);
    assert_eq!(verdict(&plan, KEY, &misplaced), Some(Fault::WrongContent));
}

#[test]
fn clocks_of_other_writers_are_trusted_only_so_far() {
    let ours = seeded(0.0, 0.0);
    let theirs = DataSet::new(11, 6, 0).plan(
        &Content { form: Form::Seeded { compressible: 0.0, duplicate: 0.0 }, verify: true },
        &Naming::default(),
    );
    let their_write = theirs.write(KEY);
    let bytes = bytes_of(&theirs, KEY, their_write, 5000);
    let our_write = ours.write(KEY);
    ours.acknowledge(our_write);
    assert_eq!(verdict(&ours, KEY, &bytes), None);
    let long_ago = Write { version: their_write.version - 301_000_000_000, ..their_write };
    let bytes = bytes_of(&theirs, KEY, long_ago, 5000);
    assert_eq!(verdict(&ours, KEY, &bytes), Some(Fault::StaleContent));
}

#[test]
fn hashed_content_is_as_cosbench_writes_it() {
    let plan = plan_of(Form::Hashed);
    let bytes = bytes_of(&plan, KEY, plan.write(KEY), 1000);
    let digest: [u8; 16] = Md5::digest(&bytes[..960]).into();
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(&bytes[960..], format!("!!!!{text}!!!!").as_bytes());

    // Objects of COSBench itself carry letters and a guard, and no stamp.
    let letters: Vec<u8> = (b'a'..=b'z').cycle().take(500).collect();
    let guarded = [&letters[..], &guard(Md5::digest(&letters).into())].concat();
    assert_eq!(verdict(&plan, KEY, &guarded), None);
    let mut damaged = guarded.clone();
    damaged[100] ^= 1;
    assert_eq!(verdict(&plan, KEY, &damaged), Some(Fault::WrongContent));
    assert_eq!(verdict(&plan, KEY, &letters), Some(Fault::ForeignContent), "no guard");
    assert_eq!(verdict(&plan, KEY, &letters[..40]), None, "too short for a guard");
    assert_eq!(verdict(&plan, KEY, &bytes[..900]), Some(Fault::TruncatedContent));
    let other = bytes_of(&plan, Key { item: 1, ..KEY }, plan.write(KEY), 1000);
    assert_eq!(verdict(&plan, KEY, &other), Some(Fault::ForeignContent));
}

#[test]
fn unverified_reads_find_nothing() {
    let plan = DataSet::new(1, 1, 0).plan(&Content::default(), &Naming::default());
    assert_eq!(verdict(&plan, KEY, b"anything"), None);
}

#[test]
fn the_head_comes_first_and_a_window_is_bounded() {
    let plan = seeded(0.0, 0.0);
    let payload = plan.payload(KEY, plan.write(KEY), 1 << 20);
    let mut window = Window::default();
    let slices = payload.slices(b"head", 0..payload.size(), &mut window);
    assert_eq!(&*slices[0], b"head");
    assert_eq!(slices.bytes(), 4 + (WINDOW * BLOCK) as u64);
    assert_eq!(slices.len(), 1 + 2 * WINDOW);
}

proptest! {
    #[test]
    fn pieces_and_partial_writes_do_not_matter(
        form in 0usize..6,
        size in 0u64..40_000,
        cuts in proptest::collection::vec(1usize..6_000, 1..40),
    ) {
        let (_, plan) = &FORMS[form];
        let write = plan.write(KEY);
        let whole = bytes_of(plan, KEY, write, size);
        let payload = plan.payload(KEY, write, size);
        let (mut at, mut window, mut resumed) = (0u64, Window::default(), Vec::new());
        for cut in cuts.iter().cycle() {
            if at == size { break; }
            let slices = payload.slices(&[], at..size, &mut window);
            let sent: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).take(*cut).collect();
            prop_assert!(!sent.is_empty());
            at += sent.len() as u64;
            resumed.extend(sent);
        }
        prop_assert_eq!(&resumed, &whole);

        let (mut check, mut rest) = (plan.check(KEY, None), &whole[..]);
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            check.update(piece);
            rest = left;
        }
        prop_assert_eq!(check.finish(), Ok(()));
    }

    #[test]
    fn ranges_verify_and_damage_in_them_shows(start in 0usize..9_000, length in 1usize..9_000, flip in 0usize..9_000) {
        let (_, plan) = &FORMS[0];
        let whole = bytes_of(plan, KEY, plan.write(KEY), 18_000);
        let range = start as u64..(start + length) as u64;
        let mut part = whole[start..start + length].to_vec();
        let verdict = |part: &[u8]| {
            let mut check = plan.check(KEY, Some(range.clone()));
            check.update(part);
            check.finish()
        };
        prop_assert_eq!(verdict(&part), Ok(()));
        let flip = flip % length;
        part[flip] ^= 1;
        // The bytes of a stamp that is not whole within the range, before any whole one, cannot be judged.
        let block = (start + flip) / BLOCK * BLOCK;
        let whole_stamp = |block: usize| block >= start && block + STAMP <= start + length;
        let judged = start + flip >= block + STAMP || (start.next_multiple_of(BLOCK)..=block).step_by(BLOCK).any(whole_stamp);
        prop_assert_eq!(verdict(&part).is_err(), judged);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), form in 0usize..6, start in 0u64..9_000) {
        let (_, plan) = &FORMS[form];
        let _ = verdict(plan, KEY, &bytes);
        let mut check = plan.check(KEY, Some(start..start + 100));
        check.update(&bytes);
        let _ = check.finish();
    }
}

/// The share of bytes that deflate leaves, over objects of `size` bytes.
fn left_by_deflate(plan: &ContentPlan, size: u64) -> f64 {
    let (mut raw, mut left) = (0, 0);
    for item in 0..(1 << 20) / size {
        let key = Key { space: 1, item };
        let bytes = bytes_of(plan, key, plan.write(key), size);
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&bytes).unwrap();
        raw += bytes.len();
        left += encoder.finish().unwrap().len();
    }
    left as f64 / raw as f64
}

#[test]
fn the_compressible_dial_is_true() {
    for compressible in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let plan = seeded(compressible, 0.0);
        for (size, tolerance) in [(4096, 0.04), (1 << 20, 0.025)] {
            let left = left_by_deflate(&plan, size);
            assert!((left - (1.0 - compressible)).abs() < tolerance, "{compressible} at {size}: {left}");
        }
    }
}

/// The share of 4 KiB blocks that occur more than once in 16 MiB of objects.
fn repeated_blocks(plan: &ContentPlan, size: u64) -> f64 {
    let (mut seen, mut blocks) = (HashSet::new(), 0u64);
    for item in 0..(16 << 20) / size {
        let key = Key { space: 1, item };
        for block in bytes_of(plan, key, plan.write(key), size).chunks(BLOCK) {
            let digest: [u8; 16] = Md5::digest(block).into();
            seen.insert(digest);
            blocks += 1;
        }
    }
    1.0 - seen.len() as f64 / blocks as f64
}

#[test]
fn the_duplicate_dial_is_true() {
    assert_eq!(repeated_blocks(&seeded(0.0, 0.0), 4096), 0.0);
    assert_eq!(repeated_blocks(&seeded(0.0, 0.0), 8 << 20), 0.0);
    for size in [4096, 1 << 20] {
        let repeated = repeated_blocks(&seeded(0.0, 0.3), size);
        assert!((0.28..0.32).contains(&repeated), "{size}: {repeated}");
    }
}

/// What verification and generation cost, beside a plain copy: run by hand, in release.
#[test]
#[ignore = "a measurement"]
fn measures_content() {
    let plan = seeded(0.0, 0.0);
    let size = 1 << 20;
    let objects: Vec<_> = (0..32)
        .map(|item| {
            let key = Key { space: 1, item };
            (key, bytes_of(&plan, key, plan.write(key), size))
        })
        .collect();
    let mut buffer = vec![0; 128 << 10];
    let mut window = Window::default();
    let per_mib = |name: &str, work: &mut dyn FnMut(Key, &[u8])| {
        for round in 0..40 {
            let start = Instant::now();
            for _ in 0..2 {
                objects.iter().for_each(|(key, bytes)| work(*key, bytes));
            }
            let ns = start.elapsed().as_nanos() / (2 * objects.len() as u128);
            println!("{name} {round}: {:.1} us/MiB", ns as f64 / 1000.0);
        }
    };
    per_mib("copy in pieces", &mut |_, bytes| {
        for piece in bytes.chunks(buffer.len()) {
            buffer[..piece.len()].copy_from_slice(piece);
            std::hint::black_box(&buffer);
        }
    });
    let mut buffer = vec![0; 128 << 10];
    per_mib("copy and verify", &mut |key, bytes| {
        let mut check = plan.check(key, None);
        for piece in bytes.chunks(buffer.len()) {
            buffer[..piece.len()].copy_from_slice(piece);
            check.update(&buffer[..piece.len()]);
        }
        check.finish().unwrap();
    });
    per_mib("slices", &mut |key, _| {
        let payload = plan.payload(key, plan.write(key), size);
        let mut at = 0;
        while at < size {
            let slices = payload.slices(&[], at..size, &mut window);
            at += std::hint::black_box(&slices).bytes();
        }
    });
}
