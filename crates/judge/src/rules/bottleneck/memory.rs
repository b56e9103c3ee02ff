//! Memory: of a control group, or of the whole node.

use super::View;
use crate::words::limits::Limit;
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;

/// Pages per second read back from disks, above which memory is short: a disk that rotates does little more.
const MAJOR_FAULTS: f64 = 100.0;

/// Time in which some task waited for memory.
const PRESSURE: f64 = 0.1;

/// Bytes per second read from swap, or given back and read again.
const READ_AGAIN: f64 = 1e6;

/// Times per second that a group was at its limit: it may be there all the time without harm, for page cache fills it.
const HITS: f64 = 1.0;

/// Whether the control group of an observed process was at its limit, and the process the worse for it.
pub(super) fn group(view: &View<'_>) -> Vec<Finding> {
    let of = |(process, limit): (&str, f64)| {
        let level = |metric| view.level(Kind::Cgroup, process, metric);
        let (hits, read_again) = (level("memory_limit_hits"), level("refault_bytes"));
        let pressure = level("memory_pressure");
        let faults = view.level(Kind::Process, process, "major_faults");
        let suffers = read_again >= READ_AGAIN || faults >= MAJOR_FAULTS || pressure >= PRESSURE;
        let (process, used) = (process.to_owned(), level("memory_used"));
        (hits >= HITS && suffers).then_some(Limit::GroupMemory {
            process,
            hits,
            read_again,
            faults,
            pressure,
            used,
            limit,
        })
    };
    let found = view.means(Kind::Cgroup, "memory_limit").into_iter().filter_map(of);
    found.map(|limit| view.caused(limit)).collect()
}

/// Whether the node's memory was short, and no group's limit is why.
pub(super) fn node(view: &View<'_>) -> Vec<Finding> {
    let faults = view.level(Kind::Memory, "node", "major_faults");
    let swapped = view.level(Kind::Memory, "node", "swap_in");
    let pressure = view.level(Kind::Pressure, "memory", "some");
    let short = faults >= MAJOR_FAULTS || swapped >= READ_AGAIN || pressure >= PRESSURE;
    if !short || !group(view).is_empty() {
        return Vec::new();
    }
    let available = view.level(Kind::Memory, "node", "available");
    // Waits of the node's tasks are nobody's in particular; pages are.
    let own: f64 = view.means(Kind::Process, "major_faults").iter().map(|(_, faults)| faults).sum();
    let share = (faults >= MAJOR_FAULTS).then(|| own / faults);
    let what = Limit::Memory { faults, swapped, pressure, available };
    vec![view.busy(Severity::Warning, what, view.standing(share))]
}
