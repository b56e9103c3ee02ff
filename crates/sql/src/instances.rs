//! The databases of a work: one, or several instances that are loaded and run together.
//!
//! Each client of a load belongs to one instance for good: slot `s` of a work to instance `s` modulo their number, on whichever
//! thread or driver it is. All begin at the load core's one start and are measured in its one window, so that what they did
//! together is a sum. What the load does to one of them, it does to all: the same data set, the same workload, as many clients.

use crate::job::Target;
use serde::{Deserialize, Serialize};

/// Databases that are asked at the same time before and after a load.
const AT_ONCE: usize = 64;

/// Instances that are named one by one where all are meant.
const NAMED: usize = 4;

/// One database, or several of the same kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instances {
    first: Target,
    others: Vec<Target>,
}

impl From<Target> for Instances {
    fn from(first: Target) -> Self {
        Self { first, others: Vec::new() }
    }
}

impl Instances {
    /// The first one and the others. They differ in where they are, and in nothing else.
    pub fn new(first: Target, others: Vec<Target>) -> Self {
        Self { first, others }
    }

    /// The first one; what all have in common is what it has.
    pub fn first(&self) -> &Target {
        &self.first
    }

    /// How many there are: at least one.
    pub fn count(&self) -> usize {
        self.others.len() + 1
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Target> + Clone {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The first so many of them.
    #[must_use]
    pub fn at_most(mut self, count: usize) -> Self {
        self.others.truncate(count.saturating_sub(1));
        self
    }

    /// Short names, each different: the address, and the database where that differs.
    pub fn names(&self) -> Vec<String> {
        let same_database = self.iter().all(|target| target.database == self.first.database);
        let name = |target: &Target| match same_database {
            true => target.places(),
            false => format!("{}/{}", target.places(), target.database),
        };
        self.iter().map(name).collect()
    }

    /// All in a few words: `4 instances of PostgreSQL at 10.0.0.1:5432, ...`.
    pub fn describe(&self) -> String {
        let names = self.names();
        let listed = match names.as_slice() {
            [_] => return self.first.describe(),
            names if names.len() <= NAMED => names.join(", "),
            [first, second, .., last] => format!("{first}, {second} ... {last}"),
            _ => String::new(),
        };
        format!("{} instances of {} at {listed}", names.len(), self.first.dialect.name())
    }
}

/// Does the same with each of some databases, many at a time; the results are in their order.
pub(crate) fn together<I: Sync, T: Send>(all: &[I], act: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let act = &act;
    let some = |some: &[I]| -> Vec<T> {
        std::thread::scope(|scope| {
            let handles: Vec<_> = some.iter().map(|one| scope.spawn(move || act(one))).collect();
            let join = |handle: std::thread::ScopedJoinHandle<'_, T>| {
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            handles.into_iter().map(join).collect()
        })
    };
    match all {
        [only] => vec![act(only)],
        _ => all.chunks(AT_ONCE).flat_map(some).collect(),
    }
}

/// The same with what may go wrong: all that did is said, database by database.
///
/// # Errors
/// What went wrong, in one text.
pub(crate) fn try_together<I: Sync, T: Send>(
    all: &[I],
    act: impl Fn(&I) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let (mut done, mut wrong) = (Vec::new(), Vec::new());
    for one in together(all, act) {
        match one {
            Ok(one) => done.push(one),
            Err(why) => wrong.push(why),
        }
    }
    match wrong.len() {
        0 => Ok(done),
        1..=NAMED => Err(wrong.join("; ")),
        count => {
            let more = count - NAMED;
            Err(format!("{}; and {more} more of {}", wrong[..NAMED].join("; "), all.len()))
        }
    }
}

/// What is said of each of some databases, all at once where it is the same.
pub(crate) fn summed_up(names: &[String], said: &[String]) -> String {
    match said {
        [only] => only.clone(),
        [first, others @ ..] if others.iter().all(|other| other == first) => {
            format!("in each of {} instances: {first}", said.len())
        }
        _ => {
            let each = names.iter().zip(said).map(|(name, said)| format!("{name}: {said}"));
            each.collect::<Vec<_>>().join("; ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Endpoint;
    use crate::testing::{Answer, Fake};

    fn several(count: u16) -> Instances {
        let first = Fake::new(|_| Answer::Fine).target;
        let at = |port| Target { endpoints: vec![Endpoint::Tcp("h".into(), port)], ..first.clone() };
        Instances::new(at(1), (2..=count).map(at).collect())
    }

    #[test]
    fn names_say_what_differs() {
        assert_eq!(several(2).names(), ["h:1", "h:2"]);
        assert_eq!(several(1).describe(), "PostgreSQL at h:1, database d");
        assert_eq!(several(3).describe(), "3 instances of PostgreSQL at h:1, h:2, h:3");
        assert_eq!(several(9).describe(), "9 instances of PostgreSQL at h:1, h:2 ... h:9");
        assert_eq!(several(9).at_most(2).names(), ["h:1", "h:2"]);
        assert_eq!(several(2).at_most(7).count(), 2);
        let first = several(1).first().clone();
        let other = Target { database: "e".into(), ..first.clone() };
        assert_eq!(Instances::new(first, vec![other]).names(), ["h:1/d", "h:1/e"]);
    }

    #[test]
    fn many_are_asked_at_once_and_answer_in_order() {
        let all: Vec<u32> = (0..150).collect();
        assert_eq!(together(&all, |one| one * 2), (0..150).map(|one| one * 2).collect::<Vec<_>>());
        let wrong = |least: u32| {
            move |one: &u32| if *one < least { Ok(*one) } else { Err(format!("{one} is broken")) }
        };
        assert_eq!(try_together(&all, wrong(150)).map(|done| done.len()), Ok(150));
        assert_eq!(try_together(&all, wrong(148)).unwrap_err(), "148 is broken; 149 is broken");
        let many = try_together(&all, wrong(100)).unwrap_err();
        assert!(many.ends_with("103 is broken; and 46 more of 150"), "{many}");
    }

    #[test]
    fn what_is_the_same_everywhere_is_said_once() {
        let names = ["a".to_owned(), "b".to_owned()];
        let said = |one: &str, other: &str| summed_up(&names, &[one.into(), other.into()]);
        assert_eq!(said("kept", "kept"), "in each of 2 instances: kept");
        assert_eq!(said("kept", "loaded"), "a: kept; b: loaded");
        assert_eq!(summed_up(&names[..1], &["kept".into()]), "kept");
    }
}
