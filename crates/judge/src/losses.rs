//! What the loss of a pod or a node came to: phases from the loss until it is there again, and the time without service meanwhile.

use crate::context::{SECOND_NS, WorkContext, ok_in};
use crate::rules::longest_usual_ns;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tidemark_measure::record::{Happened, Happening, Part, Run, Stage};
use utoipa::ToSchema;

/// How long before a loss and after a return a time without success still belongs to it: what was seen and what was done have
/// the resolution of a second, and clients need time to find what is there again.
const AROUND_NS: u64 = 10 * SECOND_NS;

/// How long before the API server says so, something may already be lost: seconds of the load are whole ones.
const BEFORE_NS: u64 = SECOND_NS;

/// The loss of a pod, or of a node, until it is there again.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Loss {
    /// What was lost and how, and what happened then, in order. The first of them is the loss.
    pub phases: Vec<Happening>,
    /// When as many were there again as were lost, if they ever were.
    pub returned_ns: Option<u64>,
    /// What the load saw.
    pub service: Service,
}

/// What the load saw of a loss. Times are since the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Service {
    /// Nothing was measured at that time.
    Unmeasured,
    /// Most seconds before it had no success either, so those after it say nothing.
    Sparse,
    /// Every second had a success.
    Kept {
        /// The fewest successes of a second meanwhile.
        least: u64,
        /// The median of the seconds of the load.
        usual: u64,
        /// The longest time without one, if that of the whole load was meanwhile.
        longest_ns: Option<u64>,
    },
    /// There were seconds without a success, or an unusually long time that was not a whole second.
    Gone {
        /// When the last success before them was, at the latest: the end of its second.
        last_ns: u64,
        /// When the first success after them was, at the earliest: the beginning of its second; `None`: there was none.
        first_ns: Option<u64>,
        /// The exact times, where the load has recorded them: its longest time without success is this one.
        exact_ns: Option<(u64, u64)>,
        /// When the load ended.
        end_ns: u64,
    },
}

impl Loss {
    /// The loss itself.
    pub fn first(&self) -> &Happening {
        &self.phases[0]
    }

    /// How long it took until as many were there again as were lost, nanoseconds.
    pub fn took_ns(&self) -> Option<u64> {
        Some(self.returned_ns?.saturating_sub(self.first().at_ns))
    }
}

impl Service {
    /// The time without a success: the shortest that it can have been, and the longest, nanoseconds.
    pub fn without_ns(&self) -> Option<(u64, u64)> {
        match *self {
            Service::Gone { exact_ns: Some((from, to)), .. } => {
                let length = to.saturating_sub(from);
                Some((length, length))
            }
            Service::Gone { last_ns, first_ns, end_ns, .. } => {
                let least = first_ns.unwrap_or(end_ns).saturating_sub(last_ns);
                let beyond = if first_ns.is_some() { 2 } else { 1 };
                Some((least, least + beyond * SECOND_NS))
            }
            _ => None,
        }
    }
}

/// Every loss of a run, in order.
pub fn losses(run: &Run) -> Vec<Loss> {
    let mut happenings = run.happenings.clone();
    happenings.extend(run.drivers.iter().filter_map(|driver| given_up(run, driver)));
    happenings.sort_by_key(|one| one.at_ns);
    let mut found: Vec<Found> = Vec::new();
    // Of each owner, the loss that is not over.
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    for happening in happenings {
        let at = open.get(&happening.owner).copied();
        match at {
            Some(at) => {
                let is_over = found[at].add(happening.clone());
                if is_over {
                    open.remove(&happening.owner);
                }
            }
            // What still happens to something that was lost and did not come back belongs to its loss.
            None if happening.what.is_loss() && found.iter().any(|one| one.misses(&happening.object)) => {
                let known = found.iter_mut().rev().find(|one| one.misses(&happening.object));
                known.into_iter().for_each(|one| one.phases.push(happening.clone()));
            }
            None if happening.what.is_loss() => {
                open.insert(happening.owner.clone(), found.len());
                found.push(Found::new(happening));
            }
            None => {}
        }
    }
    let of = |one: Found| {
        let mut phases = one.phases;
        phases.sort_by_key(|phase| phase.at_ns);
        let service = service(run, phases[0].at_ns, one.returned_ns);
        Loss { phases, returned_ns: one.returned_ns, service }
    };
    found.into_iter().map(of).collect()
}

/// A loss that is being put together.
struct Found {
    phases: Vec<Happening>,
    lost: BTreeSet<String>,
    back: BTreeSet<String>,
    returned_ns: Option<u64>,
}

impl Found {
    fn new(happening: Happening) -> Self {
        let lost = BTreeSet::from([happening.object.clone()]);
        Self { phases: vec![happening], lost, back: BTreeSet::new(), returned_ns: None }
    }

    /// Whether this was lost and did not come back, at least not by this name.
    fn misses(&self, object: &str) -> bool {
        self.lost.contains(object) && !self.back.contains(object)
    }

    /// Adds what happened next, and says whether the loss is over.
    fn add(&mut self, happening: Happening) -> bool {
        let Happening { what, at_ns, ref object, .. } = happening;
        if what.is_loss() && what != Happened::PodGone {
            self.lost.insert(object.clone());
        }
        if what.is_return() {
            self.back.insert(object.clone());
        }
        self.phases.push(happening);
        let is_over = self.back.len() >= self.lost.len();
        if is_over {
            self.returned_ns = Some(at_ns);
        }
        is_over
    }
}

/// That the controller gave a driver up, as something that happened to its pod: its name is that of the driver and a few letters.
fn given_up(run: &Run, driver: &tidemark_measure::record::Driver) -> Option<Happening> {
    let lost = driver.lost.as_ref()?;
    let of_driver = |one: &&Happening| {
        let name = one.object.rsplit('/').next().unwrap_or_default();
        one.part == Part::Driver
            && name.strip_prefix(driver.name.as_str()).is_some_and(|rest| rest.starts_with('-'))
    };
    let pod = run.happenings.iter().find(of_driver)?;
    let detail = format!("given up by the controller: {}", lost.reason);
    Some(Happening { at_ns: lost.at_ns, what: Happened::DriverLost, detail, ..pod.clone() })
}

/// What the load saw from `lost_ns` on, until what was lost was there again at `returned_ns` if it was.
fn service(run: &Run, lost_ns: u64, returned_ns: Option<u64>) -> Service {
    let during = |stage: &&Stage| {
        let load = measured(stage);
        load.is_some_and(|load| (load.from_ns..load.end_ns).contains(&lost_ns))
    };
    let Some((stage, load)) = run.stages.iter().find(during).and_then(|one| Some((one, measured(one)?)))
    else {
        return Service::Unmeasured;
    };
    let second = |at_ns: u64| (at_ns.saturating_sub(load.from_ns) / SECOND_NS) as usize;
    let last = load.ok.len();
    let from = second(lost_ns.saturating_sub(BEFORE_NS)).min(last);
    let to = returned_ns.map_or(last, |at| second(at.saturating_add(AROUND_NS)) + 1).clamp(from, last);
    let before = &load.ok[..from];
    if before.iter().filter(|ok| **ok == 0).count() * 2 > before.len() {
        return Service::Sparse;
    }
    // The longest row of seconds without a success that begins then.
    let (mut silent, mut at) = (None::<(usize, usize)>, from);
    while at < to {
        let length = load.ok[at..].iter().take_while(|ok| **ok == 0).count();
        if length > silent.map_or(0, |(_, longest)| longest) {
            silent = Some((at, length));
        }
        at += length.max(1);
    }
    let begin = |index: usize| load.from_ns + index as u64 * SECOND_NS;
    // Only the longest time without a success is known to the nanosecond: of a single work, and whether it is unusual.
    let exact = match &stage.works[..] {
        [work] => work.longest_gap.map(|gap| {
            let since_start = |at_ns: u64| work.started_ns.saturating_add(at_ns);
            let is_unusual = gap.length_ns() >= longest_usual_ns(&WorkContext::new(run, stage, work), gap);
            (since_start(gap.from_ns), since_start(gap.to_ns), is_unusual)
        }),
        _ => None,
    };
    let Some((at, length)) = silent else {
        let within = exact.filter(|(gap_from, ..)| (begin(from)..begin(to)).contains(gap_from));
        if let Some((last_ns, first_ns, true)) = within {
            let (first_ns, exact_ns) = (Some(first_ns), Some((last_ns, first_ns)));
            return Service::Gone { last_ns, first_ns, exact_ns, end_ns: load.end_ns };
        }
        let mut all = load.ok.clone();
        all.sort_unstable();
        let longest_ns = within.map(|(gap_from, gap_to, _)| gap_to.saturating_sub(gap_from));
        return match load.ok[from..to].iter().min() {
            Some(least) => Service::Kept { least: *least, usual: all[all.len() / 2], longest_ns },
            None => Service::Unmeasured,
        };
    };
    // It may have begun before: what is told of a loss comes after it.
    let earlier = load.ok[..at].iter().rev().take_while(|ok| **ok == 0).count();
    let (at, length) = (at - earlier, length + earlier);
    let (last_ns, next) = (begin(at), at + length);
    let first_ns = (next < last).then(|| begin(next));
    let covers = |(gap_from, gap_to): &(u64, u64)| *gap_from <= last_ns && *gap_to >= begin(next);
    let exact_ns =
        exact.map(|(gap_from, gap_to, _)| (gap_from, gap_to)).filter(covers).filter(|_| first_ns.is_some());
    Service::Gone { last_ns, first_ns, exact_ns, end_ns: load.end_ns }
}

/// The successes of a stage's measured works, second by second.
struct Load {
    from_ns: u64,
    end_ns: u64,
    ok: Vec<u64>,
}

fn measured(stage: &Stage) -> Option<Load> {
    let works = || stage.works.iter().filter(|work| work.kind.measures());
    let started_ns = works().map(|work| work.started_ns).min()?;
    let first = works().map(|work| work.window_start_ns.div_ceil(SECOND_NS)).min()?;
    let end = works().map(|work| work.window_end_ns / SECOND_NS).max()?;
    // A damaged record may claim a century.
    let seconds = end.saturating_sub(first).min(10_000_000);
    let mut ok = vec![0_u64; seconds as usize];
    for second in works().flat_map(|work| &work.series) {
        let index = u64::from(second.index).checked_sub(first);
        if let Some(count) = index.and_then(|index| ok.get_mut(index as usize)) {
            *count = count.saturating_add(ok_in(second));
        }
    }
    let from_ns = started_ns.saturating_add(first.saturating_mul(SECOND_NS));
    Some(Load { from_ns, end_ns: from_ns.saturating_add(seconds * SECOND_NS), ok })
}

#[cfg(test)]
mod tests;
