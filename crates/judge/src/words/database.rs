//! What the databases under a stage say of themselves.

use super::Tell;
use super::phrase::{Phrase, bytes, count, decimal, phrase, share, whole_percent};
use serde::Serialize;
use tidemark_measure::fault::Fault;
use tidemark_measure::units;

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Database {
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
        from_memory: bool,
        hit: f64,
        blocks: u64,
        data_bytes: Option<u64>,
        cache_bytes: Option<u64>,
        limit: f64,
    },
    NoCheckpoint {
        server: String,
        log_bytes: u64,
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

impl Tell for Database {
    fn rule(&self) -> &'static str {
        match self {
            Database::Relaxed { .. } => "relaxed-durability",
            Database::Durable { .. } => "durable-commits",
            Database::Reads { from_memory: true, .. } => "reads-from-database-cache",
            Database::Reads { .. } => "database-cache",
            Database::NoCheckpoint { .. } => "no-checkpoint",
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
            Database::Reads { from_memory: true, hit, .. } => {
                phrase![share(*hit), " of the blocks that the database used came from its own memory"]
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
            Database::NoCheckpoint { log_bytes, .. } => {
                phrase!["there was no checkpoint, with ", bytes(*log_bytes as f64), " written to the log"]
            }
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
            Database::Reads { from_memory: true, .. } => {
                "Storage had next to no reads to serve. To measure it, use a data set several times as large as the database's \
                 cache and the machine's memory."
            }
            Database::Reads { .. } => {
                "Blocks that were not in the database's cache may still have come from the page cache of its machine: the \
                 counters of its devices tell."
            }
            Database::Broken { .. } => {
                "The database confirmed transactions that keep it, so something was lost or done twice, or transactions were not \
                 isolated as the workload needs."
            }
            Database::Holds { .. } => "",
            Database::NotChecked { .. } => "Look at the database's log, and whether it still answers.",
            Database::NoCheckpoint { .. } => {
                "Changed blocks were kept in memory and are written later, so the figures leave a part of the work out. Measure \
                 for longer than checkpoint_timeout, or lower max_wal_size."
            }
            Database::Aborted { .. } => {
                "Response times of transactions cover all of their attempts. Throughput counts those that were committed."
            }
        }
        .to_owned()
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Database::Relaxed { server, settings } | Database::Durable { server, settings } => {
                vec![server.clone(), named(settings)]
            }
            Database::Reads { server, hit, blocks, data_bytes, cache_bytes, limit, .. } => {
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
                lines
            }
            Database::Broken { checks } => {
                let line =
                    |(holds, rows): &(String, u64)| format!("{holds}: broken by {}", units::count(*rows));
                checks.iter().map(line).collect()
            }
            Database::Holds { checks } | Database::NotChecked { checks } => {
                checks.iter().map(|(holds, _)| holds.clone()).collect()
            }
            Database::NoCheckpoint { server, .. } => vec![server.clone(), "checkpoints: 0".to_owned()],
            Database::Aborted { aborts, commits } => {
                let each =
                    aborts.iter().map(|(fault, count)| format!("{}: {}", fault.name(), units::count(*count)));
                each.chain([format!("transactions that succeeded: {}", units::count(*commits))]).collect()
            }
        }
    }
}
