//! How busy this host is, in a few numbers now and then, without a record.

use crate::cpu::Cpu;
use crate::memory::Memory;
use crate::network::Network;
use crate::observer::{Glimpse, nanoseconds};
use crate::recorder::Recorder;
use crate::sample::{Gaps, Sample};
use crate::sampler::host_name;
use std::time::Instant;

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
    pub fn sample(&mut self) -> Option<Glimpse> {
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
        recorder.glimpse(&host_name())
    }
}
