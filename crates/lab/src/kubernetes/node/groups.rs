//! The control groups of a lab's node: all of its processes are in them, whoever started them, so none is missed at the end.
//!
//! Version 1 has a tree for each controller, version 2 one for all; in each, the lab has one group with those of its daemons and
//! of its pods below it.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::error::LabError;
use crate::home::Home;
use crate::process::Process;

/// Where control groups are.
const ROOT: &str = "/sys/fs/cgroup";
/// What every control group has: the numbers of its processes.
const MEMBERS: &str = "cgroup.procs";
/// The group of the daemons, beside those of the pods.
const DAEMONS: &str = "daemons";
/// How long the kernel may take to end the processes and to let go of their groups.
const ENDING: Duration = Duration::from_secs(30);
/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// The groups of one lab.
pub(super) struct Groups {
    name: String,
}

impl Groups {
    /// Those of a lab, made or not. They are those of its first node, too, and above those of the others.
    pub(super) fn of(home: &Home) -> Self {
        Self { name: home.mark() }
    }

    /// Those of a node.
    pub(super) fn of_node(home: &Home, number: usize) -> Self {
        match number {
            0 => Self::of(home),
            _ => Self { name: format!("{}/{}", home.mark(), super::name(number)) },
        }
    }

    /// The name of the group, as kubelet takes it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Makes them, unless they are there, and returns the file that takes the number of a process that is to be one of the daemons.
    pub(super) fn make(&self) -> Result<PathBuf, LabError> {
        let mut members = None;
        for tree in trees() {
            let daemons = tree.join(&self.name).join(DAEMONS);
            fs::create_dir_all(&daemons).map_err(LabError::file("create", &daemons))?;
            // In version 1, groups of `cpuset` take processes only when they have been given processors.
            if !tree.ends_with("cpuset") {
                members = Some(daemons.join(MEMBERS));
            }
        }
        members.ok_or_else(|| {
            LabError::file("find control groups in", ROOT)(std::io::Error::from(ErrorKind::NotFound))
        })
    }

    /// Kills all processes in the groups, and removes the groups.
    pub(super) fn remove(&self) -> Result<(), LabError> {
        let deadline = Instant::now() + ENDING;
        for tree in trees() {
            let group = tree.join(&self.name);
            loop {
                self.kill(&group)?;
                match remove_tree(&group) {
                    Err(error) if error.kind() == ErrorKind::NotFound => break,
                    Err(_) if Instant::now() < deadline => thread::sleep(PAUSE),
                    removed => {
                        removed.map_err(LabError::file("remove", &group))?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn kill(&self, group: &Path) -> Result<(), LabError> {
        for pid in members(group) {
            let failed = LabError::file("end the processes of", group);
            // Pinned before it is looked at, so that the process that is killed is the one that was seen.
            Process::pinned(pid, || self.has(pid))
                .and_then(|process| match process {
                    Some(process) => process.signal(Signal::KILL),
                    None => Ok(()),
                })
                .map_err(failed)?;
        }
        Ok(())
    }

    /// Whether a process is in one of the groups.
    fn has(&self, pid: u32) -> bool {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        text.lines().any(|line| line.splitn(3, ':').nth(2).is_some_and(|path| self.is_above(path)))
    }

    fn is_above(&self, path: &str) -> bool {
        let below = path.strip_prefix('/').and_then(|path| path.strip_prefix(self.name.as_str()));
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }
}

/// The root of every tree of control groups.
fn trees() -> BTreeSet<PathBuf> {
    let is_tree = |path: &PathBuf| path.join(MEMBERS).exists();
    let entries = fs::read_dir(ROOT).into_iter().flatten().flatten();
    let root = PathBuf::from(ROOT);
    if is_tree(&root) {
        return BTreeSet::from([root]);
    }
    // Some controllers share a tree, which then has further names.
    entries.filter_map(|entry| entry.path().canonicalize().ok()).filter(is_tree).collect()
}

/// The processes in a group and below it. A group that is gone has none.
fn members(group: &Path) -> Vec<u32> {
    let text = fs::read_to_string(group.join(MEMBERS)).unwrap_or_default();
    let own = text.lines().filter_map(|line| line.parse().ok());
    own.chain(below(group).iter().flat_map(|group| members(group))).collect()
}

fn remove_tree(group: &Path) -> std::io::Result<()> {
    for group in below(group) {
        match remove_tree(&group) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir(group)
}

fn below(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_belongs_to_one_lab() {
        let groups = Groups { name: "tidemark%2Fa".to_owned() };
        assert!(groups.is_above("/tidemark%2Fa") && groups.is_above("/tidemark%2Fa/kubepods/pod1/x"));
        assert!(
            !groups.is_above("/tidemark%2Fab")
                && !groups.is_above("/")
                && !groups.is_above("/x/tidemark%2Fa")
        );
        assert!(!groups.has(std::process::id()));
    }

    #[test]
    fn a_group_has_all_processes_below_it() {
        let place = tempfile::tempdir().unwrap();
        let group = place.path().join("lab");
        for (name, members) in [("", "1\n2\n"), ("daemons", ""), ("kubepods/pod", "30\n")] {
            fs::create_dir_all(group.join(name)).unwrap();
            fs::write(group.join(name).join(MEMBERS), members).unwrap();
        }
        let mut found = super::members(&group);
        found.sort_unstable();
        assert_eq!(found, [1, 2, 30]);
        assert_eq!(super::members(&place.path().join("none")), [] as [u32; 0]);
    }
}
