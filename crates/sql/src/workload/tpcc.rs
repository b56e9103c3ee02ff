//! The order entry of wholesale warehouses after the TPC-C specification (revision 5.11): tables, transactions and
//! consistency conditions. Its terminals key and think on request (clause 5.2.5). Its results are no TPC-C results, which are audited.

mod checks;
mod draw;
mod figures;
mod routines;
mod rows;
mod schema;
mod statements;
mod transactions;

use super::{Action, Check, Family, Figure, Terminals, Transact, Workload};
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
use tidemark_keys::kinds::{Parsed, Problem, Whole, Word};
use tidemark_keys::{Key, Mapping};
use tidemark_load::engine::Operation;
use tidemark_load::pacing::TerminalPause;
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
        let wait = keys.value(&WAIT);
        let usual = if wait.is_none() { Home::All } else { Home::Fixed };
        options::pack(&Options {
            warehouses: keys.value(&WAREHOUSES),
            home: keys.get(&HOME).unwrap_or(usual),
            mode: keys.value(&MODE),
            wait,
        })
    },
    open: |_, options| Ok(Arc::new(Tpcc { options: Options::deserialize(options)? })),
};

static KEYS: Mapping =
    Mapping::new("tpcc", "Options of the order entry", &[&WAREHOUSES, &HOME, &MODE, &WAIT]);
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
.otherwise("`all`, with `wait` `fixed`");

static MODE: Key<Word<Mode>> = Key::new(
    "mode",
    "Whether the client sends the `statements` of a transaction, or calls `routines` of the database, which have the same effect \
     with one round trip (not on CockroachDB)",
    Word(&[("statements", Mode::Statements), ("routines", Mode::Routines)]),
)
.default("statements");

static WAIT: Key<Parsed<Option<u32>>> = Key::new(
    "wait",
    "The specification's keying and think times (about 21 s a transaction), times this number: `1`, `0.1` to hurry, `0` for none; \
     clients are then its terminals, of which it has 10 for each warehouse, and may share `connections`",
    Parsed("number from 0 to 10", wait),
)
.default("0");

/// A multiple of the specification's pauses in thousandths; `None`: no pauses.
fn wait(text: &str) -> Result<Option<u32>, Problem> {
    let factor = text.parse::<f64>().ok().filter(|factor| (0.0..=10.0).contains(factor));
    let help = "write a number from 0 to 10 with at most three decimals, such as 1 or 0.05";
    let factor = factor.ok_or_else(|| Problem::new(format!("'{text}' is no number from 0 to 10"), help))?;
    let thousandths = (factor * 1e3).round();
    if (thousandths - factor * 1e3).abs() > 1e-6 {
        return Err(Problem::new(format!("'{text}' has more than three decimals"), help));
    }
    Ok(Some(thousandths as u32).filter(|wait| *wait > 0))
}

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
    /// The specification's pauses, times so many thousandths.
    #[serde(default)]
    wait: Option<u32>,
}

struct Tpcc {
    options: Options,
}

/// Numbers of the specification, 4.3.3.1.
const ITEMS: u64 = 100_000;
const DISTRICTS: u64 = 10;
/// Of each warehouse, clause 4.2.2.
const TERMINALS: u32 = 10;
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
        // Ten of the decks of 23 cards of clause 5.2.4.2. One new order in a hundred has an item that does not exist (clause
        // 2.4.1.4): it is a kind of its own, so that the others are those that were committed.
        let all = [
            Action::transaction(new_order, 46.0).weight(99.0),
            Action::transaction(payment, 7.0).weight(100.0),
            Action::transaction(order_status, 3.0).reading().weight(10.0),
            Action::transaction(delivery, 70.0).weight(10.0),
            Action::transaction(stock_level, 2.0).reading().weight(10.0),
            Action::transaction(rolled_back, 45.0).weight(1.0),
        ];
        let call = |action: Action| Action { explicit: false, statements: 1.0, ..action };
        match self.options.mode {
            Mode::Statements => all.to_vec(),
            Mode::Routines => all.map(call).to_vec(),
        }
    }

    fn draws_from_a_deck(&self) -> bool {
        true
    }

    fn terminals(&self) -> Option<Terminals> {
        // Keying and mean think times, seconds, of clause 5.2.5.7, in the order of the actions.
        const PAUSES: [(u64, u64); 6] = [(18, 12), (3, 12), (2, 10), (2, 5), (2, 5), (18, 12)];
        let wait = u64::from(self.options.wait?);
        let ns = |seconds: u64| seconds * 1_000_000 * wait;
        let pause = |(keying, think)| TerminalPause { keying_ns: ns(keying), think_mean_ns: ns(think) };
        let count = self.options.warehouses.saturating_mul(TERMINALS);
        Some(Terminals { count, pauses: PAUSES.map(pause).to_vec() })
    }

    fn figures(&self) -> Vec<Figure> {
        figures::all(self.options.warehouses, self.options.wait)
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
        // A terminal asks for the stock of its own district (clause 2.8.1.1).
        let own_district = match self.options.home {
            Home::All => None,
            Home::Fixed => Some((operation.space.max(1) - 1) / warehouses % DISTRICTS + 1),
        };
        let place = transactions::Place { home, warehouses, own_district, calls };
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
