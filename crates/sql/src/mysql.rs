//! MySQL's protocol, which MariaDB speaks too, on one connection that its slot owns.
//!
//! [`Connection`] sends statements and reads what they give; [`mod@startup`] connects and authenticates. Rows are written as
//! [`Rows`] reads them when they come.
//!
//! A statement with parameters is prepared when a connection first runs it, and executed in binary form; `prepared: false`
//! sends its text with the values in it instead. A statement without parameters is always sent as text: not all can be prepared.
//!
//! Statements are sent one after the other, each when the last one was answered, whatever `pipeline` says. A server would take
//! several at once, but it also does those behind one that failed: after a deadlock, which ends the transaction, each of them
//! would be committed by itself.

mod packet;
mod placeholders;
mod row;
mod startup;
#[cfg(test)]
mod tests;

use crate::bulk::Bulk;
use crate::failure::Failure;
use crate::job::Settings;
use crate::rows::{Extent, Rows};
use crate::server::Server;
use crate::statement::{Control, Statements};
use crate::stream::{MOST_RESULTS, RESULTS_MOST, Stream, too_large};
use crate::value::Value;
use bytes::{BufMut as _, BytesMut};
use packet::{Done, malformed};
pub(crate) use placeholders::Template;
use row::Column;
use std::io::IoSlice;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use tidemark_reactor::Reactor;

/// What a new session is set to, so that texts are quoted in one way, whatever the server's own settings are.
const SESSION: &str = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES', autocommit = 1";

const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

/// A connection to a server that speaks MySQL's protocol.
pub struct Connection {
    stream: Stream,
    /// The number of the last packet that was sent or came; the next one has the next number.
    number: u8,
    /// Whether the server ends rows and definitions with a packet of their own kind.
    has_eof: bool,
    statements: Arc<Statements>,
    /// Those of them that have been used here.
    known: Vec<Option<Known>>,
    prepares: bool,
    /// The commands of the batch, in order.
    batch: Vec<Command>,
    /// Whether the batch has been run, so that what is added belongs to the next one.
    over: bool,
    /// What the statements of the batch gave, in order, and their rows.
    results: Vec<Extent>,
    rows: Vec<u8>,
    /// The columns of the result that is coming.
    columns: Vec<Column>,
    in_transaction: bool,
    committed: bool,
    /// Whether the server has forgotten the statement that was to be executed.
    stale: bool,
    version: String,
    standby: bool,
}

/// A statement that has been used on this connection.
struct Known {
    template: Template,
    /// The server's number for it, once it is prepared.
    id: Option<u32>,
}

/// A command that has been encoded.
struct Command {
    /// Where it lies in what is to be sent.
    part: Range<usize>,
    statement: usize,
    /// Whether it executes a prepared statement.
    executes: bool,
}

impl Connection {
    /// Connects to an endpoint of a server, and authenticates.
    ///
    /// # Errors
    /// Why it could not be: the connection's failure, or the server's refusal.
    pub async fn open(
        reactor: &Rc<Reactor>,
        server: &Server,
        endpoint: usize,
        statements: &Arc<Statements>,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let target = &server.target;
        let deadline = reactor.now().saturating_add(target.timeout_ns);
        let transport = server.connect(reactor, endpoint, deadline).await?;
        let mut connection = Self {
            stream: Stream::new(reactor, transport, target.timeout_ns),
            // The server speaks first.
            number: u8::MAX,
            has_eof: true,
            statements: Arc::clone(statements),
            known: (0..statements.count()).map(|_| None).collect(),
            prepares: target.prepared,
            batch: Vec::new(),
            over: true,
            results: Vec::new(),
            rows: Vec::new(),
            columns: Vec::new(),
            in_transaction: false,
            committed: false,
            stale: false,
            version: String::new(),
            standby: false,
        };
        connection.stream.begin_login(deadline);
        startup::start(&mut connection, server, endpoint).await?;
        let isolation = settings.isolation.and_then(|isolation| target.dialect.session_isolation(isolation));
        let isolation = isolation.map(|sql| sql + "; ").unwrap_or_default();
        let session = connection.simple(&format!("{SESSION}; {isolation}SELECT @@global.read_only")).await;
        session.map_err(|failure| Failure { lost: true, ..failure })?;
        let answer = connection.results.last().copied().unwrap_or_default();
        connection.standby = Rows::new(&connection.rows, answer).first()?.text(0)? == "1";
        connection.stream.end_login();
        Ok(connection)
    }

    /// The server's version, as it says it: `10.11.6-MariaDB-0+deb12u1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether the server is set to accept no writes (`read_only`), as those that follow another one are.
    pub fn is_standby(&self) -> bool {
        self.standby
    }

    /// How long a statement may take from now on, nanoseconds.
    pub fn set_timeout(&mut self, timeout_ns: u64) {
        self.stream.timeout_ns = timeout_ns;
    }

    /// Adds a statement to the batch that [`Connection::run`] sends.
    ///
    /// # Errors
    /// When it lacks parameters, or is more than a packet can hold.
    pub fn add(&mut self, number: usize, parameters: &[Value<'_>]) -> Result<(), Failure> {
        self.begin_batch();
        let sql = self.statements.sql(number);
        let known =
            self.known[number].get_or_insert_with(|| Known { template: Template::new(sql), id: None });
        let executes = self.prepares && known.template.places() > 0;
        let out = &mut self.stream.out;
        let start = packet::begin(out);
        let encoded = if executes {
            execute(known, parameters, out)
        } else {
            out.put_u8(QUERY);
            known.template.push(parameters, out)
        };
        let encoded = match encoded {
            Ok(()) => packet::end(out, start, 0),
            Err(failure) => Err(failure),
        };
        if encoded.is_err() {
            // Half a packet must not be sent.
            out.truncate(start);
            return encoded;
        }
        self.batch.push(Command { part: start..out.len(), statement: number, executes });
        Ok(())
    }

    /// Sends what was added, one statement after the other.
    ///
    /// # Errors
    /// The first statement's failure; what was behind it has not been done.
    pub async fn run(&mut self) -> Result<(), Failure> {
        self.begin_batch();
        self.over = true;
        for place in 0..self.batch.len() {
            let Command { statement, executes, ref part } = self.batch[place];
            let part = part.clone();
            if executes {
                self.prepare(statement, &part).await?;
            }
            self.committed = false;
            self.number = 0;
            self.stream.allow_time();
            self.stream.send(part).await?;
            let received = self.receive(executes).await;
            if received.is_err() && std::mem::take(&mut self.stale) {
                // The next execution prepares it again.
                self.known[statement].iter_mut().for_each(|known| known.id = None);
            }
            received?;
            // A routine gives more results, the last of which says how it ended.
            self.results.truncate(place + 1);
            self.committed = statement == Control::Commit.number();
        }
        Ok(())
    }

    /// Runs SQL as it is: any number of statements, without parameters.
    ///
    /// # Errors
    /// The first statement's failure.
    pub async fn simple(&mut self, sql: &str) -> Result<(), Failure> {
        self.begin_batch();
        self.query(sql.as_bytes()).await
    }

    /// Sends a command of text, and waits for all that it gives.
    async fn query(&mut self, sql: &[u8]) -> Result<(), Failure> {
        (self.over, self.committed) = (true, false);
        let start = packet::begin(&mut self.stream.out);
        self.stream.out.put_u8(QUERY);
        self.stream.out.put_slice(sql);
        packet::end(&mut self.stream.out, start, 0)?;
        let end = self.stream.out.len();
        self.number = 0;
        self.stream.allow_time();
        self.stream.send(start..end).await?;
        self.receive(false).await
    }

    /// Loads rows: `INSERT` statements of many rows. Gives how many the server counted.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn load(&mut self, bulk: &Bulk<'_>) -> Result<u64, Failure> {
        let mut rows = 0;
        for statement in bulk.inserts() {
            self.begin_batch();
            self.query(statement).await?;
            rows += self.results.first().map_or(0, |result| result.affected);
        }
        Ok(rows)
    }

    /// The rows that a statement of the last batch gave.
    pub fn rows(&self, place: usize) -> Rows<'_> {
        Rows::new(&self.rows, self.results.get(place).copied().unwrap_or_default())
    }

    /// Whether the last statement was a `COMMIT`, which has no other end than to commit or to fail.
    pub fn has_committed(&self) -> bool {
        self.committed
    }

    /// Whether a transaction is open, as the server said when it last did something; or may be opened by what was added and
    /// has not been run.
    pub fn is_in_transaction(&self) -> bool {
        self.in_transaction || !self.over
    }

    /// Begins a batch if the last one is over.
    #[inline]
    fn begin_batch(&mut self) {
        if !std::mem::take(&mut self.over) {
            return;
        }
        self.stream.out.clear();
        self.batch.clear();
        self.results.clear();
        self.rows.clear();
    }

    /// Prepares a statement, unless it is, and puts its number where it is executed.
    #[inline]
    async fn prepare(&mut self, statement: usize, part: &Range<usize>) -> Result<(), Failure> {
        let Some(known) = &self.known[statement] else { return Ok(()) };
        let id = match known.id {
            Some(id) => id,
            None => self.prepare_anew(statement).await?,
        };
        self.stream.out[part.start + packet::HEADER + 1..][..4].copy_from_slice(&id.to_le_bytes());
        Ok(())
    }

    #[cold]
    async fn prepare_anew(&mut self, statement: usize) -> Result<u32, Failure> {
        let Some(known) = &self.known[statement] else { return Err(malformed()) };
        let (sql, places) = (known.template.sql(), known.template.places());
        // Behind what waits to be sent.
        let start = packet::begin(&mut self.stream.out);
        self.stream.out.put_u8(PREPARE);
        self.stream.out.put_slice(sql.as_bytes());
        packet::end(&mut self.stream.out, start, 0)?;
        let end = self.stream.out.len();
        self.number = 0;
        self.stream.allow_time();
        let sent = self.stream.send(start..end).await;
        self.stream.out.truncate(start);
        sent?;
        let payload = self.packet().await?;
        let payload = &self.stream.input[payload];
        if payload.first() == Some(&0xff) {
            return Err(packet::failure(payload));
        }
        let (Some(0), Some(head)) = (payload.first(), payload.get(1..9)) else { return Err(malformed()) };
        let id = packet::little(&head[..4]) as u32;
        let (columns, parameters) = (packet::little(&head[4..6]), packet::little(&head[6..8]));
        if parameters != places as u64 {
            return Err(Failure::malformed("the server found other parameters in a statement than Tidemark"));
        }
        for definitions in [parameters, columns].into_iter().filter(|definitions| *definitions > 0) {
            for _ in 0..definitions + u64::from(self.has_eof) {
                self.packet().await?;
            }
        }
        if let Some(known) = &mut self.known[statement] {
            known.id = Some(id);
        }
        Ok(id)
    }

    /// Reads all that a command gives.
    #[inline]
    async fn receive(&mut self, binary: bool) -> Result<(), Failure> {
        loop {
            let done = self.result(binary).await?;
            if self.results.len() > MOST_RESULTS {
                return Err(too_large());
            }
            self.in_transaction = done.is_in_transaction();
            if !done.has_more() {
                return Ok(());
            }
        }
    }

    /// Reads the result of one statement.
    #[inline]
    async fn result(&mut self, binary: bool) -> Result<Done, Failure> {
        let payload = self.packet().await?;
        let payload = &self.stream.input[payload];
        let columns = match payload {
            [0x00, ..] => {
                let done = Done::ok(payload).ok_or_else(malformed)?;
                self.results.push(Extent { affected: done.affected, ..Extent::default() });
                return Ok(done);
            }
            [0xff, ..] => {
                self.stale = packet::is_of_a_forgotten_statement(payload);
                return Err(packet::failure(payload));
            }
            _ => row::columns(payload).ok_or_else(malformed)?,
        };
        self.columns.clear();
        for _ in 0..columns {
            let payload = self.packet().await?;
            self.columns.push(Column::read(&self.stream.input[payload]).ok_or_else(malformed)?);
        }
        if self.has_eof {
            self.packet().await?;
        }
        let start = self.rows.len();
        for rows in 0.. {
            let payload = self.packet().await?;
            let payload = &self.stream.input[payload];
            let done = match payload {
                [0xff, ..] => return Err(packet::failure(payload)),
                [0xfe, ..] if self.has_eof && payload.len() < 9 => Done::eof(payload),
                [0xfe, ..] if !self.has_eof => Done::ok(payload),
                _ => {
                    let push = if binary { row::push_binary } else { row::push_texts };
                    push(payload, &self.columns, &mut self.rows).ok_or_else(malformed)?;
                    if self.rows.len() > RESULTS_MOST {
                        return Err(too_large());
                    }
                    continue;
                }
            };
            self.results.push(Extent { start, end: self.rows.len(), rows, affected: rows });
            return done.ok_or_else(malformed);
        }
        Err(malformed())
    }

    /// The payload of the next packet, waiting for it. It lies in the input until the next one is asked for.
    #[inline]
    async fn packet(&mut self) -> Result<Range<usize>, Failure> {
        loop {
            if let Some((payload, number)) = packet::packet(self.stream.unread())? {
                let at = self.stream.read;
                self.stream.read += payload.end;
                let place = at + payload.start..at + payload.end;
                // A server that goes says so with a number of its own. Anything else belongs to another command.
                if number != self.number.wrapping_add(1)
                    && self.stream.input[place.clone()].first() != Some(&0xff)
                {
                    return Err(malformed());
                }
                self.number = number;
                return Ok(place);
            }
            // What was understood is copied, or done with.
            self.stream.forget();
            self.stream.more().await?;
        }
    }

    /// Sends a packet that answers the last one.
    async fn say(&mut self, payload: &[u8]) -> Result<(), Failure> {
        let out = &mut self.stream.out;
        out.clear();
        let start = packet::begin(out);
        out.put_slice(payload);
        packet::end(out, start, self.number.wrapping_add(1))?;
        let end = out.len();
        self.number = self.number.wrapping_add(1);
        self.stream.allow_time();
        self.stream.send(start..end).await
    }
}

/// Appends a command that executes a statement, whose number is put in later.
#[inline]
fn execute(known: &Known, parameters: &[Value<'_>], out: &mut BytesMut) -> Result<(), Failure> {
    let places = known.template.places();
    out.put_u8(EXECUTE);
    out.put_u32_le(0);
    // No cursor; once.
    out.put_u8(0);
    out.put_u32_le(1);
    let nulls = out.len();
    out.put_bytes(0, places.div_ceil(8));
    // Types follow.
    out.put_u8(1);
    for (place, value) in known.template.parameters(parameters).enumerate() {
        let kind = match value? {
            Value::Null => {
                out[nulls + place / 8] |= 1 << (place % 8);
                0x06
            }
            Value::Int(_) => 0x08,
            Value::Float(_) => 0x05,
            Value::Decimal(..) => 0xf6,
            Value::Bytes(_) => 0xfc,
            Value::Text(_) | Value::Date(_) | Value::Time(_) => 0xfd,
        };
        out.put_u16_le(kind);
    }
    for value in known.template.parameters(parameters) {
        match value? {
            Value::Null => {}
            Value::Int(number) => out.put_i64_le(number),
            Value::Float(number) => out.put_f64_le(number),
            Value::Text(text) => packet::put_counted(out, text.as_bytes()),
            Value::Bytes(bytes) => packet::put_counted(out, bytes),
            value @ (Value::Decimal(..) | Value::Date(_) | Value::Time(_)) => {
                // All are shorter than 251 bytes.
                let at = out.len();
                out.put_u8(0);
                value.push_text(out);
                out[at] = (out.len() - at - 1) as u8;
            }
        }
    }
    Ok(())
}

impl Drop for Connection {
    fn drop(&mut self) {
        // As far as there is room for it: a server that is told does not count an aborted connection.
        let _ = self.stream.transport.send(&[IoSlice::new(&[1, 0, 0, 0, 1])]);
    }
}
