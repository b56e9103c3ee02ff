//! PostgreSQL's protocol, version 3, on one connection that its slot owns.
//!
//! [`Connection`] sends statements and reads what they give; [`mod@startup`] connects and authenticates. Messages are encoded
//! by `postgres-protocol`; what the server sends is read where it lies in the connection's buffer. Parameters and results are
//! text, so that nothing has to be known of types; bytes go in binary.
//!
//! A statement is prepared under a name when a connection first runs it, in the same round trip. In unnamed mode it is
//! prepared with every execution, which a pool in transaction mode (PgBouncer) requires: the next transaction may be on
//! another server connection.

mod message;
mod startup;

#[cfg(test)]
mod tests;

use crate::bulk::Bulk;
use crate::failure::Failure;
use crate::rows::{Extent, Rows};
use crate::server::Server;
use crate::statement::Statements;
use crate::stream::{MOST_RESULTS, Stream, too_large};
use crate::value::Value;
use bytes::{BufMut as _, BytesMut};
use message::{Message, Tag};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;
use tidemark_measure::fault::Fault;
use tidemark_reactor::Reactor;

/// Bytes of a piece of a bulk load.
const COPY_PIECE: usize = 128 << 10;

/// A connection to a server that speaks PostgreSQL's protocol.
pub struct Connection {
    stream: Stream,
    /// How much of what is to be sent has been.
    sent: usize,
    statements: Arc<Statements>,
    named: bool,
    pipeline: bool,
    /// Where the pieces of `out` end that are sent one after the other, each when the last one was answered.
    pieces: Vec<usize>,
    /// What the statements of the batch gave, in order; and of the one whose rows are coming.
    results: Vec<Extent>,
    open: Extent,
    queued: usize,
    /// Whether the batch has been run, so that what is added belongs to the next one.
    over: bool,
    /// Which statements have been prepared here.
    prepared: Vec<bool>,
    /// Those that are being prepared in this batch, and how many of them have been.
    preparing: Vec<usize>,
    preparations: usize,
    tag: Tag,
    /// Whether a transaction is open on the server, failed or not.
    in_transaction: bool,
    /// The server process that serves this connection, as it was told when it began.
    process: u32,
    version: String,
    standby: bool,
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
        pipeline: bool,
    ) -> Result<Self, Failure> {
        let target = &server.target;
        let deadline = reactor.now().saturating_add(target.timeout_ns);
        let transport = server.connect(reactor, endpoint, deadline).await?;
        let mut connection = Self {
            stream: Stream::new(reactor, transport, target.timeout_ns),
            sent: 0,
            statements: Arc::clone(statements),
            named: target.prepared,
            pipeline,
            pieces: Vec::new(),
            results: Vec::new(),
            open: Extent::default(),
            queued: 0,
            over: true,
            prepared: vec![false; statements.count()],
            preparing: Vec::new(),
            preparations: 0,
            tag: Tag::Other,
            in_transaction: false,
            process: 0,
            version: String::new(),
            standby: false,
        };
        connection.stream.begin_login(deadline);
        startup::start(&mut connection, server, endpoint).await?;
        connection.stream.end_login();
        Ok(connection)
    }

    /// The server's version, as it says it: `15.14 (Debian 15.14-0+deb12u1)`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether the server is a standby, which accepts no writes.
    pub fn is_standby(&self) -> bool {
        self.standby
    }

    /// The server process that serves this connection, as it was told when it began: a pool in between says another number.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// How long a statement may take from now on, nanoseconds.
    pub fn set_timeout(&mut self, timeout_ns: u64) {
        self.stream.timeout_ns = timeout_ns;
    }

    /// Whether the statements of a batch go in one round trip from now on.
    #[inline]
    pub fn set_pipeline(&mut self, pipeline: bool) {
        self.pipeline = pipeline;
    }

    /// Adds a statement to the batch that [`Connection::run`] sends.
    ///
    /// # Errors
    /// When its parameters are more than a message can hold.
    pub fn add(&mut self, number: usize, parameters: &[Value<'_>]) -> Result<(), Failure> {
        self.begin_batch();
        let before = self.stream.out.len();
        let prepares = !self.named || !self.prepared[number];
        if self.encode(number, parameters, prepares).is_err() {
            // Half a message must not be sent.
            self.stream.out.truncate(before);
            let text =
                "a statement or its parameters are too large for a message, or have a zero byte in them";
            return Err(Failure::new(Fault::Sql, text));
        }
        if prepares {
            self.prepared[number] = true;
            self.preparing.push(number);
        }
        self.queued += 1;
        if !self.pipeline {
            self.end_piece();
        }
        Ok(())
    }

    /// Appends the messages of a statement.
    #[inline]
    fn encode(&mut self, number: usize, parameters: &[Value<'_>], prepares: bool) -> std::io::Result<()> {
        let mut name = itoa::Buffer::new();
        let name = if self.named { name.format(number) } else { "" };
        if prepares {
            frontend::parse(name, self.statements.sql(number), [], &mut self.stream.out)?;
        }
        // No format at all means text for every parameter.
        let binary = parameters.iter().any(|value| matches!(value, Value::Bytes(_)));
        let formats =
            parameters.iter().filter(|_| binary).map(|value| i16::from(matches!(value, Value::Bytes(_))));
        let text = |value: &Value<'_>, out: &mut BytesMut| match value {
            Value::Null => Ok(IsNull::Yes),
            value => {
                value.push_text(out);
                Ok(IsNull::No)
            }
        };
        let bound =
            frontend::bind("", name, formats, parameters, text, std::iter::empty(), &mut self.stream.out);
        bound.map_err(|_| std::io::ErrorKind::InvalidInput)?;
        frontend::execute("", 0, &mut self.stream.out)
    }

    /// Sends what was added and waits for all of it. Without pipelining, each statement waits for the one before.
    ///
    /// # Errors
    /// The first statement's failure; what was behind it has not been done.
    pub async fn run(&mut self) -> Result<(), Failure> {
        self.begin_batch();
        if self.pipeline {
            self.end_piece();
        }
        self.exchange().await
    }

    /// Runs SQL as it is: any number of statements, without parameters.
    ///
    /// # Errors
    /// The first statement's failure.
    pub async fn simple(&mut self, sql: &str) -> Result<(), Failure> {
        self.begin_batch();
        let zero = |_| Failure::new(Fault::Sql, "a statement contains a zero byte, or is too large");
        frontend::query(sql, &mut self.stream.out).map_err(zero)?;
        self.pieces.push(self.stream.out.len());
        self.exchange().await
    }

    /// The rows that a statement of the last batch gave.
    pub fn rows(&self, place: usize) -> Rows<'_> {
        Rows::new(&self.stream.input, self.results.get(place).copied().unwrap_or_default())
    }

    /// Whether the last statement committed a transaction: a `COMMIT` after a failed statement rolls back, and says so in
    /// its tag alone.
    pub fn has_committed(&self) -> bool {
        self.tag == Tag::Commit
    }

    /// Whether a transaction is open, failed or not, as the server said when it was last ready; or may be opened by what
    /// was added and has not been run.
    pub fn is_in_transaction(&self) -> bool {
        self.in_transaction || !self.over
    }

    /// Loads rows: `COPY ... FROM STDIN`, binary. Gives how many the server counted.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn load(&mut self, bulk: &Bulk<'_>) -> Result<u64, Failure> {
        self.begin_batch();
        let large = |_| Failure::new(Fault::Sql, "the name of a table contains a zero byte");
        frontend::query(&bulk.copy_statement(), &mut self.stream.out).map_err(large)?;
        self.pieces.push(self.stream.out.len());
        self.exchange().await?;
        self.begin_batch();
        for piece in bulk.bytes().chunks(COPY_PIECE) {
            self.stream.out.clear();
            self.sent = 0;
            self.stream.out.put_u8(b'd');
            self.stream.out.put_u32(piece.len() as u32 + 4);
            self.stream.out.put_slice(piece);
            self.stream.allow_time();
            self.send(self.stream.out.len()).await?;
        }
        self.stream.out.clear();
        self.sent = 0;
        frontend::copy_done(&mut self.stream.out);
        self.pieces.push(self.stream.out.len());
        self.exchange().await?;
        Ok(self.results.first().map_or(0, |result| result.affected))
    }

    /// Begins a batch if the last one is over.
    #[inline]
    fn begin_batch(&mut self) {
        if !std::mem::take(&mut self.over) {
            return;
        }
        self.stream.out.clear();
        self.pieces.clear();
        self.results.clear();
        self.preparing.clear();
        (self.sent, self.queued, self.preparations) = (0, 0, 0);
        self.open = Extent::default();
        self.stream.forget();
    }

    fn end_piece(&mut self) {
        frontend::sync(&mut self.stream.out);
        self.pieces.push(self.stream.out.len());
    }

    /// Sends each piece and reads until the server is ready again.
    async fn exchange(&mut self) -> Result<(), Failure> {
        self.over = true;
        let mut failure = None;
        for piece in 0..self.pieces.len() {
            self.stream.allow_time();
            self.send(self.pieces[piece]).await?;
            if let Err(found) = self.receive().await {
                if found.lost {
                    return Err(found);
                }
                failure = Some(found);
                break;
            }
        }
        if let Some(failure) = failure {
            // What the server skipped has not been prepared.
            for number in &self.preparing[self.preparations.min(self.preparing.len())..] {
                self.prepared[*number] = false;
            }
            return Err(failure);
        }
        if self.results.len() < self.queued {
            return Err(Failure::malformed("the server answered fewer statements than it was sent"));
        }
        Ok(())
    }

    /// Sends what has not been sent of `out` up to `end`.
    #[inline]
    async fn send(&mut self, end: usize) -> Result<(), Failure> {
        let begin = std::mem::replace(&mut self.sent, end);
        self.stream.send(begin..end).await
    }

    /// Reads until the server is ready for the next piece, or for the data of a `COPY`.
    #[inline]
    async fn receive(&mut self) -> Result<(), Failure> {
        let mut failure = None;
        loop {
            while let Some(message) = self.next_message()? {
                match self.understand(message)? {
                    Step::Goes => {}
                    Step::Failed(found) => {
                        failure.get_or_insert(found);
                    }
                    Step::Ready => return failure.map_or(Ok(()), Err),
                }
            }
            // A server that goes says why, and closes.
            let received = self.stream.more().await;
            if let Err(error) = received {
                return Err(match failure {
                    Some(said) => Failure { lost: true, ..said },
                    None => error,
                });
            }
        }
    }

    /// The next message that has come whole.
    #[inline]
    fn next_message(&mut self) -> Result<Option<Message>, Failure> {
        let message = Message::at(self.stream.received(), self.stream.read)?;
        if let Some(message) = message {
            self.stream.read = message.end;
        }
        Ok(message)
    }

    /// Takes note of a message.
    #[inline]
    fn understand(&mut self, message: Message) -> Result<Step, Failure> {
        if self.results.len() > MOST_RESULTS {
            return Err(too_large());
        }
        match message.kind {
            b'D' => {
                if self.open.rows == 0 {
                    self.open.start = message.start;
                }
                self.open.rows += 1;
                self.open.end = message.end;
            }
            b'C' => {
                let (tag, affected) = Tag::read(message.body(&self.stream.input));
                self.tag = tag;
                self.results.push(Extent { affected, ..std::mem::take(&mut self.open) });
            }
            b'I' => self.results.push(std::mem::take(&mut self.open)),
            b'Z' => {
                self.in_transaction = message.body(&self.stream.input) != b"I";
                return Ok(Step::Ready);
            }
            b'G' => return Ok(Step::Ready),
            b'1' => self.preparations += 1,
            b'E' => return Ok(Step::Failed(message::failure(message.body(&self.stream.input)))),
            // Bound, no data, notices, changed parameters, notifications, descriptions, and the end of a COPY.
            b'2' | b'n' | b'N' | b'S' | b'A' | b'T' | b't' | b'3' | b'c' | b's' => {}
            other => {
                let what = format!("the server sent a message of the unknown kind {other:#04x}");
                return Err(Failure::malformed(what));
            }
        }
        Ok(Step::Goes)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // As far as there is room for it: a server that is told does not log a lost connection.
        let mut out = BytesMut::new();
        frontend::terminate(&mut out);
        let _ = self.stream.transport.send(&[IoSlice::new(&out)]);
    }
}

/// What a message leads to.
enum Step {
    Goes,
    Failed(Failure),
    Ready,
}
