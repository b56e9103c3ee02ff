//! A run's part in a thread of this process.

use crate::driver::{Event, Notice, Options};
use crate::link::Link;
use crate::orders::Orders;
use crate::part::{self, Reporter, Task};
use crate::protocol::{Down, Up};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_control::backend::Backend as _;
use tidemark_control::event::{self, EventSink, StopRequest};
use tidemark_control::execute::{self, Trust};
use tidemark_control::local::{Local, LocalBackend};
use tidemark_observe::Observer;
use tidemark_plan::policy::Access;

/// The thread of a run. Without its messages, it ends.
pub(crate) struct RunThread {
    run: u64,
    orders: Arc<Orders>,
    messages: Option<Sender<Down>>,
}

impl RunThread {
    /// Starts the run of a [`Down::Prepare`]. `None`: it is another message, or the run is refused.
    pub(crate) fn start(
        prepare: Down,
        link: &Arc<Link>,
        options: &Options,
        events: &Sender<Event>,
    ) -> Option<Self> {
        let Down::Prepare { run, driver, plan, elsewhere, open_files, writer, skip_preflight, lost_after_ns } =
            prepare
        else {
            return None;
        };
        let orders = Arc::new(Orders::new(Duration::from_nanos(lost_after_ns)));
        let reporter = Reporter { link: Arc::clone(link), orders: Arc::clone(&orders), run };
        let mut plan = match plan.unpack() {
            Ok(plan) => plan,
            Err(reason) => {
                reporter.send(Up::Refused { run, reason });
                return None;
            }
        };
        let run_options = execute::Options {
            threads: options.threads,
            skip_preflight,
            scratch: Some(options.scratch.clone()),
            open_files: Some(open_files),
            writer: Some(writer),
            access: options.policy.clone().map_or_else(Access::own, Access::within),
            ..execute::Options::new(options.registry.clone(), Arc::new(Local), Trust::Network)
        };
        let unpacked = options.registry.unpack(&mut plan);
        let unpacked = unpacked.and_then(|()| options.registry.localize(&mut plan, &driver));
        let task = Task { plan, elsewhere };
        let allowed = unpacked.and_then(|()| match &options.policy {
            Some(policy) => policy.check(&task.own(), &options.registry),
            None => Ok(()),
        });
        let part = Part { reporter, task, options: run_options, observes: options.observes };
        let (messages, incoming) = unbounded();
        let events = events.clone();
        std::thread::spawn(move || {
            part.carry_out(allowed.err(), &incoming, &events);
            // The receiver is gone when the driver ends.
            let _ = events.send(Event::Ended(run));
        });
        Some(Self { run, orders, messages: Some(messages) })
    }

    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Takes a message about this run: orders take effect at once, the rest waits its turn.
    pub(crate) fn receive(&self, link: &Link, down: Down) {
        match down {
            Down::Start { run, stage, at_ns } if run == self.run => {
                self.orders.start(stage, link.instant_of(at_ns as i64));
            }
            Down::Order { run, stage, work, order } if run == self.run => {
                self.orders.order(stage, work, order, |at_ns| link.instant_of(at_ns as i64));
            }
            Down::Watched { run } if run == self.run => self.orders.away(Some(Instant::now())),
            Down::Open { run, stage, .. } if run == self.run => {
                self.orders.open(stage);
                self.pass_on(down);
            }
            Down::Release { run } if run == self.run => {
                self.orders.release();
                self.pass_on(down);
            }
            _ => {}
        }
    }

    fn pass_on(&self, down: Down) {
        // A thread that has ended has reported that.
        let _ = self.messages.as_ref().map(|messages| messages.send(down));
    }

    /// Notes since when the controller cannot be reached; `None`: it can.
    pub(crate) fn away(&self, since: Option<Instant>) {
        self.orders.away(since);
    }

    /// The run is void: it ends, and reports nothing more.
    pub(crate) fn give_up(&mut self) {
        self.orders.give_up();
        self.messages = None;
    }
}

/// This driver's part of a run.
struct Part {
    reporter: Reporter,
    task: Task,
    options: execute::Options,
    observes: bool,
}

impl Part {
    fn carry_out(&self, refusal: Option<String>, incoming: &Receiver<Down>, events: &Sender<Event>) {
        let run = self.reporter.run;
        let reason = match refusal {
            Some(reason) => reason,
            None => match catch_unwind(AssertUnwindSafe(|| self.run(incoming, events))) {
                Ok(()) => return,
                // Otherwise the controller would wait for it.
                Err(_) => "its part of the run crashed; please report this as a bug".to_owned(),
            },
        };
        self.reporter.send(Up::Refused { run, reason });
    }

    fn run(&self, incoming: &Receiver<Down>, events: &Sender<Event>) {
        let Self { reporter, task, options, observes } = self;
        let run = reporter.run;
        let origin_ns = reporter.link.now_ns().max(0) as u64;
        let start = Instant::now();
        let mut local = LocalBackend::default();
        let mut sink = NoticeSink { orders: &reporter.orders, events };
        match local.prepare(&task.own(), options, &mut sink) {
            Ok(targets) => reporter.send(Up::Prepared { run, targets, holdings: local.holdings() }),
            Err(error) => return reporter.send(Up::Refused { run, reason: error.to_string() }),
        }
        let observer = observes.then(|| Observer::start(&tidemark_observe::Options::default(), start));
        // The sender is dropped when the run is given up.
        for down in incoming {
            match down {
                Down::Open { stage, parts, .. } => {
                    part::carry_out(reporter, &mut local, task, stage, &parts, options, start, &mut sink);
                }
                Down::Release { .. } => break,
                Down::Prepare { .. } | Down::Start { .. } | Down::Order { .. } | Down::Watched { .. } => {}
            }
        }
        let nodes = observer.map(Observer::finish).unwrap_or_default();
        // What it has started ends, and its files go: only then is the run over here.
        drop(local);
        reporter.send(Up::Released { run, nodes, origin_ns });
    }
}

/// Receives the events of the local part of a run and passes on those that the driver's user should see.
struct NoticeSink<'a> {
    orders: &'a Orders,
    events: &'a Sender<Event>,
}

impl EventSink for NoticeSink<'_> {
    fn event(&mut self, event: event::Event<'_>) {
        if let event::Event::Trouble(text) = event {
            // The receiver is gone when the driver ends.
            let _ = self.events.send(Event::Notice(Notice::Trouble(text.to_owned())));
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        if self.orders.is_over() { StopRequest::Stop } else { StopRequest::None }
    }
}
