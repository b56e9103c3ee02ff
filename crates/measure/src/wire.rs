//! One second of load as a few kilobytes: how an [`Interval`] travels from a driver to its controller.
//!
//! A histogram is dense in memory and sparse in truth: of tens of thousands of steps some hundred have counts. Only those travel, as
//! (distance from the last one, count), and only those are touched when the second is added to the sum of all drivers.
//! What arrives is checked as a whole before any of it counts.
//!
//! The numbers around them are in postcard's format. The steps are read by code of our own, straight from the message:
//! a controller of a thousand drivers reads millions of them a second.

use crate::counts::{FaultCounts, UncheckedCounts};
use crate::histogram::Histogram;
use crate::record::{EndpointUse, ShareSecond};
use crate::tally::{Interval, Tally};
use serde::{Deserialize, Serialize};

/// The first byte: the encoding's number. Those from [`OLDEST`] on are read, others refused.
pub const VERSION: u8 = 3;

/// The oldest encoding that is read: it does not tell what was verified. The second does not tell the generator's own lag.
pub const OLDEST: u8 = 1;

/// More operations than any driver does in a second. Sums over a thousand drivers and a day of seconds stay within
/// 64 bits, which HdrHistogram takes for granted.
pub const MOST_COUNT: u64 = 1 << 40;

/// More bytes than any driver moves in a second.
pub const MOST_BYTES: u64 = 1 << 48;

/// A histogram has 2^11 steps of 1 ns, then 2^10 for every doubling: so HdrHistogram keeps three digits.
const HALF_BITS: u32 = 10;

/// How many steps there are up to the longest latency.
const STEPS: u32 = 54_272;

/// A second that arrived cannot be read: it is damaged, or is not what it should be.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a second of load is damaged: {0}")]
pub struct Damaged(pub String);

/// An interval as it travels, with tallies `T`.
#[derive(Serialize, Deserialize)]
struct Packed<T> {
    index: u32,
    unmeasured: u64,
    in_flight: u32,
    oldest_in_flight_ns: u64,
    backlog: u64,
    first_ok_ns: Option<u64>,
    last_ok_ns: Option<u64>,
    cpu_ns: u64,
    wall_ns: u64,
    stalled_ns: u64,
    actions: Vec<T>,
}

/// A tally as it travels since version 3.
#[derive(Serialize, Deserialize)]
struct PackedWhole<H> {
    checked: PackedChecked<H>,
    own_lag_open: H,
    placed: u64,
}

/// A tally as it travels in version 2.
#[derive(Serialize, Deserialize)]
struct PackedChecked<H> {
    tally: PackedTally<H>,
    verified: u64,
    unchecked: UncheckedCounts,
}

/// A tally as it travels in version 1; a histogram is `H`, bytes.
#[derive(Serialize, Deserialize)]
struct PackedTally<H> {
    ok: u64,
    bytes: u64,
    late: u64,
    late_bytes: u64,
    early: u64,
    early_bytes: u64,
    outside_bytes: u64,
    retries: u64,
    faults: FaultCounts,
    histograms: [H; 5],
}

/// An interval that arrived whole: its numbers, and of its histograms only what counts.
pub struct Sparse<'a> {
    /// Everything but the histograms, which are empty here.
    numbers: Interval,
    /// The histograms of every action, in the order of [`Tally::histograms`]; all of their steps can be read.
    histograms: Vec<[&'a [u8]; 6]>,
    /// The lowest and the highest step of all responses; `None` when there are none.
    responses: Option<(u32, u32)>,
}

/// The interval in bytes.
pub fn encode(interval: &Interval) -> Vec<u8> {
    // Named one by one: a field that is new must not be forgotten here.
    let Interval {
        index,
        actions,
        unmeasured,
        in_flight,
        oldest_in_flight_ns,
        backlog,
        first_ok_ns,
        last_ok_ns,
        cpu_ns,
        wall_ns,
        stalled_ns,
    } = interval;
    let packed = Packed {
        index: *index,
        unmeasured: *unmeasured,
        in_flight: *in_flight,
        oldest_in_flight_ns: *oldest_in_flight_ns,
        backlog: *backlog,
        first_ok_ns: *first_ok_ns,
        last_ok_ns: *last_ok_ns,
        cpu_ns: *cpu_ns,
        wall_ns: *wall_ns,
        stalled_ns: *stalled_ns,
        actions: actions.iter().map(pack).collect(),
    };
    postcard::to_extend(&packed, vec![VERSION]).expect("writing to memory does not fail")
}

fn pack(tally: &Tally) -> PackedWhole<Vec<u8>> {
    let [response, service_open, lag, first_byte, failure, own_lag_open] =
        tally.histograms().map(|histogram| {
            let (mut bytes, mut last) = (Vec::new(), 0);
            for (value, count) in histogram.buckets() {
                let step = step_of(value);
                write_number(&mut bytes, u64::from(step - std::mem::replace(&mut last, step)));
                write_number(&mut bytes, count);
            }
            bytes
        });
    let counted = PackedTally {
        ok: tally.ok,
        bytes: tally.bytes,
        late: tally.late,
        late_bytes: tally.late_bytes,
        early: tally.early,
        early_bytes: tally.early_bytes,
        outside_bytes: tally.outside_bytes,
        retries: tally.retries,
        faults: tally.faults,
        histograms: [response, service_open, lag, first_byte, failure],
    };
    let checked = PackedChecked { tally: counted, verified: tally.verified, unchecked: tally.unchecked };
    PackedWhole { checked, own_lag_open, placed: tally.placed }
}

/// Adds an encoded interval to `to`, which must be the same second of a work with as many actions. When it is damaged,
/// `to` stays as it was.
pub fn add(bytes: &[u8], to: &mut Interval) -> Result<ShareSecond, Damaged> {
    let sparse = read(bytes)?;
    if sparse.index() != to.index {
        return Err(Damaged(format!("it is second {} instead of {}", sparse.index(), to.index)));
    }
    sparse.must_have(to.actions.len())?;
    sparse.add_to(to);
    Ok(sparse.summary())
}

/// A summary of an encoded interval.
pub fn summary(bytes: &[u8]) -> Result<ShareSecond, Damaged> {
    read(bytes).map(|sparse| sparse.summary())
}

/// Reads an encoded interval and checks all of it. What it takes of memory is proportional to its length.
pub fn read(bytes: &[u8]) -> Result<Sparse<'_>, Damaged> {
    let packed: Packed<PackedWhole<&[u8]>> = match bytes.split_first() {
        Some((&VERSION, body)) => taken(body)?,
        Some((2, body)) => of_version_2(taken(body)?),
        Some((&OLDEST, body)) => of_version_2(of_version_1(taken(body)?)),
        Some((version, _)) => {
            return Err(Damaged(format!(
                "its encoding is number {version}, and {OLDEST} to {VERSION} can be read"
            )));
        }
        None => return Err(Damaged("it is empty".into())),
    };
    within("operations", packed.unmeasured.max(packed.backlog), MOST_COUNT)?;
    let mut sparse = Sparse {
        numbers: Interval {
            index: packed.index,
            actions: Vec::with_capacity(packed.actions.len()),
            unmeasured: packed.unmeasured,
            in_flight: packed.in_flight,
            oldest_in_flight_ns: packed.oldest_in_flight_ns,
            backlog: packed.backlog,
            first_ok_ns: packed.first_ok_ns,
            last_ok_ns: packed.last_ok_ns,
            cpu_ns: packed.cpu_ns,
            wall_ns: packed.wall_ns,
            stalled_ns: packed.stalled_ns,
        },
        histograms: Vec::with_capacity(packed.actions.len()),
        responses: None,
    };
    for action in packed.actions {
        sparse.numbers.actions.push(unpack(&action)?);
        let [response, service_open, lag, first_byte, failure] = action.checked.tally.histograms;
        let others = [service_open, lag, first_byte, failure, action.own_lag_open];
        others.into_iter().try_for_each(|histogram| check(histogram).map(drop))?;
        sparse.responses = match (sparse.responses, check(response)?) {
            (Some((lowest, highest)), Some((low, high))) => Some((lowest.min(low), highest.max(high))),
            (before, own) => own.or(before),
        };
        sparse.histograms.push([response, service_open, lag, first_byte, failure, action.own_lag_open]);
    }
    Ok(sparse)
}

/// All of a message.
fn taken<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Damaged> {
    let (taken, rest) = postcard::take_from_bytes(body).map_err(|error| Damaged(error.to_string()))?;
    match rest.len() {
        0 => Ok(taken),
        more => Err(Damaged(format!("{more} bytes follow its end"))),
    }
}

/// An interval of version 1, which tells of nothing that was verified.
fn of_version_1<H>(packed: Packed<PackedTally<H>>) -> Packed<PackedChecked<H>> {
    packed.with(|tally| PackedChecked { tally, verified: 0, unchecked: UncheckedCounts::default() })
}

/// An interval of version 2, which does not tell the generator's own lag.
fn of_version_2(packed: Packed<PackedChecked<&[u8]>>) -> Packed<PackedWhole<&[u8]>> {
    packed.with(|checked| PackedWhole { checked, own_lag_open: &[], placed: 0 })
}

impl<T> Packed<T> {
    /// The same with other tallies.
    fn with<U>(self, convert: impl Fn(T) -> U) -> Packed<U> {
        Packed {
            actions: self.actions.into_iter().map(convert).collect(),
            index: self.index,
            unmeasured: self.unmeasured,
            in_flight: self.in_flight,
            oldest_in_flight_ns: self.oldest_in_flight_ns,
            backlog: self.backlog,
            first_ok_ns: self.first_ok_ns,
            last_ok_ns: self.last_ok_ns,
            cpu_ns: self.cpu_ns,
            wall_ns: self.wall_ns,
            stalled_ns: self.stalled_ns,
        }
    }
}

fn unpack(PackedWhole { checked, placed, .. }: &PackedWhole<&[u8]>) -> Result<Tally, Damaged> {
    let packed = &checked.tally;
    let tally = Tally {
        verified: checked.verified,
        placed: *placed,
        unchecked: checked.unchecked,
        ok: packed.ok,
        bytes: packed.bytes,
        late: packed.late,
        late_bytes: packed.late_bytes,
        early: packed.early,
        early_bytes: packed.early_bytes,
        outside_bytes: packed.outside_bytes,
        retries: packed.retries,
        faults: packed.faults,
        response: Histogram::new(),
        service_open: Histogram::new(),
        lag: Histogram::new(),
        own_lag_open: Histogram::new(),
        first_byte: Histogram::new(),
        failure: Histogram::new(),
    };
    let verification = [tally.verified, tally.placed, tally.unchecked.total()];
    let counts = [tally.ok, tally.late, tally.early, tally.retries, tally.failed()];
    for count in counts.into_iter().chain(verification) {
        within("operations", count, MOST_COUNT)?;
    }
    for bytes in [tally.bytes, tally.late_bytes, tally.early_bytes, tally.outside_bytes] {
        within("bytes", bytes, MOST_BYTES)?;
    }
    Ok(tally)
}

/// Reads a histogram to its end, and gives its lowest and its highest step.
fn check(histogram: &[u8]) -> Result<Option<(u32, u32)>, Damaged> {
    let (mut total, mut reach) = (0_u64, None);
    for step in Steps::of(histogram) {
        let (step, count) = step.map_err(|what| Damaged(what.into()))?;
        total = total.saturating_add(count);
        reach = Some((reach.map_or(step, |(lowest, _)| lowest), step));
    }
    within("latencies", total, MOST_COUNT)?;
    Ok(reach)
}

fn within(what: &str, number: u64, most: u64) -> Result<(), Damaged> {
    match number <= most {
        true => Ok(()),
        false => Err(Damaged(format!("{number} {what} in one second are impossible"))),
    }
}

impl Sparse<'_> {
    /// Which second it is.
    pub fn index(&self) -> u32 {
        self.numbers.index
    }

    /// Refuses an interval of a work with another number of actions.
    pub fn must_have(&self, actions: usize) -> Result<(), Damaged> {
        match self.histograms.len() {
            own if own == actions => Ok(()),
            own => Err(Damaged(format!("it has {own} operations instead of {actions}"))),
        }
    }

    /// Adds it to the same second of others: the same sums as [`Interval::add`] makes.
    pub fn add_to(&self, to: &mut Interval) {
        to.add(&self.numbers);
        for (tally, histograms) in to.actions.iter_mut().zip(&self.histograms) {
            for (histogram, steps) in tally.histograms_mut().into_iter().zip(histograms) {
                let steps = Steps::of(steps).flatten();
                histogram.record_all(steps.map(|(step, count)| (highest_of(step), count)));
            }
        }
    }

    /// What its actions say: all but their histograms.
    pub fn actions(&self) -> &[Tally] {
        &self.numbers.actions
    }

    /// Adds those of its actions that `counts` to what was done at one of several places.
    pub fn add_to_use(&self, to: &mut EndpointUse, counts: impl Fn(usize) -> bool) {
        let (mut ok, mut failed) = (0_u64, 0_u64);
        let actions = self.numbers.actions.iter().zip(&self.histograms).enumerate();
        for (_, (tally, [response, ..])) in actions.filter(|(index, _)| counts(*index)) {
            to.add_tally(tally);
            let steps = Steps::of(response).flatten();
            to.response.record_all(steps.map(|(step, count)| (highest_of(step), count)));
            (ok, failed) = (ok.saturating_add(tally.ok), failed.saturating_add(tally.failed()));
        }
        to.end_second(self.index(), ok, failed);
    }

    /// It in a few numbers. Percentiles are those of the merged histogram of all operations.
    pub fn summary(&self) -> ShareSecond {
        let sum =
            |number: fn(&Tally) -> u64| self.numbers.actions.iter().map(number).fold(0, u64::saturating_add);
        // Dense, but no wider than it must be.
        let (lowest, width) = self.responses.map_or((0, 0), |(low, high)| (low, high - low + 1));
        let mut merged = vec![0_u64; width as usize];
        for (step, count) in self.histograms.iter().flat_map(|[response, ..]| Steps::of(response)).flatten() {
            merged[(step - lowest) as usize] += count;
        }
        let total: u64 = merged.iter().sum();
        let quantile = |fraction: f64| {
            let wanted = ((fraction * total as f64).ceil() as u64).max(1);
            let mut passed = 0;
            let reached = (lowest..).zip(&merged).find(|(_, count)| {
                passed += **count;
                passed >= wanted
            });
            reached.map_or(0, |(step, _)| highest_of(step))
        };
        ShareSecond {
            index: self.numbers.index,
            ok: sum(|tally| tally.ok),
            failed: sum(Tally::failed),
            bytes: sum(|tally| tally.bytes),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            busy: match self.numbers.wall_ns {
                0 => 0.0,
                wall => self.numbers.cpu_ns as f64 / wall as f64,
            },
        }
    }
}

/// The steps of a histogram as they travel: (step, count), ascending. It ends with the first that cannot be.
struct Steps<'a> {
    rest: &'a [u8],
    last: Option<u32>,
}

impl<'a> Steps<'a> {
    fn of(histogram: &'a [u8]) -> Self {
        Self { rest: histogram, last: None }
    }

    #[inline]
    fn read(&mut self) -> Result<(u32, u64), &'static str> {
        let numbers = (read_number(&mut self.rest), read_number(&mut self.rest));
        let (Some(distance), Some(count)) = numbers else {
            return Err("a histogram ends within a number");
        };
        let step = u64::from(self.last.unwrap_or(0)).saturating_add(distance);
        if step >= u64::from(STEPS) {
            return Err("a latency is beyond the longest");
        }
        if count == 0 || (distance == 0 && self.last.is_some()) {
            return Err("a histogram is out of order");
        }
        self.last = Some(step as u32);
        Ok((step as u32, count))
    }
}

impl Iterator for Steps<'_> {
    type Item = Result<(u32, u64), &'static str>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.rest = &[];
        }
        Some(read)
    }
}

/// Seven bits a byte, the lowest first; all but the last have the eighth set (LEB128).
fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number off the front; `None` when it does not end, or is beyond 64 bits.
#[inline]
fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The step that a value counts in.
fn step_of(value: u64) -> u32 {
    let doublings = (64 - value.leading_zeros()).saturating_sub(HALF_BITS + 1);
    (doublings << HALF_BITS) + (value >> doublings) as u32
}

/// The lowest value that counts in a step.
fn lowest_of(step: u32) -> u64 {
    let doublings = (step >> HALF_BITS).saturating_sub(1);
    u64::from(step - (doublings << HALF_BITS)) << doublings
}

/// The highest value that counts in a step.
fn highest_of(step: u32) -> u64 {
    lowest_of(step + 1) - 1
}

#[cfg(test)]
mod tests;
