//! The settings of a block load that may be lists: patterns, block sizes, depths, clients.

use super::work::Ground;
use crate::job::pattern::{BlockSizes, PATTERNS, Pattern, exact};
use crate::job::profile::{PROFILES, Profile};
use crate::job::sweep::{Axes, Axis};
use tidemark_keys::kinds::{Kind, Parsed, Share, Whole, choose};
use tidemark_keys::shapes::{Either, OneOrList};
use tidemark_keys::tree::{Node, Value};
use tidemark_keys::{Absent, AnyKey, Key, Mapping, Problem, Shape, Table};
use tidemark_measure::record::Note;
use tidemark_measure::units;
use tidemark_plan::defaults::{self, MOST_DEPTH};

/// More values of one axis than this are treated as a mistake.
const MOST_VALUES: usize = 1000;

/// The smallest block that any device has, bytes.
const SECTOR: u64 = 512;

/// The largest block, bytes: Linux moves at most 2 GiB less a page at once.
const LARGEST_BLOCK: u64 = 1 << 30;

/// The keys that may be lists, and what goes with them.
pub(super) static AXES: Mapping = Mapping::new(
    "axes",
    "What a load does; lists make a sweep",
    &[&PATTERN, &BLOCK_SIZE, &DEPTH, &CLIENTS, &REPEATS, &READS, &RANDOM],
);

pub(super) static PATTERN: Key<OneOrList<Patterns>> =
    Key::new("pattern", "Access pattern, or a profile of several settings", OneOrList(Patterns))
        .required("write one such as read, write, randread, randwrite, rw, randrw, oltp")
        .also(&["rw", "readwrite"]);
pub(super) static BLOCK_SIZE: Key<OneOrList<BlockSize>> =
    Key::new("block_size", "Block sizes; a split is sizes with weights", OneOrList(BLOCK_SIZE_SHAPE))
        .otherwise("required, except for profiles")
        .also(&["bs", "bssplit"]);
pub(super) static DEPTH: Key<OneOrList<Whole<u32>>> =
    Key::new("depth", "Operations in flight per client", OneOrList(Whole(1, MOST_DEPTH)))
        .default("1")
        .also(&["iodepth"]);
pub(super) static CLIENTS: Key<OneOrList<Whole<u32>>> = Key::new(
    "clients",
    "Clients; at most one per volume, unless all share a single volume",
    OneOrList(Whole(1, defaults::MOST_WORKERS)),
)
.otherwise("one per volume")
.also(&["numjobs"]);
pub(super) static REPEATS: Key<Whole<u32>> =
    Key::new("repeats", "How many times to measure everything, within one run", Whole(1, 1000)).default("1");
static READS: Key<Share> = Key::new("reads", "Share of reads in `rw`, `randrw` and profiles", Share)
    .otherwise("`50%`, or the profile's")
    .also(&["rwmixread"]);
static RANDOM: Key<Share> =
    Key::new("random", "Share of operations at random offsets in profiles", Share).otherwise("the profile's");

/// A block size, or a split of sizes by weight.
pub(super) type BlockSize = Either<Parsed<u64>, Split>;

pub(super) const BLOCK_SIZE_SHAPE: BlockSize =
    Either(Parsed("bytes, a multiple of 512 B up to 1 GiB", block), Split);

/// Sizes with weights.
pub(super) struct Split;

impl Shape for Split {
    fn schema(&self) -> serde_json::Value {
        serde_json::json!({
            "description": "sizes with weights, such as {4KiB: 60, 64KiB: 40}",
            "type": "object",
            "additionalProperties": {"type": ["integer", "string"]},
        })
    }

    fn words(&self) -> String {
        "split: `{4KiB: 60, 64KiB: 40}`".to_owned()
    }
}

/// The lists that make a sweep, or single values.
pub(super) fn axes(table: &mut Table<'_>, ground: &Ground<'_>) -> Axes {
    let patterns = patterns(table, ground);
    let read = |table: &Table<'_>, node: &Node| blocks(table, &BLOCK_SIZE, node);
    let mut sizes = axis(table, &BLOCK_SIZE, read, |blocks| blocks.text(""));
    if !table.has(&BLOCK_SIZE) && patterns.values.iter().any(|pattern| pattern.blocks.is_empty()) {
        let help = "write a size such as 4KiB, a list of sizes, or a split such as {4KiB: 60, 64KiB: 40}";
        table.missing(&BLOCK_SIZE, help);
    }
    if sizes.values.is_empty() && patterns.values.iter().any(|pattern| pattern.blocks.is_empty()) {
        sizes.values.push(BlockSizes::new(&[(4096, 1)]));
    }
    let read = |table: &Table<'_>, node: &Node| table.one(&DEPTH, &DEPTH.shape.0, node);
    let mut depths = axis(table, &DEPTH, read, u32::to_string);
    let volumes = ground.count() as u32;
    let shared = |table: &Table<'_>, node: &Node| {
        let clients = table.one(&CLIENTS, &CLIENTS.shape.0, node)?;
        if clients > volumes && volumes > 1 {
            let message = format!("{clients} clients cannot share {volumes} volumes");
            let help =
                format!("use `count: {clients}` for one volume each, or `count: 1` for a shared volume");
            table.log().error(&node.span, message, help);
        }
        Some(clients)
    };
    let mut clients = axis(table, &CLIENTS, shared, u32::to_string);
    usual(&mut depths, 1);
    usual(&mut clients, volumes);
    Axes { patterns, blocks: sizes, depths, clients, repeats: table.get(&REPEATS).unwrap_or(1) }
}

fn usual<T>(axis: &mut Axis<T>, value: T) {
    if axis.values.is_empty() {
        axis.values.push(value);
    }
}

/// The values under a key: one, or a list.
fn axis<'a, T>(
    table: &mut Table<'a>,
    key: &AnyKey,
    read: impl Fn(&Table<'a>, &Node) -> Option<T>,
    text: impl Fn(&T) -> String,
) -> Axis<T> {
    let Some(entry) = table.entry(key) else { return Axis { values: Vec::new(), listed: false } };
    let Value::List(nodes) = &entry.node.value else {
        return Axis { values: read(table, &entry.node).into_iter().collect(), listed: false };
    };
    let log = table.log();
    if nodes.is_empty() || nodes.len() > MOST_VALUES {
        let message = format!("the list of `{}` has {} values", key.name, nodes.len());
        log.error(&entry.key_span, message, format!("write from 1 to {MOST_VALUES}"));
        return Axis { values: Vec::new(), listed: true };
    }
    let (mut values, mut texts) = (Vec::new(), Vec::new());
    for node in nodes {
        let Some(value) = read(table, node) else { continue };
        let text = text(&value);
        if texts.contains(&text) {
            let help = "remove one of them; to repeat a measurement, use `repeats`";
            log.error(&node.span, format!("`{}`: {text} is in the list twice", key.name), help);
        }
        texts.push(text);
        values.push(value);
    }
    Axis { values, listed: true }
}

/// What a word under `pattern` stands for.
#[derive(Clone, Copy)]
pub(super) enum Named {
    Pattern(Pattern),
    Profile(&'static Profile),
}

/// The patterns and profiles, by name.
pub(super) struct Patterns;

impl Patterns {
    fn all() -> impl Iterator<Item = (&'static str, Named)> + Clone {
        let patterns = PATTERNS.iter().map(|pattern| (pattern.name, Named::Pattern(*pattern)));
        patterns.chain(PROFILES.iter().map(|profile| (profile.name, Named::Profile(profile))))
    }
}

impl Kind for Patterns {
    type Value = Named;

    fn read(&self, text: &str) -> Result<Named, Problem> {
        choose(text, Self::all())
    }

    fn schema(&self) -> serde_json::Value {
        serde_json::json!({"enum": Self::all().map(|(name, _)| name).collect::<Vec<_>>()})
    }

    fn words(&self) -> String {
        "word".to_owned()
    }
}

/// The patterns under `pattern`, with the shares that the document gives instead of theirs.
fn patterns(table: &mut Table<'_>, ground: &Ground<'_>) -> Axis<Pattern> {
    if let (false, Absent::Required(help)) = (table.has(&PATTERN), PATTERN.absent) {
        table.missing(&PATTERN, help);
    }
    let read = |table: &Table<'_>, node: &Node| table.one(&PATTERN, &Patterns, node);
    let name = |named: &Named| match named {
        Named::Pattern(pattern) => pattern.name.to_owned(),
        Named::Profile(profile) => profile.name.to_owned(),
    };
    let named = axis(table, &PATTERN, read, name);
    let (reads, random) = (table.get(&READS), table.get(&RANDOM));
    let (mut values, mut takes_reads, mut takes_random) = (Vec::new(), false, false);
    for named in &named.values {
        match named {
            Named::Pattern(pattern) => {
                let own = if pattern.is_mixed() { reads } else { None };
                takes_reads |= pattern.is_mixed();
                values.push(pattern.with(own, None));
            }
            Named::Profile(profile) => {
                // The patterns of a profile that has several are what they are.
                let single = profile.patterns.len() == 1;
                (takes_reads, takes_random) = (takes_reads | single, takes_random | single);
                let own = if single { (reads, random) } else { (None, None) };
                values.extend(profile.patterns.iter().map(|pattern| pattern.with(own.0, own.1)));
                ground.context.note(profile_note(profile));
            }
        }
    }
    if !values.is_empty() && !takes_reads {
        table.meaningless(&[&READS], "only rw, randrw and profiles both read and write");
    }
    if !values.is_empty() && !takes_random {
        table.meaningless(&[&RANDOM], "the pattern decides it; rw is sequential, randrw is random");
    }
    if values.is_empty() {
        values.push(PATTERNS[0]);
    }
    // A profile of several patterns is a list of them.
    let listed = named.listed || values.len() > 1;
    Axis { values, listed }
}

fn profile_note(profile: &Profile) -> Note {
    let text = format!(
        "the profile {} models {}: judge it by {}",
        profile.name, profile.stands_for, profile.judged_by
    );
    Note { topic: "profile".into(), text }
}

/// A block size, or a split of sizes by weight.
pub(super) fn blocks(table: &Table<'_>, key: &AnyKey, node: &Node) -> Option<BlockSizes> {
    let Value::Map(entries) = &node.value else {
        return Some(BlockSizes::new(&[(table.scalar(key, node, block)?, 1)]));
    };
    let log = table.log();
    if entries.is_empty() || entries.len() > MOST_VALUES {
        let message = format!("the split of `block_size` has {} sizes", entries.len());
        log.error(
            &node.span,
            message,
            format!("write from 1 to {MOST_VALUES}, such as {{4KiB: 60, 64KiB: 40}}"),
        );
        return None;
    }
    let mut sizes: Vec<(u64, u64)> = Vec::new();
    for entry in entries {
        let bytes = match block(&entry.key) {
            Ok(bytes) => Some(bytes),
            Err(problem) => {
                log.error(&entry.key_span, format!("`block_size`: {}", problem.message), problem.help);
                None
            }
        };
        let weight = table.scalar(key, &entry.node, |text| {
            Whole(1u64, 1_000_000).read(text.trim_end_matches('%').trim_end())
        });
        let (Some(bytes), Some(weight)) = (bytes, weight) else { continue };
        if sizes.iter().any(|(known, _)| *known == bytes) {
            let message = format!("`block_size`: {} is listed twice", exact(bytes, " "));
            log.error(&entry.key_span, message, "combine its weights");
        }
        sizes.push((bytes, weight));
    }
    (!sizes.is_empty()).then(|| BlockSizes::new(&sizes))
}

fn block(text: &str) -> Result<u64, Problem> {
    match units::parse_bytes(text)? {
        bytes @ SECTOR..=LARGEST_BLOCK if bytes.is_multiple_of(SECTOR) => Ok(bytes),
        bytes @ SECTOR..=LARGEST_BLOCK => {
            let near = bytes.div_ceil(SECTOR) * SECTOR;
            let help = format!("write {near}, or a size in KiB or MiB");
            Err(Problem::new(format!("'{text}' is not a multiple of 512 B"), help))
        }
        _ => Err(Problem::new(format!("'{text}' is out of range"), "write a size from 512B to 1GiB")),
    }
}
