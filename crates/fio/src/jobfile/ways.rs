//! A client's mix of choices in the terms that fio has: a region, and for each direction a share of random offsets
//! and a split of sizes, all in whole percents.

use super::{Options, cannot};
use tidemark_block::job::{Action, Job};
use tidemark_load::engine::OpenError;
use tidemark_load::source::{Choice, Division, Order, Size};
use tidemark_measure::pick::{Part, Pick};

/// One client's mix.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Mix {
    /// The volume.
    pub(super) space: u64,
    /// Lowest and highest item.
    pub(super) items: (u64, u64),
    /// Reads, writes, trims.
    directions: [Direction; 3],
    /// `zipf` and its exponent, where random offsets are not equally likely.
    zipf: Option<f64>,
    /// A sync after this many writes.
    sync: Option<(Action, u32)>,
    /// What was rounded.
    pub(super) remarks: Vec<String>,
}

/// What is done in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
struct Direction {
    action: Option<u16>,
    weight: f64,
    random: f64,
    /// Bytes and weight of each size.
    sizes: Vec<(u64, f64)>,
}

impl Mix {
    /// The mix of the client `part`.
    pub(super) fn of(choices: &[Choice], job: &Job, part: Part) -> Result<Self, OpenError> {
        let mut mix: Option<Mix> = None;
        for choice in choices {
            let (space, items) = (space(choice, part)?, items(choice, part)?);
            let mix = mix.get_or_insert_with(|| Mix { space, items, ..Mix::default() });
            if (mix.space, mix.items) != (space, items) {
                return Err(cannot(
                    "let one client use different parts of a volume",
                    "use one volume per client",
                ));
            }
            mix.add(choice, job)?;
        }
        let mut mix = mix.ok_or_else(|| OpenError("the load does nothing".into()))?;
        mix.check(choices, job)?;
        Ok(mix)
    }

    fn add(&mut self, choice: &Choice, job: &Job) -> Result<(), OpenError> {
        let action = job.actions.get(usize::from(choice.action)).copied();
        let direction = match action {
            Some(Action::Read) => &mut self.directions[0],
            Some(Action::Write) => &mut self.directions[1],
            Some(Action::Trim) => &mut self.directions[2],
            _ => return Err(cannot("mix anything but reads, writes and trims", "remove the others")),
        };
        if direction.action.is_some_and(|other| other != choice.action) {
            return Err(cannot("distinguish two kinds of one direction", "use one label for them"));
        }
        let sizes = sizes(&choice.bytes)?;
        let random = choice.order == Order::Picked;
        if direction.weight > 0.0 && (direction.random > 0.0) != random {
            let same = |(own, other): (&(u64, f64), &(u64, f64))| own.0 == other.0;
            if direction.sizes.len() != sizes.len() || !direction.sizes.iter().zip(&sizes).all(same) {
                return Err(cannot(
                    "use different sizes for random and sequential operations",
                    "use one size",
                ));
            }
        }
        direction.action = Some(choice.action);
        direction.weight += choice.weight;
        direction.random += if random { choice.weight } else { 0.0 };
        for (bytes, share) in sizes {
            let weight = share * choice.weight;
            match direction.sizes.iter_mut().find(|(known, _)| *known == bytes) {
                Some((_, known)) => *known += weight,
                None => direction.sizes.push((bytes, weight)),
            }
        }
        if random {
            let zipf = match &choice.items {
                Pick::Uniform { .. } | Pick::Constant(_) => None,
                Pick::Zipf { exponent, .. } if *exponent != 1.0 => Some(*exponent),
                _ => {
                    return Err(cannot(
                        "choose offsets in this way",
                        "use uniform, or zipf with an exponent other than 1",
                    ));
                }
            };
            let mixed = direction.random > choice.weight && self.zipf != zipf;
            if mixed {
                return Err(cannot("choose offsets in two ways at once", "use one distribution"));
            }
            self.zipf = zipf;
        }
        Ok(())
    }

    fn check(&mut self, choices: &[Choice], job: &Job) -> Result<(), OpenError> {
        let [read, write, trim] = &self.directions;
        if trim.weight > 0.0 && (read.weight > 0.0 || write.weight > 0.0) {
            return Err(cannot("mix trims with reads or writes", "move the trims to a load of their own"));
        }
        let writes = |choice: &&Choice| job.actions.get(usize::from(choice.action)) == Some(&Action::Write);
        let mut follows = choices.iter().filter(writes).map(|choice| choice.follow);
        let follow = follows.next().flatten();
        if follows.any(|other| other != follow) || choices.iter().any(|c| c.follow.is_some() && !writes(&c)) {
            return Err(cannot("sync after some of the operations only", "sync after all writes or none"));
        }
        self.sync = match follow {
            None => None,
            Some(follow) => match job.actions.get(usize::from(follow.action)) {
                Some(action @ (Action::Fsync | Action::Fdatasync)) => Some((*action, follow.every.max(1))),
                _ => return Err(cannot("follow a write by anything but a sync", "remove it")),
            },
        };
        let shares = self.directions.iter().filter(|direction| direction.weight > 0.0);
        let random = shares.map(|direction| direction.random / direction.weight);
        let split = self.directions.iter().flat_map(Direction::fractions);
        let rough = self.shares().into_iter().chain(random).chain(split).find(|share| is_rough(*share));
        if let Some(share) = rough {
            self.remarks.push(format!(
                "fio supports only whole percents: shares such as {:.2} % of the mix were rounded.",
                share * 100.0
            ));
        }
        Ok(())
    }

    /// The share of reads, writes and trims, 0 to 1.
    pub(super) fn shares(&self) -> [f64; 3] {
        let total: f64 = self.directions.iter().map(|direction| direction.weight).sum();
        [0, 1, 2].map(|index: usize| self.directions[index].weight / total.max(f64::MIN_POSITIVE))
    }

    /// The options that say so.
    pub(super) fn write(&self, options: &mut Options, job: &Job) {
        let used = |index: usize| self.directions[index].weight > 0.0;
        let random = self.directions.iter().any(|direction| direction.random > 0.0);
        let name = match (used(0), used(1)) {
            (true, true) => "rw",
            (true, false) => "read",
            (false, true) => "write",
            (false, false) => "trim",
        };
        options.set("rw", format!("{}{name}", if random { "rand" } else { "" }));
        if used(0) && used(1) {
            options.set("rwmixread", percent(self.shares()[0]));
        }
        let shares = [0, 1, 2].map(|index: usize| match used(index) {
            true => percent(self.directions[index].random / self.directions[index].weight),
            false => 100,
        });
        if random && shares != [100; 3] {
            options.set("percentage_random", format!("{},{},{}", shares[0], shares[1], shares[2]));
        }
        if random {
            options.set("blockalign", job.unit);
        }
        if let Some(exponent) = self.zipf {
            options.set("random_distribution", format!("zipf:{exponent}"));
        }
        self.write_sizes(options);
        if let Some((action, every)) = self.sync {
            options.set(action.name(), every);
        }
    }

    fn write_sizes(&self, options: &mut Options) {
        let any = self.directions.iter().find(|direction| direction.weight > 0.0);
        let said = |index: usize| {
            let own = Some(&self.directions[index]).filter(|direction| direction.weight > 0.0).or(any);
            own.map(Direction::split).unwrap_or_default()
        };
        let all = [said(0), said(1), said(2)];
        let splits = all.iter().any(|split| split.len() > 1);
        let one = |split: &Vec<(u64, u64)>| match splits {
            true => {
                split.iter().map(|(bytes, share)| format!("{bytes}/{share}")).collect::<Vec<_>>().join(":")
            }
            false => split.first().map_or(0, |(bytes, _)| *bytes).to_string(),
        };
        let name = if splits { "bssplit" } else { "bs" };
        match all.iter().all(|split| *split == all[0]) {
            true => options.set(name, one(&all[0])),
            false => options.set(name, all.iter().map(one).collect::<Vec<_>>().join(",")),
        }
    }
}

impl Direction {
    /// The share of each size, 0 to 1.
    fn fractions(&self) -> impl Iterator<Item = f64> + '_ {
        let total: f64 = self.sizes.iter().map(|(_, weight)| weight).sum();
        self.sizes.iter().map(move |(_, weight)| weight / total.max(f64::MIN_POSITIVE))
    }

    /// Sizes in bytes and their shares in whole percents that add up to 100: the largest takes what is left over.
    fn split(&self) -> Vec<(u64, u64)> {
        let sizes = self.sizes.iter().map(|(bytes, _)| *bytes);
        let mut split: Vec<_> = sizes.zip(self.fractions().map(percent)).collect();
        let total: u64 = split.iter().map(|(_, share)| share).sum();
        if let Some((_, most)) = split.iter_mut().max_by_key(|(_, share)| *share) {
            *most = (*most + 100).saturating_sub(total);
        }
        split.retain(|(_, share)| *share > 0);
        split
    }
}

/// A share in whole percents.
pub(super) fn percent(share: f64) -> u64 {
    (share * 100.0).round() as u64
}

fn is_rough(share: f64) -> bool {
    (share * 100.0 - (share * 100.0).round()).abs() > 0.01
}

fn space(choice: &Choice, part: Part) -> Result<u64, OpenError> {
    let own = match choice.division {
        Division::Spaces => choice.spaces.divided(part),
        Division::None | Division::Items => Some(choice.spaces.clone()),
    };
    match own.map(|pick| pick.bounds()) {
        Some((low, high)) if low == high => Ok(low),
        Some(_) => Err(cannot("spread a client over several volumes", "use as many clients as volumes")),
        None => Err(OpenError(
            "there are more clients than volumes: use one volume per client, or one for all".into(),
        )),
    }
}

fn items(choice: &Choice, part: Part) -> Result<(u64, u64), OpenError> {
    let own = match choice.division {
        Division::Items => choice.items.divided(part),
        Division::None | Division::Spaces => Some(choice.items.clone()),
    };
    let own =
        own.ok_or_else(|| OpenError("there are more clients than blocks to share among them".into()))?;
    Ok(own.bounds())
}

/// Bytes and share of each size.
fn sizes(size: &Size) -> Result<Vec<(u64, f64)>, OpenError> {
    let bytes = |number: u64| number.saturating_mul(size.unit);
    match &size.pick {
        Pick::Constant(number) => Ok(vec![(bytes(*number), 1.0)]),
        Pick::Weighted(buckets) if buckets.iter().all(|bucket| bucket.low == bucket.high) => {
            let total = buckets.iter().map(|bucket| bucket.weight).sum::<u64>().max(1) as f64;
            Ok(buckets.iter().map(|bucket| (bytes(bucket.low), bucket.weight as f64 / total)).collect())
        }
        _ => Err(cannot("choose sizes from a range", "list the sizes and their shares")),
    }
}
