//! One thread's sockets, timers and slots: an epoll instance that is polled and never modified on the way.
//!
//! A socket is registered once, edge-triggered for everything, when it is made; from then on its readiness
//! is two bits that the kernel sets and that a short read or write clears. So an operation costs one send
//! and one receive, and `epoll_wait` is shared by all that became ready together.
//!
//! Whoever waits is a *slot*: a number. There are no wakers: a slot is polled when one of its sockets became
//! ready or ran out of time, or when a time that it waits for has come. A slot may be polled for nothing;
//! what it waits for is always looked at again.

use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tidemark_load::budget::Budget;
use tidemark_load::engine::{Clock, OpenError, Tick};
use tidemark_measure::units;

/// Events taken from the kernel at once. More would make the first replies of a batch wait longer for the
/// next operations of their slots.
const EVENTS: usize = 128;

/// Bytes of the thread's receive buffer: large bodies come in few large pieces.
const SCRATCH: usize = 256 << 10;

/// Deadlines are looked at this often at least; more often when time-outs are short.
const SWEEP_MOST_NS: u64 = 50_000_000;

/// How long to wait where a Unix socket's queue of connections is full.
const UNIX_RETRY_NS: u64 = 1_000_000;

/// One thread's event loop. Shared by everything that the thread has open.
pub struct Reactor {
    epoll: OwnedFd,
    clock: Clock,
    /// The slot that is being polled: sockets and timers made now are its own.
    slot: Cell<u32>,
    entries: RefCell<Vec<Entry>>,
    free: RefCell<Vec<u32>>,
    timers: RefCell<BinaryHeap<Reverse<(Tick, u32)>>>,
    events: RefCell<Vec<epoll::Event>>,
    scratch: RefCell<Box<[u8]>>,
    sweep_ns: u64,
    next_sweep: Cell<Tick>,
    /// What its sockets may receive together, if that is limited.
    budget: Option<Budget>,
}

/// A registered socket.
#[derive(Clone, Copy)]
struct Entry {
    slot: u32,
    /// Tells this socket's events from those of an earlier one in the same place.
    generation: u32,
    ready: Ready,
    deadline: Tick,
    /// Bytes that came since the deadline was set.
    received: u64,
}

/// What a socket is ready for, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready(u8);

impl Ready {
    /// There may be something to read.
    pub const READ: Ready = Ready(1);
    /// There may be room to write.
    pub const WRITE: Ready = Ready(2);
    /// Either.
    pub const EITHER: Ready = Ready(3);
    /// The peer closed or reset its side: reading will end, for good.
    const HUNG_UP: Ready = Ready(4);
    /// The deadline has passed.
    const EXPIRED: Ready = Ready(8);
    const NOTHING: Ready = Ready(0);

    fn has(self, other: Ready) -> bool {
        self.0 & other.0 != 0
    }

    fn with(self, other: Ready) -> Ready {
        Ready(self.0 | other.0)
    }

    fn without(self, other: Ready) -> Ready {
        Ready(self.0 & !other.0)
    }
}

/// The deadline of a socket has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// Bytes that came since it was set: there was a reply, but not all of it.
    pub received: u64,
}

impl std::fmt::Display for Expired {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.received {
            0 => formatter.write_str("no reply within the time allowed"),
            more => {
                write!(formatter, "no whole reply within the time allowed, only {} of it", units::bytes(more))
            }
        }
    }
}

impl std::error::Error for Expired {}

impl Reactor {
    /// A reactor for the calling thread. `timeout_ns` is the shortest time-out it will have to keep, which
    /// is kept to about 5 %.
    ///
    /// # Errors
    /// When the kernel has no `epoll_pwait2` (Linux before 5.11), or no descriptor is left.
    pub fn new(clock: Clock, timeout_ns: u64) -> Result<Rc<Self>, OpenError> {
        Self::make(clock, timeout_ns, None)
    }

    /// The same for an undertaking before the load: receiving fails once its sockets have received more than that together.
    ///
    /// # Errors
    /// As [`Reactor::new`].
    pub fn within(clock: Clock, timeout_ns: u64, budget: &Budget) -> Result<Rc<Self>, OpenError> {
        Self::make(clock, timeout_ns, Some(budget.clone()))
    }

    fn make(clock: Clock, timeout_ns: u64, budget: Option<Budget>) -> Result<Rc<Self>, OpenError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| OpenError(format!("cannot create an epoll instance: {error}")))?;
        let mut probe =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(&epoll, &mut probe, Some(&now)) {
            Err(Errno::NOSYS) => {
                return Err(OpenError(
                    "this kernel has no epoll_pwait2, which precise due times require: use Linux 5.11 or later"
                        .into(),
                ));
            }
            Err(error) if error != Errno::INTR => {
                return Err(OpenError(format!("cannot wait on an epoll instance: {error}")));
            }
            _ => {}
        }
        Ok(Rc::new(Self {
            epoll,
            clock,
            slot: Cell::new(0),
            entries: RefCell::default(),
            free: RefCell::default(),
            timers: RefCell::default(),
            events: RefCell::new(Vec::with_capacity(EVENTS)),
            scratch: RefCell::new(vec![0; SCRATCH].into_boxed_slice()),
            sweep_ns: (timeout_ns / 20).clamp(1_000_000, SWEEP_MOST_NS),
            next_sweep: Cell::new(0),
            budget,
        }))
    }

    /// The clock that all ticks are read from.
    #[inline]
    pub fn now(&self) -> Tick {
        self.clock.now()
    }

    /// The thread's buffer of 256 KiB: to be used and given back within one poll.
    pub fn scratch(&self) -> std::cell::RefMut<'_, Box<[u8]>> {
        self.scratch.borrow_mut()
    }

    /// Polls a slot's future: what it opens and waits for is the slot's.
    #[inline]
    pub fn poll<F: Future + ?Sized>(&self, slot: u32, future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        self.slot.set(slot);
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Waits until slots have something to do, or until `until`, and adds them to `slots` (some perhaps twice).
    pub fn wait(&self, until: Tick, slots: &mut Vec<u32>) {
        let now = self.now();
        let timer = self.timers.borrow().peek().map_or(Tick::MAX, |Reverse((due, _))| *due);
        let wake = until.min(timer).min(self.next_sweep.get());
        let left = wake.saturating_sub(now);
        let timeout =
            Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 as _ };
        let mut events = self.events.borrow_mut();
        events.clear();
        // An interrupted wait brings nothing: the caller looks at the clock and comes again.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout));
        if !events.is_empty() {
            let mut entries = self.entries.borrow_mut();
            for event in events.iter() {
                // The fields are packed.
                let (flags, data) = (event.flags, event.data.u64());
                let Some(entry) = entries.get_mut(data as u32 as usize) else { continue };
                if entry.generation == (data >> 32) as u32 {
                    entry.ready = entry.ready.with(readiness(flags));
                    slots.push(entry.slot);
                }
            }
        }
        // When the wait was for a time, it has come.
        let now = if left > 0 && events.is_empty() { self.now() } else { now };
        if timer <= now {
            self.ring(now, slots);
        }
        if self.next_sweep.get() <= now {
            self.sweep(now, slots);
        }
    }

    /// Wakes the slots whose timers have come.
    #[cold]
    fn ring(&self, now: Tick, slots: &mut Vec<u32>) {
        let mut timers = self.timers.borrow_mut();
        while let Some(Reverse((due, slot))) = timers.peek().copied() {
            if due > now {
                return;
            }
            timers.pop();
            slots.push(slot);
        }
    }

    /// Wakes the slots whose sockets are past their deadlines.
    #[cold]
    fn sweep(&self, now: Tick, slots: &mut Vec<u32>) {
        self.next_sweep.set(now + self.sweep_ns);
        for entry in self.entries.borrow_mut().iter_mut() {
            if entry.deadline <= now && !entry.ready.has(Ready::EXPIRED) {
                entry.ready = entry.ready.with(Ready::EXPIRED);
                slots.push(entry.slot);
            }
        }
    }

    /// Waits for a time.
    pub async fn sleep_until(&self, due: Tick) {
        self.timers.borrow_mut().push(Reverse((due, self.slot.get())));
        poll_fn(|_| if self.now() >= due { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Runs one future to its end on this thread, for what happens before the load.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.block_on_slot(0, future)
    }

    /// The same on behalf of a slot: the sockets that it makes are the slot's.
    pub fn block_on_slot<F: Future>(&self, slot: u32, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        let mut slots = Vec::new();
        // While nobody waited, a peer may have closed a connection that is to be used again.
        self.wait(self.now(), &mut slots);
        loop {
            if let Poll::Ready(output) = self.poll(slot, future.as_mut()) {
                return output;
            }
            slots.clear();
            self.wait(self.now() + SWEEP_MOST_NS, &mut slots);
        }
    }

    /// Takes a place for a socket of the present slot.
    fn register(&self) -> (u32, u32) {
        let mut entries = self.entries.borrow_mut();
        let slot = self.free.borrow_mut().pop().unwrap_or(entries.len() as u32);
        let fresh = Entry { slot: 0, generation: 0, ready: Ready::NOTHING, deadline: Tick::MAX, received: 0 };
        if slot as usize == entries.len() {
            entries.push(fresh);
        }
        let entry = &mut entries[slot as usize];
        *entry = Entry { slot: self.slot.get(), generation: entry.generation.wrapping_add(1), ..fresh };
        (slot, entry.generation)
    }
}

/// A socket's readiness by an event.
#[inline]
fn readiness(flags: epoll::EventFlags) -> Ready {
    let has = |flag, ready| if flags.intersects(flag) { ready } else { Ready::NOTHING };
    let gone = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
    has(epoll::EventFlags::IN, Ready::READ)
        .with(has(epoll::EventFlags::OUT, Ready::WRITE))
        .with(has(gone, Ready::EITHER.with(Ready::HUNG_UP)))
}

/// A TCP or Unix socket of the slot that made it.
pub struct Socket {
    reactor: Rc<Reactor>,
    fd: OwnedFd,
    slot: u32,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The generation makes events that are already on their way fall flat; closing does the rest.
        let mut entries = self.reactor.entries.borrow_mut();
        let entry = &mut entries[self.slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.deadline = Tick::MAX;
        self.reactor.free.borrow_mut().push(self.slot);
    }
}

impl Socket {
    /// Connects to an address before `deadline`, which stays the socket's deadline.
    ///
    /// # Errors
    /// The kernel's error; `TimedOut` when the deadline passes first.
    pub async fn connect(reactor: &Rc<Reactor>, address: SocketAddr, deadline: Tick) -> io::Result<Self> {
        let family = if address.is_ipv4() { net::AddressFamily::INET } else { net::AddressFamily::INET6 };
        let flags = net::SocketFlags::NONBLOCK | net::SocketFlags::CLOEXEC;
        let fd = net::socket_with(family, net::SocketType::STREAM, flags, None)?;
        net::sockopt::set_tcp_nodelay(&fd, true)?;
        let connecting = net::connect(&fd, &address);
        if let Err(error) = connecting
            && error != Errno::INPROGRESS
        {
            return Err(error.into());
        }
        let socket = Self::register(reactor, fd, deadline)?;
        socket.ready(Ready::WRITE).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        net::sockopt::socket_error(&socket.fd)??;
        Ok(socket)
    }

    /// Connects to a Unix socket before `deadline`, which stays the socket's deadline.
    ///
    /// # Errors
    /// As [`Socket::connect`].
    pub async fn connect_unix(reactor: &Rc<Reactor>, path: &Path, deadline: Tick) -> io::Result<Self> {
        let address = net::SocketAddrUnix::new(path)?;
        let flags = net::SocketFlags::NONBLOCK | net::SocketFlags::CLOEXEC;
        let fd = net::socket_with(net::AddressFamily::UNIX, net::SocketType::STREAM, flags, None)?;
        // Such a socket connects at once; a server that is behind with accepting says so, and nothing tells when it no longer is.
        while let Err(error) = net::connect(&fd, &address) {
            let now = reactor.now();
            if error != Errno::AGAIN {
                return Err(error.into());
            }
            if now >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            reactor.sleep_until(now + UNIX_RETRY_NS).await;
        }
        Self::register(reactor, fd, deadline)
    }

    fn register(reactor: &Rc<Reactor>, fd: OwnedFd, deadline: Tick) -> io::Result<Self> {
        let (slot, generation) = reactor.register();
        let socket = Self { reactor: Rc::clone(reactor), fd, slot };
        socket.set_deadline(deadline);
        let data = epoll::EventData::new_u64(u64::from(generation) << 32 | u64::from(slot));
        let everything =
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(&reactor.epoll, &socket.fd, data, everything)?;
        Ok(socket)
    }

    /// From when on waiting for this socket fails.
    #[inline]
    pub fn set_deadline(&self, deadline: Tick) {
        self.change(|entry| {
            (entry.deadline, entry.received) = (deadline, 0);
            entry.ready = entry.ready.without(Ready::EXPIRED);
        });
    }

    /// Waits until the socket may be ready for one of these.
    ///
    /// # Errors
    /// [`Expired`] when its deadline passes first.
    #[inline]
    pub async fn ready(&self, wanted: Ready) -> Result<(), Expired> {
        poll_fn(|_| {
            let ready = self.state();
            if ready.has(Ready::EXPIRED) {
                Poll::Ready(Err(self.expired()))
            } else if ready.has(wanted) {
                Poll::Ready(Ok(()))
            } else {
                Poll::Pending
            }
        })
        .await
    }

    /// That its deadline has passed, with what came until then. For whoever finds that without waiting: while bytes keep coming, nothing
    /// waits.
    #[cold]
    pub fn expired(&self) -> Expired {
        Expired { received: self.reactor.entries.borrow()[self.slot as usize].received }
    }

    /// Whether it may be ready for one of these now.
    #[inline]
    pub fn is_ready(&self, wanted: Ready) -> bool {
        self.state().has(wanted)
    }

    /// Receives what has come; 0 bytes: the peer has closed its side.
    ///
    /// # Errors
    /// `WouldBlock` when no data has arrived, [`Exceeded`](tidemark_load::budget::Exceeded) when the reactor's budget is, otherwise the
    /// kernel's error.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_ready(Ready::READ) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let room = buffer.len();
        match net::recv(&self.fd, buffer, net::RecvFlags::empty()) {
            Ok((_, length)) => {
                // Short means drained, unless the end is still to be read; what comes later is a new edge.
                self.change(|entry| {
                    entry.received += length as u64;
                    if length < room && !entry.ready.has(Ready::HUNG_UP) {
                        entry.ready = entry.ready.without(Ready::READ);
                    }
                });
                if let Some(budget) = &self.reactor.budget {
                    budget.take(length as u64).map_err(io::Error::other)?;
                }
                Ok(length)
            }
            Err(error) => Err(self.refused(error, Ready::READ)),
        }
    }

    /// Sends some of the slices' bytes, in one call.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room, otherwise the kernel's error.
    #[inline]
    pub fn send(&self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        if !self.is_ready(Ready::WRITE) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let sent = match slices {
            [one] => net::send(&self.fd, one, net::SendFlags::NOSIGNAL),
            many => net::sendmsg(
                &self.fd,
                many,
                &mut net::SendAncillaryBuffer::default(),
                net::SendFlags::NOSIGNAL,
            ),
        };
        sent.map_err(|error| self.refused(error, Ready::WRITE))
    }

    /// Turns a system call's error into ours; one that would have blocked clears the readiness it relied on.
    #[cold]
    fn refused(&self, error: Errno, readiness: Ready) -> io::Error {
        if error == Errno::AGAIN {
            self.change(|entry| entry.ready = entry.ready.without(readiness));
        }
        error.into()
    }

    #[inline]
    fn state(&self) -> Ready {
        self.reactor.entries.borrow()[self.slot as usize].ready
    }

    #[inline]
    fn change(&self, change: impl FnOnce(&mut Entry)) {
        change(&mut self.reactor.entries.borrow_mut()[self.slot as usize]);
    }
}

impl io::Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer)
    }
}

impl io::Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(&[io::IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.send(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::time::Instant;

    const MS: u64 = 1_000_000;

    fn reactor(timeout_ns: u64) -> Rc<Reactor> {
        Reactor::new(Clock::starting_at(Instant::now()), timeout_ns).unwrap()
    }

    #[test]
    fn what_is_sent_comes_back_and_the_end_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let echo = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut bytes = [0; 5];
            peer.read_exact(&mut bytes).unwrap();
            peer.write_all(&bytes).unwrap();
        });
        let reactor = reactor(1000 * MS);
        let received = reactor.block_on(async {
            let socket = Socket::connect(&reactor, address, Tick::MAX).await.unwrap();
            socket.send(&[io::IoSlice::new(b"he"), io::IoSlice::new(b"llo")]).unwrap();
            let (mut received, mut buffer) = (Vec::new(), [0; 64]);
            loop {
                match socket.receive(&mut buffer) {
                    Ok(0) => return received,
                    Ok(length) => received.extend_from_slice(&buffer[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        socket.ready(Ready::READ).await.unwrap();
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
        assert_eq!(received, b"hello");
        echo.join().unwrap();
    }

    #[test]
    fn a_deadline_ends_a_wait_and_a_dead_port_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let reactor = reactor(20 * MS);
        let began = reactor.now();
        let waited = reactor.block_on(async {
            let socket = Socket::connect(&reactor, address, Tick::MAX).await.unwrap();
            socket.set_deadline(reactor.now() + 20 * MS);
            socket.ready(Ready::READ).await
        });
        assert_eq!(waited, Err(Expired { received: 0 }));
        assert!(reactor.now() - began >= 20 * MS);
        drop(listener);
        let refused = reactor.block_on(Socket::connect(&reactor, address, Tick::MAX));
        assert_eq!(refused.err().unwrap().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn timers_wake_their_lanes_in_order() {
        let reactor = reactor(1000 * MS);
        let began = reactor.now();
        reactor.block_on(async {
            reactor.sleep_until(began + 3 * MS).await;
            assert!(reactor.now() >= began + 3 * MS);
        });
        for (slot, due) in [(4, 2), (5, 1)] {
            let mut sleep = std::pin::pin!(reactor.sleep_until(reactor.now() + due * MS));
            assert!(reactor.poll(slot, sleep.as_mut()).is_pending());
        }
        let mut slots = Vec::new();
        while slots.len() < 2 {
            reactor.wait(reactor.now() + 10 * MS, &mut slots);
        }
        assert_eq!(slots, [5, 4]);
    }

    #[test]
    fn events_of_a_closed_socket_do_not_reach_its_successor() {
        let reactor = reactor(1000 * MS);
        let (slot, generation) = reactor.register();
        let stale = Socket {
            reactor: Rc::clone(&reactor),
            fd: epoll::create(epoll::CreateFlags::CLOEXEC).unwrap(),
            slot,
        };
        drop(stale);
        assert_eq!(reactor.register().0, slot, "the place is used again");
        assert_ne!(reactor.entries.borrow()[slot as usize].generation, generation);
    }
}
