//! The table of all metrics, for programs: units and what they are. The crate's documentation has the same one for people.

use tidemark_measure::observation::Kind;

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// 0 to 1.
    Share,
    /// Things: tasks, requests, daemons.
    Count,
    Bytes,
    BytesPerSecond,
    PerSecond,
    Nanoseconds,
    Cores,
}

/// A metric: kind, name, unit, what it is.
pub(crate) type Metric = (Kind, &'static str, Unit, &'static str);

use Kind::{Ceph, Cgroup, Cpu, Disk, Memory, Network, Pressure, Process};
use Unit::{Bytes, BytesPerSecond, Cores, Count, Nanoseconds, PerSecond, Share};

/// All of them, by kind.
pub(crate) const METRICS: &[Metric] = &[
    (Cpu, "user", Share, "Time in programs"),
    (Cpu, "nice", Share, "Time in programs of low priority"),
    (Cpu, "system", Share, "Time in the kernel"),
    (Cpu, "irq", Share, "Time in hard and soft interrupts"),
    (Cpu, "steal", Share, "Time taken by the hypervisor"),
    (Cpu, "iowait", Share, "Time idle while a task waits for a disk"),
    (Cpu, "idle", Share, "Time idle otherwise"),
    (Cpu, "busy", Share, "Time not idle"),
    (Cpu, "running", Count, "Tasks ready or on a processor"),
    (Cpu, "blocked", Count, "Tasks waiting for a disk"),
    (Cpu, "load", Count, "Load average of one minute"),
    (Pressure, "some", Share, "Time in which some task waited"),
    (Pressure, "full", Share, "Time in which all tasks waited"),
    (Memory, "used", Bytes, "Memory that is not available"),
    (Memory, "available", Bytes, "Memory that programs can have without swapping"),
    (Memory, "cached", Bytes, "Page cache"),
    (Memory, "dirty", Bytes, "Memory to be written back"),
    (Memory, "writeback", Bytes, "Memory being written back"),
    (Memory, "swap_in", BytesPerSecond, "Memory read from swap"),
    (Memory, "swap_out", BytesPerSecond, "Memory written to swap"),
    (Memory, "major_faults", PerSecond, "Pages that had to be read from a disk"),
    (Disk, "read_ops", PerSecond, "Reads completed"),
    (Disk, "write_ops", PerSecond, "Writes completed"),
    (Disk, "read_bytes", BytesPerSecond, "Bytes read"),
    (Disk, "write_bytes", BytesPerSecond, "Bytes written"),
    (Disk, "read_await_ns", Nanoseconds, "Mean time of a read"),
    (Disk, "write_await_ns", Nanoseconds, "Mean time of a write"),
    (Disk, "queue", Count, "Requests in flight on average"),
    (Disk, "busy", Share, "Time with a request in flight"),
    (Disk, "flush_ops", PerSecond, "Flushes completed"),
    (Disk, "observed_bytes", BytesPerSecond, "Bytes moved by observed processes, at least"),
    (Disk, "observed_bytes_most", BytesPerSecond, "Bytes moved by observed processes, at most"),
    (Disk, "read_ops_limit", PerSecond, "Reads that control groups allow"),
    (Disk, "write_ops_limit", PerSecond, "Writes that control groups allow"),
    (Disk, "read_ops_metered", PerSecond, "Reads that control groups with limits let through"),
    (Disk, "write_ops_metered", PerSecond, "Writes that control groups with limits let through"),
    (Disk, "read_bytes_limit", BytesPerSecond, "Bytes that control groups allow to be read"),
    (Disk, "write_bytes_limit", BytesPerSecond, "Bytes that control groups allow to be written"),
    (Network, "rx_bytes", BytesPerSecond, "Bytes received"),
    (Network, "tx_bytes", BytesPerSecond, "Bytes sent"),
    (Network, "rx_packets", PerSecond, "Packets received"),
    (Network, "tx_packets", PerSecond, "Packets sent"),
    (Network, "rx_drops", PerSecond, "Packets received and dropped"),
    (Network, "tx_drops", PerSecond, "Packets dropped before they were sent"),
    (Network, "rx_errors", PerSecond, "Errors of receiving"),
    (Network, "tx_errors", PerSecond, "Errors of sending"),
    (Network, "speed", BytesPerSecond, "Speed of the link, each way"),
    (Network, "sent_segments", PerSecond, "TCP segments sent"),
    (Network, "retransmitted_segments", PerSecond, "TCP segments sent again"),
    (Network, "listen_drops", PerSecond, "Connections dropped before they were accepted"),
    (Network, "dropped", PerSecond, "Packets that found the backlog full"),
    (Network, "squeezed", PerSecond, "Times that the budget for packets ran out"),
    (Network, "shaper_rate", BytesPerSecond, "Rate that the traffic shaper lets out"),
    (Network, "shaped_bytes", BytesPerSecond, "Bytes that the traffic shaper let out"),
    (Network, "shaper_backlog", Bytes, "Bytes that wait in the traffic shaper"),
    (Network, "shaper_drops", PerSecond, "Packets that found the traffic shaper full"),
    (Network, "count", Count, "Connections of this process"),
    (Network, "sent_bytes", BytesPerSecond, "Bytes sent and acknowledged"),
    (Network, "received_bytes", BytesPerSecond, "Bytes received by connections of this process"),
    (Network, "sending", Count, "Connections with data on their way"),
    (Network, "receiver_limited", Count, "Connections that wait for the receiver's window"),
    (Network, "buffer_limited", Count, "Connections that wait for the own send buffer"),
    (Process, "cpu", Cores, "Processors in use"),
    (Process, "busiest_thread", Share, "Share of a core of the thread that used most"),
    (Process, "waiting", Count, "Threads ready without a processor, on average"),
    (Process, "load_waiting", Count, "Threads that put load on, ready without a processor, on average"),
    (Process, "context_switches", PerSecond, "Times that threads were scheduled on a processor"),
    (Process, "allowed", Cores, "Processors that it may run on"),
    (Process, "memory", Bytes, "Resident memory"),
    (Process, "threads", Count, "Threads"),
    (Process, "read_bytes", BytesPerSecond, "Bytes that it made disks read"),
    (Process, "write_bytes", BytesPerSecond, "Bytes that it made disks write"),
    (Process, "major_faults", PerSecond, "Pages that it waited for until they were read from a disk"),
    (Process, "open_files", Count, "Open files that were looked at"),
    (Cgroup, "cpu_limit", Cores, "The tightest quota"),
    (Cgroup, "throttled_periods", Share, "Periods of the quota that ended in a stop"),
    (Cgroup, "throttled_time", Count, "Threads stopped on average"),
    (Cgroup, "memory_used", Bytes, "Memory in use in the control group with the tightest limit"),
    (Cgroup, "memory_limit", Bytes, "The tightest limit of memory"),
    (Cgroup, "memory_limit_hits", PerSecond, "Times that the limit of memory was hit"),
    (Cgroup, "refault_bytes", BytesPerSecond, "Bytes given back for want of memory and read again"),
    (Cgroup, "cpu_pressure", Share, "Time in which some task waited for a processor"),
    (Cgroup, "io_pressure", Share, "Time in which some task waited for a disk"),
    (Cgroup, "memory_pressure", Share, "Time in which some task waited for memory"),
    (Ceph, "op", PerSecond, "Operations of clients"),
    (Ceph, "op_r", PerSecond, "Reads of clients"),
    (Ceph, "op_w", PerSecond, "Writes of clients"),
    (Ceph, "op_rw", PerSecond, "Reads and writes in one"),
    (Ceph, "op_in_bytes", BytesPerSecond, "Bytes from clients"),
    (Ceph, "op_out_bytes", BytesPerSecond, "Bytes to clients"),
    (Ceph, "op_latency_ns", Nanoseconds, "Mean time of an operation"),
    (Ceph, "op_r_latency_ns", Nanoseconds, "Mean time of a read"),
    (Ceph, "op_w_latency_ns", Nanoseconds, "Mean time of a write"),
    (Ceph, "op_rw_latency_ns", Nanoseconds, "Mean time of a read and write in one"),
    (Ceph, "op_process_latency_ns", Nanoseconds, "Mean time without the queue"),
    (Ceph, "op_before_dequeue_ns", Nanoseconds, "Mean time in the queue"),
    (Ceph, "subop", PerSecond, "Writes for the copies of other daemons"),
    (Ceph, "subop_latency_ns", Nanoseconds, "Mean time of those"),
    (Ceph, "op_wip", Count, "Operations in progress"),
    (Ceph, "recovery_ops", PerSecond, "Operations of recovery"),
    (Ceph, "kv_flush_ns", Nanoseconds, "Mean time of a flush of the data device"),
    (Ceph, "kv_commit_ns", Nanoseconds, "Mean time of a commit of RocksDB"),
    (Ceph, "kv_sync_ns", Nanoseconds, "Mean time of both"),
    (Ceph, "kv_sync_busy", Share, "Time that the thread spends in both"),
    (Ceph, "throttle_ns", Nanoseconds, "Mean wait for BlueStore's own limit"),
    (Ceph, "state_aio_wait_ns", Nanoseconds, "Mean wait for the data device"),
    (Ceph, "state_kv_queued_ns", Nanoseconds, "Mean wait for the commit"),
    (Ceph, "state_kv_committing_ns", Nanoseconds, "Mean time in the commit"),
    (Ceph, "commit_ns", Nanoseconds, "Mean time of a transaction"),
    (Ceph, "onode_hits", PerSecond, "Metadata found in the cache"),
    (Ceph, "onode_misses", PerSecond, "Metadata not found in the cache"),
    (Ceph, "cache_bytes", Bytes, "BlueStore's caches"),
    (Ceph, "slow_used_bytes", Bytes, "RocksDB on the slow device"),
    (Ceph, "req", PerSecond, "Requests"),
    (Ceph, "get", PerSecond, "Reads of objects"),
    (Ceph, "put", PerSecond, "Writes of objects"),
    (Ceph, "get_bytes", BytesPerSecond, "Bytes of objects read"),
    (Ceph, "put_bytes", BytesPerSecond, "Bytes of objects written"),
    (Ceph, "get_latency_ns", Nanoseconds, "Mean time until the first byte of a read"),
    (Ceph, "put_latency_ns", Nanoseconds, "Mean time of a write"),
    (Ceph, "qlen", Count, "Requests queued"),
    (Ceph, "qactive", Count, "Requests being worked on"),
    (Ceph, "cache_hit", PerSecond, "Metadata found in the gateway's cache"),
    (Ceph, "cache_miss", PerSecond, "Metadata not found in the gateway's cache"),
    (Ceph, "osds_down", Count, "Daemons that are in the map and not up"),
    (Ceph, "pgs_not_clean", Count, "Placement groups that are not active and clean"),
    (Ceph, "objects_degraded", Count, "Copies of objects that are missing"),
    (Ceph, "objects_misplaced", Count, "Copies of objects in the wrong place"),
];

/// The word for a kind, as in records, and what its subjects are called.
pub(crate) const fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Cpu => ("cpu", "cpu"),
        Kind::Pressure => ("pressure", "resource"),
        Kind::Memory => ("memory", "of"),
        Kind::Disk => ("disk", "device"),
        Kind::Network => ("network", "device"),
        Kind::Process => ("process", "process"),
        Kind::Cgroup => ("cgroup", "process"),
        Kind::Ceph => ("ceph", "daemon"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_the_same_table() {
        let text = include_str!("lib.rs");
        // Kinds are named in the first cell of a row, and hold for the rows below.
        let (mut kind, mut written) = (String::new(), Vec::new());
        for line in text.lines().filter_map(|line| line.strip_prefix("//! |")) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            if cells.len() < 6 || cells[0].starts_with('-') || cells[0] == "kind" {
                continue;
            }
            if !cells[0].is_empty() {
                kind = cells[0].to_owned();
            }
            let names = cells[2].split(", ").map(|name| name.trim_matches('`').to_owned());
            written.extend(names.map(|name| (kind.clone(), name)));
        }
        let known: Vec<(String, String)> =
            METRICS.iter().map(|(kind, name, ..)| (words(*kind).0.to_owned(), (*name).to_owned())).collect();
        let lacks = |of: &[(String, String)], all: &[(String, String)]| -> Vec<(String, String)> {
            all.iter().filter(|row| !of.contains(row)).cloned().collect()
        };
        assert_eq!(lacks(&written, &known), [], "not in the documentation");
        assert_eq!(lacks(&known, &written), [], "not in the catalogue");
    }
}
