//! From a job to the sessions that do it: threads, their slots, and the slots' connections.

use crate::connection::Connection;
use crate::counted::Counted;
use crate::failure::Failure;
use crate::job::{Settings, Target};
use crate::server::Server;
use crate::slot::{Runnable, Slot, Thread};
use crate::statement::Statements;
use crate::workload::Action;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tidemark_load::endpoints::endpoint_of;
use tidemark_load::engine::{OpenError, Session, Sessions, ThreadContext};
use tidemark_measure::fault::Fault;
use tidemark_reactor::{Examples, Reactor, Slots, Spawn};

/// The sessions of a work.
pub(crate) struct Databases {
    workload: Arc<dyn Runnable>,
    server: Arc<Server>,
    statements: Arc<Statements>,
    settings: Settings,
    actions: Arc<[Action]>,
    counted: Arc<Counted>,
}

impl Databases {
    /// Sessions for this workload; the server's endpoints have been looked up.
    pub(crate) fn new(
        workload: Arc<dyn Runnable>,
        server: Arc<Server>,
        settings: &Settings,
        counted: &Arc<Counted>,
    ) -> Self {
        let dialect = server.target.dialect;
        let begin = dialect.begin(settings.isolation);
        let statements = Arc::new(Statements::new(&begin, workload.statements(dialect)));
        let actions = workload.actions().into();
        Self {
            workload,
            server,
            statements,
            settings: settings.clone(),
            actions,
            counted: Arc::clone(counted),
        }
    }
}

impl Sessions for Databases {
    fn open(&self, context: ThreadContext) -> Result<Box<dyn Session>, OpenError> {
        let target = &self.server.target;
        let reactor = Reactor::new(context.clock, target.timeout_ns)?;
        let examples = Rc::new(Examples::default());
        let thread = Rc::new(Thread {
            reactor: Rc::clone(&reactor),
            examples: Rc::clone(&examples),
            server: Arc::clone(&self.server),
            statements: Arc::clone(&self.statements),
            settings: self.settings.clone(),
            actions: Arc::clone(&self.actions),
            counted: Arc::clone(&self.counted),
            counts: RefCell::default(),
        });
        let endpoints = self.server.endpoints();
        let endpoint = move |slot: u32| endpoint_of(context.first_slot, slot, endpoints);
        // All connections are there before the load begins: to connect is no part of its first transactions.
        let connect = |slot: u32| {
            let opened =
                Connection::open(&reactor, &self.server, endpoint(slot), &self.statements, &self.settings);
            let opened = reactor.block_on_slot(slot, opened);
            opened.map(Some).map_err(|failure| OpenError(cannot_connect(target, slot, &failure)))
        };
        let connections = (0..context.slots).map(connect).collect::<Result<Vec<_>, _>>()?;
        let connections = RefCell::new(connections);
        let workload = Arc::clone(&self.workload);
        let spawn: Spawn = Box::new(move |slot, mailbox| {
            let connection = connections.borrow_mut().get_mut(slot as usize).and_then(Option::take);
            let slot = Slot::new(Rc::clone(&thread), endpoint(slot), connection);
            Arc::clone(&workload).run(slot, mailbox)
        });
        Ok(Box::new(Slots::new(&reactor, &examples, context.slots, spawn)))
    }

    fn endpoints(&self) -> Vec<String> {
        self.server.target.endpoints.iter().map(ToString::to_string).collect()
    }
}

/// Why there is no connection, and what to do.
pub(crate) fn cannot_connect(target: &Target, before: u32, failure: &Failure) -> String {
    let remedy = match (failure.fault, failure.code.as_ref()) {
        (Fault::Overloaded, _) if before > 0 => {
            "use fewer clients, raise max_connections of the server, or put a pool in front of it"
        }
        (Fault::Overloaded, _) => "raise max_connections of the server, or end other sessions",
        (Fault::Denied, _) => "check `user`, `password` and the server's pg_hba.conf",
        (Fault::Sql, Some(b"3D000")) => "create the database, or check `database`",
        (Fault::Refused | Fault::Unreachable | Fault::Local, _) => {
            "check that the server runs, and `host` and `port`"
        }
        (Fault::Tls, _) => "check `tls` and `ca_file`",
        (Fault::Unavailable, _) => "wait until it is up",
        _ => "check the target",
    };
    let already =
        if before > 0 { format!(" (connection {} of this thread)", before + 1) } else { String::new() };
    format!("cannot connect to {}{already}: {failure}; {remedy}", target.describe())
}
