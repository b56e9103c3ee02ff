//! What arrives is what was sent, or nothing.

use super::*;
use crate::counts::Class;
use crate::fault::Fault;
use crate::histogram::LONGEST_NS;
use crate::verification::Unchecked;
use proptest::prelude::*;

/// Which of a tally's histograms, and what is recorded in it how often.
type Recorded = (usize, usize, u64, u64);

fn latency() -> impl Strategy<Value = u64> {
    let near_a_doubling =
        (0u32..64, 0u64..3).prop_map(|(bits, off)| (1u64 << bits).wrapping_add(off).wrapping_sub(1));
    prop_oneof![
        0u64..5_000,
        any::<u64>(),
        near_a_doubling,
        Just(LONGEST_NS),
        Just(LONGEST_NS + 1),
        Just(u64::MAX)
    ]
}

fn interval(
    index: u32,
    actions: usize,
    numbers: &[u64],
    recorded: &[Recorded],
    times: (Option<u64>, u64),
) -> Interval {
    let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
    let mut interval = Interval { index, actions: vec![Tally::default(); actions], ..Interval::default() };
    interval.unmeasured = number(0);
    interval.in_flight = number(1) as u32;
    interval.backlog = number(2);
    (interval.first_ok_ns, interval.last_ok_ns) = (times.0, times.0.map(|first| first.saturating_add(5)));
    (interval.oldest_in_flight_ns, interval.cpu_ns, interval.wall_ns) = (times.1, times.1 / 3, times.1);
    interval.stalled_ns = times.1 / 7;
    for (at, tally) in interval.actions.iter_mut().enumerate() {
        (tally.ok, tally.bytes, tally.late, tally.late_bytes) =
            (number(at), number(at + 1), number(at + 2), number(at + 3));
        (tally.early, tally.early_bytes, tally.outside_bytes, tally.retries) =
            (number(at + 4), number(at + 5), number(at + 6), number(at + 7));
        (0..number(at) % 4).for_each(|fault| tally.faults.count(Fault::ALL[fault as usize * 7]));
        tally.verified = number(at + 8);
        tally.placed = number(at + 9);
        (0..number(at) % 5).for_each(|why| tally.unchecked.count(<Unchecked as Class>::ALL[why as usize]));
    }
    for (action, histogram, value, count) in recorded {
        if let Some(tally) = interval.actions.get_mut(*action) {
            tally.histograms_mut()[*histogram].record_many(*value, *count);
        }
    }
    interval
}

/// Everything that there is in an interval, histograms step by step.
fn all_of(interval: &Interval) -> String {
    let ends: Vec<_> = interval
        .actions
        .iter()
        .flat_map(|tally| tally.histograms().map(|h| (h.min(), h.max(), h.count())))
        .collect();
    format!("{} {ends:?}", serde_json::to_string(interval).unwrap())
}

proptest! {
    #[test]
    fn what_arrives_is_what_was_sent(
        index: u32,
        actions in 0usize..4,
        numbers in prop::collection::vec(prop_oneof![0u64..100, 0..=MOST_COUNT], 0..12),
        recorded in prop::collection::vec((0usize..4, 0usize..6, latency(), 1u64..1 << 34), 0..60),
        others in prop::collection::vec((0usize..4, 0usize..6, latency(), 1u64..1 << 34), 0..60),
        times: (Option<u64>, u64),
    ) {
        let sent = interval(index, actions, &numbers, &recorded, times);
        let bytes = encode(&sent);
        let mut alone = Interval { index, actions: vec![Tally::default(); actions], ..Interval::default() };
        let summary = add(&bytes, &mut alone).unwrap();
        prop_assert_eq!(all_of(&alone), all_of(&sent));
        prop_assert_eq!(super::summary(&bytes).unwrap(), summary);

        let mut by_wire = interval(index, actions, &[7, 9], &others, (None, 3));
        let mut in_memory = by_wire.clone();
        add(&bytes, &mut by_wire).unwrap();
        in_memory.add(&sent);
        prop_assert_eq!(all_of(&by_wire), all_of(&in_memory));

        let mut merged = Histogram::new();
        sent.actions.iter().for_each(|tally| merged.add(&tally.response));
        let expected = (merged.quantile(0.5), merged.quantile(0.99));
        prop_assert_eq!((summary.p50_ns, summary.p99_ns), expected);
        prop_assert_eq!(summary.ok, sent.actions.iter().map(|tally| tally.ok).sum::<u64>());
    }

    #[test]
    fn hostile_bytes_change_nothing(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(first) = bytes.first_mut() {
            *first = VERSION;
        }
        let mut to = interval(3, 2, &[5], &[(0, 0, 77, 1)], (None, 0));
        let before = all_of(&to);
        if add(&bytes, &mut to).is_err() {
            prop_assert_eq!(all_of(&to), before);
        }
    }

    #[test]
    fn an_interval_with_a_flaw_counts_in_whole_or_not_at_all(at in 0usize..10_000, flip in 1u8.., cut: bool) {
        let sent = interval(3, 2, &[5, 6, 7], &[(0, 0, 77, 1), (1, 2, 5_000_000, 9)], (Some(1), 4));
        let mut bytes = encode(&sent);
        let at = at % bytes.len();
        if cut { bytes.truncate(at) } else { bytes[at] ^= flip }
        let mut to = Interval::new(3, 2);
        match add(&bytes, &mut to) {
            Ok(_) => prop_assert!(!cut),
            Err(_) => prop_assert_eq!(all_of(&to), all_of(&Interval::new(3, 2))),
        }
    }
}

#[test]
fn a_second_of_the_encoding_before_is_read() {
    // Second 3; one operation: 2 successes of 200 bytes, 1 timeout, 2 responses in step 77.
    let old = [
        &[1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..],
        &[2, 0xc8, 0x01, 0, 0, 0, 0, 0, 0, 1, Fault::Timeout as u8, 1],
        &[2, 77, 2, 0, 0, 0, 0],
    ];
    // The second adds what was verified: one of the two.
    let newer = [&[2][..], &old.concat()[1..], &[1, 0]].concat();
    for (bytes, verified) in [(old.concat(), 0), (newer, 1)] {
        let mut to = Interval::new(3, 1);
        add(&bytes, &mut to).unwrap();
        let tally = &to.actions[0];
        assert_eq!((tally.ok, tally.bytes, tally.faults.of(Fault::Timeout)), (2, 200, 1));
        assert_eq!((tally.response.count(), tally.response.max()), (2, 77));
        assert_eq!((tally.verified, tally.unchecked.total()), (verified, 0), "what it does not tell is 0");
        assert!(tally.own_lag_open.is_empty());
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let whole = interval(3, 2, &[5], &[(0, 0, 77, 1)], (None, 0));
    let refuses = |bytes: &[u8], actions: usize, part: &str| {
        let error = add(bytes, &mut Interval::new(3, actions)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    refuses(&[], 2, "empty");
    refuses(&[9, 1, 2], 2, "number 9");
    refuses(&encode(&whole), 3, "2 operations instead of 3");
    refuses(&encode(&Interval::new(4, 2)), 2, "second 4 instead of 3");
    refuses(&[encode(&whole), vec![0]].concat(), 2, "1 bytes follow");
    refuses(&encode(&Interval { backlog: MOST_COUNT + 1, ..whole.clone() }), 2, "impossible");
    refuses(&encode(&interval(3, 2, &[0, MOST_BYTES + 1], &[], (None, 0))), 2, "impossible");
    refuses(&encode(&interval(3, 2, &[], &[(1, 4, 5, MOST_COUNT + 1)], (None, 0))), 2, "impossible");
    // A length that promises more than there is: postcard takes no memory for what does not come.
    let mut endless = vec![VERSION, 3, 0, 0, 0, 0, 0, 0, 0, 0];
    endless.extend([0xff; 9].iter().chain(&[1]));
    refuses(&endless, 2, "damaged");
}

#[test]
fn steps_are_those_of_the_histogram() {
    assert_eq!(step_of(highest_of(STEPS - 1)), STEPS - 1);
    assert_eq!(highest_of(STEPS - 1), LONGEST_NS);
    for step in (0..STEPS).step_by(97).chain(2040..2060) {
        let mut histogram = Histogram::new();
        histogram.record(lowest_of(step));
        histogram.record(highest_of(step));
        let read: Vec<_> = histogram.buckets().map(|(value, count)| (step_of(value), count)).collect();
        assert_eq!(read, [(step, 2)]);
    }
}

/// `cargo test --profile dist -p tidemark-measure -- --ignored measures_ --nocapture`
#[test]
#[ignore = "prints a time"]
fn measures_the_merge_of_a_thousand_drivers() {
    for per_operation in [300, 1_000] {
        let mut rng = crate::rng::Rng::new(1, &[]);
        let mut second = || {
            let mut interval = Interval::new(7, 4);
            for tally in &mut interval.actions {
                for _ in 0..per_operation {
                    let response = 1_000_000 + rng.below(2_000_000);
                    tally.response.record(response);
                    tally.first_byte.record(response / 2);
                    tally.lag.record(1 + rng.below(500));
                    (tally.ok, tally.bytes) = (tally.ok + 1, tally.bytes + 4096);
                }
            }
            encode(&interval)
        };
        let encoded: Vec<_> = (0..1_000).map(|_| second()).collect();
        let mut sum = Interval::new(7, 4);
        // The best of some: other programs want the processor, too.
        let best = |each: &mut dyn FnMut(&[u8])| {
            let once = |_| {
                let start = std::time::Instant::now();
                encoded.iter().for_each(|bytes| each(bytes));
                start.elapsed()
            };
            (0..20).map(once).min().unwrap()
        };
        let merged = best(&mut |bytes| {
            add(bytes, &mut sum).unwrap();
        });
        let looked = best(&mut |bytes| {
            summary(bytes).unwrap();
        });
        let read_only = best(&mut |bytes| {
            read(bytes).unwrap();
        });
        let bytes = encoded.iter().map(Vec::len).sum::<usize>() / 1_000;
        let histograms = read(&encoded[0]).unwrap().histograms;
        let steps = histograms.iter().flatten().flat_map(|histogram| Steps::of(histogram)).count() / 12;
        println!(
            "1,000 intervals of 4 operations x 3 histograms x {steps} steps, {bytes} bytes each: \
             merged in {merged:?}; of that read {read_only:?}, looked at {:?}",
            looked.saturating_sub(read_only)
        );
        assert_eq!(sum.actions[0].response.count(), 20 * 1_000 * per_operation);
    }
}
