//! The controller's side of a run: its stages on the drivers instead of in this process.

use crate::Fleet;
use crate::assign::{Assignment, assign, elsewhere, fit, open_files};
use crate::follow::{Placement, Remote};
use crate::holdings::{Held, check_apart, left_behind};
use crate::proofs::{Told, join};
use crate::protocol::{Down, Opened, Order, PackedPlan};
use crate::run_drivers::{Listener, Ready, RunDrivers, Timeouts};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidemark_control::backend::{self, Backend, BackendFactory, StagePlace};
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{ExecuteError, Options};
use tidemark_control::runner::{Carrier, Runner};
use tidemark_measure::observation::{CONTROLLER, Node, of_driver};
use tidemark_measure::record::{Driver, Note, Share, Stage as Record, State};
use tidemark_plan::engine::Engine;
use tidemark_plan::plan::{OnLoss, Plan, Stage};
use tidemark_plan::registry::Registry;

/// Time from the order to start to the start: the order has to reach every driver.
const START_AHEAD: Duration = Duration::from_millis(150);

/// Drivers on which runs are carried out.
pub struct FleetBackends {
    fleet: Arc<Fleet>,
    drivers: Vec<String>,
    pub(crate) timeouts: Timeouts,
}

impl std::fmt::Debug for FleetBackends {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("OnFleet").field(&self.drivers).finish()
    }
}

/// Runs on these drivers of a fleet, in this order: workers are assigned to the first ones first.
pub fn on(fleet: Arc<Fleet>, drivers: Vec<String>) -> Arc<dyn BackendFactory> {
    Arc::new(FleetBackends::new(fleet, drivers))
}

impl FleetBackends {
    pub(crate) fn new(fleet: Arc<Fleet>, drivers: Vec<String>) -> Self {
        Self { fleet, drivers, timeouts: Timeouts::default() }
    }
}

impl BackendFactory for FleetBackends {
    fn backend(&self) -> Box<dyn Backend> {
        let run = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let run_drivers =
            Arc::new(RunDrivers::new(Arc::clone(&self.fleet), run, &self.drivers, self.timeouts));
        Box::new(DriversBackend {
            run_drivers,
            listener: None,
            on_loss: OnLoss::Stop,
            registry: Registry::default(),
            participants: Vec::new(),
            planned: Vec::new(),
            unclean: None,
        })
    }
}

/// One run on drivers.
struct DriversBackend {
    run_drivers: Arc<RunDrivers>,
    listener: Option<Listener>,
    on_loss: OnLoss,
    registry: Registry,
    /// Drivers that have a share of the current stage.
    participants: Vec<usize>,
    /// The shares of the current stage before anything was done.
    planned: Vec<Share>,
    /// Why a driver does not clean up in the current stage, while others do.
    unclean: Option<String>,
}

impl DriversBackend {
    /// Waits until every driver of `of` that is not lost is `done`; false when the user ends the run first. A reachable driver
    /// that takes too long is given up.
    fn wait(
        &self,
        of: &[usize],
        sink: &mut dyn EventSink,
        asked: StopRequest,
        done: impl Fn(&RunDrivers, usize) -> bool,
    ) -> bool {
        let (since, most) = (Instant::now(), self.run_drivers.timeouts.ready);
        loop {
            let missing =
                |driver: &&usize| !self.run_drivers.is_lost(**driver) && !done(&self.run_drivers, **driver);
            let missing: Vec<_> = of.iter().filter(missing).collect();
            if missing.is_empty() {
                return true;
            }
            if sink.stop_request() > asked {
                return false;
            }
            for driver in missing {
                let there = self.run_drivers.reachable_since(*driver);
                if there.is_some_and(|there| there.max(since).elapsed() > most) {
                    let reason =
                        format!("it did not say within {} s whether it was ready", most.as_secs_f64());
                    self.run_drivers.give_up(*driver, &reason);
                }
            }
            self.run_drivers.wait_for_change(Duration::from_millis(50));
        }
    }

    fn living(&self) -> Vec<usize> {
        (0..self.run_drivers.drivers()).filter(|driver| !self.run_drivers.is_lost(*driver)).collect()
    }

    /// Why the stage stops, if a driver was lost and the others do not go on without it.
    fn loss(&self, of: &[usize], on_loss: OnLoss) -> Option<String> {
        let lost = of.iter().find_map(|driver| self.run_drivers.loss_of(*driver))?;
        (on_loss == OnLoss::Stop || of.iter().all(|driver| self.run_drivers.is_lost(*driver))).then_some(lost)
    }

    /// That a lost driver keeps what it has of its own.
    fn left_behind(&self, driver: usize) -> Note {
        let ready = self.run_drivers.prepared(driver).and_then(Result::ok).unwrap_or_default();
        let (_, host) = self.run_drivers.machine(driver);
        left_behind(&self.run_drivers.name(driver), &host, &ready.holdings)
    }
}

impl Backend for DriversBackend {
    fn fit(&self, plan: &mut Plan, registry: &Registry) -> Result<(), ExecuteError> {
        fit(plan, &self.run_drivers.names(), registry).map_err(ExecuteError)
    }

    fn prepare(
        &mut self,
        plan: &Plan,
        options: &Options,
        sink: &mut dyn EventSink,
    ) -> Result<Vec<String>, ExecuteError> {
        self.on_loss = plan.drivers.on_loss;
        self.registry = options.registry.clone();
        let lost_after = Duration::from_nanos(plan.drivers.lost_after_ns);
        self.listener = Some(Listener::start(&self.run_drivers, lost_after).map_err(ExecuteError)?);
        let all: Vec<_> = (0..self.run_drivers.drivers()).collect();
        let names = self.run_drivers.names();
        if names.is_empty() {
            return Err(ExecuteError("there is no driver to run it on".into()));
        }
        let open_files = open_files(plan, &names, &self.registry).map_err(ExecuteError)?;
        let packed = PackedPlan::new(plan).map_err(ExecuteError)?;
        for driver in &all {
            let prepare = Down::Prepare {
                run: self.run_drivers.run,
                driver: names[*driver].clone(),
                plan: packed.clone(),
                elsewhere: elsewhere(plan, &names, *driver, &self.registry).map_err(ExecuteError)?,
                open_files: open_files[*driver],
                writer: self.run_drivers.run as u32 ^ (*driver as u32).wrapping_mul(0x9e37_79b9),
                skip_preflight: options.skip_preflight,
                lost_after_ns: plan.drivers.lost_after_ns,
            };
            self.run_drivers.send(*driver, prepare);
        }
        // One that refuses is enough.
        let done = |run_drivers: &RunDrivers, driver| {
            run_drivers.prepared(driver).is_some() || run_drivers.is_refused()
        };
        if !self.wait(&all, sink, StopRequest::None, done) {
            return Err(ExecuteError("the run was ended before its drivers were ready".into()));
        }
        if let Some(loss) = self.loss(&all, self.on_loss) {
            return Err(ExecuteError(loss));
        }
        let (mut targets, mut held): (Vec<String>, Vec<Held>) = (Vec::new(), Vec::new());
        for driver in self.living() {
            let told = self.run_drivers.prepared(driver).unwrap_or_else(|| Ok(Ready::default()));
            let name = self.run_drivers.name(driver);
            let Ready { targets: own, holdings } =
                told.map_err(|reason| ExecuteError(format!("driver {name}: {reason}")))?;
            for target in own.into_iter().filter(|own| !own.is_empty()) {
                if !targets.contains(&target) {
                    sink.event(Event::Target(&target));
                    targets.push(target);
                }
            }
            let (machine, _) = self.run_drivers.machine(driver);
            held.push(Held { driver: name, machine, holdings });
        }
        check_apart(&held).map_err(ExecuteError)?;
        Ok(targets)
    }

    fn open<'a>(
        &mut self,
        place: StagePlace<'_>,
        stage: &'a Stage,
        notes: &mut Vec<Note>,
        sink: &mut dyn EventSink,
    ) -> backend::Opened<'a> {
        self.planned.clear();
        self.unclean = None;
        // One that was lost before a stage in which it has a part is one that the stage loses, unless a stage has failed
        // for it already. Whatever cleans up is done by those who are left, and by those who can.
        let cleans = cleans(stage);
        let on_loss = if cleans { OnLoss::Continue } else { self.on_loss };
        let counts_losses = on_loss == OnLoss::Stop;
        let all = 0..self.run_drivers.drivers();
        let is_there = |driver| {
            !self.run_drivers.is_lost(driver) || (counts_losses && self.run_drivers.is_lost_uncounted(driver))
        };
        let there: Vec<_> = all.clone().map(is_there).collect();
        let assigned = match assign(stage, &self.run_drivers.names(), &there, &self.registry) {
            Ok(assigned) => assigned,
            Err(reason) => return backend::Opened::Failed(reason),
        };
        let left = assigned.left.iter().map(|driver| self.left_behind(*driver));
        for note in assigned.notes.into_iter().chain(left) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let (index, works) = (place.index as u32, assigned.works);
        let of: Vec<_> = all.filter(|driver| takes_part(&works, *driver)).collect();
        let receivers = self.run_drivers.open(index, &works);
        let shares = (0..).zip(&works).flat_map(|(work, own)| own.iter().map(move |one| one.share(work)));
        self.planned.extend(shares);
        self.participants.clone_from(&of);
        for driver in &of {
            let parts = works.iter().enumerate().flat_map(|(work, assignments)| {
                assignments
                    .iter()
                    .filter(|assignments| assignments.driver == *driver)
                    .map(move |assignments| assignments.part(work as u32))
            });
            self.run_drivers.send(
                *driver,
                Down::Open { run: self.run_drivers.run, stage: index, parts: parts.collect() },
            );
        }
        let asked = sink.stop_request();
        let all_said = self.wait(&of, sink, asked, |run_drivers, driver| run_drivers.ready(driver).is_some());
        let mut nothing: Vec<(usize, String)> = Vec::new();
        let mut trouble = match all_said {
            false => Some("the user ended the run".to_owned()),
            true => self.loss(&of, on_loss),
        };
        for driver in of.iter().filter(|driver| !self.run_drivers.is_lost(**driver)) {
            let Some((opened, own)) = self.run_drivers.ready(*driver) else { continue };
            notes.extend(own.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>());
            match opened {
                Opened::Ready => {}
                Opened::Nothing(reason) => nothing.push((*driver, reason)),
                Opened::Failed(reason) => {
                    let reason = format!("driver {}: {reason}", self.run_drivers.name(*driver));
                    if cleans {
                        nothing.push((*driver, reason.clone()));
                        self.unclean.get_or_insert(reason);
                    } else {
                        trouble.get_or_insert(reason);
                    }
                }
            }
        }
        if let Some(trouble) = trouble {
            of.iter().for_each(|driver| self.run_drivers.count_loss(*driver));
            // Those who still open sessions for a stage that has failed have as long as they need: they are to clean up.
            let request = if all_said { StopRequest::Finish } else { StopRequest::Stop };
            let order = Down::Order {
                run: self.run_drivers.run,
                stage: index,
                work: None,
                order: Order::End(request),
            };
            of.iter().for_each(|driver| self.run_drivers.send(*driver, order.clone()));
            self.wait_for_the_end(&of);
            return backend::Opened::Failed(trouble);
        }
        if !nothing.is_empty()
            && nothing.len() == of.iter().filter(|driver| !self.run_drivers.is_lost(**driver)).count()
        {
            return match self.unclean.take() {
                Some(reason) => backend::Opened::Failed(reason),
                None => backend::Opened::Nothing(nothing.swap_remove(0).1),
            };
        }
        let started = self.run_drivers.start(index, &of, START_AHEAD, place.run_start);
        let runners = stage.works.iter().zip(receivers).zip(works).enumerate().map(
            |(work, ((plan, events), assignments))| {
                let why_not = |assignments: &Assignment| {
                    nothing.iter().find(|(driver, _)| *driver == assignments.driver)
                };
                let idle: Vec<_> = assignments.iter().filter_map(why_not).collect();
                if let ([(_, why), ..], true) = (&idle[..], idle.len() == assignments.len()) {
                    self.run_drivers.close(work as u32, Vec::new());
                    return Runner::new(vec![(work, plan)], Carrier::Nothing(why.clone()));
                }
                let idle = idle.into_iter().map(|(driver, _)| *driver).collect();
                let (stage, started) = (index, started.clone());
                let reports_every_second =
                    self.registry.engine(plan.job.engine()).is_some_and(Engine::reports_every_second);
                let placement = Placement {
                    stage,
                    work: work as u32,
                    assignments,
                    idle,
                    on_loss,
                    reports_every_second,
                    started,
                };
                let run_drivers = Arc::clone(&self.run_drivers);
                let remote = Box::new(Remote { run_drivers, placement, events });
                Runner::new(vec![(work, plan)], Carrier::Remote(remote))
            },
        );
        backend::Opened::Runners(runners.collect())
    }

    fn close(&mut self, stage: &Stage, remarks: Vec<String>, record: &mut Record) {
        let of = std::mem::take(&mut self.participants);
        self.wait_for_the_end(&of);
        let mut unclean = self.unclean.take();
        if self.on_loss == OnLoss::Stop && cleans(stage) {
            unclean = unclean.or_else(|| of.iter().find_map(|driver| self.run_drivers.loss_of(*driver)));
            of.iter().for_each(|driver| self.run_drivers.count_loss(*driver));
        }
        if let (State::Completed, Some(reason)) = (record.state, unclean) {
            (record.state, record.reason) = (State::Failed, reason);
        }
        record.shares = self.run_drivers.take_shares();
        let (mut proofs, mut missing) = (Vec::new(), Vec::new());
        for driver in of {
            let name = self.run_drivers.name(driver);
            match self.run_drivers.proof(driver) {
                Some(proof) => {
                    let (machine, host) = self.run_drivers.machine(driver);
                    proofs.push(Told { driver, name, machine, host, proof });
                }
                None if self.run_drivers.is_lost(driver) => {
                    missing.push(format!("Driver {name} was lost before it reported its checks."));
                }
                None => {}
            }
        }
        record.proof = join(proofs, remarks);
        record.proof.iter_mut().for_each(|proof| proof.unchecked.append(&mut missing));
    }

    fn shares(&self) -> Vec<Share> {
        self.planned.clone()
    }

    fn drivers(&self, run_start: Instant) -> Vec<Driver> {
        (0..self.run_drivers.drivers()).map(|driver| self.run_drivers.record(driver, run_start)).collect()
    }

    fn finish(&mut self, run_start: Instant, nodes: &mut Vec<Node>) {
        let living = self.living();
        living
            .iter()
            .for_each(|driver| self.run_drivers.send(*driver, Down::Release { run: self.run_drivers.run }));
        let until = Instant::now() + self.run_drivers.timeouts.report;
        while living
            .iter()
            .any(|driver| !self.run_drivers.is_lost(*driver) && self.run_drivers.released(*driver).is_none())
            && Instant::now() < until
        {
            self.run_drivers.wait_for_change(Duration::from_millis(50));
        }
        for node in nodes.iter_mut() {
            // What was observed from here is this process's, which puts no load on.
            node.generates = false;
            rename_own(node, CONTROLLER);
        }
        for driver in living {
            if let Some((own, shift_ns)) = self.run_drivers.released(driver) {
                let shift_ns = shift_ns.saturating_sub(self.run_drivers.clock_of(run_start));
                let (_, host) = self.run_drivers.machine(driver);
                add_nodes(nodes, own, shift_ns, (&self.run_drivers.name(driver), &host));
            }
        }
        self.listener = None;
    }
}

impl DriversBackend {
    /// Waits until the stage has ended on every driver. A driver that does not report the end is given up.
    fn wait_for_the_end(&self, of: &[usize]) {
        let until = Instant::now() + self.run_drivers.timeouts.report;
        for driver in of {
            while !self.run_drivers.is_lost(*driver) && !self.run_drivers.stage_ended(*driver) {
                if Instant::now() > until {
                    self.run_drivers.give_up(*driver, "it did not end its stage");
                    break;
                }
                self.run_drivers.wait_for_change(Duration::from_millis(50));
            }
        }
    }
}

/// Whether a stage only cleans up.
fn cleans(stage: &Stage) -> bool {
    stage.works.iter().all(|work| work.kind.cleans())
}

fn takes_part(works: &[Vec<Assignment>], driver: usize) -> bool {
    works.iter().flatten().any(|assignments| assignments.driver == driver)
}

/// Adds what a driver observed of its own node, on the run's clock. Of a node of a known name, which is the same machine,
/// only what is about the driver's own process is new, unless nobody else has seen anything of it.
fn add_nodes(all: &mut Vec<Node>, own: Vec<Node>, shift_ns: i64, (driver, host): (&str, &str)) {
    for mut node in own.into_iter().filter(|node| node.generates) {
        if !host.is_empty() {
            // In a container, the machine has another name than its processes see.
            host.clone_into(&mut node.name);
        }
        // Samples from before the run, while other drivers were getting ready, are dropped.
        let early = node.at_ns.iter().filter(|at| at.checked_add_signed(shift_ns).is_none()).count();
        node.at_ns.drain(..early);
        node.at_ns.iter_mut().for_each(|at| *at = at.saturating_add_signed(shift_ns));
        node.series.iter_mut().for_each(|series| drop(series.values.drain(..early.min(series.values.len()))));
        rename_own(&mut node, &of_driver(driver));
        let source = format!("driver {driver}");
        if let Some(known) = all.iter_mut().find(|known| known.name == node.name) {
            if known.at_ns.is_empty() {
                let gaps = std::mem::take(&mut known.gaps).into_iter().chain(node.gaps).collect();
                *known = Node { source, gaps, ..node };
                continue;
            }
            known.generates = true;
            let own = node.series.into_iter().filter(|series| series.subject == of_driver(driver));
            own.for_each(|series| known.add_series(&node.at_ns, series));
            continue;
        }
        all.push(Node { source, ..node });
    }
}

/// What a node's observer saw of its own process is that of this one.
fn rename_own(node: &mut Node, subject: &str) {
    for series in node.series.iter_mut().filter(|series| series.is_own()) {
        subject.clone_into(&mut series.subject);
    }
}

/// A driver as it was when the run began.
pub(crate) fn record(member: &crate::fleet::Member) -> Driver {
    Driver {
        name: member.hello.name.clone(),
        host: member.hello.host.clone(),
        clock_offset_ns: member.clock_offset_ns,
        clock_error_ns: member.clock_error_ns,
        lost: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::observation::{Kind, OWN, Series};

    fn node(name: &str, cores: f32) -> Node {
        let series = |kind, subject: &str, metric: &str, value| Series {
            kind,
            subject: subject.into(),
            metric: metric.into(),
            values: vec![value; 3],
        };
        Node {
            name: name.into(),
            generates: true,
            at_ns: vec![1_000_000_000, 2_000_000_000, 3_000_000_000],
            series: vec![series(Kind::Cpu, "all", "busy", 0.9), series(Kind::Process, OWN, "cpu", cores)],
            ..Node::default()
        }
    }

    #[test]
    fn every_driver_s_own_process_is_in_the_record_wherever_it_runs() {
        let mut all = vec![Node { generates: false, ..node("here", 0.01) }];
        rename_own(&mut all[0], CONTROLLER);
        add_nodes(&mut all, vec![node("here", 0.6)], 200_000_000, ("a", ""));
        add_nodes(&mut all, vec![node("pod-1", 0.7)], -400_000_000, ("b", "here"));
        add_nodes(&mut all, vec![node("there", 0.8)], 0, ("c", "there"));
        let cores = |node: &Node, subject: &str| {
            node.mean(node.find(Kind::Process, subject, "cpu")?, 0, u64::MAX)
                .map(|cores| (cores * 100.0).round())
        };
        assert_eq!(all.len(), 2);
        let here = ["controller", "driver a", "driver b"].map(|subject| cores(&all[0], subject));
        assert_eq!(here, [Some(1.0), Some(60.0), Some(70.0)]);
        assert_eq!(cores(&all[1], "driver c"), Some(80.0));
        assert!(all.iter().all(|node| node.generates && node.find(Kind::Process, OWN, "cpu").is_none()));
        assert_eq!(all[0].all(Kind::Cpu, "busy").count(), 1, "the machine is there once");

        // A machine of which nobody else has seen anything has what its drivers saw, and what is said of it.
        let gap = "no observer is on it.".to_owned();
        let mut all = vec![Node { name: "away".into(), gaps: vec![gap.clone()], ..Node::default() }];
        add_nodes(&mut all, vec![node("pod-2", 0.6)], 0, ("a", "away"));
        add_nodes(&mut all, vec![node("pod-3", 0.7)], 0, ("b", "away"));
        let [away] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((away.source.as_str(), &away.gaps), ("driver a", &vec![gap]));
        assert_eq!(away.all(Kind::Cpu, "busy").count(), 1);
        assert_eq!(["driver a", "driver b"].map(|subject| cores(away, subject)), [Some(60.0), Some(70.0)]);
    }
}
