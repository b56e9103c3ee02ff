//! Two-level fractional factorial designs with their fold-over (Box, Hunter and Hunter, Statistics for Experimenters, 2005, 6 and 7).
//!
//! With its fold-over, the same runs with all ends exchanged, a design in which every column is used still keeps the effects of single
//! settings apart from those of pairs (resolution IV).

use tidemark_measure::rng::Rng;
use tidemark_measure::tuning::{Configuration, Space};

/// Rows without repeats, fold-over included, for this many effects: at least eight, so that something is left to tell the noise from.
pub(crate) fn rows(effects: usize) -> usize {
    (2 * (effects + 1).next_power_of_two()).max(8)
}

/// For each of so many rows, whether each setting is at its other end.
fn ends(settings: usize, rows: usize) -> Vec<Vec<bool>> {
    let half = rows / 2;
    let columns = columns(half, settings);
    let row = |row: usize| columns.iter().map(move |column| (row & column).count_ones() % 2 == 1);
    let first: Vec<Vec<bool>> = (0..half).map(|index| row(index).collect()).collect();
    let folded = first.iter().map(|row| row.iter().map(|end| !end).collect()).collect::<Vec<Vec<bool>>>();
    first.into_iter().chain(folded).collect()
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

/// The configurations of a screening. A choice among several words has the baseline's at one end; at the other the rest take turns. Each of
/// them has an effect of its own: there are rows to tell all of these apart, unless that would be more than so many.
pub(crate) fn screening(space: &Space, most: usize) -> Vec<Configuration> {
    let count = space.settings.len();
    let effects = space.settings.iter().map(|setting| setting.levels().len() - 1).sum();
    let rows = if rows(effects) <= most { rows(effects) } else { rows(count) };
    let mut turns = vec![0usize; count];
    let configuration = |row: Vec<bool>| {
        let value = |(index, end): (usize, bool)| {
            let levels = space.settings[index].levels();
            if !end {
                return levels[0];
            }
            turns[index] += 1;
            word(index, turns[index] - 1, &levels[1..])
        };
        space.settled(Configuration(row.into_iter().enumerate().map(value).collect()))
    };
    ends(count, rows).into_iter().map(configuration).collect()
}

/// Which of a setting's words has this turn. Each has as many, in an order that is drawn anew when all have had theirs: always the same
/// order would go with the rows' own pattern.
fn word(setting: usize, turn: usize, words: &[f64]) -> f64 {
    let mut rng = Rng::new(0, &[setting as u64, (turn / words.len()) as u64]);
    let mut order = words.to_vec();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order[turn % words.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::tuning::MOST_SETTINGS;

    #[test]
    fn columns_are_balanced_and_apart_from_each_other_and_from_pairs() {
        for settings in 1..=MOST_SETTINGS {
            let design = ends(settings, rows(settings));
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
    fn the_effects_of_several_words_are_told_apart() {
        use tidemark_measure::tuning::{Domain, Setting, TakesEffect};
        for (choices, words) in
            (1..=8usize).flat_map(|choices| (2..=8usize).map(move |words| (choices, words)))
        {
            let setting = |index: usize| Setting {
                name: format!("s{index}"),
                domain: Domain::Choice((0..words).map(|word| format!("w{word}")).collect()),
                baseline: 0.0,
                unit: String::new(),
                takes_effect: TakesEffect::Run,
                when: None,
            };
            let space = Space { settings: (0..choices).map(setting).collect() };
            // Each word of each choice brings something of its own.
            let score = |one: &Configuration| {
                one.0.iter().enumerate().map(|(index, word)| word * (index + 1) as f64).sum()
            };
            let screened: Vec<(Configuration, f64)> =
                screening(&space, usize::MAX).into_iter().map(|one| (one.clone(), score(&one))).collect();
            let found = crate::effects::effects(&space, &screened, &[], &|_| 0.0, None, false, 0.05);
            let found =
                found.unwrap_or_else(|| panic!("{choices} choices of {words} words are not told apart"));
            assert_eq!(found.effects.len(), choices * (words - 1));
            for effect in found.effects {
                let truth = effect.to * (effect.setting + 1) as f64;
                assert!(
                    (effect.score - truth).abs() < 1e-6,
                    "{choices} choices of {words} words: {effect:?}"
                );
            }
        }
    }

    #[test]
    fn designs_are_as_small_as_the_method_allows() {
        assert_eq!([1, 2, 3, 4, 7, 8, 15].map(rows), [8, 8, 8, 16, 16, 32, 32]);
    }
}
