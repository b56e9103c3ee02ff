//! Manifests and their lists as bytes: which data files a snapshot has.
//!
//! The library encodes them into a file of its own making. That file is in memory, so that every request for the real one is sent, and
//! counted, by `files`.

use crate::metadata::{Amount, local};
use bytes::Bytes;
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, Manifest, ManifestFile,
    ManifestList, ManifestListWriter, ManifestWriterBuilder, Struct, TableMetadata,
    UNASSIGNED_SEQUENCE_NUMBER,
};
use tidemark_analytics::failure::Failure;
use tidemark_measure::fault::Fault;

/// The file in memory that is encoded into.
const BUFFER: &str = "buffer";

/// A data file of a snapshot.
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

/// A Parquet file.
pub(crate) fn data_file(path: String, rows: u64, bytes: u64) -> Result<DataFile, Failure> {
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(path)
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::empty())
        .record_count(rows)
        .file_size_in_bytes(bytes)
        .build()
        .map_err(|error| Failure::new(Fault::Local, error.to_string()))
}

/// All of some data files.
pub(crate) fn amount<'a>(files: impl IntoIterator<Item = &'a DataFile>) -> Amount {
    files.into_iter().fold(Amount::default(), |sum, file| Amount {
        rows: sum.rows.saturating_add(file.record_count()),
        files: sum.files + 1,
        bytes: sum.bytes.saturating_add(file.file_size_in_bytes()),
    })
}

/// A manifest of a snapshot to come, and its bytes; its file is called `name`.
pub(crate) async fn write(
    entries: &[Entry],
    table: &TableMetadata,
    snapshot: i64,
    name: String,
) -> Result<(ManifestFile, Bytes), Failure> {
    let written = async {
        let memory = FileIO::new_with_memory();
        let (schema, partitions) =
            (table.current_schema().clone(), (**table.default_partition_spec()).clone());
        let output = memory.new_output(BUFFER)?;
        let mut writer =
            ManifestWriterBuilder::new(output, Some(snapshot), schema, partitions).build_v2_data();
        for entry in entries {
            let file = entry.file.clone();
            match entry.since {
                None => writer.add_file(file, UNASSIGNED_SEQUENCE_NUMBER)?,
                Some(Since { snapshot, sequence_number }) => {
                    writer.add_existing_file(file, snapshot, sequence_number, Some(sequence_number))?;
                }
            }
        }
        let manifest = writer.write_manifest_file().await?;
        Ok((ManifestFile { manifest_path: name, ..manifest }, memory.new_input(BUFFER)?.read().await?))
    };
    written.await.map_err(local)
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
    written.await.map_err(local)
}

/// The manifests of a list.
pub(crate) fn read_list(bytes: &[u8]) -> Result<Vec<ManifestFile>, Failure> {
    let list = ManifestList::parse_with_version(bytes, FormatVersion::V2).map_err(wrong)?;
    Ok(list.consume_entries().into_iter().collect())
}

/// The data files of a manifest, but for those that it takes away; what they do not say of their commit, the list does.
pub(crate) fn read(bytes: &[u8], listed: &ManifestFile) -> Result<Vec<Entry>, Failure> {
    let (entries, _) = Manifest::parse_avro(bytes).map_err(wrong)?.into_parts();
    let live = entries.into_iter().filter(|entry| entry.is_alive()).map(|entry| {
        let since = Since {
            snapshot: entry.snapshot_id().unwrap_or(listed.added_snapshot_id),
            sequence_number: entry.sequence_number().unwrap_or(listed.sequence_number),
        };
        Entry { file: entry.data_file().clone(), since: Some(since) }
    });
    Ok(live.collect())
}

fn wrong(error: iceberg::Error) -> Failure {
    Failure::new(Fault::WrongContent, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata;

    fn added(number: u64) -> Entry {
        Entry::added(data_file(format!("s3://b/t/data/{number}.parquet"), number, 100 + number).unwrap())
    }

    async fn listed(manifest: ManifestFile, snapshot: i64, sequence_number: i64) -> ManifestFile {
        let bytes = write_list(vec![manifest], snapshot, None, sequence_number).await.unwrap();
        read_list(&bytes).unwrap().remove(0)
    }

    #[tokio::test]
    async fn files_come_back_with_the_number_of_their_commit_however_often_they_are_carried_over() {
        let table = metadata::first("s3://b/t").unwrap();
        let (manifest, bytes) = write(&[added(1), added(2)], &table, 7, "m1".into()).await.unwrap();
        assert_eq!((manifest.manifest_path.as_str(), manifest.added_rows_count), ("m1", Some(3)));
        assert_eq!(manifest.manifest_length, bytes.len() as i64);
        let manifest = listed(manifest, 7, 4).await;
        assert_eq!((manifest.sequence_number, manifest.min_sequence_number), (4, 4));
        let entries = read(&bytes, &manifest).unwrap();
        assert_eq!(entries.iter().map(|one| &one.file).collect::<Vec<_>>(), [&added(1).file, &added(2).file]);
        assert!(entries.iter().all(|one| one.since == Some(Since { snapshot: 7, sequence_number: 4 })));
        let (merged, bytes) = write(&entries, &table, 9, "m2".into()).await.unwrap();
        assert_eq!((merged.added_rows_count, merged.existing_rows_count), (Some(0), Some(3)));
        let merged = listed(merged, 9, 6).await;
        assert_eq!((merged.sequence_number, merged.min_sequence_number), (6, 4));
        assert_eq!(read(&bytes, &merged).unwrap(), entries);
    }

    #[tokio::test]
    async fn what_is_no_manifest_is_wrong_content() {
        let table = metadata::first("s3://b/t").unwrap();
        let (manifest, _) = write(&[], &table, 7, "m1".into()).await.unwrap();
        for bytes in [&b""[..], b"Obj\x01", b"PAR1"] {
            assert_eq!(read(bytes, &manifest).unwrap_err().fault, Fault::WrongContent);
            assert_eq!(read_list(bytes).unwrap_err().fault, Fault::WrongContent);
        }
    }
}
