//! What made a run: versions, kernel, hardware.

use std::fs;
use tidemark_measure::host::Host;
use tidemark_measure::record::Provenance;

/// What is known of this machine; the document's part is left to the caller.
pub fn of_this_machine(version: &str) -> Provenance {
    Provenance { tidemark: version.into(), host: host(), ..Provenance::default() }
}

/// What tells this machine's kernel from all others, as long as it runs; the same in all containers on it. Empty where that is not known.
pub fn machine() -> String {
    let told = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    told.trim().to_owned()
}

/// This machine. What cannot be found out stays empty.
pub fn host() -> Host {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Host {
        name: text(uname.nodename()),
        kernel: format!("{} {} {}", text(uname.sysname()), text(uname.release()), text(uname.machine())),
        cpu: field("/proc/cpuinfo", "model name").unwrap_or_default(),
        cores: cores(),
        memory_bytes: field("/proc/meminfo", "MemTotal")
            .and_then(|value| value.trim_end_matches(" kB").trim().parse::<u64>().ok())
            .map_or(0, |kib| kib * 1024),
    }
}

/// Processors that this process may use.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// The first `name : value` of a file of /proc.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}
