//! A transaction as a workload writes it: plain `async` code on the slot's connection.

use crate::bulk::Bulk;
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::rows::Rows;
use crate::statement::{Control, StatementId};
use crate::value::Value;

/// One attempt at a transaction. Around it, the engine begins and ends it, and tries it again where it conflicts.
pub struct Transaction<'c> {
    connection: &'c mut Connection,
    /// Statements of the engine's own that wait to go with the first of the workload's, and those of the last batch.
    ahead: usize,
    before: usize,
    /// What it moved in bulk, bytes.
    pub(crate) moved: u64,
    /// Whether it has run anything.
    pub(crate) has_run: bool,
}

/// How a transaction that did not fail is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is committed.
    Commit,
    /// It is rolled back on purpose, which is a success.
    Rollback,
}

impl<'c> Transaction<'c> {
    /// The transaction on this connection, to which so many statements have been added that were not run yet.
    pub(crate) fn new(connection: &'c mut Connection, ahead: usize) -> Self {
        Self { connection, ahead, before: 0, moved: 0, has_run: false }
    }

    /// Runs a statement and gives its rows.
    ///
    /// # Errors
    /// The statement's failure. The workload passes it on: the engine decides what becomes of the transaction.
    #[inline]
    pub async fn query(
        &mut self,
        statement: StatementId,
        parameters: &[Value<'_>],
    ) -> Result<Rows<'_>, Failure> {
        self.add(statement, parameters)?;
        self.run().await?;
        Ok(self.rows(0))
    }

    /// Runs a statement; gives how many rows it changed.
    ///
    /// # Errors
    /// As [`Transaction::query`].
    #[inline]
    pub async fn execute(
        &mut self,
        statement: StatementId,
        parameters: &[Value<'_>],
    ) -> Result<u64, Failure> {
        self.query(statement, parameters).await.map(|rows| rows.affected())
    }

    /// Adds a statement to a batch: statements that do not need each other's results.
    ///
    /// # Errors
    /// When its parameters are too large.
    #[inline]
    pub fn add(&mut self, statement: StatementId, parameters: &[Value<'_>]) -> Result<(), Failure> {
        self.connection.add(Control::COUNT + statement, parameters)
    }

    /// Runs the batch: with `pipeline`, in one round trip. Then [`Transaction::rows`] has what each of its statements gave.
    ///
    /// # Errors
    /// The first statement's failure.
    #[inline]
    pub async fn run(&mut self) -> Result<(), Failure> {
        (self.before, self.has_run) = (std::mem::take(&mut self.ahead), true);
        self.connection.run().await
    }

    /// What a statement of the last batch gave, by its place in it, from 0.
    #[inline]
    pub fn rows(&self, place: usize) -> Rows<'_> {
        self.connection.rows(self.before + place)
    }

    /// Runs SQL as it is. Not for what is done often: it is parsed each time.
    ///
    /// # Errors
    /// As [`Transaction::query`].
    pub async fn simple(&mut self, sql: &str) -> Result<(), Failure> {
        self.catch_up().await?;
        self.has_run = true;
        self.connection.simple(sql).await
    }

    /// Whose form rows have that it loads in bulk.
    pub fn dialect(&self) -> Dialect {
        self.connection.dialect()
    }

    /// Loads rows in bulk.
    ///
    /// # Errors
    /// As [`Transaction::query`].
    pub async fn load(&mut self, bulk: &Bulk<'_>) -> Result<u64, Failure> {
        self.catch_up().await?;
        let rows = self.connection.load(bulk).await?;
        self.moved += bulk.bytes().len() as u64;
        Ok(rows)
    }

    /// Runs what waits to go with the first statement, where that goes in another way.
    async fn catch_up(&mut self) -> Result<(), Failure> {
        match self.ahead {
            0 => Ok(()),
            _ => self.run().await,
        }
    }
}
