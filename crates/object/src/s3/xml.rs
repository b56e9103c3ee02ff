//! The few XML documents of S3: read leniently (unknown elements are passed over), written by hand.

use crate::job::Retention;
use crate::sigv4::stamp;
use quick_xml::Reader;
use quick_xml::escape::{escape, resolve_predefined_entity, unescape};
use quick_xml::events::Event;

/// An error document, or one entry of a deletion's result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Error {
    /// e.g. `NoSuchKey`.
    pub(crate) code: String,
    /// In the server's words.
    pub(crate) message: String,
}

/// Calls `leaf` with (parent, name, text) of every element that holds text alone; false when the document
/// is not well-formed.
fn each_leaf(document: &[u8], mut leaf: impl FnMut(&str, &str, &str)) -> bool {
    let document = String::from_utf8_lossy(document);
    let mut reader = Reader::from_str(&document);
    let (mut path, mut text) = (Vec::<String>::new(), String::new());
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                path.push(start.local_name().as_ref().to_owned());
                text.clear();
            }
            Ok(Event::End(_)) => {
                let Some(name) = path.pop() else { return false };
                leaf(path.last().map_or("", String::as_str), &name, &text);
                text.clear();
            }
            Ok(Event::Empty(empty)) => {
                leaf(path.last().map_or("", String::as_str), empty.local_name().as_ref(), "");
            }
            Ok(Event::Text(piece)) => text.push_str(&piece),
            Ok(Event::CData(piece)) => text.push_str(&piece),
            Ok(Event::GeneralRef(reference)) => {
                if let Ok(Some(character)) = reference.resolve_char_ref() {
                    text.push(character);
                } else if let Some(known) = resolve_predefined_entity(&reference) {
                    text.push_str(known);
                }
            }
            Ok(Event::Eof) => return path.is_empty(),
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// The error document that a body is, if it is one. One that is cut off counts as far as it goes.
pub(crate) fn error(body: &[u8]) -> Option<Error> {
    let mut error = Error::default();
    each_leaf(body, |parent, name, text| match (parent, name) {
        ("Error", "Code") => error.code = text.to_owned(),
        ("Error", "Message") => error.message = text.to_owned(),
        _ => {}
    });
    (!error.code.is_empty()).then_some(error)
}

/// The text of the first element of a name.
pub(crate) fn text_of(body: &[u8], wanted: &str) -> Option<String> {
    let mut found = None;
    each_leaf(body, |_, name, text| {
        if name == wanted && found.is_none() {
            found = Some(text.to_owned());
        }
    });
    found
}

/// The names on a page of a listing; `None` when it is no well-formed document.
pub(crate) fn keys(body: &[u8]) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    let whole = each_leaf(body, |parent, name, text| {
        if (parent, name) == ("Contents", "Key") {
            keys.push(text.to_owned());
        }
    });
    whole.then_some(keys)
}

/// The names and sizes on a page of a listing; `None` when it is no well-formed document, or lacks a size.
pub(crate) fn objects(body: &[u8]) -> Option<Vec<(String, u64)>> {
    let (mut keys, mut sizes) = (Vec::new(), Vec::new());
    let whole = each_leaf(body, |parent, name, text| match (parent, name) {
        ("Contents", "Key") => keys.push(text.to_owned()),
        ("Contents", "Size") => sizes.extend(text.trim().parse::<u64>()),
        _ => {}
    });
    (whole && keys.len() == sizes.len()).then(|| keys.into_iter().zip(sizes).collect())
}

/// Where the page after this one begins, if there is one: found without reading the names, so that the cost
/// of a listing is the server's.
pub(crate) fn next_page(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let between = |open: &str, close: &str| Some(text.split_once(open)?.1.split_once(close)?.0);
    between("<IsTruncated>", "<").filter(|truncated| *truncated == "true")?;
    let token = between("<NextContinuationToken>", "<")?;
    unescape(token).ok().map(std::borrow::Cow::into_owned)
}

/// (key, upload id) of the uploads that ListMultipartUploads names.
pub(crate) fn uploads(body: &[u8]) -> Vec<(String, String)> {
    let (mut keys, mut ids) = (Vec::new(), Vec::new());
    each_leaf(body, |parent, name, text| match (parent, name) {
        ("Upload", "Key") => keys.push(text.to_owned()),
        ("Upload", "UploadId") => ids.push(text.to_owned()),
        _ => {}
    });
    keys.into_iter().zip(ids).collect()
}

/// A version of an object, or a delete marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// The object.
    pub(crate) key: String,
    /// The version's id; `null` where the bucket keeps none.
    pub(crate) id: String,
}

/// The versions and delete markers on a page of ListObjectVersions, and whether there are more; `None` when it is no such
/// document, or not well-formed.
pub(crate) fn versions(body: &[u8]) -> Option<(Vec<Version>, bool)> {
    let (mut versions, mut key, mut is_listing, mut more) = (Vec::new(), None, false, false);
    let whole = each_leaf(body, |parent, name, text| match (parent, name) {
        // An entry without an id, which cannot be deleted by it, must not lend its name to the next one's.
        ("Version" | "DeleteMarker", "Key") => key = Some(text.to_owned()),
        ("Version" | "DeleteMarker", "VersionId") => {
            versions.extend(key.take().map(|key| Version { key, id: text.to_owned() }));
        }
        ("ListVersionsResult", "IsTruncated") => more = text == "true",
        ("", "ListVersionsResult") => is_listing = true,
        _ => {}
    });
    (whole && is_listing).then_some((versions, more))
}

/// The document that has a bucket keep versions.
pub(crate) fn versioning() -> String {
    "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Status>Enabled</Status>\
     </VersioningConfiguration>"
        .to_owned()
}

/// The document that creates a bucket in a region.
pub(crate) fn location(region: &str) -> String {
    format!(
        "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><LocationConstraint>{}\
         </LocationConstraint></CreateBucketConfiguration>",
        escape(region)
    )
}

/// The document that deletes objects; with a version, that alone.
pub(crate) fn deletion<'a>(keys: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut document = String::from("<Delete><Quiet>true</Quiet>");
    for (key, version) in keys {
        document.push_str("<Object><Key>");
        document.push_str(&escape(key));
        document.push_str("</Key>");
        if let Some(version) = version {
            document.push_str("<VersionId>");
            document.push_str(&escape(version));
            document.push_str("</VersionId>");
        }
        document.push_str("</Object>");
    }
    document.push_str("</Delete>");
    document
}

/// The document that completes a multipart upload of parts with these entity tags, in order.
pub(crate) fn completion(tags: &[String]) -> String {
    let mut document = String::from("<CompleteMultipartUpload>");
    for (number, tag) in (1..).zip(tags) {
        document.push_str(&format!(
            "<Part><PartNumber>{number}</PartNumber><ETag>{}</ETag></Part>",
            escape(tag.as_str())
        ));
    }
    document.push_str("</CompleteMultipartUpload>");
    document
}

/// The document that sets an object's tags to one.
pub(crate) fn tags(value: u64) -> String {
    format!("<Tagging><TagSet><Tag><Key>tidemark</Key><Value>{value}</Value></Tag></TagSet></Tagging>")
}

/// The document that locks an object until a time, in seconds since 1970.
pub(crate) fn retention(mode: Retention, until_s: u64) -> String {
    let [a, b, c, d, e, f, g, h, _, i, j, k, l, m, n, _] = stamp(until_s).map(char::from);
    format!(
        "<Retention xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Mode>{}</Mode><RetainUntilDate>\
         {a}{b}{c}{d}-{e}{f}-{g}{h}T{i}{j}:{k}{l}:{m}{n}Z</RetainUntilDate></Retention>",
        mode.name()
    )
}

/// The document that restores an archived object.
pub(crate) fn restore(days: u32) -> String {
    format!("<RestoreRequest><Days>{days}</Days></RestoreRequest>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_belong_to_their_names() {
        let page = |size: &str| {
            let entry = |key: &str, size: &str| {
                format!("<Contents><Key>{key}</Key><ETag>x</ETag>{size}<Owner><ID>me</ID></Owner></Contents>")
            };
            let all = entry("a &amp; b", "<Size>7</Size>") + &entry("c", size);
            objects(format!("<ListBucketResult>{all}</ListBucketResult>").as_bytes())
        };
        assert_eq!(page("<Size>0</Size>"), Some(vec![("a & b".to_owned(), 7), ("c".to_owned(), 0)]));
        assert_eq!((page(""), page("<Size>many</Size>"), objects(b"<Contents>")), (None, None, None));
    }

    #[test]
    fn listings_are_read() {
        let body = b"<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3\"><Name>b</Name><Prefix/>\
            <IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b==</NextContinuationToken>\
            <Contents><Key>o&lt;1&#252;</Key><Size>1</Size><Owner><ID>x</ID></Owner></Contents>\
            <Contents><Key><![CDATA[o 2]]></Key></Contents><CommonPrefixes><Prefix>p</Prefix></CommonPrefixes>\
            </ListBucketResult>";
        assert_eq!(keys(body), Some(vec!["o<1\u{fc}".into(), "o 2".into()]));
        assert_eq!(next_page(body), Some("a&b==".into()));
        assert_eq!(keys(&body[..200]), None, "cut off");
        let last = b"<ListBucketResult><IsTruncated>false</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>";
        assert_eq!((keys(last), next_page(last)), (Some(vec![]), None));
        let pending = b"<ListMultipartUploadsResult><Upload><Key>k</Key><UploadId>1</UploadId></Upload></ListMultipartUploadsResult>";
        assert_eq!(uploads(pending), [("k".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn a_lock_ends_at_a_date() {
        let document = retention(Retention::Governance, 1_000_000_000);
        assert!(
            document.contains("<Mode>GOVERNANCE</Mode><RetainUntilDate>2001-09-09T01:46:40Z</"),
            "{document}"
        );
    }

    #[test]
    fn versions_and_markers_are_read() {
        let body = b"<ListVersionsResult><IsTruncated>true</IsTruncated><Version><Key>a&amp;b</Key><VersionId>1</VersionId>\
            <Owner><ID>x</ID></Owner></Version><DeleteMarker><Key>a&amp;b</Key><VersionId>2</VersionId></DeleteMarker>\
            </ListVersionsResult>";
        let version = |id: &str| Version { key: "a&b".into(), id: id.into() };
        assert_eq!(versions(body), Some((vec![version("1"), version("2")], true)));
        let lacking = b"<ListVersionsResult><Version><Key>a</Key></Version><Version><Key>b</Key><VersionId>2</VersionId></Version>\
            </ListVersionsResult>";
        let own = Version { key: "b".into(), id: "2".into() };
        assert_eq!(versions(lacking), Some((vec![own], false)), "names keep their own ids");
        assert_eq!(versions(&body[..90]), None, "cut off");
        assert_eq!(versions(b"<ListBucketResult></ListBucketResult>"), None, "another document");
    }

    #[test]
    fn errors_are_told_from_other_documents() {
        let deleted = b"<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code><Message>No</Message></Error></DeleteResult>";
        assert_eq!(error(deleted), Some(Error { code: "AccessDenied".into(), message: "No".into() }));
        assert_eq!(
            error(b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"),
            None
        );
        assert_eq!(
            error(b"<Error><Code>SlowDown</Code><Mess").map(|error| error.code),
            Some("SlowDown".into())
        );
        assert_eq!(error(b"Forbidden"), None);
        assert_eq!(text_of(b"<A><UploadId>u</UploadId></A>", "UploadId"), Some("u".into()));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(keys in prop::collection::vec("\\PC{1,20}", 1..5)) {
            let document = deletion(keys.iter().map(|key| (key.as_str(), Some(key.as_str()))));
            let (mut read, mut ids) = (Vec::new(), Vec::new());
            let whole = each_leaf(document.as_bytes(), |parent, name, text| {
                match (parent, name) {
                    ("Object", "Key") => read.push(text.to_owned()),
                    ("Object", "VersionId") => ids.push(text.to_owned()),
                    _ => {}
                }
            });
            prop_assert!(whole);
            prop_assert_eq!((&read, &ids), (&keys, &keys));
        }

        #[test]
        fn noise_is_read_without_a_panic(noise in "[<>/&;#xA-Za-z0-9 \"=!?\\[\\]-]{0,80}") {
            let noise = noise.as_bytes();
            let _ = (keys(noise), versions(noise), next_page(noise), error(noise), uploads(noise));
        }
    }
}
