//! The controller's orders for the current stage: written by the thread that listens, read by those that
//! carry the load.

use crate::protocol::Order;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidemark_load::thread_pool::{Instruction, StopRequest};

/// How much longer than the controller a driver waits before it takes itself for lost: the controller decides first.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The orders of one run.
pub(crate) struct Orders {
    lost_after: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stage: Option<u32>,
    start: Option<Instant>,
    /// Of the whole stage.
    stop_request: Option<Order>,
    works: HashMap<u32, Order>,
    windows: HashMap<u32, Instant>,
    away: Option<Instant>,
    given_up: bool,
}

impl Orders {
    /// No orders yet. Without a word from the controller for `lost_after` and a little, the load is ended.
    pub(crate) fn new(lost_after: Duration) -> Self {
        Self { lost_after, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stage is about to be opened: what was ordered of the one before is forgotten.
    pub(crate) fn open(&self, stage: u32) {
        let mut state = self.state();
        let (away, given_up) = (state.away, state.given_up);
        *state = State { stage: Some(stage), away, given_up, ..State::default() };
    }

    /// The load of a stage starts at `at`.
    pub(crate) fn start(&self, stage: u32, at: Instant) {
        let mut state = self.state();
        if state.stage == Some(stage) {
            state.start = Some(at);
            self.changed.notify_all();
        }
    }

    /// A word on a work, or on all of them.
    pub(crate) fn order(
        &self,
        stage: u32,
        work: Option<u32>,
        order: Order,
        instant: impl Fn(u64) -> Instant,
    ) {
        let mut state = self.state();
        if state.stage != Some(stage) {
            return;
        }
        match (order, work) {
            (Order::Window { at_ns }, Some(work)) => {
                state.windows.insert(work, instant(at_ns));
            }
            (Order::Window { .. }, None) => {}
            // A stop is not taken back.
            (order, Some(work)) => {
                let own = state.works.entry(work).or_insert(order);
                *own = if *own == Order::Stop { Order::Stop } else { order };
            }
            (order, None) if state.stop_request != Some(Order::Stop) => state.stop_request = Some(order),
            (_, None) => {}
        }
        self.changed.notify_all();
    }

    /// Since when the controller is not reachable, if it is not.
    pub(crate) fn away(&self, since: Option<Instant>) {
        self.state().away = since;
    }

    /// The current stage, if any, must stop at once.
    pub(crate) fn stop(&self) {
        self.state().stop_request = Some(Order::Stop);
        self.changed.notify_all();
    }

    /// The run is void: everything stops, and nothing more is sent.
    pub(crate) fn give_up(&self) {
        self.state().given_up = true;
        self.changed.notify_all();
    }

    /// Whether the run is void.
    pub(crate) fn is_given_up(&self) -> bool {
        self.state().given_up
    }

    /// Waits until the stage is to start; `None` when it is not to.
    pub(crate) fn wait_for_start(&self) -> Option<Instant> {
        let mut state = self.state();
        loop {
            let lost = state.away.is_some_and(|since| since.elapsed() > self.lost_after + TIMEOUT);
            if state.given_up || lost || matches!(state.stop_request, Some(Order::Stop | Order::Finish)) {
                return None;
            }
            if state.start.is_some() {
                return state.start;
            }
            let waited = self.changed.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What is wanted of a work by now.
    pub(crate) fn instruction(&self, work: u32) -> Instruction {
        let state = self.state();
        let lost = state.away.is_some_and(|since| since.elapsed() > self.lost_after + TIMEOUT);
        let orders = [state.stop_request, state.works.get(&work).copied()];
        let stop_request = match () {
            () if state.given_up || orders.contains(&Some(Order::Stop)) => StopRequest::Stop,
            () if lost || orders.contains(&Some(Order::Finish)) => StopRequest::Finish,
            () => StopRequest::None,
        };
        Instruction { window: state.windows.get(&work).copied(), stop_request }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_reach_their_work_and_their_stage_only() {
        let orders = Orders::new(Duration::from_secs(10));
        orders.open(2);
        orders.order(1, None, Order::Stop, |_| Instant::now());
        assert_eq!(orders.instruction(0).stop_request, StopRequest::None, "that was another stage");
        orders.order(2, Some(1), Order::Finish, |_| Instant::now());
        assert_eq!(
            (orders.instruction(0).stop_request, orders.instruction(1).stop_request),
            (StopRequest::None, StopRequest::Finish)
        );
        let at = Instant::now();
        orders.order(2, Some(0), Order::Window { at_ns: 7 }, |_| at);
        assert_eq!((orders.instruction(0).window, orders.instruction(1).window), (Some(at), None));
        orders.order(2, None, Order::Stop, |_| at);
        assert_eq!(orders.instruction(1).stop_request, StopRequest::Stop);
        orders.order(2, Some(1), Order::Stop, |_| at);
        orders.order(2, Some(1), Order::Finish, |_| at);
        orders.order(2, None, Order::Finish, |_| at);
        assert_eq!(orders.instruction(1).stop_request, StopRequest::Stop, "a stop is not taken back");
        orders.open(3);
        assert_eq!(orders.instruction(1).stop_request, StopRequest::None, "a new stage");
    }

    #[test]
    fn a_stage_that_is_called_off_does_not_start() {
        let orders = Orders::new(Duration::from_secs(10));
        orders.open(0);
        let at = Instant::now();
        orders.start(0, at);
        assert_eq!(orders.wait_for_start(), Some(at));
        orders.open(1);
        orders.stop();
        assert_eq!(orders.wait_for_start(), None);
        orders.open(2);
        orders.give_up();
        assert_eq!(orders.wait_for_start(), None);
    }

    #[test]
    fn a_driver_that_hears_nothing_for_long_ends_its_load() {
        let orders = Orders::new(Duration::from_secs(1));
        orders.open(0);
        let now = Instant::now();
        orders.away(Some(now));
        assert_eq!(orders.instruction(0).stop_request, StopRequest::None);
        let Some(long_ago) = now.checked_sub(Duration::from_secs(60)) else { return };
        orders.away(Some(long_ago));
        assert_eq!(orders.instruction(0).stop_request, StopRequest::Finish);
        orders.away(None);
        assert_eq!(orders.instruction(0).stop_request, StopRequest::None);
    }
}
