//! How often each class of something occurred: an array on the hot path, pairs of class and count in records.

use crate::fault::Fault;
use crate::verification::Unchecked;
use serde::{Deserialize, Serialize};

/// How many operations failed, by class.
pub type FaultCounts = Counts<Fault, { Fault::COUNT }>;

/// How many reads could not be verified, by reason.
pub type UncheckedCounts = Counts<Unchecked, { Unchecked::COUNT }>;

/// A closed list of classes, numbered densely from 0.
pub trait Class: Copy + PartialEq + 'static {
    /// All of them, in the order of their numbers.
    const ALL: &'static [Self];

    /// The number of this one.
    fn number(self) -> usize;
}

/// How often each of `N` classes occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(C, u64)>", into = "Vec<(C, u64)>")]
#[serde(bound(serialize = "C: Class + Serialize", deserialize = "C: Class + Deserialize<'de>"))]
pub struct Counts<C: Class, const N: usize> {
    counts: [u64; N],
    of: std::marker::PhantomData<C>,
}

impl<C: Class, const N: usize> Default for Counts<C, N> {
    fn default() -> Self {
        Self { counts: [0; N], of: std::marker::PhantomData }
    }
}

impl<C: Class, const N: usize> Counts<C, N> {
    /// Counts one.
    #[inline]
    pub fn count(&mut self, class: C) {
        self.counts[class.number()] += 1;
    }

    /// How many of this class there were.
    pub fn of(&self, class: C) -> u64 {
        self.counts[class.number()]
    }

    /// How many there were in all.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The classes that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (C, u64)> + '_ {
        C::ALL.iter().map(|class| (*class, self.of(*class))).filter(|(_, count)| *count > 0)
    }

    /// Adds the counts of `other`; sums saturate.
    pub fn add(&mut self, other: &Self) {
        for (own, other) in self.counts.iter_mut().zip(other.counts) {
            *own = own.saturating_add(other);
        }
    }
}

impl<C: Class, const N: usize> From<Vec<(C, u64)>> for Counts<C, N> {
    fn from(pairs: Vec<(C, u64)>) -> Self {
        let mut counts = Self::default();
        for (class, count) in pairs {
            let own = &mut counts.counts[class.number()];
            *own = own.saturating_add(count);
        }
        counts
    }
}

impl<C: Class, const N: usize> From<Counts<C, N>> for Vec<(C, u64)> {
    fn from(counts: Counts<C, N>) -> Self {
        counts.iter().collect()
    }
}
