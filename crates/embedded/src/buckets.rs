//! Buckets: create, delete, head, list and where they are.

use std::sync::Arc;

use s3s::S3Result;
use s3s::dto::{
    Bucket as WireBucket, CreateBucketInput, CreateBucketOutput, DeleteBucketInput, DeleteBucketOutput,
    GetBucketLocationInput, GetBucketLocationOutput, HeadBucketInput, HeadBucketOutput, ListBucketsInput,
    ListBucketsOutput,
};

use crate::store::Store;

/// The region the server says it is in; requests signed for any other are accepted as well.
const REGION: &str = "us-east-1";

pub(super) fn list(store: &Store, input: ListBucketsInput) -> ListBucketsOutput {
    let prefix = input.prefix.as_deref().unwrap_or_default();
    let catalogue = store.read();
    let named = catalogue.buckets.iter().filter(|(name, _)| name.starts_with(prefix));
    let buckets = named
        .map(|(name, bucket)| WireBucket {
            name: Some(name.clone()),
            creation_date: Some(bucket.created.into()),
            bucket_region: None,
        })
        .collect();
    ListBucketsOutput { buckets: Some(buckets), prefix: input.prefix, ..ListBucketsOutput::default() }
}

pub(super) async fn create(store: &Arc<Store>, input: CreateBucketInput) -> S3Result<CreateBucketOutput> {
    let location = format!("/{}", input.bucket);
    let home = Arc::clone(store);
    store.backend().run(move || home.create_bucket(&input.bucket)).await?;
    Ok(CreateBucketOutput { location: Some(location) })
}

pub(super) fn head(store: &Store, input: &HeadBucketInput) -> S3Result<HeadBucketOutput> {
    store.read().bucket(&input.bucket)?;
    Ok(HeadBucketOutput { bucket_region: Some(REGION.to_owned()), ..HeadBucketOutput::default() })
}

/// The location of a bucket; S3 says nothing for its first region.
pub(super) fn location(store: &Store, input: &GetBucketLocationInput) -> S3Result<GetBucketLocationOutput> {
    store.read().bucket(&input.bucket)?;
    Ok(GetBucketLocationOutput::default())
}

pub(super) async fn delete(store: &Arc<Store>, input: DeleteBucketInput) -> S3Result<DeleteBucketOutput> {
    let home = Arc::clone(store);
    store.backend().run(move || home.delete_bucket(&input.bucket)).await?;
    Ok(DeleteBucketOutput::default())
}
