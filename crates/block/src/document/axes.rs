//! The settings of a block load that may be lists: patterns, block sizes, depths, clients.

use super::work::Ground;
use crate::job::pattern::{BlockSizes, PATTERNS, Pattern, exact};
use crate::job::profile::{PROFILES, Profile};
use crate::job::sweep::{Axes, Axis};
use tidemark_measure::record::Note;
use tidemark_measure::units;
use tidemark_plan::defaults::{self, MOST_DEPTH};
use tidemark_plan::yaml::table::{Problem, Table, choose, whole};
use tidemark_plan::yaml::tree::{Node, Value};

/// More values of one axis than this are treated as a mistake.
const MOST_VALUES: usize = 1000;

/// The smallest block that any device has, bytes.
const SECTOR: u64 = 512;

/// The largest block, bytes: Linux moves at most 2 GiB less a page at once.
const LARGEST_BLOCK: u64 = 1 << 30;

/// The lists that make a sweep, or single values.
pub(super) fn axes(table: &mut Table<'_>, ground: &Ground<'_>) -> Axes {
    let patterns = patterns(table, ground);
    let mut sizes = axis(table, "block_size", blocks, |blocks| blocks.text(""));
    if !table.has("block_size") && patterns.values.iter().any(|pattern| pattern.blocks.is_empty()) {
        table.missing(
            "block_size",
            "write a size such as 4KiB, a list of sizes, or a split such as {4KiB: 60, 64KiB: 40}",
        );
    }
    if sizes.values.is_empty() && patterns.values.iter().any(|pattern| pattern.blocks.is_empty()) {
        sizes.values.push(BlockSizes::new(&[(4096, 1)]));
    }
    let number = |key: &'static str, most: u32| {
        move |table: &Table<'_>, node: &Node| {
            let number = table.scalar(node, key, |text| whole(text, &(1..=u64::from(most))))?;
            u32::try_from(number).ok()
        }
    };
    let mut depths = axis(table, "depth", number("depth", MOST_DEPTH), u32::to_string);
    let volumes = ground.count() as u32;
    let clients = number("clients", defaults::MOST_WORKERS);
    let shared = |table: &Table<'_>, node: &Node| {
        let clients = clients(table, node)?;
        if clients > volumes && volumes > 1 {
            let message = format!("{clients} clients cannot share {volumes} volumes");
            let help =
                format!("use `count: {clients}` for one volume each, or `count: 1` for a shared volume");
            table.log().error(&node.span, message, help);
        }
        Some(clients)
    };
    let mut clients = axis(table, "clients", shared, u32::to_string);
    usual(&mut depths, 1);
    usual(&mut clients, volumes);
    let repeats = table.small("repeats", 1..=1000).unwrap_or(1);
    Axes { patterns, blocks: sizes, depths, clients, repeats }
}

fn usual<T>(axis: &mut Axis<T>, value: T) {
    if axis.values.is_empty() {
        axis.values.push(value);
    }
}

/// The values under a key: one, or a list.
fn axis<'a, T>(
    table: &mut Table<'a>,
    key: &'static str,
    read: impl Fn(&Table<'a>, &Node) -> Option<T>,
    text: impl Fn(&T) -> String,
) -> Axis<T> {
    let Some(entry) = table.entry(key) else { return Axis { values: Vec::new(), listed: false } };
    let Value::List(nodes) = &entry.node.value else {
        return Axis { values: read(table, &entry.node).into_iter().collect(), listed: false };
    };
    let log = table.log();
    if nodes.is_empty() || nodes.len() > MOST_VALUES {
        let message = format!("the list of `{key}` has {} values", nodes.len());
        log.error(&entry.key_span, message, format!("write from 1 to {MOST_VALUES}"));
        return Axis { values: Vec::new(), listed: true };
    }
    let (mut values, mut texts) = (Vec::new(), Vec::new());
    for node in nodes {
        let Some(value) = read(table, node) else { continue };
        let text = text(&value);
        if texts.contains(&text) {
            let help = "remove one of them; to repeat a measurement, use `repeats`";
            log.error(&node.span, format!("`{key}`: {text} is in the list twice"), help);
        }
        texts.push(text);
        values.push(value);
    }
    Axis { values, listed: true }
}

/// What a word under `pattern` stands for.
#[derive(Clone, Copy)]
enum Named {
    Pattern(Pattern),
    Profile(&'static Profile),
}

/// The patterns under `pattern`, with the shares that the document gives instead of theirs.
fn patterns(table: &mut Table<'_>, ground: &Ground<'_>) -> Axis<Pattern> {
    let mut words: Vec<(&str, Named)> = Vec::new();
    words.extend(PATTERNS.iter().map(|pattern| (pattern.name, Named::Pattern(*pattern))));
    words.extend(PROFILES.iter().map(|profile| (profile.name, Named::Profile(profile))));
    if !table.has("pattern") {
        table.missing("pattern", "write one such as read, write, randread, randwrite, rw, randrw, oltp");
    }
    let read = |table: &Table<'_>, node: &Node| table.scalar(node, "pattern", |text| choose(text, &words));
    let name = |named: &Named| match named {
        Named::Pattern(pattern) => pattern.name.to_owned(),
        Named::Profile(profile) => profile.name.to_owned(),
    };
    let named = axis(table, "pattern", read, name);
    let (reads, random) = (table.share("reads"), table.share("random"));
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
        table.meaningless(&["reads"], "only rw, randrw and profiles both read and write");
    }
    if !values.is_empty() && !takes_random {
        table.meaningless(&["random"], "the pattern decides it; rw is sequential, randrw is random");
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
pub(super) fn blocks(table: &Table<'_>, node: &Node) -> Option<BlockSizes> {
    let Value::Map(entries) = &node.value else {
        return Some(BlockSizes::new(&[(table.scalar(node, "block_size", block)?, 1)]));
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
        let weight = table.scalar(&entry.node, "block_size", |text| {
            whole(text.trim_end_matches('%').trim_end(), &(1..=1_000_000))
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
