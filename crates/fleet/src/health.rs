//! The health of this host, for the controller's overview: rates from /proc since the last sample.

use crate::protocol::Health;
use procfs::{Current as _, CurrentSI as _, KernelStats, Meminfo};
use std::time::Instant;

/// Samples this host.
#[derive(Default)]
pub(crate) struct Pulse {
    before: Option<(Instant, Counters)>,
}

#[derive(Clone, Copy, Default)]
struct Counters {
    busy: u64,
    all: u64,
    received: u64,
    sent: u64,
}

impl Pulse {
    /// The host's health since the last sample; `None` at the first, and without /proc.
    pub(crate) fn look(&mut self) -> Option<Health> {
        let now = Instant::now();
        let counters = Counters::read()?;
        let (then, before) = self.before.replace((now, counters))?;
        let seconds = now.duration_since(then).as_secs_f64().max(1e-3);
        let all = counters.all.saturating_sub(before.all);
        let memory = Meminfo::current().ok()?;
        let free = memory.mem_available.unwrap_or(memory.mem_free);
        Some(Health {
            cpu_busy: if all == 0 {
                0.0
            } else {
                counters.busy.saturating_sub(before.busy) as f32 / all as f32
            },
            memory_used_bytes: memory.mem_total.saturating_sub(free),
            received_per_s: counters.received.saturating_sub(before.received) as f64 / seconds,
            sent_per_s: counters.sent.saturating_sub(before.sent) as f64 / seconds,
        })
    }
}

impl Counters {
    fn read() -> Option<Self> {
        let cpu = KernelStats::current().ok()?.total;
        let idle = cpu.idle + cpu.iowait.unwrap_or(0);
        let busy = cpu.user
            + cpu.nice
            + cpu.system
            + cpu.irq.unwrap_or(0)
            + cpu.softirq.unwrap_or(0)
            + cpu.steal.unwrap_or(0);
        let mut counters = Self { busy, all: busy + idle, ..Self::default() };
        for (name, device) in procfs::net::dev_status().ok()? {
            if name != "lo" {
                counters.received += device.recv_bytes;
                counters.sent += device.sent_bytes;
            }
        }
        Some(counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_look_tells_shares_and_memory() {
        let mut pulse = Pulse::default();
        assert_eq!(pulse.look(), None);
        let health = pulse.look().unwrap();
        assert!((0.0..=1.0).contains(&health.cpu_busy), "{health:?}");
        assert!(health.memory_used_bytes > 1 << 20, "{health:?}");
    }
}
