//! wrk, the peer for requests over HTTP: unsigned GETs of one path.

use crate::processor::Time;
use std::process::Command;

/// Microseconds of processor time that wrk takes per request on one processor; `None` when it is not installed.
pub(crate) fn cpu_us(endpoint: &str, connections: u32, seconds: f64) -> Option<f64> {
    let before = Time::of_children()?;
    let output = Command::new("taskset")
        .args(["-c", "1", "wrk", "-t1", &format!("-c{connections}"), &format!("-d{}s", seconds.ceil())])
        .arg(format!("{endpoint}/mycontainers1/myobjects1"))
        .output()
        .ok()?;
    let used = Time::of_children()? - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    let requests: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(used.total_us() / requests)
}
