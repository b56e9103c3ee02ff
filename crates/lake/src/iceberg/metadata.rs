//! A version of a table, and how the next one follows from it.

use crate::iceberg::commit::{now_ms, unique};
use crate::iceberg::table::{
    APART_MS, FORMAT, Fields, MAIN, MetadataLog, Operation, PartitionSpec, Reference, Schema, Snapshot,
    SnapshotLog, SortOrder, Summary, TableMetadata,
};
use crate::tables::failure::Failure;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tidemark_measure::fault::Fault;
use uuid::Builder;

/// The property by which Tidemark knows tables that it made.
const MADE_BY: &str = "tidemark.table";

/// Raised when the columns of the tables change.
const LAYOUT: &str = "1";

/// Columns, numbered from 1.
const COLUMNS: [(&str, &str); 5] =
    [("id", "long"), ("committer", "int"), ("category", "int"), ("amount", "long"), ("note", "string")];

/// The number before the first that a partition field may have.
const NO_PARTITION: i32 = 999;

/// How many earlier versions a table lists, unless it says otherwise.
const PREVIOUS_VERSIONS: usize = 100;

/// How much a snapshot adds or has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    /// Rows of data files, those that are deleted included.
    pub rows: u64,
    /// Data files.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Files that say which rows are deleted.
    pub delete_files: u64,
    /// How many rows they say are.
    pub deletes: u64,
}

/// The failure that it is if what was made here cannot be made.
pub(crate) fn local(error: impl Into<String>) -> Failure {
    Failure::new(Fault::Local, error)
}

/// The first version of a table at `location`: without rows.
pub(crate) fn first(location: &str) -> Result<TableMetadata, Failure> {
    let column = |(number, (name, kind)): (usize, &(&str, &str))| json!({"id": number + 1, "name": name, "required": true, "type": kind});
    let columns: Vec<Value> = COLUMNS.iter().enumerate().map(column).collect();
    let others =
        Map::from_iter([("type".to_owned(), "struct".into()), ("fields".to_owned(), columns.into())]);
    let random = u128::from(unique()?) << 64 | u128::from(unique()?);
    let fields = Fields {
        format_version: FORMAT,
        table_uuid: Some(Builder::from_random_bytes(random.to_be_bytes()).into_uuid()),
        location: location.to_owned(),
        last_updated_ms: now_ms(),
        last_column_id: COLUMNS.len() as i32,
        schemas: vec![Schema { schema_id: 0, others }],
        partition_specs: vec![PartitionSpec { spec_id: 0, fields: Vec::new() }],
        last_partition_id: NO_PARTITION,
        sort_orders: vec![SortOrder { order_id: 0, fields: Vec::new() }],
        properties: BTreeMap::from([(MADE_BY.to_owned(), LAYOUT.to_owned())]),
        ..Fields::default()
    };
    TableMetadata::new(fields).map_err(local)
}

/// Whether Tidemark made the table, with the columns that it has now.
pub(crate) fn is_ours(table: &TableMetadata) -> bool {
    table.properties().get(MADE_BY).is_some_and(|layout| layout == LAYOUT)
}

/// The version that follows `before`, which is in `file`, with a snapshot as its current one. The last `kept` snapshots are listed.
pub(crate) fn next(
    before: &TableMetadata,
    file: String,
    snapshot: Snapshot,
    kept: usize,
) -> Result<TableMetadata, Failure> {
    let mut known: Vec<_> = before.snapshots().map(|one| (one.sequence_number, one.snapshot_id)).collect();
    known.sort_unstable();
    let expired = (known.len() + 1).saturating_sub(kept.max(1));
    let expired: Vec<i64> = known.into_iter().take(expired).map(|(_, id)| id).collect();
    if let Some(why) = does_not_follow(before, &snapshot) {
        return Err(local(why));
    }
    let mut next = before.clone().into_fields();
    let id = snapshot.snapshot_id;
    next.metadata_log.push(MetadataLog { metadata_file: file, timestamp_ms: next.last_updated_ms });
    let versions = next.properties.get("write.metadata.previous-versions-max");
    let versions = versions.and_then(|most| most.parse().ok()).unwrap_or(PREVIOUS_VERSIONS).max(1);
    next.metadata_log.drain(..next.metadata_log.len().saturating_sub(versions));
    next.last_updated_ms = snapshot.timestamp_ms;
    next.last_sequence_number = snapshot.sequence_number;
    next.current_snapshot_id = Some(id);
    next.refs.entry(MAIN.to_owned()).or_insert_with(|| Reference::branch(id)).snapshot_id = id;
    next.snapshot_log.push(SnapshotLog { snapshot_id: id, timestamp_ms: snapshot.timestamp_ms });
    next.snapshots.push(snapshot);
    let is_kept = |id: i64| !expired.contains(&id);
    next.snapshots.retain(|one| is_kept(one.snapshot_id));
    next.refs.retain(|_, to| is_kept(to.snapshot_id));
    next.statistics.retain(|one| is_kept(one.snapshot_id));
    next.partition_statistics.retain(|one| is_kept(one.snapshot_id));
    // The log has no gaps: it begins after the last snapshot that is not listed any more.
    let is_listed =
        |one: &SnapshotLog| next.snapshots.iter().any(|known| known.snapshot_id == one.snapshot_id);
    let unlisted = next.snapshot_log.iter().rposition(|one| !is_listed(one));
    next.snapshot_log.drain(..unlisted.map_or(0, |last| last + 1));
    TableMetadata::new(next).map_err(local)
}

/// Why a version cannot follow from one with this snapshot, if it cannot.
fn does_not_follow(before: &TableMetadata, snapshot: &Snapshot) -> Option<String> {
    if before.format_version() != FORMAT {
        return Some(format!(
            "the table is of version {} of the format, not {FORMAT}",
            before.format_version()
        ));
    }
    if before.is_tag(MAIN) {
        return Some(format!("the table's reference {MAIN} is no branch"));
    }
    let id = snapshot.snapshot_id;
    if before.snapshot_by_id(id).is_some() {
        return Some(format!("there is a snapshot {id} already"));
    }
    let (own, last) = (snapshot.sequence_number, before.last_sequence_number());
    if own <= last {
        return Some(format!("the snapshot {id} has the sequence number {own}, and {last} is the last"));
    }
    (snapshot.timestamp_ms < before.last_updated_ms().saturating_sub(APART_MS))
        .then(|| format!("the snapshot {id} is older than the version before it"))
}

/// What a snapshot says of itself: `operation` on a table that had `before`.
pub(crate) fn summary(operation: Operation, before: Amount, added: Amount, removed: Amount) -> Summary {
    let left = |of: fn(&Amount) -> u64| of(&before).saturating_add(of(&added)).saturating_sub(of(&removed));
    let numbers = [
        ("added-data-files", added.files),
        ("added-records", added.rows),
        ("added-files-size", added.bytes),
        ("added-delete-files", added.delete_files),
        ("added-position-deletes", added.deletes),
        ("deleted-data-files", removed.files),
        ("deleted-records", removed.rows),
        ("removed-files-size", removed.bytes),
        ("removed-delete-files", removed.delete_files),
        ("removed-position-deletes", removed.deletes),
        ("total-data-files", left(|one| one.files)),
        ("total-records", left(|one| one.rows)),
        ("total-files-size", left(|one| one.bytes)),
        ("total-delete-files", left(|one| one.delete_files)),
        ("total-position-deletes", left(|one| one.deletes)),
        ("total-equality-deletes", 0),
    ];
    let numbers = numbers.map(|(key, number)| (key.to_owned(), number.to_string()));
    Summary { operation, additional_properties: BTreeMap::from(numbers) }
}

/// A number that a snapshot says of itself: `added-records`.
pub(crate) fn number(snapshot: &Snapshot, key: &str) -> u64 {
    let told = snapshot.summary.as_ref().and_then(|summary| summary.additional_properties.get(key));
    told.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// All that a snapshot has, as it says.
pub(crate) fn total(snapshot: &Snapshot) -> Amount {
    Amount {
        rows: number(snapshot, "total-records"),
        files: number(snapshot, "total-data-files"),
        bytes: number(snapshot, "total-files-size"),
        delete_files: number(snapshot, "total-delete-files"),
        deletes: number(snapshot, "total-position-deletes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(id: i64, parent: Option<i64>, sequence_number: i64) -> Snapshot {
        let added = Amount { rows: 3, files: 1, bytes: 10, ..Amount::default() };
        Snapshot {
            snapshot_id: id,
            parent_snapshot_id: parent,
            sequence_number,
            timestamp_ms: now_ms(),
            manifest_list: format!("s3://b/t/metadata/snap-{id}.avro"),
            summary: Some(summary(Operation::Append, Amount::default(), added, Amount::default())),
            schema_id: Some(0),
            others: Map::new(),
        }
    }

    #[test]
    fn a_version_follows_the_one_before_and_keeps_the_last_snapshots() {
        let mut version = first("s3://b/t").unwrap();
        assert!(is_ours(&version) && version.current_snapshot().is_none());
        for number in 1..=5 {
            let parent = version.current_snapshot_id();
            version = next(&version, format!("v{number}"), snapshot(number, parent, number), 3).unwrap();
        }
        let parent = version.current_snapshot().and_then(|snapshot| snapshot.parent_snapshot_id);
        assert_eq!(parent, Some(4));
        let mut kept: Vec<_> = version.snapshots().map(|one| one.snapshot_id).collect();
        kept.sort_unstable();
        assert_eq!(kept, [3, 4, 5]);
        assert_eq!(
            version.clone().into_fields().snapshot_log.iter().map(|one| one.snapshot_id).collect::<Vec<_>>(),
            [3, 4, 5]
        );
        let before = version.metadata_log().last().map(|before| before.metadata_file.as_str());
        assert_eq!((before, version.last_sequence_number()), (Some("v5"), 5));
        let text = serde_json::to_vec(&version).unwrap();
        assert_eq!(serde_json::from_slice::<TableMetadata>(&text).unwrap(), version);
    }

    #[test]
    fn sums_are_those_of_what_was_and_what_came() {
        let added = Amount { rows: 5, files: 1, bytes: 50, delete_files: 1, deletes: 4 };
        let removed = Amount { rows: 2, files: 3, bytes: 20, ..Amount::default() };
        let before = Amount { rows: 10, files: 4, bytes: 100, delete_files: 2, deletes: 3 };
        let told = summary(Operation::Overwrite, before, added, removed);
        let of = |key: &str| told.additional_properties[key].clone();
        assert_eq!([of("total-records"), of("total-data-files"), of("total-files-size")], ["13", "2", "130"]);
        assert_eq!([of("total-delete-files"), of("total-position-deletes")], ["3", "7"]);
        assert_eq!(of("added-records"), "5");
    }
}
