//! The cells of an evaluation in the order in which they are run.

use super::{Evaluation, Levels, Order};
use tidemark_measure::evaluation::Level;
use tidemark_measure::rng::Rng;

/// One run to be done: its place in the evaluation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CellPlace {
    /// Which of [`Evaluation::arms`].
    pub arm: usize,
    /// Which of [`Evaluation::loads`].
    pub load: usize,
    /// The load intensity.
    pub level: Level,
    /// Which repeat, from 1.
    pub repeat: u32,
}

impl Evaluation {
    /// All runs of loads whose levels are listed, in the order of execution. Loads with a search have none here: what
    /// comes next in a search depends on what was seen.
    pub fn cells(&self) -> Vec<CellPlace> {
        let all: Vec<usize> = (0..self.arms.len()).collect();
        match self.order {
            Order::Blocks => all.iter().flat_map(|arm| self.rounds(|_| vec![*arm])).collect(),
            Order::Interleaved => self.rounds(|[repeat, ..]| match repeat.is_multiple_of(2) {
                true => all.iter().rev().copied().collect(),
                false => all.clone(),
            }),
            Order::Random => self.rounds(|path| shuffled(all.clone(), &mut Rng::new(self.seed, &path))),
        }
    }

    /// Repeat by repeat, load by load, level by level, each on the arms that `arms` gives for these three.
    fn rounds(&self, arms: impl Fn([u64; 3]) -> Vec<usize>) -> Vec<CellPlace> {
        let mut cells = Vec::new();
        for repeat in 1..=self.repeats {
            for (load, found) in self.loads.iter().enumerate() {
                let Levels::Listed(levels) = &found.levels else { continue };
                for (number, level) in levels.iter().enumerate() {
                    let arms = arms([u64::from(repeat), load as u64, number as u64]);
                    let place = |arm| CellPlace { arm, load, level: level.clone(), repeat };
                    cells.extend(arms.into_iter().map(place));
                }
            }
        }
        cells
    }
}

/// Fisher and Yates's shuffle.
fn shuffled(mut items: Vec<usize>, rng: &mut Rng) -> Vec<usize> {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last as u64 + 1) as usize);
    }
    items
}
