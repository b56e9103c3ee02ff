//! The processes that put the load on: this one, and the programs of Tidemark that it has started for some of its works.
//!
//! They are one generator to whoever judges a run, so what they use is added up under one name.

use crate::sample::{Sample, Value};
use std::fs;
use tidemark_measure::observation::{Kind, OWN};

/// What the names of programs begin with that this process starts for its works: `tidemark-lake`.
const HELPERS: &str = "tidemark-";

/// Metrics of a process of which several processes have the largest, and not the sum.
const LARGEST: [&str; 2] = ["busiest_thread", "allowed"];

/// The programs that this process has started for its works and that still run (`/proc/PID/stat`, proc(5)).
pub(crate) fn helpers() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = format!(" {} ", std::process::id());
    let is_helper = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name is in parentheses, and may have any of them in it; the state and the parent follow.
        let Some((name, rest)) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')) else {
            return false;
        };
        name.starts_with(HELPERS) && rest.get(2..).is_some_and(|rest| rest.starts_with(&parent))
    };
    pids.filter(is_helper).collect()
}

/// Adds up what the processes have that are this one to whoever judges the run.
pub(crate) fn add_up(out: &mut Sample) {
    let mut sums: Vec<Value> = Vec::new();
    out.values.retain(|value| {
        if value.kind != Kind::Process || value.subject != OWN {
            return true;
        }
        match sums.iter_mut().find(|sum| sum.metric == value.metric) {
            Some(sum) if LARGEST.contains(&&*value.metric) => sum.value = sum.value.max(value.value),
            Some(sum) => sum.value += value.value,
            None => sums.push(value.clone()),
        }
        false
    });
    out.values.append(&mut sums);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_beside_this_one_counts_as_this_one() {
        let mut out = Sample { seconds: Some(1.0), values: Vec::new() };
        for (subject, cpu, busiest) in [(OWN, 0.5, 0.4), ("ceph-osd.1", 7.0, 0.9), (OWN, 1.25, 0.8)] {
            out.put(Kind::Process, subject, "cpu", cpu);
            out.put(Kind::Process, subject, "busiest_thread", busiest);
        }
        add_up(&mut out);
        let of = |subject: &str, metric: &str| -> Vec<f64> {
            let own = |value: &&Value| value.subject == subject && value.metric == metric;
            out.values.iter().filter(own).map(|value| value.value).collect()
        };
        assert_eq!(of(OWN, "cpu"), [1.75]);
        assert_eq!(of(OWN, "busiest_thread"), [0.8]);
        assert_eq!(of("ceph-osd.1", "cpu"), [7.0], "of others there is nothing to add up");
    }

    #[test]
    fn a_child_is_found_by_its_name_for_as_long_as_it_runs() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("tidemark-sleeps");
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = helpers();
        assert!(found.contains(&child.id()) && !found.contains(&other.id()), "{found:?}");
        for child in [&mut child, &mut other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(!helpers().contains(&child.id()));
    }
}
