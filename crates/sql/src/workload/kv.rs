//! Keys and values, after CockroachDB's `kv`: reads, upserts, deletes and spans of keys that are spread over the whole range
//! of numbers.

use super::{Action, Family, Transact, Workload};
use crate::bulk::Bulk;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::options::{self, Chooser, DISTRIBUTION, Distribution, ROWS, Rows};
use crate::schema::{Column, Kind, Table};
use crate::statement::Statement;
use crate::transaction::{End, Transaction};
use crate::value::Value::{Bytes, Int};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use tidemark_keys::kinds::{Bytes as Size, Share, Whole};
use tidemark_keys::{Key, Mapping, Table as Keys};
use tidemark_load::engine::Operation;
use tidemark_measure::rng::{self, Rng};

/// The family.
pub(crate) static FAMILY: Family = Family {
    name: "kv",
    workloads: &[("kv", "Reads and writes of values by key")],
    keys: &KEYS,
    read,
    open: |_, options| Ok(Arc::new(Kv::new(Options::deserialize(options)?))),
};

static KEYS: Mapping = Mapping::new(
    "kv",
    "Options of `kv`",
    &[
        &INSERT_COUNT,
        &READ_PERCENT,
        &DEL_PERCENT,
        &SPAN_PERCENT,
        &SPAN_LIMIT,
        &MIN_BLOCK_BYTES,
        &MAX_BLOCK_BYTES,
        &DISTRIBUTION,
    ],
);

static INSERT_COUNT: Key<Rows> =
    Key::new("insert_count", "Keys that are loaded, and used", ROWS).default("100k");
static READ_PERCENT: Key<Share> = Key::new("read_percent", "Share of reads", Share).default("0");
static DEL_PERCENT: Key<Share> = Key::new("del_percent", "Share of deletes", Share).default("0");
static SPAN_PERCENT: Key<Share> =
    Key::new("span_percent", "Share of counts of keys in a row", Share).default("0");
static SPAN_LIMIT: Key<Whole<u32>> =
    Key::new("span_limit", "Keys of such a count", Whole(1, 1_000_000)).default("100");
static MIN_BLOCK_BYTES: Key<Size> =
    Key::new("min_block_bytes", "Least bytes of a value", Size(1)).default("1");
static MAX_BLOCK_BYTES: Key<Size> =
    Key::new("max_block_bytes", "Most bytes of a value", Size(1)).otherwise("`min_block_bytes`");

const SEED: u64 = 0x6b76;
/// The largest value.
const MOST_BYTES: u64 = 64 << 20;
const ZIPF_EXPONENT: f64 = 1.1;

#[derive(Serialize, Deserialize)]
struct Options {
    insert_count: u64,
    reads: f64,
    deletes: f64,
    spans: f64,
    span_limit: u32,
    bytes: (u64, u64),
    distribution: Distribution,
}

fn read(_workload: &str, keys: &mut Keys<'_>) -> serde_json::Value {
    let (reads, deletes, spans) =
        (keys.value(&READ_PERCENT), keys.value(&DEL_PERCENT), keys.value(&SPAN_PERCENT));
    if reads + deletes + spans > 1.0 {
        let message = "`read_percent`, `del_percent` and `span_percent` are more than 100 % together";
        keys.log().error(keys.place(), message, "make one of them smaller: writes are what is left");
    }
    let least = keys.value(&MIN_BLOCK_BYTES).min(MOST_BYTES);
    let most = keys.get(&MAX_BLOCK_BYTES).unwrap_or(least).min(MOST_BYTES);
    options::pack(&Options {
        insert_count: keys.value(&INSERT_COUNT),
        reads,
        deletes,
        spans,
        span_limit: keys.value(&SPAN_LIMIT),
        bytes: (least, most.max(least)),
        distribution: keys.get(&DISTRIBUTION).unwrap_or(Distribution::Uniform),
    })
}

struct Kv {
    options: Options,
    /// The statements that have a share of the mix, each with it: the actions.
    shares: Vec<(usize, f64)>,
}

const READ: usize = 0;
const WRITE: usize = 1;
const DELETE: usize = 2;
const SPAN: usize = 3;

impl Kv {
    fn new(options: Options) -> Self {
        let Options { reads, deletes, spans, .. } = options;
        let writes = 1.0 - reads - deletes - spans;
        let shares = [(READ, reads), (WRITE, writes), (DELETE, deletes), (SPAN, spans)];
        // What is left of 100 % after rounding is no share.
        let shares = shares.into_iter().filter(|(_, share)| *share > 1e-9).collect();
        Self { options, shares }
    }
}

/// The key of a number: spread over all of them.
fn key(number: u64) -> i64 {
    rng::mix(SEED, &[number]) as i64
}

/// A value of random bytes.
fn value(bytes: (u64, u64), buffer: &mut Vec<u8>, rng: &mut Rng) {
    buffer.resize((bytes.0 + rng.below(bytes.1 - bytes.0 + 1)) as usize, 0);
    buffer.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&rng.bits().to_le_bytes()[..chunk.len()]));
}

impl Workload for Kv {
    fn tables(&self) -> Vec<Table> {
        let columns = vec![Column::new("k", Kind::BigInt), Column::new("v", Kind::Bytes)];
        let row_bytes = 44 + (self.options.bytes.0 + self.options.bytes.1) / 2;
        vec![Table { key: vec!["k"], row_bytes, ..Table::new("kv", columns, self.options.insert_count) }]
    }

    fn generate(&self, _table: usize, units: Range<u64>, bulk: &mut Bulk<'_>) {
        let mut buffer = Vec::new();
        for unit in units {
            value(self.options.bytes, &mut buffer, &mut Rng::new(SEED, &[unit]));
            bulk.row(&[Int(key(unit)), Bytes(&buffer)]);
        }
    }

    fn version(&self) -> u32 {
        1
    }

    fn data_options(&self) -> serde_json::Value {
        serde_json::json!({"insert_count": self.options.insert_count, "bytes": self.options.bytes})
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let all = [
            "SELECT v FROM kv WHERE k = $1".to_owned(),
            dialect.upsert("kv", "k", &["v"]),
            "DELETE FROM kv WHERE k = $1".to_owned(),
            format!(
                "SELECT count(*) FROM (SELECT v FROM kv WHERE k >= $1 ORDER BY k LIMIT {}) s",
                self.options.span_limit
            ),
        ];
        all.map(Statement::new).to_vec()
    }

    fn actions(&self) -> Vec<Action> {
        let action = |(statement, share): &(usize, f64)| {
            let action = match *statement {
                READ => Action::statement("read").reading(),
                WRITE => Action::statement("write"),
                DELETE => Action::statement("delete"),
                _ => Action::statement("span").reading(),
            };
            action.weight(*share)
        };
        self.shares.iter().map(action).collect()
    }
}

/// What a slot keeps.
struct State {
    keys: Chooser,
    value: Vec<u8>,
}

impl Transact for Kv {
    type State = State;

    fn state(&self) -> State {
        State {
            keys: Chooser::new(self.options.distribution, self.options.insert_count, ZIPF_EXPONENT),
            value: Vec::new(),
        }
    }

    async fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &Operation,
        rng: &mut Rng,
        state: &mut State,
    ) -> Result<End, Failure> {
        let key = Int(key(state.keys.next(rng)));
        match self.shares[usize::from(operation.action)].0 {
            WRITE => {
                value(self.options.bytes, &mut state.value, rng);
                transaction.query(WRITE, &[key, Bytes(&state.value)]).await?;
            }
            statement => {
                transaction.query(statement, &[key]).await?;
            }
        }
        Ok(End::Commit)
    }
}
