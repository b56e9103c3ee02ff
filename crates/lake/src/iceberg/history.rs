//! What a table's history says after a load: every version is read back from storage.
//!
//! The newest version is what readers see. A commit that it descends from is there; one that was acknowledged and that it does not
//! descend from is lost, whatever the storage said. Snapshots are linked to their parents by all versions that list them, so a version
//! that was overwritten takes away no more than what is lost with it.

use crate::iceberg::commit::{self, Committed, Contents};
use crate::iceberg::files::{Files, Version};
use crate::iceberg::manifest;
use crate::iceberg::metadata;
use crate::iceberg::table::Snapshot;
use crate::tables::failure::Failure;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use std::collections::{HashMap, HashSet};
use tidemark_iceberg::commits::TableHistory;
use tidemark_measure::fault::Fault;

/// Versions that are read at once.
const READERS: usize = 16;

/// Faults that are told one by one.
const EXAMPLES: usize = 5;

/// A commit as its committer knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    pub commit: Committed,
    pub committer: u32,
    pub rows: u64,
}

/// What is known of a snapshot.
struct Link {
    parent: Option<i64>,
    /// Rows that it has more than its parent.
    rows: i64,
}

/// What one version says.
struct Told {
    number: u64,
    current: Option<i64>,
    parent: Option<i64>,
    sequence_number: i64,
    before: Option<String>,
}

/// Reads the versions since `from` back, and looks for each commit that was acknowledged.
pub(crate) async fn read(
    files: &Files,
    from: &Version,
    all: &[Acknowledged],
) -> Result<TableHistory, Failure> {
    let told = all.iter().map(|one| one.commit.version).max().unwrap_or(from.number);
    let to = files.last_after(told.max(from.number)).await?;
    let mut history = TableHistory { from_version: from.number, to_version: to, ..TableHistory::default() };
    let mut links: HashMap<i64, Link> = HashMap::new();
    let mut before = Some(Told::of(from, from.number));
    let mut newest = None;
    let reads =
        (from.number + 1..=to).map(|number| async move { (number, files.read_version(number).await) });
    let mut versions = stream::iter(reads).buffered(READERS);
    while let Some((number, read)) = versions.next().await {
        let version = match read {
            Ok(Some(version)) => version,
            Ok(None) => {
                history.fault(|one| &mut one.broken, format!("version {number} is not there"));
                before = None;
                continue;
            }
            Err(failure) if failure.fault == Fault::WrongContent => {
                history.fault(|one| &mut one.broken, format!("version {number} cannot be read: {failure}"));
                before = None;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        for snapshot in version.metadata.snapshots() {
            links.insert(snapshot.snapshot_id, Link::of(snapshot));
        }
        let own = Told::of(&version, number);
        if let Some(wrong) = before.and_then(|before| own.does_not_follow(&before, files)) {
            history.fault(|one| &mut one.broken, format!("version {number} {wrong}"));
        }
        before = Some(own);
        newest = Some(version);
    }
    drop(versions);
    let ancestors = ancestors(newest.as_ref(), from, &links, &mut history);
    history.added_rows = ancestors.iter().filter_map(|id| links.get(id)).map(|link| link.rows).sum();
    compare(&mut history, &ancestors, all);
    let at_first = Contents::of(files, from).await?;
    let last = Contents::of(files, newest.as_ref().unwrap_or(from)).await?;
    let [rows, at_first] = [&last, &at_first].map(|files| signed(manifest::amount(&files.data).rows));
    history.rows = rows.saturating_sub(at_first);
    look_for(files, &last, &mut history).await?;
    Ok(history)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

trait Faults {
    /// Counts a fault, and keeps its words if it is one of the first.
    fn fault(&mut self, count: fn(&mut TableHistory) -> &mut u64, words: String);
}

impl Faults for TableHistory {
    fn fault(&mut self, count: fn(&mut TableHistory) -> &mut u64, words: String) {
        *count(self) += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(words);
        }
    }
}

impl Link {
    fn of(snapshot: &Snapshot) -> Self {
        let [added, deleted] =
            ["added-records", "deleted-records"].map(|key| signed(metadata::number(snapshot, key)));
        Self { parent: snapshot.parent_snapshot_id, rows: added.saturating_sub(deleted) }
    }
}

impl Told {
    fn of(version: &Version, number: u64) -> Self {
        let metadata = &version.metadata;
        Self {
            number,
            current: metadata.current_snapshot_id(),
            parent: metadata.current_snapshot().and_then(|snapshot| snapshot.parent_snapshot_id),
            sequence_number: metadata.last_sequence_number(),
            before: metadata.metadata_log().last().map(|before| before.metadata_file.clone()),
        }
    }

    /// Why it does not follow from the version before, if it does not.
    fn does_not_follow(&self, before: &Told, files: &Files) -> Option<String> {
        if self.parent != before.current {
            return Some(format!("was not made on what version {} has become", before.number));
        }
        if self.sequence_number != before.sequence_number + 1 {
            let (own, before) = (self.sequence_number, before.sequence_number);
            return Some(format!("has the sequence number {own} after {before}"));
        }
        let file = files.called_version(before.number);
        (self.before.as_deref() != Some(&file)).then(|| format!("does not name {file} as the one before"))
    }
}

/// The snapshots since `from` that the newest version descends from, itself among them.
fn ancestors(
    newest: Option<&Version>,
    from: &Version,
    links: &HashMap<i64, Link>,
    history: &mut TableHistory,
) -> HashSet<i64> {
    let mut found = HashSet::new();
    let mut next = newest.and_then(|newest| newest.metadata.current_snapshot_id());
    while next != from.metadata.current_snapshot_id() {
        let Some(id) = next else {
            history.fault(|one| &mut one.broken, "the newest version does not descend from the first".into());
            break;
        };
        let Some(link) = links.get(&id) else {
            history.fault(|one| &mut one.broken, format!("no version lists the snapshot {id}"));
            break;
        };
        if !found.insert(id) {
            history.fault(|one| &mut one.broken, format!("the snapshot {id} descends from itself"));
            break;
        }
        next = link.parent;
    }
    found
}

/// Looks for all that was acknowledged.
fn compare(history: &mut TableHistory, ancestors: &HashSet<i64>, all: &[Acknowledged]) {
    let mut makers: HashMap<u64, Vec<u32>> = HashMap::new();
    for one in all {
        let makers = makers.entry(one.commit.version).or_default();
        makers.push(one.committer);
        if let [first, second] = makers[..] {
            let version = one.commit.version;
            let words = format!(
                "committers {first} and {second} were both told that they had made version {version}"
            );
            history.fault(|one| &mut one.contested, words);
        }
        if ancestors.contains(&one.commit.snapshot) {
            history.found += 1;
        } else {
            history.missing_rows += one.rows;
            let words = format!(
                "the commit of {} rows that committer {} made as version {} is gone",
                one.rows, one.committer, one.commit.version
            );
            history.fault(|one| &mut one.missing, words);
        }
    }
    history.others = (ancestors.len() as u64).saturating_sub(history.found);
}

/// How many files in a table's directory belong to no version of it: what commits leave behind that were cut short, or that others
/// overtook. Every version up to the newest is read.
pub(crate) async fn orphans(files: &Files, newest: u64) -> Result<u64, Failure> {
    let mut known: HashSet<Path> = (1..=newest).map(|number| files.version(number)).collect();
    known.insert(files.hint());
    let reads = (1..=newest).map(|number| async move {
        let version = files.read_version(number).await?;
        let snapshot = version.as_ref().and_then(|version| version.metadata.current_snapshot());
        match snapshot {
            Some(snapshot) => commit::named_by(files, snapshot).await,
            None => Ok(Vec::new()),
        }
    });
    let mut versions = stream::iter(reads).buffer_unordered(READERS);
    while let Some(named) = versions.try_next().await? {
        known.extend(named);
    }
    drop(versions);
    let found: Vec<_> = files.list(None).try_collect().await?;
    Ok(found.iter().filter(|meta| !known.contains(&meta.location)).count() as u64)
}

/// Whether all data files are in storage, each of its size, and named once.
async fn look_for(files: &Files, named: &Contents, history: &mut TableHistory) -> Result<(), Failure> {
    let there: HashMap<String, u64> = files
        .list(Some("data"))
        .map_ok(|meta| (files.called(&meta.location), meta.size))
        .try_collect()
        .await?;
    history.files = named.data.len() as u64;
    let mut seen = HashSet::new();
    for file in named.all() {
        if !seen.insert(file.file_path()) {
            history.fault(|one| &mut one.broken, format!("{} is part of it twice", file.file_path()));
        }
        match there.get(file.file_path()) {
            Some(bytes) if *bytes == file.file_size_in_bytes() => {}
            Some(bytes) => {
                let words = format!(
                    "{} has {bytes} bytes instead of {}",
                    file.file_path(),
                    file.file_size_in_bytes()
                );
                history.fault(|one| &mut one.missing_files, words);
            }
            None => history.fault(|one| &mut one.missing_files, format!("{} is not there", file.file_path())),
        }
    }
    Ok(())
}
