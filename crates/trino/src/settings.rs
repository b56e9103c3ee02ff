//! Files of properties, as Trino reads them, and the catalog of tables that lie in a bucket.

use std::fmt::Write as _;

/// The catalog of tables in a bucket, and its connector.
pub const CATALOG: &str = "hive";
/// Catalogs of rows that Trino generates as it reads them, and their connectors.
pub const GENERATORS: [&str; 2] = ["tpch", "tpcds"];

/// Where in the bucket Trino keeps what it knows of the tables.
const METASTORE: &str = "meta";

/// A bucket of an S3 server, addressed by path, and how to sign in to it.
#[derive(Clone, Copy)]
pub struct Bucket<'a> {
    /// The server, such as `http://10.0.0.1:8000`.
    pub endpoint: &'a str,
    /// The region named in signatures.
    pub region: &'a str,
    /// The bucket's name.
    pub name: &'a str,
    /// The access key.
    pub access_key: &'a str,
    /// The secret key.
    pub secret_key: &'a str,
}

/// The catalog of tables in a bucket: they lie there as files, and so does what is known of them. The text has the keys.
pub fn hive(bucket: Bucket<'_>) -> String {
    let metastore = format!("s3://{}/{METASTORE}", bucket.name);
    properties(&[
        ("connector.name", CATALOG),
        ("hive.metastore", "file"),
        ("hive.metastore.catalog.dir", &metastore),
        // Tables whose files somebody else wrote, and may write to.
        ("hive.non-managed-table-writes-enabled", "true"),
        ("hive.security", "allow-all"),
        ("hive.storage-format", "PARQUET"),
        ("fs.native-s3.enabled", "true"),
        ("s3.endpoint", bucket.endpoint),
        ("s3.region", bucket.region),
        ("s3.path-style-access", "true"),
        ("s3.aws-access-key", bucket.access_key),
        ("s3.aws-secret-key", bucket.secret_key),
    ])
}

/// One of the [`GENERATORS`].
pub fn generator(name: &str) -> String {
    properties(&[("connector.name", name)])
}

/// A file of properties, as `java.util.Properties` reads it.
pub fn properties(settings: &[(&str, &str)]) -> String {
    settings.iter().fold(String::new(), |text, (name, value)| text + name + "=" + &escaped(value) + "\n")
}

/// A value of a property: printable ASCII stands for itself, but for the backslash, and a space at the beginning.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for (place, unit) in value.encode_utf16().enumerate() {
        match u8::try_from(unit) {
            Ok(b'\\') => text.push_str("\\\\"),
            Ok(b' ') if place == 0 => text.push_str("\\ "),
            Ok(byte @ b' '..=b'~') => text.push(char::from(byte)),
            _ => _ = write!(text, "\\u{unit:04x}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_ends_its_line() {
        assert_eq!(escaped(" a=b\\c\n#\u{e9}"), "\\ a=b\\\\c\\u000a#\\u00e9");
    }

    #[test]
    fn the_catalog_names_the_bucket_and_its_keys() {
        let endpoint = "http://10.0.0.1:8000";
        let bucket =
            Bucket { endpoint, region: "r", name: "tables", access_key: "A", secret_key: "SECRET\\1" };
        let text = hive(bucket);
        assert!(text.starts_with("connector.name=hive\n"), "{text}");
        assert!(text.contains("hive.metastore.catalog.dir=s3://tables/meta\n"), "{text}");
        assert!(text.contains("s3.endpoint=http://10.0.0.1:8000\n"), "{text}");
        assert!(text.ends_with("s3.aws-secret-key=SECRET\\\\1\n"), "{text}");
    }
}
