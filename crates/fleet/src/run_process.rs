//! A run's part in a process of its own, which its driver starts, commands, and ends.
//!
//! The driver keeps the connection to the controller and its name there, and passes messages on: what it forwards is what the
//! [`helper`](crate::helper) understands, with times on the clock that both processes share. So a run that does not end, needs too
//! much memory or crashes takes nothing else with it, and the next run begins with nothing that it left.

use crate::driver::{ENDING, Event, Notice, Options};
use crate::link::Link;
use crate::link::pipe::{self, Arrived, Clock};
use crate::process::{Begin, Output, Process, lock};
use crate::protocol::{Down, Order, Up};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidemark_load::stop::StopRequest;

/// How often [`Down::Watched`] is sent to the process: its driver and the controller are there.
const WATCHED_EVERY: Duration = Duration::from_millis(500);

/// The process of a run. Without its commands, it ends.
pub(crate) struct RunProcess {
    run: u64,
    clock: Clock,
    commands: Option<Sender<Down>>,
    shared: Arc<Shared>,
    /// When [`Down::Watched`] was last sent to it; `None` while the controller cannot be reached.
    watched: Option<Instant>,
}

/// What the driver shares with the threads that speak to the process.
struct Shared {
    run: u64,
    link: Arc<Link>,
    process: Mutex<Option<Arc<Process>>>,
    stage: Mutex<Option<OpenStage>>,
    /// Nobody waits for its reports any more.
    void: AtomicBool,
    /// Why it was killed, or is to be as soon as it has started.
    killed: Mutex<Option<String>>,
}

/// The stage that the process is at.
struct OpenStage {
    number: u32,
    /// How the controller wants it to end, and since when.
    end_request: Option<(StopRequest, Instant)>,
}

impl OpenStage {
    /// The controller wants the stage to end.
    fn request_end(&mut self, request: StopRequest, now: Instant) {
        if self.end_request.is_none_or(|(known, _)| known < request) {
            self.end_request = Some((request, now));
        }
    }

    /// Whether it should have ended. A load that finishes has limits of its own, unless somebody has stopped its process (`SIGSTOP`).
    fn is_overdue(&self, now: Instant, is_stopped: impl FnOnce() -> bool) -> bool {
        self.end_request.is_some_and(|(request, since)| {
            now.saturating_duration_since(since) > ENDING && (request == StopRequest::Stop || is_stopped())
        })
    }
}

impl RunProcess {
    /// Starts a run in a process that `command` starts.
    pub(crate) fn start(
        run: u64,
        prepare: Down,
        command: Command,
        link: &Arc<Link>,
        options: &Options,
        events: &Sender<Event>,
    ) -> Self {
        let begin = Begin {
            scratch: options.scratch.clone(),
            removes_scratch: false,
            threads: options.threads,
            policy: options.policy.clone(),
            observes: options.observes,
        };
        let (commands, incoming) = unbounded();
        // Whoever sends never waits: a process that does not read is killed like any that does not end.
        let _ = commands.send(prepare);
        let shared = Arc::new(Shared {
            run,
            link: Arc::clone(link),
            process: Mutex::default(),
            stage: Mutex::default(),
            void: AtomicBool::new(false),
            killed: Mutex::default(),
        });
        let (carried, events) = (Arc::clone(&shared), events.clone());
        std::thread::spawn(move || {
            carried.carry_out(command, &begin, incoming, &events);
            // The receiver is gone when the driver ends.
            let _ = events.send(Event::Ended(run));
        });
        Self { run, clock: Clock::new(), commands: Some(commands), shared, watched: Some(Instant::now()) }
    }

    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Passes a message about this run on.
    pub(crate) fn receive(&self, link: &Link, down: Down) {
        match &down {
            Down::Open { stage, .. } => {
                *lock(&self.shared.stage) = Some(OpenStage { number: *stage, end_request: None });
            }
            Down::Order { stage, order: Order::End(request), .. } => {
                let mut open = lock(&self.shared.stage);
                open.iter_mut()
                    .filter(|open| open.number == *stage)
                    .for_each(|open| open.request_end(*request, Instant::now()));
            }
            _ => {}
        }
        let there = |at_ns: u64| self.clock.at(link.instant_of(at_ns as i64)).max(0) as u64;
        self.command(match down {
            Down::Start { run, stage, at_ns } => Down::Start { run, stage, at_ns: there(at_ns) },
            Down::Order { run, stage, work, order: Order::Window { at_ns } } => {
                Down::Order { run, stage, work, order: Order::Window { at_ns: there(at_ns) } }
            }
            other => other,
        });
    }

    fn command(&self, down: Down) {
        // A process that has ended has reported that.
        let _ = self.commands.as_ref().map(|commands| commands.send(down));
    }

    /// Notes whether the controller can be reached.
    pub(crate) fn away(&mut self, since: Option<Instant>) {
        self.watched = since.is_none().then(Instant::now);
        if since.is_none() {
            self.command(Down::Watched { run: self.run });
        }
    }

    /// Sends [`Down::Watched`] to the process while the controller can be reached. Called again and again.
    pub(crate) fn watch(&mut self) {
        if self.watched.is_some_and(|last| last.elapsed() >= WATCHED_EVERY) {
            self.watched = Some(Instant::now());
            self.command(Down::Watched { run: self.run });
        }
    }

    /// Whether the process exceeds the time to end its stage, and has not been killed for that yet.
    pub(crate) fn is_overdue(&self) -> bool {
        let is_stopped = || lock(&self.shared.process).as_ref().is_some_and(|process| process.is_stopped());
        let overdue =
            lock(&self.shared.stage).as_ref().is_some_and(|open| open.is_overdue(Instant::now(), is_stopped));
        overdue && lock(&self.shared.killed).is_none()
    }

    /// The run is void: the process ends, and what it still reports is for nobody.
    pub(crate) fn give_up(&mut self) {
        self.shared.void.store(true, Ordering::Relaxed);
        self.commands = None;
    }

    /// Kills the process with all that it has started, for a reason: a clause.
    pub(crate) fn kill(&mut self, why: &str) {
        self.commands = None;
        *lock(&self.shared.killed) = Some(why.to_owned());
        if let Some(process) = &*lock(&self.shared.process) {
            process.kill();
        }
    }
}

impl Shared {
    fn carry_out(&self, command: Command, begin: &Begin, commands: Receiver<Down>, events: &Sender<Event>) {
        let remarks = events.clone();
        let remark = move |line: &str| {
            let _ = remarks.send(Event::Notice(Notice::Trouble(line.to_owned())));
        };
        let (process, mut output) = match Process::spawn(command, "the process of this run".into(), remark) {
            Ok(started) => started,
            Err(reason) => return self.refuse(reason),
        };
        *lock(&self.process) = Some(Arc::clone(&process));
        if lock(&self.killed).is_some() {
            process.kill();
        }
        if let Err(reason) = process.greet(begin, &mut output) {
            return self.refuse(reason);
        }
        let commanded = Arc::clone(&process);
        std::thread::spawn(move || {
            commands.iter().for_each(|down| commanded.send(&down));
            commanded.close();
        });
        let (reported, listened) = self.listen(&process, output);
        process.listened(listened);
        if !reported {
            self.refuse(process.why_gone());
        }
    }

    fn refuse(&self, reason: String) {
        let reason = lock(&self.killed).clone().unwrap_or(reason);
        self.report(Up::Refused { run: self.run, reason });
    }

    fn report(&self, up: Up) {
        if !self.void.load(Ordering::Relaxed) {
            self.link.send(up);
        }
    }

    /// Passes on what the process reports until it ends, and returns whether it has reported the end of the run.
    fn listen(&self, process: &Process, mut output: Output) -> (bool, Result<(), String>) {
        let clock = Clock::new();
        let mut reported = false;
        loop {
            match pipe::read::<Up>(&mut output) {
                // It ends, and may report that as well: without what it has observed.
                Ok(Some(_)) if reported => {}
                Ok(Some(Arrived::Second(second))) => {
                    if !self.void.load(Ordering::Relaxed) {
                        self.link.second(second);
                    }
                }
                Ok(Some(Arrived::Message(up))) => {
                    if let Up::StageEnded { stage, .. } = &up {
                        lock(&self.stage).take_if(|open| open.number == *stage);
                    }
                    let ends = matches!(up, Up::Released { .. } | Up::Refused { .. });
                    self.report(match up {
                        Up::Released { run, nodes, origin_ns } => {
                            let began = clock.instant_of(origin_ns as i64).elapsed();
                            let origin_ns = self.link.now_ns() - began.as_nanos() as i64;
                            Up::Released { run, nodes, origin_ns: origin_ns.max(0) as u64 }
                        }
                        other => other,
                    });
                    if ends {
                        // It has done all that it was started for, and ends when its input does.
                        reported = true;
                        process.close();
                    }
                }
                Ok(None) => return (reported, Ok(())),
                Err(error) => return (reported, Err(format!("its messages cannot be understood: {error}"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::client::piped;
    use crate::link::pipe::Outlet;
    use crate::process::Hello;
    use tidemark_measure::observation::Node;

    /// A program that sends all this, whatever it is sent, and ends.
    fn program(sends: &std::path::Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "cat \"$0\""]).arg(sends);
        command
    }

    /// What a run of such a program reports to the controller.
    fn reported(sends: &[Up]) -> Vec<Up> {
        let (mut frames, file) = (Vec::new(), tempfile::NamedTempFile::new().unwrap());
        let outlet = Outlet::new(&mut frames);
        outlet.message(&Hello::own()).unwrap();
        sends.iter().for_each(|up| outlet.message(up).unwrap());
        std::fs::write(file.path(), frames).unwrap();
        let (mut controller, driver) = std::io::pipe().unwrap();
        let link = Arc::new(piped(std::io::empty(), Box::new(driver)).unwrap());
        let (events, ended) = unbounded();
        let options = Options {
            registry: tidemark_engines::registry(),
            policy: None,
            threads: None,
            scratch: std::env::temp_dir(),
            observes: false,
            process: None,
        };
        let release = Down::Release { run: 7 };
        let run = RunProcess::start(7, release, program(file.path()), &link, &options, &events);
        while !matches!(ended.recv().unwrap(), Event::Ended(7)) {}
        // Nobody has the link any more: what the controller receives has an end.
        drop((run, link, events));
        let mut reported = Vec::new();
        while let Some(arrived) = pipe::read::<Up>(&mut controller).unwrap() {
            match arrived {
                Arrived::Message(up) => reported.push(up),
                Arrived::Second(second) => panic!("{second:?}"),
            }
        }
        reported
    }

    #[test]
    fn a_stage_has_a_limited_time_to_end() {
        let (begun, [soon, late]) = (Instant::now(), [ENDING / 2, ENDING * 2]);
        let mut stage = OpenStage { number: 0, end_request: None };
        assert!(!stage.is_overdue(begun + late, || true), "no end is requested");
        stage.request_end(StopRequest::Finish, begun);
        assert!(!stage.is_overdue(begun + soon, || true));
        assert!(stage.is_overdue(begun + late, || true));
        assert!(!stage.is_overdue(begun + late, || false), "it has limits of its own");
        stage.request_end(StopRequest::Stop, begun + late);
        stage.request_end(StopRequest::Stop, begun + late + late);
        assert!(
            !stage.is_overdue(begun + late + soon, || false),
            "the limit begins with the stronger request"
        );
        assert!(stage.is_overdue(begun + late + late, || false), "a second request gives no more time");
    }

    #[test]
    fn a_run_is_released_once_with_what_was_observed() {
        let released = |nodes| Up::Released { run: 7, nodes, origin_ns: 1 };
        let node = Node { name: "n1".into(), ..Node::default() };
        // Its input ends with the first report, upon which it reports once more, and has no nodes left.
        let reported = reported(&[released(vec![node.clone()]), released(Vec::new())]);
        let [Up::Released { run: 7, nodes, .. }] = &reported[..] else { panic!("{reported:?}") };
        assert_eq!(nodes, &[node]);
    }

    #[test]
    fn a_process_that_ends_without_a_report_is_refused() {
        let reported = reported(&[]);
        assert!(matches!(&reported[..], [Up::Refused { run: 7, .. }]), "{reported:?}");
    }
}
