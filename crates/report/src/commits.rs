//! Commits to tables, and what storage saw of them: the tables that HTML and Markdown share.

use crate::content::NONE;
use crate::table::{Table, Tone};
use tidemark_judge::words::commits::file_name;
use tidemark_measure::record::{CommitsUse, Run, Stage, TableHistory};
use tidemark_measure::units;

/// What the columns are, for those who read them.
pub(crate) const LEGEND: &str = "Counts are of the whole load, its warm-up included. A race is lost when somebody else has made the version \
    that a commit wanted to make; the commit is tried again on the newest one. Found are the acknowledged commits that the newest version \
    descends from, as it was read back after the load; contested are versions that several committers were told they had made.";

/// The works of a run that committed to tables, each with its stage.
pub(crate) fn works(run: &Run) -> impl Iterator<Item = (&Stage, &CommitsUse)> {
    run.stages.iter().flat_map(|stage| {
        stage.proof.iter().flat_map(move |proof| proof.commits.iter().map(move |used| (stage, used)))
    })
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
pub(crate) fn commits(run: &Run) -> Table {
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
    for (stage, used) in works(run) {
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
pub(crate) fn attempts(run: &Run) -> Table {
    let mut table =
        Table::new("Attempts of commits").words(["Stage"]).numbers(["Attempts", "Commits", "Share"]);
    for (stage, used) in works(run) {
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
pub(crate) fn requests(run: &Run) -> Table {
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
    for (stage, used) in works(run) {
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
    use super::*;
    use crate::{html, markdown, sample};
    use tidemark_measure::record::{AttemptCount, FileRequests, Proof, TableFile};

    fn run() -> Run {
        let mut run = sample::healthy(3);
        let work = run.stages[2].works[0].name.clone();
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
        let used = CommitsUse {
            work,
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
        };
        run.stages[2].proof = Some(Proof { commits: vec![used], direct: true, ..Proof::default() });
        run
    }

    #[test]
    fn what_is_lost_stands_out_in_every_form() {
        let run = run();
        let rows = commits(&run).texts();
        let of = |title: &str| rows[1][rows[0].iter().position(|heading| heading == title).unwrap()].clone();
        assert_eq!([of("Attempts / commit"), of("Requests / commit"), of("Missing")], ["2.00", "2.00", "1"]);
        assert_eq!(of("Versions"), "6");
        assert!(!rows[0].iter().any(|title| title == "Looked up"));
        let judgement = tidemark_judge::judge(&run);
        let page = html(&run, &judgement);
        assert!(
            page.contains("id=\"commits\"") && page.contains("&lt;events&gt;") && !page.contains("<events>")
        );
        let text = markdown(&run, &judgement);
        assert!(text.contains("## Commits to tables") && text.contains("Attempts of commits"), "{text}");
    }

    #[test]
    fn shares_are_of_commits_and_times_of_requests() {
        assert_eq!(attempts(&run()).texts()[2], ["4", "2", "33.33 %"]);
        let rows = requests(&run()).texts();
        assert_eq!(rows[1].last().map(String::as_str), Some("2.00 ms"));
    }
}
