//! The bytes of a connection, whatever its protocol: what is to be sent, and what has come and has not been understood yet.

use crate::failure::Failure;
use bytes::BytesMut;
use std::cell::Cell;
use std::io::IoSlice;
use std::ops::Range;
use std::rc::Rc;
use tidemark_load::engine::Tick;
use tidemark_measure::fault::Fault;
use tidemark_reactor::{Broken, Reactor, Ready, Transport};

/// What a receive buffer begins with: the replies of most transactions. It grows as it must.
const INPUT: usize = 8 << 10;

/// How many times something may come without a wait before the clock is looked at.
const LOOK_EVERY: u32 = 64;

/// What the results of statements that are run together may take, bytes: more ends the operation instead of growing in memory.
pub(crate) const RESULTS_MOST: usize = 64 << 20;

/// Most results of statements that are run together: a server may send empty ones without end.
pub(crate) const MOST_RESULTS: usize = 10_000;

/// What came is larger than that.
#[cold]
pub(crate) fn too_large() -> Failure {
    let text = "the results of the statements are larger than 64 MiB: let them return fewer rows or columns";
    Failure::lost(Fault::Sql, text)
}

/// A connection's buffers, and its way to the server.
pub(crate) struct Stream {
    reactor: Rc<Reactor>,
    pub(crate) transport: Transport,
    /// How long a reply may take, nanoseconds.
    pub(crate) timeout_ns: u64,
    /// When a login has to be over, however many messages it takes.
    login_deadline: Tick,
    /// When the present reply has to be there.
    deadline: Cell<Tick>,
    /// How often something came without a wait for it.
    unwaited: u32,
    /// What is to be sent.
    pub(crate) out: BytesMut,
    /// What has come: `filled` bytes, of which those before `read` have been understood.
    pub(crate) input: Vec<u8>,
    filled: usize,
    pub(crate) read: usize,
}

impl Stream {
    /// On a transport that is connected.
    pub(crate) fn new(reactor: &Rc<Reactor>, transport: Transport, timeout_ns: u64) -> Self {
        Self {
            reactor: Rc::clone(reactor),
            transport,
            timeout_ns,
            login_deadline: Tick::MAX,
            deadline: Cell::new(Tick::MAX),
            unwaited: 0,
            out: BytesMut::with_capacity(1 << 10),
            input: vec![0; INPUT],
            filled: 0,
            read: 0,
        }
    }

    /// What has come and has not been understood yet.
    #[inline]
    pub(crate) fn unread(&self) -> &[u8] {
        &self.input[self.read..self.filled]
    }

    /// All that has come, understood or not.
    #[inline]
    pub(crate) fn received(&self) -> &[u8] {
        &self.input[..self.filled]
    }

    /// Forgets what has been understood: places in the buffer hold no more.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.input.copy_within(self.read..self.filled, 0);
        (self.filled, self.read) = (self.filled - self.read, 0);
    }

    /// From now on the server has as long as one statement may take.
    #[inline]
    pub(crate) fn allow_time(&self) {
        let deadline = self.reactor.now().saturating_add(self.timeout_ns).min(self.login_deadline);
        self.deadline.set(deadline);
        self.transport.socket().set_deadline(deadline);
    }

    /// A login begins, which has to be over by then.
    pub(crate) fn begin_login(&mut self, deadline: Tick) {
        self.login_deadline = deadline;
        self.deadline.set(deadline);
    }

    /// The login is over: from now on each statement has a deadline of its own.
    pub(crate) fn end_login(&mut self) {
        self.login_deadline = Tick::MAX;
    }

    /// Sends a part of `out`. What comes meanwhile is read, so that neither side waits for the other.
    ///
    /// # Errors
    /// When the connection is lost.
    #[inline]
    pub(crate) async fn send(&mut self, part: Range<usize>) -> Result<(), Failure> {
        let mut sent = part.start;
        while sent < part.end {
            match self.transport.send(&[IoSlice::new(&self.out[sent..part.end])]) {
                Ok(length) => sent += length,
                Err(error) if error.would_block() => {
                    self.transport.socket().ready(Ready::EITHER).await.map_err(Broken::from)?;
                    if self.transport.socket().is_ready(Ready::READ) {
                        self.receive()?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        // With TLS, what was taken may still be here.
        loop {
            match self.transport.flush() {
                Ok(()) => return Ok(()),
                Err(error) if error.would_block() => {
                    self.transport.socket().ready(Ready::WRITE).await.map_err(Broken::from)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for more of the reply.
    ///
    /// # Errors
    /// When the connection is lost, or the time is over.
    #[inline]
    pub(crate) async fn more(&mut self) -> Result<(), Failure> {
        if self.receive()? {
            // A server that sends without a pause is never waited for.
            self.unwaited = self.unwaited.wrapping_add(1);
            if self.unwaited.is_multiple_of(LOOK_EVERY) && self.reactor.now() >= self.deadline.get() {
                return Err(Failure::broken(&Broken::from(self.transport.socket().expired())));
            }
            return Ok(());
        }
        self.transport.socket().ready(Ready::READ).await.map_err(Broken::from)?;
        while !self.receive()? {
            self.transport.socket().ready(Ready::READ).await.map_err(Broken::from)?;
        }
        Ok(())
    }

    /// Receives once; whether something came.
    #[inline]
    fn receive(&mut self) -> Result<bool, Failure> {
        if self.input.len() - self.filled < INPUT / 2 {
            if self.input.len() >= RESULTS_MOST {
                return Err(too_large());
            }
            self.input.resize(self.input.len() * 2, 0);
        }
        match self.transport.receive(&mut self.input[self.filled..]) {
            Ok(0) => Err(Failure::lost(Fault::Reset, "the server closed the connection")),
            Ok(length) => {
                self.filled += length;
                Ok(true)
            }
            Err(error) if error.would_block() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
