//! Any bytes are read as a second of a driver's load: what is taken adds up, what is damaged changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_measure::tally::{Interval, Tally};
use tidemark_measure::wire;

fuzz_target!(|bytes: &[u8]| {
    let Ok(summary) = wire::summary(bytes) else { return };
    let mut sum = Interval::new(summary.index, 2);
    match wire::add(bytes, &mut sum) {
        Ok(added) => {
            assert_eq!(added.ok, sum.actions.iter().map(|tally| tally.ok).sum::<u64>());
            let again = wire::encode(&sum);
            assert_eq!(wire::summary(&again).map(|one| one.ok).ok(), Some(summary.ok));
        }
        Err(_) => assert!(sum.actions.iter().all(|tally: &Tally| tally.total() == 0)),
    }
});
