//! A workload's data set in a database: whether it is there, and whose it is.
//!
//! What Tidemark loads, it writes down in the same database: the table `tidemark_data` has a row for every data set, with the
//! options that it was made of and a fingerprint of them, of the tables and of the loader's version; `tidemark_chunks` has a
//! row for every chunk that is in, written in the transaction that loaded it, and `tidemark_tables` one for every table. So a
//! loaded data set is recognised, an interrupted load goes on where it was, and a table that is not in the books is somebody
//! else's.
//!
//! MySQL commits whenever a table is made or dropped. So the entry of a data set is there before its first table and until its
//! last one is gone; as long as there are some but not all, it has no fingerprint, and whoever finds it begins anew.

use crate::admin::Admin;
use crate::bulk::Bulk;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::schema::Table;
use crate::slot::Runnable;
use crate::statement::Statement;
use crate::transaction::{End, Transaction};
use crate::value::Value::{Int, Text};
use crate::workload::{Action, Transact, Workload};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use tidemark_load::engine::Operation;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;

/// Bytes of a chunk as the database stores it, about.
const CHUNK: f64 = (2u64 << 20) as f64;

/// The books.
const BOOKS: [&str; 3] = [
    "CREATE TABLE IF NOT EXISTS tidemark_data (name varchar(64) PRIMARY KEY, fingerprint varchar(64) NOT NULL, \
     options text NOT NULL, complete integer NOT NULL, loads integer NOT NULL)",
    "CREATE TABLE IF NOT EXISTS tidemark_chunks (name varchar(64) NOT NULL, part integer NOT NULL, chunk bigint NOT NULL, \
     PRIMARY KEY (name, part, chunk))",
    "CREATE TABLE IF NOT EXISTS tidemark_tables (name varchar(64) NOT NULL, part integer NOT NULL, table_name varchar(64) NOT NULL, \
     PRIMARY KEY (name, table_name))",
];

/// In place of a chunk's number: the part's keys, indexes and statistics have been made; somebody is making them.
const FINISHED: i64 = -1;
const CLAIMED: i64 = -2;

/// A workload's data set.
#[derive(Clone)]
pub(crate) struct DataSet {
    /// Its name in the books: that of the workload's family.
    pub(crate) name: &'static str,
    workload: Arc<dyn Runnable>,
    tables: Arc<[Table]>,
    dialect: Dialect,
    fingerprint: String,
}

/// What a database has of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// All of it; so many loads have changed it since.
    Complete { loads: u64 },
    /// A part of it, from a load that was interrupted.
    Partial,
    /// Some of its tables: somebody was making or dropping them.
    Torn,
    /// A data set of the same name that Tidemark made with these other options.
    Other { options: String },
    /// Tables of the same names that are not in the books.
    Foreign { tables: Vec<String> },
}

impl DataSet {
    /// The data set of a workload.
    pub(crate) fn new(name: &'static str, workload: Arc<dyn Runnable>, dialect: Dialect) -> Self {
        let tables: Arc<[Table]> = workload.tables().into();
        let mut hash = Sha256::new();
        hash.update(workload.version().to_be_bytes());
        hash.update(workload.data_options().to_string());
        for table in tables.iter() {
            hash.update(dialect.create_table(table));
            dialect.finish_table(table).iter().for_each(|statement| hash.update(statement));
            hash.update(table.units.to_be_bytes());
        }
        let fingerprint = hash.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        Self { name, workload, tables, dialect, fingerprint }
    }

    /// Its tables.
    pub(crate) fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Whether it is loaded as another one is.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }

    /// Its options, as the books have them.
    pub(crate) fn options(&self) -> String {
        self.workload.data_options().to_string()
    }

    /// How many chunks it is loaded in.
    pub(crate) fn chunks(&self) -> u64 {
        self.tables.iter().map(chunks_of).sum()
    }

    /// What the database has of it.
    ///
    /// # Errors
    /// The server's refusal.
    pub(crate) fn find(&self, admin: &mut Admin) -> Result<Found, Failure> {
        if self.tables.is_empty() {
            // The tables are the user's: whether they are there, the first statement tells.
            return Ok(Found::Complete { loads: 0 });
        }
        let mut existing = self.existing(admin)?;
        let books = existing.iter().any(|name| name == "tidemark_data");
        existing.retain(|name| name != "tidemark_data");
        let entry = match books {
            true => {
                let sql = "SELECT fingerprint, options, complete, loads FROM tidemark_data WHERE name = ";
                admin.query(&format!("{sql}'{}'", self.name))?.into_iter().next()
            }
            false => None,
        };
        let Some(entry) = entry else {
            return Ok(if existing.is_empty() {
                Found::Nothing
            } else {
                Found::Foreign { tables: existing }
            });
        };
        let text = |column: usize| entry.get(column).cloned().flatten().unwrap_or_default();
        Ok(match () {
            () if text(0).is_empty() => Found::Torn,
            () if text(0) != self.fingerprint => Found::Other { options: text(1) },
            () if existing.len() < self.tables.len() => Found::Torn,
            () if text(2) == "1" => Found::Complete { loads: text(3).parse().unwrap_or(0) },
            () => Found::Partial,
        })
    }

    /// Makes its tables, empty, and enters it into the books, unless that has been done already. What is in the books under
    /// its name with other options is dropped; what is not in the books stays, and is an error of the server's.
    ///
    /// # Errors
    /// The server's refusal.
    pub(crate) fn create(&self, admin: &mut Admin, fresh: bool) -> Result<(), Failure> {
        self.open_books(admin)?;
        self.alone(admin, |admin| self.create_locked(admin, fresh))
    }

    /// Makes the books, unless they are there.
    fn open_books(&self, admin: &mut Admin) -> Result<(), Failure> {
        BOOKS.iter().try_for_each(|books| {
            // Two that make the same table at the same time get in each other's way once.
            let books = format!("{books}{}", self.dialect.storage(100));
            admin.run(&books).or_else(|_| admin.run(&books))
        })
    }

    /// The tables that the books have under its name, whatever options they were made with, the last one first; nothing in books
    /// of old, which named none.
    fn own(&self, admin: &mut Admin) -> Result<Vec<String>, Failure> {
        let schema = self.dialect.current_schema();
        let there = format!(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = {schema} AND table_name = 'tidemark_tables'"
        );
        if admin.value(&there)?.is_none_or(|count| count == "0") {
            return Ok(Vec::new());
        }
        let sql =
            format!("SELECT table_name FROM tidemark_tables WHERE name = '{}' ORDER BY part DESC", self.name);
        Ok(admin.query(&sql)?.into_iter().flatten().flatten().collect())
    }

    /// Tables that are in the way of a data set that is to be made anew: they have names of its tables, and are not in the books.
    ///
    /// # Errors
    /// The server's refusal.
    pub(crate) fn strangers(&self, admin: &mut Admin) -> Result<Vec<String>, Failure> {
        let own = self.own(admin)?;
        if own.is_empty() {
            return Ok(Vec::new());
        }
        let mut existing = self.existing(admin)?;
        existing.retain(|name| !own.contains(name) && self.tables.iter().any(|table| table.name == *name));
        Ok(existing)
    }

    /// Those of its tables, and of the books' first, that exist.
    fn existing(&self, admin: &mut Admin) -> Result<Vec<String>, Failure> {
        let names: Vec<String> = self.tables.iter().map(|table| format!("'{}'", table.name)).collect();
        let existing = admin.query(&format!(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = {} \
             AND table_name IN ({}, 'tidemark_data')",
            self.dialect.current_schema(),
            names.join(", ")
        ))?;
        Ok(existing.into_iter().flatten().flatten().collect())
    }

    /// Does something in a transaction, without others at the books.
    fn alone(
        &self,
        admin: &mut Admin,
        work: impl FnOnce(&mut Admin) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        admin.run("BEGIN")?;
        // Whoever comes second waits here, and finds what the first one made.
        let done = match self.lock(admin).and_then(|()| work(admin)) {
            Ok(()) => admin.run("COMMIT"),
            Err(failure) => {
                let _ = admin.run("ROLLBACK");
                Err(failure)
            }
        };
        // With its connection, a lock is gone in any case.
        self.dialect.unlock_books().map(|sql| admin.run(sql));
        done
    }

    fn lock(&self, admin: &mut Admin) -> Result<(), Failure> {
        let Some(sql) = self.dialect.lock_books() else { return Ok(()) };
        match admin.query(sql)?.into_iter().next().map(|row| row.into_iter().next().flatten()) {
            None => Ok(()),
            Some(Some(got)) if got == "1" => Ok(()),
            Some(_) => {
                let text =
                    "somebody else has kept the books of data sets (tidemark_data) locked for too long";
                Err(Failure::new(Fault::LockTimeout, text))
            }
        }
    }

    fn create_locked(&self, admin: &mut Admin, fresh: bool) -> Result<(), Failure> {
        match self.find(admin)? {
            Found::Partial if !fresh => return self.resume(admin),
            Found::Complete { .. } if !fresh => return Ok(()),
            Found::Nothing => {}
            Found::Foreign { tables } => return Err(in_the_way(&tables)),
            Found::Partial | Found::Torn | Found::Complete { .. } | Found::Other { .. } => {
                let strangers = self.strangers(admin)?;
                if !strangers.is_empty() {
                    return Err(in_the_way(&strangers));
                }
                self.drop_locked(admin)?;
            }
        }
        let options = self.options().replace('\'', "''");
        let complete = i32::from(self.chunks() == 0);
        admin.run(&format!(
            "INSERT INTO tidemark_data (name, fingerprint, options, complete, loads) VALUES ('{}', '', '{options}', {complete}, 0)",
            self.name
        ))?;
        // What is left without an entry of the data set is nobody's.
        admin.run(&format!("DELETE FROM tidemark_tables WHERE name = '{}'", self.name))?;
        for (part, table) in self.tables.iter().enumerate() {
            let (name, own) = (self.name, &table.name);
            admin.run(&format!(
                "INSERT INTO tidemark_tables (name, part, table_name) VALUES ('{name}', {part}, '{own}')"
            ))?;
        }
        for table in self.tables.iter() {
            admin.run(&self.dialect.create_table(&made_now(table)))?;
            if table.units == 0 {
                let finish = self.dialect.finish_table(&made_now(table));
                // Within a transaction there is nothing to vacuum, and of an empty table nothing to know.
                let indexes =
                    finish.iter().filter(|sql| sql.starts_with("CREATE") || sql.starts_with("ALTER"));
                indexes.into_iter().try_for_each(|sql| admin.run(sql))?;
            }
        }
        self.sign(admin, &self.fingerprint)
    }

    /// Enters its fingerprint into the books: none while there are only some of its tables.
    fn sign(&self, admin: &mut Admin, fingerprint: &str) -> Result<(), Failure> {
        let name = self.name;
        admin.run(&format!("UPDATE tidemark_data SET fingerprint = '{fingerprint}' WHERE name = '{name}'"))
    }

    /// Forgets claims of those who were interrupted, and the keys and indexes that they may have begun with.
    fn resume(&self, admin: &mut Admin) -> Result<(), Failure> {
        let stale = format!("FROM tidemark_chunks WHERE name = '{}' AND chunk = {CLAIMED}", self.name);
        for row in admin.query(&format!("SELECT part {stale}"))? {
            let part = row.into_iter().next().flatten().and_then(|part| part.parse::<usize>().ok());
            if let Some(table) = part.and_then(|part| self.tables.get(part)) {
                self.dialect.unfinish_table(table).iter().try_for_each(|sql| admin.run(sql))?;
            }
        }
        admin.run(&format!("DELETE {stale}"))
    }

    /// Drops it, and what else the books have under its name.
    ///
    /// # Errors
    /// The server's refusal.
    pub(crate) fn drop(&self, admin: &mut Admin) -> Result<(), Failure> {
        self.open_books(admin)?;
        self.alone(admin, |admin| self.drop_locked(admin))
    }

    fn drop_locked(&self, admin: &mut Admin) -> Result<(), Failure> {
        self.sign(admin, "")?;
        let mut own = self.own(admin)?;
        if own.is_empty() {
            own = self.tables.iter().rev().map(|table| table.name.to_string()).collect();
        }
        own.iter().try_for_each(|table| admin.run(&format!("DROP TABLE IF EXISTS {table}")))?;
        self.drop_routines(admin)?;
        for books in ["tidemark_chunks", "tidemark_tables", "tidemark_data"] {
            admin.run(&format!("DELETE FROM {books} WHERE name = '{}'", self.name))?;
        }
        Ok(())
    }

    /// Takes note that a load is about to change it.
    ///
    /// # Errors
    /// The server's refusal.
    pub(crate) fn age(&self, admin: &mut Admin) -> Result<(), Failure> {
        if self.tables.is_empty() {
            return Ok(());
        }
        admin.run(&format!("UPDATE tidemark_data SET loads = loads + 1 WHERE name = '{}'", self.name))
    }

    /// Makes the routines of the database that the workload's transactions call, as this version of Tidemark has them.
    ///
    /// # Errors
    /// The server's refusal.
    pub(crate) fn make_routines(&self, admin: &mut Admin) -> Result<(), Failure> {
        let Some(routines) = self.workload.routines(self.dialect) else { return Ok(()) };
        // Two that make the same routine at the same time get in each other's way.
        self.alone(admin, |admin| {
            if !self.dialect.replaces_routines() {
                self.drop_routines(admin)?;
            }
            routines.iter().try_for_each(|sql| admin.run(sql))
        })
    }

    /// Drops those that are there. Where that needs a privilege even if there is nothing to drop, the server is asked first.
    fn drop_routines(&self, admin: &mut Admin) -> Result<(), Failure> {
        if let Some(count) = self.dialect.count_routines()
            && admin.value(count)?.is_none_or(|count| count == "0")
        {
            return Ok(());
        }
        self.workload.drop_routines(self.dialect).iter().try_for_each(|sql| admin.run(sql))
    }

    /// The tables in a few words: `4 tables, 110 011 rows, about 14 MB`.
    pub(crate) fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.rows().saturating_mul(table.row_bytes)).sum()
    }

    /// The part and the units of a chunk, by its number among all.
    fn chunk(&self, mut number: u64) -> Option<(usize, u64, Range<u64>)> {
        for (part, table) in self.tables.iter().enumerate() {
            let own = chunks_of(table);
            if number < own {
                let each = units_of_chunk(table);
                let first = number * each;
                return Some((part, number, first..(first + each).min(table.units)));
            }
            number -= own;
        }
        None
    }
}

/// Why a data set cannot be made.
fn in_the_way(tables: &[String]) -> Failure {
    Failure::new(Fault::Sql, format!("there are tables that Tidemark did not make: {}", tables.join(", ")))
}

/// The table as it is made: of one that stays empty, the key needs not wait.
fn made_now(table: &Table) -> Table {
    Table { key_after_load: table.key_after_load && table.units > 0, ..table.clone() }
}

fn units_of_chunk(table: &Table) -> u64 {
    let unit = (table.rows_per_unit * table.row_bytes as f64).max(1.0);
    ((CHUNK / unit) as u64).max(1)
}

fn chunks_of(table: &Table) -> u64 {
    table.units.div_ceil(units_of_chunk(table))
}

/// Loads a data set, chunk by chunk: its operations are chunks.
pub(crate) struct Loader(pub(crate) DataSet);

const IS_IN: usize = 0;
const ENTER: usize = 1;
const COUNT: usize = 2;
const CLAIM: usize = 3;
const DISCLAIM: usize = 4;
const FINISHED_PARTS: usize = 5;
const COMPLETE: usize = 6;

impl Workload for Loader {
    fn tables(&self) -> Vec<Table> {
        self.0.tables.to_vec()
    }

    fn generate(&self, table: usize, units: Range<u64>, bulk: &mut Bulk<'_>) {
        self.0.workload.generate(table, units, bulk);
    }

    fn version(&self) -> u32 {
        self.0.workload.version()
    }

    fn data_options(&self) -> serde_json::Value {
        self.0.workload.data_options()
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let claim = dialect.insert_if_new("tidemark_chunks", &["name", "part", "chunk"]);
        let all = [
            "SELECT 1 FROM tidemark_chunks WHERE name = $1 AND part = $2 AND chunk = $3",
            "INSERT INTO tidemark_chunks (name, part, chunk) VALUES ($1, $2, $3)",
            "SELECT count(*) FROM tidemark_chunks WHERE name = $1 AND part = $2 AND chunk >= 0",
            &claim,
            "DELETE FROM tidemark_chunks WHERE name = $1 AND part = $2 AND chunk = $3",
            "SELECT count(*) FROM tidemark_chunks WHERE name = $1 AND chunk = -1",
            "UPDATE tidemark_data SET complete = 1 WHERE name = $1",
        ];
        all.map(Statement::new).to_vec()
    }

    fn actions(&self) -> Vec<Action> {
        // It begins and commits by itself: what follows the last chunk of a table cannot be in a transaction. A chunk whose
        // COMMIT was lost is in the books or is not, so it can be loaded again.
        vec![Action { writes: false, ..Action::statement("load") }]
    }
}

impl Transact for Loader {
    type State = ();

    fn state(&self) {}

    async fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &Operation,
        _rng: &mut Rng,
        _state: &mut (),
    ) -> Result<End, Failure> {
        let nothing = || Failure::new(Fault::Local, "the data set has no such chunk");
        let (part, number, units) = self.0.chunk(operation.item).ok_or_else(nothing)?;
        let (name, part_number, chunk) = (Text(self.0.name), Int(part as i64), Int(number as i64));
        if transaction.query(IS_IN, &[name, part_number, chunk]).await?.count() == 0 {
            let table = &self.0.tables[part];
            let mut bulk = Bulk::new(table, self.0.dialect);
            self.generate(part, units, &mut bulk);
            transaction.simple("BEGIN").await?;
            let loaded = self.enter(transaction, &bulk, &[name, part_number, chunk]).await;
            if let Err(failure) = loaded {
                if !failure.lost {
                    transaction.simple("ROLLBACK").await?;
                }
                return Err(failure);
            }
        }
        self.finish(transaction, part).await?;
        Ok(End::Commit)
    }
}

impl Loader {
    async fn enter(
        &self,
        transaction: &mut Transaction<'_>,
        bulk: &Bulk<'_>,
        chunk: &[crate::value::Value<'_>],
    ) -> Result<(), Failure> {
        transaction.execute(ENTER, chunk).await?;
        let rows = transaction.load(bulk).await?;
        if rows != bulk.rows() {
            let text = format!("the database took {rows} of {} rows of a chunk", bulk.rows());
            return Err(Failure::new(Fault::ShortTransfer, text));
        }
        transaction.simple("COMMIT").await
    }

    /// Makes keys, indexes and statistics of a table when its last chunk is in, whoever loaded it; and closes the books with
    /// the last table.
    async fn finish(&self, transaction: &mut Transaction<'_>, part: usize) -> Result<(), Failure> {
        let (name, number) = (Text(self.0.name), Int(part as i64));
        let chunks: u64 = transaction.query(COUNT, &[name, number]).await?.first()?.number(0)?;
        if chunks < chunks_of(&self.0.tables[part]) {
            return Ok(());
        }
        if transaction.execute(CLAIM, &[name, number, Int(CLAIMED)]).await? == 0 {
            return Ok(());
        }
        let finished = self.finish_claimed(transaction, part).await;
        if finished.as_ref().err().is_none_or(|failure| !failure.lost) {
            transaction.execute(DISCLAIM, &[name, number, Int(CLAIMED)]).await?;
        }
        finished
    }

    async fn finish_claimed(&self, transaction: &mut Transaction<'_>, part: usize) -> Result<(), Failure> {
        let (name, number) = (Text(self.0.name), Int(part as i64));
        if transaction.query(IS_IN, &[name, number, Int(FINISHED)]).await?.count() > 0 {
            return Ok(());
        }
        for sql in self.0.dialect.finish_table(&self.0.tables[part]) {
            transaction.simple(&sql).await?;
        }
        transaction.execute(ENTER, &[name, number, Int(FINISHED)]).await?;
        let finished: usize = transaction.query(FINISHED_PARTS, &[name]).await?.first()?.number(0)?;
        if finished == self.0.tables.iter().filter(|table| table.units > 0).count() {
            transaction.execute(COMPLETE, &[name]).await?;
            // It needs a privilege that not everybody has.
            if let Some(sql) = self.0.dialect.checkpoint()
                && let Err(failure) = transaction.simple(sql).await
                && failure.lost
            {
                return Err(failure);
            }
        }
        Ok(())
    }
}
