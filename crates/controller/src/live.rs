//! A run while it goes on: what happens is kept for pages that are opened now, and told to those that are open.

use crate::api::{
    self, LiveBoard, LiveMark, LiveMarkKind, LiveNode, LiveOperation, LiveRun, LiveSecond, LiveShare,
    LiveStage, LiveWork,
};
use crate::events::Events;
use crate::explain::expected_ms;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidemark_control::event::{DriverNews, Event, EventSink, Glimpse, SharedStopRequest, StopRequest};
use tidemark_measure::record::{Second, SecondOfOperation, Stage, State as RunState};
use tidemark_measure::tally::{Interval, Tally};
use tidemark_plan::forecast::{Amount, Forecast, forecast};
use tidemark_plan::plan::{self, Plan};
use tidemark_plan::registry::Registry;

/// Seconds of a work that are kept.
const SECONDS: usize = 600;

/// Seconds of all works together that are kept: of long runs of many stages, the oldest stages go first.
const ALL_SECONDS: usize = 3_600;

/// Marks that are kept.
const MARKS: usize = 200;

/// Seconds without a failure after which the next one is worth a mark.
const WITHOUT_FAILURES: u32 = 10;

/// Shares of drivers in all kept seconds: ten minutes of a hundred drivers. Of more the latest seconds have theirs.
const SHARES: usize = 60_000;

/// Seconds of which lists show the rate.
const RATES: usize = 90;

/// Samples of nodes that are kept.
const NODES: usize = 6_000;

/// Remarks that are kept.
const TROUBLES: usize = 100;

/// Stages are told again at most so often while one comes on.
const STAGES_EVERY: Duration = Duration::from_secs(1);

/// A submission that goes on.
pub(crate) struct Live {
    submission: u64,
    events: Arc<Events>,
    registry: Registry,
    stop_request: SharedStopRequest,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    run: Option<u64>,
    /// Runs that are done and runs in all, of an evaluation.
    turns: Option<(usize, usize)>,
    stages: Vec<LiveStage>,
    /// When the stage that goes on began.
    begun: Option<Instant>,
    told: Option<Instant>,
    /// Seconds by stage and work.
    seconds: BTreeMap<(u32, u32), VecDeque<LiveSecond>>,
    /// What drivers did in a second that is not complete yet.
    shares: BTreeMap<(u32, u32, u32), Vec<LiveShare>>,
    nodes: VecDeque<LiveNode>,
    troubles: VecDeque<String>,
    marks: VecDeque<LiveMark>,
    /// Drivers that are silent now.
    silent: BTreeSet<String>,
    /// The last second with failures, by stage and work.
    failing: BTreeMap<(u32, u32), u32>,
    /// Where the evaluation stands, if it is one.
    board: Option<LiveBoard>,
}

impl Live {
    pub(crate) fn new(submission: u64, events: Arc<Events>, registry: Registry) -> Self {
        Self {
            submission,
            events,
            registry,
            stop_request: SharedStopRequest::default(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for more than was asked for before.
    pub(crate) fn request_stop(&self, stop_request: StopRequest) {
        self.stop_request.raise(stop_request);
    }

    /// What was asked for.
    pub(crate) fn stop_request(&self) -> StopRequest {
        self.stop_request.get()
    }

    /// A run of this plan begins.
    pub(crate) fn begin(&self, plan: &Plan) {
        let forecast = forecast(plan, &self.registry);
        let stages = plan.stages.iter().enumerate().map(|(index, stage)| waiting(index, stage, &forecast));
        let mut state = self.state();
        let State { turns, troubles, nodes, board, .. } = std::mem::take(&mut *state);
        *state = State { stages: stages.collect(), turns, troubles, nodes, board, ..State::default() };
        self.publish_stages(&mut state);
    }

    /// How many runs of an evaluation are done, and how many there are.
    pub(crate) fn turn(&self, done: usize, of: Option<usize>) {
        self.state().turns = of.map(|of| (done, of));
    }

    /// The stage that goes on, or empty, and how far the whole is.
    pub(crate) fn progress(&self) -> (String, Option<f32>) {
        let state = self.state();
        let stage = state.stages.iter().find(|stage| stage.state == RunState::Running);
        let stage = stage.map(|stage| stage.id.clone()).unwrap_or_default();
        let own = state.progress();
        let progress = match state.turns {
            Some((done, of)) => Some((done as f32 + own.unwrap_or(0.0)) / of.max(1) as f32),
            None => own,
        };
        (stage, progress.map(|progress| progress.clamp(0.0, 1.0)))
    }

    /// Operations that succeeded in each of the latest seconds, over all works that go on; the newest last.
    pub(crate) fn rates(&self) -> Vec<u64> {
        let state = self.state();
        let mut rates: BTreeMap<u64, u64> = BTreeMap::new();
        for second in state.seconds.values().flat_map(|seconds| seconds.iter().rev().take(RATES)) {
            let done: u64 = second.operations.iter().map(|operation| operation.ok).sum();
            *rates.entry(second.unix_ms / 1000).or_default() += done;
        }
        rates.into_values().rev().take(RATES).collect::<Vec<_>>().into_iter().rev().collect()
    }

    /// All of it, for a page that is opened now.
    pub(crate) fn snapshot(&self) -> LiveRun {
        let state = self.state();
        LiveRun {
            submission: self.submission,
            run: state.run,
            stages: state.stages.clone(),
            seconds: state.seconds.values().flatten().cloned().collect(),
            nodes: state.nodes.iter().cloned().collect(),
            troubles: state.troubles.iter().cloned().collect(),
            marks: state.marks.iter().cloned().collect(),
            board: state.board.clone(),
            // Nothing of this submission is told without the state.
            last_event: self.events.last(),
        }
    }

    /// What nodes did.
    pub(crate) fn nodes(&self, nodes: Vec<LiveNode>) {
        let mut state = self.state();
        state.nodes.extend(nodes.iter().cloned());
        let surplus = state.nodes.len().saturating_sub(NODES);
        state.nodes.drain(..surplus);
        self.publish(api::Live::Nodes(nodes));
    }

    /// Something that the user should know.
    pub(crate) fn trouble(&self, text: &str) {
        let mut state = self.state();
        if state.troubles.len() == TROUBLES {
            state.troubles.pop_front();
        }
        state.troubles.push_back(text.to_owned());
        self.publish(api::Live::Trouble(text.to_owned()));
    }

    /// Where the evaluation stands, changed and told.
    pub(crate) fn board(&self, change: impl FnOnce(&mut LiveBoard)) {
        let mut state = self.state();
        let board = state.board.get_or_insert_default();
        change(board);
        let told = board.clone();
        self.publish(api::Live::Board(Box::new(told)));
    }

    /// The number of the evaluation that goes on, if it is one and the store has it.
    pub(crate) fn evaluation(&self) -> Option<u64> {
        self.state().board.as_ref()?.evaluation
    }

    /// Marks this moment: the user cancelled, a driver fell silent.
    pub(crate) fn mark(&self, kind: LiveMarkKind, driver: &str, text: &str) {
        self.add_mark(&mut self.state(), kind, driver, text);
    }

    fn add_mark(&self, state: &mut State, kind: LiveMarkKind, driver: &str, text: &str) {
        let mark = LiveMark { unix_ms: unix_now_ms(), kind, driver: driver.into(), text: text.into() };
        if state.marks.len() == MARKS {
            state.marks.pop_front();
        }
        state.marks.push_back(mark.clone());
        self.publish(api::Live::Mark(mark));
    }

    /// A driver went away, came back or is lost.
    fn driver(&self, driver: &str, news: DriverNews) {
        let mut state = self.state();
        match news {
            DriverNews::Away => self.silent(&mut state, driver),
            DriverNews::Back => self.heard(&mut state, driver),
            DriverNews::Lost => {
                state.silent.remove(driver);
                self.add_mark(&mut state, LiveMarkKind::DriverLost, driver, &format!("{driver} is lost"));
            }
        }
    }

    fn silent(&self, state: &mut State, driver: &str) {
        if state.silent.insert(driver.to_owned()) {
            self.add_mark(state, LiveMarkKind::DriverSilent, driver, &format!("{driver} is silent"));
        }
    }

    /// A driver was heard again: it is back once no second lacks it any more.
    fn heard(&self, state: &mut State, driver: &str) {
        let lacks = |second: &LiveSecond| second.missing.iter().any(|name| name == driver);
        let is_back = state.silent.contains(driver) && !state.seconds.values().flatten().any(lacks);
        if is_back && state.silent.remove(driver) {
            self.add_mark(state, LiveMarkKind::DriverBack, driver, &format!("{driver} is back"));
        }
    }

    fn publish(&self, live: api::Live) {
        self.events.publish(Some(self.submission), live);
    }

    fn publish_stages(&self, state: &mut State) {
        state.told = Some(Instant::now());
        self.publish(api::Live::Stages(state.stages.clone()));
    }

    fn stage_started(&self, index: usize) {
        let mut state = self.state();
        state.begun = Some(Instant::now());
        state.shares.clear();
        if let Some(stage) = state.stages.get_mut(index) {
            stage.state = RunState::Running;
            stage.started_unix_ms = Some(unix_now_ms());
        }
        self.publish_stages(&mut state);
    }

    fn stage_ended(&self, index: usize, record: &Stage) {
        let mut state = self.state();
        if let Some(stage) = state.stages.get_mut(index) {
            stage.state = record.state;
            stage.reason.clone_from(&record.reason);
            stage.ended_unix_ms = Some(unix_now_ms());
        }
        state.begun = None;
        self.publish_stages(&mut state);
    }

    fn driver_second(&self, place: (usize, usize), share: LiveShare, index: u32) {
        let place = (place.0 as u32, place.1 as u32, index);
        self.state().shares.entry(place).or_default().push(share);
    }

    fn second(&self, stage: usize, work: usize, interval: &Interval) {
        let place = (stage as u32, work as u32);
        let mut state = self.state();
        let shares = state.shares.remove(&(place.0, place.1, interval.index)).unwrap_or_default();
        let heard: Vec<String> = match state.silent.is_empty() {
            true => Vec::new(),
            false => shares.iter().map(|share| share.driver.clone()).collect(),
        };
        let second = live_second(place, interval, shares, &[]);
        self.mark_failures(&mut state, &second);
        let done: u64 =
            interval.actions.iter().map(Tally::total).fold(interval.unmeasured, u64::saturating_add);
        let elapsed = state.begun.map(|begun| begun.elapsed());
        if let Some(stage) = state.stages.get_mut(stage) {
            stage.operations = stage.operations.saturating_add(done);
            estimate(stage, elapsed);
        }
        self.put(&mut state, second);
        heard.iter().for_each(|driver| self.heard(&mut state, driver));
        if state.told.is_none_or(|told| told.elapsed() >= STAGES_EVERY) {
            self.publish_stages(&mut state);
        }
    }
}

impl Live {
    /// A second without what these drivers did in it.
    fn second_so_far(&self, stage: usize, work: usize, interval: &Interval, missing: &[String]) {
        let place = (stage as u32, work as u32);
        let mut state = self.state();
        let shares = state.shares.get(&(place.0, place.1, interval.index)).cloned().unwrap_or_default();
        missing.iter().for_each(|driver| self.silent(&mut state, driver));
        let second = live_second(place, interval, shares, missing);
        self.put(&mut state, second);
    }

    /// Marks the first of some seconds with failures.
    fn mark_failures(&self, state: &mut State, second: &LiveSecond) {
        let place = (second.stage, second.work);
        let failing = |(_, operation): &(usize, &LiveOperation)| operation.failed > 0;
        let Some((label, _)) = second.operations.iter().enumerate().find(failing) else { return };
        let before = state.failing.insert(place, second.index);
        if before.is_none_or(|before| second.index.saturating_sub(before) > WITHOUT_FAILURES) {
            let works = state.stages.get(place.0 as usize).map(|stage| stage.works.as_slice());
            let work = works.and_then(|works| works.get(place.1 as usize));
            let name = work.and_then(|work| work.operations.get(label)).cloned();
            let text = format!("{} fails", name.unwrap_or_else(|| "an operation".into()));
            self.add_mark(state, LiveMarkKind::Failures, "", &text);
        }
    }

    /// Keeps a second in the place of what was known of it before, and tells it.
    fn put(&self, state: &mut State, second: LiveSecond) {
        let kept = state.seconds.entry((second.stage, second.work)).or_default();
        let at = kept.iter().rposition(|other| other.index < second.index).map_or(0, |before| before + 1);
        match kept.get_mut(at).filter(|other| other.index == second.index) {
            Some(known) => *known = second.clone(),
            None => kept.insert(at, second.clone()),
        }
        let surplus = kept.len().saturating_sub(SECONDS);
        kept.drain(..surplus);
        state.forget();
        self.publish(api::Live::Second(Box::new(second)));
    }
}

impl State {
    /// Drops the oldest seconds of the oldest stages if there are too many, and what drivers did in those that stay.
    fn forget(&mut self) {
        let all: usize = self.seconds.values().map(VecDeque::len).sum();
        let mut surplus = all.saturating_sub(ALL_SECONDS);
        while let Some(mut oldest) = self.seconds.first_entry().filter(|_| surplus > 0) {
            let seconds = oldest.get_mut();
            let dropped = seconds.len().min(surplus);
            seconds.drain(..dropped);
            surplus -= dropped;
            if seconds.is_empty() {
                oldest.remove();
            }
        }
        let seconds = self.seconds.values().flatten();
        let mut shares: usize = seconds.map(|second| second.drivers.len()).sum();
        for second in self.seconds.values_mut().flatten() {
            if shares <= SHARES {
                return;
            }
            shares -= std::mem::take(&mut second.drivers).len();
        }
    }

    /// How far the run is: stages count for as long as they take; those of which nothing is known do not count until they go on.
    fn progress(&self) -> Option<f32> {
        let (mut done, mut all) = (0.0, 0.0);
        for stage in &self.stages {
            let took =
                stage.started_unix_ms.zip(stage.ended_unix_ms).map(|(from, to)| to.saturating_sub(from));
            let ended = !matches!(stage.state, RunState::Waiting | RunState::Running);
            let weight = match (ended, stage.expected_ms.or(took)) {
                (true, weight) => weight.unwrap_or(0) as f64,
                (false, Some(weight)) => weight as f64,
                (false, None) if stage.state == RunState::Running => return None,
                (false, None) => 0.0,
            };
            let fraction = match (ended, stage.expected_operations, self.begun) {
                (true, ..) => 1.0,
                _ if stage.state == RunState::Waiting => 0.0,
                (_, Some(of), _) if of > 0 => stage.operations as f64 / of as f64,
                (.., Some(begun)) if weight > 0.0 => begun.elapsed().as_millis() as f64 / weight,
                _ => 0.0,
            };
            done += weight * fraction.min(1.0);
            all += weight;
        }
        (all > 0.0).then_some((done / all) as f32)
    }
}

/// How long a stage will take that ends by a count, from how fast it was so far.
fn estimate(stage: &mut LiveStage, elapsed: Option<Duration>) {
    if let (Some(of), Some(elapsed)) = (stage.expected_operations, elapsed)
        && stage.operations > 0
        && elapsed >= Duration::from_millis(500)
    {
        let each = elapsed.as_secs_f64() / stage.operations as f64;
        stage.expected_ms = Some((each * of as f64 * 1e3) as u64);
    }
}

fn waiting(index: usize, stage: &plan::Stage, forecast: &Forecast) -> LiveStage {
    let seen = forecast.stages.get(index);
    let exact = |work: &tidemark_plan::forecast::Work| {
        let each = work.actions.iter().map(|action| match action.operations {
            Amount::Exactly(number) | Amount::About(number) => Some(number),
            Amount::UpTo(_) | Amount::Open => None,
        });
        each.sum::<Option<u64>>()
    };
    let counted = seen.and_then(|seen| seen.works.iter().map(exact).sum::<Option<u64>>());
    let works = stage.works.iter().map(|work| LiveWork {
        name: work.name.clone(),
        workers: work.load.workers,
        operations: work.labels.iter().map(|label| label.label.clone()).collect(),
        window_start_ms: work.load.planned().window_start_ns.map(|at| at / 1_000_000),
        window_end_ms: work.load.planned().window_end_ns.map(|at| at / 1_000_000),
    });
    LiveStage {
        id: stage.id(index),
        name: stage.name.clone(),
        state: RunState::Waiting,
        expected_ms: seen.and_then(|seen| expected_ms(&seen.time)),
        expected_operations: counted.filter(|number| *number > 0),
        works: works.collect(),
        ..LiveStage::default()
    }
}

fn live_second(
    (stage, work): (u32, u32),
    interval: &Interval,
    drivers: Vec<LiveShare>,
    missing: &[String],
) -> LiveSecond {
    let second = Second::from(interval);
    LiveSecond {
        stage,
        work,
        index: second.index,
        unix_ms: unix_now_ms(),
        operations: second.operations.iter().map(live_operation).collect(),
        unmeasured: second.unmeasured,
        in_flight: second.in_flight,
        backlog: second.backlog,
        busy: second.busy as f32,
        drivers,
        missing: missing.to_vec(),
    }
}

fn live_operation(operation: &SecondOfOperation) -> LiveOperation {
    let us = |ns: u64| ns as f64 / 1e3;
    LiveOperation {
        ok: operation.ok,
        failed: operation.failed,
        bytes: operation.bytes,
        mean_us: us(operation.mean_ns),
        p50_us: us(operation.p50_ns),
        p95_us: us(operation.p95_ns),
        p99_us: us(operation.p99_ns),
        max_us: us(operation.max_ns),
    }
}

/// A node that is observed. The load comes from the drivers, not from it.
fn observed(seen: &Glimpse, unix_ms: u64) -> LiveNode {
    LiveNode { name: seen.name.clone(), generates: false, unix_ms, utilization: seen.utilization }
}

/// Now, milliseconds since 1970 UTC.
pub(crate) fn unix_now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Follows a run for those who look on.
pub(crate) struct Follower<'a> {
    live: &'a Live,
    /// The number of the run that the store has begun, see [`tidemark_store::Store::begun`].
    begun: Arc<AtomicU64>,
    /// Is told that number once.
    numbered: &'a dyn Fn(u64),
    told: u64,
}

impl<'a> Follower<'a> {
    /// Whoever follows a run of `plan`, which is about to begin.
    pub(crate) fn new(live: &'a Live, plan: &Plan, begun: Arc<AtomicU64>, numbered: &'a dyn Fn(u64)) -> Self {
        live.begin(plan);
        let told = begun.load(Ordering::Relaxed);
        Self { live, begun, numbered, told }
    }
}

impl EventSink for Follower<'_> {
    fn event(&mut self, event: Event<'_>) {
        let number = self.begun.load(Ordering::Relaxed);
        if number != self.told {
            self.told = number;
            self.live.state().run = Some(number);
            (self.numbered)(number);
        }
        match event {
            Event::StageStarted { index, .. } => self.live.stage_started(index),
            Event::StageEnded { index, stage } => self.live.stage_ended(index, stage),
            Event::Second { stage, work, interval } => self.live.second(stage, work, interval),
            Event::SecondSoFar { stage, work, interval, missing } => {
                self.live.second_so_far(stage, work, interval, missing);
            }
            Event::DriverSecond { stage, work, driver, summary } => {
                let share = LiveShare {
                    driver: driver.to_owned(),
                    ok: summary.ok,
                    failed: summary.failed,
                    bytes: summary.bytes,
                    p50_us: summary.p50_ns as f64 / 1e3,
                    p99_us: summary.p99_ns as f64 / 1e3,
                    busy: summary.busy as f32,
                };
                self.live.driver_second((stage, work), share, summary.index);
            }
            Event::Nodes(seen) => {
                // This process's own node puts no load on.
                let elsewhere = seen.iter().filter(|seen| !seen.generates);
                let now = unix_now_ms();
                let nodes: Vec<_> = elsewhere.map(|seen| observed(seen, now)).collect();
                if !nodes.is_empty() {
                    self.live.nodes(nodes);
                }
            }
            Event::Trouble(text) => self.live.trouble(text),
            Event::Driver { driver, news } => self.live.driver(driver, news),
            Event::Target(_) | Event::Pausing { .. } => {}
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        self.live.stop_request()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{Purpose, Reader, What};
    use tidemark_measure::record::ShareSecond;

    fn plan() -> Plan {
        let text = "name: small\ntarget: {kind: mock, delay: 1ms}\nstages:\n\
                    - {name: fill, prepare: {containers: 1, objects: 1-100, sizes: 1KB}}\n\
                    - {name: main, load: {for: 100s, workers: 2, containers: 1, operations: [{get: {objects: 1-100}}]}}\n";
        match Reader::new(Default::default(), tidemark_engines::registry())
            .read(text, Purpose::Run)
            .unwrap()
            .what
        {
            What::Workload { plan, .. } => *plan,
            What::Evaluation { .. } => panic!("it is a workload"),
        }
    }

    fn second(index: u32, ok: u64) -> Interval {
        let mut interval = Interval::new(index, 1);
        interval.actions[0].ok = ok;
        (0..ok).for_each(|_| interval.actions[0].response.record(2_000_000));
        interval
    }

    #[test]
    fn what_happens_is_kept_and_told() {
        let events = Arc::new(Events::new());
        let mut listener = events.listen();
        let live = Live::new(7, events, tidemark_engines::registry());
        let plan = plan();
        let numbers = Mutex::new(Vec::new());
        let numbered = |number| numbers.lock().unwrap().push(number);
        let begun = Arc::new(AtomicU64::new(0));
        let mut follower = Follower::new(&live, &plan, begun.clone(), &numbered);
        begun.store(42, Ordering::Relaxed);
        follower.event(Event::StageStarted { index: 1, stage: &plan.stages[1] });
        let summary = ShareSecond { index: 0, ok: 3, ..ShareSecond::default() };
        follower.event(Event::DriverSecond { stage: 1, work: 0, driver: "d1", summary: &summary });
        for index in 0..SECONDS as u32 + 5 {
            follower.event(Event::Second { stage: 1, work: 0, interval: &second(index, 3) });
        }
        follower.event(Event::Trouble("mind the gap"));
        let run = live.snapshot();
        assert_eq!((run.submission, run.run, run.seconds.len()), (7, Some(42), SECONDS));
        assert_eq!(*numbers.lock().unwrap(), [42], "told once");
        assert_eq!(
            (run.stages[1].state, run.stages[1].operations),
            (RunState::Running, 3 * (SECONDS as u64 + 5))
        );
        assert!((run.seconds[0].operations[0].p50_us - 2000.0).abs() < 5.0);
        assert_eq!(live.rates().iter().sum::<u64>(), 3 * RATES as u64, "of the latest seconds only");
        assert_eq!(run.troubles, ["mind the gap"]);
        let told: Vec<_> = std::iter::from_fn(|| listener.try_recv().ok()).collect();
        assert_eq!(told.last().unwrap().id, run.last_event);
        let seconds = |event: &Arc<crate::controller::Event>| match &event.live {
            api::Live::Second(second) => Some(second.clone()),
            _ => None,
        };
        let first = told.iter().find_map(seconds).unwrap();
        assert_eq!((first.drivers.len(), first.drivers[0].ok), (1, 3));
        let (stage, progress) = live.progress();
        assert_eq!(stage, "s2-main");
        assert!(progress.is_some_and(|progress| progress < 0.5), "{progress:?}");
        follower.event(Event::StageEnded {
            index: 1,
            stage: &Stage { state: RunState::Completed, ..Stage::default() },
        });
        assert_eq!(live.snapshot().stages[1].state, RunState::Completed);
    }

    /// A run of two stages, the second of which was short: as it is left behind at its end.
    #[test]
    fn a_page_that_is_opened_after_a_short_last_stage_has_the_seconds_of_all() {
        let live = Live::new(7, Arc::new(Events::new()), tidemark_engines::registry());
        let plan = plan();
        let mut follower = Follower::new(&live, &plan, Arc::default(), &|_| ());
        follower.event(Event::StageStarted { index: 0, stage: &plan.stages[0] });
        for index in 0..SECONDS as u32 {
            follower.event(Event::Second { stage: 0, work: 0, interval: &second(index, 3) });
        }
        follower.event(Event::StageStarted { index: 1, stage: &plan.stages[1] });
        follower.event(Event::Second { stage: 1, work: 0, interval: &second(0, 3) });
        let of = |stage| live.snapshot().seconds.iter().filter(|second| second.stage == stage).count();
        assert_eq!((of(0), of(1)), (SECONDS, 1));
        for stage in 2..40 {
            for index in 0..SECONDS as u32 {
                live.second(stage, 0, &second(index, 3));
            }
        }
        assert_eq!(live.snapshot().seconds.len(), ALL_SECONDS, "many stages are bounded");
        assert_eq!((of(0), of(39)), (0, SECONDS), "the oldest go first");
    }

    #[test]
    fn what_happens_to_drivers_and_failures_are_marked_once() {
        let live = Live::new(7, Arc::new(Events::new()), tidemark_engines::registry());
        let plan = plan();
        let mut follower = Follower::new(&live, &plan, Arc::default(), &|_| ());
        follower.event(Event::StageStarted { index: 1, stage: &plan.stages[1] });
        let missing = ["d2".to_owned()];
        for index in 0..3 {
            let interval = &second(index, 3);
            follower.event(Event::SecondSoFar { stage: 1, work: 0, interval, missing: &missing });
        }
        follower.event(Event::Driver { driver: "d2", news: DriverNews::Back });
        let kinds = || live.snapshot().marks.iter().map(|mark| mark.kind).collect::<Vec<_>>();
        for index in 0..3 {
            assert_eq!(kinds(), [LiveMarkKind::DriverSilent], "it is still behind");
            let summary = ShareSecond { index, ok: 3, ..ShareSecond::default() };
            follower.event(Event::DriverSecond { stage: 1, work: 0, driver: "d2", summary: &summary });
            follower.event(Event::Second { stage: 1, work: 0, interval: &second(index, 6) });
        }
        follower.event(Event::Driver { driver: "d2", news: DriverNews::Lost });
        for index in [1, 2, 3, 30] {
            let mut interval = second(index, 3);
            interval.actions[0].faults.count(tidemark_measure::fault::Fault::Timeout);
            follower.event(Event::Second { stage: 1, work: 0, interval: &interval });
        }
        use LiveMarkKind::{DriverBack, DriverLost, DriverSilent, Failures};
        assert_eq!(kinds(), [DriverSilent, DriverBack, DriverLost, Failures, Failures]);
    }

    #[test]
    fn shares_of_many_drivers_are_bounded() {
        let live = Live::new(7, Arc::new(Events::new()), tidemark_engines::registry());
        let with = |stage, index| LiveSecond {
            stage,
            index,
            drivers: vec![LiveShare::default(); 1_000],
            ..LiveSecond::default()
        };
        for (stage, index) in (0..2).flat_map(|stage| (0..50).map(move |index| (stage, index))) {
            live.put(&mut live.state(), with(stage, index));
        }
        let seconds = live.snapshot().seconds;
        assert_eq!(seconds.len(), 100);
        assert_eq!(seconds.iter().map(|second| second.drivers.len()).sum::<usize>(), SHARES);
        assert_eq!(
            (seconds[0].drivers.len(), seconds[99].drivers.len()),
            (0, 1_000),
            "the latest have theirs"
        );
    }

    #[test]
    fn later_wishes_do_not_take_back_earlier_ones() {
        let live = Live::new(1, Arc::new(Events::new()), tidemark_engines::registry());
        assert_eq!(live.stop_request(), StopRequest::None);
        live.request_stop(StopRequest::Stop);
        live.request_stop(StopRequest::Finish);
        assert_eq!(live.stop_request(), StopRequest::Stop);
    }
}
