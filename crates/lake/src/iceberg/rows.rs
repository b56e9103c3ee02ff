//! Rows of tables, made of random bits alone, and the Parquet files that they are stored in.

use crate::tables::failure::Failure;
use bytes::Bytes;
use datafusion::arrow::array::{Array as _, AsArray, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::sync::{Arc, LazyLock};
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::{self, Rng};

/// Values of `category`.
pub(crate) const CATEGORIES: u64 = 100;

/// Letters of `note`.
const NOTE: usize = 32;

/// The columns, with the numbers that the table's metadata give them.
pub(crate) static COLUMNS: LazyLock<Arc<Schema>> = LazyLock::new(|| {
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

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub id: i64,
    pub committer: i32,
    pub category: i32,
    pub amount: i64,
    pub note: String,
}

impl Row {
    /// The row with this number, its values made of random bits.
    pub(crate) fn new(id: i64, committer: i32, rng: &mut Rng) -> Self {
        let (category, amount) = (rng.below(CATEGORIES) as i32, rng.below(1_000_000) as i64);
        let note = (0..NOTE).map(|_| char::from(b'a' + rng.below(26) as u8)).collect();
        Self { id, committer, category, amount, note }
    }

    /// A number that depends on every value of it.
    pub(crate) fn hash(&self) -> u64 {
        hash(self.id, self.committer, self.category, self.amount, &self.note)
    }
}

fn hash(id: i64, committer: i32, category: i32, amount: i64, note: &str) -> u64 {
    let numbers = [id as u64, committer as u64, category as u64, amount as u64, note.len() as u64];
    note.as_bytes().chunks(8).fold(rng::mix(0, &numbers), |state, part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        rng::mix(state, &[u64::from_le_bytes(word)])
    })
}

/// The sum of the hashes of all rows of a batch, however its columns are encoded.
pub(crate) fn checksum(batch: &RecordBatch) -> Result<u64, Failure> {
    Ok(read(batch)?.iter().map(Row::hash).fold(0, u64::wrapping_add))
}

/// The rows of a batch that has all columns.
fn read(batch: &RecordBatch) -> Result<Vec<Row>, Failure> {
    let plain: Result<Vec<_>, _> = batch
        .columns()
        .iter()
        .zip(COLUMNS.fields())
        .map(|(column, field)| datafusion::arrow::compute::cast(column, field.data_type()))
        .collect();
    let plain = plain.map_err(|error| Failure::new(Fault::WrongContent, error.to_string()))?;
    let [id, committer, category, amount, note] = &plain[..] else {
        let words = format!("rows have {} columns instead of {}", plain.len(), COLUMNS.fields().len());
        return Err(Failure::new(Fault::WrongContent, words));
    };
    let [id, amount] = [id, amount].map(AsArray::as_primitive::<Int64Type>);
    let [committer, category] = [committer, category].map(AsArray::as_primitive::<Int32Type>);
    let note = note.as_string::<i32>();
    let row = |place| Row {
        id: id.value(place),
        committer: committer.value(place),
        category: category.value(place),
        amount: amount.value(place),
        note: note.value(place).to_owned(),
    };
    if plain.iter().any(|column| column.null_count() > 0) {
        return Err(Failure::new(Fault::WrongContent, "rows have null in columns that have none"));
    }
    Ok((0..batch.num_rows()).map(row).collect())
}

/// So many rows of a committer. `unique` sets their ids apart from those of all other appends.
pub(crate) fn rows(count: u32, committer: u32, unique: u64, rng: &mut Rng) -> Vec<Row> {
    let first = (unique >> 21 << 20) as i64;
    let committer = i32::try_from(committer).unwrap_or(i32::MAX);
    (0..i64::from(count)).map(|row| Row::new(first | row, committer, rng)).collect()
}

fn batch(rows: &[Row]) -> Result<RecordBatch, Failure> {
    let columns: Vec<datafusion::arrow::array::ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.id))),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.committer))),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.category))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.amount))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.note))),
    ];
    RecordBatch::try_new(Arc::clone(&COLUMNS), columns)
        .map_err(|error| Failure::new(Fault::Local, error.to_string()))
}

/// Rows as a file.
pub(crate) fn encode(rows: &[Row]) -> Result<Vec<u8>, Failure> {
    parquet(&batch(rows)?)
}

/// A batch as a Parquet file.
pub(crate) fn parquet(batch: &RecordBatch) -> Result<Vec<u8>, Failure> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by("Tidemark".into())
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(batch)?;
    Ok(writer.into_inner()?)
}

/// The rows of a file, each with its place, without those whose places are `deleted`: in order, each once.
pub(crate) fn decode(file: Bytes, deleted: &[u64]) -> Result<Vec<(u64, Row)>, Failure> {
    let mut left = deleted.iter().copied().peekable();
    let mut place = 0;
    let mut rows = Vec::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file)?.build()? {
        let batch = batch.map_err(|error| Failure::new(Fault::WrongContent, error.to_string()))?;
        for row in read(&batch)? {
            if left.next_if_eq(&place).is_none() {
                rows.push((place, row));
            }
            place += 1;
        }
    }
    match left.next() {
        None => Ok(rows),
        Some(beyond) => {
            let words = format!("row {beyond} of a file of {place} rows is said to be deleted");
            Err(Failure::new(Fault::WrongContent, words))
        }
    }
}

/// Which rows of a file to read, given the places of the others: in order, each once.
pub(crate) fn selection(rows: u64, deleted: &[u64]) -> RowSelection {
    let mut next = 0;
    let mut kept = Vec::new();
    for place in deleted.iter().chain([&rows]) {
        if *place > next {
            kept.push(next as usize..*place as usize);
        }
        next = place + 1;
    }
    RowSelection::from_consecutive_ranges(kept.into_iter(), rows as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use tidemark_iceberg::job::ROWS_MOST;

    #[test]
    fn rows_follow_from_the_random_bits_and_columns_have_their_numbers() {
        let make = |unique| rows(100, 3, unique, &mut Rng::new(5, &[]));
        assert_eq!(make(9 << 21), make(9 << 21));
        assert_ne!(make(9 << 21)[0].id, make(10 << 21)[0].id);
        assert!(rows(ROWS_MOST, 0, u64::MAX, &mut Rng::new(5, &[])).iter().all(|row| row.id >= 0));
        let file = SerializedFileReader::new(Bytes::from(encode(&make(1)).unwrap())).unwrap();
        let footer = file.metadata().file_metadata();
        assert_eq!(footer.num_rows(), 100);
        let columns = footer.schema_descr().root_schema().get_fields();
        let numbers: Vec<_> = columns.iter().map(|column| column.get_basic_info().id()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn rows_come_back_without_those_that_are_deleted() {
        let all = rows(10, 1, 1, &mut Rng::new(5, &[]));
        let file = Bytes::from(encode(&all).unwrap());
        let left: Vec<u64> =
            decode(file.clone(), &[0, 4, 5, 9]).unwrap().into_iter().map(|(place, _)| place).collect();
        assert_eq!(left, [1, 2, 3, 6, 7, 8]);
        let whole: Vec<Row> = decode(file.clone(), &[]).unwrap().into_iter().map(|(_, row)| row).collect();
        assert_eq!(whole, all);
        assert_eq!(decode(file, &[10]).unwrap_err().fault, Fault::WrongContent);
        assert_eq!(decode(Bytes::from_static(b"PAR1"), &[]).unwrap_err().fault, Fault::WrongContent);
        for (deleted, kept) in [(&[0, 4, 5, 9][..], 6), (&[], 10), (&[9], 9)] {
            assert_eq!(selection(10, deleted).row_count(), kept);
        }
    }

    #[test]
    fn a_checksum_depends_on_every_value_and_on_no_order() {
        let all = rows(4, 1, 1, &mut Rng::new(5, &[]));
        let of = |rows: &[Row]| checksum(&batch(rows).unwrap()).unwrap();
        let turned: Vec<Row> = all.iter().rev().cloned().collect();
        assert_eq!(of(&all), of(&turned));
        let changes: [fn(&mut Row); 5] = [
            |row| row.id += 1,
            |row| row.committer += 1,
            |row| row.category ^= 1,
            |row| row.amount += 1,
            |row| row.note.replace_range(31..32, "!"),
        ];
        for change in changes {
            let mut other = all.clone();
            change(&mut other[2]);
            assert_ne!(of(&other), of(&all));
        }
    }
}
