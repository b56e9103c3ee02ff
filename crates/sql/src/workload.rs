//! What a workload is: tables, rows, statements, transactions. Each is one file below this one and one line in [`FAMILIES`].

pub(crate) mod bank;
pub(crate) mod connect;
pub(crate) mod kv;
pub(crate) mod movr;
pub(crate) mod own;
pub(crate) mod pgbench;
pub(crate) mod sysbench;
pub(crate) mod tpcc;
pub(crate) mod tpch;
pub(crate) mod ycsb;

use crate::bulk::Bulk;
use crate::counterpart::Equal;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::job::Spec;
use crate::schema::Table;
use crate::statement::Statement;
use crate::transaction::{End, Transaction};
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use tidemark_keys::Table as Keys;
use tidemark_keys::{Kind, Mapping, Problem};
use tidemark_load::engine::Operation;
use tidemark_load::pacing::TerminalPause;
use tidemark_load::source::Choice;
use tidemark_measure::pick::Pick;
use tidemark_measure::record::{Answer, FigureOf};
use tidemark_measure::rng::Rng;

/// All families of workloads: the list to which the next one is added.
pub static FAMILIES: [&Family; 10] = [
    &pgbench::FAMILY,
    &sysbench::FAMILY,
    &tpcc::FAMILY,
    &tpch::FAMILY,
    &bank::FAMILY,
    &kv::FAMILY,
    &movr::FAMILY,
    &ycsb::FAMILY,
    &connect::FAMILY,
    &own::FAMILY,
];

/// The keys of their options.
pub(crate) static KEYS: [&Mapping; FAMILIES.len()] = {
    let mut keys = [FAMILIES[0].keys; FAMILIES.len()];
    let mut index = 0;
    while index < FAMILIES.len() {
        keys[index] = FAMILIES[index].keys;
        index += 1;
    }
    keys
};

/// A workload, made of its options; an error where they are not ones that it has.
pub type Opened = Result<Arc<dyn Runnable>, serde_json::Error>;

/// Workloads that share tables and options: one file.
pub struct Family {
    /// Its name, under which its data set is known: `pgbench`.
    pub name: &'static str,
    /// Its workloads: each with its name in documents, `pgbench/tpcb-like`, and a few words.
    pub workloads: &'static [(&'static str, &'static str)],
    /// The keys of its options.
    pub keys: &'static Mapping,
    /// Reads the options of a workload.
    pub read: fn(workload: &str, keys: &mut Keys<'_>) -> serde_json::Value,
    /// Makes a workload of its options.
    pub open: fn(workload: &str, options: &serde_json::Value) -> Opened,
}

/// The data and the statements of a workload, with its options. One without tables of its own leaves out what is about them.
pub trait Workload: Send + Sync {
    /// Its tables, with their rows and indexes. They depend on the options alone.
    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }

    /// Adds the rows of some units of a table, which depend on the options and the units' numbers alone: the rows of a data
    /// set are the same whoever loads them, and after whatever interruption.
    fn generate(&self, _table: usize, _units: Range<u64>, _bulk: &mut Bulk<'_>) {}

    /// A number that is raised when `tables` or `generate` change: what an earlier version loaded is then loaded anew.
    fn version(&self) -> u32 {
        1
    }

    /// Those of its options that change the tables or their rows; what is loaded is known by them.
    fn data_options(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// The statements, which transactions name by their places in this list.
    fn statements(&self, dialect: Dialect) -> Vec<Statement>;

    /// Whether its transactions use all of its statements: one that the server refuses then is a mistake.
    fn uses_all_statements(&self) -> bool {
        false
    }

    /// Its kinds of transactions: the actions of its load, in order.
    fn actions(&self) -> Vec<Action>;

    /// SQL that makes what its tables are not: only of workloads without tables of their own.
    fn setup(&self) -> &[String] {
        &[]
    }

    /// SQL that removes it again.
    fn teardown(&self) -> &[String] {
        &[]
    }

    /// What makes the routines of the database that its transactions call, replacing those that are there; `None` where they call
    /// none, and nothing where this dialect has none for it.
    fn routines(&self, _dialect: Dialect) -> Option<Vec<String>> {
        None
    }

    /// What removes them, if they are there, whatever its options.
    fn drop_routines(&self, _dialect: Dialect) -> Vec<String> {
        Vec::new()
    }

    /// Whether its clients have their connections before the load begins, and keep them.
    fn keeps_connections(&self) -> bool {
        true
    }

    /// Whether its actions come exactly as often as their weights say, which then are whole numbers of cards in a deck.
    fn draws_from_a_deck(&self) -> bool {
        false
    }

    /// The orders in which its clients go through its actions, one for each client, and how often each of them does; `None` where
    /// actions are drawn by their weights, for as long as the document says.
    fn orders(&self) -> Option<(Vec<Vec<u16>>, u32)> {
        None
    }

    /// The scale factor of its tables, of workloads that have [orders](Self::orders) and are looked at query by query: each execution
    /// of an action that writes nothing is then recorded.
    fn scale(&self) -> Option<String> {
        None
    }

    /// The terminals that its clients are, if people are at them.
    fn terminals(&self) -> Option<Terminals> {
        None
    }

    /// The figures that its users know it by.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    /// How another program does the same transactions, if one does.
    ///
    /// # Errors
    /// Why one that does such transactions does not do these: what stands behind the name of a load in a sentence.
    fn counterpart(&self) -> Result<Option<Equal>, String> {
        Ok(None)
    }

    /// What must hold whenever no transaction is open.
    fn checks(&self) -> Vec<Check> {
        Vec::new()
    }
}

/// The transactions of a workload: the hot path, compiled for each workload.
pub trait Transact: Workload + Sized + 'static {
    /// What a connection's slot keeps from transaction to transaction: buffers, counters.
    type State;

    /// The state of a slot.
    fn state(&self) -> Self::State;

    /// Does the body of a transaction. `operation` says which action, for which client (`space`, from 1), and has the item
    /// that its choice picked; all further choices come from `rng`, which is the same in every attempt.
    fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &Operation,
        rng: &mut Rng,
        state: &mut Self::State,
    ) -> impl Future<Output = Result<End, Failure>>;

    /// What it found in the answer of the last query, of workloads that are looked at query by query.
    fn told(&self, _state: &Self::State) -> Told {
        Told::default()
    }
}

pub use crate::slot::Runnable;

/// What a workload found in the answer of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Its rows.
    pub rows: u64,
    /// What it was compared with.
    pub answer: Answer,
}

/// Terminals with people at them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminals {
    /// How many the workload has.
    pub count: u32,
    /// What their people spend around each action, in the order of the actions.
    pub pauses: Vec<TerminalPause>,
}

/// A kind of transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Its name in reports.
    pub label: String,
    /// Its share of the mix.
    pub weight: f64,
    /// Whether the engine puts `BEGIN` and `COMMIT` around it; otherwise each statement is a transaction of its own.
    pub explicit: bool,
    /// Whether it changes data.
    pub writes: bool,
    /// Statements of one transaction, on average, without `BEGIN` and `COMMIT`.
    pub statements: f64,
    /// Which items its operations are given.
    pub items: Pick,
}

impl Action {
    /// A transaction with `BEGIN` and `COMMIT`.
    pub fn transaction(label: impl Into<String>, statements: f64) -> Self {
        let items = Pick::Constant(0);
        Self { label: label.into(), weight: 1.0, explicit: true, writes: true, statements, items }
    }

    /// One statement, which is a transaction of its own.
    pub fn statement(label: impl Into<String>) -> Self {
        Self { explicit: false, ..Self::transaction(label, 1.0) }
    }

    /// The same, changing nothing.
    pub fn reading(self) -> Self {
        Self { writes: false, ..self }
    }

    /// The same with another weight.
    pub fn weight(self, weight: f64) -> Self {
        Self { weight, ..self }
    }
}

/// A figure that users know a workload by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name: `NOPM`.
    pub name: &'static str,
    /// What it is, in a few words without a full stop.
    pub about: &'static str,
    /// How it follows from what was counted.
    pub of: FigureOf,
}

/// Something that must hold in the data: a query that gives the rows which break it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What must hold, without a full stop.
    pub holds: String,
    /// The query.
    pub broken_rows: String,
    /// Whether it takes long: it reads tables that may be large as a whole.
    pub scans: bool,
}

/// The workload that a job names.
///
/// # Errors
/// When there is none of this name, or its options are not ones that it has: a plan of another version.
pub fn open(spec: &Spec) -> Result<Arc<dyn Runnable>, String> {
    let (family, name) =
        find(&spec.name).ok_or_else(|| format!("this program has no workload '{}'", spec.name))?;
    (family.open)(name, &spec.options).map_err(|error| format!("the workload {name}: {error}"))
}

/// The family of a workload, and the workload's name.
pub fn find(name: &str) -> Option<(&'static Family, &'static str)> {
    all().find(|(_, (known, _))| *known == name).map(|(family, (known, _))| (family, *known))
}

fn all() -> impl Iterator<Item = (&'static Family, &'static (&'static str, &'static str))> + Clone {
    FAMILIES.iter().flat_map(|family| family.workloads.iter().map(move |workload| (*family, workload)))
}

/// The names of workloads, as a kind of value.
pub(crate) struct Names;

impl Kind for Names {
    type Value = (&'static Family, &'static str);

    fn read(&self, text: &str) -> Result<Self::Value, Problem> {
        tidemark_keys::kinds::choose(text, all().map(|(family, (name, _))| (*name, (family, *name))))
    }

    fn schema(&self) -> serde_json::Value {
        serde_json::json!({"enum": all().map(|(_, (name, _))| *name).collect::<Vec<_>>()})
    }

    fn words(&self) -> String {
        "workload".to_owned()
    }
}

/// One more use of the load core's choices: what an action adds to the common part.
pub(crate) fn choice(action: &Action, number: u16, clients: u32) -> Choice {
    use tidemark_load::source::{Division, Effect, Order};
    Choice {
        action: number,
        weight: action.weight,
        // Each client has one number of its own: whatever thread or driver it is on.
        spaces: Pick::Sequence { low: 1, high: clients.into() },
        items: action.items.clone(),
        bytes: tidemark_plan::yaml::values::constant(0),
        division: Division::Spaces,
        effect: Effect::Free,
        order: Order::Picked,
        follow: None,
    }
}
