//! A driver's part of one stage: opens the sessions, starts when the controller says, reports every second.

use crate::link::Link;
use crate::orders::Orders;
use crate::protocol::{Opened, Part, Second, Up};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tidemark_control::backend::{self, Backend as _, StagePlace};
use tidemark_control::event::EventSink;
use tidemark_control::execute::Options;
use tidemark_control::local::LocalBackend;
use tidemark_control::provenance;
use tidemark_control::runner::Runner;
use tidemark_load::open_files;
use tidemark_load::thread_pool::{Coordinator, Instruction};
use tidemark_load::work::Share;
use tidemark_measure::record::Note;
use tidemark_measure::tally::Interval;
use tidemark_measure::wire;
use tidemark_plan::plan::{Plan, Stage};
use tidemark_plan::registry::Registry;

/// How the parts of a run report to the controller; silent once the run is void.
#[derive(Clone)]
pub(crate) struct Reporter {
    pub(crate) link: Arc<Link>,
    pub(crate) orders: Arc<Orders>,
    pub(crate) run: u64,
}

impl Reporter {
    pub(crate) fn send(&self, up: Up) {
        if !self.orders.is_given_up() {
            self.link.send(up);
        }
    }

    fn second(&self, stage: u32, work: u32, interval: &Interval) {
        if !self.orders.is_given_up() {
            let interval = wire::encode(interval);
            self.link.second(Second { run: self.run, stage, work, interval });
        }
    }
}

/// A driver's part of a run.
pub(crate) struct Task {
    pub(crate) plan: Plan,
    /// Stage and work of whatever is on other machines.
    pub(crate) elsewhere: Vec<(u32, u32)>,
}

impl Task {
    /// The plan without whatever is on other machines.
    pub(crate) fn own(&self) -> Plan {
        let mut plan = self.plan.clone();
        for (number, stage) in (0..).zip(&mut plan.stages) {
            let mut works = 0..;
            stage
                .works
                .retain(|_| works.next().is_some_and(|work| !self.elsewhere.contains(&(number, work))));
        }
        plan
    }

    /// The stage reduced to the works that have parts here.
    fn share(&self, number: u32, parts: &[Part]) -> Option<Stage> {
        let whole = self.plan.stages.get(number as usize)?;
        let own = |part: &Part| {
            let work = whole.works.get(part.work as usize)?;
            (!self.elsewhere.contains(&(number, part.work))).then(|| work.clone())
        };
        let works = parts.iter().map(own).collect::<Option<_>>()?;
        Some(Stage { works, ..whole.clone() })
    }
}

/// Where the works of a stage wait for each other before the load starts.
struct StartBarrier<'a> {
    reporter: &'a Reporter,
    stage: u32,
    runners: usize,
    open: AtomicUsize,
    reported: AtomicBool,
    notes: Mutex<Vec<Note>>,
    done: Mutex<Vec<(u32, String)>>,
}

impl StartBarrier<'_> {
    /// A runner's sessions are open; the last runner tells the controller.
    fn opened(&self) {
        if self.open.fetch_add(1, Ordering::AcqRel) + 1 == self.runners {
            self.send(Opened::Ready);
        }
    }

    /// Tells the controller, once.
    fn send(&self, opened: Opened) {
        if !self.reported.swap(true, Ordering::AcqRel) {
            let notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
            let done = std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner));
            self.reporter.send(Up::Ready { run: self.reporter.run, stage: self.stage, opened, notes, done });
        }
    }
}

/// Carries out `parts` of a stage from its opening to its end.
#[expect(
    clippy::too_many_arguments,
    reason = "all of them are what a run is made of, and this is called once"
)]
pub(crate) fn carry_out(
    reporter: &Reporter,
    local: &mut LocalBackend,
    task: &Task,
    stage: u32,
    parts: &[Part],
    options: &Options,
    run_start: Instant,
    sink: &mut dyn EventSink,
) {
    let run = reporter.run;
    let threads = options.threads.unwrap_or_else(provenance::cores);
    let mut notes = Vec::new();
    let mine = task.share(stage, parts);
    let shares: Vec<Share> =
        parts.iter().map(|part| Share { first: part.first, count: part.count }).collect();
    let place = StagePlace { index: stage as usize, shares: Some(&shares), run_start };
    let opened = match &mine {
        Some(mine) => match allow_files(mine, parts, threads, &options.registry) {
            Ok(()) => local.open(place, mine, &mut notes, sink),
            Err(refusal) => backend::Opened::Failed(refusal.to_string()),
        },
        None => backend::Opened::Failed("the controller named a work that this driver does not have".into()),
    };
    let done = match &opened {
        backend::Opened::Runners(runners) => {
            runners.iter().flat_map(|runner| nothing(runner, parts)).collect()
        }
        backend::Opened::Nothing(_) | backend::Opened::Failed(_) => Vec::new(),
    };
    let barrier = |runners| StartBarrier {
        reporter,
        stage,
        runners,
        open: AtomicUsize::new(0),
        reported: AtomicBool::new(false),
        notes: Mutex::new(notes),
        done: Mutex::new(done),
    };
    match opened {
        backend::Opened::Nothing(why) => barrier(0).send(Opened::Nothing(why)),
        backend::Opened::Failed(why) => barrier(0).send(Opened::Failed(why)),
        backend::Opened::Runners(runners) => {
            let barrier = barrier(runners.len());
            run_works(&barrier, &runners, parts, threads.max(1));
        }
    }
    let proof = local.proof(&[]).map(Box::new);
    reporter.send(Up::StageEnded { run, stage, proof });
}

/// Those of a runner's works that have been done already, by their places in the stage, and why.
fn nothing(runner: &Runner<'_>, parts: &[Part]) -> Vec<(u32, String)> {
    let Some(why) = runner.nothing() else { return Vec::new() };
    let parts = runner.works().iter().filter_map(|(place, _)| parts.get(*place));
    parts.map(|part| (part.work, why.to_owned())).collect()
}

/// Whether this process may have the files open that its part of a stage needs: more than it was prepared for, if other
/// drivers were lost.
fn allow_files(
    stage: &Stage,
    parts: &[Part],
    threads: u32,
    registry: &Registry,
) -> Result<(), open_files::TooFew> {
    let mut works = stage.works.clone();
    for (work, part) in works.iter_mut().zip(parts) {
        let (_, slots) = work.load.slots(Share { first: part.first, count: part.count });
        work.load.connections = work.load.connections.map(|_| slots);
        work.load.workers = part.count;
    }
    open_files::check(registry.open_files(&works), threads, open_files::limit())
}

fn run_works(barrier: &StartBarrier<'_>, runners: &[Runner<'_>], parts: &[Part], threads: u32) {
    std::thread::scope(|scope| {
        for runner in runners {
            // A stage's works are in the order of the parts.
            let places = runner.works().iter().map(|(place, _)| *place);
            let own: Vec<Part> = places.filter_map(|place| parts.get(place).copied()).collect();
            scope.spawn(move || run_work(barrier, runner, &own, threads));
        }
    });
}

fn run_work(barrier: &StartBarrier<'_>, runner: &Runner<'_>, parts: &[Part], threads: u32) {
    let StartBarrier { reporter, stage, .. } = *barrier;
    let mut coordinators: Vec<_> =
        parts.iter().map(|part| RemoteCoordinator { barrier, work: part.work }).collect();
    let mut coordinators: Vec<&mut dyn Coordinator> =
        coordinators.iter_mut().map(|coordinator| coordinator as &mut dyn Coordinator).collect();
    let shares: Vec<_> = parts.iter().map(|part| Share { first: part.first, count: part.count }).collect();
    let endings = runner.run_shares(&shares, threads, &mut coordinators);
    for (part, ending) in parts.iter().zip(endings) {
        let ending = ending.map(Box::new).map_err(|error| error.to_string());
        if let Err(reason) = &ending
            && !barrier.reported.load(Ordering::Acquire)
        {
            // The other works would wait for a start that never comes.
            barrier.send(Opened::Failed(reason.clone()));
            reporter.orders.stop();
        }
        reporter.send(Up::Ended { run: reporter.run, stage, work: part.work, ending });
    }
}

/// Lets the controller lead the load of a work.
struct RemoteCoordinator<'a> {
    barrier: &'a StartBarrier<'a>,
    work: u32,
}

impl Coordinator for RemoteCoordinator<'_> {
    fn start(&mut self) -> Option<Instant> {
        self.barrier.opened();
        self.barrier.reporter.orders.wait_for_start()
    }

    fn interval(&mut self, interval: &Interval) {
        self.barrier.reporter.second(self.barrier.stage, self.work, interval);
    }

    fn instruction(&mut self) -> Instruction {
        self.barrier.reporter.orders.instruction(self.work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_elsewhere_is_neither_prepared_nor_done() {
        let work = "<work name=\"a\" workers=\"2\" runtime=\"9\">\
            <operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=u(1,9)\"/></work>";
        let text = format!(
            "<workload name=\"t\"><storage type=\"mock\"/><workflow><workstage name=\"main\">{work}{work}</workstage></workflow></workload>"
        );
        let plan = tidemark_plan::document::read(
            &text,
            &tidemark_plan::yaml::Environment::process(&tidemark_engines::registry()),
        )
        .unwrap()
        .plan;
        let task = Task { plan, elsewhere: vec![(0, 1), (9, 9)] };
        assert_eq!(task.own().stages[0].works, task.plan.stages[0].works[..1]);
        let share = |stage, work| task.share(stage, &[Part { work, first: 0, count: 1 }]);
        assert!(share(0, 0).is_some_and(|stage| stage.works.len() == 1));
        assert!(share(0, 1).is_none() && share(0, 2).is_none() && share(1, 0).is_none());
    }
}
