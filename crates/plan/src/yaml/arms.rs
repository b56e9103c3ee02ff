//! The arms of an evaluation: what is compared.

use super::documents::canonical;
use super::environment::Environment;
use super::evaluation::ARMS;
use super::observe::{OBSERVE, observe};
use super::{scope, tuning};
use crate::evaluation::Arm;
use crate::plan::Observe;
use crate::provisioner::Request;
use crate::redact::{is_secret, redact};
use std::ops::Range;
use tidemark_keys::kinds::{Kind as _, Parsed, Text};
use tidemark_keys::shapes::{OneOrList, Refer};
use tidemark_keys::tree::{Node, Value};
use tidemark_keys::{Key, Mapping, Shape, Table};

/// An arm, but for what it asks of provisioners.
pub(crate) static ARM: Mapping = Mapping::new(
    "arm",
    "One thing compared",
    &[
        &NAME,
        &DESCRIPTION,
        &ARM_TARGET,
        &VARIABLES,
        &SET_UP,
        &RESET,
        &TEAR_DOWN,
        &SHOW,
        &HEALTH,
        &RECOVER,
        &OBSERVE,
    ],
);

static NAME: Key<Text> =
    Key::new("name", "Name of the arm", Text).required("add the arm's name, such as `name: disk`");
static DESCRIPTION: Key<Text> = Key::new("description", "Description", Text);
static ARM_TARGET: Key<OneOrList<Refer>> = Key::new(
    "target",
    "Target of loads that have none: one, or one for objects and one for volumes; also instead of `storage` and `auth` of \
     COSBench files",
    OneOrList(Refer("target")),
);
pub(super) static VARIABLES: Key<Variables> = Key::new(
    "environment",
    "Variables for `${NAME}` in the targets of its loads; they override the process's",
    Variables,
);
pub(super) static SET_UP: Key<Commands> = Key::new(
    "set_up",
    "Before its first run; lines `NAME=value` or `export NAME=value` that they print become variables",
    COMMANDS,
);
pub(super) static RESET: Key<Commands> = Key::new("reset", "Before each of its runs", COMMANDS);
pub(super) static TEAR_DOWN: Key<Commands> = Key::new("tear_down", "At its end", COMMANDS);
pub(super) static SHOW: Key<Commands> = Key::new(
    "show",
    "Print the settings that are in effect, `name = value` in each line: `tidemark tune --apply` and `--undo` compare what they were \
     with what they are",
    COMMANDS,
);
pub(super) static HEALTH: Key<Commands> = Key::new(
    "health",
    "Whether its storage is well, asked every 5 s while a search for better settings puts load on it: exit status 0 if it is; 3 if data are \
     at risk, which ends the search; any other drops the settings",
    COMMANDS,
);

pub(super) static RECOVER: Key<Commands> = Key::new(
    "recover",
    "After each run of a search for better settings: what ends when its storage has recovered, such as a restart of a server and waiting until it is \
     well again. How long they take together is the recovery time, which `recovery` under `tune` bounds",
    COMMANDS,
);

/// Shell commands.
pub(super) type Commands = OneOrList<Parsed<String>>;

const COMMANDS: Commands = OneOrList(Parsed("shell command", |text| Text.read(text)));

/// Variables and their values.
pub(super) struct Variables;

impl Shape for Variables {
    fn schema(&self) -> serde_json::Value {
        serde_json::json!({
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        })
    }

    fn words(&self) -> String {
        "`{NAME: value}`".to_owned()
    }
}

/// More arms than this are treated as a mistake.
const MOST_ARMS: usize = 100;

/// What an arm was read from.
#[derive(Clone, Debug)]
pub(super) struct ArmSource {
    /// Its targets, at most one for each engine.
    pub(super) targets: Vec<Node>,
    /// Where `target` stands.
    pub(super) place: Range<usize>,
    /// Everything in it that can change the measurement.
    pub(super) definition: String,
    /// As the document has it.
    pub(super) node: Node,
    /// The settings of a search that it has, name and value; none in other evaluations.
    pub(super) settings: Vec<(String, String)>,
}

/// Reads the list under `arms`, with the settings of a search; `shared` is what is observed of all of them.
pub(super) fn arms(
    document: &mut Table<'_>,
    shared: &Observe,
    settings: &[(String, String)],
    environment: &Environment<'_>,
) -> (Vec<Arm>, Vec<ArmSource>) {
    let nodes = document.list(&ARMS);
    if nodes.len() > MOST_ARMS {
        let message = format!("there are {} arms, more than {MOST_ARMS}", nodes.len());
        document.log().error(document.place(), message, "compare fewer at once");
        return (Vec::new(), Vec::new());
    }
    let (mut arms, mut sources) = (Vec::<Arm>::new(), Vec::new());
    for node in nodes {
        let with = if settings.is_empty() { node.clone() } else { tuning::arm_with(node, settings) };
        let table = document.part("an arm", &with, &node.span).of(&ARM);
        let (arm, source) = arm(table, &with, shared, environment);
        let source = ArmSource { node: node.clone(), settings: settings.to_vec(), ..source };
        unique(document, node, "arm", &arm.name, arms.iter().map(|arm| arm.name.as_str()));
        arms.push(arm);
        sources.push(source);
    }
    (arms, sources)
}

/// Reports a name that another one of its kind has.
pub(super) fn unique<'n>(
    table: &Table<'_>,
    node: &Node,
    what: &str,
    name: &str,
    mut others: impl Iterator<Item = &'n str>,
) {
    if !name.is_empty() && others.any(|other| other == name) {
        let place = node.entry("name").map_or(&node.span, |entry| &entry.node.span);
        table.log().error(place, format!("two {what}s are named `{name}`"), "use unique names");
    }
}

pub(super) fn arm(
    mut table: Table<'_>,
    node: &Node,
    shared: &Observe,
    environment: &Environment<'_>,
) -> (Arm, ArmSource) {
    let (name, description) = (table.value(&NAME), table.value(&DESCRIPTION));
    let (targets, place) = targets(&mut table, environment);
    let mut observe = observe(&mut table);
    observe.join(shared);
    let mut arm = Arm {
        name,
        description,
        requests: requests(&mut table, environment),
        environment: variables(&mut table),
        set_up: table.all(&SET_UP),
        reset: table.all(&RESET),
        tear_down: table.all(&TEAR_DOWN),
        show: table.all(&SHOW),
        health: table.all(&HEALTH),
        recover: table.all(&RECOVER),
        settings: Vec::new(),
        observe,
    };
    arm.settings = settings(&arm, &targets);
    table.finish();
    let definition = canonical(node, &["description", "observe", SHOW.name, HEALTH.name]);
    (arm, ArmSource { targets, place, definition, node: node.clone(), settings: Vec::new() })
}

/// The targets under `target`: one, or one for each engine that its loads need.
fn targets(table: &mut Table<'_>, environment: &Environment<'_>) -> (Vec<Node>, Range<usize>) {
    let Some(entry) = table.entry(&ARM_TARGET) else { return (Vec::new(), table.place().clone()) };
    let nodes = match &entry.node.value {
        Value::List(nodes) => nodes.clone(),
        _ => vec![entry.node.clone()],
    };
    let mut engines: Vec<&str> =
        nodes.iter().filter_map(|node| scope::engine_of(node, environment.registry)).collect();
    engines.sort_unstable();
    if engines.windows(2).any(|pair| pair[0] == pair[1]) {
        let help = "keep at most one for objects and one for volumes; put other targets into other arms";
        table.log().error(&entry.key_span, "an arm has two targets of one kind", help);
    }
    (nodes, entry.key_span.clone())
}

/// What it asks of provisioners, each under its key.
fn requests(table: &mut Table<'_>, environment: &Environment<'_>) -> Vec<Request> {
    let mut requests = Vec::new();
    for kind in environment.registry.provisioners() {
        table.declare([kind.key()]);
        let Some(entry) = table.entry(kind.key()) else { continue };
        requests.extend(kind.read(table, entry, environment));
    }
    requests
}

/// The variables under `environment`.
fn variables(table: &mut Table<'_>) -> Vec<(String, String)> {
    let Some(entry) = table.entry(&VARIABLES) else { return Vec::new() };
    let Value::Map(entries) = &entry.node.value else {
        table.log().error(
            &entry.node.span,
            "`environment` is not a mapping",
            "write variables as `NAME: value`",
        );
        return Vec::new();
    };
    let mut variables = Vec::new();
    for variable in entries {
        if !is_variable(&variable.key) {
            let message = format!("`environment`: '{}' is not a valid variable name", variable.key);
            table.log().error(
                &variable.key_span,
                message,
                "use letters, digits and _; do not begin with a digit",
            );
        }
        let value = table.scalar(&VARIABLES, &variable.node, |text| Ok(text.to_owned()));
        variables.push((variable.key.clone(), value.unwrap_or_default()));
    }
    variables
}

pub(super) fn is_variable(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(plain) && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// What the arm is, for reports, without secrets.
fn settings(arm: &Arm, targets: &[Node]) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    settings
        .extend(arm.requests.iter().map(|request| (request.key().to_owned(), request.label().to_owned())));
    for node in targets {
        let mut parts = Vec::new();
        describe(node, "", &mut parts);
        settings.push(("target".to_owned(), redact(&parts.join(", "))));
    }
    let open = arm.environment.iter().filter(|(name, _)| !is_secret(name));
    settings.extend(open.map(|(name, value)| (name.clone(), redact(value))));
    settings
}

/// All values of a node that are no secrets, `key value` each; the kind of a target stands for itself.
fn describe(node: &Node, key: &str, parts: &mut Vec<String>) {
    match &node.value {
        Value::Nothing => {}
        Value::Scalar(text) if matches!(key, "" | "kind") => parts.push(text.clone()),
        Value::Scalar(text) => parts.push(format!("{key} {text}")),
        Value::List(nodes) => nodes.iter().for_each(|node| describe(node, key, parts)),
        Value::Map(entries) => {
            let open = entries.iter().filter(|entry| !is_secret(&entry.key));
            open.for_each(|entry| describe(&entry.node, &entry.key, parts));
        }
    }
}
