//! A driver: carries out its part of a run as its controller orders, and reports every second of it.
//!
//! One thread listens to the controller ([`serve`]); a run has a thread of its own, and every work of a stage another.
//! The controller's orders reach them through [`Orders`], which they read about twenty times a second.

use crate::link::{FromController, Link};
use crate::orders::Orders;
use crate::part::{self, Reporter, Task};
use crate::protocol::{Down, Up};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidemark_control::backend::Backend as _;
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{self, Trust};
use tidemark_control::local::{Local, LocalBackend};
use tidemark_observe::{HostSampler, Observer};
use tidemark_plan::policy::{Access, Policy};
use tidemark_plan::registry::Registry;

/// How often the controller is told how busy this host is.
const SAMPLE_EVERY: Duration = Duration::from_secs(2);

/// How a driver carries out runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The engines that this driver has.
    pub registry: Registry,
    /// What plans may use on this machine; `None`: all that this process may, as they are those of its own user, or were checked by
    /// the process that started this one.
    pub policy: Option<Policy>,
    /// Generator threads of a work; `None`: one per processor.
    pub threads: Option<u32>,
    /// Directory for the temporary files of embedded servers.
    pub scratch: PathBuf,
    /// Whether to observe this node, and this process, during a run.
    pub observes: bool,
}

/// What a driver tells its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The driver has joined the controller of this name.
    Joined(String),
    /// The controller cannot be reached, and why. The driver keeps trying.
    Unreachable(String),
    /// The connection is cut.
    Disconnected,
    /// The connection is back, and nothing was lost.
    Reconnected,
    /// The controller has dropped this driver or was restarted, and why: this driver's part of the run has ended.
    SessionLost(String),
    /// A run starts.
    RunStarted(String),
    /// The run has ended.
    RunEnded,
    /// Something that the user should know.
    Trouble(String),
}

/// The controller refuses this driver, or is gone: why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Carries out the controller's runs until `stop` returns true.
///
/// # Errors
/// When the controller refuses this driver, or has ended and no run goes on.
pub fn serve(
    link: Link,
    options: &Options,
    stop: &dyn Fn() -> bool,
    notify: &mut dyn FnMut(Notice),
) -> Result<(), Refused> {
    let link = Arc::new(link);
    let (notices_in, notices) = unbounded();
    let mut job: Option<Job> = None;
    // Why the controller does not come back, as far as can be told.
    let mut gone: Option<String> = None;
    let (mut sampler, mut next_sample) = (HostSampler::default(), Instant::now());
    loop {
        if Instant::now() >= next_sample {
            next_sample = Instant::now() + SAMPLE_EVERY;
            sampler.sample().into_iter().for_each(|utilization| link.utilization(utilization));
        }
        notices.try_iter().for_each(&mut *notify);
        if stop() {
            link.send(Up::Leaving);
            end(&mut job);
            // A controller that cannot be reached will notice by itself.
            link.settle(Duration::from_secs(1));
            return Ok(());
        }
        if let Some(reason) = gone.take_if(|_| job.as_ref().is_none_or(Job::is_over)) {
            end(&mut job);
            return Err(Refused(reason));
        }
        let incoming = match link.incoming.recv_timeout(Duration::from_millis(100)) {
            Ok(incoming) => incoming,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                end(&mut job);
                return Err(Refused(
                    "the connection to the controller broke down; please report this as a bug".into(),
                ));
            }
        };
        match incoming {
            FromController::Joined { name, .. } => {
                gone = None;
                notify(Notice::Joined(name));
            }
            FromController::Gone(reason) => {
                // A run goes on for as long as its document allows: the controller may come back.
                if gone.replace(reason.clone()).is_none() && job.as_ref().is_some_and(|job| !job.is_over()) {
                    notify(Notice::Unreachable(reason));
                }
            }
            FromController::Unreachable(trouble) => notify(Notice::Unreachable(trouble)),
            FromController::Disconnected => {
                job.iter().for_each(|job| job.orders.away(Some(Instant::now())));
                notify(Notice::Disconnected);
            }
            FromController::Reconnected => {
                gone = None;
                job.iter().for_each(|job| job.orders.away(None));
                notify(Notice::Reconnected);
            }
            FromController::SessionLost(reason) => {
                end(&mut job);
                notify(Notice::SessionLost(reason));
            }
            FromController::Refused(reason) => {
                end(&mut job);
                return Err(Refused(reason));
            }
            FromController::Message(down) => match *down {
                Down::Prepare {
                    run,
                    driver,
                    plan,
                    elsewhere,
                    open_files,
                    writer,
                    skip_preflight,
                    lost_after_ns,
                } => {
                    end(&mut job);
                    let mut plan = match plan.unpack() {
                        Ok(plan) => plan,
                        Err(reason) => {
                            link.send(Up::Refused { run, reason });
                            continue;
                        }
                    };
                    notify(Notice::RunStarted(plan.name.clone()));
                    let orders = Arc::new(Orders::new(Duration::from_nanos(lost_after_ns)));
                    let run_options = execute::Options {
                        threads: options.threads,
                        skip_preflight,
                        scratch: Some(options.scratch.clone()),
                        open_files: Some(open_files),
                        writer: Some(writer),
                        access: options.policy.clone().map_or_else(Access::own, Access::within),
                        ..execute::Options::new(options.registry.clone(), Arc::new(Local), Trust::Network)
                    };
                    let reporter = Reporter { link: Arc::clone(&link), orders: Arc::clone(&orders), run };
                    let unpacked = options.registry.unpack(&mut plan);
                    let unpacked = unpacked.and_then(|()| options.registry.localize(&mut plan, &driver));
                    let task = Task { plan, elsewhere };
                    let allowed = unpacked.and_then(|()| match &options.policy {
                        Some(policy) => policy.check(&task.own(), &options.registry),
                        None => Ok(()),
                    });
                    let refusal = allowed.err();
                    let part = Part { reporter, task, options: run_options, observes: options.observes };
                    job = Some(Job::start(part, refusal, notices_in.clone()));
                }
                down => job.iter().for_each(|job| job.receive(&link, down.clone())),
            },
        }
    }
}

/// Ends the run in progress, if there is one.
fn end(job: &mut Option<Job>) {
    if let Some(job) = job.take() {
        job.orders.give_up();
        drop(job.messages);
        // A thread that panicked has nothing to add.
        let _ = job.thread.join();
    }
}

/// A run in progress.
struct Job {
    run: u64,
    orders: Arc<Orders>,
    messages: Sender<Down>,
    thread: JoinHandle<()>,
}

impl Job {
    fn start(part: Part, refusal: Option<String>, notices: Sender<Notice>) -> Self {
        let (messages, incoming) = unbounded();
        let (run, orders) = (part.reporter.run, Arc::clone(&part.reporter.orders));
        let thread = std::thread::spawn(move || {
            let reporter = &part.reporter;
            match refusal {
                Some(reason) => reporter.send(Up::Refused { run, reason }),
                None => {
                    let carried = catch_unwind(AssertUnwindSafe(|| part.run(&incoming, &notices)));
                    if carried.is_err() {
                        // Otherwise the controller would wait for it.
                        let reason = "its part of the run crashed; please report this as a bug".to_owned();
                        reporter.send(Up::Refused { run, reason });
                    }
                }
            }
            // The receiver is gone when the driver ends.
            let _ = notices.send(Notice::RunEnded);
        });
        Self { run, orders, messages, thread }
    }

    /// Whether nothing of it goes on, or the controller has been away for longer than its document allows.
    fn is_over(&self) -> bool {
        self.thread.is_finished() || self.orders.is_lost()
    }

    /// Takes a message about this run: orders take effect at once, the rest waits its turn.
    fn receive(&self, link: &Link, down: Down) {
        match down {
            Down::Start { run, stage, at_ns } if run == self.run => {
                self.orders.start(stage, link.instant_of(at_ns as i64));
            }
            Down::Order { run, stage, work, order } if run == self.run => {
                self.orders.order(stage, work, order, |at_ns| link.instant_of(at_ns as i64));
            }
            Down::Open { run, stage, .. } if run == self.run => {
                self.orders.open(stage);
                let _ = self.messages.send(down);
            }
            Down::Release { run } if run == self.run => {
                self.orders.stop();
                let _ = self.messages.send(down);
            }
            _ => {}
        }
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
    fn run(&self, incoming: &Receiver<Down>, notices: &Sender<Notice>) {
        let Self { reporter, task, options, observes } = self;
        let run = reporter.run;
        let origin_ns = reporter.link.now_ns().max(0) as u64;
        let start = Instant::now();
        let mut local = LocalBackend::default();
        let mut sink = NoticeSink { orders: &reporter.orders, notices };
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
                Down::Prepare { .. } | Down::Start { .. } | Down::Order { .. } => {}
            }
        }
        let nodes = observer.map(Observer::finish).unwrap_or_default();
        reporter.send(Up::Released { run, nodes, origin_ns });
    }
}

/// Receives the events of the local part of a run and passes on those that the driver's user should see.
struct NoticeSink<'a> {
    orders: &'a Orders,
    notices: &'a Sender<Notice>,
}

impl EventSink for NoticeSink<'_> {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Trouble(text) = event {
            // The receiver is gone when the driver ends.
            let _ = self.notices.send(Notice::Trouble(text.to_owned()));
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        if self.orders.is_given_up() { StopRequest::Stop } else { StopRequest::None }
    }
}
