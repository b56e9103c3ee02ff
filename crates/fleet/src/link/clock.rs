//! How far a driver's clock is ahead of the controller's: Network Time Protocol's arithmetic (RFC 5905, sections 8 and 10).

use std::collections::VecDeque;

/// Most samples that are kept.
const SAMPLES: usize = 64;

/// How long a sample is good for, nanoseconds.
const GOOD_FOR_NS: i64 = 60_000_000_000;

/// A clock that is farther ahead or behind is none.
const FARTHEST_NS: i128 = i64::MAX as i128 / 4;

/// How fast two clocks may drift apart: 15 parts per million (RFC 5905, `PHI`).
const DRIFT_PER_NS: f64 = 15e-6;

/// The result of a ping and its reply.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// When the answer came, the controller's clock.
    at_ns: i64,
    /// How far the driver's clock was ahead.
    offset_ns: i64,
    /// The most that this could be wrong then: half of the round trip.
    error_ns: i64,
}

/// What is known of a driver's clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    samples: VecDeque<Sample>,
}

impl Clock {
    /// Takes the times of a ping: when it was sent and when its answer came by the controller's clock; when it came and when it
    /// was answered by the driver's. Times that cannot be are left aside; returns whether they can.
    pub(crate) fn take(&mut self, sent_ns: i64, came_ns: i64, answered_ns: i64, back_ns: i64) -> bool {
        let [sent, came, answered, back] = [sent_ns, came_ns, answered_ns, back_ns].map(i128::from);
        let round_trip = (back - sent) - (answered - came);
        let offset = ((came - sent) + (answered - back)) / 2;
        // Whoever reckons with the offset later is not to overflow: no clock is a hundred years ahead.
        let possible = back >= sent && answered >= came && round_trip >= 0 && offset.abs() < FARTHEST_NS;
        if !possible || back - sent > i128::from(GOOD_FOR_NS) {
            return false;
        }
        let offset_ns = i64::try_from(offset).unwrap_or_default();
        // Never nothing: half a round trip is rounded up.
        let error_ns = i64::try_from(round_trip / 2 + 1).unwrap_or(i64::MAX);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { at_ns: back_ns, offset_ns, error_ns });
        true
    }

    /// Whether anything is known.
    pub(crate) fn known(&self) -> bool {
        !self.samples.is_empty()
    }

    /// How far the driver's clock is ahead, and the most that this can be wrong: the sample that is best by now, which is that of
    /// the shortest round trip unless it is so old that the clocks may have drifted. While nothing is known: 0, and the
    /// greatest error.
    pub(crate) fn offset_ns(&self, now_ns: i64) -> (i64, u64) {
        let error_by_now = |sample: &Sample| {
            let age = now_ns.saturating_sub(sample.at_ns).max(0);
            sample.error_ns.saturating_add((age as f64 * DRIFT_PER_NS) as i64)
        };
        self.samples
            .iter()
            .filter(|sample| now_ns.saturating_sub(sample.at_ns) <= GOOD_FOR_NS)
            .map(|sample| (error_by_now(sample), sample.offset_ns))
            .min()
            // Of a driver that was silent for longer, the last sample is still the best there is.
            .or_else(|| self.samples.back().map(|sample| (error_by_now(sample), sample.offset_ns)))
            .map_or((0, u64::MAX), |(error, offset)| (offset, error.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_shortest_round_trip_counts() {
        let mut clock = Clock::default();
        assert_eq!(clock.offset_ns(0), (0, u64::MAX));
        // 100 ms ahead; 10 ms there, 2 ms to answer, 30 ms back: wrong by 10 ms, which is within half of 40.
        assert!(clock.take(0, 110 * MS, 112 * MS, 42 * MS));
        assert_eq!(clock.offset_ns(42 * MS), (90 * MS, 20_000_001));
        // 1 ms there, 1 ms back.
        assert!(clock.take(50 * MS, 151 * MS, 151 * MS, 52 * MS));
        assert_eq!(clock.offset_ns(52 * MS), (100 * MS, 1_000_001));
        assert!(clock.take(60 * MS, 180 * MS, 180 * MS, 70 * MS));
        assert_eq!(clock.offset_ns(52 * MS).0, 100 * MS);
    }

    #[test]
    fn old_samples_lose_to_new_ones_and_are_dropped() {
        let mut clock = Clock::default();
        clock.take(0, 0, 0, 2 * MS / 100);
        let (offset, error) = clock.offset_ns(20_000 * MS);
        assert_eq!(offset, -MS / 100);
        assert!(error > 300_000, "20 s of drift: {error}");
        clock.take(20_000 * MS, 20_000 * MS, 20_000 * MS, 20_000 * MS + MS / 10);
        assert_eq!(clock.offset_ns(20_001 * MS).0, -MS / 20);
        clock.take(70_000 * MS, 70_000 * MS, 70_000 * MS, 70_050 * MS);
        assert_eq!(clock.offset_ns(81_000 * MS).0, -25 * MS);
    }

    #[test]
    fn impossible_times_are_left_aside() {
        let mut clock = Clock::default();
        assert!(!clock.take(10, 0, 0, 5));
        assert!(!clock.take(0, 10, 5, 20));
        assert!(!clock.take(0, 0, 100, 50));
        assert!(!clock.take(i64::MIN, i64::MAX, i64::MAX, i64::MAX));
        assert!(!clock.take(i64::MIN, 0, 0, i64::MIN + 1));
        assert!(!clock.take(0, i64::MAX, i64::MAX, 1));
        assert_eq!(clock.offset_ns(i64::MAX), (0, u64::MAX));
    }
}
