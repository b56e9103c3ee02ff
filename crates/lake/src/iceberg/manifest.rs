//! Manifests and their lists as bytes: which data files a snapshot has.
//!
//! The library encodes them into a file of its own making. That file is in memory, so that every request for the real one is sent, and
//! counted, by `files`.

use crate::iceberg::metadata::{Amount, local};
use crate::tables::failure::Failure;
use bytes::Bytes;
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, Manifest, ManifestContentType,
    ManifestFile, ManifestList, ManifestListWriter, ManifestWriterBuilder, Struct, TableMetadata,
    UNASSIGNED_SEQUENCE_NUMBER,
};
use std::collections::HashSet;
use tidemark_measure::fault::Fault;

/// The file in memory that is encoded into.
const BUFFER: &str = "buffer";

/// A file of rows, or of deletes, of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub file: DataFile,
    /// Where it came from; `None` of a file that the snapshot to come adds.
    since: Option<Since>,
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
        Self { file, since: None }
    }
}

/// A Parquet file of rows, or of deletes.
pub(crate) fn data_file(
    content: DataContentType,
    path: String,
    rows: u64,
    bytes: u64,
) -> Result<DataFile, Failure> {
    DataFileBuilder::default()
        .content(content)
        .file_path(path)
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::empty())
        .record_count(rows)
        .file_size_in_bytes(bytes)
        .build()
        .map_err(|error| Failure::new(Fault::Local, error.to_string()))
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

/// A manifest of a snapshot to come, and its bytes; its file is called `name`. All files are of rows, or all of deletes. Those that are
/// `removed` are no longer part of the table from this snapshot on.
pub(crate) async fn write(
    entries: &[Entry],
    removed: &HashSet<String>,
    table: &TableMetadata,
    snapshot: i64,
    name: String,
) -> Result<(ManifestFile, Bytes), Failure> {
    let written = async {
        let memory = FileIO::new_with_memory();
        let (schema, partitions) =
            (table.current_schema().clone(), (**table.default_partition_spec()).clone());
        let output = memory.new_output(BUFFER)?;
        let builder = ManifestWriterBuilder::new(output, Some(snapshot), schema, partitions);
        let mut writer = match content(entries) {
            ManifestContentType::Data => builder.build_v2_data(),
            ManifestContentType::Deletes => builder.build_v2_deletes(),
        };
        for entry in entries {
            let file = entry.file.clone();
            match entry.since {
                None => writer.add_file(file, UNASSIGNED_SEQUENCE_NUMBER)?,
                Some(Since { sequence_number, .. }) if removed.contains(file.file_path()) => {
                    writer.add_delete_file(file, sequence_number, Some(sequence_number))?;
                }
                Some(Since { snapshot, sequence_number }) => {
                    writer.add_existing_file(file, snapshot, sequence_number, Some(sequence_number))?;
                }
            }
        }
        let manifest = writer.write_manifest_file().await?;
        Ok((ManifestFile { manifest_path: name, ..manifest }, memory.new_input(BUFFER)?.read().await?))
    };
    written.await.map_err(|error| local(&error))
}

/// The bytes of the list of a snapshot's manifests. Those that have no sequence number yet get the snapshot's.
pub(crate) async fn write_list(
    manifests: Vec<ManifestFile>,
    snapshot: i64,
    parent: Option<i64>,
    sequence_number: i64,
) -> Result<Bytes, Failure> {
    let written = async {
        let memory = FileIO::new_with_memory();
        let output = memory.new_output(BUFFER)?.writer().await?;
        let mut writer = ManifestListWriter::v2(output, snapshot, parent, sequence_number);
        writer.add_manifests(manifests.into_iter())?;
        writer.close().await?;
        memory.new_input(BUFFER)?.read().await
    };
    written.await.map_err(|error| local(&error))
}

/// The manifests of a list.
pub(crate) fn read_list(bytes: &[u8]) -> Result<Vec<ManifestFile>, Failure> {
    let list = ManifestList::parse_with_version(bytes, FormatVersion::V2).map_err(|error| wrong(&error))?;
    Ok(list.consume_entries().into_iter().collect())
}

/// The data files of a manifest, but for those that it takes away; what they do not say of their commit, the list does.
pub(crate) fn read(bytes: &[u8], listed: &ManifestFile) -> Result<Vec<Entry>, Failure> {
    let (entries, _) = Manifest::parse_avro(bytes).map_err(|error| wrong(&error))?.into_parts();
    let live = entries.into_iter().filter(|entry| entry.is_alive()).map(|entry| {
        let since = Since {
            snapshot: entry.snapshot_id().unwrap_or(listed.added_snapshot_id),
            sequence_number: entry.sequence_number().unwrap_or(listed.sequence_number),
        };
        Entry { file: entry.data_file().clone(), since: Some(since) }
    });
    Ok(live.collect())
}

fn wrong(error: &iceberg::Error) -> Failure {
    Failure::new(Fault::WrongContent, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iceberg::metadata;

    fn added(number: u64) -> Entry {
        let name = format!("s3://b/t/data/{number}.parquet");
        Entry::added(data_file(DataContentType::Data, name, number, 100 + number).unwrap())
    }

    fn none() -> HashSet<String> {
        HashSet::new()
    }

    async fn listed(manifest: ManifestFile, snapshot: i64, sequence_number: i64) -> ManifestFile {
        let bytes = write_list(vec![manifest], snapshot, None, sequence_number).await.unwrap();
        read_list(&bytes).unwrap().remove(0)
    }

    #[tokio::test]
    async fn files_come_back_with_the_number_of_their_commit_however_often_they_are_carried_over() {
        let table = metadata::first("s3://b/t").unwrap();
        let (manifest, bytes) = write(&[added(1), added(2)], &none(), &table, 7, "m1".into()).await.unwrap();
        assert_eq!((manifest.manifest_path.as_str(), manifest.added_rows_count), ("m1", Some(3)));
        assert_eq!(manifest.manifest_length, bytes.len() as i64);
        let manifest = listed(manifest, 7, 4).await;
        assert_eq!((manifest.sequence_number, manifest.min_sequence_number), (4, 4));
        let entries = read(&bytes, &manifest).unwrap();
        assert_eq!(entries.iter().map(|one| &one.file).collect::<Vec<_>>(), [&added(1).file, &added(2).file]);
        assert!(entries.iter().all(|one| one.since == Some(Since { snapshot: 7, sequence_number: 4 })));
        let (merged, bytes) = write(&entries, &none(), &table, 9, "m2".into()).await.unwrap();
        assert_eq!((merged.added_rows_count, merged.existing_rows_count), (Some(0), Some(3)));
        let merged = listed(merged, 9, 6).await;
        assert_eq!((merged.sequence_number, merged.min_sequence_number), (6, 4));
        assert_eq!(read(&bytes, &merged).unwrap(), entries);
        let removed = HashSet::from([added(1).file.file_path().to_owned()]);
        let (left, bytes) = write(&entries, &removed, &table, 11, "m3".into()).await.unwrap();
        assert_eq!((left.deleted_rows_count, left.existing_rows_count), (Some(1), Some(2)));
        let left = listed(left, 11, 7).await;
        assert_eq!(read(&bytes, &left).unwrap(), entries[1..]);
    }

    #[tokio::test]
    async fn files_of_deletes_have_manifests_of_their_own() {
        let table = metadata::first("s3://b/t").unwrap();
        let file = data_file(DataContentType::PositionDeletes, "d".into(), 3, 10).unwrap();
        let entries = [Entry::added(file.clone())];
        let (manifest, bytes) = write(&entries, &none(), &table, 7, "m1".into()).await.unwrap();
        assert_eq!(manifest.content, ManifestContentType::Deletes);
        assert_eq!(read(&bytes, &listed(manifest, 7, 4).await).unwrap()[0].file, file);
        let both = amount([&file, &added(2).file]);
        let expected = Amount { rows: 2, files: 1, bytes: 112, delete_files: 1, deletes: 3 };
        assert_eq!(both, expected);
    }

    #[tokio::test]
    async fn what_is_no_manifest_is_wrong_content() {
        let table = metadata::first("s3://b/t").unwrap();
        let (manifest, _) = write(&[], &none(), &table, 7, "m1".into()).await.unwrap();
        for bytes in [&b""[..], b"Obj\x01", b"PAR1"] {
            assert_eq!(read(bytes, &manifest).unwrap_err().fault, Fault::WrongContent);
            assert_eq!(read_list(bytes).unwrap_err().fault, Fault::WrongContent);
        }
    }
}
