//! Patterns of block load: direction, order and block sizes.

use super::{Action, Volume};
use tidemark_load::source::{Choice, Division, Effect, Follow, Order, Size, SourcePlan};
use tidemark_load::work::Finale;
use tidemark_measure::pick::{Bucket, Pick};

/// What a load does, block sizes aside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pattern {
    /// Its name in documents and reports.
    pub(crate) name: &'static str,
    /// Which way data moves.
    pub(crate) moves: Moves,
    /// Share of operations at random offsets, 0 to 1; the others follow each other.
    pub(crate) random: f64,
    /// Block sizes and their weights where the document gives none; empty if it must.
    pub(crate) blocks: &'static [(u64, u64)],
}

/// Which way data moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Moves {
    /// Reads and writes: the share of reads, 0 to 1.
    Data {
        /// Share of reads.
        reads: f64,
    },
    /// Ranges are given back.
    Trim,
}

const fn data(name: &'static str, reads: f64, random: f64) -> Pattern {
    Pattern { name, moves: Moves::Data { reads }, random, blocks: &[] }
}

/// The patterns by fio's names.
pub(crate) const PATTERNS: [Pattern; 8] = [
    data("read", 1.0, 0.0),
    data("write", 0.0, 0.0),
    data("randread", 1.0, 1.0),
    data("randwrite", 0.0, 1.0),
    data("rw", 0.5, 0.0),
    data("randrw", 0.5, 1.0),
    Pattern { name: "trim", moves: Moves::Trim, random: 0.0, blocks: &[] },
    Pattern { name: "randtrim", moves: Moves::Trim, random: 1.0, blocks: &[] },
];

impl Pattern {
    /// The same with other shares of reads and of random operations, where they are given.
    pub(crate) fn with(mut self, reads: Option<f64>, random: Option<f64>) -> Self {
        if let (Moves::Data { reads: own }, Some(reads)) = (&mut self.moves, reads) {
            *own = reads;
        }
        self.random = random.unwrap_or(self.random);
        self
    }

    /// Share of reads among reads and writes.
    pub(crate) fn reads(&self) -> Option<f64> {
        match self.moves {
            Moves::Data { reads } => Some(reads),
            Moves::Trim => None,
        }
    }

    /// Whether it both reads and writes.
    pub(crate) fn is_mixed(&self) -> bool {
        matches!(self.moves, Moves::Data { reads } if reads > 0.0 && reads < 1.0)
    }

    /// Whether it writes at all.
    pub(crate) fn writes(&self) -> bool {
        matches!(self.moves, Moves::Data { reads } if reads < 1.0)
    }

    /// Whether some operations follow each other.
    pub(crate) fn is_sequential(&self) -> bool {
        self.random < 1.0
    }

    /// What it does, with the share of each.
    fn shares(&self) -> Vec<(Action, f64)> {
        let all = match self.moves {
            Moves::Data { reads } => vec![(Action::Read, reads), (Action::Write, 1.0 - reads)],
            Moves::Trim => vec![(Action::Trim, 1.0)],
        };
        all.into_iter().filter(|(_, share)| *share > 0.0).collect()
    }
}

/// Block sizes, in bytes, and how often each is used, as weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockSizes(Vec<(u64, u64)>);

impl BlockSizes {
    /// Sizes and weights, none of them zero; at least one.
    pub(crate) fn new(sizes: &[(u64, u64)]) -> Self {
        Self(sizes.to_vec())
    }

    /// Bytes of one item: the greatest length that divides all of them.
    pub(crate) fn unit(&self) -> u64 {
        self.0.iter().fold(0, |unit, (bytes, _)| greatest_common_divisor(unit, *bytes)).max(1)
    }

    /// The largest, bytes.
    pub(crate) fn largest(&self) -> u64 {
        self.0.iter().map(|(bytes, _)| *bytes).max().unwrap_or(1)
    }

    /// Whether all blocks have one size.
    pub(crate) fn is_single(&self) -> bool {
        self.single().is_some()
    }

    /// The size of all blocks, if it is one, bytes.
    pub(crate) fn single(&self) -> Option<u64> {
        if let [(bytes, _)] = self.0[..] { Some(bytes) } else { None }
    }

    /// `4 KiB`, or `4 KiB:60 64 KiB:40`; with another space between number and unit if there is to be none.
    pub(crate) fn text(&self, space: &str) -> String {
        match &self.0[..] {
            [(bytes, _)] => exact(*bytes, space),
            several => {
                let each = |(bytes, weight): &(u64, u64)| format!("{}:{weight}", exact(*bytes, space));
                several.iter().map(each).collect::<Vec<_>>().join(if space.is_empty() { "/" } else { " " })
            }
        }
    }

    /// Any of them by weight.
    fn size(&self, unit: u64) -> Size {
        let pick = match &self.0[..] {
            [(bytes, _)] => Pick::Constant(bytes / unit),
            several => {
                let bucket = |(bytes, weight): &(u64, u64)| Bucket {
                    low: bytes / unit,
                    high: bytes / unit,
                    weight: *weight,
                };
                Pick::Weighted(several.iter().map(bucket).collect())
            }
        };
        Size { pick, unit }
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

pub(crate) use tidemark_measure::units::exact_bytes as exact;

/// How random offsets spread over a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Spread {
    /// All equally likely.
    #[default]
    Uniform,
    /// Few of them very often, with this exponent.
    Zipf(f64),
}

/// One load: a pattern on volumes.
pub(crate) struct Shape<'a> {
    /// What it does.
    pub(crate) pattern: Pattern,
    /// Its block sizes.
    pub(crate) blocks: &'a BlockSizes,
    /// Where random operations go.
    pub(crate) spread: Spread,
    /// How many clients.
    pub(crate) clients: u32,
    /// The volumes, at least one, all of one size: one for each client, or one for all of them.
    pub(crate) volumes: &'a [Volume],
    /// A sync after this many writes.
    pub(crate) sync: Option<(Action, u32)>,
    /// Whether every volume is synced at the end.
    pub(crate) end_sync: bool,
}

/// A load in the load core's terms.
pub(crate) struct Drawn {
    /// Operations.
    pub(crate) source: SourcePlan,
    /// What its actions are, with the share of each in the mix, in percent.
    pub(crate) actions: Vec<(Action, f64)>,
    /// The syncs at the end.
    pub(crate) finale: Option<Finale>,
}

impl Shape<'_> {
    /// The load in the load core's terms.
    pub(crate) fn draw(&self) -> Drawn {
        let shares = self.pattern.shares();
        let mut actions: Vec<(Action, f64)> =
            shares.iter().map(|(action, share)| (*action, share * 100.0)).collect();
        let mut number = |action: Action| {
            let at = actions.iter().position(|(known, _)| *known == action).unwrap_or_else(|| {
                actions.push((action, 0.0));
                actions.len() - 1
            });
            at as u16
        };
        let follow = self.sync.map(|(action, every)| Follow { action: number(action), every });
        let spaces = (1, self.volumes.len() as u64);
        let finale = self.end_sync.then(|| Finale { action: number(Action::Fsync), spaces });
        let mut choices = Vec::new();
        for (index, (action, share)) in shares.iter().enumerate() {
            let follow = follow.filter(|_| *action == Action::Write);
            let (random, index) = (self.pattern.random, index as u16);
            if random < 1.0 {
                choices.push(Choice { follow, ..self.sequential(index, share * (1.0 - random) * 100.0) });
            }
            if random > 0.0 {
                let all = self.random(index, share * random * 100.0);
                choices.extend(all.map(|choice| Choice { follow, ..choice }));
            }
        }
        Drawn { source: SourcePlan::Mix { choices, pool: None, deck: false }, actions, finale }
    }

    /// Operations that follow each other, whatever their sizes.
    fn sequential(&self, action: u16, weight: f64) -> Choice {
        let unit = self.blocks.unit();
        let items = Pick::Sequence { low: 0, high: (self.bytes() / unit).saturating_sub(1) };
        let division = if self.is_shared() { Division::Items } else { Division::Spaces };
        let (size, order) = (self.blocks.size(unit), Order::Consecutive { unit });
        self.choice(action, weight, items, size, division, order)
    }

    /// Operations anywhere: a choice for each size, so that none goes beyond the end.
    fn random(&self, action: u16, weight: f64) -> impl Iterator<Item = Choice> {
        let unit = self.blocks.unit();
        let weights: u64 = self.blocks.0.iter().map(|(_, weight)| *weight).sum();
        let division = if self.is_shared() { Division::None } else { Division::Spaces };
        self.blocks.0.iter().map(move |(bytes, share)| {
            let high = self.bytes().saturating_sub(*bytes) / unit;
            let items = match self.spread {
                Spread::Uniform => Pick::Uniform { low: 0, high },
                Spread::Zipf(exponent) => Pick::Zipf { low: 0, high, exponent },
            };
            let weight = weight * *share as f64 / weights.max(1) as f64;
            let size = Size { pick: Pick::Constant(bytes / unit), unit };
            self.choice(action, weight, items, size, division, Order::Picked)
        })
    }

    fn choice(
        &self,
        action: u16,
        weight: f64,
        items: Pick,
        bytes: Size,
        division: Division,
        order: Order,
    ) -> Choice {
        let spaces = Pick::Sequence { low: 1, high: self.volumes.len() as u64 };
        Choice { action, weight, spaces, items, bytes, division, effect: Effect::Free, order, follow: None }
    }

    /// Whether several clients are on one volume.
    fn is_shared(&self) -> bool {
        self.volumes.len() == 1 && self.clients > 1
    }

    /// Size of each volume.
    fn bytes(&self) -> u64 {
        self.volumes.first().map_or(0, |volume| volume.size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Place;
    use super::*;
    use tidemark_measure::pick::Part;
    use tidemark_measure::rng::Rng;

    fn volumes(count: u64, size: u64) -> Vec<Volume> {
        let volume = |number: u64| Volume { place: Place::File(format!("/f-{number}").into()), size };
        (1..=count).map(volume).collect()
    }

    fn pattern(name: &str) -> Pattern {
        *PATTERNS.iter().find(|pattern| pattern.name == name).unwrap()
    }

    fn shape<'a>(name: &str, blocks: &'a BlockSizes, clients: u32, volumes: &'a [Volume]) -> Shape<'a> {
        let (pattern, spread) = (pattern(name), Spread::Uniform);
        Shape { pattern, blocks, spread, clients, volumes, sync: None, end_sync: false }
    }

    /// The operations of one client: action, space, offset and length in bytes.
    fn operations(shape: &Shape<'_>, client: u32, count: usize) -> Vec<(u16, u64, u64, u64)> {
        let unit = shape.blocks.unit();
        let part = Part { index: client, of: shape.clients };
        let mut source = shape.draw().source.worker(Rng::new(1, &[0, 0, client.into()]), part);
        let draw = |_| {
            let operation = source.draw().unwrap().0;
            (operation.action, operation.space, operation.item * unit, operation.bytes)
        };
        (0..count).map(draw).collect()
    }

    #[test]
    fn no_operation_goes_beyond_the_end_and_all_sizes_occur() {
        let volumes = volumes(1, 100 << 10);
        let blocks = BlockSizes::new(&[(4 << 10, 60), (48 << 10, 40)]);
        for name in ["read", "randwrite", "rw", "randrw", "randtrim"] {
            let shape = shape(name, &blocks, 1, &volumes);
            let drawn = operations(&shape, 0, 2000);
            assert!(
                drawn.iter().all(|(_, space, at, bytes)| *space == 1 && at + bytes <= 100 << 10),
                "{name}"
            );
            let large = drawn.iter().filter(|(.., bytes)| *bytes == 48 << 10).count();
            assert!((600..1000).contains(&large), "{name}: {large} of 2000 should be near 800");
        }
        assert_eq!(blocks.unit(), 4 << 10);
        assert_eq!(
            (blocks.text(" "), blocks.text("")),
            ("4 KiB:60 48 KiB:40".into(), "4KiB:60/48KiB:40".into())
        );
        assert_eq!((exact(1536, " "), exact(1 << 20, "")), ("1536 B".into(), "1MiB".into()));
    }

    #[test]
    fn a_client_keeps_to_its_volume_or_to_its_part_of_the_only_one() {
        let blocks = BlockSizes::new(&[(4096, 1)]);
        let (own, one) = (volumes(3, 64 << 10), volumes(1, 64 << 10));
        for client in 0..3 {
            for name in ["write", "randread"] {
                let drawn = operations(&shape(name, &blocks, 3, &own), client, 100);
                assert!(drawn.iter().all(|(_, space, ..)| *space == u64::from(client) + 1), "{name}");
            }
        }
        let offsets = |client| {
            let drawn = operations(&shape("write", &blocks, 2, &one), client, 8);
            drawn.into_iter().map(|(_, space, at, _)| (space, at >> 12)).collect::<Vec<_>>()
        };
        assert_eq!(offsets(0), (0..8).map(|block| (1, block)).collect::<Vec<_>>());
        assert_eq!(offsets(1), (8..16).map(|block| (1, block)).collect::<Vec<_>>());
        let anywhere = operations(&shape("randread", &blocks, 2, &one), 1, 500);
        assert!(anywhere.iter().any(|(.., at, _)| *at < 32 << 10), "random clients are all over it");
    }

    #[test]
    fn syncs_follow_writes_and_end_the_load() {
        let (volumes, blocks) = (volumes(2, 1 << 20), BlockSizes::new(&[(4096, 1)]));
        let shape = Shape {
            sync: Some((Action::Fdatasync, 4)),
            end_sync: true,
            ..shape("randrw", &blocks, 2, &volumes)
        };
        let drawn = shape.draw();
        let actions: Vec<_> = drawn.actions.iter().map(|(action, _)| *action).collect();
        assert_eq!(actions, [Action::Read, Action::Write, Action::Fdatasync, Action::Fsync]);
        assert_eq!(drawn.finale, Some(Finale { action: 3, spaces: (1, 2) }));
        let all = operations(&shape, 0, 1000);
        let count = |number: u16| all.iter().filter(|(action, ..)| *action == number).count();
        assert!(count(1).abs_diff(count(2) * 4) <= 4, "{} writes, {} syncs", count(1), count(2));
    }
}
