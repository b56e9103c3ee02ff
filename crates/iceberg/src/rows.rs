//! The rows of an append: made of its random bits alone, and encoded as one Parquet file.

use datafusion::arrow::array::{Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::sync::{Arc, LazyLock};
use tidemark_analytics::failure::Failure;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;

/// The most rows of an append: their numbers are in the lower bits of `id`.
pub(crate) const MOST: u32 = 1 << 20;

/// Values of `category`.
const CATEGORIES: u64 = 100;

/// Letters of `note`.
const NOTE: usize = 32;

/// The columns, with the numbers that the table's metadata give them.
static COLUMNS: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let column = |number: u32, name: &str, kind: DataType| {
        let number = (PARQUET_FIELD_ID_META_KEY.to_owned(), number.to_string());
        Field::new(name, kind, false).with_metadata([number].into())
    };
    Arc::new(Schema::new(vec![
        column(1, "id", DataType::Int64),
        column(2, "committer", DataType::Int32),
        column(3, "category", DataType::Int32),
        column(4, "amount", DataType::Int64),
        column(5, "note", DataType::Utf8),
    ]))
});

/// So many rows of a committer. `unique` sets their ids apart from those of all other appends.
pub(crate) fn rows(count: u32, committer: u32, unique: u64, rng: &mut Rng) -> Result<RecordBatch, Failure> {
    let first = unique >> 21 << 20;
    let ids = Int64Array::from_iter_values((0..i64::from(count)).map(|row| first as i64 | row));
    let committers = Int32Array::from_value(i32::try_from(committer).unwrap_or(i32::MAX), count as usize);
    let categories = Int32Array::from_iter_values((0..count).map(|_| rng.below(CATEGORIES) as i32));
    let amounts = Int64Array::from_iter_values((0..count).map(|_| rng.below(1_000_000) as i64));
    let notes = StringArray::from_iter_values((0..count).map(|_| note(rng)));
    let columns: Vec<datafusion::arrow::array::ArrayRef> =
        vec![Arc::new(ids), Arc::new(committers), Arc::new(categories), Arc::new(amounts), Arc::new(notes)];
    RecordBatch::try_new(Arc::clone(&COLUMNS), columns)
        .map_err(|error| Failure::new(Fault::Local, error.to_string()))
}

fn note(rng: &mut Rng) -> String {
    (0..NOTE).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
}

/// Rows as a file.
pub(crate) fn encode(rows: &RecordBatch) -> Result<Vec<u8>, Failure> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by("Tidemark".into())
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties))?;
    writer.write(rows)?;
    Ok(writer.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};

    #[test]
    fn rows_follow_from_the_random_bits_and_columns_have_their_numbers() {
        let make = |unique| rows(100, 3, unique, &mut Rng::new(5, &[])).unwrap();
        assert_eq!(make(9 << 21), make(9 << 21));
        let ids = |unique| make(unique).column(0).to_data();
        assert_ne!(ids(9 << 21), ids(10 << 21));
        assert!(rows(MOST, 0, u64::MAX, &mut Rng::new(5, &[])).is_ok());
        let file = SerializedFileReader::new(Bytes::from(encode(&make(1)).unwrap())).unwrap();
        let footer = file.metadata().file_metadata();
        assert_eq!(footer.num_rows(), 100);
        let columns = footer.schema_descr().root_schema().get_fields();
        let numbers: Vec<_> = columns.iter().map(|column| column.get_basic_info().id()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }
}
