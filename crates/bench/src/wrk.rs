//! wrk, the peer for requests over HTTP: unsigned GETs of one path.

use std::process::Command;

/// Microseconds of processor time that wrk takes per request on one processor; `None` when it is not installed.
pub(crate) fn cpu_us(endpoint: &str, connections: u32, seconds: f64) -> Option<f64> {
    let before = children_cpu_us()?;
    let output = Command::new("taskset")
        .args(["-c", "1", "wrk", "-t1", &format!("-c{connections}"), &format!("-d{}s", seconds.ceil())])
        .arg(format!("{endpoint}/mycontainers1/myobjects1"))
        .output()
        .ok()?;
    let used = children_cpu_us()? - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    let requests: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(used / requests)
}

/// Processor time of children that have ended, from the kernel's count in ticks of 10 ms.
fn children_cpu_us() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // Fields 16 and 17 of proc(5), counted from the one after the name, which is 3.
    let ticks = fields.get(13)?.parse::<f64>().ok()? + fields.get(14)?.parse::<f64>().ok()?;
    Some(ticks * 1e6 / rustix::param::clock_ticks_per_second() as f64)
}
