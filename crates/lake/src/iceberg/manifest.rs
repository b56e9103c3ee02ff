//! Manifests and their lists as bytes: which data files a snapshot has.
//!
//! They are encoded in memory, so that every request for a real file is sent, and counted, by `files`.

use crate::iceberg::avro::{self, Metadata};
use crate::iceberg::metadata::{Amount, local};
use crate::iceberg::records::{
    DataContentType, DataFile, LIST, MANIFEST, ManifestContentType, ManifestEntry, ManifestFile, RENAMED,
    Status, UNASSIGNED,
};
use crate::iceberg::table::{FORMAT, PartitionSpec, TableMetadata};
use crate::tables::failure::Failure;
use apache_avro::Schema;
use bytes::Bytes;
use serde_json::Value;
use std::collections::HashSet;
use tidemark_measure::fault::Fault;

/// A file of rows, or of deletes, of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub file: DataFile,
    /// Where it came from; `None` of a file that the snapshot to come adds.
    since: Option<Since>,
    /// Whether it is of a partition.
    is_partitioned: bool,
}

/// The commit that added a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Since {
    snapshot: i64,
    sequence_number: i64,
}

impl Entry {
    /// A file that the snapshot to come adds. It takes its sequence number from its commit, so a manifest can be written before the
    /// version that it becomes part of is known.
    pub(crate) fn added(file: DataFile) -> Self {
        Self { file, since: None, is_partitioned: false }
    }

    /// What a manifest of a snapshot to come has of it.
    fn record(&self, removed: &HashSet<String>, snapshot: i64) -> ManifestEntry {
        let (status, snapshot, number) = match self.since {
            None => (Status::Added, snapshot, None),
            Some(since) if removed.contains(self.file.file_path()) => {
                (Status::Deleted, snapshot, Some(since.sequence_number))
            }
            Some(since) => (Status::Existing, since.snapshot, Some(since.sequence_number)),
        };
        ManifestEntry {
            status,
            snapshot_id: Some(snapshot),
            sequence_number: number,
            file_sequence_number: number,
            data_file: self.file.clone(),
        }
    }
}

/// A Parquet file of rows, or of deletes.
pub(crate) fn data_file(
    content: DataContentType,
    path: String,
    rows: u64,
    bytes: u64,
) -> Result<DataFile, Failure> {
    let number = |number: u64| i64::try_from(number).map_err(|error| local(error.to_string()));
    Ok(DataFile::new(content, path, number(rows)?, number(bytes)?))
}

/// Whether it says which rows of others are deleted.
pub(crate) fn has_deletes(file: &DataFile) -> bool {
    file.content_type() != DataContentType::Data
}

/// All of some files.
pub(crate) fn amount<'a>(files: impl IntoIterator<Item = &'a DataFile>) -> Amount {
    files.into_iter().fold(Amount::default(), |mut sum, file| {
        let (files, rows) = match has_deletes(file) {
            false => (&mut sum.files, &mut sum.rows),
            true => (&mut sum.delete_files, &mut sum.deletes),
        };
        *files += 1;
        *rows = rows.saturating_add(file.record_count());
        sum.bytes = sum.bytes.saturating_add(file.file_size_in_bytes());
        sum
    })
}

/// What a manifest lists: files of rows, or of deletes.
fn content(entries: &[Entry]) -> ManifestContentType {
    match entries.first().is_some_and(|entry| has_deletes(&entry.file)) {
        false => ManifestContentType::Data,
        true => ManifestContentType::Deletes,
    }
}

/// A schema of what is written and read here.
fn schema(of: &'static Result<Schema, String>) -> Result<&'static Schema, Failure> {
    of.as_ref().map_err(|error| local(error.clone()))
}

/// How files are parts of a table, which must have none: its files are not sorted by the values that they would have.
fn whole(table: &TableMetadata) -> Result<&PartitionSpec, Failure> {
    let spec = table.default_partition_spec().filter(|spec| spec.fields.is_empty());
    spec.ok_or_else(|| local("the table has become one of partitions, for which rows are not written"))
}

/// A manifest of a snapshot to come, and its bytes; its file is called `name`. All files are of rows, or all of deletes. Those that are
/// `removed` are no longer part of the table from this snapshot on.
pub(crate) fn write(
    entries: &[Entry],
    removed: &HashSet<String>,
    table: &TableMetadata,
    snapshot: i64,
    name: String,
) -> Result<(ManifestFile, Bytes), Failure> {
    let (spec, content) = (whole(table)?, content(entries));
    let mut manifest = ManifestFile {
        manifest_path: name,
        manifest_length: 0,
        partition_spec_id: spec.spec_id,
        content,
        sequence_number: UNASSIGNED,
        min_sequence_number: UNASSIGNED,
        added_snapshot_id: snapshot,
        added_files_count: 0,
        existing_files_count: 0,
        deleted_files_count: 0,
        added_rows_count: 0,
        existing_rows_count: 0,
        deleted_rows_count: 0,
        partitions: Some(Vec::new()),
        key_metadata: None,
    };
    let mut records = Vec::with_capacity(entries.len());
    for entry in entries {
        let deletes = ManifestContentType::Deletes;
        if entry.is_partitioned || has_deletes(&entry.file) != (content == deletes) {
            let words = format!("{} does not belong into a manifest of the table", entry.file.file_path());
            return Err(local(words));
        }
        let record = entry.record(removed, snapshot);
        let (files, rows) = match record.status {
            Status::Added => (&mut manifest.added_files_count, &mut manifest.added_rows_count),
            Status::Existing => (&mut manifest.existing_files_count, &mut manifest.existing_rows_count),
            Status::Deleted => (&mut manifest.deleted_files_count, &mut manifest.deleted_rows_count),
        };
        *files = files.saturating_add(1);
        *rows = rows.saturating_add_unsigned(entry.file.record_count());
        if let (Status::Existing, Some(number)) = (record.status, record.sequence_number) {
            let least = &mut manifest.min_sequence_number;
            *least = if *least == UNASSIGNED { number } else { number.min(*least) };
        }
        records.push(record);
    }
    let columns = table.current_schema().ok_or_else(|| local("the table has no columns"))?;
    let text = |value: Result<String, serde_json::Error>| value.map_err(|error| local(error.to_string()));
    let metadata = [
        ("schema", text(serde_json::to_string(columns))?),
        ("schema-id", columns.schema_id.to_string()),
        ("partition-spec", text(serde_json::to_string(&spec.fields))?),
        ("partition-spec-id", spec.spec_id.to_string()),
        ("format-version", FORMAT.to_string()),
        ("content", if content == ManifestContentType::Data { "data" } else { "deletes" }.to_owned()),
    ];
    let bytes = avro::encode(schema(&MANIFEST)?, &metadata, records).map_err(local)?;
    manifest.manifest_length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    Ok((manifest, bytes.into()))
}

/// The bytes of the list of a snapshot's manifests. Those that have no sequence number yet get the snapshot's.
pub(crate) fn write_list(
    mut manifests: Vec<ManifestFile>,
    snapshot: i64,
    parent: Option<i64>,
    sequence_number: i64,
) -> Result<Bytes, Failure> {
    for manifest in &mut manifests {
        for number in [&mut manifest.sequence_number, &mut manifest.min_sequence_number] {
            if *number != UNASSIGNED {
                continue;
            }
            if manifest.added_snapshot_id != snapshot {
                let words = format!("the manifest {} has no sequence number", manifest.manifest_path);
                return Err(local(words));
            }
            *number = sequence_number;
        }
    }
    let metadata = [
        ("snapshot-id", snapshot.to_string()),
        ("parent-snapshot-id", parent.map_or_else(|| "null".to_owned(), |parent| parent.to_string())),
        ("sequence-number", sequence_number.to_string()),
        ("format-version", FORMAT.to_string()),
    ];
    avro::encode(schema(&LIST)?, &metadata, manifests).map(Bytes::from).map_err(local)
}

/// The manifests of a list.
pub(crate) fn read_list(bytes: &[u8]) -> Result<Vec<ManifestFile>, Failure> {
    let (_, manifests): (_, Vec<ManifestFile>) =
        avro::decode(bytes, schema(&LIST)?, &RENAMED).map_err(wrong)?;
    match manifests.iter().find(|one| !one.is_sound()) {
        None => Ok(manifests),
        Some(one) => Err(wrong(format!("{} has a negative number of files or rows", one.manifest_path))),
    }
}

/// The data files of a manifest, but for those that it takes away; what they do not say of their commit, the list does.
pub(crate) fn read(bytes: &[u8], listed: &ManifestFile) -> Result<Vec<Entry>, Failure> {
    let (metadata, records): (_, Vec<ManifestEntry>) =
        avro::decode(bytes, schema(&MANIFEST)?, &[]).map_err(wrong)?;
    let is_partitioned = is_partitioned(&metadata).map_err(wrong)?;
    if let Some(one) = records.iter().find(|one| !one.data_file.is_sound()) {
        let words = format!("{} has a negative number of rows or bytes", one.data_file.file_path());
        return Err(wrong(words));
    }
    let live = records.into_iter().filter(|record| record.status != Status::Deleted).map(|record| {
        let since = Since {
            snapshot: record.snapshot_id.unwrap_or(listed.added_snapshot_id),
            sequence_number: record.sequence_number.unwrap_or(listed.sequence_number),
        };
        Entry { file: record.data_file, since: Some(since), is_partitioned }
    });
    Ok(live.collect())
}

/// Whether the files of a manifest are of partitions; why it is no manifest, if it is none.
fn is_partitioned(metadata: &Metadata) -> Result<bool, String> {
    let json = |key: &str| {
        let bytes = metadata.get(key).ok_or_else(|| format!("it has no `{key}`"))?;
        serde_json::from_slice(bytes).map_err(|error| format!("its `{key}` cannot be read: {error}"))
    };
    let version = metadata.get("format-version").map_or(&b"1"[..], Vec::as_slice);
    let content = metadata.get("content").map_or(&b"data"[..], Vec::as_slice);
    if ![&b"1"[..], b"2", b"3"].contains(&version) || ![&b"data"[..], b"deletes"].contains(&content) {
        return Err("its `format-version` or `content` is not known".to_owned());
    }
    match (json("schema")?, json("partition-spec")?) {
        (Value::Object(_), Value::Array(fields)) => Ok(!fields.is_empty()),
        _ => Err("its `schema` or `partition-spec` is none".to_owned()),
    }
}

fn wrong(words: String) -> Failure {
    Failure::new(Fault::WrongContent, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iceberg::metadata;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    fn added(number: u64) -> Entry {
        let name = format!("s3://b/t/data/{number}.parquet");
        Entry::added(data_file(DataContentType::Data, name, number, 100 + number).unwrap())
    }

    fn none() -> HashSet<String> {
        HashSet::new()
    }

    fn listed(manifest: ManifestFile, snapshot: i64, sequence_number: i64) -> ManifestFile {
        let bytes = write_list(vec![manifest], snapshot, None, sequence_number).unwrap();
        read_list(&bytes).unwrap().remove(0)
    }

    #[test]
    fn files_come_back_with_the_number_of_their_commit_however_often_they_are_carried_over() {
        let table = metadata::first("s3://b/t").unwrap();
        let (manifest, bytes) = write(&[added(1), added(2)], &none(), &table, 7, "m1".into()).unwrap();
        assert_eq!((manifest.manifest_path.as_str(), manifest.added_rows_count), ("m1", 3));
        assert_eq!(manifest.manifest_length, bytes.len() as i64);
        let manifest = listed(manifest, 7, 4);
        assert_eq!((manifest.sequence_number, manifest.min_sequence_number), (4, 4));
        let entries = read(&bytes, &manifest).unwrap();
        assert_eq!(entries.iter().map(|one| &one.file).collect::<Vec<_>>(), [&added(1).file, &added(2).file]);
        assert!(entries.iter().all(|one| one.since == Some(Since { snapshot: 7, sequence_number: 4 })));
        let (merged, bytes) = write(&entries, &none(), &table, 9, "m2".into()).unwrap();
        assert_eq!((merged.added_rows_count, merged.existing_rows_count), (0, 3));
        let merged = listed(merged, 9, 6);
        assert_eq!((merged.sequence_number, merged.min_sequence_number), (6, 4));
        assert_eq!(read(&bytes, &merged).unwrap(), entries);
        let removed = HashSet::from([added(1).file.file_path().to_owned()]);
        let (left, bytes) = write(&entries, &removed, &table, 11, "m3".into()).unwrap();
        assert_eq!((left.deleted_rows_count, left.existing_rows_count), (1, 2));
        let left = listed(left, 11, 7);
        assert_eq!(read(&bytes, &left).unwrap(), entries[1..]);
    }

    #[test]
    fn files_of_deletes_have_manifests_of_their_own() {
        let table = metadata::first("s3://b/t").unwrap();
        let file = data_file(DataContentType::PositionDeletes, "d".into(), 3, 10).unwrap();
        let entries = [Entry::added(file.clone())];
        let (manifest, bytes) = write(&entries, &none(), &table, 7, "m1".into()).unwrap();
        assert_eq!(manifest.content, ManifestContentType::Deletes);
        assert_eq!(read(&bytes, &listed(manifest, 7, 4)).unwrap()[0].file, file);
        let both = amount([&file, &added(2).file]);
        let expected = Amount { rows: 2, files: 1, bytes: 112, delete_files: 1, deletes: 3 };
        assert_eq!(both, expected);
    }

    #[test]
    fn what_is_no_manifest_is_wrong_content() {
        let table = metadata::first("s3://b/t").unwrap();
        let (manifest, _) = write(&[], &none(), &table, 7, "m1".into()).unwrap();
        for bytes in [&b""[..], b"Obj\x01", b"PAR1"] {
            assert_eq!(read(bytes, &manifest).unwrap_err().fault, Fault::WrongContent);
            assert_eq!(read_list(bytes).unwrap_err().fault, Fault::WrongContent);
        }
    }

    fn entry(statistics: &serde_json::Value) -> ManifestEntry {
        let mut file = serde_json::json!({
            "content": 0, "file_path": "s3://b/t/data/x.parquet", "file_format": "PARQUET", "partition": {},
            "record_count": 5, "file_size_in_bytes": 50,
        });
        let own = file.as_object_mut().unwrap();
        own.extend(statistics.as_object().unwrap().clone());
        let file = serde_json::from_value(file).unwrap();
        let (status, one) = (Status::Existing, Some(1));
        ManifestEntry {
            status,
            snapshot_id: one,
            sequence_number: one,
            file_sequence_number: one,
            data_file: file,
        }
    }

    /// A manifest, and its bytes, with everything in it that a file may have.
    fn full() -> (ManifestFile, Bytes) {
        let table = metadata::first("s3://b/t").unwrap();
        let statistics = serde_json::json!({
            "column_sizes": [{"key": 1, "value": 40}, {"key": 2, "value": 10}],
            "value_counts": [{"key": 1, "value": 5}], "null_value_counts": [], "nan_value_counts": null,
            "lower_bounds": [{"key": 1, "value": [1, 0, 0, 0, 0, 0, 0, 0]}],
            "upper_bounds": [{"key": 1, "value": [9, 0, 0, 0, 0, 0, 0, 0]}],
            "key_metadata": [1, 2], "split_offsets": [4, 30], "equality_ids": [1], "sort_order_id": 0,
            "referenced_data_file": "s3://b/t/data/y.parquet",
        });
        let since = Some(Since { snapshot: 7, sequence_number: 4 });
        let others = Entry { file: entry(&statistics).data_file, since, is_partitioned: false };
        write(&[others, added(1), added(2)], &none(), &table, 9, "m".into()).unwrap()
    }

    #[test]
    fn what_others_know_of_a_file_is_carried_over() {
        let (manifest, bytes) = full();
        let read = read(&bytes, &listed(manifest, 9, 6)).unwrap();
        let table = metadata::first("s3://b/t").unwrap();
        let (again, bytes) = write(&read, &none(), &table, 10, "n".into()).unwrap();
        assert_eq!(super::read(&bytes, &listed(again, 10, 7)).unwrap(), read);
        let file = serde_json::to_value(&read[0].file).unwrap();
        assert_eq!(file["split_offsets"], serde_json::json!([4, 30]));
        assert_eq!(file["upper_bounds"][0]["value"][0], 9);
        assert_eq!(file["referenced_data_file"], "s3://b/t/data/y.parquet");
    }

    #[test]
    fn fields_have_the_numbers_of_the_specification() {
        let numbers = |schema: &Schema| {
            let text = serde_json::to_string(schema).unwrap();
            let mut found: Vec<i32> = ["\"field-id\":", "\"element-id\":"]
                .iter()
                .flat_map(|key| text.split(key).skip(1))
                .map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap())
                .collect();
            found.sort_unstable();
            (found, text.matches("\"logicalType\":\"map\"").count())
        };
        let list = (500..=519).collect();
        assert_eq!(numbers(LIST.as_ref().unwrap()), (list, 0));
        let entry = (0..=4).chain(100..=104).chain(108..=110).chain(117..=122).chain(125..=138);
        let entry = entry.chain([139, 140, 143]);
        assert_eq!(numbers(MANIFEST.as_ref().unwrap()), (entry.collect(), 6));
    }

    #[test]
    fn what_does_not_belong_together_is_not_written() {
        let table = metadata::first("s3://b/t").unwrap();
        let deletes = Entry::added(data_file(DataContentType::PositionDeletes, "d".into(), 3, 10).unwrap());
        let of_partition = Entry { is_partitioned: true, ..added(2) };
        for other in [deletes, of_partition] {
            let failed = write(&[added(1), other], &none(), &table, 7, "m1".into()).unwrap_err();
            assert_eq!(failed.fault, Fault::Local);
        }
        let mut fields = table.clone().into_fields();
        fields.partition_specs[0].fields.push(
            serde_json::json!({"source-id": 3, "field-id": 1000, "transform": "identity", "name": "c"}),
        );
        let partitioned = TableMetadata::new(fields).unwrap();
        let failed = write(&[added(1)], &none(), &partitioned, 7, "m1".into()).unwrap_err();
        assert!(failed.to_string().contains("partitions"), "{failed}");
        let (manifest, _) = write(&[added(1)], &none(), &table, 7, "m1".into()).unwrap();
        assert_eq!(write_list(vec![manifest], 8, None, 3).unwrap_err().fault, Fault::Local);
        assert!(data_file(DataContentType::Data, "d".into(), u64::MAX, 1).is_err());
    }

    #[test]
    fn numbers_below_nothing_are_wrong_content() {
        let (manifest, _) = full();
        let changes: [fn(&mut ManifestFile); 2] =
            [|one| one.added_files_count = -1, |one| one.deleted_rows_count = -1];
        for change in changes {
            let mut changed = manifest.clone();
            change(&mut changed);
            assert_eq!(
                read_list(&write_list(vec![changed], 9, None, 6).unwrap()).unwrap_err().fault,
                Fault::WrongContent
            );
        }
        let table = metadata::first("s3://b/t").unwrap();
        let file = DataFile::new(DataContentType::Data, "d".into(), -1, 1);
        let (_, bytes) = write(&[Entry::added(file)], &none(), &table, 9, "m".into()).unwrap();
        assert_eq!(read(&bytes, &manifest).unwrap_err().fault, Fault::WrongContent);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn whatever_the_bytes_are_they_are_read_or_refused(
            changes in vec((any::<Index>(), any::<u8>()), 0..6),
            end in proptest::option::of(any::<Index>()),
            more in vec(any::<u8>(), 0..40),
            of in 0..3u8,
        ) {
            let (manifest, entries) = full();
            let mut bytes = match of {
                0 => entries.to_vec(),
                1 => write_list(vec![manifest.clone()], 9, None, 6).unwrap().to_vec(),
                _ => b"Obj\x01".to_vec(),
            };
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if let Some(end) = end {
                bytes.truncate(end.index(bytes.len() + 1));
            }
            bytes.extend(more);
            for failed in [read(&bytes, &manifest).err(), read_list(&bytes).err()].into_iter().flatten() {
                prop_assert_eq!(failed.fault, Fault::WrongContent);
            }
        }
    }
}
