//! Files of deletes: which rows of data files are no longer there, by their places (*Position Delete Files* in Iceberg's specification).

use crate::iceberg::commit::Contents;
use crate::iceberg::files::Files;
use crate::iceberg::rows;
use crate::tables::failure::Failure;
use bytes::Bytes;
use datafusion::arrow::array::{Array as _, AsArray as _, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};
use tidemark_iceberg::commits::TableFile;
use tidemark_measure::fault::Fault;

/// Files that are read at once.
const READERS: usize = 8;

/// The columns, with the numbers that the specification gives them.
static COLUMNS: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let column = |name: &str, kind, number: i32| {
        let number = (PARQUET_FIELD_ID_META_KEY.to_owned(), number.to_string());
        Field::new(name, kind, false).with_metadata([number].into())
    };
    Arc::new(Schema::new(vec![
        column("file_path", DataType::Utf8, 2_147_483_546),
        column("pos", DataType::Int64, 2_147_483_545),
    ]))
});

/// Places of deleted rows, in order, by the names of their files.
pub(crate) type Deleted = HashMap<String, Vec<u64>>;

/// A file that says so; files are in the order of their names, and their rows in that of their places.
pub(crate) fn encode(deleted: &BTreeMap<String, Vec<u64>>) -> Result<Vec<u8>, Failure> {
    let all = deleted.iter().flat_map(|(name, places)| places.iter().map(move |place| (name, *place as i64)));
    let (names, places): (Vec<&String>, Vec<i64>) = all.unzip();
    let columns: Vec<datafusion::arrow::array::ArrayRef> =
        vec![Arc::new(StringArray::from_iter_values(names)), Arc::new(Int64Array::from(places))];
    let batch = RecordBatch::try_new(Arc::clone(&COLUMNS), columns);
    rows::parquet(&batch.map_err(|error| Failure::new(Fault::Local, error.to_string()))?)
}

fn decode(file: Bytes, deleted: &mut Deleted) -> Result<(), Failure> {
    let wrong = |words: &str| Failure::new(Fault::WrongContent, format!("a file of deletes {words}"));
    for batch in ParquetRecordBatchReaderBuilder::try_new(file)?.build()? {
        let batch = batch.map_err(|error| wrong(&format!("cannot be read: {error}")))?;
        let columns = (batch.column_by_name("file_path"), batch.column_by_name("pos"));
        let (names, places) = match columns {
            (Some(names), Some(places)) => {
                (names.as_string_opt::<i32>(), places.as_primitive_opt::<Int64Type>())
            }
            _ => (None, None),
        };
        let (Some(names), Some(places)) = (names, places) else {
            return Err(wrong("does not have the columns file_path and pos"));
        };
        for row in 0..names.len() {
            let place =
                u64::try_from(places.value(row)).map_err(|_| wrong("names a row before the first"))?;
            deleted.entry(names.value(row).to_owned()).or_default().push(place);
        }
    }
    Ok(())
}

/// All rows that are deleted in a version. Each file of deletes is read.
pub(crate) async fn read(files: &Files, contents: &Contents) -> Result<Deleted, Failure> {
    let read = |name: String| async move {
        let path = files.named(&name)?;
        Ok::<_, Failure>((path.clone(), files.read(TableFile::Deletes, &path).await?))
    };
    let reads: Vec<_> = contents.deletes.iter().map(|file| read(file.file_path().to_owned())).collect();
    let all: Vec<_> = stream::iter(reads).buffered(READERS).try_collect().await?;
    let mut deleted = Deleted::new();
    for (path, file) in all {
        decode(file, &mut deleted).map_err(|failure| failure.of(path.as_ref()))?;
    }
    for places in deleted.values_mut() {
        places.sort_unstable();
        places.dedup();
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_by_file() {
        let told = BTreeMap::from([("a".to_owned(), vec![3, 5]), ("b".to_owned(), vec![0])]);
        let mut deleted = Deleted::from([("a".to_owned(), vec![1])]);
        decode(encode(&told).unwrap().into(), &mut deleted).unwrap();
        assert_eq!(deleted, Deleted::from([("a".into(), vec![1, 3, 5]), ("b".into(), vec![0])]));
        let rows = rows::encode(&rows::rows(3, 1, 1, &mut tidemark_measure::rng::Rng::new(1, &[]))).unwrap();
        assert_eq!(decode(rows.into(), &mut deleted).unwrap_err().fault, Fault::WrongContent);
    }
}
