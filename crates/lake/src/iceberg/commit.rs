//! A commit: how one of several committers makes the next version of a table.
//!
//! A version is a file whose name is its number. A committer looks for the newest one, writes what its own will consist of, and writes
//! the file of the next number on the condition that there is none (`If-None-Match: *`): whoever is first has made the version. The
//! others have lost a race, and try again on what is the newest by then; data files and their manifest stay as they are, because their
//! sequence number is that of the commit (*Sequence Number Inheritance* in Iceberg's specification). The latency of a commit is that
//! of all its attempts.
//!
//! If storage does not tell whether a version was made, the version itself tells: it names the snapshot that it came with.

use crate::iceberg::files::{Files, Only, Version, is_lost};
use crate::iceberg::manifest::{self, Entry};
use crate::iceberg::metadata::{self, Amount};
use crate::iceberg::records::{DataFile, ManifestFile};
use crate::iceberg::table::{Operation, Snapshot};
use crate::tables::failure::Failure;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use serde_json::Map;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tidemark_iceberg::commits::TableFile;
use tidemark_iceberg::job::Protocol;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;
use tidemark_measure::units;

/// Manifests that are read at once.
const READERS: usize = 8;

/// What a commit took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tried {
    /// Attempts.
    pub attempts: u32,
    /// Attempts that found the version made by somebody else.
    pub lost: u32,
    /// Attempts whose outcome was not told.
    pub looked_up: u32,
}

/// A commit that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    /// The version that it made.
    pub version: u64,
    /// The snapshot that it added.
    pub snapshot: i64,
}

/// What a commit changes, the same in all attempts.
#[derive(Debug)]
pub(crate) struct Change {
    /// The snapshot that it makes.
    pub snapshot: i64,
    /// What it is called in the table's history.
    pub operation: Operation,
    /// Files of rows and of deletes that become part of the table. They are there.
    pub added: Vec<DataFile>,
    /// Names of files that are no longer part of it.
    pub removed: HashSet<String>,
}

impl Change {
    /// A change of this kind that adds these files, and takes those away.
    pub(crate) fn new(
        operation: Operation,
        added: Vec<DataFile>,
        removed: HashSet<String>,
    ) -> Result<Self, Failure> {
        Ok(Self { snapshot: unique()? as i64 & i64::MAX, operation, added, removed })
    }

    /// Files of rows that become part of the table.
    pub(crate) fn append(added: Vec<DataFile>) -> Result<Self, Failure> {
        Self::new(Operation::Append, added, HashSet::new())
    }
}

/// The manifests of what a commit adds, the same in all attempts.
struct Own {
    manifests: Vec<ManifestFile>,
    files: Vec<(TableFile, Path)>,
}

/// What is written for one attempt, and is of no use if it loses.
struct Attempt {
    version: Version,
    files: Vec<(TableFile, Path)>,
}

/// A number that nobody else draws.
pub(crate) fn unique() -> Result<u64, Failure> {
    getrandom::u64().map_err(|error| Failure::new(Fault::Local, format!("no random numbers: {error}")))
}

/// Milliseconds since 1970 UTC.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Whether a write that failed so may have had its effect, or may have it yet.
fn leaves_doubt(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Timeout
            | Fault::Reset
            | Fault::Protocol
            | Fault::Conflict
            | Fault::Throttled
            | Fault::ServerError
            | Fault::ShortTransfer
            | Fault::TruncatedContent
    )
}

/// Commits a change. `known` is the newest version that this committer knows.
pub(crate) async fn commit(
    files: &Files,
    protocol: &Protocol,
    known: &mut Option<Arc<Version>>,
    change: &Change,
    rng: &mut Rng,
) -> (Tried, Result<Committed, Failure>) {
    let mut tried = Tried::default();
    // The version of which it is not known whether it is ours.
    let mut doubt = None;
    let done = attempts(files, protocol, known, change, rng, &mut tried, &mut doubt).await;
    let done = done.map_err(|failure| match doubt {
        None => failure,
        Some(version) => {
            let words = format!("whether version {version} was made is not known: {failure}");
            Failure::new(Fault::Ambiguous, words)
        }
    });
    (tried, done)
}

async fn attempts(
    files: &Files,
    protocol: &Protocol,
    known: &mut Option<Arc<Version>>,
    change: &Change,
    rng: &mut Rng,
    tried: &mut Tried,
    doubt: &mut Option<u64>,
) -> Result<Committed, Failure> {
    let snapshot = change.snapshot;
    let mut own = None;
    let mut last = None;
    while tried.attempts < protocol.tries {
        let pause = pause(protocol, tried.attempts, rng);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        tried.attempts += 1;
        let gone = || Failure::new(Fault::NotFound, format!("there is no table at {}", files.location()));
        let base = files.newest(known.as_ref()).await?.ok_or_else(gone)?;
        *known = Some(Arc::clone(&base));
        if let Some(version) = doubt.filter(|version| *version <= base.number) {
            let made = files.read_version(version).await?;
            *doubt = None;
            if made.is_some_and(|made| made.metadata.current_snapshot_id() == Some(snapshot)) {
                return Ok(Committed { version, snapshot });
            }
            tried.lost += 1;
        }
        let own = match &own {
            Some(known) => known,
            None => own.insert(added(files, &base, change).await?),
        };
        let attempt = prepare(files, protocol, &base, change, own, tried.attempts).await?;
        let version = attempt.version.number;
        match files.write_version(&attempt.version).await {
            Ok(()) => {
                *known = Some(Arc::new(attempt.version));
                // The commit is made: without a hint others look further.
                let _ = files.write_hint(version).await;
                return Ok(Committed { version, snapshot });
            }
            Err(failure) if is_lost(&failure) => {
                // What was sent before without an answer may be what was first.
                if doubt.is_none() {
                    tried.lost += 1;
                    discard(files, &attempt.files).await;
                }
            }
            Err(failure) if leaves_doubt(failure.fault) => {
                *doubt = Some(version);
                tried.looked_up += 1;
                last = Some(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    if let (Some(_), Some(failure)) = (*doubt, last) {
        return Err(failure);
    }
    discard(files, own.as_ref().map_or(&[][..], |own| &own.files[..])).await;
    let words = format!("{} attempts lost to other committers", units::count(tried.lost.into()));
    Err(Failure::new(Fault::Serialization, words))
}

/// Deletes files that nothing refers to. One that stays does no harm.
pub(crate) async fn discard(files: &Files, paths: &[(TableFile, Path)]) {
    for (kind, path) in paths {
        let _ = files.delete(*kind, path).await;
    }
}

/// Whether a commit that failed so has certainly not been made.
pub(crate) fn is_void(failure: &Failure) -> bool {
    failure.fault != Fault::Ambiguous
}

/// Deletes the files that a commit would have added.
pub(crate) async fn discard_added(files: &Files, change: &Change) {
    for file in &change.added {
        let kind = if manifest::has_deletes(file) { TableFile::Deletes } else { TableFile::Data };
        if let Ok(path) = files.named(file.file_path()) {
            discard(files, &[(kind, path)]).await;
        }
    }
}

/// How long to wait after so many attempts: between half and all of what doubles with each of them.
fn pause(protocol: &Protocol, attempts: u32, rng: &mut Rng) -> Duration {
    if attempts == 0 {
        return Duration::ZERO;
    }
    let doubled = protocol.back_off_ns.saturating_mul(1 << (attempts - 1).min(30));
    let most = doubled.min(protocol.back_off_most_ns);
    Duration::from_nanos(most / 2 + rng.below(most / 2 + 1))
}

/// Writes the manifests of what a commit adds: one of data files, one of files of deletes.
async fn added(files: &Files, base: &Version, change: &Change) -> Result<Own, Failure> {
    let mut own = Own { manifests: Vec::new(), files: Vec::new() };
    for deletes in [false, true] {
        let entries: Vec<Entry> = change
            .added
            .iter()
            .filter(|file| manifest::has_deletes(file) == deletes)
            .cloned()
            .map(Entry::added)
            .collect();
        if !entries.is_empty() {
            let path = files.metadata(&format!("{:016x}-m{}.avro", change.snapshot, u8::from(deletes)));
            own.manifests.push(write(files, base, &entries, change, &path).await?);
            own.files.push((TableFile::Manifest, path));
        }
    }
    Ok(own)
}

/// Writes what the next version consists of, but for the version itself.
async fn prepare(
    files: &Files,
    protocol: &Protocol,
    base: &Version,
    change: &Change,
    own: &Own,
    attempt: u32,
) -> Result<Attempt, Failure> {
    let before = base.metadata.current_snapshot();
    let sequence_number = base.metadata.next_sequence_number();
    let mut written = Vec::new();
    let mut manifests = match before {
        Some(before) => manifests(files, &before.manifest_list).await?,
        None => Vec::new(),
    };
    // One that only says what its own snapshot took away has nothing for later ones.
    manifests.retain(|one| one.added_files_count > 0 || one.existing_files_count > 0);
    let mut removed = Amount::default();
    if !change.removed.is_empty() || manifests.len() >= protocol.manifests as usize {
        (manifests, removed) =
            rewrite(files, protocol, base, manifests, change, attempt, &mut written).await?;
    }
    let manifests = own.manifests.iter().cloned().chain(manifests).collect();
    let snapshot = change.snapshot;
    let path = files.metadata(&format!("snap-{snapshot}-{attempt}.avro"));
    let parent = base.metadata.current_snapshot_id();
    let list = manifest::write_list(manifests, snapshot, parent, sequence_number)?;
    files.write(TableFile::ManifestList, &path, list, Only::Always).await?;
    let total = before.map_or(Amount::default(), metadata::total);
    let added = manifest::amount(&change.added);
    let snapshot = Snapshot {
        snapshot_id: snapshot,
        parent_snapshot_id: parent,
        sequence_number,
        // Clocks of committers may differ; time in a table does not run backwards.
        timestamp_ms: now_ms().max(base.metadata.last_updated_ms()),
        manifest_list: files.called(&path),
        summary: Some(metadata::summary(change.operation, total, added, removed)),
        schema_id: Some(base.metadata.current_schema_id()),
        others: Map::new(),
    };
    written.push((TableFile::ManifestList, path));
    let file = files.called_version(base.number);
    let metadata = metadata::next(&base.metadata, file, snapshot, protocol.snapshots as usize)?;
    Ok(Attempt { version: Version { number: base.number + 1, metadata }, files: written })
}

/// Writes manifests anew: those that name what a commit takes away, and all of them into one where there are too many. Gives the manifests
/// of the snapshot to come, and what is taken away.
async fn rewrite(
    files: &Files,
    protocol: &Protocol,
    base: &Version,
    manifests: Vec<ManifestFile>,
    change: &Change,
    attempt: u32,
    written: &mut Vec<(TableFile, Path)>,
) -> Result<(Vec<ManifestFile>, Amount), Failure> {
    let too_many = manifests.len() >= protocol.manifests as usize;
    let mut rewritten: Vec<Vec<Entry>> = Vec::new();
    let (mut kept, mut merged, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
    let mut gone = Vec::new();
    let is_removed = |entry: &Entry| change.removed.contains(entry.file.file_path());
    for (one, entries) in manifests.iter().zip(read(files, &manifests).await?) {
        gone.extend(entries.iter().filter(|entry| is_removed(entry)).map(|entry| entry.file.clone()));
        if too_many {
            let all = if entries.iter().any(|one| manifest::has_deletes(&one.file)) {
                &mut deletes
            } else {
                &mut merged
            };
            all.extend(entries);
        } else if entries.iter().any(is_removed) {
            rewritten.push(entries);
        } else {
            kept.push(one.clone());
        }
    }
    if gone.len() != change.removed.len() {
        let words = format!(
            "{} of {} files that it replaces are no longer part of the table: somebody else has replaced them",
            change.removed.len().saturating_sub(gone.len()),
            change.removed.len()
        );
        return Err(Failure::new(Fault::Conflict, words));
    }
    rewritten.extend([merged, deletes].into_iter().filter(|entries| !entries.is_empty()));
    for (number, entries) in rewritten.iter().enumerate() {
        let path = files.metadata(&format!("{:016x}-{attempt}-m{}.avro", change.snapshot, number + 2));
        kept.push(write(files, base, entries, change, &path).await?);
        written.push((TableFile::Manifest, path));
    }
    Ok((kept, manifest::amount(&gone)))
}

/// Writes a manifest.
async fn write(
    files: &Files,
    base: &Version,
    entries: &[Entry],
    change: &Change,
    path: &Path,
) -> Result<ManifestFile, Failure> {
    let (snapshot, called) = (change.snapshot, files.called(path));
    let (written, content) = manifest::write(entries, &change.removed, &base.metadata, snapshot, called)?;
    files.write(TableFile::Manifest, path, content, Only::Always).await?;
    Ok(written)
}

/// The manifests of a snapshot, by its list.
pub(crate) async fn manifests(files: &Files, list: &str) -> Result<Vec<ManifestFile>, Failure> {
    let path = files.named(list)?;
    let bytes = files.read(TableFile::ManifestList, &path).await?;
    manifest::read_list(&bytes).map_err(|failure| failure.of(path.as_ref()))
}

/// The files of each of some manifests.
async fn read(files: &Files, manifests: &[ManifestFile]) -> Result<Vec<Vec<Entry>>, Failure> {
    let read = |one: &ManifestFile| {
        let one = one.clone();
        async move {
            let path = files.named(&one.manifest_path)?;
            let bytes = files.read(TableFile::Manifest, &path).await?;
            manifest::read(&bytes, &one).map_err(|failure| failure.of(path.as_ref()))
        }
    };
    let reads: Vec<_> = manifests.iter().map(read).collect();
    stream::iter(reads).buffered(READERS).try_collect().await
}

/// The files that came with a snapshot: its list, the manifests that it wrote, and what those name.
pub(crate) async fn named_by(files: &Files, snapshot: &Snapshot) -> Result<Vec<Path>, Failure> {
    let mut own = manifests(files, &snapshot.manifest_list).await?;
    own.retain(|one| one.added_snapshot_id == snapshot.snapshot_id);
    let entries = read(files, &own).await?;
    let names = entries.iter().flatten().map(|entry| entry.file.file_path());
    let lists = own.iter().map(|one| one.manifest_path.as_str()).chain([snapshot.manifest_list.as_str()]);
    lists.chain(names).map(|name| files.named(name)).collect()
}

/// What a version consists of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// Its data files.
    pub data: Vec<DataFile>,
    /// Its files of deletes.
    pub deletes: Vec<DataFile>,
    /// How many manifests name them.
    pub manifests: u64,
}

impl Contents {
    /// Those of a version.
    pub(crate) async fn of(files: &Files, version: &Version) -> Result<Self, Failure> {
        let Some(current) = version.metadata.current_snapshot() else { return Ok(Self::default()) };
        let manifests = manifests(files, &current.manifest_list).await?;
        let entries = read(files, &manifests).await?;
        let all = entries.into_iter().flatten().map(|entry| entry.file);
        let (deletes, data) = all.partition(manifest::has_deletes);
        Ok(Self { data, deletes, manifests: manifests.len() as u64 })
    }

    /// All files, those of deletes after those of rows.
    pub(crate) fn all(&self) -> impl Iterator<Item = &DataFile> {
        self.data.iter().chain(&self.deletes)
    }
}
