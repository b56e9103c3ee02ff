//! A driver: carries out its part of a run as its controller orders, and reports every second of it.
//!
//! One thread listens to the controller ([`serve`]). A run is carried out in a process of its own, which is killed if it does not
//! end in time, or, in that process, by a thread. Every work of a stage has another, and reads the controller's orders
//! ([`Orders`](crate::orders::Orders)) about twenty times a second. The next run begins when the one before has ended.

use crate::link::{FromController, Link};
use crate::orders::LOSS_GRACE;
use crate::protocol::{Down, Up};
use crate::run_process::RunProcess;
use crate::run_thread::RunThread;
use crossbeam_channel::{Receiver, Sender, select, unbounded};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_observe::HostSampler;
use tidemark_plan::policy::Policy;
use tidemark_plan::registry::Registry;

/// How often the controller is told how busy this host is.
const SAMPLE_EVERY: Duration = Duration::from_secs(2);

/// How long a run may take to end when nobody waits for it any more.
pub const ENDING: Duration = Duration::from_secs(15);

/// How often the driver polls what sends it no events.
const LOOK_EVERY: Duration = Duration::from_millis(100);

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
    /// Whether to observe this node, and the process that carries out a run, meanwhile.
    pub observes: bool,
    /// What starts the process of a run, which calls [`helper::serve`](crate::helper::serve); `None`: this process carries runs out
    /// itself, and cannot end one that does not end.
    pub process: Option<fn() -> Command>,
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

/// What the threads of a run report to the driver.
pub(crate) enum Event {
    /// What its user should know.
    Notice(Notice),
    /// All of the run with this number has ended.
    Ended(u64),
}

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
    let (events_in, events) = unbounded();
    let mut runs = Runs::new(&link, options, events_in);
    let (mut sampler, mut next_sample) = (HostSampler::default(), Instant::now());
    loop {
        if Instant::now() >= next_sample {
            next_sample = Instant::now() + SAMPLE_EVERY;
            sampler.sample().into_iter().for_each(|utilization| link.utilization(utilization));
        }
        if stop() {
            link.send(Up::Leaving);
            runs.wind_up(&events, notify);
            // A controller that cannot be reached will notice by itself.
            link.settle(Duration::from_secs(1));
            return Ok(());
        }
        if let Some(reason) = runs.take_gone() {
            runs.wind_up(&events, notify);
            return Err(Refused(reason));
        }
        runs.look(notify);
        let incoming = select! {
            recv(events) -> event => {
                event.into_iter().for_each(|event| runs.take(event, notify));
                continue;
            }
            recv(link.incoming) -> incoming => incoming,
            default(LOOK_EVERY) => continue,
        };
        let refusal = match incoming {
            Ok(FromController::Refused(reason)) => reason,
            Ok(incoming) => {
                runs.receive(incoming, notify);
                continue;
            }
            Err(_) => "the connection to the controller broke down; please report this as a bug".into(),
        };
        runs.wind_up(&events, notify);
        return Err(Refused(refusal));
    }
}

/// The runs of a driver: one at a time, and what is left of the one before.
struct Runs<'a> {
    link: &'a Arc<Link>,
    options: &'a Options,
    events: Sender<Event>,
    current: Option<Run>,
    ending: Option<Ending>,
    /// What is to be prepared when the run before has ended.
    next: Option<(u64, Down)>,
    /// Why the controller does not come back, as far as is known.
    gone: Option<String>,
    /// Since when it cannot be reached.
    away: Option<Instant>,
    /// How long the current run goes on without it.
    lost_after: Duration,
}

/// Where a run is carried out.
enum Run {
    Thread(RunThread),
    Process(RunProcess),
}

/// A run for which nobody waits any more.
struct Ending {
    run: Run,
    since: Instant,
    /// Whether its session is void, so that it reports nothing itself.
    void: bool,
    killed: bool,
}

impl Run {
    fn number(&self) -> u64 {
        match self {
            Self::Thread(thread) => thread.run(),
            Self::Process(process) => process.run(),
        }
    }

    fn receive(&self, link: &Link, down: Down) {
        match self {
            Self::Thread(thread) => thread.receive(link, down),
            Self::Process(process) => process.receive(link, down),
        }
    }

    fn away(&mut self, since: Option<Instant>) {
        match self {
            Self::Thread(thread) => thread.away(since),
            Self::Process(process) => process.away(since),
        }
    }

    fn give_up(&mut self) {
        match self {
            Self::Thread(thread) => thread.give_up(),
            Self::Process(process) => process.give_up(),
        }
    }
}

impl<'a> Runs<'a> {
    fn new(link: &'a Arc<Link>, options: &'a Options, events: Sender<Event>) -> Self {
        Self {
            link,
            options,
            events,
            current: None,
            ending: None,
            next: None,
            gone: None,
            away: None,
            lost_after: Duration::ZERO,
        }
    }

    /// Why the controller does not come back, once no run waits for it any more.
    fn take_gone(&mut self) -> Option<String> {
        let is_lost = self.away.is_some_and(|since| since.elapsed() > self.lost_after + LOSS_GRACE);
        self.gone.take_if(|_| self.current.is_none() || is_lost)
    }

    /// Notes since when the controller cannot be reached; `None`: it can.
    fn away(&mut self, since: Option<Instant>) {
        self.away = since;
        self.current.iter_mut().for_each(|run| run.away(since));
        if since.is_none() {
            self.gone = None;
        }
    }

    fn receive(&mut self, incoming: FromController, notify: &mut dyn FnMut(Notice)) {
        match incoming {
            FromController::Joined { name, .. } => {
                self.away(None);
                notify(Notice::Joined(name));
            }
            FromController::Gone(reason) => {
                // A run goes on for as long as its document allows: the controller may come back.
                if self.gone.replace(reason.clone()).is_none() && self.current.is_some() {
                    notify(Notice::Unreachable(reason));
                }
            }
            FromController::Unreachable(trouble) => notify(Notice::Unreachable(trouble)),
            FromController::Disconnected => {
                self.away(Some(Instant::now()));
                notify(Notice::Disconnected);
            }
            FromController::Reconnected => {
                self.away(None);
                notify(Notice::Reconnected);
            }
            FromController::SessionLost(reason) => {
                self.give_up();
                notify(Notice::SessionLost(reason));
            }
            FromController::Message(down) => self.obey(*down, notify),
            // Whoever listens ends then.
            FromController::Refused(_) => {}
        }
    }

    fn obey(&mut self, down: Down, notify: &mut dyn FnMut(Notice)) {
        match down {
            Down::Prepare { run, .. } => {
                self.give_up();
                self.next = Some((run, down));
                self.begin(notify);
            }
            Down::Release { run } => {
                if self.next.take_if(|(next, _)| *next == run).is_some() {
                    self.link.send(released(run, self.link));
                }
                if let Some(current) = self.current.take_if(|current| current.number() == run) {
                    current.receive(self.link, down);
                    self.end(current, false);
                }
            }
            down => self.current.iter().for_each(|current| current.receive(self.link, down.clone())),
        }
    }

    /// Begins the next run, unless the one before is still ending.
    fn begin(&mut self, notify: &mut dyn FnMut(Notice)) {
        if self.ending.is_some() {
            return;
        }
        let Some((run, prepare)) = self.next.take() else { return };
        if let Down::Prepare { plan, lost_after_ns, .. } = &prepare {
            self.lost_after = Duration::from_nanos(*lost_after_ns);
            notify(Notice::RunStarted(plan.name()));
        }
        let (link, options, events) = (self.link, self.options, &self.events);
        self.current = match options.process {
            Some(command) => {
                Some(Run::Process(RunProcess::start(run, prepare, command(), link, options, events)))
            }
            None => RunThread::start(prepare, link, options, events).map(Run::Thread),
        };
    }

    /// Nobody waits for any run.
    fn give_up(&mut self) {
        self.next = None;
        self.ending.iter_mut().for_each(|ending| {
            ending.void = true;
            ending.run.give_up();
        });
        if let Some(mut run) = self.current.take() {
            run.give_up();
            self.end(run, true);
        }
    }

    fn end(&mut self, run: Run, void: bool) {
        self.ending = Some(Ending { run, since: Instant::now(), void, killed: false });
    }

    /// Sees to what lets time pass.
    fn look(&mut self, notify: &mut dyn FnMut(Notice)) {
        if let Some(Run::Process(process)) = &mut self.current {
            process.watch();
            if process.is_overdue() {
                kill(process, notify);
            }
        }
        let Some(ending) = &mut self.ending else { return };
        if let Run::Process(process) = &mut ending.run
            && !ending.killed
            && ending.since.elapsed() > ENDING
        {
            ending.killed = true;
            kill(process, notify);
        }
    }

    fn take(&mut self, event: Event, notify: &mut dyn FnMut(Notice)) {
        let run = match event {
            Event::Notice(notice) => return notify(notice),
            Event::Ended(run) => run,
        };
        notify(Notice::RunEnded);
        if let Some(ending) = self.ending.take_if(|ending| ending.run.number() == run) {
            if ending.void {
                // The controller may know that there was something left of it.
                self.link.send(released(run, self.link));
            }
            self.begin(notify);
        } else {
            self.current.take_if(|current| current.number() == run);
        }
    }

    /// Ends whatever goes on, and waits for it for a limited time.
    fn wind_up(&mut self, events: &Receiver<Event>, notify: &mut dyn FnMut(Notice)) {
        self.give_up();
        // What was killed has ended soon. A thread cannot be killed: it ends with this process.
        let killed = self.options.process.map_or(Duration::ZERO, |_| Duration::from_secs(5));
        let until = Instant::now() + ENDING + killed;
        while self.ending.is_some() && Instant::now() < until {
            self.look(notify);
            if let Ok(event) = events.recv_timeout(LOOK_EVERY) {
                self.take(event, notify);
            }
        }
    }
}

/// Kills the process of a run that did not end in time.
fn kill(process: &mut RunProcess, notify: &mut dyn FnMut(Notice)) {
    let seconds = ENDING.as_secs();
    process.kill(&format!("it did not end within {seconds} s, so its process was killed"));
    notify(Notice::Trouble(format!("the run did not end within {seconds} s, so its process was killed")));
}

/// A run of which nothing was measured is over.
fn released(run: u64, link: &Link) -> Up {
    Up::Released { run, nodes: Vec::new(), origin_ns: link.now_ns().max(0) as u64 }
}
