//! What an operation of a plan does, in words: the same on the command line and in the console.

use super::{Action, Amount, Work};
use tidemark_measure::units;

impl Work {
    /// Its operations in words, with their share where there are several: `get 70 %: reads 20 objects, 2.00 MB`; each with
    /// the names of what it touches. Many in a row that do the same are one line.
    pub fn operations(&self) -> Vec<(String, &str)> {
        let share = |action: &Action| match (self.actions.len(), action.ratio) {
            (0 | 1, _) => String::new(),
            (_, ratio) if ratio > 0.0 => format!(" {} %", (ratio * 100.0).round() / 100.0),
            _ => String::new(),
        };
        let told = |action: &Action| format!("{}: {}", share(action), action.describe());
        let alike = |one: &Action, next: &Action| told(one) == told(next) && one.names == next.names;
        let lines = self.actions.chunk_by(alike).flat_map(|group| {
            let (does, names) = (told(&group[0]), &*group[0].names);
            match group {
                [first, .., last] if group.len() > MOST_ALIKE => {
                    let count = units::count(group.len() as u64);
                    vec![(format!("{count} kinds, {} to {}, each{does}", first.label, last.label), names)]
                }
                few => few.iter().map(|one| (format!("{}{does}", one.label), names)).collect(),
            }
        });
        lines.collect()
    }
}

/// Operations in a row that do the same, and have a line each.
const MOST_ALIKE: usize = 5;

impl Action {
    /// What it does, to how much, in how many operations: `reads 10 objects (150 MB), 50.0 MB, in 10 operations`. In
    /// parentheses stands how much is stored of these, behind the comma how much is moved.
    pub fn describe(&self) -> String {
        let (verb, object) = self.does.code.rsplit_once('_').unwrap_or((self.does.code, self.does.counts));
        let verb = verb.replace('_', " ");
        let thing = singular(object);
        let thing = thing.as_str();
        let counts = self.does.counts;
        let mut text = match self.count {
            // The name says what is counted: `reads objects`.
            count if counts.is_empty() || counts == thing => format!("{verb} {}", counted(count, thing)),
            Amount::Open => format!("{verb} {object}"),
            count => format!("{verb} {object} of {}", counted(count, counts)),
        };
        if !matches!(self.held, Amount::Open | Amount::Exactly(0)) && self.held != self.bytes {
            text += &format!(" ({})", self.held.describe(units::bytes));
        }
        if self.does.moves_bytes && !matches!(self.bytes, Amount::Open | Amount::Exactly(0)) {
            text += &format!(", {}", self.bytes.describe(units::bytes));
        }
        match self.operations {
            Amount::Open => text + ", in as many operations as the target allows",
            // One operation for each thing.
            operations if operations == self.count && (counts.is_empty() || counts == thing) => text,
            operations => format!("{text}, in {}", counted(operations, "operation")),
        }
    }
}

/// One of what the end of a code names: `object` of `objects`, `query` of `queries`.
fn singular(things: &str) -> String {
    match things.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => things.strip_suffix('s').unwrap_or(things).to_owned(),
    }
}

/// A number of things: `1 object`, `up to 500 objects`, `objects`.
fn counted(amount: Amount, thing: &str) -> String {
    match amount {
        Amount::Exactly(1) => format!("1 {thing}"),
        Amount::Open => plural(thing),
        amount => format!("{} {}", amount.describe(units::count), plural(thing)),
    }
}

fn plural(thing: &str) -> String {
    match thing.strip_suffix("ry") {
        Some(stem) => format!("{stem}ries"),
        None => format!("{thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::{Does, Time};
    use crate::plan::WorkKind;
    use Amount::{Exactly, Open, UpTo};
    use tidemark_measure::think::Think;

    fn words(code: &'static str, counts: &'static str, amounts: [Amount; 3]) -> String {
        let [count, operations, bytes] = amounts;
        let does = Does { code, counts, moves_bytes: true };
        Action {
            label: String::new(),
            ratio: 100.0,
            does,
            names: String::new(),
            operations,
            count,
            held: Open,
            bytes,
        }
        .describe()
    }

    #[test]
    fn many_that_do_the_same_are_one_line() {
        let does = Does { code: "runs_queries", counts: "", moves_bytes: false };
        let query = |number: usize| Action {
            label: format!("q{number}"),
            ratio: 12.5,
            does,
            names: String::new(),
            operations: Exactly(2),
            count: Exactly(2),
            held: Open,
            bytes: Exactly(0),
        };
        let work = |actions| Work {
            name: "power".into(),
            kind: WorkKind::Normal,
            target: String::new(),
            workers: 1,
            depth: 1,
            connections: None,
            think: Think::default(),
            time: Time::default(),
            actions,
        };
        let told = |work: Work| work.operations().into_iter().map(|(line, _)| line).collect::<Vec<_>>();
        assert_eq!(
            told(work((1..=8).map(query).collect())),
            ["8 kinds, q1 to q8, each 12.5 %: runs 2 queries"]
        );
        assert_eq!(told(work((1..=2).map(query).collect()))[1], "q2 12.5 %: runs 2 queries");
        let once = Action { operations: Exactly(1), count: Exactly(1), ..query(1) };
        assert_eq!(told(work(vec![once])), ["q1: runs 1 query"]);
    }

    #[test]
    fn actions_are_described() {
        let objects = |amounts| words("reads_objects", "", amounts);
        assert_eq!(objects([Exactly(20), Exactly(20), Exactly(2_000_000)]), "reads 20 objects, 2.00 MB");
        assert_eq!(objects([Exactly(1), Exactly(9), Exactly(0)]), "reads 1 object, in 9 operations");
        assert_eq!(
            objects([UpTo(8), Open, UpTo(131_000_000)]),
            "reads up to 8 objects, up to 131 MB, in as many operations as the target allows"
        );
        assert_eq!(objects([Open, UpTo(7), Open]), "reads objects, in up to 7 operations");
        let blocks = |amounts| words("writes_blocks", "volume", amounts);
        assert_eq!(
            blocks([Exactly(2), Exactly(1), Exactly(4096)]),
            "writes blocks of 2 volumes, 4.10 kB, in 1 operation"
        );
        assert_eq!(words("removes_volumes", "volume", [Exactly(2), Exactly(2), Open]), "removes 2 volumes");
        assert_eq!(words("sleeps", "nap", [Exactly(2), Exactly(5), Open]), "sleeps 2 naps, in 5 operations");
    }
}
