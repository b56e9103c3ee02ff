//! `tune`: what a search for better settings is about, and how a setting's value gets into an arm and its loads.
//!
//! A setting stands as `${NAME}` in the arm and in its load, and is replaced there before anything is read: whatever a document can say can
//! be searched. Shell commands have it as a variable. Where it stands decides how it takes effect, so that nobody has to say it, or can
//! say it wrongly.

use super::arms::{ArmSource, HEALTH, RECOVER, RESET, SET_UP, SHOW, TEAR_DOWN, VARIABLES, is_variable};
use super::documents::{Body, LoadSource};
use crate::evaluation::{Arm, Levels, Load};
use crate::registry::Registry;
use std::ops::Range;
use tidemark_keys::kinds::{Bytes, Kind as _, Parsed, PositiveDuration, Share, Text, Whole, Word};
use tidemark_keys::shapes::{List, Map, OneOrList, Settings};
use tidemark_keys::tree::{Entry, Node, Value};
use tidemark_keys::{Key, Mapping, Problem, Table};
use tidemark_measure::tuning::{
    Domain, MOST_SETTINGS, OBJECTIVES, Objective, Price, Scale, Setting, Space, TakesEffect, Tuning, When,
    refused,
};

/// The search: what makes an evaluation one.
pub(super) static TUNE: Key<Map> =
    Key::new("tune", "A search for better settings of the only arm, by `tidemark tune`", Map(&TUNING));

pub(crate) static TUNING: Mapping = Mapping::new(
    "tune",
    "A search for better settings",
    &[&OBJECTIVE, &PRICE, &SETTINGS, &RUNS, &BUDGET, &MARGIN, &MEMORY, &RECOVERY],
);

static OBJECTIVE: Key<OneOrList<Word<Objective>>> = Key::new(
    "objective",
    "What is to become better, within the `service_level` if there is one; `price` is that of a million operations; two: their front",
    OneOrList(Word(&OBJECTIVES)),
)
.default("throughput");
static PRICE: Key<Map> = Key::new("price", "What an hour of the arm costs", Map(&PRICES));
static SETTINGS: Key<List<Map>> = Key::new(
    "settings",
    "What may be set, up to 15; each stands as `${NAME}` in the arm or its load",
    List(Map(&SETTING)),
)
.required("list what may be set: `- {name: cache, integer: 16-512, baseline: 64}`");
static RUNS: Key<Whole<u32>> = Key::new(
    "runs",
    "The budget: how many runs it may take, a quarter of them kept for the proof; up to 3 settings take at least 21, up to 7 at least 30, more at least 50",
    Whole(21, 1000),
)
.default("100");
static BUDGET: Key<PositiveDuration> = Key::new(
    "budget",
    "How long it may take, set-up included, such as `30m`; what the proof needs of it is kept for the proof",
    PositiveDuration,
)
.otherwise("as long as its runs take");
static MEMORY: Key<Bytes> = Key::new(
    "memory",
    "The most memory that the observed processes of the storage may take together: settings that take more are dropped",
    Bytes(1 << 20),
)
.otherwise("not watched");
static RECOVERY: Key<PositiveDuration> = Key::new(
    "recovery",
    "How long the arm's `recover` commands may take after a run, such as `60s`: settings with which they take longer are dropped",
    PositiveDuration,
)
.otherwise("not measured");
static MARGIN: Key<Parsed<f64>> = Key::new(
    "margin",
    "An effect within this share does not matter",
    Parsed("share, 0.1 % to 50 %", |text| match Share.read(text)? {
        share if (0.001..=0.5).contains(&share) => Ok(share),
        _ => Err(Problem::new(format!("'{text}' is out of range"), "write from 0.1% to 50%, such as 5%")),
    }),
)
.default("5%");

pub(crate) static PRICES: Mapping =
    Mapping::new("price", "What an hour of the arm costs, in any currency", &[&HOUR, &EACH]);

static HOUR: Key<Parsed<f64>> =
    Key::new("hour", "What an hour costs whatever is set", Parsed("number", price)).default("0");
static EACH: Key<Settings> = Key::new(
    "each",
    "What each unit of a setting costs an hour besides: its number, as it is written, times this",
    Settings,
)
.example("{cpus: 0.04, memory: 0.005}");

/// The most that an hour may cost: no arm costs more in any currency, and ratios of prices stay numbers.
const MOST_AN_HOUR: f64 = 1e9;

/// What something costs an hour.
fn price(text: &str) -> Result<f64, Problem> {
    match text.trim().parse::<f64>() {
        Ok(number) if (0.0..=MOST_AN_HOUR).contains(&number) => Ok(number),
        Ok(number) if number > MOST_AN_HOUR => {
            Err(Problem::new(format!("'{text}' is too much"), "write at most 1e9, in a larger unit"))
        }
        _ => Err(Problem::new(format!("'{text}' is no price"), "write a number of at least 0, such as 0.04")),
    }
}

pub(crate) static SETTING: Mapping = Mapping::new(
    "setting",
    "Something that may be set",
    &[&NAME, &INTEGER, &REAL, &CHOICE, &SCALE, &UNIT, &BASELINE, &ONLY_WITH],
)
.one_of(&[&INTEGER, &REAL, &CHOICE]);

static NAME: Key<Parsed<String>> = Key::new(
    "name",
    "Its name, which is also its variable's",
    Parsed("name", |text| match (is_variable(text), refused(text)) {
        (false, _) => Err(Problem::new(
            format!("'{text}' is not a valid variable name"),
            "use letters, digits and _; do not begin with a digit",
        )),
        (_, Some(word)) => Err(never(word)),
        (true, None) => Ok(text.to_owned()),
    }),
)
.required("add the setting's name, such as `name: cache`");
static INTEGER: Key<Parsed<(f64, f64)>> =
    Key::new("integer", "Whole numbers from the first to the second", Parsed("range", range))
        .example("16-512");
static REAL: Key<Parsed<(f64, f64)>> =
    Key::new("real", "Numbers from the first to the second", Parsed("range", range)).example("0.1-0.9");
static CHOICE: Key<OneOrList<Parsed<String>>> = Key::new(
    "choice",
    "Words, at least two",
    OneOrList(Parsed("word", |text| match refused(text) {
        Some(word) => Err(never(word)),
        None => Text.read(text),
    })),
);
static SCALE: Key<Word<Scale>> = Key::new(
    "scale",
    "Whether equal differences of numbers count as equal (linear), or equal ratios (log)",
    Word(&[("linear", Scale::Linear), ("log", Scale::Log)]),
)
.default("linear");
static UNIT: Key<Text> = Key::new("unit", "What follows its numbers", Text).example("MB");
static BASELINE: Key<Text> =
    Key::new("baseline", "The value that it has now: what the others are compared with", Text)
        .required("add the value that it has now, such as `baseline: 64`");
static ONLY_WITH: Key<Text> = Key::new(
    "only_with",
    "The choice before it, and its words, with which it means something; otherwise it has its baseline's value",
    Text,
)
.example("codec=lz4,zstd");

/// Why something is not searched.
fn never(word: &str) -> Problem {
    Problem::new(
        format!("`{word}` keeps data safe and is never searched"),
        "its fastest value is the one that loses data; compare such settings as arms of an evaluation",
    )
}

/// Two numbers, the lower first: `16-512`.
fn range(text: &str) -> Result<(f64, f64), Problem> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let ends = text.split_once('-').and_then(|(from, to)| Some((number(from)?, number(to)?)));
    match ends {
        Some((from, to)) if 0.0 <= from && from < to => Ok((from, to)),
        _ => Err(Problem::new(
            format!("'{text}' is not a range"),
            "write two numbers, the lower first: 16-512",
        )),
    }
}

/// Reads the search under `tune`. How its settings take effect is not known yet.
pub(super) fn tuning(table: &mut Table<'_>) -> Option<Tuning> {
    let entry = table.entry(&TUNE)?;
    let mut own = table.below(&TUNE, entry).of(&TUNING);
    let (objective, second) = objectives(&mut own);
    let (runs, margin) = (own.value(&RUNS), own.value(&MARGIN));
    let (time_ns, memory_bytes) = (own.get(&BUDGET), own.get(&MEMORY));
    let recovery_ns = own.get(&RECOVERY);
    let nodes = own.list(&SETTINGS);
    if nodes.len() > MOST_SETTINGS {
        let message = format!("there are {} settings; the limit is {MOST_SETTINGS}", nodes.len());
        own.log().error(own.place(), message, "keep those that are most likely to matter");
    }
    let mut settings: Vec<Setting> = Vec::new();
    for node in nodes.iter().take(MOST_SETTINGS) {
        let part = own.part("a setting", node, &node.span).of(&SETTING);
        let Some(setting) = setting(part, &settings) else { continue };
        if settings.iter().any(|other| other.name == setting.name) {
            let message = format!("two settings are named `{}`", setting.name);
            own.log().error(&node.span, message, "use unique names");
        }
        settings.push(setting);
    }
    let space = Space { settings };
    let price = own.table(&PRICE).and_then(|table| priced(table, &space));
    if [Some(objective), second].contains(&Some(Objective::Price)) && !own.has(&PRICE) {
        own.missing(&PRICE, "say what an hour costs: `price: {hour: 0.1, each: {cpus: 0.04}}`");
    }
    own.finish();
    Some(Tuning {
        space,
        objective,
        second,
        price,
        runs,
        time_ns,
        memory_bytes,
        recovery_ns,
        margin,
        ..Tuning::default()
    })
}

/// What is to become better, one or two.
fn objectives(table: &mut Table<'_>) -> (Objective, Option<Objective>) {
    let all = table.all(&OBJECTIVE);
    if table.entry(&OBJECTIVE).is_some_and(|entry| entry.node.items().is_empty()) {
        let help = "write one, or two that differ; without the key it is throughput";
        table.log().error(table.place(), "`objective` names nothing", help);
    }
    let (first, second) = (all.first().copied().unwrap_or_default(), all.get(1).copied());
    if all.len() > 2 || second == Some(first) {
        let help = "write one, or two that differ: `objective: [throughput, p99]`";
        table.log().error(table.place(), "`objective` takes one or two different objectives", help);
    }
    (first, second)
}

/// Reads what an hour costs; each of its settings has to be one that is searched, and to have numbers.
fn priced(mut table: Table<'_>, space: &Space) -> Option<Price> {
    let (hour, each) = (table.value(&HOUR), table.settings(&EACH));
    let read = |(name, text): &(String, String)| {
        let index = space.settings.iter().position(|setting| setting.name == *name);
        let index = index.ok_or_else(|| {
            let help = "it takes names of `settings`; what is not searched belongs to `hour`";
            Problem::new(format!("there is no setting `{name}`"), help)
        })?;
        let setting = &space.settings[index];
        if let Some(word) = setting.levels().into_iter().find(|level| setting.number(*level).is_none()) {
            let message = format!("'{}' of `{name}` is no number", setting.text(word));
            return Err(Problem::new(message, "only numbers have a price for each unit"));
        }
        let each = price(text);
        Ok((
            index,
            each.map_err(|problem| Problem::new(format!("`{name}`: {}", problem.message), problem.help))?,
        ))
    };
    let each: Result<Vec<_>, Problem> = each.iter().map(read).collect();
    let each = each
        .map_err(|problem| {
            table.log().error(table.place(), format!("`each`: {}", problem.message), problem.help);
        })
        .ok();
    let price = Price { hour, each: each? };
    // With the least of everything, it has to cost something still: ratios of prices are compared.
    let hours = price.hours(space);
    if *hours.start() <= 0.0 {
        let help = "say what an hour costs with the least of everything, as `hour`";
        table.log().error(table.place(), "an hour may cost nothing", help);
    }
    if *hours.end() > MOST_AN_HOUR {
        let help = "lower `hour` or `each`, or write them in a larger unit";
        table.log().error(table.place(), "an hour may cost more than 1e9 with the most of everything", help);
    }
    table.finish();
    Some(price)
}

fn setting(mut table: Table<'_>, before: &[Setting]) -> Option<Setting> {
    let name = table.value(&NAME);
    let (scale, unit) = (table.value(&SCALE), table.value(&UNIT));
    let (integer, real, words) = (table.get(&INTEGER), table.get(&REAL), table.all(&CHOICE));
    let baseline = table.get(&BASELINE);
    let when = table.get(&ONLY_WITH).and_then(|text| {
        when(&text, before)
            .map_err(|problem| {
                table.log().error(table.place(), format!("`only_with`: {}", problem.message), problem.help);
            })
            .ok()
    });
    let mut twice = words.iter().enumerate().filter(|(index, word)| words[..*index].contains(word));
    if let Some((_, word)) = twice.next() {
        let message = format!("`choice` of `{name}` has '{word}' twice");
        table.log().error(table.place(), message, "write each value once");
    }
    let domain = match (integer, real, words.len()) {
        (Some((from, to)), None, 0) => Domain::Integer(from, to, scale),
        (None, Some((from, to)), 0) => Domain::Real(from, to, scale),
        (None, None, 2..) => Domain::Choice(words),
        _ => {
            let help = "write one of `integer: 16-512`, `real: 0.1-0.9`, `choice: [lz4, zstd]` with at least two words";
            table.log().error(table.place(), format!("it is not clear which values `{name}` may have"), help);
            table.finish();
            return None;
        }
    };
    let is_log = scale == Scale::Log;
    if let (Domain::Integer(from, ..) | Domain::Real(from, ..), true) = (&domain, is_log)
        && *from <= 0.0
    {
        table.log().error(table.place(), "a range with `scale: log` cannot begin at 0", "begin above 0");
    }
    let mut setting = Setting { name, domain, baseline: 0.0, unit, takes_effect: TakesEffect::Run, when };
    let found = baseline.as_deref().and_then(|text| setting.value(text));
    if let (Some(text), None) = (&baseline, found) {
        let help = "the baseline's value must be one of those that are searched";
        table.log().error(
            table.place(),
            format!("`baseline`: '{text}' is no value of `{}`", setting.name),
            help,
        );
    }
    table.finish();
    setting.baseline = found?;
    Some(setting)
}

/// On what a setting depends: `codec=lz4,zstd`.
fn when(text: &str, before: &[Setting]) -> Result<When, Problem> {
    let unclear =
        |message: String| Problem::new(message, "write a choice before it and its words: codec=lz4,zstd");
    let (name, words) = text.split_once('=').ok_or_else(|| unclear(format!("'{text}' has no `=`")))?;
    let found = before.iter().position(|setting| setting.name == name.trim());
    let setting = found.ok_or_else(|| unclear(format!("there is no setting `{}` before it", name.trim())))?;
    let Domain::Choice(known) = &before[setting].domain else {
        return Err(unclear(format!("`{}` is not a choice", name.trim())));
    };
    let option = |word: &str| {
        let option = known.iter().position(|own| own == word.trim());
        option.ok_or_else(|| unclear(format!("`{}` has no word '{}'", name.trim(), word.trim())))
    };
    Ok(When { setting, options: words.split(',').map(option).collect::<Result<_, _>>()? })
}

/// Says of every setting how it takes effect; reports those that nothing uses, and those that would change what keeps data safe.
pub(super) fn settle(
    tuning: &mut Tuning,
    table: &mut Table<'_>,
    arms: &[ArmSource],
    loads: &[LoadSource],
    registry: &Registry,
) {
    let place = table.entry(&TUNE).map_or(0..0, |entry| entry.key_span.clone());
    for setting in &mut tuning.space.settings {
        let mut effect = None;
        let mut find = |key: &str, node: &Node, inside: &dyn Fn(&[&str]) -> TakesEffect| {
            each(&mut vec![key], node, &mut |path, text, span| {
                if !mentions(text, &setting.name) {
                    return;
                }
                let key = path.last().copied().unwrap_or_default();
                effect = effect.max(Some(inside(path)));
                if let Some(word) = refused(key).or_else(|| refused(text)) {
                    let never = never(word);
                    table.log().error(span, format!("`{}`: {}", setting.name, never.message), never.help);
                }
            });
        };
        for arm in arms {
            let Value::Map(entries) = &arm.node.value else { continue };
            for entry in entries {
                find(&entry.key, &entry.node, &|path| inside(path, registry));
            }
        }
        for load in loads {
            if let Body::Tree(root) = &load.body {
                find("", root, &|_| TakesEffect::Run);
            }
        }
        match effect {
            Some(effect) => setting.takes_effect = effect,
            None => table.log().error(
                &place,
                format!("nothing uses the setting `{}`", setting.name),
                format!("write ${{{}}} where its value belongs, in the arm or in its load", setting.name),
            ),
        }
    }
}

/// How something takes effect that stands in an arm under these keys.
fn inside(path: &[&str], registry: &Registry) -> TakesEffect {
    let Some((key, below)) = path.split_first() else { return TakesEffect::Run };
    match registry.provisioner(key) {
        Some(kind) => kind.takes_effect(below),
        None if [SET_UP.name, TEAR_DOWN.name, VARIABLES.name].contains(key) => TakesEffect::Restart,
        None => TakesEffect::Run,
    }
}

/// Reports what a search cannot be over.
pub(super) fn check(table: &Table<'_>, tuning: &Tuning, arms: &[Arm], loads: &[Load]) {
    let recovers = arms.iter().any(|arm| !arm.recover.is_empty());
    if recovers != tuning.recovery_ns.is_some() {
        let help = "`recover` in the arm says what is waited for after a run, `recovery` under `tune` for how long: write both or none";
        table.log().error(table.place(), "`recover` and `recovery` belong together", help);
    }
    let is_one = |load: &Load| matches!(&load.levels, Levels::Listed(levels) if levels.len() == 1);
    if arms.len() != 1 || loads.len() != 1 || !loads.iter().all(is_one) {
        let help = "keep one arm, and one load without `levels` or with one value of each, and no `search`";
        table.log().error(table.place(), "`tune` is for one arm under one load at one level", help);
    }
}

/// Whether a text has `${NAME}` or `$NAME` in it.
fn mentions(text: &str, name: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
    text.split('$').skip(1).any(|part| {
        let bare = part.strip_prefix(name).is_some_and(ends);
        bare || part.strip_prefix('{').and_then(|part| part.strip_prefix(name)).is_some_and(ends)
    })
}

/// What gets a single value: the keys that it stands under, itself, and where.
type Visit<'v> = dyn FnMut(&[&str], &str, &Range<usize>) + 'v;

/// Calls a function with every single value below a node.
fn each<'n>(path: &mut Vec<&'n str>, node: &'n Node, call: &mut Visit<'_>) {
    match &node.value {
        Value::Nothing => {}
        Value::Scalar(text) => call(path, text, &node.span),
        Value::List(nodes) => nodes.iter().for_each(|node| each(path, node, call)),
        Value::Map(entries) => {
            for entry in entries {
                path.push(&entry.key);
                each(path, &entry.node, call);
                path.pop();
            }
        }
    }
}

/// A node with values in the place of `${NAME}`.
pub(super) fn with(node: &Node, settings: &[(String, String)]) -> Node {
    let value = match &node.value {
        Value::Nothing => Value::Nothing,
        Value::Scalar(text) => {
            let put =
                |text: String, (name, value): &(String, String)| text.replace(&format!("${{{name}}}"), value);
            Value::Scalar(settings.iter().fold(text.clone(), put))
        }
        Value::List(nodes) => Value::List(nodes.iter().map(|node| with(node, settings)).collect()),
        Value::Map(entries) => {
            let entry = |entry: &Entry| Entry { node: with(&entry.node, settings), ..entry.clone() };
            Value::Map(entries.iter().map(entry).collect())
        }
    };
    Node { value, span: node.span.clone() }
}

/// An arm with settings: values in the place of `${NAME}`, and variables for its commands, which stay as they are.
pub(super) fn arm_with(arm: &Node, settings: &[(String, String)]) -> Node {
    let Value::Map(entries) = &arm.value else { return arm.clone() };
    let is_command = |key: &str| {
        [SET_UP.name, RESET.name, TEAR_DOWN.name, SHOW.name, HEALTH.name, RECOVER.name].contains(&key)
    };
    let mut made: Vec<Entry> = entries
        .iter()
        .map(|entry| match is_command(&entry.key) {
            true => entry.clone(),
            false => Entry { node: with(&entry.node, settings), ..entry.clone() },
        })
        .collect();
    let node = |value: Value| Node { value, span: arm.span.clone() };
    let variable = |(name, value): &(String, String)| Entry {
        key: name.clone(),
        key_span: arm.span.clone(),
        node: node(Value::Scalar(value.clone())),
    };
    let variables = settings.iter().map(variable);
    match made.iter_mut().find(|entry| entry.key == VARIABLES.name).map(|entry| &mut entry.node.value) {
        Some(Value::Map(known)) => {
            known.retain(|entry| !settings.iter().any(|(name, _)| *name == entry.key));
            known.extend(variables);
        }
        Some(other) if *other == Value::Nothing => *other = Value::Map(variables.collect()),
        // It is refused where it is read.
        Some(_) => {}
        None => made.push(Entry {
            key: VARIABLES.name.to_owned(),
            key_span: arm.span.clone(),
            node: node(Value::Map(variables.collect())),
        }),
    }
    Node { value: Value::Map(made), span: arm.span.clone() }
}
