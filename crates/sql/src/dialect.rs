//! What databases write differently. A workload gives statements in PostgreSQL's words; what differs, it asks here for.

use crate::job::Isolation;
use crate::schema::{Column, Index, Kind, Table};
use serde::{Deserialize, Serialize};

/// Whose language a database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dialect {
    /// PostgreSQL 13 and later, and what speaks its language and protocol.
    Postgres,
    /// CockroachDB: PostgreSQL's protocol, conflicts by savepoint.
    Cockroach,
    /// MySQL 8 and MariaDB 10.6, and later ones. Tables are InnoDB's; which of the two it is, its version says.
    Mysql,
}

impl Dialect {
    /// The product's name.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Postgres => "PostgreSQL",
            Dialect::Cockroach => "CockroachDB",
            Dialect::Mysql => "MySQL or MariaDB",
        }
    }

    /// The product, with its version as the server says it: `PostgreSQL 15.18` of `15.18 (Debian ...)`.
    pub fn product(self, version: &str) -> String {
        let number = version.split([' ', '-']).next().unwrap_or_default();
        let name = match self {
            Dialect::Postgres => "PostgreSQL",
            // It says which version of PostgreSQL it is like.
            Dialect::Cockroach => return "CockroachDB".into(),
            Dialect::Mysql if version.contains("MariaDB") => "MariaDB",
            Dialect::Mysql if number.is_empty() => self.name(),
            Dialect::Mysql => "MySQL",
        };
        format!("{name} {number}").trim_end().to_owned()
    }

    /// Begins a transaction.
    pub fn begin(self, isolation: Option<Isolation>) -> String {
        match (self, isolation) {
            (Dialect::Mysql, _) | (_, None) => "BEGIN".into(),
            (Dialect::Postgres | Dialect::Cockroach, Some(isolation)) => {
                format!("BEGIN ISOLATION LEVEL {}", isolation.sql())
            }
        }
    }

    /// What a new connection says so that its transactions have this isolation, where [`Dialect::begin`] cannot say it.
    pub fn session_isolation(self, isolation: Isolation) -> Option<String> {
        match self {
            Dialect::Postgres | Dialect::Cockroach => None,
            Dialect::Mysql => Some(format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", isolation.sql())),
        }
    }

    /// Whether a transaction that conflicts is usually rolled back to a savepoint at its beginning, which keeps its place in
    /// line, and committed by releasing it (CockroachDB, *Advanced Client-side Transaction Retries*).
    pub fn retries_by_savepoint(self) -> bool {
        self == Dialect::Cockroach
    }

    /// Inserts a row, or overwrites the columns of the one that has its key. The key is `$1`, the columns follow.
    pub fn upsert(self, table: &str, key: &str, columns: &[&str]) -> String {
        let (or, new) = match self {
            Dialect::Postgres | Dialect::Cockroach => {
                (format!("ON CONFLICT ({key}) DO UPDATE SET"), ["excluded.", ""])
            }
            // MySQL's newer form, a name for the new row, is unknown to MariaDB.
            Dialect::Mysql => ("ON DUPLICATE KEY UPDATE".to_owned(), ["VALUES(", ")"]),
        };
        let places: Vec<String> = (1..=columns.len() + 1).map(|number| format!("${number}")).collect();
        let set: Vec<String> =
            columns.iter().map(|column| format!("{column} = {}{column}{}", new[0], new[1])).collect();
        let (columns, places, set) = (columns.join(", "), places.join(", "), set.join(", "));
        format!("INSERT INTO {table} ({key}, {columns}) VALUES ({places}) {or} {set}")
    }

    /// Inserts a row unless its key is there; it then changes no row. Not for values that may not fit their columns.
    pub fn insert_if_new(self, table: &str, columns: &[&str]) -> String {
        let places: Vec<String> = (1..=columns.len()).map(|number| format!("${number}")).collect();
        let (columns, places) = (columns.join(", "), places.join(", "));
        match self {
            Dialect::Postgres | Dialect::Cockroach => {
                format!("INSERT INTO {table} ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING")
            }
            // An update that changes nothing would count the row: connections count rows found, as everybody else does.
            Dialect::Mysql => format!("INSERT IGNORE INTO {table} ({columns}) VALUES ({places})"),
        }
    }

    /// A parameter, as text where nothing else says what it is.
    pub fn text(self, parameter: &str) -> String {
        match self {
            Dialect::Postgres | Dialect::Cockroach => format!("{parameter}::text"),
            Dialect::Mysql => parameter.to_owned(),
        }
    }

    /// The schema in which tables are that are named without one.
    pub fn current_schema(self) -> &'static str {
        match self {
            Dialect::Postgres | Dialect::Cockroach => "current_schema()",
            Dialect::Mysql => "database()",
        }
    }

    /// The directory of the database's files.
    pub fn data_directory(self) -> &'static str {
        match self {
            Dialect::Postgres | Dialect::Cockroach => "SELECT current_setting('data_directory')",
            Dialect::Mysql => "SELECT @@datadir",
        }
    }

    /// Writes what was loaded to its place, so that the load does not begin with that; `None` where there is no such statement.
    pub fn checkpoint(self) -> Option<&'static str> {
        match self {
            Dialect::Postgres => Some("CHECKPOINT"),
            Dialect::Cockroach | Dialect::Mysql => None,
        }
    }

    /// A column's type.
    pub fn column_type(self, kind: Kind) -> String {
        let mysql = self == Dialect::Mysql;
        match kind {
            Kind::Int => "integer".into(),
            Kind::BigInt => "bigint".into(),
            Kind::Char(length) => format!("char({length})"),
            Kind::Varchar(length) => format!("varchar({length})"),
            Kind::Text if mysql => "longtext".into(),
            Kind::Text => "text".into(),
            Kind::Decimal(digits, scale) => format!("numeric({digits},{scale})"),
            Kind::Float => "double precision".into(),
            Kind::Date => "date".into(),
            Kind::Time if mysql => "datetime(6)".into(),
            Kind::Time => "timestamp".into(),
            Kind::Bytes if mysql => "longblob".into(),
            Kind::Bytes => "bytea".into(),
        }
    }

    /// What stands behind a table's columns: how it is stored.
    pub fn storage(self, fill_factor: u8) -> String {
        match self {
            Dialect::Postgres if fill_factor < 100 => format!(" WITH (fillfactor = {fill_factor})"),
            Dialect::Postgres | Dialect::Cockroach => String::new(),
            // Texts are compared byte by byte, as elsewhere.
            Dialect::Mysql => " ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin".into(),
        }
    }

    /// Whether a table's key is made when its rows are in. InnoDB stores the rows in its order, so there it is made first.
    fn key_after_load(self, table: &Table) -> bool {
        self != Dialect::Mysql && table.key_after_load && !table.key.is_empty()
    }

    /// Makes a table.
    pub fn create_table(self, table: &Table) -> String {
        let column = |column: &Column| {
            let mut text = format!("{} {}", column.name, self.column_type(column.kind));
            if !column.nullable {
                text += " NOT NULL";
            }
            if column.counted {
                text += match self {
                    Dialect::Postgres | Dialect::Cockroach => " GENERATED BY DEFAULT AS IDENTITY",
                    Dialect::Mysql => " AUTO_INCREMENT",
                };
            }
            if let Some(default) = column.default {
                text += &format!(" DEFAULT {default}");
            }
            text
        };
        let mut parts: Vec<String> = table.columns.iter().map(column).collect();
        if !table.key.is_empty() && !self.key_after_load(table) {
            parts.push(format!("PRIMARY KEY ({})", table.key.join(", ")));
        }
        format!("CREATE TABLE {} ({}){}", table.name, parts.join(", "), self.storage(table.fill_factor))
    }

    /// Keeps others from the books until [`Dialect::unlock_books`], or until the transaction ends. If it gives a row, that says
    /// with 1 that it did. `None` where transactions are serializable anyway.
    pub fn lock_books(self) -> Option<&'static str> {
        match self {
            Dialect::Postgres => Some("LOCK TABLE tidemark_data"),
            Dialect::Cockroach => None,
            // Locks of tables end when a table is made or dropped, as transactions do.
            Dialect::Mysql => Some("SELECT GET_LOCK(concat('tidemark ', left(database(), 50)), 3000)"),
        }
    }

    /// Lets others to the books again, where the transaction's end does not.
    pub fn unlock_books(self) -> Option<&'static str> {
        match self {
            Dialect::Postgres | Dialect::Cockroach => None,
            Dialect::Mysql => Some("DO RELEASE_LOCK(concat('tidemark ', left(database(), 50)))"),
        }
    }

    /// Whether a routine can be made in place of one that is there.
    pub fn replaces_routines(self) -> bool {
        self != Dialect::Mysql
    }

    /// Counts Tidemark's routines in the database, where those that are not there cannot be dropped without a privilege.
    pub fn count_routines(self) -> Option<&'static str> {
        match self {
            Dialect::Postgres | Dialect::Cockroach => None,
            Dialect::Mysql => Some(
                "SELECT count(*) FROM information_schema.routines WHERE routine_schema = database() \
                 AND routine_name LIKE 'tidemark%'",
            ),
        }
    }

    /// What a user lacks who may not make or call routines, and how to give it.
    pub fn routine_privileges(self) -> &'static str {
        match self {
            Dialect::Postgres | Dialect::Cockroach => "GRANT CREATE ON SCHEMA",
            Dialect::Mysql => "GRANT CREATE ROUTINE, ALTER ROUTINE, EXECUTE ON the database",
        }
    }

    /// Removes what [`Dialect::finish_table`] made, as far as it is there.
    pub fn unfinish_table(self, table: &Table) -> Vec<String> {
        let name = &table.name;
        let key = self
            .key_after_load(table)
            .then(|| format!("ALTER TABLE {name} DROP CONSTRAINT IF EXISTS {name}_pkey"));
        let index = |index: &Index| match self {
            Dialect::Postgres | Dialect::Cockroach => vec![format!("DROP INDEX IF EXISTS {}", index.name)],
            // MySQL has no `IF EXISTS` here, so the statement is made of what is there.
            Dialect::Mysql => vec![
                format!(
                    "SET @tidemark = (SELECT coalesce(max('DROP INDEX {index} ON {name}'), 'DO 0') FROM \
                     information_schema.statistics WHERE table_schema = database() AND table_name = '{name}' \
                     AND index_name = '{index}')",
                    index = index.name
                ),
                "PREPARE tidemark FROM @tidemark".into(),
                "EXECUTE tidemark".into(),
                "DEALLOCATE PREPARE tidemark".into(),
            ],
        };
        key.into_iter().chain(table.indexes.iter().flat_map(index)).collect()
    }

    /// What is done with a table once its rows are in: key, indexes, statistics.
    pub fn finish_table(self, table: &Table) -> Vec<String> {
        let key = self
            .key_after_load(table)
            .then(|| format!("ALTER TABLE {} ADD PRIMARY KEY ({})", table.name, table.key.join(", ")));
        let index = |index: &Index| {
            let unique = if index.unique { "UNIQUE " } else { "" };
            format!("CREATE {unique}INDEX {} ON {} ({})", index.name, table.name, index.columns.join(", "))
        };
        // InnoDB counts on from the highest by itself.
        let counts = |column: &&Column| column.counted && self != Dialect::Mysql;
        let counted = table.columns.iter().filter(counts).map(|column| {
            let (name, column) = (&table.name, column.name);
            format!("SELECT setval(pg_get_serial_sequence('{name}', '{column}'), max({column})) FROM {name}")
        });
        let statistics = match self {
            Dialect::Postgres => format!("VACUUM ANALYZE {}", table.name),
            Dialect::Cockroach => format!("ANALYZE {}", table.name),
            Dialect::Mysql => format!("ANALYZE TABLE {}", table.name),
        };
        let indexes = table.indexes.iter().map(index);
        key.into_iter().chain(indexes).chain(counted).chain([statistics]).collect()
    }
}

#[cfg(test)]
mod tests;
