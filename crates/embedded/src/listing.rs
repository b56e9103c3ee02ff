//! One page of a bucket's keys: prefix, delimiter, marker and limit, for both versions of the listing call.

use std::ops::Bound;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use s3s::dto::{
    CommonPrefix, ETag, EncodingType, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input,
    ListObjectsV2Output, Object as WireObject, ObjectStorageClass,
};
use s3s::{S3Result, s3_error};

use crate::catalogue::{Object, Objects};
use crate::names;
use crate::store::Store;

/// The most entries S3 puts on a page.
const PAGE: i32 = 1000;

/// Which keys a page shows.
struct Query<'a> {
    prefix: &'a str,
    /// Keys are rolled up to what comes before the first occurrence of this after the prefix.
    delimiter: Option<&'a str>,
    /// The page begins behind this key or rolled-up prefix.
    after: &'a str,
    limit: usize,
}

/// The entries of a page.
#[derive(Default)]
struct Page {
    objects: Vec<(String, Arc<Object>)>,
    prefixes: Vec<String>,
    /// The last entry, when more follow: where the next page goes on.
    next: Option<String>,
}

impl Query<'_> {
    fn page(&self, objects: &Objects) -> Page {
        let mut page = Page::default();
        if self.limit == 0 {
            return page;
        }
        let start =
            if self.after < self.prefix { Bound::Included(self.prefix) } else { Bound::Excluded(self.after) };
        let mut last = "";
        let mut keys = objects.range::<str, _>((start, Bound::Unbounded));
        while let Some((key, object)) = keys.next() {
            if !key.starts_with(self.prefix) {
                break;
            }
            let rolled = self.rolled_up(key);
            // A prefix was shown already when it is the last entry of this page or of the one before.
            if rolled.is_none_or(|rolled| rolled != last && rolled != self.after) {
                if page.objects.len() + page.prefixes.len() == self.limit {
                    page.next = Some(last.to_owned());
                    break;
                }
                last = rolled.unwrap_or(key);
                match rolled {
                    Some(rolled) => page.prefixes.push(rolled.to_owned()),
                    None => page.objects.push((key.clone(), Arc::clone(object))),
                }
            }
            if let Some(rolled) = rolled {
                // Jump over what is rolled up instead of walking through it.
                let end = format!("{rolled}{}", char::MAX);
                if *key <= end {
                    keys = objects.range::<str, _>((Bound::Excluded(end.as_str()), Bound::Unbounded));
                }
            }
        }
        page
    }

    /// The key up to and including its first delimiter behind the prefix.
    fn rolled_up<'k>(&self, key: &'k str) -> Option<&'k str> {
        let delimiter = self.delimiter.filter(|delimiter| !delimiter.is_empty())?;
        let rest = key.get(self.prefix.len()..)?;
        let position = rest.find(delimiter)?;
        key.get(..self.prefix.len() + position + delimiter.len())
    }
}

pub(super) fn list_objects(store: &Store, input: ListObjectsInput) -> S3Result<ListObjectsOutput> {
    let text = Text::of(input.encoding_type.as_ref())?;
    let limit = limit(input.max_keys)?;
    let page = Query {
        prefix: input.prefix.as_deref().unwrap_or_default(),
        delimiter: input.delimiter.as_deref(),
        after: input.marker.as_deref().unwrap_or_default(),
        limit: usize::try_from(limit).unwrap_or_default(),
    }
    .page(store.read().bucket(&input.bucket)?.objects());
    Ok(ListObjectsOutput {
        is_truncated: Some(page.next.is_some()),
        next_marker: page.next.as_deref().map(|next| text.show(next)),
        contents: Some(
            page.objects.into_iter().map(|(key, object)| entry(&text.show(&key), &object)).collect(),
        ),
        common_prefixes: Some(prefixes(&page.prefixes, text)),
        max_keys: Some(limit),
        name: Some(input.bucket),
        prefix: Some(text.show(input.prefix.as_deref().unwrap_or_default())),
        marker: Some(text.show(input.marker.as_deref().unwrap_or_default())),
        delimiter: input.delimiter.as_deref().map(|delimiter| text.show(delimiter)),
        encoding_type: input.encoding_type,
        ..ListObjectsOutput::default()
    })
}

pub(super) fn list_objects_v2(store: &Store, input: ListObjectsV2Input) -> S3Result<ListObjectsV2Output> {
    let text = Text::of(input.encoding_type.as_ref())?;
    let limit = limit(input.max_keys)?;
    let resumed = input.continuation_token.as_deref().map(marker_of).transpose()?;
    let page = Query {
        prefix: input.prefix.as_deref().unwrap_or_default(),
        delimiter: input.delimiter.as_deref(),
        after: resumed.as_deref().or(input.start_after.as_deref()).unwrap_or_default(),
        limit: usize::try_from(limit).unwrap_or_default(),
    }
    .page(store.read().bucket(&input.bucket)?.objects());
    let count = page.objects.len() + page.prefixes.len();
    Ok(ListObjectsV2Output {
        is_truncated: Some(page.next.is_some()),
        next_continuation_token: page.next.map(|next| URL_SAFE_NO_PAD.encode(next)),
        contents: Some(
            page.objects.into_iter().map(|(key, object)| entry(&text.show(&key), &object)).collect(),
        ),
        common_prefixes: Some(prefixes(&page.prefixes, text)),
        key_count: i32::try_from(count).ok(),
        max_keys: Some(limit),
        name: Some(input.bucket),
        prefix: Some(text.show(input.prefix.as_deref().unwrap_or_default())),
        start_after: input.start_after.as_deref().map(|key| text.show(key)),
        delimiter: input.delimiter.as_deref().map(|delimiter| text.show(delimiter)),
        continuation_token: input.continuation_token,
        encoding_type: input.encoding_type,
        ..ListObjectsV2Output::default()
    })
}

fn limit(max_keys: Option<i32>) -> S3Result<i32> {
    match max_keys.unwrap_or(PAGE) {
        negative if negative < 0 => Err(s3_error!(InvalidArgument, "max-keys must not be negative.")),
        limit => Ok(limit.min(PAGE)),
    }
}

/// The key a continuation token stands for.
fn marker_of(token: &str) -> S3Result<String> {
    let decoded = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.ok_or_else(|| s3_error!(InvalidArgument, "The continuation token is not one of this server's."))
}

/// How keys are written in an answer.
#[derive(Clone, Copy)]
enum Text {
    Plain,
    UrlEncoded,
}

impl Text {
    fn of(encoding: Option<&EncodingType>) -> S3Result<Self> {
        match encoding.map(EncodingType::as_str) {
            None => Ok(Self::Plain),
            Some(EncodingType::URL) => Ok(Self::UrlEncoded),
            Some(other) => {
                Err(s3_error!(InvalidArgument, "The encoding-type {other} is unknown; use `url`."))
            }
        }
    }

    fn show(self, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::UrlEncoded => names::url_encoded(text),
        }
    }
}

fn prefixes(prefixes: &[String], text: Text) -> Vec<CommonPrefix> {
    prefixes.iter().map(|prefix| CommonPrefix { prefix: Some(text.show(prefix)) }).collect()
}

fn entry(key: &str, object: &Object) -> WireObject {
    let class = object.details.attributes.storage_class.clone();
    WireObject {
        key: Some(key.to_owned()),
        size: i64::try_from(object.size).ok(),
        e_tag: Some(ETag::Strong(object.details.etag.clone())),
        last_modified: Some(object.details.modified.into()),
        storage_class: Some(ObjectStorageClass::from(
            class.unwrap_or_else(|| ObjectStorageClass::STANDARD.to_owned()),
        )),
        ..WireObject::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use bytes::Bytes;

    use super::*;
    use crate::backend::Content;
    use crate::catalogue::{Attributes, Details};

    fn objects(keys: &[&str]) -> Objects {
        let details = Details {
            etag: String::new(),
            modified: UNIX_EPOCH,
            attributes: Attributes::default(),
            tags: Vec::new(),
        };
        let object = Arc::new(Object { size: 0, details, content: Content::Memory(Bytes::new()) });
        keys.iter().map(|&key| (key.to_owned(), Arc::clone(&object))).collect()
    }

    /// All entries in the order of their pages, and the number of pages.
    fn walk(objects: &Objects, prefix: &str, delimiter: Option<&str>, limit: usize) -> (Vec<String>, usize) {
        let (mut entries, mut after, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let page = Query { prefix, delimiter, after: &after, limit }.page(objects);
            let mut shown: Vec<String> =
                page.objects.into_iter().map(|(key, _)| key).chain(page.prefixes).collect();
            assert!(shown.len() <= limit);
            shown.sort();
            entries.extend(shown);
            pages += 1;
            match page.next {
                Some(next) => after = next,
                None => return (entries, pages),
            }
        }
    }

    #[test]
    fn every_page_size_shows_the_same_entries() {
        let mut beyond = String::from("b/");
        beyond.push(char::MAX);
        beyond.push('x');
        let objects = objects(&["a", "a/1", "a/2", "b/1", "b/2/3", &beyond, "c", "d/e/f"]);
        for limit in 1..=9 {
            assert_eq!(walk(&objects, "", Some("/"), limit).0, ["a", "a/", "b/", "c", "d/"], "limit {limit}");
            assert_eq!(walk(&objects, "b/", Some("/"), limit).0, ["b/1", "b/2/", &beyond], "limit {limit}");
            assert_eq!(walk(&objects, "", None, limit).0.len(), 8, "limit {limit}");
            assert!(walk(&objects, "none", Some("/"), limit).0.is_empty());
        }
        assert_eq!(
            walk(&objects, "", Some("/"), 5).1,
            1,
            "a full page is not truncated when nothing follows"
        );
    }
}
