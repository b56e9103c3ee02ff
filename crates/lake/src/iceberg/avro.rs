//! Records as Avro files in memory, and what of a foreign file's schema is not followed.
//!
//! A file brings the schema that it was written with, and a schema can make a small file large: a record that contains itself, items
//! that take no bytes, however many there are, lists of lists of lists. No table has such files, so they are refused before a record is
//! read.

use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::schema::{InnerDecimalSchema, Name, UuidSchema};
use apache_avro::types::Value;
use apache_avro::{Reader, Schema, Writer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{HashMap, HashSet};

/// The most bytes of a block of records, or of a value.
const MOST: usize = 64 << 20;

/// Bytes that a file begins with.
const MAGIC: usize = 4;

/// The most levels of a schema's text: manifests have about 12.
const DEEPEST: usize = 40;

/// The most letters of an error: errors quote what they are about.
const WORDS: usize = 300;

/// What a file says of itself, beside its schema.
pub(crate) type Metadata = HashMap<String, Vec<u8>>;

/// Why a file cannot be written, or read.
fn words(error: &apache_avro::Error) -> String {
    error.to_string().chars().take(WORDS).collect()
}

/// Records as a file.
pub(crate) fn encode<T: Serialize>(
    schema: &Schema,
    metadata: &[(&str, String)],
    records: impl IntoIterator<Item = T>,
) -> Result<Vec<u8>, String> {
    let written = || {
        // A file that names no codec has none, but pyiceberg 0.12 takes it for a compressed one.
        let codec = ("avro.codec", "null".to_owned());
        let metadata = metadata.iter().chain([&codec]);
        let metadata = metadata.map(|(key, value)| ((*key).to_owned(), value.clone().into_bytes().into()));
        let writer = Writer::builder().schema(schema).writer(Vec::new());
        let mut writer = writer.user_metadata(metadata.collect()).build()?;
        for record in records {
            writer.append_ser(record)?;
        }
        writer.into_inner()
    };
    written().map_err(|error| words(&error))
}

/// What a file says of itself, and its records as a schema has them. Fields that it has under an earlier name get the one that they have
/// now.
pub(crate) fn decode<T: DeserializeOwned>(
    bytes: &[u8],
    schema: &Schema,
    renamed: &[(&str, &str)],
) -> Result<(Metadata, Vec<T>), String> {
    apache_avro::util::max_allocation_bytes(MOST);
    if depth(&described(bytes).map_err(|error| words(&error))?) > DEEPEST {
        return Err("its schema has parts within parts without end".to_owned());
    }
    let reader = Reader::new(bytes).map_err(|error| words(&error))?;
    least(reader.writer_schema(), &mut HashSet::new())?;
    let metadata = reader.user_metadata().clone();
    let record = |value: Result<Value, apache_avro::Error>| {
        let value = rename(value?, renamed).resolve(schema)?;
        apache_avro::from_value(&value)
    };
    let records: Result<Vec<T>, apache_avro::Error> = reader.map(record).collect();
    Ok((metadata, records.map_err(|error| words(&error))?))
}

/// The schema of a file as it is in it; nothing if there is none.
fn described(file: &[u8]) -> Result<serde_json::Value, apache_avro::Error> {
    let head = Schema::map(Schema::Bytes).build();
    let mut rest = file.get(MAGIC..).unwrap_or_default();
    let head = GenericDatumReader::builder(&head).build()?.read_value(&mut rest)?;
    let schema = match &head {
        Value::Map(metadata) => metadata.get("avro.schema"),
        _ => None,
    };
    Ok(match schema {
        Some(Value::Bytes(text)) => serde_json::from_slice(text).unwrap_or_default(),
        _ => serde_json::Value::Null,
    })
}

/// How many levels a document has. It was read, so they are not many.
fn depth(document: &serde_json::Value) -> usize {
    let below = match document {
        serde_json::Value::Array(parts) => parts.iter().map(depth).max(),
        serde_json::Value::Object(parts) => parts.values().map(depth).max(),
        _ => return 0,
    };
    below.unwrap_or_default() + 1
}

fn rename(record: Value, renamed: &[(&str, &str)]) -> Value {
    let Value::Record(mut fields) = record else { return record };
    for (name, _) in &mut fields {
        if let Some((_, now)) = renamed.iter().find(|(earlier, _)| earlier == name) {
            *name = (*now).to_owned();
        }
    }
    Value::Record(fields)
}

/// How many bytes a value takes at least; why the schema is not followed, if it is not. `plain` are the names that stand for types
/// without parts.
fn least(schema: &Schema, plain: &mut HashSet<Name>) -> Result<usize, String> {
    let mut fixed = |name: &Name, size: usize| {
        plain.insert(name.clone());
        (size <= MOST).then_some(size).ok_or_else(|| format!("values of {size} bytes are not read"))
    };
    match schema {
        Schema::Null => Ok(0),
        Schema::Fixed(of) | Schema::Uuid(UuidSchema::Fixed(of)) | Schema::Duration(of) => {
            fixed(&of.name, of.size)
        }
        Schema::Decimal(of) => match &of.inner {
            InnerDecimalSchema::Fixed(of) => fixed(&of.name, of.size),
            InnerDecimalSchema::Bytes => Ok(1),
        },
        Schema::Enum(of) => {
            plain.insert(of.name.clone());
            Ok(1)
        }
        Schema::Record(record) => {
            let mut sum: usize = 0;
            for field in &record.fields {
                sum = sum.saturating_add(least(&field.schema, plain)?);
            }
            Ok(sum)
        }
        Schema::Array(array) => items(&array.items, plain),
        Schema::Map(map) => items(&map.types, plain),
        Schema::Union(union) => {
            for variant in union.variants() {
                least(variant, plain)?;
            }
            Ok(1)
        }
        Schema::Ref { name } if plain.contains(name) => Ok(0),
        Schema::Ref { name } => Err(format!("the record {name} is in its schema more than once")),
        _ => Ok(1),
    }
}

/// The same of a list of items.
fn items(schema: &Schema, plain: &mut HashSet<Name>) -> Result<usize, String> {
    match least(schema, plain)? {
        0 => Err("its schema has lists of items that take no bytes".to_owned()),
        _ => Ok(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apache_avro::{Codec, DeflateSettings};
    use serde::Deserialize;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Pair {
        number: i64,
        text: Option<String>,
    }

    fn schema() -> Schema {
        let fields = r#"[{"name": "number", "type": "long"}, {"name": "text", "type": ["null", "string"], "default": null}]"#;
        Schema::parse_str(&format!(r#"{{"type": "record", "name": "pair", "fields": {fields}}}"#)).unwrap()
    }

    /// A number as Avro has it.
    fn long(number: i64) -> Vec<u8> {
        let mut left = ((number << 1) ^ (number >> 63)) as u64;
        let mut bytes = Vec::new();
        while left > 0x7f {
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
        bytes
    }

    fn text(text: &[u8]) -> Vec<u8> {
        [&long(text.len() as i64)[..], text].concat()
    }

    /// A file of one block.
    fn file(schema: &str, codec: &str, count: i64, block: &[u8]) -> Vec<u8> {
        let marker = [7; 16];
        let pairs = [(&b"avro.schema"[..], schema.as_bytes()), (b"avro.codec", codec.as_bytes())];
        let pairs = pairs.map(|(key, value)| [text(key), text(value)].concat()).concat();
        let head = [b"Obj\x01", &long(2)[..], &pairs, &long(0), &marker].concat();
        [&head[..], &long(count), &text(block), &marker].concat()
    }

    /// Why the file is not read.
    fn refused(file: &[u8]) -> String {
        decode::<Pair>(file, &schema(), &[]).unwrap_err()
    }

    #[test]
    fn records_come_back_and_earlier_names_are_known() {
        let pairs = [Pair { number: 1, text: None }, Pair { number: -2, text: Some("x".into()) }];
        let bytes = encode(&schema(), &[("who", "me".to_owned())], &pairs).unwrap();
        assert!(bytes.windows(15).any(|part| part == b"avro.codec\x08null"), "it names its codec");
        let (metadata, read) = decode::<Pair>(&bytes, &schema(), &[]).unwrap();
        assert_eq!((&read[..], metadata["who"].as_slice()), (&pairs[..], &b"me"[..]));
        let earlier = r#"{"type": "record", "name": "other", "fields": [{"name": "count", "type": "int"}, {"name": "more", "type": "bytes"}]}"#;
        let file = file(earlier, "null", 1, &[long(5), text(b"?")].concat());
        let (_, read) = decode::<Pair>(&file, &schema(), &[("count", "number")]).unwrap();
        assert_eq!(read, [Pair { number: 5, text: None }], "more is left out, and what is missing is null");
        assert!(refused(&file).contains("number"), "{}", refused(&file));
    }

    #[test]
    fn files_are_read_whatever_they_are_compressed_with() {
        let schema = schema();
        for codec in
            [Codec::Deflate(DeflateSettings::default()), Codec::Snappy, Codec::Zstandard(Default::default())]
        {
            let mut writer = Writer::with_codec(&schema, Vec::new(), codec).unwrap();
            let pairs = vec![Pair { number: 3, text: Some("y".repeat(99)) }; 9];
            for pair in &pairs {
                writer.append_ser(pair).unwrap();
            }
            let bytes = writer.into_inner().unwrap();
            assert_eq!(decode::<Pair>(&bytes, &schema, &[]).unwrap().1, pairs, "{codec:?}");
        }
    }

    #[test]
    fn small_files_that_stand_for_large_ones_are_refused() {
        let inner = |kind: &str| {
            format!(
                r#"{{"type": "record", "name": "pair", "fields": [{{"name": "number", "type": {kind}}}]}}"#
            )
        };
        for (kind, block, words) in [
            // Without an end.
            (r#""pair""#, vec![], "more than once"),
            // So many nulls in a few bytes.
            (r#"{"type": "array", "items": "null"}"#, [long(1 << 40), long(0)].concat(), "take no bytes"),
            (r#"{"type": "map", "values": "null"}"#, [long(1 << 40), long(0)].concat(), "take no bytes"),
            (
                r#"{"type": "array", "items": {"type": "record", "name": "none", "fields": []}}"#,
                [long(1 << 40), long(0)].concat(),
                "take no bytes",
            ),
            (r#"{"type": "fixed", "name": "f", "size": 1152921504606846976}"#, vec![0; 8], "are not read"),
            (
                r#"{"type": "fixed", "name": "f", "size": 1152921504606846976, "logicalType": "decimal", "precision": 4}"#,
                vec![0; 8],
                "are not read",
            ),
            // Twice as much with every field.
            (
                r#"[{"type": "record", "name": "a", "fields": [{"name": "a", "type": "long"}]}, {"type": "array", "items": "a"}]"#,
                vec![0; 8],
                "more than once",
            ),
            (r#"{"type": "array", "items": "long"}"#, [long(1 << 40), long(0)].concat(), "llocat"),
            (r#""string""#, long(1 << 40), "llocat"),
        ] {
            let refused = refused(&file(&inner(kind), "null", 1, &block));
            assert!(refused.contains(words), "{kind}: {refused}");
        }
        let mut bomb = vec![0; MOST + 1];
        Codec::Deflate(DeflateSettings::default()).compress(&mut bomb).unwrap();
        let bomb = refused(&file(&inner(r#""long""#), "deflate", 1, &bomb));
        assert!(bomb.contains("llocat"), "{bomb}");
    }

    #[test]
    fn no_schema_is_so_deep_that_it_ends_the_program() {
        let deep = |depth: usize| {
            let (begin, end) = (r#"{"type": "array", "items": "#.repeat(depth), "}".repeat(depth));
            let kind = format!(r#"{begin}"long"{end}"#);
            format!(
                r#"{{"type": "record", "name": "pair", "fields": [{{"name": "number", "type": {kind}}}]}}"#
            )
        };
        for depth in [1, 30, 60, 120, 1_000, 100_000] {
            let block = [vec![2; depth], vec![0; depth + 1]].concat();
            assert!(!refused(&file(&deep(depth), "null", 1, &block)).is_empty());
        }
    }

    #[test]
    fn errors_do_not_quote_files() {
        let schema =
            r#"{"type": "record", "name": "pair", "fields": [{"name": "number", "type": "string"}]}"#;
        let refused = refused(&file(schema, "null", 1, &text(&[b'x'; 100_000])));
        assert!(refused.chars().count() <= WORDS, "{refused}");
    }
}
