//! Commits to tables, and what storage saw of them, in reports.

use super::record::{CommitsUse, TableHistory};
use super::words::file_name;
use tidemark_judge::section::{Block, NONE, Section, Table, Tone};
use tidemark_measure::record::Stage;
use tidemark_measure::units;

/// What the columns are, for those who read them.
const LEGEND: &str = "Counts are of the whole load, its warm-up included. A race is lost when somebody else has made the version \
    that a commit wanted to make; the commit is tried again on the newest one. Found are the acknowledged commits that the newest version \
    descends from, as it was read back after the load; contested are versions that several committers were told they had made.";

/// Each work with its stage.
type Works<'a> = [(&'a Stage, &'a CommitsUse)];

/// The section of a run's commits.
pub(super) fn section(stages: &[(&Stage, Vec<CommitsUse>)]) -> Section {
    let works: Vec<(&Stage, &CommitsUse)> =
        stages.iter().flat_map(|(stage, all)| all.iter().map(|used| (*stage, used))).collect();
    let blocks = vec![
        Block::Table(commits(&works)),
        Block::Legend(LEGEND.into()),
        Block::Heading("Attempts of commits".into()),
        Block::Table(attempts(&works)),
        Block::Heading("Requests of commits".into()),
        Block::Table(requests(&works)),
    ];
    Section { id: "commits", title: "Commits to tables", blocks, in_short: None }
}

/// How such a work is called.
fn name(stage: &Stage, used: &CommitsUse) -> String {
    match stage.works.len() {
        0 | 1 => stage.id.clone(),
        _ => format!("{}, {}", stage.id, used.work),
    }
}

fn per_commit(used: &CommitsUse, number: u64) -> String {
    used.per_commit(number).map_or(NONE.into(), |each| format!("{each:.2}"))
}

/// What was committed, and what became of it.
fn commits(works: &Works<'_>) -> Table {
    let mut table = Table::new("Commits to tables").words(["Stage", "Table"]).numbers([
        "Committers",
        "Commits",
        "Rows",
        "Attempts / commit",
        "Requests / commit",
        "Races lost",
        "Looked up",
        "Versions",
        "Found",
        "Missing",
        "Contested",
    ]);
    for (stage, used) in works {
        let told = |of: fn(&TableHistory) -> u64| {
            used.history.as_ref().map_or(NONE.into(), |one| units::count(of(one)))
        };
        let cells = vec![
            name(stage, used),
            used.table.clone(),
            units::count(used.committers.into()),
            units::count(used.acknowledged),
            units::count(used.rows),
            per_commit(used, used.all_attempts()),
            per_commit(used, used.all_requests()),
            units::count(used.lost_races),
            units::count(used.looked_up),
            told(|one| one.to_version.saturating_sub(one.from_version)),
            told(|one| one.found),
            told(|one| one.missing),
            told(|one| one.contested),
        ];
        let whole = used.history.as_ref().is_some_and(TableHistory::is_whole);
        table.row(if whole { Tone::Plain } else { Tone::Bad }, cells);
    }
    table.without_if_all("Looked up", "0")
}

/// How many attempts commits took.
fn attempts(works: &Works<'_>) -> Table {
    let mut table =
        Table::new("Attempts of commits").words(["Stage"]).numbers(["Attempts", "Commits", "Share"]);
    for (stage, used) in works {
        for one in &used.attempts {
            let share = units::percent(one.commits as f64 / used.acknowledged.max(1) as f64);
            let cells =
                [name(stage, used), units::count(one.attempts.into()), units::count(one.commits), share];
            table.row(Tone::Plain, cells.to_vec());
        }
    }
    table.without_if_same("Stage")
}

/// Requests by the kind of file that they were for.
fn requests(works: &Works<'_>) -> Table {
    let mut table = Table::new("Requests of commits").words(["Stage", "For"]).numbers([
        "Requests / commit",
        "Reads",
        "Bytes read",
        "Probes",
        "Writes",
        "Bytes written",
        "Deletes",
        "Failed",
        "Mean time",
    ]);
    for (stage, used) in works {
        for one in &used.requests {
            let mean = one.waited_ns.checked_div(one.all()).map_or(NONE.into(), units::duration_ns);
            let cells = vec![
                name(stage, used),
                file_name(one.file).to_owned(),
                per_commit(used, one.all()),
                units::count(one.reads),
                units::bytes(one.read_bytes),
                units::count(one.probes),
                units::count(one.writes),
                units::bytes(one.written_bytes),
                units::count(one.deletes),
                units::count(one.failed),
                mean,
            ];
            table.row(if one.failed > 0 { Tone::Bad } else { Tone::Plain }, cells);
        }
    }
    table.without_if_same("Stage").without_if_all("Failed", "0")
}

#[cfg(test)]
mod tests {
    use super::super::{AttemptCount, FileRequests, TableFile};
    use super::*;

    fn used() -> CommitsUse {
        let history = TableHistory {
            from_version: 4,
            to_version: 10,
            found: 5,
            missing: 1,
            contested: 1,
            rows: 50,
            added_rows: 50,
            ..TableHistory::default()
        };
        CommitsUse {
            work: "w1".into(),
            table: "<events>".into(),
            committers: 2,
            acknowledged: 6,
            rows: 60,
            attempts: vec![
                AttemptCount { attempts: 1, commits: 4 },
                AttemptCount { attempts: 4, commits: 2 },
            ],
            lost_races: 6,
            requests: vec![FileRequests {
                file: TableFile::Metadata,
                writes: 12,
                waited_ns: 24_000_000,
                ..FileRequests::default()
            }],
            history: Some(history),
            ..CommitsUse::default()
        }
    }

    #[test]
    fn what_is_lost_is_marked() {
        let (stage, used) = (Stage::default(), used());
        let table = commits(&[(&stage, &used)]);
        let rows = table.texts();
        let of = |title: &str| rows[1][rows[0].iter().position(|heading| heading == title).unwrap()].clone();
        assert_eq!([of("Attempts / commit"), of("Requests / commit"), of("Missing")], ["2.00", "2.00", "1"]);
        assert_eq!((of("Versions").as_str(), table.rows[0].tone), ("6", Tone::Bad));
        assert!(!rows[0].iter().any(|title| title == "Looked up"));
    }

    #[test]
    fn shares_are_of_commits_and_times_of_requests() {
        let (stage, used) = (Stage::default(), used());
        let works = [(&stage, &used)];
        assert_eq!(attempts(&works).texts()[2], ["4", "2", "33.33 %"]);
        assert_eq!(requests(&works).texts()[1].last().map(String::as_str), Some("2.00 ms"));
    }
}
