//! Which operation comes next, and on what: a weighted mix that goes on for ever, or a scan that ends.

use tidemark_measure::pick::Pick;

/// What a worker does.
#[derive(Clone, Debug, PartialEq)]
pub enum SourcePlan {
    /// Picks one of several actions by weight, again and again.
    Mix {
        /// The choices; weights need not add up to anything.
        choices: Vec<Choice>,
        /// Which objects exist, if the mix is to read only those.
        pool: Option<PoolPlan>,
    },
    /// Does one action once on every item of every space, divided among the workers, and ends.
    Scan {
        /// Which action.
        action: u16,
        /// Spaces (containers), from low to high; `None`: none.
        spaces: Option<(u64, u64)>,
        /// Items (objects) in each space; `None`: the action is on the space itself.
        items: Option<(u64, u64)>,
        /// What is divided among the workers.
        division: Division,
        /// Bytes of each operation.
        bytes: Size,
    },
}

/// One action of a mix.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Which action.
    pub action: u16,
    /// Relative weight, above 0.
    pub weight: f64,
    /// Which space (container).
    pub spaces: Pick,
    /// Which item (object) in it.
    pub items: Pick,
    /// How many bytes.
    pub bytes: Size,
    /// What is divided among the workers.
    pub division: Division,
    /// What it does to the pool of existing objects, when there is one.
    pub effect: Effect,
}

/// How many bytes: a pick in some unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// How many units.
    pub pick: Pick,
    /// Bytes in a unit: 1 for B, 1000 for KB, 1024 for KiB ...
    pub unit: u64,
}

/// What is divided among the workers of a work, so that each has a part of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Division {
    /// Nothing: all workers use all of it.
    #[default]
    None,
    /// The range of spaces (COSBench `container`).
    Spaces,
    /// The range of items in every space (COSBench `object`).
    Items,
}

/// What an action does to the pool of existing objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// Takes any item, existing or not (its own pick decides).
    #[default]
    Free,
    /// Needs an existing item (read, head, copy from).
    Uses,
    /// Makes an item: a new one by its own pick, or again one that exists.
    Makes,
    /// Takes an existing item away.
    Removes,
}

/// The live pool: which items exist. Every worker has its own slice of the items.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolPlan {
    /// Spaces of the pool, low to high.
    pub spaces: (u64, u64),
    /// Items of each space that may ever exist, low to high.
    pub items: (u64, u64),
    /// Items of each space that exist at the start, low to high; `None`: none do.
    pub existing: Option<(u64, u64)>,
}
