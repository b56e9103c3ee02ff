//! One sample of everything on this node.

use crate::Options;
use crate::ceph::Ceph;
use crate::cgroup::Cgroups;
use crate::connections::Connections;
use crate::cpu::Cpu;
use crate::disk::Disks;
use crate::files::Files;
use crate::memory::{Memory, bytes_of};
use crate::network::Network;
use crate::own;
use crate::pressure::Pressure;
use crate::process::Processes;
use crate::sample::{Gaps, Sample};
use crate::shaper::Shapers;
use std::time::Instant;

/// All sources of this node.
pub(crate) struct Sampler {
    cpu: Cpu,
    pressure: Pressure,
    memory: Memory,
    disks: Disks,
    network: Network,
    processes: Processes,
    cgroups: Cgroups,
    files: Files,
    shapers: Shapers,
    connections: Connections,
    ceph: Option<Ceph>,
    before: Option<Instant>,
    gaps: Gaps,
}

impl Sampler {
    pub(crate) fn new(options: &Options) -> Self {
        let mut gaps = Gaps::default();
        Self {
            cpu: Cpu::new(),
            pressure: Pressure::new(),
            memory: Memory::new(),
            disks: Disks::new(),
            network: Network::new(),
            processes: Processes::new(&options.processes),
            cgroups: Cgroups::new(&mut gaps),
            files: Files::default(),
            shapers: Shapers::default(),
            connections: Connections::default(),
            ceph: (!options.ceph_sockets.is_empty()).then(|| Ceph::start(&options.ceph_sockets)),
            before: None,
            gaps,
        }
    }

    /// Takes a sample and returns its time. The first one only reads the counters: it has states and no rates.
    pub(crate) fn look(&mut self) -> (Instant, Sample) {
        let now = Instant::now();
        let seconds =
            self.before.replace(now).map(|before| now.duration_since(before).as_secs_f64().max(1e-3));
        let mut out = Sample { seconds, values: Vec::new() };
        let gaps = &mut self.gaps;
        if let Some(ceph) = &mut self.ceph {
            ceph.ask();
        }
        self.cpu.sample(&mut out, gaps);
        self.pressure.sample(&mut out, gaps);
        self.memory.sample(&mut out, gaps);
        self.disks.sample(&mut out, gaps);
        self.network.sample(&mut out, gaps);
        if self.processes.sample(&mut out, gaps) {
            self.cgroups.find(self.processes.observed());
            self.files.find(self.processes.observed(), gaps);
        }
        self.cgroups.sample(&self.disks, &mut out);
        self.files.sample(self.processes.observed(), &self.disks, &mut out);
        own::add_up(&mut out);
        self.shapers.sample(&mut out, gaps);
        self.connections.sample(&self.processes.own(), &mut out, gaps);
        if let Some(ceph) = &mut self.ceph {
            ceph.take(&mut out, gaps);
        }
        (now, out)
    }

    /// What could not be observed.
    pub(crate) fn gaps(&self) -> &[String] {
        self.gaps.sentences()
    }

    /// What this node is.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let system = rustix::system::uname();
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = text("/proc/cpuinfo");
        let rows = || cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let model =
            rows().find(|(name, _)| name.trim() == "model name").map(|(_, model)| model.trim().to_owned());
        let processors = rows().filter(|(name, _)| name.trim() == "processor").count();
        let memory = bytes_of(&text("/proc/meminfo"), "MemTotal").map(tidemark_measure::units::binary_bytes);
        let mut facts = vec![("kernel".to_owned(), system.release().to_string_lossy().into_owned())];
        facts.extend(model.map(|model| ("processor".to_owned(), model)));
        facts.push(("processors".to_owned(), processors.to_string()));
        facts.extend(memory.map(|memory| ("memory".to_owned(), memory)));
        facts.extend(self.disks.facts());
        facts.extend(self.network.facts());
        facts.extend(self.cgroups.facts());
        facts
    }
}

/// The name of this node.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::METRICS;
    use tidemark_measure::observation::Kind;

    #[test]
    fn the_second_sample_has_rates_and_only_known_metrics() {
        let mut sampler = Sampler::new(&Options::default());
        let (first, sample) = sampler.look();
        assert!(sample.seconds.is_none() && !sample.values.iter().any(|value| value.metric == "rx_bytes"));
        std::thread::sleep(std::time::Duration::from_millis(50));
        let (second, sample) = sampler.look();
        assert!(second > first && sample.seconds.is_some());
        assert!(sample.values.iter().any(|value| value.subject == "lo" && value.metric == "rx_bytes"));
        assert!(sample.values.iter().any(|value| value.kind == Kind::Cpu && value.metric == "busy"));
        for value in &sample.values {
            let known =
                METRICS.iter().any(|(kind, metric, ..)| (*kind, *metric) == (value.kind, &value.metric));
            assert!(known, "{value:?} is in no table");
            assert!(value.value >= 0.0, "{value:?}");
        }
        let facts = sampler.facts();
        assert!(facts.iter().any(|(name, value)| name == "processors" && value != "0"), "{facts:?}");
    }
}
