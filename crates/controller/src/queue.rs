//! Who is next: the order of the queue, and which submissions can begin with the drivers that are free. Pure.
//!
//! [`decide`] goes through the queue in order. What can begin takes its drivers. What cannot reserves the drivers that it waits
//! for, so that nothing behind it takes them; what does not touch them may pass. A submission that requires drivers which are not
//! joined reserves nothing: nobody knows when they come, and the others would stand idle.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use tidemark_plan::plan::{Plan, Wanted};

/// A submission that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) id: u64,
    /// Higher ones come first.
    pub(crate) priority: i32,
    /// Lower ones come first among those of the same priority.
    pub(crate) position: i64,
    pub(crate) requirements: Requirements,
}

/// Which drivers a submission requires.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requirements {
    pub(crate) wanted: Wanted,
    /// Those that works are pinned to: they must be among those taken.
    pub(crate) pinned: BTreeSet<String>,
}

/// A driver that the controller knows of. Those that are gone are not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Driver {
    /// Whether it answers; if not, it may come back.
    pub(crate) answers: bool,
    pub(crate) assignment: Assignment,
}

/// Who has a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assignment {
    /// Nobody.
    Free,
    /// A submission.
    Submission(u64),
    /// It is being let go of.
    Releasing,
    /// Nobody, but it has not ended the run before.
    Ending(Left),
}

/// What a driver still ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// The submission whose run that is, where it is known.
    pub(crate) submission: Option<u64>,
    /// For how long, seconds.
    pub(crate) seconds: u64,
}

/// What is to happen with a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It begins on these drivers, in the order of their names.
    Begin(Vec<String>),
    /// It waits, and why: a clause for the user.
    Wait(String),
}

impl Requirements {
    /// What was asked for at submission, else what the plans say that are carried out one after the other: the first of them
    /// that does not want all.
    pub(crate) fn new(names: &[String], count: Option<u32>, plans: &[Plan]) -> Self {
        let wanted = match (names, count) {
            ([], Some(count)) => Wanted::Count(count),
            ([], None) => {
                let mut wanted = plans.iter().map(|plan| &plan.drivers.wanted);
                wanted.find(|wanted| **wanted != Wanted::All).cloned().unwrap_or_default()
            }
            (names, _) => Wanted::Named(names.to_vec()),
        };
        let works = plans.iter().flat_map(|plan| &plan.stages).flat_map(|stage| &stage.works);
        Self { wanted, pinned: works.filter_map(|work| work.driver.clone()).collect() }
    }

    /// The drivers that it requires by name.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        match &self.wanted {
            Wanted::Named(names) => names.iter().chain(&self.pinned).cloned().collect(),
            Wanted::All | Wanted::Count(_) => self.pinned.clone(),
        }
    }
}

/// Puts the queue into the order in which it is gone through.
pub(crate) fn sort(queue: &mut [Waiting]) {
    queue.sort_by_key(|one| (std::cmp::Reverse(one.priority), one.position, one.id));
}

/// The queue with `id` moved right before `before`, whose priority it gets: number, priority and position of all. `None` when
/// one of them does not wait.
pub(crate) fn moved(mut queue: Vec<Waiting>, id: u64, before: u64) -> Option<Vec<(u64, i32, i64)>> {
    sort(&mut queue);
    let mut own = queue.remove(queue.iter().position(|one| one.id == id)?);
    let at = queue.iter().position(|one| one.id == before)?;
    own.priority = queue[at].priority;
    queue.insert(at, own);
    Some(queue.iter().zip(0..).map(|(one, position)| (one.id, one.priority, position)).collect())
}

/// Decides for every submission of the queue, in its order.
pub(crate) fn decide(queue: &[Waiting], drivers: &BTreeMap<String, Driver>) -> Vec<(u64, Decision)> {
    let mut round = Round { drivers, taken: BTreeMap::new() };
    queue.iter().map(|one| (one.id, round.decide(one))).collect()
}

/// One way through the queue.
struct Round<'a> {
    drivers: &'a BTreeMap<String, Driver>,
    /// Drivers that earlier submissions of the queue take or wait for, and which of them.
    taken: BTreeMap<&'a str, u64>,
}

impl<'a> Round<'a> {
    fn decide(&mut self, one: &Waiting) -> Decision {
        let names = one.requirements.names();
        if let Some(reason) = self.missing(&one.requirements, &names) {
            return Decision::Wait(reason);
        }
        let free: Vec<&'a str> = self.known().filter(|name| self.is_free(name)).collect();
        let (enough, reserved): (Option<Vec<&str>>, Vec<&'a str>) = match &one.requirements.wanted {
            Wanted::All => {
                let all: Vec<&str> = self.known().filter(|name| self.drivers[*name].answers).collect();
                let can = !all.is_empty()
                    && all.iter().all(|name| self.is_free(name))
                    && names.iter().all(|name| self.is_free(name));
                (can.then_some(all), self.known().collect())
            }
            Wanted::Count(count) => {
                let others = free.iter().copied().filter(|name| !names.contains(*name));
                let wanted = (*count as usize).max(names.len());
                let chosen: Vec<&str> = names.iter().map(String::as_str).chain(others).take(wanted).collect();
                let can = chosen.len() == wanted && names.iter().all(|name| self.is_free(name));
                // Those named too: they are the ones that it waits for.
                let named = self.known().filter(|name| names.contains(*name));
                (can.then_some(chosen), free.iter().copied().chain(named).collect())
            }
            Wanted::Named(_) => {
                let can = names.iter().all(|name| self.is_free(name));
                let chosen = names.iter().map(String::as_str).collect();
                (can.then_some(chosen), self.known().filter(|name| names.contains(*name)).collect())
            }
        };
        let Some(chosen) = enough else {
            let reason = self.reason(&one.requirements, &names, free.len());
            for name in reserved {
                self.taken.entry(name).or_insert(one.id);
            }
            return Decision::Wait(reason);
        };
        let mut chosen: Vec<String> = chosen.into_iter().map(str::to_owned).collect();
        chosen.sort_unstable();
        for name in self.known().filter(|name| chosen.iter().any(|own| own == name)).collect::<Vec<_>>() {
            self.taken.insert(name, one.id);
        }
        Decision::Begin(chosen)
    }

    fn known(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.drivers.keys().map(String::as_str)
    }

    fn is_free(&self, name: &str) -> bool {
        let free = self
            .drivers
            .get(name)
            .is_some_and(|driver| driver.answers && driver.assignment == Assignment::Free);
        free && !self.taken.contains_key(name)
    }

    /// What is wanted and not joined.
    fn missing(&self, requirements: &Requirements, names: &BTreeSet<String>) -> Option<String> {
        let missing: Vec<&str> =
            names.iter().filter(|name| !self.drivers.contains_key(*name)).map(String::as_str).collect();
        match missing.as_slice() {
            [] => {}
            [only] => return Some(format!("waiting for driver {only} to join")),
            several => return Some(format!("waiting for drivers {} to join", listed(several))),
        }
        let wanted = match &requirements.wanted {
            Wanted::Count(count) => *count as usize,
            Wanted::All | Wanted::Named(_) => 1,
        };
        match wanted.saturating_sub(self.drivers.len()) {
            0 => None,
            1 => Some("waiting for a driver to join".into()),
            more => Some(format!("waiting for {more} more drivers to join")),
        }
    }

    /// Why one waits all of whose drivers are joined.
    fn reason(&self, requirements: &Requirements, names: &BTreeSet<String>, free: usize) -> String {
        let by_name =
            !matches!(requirements.wanted, Wanted::All) && !names.iter().all(|name| self.is_free(name));
        let relevant = |name: &&'a str| match by_name {
            true => names.contains(*name),
            false => true,
        };
        let silent: Vec<&str> =
            self.known().filter(relevant).filter(|name| !self.drivers[*name].answers).collect();
        let ending = |name: &&'a str| match self.drivers[*name].assignment {
            Assignment::Ending(left) => Some((*name, left)),
            _ => None,
        };
        let ending: Vec<(&str, Left)> =
            self.known().filter(relevant).filter_map(|name| ending(&name)).collect();
        let (mut holders, mut ahead) = (BTreeSet::new(), BTreeSet::new());
        let mut held = 0;
        for name in self.known().filter(relevant) {
            match (self.drivers[name].assignment, self.taken.get(name)) {
                (Assignment::Submission(id), _) => {
                    held += 1;
                    holders.insert(id);
                }
                (Assignment::Releasing | Assignment::Ending(_), _) => held += 1,
                (Assignment::Free, Some(id)) => {
                    ahead.insert(*id);
                }
                (Assignment::Free, None) => {}
            }
        }
        let needed = match &requirements.wanted {
            Wanted::Count(count) if !by_name => (*count as usize).saturating_sub(free).min(held),
            _ => held,
        };
        let drivers = |number: usize| match number {
            1 => "1 driver".to_owned(),
            more => format!("{more} drivers"),
        };
        let numbers =
            |ids: &BTreeSet<u64>| listed(&ids.iter().map(|id| format!("w{id}")).collect::<Vec<_>>());
        // Drivers that are free and promised to another one are what a count waits for, rather than those in use.
        let promised = matches!(requirements.wanted, Wanted::Count(_)) && !by_name && !ahead.is_empty();
        match (holders.is_empty() || promised, ahead.is_empty(), silent.as_slice()) {
            (false, _, _) => {
                format!("waiting for {} to release {}", numbers(&holders), drivers(needed.max(1)))
            }
            (_, false, _) => format!("waiting behind {}", numbers(&ahead)),
            _ if !ending.is_empty() => still_ending(&ending),
            (.., []) if held > 0 => format!("waiting for {}", free_drivers(held)),
            (.., []) => "waiting for a driver to join".into(),
            (.., [only]) => format!("waiting for driver {only}, which does not respond"),
            (.., several) => format!("waiting for drivers {}, which do not respond", listed(several)),
        }
    }
}

/// `waiting for driver a, which is still ending w68, for 12 s`.
fn still_ending(ending: &[(&str, Left)]) -> String {
    let names: Vec<&str> = ending.iter().map(|(name, _)| *name).collect();
    let runs: BTreeSet<u64> = ending.iter().filter_map(|(_, left)| left.submission).collect();
    let runs: Vec<String> = runs.iter().map(|id| format!("w{id}")).collect();
    let what = if runs.is_empty() { "an earlier run".to_owned() } else { listed(&runs) };
    let seconds = ending.iter().map(|(_, left)| left.seconds).max().unwrap_or(0);
    match names.as_slice() {
        [only] => format!("waiting for driver {only}, which is still ending {what}, for {seconds} s"),
        several => {
            format!("waiting for drivers {}, which are still ending {what}, for {seconds} s", listed(several))
        }
    }
}

fn free_drivers(number: usize) -> String {
    if number == 1 { "a driver".into() } else { format!("{number} drivers") }
}

/// `a, b and c`; of many the first ones.
fn listed<T: AsRef<str>>(names: &[T]) -> String {
    const MOST: usize = 5;
    let texts: Vec<&str> = names.iter().take(MOST).map(AsRef::as_ref).collect();
    match (names.len(), texts.as_slice()) {
        (more, _) if more > MOST => format!("{} and {} more", texts.join(", "), more - MOST),
        (_, [before @ .., last]) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => texts.join(", "),
    }
}
