//! Counters of nodes, containers and Ceph, once a second, on the clock of the load.
//!
//! [`Observer`] samples this node, and the nodes on which `tidemark observe` runs, in threads of its own; [`server::serve`] is
//! `tidemark observe`. Samples are rates and states, kept as [nodes](tidemark_measure::observation::Node); a rate covers
//! the time since the previous sample.
//!
//! # What is sampled
//!
//! This table is the reference of all names. Shares are between 0 and 1; `/s` is per second. A second without
//! events has no mean. Series of zeros only
//! are left out, and so are disks and interfaces that were always idle: **a missing series means zero**, or the
//! gaps of the node say why it was not observed.
//!
//! | kind | subject | metric | unit | what it is | source |
//! |---|---|---|---|---|---|
//! | cpu | `all`, `cpu0` ... | `user` | share | in programs, with low priority too | `/proc/stat` |
//! | | | `nice` | share | of it with low priority: gives way to everybody else | |
//! | | | `system` | share | in the kernel | |
//! | | | `irq` | share | in hard and soft interrupts | |
//! | | | `steal` | share | taken by the hypervisor | |
//! | | | `iowait` | share | idle while a task waits for a disk | |
//! | | | `idle` | share | idle otherwise | |
//! | | | `busy` | share | 1 - idle - iowait | |
//! | cpu | `all` | `running` | tasks | ready or on a processor | `/proc/stat` |
//! | | | `blocked` | tasks | waiting for a disk | |
//! | | | `load` | tasks | load average of one minute | `/proc/loadavg` |
//! | pressure | `cpu`, `io`, `memory` | `some` | share | of the time in which some task waited for it | `/proc/pressure` |
//! | | | `full` | share | of the time in which all tasks that were not idle waited for it | |
//! | memory | `node` | `used` | bytes | total - available | `/proc/meminfo` |
//! | | | `available` | bytes | what programs can have without swapping | |
//! | | | `cached` | bytes | page cache | |
//! | | | `dirty` | bytes | to be written back | |
//! | | | `writeback` | bytes | being written back | |
//! | | | `swap_in`, `swap_out` | bytes/s | | `/proc/vmstat` |
//! | | | `major_faults` | 1/s | pages that had to be read from a disk | |
//! | disk | `vda`, `loop3` ... | `read_ops`, `write_ops` | 1/s | requests completed | `/proc/diskstats` |
//! | | | `read_bytes`, `write_bytes` | bytes/s | | |
//! | | | `read_await_ns`, `write_await_ns` | ns | mean time of a request, with its wait in the device's queue | |
//! | | | `queue` | requests | in flight on average | |
//! | | | `busy` | share | of the time with a request in flight; no limit for a device that works on many at once | |
//! | | | `flush_ops` | 1/s | flushes completed | |
//! | | | `observed_bytes`, `observed_bytes_most` | bytes/s | moved by the observed processes, at least and at most | `/proc/PID/io`, `/proc/PID/fd` |
//! | | | `read_ops_limit`, `write_ops_limit` | 1/s | allowed by the control groups of the processes | cgroup `blkio.throttle.*`, `io.max` |
//! | | | `read_ops_metered`, `write_ops_metered` | 1/s | let through by the groups with these limits; devices merge them later | cgroup `io_serviced`, `io.stat` |
//! | | | `read_bytes_limit`, `write_bytes_limit` | bytes/s | likewise | |
//! | network | `eth0`, `lo` ... | `rx_bytes`, `tx_bytes` | bytes/s | received, sent | `/proc/net/dev` |
//! | | | `rx_packets`, `tx_packets` | 1/s | | |
//! | | | `rx_drops`, `tx_drops`, `rx_errors`, `tx_errors` | 1/s | | |
//! | | | `speed` | bytes/s | of the link, each way | `/sys/class/net/*/speed` |
//! | | | `shaper_rate` | bytes/s | that the traffic shaper of the interface lets out: tbf, or the classes of htb at most | netlink, `RTM_GETQDISC` |
//! | | | `shaped_bytes` | bytes/s | that it let out | |
//! | | | `shaper_backlog` | bytes | that wait in it | |
//! | | | `shaper_drops` | 1/s | packets that found it full | |
//! | network | `connections` | `count` | connections | of this process, over TCP; the first thousand | netlink, `SOCK_DIAG` |
//! | | | `sent_bytes`, `received_bytes` | bytes/s | acknowledged by the other side; received | |
//! | | | `retransmitted_segments`, `sent_segments` | 1/s | sent again; sent, with these | |
//! | | | `sending` | connections | with data on their way or waiting, on average (`tcpi_busy_time`) | |
//! | | | `receiver_limited` | connections | of these, that wait for the receiver's window (`tcpi_rwnd_limited`) | |
//! | | | `buffer_limited` | connections | of these, that wait for the own send buffer (`tcpi_sndbuf_limited`) | |
//! | network | `tcp` | `sent_segments` | 1/s | without those sent again | `/proc/net/snmp` |
//! | | | `retransmitted_segments` | 1/s | | |
//! | | | `listen_drops` | 1/s | connections dropped because nobody accepted them | `/proc/net/netstat` |
//! | network | `softnet` | `dropped` | 1/s | packets that found the backlog full | `/proc/net/softnet_stat` |
//! | | | `squeezed` | 1/s | times that the budget ran out with packets left | |
//! | process | `tidemark`, `ceph-osd.0`, `postgres.POD` or `.PID` ... | `cpu` | cores | | `/proc/PID/stat` |
//! | | | `busiest_thread` | share | of a core, by the thread that used most in this second | `/proc/PID/task/*/schedstat` |
//! | | | `waiting` | threads | ready on average, without a processor; of its 16 busiest threads | |
//! | | | `load_waiting` | threads | the same of threads that put load on; not there where none is among them | |
//! | | | `context_switches` | 1/s | times put on a processor; of its 16 busiest threads | |
//! | | | `allowed` | cores | processors that it may run on | `sched_getaffinity` |
//! | | | `memory` | bytes | resident | `/proc/PID/stat` |
//! | | | `threads` | threads | | |
//! | | | `read_bytes`, `write_bytes` | bytes/s | that it made disks read and write | `/proc/PID/io` |
//! | | | `open_files` | files | that were looked at, for the disks on which they lie; a thousand at most | `/proc/PID/fd` |
//! | | | `major_faults` | 1/s | pages for which it waited until they had been read from a disk | `/proc/PID/stat` |
//! | cgroup | as for process | `cpu_limit` | cores | the tightest quota above it | `cpu.cfs_quota_us`, `cpu.max` |
//! | | | `throttled_periods` | share | of the quota's periods that ended in a stop | `cpu.stat` |
//! | | | `throttled_time` | threads | stopped on average (run queues of the processors) | |
//! | | | `memory_used`, `memory_limit` | bytes | of the control group with the tightest limit | `memory.*` |
//! | | | `memory_limit_hits` | 1/s | times that this group was at its limit and had to give memory back | `memory.failcnt`, `memory.events` |
//! | | | `refault_bytes` | bytes/s | that this group gave back and had to read again soon after | `memory.stat` |
//! | | | `cpu_pressure`, `io_pressure`, `memory_pressure` | share | as `some`, in its control group; version 2 only | `*.pressure` |
//! | ceph | `osd.0` ... | `op`, `op_r`, `op_w`, `op_rw` | 1/s | operations of clients: all, reads, writes, both in one | admin socket, `perf dump`: `osd` |
//! | | | `op_in_bytes`, `op_out_bytes` | bytes/s | of clients | |
//! | | | `op_latency_ns`, `op_r_latency_ns`, `op_w_latency_ns`, `op_rw_latency_ns` | ns | mean, from receipt to reply | |
//! | | | `op_process_latency_ns` | ns | mean, without the wait in the queue | |
//! | | | `op_before_dequeue_ns` | ns | mean wait in the queue, operations of other OSDs too | |
//! | | | `subop` | 1/s | writes for the copies of other OSDs | |
//! | | | `subop_latency_ns` | ns | mean of those | |
//! | | | `op_wip` | operations | in progress | |
//! | | | `recovery_ops` | 1/s | | |
//! | | | `kv_flush_ns`, `kv_commit_ns`, `kv_sync_ns` | ns | mean: flush of the data device, commit of RocksDB, both | `bluestore` |
//! | | | `kv_sync_busy` | share | of the time that the one thread spends in both | |
//! | | | `throttle_ns` | ns | mean wait for BlueStore's own limit | |
//! | | | `state_aio_wait_ns` | ns | mean wait of a transaction for the data device | |
//! | | | `state_kv_queued_ns`, `state_kv_committing_ns` | ns | mean wait for the commit, mean time in it | |
//! | | | `commit_ns` | ns | mean of a whole transaction, to the commit | |
//! | | | `onode_hits`, `onode_misses` | 1/s | metadata found in the cache or not | |
//! | | | `cache_bytes` | bytes | BlueStore's caches | `mempool` |
//! | | | `slow_used_bytes` | bytes | of RocksDB on the slow device (spill-over) | `bluefs` |
//! | ceph | `client.rgw.a` ... | `req` | 1/s | requests | `rgw` |
//! | | | `get`, `put` | 1/s | | |
//! | | | `get_bytes`, `put_bytes` | bytes/s | | |
//! | | | `get_latency_ns`, `put_latency_ns` | ns | mean until the first byte | |
//! | | | `qlen`, `qactive` | requests | queued, being worked on | |
//! | | | `cache_hit`, `cache_miss` | 1/s | metadata cache | |
//! | ceph | `cluster` | `osds_down` | daemons | that are in the map and not up | a monitor's `cluster`, every 5 s |
//! | | | `pgs_not_clean` | groups | | |
//! | | | `objects_degraded`, `objects_misplaced` | copies | | |
//!
//! # How
//!
//! | module | what it holds |
//! |---|---|
//! | `cpu`, `pressure`, `memory`, `disk`, `network` | one source each: open files, a pure parser, rates |
//! | `process`, `threads`, `cgroup`, `files` | likewise, for the named processes |
//! | `pods` | of which pod a process is, for its name |
//! | `shaper`, `connections`, `netlink` | traffic shapers and the own TCP connections, which the kernel tells over netlink only |
//! | `ceph` | admin sockets of daemons, with a thread of their own; a cluster elsewhere, through `ceph tell` |
//! | `host` | processors, memory and network only, on request |
//! | `sampler` | one sample of all of them; `recorder` turns samples into series |
//! | `remote`, `server`, `openmetrics`, `wire` | client and server of `tidemark observe` |
//! | `daemon_set` | how the server is installed on every node of a Kubernetes cluster, and how it is found there |
//! | `catalog` | the table above as data |

mod catalog;
mod ceph;
mod cgroup;
mod connections;
mod cpu;
mod daemon_set;
mod disk;
mod files;
mod host;
mod memory;
mod metered;
mod netlink;
mod network;
mod observer;
mod openmetrics;
mod own;
mod pods;
mod pressure;
mod process;
mod reader;
mod recorder;
mod remote;
mod sample;
mod sampler;
pub mod server;
mod shaper;
mod stop;
mod threads;
mod wire;

pub use ceph::cluster::{CephCluster, Printed, RunCeph};
pub use cgroup::own_memory_limit;
pub use daemon_set::{Access, Install, POD_LABELS, SECRET, manifests, node};
pub use host::HostSampler;
pub use observer::{Glimpse, Observer};
pub use process::memory_of;

use std::path::PathBuf;

/// What to observe besides the node itself.
// Not `Debug`: it holds a secret.
#[derive(Clone, Default)]
pub struct Options {
    /// Names of processes of the system under test, such as `ceph-osd`; with an argument after the name, such as
    /// `ceph-osd /etc/ceph/a.conf`, only those that have this argument.
    pub processes: Vec<String>,
    /// Directories with admin sockets of Ceph daemons.
    pub ceph_sockets: Vec<PathBuf>,
    /// Other nodes, on which `tidemark observe` runs.
    pub nodes: Vec<RemoteNode>,
    /// A Ceph cluster whose daemons are elsewhere.
    pub ceph: Option<CephCluster>,
    /// The token that [`server::serve`] requires of its clients.
    pub token: Option<String>,
}

/// A node on which `tidemark observe` runs.
// Not `Debug`: it holds a secret.
#[derive(Clone, Default)]
pub struct RemoteNode {
    /// Where it is asked: `http://10.0.0.2:9750`.
    pub url: String,
    /// The token that it requires.
    pub token: Option<String>,
    /// What the node is called; `None`: as it calls itself.
    pub name: Option<String>,
}
