//! One slot: a connection of its own, and one transaction after the other on it.
//!
//! Here is what is around a transaction's body, the same for all workloads: it is begun and committed; one that conflicts is
//! done again with the same choices; one that was lost in its `COMMIT` never is; a connection that was lost is made again,
//! unhurried. An operation's latency covers all of that.

use crate::connection::Connection;
use crate::counted::{Counted, Counts};
use crate::failure::Failure;
use crate::job::Settings;
use crate::ledger::Client;
use crate::recorded::execution;
use crate::server::Server;
use crate::statement::{Control, Statements};
use crate::transaction::{End, Transaction};
use crate::workload::{Action, Transact, Workload};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tidemark_load::endpoints::endpoint_of;
use tidemark_load::engine::{Operation, Outcome, Tick};
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;
use tidemark_reactor::{Examples, Mailbox, Reactor, Task};
use tidemark_tpc::executions::Executions;

/// How long a slot waits to connect again after it could not, or was cut off: a dead server is a failure of every operation,
/// not of a million in every second.
const RECONNECT_NS: u64 = 100_000_000;

/// What all slots of a thread share.
pub(crate) struct Thread {
    pub(crate) reactor: Rc<Reactor>,
    pub(crate) examples: Rc<Examples>,
    pub(crate) servers: Arc<[Arc<Server>]>,
    /// What the servers are called where there are several.
    pub(crate) names: Arc<[String]>,
    pub(crate) route: Route,
    pub(crate) statements: Arc<Statements>,
    pub(crate) settings: Settings,
    pub(crate) actions: Arc<[Action]>,
    pub(crate) counted: Arc<Counted>,
    /// Of each server.
    pub(crate) counts: Vec<RefCell<Counts>>,
    /// Where executions of queries go, of a load of which each is recorded.
    pub(crate) executions: Option<Arc<Executions>>,
}

impl Thread {
    /// Counts a transaction on an instance, if it was committed.
    #[inline]
    fn acknowledge(&self, instance: usize, committed: bool) {
        self.counts[instance].borrow_mut().acknowledged += u64::from(committed);
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        for (server, counts) in self.servers.iter().zip(&self.counts) {
            self.counted.add(server.target.describe(), counts.take());
        }
    }
}

/// On which of several instances an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// On its slot's: a client stays with one, and has a number among the clients of that one.
    BySlot,
    /// On the one that its space names, from 1.
    BySpace,
}

/// Where a slot is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which instance.
    pub(crate) instance: usize,
    /// Which of its endpoints.
    pub(crate) endpoint: usize,
}

impl Place {
    /// The place of a slot of a session whose first slot has the number `first` within the work: instances in turn, and of each
    /// of them its endpoints in turn.
    pub(crate) fn of(servers: &[Arc<Server>], first: u32, slot: u32) -> Self {
        let instance = endpoint_of(first, slot, servers.len());
        let round = (first as usize + slot as usize) / servers.len();
        Self { instance, endpoint: round % servers[instance].endpoints() }
    }
}

/// A workload whose transactions can be done: every one that implements [`Transact`].
pub trait Runnable: Workload {
    /// The loop of a slot, which begins with this connection.
    fn run(self: Arc<Self>, slot: Slot, mailbox: Mailbox) -> Task;
}

impl<W: Transact> Runnable for W {
    fn run(self: Arc<Self>, mut slot: Slot, mailbox: Mailbox) -> Task {
        Box::pin(async move {
            let mut state = self.state();
            loop {
                let (drawn, sent) = mailbox.next().await;
                let operation = slot.directed(drawn);
                let outcome = slot.perform(&*self, &operation, &mut state).await;
                let done = slot.thread.reactor.now();
                if let Some(executions) = &slot.thread.executions {
                    let action = slot.thread.actions.get(usize::from(drawn.action));
                    if let Some(action) = action.filter(|action| !action.writes) {
                        let told = self.told(&state);
                        executions.add(execution(&action.label, &drawn, sent, done, &outcome, told));
                    }
                }
                mailbox.complete(done, outcome);
            }
        })
    }
}

/// A slot.
pub struct Slot {
    thread: Rc<Thread>,
    place: Place,
    connection: Option<Connection>,
    /// Before this, it does not connect.
    held_until: Tick,
    /// Whether a transaction is open, rolled back to its savepoint.
    has_begun: bool,
    /// Its place in the ledger, if one is kept.
    client: Option<Client>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let account = self.client.as_ref().map(Client::account);
        // A load's client stays with its instance.
        self.thread.counts[self.place.instance].borrow_mut().accounts.extend(account);
    }
}

impl Slot {
    /// A slot whose connection is made already, or when it is first needed.
    pub(crate) fn new(
        thread: Rc<Thread>,
        place: Place,
        connection: Option<Connection>,
        client: Option<Client>,
    ) -> Self {
        Self { thread, place, connection, held_until: 0, has_begun: false, client }
    }

    /// An operation as its workload sees it, which knows one database.
    fn directed(&mut self, operation: Operation) -> Operation {
        let instances = self.thread.servers.len() as u64;
        match self.thread.route {
            // Nothing changes for the only instance.
            _ if instances == 1 => operation,
            Route::BySlot => Operation { space: own_number(operation.space, instances), ..operation },
            Route::BySpace => {
                let instance = (operation.space.saturating_sub(1) % instances) as usize;
                if instance != self.place.instance {
                    self.place = Place { instance, endpoint: 0 };
                    self.connection = None;
                }
                Operation { space: 1, ..operation }
            }
        }
    }

    /// Does a transaction, as often as it must and may.
    async fn perform<W: Transact>(
        &mut self,
        workload: &W,
        operation: &Operation,
        state: &mut W::State,
    ) -> Outcome {
        let mut retries = 0;
        loop {
            let failure = match self.attempt(workload, operation, state).await {
                Ok(bytes) => return Outcome { retries, ..Outcome::success(bytes) },
                Err(failure) => failure,
            };
            if failure.lost {
                (self.connection, self.has_begun) = (None, false);
                self.held_until = self.thread.reactor.now() + RECONNECT_NS;
            }
            if !failure.is_retryable() || retries + 1 >= self.thread.settings.tries {
                self.give_up().await;
                self.note(operation, &failure);
                return Outcome { retries, ..Outcome::failure(failure.fault) };
            }
            self.thread.counts[self.place.instance].borrow_mut().aborts.count(failure.fault);
            retries += 1;
            self.back_off(operation, retries).await;
        }
    }

    /// Waits before the next attempt: longer each time, and not as long as the others that conflicted.
    #[cold]
    async fn back_off(&self, operation: &Operation, retries: u32) {
        let settings = &self.thread.settings;
        let longest = settings.back_off_ns.saturating_mul(1 << (retries - 1).min(30));
        let longest = longest.min(settings.back_off_most_ns);
        let wait = longest / 2 + Rng::new(operation.random, &[retries.into()]).below(longest / 2 + 1);
        self.thread.reactor.sleep_until(self.thread.reactor.now() + wait).await;
    }

    #[cold]
    fn note(&self, operation: &Operation, failure: &Failure) {
        let label = |action: &Action| action.label.clone();
        let label = self.thread.actions.get(usize::from(operation.action)).map(label).unwrap_or_default();
        self.thread.examples.note(failure.fault, || match &*self.thread.names {
            [_] => format!("{label}: {failure}"),
            names => format!("{label} on {}: {failure}", names[self.place.instance]),
        });
    }

    /// One attempt; gives the bytes that it moved in bulk.
    #[inline]
    async fn attempt<W: Transact>(
        &mut self,
        workload: &W,
        operation: &Operation,
        state: &mut W::State,
    ) -> Result<u64, Failure> {
        let thread = Rc::clone(&self.thread);
        let action = &thread.actions[usize::from(operation.action)];
        if self.connection.is_none() {
            self.connect().await?;
        }
        let Some(connection) = &mut self.connection else {
            return Err(Failure::lost(Fault::Local, "there is no connection"));
        };
        let mut client = self.client.as_mut().filter(|_| action.writes);
        if let Some(client) = client.as_mut().filter(|client| client.is_unsettled() && !self.has_begun) {
            client.settle(connection).await?;
        }
        // Statements without a transaction around them are each one of their own, which a round trip of several is not.
        connection.set_pipeline(thread.settings.pipeline && action.explicit);
        let mut ahead = 0;
        // After a rollback to the savepoint the transaction has begun already.
        if action.explicit && !std::mem::take(&mut self.has_begun) {
            connection.add(Control::Begin.number(), &[])?;
            ahead = 1;
            if thread.settings.savepoint {
                connection.add(Control::Savepoint.number(), &[])?;
                ahead = 2;
            }
            if !thread.settings.pipeline {
                connection.run().await?;
                ahead = 0;
            }
        }
        let mut transaction = Transaction::new(connection, ahead);
        let mut rng = Rng::new(operation.random, &[]);
        let ended = workload.transact(&mut transaction, operation, &mut rng, state).await;
        let (moved, has_run) = (transaction.moved, transaction.has_run);
        let failure = match ended {
            Ok(end) if action.explicit => {
                match finish(connection, end, thread.settings.savepoint, client).await {
                    Ok(()) => {
                        thread.acknowledge(self.place.instance, end == End::Commit);
                        return Ok(moved);
                    }
                    Err(failure) => failure,
                }
            }
            Ok(end) => {
                thread.acknowledge(self.place.instance, has_run && end == End::Commit);
                return Ok(moved);
            }
            // A statement of its own may have been committed before the connection was lost.
            Err(failure) if !action.explicit && action.writes && failure.lost => failure.ambiguous(),
            Err(failure) => failure,
        };
        // A refused COMMIT has ended the transaction: there is nothing to roll back.
        if failure.lost || !action.explicit || !connection.is_in_transaction() {
            return Err(failure);
        }
        let back = match thread.settings.savepoint && failure.is_retryable() {
            true => Control::RollbackToSavepoint,
            false => Control::Rollback,
        };
        let undone = match connection.add(back.number(), &[]) {
            Ok(()) => connection.run().await,
            Err(error) => Err(error),
        };
        self.has_begun = undone.is_ok() && back == Control::RollbackToSavepoint;
        // What could not be rolled back is over when its connection is.
        Err(Failure { lost: undone.is_err(), ..failure })
    }

    /// Ends what the last attempt has left open for another one, which will not be made.
    #[cold]
    async fn give_up(&mut self) {
        let Some(connection) = self.connection.as_mut().filter(|_| std::mem::take(&mut self.has_begun))
        else {
            return;
        };
        let ended = match connection.add(Control::Rollback.number(), &[]) {
            Ok(()) => connection.run().await,
            Err(error) => Err(error),
        };
        if ended.is_err() {
            self.connection = None;
        }
    }

    /// Opens a connection and closes it: when it was open, or failed, and how it went.
    pub(crate) async fn visit(&mut self, operation: &Operation) -> (Tick, Outcome) {
        let opened = self.connect().await;
        let at = self.thread.reactor.now();
        // The server is told.
        self.connection = None;
        let Err(failure) = opened else { return (at, Outcome::success(0)) };
        // A server that refuses in words is not dead: it takes what is offered.
        if failure.code.is_none() {
            self.held_until = at + RECONNECT_NS;
        }
        self.note(operation, &failure);
        (at, Outcome::failure(failure.fault))
    }

    /// Connects again, not before its time.
    #[cold]
    async fn connect(&mut self) -> Result<(), Failure> {
        let thread = Rc::clone(&self.thread);
        if thread.reactor.now() < self.held_until {
            thread.reactor.sleep_until(self.held_until).await;
        }
        let opened = Connection::open(
            &thread.reactor,
            &thread.servers[self.place.instance],
            self.place.endpoint,
            &thread.statements,
            &thread.settings,
        );
        let opened = opened.await.map_err(|failure| Failure { lost: true, ..failure })?;
        self.connection = Some(opened);
        if let Some(client) = &mut self.client {
            client.reconnected();
        }
        Ok(())
    }
}

/// The number of a client among those of its instance, given that among all of the work: the work's clients are on instances in
/// turn, as its slots are.
fn own_number(client: u64, instances: u64) -> u64 {
    client.saturating_sub(1) / instances + 1
}

/// Commits a transaction, or rolls it back on purpose.
#[inline]
async fn finish(
    connection: &mut Connection,
    end: End,
    savepoint: bool,
    client: Option<&mut Client>,
) -> Result<(), Failure> {
    if end == End::Rollback {
        connection.add(Control::Rollback.number(), &[])?;
        return connection.run().await;
    }
    let Some(client) = client else { return commit(connection, savepoint).await };
    client.mark(connection)?;
    let ended = commit(connection, savepoint).await;
    client.ended(ended.as_ref().err());
    ended
}

/// Commits a transaction.
#[inline]
async fn commit(connection: &mut Connection, savepoint: bool) -> Result<(), Failure> {
    if savepoint {
        // This is the commit. What conflicts says so here; any other failure leaves open whether it was one.
        connection.add(Control::Release.number(), &[])?;
        let released = connection.run().await;
        released.map_err(|failure| if failure.is_retryable() { failure } else { failure.ambiguous() })?;
    }
    connection.add(Control::Commit.number(), &[])?;
    match connection.run().await {
        Ok(()) if connection.has_committed() => Ok(()),
        Ok(()) => {
            let text = "COMMIT rolled the transaction back: one of its statements had failed";
            Err(Failure::new(Fault::Sql, text))
        }
        // After a lost connection, or a release that was the commit, nobody can tell.
        Err(failure) if failure.lost || savepoint => Err(failure.ambiguous()),
        // A refused COMMIT has rolled the transaction back.
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests;
