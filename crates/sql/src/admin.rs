//! A connection outside the load: for what is asked and done before and after it.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::job::{Settings, Target};
use crate::server::Server;
use crate::sessions::cannot_connect;
use crate::statement::{Control, Statements};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tidemark_load::engine::Clock;
use tidemark_reactor::Reactor;

/// How long a statement may take outside a load, and while a data set is loaded, nanoseconds: indexes of large tables are made.
pub(crate) const PATIENCE_NS: u64 = 3600 * 1_000_000_000;

/// A connection that is waited for.
pub(crate) struct Admin {
    reactor: Rc<Reactor>,
    connection: Connection,
}

impl Admin {
    /// Connects to the first endpoint of a target.
    ///
    /// # Errors
    /// One sentence that says what is wrong and what to do.
    pub(crate) fn connect(server: &Server) -> Result<Self, String> {
        let target: &Target = &server.target;
        let clock = Clock::starting_at(Instant::now());
        let reactor = Reactor::new(clock, target.timeout_ns).map_err(|error| error.to_string())?;
        let statements = Arc::new(Statements::new("BEGIN", Vec::new()));
        let settings = Settings::default();
        let opened = reactor.block_on(Connection::open(&reactor, server, 0, &statements, &settings));
        let mut connection = opened.map_err(|failure| cannot_connect(target, 0, &failure))?;
        connection.set_timeout(PATIENCE_NS);
        Ok(Self { reactor, connection })
    }

    /// Runs SQL and gives the rows of its first statement, null as nothing.
    ///
    /// # Errors
    /// The server's refusal.
    pub(crate) fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        self.reactor.block_on(self.connection.simple(sql))?;
        let row = |row: crate::rows::Row<'_>| {
            let column = |column| row.get(column).map(|text| text.map(str::to_owned));
            (0..row.columns()).map(column).collect::<Result<Vec<_>, _>>()
        };
        self.connection.rows(0).iter().map(row).collect()
    }

    /// The first column of the first row, if there is one and it is not null.
    ///
    /// # Errors
    /// As [`Admin::query`].
    pub(crate) fn value(&mut self, sql: &str) -> Result<Option<String>, Failure> {
        Ok(self.query(sql)?.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
    }

    /// Runs SQL.
    ///
    /// # Errors
    /// As [`Admin::query`].
    pub(crate) fn run(&mut self, sql: &str) -> Result<(), Failure> {
        self.reactor.block_on(self.connection.simple(sql))
    }

    /// Runs a statement that does nothing under the name by which this connection has prepared it; waits so many nanoseconds.
    ///
    /// # Errors
    /// As [`Admin::query`].
    pub(crate) fn run_prepared(&mut self, timeout_ns: u64) -> Result<(), Failure> {
        self.connection.set_timeout(timeout_ns);
        self.connection.add(Control::Rollback.number(), &[])?;
        self.reactor.block_on(self.connection.run())
    }

    /// How long a statement may take from now on, nanoseconds.
    pub(crate) fn set_timeout(&mut self, timeout_ns: u64) {
        self.connection.set_timeout(timeout_ns);
    }

    /// The connection, for what the server says of itself.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }
}
