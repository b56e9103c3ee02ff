//! The 56 queries that read most, frozen for each engine and scale.
//!
//! How they were found: tables in files with the layout that `prepare` has by default, all queries in one stream in the order of their
//! numbers, twice at each scale, with an empty page cache before each (`cache: cold`), ranked by the bytes that they asked storage for;
//! the parts of a query together. The report of such a run has the ranking, how far it agrees with those of the run's other works,
//! and how much of it is in the set on file; `examples/tpcds-lake.yaml` is one.
//!
//! DataFusion 55.2.0 on two threads read 351 MB for all queries at scale 0.1 and 2.37 GB at scale 1. Both runs at a scale agreed in all
//! 56 (Spearman's rank correlation 1.0000). The two scales agree in 44, with a correlation of 0.73: hence a set for each. At scale 1 the
//! last of the 56 and the first of the others are 0.2 % apart (12.758 MB and 12.736 MB), at scale 0.1 1.1 % (1.761 MB and 1.742 MB).
//! What a few queries read depends on timing, for filters that one part of a query gives to another come sooner or later: four
//! executions of q64 at scale 0.1 read 1.27 to more than 1.77 MB, so a run can have it among its 56 in place of q57.

/// How many there are.
pub const COUNT: usize = 56;

/// The name of DataFusion, as [`MostRead::engine`] has it.
pub const DATAFUSION: &str = "DataFusion";

/// The queries that read most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MostRead {
    /// The engine that read it.
    pub engine: &'static str,
    /// The scale at which they were found, in thousandths.
    pub scale_milli: u64,
    /// The numbers of the queries, in their order.
    pub numbers: [u8; COUNT],
}

/// The largest scale is the first: a set is for its scale and all above it, as far as no other is; the last is for those below, too.
static ON_FILE: [MostRead; 2] = [
    MostRead {
        engine: DATAFUSION,
        scale_milli: 1000,
        numbers: [
            2, 3, 4, 5, 7, 9, 11, 13, 14, 17, 18, 19, 23, 24, 25, 27, 28, 29, 31, 33, 36, 42, 44, 46, 47, 48,
            49, 51, 52, 53, 54, 55, 56, 58, 59, 60, 61, 63, 64, 65, 67, 68, 70, 71, 72, 74, 75, 76, 77, 78,
            79, 80, 85, 88, 93, 98,
        ],
    },
    MostRead {
        engine: DATAFUSION,
        scale_milli: 100,
        numbers: [
            2, 4, 5, 7, 9, 10, 11, 13, 14, 17, 18, 23, 24, 25, 26, 27, 28, 29, 31, 33, 35, 36, 38, 46, 47,
            48, 49, 51, 56, 57, 58, 59, 60, 61, 65, 66, 68, 69, 70, 71, 72, 74, 75, 76, 77, 78, 79, 80, 83,
            84, 85, 87, 88, 91, 92, 98,
        ],
    },
];

/// The queries that read most on an engine at a scale, in thousandths; `None` of an engine for which they were not found.
pub fn on_file(engine: &str, scale_milli: u64) -> Option<&'static MostRead> {
    let of_engine = || ON_FILE.iter().filter(|set| set.engine == engine);
    of_engine().find(|set| set.scale_milli <= scale_milli).or_else(|| of_engine().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ds::QUERIES;

    #[test]
    fn sets_are_of_different_queries_in_their_order() {
        for set in &ON_FILE {
            assert!(set.numbers.windows(2).all(|pair| pair[0] < pair[1]), "{set:?}");
            assert!(set.numbers[0] >= 1 && set.numbers[COUNT - 1] <= QUERIES);
        }
    }

    #[test]
    fn the_nearest_scale_below_decides() {
        let scale = |milli| on_file(DATAFUSION, milli).map(|set| set.scale_milli);
        assert_eq!([10, 100, 999, 1000, 100_000].map(scale), [100, 100, 100, 1000, 1000].map(Some));
        assert_eq!(on_file("another", 1000), None);
    }
}
