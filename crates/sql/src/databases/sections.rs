//! What databases counted under the loads of a run, and how they were set, in reports.

use super::record::{DatabaseSetting, DatabaseUse, Record};
use super::settings::meaning;
use tidemark_judge::section::{Block, NONE, Section, Table, Tone};
use tidemark_measure::kind::OperationClass;
use tidemark_measure::record::Stage;
use tidemark_measure::units;

/// What the counters are, for those who read them.
pub(crate) const LEGEND: &str = "The servers' own counters, from the start to the end of each stage, whoever caused what they \
    count. Acknowledged are the transactions whose commit the load's clients saw. Log and device bytes are divided by the commits \
    that the server counted; databases of one server share its log, so \
    there it is not divided. Devices are counted whole, whoever writes to them, where the server's files lie on a device of this \
    machine, and for all databases of a stage together.";

/// Stages whose counters are shown unfolded.
const MOST_STAGES: usize = 8;

/// Stages that measure something, each with what was found out of its databases.
type Stages<'a> = [(&'a Stage, &'a Record)];

/// The section of a run's databases.
pub(super) fn section(stages: &[(&Stage, Record)]) -> Section {
    let stages: Vec<(&Stage, &Record)> =
        stages.iter().filter(|(stage, _)| stage.measures()).map(|(stage, record)| (*stage, record)).collect();
    let counters = counters(&stages);
    let mut blocks = vec![
        Block::Folded(counters.clone(), MOST_STAGES),
        Block::Legend(LEGEND.into()),
        Block::Heading("Lag of replicas".into()),
        Block::Table(replicas(&stages)),
    ];
    blocks.extend(replicas_legend(&stages).map(Block::Legend));
    blocks.extend([
        Block::Heading("Ledger of acknowledged commits".into()),
        Block::Table(ledgers(&stages)),
        Block::Heading("Plans that changed".into()),
        Block::Table(plans(&stages)),
        Block::Heading("Settings".into()),
        Block::Table(settings(&stages)),
    ]);
    Section { id: "databases", title: "Databases", blocks, in_short: Some(counters) }
}

/// Every database of every stage.
fn databases<'a>(stages: &Stages<'a>) -> impl Iterator<Item = &'a DatabaseUse> {
    stages.iter().flat_map(|(_, record)| &record.servers)
}

/// What each database counted, stage by stage.
fn counters(stages: &Stages<'_>) -> Table {
    let mut table = Table::new("Counters of databases").words(["Stage", "Database"]).numbers([
        "Acknowledged",
        "Commits",
        "Rollbacks",
        "Deadlocks",
        "Lock waits",
        "From the cache",
        "Data / cache",
        "Log per commit",
        "Device writes per commit",
        "Checkpoints",
    ]);
    for (stage, record) in stages {
        let databases = &record.servers;
        let all_commits = databases.iter().try_fold(0u64, |sum, one| Some(sum.saturating_add(one.commits?)));
        let per_commit = written(stage)
            .filter(|_| writes(stage))
            .zip(all_commits)
            .and_then(|(bytes, commits)| bytes.checked_div(commits));
        for one in databases {
            let missing = one.commits_exact && one.commits.is_some_and(|commits| commits < one.acknowledged);
            let count = |count: Option<u64>| count.map_or(NONE.into(), units::count);
            let bytes = |bytes: Option<u64>| bytes.map_or(NONE.into(), units::bytes);
            let log = one.wal_bytes.zip(one.commits).filter(|_| !one.shares_server);
            let under = |value: String, more: Option<u64>, what: fn(u64) -> String| {
                [value].into_iter().chain(more.map(what)).collect::<Vec<_>>()
            };
            let log_each = bytes(log.and_then(|(bytes, commits)| bytes.checked_div(commits)));
            let committed = match (one.restarted, one.counters_reset) {
                (true, _) => "restarted".into(),
                (_, true) => "reset".into(),
                _ => count(one.commits),
            };
            let numbers = [
                vec![units::count(one.acknowledged)],
                vec![committed],
                vec![count(one.rollbacks)],
                vec![count(one.deadlocks)],
                vec![count(one.lock_waits)],
                under(hit(one), one.blocks_read, |read| format!("{} blocks read", units::count(read))),
                vec![ratio(one)],
                under(log_each, one.wal_bytes, |all| format!("{} in all", units::bytes(all))),
                vec![bytes(per_commit)],
                vec![count(one.checkpoints)],
            ];
            // The rest of it is the package's.
            let version = one.version.split(' ').next().unwrap_or_default();
            let mut cells =
                vec![vec![stage.id.clone()], vec![one.server.clone(), format!("version {version}")]];
            cells.extend(numbers);
            table.lines(if missing { Tone::Bad } else { Tone::Plain }, cells);
        }
    }
    let optional = ["Lock waits", "Data / cache", "Device writes per commit"];
    let table = optional.into_iter().fold(table, |table, title| table.without_if_all(title, NONE));
    table.without_if_all("Deadlocks", "0")
}

/// Bytes that the devices under a stage's databases wrote; nothing where none was counted.
fn written(stage: &Stage) -> Option<u64> {
    let devices = &stage.proof.as_ref()?.devices;
    let bytes = devices.iter().map(|device| device.written_bytes).fold(0, u64::saturating_add);
    (!devices.is_empty()).then_some(bytes)
}

/// Whether the stage's load writes: what devices write under one that does not is somebody else's.
fn writes(stage: &Stage) -> bool {
    let operations = stage.works.iter().flat_map(|work| &work.operations);
    operations.into_iter().any(|operation| operation.class != OperationClass::Read)
}

/// The share of blocks that came from the database's own cache.
fn hit(one: &DatabaseUse) -> String {
    match one.blocks_hit.zip(one.blocks_read) {
        Some((hit, read)) if hit.saturating_add(read) > 0 => {
            units::percent(hit as f64 / hit.saturating_add(read) as f64)
        }
        _ => NONE.into(),
    }
}

/// How many times the cache the data are.
fn ratio(one: &DatabaseUse) -> String {
    match one.data_bytes.zip(one.cache_bytes) {
        Some((data, cache)) if cache > 0 => format!("{:.2}", data as f64 / cache as f64),
        _ => NONE.into(),
    }
}

/// Acknowledged commits that were looked for when the load was over.
fn ledgers(stages: &Stages<'_>) -> Table {
    let mut table = Table::new("Ledger of acknowledged commits").words(["Stage", "Database"]).numbers([
        "Clients",
        "Acknowledged",
        "Answer lost",
        "Of them committed",
        "Missing",
        "There although failed",
    ]);
    for (stage, record) in stages {
        for one in &record.ledgers {
            let known = |count: Option<u64>| count.map_or(NONE.into(), units::count);
            let mut cells = vec![stage.id.clone(), one.server.clone()];
            cells.extend(
                [one.clients, one.acknowledged, one.ambiguous, one.ambiguous_committed].map(units::count),
            );
            cells.extend([known(one.missing), known(one.unexpected)]);
            table.row(if one.missing == Some(0) { Tone::Plain } else { Tone::Bad }, cells);
        }
    }
    table
}

/// How far replicas were behind.
fn replicas(stages: &Stages<'_>) -> Table {
    let mut table = Table::new("Lag of replicas")
        .words(["Stage", "Replica"])
        .numbers(["Markers", "Mean", "Median", "p99", "Max", "Not seen"]);
    for (stage, record) in stages {
        for one in record.servers.iter().flat_map(|database| &database.replicas) {
            let has_any = one.markers > one.unseen;
            let lag = |ns: u64| if has_any { units::duration_ns(ns) } else { NONE.into() };
            let mut cells = vec![stage.id.clone(), one.server.clone(), units::count(one.markers)];
            cells.extend([one.mean_ns, one.p50_ns, one.p99_ns, one.max_ns].map(lag));
            cells.push(units::count(one.unseen));
            table.row(if one.unseen > 0 { Tone::Bad } else { Tone::Plain }, cells);
        }
    }
    table
}

/// What the lag of replicas is, for those who read it; nothing where none was measured.
fn replicas_legend(stages: &Stages<'_>) -> Option<String> {
    let mut measured = databases(stages).flat_map(|one| &one.replicas);
    let poll = measured.next()?.poll_ns;
    Some(format!(
        "From the acknowledgement of a marker row's commit on the primary to the first read on the replica that shows it, by one \
         clock. Replicas are asked every {}: by as much, and a round trip, a lag may be too long.",
        units::duration_ns(poll)
    ))
}

/// How the databases were set, and what that means for a commit: each setting and value once, with the databases that have it
/// where not all do.
fn settings(stages: &Stages<'_>) -> Table {
    let mut table = Table::new("Settings of databases").words(["Setting", "Value", "For a commit", "Where"]);
    let mut found: Vec<(&DatabaseSetting, Vec<&str>)> = Vec::new();
    let mut servers: Vec<&str> = Vec::new();
    for database in databases(stages) {
        let server = database.server.as_str();
        if !servers.contains(&server) {
            servers.push(server);
        }
        for setting in &database.settings {
            match found.iter_mut().find(|(known, _)| *known == setting) {
                Some((_, here)) if here.contains(&server) => {}
                Some((_, here)) => here.push(server),
                None => found.push((setting, vec![server])),
            }
        }
    }
    // What decides over commits comes first, and what risks them before it.
    let rank = |(setting, _): &(&DatabaseSetting, Vec<&str>)| match setting.durable {
        Some(false) => 0,
        Some(true) => 1,
        None => 2 + u8::from(meaning(&setting.name, &setting.value).is_none()),
    };
    found.sort_by_key(rank);
    for (setting, here) in found {
        let said = meaning(&setting.name, &setting.value);
        let place = if here.len() == servers.len() { "all".into() } else { here.join("; ") };
        let cells = vec![setting.name.clone(), setting.value.clone(), said.unwrap_or(NONE).into(), place];
        table.row(if setting.durable == Some(false) { Tone::Bad } else { Tone::Plain }, cells);
    }
    table.without_if_same("Where")
}

/// Plans of statements that were other ones after a load.
fn plans(stages: &Stages<'_>) -> Table {
    let mut table = Table::new("Plans that changed").words(["Stage", "Statement", "Before", "After"]);
    for (stage, record) in stages {
        for one in record.servers.iter().flat_map(|database| &database.plans) {
            let Some(after) = &one.changed_to else { continue };
            let after = if after.is_empty() { NONE } else { after };
            let cells = [&stage.id, &one.statement, &one.plan, after].map(str::to_owned);
            table.row(Tone::Bad, cells.to_vec());
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::ReplicaLag;
    use super::*;
    use tidemark_measure::record::{DeviceUse, Operation, Proof, Work};

    fn setting(name: &str, value: &str, durable: Option<bool>) -> DatabaseSetting {
        DatabaseSetting { name: name.into(), value: value.into(), durable }
    }

    /// A stage that writes, whose device wrote 8 MB.
    fn stage() -> Stage {
        let device = DeviceUse { device: "vda".into(), written_bytes: 8_000_000, ..DeviceUse::default() };
        let proof = Proof { devices: vec![device], direct: true, ..Proof::default() };
        let operation = Operation { class: OperationClass::Write, ..Operation::default() };
        let work = Work { operations: vec![operation], ..Work::default() };
        Stage { works: vec![work], proof: Some(proof), ..Stage::default() }
    }

    /// What is shown of these databases under such a stage.
    fn shown(of: fn(&Stages<'_>) -> Table, servers: Vec<DatabaseUse>) -> Vec<Vec<String>> {
        of(&[(&stage(), &Record { servers, ..Record::default() })]).texts()
    }

    fn database(name: &str) -> DatabaseUse {
        DatabaseUse {
            server: name.into(),
            version: "15.3".into(),
            acknowledged: 990,
            commits: Some(1_000),
            commits_exact: true,
            wal_bytes: Some(1_500_000),
            blocks_hit: Some(900),
            blocks_read: Some(100),
            data_bytes: Some(300),
            cache_bytes: Some(200),
            settings: vec![setting("shared_buffers", "1GB", None), setting("fsync", "off", Some(false))],
            ..DatabaseUse::default()
        }
    }

    #[test]
    fn bytes_are_those_of_a_commit() {
        let two = DatabaseUse { commits: Some(3_000), ..database("second") };
        let rows = shown(counters, vec![database("first"), two]);
        let cell = |row: usize, title: &str| {
            let column = rows[0].iter().position(|heading| heading == title).unwrap();
            rows[row][column].clone()
        };
        assert_eq!(cell(1, "Log per commit"), "1.50 kB, 1.50 MB in all");
        assert_eq!(cell(2, "Log per commit"), "500 B, 1.50 MB in all");
        assert_eq!(cell(1, "Device writes per commit"), "2.00 kB", "of all commits on the device");
        assert_eq!(
            (cell(1, "From the cache"), cell(1, "Data / cache")),
            ("90.00 %, 100 blocks read".into(), "1.50".into())
        );
        assert!(!rows[0].iter().any(|heading| heading == "Lock waits"), "nobody counted them");
    }

    #[test]
    fn the_lag_of_each_replica_stands_with_how_exact_it_is() {
        let lag = |server: &str, unseen| ReplicaLag {
            server: server.into(),
            markers: 40,
            unseen,
            p50_ns: 2_000_000,
            poll_ns: 5_000_000,
            ..ReplicaLag::default()
        };
        let replicas_of = vec![lag("follows", 0), lag("stands still", 40)];
        let with = DatabaseUse { replicas: replicas_of, ..database("first") };
        let rows = shown(replicas, vec![with.clone()]);
        assert_eq!(
            (rows[1][1].as_str(), rows[1][4].as_str(), rows[1][7].as_str()),
            ("follows", "2.00 ms", "0")
        );
        assert_eq!((rows[2][4].as_str(), rows[2][7].as_str()), (NONE, "40"));
        let legend = |server| {
            let record = Record { servers: vec![server], ..Record::default() };
            replicas_legend(&[(&stage(), &record)])
        };
        assert!(legend(with).is_some_and(|legend| legend.contains("every 5.00 ms")));
        assert_eq!(legend(database("first")), None);
    }

    #[test]
    fn a_setting_stands_once_with_what_it_means_and_where_it_holds() {
        let (first, second) = (database("first"), database("second"));
        let rows = shown(settings, vec![first.clone(), second]);
        assert_eq!(rows[0], ["Setting", "Value", "For a commit"]);
        assert!(
            rows.len() == 3 && rows[1][0] == "fsync" && rows[1][2].contains("nothing is synced"),
            "{rows:?}"
        );
        assert_eq!(rows[2][2], NONE);
        let second = DatabaseUse { settings: vec![setting("fsync", "on", Some(true))], ..database("second") };
        let rows = shown(settings, vec![first, second]);
        let places: Vec<_> = rows.iter().map(|row| row[3].as_str()).collect();
        assert_eq!(places, ["Where", "first", "second", "first"]);
    }
}
