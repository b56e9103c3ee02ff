//! Which process carries out a run, and whether it still lives.
//!
//! A process is named by its boot, number and start time, so that neither a reboot nor a reused number is mistaken
//! for it. Without `/proc`, a run counts as in progress.

use std::fs::read_to_string;

/// The name of this process; empty if the system does not tell it.
pub(crate) fn this_process() -> String {
    let pid = std::process::id();
    boot().zip(start_of(pid)).map(|(boot, start)| format!("{boot} {pid} {start}")).unwrap_or_default()
}

/// Whether the process of this name still lives.
pub(crate) fn lives(name: &str) -> bool {
    let mut words = name.split(' ');
    let (Some(boot_then), Some(pid), Some(start)) = (words.next(), words.next(), words.next()) else {
        return true;
    };
    let Some(boot) = boot() else { return true };
    boot == boot_then && pid.parse().ok().and_then(start_of).is_some_and(|now| now == start)
}

/// The identity of this boot.
fn boot() -> Option<String> {
    read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned())
}

/// When a process started, in clock ticks since boot: field 22 of proc(5) `stat`, the 20th after the command's
/// closing parenthesis, which is the last one of the line.
fn start_of(pid: u32) -> Option<String> {
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_process_is_alive() {
        let own = this_process();
        assert!(lives(&own), "{own}");
        let words: Vec<_> = own.split(' ').collect();
        assert!(!lives(&format!("{} {} 1", words[0], words[1])), "the number used again");
        assert!(!lives(&format!("another-boot {} {}", words[1], words[2])));
        assert!(lives(""), "nothing is known");
    }
}
