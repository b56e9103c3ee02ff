//! The controller's side of a run: its stages on the drivers instead of in this process.

use crate::Fleet;
use crate::assign::{Assignment, assign, elsewhere, open_files};
use crate::follow::{Placement, Remote};
use crate::protocol::{Down, Opened, Order};
use crate::run_drivers::{Listener, RunDrivers, Timeouts};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidemark_control::backend::{self, Backend, BackendFactory, StagePlace};
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{ExecuteError, Options};
use tidemark_control::runner::{Carrier, Runner};
use tidemark_measure::observation::Node;
use tidemark_measure::record::{Driver, Note, Proof, Run, Stage as Record};
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
            run_start: None,
            participants: Vec::new(),
        })
    }
}

/// One run on drivers.
struct DriversBackend {
    run_drivers: Arc<RunDrivers>,
    listener: Option<Listener>,
    on_loss: OnLoss,
    registry: Registry,
    run_start: Option<Instant>,
    /// Drivers that have a share of the current stage.
    participants: Vec<usize>,
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

    /// Why the stage stops, if a driver was lost and the document does not say to continue without it.
    fn loss(&self, of: &[usize]) -> Option<String> {
        let lost = of.iter().find_map(|driver| self.run_drivers.loss_of(*driver))?;
        (self.on_loss == OnLoss::Stop || of.iter().all(|driver| self.run_drivers.is_lost(*driver)))
            .then_some(lost)
    }
}

impl Backend for DriversBackend {
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
        for driver in &all {
            let prepare = Down::Prepare {
                run: self.run_drivers.run,
                plan: Box::new(plan.clone()),
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
        if let Some(loss) = self.loss(&all) {
            return Err(ExecuteError(loss));
        }
        let mut targets: Vec<String> = Vec::new();
        for driver in self.living() {
            let told = self.run_drivers.prepared(driver).unwrap_or_else(|| Ok(Vec::new()));
            let own = told.map_err(|reason| {
                ExecuteError(format!("driver {}: {reason}", self.run_drivers.name(driver)))
            })?;
            for target in own.into_iter().filter(|own| !own.is_empty()) {
                if !targets.contains(&target) {
                    sink.event(Event::Target(&target));
                    targets.push(target);
                }
            }
        }
        Ok(targets)
    }

    fn open<'a>(
        &mut self,
        place: StagePlace,
        stage: &'a Stage,
        notes: &mut Vec<Note>,
        sink: &mut dyn EventSink,
    ) -> backend::Opened<'a> {
        self.run_start = Some(place.run_start);
        // One that was lost before a stage in which it has a part is one that the stage loses, unless a stage has failed
        // for it already. Whatever cleans up is done by those who are left.
        let cleans = stage.works.iter().all(|work| work.kind.cleans());
        let counts_losses = self.on_loss == OnLoss::Stop && !cleans;
        let all = 0..self.run_drivers.drivers();
        let is_there = |driver| {
            !self.run_drivers.is_lost(driver) || (counts_losses && self.run_drivers.is_lost_uncounted(driver))
        };
        let there: Vec<_> = all.clone().map(is_there).collect();
        let assigned = match assign(stage, &self.run_drivers.names(), &there, &self.registry) {
            Ok(assigned) => assigned,
            Err(reason) => return backend::Opened::Failed(reason),
        };
        for note in assigned.notes {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let (index, works) = (place.index as u32, assigned.works);
        let of: Vec<_> = all.filter(|driver| takes_part(&works, *driver)).collect();
        let receivers = self.run_drivers.open(index, &works);
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
            true => self.loss(&of),
        };
        for driver in of.iter().filter(|driver| !self.run_drivers.is_lost(**driver)) {
            let Some((opened, own)) = self.run_drivers.ready(*driver) else { continue };
            notes.extend(own.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>());
            match opened {
                Opened::Ready => {}
                Opened::Nothing(reason) => nothing.push((*driver, reason)),
                Opened::Failed(reason) => {
                    trouble.get_or_insert(format!("driver {}: {reason}", self.run_drivers.name(*driver)));
                }
            }
        }
        if let Some(trouble) = trouble {
            of.iter().for_each(|driver| self.run_drivers.count_loss(*driver));
            let order = Down::Order {
                run: self.run_drivers.run,
                stage: index,
                work: None,
                order: Order::End(StopRequest::Stop),
            };
            of.iter().for_each(|driver| self.run_drivers.send(*driver, order.clone()));
            self.wait_for_the_end(&of);
            return backend::Opened::Failed(trouble);
        }
        if !nothing.is_empty()
            && nothing.len() == of.iter().filter(|driver| !self.run_drivers.is_lost(**driver)).count()
        {
            return backend::Opened::Nothing(nothing.swap_remove(0).1);
        }
        let (on_loss, started) =
            (self.on_loss, self.run_drivers.start(index, &of, START_AHEAD, place.run_start));
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

    fn close(&mut self, _stage: &Stage, remarks: Vec<String>, record: &mut Record) {
        let of = std::mem::take(&mut self.participants);
        self.wait_for_the_end(&of);
        record.shares = self.run_drivers.take_shares();
        let (mut proofs, mut missing) = (Vec::new(), Vec::new());
        for driver in of {
            let name = self.run_drivers.name(driver);
            match self.run_drivers.proof(driver) {
                Some(proof) => proofs.push((name, proof)),
                None if self.run_drivers.is_lost(driver) => {
                    missing.push(format!("Driver {name} was lost before it reported its checks."));
                }
                None => {}
            }
        }
        record.proof = join(proofs, remarks);
        record.proof.iter_mut().for_each(|proof| proof.unchecked.append(&mut missing));
    }

    fn finish(&mut self, run: &mut Run) {
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
        let start = self.run_start.unwrap_or_else(Instant::now);
        run.drivers =
            (0..self.run_drivers.drivers()).map(|driver| self.run_drivers.record(driver, start)).collect();
        run.nodes.iter_mut().for_each(|node| node.generates = false);
        for driver in living {
            if let Some((nodes, shift_ns)) = self.run_drivers.released(driver) {
                add_nodes(
                    run,
                    nodes,
                    shift_ns.saturating_sub(self.run_drivers.clock_of(start)),
                    &self.run_drivers.name(driver),
                );
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

fn takes_part(works: &[Vec<Assignment>], driver: usize) -> bool {
    works.iter().flatten().any(|assignments| assignments.driver == driver)
}

/// Joins the proofs of several drivers: each statement has its driver's name.
fn join(mut proofs: Vec<(String, Proof)>, remarks: Vec<String>) -> Option<Proof> {
    if proofs.len() < 2 {
        let (_, mut proof) = proofs.pop()?;
        proof.setup.extend(remarks);
        return Some(proof);
    }
    let mut all = Proof { direct: true, setup: remarks, ..Proof::default() };
    for (name, proof) in proofs {
        all.cache = proof.cache;
        all.direct &= proof.direct;
        all.setup.extend(proof.setup.into_iter().map(|text| format!("{name}: {text}")));
        all.unchecked.extend(proof.unchecked.into_iter().map(|text| format!("{name}: {text}")));
        all.devices.extend(proof.devices.into_iter().map(|mut device| {
            device.device = format!("{name}:{}", device.device);
            device
        }));
    }
    Some(all)
}

/// Adds what a driver observed of its own node, on the run's clock. A node of a known name is the same machine.
fn add_nodes(run: &mut Run, nodes: Vec<Node>, shift_ns: i64, driver: &str) {
    for mut node in nodes.into_iter().filter(|node| node.generates) {
        if let Some(known) = run.nodes.iter_mut().find(|known| known.name == node.name) {
            known.generates = true;
            continue;
        }
        // Samples from before the run, while other drivers were getting ready, are dropped.
        let early = node.at_ns.iter().filter(|at| at.checked_add_signed(shift_ns).is_none()).count();
        node.at_ns.drain(..early);
        node.at_ns.iter_mut().for_each(|at| *at = at.saturating_add_signed(shift_ns));
        node.series.iter_mut().for_each(|series| drop(series.values.drain(..early.min(series.values.len()))));
        node.source = format!("driver {driver}");
        run.nodes.push(node);
    }
}

/// A driver as it was when the run began.
pub(crate) fn record(member: &crate::fleet::Member) -> Driver {
    Driver {
        name: member.hello.name.clone(),
        host: member.hello.host.clone(),
        kernel: member.hello.kernel.clone(),
        cpu: member.hello.cpu.clone(),
        cores: member.hello.cores,
        memory_bytes: member.hello.memory_bytes,
        clock_offset_ns: member.clock_offset_ns,
        clock_error_ns: member.clock_error_ns,
        lost: None,
    }
}
