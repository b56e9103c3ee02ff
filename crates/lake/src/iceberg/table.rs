//! A table's metadata in JSON (*Table Metadata* in Iceberg's specification): what of it is written, read and changed here.
//!
//! Others may have written a version of a table, and have put more into it: what is not known here is kept, and written again. What is
//! known must fit together, so that no snapshot is looked for that is not there.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The version of the format that is written.
pub(crate) const FORMAT: u8 = 2;

/// The branch that readers read.
pub(crate) const MAIN: &str = "main";

/// How far the clocks of those who commit may be apart, milliseconds.
pub(crate) const APART_MS: i64 = 60_000;

/// Keys that metadata have in every version of the format, and those that they have since the second.
const ALWAYS: [&str; 3] = ["location", "last-updated-ms", "last-column-id"];
const SINCE_2: [&str; 9] = [
    "table-uuid",
    "last-sequence-number",
    "schemas",
    "current-schema-id",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "sort-orders",
    "default-sort-order-id",
];

/// A version of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct TableMetadata(Fields);

/// What it says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Fields {
    pub format_version: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_uuid: Option<Uuid>,
    pub location: String,
    pub last_sequence_number: i64,
    pub last_updated_ms: i64,
    pub last_column_id: i32,
    pub schemas: Vec<Schema>,
    pub current_schema_id: i32,
    pub partition_specs: Vec<PartitionSpec>,
    pub default_spec_id: i32,
    pub last_partition_id: i32,
    pub sort_orders: Vec<SortOrder>,
    pub default_sort_order_id: i64,
    #[serde(deserialize_with = "or_nothing")]
    pub properties: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_snapshot_id: Option<i64>,
    #[serde(deserialize_with = "or_nothing")]
    pub refs: BTreeMap<String, Reference>,
    #[serde(deserialize_with = "or_nothing")]
    pub snapshots: Vec<Snapshot>,
    #[serde(deserialize_with = "or_nothing")]
    pub snapshot_log: Vec<SnapshotLog>,
    #[serde(deserialize_with = "or_nothing")]
    pub metadata_log: Vec<MetadataLog>,
    #[serde(deserialize_with = "or_nothing", skip_serializing_if = "Vec::is_empty")]
    pub statistics: Vec<Statistics>,
    #[serde(deserialize_with = "or_nothing", skip_serializing_if = "Vec::is_empty")]
    pub partition_statistics: Vec<Statistics>,
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Schema {
    #[serde(default)]
    pub schema_id: i32,
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// How files are parts of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PartitionSpec {
    pub spec_id: i32,
    pub fields: Vec<Value>,
}

/// How rows of files are sorted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SortOrder {
    pub order_id: i64,
    pub fields: Vec<Value>,
}

/// A branch or a tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Reference {
    pub snapshot_id: i64,
    r#type: ReferenceKind,
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Whether a reference moves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ReferenceKind {
    /// With every commit to it.
    Branch,
    /// It does not.
    Tag,
}

/// What a table was at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Snapshot {
    pub snapshot_id: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_snapshot_id: Option<i64>,
    #[serde(default)]
    pub sequence_number: i64,
    pub timestamp_ms: i64,
    #[serde(default)]
    pub manifest_list: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_id: Option<i32>,
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// What a snapshot says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub operation: Operation,
    #[serde(flatten)]
    pub additional_properties: BTreeMap<String, String>,
}

/// What a commit is called in the table's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    /// Files of rows came.
    Append,
    /// Files were written anew, and the rows are the same.
    Replace,
    /// Rows have other values.
    Overwrite,
    /// Rows went.
    Delete,
}

/// When a snapshot became the current one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SnapshotLog {
    pub snapshot_id: i64,
    pub timestamp_ms: i64,
}

/// An earlier version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct MetadataLog {
    pub metadata_file: String,
    pub timestamp_ms: i64,
}

/// What others know of a snapshot's rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Statistics {
    pub snapshot_id: i64,
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// `null` is nothing as well.
fn or_nothing<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(reader: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}

impl<'de> Deserialize<'de> for TableMetadata {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let document: Map<String, Value> = Map::deserialize(reader)?;
        let version = document.get("format-version").and_then(Value::as_u64);
        let since_2: &[&str] = match version {
            Some(1) => &[],
            Some(2 | 3) => &SINCE_2,
            _ => return Err(D::Error::custom("its `format-version` is none of 1, 2 and 3")),
        };
        if let Some(key) = ALWAYS.iter().chain(since_2).find(|key| !document.contains_key(**key)) {
            return Err(D::Error::custom(format!("there is no `{key}`")));
        }
        let fields = Fields::deserialize(Value::Object(document)).map_err(D::Error::custom)?;
        Self::new(fields).map_err(D::Error::custom)
    }
}

impl TableMetadata {
    /// A version that says so; why what it says does not fit together, if it does not.
    pub(crate) fn new(mut fields: Fields) -> Result<Self, String> {
        fields.location.truncate(fields.location.trim_end_matches('/').len());
        // What the first Java writers had instead of none.
        fields.current_snapshot_id = fields.current_snapshot_id.filter(|id| *id != -1);
        if fields.format_version >= FORMAT {
            fields.check_parts()?;
        }
        if let Some(id) = fields.current_snapshot_id {
            fields.refs.entry(MAIN.to_owned()).or_insert_with(|| Reference::branch(id));
        }
        fields.check_snapshots()?;
        fields.check_times()?;
        Ok(Self(fields))
    }

    /// What it says, to be changed.
    pub(crate) fn into_fields(self) -> Fields {
        self.0
    }

    /// The version of its format.
    pub(crate) fn format_version(&self) -> u8 {
        self.0.format_version
    }

    /// Where it says that it is.
    pub(crate) fn location(&self) -> &str {
        &self.0.location
    }

    /// What its makers have put down.
    pub(crate) fn properties(&self) -> &BTreeMap<String, String> {
        &self.0.properties
    }

    /// The columns; `None` only of a table of another version of the format.
    pub(crate) fn current_schema(&self) -> Option<&Schema> {
        self.0.schemas.iter().find(|schema| schema.schema_id == self.0.current_schema_id)
    }

    /// How files are its parts; `None` only if the table has no parts.
    pub(crate) fn default_partition_spec(&self) -> Option<&PartitionSpec> {
        self.0.partition_specs.iter().find(|spec| spec.spec_id == self.0.default_spec_id)
    }

    /// The number of its columns' description.
    pub(crate) fn current_schema_id(&self) -> i32 {
        self.0.current_schema_id
    }

    /// All snapshots that it lists.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        self.0.snapshots.iter()
    }

    /// A snapshot that it lists.
    pub(crate) fn snapshot_by_id(&self, id: i64) -> Option<&Snapshot> {
        self.snapshots().find(|snapshot| snapshot.snapshot_id == id)
    }

    /// The snapshot that it is.
    pub(crate) fn current_snapshot_id(&self) -> Option<i64> {
        self.0.current_snapshot_id
    }

    /// The snapshot that it is.
    pub(crate) fn current_snapshot(&self) -> Option<&Snapshot> {
        self.snapshot_by_id(self.current_snapshot_id()?)
    }

    /// Whether this is the name of a tag.
    pub(crate) fn is_tag(&self, name: &str) -> bool {
        self.0.refs.get(name).is_some_and(|to| to.r#type == ReferenceKind::Tag)
    }

    /// The versions before it.
    pub(crate) fn metadata_log(&self) -> &[MetadataLog] {
        &self.0.metadata_log
    }

    /// The number of its last commit.
    pub(crate) fn last_sequence_number(&self) -> i64 {
        self.0.last_sequence_number
    }

    /// The number of the next commit.
    pub(crate) fn next_sequence_number(&self) -> i64 {
        self.last_sequence_number().saturating_add(1)
    }

    /// When it was made, milliseconds since 1970 UTC.
    pub(crate) fn last_updated_ms(&self) -> i64 {
        self.0.last_updated_ms
    }
}

impl Reference {
    /// A branch whose last snapshot this is.
    pub(crate) fn branch(snapshot_id: i64) -> Self {
        Self { snapshot_id, r#type: ReferenceKind::Branch, others: Map::new() }
    }
}

impl Fields {
    fn lists(&self, snapshot: i64) -> bool {
        self.snapshots.iter().any(|one| one.snapshot_id == snapshot)
    }

    /// Whether what the version is made of is there.
    fn check_parts(&mut self) -> Result<(), String> {
        let schema = self.current_schema_id;
        if !self.schemas.iter().any(|one| one.schema_id == schema) {
            return Err(format!("there is no schema {schema}, which is the current one"));
        }
        let spec = self.default_spec_id;
        if !self.partition_specs.iter().any(|one| one.spec_id == spec) {
            if spec != 0 {
                return Err(format!("there is no partition spec {spec}, which is the default"));
            }
            self.partition_specs.push(PartitionSpec { spec_id: 0, fields: Vec::new() });
        }
        let order = self.default_sort_order_id;
        if self.sort_orders.iter().any(|one| one.order_id == 0 && !one.fields.is_empty()) {
            return Err("the sort order 0, which is none, has fields".to_owned());
        }
        if !self.sort_orders.iter().any(|one| one.order_id == order) {
            if order != 0 {
                return Err(format!("there is no sort order {order}, which is the default"));
            }
            self.sort_orders.push(SortOrder { order_id: 0, fields: Vec::new() });
        }
        let unlisted = |one: &&Snapshot| one.summary.is_none() || one.manifest_list.is_empty();
        if let Some(snapshot) = self.snapshots.iter().find(unlisted) {
            return Err(format!("the snapshot {} has no summary or no list", snapshot.snapshot_id));
        }
        let last = self.last_sequence_number;
        match self.snapshots.iter().find(|one| one.sequence_number > last) {
            None => Ok(()),
            Some(Snapshot { snapshot_id, sequence_number, .. }) => Err(format!(
                "the snapshot {snapshot_id} has the sequence number {sequence_number}, and {last} is the last"
            )),
        }
    }

    /// Whether the snapshots that are named are listed.
    fn check_snapshots(&self) -> Result<(), String> {
        let named = self.refs.iter().map(|(name, to)| (name.as_str(), to.snapshot_id));
        let current = self.current_snapshot_id.map(|id| ("the current one", id));
        if let Some((name, id)) = current.into_iter().chain(named).find(|(_, id)| !self.lists(*id)) {
            return Err(format!("the snapshot {id} ({name}) is not listed"));
        }
        let main = self.refs.get(MAIN).map(|to| to.snapshot_id);
        if main != self.current_snapshot_id {
            return Err("the current snapshot is not the last one of its main branch".to_owned());
        }
        Ok(())
    }

    /// Whether time in its logs does not run backwards, but for what clocks may be apart.
    fn check_times(&self) -> Result<(), String> {
        let snapshots = self.snapshot_log.iter().map(|entry| entry.timestamp_ms);
        let versions = self.metadata_log.iter().map(|entry| entry.timestamp_ms);
        let is_right = is_in_order(snapshots.chain([self.last_updated_ms]))
            && is_in_order(versions.chain([self.last_updated_ms]));
        is_right.then_some(()).ok_or_else(|| "time in its logs runs backwards".to_owned())
    }
}

/// Whether each time is later than the one before it, or about as late.
fn is_in_order(times: impl Iterator<Item = i64>) -> bool {
    let mut before = i64::MIN;
    for time in times {
        if time < before.saturating_sub(APART_MS) {
            return false;
        }
        before = time;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;
    use serde_json::json;

    /// A version with all that others may put into it.
    fn full() -> Value {
        json!({
            "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "s3://b/t/",
            "last-sequence-number": 3, "last-updated-ms": 3_000_000, "last-column-id": 5, "current-schema-id": 1,
            "schemas": [
                {"type": "struct", "schema-id": 0, "fields": []},
                {"type": "struct", "schema-id": 1, "identifier-field-ids": [1],
                 "fields": [{"id": 1, "name": "id", "required": true, "type": "long", "doc": "number"}]},
            ],
            "partition-specs": [{"spec-id": 0, "fields": []}], "default-spec-id": 0, "last-partition-id": 999,
            "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0,
            "properties": {"tidemark.table": "1", "owner": "me"}, "current-snapshot-id": 12,
            "refs": {
                "main": {"snapshot-id": 12, "type": "branch", "min-snapshots-to-keep": 2},
                "kept": {"snapshot-id": 11, "type": "tag", "max-ref-age-ms": 5},
            },
            "snapshots": [
                {"snapshot-id": 11, "sequence-number": 2, "timestamp-ms": 2_000_000, "manifest-list": "s3://b/t/a",
                 "summary": {"operation": "append", "engine": "other"}, "schema-id": 0},
                {"snapshot-id": 12, "parent-snapshot-id": 11, "sequence-number": 3, "timestamp-ms": 3_000_000,
                 "manifest-list": "s3://b/t/b", "summary": {"operation": "delete"}, "key-id": "k"},
            ],
            "snapshot-log": [{"snapshot-id": 11, "timestamp-ms": 2_000_000}, {"snapshot-id": 12, "timestamp-ms": 3_000_000}],
            "metadata-log": [{"metadata-file": "s3://b/t/v1", "timestamp-ms": 2_000_000}],
            "statistics": [{"snapshot-id": 11, "statistics-path": "s3://b/t/s", "blob-metadata": []}],
            "comment": {"of": ["others"]},
        })
    }

    fn read(document: &Value) -> Result<TableMetadata, String> {
        serde_json::from_slice(&serde_json::to_vec(document).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_others_have_put_into_a_version_stays_there() {
        let version = read(&full()).unwrap();
        let mut written = serde_json::to_value(&version).unwrap();
        assert_eq!(version.location(), "s3://b/t");
        written["location"] = "s3://b/t/".into();
        assert_eq!(written, full());
        let columns = version.current_schema().unwrap();
        assert_eq!(serde_json::to_value(columns).unwrap(), full()["schemas"][1]);
    }

    #[test]
    fn versions_of_other_versions_of_the_format_are_read() {
        let first = json!({
            "format-version": 1, "location": "s3://b/t", "last-updated-ms": 0, "last-column-id": 1, "current-snapshot-id": -1,
            "schema": {"type": "struct", "fields": []}, "partition-spec": [], "properties": null, "snapshots": null,
        });
        let first = read(&first).unwrap();
        assert_eq!((first.format_version(), first.current_snapshot_id()), (1, None));
        let mut third = full();
        third["format-version"] = 3.into();
        third["next-row-id"] = 7.into();
        assert_eq!(serde_json::to_value(read(&third).unwrap()).unwrap()["next-row-id"], 7);
    }

    #[test]
    fn what_may_be_left_out_or_null_is_nothing() {
        let mut document = full();
        for key in ["properties", "refs", "snapshot-log", "metadata-log"] {
            document[key] = Value::Null;
        }
        document["sort-orders"] = json!([]);
        document["partition-specs"] = json!([]);
        let version = read(&document).unwrap().into_fields();
        assert_eq!(version.refs["main"], Reference::branch(12), "the current snapshot is its main branch's");
        assert_eq!((version.sort_orders.len(), version.partition_specs.len()), (1, 1));
    }

    #[test]
    fn versions_that_do_not_fit_together_are_refused() {
        let changes: [(&str, Value, &str); 14] = [
            ("/format-version", json!(4), "format-version"),
            ("/format-version", json!("2"), "format-version"),
            ("/current-schema-id", json!(7), "schema 7"),
            ("/default-spec-id", json!(7), "partition spec 7"),
            ("/default-sort-order-id", json!(7), "sort order 7"),
            ("/sort-orders/0/fields", json!([{}]), "sort order 0"),
            ("/current-snapshot-id", json!(13), "13"),
            ("/current-snapshot-id", json!(11), "main branch"),
            ("/current-snapshot-id", json!(null), "main branch"),
            ("/refs/kept/snapshot-id", json!(13), "13"),
            ("/last-sequence-number", json!(2), "sequence number 3"),
            ("/snapshots/1/summary", json!(null), "summary"),
            ("/last-updated-ms", json!(2_000_000), "backwards"),
            ("/table-uuid", json!("mine"), "UUID"),
        ];
        for (place, value, words) in changes {
            let mut document = full();
            *document.pointer_mut(place).unwrap() = value;
            let refused = read(&document).unwrap_err();
            assert!(refused.contains(words), "{place}: {refused}");
        }
        for key in ALWAYS.iter().chain(&SINCE_2) {
            let mut document = full();
            document.as_object_mut().unwrap().remove(*key);
            let refused = read(&document).unwrap_err();
            assert!(refused.contains(key), "{refused}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn whatever_the_bytes_are_what_is_read_can_be_asked(
            changes in vec((any::<Index>(), any::<u8>()), 0..4),
            end in proptest::option::of(any::<Index>()),
        ) {
            let mut bytes = serde_json::to_vec(&full()).unwrap();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if let Some(end) = end {
                bytes.truncate(end.index(bytes.len() + 1));
            }
            if let Ok(version) = serde_json::from_slice::<TableMetadata>(&bytes) {
                prop_assert_eq!(version.current_snapshot().is_some(), version.current_snapshot_id().is_some());
                let again = serde_json::to_vec(&version).unwrap();
                prop_assert_eq!(serde_json::from_slice::<TableMetadata>(&again).unwrap(), version);
            }
        }
    }
}
