//! pgbench's transactions: `tpcb-like`, `simple-update`, `select-only`, after PostgreSQL's documentation of pgbench.

use super::{Action, Check, Family, Transact, Workload};
use crate::bulk::Bulk;
use crate::counterpart::Equal;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::job::Program;
use crate::options::{self, SCALE};
use crate::schema::{Column, Kind, Table};
use crate::statement::Statement;
use crate::transaction::{End, Transaction};
use crate::value::Value::{Int, Null, Text};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use tidemark_keys::Mapping;
use tidemark_load::engine::Operation;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;

/// The family.
pub(crate) static FAMILY: Family = Family {
    name: "pgbench",
    workloads: &[
        ("pgbench/tpcb-like", "Three updates, a read and an insert (pgbench's own default)"),
        ("pgbench/simple-update", "The same without the updates of the small tables, as `pgbench -N`"),
        ("pgbench/select-only", "One read by key, as `pgbench -S`"),
    ],
    keys: &KEYS,
    read: |_, keys| options::pack(&Options { scale: keys.value(&SCALE) }),
    open: |workload, options| {
        let kind = match workload {
            "pgbench/select-only" => Script::SelectOnly,
            "pgbench/simple-update" => Script::SimpleUpdate,
            _ => Script::TpcbLike,
        };
        let Options { scale } = Options::deserialize(options)?;
        Ok(Arc::new(Pgbench { kind, scale }))
    },
};

static KEYS: Mapping = Mapping::new("pgbench", "Options of pgbench's transactions", &[&SCALE]);

/// Rows per unit of scale.
const ACCOUNTS: u64 = 100_000;
const TELLERS: u64 = 10;

#[derive(Serialize, Deserialize)]
struct Options {
    scale: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Script {
    TpcbLike,
    SimpleUpdate,
    SelectOnly,
}

struct Pgbench {
    kind: Script,
    scale: u64,
}

const UPDATE_ACCOUNT: usize = 0;
const SELECT_ACCOUNT: usize = 1;
const UPDATE_TELLER: usize = 2;
const UPDATE_BRANCH: usize = 3;
const INSERT_HISTORY: usize = 4;

impl Workload for Pgbench {
    fn tables(&self) -> Vec<Table> {
        let int = |name| Column::new(name, Kind::Int);
        let filler = |length| Column::new("filler", Kind::Char(length)).nullable();
        let table = |name: &str, key, row_bytes, columns, rows| Table {
            key: vec![key],
            row_bytes,
            ..Table::new(name, columns, rows)
        };
        let history = vec![
            int("tid").nullable(),
            int("bid").nullable(),
            int("aid").nullable(),
            int("delta").nullable(),
            Column::new("mtime", Kind::Time).nullable(),
            filler(22),
        ];
        let (branches, accounts) = (int("bbalance").nullable(), int("abalance").nullable());
        vec![
            table("pgbench_branches", "bid", 40, vec![int("bid"), branches, filler(88)], self.scale),
            table(
                "pgbench_tellers",
                "tid",
                40,
                vec![int("tid"), int("bid").nullable(), int("tbalance").nullable(), filler(84)],
                self.scale * TELLERS,
            ),
            table(
                "pgbench_accounts",
                "aid",
                128,
                vec![int("aid"), int("bid").nullable(), accounts, filler(84)],
                self.scale * ACCOUNTS,
            ),
            Table::new("pgbench_history", history, 0),
        ]
    }

    fn generate(&self, table: usize, units: Range<u64>, bulk: &mut Bulk<'_>) {
        for unit in units {
            let (id, branch) = (unit as i64 + 1, |each: u64| Int((unit / each) as i64 + 1));
            match table {
                0 => bulk.row(&[Int(id), Int(0), Null]),
                1 => bulk.row(&[Int(id), branch(TELLERS), Int(0), Null]),
                // As pgbench has it: blanks, which storage that compresses stores in no space.
                _ => bulk.row(&[Int(id), branch(ACCOUNTS), Int(0), Text("")]),
            }
        }
    }

    fn version(&self) -> u32 {
        1
    }

    fn data_options(&self) -> serde_json::Value {
        options::pack(&Options { scale: self.scale })
    }

    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        let all = [
            "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2",
            "SELECT abalance FROM pgbench_accounts WHERE aid = $1",
            "UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2",
            "UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2",
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
        ];
        all.map(Statement::new).to_vec()
    }

    fn actions(&self) -> Vec<Action> {
        vec![match self.kind {
            Script::TpcbLike => Action::transaction("tpcb-like", 5.0),
            Script::SimpleUpdate => Action::transaction("simple-update", 3.0),
            Script::SelectOnly => Action::statement("select-only").reading(),
        }]
    }

    fn counterpart(&self) -> Result<Option<Equal>, String> {
        let script = match self.kind {
            Script::TpcbLike => "tpcb-like",
            Script::SimpleUpdate => "simple-update",
            Script::SelectOnly => "select-only",
        };
        Ok(Some(Equal { program: Program::Pgbench, arguments: vec![format!("--builtin={script}")] }))
    }

    fn checks(&self) -> Vec<Check> {
        let sum =
            |column: &str, table: &str| format!("(SELECT coalesce(sum({column}), 0) FROM pgbench_{table})");
        let history = sum("delta", "history");
        let same = |holds: &str, sum: String| Check {
            holds: holds.into(),
            broken_rows: format!("SELECT 1 FROM (SELECT 1 AS one) single WHERE {sum} <> {history}"),
            scans: true,
        };
        let accounts = same("the accounts' balances add up to the history", sum("abalance", "accounts"));
        let small = [
            same("the tellers' balances add up to the history", sum("tbalance", "tellers")),
            same("the branches' balances add up to the history", sum("bbalance", "branches")),
        ];
        // After simple updates, the small tables stay behind.
        let small = small.into_iter().filter(|_| self.kind == Script::TpcbLike);
        std::iter::once(accounts).chain(small).collect()
    }
}

impl Transact for Pgbench {
    type State = ();

    fn state(&self) {}

    async fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        _operation: &Operation,
        rng: &mut Rng,
        _state: &mut (),
    ) -> Result<End, Failure> {
        let account = Int(rng.below(self.scale * ACCOUNTS) as i64 + 1);
        if self.kind == Script::SelectOnly {
            transaction.query(SELECT_ACCOUNT, &[account]).await?;
            return Ok(End::Commit);
        }
        let branch = Int(rng.below(self.scale) as i64 + 1);
        let teller = Int(rng.below(self.scale * TELLERS) as i64 + 1);
        let delta = Int(rng.below(10_001) as i64 - 5000);
        transaction.add(UPDATE_ACCOUNT, &[delta, account])?;
        transaction.add(SELECT_ACCOUNT, &[account])?;
        if self.kind == Script::TpcbLike {
            transaction.add(UPDATE_TELLER, &[delta, teller])?;
            transaction.add(UPDATE_BRANCH, &[delta, branch])?;
        }
        transaction.add(INSERT_HISTORY, &[teller, branch, account, delta])?;
        transaction.run().await?;
        match transaction.rows(0).affected() {
            1 => Ok(End::Commit),
            _ => Err(Failure::new(Fault::NotFound, "an account that must be there is not")),
        }
    }
}
