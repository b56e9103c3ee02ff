//! The order entry of wholesale warehouses after the TPC-C specification (revision 5.11): tables, transactions and
//! consistency conditions. Without its terminals' keying and think times, its results are no TPC-C results.

mod checks;
mod draw;
mod figures;
mod routines;
mod rows;
mod schema;
mod statements;
mod transactions;

use super::{Action, Check, Family, Figure, Transact, Workload};
use crate::bulk::Bulk;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::options;
use crate::schema::Table;
use crate::statement::Statement;
use crate::transaction::{End, Transaction};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use tidemark_keys::kinds::{Whole, Word};
use tidemark_keys::{Key, Mapping};
use tidemark_load::engine::Operation;
use tidemark_measure::rng::Rng;

/// The family.
pub(crate) static FAMILY: Family = Family {
    name: "tpcc",
    workloads: &[(
        "tpcc",
        "Order entry after TPC-C: new-order, payment, order-status, delivery, stock-level as 10:10:1:1:1",
    )],
    keys: &KEYS,
    read: |_, keys| {
        options::pack(&Options {
            warehouses: keys.value(&WAREHOUSES),
            home: keys.value(&HOME),
            mode: keys.value(&MODE),
        })
    },
    open: |_, options| Ok(Arc::new(Tpcc { options: Options::deserialize(options)? })),
};

static KEYS: Mapping = Mapping::new("tpcc", "Options of the order entry", &[&WAREHOUSES, &HOME, &MODE]);
static WAREHOUSES: Key<Whole<u32>> = Key::new(
    "warehouses",
    "Size of the data set: about 100 MB and half a million rows each",
    Whole(1, 100_000),
)
.default("1");
static HOME: Key<Word<Home>> = Key::new(
    "home",
    "The warehouse of a transaction: any of `all`, or one that is `fixed` for each client, as in the specification; few \
     clients then touch few warehouses, which stay in memory",
    Word(&[("all", Home::All), ("fixed", Home::Fixed)]),
)
.default("all");

static MODE: Key<Word<Mode>> = Key::new(
    "mode",
    "Whether the client sends the `statements` of a transaction, or calls `routines` of the database, which have the same effect \
     with one round trip (not on CockroachDB)",
    Word(&[("statements", Mode::Statements), ("routines", Mode::Routines)]),
)
.default("statements");

/// Where transactions are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// In the client.
    #[default]
    Statements,
    /// In the database.
    Routines,
}

/// Whose warehouse a client's transactions are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Home {
    /// A random one for each transaction.
    #[default]
    All,
    /// One for each client.
    Fixed,
}

#[derive(Serialize, Deserialize)]
struct Options {
    warehouses: u32,
    home: Home,
    #[serde(default)]
    mode: Mode,
}

struct Tpcc {
    options: Options,
}

/// Numbers of the specification, 4.3.3.1.
const ITEMS: u64 = 100_000;
const DISTRICTS: u64 = 10;
const CUSTOMERS: u64 = 3000;
const ORDERS: u64 = 3000;
/// The first order that has not been delivered.
const FIRST_NEW: u64 = 2101;

/// The transactions in the order of their actions.
const NEW_ORDER: u16 = 0;
const PAYMENT: u16 = 1;
const ORDER_STATUS: u16 = 2;
const DELIVERY: u16 = 3;
const STOCK_LEVEL: u16 = 4;

/// Their names in reports, and that of the new orders that are rolled back.
const LABELS: [&str; 6] =
    ["new-order", "payment", "order-status", "delivery", "stock-level", "new-order-rolled-back"];

impl Workload for Tpcc {
    fn tables(&self) -> Vec<Table> {
        schema::tables(self.options.warehouses.into())
    }

    fn generate(&self, table: usize, units: Range<u64>, bulk: &mut Bulk<'_>) {
        rows::generate(table, units, bulk);
    }

    fn version(&self) -> u32 {
        1
    }

    fn data_options(&self) -> serde_json::Value {
        serde_json::json!({"warehouses": self.options.warehouses})
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        match self.options.mode {
            Mode::Statements => statements::all(dialect),
            Mode::Routines => routines::calls(dialect),
        }
    }

    fn routines(&self, dialect: Dialect) -> Option<Vec<String>> {
        (self.options.mode == Mode::Routines).then(|| routines::create(dialect))
    }

    fn drop_routines(&self, dialect: Dialect) -> Vec<String> {
        routines::drop(dialect)
    }

    fn actions(&self) -> Vec<Action> {
        let [new_order, payment, order_status, delivery, stock_level, rolled_back] = LABELS;
        // The deck of 23 cards of clause 5.2.4.2, as weights. One new order in a hundred has an item that does not exist
        // (clause 2.4.1.4): it is a kind of its own, so that the others are those that were committed.
        let all = [
            Action::transaction(new_order, 46.0).weight(9.9),
            Action::transaction(payment, 7.0).weight(10.0),
            Action::transaction(order_status, 3.0).reading().weight(1.0),
            Action::transaction(delivery, 70.0).weight(1.0),
            Action::transaction(stock_level, 2.0).reading().weight(1.0),
            Action::transaction(rolled_back, 45.0).weight(0.1),
        ];
        let call = |action: Action| Action { explicit: false, statements: 1.0, ..action };
        match self.options.mode {
            Mode::Statements => all.to_vec(),
            Mode::Routines => all.map(call).to_vec(),
        }
    }

    fn figures(&self) -> Vec<Figure> {
        figures::all()
    }

    fn checks(&self) -> Vec<Check> {
        checks::all()
    }
}

impl Transact for Tpcc {
    type State = transactions::Buffers;

    fn state(&self) -> Self::State {
        transactions::Buffers::default()
    }

    async fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &Operation,
        rng: &mut Rng,
        buffers: &mut Self::State,
    ) -> Result<End, Failure> {
        let warehouses = u64::from(self.options.warehouses);
        let home = match self.options.home {
            Home::All => draw::between(rng, 1, warehouses),
            Home::Fixed => (operation.space.max(1) - 1) % warehouses + 1,
        };
        let calls = self.options.mode == Mode::Routines;
        let place = transactions::Place { home, warehouses, calls };
        match operation.action {
            NEW_ORDER => transactions::new_order(transaction, place, End::Commit, rng, buffers).await,
            PAYMENT => transactions::payment(transaction, place, rng, buffers).await,
            ORDER_STATUS => transactions::order_status(transaction, place, rng, buffers).await,
            DELIVERY => transactions::delivery(transaction, place, rng).await,
            STOCK_LEVEL => transactions::stock_level(transaction, place, rng).await,
            _ => transactions::new_order(transaction, place, End::Rollback, rng, buffers).await,
        }
    }
}

#[cfg(test)]
mod tests;
