//! Two-level fractional factorial designs with their fold-over (Box, Hunter and Hunter, Statistics for Experimenters, 2005, 6 and 7).
//!
//! With its fold-over, the same runs with all ends exchanged, a design in which every column is used still keeps the effects of single
//! settings apart from those of pairs (resolution IV).

use tidemark_measure::tuning::{Configuration, Space};

/// Rows without repeats, fold-over included, for this many settings: at least eight, so that something is left to tell the noise from.
pub(crate) fn rows(settings: usize) -> usize {
    (2 * (settings + 1).next_power_of_two()).max(8)
}

/// For each row, whether each setting is at its other end.
fn ends(settings: usize) -> Vec<Vec<bool>> {
    let half = (settings + 1).next_power_of_two();
    let columns = columns(half, settings);
    let row = |row: usize| columns.iter().map(move |column| (row & column).count_ones() % 2 == 1);
    let first: Vec<Vec<bool>> = (0..half).map(|index| row(index).collect()).collect();
    let folded = first.iter().map(|row| row.iter().map(|end| !end).collect()).collect::<Vec<Vec<bool>>>();
    let design: Vec<Vec<bool>> = first.into_iter().chain(folded).collect();
    let all = rows(settings);
    design.iter().cycle().take(all).cloned().collect()
}

/// The columns for the settings, as masks of the base factors' bits: these first, then the products of as many of them as possible.
fn columns(half: usize, settings: usize) -> Vec<usize> {
    let mut columns: Vec<usize> = (1..half).collect();
    columns.sort_by_key(|mask| match mask.count_ones() {
        1 => (0, *mask),
        bits => (half - bits as usize, *mask),
    });
    columns.truncate(settings);
    columns
}

/// The configurations of a screening. A choice among several words has the baseline's at one end; at the other the rest take turns.
pub(crate) fn screening(space: &Space) -> Vec<Configuration> {
    let count = space.settings.len();
    let mut turns = vec![0usize; count];
    let configuration = |row: Vec<bool>| {
        let value = |(index, end): (usize, bool)| {
            let levels = space.settings[index].levels();
            if !end {
                return levels[0];
            }
            turns[index] += 1;
            levels[1 + (turns[index] - 1) % (levels.len() - 1)]
        };
        space.settled(Configuration(row.into_iter().enumerate().map(value).collect()))
    };
    ends(count).into_iter().map(configuration).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::tuning::MOST_SETTINGS;

    #[test]
    fn columns_are_balanced_and_apart_from_each_other_and_from_pairs() {
        for settings in 1..=MOST_SETTINGS {
            let design = ends(settings);
            assert_eq!(design.len(), rows(settings));
            let sign = |row: &Vec<bool>, index: usize| if row[index] { 1i32 } else { -1 };
            let sum = |columns: &[usize]| -> i32 {
                design.iter().map(|row| columns.iter().map(|index| sign(row, *index)).product::<i32>()).sum()
            };
            for one in 0..settings {
                assert_eq!(sum(&[one]), 0, "{settings} settings: {one} is at each end as often");
                for other in 0..one {
                    assert_eq!(sum(&[one, other]), 0, "{settings} settings: {one} and {other}");
                    for third in 0..other {
                        assert_eq!(
                            sum(&[one, other, third]),
                            0,
                            "{settings}: {one} and {other} with {third}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn designs_are_as_small_as_the_method_allows() {
        assert_eq!([1, 2, 3, 4, 7, 8, 15].map(rows), [8, 8, 8, 16, 16, 32, 32]);
    }
}
