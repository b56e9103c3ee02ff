//! A version of a table, and how the next one follows from it.

use crate::tables::failure::Failure;
use iceberg::TableCreation;
use iceberg::spec::{
    FormatVersion, MAIN_BRANCH, NestedField, Operation, PrimitiveType, Schema, Snapshot, Summary,
    TableMetadata, TableMetadataBuilder, Type,
};
use std::collections::HashMap;
use std::sync::Arc;
use tidemark_measure::fault::Fault;

/// The property by which Tidemark knows tables that it made.
const MADE_BY: &str = "tidemark.table";

/// Raised when the columns of the tables change.
const LAYOUT: &str = "1";

/// Columns, numbered from 1.
const COLUMNS: [(&str, PrimitiveType); 5] = [
    ("id", PrimitiveType::Long),
    ("committer", PrimitiveType::Int),
    ("category", PrimitiveType::Int),
    ("amount", PrimitiveType::Long),
    ("note", PrimitiveType::String),
];

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

/// The failure that an error of the library is, of what was made here.
pub(crate) fn local(error: &iceberg::Error) -> Failure {
    Failure::new(Fault::Local, error.to_string())
}

/// The first version of a table at `location`: without rows.
pub(crate) fn first(location: &str) -> Result<TableMetadata, Failure> {
    let field = |(number, (name, kind)): (usize, &(&str, PrimitiveType))| {
        Arc::new(NestedField::required(number as i32 + 1, *name, Type::Primitive(kind.clone())))
    };
    let schema = Schema::builder()
        .with_fields(COLUMNS.iter().enumerate().map(field))
        .build()
        .map_err(|error| local(&error))?;
    let creation = TableCreation::builder()
        .name(String::new())
        .location(location.to_owned())
        .schema(schema)
        .properties([(MADE_BY.to_owned(), LAYOUT.to_owned())])
        .format_version(FormatVersion::V2)
        .build();
    let built = TableMetadataBuilder::from_table_creation(creation).and_then(TableMetadataBuilder::build);
    Ok(built.map_err(|error| local(&error))?.metadata)
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
    let mut known: Vec<_> =
        before.snapshots().map(|one| (one.sequence_number(), one.snapshot_id())).collect();
    known.sort_unstable();
    let expired = (known.len() + 1).saturating_sub(kept.max(1));
    let expired: Vec<i64> = known.into_iter().take(expired).map(|(_, id)| id).collect();
    let next = before.clone().into_builder(Some(file));
    let next = next.set_branch_snapshot(snapshot, MAIN_BRANCH).map_err(|error| local(&error))?;
    Ok(next.remove_snapshots(&expired).build().map_err(|error| local(&error))?.metadata)
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
    Summary { operation, additional_properties: HashMap::from(numbers) }
}

/// A number that a snapshot says of itself: `added-records`.
pub(crate) fn number(snapshot: &Snapshot, key: &str) -> u64 {
    let told = snapshot.summary().additional_properties.get(key);
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
        Snapshot::builder()
            .with_snapshot_id(id)
            .with_parent_snapshot_id(parent)
            .with_sequence_number(sequence_number)
            .with_timestamp_ms(crate::iceberg::commit::now_ms())
            .with_manifest_list(format!("s3://b/t/metadata/snap-{id}.avro"))
            .with_summary(summary(Operation::Append, Amount::default(), added, Amount::default()))
            .with_schema_id(0)
            .build()
    }

    #[test]
    fn a_version_follows_the_one_before_and_keeps_the_last_snapshots() {
        let mut version = first("s3://b/t").unwrap();
        assert!(is_ours(&version) && version.current_snapshot().is_none());
        for number in 1..=5 {
            let parent = version.current_snapshot_id();
            version = next(&version, format!("v{number}"), snapshot(number, parent, number), 3).unwrap();
        }
        let parent = version.current_snapshot().and_then(|snapshot| snapshot.parent_snapshot_id());
        assert_eq!(parent, Some(4));
        let mut kept: Vec<_> = version.snapshots().map(|one| one.snapshot_id()).collect();
        kept.sort_unstable();
        assert_eq!(kept, [3, 4, 5]);
        assert_eq!(version.history().iter().map(|one| one.snapshot_id).collect::<Vec<_>>(), [3, 4, 5]);
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
