//! The records of manifests and of their lists, and their Avro schemas (*Manifests* and *Manifest Lists* in Iceberg's specification).
//!
//! Names and numbers of fields are the specification's: readers go by the numbers. Statistics that others have put into a file's record
//! are carried over as they are.

use apache_avro::Schema;
use apache_avro::schema::UnionSchema;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// What a manifest's file has instead of a sequence number before it is listed.
pub(crate) const UNASSIGNED: i64 = -1;

/// What rows are stored in.
const PARQUET: &str = "PARQUET";

/// An enumeration that files have as a number.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $value:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "i32", into = "i32")]
        pub(crate) enum $name {
            $($(#[$of])* $value = $number,)*
        }

        impl From<$name> for i32 {
            fn from(value: $name) -> Self {
                value as Self
            }
        }

        impl TryFrom<i32> for $name {
            type Error = String;

            fn try_from(number: i32) -> Result<Self, String> {
                match number {
                    $($number => Ok(Self::$value),)*
                    _ => Err(format!("{number} is no {}", stringify!($name))),
                }
            }
        }
    };
}

numbered! {
    /// What a file says.
    DataContentType {
        /// Rows.
        #[default]
        Data = 0,
        /// Which rows of other files are deleted, by their places.
        PositionDeletes = 1,
        /// Which rows are deleted, by their values.
        EqualityDeletes = 2,
    }
}

numbered! {
    /// Which files a manifest names.
    ManifestContentType {
        /// Files of rows.
        #[default]
        Data = 0,
        /// Files that say which rows are deleted.
        Deletes = 1,
    }
}

numbered! {
    /// What a manifest's snapshot did with a file.
    Status {
        /// It was there before.
        #[default]
        Existing = 0,
        /// It came.
        Added = 1,
        /// It went.
        Deleted = 2,
    }
}

/// A manifest, as a list of them has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ManifestFile {
    pub manifest_path: String,
    pub manifest_length: i64,
    pub partition_spec_id: i32,
    pub content: ManifestContentType,
    pub sequence_number: i64,
    pub min_sequence_number: i64,
    pub added_snapshot_id: i64,
    pub added_files_count: i32,
    pub existing_files_count: i32,
    pub deleted_files_count: i32,
    pub added_rows_count: i64,
    pub existing_rows_count: i64,
    pub deleted_rows_count: i64,
    pub partitions: Option<Vec<FieldSummary>>,
    pub key_metadata: Option<ByteBuf>,
}

/// The values of a partition field in a manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FieldSummary {
    contains_null: bool,
    contains_nan: Option<bool>,
    lower_bound: Option<ByteBuf>,
    upper_bound: Option<ByteBuf>,
}

/// A file of a table, as a manifest has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ManifestEntry {
    pub status: Status,
    pub snapshot_id: Option<i64>,
    pub sequence_number: Option<i64>,
    pub file_sequence_number: Option<i64>,
    pub data_file: DataFile,
}

/// A file of rows, or of deletes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataFile {
    content: DataContentType,
    file_path: String,
    file_format: String,
    partition: Unpartitioned,
    record_count: i64,
    file_size_in_bytes: i64,
    column_sizes: Option<Vec<Number>>,
    value_counts: Option<Vec<Number>>,
    null_value_counts: Option<Vec<Number>>,
    nan_value_counts: Option<Vec<Number>>,
    lower_bounds: Option<Vec<Bound>>,
    upper_bounds: Option<Vec<Bound>>,
    key_metadata: Option<ByteBuf>,
    split_offsets: Option<Vec<i64>>,
    equality_ids: Option<Vec<i32>>,
    sort_order_id: Option<i32>,
    referenced_data_file: Option<String>,
}

/// The partition of a file in a table that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Unpartitioned {}

/// A number of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Number {
    key: i32,
    value: i64,
}

/// A bound of a column's values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Bound {
    key: i32,
    value: ByteBuf,
}

impl ManifestFile {
    /// Whether none of its numbers is below the least that it can be.
    pub(crate) fn is_sound(&self) -> bool {
        let files = [self.added_files_count, self.existing_files_count, self.deleted_files_count];
        let rows = [self.added_rows_count, self.existing_rows_count, self.deleted_rows_count];
        files.iter().all(|count| *count >= 0) && rows.iter().all(|count| *count >= 0)
    }
}

impl DataFile {
    /// A Parquet file of which no statistics are known. Lists of none are for readers that expect a list (pyiceberg 0.12).
    pub(crate) fn new(content: DataContentType, path: String, records: i64, bytes: i64) -> Self {
        Self {
            content,
            file_path: path,
            file_format: PARQUET.to_owned(),
            record_count: records,
            file_size_in_bytes: bytes,
            column_sizes: Some(Vec::new()),
            value_counts: Some(Vec::new()),
            null_value_counts: Some(Vec::new()),
            nan_value_counts: Some(Vec::new()),
            lower_bounds: Some(Vec::new()),
            upper_bounds: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// What it says.
    pub(crate) fn content_type(&self) -> DataContentType {
        self.content
    }

    /// What the table's files call it.
    pub(crate) fn file_path(&self) -> &str {
        &self.file_path
    }

    /// Rows, or deletes.
    pub(crate) fn record_count(&self) -> u64 {
        self.record_count.unsigned_abs()
    }

    /// Bytes.
    pub(crate) fn file_size_in_bytes(&self) -> u64 {
        self.file_size_in_bytes.unsigned_abs()
    }

    /// Whether none of its numbers is below the least that it can be.
    pub(crate) fn is_sound(&self) -> bool {
        self.record_count >= 0 && self.file_size_in_bytes >= 0
    }
}

/// The schema of lists. What the first version of the format does not have has a default, as those lists have become the second's.
pub(crate) static LIST: LazyLock<Result<Schema, String>> = LazyLock::new(|| {
    let summary = record(
        "r508",
        &[
            field(509, "contains_null", "boolean"),
            optional(518, "contains_nan", "boolean"),
            optional(510, "lower_bound", "bytes"),
            optional(511, "upper_bound", "bytes"),
        ],
    );
    let list = record(
        "manifest_file",
        &[
            field(500, "manifest_path", "string"),
            field(501, "manifest_length", "long"),
            field(502, "partition_spec_id", "int"),
            defaulted(517, "content", "int"),
            defaulted(515, "sequence_number", "long"),
            defaulted(516, "min_sequence_number", "long"),
            field(503, "added_snapshot_id", "long"),
            field(504, "added_files_count", "int"),
            field(505, "existing_files_count", "int"),
            field(506, "deleted_files_count", "int"),
            field(512, "added_rows_count", "long"),
            field(513, "existing_rows_count", "long"),
            field(514, "deleted_rows_count", "long"),
            optional(507, "partitions", list(508, summary)),
            optional(519, "key_metadata", "bytes"),
        ],
    );
    Schema::parse(&list).map_err(|error| error.to_string())
});

/// The names that counts had in lists before.
pub(crate) const RENAMED: [(&str, &str); 3] = [
    ("added_data_files_count", "added_files_count"),
    ("existing_data_files_count", "existing_files_count"),
    ("deleted_data_files_count", "deleted_files_count"),
];

/// The schema of manifests, of a table that has no partitions.
pub(crate) static MANIFEST: LazyLock<Result<Schema, String>> = LazyLock::new(|| {
    let file = record(
        "r2",
        &[
            defaulted(134, "content", "int"),
            field(100, "file_path", "string"),
            field(101, "file_format", "string"),
            field(102, "partition", record("r102", &[])),
            field(103, "record_count", "long"),
            field(104, "file_size_in_bytes", "long"),
            optional(108, "column_sizes", map(117, 118, "long")),
            optional(109, "value_counts", map(119, 120, "long")),
            optional(110, "null_value_counts", map(121, 122, "long")),
            optional(137, "nan_value_counts", map(138, 139, "long")),
            optional(125, "lower_bounds", map(126, 127, "bytes")),
            optional(128, "upper_bounds", map(129, 130, "bytes")),
            optional(131, "key_metadata", "bytes"),
            optional(132, "split_offsets", list(133, "long")),
            optional(135, "equality_ids", list(136, "int")),
            optional(140, "sort_order_id", "int"),
            optional(143, "referenced_data_file", "string"),
        ],
    );
    let entry = record(
        "manifest_entry",
        &[
            field(0, "status", "int"),
            optional(1, "snapshot_id", "long"),
            optional(3, "sequence_number", "long"),
            optional(4, "file_sequence_number", "long"),
            field(2, "data_file", file),
        ],
    );
    let parsed = Schema::parse(&entry).and_then(mark);
    parsed.map_err(|error| error.to_string())
});

fn record(name: &str, fields: &[Value]) -> Value {
    json!({"type": "record", "name": name, "fields": fields})
}

fn field(number: i32, name: &str, kind: impl Into<Value>) -> Value {
    json!({"name": name, "type": kind.into(), "field-id": number})
}

fn defaulted(number: i32, name: &str, kind: &str) -> Value {
    json!({"name": name, "type": kind, "default": 0, "field-id": number})
}

fn optional(number: i32, name: &str, kind: impl Into<Value>) -> Value {
    json!({"name": name, "type": ["null", kind.into()], "default": null, "field-id": number})
}

fn list(number: i32, items: impl Into<Value>) -> Value {
    json!({"type": "array", "items": items.into(), "element-id": number})
}

/// Avro's own maps have texts as keys; this is one by numbers of columns.
fn map(key: i32, value: i32, kind: &str) -> Value {
    let pair = record(&format!("k{key}_v{value}"), &[field(key, "key", "int"), field(value, "value", kind)]);
    json!({"type": "array", "items": pair})
}

/// The same schema, its maps marked as such: what the parser does not know as a logical type it leaves out.
fn mark(schema: Schema) -> Result<Schema, apache_avro::Error> {
    Ok(match schema {
        Schema::Record(mut record) => {
            for field in &mut record.fields {
                field.schema = mark(field.schema.clone())?;
            }
            Schema::Record(record)
        }
        Schema::Union(union) => {
            let variants: Result<_, _> = union.variants().iter().cloned().map(mark).collect();
            Schema::Union(UnionSchema::new(variants?)?)
        }
        Schema::Array(mut array) if matches!(*array.items, Schema::Record(_)) => {
            array.attributes.insert("logicalType".to_owned(), "map".into());
            Schema::Array(array)
        }
        other => other,
    })
}
