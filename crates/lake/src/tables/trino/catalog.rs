//! Tables in a catalog of Trino's Hive connector: registered where their files are, recognised, dropped.
//!
//! A set of tables is a schema, `tidemark_tpch_0_1`. Each of its tables says in its comment what it is and where its files are, so
//! that tables of somebody else stay, and a load reads those that it means.

use super::statement::Coordinator;
use crate::tables::failure::Failure;
use crate::tables::rows::schema;
use datafusion::arrow::datatypes::DataType;
use futures_util::stream::{StreamExt as _, TryStreamExt as _};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidemark_analytics::job::Data;
use tidemark_analytics::sets::Table;
use tidemark_measure::fault::Fault;

/// What the comment of a table that Tidemark has made begins with.
const LABEL: &str = "Tidemark: ";

/// Raised when the types of columns, or what a table is made of, change.
const VERSION: u32 = 1;

/// Statements at once.
const STATEMENTS: usize = 4;

/// The tables of a set in a catalog.
#[derive(Clone)]
pub(crate) struct Schema {
    pub coordinator: Arc<Coordinator>,
    pub catalog: String,
    pub data: Data,
    /// The directory of the set, as Trino reaches it: `s3://lake/x/tpch-0.1`.
    pub place: String,
}

/// What there is in the schema.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    /// The comments of Tidemark's tables, by their names.
    pub own: BTreeMap<String, String>,
    /// The names of others.
    pub strangers: Vec<String>,
}

/// A name in a statement.
pub(crate) fn name(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A text in a statement.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The name of the schema of a set.
pub(crate) fn schema_of(data: &Data) -> String {
    format!("tidemark_{}", data.name().replace(['-', '.'], "_"))
}

impl Schema {
    /// Its name.
    pub(crate) fn name(&self) -> String {
        schema_of(&self.data)
    }

    /// What the comment of a table says.
    fn label(&self, table: &Table) -> String {
        format!("{LABEL}{} {}, in {}; version {VERSION}", self.data.name(), table.name, self.location(table))
    }

    /// The directory of a table.
    fn location(&self, table: &Table) -> String {
        format!("{}/{}", self.place, table.name)
    }

    fn full_name(&self, table: &str) -> String {
        format!("{}.{}.{}", name(&self.catalog), name(&self.name()), name(table))
    }

    /// Looks which tables there are.
    pub(crate) async fn look(&self) -> Result<Registered, Failure> {
        let sql = format!(
            "SELECT table_name, comment FROM system.metadata.table_comments WHERE catalog_name = {} AND schema_name = {}",
            literal(&self.catalog),
            literal(&self.name())
        );
        let mut found = Registered::default();
        for row in self.coordinator.answer(&sql).await? {
            let mut cells = row.into_iter();
            let (Some(Some(table)), comment) = (cells.next(), cells.next().flatten()) else { continue };
            match comment.filter(|comment| comment.starts_with(LABEL)) {
                Some(comment) => _ = found.own.insert(table, comment),
                None => found.strangers.push(table),
            }
        }
        Ok(found)
    }

    /// Whether a table is registered as it is to be.
    pub(crate) fn has(&self, found: &Registered, table: &Table) -> bool {
        found.own.get(table.name).is_some_and(|comment| *comment == self.label(table))
    }

    /// Why the tables cannot be queried: some are not registered, or are others'.
    pub(crate) fn gap(&self, found: &Registered) -> Option<String> {
        let missing = self.data.set.tables().iter().find(|table| !self.has(found, table))?;
        let why = match found.own.get(missing.name) {
            Some(comment) => format!("is another one ({comment})"),
            None if found.strangers.iter().any(|name| name == missing.name) => {
                "is none that Tidemark made".to_owned()
            }
            None => "is missing".to_owned(),
        };
        Some(format!("{} of the schema {} {why}", missing.name, self.name()))
    }

    /// Makes the schema ready for tables that are to be made: those of somebody else are in the way.
    pub(crate) async fn open(&self) -> Result<Registered, String> {
        let found = self.look().await.map_err(|failure| failure.to_string())?;
        if let Some(stranger) = found.strangers.first() {
            return Err(format!(
                "the schema {} of the catalog {} has a table {stranger} that Tidemark did not make; drop it, or use another catalog",
                self.name(),
                self.catalog
            ));
        }
        let sql = format!("CREATE SCHEMA IF NOT EXISTS {}.{}", name(&self.catalog), name(&self.name()));
        self.coordinator.execute(&sql).await.map_err(|failure| {
            format!("the schema {} cannot be made in the catalog {}: {failure}", self.name(), self.catalog)
        })?;
        Ok(found)
    }

    /// Registers all tables where their files are, or will be.
    pub(crate) async fn register(&self) -> Result<(), String> {
        let found = self.open().await?;
        let missing = self.data.set.tables().iter().filter(|table| !self.has(&found, table));
        let each = missing.map(|table| {
            let is_other = found.own.contains_key(table.name);
            async move {
                if is_other {
                    self.drop_table(table.name).await?;
                }
                self.coordinator.execute(&self.definition(table)?).await
            }
        });
        let all: Result<(), Failure> = futures_util::stream::iter(each.collect::<Vec<_>>())
            .buffer_unordered(STATEMENTS)
            .try_collect()
            .await;
        all.map_err(|failure| {
            format!("tables cannot be registered in the catalog {}: {failure}", self.catalog)
        })
    }

    /// The statement that registers a table.
    fn definition(&self, table: &Table) -> Result<String, Failure> {
        let columns: Vec<_> = columns(&self.data, table)?
            .iter()
            .map(|(column, sql)| format!("{} {sql}", name(column)))
            .collect();
        Ok(format!(
            "CREATE TABLE {} ({}) {}",
            self.full_name(table.name),
            columns.join(", "),
            self.form(table)
        ))
    }

    /// What a table is, and where its files are.
    fn form(&self, table: &Table) -> String {
        let (label, location) = (literal(&self.label(table)), literal(&self.location(table)));
        format!("COMMENT {label} WITH (external_location = {location}, format = 'PARQUET')")
    }

    /// The statement that makes a table of a query.
    pub(crate) fn definition_as(&self, table: &Table, query: &str) -> String {
        format!("CREATE TABLE {} {} AS {query}", self.full_name(table.name), self.form(table))
    }

    pub(crate) async fn drop_table(&self, table: &str) -> Result<(), Failure> {
        self.coordinator.execute(&format!("DROP TABLE IF EXISTS {}", self.full_name(table))).await
    }

    /// Drops Tidemark's tables, and the schema if nothing is left in it. Their files stay. Gives how many there were.
    pub(crate) async fn remove(&self) -> Result<usize, Failure> {
        let found = self.look().await?;
        let each: Vec<_> = found.own.keys().map(|table| self.drop_table(table)).collect();
        futures_util::stream::iter(each).buffer_unordered(STATEMENTS).try_collect::<()>().await?;
        if found.strangers.is_empty() {
            let sql = format!("DROP SCHEMA IF EXISTS {}.{}", name(&self.catalog), name(&self.name()));
            self.coordinator.execute(&sql).await?;
        }
        Ok(found.own.len())
    }

    /// Counts the rows of all tables, by reading them back.
    pub(crate) async fn rows(&self) -> Result<BTreeMap<String, u64>, Failure> {
        let count = |table: &Table| {
            format!("SELECT {}, count(*) FROM {}", literal(table.name), self.full_name(table.name))
        };
        let counts: Vec<_> = self.data.set.tables().iter().map(count).collect();
        let rows = self.coordinator.answer(&counts.join(" UNION ALL ")).await?;
        let counted = rows.into_iter().filter_map(|row| {
            let mut cells = row.into_iter().flatten();
            Some((cells.next()?, cells.next()?.parse().ok()?))
        });
        Ok(counted.collect())
    }
}

/// The columns of a table, each with its type in Trino's SQL.
pub(crate) fn columns(data: &Data, table: &Table) -> Result<Vec<(String, String)>, Failure> {
    let unknown = |what: String| Failure::new(Fault::Local, format!("{}: {what}", table.name));
    let schema = schema(data.set, table.name).ok_or_else(|| unknown("there is no such table".into()))?;
    let column = |field: &Arc<datafusion::arrow::datatypes::Field>| {
        let sql = match field.data_type() {
            DataType::Int32 => "integer".to_owned(),
            DataType::Int64 => "bigint".to_owned(),
            DataType::Decimal128(digits, scale) => format!("decimal({digits}, {scale})"),
            DataType::Utf8 | DataType::Utf8View => "varchar".to_owned(),
            DataType::Date32 => "date".to_owned(),
            other => {
                return Err(unknown(format!(
                    "{} has the type {other}, for which Trino's is not known",
                    field.name()
                )));
            }
        };
        Ok((field.name().clone(), sql))
    };
    schema.fields().iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_analytics::job::By;
    use tidemark_analytics::sets::Set;

    #[test]
    fn every_column_has_a_type() {
        for set in [Set::Tpch, Set::Tpcds] {
            let data = Data { set, scale_milli: 1000, by: By::Tidemark };
            for table in set.tables() {
                assert!(columns(&data, table).unwrap().len() > 1, "{}", table.name);
            }
        }
        let data = Data { set: Set::Tpch, scale_milli: 10, by: By::Trino };
        let lineitem = data.set.tables().iter().find(|table| table.name == "lineitem").unwrap();
        let types: Vec<_> = columns(&data, lineitem).unwrap().into_iter().map(|(_, sql)| sql).collect();
        assert_eq!(types[..5], ["bigint", "bigint", "bigint", "integer", "decimal(15, 2)"]);
        assert_eq!(schema_of(&data), "tidemark_tpch_0_01_by_trino");
    }

    #[test]
    fn names_and_texts_end_where_they_should() {
        assert_eq!(name("a\"b"), "\"a\"\"b\"");
        assert_eq!(literal("s3://it's"), "'s3://it''s'");
    }
}
