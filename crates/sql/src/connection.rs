//! A connection to a database, whatever its protocol: the seam for other protocols.
//!
//! A protocol is a folder with a `Connection` that has the methods below, and one variant here. They are called from one
//! slot's future and may wait only on sockets and timers of the slot's reactor. `add` and `run` must not allocate once a
//! connection has warmed up.

use crate::bulk::Bulk;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::job::Settings;
use crate::mysql;
use crate::postgres;
use crate::rows::Rows;
use crate::server::Server;
use crate::statement::Statements;
use crate::value::Value;
use std::rc::Rc;
use std::sync::Arc;
use tidemark_reactor::Reactor;

/// A connection to a database.
pub enum Connection {
    /// By PostgreSQL's protocol.
    Postgres(Box<postgres::Connection>),
    /// By MySQL's protocol.
    Mysql(Box<mysql::Connection>),
}

impl Connection {
    /// Connects to one of a server's endpoints, and authenticates.
    ///
    /// # Errors
    /// Why it could not be.
    pub async fn open(
        reactor: &Rc<Reactor>,
        server: &Server,
        endpoint: usize,
        statements: &Arc<Statements>,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        Ok(match server.target.dialect {
            Dialect::Postgres | Dialect::Cockroach => {
                let pipeline = settings.pipeline;
                let opened = postgres::Connection::open(reactor, server, endpoint, statements, pipeline);
                Self::Postgres(Box::new(opened.await?))
            }
            Dialect::Mysql => {
                let opened = mysql::Connection::open(reactor, server, endpoint, statements, settings);
                Self::Mysql(Box::new(opened.await?))
            }
        })
    }

    /// Whose form rows have that are loaded over it.
    pub fn dialect(&self) -> Dialect {
        match self {
            Connection::Postgres(_) => Dialect::Postgres,
            Connection::Mysql(_) => Dialect::Mysql,
        }
    }

    /// Adds a statement, by its number among all, to the batch that [`Connection::run`] sends.
    ///
    /// # Errors
    /// When its parameters are too large.
    #[inline]
    pub fn add(&mut self, number: usize, parameters: &[Value<'_>]) -> Result<(), Failure> {
        match self {
            Self::Postgres(connection) => connection.add(number, parameters),
            Self::Mysql(connection) => connection.add(number, parameters),
        }
    }

    /// Sends what was added and waits for all of it: in one round trip, or one after the other, as the settings say.
    ///
    /// # Errors
    /// The first statement's failure; those behind it have not been done.
    #[inline]
    pub async fn run(&mut self) -> Result<(), Failure> {
        match self {
            Self::Postgres(connection) => connection.run().await,
            Self::Mysql(connection) => connection.run().await,
        }
    }

    /// The rows that a statement of the last batch gave; none where there was no such statement.
    #[inline]
    pub fn rows(&self, place: usize) -> Rows<'_> {
        match self {
            Self::Postgres(connection) => connection.rows(place),
            Self::Mysql(connection) => connection.rows(place),
        }
    }

    /// Runs SQL as it is, without parameters.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn simple(&mut self, sql: &str) -> Result<(), Failure> {
        match self {
            Self::Postgres(connection) => connection.simple(sql).await,
            Self::Mysql(connection) => connection.simple(sql).await,
        }
    }

    /// Loads rows in bulk; gives how many the server counted.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn load(&mut self, bulk: &Bulk<'_>) -> Result<u64, Failure> {
        match self {
            Self::Postgres(connection) => connection.load(bulk).await,
            Self::Mysql(connection) => connection.load(bulk).await,
        }
    }

    /// Whether the last statement was a `COMMIT` that committed.
    #[inline]
    pub fn has_committed(&self) -> bool {
        match self {
            Self::Postgres(connection) => connection.has_committed(),
            Self::Mysql(connection) => connection.has_committed(),
        }
    }

    /// Whether a transaction is open, failed or not, or what was added and not run may open one.
    #[inline]
    pub fn is_in_transaction(&self) -> bool {
        match self {
            Self::Postgres(connection) => connection.is_in_transaction(),
            Self::Mysql(connection) => connection.is_in_transaction(),
        }
    }

    /// Whether the statements of a batch go in one round trip from now on. A batch in one round trip is one transaction.
    #[inline]
    pub fn set_pipeline(&mut self, pipeline: bool) {
        match self {
            Self::Postgres(connection) => connection.set_pipeline(pipeline),
            // One statement after the other: see there.
            Self::Mysql(_) => {}
        }
    }

    /// How long a statement may take from now on, nanoseconds.
    pub fn set_timeout(&mut self, timeout_ns: u64) {
        match self {
            Self::Postgres(connection) => connection.set_timeout(timeout_ns),
            Self::Mysql(connection) => connection.set_timeout(timeout_ns),
        }
    }

    /// The server process that serves this connection, as it was told when it began; `None` where protocols have no such thing.
    pub fn process(&self) -> Option<u32> {
        match self {
            Self::Postgres(connection) => Some(connection.process()),
            Self::Mysql(_) => None,
        }
    }

    /// The server's version, as it says it.
    pub fn version(&self) -> &str {
        match self {
            Self::Postgres(connection) => connection.version(),
            Self::Mysql(connection) => connection.version(),
        }
    }

    /// Whether the server accepts no writes because it only follows another one.
    pub fn is_standby(&self) -> bool {
        match self {
            Self::Postgres(connection) => connection.is_standby(),
            Self::Mysql(connection) => connection.is_standby(),
        }
    }
}
