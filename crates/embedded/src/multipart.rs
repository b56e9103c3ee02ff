//! Multipart uploads: begin, parts, complete, abort, list.

use std::sync::Arc;
use std::time::SystemTime;

use md5::{Digest as _, Md5};
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CompletedPart, CopyPartResult, CreateMultipartUploadInput,
    CreateMultipartUploadOutput, ETag, ListMultipartUploadsInput, ListMultipartUploadsOutput, ListPartsInput,
    ListPartsOutput, MultipartUpload, Part as WirePart, Range, StorageClass, UploadPartCopyInput,
    UploadPartCopyOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{S3Error, S3Request, S3Result, s3_error};

use crate::backend::{Staged, apart};
use crate::catalogue::{Attributes, Details, Part, Upload};
use crate::conditions;
use crate::objects::{self, etag, hex};
use crate::receive::{self, Announced, Received};
use crate::store::Store;
use crate::tagging;

/// The highest part number.
const LAST_PART: i32 = 10_000;

/// The most parts on one page of a listing.
const PAGE: i32 = 1000;

pub(super) fn begin(
    store: &Store,
    input: CreateMultipartUploadInput,
) -> S3Result<CreateMultipartUploadOutput> {
    let upload = Upload {
        bucket: input.bucket.clone(),
        key: input.key.clone(),
        started: SystemTime::now(),
        tags: tagging::from_header(input.tagging.as_deref())?,
        parts: std::collections::BTreeMap::new(),
        attributes: Attributes {
            content_type: input.content_type,
            content_encoding: objects::without_framing(input.content_encoding),
            content_language: input.content_language,
            content_disposition: input.content_disposition,
            cache_control: input.cache_control,
            expires: input.expires,
            storage_class: input.storage_class.map(|class| class.as_str().to_owned()),
            user: input.metadata.unwrap_or_default(),
        },
    };
    let id = store.upload_id();
    let mut catalogue = store.write();
    catalogue.bucket(&input.bucket)?;
    catalogue.uploads.insert(id.clone(), upload);
    Ok(CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(id),
        ..CreateMultipartUploadOutput::default()
    })
}

pub(super) async fn upload_part(
    store: &Arc<Store>,
    request: S3Request<UploadPartInput>,
) -> S3Result<UploadPartOutput> {
    let input = request.input;
    let announced = Announced::read(
        input.content_length,
        input.content_md5.as_deref(),
        &request.headers,
        request.trailing_headers,
    )?;
    check_number(input.part_number)?;
    store.read().upload(&input.upload_id, &input.bucket, &input.key)?;
    let received = receive::receive(input.body, announced, store.backend()).await?;
    let part = keep(store, (input.upload_id, input.bucket, input.key), input.part_number, received).await?;
    Ok(UploadPartOutput { e_tag: Some(part_etag(&part)), ..UploadPartOutput::default() })
}

pub(super) async fn copy_part(
    store: &Arc<Store>,
    input: UploadPartCopyInput,
) -> S3Result<UploadPartCopyOutput> {
    let range = input.copy_source_range.as_deref().map(Range::parse).transpose();
    let range = range
        .map_err(|_| s3_error!(InvalidArgument, "x-amz-copy-source-range is not `bytes=first-last`."))?;
    check_number(input.part_number)?;
    store.read().upload(&input.upload_id, &input.bucket, &input.key)?;
    let (bucket, key) = objects::source(&input.copy_source)?;
    let conditions = conditions::Read {
        if_match: input.copy_source_if_match.as_ref(),
        if_none_match: input.copy_source_if_none_match.as_ref(),
        if_modified_since: input.copy_source_if_modified_since.as_ref(),
        if_unmodified_since: input.copy_source_if_unmodified_since.as_ref(),
    };
    let (_, range, body) = store
        .open_object(bucket, key, |object| {
            conditions.check_copy(&object.details)?;
            objects::chosen_range(range.as_ref(), object.size)
        })
        .await?;
    let received = receive::copy(body, range.end - range.start, store.backend()).await?;
    let part = keep(store, (input.upload_id, input.bucket, input.key), input.part_number, received).await?;
    let result = CopyPartResult {
        e_tag: Some(part_etag(&part)),
        last_modified: Some(part.modified.into()),
        ..CopyPartResult::default()
    };
    Ok(UploadPartCopyOutput { copy_part_result: Some(result), ..UploadPartCopyOutput::default() })
}

/// Adds a part to its upload, in place of an earlier one with its number.
async fn keep(
    store: &Arc<Store>,
    (id, bucket, key): (String, String, String),
    number: i32,
    received: Received,
) -> S3Result<Arc<Part>> {
    let home = Arc::clone(store);
    let work = move || {
        let Received { staged, md5 } = received;
        let size = staged.size();
        let staged = staged.spill().map_err(S3Error::internal_error)?;
        let part = Arc::new(Part { md5, size, modified: SystemTime::now(), staged });
        home.write().upload_mut(&id, &bucket, &key)?.parts.insert(number, Arc::clone(&part));
        Ok(part)
    };
    store.backend().run(work).await
}

pub(super) async fn complete(
    store: &Arc<Store>,
    input: CompleteMultipartUploadInput,
    minimum_part_bytes: u64,
) -> S3Result<CompleteMultipartUploadOutput> {
    let (id, bucket, key) = (input.upload_id, input.bucket, input.key);
    let asked = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
    let (parts, attributes, tags) = {
        let catalogue = store.read();
        let upload = catalogue.upload(&id, &bucket, &key)?;
        (chosen_parts(upload, &asked, minimum_part_bytes)?, upload.attributes.clone(), upload.tags.clone())
    };
    let details = Details { etag: joined_etag(&parts), modified: SystemTime::now(), attributes, tags };
    let location = format!("/{bucket}/{key}");
    let (if_match, if_none_match) = (input.if_match, input.if_none_match);
    let (home, name) = (Arc::clone(store), (bucket.clone(), key.clone()));
    let work = move || {
        let staged: Staged = home.backend().join(&parts).map_err(S3Error::internal_error)?;
        home.publish((&name.0, &name.1), staged, details, |catalogue| {
            // The upload ends in the same step in which the object appears; another request may have ended it.
            catalogue.upload(&id, &name.0, &name.1)?;
            let existing = catalogue.bucket(&name.0)?.objects().get(&name.1);
            conditions::check_write(existing.map(AsRef::as_ref), if_match.as_ref(), if_none_match.as_ref())?;
            catalogue.uploads.remove(&id);
            Ok(())
        })
    };
    // On another thread for every backend: joining copies the whole body, which would delay other requests.
    let object = apart(work).await?;
    Ok(CompleteMultipartUploadOutput {
        bucket: Some(bucket),
        key: Some(key),
        location: Some(location),
        e_tag: Some(etag(&object.details)),
        ..CompleteMultipartUploadOutput::default()
    })
}

/// The parts that a client lists, if they match those sent, in ascending order and large enough.
fn chosen_parts(upload: &Upload, asked: &[CompletedPart], minimum_bytes: u64) -> S3Result<Vec<Arc<Part>>> {
    if asked.is_empty() {
        return Err(s3_error!(MalformedXML, "List at least one part."));
    }
    let mut chosen: Vec<Arc<Part>> = Vec::with_capacity(asked.len());
    let mut last = 0;
    for wanted in asked {
        let number = wanted.part_number.unwrap_or_default();
        if number <= last {
            return Err(s3_error!(InvalidPartOrder, "Part {number} is listed after part {last}."));
        }
        let part = upload
            .parts
            .get(&number)
            .filter(|part| wanted.e_tag.as_ref().is_none_or(|etag| etag.value() == hex(&part.md5)));
        let part =
            part.ok_or_else(|| s3_error!(InvalidPart, "Part {number} was not sent, or with another ETag."))?;
        if let Some(before) = chosen.last()
            && before.size < minimum_bytes
        {
            return Err(s3_error!(EntityTooSmall, "Part {last} has less than {minimum_bytes} bytes."));
        }
        chosen.push(Arc::clone(part));
        last = number;
    }
    Ok(chosen)
}

/// The ETag of a multipart object: the MD5 of its parts' MD5s, a hyphen and their number.
fn joined_etag(parts: &[Arc<Part>]) -> String {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(part.md5);
    }
    let digest: [u8; 16] = md5.finalize().into();
    format!("{}-{}", hex(&digest), parts.len())
}

pub(super) async fn abort(
    store: &Arc<Store>,
    input: AbortMultipartUploadInput,
) -> S3Result<AbortMultipartUploadOutput> {
    let home = Arc::clone(store);
    let work = move || {
        let mut catalogue = home.write();
        catalogue.upload(&input.upload_id, &input.bucket, &input.key)?;
        let upload = catalogue.uploads.remove(&input.upload_id);
        // Dropping parts on disk removes a file for each: not under the lock.
        drop(catalogue);
        drop(upload);
        Ok(AbortMultipartUploadOutput::default())
    };
    store.backend().run(work).await
}

pub(super) fn list_parts(store: &Store, input: ListPartsInput) -> S3Result<ListPartsOutput> {
    let catalogue = store.read();
    let upload = catalogue.upload(&input.upload_id, &input.bucket, &input.key)?;
    let limit = input.max_parts.unwrap_or(PAGE).clamp(0, PAGE);
    let after = input.part_number_marker.unwrap_or_default().max(0);
    let mut rest = upload.parts.range(after.saturating_add(1)..);
    let shown = rest.by_ref().take(usize::try_from(limit).unwrap_or_default());
    let parts: Vec<WirePart> = shown
        .map(|(&number, part)| WirePart {
            part_number: Some(number),
            e_tag: Some(part_etag(part)),
            size: i64::try_from(part.size).ok(),
            last_modified: Some(part.modified.into()),
            ..WirePart::default()
        })
        .collect();
    let truncated = rest.next().is_some();
    let last = parts.last().and_then(|part| part.part_number);
    let class = upload.attributes.storage_class.clone();
    Ok(ListPartsOutput {
        next_part_number_marker: last.filter(|_| truncated),
        is_truncated: Some(truncated),
        part_number_marker: Some(after),
        max_parts: Some(limit),
        parts: Some(parts),
        storage_class: Some(StorageClass::from(class.unwrap_or_else(|| StorageClass::STANDARD.to_owned()))),
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id),
        ..ListPartsOutput::default()
    })
}

/// All uploads in progress below a prefix, on one page.
pub(super) fn list_uploads(
    store: &Store,
    input: ListMultipartUploadsInput,
) -> S3Result<ListMultipartUploadsOutput> {
    let catalogue = store.read();
    catalogue.bucket(&input.bucket)?;
    let prefix = input.prefix.as_deref().unwrap_or_default();
    let mut uploads: Vec<MultipartUpload> = catalogue
        .uploads
        .iter()
        .filter(|(_, upload)| upload.bucket == input.bucket && upload.key.starts_with(prefix))
        .map(|(id, upload)| MultipartUpload {
            key: Some(upload.key.clone()),
            upload_id: Some(id.clone()),
            initiated: Some(upload.started.into()),
            ..MultipartUpload::default()
        })
        .collect();
    uploads.sort_by(|one, other| (&one.key, &one.initiated).cmp(&(&other.key, &other.initiated)));
    Ok(ListMultipartUploadsOutput {
        uploads: Some(uploads),
        is_truncated: Some(false),
        bucket: Some(input.bucket),
        prefix: input.prefix,
        ..ListMultipartUploadsOutput::default()
    })
}

fn check_number(number: i32) -> S3Result<()> {
    if (1..=LAST_PART).contains(&number) {
        return Ok(());
    }
    Err(s3_error!(InvalidArgument, "Part numbers go from 1 to {LAST_PART}."))
}

fn part_etag(part: &Part) -> ETag {
    ETag::Strong(hex(&part.md5))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn the_etag_of_two_parts_is_the_known_one() {
        let part = |body: &'static [u8]| {
            let staged = Staged::Memory(Bytes::from_static(body));
            Arc::new(Part { md5: Md5::digest(body).into(), size: 1, modified: SystemTime::now(), staged })
        };
        // printf a | md5sum and printf b | md5sum, joined as bytes: md5sum again.
        assert_eq!(joined_etag(&[part(b"a"), part(b"b")]), "96e024ba2074fe77e8e965ba43a704be-2");
    }
}
