//! What the databases under a stage say of themselves: whether commits were durable, whether reads came from storage, whether
//! a checkpoint was part of it.

use super::record::{DatabaseUse, Record, StatementPlan};
use super::words::{Database as Found, Origin, PlanChange};
use tidemark_judge::{Findings, Severity, StageContext, What, sum};

/// A rule about the databases of a stage.
type Rule = fn(&StageContext<'_>, &Record, &mut Findings);

/// All rules, in the order of their findings.
pub(super) const RULES: &[Rule] =
    &[durability, reads, checkpoints, commits, plans, replicas, ledger, aborts, checks];

/// From this share of blocks on, what the database read came from its own memory as good as always.
const HIT_MOST: f64 = 0.99;

/// Fewer blocks say nothing.
const BLOCKS_LEAST: u64 = 1000;

/// Less than this, read past the database's cache, says nothing of who served it.
const MISSED_LEAST: u64 = 16 << 20;

/// Of what the database read past its cache, its devices must have read this share; the page cache served the rest.
const FROM_DEVICES_LEAST: f64 = 0.5;

/// Without a checkpoint, so many bytes of log say that one was due later than the stage.
const LOG_LEAST: u64 = 1 << 20;

/// Settings with which commits may be lost.
fn durability(stage: &StageContext<'_>, record: &Record, out: &mut Findings) {
    for database in databases(stage, record) {
        let server = database.server.clone();
        let of = |durable: bool| {
            let settings = database.settings.iter().filter(move |setting| setting.durable == Some(durable));
            settings.map(|setting| (setting.name.clone(), setting.value.clone())).collect::<Vec<_>>()
        };
        let (relaxed, durable) = (of(false), of(true));
        if !relaxed.is_empty() {
            out.add(
                stage.about(Severity::Warning, What::of_engine(Found::Relaxed { server, settings: relaxed })),
            );
        } else if !durable.is_empty() {
            out.add(
                stage.about(Severity::Good, What::of_engine(Found::Durable { server, settings: durable })),
            );
        }
    }
}

/// Where what the databases read came from, and how their data compare with their memory.
fn reads(stage: &StageContext<'_>, record: &Record, out: &mut Findings) {
    let missed = |database: &DatabaseUse| Some(database.blocks_read?.saturating_mul(database.block_bytes?));
    // Devices are not told apart by database.
    let all_missed =
        databases(stage, record).map(missed).try_fold(0u64, |sum, bytes| Some(sum.saturating_add(bytes?)));
    let devices = &stage.proof.devices;
    let device_bytes = (!devices.is_empty()).then(|| sum(devices.iter().map(|device| device.read_bytes)));
    let by_page_cache = matches!((all_missed, device_bytes), (Some(missed), Some(read))
        if missed >= MISSED_LEAST && (read as f64) < missed as f64 * FROM_DEVICES_LEAST);
    for database in databases(stage, record) {
        let server = database.server.clone();
        let blocks = database.blocks_read.zip(database.blocks_hit);
        let (read, hit) = match blocks.filter(|(read, hit)| read.saturating_add(*hit) >= BLOCKS_LEAST) {
            Some(counted) => counted,
            None if database.reads_storage => {
                let blocks = blocks.map(|(read, hit)| read.saturating_add(hit));
                let what = Found::ReadsNotShown { server, blocks, needed: BLOCKS_LEAST };
                out.add(stage.about(Severity::Critical, What::of_engine(what)).invalidating(true));
                continue;
            }
            None => continue,
        };
        let blocks = read.saturating_add(hit);
        let hit = hit as f64 / blocks as f64;
        let (data_bytes, cache_bytes) = (database.data_bytes, database.cache_bytes);
        let origin = match data_bytes.zip(cache_bytes) {
            _ if hit >= HIT_MOST => Origin::Cache,
            Some((data, cache)) if data <= cache => Origin::Fits,
            _ if by_page_cache => Origin::PageCache,
            _ => Origin::Storage,
        };
        let severity = match origin {
            Origin::Storage => Severity::Note,
            _ if database.reads_storage => Severity::Critical,
            _ => Severity::Warning,
        };
        let what = Found::Reads {
            server,
            origin,
            hit,
            blocks,
            data_bytes,
            cache_bytes,
            missed_bytes: all_missed,
            device_bytes,
            limit: HIT_MOST,
        };
        out.add(stage.about(severity, What::of_engine(what)).invalidating(severity == Severity::Critical));
    }
}

/// A load that writes, without a whole cycle of checkpoints: a part of what it caused was written after it.
fn checkpoints(stage: &StageContext<'_>, record: &Record, out: &mut Findings) {
    let lasted_ns = stage.lasted_ns();
    for database in databases(stage, record) {
        let (Some(checkpoints), Some(log_bytes @ LOG_LEAST..)) = (database.checkpoints, database.wal_bytes)
        else {
            continue;
        };
        // How long the log takes to grow by so much, at its rate of the stage.
        let by_log = database.checkpoint_log_bytes;
        let by_log = by_log.map(|bytes| (bytes as f64 / log_bytes as f64 * lasted_ns as f64) as u64);
        let cycle_ns = by_log.into_iter().chain(database.checkpoint_timeout_ns).min();
        let is_short = cycle_ns.is_some_and(|cycle| lasted_ns < cycle);
        // From the first of two to the second is one.
        if checkpoints == 0 || (checkpoints == 1 && is_short) {
            let server = database.server.clone();
            let what = Found::Checkpoints { server, checkpoints, log_bytes, lasted_ns, cycle_ns };
            out.add(stage.about(Severity::Warning, What::of_engine(what)));
        }
    }
}

/// Commits that the database counted, beside those that clients know of.
fn commits(stage: &StageContext<'_>, record: &Record, out: &mut Findings) {
    for database in databases(stage, record) {
        let server = database.server.clone();
        if database.restarted {
            let gap = stage.longest_gap().map(|gap| (gap.from_ns, gap.to_ns));
            out.add(stage.about(Severity::Critical, What::of_engine(Found::Restarted { server, gap })));
            continue;
        }
        if database.counters_reset {
            out.add(stage.about(Severity::Warning, What::of_engine(Found::CountersReset { server })));
            continue;
        }
        let (Some(commits), acknowledged @ 1.., true) =
            (database.commits, database.acknowledged, database.commits_exact)
        else {
            continue;
        };
        let severity = if commits < acknowledged { Severity::Critical } else { Severity::Good };
        out.add(stage.about(severity, What::of_engine(Found::Commits { server, commits, acknowledged })));
    }
}

/// Statements that the planner does in another way after the load than before it.
fn plans(stage: &StageContext<'_>, record: &Record, out: &mut Findings) {
    for database in databases(stage, record).filter(|database| !database.plans.is_empty()) {
        let server = database.server.clone();
        let of = database.plans.len() as u64;
        let change = |one: &StatementPlan| {
            let to = one.changed_to.clone()?;
            Some(PlanChange { statement: one.statement.clone(), from: one.plan.clone(), to })
        };
        let changed: Vec<_> = database.plans.iter().filter_map(change).collect();
        let severity = if changed.is_empty() { Severity::Good } else { Severity::Warning };
        out.add(stage.about(severity, What::of_engine(Found::Plans { server, changed, of })));
    }
}

/// How far replicas were behind.
fn replicas(stage: &StageContext<'_>, record: &Record, out: &mut Findings) {
    let replicas = databases(stage, record).flat_map(|database| &database.replicas);
    for lag in replicas.filter(|lag| lag.markers > 0) {
        let severity = if lag.unseen > 0 { Severity::Warning } else { Severity::Note };
        out.add(stage.about(severity, What::of_engine(Found::Replica { lag: lag.clone() })));
    }
}

/// Whether what was acknowledged is there.
fn ledger(stage: &StageContext<'_>, record: &Record, out: &mut Findings) {
    for ledger in &record.ledgers {
        let relaxed = |database: &&DatabaseUse| database.server == ledger.server;
        let settings = record.servers.iter().filter(relaxed).flat_map(|one| &one.settings);
        let settings = settings.filter(|setting| setting.durable == Some(false));
        let settings = settings.map(|setting| (setting.name.clone(), setting.value.clone())).collect();
        let severity = match (ledger.missing, ledger.unexpected) {
            (Some(0), Some(0)) => Severity::Good,
            (Some(0), _) | (None, _) => Severity::Warning,
            (Some(_), _) => Severity::Critical,
        };
        let what = Found::Ledger { ledger: ledger.clone(), settings };
        out.add(stage.about(severity, What::of_engine(what)).invalidating(severity == Severity::Critical));
    }
}

/// Attempts at transactions that were rolled back and made again.
fn aborts(stage: &StageContext<'_>, record: &Record, out: &mut Findings) {
    let aborts = &record.aborts;
    if stage.measures && !aborts.is_empty() {
        let commits = stage.succeeded();
        let aborts = aborts.iter().map(|one| (one.fault, one.count)).collect();
        out.add(stage.about(Severity::Note, What::of_engine(Found::Aborted { aborts, commits })));
    }
}

/// What had to hold in the data when the load was over.
fn checks(stage: &StageContext<'_>, record: &Record, out: &mut Findings) {
    let all = &record.checks;
    let of = |wanted: &dyn Fn(Option<u64>) -> bool| {
        let some = all.iter().filter(|check| wanted(check.broken));
        some.map(|check| (check.holds.clone(), check.broken.unwrap_or(0))).collect::<Vec<_>>()
    };
    let broken = of(&|rows| rows.is_some_and(|rows| rows > 0));
    let unknown = of(&|rows| rows.is_none());
    let hold = of(&|rows| rows == Some(0));
    if !broken.is_empty() {
        let finding = stage.about(Severity::Critical, What::of_engine(Found::Broken { checks: broken }));
        out.add(finding.invalidating(true));
    } else if !hold.is_empty() {
        out.add(stage.about(Severity::Good, What::of_engine(Found::Holds { checks: hold })));
    }
    if !unknown.is_empty() {
        out.add(stage.about(Severity::Warning, What::of_engine(Found::NotChecked { checks: unknown })));
    }
}

/// The databases of a stage that measures something.
fn databases<'a>(
    stage: &StageContext<'_>,
    record: &'a Record,
) -> impl Iterator<Item = &'a DatabaseUse> + use<'a> {
    let measures = stage.measures;
    record.servers.iter().filter(move |_| measures)
}

#[cfg(test)]
mod tests {
    use super::super::{Aborts, DataCheck, DatabaseEvidence, DatabaseSetting, LedgerUse, ReplicaLag};
    use super::*;
    use tidemark_judge::evidence::{install, write};
    use tidemark_judge::{Finding, judge};
    use tidemark_measure::fault::Fault;
    use tidemark_measure::record::{DeviceUse, LongestGap, Proof};
    use tidemark_testing::runs::healthy;

    /// A proof with this record.
    fn proof(record: &Record) -> Option<Proof> {
        install(&[&DatabaseEvidence]);
        let mut proof = Proof { direct: true, ..Proof::default() };
        write::<DatabaseEvidence>(&mut proof, record);
        Some(proof)
    }

    fn rules(database: DatabaseUse, aborts: Vec<Aborts>) -> Vec<(&'static str, String)> {
        let mut run = healthy();
        run.stages[0].proof = proof(&Record { servers: vec![database], aborts, ..Record::default() });
        let found = judge(&run).findings;
        found.iter().map(|finding| (finding.rule(), finding.title())).collect()
    }

    #[test]
    fn a_replica_that_does_not_show_what_was_written_is_a_warning_and_its_lag_a_note() {
        let found = |unseen| {
            let lag = ReplicaLag {
                server: "r".into(),
                markers: 40,
                unseen,
                waited_ns: 9_000_000_000,
                p50_ns: 2_000_000,
                max_ns: 70_000_000,
                ..ReplicaLag::default()
            };
            rules(DatabaseUse { replicas: vec![lag], ..database() }, Vec::new())
        };
        let has = |unseen, rule: &str, words: &[&str]| {
            let all = found(unseen);
            let title = all.iter().find(|(name, _)| *name == rule).map(|(_, title)| title.as_str());
            assert!(words.iter().all(|word| title.is_some_and(|title| title.contains(word))), "{all:?}");
        };
        has(0, "replica-lag", &["2.00 ms in the median", "70.0 ms at most"]);
        has(30, "replica-behind", &["30 of 40", "9.00 s"]);
    }

    fn setting(name: &str, value: &str, durable: Option<bool>) -> DatabaseSetting {
        DatabaseSetting { name: name.into(), value: value.into(), durable }
    }

    #[test]
    fn data_that_break_what_must_hold_make_the_run_invalid() {
        let of = |broken: Option<u64>| {
            let mut run = healthy();
            let checks = vec![DataCheck { server: "d".into(), holds: "it adds up".into(), broken }];
            run.stages[0].proof = proof(&Record { checks, ..Record::default() });
            let judgement = judge(&run);
            let rules: Vec<_> = judgement.findings.iter().map(Finding::rule).collect();
            let ours = ["data-hold", "data-broken", "data-not-checked"];
            (judgement.validity.is_valid(), rules.into_iter().find(|rule| ours.contains(rule)))
        };
        assert_eq!(of(Some(0)), (true, Some("data-hold")));
        assert_eq!(of(Some(2)), (false, Some("data-broken")));
        assert_eq!(of(None), (true, Some("data-not-checked")));
    }

    fn database() -> DatabaseUse {
        DatabaseUse {
            server: "PostgreSQL at h:5432, database d".into(),
            data_bytes: Some(64 << 20),
            cache_bytes: Some(128 << 20),
            block_bytes: Some(8192),
            blocks_hit: Some(99_990),
            blocks_read: Some(10),
            wal_bytes: Some(9 << 20),
            checkpoints: Some(0),
            ..DatabaseUse::default()
        }
    }

    #[test]
    fn what_a_database_says_becomes_findings() {
        let relaxed =
            vec![setting("fsync", "off", Some(false)), setting("full_page_writes", "on", Some(true))];
        let relaxed = DatabaseUse { settings: relaxed, ..database() };
        let found = rules(relaxed, vec![Aborts { fault: Fault::Deadlock, count: 3 }]);
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
            data_bytes: Some(1 << 30),
            blocks_read: Some(50_000),
            checkpoints: Some(1),
            settings: vec![setting("fsync", "on", Some(true))],
            ..database()
        };
        let found: Vec<_> = rules(sound, Vec::new()).into_iter().map(|(rule, _)| rule).collect();
        assert!(found.contains(&"durable-commits") && found.contains(&"database-cache"), "{found:?}");
        let wrong = [
            "relaxed-durability",
            "reads-from-database-cache",
            "no-checkpoint",
            "checkpoint-cycle",
            "aborted-attempts",
        ];
        assert!(!found.iter().any(|rule| wrong.contains(rule)), "{found:?}");
    }

    /// A run on a database whose devices read so much: its rule on reads, and whether it is valid.
    fn reads(database: DatabaseUse, device_bytes: Option<u64>) -> (&'static str, bool) {
        let mut run = healthy();
        let device = |read_bytes| DeviceUse { device: "vda".into(), read_bytes, ..DeviceUse::default() };
        let devices = device_bytes.map(device).into_iter().collect();
        let proof = proof(&Record { servers: vec![database], ..Record::default() });
        run.stages[0].proof = proof.map(|proof| Proof { devices, ..proof });
        let judgement = judge(&run);
        let ours =
            ["database-cache", "reads-from-page-cache", "reads-from-database-cache", "reads-not-shown"];
        let found = judgement.findings.iter().map(Finding::rule).find(|rule| ours.contains(rule));
        (found.unwrap_or_default(), judgement.validity.is_valid())
    }

    #[test]
    fn reads_that_must_come_from_storage_and_do_not_make_the_run_invalid() {
        let large = |read, reads_storage| DatabaseUse {
            data_bytes: Some(1 << 30),
            blocks_read: Some(read),
            reads_storage,
            ..database()
        };
        let missed = 50_000 * 8192;
        assert_eq!(reads(large(10, false), None), ("reads-from-database-cache", true));
        assert_eq!(reads(large(10, true), None), ("reads-from-database-cache", false));
        let fits =
            |reads_storage| DatabaseUse { data_bytes: Some(100 << 20), ..large(50_000, reads_storage) };
        assert_eq!(reads(fits(false), None), ("reads-from-database-cache", true), "it fits into the cache");
        assert_eq!(reads(fits(true), None), ("reads-from-database-cache", false));
        assert_eq!(reads(large(50_000, true), Some(missed)), ("database-cache", true));
        assert_eq!(reads(large(50_000, true), Some(missed / 4)), ("reads-from-page-cache", false));
        assert_eq!(reads(large(50_000, false), Some(missed / 4)), ("reads-from-page-cache", true));
        let few = DatabaseUse { blocks_hit: Some(3), ..large(3, true) };
        assert_eq!(reads(few, None), ("reads-not-shown", false));
        assert_eq!(reads(DatabaseUse { blocks_hit: None, ..large(3, false) }, None), ("", true));
    }

    #[test]
    fn a_load_shorter_than_a_checkpoint_cycle_is_told_how_long_it_must_be() {
        let found = |checkpoints, log_bytes| {
            let database = DatabaseUse {
                checkpoints: Some(checkpoints),
                wal_bytes: Some(log_bytes),
                checkpoint_timeout_ns: Some(300_000_000_000),
                checkpoint_log_bytes: Some(500 << 20),
                ..database()
            };
            let found = rules(database, Vec::new());
            let ours = |(rule, _): &(&str, String)| matches!(*rule, "no-checkpoint" | "checkpoint-cycle");
            found.into_iter().find(ours)
        };
        // The healthy load lasts 20 s: with 50 MiB of log in it, 500 MiB take 200 s.
        let (rule, title) = found(1, 50 << 20).unwrap();
        assert!(rule == "checkpoint-cycle" && title.ends_with("a cycle takes 3 m 20 s"), "{title}");
        let (_, title) = found(1, 9 << 20).unwrap();
        assert!(title.ends_with("a cycle takes 5 m 00 s"), "its time comes first: {title}");
        assert_eq!(found(1, 600 << 20), None, "a cycle takes less than the load");
        assert_eq!(found(2, 50 << 20), None, "from one to the next is a cycle");
        assert_eq!(found(0, 50 << 20).unwrap().0, "no-checkpoint");
        assert_eq!(found(0, 1000), None, "nothing was written");
    }

    #[test]
    fn acknowledged_transactions_that_are_missing_make_the_run_invalid() {
        let found = |missing: Option<u64>, unexpected: Option<u64>| {
            let mut run = healthy();
            let relaxed = vec![setting("synchronous_commit", "off", Some(false))];
            let servers = vec![DatabaseUse { settings: relaxed, ..database() }];
            let server = servers[0].server.clone();
            let ledger = LedgerUse { server, acknowledged: 90, missing, unexpected, ..LedgerUse::default() };
            let ledgers = vec![ledger];
            run.stages[0].proof = proof(&Record { servers, ledgers, ..Record::default() });
            let judgement = judge(&run);
            let ours =
                judgement.findings.iter().find(|finding| finding.rule().starts_with("ledger")).cloned();
            (judgement.validity.is_valid(), ours.unwrap())
        };
        let (valid, finding) = found(Some(12), Some(0));
        assert!(!valid && finding.title() == "12 acknowledged transactions are missing", "{finding:?}");
        let evidence = finding.evidence();
        assert!(evidence.iter().any(|line| line.starts_with("synchronous_commit = off: ")), "{evidence:?}");
        assert_eq!(found(Some(1), Some(0)).1.title(), "1 acknowledged transaction is missing");
        let (valid, finding) = found(Some(0), Some(0));
        assert!(valid && finding.rule() == "ledger-kept" && finding.severity == Severity::Good);
        let (valid, finding) = found(Some(0), Some(2));
        assert!(valid && finding.rule() == "ledger-unexpected" && finding.severity == Severity::Warning);
        let (valid, finding) = found(None, None);
        assert!(valid && finding.rule() == "ledger-not-compared" && finding.severity == Severity::Warning);
    }

    #[test]
    fn a_plan_that_changed_is_named() {
        let plan = |changed_to: Option<&str>| StatementPlan {
            statement: "SELECT a FROM t WHERE a = $1".into(),
            plan: "Index Scan on t by t_pkey".into(),
            changed_to: changed_to.map(str::to_owned),
        };
        let found = |plans| rules(DatabaseUse { plans, ..database() }, Vec::new());
        let changed = found(vec![plan(None), plan(Some("Seq Scan on t"))]);
        let title = "the plan of a statement changed during the load: SELECT a FROM t WHERE a = $1";
        assert!(changed.contains(&("plan-changed", title.to_owned())), "{changed:?}");
        assert!(found(vec![plan(None)]).iter().any(|(rule, _)| *rule == "plans-kept"));
        assert!(!found(Vec::new()).iter().any(|(rule, _)| rule.starts_with("plan")));
    }

    #[test]
    fn a_database_that_counted_too_few_commits_is_told_of() {
        let found = |commits, restarted, commits_exact| {
            let commits = Some(commits);
            let database = DatabaseUse { commits, acknowledged: 500, restarted, commits_exact, ..database() };
            let ours = ["commits-missing", "commits-counted", "database-restarted"];
            let found = rules(database, Vec::new()).into_iter().map(|(rule, _)| rule);
            found.filter(|rule| ours.contains(rule)).collect::<Vec<_>>()
        };
        assert_eq!(found(503, false, true), ["commits-counted"]);
        assert_eq!(found(499, false, true), ["commits-missing"]);
        assert_eq!(found(499, false, false), [""; 0], "a server that may lose counts proves nothing");
        assert_eq!(found(499, true, true), ["database-restarted"]);
    }

    #[test]
    fn a_restart_is_told_with_the_time_in_which_nothing_was_acknowledged() {
        let mut run = healthy();
        let (from_ns, to_ns) = (5_000_000_000, 5_700_000_000);
        run.stages[0].works[0].longest_gap = Some(LongestGap { from_ns, to_ns });
        let servers = vec![DatabaseUse { restarted: true, ..database() }];
        run.stages[0].proof = proof(&Record { servers, ..Record::default() });
        let judgement = judge(&run);
        let restart =
            judgement.findings.iter().find(|finding| finding.rule() == "database-restarted").unwrap();
        assert!(restart.severity >= Severity::Warning, "{restart:?}");
        assert!(restart.title().ends_with("nothing was acknowledged for 700 ms"), "{}", restart.title());
        let evidence = restart.evidence().join("\n");
        assert!(evidence.contains("from 5.00 s to 5.70 s after the start of the load"), "{evidence}");
    }
}
