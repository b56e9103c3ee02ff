//! A driver: carries out its part of a run for its controller, and reports every second of it.
//!
//! One thread listens to the controller ([`serve`]); a run has a thread of its own, and every work of a stage another.
//! The controller's orders reach them through [`Orders`], which they poll some twenty times a second.

use crate::health::Pulse;
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
use tidemark_control::execute;
use tidemark_control::local::LocalBackend;
use tidemark_observe::Observer;
use tidemark_plan::policy::Policy;

/// How often the host's health is sent to the controller.
const HEALTH_EVERY: Duration = Duration::from_secs(2);

/// How a driver works.
#[derive(Clone, Debug)]
pub struct Options {
    /// What plans may touch on this machine.
    pub policy: Policy,
    /// Generator threads of a work; `None`: one per processor.
    pub threads: Option<u32>,
    /// Directory in which temporary files of embedded servers lie.
    pub scratch: PathBuf,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The driver has joined the controller of this name.
    Joined(String),
    /// The controller cannot be reached, and why.
    Trying(String),
    /// The connection is cut.
    Away,
    /// It is back, and nothing is lost.
    Back,
    /// The controller has given this driver up, or was started anew, and why: its part of the run has ended.
    Void(String),
    /// A run begins.
    Begun(String),
    /// The run has ended.
    Ended,
    /// A problem for the user.
    Trouble(String),
}

/// The controller does not accept this driver: why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Follows the controller's orders until `stop` returns true.
///
/// # Errors
/// When the controller does not accept this driver.
pub fn serve(
    link: Link,
    options: &Options,
    stop: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Happened),
) -> Result<(), Refused> {
    let link = Arc::new(link);
    let (news_in, news) = unbounded();
    let mut job: Option<Job> = None;
    let (mut pulse, mut next_look) = (Pulse::default(), Instant::now());
    loop {
        if Instant::now() >= next_look {
            next_look = Instant::now() + HEALTH_EVERY;
            pulse.look().into_iter().for_each(|health| link.health(health));
        }
        news.try_iter().for_each(&mut *tell);
        if stop() {
            link.say(Up::Leaving);
            end(&mut job);
            // A controller that is not reachable will notice by itself.
            link.settle(Duration::from_secs(1));
            return Ok(());
        }
        let heard = match link.heard.recv_timeout(Duration::from_millis(100)) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                end(&mut job);
                return Err(Refused(
                    "the connection to the controller failed; please report this as a bug".into(),
                ));
            }
        };
        match heard {
            FromController::Joined { name, .. } => tell(Happened::Joined(name)),
            FromController::Trying(trouble) => tell(Happened::Trying(trouble)),
            FromController::Away => {
                job.iter().for_each(|job| job.orders.away(Some(Instant::now())));
                tell(Happened::Away);
            }
            FromController::Back => {
                job.iter().for_each(|job| job.orders.away(None));
                tell(Happened::Back);
            }
            FromController::Void(reason) => {
                end(&mut job);
                tell(Happened::Void(reason));
            }
            FromController::Refused(reason) => {
                end(&mut job);
                return Err(Refused(reason));
            }
            FromController::Message(down) => match *down {
                Down::Prepare { run, plan, elsewhere, writer, skip_preflight, lost_after_ns } => {
                    end(&mut job);
                    tell(Happened::Begun(plan.name.clone()));
                    let orders = Arc::new(Orders::new(Duration::from_nanos(lost_after_ns)));
                    let run_options = execute::Options {
                        threads: options.threads,
                        skip_preflight,
                        scratch: Some(options.scratch.clone()),
                        writer: Some(writer),
                        ..execute::Options::default()
                    };
                    let reporter = Reporter { link: Arc::clone(&link), orders: Arc::clone(&orders), run };
                    let task = Task { plan: *plan, elsewhere };
                    let refusal = options.policy.check(&task.own()).err();
                    job = Some(Job::start(reporter, task, run_options, refusal, news_in.clone()));
                }
                down => job.iter().for_each(|job| job.hear(&link, down.clone())),
            },
        }
    }
}

/// Ends the run in progress: the controller no longer needs it.
fn end(job: &mut Option<Job>) {
    if let Some(job) = job.take() {
        job.orders.give_up();
        drop(job.downs);
        // A thread that crashed has nothing more to report either.
        let _ = job.thread.join();
    }
}

/// A run in progress.
struct Job {
    run: u64,
    orders: Arc<Orders>,
    downs: Sender<Down>,
    thread: JoinHandle<()>,
}

impl Job {
    fn start(
        reporter: Reporter,
        task: Task,
        options: execute::Options,
        refusal: Option<String>,
        news: Sender<Happened>,
    ) -> Self {
        let (downs, heard) = unbounded();
        let (run, orders) = (reporter.run, Arc::clone(&reporter.orders));
        let thread = std::thread::spawn(move || {
            match refusal {
                Some(reason) => reporter.say(Up::Refused { run, reason }),
                None => {
                    let carried = catch_unwind(AssertUnwindSafe(|| {
                        carry_out(&reporter, &task, &options, &heard, &news);
                    }));
                    if carried.is_err() {
                        // Or the controller would wait for it.
                        let reason = "its part of the run crashed; please report this as a bug".to_owned();
                        reporter.say(Up::Refused { run, reason });
                    }
                }
            }
            // The receiver is dropped when the driver ends.
            let _ = news.send(Happened::Ended);
        });
        Self { run, orders, downs, thread }
    }

    /// Takes the controller's messages on this run: orders at once, the rest in order.
    fn hear(&self, link: &Link, down: Down) {
        match down {
            Down::Start { run, stage, at_ns } if run == self.run => {
                self.orders.start(stage, link.instant_of(at_ns as i64));
            }
            Down::Order { run, stage, work, order } if run == self.run => {
                self.orders.order(stage, work, order, |at_ns| link.instant_of(at_ns as i64));
            }
            Down::Open { run, stage, .. } if run == self.run => {
                self.orders.open(stage);
                let _ = self.downs.send(down);
            }
            Down::Release { run } if run == self.run => {
                self.orders.stop();
                let _ = self.downs.send(down);
            }
            _ => {}
        }
    }
}

fn carry_out(
    reporter: &Reporter,
    task: &Task,
    options: &execute::Options,
    heard: &Receiver<Down>,
    news: &Sender<Happened>,
) {
    let run = reporter.run;
    let origin_ns = reporter.link.now_ns().max(0) as u64;
    let start = Instant::now();
    let mut local = LocalBackend::default();
    let mut quiet = Quiet { orders: &reporter.orders, news };
    match local.prepare(&task.own(), options, &mut quiet) {
        Ok(targets) => reporter.say(Up::Prepared { run, targets }),
        Err(error) => return reporter.say(Up::Refused { run, reason: error.to_string() }),
    }
    let observer = Observer::start(&tidemark_observe::Options::default(), start);
    // The sender goes when the run is given up.
    for down in heard {
        match down {
            Down::Open { stage, parts, .. } => {
                part::carry_out(
                    reporter,
                    &mut local,
                    task,
                    stage,
                    &parts,
                    options.threads,
                    start,
                    &mut quiet,
                );
            }
            Down::Release { .. } => break,
            Down::Prepare { .. } | Down::Start { .. } | Down::Order { .. } => {}
        }
    }
    reporter.say(Up::Released { run, nodes: observer.finish(), origin_ns });
}

/// Receives the events of the local part of a run, and passes on problems for the driver's user.
struct Quiet<'a> {
    orders: &'a Orders,
    news: &'a Sender<Happened>,
}

impl EventSink for Quiet<'_> {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Trouble(text) = event {
            // The receiver is dropped when the driver ends.
            let _ = self.news.send(Happened::Trouble(text.to_owned()));
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        if self.orders.is_given_up() { StopRequest::Stop } else { StopRequest::None }
    }
}
