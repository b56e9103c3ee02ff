//! The controller's orders for the current stage: written by the thread that listens, read by the threads that generate
//! load.

use crate::protocol::Order;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidemark_load::stop::StopRequest;
use tidemark_load::thread_pool::Instruction;

/// How much longer than the controller a driver waits before it considers itself lost: the controller decides first.
pub(crate) const LOSS_GRACE: Duration = Duration::from_secs(2);

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
    stop_request: StopRequest,
    works: HashMap<u32, StopRequest>,
    windows: HashMap<u32, Instant>,
    away: Option<Instant>,
    given_up: bool,
    released: bool,
    /// When the load asked for instructions last.
    asked: Option<Instant>,
    /// Whether this process stood still for so long that the controller has given it up: nobody counts what it does now.
    stood_still: bool,
}

impl Orders {
    /// No orders yet. The load ends when the controller cannot be reached for `lost_after` and a little.
    pub(crate) fn new(lost_after: Duration) -> Self {
        Self { lost_after, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stage is about to be opened: orders for the stage before are forgotten.
    pub(crate) fn open(&self, stage: u32) {
        let mut state = self.state();
        let State { away, given_up, released, stood_still, .. } = *state;
        *state = State { stage: Some(stage), away, given_up, released, stood_still, ..State::default() };
    }

    /// The load of a stage starts at `at`.
    pub(crate) fn start(&self, stage: u32, at: Instant) {
        let mut state = self.state();
        if state.stage == Some(stage) {
            // Works that are led apart are started apart; the first start is that of all.
            state.start.get_or_insert(at);
            self.changed.notify_all();
        }
    }

    /// Takes an order for a work or for all works.
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
            // A stop cannot be revoked.
            (Order::End(request), Some(work)) => {
                let own = state.works.entry(work).or_default();
                *own = request.max(*own);
            }
            (Order::End(request), None) => state.stop_request = request.max(state.stop_request),
        }
        self.changed.notify_all();
    }

    /// Notes since when nothing was heard of the controller; `None`: it can be reached.
    pub(crate) fn away(&self, since: Option<Instant>) {
        self.state().away = since;
    }

    /// Stops the current stage, if there is one, at once.
    pub(crate) fn stop(&self) {
        self.state().stop_request = StopRequest::Stop;
        self.changed.notify_all();
    }

    /// The run is to end: nothing more begins.
    pub(crate) fn release(&self) {
        self.state().released = true;
        self.stop();
    }

    /// Whether nobody waits for the run any more.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.state();
        state.given_up || state.released
    }

    /// The run is void: everything stops, and nothing more is reported.
    pub(crate) fn give_up(&self) {
        self.state().given_up = true;
        self.changed.notify_all();
    }

    /// Whether the run is void.
    pub(crate) fn is_given_up(&self) -> bool {
        self.state().given_up
    }

    fn is_lost(&self, state: &State) -> bool {
        state.away.is_some_and(|since| since.elapsed() > self.lost_after + LOSS_GRACE)
    }

    /// Waits for the time at which to start the stage; `None` if it will not start.
    pub(crate) fn wait_for_start(&self) -> Option<Instant> {
        let mut state = self.state();
        loop {
            if state.given_up || self.is_lost(&state) || state.stop_request > StopRequest::None {
                return None;
            }
            if state.start.is_some() {
                return state.start;
            }
            let waited = self.changed.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The current instruction for a work, asked for about twenty times a second.
    pub(crate) fn instruction(&self, work: u32) -> Instruction {
        self.instruction_at(work, Instant::now())
    }

    fn instruction_at(&self, work: u32, now: Instant) -> Instruction {
        let mut state = self.state();
        let asked = state.asked.replace(now);
        // The link may not know yet that it was cut.
        let patience = self.lost_after + LOSS_GRACE;
        state.stood_still |= asked.is_some_and(|asked| now.saturating_duration_since(asked) > patience);
        let lost = self.is_lost(&state);
        let of_work = state.works.get(&work).copied().unwrap_or_default();
        let own = match (state.given_up || state.stood_still, lost) {
            (true, _) => StopRequest::Stop,
            (false, true) => StopRequest::Finish,
            (false, false) => StopRequest::None,
        };
        let stop_request = own.max(state.stop_request).max(of_work);
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
        orders.order(1, None, Order::End(StopRequest::Stop), |_| Instant::now());
        assert_eq!(orders.instruction(0).stop_request, StopRequest::None, "that was another stage");
        orders.order(2, Some(1), Order::End(StopRequest::Finish), |_| Instant::now());
        assert_eq!(
            (orders.instruction(0).stop_request, orders.instruction(1).stop_request),
            (StopRequest::None, StopRequest::Finish)
        );
        let at = Instant::now();
        orders.order(2, Some(0), Order::Window { at_ns: 7 }, |_| at);
        assert_eq!((orders.instruction(0).window, orders.instruction(1).window), (Some(at), None));
        orders.order(2, None, Order::End(StopRequest::Stop), |_| at);
        assert_eq!(orders.instruction(1).stop_request, StopRequest::Stop);
        orders.order(2, Some(1), Order::End(StopRequest::Stop), |_| at);
        orders.order(2, Some(1), Order::End(StopRequest::Finish), |_| at);
        orders.order(2, None, Order::End(StopRequest::Finish), |_| at);
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
    fn a_driver_that_stood_still_until_it_was_given_up_does_not_go_on() {
        let (orders, start) = (Orders::new(Duration::from_secs(1)), Instant::now());
        orders.open(0);
        let after = |seconds| orders.instruction_at(0, start + Duration::from_secs(seconds)).stop_request;
        assert_eq!([after(0), after(3)], [StopRequest::None; 2], "the controller still waits for it");
        assert_eq!([after(7), after(7)], [StopRequest::Stop; 2]);
        orders.open(1);
        assert_eq!(orders.instruction_at(0, start + Duration::from_secs(8)).stop_request, StopRequest::Stop);
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
