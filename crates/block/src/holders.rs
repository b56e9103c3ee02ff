//! Who uses a block device or a file: mounts, swap, other devices, programs; at any height of the [`Stack`] in which data are shared.

use crate::identity::Identity;
use crate::mounts::Layered;
use crate::stack::Stack;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// A use under which nothing may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    used: Used,
    how: How,
}

/// What is used; devices by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Used {
    Itself,
    Partition(String),
    /// A device that it lies on.
    Below(String),
    /// A loop device that shows the same data.
    Beside(String),
}

/// How something is used.
#[derive(Clone, Debug, PartialEq, Eq)]
enum How {
    Mounted(String),
    Swap,
    /// It is a part of this device.
    Part(String),
    /// This loop device lies on it.
    Loop(String),
    /// Somebody has opened it and wants to be the only one.
    Exclusively,
}

impl User {
    /// Of a device that somebody has opened and wants to be the only one: a mount in another namespace, a server's store.
    pub(crate) const EXCLUSIVE: Self = Self { used: Used::Itself, how: How::Exclusively };
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.used {
            Used::Itself => write!(f, "it ")?,
            Used::Partition(name) => write!(f, "its partition {name} ")?,
            Used::Below(name) => write!(f, "{name}, on which it lies, ")?,
            Used::Beside(name) => write!(f, "/dev/{name}, which shows the same data, ")?,
        }
        match &self.how {
            How::Mounted(place) => write!(f, "is mounted at {place}"),
            How::Swap => write!(f, "is used as swap space"),
            How::Part(name) => write!(f, "is part of {name}"),
            How::Loop(name) => write!(f, "is behind /dev/{name}"),
            How::Exclusively => write!(f, "is used exclusively by another program on this machine"),
        }
    }
}

/// Whether any file of this machine is in use in a way that [`of_file`] finds.
pub(crate) fn are_files_in_use(stack: &Stack) -> bool {
    !stack.loops().is_empty()
        || !stack.swaps().is_empty()
        || stack
            .mounts()
            .iter()
            .any(|mount| mount.source().is_some_and(|source| !matches!(source, Identity::Device(_))))
}

/// Who uses the file at a path; the first that is found.
pub(crate) fn of_file(stack: &Stack, path: &Path) -> Option<User> {
    let identity = Identity::of(path)?;
    let mounts = stack.mounts();
    let swap = stack.swaps().contains(&identity).then_some(How::Swap);
    // Some file systems (EROFS) are mounted from a file without a loop device.
    let mounted = || {
        let of_it = mounts.iter().find(|mount| mount.source().as_ref() == Some(&identity))?;
        Some(How::Mounted(of_it.place.display().to_string()))
    };
    let looped = || {
        let own = Layered::new(identity.clone(), path, &mounts);
        let is_it = |(number, behind): &(u64, Identity)| {
            let named = stack.backing_path(*number).unwrap_or_default();
            Layered::new(behind.clone(), &named, &mounts).is_same(&own)
        };
        Some(How::Loop(stack.name(stack.loops().into_iter().find(is_it)?.0)))
    };
    let how = swap.or_else(mounted).or_else(looped)?;
    Some(User { used: Used::Itself, how })
}

/// Who uses the device with this number, or what shares data with it; the first that is found. With `is_held`, the caller is the one who
/// has it open exclusively.
pub(crate) fn of_device(stack: &Stack, number: u64, is_held: bool) -> Option<User> {
    let held = is_held.then_some(number);
    Look { stack, loops: stack.loops(), swaps: stack.swaps(), held }.all_around(number)
}

/// How a device lies below another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// It is the disk of a partition.
    Disk,
    /// It is one of those that the other is made of: the rest of it may be somebody else's.
    Part,
    /// All of it is behind a loop device.
    Behind,
}

/// What is the same for all devices that are looked at.
struct Look<'a> {
    stack: &'a Stack,
    loops: Vec<(u64, Identity)>,
    swaps: Vec<Identity>,
    /// The device that the caller has open exclusively.
    held: Option<u64>,
}

impl Look<'_> {
    fn all_around(&self, number: u64) -> Option<User> {
        if let Some(user) = self.above(number) {
            return Some(user);
        }
        let below = self.below(number);
        // What led down to a device is no use of it.
        let known: BTreeSet<u64> = below.iter().map(|(device, _)| *device).chain([number]).collect();
        let uses = below.iter().find_map(|(device, relation)| {
            let name = self.stack.name(*device);
            let mine = |how| User { used: Used::Below(name.clone()), how };
            let held = || self.held(*device, &known).filter(|_| *relation != Relation::Part);
            let own = self.mounted(*device).or_else(held);
            let own = own.or_else(|| self.exclusively(*device).filter(|_| *relation == Relation::Behind));
            own.map(mine).or_else(|| self.on_partitions(*device).filter(|_| *relation == Relation::Behind))
        });
        uses.or_else(|| {
            let behind = known.iter().filter_map(|one| self.behind(*one));
            let shared: Vec<Identity> =
                behind.chain(below.iter().map(|(one, _)| Identity::Device(*one))).collect();
            let mut peers =
                self.loops.iter().filter(|(one, behind)| shared.contains(behind) && !known.contains(one));
            peers.find_map(|(peer, _)| {
                let User { how, .. } = self.above(*peer)?;
                Some(User { used: Used::Beside(self.stack.name(*peer)), how })
            })
        })
    }

    /// Who uses a device or its partitions.
    fn above(&self, number: u64) -> Option<User> {
        let how = self.mounted(number).or_else(|| self.held(number, &BTreeSet::new()));
        let itself = |how| User { used: Used::Itself, how };
        how.map(itself)
            .or_else(|| self.on_partitions(number))
            .or_else(|| self.looped(number).or_else(|| self.exclusively(number)).map(itself))
    }

    fn on_partitions(&self, number: u64) -> Option<User> {
        self.stack.partitions(number).into_iter().find_map(|part| {
            let how = self.mounted(part).or_else(|| self.held(part, &BTreeSet::new()));
            let how = how.or_else(|| self.looped(part))?;
            Some(User { used: Used::Partition(self.stack.name(part)), how })
        })
    }

    /// All devices below one, and how each lies below the next.
    fn below(&self, number: u64) -> Vec<(u64, Relation)> {
        let mut found: Vec<(u64, Relation)> = Vec::new();
        let mut next = vec![number];
        while let Some(device) = next.pop() {
            let disk = self.stack.disk(device).map(|disk| (disk, Relation::Disk));
            let behind = match self.behind(device) {
                Some(Identity::Device(behind)) => Some((behind, Relation::Behind)),
                _ => None,
            };
            let parts = self.stack.slaves(device).into_iter().map(|part| (part, Relation::Part));
            for one in disk.into_iter().chain(behind).chain(parts) {
                if !found.contains(&one) {
                    found.push(one);
                    next.push(one.0);
                }
            }
        }
        found
    }

    fn behind(&self, number: u64) -> Option<Identity> {
        self.loops.iter().find(|(one, _)| *one == number).map(|(_, behind)| behind.clone())
    }

    fn mounted(&self, number: u64) -> Option<How> {
        let swap = || self.swaps.contains(&Identity::Device(number)).then_some(How::Swap);
        self.stack.mount(number).map(How::Mounted).or_else(swap)
    }

    /// The device that has this one as a part, but for those that are known.
    fn held(&self, number: u64, known: &BTreeSet<u64>) -> Option<How> {
        let holder = self.stack.holders(number).into_iter().find(|holder| !known.contains(holder))?;
        Some(How::Part(self.stack.name(holder)))
    }

    fn looped(&self, number: u64) -> Option<How> {
        let (on_it, _) = self.loops.iter().find(|(_, behind)| *behind == Identity::Device(number))?;
        Some(How::Loop(self.stack.name(*on_it)))
    }

    fn exclusively(&self, number: u64) -> Option<How> {
        if self.held == Some(number) {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
        let opened = open(self.stack.node(number)?, flags, Mode::empty());
        matches!(opened, Err(Errno::BUSY)).then_some(How::Exclusively)
    }
}

#[cfg(test)]
mod tests;
