//! Commits to tables whose history is kept in storage: what was acknowledged, what it took, and what the history says of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a work committed to a table, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CommitsUse {
    /// The work's name.
    pub work: String,
    /// The table: `events`.
    pub table: String,
    /// Where it is: `S3 at http://10.0.0.1:8000, bucket lake`.
    pub storage: String,
    /// Workers that commit side by side.
    pub committers: u32,
    /// Commits that were acknowledged, of the whole load.
    pub acknowledged: u64,
    /// Rows of them.
    pub rows: u64,
    /// How many attempts they took, from few to many.
    pub attempts: Vec<AttemptCount>,
    /// Attempts that found the next version made by somebody else, those of commits that failed included.
    pub lost_races: u64,
    /// Attempts whose outcome the storage did not tell, so that it was looked up.
    pub looked_up: u64,
    /// Requests of the load, by what they were for.
    pub requests: Vec<FileRequests>,
    /// Whether storage heeded the condition on which versions are made, when it was asked before the load.
    pub condition: Condition,
    /// What the table's history says, read back after the load; `None` where it could not be read.
    pub history: Option<TableHistory>,
}

/// Commits that took so many attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AttemptCount {
    /// The attempts of each.
    pub attempts: u32,
    /// How many commits.
    pub commits: u64,
}

/// Whether storage heeds a condition of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Nobody asked, or the answer did not show.
    #[default]
    Unknown,
    /// It refused to overwrite what was there.
    Heeded,
    /// It accepted the condition, and overwrote what was there.
    Ignored,
}

/// A kind of file that a table consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TableFile {
    /// Rows.
    #[default]
    Data,
    /// Which rows of data files are deleted.
    Deletes,
    /// Which data files there are.
    Manifest,
    /// Which manifests a snapshot has.
    ManifestList,
    /// A version of the table: what is written on a condition.
    Metadata,
    /// Where to begin looking for the newest version.
    VersionHint,
}

/// Requests for one kind of file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct FileRequests {
    /// Which kind.
    pub file: TableFile,
    /// Requests that read files.
    pub reads: u64,
    /// Bytes that they brought.
    pub read_bytes: u64,
    /// Requests that asked whether a file is there.
    pub probes: u64,
    /// Requests that wrote files.
    pub writes: u64,
    /// Bytes of them, whether or not they were accepted.
    pub written_bytes: u64,
    /// Requests that deleted files.
    pub deletes: u64,
    /// Requests of any kind that failed, but for writes whose condition did not hold.
    pub failed: u64,
    /// Time of all of them, summed, nanoseconds.
    pub waited_ns: u64,
}

/// What the history of a table says after a load, version by version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TableHistory {
    /// The version that the load began with.
    pub from_version: u64,
    /// The newest one.
    pub to_version: u64,
    /// Acknowledged commits that the newest version descends from.
    pub found: u64,
    /// Acknowledged commits that it does not descend from: they are lost.
    pub missing: u64,
    /// Rows of those.
    pub missing_rows: u64,
    /// Versions that more than one committer was told to have made.
    pub contested: u64,
    /// Commits that it descends from and that nobody here was told of.
    pub others: u64,
    /// Versions after the first that do not follow from the one before, or cannot be read.
    pub broken: u64,
    /// Rows of the data files that the newest version has, less those that the table had at first.
    pub rows: i64,
    /// Rows that the commits it descends from say they have added, less those that they have deleted.
    pub added_rows: i64,
    /// Data files that the newest version has.
    pub files: u64,
    /// Those of them that are not in storage, or are of another size.
    pub missing_files: u64,
    /// The first few faults, one a line.
    pub examples: Vec<String>,
}

impl FileRequests {
    /// Adds the requests of another, for files of the same kind.
    pub fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.probes += other.probes;
        self.writes += other.writes;
        self.written_bytes += other.written_bytes;
        self.deletes += other.deletes;
        self.failed += other.failed;
        self.waited_ns += other.waited_ns;
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        [self.reads, self.probes, self.writes, self.deletes].into_iter().fold(0, u64::saturating_add)
    }
}

impl CommitsUse {
    /// Requests of the load.
    pub fn all_requests(&self) -> u64 {
        self.requests.iter().map(FileRequests::all).fold(0, u64::saturating_add)
    }

    /// Attempts of all acknowledged commits.
    pub fn all_attempts(&self) -> u64 {
        let attempts = self.attempts.iter().map(|one| u64::from(one.attempts).saturating_mul(one.commits));
        attempts.fold(0, u64::saturating_add)
    }

    /// This for each acknowledged commit; `None` where there was none.
    pub fn per_commit(&self, number: u64) -> Option<f64> {
        (self.acknowledged > 0).then(|| number as f64 / self.acknowledged as f64)
    }
}

impl TableHistory {
    /// Whether all that was acknowledged is there, once, in an unbroken line of versions.
    pub fn is_whole(&self) -> bool {
        [self.missing, self.contested, self.broken, self.missing_files] == [0; 4]
            && self.rows == self.added_rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_acknowledged_commits() {
        let used = CommitsUse {
            acknowledged: 4,
            attempts: vec![
                AttemptCount { attempts: 1, commits: 3 },
                AttemptCount { attempts: 3, commits: 1 },
            ],
            requests: vec![FileRequests { reads: 1, probes: 2, writes: 4, deletes: 1, ..Default::default() }],
            ..CommitsUse::default()
        };
        assert_eq!(used.per_commit(used.all_attempts()), Some(1.5));
        assert_eq!(used.per_commit(used.all_requests()), Some(2.0));
        assert_eq!(CommitsUse::default().per_commit(3), None);
    }

    #[test]
    fn one_fault_is_enough_not_to_be_whole() {
        let whole = TableHistory { found: 5, others: 1, rows: 7, added_rows: 7, ..TableHistory::default() };
        assert!(whole.is_whole());
        let faults: [fn(&mut TableHistory); 5] = [
            |one| one.missing = 1,
            |one| one.contested = 1,
            |one| one.broken = 1,
            |one| one.missing_files = 1,
            |one| one.rows = 8,
        ];
        for fault in faults {
            let mut history = whole.clone();
            fault(&mut history);
            assert!(!history.is_whole(), "{history:?}");
        }
    }
}
