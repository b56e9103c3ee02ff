//! Decides what happens to each request, from the active faults, the request and the time. No waiting, no I/O.

use std::time::{Duration, Instant};

use hyper::StatusCode;

use crate::fault::{Effect, Fault, Seen, When};
use crate::faults::FaultId;

/// How far ahead of its cap a server may get after a quiet moment, so that a single client waiting on a timer of 1 ms
/// can still reach the cap.
const RATE_CREDIT: Duration = Duration::from_millis(10);

/// The decision about one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Verdict {
    /// Wait this long first.
    pub(super) wait: Duration,
    /// Then do not do what was asked.
    pub(super) instead: Option<Instead>,
    /// Or do it, but cut the answer's body after so many bytes.
    pub(super) truncate: Option<u64>,
    /// Or do it whatever its conditions are.
    pub(super) unconditional: bool,
}

/// What a client gets instead of what it asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Instead {
    Answer(StatusCode, String),
    Disconnect,
}

/// All active faults, with their counts.
#[derive(Debug, Default)]
pub(super) struct Plan {
    rules: Vec<Rule>,
    ids: u64,
    frozen_until: Option<Instant>,
    stutter: Option<Stutter>,
    cap: Option<Cap>,
    slots: Option<Slots>,
    /// The state of the generator that draws chances.
    chance: u64,
}

/// An active fault.
#[derive(Debug)]
struct Rule {
    id: u64,
    fault: Fault,
    matched: u64,
    struck: u64,
}

/// Recurring freezes.
#[derive(Clone, Copy, Debug)]
struct Stutter {
    from: Instant,
    period: Duration,
    length: Duration,
}

/// Requests begin at least `interval` apart on average; `next` is when the next one may.
#[derive(Debug)]
struct Cap {
    interval: Duration,
    next: Instant,
}

/// So many requests are served at once, each for `service`; the others wait in the order in which they came. `free` is when
/// each slot is free again.
///
/// It is reckoned with the times at which service should begin and end, not with those at which a busy machine wakes this
/// process up: a late timer delays an answer, and takes nothing from the capacity.
#[derive(Debug)]
struct Slots {
    service: Duration,
    free: Vec<Instant>,
}

impl Slots {
    /// How long a request that arrives now takes from now on.
    fn take(&mut self, now: Instant) -> Duration {
        let Some(first) = self.free.iter_mut().min() else { return Duration::ZERO };
        *first = (*first).max(now) + self.service;
        first.saturating_duration_since(now)
    }
}

impl Plan {
    /// No faults, and a seed for faults that strike by chance.
    pub(super) fn new(seed: u64) -> Self {
        Self { chance: seed, ..Self::default() }
    }

    pub(super) fn add(&mut self, fault: Fault) -> FaultId {
        self.ids += 1;
        self.rules.push(Rule { id: self.ids, fault, matched: 0, struck: 0 });
        FaultId(self.ids)
    }

    pub(super) fn remove(&mut self, id: FaultId) {
        self.rules.retain(|rule| rule.id != id.0);
    }

    /// Removes all faults. Ids and the random sequence continue, so that neither repeats.
    pub(super) fn clear(&mut self) {
        *self = Self { ids: self.ids, chance: self.chance, ..Self::default() };
    }

    pub(super) fn struck(&self, id: FaultId) -> u64 {
        self.rules.iter().find(|rule| rule.id == id.0).map_or(0, |rule| rule.struck)
    }

    pub(super) fn freeze(&mut self, until: Option<Instant>) {
        self.frozen_until = until;
    }

    pub(super) fn stutter(&mut self, from: Instant, period: Duration, length: Duration) {
        self.stutter = Some(Stutter { from, period, length });
    }

    pub(super) fn cap(&mut self, interval: Option<Duration>, now: Instant) {
        self.cap = interval.map(|interval| Cap { interval, next: now });
    }

    pub(super) fn serve(&mut self, slots: usize, service: Duration, now: Instant) {
        self.slots = (slots > 0).then(|| Slots { service, free: vec![now; slots] });
    }

    /// Whether no request has to be judged.
    pub(super) fn is_empty(&self) -> bool {
        let open = self.cap.is_none() && self.slots.is_none();
        open && self.rules.is_empty() && self.frozen_until.is_none() && self.stutter.is_none()
    }

    /// Decides about a request that arrives now.
    pub(super) fn judge(&mut self, request: &Seen<'_>, now: Instant) -> Verdict {
        let served = self.slots.as_mut().map_or(Duration::ZERO, |slots| slots.take(now));
        let mut verdict = Verdict { wait: self.queue(now).max(served), ..Verdict::default() };
        for rule in &mut self.rules {
            if !rule.fault.matches(request) {
                continue;
            }
            rule.matched += 1;
            let strikes = match rule.fault.when {
                When::Always => true,
                When::Nth(n) => rule.matched == n,
                When::First(n) => rule.matched <= n,
                When::Every(n) => n > 0 && rule.matched.is_multiple_of(n),
                When::Chance(probability) => draw(&mut self.chance) < probability,
            };
            if !strikes {
                continue;
            }
            let decided = verdict.instead.is_some() || verdict.truncate.is_some();
            match &rule.fault.effect {
                Effect::Delay(delay) => verdict.wait += *delay,
                Effect::IgnoreConditions => verdict.unconditional = true,
                _ if decided => continue,
                Effect::Answer { status, code } => {
                    verdict.instead = Some(Instead::Answer(*status, code.clone()));
                }
                Effect::Disconnect => verdict.instead = Some(Instead::Disconnect),
                Effect::Truncate(bytes) => verdict.truncate = Some(*bytes),
            }
            rule.struck += 1;
        }
        verdict
    }

    /// How long a request waits under the cap.
    fn queue(&mut self, now: Instant) -> Duration {
        let Some(cap) = &mut self.cap else { return Duration::ZERO };
        let begin = cap.next.max(now.checked_sub(RATE_CREDIT).unwrap_or(now));
        cap.next = begin + cap.interval;
        begin.saturating_duration_since(now)
    }

    /// When the present freeze ends.
    pub(super) fn frozen_until(&self, now: Instant) -> Option<Instant> {
        let once = self.frozen_until.filter(|until| *until > now);
        let again = self.stutter.and_then(|stutter| stutter.frozen_until(now));
        once.max(again)
    }
}

impl Stutter {
    fn frozen_until(&self, now: Instant) -> Option<Instant> {
        let period = self.period.as_nanos().max(1);
        let passed = now.saturating_duration_since(self.from).as_nanos() % period;
        let answers = period.saturating_sub(self.length.as_nanos());
        if passed < answers {
            return None;
        }
        now.checked_add(Duration::from_nanos(u64::try_from(period - passed).unwrap_or(u64::MAX)))
    }
}

/// A draw from 0 to 1 (1 excluded), by the SplitMix64 generator (Steele, Lea and Flood, OOPSLA 2014).
fn draw(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    // The upper 53 bits fill the mantissa of an f64 exactly.
    (z >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operation;

    const GET: Seen<'_> = Seen { operation: Operation::GetObject, method: "GET", path: "/b/key" };
    const PUT: Seen<'_> = Seen { operation: Operation::PutObject, method: "PUT", path: "/b/key" };

    fn plan(faults: impl IntoIterator<Item = Fault>) -> Plan {
        let rules = faults.into_iter().map(|fault| Rule { id: 0, fault, matched: 0, struck: 0 }).collect();
        Plan { rules, ..Plan::default() }
    }

    fn strikes(plan: &mut Plan, request: &Seen<'_>, times: usize) -> Vec<bool> {
        (0..times).map(|_| plan.judge(request, Instant::now()) != Verdict::default()).collect()
    }

    #[test]
    fn matching_requests_are_counted() {
        let fault = || Fault::slow_down().on_method("PUT").under("b/");
        assert_eq!(strikes(&mut plan([fault()]), &GET, 2), [false, false]);
        assert_eq!(strikes(&mut plan([fault()]), &PUT, 2), [true, true]);
        let elsewhere = Seen { path: "/c/key", ..PUT };
        assert_eq!(strikes(&mut plan([fault()]), &elsewhere, 1), [false]);
        assert_eq!(strikes(&mut plan([fault().nth(2)]), &PUT, 3), [false, true, false]);
        assert_eq!(strikes(&mut plan([fault().first(2)]), &PUT, 3), [true, true, false]);
        assert_eq!(strikes(&mut plan([fault().every(2)]), &PUT, 4), [false, true, false, true]);
    }

    #[test]
    fn faults_strike_with_their_probability() {
        let mut plan = plan([Fault::disconnect().with_probability(0.1)]);
        let struck = strikes(&mut plan, &GET, 10_000).into_iter().filter(|&struck| struck).count();
        // Ten standard deviations around the mean of a fixed sequence.
        assert!((700..=1300).contains(&struck), "{struck}");
        assert_eq!(plan.rules[0].struck, struck as u64);
    }

    #[test]
    fn delays_add_up_and_the_first_answer_wins() {
        let second = Duration::from_secs(1);
        let mut plan = plan([
            Fault::delay(second),
            Fault::answer(404, "NoSuchKey"),
            Fault::disconnect(),
            Fault::delay(second),
        ]);
        let verdict = plan.judge(&GET, Instant::now());
        assert_eq!(verdict.wait, 2 * second);
        assert_eq!(verdict.instead, Some(Instead::Answer(StatusCode::NOT_FOUND, "NoSuchKey".into())));
        assert_eq!(plan.rules[2].struck, 0, "a fault that was not carried out is not counted");
    }

    #[test]
    fn a_cap_spaces_requests_out() {
        let now = Instant::now() + Duration::from_secs(1);
        let interval = Duration::from_millis(10);
        let mut plan = Plan { cap: Some(Cap { interval, next: now }), ..Plan::default() };
        let waits: Vec<u128> = (0..4).map(|_| plan.judge(&GET, now).wait.as_millis()).collect();
        assert_eq!(waits, [0, 10, 20, 30]);
        let later = now + Duration::from_secs(10);
        let waits: Vec<u128> = (0..3).map(|_| plan.judge(&GET, later).wait.as_millis()).collect();
        assert_eq!(waits, [0, 0, 10], "a long silence earns 10 ms of credit, not 10 s");
    }

    #[test]
    fn slots_serve_so_many_at_once_and_the_others_wait() {
        let now = Instant::now();
        let ms = Duration::from_millis;
        let mut plan = Plan::default();
        plan.serve(2, ms(10), now);
        let waits = |plan: &mut Plan, at, count: usize| -> Vec<u128> {
            (0..count).map(|_| plan.judge(&GET, at).wait.as_millis()).collect()
        };
        assert_eq!(waits(&mut plan, now, 5), [10, 10, 20, 20, 30]);
        assert_eq!(waits(&mut plan, now + ms(25), 1), [10], "one slot has been free since 20 ms");
        assert_eq!(waits(&mut plan, now + ms(1_000), 3), [10, 10, 20], "an idle slot saves nothing up");
        plan.serve(0, ms(10), now);
        assert!(plan.is_empty());
    }

    #[test]
    fn a_stutter_freezes_the_end_of_each_period() {
        let from = Instant::now();
        let ms = Duration::from_millis;
        let stutter = Stutter { from, period: ms(2000), length: ms(200) };
        assert_eq!(stutter.frozen_until(from + ms(1799)), None);
        assert_eq!(stutter.frozen_until(from + ms(1800)), Some(from + ms(2000)));
        assert_eq!(stutter.frozen_until(from + ms(5950)), Some(from + ms(6000)));
        assert_eq!(stutter.frozen_until(from + ms(6000)), None);
    }
}
