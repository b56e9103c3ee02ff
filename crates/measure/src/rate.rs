//! Rates of operations over time, and their integral: pure arithmetic.

use serde::{Deserialize, Serialize};

/// Operations per second over time: straight lines between points.
///
/// Two points at the same time make a step. Before the first point the rate is the first point's, after
/// the last the last's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// (nanoseconds since the work's start, operations per second), times ascending; never empty.
    pub points: Vec<(u64, f64)>,
}

impl Rate {
    /// The same rate at all times.
    pub fn constant(per_second: f64) -> Self {
        Self { points: vec![(0, per_second)] }
    }

    /// The rate with a straight rise from nothing over the first `ramp_ns`.
    pub fn with_ramp(&self, ramp_ns: u64) -> Self {
        if ramp_ns == 0 {
            return self.clone();
        }
        let inside = self.points.iter().filter(|(at, _)| *at > 0 && *at < ramp_ns);
        let risen = inside.map(|(at, rate)| (*at, rate * *at as f64 / ramp_ns as f64));
        let after = self.points.iter().copied().filter(|(at, _)| *at > ramp_ns);
        let points = std::iter::once((0, 0.0))
            .chain(risen)
            .chain([(ramp_ns, self.at(ramp_ns))])
            .chain(after)
            .collect();
        Self { points }
    }

    /// Operations per second at a time (after the step, where there is one).
    pub fn at(&self, time_ns: u64) -> f64 {
        let after = self.points.partition_point(|(at, _)| *at <= time_ns);
        match (after.checked_sub(1).map(|before| self.points[before]), self.points.get(after)) {
            (None, first) => first.map_or(0.0, |(_, rate)| *rate),
            (Some((_, rate)), None) => rate,
            (Some((from, low)), Some((to, high))) => {
                low + (high - low) * (time_ns - from) as f64 / (to - from) as f64
            }
        }
    }

    /// Operations due between two times, by the rate's integral.
    pub fn due_between(&self, from_ns: u64, to_ns: u64) -> f64 {
        let pieces = Pieces::new(self);
        pieces.count_at(to_ns) - pieces.count_at(from_ns)
    }
    /// Operations per second on average between two times.
    pub fn mean_between(&self, from_ns: u64, to_ns: u64) -> f64 {
        let seconds = to_ns.saturating_sub(from_ns).max(1) as f64 / 1e9;
        self.due_between(from_ns, to_ns) / seconds
    }
}

/// The integral of a rate, ready to be inverted: straight pieces, the last one without an end.
#[derive(Clone, Debug)]
pub struct Pieces(Vec<Piece>);

#[derive(Clone, Copy, Debug)]
struct Piece {
    start_s: f64,
    /// Operations due before its start.
    count: f64,
    rate: f64,
    /// Change of the rate per second.
    slope: f64,
}

impl Pieces {
    /// Of this rate.
    pub fn new(rate: &Rate) -> Self {
        let mut pieces = vec![];
        let mut count = 0.0;
        let mut push = |start_ns: u64, end_ns: Option<u64>, from: f64, to: f64| {
            let start_s = start_ns as f64 / 1e9;
            let length = end_ns.map(|end| (end - start_ns) as f64 / 1e9);
            let slope = length.filter(|length| *length > 0.0).map_or(0.0, |length| (to - from) / length);
            pieces.push(Piece { start_s, count, rate: from, slope });
            count += length.unwrap_or(0.0) * (from + to) / 2.0;
        };
        if let Some((at, first)) = rate.points.first().filter(|(at, _)| *at > 0) {
            push(0, Some(*at), *first, *first);
        }
        for pair in rate.points.windows(2) {
            push(pair[0].0, Some(pair[1].0), pair[0].1, pair[1].1);
        }
        if let Some((at, last)) = rate.points.last() {
            push(*at, None, *last, *last);
        }
        Self(pieces)
    }

    fn count_at(&self, time_ns: u64) -> f64 {
        let time = time_ns as f64 / 1e9;
        let piece = self.0.iter().rev().find(|piece| piece.start_s <= time);
        piece.map_or(0.0, |piece| {
            let passed = time - piece.start_s;
            piece.count + passed * (piece.rate + piece.slope * passed / 2.0)
        })
    }

    /// When the integral reaches `count`, in nanoseconds; `None` when it never does. `from` is the piece to
    /// begin the search at, and is moved on: due times ascend.
    pub fn time_of(&self, count: f64, from: &mut usize) -> Option<u64> {
        while self.0.get(*from + 1).is_some_and(|next| next.count <= count) {
            *from += 1;
        }
        let piece = self.0.get(*from)?;
        let wanted = (count - piece.count).max(0.0);
        // Solves rate t + slope t^2 / 2 = wanted in the form that is stable for small slopes.
        let root = (piece.rate * piece.rate + 2.0 * piece.slope * wanted).max(0.0).sqrt();
        let passed = if wanted == 0.0 { 0.0 } else { 2.0 * wanted / (piece.rate + root) };
        passed.is_finite().then_some(((piece.start_s + passed) * 1e9) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_a_rate_is_its_integral_over_the_time() {
        let second = 1_000_000_000;
        let rate = Rate { points: vec![(0, 0.0), (10 * second, 1000.0)] };
        assert!((rate.mean_between(0, 10 * second) - 500.0).abs() < 1e-9);
        assert!((rate.mean_between(10 * second, 12 * second) - 1000.0).abs() < 1e-9);
        assert_eq!(rate.mean_between(5, 5), 0.0);
    }
}
