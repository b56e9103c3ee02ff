//! Whole runs: a controller's fleet behind a socket, and drivers that do what they should, or do not.

mod bad;
mod ends;
mod good;

use crate::backend::FleetBackends;
use crate::driver;
use crate::fleet::{Fleet, Member, Options, Presence, Visitor};
use crate::link::{FromController, Join, Link, PATH, Trust, join, limits};
use crate::protocol::{Down, Hello, Opened, Order, Part, Second, Up, VERSION};
use crate::run_drivers::Timeouts;
use axum::extract::ws::WebSocketUpgrade;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidemark_control::event::{Event, EventSink, SharedStopRequest, StopRequest};
use tidemark_control::execute::{self, execute};
use tidemark_load::thread_pool::Ending;
use tidemark_measure::record::{Provenance, Run, Stage, State, WorkerCount};
use tidemark_measure::tally::Interval;
use tidemark_measure::wire;
use tidemark_plan::document;
use tidemark_plan::plan::{OnFailure, OnLoss, Plan};
use tidemark_plan::policy::Policy;
use tidemark_plan::yaml::Environment;

/// Long enough for any machine.
const LONG: Duration = Duration::from_secs(60);

/// How long a driver may be away in these tests, nanoseconds.
const LOST_AFTER_NS: u64 = 300_000_000;

/// A controller's fleet.
struct Host {
    fleet: Arc<Fleet>,
    address: SocketAddr,
    timeouts: Timeouts,
    _runtime: tokio::runtime::Runtime,
}

impl Host {
    fn new() -> Self {
        Self::patient(Timeouts::default())
    }

    fn patient(timeouts: Timeouts) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let fleet = Fleet::new(Options {
            version: "1.2.3".into(),
            silent_after: Duration::from_secs(20),
            gone_after: LONG,
            name: "lighthouse".into(),
        });
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let of_router = Arc::clone(&fleet);
        let upgrade = |upgrade: WebSocketUpgrade| async move {
            let visitor = Visitor { address: "here".into(), token: "*".into() };
            let intake = crate::link::Intake::default();
            let serve = |socket| async move { of_router.serve(socket, visitor, &intake, || ()).await };
            limits(upgrade).on_upgrade(serve)
        };
        let router = axum::Router::new().route(PATH, axum::routing::get(upgrade));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { fleet, address, timeouts, _runtime: runtime }
    }

    fn member(&self, name: &str) -> Option<Member> {
        self.fleet.members().into_iter().find(|member| member.hello.name == name)
    }

    fn join(&self, name: &str) -> Link {
        let to = Join { url: format!("http://{}", self.address), token: None, trust: Trust::Any };
        let instance = getrandom::u64().unwrap();
        let hello = Hello {
            protocol: VERSION,
            tidemark: "1.2.3".into(),
            name: name.into(),
            instance,
            ..Hello::default()
        };
        let link = join(to, hello).unwrap();
        let until = Instant::now() + LONG;
        while !self.member(name).is_some_and(|member| member.presence == Presence::Present) {
            assert!(Instant::now() < until, "{name} does not join");
            std::thread::sleep(Duration::from_millis(5));
        }
        link
    }

    /// A driver as it should be.
    fn driver(&self, name: &str) -> Driver {
        self.driver_with(name, Policy::default())
    }

    /// A driver that may touch the files of a directory.
    fn driver_on(&self, name: &str, directory: &std::path::Path) -> Driver {
        self.driver_with(name, Policy { directories: vec![directory.to_owned()], ..Policy::default() })
    }

    fn driver_with(&self, name: &str, policy: Policy) -> Driver {
        let link = self.join(name);
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let scratch = tempfile::tempdir().unwrap();
            let options = driver::Options {
                registry: tidemark_engines::registry(),
                policy: Some(policy),
                observes: true,
                threads: Some(2),
                scratch: scratch.path().to_owned(),
                process: None,
            };
            driver::serve(link, &options, &|| stops.load(Ordering::Relaxed), &mut |_| {}).unwrap();
        });
        Driver { stop, thread: Some(thread) }
    }

    /// A driver that does what `act` does, and what a driver should where that returns false.
    fn fake(&self, name: &str, mut act: impl FnMut(&Link, &Down) -> bool + Send + 'static) -> Driver {
        let link = self.join(name);
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut parts: Vec<Part> = Vec::new();
            while !stops.load(Ordering::Relaxed) {
                let Ok(FromController::Message(down)) = link.incoming.recv_timeout(Duration::from_millis(10))
                else {
                    continue;
                };
                if let Down::Open { parts: own, .. } = &*down {
                    parts.clone_from(own);
                }
                if !act(&link, &down) {
                    polite(&link, &down, &parts);
                }
            }
        });
        Driver { stop, thread: Some(thread) }
    }

    fn execute(&self, plan: &Plan, drivers: &[&str], sink: &mut Follower) -> Result<Run, String> {
        let names = drivers.iter().map(|&name| name.to_owned()).collect();
        let mut backends = FleetBackends::new(Arc::clone(&self.fleet), names);
        backends.timeouts = self.timeouts;
        let options = execute::Options { backends: Arc::new(backends), ..local() };
        let executed = execute(plan, Provenance::default(), &options, None, sink);
        executed.map(|executed| executed.run).map_err(|error| error.to_string())
    }

    fn run(&self, plan: &Plan, drivers: &[&str]) -> Run {
        self.execute(plan, drivers, &mut Follower::default()).unwrap()
    }
}

/// How a plan is run in this process.
fn local() -> execute::Options {
    execute::Options { threads: Some(2), ..execute::Options::local(tidemark_engines::registry()) }
}

/// A thread that is a driver. It is cut off when this is dropped.
struct Driver {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || std::thread::panicking(), "a driver crashed");
        }
    }
}

/// What a driver does whose storage answers 10 operations in the first second, and is done.
fn polite(link: &Link, down: &Down, parts: &[Part]) {
    match *down {
        Down::Prepare { run, .. } => {
            link.send(Up::Prepared { run, targets: vec!["a fake".into()], holdings: Vec::new() });
        }
        Down::Open { run, stage, .. } => ready(link, run, stage, Opened::Ready),
        Down::Start { run, stage, .. } => {
            for part in parts {
                link.second(Second { run, stage, work: part.work, interval: second(0, 10) });
                link.send(Up::Ended { run, stage, work: part.work, ending: Ok(Box::new(ending(*part))) });
            }
            link.send(Up::StageEnded { run, stage, proof: None });
        }
        Down::Order { run, stage, work: None, order: Order::End(_) } => {
            link.send(Up::StageEnded { run, stage, proof: None });
        }
        Down::Order { .. } | Down::Watched { .. } => {}
        Down::Release { run } => link.send(Up::Released { run, nodes: Vec::new(), origin_ns: 0 }),
    }
}

fn ready(link: &Link, run: u64, stage: u32, opened: Opened) {
    link.send(Up::Ready { run, stage, opened, notes: Vec::new(), done: Vec::new() });
}

/// A second of a work of one operation.
fn second(index: u32, ok: u64) -> Vec<u8> {
    let mut interval = Interval::new(index, 1);
    interval.actions[0].ok = ok;
    interval.actions[0].response.record_many(1_000, ok);
    (interval.first_ok_ns, interval.last_ok_ns) = (Some(u64::from(index) * 1_000_000_000), None);
    interval.last_ok_ns = interval.first_ok_ns;
    wire::encode(&interval)
}

fn ending(part: Part) -> Ending {
    let count = WorkerCount { worker: part.first, ok: 10, ..WorkerCount::default() };
    Ending { workers: vec![count], threads: 1, first_sent_ns: Some(7), ..Ending::default() }
}

/// What a test does when something happens; the number is the user's stop request.
type OnEvent = dyn FnMut(&Event<'_>, &SharedStopRequest);

/// Follows a run: does as it is told whenever something happens.
#[derive(Default)]
struct Follower {
    stop_request: Arc<SharedStopRequest>,
    troubles: Vec<String>,
    seconds: HashMap<(usize, usize), u64>,
    told: Option<Box<OnEvent>>,
}

impl Follower {
    fn telling(told: impl FnMut(&Event<'_>, &SharedStopRequest) + 'static) -> Self {
        Self { told: Some(Box::new(told)), ..Self::default() }
    }

    /// The user wants it ended at the first second of load.
    fn wishing(stop_request: StopRequest) -> Self {
        Self::telling(move |event, wishes| {
            if let Event::Second { .. } = event {
                wishes.raise(stop_request);
            }
        })
    }
}

impl EventSink for Follower {
    fn event(&mut self, event: Event<'_>) {
        if let Some(told) = &mut self.told {
            told(&event, &self.stop_request);
        }
        match event {
            Event::Trouble(text) => self.troubles.push(text.to_owned()),
            Event::Second { stage, work, .. } => *self.seconds.entry((stage, work)).or_default() += 1,
            _ => {}
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        self.stop_request.get()
    }
}

/// Stages on COSBench's mock storage, which takes 1 ms.
fn plan(stages: &str) -> Plan {
    let text = format!(
        "<workload name=\"t\"><storage type=\"mock\" config=\"delay=1;size=1000\"/><workflow>{stages}</workflow></workload>"
    );
    let mut plan = document::read(&text, &Environment::process(&tidemark_engines::registry()))
        .unwrap()
        .plan
        .with_seed(7);
    plan.drivers.lost_after_ns = LOST_AFTER_NS;
    // COSBench goes on.
    plan.stages.iter_mut().for_each(|stage| stage.on_failure = OnFailure::Stop);
    plan
}

fn losing(stages: &str, on_loss: OnLoss) -> Plan {
    let mut plan = plan(stages);
    plan.drivers.on_loss = on_loss;
    plan
}

fn stage(name: &str, works: &str) -> String {
    format!("<workstage name=\"{name}\">{works}</workstage>")
}

/// A work that reads; `more` says when it ends.
fn reads(name: &str, workers: u32, more: &str) -> String {
    format!(
        "<work name=\"{name}\" workers=\"{workers}\" {more}>\
         <operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=u(1,9)\"/></work>"
    )
}

fn clean_up() -> String {
    stage("cleanup", "<work type=\"cleanup\" workers=\"4\" config=\"containers=r(1,2);objects=r(1,20)\"/>")
}

fn states(run: &Run) -> Vec<State> {
    run.stages.iter().map(|stage| stage.state).collect()
}

fn done(stage: &Stage) -> u64 {
    stage.works.iter().flat_map(|work| &work.operations).map(|operation| operation.tally.ok).sum()
}
