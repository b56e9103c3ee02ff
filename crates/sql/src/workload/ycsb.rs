//! YCSB's core workloads A to F, with a scrambled Zipf distribution as its definition has it.

use super::{Action, Family, Transact, Workload};
use crate::bulk::Bulk;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::options::{self, DISTRIBUTION, Distribution, ROWS, Rows};
use crate::schema::{Column, Kind, Table};
use crate::statement::Statement;
use crate::transaction::{End, Transaction};
use crate::value::Value::{self, Int, Text};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tidemark_keys::kinds::Whole;
use tidemark_keys::{Key, Mapping, Table as Keys};
use tidemark_load::engine::Operation;
use tidemark_measure::fault::Fault;
use tidemark_measure::pick::{Cursor, Part, Pick};
use tidemark_measure::rng::Rng;

/// The family.
pub(crate) static FAMILY: Family = Family {
    name: "ycsb",
    workloads: &[
        ("ycsb/a", "50 % reads, 50 % updates"),
        ("ycsb/b", "95 % reads, 5 % updates"),
        ("ycsb/c", "Reads"),
        ("ycsb/d", "95 % reads of what is new, 5 % inserts"),
        ("ycsb/e", "95 % scans, 5 % inserts"),
        ("ycsb/f", "50 % reads, 50 % reads that are then written"),
    ],
    keys: &KEYS,
    read,
    open: |workload, options| Ok(Arc::new(Ycsb::new(workload, Options::deserialize(options)?))),
};

static KEYS: Mapping = Mapping::new(
    "ycsb",
    "Options of YCSB",
    &[&RECORD_COUNT, &FIELD_COUNT, &FIELD_LENGTH, &MAX_SCAN_LENGTH, &DISTRIBUTION],
);
static RECORD_COUNT: Key<Rows> = Key::new("record_count", "Rows that are loaded", ROWS)
    .default("1000")
    .also(&["recordcount", "insert_count"]);
static FIELD_COUNT: Key<Whole<u32>> =
    Key::new("field_count", "Fields of a row", Whole(1, 100)).default("10").also(&["fieldcount"]);
static FIELD_LENGTH: Key<Whole<u32>> = Key::new("field_length", "Characters of a field", Whole(1, 100_000))
    .default("100")
    .also(&["fieldlength"]);
static MAX_SCAN_LENGTH: Key<Whole<u32>> =
    Key::new("max_scan_length", "Most rows of a scan", Whole(1, 100_000))
        .default("100")
        .also(&["maxscanlength"]);

const SEED: u64 = 0x7963_7362;

/// YCSB draws ranks among so many items and hashes them onto those there are.
const ZIPF_ITEMS: u64 = 10_000_000_000;
const ZIPF_EXPONENT: f64 = 0.99;

/// Keys that are inserted begin behind all that can be loaded: each insert of a load has a number of its own.
const INSERTS: u64 = 1 << 40;

/// So many of the rows that were inserted last are known as the newest ones.
const NEWEST: usize = 1 << 20;

#[derive(Serialize, Deserialize)]
struct Options {
    record_count: u64,
    field_count: u32,
    field_length: u32,
    max_scan_length: u32,
    distribution: Distribution,
}

fn read(_workload: &str, keys: &mut Keys<'_>) -> serde_json::Value {
    options::pack(&Options {
        record_count: keys.value(&RECORD_COUNT),
        field_count: keys.value(&FIELD_COUNT),
        field_length: keys.value(&FIELD_LENGTH),
        max_scan_length: keys.value(&MAX_SCAN_LENGTH),
        distribution: keys.get(&DISTRIBUTION).unwrap_or(Distribution::Zipfian),
    })
}

struct Ycsb {
    workload: char,
    options: Options,
    /// The numbers of rows whose inserts were acknowledged, the newest last. Clients insert side by side, and what is
    /// behind the highest number may not be there yet.
    inserted: Mutex<VecDeque<u64>>,
}

impl Ycsb {
    fn new(workload: &str, options: Options) -> Self {
        let workload = workload.chars().last().unwrap_or('a');
        Self { workload, inserted: Mutex::default(), options }
    }
}

const READ: usize = 0;
const SCAN: usize = 1;
const INSERT: usize = 2;
/// The first of the updates: one for each field.
const UPDATE: usize = 3;

/// FNV-1a of the eight bytes of a number (Fowler, Noll, Vo), as YCSB spreads keys.
fn fnv(number: u64) -> u64 {
    number.to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211)
    })
}

fn key(text: &mut String, number: u64) {
    text.clear();
    // Writing to memory does not fail.
    let _ = write!(text, "user{}", fnv(number) >> 1);
}

/// Printable characters, so many.
fn field(text: &mut String, length: u32, rng: &mut Rng) {
    text.clear();
    while text.len() < length as usize {
        let mut bits = rng.bits();
        for _ in 0..10.min(length as usize - text.len()) {
            text.push(char::from(b'0' + (bits & 63) as u8));
            bits >>= 6;
        }
    }
}

impl Workload for Ycsb {
    fn tables(&self) -> Vec<Table> {
        let name = |number: u32| NAMES[number as usize];
        let fields =
            (0..self.options.field_count).map(|number| Column::new(name(number), Kind::Text).nullable());
        let columns = std::iter::once(Column::new("ycsb_key", Kind::Varchar(255))).chain(fields).collect();
        let row_bytes = 52 + u64::from(self.options.field_count) * (u64::from(self.options.field_length) + 4);
        let table = Table::new("usertable", columns, self.options.record_count);
        vec![Table { key: vec!["ycsb_key"], row_bytes, ..table }]
    }

    fn generate(&self, _table: usize, units: Range<u64>, bulk: &mut Bulk<'_>) {
        let mut texts = vec![String::new(); self.options.field_count as usize + 1];
        for unit in units {
            let mut rng = Rng::new(SEED, &[unit]);
            key(&mut texts[0], unit);
            texts[1..].iter_mut().for_each(|text| field(text, self.options.field_length, &mut rng));
            let values: Vec<Value<'_>> = texts.iter().map(|text| Text(text)).collect();
            bulk.row(&values);
        }
    }

    fn version(&self) -> u32 {
        1
    }

    fn data_options(&self) -> serde_json::Value {
        let Options { record_count, field_count, field_length, .. } = &self.options;
        serde_json::json!({"record_count": record_count, "field_count": field_count, "field_length": field_length})
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let fields = &NAMES[..self.options.field_count as usize];
        let mut all = vec![
            "SELECT * FROM usertable WHERE ycsb_key = $1".to_owned(),
            "SELECT * FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2".to_owned(),
            // A load on a data set that an earlier one has added to writes the same keys again.
            dialect.upsert("usertable", "ycsb_key", fields),
        ];
        all.extend(
            fields.iter().map(|field| format!("UPDATE usertable SET {field} = $1 WHERE ycsb_key = $2")),
        );
        all.into_iter().map(Statement::new).collect()
    }

    fn actions(&self) -> Vec<Action> {
        let read = |weight| Action::statement("read").reading().weight(weight);
        let insert = || Action {
            items: Pick::Sequence { low: 0, high: INSERTS },
            ..Action::statement("insert").weight(0.05)
        };
        match self.workload {
            'a' => vec![read(0.5), Action::statement("update").weight(0.5)],
            'b' => vec![read(0.95), Action::statement("update").weight(0.05)],
            'c' => vec![read(1.0)],
            'd' => vec![read(0.95), insert()],
            'e' => vec![Action::statement("scan").reading().weight(0.95), insert()],
            _ => vec![
                read(0.5),
                Action { statements: 2.0, ..Action::statement("read-modify-write").weight(0.5) },
            ],
        }
    }
}

/// The names of fields.
static NAMES: [&str; 100] = names();

const fn names() -> [&'static str; 100] {
    macro_rules! fields {
        ($($number:literal)*) => { [$(concat!("field", $number),)*] };
    }
    fields!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42
        43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82
        83 84 85 86 87 88 89 90 91 92 93 94 95 96 97 98 99
    )
}

/// What a slot keeps.
struct State {
    ranks: Cursor,
    key: String,
    fields: Vec<String>,
}

impl Ycsb {
    /// The number of a row that there is.
    fn choose(&self, rng: &mut Rng, state: &mut State) -> u64 {
        let loaded = self.options.record_count;
        match (self.workload, self.options.distribution) {
            // The rank is counted back from the newest row that there is, whoever inserted it.
            ('d', _) => {
                let age = loaded - 1 - state.ranks.next(rng);
                let inserted = self.inserted.lock().unwrap_or_else(PoisonError::into_inner);
                let newest = inserted.len() as u64;
                match age.checked_sub(newest) {
                    Some(older) => loaded - 1 - older,
                    None => inserted[(newest - 1 - age) as usize],
                }
            }
            // Among those that were loaded: over a number that grows, each insert would make other rows the popular ones.
            (_, Distribution::Zipfian) => fnv(state.ranks.next(rng)) % loaded,
            _ => rng.below(loaded),
        }
    }

    /// Takes note of a row that has been inserted.
    fn acknowledge(&self, number: u64) {
        if self.workload == 'd' {
            let mut inserted = self.inserted.lock().unwrap_or_else(PoisonError::into_inner);
            if inserted.len() == NEWEST {
                inserted.pop_front();
            }
            inserted.push_back(number);
        }
    }
}

impl Transact for Ycsb {
    type State = State;

    fn state(&self) -> State {
        let pick = match self.workload {
            'd' => Pick::Latest { low: 0, high: self.options.record_count - 1, exponent: ZIPF_EXPONENT },
            _ => Pick::Latest { low: 0, high: ZIPF_ITEMS - 1, exponent: ZIPF_EXPONENT },
        };
        let fields = vec![String::new(); self.options.field_count as usize];
        State { ranks: pick.cursor(Part::WHOLE), key: String::new(), fields }
    }

    async fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &Operation,
        rng: &mut Rng,
        state: &mut State,
    ) -> Result<End, Failure> {
        let first = operation.action == 0;
        if !first && matches!(self.workload, 'd' | 'e') {
            let number = self.options.record_count + operation.item;
            key(&mut state.key, number);
            state.fields.iter_mut().for_each(|text| field(text, self.options.field_length, rng));
            let mut values = [Value::Null; 101];
            values[0] = Text(&state.key);
            for (value, text) in values[1..].iter_mut().zip(&state.fields) {
                *value = Text(text);
            }
            transaction.query(INSERT, &values[..=state.fields.len()]).await?;
            self.acknowledge(number);
            return Ok(End::Commit);
        }
        let number = self.choose(rng, state);
        key(&mut state.key, number);
        if first && self.workload == 'e' {
            let length = 1 + rng.below(self.options.max_scan_length.into()) as i64;
            transaction.query(SCAN, &[Text(&state.key), Int(length)]).await?;
            return Ok(End::Commit);
        }
        let reads = first || self.workload == 'f';
        if reads && transaction.query(READ, &[Text(&state.key)]).await?.count() == 0 {
            return Err(Failure::new(Fault::NotFound, "a row that must be there is not"));
        }
        if !first {
            let place = rng.below(self.options.field_count.into()) as usize;
            field(&mut state.fields[0], self.options.field_length, rng);
            transaction.query(UPDATE + place, &[Text(&state.fields[0]), Text(&state.key)]).await?;
        }
        Ok(End::Commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn ycsb(workload: &str) -> Ycsb {
        let options = Options {
            record_count: 100,
            field_count: 1,
            field_length: 1,
            max_scan_length: 1,
            distribution: Distribution::Zipfian,
        };
        Ycsb::new(workload, options)
    }

    /// So many choices.
    fn chosen(ycsb: &Ycsb) -> Vec<u64> {
        let (mut rng, mut state) = (Rng::new(1, &[]), ycsb.state());
        (0..2000).map(|_| ycsb.choose(&mut rng, &mut state)).collect()
    }

    #[test]
    fn what_is_read_as_new_is_there_although_clients_insert_at_different_speeds() {
        let ycsb = ycsb("ycsb/d");
        assert!(chosen(&ycsb).iter().all(|number| *number < 100), "before any insert");
        // One of four clients, each of which has every fourth number.
        let inserted: Vec<u64> = (0..50).map(|insert| 100 + 4 * insert).collect();
        inserted.iter().for_each(|number| ycsb.acknowledge(*number));
        let there: HashSet<u64> = (0..100).chain(inserted).collect();
        let chosen = chosen(&ycsb);
        assert!(chosen.iter().all(|number| there.contains(number)), "{chosen:?}");
        let count = |wanted: u64| chosen.iter().filter(|number| **number == wanted).count();
        assert!(
            count(296) > 4 * count(256),
            "the newest row is read most: {} and {}",
            count(296),
            count(256)
        );
    }

    #[test]
    fn inserts_do_not_change_which_rows_are_popular() {
        let ycsb = ycsb("ycsb/e");
        let before = chosen(&ycsb);
        ycsb.acknowledge(100);
        assert_eq!(chosen(&ycsb), before);
    }
}
