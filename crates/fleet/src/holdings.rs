//! What drivers use that others must not use as well: two never get the same.

use std::collections::HashMap;
use tidemark_measure::record::Note;
use tidemark_plan::engine::Holding;

/// So many of the things that a driver leaves behind are named.
const NAMED_MOST: usize = 4;

/// What a driver uses that others must not use as well.
pub(crate) struct Held {
    pub(crate) driver: String,
    /// What tells its machine from others.
    pub(crate) machine: String,
    pub(crate) holdings: Vec<Holding>,
}

/// Refuses what two drivers have that each should have for itself.
pub(crate) fn check_apart(held: &[Held]) -> Result<(), String> {
    let mut known: HashMap<(&str, &str), Vec<(&str, &Holding)>> = HashMap::new();
    for Held { driver, machine, holdings } in held {
        for holding in holdings {
            let machine = match (holding.is_local, machine.as_str()) {
                (false, _) => "",
                // A driver of which that is not known is taken for alone on its machine.
                (true, "") => driver.as_str(),
                (true, machine) => machine,
            };
            let others = known.entry((machine, holding.identity.as_str())).or_default();
            let collides =
                |(other, theirs): &&(&str, &Holding)| *other != driver.as_str() && theirs.collides(holding);
            if let Some((other, theirs)) = others.iter().find(collides) {
                let (one, name) = (&theirs.name, &holding.name);
                let what = match one == name {
                    true => format!("{name} is one and the same for the drivers {other} and {driver}"),
                    false => {
                        format!("{one} of driver {other} and {name} of driver {driver} are one and the same")
                    }
                };
                return Err(format!(
                    "{what}, and each needs a volume of its own: put `{{driver}}` into the names of the volumes, which stands for the driver's \
                     name, or use drivers on different machines"
                ));
            }
            // However often a driver names one thing, it is compared with no more than a few of each driver's.
            let is_known = |(other, theirs): &(&str, &Holding)| {
                *other == driver.as_str() && (theirs.changes, theirs.each) == (holding.changes, holding.each)
            };
            if !others.iter().any(is_known) {
                others.push((driver.as_str(), holding));
            }
        }
    }
    Ok(())
}

/// That a lost driver does not clean up what it has of its own, and what that is.
pub(crate) fn left_behind(driver: &str, host: &str, holdings: &[Holding]) -> Note {
    let mut names: Vec<&str> =
        holdings.iter().filter(|one| one.each && one.removes).map(|one| one.name.as_str()).collect();
    names.dedup();
    let more = match names.len().saturating_sub(NAMED_MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(NAMED_MOST);
    let text = format!(
        "Driver {driver} is lost, so what it has of its own was not cleaned up: {}{more}. Remove it on its machine ({host}), or start the driver \
         again and run a `cleanup` on it.",
        names.join(", ")
    );
    Note { topic: "not-cleaned".into(), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lost_driver_leaves_behind_is_named_once_and_shortly() {
        let one = |number: u32, identity: &str| Holding {
            name: format!("/v-{number}"),
            identity: identity.into(),
            is_local: true,
            changes: true,
            removes: number > 0,
            each: true,
        };
        let said = |holdings: &[Holding]| left_behind("d", "h", holdings).text;
        // A loop device is its file as well.
        let few = said(&[one(0, "a"), one(1, "b"), one(1, "c"), one(2, "d")]);
        assert!(few.contains("not cleaned up: /v-1, /v-2. Remove it on its machine (h)"), "{few}");
        let many = said(&(1..=6).map(|number| one(number, "x")).collect::<Vec<_>>());
        assert!(many.contains("/v-1, /v-2, /v-3, /v-4 and 2 more. "), "{many}");
    }

    #[test]
    fn two_drivers_are_told_apart_by_what_they_hold() {
        let held = |driver: &str, machine: &str, identity: &str, changes, each| Held {
            driver: driver.into(),
            machine: machine.into(),
            holdings: vec![Holding {
                name: format!("/v-{driver}"),
                identity: identity.into(),
                is_local: identity != "image",
                changes,
                removes: false,
                each,
            }],
        };
        let check = |one: Held, other: Held| check_apart(&[one, other]);
        let refused =
            check(held("a", "m", "8:1", true, true), held("b", "m", "8:1", false, true)).unwrap_err();
        assert!(
            refused.starts_with("/v-a of driver a and /v-b of driver b are one and the same"),
            "{refused}"
        );
        assert!(check(held("a", "m", "image", true, true), held("b", "n", "image", true, true)).is_err());
        for (one, other) in [
            (held("a", "m", "8:1", true, true), held("b", "n", "8:1", true, true)),
            (held("a", "", "8:1", true, true), held("b", "", "8:1", true, true)),
            (held("a", "m", "8:1", true, true), held("b", "m", "8:2", true, true)),
            (held("a", "m", "8:1", false, true), held("b", "m", "8:1", false, true)),
            (held("a", "m", "8:1", true, false), held("b", "m", "8:1", true, false)),
        ] {
            assert_eq!(check(one, other), Ok(()));
        }
    }
}
