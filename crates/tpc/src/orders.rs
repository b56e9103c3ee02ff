//! The order of queries in streams.
//!
//! The specification lists its orders (appendix A); these are others, drawn once and for all by the same rule for every stream, so
//! that the streams of a run differ from each other and those of two runs do not.

use tidemark_measure::rng::Rng;

/// Names the random streams that orders are drawn from.
const SEED: u64 = 0x7063_682d_6c69_6b65;

/// The order of `count` things in a stream, from 0: a permutation of `0..count` (Fisher and Yates).
pub fn order(count: u16, stream: u32) -> Vec<u16> {
    let mut order: Vec<u16> = (0..count).collect();
    let mut rng = Rng::new(SEED, &[u64::from(stream)]);
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_has_all_queries_in_an_order_of_its_own() {
        let orders: Vec<_> = (0..41).map(|stream| order(22, stream)).collect();
        for (stream, own) in orders.iter().enumerate() {
            let mut sorted = own.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..22));
            assert!(!orders[..stream].contains(own), "stream {stream}");
            assert_eq!(order(22, stream as u32), *own, "the same in every run");
        }
        assert_eq!((order(0, 3), order(1, 3)), (vec![], vec![0]));
    }
}
