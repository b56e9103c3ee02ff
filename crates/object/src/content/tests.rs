//! Content that is right, and content that is wrong in every way.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;
use std::io::Write as _;
use std::sync::LazyLock;
use tidemark_measure::fault::Fault;
use tidemark_measure::verification::{Checked, Unchecked};

const KEY: Key = Key { space: 3, item: 7 };

fn plan_of(form: Form) -> ContentPlan {
    DataSet::new(11, 5, 1000, Default::default()).plan(&Content { form, verify: true }, &Naming::default())
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

type Verdict = Result<Checked, Fault>;

const RIGHT: Verdict = Ok(Checked::Verified);
const UNKNOWN: Verdict = Ok(Checked::Not(Unchecked::UnknownOrigin));
const SHORT: Verdict = Ok(Checked::Not(Unchecked::TooShort));
const WRONG: Verdict = Err(Fault::WrongContent);
const FOREIGN: Verdict = Err(Fault::ForeignContent);
const TRUNCATED: Verdict = Err(Fault::TruncatedContent);
const STALE: Verdict = Err(Fault::StaleContent);

fn verdict(plan: &ContentPlan, key: Key, bytes: &[u8]) -> Verdict {
    let mut check = plan.check(key, None);
    check.update(bytes);
    check.finish().map_err(Mismatch::fault)
}

/// Writes an object, and has that acknowledged.
fn written(plan: &ContentPlan, key: Key, size: u64) -> Vec<u8> {
    let write = plan.write(key);
    plan.acknowledge(write);
    bytes_of(plan, key, write, size)
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
            let expected = match *name {
                "zero" => Ok(Checked::Not(Unchecked::NoContent)),
                _ if size < 4 => SHORT,
                _ => RIGHT,
            };
            assert_eq!(verdict(plan, KEY, &bytes), expected, "{name} {size}");
        }
    }
}

#[test]
fn one_flipped_byte_is_wrong() {
    let plan = seeded(0.0, 0.0);
    for size in [2, 63, 64, 65, 200, 4096, 4100, 10_000] {
        let bytes = written(&plan, KEY, size);
        for index in (0..bytes.len()).step_by(if size > 300 { 7 } else { 1 }) {
            let mut damaged = bytes.clone();
            damaged[index] ^= 0x10;
            assert_eq!(verdict(&plan, KEY, &damaged), WRONG, "{size} {index}");
        }
    }
}

#[test]
fn a_cut_end_is_truncated_and_a_longer_one_is_wrong() {
    let plan = seeded(0.0, 0.0);
    let write = plan.write(KEY);
    let bytes = bytes_of(&plan, KEY, write, 10_000);
    for length in [8, 63, 64, 100, 4095, 4096, 4097, 4128, 8192, 9_999] {
        assert_eq!(verdict(&plan, KEY, &bytes[..length]), TRUNCATED, "{length}");
    }
    let longer = [&bytes[..], &[0; 5]].concat();
    assert_eq!(verdict(&plan, KEY, &longer), WRONG);
}

#[test]
fn content_of_another_object_is_foreign() {
    let plan = seeded(0.0, 0.0);
    let write = plan.write(KEY);
    for size in [64, 5000] {
        let other = bytes_of(&plan, Key { item: 8, ..KEY }, write, size);
        assert_eq!(verdict(&plan, KEY, &other), FOREIGN, "{size}");
        let names = Naming { object_prefix: "other".into(), ..Naming::default() };
        let renamed = plan.data.plan(&Content::default(), &names);
        let other = bytes_of(&renamed, KEY, renamed.write(KEY), size);
        let plan = plan.data.plan(&Content { verify: true, ..Content::default() }, &Naming::default());
        assert_eq!(verdict(&plan, KEY, &other), FOREIGN, "{size}");
    }
    // A block of another object, in the middle.
    let mut mixed = bytes_of(&plan, KEY, write, 20_000);
    let other = bytes_of(&plan, Key { item: 8, ..KEY }, write, 20_000);
    mixed[8192..12_288].copy_from_slice(&other[8192..12_288]);
    assert_eq!(verdict(&plan, KEY, &mixed), FOREIGN);
}

/// What no run with this seed, form and name has written: nobody knows what it should be.
#[test]
fn content_of_unknown_origin_is_no_fault_unless_this_run_wrote_the_object() {
    let letters: Vec<u8> = (b'a'..=b'z').cycle().take(20_000).collect();
    let other_seed = DataSet::new(12, 6, 0, Default::default()).plan(&Content::default(), &Naming::default());
    for (name, plan) in FORMS.iter().filter(|(name, _)| *name != "zero") {
        for (size, expected) in
            [(3, SHORT), (30, UNKNOWN), (64, UNKNOWN), (5_000, UNKNOWN), (20_000, UNKNOWN)]
        {
            let expected = if *name == "hashed" && size <= GUARD { SHORT } else { expected };
            let own = Key { item: 1_000 + size as u64, ..KEY };
            let others = written(&other_seed, KEY, size as u64);
            for (what, bytes) in
                [("letters", &letters), ("zeroes", &vec![0; 20_000]), ("another seed", &others)]
            {
                assert_eq!(verdict(plan, own, &bytes[..size]), expected, "{name}, {size} bytes of {what}");
            }
            let wrote = plan.write(own);
            assert_eq!(verdict(plan, own, &letters[..size]), expected, "{name}: not acknowledged yet");
            plan.acknowledge(wrote);
            assert_eq!(verdict(plan, own, &letters[..size]), WRONG, "{name} {size}: this run wrote it");
            plan.acknowledge(plan.delete(own));
            assert_eq!(verdict(plan, own, &letters[..size]), expected, "{name} {size}: and deleted it");
        }
    }
}

/// Earlier runs wrote it; what is left of that shows.
#[test]
fn damaged_content_is_known_by_what_is_left_of_it() {
    let plan = seeded(0.0, 0.0);
    let bytes = bytes_of(&plan, KEY, plan.untracked(), 20_000);
    // Of five blocks, all but one are lost.
    for kept in 0..4 {
        let mut damaged = vec![0; 20_000];
        damaged[kept * BLOCK..(kept + 1) * BLOCK].copy_from_slice(&bytes[kept * BLOCK..(kept + 1) * BLOCK]);
        assert_eq!(verdict(&plan, KEY, &damaged), WRONG, "block {kept}");
    }
    // The stamps are lost, and a few bytes in a row are there.
    let mut damaged = vec![7; 20_000];
    damaged[9_000..9_040].copy_from_slice(&bytes[9_000..9_040]);
    assert_eq!(verdict(&plan, KEY, &damaged), WRONG);
    let small = bytes_of(&plan, KEY, plan.untracked(), 40);
    assert_eq!(verdict(&plan, KEY, &[&small[..20], &[0; 20]].concat()), WRONG);
    let guarded = plan_of(Form::Hashed);
    for size in [50, 100, 5_000] {
        let bytes = bytes_of(&guarded, KEY, guarded.untracked(), size);
        for index in [0, size as usize / 2, size as usize - 20] {
            let mut damaged = bytes.clone();
            damaged[index] ^= 0x80;
            assert_eq!(verdict(&guarded, KEY, &damaged), WRONG, "{size} {index}");
        }
    }
}

/// `hashCheck` of objects that were written without it, and the other way round.
#[test]
fn content_in_another_form_is_verified_as_far_as_can_be_and_never_accused() {
    let data = DataSet::new(11, 5, 1000, Default::default());
    let of = |form| data.plan(&Content { form, verify: true }, &Naming::default());
    let (plain, hashed) = (of(Form::Seeded { compressible: 0.0, duplicate: 0.0 }), of(Form::Hashed));
    let soft = of(Form::Seeded { compressible: 0.5, duplicate: 0.0 });
    for size in [4, 30, 41, 63, 64, 100, 104, 5_000, 20_000] {
        let bytes = written(&plain, KEY, size);
        assert_eq!(verdict(&hashed, KEY, &bytes), RIGHT, "{size}: it is what the form without a hash is");
        let mut damaged = bytes.clone();
        damaged[size as usize / 2] ^= 1;
        assert_eq!(verdict(&hashed, KEY, &damaged), WRONG, "{size}");
        let bytes = written(&hashed, Key { item: 70 + size, ..KEY }, size);
        let told = verdict(&plain, Key { item: 70 + size, ..KEY }, &bytes);
        assert_eq!(told, UNKNOWN, "{size}: the hash is in the place of other bytes");
        assert!(matches!(verdict(&soft, KEY, &bytes), Ok(Checked::Not(_))), "{size}");
    }
}

/// The server copies what it has: the copy's content is its source's, and older writes of the source are no stale copies.
#[test]
fn a_copy_has_the_content_of_its_source() {
    for form in [Form::Seeded { compressible: 0.0, duplicate: 0.0 }, Form::Hashed] {
        let data = DataSet::new(11, 5, 1000, Default::default());
        let content = Content { form, verify: true };
        let source = data.plan(&content, &Naming::default());
        let copies = data.plan(&content, &Naming { object_suffix: "-copy".into(), ..Naming::default() });
        for size in [30, 5_000] {
            let copied = written(&source, KEY, size);
            written(&source, KEY, size);
            assert_eq!(verdict(&copies, KEY, &copied), RIGHT, "{size}");
            let mut damaged = copied.clone();
            damaged[20] ^= 1;
            assert!(verdict(&copies, KEY, &damaged).is_err() || size == 30, "{size}");
        }
    }
}

#[test]
fn an_older_version_is_stale_once_a_later_one_is_acknowledged() {
    for plan in [seeded(0.0, 0.0), seeded(0.0, 0.5), plan_of(Form::Hashed)] {
        let old = plan.write(KEY);
        let before = bytes_of(&plan, KEY, old, 30_000);
        plan.acknowledge(old);
        assert_eq!(verdict(&plan, KEY, &before), RIGHT);
        let new = plan.write(KEY);
        let after = bytes_of(&plan, KEY, new, 30_000);
        let sent_before = plan.check(KEY, None);
        plan.acknowledge(new);
        assert_eq!(verdict(&plan, KEY, &before), STALE);
        assert_eq!(verdict(&plan, KEY, &after), RIGHT);
        let mut check = sent_before;
        check.update(&before);
        assert_eq!(
            check.finish(),
            Ok(Checked::Verified),
            "a read sent before the acknowledgement may see the old version"
        );
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
    assert_eq!(verdict(&plan, KEY, &torn), STALE);
    let mut misplaced = after.clone();
    misplaced[8192..12_288].copy_from_slice(&after[4096..8192]);
    assert_eq!(verdict(&plan, KEY, &misplaced), WRONG);
}

#[test]
fn clocks_of_other_writers_are_trusted_only_so_far() {
    let ours = seeded(0.0, 0.0);
    let theirs = DataSet::new(11, 6, 0, Default::default()).plan(
        &Content { form: Form::Seeded { compressible: 0.0, duplicate: 0.0 }, verify: true },
        &Naming::default(),
    );
    let their_write = theirs.write(KEY);
    let bytes = bytes_of(&theirs, KEY, their_write, 5000);
    let our_write = ours.write(KEY);
    ours.acknowledge(our_write);
    assert_eq!(verdict(&ours, KEY, &bytes), RIGHT);
    let long_ago = Write { version: their_write.version - 301_000_000_000, ..their_write };
    let bytes = bytes_of(&theirs, KEY, long_ago, 5000);
    assert_eq!(verdict(&ours, KEY, &bytes), STALE);
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
    let nobodys = Key { item: 99, ..KEY };
    assert_eq!(verdict(&plan, nobodys, &guarded), RIGHT);
    let mut damaged = guarded.clone();
    damaged[100] ^= 1;
    assert_eq!(verdict(&plan, nobodys, &damaged), WRONG);
    assert_eq!(verdict(&plan, nobodys, &letters), UNKNOWN, "no guard");
    assert_eq!(verdict(&plan, nobodys, &letters[..40]), SHORT, "too short for a guard");
    assert_eq!(verdict(&plan, KEY, &bytes[..900]), TRUNCATED);
    let other = bytes_of(&plan, Key { item: 1, ..KEY }, plan.write(KEY), 1000);
    assert_eq!(verdict(&plan, KEY, &other), FOREIGN);
    let mut check = plan.check(KEY, Some(0..500));
    check.update(&bytes[..500]);
    assert_eq!(check.finish(), Ok(Checked::Not(Unchecked::Part)), "the hash is of the whole");
}

#[test]
fn unverified_reads_find_nothing() {
    let plan = DataSet::new(1, 1, 0, Default::default()).plan(&Content::default(), &Naming::default());
    assert_eq!(verdict(&plan, KEY, b"anything"), Ok(Checked::NotAsked));
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
        let (name, plan) = &FORMS[form];
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
        let expected = match *name {
            "zero" => Checked::Not(Unchecked::NoContent),
            _ if size < 4 => Checked::Not(Unchecked::TooShort),
            _ => Checked::Verified,
        };
        prop_assert_eq!(check.finish(), Ok(expected));
    }

    #[test]
    fn ranges_verify_and_damage_in_them_shows(start in 0usize..9_000, length in 1usize..9_000, flip in 0usize..9_000) {
        let (_, plan) = &FORMS[0];
        let whole = bytes_of(plan, KEY, plan.write(KEY), 18_000);
        let range = start as u64..(start + length) as u64;
        let mut part = whole[start..start + length].to_vec();
        let verdict = |key: Key, part: &[u8]| {
            let mut check = plan.check(key, Some(range.clone()));
            check.update(part);
            check.finish()
        };
        // The bytes of a stamp that is not whole within the range, before any whole one, cannot be judged.
        let whole_stamp = |block: usize| block >= start && block + STAMP <= start + length;
        let judged = |at: usize| {
            let block = at / BLOCK * BLOCK;
            at >= block + STAMP || (start.next_multiple_of(BLOCK)..=block).step_by(BLOCK).any(whole_stamp)
        };
        let right = match (start..start + length).any(judged) {
            true => Checked::Verified,
            false => Checked::Not(Unchecked::TooShort),
        };
        prop_assert_eq!(verdict(KEY, &part), Ok(right));
        let flip = flip % length;
        part[flip] ^= 1;
        let (mine, unknown) = (Key { item: 5, ..KEY }, verdict(KEY, &part));
        // Even where too little is left to know it by: this run wrote it.
        let wrote = written(plan, mine, 18_000);
        let mut damaged = wrote[start..start + length].to_vec();
        damaged[flip] ^= 1;
        prop_assert_eq!(verdict(mine, &damaged).is_err(), judged(start + flip));
        if length > 200 {
            prop_assert_eq!(unknown.is_err(), judged(start + flip));
        }
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
