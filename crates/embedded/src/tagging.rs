//! Object tags: the `x-amz-tagging` header, the XML form, and the limits of S3.

use std::collections::HashSet;
use std::sync::Arc;

use s3s::dto::{
    DeleteObjectTaggingInput, DeleteObjectTaggingOutput, GetObjectTaggingInput, GetObjectTaggingOutput,
    PutObjectTaggingInput, PutObjectTaggingOutput, Tag as WireTag,
};
use s3s::{S3Result, s3_error};

use crate::catalogue::Tag;
use crate::store::Store;

/// Tags per object, and the longest key and value in characters (S3 user guide, "Categorizing your objects using tags").
const LIMITS: (usize, usize, usize) = (10, 128, 256);

/// Reads the tags of an `x-amz-tagging` header, which are written like a URL's query.
pub(super) fn from_header(header: Option<&str>) -> S3Result<Vec<Tag>> {
    let pairs = url::form_urlencoded::parse(header.unwrap_or_default().as_bytes());
    checked(pairs.map(|(key, value)| Tag { key: key.into_owned(), value: value.into_owned() }).collect())
}

fn checked(tags: Vec<Tag>) -> S3Result<Vec<Tag>> {
    let (count, key, value) = LIMITS;
    if tags.len() > count {
        return Err(s3_error!(InvalidTag, "An object can have up to {count} tags."));
    }
    let mut seen = HashSet::new();
    for tag in &tags {
        if tag.key.is_empty() || tag.key.chars().count() > key || tag.value.chars().count() > value {
            return Err(s3_error!(
                InvalidTag,
                "A tag's key has 1 to {key} characters, its value up to {value}."
            ));
        }
        if !seen.insert(&tag.key) {
            return Err(s3_error!(InvalidTag, "The tag {} is given twice.", tag.key));
        }
    }
    Ok(tags)
}

pub(super) async fn put(
    store: &Arc<Store>,
    input: PutObjectTaggingInput,
) -> S3Result<PutObjectTaggingOutput> {
    let tags = input.tagging.tag_set.into_iter();
    let tags = tags.map(|tag| Tag { key: tag.key.unwrap_or_default(), value: tag.value.unwrap_or_default() });
    retag(store, input.bucket, input.key, checked(tags.collect())?).await?;
    Ok(PutObjectTaggingOutput::default())
}

pub(super) fn get(store: &Store, input: &GetObjectTaggingInput) -> S3Result<GetObjectTaggingOutput> {
    let object = store.object(&input.bucket, &input.key)?;
    let tags = object.details.tags.iter();
    let tag_set =
        tags.map(|tag| WireTag { key: Some(tag.key.clone()), value: Some(tag.value.clone()) }).collect();
    Ok(GetObjectTaggingOutput { tag_set, version_id: None })
}

pub(super) async fn delete(
    store: &Arc<Store>,
    input: DeleteObjectTaggingInput,
) -> S3Result<DeleteObjectTaggingOutput> {
    retag(store, input.bucket, input.key, Vec::new()).await?;
    Ok(DeleteObjectTaggingOutput::default())
}

async fn retag(store: &Arc<Store>, bucket: String, key: String, tags: Vec<Tag>) -> S3Result<()> {
    let home = Arc::clone(store);
    store.backend().run(move || home.retag(&bucket, &key, &tags)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_tags_are_decoded_and_limited() {
        let tags = from_header(Some("a=1&b%20c=d%3De&empty=")).unwrap();
        let pairs: Vec<_> = tags.iter().map(|tag| (tag.key.as_str(), tag.value.as_str())).collect();
        assert_eq!(pairs, [("a", "1"), ("b c", "d=e"), ("empty", "")]);
        assert!(from_header(None).unwrap().is_empty());
        assert!(from_header(Some("a=1&a=2")).is_err());
        assert!(from_header(Some("=1")).is_err());
        let many = (0..11).map(|i| format!("k{i}=v")).collect::<Vec<_>>().join("&");
        assert!(from_header(Some(&many)).is_err());
    }
}
