//! A bank: money moves between accounts, and none is made or lost. The sum of all balances is looked at while the load is on.

use super::{Action, Check, Family, Transact, Workload};
use crate::bulk::Bulk;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::options::{self, ROWS_KEY};
use crate::schema::{Column, Kind, Table};
use crate::statement::Statement;
use crate::transaction::{End, Transaction};
use crate::value::Value::{Bytes, Int};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use tidemark_keys::kinds::{Share, Whole};
use tidemark_keys::{Key, Mapping};
use tidemark_load::engine::Operation;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;

/// The family.
pub(crate) static FAMILY: Family = Family {
    name: "bank",
    workloads: &[
        ("bank/transfer", "One statement moves an amount between two accounts, as CockroachDB's `bank`"),
        (
            "bank/read-and-write",
            "Two reads and two writes of what was read: keeps its sum only where transactions are isolated",
        ),
    ],
    keys: &KEYS,
    read: |_, keys| {
        options::pack(&Options {
            rows: keys.get(&ROWS_KEY).unwrap_or(1000).max(2),
            payload_bytes: keys.value(&PAYLOAD_BYTES),
            audits: keys.value(&AUDITS),
        })
    },
    open: |workload, options| {
        let options = Options::deserialize(options)?;
        Ok(Arc::new(Bank { reads: workload == "bank/read-and-write", options }))
    },
};

static KEYS: Mapping = Mapping::new("bank", "Options of the bank", &[&ROWS_KEY, &PAYLOAD_BYTES, &AUDITS]);
static PAYLOAD_BYTES: Key<Whole<u32>> =
    Key::new("payload_bytes", "Bytes beside a balance, random", Whole(0, 1_000_000)).default("100");
static AUDITS: Key<Share> =
    Key::new("audits", "Share of operations that add up all balances", Share).default("1%");

const SEED: u64 = 0x6261_6e6b;

#[derive(Serialize, Deserialize)]
struct Options {
    rows: u64,
    payload_bytes: u32,
    audits: f64,
}

struct Bank {
    /// Whether balances are read before they are written.
    reads: bool,
    options: Options,
}

const TRANSFER: usize = 0;
const READ: usize = 1;
const WRITE: usize = 2;
const SUM: usize = 3;

impl Workload for Bank {
    fn tables(&self) -> Vec<Table> {
        let columns = vec![
            Column::new("id", Kind::BigInt),
            Column::new("balance", Kind::BigInt),
            Column::new("payload", Kind::Bytes),
        ];
        let row_bytes = 48 + u64::from(self.options.payload_bytes);
        vec![Table { key: vec!["id"], row_bytes, ..Table::new("bank", columns, self.options.rows) }]
    }

    fn generate(&self, _table: usize, units: Range<u64>, bulk: &mut Bulk<'_>) {
        let mut payload = vec![0; self.options.payload_bytes as usize];
        for unit in units {
            let mut rng = Rng::new(SEED, &[unit]);
            payload
                .chunks_mut(8)
                .for_each(|chunk| chunk.copy_from_slice(&rng.bits().to_le_bytes()[..chunk.len()]));
            bulk.row(&[Int(unit as i64), Int(0), Bytes(&payload)]);
        }
    }

    fn version(&self) -> u32 {
        1
    }

    fn data_options(&self) -> serde_json::Value {
        serde_json::json!({"rows": self.options.rows, "payload_bytes": self.options.payload_bytes})
    }

    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        let all = [
            "UPDATE bank SET balance = CASE id WHEN $1 THEN balance - $3 WHEN $2 THEN balance + $3 END WHERE id IN ($1, $2)",
            "SELECT balance FROM bank WHERE id = $1",
            "UPDATE bank SET balance = $1 WHERE id = $2",
            "SELECT count(*), coalesce(sum(balance), 0) FROM bank",
        ];
        all.map(Statement::new).to_vec()
    }

    fn actions(&self) -> Vec<Action> {
        let transfer = match self.reads {
            false => Action::statement("transfer"),
            true => Action::transaction("transfer", 4.0),
        };
        let audits = self.options.audits.clamp(0.0, 1.0);
        let all = [transfer.weight(1.0 - audits), Action::statement("audit").reading().weight(audits)];
        all.into_iter().filter(|action| action.weight > 0.0).collect()
    }

    fn checks(&self) -> Vec<Check> {
        let (holds, rows) = ("the balances add up to nothing, and no account is missing", self.options.rows);
        let sql = format!("SELECT 1 FROM bank HAVING coalesce(sum(balance), 0) <> 0 OR count(*) <> {rows}");
        vec![Check { holds: holds.into(), broken_rows: sql, scans: false }]
    }
}

impl Transact for Bank {
    type State = ();

    fn state(&self) {}

    async fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &Operation,
        rng: &mut Rng,
        _state: &mut (),
    ) -> Result<End, Failure> {
        let audits = operation.action == 1 || self.options.audits >= 1.0;
        if audits {
            let row = transaction.query(SUM, &[]).await?.first()?;
            let (count, sum): (u64, i64) = (row.number(0)?, row.number(1)?);
            if (count, sum) != (self.options.rows, 0) {
                let text =
                    format!("{count} accounts have {sum} in all, and must be {} with 0", self.options.rows);
                return Err(Failure::new(Fault::BrokenInvariant, text));
            }
            return Ok(End::Commit);
        }
        let from = rng.below(self.options.rows) as i64;
        // Another one.
        let to = (from + 1 + rng.below(self.options.rows - 1) as i64) % self.options.rows as i64;
        let amount = rng.below(999) as i64;
        if !self.reads {
            let changed = transaction.execute(TRANSFER, &[Int(from), Int(to), Int(amount)]).await?;
            return match changed {
                2 => Ok(End::Commit),
                _ => {
                    Err(Failure::new(Fault::NotFound, format!("a transfer changed {changed} accounts of 2")))
                }
            };
        }
        transaction.add(READ, &[Int(from)])?;
        transaction.add(READ, &[Int(to)])?;
        transaction.run().await?;
        let mut balances = [0i64; 2];
        for (place, balance) in balances.iter_mut().enumerate() {
            *balance = transaction.rows(place).first()?.number(0)?;
        }
        transaction.add(WRITE, &[Int(balances[0] - amount), Int(from)])?;
        transaction.add(WRITE, &[Int(balances[1] + amount), Int(to)])?;
        transaction.run().await?;
        Ok(End::Commit)
    }
}
