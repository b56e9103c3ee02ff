//! From a job to the sessions that do it: threads, their slots, and the slots' connections.

use crate::connection::Connection;
use crate::counted::Counted;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::instances::Instances;
use crate::job::{Role, Settings, Target};
use crate::ledger::{self, Client, Keeping};
use crate::server::Server;
use crate::slot::{Place, Route, Runnable, Slot, Thread};
use crate::statement::{Control, Statements};
use crate::workload::Action;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tidemark_load::engine::{OpenError, Session, Sessions, ThreadContext};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::EndpointKind;
use tidemark_reactor::{Examples, Reactor, Slots, Spawn};
use tidemark_tpc::executions::Executions;

/// The sessions of a work.
pub(crate) struct Databases {
    workload: Arc<dyn Runnable>,
    servers: Arc<[Arc<Server>]>,
    names: Arc<[String]>,
    route: Route,
    statements: Arc<Statements>,
    settings: Settings,
    actions: Arc<[Action]>,
    counted: Arc<Counted>,
    /// How its clients keep a ledger, if they do.
    keeping: Option<Keeping>,
    /// Where executions of queries go, if each is recorded.
    executions: Option<Arc<Executions>>,
}

impl Databases {
    /// Sessions for this workload on these instances; the servers' endpoints have been looked up.
    pub(crate) fn new(
        workload: Arc<dyn Runnable>,
        instances: &Instances,
        servers: Vec<Arc<Server>>,
        route: Route,
        settings: &Settings,
        counted: &Arc<Counted>,
    ) -> Self {
        let dialect = instances.first().dialect;
        let begin = dialect.begin(settings.isolation);
        let mut own = workload.statements(dialect);
        let mut actions = workload.actions();
        let keeping = settings.ledger.then(|| Keeping::new(Control::COUNT + own.len()));
        if keeping.is_some() {
            own.extend(ledger::statements());
            // What is entered and what is done are one transaction.
            actions.iter_mut().for_each(|action| action.explicit |= action.writes);
        }
        let statements = Arc::new(Statements::new(&begin, own));
        let (names, settings, counted) = (instances.names().into(), settings.clone(), Arc::clone(counted));
        let (servers, actions) = (servers.into(), actions.into());
        let executions = None;
        Self { workload, servers, names, route, statements, settings, actions, counted, keeping, executions }
    }

    /// The same, which record each execution of a query.
    pub(crate) fn recording(self, executions: Option<Arc<Executions>>) -> Self {
        Self { executions, ..self }
    }
}

impl Sessions for Databases {
    fn open(&self, context: ThreadContext) -> Result<Box<dyn Session>, OpenError> {
        let timeout_ns = self.servers.iter().map(|server| server.target.timeout_ns).max().unwrap_or_default();
        let reactor = Reactor::new(context.clock, timeout_ns)?;
        let examples = Rc::new(Examples::default());
        let thread = Rc::new(Thread {
            reactor: Rc::clone(&reactor),
            examples: Rc::clone(&examples),
            servers: Arc::clone(&self.servers),
            names: Arc::clone(&self.names),
            route: self.route,
            statements: Arc::clone(&self.statements),
            settings: self.settings.clone(),
            actions: Arc::clone(&self.actions),
            counted: Arc::clone(&self.counted),
            counts: self.servers.iter().map(|_| RefCell::default()).collect(),
            executions: self.executions.clone(),
        });
        let place = |slot: u32| Place::of(&self.servers, context.first_slot, slot);
        // All connections are there before the load begins: to connect is no part of its first transactions.
        let keeps = self.workload.keeps_connections();
        let connect = |slot: u32| {
            if !keeps {
                return Ok(None);
            }
            let Place { instance, endpoint } = place(slot);
            let server = &self.servers[instance];
            let opened = Connection::open(&reactor, server, endpoint, &self.statements, &self.settings);
            let opened = reactor.block_on_slot(slot, opened);
            opened.map(Some).map_err(|failure| OpenError(cannot_connect(&server.target, slot, &failure)))
        };
        let connections = (0..context.slots).map(connect).collect::<Result<Vec<_>, _>>()?;
        let places: Vec<Place> = (0..context.slots).map(place).collect();
        let connections = RefCell::new(connections);
        let workload = Arc::clone(&self.workload);
        let (keeping, first) = (self.keeping, context.first_slot);
        let spawn: Spawn = Box::new(move |slot, mailbox| {
            let connection = connections.borrow_mut().get_mut(slot as usize).and_then(Option::take);
            let client = keeping.map(|keeping| Client::new(keeping, first + slot));
            let slot = Slot::new(Rc::clone(&thread), places[slot as usize], connection, client);
            Arc::clone(&workload).run(slot, mailbox)
        });
        Ok(Box::new(Slots::new(&reactor, &examples, context.slots, spawn)))
    }

    fn endpoints(&self) -> Vec<String> {
        match (self.route, &*self.servers) {
            // Its slots go where their operations are.
            (Route::BySpace, _) => Vec::new(),
            (Route::BySlot, [only]) => only.target.endpoints.iter().map(ToString::to_string).collect(),
            (Route::BySlot, _) => self.names.to_vec(),
        }
    }

    fn endpoint_kind(&self) -> EndpointKind {
        match self.settings.reads_from {
            Role::Primary if self.servers.len() > 1 => EndpointKind::Instance,
            // Replicas have the same data.
            Role::Primary | Role::Replica => EndpointKind::Endpoint,
        }
    }
}

/// Why there is no connection, and what to do.
pub(crate) fn cannot_connect(target: &Target, before: u32, failure: &Failure) -> String {
    let remedy = match (failure.fault, failure.code.as_ref()) {
        (Fault::Overloaded, _) if before > 0 => {
            "use fewer clients, raise max_connections of the server, or put a pool in front of it"
        }
        (Fault::Overloaded, _) => "raise max_connections of the server, or end other sessions",
        (Fault::Denied, _) if target.dialect == Dialect::Mysql => {
            "check `user`, `password`, and from which hosts the server lets this user in"
        }
        (Fault::Denied, _) => "check `user`, `password` and the server's pg_hba.conf",
        // MySQL has no state of its own for a database that is not there.
        (Fault::Sql, Some(b"3D000" | b"42000")) => "create the database, or check `database`",
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
