//! Sweeps: a load whose settings are lists becomes one stage for each combination, and for each repeat.

use super::pattern::{BlockSizes, Pattern};
use tidemark_measure::axis;

/// The settings of a load that may be lists.
pub(crate) struct Axes {
    /// Patterns.
    pub(crate) patterns: Axis<Pattern>,
    /// Block sizes; no values: each pattern's own.
    pub(crate) blocks: Axis<BlockSizes>,
    /// Operations in flight per client.
    pub(crate) depths: Axis<u32>,
    /// Clients.
    pub(crate) clients: Axis<u32>,
    /// How often all of it is done, at least 1.
    pub(crate) repeats: u32,
}

/// The values of one setting.
pub(crate) struct Axis<T> {
    /// The values, in the document's order.
    pub(crate) values: Vec<T>,
    /// Whether the document gives a list, so that it is an axis of a sweep.
    pub(crate) listed: bool,
}

/// One combination, and which of its repeats.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// A short name: `write 4KiB 8 clients #2`.
    pub(crate) name: String,
    /// Its place on the axes.
    pub(crate) axes: Vec<axis::Axis>,
    /// From 1.
    pub(crate) repeat: u32,
    /// The pattern.
    pub(crate) pattern: Pattern,
    /// Its block sizes.
    pub(crate) blocks: BlockSizes,
    /// Operations in flight per client.
    pub(crate) depth: u32,
    /// Clients.
    pub(crate) clients: u32,
}

impl Axes {
    /// Whether the load is a sweep: an axis or repeats make it one.
    pub(crate) fn is_sweep(&self) -> bool {
        self.patterns.listed
            || self.blocks.listed
            || self.depths.listed
            || self.clients.listed
            || self.repeats > 1
    }

    /// How many points it has.
    pub(crate) fn count(&self) -> u64 {
        let lengths = [self.patterns.values.len(), self.blocks.values.len().max(1), self.depths.values.len()];
        let each = lengths.iter().map(|length| *length as u64).fold(1, u64::saturating_mul);
        each.saturating_mul(self.clients.values.len() as u64).saturating_mul(u64::from(self.repeats))
    }

    /// All points. Repeats come last: everything once, then everything again, so that what changes with time does
    /// not look like a difference between points.
    pub(crate) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for repeat in 1..=self.repeats {
            for pattern in &self.patterns.values {
                let own = [BlockSizes::new(pattern.blocks)];
                let blocks = if self.blocks.values.is_empty() { &own[..] } else { &self.blocks.values };
                for blocks in blocks {
                    for depth in &self.depths.values {
                        let point = |clients| self.point(repeat, *pattern, blocks, *depth, clients);
                        points.extend(self.clients.values.iter().map(|clients| point(*clients)));
                    }
                }
            }
        }
        points
    }

    /// What a pattern is called among others: with its block size, if that is its own.
    pub(crate) fn pattern_named(&self, pattern: &Pattern) -> String {
        match pattern.blocks {
            [_] if self.blocks.values.is_empty() => {
                format!("{} {}", pattern.name, BlockSizes::new(pattern.blocks).text(" "))
            }
            _ => pattern.name.to_owned(),
        }
    }

    fn point(&self, repeat: u32, pattern: Pattern, blocks: &BlockSizes, depth: u32, clients: u32) -> Point {
        let (mut name, mut axes) = (pattern.name.to_owned(), Vec::new());
        let size = match blocks.single() {
            Some(bytes) => axis::Axis::bytes("block_size", bytes),
            None => axis::Axis::word("block_size", blocks.text(" ")),
        };
        axes.extend(
            [
                (self.patterns.listed, axis::Axis::word("pattern", self.pattern_named(&pattern))),
                (self.blocks.listed, size),
                (self.depths.listed, axis::Axis::count("depth", depth)),
                (self.clients.listed, axis::Axis::count("clients", clients)),
            ]
            .into_iter()
            .filter_map(|(listed, axis)| listed.then_some(axis)),
        );
        if self.blocks.listed || blocks.is_single() {
            name += &format!(" {}", blocks.text(""));
        }
        if self.depths.listed {
            name += &format!(" depth {depth}");
        }
        if self.clients.listed {
            name += &format!(" {clients} {}", if clients == 1 { "client" } else { "clients" });
        }
        if self.repeats > 1 {
            name += &format!(" #{repeat}");
        }
        Point { name, axes, repeat, pattern, blocks: blocks.clone(), depth, clients }
    }
}
