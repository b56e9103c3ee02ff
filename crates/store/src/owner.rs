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
/// closing parenthesis, which is the last one of the line. One that has ended and still waits to be collected by its parent
/// (field 3 is `Z` or `X`) does nothing any more.
fn start_of(pid: u32) -> Option<String> {
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18).map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_nobody_has_collected_is_dead() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        let name = format!("{} {pid} {}", boot().unwrap(), start_of(pid).unwrap());
        assert!(lives(&name));
        child.kill().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while lives(&name) && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(std::path::Path::new(&format!("/proc/{pid}/stat")).exists() && !lives(&name));
        child.wait().unwrap();
    }

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
