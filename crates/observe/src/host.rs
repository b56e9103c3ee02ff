//! How busy this host is, in a few numbers now and then, without a record.

use crate::cpu::Cpu;
use crate::memory::Memory;
use crate::network::Network;
use crate::observer::nanoseconds;
use crate::recorder::Recorder;
use crate::sample::{Gaps, Sample};
use std::time::Instant;
use tidemark_measure::host::Utilization;

/// Samples the processors, memory and network of this host on request.
pub struct HostSampler {
    cpu: Cpu,
    memory: Memory,
    network: Network,
    start: Instant,
    before: Option<Instant>,
}

impl Default for HostSampler {
    fn default() -> Self {
        Self::new()
    }
}

impl HostSampler {
    /// A sampler without a first sample.
    pub fn new() -> Self {
        let (cpu, memory, network) = (Cpu::new(), Memory::new(), Network::new());
        Self { cpu, memory, network, start: Instant::now(), before: None }
    }

    /// How busy the host has been since the last call; `None` at the first call. Values that `/proc` lacks are zero.
    pub fn sample(&mut self) -> Option<Utilization> {
        let now = Instant::now();
        let before = self.before.replace(now);
        let seconds = before.map(|before| now.duration_since(before).as_secs_f64().max(1e-3));
        let (mut sample, mut gaps) = (Sample { seconds, values: Vec::new() }, Gaps::default());
        self.cpu.sample(&mut sample, &mut gaps);
        self.memory.sample(&mut sample, &mut gaps);
        self.network.sample(&mut sample, &mut gaps);
        seconds?;
        let mut recorder = Recorder::default();
        recorder.record(nanoseconds(now.duration_since(self.start)), sample.values);
        recorder.glimpse("").map(|glimpse| glimpse.utilization)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_look_tells_shares_and_memory() {
        let mut sampler = HostSampler::default();
        assert_eq!(sampler.sample(), None);
        let seen = sampler.sample().unwrap();
        assert!((0.0..=1.0).contains(&seen.cpu_busy), "{seen:?}");
        assert!(seen.memory_used_bytes > 1 << 20, "{seen:?}");
    }
}
