//! Token buckets: so much at once, so much per second, for each key apart.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Keys that are remembered at most.
const MOST_KEYS: usize = 10_000;

/// A bucket for each key: it holds so much, and fills at a rate.
pub(crate) struct Buckets<K> {
    per_second: f64,
    at_once: f64,
    levels: Mutex<HashMap<K, Level>>,
}

#[derive(Clone, Copy)]
struct Level {
    left: f64,
    at: Instant,
}

impl<K: Hash + Eq> Buckets<K> {
    pub(crate) fn new(per_second: f64, at_once: f64) -> Self {
        Self { per_second, at_once, levels: Mutex::default() }
    }

    /// Takes one out, or says after how long there will be one.
    pub(crate) fn take(&self, key: K, now: Instant) -> Result<(), Duration> {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if levels.len() >= MOST_KEYS {
            // Those that are full again say nothing. If none is, forgetting all of them is the lesser evil.
            levels.retain(|_, level| self.left(*level, now) < self.at_once);
            if levels.len() >= MOST_KEYS {
                levels.clear();
            }
        }
        let level = levels.entry(key).or_insert(Level { left: self.at_once, at: now });
        let left = self.left(*level, now);
        let (taken, answer) = if left >= 1.0 { (1.0, Ok(())) } else { (0.0, Err(self.until_one(left))) };
        *level = Level { left: left - taken, at: now };
        answer
    }

    fn left(&self, level: Level, now: Instant) -> f64 {
        let since = now.saturating_duration_since(level.at).as_secs_f64();
        (level.left + since * self.per_second).min(self.at_once)
    }

    fn until_one(&self, left: f64) -> Duration {
        Duration::try_from_secs_f64((1.0 - left) / self.per_second).unwrap_or(Duration::from_secs(3600))
    }
}

/// What counts as one address: of IPv6 the network, for a host has a whole one to choose from.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_what_it_holds_and_fills_again() {
        let buckets = Buckets::new(2.0, 3.0);
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!((0..5).filter(|_| buckets.take("a", start).is_ok()).count(), 3);
        assert_eq!(buckets.take("a", start), Err(Duration::from_millis(500)));
        assert_eq!(buckets.take("a", at(500)), Ok(()));
        assert!(buckets.take("a", at(600)).is_err());
        assert_eq!((0..9).filter(|_| buckets.take("a", at(60_000)).is_ok()).count(), 3);
    }

    #[test]
    fn many_keys_take_little_room() {
        let buckets = Buckets::new(1.0, 2.0);
        let now = Instant::now();
        assert!((0..3 * MOST_KEYS).all(|key| buckets.take(key, now).is_ok()));
        assert!(buckets.levels.lock().unwrap().len() <= MOST_KEYS);
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let one: IpAddr = "2001:db8::1:2".parse().unwrap();
        let other: IpAddr = "2001:db8::ffff:9:9".parse().unwrap();
        assert_eq!(network(one), network(other));
        assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), IpAddr::from([192, 0, 2, 1]));
    }
}
