//! A program beside this one that carries out the works of an engine, as a driver that this process starts for itself.
//!
//! Query engines take minutes to build and may run out of memory, so they are programs of their own. [`Program`] finds such a program,
//! starts it, and commands it through its pipes with the messages of [`protocol`](crate::protocol); [`serve`] is what the program does.
//! Its seconds are merged, its window opened and its end decided where those of this process's own threads are
//! ([`thread_pool::lead`](tidemark_load::thread_pool::lead)), or by a controller, if this process is a driver.
//!
//! A program that ends during a load takes the rest of this load with it, and nothing else: the stage fails with the reason, what was
//! counted is kept, and the next stage starts the program again.

use crate::driver;
use crate::link::client::piped;
use crate::link::pipe::{self, Arrived, Clock, Outlet};
use crate::protocol::{Down, Opened, Order, PackedPlan, Part, Second, Up, VERSION};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// How long a program may take to say what it is.
const HELLO: Duration = Duration::from_secs(60);

/// How long a program may take to end a load that is to stop at once: what is in flight may take three seconds
/// ([`EARLY_DRAIN_NS`](tidemark_load::thread_pool::EARLY_DRAIN_NS)).
const STOPPING: Duration = Duration::from_secs(10);

/// How long a program may take to end by itself when its run is over: it stops its servers and removes their files.
const ENDING: Duration = Duration::from_secs(10);

/// How many of the last lines that a program wrote to its standard error are kept.
const LAST_LINES: usize = 3;

/// The longest of these lines, bytes.
const LINE_MOST: u64 = 400;

/// A driver that runs only as long as the process that started it is never out of its reach.
const NEVER_LOST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The first message to a program.
#[derive(Serialize, Deserialize)]
struct Begin {
    /// Directory for the temporary files of embedded servers.
    scratch: PathBuf,
    /// Generator threads of a work; `None`: one per processor.
    threads: Option<u32>,
}

/// A program's first message: the versions of its protocol and of Tidemark.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Hello {
    protocol: u32,
    tidemark: String,
}

impl Hello {
    fn own() -> Self {
        Self { protocol: VERSION, tidemark: env!("CARGO_PKG_VERSION").into() }
    }
}

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
                threads: setup.threads,
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
    /// What it replies that is not about one work.
    replies: Receiver<Up>,
    shared: Arc<Shared>,
}

/// What the thread that listens to a program shares with those that command it.
struct Shared {
    name: &'static str,
    outlet: Outlet<ChildStdin>,
    child: Mutex<Child>,
    /// Those that follow a work.
    works: Mutex<HashMap<u32, Sender<Event>>>,
    /// Why it is gone, once it is.
    gone: Mutex<Option<String>>,
    last_lines: Mutex<Vec<String>>,
    /// Processes that the kernel had killed for want of memory when it was started.
    killed: Option<u64>,
}

/// What becomes of a work.
enum Event {
    Second(Vec<u8>),
    Ended(Result<Box<Ending>, String>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half changed by a panic: values are only replaced.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Running {
    fn start(program: &Program, begin: &Begin) -> Result<Self, String> {
        let (name, path) = (program.name, program.path()?);
        let failed = |error: &dyn std::fmt::Display| format!("cannot start `{}`: {error}", path.display());
        let mut command = Command::new(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What it writes last is shown: the reason, and not where in its code that is.
        command.env("RUST_BACKTRACE", "0");
        // Whoever interrupts this process from a terminal interrupts the load, and not what carries it out.
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = (input, output, errors) else {
            return Err(failed(&"it has no pipes"));
        };
        let mut output = BufReader::new(output);
        let shared = Arc::new(Shared {
            name,
            outlet: Outlet::new(input),
            child: Mutex::new(child),
            works: Mutex::default(),
            gone: Mutex::default(),
            last_lines: Mutex::default(),
            killed: killed_for_memory(),
        });
        let reading = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || read_lines(errors, &shared))
        };
        // Of a program that has ended already, reading shows it.
        let _ = shared.outlet.message(begin);
        let (greeted, silence) = bounded::<()>(0);
        let watched = Arc::clone(&shared);
        let shown = path.display().to_string();
        std::thread::spawn(move || {
            if silence.recv_timeout(HELLO) == Err(RecvTimeoutError::Timeout) {
                let seconds = HELLO.as_secs();
                lock(&watched.gone).get_or_insert(format!(
                    "`{shown}` did not reply within {seconds} s: is it {name} of this release?"
                ));
                // It has ended, if that fails.
                let _ = lock(&watched.child).kill();
            }
        });
        let hello = pipe::read::<Hello>(&mut output);
        drop(greeted);
        match hello {
            Ok(Some(Arrived::Message(hello))) if hello == Hello::own() => {}
            Ok(Some(Arrived::Message(hello))) => {
                shared.end();
                let own = Hello::own();
                let other = match hello.tidemark == own.tidemark {
                    true => format!("of another build of Tidemark {}", own.tidemark),
                    false => format!("of Tidemark {}, and this is {}", hello.tidemark, own.tidemark),
                };
                return Err(format!(
                    "`{}` is {other}: build both with `make build`, or install both from one release",
                    path.display()
                ));
            }
            Ok(_) => {
                // All that it wrote before it ended.
                let _ = reading.join();
                shared.listened(Ok(()));
                return Err(format!("{} (started as {})", shared.why_gone(), path.display()));
            }
            Err(_) => {
                shared.end();
                return Err(format!(
                    "`{}` is not the {name} of this release: build it with `make build`",
                    path.display()
                ));
            }
        }
        let (sender, replies) = unbounded();
        let listener = Arc::clone(&shared);
        std::thread::spawn(move || {
            let listened = listen(output, &listener, &sender);
            if listened.is_err() {
                listener.end();
            }
            // All that it wrote before it ended.
            let _ = reading.join();
            listener.listened(listened);
        });
        Ok(Self { clock: Clock::new(), replies, shared })
    }

    // A program that no longer reads is gone, which its listener notices.
    fn send(&self, down: &Down) {
        let _ = self.shared.outlet.message(down);
    }

    fn follow(&self, work: u32) -> Receiver<Event> {
        // One second and one ending at a time: whoever follows is asked twenty times a second.
        let (sender, events) = unbounded();
        if !self.is_gone() {
            lock(&self.shared.works).insert(work, sender);
        }
        events
    }

    fn is_gone(&self) -> bool {
        lock(&self.shared.gone).is_some()
    }

    fn why_gone(&self) -> String {
        self.shared.why_gone()
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
        let _ = self.shared.reap(end);
    }
}

impl Shared {
    /// Nothing more comes from the program, and why.
    fn listened(&self, listened: Result<(), String>) {
        let why = match (listened, self.reap(Instant::now() + ENDING)) {
            (Err(why), _) => format!("{why}{}", self.last_words()),
            (Ok(()), Ok(status)) => self.describe(status),
            (Ok(()), Err(error)) => format!("`{}` ended: {error}", self.name),
        };
        lock(&self.gone).get_or_insert(why);
        lock(&self.works).clear();
    }

    /// How it ended, with the evidence that there is.
    fn describe(&self, status: ExitStatus) -> String {
        let how = match (status.signal(), status.code()) {
            (Some(signal), _) => format!("was killed by signal {signal}"),
            (None, Some(code)) => format!("ended with exit code {code}"),
            (None, None) => "ended".to_owned(),
        };
        let said = self.last_words();
        let starved = self.killed.zip(killed_for_memory()).is_some_and(|(before, now)| now > before);
        let memory = match starved && status.signal() == Some(9) {
            true => {
                "; meanwhile, the kernel killed a process because memory ran out: add memory, or reduce the load"
            }
            false => "",
        };
        format!("`{}` {how}{said}{memory}", self.name)
    }

    /// What it wrote to its standard error last, after a colon; empty where it wrote nothing.
    fn last_words(&self) -> String {
        let lines = lock(&self.last_lines);
        if lines.is_empty() { String::new() } else { format!(": {}", lines.join(" ")) }
    }

    fn why_gone(&self) -> String {
        lock(&self.gone).clone().unwrap_or_else(|| format!("`{}` has ended", self.name))
    }

    /// Ends one that is of no use; one that cannot be waited for has ended.
    fn end(&self) {
        let _ = self.reap(Instant::now() + Duration::from_secs(1));
    }

    /// Closes its input and waits for its end, which it is forced to if it has not come by `end`.
    fn reap(&self, end: Instant) -> std::io::Result<ExitStatus> {
        self.outlet.close();
        let mut child = lock(&self.child);
        loop {
            match child.try_wait()? {
                Some(status) => return Ok(status),
                None if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                None => {
                    child.kill()?;
                    return child.wait();
                }
            }
        }
    }
}

/// Passes on what the program sends until it ends. An error says what makes it useless.
fn listen(mut output: BufReader<ChildStdout>, shared: &Shared, replies: &Sender<Up>) -> Result<(), String> {
    let to_work = |work: u32, event: Event| {
        if let Some(sender) = lock(&shared.works).get(&work) {
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
            Ok(Some(Arrived::Message(Up::Refused { reason, .. }))) => return Err(reason),
            Ok(Some(Arrived::Message(up))) => {
                if replies.send(up).is_err() {
                    return Ok(());
                }
            }
            Ok(None) => return Ok(()),
            Err(error) => return Err(format!("`{}` cannot be understood: {error}", shared.name)),
        }
    }
}

/// Keeps the last lines that the program writes to its standard error.
fn read_lines(errors: ChildStderr, shared: &Shared) {
    let mut errors = BufReader::new(errors);
    loop {
        let mut line = Vec::new();
        match errors.by_ref().take(LINE_MOST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line);
        let line: String = line.trim().chars().filter(|letter| !letter.is_control()).collect();
        let mut lines = lock(&shared.last_lines);
        // A remark of Rust's runtime for programmers.
        if !line.is_empty() && !line.starts_with("note: run with `RUST_BACKTRACE") {
            lines.push(line);
        }
        let more = lines.len().saturating_sub(LAST_LINES);
        lines.drain(..more);
    }
}

/// How many processes the kernel has killed for want of memory since it started (`oom_kill` of /proc/vmstat, proc(5)); `None` where that
/// is not counted.
fn killed_for_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
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
        let mut interval = Interval::new(0, self.actions);
        loop {
            match self.events.recv_timeout(LISTEN) {
                Ok(Event::Second(bytes)) => {
                    let unreadable = |error: wire::Damaged| {
                        OpenError(format!(
                            "`{}` sent a malformed second of load: {error}",
                            running.shared.name
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
            if stopped.is_some_and(|at| at.elapsed() > STOPPING) {
                running.shared.end();
                let most = STOPPING.as_secs();
                return Err(OpenError(format!("`{}` did not stop within {most} s", running.shared.name)));
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
    let options = driver::Options {
        registry,
        policy: None,
        threads: begin.threads,
        scratch: begin.scratch,
        // Whoever started it does.
        observes: false,
    };
    // The link ends when the other process does: that is how this one ends.
    let _ = driver::serve(link, &options, &|| false, &mut |_| {});
    Ok(())
}
