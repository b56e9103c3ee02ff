//! What the databases under a stage say of themselves.

use super::record::{LedgerUse, ReplicaLag};
use super::settings::meaning;
use serde::Serialize;
use tidemark_judge::Facts;
use tidemark_judge::words::phrase::{Phrase, bytes, count, decimal, duration, phrase, share, whole_percent};
use tidemark_measure::fault::Fault;
use tidemark_measure::units;

/// Characters of a statement in a title.
const STATEMENT_MOST: usize = 90;

/// Where what a database read came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Origin {
    /// Blocks that were not in its cache were read from storage, or from where nobody can see.
    Storage,
    /// As good as all blocks were in its cache.
    Cache,
    /// All of its data fit into its cache.
    Fits,
    /// What was not in its cache was in the page cache of its machine.
    PageCache,
}

/// A statement whose plan is another one after the load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PlanChange {
    pub(super) statement: String,
    pub(super) from: String,
    /// Empty if it has none any more.
    pub(super) to: String,
}

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Database {
    /// With these settings commits may be lost.
    Relaxed {
        server: String,
        settings: Vec<(String, String)>,
    },
    /// With these settings they are not.
    Durable {
        server: String,
        settings: Vec<(String, String)>,
    },
    Reads {
        server: String,
        origin: Origin,
        hit: f64,
        blocks: u64,
        data_bytes: Option<u64>,
        cache_bytes: Option<u64>,
        /// Bytes of blocks that were not in the cache, and bytes that its devices read.
        missed_bytes: Option<u64>,
        device_bytes: Option<u64>,
        limit: f64,
    },
    /// Whether reads came from storage cannot be told: too few blocks, or no counters.
    ReadsNotShown {
        server: String,
        blocks: Option<u64>,
        needed: u64,
    },
    /// No whole cycle of checkpoints was part of the load.
    Checkpoints {
        server: String,
        checkpoints: u64,
        log_bytes: u64,
        lasted_ns: u64,
        /// How long one takes at this rate.
        cycle_ns: Option<u64>,
    },
    /// The database counted this many commits, and clients know of so many.
    Commits {
        server: String,
        commits: u64,
        acknowledged: u64,
    },
    /// Meanwhile the server was started anew, or recovered from a crash.
    /// And the longest time without a success, from and to, since the start of the work.
    Restarted {
        server: String,
        gap: Option<(u64, u64)>,
    },
    /// It went on, and somebody set its counters back.
    CountersReset {
        server: String,
    },
    /// Of so many statements, those whose plans changed.
    Plans {
        server: String,
        changed: Vec<PlanChange>,
        of: u64,
    },
    /// How far a replica was behind, by markers of which there are some.
    Replica {
        lag: ReplicaLag,
    },
    /// A ledger of acknowledged commits, and the settings with which some may be lost.
    Ledger {
        ledger: LedgerUse,
        settings: Vec<(String, String)>,
    },
    Aborted {
        aborts: Vec<(Fault, u64)>,
        commits: u64,
    },
    /// Checks, each with the rows that break what must hold.
    Broken {
        checks: Vec<(String, u64)>,
    },
    Holds {
        checks: Vec<(String, u64)>,
    },
    NotChecked {
        checks: Vec<(String, u64)>,
    },
}

/// `fsync = off, full_page_writes = off`.
fn named(settings: &[(String, String)]) -> String {
    let each: Vec<String> = settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    each.join(", ")
}

/// The beginning of a long statement.
fn shortened(statement: &str) -> String {
    match statement.char_indices().nth(STATEMENT_MOST) {
        Some((end, _)) => format!("{}...", &statement[..end]),
        None => statement.to_owned(),
    }
}

/// A setting with what it means.
fn told((name, value): &(String, String)) -> String {
    match meaning(name, value) {
        Some(meaning) => format!("{name} = {value}: {meaning}"),
        None => format!("{name} = {value}"),
    }
}

impl Facts for Database {
    fn rule(&self) -> &'static str {
        match self {
            Database::Relaxed { .. } => "relaxed-durability",
            Database::Durable { .. } => "durable-commits",
            Database::Reads { origin: Origin::Storage, .. } => "database-cache",
            Database::Reads { origin: Origin::PageCache, .. } => "reads-from-page-cache",
            Database::Reads { .. } => "reads-from-database-cache",
            Database::ReadsNotShown { .. } => "reads-not-shown",
            Database::Checkpoints { checkpoints: 0, .. } => "no-checkpoint",
            Database::Checkpoints { .. } => "checkpoint-cycle",
            Database::Commits { commits, acknowledged, .. } if commits < acknowledged => "commits-missing",
            Database::Commits { .. } => "commits-counted",
            Database::Restarted { .. } => "database-restarted",
            Database::CountersReset { .. } => "counters-reset",
            Database::Plans { changed, .. } if changed.is_empty() => "plans-kept",
            Database::Plans { .. } => "plan-changed",
            Database::Replica { lag } if lag.unseen > 0 => "replica-behind",
            Database::Replica { .. } => "replica-lag",
            Database::Ledger { ledger, .. } => match (ledger.missing, ledger.unexpected) {
                (Some(0), Some(0)) => "ledger-kept",
                (Some(0), _) => "ledger-unexpected",
                (Some(_), _) => "ledger-missing",
                (None, _) => "ledger-not-compared",
            },
            Database::Aborted { .. } => "aborted-attempts",
            Database::Broken { .. } => "data-broken",
            Database::Holds { .. } => "data-hold",
            Database::NotChecked { .. } => "data-not-checked",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Database::Relaxed { settings, .. } => {
                phrase!["the database may lose commits that it has acknowledged: ", named(settings)]
            }
            Database::Durable { settings, .. } => {
                phrase!["the database is set to keep what it has acknowledged: ", named(settings)]
            }
            Database::Reads { origin: Origin::Cache, hit, .. } => {
                phrase![share(*hit), " of the blocks that the database used came from its own memory"]
            }
            Database::Reads { origin: Origin::Fits, data_bytes, cache_bytes, .. } => {
                let size = |size: &Option<u64>| bytes(size.unwrap_or(0) as f64);
                phrase![
                    "the data, ",
                    size(data_bytes),
                    ", fit into the database's cache of ",
                    size(cache_bytes)
                ]
            }
            Database::Reads { origin: Origin::PageCache, missed_bytes, device_bytes, .. } => {
                let size = |size: &Option<u64>| bytes(size.unwrap_or(0) as f64);
                phrase![
                    "the page cache served what the database read: its devices read ",
                    size(device_bytes),
                    " of ",
                    size(missed_bytes)
                ]
            }
            Database::Reads { hit, data_bytes: Some(data), cache_bytes: Some(cache), .. } => {
                phrase![
                    "the data are ",
                    decimal(*data as f64 / (*cache).max(1) as f64),
                    " times the database's cache, and ",
                    share(*hit),
                    " of the blocks came from it"
                ]
            }
            Database::Reads { hit, .. } => {
                phrase![share(*hit), " of the blocks came from the database's cache"]
            }
            Database::ReadsNotShown { .. } => {
                phrase!["that reads came from storage, as the document asks, cannot be shown"]
            }
            Database::Checkpoints { checkpoints: 0, log_bytes, .. } => {
                phrase!["there was no checkpoint, with ", bytes(*log_bytes as f64), " written to the log"]
            }
            Database::Checkpoints { lasted_ns, cycle_ns, .. } => {
                phrase![
                    "the load had no whole checkpoint cycle: it lasted ",
                    duration(*lasted_ns),
                    ", and a cycle takes ",
                    duration(cycle_ns.unwrap_or(0))
                ]
            }
            Database::Commits { commits, acknowledged, .. } if commits < acknowledged => {
                phrase![
                    "the database counted ",
                    count(acknowledged - commits),
                    " commits fewer than clients saw acknowledged"
                ]
            }
            Database::Commits { acknowledged, .. } => {
                phrase!["the database counted every acknowledged transaction: ", count(*acknowledged)]
            }
            Database::Restarted { gap: None, .. } => phrase!["the database server restarted during the load"],
            Database::Restarted { gap: Some((from, to)), .. } => phrase![
                "the database server restarted during the load, in which nothing was acknowledged for ",
                duration(to.saturating_sub(*from))
            ],
            Database::CountersReset { .. } => {
                phrase!["the database's counters were reset during the load, so they do not cover it"]
            }
            Database::Plans { changed, of, .. } => match changed.as_slice() {
                [] => phrase!["no plan changed during the load, of ", count(*of), " statements"],
                [only] => {
                    phrase!["the plan of a statement changed during the load: ", shortened(&only.statement)]
                }
                [first, ..] => phrase![
                    "the plans of ",
                    count(changed.len() as u64),
                    " statements changed during the load, such as ",
                    shortened(&first.statement)
                ],
            },
            Database::Replica { lag } if lag.unseen > 0 => phrase![
                "a replica did not show ",
                count(lag.unseen),
                " of ",
                count(lag.markers),
                " rows written on the primary, the oldest for ",
                duration(lag.waited_ns)
            ],
            Database::Replica { lag } => {
                phrase![
                    "a replica was behind by ",
                    duration(lag.p50_ns),
                    " in the median, and by ",
                    duration(lag.max_ns),
                    " at most"
                ]
            }
            Database::Ledger { ledger, .. } => match (ledger.missing, ledger.unexpected) {
                (Some(0), Some(0)) => {
                    phrase!["all ", count(ledger.acknowledged), " acknowledged transactions are there"]
                }
                (Some(0), unexpected) => {
                    phrase!["transactions are there although they failed: ", count(unexpected.unwrap_or(0))]
                }
                (Some(1), _) => phrase!["1 acknowledged transaction is missing"],
                (Some(missing), _) => phrase![count(missing), " acknowledged transactions are missing"],
                (None, _) => {
                    phrase![
                        "whether ",
                        count(ledger.acknowledged),
                        " acknowledged transactions are there is not known"
                    ]
                }
            },
            Database::Aborted { aborts, .. } => {
                let all = aborts.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
                phrase![count(all), " attempts at transactions were rolled back and made again"]
            }
            Database::Broken { checks } => {
                let first = checks.first().map_or("", |(holds, _)| holds.as_str());
                phrase!["the data break what must hold: ", first]
            }
            Database::Holds { checks } => {
                phrase!["the data hold what they must: ", count(checks.len() as u64), " checked"]
            }
            Database::NotChecked { checks } => {
                phrase!["what must hold in the data could not be checked: ", count(checks.len() as u64)]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Database::Relaxed { .. } => {
                "Storage is spared the writes that make commits durable. Compare such figures only with others of the same \
                 settings, and do not take them for what the database does in production."
            }
            Database::Durable { .. } => "",
            Database::Reads { origin: Origin::Cache | Origin::Fits, .. } => {
                "Storage had next to no reads to serve. To measure it, use a data set several times as large as the database's \
                 cache and the machine's memory."
            }
            Database::Reads { origin: Origin::PageCache, .. } => {
                "To measure storage, use a data set several times as large as the machine's memory, or drop its page cache before \
                 the load."
            }
            Database::Reads { .. } => {
                "Blocks that were not in the database's cache may still have come from the page cache of its machine: the \
                 counters of its devices tell."
            }
            Database::ReadsNotShown { .. } => {
                "Let the load read more, from a data set larger than the database's cache, on a server whose counters this user \
                 may read."
            }
            Database::Broken { .. } => {
                "The database confirmed transactions that keep it, so something was lost or done twice, or transactions were not \
                 isolated as the workload needs."
            }
            Database::Holds { .. } => "",
            Database::NotChecked { .. } => "Look at the database's log, and whether it still answers.",
            Database::Checkpoints { cycle_ns: Some(cycle), .. } => {
                return format!(
                    "Changed blocks were kept in memory and are written later, so the figures leave a part of the work out. Measure \
                     for {} at least, or lower checkpoint_timeout or max_wal_size.",
                    units::duration_ns(*cycle)
                );
            }
            Database::Checkpoints { .. } => {
                "Changed blocks were kept in memory and are written later, so the figures leave a part of the work out. Measure \
                 for longer."
            }
            Database::Commits { commits, acknowledged, .. } if commits < acknowledged => {
                "Each acknowledged transaction is a commit that the server must have counted. Look at what lies between the load \
                 and this server, and have the load keep a ledger: \
                 `ledger: true`."
            }
            Database::Commits { .. } => "",
            Database::Plans { changed, .. } if changed.is_empty() => "",
            Database::Plans { .. } => {
                "What was measured is a mixture of both plans. Look for an index that was made or dropped, and for statistics that \
                 were new: run ANALYZE before the load."
            }
            Database::Replica { lag } if lag.unseen > 0 => {
                "Its replication is stopped, paused, or further behind than was waited for, it follows another primary, or it does \
                 not answer. Look at pg_stat_replication on the primary and at pg_get_wal_replay_pause_state() on the replica, or at SHOW REPLICA STATUS."
            }
            Database::Replica { .. } => "",
            Database::Ledger { ledger, settings } => match (ledger.missing, ledger.unexpected, settings.is_empty()) {
                (Some(0), Some(0), _) => "",
                (Some(0), ..) => {
                    "The database did what it had reported as failed. Compare the failures of the load with its log."
                }
                (Some(_), _, false) => {
                    "The database was set so that it may lose what it has acknowledged; the server's log says whether it crashed."
                }
                (Some(_), _, true) => {
                    "No setting that was read allows that. Look at the server's log, and at what storage does with a sync."
                }
                (None, ..) => "The database did not answer when the load was over, or its ledger could not be read.",
            },
            Database::Restarted { .. } => {
                "It crashed or was restarted: its log says why. Its counters began anew, so they do not cover the load."
            }
            Database::CountersReset { .. } => "Somebody reset them while the server went on. Leave them alone during a run.",
            Database::Aborted { .. } => {
                "Response times of transactions cover all of their attempts. Throughput counts those that were committed."
            }
        }
        .to_owned()
    }

    fn proves(&self) -> bool {
        matches!(self, Database::Ledger { ledger, .. } if ledger.missing == Some(0))
    }

    fn instance(&self) -> Option<&str> {
        match self {
            Database::Relaxed { server, .. }
            | Database::Durable { server, .. }
            | Database::Reads { server, .. }
            | Database::ReadsNotShown { server, .. }
            | Database::Checkpoints { server, .. }
            | Database::Commits { server, .. }
            | Database::Plans { server, .. }
            | Database::Restarted { server, .. } => Some(server),
            _ => None,
        }
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Database::Relaxed { server, settings } => {
                [server.clone()].into_iter().chain(settings.iter().map(told)).collect()
            }
            Database::Durable { server, settings } => vec![server.clone(), named(settings)],
            Database::Reads {
                server,
                hit,
                blocks,
                data_bytes,
                cache_bytes,
                missed_bytes,
                device_bytes,
                limit,
                ..
            } => {
                let size = |name: &str, size: &Option<u64>| {
                    size.map(|size| format!("{name}: {}", units::bytes(size)))
                };
                let mut lines = vec![
                    server.clone(),
                    format!("blocks used: {}, from memory: {:.2} %", units::count(*blocks), hit * 100.0),
                    format!("as good as all: {} or more", whole_percent(*limit)),
                ];
                lines.extend(size("data", data_bytes));
                lines.extend(size("cache", cache_bytes));
                lines.extend(size("blocks that were not in it", missed_bytes));
                lines.extend(size("read by the devices", device_bytes));
                lines
            }
            Database::ReadsNotShown { server, blocks, needed } => {
                let used = match blocks {
                    Some(blocks) => format!("blocks used: {}", units::count(*blocks)),
                    None => "the server counts no blocks, or does not show them to this user".into(),
                };
                vec![server.clone(), used, format!("needed: {}", units::count(*needed))]
            }
            Database::Broken { checks } => {
                let line =
                    |(holds, rows): &(String, u64)| format!("{holds}: broken by {}", units::count(*rows));
                checks.iter().map(line).collect()
            }
            Database::Holds { checks } | Database::NotChecked { checks } => {
                checks.iter().map(|(holds, _)| holds.clone()).collect()
            }
            Database::Checkpoints { server, checkpoints, log_bytes, lasted_ns, cycle_ns } => {
                let mut lines = vec![
                    server.clone(),
                    format!("checkpoints: {checkpoints}, log: {}", units::bytes(*log_bytes)),
                    format!("the load: {}", units::duration_ns(*lasted_ns)),
                ];
                lines.extend(cycle_ns.map(|cycle| {
                    format!("a cycle, by settings and rate of the log: {}", units::duration_ns(cycle))
                }));
                lines
            }
            Database::Commits { server, commits, acknowledged } => vec![
                server.clone(),
                format!("acknowledged: {}, counted: {}", units::count(*acknowledged), units::count(*commits)),
            ],
            Database::Restarted { server, gap } => {
                let silent = gap.map(|(from, to)| {
                    format!(
                        "longest time without a success: from {} to {} after the start of the load",
                        units::duration_ns(from),
                        units::duration_ns(to)
                    )
                });
                [server.clone()].into_iter().chain(silent).collect()
            }
            Database::CountersReset { server } => vec![server.clone()],
            Database::Plans { server, changed, .. } => {
                let line = |one: &PlanChange| {
                    let to = if one.to.is_empty() { "no plan" } else { one.to.as_str() };
                    format!("{}: {} before, {to} after", one.statement, one.from)
                };
                [server.clone()].into_iter().chain(changed.iter().map(line)).collect()
            }
            Database::Replica { lag } => {
                let seen = lag.markers - lag.unseen.min(lag.markers);
                let mut lines = vec![
                    lag.server.clone(),
                    format!("marker rows: {}, seen: {}", units::count(lag.markers), units::count(seen)),
                    format!(
                        "asked every {}, by which a lag may be too long",
                        units::duration_ns(lag.poll_ns)
                    ),
                ];
                if seen > 0 {
                    let lags = [lag.mean_ns, lag.p50_ns, lag.p99_ns, lag.max_ns].map(units::duration_ns);
                    let [mean, median, p99, most] = lags;
                    lines.push(format!("lag of these: mean {mean}, median {median}, p99 {p99}, max {most}"));
                }
                lines
            }
            Database::Ledger { ledger, settings } => {
                let mut lines = vec![
                    ledger.server.clone(),
                    format!(
                        "acknowledged: {} by {} clients",
                        units::count(ledger.acknowledged),
                        units::count(ledger.clients)
                    ),
                    format!(
                        "answer to COMMIT lost: {}; of these, committed: {}",
                        units::count(ledger.ambiguous),
                        units::count(ledger.ambiguous_committed)
                    ),
                ];
                if let Some(missing @ 1..) = ledger.missing {
                    let (missing, clients) = (units::count(missing), units::count(ledger.clients_missing));
                    lines.push(format!("missing: {missing}, of {clients} clients"));
                    lines.extend(settings.iter().map(told));
                }
                if let Some(unexpected @ 1..) = ledger.unexpected {
                    lines.push(format!("there although they failed: {}", units::count(unexpected)));
                }
                lines
            }
            Database::Aborted { aborts, commits } => {
                let each =
                    aborts.iter().map(|(fault, count)| format!("{}: {}", fault.name(), units::count(*count)));
                each.chain([format!("transactions that succeeded: {}", units::count(*commits))]).collect()
            }
        }
    }
}
