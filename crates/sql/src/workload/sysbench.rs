//! sysbench's OLTP workloads, after its documentation and the behaviour of its scripts.
//!
//! An event draws a table for each group of statements, and rows by the chosen distribution. `oltp_75_25` is the mix of the
//! storage papers: 12 reads for 4 writes.

use super::{Action, Family, Transact, Workload};
use crate::bulk::Bulk;
use crate::counterpart::Equal;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::job::Program;
use crate::options::{self, Chooser, DISTRIBUTION, Distribution, ROWS, Rows};
use crate::schema::{Column, Index, Kind, Table};
use crate::statement::Statement;
use crate::transaction::{End, Transaction};
use crate::value::Value::{Int, Text};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use tidemark_keys::kinds::{Flag, Whole};
use tidemark_keys::{Key, Mapping, Table as Keys};
use tidemark_load::engine::Operation;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;

/// The family.
pub(crate) static FAMILY: Family = Family {
    name: "sysbench",
    workloads: &[
        ("sysbench/oltp_read_write", "14 reads and 4 writes in a transaction"),
        ("sysbench/oltp_read_only", "14 reads in a transaction"),
        ("sysbench/oltp_write_only", "4 writes in a transaction"),
        ("sysbench/oltp_point_select", "One read by key"),
        ("sysbench/oltp_update_index", "One update of an indexed column"),
        ("sysbench/oltp_update_non_index", "One update of a column without an index"),
        ("sysbench/oltp_insert", "One insert"),
        ("sysbench/oltp_delete", "One delete by key"),
        ("sysbench/oltp_75_25", "12 reads and 4 writes in a transaction"),
    ],
    keys: &KEYS,
    read,
    open: |workload, options| Ok(Arc::new(Sysbench::new(workload, Options::deserialize(options)?))),
};

static KEYS: Mapping = Mapping::new(
    "sysbench",
    "Options of sysbench's OLTP workloads",
    &[
        &TABLES,
        &TABLE_SIZE,
        &RANGE_SIZE,
        &POINT_SELECTS,
        &SIMPLE_RANGES,
        &SUM_RANGES,
        &ORDER_RANGES,
        &DISTINCT_RANGES,
        &INDEX_UPDATES,
        &NON_INDEX_UPDATES,
        &DELETE_INSERTS,
        &SKIP_TRX,
        &DISTRIBUTION,
    ],
);

static TABLES: Key<Whole<u64>> = Key::new("tables", "Number of tables", Whole(1, 10_000)).default("1");
static TABLE_SIZE: Key<Rows> = Key::new("table_size", "Rows of each table", ROWS).default("10000");
static RANGE_SIZE: Key<Whole<u64>> =
    Key::new("range_size", "Rows that a range reads", Whole(1, 1_000_000)).default("100");
const COUNT: Whole<u32> = Whole(0, 1000);
static POINT_SELECTS: Key<Whole<u32>> =
    Key::new("point_selects", "Reads by key in a transaction", COUNT).otherwise("`10`; of oltp_75_25 `8`");
static SIMPLE_RANGES: Key<Whole<u32>> =
    Key::new("simple_ranges", "Reads of a range in a transaction", COUNT).default("1");
static SUM_RANGES: Key<Whole<u32>> =
    Key::new("sum_ranges", "Sums over a range in a transaction", COUNT).default("1");
static ORDER_RANGES: Key<Whole<u32>> =
    Key::new("order_ranges", "Reads of a range in order in a transaction", COUNT).default("1");
static DISTINCT_RANGES: Key<Whole<u32>> =
    Key::new("distinct_ranges", "Reads of what differs in a range in a transaction", COUNT).default("1");
static INDEX_UPDATES: Key<Whole<u32>> =
    Key::new("index_updates", "Updates of the indexed column in a transaction", COUNT).default("1");
static NON_INDEX_UPDATES: Key<Whole<u32>> =
    Key::new("non_index_updates", "Updates of a column without an index in a transaction", COUNT)
        .default("1");
static DELETE_INSERTS: Key<Whole<u32>> =
    Key::new("delete_inserts", "Rows deleted and inserted again in a transaction", COUNT).default("1");
static SKIP_TRX: Key<Flag> =
    Key::new("skip_trx", "Without a transaction around an event's statements", Flag).default("false");

/// sysbench's own exponent of its Zipf distribution.
const ZIPF_EXPONENT: f64 = 0.8;

/// Where rows are generated from; `k` is uniform, as `c` and `pad` are.
const SEED: u64 = 0x7379_7362;

#[derive(Clone, Serialize, Deserialize)]
struct Options {
    tables: u64,
    table_size: u64,
    range_size: u64,
    /// How often each of [`READS`] and [`WRITES`] is done in a transaction.
    reads: [u32; 5],
    writes: [u32; 3],
    skip_trx: bool,
    distribution: Distribution,
}

fn read(workload: &str, keys: &mut Keys<'_>) -> serde_json::Value {
    let points = if workload.ends_with("75_25") { 8 } else { 10 };
    options::pack(&Options {
        tables: keys.value(&TABLES),
        table_size: keys.value(&TABLE_SIZE),
        range_size: keys.value(&RANGE_SIZE),
        reads: [
            keys.get(&POINT_SELECTS).unwrap_or(points),
            keys.value(&SIMPLE_RANGES),
            keys.value(&SUM_RANGES),
            keys.value(&ORDER_RANGES),
            keys.value(&DISTINCT_RANGES),
        ],
        writes: [keys.value(&INDEX_UPDATES), keys.value(&NON_INDEX_UPDATES), keys.value(&DELETE_INSERTS)],
        skip_trx: keys.value(&SKIP_TRX),
        distribution: keys.get(&DISTRIBUTION).unwrap_or(Distribution::Uniform),
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Event {
    /// Reads and writes.
    Mix,
    One(usize),
}

/// Statements of one table, in their order among them.
const POINT: usize = 0;
const UPDATE_INDEX: usize = 5;
const UPDATE_NON_INDEX: usize = 6;
const DELETE: usize = 7;
const INSERT: usize = 8;
const INSERT_NEXT: usize = 9;
const EACH: usize = 10;

struct Sysbench {
    event: Event,
    options: Options,
}

impl Sysbench {
    fn new(workload: &str, mut options: Options) -> Self {
        let event = match workload {
            "sysbench/oltp_point_select" => Event::One(POINT),
            "sysbench/oltp_update_index" => Event::One(UPDATE_INDEX),
            "sysbench/oltp_update_non_index" => Event::One(UPDATE_NON_INDEX),
            "sysbench/oltp_delete" => Event::One(DELETE),
            "sysbench/oltp_insert" => Event::One(INSERT_NEXT),
            "sysbench/oltp_read_only" => {
                options.writes = [0; 3];
                Event::Mix
            }
            "sysbench/oltp_write_only" => {
                options.reads = [0; 5];
                Event::Mix
            }
            _ => Event::Mix,
        };
        Self { event, options }
    }
}

impl Workload for Sysbench {
    fn tables(&self) -> Vec<Table> {
        let table = |number: u64| {
            let columns = vec![
                Column::new("id", Kind::Int).counted(),
                Column::new("k", Kind::Int).default("0"),
                Column::new("c", Kind::Char(120)).default("''"),
                Column::new("pad", Kind::Char(60)).default("''"),
            ];
            let index = Index { name: format!("k_{number}"), columns: vec!["k"], unique: false };
            Table {
                key: vec!["id"],
                indexes: vec![index],
                row_bytes: 224,
                ..Table::new(format!("sbtest{number}"), columns, self.options.table_size)
            }
        };
        (1..=self.options.tables).map(table).collect()
    }

    fn generate(&self, table: usize, units: Range<u64>, bulk: &mut Bulk<'_>) {
        let (mut c, mut pad) = (String::new(), String::new());
        for unit in units {
            let mut rng = Rng::new(SEED, &[table as u64, unit]);
            let k = rng.below(self.options.table_size) as i64 + 1;
            groups(&mut c, 10, &mut rng);
            groups(&mut pad, 5, &mut rng);
            bulk.row(&[Int(unit as i64 + 1), Int(k), Text(&c), Text(&pad)]);
        }
    }

    fn version(&self) -> u32 {
        1
    }

    fn data_options(&self) -> serde_json::Value {
        serde_json::json!({"tables": self.options.tables, "table_size": self.options.table_size})
    }

    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        let of = |number: u64| {
            let table = format!("sbtest{number}");
            let own: [String; EACH] = [
                format!("SELECT c FROM {table} WHERE id = $1"),
                format!("SELECT c FROM {table} WHERE id BETWEEN $1 AND $2"),
                format!("SELECT SUM(k) FROM {table} WHERE id BETWEEN $1 AND $2"),
                format!("SELECT c FROM {table} WHERE id BETWEEN $1 AND $2 ORDER BY c"),
                format!("SELECT DISTINCT c FROM {table} WHERE id BETWEEN $1 AND $2 ORDER BY c"),
                format!("UPDATE {table} SET k = k + 1 WHERE id = $1"),
                format!("UPDATE {table} SET c = $1 WHERE id = $2"),
                format!("DELETE FROM {table} WHERE id = $1"),
                format!("INSERT INTO {table} (id, k, c, pad) VALUES ($1, $2, $3, $4)"),
                format!("INSERT INTO {table} (k, c, pad) VALUES ($1, $2, $3)"),
            ];
            own.map(Statement::new)
        };
        (1..=self.options.tables).flat_map(of).collect()
    }

    fn actions(&self) -> Vec<Action> {
        let (reads, writes) = (self.options.reads, self.options.writes);
        vec![match self.event {
            Event::One(POINT) => Action::statement("point_select").reading(),
            Event::One(UPDATE_INDEX) => Action::statement("update_index"),
            Event::One(UPDATE_NON_INDEX) => Action::statement("update_non_index"),
            Event::One(DELETE) => Action::statement("delete"),
            Event::One(_) => Action::statement("insert"),
            Event::Mix => {
                let reads: u32 = reads.iter().sum();
                let writes = writes[0] + writes[1] + 2 * writes[2];
                let label = match (reads, writes) {
                    (_, 0) => "read_only",
                    (0, _) => "write_only",
                    _ => "read_write",
                };
                let action = Action::transaction(label, f64::from(reads + writes));
                Action { explicit: !self.options.skip_trx, writes: writes > 0, ..action }
            }
        }]
    }

    fn counterpart(&self) -> Result<Option<Equal>, String> {
        let Options { tables, table_size, range_size, reads, writes, skip_trx, distribution } = &self.options;
        let script = match self.event {
            Event::One(POINT) => "oltp_point_select",
            Event::One(UPDATE_INDEX) => "oltp_update_index",
            Event::One(UPDATE_NON_INDEX) => "oltp_update_non_index",
            Event::One(DELETE) => "oltp_delete",
            Event::One(_) => "oltp_insert",
            Event::Mix if writes.iter().all(|count| *count == 0) => "oltp_read_only",
            Event::Mix if reads.iter().all(|count| *count == 0) => "oltp_write_only",
            Event::Mix => "oltp_read_write",
        };
        let distribution = match distribution {
            Distribution::Uniform => "uniform",
            Distribution::Special => "special",
            Distribution::Gaussian => "gaussian",
            Distribution::Pareto => "pareto",
            Distribution::Zipfian => {
                return Err("chooses rows by Zipf's law, scattered over the table, and those of sysbench are not; use \
                            another `distribution` for the cross-check."
                    .into());
            }
        };
        let mut arguments = vec![
            script.to_owned(),
            format!("--tables={tables}"),
            format!("--table-size={table_size}"),
            format!("--rand-type={distribution}"),
        ];
        if self.event == Event::Mix {
            let names = ["point-selects", "simple-ranges", "sum-ranges", "order-ranges", "distinct-ranges"];
            let names = names.into_iter().chain(["index-updates", "non-index-updates", "delete-inserts"]);
            let counts = reads.iter().chain(writes);
            arguments.extend(names.zip(counts).map(|(name, count)| format!("--{name}={count}")));
            arguments.push(format!("--range-size={range_size}"));
            arguments.push(format!("--skip-trx={}", if *skip_trx { "on" } else { "off" }));
        }
        Ok(Some(Equal { program: Program::Sysbench, arguments }))
    }
}

/// Groups of eleven digits with dashes between them.
fn groups(text: &mut String, count: usize, rng: &mut Rng) {
    text.clear();
    for group in 0..count {
        if group > 0 {
            text.push('-');
        }
        let mut digits = rng.below(100_000_000_000);
        for _ in 0..11 {
            text.push(char::from(b'0' + (digits % 10) as u8));
            digits /= 10;
        }
    }
}

/// What a slot keeps.
struct State {
    rows: Chooser,
    c: String,
    pad: String,
}

impl Transact for Sysbench {
    type State = State;

    fn state(&self) -> State {
        let rows = Chooser::new(self.options.distribution, self.options.table_size, ZIPF_EXPONENT);
        State { rows, c: String::new(), pad: String::new() }
    }

    async fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        _operation: &Operation,
        rng: &mut Rng,
        state: &mut State,
    ) -> Result<End, Failure> {
        let Event::Mix = self.event else {
            let Event::One(statement) = self.event else { return Ok(End::Commit) };
            self.one(transaction, statement, rng, state)?;
            transaction.run().await?;
            return Ok(End::Commit);
        };
        // The reads of an event are one batch, and so are its writes: they need nothing of each other.
        let size = self.options.range_size as i64;
        for (kind, count) in self.options.reads.iter().enumerate() {
            let table = self.table(rng);
            for _ in 0..*count {
                let id = state.rows.next(rng) as i64 + 1;
                match kind {
                    POINT => transaction.add(table + kind, &[Int(id)])?,
                    _ => transaction.add(table + kind, &[Int(id), Int(id + size - 1)])?,
                }
            }
        }
        for (kind, count) in self.options.writes.iter().enumerate() {
            for _ in 0..*count {
                match kind {
                    0 => self.one(transaction, UPDATE_INDEX, rng, state)?,
                    1 => self.one(transaction, UPDATE_NON_INDEX, rng, state)?,
                    _ => self.delete_and_insert(transaction, rng, state)?,
                }
            }
        }
        transaction.run().await.map_err(raced)?;
        Ok(End::Commit)
    }
}

/// Two events may delete the same row and insert it again at the same time. On PostgreSQL the second one then finds the row there
/// (23505): a conflict, after which sysbench, too, begins the event anew.
fn raced(failure: Failure) -> Failure {
    match failure.code {
        Some(code) if code == *b"23505" => Failure { fault: Fault::Serialization, ..failure },
        _ => failure,
    }
}

impl Sysbench {
    /// The first statement of a table.
    fn table(&self, rng: &mut Rng) -> usize {
        rng.below(self.options.tables) as usize * EACH
    }

    /// A single statement of one kind.
    fn one(
        &self,
        transaction: &mut Transaction<'_>,
        kind: usize,
        rng: &mut Rng,
        state: &mut State,
    ) -> Result<(), Failure> {
        let statement = self.table(rng) + kind;
        let id = Int(state.rows.next(rng) as i64 + 1);
        match kind {
            UPDATE_NON_INDEX => {
                groups(&mut state.c, 10, rng);
                transaction.add(statement, &[Text(&state.c), id])
            }
            INSERT_NEXT => {
                groups(&mut state.c, 10, rng);
                groups(&mut state.pad, 5, rng);
                transaction.add(statement, &[id, Text(&state.c), Text(&state.pad)])
            }
            _ => transaction.add(statement, &[id]),
        }
    }

    fn delete_and_insert(
        &self,
        transaction: &mut Transaction<'_>,
        rng: &mut Rng,
        state: &mut State,
    ) -> Result<(), Failure> {
        let table = self.table(rng);
        let (id, k) = (Int(state.rows.next(rng) as i64 + 1), Int(state.rows.next(rng) as i64 + 1));
        groups(&mut state.c, 10, rng);
        groups(&mut state.pad, 5, rng);
        transaction.add(table + DELETE, &[id])?;
        transaction.add(table + INSERT, &[id, k, Text(&state.c), Text(&state.pad)])
    }
}
