//! Whether the devices under the volumes saw the bytes that the load claims.

use super::Facts;
use super::phrase::{Phrase, block, bytes, count, decimal, duration, phrase, share, whole_percent};
use serde::Serialize;
use tidemark_measure::kind::Cache;
use tidemark_measure::record::OwnIo;
use tidemark_measure::units;

/// Devices named in a title.
const NAMED_MOST: usize = 3;

/// What was done to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Way {
    Read,
    Write,
    Trim,
}

impl Way {
    const fn past(self) -> &'static str {
        match self {
            Way::Read => "read",
            Way::Write => "wrote",
            Way::Trim => "discarded",
        }
    }

    const fn participle(self) -> &'static str {
        match self {
            Way::Read => "read",
            Way::Write => "written",
            Way::Trim => "trimmed",
        }
    }
}

/// How what the devices saw compares with what the load claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Compared {
    TooLittle,
    Missing,
    /// From a page cache that the document declares warm.
    MissingAsDeclared,
    Seen,
    /// By a loop device, but not by the device under its file.
    NotBehind,
    TooMuch,
}

impl Compared {
    /// Whether the devices saw less than the load claims.
    pub(crate) const fn is_missing(self) -> bool {
        matches!(self, Compared::Missing | Compared::MissingAsDeclared | Compared::NotBehind)
    }
}

/// What a device saw of one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Seen {
    pub device: String,
    pub bytes: u64,
    pub requests: u64,
    /// Of a loop device: its file, the device under that, and the bytes which that saw.
    pub behind: Option<(String, String, u64)>,
}

/// What a driver claims to have moved in one way, and what the kernel counted for its process.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct DriverMoved {
    pub driver: String,
    pub claimed_bytes: u64,
    pub own_bytes: u64,
}

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Proof {
    Bytes {
        way: Way,
        compared: Compared,
        claimed_bytes: u64,
        devices: Vec<Seen>,
        /// Bytes that this run itself had moved, on any device, where that is known.
        own_bytes: Option<u64>,
        cache: Cache,
        direct: bool,
        needed_bytes: u64,
    },
    /// What the kernel counted for each driver's process: those that moved less than they claim, and all that moved enough to tell.
    Drivers {
        way: Way,
        missing: Vec<String>,
        drivers: Vec<DriverMoved>,
        /// How many moved anything.
        of: usize,
    },
    /// What the OSDs of a cluster counted. Of writes: for one copy.
    Osds {
        way: Way,
        compared: Compared,
        claimed_bytes: u64,
        seen_bytes: u64,
        /// Bytes that they read from their own caches.
        cached_bytes: u64,
        osds: u32,
        copies: u32,
        needed_bytes: u64,
    },
    /// What the devices did that this run did not ask for.
    Foreign {
        devices: Vec<String>,
        read_bytes: u64,
        written_bytes: u64,
        share: f64,
        own: OwnIo,
    },
    /// Requests that are larger than the operations.
    Merged {
        way: Way,
        devices: Vec<String>,
        operation_bytes: u64,
        request_bytes: u64,
    },
    Unchecked {
        reasons: Vec<String>,
    },
    /// Evidence under keys that this program does not know.
    Unread {
        keys: Vec<String>,
    },
    Buffered {},
    SyncAfterLoad {
        sync_ns: u64,
        window_ns: u64,
        bandwidth: f64,
        bandwidth_with_sync: f64,
        limit: f64,
        limit_invalid: f64,
    },
}

fn names<'a>(devices: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<_> = devices.map(String::as_str).collect();
    match names.as_slice() {
        [] => "the device".into(),
        all if all.len() <= NAMED_MOST => super::list(all),
        all => format!("{} devices", all.len()),
    }
}

/// Bytes that the devices saw and, where that is known, this run itself had moved.
pub(crate) fn seen(devices: &[Seen], own_bytes: Option<u64>) -> u64 {
    let all = devices.iter().fold(0u64, |sum, one| sum.saturating_add(one.bytes));
    own_bytes.map_or(all, |own| own.min(all))
}

/// The first loop device whose file's device saw less of what it read or wrote than `least`, and that share.
pub(crate) fn not_behind(devices: &[Seen], least: f64) -> Option<(&Seen, &str, &str, f64)> {
    devices.iter().find_map(|one| {
        let (file, device, bytes) = one.behind.as_ref()?;
        let part = *bytes as f64 / one.bytes.max(1) as f64;
        (one.bytes > 0 && part < least).then_some((one, file.as_str(), device.as_str(), part))
    })
}

impl Facts for Proof {
    fn rule(&self) -> &'static str {
        match self {
            Proof::Bytes { way: Way::Read, compared, .. } | Proof::Osds { way: Way::Read, compared, .. }
                if compared.is_missing() =>
            {
                "reads-from-cache"
            }
            Proof::Bytes { way: Way::Read, .. } | Proof::Osds { way: Way::Read, .. } => "reads-proven",
            Proof::Bytes { way: Way::Write, compared, .. }
            | Proof::Osds { way: Way::Write, compared, .. }
                if compared.is_missing() =>
            {
                "writes-in-memory"
            }
            Proof::Bytes { way: Way::Write, .. } | Proof::Osds { way: Way::Write, .. } => "writes-proven",
            Proof::Bytes { way: Way::Trim, .. } | Proof::Osds { way: Way::Trim, .. } => "trims-proven",
            Proof::Drivers { missing, .. } if missing.is_empty() => "drivers-proven",
            Proof::Drivers { .. } => "drivers-not-proven",
            Proof::Foreign { .. } => "foreign-traffic",
            Proof::Merged { .. } => "requests-merged",
            Proof::Unchecked { .. } => "not-proven",
            Proof::Unread { .. } => "evidence-unread",
            Proof::Buffered {} => "buffered",
            Proof::SyncAfterLoad { .. } => "sync-after-load",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Proof::Bytes { way, compared, claimed_bytes, devices, own_bytes, .. } => {
                let part = seen(devices, *own_bytes) as f64 / *claimed_bytes as f64;
                let (missing, names) = (share(1.0 - part), names(devices.iter().map(|one| &one.device)));
                match (way, compared) {
                    (_, Compared::NotBehind) => match not_behind(devices, f64::INFINITY) {
                        Some((one, file, device, part)) => {
                            let verb = if *way == Way::Read { " come from " } else { " reach " };
                            let part = share(part);
                            phrase![
                                "of the bytes that ",
                                one.device.as_str(),
                                " ",
                                way.past(),
                                ", only ",
                                part,
                                verb,
                                device,
                                ", which its file ",
                                file,
                                " lies on"
                            ]
                        }
                        None => phrase!["the file behind ", names, " was not counted"],
                    },
                    (_, Compared::TooLittle) => {
                        phrase!["too little was ", way.participle(), " to compare with the device counters"]
                    }
                    (Way::Trim, Compared::Missing) => phrase!["no trim reached ", names],
                    (Way::Read, Compared::Missing) => {
                        phrase![missing, " of the bytes read came from memory, not from ", names]
                    }
                    (_, Compared::MissingAsDeclared) => {
                        phrase![
                            missing,
                            " of the bytes read came from memory, not from ",
                            names,
                            ", as declared"
                        ]
                    }
                    (Way::Write, Compared::Missing) => {
                        phrase![missing, " of the bytes written did not reach ", names]
                    }
                    (_, Compared::TooMuch) => {
                        phrase![names, " ", way.past(), " ", decimal(part), " times as much as the load"]
                    }
                    (_, Compared::Seen) => {
                        phrase!["device counters confirm the bytes ", way.participle(), ": ", share(part)]
                    }
                }
            }
            Proof::Osds { way, compared, claimed_bytes, seen_bytes, .. } => {
                let part = *seen_bytes as f64 / *claimed_bytes as f64;
                let missing = share(1.0 - part);
                match (compared, way) {
                    (Compared::TooLittle, _) => {
                        phrase!["too little was ", way.participle(), " to compare with the OSDs' counters"]
                    }
                    (Compared::TooMuch, _) => {
                        phrase!["the OSDs ", way.past(), " ", decimal(part), " times as much as the load"]
                    }
                    (Compared::Seen, _) => {
                        phrase!["the OSDs' counters confirm the bytes ", way.participle(), ": ", share(part)]
                    }
                    (_, Way::Read) => {
                        phrase![missing, " of the bytes read did not come from the OSDs' devices"]
                    }
                    (_, _) => phrase![missing, " of the bytes written did not reach the OSDs"],
                }
            }
            Proof::Drivers { way, missing, drivers, of } => match missing.as_slice() {
                [] if drivers.len() < *of => phrase![
                    count(drivers.len() as u64),
                    " of ",
                    count(*of as u64),
                    " drivers ",
                    way.past(),
                    " what they claim, by the kernel's counts of their processes; the others too little to tell"
                ],
                [] => match drivers.as_slice() {
                    [only] => phrase![
                        "driver ",
                        only.driver.as_str(),
                        " ",
                        way.past(),
                        " what it claims, by the kernel's count of its process"
                    ],
                    all => phrase![
                        "each of ",
                        count(all.len() as u64),
                        " drivers ",
                        way.past(),
                        " what it claims, by the kernel's count of its process"
                    ],
                },
                [only] => phrase!["driver ", only.as_str(), " claims more than its process ", way.past()],
                several => phrase![
                    count(several.len() as u64),
                    " drivers claim more than their processes ",
                    way.past()
                ],
            },
            Proof::Foreign { devices, read_bytes, written_bytes, share: part, .. } => {
                let [read, written] = [*read_bytes, *written_bytes].map(|moved| bytes(moved as f64));
                phrase![
                    "others read ",
                    read,
                    " from ",
                    names(devices.iter()),
                    " and wrote ",
                    written,
                    " to it meanwhile: ",
                    share(*part),
                    " of all its traffic"
                ]
            }
            Proof::Merged { way, devices, operation_bytes, request_bytes } => {
                let [operations, requests] = [*operation_bytes, *request_bytes].map(block);
                phrase![
                    names(devices.iter()),
                    " ",
                    way.past(),
                    " in requests of ",
                    requests,
                    " on average, for operations of ",
                    operations
                ]
            }
            Proof::Unchecked { reasons } => match reasons.as_slice() {
                [only] if !only.trim_end().trim_end_matches('.').is_empty() => {
                    phrase![only.trim_end().trim_end_matches('.')]
                }
                [_] => phrase!["something could not be checked"],
                several => phrase![count(several.len() as u64), " things could not be checked"],
            },
            Proof::Unread { keys } => {
                let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                phrase!["evidence was judged by no rule: this program cannot read ", super::list(&names)]
            }
            Proof::Buffered {} => phrase!["the load used the page cache"],
            Proof::SyncAfterLoad { sync_ns, window_ns, .. } => {
                let part = share(*sync_ns as f64 / *window_ns as f64);
                phrase!["the sync after the load took ", duration(*sync_ns), ", ", part, " of the window"]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Proof::Bytes { way, compared, .. } => match (way, compared) {
                (Way::Read, Compared::Missing) => {
                    "These are numbers of the page cache. Read with direct I/O, use volumes larger than memory, or declare the cache warm if that is what you want to measure."
                }
                (Way::Write, Compared::Missing) => {
                    "They were still in the page cache when the stage ended, or were overwritten there before they reached the device. Write with direct I/O, or sync at the end of the load."
                }
                (_, Compared::NotBehind) => {
                    "The rest is in the page cache of this machine: these are numbers of its memory. Attach the file with `losetup --direct-io=on`, or put the load on the device itself."
                }
                (Way::Trim, Compared::Missing) => "The file system took the space back and did not pass the trim on.",
                (Way::Read, Compared::TooMuch) => "Read-ahead, or something else reads from the same device.",
                (_, Compared::TooMuch) => {
                    "The file system or replication adds to it (journal, copy on write), or something else writes to the same device."
                }
                _ => "",
            },
            Proof::Osds { way, compared, claimed_bytes, seen_bytes, cached_bytes, .. } => match (compared, way) {
                (Compared::TooMuch, Way::Read) => "Other clients of the cluster read as well, or it recovers or scrubs.",
                (Compared::TooMuch, _) => "Other clients of the cluster write as well, or it recovers.",
                (Compared::Missing, Way::Read) if seen_bytes.saturating_add(*cached_bytes) >= *claimed_bytes / 10 * 9 => {
                    "The OSDs had them in their caches: these are in part numbers of memory. Use images larger than the OSDs' caches (`osd_memory_target`) if you want to measure their devices."
                }
                (Compared::Missing, Way::Read) => {
                    "Nor did they come from the OSDs' caches: they were never written, or librbd had them in its own cache (`rbd_cache`). Fill the images first, or turn that cache off."
                }
                (Compared::Missing, _) => {
                    "librbd kept them in its own cache (`rbd_cache`), or they were overwritten there. Turn that cache off, or sync at the end of the load."
                }
                _ => "",
            },
            Proof::Drivers { missing, .. } if missing.is_empty() => "",
            Proof::Drivers { way: Way::Read, .. } => {
                "The rest came from memory, which the sum over all drivers can hide. Read with direct I/O, or use volumes larger than the memory of a driver's machine."
            }
            Proof::Drivers { .. } => {
                "The rest was still in memory when the stage ended, or was overwritten there, which the sum over all drivers can hide. Write with direct I/O, or sync at the end of the load."
            }
            Proof::Foreign { .. } => {
                "Other processes' requests delay those of the load. What a file system reads and writes for itself (its journal, metadata) counts as others'."
            }
            Proof::Merged { .. } => {
                "The kernel joins operations that are submitted together and lie side by side. The throughput is that of larger requests: set `batch: 1` to submit one at a time, as fio does by default."
            }
            Proof::Unchecked { .. } => "The numbers are not known to be wrong, but they are not proven either.",
            Proof::Unread { .. } => {
                "Another version of Tidemark wrote it, or another program with engines of its own. Judge the run with that one."
            }
            Proof::Buffered {} => {
                "Reads may come from memory, and writes go there first: check the device counters and the sync at the end."
            }
            Proof::SyncAfterLoad { .. } => {
                "That much was still in memory when the window ended, so part of the bandwidth is memory's. Measure for longer, or with direct I/O."
            }
        }
        .into()
    }

    fn proves(&self) -> bool {
        match self {
            Proof::Bytes { compared, way, .. } => !compared.is_missing() || *way == Way::Trim,
            Proof::Drivers { missing, .. } => missing.is_empty(),
            _ => false,
        }
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Proof::Bytes {
                way,
                compared,
                claimed_bytes,
                devices,
                own_bytes,
                cache,
                direct,
                needed_bytes,
            } => {
                let each: Vec<String> = devices
                    .iter()
                    .map(|one| format!("{} {} {}", one.device, way.past(), units::binary_bytes(one.bytes)))
                    .collect();
                let own = own_bytes.map_or(String::new(), |own| {
                    format!(", of which this run caused at most {}", units::binary_bytes(own))
                });
                let mut lines = vec![
                    format!(
                        "claimed {}, {}{own}: {}",
                        units::binary_bytes(*claimed_bytes),
                        each.join(", "),
                        whole_percent(seen(devices, *own_bytes) as f64 / *claimed_bytes as f64)
                    ),
                    format!(
                        "page cache: declared {}, {}",
                        cache.name(),
                        if *direct { "bypassed" } else { "in use" }
                    ),
                ];
                if *compared == Compared::TooLittle {
                    lines.push(format!("needed: {}", units::binary_bytes(*needed_bytes)));
                }
                lines
            }
            Proof::Osds {
                way,
                compared,
                claimed_bytes,
                seen_bytes,
                cached_bytes,
                osds,
                copies,
                needed_bytes,
            } => {
                let (claimed, moved) =
                    (units::binary_bytes(*claimed_bytes), units::binary_bytes(*seen_bytes));
                let of = match way {
                    Way::Read => {
                        format!(
                            "read {moved} from devices and {} from caches",
                            units::binary_bytes(*cached_bytes)
                        )
                    }
                    _ => format!("wrote {moved} for each of {} copies", copies),
                };
                let part = whole_percent(*seen_bytes as f64 / *claimed_bytes as f64);
                let mut lines = vec![
                    format!("claimed {claimed}, {osds} OSDs {of}: {part}"),
                    "the OSDs count for all clients of the cluster".to_owned(),
                ];
                if *compared == Compared::TooLittle {
                    lines.push(format!("needed: {}", units::binary_bytes(*needed_bytes)));
                }
                lines
            }
            Proof::Drivers { way, drivers, .. } => drivers
                .iter()
                .map(|one| {
                    let [claimed, own] = [one.claimed_bytes, one.own_bytes].map(units::binary_bytes);
                    let part = whole_percent(one.own_bytes as f64 / one.claimed_bytes as f64);
                    format!("{}: claimed {claimed}, its process {} {own}: {part}", one.driver, way.past())
                })
                .collect(),
            Proof::Foreign { own, .. } => {
                let [read, written] = [own.read_bytes, own.written_bytes].map(units::binary_bytes);
                vec![format!(
                    "this run had {read} read and wrote {written}, by the kernel's count for its processes"
                )]
            }
            Proof::Unchecked { reasons } if reasons.len() > 1 => reasons.clone(),
            Proof::Merged { .. } | Proof::Unchecked { .. } | Proof::Unread { .. } | Proof::Buffered {} => {
                Vec::new()
            }
            Proof::SyncAfterLoad {
                window_ns, bandwidth, bandwidth_with_sync, limit, limit_invalid, ..
            } => {
                let rate = |bytes: f64| format!("{}/s", units::bytes(bytes as u64));
                vec![
                    format!(
                        "written: {} over the window; {} over the window and the sync",
                        rate(*bandwidth),
                        rate(*bandwidth_with_sync)
                    ),
                    format!(
                        "limit: {} of the window ({}); invalid from {}",
                        units::percent(*limit),
                        units::duration_ns(*window_ns),
                        units::percent(*limit_invalid)
                    ),
                ]
            }
        }
    }
}
