//! Rows on their way into a table in bulk.

mod copy;
mod insert;

use crate::dialect::Dialect;
use crate::schema::Table;
use crate::value::Value;
pub(crate) use insert::push_literal;

/// Rows of one table, encoded as the database takes them in bulk.
pub struct Bulk<'t> {
    table: &'t Table,
    form: Form,
    bytes: Vec<u8>,
    rows: u64,
}

/// How a database takes rows in bulk.
enum Form {
    /// PostgreSQL's binary `COPY` format.
    Copy,
    /// `INSERT` statements of many rows, one behind the other; where those end that are full.
    Inserts(Vec<usize>),
}

impl<'t> Bulk<'t> {
    /// No rows.
    pub fn new(table: &'t Table, dialect: Dialect) -> Self {
        let (form, bytes) = match dialect {
            Dialect::Postgres | Dialect::Cockroach => (Form::Copy, copy::HEAD.to_vec()),
            Dialect::Mysql => (Form::Inserts(Vec::new()), Vec::new()),
        };
        Self { table, form, bytes, rows: 0 }
    }

    /// Adds a row: one value per column.
    ///
    /// # Panics
    /// When there are more or fewer values than columns: a defect of a workload.
    pub fn row(&mut self, values: &[Value<'_>]) {
        assert_eq!(values.len(), self.table.columns.len(), "a row of {} is incomplete", self.table.name);
        match &mut self.form {
            Form::Copy => copy::row(&mut self.bytes, values, &self.table.columns),
            Form::Inserts(ends) => insert::row(&mut self.bytes, ends, values, self.table),
        }
        self.rows += 1;
    }

    /// The statement that takes the rows of a `COPY`.
    pub fn copy_statement(&self) -> String {
        let columns: Vec<&str> = self.table.columns.iter().map(|column| column.name).collect();
        format!("COPY {} ({}) FROM STDIN (FORMAT binary)", self.table.name, columns.join(", "))
    }

    /// The statements that insert the rows; none of a `COPY`.
    pub fn inserts(&self) -> impl Iterator<Item = &[u8]> {
        let ends: &[usize] = match &self.form {
            Form::Copy => &[],
            Form::Inserts(ends) => ends,
        };
        // The last one is not full.
        let last = matches!(self.form, Form::Inserts(_)).then_some(self.bytes.len());
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let pieces = begins.zip(ends.iter().copied().chain(last));
        pieces.map(|(begin, end)| &self.bytes[begin..end]).filter(|statement| !statement.is_empty())
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The rows, encoded. A `COPY` needs no trailer when `CopyDone` follows.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
