//! A connection outside the load: for what is asked and done before and after it.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::job::{Settings, Target};
use crate::server::Server;
use crate::sessions::cannot_connect;
use crate::statement::{Control, Statements};
use crate::stream::too_large;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tidemark_load::budget::Budget;
use tidemark_load::deadline::Deadline;
use tidemark_load::engine::Clock;
use tidemark_reactor::Reactor;

/// How long a statement may take outside a load, and while a data set is loaded, nanoseconds: indexes of large tables are made.
pub(crate) const PATIENCE_NS: u64 = 3600 * 1_000_000_000;

/// Most cells of an answer: each takes many times its text in memory.
const MOST_CELLS: usize = 1_000_000;

/// The limits of an undertaking, such as the questions before a load: its statements share them, on whichever connection they run.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// When all has to be over.
    pub(crate) deadline: Deadline,
    /// What all replies may add up to.
    pub(crate) budget: Budget,
}

/// A connection that is waited for.
pub(crate) struct Admin {
    reactor: Rc<Reactor>,
    connection: Connection,
    /// The limits of all that is asked over it.
    limits: Option<Limits>,
}

impl Admin {
    /// Connects to the first endpoint of a target.
    ///
    /// # Errors
    /// One sentence that says what is wrong and what to do.
    pub(crate) fn connect(server: &Server) -> Result<Self, String> {
        Self::open(server, None)
    }

    /// The same for an undertaking that has limits: a statement may take what is left of them.
    ///
    /// # Errors
    /// As [`Admin::connect`].
    pub(crate) fn within(server: &Server, limits: Limits) -> Result<Self, String> {
        Self::open(server, Some(limits))
    }

    /// Another connection, for the same undertaking.
    ///
    /// # Errors
    /// As [`Admin::connect`].
    pub(crate) fn another(&self, server: &Server) -> Result<Self, String> {
        Self::open(server, self.limits.clone())
    }

    fn open(server: &Server, limits: Option<Limits>) -> Result<Self, String> {
        let target: &Target = &server.target;
        let clock = Clock::starting_at(Instant::now());
        let reactor = match &limits {
            Some(limits) => Reactor::within(clock, target.timeout_ns, &limits.budget),
            None => Reactor::new(clock, target.timeout_ns),
        };
        let reactor = reactor.map_err(|error| error.to_string())?;
        let statements = Arc::new(Statements::new("BEGIN", Vec::new()));
        let settings = Settings::default();
        let opened = reactor.block_on(Connection::open(&reactor, server, 0, &statements, &settings));
        let mut connection = opened.map_err(|failure| cannot_connect(target, 0, &failure))?;
        connection.set_timeout(PATIENCE_NS);
        Ok(Self { reactor, connection, limits })
    }

    /// Lets a statement take what is left.
    fn limit(&mut self) {
        if let Some(limits) = &self.limits {
            self.connection.set_timeout(limits.deadline.left_ns());
        }
    }

    /// Runs SQL and gives the rows of its first statement, null as nothing.
    ///
    /// # Errors
    /// The server's refusal.
    pub(crate) fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        self.limit();
        self.reactor.block_on(self.connection.simple(sql))?;
        let rows = self.connection.rows(0);
        if rows.iter().map(|row| row.columns().max(1)).sum::<usize>() > MOST_CELLS {
            return Err(too_large());
        }
        let row = |row: crate::rows::Row<'_>| {
            let column = |column| row.get(column).map(|text| text.map(str::to_owned));
            (0..row.columns()).map(column).collect::<Result<Vec<_>, _>>()
        };
        rows.iter().map(row).collect()
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
        self.limit();
        self.reactor.block_on(self.connection.simple(sql))
    }

    /// Runs a statement that does nothing under the name by which this connection has prepared it; waits so many nanoseconds.
    ///
    /// # Errors
    /// As [`Admin::query`].
    pub(crate) fn run_prepared(&mut self, timeout_ns: u64) -> Result<(), Failure> {
        let left_ns = self.limits.as_ref().map_or(u64::MAX, |limits| limits.deadline.left_ns());
        self.connection.set_timeout(left_ns.min(timeout_ns));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Endpoint, Tls};
    use crate::testing::{Answer, Fake};
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;
    use tidemark_measure::fault::Fault;

    const NOTICE: &[u8] = b"N\0\0\0\x13SNOTICE\0Mwait\0\0";

    /// Lets a client in with `greeting`, and sends notices for as long as it stays: without a pause, a thousand at a time.
    fn serve(mut stream: TcpStream, greeting: &[u8], pause: Duration) -> std::io::Result<()> {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4])?;
        stream.write_all(greeting)?;
        let notices = NOTICE.repeat(if pause.is_zero() { 1_000 } else { 1 });
        loop {
            stream.write_all(&notices)?;
            std::thread::sleep(pause);
        }
    }

    fn noticing(greeting: &'static [u8], pause: Duration) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || serve(stream, greeting, pause));
            }
        });
        let target = Target {
            endpoints: vec![Endpoint::Tcp("127.0.0.1".into(), port)],
            tls: Tls::Disable,
            timeout_ns: 1_000_000_000,
            ..Fake::new(|_| Answer::Fine).target
        };
        Server::resolve(&target).unwrap()
    }

    #[test]
    fn a_login_has_one_deadline_whatever_the_server_sends_meanwhile() {
        for pause in [Duration::from_millis(50), Duration::ZERO] {
            // It accepts the user, and never comes to the end of the beginning.
            let server = noticing(b"R\0\0\0\x08\0\0\0\0", pause);
            let refusal = Admin::connect(&server).err().unwrap();
            // A flood may also be more than is kept of replies.
            let signs = ["no whole reply within the time allowed, only ", "larger than 64 MiB"];
            let signs = if pause.is_zero() { &signs[..] } else { &signs[..1] };
            assert!(signs.iter().any(|sign| refusal.contains(sign)), "{pause:?}: {refusal}");
        }
    }

    #[test]
    fn statements_of_an_undertaking_share_its_deadline() {
        let server = noticing(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", Duration::from_millis(50));
        let deadline = Deadline::after(Duration::from_secs(2));
        let limits = Limits { deadline, budget: Budget::preflight() };
        let mut admin = Admin::within(&server, limits).unwrap();
        // A statement without a deadline would wait for an hour.
        for _ in 0..3 {
            assert_eq!(admin.run("SELECT 1").unwrap_err().fault, Fault::Timeout);
        }
        assert!(deadline.has_passed());
    }
}
