//! Tables made by Trino itself, of the rows of its own generators: a statement for each table.

use super::catalog::{Schema, columns, literal, name};
use super::http::Connection;
use crate::tables::books::Books;
use crate::tables::failure::Failure;
use crate::tables::lake::Lake;
use crate::tables::make::{Spent, Written};
use crate::tables::tasks::{Doing, Ended, Tasks};
use object_store::ObjectMeta;
use object_store::path::Path;
use std::collections::HashMap;
use std::sync::Arc;
use tidemark_analytics::job::Data;
use tidemark_analytics::sets::Table;
use tidemark_load::engine::{Clock, Operation, Outcome, Tick};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::TableMade;
use tidemark_trino::Stats;

/// What has Trino make tables.
pub(crate) struct Generator {
    schema: Schema,
    tables: Vec<Making>,
    books: Arc<Books>,
}

/// A table, and the statement that makes it; `None` of one that is there.
struct Making {
    table: Table,
    statement: Option<String>,
}

impl Generator {
    /// Makes everything ready: tables that are to be made anew go, with their files.
    pub(crate) async fn open(
        schema: Schema,
        lake: &Lake,
        fresh: bool,
        books: Arc<Books>,
    ) -> Result<Self, String> {
        let found = schema.open().await?;
        let sources = sources(&schema).await?;
        let mut tables = Vec::new();
        for table in schema.data.set.tables() {
            let mut statement = None;
            if fresh || !schema.has(&found, table) {
                let told = |failure: Failure| failure.to_string();
                if found.own.contains_key(table.name) {
                    schema.drop_table(table.name).await.map_err(told)?;
                }
                let (own, strangers) = files(lake, table).await.map_err(told)?;
                if let Some(stranger) = strangers.first() {
                    return Err(format!(
                        "there are files that Trino did not write, where the tables {} belong: {stranger}; move them away, or use \
                         another prefix",
                        lake.data.name()
                    ));
                }
                lake.remove(own.into_iter().map(|file| file.location)).await.map_err(told)?;
                let query = query(&schema.data, table, sources.get(table.name)).map_err(told)?;
                statement = Some(schema.definition_as(table, &query));
            }
            tables.push(Making { table: *table, statement });
        }
        // The large ones first: whoever is left with the last one has a small one.
        let scale = schema.data.scale();
        tables.sort_by_key(|making| std::cmp::Reverse(making.table.bytes_at(scale)));
        Ok(Self { schema, tables, books })
    }

    async fn make(&self, making: &Making) -> Result<Written, Failure> {
        let table = making.table.name;
        let Some(statement) = &making.statement else {
            return Ok(Written { table, rows: 0, bytes: 0, kept: true, spent: Spent::default() });
        };
        let (mut rows, mut stats) = (None, Stats::default());
        let (coordinator, mut connection) = (&self.schema.coordinator, Connection::default());
        let running = coordinator.run(&mut connection, statement, |reply| {
            stats = reply.stats;
            reply.rows(|row| rows = row.first().and_then(|cell| cell.as_ref()?.parse().ok()))
        });
        running.await?;
        let Some(rows) = rows else {
            return Err(coordinator
                .address
                .failed(Fault::Protocol, "it does not say how many rows it wrote"));
        };
        let bytes = stats.physical_written_bytes.unwrap_or(0);
        Ok(Written { table, rows, bytes, kept: false, spent: Spent::default() })
    }
}

/// What there is of each table, in the set's order: rows as Trino counts them, files as they are listed.
pub(crate) async fn made(schema: &Schema, lake: &Lake, books: &Books) -> Result<Vec<TableMade>, Failure> {
    let rows = schema.rows().await?;
    let mut tables = Vec::new();
    for table in lake.data.set.tables() {
        let (files, _) = files(lake, table).await?;
        let written = books.written_of(table.name);
        let count = files.len() as u64;
        tables.push(TableMade {
            name: table.name.to_owned(),
            rows: rows.get(table.name).copied().unwrap_or(0),
            // Its generator's own number. Of tables that were there it is not known.
            expected_rows: written.as_ref().filter(|written| !written.kept).map(|written| written.rows),
            bytes: files.iter().map(|file| file.size).sum(),
            files: count,
            kept_files: if written.is_some_and(|written| written.kept) { count } else { 0 },
        });
    }
    Ok(tables)
}

impl Tasks for Generator {
    fn begin(self: Arc<Self>, _slot: u32, operation: Operation, _clock: Clock, _sent: Tick) -> Doing {
        Box::pin(async move {
            let Some(making) = self.tables.get(operation.item as usize) else {
                return Failure::new(Fault::Local, "the set has no such table").ended();
            };
            match self.make(making).await {
                Ok(written) => {
                    let bytes = written.bytes;
                    self.books.written(written);
                    Ended { outcome: Outcome::success(bytes), ..Ended::default() }
                }
                Err(failure) => advised(failure).of(making.table.name).ended(),
            }
        })
    }
}

/// A failure with what to do about it, where a setting of the cluster is in the way.
fn advised(failure: Failure) -> Failure {
    let words = match failure.words.contains("non-managed") {
        true => format!("{}; set hive.non-managed-table-writes-enabled=true for the catalog", failure.words),
        false => failure.words,
    };
    Failure { words, ..failure }
}

/// The files of a table that Trino wrote, and the places of others.
pub(crate) async fn files(lake: &Lake, table: &Table) -> Result<(Vec<ObjectMeta>, Vec<Path>), Failure> {
    let files = lake.files(table).await?;
    let (own, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| file.location.filename().is_some_and(is_trinos));
    Ok((own, others.into_iter().map(|file| file.location).collect()))
}

/// Whether a file is named as Trino's Hive connector names those that it writes: by the id of the query, and a random one.
fn is_trinos(file: &str) -> bool {
    let parts: Vec<&str> = file.splitn(5, '_').collect();
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let [day, time, number, cluster, rest] = parts[..] else { return false };
    digits(day, 8)
        && digits(time, 6)
        && digits(number, 5)
        && cluster.len() == 5
        && cluster.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && !rest.is_empty()
}

/// The columns of the tables of Trino's generator, each with its type.
type Sources = HashMap<String, Vec<(String, String)>>;

/// The generator's schema of a scale.
fn source(data: &Data) -> String {
    format!("sf{}", data.scale_text())
}

async fn sources(schema: &Schema) -> Result<Sources, String> {
    let generator = schema.data.set.name();
    let sql = format!(
        "SELECT table_name, column_name, data_type FROM {}.information_schema.columns WHERE table_schema = {} \
         ORDER BY table_name, ordinal_position",
        name(generator),
        literal(&source(&schema.data))
    );
    let rows = schema.coordinator.answer(&sql).await.map_err(|failure| {
        format!("{failure}; tables are made of the rows of a catalog `{generator}` with connector.name={generator}: add it to the cluster")
    })?;
    let mut sources = Sources::new();
    for row in rows {
        if let Ok([Some(table), Some(column), Some(sql)]) = <[Option<String>; 3]>::try_from(row) {
            sources.entry(table).or_default().push((column, sql));
        }
    }
    Ok(sources)
}

/// The query that gives the rows of a table, with Tidemark's names and types. The generator of TPC-H leaves out what names of columns
/// begin with, unless it is told not to; that of TPC-DS spells some otherwise, but has all of them in the specification's order.
fn query(
    data: &Data,
    table: &Table,
    source_columns: Option<&Vec<(String, String)>>,
) -> Result<String, Failure> {
    let generator = data.set.name();
    let known = source_columns.map_or(&[][..], Vec::as_slice);
    let wanted = columns(data, table)?;
    let spelt_otherwise = |place: usize| {
        let there = known.get(place).filter(|_| known.len() == wanted.len())?;
        wanted.iter().all(|(column, _)| *column != there.0).then_some(there)
    };
    let mut selected = Vec::new();
    for (place, (column, sql)) in wanted.iter().enumerate() {
        let short = column.split_once('_').map_or("", |(_, short)| short);
        let found = known
            .iter()
            .find(|(own, _)| own == column)
            .or_else(|| known.iter().find(|(own, _)| own == short))
            .or_else(|| spelt_otherwise(place));
        let Some((own, own_type)) = found else {
            let words = format!("the catalog `{generator}` has no column {column} of {}", table.name);
            return Err(Failure::new(Fault::Sql, words));
        };
        let value = match own_type.starts_with("char") && sql == "varchar" {
            // Values of a fixed length are filled with blanks.
            true => format!("rtrim(CAST({} AS varchar))", name(own)),
            false => format!("CAST({} AS {sql})", name(own)),
        };
        selected.push(format!("{value} AS {}", name(column)));
    }
    Ok(format!(
        "SELECT {} FROM {}.{}.{}",
        selected.join(", "),
        name(generator),
        name(&source(data)),
        name(table.name)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_analytics::job::By;
    use tidemark_analytics::sets::Set;

    #[test]
    fn only_files_that_trino_names_are_its_own() {
        assert!(is_trinos("20261125_042515_00001_7irni_8ccf2a4d-7bc6-4675-8841-480af4e4d70a"));
        for other in ["part-1-of-1.parquet", "20261125_042515_00001_7irni", "notes_a_b_c_d", ""] {
            assert!(!is_trinos(other), "{other}");
        }
    }

    #[test]
    fn columns_are_taken_by_name_and_given_our_types() {
        let data = Data { set: Set::Tpch, scale_milli: 10, by: By::Trino };
        let nation = &data.set.tables()[0];
        let column = |name: &str, sql: &str| (name.to_owned(), sql.to_owned());
        let short = vec![
            column("nationkey", "bigint"),
            column("name", "varchar(25)"),
            column("regionkey", "bigint"),
            column("comment", "varchar(152)"),
        ];
        let sql = query(&data, nation, Some(&short)).unwrap();
        assert!(sql.starts_with("SELECT CAST(\"nationkey\" AS bigint) AS \"n_nationkey\""), "{sql}");
        assert!(sql.ends_with("FROM \"tpch\".\"sf0.01\".\"nation\""), "{sql}");
        let long = vec![
            column("n_comment", "varchar(152)"),
            column("n_nationkey", "bigint"),
            column("n_name", "char(25)"),
            column("n_regionkey", "bigint"),
        ];
        let sql = query(&data, nation, Some(&long)).unwrap();
        assert!(sql.contains("rtrim(CAST(\"n_name\" AS varchar)) AS \"n_name\""), "{sql}");
        let misspelt = [&short[..3], &[column("coment", "varchar(152)")]].concat();
        let sql = query(&data, nation, Some(&misspelt)).unwrap();
        assert!(sql.contains("CAST(\"coment\" AS varchar) AS \"n_comment\""), "{sql}");
        let missing = query(&data, nation, Some(&short[..3].to_vec())).unwrap_err();
        assert!(missing.words.contains("n_comment"), "{missing}");
    }
}
