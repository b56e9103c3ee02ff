//! Commits to tables whose history is in storage.

use super::record::{CommitsUse, Condition, FileRequests, TableFile, TableHistory};
use serde::Serialize;
use tidemark_judge::Facts;
use tidemark_judge::words::phrase::{Phrase, count, decimal, phrase};
use tidemark_measure::units;

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Commits {
    /// Every acknowledged commit is in the history, once.
    Kept { table: String, history: TableHistory },
    /// Acknowledged commits are gone.
    Lost { table: String, acknowledged: u64, history: TableHistory, condition: Condition },
    /// All of them are there, but the history is not as it should be.
    Broken { table: String, history: TableHistory },
    /// What commits took.
    Took { used: CommitsUse },
}

/// What requests for a kind of file are called.
pub(super) fn file_name(file: TableFile) -> &'static str {
    match file {
        TableFile::Data => "data files",
        TableFile::Deletes => "files of deletes",
        TableFile::Manifest => "manifests",
        TableFile::ManifestList => "manifest lists",
        TableFile::Metadata => "versions",
        TableFile::VersionHint => "version hint",
    }
}

/// Whether it is known that storage overwrote what it should not have.
fn is_ignored(history: &TableHistory, condition: Condition) -> bool {
    history.contested > 0 || condition == Condition::Ignored
}

impl Facts for Commits {
    fn rule(&self) -> &'static str {
        match self {
            Commits::Kept { .. } => "commits-kept",
            Commits::Lost { .. } => "commits-lost",
            Commits::Broken { .. } => "history-broken",
            Commits::Took { .. } => "commits-took",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Commits::Kept { table, history } => {
                let all = count(history.found);
                phrase![
                    "all ",
                    all,
                    " acknowledged commits are in the history of the table ",
                    table,
                    ", each once"
                ]
            }
            Commits::Lost { table, acknowledged, history, condition } => {
                let gone = match history.missing {
                    0 => "versions were made twice".to_owned(),
                    1 => format!("1 of {} acknowledged commits is gone", units::count(*acknowledged)),
                    missing => {
                        format!(
                            "{} of {} acknowledged commits are gone",
                            units::count(missing),
                            units::count(*acknowledged)
                        )
                    }
                };
                let why = match is_ignored(history, *condition) {
                    true => {
                        ": the storage accepted `If-None-Match: *` and overwrote versions that were there"
                    }
                    false => "",
                };
                phrase![gone, " in the table ", table, why]
            }
            Commits::Broken { table, .. } => phrase!["the history of the table ", table, " is not whole"],
            Commits::Took { used } => {
                let [attempts, requests] =
                    [used.all_attempts(), used.all_requests()].map(|number| used.per_commit(number));
                phrase![
                    "a commit took ",
                    decimal(attempts.unwrap_or(0.0)),
                    " attempts and ",
                    decimal(requests.unwrap_or(0.0)),
                    " requests on average"
                ]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Commits::Kept { .. } => {
                "The versions of the table were read back after the load. Each follows from the one before and has one maker, and the \
                 data files that the newest one names are there, with as many rows as its commits have added."
                    .into()
            }
            Commits::Lost { history, condition, .. } => match is_ignored(history, *condition) {
                true => "Several committers were told that they had made the same version. Do not keep tables on this storage whose \
                         commits rely on conditional writes: use an interface of it that knows them, or a catalogue that decides who \
                         commits."
                    .into(),
                false => "The storage confirmed versions that the newest one does not descend from. See whether something else has \
                          removed or overwritten files of the table."
                    .into(),
            },
            Commits::Broken { .. } => {
                "Every acknowledged commit is there, but what the newest version says is not what is stored. See whether something else \
                 has written to the table."
                    .into()
            }
            Commits::Took { used } if used.lost_races > 0 => {
                "A commit that finds its version made by somebody else is tried again on the newest one. Its latency covers all of its \
                 attempts."
                    .into()
            }
            Commits::Took { .. } => String::new(),
        }
    }

    fn proves(&self) -> bool {
        matches!(self, Commits::Kept { .. })
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Commits::Kept { history, .. } => vec![versions(history)],
            Commits::Lost { history, condition, .. } => {
                let mut lines = vec![versions(history)];
                lines.push(format!(
                    "{} commits with {} rows are gone, {} versions have more than one maker",
                    units::count(history.missing),
                    units::count(history.missing_rows),
                    units::count(history.contested)
                ));
                lines.push(match condition {
                    Condition::Heeded => {
                        "when it was asked before the load, the storage heeded the condition".to_owned()
                    }
                    Condition::Ignored => {
                        "when it was asked before the load, the storage ignored the condition".to_owned()
                    }
                    Condition::Unknown => "the storage was not asked before the load".to_owned(),
                });
                lines.extend(history.examples.iter().cloned());
                lines
            }
            Commits::Broken { history, .. } => {
                let mut lines = vec![versions(history)];
                if history.rows != history.added_rows {
                    lines.push(format!(
                        "the data files have {} rows more than before the load, and the commits have added {}",
                        history.rows, history.added_rows
                    ));
                }
                lines.extend(history.examples.iter().cloned());
                lines
            }
            Commits::Took { used } => {
                let mut lines = vec![format!(
                    "{} commits in {} attempts, {} of all attempts lost to other committers",
                    units::count(used.acknowledged),
                    units::count(used.all_attempts()),
                    units::count(used.lost_races)
                )];
                if used.looked_up > 0 {
                    lines.push(format!(
                        "{} times the storage did not say whether a version was made: it was looked up",
                        units::count(used.looked_up)
                    ));
                }
                let each = |one: &FileRequests| {
                    let each = used.per_commit(one.all()).unwrap_or(0.0);
                    format!("{}: {each:.2} requests for each commit", file_name(one.file))
                };
                lines.extend(used.requests.iter().map(each));
                lines
            }
        }
    }
}

fn versions(history: &TableHistory) -> String {
    let [from, to, found, files] =
        [history.from_version, history.to_version, history.found, history.files].map(units::count);
    let others = match history.others {
        0 => String::new(),
        others => {
            format!(", {} of commits whose outcome nobody was told, or of others", units::count(others))
        }
    };
    format!("versions {from} to {to}: {found} acknowledged commits found{others}; {files} data files")
}
