//! What this process itself takes.

use rustix::param::{clock_ticks_per_second, page_size};

/// What this process takes; zeros where the system does not tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Process {
    /// Processor time so far.
    pub(super) cpu_seconds: f64,
    /// Memory that is in use.
    pub(super) memory_bytes: u64,
}

/// Reads `/proc/self`.
pub(super) fn read() -> Process {
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    parse(&text("/proc/self/stat"), &text("/proc/self/statm"))
}

fn parse(stat: &str, statm: &str) -> Process {
    // The command's name may hold anything; what follows its closing bracket is numbers. User and system time are fields 14
    // and 15 of proc_pid_stat(5), where the name is field 2.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    Process {
        cpu_seconds: ticks as f64 / clock_ticks_per_second() as f64,
        memory_bytes: pages.saturating_mul(page_size() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_whatever_the_command_is_called() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 250 150 0 0 20 0 3 0 100 200 300";
        let process = parse(stat, "900 40 10 1 0 30 0");
        assert_eq!(process.cpu_seconds, 400.0 / clock_ticks_per_second() as f64);
        assert_eq!(process.memory_bytes, 40 * page_size() as u64);
        assert_eq!(parse("", "").memory_bytes, 0);
    }
}
