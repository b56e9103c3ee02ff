//! What the load ran into: the resource that had no reserve.

use super::list;
use super::phrase::{Phrase, block, bytes, cores, percent, phrase};
use serde::Serialize;
use tidemark_measure::units;

/// A disk at the limit that control groups set, or below it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct DiskUse {
    pub disk: String,
    /// A second: operations or bytes.
    pub used: f64,
    pub limit: f64,
    pub busy: f64,
}

/// What a disk's limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Metered {
    Writes,
    Reads,
    BytesWritten,
    BytesRead,
}

impl Metered {
    const fn counts_operations(self) -> bool {
        matches!(self, Metered::Writes | Metered::Reads)
    }

    const fn what(self) -> &'static str {
        match self {
            Metered::Writes => "writes",
            Metered::Reads => "reads",
            Metered::BytesWritten => "written",
            Metered::BytesRead => "read",
        }
    }

    fn amount(self, value: f64) -> String {
        if self.counts_operations() { format!("{value:.1}") } else { units::bytes(value as u64) }
    }
}

/// What a process used of processors.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct ProcessUse {
    pub process: String,
    /// Share of the periods or of a core.
    pub share: f64,
    pub cores: f64,
    pub allowed: f64,
    pub stopped_threads: f64,
}

/// What a daemon's latency consists of, nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Wait {
    pub daemon: String,
    pub part_ns: f64,
    pub whole_ns: f64,
}

/// The processors that the generator may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Room {
    Quota,
    Allowed,
    Node,
}

impl Room {
    const fn name(self) -> &'static str {
        match self {
            Room::Quota => "its quota",
            Room::Allowed => "the processors it may run on",
            Room::Node => "the node's processors",
        }
    }
}

/// What there is to say of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Limit {
    DiskAtLimit {
        metered: Metered,
        disks: Vec<DiskUse>,
        below: Vec<DiskUse>,
    },
    DiskBusy {
        disk: String,
        busy: f64,
        queue: f64,
        reads: f64,
        read_ns: f64,
        writes: f64,
        write_ns: f64,
        pressure: f64,
    },
    Quota {
        stopped: Vec<ProcessUse>,
    },
    Processors {
        busy: f64,
        cores: Option<f64>,
        user: f64,
        system: f64,
        irq: f64,
        iowait: f64,
        users: Vec<(String, f64)>,
        not_observed: Option<f64>,
        /// Of what is not observed, with low priority: it gives way to the load.
        gives_way: Option<f64>,
        waiting: f64,
        steal: Option<f64>,
    },
    OneThread {
        process: String,
        share: f64,
        daemons: Vec<ProcessUse>,
    },
    ProcessAtLimit {
        process: String,
        used: f64,
        limit: f64,
    },
    Link {
        link: String,
        sends: bool,
        used: f64,
        speed: f64,
    },
    Shaper {
        link: String,
        used: f64,
        rate: f64,
        backlog: f64,
        drops: f64,
        connections: Option<Sending>,
    },
    Losses {
        /// Whether these are the load's own connections, rather than all of the node's.
        own: bool,
        sent: f64,
        sent_again: Option<f64>,
        dropped: Option<f64>,
        not_accepted: Option<f64>,
    },
    Memory {
        faults: f64,
        swapped: f64,
        pressure: f64,
        available: f64,
    },
    GroupMemory {
        process: String,
        hits: f64,
        read_again: f64,
        faults: f64,
        pressure: f64,
        used: f64,
        limit: f64,
    },
    GeneratorQuota {
        share: f64,
        cores: f64,
        allowed: f64,
        stopped_threads: f64,
        limit: f64,
    },
    GeneratorFull {
        own: f64,
        used: f64,
        cores: f64,
        room: Room,
    },
    GeneratorStarved {
        own: f64,
        waiting: f64,
        threads: u64,
        limit: f64,
    },
    GeneratorNear {
        own: f64,
        cores: f64,
        room: Room,
    },
    Flush {
        slow: Vec<Commits>,
    },
    Queue {
        waits: Vec<Wait>,
        throttle: bool,
    },
    GatewayQueue {
        gateway: String,
        queued: f64,
        active: f64,
    },
    OwnLatency {
        nodes: Vec<Idle>,
        waiting: f64,
        in_flight: f64,
        /// A share of its time below which a resource was not busy.
        limit: f64,
    },
    Unobserved {},
    TooFewSamples {
        samples: u64,
        needed: u64,
    },
}

/// The load's own connections, and what those wait for that have data on their way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Sending {
    pub connections: f64,
    pub sending: f64,
    pub receiver_limited: f64,
    pub buffer_limited: f64,
}

/// How busy a node was at most.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Idle {
    pub node: String,
    pub processors: f64,
    /// The busiest disk that the load used, or may have used.
    pub disk: Option<(String, f64)>,
    /// Of an observed process, the busiest thread.
    pub thread: Option<(String, f64)>,
}

/// How long a daemon's transactions wait for commits of metadata.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Commits {
    pub daemon: String,
    pub committing_ns: f64,
    pub whole_ns: f64,
    pub sync_ns: f64,
    pub sync_busy: f64,
}

const GENERATOR: &str = "These numbers show the load generator's limit, not the storage's. Give it more processors, or its own machine.";

impl Limit {
    /// The names of the rule: where the resource is the limit, and where it was busy.
    pub(super) const fn rules(&self) -> (&'static str, &'static str) {
        match self {
            Limit::DiskAtLimit { .. } | Limit::DiskBusy { .. } => ("limit-disk", "busy-disk"),
            Limit::Quota { .. } => ("limit-cgroup", "busy-cgroup"),
            Limit::Processors { .. } => ("limit-processor", "busy-processor"),
            Limit::OneThread { .. } | Limit::ProcessAtLimit { .. } => ("limit-process", "busy-process"),
            Limit::Link { .. } | Limit::Shaper { .. } | Limit::Losses { .. } => {
                ("limit-network", "busy-network")
            }
            Limit::Memory { .. } | Limit::GroupMemory { .. } => ("limit-memory", "busy-memory"),
            Limit::GeneratorQuota { .. }
            | Limit::GeneratorFull { .. }
            | Limit::GeneratorStarved { .. }
            | Limit::GeneratorNear { .. } => ("limit-generator", "busy-generator"),
            Limit::Flush { .. } => ("limit-flush", "busy-flush"),
            Limit::Queue { .. } | Limit::GatewayQueue { .. } => ("limit-queue", "busy-queue"),
            Limit::OwnLatency { .. } => ("limit-latency", "limit-latency"),
            Limit::Unobserved {} | Limit::TooFewSamples { .. } => ("limit-unknown", "limit-unknown"),
        }
    }

    /// One plain sentence without a full stop.
    pub(super) fn title(&self) -> Phrase {
        match self {
            Limit::DiskAtLimit { metered, disks, .. } => {
                let names: Vec<&str> = disks.iter().map(|one| one.disk.as_str()).collect();
                let lowest = disks.iter().map(|one| one.limit).fold(f64::MAX, f64::min);
                let highest = disks.iter().map(|one| one.limit).fold(0.0, f64::max);
                let was = match names.len() {
                    1 => format!("disk {} was at its limit", list(&names)),
                    _ => format!("disks {} were at their limits", list(&names)),
                };
                match (lowest < highest, metered.counts_operations()) {
                    (true, _) => phrase![was],
                    (false, true) => phrase![was, format!(" of {lowest:.0} {}/s", metered.what())],
                    (false, false) => phrase![was, " of ", bytes(lowest), "/s ", metered.what()],
                }
            }
            Limit::DiskBusy { disk, busy, .. } => {
                phrase!["disk ", disk, " was busy ", percent(*busy), " of the time"]
            }
            Limit::Quota { stopped } => {
                let names: Vec<&str> = stopped.iter().map(|one| one.process.as_str()).collect();
                let most = stopped.iter().map(|one| one.share).fold(0.0, f64::max);
                phrase!["CPU quota throttled ", list(&names), " in up to ", percent(most), " of its periods"]
            }
            Limit::Processors { busy, .. } => phrase!["the processors were ", percent(*busy), " busy"],
            Limit::OneThread { process, share, .. } => {
                phrase!["one thread of ", process, " used ", percent(*share), " of a core"]
            }
            Limit::ProcessAtLimit { process, used, limit } => {
                phrase![
                    process,
                    " used ",
                    percent(used / limit),
                    " of the ",
                    cores(*limit),
                    " cores it may use"
                ]
            }
            Limit::Link { link, sends, used, speed } => {
                let way = if *sends { " sending" } else { " receiving" };
                phrase!["network link ", link, " was full: ", percent(used / speed), " of its speed", way]
            }
            Limit::Shaper { link, used, rate, .. } => {
                phrase![
                    "the traffic shaper of network link ",
                    link,
                    " was full: ",
                    percent(used / rate),
                    " of ",
                    bytes(*rate),
                    "/s"
                ]
            }
            Limit::Losses { own: true, .. } => phrase!["the network lost packets of the load"],
            Limit::Losses { own: false, .. } => phrase!["the network lost packets or connections"],
            Limit::Memory { .. } => phrase!["memory was short"],
            Limit::GroupMemory { process, limit, .. } => {
                phrase![
                    "memory was short in the control group of ",
                    process,
                    ", which may use ",
                    block(*limit as u64)
                ]
            }
            Limit::GeneratorQuota { share, .. } => {
                phrase!["CPU quota throttled the load generator in ", percent(*share), " of its periods"]
            }
            Limit::GeneratorFull { own, cores: all, .. } => {
                phrase![
                    "the load generator was the bottleneck: it used ",
                    cores(*own),
                    " of ",
                    cores(*all),
                    " cores"
                ]
            }
            Limit::GeneratorStarved { waiting, threads, .. } => {
                let share = percent(waiting / *threads as f64);
                phrase![
                    "the load generator was short of CPU: its threads waited for a processor ",
                    share,
                    " of the time"
                ]
            }
            Limit::GeneratorNear { own, cores: all, .. } => {
                phrase!["the load generator used ", cores(*own), " of ", cores(*all), " cores"]
            }
            Limit::Flush { slow } => {
                let names: Vec<&str> = slow.iter().map(|one| one.daemon.as_str()).collect();
                phrase!["metadata commits took most of the write time in ", list(&names)]
            }
            Limit::Queue { waits, throttle } => {
                let names: Vec<&str> = waits.iter().map(|one| one.daemon.as_str()).collect();
                let what = match throttle {
                    true => "transactions waited for the throttle of ",
                    false => "operations waited in the queues of ",
                };
                phrase![what, list(&names), " while processors and disks had headroom"]
            }
            Limit::GatewayQueue { gateway, .. } => {
                phrase!["requests queued in gateway ", gateway, " while processors and disks had headroom"]
            }
            Limit::OwnLatency { .. } => {
                phrase!["the target's own latency was the limit: nothing that the load uses was busy"]
            }
            Limit::Unobserved {} => {
                phrase![
                    "nothing that was observed was at its limit, and the target's processes were not observed"
                ]
            }
            Limit::TooFewSamples { .. } => phrase!["too few samples to tell what limited the load"],
        }
    }

    /// What it means and what to do about it.
    pub(super) fn detail(&self) -> String {
        match self {
            Limit::DiskAtLimit { .. } => {
                "Requests wait in the control group before they reach the disk, which therefore looks idle. Raise the limit, or move part of the data (write-ahead log, metadata, cache) to another device, and run again: if this is the bottleneck, throughput follows the limit."
            }
            Limit::DiskBusy { .. } => {
                "A disk that serves many requests at once can be always busy and still have headroom. Run with twice the load: if throughput stays and latency doubles, this disk is the bottleneck."
            }
            Limit::Quota { .. } => {
                "The control group's quota is the limit, not the machine. Raise it by half and run again: if this is the bottleneck, throughput follows."
            }
            Limit::Processors { .. } => {
                "Add processors, or move something to another machine (first the load generator, if it runs on this node): if this is the bottleneck, throughput follows."
            }
            Limit::OneThread { .. } => {
                "More processors do not help a single thread. Give the daemon more shards or threads for this work, or run more daemons, and run again."
            }
            Limit::ProcessAtLimit { .. } => {
                "Its quota or CPU affinity is the limit, not the machine. Raise it and run again: if this is the bottleneck, throughput follows."
            }
            Limit::Link { .. } => {
                "Use a faster link, or spread the load over more nodes or links: if this is the bottleneck, throughput follows. Replication between storage nodes on the same link counts too."
            }
            Limit::Shaper { .. } => {
                "A traffic shaper (tc) lets out less than the link could carry. Raise its rate and run again: if this is the bottleneck, throughput follows."
            }
            Limit::Losses { .. } => {
                "Losses cost waits of 200 ms and more, which show in the high percentiles. Check errors and drops on links and switches, and the listen queues of servers."
            }
            Limit::Memory { .. } => {
                "Programs wait for their own pages to be read back. Give them more memory, or make caches smaller, and run again."
            }
            Limit::GroupMemory { .. } => {
                "The control group gives pages back and reads them again soon after, while the machine may have memory left. Raise its limit, or make caches smaller, and run again: if this is the bottleneck, throughput follows."
            }
            Limit::GeneratorQuota { .. } | Limit::GeneratorFull { .. } | Limit::GeneratorStarved { .. } => GENERATOR,
            Limit::GeneratorNear { .. } => "A heavier load may hit the generator's limit before the storage's.",
            Limit::Flush { .. } => {
                "One thread of each OSD syncs RocksDB, and all writes wait for it. Put RocksDB and its log on a device with fast flushes (power-loss protection), and run again: if this is the bottleneck, write latency falls to that device's."
            }
            Limit::Queue { throttle: false, .. } => {
                "More shards (osd_op_num_shards), more placement groups, or a load over more objects spread the work; try one of them."
            }
            Limit::Queue { throttle: true, .. } => {
                "Raise bluestore_throttle_bytes and bluestore_throttle_deferred_bytes and run again."
            }
            Limit::GatewayQueue { .. } => {
                "Give the gateway more threads (rgw_thread_pool_size), or add a gateway, and run again."
            }
            Limit::OwnLatency { .. } => {
                "Every operation waited for the target, and the target for nothing that was observed: a lock, a sleep, a limit of its own, or something behind it. More workers bring more only if it serves them side by side."
            }
            Limit::Unobserved {} => {
                "Name the processes that serve the load under `observe`, and run `tidemark observe` on their nodes: otherwise the target's own latency cannot be told from what it waits for."
            }
            Limit::TooFewSamples { .. } => "Nodes are observed once a second. Measure for longer.",
        }
        .into()
    }

    /// Numbers with their units, and the arithmetic.
    pub(super) fn evidence(&self) -> Vec<String> {
        let ns = |ns: f64| units::duration_ns(ns as u64);
        match self {
            Limit::DiskAtLimit { metered, disks, below } => {
                let line = |one: &DiskUse| {
                    let (used, limit) = (metered.amount(one.used), metered.amount(one.limit));
                    let (what, share) = (metered.what(), units::percent(one.used / one.limit));
                    let busy = units::percent(one.busy);
                    format!(
                        "{}: mean {used} {what}/s of {limit} allowed = {share}; the disk itself was busy {busy} of the time",
                        one.disk
                    )
                };
                disks.iter().chain(below).map(line).collect()
            }
            Limit::DiskBusy { busy, queue, reads, read_ns, writes, write_ns, pressure, .. } => vec![
                format!("a request in flight {} of the time, {queue:.1} on average", units::percent(*busy)),
                format!("reads: {} at {} each", units::rate(*reads), ns(*read_ns)),
                format!("writes: {} at {} each", units::rate(*writes), ns(*write_ns)),
                format!("all tasks waited for disks {} of the time", units::percent(*pressure)),
            ],
            Limit::Quota { stopped } => {
                let line = |one: &ProcessUse| {
                    format!(
                        "{}: throttled in {} of the periods, used {:.2} cores of {:.2} allowed, {:.2} threads stopped on average",
                        one.process,
                        units::percent(one.share),
                        one.cores,
                        one.allowed,
                        one.stopped_threads
                    )
                };
                stopped.iter().map(line).collect()
            }
            Limit::Processors {
                busy,
                cores,
                user,
                system,
                irq,
                iowait,
                users,
                not_observed,
                gives_way,
                waiting,
                steal,
            } => {
                let of =
                    cores.map(|cores| format!(" = {:.2} of {cores} cores", busy * cores)).unwrap_or_default();
                let mut lines = vec![format!(
                    "busy {}{of}: user {}, kernel {}, interrupts {}; waiting for disks {}",
                    units::percent(*busy),
                    units::percent(*user),
                    units::percent(*system),
                    units::percent(*irq),
                    units::percent(*iowait)
                )];
                if !users.is_empty() {
                    let mut all: Vec<String> =
                        users.iter().map(|(process, cores)| format!("{process} {cores:.2} cores")).collect();
                    let low = gives_way.map(|cores| format!(" ({cores:.2} of them with low priority)"));
                    let low = low.unwrap_or_default();
                    all.extend(not_observed.map(|cores| format!("not observed {cores:.2} cores{low}")));
                    lines.push(format!("used by: {}", all.join(", ")));
                }
                lines.push(format!(
                    "some task waited for a processor {} of the time",
                    units::percent(*waiting)
                ));
                lines.extend(
                    steal.map(|steal| format!("the hypervisor took {} of the time", units::percent(steal))),
                );
                lines
            }
            Limit::OneThread { daemons, .. } => {
                let line = |one: &ProcessUse| {
                    let (share, cores) = (units::percent(one.share), one.cores);
                    format!(
                        "{}: busiest thread {share} of a core, all its threads {cores:.2} cores",
                        one.process
                    )
                };
                daemons.iter().map(line).collect()
            }
            Limit::ProcessAtLimit { process, used, limit } => vec![format!(
                "{process}: mean {used:.2} cores of {limit:.2} allowed = {}",
                units::percent(used / limit)
            )],
            Limit::Link { sends, used, speed, .. } => vec![format!(
                "{} {}/s of {}/s = {}, without frame headers",
                if *sends { "sent" } else { "received" },
                units::bytes(*used as u64),
                units::bytes(*speed as u64),
                units::percent(used / speed)
            )],
            Limit::Shaper { used, rate, backlog, drops, connections, .. } => {
                let per_second = |value: f64| units::bytes(value as u64);
                let mut lines = vec![format!(
                    "let out {}/s of {}/s = {}; {} waited in it, and {drops:.1} packets per second found it full",
                    per_second(*used),
                    per_second(*rate),
                    units::percent(used / rate),
                    units::binary_bytes(*backlog as u64)
                )];
                lines.extend(connections.as_ref().map(Sending::line));
                lines
            }
            Limit::Losses { own, sent, sent_again, dropped, not_accepted } => {
                let whose = if *own { "the load's" } else { "the node's" };
                let again = sent_again.map(|again| {
                    let all = sent + again;
                    format!(
                        "{again:.1} of {whose} {all:.1} TCP segments per second were retransmitted = {}",
                        units::percent(again / all)
                    )
                });
                let dropped = dropped.map(|number| {
                    format!("the kernel's receive queues dropped {number:.1} packets per second")
                });
                let refused = not_accepted.map(|number| {
                    format!("{number:.1} connections per second were dropped because nobody accepted them")
                });
                again.into_iter().chain(dropped).chain(refused).collect()
            }
            Limit::Memory { faults, swapped, pressure, available } => vec![
                format!(
                    "{faults:.1} pages per second had to be read from disk, {}/s from swap",
                    units::bytes(*swapped as u64)
                ),
                format!("some task waited for memory {} of the time", units::percent(*pressure)),
                format!("available: {}", units::binary_bytes(*available as u64)),
            ],
            Limit::GroupMemory { hits, read_again, faults, pressure, used, limit, .. } => {
                let binary = |bytes: f64| units::binary_bytes(bytes as u64);
                let mut lines = vec![
                    format!(
                        "{} used of {}; at the limit {hits:.1} times per second",
                        binary(*used),
                        binary(*limit)
                    ),
                    format!(
                        "{}/s given back and read again; the process waited for {faults:.1} pages per second",
                        units::bytes(*read_again as u64)
                    ),
                ];
                let waited = Some(units::percent(*pressure)).filter(|_| *pressure > 0.0);
                lines.extend(
                    waited.map(|share| format!("some task in it waited for memory {share} of the time")),
                );
                lines
            }
            Limit::GeneratorQuota { cores, allowed, stopped_threads, limit, .. } => vec![format!(
                "used {cores:.2} cores of {allowed:.2} allowed, {stopped_threads:.2} threads stopped on average; limit: {} of the periods",
                units::percent(*limit)
            )],
            Limit::GeneratorFull { own, used, cores, room } => vec![format!(
                "{}: {used:.2} of {cores:.2} cores used = {}, of which by the generator's threads {own:.2} = {}",
                room.name(),
                units::percent(used / cores),
                units::percent(own / used)
            )],
            Limit::GeneratorStarved { own, waiting, threads, limit } => vec![format!(
                "({own:.2} threads on a processor + {waiting:.2} ready without one) / {threads} threads = {}; limit: {}",
                units::percent((own + waiting) / *threads as f64),
                units::percent(*limit)
            )],
            Limit::GeneratorNear { own, cores, room } => {
                vec![format!(
                    "{}: {own:.2} / {cores:.2} cores = {}",
                    room.name(),
                    units::percent(own / cores)
                )]
            }
            Limit::Flush { slow } => {
                let line = |one: &Commits| {
                    format!(
                        "{}: {} of a {} transaction = {}; one sync takes {}, and its thread is {} busy",
                        one.daemon,
                        ns(one.committing_ns),
                        ns(one.whole_ns),
                        units::percent((one.committing_ns / one.whole_ns).min(1.0)),
                        ns(one.sync_ns),
                        units::percent(one.sync_busy)
                    )
                };
                slow.iter().map(line).collect()
            }
            Limit::Queue { waits, throttle } => {
                let what = match throttle {
                    true => "of a transaction before BlueStore accepts it",
                    false => "of an operation before it leaves the queue",
                };
                let line = |one: &Wait| {
                    let share = units::percent((one.part_ns / one.whole_ns).min(1.0));
                    format!("{}: {} of {} {what} = {share}", one.daemon, ns(one.part_ns), ns(one.whole_ns))
                };
                waits.iter().map(line).collect()
            }
            Limit::GatewayQueue { queued, active, .. } => {
                vec![format!("{queued:.1} requests queued and {active:.1} being served, on average")]
            }
            Limit::OwnLatency { nodes, waiting, in_flight, limit } => {
                let waited = format!(
                    "observed processes waited for a processor with {waiting:.2} threads on average, for {in_flight:.0} operations in flight"
                );
                let all =
                    format!("not busy is what is in use less than {} of the time", units::percent(*limit));
                nodes.iter().map(Idle::line).chain([all, waited]).collect()
            }
            Limit::Unobserved {} => Vec::new(),
            Limit::TooFewSamples { samples, needed } => {
                vec![format!("samples of the nodes in the window: {samples}, needed: {needed}")]
            }
        }
    }
}

impl Sending {
    fn line(&self) -> String {
        let Sending { connections, sending, receiver_limited, buffer_limited } = self;
        format!(
            "of {connections:.0} connections {sending:.1} had data on their way on average: {receiver_limited:.1} waited for the receiver, {buffer_limited:.1} for their send buffer, the others for the network"
        )
    }
}

impl Idle {
    fn line(&self) -> String {
        let Idle { node, processors, disk, thread } = self;
        let busiest =
            |(name, share): &(String, f64), what: &str| format!("; {what} {name} {}", units::percent(*share));
        format!(
            "{node}: processors {} busy{}{}",
            units::percent(*processors),
            disk.as_ref().map(|disk| busiest(disk, "disk")).unwrap_or_default(),
            thread.as_ref().map(|thread| busiest(thread, "the busiest thread of")).unwrap_or_default()
        )
    }
}
