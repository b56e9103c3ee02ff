//! A program beside this one that carries out the works of an engine, as a driver that this process starts for itself.
//!
//! Query engines take minutes to build and may run out of memory, so they are programs of their own. [`Program`] finds such a program,
//! starts it ([`process`](crate::process)) and commands it; [`serve`] is what the program does.
//! Its seconds are merged, its window opened and its end decided where those of this process's own threads are
//! ([`thread_pool::lead`](tidemark_load::thread_pool::lead)), or by a controller, if this process is a driver.
//!
//! A program that ends during a load takes the rest of this load with it, and nothing else: the stage fails with the reason, what was
//! counted is kept, and the next stage starts the program again.

use crate::driver::{self, Notice, Options};
use crate::link::client::piped;
use crate::link::pipe::{self, Arrived, Clock, Outlet};
use crate::process::{Begin, ENDING, Hello, Output, Process, kill_below, lock};
use crate::protocol::{Down, Opened, Order, PackedPlan, Part, Second, Up};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidemark_load::engine::OpenError;
use tidemark_load::stop::StopRequest;
use tidemark_load::thread_pool::{Coordinator, Ending};
use tidemark_measure::record::{Note, Proof};
use tidemark_measure::tally::Interval;
use tidemark_measure::wire;
use tidemark_plan::engine::{Carrier, Executor, Helper, Prepared, Setup, StageWorks};
use tidemark_plan::plan::Plan;
use tidemark_plan::registry::Registry;

/// The number of a program's only run.
const RUN: u64 = 1;

/// How often the coordinator of a load is asked for instructions.
const LISTEN: Duration = Duration::from_millis(50);

/// How long a program may take to end a load that is to stop at once: what is in flight may take three seconds
/// ([`EARLY_DRAIN_NS`](tidemark_load::thread_pool::EARLY_DRAIN_NS)).
const STOPPING: Duration = Duration::from_secs(10);

/// A driver that runs only as long as the process that started it is never out of its reach.
const NEVER_LOST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A program that carries out works of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The program's name, as it is installed beside this one: `tidemark-lake`.
    pub name: &'static str,
    /// The engine whose works it carries out.
    pub engine: &'static str,
    /// What it is for, as the subject of a sentence: `Loads on tables`.
    pub purpose: &'static str,
}

impl Program {
    /// Where it is: beside this program, or in `PATH`.
    fn path(&self) -> Result<PathBuf, String> {
        let own = std::env::current_exe().ok();
        let mut directories: Vec<PathBuf> =
            own.as_deref().and_then(Path::parent).map(beside).into_iter().collect();
        let listed = std::env::var_os("PATH").unwrap_or_default();
        // Anybody may have written to the working directory.
        directories.extend(std::env::split_paths(&listed).filter(|path| path.is_absolute()));
        let paths = directories.into_iter().map(|directory| directory.join(self.name));
        paths.into_iter().find(|path| path.is_file()).ok_or_else(|| {
            format!(
                "{} need the program `{}`, which is neither beside this one nor in PATH: build it with `make build`, or install it \
                 from the same release",
                self.purpose, self.name
            )
        })
    }
}

/// Where programs are that belong to one in `directory`. Cargo has those that test in a directory below.
fn beside(directory: &Path) -> PathBuf {
    let parent = directory.parent().filter(|_| directory.ends_with("deps"));
    parent.unwrap_or(directory).to_owned()
}

impl Executor for Program {
    fn find(&self) -> Result<(), String> {
        self.path().map(drop)
    }

    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
        let mut own = plan.clone();
        own.stages.iter_mut().for_each(|stage| stage.works.retain(|work| work.job.engine() == self.engine));
        let mut ready = Ready {
            program: *self,
            begin: Begin {
                scratch: setup.scratch.unwrap_or(Path::new(".")).to_owned(),
                removes_scratch: false,
                threads: setup.threads,
                // Whoever started this process has seen to the one, and does the other.
                policy: None,
                observes: false,
            },
            prepare: Down::Prepare {
                run: RUN,
                driver: "local".into(),
                plan: PackedPlan::new(&own)?,
                elsewhere: Vec::new(),
                // It counts by itself when it opens a stage.
                open_files: 0,
                writer: setup.writer,
                skip_preflight: setup.skip_preflight,
                lost_after_ns: NEVER_LOST.as_nanos() as u64,
            },
            plan: own,
            running: None,
            open: None,
        };
        ready.start()?.into_iter().for_each(|target| (setup.ready)(target));
        Ok(Box::new(ready))
    }
}

/// A program that is ready for a run, or was.
struct Ready {
    program: Program,
    begin: Begin,
    prepare: Down,
    plan: Plan,
    running: Option<Arc<Running>>,
    /// The stage that is open, in the program that has it.
    open: Option<u32>,
}

impl Ready {
    /// Starts the program and lets it prepare the run. Gives a line for each target.
    fn start(&mut self) -> Result<Vec<String>, String> {
        let running = Running::start(&self.program, &self.begin)?;
        running.send(&self.prepare);
        let targets = loop {
            match running.replies.recv() {
                Ok(Up::Prepared { targets, .. }) => break targets,
                Ok(_) => {}
                Err(_) => return Err(running.why_gone()),
            }
        };
        self.running = Some(Arc::new(running));
        Ok(targets)
    }

    /// The program, started again if it has ended.
    fn running(&mut self) -> Result<Arc<Running>, String> {
        if self.running.as_ref().is_none_or(|running| running.is_gone()) {
            self.running = None;
            self.start()?;
        }
        self.running.clone().ok_or_else(|| format!("`{}` was not started", self.program.name))
    }

    /// The works' parts in the program's plan, which has the works of this engine alone.
    fn parts(&self, stage: StageWorks<'_>) -> Option<Vec<Part>> {
        let known = self.plan.stages.get(stage.index)?;
        let mut free: Vec<_> = (0..).zip(&known.works).collect();
        let part = |(work, share): (&&tidemark_plan::plan::Work, &tidemark_load::work::Share)| {
            // A work's seed is drawn from its stage and its place there.
            let place = free.iter().position(|(_, known)| known == work)?;
            Some(Part { work: free.remove(place).0, first: share.first, count: share.count })
        };
        stage.works.iter().zip(stage.shares).map(part).collect()
    }
}

impl Prepared for Ready {
    fn open(&mut self, stage: StageWorks<'_>, notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        self.open = None;
        let running = self.running()?;
        let parts = self.parts(stage).ok_or("its works are none of the plan; please report this as a bug")?;
        let number = stage.index as u32;
        let events: Vec<Receiver<Event>> = parts.iter().map(|part| running.follow(part.work)).collect();
        self.open = Some(number);
        running.send(&Down::Open { run: RUN, stage: number, parts: parts.clone() });
        let (opened, done) = loop {
            match running.replies.recv() {
                Ok(Up::Ready { stage, opened, notes: found, done, .. }) if stage == number => {
                    notes.extend(found);
                    break (opened, done);
                }
                Ok(_) => {}
                Err(_) => return Err(running.why_gone()),
            }
        };
        match opened {
            Opened::Failed(why) => Err(why),
            Opened::Nothing(why) => Ok(parts.iter().map(|_| Carrier::Done(why.clone())).collect()),
            Opened::Ready => {
                let carrier = |((part, events), work): ((&Part, _), &&tidemark_plan::plan::Work)| {
                    if let Some((_, why)) = done.iter().find(|(work, _)| *work == part.work) {
                        return Carrier::Done(why.clone());
                    }
                    Carrier::Helper(Box::new(ProgramShare {
                        running: Arc::clone(&running),
                        stage: number,
                        work: part.work,
                        actions: usize::from(work.load.actions),
                        events,
                    }))
                };
                Ok(parts.iter().zip(events).zip(stage.works).map(carrier).collect())
            }
        }
    }

    fn close(&mut self, _remarks: &[String]) -> Option<Proof> {
        let number = self.open.take()?;
        let running = self.running.as_ref()?;
        loop {
            match running.replies.recv() {
                Ok(Up::StageEnded { stage, proof, .. }) if stage == number => {
                    return proof.map(|proof| *proof);
                }
                Ok(_) => {}
                Err(_) => {
                    let lost = format!("What the load left behind is not known: {}.", running.why_gone());
                    return Some(Proof { direct: true, unchecked: vec![lost], ..Proof::default() });
                }
            }
        }
    }
}

/// A program that was started. Ends when it is dropped.
struct Running {
    clock: Clock,
    process: Arc<Process>,
    /// What it replies that is not about one work.
    replies: Receiver<Up>,
    works: Arc<Works>,
}

/// Those that follow a work.
type Works = Mutex<HashMap<u32, Sender<Event>>>;

/// What becomes of a work.
enum Event {
    Second(Vec<u8>),
    Ended(Result<Box<Ending>, String>),
}

impl Running {
    fn start(program: &Program, begin: &Begin) -> Result<Self, String> {
        let (process, mut output) =
            Process::spawn(Command::new(program.path()?), format!("`{}`", program.name), |_| {})?;
        process.greet(begin, &mut output)?;
        let (sender, replies) = unbounded();
        let works = Arc::new(Works::default());
        let (listener, followed) = (Arc::clone(&process), Arc::clone(&works));
        std::thread::spawn(move || {
            listener.listened(listen(output, &followed, &sender).map_err(|trouble| match trouble {
                Trouble::Refused(reason) => reason,
                Trouble::Unreadable(error) => format!("{} cannot be understood: {error}", listener.what()),
            }));
            lock(&followed).clear();
        });
        Ok(Self { clock: Clock::new(), process, replies, works })
    }

    fn send(&self, down: &Down) {
        self.process.send(down);
    }

    fn follow(&self, work: u32) -> Receiver<Event> {
        // One second and one ending at a time: whoever follows is asked twenty times a second.
        let (sender, events) = unbounded();
        if !self.is_gone() {
            lock(&self.works).insert(work, sender);
        }
        events
    }

    fn is_gone(&self) -> bool {
        self.process.is_gone()
    }

    fn why_gone(&self) -> String {
        self.process.why_gone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let end = Instant::now() + ENDING;
        if !self.is_gone() {
            self.send(&Down::Release { run: RUN });
            while Instant::now() < end {
                match self.replies.recv_timeout(end.saturating_duration_since(Instant::now())) {
                    Ok(Up::Released { .. }) | Err(_) => break,
                    Ok(_) => {}
                }
            }
        }
        let _ = self.process.reap(end);
    }
}

/// What makes a program useless.
enum Trouble {
    Refused(String),
    Unreadable(std::io::Error),
}

/// Passes on what the program sends until it ends.
fn listen(mut output: Output, works: &Works, replies: &Sender<Up>) -> Result<(), Trouble> {
    let to_work = |work: u32, event: Event| {
        if let Some(sender) = lock(works).get(&work) {
            // Whoever no longer follows it has all that is wanted.
            let _ = sender.send(event);
        }
    };
    loop {
        match pipe::read(&mut output) {
            Ok(Some(Arrived::Second(Second { work, interval, .. }))) => {
                to_work(work, Event::Second(interval));
            }
            Ok(Some(Arrived::Message(Up::Ended { work, ending, .. }))) => to_work(work, Event::Ended(ending)),
            Ok(Some(Arrived::Message(Up::Refused { reason, .. }))) => return Err(Trouble::Refused(reason)),
            Ok(Some(Arrived::Message(up))) => {
                if replies.send(up).is_err() {
                    return Ok(());
                }
            }
            Ok(None) => return Ok(()),
            Err(error) => return Err(Trouble::Unreadable(error)),
        }
    }
}

/// A share of a work in a program.
struct ProgramShare {
    running: Arc<Running>,
    stage: u32,
    work: u32,
    actions: usize,
    events: Receiver<Event>,
}

impl ProgramShare {
    fn order(&self, order: Order) {
        self.running.send(&Down::Order { run: RUN, stage: self.stage, work: Some(self.work), order });
    }
}

impl Helper for ProgramShare {
    fn run(&self, coordinator: &mut dyn Coordinator) -> Result<Ending, OpenError> {
        let running = &self.running;
        let at_ns = |at: Instant| running.clock.at(at).max(0) as u64;
        let start = coordinator.start();
        match start {
            Some(at) => running.send(&Down::Start { run: RUN, stage: self.stage, at_ns: at_ns(at) }),
            None => self.order(Order::End(StopRequest::Stop)),
        }
        let (mut ordered, mut window) = (StopRequest::None, None);
        let mut stopped: Option<Instant> = start.is_none().then(Instant::now);
        let mut finishing: Option<Instant> = None;
        let mut interval = Interval::new(0, self.actions);
        loop {
            match self.events.recv_timeout(LISTEN) {
                Ok(Event::Second(bytes)) => {
                    let unreadable = |error: wire::Damaged| {
                        OpenError(format!(
                            "{} sent a malformed second of load: {error}",
                            running.process.what()
                        ))
                    };
                    interval.reset(wire::read(&bytes).map_err(unreadable)?.index());
                    wire::add(&bytes, &mut interval).map_err(unreadable)?;
                    coordinator.interval(&interval);
                }
                Ok(Event::Ended(ending)) => return ending.map(|ending| *ending).map_err(OpenError),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(OpenError(running.why_gone())),
            }
            // One that somebody has stopped does not even finish what it is at.
            let ends =
                stopped.or(finishing.filter(|at| at.elapsed() > STOPPING && running.process.is_stopped()));
            if ends.is_some_and(|at| at.elapsed() > STOPPING) {
                running.process.end();
                let most = STOPPING.as_secs();
                return Err(OpenError(format!("{} did not stop within {most} s", running.process.what())));
            }
            if start.is_none() {
                continue;
            }
            let instruction = coordinator.instruction();
            if let (None, Some(at)) = (window, instruction.window) {
                window = Some(at);
                self.order(Order::Window { at_ns: at_ns(at) });
            }
            if instruction.stop_request > ordered {
                ordered = instruction.stop_request;
                self.order(Order::End(ordered));
                finishing = finishing.or(Some(Instant::now()));
                stopped = (ordered == StopRequest::Stop).then(Instant::now);
            }
        }
    }
}

/// Carries out the works of `registry`'s engines for the process that has started this one, until that ends.
///
/// # Errors
/// One sentence, when nobody commands this process through its standard input and output.
pub fn serve(registry: Registry) -> Result<(), String> {
    // One line, as it ends up in a sentence of the other process.
    std::panic::set_hook(Box::new(|panic| drop(writeln!(std::io::stderr(), "{panic}"))));
    let mut input = std::io::stdin();
    let Ok(Some(Arrived::Message(begin))) = pipe::read::<Begin>(&mut input) else {
        return Err("this program is started by `tidemark`, when a document needs it".into());
    };
    let output = std::io::stdout();
    let failed =
        |error: std::io::Error| format!("cannot speak to the process that started this one: {error}");
    Outlet::new(&output).message(&Hello::own()).map_err(failed)?;
    let link = piped(input, Box::new(output)).map_err(failed)?;
    let Begin { scratch, removes_scratch, threads, policy, observes } = begin;
    let own = removes_scratch.then(|| scratch.clone());
    let options = Options { registry, policy, threads, scratch, observes, process: None };
    let mut notify = |notice| {
        if let Notice::Trouble(text) = notice {
            // The process that started this one shows it.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    };
    // The link ends when the other process does: that is how this one ends.
    let _ = driver::serve(link, &options, &|| false, &mut notify);
    // There is something left only of a run that did not end.
    kill_below(std::process::id());
    // Whoever made it may have been killed.
    own.iter().for_each(|own| drop(std::fs::remove_dir_all(own)));
    Ok(())
}
