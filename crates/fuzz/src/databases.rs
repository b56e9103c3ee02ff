//! Replies of databases and of Trino: whatever comes from the other end of a connection.

use crate::{SECRET, check_error, halves};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use tidemark_load::engine::Clock;
use tidemark_measure::record::QueryUse;
use tidemark_reactor::Reactor;
use tidemark_sql::Value::{Int, Text};
use tidemark_sql::connection::Connection;
use tidemark_sql::dialect::Dialect;
use tidemark_sql::job::{Endpoint, Settings, Target, Tls};
use tidemark_sql::statement::{Control, Statements};
use tidemark_sql::{Failure, Rows, Server, Statement};

/// The first line is `tcp` or another one, and the rest all that a server of MySQL's protocol sends, whatever it is asked.
pub fn mysql(bytes: &[u8]) -> bool {
    let (taken, heard) = session(Dialect::Mysql, bytes);
    // On a Unix socket a server may ask for the password itself.
    let is_told = heard.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    assert!(!is_told || !bytes.starts_with(b"tcp"), "the password was sent in clear");
    taken
}

/// The same for PostgreSQL's.
pub fn postgres(bytes: &[u8]) -> bool {
    session(Dialect::Postgres, bytes).0
}

/// Whether a session with such a server gets as far as the answer to a statement, and what the server has heard.
fn session(dialect: Dialect, bytes: &[u8]) -> (bool, Vec<u8>) {
    let (place, said) = halves(bytes, b'\n');
    let Ok(directory) = tempfile::tempdir() else { return (false, Vec::new()) };
    let path = directory.path().join("socket");
    if place == b"tcp" {
        let Ok(listener) = TcpListener::bind("127.0.0.1:0") else { return (false, Vec::new()) };
        let port = listener.local_addr().map_or(0, |address| address.port());
        let endpoint = Endpoint::Tcp("127.0.0.1".into(), port);
        meet(dialect, endpoint, move || listener.accept().map(|(stream, _)| stream), said)
    } else {
        let Ok(listener) = UnixListener::bind(&path) else { return (false, Vec::new()) };
        let accept = move || listener.accept().map(|(stream, _)| stream);
        meet(dialect, Endpoint::Unix(path), accept, said)
    }
}

/// An end of a connection on which nothing more is sent.
trait Ends: Read + Write {
    fn ends(&self) -> std::io::Result<()>;
}

impl Ends for TcpStream {
    fn ends(&self) -> std::io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Ends for UnixStream {
    fn ends(&self) -> std::io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

fn meet<S: Ends>(
    dialect: Dialect,
    endpoint: Endpoint,
    accept: impl FnOnce() -> std::io::Result<S> + Send,
    said: &[u8],
) -> (bool, Vec<u8>) {
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut heard = Vec::new();
            if let Ok(mut stream) = accept() {
                // A client that has heard enough closes the connection.
                let _ = stream.write_all(said).and_then(|()| stream.ends());
                let _ = stream.read_to_end(&mut heard);
            }
            heard
        });
        let asked = ask(dialect, endpoint);
        if let Err(failure) = &asked {
            check_error(&failure.to_string());
        }
        (asked.is_ok(), server.join().unwrap_or_default())
    })
}

/// Connects, and runs statements: as text, and prepared.
fn ask(dialect: Dialect, endpoint: Endpoint) -> Result<(), Failure> {
    let target = Target {
        dialect,
        endpoints: vec![endpoint],
        replicas: Vec::new(),
        user: "u".into(),
        password: Some(SECRET.to_owned().into()),
        database: "d".into(),
        tls: Tls::Disable,
        ca_file: None,
        timeout_ns: 60_000_000_000,
        prepared: true,
    };
    let broken = |what: String| Failure::malformed(what);
    let server = Server::resolve(&target).map_err(|error| broken(error.to_string()))?;
    let clock = Clock::starting_at(Instant::now());
    let reactor: Rc<Reactor> =
        Reactor::new(clock, target.timeout_ns).map_err(|error| broken(error.to_string()))?;
    let statements = Arc::new(Statements::new("BEGIN", vec![Statement::new("SELECT $1, $2")]));
    let settings = Settings::default();
    reactor.block_on(async {
        let mut connection = Connection::open(&reactor, &server, 0, &statements, &settings).await?;
        connection.simple("SELECT 1").await?;
        look(connection.rows(0));
        // The statement behind it may be refused: the server knew nothing of it when it spoke.
        connection.add(Control::COUNT, &[Int(7), Text("x")])?;
        if let Err(failure) = connection.run().await {
            check_error(&failure.to_string());
        }
        look(connection.rows(0));
        Ok(())
    })
}

/// Reads all of an answer in all ways.
fn look(rows: Rows<'_>) {
    for row in rows.iter() {
        for column in 0..row.columns().min(100) {
            if let Err(failure) = row.get(column) {
                check_error(&failure.to_string());
            }
            let _ = (row.number::<i64>(column), row.decimal(column, 2));
        }
    }
}

/// Any bytes are read as a reply of Trino: its rows, its figures, its failure.
pub fn trino(bytes: &[u8]) -> bool {
    let reply = match tidemark_trino::Reply::read(bytes) {
        Ok(reply) => reply,
        Err(error) => {
            check_error(&error);
            return false;
        }
    };
    let mut cells = 0;
    let read = reply.rows(|row| cells += row.iter().flatten().map(|cell| cell.len()).sum::<usize>());
    assert!(cells <= bytes.len());
    reply.stats.add_to(&mut QueryUse::default());
    if let Some(error) = &reply.error {
        let _ = error.class();
        check_error(&error.words());
    }
    match read {
        Ok(()) => true,
        Err(error) => {
            check_error(&error);
            false
        }
    }
}
