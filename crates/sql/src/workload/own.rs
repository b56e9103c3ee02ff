//! Your own SQL: transactions of a document, with variables that selectors draw.
//!
//! A statement names its variables as pgbench's scripts do: `UPDATE stock SET left = left - :amount WHERE id = :item`. They are
//! drawn once for each transaction, and are the same in every attempt. The tables are yours: nothing is made or dropped but
//! what `setup` and `teardown` say.

use super::{Action, Family, Transact, Workload};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::options;
use crate::statement::Statement;
use crate::transaction::{End, Transaction};
use crate::value::Value;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tidemark_keys::kinds::{Flag, Kind as _, Text, Whole, Word};
use tidemark_keys::shapes::{List, Map, OneOrList};
use tidemark_keys::tree::{Node, Value as Tree};
use tidemark_keys::{Key, Mapping, Problem, Shape, Table as Keys};
use tidemark_load::engine::Operation;
use tidemark_measure::pick::{Cursor, Part, Pick};
use tidemark_measure::rng::Rng;
use tidemark_plan::yaml::values::Selector;

/// The family.
pub(crate) static FAMILY: Family = Family {
    name: "sql",
    workloads: &[("sql", "Your own statements, in your own tables")],
    keys: &KEYS,
    read,
    open: |_, options| Ok(Arc::new(Own::new(Options::deserialize(options)?))),
};

static KEYS: Mapping = Mapping::new("sql", "Options of your own SQL", &[&SETUP, &TEARDOWN, &TRANSACTIONS]);
static SETUP: Key<OneOrList<Text>> =
    Key::new("setup", "SQL that `prepare` runs, each text once", OneOrList(Text))
        .example("CREATE TABLE t (id int)");
static TEARDOWN: Key<OneOrList<Text>> =
    Key::new("teardown", "SQL that `cleanup` runs, each text once", OneOrList(Text)).example("DROP TABLE t");
static TRANSACTIONS: Key<List<Map>> =
    Key::new("transactions", "What the load does, each with its weight", List(Map(&TRANSACTION)))
        .otherwise("required for `load`");

static TRANSACTION: Mapping = Mapping::new(
    "own_transaction",
    "A transaction of your own",
    &[&NAME, &WEIGHT, &KIND, &READS, &SET, &RANDOM_TEXT, &STATEMENTS],
);
static NAME: Key<Text> = Key::new("name", "Its name in reports", Text).required("give it a name");
static WEIGHT: Key<Whole<u32>> = Key::new("weight", "Its share of the mix", Whole(1, 1_000_000)).default("1");
static KIND: Key<Word<bool>> = Key::new(
    "commits",
    "Whether all its statements are one transaction, or each is one of its own",
    Word(&[("together", true), ("each", false)]),
)
.default("together");
static READS: Key<Flag> = Key::new(
    "read_only",
    "It changes nothing: replicas can serve it, and one that is lost with its connection has simply failed",
    Flag,
)
.default("false");
static SET: Key<Variables> =
    Key::new("set", "Variables, each with a selector of whole numbers", Variables("selector"));
static RANDOM_TEXT: Key<Variables> =
    Key::new("text", "Variables with random letters, each with its length", Variables("length"));
static STATEMENTS: Key<OneOrList<Text>> =
    Key::new("statements", "Its statements in order, with `:variable` for values", OneOrList(Text))
        .required("write a list of statements");

/// Variables under names of the author's choice.
struct Variables(&'static str);

impl Shape for Variables {
    fn schema(&self) -> serde_json::Value {
        serde_json::json!({"type": "object", "additionalProperties": {"type": ["integer", "string"]}})
    }

    fn words(&self) -> String {
        format!("mapping of names to {}s", self.0)
    }
}

/// Most variables of one statement.
const MOST_VARIABLES: usize = 64;
/// Longest random text.
const MOST_TEXT: u32 = 1 << 20;

#[derive(Serialize, Deserialize)]
pub(crate) struct Options {
    pub(crate) setup: Vec<String>,
    pub(crate) teardown: Vec<String>,
    transactions: Vec<Script>,
}

#[derive(Serialize, Deserialize)]
struct Script {
    name: String,
    weight: u32,
    together: bool,
    reads: bool,
    variables: Vec<(String, Draw)>,
    /// Each with the places of its parameters among the variables.
    statements: Vec<(String, Vec<usize>)>,
}

/// How a variable is drawn.
#[derive(Serialize, Deserialize)]
enum Draw {
    Number(Pick),
    Text(u32),
}

fn read(_workload: &str, keys: &mut Keys<'_>) -> serde_json::Value {
    let (setup, teardown) = (keys.all(&SETUP), keys.all(&TEARDOWN));
    let transactions = keys.list(&TRANSACTIONS);
    let place = keys.entry(&TRANSACTIONS).map(|entry| entry.key_span.clone()).unwrap_or_default();
    let script = |node| script(keys.part("a transaction", node, &place).of(&TRANSACTION));
    let transactions = transactions.iter().filter_map(script).collect();
    options::pack(&Options { setup, teardown, transactions })
}

fn script(mut keys: Keys<'_>) -> Option<Script> {
    let (name, weight) = (keys.get(&NAME), keys.value(&WEIGHT));
    let (together, reads) = (keys.value(&KIND), keys.value(&READS));
    let mut variables = Vec::new();
    for (key, read) in [(&SET, number as fn(&str) -> Result<Draw, Problem>), (&RANDOM_TEXT, length)] {
        let Some(entry) = keys.entry(key) else { continue };
        let Tree::Map(entries) = &entry.node.value else {
            let help = format!("write `{}: {{name: value}}`", key.name);
            keys.log().error(&entry.key_span, format!("`{}` is not a mapping", key.name), help);
            continue;
        };
        for entry in entries {
            if variables.iter().any(|(known, _)| *known == entry.key) {
                let message = format!("the variable `{}` is there twice", entry.key);
                keys.log().error(&entry.key_span, message, "remove one of them");
            }
            let node: &Node = &entry.node;
            variables.extend(keys.scalar(key, node, read).map(|draw| (entry.key.clone(), draw)));
        }
    }
    let mut statements = Vec::new();
    for text in keys.all(&STATEMENTS) {
        match placeholders(&text, &variables) {
            Ok(statement) => statements.push(statement),
            Err((message, help)) => keys.log().error(keys.place(), message, help),
        }
    }
    keys.finish();
    Some(Script { name: name?, weight, together, reads, variables, statements })
}

fn number(text: &str) -> Result<Draw, Problem> {
    match Selector.read(text)? {
        Pick::Sequence { .. } | Pick::Shared { .. } => {
            let help = "use any in a range, `1-100`, `zipf(1,100)`, or a number";
            Err(Problem::new(
                format!("'{text}' goes through its numbers in order, which clients cannot share"),
                help,
            ))
        }
        pick => Ok(Draw::Number(pick)),
    }
}

fn length(text: &str) -> Result<Draw, Problem> {
    Whole(1, MOST_TEXT).read(text).map(Draw::Text)
}

/// The statement with `$1` and so on for its variables, and which these are. A `:` within quotes, or doubled, is none.
fn placeholders<T>(text: &str, variables: &[(String, T)]) -> Result<(String, Vec<usize>), (String, String)> {
    let (mut sql, mut used) = (String::new(), Vec::new());
    let mut rest = text;
    let mut quote = None;
    while let Some(letter) = rest.chars().next() {
        let behind = &rest[letter.len_utf8()..];
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if matches!(letter, '\'' | '"') => quote = Some(letter),
            None if rest.starts_with("::") => {
                sql.push_str("::");
                rest = &rest[2..];
                continue;
            }
            None if letter == ':' => {
                let end =
                    behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(behind.len());
                let name = &behind[..end];
                let Some(place) = variables.iter().position(|(known, _)| known == name) else {
                    let message = format!("a statement uses `:{name}`, which is not set");
                    return Err((message, format!("add it to the transaction: `set: {{{name}: 1-100}}`")));
                };
                let number = used.iter().position(|known| *known == place).unwrap_or_else(|| {
                    used.push(place);
                    used.len() - 1
                });
                sql.push_str(&format!("${}", number + 1));
                rest = &behind[end..];
                continue;
            }
            None => {}
        }
        sql.push(letter);
        rest = behind;
    }
    match used.len() {
        0..=MOST_VARIABLES => Ok((sql, used)),
        count => Err((format!("a statement has {count} variables"), format!("use {MOST_VARIABLES} at most"))),
    }
}

pub(crate) struct Own {
    options: Options,
    /// Of each transaction: the number of its first statement.
    first: Vec<usize>,
}

impl Own {
    fn new(options: Options) -> Self {
        let mut next = 0;
        let first = |script: &Script| {
            next += script.statements.len();
            next - script.statements.len()
        };
        Self { first: options.transactions.iter().map(first).collect(), options }
    }
}

impl Workload for Own {
    fn uses_all_statements(&self) -> bool {
        true
    }

    fn setup(&self) -> &[String] {
        &self.options.setup
    }

    fn teardown(&self) -> &[String] {
        &self.options.teardown
    }

    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        let scripts = self.options.transactions.iter();
        scripts.flat_map(|script| script.statements.iter().map(|(sql, _)| Statement::new(sql))).collect()
    }

    fn actions(&self) -> Vec<Action> {
        let action = |script: &Script| Action {
            weight: script.weight.into(),
            explicit: script.together,
            writes: !script.reads,
            ..Action::transaction(&script.name, script.statements.len() as f64)
        };
        self.options.transactions.iter().map(action).collect()
    }
}

/// What a slot keeps: of each transaction, its variables.
pub(crate) struct State(Vec<Vec<Drawn>>);

enum Drawn {
    Number(Cursor, u64),
    Text(u32, String),
}

impl Drawn {
    fn draw(&mut self, rng: &mut Rng) {
        match self {
            Drawn::Number(cursor, number) => *number = cursor.next(rng),
            Drawn::Text(length, text) => {
                text.clear();
                (0..*length).for_each(|_| text.push(char::from(b'a' + rng.below(26) as u8)));
            }
        }
    }

    fn value(&self) -> Value<'_> {
        match self {
            Drawn::Number(_, number) => Value::Int(*number as i64),
            Drawn::Text(_, text) => Value::Text(text),
        }
    }
}

impl Transact for Own {
    type State = State;

    fn state(&self) -> State {
        let drawn = |(_, draw): &(String, Draw)| match draw {
            Draw::Number(pick) => Drawn::Number(pick.cursor(Part::WHOLE), 0),
            Draw::Text(length) => Drawn::Text(*length, String::new()),
        };
        let of = |script: &Script| script.variables.iter().map(drawn).collect();
        State(self.options.transactions.iter().map(of).collect())
    }

    async fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &Operation,
        rng: &mut Rng,
        state: &mut State,
    ) -> Result<End, Failure> {
        let which = usize::from(operation.action);
        let (script, variables) = (&self.options.transactions[which], &mut state.0[which]);
        variables.iter_mut().for_each(|variable| variable.draw(rng));
        for (number, (_, places)) in script.statements.iter().enumerate() {
            let mut values = [Value::Null; MOST_VARIABLES];
            for (value, place) in values.iter_mut().zip(places) {
                *value = variables[*place].value();
            }
            transaction.add(self.first[which] + number, &values[..places.len()])?;
        }
        transaction.run().await?;
        Ok(End::Commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_become_placeholders() {
        let variables = [("a".to_owned(), ()), ("b_1".to_owned(), ())];
        let read = |text: &str| placeholders(text, &variables);
        let (sql, used) = read("UPDATE t SET x = x + :b_1, y = ':a', z = :a::int WHERE id = :b_1").unwrap();
        assert_eq!(sql, "UPDATE t SET x = x + $1, y = ':a', z = $2::int WHERE id = $1");
        assert_eq!(used, [1, 0]);
        assert_eq!(read("SELECT 1").unwrap().1, [0usize; 0]);
        let (message, help) = read("SELECT :c").unwrap_err();
        assert!(message.contains("`:c`") && help.contains("set: {c: 1-100}"), "{message} {help}");
    }
}
