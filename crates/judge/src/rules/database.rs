//! What the databases under a stage say of themselves: whether commits were durable, whether reads came from storage, whether
//! a checkpoint was part of it.

use super::Findings;
use super::proof::Evidence;
use crate::Severity;
use crate::words::database::Database as Found;
use tidemark_measure::record::DatabaseUse;

/// From this share of blocks on, what the database read came from its own memory as good as always.
const HIT_MOST: f64 = 0.99;

/// Fewer blocks say nothing.
const BLOCKS_LEAST: u64 = 1000;

/// Without a checkpoint, so many bytes of log say that one was due later than the stage.
const LOG_LEAST: u64 = 1 << 20;

/// Settings with which commits may be lost.
pub(super) fn durability(evidence: &Evidence<'_>, out: &mut Findings) {
    for database in databases(evidence) {
        let server = database.server.clone();
        let of = |durable: bool| {
            let settings = database.settings.iter().filter(move |setting| setting.durable == Some(durable));
            settings.map(|setting| (setting.name.clone(), setting.value.clone())).collect::<Vec<_>>()
        };
        let (relaxed, durable) = (of(false), of(true));
        if !relaxed.is_empty() {
            out.say(evidence.about(Severity::Warning, Found::Relaxed { server, settings: relaxed }));
        } else if !durable.is_empty() {
            out.say(evidence.about(Severity::Good, Found::Durable { server, settings: durable }));
        }
    }
}

/// Where what the database read came from, and how its data compare with its memory.
pub(super) fn reads(evidence: &Evidence<'_>, out: &mut Findings) {
    for database in databases(evidence) {
        let (Some(read), Some(hit)) = (database.blocks_read, database.blocks_hit) else { continue };
        let all = read.saturating_add(hit);
        if all < BLOCKS_LEAST {
            continue;
        }
        let hit = hit as f64 / all as f64;
        let (data_bytes, cache_bytes) = (database.data_bytes, database.cache_bytes);
        let from_memory = hit >= HIT_MOST;
        let severity = if from_memory { Severity::Warning } else { Severity::Note };
        let server = database.server.clone();
        let what =
            Found::Reads { server, from_memory, hit, blocks: all, data_bytes, cache_bytes, limit: HIT_MOST };
        out.say(evidence.about(severity, what));
    }
}

/// A stage that writes, without a checkpoint: a part of what it caused was written after it.
pub(super) fn checkpoints(evidence: &Evidence<'_>, out: &mut Findings) {
    for database in databases(evidence) {
        if let (Some(0), Some(log_bytes @ LOG_LEAST..)) = (database.checkpoints, database.wal_bytes) {
            let server = database.server.clone();
            out.say(evidence.about(Severity::Warning, Found::NoCheckpoint { server, log_bytes }));
        }
    }
}

/// Attempts at transactions that were rolled back and made again.
pub(super) fn aborts(evidence: &Evidence<'_>, out: &mut Findings) {
    let aborts = &evidence.proof().aborts;
    if evidence.measures && !aborts.is_empty() {
        let commits = evidence.succeeded();
        let aborts = aborts.iter().map(|one| (one.fault, one.count)).collect();
        out.say(evidence.about(Severity::Note, Found::Aborted { aborts, commits }));
    }
}

/// What had to hold in the data when the load was over.
pub(super) fn checks(evidence: &Evidence<'_>, out: &mut Findings) {
    let all = &evidence.proof().checks;
    let of = |wanted: &dyn Fn(Option<u64>) -> bool| {
        let some = all.iter().filter(|check| wanted(check.broken));
        some.map(|check| (check.holds.clone(), check.broken.unwrap_or(0))).collect::<Vec<_>>()
    };
    let broken = of(&|rows| rows.is_some_and(|rows| rows > 0));
    let unknown = of(&|rows| rows.is_none());
    let hold = of(&|rows| rows == Some(0));
    if !broken.is_empty() {
        let finding = evidence.about(Severity::Critical, Found::Broken { checks: broken });
        out.say(finding.invalidating(true));
    } else if !hold.is_empty() {
        out.say(evidence.about(Severity::Good, Found::Holds { checks: hold }));
    }
    if !unknown.is_empty() {
        out.say(evidence.about(Severity::Warning, Found::NotChecked { checks: unknown }));
    }
}

/// The databases of a stage that measures something.
fn databases<'a>(evidence: &'a Evidence<'_>) -> impl Iterator<Item = &'a DatabaseUse> {
    evidence.proof().databases.iter().filter(|_| evidence.measures)
}

#[cfg(test)]
mod tests {
    use crate::judge;
    use crate::rules::testing::healthy;
    use tidemark_measure::fault::Fault;
    use tidemark_measure::record::{Aborts, DataCheck, DatabaseSetting, DatabaseUse, Proof};

    fn rules(database: DatabaseUse, aborts: Vec<Aborts>) -> Vec<(&'static str, String)> {
        let mut run = healthy();
        let databases = vec![database];
        run.stages[0].proof = Some(Proof { databases, aborts, direct: true, ..Proof::default() });
        let found = judge(&run).findings;
        found.iter().map(|finding| (finding.rule(), finding.title())).collect()
    }

    fn setting(name: &str, value: &str, durable: Option<bool>) -> DatabaseSetting {
        DatabaseSetting { name: name.into(), value: value.into(), durable }
    }

    #[test]
    fn data_that_break_what_must_hold_make_the_run_invalid() {
        let of = |broken: Option<u64>| {
            let mut run = healthy();
            let checks = vec![DataCheck { server: "d".into(), holds: "it adds up".into(), broken }];
            run.stages[0].proof = Some(Proof { checks, direct: true, ..Proof::default() });
            let judgement = judge(&run);
            let rules: Vec<_> = judgement.findings.iter().map(crate::Finding::rule).collect();
            let ours = ["data-hold", "data-broken", "data-not-checked"];
            (judgement.validity.is_valid(), rules.into_iter().find(|rule| ours.contains(rule)))
        };
        assert_eq!(of(Some(0)), (true, Some("data-hold")));
        assert_eq!(of(Some(2)), (false, Some("data-broken")));
        assert_eq!(of(None), (true, Some("data-not-checked")));
    }

    #[test]
    fn what_a_database_says_becomes_findings() {
        let database = |settings: Vec<DatabaseSetting>| DatabaseUse {
            server: "PostgreSQL at h:5432, database d".into(),
            data_bytes: Some(64 << 20),
            cache_bytes: Some(128 << 20),
            blocks_hit: Some(99_990),
            blocks_read: Some(10),
            wal_bytes: Some(9 << 20),
            checkpoints: Some(0),
            settings,
            ..DatabaseUse::default()
        };
        let relaxed =
            vec![setting("fsync", "off", Some(false)), setting("full_page_writes", "on", Some(true))];
        let found = rules(database(relaxed), vec![Aborts { fault: Fault::Deadlock, count: 3 }]);
        let has = |rule: &str, words: &str| {
            assert!(
                found.iter().any(|(name, title)| *name == rule && title.contains(words)),
                "{rule}: {found:?}"
            );
        };
        has("relaxed-durability", "fsync = off");
        has("reads-from-database-cache", "over 99 %");
        has("no-checkpoint", "no checkpoint");
        has("aborted-attempts", "3");
        let sound = DatabaseUse {
            blocks_read: Some(50_000),
            checkpoints: Some(1),
            ..database(vec![setting("fsync", "on", Some(true))])
        };
        let found: Vec<_> = rules(sound, Vec::new()).into_iter().map(|(rule, _)| rule).collect();
        assert!(found.contains(&"durable-commits") && found.contains(&"database-cache"), "{found:?}");
        let wrong = ["relaxed-durability", "reads-from-database-cache", "no-checkpoint", "aborted-attempts"];
        assert!(!found.iter().any(|rule| wrong.contains(rule)), "{found:?}");
    }
}
