//! Operations that run elsewhere: on the threads of an async runtime, which belong to the engine under test and not to the load.
//!
//! The load core's thread hands an operation over and waits for its end. So what the engine does holds up neither the clock nor
//! the operations that are due next.

use crossbeam_channel::{Receiver, Sender, unbounded};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tidemark_load::engine::{
    Begin, Clock, Completion, OpenError, Operation, Outcome, Session, Sessions, ThreadContext, Tick,
};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{EndpointKind, EndpointUse, Example};
use tidemark_object::store::Store;
use tokio::runtime::{Handle, Runtime};
use tokio::task::AbortHandle;

/// The end of an operation, and the words of its failure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// When it was over, where that was before it was said; otherwise now.
    pub(crate) done: Option<Tick>,
    /// What to tell of a failure.
    pub(crate) example: Option<Example>,
}

/// An operation on its way.
pub(crate) type Doing = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// What carries operations out.
pub(crate) trait Tasks: Send + Sync + 'static {
    /// Begins an operation of a slot, by its number within the work; `sent` is now.
    fn begin(self: Arc<Self>, slot: u32, operation: Operation, clock: Clock, sent: Tick) -> Doing;
}

/// Sessions that hand operations to tasks on a runtime.
#[derive(Debug)]
pub(crate) struct TaskSessions<T> {
    tasks: Arc<T>,
    runtime: Arc<Runtime>,
    client: Option<Arc<Store>>,
}

impl<T: Tasks> TaskSessions<T> {
    /// Sessions of these tasks, on this runtime. `client` is what sends their requests, if they go over a network.
    pub(crate) fn new(tasks: Arc<T>, runtime: Arc<Runtime>, client: Option<Arc<Store>>) -> Self {
        Self { tasks, runtime, client }
    }
}

impl<T: Tasks> Sessions for TaskSessions<T> {
    fn open(&self, thread: ThreadContext) -> Result<Box<dyn Session>, OpenError> {
        let (sender, ended) = unbounded();
        // What it took to get ready is none of the load's.
        self.client.iter().for_each(|client| drop(client.take()));
        Ok(Box::new(TaskSession {
            tasks: Arc::clone(&self.tasks),
            runtime: self.runtime.handle().clone(),
            client: self.client.clone(),
            clock: thread.clock,
            first_slot: thread.first_slot,
            slots: (0..thread.slots).map(|_| None).collect(),
            begun: 0,
            sender,
            ended,
            examples: Vec::new(),
        }))
    }

    fn endpoints(&self) -> Vec<String> {
        self.client.as_ref().map(|client| client.endpoints()).unwrap_or_default()
    }

    fn endpoint_kind(&self) -> EndpointKind {
        EndpointKind::Shared
    }
}

/// What a slot is at: the number of its operation, and how to give it up.
type Slot = Option<(u64, AbortHandle)>;

struct TaskSession<T> {
    tasks: Arc<T>,
    runtime: Handle,
    client: Option<Arc<Store>>,
    clock: Clock,
    first_slot: u32,
    slots: Vec<Slot>,
    begun: u64,
    sender: Sender<(u32, u64, Ended)>,
    ended: Receiver<(u32, u64, Ended)>,
    examples: Vec<Example>,
}

/// Failures that are kept word for word, of each class.
const EXAMPLES: usize = 5;

impl<T: Tasks> TaskSession<T> {
    fn completion(&mut self, (slot, number, ended): (u32, u64, Ended)) -> Option<Completion> {
        let place = self.slots.get_mut(slot as usize)?;
        // What was given up has ended already.
        place.take_if(|(known, _)| *known == number)?;
        if let Some(example) = ended.example {
            let known = self.examples.iter().filter(|known| known.fault == example.fault).count();
            if known < EXAMPLES {
                self.examples.push(example);
            }
        }
        let done = ended.done.unwrap_or_else(|| self.clock.now());
        Some(Completion { slot, done, outcome: ended.outcome })
    }
}

impl<T: Tasks> Session for TaskSession<T> {
    fn begin(&mut self, slot: u32, operation: &Operation, sent: Tick) -> Begin {
        self.begun += 1;
        let number = self.begun;
        let doing = Arc::clone(&self.tasks).begin(self.first_slot + slot, *operation, self.clock, sent);
        let sender = self.sender.clone();
        let task = self.runtime.spawn(doing);
        let handle = task.abort_handle();
        self.runtime.spawn(async move {
            let ended = task.await.unwrap_or_else(|error| {
                let fault = if error.is_cancelled() { Fault::Abandoned } else { Fault::Local };
                Ended { outcome: Outcome::failure(fault), ..Ended::default() }
            });
            // Nobody listens once the session is over.
            let _ = sender.send((slot, number, ended));
        });
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some((number, handle));
        }
        Begin::Started
    }

    fn reap(&mut self, until: Tick, ended: &mut Vec<Completion>) {
        let had = ended.len();
        loop {
            while let Ok(message) = self.ended.try_recv() {
                ended.extend(self.completion(message));
            }
            let left = until.saturating_sub(self.clock.now());
            if ended.len() > had || left == 0 {
                return;
            }
            if let Ok(message) = self.ended.recv_timeout(Duration::from_nanos(left)) {
                ended.extend(self.completion(message));
            }
        }
    }

    fn abandon(&mut self) {
        for (slot, place) in self.slots.iter_mut().enumerate() {
            if let Some((number, handle)) = place {
                handle.abort();
                let outcome = Outcome::failure(Fault::Abandoned);
                let _ = self.sender.send((slot as u32, *number, Ended { outcome, ..Ended::default() }));
            }
        }
    }

    fn requests(&mut self) -> Vec<EndpointUse> {
        self.client.as_ref().map(|client| client.take()).unwrap_or_default()
    }

    fn examples(&mut self) -> Vec<Example> {
        std::mem::take(&mut self.examples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sleeps;

    impl Tasks for Sleeps {
        fn begin(self: Arc<Self>, slot: u32, operation: Operation, _: Clock, _: Tick) -> Doing {
            Box::pin(async move {
                match operation.item {
                    0 => Ended { outcome: Outcome::success(u64::from(slot)), ..Ended::default() },
                    1 => std::future::pending().await,
                    _ => panic!("a task that breaks is a failure of its operation alone"),
                }
            })
        }
    }

    fn session() -> (Box<dyn Session>, Arc<Runtime>) {
        let runtime =
            Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap());
        let sessions = TaskSessions::new(Arc::new(Sleeps), Arc::clone(&runtime), None);
        let thread = ThreadContext {
            clock: Clock::starting_at(std::time::Instant::now()),
            thread: 0,
            first_slot: 5,
            slots: 2,
            largest: 0,
            seed: 0,
        };
        (sessions.open(thread).unwrap(), runtime)
    }

    fn reap(session: &mut dyn Session, count: usize) -> Vec<Completion> {
        let mut ended = Vec::new();
        while ended.len() < count {
            session.reap(u64::MAX / 2, &mut ended);
        }
        ended
    }

    #[test]
    fn operations_end_on_their_slots_whatever_becomes_of_their_tasks() {
        let (mut session, _runtime) = session();
        let operation = |item| Operation { item, ..Operation::default() };
        assert_eq!(session.begin(1, &operation(0), 0), Begin::Started);
        let [done] = reap(&mut *session, 1)[..] else { panic!() };
        assert_eq!((done.slot, done.outcome.bytes), (1, 6), "slots are numbered within the work");
        session.begin(0, &operation(2), 0);
        assert_eq!(reap(&mut *session, 1)[0].outcome.fault, Some(Fault::Local));
    }

    #[test]
    fn what_is_given_up_ends_once() {
        let (mut session, _runtime) = session();
        session.begin(0, &Operation { item: 1, ..Operation::default() }, 0);
        let mut ended = Vec::new();
        session.reap(0, &mut ended);
        assert!(ended.is_empty(), "it goes on");
        session.abandon();
        assert_eq!(reap(&mut *session, 1)[0].outcome.fault, Some(Fault::Abandoned));
        session.begin(0, &Operation::default(), 0);
        assert_eq!(reap(&mut *session, 1)[0].outcome.fault, None, "and its slot is free again");
    }
}
