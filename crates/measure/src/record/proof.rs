//! What makes a stage's numbers evidence: what was done around its load, and what devices, clusters and databases counted.

use super::{DeclaredFigure, Evidence, TablesUse};
use crate::kind::Cache;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What was done around the load so that its numbers are evidence, and what the devices counted meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Proof {
    /// What was done before the load, in words: `page cache of 1 volume dropped`.
    pub setup: Vec<String>,
    /// The state of the page cache that the document declares; `None` where it is not known.
    #[serde(deserialize_with = "Cache::read")]
    pub cache: Option<Cache>,
    /// Whether reads and writes bypassed the page cache.
    pub direct: bool,
    /// What the devices under the volumes counted from the stage's start to its end, whoever caused it.
    pub devices: Vec<DeviceUse>,
    /// What this process and the programs that it ran caused meanwhile, on any device; `None` where the kernel does not
    /// count it.
    pub own: Option<OwnIo>,
    /// The same of each driver's process, where several have volumes.
    pub drivers: Vec<DriverIo>,
    /// What the OSDs of the cluster under the volumes counted meanwhile, whoever caused it; `None` where there is no
    /// cluster, or it could not be asked.
    pub osds: Option<OsdUse>,
    /// Figures that the works' workloads declare.
    pub figures: Vec<DeclaredFigure>,
    /// Tables that were made, and queries that ran on them: an entry for each work.
    pub tables: Vec<TablesUse>,
    /// What could not be checked, and why: whole sentences.
    pub unchecked: Vec<String>,
    /// What engines found out beside it.
    #[serde(flatten)]
    #[schema(value_type = std::collections::BTreeMap<String, Object>)]
    pub evidence: Evidence,
}

impl Proof {
    /// The evidence of two engines that worked side by side; `join` adds what engines found out under keys of their own.
    pub fn join(mut self, other: Proof, join: impl FnOnce(&mut Evidence, Evidence)) -> Self {
        join(&mut self.evidence, other.evidence);
        add(&mut self.setup, other.setup);
        add(&mut self.unchecked, other.unchecked);
        self.add_figures(other.figures);
        self.tables.extend(other.tables);
        // Both have asked for the same process.
        self.own = self.own.or(other.own);
        add(&mut self.drivers, other.drivers);
        self.osds = self.osds.or(other.osds);
        // Each engine has read the counters of its own volumes' devices: of one that both have, once is enough.
        let known: Vec<String> = self.devices.iter().map(|device| device.device.clone()).collect();
        self.devices.extend(other.devices.into_iter().filter(|device| !known.contains(&device.device)));
        if other.cache == Some(Cache::Cold) {
            self.cache = other.cache;
        }
        self.direct &= other.direct;
        self
    }
}

impl Proof {
    /// Adds figures that are not known yet.
    pub fn add_figures(&mut self, figures: Vec<DeclaredFigure>) {
        add(&mut self.figures, figures);
    }

    /// Adds what others made of tables and asked of them: each a part of the same works, or works of their own.
    pub fn add_tables(&mut self, tables: Vec<TablesUse>) {
        for table in tables {
            match self.tables.iter_mut().find(|known| known.work == table.work) {
                Some(known) => known.add(table),
                None => self.tables.push(table),
            }
        }
    }
}

/// Adds what is not there yet.
fn add<T: PartialEq>(to: &mut Vec<T>, from: Vec<T>) {
    for item in from {
        if !to.contains(&item) {
            to.push(item);
        }
    }
}

/// Differences of one device's counters in `/proc/diskstats` (Linux, Documentation/admin-guide/iostats).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DeviceUse {
    /// Its kernel name: `vda`, `loop3`.
    pub device: String,
    /// The volumes that lie on it.
    pub volumes: Vec<String>,
    /// Reads completed.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Discards completed.
    pub discards: u64,
    /// Bytes of them.
    pub discarded_bytes: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Time with at least one request in flight, nanoseconds.
    pub busy_ns: u64,
    /// Time summed over all requests, nanoseconds.
    pub waited_ns: u64,
    /// Of a loop device: what the device under its file counted.
    pub behind: Option<Behind>,
}

impl DeviceUse {
    /// Adds what another process read of the same device's counters at nearly the same times: the device has counted for both, so the
    /// larger counts cover both.
    pub fn cover(&mut self, other: DeviceUse) {
        add(&mut self.volumes, other.volumes);
        for (own, other) in [
            (&mut self.reads, other.reads),
            (&mut self.read_bytes, other.read_bytes),
            (&mut self.writes, other.writes),
            (&mut self.written_bytes, other.written_bytes),
            (&mut self.discards, other.discards),
            (&mut self.discarded_bytes, other.discarded_bytes),
            (&mut self.flushes, other.flushes),
            (&mut self.busy_ns, other.busy_ns),
            (&mut self.waited_ns, other.waited_ns),
        ] {
            *own = other.max(*own);
        }
        if let (Some(own), Some(other)) = (&mut self.behind, other.behind) {
            own.read_bytes = other.read_bytes.max(own.read_bytes);
            own.written_bytes = other.written_bytes.max(own.written_bytes);
        }
    }
}

/// Differences of counters of BlueStore, summed over the OSDs of a cluster (`ceph tell osd.* perf dump bluestore`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct OsdUse {
    /// OSDs that were asked.
    pub osds: u32,
    /// Copies that the pool of the volumes keeps of everything; 0 where it keeps no copies (erasure coding).
    pub copies: u32,
    /// Bytes that they read from their devices.
    pub device_read_bytes: u64,
    /// Bytes that they read from their own caches.
    pub cache_read_bytes: u64,
    /// Bytes that they were given to write, all copies together.
    pub written_bytes: u64,
}

impl OsdUse {
    /// Bytes written for each copy; `None` where the pool keeps no copies to divide by.
    pub fn written_per_copy(&self) -> Option<u64> {
        self.written_bytes.checked_div(self.copies.into())
    }

    /// Adds what another process read of the same OSDs' counters from nearly the same time on: they have counted for both, so the larger
    /// counts cover both.
    pub fn cover(&mut self, other: &OsdUse) {
        for (own, other) in [
            (&mut self.device_read_bytes, other.device_read_bytes),
            (&mut self.cache_read_bytes, other.cache_read_bytes),
            (&mut self.written_bytes, other.written_bytes),
        ] {
            *own = other.max(*own);
        }
    }
}

/// What a process and the programs that it ran moved between storage and memory (`/proc/PID/io`). Writes count when they
/// go to the page cache, reads when they come from a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct OwnIo {
    /// Bytes that it had read from devices.
    pub read_bytes: u64,
    /// Bytes that it wrote to files and devices.
    pub written_bytes: u64,
}

/// What one driver's process moved between storage and memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DriverIo {
    /// Which driver of the run.
    pub driver: u32,
    /// What its process moved, and the programs that it ran.
    #[serde(flatten)]
    pub own: OwnIo,
}

/// What is under the file of a loop device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Behind {
    /// The file.
    pub file: String,
    /// The kernel name of the device that it lies on.
    pub device: String,
    /// Bytes of that device's reads.
    pub read_bytes: u64,
    /// Bytes of that device's writes.
    pub written_bytes: u64,
}
