//! Commits to tables whose history is in storage: whether all that was acknowledged is there, and what it took.

use super::record::CommitsUse;
use super::words::Commits as Found;
use tidemark_judge::{Findings, Severity, What, WorkContext};

/// Whether every acknowledged commit is in the table's history, once.
pub(super) fn history(context: &WorkContext<'_>, used: &CommitsUse, out: &mut Findings) {
    let Some(history) = used.history.clone() else { return };
    let table = used.table.clone();
    if history.missing > 0 || history.contested > 0 {
        let (acknowledged, condition) = (used.acknowledged, used.condition);
        let what = Found::Lost { table, acknowledged, history, condition };
        out.add(context.finding(Severity::Critical, What::of_engine(what)).invalidating(true));
    } else if !history.is_whole() {
        out.add(
            context
                .finding(Severity::Critical, What::of_engine(Found::Broken { table, history }))
                .invalidating(true),
        );
    } else if history.found > 0 {
        out.add(context.finding(Severity::Good, What::of_engine(Found::Kept { table, history })));
    }
}

/// How many attempts and requests a commit took.
pub(super) fn took(context: &WorkContext<'_>, used: &CommitsUse, out: &mut Findings) {
    if used.acknowledged > 0 {
        // What was found in the history is told by itself.
        let used = CommitsUse { history: None, ..used.clone() };
        out.add(context.finding(Severity::Note, What::of_engine(Found::Took { used })));
    }
}

#[cfg(test)]
mod tests {
    use super::super::CommitEvidence;
    use super::super::{AttemptCount, Condition, FileRequests, TableHistory};
    use super::*;
    use tidemark_judge::evidence::{install, write};
    use tidemark_judge::{Finding, judge};
    use tidemark_measure::record::{Proof, Run};
    use tidemark_testing::runs::{healthy, work};

    fn whole() -> TableHistory {
        let rows = 800_000;
        TableHistory {
            from_version: 1,
            to_version: 8_001,
            found: 8_000,
            rows,
            added_rows: rows,
            files: 8_000,
            ..TableHistory::default()
        }
    }

    fn run(change: impl FnOnce(&mut CommitsUse)) -> Run {
        let mut used = CommitsUse {
            work: "w1".into(),
            table: "events".into(),
            acknowledged: 8_000,
            attempts: vec![
                AttemptCount { attempts: 1, commits: 4_000 },
                AttemptCount { attempts: 2, commits: 4_000 },
            ],
            lost_races: 4_000,
            requests: vec![FileRequests { writes: 72_000, ..FileRequests::default() }],
            condition: Condition::Heeded,
            history: Some(whole()),
            ..CommitsUse::default()
        };
        change(&mut used);
        let mut run = healthy();
        work(&mut run).operations[0].tally.retries = 4_000;
        install(&[&CommitEvidence]);
        let mut proof = Proof { direct: true, ..Proof::default() };
        write::<CommitEvidence>(&mut proof, &vec![used]);
        run.stages[0].proof = Some(proof);
        run
    }

    fn found(run: &Run, rule: &str) -> Option<Finding> {
        judge(run).findings.into_iter().find(|finding| finding.rule() == rule)
    }

    #[test]
    fn commits_that_are_all_there_are_evidence_and_what_they_took_is_told() {
        let run = run(|_| ());
        let kept = found(&run, "commits-kept").unwrap();
        assert_eq!(kept.severity, Severity::Good);
        assert_eq!(
            kept.title(),
            "all 8 000 acknowledged commits are in the history of the table events, each once"
        );
        assert!(judge(&run).validity.is_valid());
        let took = found(&run, "commits-took").unwrap();
        assert_eq!(took.title(), "a commit took 1.5 attempts and 9.0 requests on average");
        assert!(found(&run, "retries").is_none(), "attempts of commits are no trouble of the storage");
    }

    #[test]
    fn lost_commits_are_critical_and_the_storage_is_named_where_it_overwrote() {
        let lost = run(|used| {
            used.history = Some(TableHistory { missing: 120, contested: 110, found: 7_880, ..whole() });
        });
        let finding = found(&lost, "commits-lost").unwrap();
        assert_eq!(finding.severity, Severity::Critical);
        assert!(!judge(&lost).validity.is_valid());
        let title = finding.title();
        assert!(
            title.starts_with(
                "120 of 8 000 acknowledged commits are gone in the table events: the storage accepted"
            ),
            "{title}"
        );
        let otherwise = run(|used| used.history = Some(TableHistory { missing: 1, found: 7_999, ..whole() }));
        let title = found(&otherwise, "commits-lost").unwrap().title();
        assert_eq!(title, "1 of 8 000 acknowledged commits is gone in the table events");
    }

    #[test]
    fn a_history_that_is_not_whole_invalidates_whatever_is_wrong() {
        let faults: [fn(&mut TableHistory); 3] =
            [|one| one.broken = 1, |one| one.missing_files = 1, |one| one.rows -= 1];
        for fault in faults {
            let broken = run(|used| used.history.iter_mut().for_each(fault));
            assert_eq!(found(&broken, "history-broken").unwrap().severity, Severity::Critical);
            assert!(!judge(&broken).validity.is_valid() && found(&broken, "commits-kept").is_none());
        }
        let unread = run(|used| used.history = None);
        assert!(found(&unread, "commits-kept").is_none(), "what was not read proves nothing");
    }
}
