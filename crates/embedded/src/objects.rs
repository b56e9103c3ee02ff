//! Whole objects: put, get, head, delete and copy.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use s3s::dto::{
    CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopySource, DeleteObjectInput, DeleteObjectOutput,
    DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETag, ETagCondition, Error as KeyError,
    GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput, MetadataDirective, PutObjectInput,
    PutObjectOutput, StorageClass, StreamingBlob, TaggingDirective,
};
use s3s::{S3Request, S3Result, s3_error};

use crate::catalogue::{Attributes, Details};
use crate::conditions::{self, Read, Unconditional};
use crate::receive::{self, Announced, Received};
use crate::store::Store;
use crate::tagging;

/// The content type of objects without one, as in S3.
const DEFAULT_CONTENT_TYPE: &str = "binary/octet-stream";

/// The most keys one request deletes.
const DELETE_LIMIT: usize = 1000;

pub(super) async fn put(store: &Arc<Store>, request: S3Request<PutObjectInput>) -> S3Result<PutObjectOutput> {
    let input = request.input;
    let announced = Announced::read(
        input.content_length,
        input.content_md5.as_deref(),
        &request.headers,
        request.trailing_headers,
    )?;
    let tags = tagging::from_header(input.tagging.as_deref())?;
    // The bucket is looked up again after the body; this first lookup avoids receiving a body for a missing bucket.
    store.read().bucket(&input.bucket)?;
    let Received { staged, md5 } = receive::receive(input.body, announced, store.backend()).await?;
    let attributes = Attributes {
        content_type: input.content_type,
        content_encoding: without_framing(input.content_encoding),
        content_language: input.content_language,
        content_disposition: input.content_disposition,
        cache_control: input.cache_control,
        expires: input.expires,
        storage_class: input.storage_class.map(|class| class.as_str().to_owned()),
        user: input.metadata.unwrap_or_default(),
    };
    let details = Details { etag: hex(&md5), modified: SystemTime::now(), attributes, tags };
    let (bucket, key) = (input.bucket, input.key);
    let (if_match, if_none_match) = match request.extensions.get::<Unconditional>() {
        Some(Unconditional) => (None, None),
        None => (input.if_match, input.if_none_match),
    };
    let home = Arc::clone(store);
    let work = move || {
        home.publish((&bucket, &key), staged, details, |catalogue| {
            let existing = catalogue.bucket(&bucket)?.objects().get(&key);
            conditions::check_write(existing.map(AsRef::as_ref), if_match.as_ref(), if_none_match.as_ref())
        })
    };
    let object = store.backend().run(work).await?;
    Ok(PutObjectOutput { e_tag: Some(etag(&object.details)), ..PutObjectOutput::default() })
}

pub(super) async fn get(store: &Store, input: GetObjectInput) -> S3Result<GetObjectOutput> {
    refuse_versions(input.version_id.as_deref())?;
    if input.part_number.is_some() {
        return Err(s3_error!(NotImplemented, "Objects cannot be read by part number; use a range."));
    }
    let (object, range, body) = store
        .open_object(&input.bucket, &input.key, |object| {
            read_conditions(&input).check_read(&object.details)?;
            chosen_range(input.range.as_ref(), object.size)
        })
        .await?;
    let partial = input.range.is_some();
    let content_range = partial.then(|| format!("bytes {}-{}/{}", range.start, range.end - 1, object.size));
    let attributes = object.details.attributes.clone();
    Ok(GetObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        body: Some(StreamingBlob::from(body)),
        content_length: i64::try_from(range.end - range.start).ok(),
        content_range,
        e_tag: Some(etag(&object.details)),
        last_modified: Some(object.details.modified.into()),
        tag_count: i32::try_from(object.details.tags.len()).ok().filter(|&count| count > 0),
        content_type: Some(attributes.content_type.unwrap_or_else(|| DEFAULT_CONTENT_TYPE.to_owned())),
        storage_class: unusual_class(attributes.storage_class.as_deref()),
        metadata: Some(attributes.user),
        cache_control: attributes.cache_control,
        content_disposition: attributes.content_disposition,
        content_encoding: attributes.content_encoding,
        content_language: attributes.content_language,
        expires: attributes.expires,
        ..GetObjectOutput::default()
    })
}

pub(super) fn head(store: &Store, input: &HeadObjectInput) -> S3Result<HeadObjectOutput> {
    refuse_versions(input.version_id.as_deref())?;
    let object = store.object(&input.bucket, &input.key)?;
    Read {
        if_match: input.if_match.as_ref(),
        if_none_match: input.if_none_match.as_ref(),
        if_modified_since: input.if_modified_since.as_ref(),
        if_unmodified_since: input.if_unmodified_since.as_ref(),
    }
    .check_read(&object.details)?;
    let attributes = object.details.attributes.clone();
    Ok(HeadObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        content_length: i64::try_from(object.size).ok(),
        e_tag: Some(etag(&object.details)),
        last_modified: Some(object.details.modified.into()),
        content_type: Some(attributes.content_type.unwrap_or_else(|| DEFAULT_CONTENT_TYPE.to_owned())),
        storage_class: unusual_class(attributes.storage_class.as_deref()),
        metadata: Some(attributes.user),
        cache_control: attributes.cache_control,
        content_disposition: attributes.content_disposition,
        content_encoding: attributes.content_encoding,
        content_language: attributes.content_language,
        expires: attributes.expires,
        ..HeadObjectOutput::default()
    })
}

pub(super) async fn delete(store: &Arc<Store>, input: DeleteObjectInput) -> S3Result<DeleteObjectOutput> {
    refuse_versions(input.version_id.as_deref())?;
    let home = Arc::clone(store);
    let work = move || {
        home.remove(&input.bucket, &input.key, |existing| match (existing, &input.if_match) {
            (Some(_), Some(_)) => conditions::check_write(existing, input.if_match.as_ref(), None),
            _ => Ok(()),
        })
    };
    store.backend().run(work).await?;
    Ok(DeleteObjectOutput::default())
}

/// Deletes many objects; a key that does not exist counts as deleted, as in S3.
pub(super) async fn delete_many(
    store: &Arc<Store>,
    input: DeleteObjectsInput,
) -> S3Result<DeleteObjectsOutput> {
    if input.delete.objects.is_empty() || input.delete.objects.len() > DELETE_LIMIT {
        return Err(s3_error!(MalformedXML, "One request deletes 1 to {DELETE_LIMIT} keys."));
    }
    store.read().bucket(&input.bucket)?;
    let home = Arc::clone(store);
    let quiet = input.delete.quiet.unwrap_or(false);
    let work = move || {
        let mut output = (Vec::new(), Vec::new());
        for object in input.delete.objects {
            let expected = object.e_tag.map(ETagCondition::ETag);
            let removed = refuse_versions(object.version_id.as_deref()).and_then(|()| {
                home.remove(&input.bucket, &object.key, |existing| match existing {
                    Some(_) => conditions::check_write(existing, expected.as_ref(), None),
                    None => Ok(()),
                })
            });
            match removed {
                Ok(()) => output.0.push(DeletedObject { key: Some(object.key), ..DeletedObject::default() }),
                Err(error) => output.1.push(KeyError {
                    code: Some(error.code().as_str().to_owned()),
                    message: error.message().map(str::to_owned),
                    key: Some(object.key),
                    version_id: object.version_id,
                }),
            }
        }
        Ok(output)
    };
    let (deleted, errors) = store.backend().run(work).await?;
    let deleted = (!quiet).then_some(deleted);
    Ok(DeleteObjectsOutput { deleted, errors: Some(errors), ..DeleteObjectsOutput::default() })
}

pub(super) async fn copy(store: &Arc<Store>, input: CopyObjectInput) -> S3Result<CopyObjectOutput> {
    let (from_bucket, from_key) = source(&input.copy_source)?;
    let replace = input.metadata_directive.as_ref().is_some_and(|d| d.as_str() == MetadataDirective::REPLACE);
    let retag = input.tagging_directive.as_ref().is_some_and(|d| d.as_str() == TaggingDirective::REPLACE);
    if (from_bucket, from_key) == (&input.bucket, &input.key)
        && !replace
        && !retag
        && input.storage_class.is_none()
    {
        return Err(s3_error!(
            InvalidRequest,
            "A copy of an object to itself must change something besides."
        ));
    }
    store.read().bucket(&input.bucket)?;
    let (original, range, body) = store
        .open_object(from_bucket, from_key, |object| {
            copy_conditions(&input).check_copy(&object.details)?;
            Ok(0..object.size)
        })
        .await?;
    let Received { staged, md5 } = receive::copy(body, range.end - range.start, store.backend()).await?;
    let given = tagging::from_header(input.tagging.as_deref())?;
    let details = Details {
        etag: hex(&md5),
        modified: SystemTime::now(),
        tags: if retag { given } else { original.details.tags.clone() },
        attributes: copied_attributes(&input, &original.details.attributes, replace),
    };
    let home = Arc::clone(store);
    let work = move || home.publish((&input.bucket, &input.key), staged, details, |_| Ok(()));
    let object = store.backend().run(work).await?;
    let result = CopyObjectResult {
        e_tag: Some(etag(&object.details)),
        last_modified: Some(object.details.modified.into()),
        ..CopyObjectResult::default()
    };
    Ok(CopyObjectOutput { copy_object_result: Some(result), ..CopyObjectOutput::default() })
}

/// The headers of a copy: those of the original, or those of the request. The storage class is never inherited.
fn copied_attributes(input: &CopyObjectInput, original: &Attributes, replace: bool) -> Attributes {
    let storage_class = input.storage_class.as_ref().map(|class| class.as_str().to_owned());
    if !replace {
        return Attributes { storage_class, ..original.clone() };
    }
    Attributes {
        content_type: input.content_type.clone(),
        content_encoding: without_framing(input.content_encoding.clone()),
        content_language: input.content_language.clone(),
        content_disposition: input.content_disposition.clone(),
        cache_control: input.cache_control.clone(),
        expires: input.expires.clone(),
        storage_class,
        user: input.metadata.clone().unwrap_or_default(),
    }
}

/// Bucket and key of a copy's source.
pub(super) fn source(source: &CopySource) -> S3Result<(&str, &str)> {
    match source {
        CopySource::Bucket { bucket, key, version_id } => {
            refuse_versions(version_id.as_deref())?;
            Ok((bucket, key))
        }
        _ => Err(s3_error!(NotImplemented, "A copy's source is given as bucket and key here.")),
    }
}

fn read_conditions(input: &GetObjectInput) -> Read<'_> {
    Read {
        if_match: input.if_match.as_ref(),
        if_none_match: input.if_none_match.as_ref(),
        if_modified_since: input.if_modified_since.as_ref(),
        if_unmodified_since: input.if_unmodified_since.as_ref(),
    }
}

fn copy_conditions(input: &CopyObjectInput) -> Read<'_> {
    Read {
        if_match: input.copy_source_if_match.as_ref(),
        if_none_match: input.copy_source_if_none_match.as_ref(),
        if_modified_since: input.copy_source_if_modified_since.as_ref(),
        if_unmodified_since: input.copy_source_if_unmodified_since.as_ref(),
    }
}

/// The bytes a request asks for, of a body of this size.
pub(super) fn chosen_range(range: Option<&s3s::dto::Range>, size: u64) -> S3Result<Range<u64>> {
    match range {
        None => Ok(0..size),
        // No range of an empty body holds a byte, not even its last n.
        Some(_) if size == 0 => Err(s3_error!(InvalidRange)),
        Some(range) => Ok(range.check(size)?),
    }
}

/// Refuses a version: nothing here has more than one, which S3 calls `null`.
fn refuse_versions(version: Option<&str>) -> S3Result<()> {
    match version {
        None | Some("null" | "") => Ok(()),
        Some(version) => {
            Err(s3_error!(NoSuchVersion, "There is no version {version}; buckets are not versioned."))
        }
    }
}

/// A content encoding without `aws-chunked`, which says how the request was framed and not what the object is.
pub(super) fn without_framing(encoding: Option<String>) -> Option<String> {
    let encoding = encoding?;
    let kept: Vec<&str> = encoding.split(',').map(str::trim).filter(|name| *name != "aws-chunked").collect();
    if kept.is_empty() { None } else { Some(kept.join(",")) }
}

/// The storage class as a read shows it: S3 says nothing about the standard one.
fn unusual_class(class: Option<&str>) -> Option<StorageClass> {
    class.filter(|class| *class != StorageClass::STANDARD).map(|class| StorageClass::from(class.to_owned()))
}

pub(super) fn etag(details: &Details) -> ETag {
    ETag::Strong(details.etag.clone())
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use s3s::dto::Range as Asked;

    use super::*;

    #[test]
    fn ranges_are_clipped_to_the_body() {
        let range = |text: &str, size| chosen_range(Some(&Asked::parse(text).unwrap()), size).ok();
        assert_eq!(chosen_range(None, 0).ok(), Some(0..0));
        assert_eq!(range("bytes=2-4", 10), Some(2..5));
        assert_eq!(range("bytes=8-99", 10), Some(8..10));
        assert_eq!(range("bytes=-3", 10), Some(7..10));
        assert_eq!(range("bytes=10-", 10), None);
        assert_eq!(range("bytes=-3", 0), None);
    }

    #[test]
    fn framing_is_not_an_encoding() {
        assert_eq!(without_framing(Some("aws-chunked".into())), None);
        assert_eq!(without_framing(Some("aws-chunked, gzip".into())).as_deref(), Some("gzip"));
        assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
    }
}
