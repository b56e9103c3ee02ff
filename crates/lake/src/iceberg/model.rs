//! What a table must contain, known from what was committed to it: rows follow from a seed, their number and the cycle that gave them
//! their values.

use crate::iceberg::rows::{CATEGORIES, Row};
use std::ops::Range;
use tidemark_measure::rng::Rng;

/// The committer of all rows.
const COMMITTER: i32 = 1;

/// Stands for the cycle of a row that is not there.
const NONE: u32 = u32::MAX;

/// What a commit did to the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delta {
    /// Rows with these numbers came.
    Came(Range<u64>),
    /// Rows got the values that this cycle gives them.
    Changed(Vec<u64>, u32),
    /// Files were written anew; rows are as they were.
    Nothing,
}

/// Rows, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub rows: u64,
    pub amount: i64,
}

/// The rows of a table.
#[derive(Debug)]
pub(crate) struct Model {
    seed: u64,
    /// The cycle that gave each row its values; 0 of those that were never changed.
    since: Vec<u32>,
    categories: Vec<Sums>,
    checksum: u64,
}

impl Model {
    /// That of a table without rows.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, since: Vec::new(), categories: vec![Sums::default(); CATEGORIES as usize], checksum: 0 }
    }

    /// The row with this number, as this cycle makes it.
    pub(crate) fn row(&self, number: u64, cycle: u32) -> Row {
        Row::new(number as i64, COMMITTER, &mut Rng::new(self.seed, &[number, cycle.into()]))
    }

    /// Takes note of what a commit did.
    pub(crate) fn apply(&mut self, delta: &Delta) {
        match delta {
            Delta::Came(numbers) => {
                let least = self.since.len().max(numbers.end as usize);
                self.since.resize(least, NONE);
                numbers.clone().for_each(|number| self.set(number, 0));
            }
            Delta::Changed(numbers, cycle) => numbers.iter().for_each(|number| self.set(*number, *cycle)),
            Delta::Nothing => {}
        }
    }

    fn set(&mut self, number: u64, cycle: u32) {
        let before = std::mem::replace(&mut self.since[number as usize], cycle);
        if before != NONE {
            let row = self.row(number, before);
            self.checksum = self.checksum.wrapping_sub(row.hash());
            let sums = &mut self.categories[row.category as usize];
            (sums.rows, sums.amount) = (sums.rows - 1, sums.amount - row.amount);
        }
        let row = self.row(number, cycle);
        self.checksum = self.checksum.wrapping_add(row.hash());
        let sums = &mut self.categories[row.category as usize];
        (sums.rows, sums.amount) = (sums.rows + 1, sums.amount + row.amount);
    }

    /// Its rows, and the sum of their hashes.
    pub(crate) fn checksum(&self) -> (u64, u64) {
        (self.categories.iter().map(|sums| sums.rows).sum(), self.checksum)
    }

    /// The sums over each category that has rows.
    pub(crate) fn categories(&self) -> impl Iterator<Item = (i32, Sums)> {
        (0..).zip(self.categories.iter().copied()).filter(|(_, sums)| sums.rows > 0)
    }

    /// One more than the highest number of a row that has been there.
    pub(crate) fn end(&self) -> u64 {
        self.since.len() as u64
    }

    /// The numbers of its rows, and the cycle of each.
    fn numbers(&self, among: Range<u64>) -> impl Iterator<Item = (u64, u32)> {
        let all = self.since.iter().copied();
        let within = all.take(among.end as usize).enumerate().skip(among.start as usize);
        within.map(|(number, cycle)| (number as u64, cycle)).filter(|(_, cycle)| *cycle != NONE)
    }

    /// The sums over the rows with these numbers.
    pub(crate) fn sums(&self, among: Range<u64>) -> Sums {
        self.numbers(among).fold(Sums::default(), |sums, (number, cycle)| Sums {
            rows: sums.rows + 1,
            amount: sums.amount + self.row(number, cycle).amount,
        })
    }

    /// Each of its rows with this probability; at least one, if there is any.
    pub(crate) fn draw(&self, share: f64, rng: &mut Rng) -> Vec<u64> {
        let all = || self.numbers(0..self.end()).map(|(number, _)| number);
        let drawn: Vec<u64> = all().filter(|_| rng.unit() < share).collect();
        if drawn.is_empty() { all().take(1).collect() } else { drawn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_rows_as_they_are_now() {
        let mut model = Model::new(7);
        model.apply(&Delta::Came(0..100));
        // Those from 100 to 149 never came.
        model.apply(&Delta::Came(150..160));
        let changed = model.draw(0.3, &mut Rng::new(1, &[]));
        assert!(
            (10..60).contains(&changed.len()) && changed.iter().all(|number| !(100..150).contains(number))
        );
        model.apply(&Delta::Changed(changed.clone(), 3));
        model.apply(&Delta::Nothing);
        let rows: Vec<Row> = (0..100)
            .chain(150..160)
            .map(|number| model.row(number, if changed.contains(&number) { 3 } else { 0 }))
            .collect();
        let hash = rows.iter().map(Row::hash).fold(0, u64::wrapping_add);
        assert_eq!(model.checksum(), (110, hash));
        let amount = rows.iter().map(|row| row.amount).sum();
        assert_eq!(model.sums(0..model.end()), Sums { rows: 110, amount });
        let whole = model.categories().fold(Sums::default(), |all, (_, sums)| Sums {
            rows: all.rows + sums.rows,
            amount: all.amount + sums.amount,
        });
        assert_eq!(whole, Sums { rows: 110, amount });
        assert_eq!(model.sums(90..155).rows, 15);
        assert_eq!(model.draw(0.0, &mut Rng::new(1, &[])), [0]);
        assert_eq!(Model::new(1).draw(0.5, &mut Rng::new(1, &[])), [0; 0]);
    }
}
