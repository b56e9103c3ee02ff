//! How busy this host is, for the controller's overview.

use crate::protocol::Health;
use tidemark_observe::HostSampler;

/// Samples this host now and then.
#[derive(Default)]
pub(crate) struct HealthSampler(HostSampler);

impl HealthSampler {
    /// How busy the host has been since the last call; `None` at the first.
    pub(crate) fn sample(&mut self) -> Option<Health> {
        let host = self.0.sample()?;
        Some(Health {
            cpu_busy: host.cpu_busy,
            memory_used_bytes: host.memory_used_bytes,
            received_per_s: host.received_per_s,
            sent_per_s: host.sent_per_s,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_look_tells_shares_and_memory() {
        let mut sampler = HealthSampler::default();
        assert_eq!(sampler.sample(), None);
        let health = sampler.sample().unwrap();
        assert!((0.0..=1.0).contains(&health.cpu_busy), "{health:?}");
        assert!(health.memory_used_bytes > 1 << 20, "{health:?}");
    }
}
