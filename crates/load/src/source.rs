//! Which operation comes next, and on what: an endless weighted mix, a finite scan, or a list that each worker goes through.

use crate::engine::{Operation, Outcome};
use crate::pool::{Pool, Ticket};
use serde::{Deserialize, Serialize};
use tidemark_measure::pick::{Cursor, Part, Pick};
use tidemark_measure::rng::Rng;

/// What a worker does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SourcePlan {
    /// Picks one of several actions by weight, again and again.
    Mix {
        /// The choices; weights need not add up to anything.
        choices: Vec<Choice>,
        /// Which objects exist, if the mix is to read only those.
        pool: Option<PoolPlan>,
        /// Whether the actions come exactly as often as their weights say: each worker then draws from a shuffled deck that has as
        /// many cards of a choice as its weight, a whole number, and shuffles it again when it is used up.
        deck: bool,
    },
    /// Does one action once on every item of every space, divided evenly among the workers, and ends.
    Scan {
        /// Which action.
        action: u16,
        /// Spaces (containers), from low to high; `None`: none.
        spaces: Option<(u64, u64)>,
        /// Items (objects) in each space; `None`: the action is on the space itself.
        items: Option<(u64, u64)>,
        /// Bytes of each operation.
        bytes: Size,
    },
    /// Each worker does the actions of an order of its own, one after the other, and ends: queries of a stream. An operation's
    /// space is its worker's number from 1, its item the round's from 0.
    Rounds {
        /// The orders, one for each worker.
        orders: Vec<Vec<u16>>,
        /// How often each worker goes through its order.
        rounds: u32,
    },
}

/// One action of a mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// How items follow each other.
    pub order: Order,
    /// An operation that follows every n-th of these.
    pub follow: Option<Follow>,
}

/// How the items of a choice follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// As the choice's pick defines.
    #[default]
    Picked,
    /// Each begins where the last one of the worker ended, from the lowest item of the pick's bounds to the highest
    /// and again from the start: a stream of operations of any sizes. An item is `unit` bytes.
    Consecutive {
        /// Bytes of one item, at least 1.
        unit: u64,
    },
}

/// An operation that a worker does after every n-th operation of a choice, on the same space: a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follow {
    /// Which action.
    pub action: u16,
    /// After how many, at least 1.
    pub every: u32,
}

/// How many bytes: a pick in some unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// How many units.
    pub pick: Pick,
    /// Bytes in a unit: 1 for B, 1000 for KB, 1024 for KiB ...
    pub unit: u64,
}

/// What is divided among the workers of a work, so that each has a part of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Division {
    /// Nothing: all workers use all of it.
    #[default]
    None,
    /// The range of spaces (COSBench `container`).
    Spaces,
    /// The range of items in every space (COSBench `object`).
    Items,
}

/// What an action does to the pool of existing objects. With a pool, items are picked by the pool, all that
/// qualify being equally likely; the choice's own pick is used by `Free` alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Takes any item, existing or not (its own pick decides).
    #[default]
    Free,
    /// Needs an existing item (read, head, copy from).
    Uses,
    /// Makes a new item, or writes an existing one again when all items exist.
    Makes,
    /// Takes an existing item away.
    Removes,
}

/// The live pool: which items exist. Every worker has its own slice of the items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolPlan {
    /// Spaces of the pool, low to high.
    pub spaces: (u64, u64),
    /// Items of each space that may ever exist, low to high.
    pub items: (u64, u64),
    /// Items of each space that exist at the start, low to high; `None`: none do.
    pub existing: Option<(u64, u64)>,
}

impl SourcePlan {
    /// The choices of a mix.
    pub fn choices(&self) -> Option<&[Choice]> {
        match self {
            SourcePlan::Mix { choices, .. } => Some(choices),
            SourcePlan::Scan { .. } | SourcePlan::Rounds { .. } => None,
        }
    }

    /// How many operations it has in all; `None` for a mix, which does not end.
    pub fn operations(&self) -> Option<u64> {
        match self {
            SourcePlan::Mix { .. } => None,
            SourcePlan::Scan { spaces, items, .. } => Some(scan_length(*spaces, *items)),
            SourcePlan::Rounds { orders, rounds } => {
                let actions: usize = orders.iter().map(Vec::len).sum();
                Some((actions as u64).saturating_mul(u64::from(*rounds)))
            }
        }
    }

    /// The most bytes that one of its operations may ask for.
    pub fn largest(&self) -> u64 {
        let largest = |size: &Size| size.pick.bounds().1.saturating_mul(size.unit);
        match self {
            SourcePlan::Mix { choices, .. } => {
                choices.iter().map(|choice| largest(&choice.bytes)).max().unwrap_or(0)
            }
            SourcePlan::Scan { bytes, .. } => largest(bytes),
            SourcePlan::Rounds { .. } => 0,
        }
    }

    /// The source of one worker: its part of what is divided, drawn at random from `rng`.
    pub fn worker(&self, rng: Rng, part: Part) -> Source {
        let kind = match self {
            SourcePlan::Mix { choices, pool, deck } => {
                let mix = Mix::new(choices, pool.as_ref(), part);
                let cards = deck.then(|| Deck::new(mix.ways.iter().map(|way| way.weight as usize)));
                Kind::Mix(Mix { deck: cards, ..mix })
            }
            SourcePlan::Scan { action, spaces, items, bytes } => {
                Kind::Scan(Scan::new(*action, *spaces, *items, bytes, part))
            }
            SourcePlan::Rounds { orders, rounds } => Kind::Rounds(Rounds::new(orders, *rounds, part)),
        };
        Source { rng, kind }
    }
}

fn scan_length(spaces: Option<(u64, u64)>, items: Option<(u64, u64)>) -> u64 {
    let length = |(low, high): (u64, u64)| (high + 1).saturating_sub(low);
    spaces.map_or(0, length).saturating_mul(items.map_or(1, length))
}

/// One worker's operations. What it gives depends on the plan, the seed and the worker's number alone; with a
/// pool also on which operations succeeded.
pub struct Source {
    rng: Rng,
    kind: Kind,
}

enum Kind {
    Mix(Mix),
    Scan(Scan),
    Rounds(Rounds),
}

/// What the source requires when an operation has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt(Option<Ticket>);

impl Source {
    /// The next operation, or `None` when there is none left.
    #[inline]
    pub fn draw(&mut self) -> Option<(Operation, Receipt)> {
        match &mut self.kind {
            Kind::Mix(mix) => mix.next(&mut self.rng),
            Kind::Scan(scan) => scan.next(&mut self.rng).map(|operation| (operation, Receipt(None))),
            Kind::Rounds(rounds) => rounds.next(&mut self.rng).map(|operation| (operation, Receipt(None))),
        }
    }

    /// Whether the next operation is one that follows those before it, as a sync does.
    #[inline]
    pub fn owes(&self) -> bool {
        matches!(&self.kind, Kind::Mix(Mix { due: Some(_), .. }))
    }

    /// Takes note of how an operation ended.
    #[inline]
    pub fn ended(&mut self, receipt: Receipt, outcome: &Outcome) {
        if let (Some(ticket), Kind::Mix(Mix { pool: Some(pool), .. })) = (receipt.0, &mut self.kind) {
            pool.ended(ticket, outcome.fault.is_none());
        }
    }

    /// Operations that it still has; 0 for a mix, which does not end.
    pub fn left(&self) -> u64 {
        match &self.kind {
            Kind::Mix(_) => 0,
            Kind::Scan(scan) => scan.end - scan.next,
            Kind::Rounds(rounds) => rounds.end - rounds.next,
        }
    }

    /// The worker's random stream, for choices outside the operation itself (arrival times).
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }
}

struct Mix {
    ways: Vec<Way>,
    total: f64,
    pool: Option<Pool>,
    deck: Option<Deck>,
    /// What follows the last operation: an action on a space.
    due: Option<(u16, u64)>,
}

/// A deck of cards, each of which names a way.
struct Deck {
    cards: Vec<u16>,
    /// How many have been drawn.
    drawn: usize,
}

impl Deck {
    /// So many cards of each way.
    fn new(cards: impl Iterator<Item = usize>) -> Self {
        let cards: Vec<u16> =
            cards.zip(0..).flat_map(|(count, way)| std::iter::repeat_n(way, count)).collect();
        Self { drawn: cards.len(), cards }
    }

    /// The next card; `None` of a deck that has none. Cards that are left in the shuffle of Fisher and Yates are not touched.
    #[inline]
    fn draw(&mut self, rng: &mut Rng) -> Option<usize> {
        if self.drawn >= self.cards.len() {
            self.drawn = 0;
        }
        let left = self.cards.len() - self.drawn;
        if left == 0 {
            return None;
        }
        let chosen = self.drawn + rng.below(left as u64) as usize;
        self.cards.swap(self.drawn, chosen);
        self.drawn += 1;
        self.cards.get(self.drawn - 1).map(|way| usize::from(*way))
    }
}

struct Way {
    action: u16,
    weight: f64,
    spaces: Cursor,
    items: Cursor,
    sizes: Cursor,
    unit: u64,
    effect: Effect,
    run: Option<Run>,
    follow: Option<Follow>,
    /// Operations of this choice since the last one that followed.
    since: u32,
}

/// A worker's place in a stream of consecutive items.
#[derive(Clone, Copy)]
struct Run {
    low: u64,
    high: u64,
    unit: u64,
    next: u64,
}

impl Run {
    /// The item at which an operation of `bytes` bytes begins.
    #[inline]
    fn advance(&mut self, bytes: u64) -> u64 {
        let length = bytes.div_ceil(self.unit).max(1);
        let at = if self.next + length > self.high + 1 { self.low } else { self.next };
        self.next = at + length;
        at
    }
}

impl Mix {
    fn new(choices: &[Choice], pool: Option<&PoolPlan>, part: Part) -> Self {
        let own = |pick: &Pick, divided: bool| match divided {
            true => pick.divided(part).map(|own| own.cursor(Part::WHOLE)),
            false => Some(pick.cursor(part)),
        };
        let way = |choice: &Choice| {
            let narrowed = match choice.division {
                Division::Items => choice.items.divided(part)?,
                Division::None | Division::Spaces => choice.items.clone(),
            };
            let run = match choice.order {
                Order::Picked => None,
                Order::Consecutive { unit } => {
                    let (low, high) = narrowed.bounds();
                    Some(Run { low, high, unit: unit.max(1), next: low })
                }
            };
            Some(Way {
                action: choice.action,
                weight: choice.weight,
                spaces: own(&choice.spaces, choice.division == Division::Spaces)?,
                items: own(&choice.items, choice.division == Division::Items)?,
                run,
                follow: choice.follow,
                since: 0,
                sizes: choice.bytes.pick.cursor(part),
                unit: choice.bytes.unit,
                effect: choice.effect,
            })
        };
        // A worker whose slice is empty has nothing to do: COSBench crashes there, the forecast warns.
        let ways: Vec<Way> = choices.iter().filter_map(way).collect();
        let total = ways.iter().map(|way| way.weight).sum();
        Self { ways, total, pool: pool.map(|plan| Pool::new(plan, part)), deck: None, due: None }
    }

    fn next(&mut self, rng: &mut Rng) -> Option<(Operation, Receipt)> {
        if let Some((action, space)) = self.due.take() {
            return Some((Operation { action, space, ..Operation::default() }, Receipt(None)));
        }
        let chosen = self.choose(rng)?;
        let (mut way, mut ticket) = (chosen, None);
        if let Some(pool) = &mut self.pool {
            // With nothing to read or delete the worker makes something, if the mix allows it.
            let take = |pool: &mut Pool, way: &Way, rng: &mut Rng| match way.effect {
                Effect::Free => Some(None),
                effect => pool.take(effect, rng).map(Some),
            };
            ticket = match take(pool, &self.ways[way], rng) {
                Some(ticket) => ticket,
                None => {
                    way = self.ways.iter().position(|way| way.effect == Effect::Makes)?;
                    Some(pool.take(Effect::Makes, rng)?)
                }
            };
        }
        let way = &mut self.ways[way];
        let (space, item, bytes) = match (ticket, &mut way.run) {
            (Some(ticket), _) => (ticket.space, ticket.item, way.sizes.next(rng)),
            (None, None) => (way.spaces.next(rng), way.items.next(rng), way.sizes.next(rng)),
            (None, Some(run)) => {
                let (space, size) = (way.spaces.next(rng), way.sizes.next(rng));
                (space, run.advance(size.saturating_mul(way.unit)), size)
            }
        };
        let bytes = bytes.saturating_mul(way.unit);
        if let Some(follow) = way.follow {
            way.since += 1;
            if way.since >= follow.every {
                (way.since, self.due) = (0, Some((follow.action, space)));
            }
        }
        let operation = Operation { action: way.action, space, item, bytes, random: rng.bits() };
        Some((operation, Receipt(ticket)))
    }

    #[inline]
    fn choose(&mut self, rng: &mut Rng) -> Option<usize> {
        if let Some(deck) = &mut self.deck {
            return deck.draw(rng);
        }
        let last = self.ways.len().checked_sub(1)?;
        if last == 0 {
            return Some(0);
        }
        let mut left = rng.unit() * self.total;
        for (index, way) in self.ways.iter().enumerate() {
            if left < way.weight {
                return Some(index);
            }
            left -= way.weight;
        }
        Some(last)
    }
}

struct Scan {
    action: u16,
    first_space: u64,
    first_item: u64,
    items: u64,
    next: u64,
    end: u64,
    sizes: Cursor,
    unit: u64,
}

impl Scan {
    fn new(
        action: u16,
        spaces: Option<(u64, u64)>,
        items: Option<(u64, u64)>,
        bytes: &Size,
        part: Part,
    ) -> Self {
        let total = scan_length(spaces, items);
        // All pairs in one row, cut evenly: no worker idles while another has two containers to fill.
        let (next, end) = match total {
            0 => (0, 0),
            _ => part.slice(0, total - 1).map_or((0, 0), |(first, last)| (first, last + 1)),
        };
        Self {
            action,
            first_space: spaces.map_or(0, |(low, _)| low),
            first_item: items.map_or(0, |(low, _)| low),
            items: items.map_or(1, |(low, high)| (high + 1).saturating_sub(low)).max(1),
            next,
            end,
            sizes: bytes.pick.cursor(part),
            unit: bytes.unit,
        }
    }

    fn next(&mut self, rng: &mut Rng) -> Option<Operation> {
        if self.next >= self.end {
            return None;
        }
        let place = self.next;
        self.next += 1;
        Some(Operation {
            action: self.action,
            space: self.first_space + place / self.items,
            item: self.first_item + place % self.items,
            bytes: self.sizes.next(rng).saturating_mul(self.unit),
            random: rng.bits(),
        })
    }
}

/// A worker's way through its order.
struct Rounds {
    order: Vec<u16>,
    worker: u64,
    next: u64,
    end: u64,
}

impl Rounds {
    fn new(orders: &[Vec<u16>], rounds: u32, part: Part) -> Self {
        let order = orders.get(part.index as usize).cloned().unwrap_or_default();
        let end = (order.len() as u64).saturating_mul(u64::from(rounds));
        Self { order, worker: u64::from(part.index) + 1, next: 0, end }
    }

    fn next(&mut self, rng: &mut Rng) -> Option<Operation> {
        if self.next >= self.end {
            return None;
        }
        let length = self.order.len() as u64;
        let (round, place) = (self.next / length, self.next % length);
        self.next += 1;
        let action = self.order[place as usize];
        Some(Operation { action, space: self.worker, item: round, bytes: 0, random: rng.bits() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    fn size(bytes: u64) -> Size {
        Size { pick: Pick::Constant(bytes), unit: 1 }
    }

    fn choice(action: u16, weight: f64, effect: Effect) -> Choice {
        Choice {
            action,
            weight,
            spaces: Pick::Uniform { low: 1, high: 3 },
            items: Pick::Uniform { low: 1, high: 50 },
            bytes: size(4096),
            division: Division::None,
            effect,
            order: Order::Picked,
            follow: None,
        }
    }

    #[test]
    fn a_scan_touches_everything_once_however_many_workers_share_it() {
        let plan = SourcePlan::Scan { action: 0, spaces: Some((1, 3)), items: Some((5, 11)), bytes: size(9) };
        for of in [1, 2, 7, 40] {
            let mut seen = HashSet::new();
            for index in 0..of {
                let mut source = plan.worker(Rng::new(1, &[0, 0, index.into()]), Part { index, of });
                while let Some((operation, _)) = source.draw() {
                    assert_eq!(operation.bytes, 9);
                    assert!(seen.insert((operation.space, operation.item)));
                }
            }
            assert_eq!(seen.len(), 21);
            assert!(seen.contains(&(1, 5)) && seen.contains(&(3, 11)));
        }
        assert_eq!(plan.operations(), Some(21));
    }

    #[test]
    fn each_worker_goes_through_its_own_order_and_ends() {
        let plan = SourcePlan::Rounds { orders: vec![vec![2, 0, 1], vec![1]], rounds: 2 };
        let drawn = |index: u32| {
            let mut source = plan.worker(Rng::new(1, &[0, 0, index.into()]), Part { index, of: 3 });
            let drawn = std::iter::from_fn(|| source.draw());
            drawn.map(|(one, _)| (one.action, one.space, one.item)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(0), [(2, 1, 0), (0, 1, 0), (1, 1, 0), (2, 1, 1), (0, 1, 1), (1, 1, 1)]);
        assert_eq!(drawn(1), [(1, 2, 0), (1, 2, 1)]);
        assert_eq!(
            (drawn(2), plan.operations()),
            (vec![], Some(8)),
            "a worker without an order has nothing to do"
        );
    }

    #[test]
    fn a_mix_keeps_its_weights_and_repeats_with_its_seed() {
        let plan = SourcePlan::Mix {
            choices: vec![choice(0, 70.0, Effect::Free), choice(1, 30.0, Effect::Free)],
            pool: None,
            deck: false,
        };
        let draw = |seed| {
            let mut source = plan.worker(Rng::new(seed, &[2, 0, 3]), Part { index: 3, of: 8 });
            (0..20_000).map(|_| source.draw().unwrap().0).collect::<Vec<_>>()
        };
        let drawn = draw(11);
        assert_eq!(drawn, draw(11));
        assert_ne!(drawn, draw(12));
        let reads = drawn.iter().filter(|operation| operation.action == 0).count();
        assert!((13_600..14_400).contains(&reads), "{reads} of 20,000 should be near 14,000");
    }

    #[test]
    fn a_deck_has_exactly_its_cards_and_is_shuffled_anew() {
        let plan = SourcePlan::Mix {
            choices: vec![
                choice(0, 10.0, Effect::Free),
                choice(1, 10.0, Effect::Free),
                choice(2, 1.0, Effect::Free),
            ],
            pool: None,
            deck: true,
        };
        let mut source = plan.worker(Rng::new(3, &[0, 0, 2]), Part { index: 2, of: 5 });
        let decks: Vec<Vec<u16>> =
            (0..50).map(|_| (0..21).map(|_| source.draw().unwrap().0.action).collect()).collect();
        for deck in &decks {
            let count = |action| deck.iter().filter(|one| **one == action).count();
            assert_eq!([count(0), count(1), count(2)], [10, 10, 1]);
        }
        assert!(decks.windows(2).filter(|two| two[0] == two[1]).count() < 2, "{decks:?}");
        let last: std::collections::HashSet<_> =
            decks.iter().filter_map(|deck| deck.iter().position(|one| *one == 2)).collect();
        assert!(last.len() > 10, "the rarest card is anywhere: {last:?}");
    }

    #[test]
    fn a_pool_reads_and_deletes_only_what_exists() {
        let plan = SourcePlan::Mix {
            choices: vec![
                choice(0, 40.0, Effect::Uses),
                choice(1, 30.0, Effect::Makes),
                choice(2, 30.0, Effect::Removes),
            ],
            pool: Some(PoolPlan { spaces: (1, 3), items: (1, 50), existing: Some((1, 10)) }),
            deck: false,
        };
        let mut exists: HashMap<(u64, u64), bool> = HashMap::new();
        let mut source = plan.worker(Rng::new(5, &[0, 0, 0]), Part::WHOLE);
        for _ in 0..50_000 {
            let (operation, receipt) = source.draw().unwrap();
            let key = (operation.space, operation.item);
            let there = exists.entry(key).or_insert(operation.item <= 10);
            assert!((1..=3).contains(&key.0) && (1..=50).contains(&key.1));
            match operation.action {
                0 => assert!(*there, "{key:?} was read and did not exist"),
                1 => *there = true,
                _ => {
                    assert!(*there, "{key:?} was deleted and did not exist");
                    *there = false;
                }
            }
            source.ended(receipt, &Outcome::success(0));
        }
    }
}
